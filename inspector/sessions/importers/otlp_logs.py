"""Reads answers in the log records of a trace: events that instrumentations write in addition to a span, or instead.

The conventions 1.28 to 1.36 have a record for each message of a request (`gen_ai.user.message`) and for each choice
(`gen_ai.choice`); since 1.37 one record has the attributes of a span, with all messages. LiteLLM has other names for
the older ones. A record names its span, so that a record and a span of one answer are counted once. A choice begins an
answer, unless its index follows that of the previous choice. Sources: semantic-conventions 1.28 and 1.37; the
instrumentations openai-v2 2.5, vertexai 2.3, google-genai 0.8 and botocore 0.66; LiteLLM `opentelemetry.py`; Gemini CLI
0.56 `telemetry/types.ts`; Copilot Chat 0.42 `genAiEvents.ts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from inspector.sessions.importers.otlp_spans import (
    DETAILS,
    attributes_of,
    choice_message,
    content_of,
    first_of,
    ids_of,
    is_message,
    plain,
    time_of,
    with_record,
)
from inspector.sessions.importers.records import object_in
from inspector.sessions.importers.span_answers import CHOICE, INPUT, OUTPUT
from inspector.sessions.importers.span_messages import load_json
from inspector.sessions.importers.span_names import TraceSpan, count, fact, is_answer
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of

OPERATION = "gen_ai.operation.name"
CHOICES = frozenset({CHOICE, "gen_ai.content.completion"})
"""The names of events about a choice; the second one is LiteLLM's."""
PROMPT = "gen_ai.content.prompt"
"""LiteLLM's name of an event about a message of the request."""
_TIMES = ("timeUnixNano", "time_unix_nano", "hrTime", "timestamp", "observedTimeUnixNano", "observed_time_unix_nano",
          "observed_timestamp")
_GEMINI_CLI = "GenAI operation "
"""The beginning of the body of Gemini CLI's record with the attributes of a span. Each output message in it is a piece
of one streamed answer, and in its input the model's messages have the role `system`."""
_ELIDED = "<elided>"
"""The text of google-genai's instrumentation instead of a content that it may not record."""


class LogRecord(NamedTuple):
    """One log record of an answer."""

    piece: bytes
    name: str
    trace: str
    span: str
    time: int
    attributes: dict[str, Any]
    body: Any

    @property
    def is_message(self) -> bool:
        """Whether it has a message of a request."""
        return self.name == PROMPT or is_message(self.name)

    @property
    def members(self) -> dict[str, Any]:
        """The members of its message or choice."""
        body = load_json(self.body)
        members = body if isinstance(body, dict) else {"content": body} if isinstance(body, str) else {}
        members = {**members, **content_of(self.attributes)}
        return {name: value for name, value in members.items() if value != _ELIDED}


def record_of(piece: bytes) -> LogRecord | None:
    """A log record about an answer; None for any other."""
    value = object_in(piece)
    attributes = attributes_of(value.get("attributes"))
    name = first_of(value, ("eventName", "event_name")) or first_of(attributes, ("event.name", "event_name"))
    body = plain(value.get("body", value.get("_body")))
    record = LogRecord(piece, name, *ids_of(value), time_of(value, _TIMES), attributes, body)
    return record if name == DETAILS or name in CHOICES or record.is_message else None


def answers_of(records: Sequence[LogRecord]) -> list[TraceSpan]:
    """The answers in log records; a request whose answer was not recorded has no operation."""
    by_span: dict[tuple[str, str], list[LogRecord]] = {}
    for record in records:
        by_span.setdefault((record.trace, record.span), []).append(record)
    found: list[TraceSpan] = []
    for group in by_span.values():
        details = [_of_details(record) for record in group if record.name == DETAILS]
        found += details or _of_events(group)
    return found


def _of_events(records: Sequence[LogRecord]) -> Iterator[TraceSpan]:
    """The answers in the records of one span: the messages of each request, and the choices after them."""
    prompts: list[LogRecord] = []
    choices: list[LogRecord] = []
    for record in records:
        if choices and not (record.name in CHOICES and _index(record) > _index(choices[-1])):
            yield _of_choices(prompts, choices)
            prompts, choices = [], []
        (prompts if record.is_message else choices).append(record)
    yield _of_choices(prompts, choices)


def _index(choice: LogRecord) -> int:
    return count(choice.members.get("index")) or 0


