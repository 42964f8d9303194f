"""What all parts of the session screen share: which step, tab and run are looked at, and how to go elsewhere.

The parts (`stepping`, `viewing`, `running`) each own their keys and actions; `screen` puts them together and lays them
out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.reactive import reactive

from inspector.report.lines import glyphs
from inspector.report.lines.outline import Outline
from inspector.report.lines.steps import NO_REMARKS, Remarks
from inspector.tui.opening import Opened, Run
from inspector.tui.runs import Runs
from inspector.tui.session.panes import Panes
from inspector.tui.session.stops import Breakpoint
from inspector.tui.sheets import MERGED_FORMS, WIRE_MODES, Asked, Key, Sheets, whose
from loop_core.seam import SeamRule

if TYPE_CHECKING:
    from inspector.report.lines.reads import Picked


class Base(Panes):
    """One session under any number of runs."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    listed: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    """The outline of the step list: the whole, or what a filter keeps of it."""
    filtered: reactive[str] = reactive("", init=False, repaint=False)
    remarks: reactive[Remarks] = reactive(NO_REMARKS, init=False, repaint=False)
    tab: reactive[str] = reactive("merged", init=False, repaint=False)
    """The tab whose sheet is shown."""
    open_tab: reactive[str] = reactive("merged", init=False, repaint=False)
    """The tab that is marked: `steps` where the list is a tab of its own and open."""
    listing: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether the step list is open as a tab, where there is no room beside the text."""
    narrow: reactive[bool] = reactive(False, init=False, repaint=False)

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self.opened = opened
        self.runs = Runs(opened)
        self.wire_mode = WIRE_MODES[0]
        self.merged_form = MERGED_FORMS[0]
        self.seam: SeamRule | None = None
        self.picked: Picked | None = None
        self._picked_in: Key = ()
        self.against = "step"
        self._sheets = Sheets()
        self._expression = ""
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self.of_run: dict[str, Remarks] = {}
        """Marks and notes of every run, by its key."""
        self.set_reactive(Base.outline, opened.original.outline)
        self.set_reactive(Base.listed, opened.original.outline)

    @property
    def run(self) -> Run:
        """The run that is shown."""
        return self.runs.current

    def lost_or(self, told: str) -> str:
        """That the run that is looked at is not kept, and why; else what there is to say of it."""
        why = self.runs.why_unkept(self.runs.node)
        return f"not kept: {why}" if why else told

    def _mark_tab(self) -> None:
        self.open_tab = "steps" if self.narrow and self.listing else self.tab
        self.set_class(self.narrow and self.listing, "-listing")

    def _show(self) -> None:
        if self.outline is not None:
            if self.picked is not None and self._picked_in != whose(self._asked):
                self.picked = None  # another response: its facts are others
            self.sheet = self._sheets.at(self._asked)

    @property
    def _asked(self) -> Asked:
        """What is looked at."""
        assert self.outline is not None  # noqa: S101 - set in __init__
        return Asked(self.tab, self.outline, self.step, self.wire_mode, self.against, self.run.branch,
                     self.merged_form, self.seam, self.picked)

    def watch_step(self) -> None:
        """Another step: another sheet, perhaps, and what was noted there."""
        self._show()
        if self.step in self.remarks.notes:
            self.note = f"{glyphs.NOTE} {self.remarks.notes[self.step]}"

    def watch_tab(self) -> None:
        """Another tab."""
        self._mark_tab()
        self._show()

    def _go(self, step: int | None, otherwise: str) -> None:
        """Goes to a step, or says why there is none."""
        if step is None:
            self.note = otherwise
        elif self.run.view.steps:
            self.step = min(max(step, 0), len(self.run.view.steps) - 1)
