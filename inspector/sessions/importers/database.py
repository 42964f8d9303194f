"""Reads SQLite databases with agents' sessions, also while the agent is writing.

The newest rows may be only in the log beside the file (`-wal`), and a journal (`-journal`) may have rows that must be
restored. Opening a database in place may create files beside it. So the database and these files are copied to a
temporary folder and opened there; the agent's own files are never changed. An uncommitted write is rolled back in the
copy. Only the names of tables and columns are read in place, if there is no log and no journal. Source:
sqlite.org/wal.html, sqlite.org/lockingv3.html.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from inspector.sessions import intake
from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.records import compact_json, in_tree, member_name, number_records
from inspector.sessions.recording import FileReading, UnreadableError
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.transcripts import TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader
from loop_core.json_parser import from_json

if TYPE_CHECKING:
    import sqlite3


_FILES = ("", "-wal", "-journal")
_MOST_COPIES = 3
"""The largest number of copies that are made until the database does not change meanwhile; the last one is used."""
_STEPS = 1_000_000
_STEPS_PER_BYTE = 100
"""The largest number of SQLite's steps per byte of the file. A scan of all rows takes about 5."""
_MOST_TIMES = 16
"""The largest total size of all rows, as a multiple of the file's size. Joins, generated columns and pages with several
references can make far more rows of a small file."""
Schema = Mapping[str, frozenset[str]]
"""Name of a table -> the names of its columns, in lower case."""
LARGEST = 16
"""The largest size of a database of which only some rows are read, as a multiple of the maximum for a file."""


@contextmanager
def snapshot(path: str, times: int = 1) -> Iterator[sqlite3.Connection]:
    """A context manager with a connection to a copy of the database and its log; rows are `sqlite3.Row`. Raises
    `UnreadableError` if it cannot be read, is larger than so many times the maximum, or is not a database."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="loop-inspector-") as folder:
        copy = os.path.join(folder, "copy.db")
        _copy(path, copy, times * intake.most())
        _drop_other_name(copy + _FILES[-1])
        # A log can be read only if its index may be written (sqlite.org/wal.html, Read-Only Databases).
        with _connect(copy, "mode=rw") as connection:
            yield connection


@contextmanager
def _connect(path: str, how: str) -> Iterator[sqlite3.Connection]:
    """A context manager with a bounded connection to a database, which is opened with these parameters of its URI."""
    # Imported here, because most files are no databases: this saves 3 ms of a start.
    import sqlite3

    try:
        connection = sqlite3.connect(f"file:{quote(os.fsencode(os.path.abspath(path)))}?{how}", uri=True)
    except sqlite3.Error as why:
        raise UnreadableError(f"a database that cannot be opened: {why}") from why
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA synchronous = OFF")  # closing writes the log into the copy, 30 ms on a disk
        _bound(connection, sum(size for size, _ in _state(path)) + intake.PIECE)
        # an agent may cut a text within a character
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        yield connection
    except sqlite3.Error as why:
        raise UnreadableError(f"a damaged database: {_TOO_MUCH if str(why) == 'interrupted' else why}") from why
    except UnicodeDecodeError as why:  # from sqlite3's own message, which quotes a damaged name
        raise UnreadableError("a damaged database: its schema is not text") from why
    finally:
        connection.close()


_TOO_MUCH = "its rows are far more than a file of this size holds"


def _bound(connection: sqlite3.Connection, size: int) -> None:
    """Bounds the time and the memory that reading takes by the size of the file."""
    import sqlite3

    room = intake.Room()
    room.left = _MOST_TIMES * size

    def row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> sqlite3.Row:
        if not room.take(sum(len(value) for value in values if isinstance(value, (str, bytes)))):
            raise UnreadableError(f"a damaged database: {_TOO_MUCH}")
        return sqlite3.Row(cursor, values)

    connection.row_factory = row
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size)
    steps = iter(range(_STEPS_PER_BYTE * size // _STEPS))
    connection.set_progress_handler(lambda: next(steps, None) is None, _STEPS)


def _copy(path: str, copy: str, most: int) -> None:
    """Copies the file, its log and its journal, at most so many bytes; again if the agent has written meanwhile."""
    try:
        for _ in range(_MOST_COPIES):
            if not os.path.exists(path):
                raise UnreadableError("no database there")
            before = _state(path)
            # The maximum applies to the sum, because a log can be as large as its database.
            if sum(size for size, _ in before) > most:
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
    if os.path.isfile(source):  # a device beside a database, or a link to one, would be copied without end
        shutil.copyfile(source, target)


_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The first bytes of a journal, and the last ones of a journal with the name of another file."""


