"""A lock on a file that is open, as each system gives one; where a file system has none, there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def locked(number: int, shared: bool = False) -> Iterator[None]:
    """Holds the file for itself, or together with other readers; gone at the latest when the program is."""
    if sys.platform == "win32":
        import msvcrt
        import os

        place = os.lseek(number, 0, os.SEEK_CUR)
        os.lseek(number, 1 << 40, os.SEEK_SET)  # a byte that nobody writes stands for the whole file
        try:
            msvcrt.locking(number, msvcrt.LK_LOCK, 1)
            held = True
        except OSError:
            held = False
        os.lseek(number, place, os.SEEK_SET)
        try:
            yield
        finally:
            if held:
                os.lseek(number, 1 << 40, os.SEEK_SET)
                msvcrt.locking(number, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        try:
            fcntl.flock(number, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            held = True
        except OSError:
            held = False
        try:
            yield
        finally:
            if held:
                fcntl.flock(number, fcntl.LOCK_UN)
