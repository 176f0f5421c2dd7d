"""The bytes of a writer's file as text."""

from __future__ import annotations

from typing import Literal

from smartwriter.errors import Invalid

SAVE_IT = "; save it as UTF-8 to go on."


def decoded(
    data: bytes,
    name: str,
    end: str = SAVE_IT,
    *,
    encoding: Literal["utf-8", "utf-8-sig"] = "utf-8",
    errors: Literal["strict", "surrogatepass"] = "strict",
) -> str:
    """The text of a file.

    :param end: of the sentence that says what is wrong; it begins with the name, if there is one.
    :param encoding: ``utf-8-sig``: without the mark that some programs put first.
    :param errors: ``surrogatepass``: half of a pair, which a model may have written, is text too.
    :raises Invalid: when it is not UTF-8: guessing at it would lose what it says.
    """
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise Invalid(f"{name} is not UTF-8 text (byte {error.start}){end}".lstrip()) from None
