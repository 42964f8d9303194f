"""Sessions of Crush: `<project>/.crush/crush.db`, whose messages are lists of parts.

The stop words are Crush's own. An unfinished call is marked (`finished`) and has the arguments received so far. Source:
charmbracelet/crush `internal/message/content.go`, `internal/db/migrations`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inspector.sessions.importers.database import ChatTableReader
from inspector.sessions.reasons import INFERRED, table_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine
from inspector.sessions.transcripts.chat_messages import pointer_at
from inspector.sessions.transcripts.member_values import api_of, numbered_objects, object_of, text_or_none
from loop_core.values import At, Evidence, Stop, StopReason, ToolCall, ToolResultPart
from loop_core.wire.failures import StopRow

REFUSED = "permission_denied"
"""The stop word of an answer whose call the user refused, which ended the turn."""
STOPS: Mapping[str, StopRow] = {
    "end_turn": StopRow(Stop.END_TURN, None, "content.go; also written over a tool_use that was halted"),
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, "content.go"),
    "tool_use": StopRow(Stop.TOOL_CALL, None, "content.go"),
    REFUSED: StopRow(Stop.TOOL_CALL, None, "content.go of 2025: written over a tool_use that the user refused"),
    "canceled": StopRow(Stop.CANCELLED, None, "content.go"),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, "content.go: a filter, or a refusal"),
}
"""Stop word of Crush -> its meaning. The table lacks `error`, which is classified by its message, and `unknown`."""
APIS: Mapping[str, str] = {
    "anthropic": "anthropic_messages",
    "openai": "openai_responses",
    "gemini": "gemini_generate",
    "bedrock": "anthropic_messages",
}
"""Beginning of a provider's name -> the wire format that Crush uses with the provider."""
FIELDS: Fields = {"": {"role": (str,), "parts": (list,), "model": (str,), "provider": (str,)}}
_STATUS = re.compile(r'": ([45]\d\d) |\bError ([45]\d\d), Message')
"""Matches the HTTP status in the details of an error, as the clients of three providers write it."""
UNPARSED = "Tool call failed: arguments were not valid JSON."
"""The beginning of the result of a call whose arguments were cut or not JSON, and which Crush stores as `{}`
(`agent.go`, `sanitizeToolInput`)."""
NO_EXCHANGE = frozenset({"system"})


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the database."""
    return _Reader(path, options).read_database()


class _Reader(ChatTableReader):
    name, agent, fields = "crush", "Crush", FIELDS
    words = "stop reasons are Crush's own words for the providers'"
    created = "created_at"
    json_columns = frozenset({"parts"})

    def message(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        value, role = line.value, line.value.get("role")
        parts = [(number, str(part.get("type")), object_of(part.get("data")))
                 for number, part in numbered_objects(value.get("parts"))]
        if role == "assistant":
            self._answer(line, parts)
        elif role in ("user", "tool"):
            for _, kind, data in parts:
                if kind == "tool_result":
                    self.results(line, self.here, _result(data))
                elif kind == "text":
                    self.say(line, self.here, str(data.get("text") or ""), own=data.get("hidden") is True)
                elif kind == "shell_command":
                    self.say(line, self.here, f"{data.get('command', '')}\n{data.get('output', '')}", own=True)
        else:
            lines.count(role, NO_EXCHANGE)

    def _answer(self, line: TranscriptLine, parts: list[tuple[int, str, dict[str, Any]]]) -> None:
        value = line.value
        key = text_or_none(value.get("id"))
        answer = self.answer(line, self.here, model=value.get("model"),
                             key=f"row {line.number}" if key is None else key,
                             api=api_of(APIS, value.get("provider")), begin=value.get("created_at"))
        at = answer.take(line)
        answer.word_at = pointer_at(at, "parts")
        answer.unended = all(kind != "finish" for _, kind, _ in parts)
        done: list[ToolResultPart] = []
        # Crush writes `end_turn` for every summary without an error, whatever the provider's word was.
        is_summary = value.get("is_summary_message") == 1
        for number, kind, data in parts:
            here = pointer_at(at, "parts", number)
            if kind == "text":
                answer.add_text(data.get("text"))
            elif kind == "reasoning":
                answer.add_thought(data.get("thinking"))
            elif kind == "tool_call":
                answer.parts.append(ToolCall(
                    text_or_none(data.get("id")), str(data.get("name") or ""), text_or_none(data.get("input")),
                    data.get("finished") is not False, at=here))
            elif kind == "tool_result":
                done.append(_result(data))
            elif kind == "finish" and is_summary and data.get("reason") == "end_turn":
                self.say(line, self.here, "the summary was stored", mark="ended")
            elif kind == "finish":
                _end(answer, data, here)
                if data.get("reason") == REFUSED:
                    self.say(line, self.here, "", mark="interrupted", at_tool=True)
        self.results(line, self.here, *done)
        if is_summary:
            self.remarks["hold the summary of a compacted history"] += 1

    def settle(self) -> None:
        """Marks calls as malformed whose arguments Crush could not read; then infers other ends."""
        for answer in self.answers:
            _reject(answer)
        super().settle()


def _reject(answer: TranscriptAnswer) -> None:
    lost = {key for key, part in answer.results.items() if part.text.startswith(UNPARSED)}
    call = next((call for call in answer.calls if call.id in lost), None)
    if call is None:
        return
    answer.parts = [part._replace(arguments=None, closed=False) if type(part) is ToolCall and part.id in lost else part
                    for part in answer.parts]
    if answer.stop is not None and answer.stop.normalized in (Stop.TOOL_CALL, Stop.END_TURN):
        note = f"Crush says that the arguments of {call.name} were no valid JSON; {{}} stands for them"
        answer.stop = StopReason(Stop.MALFORMED_TOOL_CALL, None, None, (
            *answer.stop.evidence, Evidence(f"{INFERRED}call_rejected", call.at, note)))


def _result(data: dict[str, Any]) -> ToolResultPart:
    return ToolResultPart(text_or_none(data.get("tool_call_id")), text_or_none(data.get("name")),
                          str(data.get("content") or ""), data.get("is_error") is True)


def _end(answer: TranscriptAnswer, data: dict[str, Any], at: At) -> None:
    word = data.get("reason")
    if not isinstance(word, str) or not word:
        return
    answer.word_at = at
    # `end_turn` may replace a `tool_use` after which the run was halted; then the calls have no results.
    if word == "error":
        text = f"{data.get('message') or ''} {data.get('details') or ''}".strip()
        found = _STATUS.search(text)
        answer.fail(text, at, int(found[1] or found[2]) if found else None, word=word)
    else:
        answer.stop = table_reason(word, STOPS, at, "crush.finish_reasons")
