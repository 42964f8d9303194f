"""Request -> the body that Messages expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
from loop_core.wire.anthropic_messages.table import API, FIELDS
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

CHOICES: Mapping[str, str] = {"auto": "auto", "any": "any", "none": "none"}
ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "the system prompt is one list of blocks, and results travel in a user message",
    "reasoning.item_id": "a thinking block has no id",
    "call.form": "arguments are sent as an object",
    "call.status": "a tool_use block has no status",
    "call.item_id": "a tool_use block has one id",
    "call.signature": "signatures belong to thinking blocks here",
    "result.name": "a result names its call by the id",
    "previous_id": "nothing is kept on the provider's side",
    "continuation_token": "as previous_id",
    "background": "as previous_id",
}
_ROLES: Mapping[Role, str] = {
    Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "user",
}
_CALLS = {CallKind.FUNCTION: "tool_use", CallKind.SERVER: "server_tool_use"}


def path(request: Request) -> str:
    """Where the request goes, below the version of the API."""
    return "/messages"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request.

    Raises:
        EncodeError: it holds what the format cannot carry, or lacks what it asks for.
    """
    one_choice(request, API)
    if request.max_tokens is None:
        raise EncodeError("a request needs max_tokens", api=API, what="max_tokens")
    said, history = split_system(with_ids(request.messages))
    body = known(model=request.model, max_tokens=request.max_tokens)
    system = [block for message in said for block in _blocks(message.parts)]
    if system:
        body["system"] = system[0]["text"] if len(system) == 1 and system[0].keys() == {"type", "text"} else system
    body["messages"] = [_message(message) for message in _joined(history)]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.tool_choice is not None:
        body["tool_choice"] = _choice(request.tool_choice)
    if request.stream:
        body["stream"] = True
    return merged(body, request.extra)


def _joined(history: Iterable[Message]) -> Iterator[Message]:
    """Results and what the user says after them as one message: a result must stand in the message after its call."""
    held: Message | None = None
    for message in history:
        if held is not None and held.role is Role.TOOL and message.role in (Role.TOOL, Role.USER):
            held = Message(message.role, held.parts + message.parts)
            continue
        if held is not None:
            yield held
        held = message
    if held is not None:
        yield held


def _message(message: Message) -> dict[str, Any]:
    blocks = list(_blocks(message.parts))
    plain = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    return {"role": _ROLES[message.role], "content": blocks[0]["text"] if plain else blocks}


def _blocks(parts: Iterable[MessagePart]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if type(part) is OpaquePart:
            value = opaque(part, API)
            fields = part.type.endswith(FIELDS)
            if not isinstance(value, dict) or (fields and not blocks):
                raise EncodeError(f"the opaque {part.type} is no block", api=API, what="opaque")
            if fields:
                blocks[-1] |= {"type": part.type.removesuffix(FIELDS), **value}
            else:
                blocks.append(value)
        else:
            blocks.append(_block(part))
    return blocks


def _block(part: MessagePart) -> dict[str, Any]:
    if type(part) is TextPart:
        return {"type": "text", "text": part.text}
    if type(part) is ReasoningPart:
        if part.data is not None:
            return {"type": "redacted_thinking", "data": part.data}
        return {"type": "thinking", "thinking": part.text, "signature": part.signature or ""}
    if type(part) is ToolResultPart:
        said = part.text if part.json is None else content(part, API)
        return {"type": "tool_result", "tool_use_id": part.call_id or "", "content": said,
                **known(is_error=part.is_error or None)}
    assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
    if part.kind not in _CALLS:
        raise refuse(part, API)
    return {"type": _CALLS[part.kind], "id": part.id, "name": part.name, "input": arguments(part, API)}


def _tool(tool: Tool) -> Mapping[str, Any]:
    if tool.declared is not None:
        return tool.declared
    if tool.kind is CallKind.SERVER:
        raise EncodeError(f"{tool.name}: a server tool has to be declared in full", api=API, what="tool")
    said = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **said, "input_schema": tool.schema or {"type": "object"}}


def _choice(choice: str) -> dict[str, Any]:
    name = forced(choice)
    if name is not None:
        return {"type": "tool", "name": name}
    if choice not in CHOICES:
        raise unknown_choice(choice, API)
    return {"type": CHOICES[choice]}
