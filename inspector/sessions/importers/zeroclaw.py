"""Sessions of ZeroClaw: `sessions/sessions.db`, and the JSON lines of older releases.

ZeroClaw keeps no stop word. A turn with native calls is JSON in the content, with the arguments as the string that
came: a cut call is visible. Source: zeroclaw-labs/zeroclaw `session_sqlite.rs`, `session_store.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import has, records_of, schema, snapshot
from inspector.sessions.importers.records import compact_json, first_look, number_records
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import call_of
from inspector.sessions.transcripts.dialogue import DialogueReader
from inspector.sessions.transcripts.member_values import known_text, object_of
from loop_core.values import ReasoningPart, TextPart, ToolResultPart

FIELDS: Fields = {"": {"role": (str,), "content": (str,), "created_at": (str,), "session_key": (str,)}}
"""What is read of a message, and the types that it can have."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the columns of its table, or lines with only a role and a text."""
    if head.startswith(SQLITE):
        return 95 if has(schema(path), "sessions", "session_key", "role", "content") else 0
    look = first_look(head)
    rows = look.lines or ((look.first,) if isinstance(look.first, dict) else ())
    plain = bool(rows) and all(isinstance(row, dict) and row.keys() == {"role", "content"}
                               and isinstance(row["content"], str) for row in rows)
    return 60 if plain else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    reader = _Reader(path, options)
    if data.startswith(SQLITE):
        return reader.read_records(number_records(_rows(path)))
    reader.unit = "line"
    return reader.read(data)


def _rows(path: str) -> Iterator[UnbuiltRecord]:
    """The messages, each session's in their order, and before them how its state was left."""
    with snapshot(path) as database:
        if has(schema(path), "session_metadata", "session_key", "state"):
            rows = database.execute("SELECT state, session_key FROM session_metadata ORDER BY rowid")
            yield from records_of(rows, ("state", "session_key"))
        rows = database.execute("SELECT * FROM sessions ORDER BY session_key, rowid")
        yield from records_of(rows, FIELDS[""])


class _Reader(DialogueReader):
    """One file being read."""

    name, agent, fields = "zeroclaw", "ZeroClaw", FIELDS
    words = "ZeroClaw keeps no stop reason: what is shown is inferred from other rows, and says so"

    def session_of(self, value: dict[str, Any]) -> str:
        """The session of a row."""
        key = value.get("session_key")
        return key if isinstance(key, str) else self.session

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """The state of a session, or a message."""
        value, role = line.value, line.value.get("role")
        text = value["content"] if isinstance(value.get("content"), str) else ""
        inner = _object(text)
        if "state" in value and role is None:
            self.titles[self.session] = self.session
            if value["state"] not in (None, "idle"):
                self.reading.notices.append(f"session {self.session} was left in the state {value['state']!r}")
            lines.count("state", frozenset({"state"}))
        elif role == "assistant":
            self._answer(line, text, inner)
        elif role == "tool":
            key = known_text(inner.get("tool_call_id"))
            said = inner.get("content") if key is not None else text
            self.results(line.number, ToolResultPart(key, None, said if isinstance(said, str) else text, False))
        elif role == "user":
            self.user(line.number, text)
        else:
            lines.count(role, frozenset({"system"}))
        return self.here

    def _answer(self, line: TranscriptLine, text: str, inner: dict[str, Any]) -> None:
        answer = self.answer_of(line, f"{self.session}:{line.number}", None, None, line.value.get("created_at"))
        answer.word_at = at = answer.take(line)
        calls = inner.get("tool_calls")
        if not isinstance(calls, list):
            answer.parts.append(TextPart(text))
            return
        if known_text(inner.get("reasoning_content")):
            answer.parts.append(ReasoningPart(inner["reasoning_content"], None))
        if known_text(inner.get("content")):
            answer.parts.append(TextPart(inner["content"]))
        for call in map(object_of, calls):
            given = call.get("arguments")
            find = partial(_written, given)
            answer.parts.append(call_of(call.get("id"), call.get("name"), given, find, "arguments", at))


def _written(value: Any, *path: str | int) -> str | None:
    """Arguments that are not a string stand inside a text: their JSON is written again."""
    return None if value is None else compact_json(value).decode()


def _object(text: str) -> dict[str, Any]:
    """The object that a content is; an empty one where it is a text."""
    if not text.startswith("{"):
        return {}
    try:
        return object_of(traffic.loads(text))
    except (ValueError, RecursionError):
        return {}
