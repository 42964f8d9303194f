"""Messages of content blocks in Anthropic's form, which agents of other models use too (Droid, Cursor).

The blocks drift: a call is a `tool_use` or a `tool_call`, a result a `tool_result` or a `tool-result`, ids may be left
out.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from inspector.sessions.transcripts import slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, content_text
from inspector.sessions.transcripts.chat_messages import call_of, pointer_at
from inspector.sessions.transcripts.member_values import known_text
from loop_core.values import At, OpaquePart, ReasoningPart, TextPart, ToolResultPart

CALLS = frozenset({"tool_use", "tool_call", "tool-call"})
RESULTS = frozenset({"tool_result", "tool-result"})


def blocks_of(content: Any) -> list[Any]:
    """The blocks of a message; a plain text counts as one block."""
    return content if isinstance(content, list) else [] if content is None else [content]


def take_blocks(answer: TranscriptAnswer, content: Any, line: TranscriptLine, at: At, *path: str) -> None:
    """Reads the parts of an answer from the content at `path` of a row."""
    for number, block in enumerate(blocks_of(content)):
        if isinstance(block, str):
            answer.parts.append(TextPart(block))
        elif isinstance(block, dict):
            take_block(answer, block, line, at, *path, number)


def take_block(answer: TranscriptAnswer, block: dict[str, Any], line: TranscriptLine, at: At, *path: str | int) -> None:
    """Reads the block at `path` of a row."""
    kind, thought = block.get("type"), block.get("thinking")
    find = partial(slice_of, line.data, *path)
    if kind in CALLS:
        member = next((name for name in ("input", "parameters", "arguments", "args") if name in block), "input")
        answer.parts.append(call_of(block.get("id") or block.get("toolCallId"), block.get("name"), block.get(member),
                                    find, member, pointer_at(at, *path)))
    elif isinstance(thought, str):
        answer.parts.append(ReasoningPart(thought, known_text(block.get("signature"))))
    elif isinstance(block.get("text"), str):
        answer.parts.append(TextPart(block["text"]))
    else:
        answer.parts.append(OpaquePart(str(kind), find() or "{}"))


def results_of(content: Any) -> tuple[ToolResultPart, ...]:
    """The tool results among the blocks of a message."""
    return tuple(
        ToolResultPart(known_text(block.get("tool_use_id")) or known_text(block.get("toolCallId")),
                       known_text(block.get("name")), any_text(block.get("content", block.get("output"))),
                       block.get("is_error") is True or block.get("isError") is True)
        for block in blocks_of(content) if isinstance(block, dict) and block.get("type") in RESULTS
    )


def words_of(content: Any) -> str:
    """The text of a message without its results; other blocks are named."""
    rest = [block for block in blocks_of(content) if not (isinstance(block, dict) and block.get("type") in RESULTS)]
    return "\n".join(block if isinstance(block, str) else content_text([block]) for block in rest)


def any_text(value: Any) -> str:
    """The text of a value in any of its forms."""
    if isinstance(value, (str, list)):
        return value if isinstance(value, str) else words_of(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)
