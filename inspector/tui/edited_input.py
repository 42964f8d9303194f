"""Runs with an edited input: chooses a message or tool result of a turn, edits it, and runs the turn with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.config.settings import TurnEdit
from inspector.replay.edits import TurnInput, turn_inputs
from inspector.report.lines.spans import one_line
from inspector.tui.branches import Branches
from inspector.tui.stage import SessionPart, SessionStage
from loop_core.errors import CallerError

if TYPE_CHECKING:
    from inspector.tui.input_editor import EditChoice

SHOWN = 200
"""Characters of an input that the list shows."""


class EditedInputs(SessionPart):
    """Runs in which an input of a turn is edited."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("W", "edit_input", "Edit text", show=False, id="edit.input",
                tooltip="Edit a message or a tool result of this turn, and run it again"),
    ]

    def __init__(self, stage: SessionStage, branches: Branches) -> None:
        super().__init__(stage)
        self.branches = branches

    def action_edit_input(self) -> None:
        """Asks for the input if the turn at the cursor has several; the cursor starts on the last one."""
        view = self.stage.run.view
        if not view.steps:
            self.stage.note = "there is no turn to edit: nothing was read"
            return
        turn = view.turn_of(self.stage.step)
        inputs = turn_inputs(view.replay.case, turn.run.record)
        if not inputs:
            self.stage.note = "the inputs of this turn were not recorded"
        elif len(inputs) == 1:
            self._edit(turn.id, inputs[0])
        else:
            from inspector.tui.lists import Choose

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

    def _step(self, model_input: TurnInput, turn: str) -> int | None:
        from inspector.replay.rerun import edit_step

        try:
            return edit_step(self.stage.run.view.replay, _edit(model_input, turn))
        except CallerError:
            return None

    def _edit(self, turn: str, model_input: TurnInput) -> None:
        from inspector.replay.rerun import edit_step
        from inspector.tui.input_editor import InputEditor

        replay = self.stage.run.view.replay
        now = next((edit.text for edit in replay.settings.edits if (edit.id, edit.input) == (turn, model_input.number)),
                   model_input.text)
        try:
            since = edit_step(replay, _edit(model_input, turn))
        except CallerError as why:
            self.stage.note = str(why)
            return
        where = f"Turn {turn.removeprefix('t')}, input {model_input.number}"
        title = f"{where}: {model_input.what}, given at step {since + 1}"
        self.stage.app.push_screen(
            InputEditor(title, now), lambda choice: self._run(_edit(model_input, turn), choice, since))

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


def _edit(model_input: TurnInput, turn: str) -> TurnEdit:
    return TurnEdit(int(turn.removeprefix("t")), model_input.number, model_input.text)
