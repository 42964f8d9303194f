"""A branch as lines: one turn (at the cursor, else the worst that differs) beside the original turn; edited inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inspector.config.settings import TurnEdit, settings_of
from inspector.replay import Replay
from inspector.replay.adjustments import TurnInput, input_of, turn_inputs
from inspector.replay.case import stops_at_edit
from inspector.replay.rerun import edit_step
from inspector.report.facts import TurnFacts, View
from inspector.report.lines.diff import change_line
from inspector.report.lines.response import BY_A_STAND_IN
from inspector.report.lines.spans import (
    Line,
    LineSheet,
    Span,
    Tone,
    clip,
    count_of,
    field,
    join_groups,
    more,
    one_line,
    safe,
    text_of,
    width_of,
)
from inspector.report.lines.steps import detail, end_words, ending_role, role_of
from inspector.report.run_answers import fidelity_of
from inspector.sessions import intake
from inspector.whatif.tree import ORIGINAL, Branch, first_difference_of, original_of, preview
from inspector.whatif.turn_pair import content_lines, contents_of, text_diff
from loop_core.errors import CallerError
from loop_core.turn.state import State, Turn
from loop_core.turn.trace import Fidelity, Step, limit_usage


def branch_sheet(branch: Branch, step: int | None) -> LineSheet:
    """The sheet of a branch; `step` is the step at the cursor, whose turn is compared if it is changed."""
    other = "the original" if branch.beside == ORIGINAL else f"run {branch.beside}"
    title: Line = (Span("Run ", Tone.TITLE), safe(branch.name, Tone.TITLE),
                   safe(f" beside {other}, {_basis(branch)}", Tone.DIM))
    turn = compared_turn(branch, step)
    if turn is None:
        return LineSheet([title, (), field("differs at", *difference_line(branch)), *_limit_changes(branch)])
    others = [(old, new) for old, new in zip(branch.original.turns, branch.view.turns, strict=True)
              if new is not turn and is_changed(old, new)]
    lines = [title, (), *_turn_lines(branch, original_of(branch, turn), turn),
             field("differs at", *difference_line(branch, turn)),
             *_limit_changes(branch), *_edits(branch), (),
             (Span(f"turn {branch.view.number(turn):,}: what it says and calls", Tone.DIM),),
             *content_lines(contents_of(branch.original, original_of(branch, turn)), contents_of(branch.view, turn),
                            (f"in {other}", "in this run"))]
    for old, new in others:
        lines += [(), *_turn_lines(branch, old, new)]
    return LineSheet(lines)


def _basis(branch: Branch) -> str:
    left = branch.view.replay.trace.departure
    if left is None:
        return "over the recording"
    word = branch.view.steps[left].fidelity
    return f"{'LIVE' if word is Fidelity.LIVE else 'simulated'} from step {left + 1:,} on"


def compared_turn(branch: Branch, step: int | None = None) -> TurnFacts | None:
    """The turn by which two runs are compared: the one at a step if it differs, else the worst that differs, if any."""
    changed = [new for old, new in zip(branch.original.turns, branch.view.turns, strict=True)
               if not old.run.same_steps(new.run) and first_difference_of(old.run, new.run) is not None]
    if step is not None and branch.view.steps:
        here = branch.view.turn_of(min(step, len(branch.view.steps) - 1))
        if any(turn is here for turn in changed):
            return here
    return min(changed, key=lambda turn: original_of(branch, turn).verdict.rank, default=None)


def _limit_changes(branch: Branch) -> list[Line]:
    """The limits in force before and after the change, including those set by a file."""
    turn = compared_turn(branch) or branch.view.worst
    if turn is None:
        return []
    then = branch.original.end_of(original_of(branch, turn))
    lines: list[Line] = []
    for (name, _, _, was), (_, _, _, now) in zip(limit_usage(then), limit_usage(branch.view.end_of(turn)), strict=True):
        if was != now:
            lines.append(field("limit", Span(f"{name} "), *change_line(_bound_text(was), _bound_text(now))))
    old, new = branch.original.replay.settings, branch.view.replay.settings
    if old.max_tokens != new.max_tokens:
        caps = (_bound_text(each.max_tokens, "as recorded") for each in (old, new))
        lines.append(field("initial", Span("max_tokens "), *change_line(*caps)))
        if not new.simulate and new.live is None:
            lines.append(more(Span("over a recording this changes nothing", Tone.DIM)))
    lines += [field("edited", safe(line.removeprefix("edited: "), Tone.WARN)) for line in edit_lines(branch)]
    lines += [field("asked", safe(line)) for line in live_sources(branch)]
    lines += [field("simulated", Span(line, Tone.WARN)) for line in stand_in_remark(branch)]
    if old.policy != new.policy:
        lines.append(field("policy", *change_line(old.policy.name, new.policy.name)))
    return lines


def _bound_text(value: int | None, none: str = "no bound") -> str:
    return none if value is None else f"{value:,}"


def difference_line(branch: Branch, turn: TurnFacts | None = None) -> Line:
    """The first steps at which a turn differs between the two runs; without a turn, a note that none differs."""
    pair = None if turn is None else first_difference_of(original_of(branch, turn).run, turn.run)
    if turn is None or pair is None:
        return (Span("nothing differs: the run is the same to its end", Tone.DIM),)
    old = None if pair.left is None else branch.original.steps[pair.left]
    new = None if pair.right is None else branch.view.steps[pair.right]
    where: Line = (Span(f"step {pair.number:,} ", Tone.STRONG),
                   Span(f"in turn {branch.view.number(turn):,}: ", Tone.DIM))
    then, now = _state(old), _state(new)
    if then == now and _reason(old) != _reason(new):
        then, now = f"{then} ({_reason(old)})", f"{now} ({_reason(new)})"
    if then == now and old is not None and new is not None:
        then, now = (f"{each.state.value} {text_of(detail(each))}".rstrip() for each in (old, new))
    if then == now:
        return (*where, Span(f"{now} differs in what it is given or has spent"))
    return (*where, *change_line(then, now))


def _state(step: Step | None) -> str:
    return "the end" if step is None else step.state.value


def _reason(step: Step | None) -> str:
    return step.turn.terminal or (step.signal.value if step.signal else "") if step is not None else ""


def end_line(turn: TurnFacts) -> Line:
    """The end of a turn, in one or two words."""
    return (Span(end_words(turn.final_turn), ending_role(turn.terminal, turn.final_state)),)


def _turn_lines(branch: Branch, old: TurnFacts, new: TurnFacts) -> list[Line]:
    """One turn in both runs: its verdict, its end, its segments and its spend."""
    lines: list[Line] = [(Span(f"turn {branch.view.number(new):,}", Tone.TITLE),)]
    words = [Span(f"{verdict.glyph} {verdict.count_word}", role_of(verdict)) for verdict in (old.verdict, new.verdict)]
    # Both runs may end in the same state: the recording may end after a cut call or after a whole one.
    lines.append(field("verdict", words[0], *((Span(" → ", Tone.DIM), words[1]) if words[0] != words[1] else ())))
    lines.append(field("ends in", *end_line(old), Span(" → ", Tone.DIM), *end_line(new),
                       Span(f"  {fidelity_of(branch.view, new).value}", Tone.DIM)))
    if new.final_state is State.UNRECORDED:
        lines.append(more(safe(new.notice or "the recording ends here", Tone.WARN)))
    was, now = old.segments, new.segments
    lines.append(field("segments", *(change_line(str(was), str(now)) if was != now else (Span(str(now)),))))
    lines.append(field("spent", *spend_line(branch.original.end_of(old), branch.view.end_of(new))))
    return lines


def is_changed(old: TurnFacts, new: TurnFacts) -> bool:
    """Whether a turn differs between the two runs."""
    return (old.final_state, old.terminal, old.spend, old.run.runs, old.joined_text.text) != (
        new.final_state, new.terminal, new.spend, new.run.runs, new.joined_text.text)


def spend_line(old: Turn, new: Turn) -> Line:
    """The total output of both runs, and what each run spent of each limit."""
    whole = ("", "output tokens", old.spend.output_tokens, None), ("", "", new.spend.output_tokens, None)
    pairs = [whole, *zip(limit_usage(old), limit_usage(new), strict=True)]
    return join_groups([
        (Span(f"{name} ", Tone.DIM), *(change_line(f"{was:,}", f"{now:,}") if was != now else (Span(f"{now:,}"),)),
         Span("" if most is None else f" of {most:,}", Tone.DIM))
        for (_, name, was, _), (_, _, now, most) in pairs
    ])


def _edits(branch: Branch) -> list[Line]:
    """The inputs whose texts were edited."""
    lines: list[Line] = []
    for each in edited_inputs(branch):
        lines += [(), (Span("given", Tone.TITLE), safe(f"  {each.input.what} of turn {each.turn}", Tone.DIM)),
                  *text_diff(each.input.text, each.text)]
    return lines


# -- the runs --------------------------------------------------------------------------------------------------------


LEAST_NAME = 16
"""The least width of a run's name in cells."""


