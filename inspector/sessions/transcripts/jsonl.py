"""The lines of a transcript: JSON objects with their bytes and numbers, and what of the file is none.

A line that is cut, broken, repeated or of an unknown kind never hides the others: it is counted and told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic_core import from_json

from inspector.sessions import detection, redact, traffic
from inspector.sessions.recording import Reading, unusable
from loop_core.wire.jsonslice import byte_span

_TOLD = 5
"""Of more damaged lines only so many are named."""

Kinds = Mapping[str, tuple[type, ...]]
"""Member -> the types of value that it can have."""
Fields = Mapping[str, Kinds]
"""A member of a row that is an object, or "" for the row itself -> its members that are read, and their types."""
_WORDS: Mapping[type, str] = {
    str: "text", dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number",
    type(None): "null",
}


class Line(NamedTuple):
    """One line of a file: its number from 1, its bytes without credentials, and the object that it holds."""

    number: int
    data: bytes
    value: dict[str, Any]


class Lines:
    """The lines of one file, read once, and what was noticed on the way."""

    def __init__(self, data: bytes, fields: Fields) -> None:
        self._data = data.removeprefix(b"\xef\xbb\xbf")
        self._fields = fields
        self._suspicious = detection.suspicious(data)
        self._damaged: list[str] = []
        self._odd = 0
        self.passed: Counter[str] = Counter()
        """Records that are known and say nothing of exchanges, by type."""
        self.unknown: Counter[str] = Counter()
        """Records of types that are not known."""
        self.masked: Counter[str] = Counter()
        """Credentials that were masked, by kind."""

    def __iter__(self) -> Iterator[Line]:
        """Every line that is a JSON object."""
        data, start, number, size = self._data, 0, 0, len(self._data)
        while start < size:
            newline = data.find(b"\n", start)
            end = size if newline < 0 else newline
            number += 1
            piece = data[start:end]
            start = end + 1
            if not piece or piece.isspace():
                continue
            if self._suspicious:
                piece = redact.body(piece, self.masked)
            value = self._parsed(piece, number, last=newline < 0)
            if type(value) is dict:
                self._look(number, value)
                yield Line(number, piece, value)

    def _parsed(self, piece: bytes, number: int, last: bool) -> Any:
        try:
            value = from_json(piece)
        except ValueError:
            try:
                value = traffic.reparse(piece)
            except ValueError:
                if last:
                    self._damaged.append(
                        f"line {number}, the last, is cut after {len(piece):,} bytes; what stands before it was read"
                    )
                else:
                    self._damaged.append(f"line {number} is no JSON: expected an object; the rest was read")
                return None
            if traffic.utf8_error(piece) is not None:
                self._damaged.append(f"line {number} holds invalid UTF-8, shown as U+FFFD")
        if type(value) is not dict:
            self._odd += 1
        return value

    def _look(self, number: int, value: dict[str, Any]) -> None:
        """Notes the members whose value is of no type that they can have; what reads them takes them for absent."""
        for name, kinds in self._fields.items():
            held = value.get(name) if name else value
            if type(held) is not dict:
                continue
            for member, wanted in kinds.items():
                given = held.get(member)
                if given is not None and type(given) not in wanted:
                    place = f"{name}.{member}" if name else member
                    self._damaged.append(
                        f"line {number}: {place} is {_WORDS[type(given)]}, and {_WORDS[wanted[0]]} was expected; "
                        "it was passed over"
                    )

    def lost(self, number: int, why: Exception) -> None:
        """Notes a line that nothing can be made of."""
        self._damaged.append(f"line {number} {unusable(why)}; the rest was read")

    def count(self, kind: Any, known: frozenset[str]) -> None:
        """Counts a record that says nothing of exchanges."""
        name = kind if isinstance(kind, str) and kind.isprintable() else "no type"
        (self.passed if name in known else self.unknown)[name[:40]] += 1

    def report(self, reading: Reading) -> None:
        """Tells of everything that is not among the exchanges."""
        said = reading.notices
        said += self._damaged[:_TOLD]
        if len(self._damaged) > _TOLD:
            said.append(f"{len(self._damaged) - _TOLD:,} more damaged lines were passed over")
        if self._odd:
            said.append(f"lines that are no JSON object were passed over: {self._odd:,}")
        if self.unknown:
            said.append(f"records of unknown type were passed over: {_listed(self.unknown)}")
        if self.passed:
            said.append(f"records that hold no exchange: {_listed(self.passed)}")


def slice_of(data: bytes, *path: str | int) -> str | None:
    """The verbatim JSON of the value at `path` of a line; None where there is none."""
    span = byte_span(data, 0, *path)
    return None if span is None else data[span[0] : span[1]].decode("utf-8", "replace")


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{kind} ({count:,})" for kind, count in sorted(counts.items()))
