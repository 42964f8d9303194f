"""Requests as bodies: what each provider expects, by hand; and that reading a body gives the request back.

The referees are recorded bodies, botocore's model of Converse and the SDKs' types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.report.lines.calls import tool_of
from loop_core.errors import CallerError, EncodeError
from loop_core.formats import FORMATS
from loop_core.judge.classify import judge
from loop_core.judge.gate import admit_all
from loop_core.values import (
    ArgsForm,
    CallKind,
    ChatResponse,
    Message,
    OpaquePart,
    ReasoningPart,
    Request,
    Role,
    Stop,
    StopReason,
    TextPart,
    Tool,
    ToolCall,
    ToolResultPart,
)
from loop_core.wire import decode_request, decode_response, encode_request, wire
from loop_core.wire.body import dump
from loop_core.wire.gemini_generate.table import problems, reduce_schema
from tests.scenes.essence import request_essence
from tests.scenes.provider import CALLING
from tests.scenes.rows import each_row

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool("weather", SCHEMA, "The weather of a city.")


THOUGHT = ReasoningPart("Look it up.", "sig")


def story(api: str, thinking: ReasoningPart = THOUGHT, **more: Any) -> Request:
    """A turn with a system prompt, thinking, a call, its result, and a question after it."""
    call = ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True)
    return Request(
        api,
        (
            Message(Role.SYSTEM, (TextPart("Be brief."),)),
            Message(Role.USER, (TextPart("Weather in Oslo?"),)),
            Message(Role.ASSISTANT, (thinking, TextPart("I look."), call)),
            Message(Role.TOOL, (ToolResultPart("call_1", "weather", "no such city", is_error=True),)),
            Message(Role.USER, (TextPart("Try again."),)),
        ),
        model="m", tools=(WEATHER,), tool_choice="tool:weather", max_tokens=300, stream=True, **more,
    )


FUNCTION = {"name": "weather", "description": "The weather of a city.", "parameters": SCHEMA}
BODIES: Mapping[str, dict[str, Any]] = {
    "openai_chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Oslo?"},
            {"role": "assistant", "content": "I look.",
             "reasoning_details": [{"type": "reasoning.text", "text": "Look it up.", "signature": "sig"}],
             "tool_calls": [{"id": "call_1", "type": "function",
                             "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "no such city"},
            {"role": "user", "content": "Try again."},
        ],
        "tools": [{"type": "function", "function": FUNCTION}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "max_tokens": 300, "stream": True, "temperature": 0,
    },
    "openai_responses": {
        "model": "m", "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Weather in Oslo?"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look it up."}]},
            {"type": "message", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "no such city"},
            {"role": "user", "content": "Try again."},
        ],
        "tools": [{"type": "function", **FUNCTION, "strict": False}],
        "tool_choice": {"type": "function", "name": "weather"},
        "max_output_tokens": 300, "stream": True, "temperature": 0,
    },
    "anthropic_messages": {
        "model": "m", "max_tokens": 300, "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Weather in Oslo?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Look it up.", "signature": "sig"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "no such city", "is_error": True},
                {"type": "text", "text": "Try again."}]},
        ],
        "tools": [{"name": "weather", "description": "The weather of a city.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "weather"}, "stream": True, "temperature": 0,
    },
    "gemini_generate": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Weather in Oslo?"}]},
            {"role": "model", "parts": [
                {"text": "Look it up.", "thought": True, "thoughtSignature": "sig"}, {"text": "I look."},
                {"functionCall": {"id": "call_1", "name": "weather", "args": {"city": "Oslo"}}}]},
            {"role": "user", "parts": [{"functionResponse": {
                "id": "call_1", "name": "weather", "response": {"error": "no such city"}}}]},
            {"role": "user", "parts": [{"text": "Try again."}]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "weather", "description": "The weather of a city.", "parametersJsonSchema": SCHEMA}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
        "generationConfig": {"maxOutputTokens": 300, "temperature": 0},
    },
    "bedrock_converse": {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "Weather in Oslo?"}]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "Look it up.", "signature": "sig"}}},
                {"text": "I look."},
                {"toolUse": {"toolUseId": "call_1", "name": "weather", "input": {"city": "Oslo"}}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "call_1", "content": [{"text": "no such city"}], "status": "error"}},
                {"text": "Try again."}]},
        ],
        "inferenceConfig": {"maxTokens": 300, "temperature": 0},
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "weather", "description": "The weather of a city.",
                                    "inputSchema": {"json": SCHEMA}}}],
            "toolChoice": {"tool": {"name": "weather"}}},
    },
    "gemini_interactions": {
        "model": "m", "system_instruction": "Be brief.",
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
            {"type": "thought", "summary": [{"type": "text", "text": "Look it up."}], "signature": "sig"},
            {"type": "model_output", "content": [{"type": "text", "text": "I look."}]},
            {"type": "function_call", "id": "call_1", "name": "weather", "arguments": {"city": "Oslo"}},
            {"type": "function_result", "call_id": "call_1", "name": "weather", "result": "no such city",
             "is_error": True},
            {"type": "user_input", "content": [{"type": "text", "text": "Try again."}]},
        ],
        "tools": [{"type": "function", **FUNCTION}],
        "generation_config": {"max_output_tokens": 300, "temperature": 0,
                              "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["weather"]}}},
        "stream": True,
    },
    "cohere_chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Oslo?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Look it up."}, {"type": "text", "text": "I look."}],
             "tool_calls": [{"id": "call_1", "type": "function",
                             "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "no such city"},
            {"role": "user", "content": "Try again."},
        ],
        "tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "REQUIRED",
        "max_tokens": 300, "stream": True, "temperature": 0,
    },
    "ollama_chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Oslo?"},
            {"role": "assistant", "content": "I look.", "thinking": "Look it up.",
             "tool_calls": [{"id": "call_1", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}]},
            {"role": "tool", "content": "no such city", "tool_name": "weather", "tool_call_id": "call_1"},
            {"role": "user", "content": "Try again."},
        ],
        "tools": [{"type": "function", "function": FUNCTION}],
        "stream": True, "options": {"num_predict": 300, "temperature": 0},
    },
}
BODIES["bedrock_invoke"] = {"anthropic_version": "bedrock-2023-05-31", **{
    name: value for name, value in BODIES["anthropic_messages"].items() if name not in ("model", "stream")}}
EXTRA: Mapping[str, dict[str, Any]] = {
    "gemini_generate": {"generationConfig": {"temperature": 0}},
    "bedrock_converse": {"inferenceConfig": {"temperature": 0}},
    "gemini_interactions": {"generation_config": {"temperature": 0}},
    "ollama_chat": {"options": {"temperature": 0}},
}
PLACES = {
    "openai_chat": "/chat/completions", "openai_responses": "/responses", "anthropic_messages": "/messages",
    "gemini_generate": "/models/m:streamGenerateContent?alt=sse", "bedrock_converse": "/model/m/converse-stream",
    "ollama_chat": "/chat", "gemini_interactions": "/interactions",
    "cohere_chat": "/chat", "bedrock_invoke": "/model/m/invoke-with-response-stream",
}
each_format = pytest.mark.parametrize("api", CALLING)


@each_format
def test_the_body_is_what_the_provider_documents(api: str) -> None:
    request = story(api, extra=EXTRA.get(api, {"temperature": 0}))
    assert wire(api).encode_request(request) == BODIES[api]
    assert wire(api).path(request) == PLACES[api]


@each_format
def test_a_request_that_was_encoded_is_read_back(api: str) -> None:
    format_, request = wire(api), story(api, extra=EXTRA.get(api, {"temperature": 0}))
    again = format_.read_request(format_.encode_request(request), "http://h/v1" + format_.path(request))
    assert request_essence(again, format_.asking_loses) == request_essence(request, format_.asking_loses)


@each_row(("api", "choice", "field", "expected"), [
    ("openai_chat", "auto", "tool_choice", "auto"),
    ("openai_chat", "any", "tool_choice", "required"),
    ("openai_chat", "none", "tool_choice", "none"),
    ("openai_responses", "auto", "tool_choice", "auto"),
    ("openai_responses", "any", "tool_choice", "required"),
    ("openai_responses", "none", "tool_choice", "none"),
    ("anthropic_messages", "auto", "tool_choice", {"type": "auto"}),
    ("anthropic_messages", "any", "tool_choice", {"type": "any"}),
    ("anthropic_messages", "none", "tool_choice", {"type": "none"}),
    ("gemini_generate", "auto", "toolConfig", {"functionCallingConfig": {"mode": "AUTO"}}),
    ("gemini_generate", "any", "toolConfig", {"functionCallingConfig": {"mode": "ANY"}}),
    ("gemini_generate", "none", "toolConfig", {"functionCallingConfig": {"mode": "NONE"}}),
    ("gemini_interactions", "auto", "generation_config", {"max_output_tokens": 300, "tool_choice": "auto"}),
    ("gemini_interactions", "any", "generation_config", {"max_output_tokens": 300, "tool_choice": "any"}),
    ("gemini_interactions", "none", "generation_config", {"max_output_tokens": 300, "tool_choice": "none"}),
])
def test_the_four_choices_of_tools(api: str, choice: str, field: str, expected: Any) -> None:
    """pi's agent loop: auto, any, none and one tool; the last stands in BODIES."""
    body = wire(api).encode_request(replace(story(api), tool_choice=choice))
    assert body[field] == expected
    assert wire(api).read_request(body).tool_choice == choice


