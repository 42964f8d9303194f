"""Sessions of BotNexus: `sessions.sqlite` (older `sessions.db`), and `<id>.jsonl` of its file store.

No stop word, usage, model or cap is stored. A call is two rows, its start and its result; the text of the same answer
is written after them, when the calls have run. BotNexus writes a crash sentinel before it calls the model and removes
it after the turn, so a remaining sentinel shows that the agent died in that turn. An error of the provider is a
separate row, before the text that had arrived. Source: sytone/botnexus ffdad4a `src/gateway`:
`SqliteSessionStore.cs`, `FileSessionStore.cs`, `StreamingSessionHelper.cs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.sessions.importers.database import read_rows_or_lines, records_of, snapshot
from inspector.sessions.importers.records import first_look
from inspector.sessions.reasons import inferred_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader
from inspector.sessions.transcripts.member_values import known_text, object_of
from loop_core.values import ReasoningPart, Stop, TextPart, ToolCall, ToolResultPart

FIELDS: Fields = {"": {"role": (str,), "content": (str,), "tool_name": (str,), "tool_call_id": (str,),
                       "tool_args": (str,), "thinking_content": (str,), "timestamp": (str,)}}
COLUMNS = (*FIELDS[""], "session_id", "tool_is_error", "is_compaction_summary", "is_history", "is_crash_sentinel",
           "is_replay_banner", "message_kind")
_LINES = {"toolName": "tool_name", "toolCallId": "tool_call_id", "toolArgs": "tool_args",
          "toolIsError": "tool_is_error", "thinkingContent": "thinking_content", "isHistory": "is_history",
          "isCompactionSummary": "is_compaction_summary", "isCrashSentinel": "is_crash_sentinel",
          "isReplayBanner": "is_replay_banner", "kind": "message_kind"}
"""Name of a member in the file store -> name of the database's column."""

FAILED = "Agent stream error: "
"""The beginning of a row with the role `system` about a failed request."""


def sniff(head: bytes, path: str) -> int:
    """Recognises lines with a role, a content and its own members."""
    first = object_of(first_look(head).first)
    own = {"isCompactionSummary", "isCrashSentinel", "toolCallId"} & first.keys()
    return 90 if own and {"role", "content"} <= first.keys() else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    return read_rows_or_lines(_Reader(path, options), data, _rows(path))


def _rows(path: str) -> Iterator[UnbuiltRecord]:
    """The rows of each session in their order; columns differ by release."""
    with snapshot(path) as database:
        # By rowid: times have a resolution of seconds and are the same for the rows of a batch.
        rows = database.execute("SELECT * FROM session_history ORDER BY session_id, rowid")
        yield from records_of(rows, COLUMNS)


