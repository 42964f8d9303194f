"""A session with its runs, and the state that the parts of its screen share: the current run and step.

The module refers to no widget. The operator's changes are saved in a store; changes that were made before the store is
open are saved when it opens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.actions import parse
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen

from inspector.config.settings import Settings, record_of, settings_of
from inspector.report.lines.spans import Line, LineSheet
from inspector.report.lines.steps import NO_REMARKS, Outline, Remarks
from inspector.tui.session_files import OpenSession, Run, run_of
from inspector.tui.text_view import EMPTY_SHEET
from inspector.whatif.tree import ORIGINAL, Branch, Node, Tree, key_of
from loop_core.errors import CallerError

if TYPE_CHECKING:
    from inspector.replay.case import BranchAnswers, Case
    from inspector.whatif.store import Store


class SessionRuns:
    """A tree of runs, and the current one."""

    def __init__(self, session: OpenSession) -> None:
        self.paths = session.paths
        self.tree = Tree(session.original.view)
        self.every: list[Run] = [session.original]
        self.index = 0
        self.store: Store | None = None
        self.unkeepable = ""
        """Why nothing can be saved for the session; empty if it can, or if that is not known yet."""
        self.waiting: list[Callable[[Store], None]] = []
        """The changes to save when the store opens."""

    @property
    def current(self) -> Run:
        """The current run."""
        return self.every[self.index]

    @property
    def case(self) -> Case:
        """The case for branches from the first step: the recording, with the live answers of this run."""
        replay = self.current.view.replay
        return replay.case if replay.settings.live is not None else self.every[0].view.replay.case

    @property
    def node(self) -> Node:
        """The node of the current run."""
        return self.tree.every[self.index]

    @property
    def comparison(self) -> Branch | None:
        """The compared branch: the current run; while the original is shown, its latest branch, if any."""
        if self.current.branch is not None:
            return self.current.branch
        branches = (run.branch for run in reversed(self.every) if run.branch is not None)
        return next((branch for branch in branches if branch.beside == ORIGINAL), None)

    def under(
        self, assignments: Mapping[str, str], since: int | None = None, before: int | None = None
    ) -> tuple[int, bool]:
        """The index of the run with these settings in addition to the current ones, and whether it is new. The settings
        hold from step `since` on; None: from the step from which those of the current run hold. If that step is not
        before `before`, the run is made from an ancestor of the current one. Raises `CallerError` for a name that does
        not exist, or a value out of range."""
        parent = self.node
        while before is not None and parent.parent is not None and parent.view.replay.since >= before:
            parent = parent.parent
        return self.with_settings(settings_of(assignments, parent.view.replay.settings), since, parent)

    def with_settings(
        self, settings: Settings, since: int | None, parent: Node | None = None
    ) -> tuple[int, bool]:
        """The index of the run with exactly these settings, and whether it is new; `parent`: by default the current
        run."""
        node, new = self.tree.add(parent or self.node, settings, since)
        if new:
            self._build_runs()
            self.keep(lambda store: _keep(store, node))
        return self.tree.every.index(node), new

    # -- live runs -----------------------------------------------------------------------------------------------

    def begin(self, node: Node, settings: Settings, since: int) -> None:
        """Starts a live run: saves its branch before anything is sent, so that it survives a crash."""
        key = key_of(node.key, settings, since)

        def act(store: Store) -> None:
            _keep(store, node)
            store.branch(key, node.key, record_of(settings), since)

        self.keep(act)

    def join_live(self, node: Node, settings: Settings, since: int, answers: BranchAnswers) -> int:
        """Ends a live run; returns the index of its branch. Raises `CallerError` if its parent was removed in the
        meantime."""
        parent = next((each for each in self.tree.every if each.key == node.key), None)
        if parent is None:
            raise CallerError("the run that the request started from was removed")
        parent.view.replay.case.live_runs[answers.name] = answers
        branch_node, _ = self.tree.add(parent, settings, since)
        self._build_runs()
        return self.tree.every.index(branch_node)

    def forget(self, node: Node, settings: Settings, since: int) -> None:
        """Discards a live run without responses."""
        key = key_of(node.key, settings, since)
        self.keep(lambda store: store.forget(key))

    def remove(self, index: int) -> tuple[int, str]:
        """Removes a branch and its descendants; returns their number, and why that was not saved (or "")."""
        here = self.node
        node = self.tree.every[index]
        gone, why = self.tree.remove(node), ""
        if gone:
            self.every = [run for run in self.every if all(run.view is not each.view for each in gone)]
            # If the current run is among the removed ones, the original is shown.
            self.index = self.tree.every.index(here) if here in self.tree.every else 0
            why = self.keep(lambda store: store.forget(node.key))
        return len(gone), why

    # -- keeping -------------------------------------------------------------------------------------------------

    def keep(self, act: Callable[[Store], None]) -> str:
        """Saves a change, now or when the store opens; returns why that failed, or ""."""
        if self.store is None:
            # The store opens after the first frame; a mark that is set before must not be lost.
            self.waiting.append(act)
            return self.unkeepable
        before = len(self.store.lost)
        try:
            act(self.store)
        except CallerError as why:
            return str(why)
        return self.store.failure if len(self.store.lost) > before else ""

    def why_unsaved(self, node: Node) -> str:
        """Why a branch is not saved; empty if it is, or will be when the store opens."""
        if node.parent is None:
            return ""
        return self.unkeepable if self.store is None else self.store.unkept.get(node.key, "")

    def join_store(self, store: Store, tree: Tree) -> None:
        """Merges the saved tree of the opened store with the runs that were made before it opened."""
        old_tree, here = self.tree, self.node
        self.store, self.tree = store, tree
        for node in old_tree.every[1:]:
            under = node.parent.key if node.parent is not None else ""
            # Nodes of the new tree are other objects, so the parent is looked up by its key.
            parent = next((each for each in tree.every if each.key == under), None)
            if parent is not None:
                tree.add(parent, node.view.replay.settings, node.view.replay.since)
        self._build_runs()
        self.index = next((at for at, each in enumerate(tree.every) if each.key == here.key), 0)
        waiting, self.waiting = self.waiting, []
        for act in waiting:
            self.keep(act)

    def _build_runs(self) -> None:
        """Builds a run with its outline for every node of the tree."""
        # An outline takes a pass over the session, so those of unchanged runs are reused.
        runs_by_view = {id(run.view): run for run in self.every}
        self.every = [
            runs_by_view.get(id(node.view)) or run_of(node.name, node.view, node.branch) for node in self.tree.every]

    def command(self, api: str | None = None, profile: str | None = None) -> str:
        """The command line that makes the current run without the app."""
        from inspector.whatif.branch_report import command_of

        return command_of(self.node, self.paths, api, profile)


def _keep(store: Store, node: Node) -> None:
    from inspector.whatif.branch_report import save_branch

    save_branch(store, node)


# -- What the parts of the session screen share: the session, the current run and step, and the note line ------------
# Each part holds its state, its keys and their actions. It reads and sets the stage, and calls only those other parts
# that its constructor receives.


class SessionStage(Screen[None]):
    """One session with its runs; widgets react to its reactive attributes."""

    step: reactive[int] = reactive(0, init=False, repaint=False)
    sheet: reactive[LineSheet] = reactive(EMPTY_SHEET, init=False, repaint=False)
    note: reactive[str] = reactive("", init=False, repaint=False)
    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    shown_outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    """The outline of the step list: all steps, or those that pass the filter."""
    filtered: reactive[str] = reactive("", init=False, repaint=False)
    """The current filter and the number of steps that pass it; empty without a filter."""
    step_remarks: reactive[Remarks] = reactive(NO_REMARKS, init=False, repaint=False)
    open_tab: reactive[str] = reactive("merged", init=False, repaint=False)
    """The marked tab; `steps` if the step list is a tab and open."""
    narrow: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether there is room for one pane only."""

    def __init__(self, session: OpenSession) -> None:
        super().__init__()
        self.session, self.runs = session, SessionRuns(session)
        self.parts: tuple[SessionPart, ...] = ()
        self.for_view = False
        """Whether the screen was opened only for a view over it; closing the view then returns to the table."""
        self.came_from: int | None = None
        """The turn at the cursor of the table of turns from which the screen was opened."""
        self.past_filter = False
        """Whether the table that it was opened from has a filter, which does not apply to a view over all turns."""
        self.known: Sequence[Line] = ()
        """Facts about the session that its bytes do not show; the sheet of a verdict in full lists them."""
        self.greeting = ""
        """The note shown when the session was opened; any other note replaces it."""
        self.set_reactive(SessionStage.outline, self.run.outline)
        self.set_reactive(SessionStage.shown_outline, self.run.outline)

    @property
    def run(self) -> Run:
        """The current run."""
        return self.runs.current

    def name_over_all_turns(self, run: str) -> str:
        """The name of a run for a view over all turns, which has the run's settings from the first step on."""
        since = ", from the first step on" if self.run.view.replay.since else ""
        return f"{run}{since}{', only the beginning' if self.session.part else ''}"

    @property
    def rows(self) -> Outline:
        """The steps that the cursor visits: all, or those that pass the filter."""
        return self.shown_outline or self.run.outline

    @property
    def at_end(self) -> bool:
        """Whether the cursor is on the last step."""
        return self.step >= len(self.run.view.steps) - 1

    def replace_session(self, session: OpenSession, to_end: bool) -> None:
        """Shows another reading of the session; the cursor stays on its step, or goes to the last one."""
        waiting = self.runs.waiting  # unsaved changes are about steps that the new reading has too
        self.session, self.runs = session, SessionRuns(session)
        self.runs.waiting = waiting
        last = max(0, len(self.run.view.steps) - 1)
        self.step = min(self.step, last)
        self.outline = self.run.outline
        if to_end:
            self.step = self.rows.neighbour(last, 1)  # the last step that passes the filter, if any

    def go(self, step: int | None, otherwise: str) -> None:
        """Goes to a step, or reports why there is none."""
        if step is None:
            self.note = otherwise
        elif self.run.view.steps:
            self.step = min(max(step, 0), len(self.run.view.steps) - 1)

    def show(self) -> None:
        """Shows the current sheet."""
        raise NotImplementedError

    def adopt(self, *parts: SessionPart) -> None:
        """Adds parts; their actions become attributes of the screen, where Textual looks for a key's action."""
        self.parts = (*parts, *self.parts)
        for part in parts:
            for binding in part.BINDINGS:
                namespace, action, _ = parse(binding.action) if isinstance(binding, Binding) else ("app", "", ())
                if not namespace:  # with a namespace it is an action of the app
                    setattr(self, f"action_{action}", getattr(part, f"action_{action}"))


class SessionPart:
    """A part of the session screen with its own state, keys and actions."""

    BINDINGS: ClassVar[list[BindingType]]

    def __init__(self, stage: SessionStage) -> None:
        self.stage = stage

    def close_open(self) -> bool:
        """Closes what the part has open; returns whether it had anything open."""
        return False
