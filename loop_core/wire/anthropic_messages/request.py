"""A Messages request body -> Request: what was asked, in the field's words.

Reads what a recording holds and never complains: an odd block is kept opaque, an odd message is skipped.
"""

from __future__ import annotations

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
from loop_core.wire.anthropic_messages.table import API, KINDS, PATHS
from loop_core.wire.body import rest
from loop_core.wire.jsontext import compact

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_SERVER_TOOLS = ("web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "mcp_toolset", "advisor_")
"""How the types of tools that the provider runs begin (anthropic 2.12.0 types/tool_union_param.py, and beta)."""


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """What a recorded request asks for. On Vertex the model and the streaming stand in `url`."""
    model = body.get("model")
    stream = body.get("stream") is True
    hosted = PATHS[1].search(url)
    if hosted:
        model = model or hosted["model"]
        stream = stream or ":streamRawPredict" in url
    cap = body.get("max_tokens", body.get("max_tokens_to_sample"))
    names: dict[str, str] = {}
    system = tuple(_parts(body.get("system"), names))
    messages = [Message(Role.SYSTEM, system)] if system else []
    messages += [message for item in _list(body.get("messages")) if (message := _message(item, names))]
    return Request(
        api=API,
        messages=tuple(messages),
        model=model if isinstance(model, str) else None,
        tools=tuple(tool for item in _list(body.get("tools")) if (tool := _tool(item))),
        tool_choice=_choice(body.get("tool_choice")),
        max_tokens=cap if type(cap) is int else None,
        stream=stream,
        extra=rest(body, "model", "system", "messages", "tools", "tool_choice.type", "tool_choice.name", "max_tokens",
                   "max_tokens_to_sample", "stream"),
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
        return
    for block in _list(content):
        if isinstance(block, str):
            yield TextPart(block)
        elif isinstance(block, Mapping):
            yield _part(block, names)


def _part(block: Mapping[str, Any], names: dict[str, str]) -> MessagePart:
    kind = str(block.get("type"))
    if kind == "text" and isinstance(block.get("text"), str):
        return TextPart(block["text"])
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return ReasoningPart(block["thinking"], _word(block.get("signature")) or None)
    if kind == "redacted_thinking":
        return ReasoningPart("", data=_word(block.get("data")))
    if kind == "tool_result":
        id_ = _word(block.get("tool_use_id"))
        content = block.get("content")
        more = compact(content) if any(_word(_dict(each).get("type")) != "text" for each in _list(content)) else None
        return ToolResultPart(id_, names.get(id_ or ""), _text(content), block.get("is_error") is True, more)
    row = KINDS.get(kind)
    if row is not None and row.call is not None:
        id_, name, given = _word(block.get("id")), _word(block.get("name")) or "", block.get("input")
        names[id_ or ""] = name
        if isinstance(given, str):
            return ToolCall(id_, name, given, True, row.call)
        arguments = compact(given) if "input" in block else None
        return ToolCall(id_, name, arguments, True, row.call, ArgsForm.OBJECT)
    return OpaquePart(kind, compact(block))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for block in _list(content):
        text = block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else None
        texts.append(text if isinstance(text, str) else compact(block))
    return "".join(texts)


def _tool(item: Any) -> Tool | None:
    if not isinstance(item, Mapping):
        return None
    kind = _word(item.get("type")) or "custom"
    name = _word(item.get("name")) or _word(item.get("mcp_server_name")) or kind
    schema = item.get("input_schema")
    server = kind.startswith(_SERVER_TOOLS)
    return Tool(
        name,
        schema if isinstance(schema, Mapping) else None,
        _word(item.get("description")) or "",
        CallKind.SERVER if server else CallKind.FUNCTION,
        declared=item,
    )


def _choice(choice: Any) -> str | None:
    if not isinstance(choice, Mapping):
        return None
    kind = choice.get("type")
    if kind == "tool":
        return f"tool:{choice.get('name')}"
    return kind if kind in ("auto", "any", "none") else None


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
