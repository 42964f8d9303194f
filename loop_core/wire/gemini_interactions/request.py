"""Decodes the body of an Interactions request into a `Request`, and encodes it again.

Decoding raises nothing for a recorded body: an unknown step is kept as an opaque part, a malformed member is skipped.
The second half encodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from loop_core.errors import EncodeError
from loop_core.json_parser import JsonPath
from loop_core.values import (
    At,
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
from loop_core.wire.body import (
    compact,
    dump,
    list_of,
    mapping_of,
    merge,
    non_null,
    opaque,
    opaque_object,
    rest,
    token_count,
    value_at,
    word,
)
from loop_core.wire.gemini_interactions.decode import read_step
from loop_core.wire.gemini_interactions.table import API, CALL, CONTENTS, INSIDE, NOTES, OUTPUT, THOUGHT

USER, RESULT = "user_input", "function_result"
_MODES: Mapping[str, str] = {"auto": "auto", "any": "any", "none": "none", "validated": "auto"}
_ROLES: Mapping[str, Role] = {"user": Role.USER, "model": Role.ASSISTANT}
_READ_FIELDS = (
    "model", "input", "system_instruction", "tools", "stream", "previous_interaction_id", "continuation_token",
    "background", "generation_config.max_output_tokens", "generation_config.tool_choice",
)


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body."""
    settings = mapping_of(body.get("generation_config"))
    system = tuple(_contents(body.get("system_instruction")))
    model = word(body.get("model"))
    return Request(
        api=API,
        messages=(*([Message(Role.SYSTEM, system)] if system else []), *_messages(body.get("input"))),
        model=model.rpartition("/")[2] if model else None,  # also `models/NAME`, as in Gemini's list of models
        tools=asking.with_allowed_names(
            (tool for declared in list_of(body.get("tools")) if (tool := _tool(declared)) is not None),
            value_at(settings, ("tool_choice", "allowed_tools", "tools"))),
        tool_choice=_choice(settings.get("tool_choice")),
        max_tokens=token_count(settings.get("max_output_tokens")),
        stream=body.get("stream") is True,
        previous_id=word(body.get("previous_interaction_id")),
        continuation_token=word(body.get("continuation_token")),
        background=body.get("background") is True,
        extra=rest(body, *_READ_FIELDS),
    )


def _messages(value: Any) -> Iterator[Message]:
    """The history: a text, contents of one message, or steps. Consecutive steps of the model become one message."""
    items = value if isinstance(value, list) else [value]
    parts: list[MessagePart] = []
    role = Role.USER
    for item in items:
        # A step is one message; consecutive contents outside steps are one together.
        fresh = isinstance(item, Mapping) and word(item.get("type")) not in CONTENTS
        for who, part in _read_item(item):
            if who is not role or (fresh and who is Role.USER):
                if parts:
                    yield Message(role, tuple(parts))
                parts, role = [], who
            parts.append(part)
            fresh = False
    if parts:
        yield Message(role, tuple(parts))


def _read_item(item: Any) -> Iterator[tuple[Role, MessagePart]]:
    if isinstance(item, str):
        yield Role.USER, TextPart(item)
    if not isinstance(item, Mapping):
        return
    kind, turn = word(item.get("type")), _ROLES.get(word(item.get("role")) or "")
    if kind is None and turn is not None:  # a turn of the API's first version
        for part in _contents(item.get("content")):
            yield Role.TOOL if isinstance(part, ToolResultPart) else turn, part
    elif kind == USER:
        for part in _contents(item.get("content")):
            yield Role.TOOL if isinstance(part, ToolResultPart) else Role.USER, part
    elif kind == RESULT:
        yield Role.TOOL, _result(item)
    elif kind in CONTENTS:
        for part in _contents(item):
            yield Role.USER, part
    else:
        for step_part in read_step(item, True, At(), lambda *path: _verbatim(item, path)):
            yield Role.ASSISTANT, step_part


def _verbatim(value: Any, path: JsonPath) -> str:
    for key in path:
        value = value[key]
    return dump(value)


def _contents(value: Any) -> Iterator[MessagePart]:
    if isinstance(value, str):
        yield TextPart(value)
        return
    for item in [value] if isinstance(value, Mapping) else list_of(value):
        if isinstance(item, str):
            yield TextPart(item)
        elif isinstance(item, Mapping) and item.get("type") == RESULT:
            yield _result(item)
        elif isinstance(item, Mapping) and item.get("type") == "text" and isinstance(item.get("text"), str):
            yield TextPart(item["text"])
        elif isinstance(item, Mapping) and isinstance(item.get("parts"), list):
            yield from _contents(item["parts"])
        elif isinstance(item, Mapping) and "type" not in item and isinstance(item.get("text"), str):
            yield TextPart(item["text"])
        elif isinstance(item, Mapping):
            yield OpaquePart(f"{INSIDE}{item.get('type')}", dump(item))


def _result(step: Mapping[str, Any]) -> ToolResultPart:
    """The result of a tool: a text, an object, or contents."""
    result = step.get("result")
    text, contents = result if isinstance(result, str) else "" if result is None else dump(result), None
    if isinstance(result, list):
        texts = [each.get("text") for each in result if isinstance(each, Mapping) and each.get("type") == "text"]
        text = "".join(each for each in texts if isinstance(each, str))
        # A single text needs no copy.
        contents = compact(result) if len(texts) != 1 or len(result) != 1 else None
    return ToolResultPart(word(step.get("call_id")), word(step.get("name")), text, step.get("is_error") is True,
                          contents)


