"""The runs of a session, a line each: how the turn in question ends in it, and where it parts from the original."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.report.lines.spans import Line
from inspector.tui.opening import Run
from inspector.tui.widgets.panel import Panel
from inspector.whatif.lines import run_line, turn_of


class Runs(Panel):
    """A list without a cursor."""

    def __init__(self, runs: Sequence[Run], current: int, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._runs, self._current = runs, current
        self.styles.height = len(runs)

    def make(self, width: int) -> Sequence[Line]:
        """One line a run."""
        asked = next((turn for run in self._runs if run.branch and (turn := turn_of(run.branch)) is not None), None)
        return [
            run_line(run.name, run.view, asked, run.branch, index == self._current)
            for index, run in enumerate(self._runs)
        ]