@pytest.mark.parametrize(("choice", "expected"), [("auto", {"auto": {}}), ("any", {"any": {}})])
def test_converse_chooses_by_key(choice: str, expected: Any) -> None:
    body = wire("bedrock_converse").encode_request(replace(story("bedrock_converse"), tool_choice=choice))
    assert body["toolConfig"]["toolChoice"] == expected


@each_format
def test_a_choice_that_does_not_exist_is_refused(api: str) -> None:
    with pytest.raises(EncodeError, match=r"'most'.*expected auto, any, none or tool:NAME"):
        wire(api).encode_request(replace(story(api), tool_choice="most"))


def test_converse_has_no_choice_none_and_declares_no_tool_instead() -> None:
    request = Request("bedrock_converse", (Message(Role.USER, (TextPart("Hi"),)),), "m", (WEATHER,), "none")
    assert "toolConfig" not in wire("bedrock_converse").encode_request(request)
    with pytest.raises(EncodeError, match="no tool choice none"):
        wire("bedrock_converse").encode_request(replace(story("bedrock_converse"), tool_choice="none"))


def test_converse_refuses_a_history_with_calls_and_no_tools() -> None:
    with pytest.raises(EncodeError, match="needs its tools declared"):
        wire("bedrock_converse").encode_request(replace(story("bedrock_converse"), tools=(), tool_choice=None))


def test_ollama_has_no_choice_and_none_declares_no_tool() -> None:
    for choice in ("any", "auto"):
        body = wire("ollama_chat").encode_request(replace(story("ollama_chat"), tool_choice=choice))
        assert "tool_choice" not in body
        assert body["tools"]
    assert "tools" not in wire("ollama_chat").encode_request(replace(story("ollama_chat"), tool_choice="none"))


def test_messages_needs_a_cap() -> None:
    with pytest.raises(EncodeError, match="anthropic_messages: a request needs max_tokens"):
        wire("anthropic_messages").encode_request(replace(story("anthropic_messages"), max_tokens=None))


@each_row("api", sorted(set(CALLING) - {"openai_chat", "gemini_generate"}))
def test_only_one_answer_can_be_asked_for(api: str) -> None:
    with pytest.raises(EncodeError, match="only one answer"):
        wire(api).encode_request(replace(story(api), n=2))


@each_row("api", ["anthropic_messages", "bedrock_converse", "gemini_generate", "ollama_chat"])
def test_arguments_that_are_no_object_are_never_sent(api: str) -> None:
    cut = Message(Role.ASSISTANT, (ToolCall("x", "weather", '{"city": "Os'),))
    with pytest.raises(EncodeError, match="not a JSON object"):
        wire(api).encode_request(replace(story(api), messages=(cut,)))


@pytest.mark.parametrize(("api", "function"), [
    ("openai_chat", lambda body: body["messages"][0]["tool_calls"][0]["function"]),
    ("openai_responses", lambda body: body["input"][0]),
    ("cohere_chat", lambda body: body["messages"][0]["tool_calls"][0]["function"]),
])
def test_arguments_that_came_as_an_object_are_a_text_where_the_format_takes_a_text(
    api: str, function: Callable[[Any], Any]
) -> None:
    """A conversation that began at Anthropic or Gemini, and goes on here. OpenAI answers 400 to an object."""
    asked = Message(Role.ASSISTANT, (ToolCall("x", "weather", '{"city": "Oslo"}', True, form=ArgsForm.OBJECT),))
    body = json.loads(json.dumps(wire(api).encode_request(replace(story(api), messages=(asked,)))))
    assert function(body)["arguments"] == '{"city": "Oslo"}'


