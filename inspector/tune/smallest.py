"""The smallest budget that completes each turn, and the knee for all of them.

Budgets are compared by what they spend: first the output tokens of truncated responses and their continuations, then
requests, then the values of the axes in their order. So among cells that do the same the strictest limits are named.

- **Smallest**, for one turn: of the cells in which it completes, the one that spends least on it. Beside it, for each
  axis, its smallest value with which any cell completes the turn; and to the unit, between the values of the grid too,
  the smallest value of each limit with which the turn goes the same way as in that cell.
- **Enough**, for all turns: of the cells that complete as many turns as any does, the one that spends least. A larger
  budget completes nothing more.
- **Knee**: the cells that no other beats (more turns for no more tokens, or as many for fewer) form a curve from the
  cheapest to *enough*. With both measures scaled to that stretch, the knee is the cell that stands highest above the
  straight line between its ends; the cheaper of two as high. The turns beyond it cost more apiece than the average.
  Where no cell stands above that line there is no such point, and *enough* is named.

Where a grid was cancelled, only cells that were run in as many turns as any are compared.
"""

from __future__ import annotations

from collections.abc import Iterable

from inspector.tune.axes import Value
from inspector.tune.grid import UNDONE, End, TurnGrid
from inspector.tune.run import Tuned
from loop_core.frozen import frozen
from loop_core.turn import State


@frozen
class Smallest:
    """What one turn needs."""

    turn: int
    """Its place in `Tuned.turns`."""
    cell: int | None
    """The cell that completes it for the least; None where none does."""
    end: End
    """How it ends there; else how it ends in the last cell that was run, the most generous."""
    by_axis: tuple[Value, ...]
    """For each axis the smallest value with which any cell completes the turn; empty where none does."""

    @property
    def completes(self) -> bool:
        """Whether any cell completes the turn."""
        return self.cell is not None


def smallest(tuned: Tuned, turn: int) -> Smallest | None:
    """The smallest budget of one turn; None where no cell of it was run."""
    seen = tuned.turns[turn]
    if not seen.ends:
        return None
    rank = {code: (end.spent.output_tokens, end.spent.requests) for code, end in enumerate(seen.ends) if end.completed}
    if not rank:
        return Smallest(turn, None, _last(seen), ())
    least = min(rank.values())
    cheapest = {code for code, spent in rank.items() if spent == least}
    cell = next(cell for cell, code in enumerate(seen.codes) if code in cheapest)
    return Smallest(turn, cell, seen.ends[seen.codes[cell]], _by_axis(tuned, seen, frozenset(rank)))


def _last(seen: TurnGrid) -> End:
    return seen.ends[next(code for code in reversed(seen.codes) if code != UNDONE)]


def _by_axis(tuned: Tuned, seen: TurnGrid, completed: frozenset[int]) -> tuple[Value, ...]:
    found: list[Value] = []
    stride = tuned.grid.size
    for axis in tuned.grid.axes:
        count, block = len(axis.values), stride
        stride //= count
        found.append(next(
            value for place, value in enumerate(axis.values)
            if any(not completed.isdisjoint(seen.codes[start : start + stride])
                   for start in range(place * stride, len(seen.codes), block))
        ))
    return tuple(found)


def why_not(tuned: Tuned, end: End) -> str:
    """Why no cell completes a turn, from its end in the most generous one."""
    if end.state is State.UNRECORDED:
        return "the recording ends first: what would be asked next was never recorded"
    if end.limit in tuned.grid.names:
        return f"the grid's largest {end.limit} is not enough"
    if end.limit:
        return f"{end.limit} stops it, which this grid does not vary"
    return f"it ends in {end.state.value} ({end.terminal}), whatever the budget"


@frozen
class Point:
    """A cell that no other beats."""

    cell: int
    completed: int
    tokens: int


@frozen
class Knee:
    """The curve of completed turns over spend, and its two marked cells."""

    curve: tuple[Point, ...]
    enough: Point
    knee: Point


def knee(tuned: Tuned) -> Knee | None:
    """The knee for all turns; None where nothing was run, or nothing completes anywhere."""
    cells = [cell for cell in range(tuned.grid.size) if tuned.whole(cell)]
    curve = tuple(_unbeaten(tuned, cells))
    if not curve or curve[-1].completed == 0:
        return None
    return Knee(curve, curve[-1], _bend(curve))


def _unbeaten(tuned: Tuned, cells: Iterable[int]) -> Iterable[Point]:
    best = -1
    tokens, requests, completed = tuned.tokens, tuned.requests, tuned.completed
    for cell in sorted(cells, key=lambda cell: (tokens[cell], -completed[cell], requests[cell], cell)):
        if completed[cell] > best:
            best = completed[cell]
            yield Point(cell, best, tokens[cell])


def _bend(curve: tuple[Point, ...]) -> Point:
    first, last = curve[0], curve[-1]
    wide, high = last.tokens - first.tokens, last.completed - first.completed

    def above(point: Point) -> int:
        return (point.completed - first.completed) * wide - (point.tokens - first.tokens) * high

    best = max(curve, key=above)
    return best if above(best) > 0 else last
