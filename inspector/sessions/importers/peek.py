"""A first look at a file: what its first bytes are, parsed as far as they go.

Shared by the importers' `sniff`; knows no file format. Whole heads are cached, because each importer looks at the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from pydantic_core import from_json

from inspector.sessions import lenient

_LINES = 8


class Look(NamedTuple):
    """What a head holds."""

    first: Any
    """Its first JSON value, as far as it goes; None where it begins with none."""
    lines: tuple[Any, ...]
    """The JSON values of its first lines, the last of them perhaps cut; empty unless there are several."""
    text: bytes
    """The head without mark and leading white space."""


@lru_cache(maxsize=4)
def look(head: bytes) -> Look:
    """Parses the beginning of a file."""
    text = (head[3:] if head.startswith(b"\xef\xbb\xbf") else head).lstrip()
    if text[:1] not in (b"{", b"["):
        return Look(None, (), text)
    end = text.find(b"\n")
    first_line = partial(text[:end]) if end > 0 else None
    if end > 0 and first_line is not None and complete(text[:end]):
        lines = [line for line in text.split(b"\n")[: _LINES * 4] if line.strip()]
        values = [value for value in map(partial, lines[:_LINES]) if value is not None]
        return Look(first_line, tuple(values), text)
    return Look(partial(text), (), text)


def partial(text: bytes) -> Any:
    """The JSON value that `text` begins, cut where it ends; None where it is no JSON."""
    try:
        return from_json(text, allow_partial="trailing-strings")
    except ValueError:
        try:
            return from_json(lenient.mend(text.decode("utf-8", "replace")), allow_partial="trailing-strings")
        except ValueError:
            return None


def complete(text: bytes) -> bool:
    """Whether `text` is one whole JSON value."""
    try:
        lenient.loads(text)
    except ValueError:
        return False
    return True
