"""A run under other settings beside the one it started from: where they part, how each ends, how their texts differ.

Further down: two runs side by side as lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from inspector.report.facts import TurnFacts, View
from inspector.report.lines import header
from inspector.report.lines.diff import changed, shared
from inspector.report.lines.spans import (
    Line,
    Listed,
    Measure,
    Role,
    Span,
    cells,
    clip,
    field,
    joined,
    more,
    paragraphs,
    safe,
    width_of,
)
from inspector.report.lines.steps import detail, glyph_of
from inspector.whatif.branch_report import live_sources
from inspector.whatif.tree import Branch, StepPair
from loop_core.turn.state import State, Turn
from loop_core.turn.trace import Fidelity, Step, limit_usage

CONTEXT = 2
"""Lines of unchanged text that are shown around a change."""
SHARED_SHOWN = 120
"""Characters of the shared beginning of a line that are shown."""
SMALL = 2_000
"""Lines up to which two texts are compared line by line in full."""


def against_original(made: Branch) -> Listed:
    """The sheet of a branch."""
    lines: list[Line] = [
        (Span("Run ", Role.TITLE), safe(made.name, Role.TITLE),
         Span(f" beside the original, {_over(made)}", Role.DIM)),
        (), *_changed(made), field("parts at", *parting(made)), *_turns(made),
    ]
    turn = turn_of(made)
    if turn is not None:
        lines += _texts(made, turn)
    return Listed(lines)


def _over(made: Branch) -> str:
    left = made.view.replay.trace.departure
    if left is None:
        return "over the recording"
    word = made.view.steps[left].fidelity
    return f"{'LIVE' if word is Fidelity.LIVE else 'simulated'} from step {left + 1} on"


def turn_of(made: Branch) -> TurnFacts | None:
    """The turn in which the first difference lies."""
    if made.difference is None or not made.view.turns:
        return None
    return made.view.turn_of(min(made.difference, len(made.view.steps) - 1))


def _changed(made: Branch) -> list[Line]:
    """The limits in force before and after; those that a file brings along are in force too."""
    turn = turn_of(made) or made.view.worst
    if turn is None:
        return []
    then = made.original.end_of(next(each for each in made.original.turns if each.id == turn.id))
    lines: list[Line] = []
    for (name, _, _, was), (_, _, _, now) in zip(limit_usage(then), limit_usage(made.view.end_of(turn)), strict=True):
        if was != now:
            lines.append(field("limit", Span(f"{name} "), *changed(_shown(was), _shown(now))))
    old, new = made.original.replay.settings, made.view.replay.settings
    if old.max_tokens != new.max_tokens:
        was_cap = "as recorded" if old.max_tokens is None else f"{old.max_tokens:,}"
        now_cap = "as recorded" if new.max_tokens is None else f"{new.max_tokens:,}"
        lines.append(field("initial", Span("max_tokens "), *changed(was_cap, now_cap)))
        if not new.simulate and new.live is None:
            lines.append(more(Span("over a recording this changes nothing", Role.DIM)))
    lines += [field("asked", safe(line)) for line in live_sources(made)]
    if old.policy != new.policy:
        lines.append(field("policy", *changed(old.policy.name, new.policy.name)))
    return lines


def _shown(value: int | None) -> str:
    return "no bound" if value is None else f"{value:,}"


def parting(made: Branch) -> Line:
    """The first step at which the two runs differ."""
    index = made.difference
    if index is None:
        return (Span("nothing differs: the run is the same to its end", Role.DIM),)
    old, new = _step(made.original, index), _step(made.view, index)
    where: Line = (Span(f"step {index + 1} ", Role.STRONG),)
    turn = turn_of(made)
    if turn is not None:
        where = (*where, Span(f"in turn {made.view.number(turn)}: ", Role.DIM))
    then, now = _state(old), _state(new)
    if then == now:
        then, now = f"{then} ({_why(old)})", f"{now} ({_why(new)})"
    return (*where, *changed(then, now))


def _step(view: View, index: int) -> Step | None:
    return view.steps[index] if index < len(view.steps) else None


def _state(step: Step | None) -> str:
    return "the end" if step is None else step.state.value


def _why(step: Step | None) -> str:
    return step.turn.terminal or (step.signal.value if step.signal else "") if step is not None else ""


def ending(turn: TurnFacts) -> str:
    """How a turn ends, in two words."""
    return f"{turn.final_state.value}, {turn.terminal}" if turn.terminal else turn.final_state.value


def ending_role(turn: TurnFacts) -> Role:
    """How good that is."""
    if turn.terminal == "completed":
        return Role.OK
    return Role.WARN if turn.final_state is State.UNRECORDED else Role.ERROR


def _turns(made: Branch) -> list[Line]:
    """Each turn that differs: its end, its spend, its segments."""
    lines: list[Line] = []
    for number, (old, new) in enumerate(zip(made.original.turns, made.view.turns, strict=True), 1):
        if not differs(old, new):
            continue
        lines += [(), (Span(f"turn {number}", Role.TITLE),)]
        lines.append(field("ends in", Span(ending(old), ending_role(old)), Span(" → ", Role.DIM),
                           Span(ending(new), ending_role(new)), Span(f"  {fidelity(made.view, new)}", Role.DIM)))
        if new.final_state is State.UNRECORDED:
            lines.append(more(safe(new.ended.notice or "the recording ends here", Role.WARN)))
        lines.append(field("spent", *spend(made.original.end_of(old), made.view.end_of(new))))
        was, now = segments(old), segments(new)
        lines.append(field("segments", *(changed(str(was), str(now)) if was != now else (Span(str(now)),))))
    return lines


def differs(old: TurnFacts, new: TurnFacts) -> bool:
    """Whether a turn went another way."""
    return (old.final_state, old.terminal, old.ended.spend, old.run.runs) != (
        new.final_state, new.terminal, new.ended.spend, new.run.runs) or old.merged.text != new.merged.text


def segments(turn: TurnFacts) -> int:
    """How many responses the turn's answers are made of."""
    return sum(len(answer) for answer in turn.ended.answers)


