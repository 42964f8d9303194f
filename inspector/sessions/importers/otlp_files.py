"""Finds the spans and log records in a file, each as its JSON.

A file is OTLP in JSON, in lines of JSON or in protobuf, a length-prefixed file of the collector, the output of an SDK
(JSON objects one after the other, or a list), or an export of Jaeger, Tempo or MLflow. Protobuf needs the extra
`traces`. Sources: opentelemetry-proto 1.9; the collector's file exporter; Jaeger `model/json/model.go`; Tempo's API for
a trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from inspector.sessions.importers.database import Schema, has, schema, snapshot
from inspector.sessions.importers.records import elements, first_look, list_pieces, look_at, object_lines
from inspector.sessions.importers.span_messages import load_json
from inspector.sessions.notices import Notice
from inspector.sessions.recording import UnreadableError
from inspector.sessions.traffic import loads, moment
from inspector.sessions.transcripts.member_values import object_of, objects_of

SPANS, LOGS = "spans", "logs"
FRAME = "context.span_id"
"""The column with the id of a span in Phoenix's data frame."""
RESOURCES = {
    "resourceSpans": SPANS, "resource_spans": SPANS, "batches": SPANS, "resourceLogs": LOGS, "resource_logs": LOGS,
}
"""Member of an export that lists the records of each resource (`batches`: Tempo) -> the kind of the records."""
SCOPES = {
    SPANS: ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
    LOGS: ("scopeLogs", "scope_logs", "instrumentationLibraryLogs"),
}
RECORDS = {SPANS: ("spans",), LOGS: ("logRecords", "log_records")}
NAMES = (b"gen_ai.", b"llm.", b"openinference", b"telemetry.sdk", b"service.name")
"""Texts of which every trace contains one. They identify a trace in protobuf, where names are plain text."""
PRINTED = (
    (frozenset({"context", "attributes"}), SPANS),
    (frozenset({FRAME}), SPANS),
    (frozenset({"trace_id", "span_id", "start_time_unix_nano", "attributes"}), SPANS),
    (frozenset({"startTime", "endTime", "attributes"}), SPANS),
    (frozenset({"spanContext", "name", "attributes"}), SPANS),
    (frozenset({"hrTime", "attributes"}), LOGS),
    (frozenset({"severity_number", "trace_id", "attributes"}), LOGS),
    (frozenset({"resource", "scopeMetrics"}), ""),
)
"""Members of a record in the output of an SDK -> the kind of the record; metrics have no part of an answer."""
PAGE = "data"
"""The member with the spans in a page of Phoenix's API."""
_OF_MODELS = (b"gen_ai.", b"gemini_cli.", b"copilot_chat.")
"""Texts of which an SDK's output of log records contains one if it is about a model."""
_MISSING = "OTLP traces in protobuf need the extra traces: pip install 'loop-inspector[traces]'"

RecordPiece = tuple[str, bytes]
"""The kind of a record, and its JSON."""


def sniff(head: bytes, path: str) -> int:
    """Recognises JSON with the records of resources, or of an SDK; or protobuf with the attribute names of traces."""
    parsed_head = first_look(head)
    if isinstance(parsed_head.first, (dict, list)):
        listed = objects_of(parsed_head.first) or objects_of(object_of(parsed_head.first).get(PAGE))
        if (any(_has_scope(parsed_head.first, name) for name in RESOURCES) or _is_jaeger(parsed_head.first)
                or _mlflow_path(parsed_head.first)):
            return 100
        kinds = [_printed_kind(value) for value in (*parsed_head.objects, *listed[:8])]
        return 100 if SPANS in kinds or (LOGS in kinds and any(text in head for text in _OF_MODELS)) else 0
    # JSON after an empty line would also pass for protobuf, whose first byte is a line feed.
    if parsed_head.text[:1] in (b"{", b"["):
        return 0
    return 95 if _is_proto(head) and any(name in head for name in NAMES) else 0


def _has_scope(export: Any, name: str) -> bool:
    """Whether an export has records of resources under a name; `batches` is a common word."""
    held = object_of(export).get(name)
    return held is not None and (name != "batches" or any(scope in each for each in objects_of(held)
                                                          for scope in SCOPES[SPANS]))


