"""The table of turns for screens, reports and CSV: its columns and widths, a row's details, rows by session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from inspector.report.filter_terms import noted_word
from inspector.report.lines.glyphs import SIMULATED, keyed
from inspector.report.lines.spans import Line, Measure, Span, Tone, cells, clip, one_line, safe, width_of
from inspector.report.lines.steps import role_of
from inspector.report.table import Column, Table
from inspector.report.table_rows import by_verdict
from inspector.report.turn_rows import SessionKey, TurnRow, name_of, names_of_files, short_file
from inspector.report.verdict import identifier
from inspector.sessions.copies import copies_in
from inspector.sessions.recording import BELOW


class TurnColumn(NamedTuple):
    """One column of the table of turns."""

    name: str
    column: Column[TurnRow]
    order: Callable[[TurnRow], Any]
    """The function that gives the sort key of a row; rows with None come last."""
    sizes: tuple[int, int, int]
    """The least, a comfortable and the largest useful width of the column, in cells."""
    right: bool = False
    length: Callable[[TurnRow], int] | None = None
    """The length of a row's cell, which the column need not exceed; None for titles and names."""

REASON = "raw → reason"
GAP = 1
NUMBER = 7


def _verdict(row: TurnRow) -> Line:
    if (verdict := row.verdict) is None:
        return (Span(f"∅ {row.unread}", Tone.DIM),)
    mark = (Span(SIMULATED, Tone.WARN),) if verdict.simulated else ()
    return (Span(f"{verdict.glyph} {verdict.word}", role_of(verdict)), *mark)


def _verdict_length(row: TurnRow) -> int:
    """The width of the verdict's cell, whose glyph and letters take one cell each."""
    word = row.unread if row.verdict is None else row.verdict.word
    return 2 + len(word) + (row.verdict is not None and row.verdict.simulated)


def _reason(row: TurnRow) -> Line:
    if row.verdict is None:
        return (safe(row.why, Tone.DIM),)
    raw = one_line(noted_word(row.agent, row.noted) or "absent" if row.raw is None else row.raw)
    if raw == row.effective:
        return (Span(raw, Tone.NORMALIZED),)
    arrow = Span(" → ", Tone.DIM)
    return (Span(raw, Tone.RAW), arrow, Span(row.effective, Tone.NORMALIZED))


def _tokens(row: TurnRow) -> str:
    spent = "?" if row.tokens is None else f"{row.tokens:,}"
    cap = "" if row.cap is None else f"{'>' if (row.tokens or 0) > row.cap else '/'}{row.cap:,}"
    return f"{spent}{cap}" if cap or row.tokens is not None else ""


def _name(row: TurnRow) -> str:
    if not row.depth:
        return row.name
    return f"{'  ' * (row.depth - 1)}└ {row.name.rpartition(BELOW)[2]}"


def _number(row: TurnRow) -> str:
    both = f"{row.number:,}/{row.of:,}" if row.of else ""
    # A number that is cut would be that of another turn.
    return both if both and len(both) <= NUMBER else f"{row.number:,}" if row.number else ""


def _turns_of(row: TurnRow) -> int:
    return sum(count for _, count in row.turns)


def _calls(row: TurnRow) -> str:
    held = f"{row.held} held" if row.held else ""
    if not row.ran:
        return held
    return f"{held}, but ran" if row.ran == row.held else f"{held}, {row.ran} ran"


