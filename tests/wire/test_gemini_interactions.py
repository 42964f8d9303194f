"""Gemini Interactions: fixtures written from the SDK's types; the SDK itself and recorded traffic are referees."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from loop_core.client.outgoing import request_for
from loop_core.errors import EncodeError
from loop_core.judge.classify import judge
from loop_core.judge.gate import Admission, admit_all
from loop_core.reader import read
from loop_core.turn.machine import begin, step
from loop_core.turn.state import ProviderResponse, Send, Tick
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
    Tool,
    ToolCall,
    ToolResultPart,
    Usage,
)
from loop_core.wire import decode, wire
from loop_core.wire.profiles import PROFILES
from tests.scenes.essence import essence
from tests.scenes.rows import each_row

API = "gemini_interactions"
FORMAT = wire(API)
SAID = {"type": "model_output", "content": [{"type": "text", "text": "Hello."}]}
CALLED = {"type": "function_call", "id": "c1", "name": "f", "arguments": {"n": 1}}
THOUGHT = {"type": "thought", "summary": [{"type": "text", "text": "Think."}], "signature": "c2ln"}


def whole(status: str | None, *steps: Mapping[str, Any], **more: Any) -> bytes:
    said = {} if status is None else {"status": status}
    return json.dumps({"id": "v1_x", "object": "interaction", "model": "m", **said, "steps": steps, **more}).encode()


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"event_type": kind, **more}


def sse(*events: Mapping[str, Any], done: bool = True) -> bytes:
    told = "".join(f"event: {each['event_type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    return (told + ("event: done\ndata: [DONE]\n\n" if done else "")).encode()


CREATED = event("interaction.created", interaction={"id": "v1_x", "object": "interaction", "model": "m",
                                                    "status": "in_progress"})


def completion(status: str = "completed", **more: Any) -> dict[str, Any]:
    return event("interaction.completed", interaction={"id": "v1_x", "status": status, **more})


def step_events(*deltas: Mapping[str, Any], begun: Mapping[str, Any], stop: bool = True) -> list[dict[str, Any]]:
    said = [event("step.start", index=0, step=begun)]
    said += [event("step.delta", index=0, delta=delta) for delta in deltas]
    return [*said, event("step.stop", index=0)] if stop else said


def rules(response: ChatResponse) -> list[str]:
    return [found.rule.removeprefix(f"{API}.") for found in response.findings]


# -- statuses --------------------------------------------------------------------------------------------------------

STATUSES: Mapping[str, tuple[Stop, str | None]] = {
    "completed": (Stop.END_TURN, None),
    "requires_action": (Stop.TOOL_CALL, None),
    "incomplete": (Stop.MAX_TOKENS, None),
    "budget_exceeded": (Stop.MAX_TOKENS, "budget"),
    "failed": (Stop.ERROR, "fatal"),
    "cancelled": (Stop.CANCELLED, None),
    "in_progress": (Stop.PAUSED, "poll"),
    "queued": (Stop.PAUSED, "poll"),
    "requires_continuation": (Stop.PAUSED, "token"),
    "idle": (Stop.UNKNOWN, "idle"),
    "dissolved": (Stop.UNKNOWN, None),
}


@each_row("status", STATUSES)
def test_a_status_says_how_an_interaction_ended(status: str) -> None:
    for data in (whole(status, SAID), sse(CREATED, *step_events({"type": "text", "text": "Hello."}, begun={
            "type": "model_output"}), completion(status))):
        found = decode(API, data)
        assert (found.stop_reason.normalized, found.stop_reason.detail, found.raw_stop_reason) == (
            *STATUSES[status], status)
        assert (found.text, found.id, found.saw_stop_reason) == ("Hello.", "v1_x", True)


def test_a_status_of_an_interaction_that_is_being_made_is_no_end() -> None:
    found = decode(API, sse(CREATED, event("interaction.status_update", interaction_id="v1_x", status="in_progress"),
                            *step_events({"type": "text", "text": "Hel"}, begun={"type": "model_output"}, stop=False),
                            done=False))
    assert (found.stop_reason.normalized, found.raw_stop_reason, found.text) == (Stop.INTERRUPTED, None, "Hel")
    waits = decode(API, sse(CREATED, done=False), background=True)
    assert (waits.stop_reason.normalized, waits.stop_reason.detail, waits.id) == (Stop.PAUSED, "poll", "v1_x")


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_an_interaction_that_waits_says_nothing_of_its_end(status: str) -> None:
    update = event("interaction.status_update", interaction_id="v1_x", status=status)
    found = decode(API, sse(update, *step_events({"type": "text", "text": "Hi"}, begun={"type": "model_output"}),
                            done=False))
    assert (found.stop_reason.normalized, found.raw_stop_reason) == (Stop.INTERRUPTED, None)
    waits = decode(API, sse(update, done=False), background=True)
    assert (waits.stop_reason.normalized, waits.raw_stop_reason) == (Stop.PAUSED, status)


def test_an_update_that_is_an_end_counts_and_the_last_interaction_goes_before_it() -> None:
    failed = event("interaction.status_update", interaction_id="v1_x", status="failed")
    assert decode(API, sse(CREATED, failed)).stop_reason.normalized is Stop.ERROR
    assert decode(API, sse(CREATED, failed, completion("cancelled"))).stop_reason.normalized is Stop.CANCELLED


def test_no_status_is_interrupted() -> None:
    assert decode(API, whole(None, SAID)).stop_reason.normalized is Stop.INTERRUPTED


def test_a_paused_interaction_has_its_token() -> None:
    for data in (whole("requires_continuation", SAID, continuation_token="dG9r"),
                 sse(CREATED, completion("requires_continuation", continuation_token="dG9r"))):
        assert decode(API, data).continuation_token == "dG9r"


@pytest.mark.parametrize(("body", "message", "code"), [
    ({"error": {"message": "no such field", "code": "invalid_request"}}, "no such field", "invalid_request"),
    ({"status": "failed", "errors": [{"message": "broke", "code": "internal"}]}, "broke", "internal"),
    ({"status": "completed", "steps": [{"type": "model_output", "error": {"code": 13, "message": "broke"}}]},
     "broke", "13"),
])
def test_errors_are_told_in_three_places(body: Any, message: str, code: str) -> None:
    found = decode(API, json.dumps(body).encode())
    assert found.error is not None
    assert (found.stop_reason.normalized, found.error.message, found.error.code) == (Stop.ERROR, message, code)
    assert found.stop_reason.evidence[-1].at is not None


def test_an_error_in_a_stream_ends_it() -> None:
    found = decode(API, sse(CREATED, event("error", error={"message": "overloaded", "code": "unavailable"})))
    assert (found.stop_reason.normalized, found.stop_reason.detail) == (Stop.ERROR, "retryable")


# -- steps -----------------------------------------------------------------------------------------------------------


def test_thoughts_texts_and_calls_are_parts_in_their_order() -> None:
    found = decode(API, whole("requires_action", THOUGHT, SAID, CALLED))
    thought, text, call = found.parts
    assert (thought, text) == (ReasoningPart("Think.", "c2ln"), TextPart("Hello."))
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments) == ("c1", "f", '{"n": 1}')
    assert (call.closed, call.form) == (True, ArgsForm.OBJECT)


def test_arguments_of_a_stream_are_the_characters_that_came() -> None:
    deltas = [{"type": "arguments_delta", "arguments": piece} for piece in ('{"n"', ": 1}")]
    for stop in (True, False):
        begun = {"type": "function_call", "id": "c1", "name": "f", "arguments": {}}
        found = decode(API, sse(CREATED, *step_events(*deltas, begun=begun, stop=stop), completion("requires_action")))
        (call,) = found.tool_calls
        assert (call.arguments, call.closed, call.form) == ('{"n": 1}', stop, ArgsForm.STRING)
        assert rules(found) == ([] if stop else ["step_not_closed"])


def test_an_open_call_without_characters_says_nothing_and_an_ended_one_says_an_object() -> None:
    begun = {"type": "function_call", "id": "c1", "name": "f", "arguments": {}}
    (call,) = decode(API, sse(CREATED, *step_events(begun=begun, stop=False), done=False)).tool_calls
    assert (call.arguments, call.closed) == ("", False)
    (call,) = decode(API, sse(CREATED, *step_events(begun=begun), completion("requires_action"))).tool_calls
    assert (call.arguments, call.closed, call.arguments_unsent) == ("{}", True, True)
    (call,) = decode(API, sse(CREATED, *step_events(begun={**begun, "arguments": {"n": 1}}), completion())).tool_calls
    assert (call.arguments, call.form) == ('{"n": 1}', ArgsForm.OBJECT)


@each_row(("status", "closed"), [
    ("requires_action", [True, True]), ("completed", [True, True]), ("incomplete", [True, False]),
    (None, [False, False]),
])
def test_a_whole_interaction_that_was_cut_may_have_cut_its_last_call(status: str | None, closed: list[bool]) -> None:
    another = {**CALLED, "id": "c2"}
    assert [call.closed for call in decode(API, whole(status, CALLED, another)).tool_calls] == closed


@each_row(("text", "held"), [
    ('{"n": 2}', True), ('{"n": true}', True), ('{"n":1}', False), ('{"n": 1, "m": 2}', True), ('{"n"', True),
    ("", False),
])
def test_a_call_that_began_with_other_arguments_is_held(text: str, held: bool) -> None:
    deltas = [{"type": "arguments_delta", "arguments": text}] if text else []
    body = sse(CREATED, *step_events(*deltas, begun=CALLED), completion("requires_action"))
    (verdict,) = read(API, body).calls
    assert (verdict.admission == "held") is held
    assert (verdict.rule == "gate.contradiction") is (held and text.endswith("}"))


@each_row(("begun", "text", "arguments"), [("", '{"n":1}', '{"n":1}'), ('{"n":1}', "", '{"n":1}'), ("", "", "")])
def test_a_call_may_begin_with_its_arguments_as_text(begun: str, text: str, arguments: str) -> None:
    deltas = [{"type": "arguments_delta", "arguments": text}] if text else []
    body = sse(CREATED, *step_events(*deltas, begun={**CALLED, "arguments": begun}), completion("requires_action"))
    (verdict,) = read(API, body).calls
    assert (verdict.call.arguments, verdict.admission) == (arguments, "ready" if arguments else "held")


@each_row(("steps", "admission", "odd"), [
    ([], "ready", []), ([SAID, CALLED], "ready", []), ([CALLED], "ready", []),
    ([SAID, {**CALLED, "arguments": {"n": 2}}], "held", ["call_differs"]),
    ([SAID, {**CALLED, "id": "c2", "arguments": {"n": 2}}], "held", ["call_differs", "call_unread_value"]),
    ([SAID, CALLED, {**CALLED, "id": "c2"}], "held", ["call_unread_value"]),
    ([{name: value for name, value in CALLED.items() if name != "id"}], "ready", []),
    ([{"type": "model_output", "content": [{"type": "text", "text": "Hello, you."}]}], "ready", ["text_differs"]),
])
def test_an_end_that_repeats_the_steps_is_compared_with_them(
    steps: list[dict[str, Any]], admission: str, odd: list[str]
) -> None:
    text = {"type": "text", "text": "Hello."}
    said = [{**each, "index": 1} for each in step_events(text, begun={"type": "model_output"})]
    call = step_events({"type": "arguments_delta", "arguments": '{"n":1}'}, begun={**CALLED, "arguments": {}})
    reading = read(API, sse(CREATED, *said, *call, completion("requires_action", steps=steps)))
    assert (reading.text, [each.admission for each in reading.calls]) == ("Hello.", [admission])
    assert rules(reading.response) == odd


def test_a_cut_call_is_held() -> None:
    tools = (Tool("f", {"type": "object"}),)
    request = Request(API, (Message(Role.USER, (TextPart("Go."),)),), "m", tools)
    response = decode(API, whole("incomplete", SAID, CALLED))
    judged = judge(response, request, PROFILES["gemini"])
    assert judged.stop.normalized is Stop.MAX_TOKENS
    assert [verdict.admission for verdict in admit_all(response.tool_calls, judged, tools)] == [Admission.HELD]


def test_steps_of_the_provider_stay_verbatim_whole_and_grown() -> None:
    search = {"type": "google_search_call", "id": "s", "arguments": {"queries": ["a  b"]}}
    image = {"type": "image", "mime_type": "image/png", "data": "QUJD"}
    found = decode(API, whole("completed", search, {"type": "model_output", "content": [image]}))
    assert [(part.type, json.loads(part.json)) for part in found.parts if isinstance(part, OpaquePart)] == [
        ("google_search_call", search), ("model_output.image", image)]
    begun = {"type": "google_search_call", "id": "s"}
    (grown,) = decode(API, sse(*step_events(search, begun=begun), completion())).parts
    assert isinstance(grown, OpaquePart)
    assert json.loads(grown.json) == search
    pieces = [{**image, "data": "QU"}, {"type": "image", "data": "JD"}]
    (shown,) = decode(API, sse(*step_events(*pieces, begun={"type": "model_output"}), completion())).parts
    assert isinstance(shown, OpaquePart)
    assert json.loads(shown.json) == image


@each_row("kind", ["image", "audio", "video", "document", "file"])
def test_a_content_that_is_no_text_stays_verbatim_and_its_data_grow(kind: str) -> None:
    whole_ = {"type": kind, "mime_type": "x/y", "data": "QUJD"}
    pieces = ({**whole_, "data": "QU"}, {"type": kind, "data": "JD"})
    found = decode(API, sse(*step_events(*pieces, begun={"type": "model_output"}), completion()))
    (part,) = found.parts
    assert isinstance(part, OpaquePart)
    assert (part.type, json.loads(part.json), rules(found)) == (f"model_output.{kind}", whole_, [])
    asked = FORMAT.read_request({"model": "m", "input": [{"type": "text", "text": "See:"}, whole_]})
    assert [message.role for message in asked.messages] == [Role.USER]


@pytest.mark.parametrize(("delta", "part"), [
    ({"type": "text", "text": "Hi"}, TextPart("Hi")),
    ({"type": "thought_summary", "content": {"type": "text", "text": "Hm."}}, ReasoningPart("Hm.")),
    ({"type": "thought_signature", "signature": "c2ln"}, ReasoningPart("", "c2ln")),
])
def test_a_delta_of_a_step_that_never_began_is_read_as_what_it_must_be(delta: dict[str, Any], part: Any) -> None:
    found = decode(API, sse(CREATED, event("step.delta", index=0, delta=delta), completion()))
    assert found.parts == (part,)
    assert rules(found) == ["delta_without_start", "step_not_closed"]


def test_arguments_of_a_call_that_never_began_are_shown_and_never_complete() -> None:
    lone = event("step.delta", index=0, delta={"type": "arguments_delta", "arguments": '{"n": 1}'})
    (call,) = decode(API, sse(CREATED, lone, event("step.stop", index=0), completion("requires_action"))).tool_calls
    assert (call.name, call.arguments, call.closed) == ("", '{"n": 1}', False)


def test_annotations_stay_with_their_text() -> None:
    notes = [{"type": "url_citation", "url": "https://e/x", "start_index": 0, "end_index": 5}]
    said = {"type": "model_output", "content": [{"type": "text", "text": "Hello.", "annotations": notes}]}
    deltas = ({"type": "text", "text": "Hello."}, {"type": "text_annotation_delta", "annotations": notes})
    for data in (whole("completed", said), sse(*step_events(*deltas, begun={"type": "model_output"}), completion())):
        found = decode(API, data)
        assert found.text == "Hello."
        for stream in (False, True):
            again = decode(API, b"".join(FORMAT.encode(found, stream=stream)))
            assert [part for part in again.parts if isinstance(part, OpaquePart)] == [
                OpaquePart("text.annotations", json.dumps(notes, separators=(",", ":")))]


def test_the_form_before_general_availability_is_read() -> None:
    old = {"id": "v1_x", "object": "interaction", "status": "requires_action", "role": "model",
           "outputs": [{"type": "thought", "signature": "c2ln"}, {"type": "text", "text": "So:"}, CALLED]}
    found = decode(API, json.dumps(old).encode())
    assert (found.text, [call.arguments for call in found.tool_calls]) == ("So:", ['{"n": 1}'])
    stream = sse(
        event("interaction.start", interaction={"id": "v1_x", "status": "in_progress"}),
        event("content.start", index=0, content={"type": "text"}),
        event("content.delta", index=0, delta={"type": "text", "text": "1, "}),
        event("content.delta", index=0, delta={"type": "text", "text": "2"}), event("content.stop", index=0),
        event("interaction.complete", interaction={"id": "v1_x", "status": "completed"}))
    found = decode(API, stream)
    assert (found.text, found.stop_reason.normalized, rules(found)) == ("1, 2", Stop.END_TURN, [])


def test_thoughts_are_counted_beside_the_output() -> None:
    usage = {"total_input_tokens": 65, "total_output_tokens": 17, "total_thought_tokens": 47, "total_cached_tokens": 3,
             "total_tokens": 129}
    assert decode(API, whole("completed", SAID, usage=usage)).usage == Usage(65, 64, 47, 3)


@each_row(("events", "rule"), [
    ([event("step.delta", index=0, delta={"type": "text", "text": "Hi"})], "delta_without_start"),
    ([event("step.start", index=0, step={"type": "thought"}), event("step.delta", index=0, delta={"type": "text"})],
     "unknown_delta"),
    ([event("step.stop", index=4)], "stop_without_start"),
    ([event("step.start", step={"type": "thought"})], "missing_index"),
    ([event("step.start", index=0, step={"type": "thought"})] * 2, "repeated_index"),
    ([event("interaction.paused")], "unknown_event"),
    ([completion("requires_action")], "action_without_call"),
])
def test_what_is_odd_is_a_finding(events: list[dict[str, Any]], rule: str) -> None:
    assert rule in rules(decode(API, sse(CREATED, *events)))


def test_a_body_that_is_no_interaction_is_a_finding() -> None:
    assert rules(decode(API, b'{"greeting": "hello"}')) == ["no_interaction"]


# -- writing ---------------------------------------------------------------------------------------------------------


@each_row("stream", [False, True])
@each_row(("more", "what"), [
    ({"refusal": "No."}, "refusal"),
    ({"native": {"phase": "final"}}, "native"),
    ({"parts": (ReasoningPart("", data="x"),)}, "reasoning.data"),
    ({"parts": (ToolCall("c", "f", "x", True, CallKind.CUSTOM),)}, "custom call"),
    ({"parts": (OpaquePart("text.annotations", "[]"),)}, "opaque"),
    ({"parts": (OpaquePart("google_search_call", "[]"),)}, "opaque"),
    ({"usage": Usage(1, 2, 3)}, "usage.reasoning_tokens"),
    ({"error": ProviderError("x", "t", "c", True), "http_status": 500, "parts": (TextPart("x"),)},
     "error beside content"),
])
def test_what_the_format_cannot_carry_is_refused(more: dict[str, Any], what: str, stream: bool) -> None:
    response = ChatResponse(API, **{"stop_reason": StopReason(Stop.END_TURN, "completed"), **more})
    with pytest.raises(EncodeError) as refused:
        b"".join(FORMAT.encode(response, stream=stream))
    assert refused.value.what == what


def test_a_whole_body_refuses_arguments_that_are_no_object() -> None:
    call = ToolCall("c", "f", '{"n": ', closed=True)
    response = ChatResponse(API, (call,), StopReason(Stop.TOOL_CALL, "requires_action"))
    with pytest.raises(EncodeError, match="these are not one"):
        b"".join(FORMAT.encode(response))


# -- requests --------------------------------------------------------------------------------------------------------


@each_row(("given", "texts"), [
    ("Hi", ["Hi"]),
    ({"type": "text", "text": "Hi"}, ["Hi"]),
    ([{"type": "text", "text": "H"}, {"type": "text", "text": "i"}], ["Hi"]),
    ([{"type": "user_input", "content": [{"type": "text", "text": "H"}]},
      {"type": "user_input", "content": [{"type": "text", "text": "i"}]}], ["H", "i"]),
    ([{"role": "user", "content": "H"}, {"role": "model", "content": [{"type": "text", "text": "i"}]}], ["H", "i"]),
])
def test_what_is_asked_may_be_said_in_five_ways(given: Any, texts: list[str]) -> None:
    read = FORMAT.read_request({"model": "models/m", "input": given})
    assert ([message.text for message in read.messages], read.model) == (texts, "m")


@each_row(("result", "text", "kept"), [
    ("sun", "sun", False), ({"sum": 18.0}, '{"sum":18.0}', False), ([{"type": "text", "text": "sun"}], "sun", False),
    ([{"type": "text", "text": "See:"}, {"type": "image", "data": "AAAA"}], "See:", True),
])
def test_a_result_is_a_text_an_object_or_contents(result: Any, text: str, kept: bool) -> None:
    step_ = {"type": "function_result", "call_id": "c1", "name": "f", "result": result}
    for given in ([step_], [{"type": "user_input", "content": [step_]}]):
        (message,) = FORMAT.read_request({"model": "m", "input": given}).messages
        (found,) = message.results
        assert (message.role, found.call_id, found.name, found.text, found.json is not None) == (
            Role.TOOL, "c1", "f", text, kept)


def test_settings_and_what_the_server_keeps_are_read() -> None:
    body = {"model": "m", "input": "Go on.", "previous_interaction_id": "v1_0", "continuation_token": "dG9r",
            "background": True, "stream": True, "store": True, "system_instruction": "Be brief.",
            "generation_config": {"max_output_tokens": 9, "tool_choice": "validated", "temperature": 0},
            "tools": [{"type": "google_search"}]}
    read = FORMAT.read_request(body)
    assert (read.previous_id, read.continuation_token, read.background, read.stream) == ("v1_0", "dG9r", True, True)
    assert (read.max_tokens, read.tool_choice, read.messages[0].role) == (9, "auto", Role.SYSTEM)
    assert read.extra == {"store": True, "generation_config": {"temperature": 0}}
    assert [(tool.name, tool.kind) for tool in read.tools] == [("google_search", CallKind.SERVER)]


def next_request(**more: Any) -> Request:
    """The request after an interaction that has a token."""
    asked = Request(API, (Message(Role.USER, (TextPart("Tell me."),)),), "m", **more)
    turn, effects = begin("t", asked)
    response = decode(API, whole("requires_continuation", SAID, continuation_token="dG9r"))
    turn, effects = step(turn, ProviderResponse(response, judge(response, asked, PROFILES["gemini"])))
    while not effects:
        turn, effects = step(turn, Tick())
    send = effects[0]
    assert isinstance(send, Send)
    return request_for(turn, send)


def test_a_kept_interaction_goes_on_by_its_id_and_its_token_alone() -> None:
    """google-genai 3.4.0 _interactions_continuation.py: no input with the id, or the original one without."""
    body = FORMAT.encode_request(next_request(extra={"store": True}))
    assert body == {"model": "m", "previous_interaction_id": "v1_x", "continuation_token": "dG9r", "store": True}
    alone = FORMAT.encode_request(next_request(extra={"store": False}))
    assert alone == {"model": "m", "input": "Tell me.", "continuation_token": "dG9r", "store": False}


@each_row(("more", "kept"), [
    ({}, False), ({"previous_id": "v1_0"}, True), ({"background": True}, True), ({"extra": {"store": True}}, True),
    ({"extra": {"store": False}}, False),
])
def test_the_server_keeps_what_it_was_asked_to_keep(more: dict[str, Any], kept: bool) -> None:
    assert FORMAT.chained(Request(API, model="m", **more)) is kept


@each_row("path", [
    "/v1beta/interactions", "/v1beta/interactions?alt=sse", "/v1beta/interactions/v1_abc",
    "/v1/interactions/v1_a/cancel",
])
def test_paths_of_interactions(path: str) -> None:
    assert any(pattern.search(path) for pattern in FORMAT.paths)


# -- referees --------------------------------------------------------------------------------------------------------

STORY = ChatResponse(
    API,
    (ReasoningPart("Think.", "c2ln"), TextPart("Hello, world."), ToolCall("c1", "f", '{"n":1}', True),
     OpaquePart("google_search_call", '{"type":"google_search_call","id":"s","arguments":{"queries":["q"]}}')),
    StopReason(Stop.TOOL_CALL, "requires_action"), Usage(5, 9, 2, 1), model="gemini-3.5-flash", id="v1_x",
)


@pytest.fixture(scope="module")
def sdk() -> Any:
    return pytest.importorskip("google.genai._gaos.types.interactions", reason="the extra `sdks`")


def knows(value: Any) -> bool:
    """Whether the SDK knows every variant in a value that it made."""
    if isinstance(value, list):
        return all(map(knows, value))
    if getattr(value, "is_unknown", False):
        return False
    return all(map(knows, vars(value).values())) if hasattr(type(value), "model_fields") else True


def test_the_sdk_reads_a_whole_interaction_that_was_written(sdk: Any) -> None:
    read = sdk.Interaction.model_validate_json(b"".join(FORMAT.encode(STORY)))
    assert knows(read)
    assert (read.id, read.status, read.model) == ("v1_x", "requires_action", "gemini-3.5-flash")
    thought, text, call, search = read.steps
    assert (thought.summary[0].text, text.content[0].text) == ("Think.", "Hello, world.")
    assert (call.id, call.name, call.arguments) == ("c1", "f", {"n": 1})
    assert search.arguments.queries == ["q"]
    assert (read.usage.total_input_tokens, read.usage.total_output_tokens, read.usage.total_thought_tokens,
            read.usage.total_tokens) == (5, 7, 2, 14)


def test_the_sdk_reads_every_event_that_was_written(sdk: Any) -> None:
    pydantic = pytest.importorskip("pydantic")
    adapter = pydantic.TypeAdapter(sdk.InteractionSSEEvent)
    sent = b"".join(FORMAT.encode(STORY, stream=True)).decode()
    values = [line[6:] for line in sent.splitlines() if line.startswith("data: ") and line != "data: [DONE]"]
    events = [adapter.validate_json(value) for value in values]
    assert all(map(knows, events))
    kinds = [each.event_type for each in events]
    assert (kinds[0], kinds[-1]) == ("interaction.created", "interaction.completed")
    deltas = [each.delta for each in events if each.event_type == "step.delta"]
    assert "".join(delta.text for delta in deltas if delta.type == "text") == "Hello, world."
    assert "".join(delta.arguments for delta in deltas if delta.type == "arguments_delta") == '{"n":1}'


def test_a_step_that_was_sent_over_several_lines_is_read_from_a_written_stream() -> None:
    step = OpaquePart("google_search_call", '{\n  "type": "google_search_call"\n}')
    sent = ChatResponse(API, (step,), StopReason(Stop.END_TURN, "completed"))
    got = decode(API, FORMAT.encode(sent, stream=True))
    assert [(type(part), json.loads(part.json)) for part in got.parts] == [(OpaquePart, {"type": "google_search_call"})]
    assert got.findings == ()


def test_the_sdk_takes_the_request(sdk: Any) -> None:
    request = Request(
        API,
        (Message(Role.SYSTEM, (TextPart("Be brief."),)), Message(Role.USER, (TextPart("Go."),)),
         Message(Role.ASSISTANT, (ReasoningPart("T", "c2ln"), TextPart("So:"), ToolCall("c1", "f", '{"n":1}', True))),
         Message(Role.TOOL, (ToolResultPart("c1", "f", "sun"),))),
        "gemini-3.5-flash", (Tool("f", {"type": "object"}, "F."), Tool("google_search", kind=CallKind.SERVER)),
        "tool:f", 99, True, previous_id="v1_0", continuation_token="dG9r", background=True,
    )
    body = FORMAT.encode_request(request)
    read = sdk.CreateModelInteraction.model_validate(body)
    assert knows(read)
    assert (read.previous_interaction_id, read.continuation_token, read.background, read.stream) == (
        "v1_0", "dG9r", True, True)
    assert [each.type for each in read.input] == [
        "user_input", "thought", "model_output", "function_call", "function_result"]
    assert (read.generation_config.max_output_tokens, read.system_instruction) == (99, "Be brief.")
    assert read.generation_config.tool_choice.allowed_tools.tools == ["f"]


ENDED = {"ok_text": {Stop.END_TURN}, "ok_empty": {Stop.TOOL_CALL, Stop.END_TURN}, "tool_call": {Stop.TOOL_CALL},
         "error_body_200": {Stop.ERROR}}


def test_recorded_interactions_are_what_an_independent_reader_found(traffic_of: Callable[[str], Sequence[Any]]) -> None:
    seen = 0
    for exchange in traffic_of(API):
        seen += 1
        found = decode(API, exchange.body, http_status=exchange.status)
        fact = exchange.expected
        assert found.raw_stop_reason == next(iter(fact["raw_stop_reasons"]), None), exchange.id
        assert found.stop_reason.normalized in ENDED[fact["kinds"][0]], exchange.id
        assert found.model == fact["model"], exchange.id
        assert found.streaming is fact["streaming"], exchange.id
        names = fact["other_fields"].get("function_call_steps") or [tool["name"] for tool in fact["tools"]]
        assert [call.name for call in found.tool_calls] == names, exchange.id
        for call, tool in zip(found.tool_calls, fact["tools"], strict=False):
            assert json.loads(call.arguments or "") == json.loads(tool["args"]), exchange.id
        assert all(call.closed for call in found.tool_calls), exchange.id
        assert rules(found) == [], exchange.id
        if found.error is None:
            for stream in (False, True):
                again = decode(API, b"".join(FORMAT.encode(found, stream=stream)))
                assert essence(again, FORMAT.loses) == essence(found, FORMAT.loses), exchange.id
    assert seen == 15


@each_row(("ids", "text"), [
    (("a", "a"), "ha"), (("a", "b"), "haha"), ((None, None), "haha"), (("", ""), "haha")])
def test_an_event_that_came_twice_is_read_once_if_its_id_proves_it(ids: tuple[Any, Any], text: str) -> None:
    deltas = ({"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "ha"}, "event_id": each}
              for each in ids)
    events = ({"event_type": "step.start", "index": 0, "step": {"type": "model_output"}}, *deltas)
    data = b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in events)
    found = read("gemini_interactions", data)
    assert found.text == text
    assert ("gemini_interactions.event_twice" in [each.rule for each in found.findings]) is (text == "ha")


def test_one_id_on_events_that_differ_proves_nothing_about_equal_ones() -> None:
    """A gateway that writes the same id on every event: two equal pieces of a text are two."""
    piece = {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "ha"}}
    events = ({"event_type": "step.start", "index": 0, "step": {"type": "model_output"}}, piece, piece)
    data = b"".join(f"data: {json.dumps({**each, 'event_id': 'e'})}\n\n".encode() for each in events)
    found = read("gemini_interactions", data)
    assert (found.text, [each.rule for each in found.findings if "twice" in each.rule]) == ("haha", [])
