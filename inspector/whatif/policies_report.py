"""The policy matrix as text, 80 columns wide, as CSV and as one JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap
from typing import Any, NamedTuple

from inspector.report.lines.spans import count_of, one_line, text_of
from inspector.report.table import Column, Table
from inspector.whatif.policies import DECISIONS, Cell, Matrix
from inspector.whatif.policies_lines import LABEL, fold_line, fold_turns, layout, names, row, same_decisions

SCHEMA = "loop-inspector/policies/1"
WIDTH = 80


def text(matrix: Matrix) -> str:
    """The matrix, then the actions of each policy; consecutive turns in which all agree share a line."""
    return "\n".join(_lines(matrix)) + "\n"


def _lines(matrix: Matrix) -> Iterator[str]:
    if not matrix.rows:
        yield "NOTHING READ  no LLM traffic was found"
        return
    under = count_of(len(matrix.policies), "policy", "policies")
    yield f"{count_of(len(matrix.rows), 'turn')} under {under}, {matrix.fidelity.value}"
    yield ""
    laid = layout(matrix, WIDTH, 0)._replace(first=0, size=len(matrix.policies), file=0)
    yield from (text_of(line).rstrip() for line in names(matrix, laid))
    lines, file = fold_turns(matrix, each=False), ""
    for alike in lines:
        files = set(matrix.files[alike[0] : alike[-1] + 1])
        if len(files) == 1 and file not in files:  # without a column for files, because all policies fit into a row
            yield one_line(matrix.files[alike[0]])
        file = files.pop() if len(files) == 1 else ""
        if len(alike) > 1:
            folded = text_of(fold_line(matrix, alike, here=False))
            yield from wrap(folded, WIDTH, subsequent_indent=" " * (LABEL + 1))
        else:
            yield text_of(row(matrix, alike[0], None, laid)).rstrip()
    yield ""
    counts = ", ".join(f"{policy.name} {matrix.complete(at):,}" for at, policy in enumerate(matrix.policies))
    yield from wrap(f"complete by the verdict of each turn, of {len(matrix.rows):,}: {counts}", WIDTH,
                    break_on_hyphens=False)
    used = {cell.decision.word for row in matrix.rows for cell in row}
    legend = ", ".join(f"{d.short}: {d.word}" for d in DECISIONS if d.word in used and d.short != d.word)
    if legend:
        yield from ("", *wrap(legend, WIDTH))
    yield ""
    yield "whose policies these are"
    for policy in matrix.policies:
        yield from wrap(f"{policy.name}: {policy.title}", WIDTH, initial_indent="  ", subsequent_indent="    ",
                        break_on_hyphens=False)
    for turn in (alike[0] for alike in lines if len(alike) == 1):
        yield ""
        file = f"{one_line(matrix.files[turn])}, " if matrix.files else ""
        yield f"turn {turn + 1} ({file}{one_line(matrix.turns[turn].record.id)})"
        for who, cell in same_decisions(matrix, matrix.rows[turn], by_step=True):
            parts = "" if cell.step is None else f" (differs from strict from its step {cell.step + 1} on)"
            said = f"{who}: {cell.decision.word} · {one_line(cell.why)}{parts}"
            yield from wrap(said, WIDTH, initial_indent="  ", subsequent_indent="    ")


CELLS: Table[Cell] = Table((
    Column("decision", lambda cell: cell.decision.id),
    Column("severity", lambda cell: cell.decision.severity.value),
    Column("why", lambda cell: cell.why),
    Column("continuations", lambda cell: cell.continuations),
    Column("first_difference", lambda cell: None if cell.step is None else cell.step + 1),
    Column("complete", lambda cell: cell.complete),
))
"""The columns about a policy's decision on a turn, for CSV and JSON."""


class CellOfTurn(NamedTuple):
    """A row of CSV: what one policy did with one turn."""

    number: int
    id: str
    path: str
    policy: str
    cell: Cell


ROWS: Table[CellOfTurn] = Table((
    Column("turn", lambda row: row.number), Column("turn_id", lambda row: row.id),
    Column("path", lambda row: row.path), Column("policy", lambda row: row.policy),
    *(column.of(lambda row: row.cell) for column in CELLS.columns),
))
"""The columns of the CSV file."""


def as_csv(matrix: Matrix) -> str:
    """One row for each turn under each policy."""
    return ROWS.csv(
        CellOfTurn(number, turn.record.id, path, policy.name, cell)
        for number, (turn, path, row) in enumerate(zip(matrix.turns, matrix.paths, matrix.rows, strict=True), 1)
        for policy, cell in zip(matrix.policies, row, strict=True))


def values(matrix: Matrix) -> dict[str, Any]:
    """The matrix as plain values, schema `loop-inspector/policies/1`."""
    return {
        "schema": SCHEMA,
        "fidelity": matrix.fidelity.value,
        "policies": [
            {
                "name": policy.name,
                "title": policy.title,
                "cites": list(policy.cites),
                "decisions": dict(Counter(row[column].decision.id for row in matrix.rows)),
                "complete": matrix.complete(column),
            }
            for column, policy in enumerate(matrix.policies)
        ],
        "turns": [
            {
                "id": turn.record.id,
                "path": path,
                "responses": [link.index for link in turn.record.links],
                "decisions": [
                    {"policy": policy.name, **CELLS.values(cell)}
                    for policy, cell in zip(matrix.policies, row, strict=True)
                ],
            }
            for turn, path, row in zip(matrix.turns, matrix.paths, matrix.rows, strict=True)
        ],
    }
