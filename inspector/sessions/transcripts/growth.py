"""A growing transcript: the rows read so far are kept, and only new ones are read.

A further row changes answers near the end: the last of them are made anew each time, those before are closed. Where
it also tells what the last rows mean, those are read again, too. A row that touches a closed answer, or changes what
all answers depend on, cannot be read on: the file is then read whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from inspector.sessions.recording import Exchange, FileReading
from inspector.sessions.transcripts import TranscriptReader
from inspector.sessions.transcripts.answer import TranscriptAnswer

OPEN = 24
"""Answers at the end that a further row may still change: more than a batch of calls, 2 ms to make anew."""
REACH = 1 << 18
"""Bytes of rows that are read again at most, 3 ms: one behind more than that means a reading of the whole file."""
_SLOTS = tuple(field.name for field in fields(TranscriptAnswer))
_ROWS = attrgetter("lines", "parts", "after", "next")
"""What grows with every row that says something of an answer."""


class TranscriptGrowth:
    """One transcript, as far as it has been read."""

    def __init__(self, reader: TranscriptReader) -> None:
        self.reader = reader
        self._lines = reader.lines(b"")
        self._number = 0
        """How many lines are read for good."""
        self._rest = b""
        """What stands behind the last line that is read for good."""
        self._whole = False
        """Whether what was read for good means something else by now."""
        self._closed = FileReading()
        """What was made of the closed answers, which are the first of the reader's."""
        self._marks: list[tuple[int, ...]] = []
        """What would be changed by a row that touches one of them."""
        self._common: object = None

    def take(self, added: bytes) -> None:
        """Reads the whole lines that were added to the file."""
        data = self._rest + added
        self._whole = not self.reader.look_ahead(data) or self._whole
        end = _end_of_lines(data, self.reader.reread)
        self._rest = data[end:]
        if end:
            self._lines.go_on(data[:end], self._number)
            self.reader.take_rows(self._lines)
            self._number += data.count(b"\n", 0, end)

    def reading(self) -> FileReading | None:
        """The result so far, equal to that of reading the whole file; None if the whole file has to be read again."""
        if self._whole:
            return None
        reader, lines, closed = self.reader, self._lines, len(self._marks)
        before = _copies(vars(reader)), _copies(vars(lines)), [_values(each) for each in reader.answers[closed:]]
        shut, whole = self._closed, reader.reading
        reading = reader.reading = replace(
            whole, exchanges=list(shut.exchanges), answers=list(shut.answers), acts=list(shut.acts),
            notices=list(whole.notices), skipped=list(whole.skipped))
        if self._rest:
            lines.go_on(self._rest, self._number)
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
        self._restore(before)
        self._common = common
        self._close(reading)
        return reading

    def _restore(self, before: tuple[dict[str, Any], dict[str, Any], list[list[Any]]]) -> None:
        """Takes back what the end of the file, which is none yet, has done to the answers and their reader."""
        vars(self.reader).update(before[0])
        vars(self._lines).update(before[1])
        for answer, values in zip(self.reader.answers[len(self._marks) :], before[2], strict=True):
            for name, value in zip(_SLOTS, values, strict=True):
                setattr(answer, name, value)

    def _close(self, reading: FileReading) -> None:
        """Closes the first of the open answers, as they were made just now."""
        closed, until = len(self._marks), len(self.reader.answers) - OPEN
        if until <= closed:
            return
        shut = self.reader.answers[closed:until]
        made: Sequence[Exchange] = reading.exchanges[closed:until]
        entries = {exchange.entry for exchange in made}
        self._closed.exchanges += made
        self._closed.acts += [act for act in reading.acts[len(self._closed.acts) :] if act.entry in entries]
        self._closed.answers += [told for told in reading.answers[len(self._closed.answers) :] if told.entry in entries]
        for answer, exchange in zip(shut, made, strict=True):
            answer.stop = exchange.response.stop_reason
            answer.rows.clear()
            answer.blocks.clear()
        self._marks += [_mark(answer) for answer in shut]


def _end_of_lines(data: bytes, but: int) -> int:
    """Where the whole lines end, without the last few, as far as those are no more than can be read again each time."""
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


def _values(answer: TranscriptAnswer) -> list[Any]:
    given = (getattr(answer, name) for name in _SLOTS)
    return [value.copy() if isinstance(value, (list, dict)) else value for value in given]


def _mark(answer: TranscriptAnswer) -> tuple[int, ...]:
    return tuple(map(len, _ROWS(answer)))
