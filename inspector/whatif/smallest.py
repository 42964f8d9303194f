"""Finds the smallest budget that completes each turn, and the knee of the curve for all turns.

Budgets are compared by what they spend: first all output tokens, then requests, then the values of the axes in their
order. So among cells with the same result, the one with the strictest limits is chosen.

- **Smallest**, for one turn: of the cells in which the turn completes, the one that spends least on it. With it come,
  for each axis, the smallest value with which any cell completes the turn; the smallest value of each limit with which
  the turn ends as in that cell, exact to one unit, also between the values of the grid; and the smallest max_tokens
  with which the turn costs no more (`edge`), with the precision of that value (`grain`).
- **Enough**, for all turns: of the cells that complete the most turns, the one that spends least. With it comes the
  smallest max_tokens, also between the values of the grid, with which each of those turns still completes and all of
  them together cost no more (`edge`), with its precision.
- **Knee**: the cells that no other cell beats (more turns for no more tokens, or as many turns for fewer tokens) form a
  curve from the cheapest cell to *enough*. The knee is the cell of the curve that is highest above the straight line
  between its two ends, with both measures scaled to them; of two such cells, the cheaper one. Each turn beyond the knee
  costs more than the average. If no cell is above the line, or if *enough* with its smallest max_tokens costs no more
  than the knee, there is no knee, and *enough* takes its place.

If a grid was cancelled, only the cells in which the most turns were run are compared.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from inspector.config.settings import INITIAL
from inspector.replay import first_run
from inspector.replay.case import Case
from inspector.replay.tokens import plausible_usage
from inspector.sessions.recording import Exchange
from inspector.whatif.grid import SEPARATE_AXES, TOKENS, UNDONE_CODE, Axis, End, Grid, Group, TurnGrid, Value
from inspector.whatif.grid_run import Edge, TunedGrid, cost, is_as_good, search_once
from inspector.whatif.sweep import Sweep
from loop_core.turn.limits import SHORT_NAMES
from loop_core.turn.state import State

# -- Between two values of a grid ------------------------------------------------------------------------------------
# The smallest max_tokens with which turns still do as well as in their best cell: every turn that completes in the cell
# completes, and all of them together cost no more. Every step of the search is a run. The result is exact to the token;
# if the recording does not show its tokens, or a cut is ESTIMATED, the precision is stated.

EXACT = "to the token"
UNCOUNTED = "because some answers report no tokens: four characters count as one"
ESTIMATED = "by cuts that are ESTIMATED"
THINKING = "if thinking does not count under it, which is not known of this server"
RESPONSES = "to the token, of recorded responses that no budget cuts"
KNOWN_GRAINS = frozenset({EXACT, RESPONSES})
"""The grains with which the max_tokens is known exactly; with any other grain it is an estimate."""


@search_once
def _edge(tuning: TunedGrid, turns: tuple[int, ...], cell: int) -> Edge | None:
    """The smallest max_tokens of turns, between that of their best cell and the next smaller one of the grid."""
    grid, ends = tuning.grid, tuning.ends(turns, cell)
    values = grid.values(cell)
    high = grid.cap_in(values)
    if tuning.case is None or high is None or len(ends) < len(turns):
        return None
    worse = 0
    for value in grid.axes[grid.names.index(INITIAL)].values:
        if value is None or value >= high:
            break
        smaller_ends = tuning.ends(turns, grid.cell(with_cap(grid, values, value)))
        if len(smaller_ends) == len(turns) and not is_as_good(smaller_ends, ends):
            worse = value
    runs = Runs(tuning, tuning.case, turns, values)

    def enough(places: Sequence[int], budget: int) -> bool:
        return is_as_good([runs.at(place, budget) for place in places], [ends[place] for place in places])

    few = [place for place, end in enumerate(ends) if not worse or runs.at(place, worse) != end]
    budget = smallest_value(worse, high, few, range(len(turns)), enough)
    below = runs.all(budget - 1) if budget > 1 else ()
    return Edge(budget, turns, runs.all(budget), below, runs.grain(budget))


def with_cap(grid: Grid, values: Sequence[Value], cap: Value) -> tuple[Value, ...]:
    """The values of a cell with another max_tokens."""
    return tuple({**grid.by_limit(values), INITIAL: cap}.values())


def smallest_value(
    low: int, high: int, few: Sequence[int], every: Sequence[int], enough: Callable[[Sequence[int], int], bool]
) -> int:
    """The smallest value that is enough for every turn, above `low`, which is not enough, and up to `high`, which is.
    Only the `few` turns with different results at the two ends are run in between. The value that is found is tried for
    `every` turn; if it is not enough, the search runs all turns."""
    for turns in (few, every):
        worse, found = low, high
        while worse + 1 < found:
            middle = (worse + found) // 2
            worse, found = (worse, middle) if enough(turns, middle) else (middle, found)
        if enough(every, found):
            break
    return found


class Runs:
    """Runs turns under any max_tokens, with all other limits as in one cell; each turn is run once for a budget."""

    def __init__(self, tuning: TunedGrid, case: Case, turns: Sequence[int], values: Sequence[Value]) -> None:
        self.case, self.values = case, tuning.grid.by_limit(values)
        self.fixed = {name: value for name, value in self.values.items() if name in SEPARATE_AXES}
        self.grid = Grid(tuple(Axis(name, (value,)) for name, value in self.values.items()), tuning.grid.base)
        self.records = [case.recording.turns[turn] for turn in turns]
        self.sweeps = [Sweep(case, record, self.grid, tuning.findings[turn])
                       for turn, record in zip(turns, self.records, strict=True)]
        self.ends: dict[tuple[int, int], End] = {}

    def at(self, place: int, budget: int) -> End:
        """The end of one turn with a budget."""
        key = place, budget
        if key not in self.ends:
            (self.ends[key],), _ = self.sweeps[place].sweep([Group({**self.fixed, INITIAL: budget}, array("I", [0]))])
        return self.ends[key]

    def all(self, budget: int) -> tuple[End, ...]:
        """The ends of all turns with a budget."""
        return tuple(self.at(place, budget) for place in range(len(self.records)))

    def grain(self, budget: int) -> str:
        """The coarsest grain of the turns that complete with a budget."""
        if not self.grid.base.simulate:
            return RESPONSES
        done = [(place, end) for place, end in enumerate(self.all(budget)) if end.complete]
        if not all(self._has_counts(place) for place, _ in done):
            return UNCOUNTED
        if any(self._may_count_thinking(place) for place, _ in done):
            return THINKING
        doubt = any(end.simulated and self._has_estimate(place, budget) for place, end in done)
        return ESTIMATED if doubt else EXACT

    def _exchanges(self, place: int) -> list[Exchange]:
        return [self.case.recording.exchanges[link.index] for link in self.records[place].links]

    def _has_counts(self, place: int) -> bool:
        usages = [plausible_usage(exchange.response) for exchange in self._exchanges(place)]
        return all(usage is not None and usage.output_tokens is not None for usage in usages)

    def _may_count_thinking(self, place: int) -> bool:
        """Whether an answer contains thinking, and its server is not known to count or not count it under the cap."""
        return any(exchange.profile.reasoning_under_cap is None and exchange.response.usage is not None
                   and bool(exchange.response.usage.reasoning_tokens) for exchange in self._exchanges(place))

    def _has_estimate(self, place: int, budget: int) -> bool:
        steps = first_run(self.case, self.records[place], self.grid.settings_with({**self.values, INITIAL: budget}))
        return any(step.estimated_cut is not None for step in steps)


@dataclass(frozen=True, slots=True)
class SmallestLimits:
    """The smallest limits that complete one turn."""

    turn: int
    """The index of the turn in `TunedGrid.turns`."""
    cell: int | None
    """The cell that completes the turn for the smallest spend; None if no cell completes it."""
    end: End
    """The turn's end in `cell`; if that is None, in the last cell that was run, which has the largest limits."""
    by_axis: tuple[Value, ...]
    """For each axis the smallest value with which any cell completes the turn; empty if no cell does."""
    edge: Edge | None = None
    """The smallest max_tokens, which may be between the values of the grid; None if max_tokens is no axis."""

    @property
    def budget(self) -> int | None:
        """The smallest max_tokens; None if max_tokens is no axis."""
        return None if self.edge is None else self.edge.budget

    @property
    def at_edge(self) -> End:
        """The end of the turn with the smallest max_tokens; without such an axis, its end in the cell."""
        return self.end if self.edge is None else self.edge.ends[0]


