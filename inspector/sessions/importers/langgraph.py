"""LangChain's messages: in JSON, and in the checkpoints of LangGraph (databases of its `SqliteSaver`).

JSON is a list of messages, as `dumps` or `messages_to_dict` writes it (`FileChatMessageHistory`), or `JSON.stringify`
in LangChain.js. A checkpoint is MessagePack, in LangGraph.js JSON; the last one of a thread has all of its messages.
Their `response_metadata` has the provider's own stop word, as in a run of LangSmith. The arguments of a call are
parsed; LangChain passes the rest of Claude's cut arguments to the tool. A record is the JSON of a message. Sources:
langgraph-checkpoint-sqlite, langgraph-checkpoint `serde/jsonplus.py`; 30 threads that langgraph 1.2 wrote over three
APIs, and 14 lists that langchain-core 1.8 wrote; those of @langchain/core 1.4 and @langchain/langgraph 1.7.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import has, schema, snapshot
from inspector.sessions.importers.langsmith import APIS, plain_message, take_message_end
from inspector.sessions.importers.msgpack import Extension, unpacked
from inspector.sessions.importers.otlp import take_output
from inspector.sessions.importers.records import first_look, list_pieces, number_records
from inspector.sessions.importers.span_messages import message_of
from inspector.sessions.notices import Notice
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.traffic import loads
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.dialogue import DialogueReader
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from loop_core.values import ToolResultPart

FIELDS: Fields = {"": {"thread": (str,), "type": (str,), "content": (str, list), "response_metadata": (dict,)}}
CHANNEL = "messages"
"""The channel of a graph with its messages."""
CLASSES = range(6)
"""The codes of extensions for an object: its module, its class, its members (`serde/jsonplus.py`)."""
SNAPSHOT = 7
"""The code of the extension for the whole value of a channel that otherwise stores only changes."""
GAVE_UP = "Sorry, need more steps to process this request."
"""The text that LangGraph writes instead of an answer for which no step of the graph is left
(`chat_agent_executor.py`)."""
FORMS = (frozenset({"lc", "id", "kwargs"}), frozenset({"type", "data"}))
"""The members of a message as `dumps` and as `messages_to_dict` write it."""
TYPES = frozenset({"user", "ai", "system", "tool"})
PASSED = frozenset({"system", "remove"})
"""The types of messages without a part of an exchange."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the columns of its tables, or the first message of a list."""
    if not head.startswith(SQLITE):
        first = next(iter(objects_of(first_look(head).first)), {})
        own = any(first.keys() >= members for members in FORMS) and plain_message(first)["role"] in TYPES
        return 96 if own and "content" in object_of(first.get("kwargs", first.get("data"))) else 0
    found = schema(path)
    own = has(found, "checkpoints", "thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint")
    return 95 if own and has(found, "writes", "thread_id", "channel", "value") else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in a list, or in the last checkpoint of each thread."""
    reader = _Threads(path, options)
    return reader.read_records(number_records(reader.rows()) if data.startswith(SQLITE) else list(list_pieces(data)))


class _Threads(DialogueReader):
    name, agent, fields = "langgraph", "LangGraph", FIELDS
    unit, row_word = "message", ("a message", "messages")
    key = ""  # a graph within another one also has the messages of that one

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.unread: Counter[str] = Counter()
        """Reason why checkpoints were not read -> their number."""

    def rows(self) -> Iterator[bytes]:
        """The messages of each thread, and of each graph within it."""
        with snapshot(self.path) as database:
            # Ids begin with their time (UUIDs of version 6).
            for row in database.execute(
                    "SELECT thread_id, checkpoint_ns, type, checkpoint FROM checkpoints AS last WHERE checkpoint_id = "
                    "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = last.thread_id AND checkpoint_ns = "
                    "last.checkpoint_ns) ORDER BY rowid"):
                thread = f"{row['thread_id']}{' ' if row['checkpoint_ns'] else ''}{row['checkpoint_ns']}"
                for message in self._messages(row["type"], row["checkpoint"]):
                    yield json.dumps({**message, "thread": thread}).encode()

    def _messages(self, kind: Any, checkpoint: Any) -> list[dict[str, Any]]:
        if kind not in ("msgpack", "json") or not isinstance(checkpoint, bytes):
            self.unread["are of another type than msgpack and json"] += 1
            return []
        try:
            held = object_of(_plain_value(unpacked(checkpoint)) if kind == "msgpack" else loads(checkpoint))
        except ValueError:
            self.unread["are damaged"] += 1
            return []
        values = held.get("channel_values")
        listed = object_of(values).get(CHANNEL)
        if listed is None and CHANNEL in object_of(held.get("channel_versions")):
            self.unread["hold no messages beside their version, as a channel that stores changes alone does"] += 1
        return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []

    def session_of(self, value: dict[str, Any]) -> str:
        """The thread of a message."""
        key = known_text(value.get("thread")) or self.session
        if key:
            self.titles[key] = key
        return key

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads one message."""
        value = line.value
        message = plain_message(value)
        role, text, held = message.get("role"), message.get("content"), object_of(message.get("response_metadata"))
        if role == "ai" and text == GAVE_UP and not held:
            self.say(line.number, f"LangGraph says: {GAVE_UP}", mark="stopped")
        elif role == "ai":
            provider = known_text(held.get("model_provider")) or ""
            answer = self.answer_of(line, f"message:{line.number}", APIS.get(provider), None)
            at = answer.word_at = answer.take(line)
            take_output(answer, message_of(message), at)
            within = [name for name in ("kwargs", "data") if "response_metadata" in object_of(value.get(name))]
            take_message_end(answer, message, provider, at, *within, "response_metadata")
        elif role == "tool":
            self.results(line.number, ToolResultPart(
                known_text(message.get("tool_call_id")), known_text(message.get("name")), any_text(text),
                message.get("status") == "error"))
        elif role == "user":
            self.say(line.number, any_text(text))
        else:
            lines.count(role, PASSED)
        return self.here

    def summarise(self) -> None:
        """Also reports the checkpoints that were not read."""
        super().summarise()
        self.reading.notices += [Notice(f"last checkpoints of a thread that {why}, and were not read", {"": count})
                                 for why, count in self.unread.items()]


def _plain_value(value: Any, level: int = 0) -> Any:
    """A value without extensions: an object of a class becomes its members, a snapshot its value, and any other
    extension, or bytes, None."""
    if isinstance(value, list):
        return [_plain_value(each, level + 1) for each in value]
    if isinstance(value, dict):
        return {name: _plain_value(each, level + 1) for name, each in value.items()}
    if isinstance(value, Extension) and value.code == SNAPSHOT:
        return _plain_value(unpacked(value.data, level + 1), level + 1)
    if isinstance(value, Extension) and value.code in CLASSES:
        inner = _plain_value(unpacked(value.data, level + 1), level + 1)
        return inner[2] if isinstance(inner, list) and len(inner) > 2 else None
    return None if isinstance(value, bytes | Extension) else value
