"""The providers screen: one intended answer under one budget in every dialect; a row opens as a session.

Every change of the scenario, the budget or the policy runs all dialects again in a thread, and only the result of the
last change is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.reactive import reactive

from inspector.config.settings import Settings
from inspector.provider import dialect_lines
from inspector.provider.dialect_lines import TableEntry, entries, outcome
from inspector.provider.dialect_output import MOST, TableQuery, document, path_of, sheet, text
from inspector.provider.dialect_rows import DialectRow, TableRow, row_view
from inspector.provider.scenarios import SCENARIOS
from inspector.report.lines.spans import Line, LineSheet, Span, Tone, in_quotes, mark_matches, spread_ends
from inspector.tui.command_line import Act, ask_line
from inspector.tui.lists import Choose, CursorTable, TableScreen
from inspector.tui.messages import LiveWanted, RowOpened, SessionWanted, ask_operator
from inspector.tui.paint import paint_of
from inspector.tui.session_files import OpenSession, run_of
from loop_core.errors import CallerError, LoopError
from loop_core.turn.limits import whole_number
from loop_core.turn.presets import POLICIES, preset


class DialectTable(CursorTable):
    """The dialects, grouped by wire format."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", id="providers.open",
                tooltip="Open this provider's answer as a simulated session"),
        Binding("L", "screen.play", "play live", id="providers.play",
                tooltip="Play this row live: the app starts the provider, asks it and shows the turn; no key"),
        Binding("l,right", "screen.scenario(1)", "scenario", tooltip="The next scenario", id="providers.next"),
        Binding("h,left", "screen.scenario(-1)", "Previous scenario", show=False, tooltip="The previous scenario",
                id="providers.previous"),
    ]
    list_lines: reactive[Sequence[dialect_lines.ListEntry]] = reactive((), init=False)
    dialect = ""
    """The dialect that the operator selected; the cursor stays on its line when lines are folded."""
    early = 0
    """The rows by which the cursor was moved before any rows had arrived."""

    def action_move(self, by: int) -> None:
        """Moves the cursor by rows; a move before rows have arrived is made when they arrive."""
        if self.list_lines:
            super().action_move(by)
        else:
            self.early += by

    def take_early_moves(self) -> None:
        """Makes the moves of the cursor that came before the rows."""
        moves, self.early = self.early, 0
        for _ in range(abs(moves)):
            super().action_move(1 if moves > 0 else -1)

    def choose(self, index: int) -> None:
        """Stores the dialect that the operator selected."""
        self.cursor = index
        self.dialect = self.current_entry.row.name if self.current_entry is not None else ""

    @property
    def count(self) -> int:
        """The number of dialects and headings."""
        return len(self.list_lines)

    def selectable(self, index: int) -> bool:
        """Whether the row is a dialect; the cursor skips headings."""
        return isinstance(self.list_lines[index], TableEntry)

    @property
    def current_entry(self) -> TableEntry | None:
        """The current dialect."""
        found = self.list_lines[self.cursor] if self.cursor < len(self.list_lines) else None
        return found if isinstance(found, TableEntry) else None

    @property
    def column_layout(self) -> dialect_lines.ColumnLayout:
        """The visible columns."""
        found = [each for each in self.list_lines if isinstance(each, TableEntry)]
        return dialect_lines.layout(found, self.scrollable_content_region.width - 2)

    def watch_list_lines(self) -> None:
        """Redraws for other dialects or another width."""
        self.headings = [at for at in range(self.count) if not self.selectable(at)]
        self._laid = self.column_layout

    def row(self, index: int) -> Line:
        """A dialect, or a heading."""
        paint = paint_of(self.app)
        here = self.cursor_mark(index)
        line = dialect_lines.line(self.list_lines[index], self._laid, paint.measure, paint.mark)
        return (here, *mark_matches(line, self.needle))

    def find(self, by: int, again: bool) -> bool:
        """Moves the cursor to a dialect that contains the needle."""
        found = dialect_lines.find(self.list_lines, self.needle, self.cursor, by, again)
        if found is not None:
            self.choose(found)
        return found is not None


