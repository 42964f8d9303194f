"""The form for what waits: the budget of the request, and the limits of the turn from now on.

A value is checked by the engine's own rule; one under which the turn would have gone another way before is refused.
"""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from inspector.live.driver import Driver
from inspector.report.lines.spans import Role, said
from inspector.settings import CHOICES, INITIAL, parse_assignments
from inspector.tui.fields import OTHERS
from inspector.tui.widgets.lines import Lines, lines
from inspector.tui.widgets.note import note
from loop_core.errors import CallerError, LoopError
from loop_core.limits import CONTINUATION_LIMITS, DEFAULT_TOKEN_FACTOR, Limits


class BudgetForm(ModalScreen[str | None]):
    """Asks for another budget and other limits; gives what was changed in words, None where the operator leaves."""

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
        Binding("escape", "leave", "leave", tooltip="Leave without changing anything", id="budget.leave"),
        Binding("up,shift+tab", "field(-1)", "Field before", priority=True, tooltip="The field before", id="budget.up"),
        Binding("down,tab", "field(1)", "Next field", priority=True, tooltip="The next field", id="budget.down"),
        Binding("enter", "take", "take", tooltip="Take these", id="budget.take"),
    ]

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self._driver = driver
        asked, limits = driver.stepper.asked, driver.stepper.plan.limits
        cap = asked.request.max_tokens if asked is not None else None
        self._fields = (*((INITIAL,) if asked is not None else ()), *CONTINUATION_LIMITS)
        self._before = {name: _written(cap if name == INITIAL else getattr(limits, name)) for name in self._fields}

    def compose(self) -> ComposeResult:
        """A row for each."""
        with Vertical(id="budget"):
            yield note("What waits: its budget, and the limits of the turn", Role.TITLE)
            for name in self._fields:
                with Horizontal(classes="row"):
                    words = note(f"{name} of this request" if name == INITIAL else name, Role.STRONG)
                    words.add_class("name")
                    yield words
                    field = Input(self._before[name], placeholder=_empty(name), compact=True, id=name)
                    field.cursor_blink = False
                    yield field
            with Horizontal(classes="row"):
                words = note("other limits, NAME=VALUE", Role.STRONG)
                words.add_class("name")
                yield words
                others = Input("", placeholder="max_tool_steps=3 max_resumes=2", compact=True, id=OTHERS)
                others.cursor_blink = False
                yield others
            yield lines("a limit holds for the whole turn: one that the turn has passed already is refused",
                        "budget-note")
            yield note("enter takes them · esc leaves · ↑ ↓ fields")

    def on_mount(self) -> None:
        """The first field is ready to be typed over."""
        first = self.query_one(f"#{self._fields[0]}", Input)
        first.focus()
        first.select_all()

    def action_leave(self) -> None:
        """Leaves."""
        self.dismiss(None)

    def action_field(self, by: int) -> None:
        """To the next or previous field."""
        every = [self.query_one(f"#{name}", Input) for name in (*self._fields, OTHERS)]
        here = next((at for at, each in enumerate(every) if each.has_focus), 0)
        every[(here + by) % len(every)].focus()

    @on(Input.Submitted)
    def action_take(self) -> None:
        """Takes what was typed, unless it cannot be."""
        try:
            typed = self._typed()
            cap = self._cap(typed)
            names = [name for name in typed if name != INITIAL]
            limits = self._driver.stepper.plan.limits.with_set({name: typed[name] for name in names})
            self._driver.edit(limits, names, cap)
        except LoopError as why:
            self.query_one("#budget-note", Lines).lines = [(said(f"✖ {why}", Role.ERROR),)]
            return
        self.dismiss(", ".join(f"{name} {value or 'default'}" for name, value in typed.items()) or None)

    def _typed(self) -> dict[str, str]:
        """What differs from what is in force."""
        values = {name: self.query_one(f"#{name}", Input).value.strip() for name in self._fields}
        changed = {name: value for name, value in values.items() if value != self._before[name]}
        others = parse_assignments(self.query_one(f"#{OTHERS}", Input).value.split())
        wrong = next((name for name in others if name in CHOICES), None)
        if wrong is not None:
            raise CallerError(f"{wrong} is no limit")
        return {**{name: value or _default(name) for name, value in changed.items()}, **others}

    def _cap(self, typed: dict[str, str]) -> int | None:
        asked = self._driver.stepper.asked
        if INITIAL in typed:
            cap: int | None = CHOICES[INITIAL].read(typed[INITIAL])
            return cap
        return asked.request.max_tokens if asked is not None else None


def _written(value: int | None) -> str:
    return "" if value is None else str(value)


def _default(name: str) -> str:
    return "" if name == INITIAL else _written(getattr(Limits(), name)) or "none"


def _empty(name: str) -> str:
    if name == INITIAL:
        return "not set"
    return _written(getattr(Limits(), name)) or f"{DEFAULT_TOKEN_FACTOR} x max_tokens"
