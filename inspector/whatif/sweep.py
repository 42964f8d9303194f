"""Runs one turn in all cells of a grid: one run (a stem) for all cells that differ only in limits of guards, and a
look-up for each cell.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

from inspector.config.settings import INITIAL
from inspector.replay import bounding_cap, first_run
from inspector.replay.adjustments import limits_for
from inspector.replay.case import Case
from inspector.replay.token_counts import is_cut, tokens_under_cap
from inspector.replay.tokens import plausible_usage
from inspector.report.findings import ReportedFinding
from inspector.report.judged_turn import judge_steps
from inspector.report.verdict import verdict_word
from inspector.sessions.recording import Exchange, TurnRecord
from inspector.whatif.grid import SEPARATE_AXES, TOKENS, End, Grid, Group, Value, size_of
from loop_core.turn.limits import GUARDS, Limits, Spend, exceeded_guard, least_cap, token_stop
from loop_core.turn.machine import TRANSITIONS
from loop_core.turn.moves import GUARD_PLACES
from loop_core.turn.policy import Signal
from loop_core.turn.state import ProviderResponse, State, Turn
from loop_core.turn.trace import Fidelity, Step
from loop_core.values import ChatResponse, Request

# -- One run under the laxest limits shows how a turn ends under all stricter ones -----------------------------------
# Only guards read limits: until a guard stops the turn, two runs of it are equal, step by step. So the run with the
# laxest limits is the stem of all others: each leaves it at the first guard that stops it, with the spend at that
# point. For each guard check there is a smallest value of its limit with which the turn passes.
# This does not hold for `max_tokens`, `min_progress_chars` and `attempts_scope`, which change the spend: each of their
# values needs a stem. Nor does it hold for the token bound if that may change answers, because it bounds each cap.


class GuardCheck(NamedTuple):
    """One check of the guards during a turn."""

    place: str
    state: State
    spend: Spend
    segments: int
    fidelity: str
    step: int
    """The index in the run of the step at which the guards are checked."""
    ended: bool = False
    """Whether the answer had ended, so that the guard only decides whether its first words are requested again."""


@dataclass(frozen=True, slots=True)
class Stem:
    """A run under the laxest limits."""

    steps: Sequence[Step]
    checks: tuple[GuardCheck, ...]
    end: End
    last: int
    """The rank of the stem's own end."""
    largest: int | None
    """The output tokens of the largest answer; None if an answer reports none, so that its cap may count instead."""
    uncut: bool
    """Whether no budget cut an answer, and no answer was requested again."""
    lacks: Container[str]
    """The guards that apply to no request of the run."""
    least_total: int
    """The smallest total of tokens under which the recorded answers fit the stem's requests (`BoundedSource`)."""

    @property
    def is_enough(self) -> bool:
        """Whether no budget cut an answer, and no answer was missing that a larger budget might have."""
        return self.uncut and self.end.state is not State.UNRECORDED

    @property
    def is_recorded(self) -> bool:
        """Whether every answer of the run is a recorded one."""
        return self.end.fidelity == Fidelity.RECORDED


def stem(steps: Sequence[Step], exchanges: Sequence[Exchange], simulated: bool) -> Stem:
    """The stem of a run. The total that a `simulated` run needs is unknown, because its answers depend on the total."""
    checks = tuple(check for number, step in enumerate(steps) if (check := _guard_check(step, number)) is not None)
    turn = steps[-1].turn
    lacks = turn.policy.lacks
    if "tokens" in lacks:  # such a policy has no token bound (`Turn.token_cap`)
        lacks |= {"room"}
    limit, last = "", len(checks) * len(GUARDS)
    if checks:
        guard = exceeded_guard(checks[-1].place, turn.limits, checks[-1].spend, turn.token_stop, lacks)
        if guard is not None:
            limit = "" if checks[-1].ended else guard.limit
            last = _rank(len(checks) - 1, GUARDS.index(guard))
    answers = [step.event for step in steps if isinstance(step.event, ProviderResponse)]
    largest = _largest(answers)
    total = 0 if "room" in lacks else _least_total(steps, exchanges)
    needs: dict[str, int] = {}
    if last == len(checks) * len(GUARDS):
        needs = _needed_values(checks, lacks, 0 if "room" in lacks else least_cap(turn.request) - 1)
    if simulated or largest is None:  # the cap counts for an answer that reports no tokens
        needs.pop(TOKENS, None)
    elif TOKENS in needs:
        needs[TOKENS] = max(needs[TOKENS], total)
    state, fidelity = turn.outcome or turn.state, steps[-1].fidelity.value
    unseen = _cut_unseen(steps)
    end = End(state, turn.terminal or "", limit, segments(turn), turn.spend, fidelity, tuple(needs.items()), unseen)
    uncut = not unseen and all(check.place == "tools" for check in checks) and not any(map(is_cut, answers))
    return Stem(steps, checks, end, last, largest, uncut, lacks, 0 if simulated else total)


