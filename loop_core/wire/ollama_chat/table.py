"""Ollama chat as data: stop words, paths, fields that cannot be carried, and how its JSON is recognised.

Knows no bytes. Sources: ollama 0.6.3 (_types.py), the server's llm/server.go (DoneReason) and docs/api.md, and the rows
of the project's stop-reason facts that name this API.

Further down: which values become which facts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.values import Stop
from loop_core.wire.base import StopRow
from loop_core.wire.reads import FactRow

API = "ollama_chat"
_SERVER = "ollama llm/server.go DoneReason; ollama/ollama#4235"

STOP_REASONS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, _SERVER),
    "length": StopRow(Stop.MAX_TOKENS, None, _SERVER),
    "load": StopRow(Stop.UNKNOWN, "load", _SERVER),
    "unload": StopRow(Stop.UNKNOWN, "unload", _SERVER),
}
"""`length` says num_predict or num_ctx alike; `load` and `unload` answer a request without messages."""

LOSES: Mapping[str, str] = {
    "id": "a response has no id",
    "call.form": "arguments are sent as an object",
    "call.status": "a call has no status",
    "call.item_id": "a call has one id",
    "call.signature": "calls are not signed",
    "reasoning.signature": "thinking is not signed",
    "reasoning.item_id": "thinking has no id",
    "usage.reasoning_tokens": "eval_count counts thinking and answer together",
    "usage.cached_tokens": "the cache is not counted",
}

PATHS: tuple[re.Pattern[str], ...] = (re.compile(r"/api/chat/?(?=$|[?#])"),)


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON value is a line of a chat stream or a whole answer; its error (one string) does not identify it.
    """
    return not event and isinstance(value.get("message"), dict) and isinstance(value.get("done"), bool)


# -- Which values of a line of an Ollama chat become which facts -----------------------------------------------------

_CALL = "/message/tool_calls/*"

STREAM_READS: tuple[FactRow, ...] = (
    FactRow("text", "/message/content"),
    FactRow("reasoning", "/message/thinking"),
)
"""What a stream adds piece by piece; a call comes whole."""
READS: tuple[FactRow, ...] = (
    FactRow("model", "/model"),
    FactRow("usage.input_tokens", "/prompt_eval_count"),
    FactRow("usage.output_tokens", "/eval_count"),
    *STREAM_READS,
    FactRow("call.id", f"{_CALL}/id"),
    FactRow("call.name", f"{_CALL}/function/name"),
    FactRow("call.arguments", f"{_CALL}/function/arguments"),
)
