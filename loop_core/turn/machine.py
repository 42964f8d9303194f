"""The continuation state machine: `step(turn, event) -> (turn, effects)`.

Everything that moves a turn lives here, and every move is a row of `TRANSITIONS`; a missing row is an illegal move. One
call of `step` makes one transition, so a debugger can stop at each. The machine has no clock, no randomness and no I/O:
responses arrive on events already judged, effects are returned and carried out by a driver. It does not know a wire
format; it meets them in `ChatResponse`.

    Request ─▶ EvaluateStop ─▶ ExecuteTools ─▶ Request …
                   ├─▶ ContinuePending ─▶ RequestContinuation ─▶ EvaluateStop …
                   ├─▶ RepairPending ─▶ RequestToolRepair ─▶ EvaluateStop …
                   ├─▶ Resume ─▶ EvaluateStop …
                   ├─▶ NudgePending ─▶ RequestNudge ─▶ EvaluateStop …
                   └─▶ Complete | Abort | AbortPartial ─▶ Complete

Not pretty, and known: `AbortPartial` passes into `Complete` as seed 000 draws it, so a finished turn is told by
`Turn.outcome` (where it was decided) and `Turn.terminal` (why), not by its last state alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from loop_core.errors import TransitionError
from loop_core.turn import costs, moves
from loop_core.turn.history import Ability, ability_in
from loop_core.turn.limits import Limits, Spent
from loop_core.turn.policy import ENDING_SIGNALS, STRICT, Policy, Signal, ending_of, runnable
from loop_core.turn.segments import Method
from loop_core.turn.state import Cancel, Effect, Event, NotRecorded, Place, Responded, Send, State, Tick, ToolsRun, Turn
from loop_core.values import Request, Stop


class Row(NamedTuple):
    """Where a signal leads; `terminal` is the reason it gives to the turn, None while the turn goes on."""

    to: State
    terminal: str | None = None


_R, _E, _X = State.REQUEST, State.EVALUATE_STOP, State.EXECUTE_TOOLS
_CP, _RC, _RP, _RR = State.CONTINUE_PENDING, State.REQUEST_CONTINUATION, State.REPAIR_PENDING, State.REQUEST_TOOL_REPAIR
_NP, _RN = State.NUDGE_PENDING, State.REQUEST_NUDGE
_RS, _AP, _A, _C, _U = State.RESUME, State.ABORT_PARTIAL, State.ABORT, State.COMPLETE, State.UNRECORDED

TRANSITIONS: Mapping[tuple[State, Signal], Row] = {
    (_R, Signal.PROVIDER_RESPONSE): Row(_E),
    (_R, Signal.CANCELLED): Row(_A, "cancelled"),
    (_R, Signal.NOT_RECORDED): Row(_U, "unrecorded"),
    (_E, Signal.END_TURN): Row(_C, "completed"),
    (_E, Signal.TOOL_CALL): Row(_X),
    (_E, Signal.MAX_TOKENS): Row(_CP),
    (_E, Signal.ANCHOR_MISSING): Row(_CP),
    (_E, Signal.PARTIAL_CALL): Row(_RP),
    (_E, Signal.PAUSED): Row(_RS),
    (_E, Signal.SAFETY_BLOCKED): Row(_A, "safety_blocked"),
    (_E, Signal.CONTEXT_WINDOW_EXCEEDED): Row(_A, "context_window_exceeded"),
    (_E, Signal.CANCELLED): Row(_A, "cancelled"),
    (_E, Signal.INTERRUPTED): Row(_AP, "interrupted"),
    (_E, Signal.UNKNOWN): Row(_AP, "error"),
    (_E, Signal.ERROR): Row(_AP, "error"),
    (_E, Signal.STUCK): Row(_A, "stuck"),
    (_E, Signal.EMPTY): Row(_NP),
    (_E, Signal.NO_ANSWER): Row(_AP, "no_answer"),
    (_E, Signal.CONTINUATION_REFUSED): Row(_CP),
    (_E, Signal.REPAIR_REFUSED): Row(_RP),
    (_X, Signal.TOOL_RESULTS): Row(_R),
    (_X, Signal.STEP_LIMIT): Row(_AP, "step_limit"),
    (_X, Signal.NO_PROGRESS): Row(_AP, "no_progress"),
    (_X, Signal.BUDGET_EXHAUSTED): Row(_AP, "budget_exhausted"),
    (_X, Signal.CANCELLED): Row(_A, "cancelled"),
    (_X, Signal.NOT_RECORDED): Row(_U, "unrecorded"),
    (_CP, Signal.UNDER_LIMITS): Row(_RC),
    (_CP, Signal.END_TURN): Row(_C, "completed"),
    (_CP, Signal.RETRY_LIMIT): Row(_AP, "retry_limit"),
    (_CP, Signal.BUDGET_EXHAUSTED): Row(_AP, "budget_exhausted"),
    (_CP, Signal.NO_PROGRESS): Row(_AP, "no_progress"),
    (_RC, Signal.PROVIDER_RESPONSE): Row(_E),
    (_RC, Signal.CANCELLED): Row(_A, "cancelled"),
    (_RC, Signal.NOT_RECORDED): Row(_U, "unrecorded"),
    (_RP, Signal.UNDER_LIMITS): Row(_RR),
    (_RP, Signal.REPAIR_FAILED): Row(_AP, "repair_failed"),
    (_RP, Signal.BUDGET_EXHAUSTED): Row(_AP, "budget_exhausted"),
    (_RR, Signal.PROVIDER_RESPONSE): Row(_E),
    (_RR, Signal.CANCELLED): Row(_A, "cancelled"),
    (_RR, Signal.NOT_RECORDED): Row(_U, "unrecorded"),
    (_RS, Signal.PROVIDER_RESPONSE): Row(_E),
    (_RS, Signal.NO_PROGRESS): Row(_AP, "no_progress"),
    (_RS, Signal.BUDGET_EXHAUSTED): Row(_AP, "budget_exhausted"),
    (_RS, Signal.CANCELLED): Row(_A, "cancelled"),
    (_RS, Signal.NOT_RECORDED): Row(_U, "unrecorded"),
    (_NP, Signal.UNDER_LIMITS): Row(_RN),
    (_NP, Signal.NO_ANSWER): Row(_AP, "no_answer"),
    (_NP, Signal.BUDGET_EXHAUSTED): Row(_AP, "budget_exhausted"),
    (_RN, Signal.PROVIDER_RESPONSE): Row(_E),
    (_RN, Signal.CANCELLED): Row(_A, "cancelled"),
    (_RN, Signal.NOT_RECORDED): Row(_U, "unrecorded"),
    (_AP, Signal.RETURN_PARTIAL): Row(_C),
}
"""State and signal -> where they lead. The three last states (Abort, Complete, Unrecorded) have no rows: they end."""


_LIMITS, _ASKED_ONCE, _TICK = Limits(), Spent(requests=1), Tick()


def begin(
    turn_id: str,
    request: Request,
    limits: Limits | None = None,
    policy: Policy = STRICT,
    ability: Ability | None = None,
    provider: str = "",
    bound_by: int | None = None,
) -> tuple[Turn, tuple[Effect, ...]]:
    """A turn in state Request, and its first effect; `bound_by` as in `Turn`."""
    limits = limits or _LIMITS
    cap = costs.first_cap(request, limits, policy)
    send = Send(Place.REQUEST, 0, Method.FIRST, (), cap, request.tool_choice, "", "")
    turn = Turn(
        turn_id, request, provider, State.REQUEST, limits, policy, ability or ability_in(request.api),
        request.messages, spent=_ASKED_ONCE, sent=send, bound_by=bound_by,
    )
    return turn, (send,)


def step(turn: Turn, event: Event = _TICK) -> tuple[Turn, tuple[Effect, ...]]:
    """Makes one transition: the turn after it, and what is to be done next, if anything.

    Without an event the turn goes on by itself, where its last effects asked for nothing.

    Raises:
        TransitionError: the event cannot happen in this state.
    """
    signal = _signal(turn, event)
    row = TRANSITIONS.get((turn.state, signal))
    if row is None:
        raise TransitionError(f"no transition from {turn.state} on {signal}")
    change = costs.cost(turn, event, signal)
    change["state"], change["signal"] = row.to, signal
    if row.terminal is not None:
        told = event.why if isinstance(event, NotRecorded) and event.why else moves.notice(turn, signal, row.terminal)
        change |= {"outcome": row.to, "terminal": row.terminal, "notice": told}
    return moves.entered(turn._replace(**change))


# -- signals ---------------------------------------------------------------------------------------------------------

_EVENT_SIGNALS: Mapping[type, Signal] = {
    Responded: Signal.PROVIDER_RESPONSE,
    ToolsRun: Signal.TOOL_RESULTS,
    Cancel: Signal.CANCELLED,
    NotRecorded: Signal.NOT_RECORDED,
}


_ANSWERS = frozenset({Signal.PROVIDER_RESPONSE, Signal.TOOL_RESULTS})


def _signal(turn: Turn, event: Event) -> Signal:
    told = _EVENT_SIGNALS.get(type(event))
    if told is not None:
        if told in _ANSWERS and not _waits(turn):
            raise TransitionError(f"nothing was asked for in {turn.state}")
        return told
    if turn.state is State.EVALUATE_STOP:
        return read(turn)
    if turn.state is State.ABORT_PARTIAL:
        return Signal.RETURN_PARTIAL
    stopped = moves.guard_signal(turn)
    if stopped is not None and turn.signal is Signal.ANCHOR_MISSING:
        return Signal.END_TURN  # no budget to ask once more: the answer had ended, and stands as it was sent
    return stopped or Signal.UNDER_LIMITS


def _waits(turn: Turn) -> bool:
    """Whether an effect is under way; where a guard has stopped the state that was entered, none is."""
    if turn.state is State.EXECUTE_TOOLS:
        return moves.guard_signal(turn) is None
    return turn.state is not State.RESUME or turn.sent is not None


def read(turn: Turn) -> Signal:
    """What the policy makes of the response at hand.

    Raises:
        TransitionError: there is none.
    """
    seen = turn.evaluated
    if seen is None:
        raise TransitionError("EvaluateStop without a response")
    policy = turn.policy
    if costs.refusal(turn) is not None:
        return Signal.REPAIR_REFUSED if turn.sent and turn.sent.place is Place.REPAIR else Signal.CONTINUATION_REFUSED
    plain, held, released = policy.signals[Stop.MAX_TOKENS if costs.is_cut(turn) else seen.word]
    if not _counted(turn):
        signal = plain
    else:
        signal = held if held is released or not runnable(policy, seen.verdicts) else released
    ending = ending_of(policy, seen.judged) if signal is Signal.END_TURN else None
    if ending is not None:
        signal = ENDING_SIGNALS[ending]
        if signal is Signal.EMPTY and not seen.judged.ending_sure:
            signal = Signal.NO_ANSWER  # it may have been meant so: nothing is asked again
        elif signal is Signal.EMPTY and costs.nothing_left(turn):
            signal = Signal.END_TURN
    owed = signal in _PEACEFUL or (turn.repairing and signal is Signal.MAX_TOKENS)
    if owed and (turn.repairing or (policy.settles and turn.broken)):
        return Signal.PARTIAL_CALL  # a call that was asked for again has not come
    if signal is Signal.END_TURN and costs.misses_anchor(turn):
        return Signal.ANCHOR_MISSING
    return signal


_PEACEFUL = frozenset({Signal.END_TURN, Signal.EMPTY, Signal.NO_ANSWER})
"""Signals that would end the turn with a call still held."""


def _counted(turn: Turn) -> bool:
    """Whether the response holds calls, phantoms left out."""
    seen = turn.evaluated
    return seen is not None and bool(seen.verdicts) and any(v.rule != "gate.phantom" for v in seen.verdicts)
