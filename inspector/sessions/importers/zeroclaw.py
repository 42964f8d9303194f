"""Sessions of ZeroClaw: `sessions/sessions.db`, `sessions/acp-sessions.db`, and the JSON lines of older releases.

ZeroClaw stores no stop word. A turn with native calls is JSON in the content, with the arguments as the received
string, so a cut call is visible; `acp-sessions.db` has rows for calls and results instead, in a separate table. If a
request got no answer, ZeroClaw writes its own text in the role of the model. Source: zeroclaw-labs/zeroclaw
`session_sqlite.rs`, `session_store.rs`, `acp_session_store.rs`, `orchestrator/mod.rs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from inspector.sessions.importers.database import (
    TABLE,
    Schema,
    has,
    read_rows_or_lines,
    record_of,
    records_of,
    schema,
    snapshot,
)
from inspector.sessions.importers.records import compact_json, first_look, object_in
from inspector.sessions.reasons import error_in_text, recorder_reason
from inspector.sessions.recording import FileReading, Options, TurnPlace
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import known_text, object_of
from loop_core.values import Stop, ToolResultPart
from loop_core.wire.failures import StopRow

if TYPE_CHECKING:
    import sqlite3

FIELDS: Fields = {"": {"role": (str,), "content": (str,), "created_at": (str,), "session_key": (str,)}}

CLOSURES: Mapping[str, StopRow] = {
    "[Task failed — not continuing this request]": StopRow(Stop.ERROR, "fatal", "orchestrator/mod.rs"),
    "[Task timed out — not continuing this request]": StopRow(Stop.ERROR, "transient", "orchestrator/mod.rs"),
    "[Session interrupted — not continuing this request]": StopRow(
        Stop.INTERRUPTED, None, "orchestrator/mod.rs: ZeroClaw was restarted, and the last message is the user's"),
    **{text: StopRow(Stop.MALFORMED_TOOL_CALL, None, "locales/*/cli.ftl: ZeroClaw could not read the model's calls")
       for text in (
        "I generated an internal tool-call format error and could not complete this request. Please try again.",
        "Generé un error de formato interno en la llamada de herramienta y no pude completar esta solicitud. "
        "Inténtalo de nuevo.",
        "J'ai généré une erreur de format d'appel d'outil interne et n'ai pas pu terminer cette requête. "
        "Veuillez réessayer.",
        "内部ツール呼び出し形式のエラーが発生し、このリクエストを完了できませんでした。もう一度お試しください。",
        "我生成了内部工具调用格式错误，无法完成此请求。请重试。",
    )},
}
"""Text of ZeroClaw instead of a missing answer -> the stop reason."""
MARKS: Mapping[str, Stop] = {
    "[interrupted by user]": Stop.CANCELLED, "[interrumpido por el usuario]": Stop.CANCELLED,
    "[interrompu par l'utilisateur]": Stop.CANCELLED, "[ユーザーによって中断されました]": Stop.CANCELLED,
    "[被用户中断]": Stop.CANCELLED,
    "[stream interrupted]": Stop.INTERRUPTED, "[transmisión interrumpida]": Stop.INTERRUPTED,
    "[flux interrompu]": Stop.INTERRUPTED, "[ストリームが中断されました]": Stop.INTERRUPTED,
    "[流已中断]": Stop.INTERRUPTED,
}
"""Text of ZeroClaw after a partial answer, or alone (`locales/*/cli.ftl`) -> the stop reason."""
LIMIT = re.compile(r"(?:\A|\n\n)\*(Turn stopped: reached maximum tool iterations \(\d+\))\.\*\Z")
"""Matches the text of ZeroClaw after an answer that it requested because the turn had used up its iterations."""
FOOTER = re.compile(r"\n\n---\n⚡ `[^`\n]*`[^\n*]*\*\*[^*\n]*\*\*[^\n`]*`(?P<model>[^`\n]+)`[^\n`]*\n[^\n`]*/models\Z")
"""Matches the footer of ZeroClaw after an answer of another model than the requested one, in any of its languages
(`channel-runtime-fallback-footer` in `locales/*/cli.ftl`)."""
RESULTS = "[Tool results]\n"
"""The beginning of a message with the results of calls that the model wrote as text."""


def sniff(head: bytes, path: str) -> int:
    """Recognises lines with only a role and a text."""
    look = first_look(head)
    rows = look.lines or (() if b"\n" in look.text.strip() else (look.first,))
    plain = bool(rows) and all(isinstance(row, dict) and row.keys() == {"role", "content"}
                               and isinstance(row["content"], str) for row in rows)
    # Only answers, without calls, are the output of other agents: a session also has the messages of a user.
    plain = plain and any(row["role"] != "assistant" or row["content"].startswith("{") for row in rows)
    return 60 if plain else 0  # other agents' lines look the same, so any importer with a higher score comes first


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    return read_rows_or_lines(_Reader(path, options), data, _rows(path))


def _is_of_editor(tables: Schema) -> bool:
    """Whether a database holds the sessions of editors."""
    return (has(tables, "acp_sessions", "id", "session_uuid") and has(tables, "acp_messages", "session_id", "role")
            and has(tables, "acp_tool_calls", "message_id", "event_kind"))


def _rows(path: str) -> Iterator[UnbuiltRecord]:
    """The state of each session, then the messages of each session in order."""
    tables = schema(path)
    with snapshot(path) as database:
        if _is_of_editor(tables):
            yield from _editor_rows(database)
            return
        if has(tables, "session_metadata", "session_key", "state"):
            rows = database.execute("SELECT state, session_key FROM session_metadata ORDER BY rowid")
            yield from records_of(rows, ("state", "session_key"))
        rows = database.execute("SELECT * FROM sessions ORDER BY session_key, rowid")
        yield from records_of(rows, FIELDS[""])


def _editor_rows(database: sqlite3.Connection) -> Iterator[UnbuiltRecord]:
    """The messages of each session of an editor in order, each followed by its calls and then by their results."""
    message_columns, call_columns = ("role", "content", "reasoning_content", "created_at"), (
        "event_kind", "tool_call_id", "tool_name", "payload", "outcome")
    for session in database.execute("SELECT * FROM acp_sessions ORDER BY id").fetchall():
        key = session["session_uuid"]
        for row in database.execute("SELECT * FROM acp_messages WHERE session_id = ? ORDER BY id", (session["id"],)):
            yield _record(row, key, "acp_messages", message_columns)
            calls = database.execute(
                "SELECT * FROM acp_tool_calls WHERE message_id = ? ORDER BY event_kind <> 'in', id", (row["id"],))
            for call in calls:
                yield _record(call, key, "acp_tool_calls", call_columns)


def _record(row: sqlite3.Row, key: Any, table: str, columns: tuple[str, ...]) -> UnbuiltRecord:
    names = tuple(name for name in columns if name in row.keys())  # noqa: SIM118 - `in row` tests the values
    return UnbuiltRecord(record_of, (("session_key", *names), (key, *(row[name] for name in names)), table))


class _Reader(ChatReader):
    name, agent, fields = "zeroclaw", "ZeroClaw", FIELDS
    key, unit, row_word = "id", "row", ("a row", "rows")
    words = "ZeroClaw keeps no stop reason: each end is inferred from other rows and marked as inferred"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.after_results: dict[str, bool] = {}
        """Session -> whether the session's last message of the user has tool results."""

    def session_of(self, value: dict[str, Any]) -> str:
        key = value.get("session_key")
        return key if isinstance(key, str) else self.session

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role = line.value, line.value.get("role")
        text = value["content"] if isinstance(value.get("content"), str) else ""
        inner = object_in(text) if text.startswith("{") else {}
        if "state" in value and role is None:
            self.titles[self.session] = self.session
            if value["state"] not in (None, "idle"):
                self.reading.notices.append(f"session {self.session} was left in the state {value['state']!r}")
            lines.count("state", frozenset({"state"}))
        elif value.get(TABLE) == "acp_tool_calls":
            self._take_call(line, lines)
        elif role == "assistant":
            self._answer(line, text, inner)
        elif role == "tool":
            key = known_text(inner.get("tool_call_id"))
            output = inner.get("content") if key is not None else text
            self.results(line, self.here, ToolResultPart(key, None, output if isinstance(output, str) else text, False))
        elif role == "user":
            self.after_results[self.session] = text.startswith(RESULTS)
            self.say(line, self.here, text, own=text.startswith(RESULTS))
        else:
            lines.count(role, frozenset({"system"}))
        return self.here

    def _take_call(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        value, answer = line.value, self.here.answer
        kind, key, payload = value.get("event_kind"), known_text(value.get("tool_call_id")), value.get("payload")
        if kind == "in" and answer is not None:
            answer.parts.append(call_of(key, value.get("tool_name"), payload, partial(slice_of, line.data), "payload",
                                        pointer_at(answer.take(line), "payload")))
        elif kind == "out":
            self.result(line, self.here, key, payload if isinstance(payload, str) else "",
                        value.get("outcome") == "failure", value.get("tool_name"))
        else:
            lines.count(kind, frozenset())

    def _answer(self, line: TranscriptLine, text: str, inner: dict[str, Any]) -> None:
        answer = self.answer(line, self.here, key=f"{self.session}:{line.number}",
                             begin=line.value.get("created_at"))
        answer.word_at = at = answer.take(line)
        if self.after_results.pop(self.session, False):
            answer.recorded_place = TurnPlace.TOOL_RESULT
        if (row := CLOSURES.get(text)) is not None:
            answer.error = error_in_text(text, None, None) if row.stop is Stop.ERROR else None
            answer.stop = recorder_reason(row.stop, row.detail, at, text, "zeroclaw.closures")
            return
        answer.add_thought(line.value.get("reasoning_content"))  # a column of `acp-sessions.db`
        calls = inner.get("tool_calls")
        if not isinstance(calls, list):
            footer = FOOTER.search(text)
            if footer is not None:
                text, answer.model = text[: footer.start()], footer["model"]
                self.remarks["end with a footer of ZeroClaw, which names the model that answered"] += 1
            stopped = LIMIT.search(text)
            if stopped is not None:
                text = text[: stopped.start()]
                self.say(line, self.here, f"ZeroClaw says: {stopped[1]}", mark="stopped")
            mark = next((each for each in MARKS if text == each or text.endswith(f"\n\n{each}")), "")
            if mark:
                answer.stop = recorder_reason(MARKS[mark], None, at, mark, "zeroclaw.marks")
                text = text.removesuffix(mark).removesuffix("\n\n")  # ZeroClaw writes a blank line before the mark
            answer.add_text(text)
            return
        answer.add_thought(inner.get("reasoning_content"))
        answer.add_text(inner.get("content"))
        for call in map(object_of, calls):
            arguments = call.get("arguments")
            find = partial(_write_json, arguments)
            answer.parts.append(call_of(call.get("id"), call.get("name"), arguments, find, "arguments", at))


def _write_json(value: Any, *path: str | int) -> str | None:
    """Arguments that are not a string, as JSON. They are within a text, so their bytes cannot be quoted."""
    return None if value is None else compact_json(value).decode()
