"""Where every step stands: the rows of the step list, the runs of a turn, and which steps are worth stopping at.

Built once for a view, in one pass over its turns; each question after that is a search in sorted numbers, so that a key
press among a hundred thousand steps costs what it costs among a hundred.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from inspector.report.facts import View
from loop_core.frozen import frozen
from loop_core.gate import Admission
from loop_core.trace import Step
from loop_core.turn import State
from loop_core.values import Stop


@frozen
class Block:
    """One run of one turn: a heading row, then its steps."""

    row: int
    first: int
    end: int
    turn: int
    """The turn's index in the view."""
    run: int


class Outline:
    """The blocks of a view in order, with their rows."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.blocks = tuple(_blocks(view))
        self._rows = [block.row for block in self.blocks]
        self._firsts = [block.first for block in self.blocks]
        last = self.blocks[-1] if self.blocks else None
        self.rows = last.row + 1 + last.end - last.first if last else 0

    def block_of(self, step: int) -> Block:
        """The run that a step belongs to."""
        return self.blocks[max(0, bisect_right(self._firsts, step) - 1)]

    def row_of(self, step: int) -> int:
        """The row that shows a step."""
        block = self.block_of(step)
        return block.row + 1 + step - block.first

    def at(self, row: int) -> tuple[Block, int | None]:
        """What a row shows: a block's heading (None), or one of its steps."""
        block = self.blocks[max(0, bisect_right(self._rows, row) - 1)]
        step = row - block.row - 1
        return block, None if step < 0 else block.first + step

    def moved(self, step: int, by: int) -> int:
        """The step `by` rows on, no further than the first and the last."""
        return min(max(step + by, 0), max(0, len(self.view.steps) - 1))

    def interesting(self, step: int, direction: int) -> int | None:
        """The next step worth stopping at, forward (1) or back (-1); None where there is none."""
        steps = self.view.steps
        index = step + direction
        while 0 <= index < len(steps):
            if is_interesting(steps[index]):
                return index
            index += direction
        return None

    def turn_start(self, step: int, direction: int) -> int | None:
        """The first step of the next turn (1), or of this one or the one before (-1)."""
        block = self.block_of(step)
        firsts = [b.first for b in self.blocks if b.run == 0 and (b.first > step if direction > 0 else b.first < step)]
        if direction > 0:
            return firsts[0] if firsts else None
        return firsts[-1] if firsts else (block.first if step > block.first else None)


class Narrowed(Outline):
    """The rows of some steps only, each turn with its heading; everything else is asked of the whole."""

    def __init__(self, whole: Outline, kept: Sequence[int]) -> None:
        self.view, self.blocks, self._firsts = whole.view, whole.blocks, whole._firsts
        self.kept = tuple(kept)
        shown = [
            (block, first) for block in self.blocks
            if (first := bisect_left(self.kept, block.first)) < bisect_left(self.kept, block.end)
        ]
        self._shown = [block for block, _ in shown]
        self._from = [first for _, first in shown]
        self._rows = [first + number for number, first in enumerate(self._from)]
        self.rows = len(self.kept) + len(shown)

    def row_of(self, step: int) -> int:
        """The row of a step, or of the nearest one after it that is kept, else of the last."""
        place = min(bisect_left(self.kept, step), len(self.kept) - 1)
        return max(0, place + bisect_right(self._from, place))

    def at(self, row: int) -> tuple[Block, int | None]:
        """What a row shows."""
        number = max(0, bisect_right(self._rows, row) - 1)
        place = row - self._rows[number] - 1
        return self._shown[number], None if place < 0 else self.kept[self._from[number] + place]

    def moved(self, step: int, by: int) -> int:
        """The step `by` kept ones on, no further than the first and the last of them."""
        if not self.kept:
            return step
        place = bisect_left(self.kept, step)
        if by > 0 and (place == len(self.kept) or self.kept[place] != step):
            place -= 1  # from between two, the next one is one step on
        return self.kept[min(max(place + by, 0), len(self.kept) - 1)]


def _blocks(view: View) -> list[Block]:
    found: list[Block] = []
    row = 0
    for number, facts in enumerate(view.turns):
        run = facts.run
        starts = [run.first]
        if run.runs > 1:
            steps = view.steps
            starts += [i for i in range(run.first + 1, run.end) if steps[i].run != steps[i - 1].run]
        for order, (first, end) in enumerate(zip(starts, [*starts[1:], run.end], strict=True)):
            found.append(Block(row, first, end, number, order))
            row += 1 + end - first
    return found


_PLAIN = frozenset({Stop.END_TURN, Stop.TOOL_CALL})
_STOPPING = frozenset({State.ABORT, State.ABORT_PARTIAL, State.UNRECORDED})


def is_interesting(step: Step) -> bool:
    """Whether a step is worth stopping at: a cut, a block, a held or rejected call, a limit, an end in trouble."""
    if step.state in _STOPPING:
        return True
    seen = step.turn.evaluated
    if step.state is not State.EVALUATE_STOP or seen is None:
        return step.came_from is None and step.run > 0
    return seen.judged.stop.normalized not in _PLAIN or any(v.admission is not Admission.READY for v in seen.verdicts)