class ProvidersScreen(TableScreen):
    """The dialects under one scenario, budget and policy."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "scenarios", "scenarios", id="providers.scenario",
                tooltip="Choose what the model intends to answer"),
        Binding("+,=", "budget(1)", "budget", tooltip="A larger budget; all run again", id="providers.more"),
        Binding("-", "budget(-1)", "Less", show=False, tooltip="A smaller budget; all run again", id="providers.less"),
        Binding(":", "type_budget", "Budget", show=False, id="providers.budget",
                tooltip="Type a budget, or a command's name; empty for the scenario's own budget"),
        Binding("p", "policies", "policy", tooltip="Choose the policy that decides", id="providers.policy"),
        Binding("e", "each", "unfold", tooltip="One line for each dialect, or one for all that say the same",
                id="providers.each"),
    ]

    def __init__(self, settings: Settings) -> None:
        self._dialects = DialectTable(id="dialects")
        super().__init__(self._dialects)
        self.table_query = TableQuery(settings=settings)
        self._rows: tuple[TableRow, ...] = ()
        self._answered: TableQuery | None = None
        """The query that the rows answer."""
        self._busy = False

    # -- asking --------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Computes the first scenario."""
        self._ask(self.table_query)

    def _ask(self, query: TableQuery) -> None:
        """Runs the dialects for a query; while one runs, only the latest query waits."""
        self.table_query = query
        if not self._busy:
            self._busy = True
            self._answer(query)
        self.show_row()

    @work(thread=True)
    def _answer(self, query: TableQuery) -> None:
        self.call_later(self._take_rows, query, query.rows())

    def _take_rows(self, query: TableQuery, rows: tuple[TableRow, ...]) -> None:
        self._busy = False
        self._rows, self._answered = rows, query
        self._fold()
        if self._same_rows(query) != self._same_rows(self.table_query):
            self._ask(self.table_query)

    @staticmethod
    def _same_rows(query: TableQuery) -> TableQuery:
        return replace(query, each=False)

    def _fold(self) -> None:
        """Computes the lines of the list; the cursor stays on its dialect."""
        rows = self._dialects
        rows.list_lines = dialect_lines.list_lines(entries(self._rows, self.table_query.each))
        rows.cursor = dialect_lines.place_of(rows.list_lines, rows.dialect)
        rows.take_early_moves()
        self.show()

    # -- what is shown -------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Redraws the rows after a change of data or size."""
        self._dialects.watch_list_lines()
        super().show()

    def head(self) -> Sequence[Line]:
        """The scenario, its result, the names of the columns."""
        query, width = self.table_query, max(0, self.size.width - 2)
        scenario = query.scenario
        number = f" {list(SCENARIOS).index(scenario.name) + 1}/{len(SCENARIOS)}  "
        title = (Span(scenario.name, Tone.TITLE), Span(number, Tone.DIM), Span(scenario.title))
        budget = (Span(f"{query.limit:,} tokens", Tone.STRONG), Span(" ESTIMATED  ", Tone.DIM),
                  Span("SIMULATED", Tone.WARN))
        found: list[Line] = [spread_ends(title, budget, width)]
        if self._answered is None:
            return [*found, (Span("every dialect is run…", Tone.DIM),)]
        return [*found, *outcome(self._rows, self._answered.settings.policy.name),
                (Span("  "), *dialect_lines.titles(self._dialects.column_layout))]

    def detail(self) -> LineSheet:
        """All details of the current dialect."""
        entry = self._dialects.current_entry
        return sheet(entry.row, entry.equal_rows) if entry is not None else LineSheet([])

    def command(self) -> str:
        """The command line that prints the same table."""
        return self.table_query.command()

    def files(self) -> Mapping[str, str]:
        """The table as text in a wide terminal's form, and as JSON."""
        if not self._rows:
            return {}
        policy, name = self.table_query.settings.policy, f"providers-{self.table_query.scenario.name}"
        table = document(self._rows, self.table_query.scenario, policy)
        return {f"{name}.txt": text(self._rows, policy, 160, self.table_query.each),
                f"{name}.json": json.dumps(table, indent=1) + "\n"}

    # -- keys ----------------------------------------------------------------------------------------------------

    def action_scenario(self, by: int) -> None:
        """Goes to the next or previous scenario."""
        self._ask(self.table_query.shift_scenario(by))

    def action_scenarios(self) -> None:
        """Asks for a scenario."""
        rows = [(each.name, each.title) for each in SCENARIOS.values()]
        start = list(SCENARIOS).index(self.table_query.scenario.name)
        ask_operator(self.app, Choose("Scenario: what the model intends to answer", rows, start),
                     lambda name: self._ask(replace(self.table_query, scenario=SCENARIOS[name], budget=None)))

    def action_budget(self, by: int) -> None:
        """Chooses a larger or smaller budget."""
        self._ask(self.table_query.shift_budget(by))

    def action_type_budget(self) -> None:
        """Asks for a budget or a command."""
        what = f"a budget of 1 to {MOST:,} tokens, empty for {self.table_query.scenario.budget:,}"
        ask_line(self, "providers.budget", what, self._budget_typed)

    def _budget_typed(self, line: str) -> Act | None:
        budget = whole_number(line)
        if not 1 <= budget <= MOST if budget is not None else line.strip()[:1].isdecimal():
            raise CallerError(f"{in_quotes(line)} is not a budget: expected 1 to {MOST:,}")
        known = budget is not None or not line.strip()
        return partial(self._ask, replace(self.table_query, budget=budget)) if known else None

    def action_policies(self) -> None:
        """Asks for a policy."""
        names = list(POLICIES)
        current = self.table_query.settings.policy.name
        choice = Choose("Policy: the loop that decides", [(each.name, each.title) for each in POLICIES.values()],
                        names.index(current) if current in names else 0)
        ask_operator(self.app, choice, self._policy_chosen)

    def _policy_chosen(self, name: str) -> None:
        self._ask(replace(self.table_query, settings=replace(self.table_query.settings, policy=preset(name))))

    def action_each(self) -> None:
        """Folds or unfolds equal dialects."""
        self.table_query = replace(self.table_query, each=not self.table_query.each)
        self._fold()
        self.note = "every dialect has its line" if self.table_query.each else "dialects with equal values share a line"

    def _selected_row(self) -> DialectRow | None:
        """The row at the cursor if it can be opened; else None, with the reason shown."""
        entry = self._dialects.current_entry
        query = self._answered
        if entry is None or query is None or self._same_rows(query) != self._same_rows(self.table_query):
            self.note = "the dialects are still being run: try again"
            return None
        if not isinstance(entry.row, DialectRow):
            self.note = f"{entry.row.why}: there is no session to open"
            return None
        return entry.row

    def action_play(self) -> None:
        """Plays the row live: first its own bytes, then the scripted server's answers to the engine's requests."""
        row = self._selected_row()
        if row is not None:
            self.note = f"playing {row.name}…"  # the server takes a moment to start
            self.call_after_refresh(self._play, row)

    def _play(self, row: DialectRow) -> None:
        from inspector.live.scripted import row_turn

        self.note = ""
        try:
            self.post_message(LiveWanted(row_turn(row, self.table_query.settings)))
        except LoopError as why:
            self.note = str(why)

    @on(RowOpened)
    def _row_opened(self, message: RowOpened) -> None:
        """Opens the dialect's answer as a session on a new screen."""
        message.stop()
        row = self._selected_row()
        if row is None or self._answered is None:
            return
        title = f"no provider was asked: {row.play.scenario.name}, {row.name.replace('/', ' ')}"
        self.post_message(SessionWanted(OpenSession(
            (path_of(row),), row.run.case, run_of("original", row_view(row)), title, self._answered.command_for(row))))