def _is_jaeger(export: Any) -> bool:
    """Whether a file has the form of the traces that Jaeger's API returns."""
    return any({"traceID", "spans"} <= trace.keys() for trace in objects_of(object_of(export).get("data"))[:1])


def _mlflow_path(export: Any) -> tuple[str, ...]:
    """The path of the spans in a trace of MLflow, or in the first trace of a list; empty for any other file."""
    trace = object_of(next(iter(objects_of(export)), export))
    held = object_of(trace.get("data")) or trace
    named = (name for span in objects_of(held.get("spans"))[:1] for name in object_of(span.get("attributes")))
    if not any(name.startswith("mlflow.") for name in named):
        return ()
    return ("spans",) if held is trace else ("data", "spans")


def _printed_kind(value: Any) -> str | None:
    """The kind of a record in the output of an SDK; None for any other value."""
    members = object_of(value)
    if "context" in members and not {"trace_id", "span_id"} <= object_of(members["context"]).keys():
        return None
    return next((kind for names, kind in PRINTED if names <= members.keys()), None)


def _is_proto(head: bytes) -> bool:
    prefixed = head[4:5] == b"\n" and 0 < int.from_bytes(head[:4], "big") < 1 << 31
    # 0x0A: field 1 of TracesData (`resource_spans`), length-delimited. 0x12: the tag of the value of any attribute,
    # which a text after an empty line does not have.
    return (head[:1] == b"\n" or prefixed) and b"\x12" in head


def records_in(data: bytes, notices: list[Notice | str]) -> Iterator[RecordPiece]:
    """The spans and the log records of a file, in the file's order. Raises `UnreadableError` if it is protobuf, and the
    extra is missing or the file is damaged from the start."""
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        yield from _of_json(data)
    else:
        notices.append("spans in protobuf are shown as the JSON that OTLP defines for them")
        yield from _of_proto(data, notices)


def _of_json(data: bytes) -> Iterator[RecordPiece]:
    parsed_head = look_at(data)
    if _is_jaeger(parsed_head.first):
        yield from ((SPANS, span) for trace in elements(data, "data") for span in elements(trace, "spans"))
        return
    if path := _mlflow_path(parsed_head.first):
        listed = elements(data) if isinstance(parsed_head.first, list) else object_lines(data) or [data]
        yield from ((SPANS, span) for trace in listed for span in elements(trace, *path))
        return
    if not any(name in object_of(parsed_head.first) for name in RESOURCES):
        yield from _printed_spans(data)
        return
    lines = data.split(b"\n") if parsed_head.lines else [data]
    for line in lines:
        for name, kind in RESOURCES.items():
            for _, resource, _ in list_pieces(line, name) if name.encode() in line else ():
                for scope in SCOPES[kind]:
                    for _, scope_records, _ in list_pieces(resource, scope):
                        for member in RECORDS[kind]:
                            yield from ((kind, record) for _, record, _ in list_pieces(scope_records, member))


def _printed_spans(data: bytes) -> Iterator[RecordPiece]:
    look = look_at(data)
    lines = object_lines(data) if look.lines else []
    if not lines and objects_of(object_of(look.first).get(PAGE)):
        lines = list(elements(data, PAGE))
    for piece in lines or elements(data if data.lstrip()[:1] == b"[" else b"[" + data):
        try:
            kind = _printed_kind(loads(piece))
        except ValueError:
            kind = None
        yield SPANS if kind is None else kind, piece


def _of_proto(data: bytes, notices: list[Notice | str]) -> Iterator[RecordPiece]:
    try:
        to_dict = import_module("google.protobuf.json_format").MessageToDict
        damaged = import_module("google.protobuf.message").DecodeError
        kinds = (import_module("opentelemetry.proto.trace.v1.trace_pb2").TracesData,
                 import_module("opentelemetry.proto.logs.v1.logs_pb2").LogsData)
    except ImportError:
        raise UnreadableError(_MISSING) from None
    for number, message in enumerate(_messages(data), 1):
        readings: list[list[RecordPiece]] = []
        for kind in kinds:
            try:
                export = to_dict(kind.FromString(message))
            except damaged:
                continue
            readings.append(list(_of_json(json.dumps(export).encode())))
        if not readings:
            if number == 1:
                raise UnreadableError("damaged protobuf: expected the spans of resources")
            notices.append(Notice(" is cut or damaged: the part before it was read", at=f"message {number:,}"))
            return
        # Some messages can also be parsed as the other kind; then no record has a time, because field numbers differ.
        timed = [reading for reading in readings if any(b"UnixNano" in piece for _, piece in reading)]
        yield from (*timed, *readings)[0]


