"""The gauges: what the turn has spent against each of the four limits."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from inspector.report.lines import spent
from inspector.report.lines.outline import Outline
from inspector.report.lines.spans import Line, Role, Span
from inspector.tui.widgets.panel import Panel


class SpentPanel(Panel):
    """Four gauges for the step at hand."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    step: reactive[int] = reactive(0, init=False, repaint=False)

    def watch_outline(self) -> None:
        """Another run."""
        self.changed()

    def watch_step(self, old: int, new: int) -> None:
        """Another step, and another amount perhaps."""
        view = self.outline.view if self.outline is not None else None
        if view is None or max(old, new) >= len(view.steps):
            self.changed()
            return
        before, now = view.shown(old).turn, view.shown(new).turn
        if before.spent is not now.spent or before.limits is not now.limits or before.token_cap != now.token_cap:
            self.changed()  # turns of one session may have other caps, and begin with the same spend

    def make(self, width: int) -> Sequence[Line]:
        """A title and the gauges."""
        if self.outline is None or not self.outline.view.steps:
            return ()
        return [(Span("SPENT", Role.TITLE),), *spent.gauges(self.outline.view.shown(self.step).turn, width)]
