"""The operator's controls of a live turn. No key runs a call that the gate holds or rejects."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import TextArea

from inspector.live.answers import Answers, CallDecision, Source
from inspector.live.live_lines import waiting_call_lines
from inspector.live.stepper import BUSY, Phase
from inspector.report.lines import glyphs
from inspector.report.lines.spans import Line, LineSheet, Span, Tone, safe
from inspector.tui.keys import KeyBar, key_in_force
from inspector.tui.lists import RowList
from inspector.tui.messages import RowOpened, ask_operator
from inspector.tui.panels import Cycle, Dialog, key_note, note
from inspector.tui.stage import SessionPart, SessionStage
from inspector.tui.text_editors import BodyEditor, text_field
from inspector.tui.text_view import TextView
from loop_core.errors import CallerError, LoopError
from loop_core.turn.state import Finish, RunTools, Send

SOURCE_WORDS = {
    Source.RUN: "answered by its tool", Source.TYPED: "answered by hand", Source.RECORDED: "from the recording",
    Source.REFUSED: "refused",
}


class CallList(RowList):
    """The list of a batch's calls."""

    def __init__(self, effect: RunTools, answers: Answers) -> None:
        super().__init__(id="calls")
        self.effect, self.answers, self.entries = effect, answers, effect.batch

    def row(self, index: int) -> Line:
        """A call, and how it will be answered."""
        verdict = self.effect.batch[index]
        glyph, role = glyphs.ADMISSION[verdict.admission]
        mark = self.cursor_mark(index)
        name = safe(f"{verdict.call.name or 'unnamed':<20} ", Tone.STRONG)
        head = (mark, Span(f"{glyph} {verdict.admission.value:<8} ", role), name)
        if not self.answers.ways(self.effect, index):
            return (*head, safe(f"not run: {verdict.why}", Tone.WARN))
        decision = self.answers.plan(self.effect, index)
        return (*head, Span(SOURCE_WORDS[decision.how]) if decision is not None else Span("no answer yet", Tone.WARN))


class CallsForm(Dialog[None]):
    """A form that decides how each call is answered."""

    DEFAULT_CSS = """
    #calls-box { width: 100; height: 90%; }
    #calls { height: auto; max-height: 8; background: $surface; scrollbar-size-vertical: 1; }
    #calls-box TextView { height: 1fr; background: $surface; scrollbar-size-vertical: 1; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "answer('run')", "run", id="calls.run",
                tooltip="Let the tool answer: its Python callable, or the result beside its declaration"),
        Binding("t", "type", "type", tooltip="Type the result by hand", id="calls.type"),
        Binding("f", "answer('recorded')", "from file", id="calls.recorded",
                tooltip="Take the result from the recording that was given"),
        Binding("x", "answer('refused')", "refuse", tooltip="Refuse the call: the model is told", id="calls.refuse"),
        Binding("escape,q,enter", "dismiss", "done", tooltip="Back to the turn", id="calls.leave", priority=True),
    ]

    def __init__(self, effect: RunTools, answers: Answers) -> None:
        super().__init__()
        self._effect, self._answers = effect, answers

    def compose(self) -> ComposeResult:
        """Yields the calls, the current one in full and the key bar."""
        with Vertical(id="calls-box"):
            yield note("How each call is answered", Tone.TITLE)
            yield CallList(self._effect, self._answers)
            yield TextView(id="call")
            yield KeyBar(id="calls-keys").data_bind(CallsForm.note)

    def on_mount(self) -> None:
        """Selects the first call."""
        listed = self.query_one(CallList)
        listed.focus()
        self.watch(listed, "cursor", self._show_call)

    def _show_call(self) -> None:
        listed = self.query_one(CallList)
        self.query_one(TextView).sheet = LineSheet(waiting_call_lines(self._effect, listed.cursor, self._answers))

    def action_answer(self, how: str) -> None:
        """Decides the answer of the current call."""
        self._decide(CallDecision(Source(how)))

    def action_type(self) -> None:
        """Asks for a typed result."""
        place = self.query_one(CallList).cursor
        if Source.TYPED not in self._answers.ways(self._effect, place):
            self._decide(CallDecision(Source.TYPED))  # is refused with a reason, which is shown
            return
        planned = self._answers.plan(self._effect, place)
        ask_operator(self.app, ResultEditor(planned or CallDecision(Source.TYPED)), self._decide)

    def _decide(self, decision: CallDecision) -> None:
        listed = self.query_one(CallList)
        try:
            self._answers.decide(self._effect, listed.cursor, decision)
            self.note = ""
        except CallerError as why:
            self.note = str(why)
        listed.refresh()
        self._show_call()

    def on_row_opened(self, message: RowOpened) -> None:
        """Ignores a double click, since it decides nothing."""
        message.stop()


class ResultEditor(Dialog[CallDecision | None]):
    """Asks for a result; returns None if the operator leaves."""

    DEFAULT_CSS = """
    #result-box { width: 90; height: 70%; min-height: 10; }
    #result-text { height: 1fr; border: none; padding: 0; background: $panel; }
    #is-error { height: 1; width: 20; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "leave", tooltip="Leave without an answer", id="result.leave", priority=True),
        Binding("ctrl+s,f2", "take", "take", tooltip="Take the result as it stands", id="result.take", priority=True),
        Binding("f3", "error", "error", tooltip="Whether it is an error", id="result.error", priority=True),
    ]

    def __init__(self, before: CallDecision) -> None:
        super().__init__()
        self._before = before

    def compose(self) -> ComposeResult:
        """The text, whether it is an error, the keys."""
        with Vertical(id="result-box"):
            yield note("The result of the call, as the model reads it", Tone.TITLE)
            yield text_field(self._before.text, "result-text")
            yield note("is it an error?")
            yield Cycle(("no", "yes"), "yes" if self._before.is_error else "no", id="is-error")
            yield key_note("^s or F2 takes it · F3 an error or not · esc leaves")

    def action_error(self) -> None:
        """Switches between a result and an error."""
        self.query_one(Cycle).action_turn(1)

    def action_take(self) -> None:
        """Returns the text as the result."""
        text = self.query_one(TextArea).text
        self.dismiss(CallDecision(Source.TYPED, text, self.query_one(Cycle).value == "yes"))


