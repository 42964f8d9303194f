"""Finds the pieces of a body that, in order, form exactly the texts of a response.

A text is assigned to the first group of pieces that forms it, else to pieces of several groups. Unused pieces with the
same text are repetitions. A text may have no pieces. This part knows no wire format.

The second part has the frames of a body as its decoder got them, and the offset in the body of each byte of a payload.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from loop_core.values import ChatResponse
from loop_core.wire import wire
from loop_core.wire.base import Decoder
from loop_core.wire.framing import with_blank_lines
from loop_core.wire.reads import FactRow, FactValue, find

_MOST_BEGINNINGS = 64
"""The largest number of first pieces that are tried for a text, because a hostile body may have very many."""


@dataclass(slots=True, eq=False, repr=False)
class TextPiece:
    """A value that may be a piece of a text."""

    text: str
    string: bool
    start: int
    end: int
    pointer: str
    group: tuple[Any, ...]
    used: bool = False


class FactText(NamedTuple):
    """A text of the response: its fact, and the earliest byte at which it may begin."""

    fact: str
    text: str
    after: int = 0
    joint: str = ""
    """The text that the decoder inserts between two pieces, which is not in the bytes."""
    cut: bool = False
    """Whether the text may be the beginning of a JSON value whose end the decoder removed."""


class Supply:
    """The pieces of one kind of fact, in the order of the bytes."""

    __slots__ = ("_all", "_beginnings_left", "_groups", "_unused_groups")

    def __init__(self) -> None:
        self._all: list[TextPiece] = []
        self._groups: dict[tuple[Any, ...], _Group] = {}
        self._unused_groups: dict[tuple[Any, ...], _Group] = {}  # the groups with unused pieces
        self._beginnings_left = _MOST_BEGINNINGS

    def __iter__(self) -> Iterator[TextPiece]:
        return iter(self._all)

    def add(self, piece: TextPiece) -> None:
        """Adds a piece; a value that is not a string adds nothing."""
        self._all.append(piece)
        key = piece.group if piece.string else (*piece.group, piece.start)
        if key not in self._groups:
            self._groups[key] = self._unused_groups[key] = _Group()
        self._groups[key].pieces.append(piece)

    def take(self, fact: FactText) -> list[TextPiece]:
        """The pieces that form the text, which become used; empty if no pieces form it."""
        found: list[TextPiece] = []
        empty = []
        # Groups first: nearly always a text consists of all pieces of one choice, block or item, in order.
        for key, group in self._unused_groups.items():
            if group.used_up:
                empty.append(key)
            elif found := group.run(fact):
                break
        for key in empty:
            del self._unused_groups[key]
        if not found and self._beginnings_left:
            self._beginnings_left -= 1
            found = _pick(self._all, fact, gaps=True) or (_beginning(self._all, fact) if fact.cut else [])
        for piece in found:
            piece.used = True
        return found

    def repetitions(self, texts: Iterable[tuple[FactText, Sequence[TextPiece]]]) -> list[tuple[str, TextPiece]]:
        """Unused pieces that, alone or with the rest of their group, repeat a formed text: fact and piece."""
        by_group: dict[tuple[tuple[Any, ...], str], str] = {}
        by_text: dict[str, str] = {}
        owners: set[Any] = set()
        for wanted, pieces in texts:
            owners.update(piece.group[1:2] for piece in pieces)
            if wanted.text and pieces:
                by_text.setdefault(wanted.text, wanted.fact)
                by_group[pieces[0].group, wanted.text] = wanted.fact
        found: list[tuple[str, TextPiece]] = []
        for key, group in self._groups.items():
            rest = [piece for piece in group.pieces if not piece.used]
            if not rest or (rest[0].group[1:2] and rest[0].group[1:2] not in owners):
                continue  # the text may belong to another choice of the response
            whole = by_text.get("".join(piece.text for piece in rest))
            for piece in rest:
                fact = whole or by_group.get((key, piece.text)) or by_text.get(piece.text)
                if fact is not None and piece.text:
                    found.append((fact, piece))
        return found


class _Group:
    __slots__ = ("head", "pieces")

    def __init__(self) -> None:
        self.pieces: list[TextPiece] = []
        self.head = 0  # the pieces before this index are used

    @property
    def used_up(self) -> bool:
        while self.head < len(self.pieces) and self.pieces[self.head].used:
            self.head += 1
        return self.head == len(self.pieces)

    def run(self, fact: FactText) -> list[TextPiece]:
        """Consecutive unused pieces that form the text; empty if there are none."""
        pieces = self.pieces
        tries = _MOST_BEGINNINGS
        for first in range(self.head, len(pieces)):
            piece = pieces[first]
            fits = fact.text.startswith(piece.text) if piece.text else not fact.text
            if piece.used or piece.start < fact.after or not fits:
                continue
            found = _pick(islice(pieces, first, None), fact, gaps=False)
            tries -= 1
            if found or not tries:
                return found
        return []


def _pick(pieces: Iterable[TextPiece], fact: FactText, *, gaps: bool) -> list[TextPiece]:
    """Unused pieces that form the text in order; without `gaps`, no unused piece between them may be skipped."""
    text, joint = fact.text, fact.joint
    found: list[TextPiece] = []
    at = 0
    for piece in pieces:
        if piece.used or piece.start < fact.after:
            continue
        if text.startswith(piece.text, at):
            step = 0
        elif joint and found and text.startswith(joint + piece.text, at):
            step = len(joint)
        elif gaps:
            continue
        else:
            return []
        if piece.text or not text:
            found.append(piece)
            at += step + len(piece.text)
            if at == len(text):
                return found
    return []


def _beginning(pieces: Iterable[TextPiece], fact: FactText) -> list[TextPiece]:
    """The piece whose JSON begins with the text, shortened to it; empty if there is none."""
    for piece in pieces:
        usable = not (piece.used or piece.string) and piece.start >= fact.after
        if usable and fact.text and piece.text.startswith(fact.text):
            piece.end = piece.start + len(fact.text.encode("utf-8", "surrogatepass"))
            return [piece]
    return []


# -- The frames of a body as its decoder got them, and the place of each byte of a payload in the body ---------------


class Frame(NamedTuple):
    """One decoded JSON text, its place for evidence, and the offsets of its pieces."""

    payload: bytes
    event: Mapping[str, Any]
    name: str | None
    start: int
    end: int
    pieces: tuple[tuple[int, int], ...] = ()
    """The offsets of each piece in the payload and in the body; nearly always one, several if lines were joined, none
    if the text is not in the body."""

    def values(self, rows: tuple[FactRow, ...]) -> list[FactValue]:
        """The values that match the rows, with their places in the body."""
        if not self.pieces:
            return []
        if len(self.pieces) == 1:
            return find(rows, self.payload, self.event, self.name, self.pieces[0][1])
        found = find(rows, self.payload, self.event, self.name)
        places = [self.place(each.start, each.end) for each in found]
        return [each._replace(start=start, end=end) for each, (start, end) in zip(found, places, strict=True)]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Converts a byte range of the payload to one of the body."""
        return self._at(start), self._at(end - 1) + 1

    def _at(self, offset: int) -> int:
        within, at = self.pieces[bisect_right(self.pieces, offset, key=lambda piece: piece[0]) - 1]
        return at + offset - within


