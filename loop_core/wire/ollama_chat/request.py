"""An Ollama chat request body -> Request: what was asked, in the field's words.

Reads what a recording holds and never complains: odd messages and tools are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.values import (
    ArgsForm,
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
from loop_core.wire.jsontext import dump
from loop_core.wire.ollama_chat.table import API

_ROLES: Mapping[str, Role] = {role.value: role for role in Role}


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """What a recorded request asks for; a request that does not say so is streamed."""
    options = body.get("options")
    cap = options.get("num_predict") if isinstance(options, Mapping) else None
    model = body.get("model")
    return Request(
        api=API,
        messages=tuple(message for item in _list(body.get("messages")) if (message := _message(item))),
        model=model if isinstance(model, str) and model else None,
        tools=tuple(tool for item in _list(body.get("tools")) if (tool := _tool(item))),
        max_tokens=cap if type(cap) is int and cap > 0 else None,  # -1 is no limit, -2 the rest of the context
        stream=body.get("stream") is not False,
        extra=rest(body, "model", "messages", "tools", "stream", "options.num_predict"),
    )


def _message(item: Any) -> Message | None:
    role = _ROLES.get(str(item.get("role"))) if isinstance(item, Mapping) else None
    return None if role is None else Message(role, tuple(_parts(item, role)))


def _parts(item: Mapping[str, Any], role: Role) -> Iterator[MessagePart]:
    thinking, content = item.get("thinking"), item.get("content")
    text = content if isinstance(content, str) else ""
    if role is Role.TOOL:
        name = _word(item.get("tool_name")) or _word(item.get("name"))
        yield ToolResultPart(_word(item.get("tool_call_id")), name, text)
        return
    if isinstance(thinking, str) and thinking:
        yield ReasoningPart(thinking)
    if text:
        yield TextPart(text)
    for image in _list(item.get("images")):
        yield OpaquePart("image", dump(image))
    for call in _list(item.get("tool_calls")):
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield _call(call, function)


def _call(call: Mapping[str, Any], function: Mapping[str, Any]) -> ToolCall:
    value = function.get("arguments")
    form = ArgsForm.STRING if isinstance(value, str) else ArgsForm.OBJECT
    sent = value if isinstance(value, str) else dump(value) if "arguments" in function else None
    return ToolCall(_word(call.get("id")), _word(function.get("name")) or "", sent, closed=True, form=form)


def _tool(item: Any) -> Tool | None:
    function = item.get("function") if isinstance(item, Mapping) else None
    name = _word(function.get("name")) if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or name is None:
        return None
    schema, described = function.get("parameters"), function.get("description")
    return Tool(name, schema if isinstance(schema, Mapping) else None, described if isinstance(described, str) else "",
                declared=item)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
