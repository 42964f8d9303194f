"""The output of `gemini --output-format stream-json`: the beginning, pieces of text, calls, results, and the outcome.

The text of an answer comes in pieces, then its calls, then their results. If a request was sent again, the pieces of
both attempts follow one another without a mark. No stop word is stored. Gemini CLI writes the outcome `success`
whenever its loop ended by itself, whatever the finish reason was, and the token counts of the whole run. Source:
gemini-cli `packages/core/src/output/types.ts`, `packages/cli/src/nonInteractiveCli.ts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.sessions.importers.records import first_look
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, take_call
from inspector.sessions.transcripts.member_values import counts_of, known_text, object_of
from loop_core.values import TextPart, Usage
from loop_core.wire.gemini_generate.table import API

OUTCOMES: Mapping[str, str] = {
    "FatalCancellationError": "interrupted",
    "FatalTurnLimitedError": "stopped",
}
"""Type of the error that ended a run -> the mark of its row. Any other error is a failed request."""
FIELDS: Fields = {
    "": {"type": (str,), "role": (str,), "tool_id": (str,), "tool_name": (str,), "status": (str,), "model": (str,),
         "error": (dict,), "stats": (dict,), "session_id": (str,)},
}


def sniff(head: bytes, path: str) -> int:
    """Recognises an event of this stream among the first lines."""
    return 90 if any(map(_is_event, first_look(head).objects)) else 0


def _is_event(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return (kind in ("tool_use", "tool_result") and "tool_id" in value) or (
        kind == "init" and {"session_id", "model"} <= value.keys()) or (
        kind == "result" and {"status", "stats"} <= value.keys())


class _Stream(ChatReader):
    own_api = API
    name, agent, fields = "gemini-stream", "Gemini CLI", FIELDS
    unit, row_word = "line", ("an event", "events")
    several_apis = False

    failure = ""
    """The last error in an event, to which an outcome without a message refers."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, kind = line.value, line.value.get("type")
        if kind == "message" and value.get("role") == "assistant":
            return self._text(line, place)
        if kind == "message":
            return self.say(line, place, any_text(value.get("content")), own=value.get("role") != "user")
        if kind == "tool_use":
            answer = self.stream_answer(line, place, "event")
            take_call(answer, value, line, answer.word_at, key="tool_id", name="tool_name", member="parameters")
            return TreePlace(answer)
        if kind == "tool_result":
            failed = value.get("status") == "error"
            text = any_text(value.get("output")) or known_text(object_of(value.get("error")).get("message")) or ""
            return self.result(line, place, value.get("tool_id"), text, failed, value.get("tool_name"))
        if kind == "result":
            return self._outcome(line, place)
        if kind == "error":
            why = known_text(value.get("message")) or "no reason given"
            self.failure = why if value.get("severity") == "error" else self.failure
            self.skip(line, f"a note of Gemini CLI: {why[:200]}")
            return place
        if kind == "init":
            self.model, self.session_id = known_text(value.get("model")), known_text(value.get("session_id")) or ""
        lines.count(kind, frozenset({"init"}))
        return place

    def _text(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads the next piece of an answer's text."""
        answer = self.stream_answer(line, place, "event")
        text = any_text(line.value.get("content"))
        last = answer.parts[-1] if answer.parts else None
        if isinstance(last, TextPart):
            answer.parts[-1] = last._replace(text=last.text + text)
        else:
            answer.add_text(text)
        return TreePlace(answer)

    def _outcome(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads the end of the run: by itself, or by an error."""
        value, stats = line.value, object_of(line.value.get("stats"))
        if len(self.answers) == 1:  # the counts are those of the whole run
            self.answers[0].usage = Usage(*counts_of(
                stats, "input_tokens", "output_tokens", "reasoning_tokens", "cached"))
        error = object_of(value.get("error"))
        if value.get("status") != "error":
            return self.say(line, place, "success", mark="ended") if value.get("status") == "success" else place
        text, kind = known_text(error.get("message")) or self.failure or "no message", known_text(error.get("type"))
        mark = OUTCOMES.get(kind or "")
        if mark is not None:
            return self.say(line, place, text, mark=mark)
        answer = place.right_above or self.answer(line, place, "error")  # pieces without a result: their answer failed
        answer.fail(text, answer.take(line), kind=kind)
        return TreePlace(answer)


reader = _Stream.of
