"""JSON values one after another: bytes in any chunks -> one frame a value.

`JSONArray` gives the elements of one array that is streamed (Gemini without `alt=sse`), `JSONSequence` the values of a
body that holds one or more of them, printed over several lines. Values are objects or arrays; a bracket inside a string
does not count. A body that ends inside a value delivers what there is of it, which will not parse; `closed` tells
whether the array met its `]`.

Walking over the brackets of a value costs ten times parsing it. So what parted two values is looked for again behind
the next one, and the parser, which has to read the value anyway, says whether it ends there: no text of a JSON object
goes on behind its end. What the parser refuses is walked over, and the walk alone decides where it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from loop_core.fastjson import from_json
from loop_core.wire.sse import Frame

_NEXT_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+([{}\[\]])', re.DOTALL)
_PLAIN = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_STRING_END = re.compile(rb'["\\]')
_FIRST_KEY = re.compile(rb'\{\s*"[^"\\]*"')
_LESSONS = 16
"""Separators that are learned from one body; one that parts its values in ever other ways is walked over."""


class JSONArray:
    """An incremental splitter of the elements of one array."""

    __slots__ = ("_buffer", "_depth", "_ended", "_gap", "_in_string", "_last", "_lessons", "_offset", "_scan",
                 "_seam", "_searched", "_start", "_sure", "closed")

    level = 1
    """How deep the values stand: 1 inside an array, 0 on their own."""

    def __init__(self) -> None:
        self._buffer: bytes | bytearray = b""  # growing only while it holds less than a value
        self._offset = 0  # of the buffer's first byte in the body
        self._scan = 0  # everything before this has been walked over
        self._depth = 0
        self._in_string = False
        self._start = -1  # of the value that is open, in the buffer
        self._ended = -1  # where the value before it ended, if what follows that is still in the buffer
        self._last = b""  # its last byte
        self._seam = b""  # what ended a value and began the next one
        self._gap = 0  # how much of the seam belongs to neither
        self._lessons = 0
        self._searched = 0  # no seam begins before this byte of the body
        self._sure = 0  # a value that begins before this byte of the body is walked over
        self.closed = False

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes; returns the values that they completed.

        A value that only the next one shows to be complete comes with that, or with `flush`.
        """
        return [(payload, None, start, end) for payload, _, start, end in self.values(data)]

    def flush(self) -> list[Frame]:
        """What is left, last that of a value that was never closed; it will not parse, and says so by its place."""
        frames = self.feed(b"")
        if self._start >= 0:
            frames.append((bytes(self._buffer), None, self._offset, self._offset + len(self._buffer)))
        return frames

    def values(self, data: bytes) -> Iterator[tuple[bytes, dict[str, Any] | None, int, int]]:
        """The same as `feed` one by one, and instead of a name the value, where the parser was asked for it.

        No bytes at all mean that there is nothing to wait for. Everything has to be taken before the next bytes.
        """
        waits = bool(data)
        if data:
            self._buffer += data
        while not self.closed and (self._start >= 0 or self._begin()):
            start, offset = self._start, self._offset
            if self._seam and offset + start >= self._sure:
                cut = self._first_cut()
                buffer, seam, gap = self._buffer, self._seam, self._gap
                while cut >= 0:
                    end = cut + 1
                    payload: Any = buffer[start:end]
                    try:
                        value = from_json(payload)
                    except ValueError:
                        self._sure = offset + end
                        break
                    yield payload, value, offset + start, offset + end
                    start = end + gap
                    cut = buffer.find(seam, start)
                else:
                    self._searched = offset + max(start, len(buffer) - len(seam) + 1)
                if start != self._start:
                    self._start, self._scan, self._depth, self._in_string = start, start + 1, self.level + 1, False
                if waits and cut < 0:
                    if not self._looks_whole(data):
                        break
                    waits = False  # asked once: it is asked of all that is left
            if not self._end():
                break
            start, end, self._start = self._start, self._ended, -1
            yield bytes(self._buffer[start:end]), None, offset + start, offset + end
        self._forget()

    # -- guessing ------------------------------------------------------------------------------------------------

    def _first_cut(self) -> int:
        """Where the seam behind the value that is open begins; -1 where it is not in these bytes."""
        cut = self._buffer.find(self._seam, max(self._start, self._searched - self._offset))
        if cut >= 0 and type(self._buffer) is not bytes:
            self._buffer = bytes(self._buffer)
        return cut

    def _looks_whole(self, data: bytes) -> bool:
        """Whether the value that is open may end in these bytes, the last of which are `data`."""
        if data.rstrip()[-1:] not in (b"", b"}", b"]", b","):
            return False
        buffer, start = self._buffer, self._start
        return type(buffer) is bytearray or buffer.count(b"{", start) == buffer.count(b"}", start)

    def _learn(self) -> None:
        """Keeps what stands between the value that begins here and the one before it.

        The first key of a value belongs to it: it tells the values from the objects inside them.
        """
        key = _FIRST_KEY.match(self._buffer, self._start)
        if key is None:
            return
        seam = self._last + self._buffer[self._ended : self._start] + key.group()
        if seam != self._seam:
            self._lessons += 1
            self._seam = seam if self._lessons <= _LESSONS else b""
            self._gap, self._searched, self._sure = self._start - self._ended, 0, 0

    # -- walking -------------------------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Walks to where the next value begins; False where none does in these bytes."""
        while bracket := self._bracket():
            if bracket in b"{[":
                self._depth += 1
                if self._depth > self.level:
                    self._start = self._scan - 1
                    if self._ended >= 0:
                        self._learn()
                    return True
            else:
                self._depth = max(0, self._depth - 1)
                if self._depth < self.level:
                    self.closed = True
                    return False
        return False

    def _end(self) -> bool:
        """Walks to the end of the value that is open; False where that is not in these bytes."""
        while bracket := self._bracket():
            self._depth += 1 if bracket in b"{[" else -1
            if self._depth == self.level:
                self._ended, self._last = self._scan, bracket
                return True
        return False

    def _bracket(self) -> bytes:
        """Walks over the next bracket outside strings; empty where there is none in these bytes."""
        while not self._in_string or self._leave_string():
            found = _NEXT_BRACKET.match(self._buffer, self._scan)
            if found is not None:
                self._scan = found.end()
                return found.group(1)
            self._to_open_string()
            if not self._in_string:
                break
        return b""

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

    def _forget(self) -> None:
        """Drops the bytes that are done with."""
        used = len(self._buffer) if self.closed else self._scan if self._start < 0 else self._start
        if used:
            self._buffer = self._buffer[used:]
        elif type(self._buffer) is bytes:
            self._buffer = bytearray(self._buffer)  # bytes that are added to bytes would be copied each time
        self._offset, self._scan, self._ended = self._offset + used, self._scan - used, self._ended - used
        self._start -= used if self._start >= 0 else 0


class JSONSequence(JSONArray):
    """An incremental splitter of values that stand one after another."""

    __slots__ = ()
    level = 0
