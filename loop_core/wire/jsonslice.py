"""Where a value stands inside a JSON text: pointer -> character or byte range.

Used where the exact characters matter (arguments sent as an object, byte provenance), never in the hot path. Skips
values with the standard library's C scanner, so a look-up costs one pass over what precedes the value.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]

_SPACE = re.compile(r"[ \t\r\n]*")
# Numbers are skipped and never read: one of 5,000 digits is still a value.
_SKIP = json.JSONDecoder(strict=False, parse_int=str, parse_float=str).raw_decode
_BLANK = " \t\r\n"
_BOM = b"\xef\xbb\xbf"
_INDEX = re.compile(r"0|[1-9][0-9]*")


def char_span(text: str, *path: str | int, begun: int = 0) -> tuple[int, int] | None:
    """First character and end of the value at `path` in `text`, from `begun` on; None where there is no such value."""
    try:
        start, end = _SPACE.match(text, begun).end(), None  # type: ignore[union-attr]
        for key in path:
            found = _member(text, start, key)
            if found is None:
                return None
            start, end = found
        return start, end or _SKIP(text, start)[1]
    except (ValueError, RecursionError, IndexError):
        return None


def slice_of(text: str, *path: str | int) -> str | None:
    """The verbatim JSON of the value at `path`; None where there is none."""
    span = char_span(text, *path)
    return None if span is None else text[span[0] : span[1]]


def byte_span(body: bytes, base: int, *path: str | int) -> tuple[int, int] | None:
    """The same in bytes: `body` is one JSON text that begins at byte `base` of the whole body."""
    if body.startswith(_BOM):
        body, base = body[len(_BOM) :], base + len(_BOM)
    begun, path = _nearest(body, path)
    if not path:
        short = _SHORT.match(body, begun)
        if short is not None:
            return base + begun, base + short.end()
    if all(isinstance(key, int) or key.isascii() for key in path):
        # A character a byte: places in the text are places in the body, whatever the bytes are.
        span = char_span(_text_of(body), *path, begun=begun)
        return None if span is None else (base + span[0], base + span[1])
    text = body[begun:].decode("utf-8", "surrogateescape")
    span = char_span(text, *path)
    if span is None:
        return None
    start = base + begun + len(text[: span[0]].encode("utf-8", "surrogateescape"))
    return start, start + len(text[span[0] : span[1]].encode("utf-8", "surrogateescape"))


@lru_cache(maxsize=2)
def _text_of(body: bytes) -> str:
    return body.decode("latin-1")


_SHORT = re.compile(rb'(?:"[^"\\]*"|-?[0-9]+|null|true|false)(?=\s*[,}\]])')


def _nearest(body: bytes, path: tuple[str | int, ...]) -> tuple[int, tuple[str | int, ...]]:
    """Where the walk to `path` may begin, and what is left of it: at the value of its last key, if that stands once.

    A key inside a string would have its quotes escaped, so it does not look like one.
    """
    for number in range(len(path) - 1, -1, -1):
        key = path[number]
        if isinstance(key, str) and key.isidentifier():
            begun = _once(body, key)
            return (0, path) if begun is None else (begun, path[number + 1 :])
    return 0, path


@lru_cache(maxsize=32)
def _once(body: bytes, key: str) -> int | None:
    """Where the value of a key begins that stands once in the body; None where it stands elsewhere too, or nowhere."""
    search = _as_key(key).search
    found = search(body)
    return found.end() if found is not None and search(body, found.end()) is None else None


@lru_cache(maxsize=256)
def _as_key(key: str) -> re.Pattern[bytes]:
    return re.compile(rb'"%s"\s*:\s*' % key.encode())


def pointer(*path: str | int) -> str:
    """The JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


@lru_cache(maxsize=1024)
def path_of(text: str) -> tuple[str | int, ...]:
    """The path of a JSON pointer; array indices become numbers (which find a member of that name in an object, too)."""
    keys = [key.replace("~1", "/").replace("~0", "~") for key in text.split("/")[1:]]
    return tuple(int(key) if _INDEX.fullmatch(key) else key for key in keys)


_MANY = 16
"""From this index on, the items of an array are noted: whoever looks one up will look up its neighbours."""


@lru_cache(maxsize=4)
def _starts(text: str, position: int) -> tuple[int, ...]:
    """Where the items of the array at `position` begin."""
    found: list[int] = []
    at = _SPACE.match(text, position + 1).end()  # type: ignore[union-attr]
    while text[at] != "]":
        found.append(at)
        at = _SPACE.match(text, _SKIP(text, at)[1]).end()  # type: ignore[union-attr]
        if text[at] == ",":
            at = _SPACE.match(text, at + 1).end()  # type: ignore[union-attr]
    return tuple(found)


def _member(text: str, position: int, key: str | int) -> tuple[int, int | None] | None:
    """Where the member begins, and its end if that was met."""
    opening = text[position]
    if opening == "{":
        key = str(key)
    elif opening != "[" or isinstance(key, str):
        return None
    elif key >= _MANY:
        starts = _starts(text, position)
        return (starts[key], None) if key < len(starts) else None
    position = _SPACE.match(text, position + 1).end()  # type: ignore[union-attr]
    index = 0
    last: tuple[int, int] | None = None
    skip, space = _SKIP, _SPACE.match
    while text[position] not in "}]":
        name: str | int = index
        if opening == "{":
            name, position = scanstring(text, position + 1, False)
            if text[position] != ":":
                position = space(text, position).end()  # type: ignore[union-attr]
            position += 1
            if text[position] in _BLANK:
                position = space(text, position).end()  # type: ignore[union-attr]
        if name == key and opening == "[":
            return position, None
        end = skip(text, position)[1]
        if name == key:
            last = position, end  # the last of several equal keys wins, as in every parser
        position = end
        if text[position] in _BLANK:
            position = space(text, position).end()  # type: ignore[union-attr]
        if text[position] == ",":
            position += 1
            if text[position] in _BLANK:
                position = space(text, position).end()  # type: ignore[union-attr]
        index += 1
    return last
