"""Follows growing files: detects changes, and reads only what was added.

In a transcript that grows line by line only new rows are read. A file that shrank, was replaced, or whose earlier bytes
changed is read again. The result equals that of reading the whole file, but in a large file a change far from both ends
is noticed only after some polls. In a database, or a document with a list, all records are looked up, but only new and
changed ones are read. Exchanges with the provider's bytes are decoded again only if they changed.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import fields, replace
from hashlib import sha256
from operator import attrgetter, eq
from typing import IO, Any

from inspector.config.files import is_held
from inspector.sessions import intake, redact
from inspector.sessions import open as opening
from inspector.sessions.build import UnbuiltExchange, build, mask_seams
from inspector.sessions.copies import OpenedFile, each_once
from inspector.sessions.file_format import HEAD
from inspector.sessions.importers import IMPORTERS
from inspector.sessions.importers.recognition import choose, importer
from inspector.sessions.recording import (
    ODD,
    Exchange,
    FileReading,
    Input,
    Options,
    RawExchange,
    Recording,
    TurnRecord,
    UnreadableError,
    common_beginning,
)
from inspector.sessions.stored_rows import RecordPiece
from inspector.sessions.thread import GrowingThread
from inspector.sessions.transcripts import TranscriptReader, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer
from loop_core.values import EMPTY

_BLOCK = 4 << 20
"""The number of bytes of a block with its own digest. Comparing a block takes 5 ms, and all blocks of 100 MB 100 ms."""

_RAW = attrgetter(*(field.name for field in fields(RawExchange)))

FileState = tuple[int, int, int, bool]
"""Size, time of change and inode of one file, zeros if it does not exist; and whether its recorder has left it."""


def states_of(paths: Sequence[str], under_way: Container[str] = ()) -> dict[str, FileState]:
    """The state of each file, of the log beside a database, and of the file about a session of Kiro. Whether a recorder
    has left its file is checked only of the files with an answer `under_way`, since opening a file takes long."""
    return {name: (*_state(name), name in under_way and not is_held(name))
            for path in paths for name in (path, f"{path}-wal", path.removesuffix("l"))}


def files_watched(paths: Sequence[str], inputs: Sequence[Input]) -> list[str]:
    """The files to watch: the given ones, and those that were read with them."""
    return [*dict.fromkeys((*paths, *(input_file.path for input_file in inputs)))]


def _state(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ino


class FollowedFile:
    """One file, with the state that is needed to read only added content."""

    def __init__(self, path: str, options: Options) -> None:
        self.path, self._options = path, options
        self._growth: TranscriptGrowth | None = None
        self._format = ""
        self._size = self._inode = self._polls = 0
        self._digests: list[Any] = []
        self._records = RecordGrowth()
        self._exchanges_by_entry: dict[int, tuple[bytes, Exchange | UnbuiltExchange, Mapping[str, int]]] = {}
        """Entry -> the hash of an exchange's raw values, the exchange made from them, and the counts of masks."""

    def read(self, room: intake.Room | None = None) -> OpenedFile:
        """The content of the whole file, as `open_paths` reads it."""
        self._options = self._options._replace(room=room, growth=self._records.read)
        try:
            found = None
            if os.path.isfile(self.path):  # for a FIFO, `open` would wait for a writer forever
                with open(self.path, "rb") as file:
                    found = self._read_added(file) or self._read_whole(file)
            return found or opening.read_file(self.path, self._options, build_one=self._build)
        except (OSError, intake.BoundError) as why:
            self._growth = None
            return opening.unread_file(self.path, why)

    def _build(
        self, raw: RawExchange, path: str, options: Options, counts: redact.Counts | None = None
    ) -> Exchange | UnbuiltExchange:
        """Builds an exchange; an unchanged one is the same object as before."""
        values = sha256(repr(_RAW(raw)).encode("utf-8", "backslashreplace")).digest()  # values hold credentials
        before = self._exchanges_by_entry.get(raw.entry)
        if before is None or before[0] != values:
            masked: redact.Counts = Counter()
            before = self._exchanges_by_entry[raw.entry] = values, build(raw, path, options, masked), masked or EMPTY
        if counts is not None:
            counts.update(before[2])
        return before[1]

    def _read_added(self, file: IO[bytes]) -> OpenedFile | None:
        """The earlier rows together with the new ones; None if the whole file has to be read."""
        now, growth = os.fstat(file.fileno()), self._growth
        if growth is None or now.st_ino != self._inode or now.st_size < self._size or not intake.streams(now.st_size):
            return None
        if not self._is_unchanged(file):
            return None
        file.seek(0)
        if self._size < HEAD and choose(file.read(HEAD), self.path) != self._format:
            return None  # the added bytes show another format
        file.seek(self._size)
        return self._take(file, growth)

    def _is_unchanged(self, file: IO[bytes]) -> bool:
        """Whether earlier bytes are unchanged: checks the first block, the last one, and one of the others in turn."""
        self._polls += 1
        count = len(self._digests)
        for block in {0, self._polls % count, count - 1} if count else ():
            file.seek(block * _BLOCK)
            data = file.read(min(_BLOCK, self._size - block * _BLOCK))
            if sha256(data).digest() != self._digests[block].digest():
                return False
        return True

    def _read_whole(self, file: IO[bytes]) -> OpenedFile | None:
        """Reads the whole file so that it can be continued; None for a format that does not grow line by line."""
        self._growth, self._size, self._digests = None, 0, []
        file.seek(0)
        now, head = os.fstat(file.fileno()), file.read(HEAD)
        name = choose(head, self.path) if head and not head.isspace() and not head.startswith(intake.PACKED) else None
        if name is None or not IMPORTERS[name].grows or not intake.streams(now.st_size):
            return None
        try:
            reader = importer(name).reader(self.path, self._options, head)
        except UnreadableError:
            return None
        file.seek(0)
        self._format, self._inode = name, now.st_ino
        lines = reader.lines(b"")
        if now.st_size > intake.HEAVY:
            lines.path = os.path.abspath(self.path)  # long texts stay in the file, as in `open.read_file`
        return self._take(file, TranscriptGrowth(reader, lines))

    def _take(self, file: IO[bytes], growth: TranscriptGrowth) -> OpenedFile | None:
        self._growth = None  # after a failure in the middle this state cannot be continued
        try:
            growth.take(b"")  # a file beside it may have changed alone
            while piece := file.read(_BLOCK - self._size % _BLOCK):
                growth.take(piece)
                if not self._size % _BLOCK:
                    self._digests.append(sha256())
                self._digests[-1].update(piece)
                self._size += len(piece)
            reading = growth.reading()
        except (UnreadableError, *ODD):
            return None
        if reading is None:
            return None
        self._growth = growth
        return opening.decode_reading(self.path, self._format, reading, self._options)


