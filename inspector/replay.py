"""A recording under our machine: exchanges and turns -> judged responses -> one `Trace`.

Judging depends on the bytes alone and is done once; replaying depends on limits and policy, costs far less, and is done
again for every what-if. Where our machine ends and the recorded agent went on, a further run of the same turn begins at
the exchange that it had not reached, so that every response is looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from inspector.pause import without_collector
from inspector.sessions.build import spoken_by
from inspector.sessions.values import Exchange, Link, Loaded, TurnRecord
from inspector.sessions.values import Place as Recorded_Place
from inspector.settings import Settings
from loop_core.classify import Judged, judge
from loop_core.fork import Terms, resumed
from loop_core.frozen import field, frozen, replace
from loop_core.gate import Verdict, admit_all
from loop_core.history import Ability, asked_anchor
from loop_core.limits import Limits
from loop_core.loop import going_on
from loop_core.machine import begin
from loop_core.policy import Policy, Signal
from loop_core.seam import Method
from loop_core.sources import Recorded
from loop_core.tokens import Measured
from loop_core.trace import Fidelity, Step, Trace, first
from loop_core.turn import Event, NotRecorded, Place, Responded
from loop_core.values import ChatResponse, Evidence, Request, Role, Stop, StopReason, ToolResultPart
from loop_core.wire import profiles
from loop_core.wire.profile import Profile

if TYPE_CHECKING:
    from loop_core.simulate import Simulated

PLACES: Mapping[Recorded_Place, Place] = {
    Recorded_Place.CONTINUATION: Place.CONTINUATION,
    Recorded_Place.REPAIR: Place.REPAIR,
    Recorded_Place.RESUME: Place.RESUME,
    Recorded_Place.TOOL_RESULT: Place.REQUEST,
}
"""What the recorded agent did -> the place in the turn. A request or a retry is no place: it begins a run."""


@frozen(eq=False, repr=False)
class Heard:
    """What a live run heard: a turn of a recording, asked again from one of its steps on."""

    name: str
    """Unique; the recording is called by it."""
    exchanges: tuple[Exchange, ...]
    places: tuple[tuple[Place, int], ...]
    """Of each exchange: why it was sent, and the how-manieth of its place."""
    results: tuple[ToolResultPart, ...] | None = None
    """What tools answered after the last exchange, where no further request carried it."""
    silent: frozenset[int] = frozenset()
    """Positions of exchanges that are no answers: sent again, or given up."""
    after: Event = NotRecorded()
    """How the run ended where no answer ended it."""
    ability: Ability = field(default_factory=Ability)
    """What the server allows that was asked."""
    provider: str = ""
    """Who was asked."""
    problem: str = ""
    """What is missing of its recording, in words; empty where it is whole."""


@frozen(eq=False, repr=False)
class Case:
    """What was read, and each response judged; the same for every replay of it."""

    loaded: Loaded
    judged: tuple[Judged, ...]
    verdicts: tuple[tuple[Verdict, ...], ...]
    """The gate's verdicts on the calls of each response, under the strict reading."""
    brought: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Limits that session files were recorded under, by path."""
    measured: dict[int, Measured] = field(default_factory=dict)
    """The tokens of responses that a simulation had to cut, by index: they are the same for every budget."""
    root: Case | None = None
    """The case as it was read, where this one is read as if another profile spoke."""
    spoken: dict[str, Case] = field(default_factory=dict)
    """The same recording as other profiles speak, by their names: each is judged when it is first asked for."""
    heard: dict[str, Heard] = field(default_factory=dict)
    """What live runs from steps of this recording heard, by their names; all cases of one recording share it."""
    silent: frozenset[int] = frozenset()
    """Exchanges of live runs that are no answers: they were sent again, or given up when the run was cancelled."""
    sources: dict[tuple[str | None, int, int], Recorded] = field(default_factory=dict)
    """What answers a run, by the live run that it belongs to, its first exchange and how many there are: the same under
    every setting."""
    cancels: Mapping[tuple[str, int | None], bool] = field(default_factory=dict)
    """Where operators cancelled: file and exchange -> whether its answer had been taken in, or was given up."""


@frozen(eq=False, repr=False)
class TurnRun:
    """One recorded turn under our machine: its steps are `Replay.trace.steps[first:end]`."""

    record: TurnRecord
    first: int
    end: int
    runs: int
    """How many runs it took to look at every response; more than one means that the recorded agent went another way."""
    decided: int
    """The step that ends the first run: what our machine decided about this turn."""
    steps: tuple[Step, ...]
    """The steps themselves; a what-if that leaves a turn alone has the very same."""


class Stretch(NamedTuple):
    """From which step on settings held."""

    since: int
    settings: Settings


@frozen(eq=False, repr=False)
class Replay:
    """A case under one setting, or under one after another."""

    case: Case
    settings: Settings
    """Those that held last."""
    trace: Trace
    turns: tuple[TurnRun, ...]
    since: int = 0
    """The step from which they held."""
    earlier: tuple[Stretch, ...] = ()
    """What held for the steps before, in order; empty where `since` is 0."""
    ends: tuple[int, ...] = ()
    """Where each turn ends, to be searched."""

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All settings in the order in which they held, the first from step 0 on."""
        return (*self.earlier, Stretch(self.since, self.settings))

    def settings_at(self, step: int) -> Settings:
        """What held at a step."""
        if step >= self.since:
            return self.settings
        return next(each.settings for each in reversed(self.earlier) if each.since <= step)

    def shown(self, index: int) -> Step:
        """A step with the limits and the policy in force at it: one that runs share has those that it was made under.

        They decided the same, or it would not be shared; whatever shows a limit beside a step asks for it here.
        """
        step = self.trace.steps[index]
        settings = self.settings_at(index)
        policy = settings.belief
        if settings.limits is step.turn.limits and policy is step.turn.policy:
            return step
        path = self.case.loaded.exchanges[self.turns[self.turn_at(index)].record.links[0].index].path
        limits = limits_for(self.case, path, settings)
        return replace(step, turn=replace(step.turn, limits=limits, policy=policy))

    def turn_at(self, step: int) -> int:
        """The index of the turn that a step belongs to."""
        return min(bisect_right(self.ends, step), len(self.ends) - 1)


