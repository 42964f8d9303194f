"""Logs of Inspect: `.eval`, a ZIP archive with a member for each sample, and `.json` with the same content.

Each sample is a session. A model event contains the provider's response (`call.response`) unless the option
`log_model_api` is off. The stop word is the provider's if the response is there, else Inspect's own. Repeated texts are
stored once (`attachments`, `events_data`); the reader restores them. Source: inspect_ai 0.3.285
`log/_recorders/eval.py`, `log/_log.py`, `model/_model_output.py`, `event/_model.py`; logs of 2024 to 2025.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import Piece, first_look, first_value, list_pieces, zip_content, zip_members
from inspector.sessions.intake import Room
from inspector.sessions.notices import Notice
from inspector.sessions.reasons import table_reason
from inspector.sessions.recording import ODD, FileReading, Options, Skipped, common_beginning, unusable
from inspector.sessions.traffic import loads
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at, said_text
from inspector.sessions.transcripts.member_values import (
    CAPS,
    cap_of,
    counts_of,
    input_count,
    known_text,
    numbered_objects,
    object_of,
    objects_of,
)
from inspector.sessions.transcripts.provider_answers import sent_arguments, take_provider_word
from loop_core.json_parser import JsonPath
from loop_core.values import ArgsForm, At, Finding, ReasoningPart, Severity, Stop, ToolResultPart, Usage
from loop_core.wire.failures import StopRow

_SOURCE = "inspect_ai model/_model_output.py StopReason"
STOPS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, _SOURCE),
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, _SOURCE),
    "model_length": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _SOURCE),
    "tool_calls": StopRow(Stop.TOOL_CALL, None, _SOURCE),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, _SOURCE),
}
"""Stop word of Inspect -> its meaning; `unknown` has no meaning."""
_CANCEL_SOURCE = "inspect_ai event/_model.py CANCEL_ERRORS"
CANCELS: Mapping[str, StopRow] = {
    "Cancelled by operator": StopRow(Stop.CANCELLED, None, _CANCEL_SOURCE),
    "Cancelled by limit": StopRow(Stop.INTERRUPTED, None, _CANCEL_SOURCE),
    "Cancelled by system": StopRow(Stop.INTERRUPTED, None, _CANCEL_SOURCE),
}
"""Error of a request that was stopped -> its meaning; such a request did not fail."""
EVENT_MEMBERS = ("event", "timestamp", "model", "output", "error", "pending", "config")
"""The members of a model event that form its row. The input is left out, because the events before it show it."""
WITHOUT_ANSWER = frozenset({
    "system", "sample_init", "sample_limit", "sandbox", "state", "store", "approval", "compaction", "input", "score",
    "score_edit", "error", "logger", "info", "span_begin", "span_end", "step", "subtask", "anchor", "branch",
    "checkpoint",
})
"""The types of events without a part of an exchange (inspect_ai event/_event.py)."""
FIELDS: Fields = {"": {"output": (dict,), "config": (dict,)}}
_ATTACHED = "attachment://"


def sniff(head: bytes, path: str) -> int:
    """Recognises an archive with the members of a log, or an object with an evaluation and its status."""
    if head.startswith(b"PK\x03\x04"):
        return 100 if b"_journal/" in head or b"header.json" in head or path.lower().endswith(".eval") else 0
    first = first_look(head).first
    run = first.get("eval") if isinstance(first, dict) else None
    return 95 if isinstance(run, dict) and ("run_id" in run or "task" in run) and "status" in first else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of every sample."""
    reader = _Log(path, options)
    return reader.read_records(reader.pieces(data))


