"""Makes a row of each turn: its verdict, place, stop reason, cost, and the values that filters test.

A table of many files keeps only rows, without the sessions they were made from, and reads a file again when one of its
turns is opened. A file that could not be read, or an entry that was skipped, is a row too.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from inspector.report.facts import TurnFacts, View
from inspector.report.filter_terms import FLAGS, NUMBERS, PATTERNS, WORDS, StepContext, folded_text, searched_text
from inspector.report.filters import Filter, FilterError, parse_typed
from inspector.report.findings import RAN
from inspector.report.lines.spans import one_line
from inspector.report.times_and_costs import ClockSource, TurnTimes, turn_times
from inspector.report.verdict import IN_PART, NOT_READ, ROWS, SAME, SKIPPED, TurnVerdict, identifier
from inspector.sessions import NO_ANSWER
from inspector.sessions.copies import files_by_session, may_copy, stored_keys
from inspector.sessions.file_format import entry_word
from inspector.sessions.intake import note_judged
from inspector.sessions.reasons import recorder_word
from inspector.sessions.recording import Input, SessionAbout, is_below_file
from inspector.sessions.traffic import moment
from loop_core.judge.gate import Admission
from loop_core.values import shared

LONG_NUMBER = 16
"""The length from which a file name of mostly hexadecimal digits counts as a number without meaning to a reader."""
NUMBER_CHARS = 8
"""The number of characters of a long number that are shown."""
NAME_CHARS = 60
"""The largest length of a session name that is taken from the first message."""
TITLE_CHARS = 400
"""The number of characters of a turn's first message that its row stores."""

SessionKey = tuple[tuple[str, ...], str]


class SharedValues(NamedTuple):
    """The filter values that many answers have in common. Equal values share one object."""

    words: tuple[tuple[str, ...], ...]
    """The values of each row of `WORDS`, in the order of the table; for words about a step, the values at all steps of
    the answer. Empty for words in the turn's row (`OF_ROW`)."""
    flags: frozenset[str]
    numbers: tuple[float | None, ...]
    """The values of `NUMBERS` at the answer's last step, except those in `AnswerRecord` or `TurnRow`."""
    shares: tuple[float | None, ...]
    """The value of each row of `SHARES` at the answer's last step, as a percentage of the limit."""


class AnswerRecord(NamedTuple):
    """The filter values of one answer. The members after `shared` have the names of rows in `NUMBERS` (at the answer's
    last step) or `PATTERNS`."""

    shared: SharedValues
    turn_tokens: float | None
    chars: float | None
    step: float | None
    out: float | None
    size: float | None
    took: float | None
    t: str
    r: str
    a: str


class TurnRow(NamedTuple):
    """One turn as a row of the table; a row without a verdict is an unread input."""

    paths: tuple[str, ...]
    """The files that are opened together to show the turn."""
    file: str
    name: str = ""
    number: int = 0
    """The number of the turn in its session, from 1."""
    of: int = 0
    step: int = 0
    verdict: TurnVerdict | None = None
    why: str = ""
    """Why the input was not read, if there is no verdict."""
    unread: str = NOT_READ
    agent: str = ""
    model: str = ""
    conversation: str = ""
    raw: str | None = None
    effective: str = ""
    cap: int | None = None
    tokens: int | None = None
    held: int = 0
    ran: int = 0
    """The number of held calls that the recorded agent ran."""
    duration_ms: float | None = None
    started: float | None = None
    """The start of the turn in seconds since the epoch; None if it was not recorded."""
    title: str = ""
    contents: tuple[str, ...] = ()
    """The searched content: the message, the answer, the arguments of its calls. A session holds the same texts."""
    names: str = ""
    """The searched names and words about the turn, in lower case. Turns with equal names share one object."""
    answers: tuple[AnswerRecord, ...] = ()
    noted: str = ""
    """The agent's word for the end of the turn, if the agent wrote one in place of the provider's."""
    turns: tuple[tuple[str, int], ...] = ()
    """For the row of a whole session: each verdict of its turns with the number of turns, worst first."""
    session_id: str = ""
    """The id by which the files of other sessions refer to this session."""
    parent_id: str = ""
    """The id of the session that started this session."""
    keys: tuple[str, ...] = ()
    """The keys of the turn's answers; copies of the turn in other files have the same keys."""
    copied: int = 0
    """The number of turns of the file that are left out as copies."""
    origin: str = ""
    """The files that have the copied turns; if no turn is left out, a file that has every turn of this one too."""
    depth: int = 0
    """In a list of sessions: the length of the chain of sessions that started this one."""

    @property
    def session(self) -> SessionKey:
        """The turn's session: its files, and its name if a single file may hold several; without a name if unread."""
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


