"""Which values of a Converse body or event become which facts."""

from __future__ import annotations

from loop_core.wire.reads import Row

_INDEX = ("/contentBlockIndex",)
_MESSAGE = "/output/message/content/*"
_BESIDE: tuple[tuple[str, str], ...] = (
    ("usage.input_tokens", "/usage/inputTokens"),
    ("usage.output_tokens", "/usage/outputTokens"),
    ("usage.cached_tokens", "/usage/cacheReadInputTokens"),
    ("model", "/trace/promptRouter/invokedModelId"),
)
_EVENTS: tuple[tuple[str, str, str], ...] = (
    ("contentBlockStart", "call.id", "/start/toolUse/toolUseId"),
    ("contentBlockStart", "call.name", "/start/toolUse/name"),
    ("contentBlockDelta", "text", "/delta/text"),
    ("contentBlockDelta", "reasoning", "/delta/reasoningContent/text"),
    ("contentBlockDelta", "call.arguments", "/delta/toolUse/input"),
)
_BLOCK: tuple[tuple[str, str], ...] = (
    ("text", "/text"),
    ("text", "/citationsContent/content/*/text"),
    ("reasoning", "/reasoningContent/reasoningText/text"),
    ("call.id", "/toolUse/toolUseId"),
    ("call.name", "/toolUse/name"),
    ("call.arguments", "/toolUse/input"),
)
_HOLDERS: tuple[str, ...] = ("", "/metadata")
"""What stands beside the message stands in a body, in a frame that says so by its name, or in a line's only member."""

READS: tuple[Row, ...] = (
    *(Row(fact, holder + place) for holder in _HOLDERS for fact, place in _BESIDE),
    *(Row(fact, place, _INDEX, event) for event, fact, place in _EVENTS),
    *(Row(fact, _MESSAGE + place) for fact, place in _BLOCK),
)
