"""What one event of a Responses stream adds to the output."""

from __future__ import annotations

from typing import Any

from loop_core.wire.base import Pieces, See
from loop_core.wire.openai_responses.table import DELTAS


def deltas(pieces: Pieces) -> See:
    """Keeps the piece of a delta event; a refusal is no output that could be cut."""
    fields = {"text": pieces.text, "summary": pieces.thinking, "reasoning": pieces.thinking, "arguments": pieces.call,
              "input": pieces.call}
    adds = {event: fields[field].append for event, (field, _) in DELTAS.items() if field in fields}

    def see(event: Any, name: str | None, start: int, end: int) -> None:
        add = adds.get(event["type"])
        if add is not None:
            add(event["delta"])

    return see
