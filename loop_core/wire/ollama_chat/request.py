"""An Ollama chat request body -> `Request`, and back.

Reads what a recording holds and never complains: odd messages and tools are skipped.

Further down: request -> the body that Ollama's chat expects.
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
from loop_core.wire.body import (
    arguments,
    dump,
    forced_tool,
    list_of,
    merge,
    non_null,
    one_choice,
    opaque,
    refuse,
    rest,
    unknown_choice,
    with_ids,
    with_names,
    word,
)
from loop_core.wire.ollama_chat.decode import API

_ROLES: Mapping[str, Role] = {role.value: role for role in Role}


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; Ollama streams unless the request says otherwise."""
    options = body.get("options")
    cap = options.get("num_predict") if isinstance(options, Mapping) else None
    model = body.get("model")
    return Request(
        api=API,
        messages=tuple(message for item in list_of(body.get("messages")) if (message := _message(item))),
        model=model if isinstance(model, str) and model else None,
        tools=tuple(tool for item in list_of(body.get("tools")) if (tool := _tool(item))),
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
        name = word(item.get("tool_name")) or word(item.get("name"))
        yield ToolResultPart(word(item.get("tool_call_id")), name, text)
        return
    if isinstance(thinking, str) and thinking:
        yield ReasoningPart(thinking)
    if text:
        yield TextPart(text)
    for image in list_of(item.get("images")):
        yield OpaquePart("image", dump(image))
    for call in list_of(item.get("tool_calls")):
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield _call(call, function)


def _call(call: Mapping[str, Any], function: Mapping[str, Any]) -> ToolCall:
    value = function.get("arguments")
    form = ArgsForm.STRING if isinstance(value, str) else ArgsForm.OBJECT
    sent = value if isinstance(value, str) else dump(value) if "arguments" in function else None
    return ToolCall(word(call.get("id")), word(function.get("name")) or "", sent, closed=True, form=form)


def _tool(item: Any) -> Tool | None:
    function = item.get("function") if isinstance(item, Mapping) else None
    name = word(function.get("name")) if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or name is None:
        return None
    schema, described = function.get("parameters"), function.get("description")
    return Tool(name, schema if isinstance(schema, Mapping) else None, described if isinstance(described, str) else "",
                declaration=item)


# -- Request -> the body that Ollama's chat expects ------------------------------------------------------------------

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


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request."""
    one_choice(request, API)
    choice = request.tool_choice
    if choice is not None and forced_tool(choice) is None and choice not in CHOICES:
        raise unknown_choice(choice, API)
    body = non_null(model=request.model)
    history = with_names(with_ids(request.messages, missing=False))
    body["messages"] = [item for message in history for item in _messages(message)]
    if request.tools and choice != "none":
        body["tools"] = [_write_tool(tool) for tool in request.tools]
    body["stream"] = request.stream  # it streams where nothing is said
    if request.max_tokens is not None:
        body["options"] = {"num_predict": request.max_tokens}
    return merge(body, request.extra)


def _messages(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield {"role": "tool", "content": result.text, **non_null(tool_name=result.name, tool_call_id=result.call_id)}
    others = [part for part in message.parts if type(part) is not ToolResultPart]
    if not others and message.results:
        return
    role = Role.USER if message.role is Role.TOOL else message.role
    item: dict[str, Any] = {"role": role.value, "content": message.text}
    thinking = "".join(part.text for part in others if type(part) is ReasoningPart)
    images = [opaque(part, API) for part in others if type(part) is OpaquePart]
    calls = [_write_call(part) for part in others if type(part) is ToolCall]
    yield item | non_null(thinking=thinking or None, images=images or None, tool_calls=calls or None)


def _write_call(call: ToolCall) -> dict[str, Any]:
    if call.kind is not CallKind.FUNCTION:
        raise refuse(call, API)
    return {**non_null(id=call.id), "function": {"name": call.name, "arguments": arguments(call, API)}}


def _write_tool(tool: Tool) -> Mapping[str, Any]:
    if tool.declaration is not None:
        return tool.declaration
    said = {"description": tool.description} if tool.description else {}
    return {"type": "function", "function": {"name": tool.name, **said, **non_null(parameters=tool.schema)}}
