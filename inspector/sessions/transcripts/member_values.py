"""Typed access to the members of a row: a text, an object or a count, or nothing if the type is another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from loop_core.values import Usage
from loop_core.wire import wire
from loop_core.wire.body import string, token_count, word

_MASK = re.compile(r"\W*(?:(?:redacted|masked|removed|hidden)\W*)?", re.IGNORECASE)


def is_mask(value: Any) -> bool:
    """Whether a text names nothing: it is empty, or replaces a name that was removed before the file was shared."""
    return isinstance(value, str) and _MASK.fullmatch(value) is not None


def first_text(*values: Any) -> str:
    """The first of the values that is a non-empty text; an empty text if none is."""
    return next((value for value in values if isinstance(value, str) and value), "")


def object_of(value: Any) -> dict[str, Any]:
    """The value if it is an object; else an empty object."""
    return value if isinstance(value, dict) else {}


known_text, text_or_none, number_of = word, string, token_count
"""The value if it is a non-empty text, a text, or a whole number as a count; None for anything else."""


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none if the value is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def numbered_objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The objects in a list, each with its index in the list; none if the value is not a list."""
    return [(at, each) for at, each in enumerate(value) if isinstance(each, dict)] if isinstance(value, list) else []


def counts_of(holder: dict[str, Any], *names: str | None) -> tuple[int | None, ...]:
    """The counts in these members; for the name None, the count None."""
    return tuple([None if name is None else number_of(holder.get(name)) for name in names])


CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens", "maxOutputTokens", "num_predict")
"""The names of the output cap in a request, of any wire format or client library."""


def cap_of(*holders: dict[str, Any]) -> int | None:
    """The first output cap above 0 in these objects; None if there is none."""
    return next(filter(None, (number_of(holder.get(name)) for holder in holders for name in CAPS)), None)


def first_count(holder: dict[str, Any], *names: str) -> int | None:
    """The first of these members that is a count; None if none is."""
    return next((found for found in counts_of(holder, *names) if found is not None), None)


def usage_in(holder: dict[str, Any], *names: str | None) -> Usage | None:
    """The counts in these members, named in the order of `Usage`; None without input and output."""
    usage = Usage(*counts_of(holder, *names))
    return None if usage.input_tokens is None and usage.output_tokens is None else usage


def input_count(api: str, fresh: int | None, cached: int | None, written: int | None) -> int | None:
    """The input tokens as the wire format counts them, from a recorder that always counts cached tokens separately."""
    if fresh is None or wire(api).cached_apart:
        return fresh
    return fresh + (cached or 0) + (written or 0)  # these formats count cached tokens as input


def moment_text(value: Any) -> str | None:
    """A time as text; a number is seconds, milliseconds or microseconds since the epoch."""
    if isinstance(value, str):
        return value or None
    if type(value) not in (int, float) or value <= 0:
        return None
    seconds = value / (1e6 if value > 1e14 else 1e3 if value > 1e11 else 1)  # 1e11 seconds are the year 5138
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def api_of(table: Mapping[str, str], provider: Any) -> str | None:
    """The wire format of a provider, by the provider's name or a prefix of it; None if it is unknown."""
    name = provider.lower() if isinstance(provider, str) else ""
    return next((api for begins, api in table.items() if name.startswith(begins)), None)
