"""Request -> the body that Chat Completions expects.

What the reader of requests takes out of a body goes back to where it stood. Knows no server: what one of them wants
spelled in another way is said by its profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from loop_core.wire.body import calls_of, custom, forced, known, merged, opaque, refuse, unknown_choice, with_ids
from loop_core.wire.openai_chat.table import API

CHOICES: Mapping[str, str] = {"auto": "auto", "any": "required", "none": "none"}
ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "every result is a message of its own",
    "opaque": "of the fields beside the content only the id of a sound goes back",
    "call.form": "arguments are sent as text",
    "call.status": "a call has no status",
    "call.item_id": "a call has one id",
    "call.signature": "calls are not signed",
    "result.name": "a result names its call by the id",
    "result.is_error": "only the text tells of a failure",
    "result.json": "a result is text here",
    "previous_id": "nothing is kept on the provider's side",
    "continuation_token": "as previous_id",
    "background": "as previous_id",
}


def path(request: Request) -> str:
    """Where the request goes, below the version of the API."""
    return "/chat/completions"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request.

    Raises:
        EncodeError: it holds what the format cannot carry.
    """
    history = with_ids(request.messages)
    kinds = {call.id: call.kind for call in calls_of(history)}
    body = known(model=request.model)
    body["messages"] = [item for message in history for item in _messages(message, kinds)]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.tool_choice is not None:
        body["tool_choice"] = _choice(request.tool_choice, request)
    body |= known(max_tokens=request.max_tokens, n=request.n if request.n != 1 else None)
    if request.stream:
        body["stream"] = True
    return merged(body, request.extra)


def _messages(message: Message, kinds: Mapping[str | None, CallKind]) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.call_id or "", "content": result.text}
    others = [part for part in message.parts if type(part) is not ToolResultPart]
    if not others and message.results:
        return
    role = Role.USER if message.role is Role.TOOL else message.role
    content = list(_content(others))
    item: dict[str, Any] = {"role": role.value}
    texts = [block["text"] for block in content if block.get("type") == "text"]
    if len(texts) == len(content) <= 1:
        item["content"] = texts[0] if texts else None if message.tool_calls else ""
    else:
        item["content"] = content
    item |= _thinking([part for part in others if type(part) is ReasoningPart])
    for part in others:
        if type(part) is OpaquePart and part.type == "message.audio":
            item["audio"] = {"id": _object(part).get("id")}
    calls = [_call(part) for part in others if type(part) is ToolCall]
    if calls:
        item["tool_calls"] = calls
    yield item



def _thinking(parts: list[ReasoningPart]) -> dict[str, Any]:
    """Plain thinking as text; what is signed or encrypted in the form of routers, which hand it on (OpenRouter)."""
    if not any(part.signature or part.data for part in parts):
        text = "".join(part.text for part in parts)
        return {"reasoning_content": text} if text else {}
    details: list[dict[str, Any]] = []
    for part in parts:
        if part.data is not None:
            details.append({"type": "reasoning.encrypted", "data": part.data, **known(id=part.item_id)})
        if part.text or part.data is None:
            told = known(signature=part.signature, id=part.item_id)
            details.append({"type": "reasoning.text", "text": part.text, **told})
    return {"reasoning_details": details}


def _content(parts: list[MessagePart]) -> Iterator[dict[str, Any]]:
    for part in parts:
        if type(part) is TextPart:
            yield {"type": "text", "text": part.text}
        elif type(part) is OpaquePart and not part.type.startswith("message."):
            yield _object(part)


def _object(part: OpaquePart) -> dict[str, Any]:
    value = opaque(part, API)
    if not isinstance(value, dict):
        raise EncodeError(f"the opaque {part.type} is no JSON object", api=API, what="opaque")
    return value


def _call(call: ToolCall) -> dict[str, Any]:
    if call.kind is CallKind.CUSTOM:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments or ""}}
    if call.kind is not CallKind.FUNCTION:
        raise refuse(call, API)
    function = {"name": call.name, "arguments": "{}" if call.arguments is None else call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: Tool) -> Mapping[str, Any]:
    if tool.declared is not None:
        return tool.declared
    said = {"description": tool.description} if tool.description else {}
    if tool.kind is CallKind.CUSTOM:
        return {"type": "custom", "custom": {"name": tool.name, **said}}
    if tool.kind is CallKind.SERVER:
        return {"type": tool.name, **said}
    return {"type": "function", "function": {"name": tool.name, **said, **known(parameters=tool.schema)}}


def _choice(choice: str, request: Request) -> Any:
    name = forced(choice)
    if name is not None:
        kind = "custom" if custom(name, request.tools) else "function"
        return {"type": kind, kind: {"name": name}}
    if choice not in CHOICES:
        raise unknown_choice(choice, API)
    return CHOICES[choice]