def rows_of(view: View, paths: Sequence[str] = (), first: Sequence[TurnRow] = ()) -> list[TurnRow]:
    """The rows of a recording: its turns and unread parts. Without `paths`, the files of each session are found.
    `first` are the rows of the first turns, if they are known."""
    file_at, of = files_of(view, paths), len(view.turns)  # one number for all rows
    turns = [_row(view, turn, number, of, file_at) for number, turn in enumerate(view.turns, 1) if number > len(first)]
    unread = (row for input_file in view.inputs for row in unread_rows(input_file, tuple(paths) or (input_file.path,)))
    return [*first, *turns, *unread]


def unread_rows(source: Input, paths: tuple[str, ...]) -> Iterator[TurnRow]:
    """The unread parts of a file: the whole file, or its skipped entries, one row for each reason."""
    if source.same_as:
        yield unread_row(paths, source.path, source.statements[0].text, SAME)
    elif source.error is not None:
        yield unread_row(paths, source.path, source.error.removeprefix(f"{source.path}: "),
                         IN_PART if source.responses else NOT_READ)
    elif not source.responses and source.format != "folder" and not source.skipped:
        # The reason comes first, then notices about what else the file is, or how much of it was read.
        why = " · ".join(dict.fromkeys((NO_ANSWER, *(notice.text for notice in source.statements))))
        yield unread_row(paths, source.path, why)
    for why, count in Counter(entry.why for entry in source.skipped).items():
        name, _, reason = why.partition(": ")
        # A folder's entries are its files, including broken links.
        if (source.format == "folder" and name.startswith(source.path)) or os.path.exists(name):
            yield unread_row(paths, name, reason)
        else:
            skipped = f"{count:,} {entry_word(source.format, count > 1)} skipped: {why}"
            yield unread_row(paths, source.path, skipped, SKIPPED)


def unread_row(paths: tuple[str, ...], file: str, why: str, unread: str = NOT_READ) -> TurnRow:
    """The row of a file, or of a part of it, without a verdict; a filter searches the words that it prints."""
    words = {"verdict": (unread, identifier(unread)), "file": (file,)}
    values = SharedValues(tuple(words.get(name, ()) for name in WORDS), frozenset(), (None,) * len(_NUMBER_AT),
                          (None,) * len(SHARES))
    record = AnswerRecord._make((values, *(None,) * len(_OWN_NUMBERS), *("",) * len(TEXTS)))
    return TurnRow(paths, file, name := name_of(file), why=why, unread=unread, contents=(why,),
                   names=f"{name}\n{file}\n{unread}".casefold(), answers=(record,))


class _File(NamedTuple):
    """The values that all rows of one file share."""

    paths: tuple[str, ...]
    name: str
    about: SessionAbout
    may_copy: bool
    copies: Sequence[str]
    """The paths of the files that have the turns left out here as copies."""


def files_of(view: View, paths: Sequence[str]) -> Callable[[str], _File]:
    """Finds the values that all rows of a file share, by its path."""
    files = {} if paths else files_by_session(view.inputs)
    firsts = {view.path_of(turn): turn.run.record.user_text for turn in reversed(view.turns)}

    def file_at(path: str) -> _File:
        sources = [input_file for input_file in view.inputs if input_file.path == path]
        about = next((source.about for source in sources if source.about), SessionAbout())
        return _File(tuple(paths) or files[path], name_of(path, about.title, firsts.get(path, "")), about,
                     any(map(may_copy, sources)), [origin for source in sources for origin in source.copies.values()])

    return cache(file_at)


def names_of_files(paths: Iterable[str]) -> str:
    """The names of files in words, each once."""
    return " and ".join(dict.fromkeys(path.rpartition("/")[2] for path in paths))


