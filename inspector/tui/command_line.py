"""The command line that a colon opens, in a session and in the table of turns. It accepts the number of a step, a turn,
a file, settings for a new run, or the name of any key's action."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import ActiveBinding, Binding, BindingType
from textual.screen import Screen

from inspector.config.settings import CHOICES, parse_stretches, settings_of
from inspector.report.lines.spans import in_quotes, last_name
from inspector.report.turn_rows import TurnRow
from inspector.tui.messages import ask_operator
from inspector.tui.stage import SessionPart, SessionStage
from loop_core.errors import CallerError, LoopError
from loop_core.turn.limits import RANGES, SCOPES, whole_number
from loop_core.turn.presets import POLICIES

if TYPE_CHECKING:
    from inspector.tui.turn_list import TurnList

Act = Callable[[], None]
COMPARE = "compare"
"""The word before the number of a turn to compare with this one."""
MOST_NAMED = 4
"""The largest number of names listed when a word is ambiguous."""


class CommandLine(SessionPart):
    """Asks for a line and runs it; an invalid line stays open, with the reason beside it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(":", "command", "go to", id="command",
                tooltip="A step's number, turn 3, file NAME, settings such as max_tokens=80, or a command's name"),
    ]

    def __init__(self, stage: SessionStage, branch: Callable[[dict[str, str], int | None], None],
                 compare: Callable[[int], None]) -> None:
        """`branch` runs the session again under other settings from a step on; `compare` shows a turn beside this one.
        """
        super().__init__(stage)
        self._branch, self._compare = branch, compare

    def action_command(self) -> None:
        """Asks for a line, with completion."""
        from inspector.tui.questions import Prompt, WordSuggester, refusal_of

        able = commands_of(self.stage, "command")
        choices = {name: choice.words for name, choice in CHOICES.items()}
        values = {**choices, "attempts_scope": SCOPES, "policy": tuple(POLICIES), "simulate": ("yes", "no")}
        settings = [f"{name}={value}" for name in (*RANGES, *values) for value in values.get(name) or ("",)]
        words = WordSuggester([*STEP_FINDERS, *sorted(able), *settings], {"file": list(self.stage.run.outline.files)})
        hint = f"1 to {len(self.stage.run.view.steps):,} · turn 2 · file NAME · max_tokens=80 · a command"

        prompt = Prompt(":", hint, words=words, refusal=refusal_of(lambda line: self.read(line, able)))
        self.stage.app.push_screen(prompt, lambda typed: self.read(typed or "", able)())

    def read(self, line: str, able: Mapping[str, ActiveBinding]) -> Act:
        """The action for a line; `able` maps the ids of the active bindings to their actions. Raises `CallerError` if
        the line is not a command that works here."""
        line = line.strip()
        number = whole_number(line)
        word, _, rest = line.partition(" ")
        if not line:
            return lambda: None
        if number is not None:
            return self._step(line, number)
        if word == COMPARE and rest.strip():
            turn = _turn_number(self.stage, rest.strip())
            return lambda: self._compare(turn)
        if word in STEP_FINDERS and "=" not in line:
            return self._go_to(STEP_FINDERS[word](self.stage, rest.strip()))
        return self._settings(line) if "=" in line else command_named(
            self.stage, line, able, "a step's number, turn 2, file NAME, max_tokens=80")

    def _step(self, line: str, number: int) -> Act:
        last = len(self.stage.run.view.steps)
        if not 1 <= number <= last:
            raise CallerError(f"{in_quotes(line)} is not a step: expected 1 to {last:,}")
        return self._go_to(number - 1)

    def _go_to(self, step: int) -> Act:
        return lambda: self.stage.go(step, "")

    def _settings(self, line: str) -> Act:
        """An action that runs again under settings, written as for `inspector replay --set`."""
        try:
            stretches = parse_stretches(shlex.split(line.removeprefix("set ")))
            if len(stretches) != 1:
                raise CallerError("expected settings that all apply from one step on")
            ((since, assignments),) = stretches
            settings_of(assignments, self.stage.run.view.replay.settings)
        except (LoopError, ValueError) as why:
            raise CallerError(f"{in_quotes(line)}: {why}") from None
        return lambda: self._branch(assignments, since)


