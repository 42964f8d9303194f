"""Finds the smallest max_tokens with which a turn completes, or with which as many turns complete as in any cell of a
grid.

This differs from the budget that completes a turn for the fewest output tokens (`inspector.whatif.smallest`), because a
small max_tokens may complete a turn in many continuations. The search uses the largest values of the other limits, then
the strictest ones of the grid that are enough. The result is exact to the token: with one token less, not all of the
turns complete. Between two columns the search halves, so it may miss a smaller value that completes although a larger
one fails, as when a cut falls into a call. It needs simulation, because without it max_tokens changes no answer.

A value between two columns may also cost less than every cell of the grid: then it has the fewest output tokens too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from inspector.config.settings import INITIAL
from inspector.whatif.grid import SEPARATE_AXES, UNDONE_CODE, End, Grid, TurnGrid, Value
from inspector.whatif.grid_run import Edge, SmallestCap, TunedGrid, cost, search_once
from inspector.whatif.heat import WHOLE_SO_FAR
from inspector.whatif.smallest import BudgetPoint, Runs, is_end_unknown, knee, smallest_limits, smallest_value, with_cap
from loop_core.turn.trace import Fidelity


@search_once
def smallest_cap(tuning: TunedGrid, turn: int) -> SmallestCap | None:
    """The smallest max_tokens that completes a turn; None if none does, or max_tokens is not varied."""
    return _cap_of(tuning, (turn,), _cells_of(tuning.turns[turn], _completes), _completes)


@search_once
def whole_cap(tuning: TunedGrid, turn: int) -> SmallestCap | None:
    """The smallest max_tokens with which the last answer of a turn is whole, although nothing is recorded after it."""
    return _cap_of(tuning, (turn,), _cells_of(tuning.turns[turn], _is_whole), _is_whole)


def is_call_never_whole(tuning: TunedGrid, turn: int) -> bool:
    """Whether a turn's held call is whole in no cell, and in some cell the recording ends before the turn."""
    verdicts = {end.verdict for end in tuning.turns[turn].ends}
    held = "CALL HELD" in verdicts and verdicts.isdisjoint(WHOLE_SO_FAR)
    return held and is_end_unknown(tuning, turn) and not tuning.cancelled


@search_once
def smallest_cap_of_all(tuning: TunedGrid) -> SmallestCap | None:
    """The smallest max_tokens with which as many turns complete as in any cell; None if there is none."""
    bend = knee(tuning)
    return None if bend is None else _cap_of(tuning, run_turns(tuning), (
        ((tuning.tokens[cell], tuning.requests[cell], cell), cell) for cell in range(tuning.grid.size)
        if tuning.is_comparable(cell) and tuning.completed[cell] == bend.enough.completed), _completes)


def run_turns(tuning: TunedGrid) -> tuple[int, ...]:
    """The turns that were run in any cell."""
    return tuple(turn for turn, turn_grid in enumerate(tuning.turns)
                 if any(code != UNDONE_CODE for code in turn_grid.codes))


@search_once
def recorded_cap(tuning: TunedGrid, turn: int) -> tuple[int, End] | None:
    """The cell of the smallest max_tokens that completes a turn by recorded answers alone, and the end in it."""
    turn_grid = tuning.turns[turn]
    found = _first_cell(tuning.grid, _cells_of(
        turn_grid, lambda end: end.complete and end.fidelity == Fidelity.RECORDED))
    return None if found is None else (found[1], turn_grid.ends[turn_grid.codes[found[1]]])


class Fewest(NamedTuple):
    """The fewest output tokens, of all cells of the grid and all values between them that were searched."""

    cell: int
    """The cell of the map that stands for this budget."""
    budget: int | None
    """The max_tokens, perhaps between two values of the grid; None: not varied, or as recorded."""
    ends: tuple[End, ...]
    """The end of each of the turns. A turn that does not complete counts with its spend up to its end."""
    edge: Edge | None = None
    """The precision of `budget` and the effect of one token less; None if they were not searched."""

    @property
    def tokens(self) -> int:
        """The output tokens of all these turns."""
        return cost(self.ends)[0]


@search_once
def fewest_tokens(tuning: TunedGrid, turn: int) -> Fewest | None:
    """The fewest output tokens for which a turn completes; None if it completes nowhere."""
    found = smallest_limits(tuning, turn)
    if found is None or found.cell is None:
        return None
    return _cheaper_of(tuning, Fewest(found.cell, found.budget, (found.at_edge,), found.edge), (turn,),
                       smallest_cap(tuning, turn))


@search_once
def fewest_tokens_of_all(tuning: TunedGrid) -> Fewest | None:
    """The fewest output tokens of all turns for which as many complete as in any cell; None if none completes."""
    bend = knee(tuning)
    if bend is None:
        return None
    ends = tuning.ends(range(len(tuning.turns)), bend.enough.cell) if bend.edge is None else bend.edge.ends
    return _cheaper_of(tuning, Fewest(bend.enough.cell, bend.budget, ends, bend.edge), run_turns(tuning),
                       smallest_cap_of_all(tuning))


