"""The policy matrix screen: every turn of the run under every policy; a cell opens as a branch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.reactive import reactive

from inspector.config.settings import Settings
from inspector.replay.case import Case
from inspector.report.lines.header import FIDELITY
from inspector.report.lines.spans import Line, LineSheet, Span, Tone, count_of, mark_matches, safe, spread_ends
from inspector.sessions import redact
from inspector.tui.lists import CursorTable, TableScreen
from inspector.tui.messages import NO_FILTER, RowOpened
from inspector.whatif import policies_lines as lines
from inspector.whatif.policies import Matrix, matrix

ROOMY = 100
"""The width in columns from which the head has the counts of complete turns; on a narrower screen the details do."""


class PolicyTable(CursorTable):
    """Turns by policies, with a cursor on a cell."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", id="policies.open",
                tooltip="Run the session under this policy, at the step from which it differs from strict"),
        Binding("h,left", "policy(-1)", "Previous policy", show=False, tooltip="The previous policy",
                id="policies.left"),
        Binding("l,right", "policy(1)", "Next policy", show=False, tooltip="The next policy", id="policies.right"),
        Binding("}", "differing(1)", "next that differs", id="policies.next",
                tooltip="The next cell in which a policy differs from strict"),
        Binding("{", "differing(-1)", "Differs before", show=False, id="policies.previous",
                tooltip="The previous cell in which a policy differs from strict"),
        Binding("e", "each", "unfold", id="policies.each",
                tooltip="One line for each turn, or one for all in which the policies agree"),
    ]
    matrix: reactive[Matrix | None] = reactive(None, init=False)
    policy: reactive[int] = reactive(0, init=False)
    origin: int | None = None
    """The turn from which the screen was opened."""
    each = False
    """Whether each turn in which all policies agree has its own line."""
    entries: Sequence[range] = ()
    """The turns of each line."""

    def watch_matrix(self) -> None:
        """Moves the cursor to a turn in which the policies differ."""
        if self.matrix is not None:
            self.fold(self.each, lines.opening_turn(self.matrix, self.origin))

    def fold(self, each: bool, turn: int) -> None:
        """Folds or unfolds turns in which all policies agree; moves the cursor to a turn."""
        if self.matrix is not None:
            self.each, self.entries = each, lines.fold_turns(self.matrix, each)
            self.cursor = self.line_of(turn)
            self.fit_rows()

    def line_of(self, turn: int) -> int:
        """The line of a turn."""
        return next((at for at, turns in enumerate(self.entries) if turn in turns), 0)

    @property
    def turns(self) -> range:
        """The turns at the cursor."""
        return self.entries[self.cursor] if self.cursor < len(self.entries) else range(1)

    @property
    def here(self) -> lines.Place:
        """The current cell."""
        return self.turns[0], self.policy

    def layout_of(self, matrix: Matrix) -> lines.Layout:
        """The visible policies."""
        return lines.layout(matrix, self.scrollable_content_region.width, self.policy)

    def row(self, index: int) -> Line:
        """A turn under every policy, or a group of turns."""
        if self.matrix is None:
            return ()
        turns = self.entries[index]
        if len(turns) > 1:
            return mark_matches(lines.fold_line(self.matrix, turns, here=index == self.cursor), self.needle)
        return mark_matches(lines.row(self.matrix, turns[0], self.here, self.layout_of(self.matrix)), self.needle)

    def go(self, place: lines.Place | None) -> bool:
        """Moves the cursor to a cell, if there is one."""
        if place is None:
            return False
        if len(self.entries[self.line_of(place[0])]) > 1:
            self.fold(True, place[0])
        self.cursor, self.policy = self.line_of(place[0]), place[1]
        return True

    def action_each(self) -> None:
        """Folds or unfolds the turns in which all policies agree."""
        self.fold(not self.each, self.turns[0])
        if isinstance(self.screen, TableScreen):
            self.screen.show()
            self.screen.note = ("every turn has its line" if self.each else
                                "turns in which all policies agree share a line")

    def find(self, by: int, again: bool) -> bool:
        """Moves the cursor to a cell that contains the needle."""
        return self.matrix is not None and self.go(lines.find(self.matrix, self.needle, self.here, by, again))

    def action_policy(self, by: int) -> None:
        """Moves the cursor to another policy."""
        if self.matrix is not None:
            self.policy = min(max(0, self.policy + by), len(self.matrix.policies) - 1)

    def action_differing(self, by: int) -> None:
        """Moves the cursor to another cell that differs from strict."""
        found = self.matrix is not None and self.go(lines.next_difference(self.matrix, self.here, by))
        if not found and isinstance(self.screen, TableScreen):
            where = "after" if by > 0 else "before"
            self.screen.note = f"every policy does the same as strict {where} this cell"

    def on_click(self, event: Click) -> None:
        """Selects the clicked policy; the list moves to the row, and a second click opens it."""
        if self.matrix is not None and int(self.scroll_offset.y) + event.y < self.count:
            found = lines.policy_at(self.layout_of(self.matrix), event.x - self.gutter.left)
            self.policy = self.policy if found is None else found


