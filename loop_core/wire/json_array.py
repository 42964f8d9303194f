"""A JSON array that is streamed (Gemini without `alt=sse`): bytes in any chunks -> one frame an element.

Framing only. Elements are objects; a bracket inside a string does not count. A body that ends without its `]` is cut:
`closed` tells.
"""

from __future__ import annotations

import re

from loop_core.wire.sse import Frame

_TOKEN = re.compile(rb'["{}\[\]]')
_STRING_END = re.compile(rb'["\\]')


class JSONArray:
    """An incremental splitter of the elements of one array."""

    __slots__ = ("_buffer", "_offset", "_scan", "_depth", "_in_string", "_start", "closed")

    def __init__(self) -> None:
        self._buffer = b""
        self._offset = 0
        self._scan = 0
        self._depth = 0
        self._in_string = False
        self._start = -1
        self.closed = False

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes; returns the elements that they completed."""
        self._buffer += data
        buffer, scan, frames = self._buffer, self._scan, list[Frame]()
        while True:
            if self._in_string:
                match = _STRING_END.search(buffer, scan)
                if match is None:
                    scan = len(buffer)
                    break
                if match.group() == b"\\":
                    if match.end() == len(buffer):
                        scan = match.start()
                        break
                    scan = match.end() + 1
                    continue
                self._in_string = False
                scan = match.end()
                continue
            match = _TOKEN.search(buffer, scan)
            if match is None:
                scan = len(buffer)
                break
            token, scan = match.group(), match.end()
            if token == b'"':
                self._in_string = True
            elif token in (b"{", b"["):
                self._depth += 1
                if self._depth == 2:
                    self._start = match.start()
            else:
                self._depth -= 1
                if self._depth == 1 and self._start >= 0:
                    frames.append((buffer[self._start : scan], None, self._offset + self._start, self._offset + scan))
                    self._start = -1
                elif self._depth == 0:
                    self.closed = True
        keep = self._start if self._start >= 0 else scan
        self._buffer, self._scan, self._offset = buffer[keep:], scan - keep, self._offset + keep
        self._start = 0 if self._start >= 0 else -1
        return frames

    def flush(self) -> list[Frame]:
        """What is left of an element that was never closed; it will not parse, and says so by its place."""
        if self._start < 0 or self._depth < 2:
            return []
        return [(self._buffer, None, self._offset, self._offset + len(self._buffer))]
