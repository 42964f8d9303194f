"""The results of a grid as lines: the conclusion, the map, then what is enough for each turn and for all.

There are two answers: the smallest max_tokens that completes a turn, and the fewest output tokens for which it
completes. Each says whether it rests on recorded responses or is a guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from inspector.config.settings import INITIAL, REPLAYED
from inspector.replay.adjustments import raised_limits
from inspector.report.lines.glyphs import STATE
from inspector.report.lines.header import doubts, output
from inspector.report.lines.spans import Line, Span, Tone, count_of, field, join_groups, more, safe, words
from inspector.whatif.grid import End, Value
from inspector.whatif.grid_run import Edge, SmallestCap, TunedGrid, cost
from inspector.whatif.heat import (
    GUESS,
    MEASURES,
    SHADES,
    WHOLE_SO_FAR,
    completes,
    mark_of,
    spent_line,
    turn_counts,
    turn_file,
)
from inspector.whatif.smallest import (
    KNOWN_GRAINS,
    SmallestLimits,
    completes_in_larger,
    is_end_unknown,
    knee,
    limits_of,
    smallest_limits,
    why_incomplete,
)
from inspector.whatif.smallest_cap import (
    Fewest,
    best_value,
    fewest_tokens,
    fewest_tokens_of_all,
    is_call_never_whole,
    recorded_cap,
    smallest_cap,
    smallest_cap_of_all,
    whole_cap,
)
from loop_core.turn.limits import SHORT_NAMES
from loop_core.turn.state import State
from loop_core.turn.trace import Fidelity

LEAST_CAP, FEWEST, BEST_VALUE = "smallest max_tokens", "fewest output tokens", "best value"
"""The names of the three marked cells. The last is the knee of the curve of complete turns by tokens."""
BEST_VALUE_MEANS = "with a larger budget each further turn costs more than the average"
ALL_COUNT_NOTE = "turns that do not complete count too, with what they spend until they stop"
"""The remark about the tokens of all turns if not all complete, because a smaller max_tokens may stop a turn sooner."""
FROM_RECORDING = "from the recording"


def legend(show: str, tuning: TunedGrid, turn: int | None = None) -> str:
    """The legend of the glyphs, for all turns together or for one."""
    if show != "outcome":
        return f"{SHADES[0]} little to {SHADES[-1]} most: {MEASURES[show].title}"
    glyphs = {state: STATE[state][0] for state in (State.COMPLETE, State.ABORT_PARTIAL, State.UNRECORDED)}
    single = tuning.single_turn(turn)
    ends = () if single is None else tuning.turns[single].ends
    waits = next((f"{mark_of(end)[0]} awaits a result  " for end in ends if end.verdict in WHOLE_SO_FAR), "")
    meaning = "the word is the limit or reason" if single is not None else "the number counts the turns that complete"
    return (f"{glyphs[State.COMPLETE]} complete  {glyphs[State.ABORT_PARTIAL]} incomplete  {waits}"
            f"{glyphs[State.UNRECORDED]} the recording ends first  {meaning}")


def answer_lines(tuning: TunedGrid, turn: int | None = None, most: int | None = None) -> list[Line]:
    """What is enough for each turn, or for one, and for all; at most `most` turns."""
    lines: list[Line] = [(Span("what completes each turn", Tone.TITLE),), *_smallest(tuning, turn, most)]
    of_all = list(_knee_lines(tuning)) if turn is None and len(tuning.turns) > 1 else []
    return [*lines, *([(), (Span("for all turns", Tone.TITLE),), *of_all] if of_all else [])]


def headline(tuning: TunedGrid) -> Line:
    """The conclusion in one line."""
    if not tuning.turns:
        why = "no LLM traffic was found" if tuning.case is None else tuning.case.recording.why_empty
        return (Span("NOTHING TO TUNE", Tone.ERROR), Span("  "), safe(why))
    every, bend, best = tuning.most_run, knee(tuning), fewest_tokens_of_all(tuning)
    if bend is None or best is None:
        if not every:
            return (Span("NO CELL", Tone.WARN), Span(f"  none of {tuning.grid.size:,} was run"))
        whys = Counter(why_incomplete(tuning, found.end) for turn in range(len(tuning.turns))
                       if (found := smallest_limits(tuning, turn)) is not None)
        why, count = whys.most_common(1)[0]
        of = "" if count == len(tuning.turns) else f" (in {count:,} of {count_of(len(tuning.turns), 'turn')})"
        word = "NONE COMPLETES"
        if any(is_end_unknown(tuning, turn) for turn in range(len(tuning.turns))):
            word = "NONE IS KNOWN TO COMPLETE"
        single = tuning.single_turn(None)
        whole = () if single is None else _whole_call(tuning, single)
        return (Span(word, Tone.WARN), Span(f"  {why}{of}"), *whole)
    role = Tone.OK if bend.enough.completed == every else Tone.WARN
    cap = smallest_cap_of_all(tuning)
    unknown = tuning.unrecorded[bend.enough.cell]
    done = f"{bend.enough.completed:,} OF {every:,} CAN COMPLETE"
    return (Span(done, role), Span(f", {unknown:,} unknown  " if unknown else "  "),
            *least_cap_line(tuning, cap, tuning.single_turn(None) if every == 1 else None),
            *fewest_line(tuning, best, None, f"{best.tokens:,}"))


def turn_headline(tuning: TunedGrid, found: SmallestLimits) -> Line:
    """The conclusion about one turn in one line."""
    turn = found.turn
    best = fewest_tokens(tuning, turn)
    if best is None:
        word = "NOT KNOWN TO COMPLETE" if is_end_unknown(tuning, turn) else "DOES NOT COMPLETE"
        return (Span(word, Tone.WARN), Span(f"  {why_incomplete(tuning, found.end)}"), *_whole_call(tuning, turn))
    end = best.ends[0]
    spent = " ".join([f"{end.spend.output_tokens:,}", *(f"({doubt})" for doubt in doubts(end.spend))])
    return (Span("COMPLETES", Tone.OK), Span("  "), *least_cap_line(tuning, smallest_cap(tuning, turn), turn),
            *fewest_line(tuning, best, turn, spent))


def _whole_call(tuning: TunedGrid, turn: int) -> Line:
    """The end of a sentence about the max_tokens with which a turn's call is whole, but no more; empty if none is."""
    whole = whole_cap(tuning, turn)
    if whole is None:
        return ()
    guess, whole_budget = f": {GUESS}" if whole.ends[0].simulated else "", tuning.grid.cap_in(whole.values)
    return (Span("; its call is complete with "), _cell_in_words(tuning, whole.cell, whole_budget),
            *between_note(tuning, whole.cell, whole_budget), Span(guess))


