"""Streams that a server with Vercel's AI SDK sends to the browser: the UI message stream of AI SDK 5 and later, in
server-sent events, and the data stream of AI SDK 4, whose lines begin with a code (`0:"text"`).

A stream is one message of the assistant; each of its steps is an answer of the model, with the calls that the server
ran and their results. The stop word is the SDK's own. AI SDK 5 and later write one only for the last step, and 5.0.0
none at all; so a stream with only `finish` does not show why its last step ended.
Source: vercel/ai `packages/ai/src/ui-message-stream/ui-message-chunks.ts` and, of AI SDK 4,
`packages/ui-utils/src/data-stream-parts.ts`; streams that ai 4.3.19, 5.0.0, 5.0.277 and 6.0.326 wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from inspector.sessions import redact, traffic
from inspector.sessions.importers.records import Piece, member_name, object_in
from inspector.sessions.reasons import recorder_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import (
    InterimRow,
    TranscriptAnswer,
    TranscriptLine,
    TreePlace,
    any_text,
    text_of,
)
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of, usage_in
from inspector.sessions.transcripts.provider_answers import take_word
from inspector.sessions.wordings import refusal
from loop_core.values import ArgsForm, CallKind, OpaquePart, ReasoningPart, Stop, TextPart, ToolCall, ToolResultPart

CODES: Mapping[str, tuple[str, type]] = {
    "0": ("text-delta", str), "2": ("data", list), "3": ("error", str), "8": ("message-metadata", list),
    "9": ("tool-input-available", dict), "a": ("tool-output-available", dict), "b": ("tool-input-start", dict),
    "c": ("tool-input-delta", dict), "d": ("finish", dict), "e": ("finish-step", dict), "f": ("start-step", dict),
    "g": ("reasoning-delta", str), "h": ("source", dict), "i": ("redacted-reasoning", dict),
    "j": ("reasoning-signature", dict), "k": ("file", dict),
}
"""Code before a line of the data stream -> the equivalent event of the UI message stream, and the JSON type of its
value."""
VALUE = "value"
"""The member with the value of a line of the data stream, in the record for the line."""
SURE: Mapping[str, frozenset[str]] = {
    "start-step": frozenset(), "finish-step": frozenset(), "text-delta": frozenset({"id", "delta"}),
    "tool-input-start": frozenset({"toolCallId", "toolName"}),
    "tool-input-available": frozenset({"toolCallId", "toolName", "input"}),
    "error": frozenset({"errorText"}),
}
"""Type of an event by which a UI message stream is recognised -> its members in such a stream, but not elsewhere."""
MEMBERS = frozenset({"toolCallId", "finishReason", "messageId", "data", "signature", "url"})
"""Members of the objects in lines of the data stream; each object has one of them."""
PASSED = frozenset({
    "start", "text-start", "text-end", "reasoning-start", "reasoning-end", "message-metadata", "data", "source",
    "source-url", "source-document", "tool-approval-request", "tool-approval-response",
    "redacted-reasoning", "reasoning-signature",
})
"""The types of events without a part of an answer."""
FIELDS: Fields = {"": {"type": (str,), "toolCallId": (str,), "toolName": (str,), "errorText": (str,)}}
_LINE = re.compile(rb"\s*([0-9a-k]):(?=[\"\[{])")


def sniff(head: bytes, path: str) -> int:
    """Recognises an event of the UI message stream, or lines with codes that fit their values."""
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()][:60]
    if lines and lines[0].startswith((b"data:", b"event:", b":")):
        events = (traffic.parse_prefix(line[5:]) for line in lines if line.startswith(b"data:"))
        return 92 if any(map(_is_event, events)) else 0
    return 92 if lines and all(map(_fits, lines[:-1] or lines)) else 0


def _is_event(value: Any) -> bool:
    kind = object_of(value).get("type")
    return isinstance(kind, str) and kind in SURE and SURE[kind] <= value.keys()


def _fits(line: bytes) -> bool:
    """Whether a line is one of the data stream. Other formats, such as that of Next.js, also begin lines with a
    number."""
    match = _LINE.match(line)
    value: Any = traffic.parse_prefix(line[match.end() :]) if match else None
    kind = CODES[match[1].decode()][1] if match else None
    return type(value) is kind and (not isinstance(value, dict) or not MEMBERS.isdisjoint(value))


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every step of the stream."""
    return _Stream(path, options).read_records(_events(data))


