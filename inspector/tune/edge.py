"""Between two values of a grid: the smallest max_tokens with which a turn still does what it does in its best cell.

Every step is a replay of its own, of that turn alone. What is found is known to the token; where the recording does not
tell its tokens, or a cut is ESTIMATED, its grain is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.case import Case
from inspector.replay import first_run
from inspector.settings import INITIAL
from inspector.tune.axes import Value
from inspector.tune.grid import End, Grid
from inspector.tune.stem import stem
from loop_core.frozen import frozen
from loop_core.trace import Step

EXACT = "to the token"
UNCOUNTED = "by tokens that nobody counted, four characters each"
ESTIMATED = "by cuts that are ESTIMATED"
RESPONSES = "to the token, of recorded responses that no budget cuts"


@frozen
class Edge:
    """The smallest max_tokens of one turn, all other limits as in its best cell."""

    budget: int
    end: End
    """How the turn ends with it."""
    below: End | None
    """How it ends with one token less; None where there is no smaller budget."""
    grain: str
    """How far the number can be trusted."""


def rank(end: End) -> tuple[int, int]:
    """What a turn costs: its output tokens, then its requests."""
    return end.spent.output_tokens, end.spent.requests


def edge(case: Case, turn: int, grid: Grid, values: Sequence[Value], worse: int, end: End) -> Edge | None:
    """The edge between `worse`, with which the turn costs more or does not complete, and the budget of a cell.

    None where the cell has no max_tokens of its own, or cannot be run.
    """
    chosen = dict(zip(grid.names, values, strict=True))
    high = chosen.get(INITIAL)
    if high is None:
        return None
    record = case.loaded.turns[turn]

    def at(budget: int) -> tuple[End, Sequence[Step]]:
        steps = first_run(case, record, grid.settings_with({**chosen, INITIAL: budget}))
        return stem(steps).end, steps

    best = at(high)
    below: End | None = None
    while worse + 1 < high:
        middle = (worse + high) // 2
        made = at(middle)
        if made[0].completed and rank(made[0]) <= rank(end):
            high, best = middle, made
        else:
            worse, below = middle, made[0]
    if below is None and worse:
        below = at(worse)[0]
    answers = [case.loaded.exchanges[link.index].response for link in record.links]
    told = all(answer.usage is not None and answer.usage.output_tokens is not None for answer in answers)
    grain = (RESPONSES if not grid.base.simulate else UNCOUNTED if not told
             else ESTIMATED if any(step.estimated is not None for step in best[1]) else EXACT)
    return Edge(high, best[0], below, grain)
