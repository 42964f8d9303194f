"""Describes Bedrock Converse as data: stop words, event names, paths, fields that cannot be carried, and how its JSON
is recognised.

Bytes are read in `decode`. Sources: botocore 1.44.5 (bedrock-runtime/2023-09-30/service-2.json: StopReason,
ConverseStreamOutput, ContentBlock), recorded traffic, and the rows of the project's stop-reason facts that name this
API.

The last section says which values become which facts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.values import Stop
from loop_core.wire.asking import CALL_FIELDS, ITEM_FIELDS, SERVER_FIELDS, usual_losses
from loop_core.wire.failures import StopRow
from loop_core.wire.reads import FactRow

API = "bedrock_converse"
_MODEL = "botocore 1.44.5 bedrock-runtime service-2.json StopReason"

STOP_REASONS: Mapping[str, StopRow] = {
    "end_turn": StopRow(Stop.END_TURN, None, _MODEL),
    "stop_sequence": StopRow(Stop.END_TURN, None, _MODEL),
    "tool_use": StopRow(Stop.TOOL_CALL, None, _MODEL),
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, _MODEL),
    "model_context_window_exceeded": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _MODEL),
    "guardrail_intervened": StopRow(Stop.SAFETY_BLOCKED, "guardrail", _MODEL),
    "content_filtered": StopRow(Stop.SAFETY_BLOCKED, "content_filter", _MODEL),
    "malformed_tool_use": StopRow(Stop.MALFORMED_TOOL_CALL, None, _MODEL),
    "malformed_model_output": StopRow(Stop.ERROR, "retryable: model output malformed", _MODEL),
}

LOSES: Mapping[str, str] = {
    "id": "the request id is an HTTP header",
    "model": "the model stands in the URL; only a prompt router names it in the body",
    "refusal": "there is no text of refusal beside the content",
    "usage.reasoning_tokens": "TokenUsage does not count reasoning apart",
    **usual_losses(*CALL_FIELDS, *SERVER_FIELDS, *ITEM_FIELDS),
}

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"/model/(?P<model>[^/?#]+)/converse(?P<stream>-stream)?/?(?=$|[?#])"),
)

EVENTS = frozenset({
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata",
})

COUNTED = frozenset({"usage", "metrics", "trace"})
"""The members of the event `metadata`; each such event has at least one."""

FIELDS = ".fields"
"""Suffix of the type of an opaque part that holds further fields of the block before it: `citationsContent.fields`."""

SERVER_TOOL = "server_tool_use"
"""The value of `toolUse.type` in a call that the provider runs (botocore 1.44.5 ToolUseType)."""


def unwrap(event: Mapping[str, Any]) -> tuple[str | None, Any]:
    """Name and content of an event written as one object, `{"messageStart": {...}}`; (None, event) for any other."""
    if len(event) == 1:  # how proxies and logs write frames, without their headers
        ((name, content),) = event.items()
        if isinstance(content, dict) and (name in EVENTS or name.endswith("Exception")):
            return name, content
    return None, event


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON value is a Converse body or an event of its stream; `event` is the `:event-type`."""
    if "contentBlockIndex" in value:  # no other format's events have this member
        return True
    output = value.get("output")
    if isinstance(output, dict):
        return isinstance(output.get("message"), dict)
    name, content = (event, value) if event in EVENTS else unwrap(value)
    # LangGraph's streams begin with an event `metadata` of their own
    return name in EVENTS and (name != "metadata" or not COUNTED.isdisjoint(content))


# -- Which values of a Converse body or event become which facts -----------------------------------------------------

_INDEX = ("/contentBlockIndex",)
_MESSAGE = "/output/message/content/*"
_METADATA: tuple[tuple[str, str], ...] = (
    ("usage.input_tokens", "/usage/inputTokens"),
    ("usage.output_tokens", "/usage/outputTokens"),
    ("usage.cached_tokens", "/usage/cacheReadInputTokens"),
    ("usage.cache_write_tokens", "/usage/cacheWriteInputTokens"),
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
"""The JSON pointers of the object that holds usage and model: a whole body or the `metadata` frame, or the only member
of a JSON line."""

STREAM_READS = tuple(FactRow(fact, place, _INDEX, event) for event, fact, place in _EVENTS)
READS: tuple[FactRow, ...] = (
    *(FactRow(fact, holder + place) for holder in _HOLDERS for fact, place in _METADATA),
    *STREAM_READS,
    *(FactRow(fact, _MESSAGE + place) for fact, place in _BLOCK),
)
