"""The continuation state machine: `step(turn, event) -> (turn, effects)`.

Every move of a turn is a row of `TRANSITIONS`; a missing row is an illegal move. One call of `step` makes one
transition, so a debugger can stop at each. The machine has no clock, no randomness and no I/O: responses are judged
before they arrive as events, and a driver carries out the returned effects. The machine knows no wire format; it reads
responses only as `ChatResponse`.

    Request ─▶ EvaluateStop ─▶ ExecuteTools ─▶ Request …
                   ├─▶ ContinuePending ─▶ RequestContinuation ─▶ EvaluateStop …
                   ├─▶ RepairPending ─▶ RequestToolRepair ─▶ EvaluateStop …
                   ├─▶ Resume ─▶ EvaluateStop …
                   ├─▶ NudgePending ─▶ RequestNudge ─▶ EvaluateStop …
                   └─▶ Complete | Abort | AbortPartial ─▶ Complete

`AbortPartial` passes into `Complete`, as in the state diagram of ZeroClaw RFI 2309. The last state alone therefore does
not show how a turn ended: read `Turn.outcome` (the state in which it was decided) and `Turn.terminal` (why).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from loop_core.errors import TransitionError, check_kinds
from loop_core.turn import costs, moves
from loop_core.turn.continuation import Method
from loop_core.turn.history import Ability, default_ability
from loop_core.turn.limits import Limits, Spend
from loop_core.turn.policy import ENDING_SIGNALS, STRICT, Policy, Signal, is_runnable, policy_ending
from loop_core.turn.state import (
    Cancel,
    Effect,
    Event,
    NotRecorded,
    ProviderResponse,
    RequestPlace,
    Send,
    State,
    Tick,
    ToolResults,
    Turn,
)
from loop_core.values import Request, Stop


class Transition(NamedTuple):
    """The state that a signal leads to. `terminal` is the terminal reason that the turn gets, None if it goes on."""

    to: State
    terminal: str | None = None


# Short names, so that each row of the table below fits on one line.
_R, _E, _X = State.REQUEST, State.EVALUATE_STOP, State.EXECUTE_TOOLS
_CP, _RC, _RP, _RR = State.CONTINUE_PENDING, State.REQUEST_CONTINUATION, State.REPAIR_PENDING, State.REQUEST_TOOL_REPAIR
_NP, _RN = State.NUDGE_PENDING, State.REQUEST_NUDGE
_RS, _AP, _A, _C, _U = State.RESUME, State.ABORT_PARTIAL, State.ABORT, State.COMPLETE, State.UNRECORDED

TRANSITIONS: Mapping[tuple[State, Signal], Transition] = {
    (_R, Signal.PROVIDER_RESPONSE): Transition(_E),
    (_R, Signal.CANCELLED): Transition(_A, "cancelled"),
    (_R, Signal.NOT_RECORDED): Transition(_U, "unrecorded"),
    (_E, Signal.END_TURN): Transition(_C, "completed"),
    (_E, Signal.TOOL_CALL): Transition(_X),
    (_E, Signal.MAX_TOKENS): Transition(_CP),
    (_E, Signal.ANCHOR_MISSING): Transition(_CP),
    (_E, Signal.PARTIAL_CALL): Transition(_RP),
    (_E, Signal.PAUSED): Transition(_RS),
    (_E, Signal.SAFETY_BLOCKED): Transition(_A, "safety_blocked"),
    (_E, Signal.CONTEXT_WINDOW_EXCEEDED): Transition(_A, "context_window_exceeded"),
    (_E, Signal.CANCELLED): Transition(_A, "cancelled"),
    (_E, Signal.INTERRUPTED): Transition(_AP, "interrupted"),
    (_E, Signal.NO_PROGRESS): Transition(_AP, "no_progress"),
    (_E, Signal.UNKNOWN): Transition(_AP, "error"),
    (_E, Signal.ERROR): Transition(_AP, "error"),
    (_E, Signal.STUCK): Transition(_A, "stuck"),
    (_E, Signal.EMPTY): Transition(_NP),
    (_E, Signal.NO_ANSWER): Transition(_AP, "no_answer"),
    (_E, Signal.CONTINUATION_REFUSED): Transition(_CP),
    (_E, Signal.REPAIR_REFUSED): Transition(_RP),
    (_X, Signal.TOOL_RESULTS): Transition(_R),
    (_X, Signal.STEP_LIMIT): Transition(_AP, "step_limit"),
    (_X, Signal.NO_PROGRESS): Transition(_AP, "no_progress"),
    (_X, Signal.BUDGET_EXHAUSTED): Transition(_AP, "budget_exhausted"),
    (_X, Signal.CANCELLED): Transition(_A, "cancelled"),
    (_X, Signal.NOT_RECORDED): Transition(_U, "unrecorded"),
    (_CP, Signal.UNDER_LIMITS): Transition(_RC),
    # Only after ANCHOR_MISSING: the answer ended by itself, and no budget is left to request the quotation again.
    (_CP, Signal.END_TURN): Transition(_C, "completed"),
    (_CP, Signal.RETRY_LIMIT): Transition(_AP, "retry_limit"),
    (_CP, Signal.BUDGET_EXHAUSTED): Transition(_AP, "budget_exhausted"),
    (_CP, Signal.NO_PROGRESS): Transition(_AP, "no_progress"),
    (_RC, Signal.PROVIDER_RESPONSE): Transition(_E),
    (_RC, Signal.CANCELLED): Transition(_A, "cancelled"),
    (_RC, Signal.NOT_RECORDED): Transition(_U, "unrecorded"),
    (_RP, Signal.UNDER_LIMITS): Transition(_RR),
    (_RP, Signal.REPAIR_FAILED): Transition(_AP, "repair_failed"),
    (_RP, Signal.BUDGET_EXHAUSTED): Transition(_AP, "budget_exhausted"),
    (_RR, Signal.PROVIDER_RESPONSE): Transition(_E),
    (_RR, Signal.CANCELLED): Transition(_A, "cancelled"),
    (_RR, Signal.NOT_RECORDED): Transition(_U, "unrecorded"),
    (_RS, Signal.PROVIDER_RESPONSE): Transition(_E),
    (_RS, Signal.NO_PROGRESS): Transition(_AP, "no_progress"),
    (_RS, Signal.BUDGET_EXHAUSTED): Transition(_AP, "budget_exhausted"),
    (_RS, Signal.CANCELLED): Transition(_A, "cancelled"),
    (_RS, Signal.NOT_RECORDED): Transition(_U, "unrecorded"),
    (_NP, Signal.UNDER_LIMITS): Transition(_RN),
    (_NP, Signal.NO_ANSWER): Transition(_AP, "no_answer"),
    (_NP, Signal.BUDGET_EXHAUSTED): Transition(_AP, "budget_exhausted"),
    (_RN, Signal.PROVIDER_RESPONSE): Transition(_E),
    (_RN, Signal.CANCELLED): Transition(_A, "cancelled"),
    (_RN, Signal.NOT_RECORDED): Transition(_U, "unrecorded"),
    # As in the diagram of ZeroClaw RFI 2309: an aborted turn returns its partial answer; `Turn.outcome` keeps the
    # decision.
    (_AP, Signal.RETURN_PARTIAL): Transition(_C),
}
"""State and signal -> the state that they lead to. The last states (Abort, Complete, Unrecorded) have no rows, so the
turn ends in them."""


_LIMITS, _FIRST_SPEND, _TICK = Limits(), Spend(requests=1), Tick()


def begin(
    turn_id: str,
    request: Request,
    limits: Limits | None = None,
    policy: Policy = STRICT,
    ability: Ability | None = None,
    provider: str = "",
    bound_by: int | None = None,
) -> tuple[Turn, tuple[Effect, ...]]:
    """A new turn in state Request, and its first effect, for `step`; `Live` and `run` carry such effects out.

    Args:
        turn_id: a name for the turn, which its events repeat.
        request: the first request.
        limits: the hard limits; None: the defaults of `Limits`.
        policy: how the loop decides; `preset` returns one by its name.
        ability: which methods of continuation the server has; None: those that every server of the format has.
        provider: the name of the server, for events.
        bound_by: as in `Turn`.

    Raises:
        CallerError: an argument has the wrong type.
    """
    limits = limits or _LIMITS
    check_kinds(("request", request, Request), ("limits", limits, Limits), ("policy", policy, Policy))
    cap = costs.first_cap(request, limits, policy)
    send = Send(RequestPlace.REQUEST, 0, Method.FIRST, (), cap, request.tool_choice, "", "")
    turn = Turn(
        turn_id, request, provider, State.REQUEST, limits, policy, ability or default_ability(request.api),
        request.messages, spend=_FIRST_SPEND, last_send=send, bound_by=bound_by,
    )
    return turn, (send,)


def step(turn: Turn, event: Event = _TICK) -> tuple[Turn, tuple[Effect, ...]]:
    """Makes one transition and returns the turn after it and the next effects, if any.

    Without an event the turn makes the next transition, which is possible if its last effects requested nothing.

    Raises:
        TransitionError: the event cannot happen in this state.
    """
    signal = _signal(turn, event)
    row = TRANSITIONS.get((turn.state, signal))
    if row is None:
        raise TransitionError(_refusal(turn, event, signal))
    # Costs are added before the move, because the guards of the entered state compare the new counts.
    change = costs.cost(turn, event, signal)
    change["state"], change["signal"] = row.to, signal
    if row.terminal is not None:
        given_up = event.why if isinstance(event, NotRecorded) else ""
        notice = moves.printable(given_up) if given_up else moves.notice(turn, signal, row.terminal)
        change |= {"outcome": row.to, "terminal": row.terminal, "notice": notice}
    return moves.enter(turn._replace(**change))


# -- signals ---------------------------------------------------------------------------------------------------------

_EVENT_SIGNALS: Mapping[type, Signal] = {
    ProviderResponse: Signal.PROVIDER_RESPONSE,
    ToolResults: Signal.TOOL_RESULTS,
    Cancel: Signal.CANCELLED,
    NotRecorded: Signal.NOT_RECORDED,
}


_ANSWERS = frozenset({Signal.PROVIDER_RESPONSE, Signal.TOOL_RESULTS})


def _refusal(turn: Turn, event: Event, signal: Signal) -> str:
    """The message about an event that cannot happen in the turn's state, with those that can."""
    if turn.ended:
        return "the turn has ended (`Turn.ended`): no further event is possible"
    signals = {each: kind.__name__ for kind, each in _EVENT_SIGNALS.items() if (turn.state, each) in TRANSITIONS}
    waits = not _ANSWERS.isdisjoint(signals)
    if type(event) is Tick and not waits:
        return f"the policy {turn.policy.name} leads to {signal}, and the state {turn.state} has no such transition"
    expected = ", ".join(signals.values() if waits else [*signals.values(), "Tick"])
    given = type(event).__name__
    return f"in the state {turn.state}: expected {expected} (`step` without an event is Tick), not {given}"


