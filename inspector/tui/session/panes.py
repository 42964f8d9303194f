"""What can be done to the pane in hand, whatever it shows: searched, copied, wrapped, shown alone.

The screen that is built on this decides what the panes show.
"""

from __future__ import annotations

from textual.reactive import reactive
from textual.screen import Screen

from inspector.report.lines.sheet import Sheet
from inspector.tui.clipboard import copied
from inspector.tui.widgets.steps import StepList
from inspector.tui.widgets.text_view import NOTHING, TextView


class Panes(Screen[None]):
    """A step list and a text, one of them in hand."""

    step: reactive[int] = reactive(0, init=False, repaint=False)
    sheet: reactive[Sheet] = reactive(NOTHING, init=False, repaint=False)
    note: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self) -> None:
        super().__init__()
        self._needle = ""

    def _go(self, step: int | None, otherwise: str) -> None:
        """Goes to a step, or says why there is none."""
        raise NotImplementedError

    # -- search --------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Asks what to look for."""
        from inspector.tui.screens.prompt import Prompt

        self.app.push_screen(Prompt("search", "text in this view", self._needle), self._search)

    def _search(self, typed: str | None) -> None:
        if typed is None:
            return
        self._needle = typed
        self.query_one(TextView).needle = typed
        self._find(1, again=False)

    def action_again(self, by: int) -> None:
        """The next or previous match."""
        if not self._needle:
            self.note = "nothing was searched yet: / searches"
            return
        self._find(by, again=True)

    def _find(self, by: int, again: bool) -> None:
        if not self._needle:
            return
        steps = self.query_one(StepList)
        if steps.has_focus:
            self._go(steps.find(self._needle, by, again), f"{self._needle!r} is in no step")
        elif not self.query_one(TextView).find(by, again):
            self.note = f"{self._needle!r} is not in this view"

    # -- copying -------------------------------------------------------------------------------------------------

    def action_copy(self) -> None:
        """Copies what the focused pane shows."""
        steps = self.query_one(StepList)
        self._copy(steps.copied() if steps.has_focus else self.sheet.copied())

    def _copy(self, text: str) -> None:
        self.note = copied(self.app, text)

    # -- wrapping, and one pane alone ----------------------------------------------------------------------------

    def action_wrap(self) -> None:
        """Wraps or scrolls sideways."""
        text = self.query_one(TextView)
        text.wrap = not text.wrap
        self.note = "long lines are wrapped" if text.wrap else "long lines scroll sideways: h and l, or the arrows"

    def action_zoom(self) -> None:
        """One pane alone."""
        steps = self.query_one(StepList).has_focus
        zoomed = self.has_class("-zoom-text") or self.has_class("-zoom-steps")
        self.set_class(not zoomed and not steps, "-zoom-text")
        self.set_class(not zoomed and steps, "-zoom-steps")