def least_cap_line(tuning: TunedGrid, cap: SmallestCap | None, turn: int | None) -> Line:
    """The first answer (smallest max_tokens) in few words, with the separator; empty if it is not varied."""
    if cap is None:
        return ()
    spent = f"{count_of(cap.ends[0].spend.requests, 'answer')}, " if len(cap.ends) == 1 else ""
    guess = any(end.complete and end.simulated for end in cap.ends)
    recorded = recorded_cap(tuning, turn) if guess and turn is not None else None
    proved = (() if recorded is None else
              (Span(f" ({FROM_RECORDING} "), *cap_name(tuning, tuning.grid.values(recorded[0])), Span(")")))
    return (Span(f"{LEAST_CAP} "), *cap_name(tuning, cap.values),
            *between_note(tuning, cap.cell, tuning.grid.cap_in(cap.values)),
            Span(f": {spent}{GUESS if guess else FROM_RECORDING}"), *proved, Span(" · "))


def fewest_line(tuning: TunedGrid, best: Fewest, turn: int | None, spent: str) -> Line:
    """The second of the two answers (fewest output tokens) in few words."""
    guess = any(end.simulated for end in best.ends)
    return (Span(f"{FEWEST} {spent} "), *budget_line(tuning, best, turn),
            Span(f": {GUESS if guess else FROM_RECORDING}"))


def _spent_and_belief(end: End) -> Line:
    """The spend of a turn, and whether its end rests on recorded answers or is a guess."""
    spent = Span(f"{spent_words(end)}; ")
    if end.simulated:
        return (spent, Span(f"{GUESS} (SIMULATED): made up from the recorded text; no model was asked", Tone.WARN))
    recorded = end.fidelity == Fidelity.RECORDED
    return (spent, Span("each of these answers was recorded" if recorded else end.fidelity, Tone.OK))