def _row(view: View, turn: TurnFacts, number: int, of: int, file_at: Callable[[str], _File]) -> TurnRow:
    note_judged((1 + number / of) / 2)
    step = view.deciding_step(turn)
    answers = [view.responses[index] for index in turn.responses]
    index = view.steps[step].response
    facts = view.responses[index] if index is not None else answers[-1]
    exchange, stop = facts.exchange, facts.judgement.stop
    usage, times = exchange.response.usage, turn_times(view, turn) or TurnTimes(ClockSource.WIRE)
    start = moment(times.started)
    message, verdict = turn.run.record.user_text, turn.verdict
    file = file_at(exchange.path)
    name = f"{file.name} {exchange.session}" if is_below_file(exchange.session) else exchange.session or file.name
    contents, names = searched_text(turn, answers, turn.text, (name, exchange.path))
    title = one_line(message, TITLE_CHARS)
    return TurnRow(
        file.paths, exchange.path, name, number, of, step, verdict,
        agent=facts.agent, model=exchange.model or "", conversation=turn.conversation, raw=stop.raw,
        effective=stop.normalized.value, noted=recorder_word(stop) or "", contents=contents, names=shared(names),
        cap=exchange.cap, tokens=usage.output_tokens if usage else None,
        held=sum(verdict.admission is Admission.HELD for each in answers for verdict in each.verdicts),
        ran=sum(note.finding.rule in RAN for note in turn.findings),
        duration_ms=times.answers_ms if times.duration_ms is None else times.duration_ms,
        started=None if start is None else start / 1e9,
        title=message if message == title else title,  # the message is stored already
        answers=tuple(_records(view, turn)), session_id=file.about.id, parent_id=file.about.parent,
        keys=stored_keys(each.exchange for each in answers) if file.may_copy else (),
        copied=len(file.copies), origin=names_of_files(file.copies),
    )


# Codex names every file `rollout-DATE-ID`, others `events`, `wire` or `messages` in a folder per session; such a name
# does not tell sessions apart.
_NAMELESS = re.compile(r"(?:rollout-|session-\d|\d{4}-?\d\d)|(?:events|wire|state|messages|transcript|chat_history)$")
"""Matches file names, or beginnings of file names, that an agent gives to every session."""
_OWN_LIVE = re.compile(r"\d{8}-(\d\d)(\d\d)(\d\d)-\d{6}-")
"""Matches the names that this program gives to recordings of its live turns, which differ only in the time."""


def name_of(path: str, title: str = "", first: str = "") -> str:
    """The name of a session: its title, else the name of its file, with the folder if that is a number. If the agent
    gives all sessions the same file name, the name is the first message, if given."""
    stem = os.path.basename(path).split(".")[0] or path
    if not title and first.strip() and _NAMELESS.match(stem):
        return one_line(first.strip(), NAME_CHARS)
    if title or not is_number(stem):
        return title or stem
    # Claude Code's folder is the project's path with dashes for slashes, so it ends with the project's name.
    folder = os.path.basename(os.path.dirname(path)).strip("-")
    return f"{stem[:NUMBER_CHARS]} {folder[-24:]}"


def is_number(stem: str) -> bool:
    """Whether the name of a file is a long hexadecimal number, which has no meaning to a reader."""
    return len(stem) >= LONG_NUMBER and len(re.sub(r"[^0-9a-fA-F]", "", stem)) * 4 >= len(stem) * 3


def short_file(path: str) -> str:
    """A short name that identifies a file: its own, its folder's if all files have the same name, or a time in it."""
    stem = os.path.basename(path).split(".")[0] or path
    if own := _OWN_LIVE.match(stem):
        return ":".join(own.groups())
    nameless = _NAMELESS.match(stem)
    if nameless and nameless.end() == len(stem):  # events, wire, context…
        stem = os.path.basename(os.path.dirname(path)) or stem
    elif nameless and len(stem) >= LONG_NUMBER:  # a date and a number
        return stem[-NUMBER_CHARS:]
    return stem[:NUMBER_CHARS] if is_number(stem) else stem


# -- Testing a row with a filter -------------------------------------------------------------------------------------

NUMBERS_OF_ROW: Mapping[str, Callable[[TurnRow], float | None]] = {
    "turn": lambda row: row.number or None,
    "age": lambda row: None if row.started is None else 1_000 * (time.time() - row.started),
}
_NUMBER_AT = {name: at for at, name in enumerate(
    name for name in NUMBERS if name not in NUMBERS_OF_ROW and name not in AnswerRecord._fields)}
