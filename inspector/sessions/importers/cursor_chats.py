"""Chats of Cursor's editor: `state.vscdb`, whose table `cursorDiskKV` has a row for each chat and for each message.

`composerData:<chat>` has the order of the messages, the model, and the state of the last turn. `bubbleId:<chat>:<id>`
has a message of the user, or a text, a thought or a call of the model; a call has its result with it. No row says
where an answer ends, so consecutive calls are one answer. No stop word or cap is stored, and counts only of a few
messages. The database also has credentials, in rows that are not read. Cursor's source is not public: the members are
those that public readers of this database use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from inspector.sessions import intake, redact
from inspector.sessions.importers.database import LARGEST, has, schema, snapshot
from inspector.sessions.importers.records import as_text, compact_json, elements, number_records, object_in, with_ids
from inspector.sessions.reasons import UNREAD_CALL
from inspector.sessions.recording import FileReading, Options, Skipped
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from loop_core.values import ArgsForm, Finding, Severity, ToolCall, ToolResultPart
from loop_core.wire.body import read_object

if TYPE_CHECKING:
    import sqlite3

USER, MODEL = 1, 2
"""The types of messages."""
SUMMARY = 22
"""The kind (`capabilityType`) of a message that says that the context was summarised."""
ENDS = {"completed": "ended", "aborted": "interrupted"}
"""State of a chat -> the mark of the row after its last message. Other states say nothing about the end."""
DONE = frozenset({"completed", "error", "cancelled"})
"""The states of a call that has ended; any other call may not be complete."""
FIELDS: Fields = {
    "": {"type": (int,), "text": (str,), "toolFormerData": (dict,), "modelInfo": (dict,), "errorDetails": (dict,)},
    "toolFormerData": {"name": (str,), "status": (str,), "toolCallId": (str,)},
}


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of all chats."""
    reader = _Chats(path, options)
    return reader.read_records(number_records(reader.rows()))


