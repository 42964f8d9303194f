"""A recording under our machine: a case and settings give one `Trace`.

Judging (`case`) depends on the bytes alone and is done once; replaying depends on limits and policy, costs far less,
and is done again for every what-if. Where our machine ends and the recorded agent went on, a further run of the same
turn begins at the exchange that it had not reached, so that every response is examined.

The first half compares terms: a what-if keeps the steps that its terms cannot change. Where `parting` finds nothing,
the same moves would be made, and the steps of the run stand for both. What a shared step may still show of the old
terms are the fields `limits` and `policy` of its turn, never a decision. Where it is not sure, it parts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from inspector.config.settings import Settings, live_limits
from inspector.replay.case import LIVE, Case, judge_response, limits_for, reach, seen_by_loop, source_of, spoken
from inspector.sessions.recording import Link, TurnRecord
from loop_core.turn import costs, moves
from loop_core.turn.history import Ability
from loop_core.turn.limits import Limits, Spent, token_stop, tripped
from loop_core.turn.loop import going_on
from loop_core.turn.machine import begin, read
from loop_core.turn.policy import STRICT, Policy, Signal, word_of
from loop_core.turn.state import Evaluated, Place, Responded, Send, State, Turn
from loop_core.turn.trace import Fidelity, Step, Trace, first
from loop_core.values import Request

if TYPE_CHECKING:
    from inspector.replay.simulate import Simulated


@dataclass(frozen=True, slots=True)
class Terms:
    """What a run is made under, beside its answers."""

    request: Request
    """What the turn asks for; its initial cap bounds the turn's tokens."""
    limits: Limits = field(default_factory=Limits)
    policy: Policy = STRICT
    ability: Ability = field(default_factory=Ability)
    provider: str = ""
    bound_by: int | None = None
    """What the bound is derived from, where it is not the request's cap (`Turn.bound_by`)."""


def parting(steps: Sequence[Step], start: int, end: int, terms: Terms) -> int:
    """The first of `steps[start:end]` whose move could be another under these terms; `end`: none.

    The steps are of one run, over the same answers.
    """
    limits, policy, provider, cap = terms.limits, terms.policy, terms.provider, terms.request.max_tokens
    for index in range(start, end):
        step = steps[index]
        before = step.before
        asked = before or step.turn
        if asked.request.max_tokens != cap or asked.provider != provider or asked.bound_by != terms.bound_by:
            return index
        if before is None:
            if any(_capped_otherwise(each, asked, limits, policy) for each in step.effects if type(each) is Send):
                return index
            continue  # a run begins alike, whatever else bounds it later
        same = before.policy is policy
        if before.limits is not limits or not (same or before.policy.lacks == policy.lacks):
            bounds = before.state in _BOUNDED or step.turn.state in _BOUNDED
            if bounds and _limits_decide(step, before, limits, policy):
                return index
        if not same and _policy_decides(step, before, policy):
            return index
    return end


def resumed(step: Step, terms: Terms) -> Step:
    """A step as the one to go on from under other terms: what its state is about to decide is decided by them.

    An answer that waits to be evaluated is read by the new policy; a state that a guard has stopped, or that runs
    tools, is entered again. A request that is under way stays as it was sent.
    """
    turn, effects = step.turn, step.effects
    turn = turn._replace(request=terms.request, limits=terms.limits, policy=terms.policy, ability=terms.ability,
                   provider=terms.provider, bound_by=terms.bound_by)
    seen = turn.evaluated
    if turn.state is State.EVALUATE_STOP and seen is not None:
        again = _reread(seen, terms.policy, terms.provider)
        spent = costs.counted(turn._replace(spent=step.before.spent), again) if step.before is not None else turn.spent
        turn = turn._replace(evaluated=again, spent=spent)
    elif turn.state is State.EXECUTE_TOOLS or (turn.state is State.RESUME and turn.sent is None):
        turn, effects = moves.entered(turn)
    return step._replace(turn=turn, effects=effects)


def _reread(seen: Evaluated, policy: Policy, provider: str) -> Evaluated:
    return replace(seen, word=word_of(policy, seen.response, seen.judged, provider))


_BOUNDED = frozenset({State.EVALUATE_STOP, *moves.GUARDED})
"""States that a limit has a say in as they are left or entered."""

# -- limits ----------------------------------------------------------------------------------------------------------


