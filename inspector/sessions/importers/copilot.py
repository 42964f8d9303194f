"""Sessions of Copilot CLI: `~/.copilot/session-state/<id>/events.jsonl`, before 0.0.342 `history-session-state/`.

A line is an event; its `parentId` is the event before, so the events form no tree. The stop reason, in OpenAI's words,
and the output cap are in an event for each request: `session.usage_record` of newer releases, and `assistant.usage`,
which is never written to disk and can be only in what a client of the SDK stores. If an answer was cut and Copilot
has the model continue it, this event is all that is stored. The events of a subagent are in the same file, marked
with its id (`agentId`) or, in older files, with the call that began it. Older files are one object each, with the
messages that were sent.
Source: @github/copilot-sdk 1.0.14; sessions of @github/copilot 1.0.102 against a scripted provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from inspector.sessions import redact
from inspector.sessions.importers.records import first_look, list_pieces, whole_object
from inspector.sessions.reasons import UNREAD_CALL, error_in_text, inferred_reason, recorder_reason, table_reason
from inspector.sessions.recording import FileReading, Options, TurnPlace, below_file
from inspector.sessions.traffic import http_status
from inspector.sessions.transcripts import Fields, TranscriptReader, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, MessageReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import (
    counts_of,
    first_text,
    known_text,
    number_of,
    numbered_objects,
    object_of,
)
from loop_core.turn.costs import TEXT_LOST
from loop_core.values import Finding, Severity, Stop, ToolCall, Usage
from loop_core.wire.failures import StopRow

BEGINS = ("session.", "assistant.", "tool.", "user.", "system.", "hook.", "subagent.", "skill.", "permission.",
          "model.", "result")
"""The beginnings of the types of all events. Events that hold no part of an exchange are only counted."""
STOPS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, "@github/copilot-sdk 1.0.14 AssistantUsageData.finishReason"),
    "length": StopRow(Stop.MAX_TOKENS, None, "@github/copilot-sdk 1.0.14"),
    "tool_calls": StopRow(Stop.TOOL_CALL, None, "@github/copilot-sdk 1.0.14"),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, "@github/copilot-sdk 1.0.14: also a refusal of Claude's"),
}
"""Stop word of Copilot, which maps the words of all providers to OpenAI's -> its meaning."""
RECORD = "session.usage_record"
"""The event that stores what a request used, in its member `usage`, and how the answer ended."""
PASSED_ON = ("/chat/completions", None)
"""The APIs of which `stop` is the provider's word; None in events that name no API. For the others Copilot writes
it also where the provider gave no reason, one that Copilot does not know, or `pause_turn`."""
UNREAD = ("wasTruncatedByOutputLimit", "wasSyntaxError")
"""The properties of a call whose arguments were not JSON: `{}` is stored in place of what the model wrote."""
OWN = ("skill-", "agent-")
"""The beginnings of the origin (`source`) of a message of the user that Copilot CLI wrote itself."""
NOTHING = "No response was returned."
"""The beginning of the error about an answer that is stored as empty."""
FULL = "context_limit"
"""The type of the error that says that the context was full."""
CREDITS = "autopilot_credit_limit"
"""The reason of an abort that is not the user's: the run has spent what the user allowed it."""
FIELDS: Fields = {
    "": {"type": (str,), "data": (dict,), "id": (str,), "timestamp": (str,), "agentId": (str,)},
    "data": {
        "content": (str,), "toolRequests": (list,), "messageId": (str,), "apiCallId": (str,), "toolCallId": (str,),
        "outputTokens": (int,), "model": (str,), "parentToolCallId": (str,), "success": (bool,),
        "finishReason": (str,), "maxOutputTokens": (int,), "inputTokens": (int,), "usage": (dict,),
    },
}


