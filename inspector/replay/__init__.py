"""Replays a recording under the engine's state machine: a case and settings give one `Trace`.

Judging (`case`) depends only on the bytes and is done once; replaying depends on limits and policy, costs far less, and
is done again for every what-if. If this loop ends a turn and the recorded agent continued, a further run of the same
turn begins at the first exchange that was not reached, so that every response is examined. The steps of a long
recording are not stored: those of a turn are made again when they are needed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, overload

from inspector.config.settings import Settings
from inspector.replay.adjustments import edited_request, edited_source, limits_for, pending_edits
from inspector.replay.case import (
    ASKED_LIVE,
    Case,
    case_as_profile,
    first_links,
    has_unrecorded_answer,
    links_of_loop,
    source_of,
    stops_at_edit,
)
from inspector.replay.token_counts import BoundedSource
from inspector.sessions.intake import note_judged
from inspector.sessions.recording import Link, TurnRecord, common_beginning
from loop_core.turn import costs, moves
from loop_core.turn.history import Ability
from loop_core.turn.limits import TOTAL
from loop_core.turn.loop import Plan, TurnSource, opening_step, steps_from
from loop_core.turn.policy import Signal, word_of
from loop_core.turn.state import State, Turn
from loop_core.turn.trace import Fidelity, Step, Trace
from loop_core.values import Request

if TYPE_CHECKING:
    from inspector.replay.simulate import SimulatedTurn

RECENT = 64
"""The number of turns of a long recording whose steps are stored at a time."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StepMaker:
    """Makes the steps of a turn of a long recording when they are needed. They take 2 kB and 50 µs for a turn."""

    case: Case
    settings: Settings
    _recent: dict[int, tuple[Step, ...]] = field(default_factory=dict)
    """Index of the first exchange of a turn -> its steps."""

    def steps(self, record: TurnRecord) -> tuple[Step, ...]:
        """The steps of a turn; repeated calls give equal steps, but perhaps other objects."""
        found = self._recent.get(record.links[0].index)
        if found is None:
            found = tuple(play_runs(self.case, record, links_of_loop(self.case, record), self.settings))
            self.keep(record, found)
        return found

    def keep(self, record: TurnRecord, steps: tuple[Step, ...], beside: int = RECENT) -> None:
        """Keeps the steps of a turn for the next access, and those of fewer than `beside` other turns."""
        if len(self._recent) >= beside:
            self._recent.clear()
        self._recent[record.links[0].index] = steps