@each_row(("api", "calls", "results"), [
    ("openai_chat",
     lambda body: [call["id"] for call in body["messages"][0]["tool_calls"]],
     lambda body: [message["tool_call_id"] for message in body["messages"][1:]]),
    ("openai_responses",
     lambda body: [item["call_id"] for item in body["input"][:2]],
     lambda body: [item["call_id"] for item in body["input"][2:]]),
    ("anthropic_messages",
     lambda body: [block["id"] for block in body["messages"][0]["content"]],
     lambda body: [block["tool_use_id"] for block in body["messages"][1]["content"]]),
    ("gemini_interactions",
     lambda body: [step["id"] for step in body["input"][:2]],
     lambda body: [step["call_id"] for step in body["input"][2:]]),
    ("bedrock_converse",
     lambda body: [block["toolUse"]["toolUseId"] for block in body["messages"][0]["content"]],
     lambda body: [block["toolResult"]["toolUseId"] for block in body["messages"][1]["content"]]),
])
def test_calls_without_ids_are_counted_and_their_results_find_them(
    api: str, calls: Callable[[Any], list[str]], results: Callable[[Any], list[str]]
) -> None:
    """Ollama gives none, some servers give empty ones; results came in another order."""
    history = (
        Message(Role.ASSISTANT, (ToolCall(None, "weather", "{}", True), ToolCall("", "time", "{}", True))),
        Message(Role.TOOL, (ToolResultPart(None, "time", "noon"), ToolResultPart(None, "weather", "sun"))),
    )
    body = wire(api).encode_request(Request(api, history, "m", (WEATHER,), max_tokens=9))
    assert calls(body) == ["call00000", "call00001"]
    assert results(body) == ["call00001", "call00000"]


IDS: dict[str, Callable[[Any], tuple[list[Any], list[Any]]]] = {
    "gemini_interactions": lambda body: (
        [step["id"] for step in body["input"] if step["type"] == "function_call"],
        [(step["call_id"], step["result"]) for step in body["input"] if step["type"] == "function_result"]),
    "openai_chat": lambda body: (
        [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())],
        [(message["tool_call_id"], message["content"]) for message in body["messages"] if message["role"] == "tool"]),
    "openai_responses": lambda body: (
        [item["call_id"] for item in body["input"] if item["type"] == "function_call"],
        [(item["call_id"], item["output"]) for item in body["input"] if item["type"] == "function_call_output"]),
    "anthropic_messages": lambda body: (
        [block["id"] for message in body["messages"] for block in message["content"] if block["type"] == "tool_use"],
        [(block["tool_use_id"], block["content"]) for message in body["messages"] for block in message["content"]
         if block["type"] == "tool_result"]),
    "bedrock_converse": lambda body: (
        [block["toolUse"]["toolUseId"] for message in body["messages"] for block in message["content"]
         if "toolUse" in block],
        [(block["toolResult"]["toolUseId"], block["toolResult"]["content"][0]["text"])
         for message in body["messages"] for block in message["content"] if "toolResult" in block]),
    "gemini_generate": lambda body: (
        [part["functionCall"]["id"] for content in body["contents"] for part in content["parts"]
         if "functionCall" in part],
        [(part["functionResponse"]["id"], part["functionResponse"]["response"]["output"])
         for content in body["contents"] for part in content["parts"] if "functionResponse" in part]),
    "cohere_chat": lambda body: (
        [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())],
        [(message["tool_call_id"], message["content"]) for message in body["messages"] if message["role"] == "tool"]),
    "ollama_chat": lambda body: (
        [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())],
        [(message["tool_call_id"], message["content"]) for message in body["messages"] if message["role"] == "tool"]),
}
IDS["bedrock_invoke"] = IDS["anthropic_messages"]
"""Format -> the ids of the calls of a body, and each result with the id that it answers."""


@each_row("api", sorted(CALLING))
def test_ids_that_come_twice_are_made_unique_and_their_results_follow(api: str) -> None:
    """Servers give every call of an answer the same id, or count from 0 in every answer; strict ones refuse such a
    history."""
    first, second = (ToolCall("call_0", "weather", '{"city": "Oslo"}', True),
                     ToolCall("call_0", "weather", '{"city": "Rome"}', True))
    third = ToolCall("call_0", "time", "{}", True)
    history = (
        Message(Role.ASSISTANT, (first, second)),
        Message(Role.TOOL, (ToolResultPart("call_0", "weather", "rain"), ToolResultPart("call_0", "weather", "sun"))),
        Message(Role.ASSISTANT, (third,)), Message(Role.TOOL, (ToolResultPart("call_0", "time", "noon"),)),
    )
    body = wire(api).encode_request(Request(api, history, "m", (WEATHER,), max_tokens=9))
    calls, results = IDS[api](body)
    assert calls[0] == "call_0"
    assert len(set(calls)) == 3
    assert results == [(calls[0], "rain"), (calls[1], "sun"), (calls[2], "noon")]
    assert all(name.replace("_", "").isalnum() for name in calls)
    before = wire(api).encode_request(Request(api, history[:2], "m", (WEATHER,), max_tokens=9))
    assert IDS[api](before) == (calls[:2], results[:2]), "what was sent before is sent again as it was"


def test_an_id_that_is_made_is_none_that_the_provider_gave() -> None:
    parts = tuple(ToolCall(given, "time", "{}", True) for given in ("call00000", None, "call00000"))
    history = (Message(Role.ASSISTANT, parts),)
    calls, _ = IDS["openai_chat"](wire("openai_chat").encode_request(Request("openai_chat", history, "m")))
    assert calls == ["call00000", "call00001", "call00002"]


@each_row(("text", "as_object"), [
    ('{"sky": "clear"}', {"sky": "clear"}),
    ('{"at": NaN}', None),
    ('{"at": -Infinity}', None),
    ('{"at": 1e400}', None),
    (r'{"name": "\ud800"}', None),
    ('{"a": 1, "a": 2}', None),
    ('{"a": {"b": 1, "b": 2}}', None),
    ("[1]", None),
    ('{"id": 12345678901234567890.5}', None),
    ('{"n": 0.1000000000000000055}', None),
    ('{"id": 1234567890123456789}', None),
    ('{"id": 1E-9999999999999999999}', None),  # beyond the exponents of Decimal
    ('{"n": 1e-400}', None),
    ('{"n": [0.1, 1.50, 1e5, -3, 9007199254740992]}', {"n": [0.1, 1.5, 1e5, -3, 9007199254740992]}),
])
def test_a_result_goes_as_an_object_only_if_that_says_the_same(text: str, as_object: dict[str, Any] | None) -> None:
    history = (Message(Role.ASSISTANT, (ToolCall("x", "weather", "{}", True),)),
               Message(Role.TOOL, (ToolResultPart("x", "weather", text),)))
    body = wire("gemini_generate").encode_request(Request("gemini_generate", history))
    response = body["contents"][1]["parts"][0]["functionResponse"]["response"]
    assert response == (as_object or {"output": text})
    body = wire("gemini_interactions").encode_request(Request("gemini_interactions", history))
    assert body["input"][1]["result"] == (as_object or text)


