"""The line that a colon opens in the table of turns. It accepts the number of a row, a turn of the session, a file, or
the name of any key's action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from textual.binding import ActiveBinding

from inspector.report.lines.spans import in_quotes, last_name
from inspector.report.turn_rows import TurnRow
from inspector.tui.command_line import Act, command_named, commands_of, file_named
from inspector.tui.questions import Prompt, WordSuggester, refusal_of
from inspector.tui.turn_list import TurnList
from loop_core.errors import CallerError
from loop_core.turn.limits import whole_number


def go_to_row(listed: TurnList) -> None:
    """Asks for a line, and moves the cursor to the row that it names."""
    files = [last_name(row.file) for row in listed.shown if isinstance(row, TurnRow)]
    able = commands_of(listed.screen, "turns.go-to")
    words = WordSuggester([*ROW_FINDERS, *sorted(able)], {"file": files})
    hint = f"row 1 to {len(_turns(listed)):,} · turn 2 of this session · file NAME · the name of a command"
    prompt = Prompt(":", hint, words=words, refusal=refusal_of(lambda line: _read(listed, line, able)))
    listed.app.push_screen(prompt, lambda typed: _read(listed, typed or "", able)())


def _read(listed: TurnList, line: str, able: Mapping[str, ActiveBinding]) -> Act:
    """The action for a line. Raises `CallerError` if no listed row has this number, turn or file, and no command has
    this name."""
    line = line.strip()
    word, _, rest = line.partition(" ")
    places, number = _turns(listed), whole_number(line)
    if not line:
        return lambda: None
    if word in ROW_FINDERS:
        return partial(listed.choose, ROW_FINDERS[word](listed, rest.strip()))
    if number is None and "=" in line:
        raise CallerError(f"{in_quotes(line)}: settings are for a session, which enter opens")
    if number is None:
        return command_named(listed.screen, line, able, "a row's number, turn 2, file NAME")
    if not 1 <= number <= len(places):
        raise CallerError(f"{in_quotes(line)} is not a row: expected 1 to {len(places):,}")
    return partial(listed.choose, places[number - 1])


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
    """Whether a turn of the session at the cursor is left out as a copy, instead of by the filter."""
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
