"""The policy matrix as text, 80 columns wide, and as one JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from inspector.report.inert import one_line
from inspector.whatif.policies import DECISIONS, Cell, Matrix

SCHEMA = "loop-inspector/policies/1"
WIDTH = 80
COLUMN = 10


def text(made: Matrix) -> str:
    """The matrix, then a line for every cell that decides otherwise than strict."""
    return "\n".join(_lines(made)) + "\n"


def _lines(made: Matrix) -> Iterator[str]:
    if not made.rows:
        yield "NOTHING READ  no LLM traffic was found"
        return
    turns = "turn" if len(made.rows) == 1 else "turns"
    yield f"{len(made.rows)} {turns} under {len(made.policies)} policies, {made.fidelity.value}"
    yield ""
    yield from heading(made)
    for number, row in enumerate(made.rows, start=1):
        yield f"{number:<6,}" + "".join(f"{shown(cell):<{COLUMN}}" for cell in row).rstrip()
    used = {cell.decision.word: cell.decision for row in made.rows for cell in row}
    if any(word != each.short for word, each in used.items()):
        yield ""
        legend = ", ".join(f"{d.short}: {d.word}" for d in DECISIONS if d.word in used and d.short != d.word)
        yield from wrap(legend, WIDTH)
    for number, (turn, row) in enumerate(zip(made.turns, made.rows, strict=True), start=1):
        yield ""
        yield f"turn {number} ({one_line(turn.record.id)})"
        for names, cell in told(made, row):
            said = f"{names}: {cell.decision.word} · {one_line(cell.why)}{_parts(cell)}"
            yield from wrap(said, WIDTH, initial_indent="  ", subsequent_indent="    ")


def heading(made: Matrix) -> list[str]:
    """The names of the policies over their columns, broken at the hyphen."""
    names = [policy.name.partition("-") for policy in made.policies]
    first = "turn  " + "".join(f"{head + dash:<{COLUMN}}" for head, dash, _ in names)
    second = " " * 6 + "".join(f"{tail:<{COLUMN}}" for _, _, tail in names)
    return [line.rstrip() for line in (first, second) if line.strip()]


def shown(cell: Cell) -> str:
    """The word of a cell, short enough for a column."""
    if cell.decision.short == "continued":
        return f"cont. x{cell.continuations}"
    return cell.decision.short


def told(made: Matrix, row: tuple[Cell, ...]) -> list[tuple[str, Cell]]:
    """The cells of a row, those that say the same in one: the names of the policies, and what they did."""
    found: dict[tuple[str, str, int | None], tuple[list[str], Cell]] = {}
    for policy, cell in zip(made.policies, row, strict=True):
        found.setdefault((cell.decision.word, cell.why, cell.step), ([], cell))[0].append(policy.name)
    return [(", ".join(names), cell) for names, cell in found.values()]


def _parts(cell: Cell) -> str:
    return "" if cell.step is None else f" (parts from strict at its step {cell.step + 1})"


def values(made: Matrix) -> dict[str, Any]:
    """The matrix as plain values, schema `loop-inspector/policies/1`."""
    return {
        "schema": SCHEMA,
        "fidelity": made.fidelity.value,
        "policies": [
            {
                "name": policy.name,
                "title": policy.title,
                "cites": list(policy.cites),
                "decisions": dict(Counter(row[column].decision.word for row in made.rows)),
            }
            for column, policy in enumerate(made.policies)
        ],
        "turns": [
            {
                "id": turn.record.id,
                "responses": [link.index for link in turn.record.links],
                "decisions": [
                    {
                        "policy": policy.name,
                        "decision": cell.decision.word,
                        "severity": cell.decision.severity.value,
                        "why": cell.why,
                        "continuations": cell.continuations,
                        "first_difference": None if cell.step is None else cell.step + 1,
                    }
                    for policy, cell in zip(made.policies, row, strict=True)
                ],
            }
            for turn, row in zip(made.turns, made.rows, strict=True)
        ],
    }
