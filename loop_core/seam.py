"""Joining the segments of one answer without corrupting its text.

An overlap is never dropped merely because two ends match: `10` + `000` is `10000`, `book` + `keeper` has both
its k's. What is cut is a quoted anchor that was asked for, a prefill that the server echoed, or an
overlap too long to be chance. Segments and decisions are kept; the text is derived, so another rule can be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from loop_core.frozen import frozen


class Method(StrEnum):
    """How a segment was asked for."""

    FIRST = "first"
    """The request that the answer began with."""
    PREFILL = "prefill"
    """The text so far was sent as the beginning of the answer."""
    HINT = "hint"
    """A message asked to go on."""
    ANCHOR = "anchor"
    """The same, and to quote the last words first."""
    ECHO = "echo"
    """A paused response, sent back as it was."""
    TOKEN = "token"  # noqa: S105 - a method, not a secret
    """A continuation token."""
    POLL = "poll"
    """A background response, fetched again."""
    BOOST = "boost"
    """The same request with a larger cap (nothing visible had come)."""
    REPAIR = "repair"
    """A held call, asked for again."""


class SeamRule(StrEnum):
    """How a seam is decided."""

    CAREFUL = "careful"
    """What was asked back or is too long to be chance is cut, and nothing else."""
    CONCAT = "concat"
    """As sent, nothing cut."""
    OVERLAP = "overlap"
    """The longest overlap is cut, however short: what others do, and what corrupts ordinary text."""


class Decision(StrEnum):
    """What was done at one seam."""

    AS_SENT = "as_sent"
    """Joined byte for byte."""
    ANCHOR = "anchor"
    """The words that were to be quoted were cut."""
    ECHO = "echo"
    """The prefill that the server repeated was cut."""
    WHITESPACE = "whitespace"
    """White space that had to be stripped from the prefill was put back, or came again and was not doubled."""
    OVERLAP = "overlap"
    """A repetition too long to be chance was cut."""
    RESTART = "restart"
    """The answer was begun anew, or fetched again."""
    APART = "apart"
    """The text beside a repaired call goes on from nothing: a blank line stands between."""


@frozen
class Segment:
    """The visible text of one response of an answer."""

    text: str
    method: Method = Method.FIRST
    anchor: str = ""
    """The words that were to be quoted (method anchor)."""
    stripped: str = ""
    """White space taken from the end of the prefill, since the provider refuses it there."""
    echoes: bool | None = None
    """Whether the server repeats a prefill in its answer; None where that is not known."""
    response: int | None = None
    """The response that it came from, by its index in the recording or run."""


@frozen
class Seam:
    """One join: `at` is where segment `index` begins in the text, `cut` what was left out of it."""

    index: int
    at: int
    decision: Decision
    cut: str = ""
    why: str = ""


@frozen
class Joined:
    """The merged text and its seams, one for every segment but the first."""

    text: str
    seams: tuple[Seam, ...]


ANCHOR_CHARS = 40
"""How many of the last characters are asked back as an anchor."""
OVERLAP_CHARS = 24
"""A shorter overlap may be chance and is kept."""
OVERLAP_WORDS = 3
RESTART_CHARS = 64
"""A segment that begins with the answer's first characters, this many, has started anew."""
ECHO_CHARS = 24
"""Where it is not known whether a server echoes, a shorter repetition of the prefill may be text."""


def join(segments: Sequence[Segment], rule: SeamRule = SeamRule.CAREFUL) -> Joined:
    """The text of an answer from its segments, and what was decided at every seam."""
    if not segments:
        return Joined("", ())
    text = segments[0].text
    seams: list[Seam] = []
    for index, segment in enumerate(segments[1:], start=1):
        decision, keep, cut, why = RULES[rule](text, segment)
        text = text[:keep]
        if decision is Decision.APART:
            text += APART
        seams.append(Seam(index, len(text), decision, segment.text[:cut], why))
        text += segment.text[cut:]
    return Joined(text, tuple(seams))


def added(segments: Sequence[Segment], rule: SeamRule = SeamRule.CAREFUL) -> int:
    """How many characters the last segment adds to the answer; what it repeats or replaces is not counted."""
    text, last = join(segments[:-1], rule).text, segments[-1]
    decision, keep, cut, _ = RULES[rule](text, last)
    apart = len(APART) if decision is Decision.APART else 0
    return keep - len(text) + apart + len(last.text) - cut


APART = "\n\n"
"""What stands between an answer and text that does not go on from it."""

_Cut = tuple[Decision, int, int, str]
"""The decision, how much of the text so far stays, how much of the next segment is left out, and why."""


def _as_sent(text: str, segment: Segment) -> _Cut:
    return Decision.AS_SENT, len(text), 0, "joined as sent"


def _longest_overlap(text: str, segment: Segment) -> _Cut:
    overlap = _border(text, segment.text)
    if not overlap:
        return _as_sent(text, segment)
    return Decision.OVERLAP, len(text), overlap, f"any overlap, {overlap} characters cut"