def test_the_signature_of_gemini_goes_back_with_its_call_through_chat_completions() -> None:
    """Gemini's compatible endpoint refuses a history with a call that has lost its signature."""
    signed = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"},
              "extra_content": {"google": {"thought_signature": "c2ln"}}}
    plain = {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    message = {"role": "assistant", "tool_calls": [signed, plain]}
    said = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    calls = decode_response("openai_chat", json.dumps(said).encode()).tool_calls
    request = Request("openai_chat", (Message(Role.ASSISTANT, calls),), "m")
    body = wire("openai_chat").encode_request(request)
    assert body["messages"][0]["tool_calls"] == [signed, plain]
    again = wire("openai_chat").read_request(body).messages[0].tool_calls
    assert [call.signature for call in again] == [call.signature for call in calls] == ["c2ln", None]


def test_a_result_gets_the_name_that_gemini_asks_for() -> None:
    history = (Message(Role.ASSISTANT, (ToolCall("x", "weather", "{}", True),)),
               Message(Role.TOOL, (ToolResultPart("x", None, "sun"),)))
    body = wire("gemini_generate").encode_request(Request("gemini_generate", history))
    assert body["contents"][1]["parts"] == [
        {"functionResponse": {"id": "x", "name": "weather", "response": {"output": "sun"}}}]
    with pytest.raises(EncodeError, match="needs the name"):
        wire("gemini_generate").encode_request(Request("gemini_generate", history[1:]))


def test_gemini_signatures_go_back_with_what_they_sign() -> None:
    """Gemini 3 answers 400 to a call whose thoughtSignature is missing."""
    parts = (ToolCall("x", "weather", "{}", True, form=ArgsForm.OBJECT, signature="c2ln"), ReasoningPart("", "ZW5k"))
    body = wire("gemini_generate").encode_request(Request("gemini_generate", (Message(Role.ASSISTANT, parts),)))
    assert body["contents"][0]["parts"] == [
        {"functionCall": {"id": "x", "name": "weather", "args": {}}, "thoughtSignature": "c2ln"},
        {"text": "", "thoughtSignature": "ZW5k"}]


def test_thinking_of_anthropic_goes_back_signed_and_redacted() -> None:
    parts = (ReasoningPart("hm", "sig"), ReasoningPart("", data="opaque"), TextPart("So:"))
    request = Request("anthropic_messages", (Message(Role.ASSISTANT, parts),), "m", max_tokens=9)
    assert wire("anthropic_messages").encode_request(request)["messages"][0]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "opaque"}, {"type": "text", "text": "So:"}]


def test_encrypted_reasoning_of_responses_goes_back_in_order() -> None:
    parts = (ReasoningPart("hm", data="gAAA", item_id="rs_1"), TextPart("So:"))
    request = Request("openai_responses", (Message(Role.ASSISTANT, parts),), "m", previous_id="resp_1", background=True)
    assert wire("openai_responses").encode_request(request) == {
        "model": "m", "previous_response_id": "resp_1", "background": True,
        "input": [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
                   "encrypted_content": "gAAA"},
                  {"type": "message", "role": "assistant", "status": "completed",
                   "content": [{"type": "output_text", "text": "So:", "annotations": []}]}]}


def test_what_a_chat_answer_holds_beside_its_content_is_no_field_of_a_message() -> None:
    parts = (TextPart("So:"), OpaquePart("message.audio", '{"id": "audio_1", "data": "UklG"}'),
             OpaquePart("message.annotations", '{"type": "url_citation"}'))
    body = wire("openai_chat").encode_request(Request("openai_chat", (Message(Role.ASSISTANT, parts),)))
    assert body["messages"] == [{"role": "assistant", "content": "So:", "audio": {"id": "audio_1"}}]


def test_citations_stand_in_their_block_again() -> None:
    parts = (TextPart("So:"), OpaquePart("text.fields", '{"citations": [{"cited_text": "x"}]}'))
    request = Request("anthropic_messages", (Message(Role.ASSISTANT, parts),), "m", max_tokens=9)
    assert wire("anthropic_messages").encode_request(request)["messages"][0]["content"] == [
        {"type": "text", "text": "So:", "citations": [{"cited_text": "x"}]}]
    cited = (TextPart("So:"), OpaquePart("citationsContent.fields", '{"citations": [{"title": "x"}]}'))
    converse = Request("bedrock_converse", (Message(Role.ASSISTANT, cited),))
    assert wire("bedrock_converse").encode_request(converse)["messages"][0]["content"] == [
        {"citationsContent": {"content": [{"text": "So:"}], "citations": [{"title": "x"}]}}]


