"""The spans of a trace, with their attributes as plain values and the messages of their events among them.

Spans come as OTLP writes them, as Python's console exporter prints them, or as the JavaScript SDK writes its objects to
a file (VS Code's Copilot Chat and Gemini CLI do). Logfire writes the request as `request_data` and the answer as
`response_data`; older Pydantic AI writes all messages as one attribute (`events`); MLflow writes the request and the
answer as its client had them. An answer is counted once, though it may have two spans. Sources: opentelemetry-proto
1.9; opentelemetry-python 1.40; opentelemetry-js 2, `Span.ts` and `LogRecordImpl.ts`; logfire 4 `tracer.py`,
`llm_providers/llm_provider.py`, `openai.py`, `anthropic.py`; pydantic-ai 0.4 `models/instrumented.py`; traces of
MLflow 2 and 3 that were published.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from inspector.sessions.importers.span_names import (
    KINDS,
    TraceSpan,
    count,
    fact,
    is_answer,
    is_tool,
    load_json,
    outputs_of,
    word_of,
)
from inspector.sessions.traffic import loads, moment
from inspector.sessions.transcripts.member_values import cap_of, known_text, object_of, objects_of

INPUT, OUTPUT, CAP = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.request.max_tokens"
_TYPE = "logfire.span_type"
CHOICE = "gen_ai.choice"
"""The name of the event that holds an answer; the other events hold messages of the request."""
DETAILS = "gen_ai.client.inference.operation.details"
"""The name of the event whose attributes are those of the span of an answer, with the messages (conventions 1.37)."""
_CONTEXTS = ("context", "_spanContext", "spanContext")
"""The members with the ids of a span: of the console exporter, and of the JavaScript SDK's spans and log records."""
_TIMES = ("startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time")
_CONTENT = "gen_ai.event.content"
"""The attribute in which Semantic Kernel and the Azure SDKs write the whole body of an event, as JSON."""
_DEEPEST = 64
"""The largest number of spans between two spans of one answer; damaged ids may form a ring of parents."""
_AGENTS = frozenset({"invoke_agent", "create_agent", "AGENT"})
"""The operations, and OpenInference's kind, of spans that are a run of an agent."""


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
    attributes = _of_mlflow(attributes_of(value.get("attributes")))
    if value.get("span_kind") in KINDS:  # Phoenix exports it beside the attributes; others so name OpenTelemetry's
        attributes = {"openinference.span.kind": value["span_kind"], **attributes}
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
    return TraceSpan(piece, key, str(parent or ""), trace, time_of(value, _TIMES), _with_messages(attributes))


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
    """A time in nanoseconds, from the first of these members that has a value; 0 if there is none. OTLP writes
    nanoseconds, the console exporter a date, and the JavaScript SDK seconds and nanoseconds."""
    time = next((value[name] for name in names if value.get(name)), None)
    if isinstance(time, list):
        seconds, nanoseconds = [count(each) for each in time] if len(time) == 2 else (None, None)
        return (seconds or 0) * 10**9 + (nanoseconds or 0)
    text = known_text(time) or (str(time) if type(time) is int else "")
    if text.isdecimal():
        return int(text) if len(text) < 20 else 0
    return moment(text) or 0


