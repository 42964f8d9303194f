"""What one event of a chat completion stream adds to the output: the pieces, in the order in which they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loop_core.wire.base import Delta, Grows
from loop_core.wire.openai_chat.table import REASONING_FIELDS


def deltas(event: Any, name: str | None = None) -> Iterator[Delta]:
    """The pieces of the first choice."""
    for choice in event.get("choices") or ():
        if choice.get("index"):
            continue
        delta = choice.get("delta") or {}
        thought = next((text for field in REASONING_FIELDS if (text := delta.get(field))), None)
        if thought:
            yield Grows.THINKING, thought
        if delta.get("content"):
            yield Grows.TEXT, delta["content"]
        for call in delta.get("tool_calls") or ():
            holder = call.get("function") or call.get("custom") or {}
            yield Grows.CALL, holder.get("arguments") or holder.get("input") or ""
