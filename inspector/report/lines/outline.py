"""Where every step stands: the rows of the step list, the runs of a turn, and which steps are worth stopping at.

Built once for a view, in one pass over its turns; each question after that is a search in sorted numbers, so that a key
press among a hundred thousand steps costs what it costs among a hundred.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from inspector.report.facts import View
from loop_core.gate import Admission
from loop_core.trace import Step
from loop_core.turn import State
from loop_core.values import Stop


@dataclass(frozen=True, slots=True)
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