# -- The keys --------------------------------------------------------------------------------------------------------
# Each effect of the turn waits for a key; the forms change the effect before it runs.


if TYPE_CHECKING:
    from inspector.live.driver import Driver

LOCKED_ACTIONS = frozenset({
    "limits", "limits_from_here", "advice", "run", "tree", "rerun", "copy_command", "tune", "policies", "export",
    "report", "filter", "breakpoints", "mark", "to_mark", "note", "proceed",
})
"""Actions that need a complete session; they are disabled until the turn is over."""


RUN = "live.run"
"""The id of the key that runs a turn to its end."""


NEED_WAITING = ("live_do", "live_edit", "live_body")
ONCE_DONE = "works once what is under way is done"
"""When a key works that is pressed while an answer comes; the note about it goes when that is done."""


class TurnControls(SessionPart):
    """Runs the actions of a live turn's keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "live_do", "do", id="live.do",
                tooltip="Carry out what waits: send the request, answer the calls, accept the end"),
        Binding("D", "live_run", "run", id=RUN, tooltip="Carry out what follows without waiting, to the end"),
        Binding("a", "live_pause", "pause", id="live.pause", tooltip="Wait again once what is under way is done"),
        Binding("i", "live_edit", "edit", id="live.edit",
                tooltip="Edit what waits: budget and limits, or how each call is answered"),
        Binding("I", "live_body", "body", id="live.body", tooltip="Edit the body of the request that waits, as JSON"),
        Binding("T", "live_again", "try again", id="live.again", tooltip="Send a request again that got no answer"),
        Binding("M", "live_say", "say", id="live.say", tooltip="Write a message after the end: the next turn"),
    ]

    def __init__(self, stage: SessionStage, driver: Driver, on_change: Callable[[], None]) -> None:
        """`on_change` is called when the state of the turn may have changed."""
        super().__init__(stage)
        self.driver, self._changed = driver, on_change
        self.is_finished = False
        """Whether the run is over and the screen shows its recording."""

    def allows(self, action: str) -> bool:
        """Whether an action is possible now."""
        if action.startswith("live_"):
            return not self.is_finished and ACTION_CONDITIONS[action](self.driver)
        return self.is_finished or action not in LOCKED_ACTIONS

    def why_locked(self, action: str) -> str:
        """When the key of an action that needs a waiting effect, or a complete turn, will work; empty for any other."""
        if action in NEED_WAITING and self.driver.live.phase in BUSY:
            return ONCE_DONE
        if self.is_finished or action not in LOCKED_ACTIONS:
            return ""
        key = key_in_force(self.stage.app, (TurnControls,), RUN)
        return f"works when the turn is over ({key} runs it to its end)"

    def work(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a task of the driver while keys stay active; the driver runs one task at a time."""
        self.stage.run_worker(work, group="live", exit_on_error=True)

    def action_live_do(self) -> None:
        """Runs the waiting effect."""
        self.work(self.driver.act())

    def action_live_run(self) -> None:
        """Runs all further effects without waiting, even while one is in progress."""
        self.work(self.driver.run())

    def action_live_pause(self) -> None:
        """Lets each effect wait again, after the one in progress."""
        self.driver.pause()

    def action_live_again(self) -> None:
        """Sends a request again."""
        self.work(self.driver.send_again())

    def action_live_edit(self) -> None:
        """Opens the form for the waiting effect."""
        effect = self.driver.live.pending
        if isinstance(effect, RunTools):
            self.stage.app.push_screen(CallsForm(effect, self.driver.answers), lambda _: self._changed())
            return
        from inspector.tui.live_forms import BudgetForm

        self.stage.app.push_screen(BudgetForm(self.driver), self._note_edit)

    def _note_edit(self, text: str | None) -> None:
        if text is not None:
            self.stage.note = text
        self._changed()

    def action_live_body(self) -> None:
        """Opens the editor of the request body."""
        self.stage.app.push_screen(BodyEditor(self.driver), self._note_edit)

    def action_live_say(self) -> None:
        """Asks for a message of the user."""
        from inspector.tui.questions import Prompt

        ask_operator(self.stage.app, Prompt("say", "what the user says next"), self._say)

    def _say(self, text: str) -> None:
        try:
            self.driver.say(text)
        except LoopError as why:
            self.stage.note = str(why)


def _waits_for(*effects: type) -> Callable[[Driver], bool]:
    return lambda driver: driver.live.phase is Phase.WAITING and isinstance(driver.live.pending, effects)


ACTION_CONDITIONS: dict[str, Callable[[Driver], bool]] = {
    "live_do": lambda driver: driver.live.phase is Phase.WAITING,
    "live_run": lambda driver: not driver.live.running,
    "live_pause": lambda driver: driver.live.running,
    "give_up": lambda driver: driver.live.phase in BUSY or not isinstance(driver.live.pending, Finish),
    "live_edit": lambda driver: driver.live.phase is Phase.WAITING,
    "live_body": _waits_for(Send),
    "live_again": lambda driver: driver.live.failed_answer is not None and driver.live.phase is Phase.WAITING,
    "live_say": _waits_for(Finish),
}
"""Action -> whether it is possible in the present state."""