def commands_of(screen: Screen[Any], own: str) -> Mapping[str, ActiveBinding]:
    """The commands of a screen by the ids of their keys, without the prefix of the screen (as in `turns.sort`) and
    without the key of its command line (`own`). They must be looked up before a prompt takes the focus, while the keys
    of the list are active."""
    from inspector.tui.keys import active_keys

    prefix = own[: own.rfind(".") + 1]
    return {str(found.binding.id).removeprefix(prefix): found for _, found in active_keys(screen)
            if found.binding.id != own}


def command_named(screen: Screen[Any], line: str, able: Mapping[str, ActiveBinding], others: str) -> Act:
    """The action of a key, by its name or an unambiguous beginning of it. `others` says what else the line may be."""
    found = [line] if line in able else [name for name in able if name.startswith(line)]
    if len(found) != 1:
        near = found or get_close_matches(line, [*able, *STEP_FINDERS], 3, 0.6)
        meant = ((_works_elsewhere(line) if not found else "")
                 or (f"did you mean {', '.join(near[:MOST_NAMED])}?" if near else
                     f"expected {others} or a command, which tab completes"))
        raise CallerError(f"{in_quotes(line)} is not a command here; {meant}")
    binding = able[found[0]]

    def press() -> None:
        screen.run_worker(screen.app.run_action(binding.binding.action, binding.node))

    return press


def _works_elsewhere(word: str) -> str:
    """The command of another screen that begins with a word, and what it does; empty if none does, or several do."""
    from inspector.tui.keys import every_id

    named = [(name, each.tooltip) for name, each in every_id().items() if "." not in name and name.startswith(word)]
    return "{} works on another screen: {}".format(*named[0]) if len(named) == 1 else ""


def ask_line(screen: Screen[Any], own: str, what: str, number: Callable[[str], Act | None]) -> None:
    """Asks for a line on another screen: a text that `number` reads and `what` describes, or a command. `own` is the id
    of the screen's colon key."""
    from inspector.tui.questions import Prompt, WordSuggester, refusal_of

    able = commands_of(screen, own)

    def read(line: str) -> Act:
        return number(line) or command_named(screen, line.strip(), able, what)

    prompt = Prompt(":", f"{what} · a command", words=WordSuggester(sorted(able), None),
                    refusal=refusal_of(read))
    ask_operator(screen.app, prompt, lambda typed: read(typed)())


def _turn_number(stage: SessionStage, text: str) -> int:
    count, number = len(stage.run.view.turns), whole_number(text)
    if number is None or not 1 <= number <= count:
        raise CallerError(f"turn {text or 'without a number'}: expected 1 to {count:,}")
    return number


def _turn(stage: SessionStage, text: str) -> int:
    """The first step of a turn, by its number."""
    return stage.run.view.turns[_turn_number(stage, text) - 1].run.first


def _file(stage: SessionStage, text: str) -> int:
    """The first step of a file, by the beginning of its name or by a part that no other file's name has."""
    files = stage.run.outline.files
    if len(files) < 2:
        raise CallerError("this session is one file: expected several; the table of turns opens another")
    return files[file_named(files, text)]


def file_named(files: Collection[str], text: str) -> str:
    """The file with a name, by its beginning or by a part that no other file's name has. Raises `CallerError` if no
    file has such a name, or several have."""
    wanted = text.lower()
    looks: tuple[Callable[[str], bool], ...] = (
        lambda name: name.lower() == wanted, lambda name: name.lower().startswith(wanted),
        lambda name: name.lower().rpartition("/")[2].startswith(wanted), lambda name: wanted in name.lower())
    found = next((names for look in looks if (names := [name for name in files if look(name)])), [])
    if len(found) == 1:
        return found[0]
    if not found:
        near = get_close_matches(text, files, 3, 0.4)
        meant = f"; did you mean {', '.join(near)}?" if near else ""
        raise CallerError(f"no file is called {in_quotes(text)}{meant}")
    more = f" and {len(found) - MOST_NAMED:,} more" if len(found) > MOST_NAMED else ""
    raise CallerError(f"{len(found):,} files match: {', '.join(found[:MOST_NAMED])}{more}")


