"""The heat map of a grid as lines, with a glyph and a word or number in each cell, and one cell in detail; `~` marks
simulated results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from inspector.report.lines.glyphs import MARKED, SIMULATED, STATE
from inspector.report.lines.header import doubts, output
from inspector.report.lines.spans import EMPTY, Line, Span, Tone, count_of, field, more, safe, words
from inspector.report.lines.steps import SEVERITY, reason_of_end
from inspector.report.verdict import ROWS
from inspector.whatif.grid import UNDONE_CODE, Axis, End, Grid, TurnGrid
from inspector.whatif.grid_run import TunedGrid
from loop_core.turn.limits import SHORT_NAMES
from loop_core.turn.state import State
from loop_core.turn.trace import Fidelity

# -- The position of each cell of a map ------------------------------------------------------------------------------
# Rows and columns are the last two axes, with one block for each choice of the others. In text, columns that do not fit
# are in a further chunk below; a screen has one chunk and scrolls sideways. Positions are computed and not stored, so
# that the cost of a map depends only on its visible part.

GAP = 1
CURSOR = "◀"
"""The mark after the cell of the cursor."""
LEAST_CAP_MARK, FEWEST_MARK, KNEE_MARK = "▾", MARKED, "◇"
"""The marks after the cells of the smallest max_tokens, the fewest output tokens, and the knee."""


@dataclass(frozen=True, slots=True)
class Plane:
    """The positions of the cells at one width."""

    axes: tuple[Axis, ...]
    margin: int
    """The number of screen columns for the names of the rows."""
    cell_width: int
    """The number of screen columns for a cell."""
    cells_in_line: int
    """The number of cells next to each other."""

    @property
    def rows(self) -> Axis:
        """The vertical axis."""
        return self.axes[-2] if len(self.axes) > 1 else self.axes[0]

    @property
    def columns(self) -> Axis | None:
        """The horizontal axis; None if there is only one axis."""
        return self.axes[-1] if len(self.axes) > 1 else None

    @property
    def width(self) -> int:
        """The width of the longest line in screen columns."""
        return self.margin + min(self.cells_in_line, self.across) * self.cell_width

    def whole_columns(self, cells: int) -> int:
        """This number of screen columns, rounded up to whole columns of cells."""
        return -(-cells // self.cell_width) * self.cell_width

    def shown_columns(self, width: int) -> int:
        """The number of screen columns of the whole cells that fit beside the margin at a width."""
        return min(self.across, max(1, (width - self.margin) // self.cell_width)) * self.cell_width

    @property
    def across(self) -> int:
        """The number of cells in a row of the grid."""
        return len(self.columns.values) if self.columns is not None else 1

    @property
    def size(self) -> int:
        """The number of cells."""
        return prod(len(axis.values) for axis in self.axes)

    @property
    def heads(self) -> int:
        """The number of header lines of a chunk: the name of the column axis, if there is one, and its values."""
        return 2 if self.columns is not None else 1

    @property
    def title(self) -> int:
        """The number of title lines of a block: a blank one, and the values of the other axes."""
        return 2 if len(self.axes) > 2 else 0

    @property
    def chunk(self) -> int:
        """The number of lines of a chunk."""
        return self.heads + len(self.rows.values)

    @property
    def block(self) -> int:
        """The number of lines of a block."""
        return self.title + -(-self.across // self.cells_in_line) * self.chunk

    @property
    def height(self) -> int:
        """The number of lines in total."""
        return self.size // (self.across * len(self.rows.values)) * self.block

    # -- places ------------------------------------------------------------------------------------------------------

    def place(self, cell: int) -> tuple[int, int]:
        """The screen column and the line at which a cell begins."""
        row, column = divmod(cell, self.across)
        block, row = divmod(row, len(self.rows.values))
        chunk, column = divmod(column, self.cells_in_line)
        line = block * self.block + self.title + chunk * self.chunk + self.heads + row
        return self.margin + column * self.cell_width, line

    def cell_at(self, x: int, y: int) -> int | None:
        """The cell at a position; None if there is none."""
        if not 0 <= y < self.height or x < self.margin:
            return None
        block, chunk, row = self._position(y)
        column = (x - self.margin) // self.cell_width
        if row < 0 or column >= len(self._columns_of(chunk)):
            return None
        return self._first_cell(block, row) + chunk * self.cells_in_line + column

    def neighbour(self, cell: int, across: int, down: int) -> int:
        """The cell this many columns and rows away, clamped to the grid; blocks follow one another."""
        row, column = divmod(cell, self.across)
        column = min(max(column + across, 0), self.across - 1)
        return min(max(row + down, 0), self.size // self.across - 1) * self.across + column

    def header_line(self, y: int) -> int:
        """The header line above the cells of a line; the line itself if it has no cells."""
        row = self._position(y)[2]
        return y - row - 1 if row >= 0 else y

    def scrolls(self, y: int) -> bool:
        """Whether a line scrolls sideways with the cells; axis names and titles do not."""
        return self._position(y)[2] >= -1

    def heads_columns(self, y: int) -> bool:
        """Whether a line shows the values of the column axis."""
        return self.columns is not None and self._position(y)[2] == -1

    def _position(self, y: int) -> tuple[int, int, int]:
        """The block, the chunk and the row of a line; rows below 0 are headings."""
        block, y = divmod(y, self.block)
        if y < self.title:
            return block, 0, y - self.title - self.heads
        chunk, y = divmod(y - self.title, self.chunk)
        return block, chunk, y - self.heads

    def _first_cell(self, block: int, row: int) -> int:
        return (block * len(self.rows.values) + row) * self.across

    def _columns_of(self, chunk: int) -> range:
        return range(chunk * self.cells_in_line, min((chunk + 1) * self.cells_in_line, self.across))

    # -- drawing -----------------------------------------------------------------------------------------------------

    def line(self, y: int, marks: Sequence[Span], here: int | None = None, best: Mapping[int, str] = {}) -> Line:
        """One line of cells; cell `here` is marked, and each of `best` with its own marks."""
        block, chunk, row = self._position(y)
        if row >= 0:
            return self._cells(self._first_cell(block, row), chunk, row, marks, here, best)
        if row == -1:
            heads = [self.columns.value_text(self.columns.values[at]) if self.columns is not None else ""
                     for at in self._columns_of(chunk)]
            return (Span(f"{self.rows.short:<{self.margin}}", Tone.STRONG),
                    Span("".join(f"{head:<{self.cell_width}}" for head in heads), Tone.DIM))
        if row == -2 and self.columns is not None:
            return (Span(" " * self.margin), Span(self.columns.short, Tone.STRONG))
        return (Span(self._block_values(block), Tone.TITLE),) if row == -self.heads - 1 else EMPTY

    def _cells(
        self, first: int, chunk: int, row: int, marks: Sequence[Span], here: int | None, best: Mapping[int, str]
    ) -> Line:
        spans = [Span(f"{self.rows.value_text(self.rows.values[row]):<{self.margin}}", Tone.DIM)]
        for column in self._columns_of(chunk):
            cell = first + column
            mark, role = marks[cell]
            rest = f"{mark[1:]}{best.get(cell, '')}{CURSOR if cell == here else ''}"
            spans += [Span(mark[:1], role), Span(rest, Tone.HERE if cell == here else Tone.PLAIN),
                      Span(" " * (self.cell_width - len(mark[:1] + rest)))]
        return tuple(spans)

    def _block_values(self, block: int) -> str:
        others = Grid(self.axes[:-2])
        return ", ".join(map(Axis.assignment, others.axes, others.values(block)))


def plane(
    axes: tuple[Axis, ...], marks: Sequence[Span], width: int | None, best: Mapping[int, str] = {}
) -> Plane:
    """The positions of cells, at most `width` columns wide (None: as they are), with room for all their marks."""
    bare = Plane(axes, 0, 1, 1)
    rows, columns = bare.rows, bare.columns
    left = max(len(rows.short), *(len(rows.value_text(value)) for value in rows.values)) + 2 * GAP
    widest = max([len(mark.text) + len(best.get(cell, "")) for cell, mark in enumerate(marks)], default=0) + len(CURSOR)
    heads = [len(columns.value_text(value)) for value in columns.values] if columns is not None else []
    wide = max([widest, *heads]) + GAP
    return Plane(axes, left, wide, bare.across if width is None else max(1, (width - left + GAP) // wide))


NOT_RUN = Span("", Tone.AHEAD)
"""The mark of a cell that was not run."""
SHADES = "░▒▓█"
WIDTH = 80

WORDS: Mapping[str, str] = {
    **SHORT_NAMES,
    "max_thinking_only": "thinking", "min_progress_chars": "progress", "max_tool_steps": "rounds",
    "max_identical_calls": "identical", "max_resumes": "resumes",
    "completed": "done", "retry_limit": "no method", "interrupted": "cut off",
    "cut_unseen": "cut unseen", "safety_blocked": "filtered", "context_window_exceeded": "context",
}
"""Limit that stopped a turn, or terminal reason of a turn -> its word in a cell, if that is another word."""


WHOLE_SO_FAR: Mapping[str, str] = {"COMPLETE SO FAR": "so far", "AWAITS RESULT": "awaits"}
"""Verdict on a turn whose last answer is whole, with nothing recorded after it -> its word in a cell."""
_GLYPHS = {row.word: row.glyph for row in ROWS if row.word in WHOLE_SO_FAR}
_BAD = {row.word: Tone.ERROR for row in ROWS if SEVERITY[row.severity] is Tone.ERROR}


def mark_of(end: End) -> tuple[str, Tone]:
    """The glyph and the role of an end: those of its state, or of the verdict on a turn that is whole so far."""
    return (_GLYPHS[end.verdict], Tone.PLAIN) if end.verdict in _GLYPHS else STATE[end.glyph_state]


def end_word(end: End) -> str:
    """The end of a turn in a word: its verdict if that says more, else the limit that stopped it or its reason."""
    if end.state is State.COMPLETE and not end.complete and not end.cut_unseen:
        return end.verdict.lower()
    if end.verdict in WHOLE_SO_FAR:
        return WHOLE_SO_FAR[end.verdict]
    outcome = "completed" if end.complete else end.limit or ("cut_unseen" if end.cut_unseen else end.terminal)
    return WORDS.get(outcome, outcome)


def _outcome(tuning: TunedGrid, cell: int, short: bool) -> Span:
    """The result for all turns together: how many are complete, and the worst state of the others."""
    done, all_turns = tuning.completed[cell], tuning.most_run
    state = State.ABORT_PARTIAL if tuning.incomplete[cell] else State.UNRECORDED if done < all_turns else State.COMPLETE
    glyph, role = STATE[state]
    return Span(f"{glyph} {done}" if short else f"{glyph} {done}/{all_turns}", role)


def _shade(value: int, most: int) -> Span:
    if not value or not most:
        return Span(f"  {value:,}", Tone.DIM)
    level = min(len(SHADES) - 1, value * len(SHADES) // (most + 1))
    return Span(f"{SHADES[level]} {value:,}")


class _Measure(NamedTuple):
    """A measure that the map can show: for all turns, for one turn, and the meaning of its glyphs."""

    total: Callable[[TunedGrid], Sequence[int]]
    single: Callable[[End], int]
    title: str


MEASURES: Mapping[str, _Measure] = {
    "outcome": _Measure(lambda tuned: tuned.completed, lambda end: end.complete, "turns that complete"),
    "spend": _Measure(lambda tuned: tuned.tokens, lambda end: end.spend.output_tokens,
                    "output tokens of all responses"),
    "segments": _Measure(lambda tuned: tuned.segments, lambda end: end.segments,
                       "responses that the answers are made of"),
}
"""Name of a measure that a map can show -> the measure."""


def cell_marks(tuning: TunedGrid, show: str, turn: int | None = None, *, short: bool = False) -> list[Span]:
    """The mark of each cell: for all turns together, or for one; `short` leaves out the number of all turns."""
    single = tuning.single_turn(turn)
    if single is not None:
        return _turn_marks(show, tuning.turns[single])
    values = MEASURES[show].total(tuning)
    most = max(values, default=0)

    def mark(cell: int) -> Span:
        sign = _outcome(tuning, cell, short) if show == "outcome" else _shade(values[cell], most)
        return _with_sign(sign, tuning.simulated[cell] > 0)

    return [mark(cell) if tuning.is_comparable(cell) else NOT_RUN for cell in range(len(values))]


def _turn_marks(show: str, turn_grid: TurnGrid) -> list[Span]:
    values = [MEASURES[show].single(end) for end in turn_grid.ends]
    most, by_code = max(values, default=0), {UNDONE_CODE: NOT_RUN}
    for code, (end, value) in enumerate(zip(turn_grid.ends, values, strict=True)):
        glyph, role = mark_of(end)
        sign = Span(f"{glyph} {end_word(end)}", role) if show == "outcome" else _shade(value, most)
        by_code[code] = _with_sign(sign, end.simulated)
    return [by_code[code] for code in turn_grid.codes]


def _with_sign(mark: Span, simulated: bool) -> Span:
    return Span(mark.text + SIMULATED, mark.role) if simulated else mark


# -- One cell of a grid: the end of every turn, or all details of one turn -------------------------------------------


GUESS = "a guess"
"""The word for an end that rests on a simulated answer."""


def cell_name(tuning: TunedGrid, cell: int, budget: int | None = None) -> str:
    """A cell as an operator writes it: `attempts=5, max_tokens=512`; with `budget` as its max_tokens, if given."""
    return ", ".join(map(Axis.assignment, tuning.grid.axes, tuning.grid.limits(cell, budget).values()))


def completes(turn: TurnGrid) -> bool:
    """Whether a turn completes in every cell."""
    return turn.is_constant and turn.ends[0].complete


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
    glyph, role = STATE[end.glyph_state]
    reason = reason_of_end(end.state, end.terminal)
    yield field("ends in", Span(f"{glyph} {end.state.value}", role), *((Span(f"  {reason}"),) if reason else ()))
    if end.cut_unseen:
        yield more(Span("the budget cut an answer that this server reports as finished", Tone.WARN))
    if end.limit:
        yield more(Span(f"stopped by {SHORT_NAMES.get(end.limit, end.limit)}", Tone.WARN))
    yield field("verdict", Span(end.verdict, Tone.OK if end.complete else _BAD.get(end.verdict, Tone.WARN)))
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
