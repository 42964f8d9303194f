"""Reads the items and token counts of a Codex CLI rollout, from the lines of all versions."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from inspector.sessions import COMPANION
from inspector.sessions.importers.records import first_look
from inspector.sessions.recording import Options, UnreadableError
from inspector.sessions.traffic import http_status
from inspector.sessions.transcripts import Fields, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, text_of
from inspector.sessions.transcripts.chat_messages import pointer_at
from inspector.sessions.transcripts.member_values import counts_of, known_text, object_of, text_or_none
from loop_core.values import ArgsForm, At, CallKind, OpaquePart, ReasoningPart, TextPart, ToolCall, Usage

FIELDS: Fields = {
    "": {"type": (str,), "timestamp": (str,), "payload": (dict,)},
    "payload": {"type": (str,), "role": (str,), "call_id": (str,), "name": (str,), "info": (dict,)},
}
ENVELOPES = frozenset({
    "session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
    "inter_agent_communication", "inter_agent_communication_metadata", "token_usage_record", "security_risk_score",
    "retained_context", "realtime_item",
})
"""The types of lines with a `payload`."""
ITEMS = frozenset({
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "local_shell_call", "local_shell_call_output",
})
"""The types of items that are lines themselves in files of 2025, without a `payload` around them."""
COUNTS = ("input_tokens", "output_tokens", "reasoning_output_tokens", "cached_input_tokens", "cache_write_input_tokens")
"""The names of the token counts, in the order of the fields of `Usage`."""
COMPACTIONS = frozenset({"compaction", "context_compaction"})
"""The types of items that replace a compacted history."""
NO_OUTPUT = frozenset({"ghost_snapshot", "other", "additional_tools", "compaction_trigger"}) | COMPACTIONS
"""The types of items that Codex adds to the history, and that are no output of the model."""
OWN = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|turn_aborted|skill|subagent_notification|"
    r"permissions instructions|user_action|user_shell_command|collaboration_mode|goal_context|codex_internal_context|"
    r"recommended_plugins|extension_context|agent_message_board_notification|hook_prompt)\b|# AGENTS\.md instructions)",
    re.IGNORECASE)
"""Matches the beginning of a message of the role `user` that Codex wrote itself (codex-rs/core `src/context`)."""
MARKS = ((re.compile(r"\s*<turn_aborted>", re.IGNORECASE), "interrupted"),
         (re.compile(r"\s*\u23f9\ufe0f?\s*Execution interrupted by user\b"), "interrupted"),  # the first releases
         (re.compile(r"\s*<content_filter_guidance>", re.IGNORECASE), "filter"))
"""Patterns for the beginning of a message of Codex about the end of the model's last answer, each with the mark of the
row."""
CUT = re.compile(r"\bIncomplete response returned, reason: (?P<why>\w+)", re.IGNORECASE)
"""Matches the error into which Codex turns `response.incomplete`."""
CUTS: Mapping[str, str] = {"max_output_tokens": "cap", "content_filter": "filter"}
"""Reason in that error -> the mark of its row."""
INCOMPLETE = "incomplete"
"""The provider's status of a cut item, which newer releases store, without the reason."""
DELIVERED = "delivered_assistant_message"
"""The member of an item's metadata that marks a text as delivered by a tool, not written by the model as an answer."""
ENDED: Mapping[str, str] = {"interrupted": "interrupted", "replaced": "interrupted", "budget_limited": "stopped"}
"""Reason of an abort -> the mark of its row. With any other reason, the turn ended by itself."""
TURN_ENDS = frozenset({"task_complete", "turn_complete", "turn_aborted"})
"""The types of events that end a turn."""
# Possessive quantifiers (Python 3.11) avoid backtracking in a text without a closing quote.
_OUTPUT = re.compile(rb'"output_text",\s*+"text":\s*+("(?:[^"\\]|\\.)*+")')


def sniff(head: bytes, path: str) -> int:
    """Recognises the header of a session in the first line, another line that only Codex writes, or a whole file."""
    parsed_head = first_look(head)
    for value in parsed_head.objects:
        if value.get("type") in ENVELOPES and isinstance(value.get("payload"), dict):
            return 100
        header = {"instructions", "id", "timestamp"} <= value.keys()
        if header or value.get("record_type") == "state" or is_document(value):
            return 95
    first, lines = parsed_head.first, parsed_head.lines
    bare = isinstance(first, dict) and {"id", "timestamp"} <= set(first) and "type" not in first
    return 90 if bare and any(isinstance(value, dict) and value.get("type") in ITEMS for value in lines) else 0


def is_document(value: Any) -> bool:
    """Whether a value, which may be cut, is a rollout of the first releases."""
    session, listed = object_of(object_of(value).get("session")), object_of(value).get("items")
    return {"id", "timestamp"} <= session.keys() and isinstance(listed, list) and any(
        object_of(each).get("type") in ITEMS for each in listed[:9])


def refuse_copy(path: str, options: Options) -> None:
    """Raises `UnreadableError` for a packed file that was found in a folder beside its plain one, which counts if it is
    not the smaller one: then it is empty, or was unpacked in part."""
    plain = path.removesuffix(".zst")
    if options.listed and plain != path and os.path.isfile(plain) and os.path.getsize(plain) >= os.path.getsize(path):
        raise UnreadableError(f"a packed copy of the rollout beside it{COMPANION}")


def abort_of(payload: Mapping[str, Any]) -> tuple[str, str]:
    """The reason in the event about an aborted turn, and the mark of the row for it."""
    reason = payload.get("reason")
    reason_text = f"the turn was aborted ({reason})" if isinstance(reason, str) else "the turn was aborted"
    return reason_text, ENDED.get(str(reason), "ended")


