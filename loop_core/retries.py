"""Whether a request is sent again, and when: by what the server asks for, bounded. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from loop_core.exchange import Heard
from loop_core.values import TransportEnd
from loop_core.wire.failures import RETRYABLE_STATUS


@dataclass(frozen=True, slots=True)
class Retries:
    """The bounds. Only what gave no answer at all is retried; a stream that was cut is for the machine to judge."""

    most: int = 3
    """How often one request is sent again."""
    longest: float = 60.0
    """Seconds; a server that asks for more is not waited for."""
    first: float = 1.0
    """Seconds before the first retry where the server names no time; doubled each time."""

    def wait(self, heard: Heard) -> float | None:
        """Seconds until the request is sent again; None where it is not."""
        attempt = heard.ask.attempt
        if attempt >= self.most or not self._retryable(heard):
            return None
        asked = retry_after(heard.headers)
        wait = min(self.first * 2**attempt, self.longest) if asked is None else asked
        return wait if wait <= self.longest else None

    @staticmethod
    def _retryable(heard: Heard) -> bool:
        if heard.status is None:
            return heard.response.transport_end in (TransportEnd.RESET, TransportEnd.TIMEOUT)
        return heard.status in RETRYABLE_STATUS


def retry_after(headers: Iterable[tuple[str, str]]) -> float | None:
    """The seconds that a server asks to wait; None where it does not say. A date counts from the answer's own date."""
    seen = {name.lower(): value.strip() for name, value in headers}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(seen[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        until = parsedate_to_datetime(seen["retry-after"]) - parsedate_to_datetime(seen["date"])
    except (KeyError, ValueError, TypeError):
        return None
    return max(0.0, until.total_seconds())
