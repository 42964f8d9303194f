"""Conversations of LibreChat: its export as JSON, and the list of messages that its server returns.

A message of the model has the blocks of all answers of a turn: text, thoughts, and calls with their results. Arguments
are the model's text; those of a call that ran are rewritten from the parsed ones. The stop word is that of OpenAI's
API, or `incomplete` for an answer that was stopped; most releases write none. Sources: danny-avila/LibreChat
`useExportConversation.ts`, `useBuildMessageTree.ts`, `schema/message.ts`, `BaseClient.js`, `abortMiddleware.js`;
danny-avila/agents `stream.ts`, `tools/ToolNode.ts`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import Piece, compact_json, first_look, list_pieces, number_records
from inspector.sessions.reasons import recorder_reason
from inspector.sessions.recording import FileReading, Options, UnreadableError
from inspector.sessions.traffic import parse_prefix
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of
from inspector.sessions.transcripts.provider_answers import take_word
from loop_core.values import OpaquePart, Stop, ToolResultPart

MESSAGE = frozenset({"messageId", "isCreatedByUser"})
FIELDS: Fields = {"": {"messageId": (str,), "parentMessageId": (str,), "text": (str,), "content": (list,),
                       "finish_reason": (str,), "model": (str,)}}
STOPPED = "incomplete"
"""The stop word for an answer that the user stopped, or whose stream broke."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the first message of a conversation."""
    first = first_look(head).first
    whole = object_of(first)
    messages = objects_of(first) or objects_of(whole.get("messages")) or objects_of(whole.get("messagesTree"))
    # An export may nest its messages more deeply than JSON is parsed.
    deep = first is None and all(b'"%s":' % name in head for name in (b"conversationId", b"messageId", b"children"))
    return 97 if deep or (messages and messages[0].keys() >= MESSAGE) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the conversation."""
    reader = _Conversation(path, options)
    pieces = list(list_pieces(data))
    if not pieces:
        about = object_of(parse_prefix(data))  # `messagesTree` is an older name
        pieces = list(list_pieces(data, "messages")) or list(list_pieces(data, "messagesTree"))
        reader.title, reader.session_id = (redact.text(known_text(about.get(name)) or "") for name in (
            "title", "conversationId"))
    return reader.read_records(number_records(_flat(pieces), any(cut for _, _, cut in pieces)))


def _flat(pieces: list[Piece]) -> Iterator[bytes]:
    """The messages, each before those below it (`children`), as the export nests them."""
    for _, piece, cut in pieces:
        if b'"children"' not in piece or (cut and parse_prefix(piece)):
            yield piece
            continue
        stack = [parse_prefix(piece)]
        if stack == [None]:
            raise UnreadableError("its messages are nested too deeply: expected an export without the option Recursive")
        while stack:
            message = object_of(stack.pop())
            stack += reversed(objects_of(message.pop("children", None)))
            yield compact_json(message)


class _Conversation(ChatReader):
    name, agent, fields = "librechat", "LibreChat", FIELDS
    key = "messageId"

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a message of the user, or the answers in a message of the model."""
        value, parent = line.value, known_text(line.value.get("parentMessageId"))
        place = place if parent is None else self.places.get(hash(parent), TreePlace(None))
        blocks = numbered_objects(value.get("content")) or [(0, {"type": "text", "text": value.get("text")})]
        if value.get("isCreatedByUser") is True:
            return self.say(line, place, "\n".join(filter(None, (_text(block) for _, block in blocks))))
        answer: TranscriptAnswer | None = None
        results: list[ToolResultPart] = []
        for number, block in blocks:
            if results and block.get("type") != "tool_call":  # an answer ends at the results of its calls
                place, answer, results = self.results(line, place, *results), None, []
            if answer is None:
                answer = self.answer(line, place, f"block {number} of message", value.get("model"),
                                     begin=value.get("createdAt"))
                answer.word_at = answer.take(line)
                place = TreePlace(answer)
            results += _take_block(answer, block, line, number)
        place = self.results(line, place, *results)
        broken = value.get("error") is True or value.get("unfinished") is True or value.get("finish_reason") == STOPPED
        if answer is not None and broken and len(results) == len(answer.calls) > 0:
            # All its calls had run, so it was whole: what ended is the next answer.
            answer, results = self.answer(line, place, "end of message", value.get("model")), []
            answer.word_at = answer.take(line)
            place = TreePlace(answer)
        if answer is not None:
            _end(answer, value, bool(results))
        if value.get("isEdited") is True:
            self.remarks["were edited or continued, so their text may not be one answer"] += 1
        return place


def _text(block: dict[str, Any]) -> str:
    text = block.get("text")
    return known_text(object_of(text).get("value")) or any_text(text)


def _take_block(
    answer: TranscriptAnswer, block: dict[str, Any], line: TranscriptLine, number: int
) -> tuple[ToolResultPart, ...]:
    """Reads a block; returns the result of its call."""
    kind, call, at = block.get("type"), object_of(block.get("tool_call")), answer.word_at
    if kind == "tool_call":
        made = object_of(call.get("function"))  # the form of assistants
        path, member = (("tool_call", "function"), "arguments") if made else (("tool_call",), "args")
        key, made = known_text(call.get("id")), made or call
        take_call(answer, {**made, "id": key}, line, at, "content", number, *path, member=member)
        output = made.get("output")
        return () if output is None else (ToolResultPart(key, known_text(made.get("name")), any_text(output)),)
    if kind == "think":
        answer.add_thought(block.get("think"))
    elif kind == "error":
        answer.fail(_text(block) or any_text(block.get("error")), pointer_at(at, "content", number))
    elif kind == "text":
        answer.add_text(_text(block))
    else:
        answer.parts.append(OpaquePart(str(kind), slice_of(line.data, "content", number) or "{}"))
    return ()


def _end(answer: TranscriptAnswer, value: dict[str, Any], answered: bool) -> None:
    """Reads the end of the last answer of a message."""
    word, at = known_text(value.get("finish_reason")), pointer_at(answer.word_at, "finish_reason")
    if value.get("error") is True and answer.error is None:
        blocks = value.get("content")  # without blocks the text is the error's
        answer.fail((not blocks and answer.text) or "an error without a text", pointer_at(answer.word_at, "error"))
        answer.parts = answer.parts if blocks else []
    elif word == STOPPED or value.get("unfinished") is True:
        answer.word_at = at if word == STOPPED else pointer_at(answer.word_at, "unfinished")
        answer.stop = recorder_reason(Stop.INTERRUPTED, None, answer.word_at, word or "unfinished",
                                      "librechat.finish_reason")
    elif word is not None and not answered and answer.error is None:
        answer.word_at = at
        take_word(answer, word, at, "librechat.finish_reason", empty=False)
