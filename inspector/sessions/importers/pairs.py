"""Pairs of request and response in JSON or JSON Lines, in the forms of loggers, proxies and batch files.

The response may be the provider's object, its stream as a string, a list of its events, or an HTTP answer with status,
headers and body. Objects are read as bytes of the file, so that arguments keep their exact spelling.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from inspector.sessions import traffic
from inspector.sessions.importers import records, stored_bodies
from inspector.sessions.importers.records import complete, first_look, values_in
from inspector.sessions.importers.stored_bodies import (
    FRAMED,
    PACKED,
    SEGMENTS,
    batch_line,
    batch_row,
    cassette,
    event_data,
    frame_lines,
    join_stream,
    list_around,
    request_beside,
    unpack_pieces,
    word_of,
)
from inspector.sessions.intake import unpack
from inspector.sessions.notices import Notice
from inspector.sessions.recording import FileReading, Options, RawExchange, Skipped, UnreadableError
from inspector.sessions.transcripts.member_values import object_of
from loop_core.json_parser import JsonPath
from loop_core.values import TransportEnd
from loop_core.wire import FORMATS, wire
from loop_core.wire.framing import Whole
from loop_core.wire.json_values import char_span

# Loggers, proxies, cassettes and batch files have different names for the same members.

CHUNKS = "chunks"
"""The member with a stream as it arrived, in an answer (Mastra) or beside it (ReqLLM)."""
REQUESTS = ("request", "req", "request_body", "requestBody", "RequestBody", "input", "inputs", "kwargs", "modelInput")
RAW = "raw_response"
"""The member with the provider's own answer, beside OpenHands' version with calls made of the tags in its text."""
RESPONSES = (
    "response", "resp", "res", "response_body", "responseBody", "ResponseBody", RAW, "output", "result", "completion",
    "modelOutput",
)
BODIES = (
    "body_raw", "body", "jsonBody", "payload", "json", "content", "text", "data", "inputBodyJson", "outputBodyJson",
    stored_bodies.WIREMOCK_PACKED, CHUNKS, SEGMENTS,
)
LISTS = (
    "interactions", "http_interactions", "exchanges", "entries", "calls", "pairs", "records", "items", "logs",
    "requests", "mappings", "recordings", "Entries", "events",
)
"""The members of an object that may hold the list of pairs (`interactions`: JSON cassettes; `events`: Braintrust)."""
SPAN = frozenset({"span_id", "root_span_id"})
"""The members of every span that Braintrust exports; only those of models have an answer."""
STATUS = ("status", "status_code", "statusCode", "StatusCode")
NOCK = frozenset({"scope", "method", "path"})
"""The first members of an exchange that nock (JavaScript) recorded. `body`, its request, may be left out, so that any
request matches; `response` may be beyond the head."""
TEST_PROXY = frozenset({"RequestUri", "RequestMethod"})
"""The first members of an exchange that the test proxy of Azure's SDKs and of OpenAI's SDK for .NET recorded."""
AUTOGEN = frozenset({"payload", "sender", "receiver", "delivery_stage"})
"""The members of most events in a log of AutoGen; those of its type `LLMCall` are pairs."""
ELSEWHERE = ("outputBodyS3Path", stored_bodies.WIREMOCK_FILE)
"""The members with the place of an answer in another file: Bedrock's invocation log, above 100 KB, and WireMock."""
OPERATIONS = {"Converse": "converse", "ConverseStream": "converse-stream", "InvokeModel": "invoke"}
"""Operation in Bedrock's invocation log -> the end of its path, which includes the model (Amazon Bedrock API
reference). A stream of InvokeModel is stored as the model's own events, by which the format is recognised."""
HTTP_ANSWERS = ({"status", "headers", "body"}, {"statusCode", "headers", "data"})
"""The members of an HTTP answer that was recorded without its request: of OpenInference, of Saloon (PHP)."""


