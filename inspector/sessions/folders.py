"""Expands paths to files: the files of a folder, and whether a file is a session.

Looks at names and at the beginnings of files; reads no session.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from inspector.config import files
from inspector.sessions import intake
from inspector.sessions.importers import HEAD, choose
from inspector.sessions.recording import Skipped

STDIN = "-"
_PASSED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv"})


def expand(path: str, shut: list[Skipped]) -> Iterator[tuple[str, bool]]:
    """The files of a folder, or the path itself; each with whether it came from a folder. `shut` receives what cannot
    be listed.
    """
    if path == STDIN or not os.path.isdir(path):
        yield path, False
        return
    found = [(name, True) for name in files_below(path, shut)]
    yield from found or [(path, False)]  # an empty folder says so itself


def files_of(paths: Sequence[str]) -> tuple[list[tuple[str, bool]], list[str]]:
    """The files of paths and folders, each with whether it came from a folder; and why a folder could not be listed."""
    shut: list[Skipped] = []
    found = [each for path in paths for each in expand(path, shut)]
    return found, [folder.why for folder in shut]


def is_session(path: str) -> bool:
    """Whether an importer recognises a file by its beginning; False if it cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        files.check_bounds(path)
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return bool(head) and choose(plain_head(head), path) is not None


def files_below(path: str, skipped: list[Skipped]) -> Iterator[str]:
    """Every file below a folder, except version control and installed packages; `skipped` receives what cannot be
    opened."""
    def failed(why: OSError) -> None:
        skipped.append(Skipped(len(skipped), f"{why.filename}: cannot be read: {why.strerror}"))

    for folder, folders, names in os.walk(path, onerror=failed):
        within = files.bounds_of(os.environ)
        folders[:] = sorted(name for name in folders
                            if name not in _PASSED and within.holds(os.path.join(folder, name)))
        for name in sorted(names):
            yield os.path.join(folder, name)


def plain_head(head: bytes) -> bytes:
    """The beginning of a compressed file, unpacked; a damaged one unchanged."""
    plain = intake.unpacked_head(head, HEAD)
    return head if plain is None else plain
