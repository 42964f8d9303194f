"""The times that a client waits: which times are possible, and which a server asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from email.utils import parsedate_to_datetime

from loop_core.errors import CallerError

MOST_SECONDS = 1_000_000
"""The longest time in seconds that a client can wait. Operating systems refuse a longer or an infinite one."""


def check_seconds(value: object, names: Iterable[str]) -> None:
    """Raises `CallerError` if one of the fields is not a number of seconds in the permitted range."""
    for name in names:
        seconds = getattr(value, name)
        if not isinstance(seconds, (int, float)) or not 0 <= seconds <= MOST_SECONDS:  # also true for `nan`
            raise CallerError(f"{name}: {seconds!r} is not a number of seconds from 0 to {MOST_SECONDS:,}")


def retry_after(headers: Iterable[tuple[str, str]]) -> float | None:
    """The seconds that a server asks the client to wait, infinite ones too; None if it does not say. A date counts from
    the answer's own date."""
    fields = {name.lower(): value.strip() for name, value in headers}
    # The finer one first, as the openai SDK reads them.
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(fields[name]) / unit
        except (KeyError, ValueError):
            continue
        if seconds >= 0:  # false for `nan`, which float() reads
            return seconds
    try:
        until = parsedate_to_datetime(fields["retry-after"]) - parsedate_to_datetime(fields["date"])
    except (KeyError, ValueError, TypeError, OverflowError):  # the last of a year or an hour of twenty digits
        return None
    return max(0.0, until.total_seconds())
