"""Answers by their place in a turn: a recording is never matched by text, and ends where it ends."""

from __future__ import annotations

from loop_core.turn.limits import Limits
from loop_core.turn.loop import NO_RECORDED_ANSWER, Plan, RecordedSource, run
from loop_core.turn.moves import NOTICES
from loop_core.turn.state import ProviderResponse, RequestPlace, State
from loop_core.turn.trace import Trace
from loop_core.values import ToolResultPart
from tests.scenes.turns import REQUEST, ScriptedSource, alphabet, drive, last, path

ABC = alphabet()
RESULTS = (ToolResultPart("c1", "write", "ok"), ToolResultPart("c2", "now", "noon"))


def source_of(*places: tuple[RequestPlace, int, str],
              results: dict[int, tuple[ToolResultPart, ...]] | None = None) -> RecordedSource:
    made = []
    for place, ordinal, name in places:
        event = ABC[name]
        assert isinstance(event, ProviderResponse)
        made.append((place, ordinal, event))
    return RecordedSource(tuple(made), results or {})


def play(source: RecordedSource, limits: Limits | None = None) -> Trace:
    return run("t", REQUEST, source, Plan(limits or Limits()))


def test_every_place_is_answered_by_its_own_answer() -> None:
    source = source_of(
        (RequestPlace.REQUEST, 0, "text"), (RequestPlace.CONTINUATION, 1, "cut"), (RequestPlace.REPAIR, 1, "call"),
        (RequestPlace.REQUEST, 1, "paused"), (RequestPlace.RESUME, 1, "end"), results={0: RESULTS},
    )
    trace = play(source)
    assert last(trace).terminal == "completed"
    assert last(trace).spend.requests == 5
    assert [part.text for part in last(trace).history[-2].results or last(trace).history[-1].results] == ["ok", "noon"]


def test_an_answer_at_another_place_is_none() -> None:
    """The recorded agent continued where this loop asks for a repair."""
    trace = play(source_of((RequestPlace.REQUEST, 0, "cut"), (RequestPlace.CONTINUATION, 1, "end")))
    assert path(trace)[-2:] == [State.REQUEST_TOOL_REPAIR, State.UNRECORDED]
    assert last(trace).notice == NO_RECORDED_ANSWER


def test_a_recording_ends_where_it_ends() -> None:
    ended = last(play(source_of((RequestPlace.REQUEST, 0, "text"))))
    assert (ended.terminal, ended.notice) == ("unrecorded", NOTICES["unrecorded"])
    assert last(play(source_of())).terminal == "unrecorded"


def test_without_recorded_results_the_recording_ends_at_the_tools() -> None:
    trace = play(source_of((RequestPlace.REQUEST, 0, "call"), (RequestPlace.REQUEST, 1, "end")))
    assert path(trace)[-2:] == [State.EXECUTE_TOOLS, State.UNRECORDED]


def test_a_recorded_turn_has_no_follow_ups_of_its_own() -> None:
    trace = play(source_of((RequestPlace.REQUEST, 0, "end")))
    assert {step.turn.id for step in trace.steps} == {"t"}


def test_raised_limits_read_further_into_the_same_recording() -> None:
    source = source_of((RequestPlace.REQUEST, 0, "text"), (RequestPlace.CONTINUATION, 1, "end"))
    assert last(play(source, Limits(continuation_max_attempts=0))).terminal == "retry_limit"
    assert last(play(source, Limits(continuation_max_attempts=1))).terminal == "completed"


def test_a_script_keeps_what_was_asked_of_it() -> None:
    source = ScriptedSource([ABC["call"], ABC["end"]])
    drive([], source=source)
    assert [send.place for send in source.requests] == [RequestPlace.REQUEST, RequestPlace.REQUEST]
    assert len(source.batches) == 1
