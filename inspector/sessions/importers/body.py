"""A response body in a file of its own: JSON, server-sent events, NDJSON, a JSON array, a binary event stream.

The API is found by the content, or named by the caller. Several whole answers behind one another are several responses,
if each says that it is whole. This module also explains what a file is if it is no response body.
"""

from __future__ import annotations

import re
from itertools import pairwise
from operator import itemgetter
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.file_format import KNOWN_BODY
from inspector.sessions.importers.known_formats import refusal
from inspector.sessions.importers.records import (
    FRAMED,
    complete,
    elements,
    event_data,
    first_look,
    frame_lines,
    look_at,
    object_in,
)
from inspector.sessions.recording import FileReading, Options, RawExchange, UnreadableError
from loop_core.wire import wire

_EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_PAGE = re.compile(rb'\s*\{\s*(?:"object"\s*:\s*"list"\s*,\s*)?"data"\s*:\s*(?=\[)')
"""Matches the beginning of a page of stored answers, as OpenAI lists them: what stands around their list."""
_ID = re.compile(rb'"id": ?"([^"]+)"')
_ANY_ID = re.compile(rb'"id"\s*:\s*("[^"]*"|[^,}\s]+)')
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
    bodies = _whole_answers(data, api) or _whole_streams(data, api) or [data]
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
    mark, look = wire(api).whole_mark, look_at(data)
    if mark is None or look.text[:1] not in (b"{", b"["):
        return []
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    pieces = list(filter(bytes.strip, text.split(b"\n")) if look.lines else
                  elements(text if text.startswith(b"[") else b"[" + text))
    marked = [object_in(piece).get(mark[0]) == mark[1] for piece in pieces]
    whole = any(marked) and all(known or not complete(piece) for known, piece in zip(marked, pieces, strict=True))
    return pieces if whole and (len(pieces) > 1 or text.startswith(b"[")) else []


def _whole_streams(data: bytes, api: str) -> list[bytes]:
    """The streams in a file of several, one behind the other; empty if they cannot be told apart."""
    end = wire(api).stream_end
    ends = [0, *(match.end() for match in re.finditer(end, data, re.MULTILINE)), len(data)] if end else []
    pieces = [data[start:end] for start, end in pairwise(ends)]
    ids = [match[1] for piece in pieces if (match := _ID.search(piece))]
    if not 1 < len(pieces) == len(set(ids)):
        pieces = _streams_in_lines(data)
    # A gateway may write its costs or an error behind the end mark, with an id of their own.
    return pieces if all(traffic.by_content(piece) == api for piece in pieces) else []


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
