"""Flows that mitmproxy saved (`.mitm`), read without mitmproxy: HTTP exchanges and the messages of WebSockets.

A file is a sequence of tnetstrings: a length, `:`, that many bytes, and a letter for their type. A length can never
lead out of the file, because a value must be within the one that contains it, and nesting is bounded. Sources:
mitmproxy 11.0.2 `io/tnetstring.py`, `io/compat.py` (versions below 4 are lists), and files of versions 0.18 to 21.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.importers.har import iso_time, since, socket_exchanges
from inspector.sessions.importers.records import as_text
from inspector.sessions.intake import Room, unpack
from inspector.sessions.recording import FileReading, Headers, Options, RawExchange, Skipped, UnreadableError
from loop_core.values import TransportEnd

_FIRST = re.compile(
    rb"\d{2,}:\d{1,3}:(?:websocket|response|request|version|type|id|error|intercepted|is_replay|"
    rb"marked|metadata|comment|backup|timestamp_created|client_conn|server_conn)[;,]"
)
"""Matches the length of a flow and the name of its first member."""
_DEPTH = 40
"""The largest depth of nested values; a real flow has five levels."""
_DIGITS = 12
_MOST_NAME = 200
"""The length of a name. One that is a map, within another one, would double its escapes with each level."""


class _CutError(ValueError):
    """The file ends within a value."""


def sniff(head: bytes, path: str) -> int:
    """Recognises a flow at the beginning of the file."""
    return 100 if _FIRST.match(head) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads all flows, in the file's order."""
    reading = FileReading()
    shaken: dict[str, dict[str, Any]] = {}
    try:
        for number, (start, stop) in enumerate(_flows(data)):
            with reading.skipping(number, "a flow"):
                _take(reading, number, _value(data, start, stop, 0)[0], shaken, options.room)
    except ValueError as why:
        what = "cut inside" if isinstance(why, _CutError) else "damaged before"
        count = len(reading.raws) + len(reading.skipped)
        reading.notices.append(f"the file is {what} a flow ({why}); the part before it was read")
        reading.mark_cut()
        if not count:
            raise UnreadableError(f"mitmproxy flows, {what} the first one ({why}): expected a complete flow") from why
    return reading


# -- tnetstrings -------------------------------------------------------------------------------------------------------


def _flows(data: bytes) -> Iterator[tuple[int, int]]:
    """The start and end offsets of each value in the file. Raises `_CutError` if the file ends within a value, and
    `ValueError` if there is no value."""
    at = 0
    while at < len(data):
        stop = _bounds(data, at, len(data))[1] + 1
        yield at, stop
        at = stop


