"""The results of a grid as linear text, CSV, JSON (`loop-inspector/tune/2`), and an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import product
from typing import Any, NamedTuple

from inspector.config.settings import INITIAL, Settings, command, settings_of
from inspector.report.lines.glyphs import SIMULATED, ascii_line, ascii_text
from inspector.report.lines.spans import Line, Span, Tone, count_of, one_line, plain, wrap_line
from inspector.report.table import PAGE_STYLE, Column, Table, attributes, html_page, wide
from inspector.report.verdict import identifier
from inspector.whatif.grid import Axis, End, TurnGrid, Value
from inspector.whatif.grid_lines import FEWEST, LEAST_CAP, answer_lines, headline, legend, parameter_lines
from inspector.whatif.grid_run import Edge, SmallestCap, TunedGrid, cost
from inspector.whatif.heat import GUESS, WIDTH, cell_marks, cell_name, end_word, plane
from inspector.whatif.smallest import BudgetPoint, completes_in_larger, knee, limits_of, smallest_limits, why_incomplete
from inspector.whatif.smallest_cap import (
    best_value,
    fewest_tokens,
    fewest_tokens_of_all,
    smallest_cap,
    smallest_cap_of_all,
)

SCHEMA = "loop-inspector/tune/2"


def sheet(tuning: TunedGrid, show: str = "outcome") -> list[Line]:
    """The whole sheet. The map has a fixed width; the caller wraps the other lines."""
    lines: list[Line] = [headline(tuning), (), *parameter_lines(tuning), ()]
    if not tuning.turns:
        return lines
    lines += [*heat(tuning, show), (), (Span(legend(show, tuning), Tone.DIM),)]
    if any(tuning.simulated):
        lines.append((Span(f"{SIMULATED} marks what was simulated: {GUESS}", Tone.DIM),))
    return [*lines, (), *answer_lines(tuning)]


def heat(tuning: TunedGrid, show: str) -> list[Line]:
    """The map, at most `WIDTH` columns wide."""
    spans = cell_marks(tuning, show)
    if plane(tuning.grid.axes, spans, None).width > WIDTH:
        spans = cell_marks(tuning, show, short=True)
    map_plane = plane(tuning.grid.axes, spans, WIDTH)
    return [map_plane.line(y, spans) for y in range(map_plane.height)]


def text(tuning: TunedGrid, show: str = "outcome", ascii_only: bool = False, paths: Sequence[str] = ()) -> str:
    """The sheet as linear text in 80 columns, ending with the command lines of the two best cells."""
    best, cap = fewest_tokens_of_all(tuning), smallest_cap_of_all(tuning)
    lines = [ascii_line(line) if ascii_only else line for line in sheet(tuning, show)]
    report = plain([row for line in lines for row in wrap_line(line, WIDTH)]) + "\n"
    if best is None or not paths:
        return report
    own = tuning.grid.settings(best.cell)
    chosen: dict[str, Settings] = {}
    if cap is not None:
        chosen[LEAST_CAP] = tuning.grid.settings_with(tuning.grid.by_limit(cap.values))
    chosen[FEWEST] = own if best.budget is None else settings_of({INITIAL: str(best.budget)}, own)
    runs = [(f"{name}:\n" if len(chosen) > 1 else "") + _command(tuning, settings, paths)
            for name, settings in chosen.items()]
    report += "\n" + "\n".join(runs) + "\n"
    return ascii_text(report) if ascii_only else report


def _command(tuning: TunedGrid, settings: Settings, paths: Sequence[str]) -> str:
    run = one_line(command(paths, settings))
    # Another max_tokens implies `--simulate`, but the command line shows it all the same.
    return run + " --simulate" if tuning.grid.base.simulate and not run.endswith("--simulate") else run


# -- CSV -------------------------------------------------------------------------------------------------------------

_SPEND_NAMES = ("requests", "output_tokens", "tokens_assumed", "uncounted", "output_chars", "continuations",
          "continuation_tokens", "continuation_chars", "repairs", "tool_steps", "resumes")
ENDS: Table[End] = Table((
    Column("final_state", lambda end: end.state.value),
    Column("terminal_reason", lambda end: end.terminal),
    Column("limit", lambda end: end.limit or None),
    Column("cut_unseen", lambda end: end.cut_unseen, in_csv=False),
    Column("segments", lambda end: end.segments),
    *attributes(_SPEND_NAMES, lambda end: end.spend),
    Column("fidelity", lambda end: end.fidelity),
    Column("verdict", lambda end: identifier(end.verdict)),
    Column("complete", lambda end: end.complete),
))
"""The columns about a turn's end in a cell, for CSV and JSON."""


class TurnInCell(NamedTuple):
    """A row of CSV: one turn in one cell, with the smallest max_tokens and the fewest output tokens in their cells."""

    values: tuple[Value, ...]
    number: int
    turn: TurnGrid
    end: End
    smallest: int | None
    """The smallest max_tokens that completes the turn, in the row of its cell; None in other rows."""
    fewest: Edge | None
    """The max_tokens of the turn's fewest output tokens, in the row of its cell; None in other rows."""
    enough: Edge | None
    """The max_tokens of all turns' fewest output tokens, in the rows of its cell; None in other rows."""


