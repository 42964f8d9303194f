"""Running: other settings, from the start or from this step; going between the runs, and any two side by side.

Further down: comparing; tuning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.config.settings import command
from inspector.report.lines.spans import one_line
from inspector.report.lines.steps import NO_REMARKS
from inspector.tui.opening import Reading
from inspector.tui.session.again import Again
from inspector.tui.widgets.bars import Verdict
from loop_core.errors import LoopError
from loop_core.turn.policy import STRICT

if TYPE_CHECKING:
    from inspector.tui.screens.limits import Chosen
    from inspector.tui.tuned import Table
    from inspector.whatif.policies import Matrix
    from inspector.whatif.policies_report import Place


class Running(Again):
    """Which run is looked at."""

    TITLE_OF_KEYS = "What if"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "limits", "limits", id="limits",
                tooltip="Edit limits, policy, profile, seam rule or method and run again"),
        Binding("F", "advice", "advice", id="advice",
                tooltip="Follow the advice of this turn, else the one above: run with the settings that were tried"),
        Binding("E", "limits_from_here", "From here", show=False, id="limits.here",
                tooltip="The same from this step on: what came before stays"),
        Binding("o", "run(1)", "runs", tooltip="The next run: the original and its branches", id="run.next"),
        Binding("O", "run(-1)", "Run before", show=False, tooltip="The run before", id="run.previous"),
        Binding("R", "tree", "Runs", show=False, id="runs",
                tooltip="All runs as a tree: go to one, lay two side by side, take one away"),
        Binding("r", "rerun", "Run again", show=False, tooltip="Run again now with the limits of this run", id="rerun"),
        Binding("Y", "copy_command", "command", id="copy.command",
                tooltip="Copy the command line that makes this run headless"),
    ]

    def action_limits(self) -> None:
        """Opens the form."""
        self._form(None)

    def action_limits_from_here(self) -> None:
        """Opens the form for what follows this step."""
        self._form(self.step)

    def _form(self, since: int | None) -> None:
        from inspector.tui.screens.limits import LimitsForm

        if self.run.view.steps:
            form = LimitsForm(self.runs.every, self.runs.index, self.step, since)
            self.app.push_screen(form, lambda chosen: self._limits_chosen(chosen, since))

    def _limits_chosen(self, chosen: Chosen | None, since: int | None) -> None:
        if chosen is not None and chosen.live:
            self.ask_live(chosen.assignments, since)
        elif chosen is not None:
            self._branch(chosen.assignments, since)

    def action_advice(self) -> None:
        """Makes the run that the advice was tried with: that of the turn in hand, else the one at the top."""
        view = self.run.view
        if not view.steps or view.worst is None:
            return
        here = view.turn_of(self.step)
        turn = here if here.verdict.advice is not None else view.worst
        advice, number = turn.verdict.advice, view.number(turn)
        if advice is None:
            self.note = f"turn {number}: nothing to change"
        elif advice.set is not None:
            self._branch(dict(advice.set))
        else:
            how = " · e, source live, asks" if advice.live else ""
            self.note = f"turn {number}, not tried: {one_line(advice.text)}{how}"

    def action_rerun(self) -> None:
        """Runs again with the limits of this run: the same recording gives the same run."""
        self._branch({})

    def _branch(self, assignments: dict[str, str], since: int | None = None) -> None:
        """Makes a branch, or goes to the run that has these settings already."""
        try:
            index, new = self.runs.under(assignments, since)
        except LoopError as why:
            self.note = str(why)
            return
        if not new:
            self._switch(index)
            self.note = f"run {self.run.name}: these limits were run already, and a recording gives the same again"
            return
        self.show_run(index)

    def show_run(self, index: int) -> None:
        """Goes to a run that was made, beside the one that it was made from."""
        self.against = "run"
        self._switch(index, "diff")
        self._land()

    def _land(self) -> None:
        """Puts the cursor on the end of the turn that a new branch has changed, and says how it ends."""
        from inspector.whatif import branch_lines as whatif

        made = self.run.branch
        turn = whatif.turn_of(made) if made is not None else None
        if turn is None:
            self.note = self.lost_or(f"run {self.run.name}: nothing differs")
            return
        self.step = turn.run.decided
        number, end = self.run.view.number(turn), whatif.ending(turn)
        self.note = self.lost_or(f"run {self.run.name}: turn {number} ends in {end} · o goes between runs")

    def action_copy_command(self) -> None:
        """Copies the command line of this run."""
        reading = self._reading
        self._copy(self._runnable(self.runs.command(reading.api, reading.profile)))

    @property
    def _reading(self) -> Reading:
        found: Reading | None = getattr(self.app, "reading", None)
        return found or Reading()

    def _runnable(self, command: str) -> str:
        """A command over the paths of the session, after the one that makes them where they are no files yet."""
        return f"{self.opened.before} && {command}" if self.opened.before else command

    def action_run(self, by: int) -> None:
        """Shows another run."""
        count = len(self.runs.every)
        if count == 1:
            self.note = "there is only the original run; e makes another"
            return
        self._switch((self.runs.index + by) % count)
        self.note = f"run {self.runs.index + 1} of {count}: {self.run.name}"

    def action_tree(self) -> None:
        """Opens the tree of runs."""
        from inspector.tui.screens.tree import RunTree

        self.app.push_screen(RunTree(self.runs), self._tree_left)

    def _tree_left(self, chosen: tuple[str, int] | None) -> None:
        """Goes to the run that was chosen, or lays it beside the one that is looked at."""
        word, index = chosen or ("stay", self.runs.index)
        if word == "beside":
            self._beside(index)
            return
        self._switch(index)
        if chosen is not None:
            self.note = f"run {self.runs.index + 1} of {len(self.runs.every)}: {self.run.name}"

    def _beside(self, index: int) -> None:
        from inspector.tui.screens.tree import Beside

        left, right = self.runs.tree.every[index], self.runs.node
        if left is right and right.parent is not None:
            left = right.parent
        self.app.push_screen(Beside(self.runs.tree.beside(right, left), left.path, right.path), self._step_chosen)

    def _step_chosen(self, step: int | None) -> None:
        if step is not None:
            self._go(step, "")

    def _switch(self, index: int, tab: str | None = None) -> None:
        """Another run; the cursor stays on its step as far as the run has it."""
        self.runs.index = index
        run = self.run
        # The step first: clamped, it stands in both runs.
        self.step = min(self.step, max(0, len(run.view.steps) - 1))
        self.remarks = self.of_run.get(self.runs.node.key, NO_REMARKS)
        self.outline = run.outline
        verdict = self.query_one(Verdict)
        verdict.run, verdict.view = run.name, run.view
        if tab is not None:
            self.listing = False
            self.tab = tab
        self._mark_tab()
        self._show()


# -- Comparing -------------------------------------------------------------------------------------------------------
# The run under every policy, and one answer from every provider, each on a screen of its own.


class Comparing(Running):
    """Side by side."""

    TITLE_OF_KEYS = "Side by side"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "policies", "policies", id="policies",
                tooltip="Policies by turns: what each loop would have run, held, continued or lost"),
        Binding("P", "providers", "providers", id="providers",
                tooltip="Providers side by side: one answer as each would tell of it"),
    ]

    def action_policies(self) -> None:
        """Lays the session under every policy, with the other settings of this run, from the first step on."""
        from inspector.tui.screens.policies import PoliciesScreen

        settings, reading = replace(self.run.view.replay.settings, policy=STRICT), self._reading
        twin = command(self.runs.paths, settings, reading.api, reading.profile, verb="policies")
        run = self.run.name + (", from the first step on" if self.run.view.replay.since else "")
        self.app.push_screen(
            PoliciesScreen(self.runs.case, settings, run, self._runnable(twin)), self._policy_chosen)

    def _policy_chosen(self, chosen: tuple[Matrix, Place] | None) -> None:
        """Runs the session under the policy of a cell, and goes to where that parts from strict in the cell's turn."""
        if chosen is None:
            return
        from inspector.whatif import policies_report as lines

        made, place = chosen
        index, _ = self.runs.under(lines.assignments(made, place), 0)
        self.against = "run"
        self._switch(index, "diff" if self.runs.every[index].branch is not None else None)
        self._go(lines.step_at(made, place), "")
        cell, turn = made.rows[place[0]][place[1]], place[0] + 1
        parts = "nothing differs from strict" if cell.step is None else "here it parts from strict"
        self.note = self.lost_or(f"run {self.run.name}: turn {turn}: {cell.decision.word} · {parts}")

    def action_providers(self) -> None:
        """One intended answer as every provider tells of it."""
        from inspector.tui.screens.providers import ProvidersScreen

        self.app.push_screen(ProvidersScreen(self._reading.settings))


