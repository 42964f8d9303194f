"""Splits Amazon's binary event stream (`application/vnd.amazon.eventstream`) into frames, and encodes frames.

It checks lengths and both checksums and reads headers; it does not look into payloads. A frame is, big-endian:

    u32 total length | u32 headers length | u32 CRC32 of those 8 bytes | headers | payload | u32 CRC32 of all before it

The event's name is the header `:event-type`. Anything else is returned as a frame whose name begins with a colon, so
that it cannot be taken for an event: `:exception:TYPE`, `:error:CODE`, and `:broken:RULE` where the bytes cannot be
read further (a checksum or a length that cannot be, an end inside a frame). No frame follows a broken one, because the
place of the next frame depends on the length.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from loop_core.wire.framing import Frame

CONTENT_TYPE = "application/vnd.amazon.eventstream"
MAX_HEADERS = 128 * 1024
"""The limits on the size of headers and payload in bytes, as in botocore 1.44.5 (eventstream.py)."""
MAX_PAYLOAD = 24 * 1024 * 1024

_PRELUDE = struct.Struct(">III")
_PRELUDE_SIZE = _PRELUDE.size
_CRC = struct.Struct(">I")
_OVERHEAD = _PRELUDE_SIZE + _CRC.size
_FIXED_WIDTHS = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Header type -> the size of its value in bytes, for types of a fixed size: booleans, integers, timestamp, uuid."""
_STRING = 7
_SIZED_TYPES = (6, _STRING)
"""The header types whose value has its length before it: byte arrays (6) and strings (7)."""


class _Kind(NamedTuple):
    """The kind of a frame, as its headers state it."""

    name: str
    message: str | None = None
    """The text of an error, from a header; None if the headers hold none."""


class EventStream:
    """An incremental splitter with the interface of the text framings; `flush` reports an end inside a frame."""

    def __init__(self) -> None:
        self._rest = bytearray()  # the beginning of the next frame
        self._offset = 0  # its place in the body
        self._broken = False

    def feed(self, data: bytes) -> list[Frame]:
        """Reads the next bytes; returns the frames that are complete with them."""
        frames: list[Frame] = []
        self._rest += data
        while not self._broken and len(self._rest) >= _PRELUDE_SIZE:
            total, headers, check = _PRELUDE.unpack_from(self._rest)
            begin, end = self._offset, self._offset + total
            if crc32(self._rest[:8]) != check:
                frames.append(self._break("prelude_crc", begin, begin + _PRELUDE_SIZE))
            elif headers > MAX_HEADERS or not 0 <= total - headers - _OVERHEAD <= MAX_PAYLOAD:
                frames.append(self._break("length", begin, begin + _PRELUDE_SIZE))
            elif len(self._rest) < total:
                break
            else:
                frames.append(self._frame(bytes(self._rest[:total]), _PRELUDE_SIZE + headers, begin, end))
                del self._rest[:total]
                self._offset = end
        if self._broken:
            self._rest.clear()
        return frames

    def _frame(self, frame: bytes, width: int, begin: int, end: int) -> Frame:
        """A whole frame, whose prelude and headers take `width` bytes."""
        if crc32(frame[:-4]) != _CRC.unpack_from(frame, len(frame) - 4)[0]:
            return self._break("message_crc", begin, end)
        kind, payload = _read_kind(frame[_PRELUDE_SIZE:width]), frame[width:-4]
        if kind == _BAD_HEADERS:
            return self._break("headers", begin, end)
        if kind.name[:1] == ":" and (kind.message is not None or not payload):  # an error's text is in a header
            payload = json.dumps({"message": kind.message or ""}).encode()
        return payload, kind.name, begin, end

    def flush(self) -> list[Frame]:
        """A broken frame if the bytes ended inside one; nothing if they ended between two."""
        if self._broken or not self._rest:
            return []
        return [self._break("cut", self._offset, self._offset + len(self._rest))]

    def _break(self, rule: str, start: int, end: int) -> Frame:
        self._broken = True
        return b"{}", f":broken:{rule}", start, end


def read_headers(block: bytes) -> Mapping[str, str | bytes] | None:
    """The headers of a frame: strings as text, any other value as raw bytes; None if they do not fit the block."""
    headers: dict[str, str | bytes] = {}
    position, size = 0, len(block)
    while position < size:
        name_end = position + 1 + block[position]
        if name_end >= size:
            return None
        kind = block[name_end]
        start = name_end + 1
        if kind in _SIZED_TYPES:
            width = int.from_bytes(block[start : start + 2], "big")
            start += 2
        elif kind in _FIXED_WIDTHS:
            width = _FIXED_WIDTHS[kind]
        else:
            return None
        value = block[start : start + width]
        name = block[position + 1 : name_end].decode("utf-8", "replace")
        if start + width > size or name in headers:  # botocore refuses a repeated header too
            return None
        headers[name] = value.decode("utf-8", "replace") if kind == _STRING else value
        position = start + width
    return headers


def encode_frame(payload: bytes, headers: Iterable[tuple[str, str]]) -> bytes:
    """One frame with string headers and both checksums."""
    block = b"".join(
        bytes((len(name.encode()),)) + name.encode() + b"\x07" + len(value.encode()).to_bytes(2, "big") + value.encode()
        for name, value in headers
    )
    prelude = struct.pack(">II", len(payload) + len(block) + _OVERHEAD, len(block))
    message = prelude + _CRC.pack(crc32(prelude)) + block + payload
    return message + _CRC.pack(crc32(message))


def event_frame(name: str, payload: bytes) -> bytes:
    """One event as Bedrock sends it: JSON under its `:event-type`."""
    return _json_frame("event", name, payload)


def exception_frame(kind: str, payload: bytes) -> bytes:
    """One modelled exception as Bedrock sends it: JSON under its `:exception-type`."""
    return _json_frame("exception", kind, payload)


def _json_frame(kind: str, name: str, payload: bytes) -> bytes:
    return encode_frame(
        payload, ((f":{kind}-type", name), (":content-type", "application/json"), (":message-type", kind)))


_BAD_HEADERS = _Kind(":broken:headers")


@lru_cache(maxsize=256)  # a stream repeats a few kinds of event
def _read_kind(block: bytes) -> _Kind:
    headers = read_headers(block)
    if headers is None:
        return _BAD_HEADERS
    words = {name: value for name, value in headers.items() if isinstance(value, str)}
    message_type = words.get(":message-type", "event")
    if message_type == "exception":
        return _Kind(f":exception:{words.get(':exception-type', '')}")
    if message_type == "error":
        return _Kind(f":error:{words.get(':error-code', '')}", words.get(":error-message", ""))
    name = words.get(":event-type", "")
    return _Kind("" if name.startswith(":") else name)  # only the engine's names begin with a colon


def reseal(data: bytes, before: bytes) -> bytes:
    """Computes new checksums for a stream in which bytes were replaced by the same number of other bytes; `before` is
    the stream before the replacement. A frame whose checksum was wrong before keeps it, so the damage stays visible."""
    if data == before or len(data) != len(before):
        return data
    sealed, at = bytearray(data), 0
    while at + _PRELUDE_SIZE + 4 <= len(before):
        total = int.from_bytes(before[at : at + 4], "big")
        end = at + total
        if total < _PRELUDE_SIZE + 4 or end > len(before):
            break
        if _CRC.unpack(before[end - 4 : end])[0] == crc32(before[at : end - 4]):
            sealed[end - 4 : end] = _CRC.pack(crc32(bytes(sealed[at : end - 4])))
        at = end
    return bytes(sealed)