def span_of_time(seconds: float | None) -> str:
    """A duration in two figures, such as `3.2s`, `4m` or `12d`; empty if unknown."""
    if seconds is None:
        return ""
    for size, unit in ((86_400 * 365, "y"), (86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    if 0 < seconds < 0.1:
        return "<0.1s"
    return f"{seconds:.1f}s" if seconds < 10 else f"{seconds:.0f}s"


def _text(key: str, value: Callable[[TurnRow], object], text_of: Callable[[TurnRow], str]) -> Column[TurnRow]:
    return Column(key, value, lambda row: (safe(text_of(row)),))


def columns(now: float) -> tuple[TurnColumn, ...]:
    """The columns of the table, the most important first; ages count back from `now`, in seconds since the epoch."""
    return (
        TurnColumn("verdict", Column("verdict", lambda row: row.verdict.id if row.verdict else identifier(row.unread),
                                     _verdict), lambda row: row.severe, (19, 19, 24),
                   length=_verdict_length),
        TurnColumn("session", _text("file", lambda row: row.file, _name),
                   lambda row: (row.name, row.file, row.number), (10, 23, 44)),
        TurnColumn(REASON, Column("reason", lambda row: row.effective or None, _reason),
                   lambda row: (row.effective, row.raw or row.noted) if row.verdict else None, (17, 23, 30)),
        TurnColumn("turn", _text("turn", lambda row: row.number or None, _number),
                   lambda row: row.number or None, (NUMBER, NUMBER, NUMBER), right=True,
                   length=lambda row: len(_number(row))),
        TurnColumn("tokens", _text("tokens", lambda row: row.tokens, _tokens),
                   lambda row: None if row.tokens is None else -row.tokens, (9, 11, 15), right=True,
                   length=lambda row: len(_tokens(row))),
        TurnColumn("calls", _text("held", lambda row: row.held, _calls), lambda row: -row.held or None, (15, 15, 15),
                   length=lambda row: len(_calls(row))),
        TurnColumn("model", _text("model", lambda row: row.model or None, lambda row: row.model),
                   lambda row: row.model or None, (14, 20, 26)),
        TurnColumn("age", _text("started", lambda row: row.started,
                                lambda row: span_of_time(None if row.started is None else max(0.0, now - row.started))),
                   lambda row: None if row.started is None else -row.started, (4, 4, 4), right=True),
        TurnColumn("agent", _text("agent", lambda row: row.agent or None, lambda row: row.agent),
                   lambda row: row.agent or None, (11, 11, 11), length=lambda row: len(row.agent)),
        TurnColumn("took", _text("duration_ms", lambda row: row.duration_ms, lambda row: span_of_time(
            None if row.duration_ms is None else row.duration_ms / 1000)),
                   lambda row: None if row.duration_ms is None else -row.duration_ms, (5, 5, 5), right=True),
        TurnColumn("what to change", _text("advice", lambda row: row.advice or None, lambda row: row.advice),
                   lambda row: row.advice or None, (20, 30, 60)),
        TurnColumn("message", _text("message", lambda row: row.title or None, lambda row: row.title),
                   lambda row: row.title or None, (20, 30, 200)),
    )


TURNS = TurnColumn("turns", _text("turns", _turns_of, lambda row: f"{_turns_of(row):,}" if row.turns else ""),
                   lambda row: -_turns_of(row) or None, (6, 6, 6), right=True)
"""The number of turns of a session, in place of the number of a turn."""


def for_sessions(every: Sequence[TurnColumn]) -> list[TurnColumn]:
    """The columns of a list of sessions: the agent comes after the session's name, and turns are counted."""
    others = [TURNS if column.name == "turn" else column for column in every if column.name != "agent"]
    return [*others[:2], *(column for column in every if column.name == "agent"), *others[2:]]


ESSENTIAL = ("verdict", "session", REASON)
"""The columns that are shown in any window but the narrowest, in which half a stop word would say nothing and the
session had no room; another column is added if all before it have a comfortable width."""


def widest_cells(every: Sequence[TurnColumn], rows: Sequence[TurnRow]) -> dict[str, int]:
    """The length of the widest cell of each column that has a `length`."""
    return {column.name: max(map(column.length, rows), default=0) for column in every if column.length is not None}


def layout(
    every: Sequence[TurnColumn], width: int, widest: Mapping[str, int] | None = None
) -> tuple[tuple[TurnColumn, int], ...]:
    """The columns that fit into this many cells, with their widths; the first flexible one gets the rest. A column in
    `widest` gets at most the width of its widest cell or heading, and is left out if all its cells are empty."""
    room = widest or {}
    every = [_narrow(column, room.get(column.name)) for column in every if room.get(column.name) != 0]
    if sum(column.sizes[0] + GAP for column in every if column.name in ESSENTIAL) - GAP > width:
        every = [column for column in every if column.name != REASON]
    shown_columns: list[TurnColumn] = []
    well = 0
    for at, column in enumerate(every):
        essential = [later for later in every[at + 1 :] if later.name in ESSENTIAL]
        needed = well + column.sizes[0] + sum(later.sizes[0] + GAP for later in essential)
        if column.name in ESSENTIAL or needed <= width:
            shown_columns.append(column)
            well += column.sizes[1] + GAP
        elif not essential:
            break
    left = width - sum(column.sizes[0] + GAP for column in shown_columns) + GAP
    sizes = [column.sizes[0] for column in shown_columns]
    # Titles get their largest width first, because few verdicts need theirs.
    # Two rounds: all columns grow to their comfortable width before any grows to its largest.
    for wanted, order in ((1, range(len(shown_columns))), (2, (*range(1, len(shown_columns)), 0))):
        for at in order:
            more = max(0, min(left, shown_columns[at].sizes[wanted] - sizes[at]))
            sizes[at] += more
            left -= more
    return tuple(zip(shown_columns, sizes, strict=True))


def _narrow(column: TurnColumn, widest: int | None) -> TurnColumn:
    if widest is None:
        return column
    needed = max(widest, len(column.name) + 1)  # 1: the mark of sorting
    least, well, most = (min(size, needed) for size in column.sizes)
    return column._replace(sizes=(least, well, most))


def sorted_rows(rows: Sequence[TurnRow], column: TurnColumn, reverse: bool = False) -> list[int]:
    """The rows in the order of a column, by index; rows without a value come last in either direction."""
    keys: list[Any] = [column.order(row) for row in rows]
    indices = [at for at, key in enumerate(keys) if key is not None]
    # Rows without a value are kept apart, because a reversed sort would put them first.
    indices.sort(key=keys.__getitem__, reverse=reverse)
    return [*indices, *(at for at, key in enumerate(keys) if key is None)]


def heading(columns: Sequence[tuple[TurnColumn, int]], by: str = "", reverse: bool = False) -> Line:
    """The names of the columns, with a mark at the sorted one."""
    spans: list[Span] = []
    for column, size in columns:
        name = f"{column.name}{('▴' if reverse else '▾') if column.name == by else ''}"[:size]
        spans.append(Span(f"{name:>{size}}" if column.right else f"{name:<{size}}",
                          Tone.HERE if column.name == by else Tone.KEY))
        spans.append(Span(" " * GAP))
    return tuple(spans[:-1])


def cells_of(row: TurnRow, columns: Sequence[tuple[TurnColumn, int]], measure: Measure = cells) -> Line:
    """The line of a row; for an unread input, the reason across all columns after its name."""
    spans: list[Span] = []
    for at, (column, size) in enumerate(columns):
        if row.verdict is None and column.name == REASON:
            size = sum(each for _, each in columns[at:]) + GAP * (len(columns) - at - 1)
        cell = _clip_cell(column.column.cell(row), size, measure)
        blank = Span(" " * (size - width_of(cell, measure)))
        spans += [blank, *cell] if column.right else [*cell, blank]
        spans.append(Span(" " * GAP))
        if row.verdict is None and column.name == REASON:
            break
    return tuple(spans[:-1])


def _clip_cell(cell: Line, size: int, measure: Measure) -> Line:
    """A cell cut to its size. Of two stop words, the provider's is cut first, to 4 cells, then the normalized one."""
    rest = cell[1:]
    room = size - width_of(rest, measure)
    if rest and room >= 4 and width_of(cell, measure) > size:
        return (*clip(cell[:1], room, measure), *rest)
    return clip(cell, size, measure)


def table(now: float) -> Table[TurnRow]:
    """The table for other programs: CSV and JSON."""
    return Table((*(each.column for each in columns(now)), Column("raw", lambda row: row.raw),
                  Column("cap", lambda row: row.cap), Column("ran", lambda row: row.ran),
                  Column("sentence", lambda row: row.verdict.sentence if row.verdict else row.why)))


FILE = TurnColumn("file", _text("file", lambda row: row.file, lambda row: row.file.rpartition("/")[2]),
                  lambda row: row.file, (16, 30, 40))
"""The column with the file's name, for reports, whose reader has to type the name. The app opens the row instead."""


def about(row: TurnRow) -> list[Line]:
    """The details of a row, one field per line: the verdict's sentence, the advice, the message, the place."""
    verdict = row.verdict
    if verdict is None:
        return [(safe(row.unread, Tone.WARN), Span("  "), safe(row.why)), (safe(row.file, Tone.DIM),)]
    lines: list[Line] = [(*_verdict(row), Span("  "), safe(verdict.sentence))]
    if row.advice:
        lines.append((Span("change   ", Tone.KEY), *keyed(row.advice, Tone.STRONG)))
    if row.turns:
        counted = " · ".join(f"{count:,} {word}" for word, count in row.turns)
        lines.append((Span("turns    ", Tone.KEY), Span(counted)))
    folder, _, name = row.file.rpartition("/")  # the name is shown even if the folder is long
    source = " · ".join(each for each in (row.model, row.agent, folder and f"{folder}/") if each)
    # The number comes first: the line may be cut, and the border shows the name of the file too.
    are = "turn of its file is a copy" if row.copied == 1 else "turns of its file are copies"
    copies = (f" ({row.copied:,} {are}, listed with {row.origin})" if row.copied else
              f" (every turn of its file is in {row.origin} too, and counts twice)" if row.origin else "")
    lines.append((Span("turn     ", Tone.KEY), Span(f"{row.number:,}{f' of {row.of:,}' if row.of else ''}"),
                  safe(copies), Span(" · ", Tone.DIM), safe(name), safe(f" · {source}" if source else "", Tone.DIM)))
    if row.title:
        lines.append((Span("message  ", Tone.KEY), safe(row.title)))
    return lines


def shared_names(rows: Iterable[TurnRow]) -> frozenset[str]:
    """The session names that occur in more than one file, such as those of copies."""
    files: dict[str, str] = {}
    return frozenset(row.name for row in rows if files.setdefault(row.name, row.file) != row.file)


def with_file(row: TurnRow) -> TurnRow:
    """A row with the file in its session's name; with the folder if the name is the file's."""
    if row.name == name_of(row.file):
        return row._replace(name="/".join(row.file.split("/")[-2:]))
    return row._replace(name=f"{short_file(row.file)} · {row.name}")


# -- Rows without copies ---------------------------------------------------------------------------------------------


def rows_once(rows: Iterable[TurnRow]) -> list[TurnRow]:
    """The rows without copied turns. A file's other rows hold the number of copies, or a file with the same turns."""
    every = list(rows)
    files: dict[str, list[TurnRow]] = {}
    for row in every:
        if row.keys:
            files.setdefault(row.file, []).append(row)
    gone: set[int] = set()
    notes: dict[str, tuple[int, str]] = {}
    keys = {file: [row.keys for row in group] for file, group in files.items()}
    copied_turns, whole_files = copies_in(keys)
    for file, copies in copied_turns.items():
        gone.update(id(files[file][number]) for number in copies)
        notes[file] = len(copies), names_of_files(copies.values())
    notes |= {file: (0, names_of_files(origins)) for file, origins in whole_files.items()}
    if not notes:
        return every
    return [row._replace(copied=notes[row.file][0], origin=notes[row.file][1]) if row.file in notes else row
            for row in every if id(row) not in gone]


# -- Rows by session, with subagents' sessions below the session that started them -----------------------------------


def by_session(rows: Iterable[TurnRow]) -> dict[SessionKey, list[TurnRow]]:
    """The rows of each session; unread parts of a file go with its first session."""
    every = list(rows)
    firsts: dict[tuple[str, ...], SessionKey] = {}
    for row in every:
        if row.verdict is not None:
            firsts.setdefault(row.paths, row.session)
    sessions: dict[SessionKey, list[TurnRow]] = {}
    for row in every:
        key = row.session if row.verdict is not None else firsts.get(row.paths, row.session)
        sessions.setdefault(key, []).append(row)
    return sessions


def worst_of_sessions(rows: Iterable[TurnRow]) -> list[TurnRow]:
    """The row of each session's worst turn, with the counts of the session's verdicts."""
    return [_worst(group) for group in by_session(rows).values()]


def _worst(group: Sequence[TurnRow]) -> TurnRow:
    worst = min(group, key=lambda row: row.severe)
    counted = tuple((verdict.count_word, count) for verdict, count in by_verdict(group))
    return worst._replace(turns=counted) if counted else worst


def has_families(rows: Iterable[TurnRow]) -> bool:
    """Whether any session may have been started by another."""
    return any(row.parent_id or BELOW in row.name for row in rows)


def in_families(sessions: Sequence[Sequence[TurnRow]]) -> list[TurnRow]:
    """A row for each session, below the session that started it; a family takes the place of its first session."""
    parents = _parents([rows[0] for rows in sessions])
    children: dict[int, list[int]] = {}
    for at, parent in enumerate(parents):
        if parent is not None:
            children.setdefault(parent, []).append(at)
    rows: list[TurnRow] = []
    done: set[int] = set()
    for first in range(len(sessions)):
        # A stack instead of recursion: sessions may start each other in long chains, and ids may form a ring.
        left = [(_root(parents, first), 0)]
        while left:
            at, depth = left.pop()
            if at not in done:
                done.add(at)
                rows += [row if row.depth == depth else row._replace(depth=depth) for row in sessions[at]]
                left += [(child, depth + 1) for child in reversed(children.get(at, ()))]
    return rows


def _parents(heads: Sequence[TurnRow]) -> list[int | None]:
    """The index of the session that started each: by its name, if a file has several sessions, else by its id."""
    ids = {(heads[at].agent, heads[at].session_id): at for at in reversed(range(len(heads))) if heads[at].session_id}
    names = {head.session: at for at, head in enumerate(heads)}
    return [names.get((head.paths, head.name.rpartition(BELOW)[0]), ids.get((head.agent, head.parent_id)))
            for head in heads]


def _root(parents: Sequence[int | None], at: int) -> int:
    """The first session of the chain that started a session; any session of it if the ids form a ring."""
    passed = {at}
    while (parent := parents[at]) is not None and parent not in passed:
        passed.add(parent)
        at = parent
    return at