IMAGES = {
    "openai_chat": {"type": "image_url", "image_url": {"url": "https://e/x.png"}},
    "openai_responses": {"type": "input_image", "image_url": "https://e/x.png"},
    "anthropic_messages": {"type": "image", "source": {"type": "url", "url": "https://e/x.png"}},
    "gemini_generate": {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
    "bedrock_converse": {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
    "gemini_interactions": {"type": "image", "mime_type": "image/png", "data": "AAAA"},
    "ollama_chat": "AAAA",
    "cohere_chat": {"type": "image_url", "image_url": {"url": "https://e/x.png"}},
    "bedrock_invoke": {"type": "image", "source": {"type": "url", "url": "https://e/x.png"}},
}


@each_format
def test_images_go_through(api: str) -> None:
    image = OpaquePart("image", json.dumps(IMAGES[api]))
    request = Request(api, (Message(Role.USER, (TextPart("What is it?"), image)),), "m", max_tokens=9)
    body = wire(api).encode_request(request)
    inner = {"gemini_generate": "parts", "ollama_chat": "images"}.get(api, "content")
    assert body[wire(api).history][0][inner][-1] == IMAGES[api]
    assert OpaquePart in {type(part) for part in wire(api).read_request(body).messages[0].parts}


@each_row(("api", "content"), [
    ("anthropic_messages", [{"type": "text", "text": "See:"}, IMAGES["anthropic_messages"]]),
    ("bedrock_converse", [{"text": "See:"}, IMAGES["bedrock_converse"]]),
    ("openai_responses", [{"type": "input_text", "text": "See:"}, IMAGES["openai_responses"]]),
    ("gemini_interactions", [{"type": "text", "text": "See:"}, IMAGES["gemini_interactions"]]),
])
def test_an_image_in_a_result_goes_through(api: str, content: list[Any]) -> None:
    result = ToolResultPart("x", None, "See:", json=json.dumps(content))
    body = wire(api).encode_request(Request(api, (Message(Role.TOOL, (result,)),), "m", (WEATHER,), max_tokens=9))
    assert json.dumps(content) in json.dumps(body)
    read = wire(api).read_request(body).messages[0].results[0]
    assert json.loads(read.json or "") == content


LONG_NUMBERS = '{"a":12345678901234567890.5,"b":[0.1000000000000000055,1.50],"c":1e5,"d":123456789012345678901}'
"""Arguments with more digits than a double holds, and with more than it needs."""


@pytest.mark.parametrize("form", ArgsForm)
@each_format
def test_a_number_goes_out_with_the_digits_that_came_in(api: str, form: ArgsForm) -> None:
    call = ToolCall("c1", "weather", LONG_NUMBERS, closed=True, form=form)
    image = OpaquePart("image", '{"type":"image","scale":0.1000000000000000055}')
    history = (Message(Role.USER, (TextPart("Look."), image)), Message(Role.ASSISTANT, (call,)),
               Message(Role.TOOL, (ToolResultPart("c1", "weather", LONG_NUMBERS),)))
    sent = dump(wire(api).encode_request(Request(api, history, "m", (WEATHER,), max_tokens=9)))
    plain = sent.replace("\\", "")
    assert plain.count(LONG_NUMBERS) == 2
    assert '"scale":0.1000000000000000055' in sent


def test_free_form_tools_and_tools_of_the_provider() -> None:
    tools = (Tool("patch", description="A patch.", kind=CallKind.CUSTOM), Tool("web_search", kind=CallKind.SERVER))
    call = Message(Role.ASSISTANT, (ToolCall("c", "patch", "*** Begin", True, CallKind.CUSTOM),))
    done = Message(Role.TOOL, (ToolResultPart("c", None, "ok"),))
    chat = wire("openai_chat").encode_request(Request("openai_chat", (call, done), "m", tools, "tool:patch"))
    assert chat["tools"] == [{"type": "custom", "custom": {"name": "patch", "description": "A patch."}},
                             {"type": "web_search"}]
    assert chat["tool_choice"] == {"type": "custom", "custom": {"name": "patch"}}
    assert chat["messages"][0]["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}]
    responses = wire("openai_responses").encode_request(
        Request("openai_responses", (call, done), "m", tools, "tool:patch"))
    assert responses["tools"] == [{"type": "custom", "name": "patch", "description": "A patch."},
                                  {"type": "web_search"}]
    assert responses["input"] == [
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}]
    for api in ("anthropic_messages", "bedrock_converse", "gemini_generate", "ollama_chat"):
        with pytest.raises(EncodeError, match="there are no custom calls"):
            wire(api).encode_request(Request(api, (call,), "m", (WEATHER,), max_tokens=9))


def test_a_client_tool_of_responses_is_answered_in_its_own_kind() -> None:
    item = {"type": "computer_call", "id": "cu_1", "call_id": "c", "action": {"type": "click"}, "status": "completed"}
    call = ToolCall("c", "computer", json.dumps(item), True, CallKind.CUSTOM, ArgsForm.OBJECT)
    shown = ToolResultPart("c", None, json.dumps({"type": "computer_screenshot", "image_url": "data:"}))
    body = wire("openai_responses").encode_request(
        Request("openai_responses", (Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (shown,)))))
    assert body["input"] == [item, {"type": "computer_call_output", "call_id": "c",
                                    "output": {"type": "computer_screenshot", "image_url": "data:"}}]


@each_format
def test_a_declaration_goes_back_as_it_was_read(api: str) -> None:
    """`strict`, `cache_control` and a server tool's settings have no field of ours."""
    format_ = wire(api)
    body = format_.encode_request(story(api))
    holder = body["toolConfig"] if api == "bedrock_converse" else body
    declared = holder["tools"][0]
    inner = declared["functionDeclarations"][0] if "functionDeclarations" in declared else declared
    inner["kept"] = {"as": "it is"}
    assert json.dumps({"as": "it is"}) in json.dumps(format_.encode_request(format_.read_request(body)))


# -- schemas that Gemini does not take -------------------------------------------------------------------------------

UNION = {
    "type": "object",
    "properties": {
        "mode": {"anyOf": [{"const": "fast"}, {"const": "deep"}]},
        "note": {"type": ["string", "null"]},
        "a/b": {"$ref": "#/$defs/Options"},
    },
    "additionalProperties": False,
    "$defs": {"Options": {"type": "object", "properties": {"n": {"type": "integer", "const": 3}}}},
}


def test_what_the_openapi_dialect_does_not_take_is_told_with_its_place() -> None:
    found = problems(Tool("t", UNION, dialect="openapi"))
    assert [(problem.pointer, problem.keyword) for problem in found] == [
        ("/properties/mode/anyOf", "anyOf"),
        ("/properties/note/type", "a list of types"),
        ("/properties/a~1b/$ref", "$ref"),
        ("/additionalProperties", "additionalProperties"),
        ("/$defs", "$defs"),
    ]


def test_the_json_schema_dialect_takes_more() -> None:
    found = problems(Tool("t", UNION))
    assert [(problem.pointer, problem.keyword) for problem in found] == [
        ("/properties/mode/anyOf/0/const", "const"), ("/properties/mode/anyOf/1/const", "const"),
        ("/$defs/Options/properties/n/const", "const")]


def test_a_property_may_be_called_like_a_keyword() -> None:
    assert problems(Tool("t", {"type": "object", "properties": {"const": {"type": "string"}}}, dialect="openapi")) == ()


@pytest.mark.parametrize("dialect", ["openapi", "json_schema"])
def test_a_schema_is_refused_with_the_place_and_reduced_only_when_asked(dialect: str) -> None:
    tool = Tool("t", {"type": "object", "properties": {"mode": {"const": "fast"}}}, dialect=dialect)
    request = Request("gemini_generate", tools=(tool,))
    with pytest.raises(EncodeError, match="the schema of t at /properties/mode/const: const is not taken"):
        wire("gemini_generate").encode_request(request)
    body = wire("gemini_generate").encode_request(replace(request, tools=(reduce_schema(tool),)))
    field = {"openapi": "parameters", "json_schema": "parametersJsonSchema"}[dialect]
    assert body["tools"][0]["functionDeclarations"] == [
        {"name": "t", field: {"type": "object", "properties": {"mode": {"enum": ["fast"], "type": "string"}}}}]


def test_a_reduced_schema_says_what_it_can() -> None:
    made = reduce_schema(Tool("t", UNION, dialect="openapi"))
    assert made.schema == {
        "type": "object",
        "properties": {
            "mode": {"enum": ["fast", "deep"], "type": "string"},
            "note": {"type": "string", "nullable": True},
            "a/b": {"type": "object", "properties": {"n": {"type": "integer", "enum": [3]}}},
        },
    }
    assert problems(made) == ()


def test_a_schema_that_refers_to_itself_is_reduced_to_an_end() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    made = reduce_schema(Tool("t", tree, dialect="openapi"))
    assert made.schema == {"type": "object", "properties": {"child": {"type": "object", "properties": {"child": {}}}}}


def test_a_union_with_null_is_nullable_and_other_unions_lose_their_kinds() -> None:
    schema = {"type": "object", "properties": {
        "a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "d"},
        "b": {"oneOf": [{"type": "integer"}, {"type": "string"}], "description": "e"}}}
    made = reduce_schema(Tool("t", schema, dialect="openapi"))
    assert made.schema is not None
    assert made.schema["properties"] == {
        "a": {"type": "integer", "nullable": True, "description": "d"}, "b": {"description": "e"}}


# -- what a request loses --------------------------------------------------------------------------------------------

HELLO = Message(Role.USER, (TextPart("Hi."),))
LOOK = ToolCall("c1", "weather", "{}", closed=True)
FOUND = ToolResultPart("c1", "weather", "ok")
IMAGE = '[{"type":"text","text":"ok"},{"type":"image","image":"QUJD"}]'
TWO_SUMMARIES = ('{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}, '
                 '{"type": "summary_text", "text": "Aha."}]}')
UNSIGNED = ("gemini_generate", "gemini_interactions", "ollama_chat", "cohere_chat")
"""Formats that have no encrypted thinking."""
ONLY_TEXT = ("openai_chat", "gemini_generate", "ollama_chat", "cohere_chat")
"""Formats whose results hold no image."""
Ask = Callable[[str], Request]


def ask_of(*messages: Message, **more: Any) -> Ask:
    return lambda api: Request(api, (HELLO, *messages), "m", max_tokens=9, **more)


def thinking(**more: Any) -> Ask:
    return ask_of(Message(Role.ASSISTANT, (ReasoningPart("Hm.")._replace(**more), TextPart("So."))), HELLO)


def call_ask(call: ToolCall = LOOK, result: ToolResultPart = FOUND, **more: Any) -> Ask:
    return ask_of(Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (result,)), HELLO, tools=(WEATHER,), **more)