def _tool(declared: Any) -> Tool | None:
    if not isinstance(declared, Mapping) or not isinstance(declared.get("type"), str):
        return None
    if declared["type"] != "function":
        return Tool(declared["type"], kind=CallKind.SERVER, declaration=declared)
    return asking.tool_of(declared, str(declared.get("name") or ""), declared.get("parameters"), declared)


def _choice(value: Any) -> str | None:
    if isinstance(value, str):
        return _MODES.get(value)
    allowed = value.get("allowed_tools") if isinstance(value, Mapping) else None
    if not isinstance(allowed, Mapping):
        return None
    mode, names = _MODES.get(str(allowed.get("mode", "auto"))), allowed.get("tools")
    if mode == "any" and isinstance(names, list) and len(names) == 1:  # the way to force one tool
        return f"tool:{names[0]}"
    return mode


# -- Request -> the body that the Interactions API expects -----------------------------------------------------------
# The history as steps, or its new part.

CHOICES: Mapping[str, str] = {"auto": "auto", "any": "any", "none": "none"}
ASKING_LOSES: Mapping[str, str] = {
    "message.grouping": "the system prompt is one text, and neighbours of the model are steps without a border",
    **asking.usual_losses("reasoning.data", *asking.ITEM_FIELDS, "call.form", "call.status", "call.item_id"),
}


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request."""
    asking.one_choice(request, API)
    system_messages, history = asking.split_system(asking.with_names(asking.with_ids(request.messages)))
    steps = [step for message in history for step in _steps(message)]
    body: dict[str, Any] = non_null(model=request.model)
    if steps or request.continuation_token is None:  # the token alone continues a stored interaction
        text = _only_text(history)
        body["input"] = steps if text is None else text
    system = [_text(part) for message in system_messages for part in message.parts]
    if system:
        body["system_instruction"] = "".join(system)
    choice = asking.tool_choice(request.tool_choice, CHOICES, API,
                                lambda name: {"allowed_tools": {"mode": "any", "tools": [name]}})
    if names := asking.allowed_names(request):
        choice = {"allowed_tools": {"mode": choice, "tools": names}}
    settings = non_null(max_output_tokens=request.max_tokens, tool_choice=choice)
    body |= non_null(
        tools=asking.declarations(request.tools, _write_tool) or None, generation_config=settings or None,
        stream=request.stream or None, background=request.background or None,
        previous_interaction_id=request.previous_id, continuation_token=request.continuation_token,
    )
    return merge(body, request.extra)


def _only_text(history: Sequence[Message]) -> str | None:
    """The prompt, if the history is a single text of the user; else None."""
    parts = [(message.role, part) for message in history for part in message.parts]
    role, part = parts[0] if len(parts) == 1 else (Role.TOOL, None)
    return part.text if type(part) is TextPart and role is Role.USER else None


def _text(part: MessagePart) -> str:
    if type(part) is not TextPart:
        raise EncodeError("a system prompt is text here", api=API, what="system")
    return part.text


def _steps(message: Message) -> Iterator[dict[str, Any]]:
    if message.role in (Role.USER, Role.SYSTEM):
        yield from _user(message.parts)
        return
    for part in message.parts:
        yield _step(part)


def _user(parts: Iterable[MessagePart]) -> Iterator[dict[str, Any]]:
    """The steps of a user's message: each tool result is a step of its own, and all other contents are one step."""
    contents: list[Any] = []
    for part in parts:
        if isinstance(part, ToolResultPart):
            yield _write_result(part)
        else:
            contents.append(_content(part))
    if contents:
        yield {"type": USER, "content": contents}


def _content(part: MessagePart) -> Any:
    if type(part) is TextPart:
        return {"type": "text", "text": part.text}
    if type(part) is OpaquePart:
        return opaque(part, API)
    raise EncodeError(f"a message of the user cannot hold a {type(part).__name__}", api=API, what="user")


def _step(part: MessagePart) -> dict[str, Any]:
    if type(part) is TextPart:
        return {"type": OUTPUT, "content": [{"type": "text", "text": part.text}]}
    if type(part) is ReasoningPart:
        summary = [{"type": "text", "text": part.text}] if part.text else None
        return {"type": THOUGHT, **non_null(summary=summary, signature=part.signature)}
    if isinstance(part, ToolResultPart):
        return _write_result(part)
    if type(part) is OpaquePart:
        if part.type == NOTES:
            raise EncodeError("the sources of a text are not sent back", api=API, what="opaque")
        value = opaque_object(part, API)
        return {"type": OUTPUT, "content": [value]} if part.type.startswith(INSIDE) else value
    assert type(part) is ToolCall  # noqa: S101  (the kinds of parts are a closed list)
    if part.kind is not CallKind.FUNCTION:
        raise asking.refuse(part, API)
    return {"type": CALL, **non_null(id=part.id), "name": part.name, "arguments": asking.arguments(part, API),
            **non_null(signature=part.signature)}


def _write_result(part: ToolResultPart) -> dict[str, Any]:
    value = asking.result_object(part.text) if part.json is None else asking.content(part, API)
    result = part.text if part.json is None and value is None else value  # it may be an object or a text
    failed = {"is_error": True} if part.is_error else {}
    called = {**non_null(name=part.name), "call_id": part.call_id or ""}
    return {"type": RESULT, **called, "result": result, **failed}


def _write_tool(tool: Tool) -> Mapping[str, Any]:
    if tool.kind is CallKind.SERVER:
        return {"type": tool.name}
    if tool.kind is not CallKind.FUNCTION:
        raise EncodeError(f"{tool.name}: there are no free-form tools", api=API, what="custom tool")
    return {"type": "function", "name": tool.name, **asking.describe(tool), **non_null(parameters=tool.schema)}
