"""Histories of fast-agent: a JSON object with `messages`, as its sessions, `--results` and `/save` write it.

The stop word is fast-agent's own. `endTurn` stands for every word that it does not know and for a missing one, and only
for Messages and Bedrock does `toolUse` mean that the provider said so: elsewhere it means that there are calls, also in
an answer that was cut. Both are therefore inferred. Arguments come parsed, after fast-agent completed those of a cut
call, so they look whole. A request that failed within a stream of Chat Completions may leave nothing. Sources:
fast-agent-mcp 0.10.48 `mcp/prompt_message_extended.py`, `types/llm_stop_reason.py`, `llm/provider`; 32 histories that
it wrote over three APIs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from inspector.sessions import COMPANION
from inspector.sessions.importers.records import first_look, list_pieces, object_beside
from inspector.sessions.importers.span_messages import load_json
from inspector.sessions.reasons import table_reason
from inspector.sessions.recording import FileReading, Options, UnreadableError
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import (
    known_text,
    moment_text,
    number_of,
    numbered_objects,
    object_of,
    objects_of,
    usage_in,
)
from loop_core.values import At, OpaquePart, Stop, ToolResultPart
from loop_core.wire.failures import StopRow

FIELDS: Fields = {"": {
    "role": (str,), "content": (list,), "tool_calls": (dict,), "tool_results": (dict,), "channels": (dict,),
    "stop_reason": (str,), "is_template": (bool,), "timestamp": (str,),
}}
_SOURCE = "fast-agent types/llm_stop_reason.py"
STOPS: Mapping[str, StopRow] = {
    "toolUse": StopRow(Stop.TOOL_CALL, None, _SOURCE),
    "stopSequence": StopRow(Stop.END_TURN, "stop_sequence", _SOURCE),
    "maxTokens": StopRow(Stop.MAX_TOKENS, None, _SOURCE),
    "safety": StopRow(Stop.SAFETY_BLOCKED, None, _SOURCE),
    "pause": StopRow(Stop.PAUSED, "echo", _SOURCE),
    "continue": StopRow(Stop.PAUSED, "echo", _SOURCE),
    "cancelled": StopRow(Stop.CANCELLED, None, _SOURCE),
    "timeout": StopRow(Stop.INTERRUPTED, None, _SOURCE),
}
APIS: Mapping[str, str] = {
    "anthropic": "anthropic_messages", "bedrock": "bedrock_converse", "openai-chat": "openai_chat",
    "openai-responses": "openai_responses", "openai-responses-compatible": "openai_responses",
    "google-generate-content": "gemini_generate",
}
"""The shape of an answer's token counts (`usage_schema`) -> the wire format."""
CALLS_SAID = frozenset({"anthropic_messages", "bedrock_converse"})
"""The wire formats for which `toolUse` is the provider's word for calls."""
OVER = {"endTurn": "ended", "maxIterations": "stopped"}
"""Word that says nothing about the answer -> the mark for the end of the turn, which it does show."""
OWN = frozenset({"fast-agent-synthetic-final", "fast-agent-compaction"})
"""The channels of messages that fast-agent wrote itself."""

