"""Sessions of Grok Build: `sessions/<folder>/<id>/updates.jsonl`, with other files of the session beside it.

A row is an update of the Agent Client Protocol or of Grok itself. An answer is its pieces with one `streamStartMs`.
Grok writes pieces and results late, so rows are put into the order of their events. `turn_completed` is Grok's word for
the end of a turn; the provider's stop words are not stored. Arguments are parsed there; the model's own text is in
`chat_history.jsonl`, which is written anew when the context is compacted. `summary.json` names the session. Sources:
xai-org/grok-build `xai-grok-shell/src/extensions/notification.rs`, `session/storage`; 1.0.41 under 69 faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import first_look, object_beside, object_in, object_lines
from inspector.sessions.intake import sibling
from inspector.sessions.reasons import UNREAD_CALL
from inspector.sessions.recording import FileReading, Options, TurnPlace
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, arguments_of, pointer_at
from inspector.sessions.transcripts.member_values import known_text, number_of, object_of, objects_of
from loop_core.values import Finding, Severity, ToolCall, ToolResultPart, Usage

TURN_ENDS: Mapping[str, str] = {
    "end_turn": "ended", "cancelled": "interrupted", "refusal": "filter", "max_tokens": "cap",
    "max_tokens_truncation": "cap",
}
"""Grok's word for the end of a turn (`stop_reason`, `error_kind`) -> the mark of its row. Any other is an error."""
REFUSAL = "The model provider refused to generate a response for this turn (content filter)."
"""The beginning of the text that Grok writes in place of an answer without content that a filter ended."""
BROKEN_ARGUMENTS = "Failed to parse arguments for tool"
"""The beginning of the result of a call that did not run because its arguments or its tool were wrong."""
_NOT_RUN = re.compile(r"Tool (?:`[^`]{1,200}`|execution was (?:cancelled by the user|halted by the harness) .{1,300})"
                      r" was not executed\b")
"""Matches the beginning of the result of a call that did not run: a rule or the user forbade it, or the turn ended."""
NO_EXCHANGE = frozenset({
    "plan", "retry_state", "auto_compact_started", "auto_compact_completed", "auto_compact_failed",
    "auto_continue_completed", "hook_execution", "session_summary_generated", "session_recap", "last_turn_summary",
    "compaction_checkpoint", "rewind_marker", "task_completed", "task_backgrounded", "subagent_spawned",
    "subagent_progress", "subagent_finished", "model_changed", "goal_updated", "workflow_updated", "background_tasks",
    "turn of the host"})
"""The updates without a part of an exchange."""
FIELDS: Fields = {"": {"method": (str,), "params": (dict,)}, "params": {"sessionId": (str,), "update": (dict,)}}
_WHEN = re.compile(rb'"agentTimestampMs":\s*([0-9]{1,15})')
_EVENT = re.compile(rb'"eventId":\s*"[^"]*-([0-9]{1,9})"')
COUNTS = ("inputTokens", "outputTokens", "reasoningTokens", "cachedReadTokens", "cacheCreationTokens")


