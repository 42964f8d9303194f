"""Decodes the body of a Messages request into a `Request`, and encodes it again.

Decoding raises nothing for a recorded body: an unknown block is kept as an opaque part, a malformed message is skipped.
The second half encodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from loop_core.errors import EncodeError
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
from loop_core.wire import asking
from loop_core.wire.anthropic_messages.table import API, FIELDS, KINDS, PATHS
from loop_core.wire.body import compact, list_of, mapping_of, merge, non_null, opaque, rest, string, token_count

_SERVER_TOOLS = ("web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "mcp_toolset", "advisor_")
"""Prefixes of the types of server tools (anthropic 2.12.0 types/tool_union_param.py, and beta)."""


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body. On Vertex, `url` holds the model and says whether the answer is streamed."""
    model = body.get("model")
    stream = body.get("stream") is True
    hosted = PATHS[1].search(url)
    if hosted:
        model = model or hosted["model"]
        stream = stream or ":streamRawPredict" in url
    cap = body.get("max_tokens", body.get("max_tokens_to_sample"))  # the name in text completions
    names: dict[str, str] = {}
    # Its SDK's runner of tools begins a thread by itself (anthropic 2.12.0 types/beta/beta_thread_continue_params.py).
    thread = mapping_of(body.get("thread"))
    return Request(
        api=API,
        messages=asking.history_of(body.get("system"), body.get("messages"), lambda content: _parts(content, names)),
        model=string(model),
        tools=tuple(tool for item in list_of(body.get("tools")) if (tool := _tool(item))),
        tool_choice=_choice(body.get("tool_choice")),
        max_tokens=token_count(cap),
        stream=stream,
        previous_id=string(thread.get("previous_message_id")) if thread.get("type") == "continue" else None,
        extra=rest(body, "model", "system", "messages", "tools", "tool_choice.type", "tool_choice.name", "max_tokens",
                   "max_tokens_to_sample", "stream"),
    )


def _parts(content: Any, names: dict[str, str]) -> Iterator[MessagePart]:
    if isinstance(content, str):
        yield TextPart(content)
        return
    for block in list_of(content):
        if isinstance(block, str):
            yield TextPart(block)
        elif isinstance(block, Mapping):
            yield _part(block, names)


def _part(block: Mapping[str, Any], names: dict[str, str]) -> MessagePart:
    kind = str(block.get("type"))
    if kind == "text" and isinstance(block.get("text"), str):
        return TextPart(block["text"])
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return ReasoningPart(block["thinking"], string(block.get("signature")) or None)
    if kind == "redacted_thinking":
        return ReasoningPart("", data=string(block.get("data")))
    if kind == "tool_result":
        id_ = string(block.get("tool_use_id"))
        content = block.get("content")
        plain = all(string(mapping_of(each).get("type")) == "text" for each in list_of(content))
        more = None if plain else compact(content)
        return ToolResultPart(id_, names.get(id_ or ""), _text(content), block.get("is_error") is True, more)
    row = KINDS.get(kind)
    if row is not None and row.call is not None:
        id_, name, call_input = string(block.get("id")), string(block.get("name")) or "", block.get("input")
        names[id_ or ""] = name
        if isinstance(call_input, str):
            return ToolCall(id_, name, call_input, True, row.call)
        arguments = compact(call_input) if "input" in block else None
        return ToolCall(id_, name, arguments, True, row.call, ArgsForm.OBJECT)
    return OpaquePart(kind, compact(block))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = ((block, mapping_of(block)) for block in list_of(content))
    return "".join(text if members.get("type") == "text" and (text := string(members.get("text"))) is not None
                   else compact(block) for block, members in blocks)


def _tool(item: Any) -> Tool | None:
    if not isinstance(item, Mapping):
        return None
    kind = string(item.get("type")) or "custom"  # a tool without a type is the client's (API reference)
    name = string(item.get("name")) or string(item.get("mcp_server_name")) or kind
    server = kind.startswith(_SERVER_TOOLS)
    return asking.tool_of(item, name, item.get("input_schema"), item, CallKind.SERVER if server else CallKind.FUNCTION)


def _choice(choice: Any) -> str | None:
    if not isinstance(choice, Mapping):
        return None
    kind = choice.get("type")
    if kind == "tool":
        return f"tool:{choice.get('name')}"
    return kind if kind in ("auto", "any", "none") else None


# -- Request -> the body that Messages expects -----------------------------------------------------------------------

CHOICES: Mapping[str, Any] = {"auto": {"type": "auto"}, "any": {"type": "any"}, "none": {"type": "none"}}
ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "the system prompt is one list of blocks, and results travel in a user message",
    **asking.usual_losses(*asking.CALL_FIELDS, *asking.ITEM_FIELDS, "result.name", *asking.STORED),
}
CALL_TYPES = {CallKind.FUNCTION: "tool_use", CallKind.SERVER: "server_tool_use"}


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request. Raises `EncodeError` also if the request lacks a required field."""
    asking.one_choice(request, API)
    if request.max_tokens is None:  # required (API reference)
        raise EncodeError("a request needs max_tokens", api=API, what="max_tokens")
    system_messages, history = asking.split_system(asking.with_ids(request.messages))
    body = non_null(model=request.model, max_tokens=request.max_tokens)
    system = [block for message in system_messages for block in _blocks(message.parts)]
    if system:
        body["system"] = system[0]["text"] if len(system) == 1 and system[0].keys() == {"type", "text"} else system
    body["messages"] = [_write_message(message) for message in _join_results(history)]
    choice = asking.tool_choice(request.tool_choice, CHOICES, API, lambda name: {"type": "tool", "name": name})
    body |= non_null(tools=asking.declarations(request.tools, _write_tool) or None, tool_choice=choice,
                     stream=request.stream or None)
    return merge(body, request.extra)


def _join_results(history: Iterable[Message]) -> Iterator[Message]:
    """Joins tool results with the user's next message, because a result must be in the message after its call."""
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


def _write_message(message: Message) -> dict[str, Any]:
    blocks = list(_blocks(message.parts))
    plain = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    return {"role": asking.role_word(message.role), "content": blocks[0]["text"] if plain else blocks}


def _blocks(parts: Iterable[MessagePart]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if type(part) is OpaquePart:
            value = opaque(part, API)
            fields = part.type.endswith(FIELDS)
            if not isinstance(value, dict) or (fields and not blocks):
                raise EncodeError(f"the opaque {part.type} is not a block", api=API, what="opaque")
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
        # The signature is required (API reference, Messages: thinking blocks in a request).
        return {"type": "thinking", "thinking": part.text, "signature": part.signature or ""}
    if isinstance(part, ToolResultPart):
        result_content = part.text if part.json is None else asking.content(part, API)
        return {"type": "tool_result", "tool_use_id": part.call_id or "", "content": result_content,
                **non_null(is_error=part.is_error or None)}
    assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
    if part.kind not in CALL_TYPES:
        raise asking.refuse(part, API)
    return {"type": CALL_TYPES[part.kind], "id": part.id, "name": part.name, "input": asking.arguments(part, API)}


def _write_tool(tool: Tool) -> Mapping[str, Any]:
    if tool.kind is CallKind.SERVER:
        raise EncodeError(f"{tool.name}: a server tool has to be declared in full", api=API, what="tool")
    # The schema is required (API reference).
    return {"name": tool.name, **asking.describe(tool), "input_schema": tool.schema or {"type": "object"}}