class FollowedSession:
    """The sessions in growing files. The turns of a lone transcript are extended; otherwise all turns are found
    again."""

    def __init__(self, paths: Sequence[str], *, api: str | None, profile: str | None) -> None:
        self._paths = tuple(paths)
        self._options = opening.options_of(api, profile)
        self._files: dict[str, FollowedFile] = {}
        self._thread = GrowingThread()
        self._read: Sequence[Exchange] = ()
        self._settled: Sequence[Exchange] = ()
        self._turns: list[tuple[TurnRecord, Mapping[str, int]]] = []
        """The turns, each with the counts of masks at its seams."""
        self._same = 0
        """The number of first exchanges that are the same as in the previous reading."""

    def read(self) -> Recording:
        """The content of the files, as `open_paths` reads it."""
        self._options = self._options._replace(room=intake.Room())
        opened: list[OpenedFile] = []
        for path in self._paths:
            source, found = self._file(path)
            opened += [(source, found), *opening.files_beside(source, self._options, self._file)]
        opened = each_once(opened, opening.turns_of)
        alone = [found for _, found in opened if found]
        if len(alone) != 1 or any(each.recorder is None for each in alone[0]):
            self._read = ()
            return opening.join_files(opened)
        before, self._read = self._read, alone[0]
        return opening.join_files(opened, lambda found, _: self._thread_exchanges(before, found), self._mask_new_seams)

    def _file(self, path: str) -> OpenedFile:
        if path not in self._files:
            self._files[path] = FollowedFile(path, self._options)
        return self._files[path].read(self._options.room)

    def _thread_exchanges(self, before: Sequence[Exchange], exchanges: list[Exchange]) -> tuple[TurnRecord, ...]:
        """Finds the turns. An answer whose inferred end is unchanged stays the same object."""
        settled = self._settled if before else ()
        for number, (old, new, earlier, now) in enumerate(zip(before, self._read, settled, exchanges, strict=False)):
            if now is not new and old is new and earlier.response.stop_reason == now.response.stop_reason:
                exchanges[number] = earlier
        self._same = common_beginning(settled, exchanges)
        self._settled = tuple(exchanges)
        return self._thread.turns(exchanges, self._same)

    def _mask_new_seams(
        self, exchanges: list[Exchange], turns: Sequence[TurnRecord], counts: Mapping[str, redact.Counts]
    ) -> list[Exchange]:
        """Counts the credentials across the seams of new turns; the rows of a transcript are not changed."""
        same = common_beginning(self._turns, turns, lambda old, new: old[0] == new and new.links[-1].index < self._same)
        del self._turns[same:]
        path = exchanges[0].path
        for turn in turns[len(self._turns) :]:
            found: redact.Counts = Counter()
            mask_seams(exchanges, [turn], {path: found})
            self._turns.append((turn, found or EMPTY))
        for _, masks in self._turns:
            counts[path].update(masks)
        return exchanges


