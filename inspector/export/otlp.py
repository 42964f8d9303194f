"""Spans and points as OTLP/JSON: one request body each, for a collector's address or its file receiver.

Made of plain values, so that it needs none of OpenTelemetry's packages (opentelemetry-proto: trace/v1, metrics/v1,
and the JSON mapping of the OTLP specification: ids in hexadecimal, 64-bit integers as text, enumerations as numbers).
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from inspector import __version__
from inspector.export.conventions import INSTRUMENTS, Attribute, Attributes, Happened, OtelKind, OtelPoint, OtelSpan

KINDS: Mapping[OtelKind, int] = {OtelKind.INTERNAL: 1, OtelKind.CLIENT: 3}
DELTA = 1
_ERROR = 2
_INT64 = 1 << 63
"""An integer beyond is no `intValue`: a count that a provider or a file claims may be."""
SERVICE = "loop-inspector"


def traces(spans: Sequence[OtelSpan]) -> str:
    """`ExportTraceServiceRequest` on one line."""
    ids = _ids(spans)
    made = [_span(span, ids[at], None if span.parent is None else ids[span.parent][1])
            for at, span in enumerate(spans)]
    return _line({"resourceSpans": [{"resource": _resource(), "scopeSpans": [{"scope": _scope(), "spans": made}]}]})


def metrics(points: Sequence[OtelPoint], start: int, end: int) -> str:
    """`ExportMetricsServiceRequest` on one line; what was measured between two moments, as deltas."""
    span = {"startTimeUnixNano": str(start), "timeUnixNano": str(end)}
    series: dict[str, dict[tuple[Any, ...], list[OtelPoint]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        series[point.name][tuple(sorted(point.attributes.items()))].append(point)
    made = [_metric(name, list(series[name].values()), span) for name in INSTRUMENTS if name in series]
    return _line({"resourceMetrics": [
        {"resource": _resource(), "scopeMetrics": [{"scope": _scope(), "metrics": made}]}]})


def _ids(spans: Sequence[OtelSpan]) -> list[tuple[str, str]]:
    """The trace and the span id of each: made of what was recorded, so that a file says the same each time."""
    made: list[tuple[str, str]] = []
    seed, first = b"", 0
    for at, span in enumerate(spans):
        if span.parent is None:
            seed, first = span.seed, at
        trace = hashlib.sha256(seed + b"trace").hexdigest()[:32]
        made.append((trace, hashlib.sha256(seed + b"span %d" % (at - first)).hexdigest()[:16]))
    return made


def _span(span: OtelSpan, ids: tuple[str, str], parent: str | None) -> dict[str, Any]:
    return {
        "traceId": ids[0], "spanId": ids[1], **({} if parent is None else {"parentSpanId": parent}),
        "name": span.name, "kind": KINDS[span.kind],
        "startTimeUnixNano": str(span.start), "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes), "events": [_event(event) for event in span.events],
        "status": {} if span.error is None else {"code": _ERROR, "message": span.error},
    }


def _event(event: Happened) -> dict[str, Any]:
    return {"timeUnixNano": str(event.at), "name": event.name, "attributes": _attributes(event.attributes)}


def _metric(name: str, series: Sequence[Sequence[OtelPoint]], span: Mapping[str, str]) -> dict[str, Any]:
    instrument = INSTRUMENTS[name]
    about = {"name": name, "description": instrument.about, "unit": instrument.unit}
    if instrument.bounds is None:
        counted = [{"attributes": _attributes(same[0].attributes), **span, "asInt": str(sum(p.value for p in same))}
                   for same in series]
        return {**about, "sum": {"dataPoints": counted, "aggregationTemporality": DELTA, "isMonotonic": True}}
    spread = [_histogram(same, instrument.bounds, span) for same in series]
    return {**about, "histogram": {"dataPoints": spread, "aggregationTemporality": DELTA}}


def _histogram(same: Sequence[OtelPoint], bounds: Sequence[float], span: Mapping[str, str]) -> dict[str, Any]:
    values = [float(point.value) for point in same]
    counts = [0] * (len(bounds) + 1)
    for value in values:
        counts[bisect_left(bounds, value)] += 1  # a bound belongs to the bucket below it
    return {"attributes": _attributes(same[0].attributes), **span, "count": str(len(values)), "sum": sum(values),
            "min": min(values), "max": max(values), "bucketCounts": [str(count) for count in counts],
            "explicitBounds": list(bounds)}


def _attributes(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue" if -_INT64 <= value < _INT64 else "stringValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [_value(each) for each in value]}}


def _resource() -> dict[str, Any]:
    return {"attributes": _attributes({"service.name": SERVICE, "service.version": __version__})}


def _scope() -> dict[str, str]:
    return {"name": SERVICE, "version": __version__}


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n"
