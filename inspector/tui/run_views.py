"""Views over the runs of a session: the tree of runs, with the end of one turn in each, and two turns side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import reactive
from textual.screen import Screen

from inspector.report.lines.spans import EMPTY, Line, LineSheet, Span, Tone, clip, count_of, text_of, width_of
from inspector.tui.delivery import copy_text
from inspector.tui.keys import KeyBar
from inspector.tui.lists import RowList
from inspector.tui.messages import ONE_RUN, RowOpened
from inspector.tui.paint import paint_of
from inspector.tui.panels import Dialog, Note, Panel, WrappedLines, key_note, lines, note
from inspector.tui.session_files import Run
from inspector.tui.stage import SessionRuns
from inspector.tui.text_view import TextView
from inspector.whatif.branch_lines import run_line
from inspector.whatif.tree import EqualSteps, Node, StepPair, path_to, tree_prefix
from inspector.whatif.turn_pair import PairRow, TurnPair, TurnSide


class RunRows(RowList):
    """A row per run, drawn as a tree."""

    def __init__(self, runs: SessionRuns, turn: int) -> None:
        """`turn` is the index of the turn whose end is shown for each run."""
        super().__init__(id="nodes", classes="long")
        self.runs, self.turn = runs, turn
        self.entries: list[tuple[Node, tuple[bool, ...]]] = []
        self.lay()
        self.set_reactive(RowList.cursor, next(i for i, (each, _) in enumerate(self.entries) if each is runs.node))

    def lay(self) -> None:
        """Loads the tree."""
        self.entries = list(self.runs.tree.rows())

    def row(self, index: int, whole: bool = False) -> Line:
        """A run: whether it is saved, and how the turn ends in it; its name is cut to the room unless `whole`."""
        node, follows = self.entries[index]
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
        for row in self.query("#whole-row").results(WrappedLines):  # a resize may come before the parts
            row.lines = [EMPTY, tuple(plain)] if cut else []

    def list_again(self) -> None:
        """Lists the runs of another tree, such as that of the saved runs, which is read after the first frame."""
        here = self._list.entries[self._list.cursor][0].key
        self._list.lay()
        self._list.cursor = next((at for at, (node, _) in enumerate(self._list.entries) if node.key == here), 0)
        self._list.fit_rows()
        self._keep()

    def _chosen_index(self) -> int:
        node = self._list.entries[self._list.cursor][0]
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
        node = self._list.entries[self._list.cursor][0]
        if node is self._list.runs.node and node.parent is None:  # the current branch is compared with its parent
            self.note = "choose another run: d shows it beside the original"
            return
        self.dismiss(("beside", self._chosen_index()))

    def action_remove(self) -> None:
        """Removes the run at the cursor at the second press, because on other screens the key exports."""
        node = self._list.entries[self._list.cursor][0]
        if node is not self._removal and node.parent is not None:
            self._removal, more = node, sum(node in path_to(each) for each in self._list.runs.tree.every) - 1
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


# -- Two turns side by side: their facts, their steps with equal ones folded, and their texts below ------------------


WIDTH = 120
"""The width of a comparison in columns when it is copied as text."""


class PairList(RowList):
    """A row for each fact and each pair of steps; equal steps share one row until they are unfolded."""

    def __init__(self, pair: TurnPair) -> None:
        super().__init__(id="pairs")
        self.take(pair)

    def take(self, pair: TurnPair) -> None:
        """Shows another pair of turns, with the cursor on their first difference."""
        self.pair = pair
        self._opened: set[int] = set()
        self.entries: list[PairRow] = pair.rows()
        first = next((at for at, row in enumerate(self.entries) if isinstance(row, StepPair) and not row.same), 0)
        self.set_reactive(RowList.cursor, first)

    def row(self, index: int) -> Line:
        """A fact, or a pair of steps."""
        width, measure = self.scrollable_content_region.width, paint_of(self.app).measure
        mark = Span("▶" if index == self.cursor else " ", Tone.HERE)
        return (mark, *self.pair.row_line(self.entries[index], width - 1, measure))

    def unfold(self) -> bool:
        """Unfolds the equal steps at the cursor; False if there are none."""
        row = self.entries[self.cursor]
        if not isinstance(row, EqualSteps):
            return False
        self._opened.add(row.left)
        self.entries = self.pair.rows(self._opened)
        self.fit_rows()
        return True

    def differing(self, by: int) -> int | None:
        """The next row, in direction 1 or -1, whose steps differ; None if there is none."""
        ahead = range(self.cursor + 1, self.count) if by > 0 else range(self.cursor - 1, -1, -1)
        for index in ahead:
            row = self.entries[index]
            if isinstance(row, StepPair) and not row.same:
                return index
        return None


TALL = 24
"""The height of the screen from which the differences have as many rows as they need."""


class SideBySide(Screen[int | None]):
    """Shows two turns side by side; returns the step of the right turn that the operator chooses."""

    DEFAULT_CSS = """
    SideBySide #beside-title { padding: 0 1; background: $surface; }
    SideBySide #beside-head { height: 1; padding: 0 0 0 1; }
    SideBySide #pairs { height: 1fr; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    SideBySide #texts { height: 30%; border-top: hkey $border; padding: 0 1; scrollbar-size: 1 1; }
    SideBySide #texts { scrollbar-gutter: stable; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("}", "difference(1)", "next difference", tooltip="The next step that differs", id="beside.next"),
        Binding("{", "difference(-1)", "Previous difference", show=False, tooltip="The previous difference",
                id="beside.previous"),
        Binding("enter", "go", "go there", tooltip="Go to this step in the turn on the right; unfold equal steps",
                id="beside.go"),
        Binding("]", "turn(1)", "next turn", tooltip="The next turn of both runs", id="beside.turn"),
        Binding("[", "turn(-1)", "Previous turn", show=False, tooltip="The previous turn of both runs",
                id="beside.turn-before"),
        Binding("y", "copy", "copy", tooltip="Copy the whole comparison as text", id="beside.copy"),
        Binding("tab", "app.focus_next", "texts", tooltip="To the texts below, and back", id="beside.pane"),
        Binding("escape,q", "dismiss", "back", tooltip="Back to the session", id="beside.leave"),
    ]
    note: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self, left: TurnSide, right: TurnSide) -> None:
        super().__init__()
        self._pairs = PairList(TurnPair(left, right))
        self._is_tall = True

    def compose(self) -> ComposeResult:
        """Yields a title, the columns, the texts and the key bar."""
        yield lines("", "beside-title")
        yield Note(id="beside-head")
        yield self._pairs
        yield TextView(id="texts")
        yield KeyBar(id="keys").data_bind(SideBySide.note)

    def on_mount(self) -> None:
        """Moves the cursor to the first difference."""
        self._pairs.focus()
        self._show()

    def on_resize(self) -> None:
        """Aligns the heads with their columns again, and moves the sentence about the differences."""
        self._head()
        if self._is_tall != (self.size.height >= TALL):
            self._show_texts()
        self._pairs.show_cursor()

    def _head(self) -> None:
        pair, width, measure = self._pairs.pair, self.size.width - 2, paint_of(self.app).measure
        which = f"Turn {pair.left.view.number(pair.left.turn):,} in both runs  " if pair.one_turn else "Two turns  "
        title = (Span(which, Tone.TITLE), Span(pair.summary(), Tone.STRONG))
        # A low screen has no second row for the sentence, which is then in full above the texts.
        whole = self.size.height >= TALL
        self.query_one("#beside-title", WrappedLines).lines = [title if whole else clip(title, width, measure)]
        self.query_one("#beside-head", Note).line = pair.head(width, measure)

    def _show(self) -> None:
        """Shows the pair of turns at the current place."""
        self._head()
        self._show_texts()
        self._pairs.fit_rows()
        self._pairs.show_cursor()

    def _show_texts(self) -> None:
        pair, self._is_tall = self._pairs.pair, self.size.height >= TALL
        first: list[Line] = [] if self._is_tall else [(Span(pair.summary(), Tone.STRONG),)]
        self.query_one("#texts", TextView).sheet = LineSheet(
            [*first, (Span("left to right", Tone.DIM),), *pair.texts()])

    def action_difference(self, by: int) -> None:
        """Moves the cursor to another difference."""
        found = self._pairs.differing(by)
        if found is None:
            self.note = f"no difference {'after' if by > 0 else 'before'} this step"
        else:
            self.note = ""
            self._pairs.cursor = found

    def action_turn(self, by: int) -> None:
        """Shows another turn of both runs."""
        pair = self._pairs.pair
        at = pair.left.view.number(pair.left.turn) - 1 + by
        if not pair.one_turn:
            self.note = "these are two different turns"
        elif not 0 <= at < len(pair.left.view.turns):
            self.note = f"this is the {'last' if by > 0 else 'first'} turn"
        else:
            self.note = ""
            self._pairs.take(TurnPair(*(side._replace(turn=side.view.turns[at]) for side in (pair.left, pair.right))))
            self._show()

    def action_copy(self) -> None:
        """Copies the whole comparison, with equal steps folded."""
        lines = self._pairs.pair.lines(WIDTH)
        self.note = copy_text(self.app, "\n".join(text_of(line).rstrip() for line in lines) + "\n")

    def on_row_opened(self, message: RowOpened) -> None:
        """Closes the screen and returns the step of the row."""
        message.stop()
        self.action_go()

    def action_go(self) -> None:
        """Returns the step of the right turn at the cursor; on folded equal steps, unfolds them."""
        row = self._pairs.entries[self._pairs.cursor]
        if self._pairs.unfold():
            return
        if not isinstance(row, StepPair):
            self.note = "this row is not a step"
        elif row.right is None:
            self.note = "the turn on the right has no such step"
        else:
            self.dismiss(row.right)
