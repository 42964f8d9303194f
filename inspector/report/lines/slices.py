"""A body shown as slices of itself: every line is a range of its bytes, made into text only when it is visible.

Knows no wire format. A slice has an offset, perhaps a label, and keeps its bytes verbatim (invalid UTF-8 and control
characters as marks), so that a byte range of the body can be marked wherever it is shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from inspector.report.inert import one_line
from inspector.report.lines.spans import Line, Measure, Role, Span, cells, highlighted, text_of, width_of, wrapped

OFFSET = 9
"""Columns of an offset."""


class Slice(NamedTuple):
    """Bytes `start` to `end` of the body, on one line."""

    start: int
    end: int
    indent: int = 0
    label: str = ""


Range = tuple[int, int]
_ODD = re.compile(rb"[^\x20-\x7e]")
"""A byte that may not take exactly one cell."""


def shown(data: bytes) -> str:
    """Bytes as one line of inert text."""
    return one_line(data.decode("utf-8", "backslashreplace"))


class Slices:
    """A sheet: some lines that are there already, then one line for each slice, then a last line."""

    def __init__(
        self, head: Sequence[Line], body: bytes, slices: Sequence[Slice], marks: Sequence[Range], tail: Line
    ) -> None:
        self.head, self.body, self.slices, self.marks, self.tail = head, body, slices, marks, tail
        self._starts = [each.start for each in slices]
        self._lower: bytes | None = None
        self.focus = self._focus()

    def _focus(self) -> int:
        """The first marked line with a little before it; the end of the body where a mark stands behind all bytes."""
        if not self.marks:
            return 0
        start = self.marks[0][0]
        if start >= len(self.body):
            return len(self) - 1
        return len(self.head) + self._slice_at(start)

    def _slice_at(self, offset: int) -> int:
        return max(0, bisect_right(self._starts, offset) - 1)

    def __len__(self) -> int:
        return len(self.head) + len(self.slices) + 1

    def line(self, index: int) -> Line:
        """One logical line."""
        position = index - len(self.head)
        if position < 0:
            return self.head[index]
        return self.tail if position >= len(self.slices) else self._line(self.slices[position])

    def _line(self, piece: Slice) -> Line:
        text = shown(self.body[piece.start : piece.end])
        before = f"{' ' * piece.indent}"
        line: Line = (
            Span(f"{piece.start:>{OFFSET},} ", Role.DIM),
            *((Span(f"{piece.label} ", Role.KEY),) if piece.label else ()),
            Span(before + text),
        )
        base = len(text_of(line)) - len(text)
        for start, end in self.marks:
            low, high = max(start, piece.start), min(end, piece.end)
            if low < high:
                first = len(shown(self.body[piece.start : low]))
                line = highlighted(line, base + first, base + first + len(shown(self.body[low:high])), Role.MARK)
        return line

    def rows(self, index: int, width: int, measure: Measure = cells) -> Sequence[Line]:
        """The line wrapped to a width; bytes are broken anywhere."""
        inside = 0 <= index - len(self.head) < len(self.slices)
        return wrapped(self.line(index), width, measure, at_spaces=not inside)

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """How many rows the line takes, for plain bytes without making it."""
        position = index - len(self.head)
        if not 0 <= position < len(self.slices):
            return len(self.rows(index, width, measure))
        piece = self.slices[position]
        hang = OFFSET + 1
        if hang * 2 >= width or not piece.label.isascii() or _ODD.search(self.body, piece.start, piece.end):
            return len(self.rows(index, width, measure))
        size = hang + piece.indent + piece.end - piece.start + (len(piece.label) + 1 if piece.label else 0)
        return 1 if size <= width else 1 + -(-(size - width) // (width - hang))

    def find(self, needle: str, start: int, step: int) -> int | None:
        """The next line that holds `needle`, looked for in the bytes."""
        if not needle:
            return None
        others = (*range(len(self.head)), len(self) - 1)
        outside = [i for i in others if needle.lower() in text_of(self.line(i)).lower()]
        if self._lower is None:
            self._lower = self.body.lower()
        wanted = needle.encode("utf-8", "replace").lower()
        position = min(max(start - len(self.head), 0), len(self.slices) - 1)
        inside: int | None = None
        if self.slices and step > 0 and start - len(self.head) < len(self.slices):
            inside = self._lower.find(wanted, self.slices[position].start)
        elif self.slices and step < 0 and start >= len(self.head):
            inside = self._lower.rfind(wanted, 0, self.slices[position].end)
        found = [i for i in outside if (i >= start if step > 0 else i <= start)]
        if inside is not None and inside >= 0:
            found.append(len(self.head) + self._slice_at(inside))
        return (min(found) if step > 0 else max(found)) if found else None

    def copied(self) -> str:
        """The whole body as text."""
        return self.body.decode("utf-8", "backslashreplace")


BYTES = 16


class Hex:
    """The body as bytes in hexadecimal, sixteen to a line, with the characters beside them."""

    def __init__(self, head: Sequence[Line], body: bytes, marks: Sequence[Range], tail: Line) -> None:
        self.head, self.body, self.marks, self.tail = head, body, marks, tail
        self.count = -(-len(body) // BYTES)
        self._lower: bytes | None = None
        self.focus = len(head) + marks[0][0] // BYTES if marks else 0

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
        marked = [any(low <= start + i < high for low, high in self.marks) for i in range(len(data))]
        for i, byte in enumerate(data):
            spans.append(Span(f"{byte:02x}", Role.MARK if marked[i] else Role.PLAIN))
            spans.append(Span("  " if i == 7 else " "))
        spans.append(Span("   " * (size - len(data)) + (" " if size > 8 and len(data) < 8 else "")))
        for i, byte in enumerate(data):
            spans.append(Span(chr(byte) if 32 <= byte < 127 else "·", Role.MARK if marked[i] else Role.RULE))
        return tuple(spans)

    def rows(self, index: int, width: int, measure: Measure = cells) -> Sequence[Line]:
        """The line, in two halves where sixteen bytes do not fit."""
        line = self.line(index)
        position = index - len(self.head)
        if not 0 <= position < self.count:
            return wrapped(line, width, measure)
        if width_of(line, measure) <= width:
            return [line]
        start = position * BYTES
        halves = [self._line(start, 8)]
        return [*halves, self._line(start + 8, 8)] if start + 8 < len(self.body) else halves

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """How many rows the line takes."""
        position = index - len(self.head)
        if not 0 <= position < self.count:
            return len(self.rows(index, width, measure))
        wide = OFFSET + 1 + BYTES * 3 + 1 + min(BYTES, len(self.body) - position * BYTES)
        return 1 if wide <= width else len(self.rows(index, width, measure))

    def find(self, needle: str, start: int, step: int) -> int | None:
        """The next line where `needle` begins, looked for in the bytes."""
        if not needle:
            return None
        if self._lower is None:
            self._lower = self.body.lower()
        wanted = needle.encode("utf-8", "replace").lower()
        base = max(0, start - len(self.head)) * BYTES
        at = self._lower.find(wanted, base) if step > 0 else self._lower.rfind(wanted, 0, base + BYTES)
        return None if at < 0 else len(self.head) + at // BYTES

    def copied(self) -> str:
        """The whole body in hexadecimal."""
        return self.body.hex(" ")
