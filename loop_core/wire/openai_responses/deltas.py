"""What one event of a Responses stream adds to the output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.wire.base import Delta, Grows
from loop_core.wire.openai_responses.table import DELTAS

_GROWS: Mapping[str, Grows] = {
    "text": Grows.TEXT, "summary": Grows.THINKING, "reasoning": Grows.THINKING, "arguments": Grows.CALL,
    "input": Grows.CALL,
}


def deltas(event: Any, name: str | None = None) -> Iterator[Delta]:
    """The piece of a delta event; a refusal is no output that could be cut."""
    field = DELTAS.get(event.get("type"), ("", ""))[0]
    if field in _GROWS:
        yield _GROWS[field], event["delta"]
