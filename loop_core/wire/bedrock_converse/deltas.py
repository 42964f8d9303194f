"""What one frame of a Converse stream adds to the output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loop_core.wire.base import Delta, Grows
from loop_core.wire.bedrock_converse.table import unwrapped


def deltas(event: Any, name: str | None = None) -> Iterator[Delta]:
    """The piece of a block."""
    if name is None:
        name, event = unwrapped(event)
    if name != "contentBlockDelta":
        return
    delta = event["delta"]
    if "text" in delta:
        yield Grows.TEXT, delta["text"]
    elif "text" in delta.get("reasoningContent", ()):
        yield Grows.THINKING, delta["reasoningContent"]["text"]
    elif "input" in delta.get("toolUse", ()):
        yield Grows.CALL, delta["toolUse"]["input"]