def run_line(
    name: str, view: View, number: int | None, branch: Branch | None, here: bool, room: int | None = None
) -> Line:
    """One run: its name, the end of a turn, its fidelity, its spend, and where it first differs from the original.
    `number` is the turn's index, the same for all listed runs, so that the heading names the turn; None: the worst turn
    of the run. With `room` the name is cut so that the end of the turn and its fidelity fit into that many cells."""
    mark = Span("▶ " if here else "  ", Tone.HERE)
    title: Line = (safe(name, Tone.STRONG if here else Tone.PLAIN),)
    turn = view.worst if number is None else view.turns[number] if number < len(view.turns) else None
    if turn is None:
        return (mark, *title)
    place = (Span(f"turn {view.number(turn):,} ", Tone.DIM),) if number is None else ()
    end = join_groups([(*place, *end_line(turn)), (Span(fidelity_of(view, turn).value),)])
    if room is not None:
        title = clip(title, max(LEAST_NAME, room - width_of((mark, *end)) - 2))
    return (mark, *title, Span("  "), *join_groups([
        end, (Span(count_of(turn.segments, "segment"), Tone.DIM),),
        (Span(f"{turn.spend.output_tokens:,} output tokens", Tone.DIM),),
        *([] if branch is None else [(Span(_difference_text(branch, turn), Tone.DIM),)]),
    ]))


