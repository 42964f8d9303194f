"""A database of the table rows of transcripts that were read before, so that only changed files are read again.

It stores what the table of turns shows, with masked credentials, and texts for the search. A file is unchanged if its
path, size and time, and those of the files that are read with it, are the same; if only the time differs, a hash of the
bytes decides. A damaged database is created again. If the database is locked, the files are read without it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import combining

from inspector import __version__
from inspector.config.files import cache_folder, private_file, private_folder
from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.advice import Advice, Basis
from inspector.report.facts import view
from inspector.report.filter_terms import folded_text
from inspector.report.turn_rows import AnswerRecord, SharedValues, TurnRow, files_under_way, rows_of
from inspector.report.verdict import TurnVerdict
from inspector.sessions import redact, without_collector
from inspector.sessions.file_format import DATABASE_NAMES
from inspector.sessions.importers import FOLDERS_BESIDE
from inspector.sessions.open import open_each
from loop_core.json_parser import from_json
from loop_core.values import Severity

SCHEMA = 14
"""The version of the tables; a database with another one, or of another program version, is created again."""
WAIT = 0.2
"""The number of seconds to wait for another process that writes."""
_VERSION = f"{SCHEMA} {__version__}"
_TABLES = (
    "CREATE TABLE made (version TEXT)",
    "CREATE TABLE file (path BLOB, reading TEXT, state TEXT, hash TEXT, rows TEXT, PRIMARY KEY (path, reading))",
    "CREATE VIRTUAL TABLE words USING fts5 (path UNINDEXED, reading UNINDEXED, number UNINDEXED, text)",
)
_GAP = "\x1f"
"""The character around each CJK character in the stored texts: FTS5 takes it for a blank, and it is one byte long."""
# Radicals, kana, Han and Hangul; their compatibility forms; kana of half width; Han in the further planes. Compiled
# only when it is used, which takes 7 ms.
_CJK = "[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff]"
"""Matches a Chinese, Japanese or Korean character. These languages write no blanks between words, and FTS5 takes a run
of letters for one word (https://sqlite.org/fts5.html, section 4.3.1)."""
StoredState = list[list[Any]]
"""The name, size and time in nanoseconds of every file that was read; 0 for a missing one."""


class IndexHit(NamedTuple):
    """A turn that contains every word of a search."""

    file: str
    number: int
    excerpt: str


class TurnIndex:
    """Reads and writes the database; if the database is unusable, returns and stores no rows."""

    def __init__(self, api: str | None, profile: str | None, settings: Settings) -> None:
        self.note = ""
        """Why the database is not used; empty if it is used."""
        unnamed = replace(settings, explicit=frozenset(), configured=frozenset())
        # Sorted, because the order of a set differs from process to process.
        self.reading = repr((api, profile, unnamed, sorted(settings.explicit), sorted(settings.configured)))
        """A key made of the reading options, because another policy or API gives other rows."""
        self._base: sqlite3.Connection | None = None
        folder = cache_folder(os.environ)
        if folder is None:
            return
        self._place = folder / "turns.db"
        try:
            self._base = _open(self._place)
        except (sqlite3.Error, OSError) as why:
            said = f"{folder}: {why.strerror or why}" if isinstance(why, OSError) else why
            self.note = f"the index is not used: {said}"

    def close(self) -> None:
        """Closes the database."""
        if self._base is not None:
            self._base.close()
            self._base = None

    @without_collector
    def rows(self, paths: Iterable[str]) -> dict[str, list[TurnRow]]:
        """The rows of the unchanged files among these."""
        wanted, rows_by_path = set(paths), dict[str, list[TurnRow]]()
        for path, state, digest, rows in self._answer(
                "SELECT path, state, hash, rows FROM file WHERE reading = ?", self.reading):
            with suppress(ValueError, TypeError, IndexError, AttributeError):  # if a row is damaged, its file is read
                name = os.fsdecode(path)
                if name in wanted and _is_unchanged(name, _parse(state), digest):
                    rows_by_path[name] = [_row(values) for values in _parse(rows)]
                elif not os.path.exists(name):
                    self._answer("DELETE FROM words WHERE path = ?", path)  # with any reading options
                    self._answer("DELETE FROM file WHERE path = ?", path)
        return rows_by_path

    def keep(self, path: str, state: StoredState, rows: Sequence[TurnRow]) -> None:
        """Stores the rows of a file with the state that the file had before it was read."""
        if self._base is None or state != state_of(path):
            return  # the file grew while it was read
        if files_under_way(rows):
            return
        # Masked before they are stored, because the index may outlive the transcript or be copied elsewhere.
        text = redact.text(json.dumps(rows, default=_plain))
        key = (os.fsencode(path), self.reading)  # a name on POSIX is bytes, which may not be text
        folded = [(row.number, redact.text(folded_text(row.contents, row.names))) for row in rows if row.verdict]
        words = [(number, _set_apart(text.encode("utf-8", "replace").decode())) for number, text in folded]
        # In one transaction: a program that found the rows without their words would report that no turn has a word.
        self._answer("BEGIN IMMEDIATE")
        self._answer("DELETE FROM words WHERE path = ? AND reading = ?", *key)
        self._answer("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?)", *key, json.dumps(state), _hash(state), text)
        for numbered_words in words:
            self._answer("INSERT INTO words VALUES (?, ?, ?, ?)", *key, *numbered_words)
        self._answer("COMMIT")

    def search(self, words: str, paths: Iterable[str]) -> list[IndexHit]:
        """The turns of these files that contain every word, best first; punctuation between words is ignored."""
        # In quotes a word is a string, never an operator such as NOT; the star finds words that begin with it
        # (https://sqlite.org/fts5.html, section 3).
        query = " ".join(f'"{_set_apart(word)}"*' for word in searched_words(words))
        if not query:
            return []
        found = self._answer(
            "SELECT path, number, snippet(words, 3, '', '', '…', 16) FROM words "
            "WHERE words MATCH ? AND reading = ? ORDER BY rank", query, self.reading)
        names = {os.fsencode(path): path for path in paths}
        return [IndexHit(names[path], number, excerpt.replace(_GAP, ""))
                for path, number, excerpt in found if path in names]

    def _answer(self, query: str, *values: Any) -> list[Any]:
        """The rows that a query finds; none if the database cannot be used, with the reason in `note`."""
        try:
            return [] if self._base is None else self._base.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeError) as why:
            self.note = f"the index is not used: {why}"
            self.close()
            if _is_damage(why):
                with suppress(OSError):
                    self._place.unlink()  # the next program makes it again
            return []