def error_text(error: Mapping[str, Any]) -> str:
    """The message of an error. That of a retry ("Reconnecting... 2/5") has the error itself in `additional_details`."""
    message, details = (known_text(error.get(name)) for name in ("message", "additional_details"))
    return ": ".join(filter(None, (message, details))) or "no message"


def item_of(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The type of a line and its content, in the current form and in that of 2025."""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and isinstance(payload, dict):
        return kind, {"type": "message", **payload} if kind == "response_item" and "role" in payload else payload
    if kind in ITEMS:
        return "response_item", value
    if kind in (None, "response_item") and isinstance(value.get("role"), str):
        return "response_item", {"content": value.get("message"), **value, "type": "message"}
    if "record_type" in value:
        return "state", value
    if isinstance(value.get("id"), str) and ("instructions" in value or (kind is None and "timestamp" in value)):
        return "session_meta", value
    return str(kind), {}


def texts_of_items(data: bytes) -> frozenset[int]:
    """The hashes of the JSON of all texts in items of answers, by which events that repeat them are skipped."""
    # Hashes, because a look-ahead over 100 MB would keep every text of the file in memory.
    return frozenset(hash(found[1]) for found in _OUTPUT.finditer(data))


def item_text(value: Any) -> str:
    """The text of a message, a result or a summary: a string, a block, or a list of blocks."""
    while isinstance(value, dict):
        value = value["text"] if isinstance(value.get("text"), str) else value.get("content", value.get("output"))
    return text_of(value)


def usage_of(info: Mapping[str, Any], name: str) -> Usage | None:
    """The token counts of one answer, in the member `name`; other members have totals of the turn and the session."""
    counts = info.get(name)
    if not isinstance(counts, dict):
        return None
    return Usage(*counts_of(counts, *COUNTS))


def status_of(info: Any) -> int | None:
    """The HTTP status in `{"response_stream_disconnected": {"http_status_code": 502}}`; None if there is none."""
    codes = (http_status(object_of(inner).get("http_status_code")) for inner in object_of(info).values())
    return next((code for code in codes if code is not None), None)


def minted_ms(name: Any) -> int | None:
    """The time at which an id was made, in milliseconds since 1970; None if it is no UUID of version 7."""
    try:
        value = UUID(name) if isinstance(name, str) else None
    except ValueError:
        return None
    # the first 48 of its 128 bits (RFC 9562, 5.7)
    return value.int >> 80 if value is not None and value.version == 7 else None


def is_copied_turn(kind: str, payload: dict[str, Any], thread: Any) -> bool | None:
    """Whether a row begins a turn that is older than its thread, and was therefore copied; None if unknown."""
    begins = kind == "turn_context" or payload.get("type") == "task_started"
    turn, born = minted_ms(payload.get("turn_id")) if begins else None, minted_ms(thread)
    return None if turn is None or born is None else turn < born


def all_answered(answer: TranscriptAnswer) -> bool:
    """Whether an answer has calls, and all of them results. As long as calls arrive, the last one has none."""
    results, last = answer.results, answer.parts[-1] if answer.parts else None
    if type(last) is ToolCall and last.id not in results:
        return False
    return bool(calls := answer.calls) and all(call.id in results for call in calls)


def is_summary(answer: TranscriptAnswer, message: Any) -> bool:
    """Whether the answer is the summary of a compacted history, which newer releases also write as a message."""
    text, words = answer.text.strip(), message.rstrip() if isinstance(message, str) else ""
    if not text or answer.calls or not answer.open or not words.endswith(text):
        return False
    return "\n" not in words.removesuffix(text).rstrip()  # Codex's own sentences before it are one line


def take_part(answer: TranscriptAnswer, kind: str, payload: dict[str, Any], line: TranscriptLine) -> None:
    """Adds an item to an answer."""
    path = ("payload",) if "payload" in line.value else ()
    here = answer.take(line)
    at = At(here.part, here.start, here.end, f"/{'/'.join(path)}")
    slice_at = partial(slice_of, line.data, *path)
    key, name = text_or_none(payload.get("call_id")) or None, text_or_none(payload.get("name"))  # LiteLLM: ""
    whole = payload.get("status") != INCOMPLETE
    if not whole:
        answer.word, answer.word_at = INCOMPLETE, pointer_at(at, *path, "status")
    if kind == "message":
        answer.parts.append(TextPart(item_text(payload.get("content")), phase=text_or_none(payload.get("phase"))))
    elif kind == "reasoning":
        answer.parts.append(ReasoningPart(item_text(payload.get("summary")) or item_text(payload.get("content"))))
    elif kind in ("function_call", "custom_tool_call", "tool_call"):
        name = name or text_or_none(object_of(payload.get("function")).get("name"))
        call_input = payload.get("input" if kind == "custom_tool_call" else "arguments")
        form = ArgsForm.STRING if call_input is None or isinstance(call_input, str) else ArgsForm.OBJECT
        arguments = call_input if form is ArgsForm.STRING else slice_at("arguments") or slice_at("input")
        call = CallKind.CUSTOM if kind == "custom_tool_call" else CallKind.FUNCTION
        answer.parts.append(ToolCall(key, name or "", arguments, whole, call, form, at=at))
    elif kind == "tool_search_call" and payload.get("execution") == "client":  # otherwise the provider runs it
        answer.parts.append(ToolCall(key, "tool_search", slice_at("arguments"), True, form=ArgsForm.OBJECT, at=at))
    elif kind == "local_shell_call":
        key = key or text_or_none(payload.get("id"))
        answer.parts.append(ToolCall(key, "local_shell", slice_at("action"), True, form=ArgsForm.OBJECT, at=at))
    else:
        answer.parts.append(OpaquePart(kind, slice_at() or "{}"))
