"""A recorded Responses request -> Request.

Owns the reading of input items, tools and options. What is odd is skipped; what is not interpreted is kept as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.values import (
    ArgsForm,
    CallKind,
    Message,
    MessagePart,
    OpaquePart,
    ReasoningPart,
    Request,
    Role,
    TextPart,
    Tool,
    ToolCall,
    ToolResultPart,
)
from loop_core.wire.body import rest
from loop_core.wire.openai_responses.items import call_id, text_of
from loop_core.wire.openai_responses.table import API, CLIENT_ITEMS, SERVER_ITEMS, runs_itself

ROLES: Mapping[str, Role] = {
    "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM, "tool": Role.TOOL,
}
"""Role of a message -> ours; any other is the user's."""
RESULTS: Mapping[str, str] = {
    "function_call_output": "call_id",
    "custom_tool_call_output": "call_id",
    "computer_call_output": "call_id",
    "shell_call_output": "call_id",
    "apply_patch_call_output": "call_id",
    "tool_search_output": "call_id",
    "local_shell_call_output": "id",
    "mcp_approval_response": "approval_request_id",
}
"""Items that answer a call -> the field that names it."""

CLIENT_TOOLS: Mapping[str, str] = {
    "computer": "computer", "computer_use_preview": "computer", "local_shell": "local_shell", "shell": "shell",
    "apply_patch": "apply_patch",
}
"""Tools of the provider that the client runs -> the name that their calls have."""

CHOICES: Mapping[str, str] = {"auto": "auto", "none": "none", "required": "any", "any": "any"}
CAPS = ("max_output_tokens", "max_completion_tokens", "max_tokens")


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """What a recorded request body asks for; the URL says nothing more in this format."""
    caps = [body.get(key) for key in CAPS]
    return Request(
        api=API,
        messages=tuple(_merged(_messages(body))),
        model=text_of(body.get("model")),
        tools=tuple(_tools(body.get("tools"))),
        tool_choice=_choice(body.get("tool_choice")),
        max_tokens=next((cap for cap in caps if type(cap) is int), None),
        stream=body.get("stream") is True,
        previous_id=text_of(body.get("previous_response_id")),
        background=body.get("background") is True,
        extra=rest(body, "model", "input", "instructions", "tools", "tool_choice", "stream", "previous_response_id",
                   "background", *CAPS),
    )


def _messages(body: Mapping[str, Any]) -> Iterator[Message]:
    instructions = body.get("instructions")
    if isinstance(instructions, str) and instructions:
        yield Message(Role.SYSTEM, (TextPart(instructions),))
    items: list[Any] = instructions if isinstance(instructions, list) else []
    given = body.get("input")
    if isinstance(given, str):
        items = [*items, {"role": "user", "content": given}]
    elif isinstance(given, list):
        items = [*items, *given]
    for item in items:
        if isinstance(item, dict):
            yield _message(item)


def _message(item: Mapping[str, Any]) -> Message:
    kind = str(item.get("type"))
    if kind == "message" or (kind == "None" and "role" in item):
        role = ROLES.get(str(item.get("role")), Role.USER)
        return Message(role, tuple(_content(item.get("content"))))
    if kind in RESULTS:
        return Message(Role.TOOL, (_result(item, RESULTS[kind]),))
    if kind in ("function_call", "custom_tool_call"):
        custom = kind == "custom_tool_call"
        payload = item.get("input" if custom else "arguments")
        form = ArgsForm.OBJECT if isinstance(payload, (dict, list)) else ArgsForm.STRING
        text = _json(payload) if form is ArgsForm.OBJECT else text_of(payload)
        call = ToolCall(call_id(item), text_of(item.get("name")) or "", text, True,
                        CallKind.CUSTOM if custom else CallKind.FUNCTION, form, text_of(item.get("status")),
                        text_of(item.get("id")))
        return Message(Role.ASSISTANT, (call,))
    if kind == "reasoning":
        texts = [text for key in ("content", "summary") if (text := _joined(item.get(key)))]
        part = ReasoningPart(texts[0] if texts else "", None, text_of(item.get("encrypted_content")),
                             text_of(item.get("id")))
        return Message(Role.ASSISTANT, (part,))
    if kind in CLIENT_ITEMS or kind in SERVER_ITEMS:
        # In a history an output stands beside every call, the client's own included: it does not say who ran it.
        server = kind in SERVER_ITEMS or runs_itself(item, frozenset())
        call = ToolCall(call_id(item) or text_of(item.get("id")), SERVER_ITEMS.get(kind) or CLIENT_ITEMS[kind],
                        _json(item), True, CallKind.SERVER if server else CallKind.CUSTOM, ArgsForm.OBJECT,
                        text_of(item.get("status")), text_of(item.get("id")))
        return Message(Role.ASSISTANT, (call,))
    return Message(ROLES.get(str(item.get("role")), Role.ASSISTANT), (OpaquePart(kind, _json(item)),))


