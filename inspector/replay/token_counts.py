"""Bounds the output tokens of an answer, checks the provider's count, and finds where its tokens may end.

No tokenizer is needed: each token has at least one byte of text, and tokens without text have their own bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from inspector.sessions.recording import Exchange
from loop_core.turn.loop import RecordedSource
from loop_core.turn.state import Event, NotRecorded, ProviderResponse, RunTools, Send, Turn
from loop_core.values import (
    FINISHED,
    CallKind,
    ChatResponse,
    Message,
    ReasoningPart,
    ResponsePart,
    Stop,
    TextPart,
    ToolCall,
)

MOST_HIDDEN = 1 << 18
"""The largest plausible number of tokens without text: twice the largest output cap of any model (128,000)."""
MOST_UNREPORTED = 1 << 15
"""`MOST_HIDDEN` for an answer that reports no reasoning: some servers neither send nor count it separately."""


def most_tokens(response: ChatResponse) -> int:
    """An upper bound of a response's output tokens: one for each byte of its text, and its hidden reasoning."""
    return (MOST_HIDDEN if _may_hide_tokens(response) else MOST_UNREPORTED) + text_bytes(response)


def text_bytes(response: ChatResponse) -> int:
    """The size in bytes of the text that tokens are cut from."""
    return sum(len(text_of(part).encode("utf-8", "replace")) for part in response.parts)


def is_cut(answer: ProviderResponse) -> bool:
    """Whether a budget cut this answer."""
    return answer.judgement.stop.normalized is Stop.MAX_TOKENS or answer.judgement.cap_reached


def ends_whole(response: ChatResponse) -> bool:
    """Whether the stop reason of an answer says that it is complete."""
    return response.stop_reason.normalized in FINISHED


def _may_hide_tokens(response: ChatResponse) -> bool:
    """Whether an answer may have tokens without text: reported reasoning, or a cut that reasoning may have caused."""
    usage = response.usage
    counted = response.other_choices or (usage is not None and usage.reasoning_tokens)
    return not ends_whole(response) or bool(counted) or any(
        not isinstance(part, TextPart) and not (isinstance(part, ToolCall) and part.kind is not CallKind.SERVER)
        for part in response.parts)


def impossible_count(response: ChatResponse) -> int | None:
    """The provider's count of output tokens if it is impossible; None if it is possible."""
    claimed = response.usage.output_tokens if response.usage is not None else None
    if claimed == 0:  # Portkey and claude-code-router write 0 for an unknown count
        return claimed if response.stop_reason.raw is not None and text_bytes(response) else None
    if claimed is None or 0 <= claimed <= MOST_UNREPORTED or MOST_UNREPORTED < claimed <= most_tokens(response):
        return None  # the first bound nearly always makes it unnecessary to count the bytes of the text
    return claimed


def text_of(part: ResponsePart | None) -> str:
    """The text of a part that tokens are cut from; calls that the provider ran and opaque blocks are never cut."""
    if type(part) is TextPart or type(part) is ReasoningPart:
        return part.text
    if type(part) is ToolCall and part.kind is not CallKind.SERVER:
        return part.arguments or ""
    return ""


# -- Recorded answers under a bound on tokens ------------------------------------------------------------------------
# A loop requests no more tokens than are left of its bound. Under a bound that an operator sets, a larger recorded
# answer would not have come: without this check, a bound would seem sufficient although it cuts the last answer.


