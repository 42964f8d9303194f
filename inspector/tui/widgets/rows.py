"""A list of any length with a cursor: rows are drawn when they are visible, and only those that changed.

Owns scrolling, the cursor row and the keys that move it. What a row says is the subclass's.
"""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from inspector.report.lines.spans import Line
from inspector.tui.messages import RowOpened
from inspector.tui.paint import Paint, paint_of


class RowList(ScrollView, can_focus=True):
    """Rows with a cursor on one of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Down", show=False, tooltip="The next row", id="list.down"),
        Binding("k,up", "move(-1)", "Up", show=False, tooltip="The row before", id="list.up"),
        Binding("pagedown", "page(1)", "Page down", show=False, tooltip="A page down", id="list.page-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, tooltip="A page up", id="list.page-up"),
        Binding("g,home", "edge(-1)", "First", show=False, tooltip="The first row", id="list.first"),
        Binding("G,end", "edge(1)", "Last", show=False, tooltip="The last row", id="list.last"),
        Binding("enter", "open", "Open", show=False, tooltip="Open the row", id="list.open"),
    ]
    cursor: reactive[int] = reactive(0, init=False, repaint=False)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._base = Style()

    # -- what a subclass says ------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def row(self, index: int) -> Line:
        """What a row says."""
        raise NotImplementedError

    def selectable(self, index: int) -> bool:
        """Whether the cursor may stand on a row."""
        return True

    def wanted(self, index: int) -> None:
        """The user moved to a row."""
        self.cursor = index

    # -- keys and mouse ------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """Moves by rows."""
        self._to(self.cursor + by, 1 if by > 0 else -1)

    def action_page(self, by: int) -> None:
        """Moves by pages."""
        self._to(self.cursor + by * max(1, self.size.height - 1), by)

    def action_edge(self, by: int) -> None:
        """Moves to the first or the last row."""
        self._to(self.count - 1 if by > 0 else 0, -by)

    def action_open(self) -> None:
        """Opens the row at the cursor."""
        self.post_message(RowOpened(self.cursor))

    def on_click(self, event: Click) -> None:
        """Moves to the row that was clicked; a second click opens it."""
        row = int(self.scroll_offset.y) + event.y
        if 0 <= row < self.count and self.selectable(row):
            self.wanted(row)
            if event.chain > 1:
                self.post_message(RowOpened(row))

    def _to(self, row: int, direction: int) -> None:
        """The nearest row that may be stood on: further in the direction, else back."""
        row = min(max(row, 0), max(0, self.count - 1))
        for step in (direction, -direction):
            index = row
            while 0 <= index < self.count:
                if self.selectable(index):
                    self.wanted(index)
                    return
                index += step

    # -- drawing -------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Sets the scrolled size."""
        self._refresh_scrollbars()
        self.resized()

    def resized(self) -> None:
        """The number of rows has changed."""
        self.virtual_size = Size(1, self.count)
        self.refresh()

    def on_resize(self) -> None:
        """Keeps the cursor in sight."""
        self.show_cursor()

    def watch_cursor(self, old: int, new: int) -> None:
        """Draws what changed: all rows between, since their gutters say past or ahead."""
        top = int(self.scroll_offset.y)
        low, high = min(old, new), max(old, new)
        self.refresh(Region(0, low - top, self.size.width, high - low + 1))
        self.show_cursor()

    def show_cursor(self) -> None:
        """Scrolls as little as needed, without animation; the row above the first is its heading."""
        top, height = int(self.scroll_offset.y), self.size.height
        above = self.cursor - 1 if self.cursor and not self.selectable(self.cursor - 1) else self.cursor
        if height <= 0 or (top <= above and self.cursor < top + height):
            return
        margin = height // 3  # seldom enough that most keys draw two rows
        target = above - margin if above < top else self.cursor - height + 1 + margin
        self.scroll_to(y=max(0, min(target, self.count - height)), animate=False, force=True)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Takes the style once for all rows: it is worked out anew each time it is asked for."""
        self._base = self.rich_style
        return super().render_lines(crop)

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
