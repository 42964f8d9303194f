"""InvokeModel as data: stop words of all makers, paths, bodies that are one text, which values become which facts.

Claude's bodies are those of Messages and Nova's those of Converse, with the words of these formats. The other makers'
are in AWS's guide to "Inference request parameters and response fields for foundation models".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from loop_core.values import Stop
from loop_core.wire.anthropic_messages.table import LOSES as MESSAGES_LOSES
from loop_core.wire.anthropic_messages.table import READS as MESSAGES_READS
from loop_core.wire.anthropic_messages.table import STOP_REASONS as MESSAGES_WORDS
from loop_core.wire.anthropic_messages.table import STREAM_READS as MESSAGES_STREAM_READS
from loop_core.wire.base import StopRow
from loop_core.wire.bedrock_converse.table import READS as CONVERSE_READS
from loop_core.wire.bedrock_converse.table import STOP_REASONS as CONVERSE_WORDS
from loop_core.wire.bedrock_converse.table import STREAM_READS as CONVERSE_STREAM_READS
from loop_core.wire.openai_chat.table import READS as CHAT_READS
from loop_core.wire.reads import FactRow

API = "bedrock_invoke"

_LLAMA = "AWS guide, Meta Llama and Mistral AI models: stop_reason"
_TITAN = "AWS guide, Amazon Titan Text models: completionReason"
_COHERE = "AWS guide, Cohere Command models: finish_reason"

MAKERS_WORDS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, _LLAMA),
    "length": StopRow(Stop.MAX_TOKENS, None, _LLAMA),
    "tool_calls": StopRow(Stop.TOOL_CALL, None, "AWS guide, Mistral AI chat completion: stop_reason"),
    "FINISH": StopRow(Stop.END_TURN, None, _TITAN),
    "FINISHED": StopRow(Stop.END_TURN, None, _TITAN),
    "LENGTH": StopRow(Stop.MAX_TOKENS, None, _TITAN),
    "STOP_CRITERIA_MET": StopRow(Stop.END_TURN, "stop_sequence", _TITAN),
    "CONTENT_FILTERED": StopRow(Stop.SAFETY_BLOCKED, None, _TITAN),
    "RAG_QUERY_WHEN_RAG_DISABLED": StopRow(Stop.ERROR, "fatal: rag disabled", _TITAN),
    "COMPLETE": StopRow(Stop.END_TURN, None, _COHERE),
    "MAX_TOKENS": StopRow(Stop.MAX_TOKENS, None, _COHERE),
    "ERROR": StopRow(Stop.ERROR, "retryable", _COHERE),
    "ERROR_TOXIC": StopRow(Stop.SAFETY_BLOCKED, None, _COHERE),
}
"""The words of Llama, Mistral, Titan and Cohere."""
STOP_REASONS: Mapping[str, StopRow] = {**CONVERSE_WORDS, **MESSAGES_WORDS, **MAKERS_WORDS}

LOSES: Mapping[str, str] = MESSAGES_LOSES

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"/model/(?P<model>[^/?#]+)/invoke(?P<stream>-with-response-stream)?/?(?:$|[?#])"),
)
METRICS = "amazon-bedrock-invocationMetrics"
"""The field of a stream's last chunk with Bedrock's own counts of tokens."""


class TextShape(NamedTuple):
    """A maker's answer that is one text: where its fields stand in a body, or in a chunk."""

    holder: str
    """The list whose first item holds text and reason; empty where they stand in the body itself."""
    text: str
    reason: str
    input_tokens: str = ""
    output_tokens: str = ""


TEXTS: tuple[TextShape, ...] = (
    TextShape("", "generation", "stop_reason", "prompt_token_count", "generation_token_count"),  # Llama
    TextShape("outputs", "text", "stop_reason"),  # Mistral
    TextShape("results", "outputText", "completionReason", "inputTextTokenCount"),  # Titan
    TextShape("", "outputText", "completionReason", "inputTextTokenCount", "totalOutputTextTokenCount"),  # its chunks
    TextShape("generations", "text", "finish_reason"),  # Cohere Command
    TextShape("", "completion", "stop_reason"),  # Claude up to 2.1, without messages
    TextShape("", "text", "finish_reason"),  # Cohere Command R, and chunks of Command
)
"""The first shape whose text is there counts."""


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a value is a chunk of a stream; a whole body is of its maker's format, and only its address tells."""
    return event == "chunk" and isinstance(value.get("bytes"), str)


_NOVA = tuple(row._replace(pattern=f"/{row.when}{row.pattern}", keys=tuple(f"/{row.when}{key}" for key in row.keys),
                           when="") for row in CONVERSE_STREAM_READS)
"""Nova's events are wrapped by their names: read without them, a text delta looks like one of Claude."""

_TEXT_READS = tuple(
    FactRow("text", f"/{shape.holder}/*/{shape.text}" if shape.holder else f"/{shape.text}") for shape in TEXTS)

STREAM_READS: tuple[FactRow, ...] = (*MESSAGES_STREAM_READS, *_NOVA, *_TEXT_READS)
"""What the events inside the chunks add piece by piece."""
READS: tuple[FactRow, ...] = tuple(dict.fromkeys((
    *MESSAGES_READS, *CONVERSE_READS, *CHAT_READS, *_TEXT_READS,
    *(FactRow(f"usage.{fact}", f"/{name}") for shape in TEXTS
      for fact, name in (("input_tokens", shape.input_tokens), ("output_tokens", shape.output_tokens)) if name),
    FactRow("usage.output_tokens", "/results/*/tokenCount"),
)))
"""Of whole bodies: what a chunk holds stands in base64, where no value has bytes of its own."""
