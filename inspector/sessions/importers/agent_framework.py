"""Sessions of Microsoft's Agent Framework: `AgentSession.to_dict()` as JSON, as `FileSessionStore` writes it, and the
lines of `FileHistoryProvider`.

A message has no stop word, cap, count or model. The arguments of a call are the text that the model wrote, and the
framework runs no call whose arguments are not JSON. A run that failed is not stored, and a session whose messages the
service keeps has none. Sources: agent-framework-core 1.23 `_sessions.py`, `_types.py`; 26 files that it wrote over two
APIs of OpenAI.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from inspector.sessions.importers.records import first_look, first_value, list_pieces
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, take_call
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of
from loop_core.values import At, OpaquePart, ToolResultPart

FIELDS: Fields = {"": {"role": (str,), "contents": (list,)}}
MESSAGE = frozenset({"role", "contents"})
SESSION = frozenset({"session_id", "service_session_id", "state"})


def sniff(head: bytes, path: str) -> int:
    """Recognises a session, or the first message of a history."""
    first = object_of(first_look(head).first)
    message = first.get("type") == "message" and first.keys() >= MESSAGE
    return 96 if message or (first.get("type") == "session" and first.keys() >= SESSION) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of a session."""
    reader = _Session(path, options)
    about = object_of(first_value(data))
    if about.get("type") == "message":
        reader.unit = "line"
        return reader.read(data)
    reader.session_id = reader.title = known_text(about.get("session_id")) or ""
    providers = [name for name, state in object_of(about.get("state")).items() if "messages" in object_of(state)]
    if len(providers) > 1:
        return reader.read_records(reader.several((name, list_pieces(data, "state", name, "messages"))
                                                  for name in providers))
    return reader.read_records(chain.from_iterable(list_pieces(data, "state", name, "messages") for name in providers))


class _Session(ChatReader):
    name, agent, fields = "agent-framework", "the Agent Framework", FIELDS
    awaits_results = True
    unanswered = "end the session without an answer"

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        place = TreePlace(None) if self.begins(line) else place
        role, parts = line.value.get("role"), objects_of(line.value.get("contents"))
        if role == "assistant":
            return self._answer(line, place)
        if results := tuple(_result(part) for part in parts if part.get("type") == "function_result"):
            return self.say(line, place, "", results)
        if role == "user":
            return self.say(line, place, "\n".join(filter(None, (known_text(part.get("text")) for part in parts))))
        lines.count(role, frozenset({"system", "developer"}))
        return place

    def _answer(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        answer = self.answer(line, place)
        at = answer.word_at = answer.take(line)
        for number, part in numbered_objects(line.value.get("contents")):
            _take_part(answer, part, line, at, number)
        return TreePlace(answer)


def _take_part(answer: TranscriptAnswer, part: dict[str, Any], line: TranscriptLine, at: At, number: int) -> None:
    kind = part.get("type")
    if kind == "function_call":
        take_call(answer, part, line, at, "contents", number, key="call_id")
    elif kind == "text_reasoning":
        answer.add_thought(part.get("text"))
    elif kind == "text":
        answer.add_text(part.get("text"))
    else:
        answer.parts.append(OpaquePart(str(kind), slice_of(line.data, "contents", number) or "{}"))


def _result(part: dict[str, Any]) -> ToolResultPart:
    """The result of a call; one with an exception is an error."""
    return ToolResultPart(known_text(part.get("call_id")), None, any_text(part.get("result")),
                          part.get("exception") is not None)
