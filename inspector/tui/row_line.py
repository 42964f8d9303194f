"""The line that a colon opens in the table of turns: a row's number, a turn of the session, or a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from inspector.report.lines.spans import in_quotes, last_name
from inspector.report.turn_rows import TurnRow
from inspector.tui.command_line import file_named
from inspector.tui.questions import Prompt, WordSuggester, refusal_of
from inspector.tui.turn_list import TurnList
from loop_core.errors import CallerError
from loop_core.turn.limits import whole_number


def go_to_row(listed: TurnList) -> None:
    """Asks for a line, and moves the cursor to the row that it names."""
    files = [last_name(row.file) for row in listed.shown if isinstance(row, TurnRow)]
    words = WordSuggester([*ROW_FINDERS], {"file": files})

    def go(line: str | None) -> None:
        if line and line.strip():
            listed.choose(row_index(listed, line))

    hint = f"row 1 to {len(_turns(listed)):,} · turn 2 of this session · file NAME"
    prompt = Prompt(":", hint, words=words, refusal=refusal_of(partial(row_index, listed)))
    listed.app.push_screen(prompt, go)


def row_index(listed: TurnList, line: str) -> int:
    """The index of the row that a line names. Raises `CallerError` if no listed row has this number, turn or file."""
    line = line.strip()
    word, _, rest = line.partition(" ")
    if word in ROW_FINDERS:
        return ROW_FINDERS[word](listed, rest.strip())
    places, number = _turns(listed), whole_number(line)
    if number is not None and 1 <= number <= len(places):
        return places[number - 1]
    if number is not None or not line:
        raise CallerError(f"{in_quotes(line)} is not a row: expected 1 to {len(places):,}")
    raise CallerError(f"{in_quotes(line)} is not a place here: expected a row's number, turn 2 or file NAME; "
                      "ctrl+p lists all commands")


def _turns(listed: TurnList) -> list[int]:
    """The indices of the rows that are turns; the others are headings."""
    return [at for at, row in enumerate(listed.shown) if isinstance(row, TurnRow)]


def _turn(listed: TurnList, text: str) -> int:
    here, number = listed.current_row, whole_number(text)
    found = next((at for at, row in enumerate(listed.shown) if here is not None and isinstance(row, TurnRow)
                  and row.session == here.session and row.number == number), None)
    if found is None and here is not None and _is_copy(listed, here, number):
        raise CallerError(f"turn {text}: it is a copy, listed with {here.origin}")
    if found is None:
        which = in_quotes(text) if text else "without a number"
        raise CallerError(f"turn {which}: no row of this session has it")
    return found


def _is_copy(listed: TurnList, here: TurnRow, number: int | None) -> bool:
    """Whether a turn of the session at the cursor is left out as a copy, and not only by the filter."""
    kept = {row.number for row in listed.rows if row.session == here.session}
    return bool(here.copied) and number is not None and 1 <= number <= here.of and number not in kept


def _file(listed: TurnList, text: str) -> int:
    firsts: dict[str, int] = {}
    for at, row in enumerate(listed.shown):
        if isinstance(row, TurnRow):
            firsts.setdefault(row.file, at)
    return firsts[file_named(firsts, text)]


ROW_FINDERS: Mapping[str, Callable[[TurnList, str], int]] = {"turn": _turn, "file": _file}
"""Word after the colon -> the function that finds the row for the rest of the line."""
