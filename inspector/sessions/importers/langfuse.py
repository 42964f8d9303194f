"""Exports of Langfuse: a trace with its observations, or only observations: a list, lines (also from an export to blob
storage), or a page of the API of version 1 or 2.

A generation is an answer. Langfuse has no member for a stop word. A word may be in `output`, if the instrumentation
dumped the provider's object there, or in the attributes of the span, as the instrumentation's own word; LangChain
writes it only into the spans around the generation. The messages before an answer are those of its input that are not
in the previous input; the result of a call may be only in the tool's observation. Source: langfuse.com/docs, data
model.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from inspector.sessions import redact
from inspector.sessions.importers.records import Piece, first_look, list_pieces, object_in
from inspector.sessions.importers.span_answers import messages_with_words
from inspector.sessions.importers.span_messages import MessageKey, SpanMessage, key_of, message_of, take_output
from inspector.sessions.importers.span_names import fact
from inspector.sessions.importers.span_names import words_of as words_of_span
from inspector.sessions.importers.trace_order import BY_TIME, REPEATED, TraceOrder, TraceRecord, order_of_start
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.traffic import loads
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, words_of
from inspector.sessions.transcripts.member_values import (
    cap_of,
    counts_of,
    first_count,
    input_count,
    known_text,
    number_of,
    object_of,
    objects_of,
)
from inspector.sessions.transcripts.provider_answers import deciding_word, row_of, take_provider_word, take_word
from loop_core.values import At, Finding, Severity, Stop, TextPart, ToolCall, ToolResultPart, Usage
from loop_core.wire.body import compact

FIELDS: Fields = {
    "": {"type": (str,), "id": (str,), "parentObservationId": (str,), "startTime": (str,), "model": (str,),
         "usageDetails": (dict,), "level": (str,), "statusMessage": (str,)},
}
LISTS = ("messages", "contents", "prompt", "input")
"""The members of an input that may have its messages; they differ by instrumentation."""
THOUGHT = ("completion_details.reasoning", "output_reasoning_tokens", "output_reasoning")
"""The names of the count of reasoning tokens; these and the next ones differ by instrumentation."""
CACHED = ("input_cached_tokens", "cache_read_input_tokens", "input_cache_read", "input_cached")
WRITTEN = ("cache_creation_input_tokens", "input_cache_creation")
"""The names of the count of tokens that were written to a cache."""
COLUMNS = {
    "trace_id": "traceId", "parent_observation_id": "parentObservationId", "start_time": "startTime",
    "status_message": "statusMessage", "provided_model_name": "model", "model_parameters": "modelParameters",
    "usage_details": "usageDetails", "providedModelName": "model",
}
"""Name of a column, or of a member of version 2 of the API -> the member of version 1. Source: langfuse 6275144."""
_KINDS = ("GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
_MOST_LEVELS = 4
"""The largest number of levels of JSON within JSON text that are parsed."""


def sniff(head: bytes, path: str) -> int:
    """Recognises an object with a trace and observations, or an observation."""
    parsed_head = first_look(head)
    listed = object_of(parsed_head.first).get("data", parsed_head.first)  # `data`: a page of the API
    for value in (parsed_head.first, *parsed_head.lines, *(listed[:2] if isinstance(listed, list) else ())):
        if not isinstance(value, dict):
            continue
        if "observations" in value and ("trace" in value or "traceId" in value or "projectId" in value):
            return 100
        if ("traceId" in value or "trace_id" in value) and known_text(value.get("type")) in _KINDS:
            return 100
        if isinstance(value.get("trace"), dict) and "projectId" in value["trace"]:
            return 100
    return 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every generation, in the order of their start times."""
    reader = TraceReader(path, options)
    reader.title = _title(data)
    pieces, reader.inner = order_of_start(_observations(data), _place_of)
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


def _with_first_names(value: dict[str, Any]) -> dict[str, Any]:
    """An observation with the member names of version 1 of the API."""
    return {**{COLUMNS[name]: member for name, member in value.items() if name in COLUMNS}, **value}


def _place_of(observation: dict[str, Any]) -> TraceRecord:
    value = _with_first_names(observation)
    return TraceRecord(value.get("startTime"), value.get("id"), value.get("parentObservationId"),
                       value.get("type") == "GENERATION")


