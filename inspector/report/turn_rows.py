"""A turn as one row: its verdict, place, stop reason, cost, and the values that filters test.

A row outlives the session that it was made from: a table of many files keeps rows alone, and reads a file again when
one of its turns is opened. A file that could not be read, and what was skipped in one, is a row as well.

Further down: what a filter may ask of a row, and how many turns have which verdict and model.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from inspector.report.facts import TurnFacts, View
from inspector.report.filter_terms import FLAGS, NUMBERS, WORDS, StepContext, searched_text
from inspector.report.filters import Filter, FilterError, parse
from inspector.report.findings import RAN
from inspector.report.lines.spans import one_line
from inspector.report.times_and_costs import ClockSource, TurnTimes, moment, turn_times
from inspector.report.verdict import ROWS, TurnVerdict
from inspector.sessions.reasons import recorder_word
from inspector.sessions.recording import Input, SessionAbout, is_below_file
from loop_core.judge.gate import Admission

LONG_NUMBER = 16
"""A file's name of so many characters that are nearly all hexadecimal digits is a number, which nobody remembers."""
SHORT = 8
"""Characters of such a number that are shown."""
NAME = 60
"""Characters of a first message that name a session."""
TITLE = 400
"""Characters of a turn's first message that its row keeps."""


SessionKey = tuple[tuple[str, ...], str]
Shared = TypeVar("Shared", tuple[str, ...], frozenset[str])


class AnswerRecord(NamedTuple):
    """The values that filters test of one answer, as of reading the session."""

    words: tuple[tuple[str, ...], ...]
    """The values of each row of `WORDS`, in their order; of a step's words, those of all steps of the answer."""
    flags: frozenset[str]
    numbers: tuple[float | None, ...]
    """The value of each row of `NUMBERS`, in their order, at the answer's last step."""
    shares: tuple[float | None, ...]
    texts: Mapping[str, str]
    """By the letter of their row of `PATTERNS`."""


class TurnRow(NamedTuple):
    """One turn; without a verdict, an unread input and the reason."""

    paths: tuple[str, ...]
    """The files that are opened together to see it."""
    file: str
    """The one that it was read from."""
    name: str = ""
    """What its session is called."""
    number: int = 0
    """Its place among the turns of its session, from 1."""
    of: int = 0
    """How many turns the session has."""
    step: int = 0
    """The step that its verdict is about."""
    verdict: TurnVerdict | None = None
    why: str = ""
    """Why it was not read, where there is no verdict."""
    agent: str = ""
    model: str = ""
    raw: str | None = None
    """The provider's word."""
    effective: str = ""
    cap: int | None = None
    tokens: int | None = None
    held: int = 0
    ran: int = 0
    """Calls that the recorded agent ran although they were held."""
    duration_ms: float | None = None
    started: float | None = None
    """Seconds since the epoch; None if that was not recorded."""
    title: str = ""
    """How the user's message begins."""
    text: str = ""
    """What a search looks through, in lower case: the message, the answer, its calls, every word."""
    answers: tuple[AnswerRecord, ...] = ()
    noted: str = ""
    """The agent's own word for the end, where it wrote one in place of the provider's."""
    turns: tuple[tuple[str, int], ...] = ()
    """Where it stands for a whole session: how many of its turns have which verdict, worst first."""
    session_id: str = ""
    """By which the files of other sessions name its session."""
    parent_id: str = ""
    """The id of the session that began its session."""
    depth: int = 0
    """In a list of sessions: how many of those above it began each other, and it."""

    @property
    def session(self) -> SessionKey:
        """The identity of its session: the files, and its name in a file of many; None for an unread input."""
        return self.paths, self.name if self.verdict is not None and len(self.paths) == 1 else ""

    @property
    def advice(self) -> str:
        """The advice; empty if there is none."""
        return self.verdict.advice.text if self.verdict is not None and self.verdict.advice is not None else ""

    @property
    def severe(self) -> tuple[int, int, str, int]:
        """The sort key for worst first, then the order of reading; unread files come last."""
        rank = self.verdict.rank if self.verdict is not None else len(ROWS)
        return (rank, 0 if self.of else 1, self.file, self.number)


def rows_of(view: View, paths: Sequence[str] = ()) -> list[TurnRow]:
    """The rows of a recording: its turns, and its unread parts.

    `paths` are the files of one session; without them, each file of the view is a session of its own.
    """
    firsts: dict[str, str] = {}
    for turn in view.turns:
        firsts.setdefault(view.path_of(turn), turn.run.record.user_text)
    turns = [_row(view, turn, number, tuple(paths), firsts) for number, turn in enumerate(view.turns, start=1)]
    unread = (row for given in view.inputs for row in unread_rows(given, tuple(paths) or (given.path,)))
    return [*turns, *unread]


