"""The policy matrix as lines: a row for every turn, a column for every policy, and all that is known of one cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import Line, Role, Span, field, joined, more, said
from inspector.whatif.policies import Cell, Matrix
from inspector.whatif.policies_report import COLUMN, shown, told
from loop_core.values import Severity

Place = tuple[int, int]
"""A cell: the index of its turn, and that of its policy."""

LABEL = 6
"""Columns before the first policy."""
ROOMY = 21
"""Columns in which every decision stands in full."""
ROLES = {Severity.ERROR: Role.ERROR, Severity.WARNING: Role.WARN, Severity.INFO: Role.OK}


class Layout(NamedTuple):
    """Which policies are side by side, and how wide each is."""

    first: int
    seen: int
    column: int

    @property
    def policies(self) -> range:
        """The policies that are seen."""
        return range(self.first, self.first + self.seen)


def layout(made: Matrix, width: int, policy: int) -> Layout:
    """As many policies as fit into `width`, `policy` among them."""
    every = len(made.policies)
    column = max(COLUMN, min(ROOMY, (width - LABEL) // every))
    count = max(1, min(every, (width - LABEL) // column))
    return Layout(max(0, min(policy - count + 1, every - count)), count, column)


def names(made: Matrix, laid: Layout) -> list[Line]:
    """The names of the policies over their columns, in two lines where they are broken at the hyphen."""
    shown_names = [made.policies[policy].name for policy in laid.policies]
    whole = all(len(name) < laid.column - 1 for name in shown_names)
    split = [(name, "", "") if whole else name.partition("-") for name in shown_names]
    lines = [
        "turn".ljust(LABEL) + "".join(f" {head + dash:<{laid.column - 1}}" for head, dash, _ in split),
        " " * LABEL + "".join(f" {tail:<{laid.column - 1}}" for _, _, tail in split),
    ]
    return [(Span(line, Role.KEY),) for line in lines if line.strip()]


def row(made: Matrix, turn: int, here: Place, laid: Layout) -> Line:
    """What each policy does with a turn; the cell `here` is marked."""
    spans = [Span(f"{turn + 1:<{LABEL},}", Role.DIM)]
    for policy in laid.policies:
        cell, chosen = made.rows[turn][policy], (turn, policy) == here
        word = _in_full(cell) if laid.column >= ROOMY else shown(cell)
        role = Role.MATCH if chosen else ROLES[cell.decision.severity]
        spans += [Span("▶" if chosen else " ", Role.HERE), Span(word, role),
                  Span(" " * (laid.column - 1 - len(word)))]
    return tuple(spans)


def _in_full(cell: Cell) -> str:
    return f"{cell.decision.word} x{cell.continuations}" if cell.decision.short == "continued" else cell.decision.word


def policy_at(laid: Layout, column: int) -> int | None:
    """The policy at a column of a row; None where there is none."""
    policy = laid.first + (column - LABEL) // laid.column
    return policy if policy in laid.policies else None


def assignments(made: Matrix, place: Place) -> Mapping[str, str]:
    """What opens a cell as a branch of the run that the matrix was made of."""
    return {"policy": made.policies[place[1]].name}


def step_at(made: Matrix, place: Place) -> int:
    """The step at which the branch of a cell is worth looking at: where it parts from strict, else the turn's first."""
    turn, policy = place
    step = made.rows[turn][policy].step
    return made.replays[policy].turns[turn].first if step is None else step


def find(made: Matrix, needle: str, start: Place, by: int, again: bool) -> Place | None:
    """The next cell that says `needle`, by turns and then by policies, round the end; None where none does."""
    columns, wanted = len(made.policies), needle.lower()
    count, first = len(made.rows) * columns, start[0] * columns + start[1]
    for far in range(again, count + again):
        turn, policy = divmod((first + far * by) % count, columns)
        cell = made.rows[turn][policy]
        if wanted in f"{made.policies[policy].name} {cell.decision.word} {shown(cell)} {cell.why}".lower():
            return turn, policy
    return None


def differing(made: Matrix, start: Place, by: int) -> Place | None:
    """The next cell whose policy decides otherwise than strict, by turns and then by policies; None where none does."""
    columns = len(made.policies)
    at = start[0] * columns + start[1] + by
    while 0 <= at < len(made.rows) * columns:
        turn, policy = divmod(at, columns)
        if made.rows[turn][policy].decision is not made.rows[turn][0].decision:
            return turn, policy
        at += by
    return None


def sheet(made: Matrix, here: Place) -> Listed:
    """All that is known of a cell, and what the other policies do with its turn."""
    if not made.rows:
        return Listed([(Span("no turns", Role.DIM),)])
    turn, column = here
    cell, policy = made.rows[turn][column], made.policies[column]
    counts = Counter(every[column].decision.word for every in made.rows)
    return Listed([
        (Span(f"turn {turn + 1:,}", Role.TITLE), Span(" under ", Role.DIM), Span(policy.name, Role.TITLE)),
        field("decision", Span(cell.decision.word, ROLES[cell.decision.severity])),
        field("why", said(cell.why)),
        field("from strict", Span(_parts(cell.step))),
        field("all turns", *joined([(Span(f"{word} {count:,}"),) for word, count in counts.most_common()])),
        field("policy", Span(policy.title)),
        (),
        *_beside(made, turn),
        (),
        *[(more if at else partial(field, "follows"))(Span(cite, Role.DIM)) for at, cite in enumerate(policy.cites)],
    ])


def _beside(made: Matrix, turn: int) -> list[Line]:
    """What all policies do with a turn, those that do the same together."""
    lines: list[Line] = [(Span(f"turn {turn + 1:,} under all", Role.TITLE),)]
    for who, cell in told(made, made.rows[turn]):
        word = f"{_in_full(cell):<{ROOMY}}"
        lines += [(Span(word, ROLES[cell.decision.severity]), Span(who)),
                  (Span(" " * ROOMY), said(cell.why, Role.DIM))]
    return lines


def _parts(step: int | None) -> str:
    return "no step differs" if step is None else f"parts at step {step + 1:,} of this run"
