"""What one event of a Messages stream adds to the output."""

from __future__ import annotations

from typing import Any

from loop_core.wire.base import Pieces, See


def deltas(pieces: Pieces) -> See:
    """Keeps the piece of a block."""
    rows = {
        "text_delta": ("text", pieces.text.append),
        "thinking_delta": ("thinking", pieces.thinking.append),
        "input_json_delta": ("partial_json", pieces.call.append),
    }

    def see(event: Any, name: str | None, start: int, end: int) -> None:
        if event["type"] == "content_block_delta":
            delta = event["delta"]
            row = rows.get(delta["type"])
            if row is not None:
                row[1](delta[row[0]])

    return see
