"""The fields of Claude Code's rows: what a row says of an answer's end, of a failure, or between two answers.

Pure functions of one row; the tree of rows is the importer's.
"""

from __future__ import annotations

import json
import re
from typing import Any

from inspector.sessions.transcripts import provenance
from inspector.sessions.transcripts.answer import Answer, Said
from inspector.sessions.transcripts.inference import INTERRUPTED, Caps, error_row, infer
from inspector.sessions.transcripts.lines import Line
from loop_core.classify import FINISHED
from loop_core.values import At, Evidence, ProviderError, StopReason, ToolResultPart, Usage
from loop_core.wire.anthropic_messages.table import API, STOP_REASONS
from loop_core.wire.failures import RETRYABLE_STATUS, RETRYABLE_WORDS, read_error

ENDED = frozenset({"stop_hook_summary", "turn_duration"})
"""System records that are written when the agent's loop has ended by itself."""
HOOKS = frozenset({"Stop", "SubagentStop"})
"""The hooks that run then."""
CAP_EXCEEDED = re.compile(r"exceeded the ([0-9][0-9,_]*) output token maximum")
"""What Claude Code says in a row of its own when an answer was cut (claude-code #24055)."""
CONTEXT_FULL = re.compile(r"reached its context window limit")
_STATUS = re.compile(r"API Error:?\s*(?:\(?([1-5][0-9]{2})\b)?")


def ended(value: dict[str, Any]) -> str | None:
    """What a record says of the end of the agent's loop; None where it says nothing of it."""
    if value.get("subtype") in ENDED:
        return str(value["subtype"])
    hook = dict_of(value.get("data") or value.get("attachment")).get("hookEvent")
    return f"{hook} hook" if hook in HOOKS else None


def stop_of(answer: Answer, caps: Caps) -> StopReason:
    """The mapped reason of an answer, with where it comes from.

    A word that says cut is never taken back; one that says finished is, where the agent itself says that it was cut.
    """
    if answer.word is None:
        return infer(answer, caps)
    told = provenance.said_by_provider(answer.word, answer.word_at, STOP_REASONS, API)
    shown = error_row(answer, caps) if told.normalized in FINISHED else None
    if shown is None:
        return told
    seen = Evidence(f"{provenance.INFERRED}error_row", shown.at, shown.note)
    return StopReason(shown.stop, answer.word, None, (*told.evidence, seen))


def take_end(answer: Answer, message: dict[str, Any], at: At) -> None:
    """The word and the usage of one row: the last word counts, and of the counts the largest (they only grow)."""
    word = message.get("stop_reason")
    pointer = At(at.part, at.start, at.end, "/message/stop_reason")
    if isinstance(word, str) and word:
        answer.word, answer.word_at = word, pointer
    elif answer.word is None:
        answer.word_at = pointer
    usage = message.get("usage")
    if isinstance(usage, dict):
        before = answer.usage or Usage()
        answer.usage = Usage(
            _most(before.input_tokens, usage.get("input_tokens")),
            _most(before.output_tokens, usage.get("output_tokens")),
            None,
            _most(before.cached_tokens, usage.get("cache_read_input_tokens")),
        )


def _most(before: int | None, now: Any) -> int | None:
    return before if type(now) is not int or (before is not None and before >= now) else now


def said(line: Line) -> Said | None:
    """A user's row: results, or words."""
    message = line.value.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    own = line.value.get("isMeta") is True
    if isinstance(content, str):
        return Said(line.number, content, own=own, mark="interrupted" if content.startswith(INTERRUPTED) else None)
    if not isinstance(content, list):
        return None
    results, texts = [], []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict) and block.get("type") == "tool_result":
            key = block.get("tool_use_id")
            text = text_of(block.get("content"))
            results.append(ToolResultPart(key if isinstance(key, str) else None, None, text,
                                          block.get("is_error") is True))
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            texts.append(block["text"])
    text = "\n".join(texts)
    mark = "interrupted" if text.startswith(INTERRUPTED) and not results else None
    return Said(line.number, text, tuple(results), own, mark)


def text_of(content: Any) -> str:
    """The text of a result or a message, however it is written; other blocks are named."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, ensure_ascii=False)
    texts = [
        block["text"] if isinstance(block.get("text"), str) else f"[{block.get('type')}]"
        for block in content if isinstance(block, dict)
    ]
    return "\n".join(texts)


def error_of(row: dict[str, Any], text: str) -> tuple[ProviderError, int | None]:
    """The error that a row of the agent reports, and its HTTP status where that is said."""
    found = _STATUS.search(text)
    status = int(found[1]) if found is not None and found[1] else None
    given = row.get("apiErrorStatus")
    status = given if type(given) is int and 100 <= given < 600 else status
    start = text.find("{")
    try:
        body = json.loads(text[start : text.rfind("}") + 1]) if start >= 0 else None
    except (ValueError, RecursionError):
        body = None
    told = read_error(body, status) if isinstance(body, dict) else None
    if told is not None:
        return told, status
    word = row.get("error")
    kind = word if isinstance(word, str) else None
    retryable = status in RETRYABLE_STATUS or kind in RETRYABLE_WORDS | {"rate_limit"}
    return ProviderError(text, kind, None if status is None else str(status), retryable), status


def retried(row: dict[str, Any]) -> str:
    """What a system record says of a request that failed and was sent again."""
    error = dict_of(row.get("error"))
    inner = dict_of(dict_of(error.get("error")).get("error")) or dict_of(error.get("error"))
    words = [error.get("status"), inner.get("type"), inner.get("message") or error.get("message")]
    told = " ".join(str(word) for word in words if isinstance(word, (str, int))) or "no reason given"
    attempt = row.get("retryAttempt")
    return f"{told[:200]} (attempt {attempt})" if type(attempt) is int else told[:200]


def dict_of(value: Any) -> dict[str, Any]:
    """The object that a value is; an empty one where it is none."""
    return value if isinstance(value, dict) else {}
