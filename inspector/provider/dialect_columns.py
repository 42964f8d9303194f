"""The table of dialects as columns of a list: one line per dialect, as many columns as fit. Pure.

Further down: everything about one dialect under one scenario, as a sheet that a screen shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inspector.provider.dialect_lines import TableEntry, cells, name_of, reason, word
from inspector.provider.dialect_rows import DialectRow, SilentRow, TableRow
from inspector.provider.dialects import PEER_VERSIONS
from inspector.report.lines.spans import (
    Line,
    Listed,
    Measure,
    Span,
    Tone,
    field,
    more,
    quote,
    safe,
    text_of,
    width_of,
)
from inspector.report.lines.spans import cells as cells_of
from inspector.report.table import GAP, Column, side_by_side
from loop_core.judge.gate import Admission

INDENT = "  "
Shown = str | TableEntry
"""A line of the list: the name of a wire format over its dialects, or a dialect."""


def peers(row: TableRow) -> Line:
    """The libraries that read the stop word differently, in short: those that take it for finished by name and with a
    mark."""
    differ = [peer for peer in row.peers if not peer.agrees] if isinstance(row, DialectRow) else []
    loose = [peer.name for peer in differ if peer.looser]
    words = f"all {len(loose)} !" if isinstance(row, DialectRow) and len(loose) == len(row.peers) > 1 else " ".join(
        f"{each}!" for each in loose)
    rest = f"{len(differ) - len(loose)} differ" if len(differ) > len(loose) else ""
    return tuple(span for span in (Span(words, Tone.ERROR), Span(" " if words and rest else ""), Span(rest, Tone.DIM))
                 if span.text)


LIST_COLUMNS: tuple[tuple[Column[TableRow], range], ...] = (
    (Column("raw word", cell=lambda row: cells(row)[1], most=30), range(4)),
    (Column("effective", cell=lambda row: cells(row)[3], most=24), range(1)),
    (Column("reason", cell=reason, most=36), range(1, 4)),
    (Column("the call", cell=lambda row: cells(row)[5], most=24), range(1, 4)),
    (Column("decision", cell=lambda row: cells(row)[6], most=16), range(4)),
    (Column("peers (! finished)", cell=peers, most=26), range(2, 4)),
    (Column("seen by", cell=lambda row: cells(row)[4], most=30), range(3, 4)),
)
"""Each column, and in which lists it stands: from the rank of the narrowest to that of the widest."""
RANKS = (3, 2, 1, 0)
"""Of the lists, the widest first."""
LEAST = 8
"""Columns that none is made narrower than."""


class ColumnLayout(NamedTuple):
    """The visible columns and their widths, without the name column."""

    columns: Sequence[Column[TableRow]]
    sizes: Sequence[int]
    names: int


def list_lines(entries: Sequence[TableEntry]) -> list[Shown]:
    """The lines of the list: entries grouped by wire format."""
    found: list[Shown] = []
    api = ""
    for entry in entries:
        if entry.row.dialect.api != api:
            api = entry.row.dialect.api
            found.append(api)
        found.append(entry)
    return found


def layout(entries: Sequence[TableEntry], width: int) -> ColumnLayout:
    """The columns that fit; the widest are narrowed if even the most important do not fit."""
    names = len(INDENT) + max((width_of(name_of(entry, short=True)) for entry in entries), default=0)
    rows = [entry.row for entry in entries if isinstance(entry.row, DialectRow)]
    for rank in RANKS:
        columns = [column for column, ranks in LIST_COLUMNS if rank in ranks]
        sizes = [column.size(rows) for column in columns]
        if names + sum(sizes) + GAP * len(sizes) <= width:
            return ColumnLayout(columns, sizes, names)
    while names + sum(sizes) + GAP * len(sizes) > width and max(sizes) > LEAST:
        sizes[sizes.index(max(sizes))] -= 1
    return ColumnLayout(columns, sizes, names)


def titles(layout: ColumnLayout) -> Line:
    """The names of the columns."""
    heads = [f"{INDENT}dialect", *(column.key for column in layout.columns)]
    return side_by_side([(Span(head, Tone.KEY),) for head in heads], (layout.names, *layout.sizes))


def line(each: Shown, layout: ColumnLayout, measure: Measure = cells_of, mark: str = "…") -> Line:
    """One line of the list."""
    if isinstance(each, str):
        return (Span(each, Tone.TITLE),)
    head: Line = (Span(INDENT), *name_of(each, short=True))
    if not isinstance(each.row, DialectRow):
        return (*head, Span(" " * (layout.names + GAP - width_of(head, measure))), Span(each.row.why, Tone.DIM))
    row = [head, *(column.cell(each.row) for column in layout.columns)]
    return side_by_side(row, (layout.names, *layout.sizes), measure, mark)


def find(lines: Sequence[Shown], needle: str, start: int, by: int, again: bool) -> int | None:
    """The next line whose columns or name contain `needle`, wrapping around; None if none does."""
    wanted = needle.lower()
    for far in range(again, len(lines) + again):
        at = (start + far * by) % len(lines)
        each = lines[at]
        if isinstance(each, TableEntry) and wanted in _said(each).lower():
            return at
    return None


def _said(entry: TableEntry) -> str:
    words = [text_of(cell) for cell in cells(entry.row)]
    return " ".join([*words, entry.row.dialect.title, *(like.name for like in entry.like)])


def place_of(lines: Sequence[Shown], dialect: str) -> int:
    """The line of a dialect; the first dialect's line if it has none."""
    entries = [(at, each) for at, each in enumerate(lines) if isinstance(each, TableEntry)]
    return next((at for at, each in entries if dialect in (each.row.name, *(like.name for like in each.like))),
                entries[0][0] if entries else 0)


