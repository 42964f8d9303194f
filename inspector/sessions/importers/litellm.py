"""Logs of LiteLLM: its standard logging payload, one per call, as lines, a list or one object.

LiteLLM writes each answer in the form of Chat Completions, so its stop word is the provider's only if the provider uses
the same words. An answer of the Responses API is the provider's own object. The messages between two calls of a trace
are those that the later call adds. Rows of the proxy's spend table have the same members, the large ones as JSON in a
string. An exchange may be logged twice: by two callbacks (litellm #14340, #21355), or as a payload and as a row of the
spend table, with the same id. Sources: docs.litellm.ai/docs/proxy/logging_spec; payloads of litellm 1.106.2.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from inspector.sessions.importers.records import Piece, first_look, list_pieces
from inspector.sessions.importers.span_messages import load_json, message_of, take_output
from inspector.sessions.importers.trace_order import BY_TIME, Predecessor, TraceOrder
from inspector.sessions.reasons import shortened_call_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.traffic import loads, moment, written_status
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at
from inspector.sessions.transcripts.member_values import cap_of, counts_of, known_text, object_of, objects_of
from inspector.sessions.transcripts.provider_answers import take_litellm, take_provider_word
from loop_core.values import ArgsForm, At, Finding, Severity, ToolCall, Usage
from loop_core.wire.openai_chat.table import read_usage

PACKED = ("messages", "response", "proxy_server_request")
"""The members that are JSON in a string in a row of the spend table; `{}` by default."""
_ANSWERS = re.compile("^$|completion|responses|messages|generate_content|pass_?through|interaction")
"""Matches the `call_type` of calls that a model answers, unlike embeddings, reranking, transcription or lists. The type
is empty if the call failed before it was known."""
SHORTENED = re.compile(r"\(litellm_truncated\b[^)]{0,200}\)")
"""Matches the mark in the middle of a text of which the spend table has only the beginning and the end, by default a
text of more than 2,048 characters (`MAX_STRING_LENGTH_PROMPT_IN_DB`)."""
NEAR = 2_000_000
"""The number of nanoseconds by which the start times in two records of one exchange may differ: the spend table rounds
them."""
PARSED = ("anthropic/", "bedrock/", "vertex_ai/claude", "azure_ai/claude")
"""The beginnings of `provider/model` for which a whole answer has calls with parsed arguments. LiteLLM writes them as
text again, which looks whole also if the call was cut."""
FIELDS: Fields = {"": {"response": (dict, str), "model_parameters": (dict,)}}


def sniff(head: bytes, path: str) -> int:
    """Recognises a payload by the type of its call and the parameters or LiteLLM's own id."""
    first = first_look(head).first
    first = first[0] if isinstance(first, list) and first else first
    if not isinstance(first, dict) or "call_type" not in first:
        return 0
    spent = "request_id" in first and "spend" in first  # a row of the spend table
    return 95 if spent or "model_parameters" in first or "litellm_call_id" in first else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    reader = PayloadReader(path, options)
    reader.repeated = _repeats(data)
    return reader.read_records(new_pieces(data, reader.repeated, reader.earlier))


def _payloads(data: bytes) -> Iterator[tuple[Piece, dict[str, Any] | None]]:
    """The records, each with its payload; None for a cut or unusual one."""
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    for piece in list_pieces(data) if text[:1] == b"[" else _objects(text):
        try:
            value = loads(piece[1])
        except ValueError:
            value = None
        if isinstance(value, dict):
            value |= {name: load_json(value[name]) for name in PACKED if isinstance(value.get(name), str)}
        yield piece, value if isinstance(value, dict) else None


def _repeats(data: bytes) -> frozenset[int]:
    """The numbers of the records whose exchange is also in another record, with as much of it or more."""
    records: dict[str, list[_Logged]] = {}
    found: set[int] = set()
    for (number, _, _), value in _payloads(data):
        name = None if value is None else known_text(value.get("id")) or known_text(value.get("request_id"))
        if value is None or name is None:
            continue
        one = _read_log(number, value)
        same = next((each for each in records.setdefault(name, []) if each.is_same(one)), None)
        if same is None:
            records[name].append(one)
        elif same.answer or not one.answer:
            found.add(number)
        else:
            records[name][records[name].index(same)] = one
            found.add(same.number)
    return frozenset(found)


