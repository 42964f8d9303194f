"""A sheet: the content of one view as lines that are made when they are asked for.

`Listed` holds lines that are there already; the wire views make theirs from bytes, so that a body of any size costs
nothing until it is looked at, and then only what is visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from inspector.report.lines.spans import Line, Measure, cells, text_of, wrapped


class Sheet(Protocol):
    """What a view shows, by logical line."""

    focus: int
    """The line that must be visible when the sheet is opened."""

    def __len__(self) -> int: ...

    def line(self, index: int) -> Line:
        """One logical line."""

    def rows(self, index: int, width: int, measure: Measure = cells, needle: str = "") -> Sequence[Line]:
        """The line wrapped to a width, every occurrence of `needle` marked."""

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """How many rows the line takes at a width."""

    def find(self, needle: str, start: int, step: int) -> int | None:
        """The next line that holds `needle`, whatever its case, from `start` on in steps of 1 or -1."""

    def copied(self) -> str:
        """What copying the view gives: the value it shows, as it was received."""


class Listed:
    """A sheet of lines that are there already."""

    def __init__(self, lines: Sequence[Line], focus: int = 0, copied: Callable[[], str] | None = None) -> None:
        self.lines = lines
        self.focus = focus
        self._copied = copied

    def __len__(self) -> int:
        return len(self.lines)

    def line(self, index: int) -> Line:
        """One logical line."""
        return self.lines[index]

    def rows(self, index: int, width: int, measure: Measure = cells, needle: str = "") -> Sequence[Line]:
        """The line wrapped to a width, every occurrence of `needle` marked."""
        return wrapped(self.line(index), width, measure, needle=needle)

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """How many rows the line takes at a width."""
        return len(wrapped(self.line(index), width, measure))

    def find(self, needle: str, start: int, step: int) -> int | None:
        """The next line that holds `needle`."""
        return scan(self, needle, start, step)

    def copied(self) -> str:
        """The value, or the lines as text."""
        return self._copied() if self._copied is not None else "\n".join(text_of(line) for line in self.lines)


def scan(sheet: Sheet, needle: str, start: int, step: int) -> int | None:
    """Looks through the lines of a sheet one by one."""
    wanted = needle.lower()
    index = start
    while 0 <= index < len(sheet):
        if wanted in text_of(sheet.line(index)).lower():
            return index
        index += step
    return None
