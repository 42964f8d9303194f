"""The policy matrix as lines (turns by policies, and one cell in detail), as text of 80 columns, CSV and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from textwrap import wrap
from typing import Any, NamedTuple

from inspector.report.lines.spans import (
    Line,
    LineSheet,
    Span,
    Tone,
    clip,
    count_of,
    field,
    more,
    one_line,
    safe,
    text_of,
    width_of,
    words,
)
from inspector.report.lines.steps import SEVERITY
from inspector.report.table import Column, Table
from inspector.whatif.policies import DECISIONS, Cell, Matrix

Place = tuple[int, int]
"""The place of a cell: the index of its turn, and that of its policy."""

LABEL = 6
"""The width of a turn's number, in columns."""
COLUMN = 10
"""The least width of a policy, in columns."""
FILE, FILE_MOST = 11, 31
"""The least and the largest width, in columns, of a file's name between the turn and the policies."""
FULL_WIDTH = 25
"""The width in columns at which every decision is written in full, between its mark and a blank."""


def short_word(cell: Cell) -> str:
    """The word of a cell, abbreviated for a column."""
    return f"cont. x{cell.continuations}" if cell.decision.short == "continued" else cell.decision.short


def cells_by_decision(matrix: Matrix, row: tuple[Cell, ...], *, by_step: bool) -> list[tuple[str, Cell]]:
    """The cells of a row by decision, with the names of their policies; `by_step`: also by their first step that
    differs from strict."""
    found: dict[tuple[str, str, int | None], tuple[list[str], Cell]] = {}
    for policy, cell in zip(matrix.policies, row, strict=True):
        key = (cell.decision.word, cell.why, cell.step if by_step else None)
        found.setdefault(key, ([], cell))[0].append(policy.name)
    return [(", ".join(names), cell) for names, cell in found.values()]


def opening_turn(matrix: Matrix, here: int | None) -> int:
    """The turn to show first: `here` if policies differ in it, else the next such turn, wrapping around."""
    count, first = len(matrix.rows), here or 0
    turns = ((first + far) % count for far in range(count))
    return next((turn for turn in turns if not policies_agree(matrix, turn)), first)


def policies_agree(matrix: Matrix, turn: int) -> bool:
    """Whether all policies make the same decision about a turn."""
    first, *others = matrix.rows[turn]
    return all(cell.decision is first.decision for cell in others)


def fold_turns(matrix: Matrix, each: bool) -> list[range]:
    """The turns of each line: one turn, or consecutive ones in which all policies agree; with `each`, one per line."""
    turns = range(len(matrix.rows))
    if each:
        return [range(turn, turn + 1) for turn in turns]
    found: list[range] = []
    for alike, group in groupby(turns, key=partial(policies_agree, matrix)):
        members = list(group)
        found += [range(members[0], members[-1] + 1)] if alike else [range(turn, turn + 1) for turn in members]
    return found


def _decision_counts(cells: Iterable[Cell]) -> list[str]:
    """How many of the cells have each decision, the most common first."""
    return [f"{word} {count:,}" for word, count in Counter(cell.decision.word for cell in cells).most_common()]


def fold_line(matrix: Matrix, turns: range, *, here: bool) -> Line:
    """The line of consecutive turns in which all policies agree."""
    decisions = ", ".join(_decision_counts(matrix.rows[turn][0] for turn in turns))
    # Both numbers, because the first alone would look like a part of what follows: `1  3 turns`.
    numbers = f"{turns[0] + 1:,}–{turns[-1] + 1:,}"
    return (Span(f"{numbers:<{LABEL}}", Tone.DIM), Span("▶" if here else " ", Tone.HERE),
            Span(f"{len(turns):,} turns{_files_text(matrix, turns)} in which all policies agree",
                 Tone.PLAIN if here else Tone.DIM),
            Span(f"  {decisions}", Tone.DIM))


def _files_text(matrix: Matrix, turns: range) -> str:
    files = list(dict.fromkeys(matrix.files[turns[0] : turns[-1] + 1]))
    return f" of {len(files):,} files" if len(files) > 1 else f" of {one_line(files[0], 40)}" if files else ""


