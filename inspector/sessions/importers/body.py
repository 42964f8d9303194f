"""A response body in a file of its own: JSON, server-sent events, NDJSON, a JSON array, a binary event stream.

The API is found by the content, or named by the caller. Several complete answers, one after the other, are several
responses if each has its end. This module also explains what a file is if it is no response body.
"""

from __future__ import annotations

import re
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.file_format import KNOWN_BODY
from inspector.sessions.importers.known_formats import refusal
from inspector.sessions.importers.records import complete, elements, first_lines, first_look, look_at, object_in
from inspector.sessions.importers.stored_bodies import FRAMED, event_data, frame_lines
from inspector.sessions.recording import FileReading, Options, RawExchange, UnreadableError
from loop_core.errors import DecodeError
from loop_core.wire import decode_response, decoder, wire
from loop_core.wire.base import Decoder

_EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_PAGE = re.compile(rb'\s*\{\s*(?:"object"\s*:\s*"list"\s*,\s*)?"data"\s*:\s*(?=\[)')
"""Matches the beginning of a page of stored answers of OpenAI, up to the list."""
_NEXT_EVENT = b"\n\ndata: "
_EVENT_ENDS, _EVENT_DATA = re.compile(rb"\r?\n\r?\n"), re.compile(rb"(?s)\A(?:(?:event|id|retry):[^\n]*\n)*data: ?")
_ANY_ID = re.compile(rb'"id"\s*:\s*("[^"]*"|[^,}\s]+)')
beginning = first_lines
_ANY = "JSON, server-sent events, NDJSON, an Amazon event stream, a HAR, request/response pairs or a session file"


