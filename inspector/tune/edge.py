"""Between two values of a grid: the smallest max_tokens with which turns still do what they do in their best cell.

One turn or several: every turn that completes in the cell completes, and all of them together cost no more. Every step
is a run of its own. What is found is known to the token; where the recording does not tell its tokens, or a cut is
ESTIMATED, its grain is said.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from inspector.case import Case
from inspector.replay import first_run
from inspector.settings import INITIAL
from inspector.tune.axes import Axis, Value
from inspector.tune.grid import APART, End, Grid, Group
from inspector.tune.sweep import Sweep
from loop_core.frozen import frozen
from loop_core.trace import Fidelity

EXACT = "to the token"
UNCOUNTED = "by tokens that nobody counted, four characters each"
ESTIMATED = "by cuts that are ESTIMATED"
RESPONSES = "to the token, of recorded responses that no budget cuts"


@frozen
class Edge:
    """The smallest max_tokens of some turns, all other limits as in their best cell."""

    budget: int
    turns: tuple[int, ...]
    """The places of the turns in the session."""
    ends: tuple[End, ...]
    """How each turn ends with it."""
    below: tuple[End, ...]
    """How each ends with one token less; empty where there is no smaller budget."""
    grain: str
    """How far the number can be trusted."""

    @property
    def worse(self) -> tuple[int, ...]:
        """Which of them would cost more with one token less, or not complete: places in `ends`."""
        pairs = zip(self.below, self.ends, strict=False)
        return tuple(place for place, (below, end) in enumerate(pairs) if not as_good([below], [end]))


def rank(end: End) -> tuple[int, int]:
    """What a turn costs: its output tokens, then its requests."""
    return end.spent.output_tokens, end.spent.requests


def cost(ends: Iterable[End]) -> tuple[int, int]:
    """What turns cost together."""
    tokens, requests = 0, 0
    for end in ends:
        tokens, requests = tokens + end.spent.output_tokens, requests + end.spent.requests
    return tokens, requests


def as_good(made: Sequence[End], ends: Sequence[End]) -> bool:
    """Whether turns do what they do in `ends`: whichever completes there completes, and they cost no more together."""
    kept = all(now.completed for now, end in zip(made, ends, strict=True) if end.completed)
    return kept and cost(made) <= cost(ends)


def edge(
    case: Case, turns: Sequence[int], grid: Grid, values: Sequence[Value], worse: int, ends: Sequence[End]
) -> Edge | None:
    """The edge between `worse`, with which the turns are not as good, and the budget of a cell, where they end as told.

    None where the cell has no max_tokens of its own.
    """
    high = dict(zip(grid.names, values, strict=True)).get(INITIAL)
    if high is None:
        return None
    runs = _Runs(case, turns, grid, values)
    # A turn that ends the same at both sides is not asked in between; what is found is asked of all of them.
    few = [place for place, end in enumerate(ends) if not worse or runs.at(place, worse) != end]
    budget = _between(runs, few, worse, high, ends)
    if not as_good(runs.all(budget), ends):
        budget = _between(runs, range(len(turns)), worse, high, ends)
    below = runs.all(budget - 1) if budget > 1 else ()
    return Edge(budget, tuple(turns), runs.all(budget), below, runs.grain(budget))


def _between(runs: _Runs, places: Sequence[int], worse: int, high: int, ends: Sequence[End]) -> int:
    best = [ends[place] for place in places]
    while worse + 1 < high:
        middle = (worse + high) // 2
        if as_good([runs.at(place, middle) for place in places], best):
            high = middle
        else:
            worse = middle
    return high


class _Runs:
    """Turns under any max_tokens, all other limits as in one cell; each is run once for a budget."""

    def __init__(self, case: Case, turns: Sequence[int], grid: Grid, values: Sequence[Value]) -> None:
        self.case, self.values = case, dict(zip(grid.names, values, strict=True))
        self.grid = Grid(tuple(Axis(name, (value,)) for name, value in self.values.items()), grid.base)
        self.records = [case.loaded.turns[turn] for turn in turns]
        self.sweeps = [Sweep(case, record, self.grid) for record in self.records]
        self.ends: dict[tuple[int, int], End] = {}

    def at(self, place: int, budget: int) -> End:
        """How one turn ends with a budget."""
        key = place, budget
        if key not in self.ends:
            fixed = {name: value for name, value in self.values.items() if name in APART}
            found, codes = self.sweeps[place].swept([Group({**fixed, INITIAL: budget}, array("I", [0]))])
            self.ends[key] = found[array("I", codes)[0]]
        return self.ends[key]

    def all(self, budget: int) -> tuple[End, ...]:
        """How every turn ends with a budget."""
        return tuple(self.at(place, budget) for place in range(len(self.records)))

    def grain(self, budget: int) -> str:
        """The coarsest grain of the turns that complete with a budget."""
        if not self.grid.base.simulate:
            return RESPONSES
        done = [(place, end) for place, end in enumerate(self.all(budget)) if end.completed]
        if not all(self._counted(place) for place, _ in done):
            return UNCOUNTED
        doubt = any(end.fidelity == Fidelity.SIMULATED and self._estimated(place, budget) for place, end in done)
        return ESTIMATED if doubt else EXACT

    def _counted(self, place: int) -> bool:
        usages = [self.case.loaded.exchanges[link.index].response.usage for link in self.records[place].links]
        return all(usage is not None and usage.output_tokens is not None for usage in usages)

    def _estimated(self, place: int, budget: int) -> bool:
        steps = first_run(self.case, self.records[place], self.grid.settings_with({**self.values, INITIAL: budget}))
        return any(step.estimated is not None for step in steps)
