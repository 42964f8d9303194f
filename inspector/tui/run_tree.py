"""The runs as a tree: the original, what was tried on it, and what was tried on that; how each ends.

Further down: two runs side by side, step by step.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import reactive
from textual.screen import ModalScreen, Screen

from inspector.report.lines.spans import Line, Listed, Role, Span
from inspector.tui.keys import KeyBar
from inspector.tui.lists import RowList
from inspector.tui.messages import RowOpened
from inspector.tui.paint import paint_of
from inspector.tui.panels import Note, note
from inspector.tui.stage import SessionRuns
from inspector.tui.text_view import TextView
from inspector.whatif import branch_lines
from inspector.whatif.branch_lines import run_line, turn_of
from inspector.whatif.tree import Alignment, Branch, Node, tree_prefix

MOST = 18
"""Rows that are seen at once."""


class Nodes(RowList):
    """A row a run, drawn as a tree."""

    def __init__(self, runs: SessionRuns) -> None:
        super().__init__(id="nodes")
        self.runs = runs
        self.laid: list[tuple[Node, tuple[bool, ...]]] = []
        self.lay()
        self.set_reactive(RowList.cursor, next(i for i, (each, _) in enumerate(self.laid) if each is runs.node))

    def lay(self) -> None:
        """Reads the tree."""
        self.laid = list(self.runs.tree.rows())

    @property
    def count(self) -> int:
        """All runs."""
        return len(self.laid)

    def row(self, index: int) -> Line:
        """A run: whether it is kept, and how the turn ends that it changes."""
        node, follows = self.laid[index]
        asked = turn_of(node.branch) if node.branch is not None else None
        mark, *rest = run_line(node.name, node.view, asked, node.branch, node is self.runs.node)
        lost = (Span("not kept  ", Role.WARN),) if self.runs.why_unkept(node) else ()
        return (mark, Span(tree_prefix(follows), Role.RULE), *lost, *rest)


class RunTree(ModalScreen[tuple[str, int] | None]):
    """Asks for a run: `go` or `beside`, and its place; gives None where the user leaves."""

    DEFAULT_CSS = """
    RunTree { align: center middle; background: $background 60%; }
    #tree { width: 130; max-width: 100%; height: auto; max-height: 100%; padding: 0 2; }
    #tree { background: $surface; border: round $primary; }
    #nodes { height: auto; background: $surface; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,R", "dismiss", "leave", tooltip="Leave", id="tree.leave"),
        Binding("d", "beside", "side by side", id="tree.beside",
                tooltip="Lay this run and the one that is looked at side by side"),
        Binding("delete,x", "remove", "take away", id="tree.remove",
                tooltip="Take this branch away, with those that were made from it"),
    ]

    def __init__(self, runs: SessionRuns) -> None:
        super().__init__()
        self._list = Nodes(runs)

    def compose(self) -> ComposeResult:
        """A title, the rows, the keys."""
        with Vertical(id="tree"):
            yield note("Runs", Role.TITLE)
            yield self._list
            yield note("enter goes there · d side by side with the run you came from · x takes it away · esc leaves")

    def on_mount(self) -> None:
        """Focuses the list."""
        self._fit()
        self._list.focus()

    def _fit(self) -> None:
        self._list.styles.height = max(1, min(MOST, self._list.count))
        self._list.resized()

    def _chosen(self) -> int:
        node = self._list.laid[self._list.cursor][0]
        return self._list.runs.tree.every.index(node)

    def on_row_opened(self, message: RowOpened) -> None:
        """Goes to the run at the cursor."""
        message.stop()
        self.dismiss(("go", self._chosen()))

    def action_beside(self) -> None:
        """Lays it beside the run that is looked at."""
        if self._list.count == 1:
            self.query(Note).last().line = (Span("there is only the original run; e makes another", Role.WARN),)
            return
        self.dismiss(("beside", self._chosen()))

    def action_remove(self) -> None:
        """Takes it away."""
        gone, why = self._list.runs.remove(self._chosen())
        said = f"not kept: {why}" if why else f"{gone} taken away" if gone else "the original stays"
        self.query(Note).last().line = (Span(said, Role.WARN),)
        self._list.lay()
        self._list.cursor = min(self._list.cursor, self._list.count - 1)
        self._fit()


# -- Two runs side by side, step by step -----------------------------------------------------------------------------
# The first difference is selected, the texts of its turn stand below.


