"""Reads MessagePack into plain values; no object of a class that a file names is made. Source: msgpack's spec.md."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_LEVELS = 100
"""The largest depth of lists, maps and extensions that is read."""
MOST_KEY = 200
"""The length of a key that is no text. A key within a key would double its escapes with each level."""
NUMBERS: Mapping[int, str] = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}
"""First byte of a number -> its format for `struct`."""
LENGTHS: Mapping[int, tuple[str, str]] = {
    0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"),
    0xC7: ("ext", ">B"), 0xC8: ("ext", ">H"), 0xC9: ("ext", ">I"),
    0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I"),
    0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}
"""First byte of a value with a length -> its kind, and the format of the length."""
CONSTANTS: Mapping[int, bool | None] = {0xC0: None, 0xC2: False, 0xC3: True}


class Extension(NamedTuple):
    """A value of a type that the writer defined."""

    code: int
    data: bytes


def unpacked(data: bytes, level: int = 0) -> Any:
    """The only value in the data. Raises `ValueError` if it is cut or not MessagePack."""
    try:
        value, at = _value(data, 0, level)
    except (IndexError, struct.error) as why:
        raise ValueError("cut MessagePack") from why
    if at != len(data):
        raise ValueError(f"more than one value in MessagePack, at byte {at}")
    return value


def _value(data: bytes, at: int, level: int) -> tuple[Any, int]:
    """The value at an offset, and the offset after it."""
    first, at = data[at], at + 1
    if first < 0x80 or first >= 0xE0:
        return first if first < 0x80 else first - 0x100, at
    if first in CONSTANTS:
        return CONSTANTS[first], at
    if first in NUMBERS:
        return _number(data, at, NUMBERS[first])
    if 0xD4 <= first <= 0xD8:
        return _held("ext", 1 << (first - 0xD4), data, at, level)
    if first < 0xC0:
        kind = "str" if first >= 0xA0 else "list" if first >= 0x90 else "map"
        return _held(kind, first & (0x1F if kind == "str" else 0x0F), data, at, level)
    if first not in LENGTHS:
        raise ValueError(f"no MessagePack at byte {at - 1}")
    kind, form = LENGTHS[first]
    length, at = _number(data, at, form)
    return _held(kind, length, data, at, level)


def _number(data: bytes, at: int, form: str) -> tuple[Any, int]:
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)


def _held(kind: str, length: int, data: bytes, at: int, level: int) -> tuple[Any, int]:
    """A text, bytes, an extension, a list or a map of this length."""
    if kind in ("list", "map", "ext") and level >= MOST_LEVELS:
        raise ValueError(f"MessagePack of more than {MOST_LEVELS} levels")
    if kind in ("list", "map"):
        values = []
        for _ in range(length * (2 if kind == "map" else 1)):
            value, at = _value(data, at, level + 1)
            values.append(value)
        if kind == "list":
            return values, at
        # keys become text, as in JSON, also lists and maps
        keys = [key if isinstance(key, str) else str(key)[:MOST_KEY] for key in values[::2]]
        return dict(zip(keys, values[1::2], strict=True)), at
    end = at + length + (kind == "ext")
    if end > len(data):
        raise ValueError("cut MessagePack")
    held = data[at:end]
    if kind == "ext":
        return Extension(held[0], held[1:]), end
    return (held.decode("utf-8", "replace") if kind == "str" else held), end
