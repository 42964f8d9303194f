"""The table of turns: its rows (a turn, or a session by its worst turn), its heading, and the details of a row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.reactive import reactive

from inspector.config.files import bounds_of
from inspector.report import filters, turn_rows, turn_table
from inspector.report.filter_terms import folded_text
from inspector.report.lines.glyphs import ascii_text, hint
from inspector.report.lines.spans import (
    Line,
    Measure,
    Span,
    Tone,
    clip,
    last_name,
    one_line,
    split_line,
    text_of,
    width_of,
    wrap_line,
)
from inspector.report.table_rows import RowCounts, count_rows
from inspector.report.turn_rows import TurnRow
from inspector.report.turn_table import GAP, TurnColumn
from inspector.sessions import without_collector
from inspector.tui.lists import RowList
from inspector.tui.paint import paint_of
from inspector.tui.panels import Panel
from inspector.tui.session_files import OpenSession, recent_files

AGENTS = "Sessions of your agents, last written first"
SAMPLES = "Sample sessions"
RECENT = "Recent files"


class Section(NamedTuple):
    """Files with a heading."""

    title: str
    paths: tuple[str, ...]
    remember: bool = False
    """Whether a file opened from this section joins the list of recent files."""


def found_sections(environment: Mapping[str, str]) -> list[Section]:
    """The sessions that are listed without a path: those of agents, the samples, recent files that are neither."""
    from inspector.sessions.folders import samples, short, transcripts  # named paths need none of it: 2 ms of a start

    within = bounds_of(environment)
    agents = tuple(each.path for each in transcripts(environment))
    examples = {str(each.path): short(each.path) for each in samples() if within.holds(str(each.path))}
    listed = {*agents, *examples}
    recent = tuple(path for path in recent_files() if path not in listed and within.holds(path))
    every = Section(AGENTS, agents), Section(SAMPLES, tuple(examples.values())), Section(RECENT, recent, remember=True)
    return [section for section in every if section.paths]


@without_collector
def rows_of_session(session: OpenSession) -> list[TurnRow]:
    """The rows of a session that is already loaded."""
    rows_of = turn_rows.rows_of if session.following is None else session.following.rows_of
    return rows_of(session.original.view, session.paths)


class Listing(NamedTuple):
    """The rows that the table shows under a filter."""

    of: tuple[Sequence[TurnRow], str, bool, bool]
    """What it was made from: the rows, the column of the order, whether that is reversed, and whether by session."""
    filter: filters.Filter | None
    matching_rows: list[TurnRow]
    counts: RowCounts | None
    """The counts of the rows that pass; None without a filter."""
    note: str
    """The number of rows that pass, and which words are searched as text."""
    shared: frozenset[str]
    """Names that sessions in several files share; for these, rows show the file too."""
    entries: list[TurnRow | str]
    """The listed rows and the titles of sections."""


class TurnList(RowList):
    """Lists turns, or sessions by their worst turn: sorted by a column, or as read under headings."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="Open the session at the step that the verdict is about",
                id="turns.open"),
    ]

    def __init__(self, sections: Sequence[Section], *, by_file: bool, id: str | None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.set_sections(sections)
        self.columns = turn_table.columns(time.time())
        self.slots: dict[str, list[TurnRow]] = {}
        """First path of a file -> its rows; the files are in the order in which they were found."""
        self.by_file = by_file
        self.sort: str = ""
        """The column that rows are sorted by; empty for the order of reading."""
        self.reverse = False
        self.chosen = False
        """Whether the operator has chosen a row; the cursor then stays on it."""
        self.listing = Listing(((), "", False, by_file), None, [], None, "", frozenset(), [])
        self.entries: list[TurnRow | str] = []
        """The listed rows and the titles of sections."""
        self._rows: Sequence[TurnRow] | None = None
        """The rows of all files, until a further file is read."""
        self._values: tuple[Sequence[TurnRow], Mapping[tuple[str, str], None]] = ((), {})
        """Rows, and their terms and values once these were requested."""
        self._widest: dict[str, int] = {}

    def set_sections(self, sections: Sequence[Section]) -> None:
        """Replaces the headings, and the files below each."""
        self.sections = sections
        self.section_of = {path: number for number, section in enumerate(sections) for path in section.paths}

    @property
    def rows(self) -> Sequence[TurnRow]:
        """All rows in the order of reading, without copies of another file's turns."""
        if self._rows is None:
            self._rows = turn_table.rows_once(row for rows in self.slots.values() for row in rows)
        return self._rows

    def set_rows(self, slot: str, rows: list[TurnRow], widest: Mapping[str, int] | None = None) -> None:
        """Puts the rows of a file at its reserved place, or at the end; `widest` has the widths that they need."""
        self.slots[slot] = rows
        self._rows = None
        for name, size in (self.widest_of(rows) if widest is None else widest).items():
            self._widest[name] = max(size, self._widest.get(name, 0))

    def widest_of(self, rows: Sequence[TurnRow]) -> dict[str, int]:
        """The widths that rows need. Many rows are measured in a thread, because each takes 3 µs."""
        return turn_table.widest_cells(self.columns, rows)

    def relist(self) -> None:
        """Lists the rows again; the cursor stays on its row."""
        self.show_listing(self.list_rows(self.rows, self.filter))

    @property
    def filter(self) -> filters.Filter | None:
        """The filter in force."""
        return self.listing.filter

    def list_rows(self, rows: Sequence[TurnRow], wanted: filters.Filter | None, growing: bool = False) -> Listing:
        """The listing of those rows that pass a filter, in the present order; with `growing`, all listed rows stay in
        place. It changes nothing on the screen, and may run in a thread, to which the rows are passed because they may
        change while files are read."""
        of = (rows, self.sort, self.reverse, self.by_file)
        matching = [row for row in rows if wanted is None or turn_rows.matches(wanted.matches, row)]
        listed = turn_table.worst_of_sessions(matching) if self.by_file else matching
        column = next((each for each in self.columns_now if each.name == self.sort), None)
        if column is not None:
            listed = [listed[at] for at in turn_table.sorted_rows(listed, column, self.reverse)]
        if (self.by_file or column is None) and turn_table.has_families(listed):
            groups = [[row] for row in listed] if self.by_file else [*turn_table.by_session(listed).values()]
            listed = turn_table.in_families(groups)
        if growing:
            listed = self._in_place(listed)
        titled = any(section.title for section in self.sections)
        entries = list(self._with_titles(listed) if titled else listed)
        counts = None if wanted is None else count_rows(matching)
        shared = turn_table.shared_names(rows)
        return Listing(of, wanted, matching, counts, self._note(rows, wanted, counts), shared, entries)

    def is_current(self, listing: Listing, growing: bool) -> bool:
        """Whether a listing was made in the present order, and from the present rows unless `growing`."""
        return (growing or listing.of[0] is self.rows) and listing.of[1:] == (self.sort, self.reverse, self.by_file)

    def show_listing(self, listing: Listing) -> None:
        """Shows other rows; the cursor stays on its row."""
        here = self.current_row
        self.listing, self.entries = listing, listing.entries
        self.columns = turn_table.columns(time.time())
        titled = any(section.title for section in self.sections)
        self.headings = [at for at, row in enumerate(self.entries) if isinstance(row, str)] if titled else []
        self.set_reactive(RowList.cursor, self._place_of(here))
        if self.is_mounted:
            self.fit_rows()
            self.show_cursor()

    def _in_place(self, rows: Sequence[TurnRow]) -> list[TurnRow]:
        """The listed rows in their order; new ones come last, or first in a table that begins with the newest."""
        new = -1 if any(section.title for section in self.sections) else len(self.entries)
        places: dict[object, int] = {}
        for at, row in enumerate(self.entries):
            if isinstance(row, TurnRow):
                places.setdefault(row.session if self.by_file else (row.paths, row.number), at)
                if row.verdict is None:
                    places.setdefault(row.paths, at)  # the place of a file that is not read yet
        return sorted(rows, key=lambda row: places.get(
            row.session if self.by_file else (row.paths, row.number), places.get(row.paths, new)))

    def choose(self, index: int) -> None:
        """Moves the cursor to a row that the operator chose, even if the cursor is already there."""
        self.chosen = True
        super().choose(index)

    def show_first(self) -> None:
        """Moves the cursor to the first row, unless the operator has chosen one."""
        if not self.chosen:
            self.action_edge(-1)
            self.chosen = False

    def action_open(self) -> None:
        """Opens the row at the cursor, which then counts as chosen; without a row, nothing is chosen."""
        self.chosen = self.current_row is not None
        super().action_open()

    def parse_filter(self, text: str) -> filters.Filter | None:
        """The filter of an expression; None for an empty one. Raises `FilterError`, which names the nearest value."""
        try:
            return turn_rows.row_filter(text) if text.strip() else None
        except filters.FilterError as why:
            raise filters.explain_error(why, self._values_of(self.rows)) from None

    def _note(self, rows: Sequence[TurnRow], wanted: filters.Filter | None, counts: RowCounts | None) -> str:
        if wanted is None or counts is None:
            return "all turns"
        total = sum(row.verdict is not None for row in rows)
        searched = filters.search_note(wanted, self._values_of(rows)) if wanted.searched or wanted.values else ""
        passed = counts.passed_words(total)
        return f"{passed} · {searched}" if searched else passed

    def _values_of(self, rows: Sequence[TurnRow]) -> Mapping[tuple[str, str], None]:
        """The terms and values that occur in the rows; collected once for all keys of a filter."""
        if (values := self._values)[0] is not rows:
            values = self._values = rows, dict.fromkeys(turn_rows.values_of_rows(rows))
        return values[1]

    def _with_titles(self, rows: Sequence[TurnRow]) -> Iterator[TurnRow | str]:
        last = -1
        for row in sorted(rows, key=lambda row: self.section_of.get(row.paths[0], 0)):
            number = self.section_of.get(row.paths[0], 0)
            if number != last:
                yield self.sections[number].title
                last = number
            yield row

    def _place_of(self, here: TurnRow | None) -> int:
        """The index of a row in the new list: the same turn, else one of the same file, else the first."""
        if 0 <= self.cursor < len(self.entries) and self.entries[self.cursor] is here:
            return self.cursor
        if here is not None:
            same = [at for at, row in enumerate(self.entries)
                    if isinstance(row, TurnRow) and row.paths[0] == here.paths[0]]
            turn = [at for at in same if isinstance(row := self.entries[at], TurnRow) and row.number == here.number]
            if same:
                return (turn or same)[0]
        return next((at for at, row in enumerate(self.entries) if isinstance(row, TurnRow)), 0)

    def selectable(self, index: int) -> bool:
        """Whether the row is a turn; the cursor skips headings."""
        return isinstance(self.entries[index], TurnRow)

    @property
    def current_row(self) -> TurnRow | None:
        """The current row; None if nothing is listed."""
        row = self.entries[self.cursor] if self.cursor < len(self.entries) else None
        return row if isinstance(row, TurnRow) else None

    @property
    def columns_now(self) -> Sequence[TurnColumn]:
        """The columns of the present form: one row per session or one per turn."""
        return turn_table.for_sessions(self.columns) if self.by_file else self.columns

    def regroup(self) -> None:
        """Switches between one row per session and one per turn."""
        self.by_file = not self.by_file
        self.sort = OTHER_FORM.get(self.sort, self.sort)
        self.relist()

    @property
    def layout_now(self) -> tuple[tuple[TurnColumn, int], ...]:
        """The columns that fit."""
        return turn_table.layout(self.columns_now, self.scrollable_content_region.width - MARGIN, self._widest)

    def row(self, index: int) -> Line:
        """A heading, or a turn."""
        row = self.entries[index]
        if isinstance(row, str):
            return (Span(f" {row}", Tone.TITLE),)
        mark = self.cursor_mark(index)
        if row.name in self.listing.shared and not row.depth:
            row = turn_table.with_file(row)
        return (mark, *turn_table.cells_of(row, self.layout_now, paint_of(self.app).measure))

    def finder(self, needle: str, by: int, again: bool) -> Callable[[], tuple[int, TurnRow] | None]:
        """Finds, in any thread, the index of the next row with a text (of a session, in any turn), and its turn."""
        wanted, entries, start, rows = needle.casefold(), self.entries, self.cursor, self.rows if self.by_file else ()

        def find() -> tuple[int, TurnRow] | None:
            sessions = turn_table.by_session(rows)
            for at in ((start + (far + again) * by) % len(entries) for far in range(len(entries))):
                row = entries[at]
                turns = sessions.get(row.session, [row]) if isinstance(row, TurnRow) else []
                for turn in turns:
                    if wanted in folded_text(turn.contents, turn.names):
                        return at, turn
            return None

        return find


SORTS: Mapping[str, str] = {
    "verdict": "worst first", "session": "by title, or file name without one; turns in order",
    "raw → reason": "by the effective reason",
    "turn": "by its number in the session", "turns": "the longest session first",
    "tokens": "the most output of the answer that decided first", "calls": "most held first",
    "model": "by name", "age": "newest first", "agent": "by name", "took": "the longest time of its answers first",
    "what to change": "same advice together", "message": "by the user's message",
}
"""Column -> the order of the rows when they are sorted by it."""
OTHER_FORM: Mapping[str, str] = {"turn": "turns", "turns": "turn"}
"""Column -> the column that replaces it in the other form of the table (one row per session or per turn)."""

MARGIN = 3
"""The cells of a row besides its columns: the cursor's mark, and one at the right."""


class TurnHeading(Panel):
    """The names of the columns; a click sorts by one, a second click reverses the order."""

    DEFAULT_CSS = "TurnHeading { height: 1; padding: 0 1; background: $surface; }"

    def __init__(self, turn_list: TurnList, sort: Callable[[str], None]) -> None:
        super().__init__(id="turns-heading")
        self._turn_list, self._sort = turn_list, sort

    def make(self, width: int) -> Sequence[Line]:
        """One row."""
        _, sort, reverse, _ = self._turn_list.listing.of  # of the rows on the screen; a thread may sort them again
        return [(Span("  "), *turn_table.heading(self._turn_list.layout_now, sort, reverse))]

    def on_click(self, event: Click) -> None:
        """Sorts by the column that was clicked."""
        at = 2
        for column, size in self._turn_list.layout_now:
            if at <= event.x < at + size + GAP:
                self._sort(column.name)
            at += size + GAP


NO_MATCH_NOTE = "no turn passes the filter: f changes it, esc removes it"
WHOLE_HINT: Line = (Span(" · ", Tone.DIM), *hint("V shows all"))
BESIDE_TITLE = 7
"""The number of columns in the title of the border for margins and for the sign between the file and the row."""


class TurnAbout(Panel):
    """The details of the current row, or advice if the filter leaves no row."""

    SHOWS = ("row",)
    DEFAULT_CSS = "TurnAbout { border-title-align: right; border-title-color: $text-muted; }"
    row: reactive[TurnRow | None] = reactive(None, init=False, repaint=False)

    def __init__(self, turn_list: TurnList) -> None:
        super().__init__(id="turns-about")
        self._turn_list = turn_list

    def on_resize(self) -> None:
        """Fits the name of the file to the new width."""
        self.follow()

    def follow(self) -> None:
        """Shows the current row, with its file in the border, where a long verdict cannot hide it."""
        self.row = self._turn_list.current_row
        name = one_line(last_name(self.row.file)) if self.row is not None else ""
        position = self._turn_list.position and f"row {self._turn_list.position}"
        room = self.size.width - len(position) - BESIDE_TITLE
        if room > 0:  # without a size yet, nothing is cut
            name = text_of(clip((Span(name),), room, paint_of(self.app).measure))
        title = " · ".join(filter(None, (name, position)))
        self.border_title = Text(ascii_text(title) if paint_of(self.app).plain else title)

    def make(self, width: int) -> Sequence[Line]:
        """The fields of the row, each in as many lines as it needs."""
        lines = turn_table.about(self.row) if self.row is not None else (
            [(Span(NO_MATCH_NOTE),)] if self._turn_list.filter is not None else [])
        return fit_lines(lines, width, max(1, self.size.height), paint_of(self.app).measure)


def fit_lines(lines: Sequence[Line], width: int, room: int, measure: Measure) -> Sequence[Line]:
    """Lines wrapped into at most `room` rows; if they are cut, the last row names the key that shows all."""
    rows = [row for line in lines for row in wrap_line(line, width, measure)]
    if len(rows) <= room:
        return rows
    first = wrap_line(lines[0], width, measure)
    if len(first) >= room > 1:  # the second line begins with the key of the advice, and must stay visible
        rows = [*first[: room - 2], clip((*first[room - 2], Span(" …")), width, measure), *rows[len(first) :]]
    last = clip(rows[room - 1], width - width_of(WHOLE_HINT))
    return [*rows[: room - 1], (*split_line(last, len(text_of(last).rstrip(" ·")))[0], *WHOLE_HINT)]
