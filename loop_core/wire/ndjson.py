"""Newline-delimited JSON: bytes in any chunks -> one frame a line. Framing only; blank lines are skipped.

A body whose first line is no whole value was printed over several lines, as a server or a person does with one answer:
it is read value by value instead.
"""

from __future__ import annotations

from pydantic_core import from_json

from loop_core.wire.json_array import JSONSequence
from loop_core.wire.sse import Frame

_BOM = b"\xef\xbb\xbf"


class NDJSON:
    """An incremental line splitter; `feed` returns the complete lines, `flush` the one without its newline."""

    __slots__ = ("_begun", "_offset", "_pending", "_values")

    def __init__(self) -> None:
        self._pending = bytearray()
        self._offset = 0  # of the first pending byte in the body
        self._begun = False  # a line was met that is a value
        self._values: JSONSequence | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes; returns the lines that they completed."""
        if self._values is not None:
            return self._values.feed(data)
        if self._pending:
            self._pending += data
            if b"\n" not in data:
                return []
            data = bytes(self._pending)
        if not self._begun and self._spread(data):
            self._values = JSONSequence()
            return self._values.feed(data)
        lines = data.split(b"\n")
        self._pending = bytearray(lines.pop())
        return self._frames(lines)

    def flush(self) -> list[Frame]:
        """The last line, if it had no newline."""
        if self._values is not None:
            return self._values.flush()
        rest, self._pending = bytes(self._pending), bytearray()
        return self._frames([rest])
