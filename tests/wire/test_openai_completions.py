"""Legacy completions: words, bodies, errors, prompts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.traffic import by_content, by_path
from loop_core.errors import EncodeError
from loop_core.judge.classify import judge
from loop_core.values import Message, Request, Role, Stop, TextPart, Tool
from loop_core.wire import decode_response, encode_request, wire
from tests.scenes.rows import each_row

API = "openai_completions"


def completion(text: str = "a", reason: str | None = "stop", **more: Any) -> bytes:
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": reason, **more}
    return json.dumps({"id": "cmpl-1", "object": "text_completion", "model": "m", "choices": [choice]}).encode()


@each_row(("word", "stop"), [
    ("stop", Stop.END_TURN), ("length", Stop.MAX_TOKENS), ("content_filter", Stop.SAFETY_BLOCKED),
    ("abort", Stop.CANCELLED), ("error", Stop.ERROR),
    ("insufficient_system_resource", Stop.ERROR), ("odd", Stop.UNKNOWN), (None, Stop.INTERRUPTED),
])
def test_what_the_words_mean(word: str | None, stop: Stop) -> None:
    response = decode_response(API, completion(reason=word))
    assert (response.stop_reason.normalized, response.raw_stop_reason, response.text) == (stop, word, "a")
    assert response.api == API


def test_an_end_token_beside_the_word_is_kept() -> None:
    assert decode_response(API, completion(stop_reason="###")).native == {"stop_reason": "###"}


def test_of_several_choices_the_first_is_read() -> None:
    body = {"choices": [{"text": "b", "index": 1, "finish_reason": "stop"},
                        {"text": "a", "index": 0, "finish_reason": "length"}]}
    response = decode_response(API, b"data: " + json.dumps(body).encode() + b"\n\n", n=2)
    assert (response.text, response.raw_stop_reason, response.other_choices) == ("a", "length", 1)


def test_an_error_in_a_stream_outranks_what_came() -> None:
    body = b'data: {"choices": [{"text": "a", "index": 0}]}\n\ndata: {"error": {"message": "m", "code": 500}}\n\n'
    response = decode_response(API, body)
    assert (response.stop_reason.normalized, response.text) == (Stop.ERROR, "a")


def test_an_answer_without_its_end_is_interrupted() -> None:
    response = decode_response(API, b'data: {"choices": [{"text": "a", "index": 0, "finish_reason": null}]}\n\n')
    assert judge(response).stop.normalized is Stop.INTERRUPTED


def test_a_prompt_is_a_message_and_several_are_several_answers() -> None:
    read = wire(API).read_request({"model": "m", "prompt": ["a", "b"], "max_tokens": 9, "n": 2, "stop": ["x"]})
    assert [message.text for message in read.messages] == ["a", "b"]
    assert (read.n, read.max_tokens, read.stream, dict(read.extra)) == (4, 9, False, {"stop": ["x"]})
    tokens = wire(API).read_request({"model": "m", "prompt": [1, 2]})
    assert (tokens.messages, dict(tokens.extra)) == ((), {"prompt": [1, 2]})


def test_a_request_is_written_as_one_prompt() -> None:
    history = (Message(Role.SYSTEM, (TextPart("s"),)), Message(Role.USER, (TextPart("u"),)),
               Message(Role.ASSISTANT, (TextPart("so far"),)))
    asked = Request(API, history, "m", max_tokens=9, stream=True)
    assert encode_request(API, asked) == {"model": "m", "prompt": "s\n\nuso far", "max_tokens": 9, "stream": True}
    with pytest.raises(EncodeError, match="tools"):
        encode_request(API, Request(API, history, "m", tools=(Tool("f"),)))


@pytest.mark.parametrize("url", ["https://api.openai.com/v1/completions", "https://h/v1/fim/completions",
                                 "http://localhost:8000/v1/completions?x=1"])
def test_its_address(url: str) -> None:
    assert by_path(url) == API


def test_a_body_is_told_from_a_chat_completion() -> None:
    assert by_content(completion()) == API
    assert by_content(b'{"object": "text_completion", "choices": []}') == API
    chat = {"choices": [{"index": 0, "text": "", "message": {"role": "assistant", "content": "a"}}]}
    assert by_content(json.dumps(chat).encode()) == "openai_chat"