def _bounds(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The offsets of the first byte of a value and of its type letter."""
    colon = data.find(b":", at, min(end, at + _DIGITS + 1))
    digits = data[at : colon if colon >= 0 else min(end, at + _DIGITS)]
    if not digits.isdigit() or (colon < 0 and at + len(digits) < end):
        raise ValueError(f"byte {at}: expected a length")
    stop = colon + 1 + int(digits)
    # `>=`: the type letter must be within the bounds as well.
    if colon < 0 or stop >= end:
        raise _CutError(f"from byte {at}")
    return colon + 1, stop


def _value(data: bytes, at: int, end: int, depth: int) -> tuple[Any, int]:
    """The value at an offset, and the offset of the next one."""
    if depth > _DEPTH:
        raise ValueError(f"byte {at}: values nested more than {_DEPTH} deep")
    start, stop = _bounds(data, at, end)
    letter = data[stop : stop + 1]
    if letter in (b"]", b"}"):
        found: list[Any] = []
        while start < stop:
            each, start = _value(data, start, stop, depth + 1)
            found.append(each)
        if letter == b"]":
            return found, stop + 1
        return {as_text(name)[:_MOST_NAME]: each for name, each in zip(found[::2], found[1::2], strict=True)}, stop + 1
    content = data[start:stop]
    if letter == b",":
        return content, stop + 1
    if letter == b";":
        return content.decode("utf-8", "replace"), stop + 1
    if letter == b"~":
        return None, stop + 1
    if letter == b"!":
        return content == b"true", stop + 1
    if letter in (b"#", b"^") and len(content) < 40:
        return (int if letter == b"#" else float)(content), stop + 1
    raise ValueError(f"byte {stop}: not a type of value")


# -- Flows -------------------------------------------------------------------------------------------------------------


def _take(
    reading: FileReading, number: int, flow: Any, shaken: dict[str, dict[str, Any]], room: Room | None
) -> None:
    """Adds the exchanges of a flow. `shaken` has the earlier flows of WebSocket handshakes, by id."""
    kind = as_text(flow.get("type", "http"))
    socket = flow.get("websocket")
    about = flow.get("metadata") or {}
    # Before version 10 the HTTP flow of the handshake had this mark, and a second flow held the messages.
    if about.get("websocket"):
        shaken[as_text(flow.get("id"))] = flow
        if not isinstance(socket, dict):
            reading.skipped.append(Skipped(number, "the beginning of a WebSocket, whose messages are another flow"))
            return
    if kind == "websocket":  # before version 10: a flow of its own
        socket, flow = flow, shaken.get(as_text(about.get("websocket_handshake")), {})
    if not isinstance(flow.get("request"), dict):
        reading.skipped.append(Skipped(number, f"a {kind[:20]} flow: no HTTP exchange"))
        return
    raw = _raw(number, flow, room)
    if isinstance(raw, RawExchange) and isinstance(socket, dict):
        messages = [_message(each) for each in socket.get("messages") or ()]
        raws, skipped = socket_exchanges(raw, messages, cut=False)
        reading.raws.extend(raws)
        reading.skipped.extend(skipped)
    else:
        reading.add(number, raw)


def _message(message: list[Any]) -> dict[str, Any]:
    """A message of a WebSocket in the form of HAR files."""
    # a message is the list type, from_client, content, timestamp
    return {"type": "send" if message[1] else "receive", "data": as_text(message[2]), "opcode": 1, "time": message[3]}


def _raw(number: int, flow: dict[str, Any], room: Room | None) -> RawExchange | str:
    request, response = flow["request"], flow.get("response")
    request_headers = _headers(request.get("headers"))
    sent = _body(request.get("content"), request_headers, room)
    began = traffic.number(request.get("timestamp_start"))
    raw = RawExchange(
        number, _url(request, request_headers), as_text(request.get("method", "POST")).upper(), request_headers,
        sent.decode("utf-8", "replace") if isinstance(sent, bytes) and sent else None,
        started=iso_time(began),
    )
    failure = flow.get("error")
    if isinstance(failure, dict):
        raw.end, raw.problem = TransportEnd.ABORTED, as_text(failure.get("msg", ""))[:200]
    if not isinstance(response, dict):
        raw.recorded = isinstance(failure, dict)
        return raw
    # `code` before version 0.14 (`convert_013_014`)
    raw.status = traffic.http_status(response.get("status_code", response.get("code")))
    raw.headers = _headers(response.get("headers"))
    raw.first_byte_ms = since(began, traffic.number(response.get("timestamp_start")))
    raw.duration_ms = since(began, traffic.number(response.get("timestamp_end")))
    body = _body(response.get("content"), raw.headers, room)
    if isinstance(body, str):
        return raw.after_failed_unpack(body)
    raw.body = body or b""
    # With `stream_large_bodies`, mitmproxy passes large bodies through, and stores null.
    raw.recorded = bool(raw.body) or traffic.says_enough(raw.status) or (body is not None and isinstance(failure, dict))
    return raw


def _url(request: dict[str, Any], headers: Headers) -> str:
    """The URL. With a transparent proxy, `host` is an IP address, so the name is taken from the header."""
    scheme = as_text(request.get("scheme") or "https")
    name = next((value for key, value in headers if key.lower() == "host"), "")
    port = request.get("port")
    if not name:
        usual = port in (80, 443) or type(port) is not int
        name = as_text(request.get("host") or "") + ("" if usual else f":{port}")
    path = as_text(request.get("path"))
    return f"{scheme}://{name}{'' if path.startswith('/') else '/'}{path}"  # a damaged path must not become the host


def _body(content: Any, headers: Headers, room: Room | None) -> bytes | str | None:
    """A decompressed body; None if the file has none; a text with the reason if it cannot be decompressed."""
    if not isinstance(content, (bytes, str)):
        return None
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    return unpack(data, headers, room)


def _headers(value: Any) -> Headers:
    return [(as_text(pair[0]), as_text(pair[1])) for pair in value or () if len(pair) == 2]


