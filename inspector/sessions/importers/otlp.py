"""OpenTelemetry traces, with the log records that instrumentations write in addition to spans or instead of them.

A span of a model's operation is one answer. Answers with the same conversation id, else in the same trace, form turns.
`otlp_files` finds the spans and log records of a file, `span_names` reads the attributes of spans, `otlp_logs` those of
log records. Stop words are the instrumentation's. The result of a call is in the input of the next answer, or in the
tool's span. Protobuf needs the extra `traces`; its spans are shown as OTLP JSON.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers import SQLITE, otlp_files
from inspector.sessions.importers.otlp_files import LOGS, SPANS, RecordPiece, records_in, rows_in
from inspector.sessions.importers.otlp_logs import answers_of, record_of, with_logs
from inspector.sessions.importers.otlp_spans import attributes_of, each_answer_once, span_of, whole_spans
from inspector.sessions.importers.records import Piece, object_in
from inspector.sessions.importers.span_messages import SpanMessage, take_output
from inspector.sessions.importers.span_names import (
    SYSTEMS,
    TraceSpan,
    cap_of,
    count,
    fact,
    inputs_of,
    is_answer,
    is_tool,
    model_of,
    outputs_of,
    words_of,
)
from inspector.sessions.importers.trace_order import BY_TIME, Predecessor, TraceOrder
from inspector.sessions.notices import Notice
from inspector.sessions.reasons import (
    recorder_reason,
    unclear_word_reason,
)
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader
from inspector.sessions.transcripts.ending_rules import call_rejected
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from inspector.sessions.transcripts.provider_answers import deciding_word, take_word
from loop_core.values import At, Finding, Severity, Stop, ToolCall, ToolResultPart, Usage

UNCLEAR = "error"
"""The word that OpenTelemetry's instrumentations write for a missing stop reason (OpenAI's client) or for `OTHER`
(Google's), and Pydantic AI for a malformed call. It is no evidence of a failure; the AI SDK's equal word is."""
_PARTS = "gen_ai.completion.0.content"
"""The attribute in which OpenLLMetry writes the parts of an answer as JSON: for Cohere, `[]` for an empty answer and
for every streamed one. If the counts show that the model wrote something, `[]` is its text."""
FAILED = (2, "2", "STATUS_CODE_ERROR", "ERROR")
"""The status of a span that failed, in the spellings of different exporters."""
STRANDS = "strands-agents"
"""The name of Strands Agents in its spans. It writes `{}` for arguments that were not JSON too."""
OWN_END = "loop_inspector.stop.normalized"
"""The attribute with the effective stop reason, in Loop Inspector's own spans."""
FIELDS: Fields = {"": {"name": (str,), "attributes": (list, dict), "events": (list,), "status": (dict,)}}


sniff = otlp_files.sniff


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the traces. Raises `UnreadableError` if it is protobuf, and the extra is missing or the
    file is damaged from the start."""
    reader = _Traces(path, options)
    records = ([(SPANS, row) for row in rows_in(path)] if data.startswith(SQLITE)
               else list(records_in(data, reader.reading.notices)))
    reading = reader.read_records(reader.order(records))
    reading.masked += reader.masked
    return reading


class _Traces(ChatReader):
    name, agent, fields = "otlp", "OpenTelemetry", FIELDS
    unit = "span"
    row_word = ("a span", "spans")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.spans: dict[int, TraceSpan] = {}
        self.by_id: dict[str, TraceSpan] = {}
        self.trace_order = TraceOrder()
        self.after: dict[int, TreePlace] = {}
        """The number of a span -> the place after its answer."""
        self.by_response: dict[str, int] = {}
        """Id of a response -> the number of its span."""
        self.tools: dict[str | None, dict[str, ToolResultPart]] = {}
        """Id of a call -> trace -> the result. Ids are not unique: some servers number the calls of each answer
        from the beginning."""
        self.unnamed: dict[tuple[str, str, str], list[tuple[int, ToolResultPart]]] = {}
        """Trace, parent span and name of a tool -> time and result of each run without a call's id, the latest
        first."""
        self.by_place: dict[int, tuple[ToolResultPart, ...]] = {}
        """The number of a span -> the results of such runs that belong to its answer's calls."""
        self.masked: Counter[str] = Counter()

    def order(self, records: Sequence[RecordPiece]) -> Iterator[Piece]:
        """The spans and log records of answers, in the order of their start times; others are counted."""
        pieces = [redact.body(piece, self.masked) for kind, piece in records if kind == SPANS]
        every = [span for span in map(span_of, pieces) if span is not None]
        if len(every) < len(pieces):
            self.reading.notices.append(
                Notice("records that are cut or damaged were not read", {"": len(pieces) - len(every)}))
        # An exporter sends a batch again if the response to it was lost.
        found = list({(span.trace, span.id) if span.id else number: span for number, span in enumerate(every)}.values())
        if len(found) < len(every):
            self.remarks["repeat a span (same traceId and spanId)"] += len(every) - len(found)
        self.by_id = {span.id: span for span in found}
        found = self._with_logs(found, [redact.body(piece, self.masked) for kind, piece in records if kind == LOGS])
        whole = each_answer_once(whole_spans(found))
        self.remarks += Counter({"hold what another span holds, or a part of it": len(found) - len(whole)})
        others = 0
        for span in whole:
            if is_tool(span.attributes):
                self._tool(span)
            others += not is_answer(span.attributes)
        for runs in self.unnamed.values():  # the earliest run last; of equal times, the first in the file
            runs.reverse()
            runs.sort(key=_latest_first)
        answers = sorted((span for span in whole if is_answer(span.attributes)), key=lambda span: span.start)
        for number, span in enumerate(answers, 1):
            self.spans[number] = span
            yield number, span.piece, False
        if others:
            self.reading.notices.append(Notice("spans that are not an answer of a model", {"": others}))

    def _with_logs(self, spans: list[TraceSpan], pieces: list[bytes]) -> list[TraceSpan]:
        """The spans with the log records of their answers, and the answers that are only in log records."""
        records = [record for record in map(record_of, pieces) if record is not None]
        once = list({each.piece if each.time else number: each for number, each in enumerate(records)}.values())
        found = with_logs(spans, [each for each in answers_of(once) if each.attributes])
        used = {row for span in found for row in (span.piece, *span.logs)}
        others = sum(piece not in used for piece in pieces)
        if others:
            self.reading.notices.append(Notice("log records that are no part of an answer of a model", {"": others}))
        return found

    def _tool(self, span: TraceSpan) -> None:
        key, output = known_text(fact(span.attributes, "call")), fact(span.attributes, "result")
        name = known_text(fact(span.attributes, "tool")) or ""
        if output is None:
            return
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        failed, _ = _failure_of(object_in(span.piece), known_text(span.attributes.get("error.type")))
        part = ToolResultPart(key, None, text, failed or "error.type" in span.attributes)
        if key is not None:
            self.tools.setdefault(key, {})[span.trace] = part
        elif span.parent:
            self.unnamed.setdefault((span.trace, span.parent, name), []).append((span.start, part))

    def _results(self, answer: TranscriptAnswer) -> tuple[ToolResultPart, ...]:
        """The results of an answer's calls in the spans of tools, of its own trace or the only one. If those name no
        calls (smolagents), a call gets the next run of its tool with the same parent span."""
        span = self.spans[answer.line]
        held = [self.tools.get(call.id, {}) for call in answer.calls]
        parts = (each.get(span.trace, next(iter(each.values())) if len(each) == 1 else None) for each in held)
        found = tuple(part for part in parts if part is not None)
        if not found and answer.line not in self.by_place:
            self.by_place[answer.line] = tuple(filter(None, [self._next_run(span, call) for call in answer.calls]))
        return found or self.by_place[answer.line]

    def _next_run(self, span: TraceSpan, call: ToolCall) -> ToolResultPart | None:
        runs = self.unnamed.get((span.trace, span.parent, call.name), [])
        after = bisect_right(runs, -span.start, key=_latest_first)
        return runs.pop(after - 1)[1]._replace(call_id=call.id) if after else None

    def _group(self, span: TraceSpan) -> tuple[str, str]:
        """The conversation, else the trace, and the agent within it."""
        here: TraceSpan | None = span
        conversation, agent = fact(span.attributes, "conversation"), fact(span.attributes, "agent")
        # Bounded, because damaged ids may form a ring of parents.
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
        found = self.trace_order.follow(line.number, group[0], history, group[1], alone=not span.parent)
        # Microsoft's Agent Framework names a conversation by the response that the request continues.
        continued = self.by_response.get(str(fact(attributes, "conversation")))
        if continued is not None and (found.before is None or found.by_time):
            found = Predecessor(continued, 0)
        self.remarks += Counter({BY_TIME: int(found.by_time)})
        place = self.after.get(found.before or 0, TreePlace(None))
        place = self._new_messages(line, place, history[found.repeats :])
        key = known_text(fact(attributes, "id")) or span.id
        answer = self.answer(line, place, key, model_of(attributes))
        self.by_response[key] = line.number
        answer.cap = cap_of(attributes)
        if span.start:
            # Bounded to 2**62 ns, in the year 2116, because `datetime` refuses years after 9999.
            answer.started = datetime.fromtimestamp(min(span.start, 1 << 62) / 1e9, UTC).isoformat()
        rows = [answer.take(line), *(answer.take(line._replace(data=row)) for row in span.logs)]
        answer.usage = Usage(*(count(fact(attributes, name))
                               for name in ("input", "output", "reasoning", "cached", "written")))
        outputs = outputs_of(attributes)
        if attributes.get(_PARTS) == "[]" and not answer.usage.output_tokens:
            outputs = [each._replace(text="") for each in outputs]
        first, last = (rows[number] for number in span.output_rows)
        take_output(answer, outputs[0] if outputs else None, first._replace(end=last.end))
        of_message = next(((each.word, *each.further_words) for each in outputs if each.word), ())
        self._end(answer, line, [*words_of(attributes), *of_message], rows[span.word_row])
        self.trace_order.answer(line.number, outputs[:1])
        self.after[line.number] = TreePlace(answer)
        return self.after[line.number]

    def _new_messages(self, line: TranscriptLine, place: TreePlace, tail: list[SpanMessage]) -> TreePlace:
        """Adds the messages that are new in the history before an answer, from its span or the spans of tools."""
        results = tuple(part for message in tail for part in message.results)
        if not results and place.answer is not None and place.since is None:
            results = self._results(place.answer)
        place = self.results(line, place, *results)
        words = [message.text for message in tail if message.role not in ("system", "developer") and message.text]
        return self.say(line, place, words[-1], own=bool(results)) if words else place

    def _end(self, answer: TranscriptAnswer, line: TranscriptLine, words: list[str], at: At) -> None:
        kind = known_text(self.spans[line.number].attributes.get("error.type"))
        failed, why_failed = _failure_of(line.value, kind)
        answer.word_at = at
        word = deciding_word(words)
        unclear = word == UNCLEAR and "ai.response.finishReason" not in self.spans[line.number].attributes
        if word is not None and not (failed and unclear):
            take_word(answer, word, at, "otlp.finish_reasons", empty=not answer.parts)
            if unclear and answer.stop is not None:
                answer.stop = unclear_word_reason(answer.stop)
            if failed:
                why = why_failed or kind or "it does not say why"
                message = f"the span of this answer failed nevertheless: {why[:200]}"
                answer.findings.append(Finding("transcript.span_failed", Severity.WARNING, message, at))
        elif self.spans[line.number].attributes.get(OWN_END) == Stop.INTERRUPTED:  # no provider reported it
            answer.stop = recorder_reason(Stop.INTERRUPTED, None, at, kind or Stop.INTERRUPTED, OWN_END)
        elif failed:
            answer.fail(why_failed or kind or "", at, kind=kind, word=kind or "status ERROR")

    def settle(self) -> None:
        """Also adds the results of the last calls from the spans of tools, and finds calls that Strands could not
        parse."""
        for answer in self.answers:
            if STRANDS in map(self.spans[answer.line].attributes.get, SYSTEMS):
                answer.stop = call_rejected(answer, "Strands") or answer.stop
            missing = tuple(part for part in self._results(answer) if part.call_id not in answer.results)
            if missing and not answer.next:
                answer.after.append(InterimRow(answer.line, "", missing, unit=self.unit))
        super().settle()


def _latest_first(run: tuple[int, ToolResultPart]) -> int:
    return -run[0]


def _failure_of(value: dict[str, Any], kind: str | None) -> tuple[bool, str | None]:
    """Whether a span failed, and the reason. Jaeger has the status in tags, Phoenix in members of the span; a log
    record has only the type of an error."""
    status, tags = object_of(value.get("status")), attributes_of(value.get("tags"))
    code = status.get("code") or status.get("status_code") or tags.get("otel.status_code") or value.get("status_code")
    thrown = (attributes_of(each.get("attributes")) for each in objects_of(value.get("events")))
    reasons = (status.get("message"), status.get("description"), tags.get("otel.status_description"),
               value.get("status_message"), *(each.get("exception.message") for each in thrown))
    failed = code in FAILED or (kind is not None and not (status or tags))
    return failed, next((why for each in reasons if (why := known_text(each))), None)
