"""Sessions of Goose: `sessions.db`, and the JSON lines of older releases.

Goose keeps no stop word. A call whose arguments could not be read stands in the message as an error, which says whether
they ended too early. Source: block/goose `crates/goose/src/session`, `crates/goose/src/providers/formats/openai.rs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from inspector.sessions.importers import HEAD, SQLITE
from inspector.sessions.importers.database import TABLE, ChatTableReader, has, schema
from inspector.sessions.importers.records import (
    compact_json,
    elements,
    first_look,
    list_of,
    number_records,
    whole_object,
)
from inspector.sessions.reasons import inferred_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.member_values import object_of
from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    Finding,
    ReasoningPart,
    Severity,
    Stop,
    TextPart,
    ToolCall,
    ToolResultPart,
)

UNREAD = re.compile(r"Could not interpret tool use parameters")
"""What Goose writes in place of a call whose arguments are not JSON."""
ENDED_EARLY = re.compile(r"EOF while parsing")
"""What its parser says where they ended in the middle."""
_RAW = re.compile(r"Raw (?:JSON|arguments): '?(.*?)'?$", re.DOTALL)
"""What some releases quote behind it."""
FIELDS: Fields = {
    "": {"role": (str,), "content_json": (list,), "content": (list,), "metadata_json": (dict,)},
}
"""What is read of a message, and the types that it can have."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the columns of its tables, or a first line with the session's working directory and messages after it.
    """
    if head.startswith(SQLITE):
        found = schema(path)
        own = has(found, "messages", "session_id", "role", "content_json", "created_timestamp")
        return 95 if own and has(found, "sessions", "id", "working_dir") else 0
    first = first_look(head).first
    members = {"description", "message_count", "conversation"}
    header = isinstance(first, dict) and "working_dir" in first and members & first.keys()
    return 95 if header else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    reader = _Reader(path, options)
    if data.startswith(SQLITE):
        return reader.read_database()
    if "conversation" in (first_look(data[:HEAD]).first or {}):
        reader.unit = "message"
        pieces = number_records(_exported(data, whole_object(data)), cut=True)
        return reader.read_records(pieces)
    reader.unit = "line"
    return reader.read(data)


def _exported(data: bytes, value: dict[str, Any]) -> Iterator[bytes]:
    """What `goose session export` writes: the session, and its messages."""
    session = {name: value.get(name) for name in ("id", "name", "description", "working_dir", "model_config")}
    yield compact_json({TABLE: "sessions", **session})
    yield from elements(list_of(data, "conversation"))


class _Reader(ChatTableReader):
    """One file being read."""

    name, agent, fields = "goose", "Goose", FIELDS
    words = "Goose keeps no stop word: what is shown is inferred from other rows, and says so"
    created = "created_timestamp"
    json_columns = frozenset({"content_json", "metadata_json", "model_config_json"})
    titles_in = ("name", "description")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.model: str | None = None
        self.written: Any = None
        """When the last row of an answer was written."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """A row; the first line of an older file is its session."""
        if "working_dir" in line.value and TABLE not in line.value:
            line.value[TABLE] = "sessions"
        return super().take(line, lines, place)

    def open_session(self, value: dict[str, Any]) -> None:
        """Its model, where its messages do not say theirs."""
        model = object_of(value.get("model_config_json") or value.get("model_config")).get("model_name")
        self.model = model if isinstance(model, str) else None
        self.written = None

    def message(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        """A message of the user, with the results of tools, or of the model."""
        value = line.value
        column = "content_json" if "content_json" in value else "content"
        given = value.get(column)
        blocks = [(number, block) for number, block in enumerate(given if isinstance(given, list) else ())
                  if isinstance(block, dict)]
        if value.get("role") == "assistant":
            self._answer(line, column, blocks)
        elif value.get("role") == "user":
            # What Goose tells the model in the user's name is not shown to the user.
            hidden = object_of(value.get("metadata_json") or value.get("metadata")).get("userVisible") is False
            results = [_result(block) for _, block in blocks if block.get("type") == "toolResponse"]
            self.results(line.number, *results)
            for _, block in blocks:
                if block.get("type") == "text" and isinstance(block.get("text"), str):
                    self.user(line.number, block["text"], own=hidden)
        else:
            lines.count(value.get("role"), frozenset())

    def _answer(self, line: TranscriptLine, column: str, blocks: list[tuple[int, dict[str, Any]]]) -> None:
        value = line.value
        noted = object_of(value.get("metadata_json") or value.get("metadata"))
        model = object_of(noted.get("inference")).get("requestedModel")
        started = value.get("created_timestamp") or value.get("created")
        answer = self._split(blocks, started)
        self.written = started
        if answer is None:
            answer = self.answer_of(line, f"{self.session}:{line.number}", None, model or self.model, started)
        at = answer.take(line)
        answer.word_at = answer.word_at if len(answer.lines) > 1 else at
        for number, block in blocks:
            here = At(at.part, at.start, at.end, f"/{column}/{number}")
            kind = block.get("type")
            if kind == "text" and isinstance(block.get("text"), str):
                answer.parts.append(TextPart(block["text"]))
            elif kind == "thinking" and isinstance(block.get("thinking"), str):
                part = ReasoningPart(block["thinking"], None)
                answer.parts += [part] if part not in answer.parts else []  # repeated in each row of a split answer
            elif kind == "toolRequest":
                self._call(answer, block, here, partial(slice_of, line.data, column, number, "toolCall"))
            elif kind == "systemNotification":
                self.remarks["hold a note of Goose's own"] += 1

    def _split(self, blocks: list[tuple[int, dict[str, Any]]], started: Any) -> TranscriptAnswer | None:
        """The answer that a row is a further part of: Goose writes what an answer says, then each call and its result.

        A call stands directly behind the row before, or behind results, written in the same second.
        """
        answer, rows = self.here.answer, self.here.rows()
        kinds = {block.get("type") for _, block in blocks}
        if answer is None or "toolRequest" not in kinds or not all(row.results for row in rows):
            return None
        beside = not rows or (started is not None and started == self.written and "text" not in kinds)
        return answer if beside else None

    def _call(self, answer: TranscriptAnswer, block: dict[str, Any], at: At, slice_at: Any) -> None:
        """A call; one that Goose could not read holds its error instead."""
        call = object_of(block.get("toolCall"))
        key = block.get("id") if isinstance(block.get("id"), str) else None
        # A call is {"status", "value"}; where serde wrote it, Rust's own {"Ok": …} or {"Err": …}.
        inner = "value" if isinstance(call.get("value"), dict) else "Ok"
        made = object_of(call.get(inner))
        if made:
            answer.parts.append(ToolCall(key, str(made.get("name") or ""), slice_at(inner, "arguments"), True,
                                         CallKind.FUNCTION, ArgsForm.OBJECT, at=at))
            return
        error = call.get("error") or call.get("Err") or ""
        said = _message(error)
        quoted = _RAW.search(said)
        answer.parts.append(ToolCall(key, "", quoted[1] if quoted is not None else None,
                                     UNREAD.search(said) is None, CallKind.FUNCTION, ArgsForm.STRING, at=at))
        answer.findings.append(Finding("transcript.unread_call", Severity.INFO,
                                       f"{self.unit} {answer.line}: Goose could not read a call: {said[:200]}", at))
        if UNREAD.search(said):
            cut = ENDED_EARLY.search(said) is not None
            stop = Stop.MAX_TOKENS if cut else Stop.MALFORMED_TOOL_CALL
            how = "its arguments end in the middle of their JSON" if cut else "its arguments are not JSON"
            answer.stop = inferred_reason(stop, None, at, "call_unread", at, f"Goose could not read a call: {how}")


def _message(error: Any) -> str:
    return error if isinstance(error, str) else str(object_of(error).get("message") or error or "")


def _result(block: dict[str, Any]) -> ToolResultPart:
    """The result of a tool; a failure holds an error."""
    key = block.get("id")
    result = object_of(block.get("toolResult"))
    value = result.get("value", result.get("Ok"))
    content = object_of(value).get("content") if isinstance(value, dict) else value
    texts = [object_of(each).get("text") for each in content] if isinstance(content, list) else []
    error = result.get("error", result.get("Err"))
    said = "\n".join(text for text in texts if isinstance(text, str)) or _message(error)
    failed = error is not None or object_of(value).get("isError") is True
    return ToolResultPart(key if isinstance(key, str) else None, None, said, failed)
