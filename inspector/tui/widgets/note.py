"""One line that says something about what stands beside it; empty where there is nothing to say."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from inspector.report.lines.spans import Line, Role, Span
from inspector.tui.widgets.panel import Panel


class Note(Panel):
    """A line of text with a role."""

    DEFAULT_CSS = "Note { height: 1; }"
    line: reactive[Line] = reactive((), init=False, repaint=False)

    def watch_line(self) -> None:
        """Another thing to say."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """The line."""
        return [self.line]


def note(text: str, role: Role = Role.DIM, *, id: str | None = None) -> Note:  # noqa: A002 - Textual's own name
    """A note that is there from the start."""
    made = Note(id=id)
    made.set_reactive(Note.line, (Span(text, role),))
    return made
