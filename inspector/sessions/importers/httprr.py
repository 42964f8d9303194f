"""Traces of Go's `httprr` (record and replay of HTTP), which langchaingo, the ADK for Go and others use as test data.

A file is the line `httprr trace v1` and then, for each exchange, a line with two lengths, and as many bytes of the
request and of the response, both in the form of HTTP/1.1. It has no times. Source: langchaingo
`internal/httprr/rr.go`.
"""

from __future__ import annotations

import re

from inspector.sessions import traffic
from inspector.sessions.intake import Room, unpack
from inspector.sessions.recording import FileReading, Headers, Options, RawExchange, UnreadableError
from loop_core.values import TransportEnd

_BEGIN = re.compile(rb"httprr trace v1\r?\n")
_LENGTHS = re.compile(rb"([0-9]{1,12}) ([0-9]{1,12})\n")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,12})[ \t]*(?:;[^\r\n]*)?\r\n")
"""Matches the length of a chunk and its extensions (RFC 9112, 7.1)."""
_OTHER_PORT = re.compile(r":(?!443$)[0-9]+$")


def sniff(head: bytes, path: str) -> int:
    """Recognises the first line."""
    return 100 if _BEGIN.match(head) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads all exchanges; in a damaged file those before the damage, and of a cut answer the part before the cut."""
    begin = _BEGIN.match(data)
    if begin is None:
        raise UnreadableError("expected a first line `httprr trace v1`")
    reading, room, at, entry = FileReading(), options.room or Room(), begin.end(), 0
    while at < len(data):
        lengths = _LENGTHS.match(data, at)
        if lengths is None:
            reading.error = f"byte {at}: expected the lengths of a request and a response; the part before was read"
            break
        start = lengths.end() + int(lengths[1])
        end = start + int(lengths[2])
        if start >= len(data):
            reading.error = f"byte {at}: the file is cut inside a request; the part before was read"
            break
        if end > len(data):
            reading.error = f"byte {at}: the file is cut inside a response; the part before was read"
        raw = exchange_of(entry, data[lengths.end() : start], data[start:end], room)
        if isinstance(raw, RawExchange) and end > len(data):
            raw.end = TransportEnd.CUT
        reading.add(entry, raw)
        at, entry = end, entry + 1
    if reading.error is not None:
        reading.mark_cut()
    return reading


def exchange_of(entry: int, sent: bytes, received: bytes, room: Room) -> RawExchange | str:
    """An exchange of two HTTP messages, or the reason to skip it. An empty message was not recorded."""
    request_line, request_headers, content = _message(sent)
    status_line, headers, body = _message(received)
    method, target, _ = (*request_line.split(" "), "", "")[:3]
    host = traffic.header(request_headers, "host")
    # A message has no scheme. If it is wrong, because TLS is on another port, only a live run is affected.
    scheme = "http" if _OTHER_PORT.search(host) else "https"
    request = unpack(content, request_headers, room)
    raw = RawExchange(entry, f"{scheme}://{host}{target}" if target.startswith("/") else target, method or "POST",
                      request_headers)
    raw.request_text = request.decode("utf-8", "replace") if isinstance(request, bytes) and request else None
    raw.status, raw.headers = traffic.written_status((*status_line.split(" "), "")[1]), headers
    unpacked = unpack(body, headers, room)
    if isinstance(unpacked, str):
        return raw.after_failed_unpack(unpacked)
    raw.body = unpacked
    return raw


def _message(data: bytes) -> tuple[str, Headers, bytes]:
    """The first line of an HTTP message, its headers, and its body without the marks of chunks."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("utf-8", "replace").split("\r\n")
    headers = [(name, value.strip()) for name, colon, value in (line.partition(":") for line in lines) if colon]
    return first, headers, _join_chunks(body) if traffic.header(headers, "transfer-encoding") == "chunked" else body


def _join_chunks(body: bytes) -> bytes:
    """The joined chunks of a body; in a damaged body those before the damage. A body without chunks is returned
    unchanged, because the program that wrote it has joined them."""
    if _CHUNK.match(body) is None:
        return body
    found, at = [], 0
    while (size := _CHUNK.match(body, at)) is not None and (count := int(size[1], 16)):
        found.append(body[size.end() : size.end() + count])
        at = size.end() + count + 2
    return b"".join(found)
