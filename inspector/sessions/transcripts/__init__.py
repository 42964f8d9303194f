"""Reads transcripts of agents, which have the agent's own rows instead of the provider's bytes.

This package has the common code of the importers of such files: a file's records (`TranscriptRows`, `TranscriptLines`)
and the reader that makes exchanges of them (`TranscriptReader`). Such an exchange names its `recorder`. A record that
is cut, broken, repeated or unknown is counted and reported.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from sys import intern
from typing import IO, Any, ClassVar

from inspector.sessions import detection, intake, redact, traffic
from inspector.sessions.notices import Notice
from inspector.sessions.reasons import API_ASSUMED
from inspector.sessions.recording import ODD, Exchange, FileReading, Options, unusable
from inspector.sessions.stored_rows import RecordPiece, UnbuiltRecord
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.ending_rules import call_unfinished, infer, unanswered_calls, without_lost_call
from inspector.sessions.transcripts.member_values import is_mask, text_or_none
from loop_core.errors import CallerError
from loop_core.json_parser import from_json_rows
from loop_core.values import At, Evidence, Finding, Severity, StopReason
from loop_core.wire.format import Profile
from loop_core.wire.json_values import byte_span
from loop_core.wire.profiles import ProfileChoice, choose, profile_named

_BOM = b"\xef\xbb\xbf"
_MOST_NAMED = 5
_SPREAD = re.compile(rb"\{\r?\n(?:[ \t].*\n)*+(?:\}\r?(?![^\n])|(?:[ \t].*)?\Z)")
"""Matches a record that a formatter wrote in several lines, perhaps cut at the end of the file."""
_PIECE = 1 << 17
"""The number of bytes of a file of lines that are read and searched at once. 1 MB would take 2 MB more memory."""

Kinds = Mapping[str, tuple[type, ...]]
"""Name of a member -> the types that its value can have."""
Fields = Mapping[str, Kinds]
"""Member of a row that is an object ("": the row itself) -> its members that are read, with their types."""
_WORDS: Mapping[type, str] = {
    str: "text", dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number",
    type(None): "null",
}


class TranscriptRows:
    """The records of one file, which can be read once, with notices about them. A piece has the number of a record, its
    JSON, and whether the record may be cut, like the last one of a cut file. Records that are not lines have another
    `unit`, such as the row of a database or the element of a list."""

    unit: str
    """The word for a record, before its number."""
    path: str | None = None
    """The path of the file, if its records can be read again from the file; else None."""
    start = 0
    """The offset of the current record in the file."""

    def __init__(self, pieces: Iterable[RecordPiece], fields: Fields, unit: str = "line") -> None:
        self._pieces, self._fields, self.unit = pieces, fields, unit
        self._damaged: list[Notice] = []
        self._expected: set[tuple[object, ...]] = set()
        """The combinations of member types that were checked and are as expected; nearly all rows have one of a few."""
        self._odd = 0
        self.passed: Counter[str] = Counter()
        """Known type of records without a part of an exchange -> the number of such records."""
        self.unknown: Counter[str] = Counter()
        """Unknown type of records -> the number of such records."""
        self.masked: Counter[str] = Counter()
        """Kind of credential -> the number that was masked."""

    def pieces(self) -> list[RecordPiece]:
        """The records that have not been read."""
        return list(self._pieces)

    def go_on(self, rest: Any, number: int) -> None:
        """Continues with further records, after the first `number` of the file."""
        self._pieces = rest

    def suspicious(self, piece: bytes) -> bool:
        """Whether a record may contain a credential and must be searched."""
        return detection.suspicious(piece)

    def __iter__(self) -> Iterator[TranscriptLine]:
        for number, record, last in self._pieces:
            piece = record.make(*record.values) if isinstance(record, UnbuiltRecord) else record
            if not piece or piece.isspace():
                continue
            masked = redact.body(piece, self.masked) if self.suspicious(piece) else piece
            value = self._parse(masked, number, last)
            if type(value) is dict:
                self._check_types(number, value)
                yield TranscriptLine(number, masked, value, self.path, self.start)

    def _parse(self, piece: bytes, number: int, last: bool) -> Any:
        try:
            value = from_json_rows(piece)  # without a cache of strings, because few texts repeat
        except ValueError:
            try:
                value = traffic.reparse(piece)
            except ValueError:
                cut = f", the last, is cut after {len(piece):,} bytes; the part before it was read"
                self._damage(number, cut if last else " is not JSON: expected an object; the rest was read")
                return None
            if traffic.utf8_error(piece) is not None:
                self._damage(number, " holds invalid UTF-8, shown as U+FFFD")
        if type(value) is not dict:
            self._odd += 1
        return value

    def _check_types(self, number: int, value: dict[str, Any]) -> None:
        """Reports members whose value has an unexpected type; readers treat them as absent."""
        for name, kinds in self._fields.items():
            holder = value.get(name) if name else value
            if type(holder) is not dict:
                continue
            types = (name, *map(type, map(holder.get, kinds)))
            if types in self._expected:
                continue
            odd = [(member, wanted, type(member_value)) for member, wanted in kinds.items()
                   if (member_value := holder.get(member)) is not None and type(member_value) not in wanted]
            for member, wanted, kind in odd:
                self._damage(number, f": {name and f'{name}.'}{member} is {_WORDS[kind]}, but {_WORDS[wanted[0]]} was "
                             "expected; it was skipped")
            if not odd:
                self._expected.add(types)

    def note_unreadable(self, number: int, why: Exception) -> None:
        """Reports an unreadable record."""
        self._damage(number, f" {unusable(why)}; the rest was read")

    def _damage(self, number: int, words: str) -> None:
        self._damaged.append(Notice(words, at=f"{self.unit} {number}"))

    def count(self, kind: Any, known_kinds: frozenset[str]) -> None:
        """Counts a record that is not part of an exchange, as known or unknown."""
        name = kind if isinstance(kind, str) and kind.isprintable() else "no type"
        (self.passed if name in known_kinds else self.unknown)[name[:40]] += 1

    def report(self, reading: FileReading) -> None:
        """Adds notices about everything that is not part of an exchange."""
        notices = reading.notices
        notices += self._damaged[:_MOST_NAMED]
        if len(self._damaged) > _MOST_NAMED:
            notices.append(Notice(" were skipped", at=f"{len(self._damaged) - _MOST_NAMED:,} more damaged lines"))
        counted = ((f"{self.unit}s that are not JSON objects were skipped", {"": self._odd}),
                   ("records of unknown type were skipped", self.unknown),
                   ("known records that hold no exchange", self.passed))
        notices += [Notice(words, dict(counts)) for words, counts in counted if any(counts.values())]


class TranscriptLines(TranscriptRows):
    """The lines of one file."""

    def __init__(self, data: bytes | IO[bytes], fields: Fields) -> None:
        super().__init__(self._lines(io.BytesIO(data) if isinstance(data, bytes) else data), fields)
        name = getattr(data, "name", None)
        self.path = os.path.abspath(name) if isinstance(name, str) else None
        self._suspicious = False

    def go_on(self, rest: Any, number: int) -> None:
        """Continues with further lines, after the first `number` of the file."""
        self._pieces = self._lines(io.BytesIO(rest), number)

    def suspicious(self, piece: bytes) -> bool:
        """Whether the lines around the record may contain a credential; some hundred lines are searched at once."""
        return self._suspicious

    def _lines(self, file: IO[bytes], number: int = 0) -> Iterator[tuple[int, bytes, bool]]:
        """The lines, which are read in pieces: searching a large file at once would block every other thread."""
        while piece := file.read(_PIECE):
            piece += intake.rest_of_record(file, piece)
            self._suspicious = detection.suspicious(piece)
            if not number and piece.startswith(_BOM):
                piece, self.start = piece[len(_BOM) :], len(_BOM)
            at = 0
            while (end := piece.find(b"\n", at)) >= 0:  # `split` takes three times as long
                first = number = number + 1
                if end - at < 3 and (spread := _SPREAD.match(piece, at)):
                    end, number = spread.end(), number + piece.count(b"\n", at, spread.end())
                yield first, piece[at:end], False
                self.start += end + 1 - at
                at = end + 1
            if at < len(piece):
                yield number + 1, piece[at:], True
            intake.note_read(file.tell())


def slice_of(data: bytes, *path: str | int) -> str | None:
    """The verbatim JSON of the value at `path` of a line; None if there is none."""
    span = byte_span(data, 0, *path)
    return None if span is None else data[span[0] : span[1]].decode("utf-8", "replace")


# -- The reader of a whole file --------------------------------------------------------------------------------------


class TranscriptReader:
    """Reads one file into a tree of rows and its answers. Each format has a subclass that interprets the rows."""

    name: ClassVar[str]
    agent: ClassVar[str]
    """The name of the agent that writes such files, in text."""
    fields: ClassVar[Fields]
    key: ClassVar[str] = "id"
    row_word: ClassVar[tuple[str, str]] = ("an entry", "entries")
    """The agent's word for a row, in singular and plural."""
    several_apis: ClassVar[bool] = False
    """Whether one file may hold answers of several wire formats."""
    unit: str = "line"
    """The word for a record before its number: `line`, or `message` in a file that is a list, `row` in a database."""
    reread: ClassVar[int] = 0
    """The number of last rows of a growing file that are read again, because later rows decide their meaning."""
    words: ClassVar[str] = ""
    """The notice about the source of the format's stop reasons; empty for no notice."""
    steered: ClassVar[bool] = False
    """Whether a text of the user beside tool results belongs to the current turn, instead of beginning one."""
    own_api: ClassVar[str | None] = None
    """The id of the wire format of all answers, without an import of its package; None if the agent uses several."""

    def __init__(self, path: str, options: Options) -> None:
        self.path, self.options = path, options
        self.writer = self.name
        """The name of the agent that wrote the file; most formats have one writer and the same name."""
        self.reading = FileReading()
        self.answers: list[TranscriptAnswer] = []
        self.model: str | None = None
        self.places: dict[int, TreePlace] = {}
        """Hash of the id of a row -> the place after the row, where its children begin. An id takes 96 bytes."""
        self.remarks: Counter[str] = Counter()
        """Remark about rows that were read in a special way -> the number of such rows."""
        self.compacted = ""
        """The finding about a compaction of the history, for the next answer."""
        self._profiles: dict[tuple[str | None, str | None], tuple[Profile, tuple[Evidence, ...]]] = {}
        """API, if it is named, and model -> the server's profile, and the evidence for it."""

    @classmethod
    def of(cls, path: str, options: Options, head: bytes) -> TranscriptReader:
        """The reader of a file; `head` is not used (`inspector.sessions.file_format.Importer.reader`)."""
        return cls(path, options)

    def read(self, data: bytes | IO[bytes]) -> FileReading:
        """Reads every answer in a file of lines."""
        return self.read_rows(self.lines(data))

    def lines(self, data: bytes | IO[bytes]) -> TranscriptLines:
        """The records of a file of lines."""
        return TranscriptLines(data, self.fields)

    def read_records(self, pieces: Iterable[RecordPiece]) -> FileReading:
        """Reads every answer among records that are not lines: elements of a list, rows of a database."""
        rows = TranscriptRows(pieces, self.fields, self.unit)
        return self.read_rows(rows) if self.options.growth is None else self.options.growth(self, rows)

    def read_rows(self, lines: TranscriptRows) -> FileReading:
        """Reads every answer in the records of a file."""
        self.take_rows(lines)
        self.forget_places()
        self.settle()
        self.report(lines)
        self.answers.reverse()
        while self.answers:
            answer = self.answers.pop()  # freed early: an answer takes as much memory as its exchange
            self.give(answer, self.reading)
            answer.forget()
        return self.reading

    def forget_places(self) -> None:
        """Frees, after the last row, the data that only further rows would need."""
        self.places.clear()

    def take_rows(self, lines: TranscriptRows) -> None:
        """Reads every record."""
        one = self.row_word[0]
        for line in lines:
            key = line.value.get(self.key)
            if isinstance(key, str) and hash(key) in self.places and not is_mask(key):
                self.remarks[f"repeat {one} before them (same {self.key})"] += 1
                continue
            place = self.above(line.value)
            try:
                place = self.take(line, lines, place)
            except ODD as why:
                lines.note_unreadable(line.number, why)
            self.keep(line, place)

    def give(self, answer: TranscriptAnswer, reading: FileReading) -> None:
        """Adds the exchange of an answer to the result."""
        reading.exchanges.append(self._exchange(answer))
        reading.answers += answer.answers()

    def report(self, lines: TranscriptRows) -> None:
        """Adds notices about everything in the file that is not part of an exchange."""
        reading = self.reading
        lines.report(reading)
        reading.masked = lines.masked
        self.summarise()
        several, lacking = self.row_word[1], sum(map(unanswered_calls, self.answers))
        if lacking and any(answer.results for answer in self.answers):  # some formats store no results
            reading.notices.append(Notice("calls that have no result, although the session went on", {"": lacking}))
        reading.notices += [Notice(f"{several} that {what}", {"": count}) for what, count in self.remarks.items()]

    def note_compaction(self, answer: TranscriptAnswer) -> None:
        """Adds the finding about a compaction to an answer, the first one after it."""
        if self.compacted:
            answer.findings.append(Finding("transcript.compacted", Severity.INFO, self.compacted))
        self.compacted = ""

    def count_stopped(self, place: TreePlace) -> None:
        """Counts a request of the user that was stopped before any answer; `place` has the rows before the stop."""
        if place.has_user_message:
            self.remarks["stop a request of the user before any answer"] += 1

    # -- what a format may override ----------------------------------------------------------------------------------

    def above(self, value: dict[str, Any]) -> TreePlace:
        """The place in the tree to which a row is added."""
        raise NotImplementedError

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads one row; returns the place for the rows below it."""
        raise NotImplementedError

    def infer_end(self, answer: TranscriptAnswer) -> StopReason:
        """The stop reason of an answer without a stop word, inferred from its own and the other rows and its cap."""
        return call_unfinished(answer) or infer(answer)

    def settle(self) -> None:
        """Sets the stop reason of each answer after all rows are read, then marks the turns that the user ended."""
        for answer in self.answers:
            answer.stop = answer.stop or self.infer_end(answer)
            answer.stop = without_lost_call(answer)
        self.reading.acts += [end for answer in self.answers if (end := answer.end()) is not None]

    def summarise(self) -> None:
        """Adds the notices about the whole file, first that about the source of its stop words."""
        if self.words and self.answers:
            self.reading.notices.insert(0, self.words)

    def look_ahead(self, data: bytes) -> bool:
        """Examines added bytes; False if they change the meaning of rows that are not read again."""
        return True

    def common(self) -> object:
        """The facts of the file on which all answers depend; if they change, all answers are built again."""
        return None

    # -- what formats share ------------------------------------------------------------------------------------------

    def keep(self, line: TranscriptLine, place: TreePlace) -> None:
        """Stores the place after a row under the row's key."""
        key = line.value.get(self.key)
        if isinstance(key, str):
            self.places[hash(key)] = place

    def parent(self, name: str) -> TreePlace | None:
        """The place after the row with this key; None, with a remark, if the file has no such row before."""
        found = self.places.get(hash(name))
        if found is None:
            self.remarks["name a parent that is not in the file before them, so their place is a guess"] += 1
        return found

    def begin(self, name: str, api: str | None, model: Any, place: TreePlace, line: TranscriptLine) -> TranscriptAnswer:
        """Makes an answer that begins at a row; `add` adds it to the file. `api`: the wire format, if rows name it."""
        return TranscriptAnswer(name, api or self.options.api or self.own_api,
                                intern(model) if isinstance(model, str) else None, place, line.number,
                                text_or_none(line.value.get("timestamp")))

    def add(self, answer: TranscriptAnswer) -> TranscriptAnswer:
        """Adds an answer to the file, and to the answer that it follows."""
        place = answer.above
        if place.answer is not None:
            place.answer.next.append(answer)
        self.answers.append(answer)
        return answer

    def _exchange(self, answer: TranscriptAnswer) -> Exchange:
        key = (answer.named_api, answer.model)
        if key not in self._profiles:
            choice = self._choose_profile(answer.api, answer.model)
            rule = f"transcript.{self.name.replace('-', '_')}"
            marks = [Evidence(rule, At(pointer="/type"), f"rows of {self.agent}, not the provider's bytes")]
            if answer.named_api is None:
                marks.append(Evidence(API_ASSUMED, At(), f"no row names the wire format; read as {answer.api}"))
            self._profiles[key] = choice.profile, (*marks, *choice.evidence)
        exchange = answer.exchange(self.path, self.writer, *self._profiles[key], self.steered)
        return exchange if self.unit == "line" else replace(exchange, lines=())  # its records are not lines

    def _choose_profile(self, api: str, model: str | None) -> ProfileChoice:
        if self.options.profile is not None:
            try:
                return profile_named(self.options.profile, model)
            except CallerError:
                if not self.several_apis:
                    raise
        return choose(api, "", (), None, model)