FACTS: Sequence[tuple[Ask, Sequence[str]]] = (
    *((thinking(**more), CALLING) for more in (
        {"signature": "c2ln"}, {"item_id": "rs_1"},
        {"text": "Hm.\n\nAha.", "item_id": "rs_1", "json": TWO_SUMMARIES})),
    (ask_of(Message(Role.ASSISTANT, (TextPart("I look.", "commentary"), TextPart("So.", "final_answer"))), HELLO),
     CALLING),
    (thinking(data="ZGF0"), UNSIGNED),
    *((call_ask(LOOK._replace(**more)), CALLING) for more in (
        {"form": ArgsForm.OBJECT}, {"status": "completed"}, {"item_id": "fc_1"}, {"signature": "c2ln"})),
    (call_ask(result=FOUND._replace(is_error=True)), CALLING), (call_ask(result=FOUND._replace(json=IMAGE)), ONLY_TEXT),
    (ask_of(Message(Role.ASSISTANT, (LOOK, LOOK._replace(id="c2"))), Message(Role.TOOL, (
        FOUND, FOUND._replace(call_id="c2"))), tools=(WEATHER,)), CALLING),
    (ask_of(Message(Role.ASSISTANT, (LOOK, LOOK._replace(id="c2"))), Message(Role.TOOL, (FOUND,)), Message(
        Role.TOOL, (FOUND._replace(call_id="c2"),)), HELLO, tools=(WEATHER,)), CALLING),
    (ask_of(Message(Role.TOOL, (FOUND,)), tools=(WEATHER,)), CALLING),  # the call is on the provider's side
    (ask_of(Message(Role.USER, (TextPart("a"), TextPart("b")))), CALLING),
    (ask_of(Message(Role.ASSISTANT, (TextPart("So."), OpaquePart("audio", '{"id":"a1","data":"QUJD"}'))), HELLO),
     ("openai_chat",)),
    (ask_of(tools=(WEATHER, Tool("time", {"type": "object"})), tool_choice="tool:weather"), CALLING),
    *((ask_of(**{name: value}), tuple(FORMATS)) for name, value in (
        ("previous_id", "p"), ("continuation_token", "dG9r"), ("background", True))),
)
"""Requests that hold one thing more than the others, and the formats of which that is asked."""


@each_row("api", FORMATS)
def test_what_a_request_loses_is_what_its_format_says(api: str) -> None:
    """What is neither refused nor said to be lost is read back."""
    format_, loses = wire(api), wire(api).asking_loses
    for ask in (ask for ask, formats in FACTS if api in formats):
        try:
            body = format_.encode_request(ask(api))
        except EncodeError:
            continue
        again = format_.read_request(body, "http://h/v1" + format_.path(ask(api)))
        kept, sent = request_essence(again, loses), request_essence(ask(api), loses)
        if api not in CALLING:  # one text, of which the test below speaks
            del kept["messages"], sent["messages"]
        assert kept == sent


@pytest.mark.parametrize("api", [api for api in FORMATS if api not in CALLING])
def test_a_prompt_is_one_text(api: str) -> None:
    ask = ask_of(Message(Role.ASSISTANT, (ReasoningPart("Hm."), TextPart("a"), TextPart("b"))), HELLO)(api)
    again = wire(api).read_request(wire(api).encode_request(ask))
    (message,) = again.messages
    assert [type(part) for part in message.parts] == [TextPart]
    assert message.role is Role.USER
    assert message.text.replace("\n", "") == "Hi.abHi."
    assert {"message.role", "message.grouping", "text.grouping", "reasoning"} <= wire(api).asking_loses.keys()


