"""Every sequence of responses halts within the limits, with a history that any backend takes; more is never less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_core.judge.gate import Admission
from loop_core.turn.costs import REFUSALS
from loop_core.turn.history import Ability
from loop_core.turn.limits import SHORT_NAMES, Limits
from loop_core.turn.loop import steps_from
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import Event, ProviderResponse, State
from loop_core.turn.trace import Step, StepIdentity, Trace, step_key
from loop_core.values import CallKind, OpaquePart, ReasoningPart, Stop, ToolCall
from tests.scenes.rows import each_row, share
from tests.scenes.turns import (
    CUT,
    REQUEST,
    ScriptedSource,
    alphabet,
    answer,
    check_requests,
    dispatches,
    drive,
    last,
)

ABC = alphabet()
NAMES = list(ABC)
ENDINGS = frozenset({
    "completed", "retry_limit", "budget_exhausted", "safety_blocked", "context_window_exceeded", "cancelled",
    "interrupted", "error", "no_progress", "repair_failed", "step_limit", "stuck", "no_answer",
})


def bound(limits: Limits) -> int:
    """The most requests that a turn can make: each after the first is paid for by one of these."""
    return (1 + limits.continuation_max_attempts + limits.continuation_tool_repair_attempts + limits.max_tool_steps
            + limits.max_resumes + limits.max_empty_retries + len(REFUSALS))


LEAST = Limits(continuation_max_attempts=1, continuation_tool_repair_attempts=1, max_tool_steps=1, max_resumes=1,
               max_empty_retries=0)
NEWER = ("nothing", "thought", "no call", "refused")
"""What has bounds of its own: looked at with few others beside it, since a tree grows fast."""
KINDS = [name for name in ABC if name not in NEWER]


def paths(
    limits: Limits, among: Sequence[str] = KINDS, begins: Sequence[str] = (), **more: Any
) -> Iterator[tuple[tuple[str, ...], Trace]]:
    """Every sequence of responses that a turn can meet, to its end: those that it still waits after are continued.

    `begins`: only those that begin with one of these.
    """
    waiting: list[tuple[tuple[str, ...], tuple[Step, ...]]] = [((), drive((), limits, **more).steps[:-1])]
    while waiting:
        longer: list[tuple[tuple[str, ...], tuple[Step, ...]]] = []
        for names, before in waiting:
            for name in among if names else begins or among:
                # A turn is a value: it goes on from the request that its last sequence left unanswered.
                trace = Trace((*before, *steps_from(before[-1], ScriptedSource([ABC[name]]))))
                if last(trace).terminal == "unrecorded":
                    longer.append(((*names, name), trace.steps[:-1]))
                yield (*names, name), trace
        waiting = longer


def test_a_sequence_that_goes_on_is_the_one_that_is_driven_from_its_beginning() -> None:
    for names, trace in paths(LEAST):
        if len(names) > 3:
            return
        assert trace.steps == drive([ABC[name] for name in names], LEAST).steps, names


def check_safety(trace: Trace) -> None:
    """What runs belongs to the response at hand, is ready or rejected, and stands under the word that authorises it."""
    for step in trace.steps:
        if step.state is not State.EXECUTE_TOOLS:
            continue
        seen = step.turn.evaluation
        assert seen is not None
        for effect in dispatches(Trace((step,))):
            assert effect.batch
            assert seen.judgement.stop.normalized is Stop.TOOL_CALL
            assert all(verdict.admission is Admission.READY for verdict in effect.released)
            for verdict in effect.batch:
                assert verdict.admission is not Admission.HELD
                assert any(verdict.call is each for each in seen.response.tool_calls)
                assert verdict.call.closed


@pytest.mark.parametrize("prefill", [False, True])
def test_every_sequence_of_responses_halts(prefill: bool) -> None:
    """The whole tree: with these limits no sequence is longer than the bound, so that nothing is left out. A share is
    what follows one of the first responses after which a turn goes on; each goes on to the bound."""
    limits = LEAST
    deepest = 0
    goes_on = [name for name in KINDS if last(drive([ABC[name]], limits)).terminal == "unrecorded"]
    begins = [name for name in KINDS if name not in goes_on] + share(goes_on, prefill)
    for names, trace in paths(limits, begins=begins, ability=Ability(prefill=prefill)):
        turn = last(trace)
        assert turn.spend.requests <= bound(limits), names
        assert len(names) <= bound(limits), names
        assert turn.terminal in ENDINGS or (turn.terminal == "unrecorded" and len(names) < bound(limits)), names
        check_requests(trace.steps)
        check_safety(trace)
        deepest = max(deepest, len(names))
    assert deepest == bound(limits) - len(REFUSALS), "the bound is reached: it is no looser than it must be"


@pytest.mark.parametrize("prefill", [False, True])
def test_every_sequence_with_nothing_and_refusals_halts(prefill: bool) -> None:
    limits = replace(LEAST, max_tool_steps=0, max_resumes=0, max_empty_retries=1)
    deepest = 0
    for names, trace in paths(limits, ("end", "text", "empty", "cut", *NEWER), ability=Ability(prefill=prefill)):
        turn = last(trace)
        assert turn.spend.requests <= bound(limits), names
        assert turn.terminal in ENDINGS or turn.terminal == "unrecorded", names
        check_requests(trace.steps)
        check_safety(trace)
        deepest = max(deepest, len(names))
    assert deepest > bound(LEAST) - len(REFUSALS), "refusals are asked about again"


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"strict"}))
def test_every_sequence_of_responses_halts_under_every_policy(name: str) -> None:
    limits = LEAST
    for names, trace in paths(limits, policy=POLICIES[name]):
        turn = last(trace)
        assert turn.spend.requests <= bound(limits), names
        assert turn.terminal in ENDINGS or (turn.terminal == "unrecorded" and len(names) < bound(limits)), names


@pytest.mark.parametrize("scope", ["turn", "response"])
def test_every_short_sequence_halts_under_the_default_limits(scope: str) -> None:
    limits = Limits(attempts_scope=scope)
    for names, trace in paths(limits):
        if len(names) > 3:
            return
        check_requests(trace.steps)
        check_safety(trace)


@each_row("name", NAMES)
@each_row("scope", ["turn", "response"])
def test_the_same_response_for_ever_halts(name: str, scope: str) -> None:
    more_than_allowed = [ABC[name]] * (bound(Limits()) + 1)
    for policy in POLICIES.values():
        trace = drive(more_than_allowed, Limits(attempts_scope=scope), policy=policy)
        assert last(trace).terminal in ENDINGS
        assert last(trace).spend.requests <= bound(Limits())
        if policy.name == "strict":
            check_requests(trace.steps)


@settings(max_examples=150)
@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4))
def test_any_cycle_of_responses_halts_under_the_default_limits(names: list[str]) -> None:
    limits = Limits()
    cycle = [ABC[name] for name in names] * 200
    turn = last(drive(cycle, limits))
    assert turn.terminal in ENDINGS
    assert turn.spend.requests <= bound(limits)
    per_response = last(drive(cycle, replace(limits, attempts_scope="response")))
    assert per_response.terminal in ENDINGS
    rounds = 1 + limits.max_tool_steps + limits.max_resumes + limits.continuation_tool_repair_attempts
    assert per_response.spend.requests <= rounds * (1 + limits.continuation_max_attempts)


# -- any response at all ---------------------------------------------------------------------------------------------

calls = st.builds(
    ToolCall, st.sampled_from(["c1", None]), st.sampled_from(["write", "now", "other", ""]),
    st.sampled_from(['{"path": "a"}', CUT, '{"path": 5}', "{}", "", None, "nonsense"]), st.booleans(),
    st.sampled_from([CallKind.FUNCTION, CallKind.CUSTOM, CallKind.SERVER]),
)
pieces = ["text", " ", "", "\n\n", ReasoningPart("hm"), ReasoningPart("", data="x"), OpaquePart("b", "{}")]
parts = st.lists(st.sampled_from(pieces) | calls, max_size=4)


@st.composite
def events(draw: st.DrawFn) -> Event:
    stop = draw(st.sampled_from(Stop))
    detail = draw(st.sampled_from([None, "echo", "token", "poll"])) if stop is Stop.PAUSED else None
    made = draw(parts)
    unique = [p._replace(id=f"c{n}") if isinstance(p, ToolCall) and p.id else p for n, p in enumerate(made)]
    return answer(stop, *unique, detail=detail, tokens=draw(st.sampled_from([None, 10, 100])))


@settings(max_examples=300)
@given(st.lists(events(), max_size=6), st.booleans(), st.sampled_from([None, 100]))
def test_whatever_comes_the_history_is_valid_and_nothing_held_runs(
    script: list[Event], prefill: bool, cap: int | None
) -> None:
    request = replace(REQUEST, max_tokens=cap)
    trace = drive(script, Limits(max_tool_steps=3), ability=Ability(prefill=prefill), request=request)
    assert last(trace).ended
    check_requests(trace.steps)
    check_safety(trace)


# -- more is never less ----------------------------------------------------------------------------------------------

RAISED: dict[str, tuple[int, ...]] = {
    "continuation_max_attempts": (0, 1, 2, 3, 8),
    "continuation_max_total_completion_tokens": (1, 100, 150, 400, 10_000),
    "continuation_max_output_chars": (1, 15, 40, 120_000),
    "continuation_tool_repair_attempts": (0, 1, 2, 5),
}
scripts = st.lists(st.sampled_from([*NAMES, *["text", "cut", "empty", "cap", "call"] * 3]), min_size=1, max_size=8)


def reads(trace: Trace) -> int:
    return sum(step.previous_state is not None and step.state is State.EVALUATE_STOP for step in trace.steps)


def vary(names: list[str]) -> list[Event]:
    """The script, with texts that differ from each other."""
    made: list[Event] = []
    for number, name in enumerate(names):
        event = ABC[name]
        if name in ("text", "cap") and isinstance(event, ProviderResponse):
            stop = event.response.stop_reason.normalized
            event = answer(stop, f"part {number} of it ", tokens=100)
        made.append(event)
    return made


def step_identity(step: Step) -> StepIdentity:
    """What makes two steps the same, the caps of their requests left out: those follow from the bound."""
    key = step_key(step)
    return key._replace(sends=tuple(send[:3] for send in key.sends))


def is_longer(short: Trace, long: Trace) -> bool:
    """The raised run makes the same steps until the lower limit stopped the other, and reads no fewer responses."""
    if reads(long) < reads(short) or len(long.steps) < len(short.steps):
        return False
    for one, other in zip(short.steps, long.steps, strict=False):
        if step_identity(one) != step_identity(other):
            return one.state is State.ABORT_PARTIAL and one.previous_state in (State.CONTINUE_PENDING,
                                                                               State.REPAIR_PENDING)
    return len(short.steps) == len(long.steps)


@pytest.mark.parametrize("name", SHORT_NAMES)
@pytest.mark.parametrize("scope", ["turn", "response"])
@settings(max_examples=60)
@given(names=scripts, data=st.data())
def test_raising_a_continuation_limit_never_shortens_a_run(
    name: str, scope: str, names: list[str], data: st.DataObject
) -> None:
    low, high = sorted(data.draw(st.lists(st.sampled_from(RAISED[name]), min_size=2, max_size=2, unique=True)))
    base = Limits(continuation_tool_repair_attempts=2, attempts_scope=scope)
    script = vary(names)
    short, long = (drive(script, replace(base, **{name: value})) for value in (low, high))
    assert is_longer(short, long)


@settings(max_examples=100)
@given(names=scripts)
def test_taking_the_derived_token_cap_away_never_shortens_a_run(names: list[str]) -> None:
    script = vary(names)
    capped = drive(script)
    uncapped = drive(script, Limits(continuation_max_total_completion_tokens=1_000_000))
    assert is_longer(capped, uncapped)


@settings(max_examples=100)
@given(names=scripts, attempts=st.integers(0, 3))
def test_counting_attempts_by_response_never_shortens_a_run(names: list[str], attempts: int) -> None:
    """Steps differ in what they count (`attempts`), so that only what was read is compared."""
    script = vary(names)
    per_turn = drive(script, Limits(continuation_max_attempts=attempts))
    per_response = drive(script, Limits(continuation_max_attempts=attempts, attempts_scope="response"))
    assert reads(per_response) >= reads(per_turn)
    assert len(per_response.steps) >= len(per_turn.steps)
    states = [step.state for step in per_turn.steps]
    longer = [step.state for step in per_response.steps[: len(states)]]
    assert states == longer or last(per_turn).terminal == "retry_limit"
