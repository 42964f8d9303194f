"""A Cohere request body -> `Request`, and back: like Chat Completions with other words; v1 has a single message.

Further down: request -> the body that the second version expects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from loop_core.values import CallKind, Message, ReasoningPart, Request, Role, TextPart, ToolCall
from loop_core.wire.body import (
    forced_tool,
    list_of,
    mapping_of,
    merge,
    non_null,
    one_choice,
    opaque_object,
    refuse,
    rest,
    string,
    unknown_choice,
    with_ids,
    word,
)
from loop_core.wire.cohere_chat.decode import API
from loop_core.wire.openai_chat.request import read_request as read_chat

_CHOICES: Mapping[str, str] = {"REQUIRED": "any", "NONE": "none"}
_ROLES: Mapping[str, Role] = {"SYSTEM": Role.SYSTEM, "USER": Role.USER, "CHATBOT": Role.ASSISTANT}


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body."""
    if "messages" not in body and isinstance(body.get("message"), str):
        return _read_first(body)
    request = read_chat(rest(body, "tool_choice"))
    plans = [word(item.get("tool_plan")) for item in list_of(body.get("messages")) if isinstance(item, Mapping)]
    messages = (_with_plan(message, plan) for message, plan in zip(request.messages, plans, strict=True))
    choice = string(body.get("tool_choice"))
    return replace(request, api=API, messages=tuple(messages), tool_choice=_CHOICES.get(choice) if choice else None)


def _with_plan(message: Message, plan: str | None) -> Message:
    return message._replace(parts=(ReasoningPart(plan), *message.parts)) if plan else message


def _read_first(body: Mapping[str, Any]) -> Request:
    """The first version: a history, and the message of the user apart from it."""
    history = (mapping_of(item) for item in list_of(body.get("chat_history")))
    said = [(_ROLES.get(str(item.get("role")), Role.USER), word(item.get("message"))) for item in history]
    whole = [(Role.SYSTEM, word(body.get("preamble"))), *said, (Role.USER, word(body.get("message")))]
    cap = body.get("max_tokens")
    return Request(
        API, tuple(Message(role, (TextPart(text),)) for role, text in whole if text), word(body.get("model")),
        max_tokens=cap if type(cap) is int else None, stream=body.get("stream") is True,
        extra=rest(body, "message", "chat_history", "preamble", "model", "max_tokens", "stream"),
    )


# -- Request -> the body that the second version expects -------------------------------------------------------------

ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "every result is a message of its own",
    "tool_choice": "no single tool can be forced; auto is what is not said",
    "tools": "where a single tool is forced the others are left out",
    "reasoning.signature": "thinking is not signed",
    "reasoning.data": "thinking is not encrypted",
    "reasoning.item_id": "thinking has no id",
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


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request."""
    one_choice(request, API)
    choice = request.tool_choice
    forced = forced_tool(choice)
    words: dict[str | None, str | None] = {
        None: None, "auto": None, **{ours: theirs for theirs, ours in _CHOICES.items()},
    }
    if forced is None and choice not in words:
        raise unknown_choice(str(choice), API)
    tools = [tool for tool in request.tools if forced in (None, tool.name)]
    body = non_null(model=request.model)
    body["messages"] = [item for message in with_ids(request.messages) for item in _messages(message)]
    if tools:
        body["tools"] = [tool.declaration or {"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.schema or {"type": "object"}}}
            for tool in tools]
    body |= non_null(tool_choice="REQUIRED" if forced else words[choice], max_tokens=request.max_tokens)
    body["stream"] = request.stream
    return merge(body, request.extra)


def _messages(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.call_id or "", "content": result.text}
    content: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, ReasoningPart):
            content.append({"type": "thinking", "thinking": part.text})
        elif isinstance(part, ToolCall):
            if part.kind is not CallKind.FUNCTION:
                raise refuse(part, API)
            calls.append({"id": part.id, "type": "function",
                          "function": {"name": part.name, "arguments": part.arguments or "{}"}})
        elif part not in message.results:
            content.append(opaque_object(part, API))  # type: ignore[arg-type]
    if not content and not calls and message.results:
        return
    role = Role.USER if message.role is Role.TOOL else message.role
    only = content[0].get("text") if len(content) == 1 else None
    said: Any = only if isinstance(only, str) else content or None
    yield {"role": role.value, **non_null(content=said if said or calls else "", tool_calls=calls or None)}
