"""Whether files have changed: by size and time, with the log beside a database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple


class FileState(NamedTuple):
    """One file as it stands; zeros where it is gone."""

    size: int
    modified_ns: int
    inode: int


def states_of(paths: Sequence[str]) -> list[FileState]:
    """The state of each file, and of the log beside it."""
    return [_state(name) for path in paths for name in (path, f"{path}-wal")]


def _state(path: str) -> FileState:
    try:
        seen = os.stat(path)
    except OSError:
        return FileState(0, 0, 0)
    return FileState(seen.st_size, seen.st_mtime_ns, seen.st_ino)
