"""Writes turns as OpenTelemetry spans and metrics, by its conventions for generative AI.

`points` converts a session to measurements (those of ZeroClaw RFI 2309 come from the events that a logger gets),
`spans` to spans. `traces` and `metrics` write them as OTLP/JSON without another package; `otel_sdk` passes them to
OpenTelemetry's SDK; `view_of_run` makes a session from a live run of the caller's own loop. Message contents are
included only on request, credentials never.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inspector import __version__
from inspector.config.settings import Settings
from inspector.export import conventions
from inspector.export.conventions import (
    INSTRUMENTS,
    OURS,
    Attribute,
    Attributes,
    OtelKind,
    OtelPoint,
    OtelSpan,
    compact,
)
from inspector.export.otel_spans import SERVICE, first_chunk, operation, spans, who
from inspector.live.recorder import LiveTurn, RunMemory, replay_of_turns
from inspector.report.facts import ResponseFacts, TurnFacts, View, view
from inspector.report.run_answers import fidelity_of
from inspector.report.times_and_costs import ClockSource, length, turn_times
from inspector.sessions.reasons import named_api
from loop_core.errors import CallerError
from loop_core.turn.trace import Fidelity, Labels, Record, Trace, fold_metrics

_INT64 = 1 << 63
"""One more than the largest integer of an instrument. Larger counts, which a provider may report, are left out."""


def points(view: View, only: Sequence[int] | None = None) -> tuple[OtelPoint, ...]:
    """All measurements of a session; `only` names turns by their indices."""
    turns = [turn for index, turn in enumerate(view.turns) if only is None or index in only]
    measurements: list[OtelPoint] = []
    for turn in turns:
        for index in turn.responses:
            measurements += _of_answer(view.responses[index])
        opening = view.responses[turn.responses[0]].exchange
        fidelity = fidelity_of(view, turn)
        ended = {**who(opening), f"{OURS}turn.terminal_reason": turn.terminal,
                 f"{OURS}fidelity": None if fidelity is Fidelity.RECORDED else fidelity.value}
        measurements.append(OtelPoint(conventions.TURNS, 1, compact(ended)))
        measurements += _of_turn(view, turn)
    return tuple(measurements)


def _of_answer(facts: ResponseFacts) -> Iterator[OtelPoint]:
    exchange, common = facts.exchange, operation(facts)
    usage, first = exchange.response.usage, first_chunk(facts)
    # The conventions' metric of tokens has no error type.
    counted = compact({name: value for name, value in common.items() if name != conventions.ERROR_TYPE})
    counts = {} if usage is None else {"input": usage.input_tokens, "output": usage.output_tokens}
    for kind, tokens in counts.items():
        if tokens is not None and 0 <= tokens < _INT64:
            yield OtelPoint(conventions.TOKEN_USAGE, tokens, {**counted, conventions.TOKEN_TYPE: kind})
    took = length(exchange)
    if took is not None:
        yield OtelPoint(conventions.DURATION, took / 1e9, compact(common))
    if first is not None:
        yield OtelPoint(conventions.TIME_TO_FIRST_CHUNK, first, counted)
    normalized = facts.judgement.stop.normalized.value
    yield OtelPoint(conventions.RESPONSES, 1, {**compact(common), f"{OURS}stop.normalized": normalized})
    for verdict in facts.verdicts:
        yield OtelPoint(conventions.CALLS, 1, {**counted, f"{OURS}call.admission": verdict.admission.value,
                                     f"{OURS}call.rule": verdict.rule})


def _of_turn(view: View, turn: TurnFacts) -> Iterator[OtelPoint]:
    """The measurements of ZeroClaw RFI 2309, from the run that decided the turn."""
    records: list[Record] = []
    for index in range(turn.run.first, turn.run.deciding_step + 1):
        records += view.effective_step(index).records
    took = duration(view, turn)
    folded = fold_metrics(records, {} if took is None else {record["turn_id"]: took for record in records})
    api = named_api(view.responses[turn.responses[0]].exchange)

    def of(labels: Labels) -> dict[str, str]:
        model = {conventions.RESPONSE_MODEL: labels[1]} if labels[1] else {}
        return {conventions.PROVIDER: conventions.provider(labels[0], api), **model}

    for labels, count in folded.continuations.items():
        yield OtelPoint(conventions.CONTINUATIONS, count, of(labels))
    for labels, count in folded.truncation_exits.items():
        yield OtelPoint(conventions.TRUNCATION_EXITS, count, of(labels))
    for labels, attempts in folded.attempts_per_turn.items():
        yield from (OtelPoint(conventions.ATTEMPTS, attempt, of(labels)) for attempt in attempts)
    for labels, latencies in folded.latency_ms.items():
        yield from (OtelPoint(conventions.CONTINUED, latency / 1_000, of(labels)) for latency in latencies)
    if folded.latency_missing:
        yield OtelPoint(conventions.CONTINUED_UNTIMED, folded.latency_missing, {})


def duration(view: View, turn: TurnFacts) -> float | None:
    """Milliseconds from the first request of a turn to the end of its last answer; None if that is not recorded."""
    times = turn_times(view, turn)
    return times.duration_ms if times is not None and times.clock is ClockSource.WIRE else None


# -- a live run of a caller's own loop, and the destination of telemetry ----------------------------------------------


if TYPE_CHECKING:
    from inspector.export.otel_sdk import Sink

__all__ = ["RunMemory", "points", "sink", "spans", "view_of_run"]


def view_of_run(memory: RunMemory, trace: Trace) -> View:
    """The view of one turn of a caller's own loop, from its observer's exchanges and its steps."""
    turn = LiveTurn(memory.responses, trace.steps)
    return view(replay_of_turns((turn,), Settings(), "live", memory.notices, memory))


def sink(environment: Mapping[str, str]) -> Sink:
    """The destination of telemetry, by OpenTelemetry's environment variables. Raises `CallerError` if the extra is not
    installed, or an exporter cannot be made."""
    try:
        from inspector.export.otel_sdk import Sink
    except ModuleNotFoundError as why:
        if (why.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise CallerError("--otel needs the extra otel: pip install '.[otel]'") from None
    return Sink(environment)


# -- OTLP/JSON: request bodies for a collector's address or its file receiver -----------------------------------------
# The bodies are plain values, so that none of OpenTelemetry's packages is needed. The sources are opentelemetry-proto
# (trace/v1, metrics/v1) and the JSON mapping of the OTLP specification: ids in hexadecimal, 64-bit integers as text,
# enumerations as numbers.


KINDS: Mapping[OtelKind, int] = {OtelKind.INTERNAL: 1, OtelKind.CLIENT: 3}  # opentelemetry-proto, `Span.SpanKind`
DELTA = 1  # `AggregationTemporality`
_ERROR = 2  # `Status.StatusCode`


def traces(spans: Sequence[OtelSpan]) -> str:
    """An `ExportTraceServiceRequest` as one line of JSON."""
    ids = _ids(spans)
    span_values = [_span(span, ids[at], None if span.parent is None else ids[span.parent][1])
                   for at, span in enumerate(spans)]
    return _line({"resourceSpans": [
        {"resource": _RESOURCE, "scopeSpans": [{"scope": _SCOPE, "spans": span_values}]}]})


def metrics(points: Sequence[OtelPoint], start: int, end: int) -> str:
    """An `ExportMetricsServiceRequest` as one line of JSON; counts are deltas between two moments."""
    span = {"startTimeUnixNano": str(start), "timeUnixNano": str(end)}
    series: dict[str, dict[tuple[Any, ...], list[OtelPoint]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        series[point.name][tuple(sorted(point.attributes.items()))].append(point)
    metric_values = [_metric(name, list(series[name].values()), span) for name in INSTRUMENTS if name in series]
    return _line({"resourceMetrics": [
        {"resource": _RESOURCE, "scopeMetrics": [{"scope": _SCOPE, "metrics": metric_values}]}]})


def _ids(spans: Sequence[OtelSpan]) -> list[tuple[str, str]]:
    """The trace id and the span ids, derived from the recording so that each export has the same ids."""
    ids: list[tuple[str, str]] = []
    seed, first = b"", 0
    for at, span in enumerate(spans):
        if span.parent is None:
            seed, first = span.seed, at
        # 16 bytes for a trace, 8 for a span (W3C Trace Context)
        trace = hashlib.sha256(seed + b"trace").hexdigest()[:32]
        ids.append((trace, hashlib.sha256(seed + b"span %d" % (at - first)).hexdigest()[:16]))
    return ids


def _span(span: OtelSpan, ids: tuple[str, str], parent: str | None) -> dict[str, Any]:
    return {
        "traceId": ids[0], "spanId": ids[1], **({} if parent is None else {"parentSpanId": parent}),
        "name": span.name, "kind": KINDS[span.kind],
        "startTimeUnixNano": str(span.start), "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
        "events": [{"timeUnixNano": str(event.at), "name": event.name, "attributes": _attributes(event.attributes)}
                   for event in span.events],
        "status": {} if span.error is None else {"code": _ERROR, "message": span.error},
    }


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
        counts[bisect_left(bounds, value)] += 1  # a value equal to a bound belongs to the bucket below
    return {"attributes": _attributes(same[0].attributes), **span, "count": str(len(values)), "sum": sum(values),
            "min": min(values), "max": max(values), "bucketCounts": [str(count) for count in counts],
            "explicitBounds": list(bounds)}


def _attributes(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    if isinstance(value, bool):  # first: in Python a bool is an int
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue" if -_INT64 <= value < _INT64 else "stringValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [_value(each) for each in value]}}


_RESOURCE = {"attributes": _attributes({"service.name": SERVICE, "service.version": __version__})}
_SCOPE = {"name": SERVICE, "version": __version__}


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n"  # a file receiver reads line by line
