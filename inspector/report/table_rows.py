"""Counts the rows of the table of turns, and reads again the files that grow and the new ones in their folders."""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.report.lines.spans import count_of
from inspector.report.turn_rows import TurnRow, files_of, rows_of
from inspector.report.verdict import IN_PART, NOT_READ, SKIPPED, TurnVerdict
from inspector.sessions import NO_ANSWER, without_collector
from inspector.sessions.reasons import UNDER_WAY
from inspector.sessions.recording import common_beginning

if TYPE_CHECKING:
    from inspector.sessions.following import FileState


class RowCounts(NamedTuple):
    """The number of rows of each kind."""

    turns: int
    """The number of recorded turns. Simulated turns are counted only in `simulated` and `verdicts`."""
    simulated: int
    sessions: int
    attention: int
    """The number of recorded turns whose verdict is an error or a warning."""
    complete: int
    unread: Mapping[str, int]
    """Kind of rows without a verdict (`TurnRow.unread`) -> the number of such rows."""
    copied: int
    """The number of turns that are left out as copies of turns of another file."""
    verdicts: Sequence[tuple[TurnVerdict, int]]
    """A verdict of each kind, worst first, with the number of turns that have it."""

    def passed_words(self, total: int) -> str:
        """The turns that pass a filter out of `total`, then the rows without a verdict that pass it."""
        return f"{self.turns + self.simulated:,} of {count_of(total, 'turn')}{self.unread_words}"

    @property
    def unread_words(self) -> str:
        """The number of rows of each kind without a verdict, such as ` + 4 not read`."""
        return count_unread(self.unread, " + ")


def count_unread(unread: Mapping[str, int], before: str) -> str:
    """The number of rows of each kind without a verdict, with the same text before each."""
    # A row of skipped entries stands for one or more of them, which it counts itself.
    return "".join(before + (f"{count_of(count, 'row')} of skipped entries" if what == SKIPPED else
                             f"{count:,} {what.lower()}") for what, count in unread.items())


def count_rows(rows: Iterable[TurnRow]) -> RowCounts:
    """The counts of these rows."""
    every = list(rows)
    verdicts = [row.verdict for row in every if row.verdict is not None]
    recorded = [verdict for verdict in verdicts if not verdict.simulated]
    return RowCounts(
        len(recorded), len(verdicts) - len(recorded), len({row.session for row in every if row.verdict is not None}),
        sum(not verdict.clean for verdict in recorded), sum(verdict.complete for verdict in recorded),
        Counter(row.unread for row in every if row.verdict is None),
        sum({row.file: row.copied for row in every if row.copied}.values()), by_verdict(every))


def by_verdict(rows: Iterable[TurnRow]) -> list[tuple[TurnVerdict, int]]:
    """An example of each kind of verdict with its number of turns, worst first, simulated ones last."""
    first_verdicts: dict[tuple[bool, int], TurnVerdict] = {}
    counted: Counter[tuple[bool, int]] = Counter()
    for verdict in (row.verdict for row in rows if row.verdict is not None):
        kind = (verdict.simulated, verdict.rank)
        first_verdicts.setdefault(kind, verdict)
        counted[kind] += 1
    return [(first_verdicts[kind], counted[kind]) for kind in sorted(counted)]


# -- Files that grow and new files in their folders ------------------------------------------------------------------
# The rows for the table of turns and for `explain --follow` of a folder, and the view of a session, whose unchanged
# turns are not replayed again.


WATCHED, LOOK = 10, 0.25
"""The number of the newest files of a table that are watched, and the seconds between two checks."""
SEARCH, SEARCH_REST = 2.0, 1000.0
"""The least seconds between two searches for new files, and the seconds of rest for each second of a search. A search
among 2,000 transcripts takes 15 ms, so it is made every 15 seconds."""
PENDING, LARGE = "…", "large: enter opens it"
"""The texts in the row of a file that is not read yet, and of one that is too large to be read for the table."""
RowsByPath = list[tuple[str, list[TurnRow]]]
"""The first path of each file, and the rows of the file."""


class RowReading(NamedTuple):
    """How the files of rows are read; the files of `named` paths are not indexed."""

    api: str | None
    profile: str | None
    settings: Settings
    named: bool

    def rows_of(self, paths: Sequence[str]) -> RowsByPath:
        """The rows of the files."""
        from inspector.report.turn_index import read_rows

        found = read_rows(paths, self.api, self.profile, self.settings, not self.named) if paths else ()
        return [files for each in found for files in each.rows]

    def rows_of_new(
        self, new: Sequence[str], files: Mapping[str, TurnRow], states: Mapping[str, FileState]
    ) -> RowsByPath:
        """The rows of new files, with those of the logger's files that they continue. Left out are entries that are not
        a session, other names of a listed file and, in a table of named paths, copies of one."""
        from inspector.sessions.copies import equal_files
        from inspector.sessions.folders import is_session

        known = {os.path.realpath(path) for path in files}
        new = [path for path in new if is_session(path) and os.path.realpath(path) not in known]
        sizes = {states[path][0] for path in new}
        listed = (path for path, row in files.items() if row.why != LARGE and states[path][0] in sizes)
        copies = equal_files((*listed, *new)) if self.named else {}
        # A logger's files in one folder are one conversation, which begins as a single file.
        together = {os.path.dirname(row.paths[0]): row.paths for row in sorted(
            files.values(), key=lambda row: len(row.paths)) if len(row.paths) > 1 or (row.of == 1 and not row.agent)}
        return self.rows_of([*dict.fromkeys(path for each in new if each not in copies
                                            for path in (*together.get(os.path.dirname(each), ()), each))])