class Pairs(RowList):
    """A row for a step of each run."""

    def __init__(self, made: Branch) -> None:
        super().__init__(id="pairs")
        self.made = made
        self.aligned = Alignment(made.original.replay, made.view.replay)
        self.set_reactive(RowList.cursor, self.aligned.difference or 0)

    @property
    def count(self) -> int:
        """Rows of both."""
        return self.aligned.count

    def row(self, index: int) -> Line:
        """A step of each."""
        width, measure = self.scrollable_content_region.width, paint_of(self.app).measure
        return branch_lines.row_line(self.made, self.aligned.row(index), index == self.cursor, width, measure)

    def differing(self, by: int) -> int | None:
        """The next row that differs, forward (1) or back (-1)."""
        index = self.cursor + by
        while 0 <= index < self.count:
            if not self.aligned.row(index).same:
                return index
            index += by
        return None


class Beside(Screen[int | None]):
    """Two runs; gives the step of the right one that the user goes to."""

    DEFAULT_CSS = """
    Beside #beside-title { height: 1; padding: 0 1; background: $surface; }
    Beside #beside-head { height: 1; padding: 0 0 0 1; }
    Beside #pairs { height: 1fr; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    Beside #texts { height: 40%; border-top: hkey $border; padding: 0 1; scrollbar-size: 1 1; }
    Beside #keys { height: 1; background: $surface; }
    .-plain #texts { border-top: ascii $border; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("}", "difference(1)", "next difference", tooltip="The next step that differs", id="beside.next"),
        Binding("{", "difference(-1)", "Difference before", show=False, tooltip="The difference before",
                id="beside.previous"),
        Binding("enter", "go", "go there", tooltip="Go to this step in the run on the right", id="beside.go"),
        Binding("tab", "other_pane", "texts", tooltip="To the texts below, and back", id="beside.pane"),
        Binding("escape,q", "dismiss", "back", tooltip="Back to the session", id="beside.leave"),
    ]
    note: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self, made: Branch, left: str, right: str) -> None:
        super().__init__()
        self._made, self._left, self._right = made, left, right
        self._pairs = Pairs(made)
        self._shown: object = None

    def compose(self) -> ComposeResult:
        """A title, the columns, the texts, the keys."""
        title = Note(id="beside-title")
        differing = self._made.difference
        where = "nothing differs" if differing is None else f"the first difference is at step {differing + 1}"
        title.set_reactive(Note.line, (Span("Side by side  ", Role.TITLE), Span(where, Role.STRONG)))
        yield title
        yield Note(id="beside-head")
        yield self._pairs
        yield TextView(id="texts")
        yield KeyBar(id="keys").data_bind(Beside.note)

    def on_mount(self) -> None:
        """On the first difference."""
        self._pairs.focus()
        self.watch(self._pairs, "cursor", self._texts, init=False)
        self._texts()
        self._pairs.show_cursor()

    def on_resize(self) -> None:
        """The names above their columns."""
        width = self.size.width - 2
        self.query_one("#beside-head", Note).line = branch_lines.head(
            self._left, self._right, width, paint_of(self.app).measure)

    def _texts(self) -> None:
        """The texts of the turn at the cursor, made once a turn."""
        row = self._pairs.aligned.row(self._pairs.cursor) if self._pairs.count else None
        if row is None:
            return
        replay = self._made.original.replay if row.left is not None else self._made.view.replay
        turn = replay.turn_at(row.left if row.left is not None else row.right or 0)
        if turn != self._shown:
            self._shown = turn
            self.query_one("#texts", TextView).sheet = Listed(branch_lines.texts(self._made, row))

    def action_difference(self, by: int) -> None:
        """To another difference."""
        found = self._pairs.differing(by)
        if found is None:
            self.note = f"no difference {'after' if by > 0 else 'before'} this step"
        else:
            self.note = ""
            self._pairs.cursor = found

    def on_row_opened(self, message: RowOpened) -> None:
        """Goes there."""
        message.stop()
        self.action_go()

    def action_go(self) -> None:
        """Goes to the step of the right run."""
        row = self._pairs.aligned.row(self._pairs.cursor) if self._pairs.count else None
        if row is None or row.right is None:
            self.note = "the run on the right has no such step"
            return
        self.dismiss(row.right)

    def action_other_pane(self) -> None:
        """To the other pane."""
        texts = self.query_one("#texts", TextView)
        (self._pairs if texts.has_focus else texts).focus()
