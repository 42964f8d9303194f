"""Transcripts of Qwen Code: `~/.qwen/projects/<cwd>/chats/<id>.jsonl`, a tree of rows whose parts are Gemini's, and
those of its subagents: `subagents/<id>/agent-<id>.jsonl` beside `chats`, whose rows have the id of the session.

No stop reason is stored. A failed request is in a row of telemetry, or in the outcome of its turn (`turn_result`),
which newer releases write when they serve a client. Rows with the same `uuid` are pieces of one message, and a line may
have two records without a break between them. Source: qwen-code 0.15.10 and 0.24, `chatRecordingService.ts` and
`agent-transcript.ts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any

from inspector.sessions.importers.records import Piece, first_look, values_in
from inspector.sessions.reasons import RECORDER, inferred_reason, table_reason
from inspector.sessions.recording import Options
from inspector.sessions.traffic import http_status, written_status
from inspector.sessions.transcripts import Fields, TranscriptLines, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import (
    counts_of,
    known_text,
    number_of,
    numbered_objects,
    object_of,
    objects_of,
)
from loop_core.values import (
    At,
    Evidence,
    ExchangePart,
    OpaquePart,
    ReasoningPart,
    Stop,
    StopReason,
    TextPart,
    ToolResultPart,
    Usage,
)
from loop_core.wire.failures import StopRow
from loop_core.wire.gemini_generate.table import API

OWN = frozenset({"notification", "hook", "system_reminder", "cron"})
"""The subtypes of rows of the user that Qwen Code wrote itself."""
NO_EXCHANGE = frozenset({"system", *(f"system/{subtype}" for subtype in (
    "ui_telemetry", "custom_title", "rewind", "chat_compression", "slash_command", "session_artifact_snapshot",
    "session_artifact_event", "at_command", "attribution_snapshot", "file_history_snapshot", "session_model",
    "turn_result", "parent_session", "session_source", "session_execution_engine", "session_approval_mode",
    "session_notes", "session_sources_snapshot", "omni_recall", "agent_bootstrap", "agent_retry",
    "agent_session_ready", "user_text_elements", "branch_checkpoint", "goal_state", "goal_turn_end",
    "background_task_completed", "agent_launch_prompt"))})
"""The types of records without a part of an exchange (`ChatRecord`)."""
STOPS: Mapping[str, StopRow] = {
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, "Agent Client Protocol, StopReason"),
    "refusal": StopRow(Stop.SAFETY_BLOCKED, None, "Agent Client Protocol, StopReason"),
}
"""Word that Qwen Code sends its client for the end of a turn -> the stop reason of the turn's last answer. `end_turn`
does not depend on the provider's word: Qwen Code also sends it for a cut answer (QwenLM/qwen-code #12113)."""
RESPONSE = "qwen-code.api_response"
"""The name of the event of telemetry about a response, which is before the response's message."""
ABORTED = frozenset({"APIUserAbortError", "AbortError"})
"""The types of errors by which the SDKs report that the client stopped a request."""
MANAGED = "managedSession"
"""The member with an event of the managed engine, which stores the contents of messages in separate files."""
FIELDS: Fields = {
    "": {"type": (str,), "uuid": (str,), "parentUuid": (str,), "subtype": (str,), "timestamp": (str,),
         "model": (str,), "message": (dict,), "usageMetadata": (dict,), "systemPayload": (dict,)},
    "message": {"role": (str,), "parts": (list,)},
}


def sniff(head: bytes, path: str) -> int:
    """Recognises a row with a session, an id and a message of parts, or a system record that only Qwen Code writes."""
    parsed_head = first_look(head)
    for value in parsed_head.objects:
        if "sessionId" in value and ("parts" in object_of(value.get("message"))
                                     or ("uuid" in value and "systemPayload" in value) or MANAGED in value):
            return 100
    return 0


class _Records(TranscriptLines):
    """The records of a file, of which several may be on one line."""

    def _lines(self, file: IO[bytes], number: int = 0) -> Iterator[Piece]:
        for at_line, piece, last in super()._lines(file, number):
            if b"}{" not in piece:
                yield at_line, piece, last
                continue
            # Invalid UTF-8 is kept byte for byte, because the offsets of records include these bytes.
            text, done = piece.decode("utf-8", "surrogateescape").strip(), 0
            for start, end in values_in(text, 0):
                done = len(text) if end is None else end
                yield at_line, text[start:done].encode("utf-8", "surrogateescape"), last and done == len(text)
            if done < len(text):  # a bracket that closes no list
                yield at_line, text[done:].encode("utf-8", "surrogateescape"), last


