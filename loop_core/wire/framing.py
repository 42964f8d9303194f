"""How the bytes of a body become frames: what every framing offers, and the one of a single JSON value."""

from __future__ import annotations

from typing import Protocol

from loop_core.wire.sse import Frame


class Framing(Protocol):
    """Bytes in, complete frames out."""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""

    def flush(self) -> list[Frame]:
        """What is left at the end."""


class Whole:
    """The framing of a body that is one JSON value: one frame, at the end."""

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        """Keeps the bytes; a JSON value is complete only at the end."""
        self._chunks.append(data)
        return []

    def flush(self) -> list[Frame]:
        """The whole body."""
        body = b"".join(self._chunks)
        return [(body, None, 0, len(body))]
