"""A response body in a file of its own: JSON, server-sent events, NDJSON, a JSON array, a binary event stream.

The API is found by the content, or named by the caller. Several whole answers behind one another are several responses,
if each says how it ended. This module also explains what a file is if it is no response body.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.file_format import KNOWN_BODY
from inspector.sessions.importers.known_formats import refusal
from inspector.sessions.importers.records import (
    complete,
    elements,
    first_lines,
    first_look,
    look_at,
    object_in,
)
from inspector.sessions.importers.stored_bodies import FRAMED, event_data, frame_lines
from inspector.sessions.recording import FileReading, Options, RawExchange, UnreadableError
from loop_core.errors import DecodeError
from loop_core.wire import decode_response, decoder, wire

_EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_PAGE = re.compile(rb'\s*\{\s*(?:"object"\s*:\s*"list"\s*,\s*)?"data"\s*:\s*(?=\[)')
"""Matches the beginning of a page of stored answers, as OpenAI lists them: what stands around their list."""
_ANY_ID = re.compile(rb'"id"\s*:\s*("[^"]*"|[^,}\s]+)')
beginning = first_lines
_ANY = "JSON, server-sent events, NDJSON, an Amazon event stream, a HAR, request/response pairs or a session file"


def sniff(head: bytes, path: str) -> int:
    """Recognises the body of a known wire format; other text is accepted only to report what is wrong with it."""
    text = first_look(head).text
    if text[:2] in (b"{\0", b"[\0"):
        return 0  # UTF-16 or UTF-32 without a mark; not `other_encoding`: a binary event stream may begin as one does
    if text[:1] not in (b"{", b"[") and not text.startswith(_EVENT_STARTS) and not traffic.is_event_stream(head):
        return 0
    # 5, so that some importer takes any JSON and can say what is wrong with it; every real format scores higher.
    return KNOWN_BODY if traffic.by_content(_framed(_without_page(head))) is not None else 5


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads the responses of the file, nearly always one."""
    stored = _without_page(data)
    data = _framed(stored)
    found = traffic.by_content(data)
    if options.api is not None and found is not None and found != options.api:
        raise UnreadableError(
            f"by its content this is {found}, not {options.api}: expected `--api {found}`, or none"
        )
    api = options.api or found
    if api is None:
        raise UnreadableError(_explain(stored, path))  # without the framing that was added
    error = None if traffic.is_event_stream(data) else traffic.utf8_error(data)
    try:
        bodies = _whole_answers(data, api) or _whole_streams(data, api) or [data]
    except DecodeError:  # no body of the API that the caller named
        bodies = [data]
    raws = [RawExchange(entry, api=api, body=body) for entry, body in enumerate(bodies)]
    return FileReading(raws, error=error, notices=[] if data is stored else [FRAMED])


def _framed(data: bytes) -> bytes:
    """The stream of server-sent events that a logger wrote as objects, in lines or in a list; else the same bytes."""
    look = look_at(data)
    seen = look.lines or (look.first if isinstance(look.first, list) else ())
    if not seen or any(event_data(value) is None for value in seen[:-1] or seen):  # the last one may be cut
        return data
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    pieces = filter(bytes.strip, text.split(b"\n")) if look.lines else elements(text)
    return b"".join(f"data: {frame}\n\n".encode() for frame in frame_lines(
        piece.decode("utf-8", "replace") for piece in pieces))


def _without_page(data: bytes) -> bytes:
    page = _PAGE.match(data)
    if page is None:
        return data
    answers = data[page.end() :]
    return answers if traffic.by_content(answers) is not None else data


def _whole_answers(data: bytes, api: str) -> list[bytes]:
    """The answers in a file of several JSON objects, or of a list of them; empty if one says that it is not whole. One
    that is damaged is an answer too, in which nothing can be read."""
    look = look_at(data)
    if look.text[:1] not in (b"{", b"["):
        return []
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    pieces = list(filter(bytes.strip, text.split(b"\n")) if look.lines else
                  elements(text if text.startswith(b"[") else b"[" + text))
    whole = _marked(pieces, api) if wire(api).whole_mark else len(pieces) > 1 and _ended(pieces, api)
    return pieces if whole and (len(pieces) > 1 or text.startswith(b"[")) else []


def _marked(pieces: list[bytes], api: str) -> bool:
    """Whether each complete piece has the mark of a whole answer."""
    name, value = wire(api).whole_mark or ("", "")
    marked = [object_in(piece).get(name) == value for piece in pieces]
    return any(marked) and all(known or not complete(piece) for known, piece in zip(marked, pieces, strict=True))


