"""A collection's memory as it is at one moment, and as it stands in a prompt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from smartwriter.errors import Invalid
from smartwriter.memory.budget import used_tokens
from smartwriter.memory.files import LeftOut, MemoryFile, filename, split_text
from smartwriter.text.sameness import folded, normal
from smartwriter.text.sections import section
from smartwriter.text.token_count import BUDGET_TOKENS

_ON_DEMAND = "Further notes of the author, to be read with the tool read_memory when they bear on the work:"


@dataclass(frozen=True)
class Memory:
    """A collection's memory as it was at one moment."""

    files: tuple[MemoryFile, ...]
    """Those that are in every prompt, in their order there."""
    problems: tuple[str, ...] = ()
    """One sentence for each thing that the writer should know of."""
    on_demand: tuple[MemoryFile, ...] = ()
    """Those that a prompt only lists."""
    left_out: tuple[LeftOut, ...] = ()
    collection: str = ""
    budget_tokens: int = BUDGET_TOKENS

    def render(self) -> str:
        """As it stands in the system prompt; the same bytes while no file changes."""
        parts = [
            section(file.text, name=file.name, from_="" if file.origin == self.collection else file.origin)
            for file in self.files
        ]
        if self.on_demand:
            parts += [_ON_DEMAND, "\n".join(file.listing for file in self.on_demand)]
        return "\n\n".join(parts)

    @property
    def hashes(self) -> dict[str, str]:
        """The sha256 of each file that sessions have or may read, by name."""
        return {file.name: file.sha256 for file in self._all}

    @property
    def used_tokens(self) -> int:
        """Of the budget: the texts that are in every prompt, and the lines of the other files."""
        return used_tokens(self.files, self.on_demand)

    def find(self, name_or_title: str) -> MemoryFile | None:
        """The file that a name, with or without ``.md``, or else a title means, in any case."""
        wanted = folded(name_or_title)
        for known in (
            lambda file: file.name,
            lambda file: file.name.removesuffix(".md"),
            lambda file: file.title,
            lambda file: f"{file.origin}/{filename(file.path)}",
        ):
            for file in (*self.on_demand, *self.files):
                if folded(known(file)) == wanted:
                    return file
        return None

    def replaced(self, name: str, text: str) -> Memory:
        """The same memory, in which one file holds another text. Nothing is written.

        :param text: of the whole file, front matter included. It stays where the file was, in the
            prompt or on demand, whatever it says about that.
        :raises Invalid: when there is no such file, or the text has broken front matter.
        """
        if not any(file.name == normal(name) for file in self._all):
            raise Invalid(f"There is no memory file {name!r}; there are: {', '.join(self.hashes) or 'none'}.")
        try:
            front, body = split_text(text.removeprefix("\ufeff"))
        except Invalid as error:
            raise Invalid(f"The text for {name} {error}.") from None
        data = text.encode("utf-8", "surrogatepass")

        def changed(files: Iterable[MemoryFile]) -> tuple[MemoryFile, ...]:
            return tuple(
                replace(file, data=data, text=body, front=front) if file.name == normal(name) else file
                for file in files
            )

        return replace(self, files=changed(self.files), on_demand=changed(self.on_demand))

    @property
    def _all(self) -> tuple[MemoryFile, ...]:
        return (*self.files, *self.on_demand)
