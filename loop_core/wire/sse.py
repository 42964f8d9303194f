"""Server-sent events: bytes in any chunks -> (payload, event name, start, end).

Owns framing only: it does not know JSON, `[DONE]` or any provider. Lines may end in LF, CR LF or CR, mixed; several
`data:` lines join with LF; comment lines and unknown fields are skipped; an event that is pending at the end of the
bytes is delivered although its blank line never came (openai-node#2725: the stop reason was lost with it).
"""

from __future__ import annotations

import re

Frame = tuple[bytes, str | None, int, int]
"""Payload, event name (None where unnamed), first byte and end of the frame in the body."""

_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?:\r\n|\n|\r)")
_BOM = b"\xef\xbb\xbf"


class SSE:
    """An incremental splitter; `feed` returns the frames that are complete, `flush` what is left at the end."""

    __slots__ = ("_buffer", "_offset", "_scanned", "_names")

    def __init__(self) -> None:
        self._buffer = b""
        self._offset = 0  # of the buffer's first byte in the body
        self._scanned = 0  # the buffer holds no separator that begins before this
        self._names: dict[bytes, str] = {}

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes; returns the events that they completed."""
        buffer = self._buffer + data if self._buffer else data
        frames: list[Frame] = []
        position = 0
        if b"\r" not in buffer:
            find = buffer.find
            base = self._offset
            end = find(b"\n\n", self._scanned)
            while end >= 0:
                block = buffer[position:end]
                # Nearly every event of every provider is one `data:` line: no line splitting for those.
                if block[:6] == b"data: " and b"\n" not in block:
                    frames.append((block[6:], None, base + position, base + end))
                else:
                    self._event(block, base + position, frames)
                position = end + 2
                end = find(b"\n\n", position)
        else:
            match = _BLANK.search(buffer, self._scanned)
            while match:
                self._event(buffer[position : match.start()], self._offset + position, frames)
                position = match.end()
                match = _BLANK.search(buffer, position)
        self._buffer = buffer[position:]
        self._offset += position
        self._scanned = max(0, len(self._buffer) - 3)
        return frames

    def flush(self) -> list[Frame]:
        """The event that was pending when the bytes ended, if any."""
        frames: list[Frame] = []
        if self._buffer.strip():
            self._event(self._buffer, self._offset, frames)
        self._offset += len(self._buffer)
        self._buffer, self._scanned = b"", 0
        return frames

    def _event(self, block: bytes, start: int, frames: list[Frame]) -> None:
        end = start + len(block)
        while block[:1] in (b"\n", b"\r"):
            block, start = block[1:], start + 1
        if start == 0 and block.startswith(_BOM):
            block, start = block[3:], 3
        name: str | None = None
        data: list[bytes] = []
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        for line in block.split(b"\n"):
            if line[:6] == b"data: ":
                data.append(line[6:])
            elif line[:5] == b"data:":
                data.append(line[5:])
            elif line == b"data":
                data.append(b"")
            elif line[:6] == b"event:":
                key = line[6:].strip()
                name = self._names.get(key)
                if name is None:
                    name = self._names[key] = key.decode("utf-8", "replace")
        if data:
            frames.append((data[0] if len(data) == 1 else b"\n".join(data), name, start, end))
