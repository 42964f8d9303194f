"""Decodes the body of a Converse request into a `Request`, and encodes it again.

Decoding raises nothing for a recorded body: an unknown block is kept as an opaque part, a malformed message is skipped.
The second half encodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from loop_core.errors import EncodeError
from loop_core.values import (
    ArgsForm,
    CallKind,
    Message,
    MessagePart,
    OpaquePart,
    ReasoningPart,
    Request,
    TextPart,
    Tool,
    ToolCall,
    ToolResultPart,
)
from loop_core.wire import asking
from loop_core.wire.bedrock_converse.table import API, FIELDS, PATHS, SERVER_TOOL
from loop_core.wire.body import compact, list_of, mapping_of, merge, non_null, opaque, rest, string, token_count


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; the model and whether it streams are in `url`."""
    place = PATHS[0].search(url)
    model = unquote(place["model"]) if place else string(body.get("modelId"))
    limits = mapping_of(body.get("inferenceConfig"))
    config = mapping_of(body.get("toolConfig"))
    names: dict[str, str] = {}
    return Request(
        api=API,
        messages=asking.history_of(body.get("system"), body.get("messages"), lambda content: _parts(content, names)),
        model=model,
        tools=tuple(tool for item in list_of(config.get("tools")) if (tool := _tool(item))),
        tool_choice=_choice(config.get("toolChoice")),
        max_tokens=token_count(limits.get("maxTokens")),
        stream=bool(place and place["stream"]),
        extra=rest(body, "modelId", "messages", "system", "inferenceConfig.maxTokens", "toolConfig"),
    )


def _parts(content: Any, names: dict[str, str]) -> Iterator[MessagePart]:
    if isinstance(content, str):
        yield TextPart(content)
    for block in list_of(content):
        if isinstance(block, Mapping):
            yield _part(block, names)


def _part(block: Mapping[str, Any], names: dict[str, str]) -> MessagePart:
    if isinstance(block.get("text"), str):
        return TextPart(block["text"])
    kind = next((name for name, value in block.items() if isinstance(value, Mapping)), next(iter(block), ""))
    value = mapping_of(block.get(kind))
    if kind == "toolUse":
        return _call(value, names)
    if kind == "toolResult":
        id_ = string(value.get("toolUseId"))
        failed = value.get("status") == "error"
        content = value.get("content")
        plain = all(string(mapping_of(each).get("text")) is not None for each in list_of(content))
        more = None if plain else compact(content)
        return ToolResultPart(id_, names.get(id_ or ""), _text(content), failed, more)
    if kind == "reasoningContent":
        thought = mapping_of(value.get("reasoningText"))
        return ReasoningPart(
            string(thought.get("text")) or "", string(thought.get("signature")), string(value.get("redactedContent"))
        )
    return OpaquePart(kind, compact(block))


def _call(value: Mapping[str, Any], names: dict[str, str]) -> ToolCall:
    id_, name, call_input = string(value.get("toolUseId")), string(value.get("name")) or "", value.get("input")
    names[id_ or ""] = name
    kind = CallKind.SERVER if value.get("type") == SERVER_TOOL else CallKind.FUNCTION
    if isinstance(call_input, str):
        return ToolCall(id_, name, call_input, True, kind)
    return ToolCall(id_, name, compact(call_input) if "input" in value else None, True, kind, ArgsForm.OBJECT)


def _text(content: Any) -> str:
    texts: list[str] = []
    for block in list_of(content):
        text = block.get("text") if isinstance(block, Mapping) else None
        inner = block.get("json", block) if isinstance(block, Mapping) else block
        texts.append(text if isinstance(text, str) else compact(inner))
    return "".join(texts)


def _tool(item: Any) -> Tool | None:
    if not isinstance(item, Mapping):
        return None
    spec, system = mapping_of(item.get("toolSpec")), mapping_of(item.get("systemTool"))
    if system:
        return Tool(string(system.get("name")) or "", kind=CallKind.SERVER, declaration=item)
    if not spec:
        return None
    return asking.tool_of(spec, string(spec.get("name")) or "", mapping_of(spec.get("inputSchema")).get("json"), item)


def _choice(choice: Any) -> str | None:
    if not isinstance(choice, Mapping):
        return None
    if "tool" in choice:
        return f"tool:{mapping_of(choice['tool']).get('name')}"
    # a union of empty objects (botocore, ToolChoice)
    return next((word for word in ("auto", "any") if word in choice), None)