class _Chats(ChatReader):
    name, agent, fields, unit, row_word = "cursor-chats", "Cursor", FIELDS, "message", ("a message", "messages")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.batch: tuple[TranscriptAnswer, str] | None = None
        """The answer to whose calls a further call may belong, and the id of its request, which may be empty."""

    def rows(self) -> Iterator[bytes]:
        """The messages of all chats, each with the chat's id and model; after them the state of the chat."""
        tables, left = schema(self.path), intake.most()
        with snapshot(self.path, LARGEST) as database:
            heads = dict[str, dict[str, Any]]()
            if has(tables, "composerheaders", "composerid", "value"):
                for row in database.execute("SELECT composerId, value FROM composerHeaders"):
                    heads[str(row[0])] = object_in(as_text(row[1]))
            # A row that changes gets a new number, so the newest come first.
            names = database.execute("SELECT key FROM cursorDiskKV WHERE key >= 'composerData:' "
                                     "AND key < 'composerData;' ORDER BY rowid DESC").fetchall()
            for number, (name,) in enumerate(names):
                if left <= 0:
                    why = (f"{len(names) - number:,} older chats were not read, because the newer ones have more than "
                           f"{intake.most():,} bytes: --max-bytes N reads more")
                    self.reading.skipped.append(Skipped(number, why))
                    return
                key = str(name).partition(":")[2]
                for row in self._chat(database, key, heads.get(key, {}), number):
                    left -= len(row)
                    yield row

    def _chat(
        self, database: sqlite3.Connection, key: str, head: dict[str, Any], number: int
    ) -> Iterator[bytes]:
        """The messages of a chat, and its state."""
        data = _row(database, f"composerData:{key}") or ""
        chat, lost = object_in(data), 0
        title = known_text(head.get("name")) or known_text(chat.get("name")) or ""
        self.titles[key] = redact.text(title)[:80]
        about = object_of(head.get("subagentInfo")) or object_of(chat.get("subagentInfo"))
        if (parent := known_text(about.get("parentComposerId"))) is not None:
            self.parents[key] = parent
        model = known_text(object_of(chat.get("modelConfig")).get("modelName"))
        ids = [known_text(each.get("bubbleId")) for each in objects_of(chat.get("fullConversationHeadersOnly"))]
        older = elements(data.encode("utf-8", "replace"), "conversation") if not ids else ()
        for message in (*older, *(_row(database, f"bubbleId:{key}:{name}") for name in ids)):
            lost += message is None
            if message is not None:
                yield with_ids(message, chat=key, model=model)
        if lost:
            self.reading.skipped.append(Skipped(number, f"{lost:,} messages of a chat are not in the database"))
        if (status := known_text(chat.get("status"))) in ENDS:
            yield compact_json({"chat": key, "status": status})

    def session_of(self, value: dict[str, Any]) -> str:
        """The chat of a message."""
        return known_text(value.get("chat")) or ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a message, or the state of a chat."""
        value, kind, status = line.value, line.value.get("type"), known_text(line.value.get("status"))
        if kind is None and status in ENDS:
            return place if place.answer is None else self.say(line, place, str(status), mark=ENDS[str(status)])
        if kind == USER:
            return self.say(line, place, known_text(value.get("text")) or "")
        if kind != MODEL or value.get("capabilityType") == SUMMARY:
            lines.count("summary" if kind == MODEL else str(kind), frozenset({"summary"}))
            return place
        call = object_of(value.get("toolFormerData"))
        text, thought = known_text(value.get("text")), value.get("thinking")
        thought = known_text(object_of(thought).get("text")) or known_text(thought)
        error = _error(object_of(value.get("errorDetails")))
        if not (call.get("name") or text or thought or error):
            lines.count("message without content", frozenset({"message without content"}))
            return place
        answer = self._answer(line, place, call)
        if thought:
            answer.add_thought(thought)
        answer.add_text(text or None)
        if error:
            answer.fail(error, pointer_at(answer.word_at, "errorDetails"))
        if place.answer is not answer:
            place = TreePlace(answer)
        return self._call(line, place, answer, call) if call.get("name") else place

    def _answer(self, line: TranscriptLine, place: TreePlace, call: dict[str, Any]) -> TranscriptAnswer:
        """The answer to which a message of the model belongs."""
        answer, request = place.right_above, known_text(call.get("modelCallId")) or ""
        if answer is None and self.batch is not None and self.batch[0] is place.answer and call.get("name") and (
                "" in (request, self.batch[1]) or request == self.batch[1]) and not place.has_user_message:
            answer = self.batch[0]  # a further call of the same answer, after the result of the one before
        if answer is None:
            answer = self.answer(line, place, known_text(line.value.get("bubbleId")) or "",
                                 begin=line.value.get("createdAt"))
        answer.model = known_text(object_of(line.value.get("modelInfo")).get("modelName")) or (
            answer.model or known_text(line.value.get("model")))
        answer.word_at = answer.take(line)
        self.batch = (answer, request or (self.batch[1] if self.batch and self.batch[0] is answer else ""))
        return answer

    def _call(
        self, line: TranscriptLine, place: TreePlace, answer: TranscriptAnswer, call: dict[str, Any]
    ) -> TreePlace:
        """Reads a call, and its result if it has ended."""
        key, name, status = known_text(call.get("toolCallId")), str(call.get("name")), known_text(call.get("status"))
        arguments, member, form = _arguments(call)
        at = pointer_at(answer.word_at, "toolFormerData", member)
        answer.parts.append(ToolCall(key, name, arguments, status in DONE, form=form, at=at))
        if status == "error" and form is ArgsForm.STRING and read_object(arguments or "") is None:
            answer.findings.append(Finding(UNREAD_CALL, Severity.INFO, f"Cursor reports an error for a call of {name} "
                                           "whose arguments are not JSON", at))
        if status not in DONE:
            return place
        denied = status == "cancelled" or call.get("userDecision") == "rejected"
        result = any_text(call.get("error") or call.get("result"))
        return self.results(line, place, ToolResultPart(key, name, result, status == "error"), denied=denied)


def _row(database: sqlite3.Connection, key: str) -> str | None:
    """The value of a row; None if there is none."""
    key = key.encode("utf-8", "replace").decode()  # JSON may hold half a character, which SQLite refuses
    row = database.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()
    return None if row is None or row[0] is None else as_text(row[0])


def _arguments(call: dict[str, Any]) -> tuple[str | None, str, ArgsForm]:
    """The arguments of a call, the member with them and their form: the model's text, or what Cursor made of it."""
    raw, made = known_text(call.get("rawArgs")), call.get("params")
    if raw is not None and raw.strip() not in ("", "{}"):  # newer versions leave it empty
        return raw, "rawArgs", ArgsForm.STRING
    if isinstance(made, dict):
        return compact_json(made).decode(), "params", ArgsForm.OBJECT
    return known_text(made) or raw, "params", ArgsForm.OBJECT


def _error(details: dict[str, Any]) -> str:
    """The error that Cursor shows; empty if there is none."""
    error = object_of(details.get("error"))
    inner = object_of(error.get("details"))
    parts = [known_text(inner.get("title")), known_text(inner.get("detail"))]
    return ": ".join(part for part in parts if part) or known_text(details.get("message")) or ""
