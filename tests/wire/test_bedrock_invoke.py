"""Bedrock InvokeModel: bodies and chunks of every maker, words, exceptions, cut calls, requests."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from inspector.sessions.traffic import by_content, by_path
from loop_core.errors import EncodeError
from loop_core.judge.classify import judge
from loop_core.judge.gate import admit_all
from loop_core.reader import read
from loop_core.values import (
    ChatResponse,
    Message,
    ReasoningPart,
    Request,
    Role,
    Stop,
    StopReason,
    TextPart,
    Tool,
    ToolCall,
    Usage,
)
from loop_core.wire import decode_response, encode_request, encode_response, wire
from loop_core.wire.eventstream import EventStream, event_frame, exception_frame
from tests.scenes.rows import each_row

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
    "imported": whole({"object": "text_completion", "choices": [{"index": 0, "text": "a", "finish_reason": "length"}],
                       "usage": {"prompt_tokens": 5, "completion_tokens": 7}}),
    "imported stream": chunks({"choices": [{"index": 0, "text": "a", "finish_reason": None}]},
                              {"choices": [{"index": 0, "text": "", "finish_reason": "length"}], **METRICS}),
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


@each_row("name", BODIES)
def test_every_maker_is_read(name: str) -> None:
    response = decode_response(API, BODIES[name])
    assert (response.api, response.text, response.stop_reason.normalized) == (API, "a", Stop.MAX_TOKENS)
    assert response.usage is not None
    assert response.usage[:2] == (5, 7)
    assert response.streaming is name.endswith("stream")
    assert [finding for finding in response.findings if finding.severity != "info"] == []


@each_row(("word", "stop"), [
    ("stop", Stop.END_TURN), ("length", Stop.MAX_TOKENS), ("tool_calls", Stop.TOOL_CALL), ("FINISH", Stop.END_TURN),
    ("FINISHED", Stop.END_TURN), ("LENGTH", Stop.MAX_TOKENS), ("STOP_CRITERIA_MET", Stop.END_TURN),
    ("CONTENT_FILTERED", Stop.SAFETY_BLOCKED), ("RAG_QUERY_WHEN_RAG_DISABLED", Stop.ERROR), ("COMPLETE", Stop.END_TURN),
    ("MAX_TOKENS", Stop.MAX_TOKENS), ("ERROR", Stop.ERROR), ("ERROR_TOXIC", Stop.SAFETY_BLOCKED),
    ("STOP_SEQUENCE", Stop.END_TURN), ("ERROR_LIMIT", Stop.CONTEXT_WINDOW_EXCEEDED), ("USER_CANCEL", Stop.CANCELLED),
    ("endoftext", Stop.END_TURN),
    ("end_turn", Stop.END_TURN), ("guardrail_intervened", Stop.SAFETY_BLOCKED), ("odd", Stop.UNKNOWN),
])
def test_what_the_words_mean(word: str, stop: Stop) -> None:
    assert decode_response(API, whole({"generation": "a", "stop_reason": word})).stop_reason.normalized is stop


@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse"])
def test_the_words_of_claude_and_nova_mean_what_they_mean_in_their_own_formats(api: str) -> None:
    for word, row in wire(api).stop_reasons.items():
        stop = decode_response(API, whole({"generation": "a", "stop_reason": word})).stop_reason
        assert stop.normalized is row.stop, word


@each_row("body", [
    {"generations": [{"text": "a", "finish_reason": "COMPLETE"}], "id": "i"},
    {"text": "a", "finish_reason": "COMPLETE"},
    {"completion": "a", "stop_reason": "stop_sequence"}, {"outputs": [{"text": "a", "stop_reason": "stop"}]},
    {"choices": [{"text": "a", "stop_reason": "stop"}]},
    {"prompt": {"text": "p"}, "completions": [{"data": {"text": "a"}, "finishReason": {"reason": "endoftext"}}]},
])
def test_makers_that_count_nothing(body: dict[str, Any]) -> None:
    response = decode_response(API, whole(body))
    assert (response.text, response.usage, response.stop_reason.normalized) == ("a", None, Stop.END_TURN)
    assert response.id == body.get("id")
    at = response.stop_reason.evidence[0].at
    assert at is not None
    assert json.dumps(body).encode()[at.start : at.end] == json.dumps(response.raw_stop_reason).encode()


def test_an_answer_of_jurassic_that_the_cap_has_cut() -> None:
    body = {"id": 1234, "prompt": {"text": "p"}, "completions": [
        {"data": {"text": "a"}, "finishReason": {"reason": "length", "length": 2}}]}
    response = decode_response(API, whole(body))
    assert (response.text, response.stop_reason.normalized) == ("a", Stop.MAX_TOKENS)
    assert wire(API).read_request({"prompt": "p", "maxTokens": 2}).max_tokens == 2


@each_row("completions", [[], [None], [{"data": None}], [{"data": {"text": 1}}], {"data": {}}])
def test_a_damaged_answer_of_jurassic_is_no_whole_answer(completions: Any) -> None:
    response = decode_response(API, whole({"id": 1234, "completions": completions}))
    assert (response.text, response.raw_stop_reason) == (None, None)


def test_an_answer_of_jurassic_without_a_reason_is_not_whole() -> None:
    response = decode_response(API, whole({"completions": [{"data": {"text": "a"}, "finishReason": None}]}))
    assert (response.text, response.stop_reason.normalized) == ("a", Stop.INTERRUPTED)


def test_a_stream_of_deepseek_is_one_text() -> None:
    pieces = [{"choices": [{"text": text, "stop_reason": reason}]} for text, reason in [("a", None), ("b", "length")]]
    response = decode_response(API, chunks(*pieces))
    assert (response.text, response.stop_reason.normalized) == ("ab", Stop.MAX_TOKENS)


COMMAND_CALL = {"name": "erase", "parameters": {"n": 1}}


@pytest.mark.parametrize(("word", "stop"), [("COMPLETE", Stop.END_TURN), ("MAX_TOKENS", Stop.MAX_TOKENS)])
def test_the_calls_of_a_command_r_are_read(word: str, stop: Stop) -> None:
    body = whole({"text": "", "generation_id": "g", "finish_reason": word, "tool_calls": [COMMAND_CALL]})
    stream = chunks({"event_type": "tool-calls-generation", "is_finished": False, "tool_calls": [COMMAND_CALL]},
                    {"event_type": "stream-end", "is_finished": True, "finish_reason": word, "response": {"text": ""}})
    for data in (body, stream):
        response = decode_response(API, data)
        (call,) = response.tool_calls
        assert (call.name, call.arguments, response.stop_reason.normalized) == ("erase", '{"n": 1}', stop)
        verdict, = admit_all((call,), judge(response))
        assert verdict.admission == ("ready" if stop is Stop.END_TURN else "held")
        assert judge(response).ending is None
    assert call.at is not None
    place = decode_response(API, body).tool_calls[0].at
    assert place is not None
    assert json.loads(body[place.start : place.end]) == COMMAND_CALL


def test_the_events_of_a_command_r_make_one_text() -> None:
    said = [{"event_type": "text-generation", "is_finished": False, "text": text} for text in ("a", "b")]
    end = {"event_type": "stream-end", "is_finished": True, "finish_reason": "COMPLETE", "response": {"text": "ab"}}
    response = decode_response(API, chunks(*said, end))
    assert (response.text, response.raw_stop_reason, response.findings) == ("ab", "COMPLETE", ())
    assert decode_response(API, chunks(*said)).stop_reason.normalized is Stop.INTERRUPTED


@each_row(("more", "stop"), [
    ([("b", None)], Stop.INTERRUPTED), ([("b", None), ("", None)], Stop.INTERRUPTED),
    ([("b", None), ("", "stop")], Stop.END_TURN), ([(" ", None)], Stop.END_TURN), ([], Stop.END_TURN),
])
def test_a_text_that_goes_on_after_its_stop_word_was_cut(more: list[tuple[str, str | None]], stop: Stop) -> None:
    """It counted as finished. Bedrock's counts, or another stop word, are its end."""
    said = [("a", None), ("", "stop"), *more]
    pieces = [{"generation": text, "stop_reason": word} for text, word in said]
    cut = decode_response(API, chunks(*pieces))
    assert (cut.stop_reason.normalized, cut.raw_stop_reason) == (stop, "stop")
    assert ("bedrock_invoke.goes_on" in {each.rule for each in cut.findings}) is (stop is Stop.INTERRUPTED)
    ended = {**pieces[-1], "amazon-bedrock-invocationMetrics": {"outputTokenCount": 2}}
    assert decode_response(API, chunks(*pieces[:-1], ended)).stop_reason.normalized is Stop.END_TURN


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


