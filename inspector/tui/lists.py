"""Lists that scroll and have a cursor: rows, a table with the details of a row, and a short list to choose from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Click, DescendantFocus
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from inspector.report.lines.spans import Line, LineSheet, Span, Tone, in_quotes, safe, width_of
from inspector.tui.delivery import copy_text, deliver
from inspector.tui.keys import KeyBar
from inspector.tui.messages import NOT_SEARCHED, RowOpened, ask_operator
from inspector.tui.paint import Paint, RowsInOneStyle, paint_of
from inspector.tui.panels import Dialog, WrappedLines, key_note, note
from inspector.tui.text_view import TextView

HEADINGS = 2
"""The number of heading rows above a group that scroll into view with the first row of the group."""


# Textual's line API draws only visible rows: 100,000 rows appear at once, for which its DataTable takes six seconds and
# 90 MB (https://textual.textualize.io/guide/widgets/#line-api).
class RowList(ScrollView, RowsInOneStyle, can_focus=True):
    """A list of rows with a cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Down", show=False, tooltip="The next row", id="list.down"),
        Binding("k,up", "move(-1)", "Up", show=False, tooltip="The previous row", id="list.up"),
        Binding("pagedown", "page(1)", "Page down", show=False, tooltip="A page down", id="list.page-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, tooltip="A page up", id="list.page-up"),
        Binding("g,home", "edge(-1)", "First", show=False, tooltip="The first row", id="list.first"),
        Binding("G,end", "edge(1)", "Last", show=False, tooltip="The last row", id="list.last"),
        Binding("enter", "open", "Open", show=False, tooltip="Open the row", id="list.open"),
    ]
    cursor: reactive[int] = reactive(0, init=False, repaint=False)
    entries: Sequence[object] = ()
    """The objects that the rows show, in order."""
    headings: Sequence[int] = ()
    """The rows that are headings, in order."""

    # -- what a subclass says ------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.entries)

    def row(self, index: int) -> Line:
        """The content of a row."""
        raise NotImplementedError

    def cursor_mark(self, index: int) -> Span:
        """The beginning of a row: the cursor's mark, or blanks."""
        return Span("▶ " if index == self.cursor else "  ", Tone.HERE)

    def selectable(self, index: int) -> bool:
        """Whether the cursor may be on a row."""
        return True

    @property
    def position(self) -> str:
        """The place of the cursor among the rows without headings, such as `5 of 60`; empty if there is no row."""
        above, every = (bisect_right(self.headings, at) for at in (self.cursor, self.count))
        return f"{self.cursor + 1 - above:,} of {self.count - every:,}" if self.count > every else ""

    def choose(self, index: int) -> None:
        """Moves the cursor to a row that the operator chose."""
        self.cursor = index

    # -- keys and mouse ------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """Moves the cursor by rows."""
        self._to(self.cursor + by, 1 if by > 0 else -1)

    def action_page(self, by: int) -> None:
        """Moves the cursor by pages."""
        self._to(self.cursor + by * max(1, self.size.height - 1), by)

    def action_edge(self, by: int) -> None:
        """Moves the cursor to the first or last row."""
        self._to(self.count - 1 if by > 0 else 0, -by)

    def action_open(self) -> None:
        """Opens the row at the cursor."""
        self.post_message(RowOpened(self.cursor))

    def on_click(self, event: Click) -> None:
        """Moves the cursor to the clicked row; a second click opens it."""
        row = int(self.scroll_offset.y) + event.y
        if 0 <= row < self.count and self.selectable(row):
            self.choose(row)
            if event.chain > 1:
                self.post_message(RowOpened(row))

    def _to(self, row: int, direction: int) -> None:
        """Moves the cursor to the nearest selectable row in the direction, else to one in the other direction."""
        row = min(max(row, 0), max(0, self.count - 1))
        # A heading at the end of the list has no row after it, so the other direction is searched too.
        for step in (direction, -direction):
            index = row
            while 0 <= index < self.count:
                if self.selectable(index):
                    self.choose(index)
                    return
                index += step

    # -- drawing -------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Sets the scrollable size."""
        self._refresh_scrollbars()
        self.fit_rows()

    def fit_rows(self) -> None:
        """Adjusts to a changed number of rows."""
        self.virtual_size = Size(1, self.count)
        self.refresh()

    def on_resize(self) -> None:
        """Keeps the cursor visible."""
        self.show_cursor()

    def watch_cursor(self, old: int, new: int) -> None:
        """Redraws all rows between the old and the new cursor, whose gutters change."""
        top = int(self.scroll_offset.y)
        low, high = min(old, new), max(old, new)
        self.refresh(Region(0, low - top, self.size.width, high - low + 1))
        self.show_cursor()

    def show_cursor(self) -> None:
        """Scrolls as little as needed, without animation; headings above the first row of a group stay visible,
        if there is room for them."""
        top, height = int(self.scroll_offset.y), self.size.height
        above = self.cursor
        while above and self.cursor - above < min(HEADINGS, height - 1) and not self.selectable(above - 1):
            above -= 1
        if height <= 0 or (top <= above and self.cursor < top + height):
            return
        margin = height // 3  # with a third, most keys need no scrolling and draw only two rows
        target = above - margin if above < top else self.cursor - height + 1 + margin
        self.scroll_to(y=max(0, min(target, self.count - height)), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """One visible row."""
        index = int(self.scroll_offset.y) + y
        base = self._base
        width = self.scrollable_content_region.width
        if index >= self.count:
            return Strip.blank(width, base)
        paint: Paint = paint_of(self.app)
        if index == self.cursor:
            base = base + paint.cursor + Style(bold=self.has_focus)
        return paint.strip(self.row(index), width, base)


# -- A table with a cursor, a few lines above it, and the details of the row at the cursor below ---------------------
# All such screens share the layout, the search, copying the command line that prints the same, and the export to a
# file. Subclasses supply the table and further keys.


class CursorTable(RowList):
    """A searchable list."""

    needle: reactive[str] = reactive("", init=False)

    def find(self, by: int, again: bool) -> bool:
        """Goes to the next or previous row that contains the needle; False if none does."""
        raise NotImplementedError


class TableScreen(Screen[Any]):
    """A screen with a table and the details of its current row."""

    DEFAULT_CSS = """
    TableScreen #head { padding: 0 1; background: $surface; max-height: 40%; }
    TableScreen CursorTable { height: 3fr; padding: 0 1; overflow-x: hidden; }
    TableScreen CursorTable { scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    TableScreen #detail { height: 2fr; padding: 0 1; border-top: hkey $border; scrollbar-size-vertical: 1;
        scrollbar-gutter: stable; border-title-align: right; border-title-color: $text-muted; }
    TableScreen.-reading CursorTable { height: 1fr; }
    TableScreen.-reading #detail { height: 3fr; border-top: hkey $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("/", "search", "search", tooltip="Search in this table", id="search"),
        Binding("n", "again(1)", "match", tooltip="The next match of the search", id="search.next", show=False),
        Binding("N", "again(-1)", "Previous match", show=False, tooltip="The previous match", id="search.previous"),
        Binding("y", "copy", "command", tooltip="Copy the command line that shows the same", id="copy.command"),
        Binding("x", "export", "export", tooltip="Write the table to files: as text and for programs", id="export"),
        Binding("tab", "app.focus_next", "other pane", tooltip="To the details of the row, and back", id="pane"),
    ]
    note: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self, table: CursorTable) -> None:
        super().__init__()
        self._table = table
        self._head = WrappedLines(id="head")
        self._detail = TextView(id="detail")

    # -- what a subclass says ------------------------------------------------------------------------------------

    def command(self) -> str:
        """The command line that prints the same table."""
        raise NotImplementedError

    def files(self) -> Mapping[str, str]:
        """The files of an export of the table: name -> content."""
        raise NotImplementedError

    def head(self) -> Sequence[Line]:
        """The lines above the table."""
        raise NotImplementedError

    def detail(self) -> LineSheet:
        """The details of the current row."""
        raise NotImplementedError

    # -- layout --------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Yields the head, the table, the details and the key bar."""
        yield self._head
        yield self._table
        yield self._detail
        yield KeyBar(id="keys").data_bind(TableScreen.note)

    def on_mount(self) -> None:
        """Focuses the table."""
        self._table.focus()
        self.watch(self._table, "cursor", self.show_row, init=False)

    def on_resize(self) -> None:
        """Fits the columns to the new width, and again when a scrollbar that needs no room any more is gone."""
        self.show()
        self.call_after_refresh(self.show)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Gives the focused pane more room."""
        self.set_class(event.widget is self._detail, "-reading")

    def show(self) -> None:
        """Redraws the rows after a change of data or size."""
        self._table.styles.max_height = self._table.count or None
        self._table.fit_rows()
        self._table.show_cursor()
        self.show_row()

    def show_row(self) -> None:
        """Shows the details of another row."""
        self._head.lines = self.head()
        self._detail.sheet = self.detail()
        self._detail.border_title = self._table.position

    # -- keys ----------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Asks for a search text."""
        from inspector.tui.questions import Prompt

        ask_operator(self.app, Prompt("search", "text in this table", self._table.needle), self._search)

    def _search(self, text: str) -> None:
        self._table.needle = self._detail.needle = text
        self._find(1, again=False)

    def action_again(self, by: int) -> None:
        """Goes to the next or previous match."""
        if not self._table.needle:
            self.note = NOT_SEARCHED
            return
        self._find(by, again=True)

    def _find(self, by: int, again: bool) -> None:
        if self._table.needle and not (self._table.count and self._table.find(by, again)):
            self.note = f"{in_quotes(self._table.needle)} is not in this table"

    def action_copy(self) -> None:
        """Copies the command line."""
        self.note = copy_text(self.app, self.command())

    def action_export(self) -> None:
        """Asks for a folder; in a browser the file is downloaded."""
        deliver(self, self.files, "the table")


# -- A short list to choose from -------------------------------------------------------------------------------------
# Each row has a word and its meaning.

MEANING_ROWS = 3
"""The largest number of rows below the list for a meaning that has no room in its row."""


class ChoiceList(RowList):
    """Rows with a word and its meaning."""

    def __init__(self, rows: Sequence[tuple[str, str]], start: int) -> None:
        super().__init__(id="words", classes="long")
        self.entries: Sequence[tuple[str, str]] = rows
        self._columns = max((len(word) for word, _ in rows), default=0)
        self.set_reactive(RowList.cursor, start)

    def row(self, index: int) -> Line:
        """A word and its meaning."""
        word, about = self.entries[index]
        return (self.cursor_mark(index), Span(f"{word:<{self._columns}}  ", Tone.KEY), safe(about))


class Choose(Dialog[str | None]):
    """Asks the operator to choose a row; returns None if the operator leaves."""

    DEFAULT_CSS = """
    #choose { width: 80; padding: 0 2; }
    Choose #words { max-height: 3; }
    Choose.-rows-15 #words { max-height: 8; }
    Choose.-rows-24 #words { max-height: 16; }
    Choose.-rows-36 #words { max-height: 27; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "leave", tooltip="Leave without doing anything", id="choose.leave"),
    ]

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], start: int = 0, escape: str = "leaves") -> None:
        super().__init__()
        self._title, self._words, self._escape = title, ChoiceList(rows, start), escape
        self._below = 0
        """The most rows that a meaning took below the list; they stay reserved, so that the box does not jump."""

    def compose(self) -> ComposeResult:
        """A title, the rows, the keys."""
        with Vertical(id="choose"):
            yield note(self._title, Tone.TITLE)
            yield self._words
            yield WrappedLines(id="choice")
            yield key_note(f"enter chooses · esc {self._escape}")

    def on_mount(self) -> None:
        """Shows the meaning of the row at the cursor in full."""
        self.watch(self._words, "cursor", self._show_meaning, init=False)

    def on_resize(self) -> None:
        """Shows the meaning again for the new width."""
        self._below = 0
        self.call_after_refresh(self._show_meaning)

    def _show_meaning(self) -> None:
        """Shows the meaning of the row at the cursor below the list, if its row has no room for it."""
        at, room = self._words.cursor, self._words.scrollable_content_region.width
        below = self.query_one("#choice", WrappedLines)
        cut = at < self._words.count and width_of(self._words.row(at), paint_of(self.app).measure) > room > 0
        below.lines = [(safe(self._words.entries[at][1], Tone.DIM, MEANING_ROWS * room),)] if cut else ()
        self._below = max(self._below, len(below.make(room)))
        below.styles.min_height = self._below

    def on_row_opened(self, message: RowOpened) -> None:
        """Chooses the row at the cursor."""
        message.stop()
        self.dismiss(self._words.entries[message.row][0])
