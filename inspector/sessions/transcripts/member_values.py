"""What a member of a row is worth: a text, an object, a count, or nothing where it is of another type."""

from __future__ import annotations

from typing import Any


def known_text(value: Any) -> str | None:
    """A text that is there and not empty."""
    return value if isinstance(value, str) and value else None


def object_of(value: Any) -> dict[str, Any]:
    """The object that a value is; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none where it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def number_of(value: Any) -> int | None:
    """A count that is there."""
    return value if type(value) is int and value >= 0 else None
