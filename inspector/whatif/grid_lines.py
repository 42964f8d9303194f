"""The results of a grid as lines: the conclusion first, then the map, the smallest budget of each turn, and the knee.

Further down: one cell of a grid as lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from inspector.config.settings import INITIAL
from inspector.report.lines.glyphs import STATE
from inspector.report.lines.header import doubts, output
from inspector.report.lines.spans import Line, Span, Tone, count_of, field, join_groups, more, safe
from inspector.report.lines.steps import reason_of_end
from inspector.whatif.grid import SHORT, End, TurnGrid
from inspector.whatif.grid_run import TunedGrid
from inspector.whatif.heat import SIMULATED, heat, key, word
from inspector.whatif.smallest import Edge, Knee, SmallestLimits, cost, every_larger, smallest, why_not
from loop_core.turn.trace import Fidelity


def sheet(tuning: TunedGrid, bend: Knee | None, show: str = "outcome") -> list[Line]:
    """The whole sheet. The map keeps to its width, other lines are to be wrapped."""
    lines: list[Line] = [headline(tuning, bend), (), *about(tuning), ()]
    if not tuning.turns:
        return lines
    lines += [*heat(tuning, show), (), (Span(key(show, len(tuning.turns) == 1), Tone.DIM),)]
    if any(tuning.simulated):
        lines.append((Span(f"{SIMULATED} stands behind what was simulated", Tone.DIM),))
    return [*lines, (), *answers(tuning, bend)]


def answers(tuning: TunedGrid, bend: Knee | None, turn: int | None = None, most: int | None = None) -> list[Line]:
    """The smallest budget of each turn, or of one, and the knee for all; at most `most` turns."""
    lines: list[Line] = [(Span("the smallest budget that completes each turn", Tone.TITLE),
                          Span(": for the fewest output tokens", Tone.DIM)),
                         *_smallest(tuning, turn, most)]
    if turn is None and bend is not None:
        lines += [(), (Span("for all turns", Tone.TITLE),), *_knee(tuning, bend)]
    return lines


def headline(tuning: TunedGrid, bend: Knee | None) -> Line:
    """The conclusion in one line."""
    if not tuning.turns:
        return (Span("NOTHING TO TUNE", Tone.ERROR), Span("  no LLM traffic was found"))
    every = tuning.every
    if bend is None:
        if not every:
            return (Span("NO CELL", Tone.WARN), Span(f"  none of {tuning.grid.size:,} was run"))
        whys = Counter(why_not(tuning, found.end) for turn in range(len(tuning.turns))
                       if (found := smallest(tuning, turn)) is not None)
        why, count = whys.most_common(1)[0]
        of = "" if count == len(tuning.turns) else f" (in {count:,} of {count_of(len(tuning.turns), 'turn')})"
        return (Span("NONE COMPLETES", Tone.WARN), Span(f"  {why}{of}"))
    role = Tone.OK if bend.enough.completed == every else Tone.WARN
    return (Span(f"{bend.enough.completed} OF {every} COMPLETE", role), Span("  at most, "),
            *reach(tuning, bend.enough.cell, bend.budget),
            Span(f", for {count_of(_tokens(bend), 'output token')}{FEWEST}"))


FEWEST = ", the fewest"
"""What a smallest budget is smallest by, behind its output tokens."""


def reach(tuning: TunedGrid, cell: int, budget: int | None, turn: int | None = None) -> Line:
    """A smallest budget, and whether every larger one of the grid completes as much, which is not so for each."""
    name = Span(cell_name(tuning, cell, budget), Tone.STRONG), *between(tuning, cell, budget)
    if every_larger(tuning, cell, turn):
        return (Span("from "), *name, Span(" on"))
    return (Span("with "), *name, Span(", but not with every larger one"))


def cell_name(tuning: TunedGrid, cell: int, budget: int | None = None) -> str:
    """A cell in an operator's words: `attempts=5, max_tokens=512`; with another max_tokens where one is given."""
    shown = {INITIAL: budget} if budget is not None else {}
    values = zip(tuning.grid.axes, tuning.grid.values(cell), strict=True)
    return ", ".join(f"{axis.short}={axis.value_text(shown.get(axis.name, value))}" for axis, value in values)


