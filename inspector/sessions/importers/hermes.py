"""Sessions of Hermes: its database (`state.db`), exports, snapshots and lines of older releases, failed requests.

The stop words are OpenAI's, but Hermes maps the providers' words before it stores them, and replaces some by its own.
Arguments are the strings that the model wrote. A call with cut arguments is refused and usually not stored. Source:
PyPI hermes-agent 0.19.0, `hermes_state.py`, `agent/conversation_loop.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import TABLE, ChatTableReader
from inspector.sessions.importers.records import (
    compact_json,
    elements,
    first_look,
    number_records,
    object_lines,
    whole_object,
)
from inspector.sessions.reasons import recorder_reason, table_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, text_of
from inspector.sessions.transcripts.chat_messages import call_of, pointer_at
from inspector.sessions.transcripts.member_values import (
    cap_of,
    known_text,
    number_of,
    numbered_objects,
    object_of,
    objects_of,
    text_or_none,
)
from loop_core.values import At, Stop, ToolCall, ToolResultPart
from loop_core.wire.failures import StopRow

STOPS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, "hermes-agent 0.19.0 agent/conversation_loop.py"),
    "length": StopRow(Stop.MAX_TOKENS, None, "hermes-agent 0.19.0: also what cut arguments are written down as"),
    "tool_calls": StopRow(Stop.TOOL_CALL, None, "hermes-agent 0.19.0"),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, "hermes-agent 0.19.0"),
    "incomplete": StopRow(Stop.INTERRUPTED, None,
                          "agent/codex_responses_adapter.py: an answer of the Responses API that is not finished"),
    "error": StopRow(Stop.ERROR, "retryable: server failure under HTTP 200", "OpenRouter's word, passed on"),
    "verification_required": StopRow(Stop.END_TURN, None, "written over `stop` where Hermes has the answer verified"),
    "verify_hook_continue": StopRow(Stop.END_TURN, None, "written over `stop` where a hook has the loop go on"),
    "kanban_terminal_required": StopRow(Stop.END_TURN, None, "written over `stop` where a task is not closed yet"),
    "promise_unfulfilled": StopRow(Stop.END_TURN, None, "written over `stop` of a text that only announces an action"),
    "cancelled": StopRow(Stop.CANCELLED, None, "status of the Responses API, passed on"),
    "failed": StopRow(Stop.ERROR, "fatal", "status of the Responses API, passed on"),
}
BROKEN: tuple[str, ...] = (
    r"\[System: The previous response was cut off by a network error mid-stream\.",
    r"\[System: Your previous tool call \(.*?\) was too large and the stream timed out before it could be delivered\.",
)
"""Patterns of Hermes' message to the model after a broken stream. Hermes stores the broken answer with `length`."""
STALLED = re.compile(r"(?:^|\n\n)⚠ Stream stalled mid tool-call \(.*\); the action was not executed\. "
                     r"Ask me to retry if you want to continue\.$", re.DOTALL)
"""Matches the text that Hermes adds to an answer whose stream broke within a call."""
NOTHING = "(empty)"
"""The text that Hermes writes, without a stop word, for an answer that stayed empty."""
FIELDS: Fields = {
    "": {"role": (str,), "content": (str, list), "tool_calls": (list,), "finish_reason": (str,)},
}
META = "session_meta"
"""The role of the first line in a file of lines, which has the model, its tools and the platform."""
OWN = frozenset({"finish_reason", "reasoning", "reasoning_details"})
"""Members that only answers have, in a file of lines. Not every answer has a stop word."""
NO_EXCHANGE = frozenset({"system", META, "session"})
OBJECTS = (frozenset({"session_id", "platform"}), frozenset({"session_id", "session_start"}),
           frozenset({"id", "source", "user_id", "model_config"}), frozenset({"session_id", "reason", "request"}))
"""The members of a snapshot, of an exported session, and of a failed request (`request_dump_….json`)."""
FAILED = "failed request"
"""The role that this module gives to the record of a failed request."""
_JSON_TEXT = "\0json:"
"""The prefix with which Hermes stores a list of blocks in the text column `content`."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the members of a snapshot, or messages of an older release."""
    look = first_look(head)
    if any(names <= object_of(look.first).keys() for names in OBJECTS):
        return 95
    return 85 if any(map(_is_row, look.objects)) else 0


def _is_row(value: dict[str, Any]) -> bool:
    """Whether a value is a message of an older release, with members that only Hermes writes."""
    if "timestamp" not in value and "tools" not in value:
        return False
    calls = objects_of(value.get("tool_calls"))
    own = not OWN.isdisjoint(value) or any("response_item_id" in call for call in calls)
    return value.get("role") == META or (value.get("role") == "assistant" and own)


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    reader = _Reader(path, options)
    if data.startswith(SQLITE):
        return reader.read_database()
    reader.unit = "message"
    objects = object_lines(data) or [data]
    pieces: Iterator[bytes] = map(_with_calls, objects) if "role" in whole_object(objects[0]) else (
        piece for each in objects for piece in _messages(each, whole_object(each)))
    return reader.read_records(number_records(pieces, cut=True))


