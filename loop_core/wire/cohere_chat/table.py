"""Cohere chat as data: stop words, paths, fields that cannot be carried, how its JSON is recognised, which values
become facts.

Sources: cohere 7.3.1 types/chat_finish_reason.py (v2), types/finish_reason.py (v1), the v2 streaming events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.values import Stop
from loop_core.wire.base import StopRow
from loop_core.wire.reads import FactRow

API = "cohere_chat"
_V2 = "cohere 7.3.1 types/chat_finish_reason.py"
_V1 = "cohere 7.3.1 types/finish_reason.py (v1)"

STOP_REASONS: Mapping[str, StopRow] = {
    "COMPLETE": StopRow(Stop.END_TURN, None, _V2),
    "STOP_SEQUENCE": StopRow(Stop.END_TURN, "stop_sequence", _V2),
    "MAX_TOKENS": StopRow(Stop.MAX_TOKENS, None, _V2),
    "TOOL_CALL": StopRow(Stop.TOOL_CALL, None, _V2),
    "ERROR": StopRow(Stop.ERROR, "retryable: server failure under HTTP 200", _V2),
    "TIMEOUT": StopRow(Stop.ERROR, "retryable: timeout", _V2),
    "ERROR_TOXIC": StopRow(Stop.SAFETY_BLOCKED, "toxic", _V1),
    "ERROR_LIMIT": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _V1),
    "USER_CANCEL": StopRow(Stop.CANCELLED, None, _V1),
}

LOSES: Mapping[str, str] = {
    "model": "an answer does not name its model",
    "refusal": "a refusal is ordinary text here",
    "server": "calls that the provider runs are not shown",
    "call.status": "a call has no status",
    "call.item_id": "a call has one id",
    "call.signature": "calls are not signed",
    "reasoning.signature": "thinking is not signed",
    "reasoning.item_id": "thinking has no id",
    "usage.reasoning_tokens": "thinking is not counted apart",
}

PATHS: tuple[re.Pattern[str], ...] = (re.compile(r"/v[12]/chat/?(?:$|[?#])"),)

EVENTS = frozenset({
    "message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start",
    "tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end", "debug",
})
FIRST_EVENTS = frozenset({
    "stream-start", "search-queries-generation", "search-results", "text-generation", "citation-generation",
    "tool-calls-chunk", "tool-calls-generation", "debug", "stream-end",
})
"""The events of `/v1/chat`, named by `event_type`."""


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON value is an event of a stream or a whole response, of either version."""
    kind = value.get("type")
    if isinstance(kind, str) and kind in EVENTS - {"debug"} and event in (None, kind):
        return True
    if event:
        return False
    first = value.get("event_type")
    if isinstance(first, str) and first in FIRST_EVENTS:
        return "is_finished" in value
    if isinstance(value.get("generation_id"), str) and isinstance(value.get("text"), str):
        return True
    message = value.get("message")
    return isinstance(message, dict) and isinstance(value.get("finish_reason"), str) and "choices" not in value


# -- Which values become which facts ---------------------------------------------------------------------------------

_INDEX = ("/index",)
_CALL = "/delta/message/tool_calls"

STREAM_READS: tuple[FactRow, ...] = (
    FactRow("text", "/delta/message/content/text", _INDEX, "content-delta"),
    FactRow("reasoning", "/delta/message/content/thinking", _INDEX, "content-delta"),
    FactRow("reasoning", "/delta/message/tool_plan", (), "tool-plan-delta"),
    FactRow("call.id", f"{_CALL}/id", _INDEX, "tool-call-start"),
    FactRow("call.name", f"{_CALL}/function/name", _INDEX, "tool-call-start"),
    FactRow("call.arguments", f"{_CALL}/function/arguments", _INDEX, "tool-call-start"),
    FactRow("call.arguments", f"{_CALL}/function/arguments", _INDEX, "tool-call-delta"),
    FactRow("text", "/text"),
)
"""What a stream adds piece by piece; the last row is the first version's, whole too."""
READS: tuple[FactRow, ...] = (
    FactRow("id", "/id"),
    FactRow("id", "/generation_id"),
    *(FactRow(f"usage.{name}", f"{holder}/{kind}/{name}")
      for holder in ("/usage", "/delta/usage", "/meta", "/response/meta") for kind in ("tokens", "billed_units")
      for name in ("input_tokens", "output_tokens")),
    FactRow("usage.cached_tokens", "/usage/cached_tokens"),
    FactRow("usage.cached_tokens", "/delta/usage/cached_tokens"),
    *STREAM_READS,
    FactRow("text", "/message/content/*/text"),
    FactRow("reasoning", "/message/content/*/thinking"),
    FactRow("reasoning", "/message/tool_plan"),
    FactRow("call.id", "/message/tool_calls/*/id"),
    FactRow("call.name", "/message/tool_calls/*/function/name"),
    FactRow("call.arguments", "/message/tool_calls/*/function/arguments"),
    FactRow("call.name", "/tool_calls/*/name"),
    FactRow("call.arguments", "/tool_calls/*/parameters"),
)