def _content(content: Any) -> Iterator[MessagePart]:
    if isinstance(content, str):
        yield TextPart(content)
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        if part.get("type") in ("input_text", "output_text", "text") and type(part.get("text")) is str:
            yield TextPart(part["text"])
        else:
            yield OpaquePart(str(part.get("type")), _json(part))


def _result(item: Mapping[str, Any], key: str) -> ToolResultPart:
    output = item.get("output")
    if isinstance(output, list) and all(isinstance(part, dict) and type(part.get("text")) is str for part in output):
        text = "".join(part["text"] for part in output)
    elif output is None:
        text = _json(item)
    else:
        text = output if isinstance(output, str) else _json(output)
    more = _json(output) if isinstance(output, list) and text[:1] == "[" else None
    failed = item.get("status") in ("incomplete", "failed") or item.get("approve") is False
    return ToolResultPart(text_of(item.get(key)), text_of(item.get("name")), text, failed, more)


def _joined(value: Any) -> str:
    parts = value if isinstance(value, list) else ()
    return "\n\n".join(part["text"] for part in parts if isinstance(part, dict) and type(part.get("text")) is str)


def _merged(messages: Iterator[Message]) -> list[Message]:
    """The items that one answer gave become one message again, as a response has one list of parts."""
    merged: list[Message] = []
    for message in messages:
        if merged and message.role is Role.ASSISTANT and merged[-1].role is Role.ASSISTANT:
            merged[-1] = Message(Role.ASSISTANT, merged[-1].parts + message.parts)
        else:
            merged.append(message)
    return merged


def _tools(tools: Any) -> Iterator[Tool]:
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        kind = str(tool.get("type"))
        if kind == "namespace":
            yield from _tools(tool.get("tools"))
        elif kind in ("function", "custom"):
            inner = tool.get("function")
            told = inner if isinstance(inner, dict) else tool
            schema = told.get("parameters")
            yield Tool(text_of(told.get("name")) or "", schema if isinstance(schema, dict) else None,
                       text_of(told.get("description")) or "",
                       CallKind.CUSTOM if kind == "custom" else CallKind.FUNCTION, declared=tool)
        elif kind in CLIENT_TOOLS and not _contained(tool):
            yield Tool(CLIENT_TOOLS[kind], kind=CallKind.CUSTOM, declared=tool)
        else:
            yield Tool(text_of(tool.get("server_label")) or kind, kind=CallKind.SERVER, declared=tool)


def _contained(tool: Mapping[str, Any]) -> bool:
    environment = tool.get("environment")
    return isinstance(environment, dict) and str(environment.get("type")).startswith("container")


def _choice(choice: Any) -> str | None:
    if isinstance(choice, str):
        return CHOICES.get(choice)
    if not isinstance(choice, dict):
        return None
    kind = choice.get("type")
    if kind == "allowed_tools":
        return CHOICES.get(str(choice.get("mode")))
    inner = choice.get("function")
    name = choice.get("name") or (inner.get("name") if isinstance(inner, dict) else None)
    return f"tool:{name or CLIENT_TOOLS.get(str(kind), kind)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
