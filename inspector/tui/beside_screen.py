"""Two turns side by side: their facts, their steps with equal ones folded, and their texts below."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen

from inspector.report.lines.spans import Line, LineSheet, Span, Tone, clip, text_of
from inspector.tui.delivery import copy_text
from inspector.tui.keys import KeyBar
from inspector.tui.lists import RowList
from inspector.tui.messages import RowOpened
from inspector.tui.paint import paint_of
from inspector.tui.panels import Note, WrappedLines, lines
from inspector.tui.text_view import TextView
from inspector.whatif.tree import EqualSteps, StepPair
from inspector.whatif.turn_pair import PairRow, TurnPair, TurnSide

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
        self.shown: list[PairRow] = pair.rows()
        first = next((at for at, row in enumerate(self.shown) if isinstance(row, StepPair) and not row.same), 0)
        self.set_reactive(RowList.cursor, first)

    def row(self, index: int) -> Line:
        """A fact, or a pair of steps."""
        width, measure = self.scrollable_content_region.width, paint_of(self.app).measure
        mark = Span("▶" if index == self.cursor else " ", Tone.HERE)
        return (mark, *self.pair.row_line(self.shown[index], width - 1, measure))

    def unfold(self) -> bool:
        """Unfolds the equal steps at the cursor; False if there are none."""
        row = self.shown[self.cursor]
        if not isinstance(row, EqualSteps):
            return False
        self._opened.add(row.left)
        self.shown = self.pair.rows(self._opened)
        self.fit_rows()
        return True

    def differing(self, by: int) -> int | None:
        """The next row, in direction 1 or -1, whose steps differ; None if there is none."""
        ahead = range(self.cursor + 1, self.count) if by > 0 else range(self.cursor - 1, -1, -1)
        for index in ahead:
            row = self.shown[index]
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
        row = self._pairs.shown[self._pairs.cursor]
        if self._pairs.unfold():
            return
        if not isinstance(row, StepPair):
            self.note = "this row is not a step"
        elif row.right is None:
            self.note = "the turn on the right has no such step"
        else:
            self.dismiss(row.right)
