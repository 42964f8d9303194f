"""The state of the tuning screen: a grid of limits over one session, its texts and its exports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.config.settings import INITIAL, Settings, command
from inspector.replay.case import Case
from inspector.report.lines.glyphs import SIMULATED, UNBROKEN
from inspector.report.lines.header import EMPTY as LEFT
from inspector.report.lines.header import FULL
from inspector.report.lines.spans import EMPTY, Line, Span, Tone, count_of, safe, spread_ends, width_of, wrap_line
from inspector.sessions import redact
from inspector.tui.messages import NO_FILTER
from inspector.tui.session_files import command_with_files
from inspector.whatif import heat
from inspector.whatif.grid import UNDONE_CODE, GridRequest
from inspector.whatif.grid_lines import (
    BEST_VALUE,
    FEWEST,
    LEAST_CAP,
    answer_lines,
    fidelity_counts,
    headline,
    legend,
    parameter_lines,
    turn_headline,
)
from inspector.whatif.grid_report import as_csv, document
from inspector.whatif.grid_run import SmallestCap, TunedGrid, blank, cost
from inspector.whatif.heat import CURSOR, GUESS, MEASURES, cell_marks, cell_name, cell_sheet
from inspector.whatif.smallest import smallest_limits
from inspector.whatif.smallest_cap import (
    Fewest,
    best_value,
    fewest_tokens,
    fewest_tokens_of_all,
    smallest_cap,
    smallest_cap_of_all,
    whole_cap,
)
from loop_core.turn.trace import Fidelity

if TYPE_CHECKING:
    from inspector.tui.stage import SessionStage

MOST_LISTED = 100
"""The largest number of turns that are listed one by one; any other turn can be shown alone."""
BAR = 20
"""The width of the progress bar in columns."""

EXPORT_FORMS: Mapping[str, tuple[str, Callable[[TunedGrid], str]]] = {
    "csv": ("one row for each turn and cell", as_csv),
    "json": ("one document for programs", lambda tuned: json.dumps(redact.texts(document(tuned)), indent=1) + "\n"),
}
"""Form of an export -> its description, and the function that writes it."""


MEANINGS = {BEST_VALUE: f"{BEST_VALUE}: further turns cost more than the average"}
"""Name of a best cell -> its explanation in the legend, if the name is not enough; short enough for one row."""


Trust = tuple[tuple[Fidelity, int, Tone], ...]
"""The number of cells for each fidelity: recorded answers only, or with simulated ones."""


@dataclass(frozen=True, slots=True, eq=False)
class GridOutcome:
    """The results of a grid, and the conclusions for all turns together."""

    grid: TunedGrid
    answers: list[Line]
    trust: Trust


def add_up(tuning: TunedGrid) -> TunedGrid:
    """The grid with its cached sums, which are computed in a thread, so that no key waits for them later."""
    for measure in MEASURES.values():
        measure.total(tuning)
    return tuning


def outcome_of(tuning: TunedGrid) -> GridOutcome:
    """Computes the conclusions; a large grid takes a moment, because values between its columns are searched."""
    return GridOutcome(tuning, answer_lines(tuning, most=MOST_LISTED), _trust_in(tuning, None))


def _trust_in(tuning: TunedGrid, turn: int | None) -> Trust:
    run, simulated, _ = fidelity_counts(tuning, turn)
    return (Fidelity.RECORDED, run - simulated, Tone.OK), (Fidelity.SIMULATED, simulated, Tone.WARN)


def table_over(stage: SessionStage) -> TuningTable:
    """The default grid over the current run of a session. It examines every turn."""
    from inspector.export import name_of

    view, node = stage.run.view, stage.runs.node
    name = stage.name_over_all_turns(node.path)
    table = TuningTable(stage.runs.case, view.replay.settings, node.key, name, stage.past_filter)
    table.paths, table.before, table.name = stage.runs.paths, stage.session.before, name_of(view)
    return table


class TuningTable:
    """One session, a grid over it, and the operator's position in it."""

    def __init__(self, case: Case, base: Settings, run: str, title: str, past_filter: bool) -> None:
        self.case = case
        self.here: int | None = None
        """The turn at the cursor of the session when the screen was opened last; None before."""
        self.past_filter = past_filter
        """Whether the table of turns from which the screen was opened has a filter."""
        self.base, self.run, self.title = base, run, title
        """The settings, the key and the name of the run that the grid varies."""
        self.cell_runs: set[str] = set()
        """The keys of the runs that were opened from cells."""
        self.paths: tuple[str, ...] = ()
        self.before = ""
        """The command line that writes the session to its path, if it is not a file yet."""
        self.name = "session"
        """The name of the session in the names of exported files."""
        self.show = next(iter(MEASURES))
        self.measures_shown: tuple[str, ...] = tuple(MEASURES)
        """The names of measures in the head: all, or the current one if the terminal is too narrow for all."""
        self.cell = 0
        self.exact: int | None = None
        """The max_tokens of the best cell to which the cursor was sent, if it is between two values of the grid."""
        self.turn: int | None = None
        """The turn that is shown alone; None for all turns."""
        self.ask(GridRequest())

    def come_from(self, here: int) -> None:
        """Shows the turn at the cursor of the session alone, unless the screen was opened from the same turn before."""
        if here != self.here and len(self.case.recording.turns) > 1:
            self.turn, self.exact = here, None
            self._go_to_best_or_why()
        self.here = here

    def ask(self, request: GridRequest) -> None:
        """Chooses another grid, without running it."""
        self.request, self.grid = request, request.grid(self.case, self.base)
        self.cell, self.exact = 0, None
        self.begin()

    def begin(self) -> None:
        """Starts a run."""
        self.result: GridOutcome | None = None
        self.cells = blank(self.case, self.grid)
        """The cells until the conclusions are known: blank, then with their results."""

    def end(self, result: GridOutcome) -> None:
        """Stores the results; moves the cursor to the most informative cell, unless the operator moved it."""
        self.result = result
        if self.cell == 0:
            self._go_to_best_or_why()

    @property
    def tuning(self) -> TunedGrid:
        """The results of every cell; cells that were not run are blank."""
        return self.result.grid if self.result is not None else self.cells

    @property
    def single_turn(self) -> int | None:
        """The single turn that is shown: the chosen one, or the only one."""
        return self.tuning.single_turn(self.turn)

    # -- what is shown -----------------------------------------------------------------------------------------------

    def head(self, width: int, progress: tuple[int, int], stopping: bool = False) -> list[Line]:
        """The parameters and progress of the run; the conclusion; the current measure."""
        grid, turns = self.grid, len(self.tuning.turns)
        size = f" · {count_of(grid.size, 'cell')} · {count_of(turns, 'turn')} · policy {grid.base.policy.name}"
        title = (Span("Tune", Tone.TITLE), Span("  run ", Tone.DIM), safe(self.title), Span(size, Tone.DIM))
        state = wrap_line(self._state(progress, stopping), width)
        return [spread_ends(title, self._trust(), width), *state, self._measure_line(width)]

    def _trust(self) -> Line:
        if self.result is None:
            return ()
        counts = self.result.trust if self.turn is None else _trust_in(self.tuning, self.turn)
        return tuple(span for name, count, role in counts if count
                     for span in (Span(f" {name}", role), Span(f" in {count:,}", Tone.DIM)))

    def _state(self, progress: tuple[int, int], stopping: bool) -> Line:
        if self.result is None:
            count, parts = progress
            full = BAR * count // parts if parts else 0
            word, hint = (("STOPPING", "adding up · esc leaves") if stopping else
                          ("SEARCHING", "values between the columns") if parts == count > 0 else
                          ("RUNNING", "esc or . stops"))
            return (Span(f"{word}  ", Tone.WARN), Span(FULL * full, Tone.OK), Span(LEFT * (BAR - full), Tone.RULE),
                    Span(f"  {count / parts:.0%}" if parts else ""), Span(f"  {hint}", Tone.DIM))
        if self.tuning.cancelled:
            return (Span("STOPPED  ", Tone.WARN),
                    Span(f"{self.tuning.done / max(1, self.tuning.parts):.0%} was run, the rest is blank"),
                    Span("  r runs it again", Tone.DIM))
        if self.single_turn is None:
            return headline(self.tuning)
        found = smallest_limits(self.tuning, self.single_turn)
        return (Span("NOT RUN", Tone.WARN),) if found is None else turn_headline(self.tuning, found)

    def _measure_line(self, width: int) -> Line:
        turns, single = self.tuning.turns, self.single_turn
        keys: Line = ()
        if single is None:
            past = f", {NO_FILTER}" if self.past_filter else ""
            who: Line = (Span(f"all {count_of(len(turns), 'turn')}", Tone.STRONG), Span(past))
        else:
            who = (Span(f"turn {single + 1:,} of {len(turns):,}", Tone.STRONG),)
            if len(turns) > 1:
                keys = (Span("  [", Tone.PRESS), Span(" previous ", Tone.DIM), Span(" ]", Tone.PRESS),
                        Span(" next", Tone.DIM))
        simulated: Line = (Span(f"simulation {'on' if self.request.simulates else 'off'}", Tone.DIM),)
        line: Line = (*self._measure_names(MEASURES), Span("   "), *who)
        self.measures_shown = tuple(MEASURES) if width_of(line) <= width else (self.show,)
        line = (*self._measure_names(self.measures_shown), Span("   "), *who)
        room = width - width_of(line) - 1
        if room < width_of(simulated):
            simulated = ()  # it is also in the export and in the legend: which turn is shown is nowhere else in sight
        if room >= width_of(simulated) + width_of(keys):
            line = (*line, *keys)
        return spread_ends(line, simulated, width)

    def _measure_names(self, names: Iterable[str]) -> list[Span]:
        return [Span(f"[{name}]", Tone.HERE) if name == self.show else Span(f" {name} ") for name in names]

    def marks(self, short: bool) -> list[Span]:
        """The mark of each cell."""
        return cell_marks(self.tuning, self.show, self.turn, short=short)

    def legend(self) -> list[Line]:
        """The meaning of the marks."""
        more = f"  {SIMULATED} {Fidelity.SIMULATED}: {GUESS}" if any(self.tuning.simulated) else ""
        best = "".join(f"  {mark} {MEANINGS.get(name, name)}" for _, mark, name in self._named_cells())
        meanings = f"{legend(self.show, self.tuning, self.turn)}{more}{best}  {CURSOR} here".split("  ")
        # No row ends inside an entry, or begins with a blank.
        return [(Span(f"{UNBROKEN} ".join(each.replace(" ", UNBROKEN) for each in meanings), Tone.DIM),)]

    def answers(self) -> list[Line]:
        """The smallest sufficient limits; the parameters of the run."""
        if self.result is None:
            return [(Span("the answers come when the grid has run", Tone.DIM),)]
        tuned = self.tuning
        lines = self.result.answers if self.turn is None else answer_lines(tuned, self.turn)
        first = [headline(tuned), EMPTY] if tuned.cancelled else []
        return [*first, *lines, EMPTY, (Span("the grid", Tone.TITLE),), *parameter_lines(tuned, self.turn)]

    def cell_lines(self) -> list[Line]:
        """The details of the current cell."""
        sheet = cell_sheet(self.tuning, self.cell, self.turn, MOST_LISTED)
        if self.exact is None:
            return sheet
        cell, names = cell_name(self.tuning, self.cell, self.exact), self._best_names()
        best = self._fewest() if FEWEST in names else self._cap()
        ends = best.ends if best is not None else ()
        spent = count_of(cost(ends)[0], "output token")
        done = f"{sum(end.complete for end in ends):,} of {count_of(len(ends), 'turn')} complete, {spent}"
        return [(Span("enter", Tone.PRESS), Span(" opens ", Tone.DIM), Span(cell, Tone.STRONG),
                 Span(f": {' and '.join(names)}; {done}; the next larger cell of the map:", Tone.DIM)), *sheet]

    def _named_cells(self) -> list[tuple[int, str, str]]:
        """The best cells: each with its mark and its name; one cell may have several."""
        if self.result is None:
            return []
        value = best_value(self.tuning) if self.turn is None else None
        cells = ((self._cap(), heat.LEAST_CAP_MARK, LEAST_CAP), (self._fewest(), heat.FEWEST_MARK, FEWEST),
                 (value, heat.KNEE_MARK, BEST_VALUE))
        return [(each.cell, mark, name) for each, mark, name in cells if each is not None]

    def best(self) -> list[int]:
        """The cells with the smallest max_tokens, the fewest output tokens, and the best value."""
        return list(dict.fromkeys(cell for cell, _, _ in self._named_cells()))

    def best_marks(self) -> dict[int, str]:
        """The marks of these cells."""
        found: dict[int, str] = {}
        for cell, mark, _ in self._named_cells():
            found[cell] = found.get(cell, "") + mark
        return found

    def go_to_best(self, cell: int) -> None:
        """Moves the cursor to a best cell; its max_tokens may lie between two values of the grid."""
        self.cell = cell
        budget = self._budget(self._best_names())
        own = self.grid.limits(cell).get(INITIAL)
        self.exact = None if budget == own else budget

    def _go_to_best_or_why(self) -> None:
        """Moves the cursor to the best cell; if nothing completes, to a cell that shows why."""
        if best := self.best():
            self.go_to_best(best[0])
        else:
            self.cell, self.exact = self._why_cell(), None

    def _why_cell(self) -> int:
        """The cell that shows why nothing completes: the first with a whole call, else the largest or one with its end.
        """
        single = self.single_turn
        if single is None:
            return max((cell for cell, count in enumerate(self.tuning.run_counts) if count), default=0)
        whole, codes = whole_cap(self.tuning, single), self.tuning.turns[single].codes
        if whole is not None:
            return whole.cell
        return codes.index(next((code for code in reversed(codes) if code != UNDONE_CODE), codes[0]))

    def _best_names(self) -> list[str]:
        return [name for cell, _, name in self._named_cells() if cell == self.cell]

    def best_name(self) -> str:
        """The names of the current cell among the best cells, and its limits."""
        return f"{' and '.join(self._best_names())}: {cell_name(self.tuning, self.cell, self.exact)}"

    def settings(self) -> Settings:
        """The settings of the current cell, or of the best cell that the cursor was sent to."""
        return self.grid.settings(self.cell, self.exact)

    def _cap(self) -> SmallestCap | None:
        """The smallest max_tokens of the shown turns."""
        return smallest_cap_of_all(self.tuning) if self.turn is None else smallest_cap(self.tuning, self.turn)

    def _fewest(self) -> Fewest | None:
        """The fewest output tokens of the shown turns."""
        return fewest_tokens_of_all(self.tuning) if self.turn is None else fewest_tokens(self.tuning, self.turn)

    def _budget(self, names: Sequence[str]) -> int | None:
        """The max_tokens of the best cell with these names; it may lie between two values of the grid."""
        if FEWEST not in names:
            cap = self._cap() if LEAST_CAP in names else None
            return None if cap is None else self.grid.cap_in(cap.values)
        best = self._fewest()
        return None if best is None else best.budget

    # -- exports -------------------------------------------------------------------------------------------------------

    def command(self, api: str | None, profile: str | None) -> str:
        """The command line that gives the same grid."""
        return command_with_files(self.before, self.request.command(self.grid, self.paths, self.show, api, profile))

    def cell_command(self, api: str | None, profile: str | None) -> str:
        """The command line that runs the session under the settings of the current cell."""
        return command_with_files(self.before, command(self.paths, self.settings(), api, profile))

    def files(self, form: str) -> Mapping[str, str]:
        """The grid in one of `EXPORT_FORMS`: name -> content."""
        return {f"{self.name}-tune.{form}": EXPORT_FORMS[form][1](self.tuning)}
