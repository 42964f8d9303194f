"""What one chunk of a generateContent stream adds to the output."""

from __future__ import annotations

from typing import Any

from loop_core.wire.base import Pieces, See


def deltas(pieces: Pieces) -> See:
    """Keeps the pieces of the first candidate; a call comes whole, so it has none."""
    text, thinking = pieces.text.append, pieces.thinking.append

    def see(event: Any, name: str | None, start: int, end: int) -> None:
        for candidate in event["candidates"]:
            if not candidate.get("index"):
                for part in candidate["content"]["parts"]:
                    if part.get("text"):
                        (thinking if part.get("thought") else text)(part["text"])

    return see