class TurnRun(NamedTuple):
    """One recorded turn as replayed: its steps are `Replay.trace.steps[first:end]`."""

    record: TurnRecord
    first: int
    end: int
    runs: int
    """The number of runs that examined the responses; more than 1: the agent continued after the engine's end."""
    last: int
    """The index among the turn's steps of the step that ends the first run."""
    made: tuple[Step, ...] | StepMaker
    """The steps, or the value that makes them; shared with a what-if that does not change the turn."""

    @property
    def deciding_step(self) -> int:
        """The index of the step that ends the first run, which is this loop's decision about the turn."""
        return self.first + self.last

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps."""
        return self.made.steps(self.record) if isinstance(self.made, StepMaker) else self.made

    @property
    def final_turn(self) -> Turn:
        """The turn in the state in which the first run left it."""
        return self.steps[self.last].turn

    def same_steps(self, other: TurnRun) -> bool:
        """Whether two runs share their steps, so that they need no comparison."""
        return self.made is other.made and (self.record is other.record or not isinstance(self.made, StepMaker))


_END = attrgetter("end")


class StepsOfTurns(Sequence[Step]):
    """The steps of all turns of a replay, in order; some of them are made on access."""

    __slots__ = ("_turns",)

    def __init__(self, turns: Sequence[TurnRun]) -> None:
        self._turns = turns

    def __len__(self) -> int:
        return self._turns[-1].end if self._turns else 0

    @overload
    def __getitem__(self, index: int) -> Step: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...

    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        places = range(len(self))[index]  # as for a tuple: negative indices, and an IndexError beyond the end
        return self._step(places) if isinstance(places, int) else tuple(map(self._step, places))

    def _step(self, place: int) -> Step:
        turn = self._turns[bisect_right(self._turns, place, key=_END)]
        return turn.steps[place - turn.first]

    def __iter__(self) -> Iterator[Step]:
        return chain.from_iterable(turn.steps for turn in self._turns)


class Stretch(NamedTuple):
    """Settings, and the step from which they hold."""

    since: int
    settings: Settings


class Replay(NamedTuple):
    """A replayed case, under one setting or under several in sequence."""

    case: Case
    settings: Settings
    """The settings of the last steps."""
    trace: Trace
    turns: Sequence[TurnRun]
    since: int = 0
    """The index of the step from which `settings` hold."""
    earlier: tuple[Stretch, ...] = ()
    """The settings of the steps before `since`, in order; empty if `since` is 0."""

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All settings in order, the first from step 0."""
        return (*self.earlier, Stretch(self.since, self.settings))

    def settings_at(self, step: int) -> Settings:
        """The settings in force at a step."""
        if step >= self.since:
            return self.settings
        return next(each.settings for each in reversed(self.earlier) if each.since <= step)

    def effective_step(self, index: int) -> Step:
        """A step with the limits and policy in force at it; a shared step still has those under which it was made."""
        step = self.trace.steps[index]
        settings = self.settings_at(index)
        policy = settings.belief
        if settings.limits is step.turn.limits and policy is step.turn.policy:
            return step
        limits = limits_for(self.case, self.turns[self.turn_at(index)].record, settings)
        return step._replace(turn=step.turn._replace(limits=limits, policy=policy))

    def turn_at(self, step: int) -> int:
        """The index of the turn of a step."""
        return min(bisect_right(self.turns, step, key=_END), len(self.turns) - 1)

    def place_in(self, other: Replay, step: int) -> int:
        """The step of another run with the same turn and distance from the turn's beginning as a step of this run."""
        if not self.turns or not other.turns:
            return 0
        number = self.turn_at(step)
        turn = other.turns[number]
        return min(turn.first + step - self.turns[number].first, turn.end - 1)


def replay(case: Case, settings: Settings | None = None, before: Replay | None = None) -> Replay:
    """Replays every recorded turn under the settings; unchanged turns are reused from `before`."""
    growing, runs = begin_replay(case, settings or Settings(), before)
    for _ in runs:
        pass  # the iterator adds each turn to the replay
    return join_runs(growing.case, growing.settings, growing.turns)


def begin_replay(case: Case, settings: Settings, before: Replay | None = None) -> tuple[Replay, Iterator[TurnRun]]:
    """A replay with the turns that it shares with `before`, and an iterator that plays the other turns and adds them.
    The steps of a turn are made only once if the caller uses them before it takes the next turn.
    """
    case = case_as_profile(case, settings.profile)
    turns = list[TurnRun]()
    if before is not None and before.settings == settings:
        # A followed file grows at its end, so the turns at its beginning are replayed only once.
        turns += before.turns[: _same_turns(before, case)]
    # A followed file grows by a few turns, whose steps are stored: a maker for each growth would keep every case.
    maker = StepMaker(case, settings) if case.long and not turns else None

    def play_turns() -> Iterator[TurnRun]:
        every = case.recording.turns
        for record in every[len(turns) :]:
            note_judged(len(turns) / len(every) / 2)  # the other half: each turn is made a row, which takes as long
            steps = tuple(play_runs(case, record, links_of_loop(case, record), settings))
            turn = place_steps(record, steps, turns[-1].end if turns else 0)
            if maker is not None:
                maker.keep(record, steps, 1)
                turn = turn._replace(made=maker)
            turns.append(turn)
            yield turn

    return Replay(case, settings, Trace(StepsOfTurns(turns)), turns), play_turns()


