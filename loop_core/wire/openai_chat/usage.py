"""Token counts of Chat Completions and its relatives <-> `Usage`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loop_core.values import Usage

_CACHED: tuple[tuple[str, ...], ...] = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cached_tokens",),  # Moonshot
    ("cache_read_input_tokens",),  # gateways before Anthropic
)
_REASONING: tuple[tuple[str, ...], ...] = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("reasoning_tokens",),
)


def read_usage(counts: Mapping[str, Any]) -> Usage | None:
    """The counts, reasoning included in the output; None where the object holds none.

    A server whose total is prompt + completion + reasoning (xAI) leaves reasoning out of `completion_tokens`.
    """
    prompt, completion = _count(counts, ("prompt_tokens",)), _count(counts, ("completion_tokens",))
    total = _count(counts, ("total_tokens",))
    reasoning, cached = _first(counts, _REASONING), _first(counts, _CACHED)
    if prompt is None and completion is None and reasoning is None and cached is None:
        return None
    if reasoning and completion is not None and prompt is not None and prompt + completion + reasoning == total:
        completion += reasoning
    return Usage(prompt, completion, reasoning, cached)


def write_usage(usage: Usage) -> dict[str, Any]:
    """The `usage` object that says the same."""
    counts: dict[str, Any] = {}
    if usage.input_tokens is not None:
        counts["prompt_tokens"] = usage.input_tokens
    if usage.output_tokens is not None:
        counts["completion_tokens"] = usage.output_tokens
    if usage.input_tokens is not None and usage.output_tokens is not None:
        counts["total_tokens"] = usage.input_tokens + usage.output_tokens
    if usage.cached_tokens is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.reasoning_tokens is not None:
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return counts


def _first(counts: Mapping[str, Any], places: tuple[tuple[str, ...], ...]) -> int | None:
    return next((found for place in places if (found := _count(counts, place)) is not None), None)


def _count(counts: Mapping[str, Any], place: tuple[str, ...]) -> int | None:
    value: Any = counts
    for key in place:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int else None
