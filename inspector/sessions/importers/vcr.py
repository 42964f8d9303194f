"""YAML cassettes of vcrpy (`interactions`), of Ruby's VCR (`http_interactions`, in old versions a list), of Rust's
httpmock (a document with `when` and `then` for each interaction), and of WireMock (a document with `request` and
`response` for each, or `mappings`).

Reading creates only texts, lists and mappings: a tag such as `!ruby/struct:VCR::Request` creates no object, keys are
not merged, and repetition by anchors is bounded. Cassettes in JSON are read as pairs. If a body is stored as JSON
values (`parsed_body`), its JSON is written again, with a notice. Sources: vcrpy 9.4.2 `serializers/yamlserializer.py`,
VCR's `docs/configuration`, and cassettes of its versions 1 to 6, of pydantic-ai and of rig (httpmock).
"""

from __future__ import annotations

import binascii
import json
import re
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.importers.records import start_text
from inspector.sessions.importers.stored_bodies import WIREMOCK_FILE, wiremock_interaction, with_body_file
from inspector.sessions.intake import Room, too_large, unpack
from inspector.sessions.recording import FileReading, Options, RawExchange, Skipped, UnreadableError
from loop_core.values import TransportEnd

_LISTS = ("interactions", "http_interactions")
_BEGINS = re.compile(rb"(?:\A|\n)(?:http_)?interactions:[ \t]*\r?\n|\A---[ \t]*\r?\n- !ruby/struct:VCR::"
                     rb"|\A(?:---[ \t]*\r?\n)?when:[ \t]*\r?\n[ \t]+(?:path|method):"
                     rb"|(?:\A|\n)request:[ \t]*\r?\n[ \t]+(?:url\w*|method):|\Amappings:[ \t]*\r?\n[ \t]*-")
_SIDES = ("request", "response")
_NULL = frozenset({"", "~", "null"})
"""Unquoted scalars that mean null."""
_BINARY = ("tag:yaml.org,2002:binary", "!binary")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,300})(?P<rest>\.[0-9]+)?(?P<power>[eE][+-]?[0-9]{1,3})?")
"""Matches a number in JSON or in the spelling of YAML writers."""
_PARSED = "parsed_body"
_BODIES = frozenset({"body", "content", _PARSED})
_REWRITTEN = "bodies were stored as values (parsed_body): their JSON was written again, with other bytes"
_CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Matches the control characters that YAML does not allow unescaped."""
_DEPTH = 100
"""The largest depth of nested values, because later code processes them recursively."""


def sniff(head: bytes, path: str) -> int:
    """Recognises a list of interactions near the beginning, or after a header of vcrpy."""
    return 95 if head[:1] not in (b"{", b"[") and _BEGINS.search(head) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads all interactions, one per entry."""
    reading = FileReading()
    room = options.room or Room()
    visited_ids: set[int] = set()
    for entry, value in enumerate(_interactions(data, path, room, reading)):
        if not isinstance(value, dict) or not all(isinstance(value.get(name), dict) for name in _SIDES):
            reading.skipped.append(Skipped(entry, "an interaction without a request and a response"))
            continue
        with reading.skipping(entry, "an interaction"):
            if any(_PARSED in side for side in value.values()) and _REWRITTEN not in reading.notices:
                reading.notices.append(_REWRITTEN)
            reading.add(entry, _raw(entry, value, room, visited_ids))
    if reading.error is not None:
        reading.mark_cut()
    return reading


# -- YAML --------------------------------------------------------------------------------------------------------------


def _interactions(data: bytes, path: str, room: Room, reading: FileReading) -> list[Any]:
    """The interactions; in a damaged file those before the damage."""
    # PyYAML rejects the whole document for one control character, and bodies stored as text may contain some.
    text = _CONTROL.sub("\ufffd", data.decode("utf-8", "replace").removeprefix("\ufeff"))
    documents, line = parse_documents(text)
    value = documents[0] if documents else None
    if line is not None:
        reading.error = f"line {line}: no valid YAML, or cut; the part before it was read"
    for name in _LISTS:
        if isinstance(value, dict) and isinstance(value.get(name), list):
            return list(value[name])
    if isinstance(value, dict) and "when" in value:
        return [_of_httpmock(each) for each in documents if each is not None]
    if isinstance(value, dict) and (isinstance(value.get("mappings"), list) or value.keys() >= set(_SIDES)):
        mappings = [with_body_file(each, path, room) for each in value.get("mappings") or documents if each is not None]
        return [wiremock_interaction(each) for each in mappings]
    if isinstance(value, list):
        return value
    raise UnreadableError(reading.error or "a cassette without interactions: expected a list of them")


def _of_httpmock(value: Any) -> Any:
    """An interaction of httpmock with the members of the other cassettes. Its URL is a path, without a host."""
    if not isinstance(value, dict) or not all(isinstance(value.get(name), dict) for name in ("when", "then")):
        return value
    request, response = value["when"], value["then"]
    return {"request": {"uri": request.get("path"), "method": request.get("method"), **_headers_and_body(request)},
            "response": {"status": response.get("status"), **_headers_and_body(response)}}


def _headers_and_body(side: dict[str, Any]) -> dict[str, Any]:
    body = side.get("body")
    return {"headers": side.get("header"),
            "body": {"base64_string": body} if side.get("body_encoding") == "base64" else body}


