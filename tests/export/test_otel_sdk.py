"""Through OpenTelemetry's SDK: what arrives at an exporter, what a loop of one's own gets, what goes wrong."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from inspector.config.settings import Settings
from inspector.export import conventions, telemetry
from inspector.export.conventions import OtelSpan
from inspector.live.headless import run_live
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import view
from inspector.sessions import open_paths
from loop_core.client.address import Server
from loop_core.client.transport import Live
from loop_core.errors import CallerError
from loop_core.turn.loop import run
from loop_core.turn.tools import Toolbox
from loop_core.values import Stop, Tool, ToolCall, Usage
from tests.live.test_run import KEY, RunCli, chat
from tests.scenes.live import ERROR, QUICK, answer, plan, request, server, streams
from tests.scenes.loopback import Fake
from tests.scenes.recordings import PARTS, cut_call_ran, cut_text, show

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` is not installed")
import itertools

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExporter, MetricExportResult
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inspector.export import otel_sdk

NOW = 1_700_000_000 * 10**9
SCENES = {"continued": cut_text(*PARTS), "ran a cut call": cut_call_ran()}


def spans_by_id(spans: Sequence[OtelSpan]) -> dict[str, Any]:
    """What an exporter is given, by span id."""
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    otel_sdk.emit(spans, provider.get_tracer("t"))
    return {f"{span.context.span_id:016x}": span for span in kept.get_finished_spans()}


@pytest.mark.parametrize("name", SCENES)
def test_spans_arrive_as_they_were_mapped(name: str) -> None:
    spans = telemetry.spans(show(*SCENES[name]), NOW, with_content=True)
    arrived = spans_by_id(spans)
    assert len(arrived) == len(spans)
    assert len({span.context.trace_id for span in arrived.values()}) == 1
    for span, own in zip(sorted(arrived.values(), key=lambda each: (each.parent is not None, each.start_time)),
                         spans, strict=True):
        assert (span.name, span.start_time, span.end_time) == (own.name, own.start, own.end)
        assert dict(span.attributes) == dict(own.attributes)
        assert [(event.name, event.timestamp, dict(event.attributes)) for event in span.events] == [
            (event.name, event.at, dict(event.attributes)) for event in own.events]
        assert span.kind.name.lower() == own.kind.value
        assert span.status.description == own.error
        above = None if span.parent is None else arrived[f"{span.parent.span_id:016x}"]
        assert (above is None) is (own.parent is None)
        assert above is None or above.name == "invoke_agent"


def test_a_turn_belongs_to_the_span_that_is_at_hand() -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("t")
    with tracer.start_as_current_span("mine"):
        otel_sdk.emit(telemetry.spans(show(*cut_text("One.")), NOW), tracer)
    mine = next(span for span in kept.get_finished_spans() if span.name == "mine")
    turn = next(span for span in kept.get_finished_spans() if span.name == "invoke_agent")
    assert turn.parent.span_id == mine.context.span_id


@pytest.mark.parametrize("name", SCENES)
def test_otlp_json_says_what_the_sdk_says(name: str) -> None:
    """Ids aside: the SDK's are chance, ours come from what was recorded."""
    spans = telemetry.spans(show(*SCENES[name]), NOW)
    written = json.loads(telemetry.traces(spans))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    again = telemetry.spans(show(*SCENES[name]), NOW)
    assert telemetry.traces(spans) == telemetry.traces(again), "the same file, the same ids"
    by_place = sorted(spans_by_id(spans).values(), key=lambda each: (each.parent is not None, each.start_time))
    for row, span in zip(written, by_place, strict=True):
        assert (row["name"], int(row["startTimeUnixNano"]), int(row["endTimeUnixNano"])) == (
            span.name, span.start_time, span.end_time)
        assert {pair["key"]: plain(pair["value"]) for pair in row["attributes"]} == dict(span.attributes)
        assert row["kind"] == span.kind.value + 1, "OTLP counts from `unspecified`"
        assert row["status"].get("code", 0) == (2 if span.status.description else 0)
        assert (len(row["traceId"]), len(row["spanId"])) == (32, 16)
    assert len({row["spanId"] for row in written}) == len(written)
    assert {row.get("parentSpanId") for row in written} == {None, written[0]["spanId"]}


