"""Turns as spans: whose word is which attribute, what counts as an error, and times that are not made up."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from inspector.export import conventions, telemetry
from inspector.export.conventions import SKEW, Clock, OtelPoint, OtelSpan, Times
from inspector.export.otel_spans import spans
from inspector.export.telemetry import points
from inspector.report.facts import View, view
from inspector.sessions.traffic import moment
from tests.export.test_export import KEY
from tests.scenes.recordings import (
    ASKS,
    CHAT,
    CUT,
    GEMINI,
    PARTS,
    RESPONSES,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    cut_call_ran,
    cut_stream,
    cut_text,
    pair_of,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row

SHORT = PARTS[:3]
NOW = 1_700_000_000 * 10**9


def of(seen: View, operation: str, **more: Any) -> list[OtelSpan]:
    return [span for span in spans(seen, NOW, **more) if span.attributes[conventions.OPERATION] == operation]


def with_times(pair: dict[str, Any], started: Any = None, took: float | None = None) -> dict[str, Any]:
    times = {"started": started, "duration_ms": took}
    return {**pair, **{name: value for name, value in times.items() if value is not None}}


@pytest.fixture(scope="module")
def run() -> View:
    return show(*cut_call_ran())


def test_an_answer_has_the_providers_word_and_ours_beside_it(run: View) -> None:
    first = of(run, "chat")[0]
    response = run.responses[0].exchange.response
    assert first.name == f"chat {first.attributes[conventions.REQUEST_MODEL]}"
    assert first.kind == "client"
    asked_for = (
        conventions.PROVIDER, conventions.SERVER_ADDRESS, conventions.SERVER_PORT, conventions.RESPONSE_ID,
        conventions.RESPONSE_MODEL, conventions.FINISH_REASONS, conventions.INPUT_TOKENS, conventions.OUTPUT_TOKENS)
    told = {name: first.attributes[name] for name in asked_for}
    assert told == {
        conventions.PROVIDER: "openai", conventions.SERVER_ADDRESS: "api.openai.com", conventions.SERVER_PORT: 443,
        conventions.RESPONSE_ID: "chatcmpl-1", conventions.RESPONSE_MODEL: "m-1",
        conventions.FINISH_REASONS: (response.raw_stop_reason,), conventions.INPUT_TOKENS: 9,
        conventions.OUTPUT_TOKENS: 40}
    assert first.attributes["loop_inspector.stop.normalized"] == "max_tokens"
    assert set(first.attributes["loop_inspector.stop.rules"]) == {  # type: ignore[arg-type]
        seen.rule for seen in run.responses[0].judgement.stop.evidence}


def test_a_cut_call_that_ran_is_an_error_of_the_turn_and_of_the_tool(run: View) -> None:
    (turn,), (tool,) = of(run, "invoke_agent"), of(run, "execute_tool")
    assert (turn.error, turn.attributes[conventions.ERROR_TYPE]) == ("cut_call_run", "cut_call_run")
    assert (tool.name, tool.error, tool.attributes["loop_inspector.call.admission"]) == (
        "execute_tool write_file", "held", "held")
    assert tool.attributes[conventions.TOOL_CALL_ID] == "call_a1b2c3d4e5"
    (called,) = of(run, "chat")[0].events
    assert called.attributes["loop_inspector.call.admission"] == "held"
    assert called.attributes[conventions.TOOL_NAME] == "write_file"


def test_a_result_under_another_id_is_that_of_the_call_as_everywhere() -> None:
    """Some clients make the ids of calls anew."""
    asks = [user("go")]
    seen = show(pair_of(asks, chat(None, "tool_calls", call(WHOLE))),
                 pair_of([*asks, assistant(None, call(WHOLE, key="call_new")), result(key="call_other")],
                         chat("Done.")))
    (tool,) = of(seen, "execute_tool")
    assert tool.name == "execute_tool write_file"


def test_a_word_that_was_not_sent_is_absent_and_the_answer_an_error() -> None:
    seen = show(pair_of(ASKS, cut_stream("One"), stream=True))
    (answer,) = of(seen, "chat")
    assert conventions.FINISH_REASONS not in answer.attributes
    assert conventions.INPUT_TOKENS not in answer.attributes
    assert (answer.error, answer.attributes["loop_inspector.stop.normalized"]) == ("interrupted", "interrupted")


def test_a_cut_is_no_error_of_the_answer_and_a_completed_turn_is_none() -> None:
    seen = show(*cut_text(*SHORT))
    assert [span.error for span in spans(seen, NOW)] == [None] * (1 + len(SHORT))
    (turn,) = of(seen, "invoke_agent")
    assert turn.attributes["loop_inspector.turn.terminal_reason"] == "completed"
    assert turn.attributes["loop_inspector.turn.continuations"] == len(SHORT) - 1
    told = [event.name for event in turn.events]
    assert told == [f"loop_inspector.{record['event']}" for record in seen.replay.trace.records]
    assert "loop_inspector.continuation_attempt" in told


def test_the_output_of_a_turn_is_that_of_every_answer() -> None:
    """12 tokens of a call that nothing cut, 5 of the answer after its result; no bound on continuations counts them."""
    made = call(WHOLE)
    said = {"role": "assistant", "content": None, "tool_calls": [made]}
    turn = spans(show(pair_of(ASKS, chat(None, "tool_calls", made, tokens=12), tools=TOOLS),
                       pair_of([*ASKS, said, result()], chat("It is written.", tokens=5), tools=TOOLS)), NOW)[0]
    spent = {name: turn.attributes[f"loop_inspector.turn.{name}"] for name in ("output_tokens", "continuation_tokens")}
    assert spent == {"output_tokens": 17, "continuation_tokens": 0}


def test_a_refusal_says_the_providers_type() -> None:
    error = {"error": {"message": f"no such key {KEY}", "type": "invalid_request_error", "code": "x"}}
    seen = show(pair_of(ASKS, error, status=401))
    (answer,) = of(seen, "chat")
    assert answer.attributes[conventions.ERROR_TYPE] == "invalid_request_error"


CALL_OF_GEMINI = {"candidates": [{"content": {"parts": []}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}
STOPPED = {"id": "r", "object": "response", "status": "cancelled", "output": []}
FAILED = {"error": {"message": "it went wrong"}}


@each_row(("body", "url", "status", "error"), [
    (FAILED, CHAT, 500, "500"),
    (f"data: {json.dumps(FAILED)}\n\n", CHAT, 200, "error"),
    ({"error": {"message": "m", "code": "busy"}}, CHAT, 503, "busy"),
    (cut_stream("One"), CHAT, 200, "interrupted"),
    (CALL_OF_GEMINI, GEMINI, 200, "malformed_tool_call"),
    (STOPPED, RESPONSES, 200, "cancelled"),
    (chat("One", "length"), CHAT, 200, None),
    (chat(None, "content_filter"), CHAT, 200, None),
])
def test_what_is_an_error_of_an_answer(body: Any, url: str, status: int, error: str | None) -> None:
    (answer, *_) = of(show(pair_of(ASKS, body, url=url, status=status)), "chat")
    assert (answer.error, answer.attributes.get(conventions.ERROR_TYPE)) == (error, error)


@each_row(("body", "error"), [
    (chat("One"), None),
    (chat(None, "tool_calls", call()), None),  # the recording ends before the results
    (chat(None, "content_filter"), "safety_blocked"),
    (chat("One", "length", call(CUT)), "call_held"),
])
def test_what_is_an_error_of_a_turn(body: Any, error: str | None) -> None:
    (turn,) = of(show(pair_of(ASKS, body, tools=TOOLS)), "invoke_agent")
    assert (turn.error, turn.attributes.get(conventions.ERROR_TYPE)) == (error, error)


@pytest.mark.parametrize("with_content", [False, True])
def test_what_was_said_is_sent_only_when_asked_for_and_keys_never(with_content: bool) -> None:
    said = "a word that stands nowhere else"
    seen = show(pair_of([user(f"{said} {KEY}")], chat(f"yes, {said} {KEY}")))
    made = spans(seen, NOW, with_content=with_content)
    everything = repr([(span.name, span.attributes, span.events, span.error) for span in made])
    assert (said in everything) is with_content
    assert KEY not in everything
    contents = {"gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages",
                "gen_ai.tool.definitions", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}
    assert bool({name for span in made for name in span.attributes} & contents) is with_content


def test_content_is_the_conventions_json(run: View) -> None:
    first, (tool,) = of(run, "chat", with_content=True)[0], of(run, "execute_tool", with_content=True)
    (said,) = json.loads(str(first.attributes[conventions.OUTPUT_MESSAGES]))
    assert (said["role"], said["finish_reason"]) == ("assistant", "length")
    (call,) = [part for part in said["parts"] if part["type"] == "tool_call"]
    cut = run.responses[0].exchange.response.tool_calls[0].arguments
    assert call["arguments"] == cut, "arguments that were cut stay the text that they are"
    history = json.loads(str(first.attributes[conventions.INPUT_MESSAGES]))
    assert {message["role"] for message in history} <= {"user", "assistant", "tool"}
    assert tool.attributes[conventions.TOOL_ARGUMENTS] == cut
    assert tool.attributes[conventions.TOOL_RESULT] == run.responses[1].exchange.request.messages[-1].results[0].text  # type: ignore[union-attr]


# -- times -----------------------------------------------------------------------------------------------------------

T0 = "2026-01-02T03:04:05Z"
T0_NS = 1_767_323_045 * 10**9


@each_row(("written", "expected"), [
    (T0, T0_NS),
    ("2026-01-02T04:04:05+01:00", T0_NS),
    ("2026-01-02T03:04:05", T0_NS),
    ("2026-01-02T03:04:05.000001+00:00", T0_NS + 1_000),
    ("1767323045", T0_NS),
    ("1767323045.5", T0_NS + 500_000_000),
    ("1767323045000", T0_NS),
    ("1767323045000000", T0_NS),
    ("1767323045000000000", T0_NS),
    ("yesterday", None), ("", None), ("nan", None), ("inf", None), ("-1", None), ("1e300", None), (None, None),
    ("1960-01-01T00:00:00Z", None), ("9999-12-31T23:59:59Z", None),
])
def test_a_moment(written: str | None, expected: int | None) -> None:
    assert moment(written) == expected


def view_with_times(*times: tuple[Any, float | None]) -> View:
    made = [with_times(pair, *when) for pair, when in zip(cut_text(*SHORT), times, strict=True)]
    return show(*made)


def test_recorded_times_are_kept() -> None:
    seen = view_with_times((T0, 1500), ("2026-01-02T03:04:08Z", 500), ("2026-01-02T03:04:09Z", 250))
    turn, *answers = spans(seen, NOW)
    second = 10**9
    assert [(span.start - T0_NS, span.end - T0_NS) for span in answers] == [
        (0, 1_500_000_000), (3 * second, 3_500_000_000), (4 * second, 4_250_000_000)]
    assert (turn.start, turn.end) == (answers[0].start, answers[-1].end)
    assert {span.attributes["loop_inspector.times"] for span in (turn, *answers)} == {"recorded"}
    values = {point.name: point.value for point in points(seen)}
    assert values[conventions.CONTINUED] == 4.25
    assert [point.value for point in points(seen) if point.name == conventions.DURATION] == [1.5, 0.5, 0.25]
    assert conventions.CONTINUED_UNTIMED not in values


def test_without_times_there_is_an_order_and_no_length() -> None:
    seen = view_with_times((None, None), (None, None), (None, None))
    turn, *answers = spans(seen, NOW)
    assert [(span.start, span.end) for span in answers] == [(NOW + at * 1_000,) * 2 for at in range(3)]
    assert {span.attributes["loop_inspector.times"] for span in (turn, *answers)} == {"order"}
    names_of = {point.name for point in points(seen)}
    assert conventions.DURATION not in names_of
    assert conventions.CONTINUED not in names_of
    assert conventions.CONTINUED_UNTIMED in names_of


def test_half_of_the_times() -> None:
    seen = view_with_times((T0, None), (None, 500), (None, None))
    turn, *answers = spans(seen, NOW)
    assert [span.attributes["loop_inspector.times"] for span in answers] == ["start", "length", "order"]
    assert [span.end - span.start for span in answers] == [0, 500_000_000, 0]
    assert turn.attributes["loop_inspector.times"] == "order"
    assert all(one.end <= other.start for one, other in itertools.pairwise(answers))
    assert conventions.CONTINUED_UNTIMED in {point.name for point in points(seen)}


# -- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_of_a_turn_that_was_continued() -> None:
    seen = show(*cut_text(*SHORT))
    made = points(seen)
    by: dict[str, list[OtelPoint]] = {}
    for point in made:
        by.setdefault(point.name, []).append(point)
    attempts = len(SHORT) - 1
    assert [point.value for point in by[conventions.CONTINUATIONS]] == [attempts]
    assert [point.value for point in by[conventions.ATTEMPTS]] == [attempts]
    assert [point.attributes["loop_inspector.stop.normalized"] for point in by[conventions.RESPONSES]] == [
        facts.judgement.stop.normalized.value for facts in seen.responses]
    assert [point.attributes["loop_inspector.turn.terminal_reason"] for point in by[conventions.TURNS]] == ["completed"]
    outputs = [point.value for point in by[conventions.TOKEN_USAGE]
               if point.attributes[conventions.TOKEN_TYPE] == "output"]
    assert outputs == [facts.exchange.response.usage.output_tokens for facts in seen.responses]  # type: ignore[union-attr]
    assert set(by) <= set(conventions.INSTRUMENTS)


def test_calls_are_counted_by_what_the_gate_said(run: View) -> None:
    calls = [point for point in points(run) if point.name == conventions.CALLS]
    assert [(point.value, point.attributes["loop_inspector.call.admission"]) for point in calls] == [(1, "held")]


def test_only_the_turns_that_were_asked_for() -> None:
    seen = show(*cut_text(*SHORT), pair_of([user("Another.")], chat("Yes.")))
    assert len(seen.turns) == 2
    (turn, _) = spans(seen, NOW, only=[1])
    assert turn.attributes["loop_inspector.turn.id"] == seen.turns[1].id
    assert [point.value for point in points(seen, [1]) if point.name == conventions.TURNS] == [1]


def test_every_metric_is_made_of_some_session() -> None:
    """Sample 05 and the three below have them all."""
    streamed = json.loads(json.dumps(cut_text(*SHORT)))
    apart = [with_times(each, f"2026-01-02T03:04:{second:02}Z", 5) for second, each in enumerate(streamed)]
    made = {point.name for scene in (cut_text(*SHORT), apart, cut_call_ran()) for point in points(show(*scene))}
    limited = points(show(*cut_text(*PARTS, "more", "and more", last="length")))
    found = made | {point.name for point in limited}
    assert {"loop_inspector.truncation_exits", "loop_inspector.attempts_per_turn"} <= {p.name for p in limited}
    assert len(found) == 10, "all but the time to the first piece, which only a live run or a session file has"
    written = [json.loads(telemetry.metrics([OtelPoint(name, 1, {})], 1, 2)) for name in found]
    assert {each["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["name"] for each in written} == found


def test_a_trace_of_nothing_is_nothing() -> None:
    from inspector.replay import replay
    from inspector.replay.case import open_case
    from inspector.sessions.recording import Recording

    empty = view(replay(open_case(Recording((), (), ()))))
    assert (spans(empty, NOW), points(empty)) == ((), ())


def test_hostile_words_do_no_harm() -> None:
    body = chat("x" * 10, reason="\x1b[31m\ud800 stop\n")
    seen = show(pair_of([user("\x00")], body))
    (answer,) = of(seen, "chat", with_content=True)
    assert answer.attributes["loop_inspector.stop.normalized"] == "unknown"
    for span in spans(seen, NOW, with_content=True):
        assert repr(span.attributes).encode()  # what cannot be encoded no exporter can send
        assert "\ud800" not in "".join(map(str, span.attributes.values()))
    assert json.loads(telemetry.traces(spans(seen, NOW, with_content=True)))


@each_row(("late", "known"), [
    (-1, Times.BATCH), (0, Times.BATCH), (SKEW, Times.BATCH), (SKEW + 1, Times.ORDER)])
def test_a_tool_that_seems_over_before_it_began_took_no_time(late: int, known: Times) -> None:
    """An answer's end is told by two clocks, that of a tool by one."""
    until = moment("2026-11-22T10:00:00+00:00")
    when = Clock(0).tool(until + late, "2026-11-22T10:00:00+00:00")
    assert when.basis is known
    assert when.end == until
    assert when.start == (until if late > 0 else until + late)
