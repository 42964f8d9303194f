"""A body in hexadecimal: sixteen bytes to a line with the characters beside them, eight where there is no room."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.report.lines.slices import HANG, OFFSET, Bytes, Range
from inspector.report.lines.spans import Line, Measure, Role, Span, cells, clip, matched, wrapped

BYTES = 16
WIDE = HANG + BYTES * 3 + 1 + BYTES
"""Columns of a whole row."""


class Hex(Bytes):
    """The body as bytes in hexadecimal, sixteen to a line, with the characters beside them."""

    def __init__(
        self, head: Sequence[Line], body: bytes, marks: Sequence[Range], tail: Line, told: int | None = None
    ) -> None:
        super().__init__(head, body, marks, tail, told)
        self.count = -(-len(body) // BYTES)
        self.focus = self.line_of(marks[0][0]) if marks else 0

    def line_of(self, offset: int) -> int:
        """The line that shows a byte."""
        return len(self.head) + offset // BYTES

    def span(self, index: int) -> Range | None:
        """The sixteen bytes of a line."""
        position = index - len(self.head)
        start = position * BYTES
        return (start, min(start + BYTES, len(self.body))) if 0 <= position < self.count else None

    def spot(self, index: int, row: int, column: int, width: int) -> Range | None:
        """The byte at a row and column of a line, in its digits or its character; else all sixteen."""
        position = index - len(self.head)
        if not 0 <= position < self.count:
            return None
        size = BYTES if width >= WIDE else BYTES // 2
        start = position * BYTES + row * size
        end = min(start + size, len(self.body))
        gap = size > BYTES // 2 or end - start == size  # the one between the halves, or before the characters
        digits = column - HANG
        characters = digits - size * 3 - gap
        at = start + (characters if characters >= 0 else (digits - (gap and digits > BYTES // 2 * 3)) // 3)
        return (at, at + 1) if digits >= 0 and start <= at < end else (start, end)

    def __len__(self) -> int:
        return len(self.head) + self.count + 1

    def line(self, index: int) -> Line:
        """One logical line: sixteen bytes."""
        position = index - len(self.head)
        if position < 0:
            return self.head[index]
        return self.tail if position >= self.count else self._line(position * BYTES, BYTES)

    def _line(self, start: int, size: int) -> Line:
        data = self.body[start : start + size]
        spans = [Span(f"{start:>{OFFSET},} ", Role.DIM)]
        marked: list[Role | None] = [None] * len(data)
        for low, high, role in self.roles(start, start + len(data)):
            for i in range(max(low, start) - start, min(high - start, len(data))):
                marked[i] = role
        for i, byte in enumerate(data):
            spans.append(Span(f"{byte:02x}", marked[i] or Role.PLAIN))
            spans.append(Span("  " if i == 7 else " "))
        spans.append(Span("   " * (size - len(data)) + (" " if size > 8 and len(data) < 8 else "")))
        for i, byte in enumerate(data):
            spans.append(Span(chr(byte) if 32 <= byte < 127 else "·", marked[i] or Role.RULE))
        return tuple(spans)

    def rows(self, index: int, width: int, measure: Measure = cells, needle: str = "") -> Sequence[Line]:
        """The line, in two halves where sixteen bytes do not fit."""
        line = self.line(index)
        if index == self.told:
            return [matched(clip(line, width, measure), needle)]
        position = index - len(self.head)
        if not 0 <= position < self.count:
            return wrapped(line, width, measure, needle=needle)
        if width >= WIDE:
            return [matched(line, needle)]
        start = position * BYTES
        halves = [self._line(start, 8), *([self._line(start + 8, 8)] if start + 8 < len(self.body) else [])]
        return [matched(half, needle) for half in halves]

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """How many rows the line takes."""
        position = index - len(self.head)
        if not 0 <= position < self.count:
            return len(self.rows(index, width, measure))
        return 1 if width >= WIDE or len(self.body) - position * BYTES <= BYTES // 2 else 2

    def find(self, needle: str, start: int, step: int) -> int | None:
        """The next line where `needle` begins, looked for in the bytes."""
        if not needle:
            return None
        body, wanted = self._found(needle)
        base = max(0, start - len(self.head)) * BYTES
        at = body.find(wanted, base) if step > 0 else body.rfind(wanted, 0, base + BYTES)
        return None if at < 0 else len(self.head) + at // BYTES

    def copied(self) -> str:
        """The whole body in hexadecimal."""
        return self.body.hex(" ")
