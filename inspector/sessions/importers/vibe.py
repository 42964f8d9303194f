"""Sessions of Mistral Vibe 3: `~/.vibe/logs/session/unified/<id>/journal/*.jsonl`.

A record is a step of Vibe's loop: `action_intent` has the messages that a request adds to the history, `action_result`
an answer with its stop reason, or the result of a call, and `core_input` what the user did. Vibe deletes a journal once
a later turn is stored, so that a file mostly has the last turn, and the turns before it as the history of the first
request, without stop reasons. An answer that was cut is discarded: Vibe asks again, up to six times.
Source: mistral-vibe 3.0.2 (`mistralai_vibe_local_harness`), and its sessions against a scripted provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.sessions.importers.records import first_look, object_beside
from inspector.sessions.reasons import recorder_reason, table_reason
from inspector.sessions.recording import Options, TurnPlace
from inspector.sessions.traffic import http_status
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import (
    TranscriptAnswer,
    TranscriptLine,
    TreePlace,
    any_text,
    text_of,
)
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, usage_in
from loop_core.values import At, OpaquePart, Stop, ToolResultPart
from loop_core.wire.failures import StopRow

MARK = "recovery_journal_record_version"
STOPS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, "mistral-vibe 3.0.2 RustCompletionFinishReason"),
    "tool_call": StopRow(Stop.TOOL_CALL, None, "mistral-vibe 3.0.2: any word but length, of an answer with calls"),
    "length": StopRow(Stop.MAX_TOKENS, None, "mistral-vibe 3.0.2"),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, "mistral-vibe 3.0.2"),
}
"""Stop word of Vibe, which maps the words of all providers to these and `other` -> its meaning."""
BEGINS = ("command_", "core_", "action_", "process_", "callback_", "receipt_", "projection_", "session_")
"""The beginnings of the types of all records. Records that hold no part of an exchange are only counted."""
CANCELLED = "effect_recovery_failed"
"""The code of the error of a request that was stopped."""
DISCARDED = "Your previous response was discarded because it reached the output token limit"
"""The beginning of the message with which Vibe asks again for an answer that was cut."""
DENIED = "tool_denied"
"""The code of the error of a call that the user or a rule refused."""
FIELDS: Fields = {
    "": {"type": (str,), "payload": (dict,)},
    "payload": {"action_id": (str,), "kind": (str,), "request": (dict,), "result": (dict,), "input": (dict,),
                "params": (dict,), "transition_shape": (dict,)},
}


def sniff(head: bytes, path: str) -> int:
    """Recognises a record of a journal."""
    return 100 if any(MARK in value and "payload" in value for value in first_look(head).objects) else 0


def _results_of(answer: TranscriptAnswer | None) -> set[str]:
    """The ids of the calls of an answer that have a result, which a history repeats."""
    return set(answer.results) if answer else set()


class _Journal(ChatReader):
    """One journal being read."""

    name, agent, fields = "vibe", "Mistral Vibe", FIELDS
    unit, row_word = "line", ("a record", "records")
    words = ("stop reasons are in Vibe's words, for all providers; the turns before the last one, of which Vibe keeps "
             "no more than the messages, have none")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        about = object_beside(path, "../meta.json")
        self.model = known_text(object_of(about.get("config")).get("model_name"))
        self.title, self.session_id = known_text(about.get("title")) or "", known_text(about.get("session_id")) or ""
        self.parent_id = known_text(about.get("parent_session_id")) or ""
        self.typed: list[str] = []
        """The messages of the user that no request has had so far."""
        self.compacting: set[Any] = set()
        """The ids of the requests for a summary of the history."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        payload, kind = object_of(line.value.get("payload")), line.value.get("type")
        if kind == "action_intent" and payload.get("kind") == "completion":
            return self._request(line, payload, place)
        if kind == "action_result" and payload.get("action_id") in self.compacting:
            self.compacted = f"line {line.number}: the history was shortened before this answer"
        elif kind == "action_result":
            return self._result(line, object_of(payload.get("result")), place)
        elif kind == "core_input":
            place = self._event(line, payload, place)
        lines.count(kind, frozenset({kind}) if isinstance(kind, str) and kind.startswith(BEGINS) else frozenset())
        return place

    def _event(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        command = object_of(object_of(payload.get("input")).get("command"))
        if command.get("type") == "user_message":
            self.typed.append(text_of(command.get("content")))
        seen = object_of(payload.get("transition_shape")).get("observations")
        seen = seen if isinstance(seen, list) else []
        if "turn_interrupted" in seen:
            return self.say(line, place, "", mark="interrupted")
        return self.say(line, place, "turn_completed", mark="ended") if "turn_completed" in seen else place

    def _request(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads what a request adds to the history; the first one of a file, the history."""
        request = object_of(payload.get("request"))
        if request.get("purpose") == "compaction":
            self.compacting.add(payload.get("action_id"))
            return place
        added = object_of(object_of(request.get("model_input")).get("messages"))
        first, whole = not self.answers, added.get("type") == "replace"
        known = _results_of(place.answer)
        for number, message in numbered_objects(added.get("messages")):
            role, text = message.get("role"), text_of(message.get("content"))
            if role == "tool":
                place = self._late_result(line, message, text, place, known)
            elif role == "assistant" and first and whole:
                place = self._earlier(line, number, message, place)
                known = _results_of(place.answer)
            elif role == "user" and text in self.typed:
                self.typed.remove(text)
                place = self.say(line, place, text)
            elif role == "user" and whole and text.startswith(DISCARDED):
                self.remarks["ask again for an answer that was cut, which Vibe did not store"] += 1
            elif role == "user" and (first or not whole):
                place = self.say(line, place, text, own=not whole)
        return place

    def _late_result(
        self, line: TranscriptLine, message: dict[str, Any], text: str, place: TreePlace, known: set[str]
    ) -> TreePlace:
        """Reads a result in the history, unless a record of its own had it: that of a call that was not dispatched."""
        key, answer = known_text(message.get("tool_call_id")), place.answer
        if answer is None or key in known:
            return place
        known.update([key] if key is not None else [])
        return self.result(line, place, key, text, message.get("outcome") == "failure", message.get("name"))

    def _earlier(self, line: TranscriptLine, number: int, message: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads an answer of an earlier turn, whose stop reason is not stored."""
        answer = self.answer(line, place, f"message {number}")
        answer.unended = True
        at = answer.take(line)
        path = ("payload", "request", "model_input", "messages", "messages", number, "content")
        for index, part in numbered_objects(message.get("content")):
            written = object_of(part.get("arguments"))
            _take_part(answer, {**part, "arguments_json": written.get("raw")}, line, at, *path, index)
        return TreePlace(answer)

    def _result(self, line: TranscriptLine, result: dict[str, Any], place: TreePlace) -> TreePlace:
        kind = result.get("type")
        inner = object_of(result.get("result"))
        error = object_of(result.get("error")) or object_of(inner.get("error"))
        why = known_text(error.get("message")) or "no message"
        if kind in ("tool_succeeded", "tool_failed"):
            text = text_of(inner.get("content")) or any_text(inner.get("structured_content"))
            given = ToolResultPart(known_text(result.get("call_id")), None, text or (why if error else ""),
                                   kind == "tool_failed")
            return self.results(line, place, given, denied=error.get("code") == DENIED)
        if kind not in ("completion_succeeded", "completion_failed"):
            return place
        answer = self.answer(line, place)
        self.note_compaction(answer)
        if any(row.own and row.text.startswith(DISCARDED) for row in place.rows()):
            answer.recorded_place = TurnPlace.RETRY  # Vibe took the cut answer out of the history
        at = answer.take(line)
        if kind == "completion_failed":
            answer.word_at = pointer_at(at, "payload", "result", "error", "code")
            if error.get("code") == CANCELLED:
                answer.stop = recorder_reason(Stop.CANCELLED, None, answer.word_at, CANCELLED, "vibe.errors")
            else:
                status = http_status(object_of(error.get("details")).get("httpStatus"))
                answer.fail(why, at, status, known_text(error.get("code")))
            return TreePlace(answer)
        path = ("payload", "result", "result")
        for number, part in numbered_objects(inner.get("parts")):
            _take_part(answer, part, line, at, *path, "parts", number)
        if answer.text == " " and len(answer.parts) == 1:  # Vibe's part for an answer without any
            answer.parts.clear()
        answer.usage = usage_in(object_of(inner.get("usage")), "input_tokens", "output_tokens", None,
                                "cached_input_tokens")
        word = known_text(inner.get("finish_reason"))
        if word is not None:
            answer.word_at = pointer_at(at, *path, "finish_reason")
            answer.stop = table_reason(word, STOPS, answer.word_at, "vibe.finish_reasons")
        return TreePlace(answer)


def _take_part(
    answer: TranscriptAnswer, part: dict[str, Any], line: TranscriptLine, at: At, *path: str | int
) -> None:
    kind = part.get("type")
    if kind == "text":
        answer.add_text(part.get("text"))
    elif kind == "reasoning":
        answer.add_thought(text_of(part.get("content")))
    elif kind == "tool_call":
        take_call(answer, part, line, at, *path, member="arguments_json")
    else:
        answer.parts.append(OpaquePart(str(kind), slice_of(line.data, *path) or "{}"))


reader = _Journal.of
