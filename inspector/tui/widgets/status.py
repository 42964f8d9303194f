"""The status line: never hidden, whatever is shown above it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from inspector.report.lines.outline import Outline
from inspector.report.lines.spans import Line
from inspector.report.lines.status import status
from inspector.tui.widgets.panel import Panel


class Status(Panel):
    """Where the cursor is."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    step: reactive[int] = reactive(0, init=False, repaint=False)
    filtered: reactive[str] = reactive("", init=False, repaint=False)
    """The filter in force and how many steps it keeps; empty without one."""

    coming: reactive[str] = reactive("", init=False, repaint=False)
    """What has come of an answer that is still under way."""

    def watch_coming(self) -> None:
        """More of it."""
        self.changed()

    def watch_outline(self) -> None:
        """Another run."""
        self.changed()

    def watch_step(self) -> None:
        """Another step."""
        self.changed()

    def watch_filtered(self) -> None:
        """Another filter."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """One row."""
        return [status(self.outline, self.step, width, self.filtered, self.coming)] if self.outline is not None else ()