def take_streams(reading: FileReading, path: str, options: Options) -> None:
    """Reads the HTTP exchanges of a file that are such streams, which have a header of `BROWSER_STREAMS`."""
    kept = []
    for raw in reading.raws:
        if not raw.body or not traffic.is_browser_stream(raw.headers):
            kept.append(raw)
            continue
        stream = _Stream(path, options._replace(growth=None))
        stream.label = f"entry {raw.entry}"
        request = object_in(raw.request_text or "")
        chat = redact.text(known_text(request.get("id")) or "")[:80]
        if prompt := _prompt(request):
            stream.here = TreePlace(None).after(InterimRow(0, prompt))
        found = stream.read_records(_events(raw.body))
        reading.exchanges += [
            replace(each, entry=raw.entry, url=raw.url, started=raw.started, lines=(), session=chat or stream.label)
            for each in found.exchanges]
        reading.answers += [answer._replace(entry=raw.entry) for answer in found.answers]
        reading.acts += [act._replace(entry=raw.entry) for act in found.acts]
        reading.masked.update(found.masked)
        for notice in found.notices:
            reading.note(notice)
    reading.raws[:] = kept


def _prompt(request: dict[str, Any]) -> str:
    """The message of the user at the end of a request of `useChat`; empty if there is none."""
    last = object_of(request.get("message")) or next(reversed(objects_of(request.get("messages"))), {})
    return text_of(last.get("parts", last.get("content"))) if last.get("role") == "user" else ""


