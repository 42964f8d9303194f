"""Request -> the body that Converse expects; model and streaming stand in the path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from loop_core.errors import EncodeError
from loop_core.values import (
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
from loop_core.wire.bedrock_converse.table import API, FIELDS, SERVER_TOOL
from loop_core.wire.body import (
    arguments,
    content,
    forced,
    known,
    merged,
    one_choice,
    opaque,
    refuse,
    split_system,
    unknown_choice,
    with_ids,
)

CHOICES: Mapping[str, str] = {"auto": "auto", "any": "any"}
ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "the system prompt is one list of blocks, and results travel in a user message",
    "reasoning.item_id": "a reasoning block has no id",
    "call.form": "arguments are sent as an object",
    "call.status": "a toolUse block has no status",
    "call.item_id": "a toolUse block has one id",
    "call.signature": "signatures belong to reasoning blocks here",
    "result.name": "a result names its call by the id",
    "previous_id": "nothing is kept on the provider's side",
    "continuation_token": "as previous_id",
    "background": "as previous_id",
}
_ROLES: Mapping[Role, str] = {
    Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "user",
}


def path(request: Request) -> str:
    """Where the request goes."""
    word = "converse-stream" if request.stream else "converse"
    return f"/model/{quote(request.model or '', safe='')}/{word}"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request.

    Raises:
        EncodeError: it holds what the format cannot carry, or lacks what it asks for.
    """
    one_choice(request, API)
    said, history = split_system(with_ids(request.messages))
    body: dict[str, Any] = {}
    system = [block for message in said for block in _blocks(message.parts)]
    if system:
        body["system"] = system
    body["messages"] = [
        {"role": role, "content": _blocks(parts)} for role, parts in _alternating(history)
    ]
    if request.max_tokens is not None:
        body["inferenceConfig"] = {"maxTokens": request.max_tokens}
    config = _config(request)
    if config:
        body["toolConfig"] = config
    return merged(body, request.extra)


def _alternating(history: Iterable[Message]) -> list[tuple[str, list[MessagePart]]]:
    """The history with neighbours of one role joined: Converse refuses two messages of the user in a row."""
    joined: list[tuple[str, list[MessagePart]]] = []
    for message in history:
        role = _ROLES[message.role]
        if joined and joined[-1][0] == role:
            joined[-1][1].extend(message.parts)
        else:
            joined.append((role, list(message.parts)))
    return joined


def _blocks(parts: Iterable[MessagePart]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if type(part) is not OpaquePart:
            blocks.append(_block(part))
            continue
        value = opaque(part, API)
        fields = part.type.endswith(FIELDS)
        if not isinstance(value, dict) or (fields and not (blocks and "text" in blocks[-1])):
            raise EncodeError(f"the opaque {part.type} is no block", api=API, what="opaque")
        if fields:
            blocks[-1] = {part.type.removesuffix(FIELDS): {"content": [blocks[-1]], **value}}
        else:
            blocks.append(value)
    return blocks


def _block(part: MessagePart) -> dict[str, Any]:
    if type(part) is TextPart:
        return {"text": part.text}
    if type(part) is ReasoningPart:
        if part.data is not None:
            return {"reasoningContent": {"redactedContent": part.data}}
        return {"reasoningContent": {"reasoningText": {"text": part.text, **known(signature=part.signature)}}}
    if type(part) is ToolResultPart:
        failed = {"status": "error"} if part.is_error else {}
        said = [{"text": part.text}] if part.json is None else content(part, API)
        return {"toolResult": {"toolUseId": part.call_id or "", "content": said, **failed}}
    assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
    if part.kind is CallKind.CUSTOM:
        raise refuse(part, API)
    server = {"type": SERVER_TOOL} if part.kind is CallKind.SERVER else {}
    return {"toolUse": {"toolUseId": part.id, "name": part.name, "input": arguments(part, API), **server}}


def _config(request: Request) -> dict[str, Any]:
    """The tools and the choice among them; empty where the request has neither."""
    used = any(message.tool_calls or message.results for message in request.messages)
    if request.tool_choice == "none":
        if used:
            raise EncodeError("there is no tool choice none, and a history with calls needs its tools declared",
                              api=API, what="tool_choice")
        return {}  # what is not declared is not called
    if not request.tools:
        if used:
            raise EncodeError("a history with calls needs its tools declared", api=API, what="tools")
        return {}
    config: dict[str, Any] = {"tools": [_tool(tool) for tool in request.tools]}
    choice = request.tool_choice
    name = forced(choice)
    if name is not None:
        config["toolChoice"] = {"tool": {"name": name}}
    elif choice is not None:
        if choice not in CHOICES:
            raise unknown_choice(choice, API)
        config["toolChoice"] = {CHOICES[choice]: {}}
    return config


def _tool(tool: Tool) -> Mapping[str, Any]:
    if tool.declared is not None:
        return tool.declared
    if tool.kind is CallKind.SERVER:
        return {"systemTool": {"name": tool.name}}
    said = {"description": tool.description} if tool.description else {}  # an empty one is refused
    return {"toolSpec": {"name": tool.name, **said, "inputSchema": {"json": tool.schema or {"type": "object"}}}}
