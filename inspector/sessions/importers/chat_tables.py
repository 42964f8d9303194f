"""Databases with the tables `sessions` and `messages` (Hermes, Goose, Crush), each with different columns.

A record is a row with its columns; a column that holds JSON is that JSON, verbatim.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from inspector.sessions.importers.database import snapshot
from inspector.sessions.importers.records import compact_json, in_tree, number_records
from inspector.sessions.recording import FileReading
from inspector.sessions.transcripts import TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.dialogue import DialogueReader
from loop_core.json_parser import from_json

TABLE = "table"
"""The member of a record that names its table."""
_SESSION = frozenset({
    "id", "title", "name", "description", "model", "model_config_json", "provider_name", "end_reason",
    "parent_session_id",
})
"""The columns of a session that are read; others may be large (a system prompt)."""


def rows_of(path: str, created: str, json_columns: frozenset[str]) -> Iterator[bytes]:
    """The sessions of a database, each with its messages, and the sessions that it started after it."""
    with snapshot(path) as database:
        sessions = [dict(row) for row in database.execute("SELECT * FROM sessions ORDER BY rowid")]
        for session in in_tree(sessions, "parent_session_id"):
            yield _record("sessions", {name: session[name] for name in _SESSION if name in session}, json_columns)
            rows = database.execute("SELECT rowid AS row_number, * FROM messages WHERE session_id = ?",
                                    (session.get("id"),))
            for row in sorted(map(dict, rows), key=lambda each: _when(each, created)):
                yield _record("messages", row, json_columns)


def _when(row: dict[str, Any], created: str) -> tuple[float, int]:
    at = row.get(created)
    return (float(at) if isinstance(at, (int, float)) else 0.0, row["row_number"])


def _record(table: str, row: dict[str, Any], json_columns: frozenset[str]) -> bytes:
    members = [(TABLE, compact_json(table))]
    for name, value in row.items():
        if value is None:
            continue
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        members.append((name, _verbatim(text) if name in json_columns else compact_json(text)))
    return b"{" + b",".join(b"%s:%s" % (compact_json(name), value) for name, value in members) + b"}"


def _verbatim(value: Any) -> bytes:
    """A column that holds JSON; as text where it holds none, so that the row is read as far as it goes."""
    data = str(value).encode("utf-8", "replace")
    try:
        from_json(data)
    except ValueError:
        return compact_json(value)
    return data


class ChatTableReader(DialogueReader):
    """Reads one database; subclasses interpret the messages of a format."""

    created: ClassVar[str]
    """The column that says when a message was written."""
    json_columns: ClassVar[frozenset[str]]
    titles_in: ClassVar[tuple[str, ...]] = ("title",)
    """The columns of a session that name it, the best first."""

    def read_database(self) -> FileReading:
        """Reads every answer in the file."""
        return self.read_rows(TranscriptRows(number_records(rows_of(self.path, self.created, self.json_columns)),
                                             self.fields, self.unit))

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
