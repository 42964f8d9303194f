"""What of a response or a request must survive a round trip through a format: everything that it can carry.

Evidence, offsets, findings, sizes and transport facts tell of one set of bytes, so they are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from loop_core.values import (
    CallKind,
    ChatResponse,
    MessagePart,
    OpaquePart,
    ReasoningPart,
    Request,
    TextPart,
    ToolResultPart,
)


def essence(response: ChatResponse, loses: Collection[str] = ()) -> dict[str, Any]:
    """A plain comparable value; names in `loses` are left out (for parts: `call.id`, `reasoning.signature`, …)."""
    whole: dict[str, Any] = {
        "stop": response.stop_reason.normalized.value,
        "raw": response.stop_reason.raw,
        "detail": response.stop_reason.detail,
        "id": response.id,
        "model": response.model,
        "refusal": response.refusal,
        "error": response.error,
        "usage": response.usage,
        "native": dict(response.native),
        "continuation_token": response.continuation_token,
        "parts": [value for part in response.parts if (value := _part(part, loses)) is not None],
    }
    if response.usage is not None:
        counts = response.usage
        whole["usage"] = {
            "input_tokens": counts.input_tokens,
            "output_tokens": counts.output_tokens,
            "reasoning_tokens": counts.reasoning_tokens,
            "cached_tokens": counts.cached_tokens,
        }
        whole["usage"] = {name: count for name, count in whole["usage"].items() if f"usage.{name}" not in loses}
    return {name: value for name, value in whole.items() if name not in loses}


def request_essence(request: Request, loses: Collection[str] = ()) -> dict[str, Any]:
    """The same for a request. Under `message.grouping` a history is its parts, each with who says it; under
    `text.grouping` texts of one message that follow each other are one."""
    names = ("api", "model", "tool_choice", "max_tokens", "stream", "n", "previous_id", "continuation_token",
             "background")
    whole: dict[str, Any] = {name: getattr(request, name) for name in names}
    whole["extra"] = dict(request.extra)
    whole["tools"] = [(tool.name, tool.schema, tool.description, tool.kind, tool.dialect) for tool in request.tools]
    whole["messages"] = [
        (message.role.value, [value for part in parts if (value := _part(part, loses)) is not None])
        for message in request.messages
        for parts in [_one_text(message.parts) if "text.grouping" in loses else message.parts]
    ]
    if "message.grouping" in loses:
        whole["messages"] = [("tool" if part["kind"] == "result" else role, part)
                             for role, parts in whole["messages"] for part in parts]
    return {name: value for name, value in whole.items() if name not in loses}


def _one_text(parts: Sequence[MessagePart]) -> Sequence[MessagePart]:
    made: list[MessagePart] = []
    for part in parts:
        if made and type(part) is TextPart and type(last := made[-1]) is TextPart:
            made[-1] = TextPart(last.text + part.text)
        else:
            made.append(part)
    return made


def _part(part: MessagePart, loses: Collection[str]) -> dict[str, Any] | None:
    if type(part) is TextPart:
        value: dict[str, Any] = {"text": part.text, "phase": part.phase}
        kind = "text"
        if not part.text:
            return None
    elif type(part) is ReasoningPart:
        value = {name: getattr(part, name) for name in ("text", "signature", "data", "item_id", "json")}
        kind = "reasoning"
    elif type(part) is OpaquePart:
        value, kind = {"type": part.type, "json": part.json}, "opaque"
    elif isinstance(part, ToolResultPart):
        value = {name: getattr(part, name) for name in ("call_id", "name", "text", "is_error", "json")}
        kind = "result"
    else:
        call = part
        kind = "server" if call.kind is CallKind.SERVER else "call"  # type: ignore[union-attr]
        value = {
            name: getattr(call, name)
            for name in ("id", "name", "arguments", "closed", "kind", "form", "status", "item_id", "signature")
        }
    if kind in loses:
        return None
    return {"kind": kind, **{name: v for name, v in value.items() if f"{kind}.{name}" not in loses}}
