"""Which values of a line of an Ollama chat become which facts."""

from __future__ import annotations

from loop_core.wire.reads import Row

_CALL = "/message/tool_calls/*"

READS: tuple[Row, ...] = (
    Row("model", "/model"),
    Row("usage.input_tokens", "/prompt_eval_count"),
    Row("usage.output_tokens", "/eval_count"),
    Row("text", "/message/content"),
    Row("reasoning", "/message/thinking"),
    Row("call.id", f"{_CALL}/id"),
    Row("call.name", f"{_CALL}/function/name"),
    Row("call.arguments", f"{_CALL}/function/arguments"),
)
