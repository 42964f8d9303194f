"""Tables with columns (key, plain value, cell) declared once for JSON, CSV and screens; the frame of HTML pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from inspector.report.lines.spans import Line, Measure, Span, cells, clip, one_line, width_of
from inspector.sessions import redact

R = TypeVar("R")
Whole = TypeVar("Whole")
GAP = 2
"""The number of blanks between two columns on a screen."""


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """One column, over rows of one kind."""

    key: str
    """The name of the column in JSON and CSV, and its heading on screens if no other heading is given."""
    value: Callable[[R], Any] = lambda row: None
    """The function that gives a row's plain value; None if the row has none."""
    cell: Callable[[R], Line] = lambda row: ()
    most: int = 80
    """The largest width of the column, in cells of the terminal."""
    in_csv: bool = True

    def of(self, part: Callable[[Whole], R]) -> Column[Whole]:
        """The same column for rows that contain such a row as a part."""
        value, cell = self.value, self.cell
        return Column(self.key, lambda row: value(part(row)), lambda row: cell(part(row)), self.most, self.in_csv)

    def size(self, rows: Iterable[R]) -> int:
        """The width at which the column is drawn."""
        return min(self.most, max([len(self.key), *(width_of(self.cell(row)) for row in rows)]))


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """Columns in their order."""

    columns: tuple[Column[R], ...]

    def values(self, row: R) -> dict[str, Any]:
        """A row as JSON values."""
        return {column.key: column.value(row) for column in self.columns}

    def csv(self, rows: Iterable[R]) -> str:
        """The rows as CSV with a header; a None is empty. Credentials are masked: a file's name may hold one."""
        out = io.StringIO()
        # The module's own default is `\r\n`, which line-based shell tools would keep as part of the last field.
        writer = csv.writer(out, lineterminator="\n")
        columns = [column for column in self.columns if column.in_csv]
        writer.writerow([column.key for column in columns])
        writer.writerows([_field(column.value(row)) for column in columns] for row in rows)
        return out.getvalue()


def attributes(names: Iterable[str], part: Callable[[R], Any]) -> tuple[Column[R], ...]:
    """A column for each of these attributes of a part of the row."""
    def column(name: str) -> Column[R]:
        return Column(name, lambda row: getattr(part(row), name))
    return tuple(column(name) for name in names)


def side_by_side(row: Sequence[Line], sizes: Sequence[int], measure: Measure = cells, mark: str = "…") -> Line:
    """The cells of a row, each cut to its width."""
    spans: list[Span] = []
    for cell, size in zip(row, sizes, strict=True):
        clipped_cell = clip(cell, size, measure, mark)
        spans += [*clipped_cell, Span(" " * (size + GAP - width_of(clipped_cell, measure)))]
    return tuple(spans[:-1])


def _field(value: Any) -> Any:
    """A value for CSV; text has no credentials or control characters, and no spreadsheet reads it as a formula."""
    if not isinstance(value, str):
        return value
    # A field that begins with one of these signs is a formula to a spreadsheet, which would run it
    # (https://owasp.org/www-community/attacks/CSV_Injection); the apostrophe makes it text.
    text = one_line(redact.text(value))
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


# -- The frame of an HTML page ----------------------------------------------------------------------------------------

PAGE_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;padding:0 1rem;color:#1a202c;background:#fff}"
    ".wide{overflow-x:auto}h1,p{overflow-wrap:anywhere}"
)
"""The style sheet of a page of numbers."""


def html_page(title: str, style: str, body: str) -> str:
    """A page that runs no script and loads nothing, whatever text it contains."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def wide(part: str) -> str:
    """A part of a page that scrolls sideways by itself if the screen is narrower."""
    return f'<div class="wide">{part}</div>'
