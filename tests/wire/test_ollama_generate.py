"""Ollama generate: words, lines, prompts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.traffic import by_content, by_path
from loop_core.errors import EncodeError
from loop_core.values import Message, Request, Role, Stop, TextPart, Tool
from loop_core.wire import decode_response, encode_request, wire
from tests.scenes.rows import each_row

API = "ollama_generate"


def line(text: str, **more: Any) -> bytes:
    return json.dumps({"model": "m", "created_at": "t", "response": text, "done": False, **more}).encode() + b"\n"


@each_row(("word", "stop", "detail"), [
    ("stop", Stop.END_TURN, None), ("length", Stop.MAX_TOKENS, None), ("load", Stop.UNKNOWN, "load"),
    ("unload", Stop.UNKNOWN, "unload"), ("odd", Stop.UNKNOWN, None),
])
def test_what_the_words_mean(word: str, stop: Stop, detail: str | None) -> None:
    body = line("a", thinking="t") + line("b") + line("", done=True, done_reason=word, context=[1], eval_count=3)
    response = decode_response(API, body)
    assert (response.stop_reason.normalized, response.stop_reason.detail) == (stop, detail)
    assert (response.text, response.reasoning_content, response.api) == ("ab", "t", API)
    assert response.streaming


def test_done_without_a_reason_is_no_end() -> None:
    assert decode_response(API, line("a") + line("", done=True)).stop_reason.normalized is Stop.INTERRUPTED


def test_an_error_in_a_stream() -> None:
    response = decode_response(API, line("a") + b'{"error": "an error was encountered"}\n')
    assert (response.stop_reason.normalized, response.text) == (Stop.ERROR, "a")


def test_a_call_comes_whole() -> None:
    call = {"function": {"name": "f", "arguments": {"n": 1}}}
    (read,) = decode_response(API, line("", tool_calls=[call], done=True, done_reason="stop")).tool_calls
    assert (read.name, read.arguments, read.closed) == ("f", '{"n": 1}', True)
    assert read.at is not None
    assert read.at.pointer == "/tool_calls/0"


def test_a_request_is_read_and_written() -> None:
    body = {"model": "m", "system": "s", "prompt": "u", "stream": False, "options": {"num_predict": 9, "seed": 1}}
    read = wire(API).read_request(body)
    assert [(m.role, m.text) for m in read.messages] == [(Role.SYSTEM, "s"), (Role.USER, "u")]
    assert (read.max_tokens, read.stream) == (9, False)
    assert encode_request(API, read) == body
    assert wire(API).read_request({"prompt": "u"}).stream
    with pytest.raises(EncodeError, match="tools"):
        encode_request(API, Request(API, (Message(Role.USER, (TextPart("u"),)),), tools=(Tool("f"),)))


def test_its_address_and_its_body() -> None:
    assert by_path("http://localhost:11434/api/generate") == API
    assert by_content(line("a")) == API
    chat = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": False}
    assert by_content(json.dumps(chat).encode()) == "ollama_chat"
