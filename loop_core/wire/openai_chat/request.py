"""Decodes the body of a Chat Completions request into a `Request`, and encodes it again.

Fields are read in all their spellings; malformed ones are skipped and raise nothing. The second half encodes.
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
from loop_core.wire import asking
from loop_core.wire.body import integer, list_of, merge, non_null, opaque_object, rest, token_count, value_at, word
from loop_core.wire.openai_chat.calls import thought_signature
from loop_core.wire.openai_chat.table import API, REASONING_FIELDS

ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,  # the name for reasoning models (API reference)
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,  # deprecated with function_call (API reference)
}
"""Role of a message -> our role. Any other role is read as the user's."""
# OpenAI deprecates max_tokens, so the newer name counts first; the third is the name in Responses.
CAPS: tuple[str, ...] = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_ALLOWED = ("tool_choice", "allowed_tools", "tools")
_DEPLOYMENT = re.compile(r"/deployments/([^/?#]+)/")


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; Azure names the model's deployment in the URL only."""
    deployment = _DEPLOYMENT.search(url)
    model = word(body.get("model")) or (unquote(deployment.group(1)) if deployment else None)
    caps = [name for name in CAPS if token_count(body.get(name)) is not None]  # LM Studio: -1 is no limit, and stays
    return Request(
        api=API,
        messages=tuple(_message(item) for item in list_of(body.get("messages")) if isinstance(item, Mapping)),
        model=model,
        tools=asking.with_allowed(_tools(body), value_at(body, _ALLOWED)),
        tool_choice=_choice(body.get("tool_choice", body.get("function_call"))),
        max_tokens=token_count(body[caps[0]]) if caps else None,
        stream=body.get("stream") is True,
        n=integer(body.get("n")) or 1,
        extra=rest(body, "model", "messages", "tools", "functions", "function_call", "stream", "n", *caps,
                   *(() if value_at(body, _ALLOWED) is not None else ("tool_choice",))),
    )


def _message(item: Mapping[str, Any]) -> Message:
    role = ROLES.get(str(item.get("role")), Role.USER)
    if role is Role.TOOL:
        name = word(item.get("name"))
        return Message(role, (ToolResultPart(word(item.get("tool_call_id")), name, _text(item.get("content"))),))
    parts: list[MessagePart] = []
    parts.extend(_details(list_of(item.get("reasoning_details"))))
    thinking = next((text for name in REASONING_FIELDS if (text := word(item.get(name)))), None)
    if thinking and not parts:  # a second field with the same text is not a second thought
        parts.append(ReasoningPart(thinking))
    parts.extend(_content(item.get("content")))
    if refusal := word(item.get("refusal")):
        parts.append(TextPart(refusal))
    parts.extend(_calls(item))
    return Message(role, tuple(parts))


def _details(details: list[Any]) -> Iterator[ReasoningPart]:
    """Reasoning in the form of routers, with its signatures."""
    for detail in details:
        if isinstance(detail, Mapping):
            text = word(detail.get("text")) or word(detail.get("summary")) or ""
            yield ReasoningPart(text, word(detail.get("signature")), word(detail.get("data")),
                                word(detail.get("id")))


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
    for call in list_of(item.get("tool_calls")):
        if not isinstance(call, Mapping):
            continue
        custom, function = call.get("custom"), call.get("function")
        if isinstance(custom, Mapping):
            yield _call(word(call.get("id")), custom, "input", CallKind.CUSTOM)
        elif isinstance(function, Mapping):
            found = _call(word(call.get("id")), function, "arguments", CallKind.FUNCTION)
            yield found._replace(signature=thought_signature(call))
    old = item.get("function_call")
    if isinstance(old, Mapping):
        yield _call(None, old, "arguments", CallKind.FUNCTION)


def _call(ident: str | None, payload: Mapping[str, Any], key: str, kind: CallKind) -> ToolCall:
    call_input = payload.get(key)
    form = ArgsForm.STRING if call_input is None or isinstance(call_input, str) else ArgsForm.OBJECT
    text = json.dumps(call_input, ensure_ascii=False) if form is ArgsForm.OBJECT else call_input
    return ToolCall(ident, word(payload.get("name")) or "", text, closed=True, kind=kind, form=form)


def _tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in list_of(body.get("tools")):
        if not isinstance(tool, Mapping):
            continue
        custom, function = tool.get("custom"), tool.get("function")
        if isinstance(custom, Mapping):
            yield Tool(word(custom.get("name")) or "", None, _text(custom.get("description")), CallKind.CUSTOM,
                       declaration=tool)
        elif isinstance(function, Mapping):
            yield _tool(function, tool)
        elif word(tool.get("name")) and tool.get("type") in (None, "function"):
            yield _tool(tool, tool)  # in the form of the Responses API
        elif (kind := word(tool.get("type"))) and kind != "function":
            yield Tool(kind, description=_text(tool.get("description")), kind=CallKind.SERVER, declaration=tool)
    for function in list_of(body.get("functions")):
        if isinstance(function, Mapping):
            yield _tool(function, {"type": "function", "function": function})


