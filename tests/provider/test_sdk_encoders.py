"""The encoders against the official SDKs' types: whatever complete response is written, strictly what these declare.

A response that lacks what a server always sends (an id, a model, its usage) is written without it: nothing is invented.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_core.values import (
    ChatResponse,
    ProviderError,
    ReasoningPart,
    ResponsePart,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire import decode, wire
from loop_core.wire.servers import (
    CHAT,
    COHERE,
    COMPLETE,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    GENERATE,
    INVOKE,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)
from tests.scenes.provider import each_way
from tests.scenes.sdk_types import Event, complaints, events

WORDS = {  # without calls, and with them
    CHAT: (("stop", "length", "content_filter"), ("tool_calls", "length", "stop")),
    RESPONSES: (("completed", "incomplete:max_output_tokens", "incomplete:content_filter"), ("completed",)),
    MESSAGES: (("end_turn", "max_tokens", "stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded"),
               ("tool_use", "end_turn")),
    GEMINI: (("STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL"), ("STOP", "MAX_TOKENS")),
    CONVERSE: (("end_turn", "max_tokens", "stop_sequence", "guardrail_intervened", "content_filtered",
                "model_context_window_exceeded", "malformed_model_output"), ("tool_use", "end_turn")),
    OLLAMA: (("stop", "length"), ("stop",)),
    "gemini_interactions": (("completed", "incomplete", "budget_exceeded"), ("requires_action",)),
    INVOKE: (("end_turn", "max_tokens", "stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded"),
             ("tool_use", "end_turn")),
    COMPLETIONS: (("stop", "length", "content_filter"), ()),
    COMPLETE: (("stop_sequence", "max_tokens"), ()),
    GENERATE: (("stop", "length"), ()),
    COHERE: (("COMPLETE", "MAX_TOKENS", "STOP_SEQUENCE", "ERROR", "TIMEOUT"), ("TOOL_CALL",)),
}
REFUSES = (CHAT, RESPONSES)
"""Formats with a text of refusal beside the content."""
KINDS = {GENERATE: ["thought", "text"], COMPLETIONS: ["text"], COMPLETE: ["text"]}
"""What an answer holds that is not all of it."""
BESIDE = {
    **dict.fromkeys((MESSAGES, INVOKE), (("stop_sequence", "stop_sequence"), ("refusal", "stop_details.explanation"))),
    GEMINI: (("MALFORMED_FUNCTION_CALL", "finishMessage"), ("SAFETY", "finishMessage")),
    CONVERSE: (("guardrail_intervened", "trace.guardrail.actionReason"),),
}
"""Words that come with other words of their own."""
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=24)
COUNT = st.integers(0, 1_000_000)
OBJECT = st.dictionaries(st.text("abc", max_size=3), st.one_of(st.booleans(), st.integers(0, 99), st.text(max_size=9)),
                         max_size=3).map(json.dumps)
OPAQUE = st.binary(min_size=1, max_size=9).map(lambda data: base64.urlsafe_b64encode(data).decode())


@st.composite
def thoughts(draw: st.DrawFn, api: str, number: int) -> ReasoningPart:
    """Thinking as the format carries it: with a signature or sealed, where it can be."""
    sealed = api in (MESSAGES, CONVERSE, INVOKE) and draw(st.booleans())
    if sealed:
        return ReasoningPart("", data=draw(OPAQUE))
    part = ReasoningPart(draw(TEXT))
    if api == RESPONSES:
        return part._replace(item_id=f"rs_{number}", data=draw(st.none() | OPAQUE))
    return part._replace(signature=draw(OPAQUE)) if api in (MESSAGES, CONVERSE, GEMINI, INVOKE) else part


@st.composite
def calls(draw: st.DrawFn, api: str, number: int) -> ToolCall:
    ident = None if api in (GEMINI, OLLAMA) else f"call_{number}"
    status, item = ("completed", f"fc_{number}") if api == RESPONSES else (None, None)
    return ToolCall(ident, draw(st.text("abc_", min_size=1, max_size=9)), draw(OBJECT), closed=True, status=status,
                    item_id=item)


@st.composite
def responses(draw: st.DrawFn, api: str) -> ChatResponse:
    """A response of which nothing is missing."""
    kinds = draw(st.lists(st.sampled_from(KINDS.get(api, ["thought", "text", "call"])), max_size=4))
    made: dict[str, Any] = {"thought": thoughts, "call": calls, "text": lambda api, number: TEXT.map(TextPart)}
    parts: tuple[ResponsePart, ...] = tuple(draw(made[kind](api, number)) for number, kind in enumerate(sorted(kinds)))
    if api in (CHAT, OLLAMA, GENERATE):  # one text and one thought
        parts = tuple({(type(part), getattr(part, "id", number) if type(part) is ToolCall else 0): part
                       for number, part in enumerate(parts)}.values())
    if api in (OLLAMA, COHERE, GENERATE):
        order = (ReasoningPart, TextPart, ToolCall)
        parts = tuple(sorted(parts, key=lambda part: order.index(type(part))))
    called = any(type(part) is ToolCall for part in parts)
    raw = draw(st.sampled_from(WORDS[api][called]))
    spent, thought = draw(COUNT), draw(COUNT)
    usage = Usage(draw(COUNT), spent + thought, thought, draw(COUNT))
    refusal = draw(st.none() | TEXT) if api in REFUSES and not called and raw in ("stop", "completed") else None
    native = {name: draw(TEXT) for word, name in BESIDE.get(api, ()) if word == raw}
    return ChatResponse(api, parts, StopReason(wire(api).stop_reasons[raw].stop, raw), usage, id="made_1", model="m",
                        refusal=refusal, native=native)


@pytest.mark.parametrize(("api", "stream"), each_way)
def test_every_complete_response_is_what_the_sdk_declares(api: str, stream: bool) -> None:
    @given(responses(api), st.integers(1, 9))
    @settings(max_examples=15)
    def holds(response: ChatResponse, chunk: int) -> None:
        body = b"".join(wire(api).encode(response, stream=stream, chunk=chunk))
        assert [each for event in events(api, stream, body) for each in complaints(api, stream, event)] == []
        assert decode(api, body).raw_stop_reason == response.raw_stop_reason

    holds()


FAILURES = {
    CHAT: ProviderError("Not today.", "server_error", "overloaded", True),
    RESPONSES: ProviderError("Not today.", None, "server_error", True),
    MESSAGES: ProviderError("Not today.", "overloaded_error", None, True),
    GEMINI: ProviderError("Not today.", "UNAVAILABLE", "503", True),
    CONVERSE: ProviderError("Not today.", "modelStreamErrorException", None, True),
    OLLAMA: ProviderError("Not today."),
    COHERE: ProviderError("Not today.", retryable=True),
    INVOKE: ProviderError("Not today.", "modelStreamErrorException", None, True),
    COMPLETIONS: ProviderError("Not today.", "server_error", "overloaded", True),
    COMPLETE: ProviderError("Not today.", "overloaded_error", None, True),
    GENERATE: ProviderError("Not today."),
}


def error_events(api: str, *parts: ResponsePart, error: ProviderError | None = None) -> list[Event]:
    """The events of a stream that ends in an error."""
    response = ChatResponse(api, parts, StopReason(Stop.ERROR), Usage(3, 1) if api in (MESSAGES, INVOKE) else None,
                            id="made_1", model="m", error=error or FAILURES[api])
    body = b"".join(wire(api).encode(response, stream=True))
    assert decode(api, body).error == response.error
    return events(api, True, body)


@pytest.mark.parametrize("api", FAILURES)
def test_an_error_in_a_stream_is_what_the_sdk_declares(api: str) -> None:
    sent = error_events(api, TextPart("It began"))
    assert [each for event in sent for each in complaints(api, True, event)] == []
    assert any("Not today." in json.dumps(event.value) for event in sent)


def test_an_error_of_responses_is_flat_unless_it_has_a_type() -> None:
    """The documented event has no place for one, and servers send such under `error`."""
    name, value = error_events(RESPONSES)[-1]
    assert (name, value) == ("error", {"type": "error", "sequence_number": 2, "code": "server_error",
                                       "message": "Not today.", "param": None})
    _, value = error_events(RESPONSES, error=ProviderError("Not today.", "invalid_request_error", "x", False))[-1]
    assert value["error"] == {"code": "x", "message": "Not today.", "param": None, "type": "invalid_request_error"}


def test_an_error_of_a_chat_stream_stands_alone_unless_nothing_else_tells_of_the_answer() -> None:
    error = {"message": "Not today.", "type": "server_error", "code": "overloaded"}
    assert error_events(CHAT, TextPart("It began"))[-1].value == {"error": error}
    ((_, value),) = error_events(CHAT)
    assert (value["id"], value["model"], value["error"]) == ("made_1", "m", error)
