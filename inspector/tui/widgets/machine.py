"""The machine beside the text: the drawing with the path taken, what led here, and where it goes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from textual.reactive import reactive

from inspector.report.lines import machine
from inspector.report.lines.outline import Block, Outline
from inspector.report.lines.spans import EMPTY, Line, Role, Span
from inspector.tui.widgets.panel import Panel
from loop_core.turn import State


class MachinePanel(Panel):
    """The drawing for the step at hand."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    step: reactive[int] = reactive(0, init=False, repaint=False)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._counted: tuple[Outline, Block, int] | None = None
        self._visits: Counter[State] = Counter()

    def watch_outline(self) -> None:
        """Another run."""
        self.changed()

    def watch_step(self) -> None:
        """Another step."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """The drawing and the moves."""
        if self.outline is None or not self.outline.view.steps:
            return ()
        steps = self.outline.view.steps
        step, block = steps[self.step], self.outline.block_of(self.step)
        following = steps[self.step + 1] if self.step + 1 < block.end else None
        drawing = machine.panel(step, self._visited(block))
        return [(Span("MACHINE", Role.TITLE),), *drawing, EMPTY, *machine.moves(step, following)]

    def _visited(self, block: Block) -> Counter[State]:
        """How often each state was entered; one step further costs one addition."""
        assert self.outline is not None  # noqa: S101 - `make` has looked
        steps = self.outline.view.steps
        known = self._counted
        if known is not None and known[0] is self.outline and known[1] is block and abs(known[2] - self.step) == 1:
            moved = max(known[2], self.step)
            self._visits[steps[moved].state] += 1 if self.step > known[2] else -1
        else:
            self._visits = machine.visits(steps, block.first, self.step)
        self._counted = (self.outline, block, self.step)
        return self._visits
