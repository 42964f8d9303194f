"""The session screen: the steps, one question about them, the machine; one pane at a time where it is narrow.

Puts the parts together and lays them out. Widgets get what is looked at by reactives and answer by messages.
"""

from __future__ import annotations

from shutil import get_terminal_size

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal

from inspector.tui.messages import RowOpened, StepMoved, StepWanted, TabWanted
from inspector.tui.opening import Opened, Where
from inspector.tui.session.again import Exporting
from inspector.tui.session.base import Viewing
from inspector.tui.session.commanding import Commanding, Stepping
from inspector.tui.session.remarking import Remarking
from inspector.tui.session.running import Comparing, Running, Tuning
from inspector.tui.session.tracing import Tracing
from inspector.tui.sheets import TABS
from inspector.tui.widgets.bars import KeyBar, Status, Verdict
from inspector.tui.widgets.panes import MachinePanel, SpentPanel, StepList, Tabs
from inspector.tui.widgets.text_view import TextView

NARROW, WIDE, ROOMY = 110, 120, 140


class SessionScreen(Exporting, Viewing, Tracing, Comparing, Tuning, Commanding, Running, Remarking, Stepping):
    """One session under any number of runs."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-medium"), (WIDE, "-wide"), (ROOMY, "-roomy")]  # noqa: RUF012

    def __init__(self, opened: Opened, begins: Where | None = None) -> None:
        super().__init__(opened)
        self._begins = begins
        # The class that the breakpoints will give anyway; with it from the start, styles are worked out once.
        columns = get_terminal_size().columns
        self.add_class([name for least, name in self.HORIZONTAL_BREAKPOINTS if least <= columns][-1])

    # -- layout --------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """The panes; which of them are seen is the stylesheet's."""
        yield self.verdict()
        with Horizontal(id="body"):
            yield StepList(id="steps").data_bind(
                SessionScreen.step, SessionScreen.remarks, outline=SessionScreen.listed)
            with Container(id="middle"):
                yield Tabs(id="tabs").data_bind(
                    SessionScreen.outline, SessionScreen.step, tab=SessionScreen.open_tab, steps=SessionScreen.narrow)
                yield TextView(id="text").data_bind(SessionScreen.sheet)
                yield MachinePanel(id="machine").data_bind(SessionScreen.outline, SessionScreen.step)
                yield SpentPanel(id="spent").data_bind(SessionScreen.outline, SessionScreen.step)
        yield Status(id="status").data_bind(SessionScreen.outline, SessionScreen.step, SessionScreen.filtered)
        yield KeyBar(id="keys").data_bind(SessionScreen.note)

    def verdict(self) -> Verdict:
        """The header."""
        verdict = Verdict(id="verdict")
        verdict.set_reactive(Verdict.view, self.run.view)
        verdict.set_reactive(Verdict.paths, self.opened.shown)
        return verdict

    def on_mount(self) -> None:
        """Opens on the first step, the list in hand where it is seen; or at the place that was left."""
        self._show()
        if self._begins is not None:
            self._go(self._begins.step, "")
            if self._begins.tab in {tab.name for tab in TABS}:
                self.action_tab(self._begins.tab)
        self._fit(self.app.size.width)
        self.call_after_refresh(self.restore)

    @property
    def where(self) -> Where:
        """The place that is looked at."""
        return Where(self.opened.paths, self.step, self.tab)

    def on_resize(self) -> None:
        """One pane or several."""
        self._fit(self.size.width)

    def _fit(self, width: int) -> None:
        self.narrow = width < NARROW
        self._mark_tab()
        self._focus_pane()

    # -- messages ------------------------------------------------------------------------------------------------

    @on(StepWanted)
    def _step_wanted(self, message: StepWanted) -> None:
        self._go(message.step, "")

    @on(StepMoved)
    def _step_moved(self, message: StepMoved) -> None:
        self._go(self._moved(message.by), "")

    @on(TabWanted)
    def _tab_wanted(self, message: TabWanted) -> None:
        self.action_tab(message.tab)

    @on(RowOpened)
    def _row_opened(self) -> None:
        """Enter in the list shows the step."""
        if self.narrow:
            self.listing = False
            self._mark_tab()
        self.query_one(TextView).focus(scroll_visible=False)