class PoliciesScreen(TableScreen):
    """The matrix of one run."""

    def __init__(
        self, case: Case, settings: Settings, run: str, command: str, turn: int | None, past_filter: bool
    ) -> None:
        self._cells = PolicyTable(id="cells")
        self._cells.origin = turn
        super().__init__(self._cells)
        self._case, self._settings, self._run, self._command = case, settings, run, command
        self._past_filter = past_filter
        """Whether the table of turns from which the screen was opened has a filter."""

    def on_mount(self) -> None:
        """Runs the session under every policy in a thread, because a long session takes a moment."""
        self.watch(self._cells, "policy", self.show_row, init=False)
        self._make()

    @work(thread=True)
    def _make(self) -> None:
        self.call_later(self._take_matrix, matrix(self._case, self._settings))

    def _take_matrix(self, matrix: Matrix) -> None:
        self._cells.matrix = matrix
        self.show()

    def head(self) -> Sequence[Line]:
        """The run, and the names of the policies."""
        policy_matrix, width = self._cells.matrix, max(0, self.size.width - 2)
        title = Span("Policies by turns", Tone.TITLE)
        if policy_matrix is None:
            return [(title, Span("  running the session under every policy…", Tone.DIM))]
        if not policy_matrix.rows:
            return [(title, Span("  no turns: nothing was read", Tone.WARN))]
        every, laid = len(policy_matrix.policies), self._cells.layout_of(policy_matrix)
        left_out = laid.size < every and not self._past_filter  # there is no room for both
        counts = f"  {count_of(len(policy_matrix.rows), 'turn')}" + (
            "" if left_out else f" under {count_of(every, 'policy', 'policies')}")
        if self._past_filter:
            counts = f"  all {count_of(len(policy_matrix.rows), 'turn')}, {NO_FILTER}"
        elif width >= ROOMY:
            policy = policy_matrix.policies[self._cells.policy].name
            counts += f", {policy_matrix.complete(self._cells.policy):,} complete under {policy}"
        sight = (Span(f"{laid.size} of {every} policies ← →  ", Tone.KEY),) if left_out else ()
        run = (*sight, Span("run ", Tone.DIM), safe(self._run), Span("  "),
               Span(policy_matrix.fidelity.value, FIDELITY[policy_matrix.fidelity]))
        return [spread_ends((title, Span(counts, Tone.DIM)), run, width),
                *lines.column_heads(policy_matrix, laid)]

    def detail(self) -> LineSheet:
        """The details of the current cell."""
        policy_matrix, turns = self._cells.matrix, self._cells.turns
        if policy_matrix is None:
            return LineSheet([])
        if len(turns) > 1:
            return lines.fold_sheet(policy_matrix, turns)
        return lines.sheet(policy_matrix, self._cells.here)

    def command(self) -> str:
        """The command line that prints the same matrix."""
        return self._command

    def files(self) -> Mapping[str, str]:
        """The matrix in each form that `inspector policies` prints."""
        policy_matrix = self._cells.matrix
        if policy_matrix is None:
            return {}
        return {"policies.txt": redact.text(lines.text(policy_matrix)),
                "policies.csv": lines.as_csv(policy_matrix),
                "policies.json": json.dumps(redact.texts(lines.values(policy_matrix)), indent=1) + "\n"}

    @on(RowOpened)
    def _open_row(self, message: RowOpened) -> None:
        message.stop()
        if len(self._cells.turns) > 1:
            self._cells.action_each()
        elif self._cells.count:
            self.dismiss((self._cells.matrix, self._cells.here))
