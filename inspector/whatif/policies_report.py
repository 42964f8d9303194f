"""The policy matrix as text, 80 columns wide, and as one JSON document.

Further down: the policy matrix as lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from textwrap import wrap
from typing import Any, NamedTuple

from inspector.report.lines.spans import (
    Line,
    Listed,
    Span,
    Tone,
    count_of,
    field,
    join_groups,
    more,
    one_line,
    safe,
    text_of,
)
from inspector.report.table import Column, Table
from inspector.whatif.policies import DECISIONS, Cell, Matrix
from loop_core.values import Severity

SCHEMA = "loop-inspector/policies/1"
WIDTH = 80
COLUMN = 10


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
    laid = layout(matrix, WIDTH, 0)._replace(first=0, size=len(matrix.policies))
    yield from (text_of(line).rstrip() for line in names(matrix, laid))
    lines = fold_turns(matrix, each=False)
    for alike in lines:
        line = fold_line(matrix, alike, here=False) if len(alike) > 1 else row(matrix, alike[0], None, laid)
        folds = wrap(text_of(line), WIDTH, subsequent_indent=" " * (LABEL + 1))
        yield from folds if len(alike) > 1 else [text_of(line).rstrip()]
    yield ""
    counts = ", ".join(f"{policy.name} {matrix.complete(at):,}" for at, policy in enumerate(matrix.policies))
    yield from wrap(f"complete by the verdict of each turn, of {len(matrix.rows):,}: {counts}", WIDTH,
                    break_on_hyphens=False)
    used = {cell.decision.word: cell.decision for row in matrix.rows for cell in row}
    if any(word != each.short for word, each in used.items()):
        yield ""
        legend = ", ".join(f"{d.short}: {d.word}" for d in DECISIONS if d.word in used and d.short != d.word)
        yield from wrap(legend, WIDTH)
    yield ""
    yield "whose policies these are"
    for policy in matrix.policies:
        yield from wrap(f"{policy.name}: {policy.title}", WIDTH, initial_indent="  ", subsequent_indent="    ",
                        break_on_hyphens=False)
    for turn in (alike[0] for alike in lines if len(alike) == 1):
        yield ""
        yield f"turn {turn + 1} ({one_line(matrix.turns[turn].record.id)})"
        for who, cell in same_decisions(matrix, matrix.rows[turn], by_step=True):
            said = f"{who}: {cell.decision.word} · {one_line(cell.why)}{_parts(cell)}"
            yield from wrap(said, WIDTH, initial_indent="  ", subsequent_indent="    ")


def short_word(cell: Cell) -> str:
    """The word of a cell, abbreviated for a column."""
    if cell.decision.short == "continued":
        return f"cont. x{cell.continuations}"
    return cell.decision.short


def same_decisions(matrix: Matrix, row: tuple[Cell, ...], *, by_step: bool) -> list[tuple[str, Cell]]:
    """The cells of a row grouped by decision: the names of the policies, and the decision.

    With `by_step`, policies that part from strict at different steps are in different groups.
    """
    found: dict[tuple[str, str, int | None], tuple[list[str], Cell]] = {}
    for policy, cell in zip(matrix.policies, row, strict=True):
        key = (cell.decision.word, cell.why, cell.step if by_step else None)
        found.setdefault(key, ([], cell))[0].append(policy.name)
    return [(", ".join(names), cell) for names, cell in found.values()]


def _parts(cell: Cell) -> str:
    return "" if cell.step is None else f" (parts from strict at its step {cell.step + 1})"


CELLS: Table[Cell] = Table((
    Column("decision", lambda cell: cell.decision.word),
    Column("severity", lambda cell: cell.decision.severity.value),
    Column("why", lambda cell: cell.why),
    Column("continuations", lambda cell: cell.continuations),
    Column("first_difference", lambda cell: None if cell.step is None else cell.step + 1),
    Column("complete", lambda cell: cell.complete),
))
"""What a policy did with a turn."""


class CellOfTurn(NamedTuple):
    """A row of CSV: what one policy did with one turn."""

    number: int
    id: str
    policy: str
    cell: Cell


ROWS: Table[CellOfTurn] = Table((
    Column("turn", lambda row: row.number), Column("turn_id", lambda row: row.id),
    Column("policy", lambda row: row.policy), *(column.of(lambda row: row.cell) for column in CELLS.columns),
))
"""The columns of CSV."""


def as_csv(matrix: Matrix) -> str:
    """One row for each turn under each policy."""
    return ROWS.csv(
        CellOfTurn(number, turn.record.id, policy.name, cell)
        for number, (turn, row) in enumerate(zip(matrix.turns, matrix.rows, strict=True), 1)
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
                "decisions": dict(Counter(row[column].decision.word for row in matrix.rows)),
                "complete": matrix.complete(column),
            }
            for column, policy in enumerate(matrix.policies)
        ],
        "turns": [
            {
                "id": turn.record.id,
                "responses": [link.index for link in turn.record.links],
                "decisions": [
                    {"policy": policy.name, **CELLS.values(cell)}
                    for policy, cell in zip(matrix.policies, row, strict=True)
                ],
            }
            for turn, row in zip(matrix.turns, matrix.rows, strict=True)
        ],
    }


# -- The policy matrix as lines --------------------------------------------------------------------------------------
# A row for every turn, a column for every policy, and all that is known of one cell.

Place = tuple[int, int]
"""A cell: the index of its turn, and that of its policy."""

LABEL = 6
"""Columns before the first policy."""
ROOMY = 21
"""Columns in which every decision stands in full."""
ROLES = {Severity.ERROR: Tone.ERROR, Severity.WARNING: Tone.WARN, Severity.INFO: Tone.OK}


def agree(matrix: Matrix, turn: int) -> bool:
    """Whether all policies decide alike about a turn."""
    first, *others = matrix.rows[turn]
    return all(cell.decision is first.decision for cell in others)


def fold_turns(matrix: Matrix, each: bool) -> list[range]:
    """The turns of each line: one turn, or consecutive ones in which all policies agree; `each` folds none."""
    turns = range(len(matrix.rows))
    if each:
        return [range(turn, turn + 1) for turn in turns]
    found: list[range] = []
    for alike, group in groupby(turns, key=partial(agree, matrix)):
        members = list(group)
        found += [range(members[0], members[-1] + 1)] if alike else [range(turn, turn + 1) for turn in members]
    return found


def fold_line(matrix: Matrix, turns: range, *, here: bool) -> Line:
    """The line of consecutive turns in which all policies agree."""
    counts = Counter(matrix.rows[turn][0].decision.word for turn in turns)
    told = ", ".join(f"{word} {count:,}" for word, count in counts.most_common())
    return (Span(f"{turns[0] + 1:<{LABEL},}", Tone.DIM), Span("▶" if here else " ", Tone.HERE),
            Span(f"{len(turns):,} turns in which all policies agree", Tone.PLAIN if here else Tone.DIM),
            Span(f"  {told}", Tone.DIM))


def fold_sheet(matrix: Matrix, turns: range) -> Listed:
    """The details of turns in which all policies agree."""
    alike = Counter(matrix.rows[turn][0].decision.word for turn in turns)
    return Listed([
        (Span(f"turns {turns[0] + 1:,} to {turns[-1] + 1:,}", Tone.TITLE), Span(" under all policies", Tone.DIM)),
        field("agree in", Span(f"{len(turns):,} turns")),
        field("decisions", *join_groups([(Span(f"{word} {count:,}"),) for word, count in alike.most_common()])),
        field("complete", Span(f"{sum(matrix.rows[turn][0].complete for turn in turns):,} of {len(turns):,}, by the "
                               "verdict of each")),
    ])


class Layout(NamedTuple):
    """The visible policies, and their column width."""

    first: int
    size: int
    column: int

    @property
    def policies(self) -> range:
        """The visible policies."""
        return range(self.first, self.first + self.size)


def layout(matrix: Matrix, width: int, policy: int) -> Layout:
    """As many policies as fit into `width`, including `policy`."""
    every = len(matrix.policies)
    column = max(COLUMN, min(ROOMY, (width - LABEL) // every))
    count = max(1, min(every, (width - LABEL) // column))
    return Layout(max(0, min(policy - count + 1, every - count)), count, column)


def names(matrix: Matrix, layout: Layout) -> list[Line]:
    """The column heads: the names of the policies, in two lines if broken at the hyphen."""
    shown_names = [matrix.policies[policy].name for policy in layout.policies]
    whole = all(len(name) < layout.column - 1 for name in shown_names)
    split = [(name, "", "") if whole else name.partition("-") for name in shown_names]
    lines = [
        "turn".ljust(LABEL) + "".join(f" {head + dash:<{layout.column - 1}}" for head, dash, _ in split),
        " " * LABEL + "".join(f" {tail:<{layout.column - 1}}" for _, _, tail in split),
    ]
    return [(Span(line, Tone.KEY),) for line in lines if line.strip()]


def row(matrix: Matrix, turn: int, here: Place | None, layout: Layout) -> Line:
    """The decisions of each policy about a turn; cell `here` is marked."""
    spans = [Span(f"{turn + 1:<{LABEL},}", Tone.DIM)]
    for policy in layout.policies:
        cell, chosen = matrix.rows[turn][policy], (turn, policy) == here
        word = _in_full(cell) if layout.column >= ROOMY else short_word(cell)
        role = Tone.MATCH if chosen else ROLES[cell.decision.severity]
        spans += [Span("▶" if chosen else " ", Tone.HERE), Span(word, role),
                  Span(" " * (layout.column - 1 - len(word)))]
    return tuple(spans)


def _in_full(cell: Cell) -> str:
    return f"{cell.decision.word} x{cell.continuations}" if cell.decision.short == "continued" else cell.decision.word


def policy_at(layout: Layout, column: int) -> int | None:
    """The policy at a column of a row; None if there is none."""
    policy = layout.first + (column - LABEL) // layout.column
    return policy if policy in layout.policies else None


def assignments(matrix: Matrix, place: Place) -> Mapping[str, str]:
    """The assignments that open a cell as a branch of the matrix's run."""
    return {"policy": matrix.policies[place[1]].name}


