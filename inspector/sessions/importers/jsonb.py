"""Reads SQLite's binary form of JSON (JSONB) into JSON text, since libraries of SQLite before 3.45 cannot read it.

Texts and numbers are stored as they are written in JSON, so a value keeps its spelling. Source: sqlite.org/jsonb.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inspector.sessions.importers.records import compact_json

MOST_LEVELS = 100
"""The largest depth of lists and objects that is read."""
CONSTANTS: Mapping[int, bytes] = {0: b"null", 1: b"true", 2: b"false"}
"""Type of an element without content -> its JSON."""
NUMBERS = frozenset({3, 5})
"""The types of numbers in JSON's own spelling."""
PLAIN_TEXTS = frozenset({7, 8})
"""The types of texts that are stored as between the quotation marks of JSON."""
RAW_TEXT = 10
"""The type of a text that is stored without escapes."""
LIST, OBJECT = 11, 12
_SHORT = 11
"""The largest length in the first byte; above it, the first byte states how many bytes the length has."""


def json_text(data: bytes) -> bytes:
    """The JSON of the only element in the data. Raises `ValueError` if it is cut, damaged or in a spelling of JSON5."""
    found = list(_elements(data, 0))
    if len(found) != 1:
        raise ValueError("not one element of JSONB")
    return found[0]


def _elements(data: bytes, level: int) -> Iterator[bytes]:
    """The JSON of consecutive elements."""
    at = 0
    while at < len(data):
        kind, size = data[at] & 15, data[at] >> 4
        at += 1
        if size > _SHORT:
            width = 1 << (size - _SHORT - 1)
            size, at = int.from_bytes(data[at : at + width], "big"), at + width
        content, at = data[at : at + size], at + size
        if at > len(data) or level > MOST_LEVELS:
            raise ValueError("cut JSONB, or too many levels")
        yield _value(kind, content, level)


def _value(kind: int, content: bytes, level: int) -> bytes:
    if kind in CONSTANTS:
        return CONSTANTS[kind]
    if kind in NUMBERS:
        return content
    if kind in PLAIN_TEXTS:
        return b'"' + content + b'"'
    if kind == RAW_TEXT:
        return compact_json(content.decode("utf-8", "replace"))
    if kind not in (LIST, OBJECT):
        raise ValueError("a type of JSONB that is not JSON's")
    parts = list(_elements(content, level + 1))
    if kind == LIST:
        return b"[" + b",".join(parts) + b"]"
    if len(parts) % 2:
        raise ValueError("an object of JSONB without a value")
    return b"{" + b",".join(name + b":" + part for name, part in zip(parts[::2], parts[1::2], strict=True)) + b"}"
