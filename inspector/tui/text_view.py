"""The widget that shows a sheet, with scrolling, wrapping and search. Only visible rows are drawn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from inspector.report.lines.glyphs import key_at, keys_to_form
from inspector.report.lines.spans import Line, LineSheet, Measure, Tone, mark_matches, width_of
from inspector.tui.key_words import key_of
from inspector.tui.messages import LinesPointed, NoteWanted, TabbedScreen
from inspector.tui.paint import RowsInOneStyle, paint_of

EMPTY_SHEET: LineSheet = LineSheet([])
CACHED_LINES = 2_000
"""The number of lines whose wrapped rows are cached."""
PINNED_SHARE = 3
"""The least height of the view, as a multiple of the height of the pinned rows; in a lower view no rows are pinned."""
UNWRAPPED_WIDTH = 10_000
"""The scrollable width if lines are not wrapped and too many to be measured."""


class TextView(ScrollView, RowsInOneStyle, can_focus=True):
    """The lines of one sheet."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "lines(1)", "Down", show=False, tooltip="A line down", id="text.down"),
        Binding("k,up", "lines(-1)", "Up", show=False, tooltip="A line up", id="text.up"),
        Binding("h,left", "columns(-8)", "Left", show=False, id="text.left",
                tooltip="Left, where lines are not wrapped"),
        Binding("l,right", "columns(8)", "Right", show=False, id="text.right",
                tooltip="Right, where lines are not wrapped"),
        Binding("pagedown", "page(1)", "Page down", show=False, tooltip="A page down", id="text.page-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, tooltip="A page up", id="text.page-up"),
        Binding("enter", "point", "Point", show=False, id="text.point",
                tooltip="In Wire, what the bytes in sight became, one by one; in Response, the bytes of a fact"),
        Binding("g,home", "edge(-1)", "Top", show=False, tooltip="The first line", id="text.first"),
        Binding("G,end", "edge(1)", "Bottom", show=False, tooltip="The last line", id="text.last"),
    ]
    sheet: reactive[LineSheet] = reactive(EMPTY_SHEET, init=False, repaint=False)
    wrap: reactive[bool] = reactive(True, init=False, repaint=False)
    needle: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._ends: Sequence[int] = ()  # for each line, the index of the row after it
        self._laid: tuple[object, int] | None = None
        self._unsized = True
        self._height = 0
        self._widest = 0
        self._rows: dict[int, Sequence[Line]] = {}
        self._match: int | None = None
        self.wrapped = False
        """Whether the last search went on from the other end."""

    # -- what the screen calls -----------------------------------------------------------------------------------

    def find(self, direction: int, again: bool) -> bool:
        """Goes to the next or previous line that contains the needle, wrapping around; False if none does."""
        if not self.needle or not len(self.sheet):
            return False
        start = self._match if self._match is not None else self._line_at(self._first_row)
        first = start + direction if again and self._match is not None else start
        found = self.sheet.find(self.needle, first, direction)
        self.wrapped = found is None
        if found is None:
            found = self.sheet.find(self.needle, 0 if direction > 0 else len(self.sheet) - 1, direction)
        self._match = found
        if found is not None:
            self.show_line(found, Tone.MATCH)
        return found is not None

    def show_line(self, index: int, role: Tone = Tone.PICKED) -> None:
        """Scrolls to a line, or to its first row with the role (the last row of a selection), unless it is visible."""
        if not self._ends or index >= len(self._ends):
            return
        height, pinned = self.size.height, self._pinned_rows
        first, *more = self._rows_with(index, role) or [0]
        row, far = self._row_of(index) + first, (more or [first])[-1] - first if role is Tone.PICKED else 0
        last = row + (far if far < height // 2 else 0)
        if row >= pinned and not (self._first_row <= row and last < int(self.scroll_offset.y) + height):
            self.scroll_to(y=max(0, row - max(height // 4, pinned)), animate=False, force=True)

    def show_from(self, index: int) -> None:
        """Scrolls so that everything from a line on is visible, with as much above it as fits."""
        if self._ends and index < len(self._ends):
            row, height = self._row_of(index), self.size.height
            self.scroll_to(y=max(0, min(row - height // 4, self._ends[-1] - height)), animate=False, force=True)

    def _rows_with(self, index: int, role: Tone) -> list[int]:
        """The indices of the rows of a line that have the role."""
        if self._ends[index] - self._row_of(index) <= 1 or self._laid is None:
            return []
        rows = self._make_rows(index, self._laid[1], paint_of(self.app).measure)
        return [place for place, row in enumerate(rows) if any(span.role is role for span in row)]

    def extend(self) -> None:
        """Lays out lines added at the sheet's end; scrolls along if the end was visible."""
        sheet, ends = self.sheet, self._ends
        stable, top, height = getattr(sheet, "stable", 0), int(self.scroll_offset.y), self.size.height
        following = not ends or top + height >= ends[-1]
        if self._laid is None or not isinstance(ends, list) or self._unsized:
            self._lay()
        else:
            since, width, measure = min(stable, len(ends)), self._laid[1], paint_of(self.app).measure
            del ends[since:]
            for line in [line for line in self._rows if line >= since]:
                del self._rows[line]
            row = first = self._row_of(since) if ends else 0
            for line in range(since, len(sheet)):
                row += sheet.height(line, width, measure)
                ends.append(row)
            self.virtual_size = Size(self._widest, row)
            if first < top + height:
                self.refresh(Region(0, max(0, first - top), self.size.width, height))
        if following and self._ends and self._ends[-1] > height:
            # Immediate, because a scroll after the next refresh would undo a key that was pressed before it.
            self.scroll_to(y=self._ends[-1] - height, animate=False, force=True, immediate=True)

    # -- keys ----------------------------------------------------------------------------------------------------

    def action_lines(self, by: int) -> None:
        """Scrolls by lines."""
        self._scroll_by(by)

    def action_columns(self, by: int) -> None:
        """Scrolls sideways."""
        if self.wrap:
            how = " · w stops that" if "w" in self.screen.active_bindings else ""
            wire = isinstance(self.screen, TabbedScreen) and self.screen.open_tab == "wire"
            forms = " · v shows the bytes as hex and in other forms" if wire else ""
            self.post_message(NoteWanted(f"nothing lies left or right: long lines are wrapped{how}{forms}"))
            return
        self.scroll_to(x=self.scroll_offset.x + by, animate=False, force=True)

    def action_page(self, by: int) -> None:
        """Scrolls by pages."""
        self._scroll_by(by * max(1, self.size.height - 1 - self._pinned_rows))

    def action_edge(self, by: int) -> None:
        """Scrolls to the top or the bottom."""
        self._scroll_by(by * self.virtual_size.height)

    def _scroll_by(self, by: int) -> None:
        """Scrolls, or shows a note why nothing scrolls."""
        if self.scroll_offset.y == (self.max_scroll_y if by > 0 else 0):
            edge = "this is the end of the view" if by > 0 else "this is the beginning of the view"
            steps = " · space goes to the next step" if "space" in self.screen.active_bindings else ""
            self.post_message(NoteWanted(f"{edge if self.max_scroll_y else 'all of this view is in sight'}{steps}"))
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, force=True)

    def action_point(self) -> None:
        """Handles the visible lines like a click on them."""
        if self._ends:
            below = int(self.scroll_offset.y) + max(1, self.size.height) - 1
            last = min(self._line_at(below), len(self._ends) - 1)
            self.post_message(LinesPointed(self._line_at(self._first_row), last))

    def on_click(self, event: Click) -> None:
        """Handles a click on a line."""
        at = event.get_content_offset(self)
        row = self._row_at(at.y if at is not None else 0)
        if at is None or not self._ends or row >= self._ends[-1]:
            return
        line = self._line_at(row)
        column = at.x + (0 if self.wrap else int(self.scroll_offset.x))
        rows, part = self._rows.get(line, ()), row - self._row_of(line)
        shown, measure = rows[part] if part < len(rows) else (), paint_of(self.app).measure
        key = key_at(shown, column, measure)
        for pressed in (keys := [key] if key else keys_to_form(shown, column, measure)):
            self.app.simulate_key(key_of(pressed))
        if keys:
            return
        width = self._laid[1] if self._laid is not None and self.wrap else UNWRAPPED_WIDTH
        self.post_message(LinesPointed(line, line, row - self._row_of(line), column, width))

    # -- layout --------------------------------------------------------------------------------------------------

    def watch_sheet(self, old: LineSheet, new: LineSheet) -> None:
        """Shows another sheet; one of the same shape keeps the scroll position."""
        # Sheets of one shape have equal heights of lines, so nothing is laid out again while stepping through a turn.
        same = getattr(old, "shape", old) is getattr(new, "shape", new)
        if same and self._laid is not None:
            self._redraw(old, new)
        else:
            self._rows.clear()
            self._match = None
            self._lay()
            self.scroll_to(x=0, y=0, animate=False, force=True)
        self.show_line(new.focus)

    def _redraw(self, old: LineSheet, new: LineSheet) -> None:
        """Draws the visible lines in which two sheets of one shape differ."""
        self._rows.clear()
        top, height, pinned = int(self.scroll_offset.y), self.size.height, self._pinned_rows
        scrolled = range(self._line_at(self._first_row), min(self._line_at(top + height - 1) + 1, len(new)))
        for line in {*range(self._line_at(pinned - 1) + 1 if pinned else 0), *scrolled}:
            if old.line(line) != new.line(line):
                first = self._row_of(line)
                at = first if first < pinned else first - top
                self.refresh(Region(0, at, self.size.width, self._ends[line] - first))

    def watch_wrap(self) -> None:
        """Lays out the lines again."""
        top = self._line_at(int(self.scroll_offset.y)) if self._ends else 0
        self._lay()
        self.scroll_to(x=0, y=self._row_of(top) if top < len(self._ends) else 0, animate=False, force=True)

    def watch_needle(self) -> None:
        """Marks the matches of another search text."""
        self._match = None
        self._rows.clear()
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        """Wraps to the new width; the top line stays at the top, but a selection that was visible stays visible."""
        top = self._line_at(int(self.scroll_offset.y)) if self._ends and not self._unsized else None
        if top is None:
            self._lay()
            self.show_line(self.sheet.focus)
        elif self._laid != self._layout() or self._unsized:
            below = int(self.scroll_offset.y) + max(self._height, self.size.height)  # a higher view is scrolled back
            seen = top <= self.sheet.focus <= self._line_at(below - 1)
            self._lay()
            row = self._row_of(min(top, len(self._ends) - 1)) if self._ends else 0
            if seen and self.sheet.focus < len(self._ends):
                row = max(row, self._last_picked() - self.size.height + 1)
            self.scroll_to(y=row, animate=False, force=True, immediate=True)
        else:
            self._keep_picked(max(0, self._height - self.size.height))
        self._height = self.size.height

    def _keep_picked(self, lost: int) -> None:
        """Scrolls further if the selection was in rows that the view lost at its bottom, for example to a long note."""
        focus, below = self.sheet.focus, int(self.scroll_offset.y) + self.size.height
        if focus < len(self._ends):
            last = self._last_picked()
            if below <= last < below + lost:
                self.scroll_to(y=self.scroll_offset.y + last - below + 1, animate=False, force=True)

    def _last_picked(self) -> int:
        """The last row of the selection."""
        focus = self.sheet.focus
        return self._row_of(focus) + max(self._rows_with(focus, Tone.PICKED), default=0)

    def _layout(self) -> tuple[object, int]:
        return (self.wrap, self.scrollable_content_region.width)

    def _lay(self) -> None:
        """Lays out, and sets the scrolled size."""
        if self._measure_rows():
            count = self._ends[-1] if self._ends else 0
            self.virtual_size = Size(self._widest, count)
            self._unsized = False
            self.refresh()

    def _measure_rows(self) -> bool:
        """Computes the rows of each line at the present width; False if the view has no width."""
        width = self.scrollable_content_region.width
        self._rows.clear()
        if width <= 0:  # hidden; it is laid out when it is shown again
            self._laid, self._ends = None, ()
            return False
        sheet, measure = self.sheet, paint_of(self.app).measure
        self._laid = self._layout()
        self._widest = width
        if self.wrap:
            self._ends = list(accumulate(sheet.height(i, width, measure) for i in range(len(sheet))))
        else:
            self._ends = range(1, len(sheet) + 1)
            # Measuring makes every line, which takes too long for a body of millions of bytes.
            few = len(sheet) <= UNWRAPPED_WIDTH
            widths = (width_of(sheet.line(i), measure) for i in range(len(sheet)))
            self._widest = max(widths, default=0) if few else UNWRAPPED_WIDTH
        return True

    @property
    def _pinned_rows(self) -> int:
        """The rows that stay at the top: the first lines of the sheet, if there is room."""
        lines = self.sheet.pinned
        rows = self._row_of(lines) if lines <= len(self._ends) else 0
        return rows if rows * PINNED_SHARE <= self.size.height else 0

    @property
    def shows_pinned(self) -> bool:
        """Whether the pinned lines are visible, the last one to its end."""
        last = self.sheet.pinned - 1
        width = self.scrollable_content_region.width
        return self._pinned_rows > 0 and width_of(self.sheet.line(last), paint_of(self.app).measure) <= width

    @property
    def _first_row(self) -> int:
        """The first visible row that is not pinned; the first row if nothing is scrolled."""
        top = int(self.scroll_offset.y)
        return top + self._pinned_rows if top else 0

    def _row_at(self, y: int) -> int:
        """The row that is this many rows below the top of the view."""
        return y if y < self._pinned_rows else int(self.scroll_offset.y) + y

    def _row_of(self, line: int) -> int:
        return self._ends[line - 1] if line else 0

    def _line_at(self, row: int) -> int:
        return bisect_right(self._ends, row)

    # -- drawing -------------------------------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draws the visible rows."""
        if self._laid is None:
            self._unsized = self._measure_rows()  # the first frame comes before the first resize
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """One visible row."""
        row, width = self._row_at(y), self.size.width
        left = int(self.scroll_offset.x) if y >= self._pinned_rows else 0
        laid = self._laid[1] if self._laid is not None else width
        line = self._line_at(row)
        if not self._ends or line >= len(self._ends):
            return Strip.blank(width, self._base)
        paint = paint_of(self.app)
        rows = self._rows.get(line)
        if rows is None:
            # Emptied as a whole: the visible rows are made again with the next frame, and no order has to be kept.
            if len(self._rows) > CACHED_LINES:
                self._rows.clear()
            rows = self._rows[line] = self._make_rows(line, laid, paint.measure)
        part = row - self._row_of(line)
        spans = rows[part] if part < len(rows) else ()
        if self.wrap:
            return paint.strip(spans, width, self._base)
        strip = paint.strip(spans, width, self._base, whole=False)
        return strip.crop_extend(left, left + width, self._base)

    def _make_rows(self, line: int, width: int, measure: Measure) -> Sequence[Line]:
        if self.wrap:
            return self.sheet.rows(line, width, measure, self.needle)
        return [mark_matches(self.sheet.unbroken(line), self.needle)]