def limits_in_words(tuning: TunedGrid, by_limit: Mapping[str, Value]) -> str:
    """Values of the grid's limits in a sentence after "with": `max_tokens 28 and up to 4 continuations`."""
    axes = sorted(tuning.grid.axes, key=lambda axis: axis.name != INITIAL)
    return " and ".join(axis.phrase(by_limit[axis.name]) for axis in axes if axis.name in by_limit)


def cap_name(tuning: TunedGrid, values: Sequence[Value]) -> Line:
    """A max_tokens, then the other limits: `28 with up to 4 continuations`."""
    by_limit = tuning.grid.by_limit(values)
    own = by_limit.pop(INITIAL)
    others = limits_in_words(tuning, by_limit)
    return (Span("the recorded one" if own is None else f"{own:,}", Tone.STRONG),
            *((Span(f" with {others}"),) if others else ()))


def _cell_in_words(tuning: TunedGrid, cell: int, budget: int | None) -> Span:
    """The limits of a cell, with another max_tokens where one is given."""
    return Span(limits_in_words(tuning, tuning.grid.limits(cell, budget)), Tone.STRONG)


def spent_words(end: End) -> str:
    """The number of a turn's answers, how many of them continue or repair another, and its output tokens."""
    more_of = [count_of(count, noun) for count, noun in (
        (end.spend.continuations, "continuation"), (end.spend.repairs, "repair")) if count]
    parts = f" ({', '.join(more_of)})" if more_of else ""
    return f"{count_of(end.spend.requests, 'answer')}{parts}, {output(end.spend)}"


def budget_line(tuning: TunedGrid, best: Fewest, turn: int | None) -> Line:
    """The budget of the fewest tokens, with a remark if some larger cell of the grid completes less."""
    name = _cell_in_words(tuning, best.cell, best.budget), *between_note(tuning, best.cell, best.budget)
    done = sum(end.complete for end in best.ends)  # a value between two columns may complete more than a cell
    if completes_in_larger(tuning, best.cell, turn) and (turn is not None or tuning.completed[best.cell] >= done):
        return (Span("with "), *name)
    return (Span("with "), *name, Span(", but not always with more"))


def between_note(tuning: TunedGrid, cell: int, budget: int | None) -> Line:
    """A note for a max_tokens between the values of its axis, which the map shows in the next larger column."""
    cap = tuning.grid.limits(cell).get(INITIAL)
    return () if budget is None or cap in (None, budget) else (Span(f" (in column {cap:,})", Tone.DIM),)


def parameter_lines(tuning: TunedGrid, turn: int | None = None) -> Iterator[Line]:
    """The grid's axes and size, and the fidelity of the results, of `turn` if it is shown alone."""
    grid = tuning.grid
    for number, axis in enumerate(grid.axes):
        values = [axis.value_text(value) for value in axis.values]
        text = " ".join(values) if len(values) <= 12 else f"{' '.join(values[:5])} … {' '.join(values[-3:])}"
        full = "" if axis.short == axis.name else f" ({axis.name})"
        span = Span(f"{axis.short}{full}: {text}")
        yield field("grid", span) if number == 0 else more(span)
    yield field("size", *words(count_of(grid.size, "cell"), count_of(len(tuning.turns), "turn"),
                                f"policy {grid.base.policy.name}"))
    yield more(Span(grid.base.policy.title, Tone.DIM))
    for name, most in raised_limits(grid.base).items():
        if name not in grid.names:
            yield field("raised", Span(f"{name} {most:,}, as many as a recorded turn has"),
                        Span(f": the default of {getattr(REPLAYED, name):,} would end it first", Tone.DIM))
    yield field("fidelity", *fidelity_line(tuning, turn))
    if INITIAL in grid.names and not grid.base.simulate:
        yield more(Span("over a recording, max_tokens changes nothing", Tone.DIM))
    if tuning.cancelled:
        yield field("cancelled", Span(f"{tuning.done:,} of {tuning.parts:,} parts were run; the rest is left blank",
                                      Tone.WARN))


