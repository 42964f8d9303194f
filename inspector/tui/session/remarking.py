"""Remarking: a filter over the steps, breakpoints, marks and notes of the operator.

Further down: keeping.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from inspector.report.lines.steps import NO_REMARKS, Narrowed, Remarks
from inspector.tui.opening import STDIN
from inspector.tui.session.base import Base, Breakpoint
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.whatif.store import Kept, Store
    from inspector.whatif.tree import Tree


# -- Keeping ---------------------------------------------------------------------------------------------------------
# What was tried and written on this session before is read behind the first frame, and kept from then on.


class Keeping(Base):
    """What the data folder holds of this session. Viewing alone writes nothing."""

    def restore(self) -> None:
        """Reads what was kept, behind the first frame; a session from standard input has no name to be kept under."""
        if self.opened.paths and STDIN not in self.opened.paths:
            self._read_kept()
        else:
            self.runs.unkeepable = "a session that is no file has no name to be kept under"

    @work(thread=True, exclusive=True, group="kept")
    def _read_kept(self) -> None:
        from inspector.whatif.saved import restored
        from inspector.whatif.store import open_store

        try:
            store = open_store(self.opened.case.loaded, os.environ)
            tree, notices = restored(self.opened.original.view, store)
        except LoopError as why:
            self.runs.unkeepable = str(why)
            self.app.call_from_thread(self._tell, f"nothing is kept of this session: {why}")
            return
        self.app.call_from_thread(self._take, store, tree, notices)

    def _tell(self, text: str) -> None:
        self.note = text

    def _take(self, store: Store, tree: Tree, notices: list[str]) -> None:
        """What was kept joins what was done meanwhile."""
        kept = store.kept
        before = [Breakpoint(text, on) for text, on in kept.breakpoints.items()]
        self.breakpoints = tuple({each.text: each for each in (*before, *self.breakpoints)}.values())
        told = [f"{count:,} {word}{'' if count == 1 else word_end}" for count, word, word_end in (
            (len(tree.every) - 1, "branch", "es"), (len(kept.marks), "mark", "s"), (len(kept.notes), "note", "s"),
            (len(kept.breakpoints), "breakpoint", "s")) if count]
        branches = len(tree.every) > 1
        found = _remarks(kept)
        self.runs.opened(store, tree)  # what was done meanwhile is kept now, and was not there before
        for key, each in found.items():
            mine = self.of_run.get(key, NO_REMARKS)
            self.of_run[key] = Remarks(each.marks | mine.marks, {**each.notes, **mine.notes})
        for act in store.lost:  # what was done meanwhile and cannot be kept
            if isinstance(act.get("step"), int):
                mine = self.of_run.get(act["run"], NO_REMARKS)
                self.of_run[act["run"]] = replace(mine, lost=mine.lost | {act["step"] - 1})
        self.remarks = self.of_run.get(self.runs.node.key, NO_REMARKS)
        if store.lost or notices:
            self.note = store.failure or notices[0]
        elif told and not self.note:
            self.note = f"kept from before: {', '.join(told)}" + (" · R shows the runs" if branches else "")

    # -- what the other parts call --------------------------------------------------------------------------------

    def keep_mark(self, step: int, on: bool) -> str:
        """A mark was set or taken away; why that is not kept, empty where it is."""
        self.remarks = replace(self.remarks, marks=self.remarks.marks ^ {step})
        run = self._remarked()
        return self._keep_on(step, lambda store: store.mark(run, step, on))

    def keep_note(self, step: int, text: str) -> str:
        """A note was written, an empty one takes it away; why that is not kept, empty where it is."""
        notes = {at: said for at, said in self.remarks.notes.items() if at != step}
        self.remarks = replace(self.remarks, notes={**notes, step: text} if text else notes)
        run = self._remarked()
        return self._keep_on(step, lambda store: store.note(run, step, text))

    def keep_breakpoints(self, chosen: tuple[Breakpoint, ...]) -> str:
        """The breakpoints are these now; why that is not kept, empty where it is."""
        before, self.breakpoints = {each.text: each for each in self.breakpoints}, chosen
        now = {each.text: each for each in chosen}
        changed = [(text, now[text].enabled if text in now else None) for text in {**before, **now}
                   if before.get(text) != now.get(text)]

        def keep(store: Store) -> None:
            for text, on in changed:
                store.breakpoint(text, on)

        return self._keep(keep) if changed else ""

    def _keep_on(self, step: int, act: Callable[[Store], None]) -> str:
        """Keeps what was put on a step; the step says so where that fails."""
        why = self._keep(act)
        lost = self.remarks.lost | {step} if why else self.remarks.lost - {step}
        if lost != self.remarks.lost:
            self.remarks = replace(self.remarks, lost=lost)
            self._remarked()
        return why

    def _keep(self, act: Callable[[Store], None]) -> str:
        why = self.runs.keep(act)
        return f"not kept: {why}" if why else ""

    def _remarked(self) -> str:
        key = self.runs.node.key
        self.of_run[key] = self.remarks
        return key


def _remarks(kept: Kept) -> dict[str, Remarks]:
    """What was marked and noted, by run."""
    found: dict[str, Remarks] = {}
    for run, step in kept.marks:
        before = found.get(run, NO_REMARKS)
        found[run] = replace(before, marks=before.marks | {step})
    for (run, at), text in kept.notes.items():
        if at is not None:
            before = found.get(run, NO_REMARKS)
            found[run] = replace(before, notes={**before.notes, at: text})
    return found


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
        from inspector.tui.screens.prompt import FilterPrompt

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
        from inspector.report import filters
        from inspector.tui.session.base import read

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
        from inspector.report.filter_terms import Look
        from inspector.tui.screens.breakpoints import BreakpointList
        from inspector.tui.session.base import hits, suggested

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