def _ended(pieces: list[bytes], api: str) -> bool:
    """Whether each complete piece has a stop word, and an id of its own where the format has ids. Older streams of
    Gemini have a stop word in each chunk, and one id or none."""
    ids: set[str | None] = set()
    named = any(row.fact == "id" for row in wire(api).reads)
    for piece in filter(complete, pieces):
        answer = decode_response(api, [piece])
        if not answer.saw_stop_reason or answer.streaming or (named and (answer.id is None or answer.id in ids)):
            return False
        ids.add(answer.id)
    return bool(ids)


def _whole_streams(data: bytes, api: str) -> list[bytes]:
    """The streams in a file of several, one behind the other; empty if they cannot be told apart."""
    text, streams, ids, start = data.removeprefix(b"\xef\xbb\xbf"), [], set(), 0
    in_lines = bool(look_at(data).lines)
    while start < len(text):
        ident, end = _first_stream(text, start, api, in_lines)
        streams.append(text[start:end])
        ids.add(ident or streams[-1])  # a stream that was sent twice is one answer
        start = end
    if not 1 < len(streams) == len(ids):
        streams = _streams_in_lines(data)
    # A gateway may write its costs or an error behind the end mark, with an id of their own.
    return streams if all(traffic.by_content(each) == api for each in streams) else []


def _first_stream(data: bytes, start: int, api: str, in_lines: bool) -> tuple[str | None, int]:
    """The id of the stream that begins at `start`, and its end: where an event follows that is no part of it."""
    reading, at = decoder(api), start
    while at < len(data):
        # What is read beyond the end is read again: never more than the stream has.
        end = (data.find(b"\n", at) + 1 or len(data)) if in_lines else 2 * at - start + 1024
        reading.feed(b"data: " + data[at:end] + b"\n\n" if in_lines else data[at:end])
        late = next((found.at for found in reading.findings if found.rule == "frame.after_end"), None)
        if late is not None and late.start:
            return reading.id, at if in_lines else start + late.start
        at = end
    return reading.id, len(data)


def _streams_in_lines(data: bytes) -> list[bytes]:
    """The streams whose events a logger wrote in lines without end marks, perhaps of parallel requests, by the id in
    each event; empty if they may be one. A line without an id belongs to the stream of the line before it."""
    if not look_at(data).lines or len(set(_ANY_ID.findall(data))) < 2:
        return []
    lines = [(line, object_in(line).get("id")) for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    current = next((known for _, known in lines if known), None)
    streams: dict[str, list[bytes]] = {}
    for line, known in filter(itemgetter(0), lines):
        current = known or current
        streams.setdefault(str(current), []).append(line)
    # A gateway may name each event anew, or its costs behind the end.
    several = len(streams) > 1 and all(len(events) > 1 for events in streams.values())
    return [b"\n".join(events) for events in streams.values()] if several else []


def _explain(data: bytes, path: str) -> str:
    parsed_head = look_at(data)
    if parsed_head.text[:1] not in (b"{", b"["):
        return "server-sent events of no API that is known: expected one of the known APIs, or `--api ID`"
    first, _, more = data.partition(b"\n")
    if len(parsed_head.lines) > 1 or (more.strip() and complete(first)):
        return refusal(parsed_head.text, path)
    try:
        return _explain_json(traffic.loads(data)) or refusal(parsed_head.text, path)
    except ValueError as why:
        return f"not valid JSON ({why}): expected {_ANY}"


def _explain_json(value: Any) -> str:
    """A description of a known kind of JSON that no API sends; empty for any other."""
    if isinstance(value, dict):
        if "error" in value or value.get("type") == "error":
            return "an error body, which several APIs share: expected `--api ID` to say whose it is"
        if any(key in value for key in ("messages", "contents", "input", "prompt")) and not (
                _answers(value) or _is_conversation(value)):
            return 'a request without its response: expected a response, or both as {"request": …, "response": …}'
    elif isinstance(value, list) and value and isinstance(value[0], dict) and "role" in value[0]:
        return "a list of messages, without any response as a provider sent it: expected response bodies"
    return ""


def _is_conversation(value: dict[str, Any]) -> bool:
    """Whether an object has messages with answers among them and names no model: no request."""
    messages = value.get("messages")
    return isinstance(messages, list) and "model" not in value and any(
        isinstance(message, dict) and message.get("role") == "assistant" for message in messages)


def _answers(value: dict[str, Any]) -> bool:
    return any(key in value for key in ("choices", "candidates", "completions", "output", "stop_reason", "stopReason",
                                        "done"))
