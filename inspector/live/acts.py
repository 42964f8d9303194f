"""What the operator of a live turn does, in the recording beside what is sent and heard: edits, cancels, answers.

The recording begins with the first request that leaves; what is done before is written then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.live.headless import Start
from inspector.live.recorder import Recorder
from loop_core.exchange import Ask, Heard, Observer
from loop_core.gate import Verdict
from loop_core.limits import Limits
from loop_core.values import ToolResultPart


class Acts(Observer):
    """The recording of one live run."""

    def __init__(self, start: Start) -> None:
        self.recorder: Recorder | None = None
        self._start = start
        self._explicit = set(start.settings.explicit)
        self._limits = start.settings.limits

    def begin(self) -> None:
        """Begins the file, unless it was begun.

        Raises:
            CallerError: it is there already, or cannot be written.
        """
        if self.recorder is None:
            start = self._start
            title = f"{start.request.model}, live"
            self.recorder = Recorder(start.path, title=title, provenance="recorded live by loop-inspector, by hand")
            self._write_limits()
            self._write({"type": "policy", "name": start.settings.policy.name})

    def limits(self, limits: Limits, names: Sequence[str]) -> None:
        """Limits were set."""
        self._limits = limits
        self._explicit |= set(names)
        self._write_limits()

    def edited(self, number: int, what: Sequence[str]) -> None:
        """The request was changed before it left."""
        if what:
            self._note(number, f"edited by the operator: {' and '.join(what)}")

    def answered(self, number: int, done: Sequence[tuple[Verdict, str]]) -> None:
        """The calls of an answer got results, and where those came from."""
        for verdict, whence in done:
            call = verdict.call
            self._note(number, f"{call.name or 'a call'}{f' ({call.id})' if call.id else ''}: {whence}")

    def cancelled(self, number: int, *, answered: bool) -> None:
        """The turn was ended while this request, the last, was under way or after its answer was taken in."""
        self._write({"type": "cancel", "request": f"r{number}", "answered": answered})

    def ended_as(self, terminal: str) -> None:
        """The end was accepted."""
        self._write({"type": "about", "end_state": terminal})

    def close(self) -> None:
        """Closes the file."""
        if self.recorder is not None:
            self.recorder.close()

    def _note(self, number: int, text: str) -> None:
        self._write({"type": "note", "request": f"r{number}", "text": text})

    def _write_limits(self) -> None:
        if self._explicit:
            values = {name: getattr(self._limits, name) for name in sorted(self._explicit)}
            self._write({"type": "limits", "values": values})

    def _write(self, record: dict[str, Any]) -> None:
        if self.recorder is not None:
            self.recorder.write(record)

    # -- what the source tells -----------------------------------------------------------------------------------

    def asked(self, ask: Ask) -> None:
        """A request leaves."""
        if self.recorder is not None:
            self.recorder.asked(ask)

    def begun(self, number: int, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The head of its answer is there."""
        if self.recorder is not None:
            self.recorder.begun(number, status, headers)

    def came(self, number: int, data: bytes, ms: float) -> None:
        """A piece is there."""
        if self.recorder is not None:
            self.recorder.came(number, data, ms)

    def ended(self, heard: Heard) -> None:
        """The answer is over."""
        if self.recorder is not None:
            self.recorder.ended(heard)

    def waits(self, number: int, seconds: float) -> None:
        """The same request is sent again after this time."""
        if self.recorder is not None:
            self.recorder.waits(number, seconds)

    def ran(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """The calls were answered."""
        if self.recorder is not None:
            self.recorder.ran(number, results)