def _drop_other_name(journal: str) -> None:
    """Erases the end of a copied journal that names the journal of several databases: SQLite would open the file of
    that name, wherever it is, and delete it. Source: sqlite.org/fileformat2.html, The Rollback Journal."""
    if os.path.exists(journal) and os.path.getsize(journal) >= len(_MAGIC):
        with open(journal, "r+b") as file:
            file.seek(-len(_MAGIC), os.SEEK_END)
            if file.read() == _MAGIC:
                file.seek(-len(_MAGIC), os.SEEK_END)
                file.write(bytes(len(_MAGIC)))


def _state(path: str) -> list[tuple[int, int]]:
    found = []
    for suffix in _FILES:
        try:
            status = os.stat(path + suffix)
        except FileNotFoundError:
            continue
        found.append((status.st_size, status.st_mtime_ns))
    return found


def schema(path: str) -> Schema:
    """The tables of a database; empty if it cannot be read."""
    return _schema_or_error(path)[0]


def why_unread(path: str) -> str:
    """Why the tables of a database cannot be read; empty if they can."""
    return _schema_or_error(path)[1]


def _schema_or_error(path: str) -> tuple[Schema, str]:
    try:
        return _read_schema(path, tuple(_state(path)))
    except OSError as why:
        return {}, f"cannot be read: {why.strerror or why}"


@lru_cache(maxsize=8)
def _read_schema(path: str, state: tuple[tuple[int, int], ...]) -> tuple[Schema, str]:
    """The tables, or why they cannot be read. Cached while the database does not change."""
    # `immutable` creates no file and takes no lock (sqlite.org/uri.html). A copy of 1 GB takes 0.5 to 2.5 s.
    whole = len(state) == 1
    try:
        with _connect(path, "mode=ro&immutable=1") if whole else snapshot(path, LARGEST) as connection:
            # A table-valued function, because `PRAGMA table_info` has no parameters, and a table's name may be any
            # text.
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {
                str(name).lower(): frozenset(
                    str(row[0]).lower() for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
                )
                for name in names
            }, ""
    except UnreadableError as why:
        return {}, str(why)


def has(schema: Schema, table: str, *columns: str) -> bool:
    """Whether a table with these columns exists."""
    return table in schema and schema[table].issuperset(columns)


def read_rows_or_lines(reader: ChatReader, data: bytes, rows: Iterable[UnbuiltRecord]) -> FileReading:
    """Reads every answer in a file that is a database with these rows, or a file of lines."""
    if data.startswith(SQLITE):
        return reader.read_records(number_records(rows))
    reader.unit = "line"
    return reader.read(data)


# -- Databases with the tables `sessions` and `messages` (Hermes, Goose, Crush), each with different columns ---------
# A record is a row with its columns; a column with JSON becomes this JSON, verbatim.

TABLE = "table"
"""The member of a record with the name of the record's table."""
_SESSION = frozenset({
    "id", "title", "name", "description", "model", "model_config_json", "provider_name", "end_reason",
    "parent_session_id",
})
"""The columns of a session that are read. Other columns may be large, such as a system prompt."""


def rows_of(path: str, created: str, json_columns: frozenset[str]) -> Iterator[UnbuiltRecord]:
    """The sessions of a database, each with its messages; sessions come after the one that started them."""
    with snapshot(path) as database:
        sessions = [dict(row) for row in database.execute("SELECT * FROM sessions ORDER BY rowid")]
        for session in in_tree(sessions, "parent_session_id"):
            names = tuple(name for name in _SESSION if name in session)
            yield UnbuiltRecord(record_of, (names, tuple(session[name] for name in names), "sessions", json_columns))
            rows = database.execute("SELECT rowid AS row_number, * FROM messages WHERE session_id = ?",
                                    (session.get("id"),))
            names = columns_of(rows)
            at = names.index(created) if created in names else 0  # without this column rows are ordered by rowid
            for row in sorted(map(tuple, rows), key=lambda each: _when(each[at], each[0])):
                yield UnbuiltRecord(record_of, (names, row, "messages", json_columns))


def columns_of(rows: sqlite3.Cursor) -> tuple[str, ...]:
    """The names of a query's columns."""
    return tuple(column[0] for column in rows.description)


def records_of(
    rows: sqlite3.Cursor, wanted: Iterable[str], json_columns: frozenset[str] = frozenset()
) -> Iterator[UnbuiltRecord]:
    """The rows of a query, each with the wanted columns that exist."""
    columns = [name.lower() for name in columns_of(rows)]
    names = tuple(name for name in wanted if name in columns)
    places = [columns.index(name) for name in names]
    for row in rows:
        yield UnbuiltRecord(record_of, (names, tuple([row[at] for at in places]), "", json_columns))


def _when(at: Any, number: int) -> tuple[float, int]:
    return (float(at) if isinstance(at, (int, float)) else 0.0, number)


