"""Message histories of Pydantic AI as JSON (`result.all_messages_json()`): a list of requests and responses.

A response has the provider's stop word (`provider_details.finish_reason`) and one of Pydantic AI's own, whose `stop`
alone is no evidence: Pydantic AI also writes it if the provider gave no reason. Release 1.0 wrote no word at all. The
arguments of a call are the text that the model wrote, or an object if the provider's client had parsed them. Source:
pydantic-ai 2.68 `messages.py` and `models/openai/_chat_model.py`; 68 histories that 2.68 wrote over four APIs, and
eight that 1.0 wrote over two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers.records import first_look, list_pieces
from inspector.sessions.reasons import table_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import (
    api_of,
    counts_of,
    known_text,
    numbered_objects,
    object_of,
    objects_of,
)
from inspector.sessions.transcripts.provider_answers import take_api_word
from loop_core.values import At, CallKind, OpaquePart, Stop, ToolResultPart, Usage
from loop_core.wire import wire
from loop_core.wire.failures import StopRow

APIS: Mapping[str, str] = {
    "anthropic": "anthropic_messages", "google": "gemini_generate", "google-gla": "gemini_generate",
    "google-vertex": "gemini_generate", "bedrock": "bedrock_converse", "cohere": "cohere_chat",
}
"""Name of a provider in Pydantic AI -> its wire format; most other providers have OpenAI's."""
IDS: Mapping[str, str] = {"resp_": "openai_responses", "chatcmpl-": "openai_chat"}
"""Beginning of a response's id -> the wire format of OpenAI's with such ids."""
STOPS: Mapping[str, StopRow] = {
    "length": StopRow(Stop.MAX_TOKENS, None, "FinishReason in messages.py"),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, "FinishReason in messages.py; a refusal of OpenAI's too"),
    "tool_call": StopRow(Stop.TOOL_CALL, None, "FinishReason in messages.py"),
    "error": StopRow(Stop.ERROR, None, "FinishReason in messages.py"),
}
"""Stop word of Pydantic AI -> its meaning, if the provider's word is not in the file."""
STATES: Mapping[str, StopRow] = {
    "interrupted": StopRow(Stop.INTERRUPTED, None, "ModelResponseState in messages.py; histories of lost connections"),
    "incomplete": StopRow(Stop.INTERRUPTED, None, "ModelResponseState in messages.py: still in flight, or stopped"),
    "suspended": StopRow(Stop.PAUSED, None, "ModelResponseState in messages.py: it expects a continuation"),
}
"""State of an incomplete response -> its meaning."""
RESULTS = frozenset({"tool-return", "retry-prompt"})
"""The types of parts of a request that answer a call; a `retry-prompt` without a tool asks for the answer again."""
FEEDBACK = frozenset({"retry-prompt", "retry-feedback"})
PASSED = frozenset({"system-prompt", "instruction", "instruction-baseline", "instruction-digest", "instruction-delta",
                    "tool-availability-delta", "capability-load-delta", "model-settings-delta"})
"""The types of parts of a request that are neither a message nor a result."""
FIELDS: Fields = {"": {"kind": (str,), "parts": (list,), "model_name": (str,), "usage": (dict,),
                       "provider_details": (dict,), "finish_reason": (str,), "state": (str,)}}


def sniff(head: bytes, path: str) -> int:
    """Recognises the first message, a request or a response with its parts."""
    first = first_look(head).first
    message = object_of(first[0]) if isinstance(first, list) and first else {}
    kinds = [part.get("part_kind") for part in objects_of(message.get("parts"))]
    return 97 if message.get("kind") in ("request", "response") and any(kinds) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every response of the history."""
    return _History(path, options).read_records(list(list_pieces(data)))


class _History(ChatReader):
    name, agent, fields, repairs = "pydantic-ai", "Pydantic AI", FIELDS, True

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        kind = line.value.get("kind")
        self.session_id = self.session_id or known_text(line.value.get("conversation_id")) or ""
        if kind == "response":
            return self._answer(line, place)
        if kind == "request":
            return self._request(line, lines, place)
        lines.count(kind, frozenset())
        return place

    def _answer(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        value = line.value
        answer = self.answer(line, place, model=value.get("model_name"))
        answer.started = known_text(value.get("timestamp"))
        answer.named_api = (APIS.get(str(value.get("provider_name")))
                            or api_of(IDS, value.get("provider_response_id")) or answer.named_api)
        at = answer.word_at = answer.take(line)
        for number, part in numbered_objects(value.get("parts")):
            _take_part(answer, part, line, at, "parts", number)
        answer.usage = _usage_of(object_of(value.get("usage")))
        _take_word(answer, value, at)
        return TreePlace(answer)

    def _request(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a request, the results first, because they belong to the calls of the response above."""
        others: list[dict[str, Any]] = []
        for part in objects_of(line.value.get("parts")):
            outcome = part.get("outcome")
            if not _answers_call(part):
                others.append(part)
            elif outcome != "interrupted":  # such a result is written later, only to make the history valid
                place = self.results(line, place, _result(part), denied=outcome == "denied")
        for part in others:
            kind = part.get("part_kind")
            if kind == "user-prompt":
                place = self.say(line, place, _prompt(part.get("content")))
            elif kind in FEEDBACK:
                place = self.say(line, place, any_text(part.get("content")), own=True)
            else:
                lines.count(kind, PASSED)
        return place


