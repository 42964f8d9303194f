"""Finds the part of an arriving answer that cannot change any more, so that it may be shown.

Pure. The text of a continuation is held back until its seam is decided, because it may repeat or replace earlier text,
or be left out. So is an answer that may still become a word by which the model asks to show nothing.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loop_core.client.exchange import LiveResponse, Observer
from loop_core.client.mask import Mask
from loop_core.errors import DecodeError
from loop_core.turn.continuation import OPENING_CHARS, JoinedText, SeamRule, Segment, split_half
from loop_core.turn.history import Ability
from loop_core.turn.policy import Policy
from loop_core.turn.seam import APART, join
from loop_core.turn.state import Cancel, Event, RunTools, Send, Turn, cancelled_answer
from loop_core.values import Message, Request
from loop_core.wire import stream_reader
from loop_core.wire.body import mend

if TYPE_CHECKING:
    from loop_core.client.transport import AsyncLive


class MaskedText:
    """Joins pieces of output. A tail that may begin a secret, or that is half a surrogate pair, is held back until more
    arrives."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._mask = Mask(secrets, halves=True)
        # Half a pair at the very beginning stays: the answer before may end with the other half.
        self._decode = getincrementaldecoder("utf-8")("surrogatepass").decode
        self._text, self._taken = "", 0
        self._half, self._begun = "", False

    def of(self, pieces: Sequence[object]) -> str:
        """The whole text; pieces that are not text are left out."""
        self._text += self.more(pieces)
        return self._text

    def more(self, pieces: Sequence[object]) -> str:
        """The text that the pieces add since the last call of `more` or `of`."""
        if self._taken == len(pieces):
            return ""
        came = "".join([self._half, *(piece for piece in pieces[self._taken :] if isinstance(piece, str))])
        self._taken = len(pieces)
        fresh, self._half = split_half(came)
        # `mend` treats half a pair at the edge of a text differently, so the piece is put between other characters, as
        # in the answer.
        before = "." if self._begun else ""
        fresh = mend(f"{before}{fresh}.")[len(before) : -1]
        self._begun = self._begun or bool(fresh)
        # The mask works on bytes and may hold back a part of a character, so decoding is incremental.
        return self._decode(self._mask.feed(fresh.encode("utf-8", "surrogatepass")))


class PendingSeam:
    """The seam before a segment that is still arriving, decided as the machine will decide it."""

    def __init__(self, before: Sequence[Segment], coming: Segment, rule: SeamRule) -> None:
        self._before, self._coming, self._rule = tuple(before), coming, rule
        self._length = max(len(join(self._before, rule).text), sum(len(each.text) for each in self._before))
        self.threshold = 2 * (self._length + len(coming.anchor) + len(coming.stripped)) + OPENING_CHARS if before else 0
        """The number of characters that the segment must exceed before its seam can be decided."""
        self._settled: JoinedText | None = None
        self._size = 0

    def at(self, text: str) -> tuple[JoinedText, str]:
        """The answer joined with the segment so far, and the text that the segment adds."""
        if self._settled is not None:
            joined = JoinedText(self._settled.text + text[self._size :], self._settled.seams)
        else:
            joined = join((*self._before, self._coming._replace(text=text)), self._rule)
            if len(text) > self.threshold and self._is_wrapped(joined):
                self.threshold = 2 * len(text)  # not checked for each piece, as the time of a check grows with the text
            elif len(text) > self.threshold:
                self._settled, self._size = joined, len(text)  # no rule reads further
        seams = joined.seams
        return joined, joined.text[seams[-1].at :] if self._before and seams else joined.text

    def settled_text(self, text: str) -> str | None:
        """The text with which the answer is sure to begin, given the segment so far; None while it can change."""
        # A seam may change as long as the segment is not longer than the text that a rule compares.
        if len(text) <= self.threshold:
            return None
        joined, _ = self.at(text)
        return joined.text if not self._before or self._settled is not None else None

    def _is_wrapped(self, text: JoinedText) -> bool:
        """Whether the quotation is inside a wrapper whose closing mark may come at the very end of the segment."""
        anchor = self._coming.anchor
        return bool(anchor and text.seams) and text.seams[-1].cut != anchor


def coming_segment(turn: Turn, send: Send) -> Segment:
    """The segment for the answer to a request, before any text of the answer has come."""
    return Segment("", send.method, send.anchor, send.stripped, turn.ability.echoes, mark=send.mark)


