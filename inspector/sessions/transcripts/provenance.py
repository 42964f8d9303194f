"""Where the word for an answer's end comes from: the provider, the recorder's own table, or an inference of ours.

Every stop reason of a transcript begins its evidence with one of these. Nothing is invented: what no row shows stays
`unknown`, with the detail `not_recorded`.
"""

from __future__ import annotations

from collections.abc import Mapping

from loop_core.values import At, Evidence, Finding, Severity, Stop, StopReason
from loop_core.wire.base import Mapped

PROVIDER = "transcript.provider"
"""The provider's own word, copied into the row."""
RECORDER = "transcript.recorder"
"""The recorder's word; what the provider said is not in the file."""
ABSENT = "transcript.absent"
"""The row has a place for the word, and none in it."""
NO_ROW = "transcript.no_row"
"""The row has the word, and the file lacks the row of the call that the word speaks of."""
INFERRED = "transcript.inferred."
"""Begins the rules that read the end from other rows."""
NOT_RECORDED = "not_recorded"
_WORD = 40
"""A recorder's word is short; what is longer is a message."""


def said_by_provider(word: str, at: At, table: Mapping[str, Mapped], name: str) -> StopReason:
    """The provider's word, as the table of its wire format maps it."""
    seen = Evidence(PROVIDER, at, word)
    row = table.get(word)
    if row is None:
        return StopReason(Stop.UNKNOWN, word, None, (seen, Evidence("unknown_word", at, word)))
    return StopReason(row.stop, word, row.detail, (seen, Evidence(f"{name}.stop_reasons", at, word)))


def said_by_recorder(stop: Stop, detail: str | None, at: At, word: str, rule: str) -> StopReason:
    """The recorder's word in our vocabulary; the provider's is absent."""
    return StopReason(stop, None, detail, (Evidence(RECORDER, at, word), Evidence(rule, at, word)))


def inferred(stop: Stop, detail: str | None, at: At, rule: str, shown_at: At | None, note: str) -> StopReason:
    """What other rows show of an end that has no word of its own."""
    return StopReason(stop, None, detail, (Evidence(ABSENT, at), Evidence(f"{INFERRED}{rule}", shown_at, note)))


def not_recorded(at: At) -> StopReason:
    """An end that no row shows."""
    return StopReason(Stop.UNKNOWN, None, NOT_RECORDED, (Evidence(ABSENT, at),))


def unseen_call(told: StopReason) -> StopReason:
    """An answer that asked for a call whose row is not in the file: what it asked for was not recorded."""
    seen = Evidence(NO_ROW, told.evidence[0].at, "the row of its call is not in the file")
    return StopReason(Stop.UNKNOWN, told.raw, NOT_RECORDED, (*told.evidence, seen))


def unseen(stop: StopReason) -> bool:
    """Whether the file holds the answer, or a part of it, and nothing of how it ended."""
    if stop.normalized is not Stop.UNKNOWN or not stop.evidence:
        return False
    return stop.evidence[0].rule == ABSENT or stop.evidence[-1].rule == NO_ROW


def shown(stop: StopReason) -> Evidence | None:
    """What a reason was inferred from; None where a word gives it, or nothing does."""
    return next((seen for seen in stop.evidence if seen.rule.startswith(INFERRED)), None)


def in_words(stop: StopReason) -> str:
    """A reason without a word of the provider's, as a sentence says it."""
    first = stop.evidence[0] if stop.evidence else None
    if first is not None and first.rule == RECORDER:
        return f'"{first.note}" as the recorder says' if len(first.note) <= _WORD else "an error row of the recorder"
    if first is not None and first.rule == ABSENT:
        found = f", {stop.normalized.value} inferred" if shown(stop) is not None else ""
        return f"no stop reason recorded{found}"
    return "no stop reason"


def finding(stop: StopReason) -> Finding | None:
    """What is to be said of a reason that no word in the file gives; None where one does."""
    first = stop.evidence[0]
    if stop.evidence[-1].rule == NO_ROW:
        told = f"the stop reason is {stop.raw!r}, and the row of the call is not in the file"
        return Finding("transcript.not_recorded", Severity.INFO, told, first.at)
    if first.rule == RECORDER and len(first.note) <= _WORD:
        told = f"the recorder says {first.note!r} in words of its own; the provider's stop reason was not recorded"
        return Finding("transcript.normalized", Severity.INFO, told, first.at)
    if first.rule != ABSENT:
        return None
    seen = shown(stop)
    if seen is None:
        told = "the stop reason was not recorded, and nothing in the file shows how the answer ended"
        return Finding("transcript.not_recorded", Severity.INFO, told, first.at)
    told = f"the stop reason was not recorded; {stop.normalized.value} is inferred: {seen.note}"
    return Finding("transcript.inferred", Severity.INFO, told, seen.at)