def _take_part(answer: TranscriptAnswer, part: dict[str, Any], line: TranscriptLine, at: At, *path: str | int) -> None:
    kind = part.get("part_kind")
    if kind == "text":
        answer.add_text(part.get("content"))
    elif kind == "thinking":
        answer.add_thought(part.get("content"))
    elif kind in ("tool-call", "builtin-tool-call"):
        call = call_of(part.get("tool_call_id"), part.get("tool_name"), part.get("args"),
                       partial(slice_of, line.data, *path), "args", pointer_at(at, *path, "args"))
        answer.parts.append(call._replace(kind=CallKind.SERVER if kind == "builtin-tool-call" else call.kind))
    else:
        answer.parts.append(OpaquePart(str(kind), slice_of(line.data, *path) or "{}"))


def _usage_of(counts: dict[str, Any]) -> Usage | None:
    """The counts of a response; Pydantic AI writes 0 for a count that the provider did not send."""
    names = ("input_tokens", "output_tokens") if "input_tokens" in counts else ("request_tokens", "response_tokens")
    found = counts_of(counts, *names, "output_reasoning_tokens", "cache_read_tokens", "cache_write_tokens")
    return Usage(*(count or None for count in found)) if any(found) else None


def _take_word(answer: TranscriptAnswer, value: dict[str, Any], at: At) -> None:
    """Sets the stop reason of a response by the provider's word, else by a state other than `complete`, else by
    Pydantic AI's own word."""
    native = known_text(object_of(value.get("provider_details")).get("finish_reason"))
    word, state = known_text(value.get("finish_reason")) or "", known_text(value.get("state")) or ""
    if state in STATES and native is None:
        answer.word, answer.word_at = state, pointer_at(at, "state")
        answer.stop = table_reason(state, STATES, answer.word_at, "pydantic_ai.states")
    elif native is not None:
        words = wire(answer.api).stop_reasons
        # For Responses, the word is the reason for the status, without the status.
        row = words.get(native) or words.get(f"incomplete:{native}")
        take_api_word(answer, native, pointer_at(at, "provider_details", "finish_reason"),
                      {} if row is None else {native: row})
    elif word in STOPS:
        answer.word, answer.word_at = word, pointer_at(at, "finish_reason")
        answer.stop = table_reason(word, STOPS, answer.word_at, "pydantic_ai.finish_reasons")


def _answers_call(part: dict[str, Any]) -> bool:
    return part.get("part_kind") in RESULTS and known_text(part.get("tool_name")) is not None


def _result(part: dict[str, Any]) -> ToolResultPart:
    """The result of a call. Errors of validation have the form in which Pydantic AI sends them to the model."""
    content, outcome = part.get("content"), part.get("outcome")
    failed = outcome not in (None, "success") or part.get("part_kind") == "retry-prompt"
    text = any_text(content)
    if failed and isinstance(content, list):
        errors = "error" if len(content) == 1 else "errors"
        text = f"{len(content)} validation {errors}:\n```json\n{json.dumps(content)}\n```"
    return ToolResultPart(known_text(part.get("tool_call_id")), known_text(part.get("tool_name")), text, failed)


def _prompt(content: Any) -> str:
    """The texts in a message of the user; other contents are left out."""
    texts = [each if isinstance(each, str) else known_text(object_of(each).get("content")) for each in (
        content if isinstance(content, list) else [content])]
    return "\n".join(filter(None, texts))
