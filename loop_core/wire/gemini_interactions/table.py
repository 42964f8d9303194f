"""Describes the Interactions format as data: statuses, kinds of steps, event names, paths, fields that cannot be
carried.

Bytes are read in `decode`. Sources: google-genai 3.4.0 (_gaos/types/interactions, _interactions_continuation.py) and
recordings. Before its general availability the API used `outputs` for `steps` and `content.*` for `step.*`; both are
read. The last section says which values become which facts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.values import Request, Stop
from loop_core.wire.asking import ITEM_FIELDS, usual_losses
from loop_core.wire.failures import StopRow
from loop_core.wire.reads import FactRow

API = "gemini_interactions"
_STATUS = "google-genai 3.4.0 _gaos/types/interactions/interaction.py InteractionStatus"
_CONTINUATION = "google-genai 3.4.0 _interactions_continuation.py"

STOP_REASONS: Mapping[str, StopRow] = {
    "completed": StopRow(Stop.END_TURN, None, _STATUS),
    "requires_action": StopRow(Stop.TOOL_CALL, None, _STATUS),
    "incomplete": StopRow(Stop.MAX_TOKENS, None, f"{_STATUS}; @ai-sdk/google 4.0.121 reads it as length"),
    "budget_exceeded": StopRow(Stop.MAX_TOKENS, "budget", _STATUS),
    "failed": StopRow(Stop.ERROR, "fatal", _STATUS),
    "cancelled": StopRow(Stop.CANCELLED, None, _STATUS),
    "queued": StopRow(Stop.PAUSED, "poll", f"{_STATUS}: only background interactions wait"),
    "in_progress": StopRow(Stop.PAUSED, "poll", f"{_STATUS}: it is still being made, and is fetched by its id"),
    "idle": StopRow(Stop.UNKNOWN, "idle", "google-genai 3.6.1 InteractionStatus: nothing says whether it has ended"),
    "requires_continuation": StopRow(Stop.PAUSED, "token", f"{_CONTINUATION}: the limit of one request was reached"),
}

PENDING = frozenset({"queued", "in_progress"})
"""The statuses of an unfinished interaction. Before the last event they say nothing about its end."""
FINISHED = frozenset({"completed", "requires_action"})
"""The statuses under which every call of a whole body is complete."""

BEGINS = frozenset({"interaction.created", "interaction.start"})
UPDATE = "interaction.status_update"
LAST_EVENTS = frozenset({"interaction.completed", "interaction.complete"})
"""The events that hold the last interaction object, whose `status` says how it ended."""
STARTS: Mapping[str, str] = {"step.start": "step", "content.start": "content"}
"""Event that begins a step -> the member that holds the step."""
DELTAS = frozenset({"step.delta", "content.delta"})
STOPS = frozenset({"step.stop", "content.stop"})

CONTENTS = frozenset({"text", "image", "audio", "video", "document", "file"})
"""The types of content in steps of output or input."""
OUTPUT = "model_output"
CALL = "function_call"
MCP_CALL = "mcp_server_tool_call"
"""The type of a step for a call that the provider runs and that has a name, unlike the others of its kind."""
THOUGHT = "thought"
NOTES = "text.annotations"
"""The type of an opaque part that holds the annotations of the text before it."""
INSIDE = f"{OUTPUT}."
"""Prefix of the type of an opaque part for content of the model's output that is not text."""

LOSES: Mapping[str, str] = usual_losses("call.form", "call.status", "call.item_id", *ITEM_FIELDS)

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"/interactions/?(?:$|[?#])"),
    re.compile(r"/interactions/[^/?#:]+(?:/cancel)?/?(?:$|[?#])"),  # fetched or cancelled by id
)


def is_chained(request: Request) -> bool:
    """Whether the server keeps the history, so that each request continues the interaction before it."""
    return request.previous_id is not None or request.background or request.extra.get("store") is True


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON object is an interaction or an event of its stream."""
    if value.get("object") == "interaction":
        return True
    kind = value.get("event_type")
    if not isinstance(kind, str):
        return isinstance(value.get("status"), str) and isinstance(value.get("steps"), list)
    return kind.startswith(("interaction.", "step.", "content.")) or (kind == "error" and "error" in value)


# -- Which values of an interaction, or of an event of its stream, become which facts --------------------------------

_INDEX = ("/index",)
_ONE: tuple[tuple[str, str], ...] = (
    ("id", "/id"),
    ("model", "/model"),
    ("usage.input_tokens", "/usage/total_input_tokens"),
    ("usage.output_tokens", "/usage/total_output_tokens"),
    ("usage.output_tokens", "/usage/total_thought_tokens"),
    ("usage.reasoning_tokens", "/usage/total_thought_tokens"),
    ("usage.cached_tokens", "/usage/total_cached_tokens"),
)
_CONTENT = ("text", "/content/*/text")
_STEP: tuple[tuple[str, str], ...] = (
    ("text", "/text"),
    ("reasoning", "/summary/*/text"),
    ("call.id", "/id"),
    ("call.name", "/name"),
    ("call.arguments", "/arguments"),
)
_DELTA: tuple[tuple[str, str], ...] = (
    ("text", "/delta/text"),
    ("reasoning", "/delta/content/text"),
    ("call.arguments", "/delta/arguments"),
)
_HOLDERS: tuple[str, ...] = ("", "/interaction")
_LISTS: tuple[str, ...] = ("/steps/*", "/outputs/*", "/interaction/steps/*")

STREAM_READS = tuple(FactRow(fact, place, _INDEX) for fact, place in _DELTA)
READS: tuple[FactRow, ...] = (
    FactRow("id", "/interaction_id"),
    *(FactRow(fact, holder + place) for holder in _HOLDERS for fact, place in _ONE),
    *(FactRow(fact, each + place) for each in _LISTS for fact, place in (_CONTENT, *_STEP)),
    *(FactRow(fact, "/step" + place, _INDEX) for fact, place in (_CONTENT, *_STEP)),
    *(FactRow(fact, "/content" + place, _INDEX) for fact, place in _STEP),  # as before general availability
    *STREAM_READS,
)