def fidelity(view: View, turn: TurnFacts) -> str:
    """How far the end of a turn can be trusted."""
    return view.steps[turn.run.decided].fidelity.value


def spend(old: Turn, new: Turn) -> Line:
    """All output of both, and what they spent against each limit."""
    whole = ("", "output tokens", old.spend.output_tokens, None), ("", "", new.spend.output_tokens, None)
    pairs = [whole, *zip(limit_usage(old), limit_usage(new), strict=True)]
    return joined([
        (Span(f"{name} ", Role.DIM), *(changed(f"{was:,}", f"{now:,}") if was != now else (Span(f"{now:,}"),)),
         Span("" if most is None else f" of {most:,}", Role.DIM))
        for (_, name, was, _), (_, _, now, most) in pairs
    ])


def _texts(made: Branch, turn: TurnFacts) -> list[Line]:
    before = next(each for each in made.original.turns if each.id == turn.id)
    return [(), (Span("merged text", Role.TITLE), Span(f"  turn {made.view.number(turn)}", Role.DIM)),
            *text_diff(before.merged.text, turn.merged.text)]


def text_diff(old: str, new: str) -> list[Line]:
    """Two texts line by line; what both have is left out but for a little around each change."""
    if old == new:
        return [(Span(f"the same {len(new):,} characters", Role.DIM),)]
    left, right = old.split("\n"), new.split("\n")
    if max(len(left), len(right)) > SMALL:
        return _ends(old, new)
    lines: list[Line] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        first = group[0]
        lines.append((Span(f"  line {first[3] + 1}", Role.RULE),))
        for word, i, j, k, m in group:
            if word == "equal":
                lines += _text("  ", right[k:m], Role.DIM)
            elif word == "replace" and j - i == 1 and _goes_on(left[i], right[k]):
                lines += _extended(left[i], right[k:m])
            else:
                lines += _text("− ", left[i:j], Role.REMOVED)
                lines += _text("+ ", right[k:m], Role.ADDED)
    return lines


def _goes_on(old: str, new: str) -> bool:
    """Whether two lines begin alike, so far that one is the other gone on or cut short."""
    return shared(old, new) * 2 > min(len(old), len(new))


def _extended(old: str, new: Sequence[str]) -> list[Line]:
    """One line that goes on: the shared beginning once, then what each side says."""
    same = shared(old, new[0])
    before = new[0][:same] if same <= SHARED_SHOWN else f"…{new[0][same - SHARED_SHOWN : same]}"
    lines: list[Line] = [(Span("  ", Role.RULE), safe(before, Role.DIM))]
    if same < len(old):
        lines.append((Span("− ", Role.REMOVED), safe(old[same:], Role.REMOVED)))
    if same < len(new[0]):
        lines.append((Span("+ ", Role.ADDED), safe(new[0][same:], Role.ADDED)))
    return [*lines, *_text("+ ", new[1:], Role.ADDED)]


