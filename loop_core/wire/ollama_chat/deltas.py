"""What one line of an Ollama stream adds to the output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loop_core.wire.base import Delta, Grows


def deltas(event: Any, name: str | None = None) -> Iterator[Delta]:
    """The pieces of a line; a call comes whole, so it has none."""
    message = event.get("message") or {}
    if message.get("thinking"):
        yield Grows.THINKING, message["thinking"]
    if message.get("content"):
        yield Grows.TEXT, message["content"]
