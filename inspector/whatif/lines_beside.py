"""Two runs side by side as lines: a row for a step of each, and below it how the merged texts of the turn differ."""

from __future__ import annotations

from inspector.report.facts import View
from inspector.report.lines import status
from inspector.report.lines.spans import Line, Measure, Role, Span, cells, clip, said, width_of
from inspector.report.lines.steps import detail, glyph_of
from inspector.whatif.alignment import Row
from inspector.whatif.branch import Branch
from inspector.whatif.lines import ending, ending_role, text_diff


def head(left: str, right: str, width: int, measure: Measure = cells) -> Line:
    """The names of the two runs above their columns."""
    return _columns((said(left, Role.TITLE),), Span("   "), (said(right, Role.TITLE),), width, measure)


def row_line(made: Branch, row: Row, here: bool, width: int, measure: Measure = cells) -> Line:
    """A step of each run; `≠` between them where they are not the same."""
    between = Span(" │ ", Role.RULE) if row.same else Span(" ≠ ", Role.ERROR)
    mark = Span("▶" if here else " ", Role.HERE)
    left, right = _step(made.original, row.left, row.same), _step(made.view, row.right, row.same)
    return (mark, *_columns(left, between, right, width - 1, measure))


def _columns(left: Line, between: Span, right: Line, width: int, measure: Measure) -> Line:
    half = max(8, (width - 3) // 2)
    left = clip(left, half, measure)
    return (*left, Span(" " * max(0, half - width_of(left, measure))), between, *clip(right, half, measure))


def _step(view: View, index: int | None, same: bool) -> Line:
    if index is None:
        return (Span("none", Role.DIM),)
    step = view.steps[index]
    glyph, tone = glyph_of(step)
    fidelity = () if step.fidelity.value == "RECORDED" else (Span(" "), status.fidelity(step))
    return (Span(f"{index + 1:>4} ", Role.DIM), Span(f"{glyph} ", tone),
            Span(f"{step.state.value} ", Role.PLAIN if same else Role.STRONG), *detail(step), *fidelity)


def texts(made: Branch, row: Row) -> list[Line]:
    """How the turn of a row ends in both runs, and how their merged texts differ."""
    index = made.original.replay.turn_at(row.left) if row.left is not None else made.view.replay.turn_at(row.right or 0)
    old, new = made.original.turns[index], made.view.turns[index]
    ends: Line = (
        Span(f"turn {index + 1}  ", Role.TITLE), Span(ending(old), ending_role(old)),
        *(() if ending(old) == ending(new) else (Span(" → ", Role.DIM), Span(ending(new), ending_role(new)))),
    )
    return [ends, *text_diff(old.merged.text, new.merged.text)]
