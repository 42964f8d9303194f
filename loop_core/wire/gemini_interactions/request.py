"""An Interactions request body -> Request: what was asked, in the field's words.

Reads what a recording holds and never complains: an odd step is kept opaque, an odd member is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.values import (
    At,
    CallKind,
    Message,
    MessagePart,
    OpaquePart,
    Request,
    Role,
    TextPart,
    Tool,
    ToolResultPart,
)
from loop_core.wire.body import rest
from loop_core.wire.gemini_interactions.steps import read_step
from loop_core.wire.gemini_interactions.table import API, CONTENTS, INSIDE, word
from loop_core.wire.jsontext import compact, dump

USER, RESULT = "user_input", "function_result"
_MODES: Mapping[str, str] = {"auto": "auto", "any": "any", "none": "none", "validated": "auto"}
_ROLES: Mapping[str, Role] = {"user": Role.USER, "model": Role.ASSISTANT}
_TAKEN = (
    "model", "input", "system_instruction", "tools", "stream", "previous_interaction_id", "continuation_token",
    "background", "generation_config.max_output_tokens", "generation_config.tool_choice",
)


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """What a recorded request asks for."""
    settings = body.get("generation_config")
    settings = settings if isinstance(settings, Mapping) else {}
    system = tuple(_contents(body.get("system_instruction")))
    model, cap = word(body.get("model")), settings.get("max_output_tokens")
    return Request(
        api=API,
        messages=(*([Message(Role.SYSTEM, system)] if system else []), *_messages(body.get("input"))),
        model=model.rpartition("/")[2] if model else None,
        tools=tuple(tool for declared in _list(body.get("tools")) if (tool := _tool(declared)) is not None),
        tool_choice=_choice(settings.get("tool_choice")),
        max_tokens=cap if type(cap) is int else None,
        stream=body.get("stream") is True,
        previous_id=word(body.get("previous_interaction_id")),
        continuation_token=word(body.get("continuation_token")),
        background=body.get("background") is True,
        extra=rest(body, *_TAKEN),
    )


def _messages(given: Any) -> Iterator[Message]:
    """The history: a text, contents of one message, or steps; neighbours of the model are one message."""
    items = given if isinstance(given, list) else [given]
    said: list[MessagePart] = []
    role = Role.USER
    for item in items:
        # A step is a message of its own; contents that stand alone are one together.
        fresh = isinstance(item, Mapping) and word(item.get("type")) not in CONTENTS
        for who, part in _said(item):
            if who is not role or (fresh and who is Role.USER):
                if said:
                    yield Message(role, tuple(said))
                said, role = [], who
            said.append(part)
            fresh = False
    if said:
        yield Message(role, tuple(said))


def _said(item: Any) -> Iterator[tuple[Role, MessagePart]]:
    if isinstance(item, str):
        yield Role.USER, TextPart(item)
    if not isinstance(item, Mapping):
        return
    kind, turn = word(item.get("type")), _ROLES.get(word(item.get("role")) or "")
    if kind is None and turn is not None:  # a turn, as the API took it at first
        for part in _contents(item.get("content")):
            yield Role.TOOL if type(part) is ToolResultPart else turn, part
    elif kind == USER:
        for part in _contents(item.get("content")):
            yield Role.TOOL if type(part) is ToolResultPart else Role.USER, part
    elif kind == RESULT:
        yield Role.TOOL, _result(item)
    elif kind in CONTENTS:
        for part in _contents(item):
            yield Role.USER, part
    else:
        for made in read_step(item, True, At(), lambda *path: _verbatim(item, path)):
            yield Role.ASSISTANT, made


def _verbatim(value: Any, path: tuple[str | int, ...]) -> str:
    for key in path:
        value = value[key]
    return dump(value)


def _contents(given: Any) -> Iterator[MessagePart]:
    if isinstance(given, str):
        yield TextPart(given)
        return
    for content in [given] if isinstance(given, Mapping) else _list(given):
        if isinstance(content, str):
            yield TextPart(content)
        elif isinstance(content, Mapping) and content.get("type") == RESULT:
            yield _result(content)
        elif isinstance(content, Mapping) and content.get("type") == "text" and isinstance(content.get("text"), str):
            yield TextPart(content["text"])
        elif isinstance(content, Mapping) and isinstance(content.get("parts"), list):
            yield from _contents(content["parts"])
        elif isinstance(content, Mapping) and "type" not in content and isinstance(content.get("text"), str):
            yield TextPart(content["text"])
        elif isinstance(content, Mapping):
            yield OpaquePart(f"{INSIDE}{content.get('type')}", dump(content))


def _result(step: Mapping[str, Any]) -> ToolResultPart:
    """What a tool answered: a text, an object, or contents."""
    given = step.get("result")
    text, kept = given if isinstance(given, str) else "" if given is None else dump(given), None
    if isinstance(given, list):
        texts = [each.get("text") for each in given if isinstance(each, Mapping) and each.get("type") == "text"]
        text = "".join(each for each in texts if isinstance(each, str))
        kept = compact(given) if len(texts) != 1 or len(given) != 1 else None
    return ToolResultPart(word(step.get("call_id")), word(step.get("name")), text, step.get("is_error") is True, kept)


def _tool(declared: Any) -> Tool | None:
    if not isinstance(declared, Mapping) or not isinstance(declared.get("type"), str):
        return None
    if declared["type"] != "function":
        return Tool(declared["type"], kind=CallKind.SERVER, declared=declared)
    schema, described = declared.get("parameters"), declared.get("description")
    return Tool(
        str(declared.get("name") or ""),
        schema if isinstance(schema, dict) else None,
        described if isinstance(described, str) else "",
        declared=declared,
    )


def _choice(given: Any) -> str | None:
    if isinstance(given, str):
        return _MODES.get(given)
    allowed = given.get("allowed_tools") if isinstance(given, Mapping) else None
    if not isinstance(allowed, Mapping):
        return None
    mode, names = _MODES.get(str(allowed.get("mode", "auto"))), allowed.get("tools")
    if mode == "any" and isinstance(names, list) and len(names) == 1:
        return f"tool:{names[0]}"
    return mode


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
