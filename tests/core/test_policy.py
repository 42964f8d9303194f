"""What a policy believes: for every word what it leads to, with a call and without one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_scenes import CUT, GOOD, REQUEST, answer, call, dispatched, drive, last, path, sends

from loop_core.errors import CallerError
from loop_core.loop import Plan, run
from loop_core.policy import PI_PRESENCE, STRICT, Policy, named
from loop_core.seam import Method
from loop_core.sources import Scripted
from loop_core.tools import Toolbox
from loop_core.turn import State
from loop_core.values import OpaquePart, Stop, TextPart

WITHOUT: dict[Stop, State] = {
    Stop.END_TURN: State.COMPLETE,
    Stop.TOOL_CALL: State.COMPLETE,
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
"""Strict: where a response without calls leads (seed 000's diagram; `tool_call` without a call: mastra PR #14187)."""
WITH: dict[Stop, State] = {**WITHOUT, Stop.TOOL_CALL: State.EXECUTE_TOOLS, Stop.MAX_TOKENS: State.REPAIR_PENDING}
"""Strict: where a response with a call leads. Under an end of turn it is one that its schema refuses: not promoted."""


@pytest.mark.parametrize("stop", list(Stop))
def test_strict_reads_every_word(stop: Stop) -> None:
    assert path(drive([answer(stop, "text")]))[2] is WITHOUT[stop]
    arguments = '{"path": 5}' if stop is Stop.END_TURN else GOOD
    assert path(drive([answer(stop, "text", call(arguments))]))[2] is WITH[stop]


def test_strict_runs_only_what_is_authorised() -> None:
    """Seed 003: only a ToolUse terminal authorises execution."""
    for stop in set(Stop) - {Stop.TOOL_CALL}:
        arguments = '{"path": 5}' if stop is Stop.END_TURN else GOOD
        assert not dispatched(drive([answer(stop, "text", call(arguments))]))
    assert dispatched(drive([answer(Stop.TOOL_CALL, call())]))


def test_strict_takes_a_stream_without_a_reason_at_its_cap_for_a_budget_cut() -> None:
    """The MiMo stream of seed 001."""
    assert path(drive([answer(Stop.INTERRUPTED, "text", tokens=100)]))[2] is State.CONTINUE_PENDING
    assert path(drive([answer(Stop.INTERRUPTED, call(CUT, closed=False), tokens=100)]))[2] is State.REPAIR_PENDING
    assert path(drive([answer(Stop.INTERRUPTED, "text", tokens=99)]))[2] is State.ABORT_PARTIAL


# -- pi-presence (seed 002) ------------------------------------------------------------------------------------------

RUNS = {Stop.END_TURN, Stop.TOOL_CALL, Stop.MAX_TOKENS, Stop.MALFORMED_TOOL_CALL, Stop.PAUSED, Stop.INTERRUPTED}
"""The words under which pi runs any call it sees: all but those that it takes for an error or an abort."""


@pytest.mark.parametrize("stop", list(Stop))
def test_pi_runs_whatever_is_present_but_under_error_and_abort(stop: Stop) -> None:
    """Seed 002, agent-loop.js:59: the second and third mark."""
    with_call = drive([answer(stop, "text", call(CUT, closed=False))], policy=PI_PRESENCE)
    assert bool(dispatched(with_call)) == (stop in RUNS)
    without = last(drive([answer(stop, "text")], policy=PI_PRESENCE))
    assert without.terminal == ("completed" if stop in RUNS else "cancelled" if stop is Stop.CANCELLED else "error")


@pytest.mark.parametrize(("stop", "taken_for"), [
    (Stop.SAFETY_BLOCKED, Stop.ERROR),  # refusal and sensitive -> "error"
    (Stop.PAUSED, Stop.END_TURN),  # pause_turn -> "stop"
    (Stop.CONTEXT_WINDOW_EXCEEDED, Stop.ERROR),  # no row: the switch throws
    (Stop.UNKNOWN, Stop.ERROR),  # no row: the switch throws
    (Stop.END_TURN, Stop.END_TURN),
    (Stop.TOOL_CALL, Stop.TOOL_CALL),
    (Stop.MAX_TOKENS, Stop.MAX_TOKENS),
])
def test_pi_maps_its_reasons_as_the_seed_shows(stop: Stop, taken_for: Stop) -> None:
    """Seed 002, anthropic.js:681, mapStopReason."""
    turn = last(drive([answer(stop, "text", call())], policy=PI_PRESENCE))
    assert turn.evaluated is not None
    assert turn.evaluated.word is taken_for


def test_pi_goes_by_the_mapped_reason_and_does_not_continue_text() -> None:
    cut_under_a_lie = answer(Stop.TOOL_CALL, call(CUT))
    assert cut_under_a_lie.judged.stop.normalized is Stop.MAX_TOKENS
    assert dispatched(drive([cut_under_a_lie], policy=PI_PRESENCE))
    assert not dispatched(drive([cut_under_a_lie]))
    assert last(drive([answer(Stop.MAX_TOKENS, "text")], policy=PI_PRESENCE)).terminal == "completed"
    assert last(drive([answer(Stop.INTERRUPTED, "text", tokens=100)], policy=PI_PRESENCE)).terminal == "completed"


def test_no_held_call_runs_under_any_policy_with_our_tools() -> None:
    """A preset shows what another loop would do; the toolbox still runs nothing that the gate did not release."""
    ran: list[object] = []
    box = Toolbox({"write": lambda arguments: ran.append(arguments) or "ok"})

    class Live(Scripted):
        run_tools = staticmethod(box.run)

    source = Live([answer(Stop.MAX_TOKENS, call(CUT, closed=False)), answer(Stop.END_TURN, "done")])
    trace = run("t", REQUEST, source, Plan(policy=PI_PRESENCE))
    assert dispatched(trace)
    assert ran == []
    assert last(trace).history[-1].results[0].text.startswith("Not run")


# -- how a policy continues ------------------------------------------------------------------------------------------


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


def test_presets_are_found_by_name() -> None:
    assert named("strict") is STRICT
    assert named("pi-presence") is PI_PRESENCE
    with pytest.raises(CallerError, match="strict, pi-presence"):
        named("lax")
    assert all(policy.cites for policy in (STRICT, PI_PRESENCE))


def test_pi_sends_back_what_it_received() -> None:
    opaque = OpaquePart("block", "{}")
    cut = answer(Stop.MAX_TOKENS, "text", opaque, call(CUT))
    turn = last(drive([cut, answer(Stop.END_TURN, "x")], policy=PI_PRESENCE))
    assert [message.parts for message in turn.history if message.role.value == "assistant"] == [
        (TextPart("text"), opaque, call(CUT)),
    ]


@pytest.mark.parametrize("stop", list(Stop))
def test_presence_itself_knows_no_word_but_error_and_abort(stop: Stop) -> None:
    """Without pi's own reading of the reasons every other word would run a call."""
    believes = replace(PI_PRESENCE, name="presence", reason_map={})
    ran = bool(dispatched(drive([answer(stop, call(CUT))], policy=believes)))
    assert ran == (stop not in (Stop.ERROR, Stop.CANCELLED))
    ended = last(drive([answer(stop, "text")], policy=believes)).terminal
    assert ended == {Stop.ERROR: "error", Stop.CANCELLED: "cancelled"}.get(stop, "completed")
