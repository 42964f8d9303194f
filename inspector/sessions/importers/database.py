"""SQLite databases in which agents keep their sessions, read while the agent may be writing.

What was written last stands in the log beside the file (`-wal`), or what was there before in a journal (`-journal`),
and opening a database in place may create files beside it. So all are copied to a temporary folder and opened there:
nothing of the agent's is ever touched. A write that was not committed is rolled back in the copy.
Source: sqlite.org/wal.html, sqlite.org/lockingv3.html.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from inspector.sessions import intake
from inspector.sessions.recording import UnreadableError

_FILES = ("", "-wal", "-journal")
"""The files that a database consists of while it is written."""
_TRIES = 3
"""Copies that are made before a database that changes all the time is taken as it is."""
Schema = Mapping[str, frozenset[str]]
"""Table -> the names of its columns, all in lower case."""


@contextmanager
def snapshot(path: str) -> Iterator[sqlite3.Connection]:
    """A copy of the database with its log, open for reading; rows are `sqlite3.Row`.

    Raises:
        UnreadableError: it cannot be read, is larger than the bound, or is no database.
    """
    with tempfile.TemporaryDirectory(prefix="loop-inspector-") as folder:
        copy = os.path.join(folder, "copy.db")
        _copy(path, copy)
        try:
            connection = sqlite3.connect(f"file:{copy}?mode=rw", uri=True)
        except sqlite3.Error as why:
            raise UnreadableError(f"a database that cannot be opened: {why}") from why
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.row_factory = sqlite3.Row
            # An agent may cut a text inside a character.
            connection.text_factory = lambda given: given.decode("utf-8", "replace")
            yield connection
        except sqlite3.Error as why:
            raise UnreadableError(f"a damaged database: {why}") from why
        except UnicodeDecodeError as why:  # sqlite3 quotes a damaged name in its message, whose bytes are no text
            raise UnreadableError("a damaged database: its schema is no text") from why
        finally:
            connection.close()


def _copy(path: str, copy: str) -> None:
    """Copies the file and its log; again where the agent wrote meanwhile."""
    try:
        for _ in range(_TRIES):
            if not os.path.exists(path):
                raise UnreadableError("no database there")
            before = _state(path)
            if sum(size for size, _ in before) > intake.most():
                raise UnreadableError(intake.too_large())
            for suffix in _FILES:
                _copy_one(path + suffix, copy + suffix)
            if _state(path) == before:
                return
    except OSError as why:
        raise UnreadableError(f"cannot be read: {why.strerror or why}") from why


def _copy_one(source: str, target: str) -> None:
    if os.path.exists(target):
        os.remove(target)
    if os.path.exists(source):
        shutil.copyfile(source, target)


def _state(path: str) -> list[tuple[int, int]]:
    """Size and time of the file and of its logs."""
    found = []
    for suffix in _FILES:
        try:
            seen = os.stat(path + suffix)
        except FileNotFoundError:
            continue
        found.append((seen.st_size, seen.st_mtime_ns))
    return found


def schema(path: str) -> Schema:
    """The tables of a database; empty if it cannot be read. A database is copied once as long as it does not change."""
    try:
        return _schema(path, tuple(_state(path)))
    except OSError:
        return {}


@lru_cache(maxsize=8)
def _schema(path: str, state: tuple[tuple[int, int], ...]) -> Schema:
    try:
        with snapshot(path) as connection:
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {
                str(name).lower(): frozenset(
                    str(row[0]).lower() for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
                )
                for name in names
            }
    except UnreadableError:
        return {}


def has(found: Schema, table: str, *columns: str) -> bool:
    """Whether a table with these columns exists."""
    return table in found and found[table].issuperset(columns)
