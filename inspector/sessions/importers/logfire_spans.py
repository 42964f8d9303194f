"""What Pydantic's Logfire and Pydantic AI write in ways of their own: messages, the request, two spans for one answer.

Logfire writes the request as `request_data` and the answer as `response_data`; older Pydantic AI writes all messages as
one attribute (`events`). A streamed answer has two spans: that of the request, without the answer, and one of the type
`log` with the answer. A span that was exported before its end (`pending_span`) is a child of the span that is exported
at its end. Sources: logfire 4 `tracer.py`, `llm_providers/llm_provider.py`, `openai.py`, `anthropic.py`; pydantic-ai
0.4 `models/instrumented.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from inspector.sessions.importers.span_names import TraceSpan, is_answer, load_json, outputs_of, word_of
from inspector.sessions.transcripts.member_values import cap_of, known_text, object_of, objects_of

INPUT, OUTPUT, CAP = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.request.max_tokens"
_TYPE = "logfire.span_type"
_CHOICE = "gen_ai.choice"
"""The name of the event that holds an answer; the other events hold messages of the request."""


def with_messages(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with the messages and the cap under the names of the conventions if they are not there."""
    events = [each for each in objects_of(load_json(attributes.get("events"))) if known_text(each.get("event.name"))]
    request = object_of(load_json(attributes.get("request_data")))
    response = object_of(load_json(attributes.get("response_data")))
    if not (events or request or response):
        return attributes
    inputs = [each for each in events if each["event.name"] != _CHOICE] or objects_of(request.get("messages"))
    outputs = [each for each in events if each["event.name"] == _CHOICE] or _answer_of(response)
    found = {INPUT: inputs, OUTPUT: outputs, CAP: cap_of(request)}
    return {**{name: value for name, value in found.items() if value}, **attributes}


def _answer_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The message of `response_data`, or the text of its chunks."""
    message = object_of(response.get("message"))
    text = known_text(response.get("combined_chunk_content")) or known_text(response.get("text"))
    return [message] if message else [{"role": "assistant", "content": text}] if text else []


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
