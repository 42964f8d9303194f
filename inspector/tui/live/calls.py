"""The form for calls that wait: each is run, answered by hand, answered from a recording, or refused.

What the gate holds or rejects stands here too, and no key answers it.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.widgets import TextArea

from inspector.live.answers import Answers, Decision, How
from inspector.live.telling import call_of
from inspector.report.lines import glyphs
from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import Line, Role, Span, said
from inspector.tui.messages import RowOpened
from inspector.tui.widgets.bars import KeyBar
from inspector.tui.widgets.fields import Cycle, note
from inspector.tui.widgets.rows import RowList
from inspector.tui.widgets.text_view import TextView
from loop_core.errors import CallerError
from loop_core.turn.state import RunTools

WORDS = {
    How.RUN: "answered by its tool", How.TYPED: "answered by hand", How.RECORDED: "from the recording",
    How.REFUSED: "refused",
}


class Calls(RowList):
    """The calls of a batch."""

    def __init__(self, effect: RunTools, answers: Answers) -> None:
        super().__init__(id="calls")
        self.effect, self.answers = effect, answers

    @property
    def count(self) -> int:
        """All of them."""
        return len(self.effect.batch)

    def row(self, index: int) -> Line:
        """A call, and how it is answered."""
        verdict = self.effect.batch[index]
        glyph, role = glyphs.ADMISSION[verdict.admission]
        mark = Span("▶ " if index == self.cursor else "  ", Role.HERE)
        name = said(f"{verdict.call.name or 'unnamed':<20} ", Role.STRONG)
        head = (mark, Span(f"{glyph} {verdict.admission.value:<8} ", role), name)
        if not self.answers.ways(self.effect, index):
            return (*head, said(f"not run: {verdict.why}", Role.WARN))
        decision = self.answers.planned(self.effect, index)
        return (*head, Span(WORDS[decision.how]) if decision is not None else Span("no answer yet", Role.WARN))


class CallsForm(ModalScreen[None]):
    """Decides how each call is answered."""

    DEFAULT_CSS = """
    CallsForm { align: center middle; background: $background 60%; }
    #calls-box { width: 100; max-width: 100%; height: 90%; padding: 0 1; background: $surface; border: round $primary; }
    #calls { height: auto; max-height: 8; background: $surface; scrollbar-size-vertical: 1; }
    #calls-box TextView { height: 1fr; background: $surface; scrollbar-size-vertical: 1; margin: 1 0 0 0; }
    #calls-keys { height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "answer('run')", "run", id="calls.run",
                tooltip="Let the tool answer: its Python callable, or the result beside its declaration"),
        Binding("t", "type", "type", tooltip="Type the result by hand", id="calls.type"),
        Binding("f", "answer('recorded')", "from file", id="calls.recorded",
                tooltip="Take the result from the recording that was given"),
        Binding("x", "answer('refused')", "refuse", tooltip="Refuse the call: the model is told", id="calls.refuse"),
        Binding("escape,q,enter", "leave", "done", tooltip="Back to the turn", id="calls.leave", priority=True),
    ]
    note: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self, effect: RunTools, answers: Answers) -> None:
        super().__init__()
        self._effect, self._answers = effect, answers

    def compose(self) -> ComposeResult:
        """The calls, the one in hand in full, the keys."""
        with Vertical(id="calls-box"):
            yield note("How each call is answered", Role.TITLE)
            yield Calls(self._effect, self._answers)
            yield TextView(id="call")
            yield KeyBar(id="calls-keys").data_bind(CallsForm.note)

    def on_mount(self) -> None:
        """The first call."""
        listed = self.query_one(Calls)
        listed.focus()
        self.watch(listed, "cursor", self._moved)

    def _moved(self) -> None:
        listed = self.query_one(Calls)
        self.query_one(TextView).sheet = Listed(call_of(self._effect, listed.cursor, self._answers))

    def action_leave(self) -> None:
        """Back."""
        self.dismiss(None)

    def action_answer(self, how: str) -> None:
        """Settles the call in hand."""
        self._decide(Decision(How(how)))

    def action_type(self) -> None:
        """Asks for the result."""
        place = self.query_one(Calls).cursor
        if How.TYPED not in self._answers.ways(self._effect, place):
            self._decide(Decision(How.TYPED))  # which says why it cannot be
            return
        planned = self._answers.planned(self._effect, place)
        self.app.push_screen(ResultEditor(planned or Decision(How.TYPED)), self._typed)

    def _typed(self, decision: Decision | None) -> None:
        if decision is not None:
            self._decide(decision)

    def _decide(self, decision: Decision) -> None:
        listed = self.query_one(Calls)
        try:
            self._answers.decide(self._effect, listed.cursor, decision)
            self.note = ""
        except CallerError as why:
            self.note = str(why)
        listed.refresh()
        self._moved()

    def on_row_opened(self, message: RowOpened) -> None:
        """A double click is no answer."""
        message.stop()


class ResultEditor(ModalScreen[Decision | None]):
    """Asks for a result; gives None where the operator leaves."""

    DEFAULT_CSS = """
    ResultEditor { align: center middle; background: $background 60%; }
    #result-box { width: 90; max-width: 100%; height: 70%; padding: 0 1; background: $surface; border: round $primary; }
    #result-text { height: 1fr; border: none; padding: 0; background: $panel; }
    #is-error { height: 1; width: 20; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave without an answer", id="result.leave", priority=True),
        Binding("ctrl+s,f2", "take", "take", tooltip="Take the result as it stands", id="result.take", priority=True),
        Binding("f3", "error", "error", tooltip="Whether it is an error", id="result.error", priority=True),
    ]

    def __init__(self, before: Decision) -> None:
        super().__init__()
        self._before = before

    def compose(self) -> ComposeResult:
        """The text, whether it is an error, the keys."""
        with Vertical(id="result-box"):
            yield note("The result of the call, as the model reads it", Role.TITLE)
            area = TextArea(self._before.text, soft_wrap=True, id="result-text")
            area.cursor_blink = False
            yield area
            yield note("is it an error?")
            yield Cycle(("no", "yes"), "yes" if self._before.is_error else "no", id="is-error")
            yield note("^s or F2 takes it · F3 an error or not · esc leaves")

    def on_mount(self) -> None:
        """The text in hand."""
        self.query_one(TextArea).focus()

    def action_error(self) -> None:
        """The other of the two."""
        self.query_one(Cycle).action_turn(1)

    def action_take(self) -> None:
        """Takes it."""
        text = self.query_one(TextArea).text
        self.dismiss(Decision(How.TYPED, text, self.query_one(Cycle).value == "yes"))

    def action_leave(self) -> None:
        """Leaves."""
        self.dismiss(None)
