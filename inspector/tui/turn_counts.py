"""The counts above the table of turns: the progress of reading, the numbers of turns and rows, and the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from textual.reactive import reactive

from inspector.report.lines.glyphs import copies_left_out, simulated_beside
from inspector.report.lines.spans import Line, Span, Tone, count_of, join_groups, safe, width_of, wrap_line
from inspector.report.lines.steps import role_of
from inspector.report.table_rows import LARGE, PENDING, RowCounts, count_rows, count_unread
from inspector.report.turn_rows import TurnRow
from inspector.tui.panels import AutoHeightPanel
from inspector.tui.turn_list import AGENTS, SAMPLES, Section, TurnList

ROWS_PER_COUNT = 8
"""The number of screen rows for each row of counts; the counts take at least one row."""


class TurnCounts(AutoHeightPanel):
    """The progress of reading, the numbers of turns and rows, and the number of turns with each verdict."""

    SHOWS = ("groups",)
    groups: reactive[tuple[Sequence[Line], Sequence[Line]]] = reactive(((), ()), init=False, repaint=False)

    def make(self, width: int) -> Sequence[Line]:
        """The groups in the rows that there is room for; a group that fits into a row is not broken."""
        return flow_groups(*self.groups, width, max(1, self.app.size.height // ROWS_PER_COUNT))


def flow_groups(groups: Sequence[Line], verdicts: Sequence[Line], width: int, most: int) -> list[Line]:
    """Groups, then counts of verdicts, in at most `most` rows. Verdicts without room are replaced by their number, if
    that has room. A group that is longer than a row continues in the next, if all groups then have room."""
    wrapped = [piece for group in groups for piece in wrap_line(group, width)]
    tries = [[*whole, *verdicts[:count], *_left_out(len(verdicts) - count)]
             for whole in (wrapped, groups) for count in range(len(verdicts), -1, -1)]
    for shown in [*tries, *(groups[:count] for count in range(len(groups), 0, -1))]:
        rows: list[list[Line]] = [[]]
        for group in shown:
            if rows[-1] and width_of(join_groups([*rows[-1], group])) > width:
                rows.append([])
            rows[-1].append(group)
        if len(rows) <= most:
            return [join_groups(row) for row in rows]
    return [join_groups(groups)]


def _left_out(count: int) -> list[Line]:
    return [(Span(count_of(count, "more verdict"), Tone.DIM),)] if count else []


class TableCounts(NamedTuple):
    """The counts of a table: of the operator's rows, and of the samples of this program."""

    own: RowCounts
    samples: RowCounts

    @property
    def turns(self) -> int:
        """The number of all turns."""
        return sum(each.turns + each.simulated for each in self)


def attention_rows(turn_list: TurnList) -> tuple[Sequence[int], str]:
    """The indices of the listed rows that need attention, section by section, and what such a row is called. Samples
    are among them only if no row of the operator's needs attention, because the counts above the table leave them
    out."""
    samples, noun = _samples_of(turn_list), "session" if turn_list.by_file else "turn"
    found = [(turn_list.section_of.get(row.paths[0], 0), row.verdict.rank, at, row.paths[0] in samples)
             for at, row in enumerate(turn_list.entries)
             if isinstance(row, TurnRow) and row.verdict is not None and not row.verdict.clean]
    own = [each for each in found if not each[-1]]
    if not own and found:
        noun = "sample" if turn_list.by_file else "sample turn"
    return [at for _, _, at, _ in sorted(own or found)], noun


def _samples_of(turn_list: TurnList) -> set[str]:
    return {path for section in turn_list.sections if section.title == SAMPLES for path in section.paths}


def count_apart(turn_list: TurnList, rows: Iterable[TurnRow]) -> TableCounts:
    """Counts the rows of files that are read, with those of samples separately."""
    samples = _samples_of(turn_list)
    apart: tuple[list[TurnRow], list[TurnRow]] = ([], [])
    for row in rows:
        if row.why not in (PENDING, LARGE):
            apart[row.paths[0] in samples].append(row)
    return TableCounts(*map(count_rows, apart))