# -- Request -> the body that Converse expects -----------------------------------------------------------------------
# The path holds the model and says whether the answer is streamed.

CHOICES: Mapping[str, Any] = {"auto": {"auto": {}}, "any": {"any": {}}}
ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "the system prompt is one list of blocks, and results travel in a user message",
    **asking.usual_losses(*asking.CALL_FIELDS, *asking.ITEM_FIELDS, "result.name", *asking.STORED),
}


def path(request: Request) -> str:
    """The path of the request."""
    word = "converse-stream" if request.stream else "converse"
    return f"/model/{quote(request.model or '', safe='')}/{word}"  # a model may be an ARN, with slashes in it


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request. Raises `EncodeError` also if the request lacks a required field."""
    asking.one_choice(request, API)
    system_messages, history = asking.split_system(asking.with_ids(request.messages))
    body: dict[str, Any] = {}
    system = [block for message in system_messages for block in _blocks(message.parts)]
    if system:
        body["system"] = system
    body["messages"] = [{"role": role, "content": _blocks(parts)} for role, parts in _alternating(history)]
    limits = non_null(maxTokens=request.max_tokens)
    body |= non_null(inferenceConfig=limits or None, toolConfig=_config(request) or None)
    return merge(body, request.extra)


def _alternating(history: Iterable[Message]) -> list[tuple[str, list[MessagePart]]]:
    """The history with consecutive messages of one role joined: Converse refuses two messages of the user in a row."""
    joined: list[tuple[str, list[MessagePart]]] = []
    for message in history:
        role = asking.role_word(message.role)
        if joined and joined[-1][0] == role:
            joined[-1][1].extend(message.parts)
        else:
            joined.append((role, list(message.parts)))
    return joined


def _blocks(parts: Iterable[MessagePart]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if type(part) is not OpaquePart:
            blocks.append(write_block(part))
            continue
        value = opaque(part, API)
        fields = part.type.endswith(FIELDS)
        if not isinstance(value, dict) or (fields and not (blocks and "text" in blocks[-1])):
            raise EncodeError(f"the opaque {part.type} is not a block", api=API, what="opaque")
        if fields:
            blocks[-1] = {part.type.removesuffix(FIELDS): {"content": [blocks[-1]], **value}}
        else:
            blocks.append(value)
    return blocks


def write_block(part: MessagePart) -> dict[str, Any]:
    """The content block of a part that is not opaque."""
    if type(part) is TextPart:
        return {"text": part.text}
    if type(part) is ReasoningPart:
        if part.data is not None:
            return {"reasoningContent": {"redactedContent": part.data}}
        return {"reasoningContent": {"reasoningText": {"text": part.text, **non_null(signature=part.signature)}}}
    if isinstance(part, ToolResultPart):
        failed = {"status": "error"} if part.is_error else {}
        result_content = [{"text": part.text}] if part.json is None else asking.content(part, API)
        return {"toolResult": {"toolUseId": part.call_id or "", "content": result_content, **failed}}
    assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
    if part.kind is CallKind.CUSTOM:
        raise asking.refuse(part, API)
    server = {"type": SERVER_TOOL} if part.kind is CallKind.SERVER else {}
    return {"toolUse": {"toolUseId": part.id, "name": part.name, "input": asking.arguments(part, API), **server}}


def _config(request: Request) -> dict[str, Any]:
    """The tools and the choice among them; empty if the request has neither."""
    used = any(message.tool_calls or message.results for message in request.messages)
    if request.tool_choice == "none":
        if used:
            raise EncodeError("there is no tool choice none, and a history with calls needs its tools declared",
                              api=API, what="tool_choice")
        return {}  # without declarations there are no calls
    if not request.tools:
        if used:
            raise EncodeError("a history with calls needs its tools declared", api=API, what="tools")
        return {}
    choice = asking.tool_choice(request.tool_choice, CHOICES, API, lambda name: {"tool": {"name": name}})
    return {"tools": asking.declarations(request.tools, _write_tool), **non_null(toolChoice=choice)}


def _write_tool(tool: Tool) -> Mapping[str, Any]:
    if tool.kind is CallKind.SERVER:
        return {"systemTool": {"name": tool.name}}
    schema = {"json": tool.schema or {"type": "object"}}  # required (botocore 1.44.5, ToolSpecification)
    return {"toolSpec": {"name": tool.name, **asking.describe(tool), "inputSchema": schema}}
