"""Sessions of Google's Agent Development Kit: its databases (`.adk/session.db`), and sessions or events as JSON.

An event of a model has Gemini's parts and a stop word of Gemini's, whatever the model. For another provider that word
is ADK's own: it is `STOP` also for `pause_turn` and for a missing reason, so it is no evidence; ADK for JavaScript only
copies words. An answer that was streamed may take several events. Calls whose arguments were not JSON are left out; an
error message may name them. The tables of the first releases lack the word. Source: google-adk 2.13 `events/event.py`,
`sessions/`, `models/lite_llm.py`; 120 sessions that it wrote, of three APIs; @google/adk 2.0 `utils/streaming_utils`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import records_of, snapshot
from inspector.sessions.importers.records import first_look, first_value, list_pieces, number_records
from inspector.sessions.reasons import UNREAD_CALL, table_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.member_values import (
    api_of,
    counts_of,
    known_text,
    numbered_objects,
    object_of,
    objects_of,
)
from inspector.sessions.transcripts.provider_answers import take_api_word
from loop_core.values import At, Finding, OpaquePart, Severity, Stop, ToolCall, ToolResultPart, Usage
from loop_core.wire import wire
from loop_core.wire.failures import StopRow

GEMINI = "gemini_generate"
APIS: Mapping[str, str] = {"gemini": GEMINI, "claude": "anthropic_messages"}
"""Beginning of a model's name -> its wire format."""
NO_CONTENT: Mapping[str, StopRow] = {
    "MODEL_RETURNED_NO_CONTENT": StopRow(Stop.END_TURN, None, "core/_model_call.py: the word was STOP"),
}
"""ADK's own code for an answer that ended without content."""
STOPPED: Mapping[str, str] = {"INVOCATION_ABORTED": "interrupted", "LlmCallsLimitExceededError": "stopped"}
"""Code of an event that ends a turn without a request -> the mark of its row."""
CLEAN = "STOP"
"""The word that ADK for Python writes for every end that is neither a cut nor a refusal."""
MILLISECONDS = 1e11
"""The smallest time of an event that ADK for JavaScript wrote: ADK for Python writes seconds."""
COLUMNS = ("app_name", "user_id", "session_id", "event_data", "id", "author", "branch", "timestamp",
           "content", "usage_metadata", "partial", "error_code", "error_message", "interrupted")
"""The columns of an event that are read: the event itself, or its members in older databases."""
JSON_COLUMNS = frozenset({"event_data", "content", "usage_metadata"})
COUNTS = ("prompt_token_count", "candidates_token_count", "thoughts_token_count", "cached_content_token_count")
FIELDS: Fields = {"": {"author": (str,), "content": (dict,), "event_data": (dict,)},
                  "event_data": {"author": (str,), "content": (dict,)}}
UNPARSED = re.compile(r"were not a valid JSON object: (?P<names>.+)|could not be parsed as valid JSON")
"""Matches the message about calls that ADK left out, because their arguments were cut or not JSON."""


def sniff(head: bytes, path: str) -> int:
    """Recognises a session with its events, or a list of events."""
    first = first_look(head).first
    events = first if isinstance(first, list) else object_of(first).get("events")
    owned = isinstance(first, list) or bool(_in(object_of(first), "app_name"))
    return 96 if owned and any(_in(event, "invocation_id") and "author" in event for event in objects_of(events)) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    reader = _Sessions(path, options)
    if data.startswith(SQLITE):
        return reader.read_records(number_records(_rows(path)))
    first = first_value(data)
    reader.owner = {name: redact.text(value) for name, value in object_of(first).items() if isinstance(value, str)}
    return reader.read_records(list(list_pieces(data, *(() if isinstance(first, list) else ("events",)))))


def _rows(path: str) -> Iterator[UnbuiltRecord]:
    """The events of all sessions, in the order of their times, like in ADK."""
    with snapshot(path) as database:
        yield from records_of(database.execute("SELECT * FROM events ORDER BY timestamp, rowid"), COLUMNS, JSON_COLUMNS)


def _member(value: dict[str, Any], name: str) -> str:
    """The spelling of a member's name in an object: ADK writes two."""
    return name if name in value else re.sub(r"_(.)", lambda found: found[1].upper(), name)


def _in(value: dict[str, Any], name: str) -> Any:
    return value.get(_member(value, name))


