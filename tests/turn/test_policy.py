"""What a policy believes: for every word what it leads to, with a call and without one."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from loop_core.errors import CallerError
from loop_core.turn.continuation import Method
from loop_core.turn.machine import step
from loop_core.turn.policy import STRICT, Policy
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import State
from loop_core.values import CallKind, Stop
from tests.scenes.rows import each_row
from tests.scenes.turns import CUT, answer, call, dispatches, drive, last, path, sends

WITHOUT: dict[Stop, State] = {
    Stop.END_TURN: State.COMPLETE,
    Stop.TOOL_CALL: State.ABORT_PARTIAL,
    Stop.MAX_TOKENS: State.CONTINUE_PENDING,
    Stop.MALFORMED_TOOL_CALL: State.REPAIR_PENDING,
    Stop.PAUSED: State.RESUME,
    Stop.SAFETY_BLOCKED: State.ABORT,
    Stop.CONTEXT_WINDOW_EXCEEDED: State.ABORT,
    Stop.CANCELLED: State.ABORT,
    Stop.INTERRUPTED: State.ABORT_PARTIAL,
    Stop.UNKNOWN: State.ABORT_PARTIAL,
    Stop.ERROR: State.ABORT_PARTIAL,
}
"""Strict: where a response without calls leads (diagram of ZeroClaw RFI 2309; `tool_call` without a call: mastra PR
#14187)."""
WITH: dict[Stop, State] = {
    **WITHOUT, Stop.TOOL_CALL: State.EXECUTE_TOOLS, Stop.MAX_TOKENS: State.REPAIR_PENDING,
    Stop.END_TURN: State.REPAIR_PENDING,
}
"""Strict: where a response with a call leads. Under an end of turn it is one without an input: not promoted."""
WITHOUT_INPUT = call(None, "shell", kind=CallKind.CUSTOM)


@each_row("stop", list(Stop))
def test_strict_reads_every_word(stop: Stop) -> None:
    assert path(drive([answer(stop, "text")]))[2] is WITHOUT[stop]
    made = WITHOUT_INPUT if stop is Stop.END_TURN else call()
    assert path(drive([answer(stop, "text", made)]))[2] is WITH[stop]


def test_strict_runs_only_what_is_authorised() -> None:
    """BotNexus PR 1676: only a ToolUse terminal authorises execution."""
    for stop in set(Stop) - {Stop.TOOL_CALL}:
        made = WITHOUT_INPUT if stop is Stop.END_TURN else call()
        assert not dispatches(drive([answer(stop, "text", made)]))
    assert dispatches(drive([answer(Stop.TOOL_CALL, call())]))


def test_strict_takes_a_stream_without_a_reason_at_its_cap_for_a_budget_cut() -> None:
    """The MiMo stream of Zoo Code's analysis."""
    assert path(drive([answer(Stop.INTERRUPTED, "text", tokens=100)]))[2] is State.CONTINUE_PENDING
    assert path(drive([answer(Stop.INTERRUPTED, call(CUT, closed=False), tokens=100)]))[2] is State.REPAIR_PENDING
    assert path(drive([answer(Stop.INTERRUPTED, "text", tokens=99)]))[2] is State.ABORT_PARTIAL


# -- how a policy continues ------------------------------------------------------------------------------------------


@each_row(("changes", "why"), [
    ({"reads": "effective"}, "reads: expected ReasonSource, not str"),  # as text it would be read as `mapped`
    ({"dispatch": "ready"}, "dispatch: expected Dispatch, not str"),
    ({"batch": "whole"}, "batch: expected BatchRule, not str"),
    ({"lacks": "tokens"}, "lacks: expected frozenset, not str"),
    ({"signals": {}}, "signals: expected a row for each stop reason .* such as end_turn, "),
])
def test_a_policy_whose_rule_is_no_rule_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(CallerError, match=why):
        replace(STRICT, **changes)


def test_a_policy_without_methods_never_continues() -> None:
    never = Policy("never", "Cuts are final", methods=())
    for parts in (("text",), ()):
        trace = drive([answer(Stop.MAX_TOKENS, *parts, tokens=5), answer(Stop.END_TURN, "more")], policy=never)
        assert last(trace).terminal == "retry_limit"
        assert last(trace).notice == "The answer is incomplete: it was cut, and this loop has no way to continue it."
        assert len(sends(trace)) == 1


def test_a_method_that_the_server_refuses_is_not_used() -> None:
    prefills = Policy("prefill", "Prefill or nothing", methods=(Method.PREFILL,))
    trace = drive([answer(Stop.MAX_TOKENS, "text", tokens=5)], policy=prefills)
    assert last(trace).terminal == "retry_limit"
    empty = drive([answer(Stop.MAX_TOKENS, tokens=5), answer(Stop.END_TURN, "all")], policy=prefills)
    assert [send.method for send in sends(empty)] == [Method.FIRST, Method.BOOST]


@each_row("name", POLICIES)
def test_a_turn_is_stored_and_goes_on_under_its_policy(name: str) -> None:
    """Also in another process; the tables stay locked, so that nobody changes what a preset decides."""
    trace = drive([answer(Stop.MAX_TOKENS, "Half of "), answer(Stop.END_TURN, "it.")], policy=POLICIES[name])
    turn = trace.steps[1].turn
    for stored in (pickle.loads(pickle.dumps(turn)), copy.deepcopy(turn)):
        assert stored.policy == turn.policy == POLICIES[name]
        assert type(stored.policy.signals) is MappingProxyType
        assert step(stored)[0].state is step(turn)[0].state
