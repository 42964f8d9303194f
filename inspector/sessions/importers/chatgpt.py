"""The data exports of ChatGPT and DeepSeek: `conversations.json`, a list of conversations, or one conversation alone.

A conversation is a tree: `mapping` has, in any order, a node for each message with the id of its parent; `current_node`
is the last message of the branch that ChatGPT shows. Several messages of the model may be one answer: its thoughts, a
text and a call. A message to another recipient than `all` is a call; the messages of its tool below it are the results.

The stop word (`metadata.finish_details`) is ChatGPT's own. `status` does not show whether an answer is complete: it is
`finished_successfully` also for one that the token limit cut or the user stopped. Only a message with `end_turn` is the
end of a turn.
DeepSeek's messages have fragments, such as the user's request and the model's thoughts and response, and no stop word.
Source: exports in public repositories, of 2023 (192 conversations) and of 2024 and 2025 (single ones); the words of
`finish_details` also in OpenAI's guide to gpt-4-1106-vision-preview.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from inspector.sessions import redact
from inspector.sessions.importers.records import Piece, compact_json, first_look, in_tree, list_pieces
from inspector.sessions.reasons import recorder_reason, table_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.traffic import parse_prefix
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import first_text, known_text, moment_text, object_of, objects_of
from loop_core.values import At, CallKind, OpaquePart, Stop
from loop_core.wire.failures import StopRow
from loop_core.wire.json_values import member_spans

DONE, GROWING = "finished_successfully", "in_progress"
"""The states of a message that has ended, for whatever reason, and of one that was still being written."""
STOPPED = "stop"
"""The word for a message that the model itself ended. The answer may go on with another message."""
STOPS: Mapping[str, StopRow] = {
    STOPPED: StopRow(Stop.END_TURN, None, "exports; OpenAI's guide to vision, 2023"),
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, "exports: the next message goes on within the sentence"),
    "interrupted": StopRow(Stop.INTERRUPTED, None, "exports: the text ends within a sentence"),
    "client_stopped": StopRow(Stop.CANCELLED, None, "exports: the reason beside `interrupted`"),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, "exports: the text ends within a quotation"),
}
"""Type in `finish_details`, or the reason beside it -> its meaning."""
EVERYBODY = "all"
"""The recipient of a message that is not a call."""
NOT_SAID = frozenset({"model_editable_context", "reasoning_recap", "user_editable_context"})
"""The types of contents that ChatGPT itself writes: the memory, the time of thinking, the user's instructions."""
HIDDEN = "is_visually_hidden_from_conversation"
"""The member in the metadata of a message that ChatGPT does not show."""
FAULTS = ("in_kernel_exception", "system_exception")
"""The members with a failure, in `aggregate_result` of a Python run."""
FIELDS: Fields = {"": {"id": (str,), "message": (dict,), "parent": (str,)}}


def sniff(head: bytes, path: str) -> int:
    """Recognises a conversation, or a list of them, by the first node of its tree."""
    first = first_look(head).first
    return 98 if any(map(_is_conversation, objects_of(first)[:4] or [object_of(first)])) else 0