def between(tuning: TunedGrid, cell: int, budget: int | None) -> Line:
    """A note if a max_tokens lies between the values of its axis: the map shows it in the next larger one."""
    cap = dict(zip(tuning.grid.names, tuning.grid.values(cell), strict=True)).get(INITIAL)
    return () if budget is None or cap in (None, budget) else (Span(f" (column {cap:,})", Tone.DIM),)


def about(tuning: TunedGrid) -> Iterator[Line]:
    """The parameters of the grid: the axes, the size, and how far the results can be trusted."""
    grid = tuning.grid
    for number, axis in enumerate(grid.axes):
        values = [axis.value_text(value) for value in axis.values]
        told = " ".join(values) if len(values) <= 12 else f"{' '.join(values[:5])} … {' '.join(values[-3:])}"
        span = Span(f"{axis.short}: {told}")
        yield field("grid", span) if number == 0 else more(span)
    yield field("size", *join_groups([
        (Span(count_of(grid.size, "cell")),), (Span(count_of(len(tuning.turns), "turn")),),
        (Span(f"policy {grid.base.policy.name}"),)]))
    yield field("fidelity", *fidelity(tuning))
    if INITIAL in grid.names and not grid.base.simulate:
        yield more(Span("over a recording, max_tokens changes nothing", Tone.DIM))
    if tuning.cancelled:
        yield field("cancelled", Span(f"{tuning.done:,} of {tuning.parts:,} parts were run; the rest is left blank",
                                      Tone.WARN))


def fidelity(tuning: TunedGrid) -> Line:
    """How many cells rest on recorded answers, and how many on simulated ones."""
    run = [cell for cell in range(tuning.grid.size) if tuning.looked_at[cell]]
    simulated = sum(map(bool, tuning.simulated))
    ended = sum(map(bool, tuning.unrecorded))
    parts = [(Span(f"{Fidelity.RECORDED} in {count_of(len(run) - simulated, 'cell')}"),)]
    if simulated:
        parts.append((Span(f"{Fidelity.SIMULATED} in {simulated:,}"),))
    if ended:
        whose = "its" if ended == 1 else "their"
        parts.append((Span(f"the recording ends first in {ended:,}: {whose} spend is a lower bound", Tone.WARN),))
    return join_groups(parts)


# -- smallest --------------------------------------------------------------------------------------------------------


def _smallest(tuning: TunedGrid, turn: int | None, most: int | None) -> Iterator[Line]:
    numbers = range(len(tuning.turns)) if turn is None else (turn,)
    steady = {number for number in numbers if turn is None and completes(tuning.turns[number])}
    told = [number for number in numbers if number not in steady][:most]
    found = [smallest(tuning, number) for number in told]
    for each in found:
        if each is not None:
            yield from smallest_lines(tuning, each)
    yield from turn_counts(len(steady), found.count(None), len(numbers) - len(steady) - len(told))


def completes(turn: TurnGrid) -> bool:
    """Whether a turn completes in every cell."""
    return turn.steady and turn.ends[0].complete


def turn_counts(steady: int, undone: int, remaining: int) -> Iterator[Line]:
    """Turns that are only counted: those that complete in every cell, those not run, those left out."""
    told = (steady, f"{'completes' if steady == 1 else 'complete'} in every cell"), (undone, "not run"), (
        remaining, "more, one at a time")
    for count, what in told:
        if count:
            yield (Span(f"{count_of(count, 'turn')} {what}", Tone.DIM),)


def turn_name(tuning: TunedGrid, number: int) -> str:
    """What a turn is called beside its number: its id, and its file where there are several."""
    turn = tuning.turns[number]
    several = tuning.turns[0].path != tuning.turns[-1].path  # turns stand in the order of their files
    return f"{turn.path.rpartition('/')[2]}, {turn.id}" if several else turn.id


