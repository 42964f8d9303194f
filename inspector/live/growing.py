"""A sheet whose text grows at its end: what was laid out stays, and only the last line is made anew.

`stable` says how many lines can no longer change, so that a view lays out what follows them and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import EMPTY, Line, Role, Span, paragraphs, text_of

GUTTER = "┃ "


class Growing(Listed):
    """Lines that stand, a text that grows, and a few lines about it that change."""

    def __init__(self, head: Sequence[Line], gutter: str = GUTTER) -> None:
        super().__init__(list(head))
        self._made: list[Line] = list(head)
        self.lines = self._made
        self._gutter = gutter
        self._tail = ""
        """The text of the last line, which may still grow."""
        self._begun = False
        self._settled = len(head)
        self.stable = 0
        """Lines that are as they were when the sheet was last laid out."""
        self.text = ""

    def grow(self, added: str, foot: Sequence[Line] = ()) -> None:
        """Appends text; `foot` stands under it until it grows again."""
        self.stable = min(self.stable, self._settled)
        del self._made[self._settled :]
        self.text += added
        self._begun = self._begun or bool(added)
        if self._begun:
            rows = paragraphs(self._tail + added)
            lines: list[Line] = [(Span(self._gutter, Role.RULE), *row) for row in rows]
            self._made += lines
            self._settled += len(lines) - 1
            self._tail = text_of(rows[-1])
        self._made += foot
        self.focus = max(0, len(self._made) - 1)

    def section(self, title: Line) -> None:
        """What grows from here on stands under a title of its own."""
        self.stable = min(self.stable, self._settled)
        if self._tail:
            self._settled += 1
        del self._made[self._settled :]
        self._made += [EMPTY, title]
        self._settled, self._tail, self._begun = len(self._made), "", False

    def laid(self) -> None:
        """The sheet was laid out as it is now."""
        self.stable = len(self._made)

    def copied(self) -> str:
        """The text as it came."""
        return self.text
