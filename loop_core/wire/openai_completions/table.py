"""Legacy completions as data: stop words, paths, what a text completion cannot carry, and which values become facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.values import Stop
from loop_core.wire.base import StopRow
from loop_core.wire.openai_chat.table import READS as CHAT_READS
from loop_core.wire.openai_chat.table import STREAM_READS as CHAT_STREAM_READS
from loop_core.wire.reads import FactRow

API = "openai_completions"

_SDK = "openai 3.54.0 types/completion_choice.py:22"

STOP_REASONS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, _SDK),
    "length": StopRow(Stop.MAX_TOKENS, None, _SDK),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "abort": StopRow(Stop.CANCELLED, None, "vllm v1/engine/__init__.py; sglang FINISH_ABORT: the request was aborted"),
}
"""Native word -> mapped reason."""

LOSES: Mapping[str, str] = {
    "call": "a completion is text",
    "reasoning": "a completion is text",
    "server": "a completion is text",
    "refusal": "a completion is text",
}

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"(?<!/chat)(?<!/agents)/completions/?(?:$|[?#])"),
)


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON object is a text completion or one chunk of it: the text stands in the choice itself."""
    choices = value.get("choices")
    if event or not isinstance(choices, list):
        return False
    if not choices:
        return value.get("object") in ("text_completion", "text.completion")
    first = choices[0]
    return (isinstance(first, Mapping) and isinstance(first.get("text"), str)
            and not isinstance(first.get("delta"), Mapping) and not isinstance(first.get("message"), Mapping))


_TEXT = FactRow("text", "/choices/*/text", ("/choices/*/index",))

STREAM_READS: tuple[FactRow, ...] = (*CHAT_STREAM_READS, _TEXT)
"""What a stream adds piece by piece: Mistral's fill-in-the-middle and Portkey's prompts answer with messages."""
READS: tuple[FactRow, ...] = (*CHAT_READS, _TEXT)
