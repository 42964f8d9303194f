"""One span of a trace, with its attributes as plain values and the messages of its events among them.

Spans come as OTLP writes them, as Python's console exporter prints them, or as the JavaScript SDK writes its objects to
a file (VS Code's Copilot Chat and Gemini CLI do). Sources: opentelemetry-proto 1.9; opentelemetry-python 1.40;
opentelemetry-js 2, `Span.ts` and `LogRecordImpl.ts`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from inspector.sessions.importers.logfire_spans import INPUT, OUTPUT, with_messages
from inspector.sessions.importers.span_names import TraceSpan, count, load_json
from inspector.sessions.traffic import loads
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of

CHOICE = "gen_ai.choice"
DETAILS = "gen_ai.client.inference.operation.details"
"""The name of the event whose attributes are those of the span of an answer, with the messages (conventions 1.37)."""
_CONTEXTS = ("context", "_spanContext", "spanContext")
"""The members with the ids of a span: of the console exporter, and of the JavaScript SDK's spans and log records."""
_TIMES = ("startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time")
_CONTENT = "gen_ai.event.content"
"""The attribute in which Semantic Kernel and the Azure SDKs write the whole body of an event, as JSON."""


def is_message(name: str) -> bool:
    """Whether an event of this name holds a message of the request, by the conventions up to 1.36."""
    return name.startswith("gen_ai.") and name.endswith(".message")


def span_of(piece: bytes) -> TraceSpan | None:
    """A span, with the messages in its events; None if the value is not a span."""
    try:
        value = loads(piece)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    value = _of_jaeger(value) if "tags" in value and "attributes" not in value else value
    attributes = attributes_of(value.get("attributes"))
    events = value.get("events")
    inputs: list[Any] = []
    answered: list[Any] = []
    for event in events if isinstance(events, list) else ():
        name, members = object_of(event).get("name"), attributes_of(object_of(event).get("attributes"))
        members = {**members, **content_of(members)}
        # The conventions up to 1.36 put messages into events; since 1.37 messages are attributes.
        if name == CHOICE:
            answered.append(choice_message(members))
        elif isinstance(name, str) and is_message(name):
            inputs.append({"role": name.split(".")[1], **members})
        elif name in ("gen_ai.content.prompt", "gen_ai.content.completion", DETAILS):
            attributes = {**members, **attributes}
    if inputs:
        attributes.setdefault(INPUT, inputs)
    if answered:
        attributes.setdefault(OUTPUT, answered)
    trace, key = ids_of(value)
    above = object_of(value.get("parentSpanContext")).get("spanId")
    parent = first_of(value, ("parentSpanId", "parent_span_id", "parent_id")) or above
    return TraceSpan(piece, key, str(parent or ""), trace, time_of(value, _TIMES), with_messages(attributes))


def _of_jaeger(span: dict[str, Any]) -> dict[str, Any]:
    """A span as Jaeger exports it, in the names of OTLP: with tags, with logs as events, and with microseconds."""
    logs = [attributes_of(log.get("fields")) for log in objects_of(span.get("logs"))]
    start = span.get("startTime")
    parents = [each.get("spanID") for each in objects_of(span.get("references")) if each.get("refType") == "CHILD_OF"]
    return {
        **span, "attributes": span["tags"], "startTime": None, "traceId": span.get("traceID"),
        "spanId": span.get("spanID"), "parentSpanId": next(iter(parents), None),
        "startTimeUnixNano": start * 1000 if type(start) is int else None,
        "events": [{"name": log.get("event") or log.get("name"), "attributes": log} for log in logs],
    }


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


def content_of(attributes: dict[str, Any]) -> dict[str, Any]:
    """The body of an event that is the JSON of one attribute; empty if there is none."""
    return object_of(load_json(attributes.get(_CONTENT)))


def choice_message(choice: dict[str, Any]) -> dict[str, Any]:
    """An answer in the members of an event, as an output message."""
    message = choice.get("message")
    if isinstance(message, str):
        try:
            message = json.loads(message)
        except (ValueError, RecursionError):
            message = {"content": message}
    if not isinstance(message, dict):
        return {**choice, "message": {"role": "assistant", **choice}}
    # The conventions 1.28 have the calls beside the message.
    calls = {"tool_calls": choice["tool_calls"]} if choice.get("tool_calls") else {}
    return {**choice, "message": {"role": "assistant", **calls, **message}}


def ids_of(value: dict[str, Any]) -> tuple[str, str]:
    """The ids of the trace and of the span that a span or a log record names; empty where it names none."""
    contexts = [object_of(value.get(name)) for name in _CONTEXTS]
    members = {name: held for each in (*contexts, value) for name, held in each.items() if held}
    return first_of(members, ("traceId", "trace_id")), first_of(members, ("spanId", "span_id"))


def first_of(members: dict[str, Any], names: tuple[str, ...]) -> str:
    """The first of these members that has a value, as text; empty if none has."""
    return next((str(members[name]) for name in names if members.get(name)), "")


def time_of(value: dict[str, Any], names: tuple[str, ...]) -> int:
    """A time in nanoseconds, from the first of these members that has a value; 0 if there is none.

    OTLP writes nanoseconds, the console exporter a date, and the JavaScript SDK seconds and nanoseconds.
    """
    time = next((value[name] for name in names if value.get(name)), None)
    if isinstance(time, list):
        seconds, nanoseconds = [count(each) for each in time] if len(time) == 2 else (None, None)
        return (seconds or 0) * 10**9 + (nanoseconds or 0)
    text = known_text(time) or (str(time) if type(time) is int else "")
    if text.isdecimal():
        return int(text) if len(text) < 20 else 0
    try:
        began = datetime.fromisoformat(text)
        return int((began if began.tzinfo else began.replace(tzinfo=UTC)).timestamp() * 1e6) * 1000
    except (ValueError, OverflowError):
        return 0
