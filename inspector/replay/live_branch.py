"""A turn that was asked live again from one of its steps on: its place in the case, and its steps.

What a live run heard is appended to the exchanges of the case, so that every view shows it as it shows the others. The
turn's steps before it are shared; those after are made from what was heard, by the same machine, each time anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from inspector.config.settings import Settings
from inspector.replay.case import LIVE, Case, Heard, gate_exchange, judge_exchange, source_of
from inspector.replay.fork import Terms, resumed
from inspector.replay.replay import Replay, Rules, TurnRun, terms_for, used
from inspector.sessions.build import spoken_by
from inspector.sessions.recording import Conversation, Link, Place, TurnRecord
from loop_core.errors import CallerError
from loop_core.turn.loop import Plan, begun, going_on
from loop_core.turn.policy import Signal
from loop_core.turn.state import Place as Asked
from loop_core.turn.state import Responded, Send
from loop_core.turn.trace import Fidelity, Step

PLACES: Mapping[Asked, Place] = {
    Asked.REQUEST: Place.TOOL_RESULT, Asked.CONTINUATION: Place.CONTINUATION, Asked.REPAIR: Place.REPAIR,
    Asked.RESUME: Place.RESUME, Asked.NUDGE: Place.NUDGE,
}
"""Why a request was sent -> what it did; the first of a turn is a request of its own."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Start:
    """Where in a run a turn is asked again."""

    turn: TurnRun
    before: tuple[Step, ...]
    """The steps of the turn that stay."""
    number: int
    """Of the run, within its turn."""
    kept: tuple[Link, ...]
    """What was recorded of this run, up to the step."""
    rest: tuple[Link, ...]
    """What was recorded behind it, from the request on that is asked again."""
    earlier: tuple[Link, ...]
    """What was recorded of the runs before it."""

    @property
    def opening(self) -> Link:
        """The exchange that the run began with."""
        return (*self.kept, *self.rest)[0]

    def step(self, terms: Terms, cap: int | None) -> Step:
        """The step to go on from under these terms; its request is sent with this cap, where one is given."""
        if self.before and self.before[-1].run == self.number:
            made = resumed(self.before[-1], terms)
            return made if cap is None else _capped(made, cap)
        plan = Plan(terms.limits, terms.policy, terms.ability, terms.provider, Fidelity.RECORDED, self.number)
        return begun(self.turn.record.id, terms.request, plan)


def start_of(replay: Replay, since: int) -> Start:
    """Where a turn is asked again from step `since` on.

    Raises:
        CallerError: what came before was simulated, so that nobody was ever asked for what follows.
    """
    turn = replay.turns[replay.turn_at(since)]
    before = turn.steps[: since - turn.first]
    number = turn.steps[since - turn.first].run
    given = [step.event for step in before if step.run == number and isinstance(step.event, Responded)]
    if any(answer.recut is not None or answer.made for answer in given):
        raise CallerError(f"step {since + 1}: what came before it is SIMULATED; a live run goes on from what was heard")
    links = turn.record.links
    for run in range(number):
        steps = [step for step in turn.steps if step.run == run]
        rules = Rules(replay.settings, replay.settings.belief, {})
        links = links[used(replay.case, turn.record, links, rules, steps) :]
    answers = sum(step.run == number and step.signal is Signal.PROVIDER_RESPONSE for step in before)
    count = 0
    while answers:
        answers -= links[count].index not in replay.case.silent
        count += 1
    earlier = turn.record.links[: len(turn.record.links) - len(links)]
    return Start(turn, before, number, links[:count], links[count:], earlier)


def _capped(step: Step, cap: int) -> Step:
    """The step with another output cap for the request that it sends, and for those that follow from it."""
    turn, effects = step.turn, step.effects
    if turn.sent is None:
        return step
    effects = tuple(replace(effect, max_tokens=cap) if isinstance(effect, Send) else effect for effect in effects)
    return replace(step, turn=replace(turn, sent=replace(turn.sent, max_tokens=cap)), effects=effects)