def _signal(turn: Turn, event: Event) -> Signal:
    signal = _EVENT_SIGNALS.get(type(event))
    if signal is not None:
        # A driver that sends an answer twice must fail here, or it would be counted and appended to the history twice.
        if signal in _ANSWERS and not _waits(turn):
            raise TransitionError(f"nothing was asked for in {turn.state}")
        return signal
    if type(event) is not Tick:
        expected = ", ".join(each.__name__ for each in _EVENT_SIGNALS)
        raise TransitionError(f"event: expected {expected} or Tick, not {type(event).__name__}")
    if turn.state is State.EVALUATE_STOP:
        return signal_of(turn)
    if turn.state is State.ABORT_PARTIAL:
        return Signal.RETURN_PARTIAL
    guard_signal = moves.guard_signal(turn)
    if guard_signal is not None and turn.signal is Signal.ANCHOR_MISSING:
        return Signal.END_TURN  # no budget to ask again: the answer ended, and stays as sent
    return guard_signal or Signal.UNDER_LIMITS


def _waits(turn: Turn) -> bool:
    """Whether the turn waits for the answer to an effect. It does not if a guard stopped it when it entered its
    state."""
    if turn.state is State.EXECUTE_TOOLS:
        return moves.guard_signal(turn) is None
    return turn.state is not State.RESUME or turn.last_send is not None


