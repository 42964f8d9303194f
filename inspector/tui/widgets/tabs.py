"""The tabs over the text: their numbers and names, which one is open, and how far the step can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Click
from textual.reactive import reactive

from inspector.report.lines.outline import Outline
from inspector.report.lines.spans import Line, Role, Span, spread, width_of
from inspector.report.lines.status import fidelity
from inspector.tui.messages import TabWanted
from inspector.tui.sheets import TABS
from inspector.tui.widgets.panel import Panel


class Tabs(Panel):
    """One row of tabs."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    step: reactive[int] = reactive(0, init=False, repaint=False)
    tab: reactive[str] = reactive("merged", init=False, repaint=False)
    steps: reactive[bool] = reactive(True, init=False, repaint=False)
    """Whether the step list is a tab of its own, for want of room beside the text."""

    def watch_outline(self) -> None:
        """Another run."""
        self.changed()

    def watch_step(self, old: int, new: int) -> None:
        """Another step may be trusted otherwise."""
        if self._fidelity(old) != self._fidelity(new):
            self.changed()

    def watch_tab(self) -> None:
        """Another tab is open."""
        self.changed()

    def watch_steps(self) -> None:
        """More or less room."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """The tabs, and the fidelity at the right."""
        trust: Line = self._fidelity(self.step)
        line = self._tabs(" ")
        if width_of(line) + width_of(trust) + 1 > width:
            line = self._tabs("")
        return [spread(line, trust, width)]

    def _fidelity(self, step: int) -> Line:
        if self.outline is None or not self.outline.view.steps:
            return ()
        return (fidelity(self.outline.view.steps[min(step, len(self.outline.view.steps) - 1)]),)

    def _tabs(self, pad: str) -> Line:
        spans: list[Span] = []
        for tab in TABS:
            if tab.name != "steps" or self.steps:
                shown = tab.name == self.tab
                number = f"[{tab.key}" if shown else f" {tab.key}"
                spans.append(Span(f"{number}{pad}", Role.HERE if shown else Role.DIM))
                spans.append(Span(f"{tab.title}{']' if shown else ' '}", Role.HERE if shown else Role.PLAIN))
        return tuple(spans)

    def on_click(self, event: Click) -> None:
        """Opens the tab that was clicked."""
        pad = " " if width_of(self._tabs(" ")) + 10 <= self.size.width else ""
        position = 0
        spans = self._tabs(pad)
        shown = [tab for tab in TABS if tab.name != "steps" or self.steps]
        for tab, number, title in zip(shown, spans[::2], spans[1::2], strict=True):
            position += len(number.text) + len(title.text)
            if event.x < position:
                self.post_message(TabWanted(tab.name))
                return