def _title(data: bytes) -> str:
    whole = object_in(data)
    trace = object_of(whole.get("trace")) or whole
    return known_text(trace.get("name")) or ""


def parse_nested(value: Any) -> Any:
    """A value, parsed once more if an instrumentation stored it as JSON text in JSON."""
    for _ in range(_MOST_LEVELS):
        if not isinstance(value, str) or value[:1] not in ("{", "[", '"'):
            break
        try:
            value = loads(value)
        except ValueError:
            break
    return value


class ToolRun(NamedTuple):
    """The observation of a tool: the call that it ran, as far as it is named, and the result."""

    call: str | None
    name: str
    arguments: Any
    result: ToolResultPart

    @property
    def key(self) -> tuple[str, ...]:
        """The key by which the run is matched with a call: the id, else the tool's name and the arguments if known."""
        # Pydantic AI and the Agent Framework write words before the name
        name = self.name.rpartition(" ")[2]
        return (self.call,) if self.call is not None else (name, _arguments_text(self.arguments))


def _arguments_text(arguments: Any) -> str:
    return "" if arguments is None else compact(arguments, sort=True)


def _keys_of(call: ToolCall) -> Iterator[tuple[str, ...]]:
    """The keys of the runs that may belong to a call, the most certain first (`ToolRun.key`)."""
    yield (call.id or "",)
    if name := call.name.rpartition(" ")[2]:
        yield name, _arguments_text(parse_nested(call.arguments))
        yield name, ""


def _run_of(line: TranscriptLine) -> ToolRun | None:
    value = line.value
    if value.get("output") is None:
        return None
    attributes, arguments = _attributes_of(value), parse_nested(value.get("input"))
    if isinstance(arguments, dict) and list(arguments) == ["input"]:  # LangSmith's instrumentation
        arguments = parse_nested(arguments["input"])
    output = parse_nested(value["output"])
    content = object_of(output).get("content")
    text = output if isinstance(output, str) else words_of(content) if isinstance(content, list) else _dump(output)
    failed = value.get("level") == "ERROR" or object_of(output).get("is_error") is True
    call = known_text(fact(attributes, "call"))
    return ToolRun(call, known_text(value.get("name")) or "", arguments, ToolResultPart(call, None, text, failed))


def _attributes_of(value: dict[str, Any]) -> dict[str, Any]:
    """The attributes of the span from which an observation was made."""
    return object_of(object_of(parse_nested(value.get("metadata"))).get("attributes"))


