"""The runtime trace of ZeroClaw: `state/runtime-trace.jsonl`, one event per line, of all its sessions.

An event of the first version has `event_type` and `payload`; one of the second has `message` and `attributes`. The text
of an answer is scrubbed of credentials, and its native calls are only counted, so calls are read from the events of the
tools, where `{}` replaces arguments that ZeroClaw could not parse. No stop reason is stored. Source:
zeroclaw-labs/zeroclaw `agent/turn/*.rs`, `zeroclaw-log/src/migrate.rs`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inspector.sessions import redact, traffic
from inspector.sessions.importers.records import first_look
from inspector.sessions.reasons import inferred_reason
from inspector.sessions.recording import Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at
from inspector.sessions.transcripts.member_values import (
    counts_of,
    first_text,
    known_text,
    object_of,
    objects_of,
    usage_in,
)
from loop_core.values import ArgsForm, Finding, Severity, Stop, ToolCall, ToolResultPart

FIELDS: Fields = {
    "": {"event_type": (str,), "event": (dict,), "attributes": (dict,), "payload": (dict,), "zeroclaw": (dict,)},
}
CHANNEL = frozenset({"channel_message_inbound", "channel_message_outbound", "channel_message_error"})
"""The types of events about messages on a channel, which have neither a turn nor a whole text."""
STOPPED: Mapping[str, str] = {
    "tool_loop_exhausted": "the turn had used up its iterations",
    "loop_detector_circuit_breaker": "ZeroClaw found a loop",
    "tool_loop_identical_output_abort": "the same call gave the same output again and again",
}
"""Type of an event -> the reason why ZeroClaw stopped the turn."""
ISSUE = "tool_call_parse_issue"
"""The event, before that of an answer, about calls in the answer that ZeroClaw could not read."""
MISSING = re.compile(r"(?i)\bmissing (?:required )?(?:'\w+'|parameter|field|argument)")
"""Matches the error of a tool of ZeroClaw about a parameter that its arguments lack (`crates/zeroclaw-tools`)."""
_EVENTS = ("llm_request", "llm_response", "tool_call_start", "tool_call_result", "turn_final_response", ISSUE, *STOPPED)


def sniff(head: bytes, path: str) -> int:
    """Recognises an event of the service ZeroClaw, or one of the first version with a payload."""
    look = first_look(head)
    for value in look.objects:
        if "id" in value:
            if object_of(value.get("service")).get("name") == "zeroclaw" or (
                    "zeroclaw" in value and "schema_version" in value):
                return 100
            if {"event_type", "payload", "turn_id"} <= value.keys():
                return 95
    return 0


class _Trace(ChatReader):
    """Reads one file, with a conversation for each session. An event without a session belongs only to its turn."""

    name, agent, fields = "zeroclaw-trace", "ZeroClaw", FIELDS
    unit, key, row_word = "line", "id", ("an event", "events")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.turns: set[str] = set()
        """The ids of the turns that have begun."""
        self.issues: dict[str, str] = {}
        """Turn -> the error in the calls of its next answer."""

    def lane(self, value: dict[str, Any]) -> str:
        """The session of an event, else the event's turn."""
        return first_text(object_of(value.get("zeroclaw")).get("session_key"), _turn_id(value, _facts(value)))

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        facts, event = _facts(line.value), _event(line.value)
        if event in ("llm_request", "llm_response"):
            place = self._turn(line, facts, place)
        if event == "llm_response":
            return self._answer(line, facts, place)
        if event == ISSUE:
            self.issues[_turn_id(line.value, facts)] = first_text(facts.get("issue"), "no reason given")
        elif event in STOPPED:
            return self.say(line, place, STOPPED[str(event)], mark="stopped")
        if event == "tool_call_start" and place.answer is not None:
            _add_call(place.answer, facts, line)
        elif event == "tool_call_result":
            if facts.get("deduplicated") is True and place.answer is not None:
                _add_call(place.answer, facts, line)  # ZeroClaw skipped the call, so it never started
            text = first_text(facts.get("output"), facts.get("result"), facts.get("error_reason"),
                              line.value.get("message"))
            # Events have no ids of calls; results follow the calls in order.
            result = ToolResultPart(None, known_text(facts.get("tool")), text, _is_failure(line.value))
            if result.is_error:
                _reject_empty(place, result)
            return self.say(line, place, "", (result,))
        elif event == "turn_final_response" and not _is_failure(line.value) and place.answer is not None:
            return self.say(line, place, event, mark="ended")
        else:
            lines.count(event or line.value.get("message"), frozenset(_EVENTS) | CHANNEL)
        return place

    def _turn(self, line: TranscriptLine, facts: dict[str, Any], place: TreePlace) -> TreePlace:
        """Begins the turn of an event, with the user's message if the request was logged."""
        turn = _turn_id(line.value, facts)
        if turn in self.turns:
            return place
        self.turns.add(turn)
        users = [row for row in _messages(facts.get("request_messages")) if row.get("role") == "user"]
        return self.say(line, place, text_of(users[-1].get("content")) if users else "")

    def _answer(self, line: TranscriptLine, facts: dict[str, Any], place: TreePlace) -> TreePlace:
        value = line.value
        model = first_text(facts.get("model"), object_of(value.get("zeroclaw")).get("model"), value.get("model"))
        answer = self.answer(line, place, "event", model)
        answer.session = self.lane(value)
        answer.started = known_text(value.get("@timestamp")) or answer.started
        answer.word_at = at = answer.take(line)
        text, error = known_text(facts.get("raw_response")), known_text(facts.get("error"))
        answer.add_text(text)
        answer.usage = usage_in(facts, "input_tokens", "output_tokens")
        native, parsed = counts_of(facts, "native_tool_calls", "parsed_tool_calls")
        issue = self.issues.pop(_turn_id(value, facts), "")
        if native is not None and parsed is not None and native > parsed:
            issue = f"ZeroClaw parsed {parsed:,} of {native:,} native calls"
        if issue:
            message = redact.text(f"line {line.number}: {issue[:200]}")
            answer.findings.append(Finding("transcript.calls_not_parsed", Severity.WARNING, message))
            answer.stop = inferred_reason(Stop.MALFORMED_TOOL_CALL, at, "call_rejected", at, message)
        if error or (_is_failure(value) and not text):
            answer.fail(error or first_text(value.get("message"), "no message"), at)
        return TreePlace(answer)


