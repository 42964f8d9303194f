"""Typed access to members of a row: a text, an object or a count, or nothing if the type differs."""

from __future__ import annotations

import re
from typing import Any

from loop_core.wire import wire

_MASK = re.compile(r"\W*(?:redacted|masked|removed|hidden)?\W*", re.IGNORECASE)


def is_mask(value: Any) -> bool:
    """Whether a text stands where a name was taken out before the file was shared, or is empty: it names nothing."""
    return isinstance(value, str) and _MASK.fullmatch(value) is not None


def known_text(value: Any) -> str | None:
    """A non-empty text."""
    return value if isinstance(value, str) and value else None


def object_of(value: Any) -> dict[str, Any]:
    """The value if it is an object; else an empty object."""
    return value if isinstance(value, dict) else {}


def text_or_none(value: Any) -> str | None:
    """The value if it is a text."""
    return value if isinstance(value, str) else None


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none if the value is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def number_of(value: Any) -> int | None:
    """A whole number as a count."""
    return value if type(value) is int and value >= 0 else None


def input_count(api: str, fresh: int | None, cached: int | None, written: int | None) -> int | None:
    """The input tokens as the wire format counts them, for a recorder that always counts cached tokens separately."""
    if fresh is None or wire(api).cached_apart:
        return fresh
    return fresh + (cached or 0) + (written or 0)  # these formats count cached tokens among the input