class TraceReader(ChatReader):
    """Reads a file of observations of traces; also the base of the reader of LangSmith's runs."""

    name, agent, fields = "langfuse", "Langfuse", FIELDS
    unit, key, row_word = "observation", "id", ("an observation", "observations")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.inner: frozenset[str] = frozenset()
        self.trace_order = TraceOrder()
        self.after: dict[int, TreePlace] = {}
        """The number of an observation -> the place after its answer."""
        self._tools: defaultdict[tuple[str, ...], deque[ToolResultPart]] = defaultdict(deque)
        """Trace and key of a tool run -> the results of such runs that are not matched with a call so far."""
        self.traces: dict[TranscriptAnswer, str] = {}
        """Answer -> its trace."""
        self.trace = ""
        """The trace of the current observation; a page or a table of observations may have many."""
        self.known_words: dict[MessageKey, tuple[TranscriptLine, str]] = {}
        """Message -> its stop word, and the row with it, of an observation around the generation."""

    def lane(self, value: dict[str, Any]) -> str:
        """The trace of an observation."""
        return known_text(_with_first_names(value).get("traceId")) or ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a generation, or from another observation the result of a tool or LangChain's stop words."""
        value = line.value
        value.update(_with_first_names(value))
        self.trace = self.lane(value)
        if value.get("type") != "GENERATION":
            kind = value.get("type")
            lines.count(kind, frozenset({kind}) if isinstance(kind, str) and kind.isupper() else frozenset())
            self._note_observation(line)
            return place
        if self.is_inner(value):
            return place
        place = self.read_input(line, parse_nested(value.get("input")))
        answer = self.answer(line, place, model=known_text(value.get("model")))
        answer.started = known_text(value.get("startTime"))
        self.traces[answer] = self.trace
        answer.cap = cap_of(object_of(parse_nested(value.get("modelParameters"))))
        at = answer.take(line)
        self._output(answer, parse_nested(value.get("output")), value, pointer_at(at, "output"))
        answer.usage = usage_of(value, answer.api)
        if value.get("level") == "ERROR":
            self.fail(answer, known_text(value.get("statusMessage")) or "no message", at)
        return self.place_after(answer)

    def is_inner(self, value: dict[str, Any]) -> bool:
        """Whether a record repeats the answer around it; if so, it is counted."""
        inner = value.get("id") in self.inner
        self.remarks += Counter({REPEATED: int(inner)})
        return inner

    def place_after(self, answer: TranscriptAnswer) -> TreePlace:
        """Stores and returns the place after an answer, which later requests may continue."""
        calls = tuple((call.id, call.name, None) for call in answer.calls)
        self.trace_order.answer(answer.line, [SpanMessage("assistant", answer.text, calls=calls)])
        place = self.after[answer.line] = TreePlace(answer)
        return place

    def _note_observation(self, line: TranscriptLine) -> None:
        """Stores the parts of an observation that belong to answers: the run of a tool, or LangChain's stop words."""
        if line.value.get("type") == "TOOL":
            self.note_tool(_run_of(line))
        if b"response_metadata" in line.data:
            for message, word in messages_with_words(parse_nested(line.value.get("output"))):
                key = key_of(message)
                if key is not None:
                    self.known_words[key] = (line, word)

    def note_tool(self, run: ToolRun | None) -> None:
        """Stores the result of a tool's run until its call is known."""
        if run is not None:
            self._tools[self.trace, *run.key].append(run.result)

    def fail(self, answer: TranscriptAnswer, why: str, at: At) -> None:
        """Marks an answer as failed; if it has a stop word, the error is only a finding."""
        if answer.stop is None:
            answer.fail(why, at, answer.status)
        else:
            message = f"the {self.unit} is marked as an error: {why[:200]}"
            answer.findings.append(Finding("transcript.error_level", Severity.WARNING, message, at))

    def read_input(self, line: TranscriptLine, value: Any) -> TreePlace:
        """Reads the new messages of an input, and the results of tools before it."""
        members = object_of(value)
        listed = value if isinstance(value, list) else next((members[name] for name in LISTS if name in members), None)
        if listed is None and members.get("role") == "user":  # the only new message
            found, messages = self.trace_order.follow(line.number, self.trace, []), [message_of(members)]
        else:
            messages = [message_of(each) for each in objects_of(listed)]
            found = self.trace_order.follow(line.number, self.trace, messages)
            messages = messages[found.repeats :]
        self.remarks += Counter({BY_TIME: int(found.by_time)})
        place = self.after.get(found.before or 0, TreePlace(None))
        if not messages and not isinstance(listed, list):
            text = listed if isinstance(listed, str) else value if isinstance(value, str) else _dump(value)
            # an object that is not a message is no evidence of a message after an answer
            if text and (place.answer is None or isinstance(value, str) or isinstance(listed, str)):
                place = self.say(line, place, text, own=place.answer is not None)
            return self._add_tool_results(line, place)
        for message in messages:
            if message.role == "tool" and message.calls:
                continue  # some instrumentations write the call itself with this role
            results = message.results
            if not results and _first_open_call(place, message.role):  # LangChain: the role is the tool's name
                results = (ToolResultPart(None, message.role, message.text),)
            for part in results:
                key = part.call_id or _first_open_call(place, part.name) or _first_open_call(place)
                place = self.say(line, place, "", (part._replace(call_id=key),))
            if message.role == "user" and message.text:
                place = self.say(line, place, message.text, own=bool(message.results))
        return self._add_tool_results(line, place)

    def _add_tool_results(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Adds the results of an answer's calls from the observations of tools, if no input has them."""
        if place.answer is None or place.since is not None:
            return place
        return self.results(line, place, *self._results(place.answer))

    def _results(self, answer: TranscriptAnswer) -> tuple[ToolResultPart, ...]:
        """The results of tool runs for the calls of an answer that have no result so far."""
        found: list[ToolResultPart] = []
        for call in answer.calls:
            if call.id is not None and call.id not in answer.results:
                runs = (self._tools.get((self.traces.get(answer, ""), *key)) for key in _keys_of(call))
                found += [each.popleft()._replace(call_id=call.id) for each in islice(filter(None, runs), 1)]
        return tuple(found)

    def settle(self) -> None:
        """Also adds the results of calls that are in no later input."""
        for answer in self.answers:
            results = self._results(answer)
            if results:
                answer.after.append(InterimRow(answer.line, "", results, unit=self.unit))
        if len({*self.traces.values()}) > 1:
            for answer, trace in self.traces.items():
                answer.session = redact.text(f"trace {trace[:40]}")
        super().settle()

    def _output(self, answer: TranscriptAnswer, shown_value: Any, value: dict[str, Any], at: At) -> None:
        """Reads the parts and the stop word of an answer, which may be a dump of any provider's object."""
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
        elif isinstance(value.get("output"), str):  # no JSON pointer leads into JSON within a string
            evidence = tuple(each._replace(at=at) for each in answer.stop.evidence) if answer.stop else ()
            answer.word_at, answer.stop = at, answer.stop and answer.stop._replace(evidence=evidence)

    def _attributes(self, answer: TranscriptAnswer, body: dict[str, Any], value: dict[str, Any], at: At) -> None:
        """Reads the stop word of an instrumentation, beside the answer or in the attributes of its span."""
        items = (*objects_of(parse_nested(value.get("output"))), object_of(body.get("response_metadata")))
        words = [known_text(item.get("finish_reason")) for item in (body, *items)]
        found = [word for word in (*words, *words_of_span(_attributes_of(value))) if word is not None]
        # Langfuse's own wrapper of OpenAI writes the word of a stream into `metadata` (langfuse-python PR#1526), which
        # belongs to the application: an unknown word there may be about anything.
        noted = known_text(object_of(parse_nested(value.get("metadata"))).get("finish_reason"))
        if noted is not None and row_of(noted).stop is not Stop.UNKNOWN:
            found.append(noted)
        word = deciding_word(found)
        key = key_of(message_of(body)) if word is None else None
        if key in self.known_words:
            line, word = self.known_words[key]
            at = answer.word_at = pointer_at(answer.take(line), "output")
        if word is not None:
            rule = "unknown_word" if row_of(word).stop is Stop.UNKNOWN else "langfuse.finish_reasons"
            take_word(answer, word, at, rule, empty=value.get("output") in (None, ""))


def _first_open_call(place: TreePlace, name: str | None = None) -> str | None:
    """The id of the first call above a place without a result so far, of the tool `name` if it is given. Some
    instrumentations leave out the ids of results."""
    if place.answer is None:
        return None
    done = {part.call_id for row in place.rows() for part in row.results}
    return next((call.id for call in place.answer.calls
                 if call.id and call.id not in done and name in (None, call.name)), None)


def _dump(value: Any) -> str:
    return "" if value in (None, {}, []) else json.dumps(value, ensure_ascii=False)


def usage_of(value: dict[str, Any], api: str) -> Usage | None:
    """Token counts in Langfuse's names. If the total is the sum of all counts, none is part of another."""
    # `usage` in older exports
    counts = object_of(value.get("usageDetails")) or object_of(value.get("usage"))
    input_tokens, output_tokens, total = counts_of(counts, "input", "output", "total")
    if input_tokens is None and output_tokens is None:
        return None
    thought, cached = first_count(counts, *THOUGHT), first_count(counts, *CACHED)
    parts = {name: number_of(count) or 0 for name, count in counts.items() if name != "total"}
    if total is not None and total == sum(parts.values()):
        output_tokens = None if output_tokens is None else output_tokens + (thought or 0)
        written = sum(parts.get(name, 0) for name in WRITTEN)
        input_tokens = input_count(api, input_tokens, cached, written)
    return Usage(input_tokens, output_tokens, thought, cached, first_count(counts, *WRITTEN))