def _ends(old: str, new: str) -> list[Line]:
    same = shared(old, new)
    lines: list[Line] = [(Span(f"  {same:,} characters the same", Role.DIM),)]
    if old[same:]:
        lines += _text("− ", old[same:].split("\n"), Role.REMOVED)
    if new[same:]:
        lines += _text("+ ", new[same:].split("\n"), Role.ADDED)
    return lines


def _text(mark: str, texts: Sequence[str], role: Role) -> list[Line]:
    gutter = Span(mark, Role.RULE if role is Role.DIM else role)
    return [(gutter, *line) for text in texts for line in paragraphs(text, role)]


# -- the runs --------------------------------------------------------------------------------------------------------


def run_line(name: str, view: View, asked: TurnFacts | None, made: Branch | None, here: bool) -> Line:
    """One run: its name, how the turn in question ends, how far that can be trusted, what it spent, where it parts."""
    mark = Span("▶ " if here else "  ", Role.HERE)
    title = safe(name, Role.STRONG if here else Role.PLAIN)
    turn = view.worst if asked is None else next((each for each in view.turns if each.id == asked.id), None)
    if turn is None:
        return (mark, title)
    where = "" if made is None else "the same" if made.difference is None else f"parts at step {made.difference + 1}"
    count = segments(turn)
    number = Span(f"turn {view.number(turn)} ", Role.DIM)
    return (mark, title, Span("  "), number, *joined([
        (Span(ending(turn), ending_role(turn)),), (Span(fidelity(view, turn)),),
        (Span(f"{count} segment{'s' if count != 1 else ''}", Role.DIM),),
        (Span(f"{turn.ended.spend.output_tokens:,} output tokens", Role.DIM),),
        *([(Span(where, Role.DIM),)] if where else []),
    ]))


# -- Two runs side by side as lines ----------------------------------------------------------------------------------
# A row for a step of each, and below it how the merged texts of the turn differ.


def head(left: str, right: str, width: int, measure: Measure = cells) -> Line:
    """The names of the two runs above their columns."""
    return _columns((safe(left, Role.TITLE),), Span("   "), (safe(right, Role.TITLE),), width, measure)


def row_line(made: Branch, row: StepPair, here: bool, width: int, measure: Measure = cells) -> Line:
    """A step of each run; `≠` between them where they are not the same."""
    between = Span(" │ ", Role.RULE) if row.same else Span(" ≠ ", Role.ERROR)
    mark = Span("▶" if here else " ", Role.HERE)
    left, right = _step_beside(made.original, row.left, row.same), _step_beside(made.view, row.right, row.same)
    return (mark, *_columns(left, between, right, width - 1, measure))


def _columns(left: Line, between: Span, right: Line, width: int, measure: Measure) -> Line:
    half = max(8, (width - 3) // 2)
    left = clip(left, half, measure)
    return (*left, Span(" " * max(0, half - width_of(left, measure))), between, *clip(right, half, measure))


def _step_beside(view: View, index: int | None, same: bool) -> Line:
    if index is None:
        return (Span("none", Role.DIM),)
    step = view.steps[index]
    glyph, tone = glyph_of(step)
    fidelity = () if step.fidelity.value == "RECORDED" else (Span(" "), header.fidelity(step))
    return (Span(f"{index + 1:>4} ", Role.DIM), Span(f"{glyph} ", tone),
            Span(f"{step.state.value} ", Role.PLAIN if same else Role.STRONG), *detail(step), *fidelity)


def texts(made: Branch, row: StepPair) -> list[Line]:
    """How the turn of a row ends in both runs, and how their merged texts differ."""
    index = made.original.replay.turn_at(row.left) if row.left is not None else made.view.replay.turn_at(row.right or 0)
    old, new = made.original.turns[index], made.view.turns[index]
    ends: Line = (
        Span(f"turn {index + 1}  ", Role.TITLE), Span(ending(old), ending_role(old)),
        *(() if ending(old) == ending(new) else (Span(" → ", Role.DIM), Span(ending(new), ending_role(new)))),
    )
    return [ends, *text_diff(old.merged.text, new.merged.text)]
