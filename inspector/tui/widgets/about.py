"""What is known of the session at the picker's cursor: its story, where it comes from, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from inspector.report.lines.spans import Line, field, said, wrapped
from inspector.tui.paint import paint_of
from inspector.tui.widgets.choices import Choice
from inspector.tui.widgets.panel import Panel


class About(Panel):
    """A few lines under the list."""

    choice: reactive[Choice | None] = reactive(None, init=False, repaint=False)

    def watch_choice(self) -> None:
        """Another session."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """The story over as many rows as it needs."""
        choice = self.choice
        if choice is None:
            return ()
        named = (("story", choice.story), ("from", choice.provenance), ("ends in", choice.end_state),
                 ("path", choice.path))
        measure = paint_of(self.app).measure
        return [row for name, text in named if text for row in wrapped(field(name, said(text)), width, measure)]
