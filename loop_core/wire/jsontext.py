"""JSON text in which some values stand exactly as they were received. Knows no format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json


class Raw(str):
    """JSON that is written as it stands."""

    __slots__ = ()


def compact(value: Any, *, sort: bool = False) -> str:
    """JSON text without blanks, characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort)


def dump(value: Any) -> str:
    """Compact JSON, characters as they are; `Raw` values stand verbatim."""
    if type(value) is Raw:
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{dump(key)}:{dump(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(dump, value)) + "]"
    text = json.dumps(value, ensure_ascii=False)
    # A lone surrogate is no UTF-8: it can only stand as an escape.
    return text if text.isprintable() or not any("\ud800" <= char <= "\udfff" for char in text) else json.dumps(value)


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object that `text` is; None where it is none, or cut."""
    try:
        value = from_json(text)
    except (ValueError, TypeError):  # a lone surrogate is no text to the parser
        return None
    return value if isinstance(value, dict) else None


def pieces(text: str, size: int) -> list[str]:
    """`text` in pieces of `size` characters; none where it is empty."""
    return [text[start : start + size] for start in range(0, len(text), size)]
