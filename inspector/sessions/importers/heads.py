"""The beginnings of a file, by which its format is recognised."""

import re
from collections.abc import Iterator

HEAD = 1 << 16
"""The number of bytes at the beginning of a file by which its format is recognised."""
LONG_HEAD = 1 << 22
"""The number of those bytes if the first do not show a format: the first request of a log may hold a long prompt."""


def beginnings(data: bytes) -> Iterator[bytes]:
    """The beginnings of a file by which it may be recognised, the shortest first; of a long first row no part."""
    if data[:1] not in (b"{", b"[") or b"\n" in data[:HEAD] or b"\n" not in data[HEAD:LONG_HEAD].rstrip():
        yield data[:HEAD]
    if len(data) > HEAD:
        yield data[:LONG_HEAD]
    if len(data) > LONG_HEAD and max(map(len, data[:LONG_HEAD].replace(b'\\"', b"").split(b'"'))) > HEAD:
        yield _without_long_strings(data)


def _without_long_strings(data: bytes) -> bytes:
    """The beginning of JSON without its long strings: a request may hold images of several MB before its model."""
    kept_pieces: list[bytes] = []
    size = 0
    for found in re.finditer(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"?', data, re.DOTALL):
        piece = found[0] if len(found[0]) <= HEAD else b'"'
        kept_pieces.append(piece)
        size += len(piece)
        if size >= LONG_HEAD:
            break
    return b"".join(kept_pieces)
