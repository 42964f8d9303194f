"""Exports of Langfuse: a trace with its observations, or the observations alone as a list or as lines.

A generation is an answer. Langfuse has no member for a stop word. A word may be in `output`, if the instrumentation
dumped the provider's object there, or among the attributes of the span, as the instrumentation's own word. The messages
before an answer are those of its input that no earlier input had. Source: langfuse.com/docs, data model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from inspector.sessions.importers.inspect_ai import take_provider_word
from inspector.sessions.importers.otlp import row_of, take_output, take_word
from inspector.sessions.importers.records import first_look
from inspector.sessions.importers.span_names import message_of, word_of
from inspector.sessions.reasons import message_reason
from inspector.sessions.recording import FileReading, Options, SessionAbout
from inspector.sessions.traffic import loads
from inspector.sessions.transcripts import Fields, TranscriptRows, error_in_text
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, Piece, list_pieces, pointer_at
from inspector.sessions.transcripts.member_values import known_text, number_of, object_of, objects_of
from loop_core.values import (
    At,
    Stop,
    TextPart,
    Usage,
)

CAPS = ("max_tokens", "maxTokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
"""Names of the output cap among a generation's parameters."""
FIELDS: Fields = {
    "": {"type": (str,), "id": (str,), "parentObservationId": (str,), "startTime": (str,), "model": (str,),
         "usageDetails": (dict,), "level": (str,), "statusMessage": (str,)},
}
"""The members of an observation that are read, and their possible types."""
_DEEP = 4
"""The most levels of JSON texts within JSON texts that are parsed."""


