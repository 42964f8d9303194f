"""Which values of a Messages body or event become which facts."""

from __future__ import annotations

from loop_core.wire.reads import Row

_INDEX = ("/index",)
_COUNTS: tuple[tuple[str, str], ...] = (
    ("usage.input_tokens", "/usage/input_tokens"),
    ("usage.output_tokens", "/usage/output_tokens"),
    ("usage.reasoning_tokens", "/usage/output_tokens_details/thinking_tokens"),
    ("usage.cached_tokens", "/usage/cache_read_input_tokens"),
)
_MESSAGE: tuple[tuple[str, str], ...] = (
    ("id", "/id"), ("model", "/model"), ("refusal", "/stop_details/explanation"), *_COUNTS,
)
_BLOCK: tuple[tuple[str, str], ...] = (
    ("text", "/text"),
    ("reasoning", "/thinking"),
    ("call.id", "/id"),
    ("call.name", "/name"),
    ("call.arguments", "/input"),
)
_DELTA: tuple[tuple[str, str], ...] = (
    ("text", "/text"),
    ("reasoning", "/thinking"),
    ("call.arguments", "/partial_json"),
)
_HOLDERS: tuple[str, ...] = ("", "/message")
"""Where a message stands: the whole body, or its beginning in `message_start`."""

READS: tuple[Row, ...] = (
    Row("error", "/error"),
    Row("refusal", "/delta/stop_details/explanation"),
    *(Row(fact, holder + place) for holder in _HOLDERS for fact, place in _MESSAGE),
    *(Row(fact, f"{holder}/content/*{place}") for holder in _HOLDERS for fact, place in _BLOCK),
    *(Row(fact, f"/content_block{place}", _INDEX) for fact, place in _BLOCK),
    *(Row(fact, f"/delta{place}", _INDEX) for fact, place in _DELTA),
)
