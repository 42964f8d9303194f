"""The trace of a run: its steps, the structured records of each step, and metrics over many turns.

A record is a flat dict of plain values for any logger, derived from a move of the machine. This module has no clock: if
the caller passes no times, latency is reported as not recorded.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from loop_core.judge.arguments import parse
from loop_core.judge.gate import held_calls
from loop_core.turn.limits import SHORT_NAMES, Spend
from loop_core.turn.machine import step
from loop_core.turn.policy import Signal
from loop_core.turn.state import (
    Cancel,
    Effect,
    Event,
    Finish,
    ProviderResponse,
    Recut,
    RequestPlace,
    RunTools,
    Send,
    State,
    Tick,
    ToolResults,
    Turn,
)

Record = dict[str, Any]


def move_records(before: Turn, event: Event, after: Turn, effects: Sequence[Effect]) -> tuple[Record, ...]:
    """The structured records of one move."""
    if type(event) is Tick and not effects and before.state is not State.REPAIR_PENDING and not before.repairing:
        return ()  # most moves: nothing was received, sent or ended
    records: list[Record] = []
    if isinstance(event, ProviderResponse):
        records.append(_stop_reason_observed(after, event))
    # A pause that held a call also sets `repairing`, but requests no repair, so none is recorded.
    repair_requested = before.repairing and before.spend.repairs > 0
    if before.state is State.EVALUATE_STOP and repair_requested and after.state is not State.RESUME:
        records.append(_repair(before, attempted=True, success=after.state is State.EXECUTE_TOOLS))
    # No repair is allowed at all; the failed payload is recorded nevertheless.
    if before.state is State.REPAIR_PENDING and after.signal is Signal.REPAIR_FAILED and before.spend.repairs == 0:
        records.append(_repair(after, attempted=False, success=False))
    for effect in effects:
        if isinstance(effect, Send) and effect.place is RequestPlace.CONTINUATION:
            records.append(_continuation_attempt(after))
        elif isinstance(effect, Finish) and _was_cut(after):
            records.append({**_labels(after, "continuation_terminated"), "terminal_reason": effect.terminal,
                            "attempts": after.spend.continuations})
    return tuple(records)


def _was_cut(turn: Turn) -> bool:
    spent = turn.spend
    used = (spent.continuations, spent.repairs, spent.continuation_tokens, spent.continuation_chars,
            spent.thinking_only)
    return turn.terminal in _CUT_EXITS or any(used)


def _labels(turn: Turn, name: str) -> Record:
    model = turn.evaluation.response.model if turn.evaluation else None
    return {"event": name, "turn_id": turn.id, "provider": turn.provider, "model": model or turn.request.model or ""}


def _stop_reason_observed(turn: Turn, event: ProviderResponse) -> Record:
    stop = event.judgement.stop
    return {
        **_labels(turn, "stop_reason_observed"),
        "normalized_reason": stop.normalized.value,
        "raw_reason": stop.raw,
        "iteration": turn.spend.requests,
    }


def _continuation_attempt(turn: Turn) -> Record:
    spent, limits, cap = turn.spend, turn.limits, turn.token_cap
    return {
        **_labels(turn, "continuation_attempt"),
        "attempt": spent.continuations,
        "cumulative_output_tokens": spent.output_tokens,
        "cumulative_output_chars": spent.output_chars,
        "continuation_tokens": spent.continuation_tokens,
        "continuation_chars": spent.continuation_chars,
        "attempts_remaining": max(0, limits.continuation_max_attempts - spent.attempts),
        "tokens_remaining": None if cap is None else max(0, cap - spent.continuation_tokens),
        "chars_remaining": max(0, limits.continuation_max_output_chars - spent.continuation_chars),
    }


def _repair(turn: Turn, attempted: bool, success: bool) -> Record:
    held = held_calls(turn.unrepaired or (turn.evaluation.verdicts if turn.evaluation else ()))
    issue = parse(held[0].arguments).shape.value if held else "no_call"
    return {
        **_labels(turn, "tool_payload_repair"),
        "parse_issue": issue,
        "repair_attempted": attempted,
        "repair_succeeded": success,
        "attempt": turn.spend.repairs,
    }


Labels = tuple[str, str]
"""The provider and the model."""


class Metrics(NamedTuple):
    """Counters and histograms over many turns. Histograms keep single values, for any buckets."""

    continuations: Mapping[Labels, int] = {}
    """Provider and model -> the number of continuations."""
    truncation_exits: Mapping[Labels, int] = {}
    """Provider and model -> the number of truncated turns that a guard or a budget ended."""
    attempts_per_turn: Mapping[Labels, tuple[int, ...]] = {}
    """Provider and model -> the number of continuations of each turn that was truncated."""
    latency_ms: Mapping[Labels, tuple[float, ...]] = {}
    """Provider and model -> the end-to-end time of each continued turn, in milliseconds, where it was recorded."""
    latency_missing: int = 0
    """The number of continued turns whose time was not recorded."""


_CUT_EXITS = frozenset({"retry_limit", "budget_exhausted", "repair_failed", "context_window_exceeded"})
"""The terminal reasons that only a truncated turn can have, even if none of its tokens or characters was counted."""

GUARDED_EXITS = _CUT_EXITS | {"no_progress"}
"""The terminal reasons with which a truncated turn stays truncated."""


def fold_metrics(records: Iterable[Record], latencies: Mapping[str, float] | None = None) -> Metrics:
    """Metrics of any number of turns; `latencies` gives milliseconds by turn id, where they are known."""
    continuations: Counter[Labels] = Counter()
    exits: Counter[Labels] = Counter()
    attempts: dict[Labels, list[int]] = {}
    latency: dict[Labels, list[float]] = {}
    missing = 0
    for record in records:
        # No turn id, which would make one time series per turn.
        labels = (record["provider"], record["model"])
        if record["event"] == "continuation_attempt":
            continuations[labels] += 1
        elif record["event"] == "continuation_terminated":
            # Every cut turn has this record; one that recovered and completed is not an exit.
            exits[labels] += record["terminal_reason"] in GUARDED_EXITS
            attempts.setdefault(labels, []).append(record["attempts"])
            took = (latencies or {}).get(record["turn_id"])
            if record["attempts"] and took is None:
                missing += 1
            elif record["attempts"] and took is not None:
                latency.setdefault(labels, []).append(took)
    return Metrics(
        dict(continuations),
        {labels: count for labels, count in exits.items() if count},
        {labels: tuple(values) for labels, values in attempts.items()},
        {labels: tuple(values) for labels, values in latency.items()},
        missing,
    )


def limit_usage(turn: Turn) -> tuple[tuple[str, str, int, int | None], ...]:
    """The usage of each of the four limits: name, short name, spent, limit (None if unbounded)."""
    spent, limits = turn.spend, turn.limits
    counts = (spent.attempts, spent.continuation_tokens, spent.continuation_chars, spent.repairs)
    bounds = (limits.continuation_max_attempts, turn.token_cap, limits.continuation_max_output_chars,
              limits.continuation_tool_repair_attempts)
    return tuple(zip(SHORT_NAMES, SHORT_NAMES.values(), counts, bounds, strict=True))


# -- The immutable record of a run: one `Step` for every move of the machine -----------------------------------------
# Logs, reports and screens all render a `Trace`; going back in time is an index. A step keeps the turn as it was
# after the move, and turns share what did not change, so a trace costs little more than its moves.


class Fidelity(StrEnum):
    """Where the answer of a step comes from: a recording, a simulation or a live server."""

    RECORDED = "RECORDED"
    SIMULATED = "SIMULATED"
    LIVE = "LIVE"


class Step(NamedTuple):
    """One move: the state that was entered, the signal that led there, and the turn after it."""

    turn: Turn
    effects: tuple[Effect, ...] = ()
    previous_state: State | None = None
    fidelity: Fidelity = Fidelity.RECORDED
    before: Turn | None = None
    """The turn before the move; None for the first step of a turn."""
    event: Event | None = None
    """The event that caused the move; None for the first step of a turn."""
    run: int = 0
    """The number of the run of this turn, from 0. The next run begins where this loop ended and the recorded agent went
    on."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The structured records of this move, computed on access."""
        if self.before is None or self.event is None:
            return ()
        return move_records(self.before, self.event, self.turn, self.effects)

    @property
    def state(self) -> State:
        """The state that this step entered."""
        return self.turn.state

    @property
    def signal(self) -> Signal | None:
        """The signal that led into the state. None for the first step of a turn."""
        return self.turn.signal if self.previous_state is not None else None

    @property
    def estimated_cut(self) -> Recut | None:
        """The simulated answer of this step, if the place of its cut is not exactly known."""
        event = self.event
        if type(event) is not ProviderResponse or event.recut is None or event.recut.apart is None:
            return None
        return event.recut

    @property
    def response(self) -> int | None:
        """The current response, by its index; None before the first."""
        return self.turn.evaluation.number if self.turn.evaluation else None


