"""Messages that LlamaIndex stores: `SimpleChatStore.persist()`, the database of `Memory`, `Context.to_dict()` with the
memory of an agent, and lists of `ChatMessage.model_dump()`.

Only a streamed answer of Claude has a stop word, the provider's own, and counts. The arguments of OpenAI's calls are
the text that the model wrote; those of other providers are parsed. LlamaIndex completes cut arguments and runs the
call. A failed run leaves only the message of the user; an answer that was cut while it was streamed from the
Responses API is an empty message. Sources: llama-index-core 0.11 and 0.14 `base/llms/types.py`, `storage/chat_store/`,
`agent/workflow/base_agent.py`, llama-index-llms-anthropic 0.12 `base.py`; 107 files that they wrote of five APIs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import schema, snapshot
from inspector.sessions.importers.recognition import own_tables
from inspector.sessions.importers.records import (
    compact_json,
    first_look,
    list_pieces,
    number_records,
    object_in,
    whole_object,
    with_ids,
)
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_block, take_call, take_calls
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of, usage_in
from inspector.sessions.transcripts.provider_answers import take_api_word
from loop_core.values import At, Finding, OpaquePart, Severity
from loop_core.wire import wire

FIELDS: Fields = {"": {"session": (str,), "role": (str,), "blocks": (list,), "additional_kwargs": (dict,)},
                  "additional_kwargs": {"tool_calls": (list,), "tool_call_id": (str,), "stop_reason": (str,)}}
MESSAGE = frozenset({"role", "additional_kwargs"})
CLAUDE = "anthropic_messages"
MODEL = frozenset({"assistant", "chatbot", "model"})
TOOL = frozenset({"tool", "function"})
COMPONENT = b"__is_component"
"""The mark of an object in `Context.to_dict()`, such as the memory of an agent."""
NOT_STORED = "transcript.not_stored"
"""The rule of the finding that LlamaIndex stored no part of an answer."""


def sniff(head: bytes, path: str) -> int:
    """Recognises a chat store, the memory of a context, or a list of messages."""
    look = first_look(head)
    first = look.first
    if isinstance(first, dict) and COMPONENT in look.text and b"chat_store" in look.text:
        return 95
    lists = object_of(object_of(first).get("store")).values() if isinstance(first, dict) else (first,)
    return 96 if any(messages and _is_message(messages[0]) for messages in map(objects_of, lists)) else 0


def _is_message(value: dict[str, Any]) -> bool:
    return value.keys() >= MESSAGE and ("blocks" in value or "content" in value)


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    reader = _Chats(path, options)
    if data.startswith(SQLITE):
        return reader.read_records(number_records(_rows(path)))
    if messages := list(list_pieces(data)):
        return reader.read_records(messages)
    return reader.read_records(number_records(_stored_messages(whole_object(data))))


def _rows(path: str) -> Iterator[bytes]:
    """The messages in the tables of a database, in the order of their times."""
    with snapshot(path) as database:
        for name in own_tables("llama-index", schema(path)):
            quoted = name.replace('"', '""')
            for row in database.execute(f'SELECT "key", data FROM "{quoted}" ORDER BY timestamp, rowid'):  # noqa: S608
                yield with_ids(row["data"], session=row["key"])


def _stored_messages(value: dict[str, Any]) -> Iterator[bytes]:
    """The messages of a chat store, or of the memory in a context; each names its session."""
    store = value.get("store")
    if not isinstance(store, dict):
        state = object_of(object_of(object_of(value.get("state")).get("state_data")).get("_data"))
        memory = object_in(known_text((state or object_of(value.get("globals"))).get("memory")) or "")
        store = object_of(object_of(object_of(memory.get("value")).get("chat_store")).get("store"))
    for key, messages in store.items():
        for message in objects_of(messages):
            yield compact_json({"session": key, **message})


class _Chats(ChatReader):
    name, agent, fields = "llama-index", "LlamaIndex", FIELDS
    unanswered = "end a session with a message of the user, as a run that failed leaves it"

    def session_of(self, value: dict[str, Any]) -> str:
        """The key of the chat; empty in a list of messages."""
        key = known_text(value.get("session")) or self.session
        if key:
            self.titles[key] = key
        return key

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role = line.value, known_text(line.value.get("role"))
        about, text = object_of(value.get("additional_kwargs")), _text(value)
        if role in MODEL:
            return self._answer(line, about, place)
        if role in TOOL:
            return self.result(line, place, about.get("tool_call_id"), text, name=about.get("name"))
        if role == "user":
            return self.say(line, place, text)
        lines.count(role, frozenset({"system", "developer"}))
        return place

    def _answer(self, line: TranscriptLine, about: dict[str, Any], place: TreePlace) -> TreePlace:
        word = known_text(about.get("stop_reason"))
        answer = self.answer(line, place, api=CLAUDE if word else None)
        at = answer.word_at = answer.take(line)
        answer.add_text(line.value.get("content"))
        for number, block in numbered_objects(line.value.get("blocks")):
            _take_block(answer, block, line, at, number)
        if not answer.calls:  # before 0.14 the calls were only here
            _take_calls(answer, about, line, at)
        answer.usage = usage_in(object_of(about.get("usage")), "input_tokens", "output_tokens")
        if word:
            take_api_word(answer, word, pointer_at(at, "additional_kwargs", "stop_reason"),
                          wire(CLAUDE).stop_reasons)
        elif not answer.parts:
            answer.findings.append(Finding(NOT_STORED, Severity.INFO, f"message {line.number}: LlamaIndex stored no "
                                           "part of this answer, as of one that was cut in a stream", at))
        return TreePlace(answer)


def _text(value: dict[str, Any]) -> str:
    """The text of a message; before 0.12 a message had `content` instead of blocks."""
    texts = [block["text"] for block in objects_of(value.get("blocks")) if isinstance(block.get("text"), str)]
    return "\n".join(texts) or any_text(value.get("content"))


def _take_block(answer: TranscriptAnswer, block: dict[str, Any], line: TranscriptLine, at: At, number: int) -> None:
    kind = block.get("block_type")
    if kind == "tool_call":
        take_call(answer, block, line, at, "blocks", number, key="tool_call_id", name="tool_name", member="tool_kwargs")
    elif kind == "thinking":
        answer.add_thought(block.get("content"))
    elif isinstance(block.get("text"), str):
        answer.add_text(block["text"])
    else:
        answer.parts.append(OpaquePart(str(kind), slice_of(line.data, "blocks", number) or "{}"))


def _take_calls(answer: TranscriptAnswer, about: dict[str, Any], line: TranscriptLine, at: At) -> None:
    """Reads the calls beside the blocks, in OpenAI's or in Anthropic's form."""
    path = ("additional_kwargs", "tool_calls")
    if any("function" in call for call in objects_of(about.get("tool_calls"))):
        take_calls(answer, about["tool_calls"], line, at, *path)
        return
    for number, call in numbered_objects(about.get("tool_calls")):
        take_block(answer, call, line, at, *path, number)
