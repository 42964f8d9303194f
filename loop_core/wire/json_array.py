"""JSON values one after another: bytes in any chunks -> one frame a value, without parsing any.

`JSONArray` gives the elements of one array that is streamed (Gemini without `alt=sse`), `JSONSequence` the values of a
body that holds one or more of them, printed over several lines. Framing only. Values are objects or arrays; a bracket
inside a string does not count. A body that ends inside a value delivers what there is of it, which will not parse;
`closed` tells whether the array met its `]`.
"""

from __future__ import annotations

import re

from loop_core.wire.sse import Frame

_NEXT_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+([{}\[\]])', re.DOTALL)
_PLAIN = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_STRING_END = re.compile(rb'["\\]')
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"{}[]'))
_SHAPES = 64


class JSONArray:
    """An incremental splitter of the elements of one array."""

    __slots__ = ("_ahead", "_buffer", "_depth", "_in_string", "_lined", "_offset", "_scan", "_shapes", "_start",
                 "closed")

    level = 1
    """How deep the values stand: 1 inside an array, 0 on their own."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._offset = 0  # of the buffer's first byte in the body
        self._scan = 0  # everything before this has been read
        self._depth = 0
        self._in_string = False
        self._start = -1  # of the value that is open, in the buffer
        self._shapes: set[bytes] = set()  # structures of whole values that were met
        self._lined = True  # every line that begins with a comma parted two values so far
        self._ahead = True  # such a line may stand in the bytes at hand
        self.closed = False

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes; returns the values that they completed."""
        self._buffer += data
        self._ahead = True
        frames: list[Frame] = []
        if not self.closed:
            self._read(frames)
        used = len(self._buffer) if self.closed else self._scan if self._start < 0 else self._start
        del self._buffer[:used]
        self._offset, self._scan = self._offset + used, self._scan - used
        self._start -= used if self._start >= 0 else 0
        return frames

    def flush(self) -> list[Frame]:
        """What is left of a value that was never closed; it will not parse, and says so by its place."""
        if self._start < 0:
            return []
        return [(bytes(self._buffer), None, self._offset, self._offset + len(self._buffer))]

    def _read(self, frames: list[Frame]) -> None:
        buffer, level = self._buffer, self.level
        while not self.closed:
            if self._in_string and not self._leave_string():
                return
            bracket = _NEXT_BRACKET.match(buffer, self._scan)
            if bracket is None:
                self._to_open_string()
                if self._in_string:
                    continue
                return
            self._scan = bracket.end()
            if bracket.group(1) in b"{[":
                if self._depth == level:
                    self._start = self._scan - 1
                    if self._skip_known(frames):
                        continue
                self._depth += 1
            else:
                self._depth = max(0, self._depth - 1)
                if self._depth == level and self._start >= 0:
                    value = bytes(buffer[self._start : self._scan])
                    frames.append((value, None, self._offset + self._start, self._offset + self._scan))
                    self._start = -1
                self.closed = level == 1 and self._depth < 1

    def _skip_known(self, frames: list[Frame]) -> bool:
        """Takes the value that begins here in one step, where the line break after it is here too.

        Walking the brackets of a value costs more than parsing it. Its quotes and brackets alone tell whether it is
        whole, and nearly all values of a stream share them, so that walk is made once for each.
        """
        buffer, start = self._buffer, self._start
        end = buffer.find(b"\n,", start) if self._lined and self._ahead else -1
        if end < 0:
            self._ahead = False
            return False
        shape = value = bytes(buffer[start:end]).rstrip()
        if b"\\" in value:
            shape = value.replace(b"\\\\", b"").replace(b'\\"', b"")
        shape = shape.translate(None, _NOT_STRUCTURE)
        if value[-1] not in b"}]" or (shape not in self._shapes and not _is_whole(shape)):
            self._lined = False
            return False
        if len(self._shapes) < _SHAPES:
            self._shapes.add(shape)
        self._scan = start + len(value)
        frames.append((value, None, self._offset + start, self._offset + self._scan))
        self._start = -1
        return True

    def _leave_string(self) -> bool:
        """Moves behind the string that is open; False where it does not end in these bytes."""
        buffer, scan = self._buffer, self._scan
        while True:
            mark = _STRING_END.search(buffer, scan)
            if mark is None:
                self._scan = len(buffer)
                return False
            if mark.group() == b'"':
                self._scan, self._in_string = mark.end(), False
                return True
            if mark.end() == len(buffer):
                self._scan = mark.start()
                return False
            scan = mark.end() + 1

    def _to_open_string(self) -> None:
        plain = _PLAIN.match(self._buffer, self._scan)
        self._scan = plain.end() if plain else self._scan
        if self._scan < len(self._buffer):
            self._in_string = True
            self._scan += 1


class JSONSequence(JSONArray):
    """An incremental splitter of values that stand one after another."""

    __slots__ = ()
    level = 0


def _is_whole(shape: bytes) -> bool:
    """Whether quotes and brackets are those of exactly one value."""
    depth, quoted = 0, False
    for index, mark in enumerate(shape):
        if mark == 0x22:
            quoted = not quoted
        elif not quoted:
            depth += 1 if mark in b"{[" else -1
            if depth == 0:
                return index == len(shape) - 1
    return False