class _Log(ChatReader):
    name, agent, fields = "inspect", "Inspect", FIELDS
    key, unit, row_word, wordless = "id", "event", ("an event", "events"), False

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.room = options.room or Room()
        self.call_ids: set[str] = set()
        """The ids of calls in the current sample whose results have been read; a later call may use an id again."""
        self.samples = 0

    # -- the file as records ---------------------------------------------------------------------------------------

    def pieces(self, data: bytes) -> Iterator[Piece]:
        """The events and messages of all samples, one after the other."""
        number = 0
        for sample in self._samples(data):
            self.samples += 1
            for record in _records(sample, self.room):
                number += 1
                yield number, json.dumps(record).encode(), False

    def _samples(self, data: bytes) -> Iterator[dict[str, Any]]:
        if not data.startswith(b"PK"):
            self._about(object_of(first_value(data)))
            for number, piece, last in list_pieces(data, "samples"):
                yield from self._sample(f"sample {number}", piece, last)
            return
        # a ZIP may have a name twice; the last one counts
        members = {member.name: member for member in zip_members(data)}
        begun = next((name for name in ("header.json", "_journal/start.json") if name in members), None)
        if begun is not None:
            head = zip_content(data, members[begun], self.room)
            self._about(object_of(loads(head)) if isinstance(head, bytes) else {})
        if begun != "header.json":
            self.reading.notices.append("the log has no header.json: its run had not ended, or was killed")
        for name in sorted(members):
            if name.startswith("samples/"):
                plain = zip_content(data, members[name], self.room)
                yield from self._sample(name, plain, last=False)

    def _sample(self, name: str, piece: bytes | str, last: bool) -> Iterator[dict[str, Any]]:
        try:
            why = piece if isinstance(piece, str) else "it is cut" if last else ""
            value = None if why or isinstance(piece, str) else loads(piece)
        except ODD as error:
            value, why = None, f"it {unusable(error)}"
        if isinstance(value, dict):
            yield value
        else:
            self.reading.skipped.append(Skipped(self.samples, f"{name}: {why or 'no object'}"))

    def _about(self, head: dict[str, Any]) -> None:
        """Reads the facts about the whole run."""
        run = object_of(head.get("eval"))
        task, model, status = (known_text(each) or "?" for each in (
            run.get("task"), run.get("model"), head.get("status", "started")))
        self.reading.notices.append(redact.text(
            f"evaluation {task[:80]} of {model[:80]}: {status[:40]}, its outcome and not a stop reason"))

    # -- records ---------------------------------------------------------------------------------------------------

    def session_of(self, value: dict[str, Any]) -> str:
        session = known_text(value.get("session")) or ""
        if session not in self.titles:
            self.titles[session], self.call_ids = session, set()
        return session

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value = line.value
        kind = value.get("event") or value.get("role")
        if kind in ("model", "assistant"):
            return self._answer(line)
        if kind == "tool":
            return self._result(line, value)
        if kind == "user":
            return self.say(line, place, text_of(value.get("content")))
        if kind == "interrupt":
            user = value.get("source") == "user_cancel"
            note = f"the turn was interrupted ({known_text(value.get('source')) or 'no source'})"
            mark = "interrupted" if user else "stopped"
            return self.say(line, place, note, mark=mark)
        if kind == "end":
            return self.say(line, place, text_of(value.get("content")), mark="stopped")
        lines.count(kind, WITHOUT_ANSWER)
        return place

    def _result(self, line: TranscriptLine, value: dict[str, Any]) -> TreePlace:
        """Reads a result, which is both in a message and in an event of the tool; the first of the two is used."""
        key = known_text(value.get("tool_call_id")) or known_text(value.get("id"))
        if key in self.call_ids or value.get("pending") is True:
            return self.here
        if key is not None:
            self.call_ids.add(key)
        error = object_of(value.get("error"))
        text = text_of(value.get("content") or value.get("result")) or text_of(error.get("message"))
        part = ToolResultPart(key, known_text(value.get("function")), text, bool(error))
        return self.results(line, self.here, part, denied=error.get("type") == "approval")

    def _answer(self, line: TranscriptLine) -> TreePlace:
        value = line.value
        output, call = object_of(value.get("output")), object_of(value.get("call"))
        choice = next(iter(objects_of(output.get("choices"))), {})
        response, request = object_of(call.get("response")), object_of(call.get("request"))
        model = output.get("model") or value.get("model")
        name = f"{known_text(response.get('id')) or self.session}:{line.number}"
        answer = self.answer(line, self.here, model=model, key=name, begin=value.get("timestamp"))
        at = answer.take(line)
        path: JsonPath = ("output", "choices", 0, "message")
        _take_parts(answer, object_of(choice.get("message")), response, line, at, path)
        self.call_ids.difference_update(part.id for part in answer.calls if part.id)  # an id may be used again
        answer.cap = cap_of(object_of(value.get("config")), request)
        self._end(answer, value, choice, response, at)
        answer.usage = usage_of(output.get("usage"), answer.api)
        return self.here

    def _end(
        self, answer: TranscriptAnswer, value: dict[str, Any], choice: dict[str, Any], output: dict[str, Any], at: At
    ) -> None:
        """Sets the stop reason: by the provider's word, else by Inspect's, else by the error."""
        answer.word_at = pointer_at(at, "output", "choices", 0, "stop_reason")
        failed = known_text(value.get("error")) or known_text(object_of(value.get("output")).get("error"))
        if failed is not None and failed in CANCELS:
            answer.stop = table_reason(failed, CANCELS, pointer_at(at, "error"), "inspect.cancels")
            return
        if failed is not None:
            answer.fail(failed, pointer_at(at, "error"), word=failed)
            return
        word = known_text(choice.get("stop_reason"))
        if take_provider_word(answer, output, at, "call", "response") or word is None or value.get("pending") is True:
            return
        answer.stop = table_reason(word, STOPS, answer.word_at, "inspect.stop_reasons")

    def summarise(self) -> None:
        super().summarise()
        own = sum(answer.word is None and answer.stop is not None for answer in self.answers)
        if own:
            self.reading.notices.append(
                Notice("answers whose stop reason is Inspect's own word, or inferred", {"": own}))
        if not self.answers:
            self.reading.notices.append(Notice("samples that hold no answer of a model", {"": self.samples})
                                        if self.samples else "the log holds no sample")


