"""What all parts of the session screen share: which step, tab and run are looked at, and how to go elsewhere.

The parts (`stepping`, `viewing`, `running`) each own their keys and actions; `screen` puts them together and lays them
out.

Further down: what can be done to the pane in hand, whatever it shows; breakpoints as values; viewing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen

from inspector.report.facts import View
from inspector.report.lines import glyphs
from inspector.report.lines.merged import trying
from inspector.report.lines.sheet import Sheet
from inspector.report.lines.steps import NO_REMARKS, Outline, Remarks
from inspector.tui.opening import Opened, Run
from inspector.tui.runs import Runs
from inspector.tui.sheets import MERGED_FORMS, TABS, WIRE_MODES, Asked, Key, Sheets, whose
from inspector.tui.widgets.panes import StepList
from inspector.tui.widgets.text_view import NOTHING, TextView
from inspector.tui.writing import copied
from loop_core.judge.gate import Admission
from loop_core.turn.segments import SeamRule

if TYPE_CHECKING:
    from inspector.report.filter_terms import Look
    from inspector.report.filters import Filter
    from inspector.report.lines.reads import Picked


# -- What can be done to the pane in hand, whatever it shows ---------------------------------------------------------
# Searched, copied, wrapped, shown alone.
# The screen that is built on this decides what the panes show.


class Panes(Screen[None]):
    """A step list and a text, one of them in hand."""

    step: reactive[int] = reactive(0, init=False, repaint=False)
    sheet: reactive[Sheet] = reactive(NOTHING, init=False, repaint=False)
    note: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self) -> None:
        super().__init__()
        self._needle = ""

    def _go(self, step: int | None, otherwise: str) -> None:
        """Goes to a step, or says why there is none."""
        raise NotImplementedError

    # -- search --------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Asks what to look for."""
        from inspector.tui.screens.prompt import Prompt

        self.app.push_screen(Prompt("search", "text in this view", self._needle), self._search)

    def _search(self, typed: str | None) -> None:
        if typed is None:
            return
        self._needle = typed
        self.query_one(TextView).needle = typed
        self._find(1, again=False)

    def action_again(self, by: int) -> None:
        """The next or previous match."""
        if not self._needle:
            self.note = "nothing was searched yet: / searches"
            return
        self._find(by, again=True)

    def _find(self, by: int, again: bool) -> None:
        if not self._needle:
            return
        steps = self.query_one(StepList)
        if steps.has_focus:
            self._go(steps.find(self._needle, by, again), f"{self._needle!r} is in no step")
        elif not self.query_one(TextView).find(by, again):
            self.note = f"{self._needle!r} is not in this view"

    # -- copying -------------------------------------------------------------------------------------------------

    def action_copy(self) -> None:
        """Copies what the focused pane shows."""
        steps = self.query_one(StepList)
        self._copy(steps.copied() if steps.has_focus else self.sheet.copied())

    def _copy(self, text: str) -> None:
        self.note = copied(self.app, text)

    # -- wrapping, and one pane alone ----------------------------------------------------------------------------

    def action_wrap(self) -> None:
        """Wraps or scrolls sideways."""
        text = self.query_one(TextView)
        text.wrap = not text.wrap
        self.note = "long lines are wrapped" if text.wrap else "long lines scroll sideways: h and l, or the arrows"

    def action_zoom(self) -> None:
        """One pane alone."""
        steps = self.query_one(StepList).has_focus
        zoomed = self.has_class("-zoom-text") or self.has_class("-zoom-steps")
        self.set_class(not zoomed and not steps, "-zoom-text")
        self.set_class(not zoomed and steps, "-zoom-steps")


# -- Breakpoints as values -------------------------------------------------------------------------------------------
# An expression of the filter language, on or off; and the next step that one stops at.


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """One breakpoint."""

    text: str
    enabled: bool = True


@lru_cache(maxsize=64)
def read(text: str) -> Filter:
    """The filter of an expression; one that was read before keeps what it learned of each response.

    Raises:
        FilterError: it cannot be read.
    """
    from inspector.report import filters  # not before it is wanted: the first frame needs none

    return filters.parse(text)


def next_stop(
    stops: Sequence[Breakpoint], view: View, step: int, by: int, marks: frozenset[int]
) -> tuple[int, str] | None:
    """The nearest step that an enabled breakpoint stops at, and its expression; None where there is none."""
    from inspector.report import filters

    found = [
        (at, each.text) for each in stops if each.enabled
        and (at := filters.hit_after(read(each.text), view, step, by, marks)) is not None
    ]
    return (min if by > 0 else max)(found, key=lambda hit: hit[0], default=None)


