"""Counts the rows of the table of turns, by kind and by verdict."""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from inspector.report.lines.spans import count_of
from inspector.report.turn_rows import TurnRow
from inspector.report.verdict import SKIPPED, TurnVerdict


class RowCounts(NamedTuple):
    """The number of rows of each kind."""

    turns: int
    """The number of recorded turns. Simulated turns are counted only in `simulated` and `verdicts`."""
    simulated: int
    sessions: int
    attention: int
    """The number of recorded turns whose verdict is an error or a warning."""
    complete: int
    unread: Mapping[str, int]
    """Kind of rows without a verdict (`TurnRow.unread`) -> the number of such rows."""
    copied: int
    """The number of turns that are left out as copies of turns of another file."""
    verdicts: Sequence[tuple[TurnVerdict, int]]
    """A verdict of each kind, worst first, with the number of turns that have it."""

    def passed_words(self, total: int) -> str:
        """The turns that pass a filter out of `total`, then the rows without a verdict that pass it."""
        return f"{self.turns + self.simulated:,} of {count_of(total, 'turn')}{self.unread_words}"

    @property
    def unread_words(self) -> str:
        """The number of rows of each kind without a verdict, such as ` + 4 not read`."""
        return "".join(f" + {_count_unread(what, count)}" for what, count in self.unread.items())


def _count_unread(what: str, count: int) -> str:
    # A row of skipped entries stands for one or more of them, which it counts itself.
    return f"{count_of(count, 'row')} of skipped entries" if what == SKIPPED else f"{count:,} {what.lower()}"


def count_rows(rows: Iterable[TurnRow]) -> RowCounts:
    """The counts of these rows."""
    every = list(rows)
    verdicts = [row.verdict for row in every if row.verdict is not None]
    recorded = [verdict for verdict in verdicts if not verdict.simulated]
    return RowCounts(
        len(recorded), len(verdicts) - len(recorded), len({row.session for row in every if row.verdict is not None}),
        sum(not verdict.clean for verdict in recorded), sum(verdict.complete for verdict in recorded),
        Counter(row.unread for row in every if row.verdict is None),
        sum({row.file: row.copied for row in every if row.copied}.values()), by_verdict(every))


def by_verdict(rows: Iterable[TurnRow]) -> list[tuple[TurnVerdict, int]]:
    """An example of each kind of verdict with its number of turns, worst first, simulated ones last."""
    first_verdicts: dict[tuple[bool, int], TurnVerdict] = {}
    counted: Counter[tuple[bool, int]] = Counter()
    for verdict in (row.verdict for row in rows if row.verdict is not None):
        kind = (verdict.simulated, verdict.rank)
        first_verdicts.setdefault(kind, verdict)
        counted[kind] += 1
    return [(first_verdicts[kind], counted[kind]) for kind in sorted(counted)]
