"""What one chunk of a generateContent stream adds to the output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loop_core.wire.base import Delta, Grows


def deltas(event: Any, name: str | None = None) -> Iterator[Delta]:
    """The pieces of the first candidate; a call comes whole, so it has none."""
    for candidate in event.get("candidates") or ():
        if candidate.get("index"):
            continue
        for part in (candidate.get("content") or {}).get("parts") or ():
            if part.get("text"):
                yield (Grows.THINKING if part.get("thought") else Grows.TEXT), part["text"]
