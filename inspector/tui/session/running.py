"""Running: other limits, and going between the runs."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from inspector.tui.opening import Reading
from inspector.tui.session.base import Base
from inspector.tui.widgets.verdict import Verdict

RUNNING_KEYS: list[BindingType] = [
    Binding("e", "limits", "limits", tooltip="Edit the limits and run again", id="limits"),
    Binding("o", "run(1)", "runs", tooltip="The next run: the original and its branches", id="run.next"),
    Binding("O", "run(-1)", "Run before", show=False, tooltip="The run before", id="run.previous"),
    Binding("r", "rerun", "Run again", show=False, tooltip="Run again now with the limits of this run", id="rerun"),
    Binding("Y", "copy_command", "command", id="copy.command",
            tooltip="Copy the command line that makes this run headless"),
]


class Running(Base):
    """Running."""

    TITLE_OF_KEYS = "What if"
    BINDINGS: ClassVar[list[BindingType]] = RUNNING_KEYS

    def action_limits(self) -> None:
        """Opens the form."""
        from inspector.tui.screens.limits import LimitsForm

        if self.run.view.steps:
            self.app.push_screen(LimitsForm(self.runs.every, self.runs.index, self.step), self._limits_chosen)

    def _limits_chosen(self, assignments: dict[str, str] | None) -> None:
        if assignments is not None:
            self._branch(assignments)

    def action_rerun(self) -> None:
        """Runs again with the limits of this run: the same recording gives the same run."""
        self._branch({})

    def _branch(self, assignments: dict[str, str]) -> None:
        """Makes a branch, or goes to the run that has these settings already."""
        index, new = self.runs.under(assignments)
        if not new:
            self._switch(index)
            self.note = f"run {self.run.name}: these limits were run already, and a recording gives the same again"
            return
        self.against = "run"
        self._switch(index, "diff")
        self._land()

    def _land(self) -> None:
        """Puts the cursor on the end of the turn that a new branch has changed, and says how it ends."""
        from inspector.whatif import lines as whatif

        made = self.run.branch
        turn = whatif.turn_of(made) if made is not None else None
        if turn is None:
            self.note = f"run {self.run.name}: nothing differs"
            return
        self.step = turn.run.decided
        number, end = self.run.view.number(turn), whatif.ending(turn)
        self.note = f"run {self.run.name}: turn {number} ends in {end} · o goes between runs"

    def action_copy_command(self) -> None:
        """Copies the command line of this run."""
        reading: Reading | None = getattr(self.app, "reading", None)
        self._copy(self.runs.command(reading.api, reading.profile) if reading is not None else self.runs.command())

    def action_run(self, by: int) -> None:
        """Shows another run."""
        count = len(self.runs.every)
        if count == 1:
            self.note = "there is only the original run; e makes another"
            return
        self._switch((self.runs.index + by) % count)
        self.note = f"run {self.runs.index + 1} of {count}: {self.run.name}"

    def _switch(self, index: int, tab: str | None = None) -> None:
        """Another run; the cursor stays on its step as far as the run has it."""
        self.runs.index = index
        run = self.run
        # The step first: clamped, it stands in both runs.
        self.step = min(self.step, max(0, len(run.view.steps) - 1))
        self.outline = run.outline
        verdict = self.query_one(Verdict)
        verdict.run, verdict.view = run.name, run.view
        if tab is not None:
            self.listing = False
            self.tab = tab
        self._mark_tab()
        self._show()
