"""What one event of an Interactions stream adds to the output."""

from __future__ import annotations

from typing import Any

from loop_core.wire.base import Pieces, See
from loop_core.wire.gemini_interactions.table import DELTAS


def deltas(pieces: Pieces) -> See:
    """Keeps the pieces of text, of thoughts and of the arguments of calls."""
    text, thinking, call = pieces.text.append, pieces.thinking.append, pieces.call.append

    def see(event: Any, name: str | None, start: int, end: int) -> None:
        if (event.get("event_type") or name) in DELTAS:
            delta = event["delta"]
            kind = delta["type"]
            if kind == "text":
                text(delta["text"])
            elif kind == "arguments_delta":
                call(delta["arguments"])
            elif kind == "thought_summary":
                thinking(delta["content"]["text"])

    return see
