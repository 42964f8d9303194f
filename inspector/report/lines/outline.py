"""The rows of the step list: which row shows which step, the runs of a turn, and the steps worth stopping at.

Built once for a view, in one pass over its turns; each question after that is a search in sorted numbers, so that a key
press among a hundred thousand steps costs what it costs among a hundred.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from os.path import commonpath, dirname, relpath
from typing import NamedTuple

from inspector.report.facts import TurnFacts, View
from loop_core.judge.gate import Admission
from loop_core.turn.state import State
from loop_core.turn.trace import Step
from loop_core.values import Stop


class Block(NamedTuple):
    """One run of one turn: a heading row, then its steps."""

    first: int
    end: int
    turn: int
    """The turn's index in the view."""
    run: int
    path: str
    """The file that the turn was read from."""


class Outline:
    """The blocks of a view in order, with their rows; each file begins with a row of its name."""

    within = ""
    """What is said behind `no step`."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.blocks = tuple(_blocks(view))
        self._firsts = [block.first for block in self.blocks]
        self._files = _names({block.path for block in self.blocks})
        self._lay(range(len(view.steps)))

    def _lay(self, kept: Sequence[int]) -> None:
        """Gives the kept steps their rows, below a heading for each of their blocks."""
        self.kept = kept
        self._shown: list[Block] = []
        self._rows: list[int] = []
        self._places: list[int] = []
        """The first row of each block, and how many steps are shown before it."""
        self._heads: list[int] = []
        self.rows, before = 0, ""
        for block in self.blocks:
            place, end = bisect_left(kept, block.first), bisect_left(kept, block.end)
            if place < end:
                heads = 1 + (len(self._files) > 1 and block.path != before)
                self._shown.append(block)
                self._rows.append(self.rows)
                self._places.append(place)
                self._heads.append(heads)
                self.rows, before = self.rows + heads + end - place, block.path

    @property
    def files(self) -> Mapping[str, int]:
        """The name of each file, and its first step."""
        found: dict[str, int] = {}
        for block in self.blocks:
            found.setdefault(self._files[block.path], block.first)
        return found

    def file_of(self, block: Block) -> str:
        """The file of a turn; empty if there is only one."""
        return self._files[block.path] if len(self._files) > 1 else ""

    def block_of(self, step: int) -> Block:
        """The run of a step."""
        return self.blocks[max(0, bisect_right(self._firsts, step) - 1)]

    def keeps(self, step: int) -> bool:
        """Whether the step has a row."""
        place = bisect_left(self.kept, step)
        return place < len(self.kept) and self.kept[place] == step

    def shows_turn(self, turn: TurnFacts) -> bool:
        """Whether a step of the turn has a row."""
        return self.nearest(turn.run.first, turn.run.first, turn.run.end) is not None

    def nearest(self, step: int, first: int, end: int) -> int | None:
        """The step itself, else the next one with a row, else the last one before, among those from `first` on."""
        place = bisect_left(self.kept, step)
        for near in (place, place - 1):
            if 0 <= near < len(self.kept) and first <= self.kept[near] < end:
                return self.kept[near]
        return None

    def row_of(self, step: int) -> int:
        """The row of a step, or of the nearest one that is shown."""
        place = max(0, min(bisect_left(self.kept, step), len(self.kept) - 1))
        number = max(0, bisect_right(self._places, place) - 1)
        return self._rows[number] + self._heads[number] + place - self._places[number] if self._rows else 0

    def at(self, row: int) -> tuple[Block, int | None]:
        """The content of a row: a heading of a block (None), or one of its steps."""
        number = max(0, bisect_right(self._rows, row) - 1)
        place = row - self._rows[number] - self._heads[number]
        return self._shown[number], None if place < 0 else self.kept[self._places[number] + place]

    def names_file(self, row: int) -> bool:
        """Whether a row is the heading of a file."""
        number = max(0, bisect_right(self._rows, row) - 1)
        return row == self._rows[number] and self._heads[number] > 1

    def neighbour(self, step: int, by: int) -> int:
        """The step `by` rows further, clamped to the first and the last."""
        if not self.kept:
            return step
        place = bisect_left(self.kept, step)
        if by > 0 and (place == len(self.kept) or self.kept[place] != step):
            place -= 1  # from between two, the next one is one step on
        return self.kept[min(max(place + by, 0), len(self.kept) - 1)]

    def interesting(self, step: int, direction: int) -> int | None:
        """The next step worth stopping at, in direction 1 or -1; None if there is none."""
        steps = self.view.steps
        ahead = range(step + 1, len(steps)) if direction > 0 else range(step - 1, -1, -1)
        return next((index for index in ahead if self.keeps(index) and is_interesting(steps[index])), None)

    def turn_start(self, step: int, direction: int) -> int | None:
        """The first step of the next turn (1), or of this or the previous one (-1), among those with rows."""
        starts = self._starts
        at = bisect_right(starts, step) if direction > 0 else bisect_left(starts, step) - 1
        return starts[at] if 0 <= at < len(starts) else None

    @cached_property
    def _starts(self) -> Sequence[int]:
        """The first step that is shown of each turn."""
        return [self.kept[place] for number, place in enumerate(self._places)
                if not number or self._shown[number].turn != self._shown[number - 1].turn]


class FilteredOutline(Outline):
    """The outline restricted to some steps, with a heading for each of their turns."""

    within = " that the filter keeps"

    def __init__(self, whole: Outline, numbers: Sequence[int]) -> None:
        self.view, self.blocks, self._firsts, self._files = whole.view, whole.blocks, whole._firsts, whole._files
        self._lay(tuple(numbers))


def _names(paths: Collection[str]) -> Mapping[str, str]:
    """What each file is called: its path below the folder that holds all of them."""
    try:
        common = commonpath([dirname(path) for path in paths]) if len(paths) > 1 else ""
    except ValueError:  # a relative path beside an absolute one
        common = ""
    return {path: relpath(path, common) if common else path for path in paths}


def _blocks(view: View) -> Iterator[Block]:
    exchanges = view.replay.case.recording.exchanges
    for number, facts in enumerate(view.turns):
        run, path = facts.run, exchanges[facts.responses[0]].path if facts.responses else ""
        starts = [run.first]
        if run.runs > 1:
            steps = view.steps
            starts += [i for i in range(run.first + 1, run.end) if steps[i].run != steps[i - 1].run]
        for order, (first, end) in enumerate(zip(starts, [*starts[1:], run.end], strict=True)):
            yield Block(first, end, number, order, path)


_PLAIN = frozenset({Stop.END_TURN, Stop.TOOL_CALL})
_STOPPING = frozenset({State.ABORT, State.ABORT_PARTIAL, State.UNRECORDED})


def is_interesting(step: Step) -> bool:
    """Whether a step is worth stopping at: a cut, a block, a held or rejected call, a limit, or a bad end."""
    if step.state in _STOPPING:
        return True
    seen = step.turn.evaluation
    if step.state is not State.EVALUATE_STOP or seen is None:
        return step.previous_state is None and step.run > 0
    return seen.judgement.stop.normalized not in _PLAIN or any(v.admission is not Admission.READY
                                                               for v in seen.verdicts)