# -- properties ------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
NAMES = st.sampled_from(["weather", "time"])


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """System prompt, then rounds of question, thinking, text, calls with their results."""
    made = [Message(Role.SYSTEM, (TextPart(draw(TEXT)),))] if draw(st.booleans()) else []
    for round_ in range(draw(st.integers(1, 3))):
        made.append(Message(Role.USER, tuple(TextPart(draw(TEXT)) for _ in range(draw(st.integers(1, 2))))))
        parts: list[Any] = [ReasoningPart(draw(TEXT))] if draw(st.booleans()) else []
        parts.append(TextPart(draw(TEXT)))
        names = draw(st.lists(NAMES, max_size=2))
        arguments = [json.dumps({"v": draw(TEXT | st.integers())}, ensure_ascii=False, separators=(",", ":"))
                     for _ in names]
        calls = [ToolCall(f"c{round_}_{n}", name, args, True)
                 for n, (name, args) in enumerate(zip(names, arguments, strict=True))]
        made.append(Message(Role.ASSISTANT, (*parts, *calls)))
        if calls:
            made.append(Message(Role.TOOL, tuple(
                ToolResultPart(call.id, call.name, f"r {draw(TEXT)}", draw(st.booleans())) for call in calls)))
    return tuple(made)


CHOICES = st.sampled_from([None, "auto", "any", "tool:weather"])


