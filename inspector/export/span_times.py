"""When the spans of a turn were: what the recording says, and where it says nothing the order and no length.

No time is invented: a span whose times are not known says so (`names.Times`), and no duration is measured of it.

Further down: spans and metric points as plain values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from inspector.export.conventions import Times
from inspector.sessions.recording import Exchange

# -- Spans and metric points as plain values -------------------------------------------------------------------------
# Nothing here knows OpenTelemetry's own packages. Times are nanoseconds.

Attribute = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Attribute]


class Kind(StrEnum):
    """On which side of a call a span stands."""

    INTERNAL = "internal"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Happened:
    """Something at one moment of a span."""

    name: str
    at: int
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """One operation. Those of a turn are a trace; the turn's own comes first."""

    name: str
    kind: Kind
    start: int
    """Since the epoch."""
    end: int
    attributes: Attributes
    parent: int | None = None
    """The place of the span that it belongs to, in the same sequence; None for a turn's own."""
    events: tuple[Happened, ...] = ()
    error: str | None = None
    """Why it is no success, in words of ours; None where it is one."""
    seed: bytes = b""
    """What the ids of a trace are made of; empty but for a turn's own."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement of an instrument of `names.INSTRUMENTS`."""

    name: str
    value: int | float
    attributes: Attributes


def given(attributes: Mapping[str, Attribute | None]) -> dict[str, Attribute]:
    """The attributes that have a value: what is not known is absent, never empty."""
    return {name: value for name, value in attributes.items() if value is not None and value not in ("", ())}

STEP = 1_000
"""Nanoseconds between two spans that only the order places, so that a screen shows them in it."""
SKEW = 100_000_000
"""Nanoseconds: an answer's end is its start by one clock and its length by another, so a tool that took no time may
seem to have been over before it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3), (float("inf"), 1))
"""Below this a number is of this many nanoseconds: seconds, then milliseconds, microseconds, nanoseconds."""


class When(NamedTuple):
    """The times of one span."""

    start: int
    end: int
    known: Times


def moment(written: str | None) -> int | None:
    """A recorded time in nanoseconds since the epoch; None where there is none. Without a zone it is taken for UTC."""
    if written is None:
        return None
    try:
        number = float(written)
    except ValueError:
        try:
            read = datetime.fromisoformat(written)
        except ValueError:
            return None
        read = read if read.tzinfo else read.replace(tzinfo=UTC)
        return _whole((read - _EPOCH) // timedelta(microseconds=1) * 1_000)
    scale = next((unit for most, unit in _UNITS if number < most), 0)
    return _whole(int(number * scale)) if number > 0 and scale else None


def _whole(found: int) -> int | None:
    return found if 0 < found < 2**63 else None


def length(exchange: Exchange) -> int | None:
    """How long an exchange took, in nanoseconds; None where that is not recorded."""
    took = exchange.duration_ms
    return int(took * 1_000_000) if took is not None and 0 <= took < 1e12 else None


class Clock:
    """Places spans one after the other, from a moment on."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at

    def exchange(self, exchange: Exchange) -> When:
        """The times of the next answer."""
        start, took = moment(exchange.started), length(exchange)
        if start is not None and took is not None:
            return self._moved(When(start, start + took, Times.RECORDED))
        if start is not None:
            return self._moved(When(start, start, Times.START))
        if took is not None:
            return self._moved(When(self.at, self.at + took, Times.LENGTH))
        return self._moved(When(self.at, self.at, Times.ORDER))

    def tool(self, since: int | None, until: str | None) -> When:
        """The times of a tool that ran after `since`, where that is known, and was over at `until`."""
        end = moment(until)
        if end is None:
            return self._moved(When(self.at, self.at, Times.ORDER))
        if since is None or since - end > SKEW:
            return self._moved(When(end, end, Times.ORDER))
        return self._moved(When(min(since, end), end, Times.BATCH))

    def _moved(self, when: When) -> When:
        self.at = max(self.at, when.end) + (0 if when.known in (Times.RECORDED, Times.BATCH) else STEP)
        return when


def first_moment(exchanges: Iterable[Exchange]) -> int | None:
    """The earliest recorded start."""
    found = [start for start in (moment(exchange.started) for exchange in exchanges) if start is not None]
    return min(found, default=None)
