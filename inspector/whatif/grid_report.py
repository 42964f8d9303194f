"""A grid for other programs and for a terminal: linear text, CSV, and JSON of schema `loop-inspector/tune/2`."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspector.config.files import replace_all
from inspector.config.settings import INITIAL, command, settings_of
from inspector.report.lines.glyphs import ascii_line, ascii_text
from inspector.report.lines.spans import one_line, plain, wrapped
from inspector.whatif.grid import End
from inspector.whatif.grid_lines import sheet
from inspector.whatif.grid_run import Tuned
from inspector.whatif.heat import WIDTH
from inspector.whatif.smallest import Edge, Point, cost, knee, smallest, why_not
from loop_core.errors import CallerError

SCHEMA = "loop-inspector/tune/2"


def text(tuned: Tuned, show: str = "outcome", ascii_only: bool = False, paths: Sequence[str] = ()) -> str:
    """The sheet as linear text in 80 columns; at its end the command that runs the best cell, to be copied whole."""
    bend = knee(tuned)
    lines = [ascii_line(line) if ascii_only else line for line in sheet(tuned, bend, show)]
    told = plain([row for line in lines for row in wrapped(line, WIDTH)]) + "\n"
    if bend is None or not paths:
        return told
    best = tuned.grid.settings(bend.enough.cell)
    run = one_line(command(paths, best if bend.budget is None else settings_of({INITIAL: str(bend.budget)}, best)))
    if tuned.grid.base.simulate and not run.endswith("--simulate"):
        run += " --simulate"  # another max_tokens says as much; whoever reads the line shall see it
    return f"{told}\n{ascii_text(run) if ascii_only else run}\n"


# -- CSV -------------------------------------------------------------------------------------------------------------

_SPENT = ("requests", "output_tokens", "tokens_assumed", "uncounted", "output_chars", "continuations",
          "continuation_tokens", "continuation_chars", "repairs", "tool_steps", "resumes")
COLUMNS = ("turn", "turn_id", "path", "final_state", "terminal_reason", "limit", "segments", *_SPENT, "fidelity",
           "smallest_max_tokens", "grain", "enough_max_tokens", "enough_grain")


def as_csv(tuned: Tuned) -> str:
    """One row for each turn in each cell that was run, the values of the axes first; an empty value is `none`.

    In the row of the cell that completes a turn for the least stands, too, its smallest max_tokens between the values;
    in those of the cell that is enough for all turns, the smallest that is.
    """
    bend = knee(tuned)
    edges = {(found.cell, number): found.edge for number in range(len(tuned.turns))
             if (found := smallest(tuned, number)) is not None and found.edge is not None}
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow((*tuned.grid.names, *COLUMNS))
    for cell in range(tuned.grid.size):
        values = tuned.grid.values(cell)
        for number, turn in enumerate(tuned.turns, 1):
            end = turn.end(cell)
            if end is not None:
                edge = edges.get((cell, number - 1))
                enough = bend.edge if bend is not None and bend.enough.cell == cell else None
                rows.writerow((
                    *("" if value is None else value for value in values), number, _text(turn.id), _text(turn.path),
                    end.state.value, end.terminal, end.limit, end.segments,
                    *(getattr(end.spent, name) for name in _SPENT), end.fidelity,
                    *(("", "") if edge is None else (edge.budget, edge.grain)),
                    *(("", "") if enough is None else (enough.budget, enough.grain))))
    return out.getvalue()


def check(path: str, paths: Sequence[str], force: bool) -> None:
    """Says so before anything is run where a file may not be written.

    Raises:
        CallerError: it is there already and `force` is not given, or it is one of the sessions that are read.
    """
    target = Path(path)
    try:
        if not target.is_file():
            return
        if any(given != "-" and os.path.exists(given) and target.samefile(given) for given in paths):
            raise CallerError(f"--csv {one_line(path)}: that is a session that was read; it stays as it is")
    except OSError as why:
        raise CallerError(f"--csv {one_line(path)}: cannot be written: {why.strerror}") from why
    if not force:
        raise CallerError(f"--csv {one_line(path)}: is there already; --force writes over it")


def save(path: str, told: str) -> None:
    """Writes a file; what was there is whole where that fails.

    Raises:
        CallerError: it cannot be written.
    """
    try:
        replace_all({Path(path): told.encode("utf-8", "backslashreplace")})
    except OSError as why:
        raise CallerError(f"--csv {one_line(path)}: cannot be written: {why.strerror}") from why


def _text(value: str) -> str:
    """Inert, and no formula: a spreadsheet would run one."""
    told = one_line(value)
    return f"'{told}" if told.startswith(("=", "+", "-", "@")) else told


# -- JSON ------------------------------------------------------------------------------------------------------------


def document(tuned: Tuned) -> dict[str, Any]:
    """The grid as plain values, ready for `json.dumps`; a cell that was not run has nulls."""
    bend = knee(tuned)
    return {
        "schema": SCHEMA,
        "policy": tuned.grid.base.policy.name,
        "simulate": tuned.grid.base.simulate,
        "cancelled": tuned.cancelled,
        "axes": [{"name": axis.name, "values": list(axis.values)} for axis in tuned.grid.axes],
        "cells": [_cell(tuned, cell) for cell in range(tuned.grid.size)],
        "turns": [_turn(tuned, number) for number in range(len(tuned.turns))],
        "enough": None if bend is None else {**_point(bend.enough), "edge": bend.edge and _edge(bend.edge)},
        "knee": None if bend is None else _point(bend.knee),
    }


_SUMS = {"completed": "completed", "unrecorded": "unrecorded", "simulated": "simulated", "output_tokens": "tokens",
         "requests": "requests", "segments": "segments"}


def _cell(tuned: Tuned, cell: int) -> dict[str, Any]:
    told: dict[str, Any] = {"values": list(tuned.grid.values(cell)), "turns": tuned.looked_at[cell]}
    for name, of in _SUMS.items():
        told[name] = getattr(tuned, of)[cell] if tuned.looked_at[cell] else None
    return told


def _turn(tuned: Tuned, number: int) -> dict[str, Any]:
    turn = tuned.turns[number]
    found = smallest(tuned, number)
    return {
        "id": turn.id,
        "path": turn.path,
        "ends": [_end(end) for end in turn.ends],
        "cells": [None if turn.end(cell) is None else code for cell, code in enumerate(turn.codes)],
        "smallest": None if found is None or found.cell is None else {
            "cell": found.cell,
            "by_axis": dict(zip(tuned.grid.names, found.by_axis, strict=True)),
            "limits": found.limits,
            "grain": None if found.edge is None else found.edge.grain,
            "below": _end(found.edge.below[0]) if found.edge is not None and found.edge.below else None,
        },
        "why_not": why_not(tuned, found.end) if found is not None and found.cell is None else None,
    }


def _end(end: End) -> dict[str, Any]:
    return {
        "final_state": end.state.value,
        "terminal_reason": end.terminal,
        "limit": end.limit or None,
        "cut_unseen": end.cut_unseen,
        "segments": end.segments,
        **{name: getattr(end.spent, name) for name in _SPENT},
        "fidelity": end.fidelity,
    }


def _edge(found: Edge) -> dict[str, Any]:
    """The smallest max_tokens for all turns; `worse` are those, counted from one, that one token less would hurt."""
    return {
        INITIAL: found.budget,
        "grain": found.grain,
        **_sums(found.ends),
        "below": {**_sums(found.below), "worse": [found.turns[place] + 1 for place in found.worse]}
        if found.below else None,
    }


def _sums(ends: Sequence[End]) -> dict[str, int]:
    tokens, requests = cost(ends)
    return {"completed": sum(end.completed for end in ends), "output_tokens": tokens, "requests": requests}


def _point(point: Point) -> dict[str, int]:
    return {"cell": point.cell, "completed": point.completed, "output_tokens": point.tokens}
