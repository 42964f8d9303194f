"""What one event of a chat completion stream adds to the output."""

from __future__ import annotations

from typing import Any

from loop_core.wire.base import Pieces, See
from loop_core.wire.openai_chat.table import REASONING_FIELDS


def deltas(pieces: Pieces) -> See:
    """Keeps the pieces of the first choice."""
    text, thinking, call = pieces.text.append, pieces.thinking.append, pieces.call.append

    def see(event: Any, name: str | None, start: int, end: int) -> None:
        for choice in event["choices"]:
            if choice.get("index"):
                continue
            delta = choice["delta"]
            if delta.get("content"):
                text(delta["content"])
                if len(delta) == 1:
                    return  # nearly all of them
            thought = next((delta[field] for field in REASONING_FIELDS if delta.get(field)), None)
            if thought:
                thinking(thought)
            for each in delta.get("tool_calls") or ():
                holder = each.get("function") or each.get("custom") or {}
                call(holder.get("arguments") or holder.get("input") or "")

    return see
