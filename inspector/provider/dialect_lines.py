"""The table of dialects as lines of spans, for a screen and the text report.

Rows with equal values share a line of the table, which has the name of the first. The second part lays the table out as
a list with one line per dialect and as many columns as fit. The module is pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from inspector.provider.dialect_rows import LOSE_REST, CallState, DialectRow, SilentRow, TableRow
from inspector.provider.dialects import PEER_VERSIONS
from inspector.provider.scenarios import CHARACTERS, COMPLETE
from inspector.report.lines.glyphs import STOP
from inspector.report.lines.spans import (
    Line,
    Measure,
    Span,
    Tone,
    clip,
    count_of,
    join_groups,
    safe,
    text_of,
    width_of,
    wrap_line,
)
from inspector.report.lines.spans import cells as cells_of
from inspector.report.table import GAP, Column, side_by_side
from loop_core.values import FINISHED

COLUMNS = ("dialect", "raw word", "mapped", "effective", "seen by", "the call", "decision", "peers that differ")


class TableEntry(NamedTuple):
    """One line of the table: a row, and the rows with equal values."""

    row: TableRow
    equal_rows: tuple[TableRow, ...] = ()


def entries(rows: Sequence[TableRow], each: bool = False) -> list[TableEntry]:
    """The lines of the table; with `each`, one per row."""
    groups: dict[object, list[TableRow]] = {}
    for number, row in enumerate(rows):
        key: object = number if each else (row.dialect.api, cells(row)[1:], _blind_line(row))
        groups.setdefault(key, []).append(row)
    return [TableEntry(first, tuple(rest)) for first, *rest in groups.values()]


def cells(row: TableRow) -> tuple[Line, ...]:
    """One cell for each of `COLUMNS`."""
    name: Line = (safe(row.name, Tone.STRONG),)
    if isinstance(row, SilentRow):
        return name, (Span(row.why, Tone.DIM),), (), (), (), (), (), ()
    mapped, stop = row.judgement.mapped.normalized, row.judgement.stop.normalized
    role = STOP[stop][1]
    tightened = Span(" ⚠", Tone.WARN) if mapped is not stop else Span("")
    cap = Span(", cap", Tone.WARN) if row.judgement.cap_reached else Span("")
    return (
        name,
        word(row),
        (Span(mapped.value, Tone.NORMALIZED),),
        (Span(stop.value, role), cap, tightened),
        (Span(deciding_rules(row), Tone.DIM),),
        (Span(row.call.value, Tone.DIM if row.call is CallState.NONE else Tone.PLAIN),),
        (Span(row.decision, Tone.ERROR if row.runs_cut or row.blind or row.decision == LOSE_REST else Tone.PLAIN),),
        _misreaders(row),
    )


def word(row: DialectRow) -> Line:
    """The raw stop word, and a native one beside it."""
    raw = row.exchange.response.raw_stop_reason
    status = row.exchange.response.http_status or 200
    raw_word: Line = (safe(raw, Tone.RAW),) if raw is not None else (Span("absent", Tone.DIM),)
    if raw is None and row.exchange.response.error is not None:
        raw_word = (Span(f"HTTP {status}" if status >= 400 else "an error in the stream", Tone.RAW),)
    native = [(Span(f" {name.removesuffix('_finish_reason')}:", Tone.DIM), safe(value, Tone.RAW))
              for name, value in row.exchange.response.native.items() if name in ("native_finish_reason", "truncated")]
    return (*raw_word, *(span for pair in native for span in pair))


def deciding_rules(row: DialectRow) -> str:
    """The rules that led to the effective reason, the deciding one last."""
    rules = [evidence.rule.rpartition(".")[2] for evidence in row.judgement.stop.evidence]
    return ", ".join(rule.replace("_", " ") for rule in rules if rule != "stop_reasons") or "stop reasons"


def _misreaders(row: DialectRow) -> Line:
    """The libraries that read the word differently; those that take the answer for finished have a mark."""
    return join_groups(
        ((Span(f"{peer.name} ", Tone.DIM), Span(f"{peer.word}{'!' if peer.looser else ''}",
                                                Tone.ERROR if peer.looser else Tone.PLAIN))
         for peer in row.peers if not peer.agrees), ", ")


# -- the table -------------------------------------------------------------------------------------------------------

Grid = list[tuple[Line, ...]]


def table(rows: Sequence[TableRow], width: int, each: bool = False) -> list[Line]:
    """The table in `width` columns: each row on one line if possible, less important values below it."""
    table_entries = entries(rows, each)
    whole: Grid = [(name_of(entry), *cells(entry.row)[1:]) for entry in table_entries]
    for column_count in (len(COLUMNS), len(COLUMNS) - 1):  # the last column, the peers, moves below its row first
        beneath = [(*row[column_count:], _blind_line(entry.row))
                   for row, entry in zip(whole, table_entries, strict=True)]
        stacks = _columns([row[:column_count] for row in whole], COLUMNS[:column_count], beneath, width)
        if stacks is not None:
            return [line for stack in stacks for line in stack]
    return _by_api(table_entries, width)


def name_of(entry: TableEntry, short: bool = False) -> Line:
    """The name of an entry, and the number of equal rows; `short` leaves the wire format out."""
    first = Span(_short_name(entry.row) if short else entry.row.name, Tone.STRONG)
    return (first, Span(f" +{len(entry.equal_rows)}", Tone.DIM)) if entry.equal_rows else (first,)


def _columns(grid: Grid, names: Sequence[str], beneath: Grid, width: int) -> list[list[Line]] | None:
    """The heads of the columns, then each row with the lines below it; None if they do not fit."""
    heads: tuple[Line, ...] = tuple((Span(name, Tone.KEY),) for name in names)
    # The sentence of a silent row continues over the empty cells after it, so it widens no column.
    sizes = [max(width_of(row[column]) for row in [heads, *grid] if column != 1 or row[2])
             for column in range(len(names))]
    if sum(sizes) + GAP * (len(sizes) - 1) > width:
        return None
    return [[_row_line(heads, sizes, width)], *(
        [_row_line(row, sizes, width), *_lines_below(under, width)] for row, under in zip(grid, beneath, strict=True))]


def _lines_below(lines: Sequence[Line], width: int) -> list[Line]:
    return [piece for line in lines if line for piece in wrap_line((Span("    "), *line), width)]


def _row_line(row: Sequence[Line], sizes: Sequence[int], width: int) -> Line:
    spans: list[Span] = []
    for cell, size in zip(row, sizes, strict=True):
        spans += [*cell, Span(" " * max(GAP, size + GAP - width_of(cell)))]
    while spans and not spans[-1].text.strip():  # no white space at the end of a line of a text report
        spans.pop()
    return clip(tuple(spans), width)


NARROW_COLUMNS = ("  dialect", "raw word", "reason", "the call", "decision")


def _by_api(entries: Sequence[TableEntry], width: int) -> list[Line]:
    """The table with a heading for each API and one column for the reason; stacked if even that is too wide."""
    grid: Grid = []
    beneath: Grid = []
    for entry in entries:
        _, raw, _, _, rules, call, decision, differ = cells(entry.row)
        grid.append(((Span("  "), *name_of(entry, short=True)), raw, reason(entry.row), call, decision))
        beneath.append((_sign_line(entry.row, rules, differ), _blind_line(entry.row)))
    lines, *stacks = _columns(grid, NARROW_COLUMNS, beneath, width) or [
        [], *(_stack_row(row, under, width) for row, under in zip(grid, beneath, strict=True))]
    api = ""
    for entry, stack in zip(entries, stacks, strict=True):
        if entry.row.dialect.api != api:
            api = entry.row.dialect.api
            lines.append((Span(api, Tone.TITLE),))
        lines += stack
    return lines


def _stack_row(row: Sequence[Line], beneath: Sequence[Line], width: int) -> list[Line]:
    name, raw, way, call, decision = row
    below = [join_groups([way, call, decision])] if way else []
    return [*wrap_line((*name, Span("  "), *raw), width), *_lines_below([*below, *beneath], width)]


def reason(row: TableRow) -> Line:
    """The mapped reason and, if it differs, the effective one."""
    _, _, mapped, effective, *_ = cells(row)
    if isinstance(row, DialectRow) and row.judgement.mapped.normalized is not row.judgement.stop.normalized:
        return (*mapped, Span(" → ", Tone.DIM), *effective[:2])
    return effective


def _blind_line(row: TableRow) -> Line:
    return (Span("blind: ", Tone.ERROR), Span(row.blind)) if isinstance(row, DialectRow) and row.blind else ()


def _sign_line(row: TableRow, line: Line, differ: Line) -> Line:
    if not isinstance(row, DialectRow):
        return ()
    plain_word = deciding_rules(row) in ("stop reasons", "absent")
    groups = [] if plain_word else [(Span("seen by ", Tone.DIM), *line)]
    return join_groups([*groups, *([(Span("peers: ", Tone.DIM), *differ)] if differ else [])], "; ")


def equal_row_lines(rows: Sequence[TableRow]) -> list[Line]:
    """The groups of rows with equal values, by the first row of each group."""
    return [(Span(f"as {entry.row.name}: ", Tone.DIM), Span(", ".join(_short_name(row) for row in entry.equal_rows)))
            for entry in entries(rows) if entry.equal_rows]


def _short_name(row: TableRow) -> str:
    return row.name.partition("/")[2]


def heading(rows: Sequence[TableRow], policy: str) -> list[Line]:
    """The question, its result, and which libraries misread it."""
    if not rows:
        return [(Span("no dialect was asked for", Tone.WARN),)]
    play = rows[0].play
    title = f"the same answer under a budget of {play.budget:,} tokens (ESTIMATED, {CHARACTERS} characters each)"
    return [
        (Span(f"{play.scenario.name}: {play.scenario.title}", Tone.TITLE),),
        (Span(f"{title} in {count_of(len(rows), 'dialect')}"),),
        (Span("SIMULATED", Tone.WARN), Span("  made from a table of dialects; no request was sent", Tone.DIM)),
        *outcome(rows, policy),
    ]


def outcome(table_rows: Sequence[TableRow], policy: str) -> list[Line]:
    """The number of rows with each verdict, that of answers that only look finished, and who misreads them."""
    rows = [row for row in table_rows if isinstance(row, DialectRow)]
    lines: list[Line] = []
    if rows:
        decided = Counter(row.decision for row in rows)
        counts = " · ".join(f"{word} {count}" for word, count in decided.items())
        lines.append((Span(f"what a loop does (policy {policy}): ", Tone.KEY), Span(counts)))
    unfinished = [row for row in rows if row.play.moment not in COMPLETE]
    by_word = sum(row.judgement.mapped.normalized in FINISHED for row in unfinished)
    after = sum(row.judgement.stop.normalized in FINISHED for row in unfinished)
    if by_word:
        words = f"{by_word} by the provider's word, {after} after this program's check"
        said_so = Span(words, Tone.WARN if after else Tone.PLAIN)
        lines.append((Span("looks finished: ", Tone.KEY), said_so))
    deceived = Counter(peer.name for row in unfinished for peer in row.peers if peer.means in FINISHED)
    if deceived:
        counts = " · ".join(f"{PEER_VERSIONS[name]} ({count})" for name, count in deceived.items())
        lines.append((Span("treated as finished by: ", Tone.KEY), Span(counts)))
    return lines


# -- Columns of a list -----------------------------------------------------------------------------------------------

INDENT = "  "
ListEntry = str | TableEntry
"""A line of the list: the name of a wire format above its dialects, or a dialect."""


def peers(row: TableRow) -> Line:
    """The libraries that read the stop word differently, in short; those that take it for finished by name and mark."""
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
"""Each column, and the ranks of the lists that have it. Rank 0 is the narrowest list."""
RANKS = (3, 2, 1, 0)
"""The ranks of the lists, the widest first."""
LEAST = 8
"""The least width of a column of the list, in cells of the terminal."""


class ColumnLayout(NamedTuple):
    """The visible columns and their widths, without the name column."""

    columns: Sequence[Column[TableRow]]
    sizes: Sequence[int]
    names: int


def list_lines(entries: Sequence[TableEntry]) -> list[ListEntry]:
    """The lines of the list: entries grouped by wire format."""
    found: list[ListEntry] = []
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
        sizes[sizes.index(max(sizes))] -= 1  # one by one, so that the widest columns become equal
    return ColumnLayout(columns, sizes, names)


def titles(layout: ColumnLayout) -> Line:
    """The names of the columns."""
    heads = [f"{INDENT}dialect", *(column.key for column in layout.columns)]
    return side_by_side([(Span(head, Tone.KEY),) for head in heads], (layout.names, *layout.sizes))


def line(each: ListEntry, layout: ColumnLayout, measure: Measure = cells_of, mark: str = "…") -> Line:
    """One line of the list."""
    if isinstance(each, str):
        return (Span(each, Tone.TITLE),)
    head: Line = (Span(INDENT), *name_of(each, short=True))
    if not isinstance(each.row, DialectRow):
        return (*head, Span(" " * (layout.names + GAP - width_of(head, measure))), Span(each.row.why, Tone.DIM))
    row = [head, *(column.cell(each.row) for column in layout.columns)]
    return side_by_side(row, (layout.names, *layout.sizes), measure, mark)


def find(lines: Sequence[ListEntry], needle: str, start: int, by: int, again: bool) -> int | None:
    """The next line whose columns or name contain `needle`, wrapping around; None if none does."""
    wanted = needle.lower()
    for far in range(again, len(lines) + again):  # `again`: the current line is searched last
        at = (start + far * by) % len(lines)
        each = lines[at]
        if isinstance(each, TableEntry) and wanted in _search_text(each).lower():
            return at
    return None


def _search_text(entry: TableEntry) -> str:
    words = [text_of(cell) for cell in cells(entry.row)]
    return " ".join([*words, entry.row.dialect.title, *(like.name for like in entry.equal_rows)])


def place_of(lines: Sequence[ListEntry], dialect: str) -> int:
    """The line of a dialect; the first dialect's line if it has none."""
    entries = [(at, each) for at, each in enumerate(lines) if isinstance(each, TableEntry)]
    return next((at for at, each in entries if dialect in (each.row.name, *(like.name for like in each.equal_rows))),
                entries[0][0] if entries else 0)