class _Sessions(ChatReader):
    name, agent, fields = "adk", "Google ADK", FIELDS
    key, unit, row_word = "id", "event", ("an event", "events")
    unanswered = "end a session with a message of the user, as a request that failed leaves it"
    words = ("stop reasons of models other than Gemini are ADK's own words for the providers'; STOP of ADK for Python "
             "is ignored, since it stands for several ends")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.owner: dict[str, str] = {}
        """The texts of the session around the events in a JSON file, masked."""
        self.last_events: dict[str, tuple[TranscriptAnswer, dict[str, Any]]] = {}
        """Session -> its last answer, and the last event of it."""
        self.lanes: dict[str, list[str]] = {}
        """Session -> its branches since the last event outside of them."""

    def session_of(self, value: dict[str, Any]) -> str:
        """The session of an event: its application, its user and its id. The branch of an agent that ran in parallel is
        a session below it, which begins at its current place."""
        ids = [known_text(_in(value, name)) or known_text(_in(self.owner, name)) or "" for name in (
            "app_name", "user_id", "session_id")]
        ids[2] = ids[2] or known_text(self.owner.get("id")) or ""
        key = "/".join(ids)
        self.titles[key] = f"{ids[0]} {ids[2]}".strip()
        branch = known_text(_event(value)[0].get("branch"))
        if branch is None:
            for lane in self.lanes.pop(key, ()):
                self.ends.pop(lane, None)
            return key
        lane = f"{key}/{branch}"
        if lane not in self.ends:
            self.titles[lane], self.parents[lane], self.ends[lane] = branch, key, self.ends.get(key, TreePlace(None))
            self.lanes.setdefault(key, []).append(lane)
        return lane

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        event, path = _event(line.value)
        parts = _parts_of(event)
        code, message = known_text(_in(event, "error_code")) or "", known_text(_in(event, "error_message")) or ""
        results = [_result(object_of(_in(part, "function_response"))) for _, part in parts
                   if _in(part, "function_response") is not None]
        if event.get("partial") in (True, 1):
            self.remarks["are pieces of an answer that comes complete later"] += 1
        elif code in STOPPED:
            self.say(line, self.here, message, mark=STOPPED[code], at_tool=bool(results))
        elif results:
            self.results(line, self.here, *results)
        elif event.get("author") == "user":
            self.say(line, self.here, "\n".join(part["text"] for _, part in parts if isinstance(part.get("text"), str)))
        elif parts or _word_of(event) is not None or self._goes_on(event) or (
                code and self.here.right_above is None):
            self._answer(line, event, path)
        elif code:
            self.say(line, self.here, f"the run ended with {code}: {message[:200]}", mark="stopped")
        else:
            lines.count("event without content", frozenset({"event without content"}))
        if event.get("interrupted") in (True, 1):
            self.say(line, self.here, "", mark="interrupted")
        return self.here

    def _answer(self, line: TranscriptLine, event: dict[str, Any], path: tuple[str, ...]) -> None:
        parts, model = _parts_of(event), _in(event, "model_version")
        answer = self.last_events[self.session][0] if self._goes_on(event) else (
            self.answer(line, self.here, model=model, key=known_text(event.get("id")) or "", api=api_of(APIS, model),
                        begin=event.get("timestamp")))
        self.last_events[self.session] = answer, event
        at = answer.word_at = answer.take(line)
        for number, part in parts:
            _take_part(answer, part, line, at, *path, "content", "parts", number)
        answer.usage = _usage_of(object_of(_in(event, "usage_metadata"))) or answer.usage
        _take_end(answer, event, partial(pointer_at, at, *path), line.number)

    def _goes_on(self, event: dict[str, Any]) -> bool:
        """Whether an event belongs to the last answer: the end of what LiteLLM streamed may be an event of its own, and
        ADK for JavaScript writes a stream in pieces, and runs each call before the next piece comes."""
        answer, before = self.last_events.get(self.session, (None, {}))
        if answer is None or self.here.answer is not answer or before.get("author") != event.get("author"):
            return False
        empty, word, counts = not _parts_of(event), _word_of(event), _in(event, "usage_metadata")
        if empty and word is not None and self.here.right_above is answer:
            return True
        if not _is_of_javascript(before) or before.get("partial") is not False or not _parts_of(before) or (
                _in(before, "error_code") is not None or self.here.has_user_message
                or _in(before, "invocation_id") != _in(event, "invocation_id")):
            return False
        if _word_of(before) is not None:  # the word came with a call: the end repeats both, after the call has run
            return empty and word is not None and counts == _in(before, "usage_metadata")
        return not empty or any(each is not None for each in (word, counts, _in(event, "error_code")))


