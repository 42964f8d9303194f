"""Seams in words: what was cut where two segments meet, by which rule, and what another rule would change there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inspector.report.lines.spans import Line, Role, Span, quoted, said
from loop_core.seam import APART, Decision, Joined, Seam, SeamRule, Segment, join

CUT_SHOWN = 60
"""Characters of what a seam left out, or of what another rule changes, that are shown."""


class Change(NamedTuple):
    """What another rule does to one end of a segment."""

    segment: int
    """Its place in the answer, from 0."""
    tail: bool
    """Whether at its end; else at its beginning."""
    removed: str
    added: str


def standing(segments: Sequence[Segment], whole: Joined, place: int) -> tuple[int, int]:
    """Which characters of a segment stand in the merged text: from, to."""
    starts = [0, *(seam.at for seam in whole.seams), len(whole.text)]
    size = min(starts[place + 1 :]) - starts[place] - len(apart(whole, place))
    if not place:
        return 0, max(0, size)
    seam = whole.seams[place - 1]
    start = end = len(seam.cut)
    for begin, left_out in seam.gone:  # what is left out between counts as standing, since more stands behind it
        if begin - end >= size:
            break
        size, end = size - (begin - end), begin + len(left_out)
    return start, end + max(0, size)


def stands(segments: Sequence[Segment], whole: Joined, place: int) -> str:
    """The same as text, without what is left out in the middle of it."""
    start, end = standing(segments, whole, place)
    text = segments[place].text[:end]
    return whole.seams[place - 1].kept(text) if place else text[start:]


def apart(whole: Joined, place: int) -> str:
    """What stands between a segment and the next one that is of neither; nothing where a later one began anew."""
    following = whole.seams[place:]
    if not following or following[0].decision is not Decision.APART:
        return ""
    return APART if all(seam.at >= following[0].at for seam in following) else ""


def changes(segments: Sequence[Segment], rule: SeamRule, tried: SeamRule) -> list[Change]:
    """What the rule `tried` makes of an answer, beside `rule`, by segment."""
    return list(_changes(segments, join(segments, rule), join(segments, tried))) if tried is not rule else []


def _changes(segments: Sequence[Segment], old: Joined, new: Joined) -> Iterator[Change]:
    for place, segment in enumerate(segments):
        (was_from, was_to), (now_from, now_to) = standing(segments, old, place), standing(segments, new, place)
        text, was, now = segment.text, apart(old, place), apart(new, place)
        if max(was_from, now_from) >= min(was_to, now_to):  # they have nothing in common
            before, after = text[was_from:was_to] + was, text[now_from:now_to] + now
            if before != after:
                yield Change(place, False, before, after)
            continue
        if was_from != now_from:
            yield Change(place, False, text[was_from:now_from], text[now_from:was_from])
        gone, come = text[now_to:was_to] + was, text[was_to:now_to] + now
        if gone != come:
            yield Change(place, True, gone, come)


def counted(found: Sequence[Change]) -> tuple[int, int]:
    """Characters added and removed."""
    return sum(len(change.added) for change in found), sum(len(change.removed) for change in found)


# -- in lines --------------------------------------------------------------------------------------------------------


def seam_lines(seam: Seam, rule: SeamRule) -> list[Line]:
    """One seam: between which segments, why it was decided so, by which rule, and what was left out."""
    why = said(seam.why or seam.decision.value, Role.SEAM if seam.sure else Role.WARN)
    where = f"══ seam {seam.index} to {seam.index + 1}: "
    lines: list[Line] = [(Span(where, Role.SEAM), why, Span(f" · by {rule.value} ══", Role.SEAM))]
    for left_out in (seam.cut, *(text for _, text in seam.gone)):
        if left_out:
            lines.append((Span("− ", Role.REMOVED), quoted(shortened(left_out), Role.REMOVED), Span(" cut", Role.DIM)))
    return lines


def change_lines(change: Change, rule: SeamRule) -> list[Line]:
    """What another rule changes at one end of a segment, beside the rule in force."""
    lines: list[Line] = []
    for mark, text, role, word in (
        ("−− ", change.removed, Role.REMOVED, "fewer"), ("++ ", change.added, Role.ADDED, "more"),
    ):
        if text:
            size = f" {len(text):,} characters {word} than by {rule.value}"
            lines.append((Span(mark, role), quoted(shortened(text), role), Span(size, Role.DIM)))
    return lines


def tried_lines(rule: SeamRule, tried: SeamRule, found: Sequence[Change]) -> list[Line]:
    """What trying another rule comes to, before the text."""
    added, removed = counted(found)
    same = f"no character differs from {rule.value}, the rule in force"
    told = f"+{added:,} −{removed:,} characters beside {rule.value}, the rule in force" if found else same
    return [
        (Span(f"seam rule {tried.value}, tried: ", Role.STRONG), Span(told, Role.MARK if found else Role.PLAIN)),
        (Span("s ", Role.KEY), Span("tries the next rule; ", Role.DIM), Span(f"--set seam={tried.value}", Role.KEY),
         Span(" makes it a branch, whose requests follow it too", Role.DIM)), (),
    ]


def tried_note(rule: SeamRule, tried: SeamRule, found: Sequence[Change]) -> str:
    """The same in one short line."""
    if tried is rule:
        return f"seam rule {rule.value}: the rule in force"
    size = sum(counted(found))
    return f"seam {tried.value}: {size:,} characters differ from {rule.value} · branch: --set seam={tried.value}"


def shortened(text: str) -> str:
    """A text whose middle is left out where it is long."""
    half = CUT_SHOWN // 2
    return text if len(text) <= CUT_SHOWN else f"{text[:half]}…{text[-half:]}"
