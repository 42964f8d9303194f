"""JSON text with parts that stand exactly as they were received."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class Raw(str):
    """JSON that is written as it stands."""

    __slots__ = ()


def dump(value: Any) -> str:
    """JSON text in which `Raw` values stand verbatim."""
    if type(value) is Raw:
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{dump(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)  # a lone surrogate can only stand as an escape
    return text
