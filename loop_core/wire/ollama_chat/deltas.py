"""What one line of an Ollama stream adds to the output."""

from __future__ import annotations

from typing import Any

from loop_core.wire.base import Pieces, See


def deltas(pieces: Pieces) -> See:
    """Keeps the pieces of a line; a call comes whole, so it has none."""
    text, thinking = pieces.text.append, pieces.thinking.append

    def see(event: Any, name: str | None, start: int, end: int) -> None:
        message = event["message"]
        piece = message["content"]
        if piece:
            text(piece)
        if "thinking" in message:
            thinking(message["thinking"])

    return see