def _take_parts(
    answer: TranscriptAnswer, message: dict[str, Any], response: dict[str, Any], line: TranscriptLine, at: At,
    path: JsonPath,
) -> None:
    """Reads reasoning, text and calls. Arguments are those that Inspect parsed or, if it could not (`parse_error`),
    those in the provider's answer `response`; without these, the call counts as cut."""
    blocks = message.get("content")
    for block in objects_of(blocks):
        if block.get("type") == "reasoning":
            answer.parts.append(reasoning_of(block))
    answer.add_text(said_text(blocks))
    for number, call in numbered_objects(message.get("tool_calls")):
        find = partial(slice_of, line.data, *path, "tool_calls", number)
        function = call.get("function")
        if isinstance(function, dict):  # the oldest form of a log
            function = function.get("name")
        part = call_of(call.get("id"), function, call.get("arguments"), find, "arguments",
                       pointer_at(at, *path, "tool_calls", number))
        broken = known_text(call.get("parse_error"))
        if broken is not None:
            explanation = f"Inspect could not parse the arguments of {known_text(function) or 'a call'}: {broken[:160]}"
            answer.findings.append(Finding("transcript.parse_error", Severity.WARNING, explanation, at))
            sent = sent_arguments(response, part.id)
            part = part._replace(closed=False) if sent is None else part._replace(
                arguments=sent[1], form=ArgsForm.STRING, at=pointer_at(at, "call", "response", *sent[0]))
        answer.parts.append(part)


def reasoning_of(block: dict[str, Any]) -> ReasoningPart:
    """Reasoning; its summary if there is nothing else, or if the reasoning is redacted, because it is encrypted
    then."""
    shown = "" if block.get("redacted") is True else text_of(block.get("reasoning"))
    return ReasoningPart(shown or text_of(block.get("summary")))


