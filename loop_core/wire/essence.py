"""What of a response must survive a round trip through a format: everything that the format can carry.

Evidence, offsets, findings, sizes and transport facts tell of one set of bytes, so they are left out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from loop_core.values import CallKind, ChatResponse, OpaquePart, ReasoningPart, ResponsePart, TextPart


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


def _part(part: ResponsePart, loses: Collection[str]) -> dict[str, Any] | None:
    if type(part) is TextPart:
        return {"kind": "text", "text": part.text} if part.text else None
    if type(part) is ReasoningPart:
        value: dict[str, Any] = {name: getattr(part, name) for name in ("text", "signature", "data", "item_id")}
        kind = "reasoning"
    elif type(part) is OpaquePart:
        value, kind = {"type": part.type, "json": part.json}, "opaque"
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
