"""The widgets around the text of the session screen: tabs, machine, gauges and the step list."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Click
from textual.reactive import reactive

from inspector.report.lines import header, machine_drawing, steps
from inspector.report.lines.header import fidelity
from inspector.report.lines.spans import EMPTY, Line, Span, Tone, spread_ends, text_of, width_of, wrap_line
from inspector.report.lines.steps import NO_REMARKS, Outline, Remarks
from inspector.tui.key_words import TABS
from inspector.tui.lists import RowList
from inspector.tui.messages import ActionWanted, StepMoved, StepWanted, TabWanted
from inspector.tui.panels import StepPanel

# -- The machine beside the text -------------------------------------------------------------------------------------
# It shows the drawing with the path taken, the transition that led here, and the one that follows.


class MachinePanel(StepPanel):
    """The machine at the current step; in a single row, the transitions into and out of its state."""

    SHOWS = ("outline", "step")

    def make(self, width: int) -> Sequence[Line]:
        """The drawing and the transitions."""
        if self.outline is None or not self.outline.view.steps:
            return ()
        steps = self.outline.view.steps
        step, block = steps[self.step], self.outline.block_of(self.step)
        if self.size.height == 1:
            key = (Span("S ", Tone.PRESS), Span("machine  ", Tone.DIM))
            return [(*key, *machine_drawing.path_around(steps, block.first, self.step, block.end))]
        following = steps[self.step + 1] if self.step + 1 < block.end else None
        drawing = machine_drawing.panel(step, machine_drawing.visits(steps, block.first, self.step))
        moves = [row for move in machine_drawing.moves(step, following) for row in wrap_line(move, width)]
        return [(Span("MACHINE", Tone.TITLE),), *drawing, EMPTY, *moves]

    def on_click(self, event: Click) -> None:
        """Unfolds the panel if it is a single row."""
        if self.size.height == 1 and self.clicked_key(event) is None:
            self.post_message(ActionWanted("screen.machine", self.screen))


# -- The gauges ------------------------------------------------------------------------------------------------------
# Each gauge shows what the turn has spent of one of the four limits.


class SpentPanel(StepPanel):
    """Four gauges for the current step."""

    SHOWS = ("outline", "step")

    def make(self, width: int) -> Sequence[Line]:
        """A title and the gauges."""
        if self.outline is None or not self.outline.view.steps:
            return ()
        view = self.outline.view
        gauges = header.gauges(view.effective_step(self.step).turn, width)
        return [header.spent_title(view, view.turn_of(self.step)), *gauges]


# -- The step list ---------------------------------------------------------------------------------------------------
# It lists every step under its turn; the other views show the step at the cursor.


class StepList(RowList):
    """The list; `outline` and `step` come from the screen."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    step: reactive[int] = reactive(0, init=False, repaint=False)
    remarks: reactive[Remarks] = reactive(NO_REMARKS, init=False)

    @property
    def count(self) -> int:
        """The number of steps and headings."""
        return self.outline.rows if self.outline is not None else 0

    def row(self, index: int) -> Line:
        """A step or the heading of a turn."""
        if self.outline is None:
            return ()
        return steps.row(self.outline, index, self.step, self.remarks, self.scrollable_content_region.width)

    def selectable(self, index: int) -> bool:
        """Whether the row is a step; the cursor skips headings."""
        return self.outline is not None and self.outline.at(index)[1] is not None

    def choose(self, index: int) -> None:
        """Requests the step of a row."""
        step = self.outline.at(index)[1] if self.outline is not None else None
        if step is not None:
            self.post_message(StepWanted(step))

    def action_move(self, by: int) -> None:
        """Moves the cursor by steps, skipping headings."""
        self.post_message(StepMoved(by))

    def action_edge(self, by: int) -> None:
        """Moves the cursor to the first or last step."""
        self.post_message(StepMoved(by * max(1, self.count)))

    def action_page(self, by: int) -> None:
        """Moves the cursor by pages."""
        self.post_message(StepMoved(by * max(1, self.size.height - 1)))

    def watch_outline(self) -> None:
        """Shows the rows of another run."""
        if self.outline is not None and self.is_mounted:
            self.set_reactive(StepList.cursor, self.outline.row_of(self.step))
            self.fit_rows()
            self.show_cursor()

    def watch_step(self) -> None:
        """Moves the cursor to the step's row."""
        if self.outline is not None and self.outline.rows:
            self.cursor = self.outline.row_of(self.step)

    def find(self, needle: str, direction: int, again: bool) -> int | None:
        """The next step whose line contains `needle`, wrapping around; None if none does."""
        if self.outline is None:
            return None
        count = len(self.outline.view.steps)
        start = self.step + (direction if again else 0)
        for far in range(count):
            step = (start + far * direction) % count
            if not self.outline.keeps(step):
                continue
            if needle.lower() in text_of(steps.step_line(self.outline.view, step, self.step, self.remarks)).lower():
                return step
        return None

    def copy_text(self) -> str:
        """The current line, for copying."""
        return text_of(self.row(self.cursor)).strip()


TAB_FORMS = ((" ", None), ("", None), ("", 4), ("", 3), ("", 2), ("", 0))
"""Forms of the tabs, longest first: what follows the number, and the number of letters of titles that are not open."""


class Tabs(StepPanel):
    """One row of tabs."""

    SHOWS = ("outline", "step", "tab", "steps", "live")

    tab: reactive[str] = reactive("merged", init=False, repaint=False)
    steps: reactive[bool] = reactive(True, init=False, repaint=False)
    """Whether the step list is a tab, because there is no room for it beside the text."""
    live: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether this screen recorded the session from a live turn."""

    def make(self, width: int) -> Sequence[Line]:
        """The tabs, and the fidelity on the right."""
        trust = self._fidelity()
        return [spread_ends(self._fitting(trust, width), trust, width)]

    def _fidelity(self) -> Line:
        """The fidelity of the step, with a remark if the turn ends with another fidelity."""
        if self.outline is None or not self.outline.view.steps:
            return ()
        view = self.outline.view
        step = min(self.step, len(view.steps) - 1)
        at, end = view.steps[step], view.steps[view.turn_of(step).run.deciding_step]
        whose: Line = (Span("step ", Tone.DIM),) if at.fidelity is not end.fidelity else ()
        return (*whose, fidelity(at, self.live))

    def _fitting(self, trust: Line, width: int) -> Line:
        """The tabs in the longest form that leaves room for the fidelity."""
        forms = (self._tabs(pad, letters) for pad, letters in TAB_FORMS)
        return next((line for line in forms if width_of(line) + width_of(trust) < width), self._tabs("", 0))

    def _tabs(self, pad: str, letters: int | None) -> Line:
        spans: list[Span] = []
        for tab in TABS:
            if tab.name != "steps" or self.steps:
                is_open = tab.name == self.tab
                number = f"[{tab.key}" if is_open else f" {tab.key}"
                title = tab.title if is_open else tab.title[:letters]
                spans.append(Span(f"{number}{pad}", Tone.HERE if is_open else Tone.DIM))
                spans.append(Span(f"{title}{']' if is_open else ' '}", Tone.HERE if is_open else Tone.PLAIN))
        return tuple(spans)

    def on_click(self, event: Click) -> None:
        """Opens the tab that was clicked."""
        position = 0
        spans = self._fitting(self._fidelity(), self.size.width)
        tabs = [tab for tab in TABS if tab.name != "steps" or self.steps]
        for tab, number, title in zip(tabs, spans[::2], spans[1::2], strict=True):
            position += len(number.text) + len(title.text)
            if event.x < position:
                self.post_message(TabWanted(tab.name))
                return
