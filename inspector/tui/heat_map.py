"""The heat map widget of a grid: cursor, keys and scrolling. `Plane` has the positions of cells, marks their contents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from inspector.report.lines.spans import Span
from inspector.tui.messages import RowOpened
from inspector.tui.paint import RowsInOneStyle, paint_of
from inspector.whatif.grid import Axis
from inspector.whatif.heat import Plane, plane


class HeatMap(ScrollView, RowsInOneStyle, can_focus=True):
    """The cells of a grid, with a cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="Run the session under this cell, where it first differs",
                id="tune.open"),
        Binding("h,left", "move(-1, 0)", "Left", show=False, tooltip="The cell to the left", id="tune.left"),
        Binding("l,right", "move(1, 0)", "Right", show=False, tooltip="The cell to the right", id="tune.right"),
        Binding("j,down", "move(0, 1)", "Down", show=False, tooltip="The cell below", id="tune.down"),
        Binding("k,up", "move(0, -1)", "Up", show=False, tooltip="The cell above", id="tune.up"),
        Binding("pagedown", "page(1)", "Page down", show=False, tooltip="A page down", id="tune.page-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, tooltip="A page up", id="tune.page-up"),
        Binding("g,home", "edge(0)", "First", show=False, tooltip="The first cell", id="tune.first"),
        Binding("G,end", "edge(1)", "Last", show=False, tooltip="The last cell", id="tune.last"),
    ]
    cell: reactive[int] = reactive(0, init=False, repaint=False)
    room: reactive[int] = reactive(24, init=False, repaint=False)
    """The largest height in lines; the widget takes no more than it needs."""

    def __init__(self, *, id: str | None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._axes: tuple[Axis, ...] = ()
        self._marks_for: Callable[[bool], Sequence[Span]] = lambda short: ()
        """The function that makes the marks of the cells, shortened or in full."""
        self._marks: Sequence[Span] = ()
        self._best: Mapping[int, str] = {}
        self._plane: Plane | None = None
        self.full_width = 0
        """The number of columns that the widget needs to show all cells in full."""

    def show(
        self, axes: tuple[Axis, ...], marks: Callable[[bool], Sequence[Span]], best: Mapping[int, str]
    ) -> None:
        """Shows other cells or marks; `marks` makes them in full or shortened, `best` follows some of them."""
        self._axes, self._marks_for, self._best = axes, marks, best
        self._lay()

    def watch_room(self) -> None:
        """Computes the layout again when the height changes."""
        self._lay()

    # -- keys and mouse ------------------------------------------------------------------------------------------

    def action_move(self, across: int, down: int) -> None:
        """Moves the cursor by cells."""
        if self._plane is not None:
            self.cell = self._plane.neighbour(self.cell, across, down)

    def action_page(self, by: int) -> None:
        """Moves the cursor by pages."""
        self.action_move(0, by * max(1, self.size.height - 2))

    def action_edge(self, last: int) -> None:
        """Moves the cursor to the first or last cell."""
        self.cell = len(self._marks) - 1 if last else 0

    def action_open(self) -> None:
        """Opens the cell at the cursor."""
        self.post_message(RowOpened(self.cell))

    def on_click(self, event: Click) -> None:
        """Moves the cursor to the clicked cell; a second click opens it."""
        offset = event.get_content_offset(self)
        if self._plane is None or offset is None:
            return
        shift = int(self.scroll_offset.x) if offset.x >= self._plane.margin else 0
        found = self._plane.cell_at(offset.x + shift, int(self.scroll_offset.y) + offset.y)
        if found is not None:
            self.cell = found
            if event.chain > 1:
                self.action_open()

    # -- drawing -------------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Adjusts to the new size."""
        self._lay()

    def _lay(self) -> None:
        width = self.scrollable_content_region.width
        if self._axes and width > 0:
            self._marks = self._marks_for(False)
            laid = plane(self._axes, self._marks, None, self._best)
            self.full_width = laid.width
            if laid.width > width:
                self._marks = self._marks_for(True)
                laid = plane(self._axes, self._marks, None, self._best)
            self._plane = laid
            self.styles.height = max(1, min(laid.height, self.room))
            self.virtual_size = Size(width + laid.whole_columns(max(0, laid.width - width)), laid.height)
            if laid.place(self.cell)[0] + laid.cell_width <= width:  # no column has to be hidden on the left
                self.scroll_to(x=0, animate=False, force=True, immediate=True)
            self.show_cursor()
        self.refresh()

    def watch_cell(self, old: int, new: int) -> None:
        """Redraws the lines of both cells."""
        if self._plane is not None:
            for cell in (old, new):
                y = self._plane.place(cell)[1] - int(self.scroll_offset.y)
                self.refresh(Region(0, y, self.size.width, 1))
            self.show_cursor()

    def show_cursor(self) -> None:
        """Scrolls as little as needed, sideways by whole columns, so that no heading hides the cursor."""
        if self._plane is None or self.size.height <= 0:
            return
        x, y = self._plane.place(self.cell)
        left, visible_width = x - self._plane.margin, self._plane.shown_columns(self.scrollable_content_region.width)
        shift = int(self.scroll_offset.x)
        moved = shift != self._plane.whole_columns(shift)  # the columns have changed their width
        if moved or left < shift or left + self._plane.cell_width > shift + visible_width:
            x = left if left < shift else (
                self._plane.whole_columns(max(0, left + self._plane.cell_width - visible_width)))
            self.scroll_to(x=x, animate=False, force=True, immediate=True)
            self.refresh()
        top, height = int(self.scroll_offset.y), self.size.height
        above = y - 1 if self._plane.header_line(y) < y - 1 else max(0, y - self._plane.heads - self._plane.title)
        if above < top or y >= top + height:
            target = above if above < top else y - height + 1
            self.scroll_to(y=target, animate=False, force=True, immediate=True)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """One visible line, in whole columns; row names stay at the left, column headings at the top."""
        heat_plane, width = self._plane, self.scrollable_content_region.width
        line = int(self.scroll_offset.y) + y
        if heat_plane is None or line >= heat_plane.height:
            return Strip.blank(width, self._base)
        if y == 0:
            line = heat_plane.header_line(line)
        paint = paint_of(self.app)
        spans = heat_plane.line(line, self._marks, self.cell, self._best)
        shift = int(self.scroll_offset.x) if heat_plane.scrolls(line) else 0
        whole = paint.strip(spans, max(width, heat_plane.width), self._base)
        if heat_plane.heads_columns(line) and shift:
            sign = Strip([Segment("<", self._base + Style(bold=True))])
            whole = Strip.join([whole.crop(0, heat_plane.margin - 1), sign, whole.crop(heat_plane.margin)])
        end = min(width, heat_plane.margin + heat_plane.shown_columns(width)) if heat_plane.scrolls(line) else width
        strip = Strip.join([whole.crop(0, heat_plane.margin), whole.crop(heat_plane.margin + shift, end + shift)])
        if heat_plane.heads_columns(line) and heat_plane.width > end + shift:
            # The mark is after the last whole column.
            strip = Strip.join([strip.crop(0, end - 1), Strip([Segment(">", self._base + Style(bold=True))])])
        strip = strip.extend_cell_length(width, self._base)
        left, row = heat_plane.place(self.cell)
        if row != line:
            return strip
        left -= shift
        right = min(left + heat_plane.cell_width - 1, width)
        cell = paint.under_cursor(strip.crop(left, right), Style(bold=self.has_focus))
        return Strip.join([strip.crop(0, left), cell, strip.crop(right, width)])
