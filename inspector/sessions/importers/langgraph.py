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
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import snapshot
from inspector.sessions.importers.langsmith import APIS, plain_message, take_message_end
from inspector.sessions.importers.records import first_look, list_pieces, number_records
from inspector.sessions.importers.span_messages import message_of, take_output
from inspector.sessions.notices import Notice
from inspector.sessions.reasons import unrecorded_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.traffic import loads
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of

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
    """Recognises the first message of a list."""
    first = next(iter(objects_of(first_look(head).first)), {})
    own = any(first.keys() >= members for members in FORMS) and plain_message(first)["role"] in TYPES
    return 96 if own and "content" in object_of(first.get("kwargs", first.get("data"))) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in a list, or in the last checkpoint of each thread."""
    reader = _Threads(path, options)
    return reader.read_records(number_records(reader.rows()) if data.startswith(SQLITE) else list(list_pieces(data)))


class _Threads(ChatReader):
    name, agent, fields = "langgraph", "LangGraph", FIELDS
    wordless = False  # and without a key: a graph within another one also has the messages of that one

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
            held = object_of(_plain_value(unpack(checkpoint)) if kind == "msgpack" else loads(checkpoint))
        except ValueError:
            self.unread["are damaged"] += 1
            return []
        values = held.get("channel_values")
        listed = object_of(values).get(CHANNEL)
        if listed is None and CHANNEL in object_of(held.get("channel_versions")):
            self.unread["hold no messages beside their version, as a channel that stores changes alone does"] += 1
        return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []

    def session_of(self, value: dict[str, Any]) -> str:
        key = known_text(value.get("thread")) or self.session
        if key:
            self.titles[key] = key
        return key

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value = line.value
        message = plain_message(value)
        role, text, held = message.get("role"), message.get("content"), object_of(message.get("response_metadata"))
        if role == "ai" and text == GAVE_UP and not held:
            self.say(line, place, f"LangGraph says: {GAVE_UP}", mark="stopped")
        elif role == "ai":
            provider = known_text(held.get("model_provider")) or ""
            answer = self.answer(line, place, api=APIS.get(provider))
            at = answer.word_at = answer.take(line)
            take_output(answer, message_of(message), at)
            within = [name for name in ("kwargs", "data") if "response_metadata" in object_of(value.get(name))]
            ended = take_message_end(answer, message, provider, at, *within, "response_metadata")
            parsed = any(isinstance(call.get("args"), dict) for call in objects_of(message.get("tool_calls")))
            if not ended and parsed and provider in APIS:  # LangChain completes what came of a call, and runs it
                answer.stop = unrecorded_reason(at)
        elif role == "tool":
            self.result(line, place, message.get("tool_call_id"), any_text(text), message.get("status") == "error",
                        message.get("name"))
        elif role == "user":
            self.say(line, place, any_text(text))
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
        return _plain_value(unpack(value.data, level + 1), level + 1)
    if isinstance(value, Extension) and value.code in CLASSES:
        inner = _plain_value(unpack(value.data, level + 1), level + 1)
        return inner[2] if isinstance(inner, list) and len(inner) > 2 else None
    return None if isinstance(value, bytes | Extension) else value


# -- MessagePack: plain values, never an object of a class that a file names. Source: msgpack's spec.md --------------

MOST_LEVELS = 100
"""The largest depth of lists, maps and extensions that is read."""
MOST_KEY = 200
"""The length of a key that is no text. A key within a key would double its escapes with each level."""
NUMBERS: Mapping[int, str] = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}
"""First byte of a number -> its format for `struct`."""
LENGTHS: Mapping[int, tuple[str, str]] = {
    0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"),
    0xC7: ("ext", ">B"), 0xC8: ("ext", ">H"), 0xC9: ("ext", ">I"),
    0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I"),
    0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}
"""First byte of a value with a length -> its kind, and the format of the length."""
CONSTANTS: Mapping[int, bool | None] = {0xC0: None, 0xC2: False, 0xC3: True}


class Extension(NamedTuple):
    """A value of a type that the writer defined."""

    code: int
    data: bytes


def unpack(data: bytes, level: int = 0) -> Any:
    """The only value in the data. Raises `ValueError` if it is cut or not MessagePack."""
    try:
        value, at = _value(data, 0, level)
    except (IndexError, struct.error) as why:
        raise ValueError("cut MessagePack") from why
    if at != len(data):
        raise ValueError(f"more than one value in MessagePack, at byte {at}")
    return value


def _value(data: bytes, at: int, level: int) -> tuple[Any, int]:
    """The value at an offset, and the offset after it."""
    first, at = data[at], at + 1
    if first < 0x80 or first >= 0xE0:
        return first if first < 0x80 else first - 0x100, at
    if first in CONSTANTS:
        return CONSTANTS[first], at
    if first in NUMBERS:
        return _number(data, at, NUMBERS[first])
    if 0xD4 <= first <= 0xD8:
        return _container("ext", 1 << (first - 0xD4), data, at, level)
    if first < 0xC0:
        kind = "str" if first >= 0xA0 else "list" if first >= 0x90 else "map"
        return _container(kind, first & (0x1F if kind == "str" else 0x0F), data, at, level)
    if first not in LENGTHS:
        raise ValueError(f"no MessagePack at byte {at - 1}")
    kind, form = LENGTHS[first]
    length, at = _number(data, at, form)
    return _container(kind, length, data, at, level)


def _number(data: bytes, at: int, form: str) -> tuple[Any, int]:
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)


def _container(kind: str, length: int, data: bytes, at: int, level: int) -> tuple[Any, int]:
    """A text, bytes, an extension, a list or a map of this length."""
    if kind in ("list", "map", "ext") and level >= MOST_LEVELS:
        raise ValueError(f"MessagePack of more than {MOST_LEVELS} levels")
    if kind in ("list", "map"):
        values = []
        for _ in range(length * (2 if kind == "map" else 1)):
            value, at = _value(data, at, level + 1)
            values.append(value)
        if kind == "list":
            return values, at
        # keys become text, as in JSON, also lists and maps
        keys = [key if isinstance(key, str) else str(key)[:MOST_KEY] for key in values[::2]]
        return dict(zip(keys, values[1::2], strict=True)), at
    end = at + length + (kind == "ext")
    if end > len(data):
        raise ValueError("cut MessagePack")
    held = data[at:end]
    if kind == "ext":
        return Extension(held[0], held[1:]), end
    return (held.decode("utf-8", "replace") if kind == "str" else held), end