class Trace(NamedTuple):
    """All steps of one or more turns, in order."""

    steps: Sequence[Step] = ()

    @property
    def departure(self) -> int | None:
        """The index of the first step that is not RECORDED; None if the run never leaves the recording."""
        return next((index for index, step_ in enumerate(self.steps) if step_.fidelity is not Fidelity.RECORDED), None)

    @property
    def records(self) -> Iterator[Record]:
        """An iterator over every structured event, in order."""
        return (record for step_ in self.steps for record in step_.records)


def first_step(turn: Turn, effects: Iterable[Effect], fidelity: Fidelity, run: int = 0) -> Step:
    """The step that begins a turn."""
    return Step(turn, tuple(effects), None, fidelity, None, None, run)


def next_step(previous: Step, event: Event) -> Step:
    """The next step: one move of the machine. A turn that has left its recording does not come back to it."""
    before = previous.turn
    turn, effects = step(before, event)
    fidelity = previous.fidelity
    if type(event) is ProviderResponse and (event.recut is not None or event.synthetic):
        fidelity = Fidelity.SIMULATED
    elif (type(event) is ProviderResponse or type(event) is Cancel) and event.live:
        fidelity = Fidelity.LIVE
    return Step(turn, effects, before.state, fidelity, before, event, previous.run)


