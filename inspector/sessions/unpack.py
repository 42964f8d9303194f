"""Compressed bytes -> plain bytes, bounded; for bodies that a recorder kept as they came, and for packed files."""

from __future__ import annotations

LIMIT = 1 << 29
"""No body of a model is half a gigabyte; a compressed one that claims to be is not unpacked."""


def unpack(data: bytes, coding: str = "") -> bytes | str:
    """The plain bytes, or why they cannot be had. What `coding` says counts only where the bytes agree."""
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
        plain = stream.decompress(data, LIMIT)
    except zlib.error:
        return "its body is compressed and damaged"
    if not plain and not stream.eof:
        return "its body is compressed and damaged"
    return plain if not stream.unconsumed_tail else "its body is compressed and far too large"