def _least_total(steps: Sequence[Step], exchanges: Sequence[Exchange]) -> int:
    totals = [0]
    for step in steps:
        if isinstance(step.event, ProviderResponse) and step.before is not None and (
                step.before.spend.requests > 1 or not is_cut(step.event)):
            tokens = tokens_under_cap(step.event, exchanges)
            totals.append(0 if tokens is None else step.before.spend.continuation_tokens + tokens)
    return max(totals)


def _cut_unseen(steps: Sequence[Step]) -> bool:
    return any(isinstance(step.event, ProviderResponse) and step.event.cut_unseen for step in steps)


def _count(response: ChatResponse) -> int | None:
    usage = plausible_usage(response)
    return usage.output_tokens if usage is not None else None


def _largest(answers: Sequence[ProviderResponse]) -> int | None:
    counts = [_count(answer.response) for answer in answers]
    return None if None in counts else max((tokens for tokens in counts if tokens is not None), default=0)


def segments(turn: Turn) -> int:
    """The number of responses in the turn's answers."""
    return sum(len(answer) for answer in turn.answers)


def _guard_check(step: Step, number: int) -> GuardCheck | None:
    turn = step.turn
    place = GUARD_PLACES.get(turn.state)
    if place is None:
        return None
    spent = turn.spend
    if turn.state is State.RESUME and turn.last_send is not None:  # checked before this request is counted
        spent = spent._replace(requests=spent.requests - 1, resumes=spent.resumes - 1)
    ended = turn.signal is Signal.ANCHOR_MISSING
    return GuardCheck(place, turn.state, spent, segments(turn), step.fidelity.value, number, ended)


def _needed_values(checks: Sequence[GuardCheck], lacks: Container[str], more: int) -> dict[str, int]:
    """For each limit, the smallest value with which these checks pass; `more` tokens of the total must be left too."""
    needs: dict[str, int] = {}
    for guard in GUARDS:
        if guard.least is not None and guard.name not in lacks:
            least = [guard.least(check.spend) for check in checks if check.place == guard.place]
            if least:
                room = more if guard.limit == TOKENS else 0
                needs[guard.limit] = max(needs.get(guard.limit, 0), max(least) + room)
    return needs


# -- where stricter limits leave the stem ----------------------------------------------------------------------------


def _rank(check: int, guard: int) -> int:
    """The rank of a guard in a check: by check, then by guard. The guard with the smallest rank stops a turn."""
    return check * len(GUARDS) + guard


def stop_ranks(stem: Stem, limit: str, values: Sequence[int | None]) -> list[int]:
    """For each value of a limit (None: no bound), the rank of the first guard that would stop the turn by it."""
    found = [stem.last] * len(values)
    for number, guard in enumerate(GUARDS):
        if guard.limit != limit or guard.least is None or guard.name in stem.lacks:
            continue
        at: list[int] = []
        highest: list[int] = []
        for index, check in enumerate(stem.checks):
            if check.place == guard.place:
                least = guard.least(check.spend)
                at.append(_rank(index, number))
                highest.append(max(least, highest[-1]) if highest else least)
        at.append(stem.last)
        for place, value in enumerate(values):
            if value is not None:
                found[place] = min(found[place], at[bisect_right(highest, value)])
    return found


_LEADS: Mapping[tuple[State, str], State] = {
    (state, row.terminal): row.to for (state, _), row in TRANSITIONS.items() if row.terminal is not None
}
"""State and terminal reason of a guard -> the state to which the guard leads."""