def _of_choices(prompts: Sequence[LogRecord], choices: Sequence[LogRecord]) -> TraceSpan:
    records = (*prompts, *choices)
    inputs = [{"role": "user" if each.name == PROMPT else each.name.split(".")[1], **each.members} for each in prompts]
    outputs = [choice_message(each.members) for each in choices]
    ended = [number for number, each in enumerate(outputs) if known_text(each.get("finish_reason"))]
    first, last, word_row = len(prompts), len(prompts), len(prompts) + next(iter(ended), 0)
    # google-genai's instrumentation has a choice for each piece of a streamed answer, of which the last one has the
    # word. Several words belong to several answers, which are never joined.
    in_parts = not any(isinstance(object_of(each.get("message")).get("content"), str) for each in outputs)
    if len(outputs) > 1 and ended == [len(outputs) - 1] and in_parts:
        outputs, last = [_one_message(outputs)], len(records) - 1
    attributes = {**(choices[0].attributes if choices else {}), **({INPUT: inputs} if inputs else {})}
    if choices:
        attributes = {OPERATION: "chat", **attributes, OUTPUT: outputs}
    return TraceSpan(records[0].piece, "", records[0].span, records[0].trace, records[-1].time, attributes,
                     tuple(each.piece for each in records[1:]), (first, last), word_row)


def _of_details(record: LogRecord) -> TraceSpan:
    body = load_json(record.body)
    attributes = {**(body if isinstance(body, dict) else {}), **record.attributes}
    if isinstance(body, str) and body.startswith(_GEMINI_CLI):
        outputs, inputs = (objects_of(load_json(attributes.get(name))) for name in (OUTPUT, INPUT))
        of_model = [{**each, "role": "assistant"} if each.get("role") == "system" else each for each in inputs]
        attributes |= {INPUT: of_model, OUTPUT: [_one_message(outputs)] if outputs else []}
    # Gemini CLI also writes such a record for the request alone.
    if any(attributes.get(name) for name in (OUTPUT, "error.type")) or any(
            fact(attributes, name) is not None for name in ("word", "output", "id")):
        attributes = {OPERATION: "chat", **attributes}
    else:
        attributes = {}
    return TraceSpan(record.piece, "", record.span, record.trace, record.time, attributes)


def _one_message(pieces: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The pieces of one streamed answer as one message, with consecutive texts as one part."""
    parts: list[dict[str, Any]] = []
    for piece in pieces:
        message = object_of(piece.get("message")) or piece
        for part in objects_of(message.get("parts") or object_of(message.get("content")).get("parts")):
            name = "content" if part.get("type") in ("text", "reasoning") else "text"
            before = parts[-1] if parts else {}
            texts = before.get(name), part.get(name)
            if all(isinstance(each, str) for each in texts) and {**before, name: ""} == {**part, name: ""}:
                parts[-1] = {**part, name: "".join(map(str, texts))}
            else:
                parts.append(part)
    words = [word for piece in pieces if (word := known_text(piece.get("finish_reason")))]
    return {"role": "assistant", "parts": parts, **({"finish_reason": words[-1]} if words else {})}


# -- Log records and spans of one file ---------------------------------------------------------------------------------


def with_logs(spans: Sequence[TraceSpan], logged: Sequence[TraceSpan]) -> list[TraceSpan]:
    """The spans, each with the log records of its answer; and the answers that are only in log records."""
    found = list(spans)
    places = {(span.trace, span.id): number for number, span in enumerate(spans) if span.id}
    answers = {number for number, span in enumerate(spans) if is_answer(span.attributes)}
    # Copilot Chat's records name the span around that of the answer, and the response.
    responses: dict[str, dict[str, int]] = {}
    for number in sorted(answers):
        _note_response(responses, spans[number], number)
    for each in logged:
        key = known_text(fact(each.attributes, "id")) or ""
        own = places.get((each.trace, each.parent))
        same = _same_response(responses.get(key, {}), each.trace)
        twin = own if own in answers else same
        if twin is not None and not found[twin].logs:
            found[twin] = with_record(found[twin], each)
        elif same is not None:
            continue  # a further record of the same response
        elif is_answer(each.attributes) and (own is None or not _names_operation(spans[own])) and (
                each.trace or key or not answers):
            _note_response(responses, each, len(found))
            found.append(each)
    return found


def _note_response(responses: dict[str, dict[str, int]], span: TraceSpan, number: int) -> None:
    """Stores the number of an answer under the id of its response and its trace, if it has an id."""
    key = known_text(fact(span.attributes, "id"))
    if key:
        responses.setdefault(key, {})[span.trace] = number


def _same_response(by_trace: dict[str, int], trace: str) -> int | None:
    """The answer of the same response, in this trace or without a trace; a record without a trace matches any. None if
    all are of other traces, because Ollama gives one id to many responses."""
    return by_trace.get(trace, by_trace.get("") if trace else next(iter(by_trace.values()), None))


def _names_operation(span: TraceSpan) -> bool:
    """Whether a span names its operation, such as the run of an agent."""
    return OPERATION in span.attributes or "openinference.span.kind" in span.attributes
