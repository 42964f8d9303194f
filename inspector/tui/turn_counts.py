"""The counts above the table of turns: how far reading is, how many turns and rows there are, and their verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from inspector.report.lines.glyphs import copies_left_out, simulated_beside
from inspector.report.lines.spans import Line, Span, Tone, count_of, join_groups, safe, width_of, wrap_line
from inspector.report.lines.steps import role_of
from inspector.report.row_counts import RowCounts
from inspector.tui.panels import AutoHeightPanel
from inspector.tui.turn_list import TurnList

ROWS_PER_COUNT = 8
"""The number of screen rows for each row of counts; the counts take at least one row."""


class TurnCounts(AutoHeightPanel):
    """The progress of reading, the numbers of turns and rows, and how many turns have each verdict."""

    SHOWS = ("groups",)
    groups: reactive[tuple[Sequence[Line], Sequence[Line]]] = reactive(((), ()), init=False, repaint=False)

    def make(self, width: int) -> Sequence[Line]:
        """The groups in the rows that there is room for; a group that fits into a row is not broken."""
        return flow_groups(*self.groups, width, max(1, self.app.size.height // ROWS_PER_COUNT))


def flow_groups(groups: Sequence[Line], verdicts: Sequence[Line], width: int, most: int) -> list[Line]:
    """Groups, then counts of verdicts, in at most this many rows; verdicts without room are counted if it has room. A
    group that is longer than a row goes on in the next, if all groups then have room."""
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


def count_groups(
    counts: RowCounts, progress: str | None, turns: int, listed: TurnList
) -> tuple[Sequence[Line], Sequence[Line]]:
    """The progress of reading, the counts of turns and rows or those that pass the filter; then of verdicts."""
    groups: list[Line] = [(Span(progress, Tone.HERE),)] if progress is not None else []
    if groups and not listed.count and listed.filter is None:
        return groups, ()  # nothing to count yet
    if listed.filter is not None:
        groups.append((safe(f"filter {listed.filter.text}: {counts.passed_words(turns)}", Tone.MARK),))
    else:
        groups.append(_sum_of_rows(counts, listed.count - len(listed.headings), listed.by_file))
    other = counts.turns - counts.attention - counts.complete
    groups.append((
        Span(f"{counts.attention:,}", Tone.STRONG), Span(f" need{'s' if counts.attention == 1 else ''} attention"),
        Span(f" + {counts.complete:,} complete{f' + {other:,} other' if other else ''}", Tone.DIM)))
    return groups, [(Span(f"{count:,} "), Span(f"{verdict.glyph} {verdict.count_word}", role_of(verdict)))
                    for verdict, count in counts.verdicts if not verdict.complete]


def _sum_of_rows(counts: RowCounts, rows: int, by_file: bool) -> Line:
    """The sum of the listed rows: `217 turns in 3 sessions + 4 not read = 221 rows`."""
    simulations = Span(simulated_beside(counts.simulated), Tone.WARN)
    turns, sessions = (*_count_line(counts.turns, "turn"), simulations), _count_line(counts.sessions, "session")
    copies = Span(copies_left_out(counts.copied), Tone.DIM)
    line = (*((*sessions, Span(" with "), *turns) if by_file else (*turns, Span(" in "), *sessions)), copies)
    if not counts.unread:
        return line
    listed = sum(counts.unread.values()) + (counts.sessions if by_file else counts.turns + counts.simulated)
    total = (Span(f" = {count_of(rows, 'row')}"),) if listed == rows else ()  # a file that is being read is a row too
    return (*line, Span(counts.unread_words, Tone.WARN), *total)


def _count_line(count: int, noun: str) -> Line:
    return (Span(f"{count:,}", Tone.STRONG), Span(f" {noun}{'' if count == 1 else 's'}"))