def rows_of(tuning: TunedGrid) -> Iterator[TurnInCell]:
    """Each turn in each cell that was run."""
    of_all, numbers = fewest_tokens_of_all(tuning), range(len(tuning.turns))
    caps = {(cap.cell, number): tuning.grid.cap_in(cap.values)
            for number in numbers if (cap := smallest_cap(tuning, number)) is not None}
    edges = {(best.cell, number): best.edge
             for number in numbers if (best := fewest_tokens(tuning, number)) is not None}
    for cell in range(tuning.grid.size):
        enough = of_all.edge if of_all is not None and of_all.cell == cell else None
        for number, turn in enumerate(tuning.turns):
            end, at = turn.end(cell), (cell, number)
            if end is not None:
                yield TurnInCell(tuning.grid.values(cell), number + 1, turn, end, caps.get(at), edges.get(at), enough)


def csv_table(names: Sequence[str]) -> Table[TurnInCell]:
    """The columns of CSV: the values of the axes first."""
    return Table((
        *(_axis(name, place) for place, name in enumerate(names)),
        Column("turn", lambda row: row.number),
        Column("turn_id", lambda row: row.turn.id),
        Column("path", lambda row: row.turn.path),
        *(column.of(lambda row: row.end) for column in ENDS.columns),
        Column("smallest_max_tokens", lambda row: row.smallest),
        Column("fewest_max_tokens", lambda row: row.fewest and row.fewest.budget),
        Column("grain", lambda row: row.fewest and row.fewest.grain),
        Column("enough_max_tokens", lambda row: row.enough and row.enough.budget),
        Column("enough_grain", lambda row: row.enough and row.enough.grain),
    ))


def _axis(name: str, place: int) -> Column[TurnInCell]:
    return Column(name, lambda row: row.values[place])


def as_csv(tuning: TunedGrid) -> str:
    """One row for each turn in each cell that was run; `none` stands for an unlimited value."""
    return csv_table(tuning.grid.names).csv(rows_of(tuning))


# -- JSON ------------------------------------------------------------------------------------------------------------


def document(tuning: TunedGrid) -> dict[str, Any]:
    """The grid as plain values, ready for `json.dumps`; cells that were not run are null."""
    enough, best = _enough(tuning), fewest_tokens_of_all(tuning)
    return {
        "schema": SCHEMA,
        "policy": tuning.grid.base.policy.name,
        "simulate": tuning.grid.base.simulate,
        "cancelled": tuning.cancelled,
        "axes": [{"name": axis.name, "values": list(axis.values)} for axis in tuning.grid.axes],
        "cells": [_cell(tuning, cell) for cell in range(tuning.grid.size)],
        "turns": [_turn(tuning, number) for number in range(len(tuning.turns))],
        "smallest_max_tokens": _cap(tuning, smallest_cap_of_all(tuning)),
        "enough": None if enough is None or best is None else {
            **_point(enough), "edge": best.edge and _edge(best.edge),
            "every_larger": completes_in_larger(tuning, best.cell)},
        "knee": None if enough is None else _point(best_value(tuning) or enough),
    }


_SUMS = {"completed": "completed", "unrecorded": "unrecorded", "simulated": "simulated", "output_tokens": "tokens",
         "requests": "requests", "segments": "segments"}


def _cell(tuning: TunedGrid, cell: int) -> dict[str, Any]:
    members: dict[str, Any] = {"values": list(tuning.grid.values(cell)), "turns": tuning.run_counts[cell]}
    for name, of in _SUMS.items():
        members[name] = getattr(tuning, of)[cell] if tuning.run_counts[cell] else None
    return members


def _turn(tuning: TunedGrid, number: int) -> dict[str, Any]:
    turn = tuning.turns[number]
    found, best = smallest_limits(tuning, number), fewest_tokens(tuning, number)
    return {
        "id": turn.id,
        "path": turn.path,
        "ends": [ENDS.values(end) for end in turn.ends],
        "cells": [None if turn.end(cell) is None else code for cell, code in enumerate(turn.codes)],
        "smallest": None if found is None or best is None else {
            "cell": best.cell,
            "by_axis": tuning.grid.by_limit(found.by_axis),
            "every_larger": completes_in_larger(tuning, best.cell, number),
            "limits": limits_of(best.budget, best.ends[0]),
            "grain": None if best.edge is None else best.edge.grain,
            "below": ENDS.values(best.edge.below[0]) if best.edge is not None and best.edge.below else None,
        },
        "smallest_max_tokens": _cap(tuning, smallest_cap(tuning, number)),
        "why_not": why_incomplete(tuning, found.end) if found is not None and found.cell is None else None,
    }


def _cap(tuning: TunedGrid, cap: SmallestCap | None) -> dict[str, Any] | None:
    """The smallest max_tokens that is enough, and the other limits; null if there is none, or it is not varied."""
    return None if cap is None else {
        "cell": cap.cell, "values": list(cap.values), **_sums(cap.ends),
        "continuations": sum(end.spend.continuations for end in cap.ends),
        "simulated": sum(end.simulated for end in cap.ends),
        "below": {"values": list(cap.below_values), **_sums(cap.below)} if cap.below else None,
    }