def cap_of(parent: Replay, settings: Settings) -> int | None:
    """The cap that the first request gets, where the settings change it."""
    return settings.max_tokens if settings.max_tokens != parent.settings.max_tokens else None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Again:
    """A turn with what a live run heard."""

    turn: TurnRun
    """As it was."""
    record: TurnRecord
    case: Case
    start: Start
    cap: int | None

    def steps(self, rules: Rules) -> tuple[Step, ...]:
        """Its steps: those that stay, and those made of what was heard."""
        start, links = self.start, self.record.links[len(self.start.earlier) :]
        first = start.step(terms_for(self.case, self.record, links[0], rules), self.cap)
        ran = going_on(first, source_of(self.case, self.record, links))
        fresh = () if start.before and start.before[-1].run == start.number else (first,)
        return (*start.before, *fresh, *ran)


def asked_again(parent: Replay, case: Case, settings: Settings, since: int) -> Again | None:
    """The turn at a step with what was heard in the live run that the settings name; None where they name no new one.

    Raises:
        CallerError: what it heard is not at hand, or it cannot have begun here.
    """
    if settings.live is None or any(turn.record.heard == settings.live for turn in parent.turns):
        return None
    heard = case.heard.get(settings.live)
    if heard is None:
        raise CallerError(f"live={settings.live}: there is no recording of this live run")
    if not heard.exchanges:
        raise CallerError(f"live={settings.live}: its recording holds no request")
    start = start_of(parent, since)
    offset = len(case.loaded.exchanges)
    links = tuple(_links(heard, offset, start))
    record = start.turn.record
    kept = (*start.earlier, *start.kept)
    left = tuple(link for link in record.links if link not in kept)
    record = replace(record, links=(*kept, *links), heard=heard.name, left=(*record.left, *left))
    return Again(start.turn, record, _with(case, heard, record, settings.profile), start, cap_of(parent, settings))


def _links(heard: Heard, offset: int, start: Start) -> list[Link]:
    found: list[Link] = []
    parent = start.kept[-1].index if start.kept else None
    for position, (place, ordinal) in enumerate(heard.places):
        opens = not start.kept and position == 0
        found.append(Link(
            offset + position, Place.REQUEST if opens else PLACES[place], max(1, ordinal), LIVE, parent=parent))
        parent = offset + position
    return found


def _with(case: Case, heard: Heard, record: TurnRecord, profile: str | None) -> Case:
    """The case and, behind its exchanges, what was heard; the turn is the one that is given."""
    root = case.root
    exchanges = heard.exchanges if profile is None else tuple(spoken_by(each, profile) for each in heard.exchanges)
    judged = tuple(judge_exchange(each) for each in exchanges)
    verdicts = tuple(gate_exchange(each, reading) for each, reading in zip(exchanges, judged, strict=True))
    offset = len(case.loaded.exchanges)
    opened = case.loaded.exchanges[(*record.left, *record.links)[0].index].path if record.left or record.links else ""
    brought = {exchanges[0].path: case.brought[opened]} if opened in case.brought else {}
    return Case(
        replace(case.loaded, exchanges=(*case.loaded.exchanges, *exchanges), conversations=tuple(
            _changed(each, record) for each in case.loaded.conversations)),
        (*case.judged, *judged), (*case.verdicts, *verdicts), {**case.brought, **brought}, case.measured,
        None if root is None else _with(root, heard, record, None), {}, case.heard,
        case.silent | {offset + position for position in heard.silent},
    )


def _changed(conversation: Conversation, record: TurnRecord) -> Conversation:
    if all(turn.id != record.id for turn in conversation.turns):
        return conversation
    return replace(conversation, turns=tuple(
        record if turn.id == record.id else turn for turn in conversation.turns))
