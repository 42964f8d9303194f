"""Recordings of claude-tap: its database `traces.sqlite3`, and its exports as lines or as one object.

claude-tap stores long repeated values once. They are restored only where a record states that a value was removed,
because a message may contain any text that looks like a reference. The results are pairs of request and response.
Answers that claude-tap itself made are reported and skipped. Source: claude-tap 0.1.146 and 06c9593 `trace_store.py`,
`compact_trace.py`, `proxy.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from inspector.sessions.importers import SQLITE, pairs
from inspector.sessions.importers.database import snapshot
from inspector.sessions.importers.records import elements, first_look
from inspector.sessions.intake import Room
from inspector.sessions.recording import ODD, FileReading, Options, Skipped, UnreadableError, unusable
from inspector.sessions.traffic import loads
from inspector.sessions.transcripts.member_values import object_of, objects_of

BUNDLE = "__claude_tap_compact_trace__"
RECORD = "__claude_tap_compact_record__"
REFERENCE = "__claude_tap_blob_ref__"
MADE_UP = "_claude_tap_capture"
"""The end of the id of an answer that claude-tap made."""
WITHOUT_ID = (
    ("candidates", [{"content": {"role": "model", "parts": [{"text": "captured"}]}, "finishReason": "STOP",
                     "index": 0}]),
    ("output", {"message": {"role": "assistant", "content": [{"text": "captured"}]}}),
)
"""The member of such an answer in a format without ids (Gemini, Bedrock Converse); its token counts are all 0."""
OF_CURSOR = "cursor-transcript"
"""The `transport` of a record that was made from a transcript: its body is not a provider's."""
WHOLE = ("instructions", "tools")
"""Members of a body that are stored separately as a whole; of those in `LISTS`, each element is stored separately."""
LISTS = ("input", "messages")
_LINE = frozenset({"turn", "duration_ms", "request", "response"})
IDS = ("request_id", "id")
"""The names of a record's id; the second is that of older releases."""

Blobs = Callable[[str], Any]


def sniff(head: bytes, path: str) -> int:
    """Recognises the mark of an export, or a line with all members of a record."""
    first = first_look(head).first
    if not isinstance(first, dict):
        return 0
    line = set(first) >= _LINE and any(name in first for name in IDS)
    return 100 if BUNDLE in first or line or (RECORD in first and "record" in first) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads all exchanges, one per entry."""
    room = options.room or Room()
    lines: list[bytes] = []
    passed: list[Skipped] = []
    places: list[int] = []
    number = 0
    for payload, blobs in _of_database(path) if data.startswith(SQLITE) else _of_export(data):
        try:
            exchanges = _exchanges(_restore(loads(payload), blobs, room))
        except ODD as why:
            passed.append(Skipped(number, f"a record that {unusable(why)}"))
            number += 1
            continue
        for record in exchanges:
            if (why_not := _no_answer(record)) is not None:
                passed.append(Skipped(number, why_not))
            else:
                places.append(number)
                lines.append(json.dumps(record).encode())
            number += 1
    if not lines:
        if not passed:
            raise UnreadableError("a recording of claude-tap without records: expected at least one")
        return FileReading(skipped=passed)
    try:
        reading = pairs.read(b"\n".join([*lines, b""]), path, options)
    except UnreadableError as why:
        return FileReading(skipped=passed, notices=[str(why)])
    for raw in reading.raws:
        raw.entry = places[raw.entry]
    reading.skipped = passed + [Skipped(places[each.entry], each.why) for each in reading.skipped]
    return reading


def _no_answer(record: dict[str, Any]) -> str | None:
    """The reason why no model answered in an exchange; None if a model did."""
    body = object_of(record["response"].get("body"))
    counts = {**object_of(body.get("usage")), **object_of(body.get("usageMetadata"))}
    without_id = any(body.get(name) == member for name, member in WITHOUT_ID) and not any(counts.values())
    if str(body.get("id", "")).endswith(MADE_UP) or without_id:
        return "an answer that claude-tap made up: no provider gave it"
    if record.get("transport") == OF_CURSOR:
        return "a step of a Cursor transcript, which claude-tap copied: open the transcript itself"
    if object_of(object_of(record.get("request")).get("body")).get("generate") is False:
        return "a request that fills a cache: nothing was to be generated"
    return None


def _exchanges(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The exchanges of a record. The body of a stream is made from its events, as claude-tap does."""
    response, request = object_of(record.get("response")), object_of(record.get("request"))
    record["response"] = response
    if responses := _of_socket(objects_of(response.get("ws_events"))):
        sent = [event for event in objects_of(request.get("ws_events")) if event.get("type") == "response.create"]
        if len(sent) != len(responses):  # then the record's body is the last request
            sent = [*({} for _ in responses[1:]), object_of(request.get("body"))]
        # The recorded duration is that of the whole socket.
        once = {"duration_ms": record.get("duration_ms") if len(sent) == 1 else None}
        return [{**record, **once, "request": {**request, "method": "POST", "body": body},
                 "response": {**response, "status": 200, "body": _stream(events)}}  # 101 is the socket's status
                for body, events in zip(sent, responses, strict=True)]
    events = response.get("sse_events")
    if isinstance(events, list) and events:
        record["response"] = {**response, "body": _stream(events)}
    return [record]