def _cheaper_of(tuning: TunedGrid, best: Fewest, turns: tuple[int, ...], cap: SmallestCap | None) -> Fewest:
    if cap is None or cost(cap.ends) >= cost(best.ends):
        return best
    budget, edge = tuning.grid.cap_in(cap.values), None
    if tuning.case is not None and budget is not None:
        grain = Runs(tuning, tuning.case, turns, cap.values).grain(budget)
        edge = Edge(budget, turns, cap.ends, cap.below, grain)
    return Fewest(cap.cell, budget, cap.ends, edge)


def best_value(tuning: TunedGrid) -> BudgetPoint | None:
    """The knee of the curve; None if there is none, or if completing the most turns costs no more than the knee."""
    bend, best = knee(tuning), fewest_tokens_of_all(tuning)
    return None if bend is None or best is None or best.tokens <= bend.knee.tokens else bend.knee


def _completes(end: End) -> bool:
    return end.complete


def _is_whole(end: End) -> bool:
    return end.verdict in WHOLE_SO_FAR


_Cells = Iterable[tuple[tuple[int, int, int], int]]
"""Pairs of a cell's cost and the cell."""


def _cells_of(turn_grid: TurnGrid, counts: Callable[[End], bool]) -> _Cells:
    """The cells in which a turn ends in a way that counts."""
    ranks = {code: cost([end]) for code, end in enumerate(turn_grid.ends) if counts(end)}
    return (((*ranks[code], cell), cell) for cell, code in enumerate(turn_grid.codes) if code in ranks)


def _cap_of(
    tuning: TunedGrid, turns: tuple[int, ...], cells: _Cells, counts: Callable[[End], bool]
) -> SmallestCap | None:
    """The smallest max_tokens with which the turns end in a way that counts, as they do in these cells."""
    if INITIAL not in tuning.grid.names or not tuning.grid.base.simulate:
        return None
    found = _first_cell(tuning.grid, cells)
    return None if found is None else _search_cap(tuning, turns, *found, counts)


def _first_cell(grid: Grid, cells: _Cells) -> tuple[int, int] | None:
    """The first cell by max_tokens, then by what is spent: the place of its max_tokens on the axis, and the cell."""
    if INITIAL not in grid.names:
        return None
    at = grid.names.index(INITIAL)
    count, stride = len(grid.axes[at].values), prod(len(axis.values) for axis in grid.axes[at + 1 :])
    found = min(((cell // stride % count, spent) for spent, cell in cells), default=None)
    return None if found is None else (found[0], found[1][-1])


@search_once
def _search_cap(
    tuning: TunedGrid, turns: tuple[int, ...], place: int, cell: int, counts: Callable[[End], bool]
) -> SmallestCap:
    """The smallest max_tokens above the grid's next smaller value, up to that of a cell whose ends count."""
    grid, values, wanted = tuning.grid, tuning.grid.values(cell), _completed_turns(tuning, turns, cell, counts)
    axis = grid.axes[grid.names.index(INITIAL)]
    high, low = axis.values[place], axis.values[place - 1] if place else 0
    if tuning.case is None or high is None or low is None:
        return SmallestCap(values, cell, tuning.ends(turns, cell))
    largest = with_cap(grid, [each.values[-1] for each in grid.axes], high)
    if _completed_turns(tuning, turns, grid.cell(largest), counts) != wanted:  # a larger limit may complete less
        largest = values
    runs = Runs(tuning, tuning.case, turns, largest)

    def completes(runs: Runs, places: Sequence[int], budget: int) -> bool:
        return all(counts(runs.at(each, budget)) for each in places)

    few = [each for each in wanted if not low or not counts(runs.at(each, low))]
    budget = smallest_value(low, high, few, wanted, partial(completes, runs))
    strict = _strictest_values(grid, largest, [runs.at(each, budget) for each in wanted])
    own = Runs(tuning, tuning.case, turns, strict)
    if not completes(own, wanted, budget):
        own, strict = runs, largest
    below = runs.all(budget - 1) if budget > 1 else ()
    return SmallestCap(with_cap(grid, strict, budget), grid.cell(with_cap(grid, strict, high)), own.all(budget), below,
                       with_cap(grid, largest, budget - 1))


def _completed_turns(
    tuning: TunedGrid, turns: Sequence[int], cell: int, counts: Callable[[End], bool]
) -> list[int]:
    """The positions in `turns` of those that end in a cell in a way that counts."""
    ends = [tuning.turns[turn].end(cell) for turn in turns]
    return [place for place, end in enumerate(ends) if end is not None and counts(end)]


def _strictest_values(grid: Grid, values: Sequence[Value], ends: Sequence[End]) -> tuple[Value, ...]:
    """The values of the cell with the smallest value on the grid, for each limit, that is enough."""
    def least() -> Iterator[Value]:
        for axis, value in zip(grid.axes, values, strict=True):
            need = max((dict(end.needs).get(axis.name, 0) for end in ends), default=0)
            enough = [each for each in axis.values if each is not None and each >= need]
            yield value if axis.name in SEPARATE_AXES or not enough else enough[0]
    return tuple(least())