class _Recording(Decoder):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.read: list[Frame] = []

    def on_event(self, event: Any, name: str | None) -> None:
        self.read.append(Frame(self.frame[0], event, name, *self.frame[2:]))
        super().on_event(event, name)

    def on_body(self, body: Any) -> None:
        self.read.append(Frame(self.frame[0], body, None, 0, self.size))
        super().on_body(body)


@cache  # a class is a reference cycle, and the collector may be paused, so a class for each body would stay in memory
def _recording_of(api: str) -> type[_Recording]:
    return type("Recording", (_Recording, wire(api).decoder), {})


def frames(api: str, body: bytes, **options: Any) -> tuple[list[Frame], ChatResponse]:
    """Every JSON text that the decoder read, with its parsed value; and the response. Raises `CallerError` if there is
    no such API, and `DecodeError` if the bytes are not a body of it."""
    recording, body = _recording_of(api)(**options), with_blank_lines(body)  # as the decoder's payloads have them
    recording.feed(body)
    response = recording.close()
    found = [each._replace(pieces=_pieces(body, each.payload, each.start, each.end)) for each in recording.read]
    return found, response


def _pieces(body: bytes, payload: bytes, start: int, end: int) -> tuple[tuple[int, int], ...]:
    at = body.rfind(payload, start, end)
    if at >= 0:
        return ((0, at),)
    wrapped = payload.removeprefix(b'{"error":')
    at = body.rfind(wrapped[:-1], start, end) if len(wrapped) < len(payload) else -1
    if at >= 0:
        # an SSE field `error:`, which the decoder wraps in an object
        return ((0, start), (len(payload) - len(wrapped), at))
    found: list[tuple[int, int]] = []
    offset = 0
    for line in payload.split(b"\n"):
        start = body.find(b"data:", start, end) + 5
        if start < 5:
            return ()  # not in the body, such as an error from the headers of a binary frame
        start += body[start : start + 1] == b" "
        found.append((offset, start))
        offset += len(line) + 1
        start += len(line)
    return tuple(found)
