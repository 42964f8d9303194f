"""A run under other limits beside the one it started from: where they part, how each ends, and how their texts differ."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from inspector.report.branches import MAX_TOKENS, Branch
from inspector.report.facts import TurnFacts, View
from inspector.report.lines.diff import changed, shared
from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import Line, Role, Span, field, joined, more, paragraphs, said
from loop_core.events import remaining
from loop_core.trace import Step
from loop_core.turn import State

CONTEXT = 2
"""Lines of unchanged text that are shown around a change."""
SMALL = 2_000
"""Lines up to which two texts are compared line by line in full."""


def against_original(start: Branch, other: Branch) -> Listed:
    """The sheet of a branch."""
    lines: list[Line] = [
        (Span(f"Run {other.name} ", Role.TITLE), Span("beside the original, over the recording", Role.DIM)), (),
        *_changed(start, other), field("parts at", *parting(start, other)), *_turns(start, other),
    ]
    turn = other.turn
    if turn is not None:
        lines += [*_texts(start.view, other.view, turn)]
    return Listed(lines)


def _changed(start: Branch, other: Branch) -> list[Line]:
    old, new = start.view.replay.settings, other.view.replay.settings
    lines: list[Line] = []
    for name in other.changed:
        if name == MAX_TOKENS:
            lines.append(field("initial", Span("max_tokens "), *changed(_shown(old.max_tokens), _shown(new.max_tokens))))
            lines.append(more(Span("over a recording this changes only the token cap derived from it", Role.DIM)))
        else:
            lines.append(field("limit", Span(f"{name} "),
                               *changed(_shown(getattr(old.limits, name)), _shown(getattr(new.limits, name)))))
    return lines


def _shown(value: int | None) -> str:
    return "default" if value is None else f"{value:,}"


def parting(start: Branch, other: Branch) -> Line:
    """The first step at which the two runs differ."""
    index = other.difference
    if index is None:
        return (Span("nothing differs: the run is the same to its end", Role.DIM),)
    old, new = _step(start.view, index), _step(other.view, index)
    where: Line = (Span(f"step {index + 1} ", Role.STRONG),)
    turn = other.turn
    if turn is not None:
        where = (*where, Span(f"in turn {other.view.number(turn)}: ", Role.DIM))
    return (*where, *changed(_state(old), _state(new)))


def _step(view: View, index: int) -> Step | None:
    return view.steps[index] if index < len(view.steps) else None


def _state(step: Step | None) -> str:
    return "the end" if step is None else step.state.value


def ending(turn: TurnFacts) -> str:
    """How a turn ends, in two words."""
    return f"{turn.final_state.value}, {turn.terminal}" if turn.terminal else turn.final_state.value


def ending_role(turn: TurnFacts) -> Role:
    """How good that is."""
    if turn.terminal == "completed":
        return Role.OK
    return Role.WARN if turn.final_state is State.UNRECORDED else Role.ERROR


def _turns(start: Branch, other: Branch) -> list[Line]:
    """Each turn that differs: its end, its spend, its segments."""
    lines: list[Line] = []
    for old, new in zip(start.view.turns, other.view.turns, strict=True):
        if not differs(old, new):
            continue
        lines += [(), (Span(f"turn {other.view.number(new)}", Role.TITLE),)]
        lines.append(field("ends in", Span(ending(old), ending_role(old)), Span(" → ", Role.DIM),
                           Span(ending(new), ending_role(new)), Span(f"  {fidelity(other.view, new)}", Role.DIM)))
        if new.final_state is State.UNRECORDED:
            lines.append(more(said(new.ended.notice or "the recording ends here", Role.WARN)))
        lines.append(field("spent", *spend(old, new)))
        lines.append(field("segments", *changed(str(segments(old)), str(segments(new)))))
    return lines


def differs(old: TurnFacts, new: TurnFacts) -> bool:
    """Whether a turn went another way."""
    return (old.final_state, old.terminal, old.ended.spent, old.run.runs) != (
        new.final_state, new.terminal, new.ended.spent, new.run.runs) or old.merged.text != new.merged.text


def segments(turn: TurnFacts) -> int:
    """How many responses the turn's answers are made of."""
    return sum(len(answer) for answer in turn.ended.answers)


def fidelity(view: View, turn: TurnFacts) -> str:
    """How far the end of a turn can be trusted."""
    return view.steps[turn.run.decided].fidelity.value


def spend(old: TurnFacts, new: TurnFacts) -> Line:
    """What both spent against each limit."""
    pairs = zip(remaining(old.ended), remaining(new.ended), strict=True)
    return joined([
        (Span(f"{name} ", Role.DIM), *(changed(f"{was:,}", f"{now:,}") if was != now else (Span(f"{now:,}"),)),
         Span("" if most is None else f" of {most:,}", Role.DIM))
        for (_, name, was, _), (_, _, now, most) in pairs
    ])


def _texts(old: View, new: View, turn: TurnFacts) -> list[Line]:
    before = next((each for each in old.turns if each.id == turn.id), None)
    if before is None:
        return []
    return [(), (Span("merged text", Role.TITLE), Span(f"  turn {new.number(turn)}", Role.DIM)),
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
            elif word == "replace" and j - i == 1 and m - k >= 1 and shared(left[i], right[k]) * 2 > len(left[i]):
                lines += _extended(left[i], right[k:m])
            else:
                lines += _text("− ", left[i:j], Role.REMOVED)
                lines += _text("+ ", right[k:m], Role.ADDED)
    return lines


def _extended(old: str, new: Sequence[str]) -> list[Line]:
    """One line that goes on: the shared beginning once, then what each side says."""
    same = shared(old, new[0])
    lines: list[Line] = [(Span("  ", Role.RULE), said(new[0][:same], Role.DIM))]
    if same < len(old):
        lines.append((Span("− ", Role.REMOVED), said(old[same:], Role.REMOVED)))
    if same < len(new[0]):
        lines.append((Span("+ ", Role.ADDED), said(new[0][same:], Role.ADDED)))
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
    return [(Span(mark, Role.RULE if role is Role.DIM else role), *line) for text in texts for line in paragraphs(text, role)]


# -- the runs --------------------------------------------------------------------------------------------------------


def runs(branches: Sequence[Branch], current: int) -> list[Line]:
    """One line for each run: its name, how the turn in question ends, what it spent, where it parts."""
    asked = next((branch.turn for branch in branches if branch.turn is not None), None)
    lines: list[Line] = []
    for index, each in enumerate(branches):
        turn = _same_turn(each.view, asked)
        mark = Span("▶ " if index == current else "  ", Role.HERE)
        name = said(each.name, Role.STRONG if index == current else Role.PLAIN)
        if turn is None:
            lines.append((mark, name))
            continue
        where = "–" if each.difference is None else f"parts at step {each.difference + 1}"
        lines.append((mark, name, Span("  "), *joined([
            (Span(ending(turn), ending_role(turn)),), (Span(fidelity(each.view, turn)),),
            (Span(f"{segments(turn)} segments", Role.DIM),), (Span(f"{turn.ended.spent.tokens:,} tokens", Role.DIM),),
            (Span(where, Role.DIM),),
        ])))
    return lines


def _same_turn(view: View, asked: TurnFacts | None) -> TurnFacts | None:
    if asked is None:
        return view.worst
    return next((turn for turn in view.turns if turn.id == asked.id), None)
