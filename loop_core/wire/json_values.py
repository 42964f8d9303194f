"""Finds the places of JSON values in bytes: a value inside a text, and consecutive values.

The first half finds a value by its path, if the exact characters matter (arguments sent as an object, byte provenance).
It skips values with the standard library's C scanner, so a look-up costs one pass over the text before the value;
decoders avoid it for frequent events. The second half has framings with one frame for each value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from loop_core.json_parser import JsonPath, from_json
from loop_core.wire.framing import BOM, Frame, is_json

_SPACE = re.compile(r"[ \t\r\n]*")
_SEPARATOR = re.compile(r"[ \t\r\n]*,?[ \t\r\n]*")
# Numbers stay text, because `int` refuses 5,000 digits.
_SKIP = json.JSONDecoder(strict=False, parse_int=str, parse_float=str).raw_decode
_INDEX = re.compile(r"0|[1-9][0-9]*")


def char_span(text: str, *path: str | int) -> tuple[int, int] | None:
    """Returns the start and end index of the value at `path` in `text`; None if there is no such value."""
    try:
        found = _find(text, path)
        return found and (found[0], found[1] or _SKIP(text, found[0])[1])
    except (ValueError, RecursionError, IndexError):
        return None


def member_spans(text: str, *path: str | int) -> dict[str, tuple[int, int | None]]:
    """Returns where the members of the object at `path` begin and end, as far as the text goes: the last member of a
    cut object has no end."""
    with suppress(ValueError, RecursionError, IndexError):
        found = _find(text, path)
        if found is not None and text[found[0]] == "{":
            return _members(text, found[0])
    return {}


def _find(text: str, path: JsonPath) -> tuple[int, int | None] | None:
    """Where the value at `path` begins, and where it ends if that is already known; None if there is no such value."""
    found: tuple[int, int | None] | None = _SPACE.match(text).end(), None  # type: ignore[union-attr]
    for key in path:
        if found is None:
            return None
        found = _member(text, found[0], key)
    return found


def slice_of(text: str, *path: str | int) -> str | None:
    """The verbatim JSON of the value at `path`; None if there is none."""
    span = char_span(text, *path)
    return None if span is None else text[span[0] : span[1]]


def byte_span(body: bytes, base: int, *path: str | int) -> tuple[int, int] | None:
    """Returns the start and end offset of the value at `path`; `body` is one JSON text at byte `base` of the whole
    body."""
    if body.startswith(BOM):
        body, base = body[len(BOM) :], base + len(BOM)
    if all(isinstance(key, int) or key.isascii() for key in path):
        # One character per byte, so indices in the text are offsets in the body.
        span = char_span(text_by_byte(body), *path)
        return None if span is None else (base + span[0], base + span[1])
    text = body.decode("utf-8", "surrogateescape")
    span = char_span(text, *path)
    if span is None:
        return None
    start = base + len(text[: span[0]].encode("utf-8", "surrogateescape"))
    return start, start + len(text[span[0] : span[1]].encode("utf-8", "surrogateescape"))


@lru_cache(maxsize=2)
def text_by_byte(body: bytes) -> str:
    """Returns the text in which each byte is one character, so that indices in it are offsets in the body."""
    return body.decode("latin-1")


def pointer(*path: str | int) -> str:
    """The JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


@lru_cache(maxsize=1024)
def path_of(text: str) -> JsonPath:
    """The path of a JSON pointer; array indices become numbers (which also find a member of that name in an object)."""
    keys = [key.replace("~1", "/").replace("~0", "~") for key in text.split("/")[1:]]
    return tuple(int(key) if _INDEX.fullmatch(key) else key for key in keys)


# Neighbouring items are usually looked up next.
@lru_cache(maxsize=16)
def _item_starts(text: str, position: int) -> tuple[int, ...]:
    """Where the items of the array at `position` begin, as far as the text goes."""
    found: list[int] = []
    at = _SPACE.match(text, position + 1).end()  # type: ignore[union-attr]
    with suppress(ValueError, IndexError):
        while text[at] != "]":
            found.append(at)
            at = _next(text, _SKIP(text, at)[1])
    return tuple(found)


def _member(text: str, position: int, key: str | int) -> tuple[int, int | None] | None:
    """Where the member begins, and where it ends if that is already known; None if there is no such member."""
    opening = text[position]
    if opening == "{":
        return _members(text, position).get(str(key))
    if opening != "[" or isinstance(key, str):
        return None
    starts = _item_starts(text, position)
    return (starts[key], None) if key < len(starts) else None


# Cached, because all calls of a body are looked up one after another, each with a pass over all.
@lru_cache(maxsize=16)
def _members(text: str, position: int) -> dict[str, tuple[int, int | None]]:
    """Where the members of the object at `position` begin and end, as far as the text goes."""
    skip, space = _SKIP, _SPACE.match
    found: dict[str, tuple[int, int | None]] = {}
    with suppress(ValueError, IndexError):
        position = space(text, position + 1).end()  # type: ignore[union-attr]
        while text[position] not in "}]":
            name, position = scanstring(text, position + 1, False)
            if text[position] != ":":
                position = space(text, position).end()  # type: ignore[union-attr]
            position = space(text, position + 1).end()  # type: ignore[union-attr]
            found[name] = position, None  # the last of several equal keys wins, as in every parser
            end = skip(text, position)[1]
            found[name] = position, end
            position = _next(text, end)
    return found


