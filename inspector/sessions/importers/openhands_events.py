"""Recognises the events of OpenHands 0 and 1, and reads their texts and counts."""

from __future__ import annotations

import json
from typing import Any

from inspector.sessions.transcripts.answer import TranscriptAnswer, TreePlace, text_of
from inspector.sessions.transcripts.member_values import counts_of, first_text, object_of
from loop_core.values import Usage

LISTS = ("history", "trajectory", "events")
"""The members of an object that may have the events."""
NO_EXCHANGE = frozenset({
    "system", "recall", "change_agent_state", "agent_state_changed", "condensation", "condensation_request", "null",
    "initialize", "loop_recovery", "SystemPromptEvent", "SystemPromptUpdateEvent", "Condensation",
    "CondensationRequest", "CondensationSummaryEvent", "ConversationStateUpdateEvent", "TokenEvent", "PauseEvent",
    "StreamingDeltaEvent", "HookExecutionEvent", "LLMCompletionLogEvent", "ACPToolCallEvent",
})
ENDED = frozenset({"awaiting_user_input", "finished"})
"""The states of version 0 in which the agent's loop has ended by itself."""
COMMANDS = ("command", "code", "browser_actions", "url", "path")
"""The arguments that may have the command of an action; without `args` the first one is shown."""


def is_event(value: Any) -> bool:
    """Whether a value is an event of either version, with all of its members."""
    if not isinstance(value, dict) or "source" not in value:
        return False
    old = isinstance(value.get("action"), str) or isinstance(value.get("observation"), str)
    return (old and ("args" in value or "extras" in value or "message" in value)) or is_sdk_event(value)


def is_bare(value: Any) -> bool:
    """Whether a value is an event as the resolver stores it: an action with its arguments, or a result."""
    if not isinstance(value, dict) or "source" in value or "role" in value:
        return False
    acted = isinstance(value.get("action"), str) and ("thought" in value or "content" in value)
    return acted or (isinstance(value.get("observation"), str) and isinstance(value.get("content"), str))


def is_pair(value: Any) -> bool:
    """Whether a value is a pair of an action and its observation."""
    # the last action of a run may lack its observation
    return isinstance(value, list) and 0 < len(value) < 3 and (is_event(value[0]) or is_bare(value[0]))


def is_sdk_event(value: dict[str, Any]) -> bool:
    """Whether an object is an event of version 1."""
    if "timestamp" not in value:
        return False
    # A system prompt may be longer than a head, and `kind` is the last member.
    prompt = "system_prompt" in value and "source" in value
    return prompt or str(value.get("kind", "")).endswith(
        ("Event", "Observation", "Condensation", "CondensationRequest"))


def is_state(value: Any) -> bool:
    """Whether a value is the state of a conversation of version 1."""
    return isinstance(value, dict) and "agent" in value and ("execution_status" in value or "agent_status" in value
                                                              or "persistence_dir" in value)


def is_done(answer: TranscriptAnswer) -> bool:
    """Whether the agent itself ended its run after an answer: by the tool `finish`, or by a state."""
    return any(call.name == "finish" for call in answer.calls) or any(row.mark == "ended" for row in answer.after)


def is_nudged(place: TreePlace) -> bool:
    """Whether the rows up to a place are the SDK's own, after an answer without text and calls."""
    rows, above = place.rows(), place.answer
    return bool(rows) and all(row.own for row in rows) and above is not None and not above.text and not above.calls


def last_words(value: dict[str, Any]) -> str:
    """The model's last text, in the action `finish`; `message` has OpenHands' own text."""
    args = object_of(value if is_bare(value) else value.get("args"))
    outputs = object_of(args.get("outputs"))
    return first_text(args.get("final_thought"), args.get("thought"), outputs.get("content"))


def sdk_text(record: dict[str, Any]) -> str:
    """The text of an observation of version 1, from any tool."""
    texts = map(text_of, map(record.get, ("content", "output", "message", "result")))
    return next(filter(None, texts), json.dumps(record, ensure_ascii=False) if record else "")


def sdk_usage(usage: dict[str, Any]) -> Usage:
    """The token counts of one answer, in the SDK's names."""
    return Usage(*counts_of(usage, "prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read_tokens",
                            "cache_write_tokens"))
