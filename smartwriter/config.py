"""``.smartwriter/config.toml``: what a writer may set for a workspace."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from smartwriter.errors import Invalid
from smartwriter.tokens import BUDGET_TOKENS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PROCESS_BYTES = 200 << 20
_MOST_PROCESSES = 8

TEMPLATE = """\
# What is commented out has the value shown.

# parallel = 4       # CLI processes at once; by default half the memory, at 200 MB each, at most 8
# idle_s = 60        # how long an idle draft keeps its process
# silence_s = 300    # how long the CLI may say nothing before its turn is given up
# memory_tokens = 20000  # what a collection's memory may have of every prompt, about
# notify = ""        # a command to run when a draft is done or needs you; {} becomes the message
"""


def _default_parallel() -> int:
    return max(1, min(_MOST_PROCESSES, psutil.virtual_memory().total // 2 // _PROCESS_BYTES))


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    parallel: int = Field(default_factory=_default_parallel, ge=1, le=64)
    idle_s: float = Field(default=60.0, ge=0)
    silence_s: float = Field(default=300.0, gt=0)
    memory_tokens: int = Field(default=BUDGET_TOKENS, ge=0)
    notify: str = ""


def load(path: Path) -> Config:
    """The settings of a workspace; the defaults where there is no file.

    :raises Invalid: with what is wrong in it.
    """
    try:
        return Config.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Config()
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise Invalid(f"{path}: {name}: {first['msg']}.") from None
    except ValueError as error:
        raise Invalid(f"{path} is not TOML: {error}.") from None