def plain(value: dict[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return tuple(plain(each) for each in inner["values"])
    return int(inner) if kind == "intValue" else inner


@pytest.mark.parametrize("name", SCENES)
def test_metrics_arrive_and_otlp_json_has_the_same_figures(name: str) -> None:
    reader = InMemoryMetricReader()
    points = telemetry.points(show(*SCENES[name]))
    otel_sdk.measure(points, MeterProvider([reader], shutdown_on_exit=False).get_meter("t"))
    arrived = {}
    for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.data.data_points:
            figure = (point.value,) if hasattr(point, "value") else (point.count, point.sum, tuple(point.bucket_counts))
            arrived[metric.name, metric.unit, tuple(sorted(point.attributes.items()))] = figure
    written = {}
    for metric in json.loads(telemetry.metrics(points, 1, 2))["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
        for point in (metric.get("sum") or metric["histogram"])["dataPoints"]:
            attributes = {pair["key"]: plain(pair["value"]) for pair in point["attributes"]}
            figure = ((int(point["asInt"]),) if "asInt" in point else
                      (int(point["count"]), point["sum"], tuple(map(int, point["bucketCounts"]))))
            written[metric["name"], metric["unit"], tuple(sorted(attributes.items()))] = figure
    assert arrived == written
    assert {key[0] for key in arrived} == {point.name for point in points}


def test_a_loop_of_ones_own_is_told_by_an_observer(fake: Fake) -> None:
    call = ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True)
    fake.answers = [lambda peer: peer.whole(429, ERROR, retry_after="0"),
                    streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, call)),
                    streams("openai_chat", answer("openai_chat", "It is sunny, ", Stop.MAX_TOKENS, usage=Usage(9, 4))),
                    streams("openai_chat", answer("openai_chat", "and warm.", Stop.END_TURN))]
    kept = telemetry.RunMemory()
    asked = request("openai_chat", tools=(Tool("weather", {"type": "object"}),))
    with Live(server("openai_chat", fake.url), kept, Toolbox({"weather": lambda _: "sun"}), QUICK) as source:
        trace = run("t1", asked, source, plan("openai_chat"))
    seen = telemetry.view_of_run(kept, trace)
    turn, *below = telemetry.spans(seen, NOW)
    assert [span.name for span in below] == ["chat m", "chat m", "execute_tool weather", "chat m", "chat m"]
    errors = [span.attributes.get(conventions.ERROR_TYPE) for span in below]
    assert errors == ["rate_limit_error", None, None, None, None]
    assert [span.attributes["loop_inspector.times"] for span in below] == [
        "recorded", "recorded", "batch", "recorded", "recorded"]
    assert all(span.start > NOW for span in below), "the times are those of the clock"
    assert all(one.end <= other.end for one, other in itertools.pairwise(below))
    assert turn.attributes["loop_inspector.turn.terminal_reason"] == "completed"
    assert turn.attributes["loop_inspector.fidelity"] == "LIVE"
    values = {point.name: point.value for point in telemetry.points(seen)}
    assert values[conventions.CONTINUATIONS] == 1
    assert conventions.CONTINUED in values
    assert conventions.TIME_TO_FIRST_CHUNK in values