EARLIER = re.compile(r"(history_.+)_previous\.json")
"""Matches the name of the state of a history before the last turn, which a session keeps beside it."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the first message."""
    first = next(iter(objects_of(object_of(first_look(head).first).get("messages"))), {})
    return 95 if "role" in first and "is_template" in first and isinstance(first.get("content"), list) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of a history. Raises `UnreadableError` for the earlier state of one that is beside it."""
    folder, name = os.path.split(os.path.abspath(path))
    earlier = EARLIER.fullmatch(name)
    if earlier is not None and os.path.exists(os.path.join(folder, f"{earlier[1]}.json")):
        raise UnreadableError(f"the earlier state of a history of fast-agent{COMPANION}")
    return _History(path, options).read_records(list_pieces(data, "messages"))


class _History(ChatReader):
    name, agent, fields = "fast-agent", "fast-agent", FIELDS
    words = "stop reasons are fast-agent's words; it has none for a normal end, nor, in most APIs, for calls"
    awaits_results = True
    unanswered = "end the history without an answer, as some failed requests leave it"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        about = object_beside(path, "session.json")
        self.session_id = known_text(about.get("session_id")) or ""
        self.title = known_text(object_of(about.get("metadata")).get("title")) or self.session_id

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role = line.value, line.value.get("role")
        channels = object_of(value.get("channels"))
        if value.get("is_template") is True or not OWN.isdisjoint(channels):
            self.remarks["are templates and messages of fast-agent itself"] += 1
            return place
        if role == "assistant":
            return self._answer(line, place, channels)
        if role != "user":
            lines.count(role, frozenset())
            return place
        results = tuple(_result(key, object_of(each)) for key, each in object_of(value.get("tool_results")).items())
        place = self.results(line, place, *results)
        text = text_of(value.get("content"))
        return self.say(line, place, text) if text or not results else place

    def _answer(self, line: TranscriptLine, place: TreePlace, channels: dict[str, Any]) -> TreePlace:
        value = line.value
        counts: dict[str, Any] = next(reversed(objects_of(_note(channels, "usage").get("provider_attempts"))), {})
        answer = self.answer(line, place, model=known_text(counts.get("model")),
                             api=APIS.get(str(counts.get("usage_schema"))), begin=moment_text(value.get("timestamp")))
        at = answer.word_at = answer.take(line)
        for block in objects_of(channels.get("reasoning")):
            answer.add_thought(block.get("text"))
        word = known_text(value.get("stop_reason"))
        why = text_of(channels.get("fast-agent-error"))
        if word == "error" and (why or not value.get("tool_calls")):
            error = _note(channels, "provider-error")
            answer.fail(why or "no message", pointer_at(at, "stop_reason"),
                        number_of(error.get("status")), known_text(error.get("error_type")), word)
        if not why:
            _take_content(answer, value, line, at)
        answer.usage = usage_in(_counts(counts), "input", "output", "reasoning", "cache_read", "cache_write")
        return self._end(answer, line, at, word)

    def _end(self, answer: TranscriptAnswer, line: TranscriptLine, at: At, word: str | None) -> TreePlace:
        place = TreePlace(answer)
        if word in OVER:
            return self.say(line, place, str(word), mark=OVER[str(word)])
        if word == "error" and answer.error is None:  # a tool failed for good, so the loop ended
            return self.say(line, place, word, mark="stopped")
        if word is not None and word != "error" and (word != "toolUse" or answer.api in CALLS_SAID):
            answer.word, answer.word_at = word, pointer_at(at, "stop_reason")
            answer.stop = table_reason(word, STOPS, answer.word_at, "fast_agent.stop_reasons")
        return place


def _take_content(answer: TranscriptAnswer, value: dict[str, Any], line: TranscriptLine, at: At) -> None:
    """Reads the text and the calls of an answer."""
    for number, block in numbered_objects(value.get("content")):
        if block.get("type") == "text":
            answer.add_text(block.get("text"))
        else:
            answer.parts.append(OpaquePart(str(block.get("type")), slice_of(line.data, "content", number) or "{}"))
    for key, call in object_of(value.get("tool_calls")).items():
        given, path = object_of(object_of(call).get("params")), ("tool_calls", key, "params")
        answer.parts.append(call_of(key, given.get("name"), given.get("arguments"), partial(slice_of, line.data, *path),
                                    "arguments", pointer_at(at, *path)))


def _note(channels: dict[str, Any], name: str) -> dict[str, Any]:
    """What fast-agent notes beside a message, as JSON in a text."""
    return object_of(load_json(text_of(channels.get(f"fast-agent-{name}"))))


def _counts(attempt: dict[str, Any]) -> dict[str, Any]:
    """The token counts of an answer's last attempt."""
    read, written = object_of(attempt.get("prompt")), object_of(attempt.get("completion"))
    return {**read, "input": read.get("total"), "output": written.get("total"), "reasoning": written.get("reasoning")}


def _result(key: str, value: dict[str, Any]) -> ToolResultPart:
    shown = [block.get("text", block) for block in objects_of(value.get("content"))]
    return ToolResultPart(key, None, "\n".join(map(any_text, shown)), value.get("isError") is True)