def sniff(head: bytes, path: str) -> int:
    """Recognises the first line of a session, or several events with `data` and `parentId`."""
    parsed_head = first_look(head)
    if {"sessionId", "chatMessages"} <= object_of(parsed_head.first).keys():
        return 95
    for value in parsed_head.objects:
        if isinstance(value.get("data"), dict) and isinstance(value.get("type"), str):
            if value["type"] == "session.start":
                return 100
            if "parentId" in value and value["type"].startswith(BEGINS):
                return 90
    return 0


def reader(path: str, options: Options, head: bytes) -> TranscriptReader:
    """The reader of one file."""
    first = object_of(first_look(head).first)
    older = "chatMessages" in first and "data" not in first
    return (_History if older else _Session)(path, options)


class _History(MessageReader):
    """A file of the releases before 0.0.342: an object with messages of OpenAI's chat."""

    name, agent = "copilot", "Copilot CLI"
    steered = True

    def read(self, data: bytes | IO[bytes]) -> FileReading:
        """Reads every answer among the messages; what the terminal showed (`timeline`) repeats them."""
        text = data if isinstance(data, bytes) else data.read()
        value = whole_object(text)
        self.model = known_text(value.get("selectedModel"))
        self.session_id = known_text(value.get("sessionId")) or ""
        return self.read_records(list_pieces(text, "chatMessages"))

    def look_ahead(self, data: bytes) -> bool:
        """Always False, because the file is rewritten with every message."""
        return False


