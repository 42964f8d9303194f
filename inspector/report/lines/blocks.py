"""The blocks of the step list (one for each run of a turn), and short names of the files they were read from."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Mapping
from os.path import commonpath, dirname, relpath
from typing import NamedTuple

from inspector.replay import MadeOnAccess, TurnRun
from inspector.report.facts import View


class Block(NamedTuple):
    """One run of one turn: a heading row, then its steps."""

    first: int
    end: int
    turn: int
    """The index of the turn in the view."""
    run: int
    path: str


class Blocks(MadeOnAccess[Block]):
    """The blocks of a view in order; each is made on access from three numbers."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.firsts = array("q")
        self.turns = array("q")
        """The index of each block's turn in the view."""
        for number, turn in enumerate(view.turns):
            for first in _starts(view, turn.run):
                self.firsts.append(first)
                self.turns.append(number)

    def __len__(self) -> int:
        return len(self.firsts)

    def made_at(self, place: int) -> Block:
        """The block at an index."""
        number, after = self.turns[place], place + 1
        turn = self._view.turns[number]
        last = after == len(self.turns) or self.turns[after] != number
        exchanges, answers = self._view.replay.case.recording.exchanges, turn.responses
        return Block(self.firsts[place], turn.run.end if last else self.firsts[after], number,
                     place - bisect_left(self.turns, number), exchanges[answers[0]].path if answers else "")

    def files(self) -> dict[str, int]:
        """The path of each file, and its first step."""
        found: dict[str, int] = {}
        for block in self:
            found.setdefault(block.path, block.first)
        return found


def _starts(view: View, run: TurnRun) -> list[int]:
    """The first step of each run of a turn."""
    if run.runs < 2:
        return [run.first]
    steps = view.steps
    return [run.first, *(at for at in range(run.first + 1, run.end) if steps[at].run != steps[at - 1].run)]


def file_names(paths: Collection[str]) -> Mapping[str, str]:
    """The name of each file: its path below the common folder of all files."""
    try:
        common = commonpath([dirname(path) for path in paths]) if len(paths) > 1 else ""
    except ValueError:  # relative and absolute paths have no common folder
        common = ""
    share = common != dirname(common)  # a path without its root would look as if it were below the working folder
    return {path: relpath(path, common) if share else path for path in paths}