def record_of(
    names: tuple[str, ...], values: tuple[Any, ...], table: str = "", json_columns: frozenset[str] = frozenset()
) -> bytes:
    """A row as JSON, without empty columns, and with the name of its table if it is given."""
    members = [member_name(TABLE) + compact_json(table)] if table else []
    for name, value in zip(names, values, strict=True):
        if value is None:
            continue
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        members.append(member_name(name) + (_verbatim(text) if name in json_columns else compact_json(text)))
    return b"{" + b",".join(members) + b"}"


def _verbatim(value: Any) -> bytes:
    """The verbatim JSON of a column; any other text becomes a string, so that the row can be read."""
    # Verbatim, because the arguments of a call must keep their spelling, or a cut could be lost.
    data = str(value).encode("utf-8", "replace")
    try:
        from_json(data)
    except ValueError:
        return compact_json(value)
    return data


class ChatTableReader(ChatReader):
    """Reads one database; subclasses interpret the messages of a format."""

    key, unit, row_word = "id", "row", ("a row", "rows")
    created: ClassVar[str]
    """The column with the time at which a message was written."""
    json_columns: ClassVar[frozenset[str]]
    titles_in: ClassVar[tuple[str, ...]] = ("title",)
    """The columns of a session that may have its title, the best first."""

    def read_database(self) -> FileReading:
        """Reads every answer in the file."""
        return self.read_records(number_records(rows_of(self.path, self.created, self.json_columns)))

    def session_of(self, value: dict[str, Any]) -> str:
        """The session of a row."""
        key = value.get("id") if value.get(TABLE) == "sessions" else value.get("session_id")
        return key if isinstance(key, str) and key else self.session

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a session or a message."""
        value = line.value
        if value.get(TABLE) == "sessions":
            title = next((value[name] for name in self.titles_in if isinstance(value.get(name), str) and value[name]),
                         "")
            self.titles[self.session] = title
            parent = value.get("parent_session_id")
            if isinstance(parent, str) and parent:
                self.parents[self.session] = parent
            self.open_session(value)
            lines.count("session", frozenset({"session"}))
        else:
            self.message(line, lines)
        return self.here

    def open_session(self, value: dict[str, Any]) -> None:
        """Reads the fields of a session."""

    def message(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        """Reads one message."""
        raise NotImplementedError


# -- SQLite's binary form of JSON (JSONB) ----------------------------------------------------------------------------
# It becomes JSON text here, since libraries of SQLite before 3.45 cannot read it. Texts and numbers are stored as they
# are written in JSON, so a value keeps its spelling. Source: sqlite.org/jsonb.html.

_MOST_LEVELS = 100
"""The largest depth of lists and objects that is read."""
JSONB_CONSTANTS: Mapping[int, bytes] = {0: b"null", 1: b"true", 2: b"false"}
"""Type of an element without content -> its JSON."""
JSONB_NUMBERS = frozenset({3, 5})
"""The types of numbers in JSON's own spelling."""
JSONB_TEXTS = frozenset({7, 8})
"""The types of texts that are stored as between the quotation marks of JSON."""
_RAW_TEXT = 10
"""The type of a text that is stored without escapes."""
_LIST, _OBJECT = 11, 12
_SHORT = 11
"""The largest length in the first byte; above it, the first byte states how many bytes the length has."""


def jsonb_text(data: bytes) -> bytes:
    """The JSON of the only element in the data. Raises `ValueError` if it is cut, damaged or in a spelling of JSON5."""
    found = list(_jsonb_elements(data, 0))
    if len(found) != 1:
        raise ValueError("not one element of JSONB")
    return found[0]


def _jsonb_elements(data: bytes, level: int) -> Iterator[bytes]:
    """The JSON of consecutive elements."""
    at = 0
    while at < len(data):
        kind, size = data[at] & 15, data[at] >> 4
        at += 1
        if size > _SHORT:
            width = 1 << (size - _SHORT - 1)
            size, at = int.from_bytes(data[at : at + width], "big"), at + width
        content, at = data[at : at + size], at + size
        if at > len(data) or level > _MOST_LEVELS:
            raise ValueError("cut JSONB, or too many levels")
        yield _jsonb_value(kind, content, level)


def _jsonb_value(kind: int, content: bytes, level: int) -> bytes:
    if kind in JSONB_CONSTANTS:
        return JSONB_CONSTANTS[kind]
    if kind in JSONB_NUMBERS:
        return content
    if kind in JSONB_TEXTS:
        return b'"' + content + b'"'
    if kind == _RAW_TEXT:
        return compact_json(content.decode("utf-8", "replace"))
    if kind not in (_LIST, _OBJECT):
        raise ValueError("a type of JSONB that is not JSON's")
    parts = list(_jsonb_elements(content, level + 1))
    if kind == _LIST:
        return b"[" + b",".join(parts) + b"]"
    if len(parts) % 2:
        raise ValueError("an object of JSONB without a value")
    return b"{" + b",".join(name + b":" + part for name, part in zip(parts[::2], parts[1::2], strict=True)) + b"}"
