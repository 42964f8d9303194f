"""Viewing: which tab is open, in which form, and which pane is in hand."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from inspector.report.lines.merged import trying
from inspector.tui.session.base import Base
from inspector.tui.sheets import MERGED_FORMS, TABS, WIRE_MODES
from inspector.tui.widgets.steps import StepList
from inspector.tui.widgets.text_view import TextView
from loop_core.seam import SeamRule

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
