"""Newline-delimited JSON: bytes in any chunks -> one frame a line. Framing only; empty lines are skipped.

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

    __slots__ = ("_begun", "_held", "_offset", "_values")

    def __init__(self) -> None:
        self._held: list[bytes] = []  # of the line that is not complete yet
        self._offset = 0  # of its first byte in the body
        self._begun = False  # the first line was a whole value
        self._values: JSONSequence | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes; returns the lines that they completed."""
        if self._values is not None:
            return self._values.feed(data)
        held = self._held
        if b"\n" not in data:
            held.append(data)
            return []
        if held:
            held.append(data)
            data = b"".join(held)
            held.clear()
        if not self._begun and not self._begin(data):
            return self._values.feed(data) if self._values is not None else []
        lines = data.split(b"\n")
        rest = lines.pop()
        if rest:
            held.append(rest)
        return self._frames(lines)

    def flush(self) -> list[Frame]:
        """The last line, if it had no newline."""
        if self._values is not None:
            return self._values.flush()
        lines = b"".join(self._held).split(b"\n")
        self._held.clear()
        return self._frames(lines)

    def _begin(self, data: bytes) -> bool:
        """Looks at the first line that is not blank, once it is complete."""
        first, newline, _ = data.removeprefix(_BOM).lstrip().partition(b"\n")
        if not newline:
            self._held.append(data)
            return False
        try:
            from_json(first)
        except ValueError:
            self._values = JSONSequence()
            return False
        self._begun = True
        return True

    def _frames(self, lines: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        append, start = frames.append, self._offset
        if start == 0 and lines[0].startswith(_BOM):
            lines[0], start = lines[0][3:], 3
        for line in lines:
            end = start + len(line)
            if line:
                append((line, None, start, end))
            start = end + 1
        self._offset = start
        return frames
