"""Which values of a generateContent body or chunk become which facts, in either spelling."""

from __future__ import annotations

from collections.abc import Iterator

from loop_core.wire.gemini_generate.table import SNAKE
from loop_core.wire.reads import Row

_CANDIDATE = ("/candidates/*/index",)
_PART = "/candidates/*/content/parts/*"
_THOUGHT = f"{_PART}/thought"
_ONE: tuple[tuple[str, str], ...] = (
    ("id", "/responseId"),
    ("model", "/modelVersion"),
    ("error", "/error"),
    ("usage.input_tokens", "/usageMetadata/promptTokenCount"),
    ("usage.output_tokens", "/usageMetadata/candidatesTokenCount"),
    ("usage.output_tokens", "/usageMetadata/thoughtsTokenCount"),
    ("usage.reasoning_tokens", "/usageMetadata/thoughtsTokenCount"),
    ("usage.cached_tokens", "/usageMetadata/cachedContentTokenCount"),
)
_CALL: tuple[tuple[str, str], ...] = (
    ("call", "/functionCall"),
    ("call.id", "/functionCall/id"),
    ("call.name", "/functionCall/name"),
    ("call.arguments", "/functionCall/args"),
    ("call.value", "/functionCall/partialArgs/*/stringValue"),
    ("call.value", "/functionCall/partialArgs/*/numberValue"),
    ("call.value", "/functionCall/partialArgs/*/boolValue"),
    ("call.value", "/functionCall/partialArgs/*/nullValue"),
)


def _spellings(pattern: str) -> Iterator[str]:
    """The pattern with the names of JSON, and with those of protocol buffers where they differ."""
    yield pattern
    other = "/".join(SNAKE.get(step, step) for step in pattern.split("/"))
    if other != pattern:
        yield other


READS: tuple[Row, ...] = (
    *(Row(fact, way) for fact, place in _ONE for way in _spellings(place)),
    Row("text", f"{_PART}/text", _CANDIDATE, only=(_THOUGHT, False)),
    Row("reasoning", f"{_PART}/text", _CANDIDATE, only=(_THOUGHT, True)),
    *(Row(fact, way, _CANDIDATE) for fact, place in _CALL for way in _spellings(_PART + place)),
)
