"""Results of Vercel's AI SDK (`generateText`) as JSON: an object with `steps`, each an answer of the model, or a step.

A step has the calls that the SDK ran and their results. The reason is the SDK's own word; AI SDK 6 writes the
provider's beside it (`rawFinishReason`). The user's message is not in the file.
Source: results that ai 4.3.19, 5.0.277 and 6.0.326 wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers.records import first_look, list_pieces
from inspector.sessions.reasons import PROVIDER
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import cap_of, known_text, numbered_objects, object_of, usage_in
from inspector.sessions.transcripts.provider_answers import row_of, take_word
from loop_core.values import At, CallKind, Evidence, OpaquePart, Stop, StopReason, ToolResultPart

FAILED: Mapping[str, bool] = {"tool-result": False, "tool-error": True}
"""Type of a part with the result of a call -> whether the call failed."""
BEGINNING = "anthropic.message_start"
"""The kind of a part in which AI SDK 7 keeps the beginning of an answer of Claude; it is no output."""
FIELDS: Fields = {"": {
    "content": (list,), "text": (str,), "toolCalls": (list,), "toolResults": (list,), "finishReason": (str,),
    "rawFinishReason": (str,), "usage": (dict,), "response": (dict,), "request": (dict,)}}


def sniff(head: bytes, path: str) -> int:
    """Recognises the first step, which has a reason, counts, and the model's output."""
    first = object_of(first_look(head).first)
    steps = first.get("steps", [first])
    step = object_of(steps[0]) if isinstance(steps, list) and steps else {}
    return 96 if {"finishReason", "usage"} <= step.keys() and not {"content", "text"}.isdisjoint(step) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every step."""
    return StepReader(path, options).read_records(list(list_pieces(data, "steps")) or [(1, data, True)])


class StepReader(ChatReader):
    """Reads steps, each an answer."""

    name, agent, fields = "ai-sdk-result", "Vercel's AI SDK", FIELDS
    unit, row_word = "step", ("a step", "steps")
    words = "stop reasons are the AI SDK's own (finishReason), or the provider's if the SDK wrote it (rawFinishReason)"

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads one step: an answer, and the results of its calls."""
        value = line.value
        response, usage = object_of(value.get("response")), object_of(value.get("usage"))
        answer = self.answer(line, place, model=response.get("modelId"))
        answer.started = known_text(response.get("timestamp"))
        answer.cap = cap_of(object_of(object_of(value.get("request")).get("body")))
        at = answer.take(line)
        if isinstance(value.get("content"), list):
            parts = [(block, ("content", number)) for number, block in numbered_objects(value["content"])]
        else:  # AI SDK 4
            answer.add_thought(value.get("reasoning"))
            answer.add_text(value.get("text"))
            parts = [(block, (name, number)) for name in ("toolCalls", "toolResults")
                     for number, block in numbered_objects(value.get(name))]
        for block, steps in parts:
            _take_part(answer, block, line, at, *steps)
        names = ("inputTokens", "outputTokens") if "inputTokens" in usage else ("promptTokens", "completionTokens")
        answer.usage = usage_in(usage, *names, "reasoningTokens", "cachedInputTokens")
        _take_reason(answer, value, at)
        results = [_result(block) for block, _ in parts if block.get("type") in FAILED]
        return self.results(line, TreePlace(answer), *results)


def _take_part(answer: TranscriptAnswer, block: dict[str, Any], line: TranscriptLine, at: At, *path: str | int) -> None:
    kind = block.get("type")
    if kind == "text":
        answer.add_text(block.get("text"))
    elif kind == "reasoning":
        answer.add_thought(block.get("text"))
    elif kind == "tool-call":
        member = "args" if "args" in block else "input"
        call = call_of(block.get("toolCallId"), block.get("toolName"), block.get(member),
                       partial(slice_of, line.data, *path), member, pointer_at(at, *path))
        run = CallKind.SERVER if block.get("providerExecuted") is True else call.kind
        answer.parts.append(call._replace(kind=run))
    elif kind not in FAILED and kind != "source" and block.get("kind") != BEGINNING:
        answer.parts.append(OpaquePart(str(kind), slice_of(line.data, *path) or "{}"))


def _result(block: dict[str, Any]) -> ToolResultPart:
    """The result of a call."""
    failed = FAILED[block["type"]]
    value = next((block[name] for name in ("error", "output", "result") if name in block), None)
    key, name = known_text(block.get("toolCallId")), known_text(block.get("toolName"))
    return ToolResultPart(key, name, any_text(value), failed)


def _take_reason(answer: TranscriptAnswer, value: dict[str, Any], at: At) -> None:
    """Reads the stop reason of a step: the provider's word, if it is known and not more favourable than the SDK's."""
    word, raw = known_text(value.get("finishReason")), known_text(value.get("rawFinishReason"))
    answer.word_at = at
    if word is None:
        return
    answer.word_at = pointer_at(at, "finishReason")
    take_word(answer, word, answer.word_at, "ai_sdk.finish_reasons", empty=not answer.parts)
    row = row_of(raw or "")
    if raw is not None and row.stop is not Stop.UNKNOWN and answer.stop is not None and (
            row.stop in (answer.stop.normalized, Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW_EXCEEDED, Stop.SAFETY_BLOCKED)):
        place = pointer_at(at, "rawFinishReason")
        answer.word, answer.word_at = raw, place
        answer.stop = StopReason(row.stop, raw, row.detail, (
            Evidence(PROVIDER, place, raw), Evidence("ai_sdk.raw_finish_reason", place, raw)))