def with_turns(batch: RowsByPath) -> RowsByPath:
    """The files that have turns; a file may be empty for a moment while it is rewritten."""
    return [(slot, rows) for slot, rows in batch if any(row.verdict is not None for row in rows)]


def lost_turns(before: Sequence[TurnRow], after: Sequence[TurnRow]) -> list[int]:
    """The numbers of the turns that are missing from a file since it was read before. A turn is identified by the keys
    of its answers, else by its start, else by its number."""
    turns = [row for row in after if row.verdict is not None]
    keys, starts, numbers = {key for row in turns for key in row.keys}, {row.started for row in turns}, {
        row.number for row in turns}
    return [row.number for row in before if row.verdict is not None and not (
        not keys.isdisjoint(row.keys) if row.keys else
        row.started in starts if row.started is not None else row.number in numbers)]


def lost_in_words(numbers: Sequence[int]) -> str:
    """The message about lost turns."""
    last = f" to {numbers[-1]:,}" if len(numbers) > 1 else ""
    return f"turn{'s' if last else ''} {numbers[0]:,}{last}: no longer in the file, which shrank or was replaced"


def unread_files(batch: RowsByPath) -> dict[str, str]:
    """File that could not be read, or not to its end -> the reason. Files without an answer yet are left out."""
    return {row.file: row.why for _, rows in batch for row in rows
            if row.verdict is None and row.unread in (NOT_READ, IN_PART) and not row.why.startswith(NO_ANSWER)}


def inputs_under_way(view: View) -> set[str]:
    """The files of a session with an answer under way, as `turn_rows.files_under_way`."""
    return {each.exchange.path for each in view.responses if each.judgement.stop.detail == UNDER_WAY}


def newest(paths: Sequence[str], states: Mapping[str, FileState]) -> list[str]:
    """The files to watch: those that were changed last, the newest at the end."""
    return sorted(paths, key=lambda path: max(states[path][1], states[f"{path}-wal"][1]))[-WATCHED:]


class FollowedView:
    """Reads growing files, and keeps the last view of them."""

    def __init__(self, paths: Sequence[str], api: str | None, profile: str | None, settings: Settings) -> None:
        from inspector.sessions.following import FollowedSession  # the table of turns needs it only for a growing file

        self._session = FollowedSession(paths, api=api, profile=profile)
        self._settings = settings
        self._lock = Lock()
        """Held while a thread reads: the table and a session opened from it share this view, and may both read."""
        self._last: View | None = None
        self._listed: tuple[View, list[TurnRow]] | None = None

    @without_collector
    def read(self) -> View:
        """The view of the files in their current state, equal to that of a complete reading. Raises `LoopError` for an
        API, profile, policy or limit that does not exist."""
        with self._lock:
            last = self._last
            before = None if last is None else last.replay
            case = open_case(self._session.read(), None if before is None else before.case)
            self._last = view(replay(case, self._settings, before), last)
            return self._last

    def rows_of(self, current: View, paths: Sequence[str]) -> list[TurnRow]:
        """The rows of a view of these files; the last rows of turns that are unchanged since are used again."""
        first: list[TurnRow] = []
        if self._listed is not None:
            before, rows = self._listed
            same = common_beginning(before.turns, current.turns)
            now, then = files_of(current, paths), files_of(before, paths)
            if all(now(path) == then(path) for path in {row.file for row in rows[:same]}):
                first = [row._replace(of=len(current.turns)) for row in rows[:same]]
        self._listed = current, rows_of(current, paths, first)
        return self._listed[1]


FOLLOWED, LONGEST_FOLLOWED = 2, 1 << 25
"""The number of files of a table whose readers are kept, and the bytes of the longest: a reader keeps each answer, in 6
to 20 kB."""
SHORTEST_FOLLOWED, ACTIVE = 1 << 19, 600.0
"""The bytes of the shortest file for which a reader is made before it grows: a shorter one is read whole in 0.2 s. And
the seconds since its last change within which a file is likely to grow again."""


def likely_to_grow(path: str) -> bool:
    """Whether a file was changed a moment ago, and whether reading it whole once more would delay its next turn."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return (stat.S_ISREG(status.st_mode) and SHORTEST_FOLLOWED <= status.st_size <= LONGEST_FOLLOWED
            and time.time() - status.st_mtime < ACTIVE)


class GrownFiles:
    """Reads the files of a table that grow; of those that grew last, it reads only the additions."""

    def __init__(self, reading: RowReading) -> None:
        self.reading = reading
        self._views: dict[str, FollowedView] = {}
        self._known: set[str] = set()

    def is_first(self, sessions: Iterable[tuple[str, ...]]) -> bool:
        """Whether one of the sessions is asked about for the first time: reading it now takes longer than later."""
        before = len(self._known)
        self._known.update(paths[0] for paths in sessions)
        return len(self._known) > before

    def rows_of(self, sessions: Iterable[tuple[str, ...]]) -> RowsByPath:
        """The rows of sessions, each given by its files. Raises `LoopError` as `FollowedView` does."""
        api, profile, settings, _ = self.reading
        found, others = list[tuple[str, list[TurnRow]]](), list[str]()
        for paths in dict.fromkeys(sessions):
            view = self._views.pop(paths[0], None)
            # Several files are one session only as long as what is in them says so.
            if len(paths) > 1 or not os.path.isfile(paths[0]) or os.path.getsize(paths[0]) > LONGEST_FOLLOWED:
                others.extend(paths)
                continue
            view = self._views[paths[0]] = view or FollowedView(paths, api, profile, settings)
            found.append((paths[0], view.rows_of(view.read(), paths)))
        for path in [*self._views][:-FOLLOWED]:
            del self._views[path]
        return [*found, *self.reading.rows_of(others)]