class ShownText(Observer):
    """Passes the text of a turn to `show`, piece by piece, and never withdraws any of it: the joined pieces end with
    the text of the answer. A blank line separates a replaced text from the text that replaces it, and the answers of a
    turn that ran tools."""

    def __init__(self, api: str, secrets: Sequence[str], policy: Policy, show: Callable[[str], None]) -> None:
        self._api, self._secrets, self._policy, self._show = api, secrets, policy, show
        self._joining = PendingSeam((), Segment(""), policy.seam)
        self._answers = 1
        self._shown_parts: list[str] = []
        """The parts of the current answer that were shown."""
        self._earlier_shown = False
        """Whether text of an earlier answer of the turn was shown."""
        self._decoder, self._found = stream_reader(api)
        self._start_text()
        self._broken = False
        self.last_answer: LiveResponse | None = None
        """The answer to the last request, once it is over or aborted."""

    def _start_text(self) -> None:
        self._text = MaskedText(self._secrets)
        self._waits: list[str] = []
        self._size = 0
        self._flows = False
        """Whether all text so far was shown, so that each further piece is shown as it arrives."""

    def begin(self, turn: Turn, send: Send) -> None:
        """Notes that this request is sent next."""
        self.last_answer = None
        if len(turn.answers) != self._answers:
            self._settle(turn.joined_answer(-2).text)
            self._earlier_shown = self._earlier_shown or any(self._shown_parts)
            self._answers, self._shown_parts = len(turn.answers), []
        elif turn.answers[-1] and not (so_far := turn.joined_answer()).doubtful_seams:
            self._grow(so_far.text)
        self._joining = PendingSeam(turn.answers[-1], coming_segment(turn, send), self._policy.seam)
        self._start_text()

    def on_end(self, answer: LiveResponse) -> None:
        """An answer has ended, or was aborted."""
        self.last_answer = answer

    def on_head(self, number: int, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The head of an answer arrived; the answer to a repeated request starts from the beginning."""
        self._decoder, self._found = stream_reader(self._api, headers)
        self._broken = False
        self._start_text()

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        """A piece of the body arrived."""
        if self._broken:
            return
        try:
            self._decoder.feed(data)
        except DecodeError:
            self._broken = True  # reported by the judge when the answer is over
            return
        fresh = self._text.more(self._found.text)
        if self._flows:
            self._give(fresh)
            return
        self._waits.append(fresh)
        self._size += len(fresh)
        # Checked before the pieces are joined, since joining at each piece would take quadratic time.
        if self._size > self._joining.threshold:
            self._waits = ["".join(self._waits)]
            text = self._joining.settled_text(self._waits[0])
            self._flows = text is not None and self._grow(text)

    def finish(self, turn: Turn, silent: str | None) -> None:
        """Shows the rest at the end of the turn, unless `silent`, the word by which the model asked to show nothing, is
        given."""
        if silent is None:
            self._settle(turn.joined_answer().text)

    def _joined_parts(self) -> str:
        self._shown_parts = ["".join(self._shown_parts)]
        return self._shown_parts[0]

    def _grow(self, text: str) -> bool:
        """Shows the new part of this text, with which the answer is sure to begin; returns False if it has to wait."""
        shown_text, text = self._joined_parts(), split_half(text)[0]
        if not text.startswith(shown_text):
            return False  # settled when the answer is over
        start = text.strip()
        if not shown_text and (not start or any(word.startswith(start) for word in self._policy.silent_endings)):
            return False  # a retry may begin so again, or the text may become a word that asks to show nothing
        self._give(text[len(shown_text) :])
        return True

    def _settle(self, text: str) -> None:
        shown_text, text = self._joined_parts(), split_half(text)[0]
        if text.startswith(shown_text):
            self._give(text[len(shown_text) :])
        elif not shown_text.endswith(text):
            self._show(APART + text)
            self._shown_parts = [text]

    def _give(self, text: str) -> None:
        if text:
            self._show(APART + text if self._earlier_shown and not any(self._shown_parts) else text)
            self._shown_parts.append(text)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShowingSource:
    """A source that reports every request to `shown_text` before the wrapped source sends it. If the turn is cancelled
    while an answer arrives, the part of it that has arrived is kept: the caller may have shown it, and the conversation
    can go on from it."""

    source: AsyncLive
    shown_text: ShownText

    async def respond(self, send: Send, turn: Turn) -> Event:
        """The answer of the wrapped source."""
        self.shown_text.begin(turn, send)
        event = await self.source.respond(send, turn)
        answer = self.shown_text.last_answer
        if not isinstance(event, Cancel) or answer is None or not answer.response.parts:
            return event
        return answer.event._replace(judgement=cancelled_answer(answer.judgement))

    def cancel(self) -> None:
        """Ends the turn."""
        self.source.cancel()

    async def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The tool results of the wrapped source."""
        return await self.source.run_tools(effect, turn)

    async def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """The messages that the user wrote while the turn ran."""
        return await self.source.follow_up(turn)

    def knows(self, request: Request) -> tuple[Ability, str]:
        """The server's abilities and its profile."""
        return self.source.knows(request)
