"""What if the model had been given another text: an editor for a message or a tool result of a turn."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import TextArea

from inspector.config.settings import TurnEdit
from inspector.replay.edits import TurnInput, turn_inputs
from inspector.replay.rerun import edit_step
from inspector.report.lines.spans import Role, inert, one_line, safe
from inspector.tui.branches import Branches
from inspector.tui.lists import Choose
from inspector.tui.panels import WrappedLines, lines, note
from inspector.tui.stage import SessionPart, SessionStage
from loop_core.errors import CallerError

SHOWN = 200
"""Characters of an input that the list shows."""


class EditChoice(NamedTuple):
    """What is to be given, and who answers it."""

    text: str
    live: bool


class InputEditor(ModalScreen[EditChoice | None]):
    """Asks for another text; gives None where the user leaves."""

    DEFAULT_CSS = """
    InputEditor { align: center middle; background: $background 60%; }
    #input-box { width: 100%; height: 100%; padding: 0 1; background: $surface; border: round $primary; }
    #input-text { height: 1fr; border: none; padding: 0; background: $surface; }
    .-plain #input-box { border: ascii $primary; }
    .-plain #input-text { scrollbar-size: 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave without running", id="input.leave", priority=True),
        Binding("ctrl+s,f2", "take", "run", tooltip="Run the turn with this text over the recording", id="input.take",
                priority=True),
        Binding("f4", "ask", "ask live", tooltip="Ask the provider with this text; first says where, and for how much",
                id="input.live", priority=True),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text, self._before = title, text, inert(text)
        self._warned = False

    def compose(self) -> ComposeResult:
        """A title, the text, what is to be known of it, the keys."""
        with Vertical(id="input-box"):
            yield note(one_line(self._title), Role.TITLE)
            area = TextArea(self._before, soft_wrap=True, id="input-text")
            area.cursor_blink = False
            yield area
            marks = " Control characters stand as marks, and an edited text has the marks." if (
                self._before != self._text) else ""
            yield lines(f"The recording answers up to this request, and nothing recorded answers it edited.{marks}",
                        "input-note")
            yield note("^s or F2 runs it over the recording · F4 asks live · esc leaves")

    def on_mount(self) -> None:
        """Focuses the end of the text."""
        area = self.query_one(TextArea)
        area.focus()
        area.move_cursor(area.document.end)

    def action_leave(self) -> None:
        """Leaves; what was typed is given up at the second time only."""
        if self.query_one(TextArea).text == self._before or self._warned:
            self.dismiss(None)
            return
        self._warned = True
        self._say("esc again gives up what was typed")

    def action_take(self) -> None:
        """Runs it over the recording."""
        self._give(live=False)

    def action_ask(self) -> None:
        """Asks live."""
        self._give(live=True)

    def _give(self, live: bool) -> None:
        text = self.query_one(TextArea).text
        if text == self._before and not live:
            self._say("this is the text as it was: edit it first")
        else:
            self.dismiss(EditChoice(self._text if text == self._before else text, live))

    def _say(self, text: str) -> None:
        self.query_one("#input-note", WrappedLines).lines = [(safe(text, Role.WARN),)]


class EditedInputs(SessionPart):
    """Runs in which a turn is given another text."""

    TITLE_OF_KEYS = "What if"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("W", "edit_input", "Edit text", show=False, id="edit.input",
                tooltip="Edit a message or a tool result that the model was given, and run again"),
    ]

    def __init__(self, stage: SessionStage, branches: Branches) -> None:
        super().__init__(stage)
        self.branches = branches

    def action_edit_input(self) -> None:
        """Asks which input of the turn at the cursor, where it has several; the cursor is on the one given last."""
        view = self.stage.run.view
        if not view.steps:
            self.stage.note = "there is no turn to edit: nothing was read"
            return
        turn = view.turn_of(self.stage.step)
        inputs = turn_inputs(view.replay.case, turn.run.record)
        if not inputs:
            self.stage.note = "what this turn was given was not recorded"
        elif len(inputs) == 1:
            self._edit(turn.id, inputs[0])
        else:
            rows = [(f"{each.number} {each.what}", one_line(each.text, SHOWN)) for each in inputs]
            every = dict(zip([word for word, _ in rows], inputs, strict=True))
            ask = Choose(f"Give turn {view.number(turn)} another text: which?", rows, self._nearest(inputs, turn.id))
            self.stage.app.push_screen(ask, lambda word: self._edit(turn.id, every[word]) if word is not None else None)

    def _nearest(self, inputs: list[TurnInput], turn: str) -> int:
        """The last input that was given by the step at the cursor."""
        steps = {each.exchange: self._step(each, turn) for each in {each.exchange: each for each in inputs}.values()}
        given = [at for at, each in enumerate(inputs) if (step := steps[each.exchange]) is not None
                 and step <= self.stage.step]
        return given[-1] if given else 0

    def _step(self, given: TurnInput, turn: str) -> int | None:
        try:
            return edit_step(self.stage.run.view.replay, _edit(given, turn))
        except CallerError:
            return None

    def _edit(self, turn: str, given: TurnInput) -> None:
        replay = self.stage.run.view.replay
        now = next((edit.text for edit in replay.settings.edits if (edit.id, edit.input) == (turn, given.number)),
                   given.text)
        try:
            since = edit_step(replay, _edit(given, turn))
        except CallerError as why:
            self.stage.note = str(why)
            return
        title = f"Turn {turn.removeprefix('t')}, input {given.number}: {given.what}, given at step {since + 1}"
        self.stage.app.push_screen(
            InputEditor(title, now), lambda choice: self._run(_edit(given, turn), choice, since))

    def _run(self, edit: TurnEdit, choice: EditChoice | None, since: int) -> None:
        if choice is None:
            return
        if choice.live:
            self.branches.live.ask({edit.name: choice.text}, since)
            return
        self.branches.branch({edit.name: choice.text}, since)
        from inspector.whatif.edited_inputs import stop_steps

        stops = stop_steps(self.stage.run.view.replay)
        if stops:
            said = f"the recording stops answering at step {stops[-1] + 1} · W, F4 asks live"
            self.stage.note = self.branches.lost_or(said)


def _edit(given: TurnInput, turn: str) -> TurnEdit:
    return TurnEdit(int(turn.removeprefix("t")), given.number, given.text)
