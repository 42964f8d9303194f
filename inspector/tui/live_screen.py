"""The session screen of a live turn and, once its end is accepted, of its recording."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.reactive import reactive

from inspector.live.driver import Driver
from inspector.live.growing_views import STREAM_TABS, Streams
from inspector.live.headless import EXITS, LiveStart
from inspector.live.live_lines import (
    activity_line,
    arrival_text,
    exchange_lines,
    live_view,
    recorded_case,
    waiting_lines,
)
from inspector.live.scripted import ScriptedTurn
from inspector.live.stepper import BUSY, Phase
from inspector.report.lines.spans import EMPTY, Line, LineSheet, Span, Tone, field, more
from inspector.tui.delivery import shown_path
from inspector.tui.keys import key_in_force
from inspector.tui.lists import Choose
from inspector.tui.live_controls import ACTION_CONDITIONS, ONCE_DONE, TurnControls
from inspector.tui.live_run import LiveAttempt
from inspector.tui.panels import Status, VerdictPanel, WrappedLines
from inspector.tui.session_files import OpenSession, ScreenPlace, remember, run_of, session_of
from inspector.tui.session_screen import SessionScreen
from inspector.tui.session_widgets import Tabs
from inspector.tui.stage import SessionPart
from inspector.tui.text_view import TextView
from loop_core.errors import LoopError
from loop_core.turn.state import Send

if TYPE_CHECKING:
    from loop_core.client.exchange import Connection as Reached

FRAME = 1 / 12
"""The seconds between two frames of a streaming answer. Each frame draws what has arrived since the last."""
STAY, LEAVE = "stay", "leave"


BUILT_IN = "the built-in provider answers:"
UNSEEN_CUT = "⚠ it cuts this answer, and no byte shows it, so no verdict can detect it"
"""The remark on a scripted provider that plays a cut which looks like a finished answer."""


def scenario_lines(turn: ScriptedTurn) -> list[Line]:
    """The scenario that answers a turn, whether its stop word is false and, dimmed, what no byte shows."""
    server = field("server", Span(f"{BUILT_IN} {turn.plays}"),
                   *((Span(f" · {turn.stop_word}", Tone.WARN),) if turn.stop_word else ()))
    beware = (field("beware", Span(UNSEEN_CUT, Tone.WARN)), more(Span(turn.blind, Tone.DIM)))
    return [server, more(Span("no real server is asked", Tone.DIM)), *(beware if turn.blind else ())]


class LiveScreen(SessionScreen):
    """One live run and, after its end, its recording."""

    DEFAULT_CSS = "#played { padding: 0 1; background: $surface; }"
    PARTS: ClassVar[tuple[type[SessionPart], ...]] = (TurnControls, *SessionScreen.PARTS)
    BINDINGS: ClassVar[list[BindingType]] = [*TurnControls.BINDINGS]

    coming: reactive[str] = reactive("", init=False, repaint=False)
    """The part of the current answer that has arrived, shortened."""

    def __init__(self, live_start: LiveStart | ScriptedTurn, line: Reached | None = None) -> None:
        self._scripted = live_start if isinstance(live_start, ScriptedTurn) else None
        start = live_start.start if isinstance(live_start, ScriptedTurn) else live_start
        self.driver = Driver(start, self._renew_soon, line)
        self._titled = f"{start.request.model}, live"
        self._streams: Streams | None = None
        self._due = False
        self._left_to_wait = ""
        self._silent = 0
        self._drawn: tuple[object, ...] = ()
        super().__init__(self._current_session(), ScreenPlace(()))
        if self._scripted is not None:
            self.known = scenario_lines(self._scripted)
        self.controls = TurnControls(self, self.driver, self._renew_soon)
        self.adopt(self.controls)
        self.action_give_up = self._give_up

    @property
    def is_finished(self) -> bool:
        """Whether the run is over and the screen shows its recording."""
        return self.controls.is_finished

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key works now; giving up also works for this run."""
        if action == "give_up" and not self.is_finished:
            return ACTION_CONDITIONS[action](self.driver)
        return self.controls.allows(action) and super().check_action(action, parameters)

    def _give_up(self) -> None:
        """Cancels the turn."""
        if self.is_finished:
            self.branches.live.action_give_up()
        else:
            self.driver.cancel()

    def _current_session(self) -> OpenSession:
        view = live_view(self.driver)
        return OpenSession((self.driver.start.path,), view.replay.case, run_of("live", view), self._titled)

    def verdict(self) -> VerdictPanel:
        """The verdict panel, which shows the waiting effect from the first frame on."""
        panel = super().verdict()
        panel.set_reactive(VerdictPanel.live, activity_line(self.driver, self._key))
        panel.set_reactive(VerdictPanel.run, "live")
        return panel

    def go(self, step: int | None, otherwise: str) -> None:
        """Goes to a step; if none follows yet, the note names the key that runs the waiting effect."""
        waits = step is None and self.at_end and self.driver.live.phase is Phase.WAITING
        super().go(step, f"{otherwise} · {self._key('live.do')} runs the waiting step" if waits else otherwise)

    def on_mount(self) -> None:
        """Shows the waiting effect first."""
        super().on_mount()
        if self.known:
            facts = WrappedLines(id="played")
            facts.set_reactive(WrappedLines.lines, [line[1:] for line in self.known if line[1].role is not Tone.DIM])
            self.mount(facts, before="#body")
        self.query_one(Status).data_bind(LiveScreen.coming)
        self._frames = self.set_interval(FRAME, self._frame, pause=True)
        self._renew()
        if self._scripted is not None and self._scripted.runs:
            self.controls.action_live_run()

    async def on_unmount(self) -> None:
        """Closes the recording and stops a provider started for the turn, however the app ends."""
        try:
            await self.driver.close()
        finally:
            self._end_server()

    def _end_server(self) -> None:
        if self._scripted is not None:
            self._scripted.server.close()

    def restore(self) -> None:
        """Loads the saved remarks of the recording; a run in progress has none."""
        if self.is_finished:
            super().restore()

    # -- the effect in progress ----------------------------------------------------------------------------------

    def _renew_soon(self) -> None:
        """Redraws soon after the driver has reported a change; several changes are drawn together."""
        if not self._due and self.is_mounted:
            self._due = True
            # A streaming answer reports many changes in one frame; drawing each would delay the keys.
            self.call_next(self._renew)

    def _renew(self) -> None:
        self._due = False
        live = self.driver.live
        if self.is_finished or not self.is_mounted:
            return
        if live.phase is Phase.OVER:
            self._open_recording()
            return
        # The whole view is made again, so this is done only if a step, a failure or an answer was added.
        stands = (self.driver.stepper, live.phase in BUSY, live.failed_answer,
                  sum(len(answers) for answers in live.responses))
        if stands != self._drawn:
            self._drawn = stands
            self.replace_session(self._current_session(), self.at_end)
        if ONCE_DONE in self.note and live.phase not in BUSY:
            self.note = ""
        if live.answer is None:
            self._streams = None
            self.coming = ""
        elif self._streams is None or self._streams.answer is not live.answer:
            self._streams = Streams(live.answer, self.run.view, self.run.outline.blocks[-1])
        self._say_now()
        self.show()
        self.refresh_bindings()
        (self._frames.resume if live.phase in BUSY else self._frames.pause)()

    def _say_now(self) -> None:
        self.query_one(VerdictPanel).live = activity_line(self.driver, self._key)

    def _key(self, name: str) -> str:
        """The key that a binding has in the present configuration."""
        return key_in_force(self.app, (TurnControls, LiveAttempt), name)

    def _frame(self) -> None:
        """Draws what has arrived since the last frame."""
        live = self.driver.live
        if live.phase is Phase.RETRYING:
            self._count_down()
            return
        if live.silent != self._silent:
            self._silent = live.silent
            self._say_now()
        streams = self._streams
        if streams is None or live.phase is not Phase.STREAMING:
            return
        before = streams.sheets.get(self.panes.tab)
        fresh = streams.answer.read()
        self.coming = arrival_text(streams.answer)
        if not fresh or before is None or not self.at_end:
            return
        grown = streams.sheet(self.panes.tab)
        if grown is not before:
            self.sheet = grown
        elif self.sheet is grown:
            self.query_one(TextView).extend()
        grown.note_layout()

    def _count_down(self) -> None:
        """Shows the seconds until a request is sent again, once a second."""
        left = f"{self.driver.live.seconds_left:.0f}"
        if left != self._left_to_wait:
            self._left_to_wait = left
            self._say_now()
            if self.at_end:
                self.show()

    # -- what is shown -------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Shows the current sheet; at the end of a run, the waiting effect or the arriving answer."""
        if self.is_finished or not self.at_end or self.panes.tab not in STREAM_TABS:
            super().show()
            return
        sheet = self._end_sheet()
        if sheet is None:
            super().show()
        else:
            self.sheet = sheet
            if sheet.focus:
                self.call_after_refresh(self.query_one(TextView).show_from, sheet.focus)

    def _end_sheet(self) -> LineSheet | None:
        """The sheet of a tab while the cursor is at the end; None if the tab shows the step there as usual."""
        live, step = self.driver.live, self.run.view.steps[-1]
        if self._streams is not None and live.phase is Phase.STREAMING:
            return self._streams.sheet(self.panes.tab)
        waits = [*exchange_lines(self.driver), EMPTY] if live.phase in BUSY else []
        waits += waiting_lines(self.driver)
        if self.panes.tab == "merged":
            return self._text_sheet(waits)
        asks = isinstance(live.pending, Send) and (self.panes.tab, self.panes.forms["wire"]) == ("wire", "request")
        return LineSheet(waits) if live.failed_answer is not None or step.turn.evaluation is None or asks else None

    def _text_sheet(self, waits: list[Line]) -> LineSheet:
        """The merged text so far, and the waiting effect below it."""
        view = self.run.view
        if all(not segments for segments in view.steps[-1].turn.answers):
            return LineSheet(waits)
        text = self.panes.sheets.at(self.panes.viewpoint)
        lines = [text.line(at) for at in range(len(text))]
        if view.steps[-1].turn.ended:
            return LineSheet(lines, len(lines) - 1, text.copy_text)  # shows its last lines
        return LineSheet([*lines, EMPTY, *waits], len(lines) + 1, text.copy_text)

    # -- the end -------------------------------------------------------------------------------------------------

    def _open_recording(self) -> None:
        """Shows the recording in place of the run; if it cannot be read, the run stays."""
        self.controls.is_finished = True
        self._frames.stop()
        self.controls.work(self._end())
        path, problem = self.driver.path, ""
        recorder = self.driver.recorder
        try:
            if path is None or recorder is None:
                raise LoopError("nothing was sent, and nothing was recorded")
            if recorder.failure is not None:
                raise LoopError(recorder.failure)
            # The settings at the end: those at the beginning may have been edited since.
            held = replace(self.driver.start.settings, limits=self.driver.stepper.plan.limits, max_tokens=None,
                           explicit=frozenset())
            opened = session_of(recorded_case(path, self.driver.start.server), (path,), held)
            if not opened.original.view.steps:
                raise LoopError(next(iter(opened.errors), "it holds no answer of this format"))
            remember((path,))
        except LoopError as why:
            problem, opened = str(why).removeprefix(f"{path}: "), self._current_session()
        self._streams, self.coming = None, ""
        self.replace_session(opened, to_end=True)
        verdict = self.query_one(VerdictPanel)
        verdict.live, verdict.paths, verdict.run = (), opened.label, self.run.name
        self.query_one(Tabs).live = self.query_one(Status).live = not problem
        self.show()
        self.refresh_bindings()
        if not problem:
            self.restore()
        self.note = problem or f"recorded in {shown_path(str(path))}"

    async def _end(self) -> None:
        await self.driver.close()
        self._end_server()

    @property
    def exit_code(self) -> int:
        """The exit code of the run, as `inspector run` has it; an abandoned turn counts as cancelled."""
        return EXITS[self.driver.stepper.last.turn.terminal or "cancelled"]

    def asks_to_leave(self) -> bool:
        """Asks whether to cancel the turn, if it has not ended; returns whether it asked."""
        if self.is_finished:
            return False
        title, leaving = "The turn has not ended", "cancel the turn and leave; what was recorded stays"
        if self.driver.stepper.last.turn.terminal:
            title, leaving = "The end of the turn is not accepted yet", "leave; what was recorded stays"

        async def leave() -> None:
            await self.abandon()
            await self.app.run_action("app.back")

        def leave_if_chosen(word: str | None) -> None:
            if word == LEAVE:
                self.app.call_next(leave)

        rows = [(STAY, "go on with the turn"), (LEAVE, leaving)]
        self.app.push_screen(Choose(title, rows, escape="stays"), leave_if_chosen)
        return True

    async def abandon(self) -> None:
        """Cancels the turn and closes the recording, whatever is in progress."""
        if self.is_finished:
            return
        # Cancelled first, so that `wait_until_idle` does not wait for the answer of the request.
        self.driver.cancel()
        await self.driver.wait_until_idle()
        await self.driver.act()  # the end is accepted, and noted in the recording
        self.controls.is_finished = True
        await self.driver.close()