def _difference_text(branch: Branch, turn: TurnFacts) -> str:
    """The step at which a turn first differs from the run that this one was made from."""
    pair = first_difference_of(original_of(branch, turn).run, turn.run)
    if pair is None:
        return "the same" if branch.difference is None else "the same in this turn"
    return f"differs at step {pair.number:,}"


def preview_line(run: Replay, assignments: Mapping[str, str], since: int | None) -> Line:
    """The effect of other settings from a step on, or from the start of the run. Raises `CallerError` if a setting
    cannot be used."""
    if not assignments:
        return (Span("nothing is changed yet", Tone.DIM),)
    found = preview(run, settings_of(assignments, run.settings), run.since if since is None else since)
    if found.difference is None:
        return (Span("would change nothing", Tone.DIM),)
    ends = ", ".join(str(index + 1) for index in found.turns[:6]) + ("…" if len(found.turns) > 6 else "")
    which = f"turn{'' if len(found.turns) == 1 else 's'} {ends}"
    turns = f"{which} would end differently" if found.turns else "every turn would end as it does"
    steps = count_of(found.steps, "step")
    what = f"would change {steps} from step {found.difference + 1:,}"
    return (Span(what, Tone.STRONG), Span(f" · {turns}", Tone.WARN))


# -- Edited inputs: the operator's words (`2.3=new text`, `2.user=@prompt.txt`), and descriptions for reports --------


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
        return intake.named_file(value[1:]).decode("utf-8-sig")
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
        found.append(f"the recording stops answering at {where}: the edited request was never sent")
    return found


def edit_values(branch: Branch) -> dict[str, Any]:
    """The edits as values of a JSON document."""
    stops = stop_steps(branch.view.replay)
    return {
        "edited": [{"turn": each.turn, "input": each.input.number, "what": each.input.what,
                    "before": each.input.text, "after": each.text} for each in edited_inputs(branch)],
        "recording_stops_at": stops[0] + 1 if stops else None,
    }


def live_sources(branch: Branch) -> list[str]:
    """The servers of a run's live answers: address and model, each once."""
    exchanges = [facts.exchange for facts in branch.view.responses if facts.live and not facts.simulated]
    return list(dict.fromkeys(
        f"{each.url}, model {(each.request.model if each.request else None) or 'not named'}" for each in exchanges))


def stand_in_remark(branch: Branch) -> list[str]:
    """The remark on a run that a stand-in answered; empty for any other."""
    return [BY_A_STAND_IN] if any(facts.live and facts.simulated for facts in branch.view.responses) else []
