"""Whole bodies in which a member has a value of another type than the format says: nothing of them is lost silently,
and no call is released for which no bytes stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.traffic import by_content
from loop_core.judge.gate import Admission
from loop_core.reader import read
from loop_core.values import ArgsForm, OpaquePart, Stop, ToolCall
from loop_core.wire import FORMATS, wire
from loop_core.wire.json_values import byte_span, path_of, pointer
from loop_core.wire.reads import find
from tests.scenes.rows import each_row, share
from tests.wire.test_provenance import BY_HAND

Body = Callable[[Any, Any], dict[str, Any]]
"""Makes the body of an answer with one call of this name and these arguments."""


def chat(message: Any, reason: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def chat_call(name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


CALLS: dict[str, Body] = {
    "openai_chat": lambda name, value: chat({"tool_calls": [chat_call(name, value)]}, "tool_calls"),
    "openai_responses": lambda name, value: {"status": "completed", "output": [
        {"type": "function_call", "status": "completed", "call_id": "c", "name": name, "arguments": value}]},
    "anthropic_messages": lambda name, value: {
        "type": "message", "role": "assistant", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "c", "name": name, "input": value}]},
    "gemini_generate": lambda name, value: {"candidates": [
        {"content": {"parts": [{"functionCall": {"name": name, "args": value}}]}, "finishReason": "STOP"}]},
    "gemini_interactions": lambda name, value: {"id": "i", "status": "completed", "outputs": [
        {"type": "function_call", "id": "c", "name": name, "arguments": value}]},
    "bedrock_converse": lambda name, value: {"stopReason": "tool_use", "output": {"message": {
        "role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": name, "input": value}}]}}},
    "ollama_chat": lambda name, value: {"model": "m", "done": True, "done_reason": "stop", "message": {
        "role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": value}}]}},
    "cohere_chat": lambda name, value: {"finish_reason": "TOOL_CALL", "message": {
        "role": "assistant", "tool_calls": [chat_call(name, value)]}},
}


@each_row("name", [5, 1.5, True, {"a": 1}, ["f"]])
@each_row("api", CALLS)
def test_a_name_that_is_no_text_is_none(api: str, name: Any) -> None:
    (verdict,) = read(api, json.dumps(CALLS[api](name, {})).encode()).calls
    assert (verdict.call.name, verdict.admission is Admission.READY) == ("", False)


@each_row("value", [5, 1.5, True, ["f"]])
@each_row("api", CALLS)
def test_arguments_that_are_no_object_are_not_those_of_a_tool_without_any(api: str, value: Any) -> None:
    """They were taken for arguments that did not come, which mean `{}` to a tool without parameters."""
    tool = {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}}
    request = {"model": "m", "input": "x", "tools": [tool]} if api == "openai_responses" else None
    (verdict,) = read(api, json.dumps(CALLS[api]("now", value)).encode(), request=request).calls
    assert (verdict.call.arguments, verdict.admission) == (json.dumps(value), Admission.HELD)


def test_arguments_of_cohere_that_came_as_an_object_are_those_characters() -> None:
    body = json.dumps(CALLS["cohere_chat"]("f", None)).encode().replace(b"null", b'{"n":1.50, "m":1e2}')
    (call,) = read("cohere_chat", body).response.tool_calls
    assert (call.arguments, call.form) == ('{"n":1.50, "m":1e2}', ArgsForm.OBJECT)


@each_row(("member", "value", "place"), [
    ("content", 5, "/content"), ("content", ["a", 3], "/content/1"), ("refusal", ["no"], "/refusal"),
    ("tool_calls", ["f"], "/tool_calls/0"), ("tool_calls", "f", "/tool_calls"),
    ("function_call", "f", "/function_call"),
])
@each_row("streamed", [False, True])
def test_a_value_of_chat_completions_that_is_not_read_is_told(
    member: str, value: Any, place: str, streamed: bool
) -> None:
    event = json.dumps(chat({member: value})).replace('"message"', '"delta"' if streamed else '"message"')
    body = f"data: {event}\n\ndata: [DONE]\n\n" if streamed else event
    (finding,) = (each for each in read("openai_chat", body.encode()).findings if each.rule.endswith("unread_value"))
    assert finding.at is not None
    assert finding.at.pointer == f"/choices/0/{'delta' if streamed else 'message'}{place}"


def ollama(**message: Any) -> dict[str, Any]:
    return {"model": "m", "done": True, "done_reason": "stop", "message": {"role": "assistant", **message}}


def gemini(part: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [{"text": "hi"}, part]}, "finishReason": "STOP"}]}


def cohere(content: Any) -> dict[str, Any]:
    return {"finish_reason": "COMPLETE", "message": {"role": "assistant", "content": content}}


@each_row(("api", "body", "name"), [
    ("ollama_chat", ollama(content=5), "content"), ("ollama_chat", ollama(content="hi", tool_calls="f"), "tool_calls"),
    ("ollama_chat", ollama(content="hi", tool_calls=["f"]), "tool_calls"),
    ("ollama_chat", ollama(content="hi", tool_calls=[{"function": "f"}]), "function"),
    ("ollama_chat", {**ollama(), "message": "hi"}, "message"),
    ("ollama_generate", {"model": "m", "done": True, "done_reason": "stop", "response": ["hi"]}, "response"),
    ("gemini_generate", gemini(5), "parts"), ("gemini_generate", gemini({"text": ["hi"]}), "text"),
    ("gemini_generate", gemini({"functionCall": "f"}), "functionCall"),
    ("gemini_generate", {"candidates": [{"content": "hi"}]}, "content"),
    ("gemini_generate", {"candidates": [{"content": {"parts": "hi"}}]}, "parts"),
    ("gemini_generate", {"candidates": "hi"}, "candidates"),
    ("openai_completions", {"choices": [{"text": ["hi"], "index": 0, "finish_reason": "stop"}]}, "text"),
    ("cohere_chat", cohere(5), "content"), ("cohere_chat", cohere([["hi"]]), "content"),
    ("cohere_chat", cohere([{"type": "text", "text": 5}]), "text"),
])
def test_a_value_that_may_hold_a_part_of_an_answer_is_told(api: str, body: dict[str, Any], name: str) -> None:
    found = [each.message for each in read(api, json.dumps(body).encode()).findings if "unread_value" in each.rule]
    assert found == [f"{name} has a value of the wrong type, which is not read"]


@each_row("empty", [None, "", [], {}])
def test_an_empty_value_of_any_type_holds_nothing(empty: Any) -> None:
    bodies = {"ollama_chat": ollama(content="hi", thinking=empty, tool_calls=empty),
              "gemini_generate": gemini({"text": empty, "functionCall": empty}), "cohere_chat": cohere(["hi", empty])}
    for api, body in bodies.items():
        assert not [each for each in read(api, json.dumps(body).encode()).findings if "unread_value" in each.rule]


def test_a_piece_of_ollamas_stream_that_is_no_text_is_told() -> None:
    lines = [{"model": "m", "done": False, "message": {"role": "assistant", "content": piece}}
             for piece in ("a", "b", 5, "c")]
    body = "".join(json.dumps(line) + "\n" for line in [*lines, ollama(content="")])
    found = read("ollama_chat", body.encode())
    assert found.text == "abc"
    assert [each.rule for each in found.findings] == ["ollama_chat.unread_value"]


@each_row(("content", "text", "kinds"), [
    ("hi", "hi", ["TextPart"]), (["hi"], "hi", ["TextPart"]), (5, "", ["OpaquePart"]), ([["hi"]], "", ["OpaquePart"]),
])
@each_row("api", ["openai_responses", "gemini_interactions"])
def test_a_content_of_another_type_is_kept(api: str, content: Any, text: str, kinds: list[str]) -> None:
    output = {"type": "message" if api == "openai_responses" else "model_output", "role": "assistant",
              "status": "completed", "content": content}
    body = {"id": "i", "status": "completed", "output": [output], "outputs": [output]}
    response = read(api, json.dumps(body).encode()).response
    assert (response.text or "", [type(part).__name__ for part in response.parts]) == (text, kinds)
    assert all(part.json == json.dumps(content[0] if isinstance(content, list) else content)
               for part in response.parts if isinstance(part, OpaquePart))


def test_a_message_that_is_no_object_is_told() -> None:
    rules = [each.rule for each in read("openai_chat", json.dumps(chat("hi")).encode()).findings]
    assert rules == ["openai_chat.call_unread_value", "ending.empty_answer"]


@each_row(("more", "admission"), [
    ({"tool_calls": [chat_call("f", "{}"), "g"]}, Admission.HELD), ({"reasoning": {"so": 1}}, Admission.READY),
    ({"tool_calls": [{**chat_call("f", "{}"), "id": 5}]}, Admission.READY),
])
def test_a_call_that_was_not_read_holds_the_others(more: dict[str, Any], admission: Admission) -> None:
    body = chat({"tool_calls": [chat_call("f", "{}")], **more}, "tool_calls")
    assert [each.admission for each in read("openai_chat", json.dumps(body).encode()).calls] == [admission]


@each_row(("piece", "admission"), [("1", Admission.READY), ({"n": 1}, Admission.HELD), ([1], Admission.HELD)])
def test_a_piece_of_arguments_of_another_type_holds_the_call(piece: Any, admission: Admission) -> None:
    """The piece was left out, and `{"a": 2}` ran in the place of `{"a": 12}`."""
    def event(kind: str, call: Any) -> dict[str, Any]:
        return {"type": kind, "index": 0, "delta": {"message": {"tool_calls": call}}}

    pieces = ({"function": {"arguments": each}} for each in ('{"a": ', piece, "2}"))
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    events = [event("tool-call-start", call), *(event("tool-call-delta", each) for each in pieces),
              {"type": "tool-call-end", "index": 0},
              {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}}]
    block = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    deltas = ({"type": "input_json_delta", "partial_json": each} for each in ('{"a": ', piece, "2}"))
    messages = [{"type": "content_block_start", "index": 0, "content_block": block},
                *({"type": "content_block_delta", "index": 0, "delta": each} for each in deltas),
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    for api, stream in (("cohere_chat", events), ("anthropic_messages", messages)):
        body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in stream)
        (verdict,) = read(api, body.encode()).calls
        assert verdict.admission is admission, api


@each_row("member", ["reasoning", "reasoning_content", "reasoning_details"])
@each_row("value", [{"content": "so"}, [5], 5, [], {}, None])
def test_thinking_in_a_form_that_is_not_read_is_told(member: str, value: Any) -> None:
    found = read("openai_chat", json.dumps(chat({"content": "hi", member: value})).encode())
    told = [f"{member} has a value of the wrong type, which is not read"] if value else []
    assert (found.text, [each.message for each in found.findings]) == ("hi", told)


# -- every place that a format reads ---------------------------------------------------------------------------------

ANSWER = frozenset({"text", "reasoning", "refusal", "call", "call.name", "call.arguments", "call.value"})
OTHERS = {'"zz"': "zz", "777": "77", "true": "tru", '["zz"]': "zz", '{"zz":"zz"}': "zz"}
"""JSON in place of another value -> what shows that it was read; a cut call lacks the end of a number or a word."""


def objects_of(body: bytes) -> Iterator[tuple[dict[str, Any], int, int]]:
    """The objects of a body that no other value holds, with their bytes: its events, or the whole of it."""
    text, at, scan = body.decode("latin-1"), 0, json.JSONDecoder(strict=False).raw_decode
    while (at := text.find("{", at)) >= 0:
        value, end = scan(text, at)
        yield value, at, end
        at = end


def places_of(api: str, body: bytes) -> Iterator[tuple[str, str, int, int]]:
    """The places of a body that hold a part of the answer, and those around them: fact, pointer, bytes."""
    for event, start, end in objects_of(body):
        payload = body[start:end]
        found = [each for each in find(wire(api).reads, payload, event) if each.row.fact in ANSWER and each.text]
        steps = {tuple(path_of(each.pointer)[:size]): each.row.fact for each in found
                 for size in range(1, len(path_of(each.pointer)) + 1)}
        for path, fact in steps.items():
            span = byte_span(payload, start, *path)
            if span is not None and path[-1] not in ("nullValue", "null_value"):  # any value of it means null
                yield fact, pointer(*path), *span


@pytest.mark.parametrize("api", FORMATS)
def test_no_value_of_another_type_is_lost_without_a_word(api: str) -> None:
    """Wherever a format reads a part of an answer: the other value is read, or a finding says where it stands, or the
    call that it belongs to is held; and no call is released without it."""
    lost, tried = [], 0
    for body, _ in (each for each in BY_HAND[api] if each[0][:1] != b"\0"):
        before = read(api, body)
        known = {(each.rule, each.message) for each in before.findings}
        ran = {(each.call.name, each.call.arguments) for each in before.calls if each.admission is Admission.READY}
        for number, (fact, place, start, end) in enumerate(places_of(api, body)):
            for other, mark in share(OTHERS.items(), number):
                if type(json.loads(other)) is type(json.loads(body[start:end])):
                    continue
                tried += 1
                after = read(api, body[:start] + other.encode() + body[end:])
                told = any(each.at is not None and each.at.start is not None and each.at.end is not None
                           and each.at.start < start + len(other) and each.at.end > start
                           for each in after.findings if (each.rule, each.message) not in known
                           and not each.rule.startswith("ending."))
                shown = mark in repr((after.response.parts, after.response.refusal)) or after.response.error is not None
                held = fact.startswith("call.") and any(each.admission is Admission.HELD for each in after.calls)
                runs = [each.call for each in after.calls if each.admission is Admission.READY]
                released = [each for each in runs
                            if (each.name, each.arguments) not in ran and mark not in (each.arguments or "")]
                if released or not (told or shown or held):
                    lost.append((place, other, released))
    assert tried, "no body of the format holds a part of an answer"
    assert not lost


@each_row(("thought", "shown"), [
    (True, ("", "so")), (1, ("", "so")), ("true", ("", "so")), ("false", ("", "so")), (["x"], ("", "so")),
    (False, ("so", "")), (None, ("so", "")), (0, ("so", "")), ("", ("so", "")),
])
@each_row("streamed", [False, True])
def test_a_thought_of_gemini_is_never_shown_as_text(thought: Any, shown: tuple[str, str], streamed: bool) -> None:
    event = json.dumps({"candidates": [{"content": {"parts": [{"text": "so", "thought": thought}]}, "index": 0}]})
    found = read("gemini_generate", (f"data: {event}\n\n" if streamed else event).encode())
    assert (found.response.text or "", found.response.reasoning_content or "") == shown
    rules = [each.rule for each in found.findings if each.rule == "gemini_generate.odd_thought"]
    assert rules == ["gemini_generate.odd_thought"] * (bool(thought) and thought is not True)


FIRST = {"jsonPath": "$.path", "stringValue": "/tmp", "willContinue": False}
LAST = {"jsonPath": "$.file", "stringValue": "/x"}


@each_row("pieces", [[{"jsonPath": "$.path", "stringValue": ["/x"]}], [LAST, 5], [LAST, [LAST]], LAST, "/x", True])
def test_a_piece_of_an_argument_of_gemini_of_another_type_keeps_the_call_from_being_complete(pieces: Any) -> None:
    """The piece was left out, and the call ran with the rest of the argument."""
    parts = [{"functionCall": {"name": "rm", "willContinue": True}},
             {"functionCall": {"partialArgs": [FIRST], "willContinue": True}},
             {"functionCall": {"partialArgs": pieces, "willContinue": True}}, {"functionCall": {}}]
    events = [{"candidates": [{"content": {"parts": [part]}, "index": 0}]} for part in parts]
    events[-1]["candidates"][0]["finishReason"] = "STOP"
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    found = read("gemini_generate", body.encode())
    assert [verdict.admission for verdict in found.calls] == [Admission.HELD]


TEXT = {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}


@each_row(("api", "value", "text"), [
    ("anthropic_messages", TEXT, "hi"),
    ("anthropic_messages", {**TEXT, "content": "hi"}, "hi"),
    ("anthropic_messages", {**TEXT, "content": "hi", "type": "message"}, "hi"),
    ("openai_chat", chat(None), ""),
    ("cohere_chat", {"finish_reason": "COMPLETE", "message": {"role": "assistant", "content": "hi"}}, "hi"),
    ("cohere_chat", {"finish_reason": "COMPLETE", "message": {"content": ["h", {"type": "text", "text": "i"}]}}, "hi"),
])
def test_a_body_in_which_a_member_is_left_out_or_is_a_text_is_read(api: str, value: Any, text: str) -> None:
    loaded = open_paths(["-"], stdin=json.dumps(value).encode())
    (exchange,) = loaded.exchanges
    assert (exchange.api, exchange.response.text or "", exchange.response.stop_reason.normalized) == (
        api, text, Stop.END_TURN)


@each_row("other", [
    {"role": "assistant", "content": "hi"},
    {"role": "user", "content": "hi", "stop_reason": None},
    {"role": "assistant", "content": None, "stop_reason": "end_turn"},
    {"type": "message", "content": "hi", "stop_reason": "end_turn"},
    {"choices": [{"message": None}]},
    {"choices": [{"finish_reason": "stop"}]},
])
def test_a_body_whose_format_is_in_doubt_is_not_read(other: dict[str, Any]) -> None:
    assert by_content(json.dumps(other).encode()) is None


def test_rows_of_a_conversation_are_no_answer() -> None:
    rows = [{"role": "user", "content": "go"}, TEXT]
    assert by_content("".join(json.dumps(row) + "\n" for row in rows).encode()) is None
    assert by_content(json.dumps(rows).encode()) is None


def test_a_call_of_messages_without_a_type_is_held_where_it_may_be_cut() -> None:
    body = {**TEXT, "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}], "stop_reason": "max_tokens"}
    (verdict,) = read("anthropic_messages", json.dumps(body).encode()).calls
    assert (type(verdict.call), verdict.admission) == (ToolCall, Admission.HELD)
