"""Two runs side by side, step by step: the first difference is selected, the texts of its turn stand below."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen

from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import Line, Role, Span
from inspector.tui.messages import RowOpened
from inspector.tui.paint import paint_of
from inspector.tui.widgets.keybar import KeyBar
from inspector.tui.widgets.note import Note
from inspector.tui.widgets.rows import RowList
from inspector.tui.widgets.text_view import TextView
from inspector.whatif import lines_beside
from inspector.whatif.alignment import Alignment
from inspector.whatif.branch import Branch


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
        return lines_beside.row_line(self.made, self.aligned.row(index), index == self.cursor, width, measure)

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
        Binding("escape,q", "leave", "back", tooltip="Back to the session", id="beside.leave"),
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
        self.query_one("#beside-head", Note).line = lines_beside.head(
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
            self.query_one("#texts", TextView).sheet = Listed(lines_beside.texts(self._made, row))

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

    def action_leave(self) -> None:
        """Back."""
        self.dismiss(None)
