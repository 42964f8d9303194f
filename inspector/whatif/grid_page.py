"""The heat map of a grid as one page: a table for each pair of axes; no scripts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import product

from inspector.report.lines.spans import one_line
from inspector.whatif.axes import Value
from inspector.whatif.grid_run import Tuned
from inspector.whatif.heat import word
from inspector.whatif.smallest import knee

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1a202c;"
    "background:#fff}table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #cbd5e0;padding:.3rem .7rem;"
    "text-align:center}th{background:#edf2f7}td.best{outline:3px solid #1a202c}caption{text-align:left;font-weight:600}"
)


def page(tuned: Tuned) -> str:
    """The page: how many turns complete in each cell, by colour and number; the smallest cell is framed."""
    grid, bend = tuned.grid, knee(tuned)
    best = bend.enough.cell if bend is not None else None
    turns = f"{len(tuned.turns):,} turn{'' if len(tuned.turns) == 1 else 's'}"
    told = [f"<h1>Limits and what they complete</h1><p>{turns}, policy {escape(grid.base.policy.name)}"
            f"{', cancelled before all was run' if tuned.cancelled else ''}.</p>"]
    if best is not None:
        done = f"{tuned.completed[best]:,} of {turns} complete for {tuned.tokens[best]:,} output tokens"
        told.append(f"<p>The smallest cell that completes as many as any: "
                    f"<strong>{escape(_named(grid.names, grid.values(best)))}</strong>; {done}.</p>")
    rows, columns = grid.axes[0], grid.axes[-1] if len(grid.axes) > 1 else None
    for others in product(*(axis.values for axis in grid.axes[1:-1])):
        told.append(_table(tuned, rows.values, columns.values if columns else (), others, best))
    told.append("<p>~ is simulated: what the recording does not hold was cut again. A number is the turns that are "
                "complete; the greener, the more.</p>")
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Limits and what they complete</title>'
            f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">'
            f"<style>{_STYLE}</style><body>{''.join(told)}</body></html>\n")


def _named(names: Sequence[str], values: Sequence[Value]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in zip(names, values, strict=True))


def _value(value: Value) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else one_line(str(value))


def _table(
    tuned: Tuned, rows: Sequence[Value], columns: Sequence[Value], others: Sequence[Value], best: int | None
) -> str:
    names = tuned.grid.names
    caption = f"<caption>{escape(_named(names[1:-1], others))}</caption>" if others else ""
    corner = f"{names[0]} \\ {names[-1]}" if columns else names[0]
    head = "".join(f"<th>{escape(_value(value))}</th>" for value in columns) or "<th>turns</th>"
    body = []
    for row in rows:
        cells = [tuned.grid.cell((row, *others, column)) for column in columns] or [tuned.grid.cell((row,))]
        body.append(f"<tr><th>{escape(_value(row))}</th>{''.join(_cell(tuned, cell, cell == best) for cell in cells)}"
                    "</tr>")
    return f"<table>{caption}<tr><th>{escape(corner)}</th>{head}</tr>{''.join(body)}</table>"


def _cell(tuned: Tuned, cell: int, best: bool) -> str:
    if not tuned.whole(cell):
        return "<td>not run</td>"
    done, every = tuned.completed[cell], max(1, tuned.every)
    single = tuned.turns[0].end(cell) if len(tuned.turns) == 1 else None
    shown = word(single) if single is not None else f"{done:,} of {every:,}"
    mark = "~" if tuned.simulated[cell] else ""
    green = 0.12 + 0.55 * done / every if done else 0
    colour = f"rgba(47,133,90,{green:.2f})" if done else "rgba(197,48,48,.16)"
    frame = " class=best" if best else ""
    return (f'<td{frame} style="background:{colour}" title="{tuned.tokens[cell]:,} output tokens">'
            f"{escape(shown)}{mark}</td>")
