"""Ollama generate as data: stop words, paths, what is lost, how its JSON is told from others', what becomes which fact.

Sources: ollama 0.6.3 _types.py (GenerateResponse), the server's llm/server.go (DoneReason), api/types.go, docs/api.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.values import Stop
from loop_core.wire.base import StopRow
from loop_core.wire.reads import FactRow

API = "ollama_generate"
_SERVER = "ollama llm/server.go DoneReason; ollama/ollama#4235"

STOP_REASONS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, _SERVER),
    "length": StopRow(Stop.MAX_TOKENS, None, _SERVER),
    "load": StopRow(Stop.UNKNOWN, "load", _SERVER),
    "unload": StopRow(Stop.UNKNOWN, "unload", _SERVER),
}
"""`length` says num_predict or num_ctx alike; `load` and `unload` answer a request without a prompt."""

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

PATHS: tuple[re.Pattern[str], ...] = (re.compile(r"/api/generate/?(?=$|[?#])"),)


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON value is a line of a generate stream or a whole answer."""
    return not event and isinstance(value.get("response"), str) and isinstance(value.get("done"), bool)


STREAM_READS: tuple[FactRow, ...] = (
    FactRow("text", "/response"),
    FactRow("reasoning", "/thinking"),
)
"""What a stream adds piece by piece; a call comes whole."""
READS: tuple[FactRow, ...] = (
    FactRow("model", "/model"),
    FactRow("usage.input_tokens", "/prompt_eval_count"),
    FactRow("usage.output_tokens", "/eval_count"),
    *STREAM_READS,
    FactRow("call.id", "/tool_calls/*/id"),
    FactRow("call.name", "/tool_calls/*/function/name"),
    FactRow("call.arguments", "/tool_calls/*/function/arguments"),
)
