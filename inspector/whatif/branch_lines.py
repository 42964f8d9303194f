"""Lines that compare one turn of a branch (at the cursor, else the worst that differs) with the original turn."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.config.settings import settings_of
from inspector.replay import Replay
from inspector.report.facts import TurnFacts, View
from inspector.report.lines.diff import change_line
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
    safe,
    text_of,
    width_of,
)
from inspector.report.lines.steps import detail, end_words, ending_role, role_of
from inspector.report.run_answers import fidelity_of
from inspector.whatif.branch_report import live_sources, stand_in_remark
from inspector.whatif.edited_inputs import edit_lines, edited_inputs
from inspector.whatif.tree import ORIGINAL, Branch, first_difference_of, original_of, preview
from inspector.whatif.turn_pair import content_lines, contents_of, text_diff
from loop_core.turn.state import State, Turn
from loop_core.turn.trace import Fidelity, Step, limit_usage


def branch_sheet(branch: Branch, step: int | None) -> LineSheet:
    """The sheet of a branch; `step` is the step at the cursor, whose turn is compared if it is changed."""
    other = "the original" if branch.beside == ORIGINAL else f"run {branch.beside}"
    title: Line = (Span("Run ", Tone.TITLE), safe(branch.name, Tone.TITLE),
                   safe(f" beside {other}, {_basis(branch)}", Tone.DIM))
    turn = compared_turn(branch, step)
    if turn is None:
        return LineSheet([title, (), field("differs at", *parting_line(branch)), *_limit_changes(branch)])
    others = [(old, new) for old, new in zip(branch.original.turns, branch.view.turns, strict=True)
              if new is not turn and is_changed(old, new)]
    lines = [title, (), *_turn_lines(branch, original_of(branch, turn), turn),
             field("differs at", *parting_line(branch, turn)),
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


def parting_line(branch: Branch, turn: TurnFacts | None = None) -> Line:
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
        *([] if branch is None else [(Span(_parting_text(branch, turn), Tone.DIM),)]),
    ]))


def _parting_text(branch: Branch, turn: TurnFacts) -> str:
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
