"""The session screen: the steps, one question about them, the machine; one pane at a time where it is narrow.

Owns which step, tab and run are looked at. Widgets get these by reactives and answer by messages.
"""

from __future__ import annotations

from shutil import get_terminal_size
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.reactive import reactive

from inspector.report.lines.outline import Outline
from inspector.tui.messages import RowOpened, StepMoved, StepWanted, TabWanted
from inspector.tui.opening import Opened, Reading, Run
from inspector.tui.runs import Runs
from inspector.tui.screens.panes import Panes
from inspector.tui.session_keys import SESSION_KEYS
from inspector.tui.sheets import WIRE_MODES, Asked, Sheets
from inspector.tui.widgets.keybar import KeyBar
from inspector.tui.widgets.machine import MachinePanel
from inspector.tui.widgets.spent import SpentPanel
from inspector.tui.widgets.status import Status
from inspector.tui.widgets.steps import StepList
from inspector.tui.widgets.tabs import Tabs
from inspector.tui.widgets.text_view import TextView
from inspector.tui.widgets.verdict import Verdict

NARROW, WIDE, ROOMY = 110, 120, 140


class SessionScreen(Panes):
    """One session under any number of runs."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-medium"), (WIDE, "-wide"), (ROOMY, "-roomy")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = SESSION_KEYS

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    tab: reactive[str] = reactive("merged", init=False, repaint=False)
    """The tab whose sheet is shown."""
    open_tab: reactive[str] = reactive("merged", init=False, repaint=False)
    """The tab that is marked: `steps` where the list is a tab of its own and open."""
    listing: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether the step list is open as a tab, where there is no room beside the text."""
    narrow: reactive[bool] = reactive(False, init=False, repaint=False)

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        # The class that the breakpoints will give anyway; with it from the start, styles are worked out once.
        columns = get_terminal_size().columns
        self.add_class([name for least, name in self.HORIZONTAL_BREAKPOINTS if least <= columns][-1])
        self.opened = opened
        self.runs = Runs(opened)
        self.wire_mode = WIRE_MODES[0]
        self.against = "step"
        self._sheets = Sheets()
        self.set_reactive(SessionScreen.outline, opened.original.outline)

    @property
    def run(self) -> Run:
        """The run that is shown."""
        return self.runs.current

    # -- layout --------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """The panes; which of them are seen is the stylesheet's."""
        verdict = Verdict(id="verdict")
        verdict.set_reactive(Verdict.view, self.run.view)
        verdict.set_reactive(Verdict.paths, self.opened.paths)
        yield verdict
        with Horizontal(id="body"):
            yield StepList(id="steps").data_bind(SessionScreen.outline, SessionScreen.step)
            with Container(id="middle"):
                yield Tabs(id="tabs").data_bind(
                    SessionScreen.outline, SessionScreen.step, tab=SessionScreen.open_tab, steps=SessionScreen.narrow)
                yield TextView(id="text").data_bind(SessionScreen.sheet)
                yield MachinePanel(id="machine").data_bind(SessionScreen.outline, SessionScreen.step)
                yield SpentPanel(id="spent").data_bind(SessionScreen.outline, SessionScreen.step)
        yield Status(id="status").data_bind(SessionScreen.outline, SessionScreen.step)
        yield KeyBar(id="keys").data_bind(SessionScreen.note)

    def on_mount(self) -> None:
        """Opens on the first step, the list in hand where it is seen."""
        self._show()
        self._fit(self.app.size.width)

    def on_resize(self) -> None:
        """One pane or several."""
        self._fit(self.size.width)

    def _fit(self, width: int) -> None:
        self.narrow = width < NARROW
        self._mark_tab()
        self._focus_pane()

    def _focus_pane(self) -> None:
        steps, text = self.query_one(StepList), self.query_one(TextView)
        if self.narrow:
            wanted = steps if self.listing else text
        else:
            wanted = text if text.has_focus else steps
        if not wanted.has_focus:
            wanted.focus(scroll_visible=False)

    def _mark_tab(self) -> None:
        self.open_tab = "steps" if self.narrow and self.listing else self.tab
        self.set_class(self.narrow and self.listing, "-listing")

    # -- what is shown -------------------------------------------------------------------------------------------

    def _show(self) -> None:
        if self.outline is not None:
            self.sheet = self._sheets.at(
                Asked(self.tab, self.outline, self.step, self.wire_mode, self.against, self.run.branch))

    def watch_step(self) -> None:
        """Another step: another sheet, perhaps."""
        self._show()

    def watch_tab(self) -> None:
        """Another tab."""
        self._mark_tab()
        self._show()

    def _go(self, step: int | None, otherwise: str) -> None:
        """Goes to a step, or says why there is none."""
        if step is None:
            self.note = otherwise
        elif self.run.view.steps:
            self.step = min(max(step, 0), len(self.run.view.steps) - 1)

    # -- messages ------------------------------------------------------------------------------------------------

    @on(StepWanted)
    def _step_wanted(self, message: StepWanted) -> None:
        self._go(message.step, "")

    @on(StepMoved)
    def _step_moved(self, message: StepMoved) -> None:
        last = len(self.run.view.steps) - 1
        self._go(min(max(self.step + message.by, 0), last), "")

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

    # -- stepping ------------------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        """Steps forward or back."""
        last = len(self.run.view.steps) - 1
        target = self.step + by
        edge = "this is the last step" if by > 0 else "this is the first step"
        self._go(target if 0 <= target <= last else None, edge)

    def action_event(self, by: int) -> None:
        """Goes to the next or previous event worth stopping at."""
        assert self.outline is not None  # noqa: S101 - set in __init__
        where = "after" if by > 0 else "before"
        self._go(self.outline.interesting(self.step, by), f"nothing out of the ordinary {where} this step")

    def action_turn(self, by: int) -> None:
        """Goes to another turn."""
        assert self.outline is not None  # noqa: S101 - set in __init__
        edge = "this is the last turn" if by > 0 else "this is the first turn"
        self._go(self.outline.turn_start(self.step, by), edge)

    def action_jump(self) -> None:
        """Asks for a step's number."""
        from inspector.tui.screens.prompt import Prompt

        self.app.push_screen(Prompt("step", f"1 to {len(self.run.view.steps):,}"), self._jump)

    def _jump(self, typed: str | None) -> None:
        if typed is None:
            return
        plain = typed.strip().replace(",", "").replace("_", "")
        last = len(self.run.view.steps)
        if not plain.isdecimal() or not 1 <= int(plain) <= last:
            self.note = f"{typed!r} is no step: 1 to {last:,}"
            return
        self._go(int(plain) - 1, "")

    # -- views ---------------------------------------------------------------------------------------------------

    def action_tab(self, name: str) -> None:
        """Opens a tab; the steps are one where there is no room for them beside the text."""
        if name == "steps":
            self.listing = self.narrow
            self._mark_tab()
            self.query_one(StepList).focus(scroll_visible=False)
            return
        self.listing = False
        self.tab = name
        self._mark_tab()
        if self.narrow:
            self.query_one(TextView).focus(scroll_visible=False)

    def action_mode(self) -> None:
        """Another form of the same view."""
        if self.tab == "wire":
            self.wire_mode = WIRE_MODES[(WIRE_MODES.index(self.wire_mode) + 1) % len(WIRE_MODES)]
        elif self.tab == "diff":
            self.against = "run" if self.against == "step" else "step"
        else:
            self.note = "this view has one form; Wire and Diff have more"
            return
        self._show()

    def action_other_pane(self) -> None:
        """To the other pane; where only one is seen, to the other tab."""
        steps, text = self.query_one(StepList), self.query_one(TextView)
        if self.narrow:
            self.action_tab(self.tab if self.listing else "steps")
            return
        self.remove_class("-zoom-text", "-zoom-steps")
        (text if steps.has_focus else steps).focus(scroll_visible=False)

    # -- runs ----------------------------------------------------------------------------------------------------

    def action_limits(self) -> None:
        """Opens the form."""
        from inspector.tui.screens.limits import LimitsForm

        if self.run.view.steps:
            self.app.push_screen(LimitsForm(self.runs.every, self.runs.index, self.step), self._limits_chosen)

    def _limits_chosen(self, assignments: dict[str, str] | None) -> None:
        if assignments is not None:
            self._branch(assignments)

    def action_rerun(self) -> None:
        """Runs again with the limits of this run: the same recording gives the same run."""
        self._branch({})

    def _branch(self, assignments: dict[str, str]) -> None:
        """Makes a branch, or goes to the run that has these settings already."""
        index, new = self.runs.under(assignments)
        if not new:
            self._switch(index)
            self.note = f"run {self.run.name}: these limits were run already, and a recording gives the same again"
            return
        self.against = "run"
        self._switch(index, "diff")
        self._land()

    def _land(self) -> None:
        """Puts the cursor on the end of the turn that a new branch has changed, and says how it ends."""
        from inspector.whatif import lines as whatif

        made = self.run.branch
        turn = whatif.turn_of(made) if made is not None else None
        if turn is None:
            self.note = f"run {self.run.name}: nothing differs"
            return
        self.step = turn.run.decided
        number, end = self.run.view.number(turn), whatif.ending(turn)
        self.note = f"run {self.run.name}: turn {number} ends in {end} · b goes between runs"

    def action_copy_command(self) -> None:
        """Copies the command line of this run."""
        reading: Reading | None = getattr(self.app, "reading", None)
        self._copy(self.runs.command(reading.api, reading.profile) if reading is not None else self.runs.command())

    def action_run(self, by: int) -> None:
        """Shows another run."""
        count = len(self.runs.every)
        if count == 1:
            self.note = "there is only the original run; e makes another"
            return
        self._switch((self.runs.index + by) % count)
        self.note = f"run {self.runs.index + 1} of {count}: {self.run.name}"

    def _switch(self, index: int, tab: str | None = None) -> None:
        """Another run; the cursor stays on its step as far as the run has it."""
        self.runs.index = index
        run = self.run
        # The step first: clamped, it stands in both runs.
        self.step = min(self.step, max(0, len(run.view.steps) - 1))
        self.outline = run.outline
        verdict = self.query_one(Verdict)
        verdict.run, verdict.view = run.name, run.view
        if tab is not None:
            self.listing = False
            self.tab = tab
        self._mark_tab()
        self._show()