@each_format
@given(history=histories(), choice=CHOICES, cap=st.integers(1, 9999), stream=st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_request_is_read_back(
    api: str, history: tuple[Message, ...], choice: str | None, cap: int, stream: bool
) -> None:
    format_ = wire(api)
    tools = (WEATHER, Tool("time", {"type": "object"}))
    request = Request(api, history, "m", tools, choice, cap, stream)
    body = json.loads(json.dumps(format_.encode_request(request)))
    again = format_.read_request(body, "http://h/v1" + format_.path(request))
    assert request_essence(again, format_.asking_loses) == request_essence(request, format_.asking_loses)
    assert format_.encode_request(again) == format_.encode_request(request)


# -- recorded bodies -------------------------------------------------------------------------------------------------

DIFFERS: Mapping[str, Sequence[str]] = {
    "openai_chat": (
        r"/max(_completion)?_tokens",  # the profile says how a server wants the cap named
        r"/tool_choice",  # `any` is an alias, and a set of allowed tools keeps its mode
        r"/functions|/tools|/function_call",  # the first form of tools is sent in the present one
        r"/model",  # Azure names it in the URL
        r"/messages/\*/(reasoning|reasoning_content|reasoning_details.*)",  # one spelling of thinking
        r"/messages/\*/content",  # the texts of a result are one
        r"/messages/\*/role",  # developer is system
        r"/messages/\*/name", r".*/cache_control",  # no field of ours
        r"/n",  # 1 is the default
    ),
    "openai_responses": (
        r"/input|/instructions",  # a system message that comes first is the instructions
        r"/input/\*/(type|status|id|namespace|role|tools|content)", r".*/prompt_cache_breakpoint",
        r"/tool_choice",  # as above
    ),
    "anthropic_messages": (
        r"/system|/messages/\*/content|.*/cache_control",  # cache marks have no field of ours
        r"/model",  # Vertex names it in the URL
    ),
    "gemini_generate": (
        r"/systemInstruction(/role|/parts)?|/model|/config|/contents|/generationConfig(/candidateCount)?|/tools",
        r"/contents/\*/parts/\*/(function_?([cC]all|[rR]esponse)|thought_?[sS]ignature)",  # one spelling
        r"/contents/\*/parts/\*/functionResponse/response/(result|output)", r"/contents/\*/role",
        r"/toolConfig/functionCallingConfig/allowedFunctionNames",  # several allowed names
    ),
    "bedrock_converse": (r"/messages/\*/content/\*/toolResult/(status|type)", r"/messages"),
    "gemini_interactions": (
        r"/input(/\*/(type|content|call_id|name|result))?",  # texts are a step of the user's; a result is one by itself
    ),
    "ollama_chat": (r"/messages/\*/tool_calls/\*/type",),
    "bedrock_invoke": (  # as above; Nova names the cap in two ways
        r"/system|/messages/\*/content|.*/cache_control|.*/cachePoint|/inferenceConfig/max(_new_t|T)okens",),
    "cohere_chat": (  # a result is one text, no single tool is forced, and the first version is sent as the second
        r"/messages/\*/content", r"/tool_choice", r"/(message|messages|chat_history|preamble)"),
}
"""Where a body that was read and encoded may differ from the recorded one, in paths; everything else is the same."""


def plain(value: Any) -> Any:
    """The body without what says nothing: absent and empty fields, and one text in a list of its own."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: plain(item) for key, item in value.items()}
    for key in ("content", "output", "system"):
        item = made.get(key)
        only = item[0] if isinstance(item, list) and len(item) == 1 else None
        if isinstance(only, dict) and isinstance(only.get("text"), str) and only.keys() <= {"type", "text"}:
            made[key] = only["text"]
    asked_ = made.get("input")
    only = asked_[0] if isinstance(asked_, list) and len(asked_) == 1 else asked_
    if isinstance(only, dict) and only.get("type") in ("text", "user_input"):  # one text of the user's, in three ways
        text = only.get("text", only.get("content"))
        made["input"] = text if isinstance(text, str) else asked_
    return {key: item for key, item in made.items() if item not in (None, [], {}, False, "")}


def differences(one: Any, other: Any, path: str = "") -> set[str]:
    if one == other:
        return set()
    if isinstance(one, dict) and isinstance(other, dict):
        return {found for key in one.keys() | other.keys()
                for found in differences(one.get(key), other.get(key), f"{path}/{key}")}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return {found for a, b in zip(one, other, strict=True) for found in differences(a, b, f"{path}/*")}
    return {path}


@each_format
def test_recorded_requests_are_read_encoded_and_read_again(
    api: str, traffic_of: Callable[[str], Sequence[Any]]
) -> None:
    format_ = wire(api)
    allowed = re.compile("|".join(DIFFERS[api]))
    same = count = 0
    for exchange in traffic_of(api):
        if not exchange.request or (api == "bedrock_invoke" and (
                not re.search(r"anthropic\.|nova", exchange.url) or "messages" not in exchange.request)):
            continue  # bodies of other makers, and of one prompt, are read only
        count += 1
        request = format_.read_request(exchange.request, exchange.url)
        body = json.loads(json.dumps(format_.encode_request(request)))
        again = format_.read_request(body, "http://h/v1" + format_.path(request))
        kept, sent = (request_essence(each, format_.asking_loses) for each in (again, request))
        assert kept == sent, exchange.id
        found = differences(plain(exchange.request), plain(body))
        assert {path for path in found if not allowed.fullmatch(path)} == set(), exchange.id
        same += not found
    assert same * 5 > count * 2, "most differences are not of the few kinds that are known"


# -- referees --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_botocore_takes_the_body(stream: bool) -> None:
    session = pytest.importorskip("botocore.session").get_session()
    validate = pytest.importorskip("botocore.validate").validate_parameters
    model = session.get_service_model("bedrock-runtime")
    shape = model.operation_model("ConverseStream" if stream else "Converse").input_shape
    body = wire("bedrock_converse").encode_request(replace(story("bedrock_converse"), stream=stream))
    validate({"modelId": "m", **body}, shape)
    unknown = set(body) - set(shape.members)
    assert unknown == set()


def test_the_sdks_of_google_and_ollama_take_the_body() -> None:
    types = pytest.importorskip("google.genai.types")
    body = wire("gemini_generate").encode_request(story("gemini_generate"))
    for content in body["contents"]:
        types.Content.model_validate(content)
    tool = types.Tool.model_validate(body["tools"][0])
    assert tool.function_declarations[0].parameters_json_schema == SCHEMA
    assert types.ToolConfig.model_validate(body["toolConfig"]).function_calling_config.mode == "ANY"
    ollama = pytest.importorskip("ollama._types")
    sent = ollama.ChatRequest.model_validate(wire("ollama_chat").encode_request(story("ollama_chat")))
    assert sent.model_dump(exclude_none=True)["messages"] == BODIES["ollama_chat"]["messages"]


@pytest.mark.parametrize(("api", "module", "name"), [
    ("openai_chat", "openai.types.chat.completion_create_params", "CompletionCreateParamsStreaming"),
    ("openai_responses", "openai.types.responses.response_create_params", "ResponseCreateParamsStreaming"),
    ("anthropic_messages", "anthropic.types.message_create_params", "MessageCreateParamsStreaming"),
])
def test_the_sdks_types_take_the_body(api: str, module: str, name: str) -> None:
    params = getattr(pytest.importorskip(module), name)
    from pydantic import TypeAdapter

    body = wire(api).encode_request(story(api, thinking=ReasoningPart("Look it up.", "sig", item_id="rs_1")))
    for item in body.get("input", ()):
        if item.get("role") == "assistant":
            item["id"] = "msg_1"  # the type asks for it; the API does not (recorded)
    TypeAdapter(params).validate_python(body)
    assert set(body) <= set(params.__annotations__) | {
        field for base in params.__mro__ for field in getattr(base, "__annotations__", {})} | set(
        getattr(params, "__required_keys__", ())) | set(getattr(params, "__optional_keys__", ()))


@each_row("api", [api for api in FORMATS if wire(api).history == "prompt"])
@each_row("role", [Role.USER, Role.SYSTEM, Role.ASSISTANT])
def test_a_prompt_refuses_what_is_no_text(api: str, role: Role) -> None:
    """An image of another format, or a block that only its provider knows, is never left out without a word."""
    block = OpaquePart("image_url", '{"type": "image_url", "image_url": {"url": "data:,x"}}')
    said = Message(role, (TextPart("Look."), block))
    with pytest.raises(EncodeError, match="image_url") as refused:
        wire(api).encode_request(Request(api, (said,), "m", max_tokens=9))
    assert refused.value.what == "opaque"


def test_of_two_tools_with_one_name_the_last_declaration_counts_wherever_it_is_asked_for() -> None:
    """For the judge, for a screen, and for the choice that forces it."""
    needs = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    first = Tool("shell", needs, kind=CallKind.CUSTOM, declaration={"type": "shell"})
    last = Tool("shell", {"type": "object", "properties": {}})
    asked = Request("openai_responses", (), tools=(first, last), tool_choice="tool:shell")
    assert encode_request("openai_responses", asked)["tool_choice"] == {"type": "function", "name": "shell"}
    assert tool_of(asked, "shell") is last
    call = ToolCall("c", "shell", "", closed=True)
    answer = ChatResponse("openai_responses", (call,), StopReason(Stop.END_TURN, "completed"))
    judged = judge(answer, asked)
    assert judged.stop.normalized is Stop.TOOL_CALL, "nothing is missing: the tool takes no arguments"
    assert [each.admission for each in admit_all(answer.tool_calls, judged, asked.tools)] == ["ready"]


@pytest.mark.parametrize("body", ['{"messages": []}', [{"role": "user"}], None])
def test_a_request_that_is_neither_bytes_nor_an_object_is_refused(body: Any) -> None:
    with pytest.raises(CallerError, match=f"expected JSON that is parsed, or as bytes, not {type(body).__name__}"):
        decode_request("openai_chat", body)


@each_row("origin", FORMATS)
@each_row("api", FORMATS)
def test_a_conversation_that_moves_leaves_the_reasoning_of_the_other_model_behind(api: str, origin: str) -> None:
    """Anthropic answers 400 to thinking that it did not sign; encrypted thinking is another provider's."""
    thinking = ReasoningPart("Look it up.", "c2ln", item_id="rs_1")
    parts = (thinking, TextPart("I look."))
    history = (Message(Role.USER, (TextPart("Oslo?"),)), Message(Role.ASSISTANT, (thinking,), origin),
               Message(Role.ASSISTANT, parts, origin), Message(Role.USER, (TextPart("And?"),)))
    alike = api == origin or origin in wire(api).signed_alike
    bare = tuple(message._replace(parts=tuple(part for part in message.parts if part is not thinking))
                 for message in history)
    model = "anthropic.claude" if api == "bedrock_invoke" else "m"
    asked = Request(api, history, model, max_tokens=9)
    sent = json.dumps(encode_request(api, asked))
    if alike:
        assert sent == json.dumps(wire(api).encode_request(asked))
    else:
        assert sent == json.dumps(encode_request(api, replace(asked, messages=tuple(filter(lambda m: m.parts, bare)))))
        assert "Look it up." not in sent
        assert "c2ln" not in sent
        assert "I look." in sent


@each_row(("api", "others"), [
    ("anthropic_messages", {"bedrock_converse", "bedrock_invoke"}), ("openai_responses", set()),
    ("bedrock_converse", {"anthropic_messages", "bedrock_invoke"}),
    ("bedrock_invoke", {"anthropic_messages", "bedrock_converse"}),
])
def test_a_signature_of_claude_holds_on_each_of_its_hosts(api: str, others: set[str]) -> None:
    """Claude docs, Extended thinking: signatures are compatible across platforms."""
    assert wire(api).signed_alike == others


@each_row("api", ["anthropic_messages", "openai_responses", "gemini_generate", "bedrock_converse"])
def test_a_history_that_is_read_says_whose_reasoning_it_holds(api: str) -> None:
    again = decode_request(api, json.loads(json.dumps(encode_request(api, story(api)))))
    assert next(message.api for message in again.messages if message.role is Role.ASSISTANT) == api
    assert {message.api for message in again.messages if message.role is not Role.ASSISTANT} == {None}