@without_collector
def open_case(loaded: Loaded) -> Case:
    """Judges every response once."""
    brought = {
        given.path: {name: value for act in given.acts if act.kind == "limits" for name, value in act.value.items()}
        for given in loaded.inputs
        if any(act.kind == "limits" for act in given.acts)
    }
    cancels = {(given.path, act.entry): act.value
               for given in loaded.inputs for act in given.acts if act.kind == "cancel"}
    judged = tuple(_judged(exchange, cancels) for exchange in loaded.exchanges)
    verdicts = tuple(
        gate_exchange(exchange, reading) for exchange, reading in zip(loaded.exchanges, judged, strict=True)
    )
    return Case(loaded, judged, verdicts, brought, cancels=cancels)


def _judged(exchange: Exchange, cancels: Mapping[tuple[str, int | None], bool]) -> Judged:
    judged = judge_exchange(exchange)
    return cancelled(judged) if cancels.get((exchange.path, exchange.entry)) is False else judged


def cancelled(judged: Judged) -> Judged:
    """The reading of an answer that the operator gave up: whatever it says, nothing of it runs and the turn ends."""
    seen = (*judged.stop.evidence, Evidence("operator.cancel", None, "the operator cancelled the turn"))
    return replace(judged, stop=StopReason(Stop.CANCELLED, judged.stop.raw, None, seen), promoted=False)


def limits_for(case: Case, path: str, settings: Settings) -> Limits:
    """The limits in force for a file: the operator's, then those the session was recorded under, then the defaults.

    Raises:
        CallerError: the session file holds a limit that does not exist or is out of range.
    """
    if path not in case.brought:
        return settings.limits
    return settings.limits.with_set({n: v for n, v in case.brought[path].items() if n not in settings.explicit})