def sniff(head: bytes, path: str) -> int:
    """Recognises the body of a known wire format; other JSON or events are accepted only to report what is wrong."""
    text = first_look(head).text
    if text[:2] in (b"{\0", b"[\0"):
        return 0  # UTF-16 or UTF-32 without a mark; not `other_encoding`: a binary event stream may begin as one does
    if text[:1] not in (b"{", b"[") and not text.startswith(_EVENT_STARTS) and not traffic.is_event_stream(head):
        return 0
    # 5, so that this importer takes any remaining JSON and reports what is wrong with it; all formats score higher.
    return KNOWN_BODY if traffic.by_content(_frame(_without_page(head))) is not None else 5


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads the responses of the file, nearly always one."""
    stored = _without_page(data)
    data = _frame(stored)
    found = traffic.by_content(data)
    if options.api is not None and found is not None and found != options.api:
        raise UnreadableError(
            f"by its content this is {found}, not {options.api}: expected `--api {found}`, or none"
        )
    api = options.api or found
    if api is None:
        raise UnreadableError(_explain(stored, path))  # `stored`: without the added framing
    error = None if traffic.is_event_stream(data) else traffic.utf8_error(data)
    try:
        bodies = _whole_answers(data, api) or _whole_streams(data, api) or [data]
    except DecodeError:  # not a body of the API that the caller named
        bodies = [data]
    raws = [RawExchange(entry, api=api, body=body) for entry, body in enumerate(bodies)]
    return FileReading(raws, error=error, notices=[] if data is stored else [FRAMED])


def _frame(data: bytes) -> bytes:
    """The server-sent events of a stream, or the lines of whole answers, that a logger wrote within objects, in lines
    or in a list; any other bytes unchanged."""
    look = look_at(data)
    seen = look.lines or (look.first if isinstance(look.first, list) else ())
    if not seen or any(event_data(value) is None for value in seen[:-1] or seen):  # the last one may be cut
        return data
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    pieces = filter(bytes.strip, text.split(b"\n")) if look.lines else elements(text)
    frames = [frame.encode("utf-8", "replace") for frame in frame_lines(
        piece.decode("utf-8", "replace") for piece in pieces)]
    lines = b"\n".join(frames)
    api = traffic.by_content(lines)
    if api is not None and _are_whole(frames, api):
        return lines
    if api is not None and any(_has_mark(frame, api) for frame in frames):
        return data  # a log with other things than whole answers
    return b"".join(b"data: " + frame + b"\n\n" for frame in frames)


def _without_page(data: bytes) -> bytes:
    page = _PAGE.match(data)
    if page is None:
        return data
    answers = data[page.end() :]
    return answers if traffic.by_content(answers) is not None else data


def _whole_answers(data: bytes, api: str) -> list[bytes]:
    """The answers in a file of several JSON objects, or of a list of them; empty if one is not a whole answer. A
    damaged one is also an answer, an unreadable one."""
    look = look_at(data)
    if look.text[:1] not in (b"{", b"["):
        return []
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    pieces = list(filter(bytes.strip, text.split(b"\n")) if look.lines else
                  elements(text if text.startswith(b"[") else b"[" + text))
    return pieces if (len(pieces) > 1 or text.startswith(b"[")) and _are_whole(pieces, api) else []


def _are_whole(pieces: list[bytes], api: str) -> bool:
    """Whether the pieces are whole answers, by the mark of their format; without one, by their ends if there are
    several."""
    return _all_have_mark(pieces, api) if wire(api).whole_mark else len(pieces) > 1 and _all_have_end(pieces, api)


def _all_have_mark(pieces: list[bytes], api: str) -> bool:
    """Whether each complete piece has the mark of a whole answer."""
    marked = [_has_mark(piece, api) for piece in pieces]
    return any(marked) and all(known or not complete(piece) for known, piece in zip(marked, pieces, strict=True))


def _has_mark(piece: bytes, api: str) -> bool:
    mark = wire(api).whole_mark
    return mark is not None and object_in(piece).get(mark[0]) == mark[1]


def _all_have_end(pieces: list[bytes], api: str) -> bool:
    """Whether each complete piece has a stop word, and an id of its own if the format has ids. Older streams of Gemini
    have a stop word in each chunk, and one id or none."""
    ids: set[str | None] = set()
    named = any(row.fact == "id" for row in wire(api).reads)
    for piece in filter(complete, pieces):
        answer = decode_response(api, [piece])
        if not answer.saw_stop_reason or answer.streaming or (named and (answer.id is None or answer.id in ids)):
            return False
        ids.add(answer.id)
    return bool(ids)


def _whole_streams(data: bytes, api: str) -> list[bytes]:
    """The streams in a file of several consecutive ones; empty if they cannot be separated."""
    text, start = data.removeprefix(b"\xef\xbb\xbf"), 0
    in_lines = bool(look_at(data).lines)
    if in_lines:  # each line as an event, which the decoder reads at once
        text = b"data: " + text.replace(b"\n", _NEXT_EVENT)
    streams: list[bytes] = []
    readings: list[Decoder] = []
    while start < len(text):
        reading, end = _first_stream(text, start, api)
        streams.append(text[start:end])
        readings.append(reading)
        start = end
    if in_lines:
        streams = [each.removeprefix(b"data: ").replace(_NEXT_EVENT, b"\n") for each in streams]
    # A stream that was sent twice is one answer. Events in a wrong order have no id where others have one.
    several = len(streams) > 1
    ids = {ident for each in readings if several and (ident := each.close().id)}
    if not several or len(streams) != len(ids or {each.strip() for each in streams}):
        streams = _streams_by_id(data, api, in_lines)
    # A gateway may write its costs or an error after the end mark, with another id.
    return streams if all(traffic.by_content(each) == api for each in streams) else []


def _first_stream(data: bytes, start: int, api: str) -> tuple[Decoder, int]:
    """The decoder of the stream that begins at `start`, and the offset of the first event that is not part of it."""
    reading, at = decoder(api), start
    while at < len(data):
        end = 2 * at - start + 1024  # bytes beyond the end are read again: at most as many as the stream has
        reading.feed(data[at:end])
        late = next((found.at for found in reading.findings if found.rule == "frame.after_end"), None)
        if late is not None and late.start:
            return reading, start + late.start
        at = end
    return reading, len(data)


def _streams_by_id(data: bytes, api: str, in_lines: bool) -> list[bytes]:
    """The streams without end marks, perhaps of parallel requests, by the id in each event; empty if they may be one.
    An event without an id belongs to the stream of the previous event. Outside of lines, a stream without a stop word
    may go on under another id: a gateway asked another provider for the rest."""
    if len(set(_ANY_ID.findall(data))) < 2:
        return []
    text = data.removeprefix(b"\xef\xbb\xbf")
    events = text.split(b"\n") if in_lines else _EVENT_ENDS.split(text)
    known = [object_in(_EVENT_DATA.sub(b"", event)).get("id") for event in events]
    current = next(filter(None, known), None)
    streams: dict[str, list[bytes]] = {}
    for event, ident in zip(events, known, strict=True):
        current = ident or current
        if event.strip():
            streams.setdefault(str(current), []).append(event)
    # A gateway may give each event, or its costs after the end, another id.
    if len(streams) < 2 or any(len(each) < 2 for each in streams.values()):
        return []
    found = [b"\n".join(each) if in_lines else b"\n\n".join([*each, b""]) for each in streams.values()]
    return found if in_lines or all(decode_response(api, each).saw_stop_reason for each in found) else []


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
    """A description of JSON of a known kind that no API sends; empty for any other."""
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
    """Whether an object is not a request, by its messages: they have no roles, or there are answers among them and no
    model beside them."""
    messages = value.get("messages")
    roles = [message.get("role") if isinstance(message, dict) else None for message in messages] if isinstance(
        messages, list) else []
    return bool(roles) and (("assistant" in roles and "model" not in value) or not any(roles))


def _answers(value: dict[str, Any]) -> bool:
    return any(key in value for key in ("choices", "candidates", "completions", "output", "stop_reason", "stopReason",
                                        "done"))