def _messages(data: bytes) -> Iterator[bytes]:
    """The messages of a collector's file, each after its length (4 bytes, big-endian), or the only message."""
    # The first byte of bare protobuf, 0x0A, would make a length of over 160 MB.
    if int.from_bytes(data[:4], "big") > len(data) and data[:1] == b"\n":
        yield data
        return
    at = 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        # b"\xff" is no valid message, so it is reported as cut
        yield data[at + 4 : at + 4 + size] if at + 4 + size <= len(data) else b"\xff"
        at += 4 + size


# -- Spans that are stored as rows: in the databases of MLflow and of Phoenix, and in Phoenix's data frame as JSON -----
# Phoenix nests attributes by their names; here they become plain names with dots. Sources: MLflow 3.17
# `store/tracking/dbmodels/models.py`; arize-phoenix 20 `db/models.py`, and files that they wrote over two APIs.


class SpanStore(NamedTuple):
    """A kind of database with spans."""

    column: str
    """The column of its table `spans` that the other kinds lack."""
    query: str
    """The query for the rows: a span as JSON in `content`, or its members."""


STORES: Mapping[str, SpanStore] = {
    "MLflow": SpanStore("experiment_id", "SELECT content FROM spans ORDER BY start_time_unix_nano"),
    "Phoenix": SpanStore(
        "trace_rowid",
        "SELECT trace_id, span_id, parent_id, name, span_kind, spans.start_time, spans.end_time, status_code, "
        "status_message, attributes, events FROM spans JOIN traces ON traces.id = trace_rowid ORDER BY spans.id"),
}
"""Name of a program -> its database."""
_BELOW = "attributes."


def store_of(path: str) -> SpanStore | None:
    """The kind of a database with spans; None if it is of no known kind."""
    found: Schema = schema(path)
    return next((store for store in STORES.values() if has(found, "spans", store.column)), None)


def rows_in(path: str) -> Iterator[bytes]:
    """The spans of a database, each as its JSON."""
    store = store_of(path)
    if store is None:
        return
    with snapshot(path) as database:
        for row in database.execute(store.query):
            held = {name: row[name] for name in row.keys()}  # noqa: SIM118 - a row is no mapping
            if "content" in held:
                yield str(held["content"] or "").encode("utf-8", "replace")
            else:
                nested = {name: load_json(held[name]) for name in ("attributes", "events")}
                span = {**held, **nested, "attributes": dict(_plain_names(nested["attributes"]))}
                yield json.dumps(span, default=repr).encode()  # a row may have bytes where a text should be


def of_frame(span: dict[str, Any]) -> dict[str, Any]:
    """A span of Phoenix's data frame in the names of its other exports; any other span unchanged."""
    if FRAME not in span:
        return span
    held = {name.removeprefix(_BELOW): value for name, value in span.items() if name.startswith(_BELOW)}
    times = {name: moment(str(span[name])) for name in ("start_time", "end_time") if span.get(name)}  # pandas: numbers
    return {**span, **times, "attributes": dict(_plain_names(held)), "trace_id": span.get("context.trace_id"),
            "span_id": span[FRAME]}


def _plain_names(value: Any) -> Iterator[tuple[str, Any]]:
    """The values in a nested value, each with its whole name; elements of a list of objects have numbers as names."""
    waiting = [("", value)]
    while waiting:
        above, here = waiting.pop()
        numbered = isinstance(here, list) and any(isinstance(each, dict) for each in here)
        members = dict(enumerate(here)) if numbered else here if isinstance(here, dict) else None
        if members is not None:
            waiting += [(f"{above}.{key}" if above else str(key), each) for key, each in members.items()]
        elif here is not None:
            yield above, here
