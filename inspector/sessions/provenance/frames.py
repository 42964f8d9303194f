"""The frames of one body as its decoder was given them, and where each byte of a payload stands in the body."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple

from loop_core.values import ChatResponse
from loop_core.wire import wire
from loop_core.wire.base import Decoder
from loop_core.wire.reads import Found, Row, find


class Frame(NamedTuple):
    """One JSON text that was read: its place as evidence names it, and its pieces where lines were joined."""

    payload: bytes
    event: Mapping[str, Any]
    name: str | None
    start: int
    end: int
    pieces: tuple[tuple[int, int], ...]
    """Where a piece begins in the payload, and in the body; one piece nearly always, none where it was made up."""

    def found(self, rows: tuple[Row, ...]) -> list[Found]:
        """The values that the rows name, with their places in the body."""
        if not self.pieces:
            return []
        if len(self.pieces) == 1:
            return find(rows, self.payload, self.event, self.name, self.pieces[0][1])
        found = find(rows, self.payload, self.event, self.name)
        places = [self.place(each.start, each.end) for each in found]
        return [each._replace(start=start, end=end) for each, (start, end) in zip(found, places, strict=True)]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Bytes of the payload -> bytes of the body."""
        return self._at(start), self._at(end - 1) + 1

    def _at(self, offset: int) -> int:
        within, at = self.pieces[bisect_right(self.pieces, offset, key=lambda piece: piece[0]) - 1]
        return at + offset - within


class _Recording(Decoder):
    """Beside what the format's decoder does with a frame, keeps it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.read: list[tuple[bytes, Mapping[str, Any], str | None, int, int]] = []

    def on_event(self, event: Any, name: str | None, start: int, end: int) -> None:
        """Keeps the event of a stream."""
        self.read.append((self.payload, event, name, start, end))
        super().on_event(event, name, start, end)

    def on_body(self, body: Any) -> None:
        """Keeps the whole body."""
        self.read.append((self.slice_bytes(), body, None, 0, self.size))
        super().on_body(body)


def frames(api: str, body: bytes, **options: Any) -> tuple[list[Frame], ChatResponse]:
    """Every JSON text that the decoder read, and what it made of them.

    Raises:
        CallerError: there is no such API.
        DecodeError: the bytes are no body of it.
    """
    recording = type("Recording", (_Recording, wire(api).decoder), {})(**options)
    recording.feed(body)
    response = recording.close()
    return [
        Frame(payload, event, name, start, end, _pieces(body, payload, start, end))
        for payload, event, name, start, end in recording.read
    ], response


def _pieces(body: bytes, payload: bytes, start: int, end: int) -> tuple[tuple[int, int], ...]:
    at = body.rfind(payload, start, end)
    if at >= 0:
        return ((0, at),)
    wrapped = payload.removeprefix(b'{"error":')
    at = body.rfind(wrapped[:-1], start, end) if len(wrapped) < len(payload) else -1
    if at >= 0:
        return ((0, start), (len(payload) - len(wrapped), at))  # a field `error:`, delivered as the error of an object
    found: list[tuple[int, int]] = []
    offset = 0
    for line in payload.split(b"\n"):
        start = body.find(b"data:", start, end) + 5
        if start < 5:
            return ()  # it does not stand in the body: an error that a frame's headers told
        start += body[start : start + 1] == b" "
        found.append((offset, start))
        offset += len(line) + 1
        start += len(line)
    return tuple(found)
