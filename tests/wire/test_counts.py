"""Token counts and caps: whole numbers that can be counts, in every format; anything else counts as absent."""

from __future__ import annotations

import json

import pytest

import loop_core
from inspector.sessions.importers.claude_rows import take_end
from inspector.sessions.importers.codex_items import usage_of as codex_usage
from inspector.sessions.importers.kimi_cli import usage_of as kimi_usage
from inspector.sessions.importers.pi import usage_of as pi_usage
from inspector.sessions.importers.roo_store import TaskRequest
from inspector.sessions.transcripts.answer import TranscriptAnswer, TreePlace
from loop_core.values import At, ChatResponse, Message, Request, Role, Stop, StopReason, TextPart, Usage
from loop_core.wire import FORMATS, wire
from loop_core.wire.body import token_count
from tests.scenes.rows import each_row

ODD = ("-5", "true", '"12"', "12.5", "1e400", "[12]", "null", str(1 << 63), "1" * 400)
"""JSON that is no count: no amount, no number, or one that no provider can have counted."""
each_format = pytest.mark.parametrize("api", FORMATS)
USER = (Message(Role.USER, (TextPart("go on"),)),)


def word_of(api: str) -> str:
    return next(word for word, row in wire(api).stop_reasons.items() if row.stop is Stop.END_TURN)


def whole(api: str) -> bytes:
    stop = StopReason(Stop.END_TURN, word_of(api))
    response = ChatResponse(api, (TextPart("Hello there."),), stop, Usage(4711, 5813))
    return b"".join(loop_core.encode_response(api, response, stream=False))


@each_row("api", [api for api in FORMATS if api != "anthropic_complete"])  # it sends no counts
def test_a_count_that_cannot_be_is_absent(api: str) -> None:
    body = whole(api)
    assert loop_core.read(api, body).usage == Usage(4711, 5813)
    assert loop_core.read(api, body.replace(b"5813", b"5813.0")).usage == Usage(4711, 5813), "one number in JSON"
    for odd in ODD:
        usage = loop_core.read(api, body.replace(b"5813", odd.encode())).usage
        assert usage is None or usage.output_tokens is None, odd
        usage = loop_core.read(api, body.replace(b"4711", odd.encode())).usage
        assert usage is None or usage.input_tokens is None, odd


@each_format
@pytest.mark.parametrize("odd", [-1, -2, 1 << 63, True, "64"])
def test_a_cap_that_cannot_be_is_no_cap(api: str, odd: object) -> None:
    """LM Studio documents `max_tokens: -1` for no limit, llama.cpp and Ollama -1 and -2; no answer reaches it."""
    model = "anthropic.claude" if api == "bedrock_invoke" else "m"
    body = json.dumps(loop_core.encode_request(api, Request(api, USER, model, max_tokens=4711)))
    assert loop_core.decode_request(api, json.loads(body)).max_tokens == 4711
    asked = loop_core.decode_request(api, json.loads(body.replace("4711", json.dumps(odd))))
    assert asked.max_tokens is None
    assert not loop_core.read(api, whole(api), request=asked).findings


def test_no_limit_is_sent_again_as_it_stood() -> None:
    asked = loop_core.decode_request("openai_chat", {"model": "m", "messages": [], "max_tokens": -1})
    assert loop_core.encode_request("openai_chat", asked)["max_tokens"] == -1


@each_row("value", [-5, True, "12", 12.5, float("inf"), float("nan"), 10**30, None])
def test_no_importer_takes_a_count_that_cannot_be(value: object) -> None:
    assert token_count(value) is None
    names = ("input_tokens", "output_tokens", "reasoning_output_tokens", "cached_input_tokens",
             "cache_write_input_tokens")
    assert codex_usage({"last_token_usage": dict.fromkeys(names, value)}, "last_token_usage") == Usage()
    kimi = dict.fromkeys(("inputOther", "inputCacheRead", "inputCacheCreation", "output"), value)
    assert kimi_usage(kimi, "openai_chat") == Usage()
    pi = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "totalTokens"), value)
    assert pi_usage(pi, "anthropic_messages") == Usage()
    assert TaskRequest.of({"usage": [value] * 4}).usage == Usage()
    answer = TranscriptAnswer("a", "anthropic_messages", None, TreePlace(None), 1)
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    claude = dict.fromkeys(names, value)
    take_end(answer, {"usage": claude}, At())
    assert answer.usage == Usage()
