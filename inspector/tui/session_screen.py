"""The session screen: the steps, a view of the current one, the machine; stepping and exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from time import monotonic
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.worker import get_current_worker

from inspector.report.lines import glyphs
from inspector.report.lines.spans import count_of, text_of
from inspector.report.run_answers import answer_at
from inspector.sessions import redact
from inspector.tui.attention import Attention, idle_keys
from inspector.tui.branches import Branches, Comparisons, EditedInputs
from inspector.tui.command_line import CommandLine
from inspector.tui.compared_turns import TurnComparison
from inspector.tui.delivery import deliver, export_folder, picture
from inspector.tui.growth import Growth
from inspector.tui.key_words import TABS
from inspector.tui.keys import KeyBar, key_in_force
from inspector.tui.lists import Choose
from inspector.tui.live_run import LiveAttempt
from inspector.tui.messages import (
    MANY_STEPS,
    LinesPointed,
    Result,
    RowOpened,
    StepMoved,
    StepWanted,
    TabWanted,
    ask_operator,
    run_in_thread,
)
from inspector.tui.panels import Status, VerdictPanel, set_size_classes
from inspector.tui.remarks import RemarkBook
from inspector.tui.session_files import OpenSession, ScreenPlace, reading_of
from inspector.tui.session_panes import Panes, Tracing
from inspector.tui.session_widgets import MachinePanel, SpentPanel, StepList, Tabs
from inspector.tui.stage import SessionPart, SessionStage
from inspector.tui.text_view import TextView

REPEAT_TIME = 0.09
"""The seconds within which a second event of the same key means that the key is held down."""
REPEATS_TO_DOUBLE = 8
"""The number of repeats after which a held key moves by twice as many steps."""
SHARE = 50
"""The number of steps of the session divided by this is the largest move of a held key."""


class Stepping(SessionPart):
    """Moves the cursor through the steps."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "step(1)", "step", tooltip="The next step; held down, faster and faster", id="step.forward"),
        Binding("backspace", "step(-1)", "step back", tooltip="The previous step", id="step.back"),
        Binding("}", "event(1)", "event", tooltip="The next cut, held call, limit or bad end", id="event.next"),
        Binding("{", "event(-1)", "Previous event", show=False, id="event.previous",
                tooltip="The previous cut, held call, limit or bad end"),
        Binding("c", "proceed(1)", "continue", id="continue", tooltip="Run to the next breakpoint, else to the end"),
        Binding("C", "proceed(-1)", "Run back", show=False, id="continue.back",
                tooltip="Run back to the previous breakpoint, else to the first step"),
        Binding("]", "turn(1)", "turn", tooltip="The first step of the next turn", id="turn.next"),
        Binding("[", "turn(-1)", "Previous turn", show=False, id="turn.previous",
                tooltip="The first step of this turn, or of the previous one"),
    ]

    def __init__(self, stage: SessionStage, remarks: RemarkBook) -> None:
        super().__init__(stage)
        self.remarks = remarks
        self._struck, self._streak = (0, 0.0), 0
        """The last move and its time; how often it has been repeated without a pause."""

    def action_step(self, by: int) -> None:
        """Steps forward or back."""
        target = self.target(by)
        edge = f"this is the {'last' if by > 0 else 'first'} step"
        self.stage.go(None if target == self.stage.step else target, f"{edge}{self.stage.rows.within}")

    def target(self, by: int) -> int:
        """The target of a move among the listed steps; a held key moves further."""
        now, (before, at) = monotonic(), self._struck
        self._streak = self._streak + 1 if before == by and now - at < REPEAT_TIME else 0
        self._struck = (by, now)
        # A held key crosses any long session in about the same time, and does not overshoot in a short one.
        most = max(1, len(self.stage.run.view.steps) // SHARE)
        return self.stage.rows.neighbour(self.stage.step, by * min(2 ** (self._streak // REPEATS_TO_DOUBLE), most))

    def action_event(self, by: int) -> None:
        """Goes to the next or previous event worth stopping at."""
        rows, step, steps = self.stage.rows, self.stage.step, self.stage.run.view.steps
        where = f"{'after' if by > 0 else 'before'} this step{rows.within}"
        further = range(step + by * MANY_STEPS, len(steps) if by > 0 else -1, by * MANY_STEPS)

        def find_further() -> int | None:
            worker = get_current_worker()
            parts = takewhile(lambda _: not worker.is_cancelled, further)
            return next((at for part in parts if (at := rows.interesting(part, by, MANY_STEPS)) is not None), None)

        def show(found: int | None) -> None:
            self.stage.go(found, f"nothing out of the ordinary {where}")

        near = rows.interesting(step, by, MANY_STEPS)
        if near is None and further:
            self._look_on("an event", find_further, show, partial(self.action_event, by))
        else:
            show(near)

    def action_proceed(self, by: int) -> None:
        """Runs to the next or previous breakpoint; without any, to the end."""
        from inspector.tui.breakpoints import next_stop

        stops, run, step = self.remarks.breakpoints, self.stage.run, self.stage.step
        find = partial(next_stop, stops, run.view, step, by, self.remarks.marks)
        if len(run.view.steps) < MANY_STEPS or not any(each.enabled for each in stops):
            self._stop_at(find(), by)
        else:
            again = partial(self.action_proceed, by)
            self._look_on("a breakpoint", find, lambda found: self._stop_at(found, by), again)

    def _look_on(
        self, what: str, find: Callable[[], Result], show: Callable[[Result], object], again: Callable[[], object]
    ) -> None:
        """Looks for a step in a thread, and shows it unless the operator has gone elsewhere."""
        run, step = self.stage.run, self.stage.step
        self.stage.note = looking = f"looking for {what}…"

        def arrive(found: Result) -> None:
            now = self.stage.run
            if (not self.stage.is_active  # a screen below a question is current, but not active
                    or (now.name, self.stage.step) != (run.name, step) or len(now.view.steps) < len(run.view.steps)):
                # the operator, or the cursor at the end of a growing file, has gone elsewhere
                self.stage.note = "" if self.stage.note == looking else self.stage.note
            elif found is None and now.view is not run.view:
                again()  # there may be one in the additions
            else:
                show(found)

        run_in_thread(self.stage, find, arrive)

    def _stop_at(self, found: tuple[int, str] | None, by: int) -> None:
        """Goes to the step at which a breakpoint stops; without one, to the end."""
        if found is not None:
            filtered = self.stage.filtered
            self.stage.go(found[0], "")
            lifted = "; the filter is removed" if filtered and not self.stage.filtered else ""
            self.stage.note = f"breakpoint: {found[1]}{lifted}"
            return
        self.stage.step = self.stage.rows.neighbour(self.stage.step, by * len(self.stage.run.view.steps))
        where = f"the {'last' if by > 0 else 'first'} step{self.stage.rows.within}"
        enabled = any(each.enabled for each in self.remarks.breakpoints)
        self.stage.note = f"no breakpoint on the way: {where}" + ("" if enabled else "; b sets breakpoints")

    def action_turn(self, by: int) -> None:
        """Goes to another turn."""
        edge = f"this is the {'last' if by > 0 else 'first'} turn{self.stage.rows.within}"
        self.stage.go(self.stage.rows.turn_start(self.stage.step, by), edge)


VIEWS: Mapping[str, str] = {
    "svg": "this screen as a picture (SVG)",
    "view": "what this view shows, as text",
}
"""Form that only the app exports -> its description; the other forms are those of `inspector export`."""


class Exports(SessionPart):
    """The exports of the session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "export", "export", tooltip="Write a page, a picture, a session file, curl, a test, a bug report",
                id="export"),
        Binding("X", "report", "Bug report", show=False, id="report",
                tooltip="Write a bug report: the smallest session that shows this turn's finding, without credentials"),
    ]

    def __init__(self, stage: SessionStage, panes: Panes) -> None:
        super().__init__(stage)
        self.panes = panes

    def action_export(self) -> None:
        """Asks for a form, then for a folder, and writes the files; in a browser they are downloaded."""
        from inspector.export import FORMS

        at_once = key_in_force(self.stage.app, (type(self),), "report")
        also = {"bug": f" ({at_once})" if at_once else ""}
        rows = [*((name, form.about + also.get(name, "")) for name, form in FORMS.items()), *VIEWS.items()]
        start = [name for name, _ in rows].index("bug" if self._reportable() else "md")
        # Taken before the dialog opens, which would be part of the picture.
        screen = picture(self.stage.app)

        ask_operator(self.stage.app, Choose("Export", rows, start), lambda form: deliver(
            self.stage, lambda: self.files(form, screen), f"the {form} export"))

    def _reportable(self) -> bool:
        """Whether the turn at the cursor has a provider's bytes, as opposed to an agent's rows or a simulation."""
        from inspector.export.exchange_files import why_unreported

        view = self.stage.run.view
        if not view.steps:
            return True
        turn = view.turn_of(self.stage.step)
        rows = any(view.responses[index].exchange.recorder for index in turn.responses)
        return not rows and not why_unreported(view, turn)

    def action_report(self) -> None:
        """Writes a bug report into the folder for exports, or downloads it."""
        deliver(self.stage, lambda: self.files("bug", ""), "the bug report", export_folder())

    def files(self, form: str, screen: str) -> Mapping[str, str]:
        """The files of a form: name -> content; `screen` is its picture."""
        from inspector.export import FORMS, ExportScope, name_of

        view = self.stage.run.view
        name = name_of(view)
        if form == "svg":
            # A picture is text too, and is shared more easily than a file.
            return {f"{name}-{self.panes.tab}.svg": redact.text(screen)}
        if form == "view":
            lines = [text_of(self.stage.sheet.line(at)) for at in range(len(self.stage.sheet))]
            return {f"{name}-{self.panes.tab}.txt": redact.text("\n".join(lines)) + "\n"}
        facts = answer_at(view, self.stage.step) if view.steps else None
        turn = view.turn_of(self.stage.step) if form == "bug" and view.steps else None
        return FORMS[form].make(ExportScope(view, turn, facts, name))


# -- The session screen: the steps, a view of the current one, the machine; one pane at a time if it is narrow -------
# It creates the parts and lays out the widgets. Widgets receive the current run and step as reactive attributes, and
# send messages, which the screen passes to the responsible part.


NARROW, WIDE, ROOMY = 110, 120, 140
HIGH_SCREEN = 30


class SessionScreen(SessionStage):
    """One session with any number of runs."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-medium"), (WIDE, "-wide"), (ROOMY, "-roomy")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (HIGH_SCREEN, "-high")]  # noqa: RUF012
    PARTS: ClassVar[tuple[type[SessionPart], ...]] = (
        Stepping, CommandLine, Attention, RemarkBook, LiveAttempt, Branches, EditedInputs, TurnComparison,
        Comparisons, Tracing, Panes, Exports, Growth)
    """The parts, in the order in which the help lists their keys."""
    BINDINGS: ClassVar[list[BindingType]] = [binding for part in PARTS for binding in part.BINDINGS]

    def __init__(self, session: OpenSession, begins: ScreenPlace | None = None) -> None:
        super().__init__(session)
        self._begins = begins
        self.panes, self.remarks = Panes(self), RemarkBook(self)
        self.growth = Growth(self, self.remarks)
        self.branches = Branches(self, self.panes, self.remarks)
        self.stepping = Stepping(self, self.remarks)
        self.tracing = Tracing(self, self.panes)
        self.attention = Attention(self)
        comparison = TurnComparison(self)
        self.adopt(self.stepping, CommandLine(self, self.branches.branch, comparison.compare_with), self.attention,
                   self.remarks, self.branches, EditedInputs(self, self.branches), comparison,
                   Comparisons(self, self.branches), self.tracing, self.panes, Exports(self, self.panes), self.growth,
                   self.branches.live)  # last, so that `esc` stops a live run before it closes anything else

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key works now; giving up needs a live run in progress."""
        return self.branches.live.under_way if action == "give_up" else super().check_action(action, parameters)

    # -- layout --------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Yields the panes; the stylesheet decides which are visible."""
        self.set_class(NARROW <= self.app.size.width < ROOMY, "-folded")
        set_size_classes(self)
        yield self.verdict()
        with Horizontal(id="body"):
            yield StepList(id="steps").data_bind(
                SessionScreen.step, remarks=SessionScreen.step_remarks, outline=SessionScreen.shown_outline)
            with Container(id="middle"):
                yield Tabs(id="tabs").data_bind(
                    SessionScreen.outline, SessionScreen.step, tab=SessionScreen.open_tab, steps=SessionScreen.narrow)
                yield TextView(id="text").data_bind(SessionScreen.sheet)
                yield MachinePanel(id="machine").data_bind(SessionScreen.outline, SessionScreen.step)
                yield SpentPanel(id="spent").data_bind(SessionScreen.outline, SessionScreen.step)
        yield Status(id="status").data_bind(SessionScreen.outline, SessionScreen.step, SessionScreen.filtered)
        yield KeyBar(id="keys").data_bind(SessionScreen.note)

    def verdict(self) -> VerdictPanel:
        """The header."""
        verdict = VerdictPanel(id="verdict")
        verdict.set_reactive(VerdictPanel.paths, self.session.label)
        return verdict.data_bind(SessionScreen.outline, SessionScreen.step)

    def on_mount(self) -> None:
        """Opens at the given place, at the end of a file named as growing, else where attention is needed."""
        self.show()
        if self._begins is not None:
            self.go(self._begins.step, "")
        elif self.session.following is not None and reading_of(self.app).follow:
            self.go(max(0, len(self.run.view.steps) - 1), "")
        else:
            self.attention.open()
        self.panes.fit(self.app.size.width < NARROW, self.app.size.width >= ROOMY)
        begins = self._begins.tab if self._begins is not None else ""
        if begins != self.panes.tab and begins in {tab.name for tab in TABS}:
            self.panes.action_tab(begins)
        if self.session.part:
            turns = count_of(len(self.run.view.turns), "turn")
            self.note = f"only the first {turns} of this file have been read: q, then enter when the table has all"
        self.growth.begin()
        self.call_after_refresh(self.restore)
        if self._begins is not None and self._begins.action:
            self.call_after_refresh(getattr(self, f"action_{self._begins.action}"))

    def restore(self) -> None:
        """Loads the saved remarks and runs of this session; of named growing files later, after the first look."""
        if not self.growth.named:
            self.remarks.restore()

    @property
    def where(self) -> ScreenPlace:
        """The current place."""
        return ScreenPlace(self.session.paths, self.step, self.panes.tab)

    def on_resize(self) -> None:
        """Shows one pane or several, depending on the size."""
        self.panes.fit(self.size.width < NARROW, self.size.width >= ROOMY)

    # -- showing the current step --------------------------------------------------------------------------------

    def show(self) -> None:
        """Shows the current sheet, and the keys that do something at this step."""
        self.sheet = self.panes.sheet()
        for bar in self.query(KeyBar):
            bar.idle = idle_keys(self.run.view, self.step)

    def watch_step(self) -> None:
        """Shows the sheet and the note of another step."""
        self.remarks.keep_in_sight()
        self.show()
        if self.step in self.remarks.notes:
            self.note = f"{glyphs.NOTE} {self.remarks.notes[self.step]}"

    def watch_outline(self) -> None:
        """Applies the same filter to the steps of another run."""
        self.remarks.filter_again()

    # -- messages ------------------------------------------------------------------------------------------------

    @on(StepWanted)
    def _step_wanted(self, message: StepWanted) -> None:
        self.go(message.step, "")

    @on(StepMoved)
    def _step_moved(self, message: StepMoved) -> None:
        self.stepping.action_step(message.by)

    @on(TabWanted)
    def _tab_wanted(self, message: TabWanted) -> None:
        self.panes.action_tab(message.tab)

    @on(RowOpened)
    def _row_opened(self) -> None:
        self.panes.leave_list()
        if not self.note:
            self.note = "in the text: enter shows where a line comes from, tab goes back to the steps"

    @on(LinesPointed)
    def _lines_pointed(self, message: LinesPointed) -> None:
        self.tracing.follow_lines(message)
