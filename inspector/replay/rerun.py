"""Replays a case under other settings, from the first step or a later one.

Every turn that the settings affect is run again and compared. Steps that did not change are the same objects in both
replays: all before the given step, whole turns without a change, and the beginning of a turn that changes later.

A turn may also have been sent live again from one of its steps. The responses of that live run are appended to the
exchanges of the case, so that every view shows them like the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import NamedTuple, TypeVar

from inspector.config.settings import Settings, TurnEdit
from inspector.replay import (
    Replay,
    TurnRun,
    count_answers,
    join_runs,
    place_steps,
    plan_of,
    play_runs,
    resume_step,
    run,
)
from inspector.replay.adjustments import input_of, round_of
from inspector.replay.case import (
    ASKED_LIVE,
    TURN_PLACES,
    BranchAnswers,
    Case,
    case_as_profile,
    case_beside,
    judge_exchange,
    links_of_loop,
    source_of,
    stops_at_edit,
)
from inspector.replay.recorded_calls import gate_exchange
from inspector.sessions.build import decode_as
from inspector.sessions.recording import Link, TurnPlace, TurnRecord, common_beginning
from loop_core.errors import CallerError
from loop_core.turn.loop import Plan, opening_step, steps_from
from loop_core.turn.policy import Signal
from loop_core.turn.state import ProviderResponse, Send, ToolResults, Turn
from loop_core.turn.trace import Fidelity, Step
from loop_core.values import Request


class BranchStart(NamedTuple):
    """The step of a run from which a turn is sent to a server again."""

    turn: TurnRun
    before: tuple[Step, ...]
    """The steps of the turn that stay unchanged."""
    number: int
    """The number of the run within its turn, from 0."""
    prefix: tuple[Link, ...]
    """The recorded exchanges of this run before the step."""
    rest: tuple[Link, ...]
    """The recorded exchanges from the step on, beginning with the request that is sent again."""
    earlier: tuple[Link, ...]
    """The recorded exchanges of the turn's earlier runs."""

    @property
    def opening(self) -> Link:
        """The first exchange of the run."""
        return (*self.prefix, *self.rest)[0]

    def step(self, request: Request, plan: Plan, cap: int | None) -> Step:
        """The step to resume from under this plan; its request is sent with this cap, if given."""
        if self.before and self.before[-1].run == self.number:
            start_step = resume_step(self.before[-1], request, plan)
            return start_step if cap is None else _with_cap(start_step, cap)
        return opening_step(self.turn.record.id, request, plan._replace(fidelity=Fidelity.RECORDED))


def start_of(replay: Replay, since: int) -> BranchStart:
    """The start of a branch at step `since`. Raises `CallerError` if an answer before the step is simulated; a live run
    can only follow answers that a server gave."""
    turn = replay.turns[replay.turn_at(since)]
    before = turn.steps[: since - turn.first]
    number = turn.steps[since - turn.first].run
    responses = [step.event for step in before if step.run == number and isinstance(step.event, ProviderResponse)]
    if any(answer.recut is not None or answer.synthetic for answer in responses):
        raise CallerError(
            f"step {since + 1:,}: what came before it is SIMULATED; a live run continues real answers only")
    runs = _runs_of(replay.case, turn, turn.record.links, replay.settings)
    links = next(links for of_run, _, _, links in runs if of_run == number)
    answers = sum(step.run == number and step.signal is Signal.PROVIDER_RESPONSE for step in before)
    count = 0
    while answers:
        answers -= links[count].index not in replay.case.unanswered
        count += 1
    earlier = turn.record.links[: len(turn.record.links) - len(links)]
    return BranchStart(turn, before, number, tuple(links[:count]), tuple(links[count:]), earlier)


def _runs_of(
    case: Case, turn: TurnRun, links: Sequence[Link], settings: Settings
) -> Iterator[tuple[int, int, int, Sequence[Link]]]:
    """The runs of a turn over these links: number, first step, the step after the last, and the links from the run's
    first on."""
    steps, first, number = turn.steps, 0, 0
    while first < len(steps) and links:
        ends = (index for index in range(first, len(steps)) if steps[index].run != steps[first].run)
        end = len(steps) if turn.runs == 1 else next(ends, len(steps))
        yield number, first, end, links
        links = links[count_answers(case, turn.record, links, settings, steps[first:end]) :]
        first, number = end, number + 1


def _with_cap(step: Step, cap: int) -> Step:
    """The step with another output cap for the request that it sends, and for those that follow from it."""
    turn, effects = step.turn, step.effects
    if turn.last_send is None:
        return step
    effects = tuple(effect._replace(max_tokens=cap) if isinstance(effect, Send) else effect for effect in effects)
    return step._replace(turn=turn._replace(last_send=turn.last_send._replace(max_tokens=cap)), effects=effects)


