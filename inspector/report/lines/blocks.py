"""The blocks of the step list (one for each run of a turn), and short names of the files they were read from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from os.path import commonpath, dirname, relpath
from typing import NamedTuple

from inspector.replay import TurnRun
from inspector.report.facts import View


class Block(NamedTuple):
    """One run of one turn: a heading row, then its steps."""

    first: int
    end: int
    turn: int
    """The index of the turn in the view."""
    run: int
    path: str


def blocks_of(view: View) -> tuple[Block, ...]:
    """The blocks of a view, in order."""
    exchanges, found = view.replay.case.recording.exchanges, list[Block]()
    for number, turn in enumerate(view.turns):
        firsts, path = _starts(view, turn.run), exchanges[turn.responses[0]].path if turn.responses else ""
        found += [Block(*places, number, run, path) for run, places in enumerate(pairwise((*firsts, turn.run.end)))]
    return tuple(found)


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