def pick(value: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of the names that has a value; None if none has."""
    return next((name for name in names if value.get(name) is not None), None)


def is_http(value: dict[str, Any]) -> bool:
    """Whether one side of a pair is an HTTP message, instead of the body itself."""
    return (
        status_of(value) is not None
        or isinstance(value.get("headers"), (dict, list))
        or not value.keys().isdisjoint({"body_raw", "body", "payload", "urlPath", "inputBodyJson", "outputBodyJson"})
        or (value.keys() >= {"method", "url"} and "model" not in value)
    )


def status_of(value: dict[str, Any]) -> int | None:
    """The HTTP status of an answer; None if it states none."""
    for name in STATUS:
        status = value.get(name)
        if isinstance(status, dict):  # vcrpy: {"code": 200, "message": "OK"}
            status = status.get("code")
        if (found := traffic.http_status(status)) is not None:
            return found
    return None


_LAST = ", the last"
beginning = records.first_lines


def sniff(head: bytes, path: str) -> int:
    """Recognises a response with its request in the first value, or in the first element of its list."""
    first = first_look(head).first
    if isinstance(first, dict):
        rows = next((first[key] for key in LISTS if isinstance(first.get(key), list)), None)
        return _score(first) or (80 if isinstance(rows, list) and rows and _score(rows[0]) else 0)
    return _score(first[0]) if isinstance(first, list) and first else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads all pairs, one per entry."""
    reading, broken = FileReading(), 0
    text = traffic.mend(data.decode("utf-8", "replace").lstrip("\ufeff"))
    if "\ufffd" in text:
        reading.error = traffic.utf8_error(data)
    for entry, (piece, where) in enumerate(_pieces(text)):
        try:
            value = traffic.loads(piece)
        except ValueError:
            begun = _cut_pair(entry, piece, options, reading) if where.endswith(_LAST) else None
            broken += _note_broken(reading, entry, where, begun)
            continue
        with reading.skipping(entry, "a pair"):
            value = stored_bodies.with_body_file(value, path, options.room)
            reading.add(entry, _pair(entry, value, piece, options, reading))
    if not reading.raws and (broken == len(reading.skipped)):
        where = (f"not valid JSON ({reading.skipped[0].why.partition('(')[2]}" if broken
                 else "no request/response pair in it")
        raise UnreadableError(reading.error or f'{where}: expected {{"request": …, "response": …}}')
    return reading


def _cut_pair(entry: int, piece: str, options: Options, reading: FileReading) -> RawExchange | None:
    """The last pair of a cut file, up to the cut; None if its answer has not begun."""
    try:
        value = traffic.parse_beginning(piece)
    except ValueError:
        return None
    if not isinstance(value, dict) or pick(value, REQUESTS) is None or pick(value, RESPONSES) is None:
        return None  # the answer has not begun, or there is no request for it
    raw = _pair(entry, value, piece, options, reading)
    if isinstance(raw, str):
        return None
    raw.recorded, raw.end = bool(raw.body), TransportEnd.CUT
    return raw


def _note_broken(reading: FileReading, entry: int, where: str, unfinished: RawExchange | None) -> int:
    """Reports a text that is not JSON; returns the number of entries that are lost with it."""
    place = where.removesuffix(_LAST)
    if place != where:
        read = "the part before it was read" if unfinished is None else "what there is was read"
        reading.notices.append(Notice(f" is cut: expected a complete JSON object; {read}", at=place))
        reading.raws.extend([] if unfinished is None else [unfinished])
        reading.mark_cut()
    if unfinished is None:
        reading.skipped.append(Skipped(entry, f"not valid JSON ({place})"))
    return int(unfinished is None)


def _is_nock(value: dict[str, Any]) -> bool:
    return value.keys() >= NOCK and not value.keys().isdisjoint({"body", "response"})


def _score(value: Any) -> int:
    if not isinstance(value, dict) or value.get("object") == "response":
        return 0  # an answer of Responses has an `output`, and may have the `input` beside it (Llama Stack)
    if _is_nock(value) or value.keys() >= TEST_PROXY:
        return 90
    if value.keys() >= SPAN:
        return 80
    if value.keys() - {"context"} in HTTP_ANSWERS and status_of(value) is not None:
        return 70
    if value.keys() >= AUTOGEN or request_beside(value) is not None:
        return 90
    answer = pick(value, RESPONSES)
    if answer is None and pick(value, REQUESTS) and "logged_at" in value and "response" in value:
        return 90  # claude-trace: the first request may have been interrupted
    if answer is None or not isinstance(value[answer], (dict, str, list)):
        return 0
    if pick(value, REQUESTS) is not None or "custom_id" in value:
        return 90
    about = {"method", "url", "status", "headers", "timestamp", "api", "id", "model", "key"}  # Gemini's batches: key
    message = isinstance(value.get("output"), dict) and "message" in value["output"]  # a body of Bedrock, perhaps cut
    return 70 if set(value) <= {answer, *about} and not message else 0


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """The JSON text of each pair, with the pair's place in words."""
    stripped = text.lstrip()
    start = len(text) - len(stripped)
    if stripped[:1] == "{":
        first_line = stripped.split("\n", 1)[0]
        if complete(first_line) and "\n" in stripped.strip():  # a first line that is a whole object: JSON Lines
            yield from _lines(text)
            return
        for key in LISTS:
            if f'"{key}"' not in text:
                continue
            span = char_span(text, key)
            if span is not None and text[span[0]] == "[":
                yield from _elements(text, span[0])
                return
        yield text, f"the pair at byte {start}{_LAST}"
    else:
        yield from _elements(text, start)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    lines = text.split("\n")
    last = max((n for n, line in enumerate(lines) if line.strip()), default=0)
    for number, line in enumerate(lines):
        if line.strip():
            yield line, f"line {number + 1}" + (_LAST if number == last else "")


def _elements(text: str, opening: int) -> Iterator[tuple[str, str]]:
    done = opening + 1
    at = len(text[:done].encode("utf-8", "replace"))  # the byte offset of `done`
    for start, end in values_in(text, done):
        at, done = at + len(text[done:start].encode("utf-8", "replace")), start
        yield text[start:end], f"the element at byte {at}{_LAST if end is None else ''}"


def _pair(entry: int, value: Any, piece: str, options: Options, reading: FileReading) -> RawExchange | str:
    if not isinstance(value, dict):
        return "not a request/response pair: expected an object"
    nock = _is_nock(value)
    request_key, answered = pick(value, ("body",) if nock else REQUESTS), pick(value, RESPONSES)
    if value.keys() - {"context"} in HTTP_ANSWERS:
        return _response(RawExchange(entry), value, piece, (), options, reading)
    if answered is None:
        if request_key is not None and "logged_at" in value and "response" in value:  # claude-trace: it was interrupted
            raw = RawExchange(entry, end=TransportEnd.ABORTED)
            _request(raw, value[request_key], piece, (request_key,))
            return raw
        return traffic.failure(value) or "no response in it"
    if answered == "response" and word_of(value.get(RAW)) not in (None, word_of(value["response"])):
        answered = RAW
    raw = RawExchange(entry, session=batch_row(value, entry), started=records.start_text(value),
                      duration_ms=records.duration(value))
    raw.api = value["api"] if value.get("api") in FORMATS else None
    _about(raw, value)
    if value.keys() >= TEST_PROXY:
        raw.request_headers = traffic.headers(value.get("RequestHeaders"))
        raw.status, raw.headers = status_of(value), traffic.headers(value.get("ResponseHeaders"))
    if value.get("operation") in OPERATIONS and isinstance(value.get("modelId"), str):
        raw.url = f"/model/{quote(value['modelId'], safe='')}/{OPERATIONS[value['operation']]}"
    raw.request_text = request_beside(value) if request_key in (None, "kwargs") else None
    if raw.request_text is None and request_key is not None:
        _request(raw, value[request_key], piece, (request_key,))
    if nock:
        return _of_nock(raw, value, piece, options, reading)
    found = _response(raw, value[answered], piece, (answered,), options, reading, value.get(CHUNKS))
    empty = not raw.url and raw.body in (b"", b"{}")  # vLLM, Vertex AI: the error of a row is beside its empty answer
    return (empty and traffic.failure(value)) or found


def _of_nock(
    raw: RawExchange, value: dict[str, Any], piece: str, options: Options, reading: FileReading
) -> RawExchange | str:
    """Reads the answer of an exchange of nock: JSON, a text, or the hexadecimal digits of a packed or binary body."""
    body, names = value["response"], value.get("rawHeaders")
    raw.url, raw.status = f"{value['scope']}{value['path']}", status_of(value)
    raw.headers = traffic.headers(list(zip(names[::2], names[1::2], strict=False)) if type(names) is list else names)
    if isinstance(body, list) and all(isinstance(each, str) for each in body):
        return _string_body(raw, "".join(body), options, bytes.fromhex)
    if isinstance(body, str) and value.get("responseIsBinary") is True:
        return _string_body(raw, body, options, bytes.fromhex)
    return _response(raw, body, piece, ("response",), options, reading)


def _about(raw: RawExchange, value: dict[str, Any]) -> None:
    """Reads the facts about the HTTP exchange from both sides."""
    url = value.get("url") or value.get("uri") or value.get("urlPath") or value.get("RequestUri")
    if isinstance(url, str):
        raw.url = url
    method = value.get("method") or value.get("RequestMethod")
    if isinstance(method, str) and method.isupper():
        raw.method = method
    raw.started = raw.started or records.start_text(value)


def _request(raw: RawExchange, value: Any, piece: str, path: JsonPath) -> None:
    if isinstance(value, dict) and is_http(value):
        _about(raw, value)
        raw.request_headers = traffic.headers(value.get("headers"))
        key = pick(value, BODIES)
        steps = stored_bodies.asked_body(value) if key is None else (key,)
        if not steps:
            return
        for step in steps:
            value, path = value[step], (*path, step)
    value, path = cassette(value, path)
    if isinstance(value, str) and path[-1] in PACKED:
        with suppress(ValueError):  # the request stays unknown
            raw.request_text = binascii.a2b_base64(value).decode("utf-8", "replace")
    elif isinstance(value, str):
        raw.request_text = value or None
    elif isinstance(value, (dict, list)):
        span = char_span(piece, *path)
        raw.request_text = piece[span[0] : span[1]] if span else None


def _response(
    raw: RawExchange, value: Any, piece: str, path: JsonPath, options: Options, reading: FileReading, chunks: Any = None
) -> RawExchange | str:
    value, path = batch_line(value, path)  # not needed for OpenAI's lines, whose `response` is an HTTP answer
    if isinstance(value, dict) and pick(value, BODIES) is None and (place := pick(value, ELSEWHERE)) is not None:
        return f"its answer is in another file ({place})"
    if value in ({"type": "expired"}, {"type": "canceled"}):
        return f"failed before any answer: {value['type']}"
    if isinstance(value, dict) and is_http(value):
        raw.status = status_of(value)
        raw.headers = traffic.headers(value.get("headers"))
        key = pick(value, BODIES)
        if key is None and not isinstance(chunks, list):
            raw.recorded = traffic.says_enough(raw.status)
            return raw
        value, path = (chunks, (CHUNKS,)) if key is None else (value[key], (*path, key))
    value, path = cassette(value, path)
    packed = bool(path) and path[-1] in PACKED
    if isinstance(value, str) and value.startswith("base64:"):  # cassettes of Datadog's test agent
        return _string_body(raw, value.removeprefix("base64:"), options)
    if isinstance(value, str):
        return _string_body(raw, value, options if packed else None)
    if isinstance(value, list):
        return _list_body(raw, value, piece, path, options, reading)
    if not isinstance(value, dict):
        return "no response in it"
    span = char_span(piece, *path)
    text = piece[span[0] : span[1]] if span else ""
    if text and (name := list_around(value)) is not None:
        return _in_list(raw, name, f"[{text}]", value, reading)
    raw.body = text.encode("utf-8", "replace")
    return raw


def _in_list(raw: RawExchange, name: str, text: str, first: dict[str, Any], reading: FileReading) -> RawExchange:
    counts = f', "usageMetadata": {json.dumps(first["usageMetadata"])}' if "usageMetadata" in first else ""  # ADK's
    raw.body = f'{{"{name}": {text}{counts}}}'.encode("utf-8", "replace")
    reading.note(f"answers were recorded as their {name} alone (Braintrust): the object around them was added")
    return raw


def _string_body(
    raw: RawExchange, value: str, packed: Options | None, decode: Callable[[str], bytes] = binascii.a2b_base64
) -> RawExchange | str:
    if not value:
        raw.recorded = traffic.says_enough(raw.status)
        return raw
    if packed is None:
        raw.body = value.encode("utf-8", "replace")
        return raw
    try:
        unpacked = unpack(decode(value), raw.headers, packed.room)
    except (binascii.Error, ValueError):
        return raw.without_body(f"its body is not valid {'hexadecimal' if decode == bytes.fromhex else 'base64'}")
    if isinstance(unpacked, str):
        return raw.after_failed_unpack(unpacked)
    raw.body = unpacked
    return raw


def _list_body(
    raw: RawExchange, value: list[Any], piece: str, path: JsonPath, options: Options, reading: FileReading
) -> RawExchange | str:
    if all(isinstance(item, str) for item in value):
        return _string_body(raw, join_stream(value), None)
    if all(isinstance(object_of(item).get("b64"), str) for item in value):
        return _string_body(raw, "\n".join(item["b64"] for item in value), options, unpack_pieces)
    span = char_span(piece, *path)
    text = piece[span[0] : span[1]] if span else json.dumps(value)
    api = (options.api or raw.api or (traffic.by_path(raw.url) if raw.url else None)
           or traffic.by_content(text.encode("utf-8", "replace")))
    if (name := list_around(value[0] if value else None)) is not None:
        return _in_list(raw, name, text, value[0], reading)
    reader = wire(api).decoder if api is not None else None
    if reader is not None and reader.array_framing is not Whole and event_data(value[0] if value else None) is None:
        raw.body = text.encode("utf-8", "replace")
        return raw
    frames = frame_lines(item for item, _ in _elements(text, 0))
    if reader is not None and reader.object_framing is not Whole:  # one line for each object
        raw.body = "".join(f"{item}\n" for item in frames).encode("utf-8", "replace")
    else:
        raw.body = "".join(f"data: {item}\n\n" for item in frames).encode("utf-8", "replace")
    reading.note(FRAMED)
    return raw
