"""Messages of OpenAI's chat, one a line: PicoClaw, nanobot, Mistral Vibe, and agents that write the same.

The messages are those that the agent would send again: arguments are the strings that the model wrote, and no stop
word, cap or token count is kept. Lines of whole conversations (`messages`), as fine-tuning takes them, are no session.
Sources: sipeed/picoclaw `pkg/memory/jsonl.go`, `protocoltypes/types.go`; mistral-vibe `vibe/core/types.py`;
HKUDS/nanobot `session/manager.py`, `agent/runner.py`, `utils/runtime.py`.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

from inspector.sessions.importers.records import first_look, object_beside
from inspector.sessions.reasons import recorder_reason
from inspector.sessions.recording import Options
from inspector.sessions.transcripts import TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import MessageReader, pointer_at
from inspector.sessions.transcripts.ending_rules import RESUMED
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from loop_core.values import Stop

ROLES = frozenset({"user", "assistant", "tool"})
COMMON = frozenset({"role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name"})

NOTHING = "couldn't produce a final answer"
"""The part of `SILENT` that is shown as nanobot's word."""
SILENT = f"I completed the tool steps but {NOTHING}. Please try again or narrow the task."
"""The text that nanobot writes for an answer that stayed empty after it asked again."""


class _Messages(MessageReader):
    """Messages of an agent that nothing in the file names."""

    name, agent = "chat-lines", "the agent"
    unit, row_word = "line", ("a message", "messages")
    members: ClassVar[frozenset[str]] = frozenset()
    """The members of the agent's messages beside those of the API; one of the first messages has one of them."""

    def answer(
        self, line: TranscriptLine, place: TreePlace, name: str = "", model: Any = None, **facts: Any
    ) -> TranscriptAnswer:
        """Adds an answer, with its model and time if they were stored."""
        answer = super().answer(line, place, name, known_text(line.value.get("model_name")))
        answer.started = known_text(line.value.get("created_at")) or answer.started
        return answer


class _PicoClaw(_Messages):
    agent = "PicoClaw"
    members = frozenset({"model_name", "created_at", "media", "attachments", "system_parts"})


class _Nanobot(_Messages):
    """A session of nanobot, whose first line describes it (`_type`)."""

    agent = "nanobot"
    about: ClassVar[frozenset[str]] = frozenset({"metadata", "provider_state"})
    """The types of lines that are no messages."""

    def own(self, text: str) -> bool:
        return RESUMED.match(text) is not None

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, text = line.value, known_text(line.value.get("content")) or ""
        if "role" not in value:
            self.session_id = known_text(value.get("key")) or self.session_id
            lines.count(value.get("_type"), self.about)
            return place
        if value["role"] == "assistant" and text == "[Assistant reply unavailable due to model error.]":
            return self.failed_request(line, place, text, after_results=True) or place
        if value["role"] == "assistant" and text.strip() == SILENT:
            answer = self.answer(line, place)
            at = answer.word_at = pointer_at(answer.take(line), "content")
            answer.stop = recorder_reason(Stop.END_TURN, None, at, NOTHING, "nanobot.empty")
            return TreePlace(answer)
        if value["role"] == "user" and "injected_event" in value:
            return self.say(line, place, text, own=True)
        return super().take(line, lines, place)


class _Vibe(_Messages):
    agent = "Mistral Vibe"
    key = "message_id"
    members = frozenset({
        "message_id", "injected", "images", "reasoning_state", "reasoning_payloads", "reasoning_signature",
        "reasoning_message_id", "tool_result", "user_display_content", "input_text", "resources", "manual_shell",
        "context_boundary"})

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        about = object_beside(path, "meta.json")
        self.title, self.session_id, self.parent_id = (
            known_text(about.get(name)) or "" for name in ("title", "session_id", "parent_session_id"))
        self.model = known_text(object_of(about.get("config")).get("active_model"))

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a message; one of the user may be the agent's (`injected`)."""
        if line.value.get("role") == "user" and line.value.get("injected") is True:
            return self.say(line, place, known_text(line.value.get("content")) or "", own=True)
        return super().take(line, lines, place)


def sniff(head: bytes, path: str) -> int:
    """Recognises lines of messages whose members are all known, with one that only the agent has, or with calls."""
    kind = _kind_of(head, path)
    return 0 if kind is None else 55 if kind is _Messages else 90


def reader(path: str, options: Options, head: bytes) -> _Messages:
    """The reader of one file."""
    return (_kind_of(head, path) or _Messages)(path, options)


def _kind_of(head: bytes, path: str) -> type[_Messages] | None:
    """The reader for the agent that wrote a file; None if its lines are no messages, or may be any agent's."""
    look = first_look(head)
    rows = [row for row in look.lines or (look.first,) if known_text(object_of(row).get("role")) in ROLES]
    if rows and {"_type", "key", "metadata"} <= object_of(look.first).keys():
        return _Nanobot
    found = frozenset[str]().union(*rows)
    if {"message_id", "injected"} <= found:  # whatever a newer release adds
        return _Vibe
    for kind in (_PicoClaw, _Vibe):
        if found & kind.members and found <= COMMON | kind.members:
            return kind
    if rows and found <= COMMON and _is_of_picoclaw(path):
        return _PicoClaw
    bare = bool(rows) and rows[0].get("role") == "assistant"  # as an agent prints its answers: Kimi CLI
    return _Messages if found <= COMMON and (bare or any(map(_has_calls, rows))) else None


def _is_of_picoclaw(path: str) -> bool:
    """Whether the file beside it is one that PicoClaw writes for each session."""
    about = object_beside(path, f"{os.path.basename(path).removesuffix('.jsonl')}.meta.json")
    return {"key", "skip", "count"} <= about.keys()


def _has_calls(row: dict[str, Any]) -> bool:
    """Whether a message has calls with arguments as text."""
    return any(isinstance(object_of(call.get("function")).get("arguments"), str)
               for call in objects_of(row.get("tool_calls")))
