"""Compressed bytes -> plain bytes, in pieces and bounded; for bodies kept as they came, and for packed files."""

from __future__ import annotations

from typing import Any

from inspector.sessions.intake import PIECE, Room, most

_FED = 1 << 16
"""Compressed bytes that are given to the decompressor at once: what it leaves is copied."""


def unpack(data: bytes, coding: str = "", room: Room | None = None) -> bytes | str:
    """The plain bytes, or why they cannot be had. What `coding` says counts only where the bytes agree.

    `room` is what may be unpacked of all bodies together; nothing is kept of one that does not fit.
    """
    import zlib

    if data[:2] == b"\x1f\x8b":
        wbits = 31
    elif coding == "deflate" and data[:1] not in (b"{", b"[", b"d", b"e"):
        wbits = 15 if data[:1] == b"\x78" else -15
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        return "its body is compressed with zstd, which is not read"
    elif coding == "br" and not data[:1].isascii():
        return "its body is compressed with br, which is not read"
    else:
        return data
    stream = zlib.decompressobj(wbits)
    try:
        plain = _pieces(stream, data, room or Room())
    except zlib.error:
        return "its body is compressed and damaged"
    if plain is None:
        return f"its body is compressed and far too large: more than {most():,} bytes of all bodies together"
    return plain if plain or stream.eof else "its body is compressed and damaged"


def _pieces(stream: Any, data: bytes, room: Room) -> bytes | None:
    """The plain bytes; None where there is no room for them."""
    pieces: list[bytes] = []
    for start in range(0, len(data), _FED):
        waiting = data[start : start + _FED]
        while waiting and not stream.eof:
            piece = stream.decompress(waiting, PIECE)
            waiting = stream.unconsumed_tail
            if not room.take(len(piece)):
                return None
            pieces.append(piece)
    return b"".join(pieces)
