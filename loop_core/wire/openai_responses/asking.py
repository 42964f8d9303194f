"""Request -> the body that Responses expects.

A message of ours becomes one item for each thing in it, in order; the reader puts them together again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
from loop_core.wire.body import (
    calls_of,
    content,
    custom,
    forced,
    known,
    merged,
    one_choice,
    opaque,
    unknown_choice,
    with_ids,
)
from loop_core.wire.openai_responses.table import API

TOOL_CHOICES: Mapping[str, str] = {"auto": "auto", "any": "required", "none": "none"}
ASKING_LOSES: Mapping[str, str] = {
    "continuation_token": "an answer is gone on with by its id",
    "message.grouping": "a history is a list of items, whatever message they came in",
    "reasoning.signature": "reasoning is given back by its id and encrypted content",
    "call.signature": "a call is given back by its id",
    "result.name": "a result names its call by the id",
    "result.is_error": "only the text tells of a failure",
}
_OUTPUTS: Mapping[str, str] = {
    "mcp_approval_request": "mcp_approval_response", "tool_search_call": "tool_search_output",
}
"""Items of the client whose answer is not called `..._output`."""
_IDS: Mapping[str, str] = {"mcp_approval_response": "approval_request_id", "local_shell_call_output": "id"}


def path(request: Request) -> str:
    """Where the request goes, below the version of the API."""
    return "/responses"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request.

    Raises:
        EncodeError: it holds what the format cannot carry.
    """
    one_choice(request, API)
    history = with_ids(request.messages)
    calls = {call.id: call for call in calls_of(history)}
    body = known(model=request.model)
    first = history[0] if len(history) > 1 else None  # a system message alone is what is asked
    if first is not None and first.role is Role.SYSTEM and len(first.parts) == 1 and type(first.parts[0]) is TextPart:
        body["instructions"] = first.parts[0].text
        history = history[1:]
    body["input"] = [item for message in history for item in _items(message, calls, request.tools)]
    if request.tools:
        body["tools"] = [_write_tool(tool) for tool in request.tools]
    if request.tool_choice is not None:
        body["tool_choice"] = _write_choice(request.tool_choice, request)
    body |= known(max_output_tokens=request.max_tokens, previous_response_id=request.previous_id)
    body |= {name: True for name in ("stream", "background") if getattr(request, name)}
    return merged(body, request.extra)


def _items(
    message: Message, calls: Mapping[str | None, ToolCall], tools: Sequence[Tool]
) -> Iterator[dict[str, Any]]:
    said: list[MessagePart] = []
    for part in message.parts:
        if type(part) is TextPart or (type(part) is OpaquePart and _is_content(message.role, part)):
            said.append(part)
            continue
        if said:
            yield _write_message(message.role, said)
            said = []
        if type(part) is ToolResultPart:
            yield _write_result(part, calls.get(part.call_id), tools)
        elif type(part) is ToolCall:
            yield _write_call(part)
        elif type(part) is ReasoningPart:
            yield _write_reasoning(part)
        elif type(part) is OpaquePart:
            yield _object(part)
    if said or not message.parts:
        yield _write_message(message.role, said)


def _is_content(role: Role, part: OpaquePart) -> bool:
    """Whether an opaque part stands inside a message; an answer holds whole items beside its messages."""
    return role is not Role.ASSISTANT or part.type.startswith(("input_", "output_", "refusal"))


def _write_message(role: Role, parts: list[MessagePart]) -> dict[str, Any]:
    word = "user" if role is Role.TOOL else role.value
    if role is not Role.ASSISTANT and len(parts) <= 1 and all(type(part) is TextPart for part in parts):
        return {"role": word, "content": "".join(part.text for part in parts if type(part) is TextPart)}
    answered = role is Role.ASSISTANT
    kind = "output_text" if answered else "input_text"
    more: dict[str, Any] = {"annotations": []} if answered else {}
    blocks = [{"type": kind, "text": part.text, **more} if type(part) is TextPart else _object(part)
              for part in parts if type(part) in (TextPart, OpaquePart)]
    # An answer goes back as the item that it was, but for its id (recorded without one; llama.cpp takes no other form).
    return {"type": "message", "role": word, **({"status": "completed"} if answered else {}), "content": blocks}