def test_a_recording_is_told_as_the_run_was(fake: Fake, tmp_path: Path) -> None:
    call = ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True)
    fake.answers = [streams("openai_chat", answer("openai_chat", "", Stop.TOOL_CALL, call)),
                    streams("openai_chat", answer("openai_chat", "It is sunny, ", Stop.MAX_TOKENS, usage=Usage(9, 4))),
                    streams("openai_chat", answer("openai_chat", "and warm.", Stop.END_TURN))]
    path = str(tmp_path / "s.jsonl")
    asked = request("openai_chat", tools=(Tool("weather", {"type": "object"}),))
    box = Toolbox({"weather": lambda _: "sun"})
    ran = run_live(asked, Server("openai_chat", fake.url), Settings(), box, path, QUICK)
    live = telemetry.spans(view(ran.replay), NOW, with_content=True)
    read = telemetry.spans(view(replay(open_case(open_paths([path])))), NOW, with_content=True)
    assert [span.name for span in live] == [span.name for span in read]
    second = 10**9
    own = ("loop_inspector.turn.id", "loop_inspector.conversation", "loop_inspector.fidelity")
    for one, other in zip(live, read, strict=True):
        assert {**one.attributes, **dict.fromkeys(own)} == {**other.attributes, **dict.fromkeys(own)}
        assert [event.attributes for event in one.events] == [event.attributes for event in other.events]
        assert abs(one.start - other.start) < second, "two clocks are read, one after the other"
        assert abs(one.end - other.end) < second


# -- `inspector run --otel` ------------------------------------------------------------------------------------------


class Spans(SpanExporter):
    """Keeps what it is given, and answers as it is told."""

    given: list[Any] = []  # noqa: RUF012  (the entry point makes it without arguments)
    result = SpanExportResult.SUCCESS

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        type(self).given += spans
        if self.result is SpanExportResult.FAILURE:
            logging.getLogger("opentelemetry.exporter").error("no line to http://user:word@collector/v1\nand more")
        return self.result


class Metrics(MetricExporter):
    given: list[Any] = []  # noqa: RUF012

    def export(self, metrics_data: Any, timeout_millis: float = 10_000, **more: Any) -> MetricExportResult:
        type(self).given += metrics_data.resource_metrics[0].scope_metrics[0].metrics
        return MetricExportResult.SUCCESS

    def shutdown(self, timeout_millis: float = 30_000, **more: Any) -> None: ...

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True


class Point:
    """An entry point."""

    def __init__(self, name: str, made: Callable[..., Any]) -> None:
        self.name, self.made = name, made

    def load(self) -> Callable[..., Any]:
        return self.made


@pytest.fixture
def exporters(monkeypatch: pytest.MonkeyPatch) -> None:
    registered = {
        "opentelemetry_traces_exporter": [Point("otlp_proto_http", Spans)],
        "opentelemetry_metrics_exporter": [Point("otlp_proto_http", Metrics)],
    }
    monkeypatch.setattr(otel_sdk, "entry_points", lambda group: registered[group])
    monkeypatch.setattr(Spans, "given", [])
    monkeypatch.setattr(Metrics, "given", [])


def test_a_live_run_is_handed_on(run_cli: RunCli, fake: Fake, tmp_path: Path, exporters: None) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", f"One {KEY}, ", Stop.MAX_TOKENS)),
                    streams("openai_chat", answer("openai_chat", f"One {KEY}, two.", Stop.END_TURN))]
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "a word of mine", "--otel", "--key-env", "MINE"),
               environment={"MINE": KEY, "OTEL_SERVICE_NAME": "my-agent"})
    assert (done.returncode, done.stderr) == (0, "")
    assert [span.name for span in Spans.given] == ["chat m", "chat m", "invoke_agent"]
    assert {span.resource.attributes["service.name"] for span in Spans.given} == {"my-agent"}
    assert conventions.TOKEN_USAGE not in {metric.name for metric in Metrics.given}, "no counts came"
    assert {conventions.DURATION, conventions.CONTINUATIONS} <= {metric.name for metric in Metrics.given}
    everything = "".join(span.to_json() for span in Spans.given)
    assert "a word of mine" not in everything
    assert KEY not in everything


def test_what_was_said_goes_along_when_it_is_asked_for(
    run_cli: RunCli, fake: Fake, tmp_path: Path, exporters: None
) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", f"One {KEY}", Stop.END_TURN))]
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "a word of mine", "--otel", "--otel-content",
                     "--key-env", "MINE"), environment={"MINE": KEY})
    assert done.returncode == 0
    everything = "".join(span.to_json() for span in Spans.given)
    assert "a word of mine" in everything
    assert KEY not in everything


