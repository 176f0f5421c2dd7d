"""What a writer may set: for one workspace, and for themselves.

::

    <workspace>/.smartwriter/config.toml      for a workspace; it may come from somebody else with it
    ~/.config/smartwriter/config.toml         the writer's own, for all of theirs

A workspace's settings go before the writer's own. What could do harm in a stranger's hands is taken from
the writer's own file alone: commands to run, folders outside, what the CLI is to be told of their account.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from smartwriter.errors import Invalid
from smartwriter.system.bounds import read_regular
from smartwriter.text.token_count import BUDGET_TOKENS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PROCESS_BYTES = 200 << 20
_MOST_PROCESSES = 8
OWN_ONLY = ("notify", "allow", "environment")
"""What only the writer's own file can set."""

TEMPLATE = """\
# What is commented out has the value shown.

# parallel = 4       # CLI processes at once; by default half the memory, at 200 MB each, at most 8
# idle_s = 60        # how long an idle draft keeps its process
# silence_s = 300    # how long the CLI may say nothing before its turn is given up
# patience_s = 30    # how long a turn waits for room on a full disk, or for a disk that is gone
# memory_tokens = 20000  # what a collection's memory may have of every prompt, about

# In ~/.config/smartwriter/config.toml, which is for all your workspaces, there may also be:
# notify = ""        # a command to run when a draft is done or needs you; {} becomes the message
# allow = []         # folders elsewhere that links in a workspace may lead to; workspaces of other users
# environment = []   # variables that the CLI gets besides those that it needs
"""


def _default_parallel() -> int:
    return max(1, min(_MOST_PROCESSES, psutil.virtual_memory().total // 2 // _PROCESS_BYTES))


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    parallel: int = Field(default_factory=_default_parallel, ge=1, le=64)
    idle_s: float = Field(default=60.0, ge=0)
    silence_s: float = Field(default=300.0, gt=0)
    patience_s: float = Field(default=30.0, ge=0)
    memory_tokens: int = Field(default=BUDGET_TOKENS, ge=0)
    notify: str = ""
    allow: tuple[Path, ...] = ()
    environment: tuple[str, ...] = ()


def own_path() -> Path:
    """The file of the writer's own settings. There may be none."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not folder.is_absolute():  # as the standard has it
        folder = Path("~/.config").expanduser()
    return folder / "smartwriter" / "config.toml"


def own() -> Config:
    """The writer's own settings; the defaults where there are none.

    :raises Invalid: with what is wrong in them; also when somebody else could have written them.
    """
    return _checked(_own_values(), own_path())


def load(path: Path) -> Config:
    """The settings for the workspace that has this file; there may be none.

    :raises Invalid: with what is wrong in it, or in the writer's own.
    """
    return _checked({**_own_values(), **_harmless(_values(path))}, path)


def passed_over(path: Path) -> list[str]:
    """What a workspace's settings say that only the writer's own can. :raises Invalid:"""
    given = _values(path)
    return [name for name in OWN_ONLY if given.get(name)]


def _harmless(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in OWN_ONLY}


def _own_values() -> dict[str, Any]:
    path = own_path()
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError:  # the home folder of somebody else
        return {}
    if hasattr(os, "geteuid") and (status.st_uid not in (os.geteuid(), 0) or status.st_mode & stat.S_IWOTH):
        raise Invalid(f"{path} is not used: other users can change it. Make it yours: chmod o-w {path}")
    values = _values(path)
    _checked(values, path)
    return values


def _values(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_regular(path).decode())
    except FileNotFoundError:
        return {}
    except Invalid:
        raise
    except ValueError as error:
        raise Invalid(f"{path} is not TOML: {error}.") from None


def _checked(values: dict[str, Any], path: Path) -> Config:
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise Invalid(f"{path}: {name}: {first['msg']}.") from None
