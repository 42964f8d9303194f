"""The contents of two turns compared, first in words: answers' stop reasons, then calls, then texts."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

from inspector.report.facts import TurnFacts, View
from inspector.report.lines.spans import Line, Span, Tone, count_of, one_line, paragraphs, safe
from inspector.report.run_answers import answers_of
from loop_core.judge.gate import Verdict
from loop_core.turn.quotation import shared_length

CONTEXT = 2
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
        return [(verdict.call.name or "a call without a name", verdict.call.arguments or "") for verdict in self.calls]


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
    """Two turns' texts and calls, those that differ in full; calls first if only they differ. `sides` names both."""
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
    for group in matcher.get_grouped_opcodes(CONTEXT):
        first = group[0]
        lines.append((Span(f"  line {first[3] + 1}", Tone.DIM),))
        for word, i, j, k, m in group:
            if word == "equal":
                lines += _text("  ", right[k:m], Tone.DIM)
            # One line extends the other, or is cut from it, if they have so long a common beginning.
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
