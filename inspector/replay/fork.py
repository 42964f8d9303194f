"""A run under other terms: up to which step it would have been the same, and how it goes on from there.

A what-if need not make again what its terms cannot change. Which terms a move looks at is known here: where `parting`
finds nothing, the same moves would be made, and the steps of the run stand for both. What a shared step may still show
of the old terms are the fields `limits` and `policy` of its turn, never a decision. Where it is not sure, it parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from loop_core.turn import costs, moves
from loop_core.turn.history import Ability
from loop_core.turn.limits import Limits, Spent, token_stop, tripped
from loop_core.turn.machine import read
from loop_core.turn.policy import STRICT, Policy, Signal, word_of
from loop_core.turn.state import Evaluated, Place, Responded, Send, State, Turn
from loop_core.turn.trace import Step
from loop_core.values import Request


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
    turn = replace(turn, request=terms.request, limits=terms.limits, policy=terms.policy, ability=terms.ability,
                   provider=terms.provider, bound_by=terms.bound_by)
    seen = turn.evaluated
    if turn.state is State.EVALUATE_STOP and seen is not None:
        again = _reread(seen, terms.policy, terms.provider)
        spent = costs.counted(replace(turn, spent=step.before.spent), again) if step.before is not None else turn.spent
        turn = replace(turn, evaluated=again, spent=spent)
    elif turn.state is State.EXECUTE_TOOLS or (turn.state is State.RESUME and turn.sent is None):
        turn, effects = moves.entered(turn)
    return replace(step, turn=turn, effects=effects)


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
    old, new = turn.room, replace(turn, limits=limits, policy=policy).room
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
    now = replace(before, policy=policy, evaluated=_reread(seen, policy, before.provider))
    if now.evaluated is None or now.evaluated.word is not seen.word or read(now) is not after.signal:
        return True
    if costs.is_cut(now) is not costs.is_cut(before):
        return True
    if after.state is State.EXECUTE_TOOLS:
        return old.dispatch is not policy.dispatch
    return after.terminal == "completed" and old.silent_endings != policy.silent_endings
