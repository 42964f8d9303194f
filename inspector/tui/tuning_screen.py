"""The tuning screen: a grid of limits as a heat map, filled by a thread, and the smallest sufficient limits."""

from __future__ import annotations

from functools import partial
from threading import Event
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.events import Click
from textual.reactive import reactive
from textual.screen import Screen

from inspector.report.lines.spans import EMPTY, LineSheet, in_quotes
from inspector.tui.command_line import Act, ask_line
from inspector.tui.delivery import copy_text, deliver
from inspector.tui.heat_map import HeatMap
from inspector.tui.keys import KeyBar
from inspector.tui.lists import Choose
from inspector.tui.messages import RowOpened, ask_operator
from inspector.tui.panels import WrappedLines, set_size_classes
from inspector.tui.questions import AxesPrompt
from inspector.tui.session_files import reading_of
from inspector.tui.text_view import TextView
from inspector.tui.tuning_table import EXPORT_FORMS, GridOutcome, TuningTable, add_up, outcome_of
from inspector.whatif.grid import Grid, GridRequest, axis_text, parse_axes
from inspector.whatif.grid_run import TunedGrid, tune
from inspector.whatif.heat import MEASURES
from loop_core.errors import CallerError
from loop_core.turn.limits import whole_number

SPLIT_WIDTH = 110
"""The width in columns from which the details of a cell are shown beside the map."""
TALL = 24
"""The height in rows from which the legend has its own rows below the map; on a lower screen it follows the cell."""
LEAST_CELL, MARGIN = 36, 3
"""The smallest width of the cell's details beside the map, and the width of the margins around the map, in columns."""
SHARE, FRAME = 70, 6
"""The largest share of the screen for the map, in percent, and the lines above and below it."""
RUNNING = "the grid is still running; . stops it"
SOON = "the cursor goes to the best cell when the grid has run; . stops it"
"""The note about keys that need the results; the end of the run removes it."""
TICK = 0.1
"""The seconds between two updates of the progress."""


