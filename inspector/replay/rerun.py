"""A replay under other settings, from the first step or from any other: only what they change is made anew.

Steps that the settings cannot change are the very same values in both replays: all before the given step, the turns in
which nothing looks at what was changed, and the beginning of each turn that parts later. What a move looks at is known
to `inspector.replay.fork`; where it is not known (another answer, another source of answers), the turn is run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from inspector.config.settings import Settings
from inspector.replay.case import Case, seen_by_loop, spoken
from inspector.replay.fork import parting
from inspector.replay.live_branch import asked_again
from inspector.replay.replay import (
    Replay,
    Rules,
    TurnRun,
    budget_changed,
    placed,
    played,
    replayed,
    rules_for,
    run,
    terms_for,
    used,
)
from inspector.sessions.recording import Link
from loop_core.errors import CallerError
from loop_core.turn.state import NotRecorded, Responded
from loop_core.turn.trace import Step

T = TypeVar("T")


def rerun(parent: Replay, settings: Settings, since: int = 0) -> Replay:
    """The replay whose settings hold from step `since` on; the steps before are the parent's.

    Raises:
        CallerError: the parent has no such step, or there is no such profile.
    """
    count = len(parent.trace.steps)
    if not 0 <= since < max(1, count):
        raise CallerError(f"step {since + 1}: this run has the steps 1 to {count:,}")
    case = heard(parent, settings.profile, since)
    asked = None if not parent.turns else asked_again(parent, case, settings, since)
    case = case if asked is None else asked.case
    rules = rules_for(case, settings)
    flips = any(stretch.settings.simulate != settings.simulate for stretch in parent.stretches)
    turns: list[TurnRun] = []
    first, same = 0, True
    for old in parent.turns:
        record = old.record
        if asked is not None and old is asked.turn:
            record, steps = asked.record, asked.steps(rules)
        elif old.end <= since:
            steps = old.steps
        else:
            steps = _again(parent, case, old, rules, max(0, since - old.first), flips)
        if steps is not old.steps:
            turns.append(placed(record, steps, first))
            same = False
        else:
            turns.append(old if old.first == first else moved(old, first))
        first = turns[-1].end
    earlier = tuple(stretch for stretch in parent.stretches if stretch.since < since)
    if same:
        return Replay(case, settings, parent.trace, parent.turns, since, earlier, parent.ends)
    return replayed(case, settings, turns, since, earlier)


def moved(old: TurnRun, first: int) -> TurnRun:
    """The same steps at another place, since an earlier turn has become longer or shorter."""
    return replace(old, first=first, end=first + len(old.steps), decided=old.decided + first - old.first)


def heard(parent: Replay, profile: str | None, since: int) -> Case:
    """The case as the profile speaks, but for the responses that came before a step: those stay as they were read.

    A run that has its first response by then goes on with the server that gave it.
    """
    case = spoken(parent.case, profile)
    if since == 0 or case is parent.case:
        return case
    if parent.settings.profile == profile and parent.since <= since:
        return parent.case
    old = parent.case
    earlier = {step.response for step in parent.trace.steps[:since]}
    kept = [index in earlier for index in range(len(case.judged))]
    return Case(
        replace(case.loaded, exchanges=_either(kept, old.loaded.exchanges, case.loaded.exchanges)),
        _either(kept, old.judged, case.judged),
        _either(kept, old.verdicts, case.verdicts),
        case.brought,
        root=case.root or case,
        heard=case.heard,
        silent=case.silent,
        cancels=case.cancels,
    )


def _either(kept: Sequence[bool], old: Sequence[T], new: Sequence[T]) -> tuple[T, ...]:
    return tuple([one if keep else other for keep, one, other in zip(kept, old, new, strict=True)])


def _again(parent: Replay, case: Case, old: TurnRun, rules: Rules, start: int, flips: bool) -> tuple[Step, ...]:
    """The steps of a turn whose settings change before its step `start`; the same tuple where they change nothing.

    `flips` says whether any of them was simulated where it now is not, or the other way round.
    """
    steps, record = old.steps, old.record
    links = seen_by_loop(case, record)
    fresh = answers_otherwise(parent.case, case, links)
    first, number = 0, 0
    while first < len(steps):
        end = len(steps) if old.runs == 1 else _end_of_run(steps, first)
        if end > start:
            at = max(first, start)
            if not fresh and not (flips and budget_changed(case, record, rules.settings)):
                until = _simulable(steps, at, end) if flips else end
                at = parting(steps, at, until, terms_for(case, record, links[0], rules))
            if at < end:
                ran = run(case, record, links, rules, number, steps[at - 1] if at > first else None)
                rest = links[used(case, record, links, rules, [*steps[first:at], *ran]) :]
                return (*steps[:at], *ran, *played(case, record, rest, rules, number + 1))
        if end < len(steps):
            links = links[used(case, record, links, rules, steps[first:end]) :]
        first, number = end, number + 1
    return steps


def _simulable(steps: Sequence[Step], start: int, end: int) -> int:
    """The first step that a recording without another budget and a simulation over it make differently."""
    for index in range(start, end):
        event = steps[index].event
        if type(event) is NotRecorded or (type(event) is Responded and event.recut is not None):
            return index
    return end


def answers_otherwise(old: Case, new: Case, links: Sequence[Link]) -> bool:
    """Whether a turn gets other answers in one case than in the other."""
    if old is new:
        return False
    return any(old.loaded.exchanges[link.index] is not new.loaded.exchanges[link.index] for link in links)


def _end_of_run(steps: Sequence[Step], first: int) -> int:
    return next((index for index in range(first, len(steps)) if steps[index].run != steps[first].run), len(steps))
