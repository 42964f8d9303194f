"""What one event of a Messages stream adds to the output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.wire.base import Delta, Grows

_FIELDS: Mapping[str, tuple[str, Grows]] = {
    "text_delta": ("text", Grows.TEXT),
    "thinking_delta": ("thinking", Grows.THINKING),
    "input_json_delta": ("partial_json", Grows.CALL),
}


def deltas(event: Any, name: str | None = None) -> Iterator[Delta]:
    """The piece of a block."""
    if event.get("type") == "content_block_delta":
        delta = event["delta"]
        row = _FIELDS.get(delta.get("type"))
        if row is not None:
            yield row[1], delta[row[0]]