class BoundedSource(NamedTuple):
    """A recorded turn under a bound on tokens that the operator set."""

    recorded: RecordedSource
    exchanges: Sequence[Exchange]

    def respond(self, send: Send, turn: Turn) -> Event:
        """The recorded answer, if the bound has room for it, or a run's first one if it was cut anyway."""
        event, room = self.recorded.respond(send, turn), turn.room
        if not isinstance(event, ProviderResponse) or room is None or event.live:
            return event
        if turn.spend.requests < 2:
            if is_cut(event):
                return event
            room = max(room, send.max_tokens or 0)  # never less than the format accepts
        tokens = tokens_under_cap(event, self.exchanges)
        if tokens is None or tokens <= room:
            return event
        allowed = "1 token" if room == 1 else f"{room:,} tokens"
        return NotRecorded(f"This loop asks for at most {allowed} here, and the recorded answer has {tokens:,}.")

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The recorded results."""
        return self.recorded.run_tools(effect, turn)

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """No messages: a recording has none."""
        return self.recorded.follow_up(turn)


def tokens_under_cap(answer: ProviderResponse, exchanges: Sequence[Exchange]) -> int | None:
    """The max_tokens that a recorded answer needs, without reasoning; None if that is not known."""
    usage = answer.response.usage
    tokens = None if usage is None or impossible_count(answer.response) is not None else (
        usage.output_tokens if usage.visible_tokens is None else usage.visible_tokens)
    request = exchanges[answer.number].request if answer.number is not None else None
    if tokens is None or request is None or request.max_tokens is None:
        return tokens
    return min(tokens, request.max_tokens)


# -- The readings of a count -----------------------------------------------------------------------------------------
# If the provider counted more tokens than chunks, a reading is one way to distribute the tokens over the chunks. A
# server sends text only up to its last whole character: a token that ends inside a character is held back and comes
# with the next chunk. So every token ends at the end of a chunk or inside one of its characters, and a chunk with k
# more bytes than characters has at most k tokens beyond the first. Surplus tokens may also be the end mark or the frame
# of a call. `TokenMark` has the number of tokens at a position in the earliest and in the latest reading.

Bounds = tuple[Sequence[int], Sequence[int]]
"""For each number of tokens, from 0 on, the least and the largest number of characters that have arrived with them."""

REPLACEMENT_CHARACTER = "\ufffd"
"""What a server sends for up to three bytes that form no character; each of them may be a token."""


class Slot(NamedTuple):
    """A position in a stream that may hold tokens."""

    chars: int
    """The number of characters of all texts that have arrived at the end of the slot."""
    tokens: int
    """The number of tokens that the slot certainly has."""
    spare: int
    """The number of further tokens that the slot may have."""


class TokenMark(NamedTuple):
    """A position in the text, and the numbers of tokens at which it may be reached."""

    chars: int
    early: int
    late: int


class TokenCut(NamedTuple):
    """A text in pieces of one token each."""

    text: str
    ends: Sequence[int]
    """The end of each piece, in characters."""
    call: bool = False
    """Whether the text is the arguments of a call, which has a frame of further tokens."""


class TokenLayout(NamedTuple):
    """The tokens of consecutive texts by one reading, and the range over all readings."""

    ends: Sequence[Sequence[int]]
    """For each text, the ends of its tokens in characters."""
    marks: Sequence[Sequence[TokenMark]]
    """For each text, the numbers of tokens at which its positions are reached, counted over all earlier texts too."""
    end: int
    """Tokens of the end mark."""
    note: str = ""


ANY = 1 << 30
"""A number of tokens that is larger than that of any answer."""


def tokens_held_back(piece: str) -> int:
    """The number of tokens of a chunk that may end inside a character."""
    if piece.isascii():
        return 0
    return sum(3 if char == REPLACEMENT_CHARACTER else len(char.encode("utf-8", "surrogatepass")) - 1 for char in piece)


def slot_marks(slots: Sequence[Slot], beyond: int) -> list[TokenMark]:
    """The marks of the slots' ends, over all readings that distribute `beyond` tokens besides the certain ones. Tokens
    that exceed the spare room of all slots may be anywhere."""
    room = sum(slot.spare for slot in slots)
    loose = max(0, beyond - room)
    found: list[TokenMark] = []
    sure = taken = 0
    for slot in slots:
        sure, taken = sure + slot.tokens, taken + slot.spare
        early = sure + max(0, beyond - loose - (room - taken))
        found.append(TokenMark(slot.chars, early, sure + min(beyond, taken + loose)))
    return found


def shares(spares: Sequence[int], beyond: int) -> list[int]:
    """One reading: the tokens spread evenly over the slots, each up to its maximum."""
    room = sum(spares)
    beyond = min(beyond, room)
    sums = [beyond * taken // room for taken in accumulate(spares)] if room else [0] * len(spares)
    return [after - before for before, after in zip([0, *sums], sums, strict=False)]


def position_bounds(marks: Iterable[TokenMark], tokens: int) -> Bounds | None:
    """The range of positions for each number of tokens; None if all readings agree."""
    least, most = [0] * (tokens + 1), [0] * (tokens + 1)
    for chars, early, late in marks:
        for counts, at in ((most, early), (least, late)):
            counts[min(at, tokens)] = max(counts[min(at, tokens)], chars)
    bounds = list(accumulate(least, max)), list(accumulate(most, max))
    return None if bounds[0] == bounds[1] else bounds


def layout_by_chunks(texts: Sequence[TokenCut], beyond: int, frame: int, cut: bool) -> TokenLayout:
    """The layout with chunks as tokens and `beyond` further tokens: inside characters, in the frames of calls, or at
    the end. `frame` is the most tokens of one call's frame. A `cut` answer has no end mark, but may end inside a
    character, of which nothing was sent."""
    spares = [[tokens_held_back(text.text[start:to]) for start, to in pairwise([0, *text.ends])] for text in texts]
    frames = [frame if text.call else 0 for text in texts]
    slots: list[Slot] = []
    before = 0
    for text, spare, least in zip(texts, spares, frames, strict=True):
        slots.append(Slot(before, 0, least))
        slots += [Slot(before + to, 1, more) for to, more in zip(text.ends, spare, strict=True)]
        before += len(text.text)
    slots.append(Slot(before, 0, ANY if cut else 1))
    found = slot_marks(slots, beyond)
    many = sum(map(bool, chain(*spares)))
    several = many and any(mark.early != mark.late for mark in found[:-1])
    # The chosen reading: first the end mark, then frames, then characters; the remaining tokens are at the end.
    end = 0 if cut else min(1, beyond)
    framed = shares(frames, beyond - end)
    hidden_shares = iter(shares(list(chain(*spares)), beyond - end - sum(framed)))
    ends: list[list[int]] = []
    own: list[list[TokenMark]] = []
    for text, of_frame in zip(texts, framed, strict=True):
        text_ends = [0] * of_frame
        for start, to in pairwise([0, *text.ends]):
            text_ends += [start] * next(hidden_shares) + [to]  # a token that ends inside a character adds no text
        own.append(found[: len(text.ends) + 1])
        found = found[len(text.ends) + 1 :]
        ends.append(text_ends)
    rest = beyond + sum(len(text.ends) for text in texts) - end - sum(map(len, ends))
    if cut and ends:
        ends[-1] += [len(texts[-1].text)] * rest
    note = f"; the {beyond:,} beyond may be in {many:,} of them, which hold multi-byte characters" if several else ""
    return TokenLayout(ends, own, end if cut else end + rest, note)


def layout_by_count(texts: Sequence[TokenCut], beyond: int, hidden: int | None, spread: bool = False) -> TokenLayout:
    """The layout with the tokens of a tokenizer and their difference from the count or, with `spread`, by a count
    alone. Then it is only known that each token has at least one byte, and that a token that ends inside a character
    arrives with the next one. `hidden` tokens may have no byte; None: any number of them may belong to other output."""
    count, size = sum(len(text.ends) for text in texts), sum(map(_size, (text.text for text in texts)))
    end = min(1, max(0, beyond))
    held_back = 0 if hidden is None else hidden + sum(tokens_held_back(text.text) for text in texts)
    found: list[list[TokenMark]] = []
    chars = sent = tokens = 0
    for text in texts:
        own: list[TokenMark] = []
        for start, to in pairwise([0, *text.ends]):
            first, sent, tokens = sent + 1, sent + _size(text.text[start:to]), tokens + 1
            early, late = tokens, tokens + max(0, beyond - end)
            if spread:
                early, late = 1, count
                if hidden is not None:
                    early, late = max(1, count - hidden - (size - first)), min(count, sent + held_back)
            own.append(TokenMark(chars + to, early, late))
        chars += len(text.text)
        found.append(own)
    return TokenLayout([text.ends for text in texts], found, end, "")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