class _Logged(NamedTuple):
    """The facts that identify the exchange of a record among those with the same id."""

    number: int
    failed: bool
    answer: str
    """The content of the answer; empty if the record does not have it."""
    started: int | None
    """Nanoseconds since the epoch; the spend table has a text without a time zone, in UTC."""

    def is_same(self, other: _Logged) -> bool:
        """Whether both log one exchange, by its start time and answer. Failed attempts may share an id."""
        times = (self.started, other.started)
        together = self.started is not None and other.started is not None and abs(self.started - other.started) < NEAR
        if self.failed or other.failed:
            return self.failed == other.failed and together
        return (together or None in times) and (self.answer == other.answer or not (self.answer and other.answer))


def _read_log(number: int, value: dict[str, Any]) -> _Logged:
    response = object_of(value.get("response"))
    output = next((response[name] for name in ("choices", "output", "content") if response.get(name)), None)
    return _Logged(number, value.get("status") == "failure" or known_text(value.get("error_str")) is not None,
                   "" if output is None else json.dumps(output), moment(str(value.get("startTime"))))


def new_pieces(data: bytes, repeated: frozenset[int], earlier: dict[int, Predecessor]) -> Iterator[Piece]:
    """The payloads without the messages that are not new; a cut, unusual or repeated payload is unchanged. `earlier`
    receives the exchange that each continues."""
    order = TraceOrder()
    for (number, piece, last), value in _payloads(data):
        if value is None or number in repeated:
            yield number, piece, last
            continue
        listed, response = objects_of(value.get("messages")), object_of(value.get("response"))
        # Without an id from the client, LiteLLM gives each call a trace of its own.
        found = earlier[number] = order.follow(
            number, str(value.get("trace_id")), [*map(message_of, listed)], alone=True)
        answers = [object_of(choice.get("message")) for choice in objects_of(response.get("choices"))[:1]] or [
            object_of(each.get("content")) for each in objects_of(response.get("candidates"))[:1]] or objects_of(
            response.get("output")) or [response]
        order.answer(number, [*map(message_of, answers)])
        if isinstance(value.get("messages"), list):
            value["messages"] = listed[found.repeats :]
        yield number, json.dumps(value).encode(), last


def _objects(text: bytes) -> Iterator[Piece]:
    """The lines of a file, or its one object that extends over many lines."""
    try:
        loads(text)
    except ValueError:
        lines = text.split(b"\n")
        yield from ((number, line, number == len(lines)) for number, line in enumerate(lines, 1))
    else:
        yield 1, text, True