def fidelity_counts(tuning: TunedGrid, turn: int | None) -> tuple[int, int, int]:
    """The number of cells that were run for all turns or one, of those that were simulated, and of those in which the
    recording ends first."""
    sums: Iterable[Iterable[bool | int]] = (tuning.run_counts, tuning.simulated, tuning.unrecorded)
    if turn is not None:
        ends = [end for cell in range(tuning.grid.size) if (end := tuning.turns[turn].end(cell)) is not None]
        sums = ((True for _ in ends), (end.simulated for end in ends), (end.state is State.UNRECORDED for end in ends))
    run, simulated, ended = (sum(map(bool, cells)) for cells in sums)
    return run, simulated, ended


def fidelity_line(tuning: TunedGrid, turn: int | None) -> Line:
    """The number of cells that rest on recorded answers and on simulated ones, for all turns or one."""
    run, simulated, ended = fidelity_counts(tuning, turn)
    of = "" if turn is None else f"of turn {turn + 1:,}: "
    parts = [(Span(f"{of}{Fidelity.RECORDED} in {count_of(run - simulated, 'cell')}"),)]
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
    chosen = [number for number in numbers if number not in steady][:most]
    found = [smallest_limits(tuning, number) for number in chosen]
    for each in found:
        if each is not None:
            yield from smallest_lines(tuning, each)
    yield from turn_counts(len(steady), found.count(None), len(numbers) - len(steady) - len(chosen))


def smallest_lines(tuning: TunedGrid, limits: SmallestLimits) -> Iterator[Line]:
    """Both answers for one turn, or the reason why there is none."""
    name = f"turn {limits.turn + 1:,}"
    glyph, role = mark_of(limits.end)
    file = turn_file(tuning, limits.turn)
    who = safe(f"  ({file})" if file else "", Tone.DIM, 60)
    if limits.cell is None:
        yield field(name, Span(f"{glyph} ", role), Span(why_incomplete(tuning, limits.end)), who)
        spending = spent_line(limits.end) if limits.end.segments else (Span("no answer to its first request is known"),)
        yield more(Span("in the largest cell: ", Tone.DIM), *spending)
        whole = whole_cap(tuning, limits.turn)
        if whole is not None:
            yield more(Span(f"▷ {whole.ends[0].verdict}, not complete: ", Tone.DIM),
                       Span(f"its call is complete with the {LEAST_CAP} "), *cap_name(tuning, whole.values))
            yield more(*_spent_and_belief(whole.ends[0]))
        elif is_call_never_whole(tuning, limits.turn):
            yield more(Span("no cell completes its call: only a live run can show what would be enough",
                            Tone.DIM))
        return
    first, *rest = *_cap_lines(tuning, limits.turn), *_fewest_lines(tuning, limits)
    yield field(name, Span(f"{glyph} ", role), *first, who)
    for line in rest:
        yield more(*line)


def _cap_lines(tuning: TunedGrid, turn: int) -> Iterator[Line]:
    """One turn's smallest max_tokens, the effect of one token less, and the smallest by recorded answers."""
    cap = smallest_cap(tuning, turn)
    if cap is None:
        return
    end = cap.ends[0]
    yield (Span(f"{LEAST_CAP} "), *cap_name(tuning, cap.values))
    yield _spent_and_belief(end)
    for below in cap.below:
        failure = Span(f", {failure_words(below)}", Tone.DIM)
        yield (Span("one less, ", Tone.DIM), *cap_name(tuning, cap.below_values), failure)
    recorded = recorded_cap(tuning, turn) if end.simulated else None
    if recorded is not None:
        cell, own = recorded
        yield (Span(f"{FROM_RECORDING}, the smallest tried is ", Tone.DIM),
               *cap_name(tuning, tuning.grid.values(cell)), Span(f": {spent_words(own)}"))
    elif end.simulated:
        yield (Span(f"{FROM_RECORDING} alone, none completes it", Tone.DIM),)


def failure_words(end: End) -> str:
    """How a turn fails with a budget, as the end of a sentence."""
    if end.state is State.UNRECORDED:
        return "is not known: what it would ask for next was never recorded"
    short = SHORT_NAMES.get(end.limit, end.limit)
    why = (f"the limit {short} stops it" if end.limit else
           "the server calls the cut answer finished" if end.cut_unseen else
           f"its verdict is {end.verdict}" if end.state is State.COMPLETE else f"it ends as {end.terminal}")
    return f"fails: {why} after {spent_words(end)}"


