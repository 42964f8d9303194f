"""What was said, in the conventions' JSON for messages; only where the operator asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from inspector.sessions.values import Exchange
from inspector.telemetry import names
from inspector.telemetry.values import Attribute
from loop_core.arguments import parse
from loop_core.gate import Verdict
from loop_core.values import (
    Message,
    MessagePart,
    OpaquePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolResultPart,
)


def of_answer(exchange: Exchange) -> dict[str, Attribute | None]:
    """The messages of a request, and the answer."""
    asked, response = exchange.request, exchange.response
    said: Mapping[str, Any] = {"role": "assistant", "parts": _parts(response.parts),
                               "finish_reason": response.raw_stop_reason or ""}
    found: dict[str, Attribute | None] = {names.OUTPUT_MESSAGES: _json([said])}
    if asked is not None:
        system = [part for message in asked.messages if message.role is Role.SYSTEM for part in _parts(message.parts)]
        history = [_message(message) for message in asked.messages if message.role is not Role.SYSTEM]
        tools = [{"type": tool.kind.value, "name": tool.name, "description": tool.description,
                  "parameters": tool.schema} for tool in asked.tools]
        found |= {names.SYSTEM_INSTRUCTIONS: _json(system), names.INPUT_MESSAGES: _json(history),
                  names.TOOL_DEFINITIONS: _json(tools)}
    return found


def of_tool(part: ToolResultPart, verdict: Verdict | None) -> dict[str, Attribute | None]:
    """What a tool was asked, as it came, and what it answered."""
    return {names.TOOL_ARGUMENTS: verdict.call.arguments if verdict else None, names.TOOL_RESULT: part.text}


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role.value, "parts": _parts(message.parts)}


def _parts(parts: Iterable[MessagePart]) -> list[dict[str, Any]]:
    return [_part(part) for part in parts]


def _part(part: MessagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "content": part.text}
    if isinstance(part, ReasoningPart):
        return {"type": "reasoning", "content": part.text}
    if isinstance(part, ToolCall):
        value = parse(part.arguments).value  # what was cut stays the text that it is
        return {"type": "tool_call", "id": part.id, "name": part.name,
                "arguments": part.arguments if value is None else value}
    if isinstance(part, OpaquePart):
        return {"type": part.type}
    return {"type": "tool_call_response", "id": part.call_id, "response": part.text}


def _json(value: list[Any]) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value else None