class TuneScreen(Screen[int | None]):
    """One session under a grid of limits."""

    HORIZONTAL_BREAKPOINTS = [(0, "-below"), (SPLIT_WIDTH, "-beside")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (TALL, "-tall")]  # noqa: RUF012
    DEFAULT_CSS = """
    TuneScreen #tune-head { min-height: 3; padding: 0 1; background: $surface; }
    TuneScreen #tune-body { height: 1fr; layout: horizontal; }
    TuneScreen #tune-left { width: 3fr; }
    TuneScreen #map { height: 9; margin: 1 1 0 1; overflow-x: hidden; scrollbar-size-vertical: 1; }
    TuneScreen #legend { margin: 1 1; }
    TuneScreen TextView { padding: 0 1; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    TuneScreen #answers { height: 1fr; border-top: hkey $border; }
    TuneScreen #cell { width: 2fr; height: 1fr; border-left: vkey $border; padding: 1 1 0 1; }
    TuneScreen TextView:focus { border-top: hkey $primary; }
    TuneScreen.-beside #cell:focus { border-top: none; border-left: vkey $primary; }
    TuneScreen.-below #tune-body { layout: vertical; }
    TuneScreen.-below #tune-left { width: 1fr; height: auto; }
    TuneScreen.-below #map { margin: 0 1; }
    TuneScreen.-below #legend { margin: 0 1; }
    TuneScreen.-below #answers { display: none; }
    TuneScreen.-below.-low #legend { display: none; }
    TuneScreen.-below #cell { width: 1fr; padding: 0 1; border-left: none; border-top: hkey $border; }
    TuneScreen.-below #cell:focus { border-top: hkey $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,full_stop", "stop", "stop", tooltip="Stop the run; what was done by then is shown",
                id="tune.stop"),
        Binding("v", "show", "measure", id="tune.show",
                tooltip="What the map shows: outcome, spend or segments"),
        Binding("]", "turn(1)", "turn", tooltip="The next turn alone; all of them before the first", id="tune.turn"),
        Binding("[", "turn(-1)", "Previous turn", show=False, tooltip="The previous turn, or all of them",
                id="tune.turn-before"),
        Binding(":", "jump", "Go to turn", show=False, id="tune.turn-number",
                tooltip="One turn by its number, all of them, or a command's name"),
        Binding("b", "best", "best", id="tune.best",
                tooltip="To the smallest max_tokens, the fewest output tokens, then the best value"),
        Binding("e", "axes", "limits", tooltip="Which limits are varied, and their values", id="tune.axes"),
        Binding("s", "simulate", "simulate", id="tune.simulate",
                tooltip="Simulate what was not recorded, or use recorded answers only"),
        Binding("r", "again", "Run again", show=False, tooltip="Run the grid again, from the start", id="tune.again"),
        Binding("y", "copy", "command", tooltip="Copy the command line that shows this grid", id="tune.copy"),
        Binding("Y", "copy_cell", "Cell's command", show=False, id="tune.copy-cell",
                tooltip="Copy the command line that runs the session under this cell"),
        Binding("x", "export", "export", tooltip="Write every turn in every cell as CSV or JSON", id="tune.export"),
        Binding("tab", "other_pane", "Other pane", show=False, tooltip="To the next pane", id="pane"),
    ]
    note: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self, table: TuningTable) -> None:
        super().__init__()
        self.table = table
        self._stop = Event()
        self._done = (0, 0)
        self._head, self._map, self._legend = WrappedLines(id="tune-head"), HeatMap(id="map"), WrappedLines(id="legend")
        self._answers, self._cell = TextView(id="answers"), TextView(id="cell")
        self._map.set_reactive(HeatMap.cell, table.cell)

    def compose(self) -> ComposeResult:
        """Yields the parameters and the conclusion, the map and the answers, the cell and the key bar."""
        set_size_classes(self)
        yield self._head
        with Container(id="tune-body"):
            with Vertical(id="tune-left"):
                yield self._map
                yield self._legend
                yield self._answers
            yield self._cell
        yield KeyBar(id="keys").data_bind(TuneScreen.note)

    def on_mount(self) -> None:
        """Runs the grid, unless it was run before."""
        self._map.focus()
        self._timer = self.set_interval(TICK, self._tick, pause=True)
        self.watch(self._map, "cell", self._show_cell, init=False)
        if self.table.result is None:
            self._start()
        self._show()

    def on_unmount(self) -> None:
        """Stops the run, since its result is no longer needed."""
        self._stop.set()

    def on_resize(self) -> None:
        """Fits the map and the panes to the new size."""
        self._map.room = max(4, self.size.height * SHARE // 100 - FRAME)
        self._widen()
        self._show_cell()

    # -- running -------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a grid is being run."""
        return self.table.result is None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key works now: stopping works once during a run; otherwise escape leaves."""
        return self.running and not self._stop.is_set() if action == "stop" else True

    def _start(self) -> None:
        self._stop.set()
        # A new event for each run: the old thread still reads its own event, and ends.
        self._stop, self._done = Event(), (0, 0)
        self.table.begin()
        self._run(self.table.grid, self._stop)
        self._timer.resume()

    @work(thread=True)
    def _run(self, grid: Grid, stop: Event) -> None:
        def progress(count: int, parts: int) -> None:
            if not stop.is_set():
                self._done = (count, parts)

        tuned = add_up(tune(self.table.case, grid, progress=progress, cancelled=stop.is_set))
        self.call_later(self._show_cells, grid, tuned)  # the thread still searches values between the columns
        self.call_later(self._take_outcome, grid, outcome_of(tuned))

    def _show_cells(self, grid: Grid, tuned: TunedGrid) -> None:
        if grid is self.table.grid and self.running:
            self.table.cells = tuned
            self._show()

    def _take_outcome(self, grid: Grid, outcome: GridOutcome) -> None:
        # A stopped thread may still deliver its result after a new run has begun.
        if grid is not self.table.grid or not self.running:
            return  # another grid was requested in the meantime
        self._timer.pause()
        self.table.end(outcome)
        self._map.cell = self.table.cell
        self.note = "" if self.note in (RUNNING, SOON) else self.note
        self.refresh_bindings()
        self._show()

    def _tick(self) -> None:
        self._head.lines = self.table.head(self.size.width - 2, self._done, self._stop.is_set())

    # -- showing -------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Shows another grid, turn or measure."""
        self._map.show(self.table.grid.axes, self.table.marks, self.table.best_marks())
        self._widen()
        self._legend.lines = self.table.legend()
        self._answers.sheet = LineSheet(self.table.answers())
        self._show_cell()

    def _widen(self) -> None:
        """Widens the map to the columns that it needs, if enough room for the cell's details remains."""
        most = self.size.width - LEAST_CELL
        self.query_one("#tune-left").styles.min_width = (
            min(self._map.full_width + MARGIN, most) if self.has_class("-beside") else None)

    def _show_cell(self) -> None:
        """Shows another cell."""
        if self.table.cell != self._map.cell:
            self.table.cell, self.table.exact = self._map.cell, None
        self._tick()
        lines = self.table.cell_lines()
        if self.has_class("-below"):
            legend = [EMPTY, *self.table.legend()] if self.has_class("-low") else []
            lines = [*lines, *legend, EMPTY, *self.table.answers()]
        self._cell.sheet = LineSheet(lines)

    def action_show(self) -> None:
        """Shows another measure."""
        shows = list(MEASURES)
        self.table.show = shows[(shows.index(self.table.show) + 1) % len(shows)]
        self._show()

    def on_click(self, event: Click) -> None:
        """Shows the measure whose name was clicked, or the next one if only one name is shown."""
        names = self._head.content_region
        if not names.contains_point(event.screen_offset) or event.screen_y != names.bottom - 1:
            return
        at, shown = names.x, self.table.measures_shown
        for name in shown:
            end = at + len(name) + 2  # its brackets, or blanks in their place
            if at <= event.screen_x < end and len(shown) == 1:
                self.action_show()
            elif at <= event.screen_x < end:
                self.table.show = name
                self._show()
            at = end

    def action_turn(self, by: int) -> None:
        """Switches between all turns and a single one."""
        count = len(self.table.case.recording.turns)
        if count < 2:
            self.note = "there is one turn" if count else "there is no turn"
            return
        here = 0 if self.table.turn is None else self.table.turn + 1
        self._to_turn((here + by) % (count + 1))

    def action_jump(self) -> None:
        """Asks for a turn or a command."""
        count = len(self.table.case.recording.turns)
        ask_line(self, "tune.turn-number", f"turn 1 to {count:,}, 0 for all of them", self._turn_named)

    def _turn_named(self, line: str) -> Act | None:
        words, count = line.split(), len(self.table.case.recording.turns)
        if not words:
            return lambda: None
        if words[:-1] not in ([], ["turn"]):
            return None
        number = whole_number(words[-1])
        if number is not None and 0 <= number <= count:
            return partial(self._to_turn, number)
        if number is not None or words[:-1] or words[-1][:1].isdecimal():
            raise CallerError(f"{in_quotes(words[-1])} is not a turn: expected 1 to {count:,}, or 0 for all of them")
        return None

    def _to_turn(self, number: int) -> None:
        self.table.turn, self.table.exact = number - 1 if number else None, None
        self._show()

    def action_best(self) -> None:
        """Moves the cursor to the next of the best cells: smallest max_tokens, fewest output tokens, best value."""
        best = self.table.best()
        if not best:
            if self.running:
                self._map.cell = 0  # the end of the run moves a cursor on the first cell
            self.note = SOON if self.running else "no cell completes it"
            return
        here = self._map.cell
        self.table.go_to_best(best[(best.index(here) + 1) % len(best)] if here in best else best[0])
        self._map.cell = self.table.cell
        self._show_cell()
        self.note = self.table.best_name()

    # -- asking --------------------------------------------------------------------------------------------------

    def action_stop(self) -> None:
        """Stops the run."""
        self._stop.set()
        self.refresh_bindings()
        self._tick()

    def action_again(self) -> None:
        """Runs the grid again."""
        self._ask(self.table.request)

    def action_axes(self) -> None:
        """Asks for other axes."""
        ask_operator(self.app, AxesPrompt(" ".join(map(axis_text, self.table.grid.axes))), self._axes)

    def _axes(self, text: str) -> None:
        self._ask(GridRequest(parse_axes(text.split())))

    def action_simulate(self) -> None:
        """Switches between simulated and recorded answers only."""
        self._ask(GridRequest(self.table.request.axes, not self.table.request.simulates))
        self.note = ("simulation on: what was not recorded is simulated" if self.table.request.simulates
                     else "simulation off: recorded answers only, which max_tokens does not change")

    def _ask(self, request: GridRequest) -> None:
        self.table.ask(request)
        self._start()
        self._map.cell = 0
        self.refresh_bindings()
        self._show()

    # -- taking away ---------------------------------------------------------------------------------------------

    def action_copy(self) -> None:
        """Copies the command line of the grid."""
        reading = reading_of(self.app)
        self.note = copy_text(self.app, self.table.command(reading.api, reading.profile))

    def action_copy_cell(self) -> None:
        """Copies the command line of the cell."""
        reading = reading_of(self.app)
        self.note = copy_text(self.app, self.table.cell_command(reading.api, reading.profile))

    def action_export(self) -> None:
        """Asks for a form, then for a folder; in a browser the file is downloaded."""
        if self.running:
            self.note = RUNNING
            return
        ask_operator(self.app, Choose("Export the grid", [(form, about) for form, (about, _) in EXPORT_FORMS.items()]),
                     lambda form: deliver(self, lambda: self.table.files(form), f"the {form} export"))

    # -- panes ---------------------------------------------------------------------------------------------------

    def action_other_pane(self) -> None:
        """Focuses the next visible pane."""
        panes = [each for each in (self._map, self._cell, self._answers) if each.display]
        here = next((at for at, each in enumerate(panes) if each.has_focus), 0)
        panes[(here + 1) % len(panes)].focus(scroll_visible=False)

    @on(RowOpened)
    def _choose_row(self, message: RowOpened) -> None:
        message.stop()
        if self.running and message.row == 0:  # nobody chose it: the cursor waits there for the best cell
            self.note = SOON
        else:
            self.dismiss(message.row)
