"""Which values of an interaction, or of an event of its stream, become which facts."""

from __future__ import annotations

from loop_core.wire.reads import Row

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

READS: tuple[Row, ...] = (
    Row("id", "/interaction_id"),
    *(Row(fact, holder + place) for holder in _HOLDERS for fact, place in _ONE),
    *(Row(fact, each + place) for each in _LISTS for fact, place in (_CONTENT, *_STEP)),
    *(Row(fact, "/step" + place, _INDEX) for fact, place in (_CONTENT, *_STEP)),
    *(Row(fact, "/content" + place, _INDEX) for fact, place in _STEP),  # as it was before general availability
    *(Row(fact, place, _INDEX) for fact, place in _DELTA),
)
