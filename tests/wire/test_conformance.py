"""One suite over every wire format: what `decode`, `encode`, `read_request`, `recognises` and `PATHS` promise.

Small streams written by hand hold it where the recorded traffic is absent; a format without one fails here.
"""

from __future__ import annotations

import base64
import gc
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.sessions.traffic import by_content
from loop_core.errors import DecodeError, EncodeError
from loop_core.values import ArgsForm, CallKind, ChatResponse, ReasoningPart, Request, Stop, TextPart, ToolCall, Usage
from loop_core.wire import FORMATS, decode, deltas, wire
from loop_core.wire.base import Decoder
from loop_core.wire.failures import StopRow
from tests.scenes.essence import essence
from tests.scenes.rows import each_row, share

FINISHED = (Stop.END_TURN, Stop.TOOL_CALL)
Recorded = Callable[[str], Sequence[Any]]
each_format = pytest.mark.parametrize("api", FORMATS)


# -- small streams, by hand ------------------------------------------------------------------------------------------


def event_sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def data_sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode() for event in events)


def frame(event: str, payload: dict[str, Any]) -> bytes:
    """One frame of an AWS event stream: lengths, their CRC, headers, payload, CRC of it all."""
    headers = b""
    for key, value in ((":event-type", event), (":content-type", "application/json"), (":message-type", "event")):
        headers += bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    body = json.dumps(payload).encode()
    head = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    whole = head + struct.pack(">I", zlib.crc32(head)) + headers + body
    return whole + struct.pack(">I", zlib.crc32(whole))


def chunks(*events: dict[str, Any]) -> bytes:
    """Events of a model's maker as InvokeModel wraps them."""
    return b"".join(frame("chunk", {"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abc"})
                    for event in events)


def chat(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def interactions(*events: dict[str, Any]) -> bytes:
    told = b"".join(f"event: {event['event_type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    return told + b"event: done\ndata: [DONE]\n\n"


def step(kind: str, index: int, **more: Any) -> dict[str, Any]:
    return {"event_type": f"step.{kind}", "index": index, **more}


INTERACTION = {"id": "v1_x", "object": "interaction", "model": "m", "status": "in_progress"}


def gemini(*parts: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [candidate if finish is None else {**candidate, "finishReason": finish}], "modelVersion": "m"}


def ollama(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", **message},
            "done": False, **more}


def completion(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"id": "c", "object": "text_completion", "created": 1, "model": "m",
            "choices": [{"text": text, "index": 0, "logprobs": None, "finish_reason": finish}]}


def generation(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "response": text, "done": False, **more}


ITEM = {"id": "fc_1", "type": "function_call", "call_id": "x", "name": "f", "arguments": "", "status": "in_progress"}
DONE = {**ITEM, "arguments": '{"n": 1200}', "status": "completed"}
SAID = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "caf\u00e9 \U0001f600", "annotations": []}]}
RESPONSE = {"id": "resp_1", "object": "response", "model": "m", "status": "in_progress", "output": []}