def _parts_of(event: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return numbered_objects(object_of(event.get("content")).get("parts"))


def _word_of(event: dict[str, Any]) -> tuple[str, str] | None:
    """The stop word of an event, and its member: older tables have only the code, which repeats the word."""
    found = ((name, known_text(_in(event, name))) for name in ("finish_reason", "error_code"))
    return next(((name, word) for name, word in found if word is not None and (
        name == "finish_reason" or word in wire(GEMINI).stop_reasons)), None)


def _take_end(answer: TranscriptAnswer, event: dict[str, Any], here: Callable[..., At], number: int) -> None:
    """Reads the stop word of an event, the error instead of one, and the calls that ADK left out."""
    code, message = known_text(_in(event, "error_code")), known_text(_in(event, "error_message")) or ""
    name, word = _word_of(event) or ("error_code", None)
    at = here(_member(event, name))
    if word is not None and _is_geminis(event):
        take_api_word(answer, word, at, wire(GEMINI).stop_reasons)
    elif code is not None and code in NO_CONTENT:
        answer.stop = table_reason(code, NO_CONTENT, here(_member(event, "error_code")), "adk.error_codes")
    elif word is not None and (word != CLEAN or _keeps_word(event)):
        answer.word, answer.word_at = word, at
        answer.stop = table_reason(word, wire(GEMINI).stop_reasons, at, "adk.finish_reasons")
    elif word is None and code is not None:
        answer.fail(message or code, at, kind=code)
    unparsed = UNPARSED.search(message)
    if unparsed is None:
        return
    said_at = here(_member(event, "error_message"))
    answer.parts += [ToolCall(None, name, None, False, at=said_at) for name in (unparsed["names"] or "").split(", ")]
    answer.findings.append(Finding(UNREAD_CALL, Severity.INFO,
                                   f"event {number}: ADK could not read a call: {message[:200]}", said_at))


def _event(value: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The event of a record, and the path to it."""
    held = value.get("event_data")
    return (held, ("event_data",)) if isinstance(held, dict) else (value, ())


def _is_geminis(event: dict[str, Any]) -> bool:
    """Whether Gemini itself sent the word. LiteLLM writes 0 cached tokens if Gemini has no such count, and Gemini
    Interactions has other words."""
    counts = object_of(_in(event, "usage_metadata"))
    return (str(_in(event, "model_version")).startswith("gemini") and _in(counts, COUNTS[3]) != 0
            and _in(event, "interaction_id") is None)


def _is_of_javascript(event: dict[str, Any]) -> bool:
    """Whether ADK for JavaScript wrote an event. ADK for Python marks whole answers as `partial: false` too."""
    time = event.get("timestamp")
    return isinstance(time, (int, float)) and time > MILLISECONDS


def _keeps_word(event: dict[str, Any]) -> bool:
    """Whether the word is the one that ADK received: that for JavaScript writes none in place of a missing one, except
    for Gemini Interactions. It does not name the model."""
    return _is_of_javascript(event) and _in(event, "interaction_id") is None


def _take_part(answer: TranscriptAnswer, part: dict[str, Any], line: TranscriptLine, at: At, *path: str | int) -> None:
    call, text = object_of(_in(part, "function_call")), part.get("text")
    if call:
        path = (*path, _member(part, "function_call"))
        answer.parts.append(call_of(call.get("id"), call.get("name"), call.get("args"),
                                    partial(slice_of, line.data, *path), "args", pointer_at(at, *path)))
    elif part.get("thought") is True:
        answer.add_thought(text)
    elif isinstance(text, str):
        answer.add_text(text)
    else:
        answer.parts.append(OpaquePart(next(iter(part), "part"), slice_of(line.data, *path) or "{}"))


def _result(value: dict[str, Any]) -> ToolResultPart:
    """The result of a call: an object with the only member `result` or `error`, that of MCP, or the tool's own
    value."""
    response = object_of(value.get("response"))
    error = response.get("error")
    if len(response) == 1:
        shown = response.get("result", response if error is None else error)
    else:
        shown = response.get("content") if "isError" in response else response
    return ToolResultPart(known_text(value.get("id")), known_text(value.get("name")), any_text(shown),
                          error is not None or response.get("isError") is True)


def _usage_of(counts: dict[str, Any]) -> Usage | None:
    """The counts of an event; thoughts are not part of the output if the total shows this."""
    sent, output, thought, cached, total = counts_of(counts, *(_member(counts, name) for name in (
        *COUNTS, "total_token_count")))
    if thought and (output is None or (sent or 0) + output + thought == total):
        output = (output or 0) + thought
    return Usage(sent, output, thought, cached or None) if counts else None