def _of_mlflow(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span of MLflow, also under the names of the conventions; others unchanged."""
    if "mlflow.spanType" not in attributes:
        return attributes
    listed = {name: load_json(f"[{value}]") for name, value in attributes.items()}
    attributes = {name: held[0] if isinstance(held, list) and len(held) == 1 else attributes[name]
                  for name, held in listed.items()}
    kind = attributes["mlflow.spanType"]
    request, response, usage = (object_of(attributes.get(f"mlflow.{name}"))
                                for name in ("spanInputs", "spanOutputs", "chat.tokenUsage"))
    found = {
        "openinference.span.kind": "LLM" if kind in ("CHAT_MODEL", "LLM") else kind,
        INPUT: request.get("messages"), OUTPUT: _answer_of_mlflow(response), CAP: cap_of(request),
        "gen_ai.response.model": response.get("model"), "gen_ai.response.id": response.get("id"),
        **{f"gen_ai.usage.{name}": tokens for name, tokens in usage.items()},
    }
    return {**{name: value for name, value in found.items() if value is not None}, **attributes}


def _answer_of_mlflow(response: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The messages of an answer of Chat Completions, Messages, Responses or LangChain, with its stop word; None if it
    is of another API."""
    items, batches = objects_of(response.get("output")), response.get("generations")
    if objects_of(response.get("choices")):
        return objects_of(response["choices"])
    if "content" in response:
        return [{**response, "finish_reason": response.get("stop_reason")}]
    if items:
        reason = object_of(response.get("incomplete_details")).get("reason")
        return [{**items[0], "finish_reason": f"incomplete:{reason}" if reason else response.get("status")}, *items[1:]]
    for generation in objects_of(batches[0]) if isinstance(batches, list) and batches else ():
        about = {**object_of(object_of(generation.get("message")).get("response_metadata")),
                 **object_of(generation.get("generation_info"))}
        return [{**generation, "finish_reason": about.get("finish_reason") or about.get("stop_reason")}]
    return None


def _with_messages(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with the messages and the cap under the names of the conventions if they are not there."""
    events = [each for each in objects_of(load_json(attributes.get("events"))) if known_text(each.get("event.name"))]
    request = object_of(load_json(attributes.get("request_data")))
    response = object_of(load_json(attributes.get("response_data")))
    if not (events or request or response):
        return attributes
    inputs = [each for each in events if each["event.name"] != CHOICE] or objects_of(request.get("messages"))
    outputs = [each for each in events if each["event.name"] == CHOICE] or _answer_of(response)
    found = {INPUT: inputs, OUTPUT: outputs, CAP: cap_of(request)}
    return {**{name: value for name, value in found.items() if value}, **attributes}


def _answer_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The message of `response_data`, or the text of its chunks."""
    message = object_of(response.get("message"))
    text = known_text(response.get("combined_chunk_content")) or known_text(response.get("text"))
    return [message] if message else [{"role": "assistant", "content": text}] if text else []


# -- Two spans of one answer ------------------------------------------------------------------------------------------
# Logfire writes two for a streamed answer: that of the request, without the answer, and one of the type `log` with it.
# A span that it exports before its end (`pending_span`) is a child of the span that it exports at the end.
# LangChain's span of a chat model holds the span of OpenAI's client, for example. The inner one is nearer to the
# provider and is kept, unless only the outer one has the answer. A span within a tool or an agent is another request.


def whole_spans(spans: Sequence[TraceSpan]) -> list[TraceSpan]:
    """The spans without those that were exported before their end, and without the request of each streamed answer
    that has a span of its own. A span whose end was never exported stays."""
    ids = {(span.trace, span.id) for span in spans}
    ended = [span for span in spans
             if span.attributes.get(_TYPE) != "pending_span" or (span.trace, span.parent) not in ids]
    streamed = Counter(_request_of(span) for span in ended
                       if span.attributes.get(_TYPE) == "log" and is_answer(span.attributes))
    doubles: set[int] = set()
    # Of equal requests the last one was answered; those before it failed.
    for span in sorted(ended, key=lambda span: span.start, reverse=True) if streamed else ():
        attributes, key = span.attributes, _request_of(span)
        empty = attributes.get(_TYPE) == "span" and is_answer(attributes) and not outputs_of(attributes)
        if empty and word_of(attributes) is None and streamed[key]:
            streamed[key] -= 1
            doubles.add(id(span))
    return [span for span in ended if id(span) not in doubles]


def _request_of(span: TraceSpan) -> tuple[str, ...]:
    """What both spans of a streamed answer have in common: their place in the trace, and the request."""
    return (span.trace, span.parent, *(str(span.attributes.get(name)) for name in ("request_data", INPUT)))


def each_answer_once(spans: Sequence[TraceSpan]) -> list[TraceSpan]:
    """The spans without those whose answer is in another span, around them or within them."""
    by_id = {(span.trace, span.id): span for span in spans}
    around: dict[int, TraceSpan] = {}
    for span in spans:
        outer = _around(span, by_id) if is_answer(span.attributes) else None
        if outer is not None:
            around[id(span)] = outer
    waiting = Counter(map(id, around.values()))
    within: dict[int, list[TraceSpan]] = {}
    doubles: set[int] = set()
    # From the innermost spans outwards; spans that form a ring have no innermost one, and stay.
    ready = [span for span in spans if id(span) in around and not waiting[id(span)]]
    for span in ready:  # it grows
        best = _best(span, within.get(id(span), []), doubles)
        outer = around.get(id(span))
        if outer is not None:
            within.setdefault(id(outer), []).append(best)
            waiting[id(outer)] -= 1
            if not waiting[id(outer)]:
                ready.append(outer)
    return [span for span in spans if id(span) not in doubles]


def _best(outer: TraceSpan, inner: Sequence[TraceSpan], doubles: set[int]) -> TraceSpan:
    """The span that stands for the answer of `outer`; the others that hold the same answer go to `doubles`."""
    content, contents = _content(outer), [_content(each) for each in inner]
    if not inner or (content and content not in contents and any(contents)):
        return outer  # the inner ones are other answers
    if len(inner) == 1 and _completeness(outer) > _completeness(inner[0]):
        doubles.add(id(inner[0]))
        return outer
    doubles.add(id(outer))
    return inner[contents.index(content)] if content in contents else inner[-1]


def _around(span: TraceSpan, by_id: dict[tuple[str, str], TraceSpan]) -> TraceSpan | None:
    """The nearest span of an answer around a span, without a tool or an agent between them."""
    here = span
    for _ in range(_DEEPEST):
        above = by_id.get((here.trace, here.parent)) if here.parent else None
        if above is None or is_tool(above.attributes) or _is_agent(above):
            return None
        if is_answer(above.attributes):
            return above
        here = above
    return None


def _is_agent(span: TraceSpan) -> bool:
    names = ("gen_ai.operation.name", "openinference.span.kind")
    return any(known_text(span.attributes.get(name)) in _AGENTS for name in names)


def _content(span: TraceSpan) -> tuple[str, ...]:
    """The text and the names of the calls of an answer; empty if the span does not hold it."""
    output = next(iter(outputs_of(span.attributes)), None)
    if output is None or not (output.text or output.calls):
        return ()
    return ("".join(output.text.split()), *(name for _, name, _ in output.calls))


def _completeness(span: TraceSpan) -> tuple[bool, bool, bool]:
    """How much of an answer a span holds: its content, its stop word, its count of tokens."""
    attributes = span.attributes
    return bool(_content(span)), word_of(attributes) is not None, fact(attributes, "output") is not None