STEP_FINDERS: Mapping[str, Callable[[SessionStage, str], int]] = {"turn": _turn, "file": _file}
"""Word after the colon -> the function that finds the step for the rest of the line."""


# -- The line of the table of turns: the number of a row, a turn of the session, a file, or any key's action -----------


def go_to_row(turn_list: TurnList) -> None:
    """Asks for a line, and moves the cursor to the row that it names."""
    from inspector.tui.questions import Prompt, WordSuggester, refusal_of

    files = [last_name(row.file) for row in turn_list.entries if isinstance(row, TurnRow)]
    able = commands_of(turn_list.screen, "turns.go-to")
    words = WordSuggester([*ROW_FINDERS, *sorted(able)], {"file": files})
    hint = f"row 1 to {len(_turn_places(turn_list)):,} · turn 2 · file NAME · a command"
    prompt = Prompt(":", hint, words=words, refusal=refusal_of(lambda line: _row_action(turn_list, line, able)))
    turn_list.app.push_screen(prompt, lambda typed: _row_action(turn_list, typed or "", able)())


def _row_action(turn_list: TurnList, line: str, able: Mapping[str, ActiveBinding]) -> Act:
    """The action for a line. Raises `CallerError` if no listed row has this number, turn or file, and no command has
    this name."""
    line = line.strip()
    word, _, rest = line.partition(" ")
    places, number = _turn_places(turn_list), whole_number(line)
    if not line:
        return lambda: None
    if word in ROW_FINDERS:
        return partial(turn_list.choose, ROW_FINDERS[word](turn_list, rest.strip()))
    if number is None and "=" in line:
        raise CallerError(f"{in_quotes(line)}: settings are for a session, which enter opens")
    if number is None:
        return command_named(turn_list.screen, line, able, "a row's number, turn 2, file NAME")
    if not 1 <= number <= len(places):
        raise CallerError(f"{in_quotes(line)} is not a row: expected 1 to {len(places):,}")
    return partial(turn_list.choose, places[number - 1])


def _turn_places(turn_list: TurnList) -> list[int]:
    """The indices of the rows that are turns; the others are headings."""
    return [at for at, row in enumerate(turn_list.entries) if isinstance(row, TurnRow)]


def _row_of_turn(turn_list: TurnList, text: str) -> int:
    here, number = turn_list.current_row, whole_number(text)
    found = next((at for at, row in enumerate(turn_list.entries) if here is not None and isinstance(row, TurnRow)
                  and row.session == here.session and row.number == number), None)
    if found is None and here is not None and _is_copy(turn_list, here, number):
        raise CallerError(f"turn {text}: it is a copy, listed with {here.origin}")
    if found is None:
        which = in_quotes(text) if text else "without a number"
        raise CallerError(f"turn {which}: no row of this session has it")
    return found


def _is_copy(turn_list: TurnList, here: TurnRow, number: int | None) -> bool:
    """Whether a turn of the session at the cursor is left out as a copy, instead of by the filter."""
    kept = {row.number for row in turn_list.rows if row.session == here.session}
    return bool(here.copied) and number is not None and 1 <= number <= here.of and number not in kept


def _row_of_file(turn_list: TurnList, text: str) -> int:
    firsts: dict[str, int] = {}
    for at, row in enumerate(turn_list.entries):
        if isinstance(row, TurnRow):
            firsts.setdefault(row.file, at)
    return firsts[file_named(firsts, text)]


ROW_FINDERS: Mapping[str, Callable[[TurnList, str], int]] = {"turn": _row_of_turn, "file": _row_of_file}
"""Word after the colon -> the function that finds the row for the rest of the line."""
