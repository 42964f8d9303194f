"""The data export of Claude's apps: `conversations.json`, a list of conversations, or one conversation alone.

A message of Claude has the blocks of all answers of a turn: the tools run at Anthropic, and each answer ends at the
results of its calls. The export has no stop word; a conversation as the server sends it, which browser extensions
store, has `stop_reason` in each message, for the last answer. Arguments come parsed.
Sources: johnsteer1/claude-export-db `docs`; nicepkg/chat2poster `adapters/claude`; exports quoted in repositories.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.sessions import redact
from inspector.sessions.importers.records import Piece, first_look, list_pieces
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.traffic import parse_prefix
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, results_of, take_block, words_of
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from inspector.sessions.transcripts.provider_answers import take_api_word
from loop_core.wire.anthropic_messages.table import API, STOP_REASONS

MESSAGES = "chat_messages"
FIELDS: Fields = {"": {"uuid": (str,), "sender": (str,), "text": (str,), "content": (list,), "stop_reason": (str,),
                       "parent_message_uuid": (str,)}}


def sniff(head: bytes, path: str) -> int:
    """Recognises a conversation, or a list of them, by the first message."""
    first = first_look(head).first
    messages = (row for each in objects_of(first) or [object_of(first)] for row in objects_of(each.get(MESSAGES)))
    return 98 if {"uuid", "sender"} <= next(messages, {}).keys() else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of all conversations."""
    reader = _Conversations(path, options)
    pieces = list(list_pieces(data))
    if pieces:
        return reader.read_records(reader.several(_conversations(pieces)))
    about = object_of(parse_prefix(data))
    reader.title, reader.session_id, model = (redact.text(known_text(about.get(name)) or "") for name in (
        "name", "uuid", "model"))
    reader.model = model or None
    return reader.read_records(list_pieces(data, MESSAGES))


def _conversations(pieces: list[Piece]) -> Iterator[tuple[str, list[Piece]]]:
    for number, piece, _ in pieces:
        name = known_text(object_of(parse_prefix(piece)).get("name"))
        yield name or f"conversation {number}", list(list_pieces(piece, MESSAGES))


class _Conversations(ChatReader):
    name, agent, fields, own_api = "claude-ai", "Claude's export", FIELDS, API
    key, several_apis = "uuid", False

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, sender = line.value, line.value.get("sender")
        place = TreePlace(None) if self.begins(line) else self.places.get(
            hash(str(value.get("parent_message_uuid"))), place)
        content = value.get("content")
        if not isinstance(content, list) or not content:
            content = [known_text(value.get("text")) or ""]
        if sender == "human":
            return self.say(line, place, words_of(content))
        if sender != "assistant":
            lines.count(sender, frozenset[str]())
            return place
        answer = None
        for number, block in enumerate(content):
            results = results_of([block])
            if results:
                place, answer = self.say(line, place, "", results), None
                continue
            if answer is None:
                answer = self.answer(line, place, f"block {number} of message")
                answer.started = known_text(value.get("created_at"))
                at = answer.word_at = answer.take(line)
                place = TreePlace(answer)
            if isinstance(block, dict):
                take_block(answer, block, line, at, "content", number)
            else:
                answer.add_text(block)
        word = known_text(value.get("stop_reason"))
        if answer is not None and word is not None:
            take_api_word(answer, word, pointer_at(answer.word_at, "stop_reason"), STOP_REASONS)
        return place