def _next(text: str, end: int) -> int:
    """Where the next value or key begins after a value that ends at `end`, or else the closing bracket of the
    container."""
    return _SEPARATOR.match(text, end).end()  # type: ignore[union-attr]


# -- Values one after another: bytes in any chunks -> one frame a value ----------------------------------------------
# `JSONArray` gives the elements of one array that is streamed (Gemini without `alt=sse`), `JSONSequence` the values of
# a body with one or more of them, printed over several lines. Values are objects or arrays; a bracket inside a string
# does not count. A body that ends inside a value returns the incomplete value, which will not parse; `closed` is true
# after the array's `]`.
#
# Walking over the brackets of a value costs more than parsing it. So the text up to the next occurrence of the first
# key is parsed first: if it parses, it is one value, because a JSON object ends with its last bracket. Otherwise a walk
# over each byte, once, decides where the value ends.


_NEXT_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+(["{}\[\]])', re.DOTALL)
"""Matches up to the next bracket outside strings, or up to the quotation mark that opens an incomplete string."""
_IN_STRING = re.compile(rb'["\\]')
_FIRST_KEY = re.compile(rb'\{\s*"[^"\\]*"')
_BETWEEN = b" \t\r\n,"
_MOST_GUESSES = 16
"""The number of wrong guesses in a body after which its values are found by their brackets alone. Each wrong guess may
cost as much as parsing all bytes that have arrived."""
_REPARSE_FACTOR = 8
"""An incomplete value is parsed again only while it is at most this many times as long as the newest bytes."""


class JSONArray:
    """An incremental splitter of the elements of one array."""

    __slots__ = ("_buffer", "_depth", "_guesses", "_in_string", "_offset", "_scan", "_start", "_waits", "closed")

    level = 1
    """The number of brackets that are open around each value: 1 in an array, 0 for values on their own."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._offset = 0  # of the buffer's first byte in the body
        self._scan = 0  # the position of the walk
        self._depth = 0
        self._in_string = False
        self._start = -1  # of the open value, in the buffer
        self._guesses = _MOST_GUESSES
        self._waits = False  # JSON so far, without its end
        self.closed = False

    def feed(self, data: bytes) -> list[Frame]:
        """Reads the next bytes; returns the values that are complete with them."""
        return [(payload, None, start, end) for payload, _, start, end in self.values(data)]

    def values(self, data: bytes) -> Iterator[tuple[bytes, dict[str, Any] | None, int, int]]:
        """The values of `feed` one by one. The second item is the parsed value, or None if the value was found by its
        brackets and was not parsed. All values must be taken before the next bytes are fed."""
        self._buffer += data
        while not self.closed and (self._start >= 0 or self._begin()):
            wrong = False
            if self._scan == self._start + 1 and self._guesses > 0 and len(self._buffer) <= _REPARSE_FACTOR * len(data):
                yield from self._guess_values()
                if self._start < 0:
                    continue
                if self._waits:
                    break
                wrong = True
            if not self._end():
                break
            self._guesses -= wrong  # the guess was wrong, as the value was complete
            start, end, self._start = self._start, self._scan, -1
            yield bytes(self._buffer[start:end]), None, self._offset + start, self._offset + end
        self._forget()

    def flush(self) -> list[Frame]:
        """Returns the rest of a value that never closed, which does not parse, and its place."""
        if self._start < 0:
            return []
        return [(bytes(self._buffer), None, self._offset, self._offset + len(self._buffer))]

    def _guess_values(self) -> Iterator[tuple[bytes, dict[str, Any] | None, int, int]]:
        """Yields the values from the open one on, as long as each ends before its first key occurs again."""
        buffer, offset, start = bytes(self._buffer), self._offset, self._start
        last = max(buffer.rfind(b"}", start), buffer.rfind(b"]", start)) + 1
        key = _FIRST_KEY.match(buffer, start)
        self._waits = not last  # no bracket here could end it
        if key is None:
            return
        first = key.group()
        while start >= 0:
            again = buffer.find(first, start + len(first))
            payload = buffer[start : again if again >= 0 else last].rstrip(_BETWEEN)
            try:
                value = from_json(payload)
            except ValueError as why:
                self._waits = again < 0 and str(why).startswith("EOF")  # the parser's word for an early end
                break
            self._scan = start + len(payload)
            yield payload, value, offset + start, offset + self._scan
            self._start = start = again
        if self._start >= 0:
            self._scan = self._start + 1
        else:
            self._depth -= 1

    def _begin(self) -> bool:
        """Walks to the beginning of the next value; False if none begins in these bytes."""
        while bracket := self._bracket():
            if bracket in b"{[":
                self._depth += 1
                if self._depth > self.level:
                    self._start = self._scan - 1
                    return True
            elif self.level:
                self.closed = True
                return False
        return False

    def _end(self) -> bool:
        """Walks to the end of the open value; False if that is not in these bytes."""
        while bracket := self._bracket():
            self._depth += 1 if bracket in b"{[" else -1
            if self._depth == self.level:
                return True
        return False

    def _bracket(self) -> bytes:
        """Walks over the next bracket outside strings; empty if there is none in these bytes."""
        buffer = self._buffer
        while mark := (_IN_STRING.search if self._in_string else _NEXT_BRACKET.match)(buffer, self._scan):
            found, self._scan = mark.group()[-1:], mark.end()
            if found == b'"':
                self._in_string = not self._in_string
            elif found != b"\\":
                return found
            elif self._scan < len(buffer):
                self._scan += 1
            else:  # the escaped character has not arrived
                self._scan -= 1
                return b""
        self._scan = len(buffer)
        return b""

    def _forget(self) -> None:
        """Drops the bytes that are no longer needed."""
        used = len(self._buffer) if self.closed else self._scan if self._start < 0 else self._start
        del self._buffer[:used]
        self._offset, self._scan = self._offset + used, self._scan - used
        self._start = min(self._start, 0)


class JSONSequence(JSONArray):
    """An incremental splitter of consecutive values."""

    __slots__ = ()
    level = 0


# -- Newline-delimited JSON ------------------------------------------------------------------------------------------
# Bytes in any chunks -> one frame a line. Framing only; empty lines are skipped. If the first line is not a whole
# value, the body was printed over several lines, for people, and is read value by value.



class NDJSON:
    """An incremental line splitter; `feed` returns the complete lines, `flush` the one without its newline."""

    __slots__ = ("_in_lines", "_offset", "_rest", "_values")

    def __init__(self, lines: bool = False) -> None:
        """With `lines`, the body has a value in each line, whatever its first line is."""
        self._rest: list[bytes] = []  # of the incomplete line
        self._offset = 0  # of its first byte in the body
        self._in_lines = lines  # or once the first line was a whole value
        self._values: JSONSequence | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Reads the next bytes; returns the lines that are complete with them."""
        if self._values is not None:
            return self._values.feed(data)
        held = self._rest
        if b"\n" not in data:
            held.append(data)
            return []
        if held:
            held.append(data)
            data = b"".join(held)
            held.clear()
        if not self._in_lines and not self._begin(data):
            return self._values.feed(data) if self._values is not None else []
        lines = data.split(b"\n")
        rest = lines.pop()
        if rest:
            held.append(rest)
        return self._frames(lines)

    def flush(self) -> list[Frame]:
        """The last line, if it had no newline."""
        if self._values is not None:
            return self._values.flush()
        lines = b"".join(self._rest).split(b"\n")
        self._rest.clear()
        return self._frames(lines)

    def _begin(self, data: bytes) -> bool:
        """Examines the first line that is not blank; False if lines cannot be read yet, or not at all."""
        first, newline, _ = data.removeprefix(BOM).lstrip().partition(b"\n")
        if not newline:
            self._rest.append(data)
            return False
        try:
            from_json(first)
        except ValueError:
            self._values = JSONSequence()
            return False
        self._in_lines = True
        return True

    def _frames(self, lines: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        append, start = frames.append, self._offset
        if start == 0 and lines[0].startswith(BOM):
            lines[0], start = lines[0][3:], 3
        for line in lines:
            end = start + len(line)
            if line:
                append((line, None, start, end))
            start = end + 1
        self._offset = start
        return frames


# -- Streams that a recorder wrote without their framing -------------------------------------------------------------


def is_in_lines(text: bytes) -> bool:
    """Whether the first two lines of a text each hold an object; the first may be damaged."""
    first, _, rest = text.partition(b"\n")
    second = rest.lstrip().partition(b"\n")[0]
    objects = first.startswith(b"{") and second.startswith(b"{")
    return objects and (is_json(first) or (is_json(second) and not is_json(text)))


def recorded_events(body: bytes) -> list[Frame]:
    """Returns the events of a stream that a logger wrote as lines of JSON or as a list, one frame each; empty for any
    other body. Empty also if the first two and the last have different ids, as of several answers, or if anything
    follows the list."""
    text = body.removeprefix(BOM).lstrip()
    if not text.startswith(b"[") and not is_in_lines(text):
        return []
    framing = JSONArray() if text.startswith(b"[") else NDJSON(lines=True)
    frames = [*framing.feed(body), *framing.flush()]
    values = [from_json(payload) for payload, *_ in (*frames[:2], *frames[-1:]) if is_json(payload)]
    ids = {value.get("id") for value in values if isinstance(value, dict) and isinstance(value.get("id"), str)} - {""}
    if len(ids) > 1 or not values or not isinstance(values[0], dict) or body[frames[-1][3] :].strip(b" \t\r\n,]"):
        return []
    return frames