def _of_socket(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The events of each response on a WebSocket; other events belong to no response."""
    responses: list[list[dict[str, Any]]] = []
    for event in events:
        kind = str(event.get("type"))
        if kind == "response.created" or (not responses and kind.startswith(("response.", "error"))):
            responses.append([event])
        elif kind.startswith(("response.", "error")):
            responses[-1].append(event)
    return responses


def _stream(events: list[Any]) -> str:
    text = []
    for event in events:
        data = object_of(event).get("data", event)
        name = object_of(event).get("event")
        # a line break in a name would begin another field
        text.append((f"event: {name}\n" if isinstance(name, str) and name.isprintable() else "")
                    + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
    return "".join(text)


# -- Records and the values that were removed from them ----------------------------------------------------------------


def _of_database(path: str) -> Iterator[tuple[bytes, Blobs]]:
    with snapshot(path) as connection:
        def blob(session: str, key: str) -> Any:
            row = connection.execute(
                "SELECT payload_json FROM record_blobs WHERE session_id = ? AND hash = ?", (session, key)).fetchone()
            return loads(row[0].encode("utf-8", "replace"))

        for session, payload in connection.execute(
            "SELECT session_id, payload_json FROM records ORDER BY session_id, record_index"
        ).fetchall():
            yield str(payload).encode("utf-8", "replace"), partial(blob, session)


def _of_export(data: bytes) -> Iterator[tuple[bytes, Blobs]]:
    first: Any = None
    with suppress(ValueError):
        first = loads(data)
    blobs = object_of(object_of(first).get("blobs"))
    bundle = isinstance(first, dict) and BUNDLE in first
    cut = first is None and BUNDLE.encode() in data[:4096]
    for piece in elements(data, "records") if bundle or cut else filter(bytes.strip, data.split(b"\n")):
        yield piece, lambda key: blobs[key]["payload"]


def _restore(payload: Any, blobs: Blobs, room: Room) -> dict[str, Any]:
    """A record with the removed values restored. Raises `ValueError` if it is not a record, or is too large, and
    `LookupError` if a removed value is not in the file."""
    mark = object_of(payload).get(RECORD)
    record = payload.get("record") if isinstance(mark, dict) else payload
    if not isinstance(record, dict):
        raise ValueError("no record")
    if isinstance(mark, dict):
        paths = [str(object_of(ref).get("path")).split("/")[1:] for ref in mark.get("refs") or ()]
        for path in paths or list(_paths(record)):
            # RFC 6901 section 4
            _put_back(record, [step.replace("~1", "/").replace("~0", "~") for step in path], blobs, room)
    return record


def _paths(record: dict[str, Any]) -> Iterator[list[str]]:
    """The paths at which an older record, which does not list its references, may have one."""
    for side in ("request", "response"):
        body = object_of(object_of(record.get(side)).get("body"))
        yield from ([side, "body", name] for name in WHOLE)
        for name in LISTS if side == "request" else ():
            listed = body.get(name)
            yield from ([side, "body", name, str(number)] for number in range(len(listed) if listed else 0))


def _put_back(record: dict[str, Any], path: list[str], blobs: Blobs, room: Room) -> None:
    holder: Any = record
    for step in path[:-1]:
        holder = holder[int(step)] if isinstance(holder, list) else object_of(holder).get(step)
    key: Any = int(path[-1]) if isinstance(holder, list) else path[-1]
    value = holder[key] if isinstance(holder, list) else object_of(holder).get(key)
    reference = value.get(REFERENCE) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(reference, dict):
        return
    found = blobs(str(reference["hash"]))
    # A small file may refer to one large value many times, so `room` bounds the total size.
    if not room.take(len(json.dumps(found))):
        raise ValueError("no room")
    holder[key] = found