def limits_of(budget: int | None, end: End) -> dict[str, int]:
    """A max_tokens, and the smallest value of each other limit with which a turn has this end."""
    return {**({} if budget is None else {INITIAL: budget}),
            **{name: least for name, least in end.needs if name in SHORT_NAMES}}


@search_once
def smallest_limits(tuning: TunedGrid, turn: int) -> SmallestLimits | None:
    """The smallest budget of one turn; None if no cell of it was run."""
    turn_grid = tuning.turns[turn]
    if not turn_grid.ends:
        return None
    spent = {code: cost([end]) for code, end in enumerate(turn_grid.ends) if end.complete}
    if not spent:
        last = next(code for code in reversed(turn_grid.codes) if code != UNDONE_CODE)
        return SmallestLimits(turn, None, turn_grid.ends[last], ())
    _, cell = min((spent[code], cell) for cell, code in enumerate(turn_grid.codes) if code in spent)
    end = turn_grid.ends[turn_grid.codes[cell]]
    return SmallestLimits(turn, cell, end, _axis_values(tuning, turn_grid, frozenset(spent)),
                          _edge(tuning, (turn,), cell))


def _axis_values(tuning: TunedGrid, turn: TurnGrid, completed: frozenset[int]) -> tuple[Value, ...]:
    found: list[Value] = []
    stride = tuning.grid.size
    for axis in tuning.grid.axes:
        count, block = len(axis.values), stride
        stride //= count
        found.append(next(
            value for place, value in enumerate(axis.values)
            if any(not completed.isdisjoint(turn.codes[start : start + stride])
                   for start in range(place * stride, len(turn.codes), block))
        ))
    return tuple(found)