def _edge(edge: Edge) -> dict[str, Any]:
    """The smallest max_tokens for all turns; `worse` has the numbers of the turns that one token less would harm."""
    return {
        INITIAL: edge.budget,
        "grain": edge.grain,
        **_sums(edge.ends),
        "below": {**_sums(edge.below), "worse": [edge.turns[place] + 1 for place in edge.worse]}
        if edge.below else None,
    }


def _sums(ends: Sequence[End]) -> dict[str, int]:
    tokens, requests = cost(ends)
    return {"completed": sum(end.complete for end in ends), "output_tokens": tokens, "requests": requests}


def _enough(tuning: TunedGrid) -> BudgetPoint | None:
    """The fewest output tokens that are enough, as a point; that of `knee` if it has the same max_tokens."""
    bend, best = knee(tuning), fewest_tokens_of_all(tuning)
    if bend is None or best is None:
        return None
    return bend.enough if best.cell == bend.enough.cell and best.edge is bend.edge else BudgetPoint(
        best.cell, sum(end.complete for end in best.ends), best.tokens)


def _point(point: BudgetPoint) -> dict[str, int]:
    return {"cell": point.cell, "completed": point.completed, "output_tokens": point.tokens}


# -- The heat map as one page -----------------------------------------------------------------------------------------
# The page has a table for each pair of axes, no scripts, and no content from other addresses.

_STYLE = (
    f"{PAGE_STYLE}body{{max-width:70rem}}table{{border-collapse:collapse;margin:1rem 0}}"
    "td,th{border:1px solid #cbd5e0;padding:.3rem .7rem;text-align:center}"
    "th{background:#edf2f7}td.best{outline:3px solid #1a202c}caption{text-align:left;font-weight:600}"
)


def page(tuning: TunedGrid) -> str:
    """The HTML page: the number of complete turns in each cell, by colour and number, with the cheapest cell framed."""
    grid, bend = tuning.grid, knee(tuning)
    best = None if bend is None else bend.enough.cell
    turns = count_of(len(tuning.turns), "turn")
    parts = [f"<h1>Limits and what they complete</h1><p>{turns}, policy {escape(grid.base.policy.name)}"
             f"{', cancelled before all was run' if tuning.cancelled else ''}.</p>"]
    if best is not None:
        every = count_of(tuning.most_run, "turn")
        done = f"{tuning.completed[best]:,} of {every} complete for {tuning.tokens[best]:,} output tokens"
        parts.append(f"<p>The cell that completes as many as any, for the fewest output tokens: "
                     f"<strong>{escape(cell_name(tuning, best))}</strong>; {done}.</p>")
    for others in product(*(axis.values for axis in grid.axes[1:-1])):
        parts.append(wide(_page_table(tuning, others, best)))
    parts.append("<p>~ is simulated: what the recording does not hold was cut again. A number is the turns that are "
                 "complete; the greener, the more.</p>")
    return html_page("Limits and what they complete", _STYLE, "".join(parts))


def _page_table(tuning: TunedGrid, others: Sequence[Value], best: int | None) -> str:
    """The table of the first axis by the last; `others` are the values of the axes between them."""
    grid = tuning.grid
    rows, between, columns = grid.axes[0], grid.axes[1:-1], grid.axes[-1] if len(grid.axes) > 1 else None
    caption = f"<caption>{escape(', '.join(map(Axis.assignment, between, others)))}</caption>" if others else ""
    corner = f"{rows.short} \\ {columns.short}" if columns else rows.short
    heads = [columns.value_text(value) for value in columns.values] if columns else ["turns"]
    body = []
    for row in rows.values:
        values = [(row, *others, column) for column in columns.values] if columns else [(row,)]
        cells = map(grid.cell, values)
        marks = "".join(_page_cell(tuning, cell, cell == best) for cell in cells)
        body.append(f"<tr><th>{escape(rows.value_text(row))}</th>{marks}</tr>")
    head = "".join(f"<th>{escape(value)}</th>" for value in heads)
    return f"<table>{caption}<tr><th>{escape(corner)}</th>{head}</tr>{''.join(body)}</table>"


def _page_cell(tuning: TunedGrid, cell: int, best: bool) -> str:
    if not tuning.is_comparable(cell):
        return "<td>not run</td>"
    done, every = tuning.completed[cell], max(1, tuning.most_run)
    single = tuning.turns[0].end(cell) if len(tuning.turns) == 1 else None
    label = end_word(single) if single is not None else f"{done:,} of {every:,}"
    mark = "~" if tuning.simulated[cell] else ""
    green = 0.12 + 0.55 * done / every if done else 0
    colour = f"rgba(47,133,90,{green:.2f})" if done else "rgba(197,48,48,.16)"
    frame = " class=best" if best else ""
    return (f'<td{frame} style="background:{colour}" title="{tuning.tokens[cell]:,} output tokens">'
            f"{escape(label)}{mark}</td>")