def _tool(function: Mapping[str, Any], declared: Mapping[str, Any]) -> Tool:
    schema = function.get("parameters")
    return Tool(word(function.get("name")) or "", schema if isinstance(schema, Mapping) else None,
                _text(function.get("description")), declaration=declared)


def _choice(value: Any) -> str | None:
    """The tool choice: auto, any, none or tool:NAME. For a list of allowed tools it is the list's mode."""
    if isinstance(value, str):
        return asking.TOOL_WORDS.get(value)
    if not isinstance(value, Mapping):
        return None
    for holder in (value.get("function"), value.get("custom"), value):
        name = word(holder.get("name")) if isinstance(holder, Mapping) else None
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


# -- Request -> the body that Chat Completions expects ---------------------------------------------------------------
# Decoded values are written back to the same places. A profile says which fields its server spells in another way.

ASKING_LOSES: Mapping[str, str] = {
    "reasoning.item_id": "thinking without a signature is one text",
    "opaque": "of the fields beside the content only the id of a sound goes back",
    **asking.usual_losses("message.grouping", "call.form", "call.status", "call.item_id",
                          "reasoning.json", "text.phase", *asking.RESULT_FIELDS, *asking.STORED),
}


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request."""
    history = asking.with_ids(request.messages)  # only the id links a result to its call
    body = non_null(model=request.model)
    body["messages"] = [item for message in history for item in _messages(message)]
    choice, extra = asking.choice_to_write(request, _choice, _write_choice(request))
    body |= non_null(tools=asking.declarations(request.tools, _write_tool) or None,
                     tool_choice=choice, max_tokens=request.max_tokens,
                     n=request.n if request.n != 1 else None, stream=request.stream or None)
    return merge(body, extra)


def _messages(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.call_id or "", "content": result.text}
    others = [part for part in message.parts if type(part) is not ToolResultPart]
    if not others and message.results:
        return
    content = list(_write_content(others))
    item: dict[str, Any] = {"role": asking.role_word(message.role)}  # other parts than results are the user's
    texts = [block["text"] for block in content if block.get("type") == "text"]
    if len(texts) == len(content) <= 1:
        # Content may be null beside calls alone (API reference, assistant message).
        item["content"] = texts[0] if texts else None if message.tool_calls else ""
    else:
        item["content"] = content
    item |= _thinking([part for part in others if type(part) is ReasoningPart])
    for part in others:
        if type(part) is OpaquePart and part.type == "message.audio":
            item["audio"] = {"id": opaque_object(part, API).get("id")}  # a request holds only the id of audio
    calls = [_write_call(part) for part in others if type(part) is ToolCall]
    if calls:
        item["tool_calls"] = calls
    yield item


def _thinking(parts: list[ReasoningPart]) -> dict[str, Any]:
    """Plain reasoning as text; signed or encrypted reasoning in the form of routers, which pass it on (OpenRouter)."""
    if not any(part.signature or part.data for part in parts):
        text = "".join(part.text for part in parts)
        return {"reasoning_content": text} if text else {}
    details: list[dict[str, Any]] = []
    for part in parts:
        if part.data is not None:
            details.append({"type": "reasoning.encrypted", "data": part.data, **non_null(id=part.item_id)})
        if part.text or part.data is None:
            members = non_null(signature=part.signature, id=part.item_id)
            details.append({"type": "reasoning.text", "text": part.text, **members})
    return {"reasoning_details": details}


def _write_content(parts: list[MessagePart]) -> Iterator[dict[str, Any]]:
    for part in parts:
        if type(part) is TextPart:
            yield {"type": "text", "text": part.text}
        elif type(part) is OpaquePart and not part.type.startswith("message."):
            yield opaque_object(part, API)


def _write_call(call: ToolCall) -> dict[str, Any]:
    if call.kind is CallKind.CUSTOM:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments or ""}}
    if call.kind is not CallKind.FUNCTION:
        raise asking.refuse(call, API)
    # required (API reference)
    function = {"name": call.name, "arguments": "{}" if call.arguments is None else call.arguments}
    written: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    if call.signature is not None:  # Gemini refuses its own call without it (Gemini API docs, thought signatures)
        written["extra_content"] = {"google": {"thought_signature": call.signature}}
    return written


def _write_tool(tool: Tool) -> Mapping[str, Any]:
    description = asking.describe(tool)
    if tool.kind is CallKind.CUSTOM:
        return {"type": "custom", "custom": {"name": tool.name, **description}}
    if tool.kind is CallKind.SERVER:
        return {"type": tool.name, **description}
    return {"type": "function", "function": {"name": tool.name, **description, **non_null(parameters=tool.schema)}}


def _write_choice(request: Request) -> Any:
    def force(name: str) -> dict[str, Any]:
        kind = "custom" if asking.custom(name, request.tools) else "function"
        return {"type": kind, kind: {"name": name}}

    return asking.tool_choice(request.tool_choice, asking.TOOL_CHOICES, API, force)
