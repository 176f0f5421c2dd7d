"""Values as lines of journals, each marked with what it is and when it was written.

The marks tell a whole entry from a fragment, should a damaged file ever have to be salvaged. A line
of another kind, or of a later version that this one cannot read, is left alone.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from smartwriter.storage.salvage import Entry


def now() -> datetime:
    return datetime.now(timezone.utc)


def _showable(when: datetime) -> datetime:
    # In a zone of its own, the first or the last day there is would lie outside of all others.
    plain = when.replace(tzinfo=timezone.utc)
    if plain < _FIRST or plain > _LAST:
        return min(max(plain, _FIRST), _LAST)
    return plain if when.tzinfo is None else when


_FIRST = datetime(1970, 1, 2, tzinfo=timezone.utc)
_LAST = datetime(9999, 12, 30, tzinfo=timezone.utc)
Moment = Annotated[datetime, AfterValidator(_showable)]
"""When something was, as a line has it: comparable with any other, and to be shown in every zone."""


class Value(BaseModel):
    """What is kept as a line. A change makes a new one."""

    model_config = ConfigDict(frozen=True, extra="ignore")


V = TypeVar("V", bound=Value)


def kind_of(model: type[Value]) -> str:
    """What lines of these values say that they are: the model's ``KIND``, or its name."""
    return str(getattr(model, "KIND", model.__name__.lower()))


def to_line(value: Value, *, brief: bool = False) -> Entry:
    """The line of a value. :param brief: without the fields that have their defaults."""
    fields = value.model_dump(mode="json", exclude_defaults=brief)
    return {"type": kind_of(type(value)), "timestamp": now().isoformat(), **fields}


def from_line(model: type[V], line: Entry | None) -> V | None:
    """The value that a line holds; None for any other line, and for none."""
    if line is None or line.get("type") != kind_of(model):
        return None
    try:
        return model.model_validate(line)
    except ValidationError:  # of another program, or of a later version
        return None
