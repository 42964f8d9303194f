"""A body shown as slices: every line is a range of its bytes, and becomes text only when it is visible.

A slice has an offset and perhaps a label, and shows its bytes unchanged (invalid UTF-8 and control characters as
marks), so that a byte range of the body can be marked in every view.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import groupby
from typing import Self

from inspector.report.lines.body_slices import CHUNK, InString, Slice, after, json_pieces
from inspector.report.lines.spans import (
    Line,
    LineSheet,
    Measure,
    Span,
    Tone,
    cells,
    clip,
    mark_matches,
    one_line,
    text_of,
    wrap_line,
)

OFFSET = 9
HANG = OFFSET + 1
"""The number of columns before the bytes of a row."""
MOST_PIECES_BACK = 128
"""The most pieces of a line searched backwards for a string's beginning; further pieces have no roles."""


Range = tuple[int, int]
RoleRange = tuple[int, int, Tone]
_NOT_ONE_CELL = re.compile(rb"[^\x20-\x7e]")
"""Matches a byte whose character may not take exactly one cell."""


def text_of_bytes(data: bytes) -> str:
    """Bytes as one line of text without control characters."""
    return one_line(data.decode("utf-8", "backslashreplace"))


class Bytes(LineSheet):
    """The common part of body sheets: lines around the body, marked bytes, and the bytes of a selected fact."""

    def __init__(
        self, head: Sequence[Line], body: bytes, marks: Sequence[Range], tail: Line, row: int | None = None
    ) -> None:
        super().__init__(head)
        self.head, self.body, self.marks, self.tail = head, body, marks, tail
        self.shape: object = self
        """Equal for sheets that differ only in the selected bytes, whose lines have equal heights."""
        self.fact_row = row
        """The index of the line in the head that shows the picked fact; None if no line does."""
        self.pinned = 0 if row is None else row + 1
        """The number of first lines that stay visible: the response, the forms, and the keys or the picked fact."""
        self.count = 0
        """The number of lines that show bytes, between the head and the tail."""
        self._lower: bytes | None = None
        self._read: Sequence[Range] = ()
        self._selection: Range = (0, 0)

    def __len__(self) -> int:
        return len(self.head) + self.count + 1

    def picking(self, line: Line, read: Sequence[Range], selection: Range | None) -> Self:
        """The sheet with the bytes of a fact marked, opened at them."""
        other = copy(self)
        if self.fact_row is not None:
            other.head = [*self.head[: self.fact_row], line, *self.head[self.fact_row + 1 :]]
        other._read = sorted(read)
        if selection is not None:
            other._selection = selection
            other.focus = self.line_of(selection[0])
        return other

    def line_of(self, offset: int) -> int:
        """The line that shows a byte."""
        raise NotImplementedError

    def line(self, index: int) -> Line:
        """One logical line."""
        position = index - len(self.head)
        if position < 0:
            return self.head[index]
        return self.tail if position >= self.count else self.bytes_line(position)

    def bytes_line(self, position: int) -> Line:
        """The line of bytes at this position after the head."""
        raise NotImplementedError

    def position(self, index: int) -> int | None:
        """The position of a line among those that show bytes; None for a line before or after them."""
        position = index - len(self.head)
        return position if 0 <= position < self.count else None

    def rows(self, index: int, width: int, measure: Measure = cells, needle: str = "") -> Sequence[Line]:
        """A line before or after the bytes; the one that tells of the picked fact is cut to one row."""
        if index == self.fact_row:
            return [mark_matches(clip(self.line(index), width, measure), needle)]
        return super().rows(index, width, measure, needle)

    def span(self, index: int) -> Range | None:
        """The byte range of a line; None if it shows none."""
        raise NotImplementedError

    def spot(self, index: int, row: int, column: int, width: int) -> Range | None:
        """The byte range at a row and column of a line, as precisely as possible."""
        raise NotImplementedError

    def roles(self, start: int, end: int) -> list[RoleRange]:
        """The marks between two bytes, the selected bytes last."""
        found = [(low, high, Tone.MARK) for low, high in self.marks if low < end and high > start]
        first = max(0, bisect_right(self._read, (start, 0)) - 1)
        for low, high in self._read[first:]:
            if low >= end:
                break
            if high > start:
                found.append((low, high, Tone.PICKED if (low, high) == self._selection else Tone.READ))
        return found

    def _lower_bytes(self, needle: str) -> tuple[bytes, bytes]:
        """The body and the search text in lower case, for comparison."""
        if self._lower is None:
            # Converted once and stored, because a search in a large body needs them for every match.
            self._lower = self.body.lower()
        return self._lower, needle.encode("utf-8", "replace").lower()


