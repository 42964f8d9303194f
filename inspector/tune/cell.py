"""One cell of a grid as lines: what it does for all turns together, then how each ends in it; or all about one turn."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.report.lines.glyphs import STATE
from inspector.report.lines.spans import Line, Role, Span, field, joined, more, said
from inspector.report.lines.spent import doubts
from inspector.tune.axes import SHORT
from inspector.tune.grid import End
from inspector.tune.heat import word
from inspector.tune.lines import completes, counted, many, named, spent_line
from inspector.tune.run import Tuned
from loop_core.trace import Fidelity


def cell_sheet(tuned: Tuned, cell: int, turn: int | None = None, most: int | None = None) -> list[Line]:
    """A cell in full; of `most` turns at most."""
    title: Line = (Span(named(tuned, cell), Role.TITLE),)
    if turn is not None or len(tuned.turns) == 1:
        return [title, *_one(tuned, cell, turn or 0)]
    if not tuned.looked_at[cell]:
        return [title, (Span("not run", Role.WARN),)]
    return [title, *_all(tuned, cell), (), *cell_lines(tuned, cell, most)]


def cell_lines(tuned: Tuned, cell: int, most: int | None = None) -> Iterator[Line]:
    """How each turn ends in a cell; turns that complete in every cell are counted."""
    steady = sum(map(completes, tuned.turns))
    told = [(number, turn.end(cell)) for number, turn in enumerate(tuned.turns, 1) if not completes(turn)]
    ends = [(number, end) for number, end in told if end is not None]
    for number, end in ends[:most]:
        glyph, role = STATE[end.looks]
        yield field(f"turn {number}", Span(f"{glyph} {word(end)}  ", role), *spent_line(end))
    yield from counted(steady, len(told) - len(ends), len(ends) - len(ends[:most]))


def _all(tuned: Tuned, cell: int) -> Iterator[Line]:
    run, done = tuned.looked_at[cell], tuned.completed[cell]
    yield field("complete", Span(f"{done:,} of {many(run, 'turn')}", Role.OK if done == run else Role.WARN))
    if run < len(tuned.turns):
        yield more(Span(f"{many(len(tuned.turns) - run, 'further turn')} not run", Role.WARN))
    yield field("spent", *joined([
        (Span(many(tuned.segments[cell], "segment")),), (Span(many(tuned.tokens[cell], "output token")),),
        (Span(many(tuned.requests[cell], "request")),)]))
    simulated = tuned.simulated[cell]
    recorded = run - simulated
    yield field("fidelity", *joined([
        (Span(f"{name} in {many(count, 'turn')}"),)
        for name, count in ((Fidelity.RECORDED, recorded), (Fidelity.SIMULATED, simulated)) if count]))


def _one(tuned: Tuned, cell: int, turn: int) -> Iterator[Line]:
    seen = tuned.turns[turn]
    yield field(f"turn {turn + 1}", said(seen.id, width=80))
    end = seen.end(cell)
    if end is None:
        yield field("ends in", Span("not run", Role.WARN))
        return
    glyph, role = STATE[end.looks]
    yield field("ends in", Span(f"{glyph} {end.state.value}", role),
                *((Span(f"  {end.terminal}"),) if end.terminal else ()))
    if end.cut_unseen:
        yield more(Span("the budget cut an answer over which this server says that it is finished", Role.WARN))
    if end.limit:
        yield more(Span(f"stopped by {SHORT.get(end.limit, end.limit)}", Role.WARN))
    yield from _spent(end)
    yield field("fidelity", Span(end.fidelity))


def _spent(end: End) -> Iterator[Line]:
    spent = end.spent
    yield field("segments", Span(f"{end.segments:,}"))
    yield field("output", Span(f"{many(spent.output_tokens, 'token')}, {spent.output_chars:,} characters"),
                *(Span(f"  {doubt}", Role.DIM) for doubt in doubts(spent)))
    yield field("of cut answers", Span(f"{many(spent.continuation_tokens, 'token')}, "
                                       f"{spent.continuation_chars:,} characters"),
                Span("  counted by the bounds of continuations", Role.DIM))
    yield field("requests", Span(f"{spent.requests:,}"),
                Span(f"  {many(spent.continuations, 'continuation')}, {many(spent.repairs, 'repair')}", Role.DIM))