def usage_of(usage: Any, api: str) -> Usage | None:
    """Token counts in Inspect's names. In newer releases the input excludes cached tokens, as the total shows."""
    if not isinstance(usage, dict):
        return None
    input_tokens, output_tokens, thought, cached, written, total = counts_of(
        usage, "input_tokens", "output_tokens", "reasoning_tokens", "input_tokens_cache_read",
        "input_tokens_cache_write", "total_tokens")
    apart = total == (input_tokens or 0) + (output_tokens or 0) + (cached or 0) + (written or 0)
    return Usage(input_count(api, input_tokens, cached, written) if apart else input_tokens, output_tokens, thought,
                 cached, written)


# -- A sample as records -----------------------------------------------------------------------------------------------


def _records(sample: dict[str, Any], room: Room) -> Iterator[dict[str, Any]]:
    """The records of a sample: its answers and the messages between them, each with its session."""
    session = f"sample {sample.get('id')} epoch {sample.get('epoch')}"
    attached = object_of(sample.get("attachments"))
    events = _flat(sample.get("events") or object_of(sample.get("transcript")).get("events"))
    if any(event.get("event") == "model" for event in events):
        found = _of_events(events, objects_of(object_of(sample.get("events_data")).get("messages")))
    else:
        found = _of_messages(sample)
    for record in found:
        yield {**_resolve(record, attached, room), "session": session}
    error, limit = object_of(sample.get("error")), object_of(sample.get("limit"))
    if error:
        yield {"session": session, "event": "end",
               "content": f"the sample ended with an error: {text_of(error.get('message'))[:200]}"}
    elif limit:
        yield {"session": session, "event": "end", "content": f"the sample hit its limit of {limit.get('type')}"}


def _flat(events: Any) -> list[dict[str, Any]]:
    """The events, including those of subtasks."""
    found: list[dict[str, Any]] = []
    waiting = list(reversed(objects_of(events)))
    while waiting:
        event = waiting.pop()
        found.append(event)
        waiting += reversed(objects_of(event.get("events")))  # instead of recursion: logs nest as deep as agents do
    return found


def _of_events(events: list[dict[str, Any]], pool: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The model events, each after the new messages of its input, and the events of tools."""
    before: list[dict[str, Any]] = []
    for event in events:
        kind = event.get("event")
        if kind == "tool":
            yield {name: event.get(name) for name in ("event", "id", "function", "result", "error", "pending")}
            continue
        if kind != "model":
            yield {name: event[name] for name in ("event", "source") if name in event}
            continue
        messages = objects_of(event.get("input")) or [
            # ranges in the pool of messages
            message for each in event.get("input_refs") or () for message in pool[each[0] : each[1]]]
        same = common_beginning(messages, before, _equal_messages)
        yield from (message for message in messages[same:] if message.get("role") in ("user", "tool"))
        before = messages
        call = object_of(event.get("call"))
        request = object_of(call.get("request"))
        yield {
            **{name: event.get(name) for name in EVENT_MEMBERS},
            "call": {"response": call.get("response"), "request": {name: request.get(name) for name in CAPS}},
        }


def _equal_messages(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.get("role") == other.get("role") and one.get("content") == other.get("content")


def _of_messages(sample: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages of a sample without events; the sample's output has the end of the last answer."""
    messages = objects_of(sample.get("messages"))
    output = object_of(sample.get("output"))
    last = max((n for n, each in enumerate(messages) if each.get("role") == "assistant"), default=-1)
    for number, message in enumerate(messages):
        if message.get("role") != "assistant":
            yield message
            continue
        own = output if number == last else {}
        choice = {**next(iter(objects_of(own.get("choices"))), {}), "message": message}
        yield {"role": "assistant", "output": {**own, "choices": [choice]}, "model": message.get("model")}


def _resolve(value: Any, attached: dict[str, Any], room: Room) -> Any:
    """The value with its attachments restored, while `room` lasts."""
    if isinstance(value, str) and value.startswith(_ATTACHED):
        text = attached.get(value.removeprefix(_ATTACHED))
        return text if isinstance(text, str) and room.take(len(text)) else value
    if isinstance(value, dict):
        return {name: _resolve(each, attached, room) for name, each in value.items()}
    if isinstance(value, list):
        return [_resolve(each, attached, room) for each in value]
    return value