def end_at(stem: Stem, rank: int) -> tuple[End, Sequence[Step]]:
    """The end of a turn that is stopped at a rank, without its verdict, and the steps before it."""
    if rank >= stem.last:
        return stem.end, stem.steps
    index, number = divmod(rank, len(GUARDS))
    check, guard = stem.checks[index], GUARDS[number]
    taken, steps = (check.segments, check.spend, check.fidelity), stem.steps[: check.step + 1]
    if check.ended:
        end = End(State.COMPLETE, "completed", "", *taken)
    else:
        end = End(_LEADS[check.state, guard.terminal], guard.terminal, guard.limit, *taken)
    return replace(end, cut_unseen=_cut_unseen(steps)), steps


SweptEnds: TypeAlias = "tuple[tuple[End, ...], array[int]]"
"""The distinct ends, and for each cell, in the order of the groups, the index of its end."""
DERIVED_TOTAL = Limits()
"""The limits with a total of tokens that is derived from the initial max_tokens."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """One turn, with the data that its runs share."""

    case: Case
    """The recording as decoded with the grid's profile."""
    record: TurnRecord
    grid: Grid
    findings: Sequence[ReportedFinding] = ()
    """The findings about the recording of the turn."""
    enough: list[tuple[int, Stem]] = field(default_factory=list)
    """Budgets that cut no answer, each with its stem."""

    def sweep(self, groups: Sequence[Group]) -> SweptEnds:
        """The turn's ends in the cells of some groups. Raises `CallerError` if the session file holds a limit that does
        not exist or is out of range."""
        ends: dict[End, int] = {}
        codes = array("I")
        along: dict[int, list[Sequence[int]]] = {}
        known_codes: dict[tuple[int, int], int] = {}
        stems = self._stems(groups)
        for group, group_stem in zip(groups, stems, strict=True):
            if id(group_stem) not in along:
                along[id(group_stem)] = [stop_ranks(group_stem, axis.name, axis.values) for axis in self.grid.axes
                                         if axis.name not in SEPARATE_AXES]
            for rank in self._ranks(group, group_stem, along[id(group_stem)]):
                if (id(group_stem), rank) not in known_codes:
                    known_codes[id(group_stem), rank] = ends.setdefault(self._end(group_stem, rank), len(ends))
                codes.append(known_codes[id(group_stem), rank])
        return tuple(ends), codes

    def _end(self, stem: Stem, rank: int) -> End:
        """An end with its verdict, taken from a run that ends there."""
        end, steps = end_at(stem, rank)
        ended = steps[-1].turn._replace(terminal=end.terminal)
        limit = (end.limit, 0) if end.limit else None
        word, complete = verdict_word(judge_steps(self.case, self.record, steps, ended, self.findings, limit))
        stopped = end.cut_unseen or end.limit in self.grid.names
        return replace(end, verdict=word, complete=complete and not stopped)

    # -- the limits in force -----------------------------------------------------------------------------------------

    @cached_property
    def limits(self) -> Limits:
        """The limits that no axis sets: the operator's, else the file's, else the defaults."""
        base = self.grid.base
        return limits_for(self.case, self.record, replace(base, explicit=base.explicit | set(self.grid.names)))

    def _total(self, group: Group) -> Value:
        """The total of a group if the grid varies it, else the one in force."""
        return group.fixed.get(TOKENS, self.limits.continuation_max_total_completion_tokens)

    @cached_property
    def _request(self) -> Request:
        opening = self.case.opening(self.record)
        return opening.request or Request(opening.api)

    def _initial(self, group: Group) -> Value:
        """The max_tokens of the first requests; None: as recorded, as always without simulation."""
        return group.fixed.get(INITIAL, self.grid.base.max_tokens) if self.grid.base.simulate else None

    def _cap(self, total: Value, initial: Value) -> int | None:
        """The bound on output tokens under a total (None: derived) and an initial max_tokens (None: as recorded)."""
        if total is not None:
            return total
        if initial is None:
            return DERIVED_TOTAL.token_cap(self._request.max_tokens)
        return DERIVED_TOTAL.token_cap(bounding_cap(self._request.max_tokens, initial) or None)

    # -- runs --------------------------------------------------------------------------------------------------------

    def _run_stem(self, groups: Sequence[Group]) -> Stem:
        """The stem of cells that differ only in limits that guards check."""
        values: dict[str, Value] = {axis.name: max(axis.values, key=size_of) for axis in self.grid.axes}
        values.update((name, value) for name, value in groups[0].fixed.items() if name not in (INITIAL, TOKENS))
        pairs = [(self._total(group), self._initial(group)) for group in groups]
        total, initial = max(pairs, key=lambda pair: size_of(self._cap(*pair)))
        if TOKENS in values:
            values[TOKENS] = total
        if INITIAL in values:
            values[INITIAL] = initial
        steps = first_run(self.case, self.record, self.grid.settings_with(values))
        return stem(steps, self.case.recording.exchanges, self.grid.base.simulate)

    def _stems(self, groups: Sequence[Group]) -> list[Stem]:
        """A stem for each group; groups share stems where possible."""
        if self.grid.base.simulate:
            return [self._simulated_stem(group) for group in groups]
        # Without simulation max_tokens changes only the derived cap, and the total changes only which guard stops the
        # turn, unless answers report no tokens, or a total leaves no room for an answer.
        alike: dict[Value, list[Group]] = {}
        for group in groups:
            alike.setdefault(group.fixed.get("min_progress_chars"), []).append(group)
        shared = {value: self._run_stem(members) for value, members in alike.items()}
        stems = [shared[group.fixed.get("min_progress_chars")] for group in groups]
        return [each if each.largest is not None and not self._leaves_no_room(group, each) else self._run_stem([group])
                for each, group in zip(stems, groups, strict=True)]

    def _leaves_no_room(self, group: Group, stem: Stem) -> bool:
        """Whether the total of a group was set, and leaves no room for a recorded answer of the stem."""
        total = self._total(group)
        stated = TOKENS in self.grid.names or TOKENS in self.grid.base.explicit
        return stated and total is not None and total < stem.least_total

    def _simulated_stem(self, group: Group) -> Stem:
        """The stem under one budget. An answer that a budget does not cut is the same under every larger budget and
        needs no further run, unless a larger budget has room for all counted tokens: then it is used as it was
        recorded, and so is an answer that a smaller budget could not simulate. An answer that was recorded cut is used
        unchanged under the budget of its recording, to which results of other budgets do not apply."""
        initial, total = self._initial(group), self._total(group)
        bounded = total is not None and (initial is None or total < initial)
        if bounded or not {INITIAL} <= set(group.fixed) <= {INITIAL, TOKENS} or initial in self._recorded_budgets:
            return self._run_stem([group])
        if self._uncut_turn is not None and size_of(initial) >= self._uncut_turn[0]:
            return self._uncut_turn[1]
        for least, group_stem in self.enough:
            if size_of(initial) >= least:
                return group_stem
        group_stem = self._run_stem([group])
        if group_stem.is_enough and initial is not None and (group_stem.is_recorded or initial >= self._largest_count):
            self.enough.append((initial, group_stem))
        return group_stem

    @cached_property
    def _recorded_budgets(self) -> frozenset[Value]:
        """The budgets under which answers may be used as recorded: those that were requested, and those spent."""
        exchanges = [self.case.recording.exchanges[link.index] for link in self.record.links]
        caps = {each.request.max_tokens for each in exchanges if each.request is not None}
        usages = [usage for each in exchanges if (usage := plausible_usage(each.response)) is not None]
        return frozenset({None, *caps, *(usage.output_tokens for usage in usages),
                          *(usage.visible_tokens for usage in usages)})

    @cached_property
    def _largest_count(self) -> float:
        """The most output tokens counted for a recorded answer; infinite if some answer has no count."""
        return max(size_of(_count(self.case.recording.exchanges[link.index].response)) for link in self.record.links)

    @cached_property
    def _uncut_turn(self) -> tuple[int, Stem] | None:
        """The tokens of the turn's largest answer, and its stem as recorded, if no budget cut any answer; else None."""
        recorded_stem = self._run_stem([Group({INITIAL: None}, array("I"))])
        return ((recorded_stem.largest, recorded_stem)
                if recorded_stem.is_enough and recorded_stem.is_recorded and recorded_stem.largest is not None
                else None)

    # -- cells -------------------------------------------------------------------------------------------------------

    def _ranks(self, group: Group, stem: Stem, along: Sequence[Sequence[int]]) -> Sequence[int]:
        """The rank at which each cell of a group leaves a stem; `along` has the ranks along each axis."""
        initial = self._initial(group)
        request = self._request if initial is None else replace(self._request, max_tokens=initial)
        ranks: Sequence[int] = stop_ranks(stem, TOKENS, [token_stop(self._cap(self._total(group), initial), request,
                                                               stem.lacks)])
        for row in along:
            ranks = [rank if rank < other else other for rank in ranks for other in row]
        return ranks
