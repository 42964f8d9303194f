"""Compares two turns side by side as lines: one turn in two runs, or any two turns, also of two recordings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

from inspector.report.facts import TurnFacts, View
from inspector.report.lines import header
from inspector.report.lines.merged import reason
from inspector.report.lines.spans import (
    Line,
    Measure,
    Span,
    Tone,
    cells,
    clip,
    count_of,
    last_name,
    one_line,
    paragraphs,
    safe,
    text_of,
    width_of,
)
from inspector.report.lines.steps import detail, ending_role, glyph_of, reason_of_end, role_of
from inspector.report.run_answers import answer_at, answers_of, fidelity_of
from inspector.whatif.tree import EqualSteps, StepPair, fold_pairs, move_pairs, step_pairs, unfold_pair
from loop_core.judge.gate import Verdict
from loop_core.turn.quotation import shared_length
from loop_core.turn.trace import Fidelity

LABEL = 12
"""The width in columns of a fact's name; half of the width remains for the value of the left turn."""


class TurnSide(NamedTuple):
    """One of two turns."""

    name: str
    """The heading of the turn's column: the run, or the file and the turn."""
    view: View
    turn: TurnFacts


def side_of(view: View, turn: TurnFacts, run: str = "") -> TurnSide:
    """A side, named by its turn, its file and its run; an empty `run` is not named."""
    path = view.replay.case.recording.exchanges[turn.responses[0]].path if turn.responses else ""
    words = f"turn {view.number(turn):,}", last_name(path), run
    return TurnSide(one_line(" · ".join(filter(None, words))), view, turn)


class PairFact(NamedTuple):
    """One fact about both turns."""

    name: str
    left: Line
    right: Line
    same: bool
    """Whether the fact is the same for both turns."""


PairRow = PairFact | StepPair | EqualSteps
"""A row of a comparison of two turns side by side."""


class TurnPair:
    """Two turns with their facts and their aligned steps."""

    def __init__(self, left: TurnSide, right: TurnSide) -> None:
        self.left, self.right = left, right
        # All runs of one recording share the responses of live runs.
        self.one_turn = left.turn.id == right.turn.id and (
            left.view.replay.case.live_runs is right.view.replay.case.live_runs)
        self.contents = contents_of(left.view, left.turn), contents_of(right.view, right.turn)
        self.facts = [self._fact(*row) for row in FACTS]
        self.steps = (step_pairs if self.one_turn else move_pairs)(left.turn.run, right.turn.run)

    def _fact(self, name: str, tell: Callable[[TurnSide], Line]) -> PairFact:
        """One fact. If both sides look equal although their values differ, a remark on the right side says so."""
        left, right = tell(self.left), tell(self.right)
        same = text_of(left) == text_of(right)
        whole, but = WHOLE_VALUES.get(name, (lambda contents: None, ""))
        if same and whole(self.contents[0]) != whole(self.contents[1]):
            return PairFact(name, left, (*right, Span(f", {but}", Tone.WARN)), False)
        return PairFact(name, left, right, same)

    @property
    def difference(self) -> StepPair | None:
        """The first pair of steps that differs; None if none does."""
        return next((pair for pair in self.steps if not pair.same), None)

    def rows(self, open_rows: Collection[int] = ()) -> list[PairRow]:
        """The facts, then the steps. Consecutive equal steps share a row, unless `open_rows` has their first index."""
        found: list[PairRow] = [*self.facts]
        for row in fold_pairs(self.steps):
            found += unfold_pair(row) if isinstance(row, EqualSteps) and row.left in open_rows else [row]
        return found

    def summary(self) -> str:
        """The differences, in one sentence: reasons, calls and texts, then the first step."""
        parts = differences(*self.contents)
        where = self._steps_differ()
        return f"different: {', '.join(parts)}; {where}" if parts else where

    def _steps_differ(self) -> str:
        pair = self.difference
        if pair is None:
            return "no step differs" if all(fact.same for fact in self.facts) else "every step is the same move"
        left, right = (None if index is None else f"{index + 1:,}" for index in pair[:2])
        if left is None or right is None:
            longer, at = ("right", right) if left is None else ("left", left)
            return f"the first difference: only the {longer} one has a step {at} there"
        return f"the first difference is at {f'step {left}' if left == right else f'steps {left} and {right}'}"

    def texts(self) -> list[Line]:
        """The differences of the merged texts and of the calls."""
        return content_lines(*self.contents)

    def lines(self, width: int, measure: Measure = cells) -> list[Line]:
        """The whole comparison, with equal steps folded."""
        return [
            (Span(self.summary(), Tone.STRONG),), self.head(width, measure),
            *(self.row_line(row, width, measure) for row in self.rows()),
            (), *self.texts(),
        ]

    # -- rows ------------------------------------------------------------------------------------------------------

    def head(self, width: int, measure: Measure = cells) -> Line:
        """The names of both turns above their columns."""
        left, right = (safe(side.name, Tone.TITLE) for side in (self.left, self.right))
        return _row_columns((left,), Span("   "), (right,), width, measure)

    def row_line(self, row: PairRow, width: int, measure: Measure) -> Line:
        """One row, with `≠` between the two sides if they differ."""
        if isinstance(row, EqualSteps):
            left: Line = (Span(f"{_range(row.left, row.size)}  {row.size:,} equal steps", Tone.DIM),)
            right: Line = (Span(_range(row.right, row.size), Tone.DIM),)
        elif isinstance(row, PairFact):
            left, right = (Span(f"{row.name:<{LABEL}}", Tone.KEY), *row.left), row.right
        else:
            left = _step(self.left.view, row.left, row.same)
            right = _step(self.right.view, row.right, row.same)
        same = isinstance(row, EqualSteps) or row.same
        between = Span(" │ ", Tone.RULE) if same else Span(" ≠ ", Tone.ERROR)
        return _row_columns(left, between, right, width, measure)