class _Reader(ChatReader):
    name, agent, fields = "botnexus", "BotNexus", FIELDS
    key, unit, row_word = "id", "row", ("a row", "rows")
    words = "BotNexus keeps no stop reason: each end is inferred from other rows and marked as inferred"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.calls: dict[tuple[str, str], TranscriptAnswer] = {}
        """Session and id of a call -> the answer that contains it."""
        self.ran: dict[str, TranscriptAnswer] = {}
        """Session -> the answer whose results are in the last row."""
        self.texts: dict[str, TranscriptLine] = {}
        """Session -> a text right after results. The next row shows whether the text belongs to the answer with these
        results or is an answer of its own."""
        self.errors: dict[str, TranscriptLine] = {}
        """Session -> the row of an error. A text after it is the part of the failed answer that had arrived."""
        self.crashes: dict[str, tuple[int, TranscriptAnswer | None]] = {}
        """Session -> the row of a crash sentinel in the current turn, and the last answer before it."""

    def session_of(self, value: dict[str, Any]) -> str:
        key = value.get("session_id")
        return key if isinstance(key, str) else self.session

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value = line.value
        # members of the file store get the names of the columns
        value.update({column: value[name] for name, column in _LINES.items() if name in value})
        role, text = value.get("role"), known_text(value.get("content")) or ""
        role = role.lower() if isinstance(role, str) else role
        ran = self.ran.pop(self.session, None)
        if (waiting := self.texts.pop(self.session, None)) is not None:
            self._text(waiting, ran if role == "assistant" or (role == "tool" and not self._is_result(value)) else None)
            ran = None
        failed = self.errors.pop(self.session, None)
        if failed is not None and role != "assistant":
            self._fail(self._answer(failed), failed)
        if value.get("is_history"):
            self.remarks["were taken out of what the model sees later"] += 1
        if value.get("is_crash_sentinel"):
            self._close_turn(self.session)
            self.crashes[self.session] = line.number, self.here.answer
        elif value.get("is_compaction_summary") or value.get("is_replay_banner"):
            self.say(line, self.here, text, own=True)
        elif role == "user":
            self._close_turn(self.session)
            self.say(line, self.here, text, own=value.get("message_kind") == "subagent-completion")
        elif role == "system" and text.startswith(FAILED):
            self.errors[self.session] = line
        elif role == "assistant":
            if failed is not None:
                self._text(line, None)
                self._fail(self.here.answer, failed)
            elif ran is not None and ran is self.here.answer:
                self.texts[self.session], self.ran[self.session] = line, ran
            else:
                self._text(line, None)
        elif role == "tool":
            self._tool(line, text)
        else:
            lines.count(role, frozenset({"system", "notification"}))
        return self.here

    def _text(self, line: TranscriptLine, ran: TranscriptAnswer | None) -> None:
        """Adds a text to `ran`, the answer whose calls have run; without one the text is an answer of its own."""
        thought, text = known_text(line.value.get("thinking_content")), known_text(line.value.get("content"))
        answer = ran or self._answer(line)
        if ran is not None:
            ran.take(line)
        reasoning = [ReasoningPart(thought)] if thought else []
        # first, because the model wrote it before the calls
        answer.parts = [*reasoning, *([TextPart(text)] if text else []), *answer.parts]

    def _fail(self, answer: TranscriptAnswer | None, line: TranscriptLine) -> None:
        if answer is not None:
            answer.fail(str(line.value.get("content")).removeprefix(FAILED), answer.take(line))

    def _answer(self, line: TranscriptLine) -> TranscriptAnswer:
        answer = self.answer(line, self.here, key=f"{self.session}:{line.number}",
                             begin=line.value.get("timestamp"))
        answer.word_at = answer.take(line)
        return answer

    def _tool(self, line: TranscriptLine, text: str) -> None:
        """Reads a row of a call: the first with its id is its start, the second its result; a row without arguments is
        a result. Newer releases state the kind of a row (`message_kind`) and write the arguments in both."""
        value = line.value
        key, name = known_text(value.get("tool_call_id")), known_text(value.get("tool_name"))
        if key is None or self._is_result(value):
            self.results(line, self.here, ToolResultPart(key, name, text, bool(value.get("tool_is_error"))))
            if key is not None and (self.session, key) in self.calls:
                self.ran[self.session] = self.calls[self.session, key]
            return
        answer = self.here.right_above
        if answer is not None:  # no result yet: another call of the same answer
            at = answer.take(line)
        else:
            answer = self._answer(line)
            at = answer.word_at
        self.calls[self.session, key] = answer
        answer.parts.append(ToolCall(key, name or "", known_text(value.get("tool_args")), True, at=at))

    def _is_result(self, value: dict[str, Any]) -> bool:
        key = known_text(value.get("tool_call_id"))
        return (value.get("message_kind") == "tool-result" or key is None or (self.session, key) in self.calls
                or known_text(value.get("tool_args")) is None)

    def _close_turn(self, session: str) -> None:
        """Ends a turn with a remaining crash sentinel, whose last answer may be incomplete."""
        number, before = self.crashes.pop(session, (0, None))
        if not number:
            return
        answer = self.ends.get(session, TreePlace(None)).answer
        if answer is None or answer is before:
            self.remarks["are crash sentinels of turns without an answer"] += 1
        elif not answer.calls or any(call.id not in answer.results for call in answer.calls):
            answer.stop = inferred_reason(
                Stop.INTERRUPTED, answer.word_at, "crash_sentinel", None,
                f"{self.unit} {number}: the crash sentinel of its turn is still there, so the agent died in that turn")

    def settle(self) -> None:
        """Also adds the last texts of sessions, and ends their last turns."""
        for session, line in self.texts.items():
            self.session = session
            self._text(line, None)
        for session, line in self.errors.items():
            self.session = session
            self._fail(self._answer(line), line)
        for session in list(self.crashes):
            self._close_turn(session)
        super().settle()
