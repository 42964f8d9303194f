"""A Chat Completions request body -> `Request`.

Owns the request's fields in all their spellings; odd ones are skipped, never raised over.
"""

from __future__ import annotations

import json
import re
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
from loop_core.wire.body import rest
from loop_core.wire.openai_chat.table import API, REASONING_FIELDS

ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
"""Any other role is the user's."""
CAPS: tuple[str, ...] = ("max_completion_tokens", "max_tokens", "max_output_tokens")
CHOICES: Mapping[str, str] = {"auto": "auto", "none": "none", "required": "any", "any": "any"}
_DEPLOYMENT = re.compile(r"/deployments/([^/?#]+)/")


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """What the body asks for; Azure names the model's deployment in the URL only."""
    deployment = _DEPLOYMENT.search(url)
    model = _word(body.get("model")) or (unquote(deployment.group(1)) if deployment else None)
    messages = body.get("messages")
    read = [_message(item) for item in messages if isinstance(item, Mapping)] if isinstance(messages, list) else []
    return Request(
        api=API,
        messages=tuple(read),
        model=model,
        tools=tuple(_tools(body)),
        tool_choice=_choice(body.get("tool_choice", body.get("function_call"))),
        max_tokens=next((cap for name in CAPS if (cap := _count(body.get(name))) is not None), None),
        stream=body.get("stream") is True,
        n=_count(body.get("n")) or 1,
        extra=rest(body, "model", "messages", "tools", "functions", "tool_choice", "function_call", "stream", "n",
                   *CAPS),
    )


def _message(item: Mapping[str, Any]) -> Message:
    role = ROLES.get(str(item.get("role")), Role.USER)
    if role is Role.TOOL:
        name = _word(item.get("name"))
        return Message(role, (ToolResultPart(_word(item.get("tool_call_id")), name, _text(item.get("content"))),))
    parts: list[MessagePart] = []
    details = item.get("reasoning_details")
    parts.extend(_details(details) if isinstance(details, list) else ())
    thinking = next((text for name in REASONING_FIELDS if (text := _word(item.get(name)))), None)
    if thinking and not parts:
        parts.append(ReasoningPart(thinking))
    parts.extend(_content(item.get("content")))
    if refusal := _word(item.get("refusal")):
        parts.append(TextPart(refusal))
    parts.extend(_calls(item))
    return Message(role, tuple(parts))


def _details(details: list[Any]) -> Iterator[ReasoningPart]:
    """Thinking as routers hand it on, with its signatures."""
    for detail in details:
        if isinstance(detail, Mapping):
            text = _word(detail.get("text")) or _word(detail.get("summary")) or ""
            yield ReasoningPart(text, _word(detail.get("signature")), _word(detail.get("data")),
                                _word(detail.get("id")))


def _content(content: Any) -> Iterator[MessagePart]:
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            if block:
                yield TextPart(block)
        elif isinstance(block, Mapping):
            text = block.get("refusal") if block.get("type") == "refusal" else block.get("text")
            if block.get("type") == "thinking":
                yield ReasoningPart(_text(block.get("thinking")))
            elif isinstance(text, str):
                yield TextPart(text)
            else:
                yield OpaquePart(str(block.get("type")), json.dumps(block, ensure_ascii=False))


def _calls(item: Mapping[str, Any]) -> Iterator[ToolCall]:
    calls = item.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if not isinstance(call, Mapping):
            continue
        custom, function = call.get("custom"), call.get("function")
        if isinstance(custom, Mapping):
            yield _call(_word(call.get("id")), custom, "input", CallKind.CUSTOM)
        elif isinstance(function, Mapping):
            yield _call(_word(call.get("id")), function, "arguments", CallKind.FUNCTION)
    old = item.get("function_call")
    if isinstance(old, Mapping):
        yield _call(None, old, "arguments", CallKind.FUNCTION)


def _call(ident: str | None, payload: Mapping[str, Any], key: str, kind: CallKind) -> ToolCall:
    given = payload.get(key)
    form = ArgsForm.STRING if given is None or isinstance(given, str) else ArgsForm.OBJECT
    text = json.dumps(given, ensure_ascii=False) if form is ArgsForm.OBJECT else given
    return ToolCall(ident, _word(payload.get("name")) or "", text, closed=True, kind=kind, form=form)


def _tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    tools, functions = body.get("tools"), body.get("functions")
    for tool in tools if isinstance(tools, list) else []:
        if not isinstance(tool, Mapping):
            continue
        custom, function = tool.get("custom"), tool.get("function")
        if isinstance(custom, Mapping):
            yield Tool(_word(custom.get("name")) or "", None, _text(custom.get("description")), CallKind.CUSTOM,
                       declared=tool)
        elif isinstance(function, Mapping):
            yield _tool(function, tool)
        elif _word(tool.get("name")) and tool.get("type") in (None, "function"):
            yield _tool(tool, tool)  # laid out as in the Responses API
        elif (kind := _word(tool.get("type"))) and kind != "function":
            yield Tool(kind, description=_text(tool.get("description")), kind=CallKind.SERVER, declared=tool)
    for function in functions if isinstance(functions, list) else []:
        if isinstance(function, Mapping):
            yield _tool(function, {"type": "function", "function": function})


def _tool(function: Mapping[str, Any], declared: Mapping[str, Any]) -> Tool:
    schema = function.get("parameters")
    return Tool(_word(function.get("name")) or "", schema if isinstance(schema, Mapping) else None,
                _text(function.get("description")), declared=declared)


def _choice(value: Any) -> str | None:
    """auto, any, none or tool:NAME; a set of allowed tools keeps its mode."""
    if isinstance(value, str):
        return CHOICES.get(value)
    if not isinstance(value, Mapping):
        return None
    for holder in (value.get("function"), value.get("custom"), value):
        name = _word(holder.get("name")) if isinstance(holder, Mapping) else None
        if name:
            return f"tool:{name}"
    allowed = value.get("allowed_tools")
    return _choice(allowed.get("mode")) if isinstance(allowed, Mapping) else _choice(value.get("type"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [block.get("text") if isinstance(block, Mapping) else block for block in content]
        return "".join(text for text in texts if isinstance(text, str))
    return ""


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if type(value) is int else None
