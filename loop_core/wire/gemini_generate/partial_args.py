"""Assembles arguments that Vertex AI streams value by value (`functionCall.partialArgs`) into JSON text.

Each value has a JSON path, which gives its place in a growing tree. `text` is the whole object; `prefix` is the same
characters with everything left open at its end, so that no parser takes it for finished.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from loop_core.wire.gemini_generate.table import get

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"\s]+)|\[(?P<index>[0-9]{1,9})\]"""
    r"""|\['(?P<single>(?:[^'\\]|\\.)*)'\]|\["(?P<double>(?:[^"\\]|\\.)*)"\]"""
)
# Paths come from outside: without a bound one of them could make a tree that nothing can walk.
_DEEPEST = 64
_MISSING = object()


class _Text:
    """A string value that grows."""

    __slots__ = ("chunks", "open")

    def __init__(self, is_open: bool) -> None:
        self.chunks: list[str] = []
        self.open = is_open


class PartialArgs:
    """The arguments of one call while they arrive."""

    __slots__ = ("_open", "_root", "_text", "_where", "broken")

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._open = 0  # strings that wait for more
        self._where: str | None = None  # the path of the string that grew last
        self._text = _Text(False)
        self.broken = ""
        """The reason why the values make no object; empty if they do. Broken arguments never count as whole."""

    @property
    def whole(self) -> bool:
        """Whether every value that began is complete."""
        return not self._open and not self.broken

    def add(self, value: Mapping[str, Any]) -> None:
        """Reads one element of `partialArgs`."""
        path = get(value, "jsonPath")
        if path == self._where and self._text.open:
            self._grow(self._text, value)
            return
        try:
            holder, key = self._place(_steps(path))
            found = _read(holder, key)
            if found is _MISSING:
                self._begin(holder, key, value, path)
            elif isinstance(found, _Text) and found.open:
                self._text, self._where = found, path
                self._grow(found, value)
            else:
                raise _UnplacedError("was finished before")
        except _UnplacedError as why:
            self.broken = self.broken or f"{str(path)[:80]} {why}"

    @property
    def growing(self) -> tuple[Callable[[str], None], str] | None:
        """The string that receives the next piece, and its path; None if it is finished."""
        return (self._text.chunks.append, self._where) if self._text.open and self._where is not None else None

    def text(self) -> str:
        """The arguments as JSON."""
        return _render(self._root, False)

    def prefix(self) -> str:
        """The arguments as far as they arrived: JSON that stops in the middle."""
        return _render(self._root, True)

    def _place(self, steps: list[str | int]) -> tuple[Any, str | int]:
        holder: Any = self._root
        for step, following in pairwise(steps):
            inner = _read(holder, step)
            if inner is _MISSING:
                inner = [] if isinstance(following, int) else {}
                _put(holder, step, inner)
            holder = inner
        return holder, steps[-1]

    def _begin(self, holder: Any, key: str | int, value: Mapping[str, Any], path: str) -> None:
        if isinstance(get(value, "stringValue"), str):
            self._text, self._where = _Text(True), path
            self._open += 1
            _put(holder, key, self._text)
            self._grow(self._text, value)
            return
        number, flag = get(value, "numberValue"), get(value, "boolValue")
        if isinstance(flag, bool):
            _put(holder, key, flag)
        elif type(number) in (int, float) and math.isfinite(number):  # Python reads NaN and Infinity as numbers
            _put(holder, key, number)
        elif "nullValue" in value or "null_value" in value:
            _put(holder, key, None)
        else:
            raise _UnplacedError("brings no value")

    def _grow(self, text: _Text, value: Mapping[str, Any]) -> None:
        piece = get(value, "stringValue")
        if isinstance(piece, str):
            text.chunks.append(piece)
        # absent means the last piece (google-genai 3.4.0 types.py PartialArg)
        if get(value, "willContinue") is not True:
            text.open = False
            self._open -= 1


def string_piece(call: Mapping[str, Any], path: str) -> Any:
    """The piece that a chunk adds to the string at `path`; None if the chunk holds or ends anything else.

    Raises:
        KeyError, TypeError, ValueError: the chunk has another shape.
    """
    (value,) = call["partialArgs"]
    plain = len(call) == 2 and call["willContinue"] is True and len(value) == 3 and value["willContinue"] is True
    return value["stringValue"] if plain and value["jsonPath"] == path else None


class _UnplacedError(Exception):
    """The error for a value whose place in the object cannot be found."""


def _steps(path: Any) -> list[str | int]:
    if not isinstance(path, str) or not path.startswith("$"):
        raise _UnplacedError("is not a path")
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None or len(steps) == _DEEPEST:
            raise _UnplacedError("is not a path")
        steps.append(int(step["index"]) if step["index"] else step["name"] or _unquote(step["single"], step["double"]))
        position = step.end()
    if not steps or isinstance(steps[0], int):  # arguments are an object: `$[0]` leads nowhere
        raise _UnplacedError("is not a path into an object")
    return steps


def _unquote(single: str | None, double: str | None) -> str:
    quoted = double if single is None else single.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{quoted}"', strict=False))
    except ValueError:
        raise _UnplacedError("is not a path") from None


def _read(holder: Any, key: str | int) -> Any:
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key, _MISSING)
    if isinstance(holder, list) and isinstance(key, int) and key <= len(holder):
        return holder[key] if key < len(holder) else _MISSING
    raise _UnplacedError("does not fit what came before")


def _put(holder: Any, key: str | int, value: Any) -> None:
    if isinstance(holder, list):
        holder.append(value)
    else:
        holder[key] = value


def _render(value: Any, last: bool) -> str:
    if isinstance(value, _Text):
        text = json.dumps("".join(value.chunks), ensure_ascii=False)
        return text[:-1] if last and value.open else text
    if isinstance(value, dict):
        final = len(value) - 1
        inner = (f"{json.dumps(key, ensure_ascii=False)}:{_render(member, last and index == final)}"
                 for index, (key, member) in enumerate(value.items()))
        return "{" + ",".join(inner) + ("" if last else "}")
    if isinstance(value, list):
        final = len(value) - 1
        return "[" + ",".join(_render(member, last and index == final) for index, member in enumerate(value)) + (
            "" if last else "]"
        )
    return json.dumps(value)
