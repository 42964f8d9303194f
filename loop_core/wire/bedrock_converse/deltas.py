"""What one frame of a Converse stream adds to the output."""

from __future__ import annotations

from typing import Any

from loop_core.wire.base import Pieces, See
from loop_core.wire.bedrock_converse.table import unwrapped


def deltas(pieces: Pieces) -> See:
    """Keeps the piece of a block."""
    text, thinking, call = pieces.text.append, pieces.thinking.append, pieces.call.append

    def see(event: Any, name: str | None, start: int, end: int) -> None:
        if name is None:
            name, event = unwrapped(event)
        if name != "contentBlockDelta":
            return
        delta = event["delta"]
        if "text" in delta:
            text(delta["text"])
        elif "toolUse" in delta:
            call(delta["toolUse"]["input"])
        elif "reasoningContent" in delta and "text" in delta["reasoningContent"]:
            thinking(delta["reasoningContent"]["text"])

    return see
