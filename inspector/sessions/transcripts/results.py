"""The results of calls: those that a request sends, and those that stay in their file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from inspector.sessions.stored_rows import SHORT, RowPlace, StoredResult, StoredText
from inspector.sessions.wordings import begins_as_refusal, interruption, is_error, placeholder
from loop_core.values import ToolResultPart


class ResultsRow(Protocol):
    """A row with results, and its line."""

    @property
    def line(self) -> int:
        """Its line."""

    @property
    def results(self) -> tuple[ToolResultPart, ...]:
        """Its results."""


class AnsweredCalls(Protocol):
    """An answer with the rows after it, and the result of each call by its id."""

    @property
    def after(self) -> Sequence[ResultsRow]:
        """The rows after it."""

    @property
    def results(self) -> Mapping[str, ToolResultPart]:
        """Id of a call -> its result."""


def results_between(
    before: AnsweredCalls | None, rows: Sequence[ResultsRow], line: int
) -> tuple[ToolResultPart, ...]:
    """The results in the rows, and those of parallel calls, which are on other branches below their own calls."""
    found = [part for row in rows for part in row.results]
    if before is None or not found:
        return tuple(found)
    there = {part.call_id for part in found}
    others = [part for row in before.after if row.line < line for part in row.results if part.call_id not in there]
    first = before.results if others else {}  # a call may have two results, of which the first counts
    return (*(part for part in others if first.get(part.call_id or "") is part), *found)


def store_result(
    part: ToolResultPart, place: RowPlace | None, number: int, pick: Callable[[Any, int], str]
) -> ToolResultPart:
    """The result of the row at `place`, whose text is read again on access; `pick` finds the text of block `number`. A
    result that is short or reports a refusal or an interruption stays in memory."""
    text = part.text
    if place is None or len(text) <= SHORT or begins_as_refusal(part) or interruption(text) or placeholder(part):
        return part
    stays = StoredText(*place, number, pick, len(text), hash(text))
    return StoredResult(part.call_id, part.name, stays, is_error(part), part.json)  # type: ignore[arg-type]
