"""Reads the additions to the files of an open session, and shows them on its screen within a moment.

The size and time of the files, and of the log beside a database, are checked a few times a second; additions are read
in a thread. A cursor on the last step moves to the new last step; any other stays. While the operator has other runs
open, nothing is added, because those runs belong to the earlier content.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from time import monotonic
from typing import ClassVar

from textual.binding import BindingType

from inspector.report.lines.spans import one_line
from inspector.report.table_rows import inputs_under_way
from inspector.sessions.following import FileState, files_watched, states_of
from inspector.tui.remarks import RemarkBook
from inspector.tui.session_files import REST, STDIN, OpenSession, load_followed, reading_of
from inspector.tui.stage import SessionPart, SessionStage
from loop_core.errors import LoopError

PERIOD, NAMED_PERIOD = 0.25, 0.05
"""The seconds between two checks of the files, and of files that the operator named as growing. A check takes 0.25 ms,
most of it to wake up."""
LONGEST_REST = 0.05
"""The longest rest for files that the operator named as growing, in seconds. Rows may be written faster than a large
file is read; with a rest, each is shown after 0.3 s, and keys wait 3 ms at the median and 9 ms at the 95th percentile.
"""
FOLLOWING = "following: additions to the file appear as they are written"
UNREADABLE = "nothing can be read of the file right now: "
STILL = 1.0
"""The seconds without an addition after which the saved runs and remarks are loaded, by a hash of the file."""


def rest_seconds(took: float, named: bool) -> float:
    """Seconds to rest before the next reading, after one that took `took` seconds."""
    return min(REST * took, LONGEST_REST) if named else REST * took


class Growth(SessionPart):
    """Watches the files of the session, and shows what is added to them."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, stage: SessionStage, remarks: RemarkBook) -> None:
        super().__init__(stage)
        self.remarks = remarks
        self.named = False
        """Whether the operator named the files as growing (`--follow`). The first check then reads them again, because
        a row may have been written before the first frame."""
        self._watched = files_watched(stage.session.paths, stage.session.original.view.inputs)
        self._states: Mapping[str, FileState] = {}
        self._shown: Mapping[str, FileState] = {}
        """The states of the files whose content is shown."""
        self._under_way: set[str] = set()
        self._reading = False
        self._waits = False
        """Whether a note says that the file has grown and that the other runs must be closed first."""
        self._readings = 0
        """The number of readings that were shown."""
        self._rests_until = 0.0

    def begin(self) -> None:
        """Starts watching, if the session was read from whole files."""
        session = self.stage.session
        if session.title or session.part or self.stage.for_view or STDIN in session.paths:
            return
        self.named = reading_of(self.stage.app).follow
        self._shown = states_of(self._watched)
        self._states = {} if self.named else self._shown
        self._under_way = inputs_under_way(session.original.view)
        # Polling works on every system and on network drives, where notifications about changes do not.
        self.stage.set_interval(NAMED_PERIOD if self.named else PERIOD, self._look)
        if self.named:
            self.stage.note = FOLLOWING

    def _restore_if_still(self, readings: int) -> None:
        if self.stage.is_mounted and readings == self._readings:
            self.remarks.restore()

    def _look(self) -> None:
        states = states_of(self._watched, self._under_way)
        # A question or a view over the session refers to the present reading, and so does what it returns.
        if self._reading or not self.stage.is_active or states == self._states or monotonic() < self._rests_until:
            return
        # Branches refer to steps of the old reading; replacing it would leave them without an original.
        if len(self.stage.runs.every) > 1:
            if not self._waits:  # once, because it would replace any other note at every check
                self.stage.note = "the file has grown; it is read again when the other runs are closed"
            self._waits = True
            return
        self._reading, self._waits = True, False
        self.stage.run_worker(partial(self._read_again, states), thread=True, group="growth")

    def _read_again(self, states: Mapping[str, FileState]) -> None:
        begun, stage = monotonic(), self.stage
        try:
            read = load_followed(stage.session.paths, reading_of(stage.app), stage.session.following)
            why = "" if read.original.view.steps else next(iter(read.errors), "it is empty")
        except LoopError as error:
            read, why = stage.session, str(error)
        stage.app.call_from_thread(self._take, read, why, states, monotonic() - begun)

    def _take(self, read: OpenSession, why: str, states: Mapping[str, FileState], took: float) -> None:
        """Shows what was read; if the files cannot be read at the moment, the screen does not change."""
        stage = self.stage
        self._reading, self._rests_until = False, monotonic() + rest_seconds(took, self.named)
        if not stage.is_active or len(stage.runs.every) > 1:  # since reading began; the next check reads again
            return
        self._states = states
        if why:
            stage.note = one_line(f"{UNREADABLE}{why}")
            return
        if stage.note.startswith(UNREADABLE) or not self._readings:
            stage.note = FOLLOWING
        steps, shown = len(stage.run.view.steps), self._shown
        self._shown = states
        self._watched = files_watched(read.paths, read.original.view.inputs)
        self._under_way = inputs_under_way(read.original.view)
        stage.replace_session(read, stage.at_end)
        self._readings += 1
        stage.set_timer(STILL, partial(self._restore_if_still, self._readings))
        stage.show()
        if len(stage.run.view.steps) < steps:
            stage.runs.waiting.clear()  # they are about steps that no longer exist
            if any(size < shown.get(name, (0,))[0] for name, (size, *_) in states.items()):
                # A file that grew may have fewer steps too: an answer whose end was unknown has gone on.
                stage.note = "the file was truncated or rewritten: this is what it holds now"