class PayloadReader(ChatReader):
    """Reads payloads of LiteLLM, or records converted to their form."""

    name, agent, fields = "litellm", "LiteLLM", FIELDS
    unit, row_word, wordless = "payload", ("a payload", "payloads"), False

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.repeated: frozenset[int] = frozenset()
        """The numbers of the records whose exchange is also in another record."""
        self.earlier: dict[int, Predecessor] = {}
        """The number of a payload -> the exchange that it continues."""
        self.after: dict[int, TreePlace] = {}
        """The number of a payload -> the place after its answer."""

    def session_of(self, value: dict[str, Any]) -> str:
        """The session of a payload, else its trace."""
        return known_text(value.get("session_id")) or known_text(value.get("trace_id")) or ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads one payload: its new messages, and the answer."""
        value, kind = line.value, known_text(line.value.get("call_type"))
        if kind is not None and not _ANSWERS.search(kind):
            lines.count(kind, frozenset({kind}))
            return self.here
        if line.number in self.repeated:
            self.remarks["repeat an exchange that another one logs"] += 1
            return self.here
        found = self.earlier.get(line.number, Predecessor(None, 0))
        self.remarks += Counter({BY_TIME: int(found.by_time)})
        self.here = self.after.get(found.before or 0, TreePlace(None))
        if self.here.answer is not None:
            self.session = self.here.answer.session
        for message in objects_of(value.get("messages")):
            message_text, role = text_of(message.get("content")), message.get("role")
            if role == "tool":
                self.result(line, self.here, message.get("tool_call_id"), message_text)
            elif role == "user":
                self.say(line, self.here, message_text)
        response, model = object_of(value.get("response")), known_text(value.get("model"))
        name = known_text(response.get("id")) or known_text(value.get("id")) or self.unit
        answer = self.answer(line, self.here, name, model, api="openai_chat", begin=value.get("startTime"))
        self.after[line.number] = TreePlace(answer)
        at = answer.take(line)
        _take_response(answer, line, at)
        _mark_shortened(answer, at)
        if answer.usage is None:
            answer.usage = Usage(*counts_of(value, "prompt_tokens", "completion_tokens"))
        answer.cap = cap_of(_parameters_of(value))
        _take_failure(answer, value, at)
        return self.here


def _parameters_of(value: dict[str, Any]) -> dict[str, Any]:
    return object_of(value.get("model_parameters")) or object_of(value.get("proxy_server_request"))


def _take_response(answer: TranscriptAnswer, line: TranscriptLine, at: At) -> None:
    """Reads the response of a payload, in the form of Responses, Anthropic, Google or Chat Completions."""
    value = line.value
    response = object_of(value.get("response"))
    if response.get("object") == "response":
        for item in objects_of(response.get("output")):
            take_output(answer, message_of(item), at)
        take_provider_word(answer, response, at, "response")
        answer.model = known_text(response.get("model")) or answer.model
        answer.usage = read_usage(object_of(response.get("usage")), answer.model)
        return
    if response.get("type") == "message" or "candidates" in response:  # in the form of Anthropic or Google
        content = objects_of(response.get("candidates"))
        take_output(answer, message_of(object_of(content[0].get("content")) if content else response), at)
        take_provider_word(answer, response, at, "response")
        return
    provider, model = known_text(value.get("custom_llm_provider")), known_text(value.get("model"))
    # LiteLLM's name of a model: `provider/model`
    take_litellm(answer, response, f"{provider}/{model}" if provider else model, line, at, "response")
    answer.add_text(next(iter(objects_of(response.get("choices"))), {}).get("text"))
    streamed = True in (value.get("stream"), _parameters_of(value).get("stream"))
    if f"{provider}/{model}".startswith(PARSED) and not streamed:
        answer.parts = [part._replace(form=ArgsForm.OBJECT) if isinstance(part, ToolCall) else part
                        for part in answer.parts]


def _take_failure(answer: TranscriptAnswer, value: dict[str, Any], at: At) -> None:
    """Reads the error of a failed call."""
    message = known_text(value.get("error_str"))
    if value.get("status") != "failure" and message is None:
        return
    # A row of the spend table has it in its metadata.
    beside = object_of(load_json(value.get("metadata"))).get("error_information")
    info = object_of(value.get("error_information")) or object_of(beside)
    message, status = message or known_text(info.get("error_message")), written_status(info.get("error_code"))
    if status is not None and status < 400:
        status = None  # it is a provider's own code
    answer.fail(message or "it failed", pointer_at(at, "error_str"), status, word=message or "failure")


def _mark_shortened(answer: TranscriptAnswer, at: At) -> None:
    """Reports texts that LiteLLM shortened. With a shortened call, the stop reason counts as not recorded, because the
    arguments are not the model's."""
    calls = any(SHORTENED.search(call.arguments or "") for call in answer.calls)
    if not calls and not SHORTENED.search(answer.text):
        return
    message = "LiteLLM left out the middle of long texts of this answer (litellm_truncated)"
    answer.findings.append(Finding("transcript.shortened", Severity.WARNING, message, at))
    if calls and answer.stop is not None:
        answer.stop = shortened_call_reason(answer.stop)
