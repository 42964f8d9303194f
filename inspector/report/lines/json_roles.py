"""Assigns a role to each piece of a JSON text, for colouring. Nothing is parsed, so a broken or cut text gets roles
too.

`InString` says whether a piece begins inside a string. Bytes are passed as Latin-1, one character per byte, so that
positions in the text are byte offsets.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from inspector.report.lines.spans import (
    LONGEST,
    Line,
    LineSheet,
    Measure,
    Span,
    Tone,
    cells,
    inert,
    paragraphs,
    wrap_line,
)


class InString(IntEnum):
    """Whether the first character of a piece is inside a string."""

    NO = 0
    YES = 1
    ESCAPED = 2
    """The first character is inside a string and follows a backslash."""


class JsonPiece(NamedTuple):
    """Characters `start` to `end`, and their role."""

    start: int
    end: int
    role: Tone


_REST = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*(?:"|(\\?)\Z)', re.DOTALL)
"""Matches the rest of a string up to its quote or the piece's end; a backslash there is a group of its own."""
_STRING = re.compile(f'"{_REST.pattern}', re.DOTALL)
_TOKEN = re.compile(
    rf'(?P<string>{_STRING.pattern})'
    r"|(?P<number>(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])|\b(?:true|false|null)\b)"
    r"|(?P<mark>[{}\[\],:]+)", re.DOTALL)
_NAMED = re.compile(r"\s*:")
ROLES = {"string": Tone.STRING, "number": Tone.NUMBER, "mark": Tone.DIM}
"""Group of `_TOKEN` -> the role of its text. A string before a colon has the role of a name instead."""


def json_pieces(text: str, inside: InString, following: str = "") -> Iterator[JsonPiece]:
    """The pieces of a text that have a role. The text `following` it shows whether a string at its end is a name."""
    begin, whole = 0, text + following
    if inside is not InString.NO:
        rest = _REST.match(text, 1 if inside is InString.ESCAPED else 0)
        begin = len(text) if rest is None else rest.end()
        yield JsonPiece(0, begin, Tone.STRING)
    for token in _TOKEN.finditer(text, begin):
        start, end = token.span()
        role = ROLES[token.lastgroup or "mark"]
        if role is Tone.STRING and _NAMED.match(whole, end):
            role = Tone.KEY
        yield JsonPiece(start, end, role)


def after(text: str, inside: InString = InString.NO) -> InString:
    """Whether the character after a piece is inside a string."""
    if not text:
        return inside
    at = 0
    if inside is not InString.NO:
        rest = _REST.match(text, 1 if inside is InString.ESCAPED else 0)
        if rest is None or rest[1] is not None:
            return InString.ESCAPED if rest is not None and rest[1] else InString.YES
        at = rest.end()
    strings = deque(_STRING.finditer(text, at), maxlen=1)
    if not strings or strings[0][1] is None:
        return InString.NO
    return InString.ESCAPED if strings[0][1] else InString.YES


# -- a JSON text made by the program, as lines -----------------------------------------------------------------------


class JsonLines(LineSheet):
    """A sheet of lines and then a JSON text, with a line break after every value; roles are assigned when shown."""

    def __init__(self, head: Sequence[Line], text: str) -> None:
        super().__init__(head, copy_text=lambda: text)
        self._head = head
        self._lines: list[str] = []
        self._inside: dict[int, InString] = {}
        for line in inert(text).split("\n"):
            if len(line) <= LONGEST:
                self._lines.append(line)
            else:
                self._break(line)

    def _break(self, line: str) -> None:
        """Splits a long line into parts, and stores which parts begin inside a string."""
        inside = InString.NO
        for (part,) in paragraphs(line):
            self._inside[len(self._lines)] = inside
            self._lines.append(part.text)
            inside = after(part.text, inside)

    def __len__(self) -> int:
        return len(self._head) + len(self._lines)

    def line(self, index: int) -> Line:
        """One line, without roles."""
        if index < len(self._head):
            return self._head[index]
        indent, value = self._split_indent(index - len(self._head))
        return indent, Span(value)

    def unbroken(self, index: int) -> Line:
        """The line with the role of each piece of JSON, computed only for displayed lines."""
        position = index - len(self._head)
        if position < 0:
            return self._head[index]
        indent, value = self._split_indent(position)
        found, at = list[Span](), 0
        for start, end, role in json_pieces(value, self._inside.get(position, InString.NO)):
            found += [Span(value[at:start]), Span(value[start:end], role)]
            at = end
        found.append(Span(value[at:]))
        return (indent, *(span for span in found if span.text))

    def _split_indent(self, position: int) -> tuple[Span, str]:
        """The indentation of a line, which its further rows repeat, and the value after it."""
        line = self._lines[position]
        value = line.lstrip(" ")
        return Span(line[: len(line) - len(value)]), value

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """The number of rows of the line; roles do not change it."""
        position = index - len(self._head)
        if position >= 0 and self._lines[position].isascii() and len(self._lines[position]) <= width:
            return 1
        return len(wrap_line(self.line(index), width, measure))
