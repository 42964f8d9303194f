"""Messages of Vercel's AI SDK as applications store them (`UIMessage`): a list, lines, or an object with `messages`.

A message of the assistant has the parts of all steps of a turn; each step is an answer of the model. There is no stop
word, unless the application adds one (`metadata.finishReason`). The state of a part shows what a broken stream left
unfinished. Arguments that the SDK could not use, such as cut ones, are beside the input (`rawInput`); such a call did
not run. Sources: vercel/ai `packages/ai/src/ui/ui-messages.ts` and, of AI SDK 4, `packages/ui-utils/src/types.ts`;
messages that ai 4.3.19, 5.0.277 and 6.0.326 wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers.records import first_look, list_pieces, number_records, object_lines
from inspector.sessions.reasons import UNREAD_CALL, recorder_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of
from inspector.sessions.transcripts.provider_answers import take_word
from loop_core.values import At, CallKind, Finding, OpaquePart, Severity, Stop, ToolResultPart

UNFINISHED = frozenset({"streaming", "input-streaming", "partial-call"})
"""The states of a part whose stream has not ended; the last is AI SDK 4's."""
RESULTS: Mapping[str, bool] = {
    "output-available": False, "result": False, "output-error": True, "output-denied": True}
"""State of a call with a result -> whether the call failed; `result` is AI SDK 4's."""
PARTS = frozenset({"step-start", "reasoning", "dynamic-tool"})
"""The types of parts by which a message is recognised, beside texts, files, `tool-…` and those of `PASSED`."""
PASSED = ("source", "data-")
"""The beginnings of the types of parts that the model did not write."""
FIELDS: Fields = {"": {"role": (str,), "parts": (list,), "metadata": (dict,)}}
_TOOL = "tool-"


def sniff(head: bytes, path: str) -> int:
    """Recognises the first message with parts that have types."""
    first = first_look(head).first
    listed = first if isinstance(first, list) else object_of(first).get("messages", [first])
    message = next(iter(objects_of(listed)), {})
    parts = objects_of(message.get("parts"))
    return 94 if {"id", "role"} <= message.keys() and parts and all(map(_is_part, parts)) else 0


def _is_part(part: dict[str, Any]) -> bool:
    """Whether a part is one of the SDK; texts in traces of OpenTelemetry have other members."""
    kind = known_text(part.get("type")) or ""
    return ("text" in part if kind == "text" else kind in PARTS) or kind.startswith((_TOOL, "file", *PASSED))


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every step of every message."""
    lines = object_lines(data)
    pieces = number_records(lines) if lines else list(list_pieces(data)) or list(list_pieces(data, "messages"))
    return _Messages(path, options).read_records(pieces)


class _Messages(ChatReader):
    name, agent, fields = "ai-sdk-messages", "the AI SDK", FIELDS

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role = line.value, line.value.get("role")
        if role == "user":
            return self.say(line, place, "\n".join(
                text for part in objects_of(value.get("parts")) if (text := known_text(part.get("text")))))
        if role != "assistant":
            lines.count(role, frozenset({"system"}))
            return place
        about = object_of(value.get("metadata"))
        for step, parts in enumerate(steps_of(numbered_objects(value.get("parts"))), 1):
            answer = self.answer(line, place, f"step {step} of message", about.get("model"))
            at = answer.word_at = answer.take(line)
            results, denied = [], False
            for number, part in parts:
                results += take_part(answer, part, line, at, number)
                denied = denied or part.get("state") == "output-denied"
            place = self.results(line, TreePlace(answer), *results, denied=denied)
        word, last = known_text(about.get("finishReason")), place.answer
        if last is not None and last.line == line.number:
            _take_state(last, value)
        if word is not None and last is not None and last.line == line.number and last.stop is None:
            last.word_at = pointer_at(last.word_at, "metadata", "finishReason")
            take_word(last, word, last.word_at, "ai_sdk.finish_reasons", empty=False)
        return place


def steps_of(parts: Any) -> list[list[tuple[int, dict[str, Any]]]]:
    """The parts of each step, with their numbers."""
    steps: list[list[tuple[int, dict[str, Any]]]] = []
    for number, part in parts:
        if part.get("type") == "step-start":
            steps.append([])
        elif steps:
            steps[-1].append((number, part))
        else:
            steps = [[(number, part)]]
    return steps


def take_part(
    answer: TranscriptAnswer, part: dict[str, Any], line: TranscriptLine, at: At, number: int
) -> list[ToolResultPart]:
    """Reads a part of an answer; returns the result of a call, if the part has one."""
    kind = known_text(part.get("type")) or ""
    if kind == "text":
        answer.add_text(part.get("text"))
    elif kind == "reasoning":
        answer.add_thought(part.get("text") or part.get("reasoning"))
    elif kind.startswith((_TOOL, "dynamic-tool")):
        call, within = _within(part)
        return _take_call(answer, call, line, at, "parts", number, *within)
    elif not kind.startswith(PASSED):
        answer.parts.append(OpaquePart(kind, slice_of(line.data, "parts", number) or "{}"))
    return []


def _within(part: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The object with the state of a part, and its path in the part: that of AI SDK 4's calls is inside the part."""
    inner = part.get("type") == "tool-invocation"
    return (object_of(part.get("toolInvocation")), ("toolInvocation",)) if inner else (part, ())


def _take_call(
    answer: TranscriptAnswer, part: dict[str, Any], line: TranscriptLine, at: At, *path: str | int
) -> list[ToolResultPart]:
    state, key = known_text(part.get("state")) or "", known_text(part.get("toolCallId"))
    name = known_text(part.get("toolName")) or (known_text(part.get("type")) or "").removeprefix(_TOOL)
    raw, unread = part.get("rawInput"), part.get("input") is None and part.get("rawInput") is not None
    member = "rawInput" if isinstance(raw, str) or unread else "args" if "args" in part else "input"
    call = call_of(key, name, part.get(member), partial(slice_of, line.data, *path), member, pointer_at(at, *path))
    run = CallKind.SERVER if part.get("providerExecuted") is True else call.kind
    answer.parts.append(call._replace(kind=run, closed=state not in UNFINISHED))
    if state not in RESULTS or part.get("preliminary") is True:
        return []
    if unread:
        answer.findings.append(Finding(UNREAD_CALL, Severity.INFO, "the AI SDK could not use the arguments of a call",
                                       call.at))
    text = known_text(part.get("errorText")) or any_text(part.get("result" if "result" in part else "output"))
    return [ToolResultPart(key, name, text, RESULTS[state])]


def _take_state(answer: TranscriptAnswer, message: dict[str, Any]) -> None:
    """Reads the state of the last part of a message, which says whether the stream broke off or was stopped. An earlier
    part may keep the state of a stream, if a server sends no end of it."""
    written = [(number, part) for number, part in numbered_objects(message.get("parts"))
               if not str(part.get("type")).startswith(PASSED)]
    number, part = written[-1] if written else (0, {})
    held, within = _within(part)
    state = known_text(held.get("state")) or ""
    if state in UNFINISHED:
        at = pointer_at(answer.word_at, "parts", number, *within, "state")
        answer.stop = recorder_reason(Stop.INTERRUPTED, None, at, state, "ai_sdk.states")
