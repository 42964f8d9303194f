"""The report of `inspector check` (problems and turns by file, as plain values), and the merging of reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from inspector.report.lines.glyphs import copies_left_out, simulated_beside
from inspector.sessions.copies import copies_in, is_shortened, relation


class Problem(NamedTuple):
    """A problem that a rule found, with its place."""

    rule: str
    severity: str
    """`error`, `warning` or `info`."""
    message: str
    file: str
    turn: int
    """The number of the turn in its file, from 1."""
    record: int | None = None
    """The index of the file's entry with the response; None if the turn has no response. For a problem of the whole
    turn, the response that decided the verdict."""
    line: int | None = None
    """The first line of the file with the response, from 1; None if the file's entries are not lines."""
    start: int | None = None
    """The offset of the first byte that shows the problem, in the body of the response."""
    end: int | None = None
    pointer: str = ""
    """The JSON pointer to the value that shows the problem, in the body of the response."""
    model: str = ""
    agent: str = ""
    fingerprint: str = ""
    """A hash that identifies the problem; it does not change if the answer moves within its file or to another file."""


class TurnEnd(NamedTuple):
    """The end of a turn, for statistics."""

    turn: int
    """The number of the turn in its file, from 1."""
    verdict: str
    severity: str
    complete: bool
    model: str
    agent: str
    day: str
    """The date on which the turn began, in UTC, such as `2026-11-23`; empty if no time was recorded."""
    reason: str
    output: int
    """The output tokens of the turn's answers that have a token count."""
    uncounted: int
    """The number of answers without a token count."""
    simulated: bool
    """Whether the turn has a simulated answer, as of a stand-in."""

    @property
    def is_lost(self) -> bool:
        """Whether the answer of the turn was lost: cut, broken or empty, or with a held call or one that ran cut."""
        return self.severity == "error"


class FileProblems(NamedTuple):
    """The problems and turns of one file."""

    path: str
    every_problem: tuple[Problem, ...] = ()
    every_turn: tuple[TurnEnd, ...] = ()
    error: str = ""
    """Why the file, or a part of it, could not be read; empty if all of it was read."""
    unread: tuple[tuple[str, int], ...] = ()
    """The known formats that this program cannot read, each with the number of the file's exchanges in it."""
    keys: tuple[tuple[str, ...], ...] = ()
    """For each turn of the file, the keys of its answers, by which copies are found; empty if none are possible."""
    copies: frozenset[int] = frozenset()
    """The numbers of the turns that are copies of turns of other files in the report."""
    same_as: str = ""
    """The path of a file with the same bytes or the same steps, so that each turn of this file is a copy; empty if
    there is none."""

    @property
    def stands_in(self) -> str:
        """The path of the file whose turns count instead of those of this file; empty if this file's own count."""
        return "" if self.turns else self.same_as

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of all turns but copies."""
        return tuple(problem for problem in self.every_problem if problem.turn not in self.copies)

    @property
    def turns(self) -> tuple[TurnEnd, ...]:
        """All turns but copies."""
        return tuple(turn for turn in self.every_turn if turn.turn not in self.copies)


class Report(NamedTuple):
    """The problems and turns of several files, ordered by path."""

    files: tuple[FileProblems, ...] = ()
    skipped: int = 0
    """The number of files in the given folders that are not sessions."""
    spread: bool = False
    """Whether the report covers a single exchange of a logger, whose conversation may extend over several files."""

    @property
    def problems(self) -> list[Problem]:
        """The problems of all files."""
        return [problem for file in self.files for problem in file.problems]

    @property
    def turns(self) -> list[TurnEnd]:
        """The turns of all files."""
        return [turn for file in self.files for turn in file.turns]

    @property
    def recorded_turns(self) -> list[TurnEnd]:
        """The turns of all files that are counted: those that were not simulated."""
        return [turn for turn in self.turns if not turn.simulated]

    @property
    def simulated_count(self) -> int:
        """The number of turns of all files that were simulated."""
        return len(self.turns) - len(self.recorded_turns)

    @property
    def not_counted(self) -> str:
        """The words after the number of turns about those that are not in it; empty if it counts all."""
        return f"{simulated_beside(self.simulated_count)}{copies_left_out(self.copy_count)}"

    @property
    def copy_count(self) -> int:
        """The number of turns that are left out as copies of turns of other files."""
        return sum(len(file.every_turn) - len(file.turns) for file in self.files)

    @property
    def notices(self) -> list[str]:
        """The files that are left out, each with the file that counts instead."""
        return [f"{file.path}: {relation(file.path, file.stands_in)} {file.stands_in}, whose turns are checked"
                for file in self.files if file.stands_in]

    @property
    def unread(self) -> Counter[str]:
        """Name of a known format that cannot be read -> the number of exchanges in it."""
        return sum((Counter(dict(file.unread)) for file in self.files), Counter())

    @property
    def errors(self) -> list[str]:
        """The files that could not be read, with the reason."""
        return [file.error for file in self.files if file.error]

    def keep(self, predicate: Callable[[Problem], bool]) -> Report:
        """The report with only the wanted problems."""
        return self._replace(files=tuple(
            file._replace(every_problem=tuple(filter(predicate, file.every_problem))) for file in self.files))


def merge(reports: Iterable[Report]) -> Report:
    """Merges reports. If a file is in several of them, its first result is used. Turns that were copied from one file
    to another, as into that of a resumed session, are left out of the copy.

    A file that equals another is left out only if that one is among the results, because on another machine its path
    may be that of another file.
    """
    found: dict[str, FileProblems] = {}
    skipped = 0
    for report in reports:
        skipped += report.skipped
        for file in report.files:
            found.setdefault(file.path, file)
    equal = {path for path, file in found.items()
             if file.same_as in found and (found[file.same_as].every_turn == file.every_turn
                                           or is_shortened(path, file.same_as))}
    copies = copies_in({path: file.keys for path, file in found.items() if path not in equal}).turns
    return Report(tuple(
        file._replace(copies=frozenset(turn.turn for turn in file.every_turn) if path in equal else
                      frozenset(place + 1 for place in copies.get(path, ())))
        for path, file in sorted(found.items())), skipped)