def judge_exchange(exchange: Exchange) -> Judged:
    """The effective reason of one exchange, its router's native word read through all tables."""
    return judge_response(exchange.response, exchange.request, exchange.profile)


def judge_response(response: ChatResponse, request: Request | None, profile: Profile) -> Judged:
    """The effective reason of a response by a known speaker, its router's native word read through all tables."""
    return judge(response, request, profile, profiles.native_reading(response, profile))


def gate_exchange(exchange: Exchange, reading: Judged) -> tuple[Verdict, ...]:
    """The gate's verdicts on the calls of one response."""
    return admit_all(exchange.response.tool_calls, reading, exchange.request.tools if exchange.request else ())


def spoken(case: Case, profile: str | None) -> Case:
    """The recording as if this profile spoke in every exchange, kept once it was asked for; None: as it was read.

    Raises:
        CallerError: there is no such profile.
    """
    root = case.root or case
    if profile is None:
        return root
    made = root.spoken.get(profile)
    if made is None:
        exchanges = tuple(spoken_by(exchange, profile) for exchange in root.loaded.exchanges)
        made = _beside(root, exchanges)
        root.spoken[profile] = made
    return made


def _beside(root: Case, exchanges: tuple[Exchange, ...]) -> Case:
    """The case with other exchanges in the same places; those that are the same are not judged again."""
    judged, verdicts = list(root.judged), list(root.verdicts)
    for index, (old, new) in enumerate(zip(root.loaded.exchanges, exchanges, strict=True)):
        if old is not new:
            judged[index] = _judged(new, root.cancels)
            verdicts[index] = gate_exchange(new, judged[index])
    loaded = replace(root.loaded, exchanges=exchanges)
    return Case(loaded, tuple(judged), tuple(verdicts), root.brought, root=root, heard=root.heard, silent=root.silent,
                cancels=root.cancels)


@without_collector
def replay(case: Case, settings: Settings | None = None) -> Replay:
    """Runs every recorded turn under the settings."""
    settings = settings or Settings()
    case = spoken(case, settings.profile)
    rules = rules_for(case, settings)
    turns: list[TurnRun] = []
    first = 0
    for record in case.loaded.turns:
        turns.append(placed(record, tuple(played(case, record, seen_by_loop(case, record), rules)), first))
        first = turns[-1].end
    return replayed(case, settings, turns)


def replayed(
    case: Case, settings: Settings, turns: Sequence[TurnRun], since: int = 0, earlier: tuple[Stretch, ...] = ()
) -> Replay:
    """The runs of all turns, one after the other."""
    steps = tuple(chain.from_iterable([turn.steps for turn in turns]))
    return Replay(case, settings, Trace(steps), tuple(turns), since, earlier, tuple([turn.end for turn in turns]))


def seen_by_loop(case: Case, record: TurnRecord) -> Sequence[Link]:
    """The exchanges of a turn as its loop saw them: of a request that its recorder sent again, the last attempt."""
    exchanges = case.loaded.exchanges
    if not any(exchanges[link.index].again for link in record.links):
        return record.links
    found: list[Link] = []
    for link in record.links:
        if found and exchanges[link.index].again:
            found[-1] = replace(found[-1], index=link.index)
        else:
            found.append(link)
    return found


@frozen(eq=False)
class Rules:
    """Settings as they come to bear on one case."""

    settings: Settings
    policy: Policy
    brought: Mapping[str, Limits]
    """The limits of the files that bring some along, the operator's before theirs."""


def rules_for(case: Case, settings: Settings) -> Rules:
    """What the settings mean for a case, worked out once."""
    return Rules(settings, settings.belief, {path: limits_for(case, path, settings) for path in case.brought})


_PREFILLS, _ASKS = Ability(prefill=True), Ability()


def placed(record: TurnRecord, steps: tuple[Step, ...], first: int) -> TurnRun:
    """The steps of a turn, at their place in a trace."""
    last = len(steps) - 1
    runs = steps[-1].run + 1 if steps else 0
    decided = last if runs < 2 else next(index for index, step in enumerate(steps) if step.run) - 1
    run: TurnRun = TurnRun(record, first, first + len(steps), runs, first + max(0, decided), steps)
    return run