def _object(part: MessagePart) -> dict[str, Any]:
    assert type(part) is OpaquePart  # noqa: S101  (callers look at the type)
    value = opaque(part, API)
    if not isinstance(value, dict):
        raise EncodeError(f"the opaque {part.type} is no JSON object", api=API, what="opaque")
    return value


def _write_reasoning(part: ReasoningPart) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {"type": "reasoning", **known(id=part.item_id), "summary": summary, **known(encrypted_content=part.data)}


def _own_item(call: ToolCall) -> dict[str, Any] | None:
    """The item that is its own payload: a server's call, or one of the provider's tools that the client runs."""
    if call.kind is CallKind.FUNCTION or call.form is not ArgsForm.OBJECT:
        return None
    try:
        item = json.loads(call.arguments or "")
    except (ValueError, RecursionError):
        item = None
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise EncodeError(f"{call.name} is no item of this format", api=API, what=f"{call.kind} call")
    return item


def _write_call(call: ToolCall) -> dict[str, Any]:
    item = _own_item(call)
    if item is not None:
        return item
    if call.kind is CallKind.SERVER:
        raise EncodeError(f"{call.name} is no item of this format", api=API, what="server call")
    sent = call.arguments if call.arguments is not None else "{}"
    kind, field = ("custom_tool_call", "input") if call.kind is CallKind.CUSTOM else ("function_call", "arguments")
    payload = json.loads(sent) if call.form is ArgsForm.OBJECT else sent
    return {"type": kind, **known(id=call.item_id), "call_id": call.id, "name": call.name, field: payload,
            **known(status=call.status)}


def _write_result(part: ToolResultPart, call: ToolCall | None, tools: Sequence[Tool]) -> dict[str, Any]:
    item = _own_item(call) if call is not None else None
    if call is None or item is None:
        # The call itself may stand in a history that the server keeps; its tool is declared all the same.
        custom_call = custom(part.name or "", tools) if call is None else call.kind is CallKind.CUSTOM
        kind = "custom_tool_call_output" if custom_call else "function_call_output"
        output = part.text if part.json is None else content(part, API)
        return {"type": kind, "call_id": part.call_id or "", "output": output}
    kind = _OUTPUTS.get(str(item["type"]), f"{item['type']}_output")
    try:
        output = json.loads(part.json or part.text)
    except (ValueError, RecursionError):
        output = None
    if isinstance(output, dict) and output.get("type") == kind:
        return output  # the whole item was kept, since it has no field named output
    return {"type": kind, _IDS.get(kind, "call_id"): part.call_id,
            "output": output if isinstance(output, (dict, list)) else part.text}


def _write_tool(tool: Tool) -> Mapping[str, Any]:
    if tool.declared is not None:
        return tool.declared
    said = {"description": tool.description} if tool.description else {}
    if tool.kind is CallKind.SERVER:
        return {"type": tool.name}
    if tool.kind is CallKind.CUSTOM:
        return {"type": "custom", "name": tool.name, **said}
    # `strict` is on where it is not said, and refuses most schemas (openai types/responses/function_tool_param.py).
    return {"type": "function", "name": tool.name, **said, "parameters": tool.schema, "strict": False}


def _write_choice(choice: str, request: Request) -> Any:
    name = forced(choice)
    if name is None:
        if choice not in TOOL_CHOICES:
            raise unknown_choice(choice, API)
        return TOOL_CHOICES[choice]
    tool = next((tool for tool in request.tools if tool.name == name), None)
    if tool is not None and tool.declared is not None and tool.declared.get("type") not in ("function", "custom"):
        return {"type": tool.declared.get("type")}
    return {"type": "custom" if custom(name, request.tools) else "function", "name": name}
