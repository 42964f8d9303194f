"""The policy matrix as lines: a row for every turn, a column for every policy, and all that is known of one cell."""

from __future__ import annotations

from functools import partial

from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import EMPTY, Line, Role, Span, field, joined, more, said
from inspector.settings import Settings
from inspector.whatif.policies import Matrix
from inspector.whatif.policies_report import COLUMN, heading, shown
from loop_core.values import Severity

Place = tuple[int, int]
"""A cell: the index of its turn, and that of its policy."""

LABEL = 6
"""Columns before the first policy."""
ABOVE = 4
"""Lines above the first turn."""
ROLES = {Severity.ERROR: Role.ERROR, Severity.WARNING: Role.WARN, Severity.INFO: Role.OK}


def policies_sheet(made: Matrix, here: Place = (0, 0)) -> Listed:
    """The sheet of a matrix, the cell `here` marked and told in full below; it opens at that cell."""
    if not made.rows:
        return Listed([(Span("no turns", Role.DIM),)])
    names = heading(made)
    lines: list[Line] = [
        (Span("Policies", Role.TITLE), Span(f"  {len(made.rows):,} turns under {len(made.policies)}", Role.DIM)),
        EMPTY,
        *[(Span(f"{name[:LABEL]} {name[LABEL:]}", Role.KEY),) for name in (*names, *[""] * (2 - len(names)))],
        *(_row(made, row, here) for row in range(len(made.rows))),
        EMPTY,
        *_cell(made, here),
    ]
    return Listed(lines, line_of(here[0]))


def line_of(turn: int) -> int:
    """The line of the sheet that shows a turn."""
    return ABOVE + turn


def cell_at(made: Matrix, line: int, column: int) -> Place | None:
    """The cell at a line and a column of the sheet; None where there is none."""
    turn, policy = line - ABOVE, (column - LABEL) // COLUMN
    inside = 0 <= turn < len(made.rows) and column >= LABEL and policy < len(made.policies)
    return (turn, policy) if inside else None


def settings_at(made: Matrix, place: Place) -> Settings:
    """What opens a cell as a branch: `branch(original, settings_at(made, place))`."""
    return made.settings(place[1])


def step_at(made: Matrix, place: Place) -> int:
    """The step at which the branch of a cell is worth looking at: where it parts from strict, else the turn's first."""
    turn, policy = place
    step = made.rows[turn][policy].step
    return made.replays[policy].turns[turn].first if step is None else step


def _row(made: Matrix, row: int, here: Place) -> Line:
    spans = [Span(f"{row + 1:<{LABEL},}", Role.DIM)]
    for column, cell in enumerate(made.rows[row]):
        marked = (row, column) == here
        role = ROLES[cell.decision.severity]
        spans += [Span("▶" if marked else " ", Role.HERE), Span(f"{shown(cell):<{COLUMN - 1}}", role)]
    return tuple(spans)


def _cell(made: Matrix, here: Place) -> list[Line]:
    turn, column = here
    cell, policy = made.rows[turn][column], made.policies[column]
    lines = [
        (Span(f"turn {turn + 1:,}", Role.TITLE), Span(" under ", Role.DIM), Span(policy.name, Role.TITLE)),
        field("decision", Span(cell.decision.word, ROLES[cell.decision.severity])),
        field("why", said(cell.why)),
        field("from strict", Span(_parts(cell.step))),
        field("policy", Span(policy.title)),
    ]
    cites = [(more if at else partial(field, "follows"))(Span(cite, Role.DIM)) for at, cite in enumerate(policy.cites)]
    others = joined([(Span(f"{name} {count}"),) for name, count in _counts(made, column)])
    return [*lines, *cites, field("all turns", *others)]


def _parts(step: int | None) -> str:
    return "no step differs" if step is None else f"parts at step {step + 1:,} of this run"


def _counts(made: Matrix, column: int) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for row in made.rows:
        word = row[column].decision.word
        found[word] = found.get(word, 0) + 1
    return sorted(found.items(), key=lambda pair: -pair[1])
