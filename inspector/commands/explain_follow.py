"""Implements `explain --follow`: a line for each turn in files and folders that is new, is lost or has a new verdict.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from inspector import commands
from inspector.config.settings import Settings
from inspector.report.explain import places_in_sessions
from inspector.report.lines.spans import one_line
from inspector.report.table_rows import (
    LOOK,
    SEARCH,
    SEARCH_REST,
    FollowedView,
    GrownFiles,
    RowReading,
    inputs_under_way,
    lost_in_words,
    lost_turns,
    newest,
    unread_files,
    with_turns,
)
from inspector.report.turn_index import state_of
from inspector.report.turn_rows import TurnRow, files_under_way, rows_of
from inspector.report.turn_table import rows_once
from inspector.report.verdict import TurnVerdict
from inspector.sessions.folders import files_below, is_beside
from inspector.sessions.following import FileState, files_watched, states_of
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.report.facts import View


def start(
    paths: Sequence[str], api: str | None, profile: str | None, settings: Settings
) -> tuple[View, Callable[[], None]]:
    """The view of growing paths in their current state, and the function that follows them from there."""
    if not any(map(os.path.isdir, paths)):
        followed = FollowedView(paths, api, profile, settings)
        view = followed.read()
        return view, partial(follow, paths, view, followed.read)
    states = states_of(_files_in(paths))
    view = commands.open_view(paths, api, profile, settings)[1]
    return view, partial(follow_folders, paths, states, view, RowReading(api, profile, settings, True))


POLL = 0.05
"""The number of seconds between two checks whether a followed file has changed."""


def follow(paths: Sequence[str], view: View, read: Callable[[], View]) -> None:
    """Writes a line for each turn that is new or whose verdict changed, whenever a file grows, until Ctrl-C."""
    files, under_way = files_watched(paths, view.inputs), inputs_under_way(view)
    states: Mapping[str, FileState] = {}
    rests_until = 0.0
    verdicts, errors = _verdicts_of(view), commands.errors_of(view.inputs)
    try:
        while True:
            time.sleep(POLL)
            now = states_of(files, under_way)
            if now == states or time.monotonic() < rests_until:
                continue
            begun = time.monotonic()
            try:
                new_view = read()
                after, files = _verdicts_of(new_view), files_watched(paths, new_view.inputs)
                under_way = inputs_under_way(new_view)
                before, errors = errors, commands.errors_of(new_view.inputs)
                commands.say(each for each in errors if each not in before)
            except LoopError as why:
                commands.say([str(why)])
                after = verdicts
            for number, verdict in after.items():
                if verdicts.get(number) != verdict:
                    commands.write(f"turn {number:,}: {verdict}\n")
            if after and (lost := sorted(verdicts.keys() - after.keys())):
                commands.write(f"{lost_in_words(lost)}\n")
            if commands.reader_left():
                return
            states, verdicts, rests_until = now, after or verdicts, time.monotonic() + 2 * (time.monotonic() - begun)
    except KeyboardInterrupt:
        return


def _verdicts_of(view: View) -> dict[int, str]:
    return {number: verdict_line(turn.verdict) for number, turn in enumerate(view.turns, start=1)}


def follow_folders(paths: Sequence[str], states: dict[str, FileState], view: View, reading: RowReading) -> None:
    """Writes a line for each turn that is new or whose verdict changed, and for each unreadable file, whenever a file
    grows, appears or disappears, until Ctrl-C. `states` are those of the files before their view was read."""
    rows: dict[str, list[TurnRow]] = {}
    for row, (_, number, of) in zip(rows_of(view), places_in_sessions(view), strict=False):
        rows.setdefault(row.paths[0], []).append(row._replace(number=number, of=of))
    verdicts, under_way = _verdicts(rows.values()), files_under_way(each for group in rows.values() for each in group)
    errors: dict[str, str] = {}
    searches_at = rests_until = 0.0
    names: list[str] = []
    grown_files = GrownFiles(reading)
    try:
        while not commands.reader_left():
            time.sleep(LOOK)
            begun = time.monotonic()
            if begun < rests_until:
                continue
            if begun >= searches_at:
                known = (path for group in rows.values() for path in group[0].paths)  # with files that disappeared
                names = [*dict.fromkeys((*_files_in(paths), *known))]
                searches_at = begun + max(SEARCH, SEARCH_REST * (time.monotonic() - begun))
            now = states_of(names, under_way)
            grown = {name.removesuffix("-wal") for name, state in now.items() if state != states.get(name)}
            states.update(now)
            names = newest(names, states)
            if not grown:
                continue
            files = {path: row for group in rows.values() for row in group for path in row.paths if path in states}
            try:
                whole = {row.paths for row in files.values() if not grown.isdisjoint(_files_with(row))}
                new = [name for name in grown - files.keys() if not is_beside(name, files)]
                batch = [*grown_files.rows_of(sorted(whole)), *reading.rows_of_new(sorted(new), files, states)]
            except LoopError as why:
                commands.say([str(why)])
                continue
            read = with_turns(batch)
            lost = [(path, lost_turns(rows.get(path, ()), group)) for path, group in read]
            rows.update(read)
            unread = unread_files(batch)
            commands.say(f"{file}: {why}" for file, why in unread.items() if errors.get(file) != why)
            errors = {file: why for file, why in errors.items() if file not in grown} | unread
            after = _verdicts(rows.values())
            under_way = files_under_way(row for group in rows.values() for row in group)
            commands.write("".join(f"{one_line(file)}, turn {number:,}: {verdict}\n"
                                   for (file, number), verdict in after.items()
                                   if verdicts.get((file, number)) != verdict))
            commands.write("".join(f"{one_line(path)}, {lost_in_words(turns)}\n" for path, turns in lost if turns))
            verdicts, rests_until = after, time.monotonic() + 2 * (time.monotonic() - begun)
    except KeyboardInterrupt:
        return


def _files_in(paths: Sequence[str]) -> list[str]:
    return [*dict.fromkeys(name for path in paths
                           for name in (files_below(path, []) if os.path.isdir(path) else (path,)))]


def _files_with(row: TurnRow) -> set[str]:
    """The files of a row's session, and those that are read with them."""
    return {name for path in row.paths for name, *_ in state_of(path)}


def _verdicts(groups: Iterable[Sequence[TurnRow]]) -> dict[tuple[str, int], str]:
    rows = rows_once(row for group in groups for row in group)
    return {(row.file, row.number): verdict_line(row.verdict) for row in rows if row.verdict is not None}


def verdict_line(verdict: TurnVerdict) -> str:
    """The verdict on a turn in one line."""
    advice = [] if verdict.advice is None else [verdict.advice.text]
    return one_line(" · ".join([verdict.word, verdict.sentence, *advice]))
