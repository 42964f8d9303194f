"""Whole bodies in which a member has a value of another type than the format says: nothing of them is lost silently,
and no call is released for which no bytes stand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.traffic import by_content
from loop_core.judge.gate import Admission
from loop_core.reader import read
from loop_core.values import ArgsForm, OpaquePart, Stop, ToolCall

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


@pytest.mark.parametrize("name", [5, 1.5, True, {"a": 1}, ["f"]])
@pytest.mark.parametrize("api", CALLS)
def test_a_name_that_is_no_text_is_none(api: str, name: Any) -> None:
    (verdict,) = read(api, json.dumps(CALLS[api](name, {})).encode()).calls
    assert (verdict.call.name, verdict.admission is Admission.READY) == ("", False)


@pytest.mark.parametrize("value", [5, 1.5, True, ["f"]])
@pytest.mark.parametrize("api", CALLS)
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


@pytest.mark.parametrize(("member", "value", "place"), [
    ("content", 5, "/content"), ("content", ["a", 3], "/content/1"), ("refusal", ["no"], "/refusal"),
    ("tool_calls", ["f"], "/tool_calls/0"), ("tool_calls", "f", "/tool_calls"),
    ("function_call", "f", "/function_call"),
])
@pytest.mark.parametrize("streamed", [False, True])
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


@pytest.mark.parametrize(("api", "body", "name"), [
    ("ollama_chat", ollama(content=5), "content"), ("ollama_chat", ollama(content="hi", tool_calls="f"), "tool_calls"),
    ("ollama_chat", ollama(content="hi", tool_calls=["f"]), "tool_calls"),
    ("ollama_chat", ollama(content="hi", tool_calls=[{"function": "f"}]), "tool_calls"),
    ("ollama_chat", {**ollama(), "message": "hi"}, "message"),
    ("ollama_generate", {"model": "m", "done": True, "done_reason": "stop", "response": ["hi"]}, "content"),
    ("gemini_generate", gemini(5), "parts"), ("gemini_generate", gemini({"text": ["hi"]}), "text"),
    ("gemini_generate", gemini({"functionCall": "f"}), "functionCall"),
    ("cohere_chat", cohere(5), "content"), ("cohere_chat", cohere([["hi"]]), "content"),
    ("cohere_chat", cohere([{"type": "text", "text": 5}]), "text"),
])
def test_a_value_that_may_hold_a_part_of_an_answer_is_told(api: str, body: dict[str, Any], name: str) -> None:
    found = [each.message for each in read(api, json.dumps(body).encode()).findings if "unread_value" in each.rule]
    assert found == [f"{name} has a value of another type than it should have; it is not read"]


@pytest.mark.parametrize("empty", [None, "", [], {}])
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


@pytest.mark.parametrize(("content", "text", "kinds"), [
    ("hi", "hi", ["TextPart"]), (["hi"], "hi", ["TextPart"]), (5, "", ["OpaquePart"]), ([["hi"]], "", ["OpaquePart"]),
])
@pytest.mark.parametrize("api", ["openai_responses", "gemini_interactions"])
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
    assert rules == ["openai_chat.unread_value", "ending.empty_answer"]


@pytest.mark.parametrize("member", ["reasoning", "reasoning_content", "reasoning_details"])
@pytest.mark.parametrize("value", [{"content": "so"}, ["so"], 5, [], {}, None])
def test_thinking_in_a_form_that_is_not_read_is_told(member: str, value: Any) -> None:
    found = read("openai_chat", json.dumps(chat({"content": "hi", member: value})).encode())
    is_told = value not in (5, [], {}, None)  # a number is no text
    assert (found.text, [each.message for each in found.findings]) == (
        "hi", [f"thinking in a form that is not read: {member}"] if is_told else [])


TEXT = {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}


@pytest.mark.parametrize(("api", "value", "text"), [
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


@pytest.mark.parametrize("other", [
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
