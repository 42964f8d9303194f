"""Times are those that were recorded, and say whose they are; what was not recorded is absent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report import explain, explain_document, filters
from inspector.report.facts import View, view
from inspector.report.lines import steps
from inspector.report.lines.body_slices import event_slices
from inspector.report.lines.response import response
from inspector.report.lines.spans import plain, text_of
from inspector.report.lines.steps import Outline
from inspector.report.lines.wire import wire
from inspector.report.run_answers import answer_at
from inspector.report.times_and_costs import (
    ClockSource,
    StreamGap,
    TurnTimes,
    duration_text,
    time_phrases,
    times_of,
    took_phrase,
    turn_times,
)
from inspector.sessions import open_paths
from inspector.sessions.recording import Chunk
from inspector.sessions.traffic import moment
from loop_core.values import TransportEnd
from tests.scenes import transcripts as agents
from tests.scenes.recordings import ASKS, CHAT, PARTS, chat, cut_text, pair_of, show, user
from tests.scenes.rows import each_row
from tests.sessions.test_native import HEADER

AT = "2026-01-02T03:04:05+00:00"
LATER = "2026-01-02T03:04:15+00:00"


def native(*answers: tuple[str, list[tuple[str, float]], float | None]) -> View:
    """A session file: of each answer when it was asked, its pieces with their times, and when it was over."""
    records: list[dict[str, object]] = [HEADER]
    messages: list[dict[str, object]] = [user("hi")]
    for number, (at, pieces, end) in enumerate(answers):
        key = f"r{number}"
        body = {"model": "m", "messages": messages}
        records.append({"type": "request", "id": key, "api": "openai_chat", "url": CHAT, "at": at, "body": body})
        records.append({"type": "response", "request": key, "status": 200})
        records += [{"type": "bytes", "request": key, "text": text, "ms": ms} for text, ms in pieces]
        ended = {"ms": end} if end is not None else {}
        records.append({"type": "end", "request": key, "end": "eof", **ended})
        messages = [*messages, {"role": "assistant", "content": "Hi"}, user(f"more {number}")]
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    return view(replay(open_case(open_paths(["-"], stdin=data))))


BODY = json.dumps(chat("Hi"))
PIECES = [(BODY[:10], 50.0), (BODY[10:40], 80.0), (BODY[40:60], 1_580.0), (BODY[60:], 1_600.0)]


@pytest.fixture(scope="module")
def timed_view() -> View:
    return native((AT, PIECES, 1_700.0))


def test_an_exchange_has_the_times_of_its_pieces(timed_view: View) -> None:
    times = times_of(timed_view.responses[0].exchange)
    assert times is not None
    assert times == (ClockSource.WIRE, AT, 1_700.0, 50.0, StreamGap(1_500.0, 40), 4)


def test_the_wait_before_the_end_is_a_gap(timed_view: View) -> None:
    stalled = native((AT, PIECES, 61_600.0))
    times = times_of(stalled.responses[0].exchange)
    assert times is not None
    assert times.largest_gap == StreamGap(60_000.0, len(BODY))
    assert "largest gap 1 min 0 s before the end" in time_phrases(stalled.responses[0].exchange)
    assert "largest gap 1.5 s at byte 40" in time_phrases(timed_view.responses[0].exchange)
    at_once = native((AT, [(BODY, 50.0)], 50.2)).responses[0].exchange
    assert time_phrases(at_once) == ["first byte after 50 ms", "whole after 50 ms", f"sent {AT}"], "no gap of 0 ms"


def test_what_was_not_recorded_is_absent() -> None:
    found = show(pair_of(ASKS, chat("Hi")))
    assert times_of(found.responses[0].exchange) is None
    assert turn_times(found, found.turns[0]) is None
    document = explain_document.document(found)
    assert "times" not in document["responses"][0]
    assert "times" not in document["turns"][0]
    assert "times:" not in explain.text(found)
    assert "took" not in explain.text(found)
    assert "times" not in plain(response(found, found.responses[0]).lines)


@pytest.mark.parametrize(("changes", "known"), [
    ({"duration_ms": -1.0, "chunks": ()}, {"clock": "wire", "started": AT}),
    ({"duration_ms": float("nan"), "chunks": ()}, {"clock": "wire", "started": AT}),
    ({"duration_ms": float("inf"), "chunks": ()}, {"clock": "wire", "started": AT}),
    ({"started": "yesterday", "chunks": ()}, {"clock": "wire", "duration_ms": 1_700.0}),
    ({"started": None, "duration_ms": None, "chunks": (Chunk(9, 5.0),)},
     {"clock": "wire", "first_byte_ms": 5.0, "chunks": 1}),
    ({"duration_ms": None, "chunks": (Chunk(9, 5.0), Chunk(12, 3.0))},
     {"clock": "wire", "started": AT, "first_byte_ms": 5.0, "chunks": 2}),
])
def test_times_that_cannot_be_are_left_out(
    timed_view: View, changes: dict[str, object], known: dict[str, object]
) -> None:
    facts = timed_view.responses[0]
    other = replace(facts, exchange=replace(facts.exchange, **changes))  # type: ignore[arg-type]
    document = explain_document.document(replace(timed_view, responses=(other,)))
    assert document["responses"][0]["times"] == known


def test_a_har_says_when_the_first_byte_came() -> None:
    def har(timings: object) -> float | None:
        entry = {"request": {"method": "POST", "url": CHAT, "postData": {"text": json.dumps({"messages": ASKS})}},
                 "response": {"status": 200, "content": {"text": BODY}}, "time": 900, "timings": timings}
        data = json.dumps({"log": {"version": "1.2", "entries": [entry]}}).encode()
        times = times_of(open_paths(["-"], stdin=data).exchanges[0])
        assert times is not None
        return times.first_byte_ms

    known = {"blocked": 10, "dns": 7, "connect": 30, "ssl": 20, "send": 5, "wait": 400.5, "receive": 454.5}
    assert har(known) == 452.5
    assert har({**known, "dns": -1, "blocked": None}) == 435.5
    for unknown in (None, {}, {"send": 0, "wait": 0, "receive": 0}, {**known, "wait": -1}, [], {**known, "wait": "1"}):
        assert har(unknown) is None


def test_nobody_took_any_time_for_a_simulated_answer() -> None:
    found = show(pair_of(ASKS, chat("Water, fire and earth. " * 20, tokens=100)),
                  settings=Settings(simulate=True, max_tokens=20))
    facts = answer_at(found, 1)
    assert facts is not None
    assert times_of(facts.exchange) is None
    played = native((AT, PIECES, 1_700.0))
    assert times_of(replace(played.responses[0].exchange, simulated=True)) is None


# -- rows of a transcript --------------------------------------------------------------------------------------------


def test_the_time_of_a_row_is_called_one(tmp_path: Path) -> None:
    rows = agents.claude(agents.prompt("hi"), agents.block(agents.text("Hello."), stop="end_turn"))
    found = agents.show(rows, tmp_path)
    exchange = found.responses[0].exchange
    times = times_of(replace(exchange, started=AT))
    assert times == (ClockSource.RECORDER, AT, None, None, None, None)
    first, second = time_phrases(replace(exchange, started=AT))
    assert (first, second) == (f"row written {AT}", "claude-code's clock; when bytes came was not recorded")


# -- turns -----------------------------------------------------------------------------------------------------------


def test_a_turn_took_from_its_first_request_to_the_end_of_its_last_answer() -> None:
    found = native((AT, PIECES, 1_700.0))
    assert turn_times(found, found.turns[0]) == (ClockSource.WIRE, AT, 1_700.0, 1_700.0)
    assert "  took 1.7 s\n" in explain.text(found)
    (turn,) = explain_document.document(found)["turns"]
    assert turn["times"] == {"clock": "wire", "started": AT, "duration_ms": 1_700.0, "answers_ms": 1_700.0}


def test_without_the_time_of_day_only_the_answers_of_a_turn_are_known() -> None:
    def over(started: str | None, *lengths: float | None) -> TurnTimes | None:
        found = show(*cut_text(*PARTS[:3]))
        answers = [replace(facts, exchange=replace(facts.exchange, started=started, duration_ms=ms))
                   for facts, ms in zip(found.responses, lengths, strict=True)]
        return turn_times(replace(found, responses=tuple(answers)), found.turns[0])

    assert over(None, 100.0, 200.0, 300.0) == (ClockSource.WIRE, None, None, 600.0)
    assert took_phrase(over(None, 100.0, 200.0, 300.0) or TurnTimes(ClockSource.WIRE)) == (
        "took 600 ms in its answers; the time between them was not recorded")
    assert over(None, 100.0, None, 300.0) is None
    assert over(AT, None, None, None) == (ClockSource.WIRE, AT, None, None)
    assert over(AT, 100.0, 200.0, 300.0) == (ClockSource.WIRE, AT, None, 600.0)  # all of them at one time of day
    assert took_phrase(TurnTimes(ClockSource.WIRE, AT)) == ""


def test_rows_say_how_far_the_first_and_the_last_are_apart(tmp_path: Path) -> None:
    rows = agents.claude(
        agents.prompt("hi"), agents.block(agents.use(file_path="a"), stop="tool_use"), agents.result("ok"),
        agents.block(agents.text("Hello."), key="msg_02", stop="end_turn"))
    found = agents.show(rows, tmp_path)
    assert len(found.turns) == 1
    one, other = found.responses
    changed = replace(found, responses=(
        replace(one, exchange=replace(one.exchange, started=AT)),
        replace(other, exchange=replace(other.exchange, started=LATER))))
    assert turn_times(changed, changed.turns[0]) == (ClockSource.RECORDER, AT, 10_000.0, None)
    assert "took 10.0 s, from the first to the last row of its answers" in explain.text(changed)


def test_views_show_the_times(timed_view: View) -> None:
    facts = timed_view.responses[0]
    told = f"first byte after 50 ms · whole after 1.7 s · largest gap 1.5 s at byte 40 · sent {AT}"
    assert f"times          {told}" in plain(response(timed_view, facts).lines)
    assert f"times {told}" in [text_of(wire(facts, "raw").line(index)) for index in range(6)]
    assert f"    times: {told.replace(' · ', ', ')}\n" in explain.text(timed_view)
    outline = Outline(timed_view)
    assert text_of(steps.row(outline, outline.row_of(1), 0)).endswith("EvaluateStop        end_turn 1.7 s")
    assert not text_of(steps.row(outline, outline.row_of(2), 0)).endswith(" s")
    narrow = text_of(steps.row(outline, outline.row_of(1), 0, width=40))
    assert narrow.endswith("EvaluateStop        end_turn")  # no half of a time, which would be read as another one


def test_only_an_answer_whose_end_came_is_called_whole(timed_view: View) -> None:
    unended = native((AT, PIECES[:2], 1_700.0)).responses[0].exchange
    found = timed_view.responses[0].exchange
    reset = replace(found, response=replace(found.response, transport_end=TransportEnd.RESET))
    assert [time_phrases(each)[1] for each in (found, unended, reset)] == [
        "whole after 1.7 s", "ended after 1.7 s", "ended after 1.7 s"]


@each_row(("ms", "words"), [
    (0, "0 ms"), (319.6, "320 ms"), (1_000, "1.0 s"), (59_900, "59.9 s"), (61_000, "1 min 1 s"),
    (3_600_000, "1 h 0 min"), (90_000_000, "25 h 0 min"),
])
def test_durations_have_a_unit_that_fits(ms: float, words: str) -> None:
    assert duration_text(ms) == words


@each_row(("said", "seconds"), [
    ("2026-01-01T00:00:00Z", 1767225600.0), ("2026-01-01T00:00:00", 1767225600.0),
    ("2026-01-01T01:00:00+01:00", 1767225600.0), ("1767225600", 1767225600.0), ("1767225600000", 1767225600.0),
    ("yesterday", None), ("", None), ("-5", None), (None, None),
])
def test_a_time_is_read_in_any_of_its_forms(said: str | None, seconds: float | None) -> None:
    assert moment(said) == (None if seconds is None else seconds * 1e9)


def test_a_filter_finds_what_took_long(timed_view: View) -> None:
    assert filters.steps(filters.parse("took>=1700"), timed_view) == [1, 2]
    assert filters.steps(filters.parse("took>1700"), timed_view) == []
    unknown = show(pair_of(ASKS, chat("Hi")))
    assert filters.steps(filters.parse("took>=0"), unknown) == []


def test_an_event_that_was_waited_for_says_how_long() -> None:
    events = [f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': word}}]})}\n\n" for word in "abcd"]
    waited = native((AT, list(zip(events, (40.0, 80.0, 2_980.0, 3_000.0), strict=True)), 3_100.0))
    slices, _ = event_slices(waited.responses[0].exchange)
    assert [each.label for each in slices] == ["+40ms", "+80ms", "+2,980ms after 2.9 s", "+3,000ms"]
