"""Reads spans that are stored as rows: in the databases of MLflow and of Phoenix, and in Phoenix's data frame as JSON.

Phoenix nests attributes by their names; here they become plain names with dots. Sources: MLflow 3.17
`store/tracking/dbmodels/models.py`; arize-phoenix 20 `db/models.py`, and files that they wrote over two APIs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from inspector.sessions.importers.database import Schema, has, schema, snapshot
from inspector.sessions.importers.span_messages import load_json
from inspector.sessions.traffic import moment


class SpanStore(NamedTuple):
    """A kind of database with spans."""

    columns: frozenset[str]
    """The columns of its table `spans`."""
    query: str
    """The query for the rows: a span as JSON in `content`, or its members."""


STORES: Mapping[str, SpanStore] = {
    "MLflow": SpanStore(frozenset({"trace_id", "span_id", "experiment_id", "content"}),
                        "SELECT content FROM spans ORDER BY start_time_unix_nano"),
    "Phoenix": SpanStore(
        frozenset({"trace_rowid", "span_id", "span_kind", "attributes"}),
        "SELECT trace_id, span_id, parent_id, name, span_kind, spans.start_time, spans.end_time, status_code, "
        "status_message, attributes, events FROM spans JOIN traces ON traces.id = trace_rowid ORDER BY spans.id"),
}
"""Name of a program -> its database."""
FRAME = "context.span_id"
"""The column with the id of a span in Phoenix's data frame."""
_BELOW = "attributes."


def store_of(path: str) -> SpanStore | None:
    """The kind of a database, by its columns; None if it is of no known kind."""
    found: Schema = schema(path)
    return next((store for store in STORES.values() if has(found, "spans", *store.columns)), None)


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


def _plain_names(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in a nested value, each with its whole name; elements of a list of objects have numbers as names."""
    waiting = [(name, value)]
    while waiting:
        above, here = waiting.pop()
        numbered = isinstance(here, list) and any(isinstance(each, dict) for each in here)
        members = dict(enumerate(here)) if numbered else here if isinstance(here, dict) else None
        if members is not None:
            waiting += [(f"{above}.{key}" if above else str(key), each) for key, each in members.items()]
        elif here is not None:
            yield above, here
