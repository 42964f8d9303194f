"""A recording under our machine: exchanges and turns -> judged responses -> one `Trace`.

Judging depends on the bytes alone and is done once; replaying depends on limits and policy, costs far less, and is done
again for every what-if. Where our machine ends and the recorded agent went on, a further run of the same turn begins at
the exchange that it had not reached, so that every response is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from inspector.pause import without_collector
from inspector.sessions.values import Exchange, Link, Loaded, TurnRecord
from inspector.sessions.values import Place as Recorded_Place
from inspector.settings import Settings
from loop_core.classify import Judged, judge
from loop_core.frozen import maker
from loop_core.gate import Verdict, admit_all
from loop_core.history import Ability
from loop_core.limits import Limits
from loop_core.loop import Plan, one_turn
from loop_core.policy import Signal
from loop_core.seam import Method
from loop_core.sources import Recorded
from loop_core.tokens import Measured
from loop_core.trace import Fidelity, Step, Trace
from loop_core.turn import Place, Responded
from loop_core.values import ChatResponse, Request, Role, StopReason, ToolResultPart
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TurnRun:
    """One recorded turn under our machine: its steps are `Replay.trace.steps[first:end]`."""

    record: TurnRecord
    first: int
    end: int
    runs: int
    """How many runs it took to look at every response; more than one means that the recorded agent went another way."""
    decided: int
    """The step that ends the first run: what our machine decided about this turn."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Replay:
    """A case under one setting."""

    case: Case
    settings: Settings
    trace: Trace
    turns: tuple[TurnRun, ...]

    def turn_at(self, step: int) -> int:
        """The index of the turn that a step belongs to."""
        low, high = 0, len(self.turns) - 1
        while low < high:
            middle = (low + high) // 2
            if self.turns[middle].end <= step:
                low = middle + 1
            else:
                high = middle
        return low


@without_collector
def open_case(loaded: Loaded) -> Case:
    """Judges every response once."""
    brought = {
        given.path: {name: value for act in given.acts if act.kind == "limits" for name, value in act.value.items()}
        for given in loaded.inputs
        if any(act.kind == "limits" for act in given.acts)
    }
    judged = tuple(judge_exchange(exchange) for exchange in loaded.exchanges)
    verdicts = tuple(
        admit_all(exchange.response.tool_calls, reading, exchange.request.tools if exchange.request else ())
        for exchange, reading in zip(loaded.exchanges, judged, strict=True)
    )
    return Case(loaded, judged, verdicts, brought)


def limits_for(case: Case, path: str, settings: Settings) -> Limits:
    """The limits in force for a file: the operator's, then those the session was recorded under, then the defaults.

    Raises:
        CallerError: the session file holds a limit that does not exist or is out of range.
    """
    brought = {n: v for n, v in case.brought.get(path, {}).items() if n not in settings.explicit}
    return settings.limits.with_set(brought) if brought else settings.limits


def judge_exchange(exchange: Exchange) -> Judged:
    """The effective reason of one exchange, its router's native word read through all tables."""
    return judge_response(exchange.response, exchange.request, exchange.profile)


def judge_response(response: ChatResponse, request: Request | None, profile: Profile) -> Judged:
    """The effective reason of a response by a known speaker, its router's native word read through all tables."""
    return judge(response, request, profile, native_reading(response, profile))


def native_reading(response: ChatResponse, profile: Profile) -> StopReason | None:
    """What the word that a router passed on means; None where there is none, or no table knows it."""
    for name in profile.native_fields:
        word = response.native.get(name)
        if not word:
            continue
        row = profiles.native_word(word)
        if row is not None:
            return StopReason(row.stop, word, row.detail)
    return None


@without_collector
def replay(case: Case, settings: Settings | None = None) -> Replay:
    """Runs every recorded turn under the settings."""
    settings = settings or Settings()
    made: list[Step] = []
    turns: list[TurnRun] = []
    for record in case.loaded.turns:
        first = len(made)
        runs, decided = 0, first
        links: Sequence[Link] = record.links
        while links:
            ran, used = _run(case, record, links, settings, runs)
            made.extend(ran)
            if runs == 0:
                decided = len(made) - 1
            runs += 1
            links = links[max(1, used) :]
        turns.append(TurnRun(record, first, len(made), runs, decided))
    return Replay(case, settings, Trace(tuple(made)), tuple(turns))


