"""Sessions of ZeroClaw: `sessions/sessions.db`, and the JSON lines of older releases.

ZeroClaw keeps no stop word. A turn with native calls is JSON in the content, with the arguments as the received string,
so a cut call is visible. If a request got no answer, ZeroClaw writes a text of its own in the model's name.
Source: zeroclaw-labs/zeroclaw `session_sqlite.rs`, `session_store.rs`, `orchestrator/mod.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import has, records_of, schema, snapshot
from inspector.sessions.importers.records import compact_json, first_look, number_records, object_in
from inspector.sessions.reasons import error_in_text, recorder_reason
from inspector.sessions.recording import FileReading, Options, TurnPlace
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import call_of
from inspector.sessions.transcripts.dialogue import DialogueReader
from inspector.sessions.transcripts.member_values import known_text, object_of
from loop_core.values import ReasoningPart, Stop, TextPart, ToolResultPart
from loop_core.wire.failures import StopRow

FIELDS: Fields = {"": {"role": (str,), "content": (str,), "created_at": (str,), "session_key": (str,)}}

CLOSURES: Mapping[str, StopRow] = {
    "[Task failed — not continuing this request]": StopRow(Stop.ERROR, "fatal", "orchestrator/mod.rs"),
    "[Task timed out — not continuing this request]": StopRow(Stop.ERROR, "transient", "orchestrator/mod.rs"),
    "[Session interrupted — not continuing this request]": StopRow(
        Stop.INTERRUPTED, None, "orchestrator/mod.rs: ZeroClaw was started anew, and the last message is the user's"),
}
"""Text of ZeroClaw in place of a missing answer -> how the answer ended."""
MARKS: Mapping[str, Stop] = {
    "[interrupted by user]": Stop.CANCELLED, "[interrumpido por el usuario]": Stop.CANCELLED,
    "[interrompu par l'utilisateur]": Stop.CANCELLED, "[ユーザーによって中断されました]": Stop.CANCELLED,
    "[被用户中断]": Stop.CANCELLED,
    "[stream interrupted]": Stop.INTERRUPTED, "[transmisión interrumpida]": Stop.INTERRUPTED,
    "[flux interrompu]": Stop.INTERRUPTED, "[ストリームが中断されました]": Stop.INTERRUPTED,
    "[流已中断]": Stop.INTERRUPTED,
}
"""Text of ZeroClaw after a partial answer, or alone (`locales/*/cli.ftl`) -> how the answer ended."""
RESULTS = "[Tool results]\n"
"""The beginning of a message with the results of calls that the model wrote as text."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the columns of its table, or lines with only a role and a text."""
    if head.startswith(SQLITE):
        return 95 if has(schema(path), "sessions", "session_key", "role", "content") else 0
    look = first_look(head)
    rows = look.lines or ((look.first,) if isinstance(look.first, dict) else ())
    plain = bool(rows) and all(isinstance(row, dict) and row.keys() == {"role", "content"}
                               and isinstance(row["content"], str) for row in rows)
    return 60 if plain else 0  # other agents' lines look the same, so any importer that is surer comes first


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    reader = _Reader(path, options)
    if data.startswith(SQLITE):
        return reader.read_records(number_records(_rows(path)))
    reader.unit = "line"
    return reader.read(data)


def _rows(path: str) -> Iterator[UnbuiltRecord]:
    """The state of each session, then the messages of each session in order."""
    with snapshot(path) as database:
        if has(schema(path), "session_metadata", "session_key", "state"):
            rows = database.execute("SELECT state, session_key FROM session_metadata ORDER BY rowid")
            yield from records_of(rows, ("state", "session_key"))
        rows = database.execute("SELECT * FROM sessions ORDER BY session_key, rowid")
        yield from records_of(rows, FIELDS[""])


class _Reader(DialogueReader):
    name, agent, fields = "zeroclaw", "ZeroClaw", FIELDS
    words = "ZeroClaw keeps no stop reason: what is shown is inferred from other rows, and says so"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.told: dict[str, bool] = {}
        """Session -> whether the session's last message of the user contains tool results."""

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
        elif role == "assistant":
            self._answer(line, text, inner)
        elif role == "tool":
            key = known_text(inner.get("tool_call_id"))
            said = inner.get("content") if key is not None else text
            self.results(line.number, ToolResultPart(key, None, said if isinstance(said, str) else text, False))
        elif role == "user":
            self.told[self.session] = text.startswith(RESULTS)
            self.user(line.number, text, own=text.startswith(RESULTS))
        else:
            lines.count(role, frozenset({"system"}))
        return self.here

    def _answer(self, line: TranscriptLine, text: str, inner: dict[str, Any]) -> None:
        answer = self.answer_of(line, f"{self.session}:{line.number}", None, None, line.value.get("created_at"))
        answer.word_at = at = answer.take(line)
        if self.told.pop(self.session, False):
            answer.recorded_place = TurnPlace.TOOL_RESULT
        if (row := CLOSURES.get(text)) is not None:
            answer.error = error_in_text(text, None, None) if row.stop is Stop.ERROR else None
            answer.stop = recorder_reason(row.stop, row.detail, at, text, "zeroclaw.closures")
            return
        calls = inner.get("tool_calls")
        if not isinstance(calls, list):
            mark = next((each for each in MARKS if text == each or text.endswith(f"\n\n{each}")), "")
            if mark:
                answer.stop = recorder_reason(MARKS[mark], None, at, mark, "zeroclaw.marks")
                text = text.removesuffix(mark).removesuffix("\n\n")  # ZeroClaw puts a blank line before the mark
            answer.parts += [TextPart(text)] if text else []
            return
        if known_text(inner.get("reasoning_content")):
            answer.parts.append(ReasoningPart(inner["reasoning_content"], None))
        if known_text(inner.get("content")):
            answer.parts.append(TextPart(inner["content"]))
        for call in map(object_of, calls):
            given = call.get("arguments")
            find = partial(_write_json, given)
            answer.parts.append(call_of(call.get("id"), call.get("name"), given, find, "arguments", at))


def _write_json(value: Any, *path: str | int) -> str | None:
    """Arguments that are not a string, as JSON. They are inside a text, so their bytes cannot be quoted."""
    return None if value is None else compact_json(value).decode()