def _range(first: int, size: int) -> str:
    return f"{first + 1:>4}–{first + size}"


def _row_columns(left: Line, between: Span, right: Line, width: int, measure: Measure) -> Line:
    half = max(8, (width - 3) // 2)
    left = clip(left, half, measure)
    return (*left, Span(" " * max(0, half - width_of(left, measure))), between, *clip(right, half, measure))


def _step(view: View, index: int | None, same: bool) -> Line:
    if index is None:
        return (Span("none", Tone.DIM),)
    step = view.effective_step(index)
    glyph, tone = glyph_of(step)
    sure = () if step.fidelity is Fidelity.RECORDED else (Span(" "), header.fidelity(step))
    # A further run of the turn: this loop had ended the turn, and the recorded agent continued.
    again = (Span("the agent went on ", Tone.WARN),) if step.run and step.run != view.steps[index - 1].run else ()
    return (Span(f"{index + 1:>4} ", Tone.DIM), Span(f"{glyph} ", tone),
            Span(f"{step.state.value} ", Tone.PLAIN if same else Tone.STRONG), *again, *detail(step),
            *sure)


# -- facts -----------------------------------------------------------------------------------------------------------


def _verdict(side: TurnSide) -> Line:
    verdict = side.turn.verdict
    return (Span(f"{verdict.glyph} {verdict.word}", role_of(verdict)),)


def _end(side: TurnSide) -> Line:
    trust = fidelity_of(side.view, side.turn)
    turn = side.turn  # the reason comes first: the state follows from it, and may be cut off
    reason = reason_of_end(turn.final_state, turn.terminal)
    end_text = f"{reason} ({turn.final_state.value})" if reason else turn.final_state.value
    return (Span(end_text, ending_role(turn.terminal, turn.final_state)),
            *(() if trust is Fidelity.RECORDED else (Span(f"  {trust.value}", Tone.DIM),)))


def _stop(side: TurnSide) -> Line:
    facts = answer_at(side.view, side.view.deciding_step(side.turn))
    if facts is None:
        return (Span("no answer", Tone.DIM),)
    return reason(facts.exchange.response.raw_stop_reason, facts.judgement.stop)


def _cap(side: TurnSide) -> Line:
    cap = side.turn.final_turn.request.max_tokens
    return (Span("not set" if cap is None else f"{cap:,}"),)


def _calls(side: TurnSide) -> Line:
    contents = contents_of(side.view, side.turn)
    calls = [f"{one_line(name)} {verdict.admission.value}"
             for (name, _), verdict in zip(contents.invocations, contents.calls, strict=True)]
    return (safe(", ".join(calls) or "none"),)


def _count(number: int) -> Line:
    return (Span(f"{number:,}"),)


FACTS = (
    ("ends as", _end),
    ("verdict", _verdict),
    ("stop", _stop),
    ("segments", lambda side: _count(side.turn.segments)),
    ("tokens out", lambda side: _count(side.turn.spend.output_tokens)),
    ("max_tokens", _cap),
    ("requests", lambda side: _count(side.turn.spend.requests)),
    ("calls", _calls),
    ("text", lambda side: (Span(f"{len(side.turn.joined_text.text):,} characters"),)),
)
"""The name of each fact about a turn, and the function that gives it as a line."""


WHOLE_VALUES: Mapping[str, tuple[Callable[[Contents], object], str]] = {
    "calls": (lambda contents: contents.invocations, "other arguments"),
    "text": (lambda contents: contents.text, "other words"),
}
"""Name of a shortened fact -> the function that gives its whole value, and the remark if only this differs."""


# -- the JSON document -----------------------------------------------------------------------------------------------

SCHEMA = "loop-inspector/compare/1"


def pair_values(pair: TurnPair, paths: Sequence[str]) -> dict[str, Any]:
    """Two turns side by side as one JSON document."""
    sides = [
        {"path": path, "turn": side.view.number(side.turn), "id": side.turn.id, "verdict": side.turn.verdict.word,
         "sentence": side.turn.verdict.sentence, "final_state": side.turn.final_state.value,
         "terminal_reason": side.turn.terminal, "segments": side.turn.segments,
         "output_tokens": side.turn.spend.output_tokens, "requests": side.turn.spend.requests,
         "max_tokens": side.turn.final_turn.request.max_tokens, "merged_text": side.turn.joined_text.text,
         "calls": [{"name": each.call.name, "arguments": each.call.arguments, "verdict": each.admission.value}
                   for each in contents.calls]}
        for path, side, contents in zip(paths, (pair.left, pair.right), pair.contents, strict=True)
    ]
    return {
        "schema": SCHEMA,
        "summary": pair.summary(),
        "left": sides[0],
        "right": sides[1],
        "differs": [fact.name for fact in pair.facts if not fact.same],
        "steps": [{"left": _number(step.left), "right": _number(step.right), "same": step.same} for step in pair.steps],
    }


def _number(index: int | None) -> int | None:
    return None if index is None else index + 1


# -- The contents of two turns compared ------------------------------------------------------------------------------


CONTEXT_LINES = 2
"""The number of lines of unchanged text that are shown around a change."""
SHARED_CHARS = 120
"""The number of characters of a line's shared beginning that are shown."""
FULL_DIFF_LINES = 2_000
"""The number of lines up to which two texts are compared line by line in full."""
NAME_CHARS = 40
"""The largest number of characters of a tool's name that a sentence quotes."""


class Contents(NamedTuple):
    """The contents of a turn up to the answer that decided it."""

    reasons: tuple[tuple[str | None, str], ...]
    """For each answer the provider's stop word and the effective one."""
    calls: tuple[Verdict, ...]
    text: str

    @property
    def invocations(self) -> list[tuple[str, str]]:
        """The name and the arguments of each call."""
        return [(verdict.call.name or "unnamed", verdict.call.arguments or "") for verdict in self.calls]


def contents_of(view: View, turn: TurnFacts) -> Contents:
    """The contents of one turn of a run."""
    found = [facts for _, facts in answers_of(view, turn.run.first, turn.run.deciding_step + 1)]
    reasons = ((facts.exchange.response.raw_stop_reason, facts.judgement.stop.normalized.value) for facts in found)
    return Contents(tuple(reasons), tuple(verdict for facts in found for verdict in facts.verdicts),
                    turn.joined_text.text)


def differences(old: Contents, new: Contents) -> list[str]:
    """The differences in words: the answers' reasons or number, then calls, then texts."""
    found = ["the answers' stop reasons"] if old.reasons != new.reasons else []
    if len(old.reasons) != len(new.reasons):
        found = [f"the number of answers ({len(old.reasons):,} and {len(new.reasons):,})"]
    for number, (one, other) in enumerate(zip_longest(old.invocations, new.invocations), 1):
        if one != other:
            found.append(_call_words(number, one, other))
            break
    if old.text != new.text:
        found.append(f"the text from character {shared_length(old.text, new.text):,} on")
    return found


def _call_words(number: int, one: tuple[str, str] | None, other: tuple[str, str] | None) -> str:
    if one is None or other is None:
        name, side = (one or other or ("", ""))[0], "right" if one is None else "left"
        return f"call {number} ({one_line(name, NAME_CHARS)}, only on the {side})"
    if one[0] != other[0]:
        return f"call {number} ({one_line(one[0], NAME_CHARS)} and {one_line(other[0], NAME_CHARS)})"
    at = shared_length(one[1], other[1])
    return f"the arguments of call {number} ({one_line(one[0], NAME_CHARS)}) from character {at:,} on"


def content_lines(old: Contents, new: Contents, sides: tuple[str, str] = ("on the left", "on the right")) -> list[Line]:
    """The texts and calls of two turns, in full if they differ; calls first if only they differ. `sides` are names."""
    text: list[Line] = [(Span("merged text", Tone.TITLE),), *text_diff(old.text, new.text)]
    if not (old.calls or new.calls):
        return [*text, (Span("no call in either", Tone.DIM),)]
    calls: list[Line] = [(Span("calls", Tone.TITLE),), *_call_lines(old, new, sides)]
    return [*calls, (), *text] if old.text == new.text and old.invocations != new.invocations else [*text, (), *calls]


def _call_lines(old: Contents, new: Contents, sides: tuple[str, str]) -> list[Line]:
    lines: list[Line] = []
    for number, (one, other) in enumerate(zip_longest(old.invocations, new.invocations), 1):
        calls = [each for each in (one, other) if each is not None]
        names = list(dict.fromkeys(name for name, _ in calls))
        title: Line = (Span(f"call {number}  ", Tone.KEY), safe(" ≠ ".join(names), Tone.STRONG))
        if one is None or other is None:
            lines.append((*title, safe(f"  only {sides[one is None]}", Tone.WARN)))
            mark, role = ("+ ", Tone.ADDED) if one is None else ("− ", Tone.REMOVED)
            lines += _text(mark, calls[0][1].split("\n"), role)
        elif one[1] == other[1]:
            lines.append((*title, Span(f"  the same arguments, {count_of(len(one[1]), 'character')}", Tone.DIM)))
        else:
            lines += [(*title, Span("  other arguments", Tone.WARN)), *text_diff(one[1], other[1])]
    return lines


def text_diff(old: str, new: str) -> list[Line]:
    """Two texts compared line by line; common lines are left out except for a few around each change."""
    if old == new:
        return [(Span(f"the same {count_of(len(new), 'character')}" if new else "no text in either", Tone.DIM),)]
    left, right = old.split("\n"), new.split("\n")
    if max(len(left), len(right)) > FULL_DIFF_LINES:
        return _ends(old, new)
    lines: list[Line] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        first = group[0]
        lines.append((Span(f"  line {first[3] + 1}", Tone.DIM),))
        for word, i, j, k, m in group:
            if word == "equal":
                lines += _text("  ", right[k:m], Tone.DIM)
            # With so long a common beginning, one line is an extension or a cut of the other.
            elif (word == "replace" and j - i == 1
                  and shared_length(left[i], right[k]) * 2 > min(len(left[i]), len(right[k]))):
                lines += _extension(left[i], right[k:m])
            else:
                lines += _text("− ", left[i:j], Tone.REMOVED)
                lines += _text("+ ", right[k:m], Tone.ADDED)
    return lines


def _extension(old: str, new: Sequence[str]) -> list[Line]:
    """The two versions of a line: the common beginning once, then the rest of each side."""
    same = shared_length(old, new[0])
    before = new[0][:same] if same <= SHARED_CHARS else f"…{new[0][same - SHARED_CHARS : same]}"
    lines: list[Line] = [(Span("  ", Tone.RULE), safe(before, Tone.DIM))]
    if same < len(old):
        lines.append((Span("− ", Tone.REMOVED), safe(old[same:], Tone.REMOVED)))
    if same < len(new[0]):
        lines.append((Span("+ ", Tone.ADDED), safe(new[0][same:], Tone.ADDED)))
    return [*lines, *_text("+ ", new[1:], Tone.ADDED)]


def _ends(old: str, new: str) -> list[Line]:
    same = shared_length(old, new)
    lines: list[Line] = [(Span(f"  {same:,} characters the same", Tone.DIM),)]
    for mark, rest, role in (("− ", old[same:], Tone.REMOVED), ("+ ", new[same:], Tone.ADDED)):
        lines += _text(mark, rest.split("\n"), role) if rest else []
    return lines


def _text(mark: str, texts: Sequence[str], role: Tone) -> list[Line]:
    gutter = Span(mark, Tone.RULE if role is Tone.DIM else role)
    return [(gutter, *line) for text in texts for line in paragraphs(text, role)]