SHARES = tuple(name for name, row in NUMBERS.items() if row.share not in (None, row.value))
"""The names of the rows of `NUMBERS` whose share of a limit differs from the number."""
_SHARE_AT = {name: at for at, name in enumerate(SHARES)}
_WORD_AT = {name: at for at, name in enumerate(WORDS)}
OF_ROW: Mapping[str, Callable[[TurnRow], str]] = {
    "session": lambda row: row.name,
    "conversation": lambda row: row.conversation,
}
"""Name of a row of `WORDS` whose value is stored in the turn's row -> the function that gets the value. These words
differ between turns, while all other words are the same for many turns."""
TEXTS = tuple(name for name in AnswerRecord._fields if name in PATTERNS)
"""The letters of the rows of `PATTERNS` whose text a row stores; others can be searched only in an open session."""
_OWN_NUMBERS = tuple(name for name in AnswerRecord._fields if name in NUMBERS)


def _records(view: View, turn: TurnFacts) -> Iterator[AnswerRecord]:
    """The filter values of each answer that the engine received; the steps before an answer count as its own."""
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
        words = shared(tuple(() if name in OF_ROW else
            shared(tuple(dict.fromkeys(last.words(name) if row.of_response is not None else
                                      (word for place in places for word in place.words(name)))))
            for name, row in WORDS.items()))
        flags = shared(frozenset(name for name, row in FLAGS.items() if any(
            place.flag(name) for place in (places if row.of_response is None else places[-1:]))))
        numbers = tuple(last.number(name, share=False) for name in _NUMBER_AT)
        shares = tuple(last.number(name, share=True) for name in SHARES)
        own = {name: last.number(name, share=False) for name in _OWN_NUMBERS}
        yield AnswerRecord._make((shared(SharedValues(words, flags, numbers, shares)), *own.values(),
                                  *(last.text(name) for name in TEXTS)))


class RowAnswer(NamedTuple):
    """One answer of a row, as a filter tests it."""

    row: TurnRow
    texts: list[str]
    """The text in which a search looks, once it is made; all answers of a row share the list."""
    answer: int
    source: None = None
    """None, since no other place shares the answer."""

    def words(self, name: str) -> Iterable[str]:
        """The values of a row of `WORDS`."""
        if name in OF_ROW:
            word = OF_ROW[name](self.row)
            return (word,) if word else ()
        return self.row.answers[self.answer].shared.words[_WORD_AT[name]]

    def flag(self, name: str) -> bool:
        """Whether a flag of `FLAGS` holds."""
        return name in self.row.answers[self.answer].shared.flags

    def number(self, name: str, share: bool) -> float | None:
        """The value of a row of `NUMBERS`, or its percentage of the limit."""
        record, own = self.row.answers[self.answer], NUMBERS_OF_ROW.get(name)
        if share and name in _SHARE_AT:
            return record.shared.shares[_SHARE_AT[name]]
        if own is not None:
            return own(self.row)
        at = _NUMBER_AT.get(name)
        value: float | None = getattr(record, name) if at is None else record.shared.numbers[at]
        return value

    def text(self, name: str) -> str:
        """The text of a row of `PATTERNS`; empty if rows do not store it."""
        return getattr(self.row.answers[self.answer], name) if name in TEXTS else ""

    def search_text(self) -> str:
        """The text of the row in which a search looks."""
        self.texts[:] = self.texts or [folded_text(self.row.contents, self.row.names)]
        return self.texts[0]


def matches(test: Callable[[RowAnswer], bool], row: TurnRow) -> bool:
    """Whether any answer of a row, or an unread row itself, passes a filter."""
    return any(map(test, map(partial(RowAnswer, row, []), range(len(row.answers)))))  # a generator doubles the time


def values_of_rows(rows: Iterable[TurnRow]) -> Iterator[tuple[str, str]]:
    """Pairs of a term and a value that occurs in rows; values that many answers share come once."""
    known: dict[int, tuple[tuple[str, ...], ...]] = {}
    for row in rows:
        yield from ((name, own(row)) for name, own in OF_ROW.items() if own(row))
        for answer in row.answers:
            words = answer.shared.words
            if id(words) not in known:  # equal words are mostly one object (`shared`)
                known[id(words)] = words
                yield from ((name, value) for name, values in zip(WORDS, words, strict=True) for value in values)


def files_under_way(rows: Iterable[TurnRow]) -> set[str]:
    """The files with an answer under way, whose rows change without the files if the recorder is killed."""
    return {row.file for row in rows if row.verdict is not None and row.verdict.word == "UNDER WAY"}


def row_filter(text: str) -> Filter:
    """Parses a filter expression for rows. Raises `FilterError` if the expression is invalid, or searches a text that
    rows do not store."""
    found = parse_typed(text)
    for term in found.patterns:
        if term not in TEXTS:
            raise FilterError(1, f"~{term} searches contents that the table does not hold: filter in an open session")
    return found
