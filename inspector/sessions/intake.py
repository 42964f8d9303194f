"""How much is read: files and streams up to a bound, what compressed bodies become up to the same, devices never.

The bound is the process's own, set by `--max-bytes`: what is read lies below every command and screen, and each would
otherwise hand it on.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from typing import IO

MOST = 256 << 20
"""Bytes, unless it is said otherwise: a thousand times a long session of an agent."""
PIECE = 1 << 20
WAIT = 3.0
"""Seconds for which a FIFO may have nobody who writes to it."""

_REFUSED = ((stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"), (stat.S_ISSOCK, "a socket"))
_most = MOST


def most() -> int:
    """The bytes that are read at most: of one input, and of all compressed bodies together."""
    return _most


def bound(number: int) -> None:
    """Sets how many that is."""
    global _most
    _most = number


class BoundError(Exception):
    """An input that is not read for what it is or how large it is; the text is the one clear line, without its name."""


class Room:
    """What is left for bodies that are unpacked; what turned out too large and was thrown away counts as well."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = most()

    def take(self, size: int) -> bool:
        """Whether so many bytes more may be unpacked."""
        self.left = max(-1, self.left - size)
        return self.left >= 0


def too_large() -> str:
    """What is said of an input beyond the bound."""
    return f"more than {most():,} bytes, which is not read: --max-bytes N reads more"


def file_bytes(path: str, start: bytes = b"") -> bytes:
    """A file, or what comes through a FIFO. `start` is what of a regular file was read before.

    Raises:
        OSError: it cannot be read.
        BoundError: it is a device, larger than the bound, or a FIFO that nobody writes to.
    """
    found = os.stat(path)
    for of_kind, what in _REFUSED:
        if of_kind(found.st_mode):
            raise BoundError(f"{what}: expected a regular file, a FIFO or `-`")
    if stat.S_ISFIFO(found.st_mode):
        return _fifo(path)
    if found.st_size > most():
        raise BoundError(too_large())
    with open(path, "rb") as file:
        file.seek(len(start))
        return _drained(file, start)


def standard_input() -> bytes:
    """What stands on standard input, and one byte more than the bound where it goes on behind that."""
    pieces, size = [], 0
    while size <= most() and (piece := sys.stdin.buffer.read(min(PIECE, most() + 1 - size))):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _drained(file: IO[bytes], start: bytes = b"") -> bytes:
    pieces, size = [start], len(start)
    while piece := file.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most():
            raise BoundError(too_large())
    return b"".join(pieces)


def _fifo(path: str) -> bytes:
    """Opened without waiting for a writer, as the system would without end; one that writes slowly is waited for."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(number, "rb", buffering=0) as file:
        start, ends = b"", time.monotonic() + WAIT
        while not start:
            try:
                start = os.read(number, PIECE)
            except BlockingIOError:
                break  # somebody has it open to write, and has written nothing yet
            if not start:
                if time.monotonic() > ends:
                    raise BoundError(f"a FIFO that nobody writes to (waited {WAIT:g} s)")
                time.sleep(0.02)
        os.set_blocking(number, True)
        return _drained(file, start)
