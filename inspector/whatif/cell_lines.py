"""Lines about one cell of a grid: the end of every turn, or all details of one turn."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.report.lines.glyphs import STATE
from inspector.report.lines.header import doubts, output
from inspector.report.lines.spans import Line, Span, Tone, count_of, field, more, safe, words
from inspector.report.lines.steps import reason_of_end
from inspector.whatif.grid import Axis, End, TurnGrid
from inspector.whatif.grid_run import TunedGrid
from inspector.whatif.heat import end_word, mark_of
from loop_core.turn.limits import SHORT_NAMES
from loop_core.turn.trace import Fidelity

GUESS = "a guess"
"""The word for an end that rests on a simulated answer."""


def cell_name(tuning: TunedGrid, cell: int, budget: int | None = None) -> str:
    """A cell as an operator writes it: `attempts=5, max_tokens=512`; with `budget` as its max_tokens, if given."""
    return ", ".join(map(Axis.assignment, tuning.grid.axes, tuning.grid.limits(cell, budget).values()))


def completes(turn: TurnGrid) -> bool:
    """Whether a turn completes in every cell."""
    return turn.steady and turn.ends[0].complete


def turn_counts(steady: int, undone: int, remaining: int) -> Iterator[Line]:
    """Lines about turns that are only counted: those that complete in every cell, those not run, those left out."""
    rows = (steady, f"{'completes' if steady == 1 else 'complete'} in every cell"), (undone, "not run"), (
        remaining, "more, one at a time")
    for count, what in rows:
        if count:
            yield (Span(f"{count_of(count, 'turn')} {what}", Tone.DIM),)


def turn_file(tuning: TunedGrid, number: int) -> str:
    """The file of a turn if there are several."""
    return tuning.files[tuning.turns[number].path] if len(tuning.files) > 1 else ""


def spent_line(end: End) -> Line:
    """The spend of a turn, and its fidelity."""
    return words(count_of(end.segments, "segment"), output(end.spend), count_of(end.spend.requests, "request"),
                 end.fidelity)


def cell_sheet(tuning: TunedGrid, cell: int, turn: int | None, most: int | None) -> list[Line]:
    """All details of a cell; at most `most` turns."""
    title: Line = (Span(cell_name(tuning, cell), Tone.TITLE),)
    single = tuning.single_turn(turn)
    if single is not None:
        return [title, *_cell_of_one(tuning, cell, single)]
    if not tuning.run_counts[cell]:
        return [title, (Span("not run", Tone.WARN),)]
    return [title, *_cell_of_all(tuning, cell), (), *cell_lines(tuning, cell, most)]


def cell_lines(tuning: TunedGrid, cell: int, most: int | None = None) -> Iterator[Line]:
    """The end of each turn in a cell; turns that complete in every cell are only counted."""
    steady = sum(map(completes, tuning.turns))
    ends = [(number, end) for number, turn in enumerate(tuning.turns, 1)
            if not completes(turn) and (end := turn.end(cell)) is not None]
    for number, end in ends[:most]:
        glyph, role = mark_of(end)
        yield field(f"turn {number:,}", Span(f"{glyph} ", role), Span(f"{end_word(end)}  "), *spent_line(end))
    yield from turn_counts(steady, len(tuning.turns) - steady - len(ends), len(ends) - len(ends[:most]))


def _cell_of_all(tuning: TunedGrid, cell: int) -> Iterator[Line]:
    run, done = tuning.run_counts[cell], tuning.completed[cell]
    yield field("complete", Span(f"{done:,} of {count_of(run, 'turn')}", Tone.OK if done == run else Tone.WARN))
    if run < len(tuning.turns):
        yield more(Span(f"{count_of(len(tuning.turns) - run, 'further turn')} not run", Tone.WARN))
    yield field("spent", *words(count_of(tuning.segments[cell], "segment"),
                                 count_of(tuning.tokens[cell], "output token"),
                                 count_of(tuning.requests[cell], "request")))
    simulated = tuning.simulated[cell]
    by_fidelity = (Fidelity.RECORDED, run - simulated), (Fidelity.SIMULATED, simulated)
    yield field("fidelity", *words(*(f"{name} in {count_of(count, 'turn')}" for name, count in by_fidelity if count)))


def _cell_of_one(tuning: TunedGrid, cell: int, turn: int) -> Iterator[Line]:
    turn_grid = tuning.turns[turn]
    file = turn_file(tuning, turn)
    yield field("turn", safe(f"{turn + 1:,} of {len(tuning.turns):,}{f' · {file}' if file else ''}", width=80))
    end = turn_grid.end(cell)
    if end is None:
        yield field("ends in", Span("not run", Tone.WARN))
        return
    glyph, role = STATE[end.looks]
    reason = reason_of_end(end.state, end.terminal)
    yield field("ends in", Span(f"{glyph} {end.state.value}", role), *((Span(f"  {reason}"),) if reason else ()))
    if end.cut_unseen:
        yield more(Span("the budget cut an answer over which this server says that it is finished", Tone.WARN))
    if end.limit:
        yield more(Span(f"stopped by {SHORT_NAMES.get(end.limit, end.limit)}", Tone.WARN))
    yield field("verdict", Span(end.verdict, Tone.OK if end.complete else Tone.WARN))
    spent = end.spend
    yield field("segments", Span(f"{end.segments:,}"))
    yield field("output", Span(f"{count_of(spent.output_tokens, 'token')}, {spent.output_chars:,} characters"),
                *(Span(f"  {doubt}", Tone.DIM) for doubt in doubts(spent)))
    yield field("of cut answers", Span(f"{count_of(spent.continuation_tokens, 'token')}, "
                                       f"{spent.continuation_chars:,} characters"),
                Span("  counted by the bounds of continuations", Tone.DIM))
    yield field("requests", Span(f"{spent.requests:,}"),
                Span(f"  of them {count_of(spent.continuations, 'continuation')}, "
                     f"{count_of(spent.repairs, 'repair')}", Tone.DIM))
    guess = Span(f": {GUESS}, made up from the recorded text", Tone.DIM)
    yield field("fidelity", Span(end.fidelity), *((guess,) if end.simulated else ()))
