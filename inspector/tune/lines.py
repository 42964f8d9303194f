"""What a grid told, as lines: the answer first, then the map, then the smallest budget of each turn and the knee."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.report.lines.glyphs import STATE
from inspector.report.lines.spans import Line, Role, Span, field, joined, more, said
from inspector.settings import INITIAL
from inspector.tune.axes import SHORT
from inspector.tune.grid import End, TurnGrid
from inspector.tune.heat import SIMULATED, WIDTH, heat, key, word
from inspector.tune.run import Tuned
from inspector.tune.smallest import Knee, Point, Smallest, knee, smallest, why_not
from loop_core.trace import Fidelity


def sheet(
    tuned: Tuned, show: str = "outcome", turn: int | None = None, width: int = WIDTH, here: int | None = None
) -> list[Line]:
    """The whole sheet; of one turn where it is named. The map keeps to `width`, other lines are to be wrapped."""
    bend = knee(tuned)
    lines: list[Line] = [headline(tuned, bend), (), *_about(tuned), ()]
    if not tuned.turns:
        return lines
    lines += [*heat(tuned, show, turn, width, here), (),
              (Span(key(show, turn is not None or len(tuned.turns) == 1), Role.DIM),)]
    if any(tuned.simulated):
        lines.append((Span(f"{SIMULATED} stands behind what was simulated", Role.DIM),))
    lines += [(), (Span("the smallest budget that completes each turn", Role.TITLE),), *_smallest(tuned, turn)]
    if turn is None and bend is not None:
        lines += [(), (Span("for all turns", Role.TITLE),), *_knee(tuned, bend)]
    return lines


def headline(tuned: Tuned, bend: Knee | None) -> Line:
    """The answer in one line."""
    if not tuned.turns:
        return (Span("NOTHING TO TUNE", Role.ERROR), Span("  no LLM traffic was found"))
    every = tuned.every
    if bend is None:
        what = "completes a turn" if every else "was run"
        return (Span("NO CELL", Role.WARN), Span(f"  none of {tuned.grid.size:,} {what}"))
    role = Role.OK if bend.enough.completed == every else Role.WARN
    return (Span(f"{bend.enough.completed} OF {every} COMPLETE", role), Span("  at most, from "),
            Span(named(tuned, bend.enough.cell), Role.STRONG), Span(" on"))


def named(tuned: Tuned, cell: int) -> str:
    """A cell as an operator would say it: `attempts=5, max_tokens=512`."""
    values = zip(tuned.grid.axes, tuned.grid.values(cell), strict=True)
    return ", ".join(f"{axis.short}={axis.said(value)}" for axis, value in values)


def _about(tuned: Tuned) -> Iterator[Line]:
    grid = tuned.grid
    for number, axis in enumerate(grid.axes):
        values = [axis.said(value) for value in axis.values]
        told = " ".join(values) if len(values) <= 12 else f"{' '.join(values[:5])} … {' '.join(values[-3:])}"
        span = Span(f"{axis.short}: {told}")
        yield field("grid", span) if number == 0 else more(span)
    yield field("size", *joined([
        (Span(_many(grid.size, "cell")),), (Span(_many(len(tuned.turns), "turn")),),
        (Span(f"policy {grid.base.policy.name}"),)]))
    yield field("fidelity", *_fidelity(tuned))
    if INITIAL in grid.names and not grid.base.simulate:
        yield more(Span("over a recording, max_tokens changes only the token cap derived from it", Role.DIM))
    if tuned.cancelled:
        yield field("cancelled", Span(f"{tuned.done:,} of {tuned.parts:,} parts were run; the rest is left blank",
                                      Role.WARN))


def _fidelity(tuned: Tuned) -> Line:
    run = [cell for cell in range(tuned.grid.size) if tuned.looked_at[cell]]
    simulated = sum(map(bool, tuned.simulated))
    ended = sum(map(bool, tuned.unrecorded))
    parts = [(Span(f"{Fidelity.RECORDED} in {_many(len(run) - simulated, 'cell')}"),)]
    if simulated:
        parts.append((Span(f"{Fidelity.SIMULATED} in {simulated:,}"),))
    if ended:
        parts.append((Span(f"the recording ends first in {ended:,}: their spend is a lower bound", Role.WARN),))
    return joined(parts)


# -- smallest --------------------------------------------------------------------------------------------------------


def _smallest(tuned: Tuned, turn: int | None) -> Iterator[Line]:
    numbers = range(len(tuned.turns)) if turn is None else (turn,)
    steady = {number for number in numbers if turn is None and _completes(tuned.turns[number])}
    found = {number: smallest(tuned, number) for number in numbers if number not in steady}
    for each in found.values():
        if each is not None:
            yield from smallest_lines(tuned, each)
    yield from _counted(len(steady), [each for each in found.values() if each is None])


def _completes(turn: TurnGrid) -> bool:
    return turn.steady and turn.ends[0].completed


def _counted(steady: int, undone: Sequence[object]) -> Iterator[Line]:
    if steady:
        yield (Span(f"{_many(steady, 'turn')} complete in every cell", Role.DIM),)
    if undone:
        yield (Span(f"{_many(len(undone), 'turn')} not run", Role.DIM),)


def smallest_lines(tuned: Tuned, found: Smallest) -> Iterator[Line]:
    """The smallest budget of one turn, or why there is none."""
    name = f"turn {found.turn + 1}"
    glyph, role = STATE[found.end.state]
    who = said(f"  ({tuned.turns[found.turn].id})", Role.DIM, 24)
    if found.cell is None:
        yield field(name, Span(f"{glyph} ", role), Span(why_not(tuned, found.end), role), who)
        yield more(Span("in the largest cell: ", Role.DIM), *spent_line(found.end))
        return
    yield field(name, Span(f"{glyph} ", role), Span(named(tuned, found.cell), Role.STRONG), who)
    yield more(*spent_line(found.end))
    if len(tuned.grid.axes) > 1:
        told = zip(tuned.grid.axes, found.by_axis, strict=True)
        least = ", ".join(f"{axis.short} {axis.said(value)}" for axis, value in told)
        yield more(Span("least of each: ", Role.DIM), Span(least))
    exact = [(SHORT[name], least) for name, least in found.end.needs if name in SHORT]
    if exact:
        yield more(Span("to the unit: ", Role.DIM), Span(", ".join(f"{short} {least:,}" for short, least in exact)))


def spent_line(end: End) -> Line:
    """What a turn spent, and how far that can be trusted."""
    spent = end.spent
    assumed = f" ({spent.tokens_assumed:,} assumed)" if spent.tokens_assumed else ""
    return joined([
        (Span(_many(end.segments, "segment")),),
        (Span(f"{spent.tokens:,} tokens{assumed}"),), (Span(f"{spent.chars:,} chars"),), (Span(end.fidelity),)])


# -- all turns -------------------------------------------------------------------------------------------------------


def _knee(tuned: Tuned, bend: Knee) -> Iterator[Line]:
    yield field("enough", *_point(tuned, bend.enough))
    yield more(Span("no cell of the grid completes more", Role.DIM))
    if bend.knee != bend.enough:
        yield field("knee", *_point(tuned, bend.knee))
        rest, cost = bend.enough.completed - bend.knee.completed, bend.enough.tokens - bend.knee.tokens
        yield more(Span(f"{_many(rest, 'further turn')} for {cost:,} tokens more", Role.DIM))


def _point(tuned: Tuned, point: Point) -> Line:
    return (Span(named(tuned, point.cell), Role.STRONG), Span("  "), *joined([
        (Span(f"{point.completed:,} of {tuned.every:,} complete"),), (Span(f"{point.tokens:,} tokens"),)]))


def cell_lines(tuned: Tuned, cell: int) -> Iterator[Line]:
    """One cell: how each turn ends in it; turns that complete in every cell are counted."""
    yield (Span(named(tuned, cell), Role.TITLE),)
    ends = [(number, turn, turn.end(cell)) for number, turn in enumerate(tuned.turns, 1)]
    for number, turn, end in ends:
        if end is not None and not _completes(turn):
            glyph, role = STATE[end.state]
            yield field(f"turn {number}", Span(f"{glyph} {word(end)}  ", role), *spent_line(end))
    yield from _counted(sum(_completes(turn) for turn in tuned.turns), [end for *_, end in ends if end is None])


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"
