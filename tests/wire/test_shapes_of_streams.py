"""Streams that are no event streams by the standard and are sent all the same: every format reads them alike."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from inspector.sessions.provenance import provenance
from loop_core.values import ChatResponse, OpaquePart, Stop, StopReason, TextPart, ToolCall, Usage
from loop_core.wire import FORMATS, decode, decoder, wire
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.essence import essence
from tests.scenes.rows import each_row

ENDS = {"openai_chat": "tool_calls", "openai_responses": "completed", "anthropic_messages": "tool_use",
        "gemini_generate": "STOP"}
"""The formats that stream as server-sent events, and how an answer with a call ends there."""


def stream(api: str) -> bytes:
    parts = (TextPart("Hello world"), ToolCall("call_1", "ls", '{"path":"."}', closed=True))
    said = ChatResponse(api, parts, StopReason(Stop.TOOL_CALL, ENDS[api]), Usage(5, 7), id="r_1", model="m")
    return b"".join(wire(api).encode(said, stream=True, chunk=4)).replace(b"\r\n", b"\n")


def rules(response: ChatResponse) -> set[str]:
    return {found.rule for found in response.findings}


# -- one line break between events -----------------------------------------------------------------------------------


@each_row("api", ENDS)
@each_row("break_", [b"\n", b"\r\n", b"\r"])
def test_events_that_are_parted_by_one_line_break_are_read(api: str, break_: bytes) -> None:
    data = stream(api)
    single = data.replace(b"\n\n", b"\n").replace(b"\n", break_)
    twin, got = decode(api, data), decode(api, single)
    assert essence(got) == essence(twin)
    assert rules(got) == rules(twin) | {"frame.single_newline"}
    assert (got.saw_done, got.saw_stop_reason, got.streaming) == (twin.saw_done, twin.saw_stop_reason, True)
    for size in (1, 7):
        parts = [single[at : at + size] for at in range(0, len(single), size)]
        assert essence(decode(api, parts)) == essence(twin)


@each_row("api", ENDS)
def test_their_facts_have_places_of_their_own(api: str) -> None:
    single = stream(api).replace(b"\n\n", b"\n")
    got = provenance(api, single)
    text = b"".join(single[read.start + 1 : read.end - 1] for read in got.of("text"))
    assert text == b"Hello world"
    (reason,) = {single[read.start : read.end] for read in got.of("stop_reason")}
    assert ENDS[api].encode() in reason


@pytest.mark.parametrize("api", ENDS)
def test_such_a_stream_that_is_cut_keeps_what_came(api: str) -> None:
    """At every byte it says as much as its twin that is cut inside the same event."""
    data = stream(api)
    single = data.replace(b"\n\n", b"\n")
    for cut in range(single.index(b"Hell") + 40, len(single), 11):
        got = decode(api, single[:cut])
        whole_events = single[:cut].count(b"\ndata: ")
        assert (got.text or "") in "Hello world"
        if whole_events > 4:
            assert got.text
        assert got.stop_reason.normalized is not Stop.TOOL_CALL or cut > single.index(ENDS[api].encode())


def test_lines_that_are_one_json_text_together_are_one_event() -> None:
    pretty = json.dumps({"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}, indent=1)
    data = "".join(f"data: {line}\n" for line in pretty.split("\n")) + "\n"
    got = decode("openai_chat", data.encode())
    assert (got.text, got.raw_stop_reason) == ("Hi", "stop")
    assert "frame.single_newline" not in rules(got)


@each_row("second", ["1", '"a"', "null", "oops", '{"choices":'])
def test_lines_of_which_one_is_no_object_are_not_parted(second: str) -> None:
    first = json.dumps({"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]})
    got = decode("openai_chat", f"data: {first}\ndata: {second}\n\n".encode())
    assert got.text is None
    assert rules(got) == {"frame.invalid"}


# -- an error in a field of its own ----------------------------------------------------------------------------------

TOLD = {"code": 500, "message": "context shift is disabled", "type": "server_error"}


@each_row("api", ENDS)
@each_row("join", [b"\n\n", b"\n"])
def test_an_error_in_a_field_of_its_own_ends_a_stream(api: str, join: bytes) -> None:
    """llama.cpp writes `error: {…}` where others write an event."""
    events = stream(api).split(b"\n\n")
    kept = next(at for at, event in enumerate(events) if b"wor" in event or b"o wo" in event) + 1
    data = join.join([*events[:kept], b"error: " + json.dumps(TOLD).encode()]) + b"\n\n"
    got = decode(api, data, http_status=200)
    assert got.stop_reason.normalized is Stop.ERROR
    assert (got.stop_reason.detail or "").startswith("retryable")
    assert got.error is not None
    assert (got.error.message, got.error.type, got.error.code) == (TOLD["message"], "server_error", "500")
    assert got.text
    assert "Hello world".startswith(got.text)
    at = got.stop_reason.evidence[-1].at
    assert at is not None
    assert json.loads(data[at.start : at.end].removeprefix(b"error: ")) == TOLD
    (seen,) = {data[read.start : read.end] for read in provenance(api, data, got).of("error")}
    assert json.loads(seen) == TOLD


@each_row("api", ENDS)
@each_row(("field", "message"), [
    (b"error: the slot is gone", "the slot is gone"), (b'error: {"message": "cut he', '{"message": "cut he'),
    (b'error: "quoted"', "quoted"),
])
def test_an_error_in_words_is_its_message(api: str, field: bytes, message: str) -> None:
    for data in (field, field + b"\n\n", stream(api)[: stream(api).index(b"\n\n") + 2] + field):
        for chunks in ([data], [data[:3], data[3:]]):
            got = decode(api, chunks, http_status=200)
            assert got.stop_reason.normalized is Stop.ERROR
            assert got.error is not None
            assert got.error.message == message


def test_the_text_of_an_http_error_that_begins_like_a_field_stays_whole() -> None:
    got = decode("openai_chat", b"error: upstream\nconnect timeout", http_status=503)
    assert got.error is not None
    assert got.error.message == "error: upstream\nconnect timeout"


# -- redirects -------------------------------------------------------------------------------------------------------


@each_row("api", FORMATS)
@each_row("status", [301, 302, 303, 307, 308])
@each_row("body", [b"", b"<html>Moved</html>", b'{"detail": "moved"}'])
def test_a_redirect_is_told_with_its_status_and_where_it_leads(api: str, status: int, body: bytes) -> None:
    headers: list[tuple[str, str]] = [("Location", "https://new.example/v1/x")]
    got = decode(api, body, http_status=status, headers=headers)
    assert got.stop_reason.normalized is Stop.ERROR
    assert got.stop_reason.detail == "fatal"
    assert got.error is not None
    assert str(status) in got.error.message
    assert "https://new.example/v1/x" in got.error.message
    (seen,) = got.stop_reason.evidence
    assert seen.rule == "error.redirect"
    assert seen.at is not None
    assert (seen.at.part, seen.at.pointer) == ("headers", "location")


def test_a_redirect_without_a_location_says_so() -> None:
    got = decode("openai_chat", b"", http_status=302)
    assert got.error is not None
    assert "no Location" in got.error.message


def test_an_answer_under_a_redirect_status_is_still_an_answer() -> None:
    body: dict[str, Any] = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    got = decode("openai_chat", json.dumps(body).encode(), http_status=302, headers=[("location", "/x")])
    assert (got.text, got.stop_reason.normalized) == ("Hi", Stop.END_TURN)
    assert got.error is None


# -- streams of very many events -------------------------------------------------------------------------------------

CONVERSE_DELTA = b'{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {%s}}}\n'


@pytest.mark.parametrize(("api", "first", "next_", "size"), [
    ("anthropic_messages", b"",
     b'data: {"type": "message_start", "message": {"id": "m%d", "content": [{"type": "text"}]}}\n\n', 2),
    ("bedrock_converse", b'{"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolResult": {}}}}\n',
     CONVERSE_DELTA % b'"toolResult": [{"text": "a"}]', 6),
    ("gemini_interactions", b'data: {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}}\n\n',
     b'data: {"event_type": "step.delta", "index": 0, "delta": {"type": "image", "data": "abcdefghij"}}\n\n', 12),
])
def test_a_value_of_many_pieces_costs_no_more_than_its_length(api: str, first: bytes, next_: bytes, size: int) -> None:
    """They cost up to sixteen times as much as a quarter of them when each piece cost as much as all before it."""

    def make(count: int) -> bytes:
        return first + (b"".join(next_ % number for number in range(count)) if b"%d" in next_ else next_ * count)

    def read(body: bytes) -> None:
        reading = decoder(api)
        reading.feed(body)
        assert reading.close().parts

    assert growth(read, make, size * 250_000 // len(next_)) < IN_PROPORTION


def test_the_pieces_of_a_result_are_joined_in_order() -> None:
    start = b'{"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolResult": {"content": [{"text": "1"}]}}}}\n'
    body = start + b"".join(CONVERSE_DELTA % (b'"toolResult": [{"text": "%d"}]' % number) for number in (2, 3))
    (part,) = decode("bedrock_converse", body).parts
    assert isinstance(part, OpaquePart)
    assert json.loads(part.json)["toolResult"]["content"] == [{"text": "1"}, {"text": "2"}, {"text": "3"}]


def test_no_call_of_an_earlier_message_is_closed_by_a_later_one() -> None:
    """Of three messages in one stream, the first two broke off."""
    body = b""
    for number in range(3):
        block = {"type": "tool_use", "id": f"t{number}", "name": "ls", "input": {}}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {"id": f"m{number}"}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_stop", "index": 0}]
        body += b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    assert [call.closed for call in decode("anthropic_messages", body).tool_calls] == [False, False, True]


MANY = range(4_000)


@pytest.mark.parametrize(("api", "body"), [
    ("openai_chat", {"choices": [{"message": {"tool_calls": [
        {"id": f"c{number}", "function": {"name": "f", "arguments": {"a": number}}} for number in MANY]},
        "finish_reason": "tool_calls"}]}),
    ("anthropic_messages", {"content": [
        {"type": "tool_use", "id": f"c{number}", "name": "f", "input": {"a": number}} for number in MANY],
        "stop_reason": "tool_use"}),
    ("gemini_generate", {"candidates": [{"content": {"parts": [
        {"functionCall": {"name": "f", "args": {"a": number}}} for number in MANY]}, "finishReason": "STOP"}]}),
    ("bedrock_converse", {"output": {"message": {"content": [
        {"toolUse": {"toolUseId": f"c{number}", "name": "f", "input": {"a": number}}} for number in MANY]}},
        "stopReason": "tool_use"}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_each_of_many_calls_of_a_whole_body_is_found_without_a_pass_over_all(api: str, body: dict[str, Any]) -> None:
    """They took 10 to 60 seconds."""
    data = json.dumps(body).encode()
    began = time.process_time()
    calls = decode(api, data).tool_calls
    assert time.process_time() - began < 4
    assert [call.arguments for call in calls] == [f'{{"a": {number}}}' for number in MANY]
    last = calls[-1].at
    assert last is not None
    assert b'"a": 3999' in data[last.start : last.end]
    assert b'"a": 3998' not in data[last.start : last.end]
