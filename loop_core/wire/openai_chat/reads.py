"""Which values of a Chat Completions body or chunk become which facts."""

from __future__ import annotations

from loop_core.wire.openai_chat.table import BODY_WORDS, CHOICE_WORDS
from loop_core.wire.reads import Row

_CHOICE = ("/choices/*/index",)
_BESIDE: tuple[Row, ...] = (
    Row("id", "/id"),
    Row("model", "/model"),
    Row("error", "/error"),
    Row("error", "/choices/*/error"),
    *(Row(f"native.{name}", f"/choices/*/{name}") for name in CHOICE_WORDS),
    *(Row(f"native.{name}", f"/{name}") for name in BODY_WORDS),
)
_COUNTS: tuple[tuple[str, str], ...] = (
    ("usage.input_tokens", "/prompt_tokens"),
    ("usage.output_tokens", "/completion_tokens"),
    ("usage.reasoning_tokens", "/completion_tokens_details/reasoning_tokens"),
    ("usage.reasoning_tokens", "/reasoning_tokens"),
    # A server may count thinking apart; then both make the output.
    ("usage.output_tokens", "/completion_tokens_details/reasoning_tokens"),
    ("usage.output_tokens", "/reasoning_tokens"),
    ("usage.cached_tokens", "/prompt_tokens_details/cached_tokens"),
    ("usage.cached_tokens", "/prompt_cache_hit_tokens"),
    ("usage.cached_tokens", "/cached_tokens"),
    ("usage.cached_tokens", "/cache_read_input_tokens"),
)
_USAGES: tuple[str, ...] = ("/usage", "/x_groq/usage", "/choices/*/usage")
_SAID: tuple[tuple[str, str, str], ...] = (
    ("text", "/content", ""),
    ("text", "/content/*", ""),
    ("text", "/content/*/text", ""),
    ("text", "/content/text", ""),
    ("reasoning", "/reasoning_content", "reasoning_content"),
    ("reasoning", "/reasoning", "reasoning"),
    ("reasoning", "/reasoning_text", "reasoning_text"),
    ("reasoning", "/content/*/thinking", "content"),
    ("reasoning", "/content/*/thinking/*/text", "content"),
    ("refusal", "/refusal", ""),
    ("refusal", "/content/*/refusal", ""),
)
"""Fact, place in a message, group: servers write the same thinking into several fields."""
_DETAILS: tuple[str, ...] = ("text", "summary")
"""Fields of a block of `reasoning_details`."""
_CALLED: tuple[tuple[str, str], ...] = (
    ("call.id", "/id"),
    ("call.name", "/function/name"),
    ("call.arguments", "/function/arguments"),
    ("call.name", "/custom/name"),
    ("call.arguments", "/custom/input"),
)
_LEGACY: tuple[tuple[str, str], ...] = (
    ("call.name", "/function_call/name"),
    ("call.arguments", "/function_call/arguments"),
)
_HOLDERS: tuple[str, ...] = ("delta", "message")


def _held(holder: str) -> tuple[Row, ...]:
    at = f"/choices/*/{holder}"
    block = f"{at}/reasoning_details/*"
    return (
        *(Row(fact, at + place, _CHOICE, "", holder + group) for fact, place, group in _SAID),
        *(Row("reasoning", f"{block}/{field}", (*_CHOICE, f"{block}/index"), "", f"{holder} blocks")
          for field in _DETAILS),
        *(Row(fact, f"{at}/tool_calls/*{place}", (*_CHOICE, f"{at}/tool_calls/*/index"), "", holder)
          for fact, place in _CALLED),
        *(Row(fact, f"{at}/tool_calls{place}", _CHOICE, "", f"{holder} object") for fact, place in _CALLED),
        *(Row(fact, at + place, _CHOICE, "", f"{holder} legacy") for fact, place in _LEGACY),
    )


READS: tuple[Row, ...] = (
    *_BESIDE,
    *(Row(fact, usage + place) for usage in _USAGES for fact, place in _COUNTS),
    *(row for holder in _HOLDERS for row in _held(holder)),
)
