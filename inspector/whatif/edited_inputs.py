"""Edited inputs: parses the operator's words (`2.3=new text`, `2.user=@prompt.txt`), and describes edits in reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from inspector.config.settings import TurnEdit
from inspector.replay import Replay
from inspector.replay.adjustments import TurnInput, input_of, turn_inputs
from inspector.replay.case import stops_at_edit
from inspector.replay.rerun import edit_step
from inspector.report.lines.spans import one_line
from inspector.sessions import intake
from inspector.whatif.tree import Branch
from loop_core.errors import CallerError

SHOWN_CHARS = 60
"""The number of characters of an input that a list of inputs shows."""


class EditedInput(NamedTuple):
    """An input of a run whose text differs from the recorded one."""

    turn: int
    """The number of the turn, from 1."""
    input: TurnInput
    text: str
    """The text that replaces the recorded one."""


def edit_of(replay: Replay, text: str) -> TurnEdit:
    """The edit that a word `TURN.INPUT=TEXT` describes. The text `@FILE` reads a file; `@@` at its beginning stands for
    one @. Raises `CallerError` if the word names no input, or the file cannot be read."""
    place, equals, value = text.partition("=")
    number, _, wanted = place.strip().removeprefix("t").partition(".")
    record = next((turn.record for turn in replay.turns if turn.record.id == f"t{number}"), None)
    if not replay.turns:
        raise CallerError(f"--edit {one_line(place)}: nothing was read, so there is no turn to edit")
    if not equals or record is None:
        raise CallerError(f"--edit {one_line(place)}: expected TURN.INPUT=TEXT, such as 2.user=@prompt.txt, and a turn "
                          f"from 1 to {len(replay.turns):,}")
    try:
        turn_input = input_of(replay.case, record, wanted)
    except CallerError as why:
        inputs = "; ".join(f"{each.number} {each.what} “{one_line(each.text, SHOWN_CHARS)}”"
                           for each in turn_inputs(replay.case, record))
        raise CallerError(f"--edit {one_line(place)}: {why}; its inputs are {inputs}") from None
    return TurnEdit(int(number), turn_input.number, _text(value))


def check_edits(replay: Replay) -> None:
    """Checks that each edited input of a run exists. Raises `CallerError` if there is no such turn or input."""
    records = {turn.record.id: turn.record for turn in replay.turns}
    for edit in replay.settings.edits:
        if edit.id not in records:
            raise CallerError(f"{edit.name}: this run has the turns 1 to {len(replay.turns):,}")
        try:
            input_of(replay.case, records[edit.id], str(edit.input))
        except CallerError as why:
            raise CallerError(f"{edit.name}: {why}; it has {len(turn_inputs(replay.case, records[edit.id])):,}"
                              ) from None


def _text(value: str) -> str:
    if not value.startswith("@"):
        return value
    if value.startswith("@@"):
        return value[1:]
    try:
        return intake.named_file(value[1:]).decode("utf-8")
    except UnicodeDecodeError as why:
        raise CallerError(f"{value[1:]}: byte {why.start}: expected UTF-8") from None


def edit_stretches(replay: Replay, texts: Sequence[str], from_step: int | None) -> list[tuple[int, dict[str, str]]]:
    """The settings of each edit, after the index of the step from which they hold, at which the run receives the input.
    Raises `CallerError` if a text names no input, or an input that this run does not receive."""
    found: dict[int, dict[str, str]] = {}
    for text in texts:
        edit = edit_of(replay, text)
        since = edit_step(replay, edit)
        if from_step is not None and from_step - 1 > since:
            raise CallerError(f"--edit {edit.turn}.{edit.input}: it is given at step {since + 1:,}, before --from-step")
        found.setdefault(since if from_step is None else from_step - 1, {})[edit.name] = edit.text
    return sorted(found.items())


def edited_inputs(branch: Branch) -> list[EditedInput]:
    """The edited inputs of a run, with their recorded texts."""
    original = branch.original.replay
    records = {turn.record.id: turn.record for turn in original.turns}
    return [EditedInput(edit.turn, turn_input, edit.text) for edit in branch.view.replay.settings.edits
            if edit.id in records for turn_input in turn_inputs(original.case, records[edit.id])
            if turn_input.number == edit.input]


def stop_steps(replay: Replay) -> list[int]:
    """The indices of the steps at which the recording has no further answer because an input was edited."""
    return [turn.end - 1 for turn in replay.turns if stops_at_edit(turn.steps)]


def edit_lines(branch: Branch) -> list[str]:
    """The edits, one line each, and the steps at which the recording has no further answer because of them."""
    found = [f"edited: turn {each.turn}, input {each.input.number} ({each.input.what}), {len(each.input.text):,} "
             f"characters became {len(each.text):,}" for each in edited_inputs(branch)]
    stops = stop_steps(branch.view.replay)
    if found and stops:
        where = ", ".join(f"step {step + 1:,}" for step in stops)
        found.append(f"the recording stops answering at {where}: nobody was asked the edited request")
    return found


def edit_values(branch: Branch) -> dict[str, Any]:
    """The edits as values of a JSON document."""
    stops = stop_steps(branch.view.replay)
    return {
        "edited": [{"turn": each.turn, "input": each.input.number, "what": each.input.what,
                    "before": each.input.text, "after": each.text} for each in edited_inputs(branch)],
        "recording_stops_at": stops[0] + 1 if stops else None,
    }
