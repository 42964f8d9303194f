"""The step list: every step of the session under its turn, the cursor on the one that all other views show."""

from __future__ import annotations

from textual.reactive import reactive

from inspector.report.lines import steps
from inspector.report.lines.outline import Outline
from inspector.report.lines.spans import Line, text_of
from inspector.report.lines.steps import NO_REMARKS, Remarks
from inspector.tui.messages import StepMoved, StepWanted
from inspector.tui.widgets.rows import RowList


class StepList(RowList):
    """The list; `outline` and `step` come from the screen."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    step: reactive[int] = reactive(0, init=False, repaint=False)
    remarks: reactive[Remarks] = reactive(NO_REMARKS, init=False)

    @property
    def count(self) -> int:
        """Steps and headings."""
        return self.outline.rows if self.outline is not None else 0

    def row(self, index: int) -> Line:
        """A step or the heading of a turn."""
        return steps.row(self.outline, index, self.step, self.remarks) if self.outline is not None else ()

    def selectable(self, index: int) -> bool:
        """Headings are passed over."""
        return self.outline is not None and self.outline.at(index)[1] is not None

    def wanted(self, index: int) -> None:
        """Asks for the step of a row."""
        step = self.outline.at(index)[1] if self.outline is not None else None
        if step is not None:
            self.post_message(StepWanted(step))

    def action_move(self, by: int) -> None:
        """Moves by steps; headings are passed over."""
        self.post_message(StepMoved(by))

    def action_page(self, by: int) -> None:
        """Moves by pages."""
        self.post_message(StepMoved(by * max(1, self.size.height - 1)))

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

    def find(self, needle: str, direction: int, again: bool) -> int | None:
        """The next step whose line holds `needle`, round the end if need be; None where none does."""
        if self.outline is None:
            return None
        count = len(self.outline.view.steps)
        start = self.step + (direction if again else 0)
        for far in range(count):
            step = (start + far * direction) % count
            if needle.lower() in text_of(steps.step_line(self.outline.view, step, self.step, self.remarks)).lower():
                return step
        return None

    def copied(self) -> str:
        """The line at the cursor."""
        return text_of(self.row(self.cursor)).strip()