def sniff(head: bytes, path: str) -> int:
    """Recognises rows of updates."""
    updates = (object_of(object_of(row.get("params")).get("update")) for row in first_look(head).objects
               if known_text(row.get("method")) in ("session/update", "_x.ai/session/update"))
    return 90 if any("sessionUpdate" in update for update in updates) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of a session."""
    return _Updates(path, options).read_records(_in_order(data))


def _in_order(data: bytes) -> list[tuple[int, bytes, bool]]:
    """The rows with their line numbers, in the order of their events; a row without one stays behind the row before."""
    rows, at = list[tuple[tuple[int, int], int, bytes]](), (0, 0)
    for number, row in enumerate(data.split(b"\n"), start=1):
        if row.strip():
            when, event = _WHEN.findall(row), _EVENT.findall(row)
            at = (int(when[-1]), int(event[-1])) if when and event else at
            rows.append((at, number, row))
    last = rows[-1][1] if rows else 0
    return [(number, row, number == last) for _, number, row in sorted(rows, key=itemgetter(0))]


class _Updates(ChatReader):
    name, agent, fields, unit, row_word = "grok", "Grok Build", FIELDS, "line", ("a row", "rows")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        about = object_beside(path, "summary.json")
        info = object_of(about.get("info"))
        self.session_id = known_text(info.get("id")) or ""
        self.parent_id = known_text(about.get("parent_session_id")) or ""
        self.title = known_text(about.get("generated_title")) or known_text(about.get("session_summary")) or ""
        self.model = known_text(about.get("current_model_id"))
        self.arguments = dict(_arguments(path))
        """Id of a call -> the model's own text of its arguments."""
        self.stream: int | None = None
        """When the answer began whose pieces were read last, in milliseconds; None if no row says so."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads an update."""
        params = object_of(line.value.get("params", line.value))  # the first releases wrote the parameters alone
        update, about = object_of(params.get("update")), object_of(params.get("_meta"))
        kind, start = known_text(update.get("sessionUpdate")), number_of(about.get("streamStartMs"))
        if object_of(update.get("_meta")).get("hostTurn") is True:  # such as a command of the user's shell
            kind = "turn of the host"
        if kind == "user_message_chunk":
            self.model = known_text(object_of(update.get("_meta")).get("modelId")) or self.model
            return self.say(line, place, _text(update.get("content")))
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            answer = self._answer(line, place, start, about)
            text = _text(update.get("content"))
            if kind == "agent_thought_chunk":
                answer.add_thought(text)
            elif not text.startswith(REFUSAL):
                answer.add_text(text)
            return self._after(place, answer)
        if kind == "tool_call":
            answer = self._answer(line, place, start, about)
            answer.parts.append(self._call(line, answer, update))
            return self._after(place, answer)
        if kind == "tool_call_update":
            return self._result(line, place, update)
        if kind == "retry_state" and update.get("type") == "retrying":
            why, error_kind = any_text(update.get("reason")), known_text(update.get("error_type"))
            return self._fail(line, place, why, error_kind) or place
        if kind == "turn_completed":
            return self._end(line, place, update)
        lines.count(kind, NO_EXCHANGE)
        return place

    def _answer(
        self, line: TranscriptLine, place: TreePlace, start: int | None, about: Mapping[str, Any]
    ) -> TranscriptAnswer:
        """The answer to which a piece belongs."""
        answer = place.answer if start is not None and start == self.stream else place.right_above
        if answer is None or start != self.stream:
            answer = self.answer(line, place, known_text(about.get("eventId")) or "", self.model, begin=start)
            above = place.right_above
            if above is not None and above.error is not None:
                answer.recorded_place = TurnPlace.RETRY
        self.stream = start
        answer.word_at = answer.take(line)
        return answer

    def _after(self, place: TreePlace, answer: TranscriptAnswer) -> TreePlace:
        return place if place.answer is answer else TreePlace(answer)

    def _fail(self, line: TranscriptLine, place: TreePlace, why: str, kind: str | None) -> TreePlace | None:
        """Notes that the answer above failed, or that a request failed without one; None if there is neither."""
        answer = place.right_above
        if answer is None or answer.calls:
            return self.failed_request(line, place, why, after_results=True, kind=kind)
        answer.fail(why, answer.take(line), kind=kind)
        return place

    def _call(self, line: TranscriptLine, answer: TranscriptAnswer, update: Mapping[str, Any]) -> ToolCall:
        """Reads a call, with the model's own arguments if they are stored."""
        key = known_text(update.get("toolCallId"))
        path = ("params", "update")
        value = self.arguments.get(key or "", update.get("rawInput"))
        arguments, form = arguments_of(value, partial(slice_of, line.data, *path), "rawInput")
        return ToolCall(key, known_text(update.get("title")) or "", arguments, arguments is not None, form=form,
                        at=pointer_at(answer.word_at, *path))

    def _result(self, line: TranscriptLine, place: TreePlace, update: Mapping[str, Any]) -> TreePlace:
        """Reads the result of a call that has ended."""
        key, status = known_text(update.get("toolCallId")), update.get("status")
        if status not in ("completed", "failed"):
            return place
        text = "\n".join(_text(each.get("content")) for each in objects_of(update.get("content")))
        failed, answer = status == "failed", place.answer
        call = next((each for each in answer.calls if each.id == key), None) if answer is not None else None
        if failed and answer is not None and call is not None and text.startswith(BROKEN_ARGUMENTS):
            note = f"Grok could not use the arguments of {call.name}"
            answer.findings.append(Finding(UNREAD_CALL, Severity.INFO, note, call.at))
        denied = failed and _NOT_RUN.match(text) is not None
        return self.results(line, place, ToolResultPart(key, None, text, failed), denied=denied)

    def _end(self, line: TranscriptLine, place: TreePlace, update: Mapping[str, Any]) -> TreePlace:
        """Reads the end of a turn; an error without an answer is that of the turn's last request."""
        word, kind = any_text(update.get("stop_reason")), known_text(update.get("error_kind"))
        why = known_text(update.get("agent_result")) or word
        mark, answer, usage = TURN_ENDS.get(kind or word), place.right_above, object_of(update.get("usage"))
        if answer is not None and number_of(usage.get("modelCalls")) == 1 and answer.usage is None:
            answer.usage = Usage(*(number_of(usage.get(name)) for name in COUNTS))
        if mark is not None and (answer is not None or mark in ("ended", "interrupted")):
            return self.say(line, place, why, mark=mark)
        return self._fail(line, place, why, kind) or self.say(line, place, why, mark="stopped")


def _arguments(path: str) -> Iterator[tuple[str, str]]:
    """The ids of the calls in `chat_history.jsonl`, each with the text of its arguments."""
    for row in object_lines(redact.body(sibling(path, "chat_history.jsonl") or b"")):
        for call in objects_of(object_in(row).get("tool_calls")):  # none in a row that is being written
            if isinstance(call.get("id"), str) and isinstance(call.get("arguments"), str):
                yield call["id"], call["arguments"]


def _text(content: Any) -> str:
    """The text of a block of content."""
    return known_text(object_of(content).get("text")) or ""