def smallest_lines(tuning: TunedGrid, limits: SmallestLimits) -> Iterator[Line]:
    """The smallest budget of one turn, or the reason why there is none."""
    name = f"turn {limits.turn + 1}"
    glyph, role = STATE[limits.end.looks]
    who = safe(f"  ({turn_name(tuning, limits.turn)})", Tone.DIM, 60)
    if limits.cell is None:
        yield field(name, Span(f"{glyph} ", role), Span(why_not(tuning, limits.end)), who)
        known = spent_line(limits.end) if limits.end.segments else (Span("no answer to its first request is known"),)
        yield more(Span("in the largest cell: ", Tone.DIM), *known)
        return
    budget = None if limits.edge is None else limits.edge.budget
    yield field(name, Span(f"{glyph} ", role), Span(cell_name(tuning, limits.cell, budget), Tone.STRONG), who)
    yield more(*spent_line(limits.at_edge))
    lower = [(axis, value) for axis, value, own in zip(
        tuning.grid.axes, limits.by_axis, tuning.grid.values(limits.cell), strict=True) if value != own]
    if lower:
        least = " or ".join(f"{axis.short}={axis.value_text(value)}" for axis, value in lower)
        yield more(Span("completes also, for no fewer output tokens, with: ", Tone.DIM), Span(least))
    exact = [f"{SHORT.get(name, name)} {least:,}" for name, least in limits.limits.items()]
    if exact:
        yield more(Span("to the unit: ", Tone.DIM), Span(", ".join(exact)))
    if limits.edge is not None:
        yield more(Span("grain: ", Tone.DIM), *grain(limits.edge))


def grain(edge: Edge, with_name: bool = False) -> Line:
    """How precisely the smallest max_tokens is known, and the effect of one token less on the first turn that it harms,
    `with_name` if there are others."""
    below = ""
    for place in edge.worse[:1]:
        who = f"turn {edge.turns[place] + 1}" if with_name else "it"
        rest = len(edge.worse) - 1
        others = f", and {count_of(rest, 'further turn')} {'does' if rest == 1 else 'do'} worse" if rest else ""
        below = f"; with {edge.budget - 1:,} {who} {_does(edge.below[place])}{others}"
    return (Span(f"max_tokens {edge.budget:,} {edge.grain}"), Span(below, Tone.DIM))


def _does(end: End) -> str:
    spent = f"{count_of(end.spend.output_tokens, 'output token')} in {count_of(end.spend.requests, 'request')}"
    return f"completes for {spent}" if end.complete else f"ends as {word(end)} after {spent}"


def spent_line(end: End) -> Line:
    """The spend of a turn, and how far it can be trusted."""
    return join_groups([
        (Span(count_of(end.segments, "segment")),), (Span(output(end.spend)),),
        (Span(count_of(end.spend.requests, "request")),), (Span(end.fidelity),)])


# -- all turns -------------------------------------------------------------------------------------------------------


def _knee(tuning: TunedGrid, bend: Knee) -> Iterator[Line]:
    completed, edge, tokens = bend.enough.completed, bend.edge, _tokens(bend)
    yield field("enough", *_point_words(tuning, bend.enough.cell, completed, tokens, bend.budget))
    yield more(Span("no cell of the grid completes more, or as many for fewer output tokens", Tone.DIM))
    if edge is not None:
        yield more(Span("grain: ", Tone.DIM), *grain(edge, len(edge.turns) > 1))
    if bend.knee != bend.enough:
        yield field("knee", *_point_words(tuning, bend.knee.cell, bend.knee.completed, bend.knee.tokens))
        rest, more_tokens = completed - bend.knee.completed, tokens - bend.knee.tokens
        yield more(Span(f"{count_of(rest, 'further turn')} for {more_tokens:,} output tokens more", Tone.DIM))


def _tokens(bend: Knee) -> int:
    """What is spent where it is enough, with the smallest max_tokens."""
    return bend.enough.tokens if bend.edge is None else cost(bend.edge.ends)[0]


def _point_words(tuning: TunedGrid, cell: int, completed: int, tokens: int, budget: int | None = None) -> Line:
    return (Span(cell_name(tuning, cell, budget), Tone.STRONG), Span("  "), *join_groups([
        (Span(f"{completed:,} of {tuning.every:,} complete"),), (Span(count_of(tokens, "output token")),)]))


# -- One cell of a grid as lines -------------------------------------------------------------------------------------
# What it does for all turns together, then how each ends in it; or all about one turn.


