"""How the tokens of a stream may be distributed over its chunks, if the provider counted more tokens than chunks.

A server sends text only up to its last whole character: a token that ends inside a character is held back and comes
with the next chunk. So every token ends at the end of a chunk or inside one of its characters, and a chunk with k bytes
more than characters has at most k tokens beyond the first. Surplus tokens may also be the end mark or the frame of a
call. Each distribution of the surplus is a reading. `TokenMark` gives the number of tokens at which a position is
reached, in the earliest and in the latest reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

Bounds = tuple[Sequence[int], Sequence[int]]
"""For each number of tokens, from 0 on, the least and the largest number of characters that have arrived by then."""

REPLACEMENT_CHARACTER = "\ufffd"
"""What a server sends for bytes that form no character: up to three bytes, each of which may be a token."""


class Slot(NamedTuple):
    """A position in a stream that may hold tokens."""

    chars: int
    """The number of characters of all texts that have arrived at the end of the position."""
    tokens: int
    """The number of tokens that the position certainly has."""
    spare: int
    """The number of further tokens that the position may have."""


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
    """The tokens of consecutive texts by one reading, with what other readings say."""

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
    """How many tokens of a chunk may end inside a character, and so arrive with the next chunk."""
    if piece.isascii():
        return 0
    return sum(3 if char == REPLACEMENT_CHARACTER else len(char.encode("utf-8", "surrogatepass")) - 1 for char in piece)


def slot_marks(slots: Sequence[Slot], beyond: int) -> list[TokenMark]:
    """Where each slot may end, over all readings that distribute this many tokens beyond the certain ones.

    What all slots together cannot take may be anywhere.
    """
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
    """The range of positions for each token count; None if that is the same in all readings."""
    least, most = [0] * (tokens + 1), [0] * (tokens + 1)
    for chars, early, late in marks:
        for counts, at in ((most, early), (least, late)):
            counts[min(at, tokens)] = max(counts[min(at, tokens)], chars)
    bounds = list(accumulate(least, max)), list(accumulate(most, max))
    return None if bounds[0] == bounds[1] else bounds


def layout_by_chunks(texts: Sequence[TokenCut], beyond: int, frame: int, cut: bool) -> TokenLayout:
    """The layout with chunks as tokens and some further tokens: inside characters, in the frames of calls, or at the
    end.

    `frame` is how many the frame of one call may take at most; a `cut` answer has no end mark, but may end inside a
    character, of which nothing was sent.
    """
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
    # The reading that is taken: the end mark, then frames, then characters; what is left over stands at the end.
    end = 0 if cut else min(1, beyond)
    framed = shares(frames, beyond - end)
    hidden_shares = iter(shares(list(chain(*spares)), beyond - end - sum(framed)))
    ends: list[list[int]] = []
    own: list[list[TokenMark]] = []
    for text, of_frame in zip(texts, framed, strict=True):
        text_ends = [0] * of_frame
        for start, to in pairwise([0, *text.ends]):
            text_ends += [start] * next(hidden_shares) + [to]  # a token that ends inside a character brings nothing
        own.append(found[: len(text.ends) + 1])
        found = found[len(text.ends) + 1 :]
        ends.append(text_ends)
    rest = beyond + sum(len(text.ends) for text in texts) - end - sum(map(len, ends))
    if cut and ends:
        ends[-1] += [len(texts[-1].text)] * rest
    note = f"; the {beyond:,} beyond may be in {many:,} of them, which hold multi-byte characters" if several else ""
    return TokenLayout(ends, own, end if cut else end + rest, note)


def layout_by_count(texts: Sequence[TokenCut], beyond: int, hidden: int | None, spread: bool = False) -> TokenLayout:
    """The layout with the tokens of a tokenizer and their difference from the count; or with a count alone, `spread`.

    With a count alone it is only known that each token has at least one byte, and that a token which ends inside a
    character arrives with the next one; `hidden` tokens may have no byte. With None, any number of them may belong to
    other output.
    """
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
