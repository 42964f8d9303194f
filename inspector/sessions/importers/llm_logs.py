"""The log of `llm`, a command-line program: `logs.db`, with each answer and the provider's object for it.

Releases before 0.32 write the table `responses`, later ones `turns`, whose messages form a tree; a database may have
both. In the provider's object a long text may be a reference (`{"$": …}`), but never the stop word. Failed requests,
and calls whose arguments are not JSON, are not logged. Source: simonw/llm 0.36 `llm/logs.py`; 0.27
`llm/models.py`, `log_to_db`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from inspector.sessions.importers.database import columns_of, record_of, schema, snapshot
from inspector.sessions.importers.records import number_records
from inspector.sessions.reasons import provider_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import (
    cap_of,
    counts_of,
    known_text,
    numbered_objects,
    object_of,
    objects_of,
)
from inspector.sessions.transcripts.provider_answers import take_provider_word
from loop_core.values import At, ToolResultPart, Usage
from loop_core.wire.openai_chat.table import API, STOP_REASONS, read_usage

if TYPE_CHECKING:
    import sqlite3

FIELDS: Fields = {
    "": {"model": (str,), "prompt": (str,), "response": (str,), "options_json": (dict,), "response_json": (dict,),
         "calls": (list,), "results": (list,), "messages": (list,), "parts": (list,)},
}
ANSWERS: Mapping[str, str] = {
    "responses": "SELECT a.*, c.name AS title FROM responses a LEFT JOIN conversations c ON c.id = a.conversation_id "
                 "ORDER BY a.rowid",
    "turns": "SELECT a.*, t.name AS title FROM turns a LEFT JOIN threads t ON t.id = a.thread_id ORDER BY a.rowid",
}
"""Table of answers -> the query for its rows, each with the title of its conversation."""
BESIDE: Mapping[str, str] = {
    "calls": "SELECT name, arguments, tool_call_id FROM tool_calls WHERE response_id = ? ORDER BY id",
    "results": "SELECT * FROM tool_results WHERE response_id = ? ORDER BY id",
}
"""Member of a record -> the query for the rows that belong to an answer in `responses`. The results are those in its
request. Earlier releases lack columns of later ones."""
_JSON = frozenset({"options_json", "response_json", "calls", "results", "messages", "parts", "arguments", "payload"})


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the database."""
    return _Reader(path, options).read_records(number_records(_rows(path)))


# -- the rows of the database ------------------------------------------------------------------------------------------


def _rows(path: str) -> Iterator[UnbuiltRecord]:
    """A record for each answer: its row, the title of its conversation, and the new content of its request."""
    found = schema(path)
    with snapshot(path) as database:
        # A release between the two wrote both tables.
        later = {row["id"] for row in database.execute("SELECT id FROM turns")} if "turns" in found else set()
        if "responses" in found:
            calls = "tool_calls" in found and "tool_results" in found
            for row in _select(database, ANSWERS["responses"]):
                if row["id"] not in later:
                    yield _record("responses", row, **{member: _array(
                        record_of(tuple(each), tuple(each.values()), "", _JSON)
                        for each in _select(database, query, row["id"])) for member, query in BESIDE.items() if calls})
        if "turns" in found:
            yield from _turns(database)


def _select(database: sqlite3.Connection, query: str, *values: Any) -> Iterator[dict[str, Any]]:
    rows = database.execute(query, values)
    names = columns_of(rows)
    for row in rows:
        yield dict(zip(names, row, strict=True))


def _turns(database: sqlite3.Connection) -> Iterator[UnbuiltRecord]:
    """The rows of `turns`, each with its new messages, its answer, and the id of the turn that it follows."""
    tips: dict[tuple[str | None, str], str] = {}
    """Thread (None: any) and last message of a turn -> the turn. Threads share equal messages."""
    for turn in _select(database, ANSWERS["turns"]):
        new: list[tuple[str, str]] = []
        before = None
        for hash_, role in _upwards(database, turn["parent_message_hash"]):
            before = tips.get((turn["thread_id"], hash_)) or tips.get((None, hash_))
            if before is not None or role == "assistant":  # an answer that an older release logged
                break
            new.append((hash_, role))
        answer: list[str] = []
        for hash_, role in _upwards(database, turn["tip_message_hash"]):
            if hash_ == turn["parent_message_hash"] or role in ("user", "system"):  # an empty answer has no message
                break
            answer.append(hash_)
        messages = _array(record_of(("role", "parts"), (role, _array(_parts(database, [hash_])).decode()), "", _JSON)
                          for hash_, role in reversed(new))
        yield _record("turns", turn, before=before, messages=messages, parts=_array(_parts(database, answer[::-1])))
        for thread in (turn["thread_id"], None) if answer else (turn["thread_id"],):
            tips[thread, turn["tip_message_hash"]] = turn["id"]  # the tip of an empty answer is the question itself