def count_groups(
    table: TableCounts, progress: str | None, turn_list: TurnList
) -> tuple[Sequence[Line], Sequence[Line]]:
    """The progress of reading and the counts of turns and rows, or of those that pass the filter; then the counts of
    verdicts. If the operator has sessions, samples are only a number."""
    groups: list[Line] = [(Span(progress, Tone.HERE),)] if progress is not None else []
    if groups and not turn_list.count and turn_list.filter is None:
        return groups, ()  # nothing to count yet
    has_own = bool(table.own.sessions or table.own.unread or not table.samples.sessions)
    counts = turn_list.listing.counts or (table.own if has_own else table.samples)
    if turn_list.filter is not None:
        groups.append((safe(f"filter {turn_list.filter.text}: {counts.passed_words(table.turns)}", Tone.MARK),))
    else:
        noun, samples = ("session", table.samples) if has_own else ("sample session", table.own)
        groups.append(_sum_of_rows(counts, samples, noun, turn_list))
    other = counts.turns - counts.attention - counts.complete
    groups.append((
        Span(f"{counts.attention:,}", Tone.STRONG), Span(f" need{'s' if counts.attention == 1 else ''} attention"),
        Span(f" + {counts.complete:,} complete{f' + {other:,} other' if other else ''}", Tone.DIM)))
    return groups, [(Span(f"{count:,} "), Span(f"{verdict.glyph} {verdict.count_word}", role_of(verdict)))
                    for verdict, count in counts.verdicts if not verdict.complete]


def _sum_of_rows(counts: RowCounts, samples: RowCounts, noun: str, turn_list: TurnList) -> Line:
    """The sum of the listed rows: `217 turns in 3 sessions + 4 not read + 28 turns of samples = 249 rows`. What was not
    read of a session's file has no row beside the session's: `3 sessions with 217 turns and 1 read in part`."""
    unread, by_file = Counter(counts.unread), turn_list.by_file
    apart = Counter(row.unread for row in turn_list.entries if isinstance(row, TurnRow) and row.verdict is None
                    and row.why not in (PENDING, LARGE)) if by_file else unread
    simulations = Span(simulated_beside(counts.simulated), Tone.WARN)
    turns, sessions = (*_count_line(counts.turns, "turn"), simulations), _count_line(counts.sessions, noun)
    copies = Span(copies_left_out(counts.copied), Tone.DIM)
    within = Span(count_unread(unread - apart, " and "), Tone.WARN)
    line = (*((*sessions, Span(" with "), *turns, within) if by_file else (*turns, Span(" in "), *sessions)), copies)
    more = samples.sessions if by_file else samples.turns
    words = count_of(more, "sample") if by_file else count_of(more, "turn of samples", "turns of samples")
    beside = (Span(f" + {words}", Tone.DIM),) if more else ()
    if not apart:
        return (*line, *beside)
    total = apart.total() + more + (counts.sessions if by_file else counts.turns + counts.simulated)
    rows = turn_list.count - len(turn_list.headings)
    equal = (Span(f" = {count_of(rows, 'row')}"),) if total == rows else ()  # a file that is being read is a row too
    return (*line, Span(count_unread(apart, " + "), Tone.WARN), *beside, *equal)


def _count_line(count: int, noun: str) -> Line:
    return (Span(f"{count:,}", Tone.STRONG), Span(f" {noun}{'' if count == 1 else 's'}"))


NO_AGENTS = "no agent sessions are in the usual folders · o opens a path"


def first_note(sections: Sequence[Section]) -> str:
    """What a table without a path says at first: where to go on, if no agent of this machine has a session."""
    return "" if any(section.title == AGENTS for section in sections) else NO_AGENTS
