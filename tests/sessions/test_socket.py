"""Responses over a WebSocket: which message belongs to which answer, and that it reads as the same stream over HTTP."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.report.lines.wire import wire as wire_sheet
from inspector.sessions import open_paths
from inspector.sessions.provenance import provenance
from loop_core.errors import EncodeError
from loop_core.values import ChatResponse as Response
from loop_core.values import ReasoningPart, Stop, StopReason, TextPart, ToolCall, TransportEnd, Usage
from loop_core.wire import decode, wire
from loop_core.wire.framing import TextSequence, text_sequence
from tests.report.test_verdict import only
from tests.scenes.bodies import entry, har
from tests.scenes.essence import essence
from tests.scenes.recordings import show
from tests.scenes.rows import each_row

URL = "wss://api.openai.com/v1/responses"
API = "openai_responses"


def request(when=1.0, **event):
    return {"type": "send", "time": when, "opcode": 1, "data": json.dumps({"type": "response.create", **event})}


def receive(when=2.0, opcode=1, **event):
    data = json.dumps(event)
    return {"type": "receive", "time": when, "opcode": opcode,
            "data": base64.b64encode(data.encode()).decode() if opcode == 2 else data}


def socket(*messages, url=URL, **more):
    source = entry(None, None, url=url, status=101, method="GET")
    return {**source, "_resourceType": "websocket", "_webSocketMessages": list(messages), **more}


def answer(text, key="resp_1", status="completed", **more):
    """The events of one answer: its beginning, a piece of text, its end."""
    output = [{"type": "message", "id": "msg_1", "role": "assistant", "status": status,
               "content": [{"type": "output_text", "text": text}]}]
    response = {"id": key, "object": "response", "model": "m", "output": []}
    return (receive(type="response.created", response={**response, "status": "in_progress"}),
            receive(3.5, type=f"response.{status}", response={**response, "status": status, "output": output, **more}))


ASK = {"model": "m", "input": [{"role": "user", "content": "hi"}], "max_output_tokens": 40}


# -- the same as over HTTP -------------------------------------------------------------------------------------------

ENDS = [("completed", Stop.END_TURN), ("incomplete:max_output_tokens", Stop.MAX_TOKENS), ("failed", Stop.ERROR),
        (None, Stop.INTERRUPTED)]
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
responses = st.builds(
    lambda end, parts, usage: Response(API, tuple(parts), StopReason(end[1], end[0]), usage, id="r", model="m"),
    st.sampled_from(ENDS),
    st.lists(st.one_of(
        st.builds(TextPart, texts), st.builds(ReasoningPart, texts, item_id=st.just("rs_1"), json=st.none()),
        st.builds(lambda given: ToolCall("call_1", "f", json.dumps({"a": given}), True, status="completed"), texts),
    ), max_size=3),
    st.one_of(st.none(), st.just(Usage(5, 7))),
)


def payloads(stream):
    """The JSON texts of an event stream, by the HTML standard."""
    lines = [event.split(b"\n") for event in stream.split(b"\n\n")]
    return [b"\n".join(line[6:] for line in event if line[:6] == b"data: ") for event in lines if event != [b""]]


@settings(max_examples=80, deadline=None)
@given(responses, st.integers(1, 7), st.integers(1, 60))
def test_frames_decode_to_the_same_response_as_events(response, chunk, size):
    try:
        stream = b"".join(wire(API).encode(response, stream=True, chunk=chunk))
    except EncodeError:  # what the format cannot carry is no answer of it
        return
    frames = [each for each in payloads(stream) if each and each != b"[DONE]"]
    body = text_sequence(frames)
    twin, got = decode(API, stream), decode(API, body)
    assert essence(got) == essence(twin)
    assert got.parts == tuple(part if not isinstance(part, ToolCall) else now
                              for part, now in zip(twin.parts, got.parts, strict=True))
    assert (got.saw_stop_reason, got.streaming) == (twin.saw_stop_reason, True)
    assert [found.rule for found in got.findings] == [found.rule for found in twin.findings]
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    assert decode(API, pieces).stop_reason == got.stop_reason
    for seen in got.stop_reason.evidence:  # each place is a frame, or the end of the body
        assert body[seen.at.start : seen.at.end] in [*frames, b""]


def test_a_message_may_hold_line_breaks():
    pretty = json.dumps({"type": "response.completed", "response": {"id": "r", "status": "completed"}}, indent=2)
    got = decode(API, text_sequence([pretty.encode()]))
    assert got.raw_stop_reason == "completed"
    at = got.stop_reason.evidence[0].at
    assert text_sequence([pretty.encode()])[at.start : at.end].decode() == pretty


def test_texts_of_a_sequence_have_places_whatever_the_chunks():
    body = text_sequence([b'{"a": 1}', b"[\n]", b"x"])
    framing = TextSequence()
    whole = [*framing.feed(body), *framing.flush()]
    assert [(payload, body[start:end]) for payload, _, start, end in whole] == [
        (b'{"a": 1}', b'{"a": 1}'), (b"[\n]", b"[\n]"), (b"x", b"x")]
    for cut in range(len(body)):
        framing = TextSequence()
        assert [*framing.feed(body[:cut]), *framing.feed(body[cut:]), *framing.flush()] == whole


def test_facts_point_into_frames(load):
    (read,) = load(har(socket(request(**ASK), *answer("hello")))).exchanges
    found = provenance(read.api, read.body, read.response)
    (text,) = {read.body[piece.start : piece.end] for piece in found.of("text")}
    assert text == b'"hello"'
    (reason,) = {read.body[piece.start : piece.end] for piece in found.of("stop_reason")}
    assert reason == b'"completed"'


# -- which message belongs to which answer ---------------------------------------------------------------------------


@pytest.mark.parametrize("opcode", [1, 2])
def test_one_response_for_each_that_was_asked_for(load, opcode):
    messages = [
        request(1.0, **ASK), receive(1.5, opcode, type="codex.rate_limits", limits={}),
        *answer("one"), request(4.0, previous_response_id="resp_1", **{**ASK, "input": []}), *answer("two", "resp_2"),
    ]
    loaded = load(har(entry(None, "x", url="https://example.com/", method="GET"), socket(*messages)))
    first, second = loaded.exchanges
    assert [(each.response.text, each.response.id, each.entry) for each in (first, second)] == [
        ("one", "resp_1", 1), ("two", "resp_2", 1)]
    assert first.api == API
    assert first.request.max_tokens == 40
    assert first.request.messages[0].text == "hi"
    assert "type" not in first.request_json
    assert second.request.previous_id == "resp_1"
    assert first.response.streaming
    assert first.messages == (1, 2, 3)
    assert second.messages == (5, 6)
    assert [chunk.ms for chunk in first.chunks] == [500.0, 1000.0, 2500.0]
    assert [first.body[: chunk.end].count(b"\x1e") for chunk in first.chunks] == [1, 2, 3]
    assert first.duration_ms == 2500.0


def test_answers_that_are_asked_for_at_once_go_by_their_order_or_their_lane(load):
    (one, two), (three, four) = answer("a", "r1"), answer("b", "r2")
    piped = load(har(socket(request(**ASK), request(**ASK), one, two, three, four))).exchanges
    assert [each.response.text for each in piped] == ["a", "b"]
    lanes = [{**message, "data": json.dumps({**json.loads(message["data"]), "stream_id": lane})}
             for message, lane in ((one, "x"), (three, "y"), (four, "y"), (two, "x"))]
    asked = [request(stream_id="x", **ASK), request(stream_id="y", **ASK)]
    assert [each.response.text for each in load(har(socket(*asked, *lanes))).exchanges] == ["a", "b"]


@pytest.mark.parametrize("end", [
    receive(type="response.failed", response={"id": "r1", "status": "failed", "error": {"code": "server_error"}}),
    receive(type="response.cancelled", response={"id": "r1", "status": "cancelled"}),
    receive(type="error", error={"code": "slow_down", "message": "Later."}),
])
def test_whatever_ends_an_answer_the_next_event_is_of_the_next_one(load, end):
    first, second = load(har(socket(request(**ASK), request(**ASK), end, answer("b", "r2")[1]))).exchanges
    assert (first.messages, second.messages) == ((2,), (3,))
    assert second.response.text == "b"


def test_a_successor_that_the_server_begins_by_itself_is_an_answer_without_a_request(load):
    steered = answer("a", "r1", "incomplete", incomplete_details={"reason": "steered"})
    note = receive(type="response.steer.accepted", steer={"id": "s"}, sequence_number=3)
    first, second = load(har(socket(request(**ASK), note, *steered, *answer("b", "r2")))).exchanges
    assert (first.response.stop_reason.normalized, first.response.stop_reason.detail) == (Stop.PAUSED, "server")
    assert (second.response.text, second.request) == ("b", None)


def test_what_follows_an_end_stays_with_its_answer(load):
    late = receive(type="response.steer.pending", reason="waiting_for_required_input", steer={}, sequence_number=9)
    (read,) = load(har(socket(request(**ASK), *answer("a"), late))).exchanges
    assert read.messages == (1, 2, 3)


@pytest.mark.parametrize("shape", [
    lambda event: event, lambda event: {"response": event},
])
def test_a_request_is_read_in_either_shape(load, shape):
    (read,) = load(har(socket(request(**shape(ASK)), *answer("a")))).exchanges
    assert (read.request.model, read.request.max_tokens) == ("m", 40)


def test_a_warm_up_asks_for_no_answer(load):
    warm = request(generate=False, **ASK)
    loaded = load(har(socket(warm, *answer("", "r0"), request(**ASK), *answer("a"))))
    assert [each.response.text for each in loaded.exchanges] == ["a"]
    assert "warms up" in loaded.inputs[0].skipped[0].why


def test_other_sockets_are_no_llm_traffic(load):
    loaded = load(har(socket({"type": "send", "time": 1, "opcode": 1, "data": "hello"}, url="wss://chat.example/ws"),
                      socket(request(**ASK), url="wss://api.openai.com/v1/realtime?model=x")))
    assert loaded.exchanges == ()
    assert [skip.entry for skip in loaded.inputs[0].skipped] == [0, 1]


@each_row("odd", [
    None, 5, {}, {"type": "receive"}, {"type": "receive", "opcode": 9, "data": "x"}, {"type": 5, "data": "x"},
    {"type": "receive", "opcode": 2, "data": "no base64!"}, {"type": "send", "opcode": 1, "data": "[1]"},
    {"type": "receive", "opcode": 8, "data": ""},
])
def test_odd_messages_are_passed_over(load, odd):
    (read,) = load(har(socket(request(**ASK), odd, *answer("a"), odd))).exchanges
    assert (read.response.text, read.response.stop_reason.normalized) == ("a", Stop.END_TURN)


# -- how it ends -----------------------------------------------------------------------------------------------------


def test_an_error_event_is_an_error_with_the_status_that_it_states(load):
    error = receive(type="error", status=429, error={"type": "too_many", "message": "Slow."})
    (read,) = load(har(socket(request(**ASK), error))).exchanges
    assert read.response.stop_reason.normalized is Stop.ERROR
    assert read.response.error.message == "Slow."
    assert read.response.error.retryable


def test_a_connection_that_broke_and_one_that_was_not_recorded_further(load):
    begun = answer("a")[0]
    broken = {"type": "error", "time": 3, "opcode": -1, "data": "net::ERR"}
    (read,) = load(har(socket(request(**ASK), begun, broken))).exchanges
    assert (read.response.stop_reason.normalized, read.response.transport_end) == (
        Stop.INTERRUPTED, TransportEnd.RESET)
    whole = har(socket(request(**ASK), begun, *answer("later")[1:]))
    cut = whole[: whole.index("later") + 2]
    (read,) = load(cut, "cut.har").exchanges
    assert read.response.stop_reason.detail == "recording_cut"
    assert read.messages[0] == 1


def test_an_answer_cut_by_its_budget_is_judged_and_shown_with_its_frames():
    output = {"incomplete_details": {"reason": "max_output_tokens"}}
    source = har(socket(request(**ASK), *answer("a", status="incomplete", **output))).encode()
    found = show(data=source)
    assert only(found).verdict.id == "truncated"
    facts = found.responses[0]
    (seen,) = facts.judgement.stop.evidence
    frame = facts.exchange.body[seen.at.start : seen.at.end]
    assert json.loads(frame)["type"] == "response.incomplete"
    sheet = wire_sheet(facts, "events")
    text = "\n".join("".join(span.text for span in sheet.line(number)) for number in range(len(sheet)))
    assert "2 frames of a WebSocket" in text
    assert "+1,000ms message 1" in text
    assert "+2,500ms after 1.5 s message 2" in text


def test_a_session_file_of_such_an_answer_reads_alike(tmp_path, load):
    from inspector.export.exchange_files import records
    from inspector.sessions.native import session_bytes

    (read,) = load(har(socket(request(**ASK), *answer("a")))).exchanges
    path = tmp_path / "s.jsonl"
    path.write_bytes(session_bytes(records([read])))
    (again,) = open_paths([str(path)]).exchanges
    assert (again.body, essence(again.response)) == (read.body, essence(read.response))


@pytest.mark.parametrize("end", ["response.completed", "response.done"])
def test_what_follows_an_end_belongs_to_the_next_answer(load, end):
    """Two answers are asked for at once, so that only the end of the first tells where the second begins."""
    first, last = answer("one")
    event = {**json.loads(last["data"]), "type": end}
    seen = load(har(socket(request(**ASK), request(**ASK), first, receive(**event),
                           *answer("two", "resp_2")))).exchanges
    assert [each.response.text for each in seen] == ["one", "two"]
    assert [each.response.stop_reason.normalized for each in seen] == [Stop.END_TURN, Stop.END_TURN]
