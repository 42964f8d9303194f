"""Where each cell of a map stands: rows and columns are the last two axes, one block for each choice of the others.

Columns that do not fit stand in a further chunk below. Places are worked out, never kept, so that a map of any size
costs what is seen of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from inspector.report.lines.glyphs import MARKED
from inspector.report.lines.spans import EMPTY, Line, Role, Span
from inspector.tune.axes import Axis

GAP = 2
HERE = "◀"
"""Stands behind the cell of the cursor."""


@dataclass(frozen=True, slots=True)
class Plane:
    """The places of the cells at one width."""

    axes: tuple[Axis, ...]
    left: int
    """Columns of the screen that the names of the rows take."""
    wide: int
    """Columns of the screen that a cell takes."""
    many: int
    """Cells that stand beside each other."""

    @property
    def rows(self) -> Axis:
        """The axis that goes down."""
        return self.axes[-2] if len(self.axes) > 1 else self.axes[0]

    @property
    def columns(self) -> Axis | None:
        """The axis that goes to the right; none where there is but one axis."""
        return self.axes[-1] if len(self.axes) > 1 else None

    @property
    def across(self) -> int:
        """Cells in a row of the grid."""
        return len(self.columns.values) if self.columns is not None else 1

    @property
    def size(self) -> int:
        """Cells in all."""
        size = 1
        for axis in self.axes:
            size *= len(axis.values)
        return size

    @property
    def heads(self) -> int:
        """Lines over the cells of a chunk: the columns' name, where there is one, and their values."""
        return 2 if self.columns is not None else 1

    @property
    def title(self) -> int:
        """Lines over a block: a blank one, and the values of the other axes."""
        return 2 if len(self.axes) > 2 else 0

    @property
    def chunk(self) -> int:
        """Lines of a chunk."""
        return self.heads + len(self.rows.values)

    @property
    def block(self) -> int:
        """Lines of a block."""
        return self.title + -(-self.across // self.many) * self.chunk

    @property
    def height(self) -> int:
        """Lines in all."""
        return self.size // (self.across * len(self.rows.values)) * self.block

    # -- places ------------------------------------------------------------------------------------------------------

    def place(self, cell: int) -> tuple[int, int]:
        """The column of the screen and the line where a cell begins."""
        row, column = divmod(cell, self.across)
        block, row = divmod(row, len(self.rows.values))
        chunk, column = divmod(column, self.many)
        return self.left + column * self.wide, block * self.block + self.title + chunk * self.chunk + self.heads + row

    def cell_at(self, x: int, y: int) -> int | None:
        """The cell at a place; None where there is none."""
        if not 0 <= y < self.height or x < self.left:
            return None
        block, chunk, row = self._at(y)
        column = (x - self.left) // self.wide
        if row < 0 or column >= len(self._shown(chunk)):
            return None
        return self._first(block, row) + chunk * self.many + column

    def moved(self, cell: int, across: int, down: int) -> int:
        """The cell so many columns and rows further, as far as there are any; blocks follow one another."""
        row, column = divmod(cell, self.across)
        column = min(max(column + across, 0), self.across - 1)
        return min(max(row + down, 0), self.size // self.across - 1) * self.across + column

    def headed(self, y: int) -> int:
        """The line that names the columns of the cells on a line; that line itself where it holds none."""
        row = self._at(y)[2]
        return y - row - 1 if row >= 0 else y

    def _at(self, y: int) -> tuple[int, int, int]:
        """The block, the chunk and the row of a line; rows below 0 are headings."""
        block, y = divmod(y, self.block)
        if y < self.title:
            return block, 0, y - self.title - self.heads
        chunk, y = divmod(y - self.title, self.chunk)
        return block, chunk, y - self.heads

    def _first(self, block: int, row: int) -> int:
        return (block * len(self.rows.values) + row) * self.across

    def _shown(self, chunk: int) -> range:
        return range(chunk * self.many, min((chunk + 1) * self.many, self.across))

    # -- drawing -----------------------------------------------------------------------------------------------------

    def line(self, y: int, marks: Sequence[Span], here: int | None = None, marked: Collection[int] = ()) -> Line:
        """One line, with what stands in each cell; the cell `here` and those that are `marked` stand out."""
        block, chunk, row = self._at(y)
        if row >= 0:
            return self._cells(self._first(block, row), chunk, row, marks, here, marked)
        if row == -1:
            heads = [self.columns.said(self.columns.values[at]) if self.columns is not None else ""
                     for at in self._shown(chunk)]
            return (Span(f"{self.rows.short:<{self.left}}", Role.KEY),
                    Span("".join(f"{head:<{self.wide}}" for head in heads), Role.KEY))
        if row == -2 and self.columns is not None:
            return (Span(" " * self.left), Span(self.columns.short, Role.KEY))
        return (Span(self._chosen(block), Role.TITLE),) if row == -self.heads - 1 else EMPTY

    def _cells(
        self, first: int, chunk: int, row: int, marks: Sequence[Span], here: int | None, marked: Collection[int]
    ) -> Line:
        spans = [Span(f"{self.rows.said(self.rows.values[row]):<{self.left}}", Role.KEY)]
        for column in self._shown(chunk):
            cell = first + column
            told, role = marks[cell]
            text = f"{told}{HERE if cell == here else MARKED if cell in marked else ''}"
            spans += [Span(text, Role.HERE if cell == here else role), Span(" " * (self.wide - len(text)))]
        return tuple(spans)

    def _chosen(self, block: int) -> str:
        found: list[str] = []
        for axis in reversed(self.axes[:-2]):
            block, place = divmod(block, len(axis.values))
            found.append(f"{axis.short}={axis.said(axis.values[place])}")
        return ", ".join(reversed(found))


def plane(axes: tuple[Axis, ...], marks: Sequence[Span], width: int) -> Plane:
    """The places of cells that hold these marks, at most `width` columns wide."""
    rows, columns = (axes[-2], axes[-1]) if len(axes) > 1 else (axes[0], None)
    left = max(len(rows.short), *(len(rows.said(value)) for value in rows.values)) + GAP
    widest = max((len(mark.text) for mark in marks), default=0) + len(HERE)
    heads = (len(columns.said(value)) for value in columns.values) if columns is not None else ()
    wide = max((widest, *heads)) + GAP
    return Plane(axes, left, wide, max(1, (width - left) // wide))
