"""The members of a ZIP archive in memory: stored, deflated, or packed with zstd, which `zipfile` of Python 3.11 lacks.

Nothing is unpacked beyond a bound. An archive without its directory, as a writer leaves it that was killed, is read by
the headers before its members.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from inspector.sessions.intake import PIECE, Room, too_large, unpack

_LOCAL = b"PK\x03\x04"
_HEADER = 30
_STORED, _DEFLATED, _ZSTD = 0, 8, 93


class ZipMember(NamedTuple):
    """One member: its name, how it is packed, and where its header stands."""

    name: str
    method: int
    start: int
    size: int
    """Packed."""


def members(data: bytes) -> list[ZipMember]:
    """What the directory names; without one, what stands before the first damage."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [ZipMember(each.filename, each.compress_type, each.header_offset, each.compress_size)
                    for each in archive.infolist()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return list(_by_headers(data))


def _by_headers(data: bytes) -> Iterator[ZipMember]:
    at = 0
    while data.startswith(_LOCAL, at) and at + _HEADER <= len(data):
        method, size = (int.from_bytes(data[at + first : at + last], "little") for first, last in ((8, 10), (18, 22)))
        body = _body_at(data, at)
        if body + size > len(data) or not size:
            return
        name = data[at + _HEADER : at + _HEADER + int.from_bytes(data[at + 26 : at + 28], "little")]
        yield ZipMember(name.decode("utf-8", "replace"), method, at, size)
        at = body + size


def _body_at(data: bytes, at: int) -> int:
    name, extra = (int.from_bytes(data[at + first : at + first + 2], "little") for first in (26, 28))
    return at + _HEADER + name + extra


def content(data: bytes, member: ZipMember, room: Room) -> bytes | str:
    """The bytes of a member, or why they cannot be had."""
    if not data.startswith(_LOCAL, member.start):
        return "its header is damaged"
    begins = _body_at(data, member.start)
    packed = data[begins : begins + member.size]
    if len(packed) < member.size:
        return "it is cut"
    if member.method == _STORED:
        return packed if room.take(len(packed)) else too_large()
    if member.method == _ZSTD:
        return unpack(packed, room=room)
    if member.method != _DEFLATED:
        return f"it is packed by method {member.method}"
    return _inflated(packed, room)


def _inflated(packed: bytes, room: Room) -> bytes | str:
    stream, found, waiting = zlib.decompressobj(-15), [], packed
    try:
        while not stream.eof and (piece := stream.decompress(waiting, PIECE)):
            waiting = stream.unconsumed_tail
            if not room.take(len(piece)):
                return too_large()
            found.append(piece)
    except zlib.error:
        return "it is damaged"
    return b"".join(found)