def cap_of(parent: Replay, settings: Settings) -> int | None:
    """The cap of the first request, if the settings change it."""
    return settings.max_tokens if settings.max_tokens != parent.settings.max_tokens else None


class LiveBranch(NamedTuple):
    """A turn continued with the responses of a live run."""

    turn: TurnRun
    """The turn in the parent replay."""
    record: TurnRecord
    case: Case
    steps: tuple[Step, ...]
    """All steps of the turn: the unchanged ones, and those computed from the live responses."""


def live_branch_of(parent: Replay, case: Case, settings: Settings, since: int) -> LiveBranch | None:
    """The turn at a step, continued with the live run that the settings name; None if they name no new one. Raises
    `CallerError` if its recording is missing or empty, or if it cannot have begun at this step."""
    if settings.live is None or any(turn.record.live_run == settings.live for turn in parent.turns):
        return None
    live_run = case.live_runs.get(settings.live)
    if live_run is None:
        raise CallerError(f"live={settings.live}: there is no recording of this live run")
    if not live_run.exchanges:
        raise CallerError(f"live={settings.live}: its recording holds no request")
    start = start_of(parent, since)
    offset = len(case.recording.exchanges)
    links = (*start.prefix, *_links(live_run, offset, start))
    record = start.turn.record
    kept_links = (*start.earlier, *start.prefix)
    # The replaced exchanges stay in the record as its remainder: recorded bytes never disappear from a view.
    left = tuple(link for link in record.links if link not in kept_links)
    record = record._replace(links=(*start.earlier, *links), live_run=live_run.name,
                             remainder=(*record.remainder, *left))
    case = _case_with(case, live_run, record, settings.profile)
    first = start.step(*plan_of(case, record, links[0], settings, start.number), cap_of(parent, settings))
    fresh = () if start.before and start.before[-1].run == start.number else (first,)
    ran = steps_from(first, source_of(case, record, links))
    return LiveBranch(start.turn, record, case, (*start.before, *fresh, *ran))


def _links(answers: BranchAnswers, offset: int, start: BranchStart) -> list[Link]:
    found: list[Link] = []
    parent = start.prefix[-1].index if start.prefix else None
    for position, (place, ordinal) in enumerate(answers.places):
        opens = not start.prefix and position == 0
        act = TurnPlace.REQUEST if opens else TURN_PLACES[place]
        found.append(Link(offset + position, act, max(1, ordinal), ASKED_LIVE, parent=parent))
        parent = offset + position
    return found


def _case_with(case: Case, answers: BranchAnswers, record: TurnRecord, profile: str | None) -> Case:
    """The case with the responses of a live run after its exchanges, and with `record` in place of its turn."""
    exchanges = answers.exchanges if profile is None else tuple(decode_as(each, profile) for each in answers.exchanges)
    judged = tuple(judge_exchange(each) for each in exchanges)
    verdicts = tuple(gate_exchange(each, reading) for each, reading in zip(exchanges, judged, strict=True))
    offset = len(case.recording.exchanges)
    links = (*record.remainder, *record.links)
    opened = case.recording.exchanges[links[0].index].path if links else ""
    brought = {exchanges[0].path: case.limits_by_path[opened]} if opened in case.limits_by_path else {}
    turns = tuple(record if turn.id == record.id else turn for turn in case.recording.turns)
    return replace(
        case, recording=case.recording._replace(exchanges=(*case.recording.exchanges, *exchanges), turns=turns),
        judgements=(*case.judgements, *judged), verdicts=(*case.verdicts, *verdicts),
        limits_by_path={**case.limits_by_path, **brought}, measures=dict(case.measures),
        root=None if case.root is None else _case_with(case.root, answers, record, None), by_profile={},
        unanswered=case.unanswered | {offset + position for position in answers.unanswered})


# -- Reruns ----------------------------------------------------------------------------------------------------------

T = TypeVar("T")


def rerun(parent: Replay, settings: Settings, since: int = 0) -> Replay:
    """The replay whose settings hold from step `since`; the earlier steps are the parent's. Raises `CallerError` if the
    parent has no such step, or there is no such profile."""
    count = len(parent.trace.steps)
    if not 0 <= since < max(1, count):
        raise CallerError(f"step {since + 1:,}: this run has the steps 1 to {count:,}")
    case = case_since(parent, settings.profile, since)
    live = None if not parent.turns else live_branch_of(parent, case, settings, since)
    case = case if live is None else live.case
    turns: list[TurnRun] = []
    first, same = 0, True
    for old in parent.turns:
        record, steps = old.record, None
        if live is not None and old is live.turn:
            record, steps = live.record, live.steps
        elif old.end > since:
            steps = _changed_steps(old.steps, _run_again(case, old, settings, max(0, since - old.first)))
        if steps is not None:
            turns.append(place_steps(record, steps, first))
            same = False
        else:
            shift = first - old.first  # not 0 if an earlier turn became longer or shorter
            turns.append(old._replace(first=first, end=old.end + shift) if shift else old)
        first = turns[-1].end
    earlier = tuple(stretch for stretch in parent.stretches if stretch.since < since)
    if same:
        return Replay(case, settings, parent.trace, parent.turns, since, earlier)
    return join_runs(case, settings, turns, since, earlier)