def parse_documents(text: str) -> tuple[list[Any], int | None]:
    """The values of the documents up to the first YAML error, and the line of that error, from 1. They are built from
    parser events, because PyYAML's loaders recurse as deep as the file nests its values."""
    import yaml  # the import takes 20 ms

    document = _Document()
    event: Any
    try:
        for event in yaml.parse(text, getattr(yaml, "CLoader", yaml.Loader)):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                document.add(_scalar(event.value, event.tag, event.implicit[0]), event.anchor)
            elif kind is yaml.AliasEvent:
                document.add(document.anchors.get(event.anchor), None)
            elif kind in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
                document.open({} if kind is yaml.MappingStartEvent else [], event.anchor, event.start_mark.line)
            elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
                document.close()
    except (yaml.YAMLError, ValueError) as why:
        mark: Any = getattr(why, "problem_mark", None)
        return document.roots, (mark.line if mark is not None else document.line) + 1
    return document.roots, None


def _scalar(value: str, tag: str | None, plain: bool) -> Any:
    if tag in _BINARY:
        return binascii.a2b_base64(value)
    if plain and value in _NULL:
        return None
    return Plain(value) if plain else value


class Plain(str):
    """An unquoted scalar, which may be a number, true or false in a `parsed_body`."""

    __slots__ = ()


class _Document:
    """Builds the values of documents from parser events."""

    def __init__(self) -> None:
        self.roots: list[Any] = []
        self.anchors: dict[str, Any] = {}
        self.line = 0
        self._open: list[tuple[Any, list[str]]] = []
        """The open lists and mappings, each with the key whose value comes next, for a mapping."""

    def add(self, value: Any, anchor: str | None) -> None:
        if anchor is not None:
            self.anchors[anchor] = value
        if not self._open:
            self.roots.append(value)
            return
        holder, key = self._open[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif key:
            holder[key.pop()] = value
        else:
            key.append(value if isinstance(value, str) else "")

    def open(self, value: Any, anchor: str | None, line: int) -> None:
        self.line = line
        if len(self._open) >= _DEPTH:
            raise ValueError("nested too deep")
        self.add(value, anchor)
        self._open.append((value, []))

    def close(self) -> None:
        self._open.pop()


# -- Interactions ------------------------------------------------------------------------------------------------------


def _raw(entry: int, value: Any, room: Room, visited: set[int]) -> RawExchange | str:
    request, response = value["request"], value["response"]
    if WIREMOCK_FILE in response and "base64_string" not in (response.get("body") or ()):
        return f"its answer is in another file ({WIREMOCK_FILE})"
    # Aliases may repeat a value in it without end, and its text has every repetition.
    if not room.take(sum(_size(each, {}) for side in (request, response) for name, each in side.items()
                         if name not in _BODIES)):
        return too_large()
    raw = RawExchange(entry, str(request.get("uri") or request.get("url") or ""))
    raw.method = str(request.get("method") or "POST").lstrip(":").upper()  # Ruby's symbols: `:post`
    raw.started = start_text(value)
    raw.request_headers = traffic.headers(request.get("headers"))
    sent = _stored_body(request, "body", raw.request_headers, room, visited)
    raw.request_text = sent.decode("utf-8", "replace") if isinstance(sent, bytes) else None
    status = response.get("status")
    code = status.get("code") if isinstance(status, dict) else response.get("code") or status  # go-vcr: `200 OK`, 200
    raw.status = traffic.written_status(response.get("status_code") or code)
    raw.headers = traffic.headers(response.get("headers"))
    body = _stored_body(response, "body" if "body" in response else "content", raw.headers, room, visited)
    if isinstance(body, str):
        return raw.after_failed_unpack(body)
    raw.body = body or b""
    raw.recorded = bool(raw.body) or traffic.says_enough(raw.status)
    if raw.status is None and raw.body:
        raw.end = TransportEnd.CUT  # keys are sorted, so after a cut after the body the status is missing
    return raw


def _stored_body(
    side: dict[str, Any], name: str, headers: list[tuple[str, str]], room: Room, visited: set[int]
) -> bytes | str | None:
    """The body of a request or a response, decompressed, or written again from its values."""
    if name in side or _PARSED not in side:
        return _body(side.get(name), headers, room, visited)
    value = side[_PARSED]
    if not room.take(_size(value, {})):
        return too_large()
    return json.dumps(_with_types(value), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _size(value: Any, sizes: dict[int, int]) -> int:
    """The approximate length of a value's JSON, including each repetition by an anchor."""
    if not isinstance(value, (dict, list)):
        return len(value) + 8 if value is not None else 8
    if id(value) not in sizes:
        parts = value.values() if isinstance(value, dict) else value
        names = sum(map(len, value)) if isinstance(value, dict) else 0
        sizes[id(value)] = 8 + names + sum(_size(part, sizes) for part in parts)
    return sizes[id(value)]


def _with_types(value: Any) -> Any:
    """A value with JSON's types: unquoted scalars may be numbers, true or false."""
    if isinstance(value, dict):
        return {key: _with_types(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_types(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(value, Plain):
        return value
    number = _NUMBER.fullmatch(value)
    if number is None:
        return {"true": True, "false": False}.get(value, str(value))
    return float(value) if number["rest"] or number["power"] else int(value)


def _body(value: Any, headers: list[tuple[str, str]], room: Room, visited: set[int]) -> bytes | str | None:
    """A decompressed body; None if there is none; a text with the reason if it cannot be decompressed."""
    # Ruby's VCR wraps a body: {"encoding": …, "string": …}, or `base64_string`.
    if isinstance(value, dict):
        packed = value.get("base64_string")
        value = binascii.a2b_base64(packed) if isinstance(packed, str) else value.get("string")
    if isinstance(value, (dict, list)) or value is None or value in _NULL:
        return None
    if id(value) in visited and not room.take(len(value)):  # an anchor repeats it
        return too_large()
    visited.add(id(value))
    data = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
    return unpack(data, headers, room)
