"""Newline-delimited JSON: bytes in any chunks -> one frame a line. Framing only; blank lines are skipped."""

from __future__ import annotations

from loop_core.wire.sse import Frame


class NDJSON:
    """An incremental line splitter; `feed` returns the complete lines, `flush` the one without its newline."""

    __slots__ = ("_buffer", "_offset")

    def __init__(self) -> None:
        self._buffer = b""
        self._offset = 0

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes; returns the lines that they completed."""
        if b"\n" not in data:
            self._buffer += data
            return []
        lines = (self._buffer + data).split(b"\n")
        self._buffer = lines.pop()
        return self._frames(lines)

    def flush(self) -> list[Frame]:
        """The last line, if it had no newline."""
        rest, self._buffer = self._buffer, b""
        return self._frames([rest])

    def _frames(self, lines: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        start = self._offset
        for line in lines:
            end = start + len(line)
            if line.strip():
                frames.append((line, None, start, end))
            start = end + 1
        self._offset = start
        return frames
