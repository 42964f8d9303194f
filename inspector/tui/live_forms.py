"""The forms for the request that waits in a live turn: its budget, and its body as JSON."""

from __future__ import annotations

import json
from typing import Any, ClassVar, NoReturn

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

from inspector.config.settings import CHOICES, INITIAL, parse_assignments
from inspector.live.driver import Driver
from inspector.report.lines.spans import Tone, safe
from inspector.tui.input_editor import TextEditor, text_field
from inspector.tui.limits_words import OTHERS, others_in_force
from inspector.tui.panels import WrappedLines, field_keys, field_name, key_note, line_input, lines, note
from loop_core.errors import CallerError, LoopError
from loop_core.turn.limits import CONTINUATION_LIMITS, DEFAULT_TOKEN_FACTOR, Limits

# -- The form for what waits: the budget of the request, and the limits of the turn from now on ----------------------
# A value is checked by the engine's own rule. A limit under which the earlier steps of the turn would have been
# different is refused, since those steps have already happened.


class BudgetForm(ModalScreen[str | None]):
    """Asks for another budget and other limits; returns the changes in words, or None if the operator leaves."""

    DEFAULT_CSS = """
    BudgetForm { align: center middle; background: $background 60%; }
    #budget { width: 90; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; }
    #budget { background: $surface; border: round $primary; }
    .row { height: 1; }
    .row .name { width: 42; }
    .row Input { width: 16; margin: 0 1 0 0; background: $panel; }
    .row Input:focus { background: $cursor; }
    .row #others { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "leave", tooltip="Leave without changing anything", id="budget.leave"),
        *field_keys("budget"),
        Binding("enter", "take", "take", tooltip="Take these", id="budget.take"),
    ]

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self._driver = driver
        asked, limits = driver.stepper.request, driver.stepper.plan.limits
        cap = asked.request.max_tokens if asked is not None else None
        self._fields = (*((INITIAL,) if asked is not None else ()), *CONTINUATION_LIMITS)
        self._before = {name: _field_text(cap if name == INITIAL else getattr(limits, name)) for name in self._fields}

    def compose(self) -> ComposeResult:
        """A row for each field."""
        with Vertical(id="budget"):
            yield note("What waits: its budget, and the limits of the turn", Tone.TITLE)
            for name in self._fields:
                with Horizontal(classes="row"):
                    yield field_name(f"{name} of this request" if name == INITIAL else name)
                    yield line_input(self._before[name], _empty(name), name)
            with Horizontal(classes="row"):
                yield field_name("other limits, NAME=VALUE")
                yield line_input("", others_in_force(self._driver.stepper.plan.limits), OTHERS)
            yield lines("a limit holds for the whole turn: one that the turn has passed already is refused",
                        "budget-note")
            yield key_note("enter takes them · esc leaves · ↑ ↓ fields")

    def on_mount(self) -> None:
        """Focuses and selects the first field."""
        first = self.query_one(f"#{self._fields[0]}", Input)
        first.focus()
        first.select_all()

    @on(Input.Submitted)
    def action_take(self) -> None:
        """Applies the typed values, unless one is invalid."""
        try:
            typed = self._read_fields()
            cap = self._cap(typed)
            names = [name for name in typed if name != INITIAL]
            limits = self._driver.stepper.plan.limits.with_values({name: typed[name] for name in names})
            self._driver.edit(limits, names, cap)
        except LoopError as why:
            self.query_one("#budget-note", WrappedLines).lines = [(safe(f"✖ {why}", Tone.ERROR),)]
            return
        self.dismiss(", ".join(f"{name} {value or 'default'}" for name, value in typed.items()) or None)

    def _read_fields(self) -> dict[str, str]:
        """The typed values that differ from those in force."""
        values = {name: self.query_one(f"#{name}", Input).value.strip() for name in self._fields}
        changed = {name: value for name, value in values.items() if value != self._before[name]}
        others = parse_assignments(self.query_one(f"#{OTHERS}", Input).value.split())
        wrong = next((name for name in others if name in CHOICES), None)
        if wrong is not None:
            raise CallerError(f"{wrong} is not a limit")
        return {**{name: value or _default(name) for name, value in changed.items()}, **others}

    def _cap(self, fields: dict[str, str]) -> int | None:
        asked = self._driver.stepper.request
        if INITIAL in fields:
            cap: int | None = CHOICES[INITIAL].parse(fields[INITIAL])
            return cap
        return asked.request.max_tokens if asked is not None else None


def _field_text(value: int | None) -> str:
    return "" if value is None else str(value)


def _default(name: str) -> str:
    return "" if name == INITIAL else _field_text(getattr(Limits(), name)) or "none"


def _empty(name: str) -> str:
    if name == INITIAL:
        return "not set"
    return _field_text(getattr(Limits(), name)) or f"{DEFAULT_TOKEN_FACTOR} x max_tokens"


# -- The editor for a request's body ---------------------------------------------------------------------------------
# The body is shown as the JSON that will be sent. Invalid JSON is refused with line and column of the error.


class NotJSONError(ValueError):
    """An error in a JSON text, with line and column counted from 1."""

    def __init__(self, why: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {why}")
        self.line, self.column = line, column


class BodyEditor(TextEditor[str]):
    """Asks for another body; returns the changes in words, or None if the operator leaves."""

    DEFAULT_CSS = """
    BodyEditor { align: center middle; background: $background 60%; }
    #body-box { width: 100%; height: 100%; padding: 0 1; background: $surface; border: round $primary; }
    #body-text { height: 1fr; border: none; padding: 0; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave without changing anything", id="body.leave", priority=True),
        Binding("ctrl+s,f2", "take", "take", tooltip="Take the body as it stands", id="body.take", priority=True),
    ]

    def __init__(self, driver: Driver) -> None:
        asked = driver.stepper.request
        super().__init__("" if asked is None or asked.body is None else json.dumps(asked.body, indent=2,
                                                                                   ensure_ascii=False))
        self._driver = driver

    def compose(self) -> ComposeResult:
        """A title, the text, its errors, the keys."""
        with Vertical(id="body-box"):
            yield note("The body of the request, as it will be sent", Tone.TITLE)
            yield text_field(self._before, "body-text", show_line_numbers=True, tab_behavior="indent")
            yield lines("", "body-note")
            yield key_note("^s or F2 takes it · esc leaves")

    def on_mount(self) -> None:
        """Focuses the text."""
        self.query_one(TextArea).focus()



    def action_take(self) -> None:
        """Applies the text, unless it cannot be sent."""
        area = self.query_one(TextArea)
        try:
            self._driver.edit_body(body_of(area.text))
        except NotJSONError as why:
            area.move_cursor((why.line - 1, why.column - 1))
            self._say(f"✖ {why}", Tone.ERROR)
            return
        except LoopError as why:
            self._say(f"✖ {why}", Tone.ERROR)
            return
        self.dismiss("the body was edited" if area.text != self._before else None)


def body_of(text: str) -> dict[str, Any]:
    """The JSON object of a text.

    Raises:
        NotJSONError: the text is no JSON object; the error has its place.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as why:
        raise NotJSONError(why.msg, why.lineno, why.colno) from None
    except RecursionError:
        raise NotJSONError("nested too deeply", 1, 1) from None
    except _MisplacedError as why:
        line, column = _place(text, why.word)
        raise NotJSONError(why.why, line, column) from None
    if not isinstance(value, dict):
        raise NotJSONError("expected an object", 1, 1)
    return value


class _MisplacedError(Exception):
    def __init__(self, word: str, why: str) -> None:
        super().__init__(why)
        self.word, self.why = word, why


def _refuse_constant(word: str) -> NoReturn:
    raise _MisplacedError(word, f"{word} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _MisplacedError(json.dumps(name, ensure_ascii=False), f"the key {name!r} occurs twice")
        found[name] = value
    return found


def _place(text: str, word: str) -> tuple[int, int]:
    """Line and column of the last occurrence of a word."""
    at = max(0, text.rfind(word))
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
