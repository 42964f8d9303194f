"""Request -> the body that Ollama's chat expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.values import (
    CallKind,
    Message,
    OpaquePart,
    ReasoningPart,
    Request,
    Role,
    Tool,
    ToolCall,
    ToolResultPart,
)
from loop_core.wire.body import (
    arguments,
    forced,
    known,
    merged,
    one_choice,
    opaque,
    refuse,
    unknown_choice,
    with_ids,
    with_names,
)
from loop_core.wire.ollama_chat.table import API

CHOICES: Mapping[str, str | None] = {"auto": None, "any": None, "none": None}
ASKING_LOSES: Mapping[str, str] = {
    "text.grouping": "the texts of a message are one",
    "message.grouping": "every result is a message of its own",
    "tool_choice": "there is none: a forced call is only asked for, and `none` declares no tools",
    "reasoning.signature": "thinking is not signed",
    "reasoning.data": "thinking is not encrypted",
    "reasoning.item_id": "thinking has no id",
    "call.form": "arguments are sent as an object",
    "call.status": "a call has no status",
    "call.item_id": "a call has one id",
    "call.signature": "calls are not signed",
    "result.is_error": "only the text tells of a failure",
    "result.json": "a result is text here",
    "previous_id": "nothing is kept on the provider's side",
    "continuation_token": "as previous_id",
    "background": "as previous_id",
}


def path(request: Request) -> str:
    """Where the request goes, below `/api`."""
    return "/chat"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request.

    Raises:
        EncodeError: it holds what the format cannot carry.
    """
    one_choice(request, API)
    choice = request.tool_choice
    if choice is not None and forced(choice) is None and choice not in CHOICES:
        raise unknown_choice(choice, API)
    body = known(model=request.model)
    history = with_names(with_ids(request.messages, missing=False))
    body["messages"] = [item for message in history for item in _messages(message)]
    if request.tools and choice != "none":
        body["tools"] = [_tool(tool) for tool in request.tools]
    body["stream"] = request.stream  # it streams where nothing is said
    if request.max_tokens is not None:
        body["options"] = {"num_predict": request.max_tokens}
    return merged(body, request.extra)


def _messages(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield {"role": "tool", "content": result.text, **known(tool_name=result.name, tool_call_id=result.call_id)}
    others = [part for part in message.parts if type(part) is not ToolResultPart]
    if not others and message.results:
        return
    role = Role.USER if message.role is Role.TOOL else message.role
    item: dict[str, Any] = {"role": role.value, "content": message.text}
    thinking = "".join(part.text for part in others if type(part) is ReasoningPart)
    images = [opaque(part, API) for part in others if type(part) is OpaquePart]
    calls = [_call(part) for part in others if type(part) is ToolCall]
    yield item | known(thinking=thinking or None, images=images or None, tool_calls=calls or None)


def _call(call: ToolCall) -> dict[str, Any]:
    if call.kind is not CallKind.FUNCTION:
        raise refuse(call, API)
    return {**known(id=call.id), "function": {"name": call.name, "arguments": arguments(call, API)}}


def _tool(tool: Tool) -> Mapping[str, Any]:
    if tool.declared is not None:
        return tool.declared
    said = {"description": tool.description} if tool.description else {}
    return {"type": "function", "function": {"name": tool.name, **said, **known(parameters=tool.schema)}}
