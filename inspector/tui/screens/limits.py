"""The form: the four limits and the initial max_tokens, what is in force now, and a field to try another value in.

Gives the assignments that were changed. Each value is checked by the engine's own rule, and what it says stands beside
the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from inspector.report.lines.spans import Role, Span
from inspector.settings import INITIAL, Settings, settings_of
from inspector.tui.opening import Run
from inspector.tui.widgets.note import Note, note
from inspector.tui.widgets.runs import Runs
from loop_core.errors import CallerError
from loop_core.limits import CONTINUATION_LIMITS, DEFAULT_TOKEN_FACTOR, Limits
from loop_core.turn import Turn

FIELDS = (*CONTINUATION_LIMITS, INITIAL)


class LimitsForm(ModalScreen[dict[str, str] | None]):
    """Asks for other limits; gives None where the user leaves."""

    DEFAULT_CSS = """
    LimitsForm { align: center middle; background: $background 60%; }
    #form { width: 80; max-width: 100%; height: auto; max-height: 100%; padding: 0 2; }
    #form { background: $surface; border: round $primary; }
    .field { height: 1; }
    .field Input { width: 18; margin: 0 2 0 2; background: $panel; }
    .field Input:focus { background: $cursor; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave without running", id="form.leave"),
        Binding("up,shift+tab", "field(-1)", "Field before", priority=True, tooltip="The field before", id="form.up"),
        Binding("down,tab", "field(1)", "Next field", priority=True, tooltip="The next field", id="form.down"),
    ]

    def __init__(self, runs: Sequence[Run], current: int, step: int) -> None:
        super().__init__()
        self._runs, self._current = runs, current
        self._turn = runs[current].view.shown(step).turn

    def compose(self) -> ComposeResult:
        """A field for each limit, then the runs that there are."""
        with Vertical(id="form"):
            yield note("Run the recording under other limits", Role.TITLE, id="form-title")
            for name in FIELDS:
                yield note(f"{name}{' of the first request' if name == INITIAL else ''}", Role.STRONG)
                with Horizontal(classes="field"):
                    hint = default_of(self._turn, name)
                    field = Input(value_of(self._turn, name), placeholder=hint, compact=True, id=name)
                    field.cursor_blink = False
                    yield field
                    yield note(about(self._turn, name), id=f"note-{name}")
            yield note("Runs", Role.TITLE)
            yield Runs(self._runs, self._current)
            yield note("Over a recording, max_tokens changes only the token cap derived from it.")
            yield note("enter runs · esc leaves · ↑ ↓ go between fields")

    def on_mount(self) -> None:
        """The first field is ready to be typed over."""
        first = self.query_one(f"#{FIELDS[0]}", Input)
        first.focus()
        first.select_all()

    def action_leave(self) -> None:
        """Leaves."""
        self.dismiss(None)

    def action_field(self, by: int) -> None:
        """To the next or previous field."""
        fields = [self.query_one(f"#{name}", Input) for name in FIELDS]
        here = next((i for i, each in enumerate(fields) if each.has_focus), 0)
        fields[(here + by) % len(fields)].focus()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        if event.input.id is not None:
            self._say(event.input.id, event.value)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        typed = {name: self.query_one(f"#{name}", Input).value for name in FIELDS}
        wrong = [name for name, value in typed.items() if self._say(name, value)]
        if wrong:
            self.query_one(f"#{wrong[0]}", Input).focus()
            return
        self.dismiss({name: value for name, value in typed.items() if differs(self._turn, name, value)})

    def _say(self, name: str, value: str) -> bool:
        """Puts what is wrong with a value beside its field, or what is known of it; whether it is wrong."""
        problem = problem_of(name, value)
        line = Span(about(self._turn, name), Role.DIM) if problem is None else Span(f"✖ {problem}", Role.ERROR)
        self.query_one(f"#note-{name}", Note).line = (line,)
        return problem is not None


def in_force(turn: Turn, name: str) -> int | None:
    """The value of a limit, or of the initial max_tokens, in a turn."""
    if name == INITIAL:
        return turn.request.max_tokens
    value: int | None = getattr(turn.limits, name)
    return value


def value_of(turn: Turn, name: str) -> str:
    """What the field holds at first."""
    value = in_force(turn, name)
    return "" if value is None else f"{value}"


def default_of(turn: Turn, name: str) -> str:
    """What an empty field means."""
    if name == INITIAL:
        return "as recorded"
    return "default" if getattr(Limits(), name) is None else f"{getattr(Limits(), name)}"


def about(turn: Turn, name: str) -> str:
    """What is known of a limit: what is in force, and the default."""
    value = in_force(turn, name)
    if name == INITIAL:
        return "now: not set in the request" if value is None else f"now {value:,}"
    default = getattr(Limits(), name)
    if default is not None:
        return f"now {value:,} · default {default:,}"
    cap = turn.token_cap
    if cap is None:
        return f"no bound now: {DEFAULT_TOKEN_FACTOR} × max_tokens, not set"
    return f"now {cap:,} · default {DEFAULT_TOKEN_FACTOR} × max_tokens"


def differs(turn: Turn, name: str, value: str) -> bool:
    """Whether a typed value is another than the one in force; an empty field means the default where there is one."""
    plain = value.strip().replace(",", "").replace("_", "")
    return plain != value_of(turn, name)


def problem_of(name: str, value: str) -> str | None:
    """What the engine says against a value; None where it takes it."""
    try:
        settings_of({name: value}, Settings())
    except CallerError as why:
        return str(why).removeprefix(f"{name}: ")
    return None
