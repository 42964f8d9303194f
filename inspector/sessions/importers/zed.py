"""Threads of Zed's agent: `threads/threads.db`, whose rows hold a thread as JSON, packed with zstd.

A message of the agent is one answer, with the results of its calls. Its calls have the model's text (`raw_input`) and
a mark for arguments that are complete; threads before 0.3.0 have parsed arguments. No stop word, cap or count of a
single answer is stored, and no error. Sources: zed-industries/zed `crates/agent/src/db.rs`, `thread.rs`,
`legacy_thread.rs`, `language_model/src/request.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.database import snapshot
from inspector.sessions.importers.records import compact_json, list_pieces, number_records, object_in, with_ids
from inspector.sessions.intake import unpack
from inspector.sessions.recording import FileReading, Options, Skipped
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at, take_call
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of
from loop_core.values import OpaquePart, ToolResultPart

FIELDS: Fields = {"": {"thread": (str,), "model": (str,), "User": (dict,), "Agent": (dict,), "role": (str,),
                       "segments": (list,), "tool_uses": (list,), "tool_results": (list,)},
                  "Agent": {"content": (list,), "tool_results": (dict,)}}
NO_EXCHANGE = frozenset({"Resume", "Compaction", "system"})
"""The types of messages without a part of an exchange."""


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of all threads."""
    reader = _Threads(path, options)
    return reader.read_records(number_records(reader.rows()))


class _Threads(ChatReader):
    name, agent, fields = "zed", "Zed", FIELDS

    def rows(self) -> Iterator[bytes]:
        """The messages of all threads, each with the id of its thread and the thread's last model."""
        with snapshot(self.path) as database:
            for index, row in enumerate(map(dict, database.execute("SELECT * FROM threads ORDER BY rowid"))):
                packed, key = row["data"], str(row["id"])
                packed = packed.encode("utf-8", "replace") if isinstance(packed, str) else packed
                data = unpack(packed if isinstance(packed, bytes) else b"", room=self.options.room)
                title = self.titles[key] = redact.text(str(row["summary"]))[:80]
                if row.get("parent_id"):
                    self.parents[key] = str(row["parent_id"])
                if isinstance(data, str) or not (thread := object_in(data)):
                    why = data if isinstance(data, str) else "no JSON"
                    self.reading.skipped.append(Skipped(index, f"{title}: {why}"))
                    continue
                model = known_text(object_of(thread.get("model")).get("model"))
                for _, piece, _ in list_pieces(data, "messages"):
                    piece = compact_json({"Resume": {}}) if piece == b'"Resume"' else piece
                    yield with_ids(piece, thread=key, model=model)

    def session_of(self, value: dict[str, Any]) -> str:
        """The thread of a message."""
        return known_text(value.get("thread")) or ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a message of the user or of the agent, in either form."""
        value, role = line.value, line.value.get("role")
        user, agent = object_of(value.get("User")), object_of(value.get("Agent"))
        if "Agent" in value:
            answer = self._begin(line, place)
            for number, part in numbered_objects(agent.get("content")):
                _take_part(answer, part, line, number)
            return self.results(line, TreePlace(answer), *map(_result, objects_of(
                list(object_of(agent.get("tool_results")).values()))))
        if "User" in value:
            return self.say(line, place, "\n".join(filter(None, map(_text, objects_of(user.get("content"))))))
        if role == "assistant":
            answer = self._begin(line, place)
            for segment in objects_of(value.get("segments")):
                (answer.add_thought if segment.get("type") == "thinking" else answer.add_text)(segment.get("text"))
            for number, call in numbered_objects(value.get("tool_uses")):
                take_call(answer, call, line, answer.word_at, "tool_uses", number, member="input")
            return self.results(line, TreePlace(answer), *map(_result, objects_of(value.get("tool_results"))))
        if role == "user":
            return self.say(line, place, "\n".join(filter(None, map(_text, objects_of(value.get("segments"))))))
        lines.count(role or next(reversed(value), None), NO_EXCHANGE)
        return place

    def _begin(self, line: TranscriptLine, place: TreePlace) -> TranscriptAnswer:
        answer = self.answer(line, place, model=line.value.get("model"))
        answer.word_at = answer.take(line)
        return answer


def _text(part: dict[str, Any]) -> str:
    """The text of a part; the file or the selection that the user mentioned."""
    return known_text(part.get("Text")) or known_text(part.get("text")) or known_text(
        object_of(part.get("Mention")).get("content")) or ""


def _take_part(answer: TranscriptAnswer, part: dict[str, Any], line: TranscriptLine, number: int) -> None:
    path: tuple[str | int, ...] = ("Agent", "content", number)
    if isinstance(call := part.get("ToolUse"), dict):
        path = (*path, "ToolUse")
        raw = known_text(call.get("raw_input"))  # empty for a call without arguments
        value = call.get("input") if raw is None else raw
        found = call_of(call.get("id"), call.get("name"), value, partial(slice_of, line.data, *path), "input",
                        pointer_at(answer.word_at, *path))
        answer.parts.append(found._replace(closed=call.get("is_input_complete") is not False))
    elif "Text" in part:
        answer.add_text(part["Text"])
    elif "Thinking" in part:
        answer.add_thought(object_of(part["Thinking"]).get("text"))
    else:
        answer.parts.append(OpaquePart(next(iter(part), "part"), slice_of(line.data, *path) or "{}"))


def _result(result: dict[str, Any]) -> ToolResultPart:
    """The result of a call; newer releases have a list of contents."""
    content = result.get("content")
    parts = content if isinstance(content, list) else [content]
    text = "\n".join(_text(part) or any_text(part) if isinstance(part, dict) else any_text(part) for part in parts)
    return ToolResultPart(known_text(result.get("tool_use_id")), known_text(result.get("tool_name")), text,
                          result.get("is_error") is True)