def test_an_exporter_that_fails_is_one_line_and_changes_no_exit_code(
    run_cli: RunCli, fake: Fake, tmp_path: Path, exporters: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "One", Stop.END_TURN))]
    monkeypatch.setattr(Spans, "result", SpanExportResult.FAILURE)
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", "--otel"))
    assert (done.returncode, done.stderr) == (0, "inspector: --otel: no line to http://REDACTED@collector/v1\n")


@pytest.mark.parametrize(("environment", "said"), [
    ({"OTEL_TRACES_EXPORTER": "zipkin"}, "no exporter for OTEL_TRACES_EXPORTER=zipkin is installed; installed are"),
    ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "no exporter for OTEL_TRACES_EXPORTER=otlp is installed; the extra otlp"),
    ({"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json"}, "no exporter for OTEL_METRICS_EXPORTER=otlp"),
])
def test_an_exporter_that_is_not_there_is_told_before_anything_is_sent(
    run_cli: RunCli, environment: dict[str, str], said: str, fake: Fake, tmp_path: Path, exporters: None
) -> None:
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", "--otel"), environment=environment)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert fake.got == []


@pytest.mark.parametrize(("protocol", "registered"), [
    ("grpc", "otlp_proto_grpc"), ("http/protobuf", "otlp_proto_http"), ("", "otlp_proto_http"), ("", "otlp_proto_grpc"),
])
def test_the_protocol_names_the_exporter(protocol: str, registered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make_point(name: str, exporter: Any) -> Any:
        def make() -> Any:
            made.append(name)
            return exporter()

        return Point(name, make)

    def points(group: str) -> list[Point]:
        exporter = Metrics if "metrics" in group else Spans
        others = {"otlp_proto_http", "otlp_proto_grpc"} if protocol else {registered}
        return [make_point(name, exporter) for name in others]

    monkeypatch.setattr(otel_sdk, "entry_points", points)
    telemetry.sink({"OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
    assert made == [registered, registered]


def test_an_exporter_that_cannot_be_made_is_one_line(exporters: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise ValueError("no endpoint at http://user:word@h")

    monkeypatch.setattr(otel_sdk, "entry_points", lambda group: [Point("otlp_proto_http", broken)])
    with pytest.raises(CallerError, match="OTEL_TRACES_EXPORTER=otlp: no endpoint at http://REDACTED@h"):
        telemetry.sink({})


def test_none_and_console_need_no_exporter(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    fake.answers = [streams("openai_chat", answer("openai_chat", "One", Stop.END_TURN))]
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", "--otel", "--json"),
               environment={"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "none"})
    assert done.returncode == 0
    assert json.loads(done.stdout)["responses"], "the report alone stands on standard output"
    assert '"name": "chat m"' in done.stderr


def test_without_the_extra_one_line_names_it(tmp_path: Path) -> None:
    hide = ("import sys\nsys.modules['opentelemetry'] = None\nsys.argv = ['inspector', 'run', '--api', 'openai_chat', "
            "'--model', 'm', '--prompt', 'x', '--otel']\nfrom inspector.cli import run\nrun()")
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False, timeout=60,
                          cwd=Path(__file__).parents[2])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "inspector: --otel needs the extra otel: pip install '.[otel]'\n"


def test_content_alone_is_refused(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    done = run_cli(*chat(fake, tmp_path / "s.jsonl", "--prompt", "x", "--otel-content"))
    assert done.returncode == 2
    assert "--otel-content needs --otel" in done.stderr


def test_the_mapping_loads_no_sdk() -> None:
    code = ("import sys\nfrom inspector.export import telemetry\n"
            "print([name for name in sys.modules if name.startswith('opentelemetry')])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60,
                          cwd=Path(__file__).parents[2])
    assert done.stdout == "[]\n"
