"""A widget of a few lines that are made again only when something they show has changed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from inspector.report.lines.spans import Line
from inspector.tui.paint import paint_of


class Panel(Widget):
    """Lines from `make`, one a row."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._lines: Sequence[Line] | None = None
        self._width = 0
        self._base = Style()

    def make(self, width: int) -> Sequence[Line]:
        """The lines for a width."""
        raise NotImplementedError

    def changed(self) -> None:
        """What the lines show has changed: those that differ are drawn again."""
        old, width = self._lines, self.size.width
        if old is None or self._width != width or not self.is_mounted:
            self._lines = None
            self.refresh()
            return
        new = self._lines = self.make(width)
        for y in range(max(len(old), len(new))):
            if old[y : y + 1] != new[y : y + 1]:
                self.refresh(Region(0, y, width, 1))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Takes the style once for all rows: it is worked out anew each time it is asked for."""
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """One row."""
        width, base = self.size.width, self._base
        if self._lines is None or self._width != width:
            self._lines, self._width = self.make(width), width
        line = self._lines[y] if y < len(self._lines) else ()
        return paint_of(self.app).strip(line, width, base)