def _messages(data: bytes, value: dict[str, Any]) -> Iterator[bytes]:
    """The records of a stored or exported session with its messages, or of a failed request."""
    names = {"id": value.get("session_id") or value.get("id"),
             **{name: value.get(name) for name in ("title", "model", "parent_session_id")}}
    yield compact_json({TABLE: "sessions", **{name: text for name, text in names.items() if isinstance(text, str)}})
    if "request" not in value:
        yield from map(_with_calls, elements(data, "messages"))
        return
    body = object_of(object_of(value["request"]).get("body"))
    history = objects_of(body.get("messages"))
    # The dump has the whole history; only the messages after the last answer belong to the failed request.
    last = max((number for number, each in enumerate(history, 1) if each.get("role") == "assistant"), default=0)
    yield from map(compact_json, history[last:])
    yield compact_json({"role": FAILED, "timestamp": value.get("timestamp"), "model": body.get("model"), "error":
                        value.get("error"), "cap": cap_of(body)})


def _with_calls(message: bytes) -> bytes:
    """A message whose calls are a list: some exports have the column's JSON as a text."""
    try:
        value = object_of(traffic.loads(message))
        if not isinstance(value.get("tool_calls"), str):
            return message
        return compact_json({**value, "tool_calls": traffic.loads(value["tool_calls"] or "null")})
    except ValueError:
        return message


class _Reader(ChatTableReader):
    name, agent, fields = "hermes", "Hermes", FIELDS
    words = ("stop reasons are the words that Hermes writes down; it maps the providers' words first, and writes "
             "'stop' also where the provider sent none")
    created = "timestamp"
    json_columns = frozenset({"tool_calls"})
    unanswered = "end a session with a message of the user, as a request that got no whole answer leaves it"

    def open_session(self, value: dict[str, Any]) -> None:
        self.model = text_or_none(value.get("model"))

    def message(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        value, role = line.value, line.value.get("role")
        # A compaction sets `active` to 0 as well; only an undo by the user leaves `compacted` at 0.
        if value.get("active") == 0 and value.get("compacted") != 1:
            self.remarks["the user took back"] += 1
        text = _text(value.get("content"))
        if role == "user":
            broken = any(re.match(pattern, text) for pattern in BROKEN)
            if broken and self.here.right_above is not None:
                _break(self.here.right_above)
            # a note that the agent shows in the role of the user
            self.say(line, self.here, text, own=broken or bool(value.get("display_kind")))
        elif role == FAILED:
            self._failure(line, object_of(value.get("error")))
        elif role == "assistant":
            self._answer(line, text)
        elif role == "tool":
            key, name = text_or_none(value.get("tool_call_id")), text_or_none(value.get("tool_name"))
            self.results(line, self.here, ToolResultPart(key, name, text, value.get("finish_reason") == "error"))
        else:
            if role == META:
                self.open_session(value)
            lines.count(role, NO_EXCHANGE)

    def _failure(self, line: TranscriptLine, error: dict[str, Any]) -> None:
        """Adds a failed request. A dump without an error was stored before the request was sent."""
        if not error:
            self.reading.notices.append("a request of Hermes without its answer: it was stored before it was sent")
            return
        value = line.value
        answer = self.answer(line, self.here, model=value.get("model"), key=f"{self.session}:{line.number}",
                             begin=value.get("timestamp"))
        at = answer.take(line)
        status = number_of(error.get("response_status")) or number_of(error.get("status_code"))
        answer.cap = number_of(value.get("cap"))
        message = known_text(error.get("message")) or "no message"
        answer.fail(message, at, status, known_text(error.get("type")), message[:200])

    def _answer(self, line: TranscriptLine, text: str) -> None:
        value = line.value
        answer = self.answer(line, self.here, key=f"{self.session}:{line.number}", begin=value.get("timestamp"))
        at = answer.take(line)
        answer.add_thought(value.get("reasoning_content") or value.get("reasoning"))
        word = known_text(value.get("finish_reason"))
        silent = text == NOTHING and not word
        answer.add_text("" if silent else STALLED.sub("", text))
        for number, call in numbered_objects(value.get("tool_calls")):
            answer.parts.append(_call(call, line, number, at))
        answer.word_at = pointer_at(at, "finish_reason")
        if silent:
            answer.stop = recorder_reason(Stop.END_TURN, None, pointer_at(at, "content"), NOTHING, "hermes.empty")
        elif word:
            answer.stop = table_reason(word, STOPS, answer.word_at, "hermes.finish_reasons")
        if STALLED.search(text):
            _break(answer)


def _break(answer: TranscriptAnswer) -> None:
    """Sets the stop reason of an answer whose stream broke, and for which Hermes wrote the word for a cut."""
    if answer.stop is not None and answer.stop.normalized is Stop.MAX_TOKENS:
        answer.stop = recorder_reason(Stop.INTERRUPTED, None, answer.word_at, "length", "hermes.broken_streams")


def _call(call: dict[str, Any], line: TranscriptLine, number: int, at: At) -> ToolCall:
    function = object_of(call.get("function"))
    key = call.get("id") or call.get("call_id")
    find = partial(slice_of, line.data, "tool_calls", number, "function")
    return call_of(key, function.get("name"), function.get("arguments"), find, "arguments",
                   pointer_at(at, "tool_calls", number))


def _text(content: Any) -> str:
    """The text of a message; the text column may have a list of blocks."""
    if isinstance(content, str) and content.startswith(_JSON_TEXT):
        try:
            content = traffic.loads(content.removeprefix(_JSON_TEXT))
        except ValueError:
            return str(content)
    return text_of(content)
