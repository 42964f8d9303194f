"""Remarking: a filter over the steps, breakpoints, marks and notes of the operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from inspector.report.lines.outline import Narrowed
from inspector.tui.session.keeping import Keeping
from inspector.tui.session.stops import Breakpoint


class Remarking(Keeping):
    """What the operator says about steps, and which of them are shown."""

    TITLE_OF_KEYS = "Filter, breakpoints, marks"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "filter", "filter", id="filter",
                tooltip="Show only the steps that match: stop:max_tokens held attempt>1"),
        Binding("b", "breakpoints", "breakpoints", tooltip="Breakpoints: set, switch and remove", id="breakpoints"),
        Binding("m", "mark", "Mark", show=False, tooltip="Mark this step, or take the mark away", id="mark"),
        Binding("apostrophe", "to_mark(1)", "Next mark", show=False, tooltip="The next marked step", id="mark.next"),
        Binding("quotation_mark", "to_mark(-1)", "Mark before", show=False, tooltip="The marked step before",
                id="mark.previous"),
        Binding(";", "note", "Note", show=False, tooltip="Write a note on this step; empty takes it away", id="note"),
    ]

    # -- filter --------------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Asks for an expression, and shows what it keeps as it is typed."""
        from inspector.tui.screens.filtering import FilterPrompt

        before = self._expression
        self.app.push_screen(FilterPrompt(before, self._narrow), lambda typed: self._filter_chosen(before, typed))

    def _filter_chosen(self, before: str, typed: str | None) -> None:
        said = self._narrow(before if typed is None else typed)
        if typed is not None:
            self.note = said

    def _narrow(self, text: str) -> str:
        """Keeps the steps that match; what to say of it. A mistake leaves the list as it is."""
        if not text.strip():
            self._expression, self.filtered, self.listed = "", "", self.outline
            return "all steps are shown"
        from inspector import filters
        from inspector.tui.session.stops import read

        try:
            found = read(text)
        except filters.FilterError as why:
            return str(why)
        kept = filters.steps(found, self.run.view, self.remarks.marks)
        count = f"{len(kept):,} of {len(self.run.view.steps):,} steps"
        if not kept:
            return f"{count}: nothing matches"
        assert self.outline is not None  # noqa: S101 - set in __init__
        narrowed = Narrowed(self.outline, kept)
        self._expression, self.filtered, self.listed = text, f"{text}: {len(kept):,} steps", narrowed
        if self.step not in set(kept):
            self.step = narrowed.moved(self.step, 1)
        return count

    def watch_outline(self) -> None:
        """Another run: the same filter over its steps."""
        self.listed = self.outline
        if self._expression:
            self._narrow(self._expression)

    # -- breakpoints ---------------------------------------------------------------------------------------------

    def action_breakpoints(self) -> None:
        """Opens the list of breakpoints."""
        from inspector.filters.terms import Look
        from inspector.tui.screens.breakpoints import BreakpointList
        from inspector.tui.session.stops import hits, suggested

        view, marks = self.run.view, self.remarks.marks
        known = {each.text for each in self.breakpoints}
        offered = [text for text in suggested(Look(view, self.step, marks)) if text not in known] if view.steps else []
        self.app.push_screen(
            BreakpointList(self.breakpoints, offered, lambda stop: hits(stop, view, marks)), self._breakpoints_chosen)

    def _breakpoints_chosen(self, chosen: Sequence[Breakpoint] | None) -> None:
        if chosen is None:
            return
        lost = self.keep_breakpoints(tuple(chosen))
        enabled = sum(each.enabled for each in chosen)
        told = f"{len(chosen)} breakpoints, {enabled} on · c runs to the next" if chosen else "no breakpoints"
        self.note = lost or told

    # -- marks and notes -----------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        """Marks the step, or takes the mark away."""
        on = self.step not in self.remarks.marks
        lost = self.keep_mark(self.step, on)
        self.note = lost or f"step {self.step + 1} " + ("marked · ' goes to the next" if on else "is no longer marked")

    def action_to_mark(self, by: int) -> None:
        """Goes to another marked step."""
        ahead = sorted(step for step in self.remarks.marks if (step > self.step if by > 0 else step < self.step))
        where = "after" if by > 0 else "before"
        self._go((ahead[0] if by > 0 else ahead[-1]) if ahead else None, f"no mark {where} this step; m marks one")

    def action_note(self) -> None:
        """Asks for a note on the step."""
        from inspector.tui.screens.prompt import Prompt

        self.app.push_screen(
            Prompt("note", f"on step {self.step + 1}; empty takes it away", self.remarks.notes.get(self.step, "")),
            self._noted)

    def _noted(self, typed: str | None) -> None:
        if typed is None:
            return
        lost = self.keep_note(self.step, typed.strip())
        self.note = lost or f"step {self.step + 1}: {'noted' if typed.strip() else 'no note'}"