reader = _Trace.of


def _add_call(answer: TranscriptAnswer, facts: dict[str, Any], line: TranscriptLine) -> None:
    """Adds the call of an event, with the arguments as ZeroClaw parsed them."""
    if known_text(facts.get("arguments")) == "{}":
        message = "the call has no arguments, or ZeroClaw could not parse them: it writes {} for both"
        answer.findings.append(
            Finding("transcript.empty_arguments", Severity.INFO, f"line {line.number}: {message}"))
    answer.parts.append(ToolCall(
        None, known_text(facts.get("tool")) or "", known_text(facts.get("arguments")), True, form=ArgsForm.OBJECT,
        at=pointer_at(answer.take(line), "attributes")))


def _reject_empty(place: TreePlace, result: ToolResultPart) -> None:
    """Marks a call as malformed if its tool refuses `{}` because a parameter is missing: `{}` replaces arguments that
    ZeroClaw could not read, or is all that the model sent."""
    answer = place.answer
    if answer is None or MISSING.search(result.text[:200]) is None:
        return
    before = sum(part.name == result.name for row in place.rows() for part in row.results)
    own = [at for at, part in enumerate(answer.parts) if type(part) is ToolCall and part.name == result.name]
    call = answer.parts[own[before]] if before < len(own) else None
    if type(call) is not ToolCall or call.arguments != "{}":
        return
    answer.parts[own[before]] = call._replace(closed=False)
    note = f"the tool {call.name} refuses {{}}: {redact.text(result.text[:80])}"
    answer.stop = answer.stop or inferred_reason(
        Stop.MALFORMED_TOOL_CALL, answer.word_at, "call_rejected", call.at, note)


def _event(value: dict[str, Any]) -> str | None:
    """The type of an event: by `event_type`, its message, or (after a migration) its action."""
    names = (value.get("event_type"), value.get("message"), object_of(value.get("event")).get("action"))
    return next((name for name in names if isinstance(name, str) and name in _EVENTS), known_text(names[0]))


def _facts(value: dict[str, Any]) -> dict[str, Any]:
    return object_of(value.get("attributes")) or object_of(value.get("payload"))


def _messages(value: Any) -> list[dict[str, Any]]:
    """The messages of a request: JSON in a string, which ZeroClaw truncates if it is long."""
    try:
        return objects_of(traffic.loads(value.encode()) if isinstance(value, str) else value)
    except ValueError:
        return []


def _is_failure(value: dict[str, Any]) -> bool:
    return value.get("success") is False or object_of(value.get("event")).get("outcome") == "failure"


def _turn_id(value: dict[str, Any], facts: dict[str, Any]) -> str:
    return first_text(value.get("trace_id"), value.get("turn_id"), facts.get("trace_id"))
