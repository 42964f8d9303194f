"""The segments of a turn side by side around each seam: the end of one, the beginning of the next, what they share.

What a seam left out stands opposite the same words in the text before it, so that one sees whether it was a repetition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from inspector.report.facts import ResponseFacts, View
from inspector.report.lines.merged import answers, change_lines, changes, reason, seam_lines, standing, tried_lines
from inspector.report.lines.spans import (
    EMPTY,
    Line,
    Listed,
    Measure,
    Role,
    Span,
    cells,
    joined,
    paragraphs,
    width_of,
    wrapped,
)
from inspector.report.lines.steps import Block
from loop_core.turn.seam import join
from loop_core.turn.segments import JoinedText, SeamRule, Segment

COLUMNS = 66
"""Below this width the two sides stand one below the other: narrower columns cannot be read."""
SHOWN = 240
"""Characters that are shown of each side."""
BETWEEN: Line = (Span(" │ ", Role.RULE),)


@dataclass(frozen=True, slots=True)
class Pair:
    """What stands at one height on the two sides."""

    left: Line
    right: Line


class Sides(Listed):
    """A sheet some of whose lines have two sides."""

    def __init__(self, entries: Sequence[Line | Pair], focus: int, text: str) -> None:
        super().__init__([_flat(entry) for entry in entries], focus, lambda: text)
        self.entries = entries

    def rows(self, index: int, width: int, measure: Measure = cells, needle: str = "") -> Sequence[Line]:
        """The line wrapped to a width, its sides beside each other where there is room."""
        entry = self.entries[index]
        if not isinstance(entry, Pair):
            return wrapped(entry, width, measure, needle=needle)
        if width < COLUMNS:
            sides = (side for side in (entry.left, entry.right) if side)
            return [row for side in sides for row in wrapped(side, width, measure, needle=needle)]
        half = (width - width_of(BETWEEN)) // 2
        left, right = (wrapped(side, half, measure, needle=needle) for side in (entry.left, entry.right))
        return [
            (*one, Span(" " * (half - width_of(one, measure))), *BETWEEN, *other)
            for one, other in zip_longest(left, right, fillvalue=EMPTY)
        ]

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """How many rows the line takes at a width."""
        return len(self.rows(index, width, measure))


def _flat(entry: Line | Pair) -> Line:
    return joined([side for side in (entry.left, entry.right) if side], " │ ") if isinstance(entry, Pair) else entry


def sides(view: View, block: Block, step: int, tried: SeamRule | None = None) -> Sides:
    """The sheet of one run; it opens at the seam before the segment that the step has reached."""
    turn = view.steps[block.end - 1].turn
    in_force = turn.policy.seam
    rule = tried or in_force
    entries: list[Line | Pair] = []
    focus = 0
    texts: list[str] = []
    if rule is not in_force:
        every = [change for segments in turn.answers for change in changes(segments, in_force, rule)]
        entries += tried_lines(in_force, rule, every)
    for answer in answers(view, block):
        segments = [segment for segment, _, _ in answer]
        whole = join(segments, rule)
        texts.append(whole.text)
        differing = changes(segments, in_force, rule)
        for place in range(1, len(answer)):
            if answer[place][1] <= step:
                focus = len(entries)
            entries += seam_lines(whole.seams[place - 1], rule)[:1]
            for change in differing:
                if (change.segment, change.tail) in ((place - 1, True), (place, False)):
                    entries += change_lines(change, in_force)
            entries.append(Pair(*(_heading(at, answer[at][2]) for at in (place - 1, place))))
            entries += _around(segments, whole, place)
            entries.append(EMPTY)
    if not any(isinstance(entry, Pair) for entry in entries):
        entries.append((Span("there is no seam in this turn: each answer is one segment", Role.DIM),))
    return Sides(entries, focus, "\n\n".join(text for text in texts if text))


def _heading(place: int, facts: ResponseFacts) -> Line:
    word = "LIVE " if facts.live else "SIMULATED " if facts.simulated else ""
    mark = (Span(word, Role.WARN),) if word else ()
    raw = facts.exchange.response.raw_stop_reason
    return (Span(f"segment {place + 1} ", Role.STRONG), *mark, *reason(raw, facts.judged.stop.normalized.value))


def _around(segments: Sequence[Segment], whole: JoinedText, place: int) -> Iterator[Pair]:
    """Before the seam, what the two segments share or what was left out, and after it."""
    before, after = segments[place - 1].text, segments[place].text
    cut, kept = len(whole.seams[place - 1].cut), standing(segments, whole, place - 1)[1]
    shared = cut if before[:kept].endswith(after[:cut]) else 0
    yield from (Pair(_side(place, line), EMPTY) for line in _ending(before[: kept - shared]))
    left = [*_marked("", before[kept - shared : kept], Role.SEAM), *_marked("− ", before[kept:], Role.REMOVED)]
    right = _marked("− ", after[:cut], Role.REMOVED)
    for one, other in zip_longest(left, right, fillvalue=EMPTY):
        yield Pair(_side(place, one), _side(place + 1, other))
    yield from (Pair(EMPTY, _side(place + 1, line)) for line in _beginning(whole.seams[place - 1].remainder(after)))


def _marked(mark: str, text: str, role: Role) -> list[Line]:
    """What stands opposite something, or was left out."""
    return [(Span(mark, role), *line) for line in paragraphs(text[-SHOWN:], role)] if text else []


def _ending(text: str) -> list[Line]:
    lines = paragraphs(text[-SHOWN:]) if text else []
    return [(Span("…", Role.DIM), *lines[0]), *lines[1:]] if len(text) > SHOWN else lines


def _beginning(text: str) -> list[Line]:
    lines = paragraphs(text[:SHOWN]) if text else []
    return [*lines[:-1], (*lines[-1], Span("…", Role.DIM))] if len(text) > SHOWN else lines


def _side(number: int, line: Line) -> Line:
    """A line of a segment, its number before it; nothing beside a line of the other one."""
    return (Span(f"{number} ", Role.RULE), *line) if line else EMPTY
