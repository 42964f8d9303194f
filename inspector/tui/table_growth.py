"""Reads on in the table of turns when its files grow: new turns appear, and every row keeps its place."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from inspector.report.lines.spans import one_line
from inspector.report.turn_rows import TurnRow
from inspector.tui.session_files import REST, OpenSession, ReadingOptions, load_followed, reading_of
from inspector.tui.turn_list import rows_of_session
from inspector.tui.turns_reading import LARGE, MANY_ROWS, ReadingScreen
from loop_core.errors import LoopError

WATCHED, LOOK = 10, 0.25
"""The number of files, the newest of a table, that are watched, and the time in seconds between two looks."""


def watch(table: ReadingScreen) -> None:
    """Starts to look for additions to the files of the table; their rows then appear, and every row keeps its place."""
    table.set_interval(LOOK, partial(_look, table, time.time_ns()))


def _look(table: ReadingScreen, since: int) -> None:
    from inspector.sessions.following import states_of  # the first rows do not wait for it

    if table.reading or not table.is_current or len(table.listed.rows) >= MANY_ROWS:
        return
    if not table.watched:
        files = {path for rows in table.listed.slots.values() for row in rows if row.why != LARGE for path in row.paths}
        table.watched = sorted(files, key=lambda path: states_of([path])[path][1])[-WATCHED:]
        # What was written since the table began to read may not have been read.
        table.states = {name: state for name, state in states_of(table.watched).items() if state[1] < since}
    states = states_of(table.watched)
    grown = {name.removesuffix("-wal") for name, state in states.items() if state != table.states.get(name)}
    if grown and time.monotonic() >= table.rests_until:
        table.states, table.rests_until = states, float("inf")
        table.run_worker(partial(_read_growth, table, grown, reading_of(table.app)), group="growth", thread=True)


def _read_growth(table: ReadingScreen, grown: set[str], reading: ReadingOptions) -> None:
    from inspector.report.turn_index import read_rows

    begun, batch, read = time.monotonic(), list[tuple[str, list[TurnRow]]](), table.opened
    try:
        if read is not None:
            read = load_followed(read.paths, reading, read.following)
            batch = [(read.paths[0], rows_of_session(read))]
        else:
            paths = [path for rows in table.listed.slots.values() for row in rows[:1]
                     if not grown.isdisjoint(row.paths) for path in row.paths]
            for found in read_rows(paths, reading.api, reading.profile, reading.settings, not table.named):
                batch += found.rows
    except LoopError as why:
        table.app.call_from_thread(setattr, table, "note", one_line(str(why)))
    table.app.call_from_thread(_take_growth, table, batch, read, time.monotonic() + REST * (time.monotonic() - begun))


def _take_growth(
    table: ReadingScreen, batch: Sequence[tuple[str, list[TurnRow]]], read: OpenSession | None, rests_until: float
) -> None:
    table.rests_until = rests_until
    whole = [(slot, rows) for slot, rows in batch if any(row.verdict is not None for row in rows)]
    if not whole or not table.is_attached or table.reading:  # a file that is being rewritten may be empty right now
        return
    for slot, rows in whole:
        table.listed.set_rows(slot, rows)
    table.opened = read
    table.listed.relist(growing=True)
    table.count()