def searched_words(text: str) -> list[str]:
    """The words of a typed text that a search looks for, without any operator of the query language."""
    # A combining mark (in `İ` in lower case, or in decomposed text as macOS types it) does not end a word.
    return "".join(sign if sign.isalnum() or combining(sign) else " " for sign in text.casefold()).split()


def _set_apart(text: str) -> str:
    """The text with each CJK character as a word of its own, so that a word inside a run is found as a phrase."""
    return text if text.isascii() else re.sub(_CJK, rf"{_GAP}\g<0>{_GAP}", text)


def _is_damage(why: Exception) -> bool:
    """Whether the database lacks a table or has damaged bytes; a lock or a full disk is no damage."""
    # The lower byte is the primary code (https://sqlite.org/rescode.html). The error for invalid UTF-8 has no code.
    code = getattr(why, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    return code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _open(path: Path) -> sqlite3.Connection:
    private_folder(path.parent)
    try:
        return _connect(path)
    except sqlite3.DatabaseError as why:
        # The index can be rebuilt from the transcripts, so a damaged one is not worth a repair.
        if not _is_damage(why):
            raise
        path.unlink()
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    private_file(path)
    base = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
    try:
        base.execute("PRAGMA synchronous = OFF")  # no wait for the disk, since a lost row is read again
        if not _is_made(base):  # otherwise no lock is needed
            base.execute("BEGIN IMMEDIATE")
            if not _is_made(base):  # another program may have made the tables before the lock
                for table in ("made", "file", "words"):
                    base.execute(f"DROP TABLE IF EXISTS {table}")
                for statement in _TABLES:
                    base.execute(statement)
                base.execute("INSERT INTO made VALUES (?)", (_VERSION,))
            base.execute("COMMIT")
        base.execute("SELECT * FROM file, words LIMIT 0")  # raises if one of them is lost
    except sqlite3.Error:
        base.close()
        raise
    return base


def _is_made(base: sqlite3.Connection) -> bool:
    made = base.execute("SELECT name FROM sqlite_master WHERE name = 'made'").fetchall()
    return bool(made) and base.execute("SELECT version FROM made").fetchall() == [(_VERSION,)]


def state_of(path: str) -> StoredState:
    """The state of a file, of a database's log, and of the files that may be read with it."""
    stem = os.path.splitext(path)[0]
    beside = (each for folder in FOLDERS_BESIDE for each in _files_inside(stem, folder))
    # In WAL mode new rows stay in the log until a checkpoint, so the database file itself may not change
    # (https://sqlite.org/wal.html).
    log = (f"{path}-wal",) if path.endswith(DATABASE_NAMES) else ()
    return [_file_state(name) for name in (path, *beside, *log)]


def _files_inside(stem: str, folder: str) -> Iterator[str]:
    within = os.path.dirname(stem) if folder.startswith("../") else stem
    below = os.walk(os.path.join(within, folder.removeprefix("../")))
    yield from sorted(os.path.join(place, name) for place, _, names in below for name in names)


def _file_state(name: str) -> list[Any]:
    try:
        found = os.stat(name)
    except OSError:
        return [name, 0, 0]
    return [name, found.st_size, found.st_mtime_ns]


def _is_unchanged(path: str, before: StoredState, digest: str) -> bool:
    now = state_of(path)
    if now == before:
        return True
    # A copy, a checkout or `touch` changes only the time.
    return [each[:2] for each in now] == [each[:2] for each in before] and _hash(now) == digest


def _hash(state: StoredState) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, _, _ in state:
        with suppress(OSError), open(name, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else sorted(value)


def _parse(text: str) -> Any:
    try:
        return from_json(text.encode())
    except ValueError:  # half a surrogate pair, which only the standard library accepts
        return json.loads(text)


_PATHS, _VERDICT, _CONTENTS, _ANSWERS, _TURNS, _KEYS = map(
    TurnRow._fields.index, ("paths", "verdict", "contents", "answers", "turns", "keys"))


def _row(values: list[Any]) -> TurnRow:
    """The row with these values, converted before the tuple is made: replacing them later takes twice as long."""
    values[_PATHS] = tuple(values[_PATHS])
    verdict = values[_VERDICT]
    values[_VERDICT] = None if verdict is None else _verdict(TurnVerdict(*verdict))
    values[_CONTENTS] = tuple(values[_CONTENTS])
    values[_ANSWERS] = tuple([
        AnswerRecord(SharedValues(tuple(map(tuple, words)), frozenset(flags), tuple(numbers), tuple(shares)), *own)
        for (words, flags, numbers, shares), *own in values[_ANSWERS]])
    values[_TURNS] = tuple([(word, count) for word, count in values[_TURNS]])
    values[_KEYS] = tuple(values[_KEYS])
    return TurnRow._make(values)


def _verdict(verdict: TurnVerdict) -> TurnVerdict:
    advice = None if verdict.advice is None else Advice(*verdict.advice)
    return verdict._replace(
        severity=Severity(verdict.severity), advice=advice and advice._replace(basis=Basis(advice.basis)))


# -- The rows of files: from the index if they are unchanged, else by reading the files one after another ------------


class ReadRows(NamedTuple):
    """Rows by the first path of their session, and the progress of reading."""

    rows: list[tuple[str, list[TurnRow]]]
    done: int
    total: int
    note: str = ""


def read_rows(
    paths: Sequence[str], api: str | None, profile: str | None, settings: Settings, indexed: bool = True,
    unread: Sequence[str] = (),
) -> Iterator[ReadRows]:
    """The rows of files; those in the index come first, all together. Files in `unread` are not read: their rows come
    from the index or not at all. Raises `CallerError` if there is no such API or profile."""
    index = TurnIndex(api, profile, settings) if indexed else None
    try:
        indexed_rows = index.rows([*paths, *unread]) if index is not None else {}
        left = [path for path in paths if path not in indexed_rows]
        done, total = len(paths) - len(left), len(paths)
        if index is not None:
            yield ReadRows(list(indexed_rows.items()), done, total, index.note)
        # Taken before reading: rows that are added meanwhile change the state, so the file is read again.
        states = {path: state_of(path) for path in left} if index is not None else {}
        for group in open_each(left, api=api, profile=profile, compare=not indexed) if left else ():
            found = rows_of(view(replay(open_case(group.recording), settings)), group.paths) if group.paths else []
            if index is not None and len(group.paths) == 1 and group.paths[0] in states:
                index.keep(group.paths[0], states[group.paths[0]], found)
            yield ReadRows([(path, found) for path in group.paths[:1]], done + group.done, done + group.total)
        if index is not None and index.note:  # a search cannot find rows that were not stored
            yield ReadRows([], total, total, index.note)
    finally:
        if index is not None:
            index.close()
