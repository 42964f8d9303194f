"""Transcripts of Antigravity (Google): `brain/<conversation>/.system_generated/logs/transcript_full.jsonl`.

A row is a step: a message of the user, an answer with its calls, the result of a call, or a message of the agent. Calls
and results have no ids; results have the order of the calls. No stop word, cap or token count is stored.
`transcript.jsonl` beside it has the same steps, with long texts and arguments shortened. Sources: transcripts in public
repositories; fixtures of jazzyalex/agent-sessions.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from inspector.sessions.importers.records import first_look
from inspector.sessions.reasons import shortened_call_reason
from inspector.sessions.recording import Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, take_call
from inspector.sessions.transcripts.member_values import first_text, known_text, numbered_objects
from loop_core.values import At, Finding, Severity, StopReason, ToolCall
from loop_core.wire.gemini_generate.table import API

ANSWER = "PLANNER_RESPONSE"
REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
"""Matches the text that the user typed, in a message to which Antigravity has added other text."""
MODEL = re.compile(r"`Model Selection` from .{0,80}? to (.{1,80}?)\.(?:\s|<|\Z)")
"""Matches the name of the model that the user chose before a message."""
FIELDS: Fields = {"": {
    "step_index": (int,), "source": (str,), "type": (str,), "status": (str,), "created_at": (str,), "content": (str,),
    "thinking": (str,), "error": (str,), "tool_calls": (list,), "truncated_fields": (list,),
}}


def sniff(head: bytes, path: str) -> int:
    """Recognises a step."""
    return 95 if any({"step_index", "source", "type"} <= value.keys() for value in first_look(head).objects) else 0


class _Session(ChatReader):
    own_api = API
    name, agent, fields = "antigravity", "Antigravity", FIELDS
    unit, row_word = "line", ("a step", "steps")
    several_apis = False

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        parts = PurePath(path).parts
        self.session_id = parts[-4] if parts[-3:-2] == (".system_generated",) and len(parts) > 3 else ""
        self.shortened: set[str] = set()
        """The ids of the answers with calls whose arguments are shortened."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, kind, source = line.value, line.value.get("type"), line.value.get("source")
        text = known_text(value.get("content")) or ""
        if kind == ANSWER:
            return self._answer(line, place)
        if kind == "USER_INPUT":
            chosen = MODEL.search(text)
            self.model = chosen[1] if chosen is not None else self.model
            return self.say(line, place, "\n".join(REQUEST.findall(text)) or text)
        if kind == "ERROR_MESSAGE":
            return self._failure(line, place, first_text(value.get("error"), text) or "no reason given")
        if source == "MODEL":
            return self._result(line, place, text, value.get("status") == "ERROR")
        if kind == "CHECKPOINT":
            self.compacted = f"line {line.number}: the history was shortened before this answer"
        elif source == "SYSTEM" and text:
            return self.say(line, place, text, own=True)
        lines.count(kind, frozenset({"CHECKPOINT", "CONVERSATION_HISTORY"}))
        return place

    def _answer(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        value = line.value
        answer = self.answer(line, place, "step")
        answer.started, answer.word_at = known_text(value.get("created_at")), answer.take(line)
        answer.unended = value.get("status") != "DONE"
        self.note_compaction(answer)
        answer.add_thought(value.get("thinking"))
        answer.add_text(value.get("content"))
        for number, call in numbered_objects(value.get("tool_calls")):
            take_call(answer, call, line, answer.word_at, "tool_calls", number, member="args")
        self._mark_shortened(answer, value.get("truncated_fields"), answer.word_at)
        return TreePlace(answer)

    def _mark_shortened(self, answer: TranscriptAnswer, members: Any, at: At) -> None:
        """Reports the members that Antigravity shortened. With shortened calls, the stop reason counts as not recorded
        (`infer_end`)."""
        if isinstance(members, list) and members:
            message = "Antigravity left out parts of long texts of this answer; transcript_full.jsonl has them"
            answer.findings.append(Finding("transcript.shortened", Severity.WARNING, message, at))
            self.shortened |= {answer.id} if "tool_calls" in members else set()

    def infer_end(self, answer: TranscriptAnswer) -> StopReason:
        stop = super().infer_end(answer)
        return shortened_call_reason(stop) if answer.id in self.shortened else stop

    def _result(self, line: TranscriptLine, place: TreePlace, text: str, failed: bool) -> TreePlace:
        """Reads the result of the first call without one; it gets the call's name."""
        call = _next_call(place)
        return self.result(line, place, None, text, failed, call and call.name)

    def _failure(self, line: TranscriptLine, place: TreePlace, why: str) -> TreePlace:
        """Reads an error: the result of the first call without one, else the failure of a request without an answer."""
        if _next_call(place) is not None:
            return self._result(line, place, why, True)
        failed = self.failed_request(line, place, why, after_results=True)
        if failed is None:
            self.skip(line, f"an error of the agent: {why[:200]}")
        return failed or place


def _next_call(place: TreePlace) -> ToolCall | None:
    """The first call above a place without a result so far, because results have the order of the calls."""
    calls = place.answer.calls if place.answer is not None else []
    return next(iter(calls[place.result_count:]), None)


reader = _Session.of
