"""Reads an answer from the chunks of a stream that a recorder stores in addition to its own version of the answer.

MLflow itself builds the answer of a streamed Chat Completion: its stop word is `stop` if the last chunk has only the
usage, and the calls are missing. The chunks, in events of the span (`mlflow.chunk.item.N`), are those that the client
received. Source: MLflow 3.17 `openai/autolog.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.importers.span_answers import OUTPUT
from inspector.sessions.importers.stored_bodies import frame_lines
from loop_core.errors import DecodeError
from loop_core.values import ReasoningPart, TextPart, ToolCall
from loop_core.wire import decode_response

CHUNK = "mlflow.chunk.value"
"""The attribute of an event with one chunk as JSON."""


def answer_of_chunks(chunks: Sequence[str]) -> dict[str, Any]:
    """The answer in chunks, under the names of the conventions; empty if their API is unknown."""
    body = "".join(f"data: {line}\n\n" for line in frame_lines(chunks)).encode("utf-8", "replace")
    api = traffic.by_content(body) if chunks else None
    if api is None:
        return {}
    try:
        response = decode_response(api, body)
    except DecodeError:
        return {}
    parts: list[dict[str, Any]] = []
    for part in response.parts:
        if isinstance(part, ToolCall):
            parts.append({"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments})
        elif isinstance(part, (TextPart, ReasoningPart)):
            parts.append({"type": "text" if isinstance(part, TextPart) else "reasoning", "content": part.text})
    message = {"role": "assistant", "parts": parts,
               "finish_reason": response.raw_stop_reason if response.saw_stop_reason else None}
    counts = response.usage
    named = {} if counts is None else {
        "gen_ai.usage.input_tokens": counts.input_tokens, "gen_ai.usage.output_tokens": counts.output_tokens}
    return {OUTPUT: [message], **{name: count for name, count in named.items() if count is not None}}