# -- Tuning ----------------------------------------------------------------------------------------------------------
# A grid of limits over the session on a screen of its own; a cell comes back as a run.


class Tuning(Running):
    """What would have been enough."""

    TITLE_OF_KEYS = "What if"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "tune", "tune", id="tune",
                tooltip="Run the session under a grid of limits: what would have been enough"),
    ]
    _table: Table | None = None
    """The grid that was looked at last."""

    def action_tune(self) -> None:
        """Opens the grid over this run; from a run that was one of its cells, the same grid again."""
        if not self.run.view.steps:
            self.note = "there is nothing to tune: no turn was read"
            return
        from inspector.export.write import name_of
        from inspector.tui.screens.tune import TuneScreen
        from inspector.tui.tuned import Table

        view, node = self.run.view, self.runs.node
        if self._table is None or node.key not in (self._table.run, *self._table.opened):
            whole = ", from the first step on" if view.replay.since else ""
            self._table = Table(self.runs.case, view.replay.settings, node.key, f"{node.path}{whole}")
            self._table.paths, self._table.before, self._table.name = (
                self.runs.paths, self.opened.before, name_of(view))
        self.app.push_screen(TuneScreen(self._table), self._cell_chosen)

    def _cell_chosen(self, cell: int | None) -> None:
        """Goes to the run of a cell, where it first differs."""
        if cell is None or self._table is None:
            return
        nodes = self.runs.tree.every
        self.runs.index = next((at for at, node in enumerate(nodes) if node.key == self._table.run), 0)
        index, _ = self.runs.with_settings(self._table.grid.settings(cell), 0)
        self._table.opened.add(nodes[index].key)
        made = self.runs.every[index].branch
        self.against = "run"
        self._switch(index, "diff" if made is not None else None)
        if made is None or made.difference is None:
            self.note = self.lost_or("nothing differs · u goes back to the grid")
            return
        self._go(made.difference, "")
        turn = self.run.view.turn_of(self.step)
        self.note = self.lost_or(f"turn {self.run.view.number(turn)} parts here · u goes back to the grid")
