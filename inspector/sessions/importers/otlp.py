"""OpenTelemetry traces in OTLP: JSON, lines of JSON, protobuf, and the collector's length-prefixed files; and the spans
that the console exporter of Python's SDK prints, one JSON object after the other.

A span of a model is one answer. Answers with the same conversation id, else in the same trace, form turns. `span_names`
has the names of a span's attributes. Stop words are the instrumentation's. The result of a call is in the input of the
next answer, or in the span of the tool. Protobuf needs the extra `traces`; its spans are shown as their OTLP JSON.
Sources: opentelemetry-proto 1.9; the collector's file exporter.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NamedTuple

from inspector.sessions import redact
from inspector.sessions.importers import HEAD
from inspector.sessions.importers.logfire_spans import whole_spans, with_messages
from inspector.sessions.importers.nested_spans import each_answer_once
from inspector.sessions.importers.records import Piece, first_look, list_pieces
from inspector.sessions.importers.span_names import (
    SpanMessage,
    cap_of,
    count,
    fact,
    inputs_of,
    is_answer,
    is_tool,
    outputs_of,
    printed_start,
    words_of,
)
from inspector.sessions.reasons import missing_content_reason, recorder_reason
from inspector.sessions.recording import FileReading, Options, UnreadableError
from inspector.sessions.traffic import loads
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader
from inspector.sessions.transcripts.member_values import known_text, object_of
from loop_core.values import (
    FINISHED,
    WORDLESS,
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
    Usage,
)
from loop_core.wire.anthropic_messages.table import STOP_REASONS as CLAUDE_WORDS
from loop_core.wire.cohere_chat.decode import STOP_REASONS as COHERE_WORDS
from loop_core.wire.failures import StopRow
from loop_core.wire.gemini_generate.table import STOP_REASONS as GEMINI_WORDS
from loop_core.wire.openai_chat.table import STOP_REASONS as CHAT_WORDS
from loop_core.wire.openai_responses.table import STOP_REASONS as RESPONSES_WORDS

OWN_WORDS = {
    "tool-calls": StopRow(Stop.TOOL_CALL, None, "AI SDK 5, FinishReason"),
    "content-filter": StopRow(Stop.SAFETY_BLOCKED, None, "AI SDK 5, FinishReason"),
}
"""Stop word that only the AI SDK has -> its meaning. The `tool_call` of the semantic conventions is Cohere's too."""
RESOURCES = ("resourceSpans", "resource_spans")
SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
NAMES = (b"gen_ai.", b"llm.", b"openinference", b"telemetry.sdk", b"service.name")
"""Texts of which every trace contains one. They show a trace in protobuf, where names are plain text."""
FIELDS: Fields = {"": {"name": (str,), "attributes": (list, dict), "events": (list,), "status": (dict,)}}
_MISSING = "OTLP traces in protobuf need the extra traces: pip install 'loop-inspector[traces]'"


def sniff(head: bytes, path: str) -> int:
    """Recognises JSON with resource spans or printed spans, or protobuf with the attribute names of such spans."""
    parsed_head = first_look(head)
    if isinstance(parsed_head.first, dict):
        return 100 if any(name in parsed_head.first for name in RESOURCES) or _is_printed(parsed_head.first) else 0
    # JSON behind an empty line would pass for protobuf, whose first byte is a line feed, too.
    if parsed_head.text[:1] in (b"{", b"["):
        return 0
    return 95 if _is_proto(head) and any(name in head for name in NAMES) else 0


def _is_printed(value: Any) -> bool:
    """Whether a value is a span as the console exporter prints it."""
    return {"trace_id", "span_id"} <= object_of(object_of(value).get("context")).keys() and "attributes" in value


