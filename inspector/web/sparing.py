"""Trouble of the server, told in single lines and sparingly: whoever makes it cannot fill a log."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

EVERY = 60.0
"""Seconds between two lines of one kind."""
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
MALFORMED, FAILED, CROWDED = "malformed", "failed", "crowded"
"""Kinds: a request that is none, one that could not be answered, no room for a further connection."""


class Sparing:
    """Tells each kind once a minute at most; the next line counts what was left out."""

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic,
                 malformed: type[Exception] = ValueError) -> None:
        """`malformed` is what is raised for a request that is none."""
        self._tell, self._clock, self._malformed = tell, clock, malformed
        self._since: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def __call__(self, kind: str, line: str) -> None:
        """Tells this, or counts it."""
        now = self._clock()
        if kind in self._since and now - self._since[kind] < EVERY:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        more = self._left_out.pop(kind, 0)
        self._since[kind] = now
        self._tell(f"{' '.join(line.split())[:200]}{f' ({more:,} more since the last line)' if more else ''}")

    def of(self, why: BaseException | None, otherwise: str = "") -> None:
        """Tells of what was raised."""
        if isinstance(why, OSError) and why.errno in EXHAUSTED:
            self(CROWDED, f"no room for a further connection or file: {why.strerror}; it goes on when one ends")
        elif isinstance(why, self._malformed):
            self(MALFORMED, f"a malformed request was refused: {type(why).__name__}")
        elif why is not None:
            self(FAILED, f"a request could not be answered: {type(why).__name__}: {why}")
        else:
            self(FAILED, otherwise)

    def loop_raised(self, _loop: object, context: Mapping[str, Any]) -> None:
        """Takes what an event loop has nobody else to tell."""
        self.of(context.get("exception"), str(context.get("message", "")))


class SparingHandler(logging.Handler):
    """Takes what aiohttp logs, whose own lines hold a traceback."""

    def __init__(self, sparing: Sparing) -> None:
        super().__init__(logging.WARNING)
        self._sparing = sparing

    def emit(self, record: logging.LogRecord) -> None:
        """One line, or none."""
        self._sparing.of(record.exc_info[1] if record.exc_info else None, record.getMessage())


def logger(sparing: Sparing) -> logging.Logger:
    """A logger that tells nobody else."""
    made = logging.Logger("inspector.web", logging.WARNING)
    made.addHandler(SparingHandler(sparing))
    return made
