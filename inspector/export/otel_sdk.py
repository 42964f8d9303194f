"""Sends spans and points through OpenTelemetry's SDK; the only module that imports it.

`emit` and `measure` use the caller's tracer and meter. `Sink` makes its own from the standard OTEL_* environment
variables of the SDK's specification.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context

from inspector import __version__
from inspector.export.conventions import INSTRUMENTS, OtelKind, OtelPoint, OtelSpan
from inspector.export.otel_spans import SERVICE
from inspector.sessions import redact
from loop_core.errors import CallerError

KINDS: Mapping[OtelKind, SpanKind] = {OtelKind.INTERNAL: SpanKind.INTERNAL, OtelKind.CLIENT: SpanKind.CLIENT}
PROTOCOLS: Mapping[str, str] = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
"""Value of OTEL_EXPORTER_OTLP_PROTOCOL -> the name under which its exporter is registered."""
BATCH = 512
"""The largest number of spans in one request, as in the SDK's own batches."""


def emit(spans: Sequence[OtelSpan], tracer: Tracer) -> None:
    """Creates the spans with their recorded times; the turn's span is a child of the caller's own span, if any."""
    sdk_spans: list[Any] = []
    for span in spans:
        above = None if span.parent is None else set_span_in_context(sdk_spans[span.parent])
        own = tracer.start_span(span.name, above, KINDS[span.kind], dict(span.attributes), start_time=span.start)
        for event in span.events:
            own.add_event(event.name, dict(event.attributes), event.at)
        if span.error is not None:
            own.set_status(Status(StatusCode.ERROR, span.error))
        sdk_spans.append(own)
    for span, own in reversed(list(zip(spans, sdk_spans, strict=True))):  # children end before their parents
        own.end(span.end)


def measure(points: Sequence[OtelPoint], meter: Meter) -> None:
    """Records the points with instruments of this meter."""
    takes: dict[str, Callable[..., None]] = {}
    for name in dict.fromkeys(point.name for point in points):
        unit, about, bounds = INSTRUMENTS[name]
        if bounds is None:
            takes[name] = meter.create_counter(name, unit, about).add
        else:
            takes[name] = meter.create_histogram(
                name, unit, about, explicit_bucket_boundaries_advisory=list(bounds)).record
    for point in points:
        takes[point.name](point.value, dict(point.attributes))


class _SampledSpans(SpanProcessor):
    """Keeps the spans that were sampled."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self.spans.append(span)


class Sink:
    """The destination of this process's telemetry."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Finds the exporters that the environment names. Raises `CallerError` if one of them is unknown, not
        installed, or cannot be made."""
        resource = Resource.create({"service.name": _service(environment), "service.version": __version__})
        self._sampled = _SampledSpans()
        # `send` shuts it down and reports a failure
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        # Not the SDK's BatchSpanProcessor, which does not return an exporter's result: a failure must be reported.
        self._tracers.add_span_processor(self._sampled)
        self._spans: list[SpanExporter] = _exporters("traces", environment)
        readers = [PeriodicExportingMetricReader(exporter, export_interval_millis=math.inf)
                   for exporter in _exporters("metrics", environment)]
        self._meters = MeterProvider(readers, resource, shutdown_on_exit=False)

    def send(self, spans: Sequence[OtelSpan], points: Sequence[OtelPoint]) -> str | None:
        """Sends everything and waits until it is accepted; returns an error in one line, or None."""
        emit(spans, self._tracers.get_tracer(SERVICE, __version__))
        measure(points, self._meters.get_meter(SERVICE, __version__))
        with _warnings() as warnings:
            accepted = all(self._export(exporter) for exporter in self._spans)
            self._meters.force_flush()  # a reader without an interval collects only on request
            self._meters.shutdown()
            self._tracers.shutdown()
        if accepted and not warnings:
            return None
        why = redact.url(warnings[-1].partition("\n")[0]) if warnings else "an exporter did not take the spans"
        return f"--otel: {why}"

    def _export(self, exporter: SpanExporter) -> bool:
        ended = self._sampled.spans
        accepted = all(exporter.export(ended[at : at + BATCH]) is SpanExportResult.SUCCESS
                       for at in range(0, len(ended), BATCH))
        exporter.shutdown()
        return accepted


def _service(environment: Mapping[str, str]) -> str:
    """The name of the service: that in the environment, which the SDK would not prefer, else the program's own."""
    # `key=value,…` (OpenTelemetry, resource SDK)
    attributes = dict(pair.partition("=")[::2] for pair in environment.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))
    return environment.get("OTEL_SERVICE_NAME") or attributes.get("service.name", "").strip() or SERVICE


def _exporters(signal: str, environment: Mapping[str, str]) -> list[Any]:
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    found: list[Any] = []
    for name in (environment.get(variable) or "otlp").split(","):
        name = name.strip()
        if name == "console":  # the report is already on standard output
            found.append(ConsoleSpanExporter(out=sys.stderr) if signal == "traces"
                         else ConsoleMetricExporter(out=sys.stderr))
        elif name and name != "none":
            found.append(_load_exporter(name, signal, variable, environment))
    return found


def _load_exporter(name: str, signal: str, variable: str, environment: Mapping[str, str]) -> Any:
    registered: dict[str, EntryPoint] = {
        point.name: point for point in entry_points(group=f"opentelemetry_{signal}_exporter")}
    protocol = (environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL")
                or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL"))
    if name != "otlp":
        wanted = [name]
    elif protocol:
        wanted = [PROTOCOLS.get(protocol, protocol)]
    else:
        wanted = ["otlp_proto_http", "otlp_proto_grpc"]  # the specification prefers HTTP; the first installed is used
    point = next((registered[each] for each in wanted if each in registered), None)
    if point is None:
        how = ("the extra otlp brings one" if name == "otlp" else f"installed are {', '.join(sorted(registered))}")
        raise CallerError(f"--otel: no exporter for {variable}={name} is installed; {how}, and console needs none")
    try:
        return point.load()()
    except (ImportError, ValueError) as why:
        raise CallerError(f"--otel: {variable}={name}: {redact.url(str(why))}") from None


class _LogMessages(logging.Handler):
    """A log handler that stores the logged messages."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collects the log of the SDK and its exporters within the block, instead of many lines on standard error."""
    messages, logger = _LogMessages(), logging.getLogger("opentelemetry")
    before = logger.propagate
    logger.addHandler(messages)
    logger.propagate = False
    try:
        yield messages.said
    finally:
        logger.removeHandler(messages)
        logger.propagate = before