def _fewest_lines(tuning: TunedGrid, limits: SmallestLimits) -> Iterator[Line]:
    """The fewest output tokens for which one turn completes, and what smaller limits do."""
    best = fewest_tokens(tuning, limits.turn)
    if best is None:
        return
    yield (Span(f"{FEWEST} with "), _cell_in_words(tuning, best.cell, best.budget))
    yield _spent_and_belief(best.ends[0])
    if best.cell != limits.cell or best.budget != limits.budget:
        return  # equal to the smallest max_tokens, whose lines show the effect of smaller limits
    lower = [(axis, value) for axis, value, own in zip(
        tuning.grid.axes, limits.by_axis, tuning.grid.values(best.cell), strict=True)
        if value != own and (axis.name != INITIAL or not tuning.grid.base.simulate)]
    if lower:
        least = " or ".join(axis.phrase(value) for axis, value in lower)
        yield (Span("also completes, for no fewer output tokens, with: ", Tone.DIM), Span(least))
    exact = [f"{SHORT_NAMES.get(name, name)} {least:,}" for name, least in limits_of(None, limits.at_edge).items()]
    if exact:
        yield (Span("exact values: ", Tone.DIM), Span(", ".join(exact)))
    if limits.edge is not None:
        yield grain_line(limits.edge)


def grain_line(edge: Edge, with_name: bool = False) -> Line:
    """The precision of the smallest max_tokens, and the first turns that one token less would harm."""
    below = ""
    for place in edge.worse[:1]:
        who = f"turn {edge.turns[place] + 1:,}" if with_name else "it"
        rest = len(edge.worse) - 1
        others = f", and {count_of(rest, 'further turn')} {'does' if rest == 1 else 'do'} worse" if rest else ""
        end = edge.below[place]
        does = f"completes for {spent_words(end)}" if end.complete else failure_words(end)
        below = f"; with {edge.budget - 1:,} {who} {does}{others}"
    sure = "known" if edge.grain in KNOWN_GRAINS else "estimated"
    return (Span(f"{sure}: ", Tone.DIM), Span(f"max_tokens {edge.budget:,} {edge.grain}"), Span(below, Tone.DIM))


# -- all turns -------------------------------------------------------------------------------------------------------


def _knee_lines(tuning: TunedGrid) -> Iterator[Line]:
    bend, best, cap = knee(tuning), fewest_tokens_of_all(tuning), smallest_cap_of_all(tuning)
    if bend is None or best is None:
        return
    completed = bend.enough.completed
    if cap is not None:
        yield (Span(f"{LEAST_CAP} "), *cap_name(tuning, cap.values), Span("  "),
               *_point_words(tuning, completed, cost(cap.ends)[0]))
        simulated_count = sum(end.complete and end.simulated for end in cap.ends)
        yield more(Span(f"{GUESS} (SIMULATED) in {count_of(simulated_count, 'turn')}" if simulated_count else
                        "each of these answers was recorded", Tone.DIM))
        if cap.below:
            done = sum(end.complete for end in cap.below)
            yield more(Span("one less, ", Tone.DIM), *cap_name(tuning, cap.below_values),
                       Span(f", completes {done:,} of {tuning.most_run:,}", Tone.DIM))
    yield (Span(f"{FEWEST} with "), _cell_in_words(tuning, best.cell, best.budget), Span("  "),
           *_point_words(tuning, completed, best.tokens))
    yield more(Span("no cell of the grid completes more, or as many for fewer output tokens", Tone.DIM))
    if completed < tuning.most_run:
        yield more(Span(ALL_COUNT_NOTE, Tone.DIM))
    if bend.edge is not None and (best.cell, best.budget) == (bend.enough.cell, bend.budget):
        yield more(*grain_line(bend.edge, len(bend.edge.turns) > 1))
    value = best_value(tuning)
    if value is not None:
        yield (Span(f"{BEST_VALUE} with "), _cell_in_words(tuning, value.cell, None), Span("  "),
               *_point_words(tuning, value.completed, value.tokens))
        rest, more_tokens = completed - value.completed, best.tokens - value.tokens
        yield more(Span(f"{BEST_VALUE_MEANS}: {count_of(rest, 'further turn')} for {more_tokens:,} output tokens more",
                        Tone.DIM))


def _point_words(tuning: TunedGrid, completed: int, tokens: int) -> Line:
    return words(f"{completed:,} of {tuning.most_run:,} complete", count_of(tokens, "output token"))