def played(case: Case, record: TurnRecord, links: Sequence[Link], rules: Rules, number: int = 0) -> list[Step]:
    """The runs that it takes to look at every response from `links` on; `number` is the first one's."""
    made: list[Step] = []
    while links:
        ran = run(case, record, links, rules, number)
        made.extend(ran)
        if len(links) == 1:
            break  # a run looks at one answer at least
        links, number = links[used(case, record, links, rules, ran) :], number + 1
    return made


def first_run(case: Case, record: TurnRecord, settings: Settings) -> Sequence[Step]:
    """The steps in which our machine decides one turn: what `replay` gives it from `first` to `decided`."""
    case = spoken(case, settings.profile)
    return run(case, record, seen_by_loop(case, record), rules_for(case, settings), 0)


def used(case: Case, record: TurnRecord, links: Sequence[Link], rules: Rules, ran: Sequence[Step]) -> int:
    """How many recorded answers a run over `links` looked at; one at least, so that runs come to an end."""
    if _recuts(ran[-1]):
        return _reach(case, links, max(1, _simulated(case, record, links, rules).reached(ran[-1].turn)))
    return _reach(case, links, max(1, sum([step.turn.signal is Signal.PROVIDER_RESPONSE for step in ran])))


def _reach(case: Case, links: Sequence[Link], answers: int) -> int:
    """The first links that hold so many answers, with those beside them that are none."""
    if not case.silent:
        return answers
    for position, link in enumerate(links):
        answers -= link.index not in case.silent
        if answers == 0 and any(after.index not in case.silent for after in links[position + 1 :]):
            return position + 1
    return len(links)


def _recuts(step: Step) -> bool:
    """Whether a run has been simulated by this step."""
    return step.fidelity is Fidelity.SIMULATED


def terms_for(case: Case, record: TurnRecord, link: Link, rules: Rules) -> Terms:
    """What a run of a turn that begins with an exchange is made under."""
    opening = case.loaded.exchanges[link.index]
    request = opening.request or Request(opening.api, model=opening.response.model)
    if rules.settings.max_tokens is not None:
        request = replace(request, max_tokens=rules.settings.max_tokens)
    limits = rules.brought.get(opening.path, rules.settings.limits)
    ability = _PREFILLS if opening.profile.prefill != "none" else _ASKS
    provider = opening.profile.name
    if record.heard is not None:
        heard = case.heard[record.heard]
        ability, provider = heard.ability, heard.provider if link.why == LIVE else provider
    return Terms(request, limits, rules.policy, ability, provider)


def run(
    case: Case, record: TurnRecord, links: Sequence[Link], rules: Rules, number: int, after: Step | None = None
) -> list[Step]:
    """One run of a turn over the answers of `links`; only what follows `after`, where a step of it is given."""
    terms = terms_for(case, record, links[0], rules)
    left = after is not None and _recuts(after)  # and it does not come back
    recorded = source_of(case, record, links)
    simulate = (rules.settings.simulate or left) and recorded.answers
    source = _simulated(case, record, links, rules) if simulate else recorded
    if after is not None:
        return list(going_on(resumed(after, terms), source))
    asked = begin(record.id, terms.request, terms.limits, terms.policy, terms.ability, terms.provider)
    opening = first(*asked, Fidelity.RECORDED, number)
    return [opening, *going_on(opening, source)]


def first_cap(case: Case, record: TurnRecord) -> int | None:
    """The output cap that a turn was recorded with."""
    request = case.loaded.exchanges[record.links[0].index].request
    return request.max_tokens if request else None


def budget_changed(case: Case, record: TurnRecord, settings: Settings) -> bool:
    """Whether a turn has another initial max_tokens than it was recorded with."""
    return settings.max_tokens is not None and settings.max_tokens != first_cap(case, record)


