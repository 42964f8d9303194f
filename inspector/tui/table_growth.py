"""Adds new turns to the table of turns when its files grow or new files appear in its folders; rows keep their places.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual.screen import ModalScreen

from inspector.report.lines.spans import one_line
from inspector.report.table_rows import (
    FOLLOWED,
    LARGE,
    LOOK,
    SEARCH,
    SEARCH_REST,
    WATCHED,
    GrownFiles,
    RowReading,
    RowsByPath,
    likely_to_grow,
    newest,
    with_turns,
)
from inspector.report.turn_rows import TurnRow, files_under_way
from inspector.report.turn_table import columns
from inspector.tui.session_files import REST, OpenSession, ReadingOptions, load_followed, reading_of
from inspector.tui.turn_counts import NO_AGENTS
from inspector.tui.turn_list import AGENTS, RECENT, SAMPLES, Section, found_sections, rows_of_session
from inspector.tui.turns_reading import MeasuredRows, ReadingScreen, list_all
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.sessions.following import FileState

AGES = 10.0
"""The seconds after which the ages of the turns are counted again."""
NEW_SESSION = "a new session: "
TITLES = (AGENTS, SAMPLES, RECENT)
"""The headings of a table that opens without a path, in order."""


def watch(table: ReadingScreen) -> None:
    """Starts to check for additions to the files of the table, and for new files in its folders."""
    table.states = {}
    table.set_interval(LOOK, partial(_look, table, time.time_ns()))
    table.set_interval(AGES, partial(_count_ages, table))


def _count_ages(table: ReadingScreen) -> None:
    table.turn_list.columns = columns(time.time())
    table.turn_list.refresh()


def _look(table: ReadingScreen, since: int) -> None:
    from inspector.sessions.following import states_of  # the first rows do not wait for it

    # Textual calls any screen right below the top one current; under a session, which reads the same file, the table
    # waits. Under a question it goes on.
    if table.reading or not (table.is_active or (table.is_current and isinstance(table.app.screen, ModalScreen))):
        return
    if time.monotonic() >= table.searches_at:
        table.searches_at = float("inf")
        files = {path: row for rows in table.turn_list.slots.values() for row in rows[:1] for path in row.paths}
        table.run_worker(partial(_search, table, files, since, reading_of(table.app)), group="search", thread=True)
    states = states_of(table.watched, table.under_way)
    grown = {name.removesuffix("-wal") for name, state in states.items() if state != table.states.get(name)}
    if grown and time.monotonic() >= table.rests_until:
        table.states, table.rests_until = {**table.states, **states}, float("inf")
        table.run_worker(partial(_read_growth, table, grown, reading_of(table.app)), group="growth", thread=True)


def _read_growth(table: ReadingScreen, grown: set[str], reading: ReadingOptions) -> None:
    batch: RowsByPath = []
    begun, read = time.monotonic(), table.session
    try:
        if read is not None:
            first = read.following is None
            read = load_followed(read.paths, reading, read.following)
            batch = with_turns([(read.paths[0], rows_of_session(read))])
        else:
            row_reading = _rows(reading, table.named)
            if table.grown is None or table.grown.reading != row_reading:
                table.grown = GrownFiles(row_reading)
            sessions = [row.paths for rows in table.turn_list.slots.values() for row in rows[:1]
                        if not grown.isdisjoint(row.paths)]
            first = table.grown.is_first(sessions)
            batch = with_turns(table.grown.rows_of(sessions))
        begun = time.monotonic() if first else begun  # later readings take less time than one of the whole file
    except (LoopError, OSError) as why:  # OSError: the working folder was removed
        table.app.call_from_thread(setattr, table, "note", one_line(str(why)))
    table.app.call_from_thread(_take_growth, table, _measured(table, batch), read, begun)


def _rows(reading: ReadingOptions, named: bool) -> RowReading:
    return RowReading(reading.api, reading.profile, reading.settings, named)


def _measured(table: ReadingScreen, batch: RowsByPath) -> list[MeasuredRows]:
    return [(slot, rows, table.turn_list.widest_of(rows)) for slot, rows in batch]


def _take_growth(
    table: ReadingScreen, batch: Sequence[MeasuredRows], read: OpenSession | None, begun: float
) -> None:
    def rest() -> None:
        table.rests_until = time.monotonic() + REST * (time.monotonic() - begun)

    if batch and table.is_attached and not table.reading:
        table.session = read
        _put(table, batch, "grown", rest)  # the next rows would end a listing that is still under way
    else:
        rest()


def _put(table: ReadingScreen, batch: Sequence[MeasuredRows], name: str, then: Callable[[], None]) -> None:
    for slot, rows, widest in batch:
        table.turn_list.set_rows(slot, rows, widest)
    list_all(table, then, name, growing=True)
    _note_under_way(table)


def _note_under_way(table: ReadingScreen) -> None:
    table.under_way = files_under_way(row for path in table.watched for row in table.turn_list.slots.get(path, ()))


# -- New files -------------------------------------------------------------------------------------------------------


class Search(NamedTuple):
    """The result of a search for new files."""

    sections: Sequence[Section]
    """The files that the table would be opened with now, under their headings."""
    batch: Sequence[MeasuredRows]
    """The rows of new files that hold turns."""
    states: Mapping[str, FileState]
    """The states of the files that are not listed; after the first search, also those of listed files when read."""
    watched: Sequence[str]
    """The listed files that were changed last."""
    rest: float
    """Seconds until the next search; infinite if a search can find no file."""


def _search(table: ReadingScreen, files: Mapping[str, TurnRow], since: int, reading: ReadingOptions) -> None:
    """Finds the files that are new in the folders of the table, reads them, and chooses the files to watch."""
    from inspector.sessions.folders import is_beside
    from inspector.sessions.following import states_of

    begun = time.monotonic()
    sections = [] if table.session is not None else _sections_now(table)
    others = [path for section in sections for path in section.paths
              if path not in files and not is_beside(path, files)]
    listed = [path for path, row in files.items() if row.why != LARGE]
    states = states_of([*listed, *others])
    watched = newest(listed, states)
    first: dict[str, FileState] = {}
    if not table.watched:
        # Files that were written since the table began to read may not be read completely. Those that are likely to
        # grow are read again now, since the first reading for additions takes as long as the whole file.
        again = {path for path in watched[-FOLLOWED:] if table.session is None and likely_to_grow(path)}
        first = {name: each for name, each in states.items() if each[1] < since and name not in again}
    before = table.states or first
    new = [path for path in others if states[path] != before.get(path)]
    # A named folder may be empty now.
    is_repeated = len(listed) > WATCHED or not table.named or any(
        path not in files for section in table.sections for path in section.paths)
    rest = max(SEARCH, SEARCH_REST * (time.monotonic() - begun)) if is_repeated else float("inf")
    batch: RowsByPath = []
    try:
        batch = with_turns(_rows(reading, table.named).rows_of_new(new, files, states)) if new else batch
    except (LoopError, OSError) as why:
        table.app.call_from_thread(setattr, table, "note", one_line(str(why)))
    states = {**first, **{path: states[path] for path in others}}
    table.app.call_from_thread(_take_new, table, Search(sections, _measured(table, batch), states, watched, rest))


def _sections_now(table: ReadingScreen) -> list[Section]:
    from inspector.sessions.folders import files_below

    if not table.named:
        return found_sections(os.environ)
    return [section._replace(paths=tuple(name for path in section.paths if os.path.isdir(path)
                                         for name in files_below(path, []))) for section in table.sections]


def _take_new(table: ReadingScreen, search: Search) -> None:
    """Lists the rows of new files."""
    table.searches_at = time.monotonic() + search.rest
    if not table.is_attached or table.reading:
        return
    table.states, table.watched = {**table.states, **search.states}, search.watched
    _note_under_way(table)
    if not search.batch:
        return
    new = [rows[0] for slot, rows, _ in search.batch if slot not in table.turn_list.slots]
    if not table.named:
        listed = {slot for slot, *_ in search.batch} | table.turn_list.slots.keys()
        table.sections = _sections_after(table.sections, search.sections, listed)
        table.turn_list.set_sections(table.sections)
    _put(table, search.batch, "found", lambda: None)
    if new and (table.note in ("", NO_AGENTS) or table.note.startswith(NEW_SESSION)):
        table.note = f"{NEW_SESSION}{one_line(new[-1].name)}" + (f" and {len(new) - 1} more" if len(new) > 1 else "")


def _sections_after(before: Sequence[Section], found: Sequence[Section], listed: Set[str]) -> list[Section]:
    """The headings with their listed files; a file that was removed since stays below its heading."""
    held = {path for section in found for path in section.paths}
    paths: dict[str, list[str]] = {}
    for section, keep in (*((each, listed) for each in found), *((each, listed - held) for each in before)):
        paths.setdefault(section.title, []).extend(filter(keep.__contains__, section.paths))
    every = {section.title: section for section in (*before, *found)}
    return [every[title]._replace(paths=tuple(paths[title])) for title in TITLES if title in every]