def _is_conversation(value: dict[str, Any]) -> bool:
    node = object_of(next(iter(object_of(value.get("mapping")).values()), None))
    return "id" in node and not {"message", "parent", "children"}.isdisjoint(node)


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of all conversations, branch after branch."""
    reader = (_DeepSeek if b'"fragments"' in data else _Conversations)(path, options)
    return reader.read_records(list(reader.nodes(data.removeprefix(b"\xef\xbb\xbf"))))


class MessageSeat(NamedTuple):
    """The place of a message in its conversation."""

    above: int | None
    """The number of its parent."""
    title: str
    """The title of its conversation, in a file of several."""
    shown: bool
    """Whether ChatGPT shows the branch with the message."""


class _Conversations(ChatReader):
    name, agent, fields = "chatgpt", "ChatGPT", FIELDS
    words = "stop reasons are those that ChatGPT writes down (finish_details), in words of its own"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.seats: dict[int, MessageSeat] = {}
        """Number of a message -> its place in its conversation."""
        self.below: dict[int | None, TreePlace] = {}
        """Number of a message -> the place after it."""
        self.growing: set[TranscriptAnswer] = set()
        """The answers that a message right below them continues."""
        self.pictures: dict[int, list[OpaquePart]] = {}
        """Number of a tool's message -> the pictures in it."""

    def nodes(self, data: bytes) -> Iterator[Piece]:
        """The nodes of all conversations, each below its parent, with their numbers in the file."""
        pieces = list(list_pieces(data)) if data.lstrip()[:1] == b"[" else [(1, data, True)]
        before = 0
        for _, piece, cut in pieces:
            conversation = object_of(parse_prefix(piece))
            mapping = object_of(conversation.get("mapping"))
            parents = {key: known_text(object_of(node).get("parent")) for key, node in mapping.items()}
            numbers = {key: before + at for at, key in enumerate(mapping, 1)}
            before += len(mapping)
            shown = set(_path_to(known_text(conversation.get("current_node")), parents)) or mapping.keys()
            title = redact.text(known_text(conversation.get("title")) or "")[:80]
            if len(pieces) == 1:
                self.title, self.session_id, title = title, known_text(conversation.get("id")) or "", ""
            text = piece.decode("utf-8", "surrogateescape")
            spans = member_spans(text, "mapping")
            for row in in_tree([{"id": key, "parent": above} for key, above in parents.items()], "parent"):
                key, above = row["id"], parents[row["id"]]
                if above is not None and above not in mapping:
                    self.remarks["name a parent that is not in the file, so they begin a tree of their own"] += 1
                self.seats[numbers[key]] = MessageSeat(numbers.get(above or ""), title, key in shown)
                start, end = spans[key]
                yield numbers[key], text[start:end].encode("utf-8", "surrogateescape"), cut and end is None

    def above(self, value: dict[str, Any]) -> TreePlace:
        """An empty place: ids are unique only within one conversation, so `take` finds parents by number."""
        return TreePlace(None)

    def keep(self, line: TranscriptLine, place: TreePlace) -> None:
        self.below[line.number] = place

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        seat = self.seats[line.number]
        place, self.session = self.below.get(seat.above, place), seat.title
        message = object_of(line.value.get("message"))
        content, metadata = object_of(message.get("content")), object_of(message.get("metadata"))
        role, kind = object_of(message.get("author")).get("role"), known_text(content.get("content_type"))
        if not message:
            return place
        if role == "assistant" and kind not in NOT_SAID:
            return self._answer(line, message, place)
        above = place.right_above
        if role == "assistant" and above is not None and above in self.growing:
            above.take(line)  # the time of thinking
        elif role == "tool":
            return self._result(line, message, place)
        elif role == "user" and kind not in NOT_SAID and metadata.get(HIDDEN) is not True:
            return self.say(line, place, _text(content))
        else:
            lines.count(role, frozenset({"assistant", "system", "developer", "user"}))
        return place

    def _answer(self, line: TranscriptLine, message: dict[str, Any], place: TreePlace) -> TreePlace:
        answer = place.right_above
        if answer is None or answer not in self.growing:
            model = known_text(object_of(message.get("metadata")).get("model_slug"))
            answer = self.answer(line, place, model=model)
            answer.started = moment_text(message.get("create_time"))
            if not self.seats[line.number].shown:
                self.remarks["begin an answer on a branch that ChatGPT does not show (current_node)"] += 1
        at = answer.take(line)
        called = known_text(message.get("recipient")) not in (None, EVERYBODY)
        if called:
            answer.parts.append(_call(message, line, at))
        else:
            _take_content(answer, object_of(message.get("content")))
            # Right below a picture that a tool made, the model writes nothing: ChatGPT shows the picture instead.
            pictures = [each for row in place.rows() for each in self.pictures.get(row.line, ())]
            answer.parts += [] if answer.parts else pictures
        self._end(answer, message, called, at)
        ended = message.get("end_turn") is True and answer.word is None
        return TreePlace(answer).after(InterimRow(line.number, "end_turn", mark="ended", unit=self.unit)) if (
            ended) else TreePlace(answer)

    def _end(self, answer: TranscriptAnswer, message: dict[str, Any], called: bool, at: At) -> None:
        """Sets the stop reason of an answer by its last message."""
        word, path = _word_of(message)
        goes_on = message.get("end_turn") is False and word in (None, STOPPED)
        answer.unended = message.get("status") == GROWING
        answer.word, answer.word_at = word, pointer_at(at, "message", *path) if word is not None else at
        answer.stop = None
        if word == STOPPED and called:
            answer.stop = recorder_reason(Stop.TOOL_CALL, None, answer.word_at, word, "chatgpt.recipient")
        elif word == STOPPED and goes_on:
            answer.stop = recorder_reason(Stop.UNKNOWN, None, answer.word_at, word, "chatgpt.end_turn")
        elif word is not None:
            answer.stop = table_reason(word, STOPS, answer.word_at, "chatgpt.finish_details")
        if goes_on and not called:
            self.growing.add(answer)
        else:
            self.growing.discard(answer)

    def _result(self, line: TranscriptLine, message: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads a message of a tool, which is a result, unless ChatGPT adds it to a message of the user."""
        content, name = object_of(message.get("content")), known_text(object_of(message.get("author")).get("name"))
        if place.answer is None or place.has_user_message:
            return self.say(line, place, _text(content), own=True)
        call = next((call for call in place.answer.calls if name and f"{call.name}.".startswith(f"{name}.")), None)
        self.pictures[line.number] = [
            _opaque(part) for part in objects_of(content.get("parts")) if "asset_pointer" in part]
        run = object_of(object_of(message.get("metadata")).get("aggregate_result"))
        failed = content.get("content_type") == "system_error" or any(run.get(fault) for fault in FAULTS)
        return self.result(line, place, call.id if call else None, _text(content), failed, name)


class _DeepSeek(_Conversations):
    name, agent, words = "deepseek", "DeepSeek", ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a message: the model's, or the user's, which is a request."""
        seat = self.seats[line.number]
        place, self.session = self.below.get(seat.above, place), seat.title
        message = object_of(line.value.get("message"))
        fragments = [(str(each.get("type")), each) for each in objects_of(message.get("fragments"))]
        if not fragments:
            return place
        if any(kind == "REQUEST" for kind, _ in fragments):
            return self.say(line, place, "\n".join(known_text(each.get("content")) or "" for _, each in fragments))
        answer = self.answer(line, place, model=known_text(message.get("model")))
        answer.started = known_text(message.get("inserted_at"))
        answer.word_at = answer.take(line)
        for kind, each in fragments:
            if kind == "THINK":
                answer.add_thought(each.get("content"))
            elif kind == "RESPONSE":
                answer.add_text(each.get("content"))
            else:
                answer.parts.append(OpaquePart(kind, compact_json(each).decode()))
        return TreePlace(answer)


def _path_to(key: str | None, parents: Mapping[str, str | None]) -> Iterator[str]:
    """The nodes from this one up to the root; none if the file has no such node."""
    passed: set[str] = set()
    while key is not None and key in parents and key not in passed:
        passed.add(key)
        yield key
        key = parents[key]


def _word_of(message: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """The stop word of a message, and its path. A state that contradicts a clean word is used instead."""
    details = object_of(object_of(message.get("metadata")).get("finish_details"))
    kind, reason, state = known_text(details.get("type")), known_text(details.get("reason")), known_text(
        message.get("status"))
    if reason in STOPS:
        return reason, ("metadata", "finish_details", "reason")
    if kind in (None, STOPPED) and state not in (None, DONE):
        return None if state == GROWING else state, ("status",)
    return kind, ("metadata", "finish_details", "type")


def _call(message: dict[str, Any], line: TranscriptLine, at: At) -> Any:
    """A message as a call, with its recipient as name and its own id, because calls have none. Only some contents are
    known to be JSON: others are code, or arguments in another form."""
    content = object_of(message.get("content"))
    whole = _word_of(message)[0] == STOPPED
    call = call_of(message.get("id"), message.get("recipient"), _text(content),
                   partial(slice_of, line.data, "message", "content"), "text", pointer_at(at, "message", "content"))
    kind = call.kind if content.get("language") == "json" else CallKind.CUSTOM
    return call._replace(kind=kind, closed=whole)


def _take_content(answer: TranscriptAnswer, content: dict[str, Any]) -> None:
    """Reads the thoughts, the texts or other parts of a message of the model."""
    for thought in objects_of(content.get("thoughts")):
        answer.add_thought(first_text(thought.get("content"), thought.get("summary")))
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [content]:
        if isinstance(part, str):
            answer.add_text(part)
        elif isinstance(part, dict) and known_text(part.get("text")):
            answer.add_text(part["text"])
        elif isinstance(part, dict) and "thoughts" not in part:
            answer.parts.append(_opaque(part))


def _opaque(part: dict[str, Any]) -> OpaquePart:
    """A part that is not text, such as a picture."""
    return OpaquePart(str(part.get("content_type")), compact_json(part).decode())


def _text(content: dict[str, Any]) -> str:
    """The text of a message; other parts are named."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return first_text(content.get("text"), content.get("result"))
    return "\n".join(part if isinstance(part, str) else known_text(part.get("text")) or f"[{part.get('content_type')}]"
                     for part in parts if isinstance(part, (str, dict)))