def _limits_decide(step: Step, before: Turn, limits: Limits, policy: Policy) -> bool:
    """Whether a limit that this move looked at would now say something else."""
    left, after = before.state, step.turn
    if left is State.EVALUATE_STOP and _counted_otherwise(before, after, limits):
        return True
    if left is not State.RESUME or before.sent is None:  # else its request was under way, and no guard was asked
        place = moves.GUARDED.get(left)
        if place is not None and _guarded_otherwise(place, before, before.spent, limits, policy):
            return True
    if any(_capped_otherwise(effect, after, limits, policy) for effect in step.effects if type(effect) is Send):
        return True
    if after.state is State.EXECUTE_TOOLS:  # these two ask their guards as they are entered
        return _guarded_otherwise("tools", before, after.spent, limits, policy)
    return after.state is State.RESUME and _guarded_otherwise("resume", before, before.spent, limits, policy)


def _capped_otherwise(send: Send, turn: Turn, limits: Limits, policy: Policy) -> bool:
    """Whether the output cap of a request could be another: it is kept within what the token bound leaves."""
    old, new = turn.room, turn._replace(limits=limits, policy=policy).room
    if old == new:
        return False
    cap = send.max_tokens
    return cap is None or (old is not None and cap >= old) or (new is not None and cap >= new)


def _guarded_otherwise(place: str, turn: Turn, spent: Spent, limits: Limits, policy: Policy) -> bool:
    old = turn.limits
    guard = tripped(place, old, spent, turn.token_stop, turn.policy.lacks)
    cap = token_stop(turn.cap_under(limits, policy), turn.request, policy.lacks)
    if guard is not tripped(place, limits, spent, cap, policy.lacks):
        return True
    return guard is not None and getattr(old, guard.limit) != getattr(limits, guard.limit)  # its notice names the limit


def _counted_otherwise(before: Turn, after: Turn, limits: Limits) -> bool:
    """Whether what the response costs depends on a limit that is another."""
    old, sent = before.limits, before.sent
    if old.attempts_scope != limits.attempts_scope and before.spent.attempts:
        return True
    continuing = sent is not None and sent.place is Place.CONTINUATION and after.signal is Signal.MAX_TOKENS
    return continuing and old.min_progress_chars != limits.min_progress_chars


# -- policy ----------------------------------------------------------------------------------------------------------


def _policy_decides(step: Step, before: Turn, policy: Policy) -> bool:
    """Whether a belief that this move went by would now lead elsewhere."""
    old, after = before.policy, step.turn
    if old.settles is not policy.settles and (before.repairing or before.broken or after.broken):
        return True
    if old.seam is not policy.seam and any(len(answer) > 1 for answer in after.answers):
        return True
    if type(step.event) is Responded:
        event, seen = step.event, after.evaluated
        if seen is None or word_of(policy, event.response, event.judged, before.provider) is not seen.word:
            return True
        return costs.cuts(seen, policy) is not costs.cuts(seen, old)  # what it counts against
    if before.state is State.EVALUATE_STOP:
        return _read_otherwise(before, after, policy)
    if before.state is State.CONTINUE_PENDING:
        return old.methods != policy.methods or old.system_hint is not policy.system_hint
    return before.state is State.EXECUTE_TOOLS and old.dispatch is not policy.dispatch


def _read_otherwise(before: Turn, after: Turn, policy: Policy) -> bool:
    seen, old = before.evaluated, before.policy
    if seen is None:
        return True
    now = before._replace(policy=policy, evaluated=_reread(seen, policy, before.provider))
    if now.evaluated is None or now.evaluated.word is not seen.word or read(now) is not after.signal:
        return True
    if costs.is_cut(now) is not costs.is_cut(before):
        return True
    if after.state is State.EXECUTE_TOOLS:
        return old.dispatch is not policy.dispatch
    return after.terminal == "completed" and old.silent_endings != policy.silent_endings


# -- Replays ---------------------------------------------------------------------------------------------------------


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
    steps: tuple[Step, ...]
    """The steps themselves; a what-if that leaves a turn alone has the very same."""


class Stretch(NamedTuple):
    """From which step on settings held."""

    since: int
    settings: Settings


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
        return step._replace(turn=step.turn._replace(limits=limits, policy=policy))

    def turn_at(self, step: int) -> int:
        """The index of the turn that a step belongs to."""
        return min(bisect_right(self.ends, step), len(self.ends) - 1)


