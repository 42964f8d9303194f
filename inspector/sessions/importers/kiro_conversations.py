"""Conversations of Kiro CLI's first engine and of Amazon Q Developer CLI: `data.sqlite3`, and saved conversations.

A conversation is one JSON value, whose history has an input and an answer in each entry; entries before 1.15 are pairs.
Newer entries have the times and the model of the request. The rest is that of `kiro`. Sources:
aws/amazon-q-developer-cli `chat-cli/src/cli/chat/conversation.rs`, `message.rs`, `database/sqlite_migrations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import has, schema, snapshot
from inspector.sessions.importers.kiro import KiroReader, is_own
from inspector.sessions.importers.records import elements, first_look, number_records, object_in, with_ids
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import take_call
from inspector.sessions.transcripts.member_values import (
    counts_of,
    input_count,
    known_text,
    numbered_objects,
    object_of,
    objects_of,
)
from loop_core.values import ToolResultPart, Usage

FIELDS: Fields = {"": {"session": (str,), "user": (dict,), "assistant": (dict,), "request_metadata": (dict,)},
                  "user": {"content": (dict,)}}
TABLES = (("conversations", "key"), ("conversations_v2", "conversation_id"))
"""The tables with conversations, each with the column of a conversation's name."""
COUNTS = ("uncached_input_tokens", "cache_read_input_tokens", "cache_write_input_tokens", "output_tokens")


def sniff(head: bytes, path: str) -> int:
    """Recognises a saved conversation."""
    first = first_look(head).first
    return 95 if isinstance(first, dict) and {"conversation_id", "history"} <= first.keys() else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of all conversations."""
    reader = _Conversations(path, options)
    rows = reader.rows() if data.startswith(SQLITE) else reader.entries("", data)
    return reader.read_records(number_records(rows, cut=not data.startswith(SQLITE)))


class _Conversations(KiroReader):
    fields, unit, row_word = FIELDS, "entry", ("an entry", "entries")

    def rows(self) -> Iterator[bytes]:
        """The entries of all conversations of the database."""
        tables = schema(self.path)
        with snapshot(self.path) as database:
            for table, column in TABLES:
                if has(tables, table, column, "value"):
                    for row in database.execute(f"SELECT {column}, value FROM {table} ORDER BY rowid"):  # noqa: S608
                        yield from self.entries(str(row[0]), str(row[1]).encode("utf-8", "replace"))

    def entries(self, name: str, data: bytes) -> Iterator[bytes]:
        """The entries of one conversation, each with the conversation's name and model."""
        about = object_in(data) or object_of(first_look(data).first)
        key = known_text(about.get("conversation_id")) or name
        model = known_text(object_of(about.get("model_info")).get("model_id"))
        if name:
            self.titles[key] = redact.text(name)[:80]
        for entry in elements(data, "history"):
            pair = list(elements(entry)) if entry.startswith(b"[") else []
            if len(pair) == 2:
                entry = b'{"user":' + pair[0] + b',"assistant":' + pair[1] + b"}"
            yield with_ids(entry, session=key, model=model)

    def session_of(self, value: dict[str, Any]) -> str:
        """The conversation of an entry."""
        return known_text(value.get("session")) or ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads an entry: the input, then the answer."""
        value, metadata = line.value, object_of(line.value.get("request_metadata"))
        content = object_of(object_of(value.get("user")).get("content"))
        for kind in ("CancelledToolUses", "ToolUseResults", "Prompt"):
            if kind not in content:
                continue
            part = object_of(content[kind])
            parts = [ToolResultPart(known_text(result.get("tool_use_id")), None, _result_text(result.get("content")),
                                    result.get("status") == "Error")
                     for result in objects_of(part.get("tool_use_results"))]
            if kind == "CancelledToolUses":
                place = self.say(line, place, "", mark="interrupted", at_tool=True)
            place = self.results(line, place, *parts, denied=kind == "CancelledToolUses")
            text = known_text(part.get("prompt"))
            if text is not None:
                place = self.say(line, place, text, own=is_own(text))
        held = object_of(value.get("assistant"))
        form = next((name for name in ("ToolUse", "Response") if isinstance(held.get(name), dict)), None)
        if form is None:
            return place
        message = held[form]
        answer = self.begin_answer(
            line, place, message.get("message_id"), message.get("content"),
            model=known_text(metadata.get("model_id")) or value.get("model"),
            begin=metadata.get("request_start_timestamp_ms"))
        for number, call in numbered_objects(message.get("tool_uses")):
            take_call(answer, call, line, answer.word_at, "assistant", form, "tool_uses", number, member="args")
        fresh, cached, written, output = counts_of(metadata, *COUNTS)
        if output is not None:
            answer.usage = Usage(input_count(answer.api, fresh, cached, written), output, None, cached, written)
        return TreePlace(answer)


def _result_text(content: Any) -> str:
    """The text of a result, whose parts are texts or JSON."""
    return "\n".join(any_text(part.get("Text", part.get("Json"))) for part in objects_of(content))
