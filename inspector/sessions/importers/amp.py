"""Threads of Amp: `~/.local/share/amp/threads/T-*.json`, and the output of `amp threads export`.

The state of a message has a stop word of Anthropic's vocabulary whichever model answered, so it counts as Amp's own
word. A call that was still streaming has the text of its arguments so far (`inputPartialJSON`). The usage of an answer
is in its message; `usageLedger` repeats the counts and is not read. Source: exports in procrastivity/clast,
`internal/source/amp`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers.records import compact_json, elements, first_look, number_records, whole_object
from inspector.sessions.reasons import recorder_reason, table_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import (
    api_of,
    counts_of,
    input_count,
    known_text,
    number_of,
    numbered_objects,
    object_of,
    text_or_none,
)
from loop_core.values import At, ReasoningPart, Stop, ToolCall, ToolResultPart, Usage
from loop_core.wire.failures import StopRow

STOPS: Mapping[str, StopRow] = {
    "end_turn": StopRow(Stop.END_TURN, None, "Amp exports"),
    "tool_use": StopRow(Stop.TOOL_CALL, None, "Amp exports"),
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, "Anthropic's vocabulary"),
    "stop_sequence": StopRow(Stop.END_TURN, None, "Anthropic's vocabulary"),
    "refusal": StopRow(Stop.SAFETY_BLOCKED, "refusal", "Anthropic's vocabulary"),
    "model_context_window_exceeded": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, "Anthropic's vocabulary"),
}
APIS: Mapping[str, str] = {
    "claude": "anthropic_messages",
    "gpt": "openai_responses",
    "gemini": "gemini_generate",
}
"""Beginning of a model's name -> the wire format of the API of the model's provider."""
INPUTS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
"""The names of the three counts whose sum is the input of an answer."""
DENIED = "rejected-by-user"
"""The state of a tool run that the user refused."""
FAILED = frozenset({DENIED, "cancelled", "error"})
FIELDS: Fields = {
    "": {"role": (str,), "content": (list, str), "state": (dict,), "usage": (dict,)},
    "state": {"type": (str,), "stopReason": (str,)},
}
NO_EXCHANGE = frozenset({"thread", "system", "info"})


def sniff(head: bytes, path: str) -> int:
    """Recognises the id of a thread, and its messages."""
    first = object_of(first_look(head).first)
    own = "messages" in first or {"v", "created", "env"} & first.keys()
    return 95 if own and str(first.get("id", "")).startswith("T-") else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the thread."""
    pieces = number_records(_records(data, whole_object(data)), cut=True)
    return _Reader(path, options).read_records(pieces)


def _records(data: bytes, value: dict[str, Any]) -> Iterator[bytes]:
    yield compact_json({"id": value.get("id"), "title": value.get("title"), "type": "thread"})
    yield from elements(data, "messages")


class _Reader(ChatReader):
    name, agent, fields = "amp", "Amp", FIELDS
    key, row_word = "protocolMessageID", ("a row", "rows")
    words = "stop reasons are those that Amp writes down, in Anthropic's words for every model"

    def session_of(self, value: dict[str, Any]) -> str:
        return self.session or str(value.get("id"))

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role = line.value, line.value.get("role")
        if value.get("type") == "thread" and role is None:
            self.titles[self.session] = text_or_none(value.get("title")) or ""
            lines.count("thread", NO_EXCHANGE)
        elif role == "assistant":
            self._answer(line)
        elif role == "user":
            self._take_message(line)
        else:
            lines.count(role, NO_EXCHANGE)
        return self.here

    def _take_message(self, line: TranscriptLine) -> None:
        blocks = _blocks(line.value.get("content"))
        for _, block in blocks:
            if block.get("type") == "tool_result":
                denied = object_of(block.get("run")).get("status") == DENIED
                self.results(line, self.here, _result(block), denied=denied)
        for _, block in blocks:
            if block.get("type") == "text" and isinstance(block.get("text"), str):
                self.say(line, self.here, block["text"], own=block.get("hidden") is True)

    def _answer(self, line: TranscriptLine) -> None:
        value = line.value
        usage = object_of(value.get("usage"))
        model = usage.get("model")
        key = text_or_none(value.get("protocolMessageID"))
        started = object_of(value.get("meta")).get("sentAt") or value.get("createdAt") or usage.get("timestamp")
        answer = self.answer(line, self.here, model=model, key=f"message {line.number}" if key is None else key,
                             api=api_of(APIS, model), begin=started)
        at = answer.take(line)
        for number, block in _blocks(value.get("content")):
            here = pointer_at(at, "content", number)
            kind = block.get("type")
            if kind == "text":
                answer.add_text(block.get("text"))
            elif kind == "thinking":
                # Its text may be hidden, and its signature is not exported.
                answer.parts.append(ReasoningPart(known_text(block.get("thinking")) or ""))
            elif kind == "tool_use":
                answer.parts.append(_call(block, here, partial(slice_of, line.data, "content", number)))
        if usage:
            answer.usage = usage_of(usage, answer.api)
        _end(answer, object_of(value.get("state")), pointer_at(at, "state"))


def usage_of(usage: dict[str, Any], api: str) -> Usage:
    """The token counts of an answer."""
    fresh, read, written = counts_of(usage, *INPUTS)
    total, cache = number_of(usage.get("totalInputTokens")), (read or 0) + (written or 0)
    if total is not None and total >= cache:  # some threads have the fresh input only as a part of the total
        fresh = total - cache
    return Usage(input_count(api, fresh, read, written), number_of(usage.get("outputTokens")), None, read, written)


def _end(answer: TranscriptAnswer, state: dict[str, Any], at: At) -> None:
    word, kind = state.get("stopReason"), state.get("type")
    answer.word_at = at
    if kind in ("cancelled", "error"):
        stop = Stop.CANCELLED if kind == "cancelled" else Stop.ERROR
        answer.stop = recorder_reason(stop, None if kind == "cancelled" else "fatal", at, kind, "amp.states")
    elif isinstance(word, str) and word:
        answer.stop = table_reason(word, STOPS, at, "amp.stop_reasons")


def _blocks(content: Any) -> list[tuple[int, dict[str, Any]]]:
    return numbered_objects([{"type": "text", "text": content}] if isinstance(content, str) else content)


def _call(block: dict[str, Any], at: At, find: partial[str | None]) -> ToolCall:
    # Older threads lack the member: only an explicit False marks a call that was still streaming.
    whole, call_input = block.get("complete") is not False, block.get("input")
    streamed = known_text(object_of(block.get("inputPartialJSON")).get("json"))
    read = streamed if streamed and not (whole and call_input) else call_input
    return call_of(block.get("id"), block.get("name"), read, find, "input", at)._replace(closed=whole)


def _result(block: dict[str, Any]) -> ToolResultPart:
    """The result of a call; a refusal by the user is an error. Some exports have Anthropic's own block instead."""
    key, run = block.get("toolUseID", block.get("tool_use_id")), object_of(block.get("run"))
    result = run.get("result", run.get("error", block.get("content")))
    output = object_of(result).get("message" if "result" not in run and "error" in run else "output")
    text = result if isinstance(result, str) else output if isinstance(output, str) else (
        "" if result is None else compact_json(result).decode())
    status = run.get("status")
    code = object_of(result).get("exitCode")
    failed = status in FAILED or (type(code) is int and code != 0)
    if failed and not text:
        text = str(run.get("reason") or status)
    return ToolResultPart(text_or_none(key), None, text, failed)
