"""Steps and traces: what makes two runs the same, and where they part."""

from __future__ import annotations

from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, run
from loop_core.turn.policy import Signal
from loop_core.turn.state import NotRecorded, State
from loop_core.turn.trace import Fidelity, first_difference, step_key
from loop_core.values import Stop
from tests.scenes.turns import CUT, ScriptedSource, alphabet, answer, call, drive

ABC = alphabet()
TEXT, MORE, END = ABC["text"], answer(Stop.MAX_TOKENS, "more ", tokens=9), ABC["end"]


def test_every_move_is_a_step_and_the_first_has_no_signal() -> None:
    steps = drive([TEXT, END]).steps
    assert [step.state for step in steps] == [
        State.REQUEST, State.EVALUATE_STOP, State.CONTINUE_PENDING, State.REQUEST_CONTINUATION, State.EVALUATE_STOP,
        State.COMPLETE,
    ]
    assert steps[0].signal is None
    assert steps[0].previous_state is None
    assert [step.signal for step in steps[1:3]] == [Signal.PROVIDER_RESPONSE, Signal.MAX_TOKENS]
    assert [step.previous_state for step in steps[1:]] == [step.state for step in steps[:-1]]


def test_two_runs_of_the_same_script_are_the_same() -> None:
    one, other = drive([TEXT, MORE, END]), drive([TEXT, MORE, END])
    assert first_difference(one, other) is None
    assert [step_key(step) for step in one.steps] == [step_key(step) for step in other.steps]


def test_another_limit_parts_two_runs_where_it_is_first_felt() -> None:
    short, long = drive([TEXT, MORE, END], Limits(continuation_max_attempts=1)), drive([TEXT, MORE, END])
    place = first_difference(short, long)
    assert place is not None
    assert short.steps[place].state is State.ABORT_PARTIAL
    assert long.steps[place].state is State.REQUEST_CONTINUATION


def test_a_run_that_ends_earlier_parts_from_the_other_at_its_end() -> None:
    whole = drive([TEXT, END])
    beginning = type(whole)(whole.steps[:3])
    assert first_difference(whole, beginning) == first_difference(beginning, whole) == 3


def test_another_call_makes_another_step() -> None:
    one = drive([answer(Stop.TOOL_CALL, call()), END])
    other = drive([answer(Stop.TOOL_CALL, call('{"path": "b"}')), END])
    assert first_difference(one, other) == 2


def test_the_end_of_a_recording_keeps_the_fidelity_of_the_step_before() -> None:
    source = ScriptedSource([TEXT, NotRecorded()])
    trace = run("t", drive([]).steps[0].turn.request, source, Plan(fidelity=Fidelity.RECORDED, run=2))
    assert trace.steps[-1].state is State.UNRECORDED
    assert {step.fidelity for step in trace.steps} == {Fidelity.RECORDED}
    assert {step.run for step in trace.steps} == {2}


def test_a_step_names_the_response_at_hand() -> None:
    trace = drive([TEXT._replace(number=7), END._replace(number=9)])
    assert [step.response for step in trace.steps] == [None, 7, 7, 7, 9, 9]


def test_records_come_in_order_of_their_moves() -> None:
    trace = drive([TEXT, answer(Stop.MAX_TOKENS, call(CUT), tokens=9), ABC["call"], END])
    assert [record["event"] for record in trace.records] == [
        "stop_reason_observed", "continuation_attempt", "stop_reason_observed", "stop_reason_observed",
        "tool_payload_repair", "stop_reason_observed", "continuation_terminated",
    ]