def signal_of(turn: Turn) -> Signal:
    """The signal that the policy derives from the current response. Raises `TransitionError` if there is none."""
    evaluation = turn.evaluation
    if evaluation is None:
        raise TransitionError("EvaluateStop without a response")
    policy = turn.policy
    # First, because the refusal of a field that the engine added is not an answer of the model.
    if costs.current_refusal(turn) is not None:
        repair = turn.last_send is not None and turn.last_send.place is RequestPlace.REPAIR
        return Signal.REPAIR_REFUSED if repair else Signal.CONTINUATION_REFUSED
    # A cut overrides the provider's word before a column is chosen: routers say `tool_calls` over a call that the
    # budget cut (vLLM #58228).
    plain, held, released = policy.signals[Stop.MAX_TOKENS if costs.is_cut(turn) else evaluation.word]
    if not _has_real_calls(turn):
        signal = plain
    else:
        # Whether the calls may run is computed only if it changes the signal.
        signal = held if held is released or not is_runnable(policy, evaluation.verdicts) else released
    # Only an ordinary end is examined: a cut or blocked answer is not a success anyway.
    ending = policy_ending(policy, evaluation.judgement) if signal is Signal.END_TURN else None
    if ending is not None:
        signal = ENDING_SIGNALS[ending]
        if signal is Signal.EMPTY and not evaluation.judgement.ending_sure:
            signal = Signal.NO_ANSWER  # the emptiness may be intended, so nothing is requested again
        # The model was asked to continue and had nothing to add, so the text before was whole.
        elif signal is Signal.EMPTY and costs.is_text_whole(turn):
            signal = Signal.END_TURN
    elif signal is Signal.END_TURN and costs.nothing_was_read(turn):
        signal = Signal.NO_ANSWER  # the answer was not empty, so no message may tell the model that it was
    # MAX_TOKENS counts only during a repair, whose answer was cut again, so the call is still missing. Otherwise a cut
    # text is continued first.
    would_succeed = signal in _ENDS_WITHOUT_FAILURE or (turn.repairing and signal is Signal.MAX_TOKENS)
    if would_succeed and (turn.repairing or (policy.settles and turn.unrepaired)):
        return Signal.PARTIAL_CALL  # a call that was requested again did not arrive
    if signal is Signal.END_TURN and costs.misses_anchor(turn):
        return Signal.ANCHOR_MISSING
    return Signal.NO_PROGRESS if signal is Signal.END_TURN and costs.brought_nothing(turn) else signal


_ENDS_WITHOUT_FAILURE = frozenset({Signal.END_TURN, Signal.EMPTY, Signal.NO_ANSWER})
"""Signals that would end the turn without a failure although a call is still held."""


def _has_real_calls(turn: Turn) -> bool:
    evaluation = turn.evaluation
    return evaluation is not None and any(verdict.rule != "gate.phantom" for verdict in evaluation.verdicts)