def test_the_place_of_the_word_of_nova_is_its_member_of_the_chunk() -> None:
    body = chunks({"messageStart": {"role": "assistant"}}, {"messageStop": {"stopReason": "max_tokens"}})
    (seen,) = decode_response(API, body).stop_reason.evidence
    assert seen.at is not None
    assert seen.at.pointer == "/messageStop/stopReason"
    assert body[seen.at.start : seen.at.end] == chunks({"messageStop": {"stopReason": "max_tokens"}})


def test_cached_tokens_of_nova() -> None:
    usage = {"inputTokens": 5, "outputTokens": 7, "cacheReadInputTokenCount": 3, "cacheWriteInputTokenCount": 2}
    response = decode_response(API, chunks({"messageStop": {"stopReason": "end_turn"}}, {"metadata": {"usage": usage}}))
    assert response.usage == Usage(5, 7, None, 3, 2)


URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/{}/invoke-with-response-stream"


@each_row(("model", "body", "cap"), [
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
    with pytest.raises(EncodeError, match="for Claude, Nova, Llama and Mistral only"):
        encode_request(API, Request(API, asked.messages, "cohere.command-r-v1:0"))


NOVA, LLAMA, LARGE, SMALL = (
    "us.amazon.nova-pro-v1:0", "meta.llama3-1-70b-instruct-v1:0", "mistral.mistral-large-2407-v1:0",
    "mistral.mistral-7b-instruct-v0:2",
)
TALK = tuple(Message(role, (TextPart(text),)) for role, text in (
    (Role.USER, "Why?"), (Role.ASSISTANT, "Since"), (Role.USER, "Go on."), (Role.USER, "Please.")))


def test_a_history_is_a_prompt_in_the_template_of_the_model() -> None:
    llama = encode_request(API, Request(API, (Message(Role.SYSTEM, (TextPart("Be brief."),)), *TALK), LLAMA,
                                        max_tokens=9))
    head = "<|start_header_id|>{}<|end_header_id|>\n\n"
    assert llama == {"max_gen_len": 9, "prompt": "<|begin_of_text|>" + "".join(
        head.format(role) + f"{text}<|eot_id|>" for role, text in (
            ("system", "Be brief."), ("user", "Why?"), ("assistant", "Since"), ("user", "Go on."),
            ("user", "Please."))) + head.format("assistant")}
    small = encode_request(API, Request(API, (Message(Role.SYSTEM, (TextPart("Be brief."),)), *TALK), SMALL))
    assert small["prompt"] == (
        "<s>[INST] Be brief.\n\nWhy? [/INST] Since</s>[INST] Go on. [/INST][INST] Please. [/INST]")


@each_row("model", [NOVA, LLAMA, LARGE, SMALL])
def test_a_request_is_read_as_it_was_written(model: str) -> None:
    talk = TALK[:3] if model == NOVA else TALK  # Converse joins what one role says
    request = Request(API, talk, model, max_tokens=9, stream=True)
    read = wire(API).read_request(encode_request(API, request), "https://h" + wire(API).path(request))
    assert [(message.role, message.text) for message in read.messages] == [(each.role, each.text) for each in talk]
    assert (read.model, read.max_tokens, read.stream) == (model, 9, True)


@pytest.mark.parametrize("model", [LLAMA, SMALL])
def test_what_a_prompt_cannot_hold_is_refused(model: str) -> None:
    with pytest.raises(EncodeError, match="declare no tools"):
        encode_request(API, Request(API, TALK, model, (Tool("f", {"type": "object"}),)))
    called = Message(Role.ASSISTANT, (ToolCall("c", "f", "{}"),))
    with pytest.raises(EncodeError, match="text alone"):
        encode_request(API, Request(API, (*TALK, called), model))
    prose = wire(API).read_request({"prompt": "[INST] is a mark"}, URL.format(model))
    assert [message.text for message in prose.messages] == ["[INST] is a mark"]


TEXT = ChatResponse(API, (TextPart("one two three"),), StopReason(Stop.MAX_TOKENS, "length"), Usage(5, 7))


@each_row("stream", [False, True])
@each_row(("model", "raw", "counted"), [
    (NOVA, "max_tokens", True), (LLAMA, "length", True), (LARGE, "length", False), (SMALL, "length", False),
])
def test_an_answer_is_written_in_the_body_of_its_maker(model: str, raw: str, counted: bool, stream: bool) -> None:
    told = replace(TEXT, model=model, stop_reason=StopReason(Stop.MAX_TOKENS, "max_tokens"), streaming=stream)
    frames = list(encode_response(API, told, stream=stream, chunk=4))
    read = decode_response(API, frames)
    assert (read.text, read.stop_reason.raw, read.stop_reason.normalized) == ("one two three", raw, Stop.MAX_TOKENS)
    assert read.usage == (Usage(5, 7) if stream or counted else None)
    assert read.findings == ()
    assert len(frames) > 3 if stream else len(frames) == 1
    silent = replace(told, stop_reason=StopReason(Stop.INTERRUPTED, None))
    assert not decode_response(API, encode_response(API, silent, stream=stream)).saw_stop_reason


@each_row("model", [LLAMA, LARGE, SMALL])
@each_row(("word", "raw"), [
    ("end_turn", "stop"), ("stop_sequence", "stop"), ("model_context_window_exceeded", "length"),
])
def test_the_words_of_claude_are_written_as_the_makers_say_them(model: str, word: str, raw: str) -> None:
    told = replace(TEXT, model=model, stop_reason=StopReason(Stop.END_TURN, word))
    assert decode_response(API, encode_response(API, told)).stop_reason.raw == raw


@each_row("stream", [False, True])
@each_row(("model", "raw"), [(NOVA, "tool_use"), (LARGE, "tool_calls")])
def test_calls_are_written_where_the_body_has_them(model: str, raw: str, stream: bool) -> None:
    parts = (TextPart("a"), ToolCall("c", "f", '{"x":1}', closed=True), ToolCall("d", "g", "{}", closed=True))
    told = ChatResponse(API, parts, StopReason(Stop.TOOL_CALL, "tool_use"), model=model, streaming=stream)
    read = decode_response(API, encode_response(API, told, stream=stream))
    assert [(call.id, call.name, call.arguments, call.closed) for call in read.tool_calls] == [
        ("c", "f", '{"x":1}', True), ("d", "g", "{}", True)]
    assert (read.text, read.stop_reason.raw) == ("a", raw)


@pytest.mark.parametrize(("model", "part", "what"), [
    (LLAMA, ToolCall("c", "f", "{}"), "call"), (SMALL, ReasoningPart("r"), "reasoning"),
    (LARGE, ReasoningPart("r"), "reasoning"),
])
def test_what_a_body_cannot_hold_is_not_written(model: str, part: Any, what: str) -> None:
    with pytest.raises(EncodeError) as refused:
        list(encode_response(API, replace(TEXT, parts=(part,), model=model)))
    assert refused.value.what == what


def test_the_bodies_are_those_of_recorded_traffic() -> None:
    def event_values(model: str, stream: bool) -> list[Any]:
        made = encode_response(API, replace(TEXT, model=model, streaming=stream), stream=stream, chunk=40)
        if not stream:
            return [json.loads(b"".join(made))]
        payloads = [json.loads(EventStream().feed(frame)[0][0]) for frame in made]
        return [json.loads(base64.b64decode(payload["bytes"])) for payload in payloads]

    metrics = {"amazon-bedrock-invocationMetrics": {
        "inputTokenCount": 5, "outputTokenCount": 7, "invocationLatency": 0, "firstByteLatency": 0}}
    assert event_values(LLAMA, False) == [{"generation": "one two three", "prompt_token_count": 5,
                                           "generation_token_count": 7,
                                           "stop_reason": "length"}]
    assert event_values(SMALL, False) == [{"outputs": [{"text": "one two three", "stop_reason": "length"}]}]
    assert event_values(SMALL, True) == [{"outputs": [{"text": "one two three", "stop_reason": None}]},
                                         {"outputs": [{"text": "", "stop_reason": "length"}], **metrics}]
    cached = replace(TEXT, model=NOVA, usage=Usage(5, 7, None, 3), stop_reason=StopReason(Stop.END_TURN, "end_turn"))
    (nova,) = (json.loads(body) for body in encode_response(API, cached))
    assert nova.keys() == {"output", "stopReason", "usage"}
    assert nova["usage"]["cacheReadInputTokenCount"] == 3
    assert decode_response(API, whole(nova)).usage == cached.usage
    *_, last = event_values(NOVA, True)
    assert last == {"metadata": {"usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12}, "metrics": {}},
                    **metrics}


@pytest.mark.parametrize("stream", [False, True])
def test_the_word_of_mistral_is_no_string_that_ended_the_answer(stream: bool) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": ""}, "stop_reason": "stop"}
    body = chunks({"choices": [choice]}) if stream else whole({"choices": [choice]})
    found = judge(decode_response(API, body))
    assert found.ending is not None, "an empty answer was taken for one that a stop string ended"
    assert found.ending.value == "empty_answer"


def test_its_address_and_its_chunks() -> None:
    assert by_path(URL.format("x.y%3A0")) == API
    assert by_content(BODIES["claude stream"]) == API
    assert by_content(BODIES["claude"]) == "anthropic_messages"


def test_the_last_event_of_command_has_the_word_and_no_text() -> None:
    texts = [{"is_finished": False, "text": text} for text in ("I ", "go")]
    last = {"finish_reason": "MAX_TOKENS", "is_finished": True, **METRICS}
    cut = decode_response(API, chunks(*texts, last))
    assert (cut.raw_stop_reason, cut.stop_reason.normalized, cut.text) == ("MAX_TOKENS", Stop.MAX_TOKENS, "I go")
    assert (cut.saw_done, cut.findings, cut.other_choices) == (True, (), 0)
    open_end = decode_response(API, chunks(*texts))
    assert open_end.stop_reason.normalized is Stop.INTERRUPTED


def test_of_several_answers_of_command_the_first_is_read() -> None:
    """Each text says whose it is (`num_generations` 2); one word ends them all."""
    said = [{"index": index, "is_finished": False, "text": text} for index, text in ((0, "I "), (1, "We "), (0, "go"))]
    both = decode_response(API, chunks(*said, {"finish_reason": "COMPLETE", "is_finished": True, **METRICS}))
    assert (both.text, both.raw_stop_reason, both.other_choices) == ("I go", "COMPLETE", 1)


def test_the_index_of_titan_is_that_of_a_chunk() -> None:
    said = [{"outputText": text, "index": index, "completionReason": word, "totalOutputTextTokenCount": None}
            for index, (text, word) in enumerate((("I ", None), ("go", "FINISH")))]
    whole = decode_response(API, chunks(*said))
    assert (whole.text, whole.raw_stop_reason, whole.other_choices) == ("I go", "FINISH", 0)


GUARDED = {"amazon-bedrock-guardrailAction": "INTERVENED"}


@each_row("name", ["claude", "nova", "llama", "titan", "mistral chat"])
def test_a_guardrail_that_intervened_outranks_the_makers_word(name: str) -> None:
    """It replaces the answer, and the word stays that of a whole one."""
    body = json.loads(BODIES[name].replace(b'"max_tokens"', b'"end_turn"').replace(b'"length"', b'"stop"')
                      .replace(b'"LENGTH"', b'"FINISH"'))
    clean = decode_response(API, whole({**body, "amazon-bedrock-guardrailAction": "NONE"}))
    assert clean.stop_reason.normalized is Stop.END_TURN
    data = whole({**body, **GUARDED})
    blocked = decode_response(API, data)
    assert (blocked.stop_reason.normalized, blocked.stop_reason.detail) == (Stop.SAFETY_BLOCKED, "guardrail")
    assert (blocked.raw_stop_reason, blocked.text) == (clean.raw_stop_reason, "a")
    at = blocked.stop_reason.evidence[-1].at
    assert at is not None
    assert data[at.start : at.end] == b'"INTERVENED"'
    cut = decode_response(API, whole({**json.loads(BODIES[name]), **GUARDED}))
    assert cut.stop_reason.normalized is Stop.SAFETY_BLOCKED, "a filtered answer must not be continued"


def test_a_guardrail_that_intervened_in_a_stream_holds_its_calls() -> None:
    events = [
        {"type": "message_start", "message": {"id": "i", "model": "m", "content": [], "usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f",
                                                                      "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a": 1}'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop", **METRICS},
    ]
    assert [verdict.admission for verdict in read(API, chunks(*events)).calls] == ["ready"]
    reading = read(API, chunks(*events[:-1], {**events[-1], **GUARDED}))
    assert (reading.stop_reason, [verdict.admission for verdict in reading.calls]) == ("safety_blocked", ["held"])
    llama = decode_response(API, chunks({"generation": "a", "stop_reason": None},
                                        {"generation": "", "stop_reason": "stop", **GUARDED}))
    assert llama.stop_reason.normalized is Stop.SAFETY_BLOCKED


def test_the_trace_of_a_guardrail_hides_no_event_of_nova() -> None:
    """It stands beside the last event, whose only other key is its name."""
    usage = {"inputTokens": 30, "outputTokens": 5, "cacheReadInputTokenCount": 20}
    response = decode_response(API, chunks(
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "a"}}, **GUARDED},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": usage, "metrics": {}, "trace": {}}, **METRICS, **GUARDED,
         "amazon-bedrock-trace": {"guardrail": {"modelOutput": ["a b"]}}},
    ))
    assert (response.text, response.stop_reason.normalized) == ("a", Stop.SAFETY_BLOCKED)
    assert response.usage is not None
    assert (response.usage.output_tokens, response.usage.cached_tokens) == (5, 20)
    assert not response.findings