def fold_sheet(matrix: Matrix, turns: range) -> LineSheet:
    """The details of turns in which all policies agree."""
    alike = [matrix.rows[turn][0] for turn in turns]
    return LineSheet([
        (Span(f"turns {turns[0] + 1:,} to {turns[-1] + 1:,}", Tone.TITLE), Span(" under all policies", Tone.DIM)),
        field("agree in", Span(f"{len(turns):,} turns")),
        field("decisions", *words(*_decision_counts(alike))),
        field("complete", Span(f"{sum(cell.complete for cell in alike):,} of {len(turns):,}, by the verdict of each")),
    ])


class Layout(NamedTuple):
    """The visible policies, and the widths of the columns."""

    first: int
    size: int
    column: int
    file: int = 0
    """The width of a file's name, in columns; 0 if there is only one file."""

    @property
    def label(self) -> int:
        """The number of columns before the first policy."""
        return LABEL + self.file

    @property
    def policies(self) -> range:
        """The visible policies."""
        return range(self.first, self.first + self.size)


def layout(matrix: Matrix, width: int, policy: int) -> Layout:
    """As many policies as fit into `width`, including `policy`."""
    every, file = len(matrix.policies), 0
    if matrix.files:
        file = min(matrix.widest_file + 1, max(FILE, min(FILE_MOST, width - LABEL - every * COLUMN)))
    room = width - LABEL - file
    column = max(COLUMN, min(FULL_WIDTH, room // every))
    count = max(1, min(every, room // column))
    return Layout(max(0, min(policy - count + 1, every - count)), count, column, file)


def column_heads(matrix: Matrix, layout: Layout) -> list[Line]:
    """The column heads: the names of the policies, in two lines if they are broken at the hyphen."""
    shown_names = [matrix.policies[policy].name for policy in layout.policies]
    whole = all(len(name) < layout.column - 1 for name in shown_names)
    split = [(name, "", "") if whole else name.partition("-") for name in shown_names]
    title = f"{'turn':<{LABEL}}{'file' if layout.file else '':<{layout.file}}"
    lines = [
        title + "".join(f" {head + dash:<{layout.column - 1}}" for head, dash, _ in split),
        " " * layout.label + "".join(f" {tail:<{layout.column - 1}}" for _, _, tail in split),
    ]
    return [(Span(line, Tone.KEY),) for line in lines if line.strip()]


def row(matrix: Matrix, turn: int, here: Place | None, layout: Layout) -> Line:
    """The decisions of each policy about a turn; cell `here` is marked."""
    spans = [Span(f"{turn + 1:<{LABEL},}", Tone.DIM)]
    if layout.file:
        name = clip((safe(matrix.file_within(turn, layout.file - 1), Tone.DIM),), layout.file - 1)
        spans += [*name, Span(" " * (layout.file - width_of(name)))]
    for policy in layout.policies:
        cell, chosen = matrix.rows[turn][policy], (turn, policy) == here
        full = _full_words(cell)
        word = full if len(full) <= layout.column - 2 else short_word(cell)
        role = Tone.MATCH if chosen else SEVERITY[cell.decision.severity]
        spans += [Span("▶" if chosen else " ", Tone.HERE), Span(word, role),
                  Span(" " * (layout.column - 1 - len(word)))]
    return tuple(spans)


def _full_words(cell: Cell) -> str:
    return f"{cell.decision.word} x{cell.continuations}" if cell.decision.short == "continued" else cell.decision.word


def policy_at(layout: Layout, column: int) -> int | None:
    """The policy at a column of a row; None if there is none."""
    policy = layout.first + (column - layout.label) // layout.column
    return policy if policy in layout.policies else None


def assignments(matrix: Matrix, place: Place) -> Mapping[str, str]:
    """The assignments that open a cell as a branch of the matrix's run."""
    return {"policy": matrix.policies[place[1]].name}


def step_at(matrix: Matrix, place: Place) -> int:
    """The step at which the branch of a cell opens: the first that differs from strict, else the turn's first."""
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


def next_difference(matrix: Matrix, start: Place, by: int) -> Place | None:
    """The next cell whose policy decides differently from strict, by turns, then by policies; None if none does."""
    columns = len(matrix.policies)
    first = start[0] * columns + start[1] + by
    for at in range(first, len(matrix.rows) * columns if by > 0 else -1, by):
        turn, policy = divmod(at, columns)
        if matrix.rows[turn][policy].decision is not matrix.rows[turn][0].decision:
            return turn, policy
    return None


def sheet(matrix: Matrix, here: Place) -> LineSheet:
    """All details of a cell, with the file of its turn if there are several, and the decisions of other policies."""
    if not matrix.rows:
        return LineSheet([(Span("no turns", Tone.DIM),)])
    turn, column = here
    cell, policy = matrix.rows[turn][column], matrix.policies[column]
    counts = _decision_counts(every[column] for every in matrix.rows)
    return LineSheet([
        (Span(f"turn {turn + 1:,}", Tone.TITLE), Span(" under ", Tone.DIM), Span(policy.name, Tone.TITLE)),
        # The turn's number in its file, as in the table of turns.
        *([field("file", safe(f"turn {matrix.paths[: turn + 1].count(matrix.paths[turn]):,} of {matrix.files[turn]}"))]
          if matrix.files else []),
        field("decision", Span(cell.decision.word, SEVERITY[cell.decision.severity])),
        field("why", safe(cell.why)),
        field("policy", Span(policy.title)),
        *([field("differs", Span("from strict in no step" if cell.step is None else
                                 f"from strict first at step {cell.step + 1:,} of this run"))] if column else []),
        (),
        *_decision_groups(matrix, turn),
        (),
        (Span("all turns", Tone.TITLE), Span(" under ", Tone.DIM), Span(policy.name, Tone.TITLE)),
        field("complete", Span(f"{matrix.complete(column):,} of {count_of(len(matrix.rows), 'turn')}, by the verdict "
                               "of each")),
        field("decisions", *words(*counts)),
        *[(more if at else partial(field, "follows"))(Span(cite, Tone.DIM)) for at, cite in enumerate(policy.cites)],
        (),
        (Span("about these policies", Tone.TITLE),),
        *[(Span(f"{each.name:<{FULL_WIDTH}}", Tone.KEY), Span(each.title)) for each in matrix.policies],
    ])


def _decision_groups(matrix: Matrix, turn: int) -> list[Line]:
    """The decisions of all policies about a turn, grouped by decision."""
    lines: list[Line] = [(Span(f"turn {turn + 1:,} under all", Tone.TITLE),)]
    for who, cell in cells_by_decision(matrix, matrix.rows[turn], by_step=False):
        word = f"{_full_words(cell):<{FULL_WIDTH}}"
        lines += [(Span(word, SEVERITY[cell.decision.severity]), Span(who)),
                  (Span(" " * FULL_WIDTH), safe(cell.why, Tone.DIM))]
    return lines


# -- As text, as CSV and as JSON -------------------------------------------------------------------------------------

SCHEMA = "loop-inspector/policies/1"
WIDTH = 80


def text(matrix: Matrix) -> str:
    """The matrix, then the actions of each policy; consecutive turns in which all agree share a line."""
    return "\n".join(_lines(matrix)) + "\n"


def _lines(matrix: Matrix) -> Iterator[str]:
    if not matrix.rows:
        yield from wrap(f"NOTHING READ  {one_line(matrix.replays[0].case.recording.why_empty)}", WIDTH)
        return
    under = count_of(len(matrix.policies), "policy", "policies")
    yield f"{count_of(len(matrix.rows), 'turn')} under {under}, {matrix.fidelity.value}"
    yield ""
    laid = layout(matrix, WIDTH, 0)._replace(first=0, size=len(matrix.policies), file=0)
    yield from (text_of(line).rstrip() for line in column_heads(matrix, laid))
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
    yield "about these policies"
    for policy in matrix.policies:
        yield from wrap(f"{policy.name}: {policy.title}", WIDTH, initial_indent="  ", subsequent_indent="    ",
                        break_on_hyphens=False)
    for turn in (alike[0] for alike in lines if len(alike) == 1):
        yield ""
        file = f"{one_line(matrix.files[turn])}, " if matrix.files else ""
        yield f"turn {turn + 1:,} ({file}{one_line(matrix.turns[turn].record.id)})"
        for who, cell in cells_by_decision(matrix, matrix.rows[turn], by_step=True):
            parts = "" if cell.step is None else f" (differs from strict from its step {cell.step + 1:,} on)"
            summary = f"{who}: {cell.decision.word} · {one_line(cell.why)}{parts}"
            yield from wrap(summary, WIDTH, initial_indent="  ", subsequent_indent="    ")


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
