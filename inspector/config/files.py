"""Writing: folders and files of ours for nobody else; files that are written beside their place, then renamed."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

FOLDER, FILE = 0o700, 0o600
"""What is kept of sessions is for its owner alone."""
_BINARY = getattr(os, "O_BINARY", 0)


def private_folder(path: Path) -> None:
    """Makes a folder of ours, and what is missing above it, for its owner alone; one that is there is closed too.

    Raises:
        OSError: it cannot be made.
    """
    new_folder(path)
    with suppress(OSError):  # one that belongs to somebody else is as it is
        if path.stat().st_mode & 0o077:
            path.chmod(FOLDER)


def new_folder(path: Path) -> None:
    """Makes a folder, and what is missing above it, for its owner alone; one that is there stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    if path.is_dir():
        return
    new_folder(path.parent)
    path.mkdir(FOLDER, exist_ok=True)


def private_file(path: str | Path) -> None:
    """Makes a file for its owner alone where there is none.

    Raises:
        OSError: it cannot be made.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | _BINARY, FILE))


def replace_all(files: Mapping[Path, bytes], mode: int = 0o666) -> None:
    """Writes all of the files beside their places, then renames them: a full disk leaves what was there whole.

    Raises:
        OSError: one cannot be written; no file is new then, unless a rename failed between two others.
    """
    made: list[tuple[Path, Path]] = []
    try:
        for path, data in files.items():
            target = Path(os.path.realpath(path))  # a link stays one
            if target.exists() and not target.is_file():
                target.write_bytes(data)  # a FIFO or a device: there is nothing to leave whole
                continue
            beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
            made.append((beside, target))
            _write(beside, data, stat.S_IMODE(target.stat().st_mode) if target.exists() else None, mode)
        for beside, target in made:
            os.replace(beside, target)
    finally:
        for beside, _ in made:
            with suppress(OSError):
                beside.unlink()


def _write(path: Path, data: bytes, kept: int | None, mode: int) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    with os.fdopen(number, "wb") as file:
        if kept is not None:
            with suppress(OSError):
                path.chmod(kept)
        file.write(data)
        file.flush()
        os.fsync(number)