def unread_rows(source: Input, paths: tuple[str, ...]) -> Iterator[TurnRow]:
    """The unread parts of a file: all of it, or entries that were skipped, each reason once."""
    if source.error is not None:
        yield TurnRow(paths, source.path, name_of(source.path), why=source.error.removeprefix(f"{source.path}: "))
    elif not source.responses and source.format != "folder" and not source.skipped:
        why = next(iter(source.notices), "no answer of a model in it")
        yield TurnRow(paths, source.path, name_of(source.path), why=why.removeprefix(f"{source.path}: "))
    for why, count in Counter(entry.why for entry in source.skipped).items():
        name, _, reason = why.partition(": ")
        if (source.format == "folder" and os.path.isabs(name)) or os.path.exists(name):
            yield TurnRow(paths, name, name_of(name), why=reason)
        else:
            yield TurnRow(paths, source.path, name_of(source.path),
                          why=f"{count:,} {'entry' if count == 1 else 'entries'} skipped: {why}")


def _row(
    view: View, turn: TurnFacts, number: int, paths: tuple[str, ...], firsts: Mapping[str, str]
) -> TurnRow:
    step = view.deciding_step(turn)
    answers = [view.responses[index] for index in turn.responses]
    index = view.steps[step].response
    facts = view.responses[index] if index is not None else answers[-1]
    exchange, stop, request = facts.exchange, facts.judgement.stop, facts.exchange.request
    usage = exchange.response.usage
    times = turn_times(view, turn) or TurnTimes(ClockSource.WIRE)
    start = moment(times.started)
    message = turn.run.record.user_text
    verdict = turn.verdict
    file = name_of(exchange.path, view.inputs, firsts.get(exchange.path, ""))
    name = f"{file} {exchange.session}" if is_below_file(exchange.session) else exchange.session or file
    about = next((given.about for given in view.inputs if given.path == exchange.path and given.about), SessionAbout())
    model = exchange.model or ""
    text = searched_text(turn, answers, turn.joined_text.text, (name, exchange.path))
    return TurnRow(
        paths or (exchange.path,), exchange.path, name, number, len(view.turns), step, verdict,
        agent=facts.agent, model=model, raw=stop.raw, effective=stop.normalized.value,
        noted=recorder_word(stop) or "",
        cap=request.max_tokens if request else None, tokens=usage.output_tokens if usage else None,
        held=sum(verdict.admission is Admission.HELD for each in answers for verdict in each.verdicts),
        ran=sum(noted.finding.rule in RAN for noted in turn.findings),
        duration_ms=times.answers_ms if times.duration_ms is None else times.duration_ms,
        started=None if start is None else start / 1e9,
        title=one_line(message, TITLE), text=text, answers=tuple(_records(view, turn)),
        session_id=about.id, parent_id=about.parent,
    )


_NAMELESS = re.compile(r"(?:rollout-|session-\d|\d{4}-?\d\d)|(?:events|wire|state|messages|transcript|chat_history)$")
"""Begins, or is, a file's name that agents give to every session."""


def name_of(path: str, inputs: Sequence[Input] = (), first: str = "") -> str:
    """The name of a session: its title, else its file; if that is a number, with its folder.

    A file whose name every session of its agent has is called by its first message, where that is given.
    """
    abouts = (given.about for given in inputs if given.path == path)
    title = next((each.title for each in abouts if each is not None and each.title), "")
    stem = os.path.basename(path).split(".")[0] or path
    if not title and first.strip() and _NAMELESS.match(stem):
        return one_line(first.strip(), NAME)
    if title or not is_number(stem):
        return title or stem
    folder = os.path.basename(os.path.dirname(path)).strip("-")
    return f"{stem[:SHORT]} {folder[-24:]}"


def is_number(stem: str) -> bool:
    """Whether the name of a file is a long number, which says nothing to a reader."""
    return len(stem) >= LONG_NUMBER and len(re.sub(r"[^0-9a-fA-F]", "", stem)) * 4 >= len(stem) * 3


def short_file(path: str) -> str:
    """A short name that distinguishes a file: its own, or its folder where every session has that file name."""
    stem = os.path.basename(path).split(".")[0] or path
    nameless = _NAMELESS.match(stem)
    if nameless and nameless.end() == len(stem):  # events, wire, context…
        stem = os.path.basename(os.path.dirname(path)) or stem
    elif nameless and len(stem) >= LONG_NUMBER:  # a date and a number
        return stem[-SHORT:]
    return stem[:SHORT] if is_number(stem) else stem


# -- What a filter asks of a row -------------------------------------------------------------------------------------

NUMBER_AT = {name: at for at, name in enumerate(NUMBERS)}
WORD_AT = {name: at for at, name in enumerate(WORDS)}
TEXTS = ("t", "r", "a")
"""The texts that a row keeps; others are looked through in a session."""


@lru_cache(maxsize=65_536)
def _same(values: Shared) -> Shared:
    """One value for all answers that have the same: most words and flags of most answers are the same few."""
    return values


