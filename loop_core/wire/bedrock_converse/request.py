"""A Converse request body -> Request: what was asked, in the field's words.

Reads what a recording holds and never complains: an odd block is kept opaque, an odd message is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

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
from loop_core.wire.bedrock_converse.table import API, PATHS, SERVER_TOOL
from loop_core.wire.body import rest
from loop_core.wire.jsontext import compact

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """What a recorded request asks for; the model and the streaming stand in `url`."""
    place = PATHS[0].search(url)
    model = unquote(place["model"]) if place else _word(body.get("modelId"))
    limits = _dict(body.get("inferenceConfig"))
    config = _dict(body.get("toolConfig"))
    cap = limits.get("maxTokens")
    names: dict[str, str] = {}
    system = tuple(_parts(body.get("system"), names))
    messages = [Message(Role.SYSTEM, system)] if system else []
    messages += [message for item in _list(body.get("messages")) if (message := _message(item, names))]
    return Request(
        api=API,
        messages=tuple(messages),
        model=model,
        tools=tuple(tool for item in _list(config.get("tools")) if (tool := _tool(item))),
        tool_choice=_choice(config.get("toolChoice")),
        max_tokens=cap if type(cap) is int else None,
        stream=bool(place and place["stream"]),
        extra=rest(body, "modelId", "messages", "system", "inferenceConfig.maxTokens", "toolConfig"),
    )


def _message(item: Any, names: dict[str, str]) -> Message | None:
    role = _ROLES.get(str(item.get("role"))) if isinstance(item, Mapping) else None
    if role is None:
        return None
    parts = tuple(_parts(item.get("content"), names))
    if parts and all(type(part) is ToolResultPart for part in parts):
        role = Role.TOOL  # the API has no such role: results travel in a user message
    return Message(role, parts)


def _parts(content: Any, names: dict[str, str]) -> Iterator[MessagePart]:
    if isinstance(content, str):
        yield TextPart(content)
    for block in _list(content):
        if isinstance(block, Mapping):
            yield _part(block, names)


def _part(block: Mapping[str, Any], names: dict[str, str]) -> MessagePart:
    if isinstance(block.get("text"), str):
        return TextPart(block["text"])
    kind = next((name for name, value in block.items() if isinstance(value, Mapping)), next(iter(block), ""))
    value = _dict(block.get(kind))
    if kind == "toolUse":
        return _call(value, names)
    if kind == "toolResult":
        id_ = _word(value.get("toolUseId"))
        failed = value.get("status") == "error"
        content = value.get("content")
        more = compact(content) if any(_word(_dict(each).get("text")) is None for each in _list(content)) else None
        return ToolResultPart(id_, names.get(id_ or ""), _text(content), failed, more)
    if kind == "reasoningContent":
        thought = _dict(value.get("reasoningText"))
        return ReasoningPart(
            _word(thought.get("text")) or "", _word(thought.get("signature")), _word(value.get("redactedContent"))
        )
    return OpaquePart(kind, compact(block))


def _call(value: Mapping[str, Any], names: dict[str, str]) -> ToolCall:
    id_, name, given = _word(value.get("toolUseId")), _word(value.get("name")) or "", value.get("input")
    names[id_ or ""] = name
    kind = CallKind.SERVER if value.get("type") == SERVER_TOOL else CallKind.FUNCTION
    if isinstance(given, str):
        return ToolCall(id_, name, given, True, kind)
    return ToolCall(id_, name, compact(given) if "input" in value else None, True, kind, ArgsForm.OBJECT)


def _text(content: Any) -> str:
    texts: list[str] = []
    for block in _list(content):
        text = block.get("text") if isinstance(block, Mapping) else None
        inner = block.get("json", block) if isinstance(block, Mapping) else block
        texts.append(text if isinstance(text, str) else compact(inner))
    return "".join(texts)


def _tool(item: Any) -> Tool | None:
    if not isinstance(item, Mapping):
        return None
    spec, system = _dict(item.get("toolSpec")), _dict(item.get("systemTool"))
    if system:
        return Tool(_word(system.get("name")) or "", kind=CallKind.SERVER, declared=item)
    schema = _dict(spec.get("inputSchema")).get("json")
    if not spec:
        return None
    return Tool(
        _word(spec.get("name")) or "",
        schema if isinstance(schema, Mapping) else None,
        _word(spec.get("description")) or "",
        declared=item,
    )


def _choice(choice: Any) -> str | None:
    if not isinstance(choice, Mapping):
        return None
    if "tool" in choice:
        return f"tool:{_dict(choice['tool']).get('name')}"
    return next((word for word in ("auto", "any") if word in choice), None)


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