class _Transcript(ChatReader):
    own_api = API  # the parts are Gemini's for every model
    name, agent, fields = "qwen", "Qwen Code", FIELDS
    unit, row_word = "line", ("a row", "rows")
    several_apis, steered = False, True
    hides_broken_arguments = True

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.by_row: dict[str, TranscriptAnswer] = {}
        self.responses = self.taken = 0
        """The number of responses in telemetry so far, and that number at the last row of the model."""

    def lines(self, data: bytes | IO[bytes]) -> TranscriptLines:
        lines = _Records(data, self.fields)
        lines.path = None  # a record may begin within a line, so rows cannot be read again by line
        return lines

    def above(self, value: dict[str, Any]) -> TreePlace:
        """The place after the parent row; else after the previous row, unless the row begins a tree."""
        if "parentUuid" not in value:
            return self.last
        parent = value.get("parentUuid")
        if not isinstance(parent, str):
            return TreePlace(None)
        # otherwise two consecutive answers without parents would become one
        parted = value.get("type") == "assistant" and self.last.right_above is not None
        return self.parent(parent) or (TreePlace(None) if parted else self.last)

    def keep(self, line: TranscriptLine, place: TreePlace) -> None:
        """Stores the place after a row under the row's id; for a row in pieces, that after the last piece."""
        self.last = place
        key = line.value.get("uuid")
        if isinstance(key, str):
            self.places[hash(key)] = place

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, kind = line.value, line.value.get("type")
        self.session_id = self.session_id or self._identify(value)
        parts = objects_of(object_of(value.get("message")).get("parts"))
        if kind == "assistant":
            return self._assistant(line, place)
        if kind == "tool_result":
            return self._results(line, place, tuple(
                result_of(object_of(part.get("functionResponse"))) for part in parts if "functionResponse" in part
            ) or (outcome_of(object_of(value.get("toolCallResult")), parts),))
        if kind == "user":
            display_text = known_text(object_of(value.get("systemPayload")).get("displayText"))
            text = display_text or "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
            own = (value.get("subtype") in OWN or value.get("provenance") not in (None, "real_user")
                   or value.get("externalInputKind") == "notification")
            return self.say(line, place, text, own=own)
        return self._system(line, lines, place)

    def _identify(self, value: dict[str, Any]) -> str:
        """The id of the session of the first row; for a subagent, one below the id of the session that began it."""
        session, agent = known_text(value.get("sessionId")) or "", known_text(value.get("agentId"))
        if not agent or value.get("isSidechain") is not True:
            return session
        self.parent_id, self.title = session, known_text(value.get("agentName")) or ""
        return f"{session}/{agent}"

    def _results(self, line: TranscriptLine, place: TreePlace, results: tuple[ToolResultPart, ...]) -> TreePlace:
        """Reads results; those of the answer before the last one too, because Qwen Code also runs the calls of an
        answer that was cut and asked for again."""
        last = place.answer
        if last is not None and (before := last.above.answer) is not None and last.above.since is None:
            names = {call.id for call in before.calls} - {call.id for call in last.calls}
            if late := tuple(each for each in results if each.call_id and each.call_id in names):
                before.after.append(InterimRow(line.number, "", late))
        return self.say(line, place, "", results)

    def _assistant(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads a message of the model. Consecutive messages, and those with the same `uuid`, are one answer, unless
        the earlier one has counts and telemetry has a further response in between."""
        key = known_text(line.value.get("uuid")) or f"line {line.number}"
        answer, above = self.by_row.get(key), place.right_above
        another = above is not None and above.usage is not None and self.responses > self.taken
        if answer is None and above is not None and above.error is None and not another:
            answer = above
        self.taken = self.responses
        if answer is None:
            answer = self.answer(line, place, "row", line.value.get("model"))
            # `/branch` copies rows with their ids into another file; the ids identify such copies.
            answer.id = known_text(line.value.get("uuid")) or answer.id
            self.note_compaction(answer)
            if above is not None and above.stop is None and above.calls:
                # geminiChat.ts: after an answer with calls only `MAX_TOKENS` leads to another request at once
                why = f"line {line.number}: Qwen Code asked again without a result"
                above.stop = inferred_reason(Stop.MAX_TOKENS, above.word_at, "resumed", At(ExchangePart.REQUEST), why)
        self.by_row[key] = answer
        answer.model = answer.model or known_text(line.value.get("model"))
        at = answer.take(line)
        for number, part in numbered_objects(object_of(line.value.get("message")).get("parts")):
            self._part(answer, line, part, number, at)
        answer.usage = usage_of(line.value.get("usageMetadata")) or answer.usage
        return TreePlace(answer)

    def _part(
        self, answer: TranscriptAnswer, line: TranscriptLine, part: dict[str, Any], number: int, at: At
    ) -> None:
        call = part.get("functionCall")
        if isinstance(call, dict):
            take_call(answer, call, line, at, "message", "parts", number, "functionCall", member="args")
        elif isinstance(part.get("text"), str):
            kind = ReasoningPart if part.get("thought") is True else TextPart
            answer.parts.append(kind(part["text"]))
        else:
            answer.parts.append(OpaquePart(next(iter(part), "part"),
                                           slice_of(line.data, "message", "parts", number) or "{}"))

    def _system(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        payload, kind = object_of(line.value.get("systemPayload")), line.value.get("subtype")
        event = object_of(payload.get("uiEvent"))
        if MANAGED in line.value:
            self.remarks["are events of the managed engine, whose messages are in other files and were not read"] += 1
            return place
        if kind == "custom_title":
            self.title = known_text(payload.get("customTitle")) or self.title
        elif kind == "parent_session":
            self.parent_id = known_text(payload.get("parentSessionId")) or self.parent_id
        elif kind == "chat_compression":
            self.compacted = f"line {line.number}: the history was compacted before this answer"
        elif kind == "turn_result":
            place = self._outcome(line, payload, place if line.value.get("parentUuid") else self.last)
        elif kind == "rewind" and isinstance(payload.get("targetUuid"), str):
            place = self.parent(payload["targetUuid"]) or place
        elif "subagent_name" in event:
            self.remarks["are about requests of a subagent, whose messages are not in this file"] += 1
        elif event.get("event.name") == RESPONSE:
            self.responses += 1
        # With a function's name, the error is that of a tool.
        elif isinstance(event.get("error_message"), str) and "function_name" not in event:
            return self._failure(line, event, place)
        lines.count(f"{line.value.get('type')}/{kind}" if kind else line.value.get("type"), NO_EXCHANGE)
        return place

    def _outcome(self, line: TranscriptLine, payload: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads the end of a turn, in the words that Qwen Code sends its client."""
        state, word, error = payload.get("state"), payload.get("stopReason"), object_of(payload.get("error"))
        if state == "cancelled":
            return self.say(line, place, "", mark="interrupted")
        if state == "error":
            # a row of telemetry may have the same failure
            has_failed = place.right_above is not None and place.right_above.error is not None
            failure = {"error_message": known_text(error.get("message")) or "no message",
                       "status_code": written_status(error.get("code"))}
            return place if has_failed else self._failure(line, failure, place)
        if state == "completed" and word in (None, "end_turn"):
            return self.say(line, place, "turn_result", mark="ended")
        last = place.right_above
        # After results of its calls, the last answer was complete, and the word is about a request that was not sent.
        if last is not None and last.stop is None and isinstance(word, str) and word in STOPS:
            at = pointer_at(last.take(line), "systemPayload", "stopReason")
            last.stop = table_reason(word, STOPS, at, "qwen.turn_results")
            return place
        return self.say(line, place, f"the turn ended ({known_text(word) or state})", mark="stopped")

    def _failure(self, line: TranscriptLine, event: dict[str, Any], place: TreePlace) -> TreePlace:
        answer = self.answer(line, place, "failure", event.get("model"))
        at, kind = answer.take(line), known_text(event.get("error_type"))
        if kind in ABORTED:
            row = Evidence(RECORDER, at, event["error_message"][:200])
            answer.stop = StopReason(Stop.CANCELLED, None, None, (row,))
        else:
            answer.fail(event["error_message"], at, http_status(event.get("status_code")), kind)
        return TreePlace(answer)


reader = _Transcript.of


def result_of(value: dict[str, Any]) -> ToolResultPart:
    """The result of a call."""
    response = value.get("response")
    body = object_of(response)
    error = body.get("error")
    text = body.get("output", error)  # Gemini's convention for a function's response: `output`, or `error`
    output_text = text if isinstance(text, str) else json.dumps(response, ensure_ascii=False)
    return ToolResultPart(known_text(value.get("id")), known_text(value.get("name")), output_text, error is not None)


def outcome_of(value: dict[str, Any], parts: list[dict[str, Any]]) -> ToolResultPart:
    """The result of a call whose row has no function response: the displayed result, or its text."""
    parts_text = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    result = value.get("result", value.get("resultDisplay"))
    text = parts_text or (
        result if isinstance(result, str) else json.dumps(result, ensure_ascii=False) if result else "")
    failed = value.get("status") in ("error", "cancelled")
    return ToolResultPart(known_text(value.get("callId")), known_text(value.get("name")), text, failed)


def usage_of(counts: Any) -> Usage | None:
    """Token counts in Gemini's names; reasoning is part of the output, unless the total shows that it is separate."""
    if not isinstance(counts, dict):
        return None
    input_tokens, output_tokens, thought, cached = counts_of(
        counts, "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount")
    if output_tokens is not None and thought:
        beside = number_of(counts.get("totalTokenCount")) == (input_tokens or 0) + output_tokens + thought
        # reasoning above the output cannot be part of it
        output_tokens += thought if beside or thought > output_tokens else 0
    return Usage(input_tokens, output_tokens, thought, cached)