def first_run(case: Case, record: TurnRecord, settings: Settings) -> Sequence[Step]:
    """The steps in which our machine decides one turn: what `replay` gives it from `first` to `decided`."""
    return _run(case, record, record.links, settings, 0)[0]


def _used(ran: Sequence[Step]) -> int:
    """How many recorded answers a run consumed."""
    return sum([step.turn.signal is Signal.PROVIDER_RESPONSE for step in ran])


_plan = maker(Plan)
_PREFILLS, _ASKS = Ability(prefill=True), Ability()


def _run(
    case: Case, record: TurnRecord, links: Sequence[Link], settings: Settings, number: int
) -> tuple[list[Step], int]:
    """One run over these links: its steps, and how many of the links it looked at."""
    opening = case.loaded.exchanges[links[0].index]
    request = opening.request or Request(opening.api, model=opening.response.model)
    if settings.max_tokens is not None:
        request = replace(request, max_tokens=settings.max_tokens)
    ability = _PREFILLS if opening.profile.prefill != "none" else _ASKS
    provider = opening.profile.name
    limits = limits_for(case, opening.path, settings)
    plan = _plan(limits, settings.belief, ability, provider, Fidelity.RECORDED, number)
    recorded = _source(case, links)
    if not settings.simulate:
        ran = list(one_turn(record.id, request, recorded, plan))
        return ran, _used(ran)
    source = _simulated(case, recorded, first_cap(case, record), settings)
    ran = list(one_turn(record.id, request, source, plan))
    return ran, source.reached(ran[-1].turn) if ran[-1].fidelity is not Fidelity.RECORDED else _used(ran)


def first_cap(case: Case, record: TurnRecord) -> int | None:
    """The output cap that a turn was recorded with."""
    request = case.loaded.exchanges[record.links[0].index].request
    return request.max_tokens if request else None


def _simulated(case: Case, recorded: Recorded, initial: int | None, settings: Settings) -> Simulated:
    from inspector.simulation import simulated  # only what simulates pays for it

    changed = settings.max_tokens is not None and settings.max_tokens != initial
    return simulated(recorded, case.loaded.exchanges, case.measured, judge_response, changed)


_responded, _recorded = maker(Responded), maker(Recorded)
_NONE_YET = dict.fromkeys(Place, 0)


def _source(case: Case, links: Sequence[Link]) -> Recorded:
    answers: list[tuple[Place, int, Responded]] = []
    results: dict[int, tuple[ToolResultPart, ...]] = {}
    counts = dict(_NONE_YET)
    for position, link in enumerate(links):
        place = PLACES.get(link.place) if position else Place.REQUEST
        if place is None:
            break  # a retry or a request of its own: the next run begins here
        if position:
            counts[place] += 1
        if link.place is Recorded_Place.TOOL_RESULT and position:
            results[counts[Place.REQUEST] - 1] = results_in(case.loaded.exchanges[link.index])
        answers.append((place, counts[place], _answer(case, link, position)))
    return _recorded(tuple(answers), results)


def _answer(case: Case, link: Link, position: int) -> Responded:
    exchange = case.loaded.exchanges[link.index]
    judged = case.judged[link.index]
    if position == 0 or link.place not in (Recorded_Place.CONTINUATION, Recorded_Place.REPAIR, Recorded_Place.RESUME):
        return _responded(exchange.response, judged, link.index, Method.FIRST, "", None, case.verdicts[link.index],
                          None)
    method, stripped = asked_by(case, link)
    verdicts = case.verdicts[link.index]
    return Responded(exchange.response, judged, link.index, method, stripped, verdicts=verdicts)


def asked_by(case: Case, link: Link) -> tuple[Method, str]:
    """How the recorded agent asked for a continuation, and the white space it stripped from a prefill."""
    if link.place is Recorded_Place.REPAIR:
        return Method.REPAIR, ""
    exchange = case.loaded.exchanges[link.index]
    if link.place is Recorded_Place.RESUME:
        return Method.ECHO, ""
    messages = exchange.request.messages if exchange.request else ()
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
