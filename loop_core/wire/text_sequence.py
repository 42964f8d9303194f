"""JSON texts in a row, each between a record separator and a line break (RFC 7464): messages of a WebSocket, joined.

Framing only. The separator stands in no JSON text, so that a message may hold any line breaks of its own.
"""

from __future__ import annotations

from loop_core.wire.sse import Frame

SEPARATOR = b"\x1e"


def joined(messages: list[bytes]) -> bytes:
    """Messages as one body."""
    return b"".join(SEPARATOR + message + b"\n" for message in messages)


class TextSequence:
    """An incremental splitter; a text is complete where the next one begins."""

    __slots__ = ("_held", "_offset")

    def __init__(self) -> None:
        self._held: list[bytes] = []  # of the text that is not complete yet, its separator included
        self._offset = 0  # of its first byte in the body

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes; returns the texts that they completed."""
        if SEPARATOR not in data:
            self._held.append(data)
            return []
        texts = b"".join([*self._held, data]).split(SEPARATOR)
        self._held = [texts.pop()]
        return self._frames(texts)

    def flush(self) -> list[Frame]:
        """The last text."""
        texts, self._held = [b"".join(self._held)], []
        return self._frames(texts)

    def _frames(self, texts: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        for text in texts:
            payload = text.strip()
            if payload:
                start = self._offset + text.index(payload)
                frames.append((payload, None, start, start + len(payload)))
            self._offset += len(text) + len(SEPARATOR)
        return frames
