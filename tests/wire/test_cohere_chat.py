"""Cohere chat: words of both versions, events, cut calls, errors, requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.traffic import by_content, by_path
from loop_core import read
from loop_core.errors import EncodeError
from loop_core.judge.classify import judge
from loop_core.values import Message, ReasoningPart, Request, Role, Stop, TextPart, Tool, Usage
from loop_core.wire import decode_response, decoder, encode_request, wire
from tests.scenes.rows import each_row

API = "cohere_chat"


def stream(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def event(kind: str, index: int = 0, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}


def end(reason: str, **more: Any) -> dict[str, Any]:
    return {"type": "message-end", "delta": {"finish_reason": reason, **more}}


def whole(reason: str | None = "COMPLETE", **more: Any) -> bytes:
    body = {"id": "i", "finish_reason": reason, "message": {"role": "assistant",
                                                            "content": [{"type": "text", "text": "a"}]}}
    return json.dumps({**body, **more}).encode()


CALL = event("tool-call-start", tool_calls={"id": "k", "type": "function", "function": {"name": "f", "arguments": ""}})
BEGUN = event("tool-call-delta", tool_calls={"function": {"arguments": '{"n": 12'}})


@each_row(("word", "stop", "detail"), [
    ("COMPLETE", Stop.END_TURN, None), ("STOP_SEQUENCE", Stop.END_TURN, "stop_sequence"),
    ("MAX_TOKENS", Stop.MAX_TOKENS, None), ("TOOL_CALL", Stop.TOOL_CALL, None),
    ("ERROR", Stop.ERROR, "retryable: server failure under HTTP 200"), ("TIMEOUT", Stop.ERROR, "retryable: timeout"),
    ("ERROR_TOXIC", Stop.SAFETY_BLOCKED, "toxic"), ("ERROR_LIMIT", Stop.CONTEXT_WINDOW_EXCEEDED, None),
    ("USER_CANCEL", Stop.CANCELLED, None), ("ODD", Stop.UNKNOWN, None), (None, Stop.INTERRUPTED, None),
])
def test_what_the_words_mean(word: str | None, stop: Stop, detail: str | None) -> None:
    response = decode_response(API, whole(word))
    assert (response.stop_reason.normalized, response.stop_reason.detail, response.text) == (stop, detail, "a")


@pytest.mark.parametrize("last", [end("COMPLETE"), {"type": "message-end", "delta": {}}])
def test_the_last_event_is_the_end_mark_and_what_follows_it_is_no_part_of_the_answer(last: dict[str, Any]) -> None:
    said = stream(event("content-delta", content={"text": "a"}))
    reading = decoder(API)
    reading.feed(said)
    assert not reading.saw_done
    reading.feed(stream(last))
    assert reading.saw_done, "a connection that is kept open is not waited for"
    reading.feed(said + stream(end("ERROR_LIMIT", error="too long")))
    response = reading.close()
    assert response.text == "a"
    assert "frame.after_end" in {found.rule for found in response.findings}
    assert response.error is not None, "an error behind the end is one"


def test_the_plan_of_calls_is_thinking_and_a_cut_call_stays_open() -> None:
    body = stream(event("tool-plan-delta", tool_plan="p"), CALL, BEGUN, end("TOOL_CALL"))
    response = decode_response(API, body)
    (call,) = response.tool_calls
    assert (response.reasoning_content, call.id, call.arguments, call.closed) == ("p", "k", '{"n": 12', False)
    assert judge(response).stop.normalized is Stop.MAX_TOKENS


def test_a_delta_without_its_beginning_is_a_finding() -> None:
    response = decode_response(API, stream(BEGUN, end("COMPLETE")))
    assert [finding.rule for finding in response.findings] == ["cohere_chat.delta_without_start"]
    odd = decode_response(API, stream({"type": "odd"}, end("COMPLETE")))
    assert [finding.rule for finding in odd.findings] == ["cohere_chat.unknown_event"]


def test_arguments_before_or_behind_their_call_hold_it() -> None:
    """The rest of the arguments parses, and lacks the piece that came out of its order."""
    piece = event("tool-call-delta", tool_calls={"function": {"arguments": "3"}})
    rest = event("tool-call-delta", tool_calls={"function": {"arguments": "}"}})
    closed = {"type": "tool-call-end", "index": 0}
    for events in ((piece, CALL, BEGUN, rest, closed), (CALL, BEGUN, rest, closed, piece)):
        reading = read(API, stream(*events, end("TOOL_CALL")), request={"stream": True})
        assert [verdict.admission for verdict in reading.calls if verdict.call.name] == ["held"]
    reading = read(API, stream(CALL, BEGUN, piece, rest, closed, end("TOOL_CALL")), request={"stream": True})
    assert [(verdict.arguments, verdict.admission) for verdict in reading.calls] == [({"n": 123}, "ready")]


def test_a_call_whose_beginning_is_missing_or_came_twice_holds_the_others() -> None:
    done = {"type": "tool-call-end", "index": 0}
    rest = event("tool-call-delta", tool_calls={"function": {"arguments": "}"}})
    other = [{**each, "index": 1} for each in (CALL, BEGUN, rest, done)]
    lost, twice = (BEGUN, rest, done), (CALL, CALL, BEGUN, rest, done)
    for events, rule in ((lost, "delta_without_start"), (twice, "repeated_index")):
        reading = read(API, stream(*events, *other, end("TOOL_CALL")), request={"stream": True})
        assert {verdict.admission for verdict in reading.calls} == {"held"}
        assert reading.stop_reason == "malformed_tool_call"
        assert {f"cohere_chat.{rule}", "judge.misplaced_event"} <= {found.rule for found in reading.findings}


def test_an_error_at_the_end_of_a_stream() -> None:
    response = decode_response(API, stream(event("content-delta", content={"text": "a"}), end("ERROR", error="down")))
    assert response.error is not None
    assert (response.stop_reason.normalized, response.error.message, response.text) == (Stop.ERROR, "down", "a")
    assert decode_response(API, stream(event("content-delta", content={"text": "a"}))).stop_reason.normalized is (
        Stop.INTERRUPTED)


def test_what_was_counted_precedes_what_was_billed() -> None:
    usage = {"billed_units": {"input_tokens": 1, "output_tokens": 2}, "tokens": {"input_tokens": 5, "output_tokens": 7}}
    assert decode_response(API, whole(usage={**usage, "cached_tokens": 3})).usage == Usage(5, 7, None, 3)
    del usage["tokens"]
    assert decode_response(API, whole(usage=usage)).usage == Usage(1, 2)


def test_the_first_version() -> None:
    lines = [{"is_finished": False, "event_type": "stream-start", "generation_id": "i"},
             {"is_finished": False, "event_type": "text-generation", "text": "a"},
             {"is_finished": False, "event_type": "tool-calls-generation",
              "tool_calls": [{"name": "f", "parameters": {"n": 1}}]},
             {"is_finished": True, "event_type": "stream-end", "finish_reason": "MAX_TOKENS",
              "response": {"text": "a", "meta": {"tokens": {"input_tokens": 5, "output_tokens": 7}}}}]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    response = decode_response(API, body)
    assert (response.id, response.text, response.raw_stop_reason, response.streaming) == ("i", "a", "MAX_TOKENS", True)
    assert response.usage == Usage(5, 7)
    assert [(call.name, call.arguments) for call in response.tool_calls] == [("f", '{"n": 1}')]
    for kind in ("stream-start", "search-queries-generation", "search-results", "citation-generation",
                 "tool-calls-chunk", "debug"):
        assert by_content(json.dumps({"is_finished": False, "event_type": kind}).encode()) == API


@pytest.mark.parametrize("late", [
    {"event_type": "text-generation", "text": "b"},
    {"event_type": "tool-calls-generation", "tool_calls": [{"name": "f", "parameters": {"n": 1}}]},
    {"event_type": "stream-start", "generation_id": "j"},
])
def test_what_follows_the_end_of_the_first_version_is_no_part_of_the_answer(late: dict[str, Any]) -> None:
    said = [{"event_type": "text-generation", "text": "a"}, {"event_type": "stream-end", "finish_reason": "COMPLETE"}]
    lines = [json.dumps({"is_finished": False, **line}).encode() + b"\n" for line in (*said, late)]
    response = decode_response(API, b"".join(lines))
    assert (response.parts, response.stop_reason.normalized) == ((TextPart("a"),), Stop.END_TURN)
    assert [(found.rule, found.at and found.at.start) for found in response.findings] == [
        ("frame.after_end", len(lines[0] + lines[1]))]


def test_the_second_end_of_the_first_version_may_be_the_stricter_one() -> None:
    ends = ({"event_type": "stream-end", "finish_reason": word} for word in ("COMPLETE", "MAX_TOKENS"))
    body = b"".join(json.dumps({"is_finished": True, **end}).encode() + b"\n" for end in ends)
    assert decode_response(API, body).stop_reason.normalized is Stop.MAX_TOKENS


@each_row(("said", "admission", "rules"), [
    ({}, "ready", []), ({"text": "a"}, "ready", []), ({"text": "ab"}, "ready", ["cohere_chat.text_differs"]),
    ({"tool_calls": [{"name": "f", "parameters": {"n":  1}}]}, "ready", []),
    ({"tool_calls": [{"name": "f", "parameters": {"n": 2}}]}, "held", ["cohere_chat.call_differs"]),
    ({"tool_calls": [{"name": "g", "parameters": {"n": 1}}]}, "held", ["cohere_chat.call_differs"]),
])
def test_the_end_of_the_first_version_repeats_the_answer(
    said: dict[str, Any], admission: str, rules: list[str]
) -> None:
    lines = [{"event_type": "text-generation", "text": "a"},
             {"event_type": "tool-calls-generation", "tool_calls": [{"name": "f", "parameters": {"n": 1}}]},
             {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": said}]
    body = [json.dumps({"is_finished": False, **line}).encode() + b"\n" for line in lines]
    reading = read(API, body)
    assert (reading.text, [each.admission for each in reading.calls]) == ("a", [admission])
    assert [each.rule for each in reading.response.findings] == rules
    begin = len(body[0] + body[1])
    assert all(f"from byte {begin:,} on" in each.message for each in reading.response.findings)


@each_row(("streamed", "repeated", "expected"), [
    ("fg", "gf", ["ready", "ready"]),  # the calls have no ids, and another order is no other batch
    ("f", "fg", ["held"]), ("fg", "f", ["held", "held"]), ("ff", "f", ["held", "held"]), ("", "f", ["ready"]),
    ("fg", "", ["ready", "ready"]),
])
def test_the_end_of_the_first_version_holds_the_calls_of_another_batch(
    streamed: str, repeated: str, expected: list[str]
) -> None:
    """A call that only one of the two had was left out or ran."""
    one, other = ([{"name": name, "parameters": {"n": 1}} for name in each] for each in (streamed, repeated))
    lines = [{"event_type": "stream-start", "generation_id": "i"},
             {"event_type": "tool-calls-generation", "tool_calls": one},
             {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": {"tool_calls": other}}]
    reading = read(API, [json.dumps({"is_finished": False, **line}).encode() + b"\n" for line in lines])
    assert [each.admission for each in reading.calls] == expected


@pytest.mark.parametrize("pieces", [(), ("I will", " look.")])
def test_the_plan_of_calls_of_the_first_version_is_text_once(pieces: tuple[str, ...]) -> None:
    calls = [{"name": "f", "parameters": {"n": 1}}]
    lines = [*({"event_type": "tool-calls-chunk", "text": piece} for piece in pieces),
             {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "name": "f"}},
             {"event_type": "tool-calls-generation", "text": "I will look.", "tool_calls": calls},
             {"event_type": "stream-end", "finish_reason": "COMPLETE",
              "response": {"text": "I will look.\n", "tool_calls": calls}}]
    reading = read(API, [json.dumps({"is_finished": False, **line}).encode() + b"\n" for line in lines])
    assert (reading.text, [each.admission for each in reading.calls]) == ("I will look.", ["ready"])
    assert not reading.response.findings, "white space around the repetition is no other text"


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_call_of_the_first_version_has_its_own_place(is_stream: bool) -> None:
    call = '{"name": "f", "parameters": {"n": 1}}'
    head = '"event_type": "tool-calls-generation"' if is_stream else '"generation_id": "i", "text": ""'
    body = f'{"data: " if is_stream else ""}{{{head}, "tool_calls": [{call}]}}'
    (made,) = decode_response(API, body.encode()).tool_calls
    assert made.at is not None
    assert made.at.pointer == "/tool_calls/0"
    assert body[made.at.start : made.at.end] == (body if is_stream else call)


@each_row("kind", ["message-start", "content-start", "content-delta", "content-end", "tool-plan-delta",
                                  "tool-call-start", "tool-call-delta", "tool-call-end", "citation-start",
                                  "citation-end", "message-end"])
def test_its_events_are_its_own(kind: str) -> None:
    body = stream({"type": kind, "index": 0, "delta": {"finish_reason": "COMPLETE"}})
    assert wire(API).recognises({"type": kind}, kind)
    assert "cohere_chat.unknown_event" not in [finding.rule for finding in decode_response(API, body).findings]


def test_an_event_for_debugging_is_known_and_tells_no_format() -> None:
    assert not wire(API).recognises({"type": "debug", "prompt": "p"}, "debug")
    assert decode_response(API, stream({"type": "debug", "prompt": "p"}, end("COMPLETE"))).findings == ()


def test_requests_are_read() -> None:
    read = wire(API).read_request({
        "model": "m", "max_tokens": 9, "stream": True, "tool_choice": "REQUIRED", "documents": [],
        "messages": [{"role": "user", "content": "u"}, {"role": "assistant", "tool_plan": "p", "tool_calls": [
            {"id": "k", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]})
    assert (read.model, read.max_tokens, read.stream, read.tool_choice) == ("m", 9, True, "any")
    assert read.messages[1].parts[0] == ReasoningPart("p")
    assert dict(read.extra) == {"documents": []}
    assert wire(API).read_request({"messages": [], "tool_choice": "NONE"}).tool_choice == "none"
    first = wire(API).read_request({"message": "u", "preamble": "s", "stream": True, "chat_history": [
        {"role": "USER", "message": "a"}, {"role": "CHATBOT", "message": "b"}, {"role": "SYSTEM", "message": "c"}]})
    assert [(m.role, m.text) for m in first.messages] == [
        (Role.SYSTEM, "s"), (Role.USER, "a"), (Role.ASSISTANT, "b"), (Role.SYSTEM, "c"), (Role.USER, "u")]


@each_row(("data", "text"), [('{"r": "Error: no"}', '{"r": "Error: no"}'), ({"r": 1}, '{"r":1}')])
def test_the_documents_of_a_result_are_its_text(data: Any, text: str) -> None:
    content = [{"type": "document", "document": {"data": data}}, {"type": "text", "text": "!"}]
    read = wire(API).read_request({"messages": [{"role": "tool", "tool_call_id": "k", "content": content},
                                                {"role": "user", "content": content[:1]}]})
    assert [result.text for result in read.messages[0].results] == [text + "!"]
    assert read.messages[1].text == "", "a document of the user is not what the user wrote"


def test_requests_are_written() -> None:
    tools = (Tool("f", {"type": "object"}, "d"), Tool("g"))
    asked = Request(API, (Message(Role.USER, (TextPart("u"),)),), "m", tools, "tool:f", 9)
    assert encode_request(API, asked) == {
        "model": "m", "messages": [{"role": "user", "content": "u"}], "tool_choice": "REQUIRED", "max_tokens": 9,
        "tools": [{"type": "function",
                   "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
        "stream": False}
    with pytest.raises(EncodeError, match="tool_choice"):
        encode_request(API, Request(API, asked.messages, "m", tools, "odd"))


def test_its_address_and_its_body() -> None:
    assert by_path("https://api.cohere.com/v2/chat") == API
    assert by_path("https://api.cohere.ai/v1/chat") == API
    assert by_content(whole()) == API
    assert by_content(b'{"text": "a", "generation_id": "i", "finish_reason": "COMPLETE"}') == API


@each_row("streamed", [False, True])
@each_row(("properties", "admission"), [({}, "ready"), ({"x": {"type": "string"}}, "held")])
def test_the_text_null_says_that_a_call_has_no_arguments(
    streamed: bool, properties: dict[str, Any], admission: str
) -> None:
    """Cohere sends it for tools without parameters; from any other tool an argument may have been lost."""
    function = {"name": "now", "arguments": "null"}
    body = (stream(event("tool-call-start", tool_calls={"id": "k", "function": {"name": "now", "arguments": ""}}),
                   event("tool-call-delta", tool_calls={"function": {"arguments": "null"}}),
                   {"type": "tool-call-end", "index": 0}, end("TOOL_CALL")) if streamed else
            whole("TOOL_CALL", message={"role": "assistant", "tool_calls": [
                {"id": "k", "type": "function", "function": function}]}))
    declared = {"name": "now", "parameters": {"type": "object", "properties": properties}}
    found = read("cohere_chat", body, request={"messages": [], "tools": [{"type": "function", "function": declared}]})
    assert [(each.call.arguments, each.admission) for each in found.calls] == [(None, admission)]


REST = event("tool-call-delta", tool_calls={"function": {"arguments": "00}"}})
WHOLE_CALL = (CALL, BEGUN, REST, {"type": "tool-call-end", "index": 0}, end("TOOL_CALL"))


def test_a_piece_behind_the_beginning_of_another_message_is_no_piece_of_the_call_before() -> None:
    later = (event("message-start"), REST)
    assert [each.admission for each in read(API, stream(*WHOLE_CALL, *later)).calls] == ["ready"]
    assert {each.admission for each in read(API, stream(*WHOLE_CALL, REST)).calls} == {"held"}


def test_an_error_behind_the_end_fails_the_answer() -> None:
    """The end is read on, as a second end may be stricter; only further parts of the answer are left out."""
    reading = read(API, stream(*WHOLE_CALL, {"type": "failure", "error": {"message": "overloaded"}}))
    assert (reading.stop_reason, [each.admission for each in reading.calls]) == (Stop.ERROR, ["held"])


@each_row(("content", "rules"), [
    ({"type": "text"}, []), ({"type": "text", "text": "a", "more": 1}, []),
    ({"type": "image", "url": "u"}, ["cohere_chat.unknown_block"]),
])
def test_only_a_block_of_which_nothing_is_read_is_unknown(content: dict[str, Any], rules: list[str]) -> None:
    reading = read(API, stream(event("content-start", content=content), end("COMPLETE")))
    assert [each.rule for each in reading.findings if each.rule.endswith("unknown_block")] == rules
