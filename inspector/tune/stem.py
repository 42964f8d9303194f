"""One run under the laxest limits tells how a turn ends under all stricter ones.

Limits are looked at by guards and nowhere else: until one of them stops the turn, two runs of it are the same, step by
step. So the run with the laxest limits is the stem of all others: each leaves it where the first of its own guards
stops it, with what was spent by then. What a guard would stop is told by the smallest value that lets the turn pass.

Not so `max_tokens`, `min_progress_chars` and `attempts_scope`, which change what is spent: each value needs a stem. Nor
the bound on tokens where it may change what comes, since it bounds the cap of each request.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

from inspector.simulation.known import is_cut
from inspector.tune.axes import TOKENS
from inspector.tune.grid import End
from loop_core.frozen import frozen, replace
from loop_core.limits import GUARDS, Spent, least_cap, tripped
from loop_core.machine import TRANSITIONS
from loop_core.moves import GUARDED
from loop_core.policy import Signal
from loop_core.trace import Step
from loop_core.turn import Responded, State, Turn

LEAST: Mapping[str, Callable[[Spent], int]] = {
    "attempts": lambda spent: spent.attempts + 1,
    "tokens": lambda spent: spent.continuation_tokens + 1,
    "chars": lambda spent: spent.continuation_chars + 1,
    "thinking": lambda spent: spent.thinking_only,
    "repairs": lambda spent: spent.repairs - spent.repairs_refused + 1,
    "room": lambda spent: spent.continuation_tokens + 1,
    "empty": lambda spent: spent.empty_retries + 1,
    "tool_steps": lambda spent: spent.tool_steps + 1,
    "identical": lambda spent: spent.identical,
    "resumes": lambda spent: spent.resumes + 1,
}
"""Guard -> the smallest value of its limit that it lets pass. `progress` is not here: it goes by the spend alone."""


class Look(NamedTuple):
    """One look of the guards at a turn."""

    place: str
    state: State
    spent: Spent
    segments: int
    fidelity: str
    ended: bool = False
    """Whether the answer had ended, and the guard only allows to ask for its first words once more."""


@frozen
class Stem:
    """A run under the laxest limits."""

    looks: tuple[Look, ...]
    end: End
    last: int
    """The rank of its own end."""
    largest: int | None
    """Output tokens of the largest answer; None where one does not tell: the cap that was sent may stand for them."""
    uncut: bool
    """Whether no budget cut an answer, and none was asked for again."""
    lacks: Container[str]
    """The guards that the policy does not have."""


def stem(steps: Sequence[Step], simulated: bool = False) -> Stem:
    """The stem that a run makes; how much of the total a `simulated` one needs is not told, since answers go by it."""
    looks = tuple(look for step in steps if (look := _look(step)) is not None)
    turn = steps[-1].turn
    lacks = turn.policy.lacks
    limit, last = "", len(looks) * len(GUARDS)
    if looks:
        guard = tripped(looks[-1].place, turn.limits, looks[-1].spent, turn.token_stop, lacks)
        if guard is not None:
            limit = "" if looks[-1].ended else guard.limit
            last = _rank(len(looks) - 1, GUARDS.index(guard))
    answers = [step.event for step in steps if isinstance(step.event, Responded)]
    needs = () if last < len(looks) * len(GUARDS) else _needs(
        looks, lacks, 0 if "room" in lacks else least_cap(turn.request) - 1)
    if simulated or _largest(answers) is None:  # and an answer that tells no tokens is charged with its cap
        needs = tuple(each for each in needs if each[0] != TOKENS)
    state, fidelity = turn.outcome or turn.state, steps[-1].fidelity.value
    unseen = any(answer.cut_unseen for answer in answers)
    end = End(state, turn.terminal or "", limit, segments(turn), turn.spent, fidelity, needs, unseen)
    uncut = not unseen and all(look.place == "tools" for look in looks) and not any(map(is_cut, answers))
    return Stem(looks, end, last, _largest(answers), uncut, lacks)


def _largest(answers: Sequence[Responded]) -> int | None:
    told = [answer.response.usage.output_tokens if answer.response.usage else None for answer in answers]
    return None if None in told else max((tokens for tokens in told if tokens is not None), default=0)


def segments(turn: Turn) -> int:
    """How many responses the turn's answers are made of."""
    return sum(len(answer) for answer in turn.answers)


def _look(step: Step) -> Look | None:
    turn = step.turn
    place = GUARDED.get(turn.state)
    if place is None:
        return None
    spent = turn.spent
    if turn.state is State.RESUME and turn.sent is not None:  # looked at before this request was counted
        spent = replace(spent, requests=spent.requests - 1, resumes=spent.resumes - 1)
    ended = turn.signal is Signal.ANCHOR_MISSING
    return Look(place, turn.state, spent, segments(turn), step.fidelity.value, ended)


def _needs(looks: Sequence[Look], lacks: Container[str], more: int) -> tuple[tuple[str, int], ...]:
    """The smallest values; `more` tokens than one must be left of the total for a request."""
    needs: dict[str, int] = {}
    for guard in GUARDS:
        if guard.name in LEAST and guard.name not in lacks:
            least = [LEAST[guard.name](look.spent) for look in looks if look.place == guard.place]
            if least:
                room = more if guard.limit == TOKENS else 0
                needs[guard.limit] = max(*least, needs.get(guard.limit, 0), max(least) + room)
    return tuple(needs.items())


# -- where stricter limits leave the stem ----------------------------------------------------------------------------


def _rank(look: int, guard: int) -> int:
    """Looks in their order, and within one look the guards in theirs: the smallest rank is what stops a turn."""
    return look * len(GUARDS) + guard


def stops(made: Stem, limit: str, values: Sequence[int | None]) -> list[int]:
    """For each value of a limit, the rank of the first guard that would stop the turn by it; None is no bound."""
    found = [made.last] * len(values)
    for number, guard in enumerate(GUARDS):
        if guard.limit != limit or guard.name not in LEAST or guard.name in made.lacks:
            continue
        at: list[int] = []
        highest: list[int] = []
        for index, look in enumerate(made.looks):
            if look.place == guard.place:
                least = LEAST[guard.name](look.spent)
                at.append(_rank(index, number))
                highest.append(max(least, highest[-1]) if highest else least)
        at.append(made.last)
        for place, value in enumerate(values):
            if value is not None:
                found[place] = min(found[place], at[bisect_right(highest, value)])
    return found


_LEADS: Mapping[tuple[State, str], State] = {
    (state, row.terminal): row.to for (state, _), row in TRANSITIONS.items() if row.terminal is not None
}
"""Where a guard in a state leads, by its terminal reason."""


def end_at(made: Stem, rank: int) -> End:
    """The end that a rank stands for."""
    if rank >= made.last:
        return made.end
    index, number = divmod(rank, len(GUARDS))
    look, guard = made.looks[index], GUARDS[number]
    if look.ended:
        return End(State.COMPLETE, "completed", "", look.segments, look.spent, look.fidelity)
    state = _LEADS[look.state, guard.terminal]
    return End(state, guard.terminal, guard.limit, look.segments, look.spent, look.fidelity)
