"""A few lines over a list, wrapped to its width: as high as they need."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.reactive import reactive

from inspector.report.lines.spans import Line, Role, Span, wrapped
from inspector.tui.paint import paint_of
from inspector.tui.widgets.panel import Panel


class Lines(Panel):
    """Lines that may change."""

    DEFAULT_CSS = "Lines { height: auto; }"
    lines: reactive[Sequence[Line]] = reactive((), init=False, repaint=False)

    def watch_lines(self) -> None:
        """Others: as many rows as they need."""
        self.changed()
        self.refresh(layout=True)

    def make(self, width: int) -> Sequence[Line]:
        """The lines as rows."""
        measure = paint_of(self.app).measure
        return [row for line in self.lines for row in wrapped(line, width, measure)] if width > 0 else ()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are."""
        return len(self.make(width))


def lines(text: str, id: str) -> Lines:  # noqa: A002 - Textual's own name
    """A line that is there from the start, as high as it needs."""
    made = Lines(id=id)
    made.set_reactive(Lines.lines, [(Span(text, Role.DIM),)])
    return made