def replay(case: Case, settings: Settings | None = None) -> Replay:
    """Runs every recorded turn under the settings."""
    settings = settings or Settings()
    case = spoken(case, settings.profile)
    rules = rules_for(case, settings)
    turns: list[TurnRun] = []
    first = 0
    again = any(exchange.again for exchange in case.loaded.exchanges)
    for record in case.loaded.turns:
        links = seen_by_loop(case, record) if again else record.links
        turns.append(placed(record, tuple(played(case, record, links, rules)), first))
        first = turns[-1].end
    return replayed(case, settings, turns)


def replayed(
    case: Case, settings: Settings, turns: Sequence[TurnRun], since: int = 0, earlier: tuple[Stretch, ...] = ()
) -> Replay:
    """The runs of all turns, one after the other."""
    steps = tuple(chain.from_iterable([turn.steps for turn in turns]))
    return Replay(case, settings, Trace(steps), tuple(turns), since, earlier, tuple([turn.end for turn in turns]))


@dataclass(frozen=True, slots=True, eq=False)
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
        return reach(case, links, max(1, _simulated(case, record, links, rules).reached(ran[-1].turn)))
    return reach(case, links, max(1, sum([step.turn.signal is Signal.PROVIDER_RESPONSE for step in ran])))


def _recuts(step: Step) -> bool:
    """Whether a run has been answered by what was cut again, by this step."""
    return step.fidelity is Fidelity.SIMULATED and any(
        segment.response is None for answer in step.turn.answers for segment in answer)


def terms_for(case: Case, record: TurnRecord, link: Link, rules: Rules, live: bool = False) -> Terms:
    """What a run of a turn that begins with an exchange is made under; `live`: as it is about to be asked."""
    opening = case.loaded.exchanges[link.index]
    request = opening.request or Request(opening.api, model=opening.response.model)
    wanted, bound_by = rules.settings.max_tokens, None
    live = live or record.heard is not None
    if wanted is not None and (rules.settings.simulate or live):  # a recording was made at its own
        bound_by = None if live else bounded_by(request.max_tokens, wanted)
        request = replace(request, max_tokens=wanted)
    limits = rules.brought.get(opening.path, rules.settings.limits)
    ability = _PREFILLS if opening.profile.prefill != "none" else _ASKS
    provider = opening.profile.name
    if record.heard is not None:
        heard = case.heard[record.heard]
        limits = live_limits(rules.settings, limits)
        ability, provider = heard.ability, heard.provider if link.why == LIVE else provider
    return Terms(request, limits, rules.policy, ability, provider, bound_by)


def bounded_by(recorded: int | None, wanted: int) -> int:
    """What the token bound is derived from where another max_tokens is simulated: it is never tighter for that.

    The bound stays as it was recorded; a larger max_tokens takes it along, since it would end the first answer else.
    """
    return 0 if recorded is None else max(recorded, wanted)


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
    asked = begin(record.id, terms.request, terms.limits, terms.policy, terms.ability, terms.provider, terms.bound_by)
    opening = first(*asked, source_fidelity(case, links[0]), number)
    return [opening, *going_on(opening, source)]


def source_fidelity(case: Case, link: Link) -> Fidelity:
    """How far the session itself can be trusted: what was made from a table was never recorded."""
    return Fidelity.SIMULATED if case.loaded.exchanges[link.index].simulated else Fidelity.RECORDED


def first_cap(case: Case, record: TurnRecord) -> int | None:
    """The output cap that a turn was recorded with."""
    request = case.loaded.exchanges[record.links[0].index].request
    return request.max_tokens if request else None


def budget_changed(case: Case, record: TurnRecord, settings: Settings) -> bool:
    """Whether a turn is simulated with another initial max_tokens than it was recorded with."""
    return settings.simulate and settings.max_tokens is not None and settings.max_tokens != first_cap(case, record)


def _simulated(case: Case, record: TurnRecord, links: Sequence[Link], rules: Rules) -> Simulated:
    from inspector.replay.simulate import simulated  # only what simulates pays for it

    changed = budget_changed(case, record, rules.settings)
    return simulated(source_of(case, record, links), case.loaded.exchanges, case.measured, judge_response, changed)