def _same_turns(before: Replay, case: Case) -> int:
    """The number of turns at the beginning whose answers and judgements are the same as in another case."""
    old = before.case
    exchanges = case.recording.exchanges
    same = common_beginning(old.recording.exchanges, exchanges)
    # A late `limits` record of a session file holds for all of its turns, including earlier ones.
    if (old.limits_by_path, old.end_causes) != (case.limits_by_path, case.end_causes):
        return 0
    cancels = {place for place, _ in old.cancels.items() ^ case.cancels.items()}
    # A new request that may follow several answers means that each of them may not be the last of its turn.
    changed = {number for number, _ in old.may_follow.items() ^ case.may_follow.items()}
    if cancels or old.judgements[:same] != case.judgements[:same]:
        changed |= {number for number, each in enumerate(exchanges[:same])
                    if old.judgements[number] != case.judgements[number] or (each.path, each.entry) in cancels}
    return common_beginning(before.turns, case.recording.turns, lambda turn, record: turn.record == record and not any(
        link.index >= same or link.index in changed for link in record.links))


def join_runs(
    case: Case, settings: Settings, turns: Sequence[TurnRun], since: int = 0, earlier: tuple[Stretch, ...] = ()
) -> Replay:
    """The runs of all turns, in order."""
    turns = tuple(turns)
    has_makers = any(isinstance(turn.made, StepMaker) for turn in turns)
    steps = StepsOfTurns(turns) if has_makers else tuple(chain.from_iterable([turn.steps for turn in turns]))
    return Replay(case, settings, Trace(steps), turns, since, earlier)


def place_steps(record: TurnRecord, steps: tuple[Step, ...], first: int) -> TurnRun:
    """The steps of a turn, numbered for their position in a trace."""
    runs = steps[-1].run + 1 if steps else 0
    last = len(steps) - 1 if runs < 2 else next(index for index, step in enumerate(steps) if step.run) - 1
    return TurnRun(record, first, first + len(steps), runs, max(0, last), steps)


def play_runs(case: Case, record: TurnRecord, links: Sequence[Link], settings: Settings, number: int = 0) -> list[Step]:
    """The steps of all runs that are needed to examine every response of `links`; `number` is that of the first run."""
    steps: list[Step] = []
    while links:
        ran = run(case, record, links, settings, number)
        steps.extend(ran)
        if len(links) == 1 or stops_at_edit(ran):
            break  # a run uses at least one answer; answers to other requests do not belong to an edited turn
        links, number = links[count_answers(case, record, links, settings, ran) :], number + 1
    return steps


def first_run(case: Case, record: TurnRecord, settings: Settings) -> Sequence[Step]:
    """The steps in which the machine decides one turn: the first run of its `TurnRun`."""
    case = case_as_profile(case, settings.profile)
    return run(case, record, links_of_loop(case, record), settings, 0)


def count_answers(
    case: Case, record: TurnRecord, links: Sequence[Link], settings: Settings, steps: Sequence[Step]
) -> int:
    """The number of links whose recorded answers a run over `links` used; at least one, so that replays end."""
    if _has_recut(steps[-1]):
        return first_links(case, links, max(1, _simulate(case, record, links, settings).answers_used(steps[-1].turn)))
    return first_links(case, links, max(1, sum([step.turn.signal is Signal.PROVIDER_RESPONSE for step in steps])))


def _has_recut(step: Step) -> bool:
    """Whether a run has received a simulated (cut again) answer by this step."""
    return step.fidelity is Fidelity.SIMULATED and has_unrecorded_answer(step.turn)


