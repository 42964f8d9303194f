"""Conversations of Letta Code with its local backend: `~/.letta/lc-local-backend/conversations/*/messages.jsonl`.

A line is a message in pi's shape, without a tree of entries. Letta Code writes the file again for each piece of an
answer; until the answer has come whole, its line is a placeholder with default values (`DEFAULTS`). A failed request
leaves the placeholder, or nothing, and the prompt again if it is sent again. Sources: @letta-ai/letta-code 0.25.9
(`LocalStore`), and its sessions against a scripted provider.
"""

from __future__ import annotations

from typing import Any

from inspector.sessions.importers.pi import APIS, interim_row, take_content, take_end, usage_of
from inspector.sessions.importers.records import first_look, object_beside
from inspector.sessions.reasons import inferred_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at
from inspector.sessions.transcripts.member_values import known_text, moment_text, object_of, objects_of
from loop_core.values import Stop, StopReason

UNFINISHED = "local"
"""The wire format that the placeholder of an answer names, until the answer is complete."""
DEFAULTS = frozenset({UNFINISHED, "legacy-local"})
"""The wire formats of messages whose stop word, model and counts are default values: of placeholders, and of messages
that `letta local-backend migrate-transcripts` made from an older format."""
REMINDER = "<system-reminder>"
"""The beginning of a text that Letta Code adds to a message of the user."""
FIELDS: Fields = {"": {
    "role": (str,), "content": (list, str), "api": (str,), "model": (str,), "usage": (dict,), "stopReason": (str,),
    "errorMessage": (str,), "toolCallId": (str,), "toolName": (str,), "isError": (bool,), "metadata": (dict,),
}}


def sniff(head: bytes, path: str) -> int:
    """Recognises a message that names its agent and its conversation."""
    return 100 if any(map(_is_message, first_look(head).objects)) else 0


def _is_message(value: dict[str, Any]) -> bool:
    return "role" in value and {"agent_id", "conversation_id"} <= object_of(value.get("metadata")).keys()


class _Conversation(ChatReader):
    """One conversation being read."""

    name, agent, fields = "letta", "Letta Code", FIELDS
    key, unit, row_word = "id", "line", ("a message", "messages")
    words = "stop reasons are pi's words for the providers', which are not in the file"
    steered = True

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        about = object_beside(path, "conversation.json")
        self.title, self.session_id = known_text(about.get("summary")) or "", known_text(about.get("id")) or ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        message, role = line.value, line.value.get("role")
        if role == "assistant":
            return TreePlace(self._answer(line, message, place))
        if role == "user":
            return self._user(line, message, place)
        row = interim_row(line, role, message) if role == "toolResult" else None
        if row is None:
            lines.count(role, frozenset())
            return place
        return place.after(row)

    def _user(self, line: TranscriptLine, message: dict[str, Any], place: TreePlace) -> TreePlace:
        if object_of(message.get("metadata")).get("compaction"):
            self.compacted = f"line {line.number}: the history was compacted before this answer"
            return place
        content = message.get("content")
        typed = [block for block in objects_of(content)
                 if not (known_text(block.get("text")) or "").lstrip().startswith(REMINDER)]
        return self.say(line, place, text_of(typed or content), own=isinstance(content, list) and not typed)

    def _answer(self, line: TranscriptLine, message: dict[str, Any], place: TreePlace) -> TranscriptAnswer:
        api = str(message.get("api"))
        named = {} if api in DEFAULTS else message
        answer = self.add(self.begin(f"line:{line.number}", APIS.get(api), named.get("model"), place, line))
        answer.started = moment_text(named.get("timestamp"))
        at = answer.take(line)
        take_content(answer, message.get("content"), line, at)
        answer.usage = usage_of(named.get("usage"), answer.api)
        take_end(answer, named, at)
        answer.unended = api == UNFINISHED
        answer.word_at = pointer_at(at, "api") if answer.unended else answer.word_at
        self.note_compaction(answer)
        return answer

    def infer_end(self, answer: TranscriptAnswer) -> StopReason:
        """The end of an answer without a stop word; a placeholder that other messages follow was not completed."""
        if answer.unended and (answer.after or answer.next):
            note = "the row is a placeholder of an answer that never became complete, and the session went on"
            return inferred_reason(Stop.INTERRUPTED, answer.word_at, "placeholder", answer.word_at, note)
        return super().infer_end(answer)


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of a conversation."""
    return _Conversation(path, options).read(data)