def _careful(text: str, segment: Segment) -> _Cut:
    if segment.method is Method.REPAIR:
        if text and segment.text:
            return Decision.APART, len(text), 0, "text beside a repaired call, set apart"
        return _as_sent(text, segment)
    if segment.method is Method.PREFILL:
        return _prefill(text, segment)
    if segment.method in (Method.ECHO, Method.TOKEN):
        return Decision.AS_SENT, len(text), 0, "the provider goes on by itself"
    if segment.method is Method.POLL:
        return _polled(text, segment.text)
    if segment.anchor and segment.text.startswith(segment.anchor):
        return Decision.ANCHOR, len(text), len(segment.anchor), f"quoted anchor, {len(segment.anchor)} characters cut"
    if segment.anchor:
        indented = segment.text.lstrip()
        if len(segment.anchor.strip()) >= OVERLAP_CHARS and indented.startswith(segment.anchor.strip()):
            return _loose_anchor(text, segment, indented)
    restarted = _restart(text, segment.text)
    if restarted is not None:
        return restarted
    overlap = _overlap(text, segment.text)
    if overlap:
        return Decision.OVERLAP, len(text), overlap, f"overlap, {overlap} characters cut"
    return Decision.AS_SENT, len(text), 0, "no overlap, joined as sent"


def _prefill(text: str, segment: Segment) -> _Cut:
    sent = text[: len(text) - len(segment.stripped)]
    echoed = bool(sent) and segment.text.startswith(sent)
    if echoed and (segment.echoes or (segment.echoes is None and len(sent) >= ECHO_CHARS)):
        # What follows the echo goes on from the stripped prefill, so the white space comes from there if at all.
        rest = segment.text[len(sent) :]
        keep = len(sent) if rest.startswith(segment.stripped) else len(text)
        return Decision.ECHO, keep, len(sent), f"echoed prefill, {len(sent)} characters cut"
    if not segment.stripped:
        return Decision.AS_SENT, len(text), 0, "prefill, joined byte for byte"
    if segment.text.startswith(segment.stripped):
        return Decision.WHITESPACE, len(sent), 0, "the model repeated the white space that was stripped"
    return Decision.WHITESPACE, len(text), 0, "stripped white space restored"


def _polled(text: str, following: str) -> _Cut:
    """A response that is fetched again holds all of its text so far."""
    if following.startswith(text):
        return Decision.AS_SENT if not text else Decision.RESTART, len(text), len(text), "fetched again, with more"
    if text.startswith(following):
        return Decision.RESTART, len(text), len(following), "fetched again, with nothing new"
    return Decision.RESTART, 0, 0, "fetched again; the newer text stands"


def _loose_anchor(text: str, segment: Segment, indented: str) -> _Cut:
    quoted = segment.anchor.strip()
    cut = len(segment.text) - len(indented) + len(quoted)
    trailing = segment.anchor[len(segment.anchor.rstrip()) :]
    if trailing and segment.text.startswith(trailing, cut):
        cut += len(trailing)
    return Decision.ANCHOR, len(text), cut, f"quoted anchor, {cut} characters cut"


def _restart(text: str, following: str) -> _Cut | None:
    if len(text) < RESTART_CHARS or not following.startswith(text[:RESTART_CHARS]):
        return None
    if following.startswith(text):
        return Decision.RESTART, len(text), len(text), f"the answer was begun anew; {len(text)} repeated characters cut"
    if text.startswith(following):
        return Decision.RESTART, len(text), len(following), "the answer was begun anew and cut earlier"
    return Decision.RESTART, 0, 0, "the answer was begun anew and went another way; the newer text stands"


def _overlap(text: str, following: str) -> int:
    """The longest overlap that is too long to be chance; 0 where there is none."""
    head = following[:OVERLAP_CHARS]
    if len(head) < OVERLAP_CHARS:
        return 0
    place = text.find(head, max(0, len(text) - len(following)))
    while place >= 0:
        if following.startswith(text[place:]):
            return len(text) - place if _meaningful(text, text[place:]) else 0
        place = text.find(head, place + 1)
    return 0


def _meaningful(text: str, overlap: str) -> bool:
    if len(overlap.split()) >= OVERLAP_WORDS and len(set(overlap)) >= OVERLAP_WORDS * 2:
        return True
    before = text[: len(text) - len(overlap)]
    full_line = overlap.endswith("\n") and (not before or before.endswith("\n"))
    return full_line and len(set(overlap.strip())) >= OVERLAP_WORDS


def _border(text: str, following: str) -> int:
    """The length of the longest end of `text` that `following` begins with, in time linear in the two."""
    shorter: list[int] = [0]  # for every beginning of `following`, the longest of its ends that it begins with too
    size = 0
    for char in following[1:]:
        while size and following[size] != char:
            size = shorter[size - 1]
        size += following[size] == char
        shorter.append(size)
    size = 0
    for char in text[-len(following) :] if following else "":
        while size and following[size] != char:
            size = shorter[size - 1]
        size += following[size] == char
    return size


RULES: Mapping[SeamRule, Callable[[str, Segment], _Cut]] = {
    SeamRule.CAREFUL: _careful,
    SeamRule.CONCAT: _as_sent,
    SeamRule.OVERLAP: _longest_overlap,
}
"""Seam rule -> what decides a seam by it."""