def case_since(parent: Replay, profile: str | None, since: int) -> Case:
    """The case read by the profile, except the responses before a step: a run that has begun keeps its server."""
    case = case_as_profile(parent.case, profile)
    if since == 0 or case is parent.case:
        return case
    if parent.settings.profile == profile and parent.since <= since:
        return parent.case
    old = parent.case
    earlier = {step.response for step in parent.trace.steps[:since]}
    earlier_flags = [index in earlier for index in range(len(case.judgements))]
    return case_beside(
        case, _choose(earlier_flags, old.recording.exchanges, case.recording.exchanges),
        _choose(earlier_flags, old.judgements, case.judgements), _choose(earlier_flags, old.verdicts, case.verdicts))


def _choose(keeps: Sequence[bool], old: Sequence[T], new: Sequence[T]) -> tuple[T, ...]:
    return tuple([one if keep else other for keep, one, other in zip(keeps, old, new, strict=True)])


def _run_again(case: Case, old: TurnRun, settings: Settings, start: int) -> tuple[Step, ...]:
    """The steps of a turn whose settings change at its step `start`."""
    steps, record = old.steps, old.record
    for number, first, end, links in _runs_of(case, old, links_of_loop(case, record), settings):
        if end > start:
            at = max(first, start)
            ran = run(case, record, links, settings, number, steps[at - 1] if at > first else None)
            if stops_at_edit(ran):
                return (*steps[:at], *ran)
            rest = links[count_answers(case, record, links, settings, [*steps[first:at], *ran]) :]
            return (*steps[:at], *ran, *play_runs(case, record, rest, settings, number + 1))
    return steps


def edit_step(replay: Replay, edit: TurnEdit) -> int:
    """The index of the step at which a run receives an input; an edit of the input holds from there. Raises
    `CallerError` if there is no such turn or input, or if this run ends before the input."""
    turn = next((each for each in replay.turns if each.record.id == edit.id), None)
    if turn is None:
        raise CallerError(f"turn {edit.turn}: this run has the turns 1 to {len(replay.turns):,}")
    turn_input = input_of(replay.case, turn.record, str(edit.input))
    for _, first, end, links in _runs_of(replay.case, turn, links_of_loop(replay.case, turn.record), replay.settings):
        if links[0].index == turn_input.exchange:
            return turn.first + first
        number = round_of(links, turn_input.exchange)
        for at, step in enumerate(turn.steps[first:end], turn.first + first):
            if isinstance(step.event, ToolResults) and step.before and step.before.spend.tool_steps == number:
                return at
    raise CallerError(f"input {edit.input} of turn {edit.turn}, {turn_input.what}: this run ends before it is given")


def _changed_steps(old: tuple[Step, ...], new: tuple[Step, ...]) -> tuple[Step, ...] | None:
    """The new steps, replaced by the old ones before the first that differs; None if none differs. Shared steps are
    viewed, compared and stored once: without them a what-if over 1,385 exchanges takes 120 ms instead of 80 ms."""
    count = common_beginning(old, new, _is_same_step)
    return None if count == len(old) == len(new) else (*old[:count], *new[count:])


# A step may be shared although it was made under other settings: `Replay.effective_step` gives the settings in force.
_MADE_UNDER = ("limits", "policy", "request")
_OF_TURN = attrgetter(*(name for name in Turn._fields if name not in _MADE_UNDER))
_OF_STEP = attrgetter(*(name for name in Step._fields if name not in ("turn", "before")))
_OF_REQUEST = attrgetter(*(each.name for each in fields(Request)))


def _is_same_step(one: Step, other: Step) -> bool:
    """Whether two steps are equal apart from the settings under which they were made."""
    left, right = one.turn, other.turn
    if one is other:
        return True
    # The seam rule has an effect only when texts are joined, so no field of the turn shows it.
    if left.policy.seam is not right.policy.seam and any(len(answer) > 1 for answer in right.answers):
        return False
    return _OF_TURN(left) == _OF_TURN(right) and _OF_STEP(one) == _OF_STEP(other) and (
        left.request is right.request or _OF_REQUEST(left.request) == _OF_REQUEST(right.request))
