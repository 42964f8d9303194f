"""The session screen for a file that is still being written: additions appear within a moment.

The size and time of the file, and of the log beside a database, are checked twenty times a second; additions are read
in a thread. A cursor on the last step moves on to the new last step, any other stays where it is. While the operator
has other runs open, nothing is added, because those runs belong to the earlier content.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from time import monotonic

from textual import work

from inspector.report.followed_view import FollowedView
from inspector.report.lines.spans import one_line
from inspector.sessions.following import FileState, files_watched, states_of
from inspector.tui.session_files import OpenSession, ScreenPlace, load_followed
from inspector.tui.session_screen import SessionScreen
from loop_core.errors import LoopError

PERIOD = 0.05
"""The time in seconds between two checks of the file."""
REST, LONGEST_REST = 2.0, 0.05
"""Seconds of rest for each second of reading, and the longest rest. Rows may arrive faster than a large file is read;
with a rest, each is shown 0.3 s after it was written, and keys wait 3 ms at the median and 9 ms at the 95th
percentile."""
FOLLOWING = "following: additions to the file appear as they are written"
UNREADABLE = "nothing can be read of the file right now: "
STILL = 1.0
"""Seconds without an addition after which the saved runs and remarks are loaded. A hash of the file names them."""


def rest_seconds(took: float) -> float:
    """Seconds to rest before the next reading, after one that took `took` seconds."""
    return min(REST * took, LONGEST_REST)


class FollowedScreen(SessionScreen):
    """Shows a session whose file grows."""

    def __init__(self, session: OpenSession, view: FollowedView, begins: ScreenPlace | None) -> None:
        last = max(0, len(session.original.view.steps) - 1)
        super().__init__(session, begins or ScreenPlace(session.paths, last))
        self._followed = view
        self._watched = files_watched(session.paths, session.original.view.inputs)
        self._states: Mapping[str, FileState] = {}
        """The files' states at the last reading; empty at first, as a row may have come before the first frame."""
        self._reading = False
        self._readings = 0
        """The number of readings that were shown."""
        self._rests_until = 0.0

    def on_mount(self) -> None:
        """Starts watching the file."""
        super().on_mount()
        # Polling works on every system and on network drives, where notifications about changes do not.
        self.set_interval(PERIOD, self._look)
        self.note = FOLLOWING

    def restore(self) -> None:
        """Nothing yet: the first look reads the file again, and what is saved is loaded after that."""

    def _restore_if_still(self, readings: int) -> None:
        if self.is_mounted and readings == self._readings:
            super().restore()

    def _look(self) -> None:
        states = states_of(self._watched)
        if self._reading or states == self._states or monotonic() < self._rests_until:
            return
        # Branches refer to steps of the old reading; replacing it would leave them without an original.
        if len(self.runs.every) > 1:
            self.note = "the file has grown; it is read again when the other runs are closed"
            return
        self._reading = True
        self._read_again(states)

    @work(thread=True, group="follow")
    def _read_again(self, states: Mapping[str, FileState]) -> None:
        begun = monotonic()
        try:
            read: OpenSession | None = load_followed(self.opened.paths, self._followed)
            why = "" if read is not None and read.original.view.steps else next(iter(read.errors if read else ()), "")
        except LoopError as error:
            read, why = None, str(error)
        self.app.call_from_thread(self._take_growth, read, why, states, monotonic() - begun)

    def _take_growth(self, read: OpenSession | None, why: str, states: Mapping[str, FileState], took: float) -> None:
        """Shows what was read; if the file cannot be read right now, the screen stays as it is."""
        self._reading, self._states, self._rests_until = False, states, monotonic() + rest_seconds(took)
        if not self.is_mounted:
            return
        if read is None or not read.original.view.steps:
            self.note = one_line(f"{UNREADABLE}{why or 'it is empty'}")
            return
        if self.note.startswith(UNREADABLE):
            self.note = FOLLOWING
        steps = len(self.run.view.steps)
        self._watched = files_watched(read.paths, read.original.view.inputs)
        self.replace_session(read, self.at_end)
        self._readings += 1
        self.set_timer(STILL, partial(self._restore_if_still, self._readings))
        self.show()
        if len(self.run.view.steps) < steps:
            self.note = "the file was truncated or rewritten"
            self.runs.waiting.clear()  # they are about steps that are gone
