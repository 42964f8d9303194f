"""What is said of a file that no importer takes: what it is, which formats were tried, and what each expected."""

from __future__ import annotations

import os
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers import HEAD, IMPORTERS, SQLITE, first_look

_KEYS = 6
"""Of more keys or tables only so many are named."""
_TRIED = 5
"""Of more formats that were tried only so many are named."""
_LAST = ("known", "pairs", "body")
"""Importers that take what no other does: they are no formats that a file could be meant to have."""


def refusal(head: bytes, path: str) -> str:
    """One line about a file that no importer takes."""
    marked = head + os.fsencode(path).lower()
    tried = [row for name, row in IMPORTERS.items() if name not in _LAST and row.marks
             and any(mark in marked for mark in row.marks)]
    named = "; ".join(f"{row.title} (expects {row.expects})" for row in tried[:_TRIED])
    more = f"; {len(tried) - _TRIED} more" if len(tried) > _TRIED else ""
    others = len([name for name in IMPORTERS if name not in _LAST]) - len(tried)
    told = f"tried: {named}{more}; " if named else ""
    return f"{_kind(head, path)}: {told}it has no mark of {others} other formats (`inspector formats` lists them)"


def _kind(head: bytes, path: str) -> str:
    """What a file is, by its beginning."""
    if head.startswith(SQLITE):
        from inspector.sessions.importers.database import schema

        tables = sorted(schema(path))
        return f"a database with the tables {_listed(tables)}" if tables else "a database that cannot be read"
    seen = first_look(head)
    if len(seen.lines) > 1:
        return f"JSON lines of no known format (the first: {_shape(seen.first)})"
    return f"JSON of no API and no session format that is known ({_shape(seen.first)})"


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {_listed(list(value))}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list; its first element is {_shape(value[0])}" if value else "an empty list"
    return "no object" if value is not None else "no JSON"


def _listed(names: list[Any]) -> str:
    shown = ", ".join(redact.text(str(name)[:40]).replace("\n", " ") for name in names[:_KEYS])
    return f"{shown} …" if len(names) > _KEYS else shown


EXPECTED = "expected a HAR, a session file, response bodies or request/response pairs"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def unknown(data: bytes) -> str:
    """What is wrong with a file that no importer knows."""
    if data.startswith(_UTF16):
        return "UTF-16 text: expected UTF-8 (byte 0 begins a UTF-16 mark)"
    head = data[:HEAD]
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as why:
        if why.start < len(head) - 4 or len(data) == len(head):  # else the head itself may end inside a character
            kind = "binary data" if b"\0" in head or _rare(head) else "invalid UTF-8"
            return f"{kind} at byte {why.start}: {EXPECTED}"
    if b"\0" in head:
        return f"binary data at byte {head.index(0)}: {EXPECTED}"
    line = head.split(b"\n", 1)[0]
    if len(line) == len(head) and len(data) > HEAD:
        return f"text of no session format (its first line is longer than {HEAD:,} bytes): {EXPECTED}"
    return f"text of no session format (line 1): {EXPECTED}"


def _rare(head: bytes) -> bool:
    """Whether much of it is control characters or no ASCII, as in no text."""
    odd = sum(1 for byte in head[:1024] if byte < 9 or 13 < byte < 32 or byte > 126)
    return odd * 4 > len(head[:1024])
