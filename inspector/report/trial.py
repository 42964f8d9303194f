"""Tries settings on one turn by replay and simulation, to find the smallest value that completes it.

A trial makes the run that accepting the advice would make, for this turn only. Nothing is run if the recording cannot
answer it: of most turns that a budget cut, nothing was recorded after the cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from inspector.config.settings import INITIAL, settings_of
from inspector.replay import Replay, Stretch, TurnRun, first_cap, join_runs, place_steps
from inspector.report.advice import COUNTS, LIMIT, RAISED, Basis
from inspector.report.findings import ANOTHER_WAY, ReportedFinding
from inspector.report.judged_turn import JudgedTurn, judged_turn_of
from inspector.sessions.recording import TurnPlace
from loop_core.errors import LoopError
from loop_core.turn.limits import MOST
from loop_core.turn.state import ProviderResponse
from loop_core.turn.trace import Fidelity
from loop_core.values import FINISHED

Good = Callable[[JudgedTurn], bool]
"""A function that tells whether a turn is complete without doubt."""
Set = Mapping[str, str]
T = TypeVar("T")
LIMITS_TOGETHER = 4
DOUBLINGS = 20
"""The number of times that a search doubles its step before it gives up."""
FAR = frozenset({"continuation_max_attempts", "max_tool_steps"})
"""The limits that may be far from their smallest sufficient values; a search tries the used amount first."""


class CompletingSettings(NamedTuple):
    """Settings under which a turn completes, and whether its answers were recorded or simulated."""

    settings: Set
    basis: Basis


def best_settings(
    replay: Replay, turn: TurnRun, findings: Sequence[ReportedFinding], judged: JudgedTurn, names: Sequence[str],
    good: Good,
) -> CompletingSettings | None:
    """The first of the named settings that completes the turn, with its smallest value; None if none does."""
    if not any(_answerable(replay, turn, judged, name) for name in names):
        return None
    trial = Trial.of(replay, turn, findings, good)
    if trial is None:
        return None
    for name in names:
        if _answerable(replay, turn, judged, name):
            found = trial.limits(judged) if name == LIMIT else trial.cap(judged)
            if found is not None:
                return found
    return None


def _answerable(replay: Replay, turn: TurnRun, judged: JudgedTurn, name: str) -> bool:
    """Whether the recording could answer a run with another value of this setting."""
    if name == LIMIT and not judged.simulated:
        return turn.runs > 1  # otherwise this run has used all recorded answers
    case = replay.case
    more = (TurnPlace.CONTINUATION, TurnPlace.REPAIR)
    return any(case.judgements[link.index].stop.normalized in FINISHED and (judged.simulated or link.place in more)
               for link in turn.record.links)


class Trial(NamedTuple):
    """One turn that can be run under other settings."""

    alone: Replay
    findings: Sequence[ReportedFinding]
    good: Good

    @classmethod
    def of(cls, replay: Replay, turn: TurnRun, findings: Sequence[ReportedFinding], good: Good) -> Trial | None:
        """A trial of a turn; None if other settings of this run would not reach the turn."""
        if replay.since >= turn.end:
            return None
        # The trial replays only this turn, so a live run that answers another turn is left out.
        own = turn.record.live_run is not None
        starts = [(max(0, first - turn.first), stretch_settings if own else replace(stretch_settings, live=None))
                  for first, stretch_settings in replay.stretches]
        since, settings = starts[-1]
        earlier = tuple(Stretch(*start) for start in starts[:-1] if start[0] < since)
        # Only this turn, because replaying the whole session for each value would be slow.
        alone = join_runs(replay.case, settings, [place_steps(turn.record, turn.steps, 0)], since, earlier)
        return cls(alone, [each for each in findings if each.finding.rule != ANOTHER_WAY], good)

    def _run(self, settings: Set) -> tuple[JudgedTurn | None, Basis]:
        """The turn under these settings, or None if it cannot be run; and the basis of the result."""
        from inspector.replay.rerun import rerun  # takes 1 ms, and only turns with something to try need it

        try:
            replay = rerun(self.alone, settings_of(settings, self.alone.settings), self.alone.since)
        except LoopError:
            return None, Basis.ESTIMATED
        if any(type(step.event) is ProviderResponse and step.event.cut_unseen for step in replay.trace.steps):
            return None, Basis.ESTIMATED  # it ends cleanly only because the server reports cut answers as finished
        turn = replay.turns[0]
        simulated = replay.trace.steps[turn.deciding_step].fidelity is Fidelity.SIMULATED
        return judged_turn_of(replay, turn, self.findings), Basis.SIMULATED if simulated else Basis.RECORDED

    def _completing(self, others: Set, name: str, value: int) -> CompletingSettings | None:
        """The settings, if a run under exactly these settings completes the turn; else None."""
        settings = {**others, name: str(value)}
        turn, basis = self._run(settings)
        return CompletingSettings(settings, basis) if turn is not None and self.good(turn) else None

    def limits(self, turn: JudgedTurn) -> CompletingSettings | None:
        """The smallest values of the limits that end the turn, one after another."""
        lax: Set = {}
        now: dict[str, int] = {}
        while turn.limit is not None and len(lax) < LIMITS_TOGETHER:
            name, value = turn.limit
            if name in lax or name not in RAISED:
                return None
            # First the highest value, to see which limit ends the turn next; the smallest is searched afterwards.
            lax, now[name] = {**lax, name: str(RAISED[name])}, value
            after, _ = self._run(lax)
            if after is None:
                return None
            if self.good(after):
                break
            turn = after
        else:
            return None  # without these limits something else ends the turn
        found: CompletingSettings | None = None
        # One limit at a time, with the others still at their highest values, so that each search has one unknown.
        for name, value in now.items():
            likely = COUNTS[name](after.final_turn.spend) if name in FAR else 0
            found = smallest(value, RAISED[name], partial(self._completing, lax, name), likely)
            if found is None:
                return None
            lax = found.settings
        return found

    def cap(self, turn: JudgedTurn) -> CompletingSettings | None:
        """The smallest max_tokens above the one in force."""
        settings, record = self.alone.settings, self.alone.turns[0].record
        usage = turn.exchange.response.usage
        now = settings.max_tokens or first_cap(self.alone.case, record) or (usage.output_tokens if usage else None)
        if not now:
            return None
        # The largest value first: if the turn is not complete with it, the recording ends at the cut.
        if self._completing({}, INITIAL, min(now << DOUBLINGS, MOST)) is None:
            return None
        return smallest(now, now << DOUBLINGS, partial(self._completing, {}, INITIAL))


def smallest(now: int, most: int, completing: Callable[[int], T | None], likely: int = 0) -> T | None:
    """The result of `completing` for the smallest value above `now`, up to `most`, that gives one; else None. If that
    value is `likely`, two calls find it."""
    # Growing steps find an upper bound in about log2 runs even if the end is unknown, then halving finds the value
    # (Bentley and Yao, An almost optimal algorithm for unbounded searching, 1976).
    low = now
    for value in (likely - 1, likely, *_growing(now, most)):
        if not low < value <= most:
            continue
        found = completing(value)
        if found is not None:
            high = value
            break
        low = value
    else:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        better = completing(middle)
        low, high, found = (middle, high, found) if better is None else (low, middle, better)
    return found


def _growing(now: int, most: int) -> Iterator[int]:
    """Values above `now` whose distance from it doubles, and `most` at the end."""
    step = 1
    while now + step < most and step < 1 << DOUBLINGS:
        yield now + step
        step *= 2
    yield most