def _upwards(database: sqlite3.Connection, hash_: str | None) -> Iterator[tuple[str, str]]:
    """The hash and the role of a message and of those before it, the last first."""
    visited: set[str] = set()  # the messages of a damaged database may form a ring
    while hash_ is not None and hash_ not in visited:
        visited.add(hash_)
        row = database.execute("SELECT parent_hash, role FROM messages WHERE hash = ?", (hash_,)).fetchone()
        if row is None:
            return
        yield hash_, str(row["role"])
        hash_ = row["parent_hash"]


def _parts(database: sqlite3.Connection, messages: list[str]) -> Iterator[bytes]:
    for message in messages:
        for row in database.execute("SELECT type, text, payload FROM parts WHERE message_hash = ? ORDER BY position",
                                    (message,)):
            yield record_of(("type", "text", "payload"), tuple(row), "", _JSON)


def _array(items: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def _record(table: str, row: dict[str, Any], **more: Any) -> UnbuiltRecord:
    row = {name: value for name, value in {**row, **more}.items() if name != "prompt_json"}  # it repeats the history
    return UnbuiltRecord(record_of, (tuple(row), tuple(row.values()), table, _JSON))


# -- the content of the rows -------------------------------------------------------------------------------------------


class _Reader(ChatReader):
    name, agent, fields = "llm", "llm", FIELDS
    key, unit, row_word, wordless = "id", "row", ("a row", "rows"), False

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.after: dict[str, TreePlace] = {}
        """Id of a turn -> the place after its answer."""

    def session_of(self, value: dict[str, Any]) -> str:
        return known_text(value.get("thread_id")) or known_text(value.get("conversation_id")) or ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value = line.value
        self.titles[self.session] = known_text(value.get("title")) or ""
        if (before := self.after.get(str(value.get("before")))) is not None:
            self.here = before
        self._ask(line)
        key, raw = known_text(value.get("id")) or f"row {line.number}", object_of(value.get("response_json"))
        model = known_text(value.get("resolved_model")) or value.get("model")
        answer = self.answer(line, self.here, model=model, key=key, begin=value.get("datetime_utc"))
        at = answer.take(line)
        answer.cap = cap_of(object_of(value.get("options_json")))
        answer.add_thought(value.get("reasoning"))
        answer.add_text(value.get("response"))
        for number, call in numbered_objects(value.get("calls")):
            take_call(answer, call, line, at, "calls", number, key="tool_call_id")
        for number, part in numbered_objects(value.get("parts")):
            self._part(answer, part, line, at, number)
        answer.word_at = pointer_at(at, "response_json")
        _end(answer, raw, answer.word_at)
        answer.usage = read_usage(object_of(raw.get("usage")), answer.model) if answer.api == API else None
        answer.usage = answer.usage or Usage(*counts_of(value, "input_tokens", "output_tokens"))
        self.after[key] = self.here
        return self.here

    def _ask(self, line: TranscriptLine) -> None:
        """Reads the new content of a request: results, then a prompt."""
        value = line.value
        results = objects_of(value.get("results"))
        prompts = [value.get("prompt")]
        for message in objects_of(value.get("messages")):
            for part in objects_of(message.get("parts")):
                payload = object_of(part.get("payload"))
                if part.get("type") == "tool_result":
                    results.append(payload)
                elif part.get("type") == "text" and message.get("role") == "user":
                    prompts.append(part.get("text") or _literals(payload))
        self.results(line, self.here, *(
            ToolResultPart(known_text(each.get("tool_call_id")), known_text(each.get("name")),
                           str(each.get("output") or ""), known_text(each.get("exception")) is not None)
            for each in results))
        prompt = "\n".join(each for each in prompts if isinstance(each, str) and each)
        if prompt:
            self.say(line, self.here, prompt)

    def _part(
        self, answer: TranscriptAnswer, part: dict[str, Any], line: TranscriptLine, at: At, number: int
    ) -> None:
        kind, payload = part.get("type"), object_of(part.get("payload"))
        if kind == "text":
            answer.add_text(part.get("text"))
        elif kind == "reasoning":
            answer.add_thought(part.get("text"))
        elif kind == "tool_call":
            take_call(answer, payload, line, at, "parts", number, "payload", key="tool_call_id")
        else:
            self.remarks[f"have a part of the type {kind}, which is not shown"] += 1


def _literals(payload: dict[str, Any]) -> str:
    """The text of a prompt without its fragments, which are separate rows."""
    return "".join(str(each.get("literal", "")) for each in objects_of(payload.get("text_ref")))


def _end(answer: TranscriptAnswer, raw: dict[str, Any], at: At) -> None:
    """Reads the stop word. `llm` joins the pieces of a streamed answer of OpenAI into an object without `choices`."""
    if take_provider_word(answer, raw, at, "response_json"):
        return
    if str(raw.get("object")).startswith("chat.completion"):
        answer.named_api = API
    if (word := known_text(raw.get("finish_reason"))) is not None:
        answer.named_api, answer.word, answer.word_at = API, word, pointer_at(at, "response_json", "finish_reason")
        answer.stop = provider_reason(word, answer.word_at, STOP_REASONS, API)
