"""Writes what a live source sends and hears to a session file, each record flushed as it happens.

A recording that cannot go on (a full disk) ends with one line about it, and the turn goes on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inspector.config.files import new_folder
from inspector.config.settings import REPLAYED, Settings
from inspector.sessions.native import AGAIN, PRODUCER, SessionWriter
from loop_core.client.exchange import Heard, Observer
from loop_core.client.outgoing import Ask
from loop_core.errors import CallerError
from loop_core.values import ToolResultPart


class Recorder(Observer):
    """Appends to one new session file."""

    def __init__(self, path: str | Path, **about: str) -> None:
        """Begins the file.

        Raises:
            CallerError: it is there already, or cannot be written.
        """
        self.path = str(path)
        self.failure: str | None = None
        """Why the recording stopped; None while it goes on."""
        self.closed = False
        try:
            if os.path.exists(path) and os.path.getsize(path):
                raise CallerError(f"--record {path}: the file is there already; a recording begins a new one")
            new_folder(Path(path).parent)
            self._writer = SessionWriter(path, producer=PRODUCER, **about)
        except OSError as why:
            raise CallerError(f"--record {path}: {why.strerror or why}") from None

    def asked(self, ask: Ask) -> None:
        """A request record."""
        body: dict[str, Any] = {} if ask.body is None else {"body": ask.body}
        if ask.repeats is not None:
            body["retries"] = _id(ask.repeats)
        self.write({"type": "request", "id": _id(ask.number), "api": ask.request.api, "profile": ask.profile,
                    "url": ask.url, "method": ask.method, "headers": [list(pair) for pair in ask.headers], **body,
                    "place": ask.place.value, "ordinal": ask.ordinal, "at": _now()})

    def begun(self, number: int, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """A response record."""
        self.write({"type": "response", "request": _id(number), "status": status,
                    "headers": [list(pair) for pair in headers], "at": _now()})

    def came(self, number: int, data: bytes, ms: float) -> None:
        """A bytes record."""
        if self.failure is None and not self.closed:
            try:
                self._writer.append_bytes(_id(number), data, ms)
            except OSError as why:
                self._stop(why)

    def ended(self, heard: Heard) -> None:
        """An end record, with what went wrong on the way."""
        told = {"problem": heard.problem} if heard.problem else {}
        self.write({"type": "end", "request": _id(heard.ask.number), "end": heard.response.transport_end.value,
                    "ms": heard.ms, **told})

    def waits(self, number: int, seconds: float) -> None:
        """A note."""
        self.note(f"{AGAIN} {seconds:g} s", number)

    def ran(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """A record for every result."""
        for part in results:
            self.write({"type": "tool_result", "request": _id(number), "call_id": part.call_id, "name": part.name,
                        "text": part.text, "is_error": part.is_error, "at": _now()})

    def interrupted(self, number: int, *, answered: bool) -> None:
        """The end: the turn was cancelled, and the file is closed."""
        if number >= 0:
            self.cancelled(number, answered=answered)
        self.ended_as("cancelled")
        self.close()

    def settings(self, settings: Settings) -> None:
        """What the run begins under: the limits that were set, the policy, and whether silence is wanted."""
        self.limits(settings)
        silent = {} if settings.allow_silence is None else {"allow_silence": settings.allow_silence}
        self.write({"type": "policy", "name": settings.policy.name, **silent})

    def limits(self, settings: Settings) -> None:
        """The limits that were set, and what a live run has otherwise than a replay; no record where there is none."""
        names = set(settings.explicit)
        if settings.limits.max_empty_retries != REPLAYED.max_empty_retries:
            names.add("max_empty_retries")
        if names:
            self.write({"type": "limits", "values": {name: getattr(settings.limits, name) for name in sorted(names)}})

    def cancelled(self, number: int, *, answered: bool) -> None:
        """The turn was ended while this request, the last, was under way or after its answer was taken in."""
        self.write({"type": "cancel", "request": _id(number), "answered": answered})

    def note(self, text: str, number: int | None = None) -> None:
        """A remark on a request, or on the run."""
        self.write({"type": "note", **({} if number is None else {"request": _id(number)}), "text": text})

    def ended_as(self, terminal: str) -> None:
        """How the turn ended, which is the last record."""
        self.write({"type": "about", "end_state": terminal})

    def write(self, record: Mapping[str, Any]) -> None:
        """Appends one record, as long as the recording goes on."""
        if self.failure is None and not self.closed:
            try:
                self._writer.append(record)
            except OSError as why:
                self._stop(why)

    def _stop(self, why: OSError) -> None:
        self.failure = f"{self.path}: the recording stopped: {why.strerror or why}"

    def close(self) -> None:
        """Closes the file; what is told later is not written."""
        self.closed = True
        try:
            self._writer.close()
        except OSError as why:
            if self.failure is None:
                self._stop(why)


def _id(number: int) -> str:
    return f"r{number}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