class StepIdentity(NamedTuple):
    """The fields by which the steps of two runs are compared."""

    turn: str
    run: int
    state: State
    signal: Signal | None
    response: int | None
    spend: Spend
    terminal: str | None
    sends: tuple[tuple[Any, ...], ...]
    """Place, ordinal, method and cap of each request."""
    runs: tuple[tuple[Any, ...], ...]
    ends: tuple[str, ...]
    live_answer: tuple[Any, ...] | None
    """The parts and the raw stop word of a live answer; None for any other step."""
    model_input: tuple[Any, ...] | None
    """The input for the model that this step adds: the history at the beginning of a turn, or tool results; None if
    nothing."""


def step_key(step_: Step) -> StepIdentity:
    """The identity of a step when two runs are compared: state, signal, response, spend, effects and the model's input.
    Live answers are compared by their content, because equal indices in two runs do not mean the same answer."""
    turn, event = step_.turn, step_.event
    live_answer = ((event.response.parts, event.response.raw_stop_reason)
                   if type(event) is ProviderResponse and event.live else None)
    sends = tuple((e.place, e.ordinal, e.method, e.max_tokens) for e in step_.effects if isinstance(e, Send))
    runs = tuple(tuple((v.call.name, v.call.arguments, v.admission) for v in e.batch)
                 for e in step_.effects if isinstance(e, RunTools))
    ends = tuple(e.terminal for e in step_.effects if isinstance(e, Finish))
    model_input = turn.history if event is None else event.results if type(event) is ToolResults else None
    return StepIdentity(turn.id, step_.run, turn.state, turn.signal, step_.response, turn.spend, turn.terminal, sends,
                        runs, ends, live_answer, model_input)


def first_difference(left: Trace, right: Trace) -> int | None:
    """The index of the first step at which two runs differ; None if they are the same to the end."""
    for index, (one, other) in enumerate(zip(left.steps, right.steps, strict=False)):
        # A what-if shares the steps before its first change, so most pairs are identical objects.
        if one is not other and step_key(one) != step_key(other):
            return index
    if len(left.steps) == len(right.steps):
        return None
    return min(len(left.steps), len(right.steps))
