"""Reads the files of the table of turns in a thread: one by one, the rest of a large one, or all as one session."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from textual.reactive import reactive
from textual.screen import Screen
from textual.worker import get_current_worker

from inspector.report import turn_table
from inspector.report.filters import Filter, FilterError
from inspector.report.lines.spans import count_of, end_of_line, one_line
from inspector.report.turn_rows import TurnRow, unread_row
from inspector.sessions import intake
from inspector.sessions.copies import stored_keys
from inspector.tui.messages import FILTERING, JOINING, Result, run_in_thread
from inspector.tui.session_files import OpenSession, ReadingOptions, load, reading_of
from inspector.tui.turn_counts import TableCounts, count_apart
from inspector.tui.turn_list import Listing, Section, TurnList, rows_of_session
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.report.table_rows import GrownFiles
    from inspector.sessions.following import FileState

BATCH = 0.1
"""The seconds between two batches of rows that are passed to the table."""
LOOK_AGAIN = 0.1
"""The seconds after which a view checks again whether a question is still open."""


def share_of(path: str) -> str:
    """The share of the current file that was read, then of its turns that are judged; empty before either is known."""
    size, (_, done, judged) = intake.size_of(path) or 1, intake.progress()
    if judged or done >= size:
        return f"{100 * judged:.0f} % of the turns judged"
    return f"{100 * done // size} %" if done else ""


def progress_within(path: str) -> str:
    """The progress in a file whose first turns are listed."""
    share = share_of(path)
    return f"reading {(intake.size_of(path) or 1) / 1e6:,.0f} MB{f': {share}' if share else ''}… so far"


MeasuredRows = tuple[str, list[TurnRow], Mapping[str, int]]
"""The first path of a file, the rows of the file, and for each column the width that these rows need."""


class ReadingScreen(Screen[None]):
    """A screen that receives the rows of the files being read."""

    note: reactive[str] = reactive("", init=False, repaint=False)
    waiting_view = ""
    """The view over all turns that opens once the files are read."""
    sections: Sequence[Section]
    session: OpenSession | None
    """A session that is already loaded and fills the whole table."""
    named: bool
    """Whether the operator named the paths; they are then read whole, and sorted worst first."""
    reading: bool
    read: int
    total: int
    """The number of files that are read, and of all that will be; 0 until they are counted."""
    turn_list: TurnList
    has_more = False
    """Whether rows came that are not listed yet."""
    lists_at = 0.0
    """The earliest time at which they are listed; infinite while a thread lists some."""
    counts: TableCounts
    watched: Sequence[str] = ()
    """The files that are checked for additions; empty until all are read."""
    under_way: Set[str] = frozenset()
    """The watched files with an answer under way."""
    states: Mapping[str, FileState]
    """The state of each file when it was last read, or when it was found to hold no turn."""
    grown: GrownFiles | None = None
    """Reads the files that grow, once one has grown."""
    rests_until = 0.0
    searches_at = 0.0
    """The earliest time of the next search for new files; infinite if there is none."""

    def take(self, batch: Sequence[MeasuredRows], count: int, total: int) -> None:
        """Adds rows; lists them as often as possible without delaying keys."""
        raise NotImplementedError

    def take_whole(self, read: OpenSession, rows: list[TurnRow], widest: Mapping[str, int]) -> None:
        """Replaces the first rows of a file by all of them."""
        raise NotImplementedError

    def finish(self) -> None:
        """Sorts and counts the rows after everything is read."""
        raise NotImplementedError

    def count(self) -> None:
        """Counts the rows again, and shows the counts."""
        raise NotImplementedError

    def say_counts(self) -> None:
        """Shows the counts of turns and verdicts, and the progress of reading."""
        raise NotImplementedError


PATH_CHARS = 32
"""The largest length of a path in the progress; a longer one shows its end."""


def progress_over(table: ReadingScreen) -> str:
    """The number of files that were read; before the first one, the place where files are searched."""
    order = ", then worst first" if table.named and not table.turn_list.sort else ""
    if table.total or not table.named:
        total = table.total or sum(len(section.paths) for section in table.sections)
        return f"reading {table.read:,} of {count_of(total, 'file')}{order}"
    paths = [path for section in table.sections for path in section.paths]
    where = count_of(len(paths), "path") if len(paths) > 1 else end_of_line(paths[0], PATH_CHARS)
    return f"looking for sessions in {where}"


def read_files(table: ReadingScreen, paths: Sequence[str], unread: Sequence[str] = ()) -> None:
    """Reads files one by one and passes their rows to the table; those of `unread` only from the index."""
    _run_in_thread(table, partial(_read_files, table, paths, unread, reading_of(table.app)))


MANY_ROWS = 20_000
"""The number of rows, or of their answers, from which a thread filters, searches and exports the table, since keys
would wait for 30 ms or more."""


def work_behind(table: ReadingScreen, work: Callable[[], Result], then: Callable[[Result], None], name: str) -> None:
    """Calls `then` with the result of `work`: at once, or for many rows when a thread has made it. A later call with
    the same name cancels an earlier one."""
    slots = table.turn_list.slots.values()
    if sum(map(len, slots)) < MANY_ROWS and sum(len(row.answers) for rows in slots for row in rows) < MANY_ROWS:
        then(work())
    else:
        run_in_thread(table, work, then, name)


def list_grown(table: ReadingScreen) -> None:
    """Lists and counts new rows if enough time has passed; after the last file `finish` lists them."""
    began = time.monotonic()
    if not (table.has_more and table.is_attached and table.reading and began >= table.lists_at):
        return
    table.has_more, table.lists_at = False, inf
    turn_list, slots = table.turn_list, [*table.turn_list.slots.values()]  # more files may come while a thread works

    def work() -> tuple[Listing, TableCounts]:
        rows = turn_table.rows_once(row for rows in slots for row in rows)
        return turn_list.list_rows(rows, turn_list.filter, growing=True), count_apart(turn_list, rows)

    def show(made: tuple[Listing, TableCounts]) -> None:
        listing, counts = made
        same_filter = listing.filter is turn_list.filter
        if not (table.reading and same_filter and turn_list.is_current(listing, growing=True)):
            table.has_more, table.lists_at = True, 0.0
            return
        turn_list.show_listing(listing)
        if len(turn_list.entries) >= MANY_ROWS:
            gc.freeze()  # the rows live on, and a collection that visits 100,000 of them would delay keys by 0.5 s
        table.counts = counts
        table.say_counts()
        table.lists_at = time.monotonic() + 10 * (time.monotonic() - began)

    work_behind(table, work, show, "listing")


def list_all(
    table: ReadingScreen, then: Callable[[], object], name: str = "listing", growing: bool = False
) -> None:
    """Lists and counts all rows in the present order, with the cursor on the first one unless the operator has moved
    it, and calls `then`, if no later call with the same name has come. With `growing`, listed rows stay in place."""
    turn_list, rows = table.turn_list, table.turn_list.rows

    def show(made: tuple[Listing, TableCounts]) -> None:
        listing, counts = made
        # The operator chose another order meanwhile. Rows that come while files are read are listed later.
        if listing.filter is not turn_list.filter or not turn_list.is_current(listing, growing=table.reading):
            list_all(table, then, name, growing)
            return
        moved = growing or turn_list.chosen or turn_list.cursor > 0
        turn_list.show_listing(listing)
        if not moved:
            turn_list.show_first()
        table.counts, table.lists_at = counts, 0.0
        table.say_counts()
        then()

    def work() -> tuple[Listing, TableCounts]:
        return turn_list.list_rows(rows, turn_list.filter, growing), count_apart(turn_list, rows)

    work_behind(table, work, show, name)


def narrow(table: ReadingScreen, text: str) -> str:
    """Lists the rows that match an expression; returns their number, a note that they are searched, or the error."""
    try:
        wanted = table.turn_list.parse_filter(text)
    except FilterError as why:
        table.workers.cancel_group(table, "filter")
        return str(why)
    _list_filtered(table, wanted)
    return table.turn_list.listing.note if table.turn_list.filter is wanted else FILTERING


def _list_filtered(table: ReadingScreen, wanted: Filter | None) -> None:
    turn_list = table.turn_list
    work_behind(table, partial(turn_list.list_rows, turn_list.rows, wanted), partial(_show_listing, table), "filter")


def _show_listing(table: ReadingScreen, listing: Listing) -> None:
    from inspector.tui.questions import tell_filter_prompts

    # Rows came, or the order changed, while a thread worked. While files are read, new rows are listed later.
    if not table.turn_list.is_current(listing, growing=table.reading):
        _list_filtered(table, listing.filter)
        return
    table.turn_list.show_listing(listing)
    table.say_counts()
    table.note = table.note.replace(FILTERING, listing.note)
    tell_filter_prompts(table.app, listing.note)


def command_of(table: ReadingScreen) -> str:
    """The command line that prints the same table."""
    import shlex

    from inspector.config.settings import argument

    paths = table.session.paths if table.session is not None else [
        path for section in table.sections for path in section.paths]
    found = table.turn_list.filter
    wanted = f" --filter {shlex.quote(found.text)}" if found is not None else ""
    return f"inspector explain {shlex.join(map(argument, paths))}{wanted}"


def _run_in_thread(table: ReadingScreen, reading: Callable[[], None], name: str = "") -> None:
    table.run_worker(partial(_read_until_cancelled, reading), name=name, thread=True, exclusive=True)


def _read_until_cancelled(reading: Callable[[], None]) -> None:
    """Reads until the worker is cancelled, which also ends a reading in the middle of a large file."""
    worker = get_current_worker()
    # A thread cannot be stopped from outside, so the reader checks between pieces whether it should stop.
    with suppress(intake.StoppedError), intake.stopping_when(lambda: worker.is_cancelled):
        intake.begin_file("")  # resets the progress of the file before
        reading()


def _read_files(
    table: ReadingScreen, paths: Sequence[str], unread: Sequence[str], reading: ReadingOptions
) -> None:
    from inspector.report.turn_index import read_rows

    worker, call = get_current_worker(), table.app.call_from_thread
    waiting: list[MeasuredRows] = []
    measure = table.turn_list.widest_of
    sent = time.monotonic()
    done = total = 0
    try:
        for found in read_rows(paths, reading.api, reading.profile, reading.settings, not table.named, unread):
            if worker.is_cancelled:
                return
            waiting += [(slot, rows, measure(rows)) for slot, rows in found.rows]
            done, total = found.done, found.total
            if found.note:
                # Attributes of widgets may be set only in the app's own thread
                # (https://textual.textualize.io/guide/workers/#thread-workers).
                call(setattr, table, "note", found.note)
            if time.monotonic() - sent > BATCH or len(found.rows) > 1:  # rows from the index arrive many at once
                call(table.take, waiting, done, total)
                waiting, sent = [], time.monotonic()
    except LoopError as why:  # an API or a profile that does not exist, so nothing is read
        waiting = [(path, [unread_row((path,), path, str(why))], {}) for path in paths]
    call(table.take, waiting, done, total)
    call(table.finish)
    call(_open_waiting, table)


def read_whole(table: ReadingScreen, paths: Sequence[str]) -> None:
    """Reads a whole file whose first turns are already listed."""
    _run_in_thread(table, partial(_read_whole, table, paths, reading_of(table.app)))


def _read_whole(table: ReadingScreen, paths: Sequence[str], reading: ReadingOptions) -> None:
    try:
        read = load(paths, reading)
        rows = rows_of_session(read)
        table.app.call_from_thread(table.take_whole, read, rows, table.turn_list.widest_of(rows))
        table.app.call_from_thread(_open_waiting, table)
    except LoopError as why:
        table.app.call_from_thread(setattr, table, "note", str(why))


# -- All files as one session ----------------------------------------------------------------------------------------


def open_over_all(table: ReadingScreen, view: str) -> None:
    """Opens the session, then a view over it (the action of a session key); reports why it cannot."""
    if table.session is not None and not table.reading:
        _show(table, table.session, view)
    elif table.reading:
        table.waiting_view = view
        table.note = f"the files are still being read; {view} opens after that · esc gives up"
    else:
        table.note = JOINING
        paths = [path for section in table.sections for path in section.paths]
        _run_in_thread(table, partial(_read_session, table, paths, reading_of(table.app), view), JOINING)


def gives_up(table: ReadingScreen) -> bool:
    """Gives up the view over all files that waits or whose files are being read; returns whether there was one."""
    waited, table.waiting_view = bool(table.waiting_view), ""
    found = [worker for worker in table.workers if worker.name == JOINING and worker.node is table
             and worker.is_running and not worker.is_cancelled]
    for worker in found:
        worker.cancel()
    if found or waited:
        table.note = "given up: the view over all files is not opened"
    return bool(found or waited)


def _open_waiting(table: ReadingScreen) -> None:
    """Opens the view that was requested while files were read, unless the operator has left the table since."""
    view, table.waiting_view = table.waiting_view, ""
    if view and table.is_current:
        open_over_all(table, view)


def _read_session(table: ReadingScreen, paths: Sequence[str], reading: ReadingOptions, view: str) -> None:
    try:
        read = load(paths, reading)
    except LoopError as why:
        table.app.call_from_thread(setattr, table, "note", one_line(str(why)))
        return
    table.app.call_from_thread(_show, table, read, view)


def _show(table: ReadingScreen, read: OpenSession, view: str) -> None:
    from inspector.tui.session_screen import SessionScreen

    if not table.is_current:  # the operator has left
        table.note = "" if table.note == JOINING else table.note
        return
    if not table.is_active:  # a question is open, and must not lose the keys that are typed
        table.set_timer(LOOK_AGAIN, partial(_show, table, read, view))
        return
    if not read.original.view.steps:
        table.note = "no turn was read"
        return
    table.note = ""
    session = SessionScreen(read, None)
    session.for_view, session.past_filter = True, table.turn_list.filter is not None
    session.came_from = _turn_of(table.turn_list.current_row, read)
    table.app.push_screen(session)
    session.call_after_refresh(getattr(session, f"action_{view}"))


def _turn_of(row: TurnRow | None, read: OpenSession) -> int | None:
    """The turn of a row in the session of all files; None if it cannot be identified."""
    recording = read.original.view.replay.case.recording
    if row is None:
        return None
    if row.keys and "" not in row.keys:  # without copies, the turns of the session have other numbers
        equal = (number for number, turn in enumerate(recording.turns) if len(turn.responses) == len(row.keys)
                 and stored_keys(recording.exchanges[index] for index in turn.responses) == row.keys)
        return next(equal, None)
    turns = [number for number, turn in enumerate(recording.turns)
             if recording.exchanges[turn.links[0].index].path in row.paths]
    return turns[row.number - 1] if 0 < row.number <= len(turns) else None
