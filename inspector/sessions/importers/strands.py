"""Sessions of Strands Agents: an `agent.json` with a file for each message in `messages` (`FileSessionManager`), and
the snapshots of Strands for JavaScript (`SessionManager`), whose messages are in one object.

No stop word is stored. Strands replaces each call of a cut answer by a sentence; arguments are parsed, and `{}` if
Strands could not parse them. An answer that was cut in its text looks like any other, and of a failed request there is
only the message before it. Source: strands-agents 1.62 `types/session.py`,
`event_loop/_recover_message_on_max_tokens_reached.py`, `event_loop/streaming.py`; 14 sessions that it wrote over two
APIs.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from typing import Any

from inspector.sessions.importers.records import Piece, first_look, list_pieces, object_beside
from inspector.sessions.intake import sibling
from inspector.sessions.reasons import UNREAD_CALL, recorder_reason
from inspector.sessions.recording import FileReading, Options, UnreadableError
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of, usage_in
from loop_core.values import At, Finding, OpaquePart, Severity, Stop, ToolCall, ToolResultPart

FIELDS: Fields = {"": {"message": (dict,), "message_id": (int,), "redact_message": (dict,), "created_at": (str,),
                       "role": (str,), "content": (list,), "metadata": (dict,)},
                  "message": {"role": (str,), "content": (list,), "metadata": (dict,)}}
AGENT = frozenset({"agent_id", "conversation_manager_state"})
MESSAGE = frozenset({"message", "message_id", "created_at"})
SNAPSHOT = frozenset({"scope", "schemaVersion"})
"""Members of a snapshot of Strands for JavaScript, besides its `data`."""
COUNTS = ("inputTokens", "outputTokens", None, "cacheReadInputTokens", "cacheWriteInputTokens")
CUT = re.compile(r"The selected tool (.+?)'s tool use was incomplete due to maximum token limits being reached\.")
"""Matches the text that Strands writes instead of a call of a cut answer."""
CANCELLED = "Cancelled by user"
"""The text that Strands writes instead of an answer that the user stopped."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the state of an agent, one of its messages, or a snapshot with messages."""
    look = first_look(head)
    return 95 if look.has(AGENT) or look.has(MESSAGE) or _is_snapshot(look.first) else 0


def _is_snapshot(value: Any) -> bool:
    first = object_of(value)
    return first.keys() >= SNAPSHOT and isinstance(object_of(first.get("data")).get("messages"), list)


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads the messages of an agent. Raises `UnreadableError` for a message file that is read with an `agent.json`."""
    look = first_look(data)
    if _is_snapshot(look.first):
        pieces = list(list_pieces(data, "data", "messages"))
    elif look.has(AGENT):
        pieces = list(_messages(path))
    elif os.path.exists(os.path.join(os.path.dirname(os.path.abspath(path)), os.pardir, "agent.json")):
        raise UnreadableError("one message of a session: expected the agent.json of the folder above")
    else:
        pieces = [(1, data, True)]
    reader = _Session(path, options)
    reader.session_id = reader.title = known_text(object_beside(path, "../../session.json").get("session_id")) or ""
    return reader.read_records(pieces)


def _messages(path: str) -> Iterator[Piece]:
    """The messages in the order of their numbers."""
    folder = os.path.dirname(os.path.abspath(path))
    names = glob.glob(os.path.join(glob.escape(folder), "messages", "message_*.json"))
    for number, name in enumerate(sorted(names, key=lambda name: (len(name), name)), 1):
        data = sibling(path, os.path.relpath(name, folder))
        if data is not None:
            yield number, data.strip(), True


class _Session(ChatReader):
    name, agent, fields = "strands", "Strands", FIELDS
    awaits_results = hides_broken_arguments = True
    unanswered = "end the session without an answer, as a run that failed leaves it"

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        member = "redact_message" if isinstance(line.value.get("redact_message"), dict) else "message"
        if member != "message":
            self.remarks["hold what a guardrail put in place of the message"] += 1
        bare = "role" in line.value  # in a snapshot
        message = line.value if bare else object_of(line.value.get(member))
        role, blocks = message.get("role"), objects_of(message.get("content"))
        if role == "assistant" and blocks == [{"text": CANCELLED}]:
            return self.say(line, place, "", mark="interrupted")
        if role == "assistant":
            return self._answer(line, place, message, *(() if bare else (member,)))
        if role != "user":
            lines.count(role, frozenset())
            return place
        results = [_result(object_of(block["toolResult"])) for block in blocks if "toolResult" in block]
        place = self.results(line, place, *results)
        text = "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
        return self.say(line, place, text) if text or (blocks and not results) else place

    def _answer(self, line: TranscriptLine, place: TreePlace, message: dict[str, Any], *path: str) -> TreePlace:
        answer = self.answer(line, place)
        answer.started = known_text(line.value.get("created_at"))
        at = answer.word_at = answer.take(line)
        for number, block in numbered_objects(message.get("content")):
            _take_block(answer, block, line, at, *path, "content", number)
        answer.usage = usage_in(object_of(object_of(message.get("metadata")).get("usage")), *COUNTS)
        return TreePlace(answer)


def _take_block(
    answer: TranscriptAnswer, block: dict[str, Any], line: TranscriptLine, at: At, *path: str | int
) -> None:
    text, thought = block.get("text"), object_of(object_of(block.get("reasoningContent")).get("reasoningText"))
    cut = CUT.fullmatch(text) if isinstance(text, str) else None
    if cut is not None:
        said_at = pointer_at(at, *path, "text")
        answer.parts.append(ToolCall(None, cut[1], None, False, at=said_at))
        answer.word, answer.word_at = cut[0], said_at
        answer.stop = recorder_reason(Stop.MAX_TOKENS, None, said_at, cut[0], "strands.cut_calls")
        why = f"message {line.number}: Strands put a sentence in place of the cut call"
        answer.findings.append(Finding(UNREAD_CALL, Severity.INFO, why, said_at))
    elif isinstance(block.get("toolUse"), dict):
        take_call(answer, block["toolUse"], line, at, *path, "toolUse", key="toolUseId", member="input")
    elif thought:
        answer.add_thought(thought.get("text"))
    elif isinstance(text, str):
        answer.add_text(text)
    else:
        answer.parts.append(OpaquePart(next(iter(block), "block"), slice_of(line.data, *path) or "{}"))


def _result(value: dict[str, Any]) -> ToolResultPart:
    shown = [block.get("text", block.get("json", block)) for block in objects_of(value.get("content"))]
    return ToolResultPart(known_text(value.get("toolUseId")), None, "\n".join(map(any_text, shown)),
                          value.get("status") == "error")