def hits(stop: Breakpoint, view: View, marks: frozenset[int]) -> int:
    """At how many steps a breakpoint stops."""
    from inspector.report import filters

    count, at = 0, -1
    while (following := filters.hit_after(read(stop.text), view, at, 1, marks)) is not None:
        count, at = count + 1, following
    return count


def suggested(look: Look) -> list[str]:
    """Expressions that would stop at steps like this one."""
    step, response = look.step, look.response
    found = [f"state:{step.state.value}"]
    if response is not None:
        found.append(f"stop:{response.judged.stop.normalized.value}")
        if response.judged.ending is not None:
            found.append(f"ending:{response.judged.ending.value}")
        if any(verdict.admission is Admission.HELD for verdict in response.verdicts):
            found.append("held")
        found += [f"tool:{verdict.call.name}" for verdict in response.verdicts[:1] if verdict.call.name.isidentifier()]
    found += [f"event:{record['event']}" for record in step.records]
    return list(dict.fromkeys([*found, "budget>=80%", "end:*"]))


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


# -- Viewing ---------------------------------------------------------------------------------------------------------
# Which tab is open, in which form, and which pane is in hand.

VIEWING_KEYS: list[BindingType] = [
    Binding("/", "search", "search", tooltip="Search in this view", id="search"),
    Binding("v", "mode", "view", id="mode",
            tooltip="Another form of this view: merged, side by side; events, raw, hex, request; step or run"),
    Binding("s", "seam", "seam", id="seam",
            tooltip="Try the next seam rule on the merged text, beside the rule in force"),
    Binding("y", "copy", "copy", tooltip="Copy what this view shows", id="copy"),
    Binding("n", "again(1)", "match", tooltip="The next match of the search", id="search.next"),
    Binding("N", "again(-1)", "Match before", show=False, tooltip="The match before", id="search.previous"),
    Binding("w", "wrap", "wrap", tooltip="Wrap long lines, or scroll sideways", id="wrap"),
    Binding("z", "zoom", "zoom", tooltip="This pane alone, or all of them", id="zoom"),
    *(Binding(tab.key, f"tab('{tab.name}')", tab.title, show=False, tooltip=tab.about, id=f"tab.{tab.name}")
      for tab in TABS),
    Binding("tab", "other_pane", "Other pane", show=False, tooltip="To the other pane", id="pane"),
]


class Viewing(Base):
    """Viewing."""

    TITLE_OF_KEYS = "Views"
    BINDINGS: ClassVar[list[BindingType]] = VIEWING_KEYS

    def action_tab(self, name: str) -> None:
        """Opens a tab; the steps are one where there is no room for them beside the text."""
        if name == "steps":
            self.listing = self.narrow
            self._mark_tab()
            self.query_one(StepList).focus(scroll_visible=False)
            return
        self.listing = False
        self.tab = name
        self._mark_tab()
        if self.narrow:
            self.query_one(TextView).focus(scroll_visible=False)

    def action_mode(self) -> None:
        """Another form of the same view."""
        if self.tab == "wire":
            self.wire_mode = WIRE_MODES[(WIRE_MODES.index(self.wire_mode) + 1) % len(WIRE_MODES)]
        elif self.tab == "diff":
            self.against = "run" if self.against == "step" else "step"
        elif self.tab == "merged":
            self.merged_form = MERGED_FORMS[(MERGED_FORMS.index(self.merged_form) + 1) % len(MERGED_FORMS)]
        else:
            self.note = "this view has one form; Merged, Wire and Diff have more"
            return
        self._show()

    def action_seam(self) -> None:
        """Tries the next seam rule in place, then comes back to the one in force."""
        view = self.run.view
        if not view.steps or self.outline is None:
            return
        if self.tab != "merged":
            self.note = "seams are tried in Merged: 1 opens it"
            return
        block = self.outline.block_of(self.step)
        in_force = view.steps[block.end - 1].turn.policy.seam
        rules = [in_force, *(rule for rule in SeamRule if rule is not in_force)]
        at = rules.index(self.seam) if self.seam in rules else 0
        tried = rules[(at + 1) % len(rules)]
        self.seam = None if tried is in_force else tried
        self._show()
        self.note = trying(view, block, tried)

    def action_other_pane(self) -> None:
        """To the other pane; where only one is seen, to the other tab."""
        steps, text = self.query_one(StepList), self.query_one(TextView)
        if self.narrow:
            self.action_tab(self.tab if self.listing else "steps")
            return
        self.remove_class("-zoom-text", "-zoom-steps")
        (text if steps.has_focus else steps).focus(scroll_visible=False)

    def _focus_pane(self) -> None:
        steps, text = self.query_one(StepList), self.query_one(TextView)
        if self.narrow:
            wanted = steps if self.listing else text
        else:
            wanted = text if text.has_focus else steps
        if not wanted.has_focus:
            wanted.focus(scroll_visible=False)
