"""Anthropic's text completions: words, events, prompts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.traffic import by_content, by_path
from loop_core.errors import EncodeError
from loop_core.values import At, ExchangePart, Message, Request, Role, Stop, TextPart, Tool
from loop_core.wire import decode_response, encode_request, wire
from tests.scenes.rows import each_row

API = "anthropic_complete"


def completion(text: str, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "completion", "id": "c", "completion": text, "stop_reason": reason, "model": "m", "stop": None,
            **more}


def events(*values: dict[str, Any]) -> bytes:
    return b"".join(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode() for value in values)


@each_row(("word", "stop"), [
    ("stop_sequence", Stop.END_TURN), ("max_tokens", Stop.MAX_TOKENS), ("odd", Stop.UNKNOWN),
])
@each_row("streamed", [False, True])
def test_what_the_words_mean(word: str, stop: Stop, streamed: bool) -> None:
    last = completion("b", word, stop="E")
    body = events(completion("a"), {"type": "ping"}, last)
    if not streamed:
        body = json.dumps({**last, "completion": "ab"}).encode()
    response = decode_response(API, body)
    assert (response.stop_reason.normalized, response.stop_reason.raw) == (stop, word)
    assert (response.text, response.id, response.model, response.native) == ("ab", "c", "m", {"stop": "E"})
    at = response.stop_reason.evidence[0].at
    assert isinstance(at, At)
    assert (at.part, at.pointer) == (ExchangePart.BODY, "/stop_reason")
    assert word.encode() in body[at.start:at.end]
    assert response.findings == ()


def test_a_stream_without_its_last_event_is_interrupted() -> None:
    response = decode_response(API, events(completion("a"), completion("b")))
    assert (response.stop_reason.normalized, response.text) == (Stop.INTERRUPTED, "ab")


@pytest.mark.parametrize("body", [
    events(completion("a"), {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
    json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}).encode(),
])
def test_an_error(body: bytes) -> None:
    response = decode_response(API, body)
    assert response.stop_reason.normalized is Stop.ERROR
    assert response.error is not None
    assert (response.error.message, response.error.retryable) == ("m", True)


def test_what_is_no_completion_is_said() -> None:
    (found,) = decode_response(API, b'{"id": "c"}').findings
    assert found.rule == f"{API}.no_completion"
    (found,) = decode_response(API, events({"type": "odd"})).findings
    assert found.rule == f"{API}.unknown_event"


def test_a_request_is_read_and_written() -> None:
    body = {"model": "m", "prompt": "\n\nHuman: u\n\nAssistant:", "max_tokens_to_sample": 9, "temperature": 0}
    read = wire(API).read_request(body)
    assert [(m.role, m.text) for m in read.messages] == [(Role.USER, "\n\nHuman: u\n\nAssistant:")]
    assert (read.max_tokens, read.stream) == (9, False)
    assert encode_request(API, read) == body
    assert wire(API).read_request({"prompt": "u", "stream": True}).stream
    said = (Message(Role.USER, (TextPart("u"),)), Message(Role.ASSISTANT, (TextPart("so f"),)))
    assert encode_request(API, Request(API, said))["prompt"] == "uso f"
    with pytest.raises(EncodeError, match="tools"):
        encode_request(API, Request(API, said, tools=(Tool("f"),)))


def test_its_address_and_its_body() -> None:
    assert by_path("https://api.anthropic.com/v1/complete") == API
    assert by_content(json.dumps(completion("a", "max_tokens")).encode()) == API
    assert by_content(events(completion("a"))) == API
