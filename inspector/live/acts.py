"""What the operator of a live turn does, in the recording beside what is sent and heard: edits, cancels, answers.

The recording begins with the first request that leaves; what is done before is written then.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.live.headless import Start
from inspector.live.recorder import Recorder
from inspector.sessions.native import BY_US
from loop_core.exchange import Observer
from loop_core.frozen import replace
from loop_core.gate import Verdict
from loop_core.limits import Limits


class Acts:
    """The recording of one live run."""

    def __init__(self, start: Start) -> None:
        self.recorder: Recorder | None = None
        self.told = Observer()
        """Who is told of what is sent and heard: the recorder, once there is one."""
        self._start, self._settings = start, start.settings

    def begin(self) -> None:
        """Begins the file, unless it was begun.

        Raises:
            CallerError: it is there already, or cannot be written.
        """
        if self.recorder is None:
            title = f"{self._start.request.model}, live"
            self.told = self.recorder = Recorder(
                self._start.path, title=title, provenance=f"recorded {BY_US}, by hand")
            self.recorder.settings(self._settings)

    def limits(self, limits: Limits, names: Sequence[str]) -> None:
        """Limits were set."""
        self._settings = replace(self._settings, limits=limits, explicit=self._settings.explicit | set(names))
        if self.recorder is not None:
            self.recorder.limits(self._settings)

    def edited(self, number: int, what: Sequence[str]) -> None:
        """The request was changed before it left."""
        if what and self.recorder is not None:
            self.recorder.note(f"edited by the operator: {' and '.join(what)}", number)

    def answered(self, number: int, done: Sequence[tuple[Verdict, str]]) -> None:
        """The calls of an answer got results, and where those came from."""
        if self.recorder is None:
            return
        for verdict, whence in done:
            call = verdict.call
            self.recorder.note(f"{call.name or 'a call'}{f' ({call.id})' if call.id else ''}: {whence}", number)

    def cancelled(self, number: int, *, answered: bool) -> None:
        """The turn was ended while this request, the last, was under way or after its answer was taken in."""
        if self.recorder is not None:
            self.recorder.cancelled(number, answered=answered)

    def ended_as(self, terminal: str) -> None:
        """The end was accepted."""
        if self.recorder is not None:
            self.recorder.ended_as(terminal)

    def close(self) -> None:
        """Closes the file."""
        if self.recorder is not None:
            self.recorder.close()
