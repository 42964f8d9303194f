"""Two runs of one recording step by step: which step of one stands beside which of the other.

Both look at the same responses in the same order, so steps stand side by side by the responses that came before them.
Turns that the runs share are one block; any row is found by a search in sorted numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from inspector.replay import Replay, TurnRun
from loop_core.trace import Step, key
from loop_core.turn import State


class Row(NamedTuple):
    """A step of the left run and a step of the right one, by their indices; None where one has none there."""

    left: int | None
    right: int | None
    same: bool
    """Whether they are the same move with the same outcome."""


def rows(left: TurnRun, right: TurnRun) -> list[Row]:
    """One turn in both runs."""
    if left.steps is right.steps:
        return [Row(left.first + at, right.first + at, True) for at in range(len(left.steps))]
    found: list[Row] = []
    for one, other in _pairs(left.steps, right.steps):
        same = one is not None and other is not None and _same(left.steps[one], right.steps[other])
        found.append(Row(_at(left, one), _at(right, other), same))
    return found


def _at(run: TurnRun, index: int | None) -> int | None:
    return None if index is None else run.first + index


def _same(one: Step, other: Step) -> bool:
    return one is other or key(one) == key(other)


def _pairs(left: Sequence[Step], right: Sequence[Step]) -> Iterator[tuple[int | None, int | None]]:
    for one, other in zip_longest(_by_response(left), _by_response(right), fillvalue=range(0)):
        yield from zip_longest(one, other)


def _by_response(steps: Sequence[Step]) -> list[range]:
    """The steps in groups, each but the first beginning with the evaluation of a response."""
    starts = [index for index, step in enumerate(steps) if step.state is State.EVALUATE_STOP]
    return [range(first, end) for first, end in zip([0, *starts], [*starts, len(steps)], strict=True)]


class Alignment:
    """All turns of two runs, one below the other."""

    def __init__(self, left: Replay, right: Replay) -> None:
        self._turns: list[tuple[TurnRun, TurnRun]] = list(zip(left.turns, right.turns, strict=True))
        self._rows = {  # only of the turns in which they differ
            index: rows(one, other)
            for index, (one, other) in enumerate(self._turns) if one.steps is not other.steps
        }
        self._starts: list[int] = []
        count = 0
        for index, (one, _) in enumerate(self._turns):
            self._starts.append(count)
            count += len(self._rows.get(index, one.steps))
        self.count = count
        """How many rows there are."""

    def row(self, index: int) -> Row:
        """One row."""
        turn = bisect_right(self._starts, index) - 1
        at = index - self._starts[turn]
        if turn in self._rows:
            return self._rows[turn][at]
        one, other = self._turns[turn]
        return Row(one.first + at, other.first + at, True)

    @property
    def difference(self) -> int | None:
        """The first row that differs; None where none does."""
        for turn, found in self._rows.items():
            for at, row in enumerate(found):
                if not row.same:
                    return self._starts[turn] + at
        return None

    def row_of(self, turn: int, step: int, side: int) -> int:
        """The row of a step, which is of this turn and of the left (0) or the right (1) run."""
        if turn not in self._rows:
            return self._starts[turn] + step - self._turns[turn][side].first
        return self._starts[turn] + next(at for at, row in enumerate(self._rows[turn]) if row[side] == step)