# -- Everything about one dialect under one scenario, as a sheet that a screen shows ---------------------------------
# Pure.


def sheet(row: TableRow, like: Sequence[TableRow] = ()) -> Listed:
    """All details of one row; `like` are those that say the same."""
    dialect = row.dialect
    lines: list[Line] = [
        (Span(row.name, Tone.TITLE), Span(f"  {row.play.scenario.name}, budget {row.play.budget:,} tokens",
                                          Tone.DIM)),
        field("what it does", safe(dialect.title or "speaks as its format says")),
    ]
    last: list[Line] = [(), field("written in", safe(dialect.source, Tone.DIM))]
    if like:
        last.append(field("says the same", Span(", ".join(other.name.partition("/")[2] for other in like))))
    if isinstance(row, SilentRow):
        return Listed([*lines, field("here", Span(row.why, Tone.WARN)), *last])
    return Listed([*lines, *_words(row), *_calls(row), *_decided(row), *_peers(row), *last])


def _words(row: DialectRow) -> list[Line]:
    judged, response = row.judgement, row.exchange.response
    lines = [field("raw word", *word(row)),
             field("mapped", Span(judged.mapped.normalized.value, Tone.NORMALIZED)),
             field("effective", *cells(row)[3])]
    lines += [more(Span(seen.rule, Tone.DIM), Span("  "), safe(seen.note)) for seen in judged.stop.evidence]
    usage = response.usage
    if usage is not None and usage.output_tokens is not None:
        thinking = f", {usage.reasoning_tokens:,} of them thinking" if usage.reasoning_tokens else ""
        lines.append(field("tokens", Span(f"{usage.output_tokens:,} of {row.play.budget:,}{thinking}")))
    else:
        lines.append(field("tokens", Span("not told", Tone.DIM)))
    notes = [finding.message for finding in (*response.findings, *judged.findings)]
    return lines + [field("finding" if not i else "", safe(note, Tone.WARN)) for i, note in enumerate(notes)]


def _calls(row: DialectRow) -> list[Line]:
    lines: list[Line] = [(), field("the call", Span(row.call.value))]
    for verdict in row.verdicts:
        held = verdict.admission is not Admission.READY
        lines.append(field("received", safe(verdict.call.name, Tone.STRONG), Span("  "),
                           quote(verdict.call.arguments or "", Tone.RAW)))
        lines.append(more(Span(verdict.admission.value.upper(), Tone.HELD if held else Tone.OK), Span("  "),
                          safe(verdict.why)))
    lines += [field("lost" if not i else "", safe(what, Tone.WARN)) for i, what in enumerate(row.losses)]
    if row.blind:
        lines.append(field("blind", Span(row.blind, Tone.ERROR)))
    return lines


def _decided(row: DialectRow) -> list[Line]:
    last = row.run.trace.steps[-1].turn
    lines: list[Line] = [(), field("decision", *cells(row)[6], Span(f"  by {last.policy.name}", Tone.DIM))]
    return [*lines, more(safe(last.notice, Tone.DIM))] if last.notice else lines


def _peers(row: DialectRow) -> list[Line]:
    return [
        field("peers" if not number else "", Span(f"{PEER_VERSIONS[peer.name]:<20}", Tone.DIM),
              Span(f"{peer.word:<16}"),
              Span("as we do" if peer.agrees else f"that is {peer.means.value}",
                   Tone.ERROR if peer.looser else Tone.PLAIN))
        for number, peer in enumerate(row.peers)
    ]
