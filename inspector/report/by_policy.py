"""What each policy would do with one call: the gate's verdict is ours, these are the others'.

Pure: the machine takes the one response under each policy and makes its next move; the move says what becomes of the
call. `run` under another policy than `strict` is told, never done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from inspector.replay.case import Case
from inspector.sessions.recording import Exchange
from loop_core.judge.classify import Judgement
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.machine import begin, step
from loop_core.turn.policy import Dispatch, Policy
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import ProviderResponse, RunTools, State, Tick, Turn
from loop_core.values import Request


class Fate(StrEnum):
    """What a loop would do with a call."""

    RUN = "run"
    REFUSE = "refuse"
    """Answer it with the error that its schema gives."""
    STUCK = "stuck"
    """Begin it, and never end it."""
    HOLD = "hold"


class Opinion(NamedTuple):
    """What one policy would do with one call, and why."""

    policy: str
    fate: Fate
    why: str


_RUNS: Mapping[Dispatch, str] = {
    Dispatch.READY: "whole, and authorised by its reason",
    Dispatch.COMPLETE: "its arguments parse",
    Dispatch.READABLE: "a forgiving parser reads some of it",
    Dispatch.PRESENT: "it is present",
}
"""What makes a loop run a call."""

_HOLDS: Mapping[State, str] = {
    State.EXECUTE_TOOLS: "runs its siblings without it",
    State.REPAIR_PENDING: "asks for it again",
    State.CONTINUE_PENDING: "leaves it out and has the text continued",
    State.RESUME: "resumes the response without it",
    State.COMPLETE: "leaves it out and takes the turn for finished",
    State.NUDGE_PENDING: "leaves it out and asks once more for an answer",
    State.ABORT_PARTIAL: "ends the turn with a notice",
    State.ABORT: "ends the turn with a notice",
}
"""Where the machine goes with a call that does not run -> what becomes of the turn."""


def verdict_by_policy(case: Case, response: int, call: int, among: Iterable[Policy] = ()) -> tuple[Opinion, ...]:
    """What every policy would do with one call, by the indices of its response and of the call in it.

    Raises:
        IndexError: there is no such response or call.
    """
    verdicts = case.verdicts[response]
    return opinions(case.loaded.exchanges[response], case.judged[response], verdicts, verdicts[call], among)


def opinions(
    exchange: Exchange, judged: Judgement, verdicts: Sequence[Verdict], verdict: Verdict, among: Iterable[Policy] = ()
) -> tuple[Opinion, ...]:
    """The same for a call of `verdicts`, under the policies `among`; under every preset where none is given."""
    return opinions_of(stances(exchange, judged, verdicts, among), verdict)


class Stance(NamedTuple):
    """What one policy makes of a whole response: where its machine goes, and which calls it would run."""

    policy: Policy
    turn: Turn
    runs: frozenset[int]
    """The calls that it would run, by their identity."""


def stances(
    exchange: Exchange, judged: Judgement, verdicts: Sequence[Verdict], among: Iterable[Policy] = ()
) -> tuple[Stance, ...]:
    """What each policy makes of a response: worked out once, however many calls the response holds."""
    return tuple(_stance(policy, exchange, judged, tuple(verdicts)) for policy in (among or POLICIES.values()))


def _stance(policy: Policy, exchange: Exchange, judged: Judgement, verdicts: tuple[Verdict, ...]) -> Stance:
    request = exchange.request or Request(exchange.api)
    turn, _ = begin("stance", request, policy=policy, provider=exchange.profile.name)
    turn, _ = step(turn, ProviderResponse(exchange.response, judged, verdicts=verdicts))
    turn, effects = step(turn, Tick())
    runs = turn.would_run if any(isinstance(effect, RunTools) for effect in effects) else ()
    return Stance(policy, turn, frozenset([id(each.call) for each in runs]))


def opinions_of(taken: Sequence[Stance], verdict: Verdict) -> tuple[Opinion, ...]:
    """What each policy would do with one call of the response that the stances are about."""
    return tuple([_opinion(stance, verdict) for stance in taken])


def _opinion(stance: Stance, verdict: Verdict) -> Opinion:
    policy, turn = stance.policy, stance.turn
    if turn.terminal == "stuck":
        return Opinion(policy.name, Fate.STUCK, f"{_read(turn)}, which ends no call")
    if id(verdict.call) not in stance.runs:
        return Opinion(policy.name, Fate.HOLD, f"{_read(turn)}; {_HOLDS[turn.state]}")
    if verdict.admission is Admission.REJECTED:
        return Opinion(policy.name, Fate.REFUSE, "its schema refuses it")
    dispatch = Dispatch.READY if verdict.admission is Admission.READY else policy.dispatch
    return Opinion(policy.name, Fate.RUN, f"{_read(turn)}; {_RUNS[dispatch]}")


def _read(turn: Turn) -> str:
    return f"reads {turn.evaluation.word.value}" if turn.evaluation else "reads nothing"


SAYS: Mapping[Fate, str] = {
    Fate.RUN: "would run it",
    Fate.STUCK: "stuck with it",
    Fate.REFUSE: "would answer it with the error",
    Fate.HOLD: "would hold it",
}
"""What a group of policies does, in words; the worst first."""


def grouped(said: Iterable[Opinion]) -> list[tuple[Fate, list[str]]]:
    """The names of the policies by what they would do, the worst first."""
    found: dict[Fate, list[str]] = {fate: [] for fate in SAYS}
    for opinion in said:
        found[opinion.fate].append(opinion.policy)
    return [(fate, names) for fate, names in found.items() if names]