# -- A growing transcript: only new rows are read --------------------------------------------------------------------
# A new row may change answers near the end, so the last answers are built again each time; earlier ones are closed. The
# last rows, whose meaning may change too, are read again. If a row concerns a closed answer, or a fact on which all
# answers depend, the whole file is read again.

OPEN = 24
"""The number of open answers at the end, larger than a batch of calls. Building them again takes 2 ms."""
REACH = 1 << 18
"""The largest number of bytes of rows that are read again, which takes 3 ms."""
LAST = 64
"""The number of records at the end of a database or list that may still be rewritten. Reading them again takes 2 ms."""
LOOKS = 4
"""The number of last polls whose changed records are read again, because a session may grow between others."""
_SLOTS = tuple(field.name for field in fields(TranscriptAnswer))
_ROWS = attrgetter("lines", "parts", "after", "next")
"""Gets the fields of an answer that grow with every row about the answer."""


class TranscriptGrowth:
    """One transcript, as far as it has been read."""

    def __init__(self, reader: TranscriptReader, rows: TranscriptRows | None = None) -> None:
        self.reader = reader
        self._lines = rows or reader.lines(b"")
        self.number = 0
        """The number of lines or records that are not read again."""
        self._rest: Any = b""
        """The lines or records after those that are not read again."""
        self._whole = False
        """Whether new rows changed the meaning of rows that are not read again."""
        self._closed = FileReading()
        """The results of the closed answers, which are the first of the reader's answers."""
        self._marks: list[tuple[int, ...]] = []
        """For each closed answer the lengths of its `_ROWS`, which change with a new row about the answer."""
        self._common: object = None

    def take(self, added: bytes) -> None:
        """Reads the whole lines that were added to the file."""
        data = self._rest + added
        # A formatter wrote rows in several lines: the end of the lines may be in the middle of a row.
        spread = intake.last_opening(data) >= 0
        self._whole = self._whole or spread or not self.reader.look_ahead(data)
        if self._whole:
            return
        end = _end_of_lines(data, self.reader.reread)
        self._rest = data[end:]
        if end:
            self._lines.go_on(data[:end], self.number)
            self.reader.take_rows(self._lines)
            self.number += data.count(b"\n", 0, end)

    def records(self, pieces: Sequence[RecordPiece], settled: int) -> FileReading | None:
        """Reads the added records, with a result as that of `reading`. The last `LAST` records, and any after the first
        `settled`, will be read again."""
        end = max(self.number, min(settled, len(pieces) - LAST))
        self._lines.go_on(pieces[self.number : end], self.number)
        self.reader.take_rows(self._lines)
        self.number, self._rest = end, pieces[end:]
        return self.reading()

    def reading(self) -> FileReading | None:
        """The result so far, equal to that of reading the whole file; None if the whole file must be read again."""
        if self._whole:
            return None
        reader, lines, closed = self.reader, self._lines, len(self._marks)
        open_answers = [(each, _copies({name: getattr(each, name) for name in _SLOTS}))
                        for each in reader.answers[closed:]]
        before = _copies(vars(reader)), _copies(vars(lines))
        shut, whole = self._closed, reader.reading
        reading = reader.reading = replace(
            whole, exchanges=list(shut.exchanges), answers=list(shut.answers), acts=list(shut.acts),
            notices=list(whole.notices), skipped=list(whole.skipped))
        if self._rest:
            lines.go_on(self._rest, self.number)
            reader.take_rows(lines)
        every, common = reader.answers, reader.common()
        if closed and (common != self._common or [_mark(each) for each in every[:closed]] != self._marks):
            return None
        reader.answers = every[closed:]
        reader.settle()
        for answer in reader.answers:
            reader.give(answer, reading)
        reader.answers = [*every[:closed], *reader.answers]
        reader.report(lines)
        reading.masked = lines.masked.copy()
        # Undoes the changes that the early end of the file has made to the reader and its answers.
        vars(reader).update(before[0])
        vars(lines).update(before[1])
        for answer, values in open_answers:
            for name, value in values.items():
                setattr(answer, name, value)
        self._common = common
        self._close(reading)
        return reading

    def _close(self, reading: FileReading) -> None:
        """Closes the first open answers, with the results that were just made."""
        closed, until = len(self._marks), len(self.reader.answers) - OPEN
        if until <= closed:
            return
        shut = self.reader.answers[closed:until]
        exchanges: Sequence[Exchange] = reading.exchanges[closed:until]
        entries = {exchange.entry for exchange in exchanges}
        self._closed.exchanges += exchanges
        self._closed.acts += [act for act in reading.acts[len(self._closed.acts) :] if act.entry in entries]
        self._closed.answers += [row for row in reading.answers[len(self._closed.answers) :] if row.entry in entries]
        for answer, exchange in zip(shut, exchanges, strict=True):
            answer.stop = exchange.response.stop_reason
            answer.rows.clear()
        self._marks += [_mark(answer) for answer in shut]