def sniff(head: bytes, path: str) -> int:
    """Recognises an object with a trace and observations, or an observation."""
    seen = first_look(head)
    for value in (seen.first, *seen.lines, *(seen.first[:2] if isinstance(seen.first, list) else ())):
        if not isinstance(value, dict):
            continue
        if "observations" in value and ("trace" in value or "traceId" in value or "projectId" in value):
            return 100
        if "traceId" in value and value.get("type") in ("GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN"):
            return 100
        if isinstance(value.get("trace"), dict) and "projectId" in value["trace"]:
            return 100
    return 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every generation, in the order of their start."""
    reader = _Trace(path, options)
    pieces = list(_observations(data))
    reader.title = _title(data)
    reader.inner = _inner(pieces)
    pieces.sort(key=_began)  # exports list the newest first
    return reader.read_records(pieces)


def _observations(data: bytes) -> Iterator[Piece]:
    for path in (("observations",), ("trace", "observations"), ("data",)):  # `data`: a page of the API
        found = list(list_pieces(data, *path))
        if found:
            yield from found
            return
    if data.lstrip()[:1] == b"[":
        yield from list_pieces(data)
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        yield number, line, False


def _value(piece: bytes) -> dict[str, Any]:
    try:
        return object_of(loads(piece.decode("utf-8", "replace")))
    except ValueError:
        return {}


def _began(piece: Piece) -> tuple[str, int]:
    began = _value(piece[1]).get("startTime")
    return began if isinstance(began, str) else "", piece[0]


def _inner(pieces: list[Piece]) -> frozenset[str]:
    """The generations inside another generation: two instrumentations recorded the same answer."""
    kinds = {value["id"]: value for value in map(_value, (piece for _, piece, _ in pieces))
             if isinstance(value.get("id"), str)}
    return frozenset(key for key, value in kinds.items() if value.get("type") == "GENERATION"
                     and kinds.get(str(value.get("parentObservationId")), {}).get("type") == "GENERATION")


def _title(data: bytes) -> str:
    whole = _value(data)
    trace = object_of(whole.get("trace")) or whole
    return known_text(trace.get("name")) or ""


def parse_nested(value: Any) -> Any:
    """A value, parsed once more if an instrumentation stored it as JSON text in JSON."""
    for _ in range(_DEEP):
        if not isinstance(value, str) or value[:1] not in ("{", "[", '"'):
            break
        try:
            value = loads(value)
        except ValueError:
            break
    return value


class _Trace(ChatReader):
    """One export being read."""

    name, agent, fields = "langfuse", "Langfuse", FIELDS
    unit, row_word = "observation", ("an observation", "observations")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.inner: frozenset[str] = frozenset()
        self.seen = 0
        """Messages of the last input."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """A generation; other observations are counted."""
        value = line.value
        if value.get("type") != "GENERATION":
            kind = value.get("type")
            lines.count(kind, frozenset({kind}) if isinstance(kind, str) and kind.isupper() else frozenset())
            return place
        if value.get("id") in self.inner:
            self.remarks["tell of an answer that another one around them tells of"] += 1
            return place
        place = self._input(line, parse_nested(value.get("input")), place)
        answer = self.answer(line, place, model=known_text(value.get("model")))
        answer.started = known_text(value.get("startTime"))
        parameters = object_of(parse_nested(value.get("modelParameters")))
        caps = (number_of(number) for number in map(parameters.get, CAPS))
        answer.cap = next((cap for cap in caps if cap), None)
        at = answer.take(line)
        self._output(answer, parse_nested(value.get("output")), value, pointer_at(at, "output"))
        answer.usage = usage_of(value)
        if value.get("level") == "ERROR" and answer.stop is None:
            self._failure(answer, known_text(value.get("statusMessage")) or "no message", at)
        return TreePlace(answer)

    def _input(self, line: TranscriptLine, value: Any, place: TreePlace) -> TreePlace:
        """Reads the messages of an input that earlier inputs did not have."""
        asked = object_of(value)
        listed = value if isinstance(value, list) else asked.get("messages", asked.get("contents", asked.get("prompt")))
        if not isinstance(listed, list):
            text = listed if isinstance(listed, str) else value if isinstance(value, str) else _dump(value)
            return self.say(line, place, text, own=place.answer is not None) if text else place
        # an input repeats the history; a shorter one is another conversation's
        new = listed[self.seen :] if len(listed) >= self.seen else listed
        self.seen = len(listed)
        for message in map(message_of, objects_of(new)):
            if message.role == "tool" and message.calls:
                continue  # some instrumentations write the call itself with this role
            for part in message.results:
                key = part.call_id or _waiting(place)
                place = self.say(line, place, "", (part._replace(call_id=key),))
            if message.role == "user" and message.text:
                place = self.say(line, place, message.text, own=bool(message.results))
        return place

    def _output(self, answer: TranscriptAnswer, shown_value: Any, value: dict[str, Any], at: At) -> None:
        """Reads the parts and the stop word of an answer, which may be the dump of any provider's object."""
        found = objects_of(shown_value) if isinstance(shown_value, list) else []
        body = object_of(found[0] if found else shown_value)
        choice = next(iter(objects_of(body.get("choices"))), {})
        candidate = next(iter(objects_of(body.get("candidates"))), {})
        items = objects_of(body.get("output"))
        if isinstance(shown_value, str):
            answer.parts.append(TextPart(shown_value))
        for message in found or items or [
                object_of(choice.get("message")) or object_of(candidate.get("content")) or body]:
            take_output(answer, message_of(message), at)
        answer.word_at = at
        path = ("output", 0) if found else ("output",)
        dumped = choice or candidate or items or "stop_reason" in body
        if not dumped or not take_provider_word(answer, body, at, *path):
            self._attributes(answer, body, value, at)
        elif isinstance(value.get("output"), str):  # a JSON pointer cannot lead into JSON inside a string
            evidence = tuple(each._replace(at=at) for each in answer.stop.evidence) if answer.stop else ()
            answer.word_at, answer.stop = at, answer.stop and answer.stop._replace(evidence=evidence)

    def _attributes(self, answer: TranscriptAnswer, body: dict[str, Any], value: dict[str, Any], at: At) -> None:
        """The word of an instrumentation, beside the answer or among the attributes of its span."""
        attributes = object_of(object_of(parse_nested(value.get("metadata"))).get("attributes"))
        dumped = known_text(object_of(body.get("response_metadata")).get("finish_reason"))
        word = known_text(body.get("finish_reason")) or dumped or word_of(attributes)
        if word is not None:
            rule = "unknown_word" if row_of(word).stop is Stop.UNKNOWN else "langfuse.finish_reasons"
            take_word(answer, word, at, rule, empty=value.get("output") in (None, ""))

    def _failure(self, answer: TranscriptAnswer, text: str, at: At) -> None:
        answer.error = error_in_text(text, None, None)
        answer.stop = message_reason(answer.error, at, text)

    def summarise(self) -> None:
        """Adds the title of the trace."""
        super().summarise()
        if self.title:
            self.reading.about = SessionAbout(title=self.title)


def _waiting(place: TreePlace) -> str | None:
    """The id of the first call above that no result answers yet: some instrumentations leave ids out."""
    if place.answer is None:
        return None
    done = {part.call_id for row in place.rows() for part in row.results}
    return next((call.id for call in place.answer.calls if call.id and call.id not in done), None)


def _dump(value: Any) -> str:
    return "" if value in (None, {}, []) else json.dumps(value, ensure_ascii=False)


def usage_of(value: dict[str, Any]) -> Usage | None:
    """Token counts in Langfuse's names."""
    # `usage` in older exports
    counts = object_of(value.get("usageDetails")) or object_of(value.get("usage"))
    given, made = number_of(counts.get("input")), number_of(counts.get("output"))
    if given is None and made is None:
        return None
    thought = counts.get("completion_details.reasoning", counts.get("output_reasoning_tokens"))
    cached = counts.get("input_cached_tokens", counts.get("cache_read_input_tokens"))
    return Usage(given, made, number_of(thought), number_of(cached))