class _Session(ChatReader):
    """One file being read: a line of events, and one for each subagent."""

    name, agent, fields = "copilot", "Copilot CLI", FIELDS
    unit, row_word = "line", ("an event", "events")
    steered = True

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.open: dict[str, TranscriptAnswer] = {}
        """Id of a message or request -> its answer, of which further pieces may follow."""
        self.spent: dict[str, TranscriptLine] = {}
        """Id of a request -> the request's usage event, if it came before the message."""
        self.cut: dict[str, list[tuple[str, TranscriptLine]]] = {}
        """Agent -> the stored usage events of its cut answers, of which no message has come, with their ids."""
        self.resumed = False
        """Whether the session was resumed and no message of the user has followed so far."""
        self.subagents: dict[str, str] = {"": ""}
        """Call that started a subagent, or the id of the subagent -> the name of the session of the subagent."""

    def lane(self, value: dict[str, Any]) -> str:
        """The agent of an event: the id of a subagent, else the call that began it; nothing for the main agent."""
        return first_text(value.get("agentId"), object_of(value.get("data")).get("parentToolCallId"))

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        data, kind = object_of(line.value.get("data")), line.value.get("type")
        if kind == "user.message":
            self.resumed = False
            own = data.get("isAutopilotContinuation") is True or (known_text(data.get("source")) or "").startswith(OWN)
            return self.say(line, place, text_of(data.get("content")), own=own)
        if kind == "assistant.message":
            return self._message(line, data, place)
        if kind == "tool.execution_complete":
            return self._result(line, data, place)
        if kind == "abort" and data.get("reason") == CREDITS:
            return self.say(line, place, f"Copilot CLI stopped the run ({CREDITS})", mark="stopped")
        if kind == "abort" and place.has_user_message:
            return self._add_cancelled(line, data, place)
        if kind == "abort":
            return self.say(line, place, "", mark="interrupted")
        if kind == "session.error":
            return self._failure(line, data, place)
        if kind in ("assistant.usage", RECORD) and (key := known_text(_usage(line).get("apiCallId"))):
            if key in self.open:
                _take_usage(self.open[key], line)
            else:
                self.spent[key] = line
                stop = STOPS.get(known_text(_usage(line).get("finishReason")) or "")
                if kind == RECORD and stop is not None and stop.stop is Stop.MAX_TOKENS:
                    self.cut.setdefault(self.lane(line.value), []).append((key, line))
        # A compaction may fail, and then the history stays as it was.
        if kind in ("session.truncation", "session.compaction_complete") and data.get("success") is not False:
            self.compacted = f"line {line.number}: the history was shortened before this answer ({kind})"
        elif kind == "subagent.started":
            call = known_text(data.get("toolCallId")) or ""
            self._name_subagent(call, data)
            self.subagents.setdefault(known_text(line.value.get("agentId")) or "", self.subagents[call])
        elif kind == "session.resume":
            self.resumed = True
        elif kind in ("session.start", "session.model_change"):
            self.model = first_text(data.get("newModel"), data.get("selectedModel")) or self.model
        elif kind == "assistant.turn_end":
            place = self._add_lost_texts(line, place)
            place = self.say(line, place, kind, mark="ended") if _ends_loop(place) else place
        lines.count(kind, frozenset({kind}) if isinstance(kind, str) and kind.startswith(BEGINS) else frozenset())
        return place

    def _name_subagent(self, call: str, data: dict[str, Any]) -> None:
        """Names the session of a call's subagent, which keeps its first name; each name stands for one call."""
        if call not in self.subagents:
            title = first_text(data.get("agentDisplayName"), data.get("agentName"), "subagent")
            name = below_file(redact.text(title)[:80])
            self.subagents[call] = name if name not in self.subagents.values() else f"{name} ({call[-8:]})"

    def _session_of(self, line: TranscriptLine) -> str:
        call, began = self.lane(line.value), object_of(line.value.get("data")).get("parentToolCallId")
        if call not in self.subagents and began in self.subagents:
            self.subagents[call] = self.subagents[began]
        self._name_subagent(call, {})  # a file without its beginning may have subagents that it never names
        return self.subagents[call]

    def _message(self, line: TranscriptLine, data: dict[str, Any], place: TreePlace) -> TreePlace:
        key = first_text(data.get("apiCallId"), data.get("messageId"), f"line {line.number}")
        answer = self.open.get(key)
        # A message may come in pieces with one `apiCallId`; after a result the id belongs to a retried request.
        if answer is None or answer is not place.answer or place.since is not None:
            answer = self.open[key] = self.answer(line, place, "event", known_text(data.get("model")))
            answer.session = self._session_of(line)
            if self.resumed and not answer.session:
                answer.recorded_place, self.resumed = TurnPlace.REQUEST, False
            self.note_compaction(answer)
        if key in self.spent:
            _take_usage(answer, self.spent.pop(key))
        at = answer.take(line)
        answer.add_thought(data.get("reasoningText"))
        answer.add_text(data.get("content"))
        for number, call in numbered_objects(data.get("toolRequests")):
            take_call(answer, call, line, at, "data", "toolRequests", number, key="toolCallId")
        output_tokens = number_of(data.get("outputTokens"))
        # a usage event has the better count
        if output_tokens is not None and (answer.usage is None or answer.usage.input_tokens is None):
            before = answer.usage.output_tokens if answer.usage else None
            answer.usage = Usage(None, max(output_tokens, before or 0))  # pieces repeat the count
        return TreePlace(answer)

    def _add_cancelled(self, line: TranscriptLine, data: dict[str, Any], place: TreePlace) -> TreePlace:
        """Adds the answer that the user stopped before a part of it was stored; Copilot stores none of a text."""
        answer = self.answer(line, place, "abort")
        answer.session = self._session_of(line)
        answer.word_at = pointer_at(answer.take(line), "data", "reason")
        word = known_text(data.get("reason")) or "abort"
        answer.stop = recorder_reason(Stop.CANCELLED, None, answer.word_at, word, "copilot.aborts")
        return TreePlace(answer)

    def _add_lost_texts(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Adds each answer of an agent that was cut and whose text was not stored, since the model was to continue."""
        for key, spent in self.cut.pop(self.lane(line.value), ()):
            if self.spent.get(key) is not spent:  # a message came, or another event with the id
                continue
            answer = self.open[key] = self.answer(spent, place, "event", known_text(_usage(spent).get("model")))
            answer.session = self._session_of(spent)
            _take_usage(answer, self.spent.pop(key))
            if answer.usage is None or answer.usage.visible_tokens != 0:
                answer.findings.append(Finding(TEXT_LOST, Severity.INFO, "the text of this cut answer is not in the "
                                               "file: Copilot CLI stored its usage alone", answer.word_at))
            self.remarks["report a cut answer whose text Copilot CLI did not store"] += 1
            place = TreePlace(answer)
        return place

    def _result(self, line: TranscriptLine, data: dict[str, Any], place: TreePlace) -> TreePlace:
        output = data.get("result", data.get("error"))
        text = output if isinstance(output, str) else text_of(
            object_of(output).get("content") or object_of(output).get("message"))
        noted = object_of(object_of(data.get("toolTelemetry")).get("properties"))
        if data.get("success") is False and place.answer is not None and "true" in map(noted.get, UNREAD):
            _lose_arguments(place.answer, known_text(data.get("toolCallId")), f"{self.unit} {line.number}: {text}")
        return self.result(line, place, data.get("toolCallId"), text, data.get("success") is False,
                           data.get("toolName"))

    def _failure(self, line: TranscriptLine, data: dict[str, Any], place: TreePlace) -> TreePlace:
        text = known_text(data.get("message")) or "no message"
        if text.startswith(NOTHING) and place.right_above is not None and not place.right_above.parts:
            return place
        answer = self.answer(line, place, "failure")
        answer.session = self._session_of(line)
        at = answer.take(line)
        if data.get("errorType") == FULL:
            answer.word_at = at = pointer_at(at, "data", "errorType")
            answer.stop = recorder_reason(Stop.CONTEXT_WINDOW_EXCEEDED, None, at, FULL, "copilot.errors")
            answer.error = error_in_text(text, http_status(data.get("statusCode")), FULL)
        else:
            answer.fail(text, at, http_status(data.get("statusCode")), known_text(data.get("errorType")))
        return TreePlace(answer)


def _ends_loop(place: TreePlace) -> bool:
    """Whether the event at the end of an answer also ends Copilot's loop. The event follows every answer; an answer
    without calls is the last of its turn."""
    return place.answer is not None and not place.answer.calls and not any(row.mark for row in place.rows())


def _lose_arguments(answer: TranscriptAnswer, key: str | None, why: str) -> None:
    """Takes back the `{}` of a call whose arguments Copilot could not read: what the model wrote is not stored."""
    for number, part in enumerate(answer.parts):
        if type(part) is ToolCall and part.id == key and part.arguments == "{}":
            answer.parts[number] = part._replace(arguments=None, closed=False)
            answer.findings.append(Finding(UNREAD_CALL, Severity.INFO, f"Copilot CLI could not read a call; {why}",
                                           part.at))
            if answer.stop is None or answer.stop.normalized is Stop.TOOL_CALL:
                answer.stop = inferred_reason(Stop.MALFORMED_TOOL_CALL, answer.word_at, "call_unread", part.at,
                                              "the arguments of a call were not JSON")


def _usage(line: TranscriptLine) -> dict[str, Any]:
    """What an event says of a request: the stored one has it in a member."""
    data = object_of(line.value.get("data"))
    return object_of(data.get("usage")) if line.value.get("type") == RECORD else data


def _take_usage(answer: TranscriptAnswer, line: TranscriptLine) -> None:
    """Reads the counts, the cap and the stop word of a request."""
    data, at = _usage(line), answer.take(line)
    counts = counts_of(data, "inputTokens", "outputTokens", "reasoningTokens", "cacheReadTokens", "cacheWriteTokens")
    answer.usage = Usage(*counts) if counts[0] is not None else answer.usage
    answer.cap = number_of(data.get("maxOutputTokens")) or answer.cap
    word = known_text(data.get("finishReason"))
    if word and (word != "stop" or data.get("apiEndpoint") in PASSED_ON):
        path = ("data", "usage") if line.value.get("type") == RECORD else ("data",)
        answer.word_at = pointer_at(at, *path, "finishReason")
        answer.stop = table_reason(word, STOPS, answer.word_at, "copilot.finish_reasons")
