"""The fields of a session file's records, read by hand, and what of a damaged line can be told."""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from inspector.sessions import traffic

_KIND = re.compile(rb'"type"\s*:\s*"(\w+)"')
_OF = re.compile(rb'"request"\s*:\s*("(?:[^"\\]|\\.)*")')
_HEAD = 200
"""Bytes of a line in which its type and its request stand; what comes later may be the text of a piece."""


def lost_piece(line: bytes) -> str | None:
    """The request whose answer a line that is no record was a piece of, by its id: empty if the line does not say; None
    if it was another record."""
    kind, named = _KIND.search(line, 0, _HEAD), _OF.search(line, 0, _HEAD)
    if kind is not None and kind[1] != b"bytes":
        return None
    try:
        return str(json.loads(named[1])) if named is not None else ""
    except ValueError:
        return ""


def optional_text(record: Mapping[str, Any], name: str) -> str | None:
    """A text, or None where there is none.

    Raises:
        TypeError: it is not text.
    """
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise TypeError(name)
    return value


def time_of(record: Mapping[str, Any]) -> float | None:
    """Milliseconds since the request was sent; a time before that is none, and said to be so.

    Raises:
        ValueError: it is not a time; what else the record holds has been taken.
    """
    ms = record.get("ms")
    found = traffic.number(ms)
    if ms is not None and (found is None or found < 0):
        raise ValueError("ms")
    return found


def bytes_of(record: Mapping[str, Any]) -> bytes:
    """The bytes that a record holds as text or as base64; none if it holds neither.

    Raises:
        ValueError: it holds both, or something else.
    """
    text, packed = record.get("text"), record.get("base64")
    if isinstance(text, str) and packed is None:
        return text.encode("utf-8", "replace")
    if isinstance(packed, str) and text is None:
        return binascii.a2b_base64(packed, strict_mode=True)
    if text is None and packed is None:
        return b""
    raise ValueError("text or base64")
