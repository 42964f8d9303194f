"""The segments of one answer and the seams between them, as values: what was asked, what came, and what a join cut.

An answer that was cut and continued has one segment for each response. How a seam is decided is in `seam`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from loop_core.turn.prompts import QUOTE_MARKS


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
    AGAIN = "again"
    """The words to quote, asked for once more: the segment before did not begin with them."""
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
    NUDGE = "nudge"
    """The same request after an answer without any content, with a message that says so."""


class SeamRule(StrEnum):
    """How a seam is decided."""

    CAREFUL = "careful"
    """What was asked back or is too long to be chance is cut, and nothing else."""
    CONCAT = "concat"
    """As sent, nothing cut."""
    OVERLAP = "overlap"
    """The longest overlap is cut, however short: what others do, and what corrupts ordinary text."""


class SeamDecision(StrEnum):
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
    UNVERIFIED = "unverified"
    """The words that were to be quoted did not come, or a prefill was not gone on from: joined as sent, and nothing
    shows that it fits."""
    LEFT_OUT = "left_out"
    """It did not begin with the words that were to be quoted; of it and what came when they were asked for once more,
    the other stands."""
    APART = "apart"
    """The text beside a repaired call goes on from nothing: a blank line stands between."""


class Segment(NamedTuple):
    """The visible text of one response of an answer."""

    text: str
    method: Method = Method.FIRST
    anchor: str = ""
    """The words that were to be quoted (methods anchor and again)."""
    stripped: str = ""
    """White space taken from the end of the prefill, since the provider refuses it there."""
    echoes: bool | None = None
    """Whether the server repeats a prefill in its answer; None where that is not known."""
    response: int | None = None
    """The response that it came from, by its index in the recording or run."""
    mark: str = QUOTE_MARKS[0]
    """The name of the tags that stood around the words to quote."""


@dataclass(frozen=True, slots=True)
class Seam:
    """One join: `at` is where segment `index` begins in the text, `cut` what was left out of its beginning."""

    index: int
    at: int
    decision: SeamDecision
    cut: str = ""
    why: str = ""
    sure: bool = True
    """False where nothing shows that the segment goes on from the text before it."""
    removals: tuple[tuple[int, str], ...] = ()
    """What is left out of the segment behind `cut`, and where: what closes a wrapper, marks of our prompt."""

    def remainder(self, text: str) -> str:
        """What the join leaves of the segment."""
        at = len(self.cut)
        pieces: list[str] = []
        for begin, left_out in self.removals:
            pieces.append(text[at:begin])
            at = begin + len(left_out)
        return "".join([*pieces, text[at:]])


class JoinedText(NamedTuple):
    """The merged text and its seams, one for every segment but the first."""

    text: str
    seams: tuple[Seam, ...]

    @property
    def doubtful_seams(self) -> tuple[Seam, ...]:
        """The seams of which nothing shows that they fit."""
        return tuple(seam for seam in self.seams if not seam.sure)
