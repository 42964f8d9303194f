"""The step list: every step of the session under its turn, the cursor on the one that all other views show."""

from __future__ import annotations

from textual.reactive import reactive

from inspector.report.lines import steps
from inspector.report.lines.outline import Outline
from inspector.report.lines.spans import Line, text_of
from inspector.tui.messages import StepWanted
from inspector.tui.widgets.rows import RowList


class StepList(RowList):
    """The list; `outline` and `step` come from the screen."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    step: reactive[int] = reactive(0, init=False, repaint=False)

    @property
    def count(self) -> int:
        """Steps and headings."""
        return self.outline.rows if self.outline is not None else 0

    def row(self, index: int) -> Line:
        """A step or the heading of a turn."""
        return steps.row(self.outline, index, self.step) if self.outline is not None else ()

    def selectable(self, index: int) -> bool:
        """Headings are passed over."""
        return self.outline is not None and self.outline.at(index)[1] is not None

    def wanted(self, index: int) -> None:
        """Asks for the step of a row."""
        step = self.outline.at(index)[1] if self.outline is not None else None
        if step is not None:
            self.post_message(StepWanted(step))

    def watch_outline(self) -> None:
        """Another run: other rows."""
        if self.outline is not None and self.is_mounted:
            self.set_reactive(StepList.cursor, self.outline.row_of(self.step))
            self.resized()
            self.show_cursor()

    def watch_step(self) -> None:
        """Moves the cursor to the step's row."""
        if self.outline is not None and self.outline.rows:
            self.cursor = self.outline.row_of(self.step)

    def find(self, needle: str, start: int, direction: int) -> int | None:
        """The next step whose line holds `needle`; None where there is none."""
        if self.outline is None:
            return None
        wanted, step = needle.lower(), start
        while 0 <= step < len(self.outline.view.steps):
            if wanted in text_of(steps.step_line(self.outline.view, step, self.step)).lower():
                return step
            step += direction
        return None

    def copied(self) -> str:
        """The line at the cursor."""
        return text_of(self.row(self.cursor)).strip()
