"""OpenAI Responses: fixtures written from the provider's documents, the SDK and recorded traffic as referees."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loop_core
from loop_core.errors import DecodeError, EncodeError
from loop_core.values import (
    ArgsForm,
    CallKind,
    ChatResponse,
    Message,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    Request,
    Role,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire.openai_responses import Decoder, encode, encode_request, read_request
from loop_core.wire.openai_responses.table import API, LOSES, PATHS, recognises
from tests.scenes.essence import essence
from tests.scenes.recordings import exchange, show
from tests.scenes.rows import each_row

URL = "https://api.openai.com/v1/responses"

TEXT = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello", "annotations": []}]}
REFUSAL = {"type": "message", "id": "msg_2", "status": "completed", "role": "assistant",
           "content": [{"type": "refusal", "refusal": "I cannot help."}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}',
        "status": "completed"}
CUT_CALL = {**CALL, "id": "fc_2", "call_id": "call_2", "arguments": '{"path":"x', "status": "incomplete"}


def body(status: str | None = "completed", output: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    value = {"id": "resp_1", "object": "response", "model": "gpt-5", "output": [TEXT] if output is None else output,
             **more}
    return value if status is None else {**value, "status": status}


def decode(data: Any, **options: Any) -> ChatResponse:
    decoder = Decoder(**options)
    decoder.feed(data if isinstance(data, bytes) else json.dumps(data).encode())
    return decoder.close()


def sse(*events: dict[str, Any], named: bool = True) -> bytes:
    frames = []
    for number, event in enumerate(events):
        name = f"event: {event['type']}\n" if named and "type" in event else ""
        frames.append(f"{name}data: {json.dumps({**event, 'sequence_number': number})}\n\n")
    return "".join(frames).encode()


def creation(status: str = "in_progress", **more: Any) -> dict[str, Any]:
    return {"type": "response.created", "response": body(status, [], **more)}


def end(kind: str, status: str | None, output: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": body(status, output, **more)}


def new_item(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def item_end(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def piece(kind: str, text: str, index: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **more}


def arguments(text: str, index: int = 0, item_id: str = "fc_1") -> dict[str, Any]:
    return piece("function_call_arguments", text, index, item_id=item_id)


OPEN_CALL = {**CALL, "arguments": "", "status": "in_progress"}
CALL_STREAM = (creation(), new_item(OPEN_CALL), arguments('{"a"'), arguments(":1}"),
               {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a":1}'},
               item_end(CALL))


def rules(response: ChatResponse) -> set[str]:
    return {finding.rule for finding in response.findings}


# -- stop reasons ----------------------------------------------------------------------------------------------------

ROWS = [
    ("completed", {}, Stop.END_TURN, None, "completed"),
    ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, Stop.MAX_TOKENS, None,
     "incomplete:max_output_tokens"),
    ("incomplete", {"incomplete_details": {"reason": "max_messages"}}, Stop.MAX_TOKENS, "max_messages",
     "incomplete:max_messages"),
    ("incomplete", {"incomplete_details": {"reason": "content_filter"}}, Stop.SAFETY_BLOCKED, "content_filter",
     "incomplete:content_filter"),
    ("incomplete", {"incomplete_details": {"reason": "steered"}}, Stop.PAUSED, "server", "incomplete:steered"),
    ("incomplete", {"incomplete_details": {"reason": None}}, Stop.INTERRUPTED, None, "incomplete"),
    ("incomplete", {"incomplete_details": None}, Stop.INTERRUPTED, None, "incomplete"),
    ("incomplete", {}, Stop.INTERRUPTED, None, "incomplete"),
    ("incomplete", {"incomplete_details": {"reason": "tired"}}, Stop.UNKNOWN, None, "incomplete:tired"),
    ("failed", {"error": None}, Stop.ERROR, "fatal", "failed"),
    ("cancelled", {}, Stop.CANCELLED, None, "cancelled"),
    ("queued", {}, Stop.PAUSED, "poll", "queued"),
    ("in_progress", {}, Stop.INTERRUPTED, None, "in_progress"),
    ("in_progress", {"background": True}, Stop.PAUSED, "poll", "in_progress"),
    ("half_done", {}, Stop.UNKNOWN, None, "half_done"),
    ("", {}, Stop.INTERRUPTED, None, ""),
    (None, {}, Stop.INTERRUPTED, None, None),
    ("incomplete", {"incomplete_details": {"reason": "length"}}, Stop.MAX_TOKENS, None, "incomplete:length"),
    ("incomplete", {"incomplete_details": "max_output_tokens"}, Stop.MAX_TOKENS, None, "incomplete:max_output_tokens"),
    ("incomplete", {"incomplete_details": {}}, Stop.INTERRUPTED, None, "incomplete"),
]


@each_row(("status", "more", "stop", "detail", "raw"), ROWS)
def test_a_status_in_a_whole_body(status: str | None, more: Any, stop: Stop, detail: str | None,
                                  raw: str | None) -> None:
    reason = decode(body(status, **more)).stop_reason
    assert (reason.normalized, reason.detail, reason.raw) == (stop, detail, raw)


@each_row(("kind", "row"), [
    ("completed", ROWS[0]), ("incomplete", ROWS[1]), ("incomplete", ROWS[3]), ("incomplete", ROWS[5]),
    ("failed", ROWS[9]), ("cancelled", ROWS[10]),
])
@each_row("stated", [True, False])
def test_the_last_event_of_a_stream(kind: str, row: Any, stated: bool) -> None:
    status, more, stop, detail, raw = row
    found = decode(sse(creation(), end(kind, status if stated else None, **more)))
    assert (found.stop_reason.normalized, found.stop_reason.detail, found.stop_reason.raw) == (stop, detail, raw)
    assert found.saw_stop_reason
    assert found.streaming


def test_the_place_of_the_word_is_the_last_event_or_the_exact_value() -> None:
    first, last = sse(creation()), sse(end("incomplete", "incomplete",
                                           incomplete_details={"reason": "max_output_tokens"}))
    at = decode(first + last).stop_reason.evidence[0].at
    assert at is not None
    assert (at.start, at.end, at.pointer) == (len(first), len(first + last) - 2, "/response/incomplete_details/reason")
    whole = json.dumps(body()).encode()
    at = decode(whole).stop_reason.evidence[0].at
    assert at is not None
    assert whole[at.start : at.end] == b'"completed"'
    cut = json.dumps(body("incomplete", incomplete_details={"reason": "steered"})).encode()
    at = decode(cut).stop_reason.evidence[0].at
    assert at is not None
    assert cut[at.start : at.end] == b'"steered"'


def test_a_stream_without_its_end_keeps_the_last_status() -> None:
    found = decode(sse(*CALL_STREAM))
    assert found.stop_reason.normalized is Stop.INTERRUPTED
    assert found.raw_stop_reason == "in_progress"
    assert not found.saw_stop_reason
    assert found.tool_calls[0].closed  # the provider ended this call; the reason holds it back


@pytest.mark.parametrize(("events", "options"), [
    ((creation("queued"), {"type": "response.queued", "response": body("queued", [])}), {}),
    ((creation(background=True),), {}),
    ((creation(),), {"background": True}),
])
def test_only_a_background_response_is_polled(events: Any, options: Any) -> None:
    reason = decode(sse(*events), **options).stop_reason
    assert (reason.normalized, reason.detail) == (Stop.PAUSED, "poll")


def test_an_early_completed_is_not_believed() -> None:
    found = decode(sse(creation("completed"), new_item(OPEN_CALL), arguments('{"a":1}')))
    assert found.stop_reason.normalized is Stop.INTERRUPTED
    assert found.raw_stop_reason is None
    assert "openai_responses.early_status" in rules(found)


@each_row(("kind", "status", "raw", "stop"), [
    ("incomplete", "completed", "incomplete", Stop.INTERRUPTED),
    ("failed", "completed", "failed", Stop.ERROR),
    ("cancelled", "completed", "cancelled", Stop.CANCELLED),
    ("completed", "incomplete", "incomplete", Stop.INTERRUPTED),
    ("completed", "in_progress", "in_progress", Stop.INTERRUPTED),
])
def test_where_event_and_status_disagree_the_stricter_counts(kind: str, status: str, raw: str, stop: Stop) -> None:
    found = decode(sse(*CALL_STREAM, end(kind, status, [CALL])))
    assert (found.raw_stop_reason, found.stop_reason.normalized) == (raw, stop)
    assert "openai_responses.terminal_conflict" in rules(found)


@each_row(("kind", "status", "pointer"), [
    ("completed", "completed", "/response/status"), ("completed", None, "/type"), ("incomplete", "completed", "/type"),
    ("completed", "incomplete", "/response/status"),
])
def test_the_place_of_the_word_is_that_of_the_member_that_said_it(kind: str, status: str | None, pointer: str) -> None:
    (evidence, *_) = decode(sse(*CALL_STREAM, end(kind, status, [CALL]))).stop_reason.evidence
    assert evidence.at is not None
    assert evidence.at.pointer == pointer


@each_row(("status", "stop", "admission"), [
    ("completed", Stop.TOOL_CALL, "ready"), ("incomplete", Stop.INTERRUPTED, "held"), ("failed", Stop.ERROR, "held"),
    ("in_progress", Stop.INTERRUPTED, "held"), (None, Stop.INTERRUPTED, "held"),
])
def test_the_last_event_of_some_gateways_says_what_its_status_says(
    status: str | None, stop: Stop, admission: str
) -> None:
    found = loop_core.read("openai_responses", sse(*CALL_STREAM, end("done", status, [CALL])))
    assert (found.raw, found.stop_reason, [each.admission for each in found.calls]) == (status, stop, [admission])
    assert "openai_responses.terminal_conflict" not in rules(found.response)


def test_completed_with_an_incomplete_reason_is_not_complete() -> None:
    for reason, stop in (("max_output_tokens", Stop.MAX_TOKENS), ("tired", Stop.INTERRUPTED)):
        found = decode(body(incomplete_details={"reason": reason}))
        assert (found.raw_stop_reason, found.stop_reason.normalized) == ("completed", stop)
        assert found.native == {"incomplete_details.reason": reason}
        assert len(found.stop_reason.evidence) == 2


@each_row(("details", "stop"), [
    ("max_output_tokens", Stop.MAX_TOKENS), ("tired", Stop.INTERRUPTED), (["max_output_tokens"], Stop.INTERRUPTED),
    ({"reason": {"type": "length"}}, Stop.INTERRUPTED), ({"type": "length"}, Stop.INTERRUPTED),
    (True, Stop.INTERRUPTED), ("", Stop.END_TURN), ({}, Stop.END_TURN), ({"reason": None}, Stop.END_TURN),
    ({"reason": ""}, Stop.END_TURN),
])
def test_incomplete_details_of_another_shape_say_that_the_response_is_incomplete_too(details: Any, stop: Stop) -> None:
    """A call of such a response was released."""
    whole = body(output=[CALL], incomplete_details=details)
    found = loop_core.read("openai_responses", json.dumps(whole).encode())
    assert found.mapped is stop
    assert [each.admission for each in found.calls] == ["ready" if stop is Stop.END_TURN else "held"]
    ended = end("completed", "completed", [CALL], incomplete_details=details)
    found = loop_core.read("openai_responses", sse(*CALL_STREAM, ended))
    assert found.mapped is stop
    at = found.response.stop_reason.evidence[-1].at
    assert at is not None
    assert stop is not Stop.MAX_TOKENS or at.pointer == "/response/incomplete_details"


def test_a_cut_item_in_a_completed_response_is_a_cut() -> None:
    for item in ({**TEXT, "status": "incomplete"}, CUT_CALL):
        found = decode(body(output=[item]))
        assert (found.raw_stop_reason, found.stop_reason.normalized) == ("completed", Stop.MAX_TOKENS)
        assert found.stop_reason.detail == "item"
        assert "openai_responses.incomplete_item" in rules(found)


@each_row("item", [CALL, TEXT])
def test_an_item_that_ended_as_incomplete_is_a_cut_although_the_end_repeats_it_as_completed(item: Any) -> None:
    """The end released the call."""
    ended = item_end({**item, "status": "incomplete"})
    found = decode(sse(creation(), new_item({**item, "status": "in_progress"}), ended,
                       end("completed", "completed", [item])))
    assert (found.raw_stop_reason, found.stop_reason.normalized) == ("completed", Stop.MAX_TOKENS)
    assert found.stop_reason.evidence[-1].at.pointer == "/item/status"


def test_a_streamed_call_stays_where_the_end_lists_an_item_of_another_type_under_its_id() -> None:
    """The call was lost, and another one of its batch ran alone."""
    odd = {**CALL, "type": "functoin_call"}
    found = loop_core.read(API, sse(*CALL_STREAM, end("completed", "completed", [odd])))
    assert [(each.call.name, str(each.admission)) for each in found.calls] == [("f", "ready")]
    started = sse(creation(), new_item(OPEN_CALL), arguments('{"a":1}'), end("completed", "completed", [odd]))
    assert [str(each.admission) for each in loop_core.read(API, started).calls] == ["held"]


def test_a_refusal_blocks_a_completed_response_also_beside_a_text() -> None:
    found = decode(body(output=[REFUSAL]))
    assert (found.stop_reason.normalized, found.stop_reason.detail) == (Stop.SAFETY_BLOCKED, "refusal")
    assert (found.refusal, found.text, found.raw_stop_reason) == ("I cannot help.", None, "completed")
    assert decode(body(output=[REFUSAL, CALL])).stop_reason.normalized is Stop.SAFETY_BLOCKED
    beside = decode(body(output=[TEXT, REFUSAL]))
    assert (beside.stop_reason.normalized, beside.stop_reason.detail) == (Stop.SAFETY_BLOCKED, "refusal")
    cut = decode(body("incomplete", [REFUSAL], incomplete_details={"reason": "max_output_tokens"}))
    assert cut.stop_reason.normalized is Stop.MAX_TOKENS


@each_row(("more", "held"), [
    ({"output": [REFUSAL]}, b'"I cannot help."'),
    ({"content_filters": [{"blocked": True}]}, b'[{"blocked": true}]'),
    ({"incomplete_details": {"reason": "max_output_tokens"}}, b'"max_output_tokens"'),
    ({"output": [{**TEXT, "status": "incomplete"}]}, b'"incomplete"'),
])
@each_row("streamed", [False, True])
def test_what_contradicts_completed_points_at_the_field_that_says_so(
    more: dict[str, Any], held: bytes, streamed: bool
) -> None:
    answer = sse(creation(), end("completed", "completed", **more)) if streamed else json.dumps(
        body(**more)).encode()
    read = show(exchange({"model": "gpt-5", "input": "x", "stream": streamed}, answer.decode(), url=URL))
    (facts,) = read.responses
    *_, seen = facts.evidence
    assert seen.at is not None
    assert seen.at.pointer not in (None, "/status", "/response/status")
    quoted = facts.exchange.body[seen.at.start : seen.at.end]
    assert held in quoted
    if not streamed and "output" not in more:
        assert quoted == held


def test_a_refusal_and_a_filter_are_told_beside_a_cut() -> None:
    data = json.dumps({"object": "response", "status": "incomplete", "output": [REFUSAL],
                       "incomplete_details": {"reason": "max_output_tokens"}, "content_filters": [{"blocked": True}]})
    found = decode(data.encode())
    assert found.stop_reason.normalized is Stop.MAX_TOKENS
    assert [(each.rule, each.message) for each in found.findings] == [
        ("openai_responses.refusal", "a part of the answer is a refusal"),
        ("openai_responses.content_filters.blocked", "a filter took something away")]
    at = found.findings[1].at
    assert at is not None
    assert data[at.start:at.end] == '[{"blocked": true}]'


def test_azure_says_that_it_blocked_the_output() -> None:
    filters = [{"blocked": False, "source_type": "prompt"}, {"blocked": True, "source_type": "completion"}]
    found = decode(body(content_filters=filters))
    assert (found.stop_reason.normalized, found.stop_reason.detail) == (Stop.SAFETY_BLOCKED, "content_filters")
    assert decode(body(content_filters=filters[:1])).stop_reason.normalized is Stop.END_TURN


# -- errors ----------------------------------------------------------------------------------------------------------

CODES = {
    "server_error": (Stop.ERROR, "retryable"),
    "rate_limit_exceeded": (Stop.ERROR, "retryable"),
    "vector_store_timeout": (Stop.ERROR, "retryable"),
    "bio_policy": (Stop.SAFETY_BLOCKED, "policy"),
    "misalignment_policy_violation": (Stop.SAFETY_BLOCKED, "policy"),
    "image_content_policy_violation": (Stop.SAFETY_BLOCKED, "policy"),
    "invalid_prompt": (Stop.ERROR, "fatal"),
    "data_residency_mismatch": (Stop.ERROR, "fatal"),
    "invalid_image": (Stop.ERROR, "fatal"),
    "invalid_image_format": (Stop.ERROR, "fatal"),
    "invalid_base64_image": (Stop.ERROR, "fatal"),
    "invalid_image_url": (Stop.ERROR, "fatal"),
    "image_too_large": (Stop.ERROR, "fatal"),
    "image_too_small": (Stop.ERROR, "fatal"),
    "image_parse_error": (Stop.ERROR, "fatal"),
    "invalid_image_mode": (Stop.ERROR, "fatal"),
    "image_file_too_large": (Stop.ERROR, "fatal"),
    "unsupported_image_media_type": (Stop.ERROR, "fatal"),
    "empty_image_file": (Stop.ERROR, "fatal"),
    "failed_to_download_image": (Stop.ERROR, "fatal"),
    "image_file_not_found": (Stop.ERROR, "fatal"),
}
"""Every code of openai 3.54.0 types/responses/response_error.py, as the facts class them."""


@each_row("code", CODES)
def test_every_error_code_is_classified(code: str) -> None:
    error = {"code": code, "message": "The request could not be handled."}
    for data in (body("failed", [], error=error), sse(creation(), end("failed", "failed", [], error=error))):
        found = decode(data)
        assert (found.stop_reason.normalized, found.stop_reason.detail) == CODES[code]
        assert found.raw_stop_reason == "failed"
        assert found.error == ProviderError("The request could not be handled.", None, code,
                                            CODES[code][1] == "retryable")


def test_the_codes_are_those_of_the_sdk() -> None:
    types = pytest.importorskip("openai.types.responses.response_error")
    assert set(types.ResponseError.model_fields["code"].annotation.__args__) == set(CODES)


def test_an_error_event_ends_a_stream() -> None:
    flat = {"type": "error", "code": "server_error", "message": "Down.", "param": None}
    nested = {"type": "error", "error": {"code": "server_error", "message": "Down.", "type": "server_error"}}
    bare = {"error": {"code": "server_error", "message": "Down."}}
    for event in (flat, nested, bare):
        found = decode(sse(creation(), event))
        assert (found.stop_reason.normalized, found.stop_reason.detail) == (Stop.ERROR, "retryable")
        assert found.error is not None
        assert found.error.message == "Down."
        assert found.raw_stop_reason == "in_progress"
    named = b'event: error\ndata: {"message":"Down.","code":"server_error"}\n\n'
    assert decode(named).stop_reason.normalized is Stop.ERROR
    vllm = b'data: {"object":"error","message":"Down.","code":"server_error"}\n\n'
    assert decode(vllm).stop_reason.normalized is Stop.ERROR


def test_the_error_of_the_last_event_outranks_the_one_before() -> None:
    first = {"type": "error", "code": "odd", "message": "Foobar"}
    found = decode(sse(creation(), first, end("failed", "failed", [],
                                              error={"code": "rate_limit_exceeded", "message": "Slow."})))
    assert found.error == ProviderError("Slow.", None, "rate_limit_exceeded", True)


def test_a_policy_block_keeps_the_public_instruction() -> None:
    error = {"code": "misalignment_policy_violation", "message": "Blocked.",
             "misalignment": {"steer": {"message": "Ask first."}}}
    assert decode(body("failed", [], error=error)).native["error.misalignment.steer.message"] == "Ask first."


def test_http_errors() -> None:
    found = decode({"error": {"message": "No such model.", "type": "invalid_request_error", "code": "model_not_found"},
                    "status": 404}, http_status=404)
    assert (found.stop_reason.normalized, found.stop_reason.detail) == (Stop.ERROR, "fatal")
    assert found.raw_stop_reason is None
    too_long = {"error": {"message": "Your input exceeds the context window of this model.",
                          "code": "context_length_exceeded"}}
    assert decode(too_long, http_status=400).stop_reason.normalized is Stop.CONTEXT_WINDOW_EXCEEDED


# -- items -----------------------------------------------------------------------------------------------------------

def test_texts_are_kept_apart_and_in_order() -> None:
    two = {**TEXT, "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}]}
    plain = {**TEXT, "content": "c"}
    found = decode(body(output=[two, {"type": "reasoning", "id": "rs_1", "summary": []}, plain]))
    assert found.parts == (TextPart("a"), TextPart("b"), ReasoningPart("", None, None, "rs_1"), TextPart("c"))
    streamed = decode(sse(creation(), new_item({**TEXT, "content": []}),
                          piece("output_text", "b", content_index=1), piece("output_text", "a", content_index=0),
                          piece("refusal", "no", content_index=2), end("completed", "completed", [])))
    assert streamed.parts == (TextPart("a"), TextPart("b"))
    assert streamed.refusal == "no"


def test_an_unknown_content_part_is_kept_verbatim() -> None:
    raw = (b'{"object":"response","status":"completed",'
           b'"output":[{"type":"message","content":[{"type":"output_audio", "id":7}]}]}')
    assert decode(raw).parts == (OpaquePart("output_audio", '{"type":"output_audio", "id":7}'),)


def test_reasoning() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A"},
                                                           {"type": "summary_text", "text": "B"}],
            "encrypted_content": "gAAA"}
    assert decode(body(output=[item])).parts == (ReasoningPart("A\n\nB", None, "gAAA", "rs_1", json.dumps(item)),)
    full = {**item, "content": [{"type": "reasoning_text", "text": "all"}]}
    assert decode(body(output=[full])).parts == (ReasoningPart("all", None, "gAAA", "rs_1", json.dumps(full)),)
    begun = (creation(), new_item({**item, "summary": [], "encrypted_content": "gA"}),
             piece("reasoning_summary_text", "A", summary_index=0),
             piece("reasoning_summary_text", "B", summary_index=1))
    # The encrypted content of an announcement may be incomplete: it must not be sent back.
    assert decode(sse(*begun)).parts == (ReasoningPart("A\n\nB", None, None, "rs_1"),)
    (whole,) = decode(sse(*begun, item_end(item))).parts
    assert isinstance(whole, ReasoningPart)
    assert (whole.text, whole.data, whole.item_id, json.loads(whole.json or "")) == ("A\n\nB", "gAAA", "rs_1", item)
    raw = (creation(), new_item({**item, "summary": []}), piece("reasoning_text", "al", content_index=0),
           {"type": "response.reasoning_text.done", "output_index": 0, "content_index": 0, "text": "all"})
    assert decode(sse(*raw)).reasoning_content == "all"
    summary = {"type": "response.reasoning_summary_text.done", "output_index": 0, "summary_index": 0, "text": "whole"}
    assert decode(sse(creation(), new_item({**item, "summary": []}), summary)).reasoning_content == "whole"


def message(text: str, phase: str | None) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "status": "completed", **({"phase": phase} if phase else {}),
            "content": [{"type": "output_text", "text": text, "annotations": []}]}


THOUGHTS: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A"}],
     "encrypted_content": "gAAA"},
    {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text", "text": "all"}]},
    {"type": "reasoning", "id": "rs_3", "summary": [{"type": "summary_text", "text": "A"},
                                                    {"type": "summary_text", "text": "B"}]},
    {"type": "reasoning", "id": "rs_4", "summary": [{"type": "summary_text", "text": "A"}]},
    {"type": "reasoning", "id": "rs_5", "summary": []},
]


@pytest.mark.parametrize("streamed", [False, True])
def test_thinking_and_the_phases_of_an_answer_go_back_as_they_came(streamed: bool) -> None:
    output = [*THOUGHTS, message("I look.", "commentary"), message("I found it.", "commentary"),
              message("Done.", "final_answer"), message("Bye.", None)]
    items = (item_end(item, index) for index, item in enumerate(output))
    events = (creation(), *items, end("completed", "completed", output))
    data = sse(*events) if streamed else body(output=output)
    parts = decode(data).parts
    history = (Message(Role.USER, (TextPart("Go."),)), Message(Role.ASSISTANT, parts))
    sent = encode_request(Request(API, history, "gpt-5"))["input"][1:]
    both = message("I look.", "commentary")  # neighbours of one phase are one message, whose texts stay apart
    both["content"] += message("I found it.", None)["content"]
    assert sent == [*THOUGHTS, both, *output[-2:]]
    again = read_request({"model": "gpt-5", "input": sent}).messages[0].parts
    assert [part for part in again if isinstance(part, TextPart)] == [p for p in parts if isinstance(p, TextPart)]


@pytest.mark.parametrize(("store", "sent"), [
    (False, THOUGHTS[:2]), (True, THOUGHTS), (None, THOUGHTS),
])
def test_thinking_that_was_not_stored_is_not_named_by_its_id(store: bool | None, sent: list[Any]) -> None:
    parts = decode(body(output=[*THOUGHTS, CALL])).parts
    extra = {} if store is None else {"store": store}
    items = encode_request(Request(API, (Message(Role.ASSISTANT, parts),), "gpt-5", extra=extra))["input"]
    assert items[:-1] == sent
    assert items[-1]["call_id"] == "call_1"


def test_a_function_call() -> None:
    for data in (body(output=[CALL]), sse(*CALL_STREAM, end("completed", "completed", [CALL])),
                 sse(*CALL_STREAM, end("completed", "completed", []))):
        (call,) = decode(data).tool_calls
        assert (call.id, call.item_id, call.name, call.arguments) == ("call_1", "fc_1", "f", '{"a":1}')
        assert call.closed
        assert (call.kind, call.form, call.status) == (CallKind.FUNCTION, ArgsForm.STRING, "completed")


@each_row(("status", "response", "closed"), [
    ("completed", "completed", True), ("completed", "incomplete", True), ("incomplete", "incomplete", False),
    ("in_progress", "completed", False), (None, "completed", True), (None, "incomplete", False),
    ("odd", "completed", False),
])
def test_what_closes_a_call(status: str | None, response: str, closed: bool) -> None:
    item = {key: value for key, value in {**CALL, "status": status}.items() if value is not None}
    assert decode(body(response, [item])).tool_calls[0].closed is closed


def test_a_call_of_a_program_waits_for_its_output() -> None:
    item = {**CALL, "status": "in_progress", "caller": {"type": "program", "caller_id": "call_0"}}
    assert decode(body(output=[item])).tool_calls[0].closed
    assert not decode(body("in_progress", [item])).tool_calls[0].closed


def test_a_cut_call_beside_a_whole_one() -> None:
    events = (*CALL_STREAM, new_item({**CUT_CALL, "arguments": "", "status": "in_progress"}, 1),
              arguments('{"path":"x', 1, "fc_2"),
              item_end(CUT_CALL, 1))
    for output in ([CALL, CUT_CALL], []):
        found = decode(sse(*events, end("incomplete", "incomplete", output,
                                        incomplete_details={"reason": "max_output_tokens"})))
        assert [(call.closed, call.arguments) for call in found.tool_calls] == [(True, '{"a":1}'),
                                                                                (False, '{"path":"x')]
        assert found.stop_reason.normalized is Stop.MAX_TOKENS


def test_a_call_that_is_never_ended_stays_open() -> None:
    found = decode(sse(*CALL_STREAM[:4], end("completed", "completed", [])))
    assert not found.tool_calls[0].closed
    assert found.tool_calls[0].arguments == '{"a":1}'


def test_the_end_of_a_call_may_bring_all_of_it() -> None:
    found = decode(sse(creation(), new_item(OPEN_CALL), item_end(CALL), end("completed", "completed", [])))
    assert (found.tool_calls[0].arguments, found.tool_calls[0].closed) == ('{"a":1}', True)
    repeated = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a":1}'}
    cut = decode(sse(creation(), new_item(OPEN_CALL), repeated))
    assert (cut.tool_calls[0].arguments, cut.tool_calls[0].closed) == ('{"a":1}', False)


@each_row(("pieces", "whole", "closed", "kept"), [
    ('{"a":1}', '{"a": 1}', True, '{"a": 1}'),
    ('{"a":12}', '{"a":1}', False, '{"a":1}'),
    ('{"a":1}', '{"a":true}', False, '{"a":true}'),
    ('{"a":1}', "", False, '{"a":1}'),
    ('{"a":1}', {"a": 1}, True, '{"a": 1}'),
    ('{"a":1}', {"a": 2}, False, '{"a": 2}'),
    ('{"a":1}', {}, False, "{}"),
])
def test_a_call_whose_pieces_and_end_differ_stays_open(pieces: str, whole: Any, closed: bool, kept: str) -> None:
    item = {**CALL, "arguments": whole}
    for last in ((item_end(item), end("completed", "completed", [])), (end("completed", "completed", [item]),)):
        found = decode(sse(creation(), new_item(OPEN_CALL), arguments(pieces), *last))
        assert (found.tool_calls[0].closed, found.tool_calls[0].arguments) == (closed, kept)
        assert ("openai_responses.arguments_differ" in rules(found)) is not closed


def ends_of(*items: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """A call or a message that its own end gives in one form, and the last event in another or not at all."""
    return {"both": [*map(item_end, items[:1]), end("completed", "completed", [items[-1]])],
            "one": [*map(item_end, items), end("completed", "completed", [])]}


@each_row(("item", "change", "rule"), [
    (CALL, {"arguments": '{"a":2}'}, "arguments_differ"), (CALL, {"name": "g"}, "name_differs"),
    (CALL, {"arguments": {"a": 2}}, "arguments_differ"),
    ({"type": "custom_tool_call", "id": "c1", "call_id": "call_1", "name": "sh", "input": "ls"}, {"input": "rm"},
     "input_differs"),
    ({"type": "shell_call", "id": "s1", "call_id": "call_1", "status": "completed", "action": {"commands": ["ls"]}},
     {"action": {"commands": ["rm"]}}, "item_differs"),
])
def test_a_call_of_which_two_whole_items_differ_is_held(
    item: dict[str, Any], change: dict[str, Any], rule: str
) -> None:
    for first, last in ((item, {**item, **change}), ({**item, **change}, item)):
        for ending in ends_of(first, last).values():
            data = sse(creation(), new_item({**first, "arguments": "", "status": "in_progress"}), *ending)
            found = loop_core.read("openai_responses", data)
            assert ([each.admission for each in found.calls], found.stop_reason) == (["held"], Stop.MALFORMED_TOOL_CALL)
            (noted,) = [each for each in found.findings if each.rule == f"openai_responses.{rule}"]
            assert noted.at is not None
            if rule != "name_differs":
                begin = data.index(b"event: response.output_item.done")
                assert f"from byte {begin:,} on" in noted.message
                assert all(text in noted.message for text in ("ls", "rm") if rule != "arguments_differ")
        renamed = {"id": "s2"} if rule == "item_differs" else {}
        same = sse(creation(), *ends_of(first, {**first, **renamed, "status": "completed"})["both"])
        assert [each.admission for each in loop_core.read("openai_responses", same).calls] == ["ready"]


def test_a_call_that_was_announced_with_other_arguments_is_held() -> None:
    for announced, admission in (('{"a":2}', "held"), ("{}", "ready"), ('{"a"', "ready"), ('{"a": 1}', "ready"),
                                 ({"a": 2}, "held"), ({}, "ready"), ({"a": 1}, "ready")):
        data = sse(creation(), new_item({**OPEN_CALL, "arguments": announced}), item_end(CALL),
                   end("completed", None, []))
        assert [each.admission for each in loop_core.read("openai_responses", data).calls] == [admission]


STREAMED = (creation(), new_item({**TEXT, "content": []}), piece("output_text", "Hel", content_index=0),
            piece("output_text", "lo", content_index=0),
            {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hello"})


def text_item(text: str) -> dict[str, Any]:
    return {**TEXT, "content": [{"type": "output_text", "text": text, "annotations": []}]}


@each_row(("pieces", "text", "visible", "differs"), [
    ("lo", "Hello", "Hello", False), ("lo, you", "Hello", "Hello", True), ("l", "Hello", "Hello", True),
    ("p me", "Hello", "Hello", True), ("lo", "", "Hello", True),
])
def test_a_text_whose_pieces_and_end_differ_is_reported_with_both_places(
    pieces: str, text: str, visible: str, differs: bool
) -> None:
    events = [*STREAMED[:3], piece("output_text", pieces, content_index=0)]
    for last in ([item_end(text_item(text)), end("completed", "completed", [])],
                 [end("completed", "completed", [text_item(text)])]):
        data = sse(*events, *last)
        found = decode(data)
        assert (found.text, found.stop_reason.normalized) == (visible, Stop.END_TURN)
        noted = [each for each in found.findings if each.rule == "openai_responses.text_differs"]
        assert [each.at is not None for each in noted] == [True] * differs
        if differs and text:
            begin = data.index(b"event: response.output_text.delta")
            assert f"from byte {begin:,} on 'Hel{pieces}'" in noted[0].message
            assert "'Hello'" in noted[0].message
    repeated = decode(sse(*STREAMED[:4], {**STREAMED[4], "text": "Help"}, item_end(TEXT), end("completed", None, [])))
    assert (repeated.text, rules(repeated)) == ("Hello", {"openai_responses.text_differs"})
    assert not rules(decode(sse(*STREAMED, item_end(TEXT), end("completed", "completed", [TEXT]))))


def test_a_difference_in_a_long_text_is_shown_where_it_is() -> None:
    long = "a" * 500
    events = (*STREAMED[:2], piece("output_text", f"{long}bc", content_index=0))
    (noted,) = decode(sse(*events, end("completed", "completed", [text_item(f"{long}d{long}")]))).findings
    assert f"'…{'a' * 20}d{'a' * 39}…'" in noted.message
    assert f"'…{'a' * 20}bc'" in noted.message


def test_a_text_that_the_last_event_leaves_out_is_kept_where_it_was() -> None:
    other = {**text_item(" there"), "id": "msg_2"}
    events = (*STREAMED, item_end(TEXT), new_item(other, 1), item_end(other, 1))
    whole = decode(sse(*events, end("completed", "completed", [TEXT, other])))
    assert (whole.text, rules(whole)) == ("Hello there", set())
    for left in (TEXT, other):
        found = decode(sse(*events, end("completed", "completed", [left])))
        assert (found.text, rules(found)) == ("Hello there", {"openai_responses.text_omitted"})
    joined = decode(sse(*events, end("completed", "completed", [{**text_item("Hello there"), "id": "msg_3"}])))
    assert joined.text == "Hello there"


@each_row(("pieces", "last"), [
    (("\n\nHel", "lo"), "Hello"), (("Hel", "lo"), "Hello\n"), (("\n\n",), ""), (("\n\n",), None),
])
def test_white_space_around_a_text_that_the_end_repeats_is_no_other_text(
    pieces: tuple[str, ...], last: str | None
) -> None:
    """Some servers trim what they repeat, and many models write line breaks before a call."""
    streamed = [piece("output_text", text, content_index=0) for text in pieces]
    whole = [] if last is None else [text_item(last)]
    found = decode(sse(creation(), new_item({**TEXT, "content": []}), *streamed, *map(item_end, whole),
                       new_item(OPEN_CALL, 1),
                       arguments('{"a":1}', 1), item_end(CALL, 1), end("completed", "completed", [*whole, CALL])))
    assert (found.text or "").strip() == (last or "").strip()
    assert not rules(found)


def test_an_item_that_is_no_text_stands_beside_what_was_streamed() -> None:
    item = {**TEXT, "content": [{"type": "output_audio", "data": "x"}]}
    found = decode(sse(*STREAMED, end("completed", "completed", [item])))
    assert [type(part) for part in found.parts] == [OpaquePart, TextPart]


def test_the_first_event_that_comes_twice_ends_nothing() -> None:
    found = decode(sse(*STREAMED, item_end(TEXT), end("completed", "completed", [TEXT])).replace(
        b"event: response.output_item.added", sse(creation()) + b"event: response.output_item.added", 1))
    assert (found.text, found.stop_reason.normalized, rules(found)) == ("Hello", Stop.END_TURN, set())


WHOLE_CALL = (*CALL_STREAM, end("completed", "completed", [CALL]))


GAPS = {"openai_responses.event_missing", "openai_responses.event_repeated"}


@each_row(("order", "rule", "admission"), [
    ((0, 1, 4, 5, 6), "event_missing", "held"), ((0, 1, 3, 4, 5, 6), "event_missing", "held"),
    ((0, 1, 2, 3, 2, 4, 5, 6), "event_repeated", "held"), ((0, 1, 1, 4, 5, 6), "event_missing", "held"),
    # The pieces are the whole text, so no piece is missing and none came twice.
    ((0, 1, 2, 3, 5, 6), "event_missing", "ready"), ((0, 1, 2, 3, 4, 3, 5, 6), "event_repeated", "held"),
    ((0, 1, 2, 1, 3, 4, 5, 6), "event_repeated", "ready"), ((0, 2, 3, 4, 5, 6), None, "ready"),
    ((0, 1, 2, 3, 4, 5, 5, 6), None, "ready"), ((0, 1, 2, 3, 4, 5, 6, 6), None, "ready"),
    ((0, 1, 2, 3, 4, 5, 6), None, "ready"),
])
def test_a_call_in_which_the_numbers_of_the_events_show_a_gap_is_held_unless_its_pieces_are_whole(
    order: tuple[int, ...], rule: str | None, admission: str
) -> None:
    frames = sse(*WHOLE_CALL).split(b"\n\n")
    found = loop_core.read("openai_responses", b"\n\n".join([*(frames[each] for each in order), b""]))
    assert [each.admission for each in found.calls] == [admission]
    gaps = rules(found.response) & GAPS
    assert f"openai_responses.{rule}" in gaps if rule else not gaps
    if admission == "held":
        assert found.stop_reason == Stop.MALFORMED_TOOL_CALL


@each_row("times", [1, 2, 3])
@each_row("events", [WHOLE_CALL, (*STREAMED, item_end(TEXT), end("completed", "completed", []))])
def test_an_event_that_came_twice_with_its_number_is_read_once(events: tuple[Any, ...], times: int) -> None:
    frames = [frame + b"\n\n" for frame in sse(*events).split(b"\n\n") if frame]
    found = loop_core.read("openai_responses", b"".join(frame * times for frame in frames))
    once = loop_core.read("openai_responses", b"".join(frames))
    assert (found.text, [call.arguments for call in found.response.tool_calls], found.stop_reason) == (
        once.text, [call.arguments for call in once.response.tool_calls], once.stop_reason)
    assert [each.admission for each in found.calls] == [each.admission for each in once.calls]
    assert ("openai_responses.event_twice" in rules(found.response)) is (times > 1)


@pytest.mark.parametrize("number", [0, None, "3"])
def test_equal_events_without_a_number_of_their_own_are_two(number: Any) -> None:
    pieces = [{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "ha"}] * 2
    events = (creation(), new_item({"type": "message", "id": "m", "role": "assistant", "content": []}), *pieces)
    data = b"".join(f"data: {json.dumps({**event, 'sequence_number': number})}\n\n".encode() for event in events)
    assert loop_core.read("openai_responses", data).text == "haha"


@pytest.mark.parametrize("number", [None, "3", 1.5])
def test_equal_events_without_a_number_among_those_that_have_one_are_two(number: Any) -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "ha"}
    pieces = (json.dumps({**delta, "sequence_number": number}).encode(),) * 2
    counted = sse(creation(), {"type": "response.in_progress"}, new_item({**TEXT, "content": []}))
    found = decode(counted + b"".join(b"data: " + each + b"\n\n" for each in pieces))
    assert (found.text, rules(found)) == ("haha", set())


@each_row("number", [0, None, 2, 99])
def test_an_event_that_keeps_the_connection_open_may_have_any_number(number: int | None) -> None:
    frames = sse(*WHOLE_CALL).split(b"\n\n")
    alive = json.dumps({"type": "keepalive", "sequence_number": number}).encode()
    found = loop_core.read("openai_responses", b"\n\n".join([*frames[:3], b"data: " + alive, *frames[3:]]))
    assert [each.admission for each in found.calls] == ["ready"]
    assert not rules(found.response) & GAPS
    counted = sse(*WHOLE_CALL[:3], {"type": "keepalive"}, *WHOLE_CALL[3:])
    assert not rules(decode(counted)) & GAPS, "it has the next number"


@each_row("numbers", [lambda n: 0, lambda n: None, lambda n: 10 + n, lambda n: str(n), lambda n: 2 * n])
def test_only_a_server_that_counts_its_events_can_miss_one(numbers: Any) -> None:
    data = b"".join(f"data: {json.dumps({**event, 'sequence_number': numbers(number)})}\n\n".encode()
                    for number, event in enumerate(WHOLE_CALL))
    found = loop_core.read("openai_responses", data)
    assert [each.admission for each in found.calls] == ["ready"]
    assert rules(found.response) & GAPS == set()


def test_an_answer_behind_another_counts_from_its_own_beginning() -> None:
    data = sse(*CALL_STREAM[:2]) + sse(creation(id="resp_2"), *WHOLE_CALL[1:-1], WHOLE_CALL[-1])
    assert not {"openai_responses.event_missing", "openai_responses.event_repeated"} & rules(decode(data))


def test_a_call_that_the_last_event_forgets_is_neither_lost_nor_run() -> None:
    found = decode(sse(*CALL_STREAM, end("completed", "completed", [TEXT])))
    assert [call.closed for call in found.tool_calls] == [False]
    assert "openai_responses.call_omitted" in rules(found)


def test_items_renamed_by_the_last_event_are_not_doubled() -> None:
    text = {**TEXT, "id": "msg_tmp", "content": []}
    events = (creation(), new_item({"type": "reasoning", "id": "rs_tmp", "summary": []}), new_item(text, 1),
              piece("output_text", "Hello", 1, content_index=0), new_item(OPEN_CALL, 2), arguments('{"a":1}', 2),
              item_end(CALL, 2))
    found = decode(sse(*events, end("completed", "completed", [TEXT, {**CALL, "id": "fc_new"}])))
    assert found.text == "Hello"
    assert [(call.id, call.closed) for call in found.tool_calls] == [("call_1", True)]


@each_row(("changed", "calls"), [
    ({}, [("call_1", True)]), ({"arguments": '{"a":2}'}, [("call_1", False), ("call_new", True)]),
    ({"name": "other"}, [("call_1", False), ("call_new", True)])])
def test_a_whole_call_that_the_last_event_renames_is_one_call(changed: dict[str, Any], calls: list[Any]) -> None:
    renamed = {**CALL, "id": "fc_new", "call_id": "call_new", **changed}
    found = decode(sse(*CALL_STREAM, item_end({**CALL, "id": None}), end("completed", "completed", [TEXT, renamed])))
    assert sorted((call.id, call.closed) for call in found.tool_calls) == calls
    assert ("openai_responses.call_omitted" in rules(found)) == bool(changed)


def test_two_items_with_one_index() -> None:
    second = {**CALL, "id": "fc_9", "call_id": "call_9", "arguments": '{"b":2}'}
    events = (*CALL_STREAM, new_item({**second, "arguments": ""}), arguments('{"b":2}', 0, "fc_9"), item_end(second))
    found = decode(sse(*events, end("completed", "completed", [])))
    assert [(call.id, call.arguments, call.closed) for call in found.tool_calls] == [
        ("call_1", '{"a":1}', True), ("call_9", '{"b":2}', True)]
    assert "openai_responses.index_reused" in rules(found)
    unended = (creation(), new_item(OPEN_CALL), arguments('{"a":1}'), new_item({**second, "arguments": ""}),
               arguments('{"b":2}', 0, "fc_9"))
    assert [call.arguments for call in decode(sse(*unended)).tool_calls] == ['{"a":1}', '{"b":2}']


UNANNOUNCED = [
    ("output_text", "text", lambda r: r.text == "Hi"),
    ("refusal", "refusal", lambda r: r.refusal == "Hi"),
    ("reasoning_summary_text", "text", lambda r: r.reasoning_content == "Hi"),
    ("reasoning_text", "text", lambda r: r.reasoning_content == "Hi"),
    ("function_call_arguments", "arguments",
     lambda r: r.tool_calls[0].arguments == "Hi" and not r.tool_calls[0].closed),
    ("custom_tool_call_input", "input",
     lambda r: r.tool_calls[0].kind is CallKind.CUSTOM and r.tool_calls[0].arguments == "Hi"),
]


@each_row(("kind", "key", "check"), UNANNOUNCED)
def test_pieces_of_an_item_that_was_never_announced(kind: str, key: str, check: Any) -> None:
    pieces = [{"type": f"response.{kind}.delta", "item_id": "x_1", "delta": part} for part in ("H", "i")]
    found = decode(sse(creation(), *pieces))
    assert check(found)
    assert "openai_responses.unannounced_item" in rules(found)
    whole = decode(sse(creation(), {"type": f"response.{kind}.done", "output_index": 3, key: "Hi"}))
    assert check(whole)


def test_pieces_that_name_the_item_only_by_its_id() -> None:
    event = {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": '{"a":1}'}
    found = decode(sse(creation(), new_item(OPEN_CALL), event, item_end(CALL), end("completed", "completed", [])))
    assert [call.arguments for call in found.tool_calls] == ['{"a":1}']
    assert not rules(found)


def test_arguments_that_are_an_object() -> None:
    raw = json.dumps(body(output=[{**CALL, "arguments": None}])).replace('"arguments": null',
                                                                         '"arguments": {"n":  1200}')
    (call,) = decode(raw.encode()).tool_calls
    assert (call.arguments, call.form, call.closed) == ('{"n":  1200}', ArgsForm.OBJECT, True)
    absent = {key: value for key, value in CALL.items() if key != "arguments"}
    assert decode(body(output=[absent])).tool_calls[0].arguments is None
    assert decode(body(output=[{**CALL, "arguments": ""}])).tool_calls[0].arguments == ""
    assert decode(body(output=[{**CALL, "call_id": ""}])).tool_calls[0].id is None


def test_a_custom_tool_call() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "sh", "input": "ls -l"}
    events = (creation(), new_item({**item, "input": ""}), piece("custom_tool_call_input", "ls ", item_id="ctc_1"),
              piece("custom_tool_call_input", "-l", item_id="ctc_1"), item_end(item))
    for data in (body(output=[item]), sse(*events, end("completed", "completed", []))):
        (call,) = decode(data).tool_calls
        assert (call.kind, call.arguments, call.closed, call.id, call.item_id) == (
            CallKind.CUSTOM, "ls -l", True, "call_1", "ctc_1")
    # It has no status of its own: only a completed response says that it is whole.
    assert not decode(sse(*events)).tool_calls[0].closed
    assert not decode(body("incomplete", [item])).tool_calls[0].closed
    differs = decode(sse(*events[:-1], item_end({**item, "input": "ls  -l"}), end("completed", "completed", [])))
    assert not differs.tool_calls[0].closed
    assert "openai_responses.input_differs" in rules(differs)


SERVER = [
    ({"type": "web_search_call", "id": "ws_1", "status": "completed"}, "web_search"),
    ({"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": []}, "file_search"),
    ({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1"}, "code_interpreter"),
    ({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="}, "image_generation"),
    ({"type": "mcp_call", "id": "mcp_1", "name": "roll", "arguments": "{}", "server_label": "dice"}, "roll"),
    ({"type": "mcp_call", "id": "mcp_1", "arguments": "{}", "server_label": "dice"}, "mcp"),
    ({"type": "program", "id": "cm_1", "call_id": "call_0", "code": "1"}, "program"),
    ({"type": "x_search_call", "id": "x_1", "status": "completed"}, "x_search"),
    ({"type": "tool_search_call", "id": "ts_1", "status": "completed", "execution": "server"}, "tool_search"),
    ({"type": "shell_call", "id": "sh_1", "call_id": "c", "status": "completed", "action": {"commands": ["ls"]},
      "environment": {"type": "container_reference", "container_id": "k"}}, "shell"),
]


@each_row(("item", "name"), SERVER)
def test_what_the_provider_runs_itself(item: dict[str, Any], name: str) -> None:
    for data in (body(output=[item]), sse(creation(), new_item(item), item_end(item),
                                          end("completed", "completed", []))):
        found = decode(data)
        assert found.tool_calls == ()
        (call,) = found.server_calls
        assert (call.name, json.loads(call.arguments or ""), call.closed) == (name, item, True)
        assert not rules(found)


CLIENT = [
    ({"type": "computer_call", "id": "cu_1", "call_id": "call_7", "status": "completed", "action": {"type": "wait"}},
     "computer"),
    ({"type": "local_shell_call", "id": "lsh_1", "call_id": "call_7", "status": "completed",
      "action": {"command": ["ls"]}},
     "local_shell"),
    ({"type": "shell_call", "id": "sh_1", "call_id": "call_7", "status": "completed", "action": {"commands": ["ls"]},
      "environment": {"type": "local"}}, "shell"),
    ({"type": "shell_call", "id": "sh_1", "call_id": "call_7", "status": "in_progress",
      "action": {"commands": ["ls"]}}, "shell"),
    ({"type": "apply_patch_call", "id": "ap_1", "call_id": "call_7", "status": "completed",
      "operation": {"type": "delete_file", "path": "x"}}, "apply_patch"),
    ({"type": "tool_search_call", "id": "ts_1", "call_id": "call_7", "status": "completed", "execution": "client",
      "arguments": {"goal": "files"}}, "tool_search"),
    ({"type": "mcp_approval_request", "id": "call_7", "name": "rm", "arguments": "{}", "server_label": "s"},
     "mcp_approval_request"),
]


@each_row(("item", "name"), CLIENT)
def test_what_waits_for_the_client(item: dict[str, Any], name: str) -> None:
    for data in (body(output=[item]), sse(creation(), new_item(item), item_end(item),
                                          end("completed", "completed", []))):
        (call,) = decode(data).tool_calls
        assert (call.name, call.id, call.kind, call.form) == (name, "call_7", CallKind.CUSTOM, ArgsForm.OBJECT)
        assert json.loads(call.arguments or "") == item
        assert call.closed
    assert not decode(sse(creation(), new_item({**item, "status": "in_progress"}))).tool_calls[0].closed
    assert not decode(body("incomplete", [{**item, "status": "incomplete"}])).tool_calls[0].closed


def test_a_shell_call_that_has_its_output_was_run_by_the_provider() -> None:
    call = {"type": "shell_call", "id": "sh_1", "call_id": "call_7", "status": "completed",
            "action": {"commands": ["ls"]}}
    output = {"type": "shell_call_output", "id": "sho_1", "call_id": "call_7", "output": []}
    found = decode(body(output=[call, output]))
    assert [part.name for part in found.server_calls] == ["shell"]
    assert found.tool_calls == ()


@each_row("kind", [
    "compaction", "mcp_list_tools", "tool_search_output", "program_output", "shell_call_output",
    "local_shell_call_output",
    "computer_call_output", "apply_patch_call_output", "function_call_output", "custom_tool_call_output",
    "additional_tools",
    "mcp_approval_response",
])
def test_items_that_are_only_kept(kind: str) -> None:
    raw = '{"object":"response","status":"completed","output":[ {"type": "%s",  "id":"x"} ]}' % kind  # noqa: UP031
    found = decode(raw.encode())
    assert found.parts == (OpaquePart(kind, '{"type": "%s",  "id":"x"}' % kind),)  # noqa: UP031
    assert not rules(found)


def test_an_unknown_item_is_kept_and_told() -> None:
    found = decode(body(output=[{"type": "hologram", "x": 1}, 7]))
    assert [part.type for part in found.parts if isinstance(part, OpaquePart)] == ["hologram"]
    assert rules(found) == {"openai_responses.unknown_item", "openai_responses.call_unread_value"}


# -- usage and the rest ----------------------------------------------------------------------------------------------

def test_usage() -> None:
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 7,
             "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 17}
    assert decode(body(usage=usage)).usage == Usage(10, 7, 5, 4)
    assert decode(sse(creation(), end("completed", "completed", usage=usage))).usage == Usage(10, 7, 5, 4)
    assert decode(body(usage=None)).usage is None
    apart = {**usage, "output_tokens": 2}  # 10 + 2 + 5 = 17: thinking is counted apart
    assert decode(body(usage=apart)).usage == Usage(10, 7, 5, 4)


def test_id_and_model_come_with_the_first_event() -> None:
    found = decode(sse(creation()))
    assert (found.id, found.model) == ("resp_1", "gpt-5")


def test_unnamed_events_comments_and_done_are_read_too() -> None:
    data = b": hello\n\n" + sse(*CALL_STREAM, end("completed", "completed", [CALL]), named=False) + b"data: [DONE]\n\n"
    found = decode(data)
    assert found.saw_done
    assert essence(found) == essence(decode(sse(*CALL_STREAM, end("completed", "completed", [CALL]))))


def test_the_event_with_the_stop_word_is_the_end_mark() -> None:
    """OpenAI sends no `[DONE]` here; Codex CLI closes the connection behind this event, and nothing is missing."""
    assert decode(sse(*CALL_STREAM, end("completed", "completed", [CALL]))).saw_done
    assert not decode(sse(*CALL_STREAM)).saw_done


def test_odd_shapes_are_findings_and_not_crashes() -> None:
    for event in ({"type": "response.output_item.added", "item": 3}, {"type": ["x"]},
                  {"type": "response.output_text.delta"},
                  {"type": "response.output_text.delta", "output_index": [], "delta": "x"},
                  {"type": "response.output_text.delta", "output_index": 0, "delta": {"a": 1}}):
        found = decode(sse(creation(), event))
        assert found.stop_reason.normalized is Stop.INTERRUPTED
    for odd in (body(output=[{"type": ["x"], "id": []}, {"type": "message", "content": [3, {"type": "output_text"}]},
                             {"type": "function_call", "name": 3, "arguments": 4, "call_id": 5, "status": 6}]),
                body(output={}), body(usage=[]), body(error=3), body(incomplete_details=3), body(content_filters=3),
                {"status": ["completed"], "output": None}):
        assert decode(odd).stop_reason.normalized is not Stop.TOOL_CALL
    assert not decode(body(output=[{**CALL, "status": 6}])).tool_calls[0].closed


# -- properties ------------------------------------------------------------------------------------------------------

STREAM = sse(
    creation(), {"type": "response.in_progress", "response": body("in_progress", [])},
    new_item({"type": "reasoning", "id": "rs_1", "summary": []}),
    piece("reasoning_summary_text", "Hm\u00f6", summary_index=0),
    item_end({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm\u00f6"}],
              "encrypted_content": "g"}),
    new_item({**TEXT, "content": []}, 1), piece("output_text", "Hel", 1, content_index=0),
    piece("output_text", "lo \U0001f600", 1, content_index=0),
    item_end({**TEXT, "content": [{"type": "output_text", "text": "Hello \U0001f600"}]}, 1),
    new_item(OPEN_CALL, 2), arguments('{"a"', 2), arguments(":1}", 2), item_end(CALL, 2),
    end("completed", "completed", [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm\u00f6"}],
         "encrypted_content": "g"},
        {**TEXT, "content": [{"type": "output_text", "text": "Hello \U0001f600"}]}, CALL],
        usage={"input_tokens": 3, "output_tokens": 9, "total_tokens": 12}),
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.sampled_from([b"\n", b"\r\n", b"\r"]))
@settings(max_examples=60, deadline=None)
def test_any_chunking_decodes_alike(cuts: list[int], line_end: bytes) -> None:
    stream = STREAM.replace(b"\n", line_end)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    decoder = Decoder()
    for start, stop in pairwise(places):
        decoder.feed(stream[start:stop])
    assert essence(decoder.close()) == essence(decode(STREAM))


def test_a_stream_cut_at_any_byte_is_never_finished() -> None:
    whole = decode(STREAM)
    last = len(STREAM.rstrip(b"\n"))
    ended = STREAM.index(b"output_item.done", STREAM.index(b"function_call_arguments"))
    for cut in range(1, len(STREAM)):
        found = decode(STREAM[:cut]) if STREAM[:cut].strip() else None
        if found is None:
            continue
        if cut < last:
            assert found.stop_reason.normalized is Stop.INTERRUPTED
        else:
            assert essence(found) == essence(whole)
        for call in found.tool_calls:
            if cut < ended:
                assert not call.closed
            if call.closed:
                assert call.arguments == whole.tool_calls[0].arguments


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_fuzzed_bytes_raise_nothing_else(noise: bytes) -> None:
    for data in (noise, STREAM[:700] + noise, b"{" + noise, b'data: {"type":"response.completed","response":' + noise):
        try:
            found = decode(data)
        except DecodeError:
            continue
        assert found.stop_reason.normalized is not Stop.TOOL_CALL


JSON = st.recursive(st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "completed", "function_call",
                                                                                     "fc_1", "x"]),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
                        ["type", "id", "call_id", "status", "content", "arguments", "output", "text", "item",
                         "response"]), inner,
                        max_size=4), max_leaves=12)


@given(JSON, JSON, st.sampled_from(["response.output_item.done", "response.completed", "response.output_text.delta",
                                    "error"]))
@settings(max_examples=80, deadline=None)
def test_values_of_any_shape_raise_nothing(one: Any, other: Any, kind: str) -> None:
    decode(body(output=one, usage=other))
    event = {"type": kind, "item": one, "response": other, "delta": one, "error": other, "output_index": 0}
    decode(sse(creation(), new_item(OPEN_CALL), event,
               end("completed", "completed", one if isinstance(one, list) else [])))


# -- encoding --------------------------------------------------------------------------------------------------------

def samples() -> Iterator[Any]:
    usage = {"input_tokens": 3, "output_tokens": 9, "total_tokens": 12,
             "output_tokens_details": {"reasoning_tokens": 2}}
    for status, more, *_ in ROWS:
        yield body(status, **more)
        yield body(status, [TEXT, CALL], usage=usage, **more)
    yield STREAM
    yield sse(*CALL_STREAM)
    yield sse(*CALL_STREAM[:4])
    yield sse(creation(), new_item({**TEXT, "content": []}), piece("output_text", "Hel", content_index=0))
    yield sse(creation("queued"))
    yield sse(creation(), {"type": "error", "code": "server_error", "message": "Down."})
    yield body("incomplete", [CALL, CUT_CALL], incomplete_details={"reason": "max_output_tokens"})
    yield body(output=[REFUSAL])
    yield body(output=[TEXT, REFUSAL])
    yield body(incomplete_details={"reason": "content_filter"})
    yield body(content_filters=[{"blocked": True}])
    yield body(output=[{**TEXT, "status": "incomplete"}])
    yield body(output=[CUT_CALL])
    yield body(output=[{**CALL, "arguments": {"a": 1}}])
    yield body(output=[{"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls -l\nA" * 9}])
    yield body(output=[{**CALL, "status": "in_progress", "caller": {"type": "program", "caller_id": "c"}}])
    yield body(output=[{**CALL, "status": "in_progress"}])
    yield body(output=[{"type": "hologram", "x": ["\u00e9", 1.0]}, {"type": "reasoning", "id": "r", "summary": []}])
    yield body("failed", [], error={"code": "bio_policy", "message": "No.",
                                    "misalignment": {"steer": {"message": "Ask."}}})
    yield json.dumps(body(output=[SERVER[0][0], CLIENT[0][0]]), indent=2).encode()
    yield (b'{"object":"response","status":"completed",'
           b'"output":[{"type":"message","content":[{"type":"output_text","text":"a\\ud800b"}]}]}')


@each_row("number", range(len(list(samples()))))
@each_row("stream", [False, True])
@each_row("chunk", [1, 16])
def test_what_is_decoded_is_encoded_and_decoded_alike(number: int, stream: bool, chunk: int) -> None:
    first = decode(list(samples())[number])
    again = decode(b"".join(encode(first, stream=stream, chunk=chunk)))
    assert essence(again, LOSES) == essence(first, LOSES)


def test_error_bodies_go_back_as_error_bodies() -> None:
    first = decode({"error": {"message": "No.", "type": "invalid_request_error", "code": "model_not_found"}},
                   http_status=404)
    (data,) = encode(first, stream=True)
    assert json.loads(data)["error"]["code"] == "model_not_found"
    assert essence(decode(data, http_status=404), LOSES) == essence(first, LOSES)


def test_a_stream_is_sent_event_by_event_and_chunked() -> None:
    events = [json.loads(event.decode().split("data: ", 1)[1]) for event in encode(decode(STREAM), stream=True,
                                                                                   chunk=2)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    deltas = [event["delta"] for event in events if event["type"] == "response.function_call_arguments.delta"]
    assert deltas == ['{"', 'a"', ":1", "}"]
    assert events[0]["type"] == "response.created"
    assert events[-1]["type"] == "response.completed"


def answer(*parts: Any, raw: str = "completed", stop: Stop = Stop.END_TURN) -> ChatResponse:
    return ChatResponse("openai_responses", parts, StopReason(stop, raw))


def test_what_cannot_be_carried_is_refused() -> None:
    for call, what in (
        (ToolCall("c", "f", "{", False, status="completed"), "call.closed"),
        (ToolCall("c", "web", "{}", True, CallKind.SERVER, ArgsForm.OBJECT), "server"),
        (ToolCall("c", "shell", "no json", True, CallKind.CUSTOM, ArgsForm.OBJECT), "call.arguments"),
    ):
        with pytest.raises(EncodeError) as caught:
            list(encode(answer(call)))
        assert caught.value.what == what
    with pytest.raises(EncodeError) as caught:
        list(encode(answer(OpaquePart("x", '{"type":"x",\r\n"a":1}')), stream=True))
    assert caught.value.what == "opaque.json"


def test_calls_of_other_formats_get_the_status_that_says_the_same() -> None:
    call = ToolCall("c", "f", '{"a":', False)
    again = decode(b"".join(encode(answer(call, raw="completed"))))
    assert (again.tool_calls[0].closed, again.tool_calls[0].arguments) == (False, '{"a":')
    whole = ToolCall("c", "f", "{}", True)
    cut = answer(whole, call, raw="incomplete:max_output_tokens", stop=Stop.MAX_TOKENS)
    for stream in (False, True):
        again = decode(b"".join(encode(cut, stream=stream)))
        assert [part.closed for part in again.tool_calls] == [True, False]


@pytest.mark.parametrize(("lost", "part"), [
    ("reasoning.signature", ReasoningPart("hm", "sig")),
    ("call.signature", ToolCall("c", "f", "{}", True, signature="sig", status="completed")),
])
def test_what_the_format_loses_is_said(lost: str, part: Any) -> None:
    first = answer(part)
    again = decode(b"".join(encode(first)))
    assert essence(again, LOSES) == essence(first, LOSES)
    assert essence(again, set(LOSES) - {lost}) != essence(first, set(LOSES) - {lost})


def test_a_continuation_token_is_lost() -> None:
    first = ChatResponse("openai_responses", (), StopReason(Stop.END_TURN, "completed"),
                         continuation_token="t")
    again = decode(b"".join(encode(first)))
    assert essence(again, LOSES) == essence(first, LOSES)
    assert essence(again) != essence(first)


def test_the_official_sdk_reads_what_is_encoded() -> None:
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")
    for data in samples():
        first = decode(data)
        if first.error is not None or first.raw_stop_reason != "completed":
            continue

        def respond(request: Any, first: ChatResponse = first) -> Any:
            stream = json.loads(request.content).get("stream") is True
            kind = "text/event-stream" if stream else "application/json"
            return httpx2.Response(200, headers={"content-type": kind}, content=b"".join(encode(first, stream=stream)))

        http = httpx2.Client(transport=httpx2.MockTransport(respond))
        client = openai.OpenAI(api_key="k", http_client=http, max_retries=0)
        parsed = client.responses.create(model="m", input="x")
        assert parsed.status == "completed"
        assert parsed.output_text == (first.text or "")
        calls = [(item.call_id, item.name, item.arguments) for item in parsed.output if item.type == "function_call"]
        mine = [call for call in first.tool_calls if call.kind is CallKind.FUNCTION and call.form is ArgsForm.STRING]
        if all(call.form is ArgsForm.STRING for call in first.tool_calls):
            assert calls == [(call.id, call.name, call.arguments) for call in mine]
        events = list(client.responses.create(model="m", input="x", stream=True))
        assert events[-1].type == "response.completed"
        assert events[-1].response.output_text == (first.text or "")
        if all(type(part) is TextPart or getattr(part, "form", None) is ArgsForm.STRING for part in first.parts):
            with client.responses.stream(model="m", input="x") as accumulating:
                assert accumulating.get_final_response().output_text == (first.text or "")
        texts = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert texts == (first.text or "")
        pieces = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
        assert pieces == "".join(call.arguments or "" for call in mine)
        http.close()


# -- requests and recognition ----------------------------------------------------------------------------------------

def test_a_request() -> None:
    request = read_request({
        "model": "gpt-5", "instructions": "Be brief.", "input": "Hi", "max_output_tokens": 100, "stream": True,
        "previous_response_id": "resp_0", "background": True, "tool_choice": "required",
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "description": "d"},
                  {"type": "function", "function": {"name": "g", "parameters": {}}},
                  {"type": "custom", "name": "sh"}, {"type": "web_search"},
                  {"type": "mcp", "server_label": "dice"}, {"type": "apply_patch"}, {"type": "local_shell"},
                  {"type": "computer_use_preview"}, {"type": "computer"}, {"type": "shell"},
                  {"type": "shell", "environment": {"type": "container_auto"}},
                  {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "h"}]}, "odd"],
    })
    assert [(message.role, message.text) for message in request.messages] == [(Role.SYSTEM, "Be brief."),
                                                                              (Role.USER, "Hi")]
    assert (request.model, request.max_tokens, request.stream, request.n) == ("gpt-5", 100, True, 1)
    assert (request.previous_id, request.background, request.tool_choice) == ("resp_0", True, "any")
    assert [(tool.name, tool.kind) for tool in request.tools] == [
        ("f", CallKind.FUNCTION), ("g", CallKind.FUNCTION), ("sh", CallKind.CUSTOM), ("web_search", CallKind.SERVER),
        ("dice", CallKind.SERVER), ("apply_patch", CallKind.CUSTOM), ("local_shell", CallKind.CUSTOM),
        ("computer", CallKind.CUSTOM), ("computer", CallKind.CUSTOM), ("shell", CallKind.CUSTOM),
        ("shell", CallKind.SERVER),
        ("h", CallKind.FUNCTION)]
    assert request.tools[0].schema == {"type": "object"}
    assert request.tools[0].description == "d"


@each_row(("choice", "read"), [
    ("auto", "auto"), ("none", "none"), ("required", "any"), ("any", "any"), ("odd", None), (None, None), (7, None),
    ({"type": "function", "name": "f"}, "tool:f"), ({"type": "function", "function": {"name": "f"}}, "tool:f"),
    ({"type": "custom", "name": "sh"}, "tool:sh"), ({"type": "web_search"}, "tool:web_search"),
    ({"type": "computer_use_preview"}, "tool:computer"), ({"type": "allowed_tools", "mode": "required"}, "any"),
    ({"type": "allowed_tools", "mode": "auto"}, "auto"),
])
def test_the_choice_of_a_tool(choice: Any, read: str | None) -> None:
    assert read_request({"tool_choice": choice}).tool_choice == read


def test_the_cap_in_every_spelling() -> None:
    for key in ("max_output_tokens", "max_completion_tokens", "max_tokens"):
        assert read_request({key: 5}).max_tokens == 5
    assert read_request({"max_output_tokens": None, "max_tokens": 7}).max_tokens == 7
    assert read_request({"max_output_tokens": "5"}).max_tokens is None


def test_a_history() -> None:
    request = read_request({"input": [
        {"role": "developer", "content": "Rules"}, {"role": "system",
                                                    "content": [{"type": "input_text", "text": "More"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"},
                                                        {"type": "input_image", "image_url": "u"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
         "encrypted_content": "g"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}',
         "status": "completed"},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "sh", "input": "ls"},
        {"type": "shell_call", "call_id": "call_3", "action": {"commands": []}},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "function_call_output", "call_id": "call_1", "output": "42"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "a"}]},
        {"type": "shell_call_output", "call_id": "call_3", "output": [{"stdout": "x"}]},
        {"type": "item_reference", "id": "msg_9"}, 3,
    ]})
    roles = [message.role for message in request.messages]
    assert roles == [Role.SYSTEM, Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.TOOL,
                     Role.ASSISTANT]
    assert [type(part).__name__ for part in request.messages[2].parts] == ["TextPart", "OpaquePart"]
    parts = request.messages[3].parts
    assert parts[0] == ReasoningPart("hm", None, "g", "rs_1")
    assert parts[1] == TextPart("Let me see.")
    assert [(part.id, part.kind, part.closed) for part in parts[2:] if isinstance(part, ToolCall)] == [
        ("call_1", CallKind.FUNCTION, True), ("call_2", CallKind.CUSTOM, True), ("call_3", CallKind.CUSTOM, True),
        ("ws_1", CallKind.SERVER, True)]
    results = [message.results[0] for message in request.messages[4:7]]
    assert [(result.call_id, result.text) for result in results] == [("call_1", "42"), ("call_2", "a"),
                                                                     ("call_3", '[{"stdout": "x"}]')]


@each_row(("kind", "key"), [
    ("function_call_output", "call_id"), ("custom_tool_call_output", "call_id"), ("computer_call_output", "call_id"),
    ("shell_call_output", "call_id"), ("apply_patch_call_output", "call_id"), ("tool_search_output", "call_id"),
    ("local_shell_call_output", "id"), ("mcp_approval_response", "approval_request_id"),
])
def test_what_answers_a_call(kind: str, key: str) -> None:
    (message,) = read_request({"input": [{"type": kind, key: "call_1", "output": "done",
                                          "status": "completed"}]}).messages
    assert message.role is Role.TOOL
    assert (message.results[0].call_id, message.results[0].text, message.results[0].is_error) == ("call_1", "done",
                                                                                                  False)
    assert read_request({"input": [{"type": kind, key: "c", "status": "incomplete"}]}).messages[0].results[0].is_error


def test_roles_and_odd_requests() -> None:
    for role, read in (("user", Role.USER), ("assistant", Role.ASSISTANT), ("system", Role.SYSTEM),
                       ("developer", Role.SYSTEM),
                       ("tool", Role.TOOL), ("odd", Role.USER)):
        assert read_request({"input": [{"role": role, "content": "x"}]}).messages[0].role is read
    marks = read_request({"input": [{"type": "additional_tools", "role": "developer", "tools": []}]}).messages[0]
    assert (marks.role, type(marks.parts[0])) == (Role.SYSTEM, OpaquePart)
    listed = read_request({"instructions": [{"role": "developer", "content": "Rules"}], "input": "Hi"})
    assert [message.role for message in listed.messages] == [Role.SYSTEM, Role.USER]
    objects = read_request({"input": [{"type": "function_call", "name": "f",
                                       "arguments": {"a": 1}}]}).messages[0].tool_calls[0]
    assert (objects.arguments, objects.form) == ('{"a": 1}', ArgsForm.OBJECT)
    for odd in ({}, {"input": 3, "tools": 4, "tool_choice": [], "instructions": {}},
                {"input": [{"type": []}, {}, None]}):
        assert read_request(odd).max_tokens is None


def test_what_is_recognised() -> None:
    assert recognises(body())
    assert recognises(creation(), "response.created")
    assert recognises(piece("output_text", "x"))
    assert recognises({"type": "response.output_text.delta", "item_id": "m", "delta": "x"})
    assert recognises({"type": "error", "message": "x", "sequence_number": 3}, "error")
    for other in ({"type": "error", "error": {}}, {"error": {}}, {"object": "chat.completion"}, {"object": "response"},
                  {"type": "message_start"}, {"type": 3}, {"type": "response.odd"}, {}):
        assert not recognises(other)


@each_row(("path", "found"), [
    ("/v1/responses", True), ("/openai/responses?api-version=1", True), ("/v1/responses/", True),
    ("/v1/responses/resp_1", True),
    ("/v1/responses/resp_1/cancel", True), ("/v1/responses/input_tokens", False), ("/v1/chat/completions", False),
])
def test_paths(path: str, found: bool) -> None:
    assert any(pattern.search(path) for pattern in PATHS) is found


# -- recorded traffic ------------------------------------------------------------------------------------------------

def corpus() -> Path:
    path = Path(os.environ.get("LOOP_INSPECTOR_CORPUS", Path(__file__).resolve().parents[3] / "shared" / "corpus"))
    if not (path / "expected.jsonl").is_file():
        pytest.skip("the corpus of recorded traffic is not here")
    return path


def recordings() -> Iterator[tuple[dict[str, Any], bytes, dict[str, Any]]]:
    root = corpus()
    lines = (root / "expected.jsonl").read_text(encoding="utf-8").splitlines()
    facts = [fact for fact in map(json.loads, lines) if fact["api"] == "openai_responses"]
    files: dict[str, Any] = {}
    for fact in facts:
        if fact["har"] not in files:
            files[fact["har"]] = json.loads((root / "har" / fact["har"]).read_text(encoding="utf-8"))["log"]["entries"]
        entry = files[fact["har"]][fact["entry"]]
        content = entry["response"]["content"]
        text = content.get("text") or ""
        yield fact, base64.b64decode(text) if content.get("encoding") == "base64" else text.encode(), entry


KINDS = {
    "ok_text": {Stop.END_TURN}, "ok_empty": {Stop.END_TURN}, "tool_call": {Stop.END_TURN},
    "truncated_text": {Stop.MAX_TOKENS}, "truncated_empty": {Stop.MAX_TOKENS},
    "filtered_or_refused": {Stop.SAFETY_BLOCKED},
    "background_pending": {Stop.PAUSED}, "error_midstream": {Stop.ERROR}, "error_body_200": {Stop.ERROR},
    "http_error": {Stop.ERROR}, "incomplete_other": {Stop.INTERRUPTED},
}


# Pieces that whoever stored these streams left out: the last event still has the whole text.
SHORTENED = {name: {"openai_responses.text_differs"} for name in ("ai-39dca02c84", "ai-ccf96ddd3e")}


def test_recorded_responses() -> None:
    seen = 0
    for fact, data, entry in recordings():
        seen += 1
        status = entry["response"].get("status") or None
        found = decode(data, http_status=status)
        expected = fact["raw_stop_reasons"][0] if fact["raw_stop_reasons"] else None
        if expected == "incomplete" and fact["other_fields"].get("incomplete_reason"):
            expected = f"incomplete:{fact['other_fields']['incomplete_reason']}"
        assert found.raw_stop_reason == expected, fact["id"]
        assert found.stop_reason.normalized in KINDS[fact["kinds"][0]], fact["id"]
        calls = [call for call in found.tool_calls if call.kind is CallKind.FUNCTION]
        assert [(c.name, (c.arguments or "")[:400]) for c in calls] == [(t["name"],
                                                                         t["args"]) for t in fact["tools"]], fact["id"]
        assert all(call.closed for call in calls), fact["id"]
        assert rules(found) == SHORTENED.get(fact["id"], set()), fact["id"]
        for stream in (False, True):
            again = decode(b"".join(encode(found, stream=stream)), http_status=status)
            assert essence(again, LOSES) == essence(found, LOSES), fact["id"]
    assert seen == 234


def test_recorded_requests() -> None:
    seen = 0
    for fact, _, entry in recordings():
        text = (entry["request"].get("postData") or {}).get("text")
        if not text:
            continue
        sent = json.loads(text)
        request = read_request(sent, entry["request"]["url"])
        assert request.max_tokens == sent.get("max_output_tokens"), fact["id"]
        assert request.stream is (sent.get("stream") is True)
        assert request.messages, fact["id"]
        seen += 1
    assert seen == 200
