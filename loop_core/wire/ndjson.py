"""Newline-delimited JSON: bytes in any chunks -> one frame a line. Framing only; blank lines are skipped.

A body whose first line is no whole value was printed over several lines, as one answer often is for a person: it is
read value by value instead.
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
        self._begun = False  # the first line was a whole value
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
        if not self._begun:
            first, newline, _ = data.removeprefix(_BOM).lstrip().partition(b"\n")
            if newline and not _is_value(first):
                self._values = JSONSequence()
                return self._values.feed(data)
            self._begun = bool(newline)
        if not self._begun:
            self._pending = bytearray(data)
            return []
        lines = data.split(b"\n")
        self._pending = bytearray(lines.pop())
        return self._frames(lines, b"\r" in data)

    def flush(self) -> list[Frame]:
        """The last line, if it had no newline."""
        if self._values is not None:
            return self._values.flush()
        lines, self._pending = bytes(self._pending).split(b"\n"), bytearray()
        return self._frames(lines, True)

    def _frames(self, lines: list[bytes], returns: bool) -> list[Frame]:
        frames: list[Frame] = []
        append, start = frames.append, self._offset
        if start == 0 and lines and lines[0].startswith(_BOM):
            lines[0], start = lines[0][3:], 3
        for line in lines:
            end = start + len(line)
            if returns and line[-1:] == b"\r":
                line = line[:-1]
            if line and not line.isspace():
                append((line, None, start, start + len(line)))
            start = end + 1
        self._offset = start
        return frames


def _is_value(line: bytes) -> bool:
    try:
        from_json(line)
    except ValueError:
        return False
    return True