def cell_sheet(tuning: TunedGrid, cell: int, turn: int | None = None, most: int | None = None) -> list[Line]:
    """All details of a cell; at most `most` turns."""
    title: Line = (Span(cell_name(tuning, cell), Tone.TITLE),)
    if turn is not None or len(tuning.turns) == 1:
        return [title, *_cell_of_one(tuning, cell, turn or 0)]
    if not tuning.looked_at[cell]:
        return [title, (Span("not run", Tone.WARN),)]
    return [title, *_cell_of_all(tuning, cell), (), *cell_lines(tuning, cell, most)]


def cell_lines(tuning: TunedGrid, cell: int, most: int | None = None) -> Iterator[Line]:
    """The end of each turn in a cell; turns that complete in every cell are only counted."""
    steady = sum(map(completes, tuning.turns))
    told = [(number, turn.end(cell)) for number, turn in enumerate(tuning.turns, 1) if not completes(turn)]
    ends = [(number, end) for number, end in told if end is not None]
    for number, end in ends[:most]:
        glyph, role = STATE[end.looks]
        yield field(f"turn {number}", Span(f"{glyph} ", role), Span(f"{word(end)}  "), *spent_line(end))
    yield from turn_counts(steady, len(told) - len(ends), len(ends) - len(ends[:most]))


def _cell_of_all(tuning: TunedGrid, cell: int) -> Iterator[Line]:
    run, done = tuning.looked_at[cell], tuning.completed[cell]
    yield field("complete", Span(f"{done:,} of {count_of(run, 'turn')}", Tone.OK if done == run else Tone.WARN))
    if run < len(tuning.turns):
        yield more(Span(f"{count_of(len(tuning.turns) - run, 'further turn')} not run", Tone.WARN))
    yield field("spent", *join_groups([
        (Span(count_of(tuning.segments[cell], "segment")),), (Span(count_of(tuning.tokens[cell], "output token")),),
        (Span(count_of(tuning.requests[cell], "request")),)]))
    simulated = tuning.simulated[cell]
    recorded = run - simulated
    yield field("fidelity", *join_groups([
        (Span(f"{name} in {count_of(count, 'turn')}"),)
        for name, count in ((Fidelity.RECORDED, recorded), (Fidelity.SIMULATED, simulated)) if count]))


def _cell_of_one(tuning: TunedGrid, cell: int, turn: int) -> Iterator[Line]:
    seen = tuning.turns[turn]
    yield field(f"turn {turn + 1}", safe(turn_name(tuning, turn), width=80))
    end = seen.end(cell)
    if end is None:
        yield field("ends in", Span("not run", Tone.WARN))
        return
    glyph, role = STATE[end.looks]
    reason = reason_of_end(end.state, end.terminal)
    yield field("ends in", Span(f"{glyph} {end.state.value}", role),
                *((Span(f"  {reason}"),) if reason else ()))
    if end.cut_unseen:
        yield more(Span("the budget cut an answer over which this server says that it is finished", Tone.WARN))
    if end.limit:
        yield more(Span(f"stopped by {SHORT.get(end.limit, end.limit)}", Tone.WARN))
    yield field("verdict", Span(end.verdict, Tone.OK if end.complete else Tone.WARN))
    yield from _spent(end)
    yield field("fidelity", Span(end.fidelity))


def _spent(end: End) -> Iterator[Line]:
    spent = end.spend
    yield field("segments", Span(f"{end.segments:,}"))
    yield field("output", Span(f"{count_of(spent.output_tokens, 'token')}, {spent.output_chars:,} characters"),
                *(Span(f"  {doubt}", Tone.DIM) for doubt in doubts(spent)))
    yield field("of cut answers", Span(f"{count_of(spent.continuation_tokens, 'token')}, "
                                       f"{spent.continuation_chars:,} characters"),
                Span("  counted by the bounds of continuations", Tone.DIM))
    yield field("requests", Span(f"{spent.requests:,}"),
                Span(f"  {count_of(spent.continuations, 'continuation')}, "
                     f"{count_of(spent.repairs, 'repair')}", Tone.DIM))