def plan_of(
    case: Case, record: TurnRecord, link: Link, settings: Settings, number: int, live: bool = False
) -> tuple[Request, Plan]:
    """The first request and the plan of a turn's run `number`, which begins here; with `live` it will be sent."""
    opening = case.recording.exchanges[link.index]
    request = opening.request or Request(opening.api, model=opening.response.model)
    wanted, bound_by = settings.max_tokens, None
    live = live or record.live_run is not None
    if wanted is not None and (settings.simulate or live):  # otherwise the recorded answers keep their own cap
        bound_by = None if live else bounding_cap(request.max_tokens, wanted)
        request = replace(request, max_tokens=wanted)
    if settings.edits:
        edits = pending_edits(case, record, settings)
        request = edited_request(request, [each for each in edits if each[0].exchange == link.index])
    limits = limits_for(case, record, settings)
    ability, provider = Ability(prefill=opening.profile.prefill != "none"), opening.profile.name
    if record.live_run is not None:
        live_run = case.live_runs[record.live_run]
        ability, provider = live_run.ability, live_run.provider if link.why == ASKED_LIVE else provider
    # Sessions that were made from a table of dialects were never recorded.
    fidelity = Fidelity.SIMULATED if opening.simulated else Fidelity.RECORDED
    return request, Plan(limits, settings.belief, ability, provider, fidelity, number, bound_by)


def bounding_cap(recorded: int | None, cap: int) -> int:
    """The max_tokens from which the token bound is derived: the recorded one, or a larger simulated one."""
    # 0, because a recording without a cap had no token bound; None would derive one from the new cap.
    return 0 if recorded is None else max(recorded, cap)


def run(
    case: Case, record: TurnRecord, links: Sequence[Link], settings: Settings, number: int, after: Step | None = None
) -> list[Step]:
    """One run of a turn over the answers of `links`; only the steps after `after`, if it is given."""
    request, plan = plan_of(case, record, links[0], settings, number)
    left = after is not None and _has_recut(after)  # a run that has left the recording does not return to it
    recorded = source_of(case, record, links)
    source: TurnSource = recorded
    if (settings.simulate or left) and recorded.answers[:1]:
        source = _simulate(case, record, links, settings)
    elif TOTAL in settings.explicit:
        source = BoundedSource(recorded, case.recording.exchanges)
    if settings.edits:
        source = edited_source(case, links, pending_edits(case, record, settings), source)
    if after is not None:
        return list(steps_from(resume_step(after, request, plan), source))
    opening = opening_step(record.id, request, plan)
    return [opening, *steps_from(opening, source)]


def resume_step(step: Step, request: Request, plan: Plan) -> Step:
    """A step changed so that a run can resume from it under another plan: the pending decision follows the new plan. An
    answer that waits for its evaluation is read by the new policy; a state that a guard stopped, or that runs tools, is
    entered again. A request in progress stays as it was sent."""
    turn, effects = step.turn, step.effects
    ability = plan.ability or turn.ability
    turn = turn._replace(request=request, limits=plan.limits, policy=plan.policy, ability=ability,
                         provider=plan.provider, bound_by=plan.bound_by)
    evaluation = turn.evaluation
    if turn.state is State.EVALUATE_STOP and evaluation is not None:
        # The spend is computed again from before the answer: whether it counts as truncated depends on the policy.
        again = evaluation._replace(
            word=word_of(plan.policy, evaluation.response, evaluation.judgement, plan.provider))
        spent = costs.spend_after(turn._replace(spend=step.before.spend),
                                  again) if step.before is not None else turn.spend
        turn = turn._replace(evaluation=again, spend=spent)
    elif turn.state is State.EXECUTE_TOOLS or (turn.state is State.RESUME and turn.last_send is None):
        turn, effects = moves.enter(turn)
    return step._replace(turn=turn, effects=effects)


def first_cap(case: Case, record: TurnRecord) -> int | None:
    """The recorded output cap of a turn's first request."""
    return case.opening(record).cap


def _simulate(case: Case, record: TurnRecord, links: Sequence[Link], settings: Settings) -> SimulatedTurn:
    from inspector.replay.simulate import simulated_source  # imported here, because only a simulation needs it

    # An explicit bound lowers the caps of requests, as another max_tokens does.
    changed = settings.simulate and (TOTAL in settings.explicit
                                     or settings.max_tokens not in (None, first_cap(case, record)))
    recorded = source_of(case, record, links)
    return simulated_source(recorded, case.recording.exchanges, case.measures, changed)
