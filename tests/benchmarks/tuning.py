"""A grid of 1,000 cells against one cell: over a recording of 1,000 responses, and simulated over a part of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measure import Line, Report, best, milliseconds

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import Case, open_case
from inspector.sessions import open_paths
from inspector.whatif.grid import Grid, parse_axes
from inspector.whatif.grid_report import document
from inspector.whatif.grid_run import TunedGrid, tune
from tests.scenes.recordings import HINT, assistant, chat, lines, pair_of, user

TURNS, SIMULATED_TURNS, CAP = 250, 40, 64
GRID = ("attempts=0..9", "tokens=64..640/64", "max_tokens=40..400/40")
ROUNDS = 5


def answers(turns: int) -> Iterator[dict[str, Any]]:
    """Turns of four responses each: three that were cut, and the end."""
    for turn in range(turns):
        history = [user(f"Question {turn}, please.")]
        for number in range(4):
            words = " ".join(f"w{turn}x{number}y{word}" for word in range(CAP // 4))
            answer = chat(f"{words} ", "length" if number < 3 else "stop", tokens=CAP)
            yield pair_of(list(history), answer, max_tokens=CAP)
            history += [assistant(f"{words} "), user(HINT)]


def session(turns: int) -> Case:
    return open_case(open_paths(["-"], stdin=lines(*answers(turns))))


def document_of(made: TunedGrid) -> object:
    return document(made)


def report() -> Report:
    """Each grid and its yardstick in the same rounds, all in one process."""
    case = session(TURNS)
    grid = Grid(parse_axes(GRID))
    took = best({
        "grid": lambda: tune(case, grid, jobs=1),
        "told": lambda: document_of(tune(case, grid, jobs=1)),
        "cell": lambda: replay(case, grid.settings(500)),
    }, ROUNDS)
    yield Line("grid of 1,000 cells ÷ one replay of 1,000 responses", took["grid"] / took["cell"], most=20,
               note=milliseconds(took["grid"], took["cell"]))
    yield Line("the same with its JSON document", took["told"] / took["cell"], most=20,
               note=milliseconds(took["told"], took["cell"]))
    part = session(SIMULATED_TURNS)
    simulated = Grid(parse_axes(GRID), Settings(simulate=True))
    took = best({
        "grid": lambda: tune(part, simulated, jobs=1),
        "cells": lambda: [replay(part, simulated.settings(cell)) for cell in range(990, 1_000)],  # of each max_tokens
    }, ROUNDS)
    cell = took["cells"] / 10
    yield Line("simulated grid of 1,000 cells ÷ a simulated replay, on average", took["grid"] / cell, most=20,
               note=milliseconds(took["grid"], cell))
