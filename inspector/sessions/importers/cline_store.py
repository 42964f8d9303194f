"""What Cline's SDK adds to the messages of its sessions (`<id>.messages.json`): unreadable calls, counts, a state.

A call whose arguments cannot be parsed is stored with `{}`, and its text in the metadata of the message. Newer releases
count the tokens of each answer; older ones give the last answer of a turn the counts of the whole turn. The file
`<id>.json` beside it has the state of the session. Source: cline/cline `sdk/packages/agents/src/agent-runtime.ts`,
`sdk/packages/core/src/services/session-data.ts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.sessions.transcripts.answer import TranscriptAnswer
from inspector.sessions.transcripts.chat_messages import pointer_at
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of, usage_in
from loop_core.values import At, ToolCall

OVER = frozenset({"completed", "idle"})
"""The states of a session that was not stopped, did not fail and is not running."""


def is_own(value: dict[str, Any]) -> bool:
    """Whether Cline itself wrote a message in the role of the user, such as a reminder or a summary."""
    metadata = object_of(value.get("metadata"))
    return metadata.get("displayRole") in ("system", "status", "error") or metadata.get("userRunSpan") == 0


def take_unread_calls(answer: TranscriptAnswer, value: dict[str, Any], at: At) -> None:
    """Gives the calls that Cline could not read the text that the model sent; adds those that had no name."""
    listed = objects_of(object_of(value.get("metadata")).get("invalidToolCalls"))
    for number, row in enumerate(listed):
        text, key = object_of(row.get("input")).get("rawInputText"), known_text(row.get("toolCallId"))
        if not isinstance(text, str):
            continue
        place = pointer_at(at, "metadata", "invalidToolCalls", number, "input", "rawInputText")
        call = ToolCall(key, known_text(row.get("toolName")) or "", text, True, at=place)
        there = next((index for index, part in enumerate(answer.parts)
                      if type(part) is ToolCall and part.id == key), None)
        if there is None:
            answer.parts.append(call)
        else:
            answer.parts[there] = call


def count_turns(turns: Sequence[Sequence[tuple[TranscriptAnswer, dict[str, Any]]]]) -> None:
    """Gives the answers of each turn their token counts, unless they may be those of the whole turn."""
    for turn in turns:
        counted = [(answer, usage) for answer, metrics in turn
                   if (usage := usage_in(metrics, "inputTokens", "outputTokens", "", "cacheReadTokens")) is not None]
        if len(turn) == 1 or len(counted) > 1:  # older releases write one count for a turn
            for answer, usage in counted:
                answer.usage = usage


def state_of(manifest: dict[str, Any]) -> str:
    """The state in which a session was left, if it is not over; else an empty text."""
    state = known_text(manifest.get("status"))
    return "" if state is None or state in OVER else state
