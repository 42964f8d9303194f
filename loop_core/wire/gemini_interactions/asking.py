"""Request -> the body that the Interactions API expects: the history as steps, or what is new of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    with_names,
)
from loop_core.wire.gemini_interactions.table import API, CALL, INSIDE, NOTES, OUTPUT, THOUGHT

CHOICES: Mapping[str, str] = {"auto": "auto", "any": "any", "none": "none"}
ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "the system prompt is one text, and neighbours of the model are steps without a border",
    "reasoning.data": "thinking is not encrypted here",
    "reasoning.item_id": "a thought has no id",
    "call.form": "arguments are sent as an object",
    "call.status": "a function_call has no status",
    "call.item_id": "a function_call has one id",
}


def path(request: Request) -> str:
    """Where the request goes, below the version of the API."""
    return "/interactions"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request.

    Raises:
        EncodeError: it holds what the format cannot carry.
    """
    one_choice(request, API)
    said, history = split_system(with_names(with_ids(request.messages)))
    steps = [step for message in history for step in _steps(message)]
    body: dict[str, Any] = known(model=request.model)
    if steps or request.continuation_token is None:  # a kept interaction is gone on with by its token alone
        text = _only_text(history)
        body["input"] = steps if text is None else text
    system = [_text(part) for message in said for part in message.parts]
    if system:
        body["system_instruction"] = "".join(system)
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    settings = known(max_output_tokens=request.max_tokens,
                     tool_choice=None if request.tool_choice is None else _choice(request.tool_choice))
    if settings:
        body["generation_config"] = settings
    if request.stream:
        body["stream"] = True
    if request.background:
        body["background"] = True
    body |= known(previous_interaction_id=request.previous_id, continuation_token=request.continuation_token)
    return merged(body, request.extra)


def _only_text(history: Sequence[Message]) -> str | None:
    """What is asked, where it is one text and nothing else."""
    parts = [(message.role, part) for message in history for part in message.parts]
    role, part = parts[0] if len(parts) == 1 else (Role.TOOL, None)
    return part.text if type(part) is TextPart and role is Role.USER else None


def _text(part: MessagePart) -> str:
    if type(part) is not TextPart:
        raise EncodeError("a system prompt is text here", api=API, what="system")
    return part.text


def _steps(message: Message) -> Iterator[dict[str, Any]]:
    if message.role in (Role.USER, Role.SYSTEM):
        yield from _user(message.parts)
        return
    for part in message.parts:
        yield _step(part)


def _user(parts: Iterable[MessagePart]) -> Iterator[dict[str, Any]]:
    """What a user says is one step; results of tools are steps of their own."""
    contents: list[Any] = []
    for part in parts:
        if type(part) is ToolResultPart:
            yield _result(part)
        else:
            contents.append(_content(part))
    if contents:
        yield {"type": "user_input", "content": contents}


def _content(part: MessagePart) -> Any:
    if type(part) is TextPart:
        return {"type": "text", "text": part.text}
    if type(part) is OpaquePart:
        return opaque(part, API)
    raise EncodeError("a user says contents, and this is none", api=API, what="user")


def _step(part: MessagePart) -> dict[str, Any]:
    if type(part) is TextPart:
        return {"type": OUTPUT, "content": [{"type": "text", "text": part.text}]}
    if type(part) is ReasoningPart:
        summary = [{"type": "text", "text": part.text}] if part.text else None
        return {"type": THOUGHT, **known(summary=summary, signature=part.signature)}
    if type(part) is ToolResultPart:
        return _result(part)
    if type(part) is OpaquePart:
        if part.type == NOTES:
            raise EncodeError("the sources of a text are not sent back", api=API, what="opaque")
        value = opaque(part, API)
        if not isinstance(value, dict):
            raise EncodeError(f"the opaque {part.type} is no step", api=API, what="opaque")
        return {"type": OUTPUT, "content": [value]} if part.type.startswith(INSIDE) else value
    assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
    if part.kind is not CallKind.FUNCTION:
        raise refuse(part, API)
    return {"type": CALL, **known(id=part.id), "name": part.name, "arguments": arguments(part, API),
            **known(signature=part.signature)}


def _result(part: ToolResultPart) -> dict[str, Any]:
    result: Any = content(part, API) if part.json is not None else part.text
    if part.json is None:
        try:
            value = json.loads(part.text)
        except (ValueError, RecursionError):
            value = None
        result = value if isinstance(value, dict) else result
    failed = {"is_error": True} if part.is_error else {}
    called = {**known(name=part.name), "call_id": part.call_id or ""}
    return {"type": "function_result", **called, "result": result, **failed}


def _tool(tool: Tool) -> Mapping[str, Any]:
    if tool.declared is not None:
        return tool.declared
    if tool.kind is CallKind.SERVER:
        return {"type": tool.name}
    if tool.kind is not CallKind.FUNCTION:
        raise EncodeError(f"{tool.name}: there are no free-form tools", api=API, what="custom tool")
    said = {"description": tool.description} if tool.description else {}
    return {"type": "function", "name": tool.name, **said, **known(parameters=tool.schema)}


def _choice(choice: str) -> Any:
    name = forced(choice)
    if name is not None:
        return {"allowed_tools": {"mode": "any", "tools": [name]}}
    if choice not in CHOICES:
        raise unknown_choice(choice, API)
    return CHOICES[choice]
