"""The fields of pi's entries: an answer's parts, usage and end, and what stands between two answers.

Pure functions of one entry; the tree of entries is the importer's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from inspector.sessions.transcripts import provenance
from inspector.sessions.transcripts.answer import Answer, Said
from inspector.sessions.transcripts.lines import Line, slice_of
from inspector.sessions.transcripts.lost import connection_lost
from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    Stop,
    TextPart,
    ToolCall,
    ToolResultPart,
    Usage,
)
from loop_core.wire.base import Mapped
from loop_core.wire.failures import RETRYABLE_STATUS, RETRYABLE_WORDS, classify

STOPS: Mapping[str, Mapped] = {
    "stop": Mapped(Stop.END_TURN, None, "seed 002: end_turn, pause_turn and stop_sequence"),
    "length": Mapped(Stop.MAX_TOKENS, None, "seed 002: max_tokens"),
    "toolUse": Mapped(Stop.TOOL_CALL, None, "seed 002: tool_use"),
    "error": Mapped(Stop.ERROR, "fatal", "seed 002: refusal, sensitive, and failures of its own"),
    "aborted": Mapped(Stop.CANCELLED, None, "pi docs/session-format.md"),
}
"""pi's words; it maps the providers' before it writes them down."""


def take_content(answer: Answer, content: Any, line: Line, at: At) -> None:
    """The parts of an answer. Arguments are the JSON of the row: pi has parsed, and perhaps mended, what came."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    path = ("message", "content") if "message" in line.value else ("content",)
    for number, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        slice_at = partial(slice_of, line.data, *path, number)
        if kind == "text" and isinstance(block.get("text"), str):
            answer.parts.append(TextPart(block["text"]))
        elif kind == "thinking" and isinstance(block.get("thinking"), str):
            answer.parts.append(ReasoningPart(block["thinking"], text(block.get("thinkingSignature"))))
        elif kind == "toolCall":
            given = block.get("arguments")
            arguments = given if isinstance(given, str) else None if given is None else slice_at("arguments")
            form = ArgsForm.STRING if isinstance(given, str) else ArgsForm.OBJECT
            here = At(at.part, at.start, at.end, f"/{'/'.join(path)}/{number}")
            answer.parts.append(
                ToolCall(text(block.get("id")), text(block.get("name")) or "", arguments, True,
                         CallKind.FUNCTION, form, at=here)
            )
        else:
            answer.parts.append(OpaquePart(str(kind), slice_at() or "{}"))


def take_end(answer: Answer, message: dict[str, Any], at: At) -> None:
    """The recorder's word, in our vocabulary."""
    word = message.get("stopReason")
    place = At(at.part, at.start, at.end, "/message/stopReason")
    answer.word_at = place
    if not isinstance(word, str) or not word:
        return  # inferred when what follows is known
    row = STOPS.get(word)
    if row.stop is Stop.ERROR if row else isinstance(message.get("errorMessage"), str):
        answer.error = _error(text(message.get("errorMessage")) or "")
        stop, detail, rule = classify(answer.error)
        answer.stop = provenance.said_by_recorder(stop, detail, place, word, rule)
    elif row is None:
        answer.stop = provenance.said_by_recorder(Stop.UNKNOWN, None, place, word, "unknown_word")
    else:
        answer.stop = provenance.said_by_recorder(row.stop, row.detail, place, word, "pi.stop_reasons")


def _error(message: str) -> ProviderError:
    """What pi wrote down of a failure: a message that may begin with the HTTP status."""
    words = message.replace(":", " ").replace('"', " ").lower().split()
    status = int(words[0]) if words and words[0].isdigit() and len(words[0]) == 3 else None
    retryable = status in RETRYABLE_STATUS or not RETRYABLE_WORDS.isdisjoint(words) or connection_lost(message)
    return ProviderError(message, None, None if status is None else str(status), retryable)


def usage_of(usage: Any) -> Usage | None:
    """Counts of tokens, by pi's names."""
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) for name in ("input", "output", "cacheRead")]
    given, made, cached = (count if type(count) is int else None for count in counts)
    return Usage(given, made, None, cached)


def said(line: Line, role: str, message: dict[str, Any]) -> Said | None:
    """A message between two answers; None where no model was told of it."""
    content = message.get("content")
    words = content if isinstance(content, str) else "\n".join(_texts(content))
    if role == "toolResult":
        key, name = text(message.get("toolCallId")), text(message.get("toolName"))
        part = ToolResultPart(key, name, words, message.get("isError") is True)
        return Said(line.number, "", (part,))
    if role == "bashExecution":
        if message.get("excludeFromContext") is True:
            return None
        return Said(line.number, f"{message.get('command', '')}\n{message.get('output', '')}", own=True)
    return Said(line.number, words, own=role != "user")


def _texts(content: Any) -> list[str]:
    if not isinstance(content, list):
        return []
    return [
        block["text"] if isinstance(block.get("text"), str) else f"[{block.get('type')}]"
        for block in content if isinstance(block, dict)
    ]


def text(value: Any) -> str | None:
    """A text that is there and not empty."""
    return value if isinstance(value, str) and value else None
