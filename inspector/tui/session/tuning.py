"""Tuning: a grid of limits over the session on a screen of its own; a cell comes back as a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.tui.session.running import Running

if TYPE_CHECKING:
    from inspector.tui.tuned import Table


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
