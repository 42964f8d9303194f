"""Leaves long texts of a large transcript in their file, and reads them again when they are needed.

    row ─▶ its place in the file, with a hash of its masked bytes ─▶ the same row, masked again, when it is shown

Nine tenths of a file of 100 MB are tool results, and a verdict needs only their lengths. A row is checked against its
hash, so a file that only grew can be read, and a changed one raises `FileChangedError`.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple, Protocol

from inspector.sessions import redact, traffic
from inspector.sessions.wordings import begins_as_refusal, interruption, is_error, placeholder
from loop_core.errors import LoopError
from loop_core.json_parser import from_json
from loop_core.values import ToolResultPart

SHORT = 200
"""The largest number of characters of a text that stays in memory: its place in the file would take as much memory."""


class FileChangedError(LoopError):
    """The file has changed: a row is not at its place."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was changed or removed after it was read: open it again to see the rest")


class UnbuiltRecord(NamedTuple):
    """A row of a database whose JSON is made on demand, because most rows of a followed database are only compared."""

    make: Callable[..., bytes]
    values: tuple[Any, ...]


RecordPiece = tuple[int, bytes | UnbuiltRecord, bool]
"""The number of a record, its JSON, and whether the record may be cut, like the last one of a cut file."""


class RowPlace(NamedTuple):
    """The place of a row in a file."""

    path: str
    start: int
    size: int
    check: int
    """The hash of the row's masked bytes."""

    def read(self) -> bytes:
        """The row with credentials masked. Raises `FileChangedError` if the row has changed in its file."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.start)
                row = redact.body(file.read(self.size))
        except OSError:
            row = b""
        # The hash is that of the masked bytes, so that no unmasked byte has to stay in memory.
        if len(row) != self.size or hash(row) != self.check:  # `hash` suffices, because both are of this process
            raise FileChangedError(self.path)
        return row


def row_bytes(row: bytes | RowPlace) -> bytes:
    """The bytes of a row, from memory or from its file."""
    return row if isinstance(row, bytes) else row.read()


def row_size(row: bytes | RowPlace) -> int:
    """The number of bytes of a row."""
    return len(row) if isinstance(row, bytes) else row.size


_ROW = Struct("<qqq")
"""Start, size and hash of a row."""
_TEXT = Struct("<qqqqqq")
"""Start, size and hash of a row; in it the index of a block with a text; the size and the hash of the text."""


class StoredBody(NamedTuple):
    """The rows of an answer as its body, one per line."""

    path: str
    rows: bytes = b""
    """The places of the rows, packed as `_ROW`, which takes a quarter of the memory of `RowPlace`s."""

    def read(self) -> bytes:
        """The body. Raises `FileChangedError` if a row has changed in its file."""
        return b"\n".join([place.read() for place in self.places()])

    def places(self) -> list[RowPlace]:
        """The places of the rows."""
        return [RowPlace(self.path, *row) for row in _ROW.iter_unpack(self.rows)]

    def with_row(self, place: RowPlace) -> "StoredBody":
        """The body with a further row of the same file."""
        return StoredBody(self.path, self.rows + _ROW.pack(*place[1:]))


_SAME = slice(4 * 8, None)
"""The size and the hash of the text in `StoredText.place`."""


class StoredText(NamedTuple):
    """A text in a row of a file. Two such texts are equal if their sizes and hashes are."""

    path: str
    place: bytes
    """The place of the text, packed as `_TEXT`, which takes half of the memory of numbers."""
    pick: Callable[[Any, int], str]
    """The function that finds the text in the row's value, by the index of its block."""

    @property
    def size(self) -> int:
        """The number of characters of the text."""
        size: int = _TEXT.unpack(self.place)[4]
        return size

    def __eq__(self, other: object) -> bool:
        return type(other) is StoredText and self.place[_SAME] == other.place[_SAME]

    def __ne__(self, other: object) -> bool:  # the inherited one would compare the places
        return not self == other

    def __hash__(self) -> int:
        return hash(self.place[_SAME])

    def read(self) -> str:
        """The text. Raises `FileChangedError` if its row is no longer in the file."""
        start, size, check, number, _, _ = _TEXT.unpack(self.place)
        return _read(RowPlace(self.path, start, size, check), number, self.pick)


@lru_cache(maxsize=16)  # a view reads the same text several times
def _read(place: RowPlace, number: int, pick: Callable[[Any, int], str]) -> str:
    row = place.read()
    try:
        value = from_json(row)
    except ValueError:
        value = traffic.reparse(row)
    return pick(value, number)


class StoredResult(ToolResultPart):
    """A result whose text is in its file. It is no refusal or interruption: such texts stay in memory."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The text, read on access. Raises `FileChangedError` if its row is no longer in the file."""
        stored: object = self[2]  # the field `text`, which this property hides
        return stored.read() if isinstance(stored, StoredText) else str(stored)

    @property
    def size(self) -> int:
        """The number of characters of the text."""
        stored: object = self[2]
        return stored.size if isinstance(stored, StoredText) else len(str(stored))

    @property
    def text_key(self) -> Hashable:
        """A key that is equal for equal texts."""
        return self[2]


# -- The results of calls: those that a request sends, and those that stay in their file -----------------------------


class ResultsRow(Protocol):
    """A row with results, and its line."""

    @property
    def line(self) -> int:
        """Its line."""

    @property
    def results(self) -> tuple[ToolResultPart, ...]:
        """Its results."""


class AnsweredCalls(Protocol):
    """An answer with the rows after it, and the result of each call by its id."""

    @property
    def after(self) -> Sequence[ResultsRow]:
        """The rows after it."""

    @property
    def results(self) -> Mapping[str, ToolResultPart]:
        """Id of a call -> its result."""


def results_between(
    before: AnsweredCalls | None, rows: Sequence[ResultsRow], line: int
) -> tuple[ToolResultPart, ...]:
    """The results in the rows, and those of parallel calls, which are on other branches below their own calls."""
    found = [part for row in rows for part in row.results]
    if before is None or not found:
        return tuple(found)
    there = {part.call_id for part in found}
    others = [part for row in before.after if row.line < line for part in row.results if part.call_id not in there]
    first = before.results if others else {}  # a call may have two results, of which the first counts
    return (*(part for part in others if first.get(part.call_id or "") is part), *found)


def store_result(
    part: ToolResultPart, place: RowPlace | None, number: int, pick: Callable[[Any, int], str]
) -> ToolResultPart:
    """The result of the row at `place`, whose text is read again on access; `pick` finds the text of block `number`. A
    result that is short or reports a refusal or an interruption stays in memory."""
    text = part.text
    if place is None or len(text) <= SHORT or begins_as_refusal(part) or interruption(text) or placeholder(part):
        return part
    stays = StoredText(place.path, _TEXT.pack(*place[1:], number, len(text), hash(text)), pick)
    return StoredResult(part.call_id, part.name, stays, is_error(part), part.json)  # type: ignore[arg-type]