def step_at(matrix: Matrix, place: Place) -> int:
    """The step at which to open the branch of a cell: where it departs from strict, else the turn's first."""
    turn, policy = place
    step = matrix.rows[turn][policy].step
    return matrix.replays[policy].turns[turn].first if step is None else step


def find(matrix: Matrix, needle: str, start: Place, by: int, again: bool) -> Place | None:
    """The next cell that contains `needle`, by turns and then by policies, wrapping around; None if none does."""
    columns, wanted = len(matrix.policies), needle.lower()
    count, first = len(matrix.rows) * columns, start[0] * columns + start[1]
    for far in range(again, count + again):
        turn, policy = divmod((first + far * by) % count, columns)
        cell = matrix.rows[turn][policy]
        if wanted in f"{matrix.policies[policy].name} {cell.decision.word} {short_word(cell)} {cell.why}".lower():
            return turn, policy
    return None


def differing(matrix: Matrix, start: Place, by: int) -> Place | None:
    """The next cell whose policy decides differently from strict, by turns and then by policies; None if none does.
    """
    columns = len(matrix.policies)
    at = start[0] * columns + start[1] + by
    while 0 <= at < len(matrix.rows) * columns:
        turn, policy = divmod(at, columns)
        if matrix.rows[turn][policy].decision is not matrix.rows[turn][0].decision:
            return turn, policy
        at += by
    return None


