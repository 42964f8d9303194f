"""The parts of opencode's messages: calls and their results, token counts, stop words and errors.

The stop words are those of Vercel's AI SDK; the newest records have the provider's word as well (`rawFinish`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from inspector.sessions.reasons import PROVIDER, error_in_text, error_reason, recorder_reason, table_reason
from inspector.sessions.transcripts.answer import TranscriptAnswer
from inspector.sessions.transcripts.chat_messages import pointer_at
from inspector.sessions.transcripts.member_values import input_count, number_of, object_of, objects_of, text_or_none
from loop_core.values import ArgsForm, At, CallKind, Evidence, Stop, ToolCall, ToolResultPart, Usage
from loop_core.wire.failures import StopRow

STOPS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, "AI SDK: a stop sequence, or the model is done"),
    "length": StopRow(Stop.MAX_TOKENS, None, "AI SDK: the maximum number of tokens"),
    "content-filter": StopRow(Stop.SAFETY_BLOCKED, None, "AI SDK: a content filter"),
    "tool-calls": StopRow(Stop.TOOL_CALL, None, "AI SDK: the model asked for tools"),
    "error": StopRow(Stop.ERROR, "fatal", "AI SDK: an error; opencode v2 writes it at each failure"),
}
"""The AI SDK's words (`LanguageModelV2FinishReason`); `other` and `unknown` stay unknown."""
ERRORS: Mapping[str, StopRow] = {
    "MessageOutputLengthError": StopRow(Stop.MAX_TOKENS, None, "opencode message-v2.ts"),
    "MessageAbortedError": StopRow(Stop.CANCELLED, None, "opencode message-v2.ts"),
    "ContextOverflowError": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, "opencode message-v2.ts"),
    "ContentFilterError": StopRow(Stop.SAFETY_BLOCKED, None, "@opencode-ai/sdk 1.19.3"),
}
"""Name of an error -> the end of the answer; other errors are classified by their message."""
_BAD_JSON = re.compile(r"JSON parsing failed: Text: (.*)\.\nError message: ", re.DOTALL)
"""The AI SDK's `JSONParseError`, which quotes the arguments that could not be parsed."""
_TOOL = "invalid"
"""The tool that opencode substitutes for a call with unreadable arguments or an unknown tool."""


def call_of(block: dict[str, Any], at: At, slice_at: Callable[..., str | None]) -> ToolCall:
    """A call. Its arguments are the JSON of the record; the received text is lost, unless an error quotes it."""
    state = object_of(block.get("state"))
    call_id = text_or_none(block.get("callID") or block.get("id"))
    name = block.get("tool") or block.get("name")
    given = state.get("input")
    # Such a call was never parsed: `raw` has the text received so far (`ToolStatePending`).
    if state.get("status") in ("pending", "streaming"):
        raw = given if isinstance(given, str) else state.get("raw")
        return ToolCall(call_id, str(name or ""), raw if isinstance(raw, str) else "", False, CallKind.FUNCTION,
                        ArgsForm.STRING, at=at)
    if name == _TOOL and isinstance(given, dict):
        quoted = _BAD_JSON.search(str(given.get("error")))
        return ToolCall(call_id, str(given.get("tool") or name), quoted[1] if quoted is not None else None,
                        quoted is None, CallKind.FUNCTION, ArgsForm.STRING, at=at)
    return ToolCall(call_id, str(name or ""), None if given is None else slice_at("state", "input"), True,
                    CallKind.FUNCTION, ArgsForm.OBJECT, at=at)


def result_of(block: dict[str, Any], call: ToolCall) -> ToolResultPart | None:
    """The result of a call; None if it has none yet."""
    state = object_of(block.get("state"))
    status = state.get("status")
    if status == "completed":
        output = state.get("output")
        texts = [each.get("text") for each in objects_of(state.get("content"))]
        said = output if isinstance(output, str) else "\n".join(text for text in texts if isinstance(text, str))
        return ToolResultPart(call.id, call.name, said, False)
    if status == "error":
        error = state.get("error")
        told = error if isinstance(error, str) else _message_of(object_of(error))
        return ToolResultPart(call.id, call.name, told, True)
    return None


def usage_of(tokens: Any, api: str) -> Usage | None:
    """Token counts of a message. In most records the output excludes reasoning; `total` shows in which."""
    counts = object_of(tokens)
    if not counts:
        return None
    cache = object_of(counts.get("cache"))
    given, made, thought = (number_of(counts.get(name)) for name in ("input", "output", "reasoning"))
    cached, written = number_of(cache.get("read")), number_of(cache.get("write"))
    every = (given or 0) + (made or 0) + (thought or 0) + (cached or 0) + (written or 0)
    # The inspector counts reasoning as part of the output, as most providers do.
    if made is not None and thought and number_of(counts.get("total")) == every:
        made += thought
    return Usage(input_count(api, given, cached, written), made, thought, cached)


def end_by_word(answer: TranscriptAnswer, word: Any, value: dict[str, Any], at: At, pointer: str) -> None:
    """The stop reason of an answer by the recorder's word; with the provider's word, if it was recorded."""
    answer.word_at = place = at._replace(pointer=pointer)
    if not isinstance(word, str) or not word:
        return
    answer.stop = stop = table_reason(word, STOPS, place, "opencode.stop_reasons")
    raw = value.get("rawFinish")
    if isinstance(raw, str) and raw:
        seen = (Evidence(PROVIDER, pointer_at(at, "rawFinish"), raw), stop.evidence[-1])
        answer.word, answer.stop = raw, stop._replace(raw=raw, evidence=seen)


def end_by_error(answer: TranscriptAnswer, error: dict[str, Any], at: At) -> None:
    """The stop reason of an answer by the error recorded with it."""
    name = error.get("name") or error.get("type")
    word = name if isinstance(name, str) and name else "error"
    answer.word_at = place = pointer_at(at, "error")
    data = object_of(error.get("data"))
    status = data.get("statusCode") or error.get("status")
    row = ERRORS.get(word)
    if row is not None:
        answer.stop = recorder_reason(row.stop, row.detail, place, word, "opencode.errors")
        return
    body = data.get("responseBody")
    found = error_in_text(body if isinstance(body, str) and "{" in body else _message_of(error),
                          status if type(status) is int else None, word)
    again = data.get("isRetryable")
    answer.error = found._replace(retryable=again) if isinstance(again, bool) else found
    answer.stop = error_reason(answer.error, place, word)


def _message_of(error: dict[str, Any]) -> str:
    data = object_of(error.get("data"))
    return text_or_none(data.get("message") or error.get("message") or error.get("name")) or ""
