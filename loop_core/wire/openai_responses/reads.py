"""Which values of a Responses body or event become which facts.

What an event repeats as a whole stands in a group of its own: it is a repetition, or all there is.
"""

from __future__ import annotations

from loop_core.wire.openai_responses.table import DELTAS, DONES
from loop_core.wire.reads import Row

_FACTS = {"text": "text", "refusal": "refusal", "summary": "reasoning", "reasoning": "reasoning",
          "arguments": "call.arguments", "input": "call.arguments"}
"""Field of an item -> the fact it becomes."""
_HOLDERS: tuple[str, ...] = ("", "/response")
"""Where a response stands: the whole body, or an event."""
_RESPONSE: tuple[tuple[str, str], ...] = (
    ("id", "/id"),
    ("model", "/model"),
    ("error", "/error"),
    ("stop_reason", "/status"),
    ("usage.input_tokens", "/usage/input_tokens"),
    ("usage.output_tokens", "/usage/output_tokens"),
    ("usage.reasoning_tokens", "/usage/output_tokens_details/reasoning_tokens"),
    # A server may count thinking apart; then both make the output.
    ("usage.output_tokens", "/usage/output_tokens_details/reasoning_tokens"),
    ("usage.cached_tokens", "/usage/input_tokens_details/cached_tokens"),
)
_ITEMS: tuple[str, ...] = ("/item", "/output/*", "/response/output/*")
_ITEM: tuple[tuple[str, str], ...] = (
    ("text", "/content"),
    ("text", "/content/*/text"),
    ("refusal", "/content/*/refusal"),
    ("reasoning", "/content/*/text"),
    ("reasoning", "/content"),
    ("reasoning", "/summary/*/text"),
    ("reasoning", "/summary"),
    ("call.id", "/call_id"),
    ("call.id", "/id"),
    ("call.name", "/name"),
    ("call.arguments", "/arguments"),
    ("call.arguments", "/input"),
    ("call.arguments", ""),
)
"""The last row: the tools that a provider names by the type of their item have all of it as their payload."""


def _index(field: str, name: str) -> tuple[str, ...]:
    """Every part of a message is a part of the answer; all parts of a thought are one."""
    return ("/output_index", f"/{name}") if field in ("text", "refusal") else ("/output_index",)


READS: tuple[Row, ...] = (
    *(Row(_FACTS[field], "/delta", _index(field, name), kind, field) for kind, (field, name) in DELTAS.items()),
    *(Row(_FACTS[field], f"/{value}", _index(field, name), kind, f"{field} done")
      for kind, (field, name, value) in DONES.items()),
    *(Row(fact, holder + place) for holder in _HOLDERS for fact, place in _RESPONSE),
    *(Row(fact, item + place, group=item + place) for item in _ITEMS for fact, place in _ITEM),
)