def cells_from(grid: Grid, cell: int) -> list[int]:
    """The cell, and all that are as large or larger on each axis; "as recorded" and "default" are larger than none."""
    found, stride = [0], grid.size
    for axis in grid.axes:
        stride //= len(axis.values)
        here, cell = divmod(cell, stride)
        places = [place for place in range(here, len(axis.values))
                  if place == here or axis.values[place] is not None or axis.name not in (INITIAL, TOKENS)]
        found = [first + place * stride for first in found for place in places]
    return found


@search_once
def completes_in_larger(tuning: TunedGrid, cell: int, turn: int | None = None) -> bool:
    """Whether a turn completes (without `turn`: as many of all turns complete) in every cell from this one on, and all
    of them were run."""
    cells = cells_from(tuning.grid, cell)
    if turn is None:
        return all(tuning.is_comparable(each) and tuning.completed[each] >= tuning.completed[cell] for each in cells)
    return all((end := tuning.turns[turn].end(each)) is not None and end.complete for each in cells)


def is_end_unknown(tuning: TunedGrid, turn: int) -> bool:
    """Whether in some cell the recording ends before the turn, whose real end there is unknown."""
    return any(end.state is State.UNRECORDED for end in tuning.turns[turn].ends)


def why_incomplete(tuning: TunedGrid, end: End) -> str:
    """The reason why no cell completes a turn, taken from its end in the cell with the largest limits."""
    if end.state is State.UNRECORDED:
        return "the recording ends first: only a live run can show what follows"
    if end.limit in tuning.grid.names:
        return f"the grid's largest {end.limit} is not enough"
    if end.limit:
        return f"{end.limit} stops it, which this grid does not vary"
    if end.cut_unseen:
        return "the grid's largest max_tokens cuts it, and the server calls the cut answer finished"
    if end.state is State.COMPLETE:
        return f"its verdict is {end.verdict}, whatever the budget"
    return f"it ends in {end.state.value} ({end.terminal}), whatever the budget"


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """A cell of the curve, which no other cell beats."""

    cell: int
    completed: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Knee:
    """The curve of completed turns by spent tokens, the point that completes the most, and the knee before it."""

    curve: tuple[BudgetPoint, ...]
    enough: BudgetPoint
    knee: BudgetPoint
    edge: Edge | None = None
    """The smallest max_tokens for the turns run in the cell of `enough`; None if it is no axis."""

    @property
    def budget(self) -> int | None:
        """The smallest max_tokens that is enough; None if max_tokens is no axis."""
        return None if self.edge is None else self.edge.budget


@search_once
def knee(tuning: TunedGrid) -> Knee | None:
    """The knee for all turns; None if nothing was run, or nothing completes anywhere."""
    cells = [cell for cell in range(tuning.grid.size) if tuning.is_comparable(cell)]
    curve = tuple(_best_points(tuning, cells))
    if not curve or curve[-1].completed == 0:
        return None
    enough = curve[-1]
    turns = tuple(number for number, turn in enumerate(tuning.turns) if turn.end(enough.cell) is not None)
    found, bend = _edge(tuning, turns, enough.cell), _bend(curve)
    beaten = found is not None and cost(found.ends)[0] <= bend.tokens
    return Knee(curve, enough, enough if beaten else bend, found)


def _best_points(tuning: TunedGrid, cells: Iterable[int]) -> Iterable[BudgetPoint]:
    best = -1
    tokens, requests, completed = tuning.tokens, tuning.requests, tuning.completed
    for cell in sorted(cells, key=lambda cell: (tokens[cell], -completed[cell], requests[cell], cell)):
        if completed[cell] > best:
            best = completed[cell]
            yield BudgetPoint(cell, best, tokens[cell])


def _bend(curve: tuple[BudgetPoint, ...]) -> BudgetPoint:
    first, last = curve[0], curve[-1]
    wide, high = last.tokens - first.tokens, last.completed - first.completed

    def above(point: BudgetPoint) -> int:
        return (point.completed - first.completed) * wide - (point.tokens - first.tokens) * high

    best = max(curve, key=above)
    return best if above(best) > 0 else last