def _is_proto(head: bytes) -> bool:
    prefixed = head[4:5] == b"\n" and 0 < int.from_bytes(head[:4], "big") < 1 << 31
    return head[:1] == b"\n" or prefixed  # 0x0A: field 1 of TracesData (`resource_spans`), length-delimited


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the traces.

    Raises:
        UnreadableError: it is protobuf, and the extra is missing or the file is damaged from the start.
    """
    reader = _Traces(path, options)
    if data.lstrip()[:1] == b"{":
        spans = list(_json_spans(data))
    else:
        reader.reading.notices.append("spans in protobuf are shown as the JSON that OTLP defines for them")
        spans = list(_proto_spans(data, reader.reading.notices))
    reading = reader.read_records(reader.order(spans))
    reading.masked += reader.masked
    return reading


def _json_spans(data: bytes) -> Iterator[bytes]:
    parsed_head = first_look(data[:HEAD])
    if _is_printed(parsed_head.first):
        yield from (span for _, span, _ in list_pieces(b"[" + data))
        return
    lines = data.split(b"\n") if parsed_head.lines else [data]
    for line in lines:
        for name in RESOURCES:
            for _, resource, _ in list_pieces(line, name) if line.strip() else ():
                for scope in SCOPES:
                    for _, scope_spans, _ in list_pieces(resource, scope):
                        yield from (span for _, span, _ in list_pieces(scope_spans, "spans"))


def _proto_spans(data: bytes, notices: list[str]) -> Iterator[bytes]:
    try:
        to_dict = import_module("google.protobuf.json_format").MessageToDict
        damaged = import_module("google.protobuf.message").DecodeError
        traces_of = import_module("opentelemetry.proto.trace.v1.trace_pb2").TracesData.FromString
    except ImportError:
        raise UnreadableError(_MISSING) from None
    for number, message in enumerate(_messages(data), 1):
        try:
            traces = to_dict(traces_of(message))
        except damaged:
            if number == 1:
                raise UnreadableError("damaged protobuf: expected the spans of resources") from None
            notices.append(f"message {number:,} is cut or damaged: the part before it was read")
            return
        yield from _json_spans(json.dumps(traces).encode())


def _messages(data: bytes) -> Iterator[bytes]:
    """The messages of a collector's file, each after its length as 4 bytes, big-endian; or the one message of another
    file."""
    # The first byte of bare protobuf, 0x0A, would make a length of over 160 MB.
    if int.from_bytes(data[:4], "big") > len(data) and data[:1] == b"\n":
        yield data
        return
    at = 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        # no valid message: reported as cut
        yield data[at + 4 : at + 4 + size] if at + 4 + size <= len(data) else b"\xff"
        at += 4 + size


# -- Spans -------------------------------------------------------------------------------------------------------------


class TraceSpan(NamedTuple):
    """The fields of a span that reading its answer needs."""

    piece: bytes
    id: str
    parent: str
    trace: str
    start: int
    attributes: dict[str, Any]


def plain(value: Any) -> Any:
    """An OTLP value as plain JSON."""
    if not isinstance(value, dict):
        return value
    for name, member in value.items():
        kind = name.replace("_v", "V")  # exporters that write protobuf's own names have `array_value`
        if kind == "arrayValue":
            held_values = object_of(member).get("values")
            return [plain(each) for each in held_values] if isinstance(held_values, list) else []
        if kind == "kvlistValue":
            return attributes_of(object_of(member).get("values"))
        if kind == "intValue":
            return count(member)
        if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return member
    return value


def attributes_of(value: Any) -> dict[str, Any]:
    """Attributes as an object."""
    if isinstance(value, dict):
        return value
    return {str(each.get("key")): plain(each.get("value")) for each in value if isinstance(each, dict)} \
        if isinstance(value, list) else {}


def span_of(piece: bytes) -> TraceSpan | None:
    """A span, with the messages in its events; None if the value is not a span."""
    try:
        value = loads(piece)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    attributes = attributes_of(value.get("attributes"))
    events = value.get("events")
    inputs: list[Any] = []
    answered: list[Any] = []
    for event in events if isinstance(events, list) else ():
        name, members = object_of(event).get("name"), attributes_of(object_of(event).get("attributes"))
        # The conventions up to 1.36 put messages into events; since 1.37 messages are attributes.
        if name == "gen_ai.choice":
            answered.append({**members, "message": _choice(members)})
        elif isinstance(name, str) and name.startswith("gen_ai.") and name.endswith(".message"):
            inputs.append({"role": name.split(".")[1], **members})
        elif name in ("gen_ai.content.prompt", "gen_ai.content.completion",
                      "gen_ai.client.inference.operation.details"):
            attributes = {**members, **attributes}
    if inputs:
        attributes.setdefault("gen_ai.input.messages", inputs)
    if answered:
        attributes.setdefault("gen_ai.output.messages", answered)
    members = {**object_of(value.get("context")), **value}
    key, parent, trace = (next((str(members[name]) for name in names if members.get(name)), "") for names in (
        ("spanId", "span_id"), ("parentSpanId", "parent_span_id", "parent_id"), ("traceId", "trace_id")))
    start = str(value.get("startTimeUnixNano") or value.get("start_time_unix_nano") or printed_start(value) or "")
    return TraceSpan(piece, key, parent, trace, int(start) if start.isdecimal() and len(start) < 20 else 0,
                     with_messages(attributes))


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    message = choice.get("message")
    if isinstance(message, str):
        try:
            message = json.loads(message)
        except (ValueError, RecursionError):
            message = {"content": message}
    return {"role": "assistant", **(message if isinstance(message, dict) else choice)}


class _Traces(ChatReader):
    name, agent, fields = "otlp", "OpenTelemetry", FIELDS
    unit = "span"
    row_word = ("a span", "spans")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.spans: dict[int, TraceSpan] = {}
        self.by_id: dict[str, TraceSpan] = {}
        self.lasts: dict[tuple[str, str], TreePlace] = {}
        self.tools: dict[str, ToolResultPart] = {}
        self.masked: Counter[str] = Counter()

    def order(self, pieces: list[bytes]) -> Iterator[Piece]:
        """The spans of answers, in the order in which they began; others are counted."""
        every = [span for span in (span_of(redact.body(piece, self.masked)) for piece in pieces) if span is not None]
        # An exporter sends a batch again if its answer was lost.
        found = list({(span.trace, span.id) if span.id else number: span for number, span in enumerate(every)}.values())
        if len(found) < len(every):
            self.remarks["repeat a span (same traceId and spanId)"] += len(every) - len(found)
        self.by_id = {span.id: span for span in found}
        whole = each_answer_once(whole_spans(found))
        self.remarks += Counter({"hold what another span holds, or a part of it": len(found) - len(whole)})
        others = 0
        for span in whole:
            if is_tool(span.attributes):
                self._tool(span)
            others += not is_answer(span.attributes)
        answers = sorted((span for span in whole if is_answer(span.attributes)), key=lambda span: span.start)
        for number, span in enumerate(answers, 1):
            self.spans[number] = span
            yield number, span.piece, False
        if others:
            self.reading.notices.append(f"spans that are not an answer of a model: {others:,}")

    def _tool(self, span: TraceSpan) -> None:
        key, output = known_text(fact(span.attributes, "call")), fact(span.attributes, "result")
        if key is not None and output is not None:
            text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
            self.tools[key] = ToolResultPart(key, None, text, "error.type" in span.attributes)

    def _group(self, span: TraceSpan) -> tuple[str, str]:
        """The conversation, or the trace, and the agent within it."""
        here: TraceSpan | None = span
        conversation, agent = fact(span.attributes, "conversation"), fact(span.attributes, "agent")
        # A bound, since damaged ids may form a ring of parents.
        for _ in range(64):
            here = self.by_id.get(here.parent) if here is not None and here.parent else None
            if here is None:
                break
            conversation = conversation or fact(here.attributes, "conversation")
            agent = agent or fact(here.attributes, "agent")
        return str(conversation or span.trace), str(agent or "")

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        span = self.spans[line.number]
        attributes, group = span.attributes, self._group(span)
        history = inputs_of(attributes)
        # a span repeats the whole history, like its request
        begun = [number for number, message in enumerate(history) if message.role in ("assistant", "model")]
        # Without an id of the conversation, a history without any answer is the first of its own.
        fresh = bool(history) and not begun and group[0] == span.trace
        place = TreePlace(None) if fresh else self.lasts.get(group, TreePlace(None))
        place = self._new_messages(line, place, history[begun[-1] + 1 :] if begun else history)
        answer = self.answer(line, place, known_text(fact(attributes, "id")) or span.id, fact(attributes, "model"))
        answer.cap = cap_of(attributes)
        if span.start:
            # 2**62 ns is in the year 2116; `datetime` refuses years after 9999.
            answer.started = datetime.fromtimestamp(min(span.start, 1 << 62) / 1e9, UTC).isoformat()
        at = answer.take(line)
        answer.usage = Usage(*(count(fact(attributes, name)) for name in ("input", "output", "reasoning", "cached")))
        outputs = outputs_of(attributes)
        take_output(answer, outputs[0] if outputs else None, at)
        of_message = next(((each.word, *each.further_words) for each in outputs if each.word), ())
        self._end(answer, line, [*words_of(attributes), *of_message], at)
        self.lasts[group] = after = TreePlace(answer)
        return after

    def _new_messages(self, line: TranscriptLine, place: TreePlace, tail: list[SpanMessage]) -> TreePlace:
        """Adds the messages that are new in the history before an answer, from its span or the spans of tools."""
        results = tuple(part for message in tail for part in message.results)
        if not results and place.answer is not None and place.since is None:
            results = tuple(self.tools[call.id] for call in place.answer.calls if call.id in self.tools)
        if results:
            place = self.say(line, place, "", results)
        words = [message.text for message in tail if message.role not in ("system", "developer") and message.text]
        return self.say(line, place, words[-1], own=bool(results)) if words else place

    def _end(self, answer: TranscriptAnswer, line: TranscriptLine, words: list[str], at: At) -> None:
        status = object_of(line.value.get("status"))
        # the spellings of OTLP's enumeration by different exporters
        failed = status.get("code", status.get("status_code")) in (2, "2", "STATUS_CODE_ERROR", "ERROR")
        why_failed = known_text(status.get("message")) or known_text(status.get("description"))
        answer.word_at = at
        word = deciding_word(words)
        kind = known_text(self.spans[line.number].attributes.get("error.type"))
        if word is not None:
            # Instrumentations leave contents out by default.
            take_word(answer, word, at, "otlp.finish_reasons", empty=not answer.parts)
            if failed:
                why = why_failed or kind or "it does not say why"
                message = f"the span of this answer failed all the same: {why[:200]}"
                answer.findings.append(Finding("transcript.span_failed", Severity.WARNING, message, at))
        elif failed:
            answer.fail(why_failed or kind or "", at, kind=kind, word=kind or "status ERROR")

    def settle(self) -> None:
        """Also adds the results of the last calls, from the spans of tools."""
        for answer in self.answers:
            parts = [self.tools[call.id] for call in answer.calls if call.id in self.tools]
            missing = tuple(part for part in parts if part.call_id not in answer.results)
            if missing and not answer.next:
                answer.follow(InterimRow(answer.line, "", missing, unit=self.unit))
        super().settle()


def row_of(word: str) -> StopRow:
    """The stop-reason row of a word, of any API or convention."""
    for table in (CHAT_WORDS, CLAUDE_WORDS, GEMINI_WORDS, COHERE_WORDS, RESPONSES_WORDS, OWN_WORDS):
        # Some instrumentations change the case of the provider's word.
        for spelling in (word, word.lower(), word.upper()):
            if spelling in table:
                return table[spelling]
    return StopRow(Stop.UNKNOWN, None, "no table")


def deciding_word(words: Sequence[str]) -> str | None:
    """The word that counts if the records of one answer have several: one for a clean end must not hide a cut."""
    return next((word for word in words if row_of(word).stop not in WORDLESS), next(iter(words), None))


def take_word(answer: TranscriptAnswer, word: str, at: At, rule: str, *, empty: bool) -> None:
    """Stores the stop word that an instrumentation recorded. `empty`: the record has no content of the answer."""
    row = row_of(word)
    answer.word = word
    answer.stop = recorder_reason(row.stop, row.detail, at, word, rule)
    if empty and row.stop in FINISHED:
        answer.stop = missing_content_reason(answer.stop)


def take_output(answer: TranscriptAnswer, message: SpanMessage | None, at: At) -> None:
    """Reads the parts of an answer. Arguments that are a string stay as received, and may be cut."""
    if message is None:
        return
    answer.parts += [ReasoningPart(message.reasoning)] if message.reasoning else []
    answer.parts += [TextPart(message.text)] if message.text else []
    for key, name, arguments in message.calls:
        text = arguments if isinstance(arguments, str) else (
            None if arguments is None else json.dumps(arguments, ensure_ascii=False))
        form = ArgsForm.STRING if isinstance(arguments, str) else ArgsForm.OBJECT
        answer.parts.append(ToolCall(key, name, text, True, CallKind.FUNCTION, form, at=at))