class RecordGrowth:
    """A growing file of records, such as a database. All records are looked up each time, and changed ones read
    again."""

    def __init__(self) -> None:
        self._growth: TranscriptGrowth | None = None
        self._initial_state: object = None
        """The state of the reader before its first record, which depends on the file's other content."""
        self._hashes: list[int] = []
        self._same: deque[int] = deque(maxlen=LOOKS)
        """For each of the last polls the number of first records that had not changed."""

    def read(self, reader: TranscriptReader, rows: TranscriptRows) -> FileReading:
        """The result of reading a file of records, for `TranscriptReader.read_records`."""
        pieces = rows.pieces()
        begun, hashes = _initial_state(reader), [*map(hash, pieces)]
        growth, self._growth = self._growth, None  # as in `FollowedFile._take`: a failure leaves no state
        pieces_read = 0 if growth is None or begun != self._initial_state else growth.number
        self._same.append(common_beginning(self._hashes or hashes, hashes, eq))
        reading = growth.records(pieces, min(self._same)) if growth and self._same[-1] >= pieces_read > 0 else None
        if reading is None:
            growth = TranscriptGrowth(reader, rows)
            reading = growth.records(pieces, min(self._same))
        self._growth, self._initial_state, self._hashes = growth, begun, hashes
        return reading or FileReading()


def _initial_state(reader: TranscriptReader) -> dict[str, Any]:
    """The state of a reader before its first record."""
    reading_fields = {name: getattr(reader.reading, name)
                      for name in ("skipped", "notices", "error", "about", "masked")}
    return {**_copies(vars(reader)), **_copies(reading_fields), "reading": None, "options": None}


def _end_of_lines(data: bytes, but: int) -> int:
    """The end of the complete lines, without the last `but` lines (at most `REACH` bytes), which are read again."""
    end = data.rfind(b"\n") + 1
    least = end - REACH
    for _ in range(but if end else 0):
        before = data.rfind(b"\n", 0, end - 1) + 1
        if before < least or not end:
            break
        end = before
    return end


def _copies(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, (list, dict, set)) else value for name, value in values.items()}


def _mark(answer: TranscriptAnswer) -> tuple[int, ...]:
    return tuple(map(len, _ROWS(answer)))
