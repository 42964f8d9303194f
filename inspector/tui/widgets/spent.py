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
        steps = self.outline.view.steps if self.outline is not None else ()
        if max(old, new) >= len(steps) or steps[old].turn.spent is not steps[new].turn.spent:
            self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """A title and the gauges."""
        if self.outline is None or not self.outline.view.steps:
            return ()
        return [(Span("SPENT", Role.TITLE),), *spent.gauges(self.outline.view.steps[self.step].turn, width)]