STREAMS: Mapping[str, bytes] = {
    "openai_chat": data_sse(
        chat({"role": "assistant", "content": ""}), chat({"content": "caf\u00e9 "}), chat({"content": "\U0001f600"}),
        chat({"tool_calls": [{"index": 0, "id": "x", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
        chat({"tool_calls": [{"index": 0, "function": {"arguments": '{"n": 12'}}]}),
        chat({"tool_calls": [{"index": 0, "function": {"arguments": "00}"}}]}),
        chat({}, "tool_calls"),
        {"id": "c", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}},
    ) + b"data: [DONE]\n\n",
    "openai_responses": event_sse(
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.output_item.added", "output_index": 0,
         "item": {**SAID, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0, "content_index": 0,
         "part": {"type": "output_text", "text": "", "annotations": []}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
         "delta": "caf\u00e9 \U0001f600"},
        {"type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "content_index": 0,
         "text": "caf\u00e9 \U0001f600"},
        {"type": "response.output_item.done", "output_index": 0, "item": SAID},
        {"type": "response.output_item.added", "output_index": 1, "item": ITEM},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1, "delta": '{"n": 12'},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1, "delta": "00}"},
        {"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 1,
         "arguments": '{"n": 1200}'},
        {"type": "response.output_item.done", "output_index": 1, "item": DONE},
        {"type": "response.completed", "response": {**RESPONSE, "status": "completed", "output": [SAID, DONE],
                                                    "usage": {"input_tokens": 5, "output_tokens": 7}}},
    ),
    "anthropic_messages": event_sse(
        {"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
            "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "caf\u00e9 \U0001f600"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1,
         "content_block": {"type": "tool_use", "id": "x", "name": "f", "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"n": 12'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "00}"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
         "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ),
    "gemini_generate": data_sse(
        gemini({"text": "caf\u00e9 "}), gemini({"text": "\U0001f600"}),
        gemini({"functionCall": {"name": "f", "args": {"n": 1200}, "id": "x"}}),
        {**gemini({"text": ""}, finish="STOP"), "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7}},
    ),
    "bedrock_converse": b"".join((
        frame("messageStart", {"role": "assistant"}),
        frame("contentBlockDelta", {"delta": {"text": "caf\u00e9 \U0001f600"}, "contentBlockIndex": 0}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        frame("contentBlockStart", {"start": {"toolUse": {"toolUseId": "x", "name": "f"}}, "contentBlockIndex": 1}),
        frame("contentBlockDelta", {"delta": {"toolUse": {"input": '{"n": 12'}}, "contentBlockIndex": 1}),
        frame("contentBlockDelta", {"delta": {"toolUse": {"input": "00}"}}, "contentBlockIndex": 1}),
        frame("contentBlockStop", {"contentBlockIndex": 1}),
        frame("messageStop", {"stopReason": "tool_use"}),
        frame("metadata", {"usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12}}),
    )),
    "gemini_interactions": interactions(
        {"event_type": "interaction.created", "interaction": INTERACTION},
        {"event_type": "interaction.status_update", "interaction_id": "v1_x", "status": "in_progress"},
        step("start", 0, step={"type": "model_output"}),
        step("delta", 0, delta={"type": "text", "text": "caf\u00e9 "}),
        step("delta", 0, delta={"type": "text", "text": "\U0001f600"}),
        step("stop", 0),
        step("start", 1, step={"type": "function_call", "id": "x", "name": "f", "arguments": {}}),
        step("delta", 1, delta={"type": "arguments_delta", "arguments": '{"n": 12'}),
        step("delta", 1, delta={"type": "arguments_delta", "arguments": "00}"}),
        step("stop", 1),
        {"event_type": "interaction.completed", "interaction": {
            **INTERACTION, "status": "requires_action", "usage": {"total_input_tokens": 5, "total_output_tokens": 7}}},
    ),
    "ollama_chat": b"".join(json.dumps(line).encode() + b"\n" for line in (
        ollama({"content": "caf\u00e9 "}), ollama({"content": "\U0001f600"}),
        ollama({"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"n": 1200}}}]}),
        ollama({"content": ""}, done=True, done_reason="stop", prompt_eval_count=5, eval_count=7),
    )),
    "openai_completions": data_sse(
        completion("caf\u00e9 "), completion("\U0001f600"), completion("", "stop"),
        {"id": "c", "object": "text_completion", "choices": [],
         "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}},
    ) + b"data: [DONE]\n\n",
    "ollama_generate": b"".join(json.dumps(line).encode() + b"\n" for line in (
        generation("caf\u00e9 "), generation("\U0001f600"),
        generation("", tool_calls=[{"function": {"name": "f", "arguments": {"n": 1200}}}]),
        generation("", done=True, done_reason="stop", context=[1, 2], prompt_eval_count=5, eval_count=7),
    )),
}
COHERE_CALL = {"id": "x", "type": "function", "function": {"name": "f", "arguments": ""}}


def cohere(kind: str, index: int, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}


STREAMS = {**STREAMS, "cohere_chat": event_sse(
    {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant", "content": [], "tool_calls": []}}},
    cohere("content-start", 0, content={"type": "text", "text": ""}),
    cohere("content-delta", 0, content={"text": "caf\u00e9 "}),
    cohere("content-delta", 0, content={"text": "\U0001f600"}),
    {"type": "content-end", "index": 0}, cohere("tool-call-start", 0, tool_calls=COHERE_CALL),
    cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"n": 12'}}),
    cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": "00}"}}), {"type": "tool-call-end", "index": 0},
    {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL",
                                      "usage": {"tokens": {"input_tokens": 5, "output_tokens": 7}}}},
) + b"data: [DONE]\n\n"}
STREAMS = {**STREAMS, "anthropic_complete": event_sse(*(
    {"type": "completion", "id": "c", "completion": text, "stop_reason": reason, "model": "m", "stop": stop}
    for text, reason, stop in (("caf\u00e9 ", None, None), ("\U0001f600", "stop_sequence", "\n\nHuman:"))))}
STREAMS = {**STREAMS, "bedrock_invoke": chunks(*(
    json.loads(line.removeprefix("data: ")) for line in STREAMS["anthropic_messages"].decode().split("\n")
    if line.startswith("data: ")))}
"""The same answer in every format: a text, then the call f({"n": 1200}) and a clean end, 5 tokens in and 7 out. A
format that loses calls sends the text alone."""


def bodies(api: str, traffic_of: Recorded, *, most: int = 1 << 30) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """The stream written by hand, and recorded bodies up to a size: (id, body, options of the decoder)."""
    yield "by hand", STREAMS[api], {}
    for exchange in traffic_of(api):
        if exchange.body and len(exchange.body) <= most:
            asked = wire(api).read_request(exchange.request, exchange.url)
            options = {"http_status": exchange.status, "headers": exchange.headers, "n": asked.n,
                       "background": asked.background}
            yield exchange.id, exchange.body, options


def everything(response: ChatResponse) -> tuple[Any, ...]:
    """All that was read of a body, evidence and places included."""
    return (essence(response), response.stop_reason, response.findings, response.parts, response.size,
            response.saw_done, response.saw_stop_reason, response.streaming, response.other_choices,
            response.quota_metadata, response.http_status)


@cache
def whole_stream(api: str) -> tuple[Any, ...]:
    return everything(decode(api, STREAMS[api]))


def split(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


# -- what a format is ------------------------------------------------------------------------------------------------


@each_format
def test_a_format_offers_everything(api: str) -> None:
    offered = wire(api)
    assert issubclass(offered.decoder, Decoder)
    assert offered.decoder.api == api
    assert offered.decoder.stop_reasons is offered.stop_reasons
    assert offered.stop_reasons
    assert offered.paths
    assert all(why and what for what, why in offered.loses.items())
    assert api in STREAMS


@each_format
def test_the_rows_of_a_table_are_whole(api: str) -> None:
    for word, row in wire(api).stop_reasons.items():
        assert isinstance(row, StopRow)
        assert word
        assert row.source, f"{word} has no source"
        if row.stop is Stop.PAUSED:
            assert row.detail in ("echo", "token", "poll", "server"), word
        if row.stop is Stop.ERROR:
            assert (row.detail or "").partition(":")[0] in ("retryable", "fatal"), word


@each_format
def test_the_stream_written_by_hand_is_read(api: str) -> None:
    response = decode(api, STREAMS[api])
    assert response.text == "caf\u00e9 \U0001f600"
    assert response.api == api
    calls = [(call.name, json.loads(call.arguments or ""), call.closed) for call in response.tool_calls]
    assert calls == ([] if "call" in wire(api).loses else [("f", {"n": 1200}, True)])
    assert response.stop_reason.normalized in FINISHED
    assert response.stop_reason.evidence
    counts = response.usage and (response.usage.input_tokens, response.usage.output_tokens)
    assert counts == (None if "usage" in wire(api).loses else (5, 7))
    assert response.streaming
    assert response.saw_stop_reason
    assert [finding for finding in response.findings if finding.severity != "info"] == []


@each_format
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_a_decoder_that_is_done_is_freed_without_the_collector(api: str, share: float) -> None:
    whole = b"".join(wire(api).encode(decode(api, STREAMS[api]), stream=False))
    decode(api, whole)  # what is loaded or made once stays
    gc.freeze()  # what other tests have left is not searched
    gc.disable()
    try:
        for body in (STREAMS[api], whole):
            decode(api, body[: int(len(body) * share)])
        assert gc.collect() == 0
    finally:
        gc.enable()


CALL = ['{"n": 12', "00}"]
PIECES: Mapping[str, tuple[list[str], list[str]]] = {
    "openai_chat": (["caf\u00e9 ", "\U0001f600"], CALL),
    "openai_responses": (["caf\u00e9 \U0001f600"], CALL),
    "anthropic_messages": (["caf\u00e9 \U0001f600"], CALL),
    "gemini_generate": (["caf\u00e9 ", "\U0001f600"], []),
    "bedrock_converse": (["caf\u00e9 \U0001f600"], CALL),
    "ollama_chat": (["caf\u00e9 ", "\U0001f600"], []),
    "gemini_interactions": (["caf\u00e9 ", "\U0001f600"], CALL),
    "openai_completions": (["caf\u00e9 ", "\U0001f600"], []),
    "ollama_generate": (["caf\u00e9 ", "\U0001f600"], []),
    "anthropic_complete": (["caf\u00e9 ", "\U0001f600"], []),
    "cohere_chat": (["caf\u00e9 ", "\U0001f600"], CALL),
    "bedrock_invoke": (["caf\u00e9 \U0001f600"], CALL),
}
"""The pieces of text and of arguments in the streams written by hand; Gemini and Ollama send a call whole."""

THOUGHT: Mapping[str, bytes] = {
    "openai_chat": data_sse(chat({"reasoning_content": "so"}), chat({"reasoning": "?", "reasoning_text": "?"})),
    "openai_responses": event_sse(
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "so"},
        {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "?"}),
    "anthropic_messages": event_sse(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "?"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}}),
    "gemini_generate": data_sse(gemini({"text": "so", "thought": True}), gemini({"text": "?", "thought": True})),
    "bedrock_converse": b"".join(
        frame("contentBlockDelta", {"delta": {"reasoningContent": delta}, "contentBlockIndex": 0})
        for delta in ({"text": "so"}, {"text": "?"}, {"signature": "x"})),
    "gemini_interactions": interactions(
        step("delta", 0, delta={"type": "thought_summary", "content": {"type": "text", "text": "so"}}),
        step("delta", 0, delta={"type": "thought_summary", "content": {"type": "text", "text": "?"}}),
        step("delta", 0, delta={"type": "thought_signature", "signature": "x"})),
    "ollama_chat": b"".join(
        json.dumps(ollama({"content": "", "thinking": text})).encode() + b"\n" for text in ("so", "?")),
    "ollama_generate": b"".join(json.dumps(generation("", thinking=text)).encode() + b"\n" for text in ("so", "?")),
    "cohere_chat": event_sse(
        cohere("content-delta", 0, content={"thinking": "so"}), cohere("content-delta", 0, content={"thinking": "?"})),
    "bedrock_invoke": chunks(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "?"}}),
}


@each_format
def test_the_pieces_of_a_stream_are_those_that_were_sent(api: str) -> None:
    pieces = deltas(api, STREAMS[api])
    assert (pieces.text, pieces.call) == PIECES[api]
    assert pieces.thinking == []
    if "reasoning" in wire(api).loses:
        return
    thought = deltas(api, THOUGHT[api])
    assert (thought.text, thought.thinking, thought.call) == ([], ["so", "?"], [])


@each_format
def test_the_pieces_of_recorded_streams_make_up_their_texts(api: str, traffic_of: Recorded) -> None:
    """Some recordings were put together by hand, so that their pieces and their wholes differ: a few, not many."""
    agree = []
    for _, body, options in bodies(api, traffic_of, most=200_000):
        response = decode(api, body, **options)
        if response.streaming:
            agree.append("".join(map(str, deltas(api, body).text)) == (response.text or ""))
    assert sum(agree) >= 0.95 * len(agree)


@each_format
def test_pieces_of_another_shape_are_passed_over(api: str) -> None:
    for broken in (b'data: {"choices": 5}\n\n', b'data: {"type": "content_block_delta"}\n\n', b"data: [1]\n\n",
                   b'data: {"candidates": [{}]}\n\ndata: {"message": null}\n\n'):
        pieces = deltas(api, broken)
        assert (pieces.text, pieces.thinking, pieces.call) == ([], [], [])


# -- chunks ----------------------------------------------------------------------------------------------------------


@given(cuts=st.lists(st.integers(0, 4000), max_size=12))
@settings(max_examples=40, deadline=None)
def test_any_chunking_decodes_alike(cuts: list[int]) -> None:
    for api, data in STREAMS.items():
        marks = [0, *sorted({cut % len(data) for cut in cuts}), len(data)]
        chunks = [data[start:end] for start, end in pairwise(marks)]
        assert everything(decode(api, chunks)) == whole_stream(api), api


@each_format
def test_a_byte_order_mark_may_come_in_pieces(api: str) -> None:
    if api in ("bedrock_converse", "bedrock_invoke"):
        pytest.skip("its stream is no text")
    data = b"\xef\xbb\xbf" + STREAMS[api]
    want = everything(decode(api, data))
    for size in (1, 2, 3):
        assert everything(decode(api, split(data, size))) == want


@each_format
def test_any_chunking_of_recorded_bodies_decodes_alike(api: str, traffic_of: Recorded) -> None:
    for number, (name, data, options) in enumerate(bodies(api, traffic_of)):
        whole = everything(decode(api, data, **options))
        assert everything(decode(api, split(data, 7 if len(data) < 8_000 else 701), **options)) == whole, name
        if number % 8 == 0 and len(data) < 8_000:
            assert everything(decode(api, split(data, 1), **options)) == whole, name


# -- played twice ----------------------------------------------------------------------------------------------------


@each_format
@pytest.mark.parametrize("marked", [True, False])
def test_a_stream_that_is_played_twice_brings_nothing_twice(api: str, marked: bool) -> None:
    """A text or a call that stood twice would be shown, and run, twice."""
    once = STREAMS[api]
    again = once if marked else once.replace(b"event: done\n", b"").replace(b"data: [DONE]\n\n", b"")
    response, first = decode(api, again + once), decode(api, once)
    assert response.text == first.text
    calls = [[call._replace(at=None) for call in read.tool_calls] for read in (response, first)]
    assert calls[0] == calls[1]
    assert response.stop_reason.normalized is first.stop_reason.normalized


@pytest.mark.parametrize("api", ["openai_chat", "openai_completions", "gemini_generate"])
def test_a_stream_without_ids_that_is_played_twice_brings_nothing_twice(api: str) -> None:
    """Its first piece may come again within it, as one blank does."""
    pieces = {"openai_chat": lambda text: chat({"content": text}), "openai_completions": completion,
              "gemini_generate": lambda text: gemini({"text": text})}[api]
    end = {"openai_chat": chat({}, "stop"), "openai_completions": completion("", "stop"),
           "gemini_generate": gemini({"text": ""}, finish="STOP")}[api]
    events = [{key: value for key, value in each.items() if key not in ("id", "responseId")}
              for each in (*map(pieces, (" ", "a", " ", "b")), end)]
    assert decode(api, data_sse(*events) * 2).text == " a b"


# -- pings -----------------------------------------------------------------------------------------------------------

BINARY = ("bedrock_converse", "bedrock_invoke")
PINGS = ['event: ping\ndata: {"type": "ping"}\n\n', "data: {}\n\n", 'data: {"object": "ping", "choices": []}\n\n',
         'data: {"heartbeat": "ok"}\n\n']


@each_format
@pytest.mark.parametrize("ping", PINGS)
def test_pings_between_all_events_change_nothing(api: str, ping: str) -> None:
    """Gateways send them while they wait, of any shape, and the first event of a stream may be one."""
    if api in BINARY or not STREAMS[api].startswith((b"data:", b"event:")):
        pytest.skip("its stream has other frames")
    events = [each + b"\n\n" for each in STREAMS[api].split(b"\n\n") if each]
    body = b"".join(part for each in events for part in (ping.encode(), each))
    response, plain = decode(api, body), decode(api, STREAMS[api])
    assert (response.text, response.usage, response.stop_reason.raw) == (plain.text, plain.usage, plain.stop_reason.raw)
    assert response.saw_done == plain.saw_done
    assert ([call._replace(at=None) for call in response.tool_calls]
            == [call._replace(at=None) for call in plain.tool_calls])
    assert by_content(body) == api


# -- what follows a whole body ---------------------------------------------------------------------------------------


@each_format
@pytest.mark.parametrize("rest", ["\n<!-- cached -->", "\n\ndata: [DONE]\n\n", "\0"])
def test_what_follows_a_whole_body_takes_nothing_of_it_away(api: str, rest: str) -> None:
    """The answer was called cut, though it is all there."""
    if api in ("ollama_chat", "ollama_generate"):
        pytest.skip("its whole body is a stream of one line")
    source = decode(api, STREAMS[api])
    body = b"".join(wire(api).encode(source, stream=False))
    plain, response = decode(api, body), decode(api, body + rest.encode())
    assert not plain.streaming
    assert (essence(response), response.stop_reason) == (essence(plain), plain.stop_reason)
    (place,) = [found.at for found in response.findings if found.rule == "body.trailing"]
    assert place is not None
    assert (body + rest.encode())[place.start : place.end] == rest.encode()


@pytest.mark.parametrize("between", ["", ",", "\n, "])
def test_a_body_of_two_answers_is_not_the_first_of_them(between: str) -> None:
    """Which of them is the answer is not known, so that no call of the first is released."""
    answer = b"".join(wire("openai_chat").encode(decode("openai_chat", STREAMS["openai_chat"]), stream=False))
    response = decode("openai_chat", answer + between.encode() + answer)
    assert response.stop_reason.normalized is Stop.INTERRUPTED
    assert "body.trailing" not in {found.rule for found in response.findings}


# -- empty words -----------------------------------------------------------------------------------------------------


@each_format
def test_an_empty_word_is_kept_and_ends_nothing(api: str) -> None:
    if api in (*BINARY, "openai_responses"):
        pytest.skip("its stream is no text, or its last event is a word too")
    said = decode(api, STREAMS[api]).stop_reason.raw
    stop = decode(api, STREAMS[api].replace(f'"{said}"'.encode(), b'""')).stop_reason
    assert (stop.raw, stop.normalized) == ("", Stop.INTERRUPTED)


# -- errors ----------------------------------------------------------------------------------------------------------


@each_format
@pytest.mark.parametrize(
    "payload", ['{"message": "boom"}', '{"code": 500, "detail": "boom"}', '{"error": "boom"}', "boom"])
def test_an_event_that_is_named_error_is_one_whatever_it_holds(api: str, payload: str) -> None:
    """Gateways end a stream so that they cannot go on with, in a shape of their own."""
    if api in BINARY or not STREAMS[api].startswith((b"data:", b"event:")):
        pytest.skip("its stream has other frames")
    head = b"\n\n".join(STREAMS[api].split(b"\n\n")[:2]) + b"\n\n"
    body = head + f"event: error\ndata: {payload}\n\n".encode()
    response = decode(api, body)
    assert response.stop_reason.normalized is Stop.ERROR
    assert response.error is not None
    assert response.error.message == "boom"
    place = next(seen.at for seen in response.stop_reason.evidence if seen.rule == "error.reported")
    assert place is not None
    assert (place.start, place.end) == (len(head), len(body.rstrip()))


# -- cuts ------------------------------------------------------------------------------------------------------------


def holds_under_a_cut(cut: ChatResponse, whole: ChatResponse, *, exact: bool) -> None:
    """What may be said of the beginning of a stream whose end is known."""
    word = cut.stop_reason.normalized
    if not cut.saw_stop_reason:
        assert word not in FINISHED, "finished before its reason"
    if word in FINISHED:
        assert whole.saw_stop_reason
    if not exact:
        return
    assert len(cut.tool_calls) <= len(whole.tool_calls), "a call that the whole stream does not have"
    for mine, final in zip(cut.tool_calls, whole.tool_calls, strict=False):
        assert (final.arguments or "").startswith(mine.arguments or ""), "arguments that are no beginning of the whole"
        if mine.closed and word in FINISHED:
            assert mine.arguments == final.arguments, "a closed call that went on"


@each_format
def test_a_stream_cut_at_any_byte_is_finished_by_its_reason_only(api: str) -> None:
    data = STREAMS[api]
    whole = decode(api, data)
    for end in range(1, len(data)):
        try:
            cut = decode(api, data[:end])
        except DecodeError:
            assert end < 16, "only a beginning too short to tell may be refused"
            continue
        holds_under_a_cut(cut, whole, exact=True)


WITHOUT_FRAMES: Mapping[str, Callable[[list[str]], bytes]] = {
    "lines": lambda events: "\n".join(events).encode(),
    "lines behind a mark": lambda events: b"\xef\xbb\xbf" + "\r\n".join([*events, "[DONE]", ""]).encode(),
    "a list": lambda events: f" [{', '.join(events)}]".encode(),
}
"""How loggers write the events of a stream without the framing in which they came."""
TOLD_BY_LINES = [api for api, stream in STREAMS.items() if stream.startswith((b"data:", b"event:"))]


@each_row("form", WITHOUT_FRAMES)
@each_row("api", TOLD_BY_LINES)
def test_events_without_their_framing_are_the_stream(api: str, form: str) -> None:
    events = [line[6:] for line in STREAMS[api].decode().split("\n") if line.startswith("data: {")]
    body, whole = WITHOUT_FRAMES[form](events), decode(api, STREAMS[api])
    read = decode(api, body)
    assert (read.text, read.stop_reason.normalized, read.usage, read.id, read.model, read.streaming) == (
        whole.text, whole.stop_reason.normalized, whole.usage, whole.id, whole.model, True)
    assert [(call.name, call.arguments, call.closed) for call in read.tool_calls] == [
        (call.name, call.arguments, call.closed) for call in whole.tool_calls]
    at = read.stop_reason.evidence[-1].at
    assert at is not None
    assert json.loads(body[at.start : at.end]) in [json.loads(event) for event in events]
    assert deltas(api, body).text == deltas(api, STREAMS[api]).text
    assert everything(decode(api, split(body, 1))) == everything(decode(api, split(body, 50))) == everything(read)


@pytest.mark.parametrize("form", WITHOUT_FRAMES)
@pytest.mark.parametrize("api", TOLD_BY_LINES)
def test_events_without_their_framing_are_finished_by_their_reason_only(api: str, form: str) -> None:
    events = [line[6:] for line in STREAMS[api].decode().split("\n") if line.startswith("data: {")]
    if form != "lines":
        del events[1:-3]  # what stands around the events is cut the same among few of them
    body = WITHOUT_FRAMES[form](events)
    whole = decode(api, body)
    assert whole.saw_stop_reason
    for end in range(body.index(b"{") + 1, len(body)):
        holds_under_a_cut(decode(api, body[:end]), whole, exact=False)


@each_row("api", TOLD_BY_LINES)
def test_a_broken_line_is_as_serious_as_a_broken_event(api: str) -> None:
    stream = STREAMS[api].decode()
    events = [line[6:] for line in stream.split("\n") if line.startswith("data: {")]
    for event in events:
        broken = decode(api, stream.replace(f"data: {event}\n", f"data: {event[:-1]}\n").encode())
        read = decode(api, "".join(f"{each[:-1] if each is event else each}\n" for each in events).encode())
        if event is not events[0]:  # with which lines are recognised
            assert {found.rule for found in read.findings} == {found.rule for found in broken.findings}, event


@each_row("form", ["{0}\n{1}\n{2}\n{3}", "[{0}, {1}, {2}, {3}]", "[{0}, {1}]\n[{0}, {1}]",
                                  "[{0}, {1}] and so on"])
def test_what_holds_more_than_one_stream_is_not_one(form: str) -> None:
    """Each has an end of its own, and nothing between them says so."""
    events = [json.dumps({**chat(delta, finish), "id": key}) for key in ("a", "b")
              for delta, finish in (({"content": key}, None), ({}, "stop"))]
    read = decode("openai_chat", form.format(*events).encode())
    assert (read.text, read.stop_reason.normalized) == (None, Stop.INTERRUPTED)


@pytest.mark.parametrize("join", ["{0}\n{1}", "[{0}, {1}]"])
def test_two_answers_are_not_the_events_of_one_stream(join: str) -> None:
    one, two = (json.dumps({"id": key, "object": "text_completion", "model": "m", "choices": [
        {"text": key, "index": 0, "finish_reason": "stop"}]}) for key in ("a", "b"))
    read = decode("openai_completions", join.format(one, two).encode())
    assert (read.text, read.stop_reason.normalized) == (None, Stop.INTERRUPTED)


def test_an_error_in_lines_is_the_error_of_the_whole_body() -> None:
    read = decode("openai_chat", b'{"error": {"message": "no"}}\n{"trace": 1}', http_status=500)
    assert read.error is not None
    assert not read.streaming


REPLACED = {"ai-67edca6fd1": "the provider itself replaces a tool_search call, its id included, when it is done"}
"""Recorded streams whose calls do not simply grow."""

CUTS = 5
"""How many cuts a recorded stream gets, besides those around its last events."""


@each_format
def test_recorded_streams_cut_anywhere_are_finished_by_their_reason_only(api: str, traffic_of: Recorded) -> None:
    chance = random.Random(api)
    seen = 0
    for name, data, options in bodies(api, traffic_of, most=200_000):
        whole = decode(api, data, **options)
        if not whole.streaming or (options.get("http_status") or 200) >= 400:
            continue
        seen += 1
        tail = range(max(1, len(data) - 4), len(data))
        for end in {*tail, *(chance.randrange(1, len(data)) for _ in range(CUTS))}:
            try:
                cut = decode(api, data[:end], **options)
            except DecodeError:
                assert end < 16, (name, end)
                continue
            try:
                holds_under_a_cut(cut, whole, exact=not whole.other_choices and name not in REPLACED)
            except AssertionError as why:
                raise AssertionError(f"{name} cut at {end}: {why}") from why
    assert seen


@each_format
def test_recorded_bodies_that_are_cut_are_never_finished(api: str, traffic_of: Recorded) -> None:
    chance = random.Random(api)
    for name, data, options in bodies(api, traffic_of, most=200_000):
        if decode(api, data, **options).streaming:
            continue
        text = data.rstrip()
        for end in {chance.randrange(1, len(text)) for _ in range(4)}:
            cut = decode(api, text[:end], **options)
            assert cut.stop_reason.normalized not in FINISHED, (name, end)
            assert not any(call.closed for call in cut.tool_calls), (name, end)


# -- writing ---------------------------------------------------------------------------------------------------------


@each_format
def test_what_is_read_is_written_and_read_alike(api: str) -> None:
    response = decode(api, STREAMS[api])
    for stream, chunk in product((False, True), (1, 3, 1000)):
        written = list(wire(api).encode(response, stream=stream, chunk=chunk))
        assert essence(decode(api, written), wire(api).loses) == essence(response, wire(api).loses), (stream, chunk)
        assert decode(api, written).streaming is stream, chunk
        assert len(written) == 1 or stream


@each_format
def test_a_call_of_a_whole_body_has_the_bytes_of_its_own_value(api: str) -> None:
    """The whole body would be shown in its place."""
    body = b"".join(wire(api).encode(decode(api, STREAMS[api]), stream=False, chunk=1))
    for call in decode(api, body).tool_calls:
        assert call.at is not None
        value = json.loads(body)
        for key in (call.at.pointer or "").split("/")[1:]:
            value = value[int(key) if isinstance(value, list) else key]
        assert json.loads(body[call.at.start : call.at.end]) == value != json.loads(body)


def variants(response: ChatResponse) -> Iterator[ChatResponse]:
    """The response with one fact more, each in turn."""
    call = next(iter(response.tool_calls), ToolCall("c1", "f", '{"n": 1}', closed=True))
    rest = tuple(part for part in response.parts if type(part) is not ToolCall)
    ran, thought = ToolCall("s1", "web_search", "{}", closed=True, kind=CallKind.SERVER), ReasoningPart("Hm.")
    facts: tuple[dict[str, Any], ...] = ({"status": "completed"}, {"item_id": "x1"}, {"signature": "c2ln"})
    for changed in (call, *(call._replace(**more) for more in (
            *facts, {"form": ArgsForm.STRING}, {"form": ArgsForm.OBJECT}))):
        yield replace(response, parts=(*rest, changed))
    for changed in (ran, *(ran._replace(**more) for more in (*facts, {"form": ArgsForm.OBJECT}))):
        yield replace(response, parts=(*response.parts, changed))
    for said in (thought, thought._replace(signature="c2ln"), thought._replace(item_id="rs_1"),
                 thought._replace(json='{"type":"reasoning","content":[{"type":"reasoning_text","text":"Hm."}]}')):
        yield replace(response, parts=(said, *response.parts))
    yield replace(response, parts=tuple(part._replace(phase="final_answer") if type(part) is TextPart else part
                                        for part in response.parts))
    usage = response.usage or Usage(5, 7)
    for counts in (usage, usage._replace(reasoning_tokens=2), usage._replace(cached_tokens=2, cache_write_tokens=1)):
        yield replace(response, usage=counts)
    for more in ({"id": "i"}, {"model": "m"}, {"continuation_token": "dG9r"}, {"refusal": "No."}):
        yield replace(response, **more)


@each_format
@pytest.mark.parametrize("stream", [False, True])
def test_what_a_response_loses_is_what_its_format_says(api: str, stream: bool) -> None:
    """What is neither refused nor said to be lost is read again."""
    for response in variants(decode(api, STREAMS[api])):
        try:
            written = b"".join(wire(api).encode(response, stream=stream))
        except EncodeError:
            continue
        loses = {*wire(api).loses, *(("stop", "detail") if response.refusal else ())}  # a refusal is an end of its own
        assert essence(decode(api, written), loses) == essence(response, loses)


def loose_essence(value: dict[str, Any]) -> dict[str, Any]:
    """Blocks that are kept verbatim by their meaning instead of their spaces."""
    parts = [{**part, "json": json.loads(part["json"])} if part.get("json") else part for part in value["parts"]]
    return {**value, "parts": parts}


@each_format
def test_recorded_bodies_are_written_and_read_alike(api: str, traffic_of: Recorded) -> None:
    loses = wire(api).loses
    for name, data, options in bodies(api, traffic_of):
        response = decode(api, data, **options)
        for stream in (response.streaming, not response.streaming):
            try:
                written = b"".join(wire(api).encode(response, stream=stream))
            except EncodeError as refused:
                if stream is response.streaming or not refused.what:
                    raise AssertionError(f"{name}: a body is not written as it came: {refused}") from refused
                continue
            found, wanted = (essence(read, loses) for read in (decode(api, written, **options), response))
            if stream is not response.streaming:  # a block may be laid out anew for the other framing
                found, wanted = loose_essence(found), loose_essence(wanted)
            assert found == wanted, (name, stream)


# -- recognising -----------------------------------------------------------------------------------------------------


def values(api: str, data: bytes, options: dict[str, Any]) -> list[tuple[Any, str | None]]:
    """The JSON values of a body as its format frames it, with their event names."""
    seen: list[tuple[Any, str | None]] = []
    decoder = wire(api).decoder(**options)
    decoder.on_event = lambda event, name: seen.append((event, name))  # type: ignore[method-assign]
    decoder.on_body = lambda body: seen.append((body, None))  # type: ignore[method-assign]
    decoder.feed(data)
    decoder.close()
    return seen


MISFILED = dict.fromkeys((
    "prism-17b074390c", "openinference-00f7c33cc1", "openinference-b647d575dc", "bt-javascript-ef47ee2f82",
    "bt-javascript-6885bcfa68"), "openai_chat")
"""Bodies of another format than that of their address: a server of it answered, or Mistral's fill-in-the-middle and
Portkey's prompts, which are completions by their address and answer with messages."""


@each_format
def test_a_format_recognises_its_own(api: str) -> None:
    for value, event in values(api, STREAMS[api], {}):
        found = [name for name in FORMATS if wire(name).recognises(value, event)]
        assert found in ([api], []), value
    assert wire(api).recognises(*values(api, STREAMS[api], {})[0])


@each_format
def test_recorded_bodies_are_recognised_by_their_format_alone(api: str, traffic_of: Recorded) -> None:
    for name, data, options in bodies(api, traffic_of):
        response = decode(api, data, **options)
        known = False
        for value, event in values(api, data, options)[:40]:
            found = [other for other in FORMATS if wire(other).recognises(value, event)]
            if api == "bedrock_invoke" and not response.streaming:
                found = [api]  # a body of the model's maker: only the address says that Bedrock sent it
            if api == "anthropic_complete" and value.get("type") == "error":
                continue  # Messages has the same: only the address tells
            if name in MISFILED:
                found = [api] if found == [MISFILED[name]] else found
            assert found in ([api], []), (name, event, str(value)[:300])
            known = known or bool(found)
        if response.stop_reason.raw and response.error is None:
            assert known, name


@each_format
def test_paths_are_those_of_the_recorded_traffic(api: str, traffic_of: Recorded) -> None:
    for exchange in traffic_of(api):
        if exchange.is_reconstructed:
            continue  # the address was made up with the framing
        path = urlsplit(exchange.url).path
        found = [other for other in FORMATS if any(pattern.search(path) for pattern in wire(other).paths)]
        assert found == [api], (exchange.id, path)


# -- requests --------------------------------------------------------------------------------------------------------


@each_format
def test_recorded_requests_are_read(api: str, traffic_of: Recorded) -> None:
    for exchange in traffic_of(api):
        asked = wire(api).read_request(exchange.request, exchange.url)
        assert asked.api == api
        if (exchange.status or 200) >= 400:
            continue  # a provider refused it: it may be odd
        if any(exchange.request.get(key) for key in ("messages", "contents", "input")):
            assert asked.messages, exchange.id
        if exchange.request.get("tools") or exchange.request.get("toolConfig"):
            assert asked.tools, exchange.id
            assert all(tool.name for tool in asked.tools), exchange.id
        if exchange.request.get("stream"):
            assert asked.stream, exchange.id


# -- rubbish ---------------------------------------------------------------------------------------------------------

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, "", "x", "\ud800", [], {}, [None], ["x"], {"x": 1}, [[]], [{}], {"": {}},
)


HEADS = (b"", b"{", b"[", b"data: ", b"data: {", b"event: error\ndata: ", b"\x00\x00\x00", b"\xef\xbb\xbf{")
FIELDS = ("choices", "type", "message", "candidates", "response", "done", "output", "model", "delta", "error", "usage",
          "messages", "tools", "contents", "input", "system", "instructions", "toolConfig", "tool_choice", "max_tokens",
          "generationConfig", "inferenceConfig", "options", "status", "object", "prompt_filter_results")


def survives(api: str, data: bytes | Sequence[bytes]) -> None:
    """Decodes; nothing but `DecodeError` may come, and what is read can be written or is refused by name."""
    try:
        response = decode(api, data)
    except DecodeError:
        return
    assert isinstance(response.stop_reason.normalized, Stop)
    if response.stop_reason.normalized in FINISHED:
        assert response.saw_stop_reason
    for stream in (False, True):
        try:
            b"".join(wire(api).encode(response, stream=stream))
        except EncodeError:
            continue


@given(data=st.binary(max_size=200), head=st.sampled_from(HEADS))
@settings(max_examples=80, deadline=None)
def test_rubbish_raises_nothing_but_the_typed_error(head: bytes, data: bytes) -> None:
    for api in FORMATS:
        survives(api, head + data)


@given(places=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6),
       size=st.integers(1, 64))
@settings(max_examples=50, deadline=None)
def test_changed_bytes_raise_nothing_but_the_typed_error(places: list[tuple[int, int]], size: int) -> None:
    for api, stream in STREAMS.items():
        data = bytearray(stream)
        for place, byte in places:
            data[place % len(data)] = byte
        survives(api, split(bytes(data), size))


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from paths(item, (*path, key))


def with_value(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_value(value[path[0]], path[1:], other)
    return copy


@contextmanager
def named(other: Any, path: tuple[Any, ...]) -> Iterator[None]:
    """What fails is told with the value and its place."""
    try:
        yield
    except Exception as why:
        raise AssertionError(f"{other!r} at {path}") from why


@cache
def events(api: str) -> list[tuple[Any, str | None]]:
    return values(api, STREAMS[api], {})


def body_of(api: str, values: Sequence[tuple[Any, str | None]]) -> bytes:
    if api in ("bedrock_converse", "bedrock_invoke"):
        return b"".join(frame(name or "", value) for value, name in values)
    if api in ("ollama_chat", "ollama_generate"):
        return b"".join(json.dumps(value).encode() + b"\n" for value, _ in values)
    heads = [f"event: {name}\n" if name else "" for _, name in values]
    lines = [f"data: {json.dumps(value)}\n\n" for value, _ in values]
    return "".join(head + line for head, line in zip(heads, lines, strict=True)).encode()


@each_format
def test_any_field_of_a_stream_may_hold_anything(api: str) -> None:
    """Half of the values in each field, the other half in the next: each field comes in several events."""
    whole = events(api)
    parts = [body_of(api, [event]) for event in whole]
    for number, (value, name) in enumerate(whole):
        before, after = b"".join(parts[:number]), b"".join(parts[number + 1 :])
        for index, path in enumerate(paths(value)):
            for other in share(ODD[(index + number) % 2 :: 2], index + number // 2):
                with named(other, path):
                    survives(api, before + body_of(api, [(with_value(value, path, other), name)]) + after)


@each_format
def test_any_field_of_a_body_may_hold_anything(api: str) -> None:
    body = json.loads(b"".join(wire(api).encode(decode(api, STREAMS[api]))))
    for index, path in enumerate(paths(body)):
        for other in share(ODD, index):
            with named(other, path):
                survives(api, json.dumps(with_value(body, path, other)).encode())


@each_format
def test_recorded_bodies_with_changed_bytes_raise_nothing_but_the_typed_error(api: str, traffic_of: Recorded) -> None:
    chance = random.Random(api)
    exchanges = [exchange for exchange in traffic_of(api) if 0 < len(exchange.body) < 20_000]
    for _ in range(60):
        data, byte = chance.choice(exchanges).body, chance.randbytes(chance.randint(1, 3))
        place = chance.randrange(len(data))
        survives(api, data[:place] + byte + data[place + len(byte) :])


@given(value=st.dictionaries(st.sampled_from(FIELDS), ANY_JSON, max_size=5), event=st.none() | st.text(max_size=12))
@settings(max_examples=200, deadline=None)
def test_any_object_can_be_asked_about(value: dict[str, Any], event: str | None) -> None:
    for api in FORMATS:
        assert wire(api).recognises(value, event) in (True, False)
        assert isinstance(wire(api).read_request(value, "https://example.org/v1/x"), Request)
        assert isinstance(wire(api).read_request(value), Request)


ASKS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "model": "m", "max_tokens": 9, "stream": True, "n": 1,
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "u"}]},
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "r"},
        ],
    },
    "openai_responses": {
        "model": "m", "max_output_tokens": 9, "instructions": "s", "background": False,
        "previous_response_id": "resp_0",
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}], "tool_choice": "auto",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "u"}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "r"},
        ],
    },
    "anthropic_messages": {
        "model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "s"}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "tool", "name": "f"},
        "messages": [
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"}]}]},
        ],
    },
    "gemini_generate": {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "generationConfig": {"maxOutputTokens": 9, "candidateCount": 1},
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "contents": [
            {"role": "user", "parts": [{"text": "u"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "r"}}}]},
        ],
    },
    "bedrock_converse": {
        "system": [{"text": "s"}], "inferenceConfig": {"maxTokens": 9},
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}],
                       "toolChoice": {"tool": {"name": "f"}}},
        "messages": [
            {"role": "user", "content": [{"text": "u"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": {}}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "1", "content": [{"text": "r"}], "status": "success"}}]},
        ],
    },
    "gemini_interactions": {
        "model": "m", "system_instruction": "s", "stream": True, "previous_interaction_id": "v1_0",
        "continuation_token": "dG9r", "background": False,
        "generation_config": {
            "max_output_tokens": 9, "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f"]}}},
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "u"}]},
            {"type": "thought", "summary": [{"type": "text", "text": "t"}], "signature": "x"},
            {"type": "model_output", "content": [{"type": "text", "text": "m"}]},
            {"type": "function_call", "id": "1", "name": "f", "arguments": {}},
            {"type": "function_result", "call_id": "1", "name": "f", "result": [{"type": "text", "text": "r"}]},
        ],
    },
    "ollama_chat": {
        "model": "m", "stream": False, "options": {"num_predict": 9},
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
            {"role": "tool", "tool_name": "f", "content": "r"},
        ],
    },
    "cohere_chat": {
        "model": "m", "max_tokens": 9, "stream": True, "tool_choice": "REQUIRED",
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "user", "content": "u"},
            {"role": "assistant", "tool_plan": "p", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "r"},
        ],
    },
    "bedrock_invoke": {
        "anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "system": "s",
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "r"}]},
        ],
    },
    "openai_completions": {"model": "m", "prompt": ["a", "b", "c"], "max_tokens": 9, "stream": True, "n": 1},
    "anthropic_complete": {"model": "m", "prompt": "a", "max_tokens_to_sample": 9, "stream": True},
    "ollama_generate": {"model": "m", "stream": False, "options": {"num_predict": 9}, "system": "s", "prompt": "u",
                        "images": ["aGk="]},
}


@each_format
def test_any_field_of_a_request_may_hold_anything(api: str) -> None:
    whole = ASKS[api]
    assert len(wire(api).read_request(whole).messages) >= {"ollama_generate": 2, "anthropic_complete": 1}.get(api, 3)
    for path in paths(whole):
        for other in ODD:
            value = with_value(whole, path, other)
            if isinstance(value, dict):
                with named(other, path):
                    assert isinstance(wire(api).read_request(value), Request)
