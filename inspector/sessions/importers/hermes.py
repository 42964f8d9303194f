"""Sessions of Hermes: its database (`state.db`), and the JSON snapshots of older releases.

Its words are OpenAI's, but Hermes maps the providers' words before it writes them down, and writes words of its own
over them. Arguments are the strings that the model wrote; what was cut in them is refused, and mostly not saved.
Source: PyPI hermes-agent 0.19.0, `hermes_state.py`, `agent/conversation_loop.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import TABLE, ChatTableReader, has, schema
from inspector.sessions.importers.records import (
    compact_json,
    elements,
    first_look,
    list_of,
    number_records,
    whole_object,
)
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptLine, content_text
from inspector.sessions.transcripts.member_values import object_of
from inspector.sessions.transcripts.reasons import recorder_reason
from loop_core.values import ArgsForm, At, CallKind, ReasoningPart, Stop, TextPart, ToolCall, ToolResultPart
from loop_core.wire.base import StopRow

STOPS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, "hermes-agent 0.19.0 agent/conversation_loop.py"),
    "length": StopRow(Stop.MAX_TOKENS, None, "hermes-agent 0.19.0: also what cut arguments are written down as"),
    "tool_calls": StopRow(Stop.TOOL_CALL, None, "hermes-agent 0.19.0"),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, "hermes-agent 0.19.0"),
    "verification_required": StopRow(Stop.END_TURN, None, "written over `stop` where Hermes has the answer verified"),
    "verify_hook_continue": StopRow(Stop.END_TURN, None, "written over `stop` where a hook has the loop go on"),
    "kanban_terminal_required": StopRow(Stop.END_TURN, None, "written over `stop` where a task is not closed yet"),
}
FIELDS: Fields = {
    "": {"role": (str,), "content": (str, list), "tool_calls": (list,), "finish_reason": (str,)},
}
"""What is read of a message, and the types that it can have."""
PASSED = frozenset({"system", "session_meta", "session"})
"""Roles of messages that carry nothing of an exchange."""
_JSON_TEXT = "\0json:"
"""Begins a content that is a list, where the column holds text."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the columns of its tables, or the members of a snapshot."""
    if head.startswith(SQLITE):
        found = schema(path)
        own = has(found, "messages", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name")
        return 95 if own and has(found, "sessions", "id", "source", "started_at") else 0
    first = first_look(head).first
    snapshot = isinstance(first, dict) and "session_id" in first and {"platform", "session_start"} & first.keys()
    return 95 if snapshot else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    reader = _Reader(path, options)
    if data.startswith(SQLITE):
        return reader.read_database()
    reader.unit = "message"
    pieces = number_records(_snapshot(data, whole_object(data)), cut=True)
    return reader.read_records(pieces)


def _snapshot(data: bytes, value: dict[str, Any]) -> Iterator[bytes]:
    """A session and its messages, as an older release wrote them."""
    session = {"id": value.get("session_id"), "title": value.get("title"), "model": value.get("model")}
    yield compact_json({TABLE: "sessions", **{name: held for name, held in session.items() if isinstance(held, str)}})
    yield from elements(list_of(data, "messages"))


class _Reader(ChatTableReader):
    """One file being read."""

    name, agent, fields = "hermes", "Hermes", FIELDS
    words = "stop reasons are the words that Hermes writes down; it maps the providers' words first"
    created = "timestamp"
    json_columns = frozenset({"tool_calls"})

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.model: str | None = None

    def open_session(self, value: dict[str, Any]) -> None:
        """Its model, which messages do not have."""
        self.model = value["model"] if isinstance(value.get("model"), str) else None

    def message(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        """A message of the user, of the model, or of a tool."""
        value, role = line.value, line.value.get("role")
        if value.get("active") == 0 and value.get("compacted") != 1:
            self.remarks["the user took back"] += 1
        text = _text(value.get("content"))
        if role == "user":
            self.user(line.number, text, own=bool(value.get("display_kind")))  # a note of the agent's own
        elif role == "assistant":
            self._answer(line, text)
        elif role == "tool":
            key, name = value.get("tool_call_id"), value.get("tool_name")
            error = value.get("finish_reason") == "error"
            self.results(line.number, ToolResultPart(key if isinstance(key, str) else None,
                                                     name if isinstance(name, str) else None, text, error))
        else:
            lines.count(role, PASSED)

    def _answer(self, line: TranscriptLine, text: str) -> None:
        value = line.value
        answer = self.answer_of(line, f"{self.session}:{line.number}", None, self.model, value.get("timestamp"))
        at = answer.take(line)
        thought = value.get("reasoning_content") or value.get("reasoning")
        if isinstance(thought, str) and thought:
            answer.parts.append(ReasoningPart(thought, None))
        if text:
            answer.parts.append(TextPart(text))
        calls = value.get("tool_calls")
        for number, call in enumerate(calls if isinstance(calls, list) else ()):
            answer.parts.append(_call(object_of(call), line, number, at))
        word = value.get("finish_reason")
        answer.word_at = place = At(at.part, at.start, at.end, "/finish_reason")
        if isinstance(word, str) and word:
            row = STOPS.get(word, StopRow(Stop.UNKNOWN))
            rule = "hermes.finish_reasons" if word in STOPS else "unknown_word"
            answer.stop = recorder_reason(row.stop, row.detail, place, word, rule)


def _call(call: dict[str, Any], line: TranscriptLine, number: int, at: At) -> ToolCall:
    function = object_of(call.get("function"))
    key, given = call.get("id") or call.get("call_id"), function.get("arguments")
    text = isinstance(given, str)
    arguments = given if text else slice_of(line.data, "tool_calls", number, "function", "arguments")
    return ToolCall(key if isinstance(key, str) else None, str(function.get("name") or ""), arguments, True,
                    CallKind.FUNCTION, ArgsForm.STRING if text else ArgsForm.OBJECT,
                    at=At(at.part, at.start, at.end, f"/tool_calls/{number}"))


def _text(content: Any) -> str:
    """The text of a message; a list of blocks may stand in a column of text."""
    if isinstance(content, str) and content.startswith(_JSON_TEXT):
        try:
            content = traffic.loads(content.removeprefix(_JSON_TEXT))
        except (ValueError, RecursionError):
            return str(content)
    return content if isinstance(content, str) else content_text(content)
