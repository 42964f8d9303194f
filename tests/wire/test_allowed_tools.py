"""A tool choice that lists the tools that may be called: a call of another one is rejected, and the list is sent on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from loop_core.judge.gate import Admission
from loop_core.reader import read
from loop_core.wire import decode_request, encode_request
from tests.scenes.rows import each_row

NAMES = ("read_file", "write_file")
CHAT, RESPONSES = "openai_chat", "openai_responses"


def ask(api: str, *entries: Any, mode: str = "auto") -> dict[str, Any]:
    """A request that declares two tools, and lists these of them."""
    if api == CHAT:
        tools = [{"type": "function", "function": {"name": name}} for name in NAMES]
        choice: dict[str, Any] = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(entries)}}
        return {"model": "m", "messages": [{"role": "user", "content": "go"}], "tools": tools, "tool_choice": choice}
    return {"model": "m", "input": [{"role": "user", "content": "go"}],
            "tools": [{"type": "function", "name": name} for name in NAMES],
            "tool_choice": {"type": "allowed_tools", "mode": mode, "tools": list(entries)}}


def entry(api: str, name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}} if api == CHAT else {"type": "function", "name": name}


def answer(api: str, name: str) -> bytes:
    if api == CHAT:
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}
        return json.dumps({"choices": [{"index": 0, "message": {"tool_calls": [call]},
                                        "finish_reason": "tool_calls"}]}).encode()
    call = {"type": "function_call", "call_id": "c", "status": "completed", "name": name, "arguments": "{}"}
    return json.dumps({"status": "completed", "output": [call]}).encode()


def admission(api: str, name: str, request: dict[str, Any]) -> tuple[Admission, str]:
    (verdict,) = read(api, answer(api, name), request=request).calls
    return verdict.admission, verdict.rule


@each_row("mode", ["auto", "required"])
@each_row("api", [CHAT, RESPONSES])
def test_a_call_of_a_tool_outside_the_list_is_rejected(api: str, mode: str) -> None:
    request = ask(api, entry(api, "read_file"), mode=mode)
    assert admission(api, "read_file", request) == (Admission.READY, "gate.ready")
    assert admission(api, "write_file", request) == (Admission.REJECTED, "gate.forbidden")
    both = ask(api, *(entry(api, name) for name in NAMES), mode=mode)
    assert admission(api, "write_file", both) == (Admission.READY, "gate.ready")


@each_row("entries", [
    (), ({"type": "namespace", "name": "files"},), ({"type": "namespace", "tools": []},), ("read_file",), (None,),
    ({"type": "function"},), ({"name": "read_file"},),
])
@each_row("api", [CHAT, RESPONSES])
def test_a_list_that_is_not_understood_forbids_nothing(api: str, entries: tuple[Any, ...]) -> None:
    request = ask(api, entry(api, "read_file"), *entries) if entries else ask(api)
    assert admission(api, "write_file", request) == (Admission.READY, "gate.ready")


def test_a_list_of_the_providers_own_tools_alone_forbids_functions() -> None:
    request = ask(RESPONSES, {"type": "mcp", "server_label": "deepwiki"}, {"type": "image_generation"})
    assert admission(RESPONSES, "write_file", request) == (Admission.REJECTED, "gate.forbidden")


@pytest.mark.parametrize("api", [CHAT, RESPONSES])
def test_the_list_is_sent_on_as_it_came_unless_another_choice_is_made(api: str) -> None:
    body = ask(api, entry(api, "read_file"), mode="required")
    request = decode_request(api, body)
    assert encode_request(api, request)["tool_choice"] == body["tool_choice"]
    assert encode_request(api, replace(request, max_tokens=9))["tool_choice"] == body["tool_choice"]
    assert encode_request(api, replace(request, tool_choice="tool:write_file"))["tool_choice"] == entry(
        api, "write_file")
    assert encode_request(api, replace(request, tool_choice="none"))["tool_choice"] == "none"
    assert "tool_choice" not in encode_request(api, replace(request, tool_choice=None))


GEMINI, INTERACTIONS = "gemini_generate", "gemini_interactions"


def gemini_ask(api: str, mode: str, *names: Any) -> dict[str, Any]:
    """A request to Gemini that declares two tools and a search of its own, and lists these names."""
    tools = [{"name": name} for name in NAMES]
    if api == GEMINI:
        calling = {"mode": mode.upper(), "allowedFunctionNames": list(names)}
        return {"contents": [{"role": "user", "parts": [{"text": "go"}]}],
                "tools": [{"functionDeclarations": tools}, {"googleSearch": {}}],
                "toolConfig": {"functionCallingConfig": calling}}
    return {"model": "m", "input": "go",
            "tools": [*({"type": "function", **tool} for tool in tools), {"type": "google_search"}],
            "generation_config": {"tool_choice": {"allowed_tools": {"mode": mode, "tools": list(names)}}}}


def gemini_admits(api: str, name: str, request: dict[str, Any]) -> tuple[Admission, str]:
    body: dict[str, Any] = {"status": "requires_action", "steps": [
        {"type": "function_call", "id": "c", "name": name, "arguments": {}}]}
    if api == GEMINI:
        part = {"functionCall": {"name": name, "args": {}}}
        body = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
    (verdict,) = read(api, json.dumps(body).encode(), request=request).calls
    return verdict.admission, verdict.rule


@each_row("mode", ["any", "validated"])
@each_row("api", [GEMINI, INTERACTIONS])
def test_a_call_of_a_function_that_gemini_was_not_allowed_is_rejected(api: str, mode: str) -> None:
    declared = gemini_ask(api, mode, "read_file", "list_files")
    assert gemini_admits(api, "read_file", declared) == (Admission.READY, "gate.ready")
    assert gemini_admits(api, "write_file", declared) == (Admission.REJECTED, "gate.forbidden")
    for names in (NAMES, (), ("read_file", 5)):
        assert gemini_admits(api, "write_file", gemini_ask(api, mode, *names)) == (Admission.READY, "gate.ready"), names


@each_row("mode", ["any", "validated"])
@each_row("api", [GEMINI, INTERACTIONS])
def test_the_names_that_gemini_may_call_are_sent_on(api: str, mode: str) -> None:
    """With one name and the mode `any` the choice is that name."""
    body = gemini_ask(api, mode, "read_file")
    request = decode_request(api, body)
    place = "toolConfig" if api == GEMINI else "generation_config"
    # Interactions take a list with `auto`, which asks for the same.
    wanted = body if api == GEMINI or mode == "any" else gemini_ask(api, "auto", "read_file")
    assert encode_request(api, request)[place] == wanted[place]
    other = encode_request(api, replace(request, tool_choice="tool:write_file"))
    assert other[place] == gemini_ask(api, "any", "write_file")[place]
    for choice, spelled in (("none", "NONE" if api == GEMINI else "none"), (None, None)):
        again = json.dumps(encode_request(api, replace(request, tool_choice=choice)).get(place))
        assert "read_file" not in again
        assert spelled is None or spelled in again