class Slices(Bytes):
    """A sheet of fixed lines, then one line per slice, then a last line."""

    def __init__(
        self, head: Sequence[Line], body: bytes, slices: Sequence[Slice], marks: Sequence[Range], tail: Line,
        row: int | None = None, is_json: bool = False,
    ) -> None:
        super().__init__(head, body, marks, tail, row)
        self.slices = slices
        self.count = len(slices)
        self.is_json = is_json
        self._inside: dict[int, InString] = {}
        self._starts = [each.start for each in slices]
        if marks:  # a mark may be after all bytes, at the end of the body
            start = marks[0][0]
            self.focus = self.line_of(start) if start < len(body) else len(self) - 1

    def line_of(self, offset: int) -> int:
        """The line that shows a byte."""
        return len(self.head) + self._slice_at(offset)

    def span(self, index: int) -> Range | None:
        """The byte range of a line."""
        position = self.position(index)
        return None if position is None else self.slices[position][:2]

    def spot(self, index: int, row: int, column: int, width: int) -> Range | None:
        """The byte range at a row and column of a line: one byte if each takes a cell, else the whole line."""
        position = self.position(index)
        if position is None:
            return None
        piece = self.slices[position]
        if not self._has_even_cells(piece):
            return piece.start, piece.end
        hang = HANG if width > HANG * 2 else 0
        before = width + (row - 1) * (width - hang) - hang if row else 0
        at = piece.start + before + column - self._prefix(piece)
        return (at, at + 1) if piece.start <= at < piece.end else (piece.start, piece.end)

    def _slice_at(self, offset: int) -> int:
        return max(0, bisect_right(self._starts, offset) - 1)

    def bytes_line(self, position: int) -> Line:
        """The line of one slice."""
        return self._line(self.slices[position])

    def _line(self, piece: Slice, ranges: Iterable[RoleRange] = ()) -> Line:
        label = (Span(f"{piece.label} ", Tone.KEY),) if piece.label else ()
        indent = (Span(" " * piece.indent),) if piece.indent else ()
        return (Span(f"{piece.start:>{OFFSET},} ", Tone.DIM), *label, *indent, *self._spans(piece, ranges))

    def _spans(self, piece: Slice, ranges: Iterable[RoleRange]) -> Iterator[Span]:
        """The bytes of a slice in their roles; marks take precedence."""
        marks = [*ranges, *self.roles(piece.start, piece.end)]
        if not marks:
            yield Span(text_of_bytes(self.body[piece.start : piece.end]))
            return
        painted = [Tone.PLAIN] * (piece.end - piece.start)
        for low, high, role in marks:
            first, last = (max(0, min(at, piece.end) - piece.start) for at in (low, high))
            painted[first:last] = [role] * (last - first)
        data, at = self.body[piece.start : piece.end], 0
        plain = None if _NOT_ONE_CELL.search(data) else data.decode("ascii")
        for role, run in groupby(painted):
            end = at + sum(1 for _ in run)
            yield Span(text_of_bytes(data[at:end]) if plain is None else plain[at:end], role)
            at = end

    def _json_roles(self, piece: Slice) -> Iterator[RoleRange]:
        """The roles of a slice's bytes, if the body is JSON."""
        inside = self._inside_at(self._slice_at(piece.start)) if self.is_json else None
        if inside is None:
            return
        text, following = (self.body[low:high].decode("latin-1")
                           for low, high in ((piece.start, piece.end), (piece.end, piece.end + 16)))
        for start, end, role in json_pieces(text, inside, following):
            yield piece.start + start, piece.start + end, role

    def _inside_at(self, position: int) -> InString | None:
        """Whether a slice begins inside a string, as the rest of a long line may; None if the line is too long."""
        first = position
        while first not in self._inside and self._goes_on(first):
            first -= 1
            if position - first > MOST_PIECES_BACK:
                return None
        inside = self._inside.setdefault(first, InString.NO)
        for index in range(first, position):
            start, end, *_ = self.slices[index]
            inside = self._inside[index + 1] = after(self.body[start:end].decode("latin-1"), inside)
        return inside

    def _goes_on(self, position: int) -> bool:
        """Whether a slice is the rest of the line that the slice before it begins."""
        if not position:
            return False
        before = self.slices[position - 1]
        # A break between characters leaves up to three bytes of room, so a full slice may be that much shorter.
        return before.end == self.slices[position].start and before.end - before.start > CHUNK - 4

    def _has_even_cells(self, piece: Slice) -> bool:
        """Whether each byte of a slice takes one cell."""
        return piece.label.isascii() and not _NOT_ONE_CELL.search(self.body, piece.start, piece.end)

    @staticmethod
    def _prefix(piece: Slice) -> int:
        """Columns before the first byte of a slice."""
        return HANG + piece.indent + (len(piece.label) + 1 if piece.label else 0)

    def rows(self, index: int, width: int, measure: Measure = cells, needle: str = "") -> Sequence[Line]:
        """The line wrapped to a width; bytes may be broken anywhere."""
        if self.position(index) is None:
            return super().rows(index, width, measure, needle)
        return wrap_line(self.unbroken(index), width, measure, at_spaces=False, needle=needle)

    def unbroken(self, index: int) -> Line:
        """The line with the roles of its JSON, computed only for displayed lines."""
        position = self.position(index)
        if position is None:
            return self.line(index)
        piece = self.slices[position]
        return self._line(piece, self._json_roles(piece))

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """The number of rows of the line; plain bytes are not decoded for it."""
        position = self.position(index)
        if position is None:
            return len(self.rows(index, width, measure))
        piece = self.slices[position]
        if width <= HANG * 2 or not self._has_even_cells(piece):
            return len(wrap_line(self._line(piece), width, measure, at_spaces=False))
        size = self._prefix(piece) + piece.end - piece.start
        return 1 if size <= width else 1 + -(-(size - width) // (width - HANG))

    def find(self, needle: str, start: int, step: int) -> int | None:
        """The next line that contains `needle`, searched in the bytes."""
        if not needle:
            return None
        others = (*range(len(self.head)), len(self) - 1)
        outside = [i for i in others if needle.lower() in text_of(self.line(i)).lower()]
        body, wanted = self._lower_bytes(needle)
        position = min(max(start - len(self.head), 0), len(self.slices) - 1)
        inside: int | None = None
        if self.slices and step > 0 and start - len(self.head) < len(self.slices):
            inside = body.find(wanted, self.slices[position].start)
        elif self.slices and step < 0 and start >= len(self.head):
            inside = body.rfind(wanted, 0, self.slices[position].end)
        found = [i for i in outside if (i >= start if step > 0 else i <= start)]
        if inside is not None and inside >= 0:
            found.append(len(self.head) + self._slice_at(inside))
        return (min(found) if step > 0 else max(found)) if found else None

    def copy_text(self) -> str:
        """The whole body as text."""
        return self.body.decode("utf-8", "backslashreplace")


# -- A body in hexadecimal -------------------------------------------------------------------------------------------
# Each line has sixteen bytes with their characters, or eight if there is no room for sixteen.

BYTES = 16
WIDE = HANG + BYTES * 3 + 1 + BYTES


class Hex(Bytes):
    """The body in hexadecimal, sixteen bytes per line, with their characters."""

    def __init__(
        self, head: Sequence[Line], body: bytes, marks: Sequence[Range], tail: Line, row: int | None
    ) -> None:
        super().__init__(head, body, marks, tail, row)
        self.count = -(-len(body) // BYTES)
        self.focus = self.line_of(marks[0][0]) if marks else 0

    def line_of(self, offset: int) -> int:
        """The line that shows a byte."""
        return len(self.head) + offset // BYTES

    def span(self, index: int) -> Range | None:
        """The sixteen bytes of a line."""
        position = self.position(index)
        return None if position is None else (position * BYTES, min((position + 1) * BYTES, len(self.body)))

    def spot(self, index: int, row: int, column: int, width: int) -> Range | None:
        """The byte at a row and column of a line, in its digits or its character; else all sixteen bytes."""
        position = self.position(index)
        if position is None:
            return None
        size = BYTES if width >= WIDE else BYTES // 2
        start = position * BYTES + row * size
        end = min(start + size, len(self.body))
        gap = size > BYTES // 2 or end - start == size  # the blank between the halves, or before the characters
        digits = column - HANG
        characters = digits - size * 3 - gap
        at = start + (characters if characters >= 0 else (digits - (gap and digits > BYTES // 2 * 3)) // 3)
        return (at, at + 1) if digits >= 0 and start <= at < end else (start, end)

    def bytes_line(self, position: int) -> Line:
        """Sixteen bytes."""
        return self._line(position * BYTES, BYTES)

    def _line(self, start: int, size: int) -> Line:
        data = self.body[start : start + size]
        spans = [Span(f"{start:>{OFFSET},} ", Tone.DIM)]
        marked: list[Tone | None] = [None] * len(data)
        for low, high, role in self.roles(start, start + len(data)):
            for i in range(max(low, start) - start, min(high - start, len(data))):
                marked[i] = role
        for i, byte in enumerate(data):
            spans.append(Span(f"{byte:02x}", marked[i] or Tone.PLAIN))
            spans.append(Span("  " if i == 7 else " "))
        spans.append(Span("   " * (size - len(data)) + (" " if size > 8 and len(data) < 8 else "")))
        for i, byte in enumerate(data):
            spans.append(Span(chr(byte) if 32 <= byte < 127 else "·", marked[i] or Tone.DIM))
        return tuple(spans)

    def rows(self, index: int, width: int, measure: Measure = cells, needle: str = "") -> Sequence[Line]:
        """The line, in two halves if sixteen bytes do not fit."""
        position = self.position(index)
        if position is None:
            return super().rows(index, width, measure, needle)
        if width >= WIDE:
            return [mark_matches(self.line(index), needle)]
        start = position * BYTES
        halves = [self._line(start, 8), *([self._line(start + 8, 8)] if start + 8 < len(self.body) else [])]
        return [mark_matches(half, needle) for half in halves]

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """The number of rows of the line."""
        position = self.position(index)
        if position is None:
            return len(self.rows(index, width, measure))
        return 1 if width >= WIDE or len(self.body) - position * BYTES <= BYTES // 2 else 2

    def find(self, needle: str, start: int, step: int) -> int | None:
        """The next line in which `needle` begins, searched in the bytes."""
        if not needle:
            return None
        body, wanted = self._lower_bytes(needle)
        base = max(0, start - len(self.head)) * BYTES
        at = body.find(wanted, base) if step > 0 else body.rfind(wanted, 0, base + BYTES)
        return None if at < 0 else len(self.head) + at // BYTES

    def copy_text(self) -> str:
        """The whole body in hexadecimal."""
        return self.body.hex(" ")
