"""`read`: one call says why a response really stopped and what may run of it, however its bytes were cut."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loop_core
from loop_core.errors import CallerError, DecodeError, EncodeError
from loop_core.judge.classify import judge
from loop_core.judge.gate import Admission, admit_all
from loop_core.values import (
    ArgsForm,
    ChatResponse,
    Message,
    Request,
    Role,
    Stop,
    StopReason,
    TextPart,
    Tool,
    ToolCall,
    TransportEnd,
    Usage,
)
from loop_core.wire import FORMATS, wire
from loop_core.wire.servers import GENERIC
from tests.scenes.provider import CALLING
from tests.scenes.rows import share

CALLED = {
    "openai_chat": "tool_calls", "openai_responses": "completed", "anthropic_messages": "tool_use",
    "gemini_generate": "STOP", "bedrock_converse": "tool_use", "ollama_chat": "stop",
    "gemini_interactions": "requires_action", "cohere_chat": "TOOL_CALL", "bedrock_invoke": "tool_use",
}
"""Format -> its word over an answer with calls, as its documentation has it."""
WEATHER = Tool("weather", {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
OBJECTS = ("anthropic_messages", "gemini_generate", "bedrock_converse", "ollama_chat")


def request_of(api: str) -> Request:
    return Request(api, (Message(Role.USER, (TextPart("the weather?"),)),), "m", (WEATHER,), max_tokens=64, stream=True)


def body(api: str, text: str = "Let me look.") -> bytes:
    form = ArgsForm.OBJECT if api in OBJECTS else ArgsForm.STRING
    call = ToolCall("c1", "weather", '{"city": "Oslo"}', True, form=form)
    word = StopReason(Stop.TOOL_CALL, CALLED[api])
    response = ChatResponse(api, (TextPart(text), call), word, Usage(9, 12))
    return b"".join(loop_core.encode_response(api, response, stream=True))


def chat(finish: str, arguments: str, **more: object) -> bytes:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": finish, **more}
    return json.dumps({"id": "r", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()


def test_a_call_that_is_cut_under_tool_calls_reads_as_a_cut() -> None:
    data = chat("tool_calls", '{"city": "Os')
    reading = loop_core.read("openai_chat", data)
    assert loop_core.decode_response("openai_chat", data).stop_reason.normalized == "tool_call", "the word by itself"
    assert (reading.stop_reason, reading.mapped, reading.raw) == ("max_tokens", "tool_call", "tool_calls")
    assert [(v.call.name, v.admission) for v in reading.calls] == [("weather", Admission.HELD)]
    assert reading.calls[0].arguments is None
    assert any(seen.rule == "judge.cut_arguments" for seen in reading.evidence)


FORBIDDING: dict[str, dict[str, object]] = {
    "openai_chat": {"tool_choice": "none"},
    "openai_responses": {"tool_choice": "none"},
    "anthropic_messages": {"tool_choice": {"type": "none"}},
    "gemini_generate": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
    "gemini_interactions": {"generation_config": {"tool_choice": "none"}},
    "cohere_chat": {"tool_choice": "NONE"},
    "bedrock_invoke": {"anthropic_version": "bedrock-2023-05-31", "messages": [], "tool_choice": {"type": "none"}},
}
"""Format -> how its requests forbid tool calls, as its documentation has it; Converse and Ollama cannot."""


@pytest.mark.parametrize("api", FORBIDDING)
def test_a_call_that_the_request_forbade_is_not_released(api: str) -> None:
    answer = body(api)
    assert loop_core.read(api, answer, request={}).calls[0].admission is Admission.READY
    verdict = loop_core.read(api, answer, request=FORBIDDING[api]).calls[0]
    assert (verdict.admission, verdict.rule, verdict.arguments) == (Admission.REJECTED, "gate.forbidden", None)


def test_a_router_s_word_is_read_beside_its_own() -> None:
    """OpenRouter passes on what the provider behind it said; its own word is another."""
    data = chat("tool_calls", '{"city": "Oslo"}', native_finish_reason="max_tokens")
    reading = loop_core.read("openai_chat", data, url="https://openrouter.ai/api/v1/chat/completions")
    assert (reading.stop_reason, reading.mapped) == ("max_tokens", "tool_call")
    assert reading.calls[0].admission is Admission.HELD
    assert loop_core.read("openai_chat", data, profile="openrouter").stop_reason == "max_tokens"


def test_what_was_asked_decides_what_may_run() -> None:
    data = chat("tool_calls", '{"city": 7}')
    assert loop_core.read("openai_chat", data).calls[0].admission is Admission.READY, "no schema is known"
    ours = loop_core.read("openai_chat", data, request=request_of("openai_chat"))
    assert ours.calls[0].admission is Admission.REJECTED
    recorded = loop_core.encode_request("openai_chat", request_of("openai_chat"))
    assert loop_core.read("openai_chat", data, request=recorded).calls == ours.calls
    assert loop_core.read("openai_chat", chat("tool_calls", '{"city": "Oslo"}'), request=recorded).calls[0].arguments \
        == {"city": "Oslo"}


def test_a_request_and_headers_may_come_as_a_client_has_them() -> None:
    cut = chat("tool_calls", '{"city": "Os')
    asks = {"model": "m", "messages": [], "max_tokens": 7,
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": {
                "type": "object", "required": ["city"]}}}]}
    whole = chat("tool_calls", "{}")
    for request in (asks, json.dumps(asks).encode(), loop_core.decode_request("openai_chat", asks)):
        (verdict,) = loop_core.read("openai_chat", whole, request=request).calls
        assert verdict.admission is Admission.REJECTED  # its schema is known
    for bytes_like in (cut, bytearray(cut), memoryview(cut), [bytearray(cut)]):
        assert loop_core.read("openai_chat", bytes_like).stop_reason is Stop.MAX_TOKENS
    quota = loop_core.read("openai_chat", cut, headers={"x-ratelimit-remaining-tokens": "5"}).response.quota_metadata
    assert quota is not None
    assert quota.remaining_tokens == 5


@pytest.mark.parametrize(("arguments", "why"), [
    ({"chunks": "{}"}, "the body: expected bytes"), ({"chunks": ["{}"]}, "the body: expected bytes"),
    ({"chunks": None}, "the body: expected bytes"), ({"chunks": 3}, "the body: expected bytes"),
    ({"chunks": [1, 2]}, "the body: expected bytes"), ({"chunks": ""}, "the body: expected bytes"),
    ({"chunks": b"{}", "headers": 3}, "headers: expected pairs"),
    ({"chunks": b"{}", "headers": [("a",)]}, "headers: expected pairs"),
    ({"chunks": b"{}", "http_status": "500"}, "http_status: expected int, not str"),
    ({"chunks": b"{}", "http_status": []}, "http_status: expected int, not list"),
    ({"chunks": b"{}", "profile": []}, "profile: expected a text, not list"),
    ({"chunks": b"{}", "end": "reset"}, "end: expected TransportEnd, not str"),
    ({"chunks": b"{}", "url": None}, "url: expected a text, not NoneType"),
    ({"chunks": b"{}", "request": "{}"}, "request: expected a Request, or its body as JSON or bytes, not str"),
])
def test_what_is_no_body_is_refused_in_one_line(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(CallerError, match=why):
        loop_core.read("openai_chat", **arguments)
    if not {"request", "url", "profile"} & set(arguments):
        with pytest.raises(CallerError, match=why):
            loop_core.decode_response("openai_chat", **arguments)


def test_decoding_takes_what_reading_takes() -> None:
    whole = body("openai_chat")
    for chunks in (whole, bytearray(whole), memoryview(whole), [bytearray(whole)]):
        assert loop_core.decode_response("openai_chat", chunks).text == "Let me look."
    headers = {"x-ratelimit-remaining-tokens": "5"}
    for response in (loop_core.decode_response("openai_chat", whole, headers=headers),
                     loop_core.decoder("openai_chat", headers=headers).close()):
        assert response.quota_metadata is not None
        assert response.quota_metadata.remaining_tokens == 5


@pytest.mark.parametrize(("api", "target"), permutations(FORMATS, 2))
def test_a_response_that_is_written_in_another_format_has_a_word_of_that_format(api: str, target: str) -> None:
    """A translator that copies `stop` into `stop_reason` writes an answer whose end no client knows. A meaning that the
    other format cannot say must not become a better one."""
    text, call = TextPart("Hi."), ToolCall("c1", "weather", '{"city": "Oslo"}', True)
    for word, row in share(wire(api).stop_reasons.items(), [*FORMATS].index(target)):
        for parts in (text,), (text, call):
            response = ChatResponse(api, parts, StopReason(row.stop, word, row.detail), saw_done=True)
            for stream in False, True:
                with suppress(EncodeError):
                    sent = b"".join(loop_core.encode_response(target, response, stream=stream))
                    reading = loop_core.read(target, sent)
                    wordless = not any(each.stop is row.stop for each in wire(target).stop_reasons.values())
                    same = row.stop in (reading.mapped, reading.stop_reason)
                    assert same or (reading.mapped in (Stop.UNKNOWN, Stop.INTERRUPTED) and wordless), (word, sent)


def test_what_stands_beside_the_reason() -> None:
    reading = loop_core.read("anthropic_messages", body("anthropic_messages", "Let me look."))
    assert reading.text == "Let me look."
    assert reading.usage is not None
    assert (reading.usage.input_tokens, reading.usage.output_tokens) == (9, 12)
    assert reading.response.streaming
    assert reading.findings == (*reading.response.findings, *reading.judgement.findings)
    assert loop_core.read("openai_chat", b'{"choices": []}').text == ""


def test_an_error_status_and_a_broken_connection_are_reasons() -> None:
    refused = loop_core.read("openai_chat", b'{"error": {"message": "slow down"}}', http_status=429)
    assert refused.stop_reason == "error"
    half = body("openai_chat")
    broken = loop_core.read("openai_chat", half[: len(half) // 3], end=TransportEnd.RESET)
    assert broken.stop_reason == "interrupted"
    assert broken.response.transport_end is TransportEnd.RESET


def test_a_body_whose_checksum_is_wrong_releases_no_call() -> None:
    call = ToolCall("c", "ls", "{}", closed=True)
    said = ChatResponse("openai_chat", (call,), StopReason(Stop.TOOL_CALL, "tool_calls"))
    body = b"".join(wire("openai_chat").encode(said, stream=True))
    ends = TransportEnd.EOF, TransportEnd.RESET, TransportEnd.DAMAGED
    assert [loop_core.read("openai_chat", body, end=end).calls[0].admission for end in ends] == [
        Admission.READY, Admission.READY, Admission.HELD]


def test_what_cannot_be_read_is_refused_by_name() -> None:
    with pytest.raises(CallerError, match="unknown API 'chat'"):
        loop_core.read("chat", b"{}")
    with pytest.raises(CallerError, match="api: expected a text, not list"):
        loop_core.read(["openai_chat"], b"{}")  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="unknown API"):
        loop_core.decode_request(["openai_chat"], {})  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="unknown profile 'nobody'"):
        loop_core.read("openai_chat", b"{}", profile="nobody")
    with pytest.raises(DecodeError, match="begins with neither JSON nor an event stream"):
        loop_core.read("openai_chat", b"<html>")


@pytest.mark.parametrize("api", CALLING)
@settings(max_examples=50)
@given(st.data())
def test_any_cut_and_any_pieces_read_as_decoding_judging_and_the_gate_do(api: str, data: st.DataObject) -> None:
    whole = body(api)
    sent = whole[: data.draw(st.integers(1, len(whole)))]
    places = sorted(data.draw(st.sets(st.integers(0, len(sent)), max_size=6)) | {0, len(sent)})
    pieces = [sent[start:end] for start, end in pairwise(places)]
    request = request_of(api)
    try:
        response = loop_core.decode_response(api, sent)
    except DecodeError as why:
        with pytest.raises(DecodeError, match=str(why.message)[:20]):
            loop_core.read(api, pieces, request=request, profile="generic")
        return
    reading = loop_core.read(api, pieces, request=request, profile="generic")
    judged = judge(response, request, GENERIC)
    assert reading.stop_reason is judged.stop.normalized
    assert (reading.mapped, reading.raw) == (response.stop_reason.normalized, response.stop_reason.raw)
    assert reading.evidence == judged.stop.evidence
    assert reading.calls == admit_all(response.tool_calls, judged, request.tools)
    assert reading.text == (response.text or "")
    if len(sent) < len(whole) // 2:
        assert all(verdict.admission is not Admission.READY for verdict in reading.calls)


# -- the four functions below it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", CALLING)
def test_a_request_comes_back_from_its_body_in_every_format(api: str) -> None:
    request = request_of(api)
    written = loop_core.encode_request(api, request)
    url = f"https://h/v1{loop_core.wire.wire(api).path(request)}"
    for given_ in (written, json.dumps(written).encode(), b"\xef\xbb\xbf" + json.dumps(written).encode()):
        read_ = loop_core.decode_request(api, given_, url=url)
        assert (read_.messages, read_.max_tokens, [tool.name for tool in read_.tools]) \
            == (request.messages, 64, ["weather"])
        assert loop_core.encode_request(api, read_) == written


def test_a_request_goes_over_into_another_format_unless_fields_of_its_own_would_be_lost() -> None:
    request = request_of("openai_chat")
    assert loop_core.encode_request("anthropic_messages", request) \
        == loop_core.encode_request("anthropic_messages", request_of("anthropic_messages"))
    own = loop_core.decode_request("openai_chat", {"model": "m", "messages": [], "seed": 7})
    with pytest.raises(EncodeError, match="fields of openai_chat") as refused:
        loop_core.encode_request("anthropic_messages", own)
    assert refused.value.what == "extra"
    declared = loop_core.decode_request("openai_chat", loop_core.encode_request("openai_chat", request))
    with pytest.raises(EncodeError) as refused:
        loop_core.encode_request("ollama_chat", declared)
    assert refused.value.what == "tool.declared"
    image = {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}}
    for content in ([image], [{"type": "tool_result", "tool_use_id": "x", "content": [image]}]):
        held = loop_core.decode_request("anthropic_messages", {"messages": [{"role": "user", "content": content}]})
        for api in ("openai_chat", "bedrock_converse"):
            with pytest.raises(EncodeError, match="blocks of anthropic_messages") as refused:
                loop_core.encode_request(api, held)
            assert refused.value.what == "opaque"


@pytest.mark.parametrize("data", [b"[]", b"7", b"{", b"", b"\xff"])
def test_a_request_that_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"openai_chat: byte 0: the body is not (a )?JSON"):
        loop_core.decode_request("openai_chat", data)


@pytest.mark.parametrize("name", ["text", "arguments", "raw", "raw_arguments"])
def test_a_call_whose_cut_arguments_a_translator_wrapped_is_held(name):
    """Claude Code Router and others put arguments that do not parse into an object of one text."""
    block = {"type": "tool_use", "id": "t1", "name": "write", "input": {name: '{"path": "a.txt", "content": "half'}}
    body = {"id": "m", "type": "message", "role": "assistant", "content": [block], "stop_reason": "tool_use"}
    for tools in ([{"name": "write", "input_schema": {"type": "object"}}], []):
        asks = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": tools}
        reading = loop_core.read("anthropic_messages", json.dumps(body).encode(), request=asks)
        assert [verdict.admission for verdict in reading.calls] == ["held"]
        assert reading.stop_reason == "max_tokens"


def test_a_call_whose_cut_arguments_a_translator_wrapped_is_held_in_a_stream_too():
    block = {"type": "tool_use", "id": "t1", "name": "write", "input": {}}
    wrapped = json.dumps({"raw_arguments": '{"path": "a.txt", "content": "half'})
    events = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": wrapped}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    reading = loop_core.read("anthropic_messages", [stream.encode()])
    assert [verdict.admission for verdict in reading.calls] == ["held"]
    assert reading.stop_reason == "max_tokens"


@pytest.mark.parametrize(("port", "spent", "admitted"), [
    (9997, 100, "held"), (5000, 100, "held"), (9997, 99, "ready"), (8000, 100, "ready"),
])
def test_a_call_of_a_server_that_says_tool_calls_over_every_call_is_held_at_the_cap(port, spent, admitted):
    call = {"id": "c", "type": "function", "function": {"name": "write", "arguments": '{"path": "a.txt"}'}}
    choice = {"index": 0, "message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
    body = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice],
            "usage": {"prompt_tokens": 9, "completion_tokens": spent}}
    asks = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    reading = loop_core.read("openai_chat", json.dumps(body).encode(), request=asks,
                             url=f"http://localhost:{port}/v1/chat/completions")
    assert [verdict.admission for verdict in reading.calls] == [admitted]


@pytest.mark.parametrize(("server", "spent", "reason"), [
    ("ik_llama.cpp", 7, Stop.MAX_TOKENS), ("ik_llama.cpp", 6, Stop.END_TURN), ("llama.cpp", 7, Stop.END_TURN),
])
def test_a_server_that_says_stop_for_a_cut_is_known_by_its_name(server: str, spent: int, reason: Stop) -> None:
    """Builds of ik_llama.cpp before PR#2362 say so for every end. Its name holds that of llama.cpp, which does not."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "It is done."}, "finish_reason": "stop"}
    whole = {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": spent}, "timings": {}}
    asks = {"model": "m", "max_tokens": 7, "messages": [{"role": "user", "content": "hi"}]}
    reading = loop_core.read("openai_chat", json.dumps(whole).encode(), request=asks, headers={"Server": server})
    assert reading.stop_reason is reason
