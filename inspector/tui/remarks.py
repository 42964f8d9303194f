"""The operator's remarks on steps (breakpoints, marks and notes) with their storage, and the filter over the steps.

The saved remarks on the session are read after the first frame; from then on every change is saved. Viewing alone
writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from inspector.report.lines.spans import count_of
from inspector.report.lines.steps import NO_REMARKS, FilteredOutline, Outline, Remarks
from inspector.tui.messages import FILTERING, MANY_STEPS, RunsScreen, ask_operator, run_in_thread
from inspector.tui.session_files import STDIN
from inspector.tui.stage import SessionPart, SessionStage
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.report.filters import Filter
    from inspector.tui.breakpoints import Breakpoint
    from inspector.whatif.store import Store, StoredActs
    from inspector.whatif.tree import Tree

FILTER = "filter"
"""The group of these threads."""


def filter_steps(
    found: Filter, outline: Outline, marks: frozenset[int], among: Iterable[int]
) -> tuple[FilteredOutline, str]:
    """The steps of these that a filter keeps, and the message about them."""
    from inspector.report import filters

    steps = filters.steps(found, outline.view, marks, among)
    count = f"{len(steps):,} of {count_of(len(outline.view.steps), 'step')}{'' if steps else ': nothing matches'}"
    searched = filters.search_note(found, filters.values_of(outline.view))
    return FilteredOutline(outline, steps), " · ".join(filter(None, (count, searched)))


def with_additions(narrowed: FilteredOutline, outline: Outline) -> FilteredOutline:
    """What a filter kept before the run grew, and all steps since, for which nothing has looked yet."""
    return FilteredOutline(outline, [*narrowed.kept_steps, *range(len(narrowed.view.steps), len(outline.view.steps))])


class RemarkBook(SessionPart):
    """The remarks on all runs of a session, and the filter over the steps of the current run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "filter", "filter", id="filter",
                tooltip="Show only the steps that match: stop:max_tokens held attempt>1"),
        Binding("b", "breakpoints", "breakpoints", tooltip="Breakpoints: set, switch and remove", id="breakpoints"),
        Binding("m", "mark", "Mark", show=False, tooltip="Mark this step, or remove its mark", id="mark"),
        Binding("apostrophe", "to_mark(1)", "Next mark", show=False, tooltip="The next marked step", id="mark.next"),
        Binding("quotation_mark", "to_mark(-1)", "Previous mark", show=False, tooltip="The previous marked step",
                id="mark.previous"),
        Binding(";", "note", "Note", show=False, tooltip="Write a note on this step; empty removes it", id="note"),
    ]

    def __init__(self, stage: SessionStage) -> None:
        super().__init__(stage)
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self._expression = self._last = self._pending = ""
        """The current filter, the last one, which the prompt offers again, and the one whose steps a thread looks
        for."""
        self._filtered_run = ""
        """The name of the run to which the filter was last applied."""
        self._by_run: dict[str, Remarks] = {}
        """Key of a run -> its marks and notes."""

    @property
    def marks(self) -> frozenset[int]:
        """The marked steps of the current run."""
        return self._here.marks

    @property
    def notes(self) -> Mapping[int, str]:
        """The notes on the steps of the current run."""
        return self._here.notes

    @property
    def _here(self) -> Remarks:
        return self._by_run.get(self.stage.runs.node.key, NO_REMARKS)

    @_here.setter
    def _here(self, remarks: Remarks) -> None:
        self._by_run[self.stage.runs.node.key] = remarks
        self.show()

    def show(self) -> None:
        """Shows the remarks of the current run beside its steps."""
        self.stage.step_remarks = self._here

    # -- saving and loading --------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Loads the saved remarks after the first frame; a session from standard input has none."""
        if self.stage.session.part:  # saved remarks belong to the whole session
            self.stage.runs.unkeepable = "only the beginning of this file has been read"
        elif self.stage.session.paths and STDIN not in self.stage.session.paths:
            self.stage.run_worker(self._read_kept, thread=True, exclusive=True, group="kept")
        else:
            self.stage.runs.unkeepable = "a session without a file has no name to be saved under"

    def _read_kept(self) -> None:
        from inspector.whatif.branch_report import restore_tree
        from inspector.whatif.store import open_store

        session, in_app = self.stage.session, self.stage.app.call_from_thread

        def give(take: Callable[..., None], *values: Any) -> None:
            if self.stage.session is session:  # otherwise the file has grown, and these belong to its old content
                take(*values)

        try:
            store = open_store(session.case.recording, os.environ)
            tree, notices = restore_tree(session.original.view, store)
        except LoopError as why:
            in_app(give, self._nothing_kept, str(why))
            return
        in_app(give, self._join, store, tree, notices)

    def _nothing_kept(self, why: str) -> None:
        self.stage.runs.unkeepable = why
        is_generated = self.stage.session.before != ""
        self.stage.note = "a generated session: its runs and notes are not saved" if is_generated else (
            f"nothing is kept of this session: {why}")

    def _join(self, store: Store, tree: Tree, notices: Sequence[str]) -> None:
        """Merges the saved remarks with those made before they were read."""
        from inspector.tui.breakpoints import Breakpoint

        stored_acts = store.kept
        before = [Breakpoint(text, on) for text, on in stored_acts.breakpoints.items()]
        # Breakpoints that were made while the store was read replace saved ones with the same text.
        self.breakpoints = tuple({each.text: each for each in (*before, *self.breakpoints)}.values())
        counts = [count_of(count, word, words) for count, word, words in (
            (len(tree.every) - 1, "branch", "branches"), (len(stored_acts.marks), "mark", ""),
            (len(stored_acts.notes), "note", ""), (len(stored_acts.breakpoints), "breakpoint", "")) if count]
        branches = len(tree.every) > 1
        found = _remarks_of(stored_acts)
        self.stage.runs.join_store(store, tree)  # saves the runs that were made while the store was read
        for screen in self.stage.app.screen_stack:
            if isinstance(screen, RunsScreen):
                screen.list_again()
        for key, each in found.items():
            mine = self._by_run.get(key, NO_REMARKS)
            self._by_run[key] = Remarks(each.marks | mine.marks, {**each.notes, **mine.notes})
        for act in store.lost:  # changes from this time that cannot be saved
            if isinstance(act.get("step"), int):
                mine = self._by_run.get(act["run"], NO_REMARKS)
                self._by_run[act["run"]] = mine._replace(unsaved=mine.unsaved | {act["step"] - 1})
        self.show()
        if store.lost or notices:
            self.stage.note = store.failure or notices[0]
        elif counts and self.stage.note in ("", self.stage.greeting):
            self.stage.note = f"saved earlier for this session: {', '.join(counts)}" + (
                " · R lists the branches: runs under other settings" if branches else "")

    def _keep(self, act: Callable[[Store], None]) -> str:
        """Saves a change; returns why that failed, or an empty text."""
        why = self.stage.runs.keep(act)
        return f"not saved: {why}" if why else ""

    def _keep_on(self, step: int, act: Callable[[Store, str], None]) -> str:
        """Saves a change to a step's remarks; returns why that failed, or an empty text."""
        run = self.stage.runs.node.key
        why = self._keep(lambda store: act(store, run))
        # The mark stays on the screen in any case; only its row says that it will be lost.
        lost = self._here.unsaved | {step} if why else self._here.unsaved - {step}
        if lost != self._here.unsaved:
            self._here = self._here._replace(unsaved=lost)
        return why

    # -- filter --------------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Asks for a filter and previews its matches while it is typed."""
        from inspector.tui.questions import FilterPrompt

        before = self._expression
        self.stage.app.push_screen(
            FilterPrompt(before or self._last, self._narrow), lambda typed: self._filter_chosen(before, typed))

    def _filter_chosen(self, before: str, text: str | None) -> None:
        outcome = FILTERING if text and text == self._pending else self._narrow(before if text is None else text)
        if text is not None:
            self.stage.note = outcome

    def _narrow(self, text: str) -> str:
        """Applies a filter, or begins to in a thread; returns the message about it. An invalid filter leaves the list
        as it is."""
        stage = self.stage
        wanted, self._pending = self._pending, ""
        if wanted:
            stage.workers.cancel_group(stage, FILTER)
        if not text.strip():
            self._last = wanted or self._expression or self._last
            self._expression, stage.filtered, stage.shown_outline = "", "", stage.run.outline
            return "all steps are shown"
        from inspector.report import filters

        view, self._filtered_run = stage.run.view, stage.run.name
        try:
            found = filters.parse_typed(text)
        except filters.FilterError as why:
            return str(filters.explain_error(why, filters.values_of(view)))
        look = partial(filter_steps, found, stage.run.outline, self.marks)
        if len(view.steps) < MANY_STEPS:
            return self._list(text, *look(range(len(view.steps))))
        self._pending = text

        def look_until_cancelled() -> tuple[FilteredOutline, str]:
            worker = get_current_worker()
            return look(takewhile(lambda _: not worker.is_cancelled, range(len(view.steps))))

        run_in_thread(stage, look_until_cancelled, lambda kept: self._list_later(text, *kept), FILTER)
        return FILTERING

    def _list(self, text: str, narrowed: FilteredOutline, outcome: str) -> str:
        """Lists the steps that a filter keeps, if there are any; returns the message about them."""
        stage, self._pending = self.stage, ""
        if narrowed.kept_steps:
            count = count_of(len(narrowed.kept_steps), "step")
            if narrowed.view is not stage.run.view:
                narrowed = with_additions(narrowed, stage.run.outline)
            self._expression, stage.filtered, stage.shown_outline = text, f"{text}: {count}", narrowed
            if not narrowed.keeps(stage.step):
                stage.step = narrowed.neighbour(stage.step, 1)
        return outcome

    def _list_later(self, text: str, narrowed: FilteredOutline, outcome: str) -> None:
        from inspector.tui.questions import tell_filter_prompts

        self.stage.note = self.stage.note.replace(FILTERING, self._list(text, narrowed, outcome))
        tell_filter_prompts(self.stage.app, outcome)
        if narrowed.view is not self.stage.run.view:
            self._narrow(text)

    def close_open(self) -> bool:
        """Removes the filter, or gives it up while its steps are looked for; returns whether there was one."""
        if not self._expression and not self._pending:
            return False
        self.stage.note = f"{self._narrow('')} · f offers the filter again"
        return True

    def keep_in_sight(self) -> None:
        """Removes the filter if the cursor moved to a step outside it, because every pane shows the same step."""
        stage, outline = self.stage, self.stage.shown_outline
        is_current = outline is not None and outline.view is stage.run.view
        if self._expression and outline is not None and is_current and not outline.keeps(stage.step):
            self._narrow("")
            stage.note = "the filter is removed: this step is outside it · f offers it again"

    def filter_again(self) -> None:
        """Applies the same filter to the steps of another run, or of the same run when its file has grown."""
        stage, before, outline = self.stage, self.stage.shown_outline, self.stage.run.outline
        text = self._pending or self._expression
        # While many steps are looked at again, the list stays as it is; a thread that looks at them goes on, because
        # a file may grow faster than that.
        grown = (before is not None and self._filtered_run == stage.run.name
                 and MANY_STEPS <= len(before.view.steps) <= len(outline.view.steps))
        stage.shown_outline = (with_additions(before, outline) if text and grown and isinstance(before, FilteredOutline)
                        else outline)
        if text and not grown:
            stage.filtered = f"{text}: all steps are shown"  # until some that it keeps are found
        if text and not (grown and self._pending):
            self._narrow(text)

    # -- breakpoints ---------------------------------------------------------------------------------------------

    def action_breakpoints(self) -> None:
        """Opens the list of breakpoints."""
        from inspector.tui.breakpoints import BreakpointList

        rows = BreakpointList(self.breakpoints, self.stage.run.view, self.stage.step, self.marks)
        ask_operator(self.stage.app, rows, self._breakpoints_chosen)

    def _breakpoints_chosen(self, breakpoints: Sequence[Breakpoint]) -> None:
        before, now = {each.text: each for each in self.breakpoints}, {each.text: each for each in breakpoints}
        changed = [(text, now[text].enabled if text in now else None) for text in {**before, **now}
                   if before.get(text) != now.get(text)]
        self.breakpoints = tuple(breakpoints)

        def keep(store: Store) -> None:
            for text, on in changed:
                store.breakpoint(text, on)

        lost = self._keep(keep) if changed else ""
        enabled = sum(each.enabled for each in breakpoints)
        some = f"{count_of(len(breakpoints), 'breakpoint')}, {enabled} on · c runs to the next"
        self.stage.note = lost or (some if breakpoints else "no breakpoints")

    # -- marks and notes -----------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        """Sets or removes the mark of the step."""
        step = self.stage.step
        on = step not in self.marks
        self._here = self._here._replace(marks=self.marks ^ {step})
        lost = self._keep_on(step, lambda store, run: store.mark(run, step, on))
        state = "marked · ' goes to the next" if on else "is no longer marked"
        self.stage.note = lost or f"step {step + 1:,} {state}"

    def action_to_mark(self, by: int) -> None:
        """Goes to another marked step."""
        here = self.stage.step
        ahead = sorted(step for step in self.marks
                       if (step > here if by > 0 else step < here) and self.stage.rows.keeps(step))
        where = f"{'after' if by > 0 else 'before'} this step{self.stage.rows.within}"
        self.stage.go((ahead[0] if by > 0 else ahead[-1]) if ahead else None, f"no mark {where}; m marks one")

    def action_note(self) -> None:
        """Asks for a note on the step."""
        from inspector.tui.questions import Prompt

        step = self.stage.step
        question = Prompt("note", f"on step {step + 1:,}; an empty text removes it", self.notes.get(step, ""))
        ask_operator(self.stage.app, question, self._write_note)

    def _write_note(self, words: str) -> None:
        step, text = self.stage.step, words.strip()
        others = {at: note for at, note in self.notes.items() if at != step}
        self._here = self._here._replace(notes={**others, step: text} if text else others)
        lost = self._keep_on(step, lambda store, run: store.note(run, step, text))
        self.stage.note = lost or f"step {step + 1:,}: {'noted' if text else 'no note'}"


def _remarks_of(acts: StoredActs) -> dict[str, Remarks]:
    """The marks and notes of each run, from the stored changes."""
    found: dict[str, Remarks] = {}
    for run, step in acts.marks:
        before = found.get(run, NO_REMARKS)
        found[run] = before._replace(marks=before.marks | {step})
    for (run, at), text in acts.notes.items():
        if at is not None:
            before = found.get(run, NO_REMARKS)
            found[run] = before._replace(notes={**before.notes, at: text})
    return found