def _simulated(case: Case, record: TurnRecord, links: Sequence[Link], rules: Rules) -> Simulated:
    from inspector.simulation import simulated  # only what simulates pays for it

    changed = budget_changed(case, record, rules.settings)
    return simulated(source_of(case, record, links), case.loaded.exchanges, case.measured, judge_response, changed)


_NONE_YET = dict.fromkeys(Place, 0)


def source_of(case: Case, record: TurnRecord, links: Sequence[Link]) -> Recorded:
    """A run over the answers of `links`: recorded ones, and those that a live run heard after them."""
    where = (record.heard, links[0].index, len(links))
    found = case.sources.get(where)
    if found is None:
        found = case.sources[where] = _recorded(case, record, links)
    return found


def _recorded(case: Case, record: TurnRecord, links: Sequence[Link]) -> Recorded:
    answers: list[tuple[Place, int, Responded]] = []
    results: dict[int, tuple[ToolResultPart, ...]] = {}
    counts = dict(_NONE_YET)
    for position, link in enumerate([link for link in links if link.index not in case.silent]):
        place = PLACES.get(link.place) if position else Place.REQUEST
        if place is None:
            break  # a retry or a request of its own: the next run begins here
        if position:
            counts[place] += 1
        if link.place is Recorded_Place.TOOL_RESULT and position:
            results[counts[Place.REQUEST] - 1] = results_in(case.loaded.exchanges[link.index])
        answers.append((place, counts[place], _answer(case, link, position)))
    if record.heard is None:
        last = case.loaded.exchanges[links[-1].index]
        cancelled_ = case.cancels.get((last.path, last.entry)) is True
        return Recorded(tuple(answers), results, cancelled=cancelled_)
    heard = case.heard[record.heard]
    if heard.results is not None:
        results[counts[Place.REQUEST]] = heard.results
    return Recorded(tuple(answers), results, heard.after)


LIVE = "asked live"
"""Why an exchange of a live run stands where it stands."""


def _answer(case: Case, link: Link, position: int) -> Responded:
    exchange = case.loaded.exchanges[link.index]
    judged = case.judged[link.index]
    if link.why == LIVE:
        return Responded(exchange.response, judged, link.index, verdicts=case.verdicts[link.index], live=True)
    if position == 0 or link.place not in (Recorded_Place.CONTINUATION, Recorded_Place.REPAIR, Recorded_Place.RESUME):
        return Responded(exchange.response, judged, link.index, Method.FIRST, "", None, case.verdicts[link.index],
                          None)
    method, stripped = asked_by(case, link)
    verdicts = case.verdicts[link.index]
    anchor = asked_anchor(exchange.request.messages[-1]) if exchange.request and method is Method.ANCHOR else ""
    return Responded(exchange.response, judged, link.index, method, stripped, verdicts=verdicts, anchor=anchor)


def asked_by(case: Case, link: Link) -> tuple[Method, str]:
    """How the recorded agent asked for a continuation, and the white space it stripped from a prefill."""
    if link.place is Recorded_Place.REPAIR:
        return Method.REPAIR, ""
    exchange = case.loaded.exchanges[link.index]
    if link.place is Recorded_Place.RESUME:
        return Method.ECHO, ""
    messages = exchange.request.messages if exchange.request else ()
    if messages and asked_anchor(messages[-1]):
        return Method.ANCHOR, ""
    if not messages or messages[-1].role is not Role.ASSISTANT or link.parent is None:
        return Method.HINT, ""
    before = case.loaded.exchanges[link.parent].response.text or ""
    sent = messages[-1].text
    kept = before[len(before.rstrip()) :]
    return Method.PREFILL, kept if kept and sent == sent.rstrip() else ""


def results_in(exchange: Exchange) -> tuple[ToolResultPart, ...]:
    """The tool results at the end of a request: those after its last assistant message."""
    found: list[ToolResultPart] = []
    for message in reversed(exchange.request.messages if exchange.request else ()):
        if message.role is Role.ASSISTANT:
            break
        found[:0] = message.results
    return tuple(found)
