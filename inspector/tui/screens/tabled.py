"""A table with a cursor, a few lines over it, and below it all that is known of the row at the cursor.

What every such screen shares: the layout, search, copying the command line that shows the same, writing the table to a
file. What the table holds, and what its keys do, is the subclass's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import DescendantFocus
from textual.reactive import reactive
from textual.screen import Screen

from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import Line
from inspector.tui.widgets.bars import KeyBar
from inspector.tui.widgets.fields import Lines
from inspector.tui.widgets.rows import RowList
from inspector.tui.widgets.text_view import TextView
from inspector.tui.writing import copied


class Table(RowList):
    """Rows that can be searched."""

    needle: reactive[str] = reactive("", init=False)

    def find(self, by: int, again: bool) -> bool:
        """Goes to the next or previous place that says the needle; False where none does."""
        raise NotImplementedError


class Tabled(Screen[Any]):
    """A table, and what is known of its row."""

    TITLE_OF_KEYS = "This table"
    DEFAULT_CSS = """
    Tabled #head { padding: 0 1; background: $surface; }
    Tabled Table { height: 3fr; padding: 0 1; overflow-x: hidden; }
    Tabled Table { scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    Tabled #detail { height: 2fr; padding: 0 1; border-top: hkey $border; scrollbar-size-vertical: 1; }
    Tabled.-reading Table { height: 1fr; }
    Tabled.-reading #detail { height: 3fr; border-top: hkey $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("/", "search", "search", tooltip="Search in this table", id="search"),
        Binding("n", "again(1)", "match", tooltip="The next match of the search", id="search.next", show=False),
        Binding("N", "again(-1)", "Match before", show=False, tooltip="The match before", id="search.previous"),
        Binding("y", "copy", "command", tooltip="Copy the command line that shows the same", id="copy.command"),
        Binding("x", "export", "export", tooltip="Write the table to a text file", id="export"),
        Binding("tab", "other_pane", "other pane", tooltip="To what is known of the row, and back", id="pane"),
    ]
    note: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._table = table
        self._head = Lines(id="head")
        self._detail = TextView(id="detail")

    # -- what a subclass says ------------------------------------------------------------------------------------

    def command(self) -> str:
        """The command line that shows the same."""
        raise NotImplementedError

    def files(self) -> Mapping[str, str]:
        """The table as a text file."""
        raise NotImplementedError

    def head(self) -> Sequence[Line]:
        """What stands over the table."""
        raise NotImplementedError

    def detail(self) -> Listed:
        """What is known of the row at the cursor."""
        raise NotImplementedError

    # -- layout --------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """The lines over the table, the table, the row, the keys."""
        yield self._head
        yield self._table
        yield self._detail
        yield KeyBar(id="keys").data_bind(Tabled.note)

    def on_mount(self) -> None:
        """The table in hand."""
        self._table.focus()
        self.watch(self._table, "cursor", self.moved, init=False)

    def on_resize(self) -> None:
        """Another width, other columns."""
        self.show()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """The pane in hand has the more room."""
        self.set_class(event.widget is self._detail, "-reading")

    def show(self) -> None:
        """The rows have changed, or the room for them."""
        self._table.styles.max_height = self._table.count or None
        self._table.resized()
        self._table.show_cursor()
        self.moved()

    def moved(self) -> None:
        """Another row is at the cursor."""
        self._head.lines = self.head()
        self._detail.sheet = self.detail()

    # -- keys ----------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Asks what to look for."""
        from inspector.tui.screens.prompt import Prompt

        self.app.push_screen(Prompt("search", "text in this table", self._table.needle), self._search)

    def _search(self, typed: str | None) -> None:
        if typed is not None:
            self._table.needle = self._detail.needle = typed
            self._find(1, again=False)

    def action_again(self, by: int) -> None:
        """The next or previous match."""
        if not self._table.needle:
            self.note = "nothing was searched yet: / searches"
            return
        self._find(by, again=True)

    def _find(self, by: int, again: bool) -> None:
        if self._table.needle and not (self._table.count and self._table.find(by, again)):
            self.note = f"{self._table.needle!r} is not in this table"

    def action_copy(self) -> None:
        """Copies the command line."""
        self.note = copied(self.app, self.command())

    def action_export(self) -> None:
        """Asks for a folder."""
        from inspector.tui.screens.prompt import Prompt

        self.app.push_screen(Prompt("into", "a folder", "."), self._export)

    def _export(self, folder: str | None) -> None:
        from inspector.tui.writing import written

        if folder is not None:
            self.note = written(folder, self.files)

    def action_other_pane(self) -> None:
        """To the row's text, and back."""
        (self._table if self._detail.has_focus else self._detail).focus(scroll_visible=False)
