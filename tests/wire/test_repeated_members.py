"""A member that one JSON object names twice: readers take the first value, the last, or refuse the object, so nothing
shows which value is meant."""

from __future__ import annotations

import json
import sys
from importlib import reload
from typing import Any

import pytest

from loop_core import encode_response, json_parser, read
from loop_core.values import ChatResponse, Stop, StopReason, ToolCall, Usage
from tests.scenes.rows import each_row

CALL = '{"index":0,"id":"x","function":{"name":"f","arguments":"{\\"a\\":1}"%s}}'
CHAT = '{"id":"a","choices":[{"index":0,"%s":{"tool_calls":[' + CALL + ']},"finish_reason":"tool_calls"%s}]}'


def chat(more_call: str = "", more_choice: str = "", stream: bool = True) -> bytes:
    body = CHAT % ("delta" if stream else "message", more_call, more_choice)
    return (f"data: {body}\n\ndata: [DONE]\n\n" if stream else body).encode()


def admissions(body: bytes, api: str = "openai_chat") -> list[str]:
    return [verdict.admission.value for verdict in read(api, body).calls]


@each_row("stream", [True, False])
@each_row(("call", "choice"), [
    (r',"arguments":"{\"a\":2}"', ""), (',"arguments":null', ""), (',"name":"g"', ""),
    ("", ',"finish_reason":"length","finish_reason":"tool_calls"'),
])
def test_a_call_beside_two_values_of_a_member_is_held(stream: bool, call: str, choice: str) -> None:
    found = read("openai_chat", chat(call, choice, stream))
    assert [verdict.admission for verdict in found.calls] == ["held"]
    assert found.stop_reason is Stop.MALFORMED_TOOL_CALL
    name = "frame" if stream else "body"
    (noted,) = [each for each in found.response.findings if each.rule == f"{name}.repeated_member"]
    assert noted.at is not None
    assert noted.at.start is not None


@each_row("stream", [True, False])
@each_row("choice", [',"finish_reason":"tool_calls"', ',"logprobs":null,"logprobs":{}'])
def test_a_member_with_one_value_named_twice_says_nothing(stream: bool, choice: str) -> None:
    found = read("openai_chat", chat("", choice, stream))
    assert [verdict.admission for verdict in found.calls] == ["ready"]
    assert found.response.findings == ()


@pytest.mark.parametrize(("api", "body"), [
    ("gemini_generate", '[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}%s}}]},'
                        '"finishReason":"STOP"}]}]'),
    ("gemini_generate", '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}%s}}]},'
                        '"finishReason":"STOP"}]}'),
    ("ollama_chat", '{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f",'
                    '"arguments":{"a":1}%s}}]},"done":true,"done_reason":"stop"}\n'),
])
def test_the_arguments_that_are_shown_are_not_another_readers(api: str, body: str) -> None:
    assert admissions((body % "").encode(), api) == ["ready"]
    name = "arguments" if api == "ollama_chat" else "args"
    assert admissions((body % f',"{name}":{{"a":2}}').encode(), api) == ["held"]


@each_row("api", ["anthropic_messages", "gemini_interactions", "openai_responses", "cohere_chat"])
def test_the_event_that_begins_a_call_names_it_once(api: str) -> None:
    word = {"anthropic_messages": "tool_use", "gemini_interactions": "requires_action",
            "openai_responses": "completed", "cohere_chat": "TOOL_CALL"}[api]
    made = ChatResponse(api, (ToolCall("call_1", "look", '{"at":1}', True),), StopReason(Stop.TOOL_CALL, word),
                        Usage(3, 5), id="a1", model="m")
    body = b"".join(encode_response(api, made, stream=True))
    assert admissions(body, api) == ["ready"]
    assert admissions(body.replace(b'"name":"look"', b'"name":"erase","name":"look"'), api) == ["held"]


PIECES = {
    "openai_chat": ("tool_calls", '"arguments":"{\\"at\\":1}"'),
    "anthropic_messages": ("tool_use", '"partial_json":"{\\"at\\":1}"'),
    "openai_responses": ("completed", '"delta":"{\\"at\\":1}"'),
}
"""Format -> its word for calls, and the member that holds a piece of arguments."""


@pytest.mark.parametrize("api", PIECES)
def test_a_piece_of_a_call_names_its_members_once(api: str) -> None:
    word, member = PIECES[api]
    made = ChatResponse(api, (ToolCall("call_1", "look", '{"at":1}', True),), StopReason(Stop.TOOL_CALL, word),
                        Usage(3, 5), id="a1", model="m")
    body = b"".join(encode_response(api, made, stream=True))
    other = member.replace("1}", "2}").encode()
    assert admissions(body, api) == ["ready"]
    assert admissions(body.replace(member.encode(), other + b"," + member.encode(), 1), api) == ["held"]
    assert admissions(body.replace(member.encode(), f"{member},{member}".encode(), 1), api) == ["ready"]


def test_a_piece_of_a_call_names_its_members_once_in_lines_of_converse() -> None:
    body = (b'{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t","name":"f"}}}}\n'
            b'{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{}"}}}}\n'
            b'{"contentBlockStop":{"contentBlockIndex":0}}\n{"messageStop":{"stopReason":"tool_use"}}\n')
    assert admissions(body, "bedrock_converse") == ["ready"]
    assert admissions(body.replace(b'"input":', b'"input":"{","input":'), "bedrock_converse") == ["held"]


def test_the_parser_of_pydantic_sees_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the engine is installed alone there is no jiter."""
    monkeypatch.setitem(sys.modules, "jiter", None)
    try:
        other = reload(json_parser)
        values: list[Any] = [other.from_json_checked(b'{"a": [{"b": 1}], "b": 2}')]
        with pytest.raises(ValueError, match="twice"):
            other.from_json_checked(b'{"a": [{"b": 1, "b": 1}]}')
    finally:
        monkeypatch.undo()
        reload(json_parser)
    assert values == [json.loads('{"a": [{"b": 1}], "b": 2}')]