def _records(view: View, turn: TurnFacts) -> Iterator[AnswerRecord]:
    """What is kept of each answer that our machine took in; the steps before one belong to it."""
    groups: dict[int, list[StepContext]] = {}
    before: list[StepContext] = []
    for step in range(turn.run.first, turn.run.end):
        place = StepContext(view, step)
        before.append(place)
        if place.answer is not None:
            groups.setdefault(place.answer, []).extend(before)
            before = []
    for places in groups.values():
        last = places[-1]
        words = tuple(
            _same(tuple(dict.fromkeys(last.words(name) if row.of_response is not None else
                                      (word for place in places for word in place.words(name)))))
            for name, row in WORDS.items())
        flags = _same(frozenset(name for name, row in FLAGS.items() if any(
            place.flag(name) for place in (places if row.of_response is None else places[-1:]))))
        numbers = tuple(last.number(name, share=False) for name in NUMBERS)
        shares = tuple(last.number(name, share=True) for name in NUMBERS)
        yield AnswerRecord(words, flags, numbers, shares, {name: last.text(name) for name in TEXTS})


class RowAnswer(NamedTuple):
    """One answer of a row, as a filter tests it."""

    row: TurnRow
    answer: int
    """Its index."""
    source: None = None
    """No other place shares its answer."""

    def words(self, name: str) -> Iterable[str]:
        """The values of a row of `WORDS`."""
        return (self.row.name,) if name == "session" else self.row.answers[self.answer].words[WORD_AT[name]]

    def flag(self, name: str) -> bool:
        """Whether a flag of `FLAGS` holds."""
        return name in self.row.answers[self.answer].flags

    def number(self, name: str, share: bool) -> float | None:
        """The value of a row of `NUMBERS`, or its percentage of the limit."""
        record = self.row.answers[self.answer]
        return (record.shares if share else record.numbers)[NUMBER_AT[name]]

    def text(self, name: str) -> str:
        """The text of a row of `PATTERNS`; empty if rows do not store it."""
        return self.row.answers[self.answer].texts.get(name, "")

    def searched(self) -> str:
        """The text of the row in which a search looks."""
        return self.row.text


def matches(test: Callable[[RowAnswer], bool], row: TurnRow) -> bool:
    """Whether any answer of a row passes a filter; an unread file never does."""
    return any(test(RowAnswer(row, index)) for index in range(len(row.answers)))


def values_of_rows(rows: Iterable[TurnRow]) -> Iterator[tuple[str, str]]:
    """The terms and the values that occur in rows."""
    for row in rows:
        yield "session", row.name
        for answer in row.answers:
            yield from ((name, value) for name, values in zip(WORDS, answer.words, strict=True) for value in values)


def row_filter(text: str) -> Filter:
    """Parses a filter expression for rows.

    Raises:
        FilterError: it cannot be read, or looks into a text that rows do not keep.
    """
    found = parse(text)
    for term in found.patterns:
        if term not in TEXTS:
            raise FilterError(1, f"~{term} looks into what the table does not keep: open a session, and filter there")
    return found


def holds(row: TurnRow, needle: str) -> bool:
    """Whether a row contains a text, given in lower case."""
    return needle in row.text or (row.verdict is None and needle in f"{row.name}\n{row.file}\n{row.why}".casefold())


# -- What is said of many turns --------------------------------------------------------------------------------------


class RowCounts(NamedTuple):
    """The number of rows of each kind."""

    turns: int
    sessions: int
    attention: int
    """Turns whose verdict is an error or a warning."""
    complete: int
    unread: int
    verdicts: Sequence[tuple[TurnVerdict, int]]
    """How many turns have each verdict, worst first; with each, one of them."""


def counts_of(rows: Iterable[TurnRow]) -> RowCounts:
    """Counts rows."""
    every = list(rows)
    verdicts = by_verdict(every)
    return RowCounts(
        sum(count for _, count in verdicts), len({row.session for row in every if row.verdict is not None}),
        sum(count for seen, count in verdicts if not seen.clean),
        sum(row.verdict.complete for row in every if row.verdict is not None),
        sum(row.verdict is None for row in every), verdicts)


def by_verdict(rows: Iterable[TurnRow]) -> list[tuple[TurnVerdict, int]]:
    """How many turns have each verdict, worst first; each with one of them."""
    seen: dict[int, TurnVerdict] = {}
    counted: Counter[int] = Counter()
    for row in rows:
        if row.verdict is not None:
            seen.setdefault(row.verdict.rank, row.verdict)
            counted[row.verdict.rank] += 1
    return [(seen[rank], counted[rank]) for rank in sorted(counted)]


def by_model(rows: Iterable[TurnRow]) -> list[tuple[str, int, int]]:
    """How many turns each model answered and how many of those need attention; the most frequent first."""
    turns: Counter[str] = Counter()
    attention: Counter[str] = Counter()
    for row in rows:
        if row.verdict is not None:
            turns[row.model or "model not recorded"] += 1
            attention[row.model or "model not recorded"] += not row.verdict.clean
    return [(model, count, attention[model]) for model, count in turns.most_common()]
