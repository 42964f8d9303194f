"""The JSON values at the beginning of a file, for every importer's `sniff`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from inspector.sessions import traffic
from loop_core.json_parser import from_json_prefix

_LINES = 8


class FileHead(NamedTuple):
    """The parsed beginning of a file."""

    first: Any
    """Its first JSON value, as far as it goes; None if it begins with none."""
    lines: tuple[Any, ...]
    """The JSON values of its first lines, the last of them perhaps cut; empty unless there are several."""
    text: bytes
    """The head without mark and leading white space."""

    def has(self, members: frozenset[str]) -> bool:
        """Whether one of its values is an object with these members."""
        return any(isinstance(value, dict) and members <= value.keys() for value in (self.first, *self.lines))


@lru_cache(maxsize=4)
def first_look(head: bytes) -> FileHead:
    """Parses the beginning of a file; if it starts within a row, from the next row."""
    text = (head[3:] if head.startswith(b"\xef\xbb\xbf") else head).lstrip()
    seen = _look(text)
    if seen.first is None:
        _, _, rest = text.partition(b"\n")
        if rest.startswith(b'{"') and complete(rest.partition(b"\n")[0]):
            return _look(rest)
    return seen


def _look(text: bytes) -> FileHead:
    if text[:1] not in (b"{", b"["):
        return FileHead(None, (), text)
    end = text.find(b"\n")
    first_line = partial(text[:end]) if end > 0 else None
    if end > 0 and first_line is not None and complete(text[:end]):
        lines = [line for line in text.split(b"\n")[: _LINES * 4] if line.strip()]
        values = [value for value in map(partial, lines[:_LINES]) if value is not None]
        return FileHead(first_line, tuple(values), text)
    return FileHead(partial(text), (), text)


def partial(text: bytes) -> Any:
    """The JSON value at the beginning of `text`, even if it is cut; None if it is no JSON."""
    try:
        return from_json_prefix(text)
    except ValueError:
        try:
            return from_json_prefix(traffic.mend(text.decode("utf-8", "replace")).encode())
        except ValueError:
            return None


def complete(text: bytes) -> bool:
    """Whether `text` is one whole JSON value."""
    try:
        traffic.loads(text)
    except ValueError:
        return False
    return True
