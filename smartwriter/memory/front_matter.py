"""Front matter: what a file says about itself, in YAML above its text; a memory file, first of all.

::

    ---
    include: on-demand
    title: The people
    description: Who appears in the series, how old they are, how they speak.
    max_words: 800
    ---
    # The people …

Fields of the writer's own may stand there too; they are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from smartwriter.errors import Invalid

Include = Literal["always", "on-demand", "never"]

MAX_TITLE = 200
MAX_DESCRIPTION = 500
_MAX_LENGTH = 16_384  # in characters; a bigger block is no front matter, and slow to parse
_MAX_NESTED = 50  # brackets; the parser takes a second to find that it cannot take a thousand

# A blank line after the first mark makes it a rule across the page instead.
_OPENS = re.compile(r"---[ \t]*\r?\n(?=[\w-]+[ \t]*:(?:[ \t\r\n]|\Z))")


def _lenient(value: Any) -> Any:
    """Capitals, and what stands between two words, do not matter."""
    return "-".join(re.split(r"[\s_-]+", value.strip().lower())) if isinstance(value, str) else value


class FrontMatter(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    include: Annotated[Include | None, BeforeValidator(_lenient)] = None
    """None where the file leaves it to us."""
    order: float | None = Field(default=None, allow_inf_nan=False)
    """Lower comes first among the files of its folder."""
    title: str = Field(default="", max_length=MAX_TITLE)
    description: str = Field(default="", max_length=MAX_DESCRIPTION)
    max_words: int | None = Field(default=None, ge=1)
    """More than these are worth a warning; nothing is cut."""
    extends: bool = False
    """Stands beside the file of the same name in a folder above, instead of replacing it."""

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, fields: Any) -> Any:
        """A field that nothing is written behind is not set."""
        return {name: value for name, value in fields.items() if value not in ("", "~", "null")}


_MUST_BE = {
    "include": "always, on-demand or never",
    "order": "a number",
    "title": f"text of at most {MAX_TITLE} characters",
    "description": f"text of at most {MAX_DESCRIPTION} characters",
    "max_words": "a whole number above 0",
    "extends": "true or false",
}


def split(text: str) -> tuple[FrontMatter, str]:
    """What a file says about itself, and its text without it.

    :raises Invalid: for broken front matter, with a message that follows the name of the file:
        "has front matter whose order is not a number".
    """
    fields, body = parse(text)
    if not fields:
        return FrontMatter(), body
    try:
        return FrontMatter.model_validate(fields), body
    except ValidationError as error:
        name = str(error.errors(include_url=False, include_input=False)[0]["loc"][0])
        raise Invalid(f"has front matter whose {name} is not {_MUST_BE[name]}") from None


def parse(text: str) -> tuple[Mapping[str, Any], str]:
    """The fields above a text, whatever they mean, and the text without them. Their values are text.

    :raises Invalid: as :func:`split`.
    """
    if not text.startswith("---"):  # most files have none, and the next import takes its time
        return {}, text
    from smartwriter.text.words import front_matter

    length = front_matter(text)
    if not length:
        if _OPENS.match(text):
            raise Invalid("has front matter without a closing line of ---")
        return {}, text
    if length > _MAX_LENGTH:
        raise Invalid(f"has front matter of more than {_MAX_LENGTH:,} characters")
    first, *_ = text.splitlines(keepends=True)
    block = text[len(first) : length].rstrip()
    return _fields(block.removesuffix("---")), text[length:]


def _fields(block: str) -> Mapping[str, Any]:
    import yaml

    if _nested(block) > _MAX_NESTED:
        raise Invalid("has front matter that is nested too deep")
    try:
        # The base loader is the safest: every value stays the text that was written, so that a
        # title may be a date, nothing is computed, and no tag makes anything but text.
        fields = yaml.load(block, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 2})" if error.problem_mark else ""
        raise Invalid(f"has front matter that is not YAML{line}") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise Invalid("has front matter that is not YAML") from None
    if fields in (None, ""):
        return {}
    if not isinstance(fields, dict):
        raise Invalid("has front matter without fields")
    return fields


def _nested(block: str) -> int:
    """How many brackets are open at once, at most; those in quotes, too."""
    return max(accumulate(1 if found[0] in "[{" else -1 for found in _BRACKET.finditer(block)), default=0)


_BRACKET = re.compile(r"[\[\]{}]")
