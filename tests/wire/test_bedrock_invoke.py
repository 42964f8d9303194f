"""Bedrock InvokeModel: bodies and chunks of every maker, words, exceptions, cut calls, requests."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from inspector.sessions.traffic import by_content, by_path
from loop_core.errors import EncodeError
from loop_core.judge.classify import judge
from loop_core.values import Message, Request, Role, Stop, TextPart, Tool, Usage
from loop_core.wire import decode_response, encode_request, wire
from loop_core.wire.eventstream import event_frame, exception_frame

API = "bedrock_invoke"
METRICS = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 5, "outputTokenCount": 7}}


def chunks(*events: Any) -> bytes:
    return b"".join(event_frame("chunk", json.dumps(
        {"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "ab"}).encode()) for event in events)


def whole(value: Any) -> bytes:
    return json.dumps(value).encode()


BODIES = {
    "claude": whole({"id": "i", "type": "message", "model": "m", "content": [{"type": "text", "text": "a"}],
                     "stop_reason": "max_tokens", "usage": {"input_tokens": 5, "output_tokens": 7}}),
    "nova": whole({"output": {"message": {"content": [{"text": "a"}], "role": "assistant"}},
                   "stopReason": "max_tokens", "usage": {"inputTokens": 5, "outputTokens": 7}}),
    "llama": whole({"generation": "a", "prompt_token_count": 5, "generation_token_count": 7, "stop_reason": "length"}),
    "titan": whole({"inputTextTokenCount": 5, "results": [
        {"tokenCount": 7, "outputText": "a", "completionReason": "LENGTH"}]}),
    "mistral chat": whole({"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"},
                                        "stop_reason": "x", "finish_reason": "length"}],
                           "usage": {"prompt_tokens": 5, "completion_tokens": 7}}),
    "mistral large": whole({"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"},
                                         "stop_reason": "length"}],
                            "usage": {"prompt_tokens": 5, "completion_tokens": 7}}),
    "claude stream": chunks(
        {"type": "message_start", "message": {"id": "i", "model": "m", "content": [], "usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop", **METRICS}),
    "nova stream": chunks(
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"delta": {"text": "a"}, "contentBlockIndex": 0}},
        {"contentBlockStop": {"contentBlockIndex": 0}}, {"messageStop": {"stopReason": "max_tokens"}},
        {"metadata": {"usage": {"inputTokens": 5, "outputTokens": 7}}, **METRICS}),
    "llama stream": chunks(
        {"generation": "a", "prompt_token_count": 5, "generation_token_count": 1, "stop_reason": None},
        {"generation": "", "prompt_token_count": None, "generation_token_count": 7, "stop_reason": "length",
         **METRICS}),
    "mistral stream": chunks({"outputs": [{"text": "a", "stop_reason": None}]},
                             {"outputs": [{"text": "", "stop_reason": "length"}], **METRICS}),
    "titan stream": chunks({"outputText": "a", "index": 0, "totalOutputTextTokenCount": 7, "inputTextTokenCount": 5,
                            "completionReason": "LENGTH", **METRICS}),
    "mistral large stream": chunks(
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "stop_reason": None}]},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "stop_reason": "length"}],
         **METRICS}),
    "chat stream": chunks({"choices": [{"index": 0, "delta": {"content": "a"}}]},
                          {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}], **METRICS}),
}


@pytest.mark.parametrize("name", BODIES)
def test_every_maker_is_read(name: str) -> None:
    response = decode_response(API, BODIES[name])
    assert (response.api, response.text, response.stop_reason.normalized) == (API, "a", Stop.MAX_TOKENS)
    assert response.usage is not None
    assert response.usage[:2] == (5, 7)
    assert response.streaming is name.endswith("stream")
    assert [finding for finding in response.findings if finding.severity != "info"] == []


@pytest.mark.parametrize(("word", "stop"), [
    ("stop", Stop.END_TURN), ("length", Stop.MAX_TOKENS), ("tool_calls", Stop.TOOL_CALL), ("FINISH", Stop.END_TURN),
    ("FINISHED", Stop.END_TURN), ("LENGTH", Stop.MAX_TOKENS), ("STOP_CRITERIA_MET", Stop.END_TURN),
    ("CONTENT_FILTERED", Stop.SAFETY_BLOCKED), ("RAG_QUERY_WHEN_RAG_DISABLED", Stop.ERROR), ("COMPLETE", Stop.END_TURN),
    ("MAX_TOKENS", Stop.MAX_TOKENS), ("ERROR", Stop.ERROR), ("ERROR_TOXIC", Stop.SAFETY_BLOCKED),
    ("STOP_SEQUENCE", Stop.END_TURN), ("ERROR_LIMIT", Stop.CONTEXT_WINDOW_EXCEEDED), ("USER_CANCEL", Stop.CANCELLED),
    ("end_turn", Stop.END_TURN), ("guardrail_intervened", Stop.SAFETY_BLOCKED), ("odd", Stop.UNKNOWN),
])
def test_what_the_words_mean(word: str, stop: Stop) -> None:
    assert decode_response(API, whole({"generation": "a", "stop_reason": word})).stop_reason.normalized is stop


@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse"])
def test_the_words_of_claude_and_nova_mean_what_they_mean_in_their_own_formats(api: str) -> None:
    for word, row in wire(api).stop_reasons.items():
        stop = decode_response(API, whole({"generation": "a", "stop_reason": word})).stop_reason
        assert stop.normalized is row.stop, word


@pytest.mark.parametrize("body", [
    {"generations": [{"text": "a", "finish_reason": "COMPLETE"}], "id": "i"},
    {"text": "a", "finish_reason": "COMPLETE"},
    {"completion": "a", "stop_reason": "stop_sequence"}, {"outputs": [{"text": "a", "stop_reason": "stop"}]},
])
def test_makers_that_count_nothing(body: dict[str, Any]) -> None:
    response = decode_response(API, whole(body))
    assert (response.text, response.usage, response.stop_reason.normalized) == ("a", None, Stop.END_TURN)
    assert response.id == body.get("id")
    at = response.stop_reason.evidence[0].at
    assert at is not None
    assert json.dumps(body).encode()[at.start : at.end] == json.dumps(response.raw_stop_reason).encode()


def test_a_call_that_the_stream_cuts_is_held() -> None:
    body = chunks(
        {"type": "message_start", "message": {"id": "i", "model": "m", "content": [], "usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "tool_use", "id": "x", "name": "f", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"n": 12'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"})
    response = decode_response(API, body)
    (call,) = response.tool_calls
    assert (call.arguments, call.closed) == ('{"n": 12', False)
    assert judge(response).stop.normalized is Stop.MAX_TOKENS


def test_a_stream_without_its_end_is_interrupted_and_an_exception_an_error() -> None:
    begun = chunks({"generation": "a", "stop_reason": None})
    assert decode_response(API, begun).stop_reason.normalized is Stop.INTERRUPTED
    broken = decode_response(API, begun + exception_frame("throttlingException", b'{"message": "slow"}'))
    assert (broken.stop_reason.normalized, broken.stop_reason.detail) == (Stop.ERROR, "retryable")
    cut = decode_response(API, BODIES["claude stream"][:-9])
    assert "frame.cut" in [finding.rule for finding in cut.findings]
    inside = decode_response(API, chunks({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}))
    assert inside.stop_reason.normalized is Stop.ERROR


def test_calls_of_mistral_are_closed_by_its_own_word() -> None:
    call = {"id": "abcdefghi", "function": {"name": "f", "arguments": '{"a": 1}'}}
    choice = {"index": 0, "message": {"role": "assistant", "content": "", "tool_calls": [call]}}
    for reason, stop in (("tool_calls", Stop.TOOL_CALL), (None, Stop.INTERRUPTED)):
        body = {"choices": [{**choice, "stop_reason": reason}]}
        for given in (whole(body), chunks(body)):
            response = decode_response(API, given)
            assert (response.stop_reason.normalized, response.stop_reason.raw) == (stop, reason)
            assert [call.closed for call in response.tool_calls] == [reason is not None]
    (evidence, *_) = decode_response(API, whole({"choices": [{**choice, "stop_reason": "stop"}]})).stop_reason.evidence
    assert evidence.at is not None
    assert evidence.at.pointer == "/choices/0/stop_reason"


def test_cached_tokens_of_nova() -> None:
    usage = {"inputTokens": 5, "outputTokens": 7, "cacheReadInputTokenCount": 3}
    response = decode_response(API, chunks({"messageStop": {"stopReason": "end_turn"}}, {"metadata": {"usage": usage}}))
    assert response.usage == Usage(5, 7, None, 3)


URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/{}/invoke-with-response-stream"


@pytest.mark.parametrize(("model", "body", "cap"), [
    ("us.anthropic.claude-sonnet-4-5-20250929-v1%3A0",
     {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": "user", "content": "u"}]}, 9),
    ("amazon.nova-micro-v1:0", {"messages": [{"role": "user", "content": [{"text": "u"}]}],
                                "inferenceConfig": {"max_new_tokens": 9}}, 9),
    ("amazon.nova-micro-v1:0", {"messages": [{"role": "user", "content": [{"text": "u"}]}],
                                "inferenceConfig": {"maxTokens": 9}}, 9),
    ("meta.llama3-70b", {"prompt": "u", "max_gen_len": 9}, 9), ("mistral.mistral-7b", {"prompt": "u"}, None),
    ("amazon.titan-text", {"inputText": "u", "textGenerationConfig": {"maxTokenCount": 9}}, 9),
    ("cohere.command-r", {"message": "u", "max_tokens": 9}, 9),
    ("mistral.mistral-large", {"messages": [{"role": "user", "content": "u"}], "max_tokens": 9}, 9),
])
def test_requests_are_read_by_their_model(model: str, body: dict[str, Any], cap: int | None) -> None:
    read = wire(API).read_request(body, URL.format(model))
    assert ([message.text for message in read.messages], read.max_tokens, read.api, read.stream) == (
        ["u"], cap, API, True)
    assert read.model == model.replace("%3A", ":")


def test_requests_are_written_for_claude_and_nova() -> None:
    asked = Request(API, (Message(Role.USER, (TextPart("u"),)),), "anthropic.claude-x:0",
                    (Tool("f", {"type": "object"}),), max_tokens=9, stream=True)
    body = encode_request(API, asked)
    assert body["anthropic_version"] == "bedrock-2023-05-31"
    assert not {"model", "stream"} & body.keys()
    assert wire(API).path(asked) == "/model/anthropic.claude-x%3A0/invoke-with-response-stream"
    assert wire(API).read_request(body, URL.format("anthropic.claude-x:0")).tools[0].name == "f"
    nova = Request(API, asked.messages, "amazon.nova-lite-v1:0", max_tokens=9)
    assert encode_request(API, nova)["inferenceConfig"] == {"maxTokens": 9}
    with pytest.raises(EncodeError, match="for Claude and Nova only"):
        encode_request(API, Request(API, asked.messages, "meta.llama3"))


def test_its_address_and_its_chunks() -> None:
    assert by_path(URL.format("x.y%3A0")) == API
    assert by_content(BODIES["claude stream"]) == API
    assert by_content(BODIES["claude"]) == "anthropic_messages"