def _events(data: bytes) -> Iterator[Piece]:
    """The events, each with the number of its line."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, 1):
        match = _LINE.match(line)
        last = number == len(lines)
        if match is not None:
            kind = CODES[match[1].decode()][0].encode()
            yield number, b'{"type":"%s",%s%s}' % (kind, member_name(VALUE), line[match.end() :].strip()), last
        elif line.startswith(b"data:") and (event := line[5:].strip()) != b"[DONE]":
            yield number, event, last


class _Stream(ChatReader):
    name, agent, fields = "ai-sdk-stream", "Vercel's AI SDK", FIELDS
    unit, row_word = "line", ("an event", "events")
    words = "stop reasons are the AI SDK's own (finishReason); from AI SDK 5 on only the last step of a message has one"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.label = "event"
        """The beginning of the ids of its answers, which must differ in a file of several streams."""
        self.step: TranscriptAnswer | None = None
        """The answer of the current step; None before its first event."""
        self.calls: dict[str | None, int] = {}
        """Id of a call of the current step -> its index in the parts of the answer."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        kind = line.value.get("type")
        value = object_of(line.value.get(VALUE)) if VALUE in line.value else line.value
        if kind == "start-step":
            self.step = None
        elif kind in ("text-delta", "reasoning-delta"):
            return self._delta(line, place, kind == "text-delta")
        elif kind in ("tool-input-start", "tool-input-delta", "tool-input-available"):
            return self._call(line, value, place, str(kind))
        elif kind == "tool-input-error":
            self._call(line, value, place, "tool-input-available")
        elif kind in ("tool-output-available", "tool-output-error", "tool-output-denied"):
            return self._result(line, value, place, str(kind))
        elif kind in ("finish", "finish-step"):
            return self._finish(line, value, place, step=kind == "finish-step")
        elif kind in ("error", "abort"):
            return self._break(line, place, str(kind))
        elif kind == "file":
            answer, place = self._answer(line, place)
            answer.parts.append(OpaquePart("file", line.data.decode("utf-8", "replace")))
        elif kind == "reset-step" and self.step is not None:
            self.step.parts.clear()
            self.calls.clear()
            self.remarks["take back what came before them in a step"] += 1
        else:
            lines.count("data" if isinstance(kind, str) and kind.startswith("data-") else kind, PASSED)
        return place

    def _answer(self, line: TranscriptLine, place: TreePlace) -> tuple[TranscriptAnswer, TreePlace]:
        """The answer of the current step, with this event, and the place after it."""
        if self.step is None:
            self.step, self.calls = self.answer(line, place, self.label), {}
            place = TreePlace(self.step)
        self.step.word_at = self.step.take(line)
        return self.step, place

    def _delta(self, line: TranscriptLine, place: TreePlace, visible: bool) -> TreePlace:
        answer, place = self._answer(line, place)
        text = line.value.get("delta", line.value.get(VALUE))
        kind = TextPart if visible else ReasoningPart
        last = answer.parts[-1] if answer.parts else None
        if isinstance(text, str) and isinstance(last, kind):
            answer.parts[-1] = last._replace(text=(last.text or "") + text)
        elif isinstance(text, str) and text:
            answer.parts.append(kind(text))
        return place

    def _call(self, line: TranscriptLine, value: dict[str, Any], place: TreePlace, kind: str) -> TreePlace:
        """Reads the beginning of a call, a piece of its arguments as the model wrote them, or the parsed call."""
        answer, place = self._answer(line, place)
        key = known_text(value.get("toolCallId"))
        found = self.calls.get(key)
        begun = None if found is None else answer.parts[found]
        if kind == "tool-input-delta":
            if found is not None and isinstance(begun, ToolCall):
                more = known_text(value.get("inputTextDelta")) or known_text(value.get("argsTextDelta")) or ""
                answer.parts[found] = begun._replace(arguments=(begun.arguments or "") + more)
            return place
        member = "args" if "args" in value else "input"
        find = partial(slice_of, line.data, *((VALUE,) if value is not line.value else ()))
        call = call_of(key, value.get("toolName"), value.get(member), find, member, pointer_at(answer.word_at))
        if isinstance(begun, ToolCall) and begun.arguments:
            call = call._replace(arguments=begun.arguments, form=begun.form)  # as the model wrote them
        elif kind == "tool-input-start":
            call = call._replace(arguments="", form=ArgsForm.STRING)
        run = CallKind.SERVER if value.get("providerExecuted") is True else call.kind
        call = call._replace(kind=run, closed=kind == "tool-input-available")
        if found is None:
            self.calls[key] = len(answer.parts)
            answer.parts.append(call)
        else:
            answer.parts[found] = call
        return place

    def _result(self, line: TranscriptLine, value: dict[str, Any], place: TreePlace, kind: str) -> TreePlace:
        if value.get("preliminary") is True:
            return place
        text = known_text(value.get("errorText")) if kind == "tool-output-error" else any_text(
            value.get("result" if "result" in value else "output"))
        part = ToolResultPart(known_text(value.get("toolCallId")), None, text or "", kind != "tool-output-available")
        return self.results(line, place, part, denied=kind == "tool-output-denied")

    def _finish(self, line: TranscriptLine, value: dict[str, Any], place: TreePlace, step: bool) -> TreePlace:
        """Reads the end of a step or of the message: its stop word, if any, and the counts of the step. A step without
        any event before its end is an answer without content, not the end of the previous step."""
        word = known_text(value.get("finishReason"))
        if word is not None and self.step is None:
            _, place = self._answer(line, place)
        answer = place.answer
        if answer is None or word is None or answer.word is not None:
            return place
        at = pointer_at(answer.take(line), *((VALUE,) if value is not line.value else ()), "finishReason")
        if step or len(self.answers) == 1:  # the counts of the end are those of all steps
            answer.usage = usage_in(object_of(value.get("usage")), "promptTokens", "completionTokens")
        answer.word_at = at
        if answer.error is None:
            take_word(answer, word, at, "ai_sdk.finish_reasons", empty=not answer.parts)
        answer.word = word
        return place

    def _break(self, line: TranscriptLine, place: TreePlace, kind: str) -> TreePlace:
        """Reads an error, or the end of a stream that the client or the server stopped."""
        answer, place = self._answer(line, place)
        at = pointer_at(answer.word_at, "type")
        if kind == "abort":
            answer.stop = recorder_reason(Stop.CANCELLED, None, at, kind, "ai_sdk.events")
            return place
        text = known_text(line.value.get("errorText")) or known_text(line.value.get(VALUE)) or "no message"
        last = answer.parts[-1] if answer.parts else None
        if isinstance(last, ToolCall) and refusal(part := ToolResultPart(last.id, last.name, text, True)) is not None:
            answer.parts[-1] = last._replace(closed=True)  # AI SDK 4 and 5.0.0 send no other event about such a call
            return self.results(line, place, part)
        answer.fail(text, at)
        return place
