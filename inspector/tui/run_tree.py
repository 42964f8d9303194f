"""The tree of runs: the original and all branches, with the end of one turn in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from inspector.report.lines.spans import EMPTY, Line, Span, Tone, count_of, width_of
from inspector.tui.lists import RowList
from inspector.tui.messages import ONE_RUN, RowOpened
from inspector.tui.paint import paint_of
from inspector.tui.panels import Dialog, Panel, WrappedLines, key_note, note
from inspector.tui.session_files import Run
from inspector.tui.stage import SessionRuns
from inspector.whatif.branch_lines import run_line
from inspector.whatif.tree import Node, line_of, tree_prefix


class RunRows(RowList):
    """A row per run, drawn as a tree."""

    def __init__(self, runs: SessionRuns, turn: int) -> None:
        """`turn` is the index of the turn whose end is shown for each run."""
        super().__init__(id="nodes", classes="long")
        self.runs, self.turn = runs, turn
        self.shown: list[tuple[Node, tuple[bool, ...]]] = []
        self.lay()
        self.set_reactive(RowList.cursor, next(i for i, (each, _) in enumerate(self.shown) if each is runs.node))

    def lay(self) -> None:
        """Loads the tree."""
        self.shown = list(self.runs.tree.rows())

    def row(self, index: int, whole: bool = False) -> Line:
        """A run: whether it is saved, and how the turn ends in it; its name is cut to the room unless `whole`."""
        node, follows = self.shown[index]
        branches, lost = tree_prefix(follows), "not saved  " if self.runs.why_unsaved(node) else ""
        # 1: the scrollbar. Before the first layout the list has no width.
        room = self.size.width - len(branches) - len(lost) - 1 if self.size.width and not whole else None
        mark, *rest = run_line(node.name, node.view, self.turn, node.branch, node is self.runs.node, room)
        return (mark, Span(branches, Tone.RULE), *((Span(lost, Tone.WARN),) if lost else ()), *rest)


class RunTree(Dialog[tuple[str, int] | None]):
    """Asks for a run; returns `go` or `beside` with its index, or None if the operator leaves."""

    DEFAULT_CSS = "#tree { width: 130; padding: 0 2; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,R", "dismiss", "leave", tooltip="Leave", id="tree.leave"),
        Binding("d", "beside", "side by side", id="tree.beside",
                tooltip="Compare this run with the current one, side by side"),
        Binding("delete,x", "remove", "take away", id="tree.remove",
                tooltip="Remove this branch and those made from it"),
    ]

    def __init__(self, runs: SessionRuns, turn: int) -> None:
        super().__init__()
        self._list = RunRows(runs, turn)
        self._removal: Node | None = None
        """The run that another press of the key removes."""

    def compose(self) -> ComposeResult:
        """A title, the rows, the keys."""
        with Vertical(id="tree"):
            yield note(f"Runs: how turn {self._list.turn + 1:,} ends in each", Tone.TITLE)
            yield self._list
            yield WrappedLines(id="whole-row")
            yield key_note("enter goes there · d beside this run · x removes it · esc leaves")

    def on_mount(self) -> None:
        """Follows the cursor."""
        self.watch(self._list, "cursor", self._keep, init=False)

    def on_resize(self) -> None:
        """Shows the run at the cursor again for the new width."""
        self.call_after_refresh(self._keep)

    def _keep(self) -> None:
        """Withdraws the question whether to remove a run; shows a run that has no room in its row in full."""
        self._removal = None
        whole = self._list.row(self._list.cursor, whole=True)
        cut = width_of(whole, paint_of(self.app).measure) > self._list.scrollable_content_region.width > 0
        _, _, *plain = whole  # without the mark and the branches, so that it looks like no further row
        self.query_one("#whole-row", WrappedLines).lines = [EMPTY, tuple(plain)] if cut else []

    def list_again(self) -> None:
        """Lists the runs of another tree, such as that of the saved runs, which is read after the first frame."""
        here = self._list.shown[self._list.cursor][0].key
        self._list.lay()
        self._list.cursor = next((at for at, (node, _) in enumerate(self._list.shown) if node.key == here), 0)
        self._list.fit_rows()
        self._keep()

    def _chosen_index(self) -> int:
        node = self._list.shown[self._list.cursor][0]
        return self._list.runs.tree.every.index(node)

    def on_row_opened(self, message: RowOpened) -> None:
        """Goes to the run at the cursor."""
        message.stop()
        self.dismiss(("go", self._chosen_index()))

    def action_beside(self) -> None:
        """Compares the run at the cursor with the current one."""
        if self._list.count == 1:
            self.note = ONE_RUN
            return
        node = self._list.shown[self._list.cursor][0]
        if node is self._list.runs.node and node.parent is None:  # the current branch is compared with its parent
            self.note = "choose another run: d shows it beside the original"
            return
        self.dismiss(("beside", self._chosen_index()))

    def action_remove(self) -> None:
        """Removes the run at the cursor at the second press, because on other screens the key exports."""
        node = self._list.shown[self._list.cursor][0]
        if node is not self._removal and node.parent is not None:
            self._removal, more = node, sum(node in line_of(each) for each in self._list.runs.tree.every) - 1
            made = f" and {count_of(more, 'run')} made from it" if more else ""
            self.note = f"the same key again removes {node.name}{made}"
            return
        gone, why = self._list.runs.remove(self._chosen_index())
        self.note = f"not saved: {why}" if why else f"{gone} removed" if gone else "the original stays"
        self._list.lay()
        self._list.cursor = min(self._list.cursor, self._list.count - 1)
        self._list.fit_rows()
        self._keep()


class RunLines(Panel):
    """The runs of a session, a line each: the end of the current turn, and its first difference from the original."""

    def __init__(self, runs: Sequence[Run], current: int, turn: int) -> None:
        super().__init__()
        self._runs, self._current, self._turn = runs, current, turn
        self.styles.height = len(runs)

    def make(self, width: int) -> Sequence[Line]:
        """One line per run."""
        return [run_line(run.name, run.view, self._turn, run.branch, index == self._current)
                for index, run in enumerate(self._runs)]