def sheet(matrix: Matrix, here: Place, file: str = "") -> Listed:
    """All details of a cell, with the file of its turn if there are several, and the decisions of other policies."""
    if not matrix.rows:
        return Listed([(Span("no turns", Tone.DIM),)])
    turn, column = here
    cell, policy = matrix.rows[turn][column], matrix.policies[column]
    counts = Counter(every[column].decision.word for every in matrix.rows)
    return Listed([
        (Span(f"turn {turn + 1:,}", Tone.TITLE), Span(" under ", Tone.DIM), Span(policy.name, Tone.TITLE)),
        *([field("file", safe(file))] if file else []),
        field("decision", Span(cell.decision.word, ROLES[cell.decision.severity])),
        field("why", safe(cell.why)),
        field("policy", Span(policy.title)),
        field("from strict", Span("no step differs" if cell.step is None else
                                  f"parts at step {cell.step + 1:,} of this run")),
        (),
        *_beside(matrix, turn),
        (),
        field("complete", Span(f"{matrix.complete(column):,} of {count_of(len(matrix.rows), 'turn')}, by the verdict "
                               "of each")),
        field("decisions", *join_groups([(Span(f"{word} {count:,}"),) for word, count in counts.most_common()])),
        *[(more if at else partial(field, "follows"))(Span(named_source(cite), Tone.DIM))
          for at, cite in enumerate(policy.cites)],
    ])


SOURCES: Mapping[str, str] = {
    "seed 000": "ZeroClaw's RFI 2309",
    "seed 001": "Zoo Code's analysis of cut calls",
    "seed 002": "a reading of pi's agent loop",
    "seed 003": "BotNexus pull request 1676",
}
"""What this project calls a source -> its name for a reader who does not know the project."""


def named_source(cite: str) -> str:
    """A line that a policy follows, with its source as others know it."""
    return next((cite.replace(ours, name) for ours, name in SOURCES.items() if cite.startswith(ours)), cite)


def _beside(matrix: Matrix, turn: int) -> list[Line]:
    """What all policies do with a turn, those that do the same together."""
    lines: list[Line] = [(Span(f"turn {turn + 1:,} under all", Tone.TITLE),)]
    for who, cell in same_decisions(matrix, matrix.rows[turn], by_step=False):
        word = f"{_in_full(cell):<{ROOMY}}"
        lines += [(Span(word, ROLES[cell.decision.severity]), Span(who)),
                  (Span(" " * ROOMY), safe(cell.why, Tone.DIM))]
    return lines
