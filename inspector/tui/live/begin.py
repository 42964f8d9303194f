"""The form that begins a live turn: whom to ask, what, within which limits; what cannot be used is told there.
"""

from __future__ import annotations

import shlex
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from inspector.config.settings import Settings
from inspector.live.headless import Start, Typed, start
from inspector.report.lines.spans import Role, said
from inspector.tui.widgets.fields import Cycle, Lines, Note, lines, note
from loop_core.errors import CallerError, LoopError
from loop_core.formats import FORMATS
from loop_core.wire.profiles import PROFILES

BY_ADDRESS = "by address"
ROWS: tuple[tuple[str, str, str], ...] = (
    ("model", "model", "by the server's name for it"),
    ("base", "base URL", "empty for the provider's own; http://127.0.0.1:8080"),
    ("prompt", "prompt", "what the user says"),
    ("messages", "or messages from", "a JSON file: a list of messages, or a whole request body"),
    ("tools", "tools", "a JSON file, or MODULE:ATTR with Python callables"),
    ("results", "tool results from", "a recording that answers the calls"),
    ("key_env", "key from", "the environment variable of a server of your own"),
    ("assignments", "limits", "max_tokens=64 continuation_max_attempts=5"),
)
"""Field of `Typed`, its name on the form, and what may stand there."""
EVERY = ("api", "profile", *(name for name, _, _ in ROWS))


class LiveForm(ModalScreen[Start | None]):
    """Asks for a live turn; gives None where the operator leaves."""

    DEFAULT_CSS = """
    LiveForm { align: center middle; background: $background 60%; }
    #live-form { width: 90; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; }
    #live-form { background: $surface; border: round $primary; }
    .line { height: 1; }
    .line .name { width: 20; }
    .line Input { width: 1fr; background: $panel; }
    .line Input:focus { background: $cursor; }
    .line Cycle { width: 1fr; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave without asking anybody", id="begin.leave"),
        Binding("up,shift+tab", "field(-1)", "Field before", priority=True, tooltip="The field before", id="begin.up"),
        Binding("down,tab", "field(1)", "Next field", priority=True, tooltip="The next field", id="begin.down"),
        Binding("enter", "begin", "begin", tooltip="Begin the turn: nothing is sent yet", id="begin.begin"),
    ]

    def __init__(self, settings: Settings, typed: Typed | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._typed_before = typed or Typed(next(iter(FORMATS)), "")

    def compose(self) -> ComposeResult:
        """A row for each."""
        before = self._typed_before
        with Vertical(id="live-form"):
            yield note("A live turn: each effect waits for you", Role.TITLE)
            with Horizontal(classes="line"):
                yield _named("wire format")
                yield Cycle(tuple(FORMATS), before.api, id="api")
            with Horizontal(classes="line"):
                yield _named("who speaks")
                yield Cycle((BY_ADDRESS, *sorted(PROFILES)), before.profile or BY_ADDRESS, id="profile")
            for name, words, hint in ROWS:
                with Horizontal(classes="line"):
                    yield _named(words)
                    value = getattr(before, name) or ""
                    field = Input(value if isinstance(value, str) else shlex.join(value), placeholder=hint,
                                  compact=True, id=name)
                    field.cursor_blink = False
                    yield field
            yield lines("keys come from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY… each for its own host",
                        "live-note")
            yield note("enter begins: nothing is sent yet · esc leaves · ↑ ↓ fields · ← → words")

    def on_mount(self) -> None:
        """The format first."""
        self.query_one("#api").focus()

    def action_leave(self) -> None:
        """Leaves."""
        self.dismiss(None)

    def action_field(self, by: int) -> None:
        """To the next or previous field."""
        every = [self.query_one(f"#{name}") for name in EVERY]
        here = next((at for at, each in enumerate(every) if each.has_focus), 0)
        every[(here + by) % len(every)].focus()

    @on(Input.Submitted)
    def action_begin(self) -> None:
        """Begins, unless something cannot be used."""
        try:
            begun = start(self._typed(), self._settings)
        except LoopError as why:
            self.query_one("#live-note", Lines).lines = [(said(f"✖ {why}", Role.ERROR),)]
            return
        self.dismiss(begun)

    def _typed(self) -> Typed:
        values = {name: self.query_one(f"#{name}", Input).value.strip() for name, _, _ in ROWS}
        if not values["model"]:
            raise CallerError("the model is not named")
        if bool(values["prompt"]) is bool(values["messages"]):
            raise CallerError("expected either a prompt or a file of messages")
        profile = self.query_one("#profile", Cycle).value
        return Typed(
            self.query_one("#api", Cycle).value, values["model"], values["base"],
            None if profile == BY_ADDRESS else profile, values["prompt"] or None, values["messages"] or None,
            values["tools"] or None, values["results"] or None, assignments=values["assignments"].split(),
            key_env=values["key_env"] or None,
        )


def _named(text: str) -> Note:
    made = note(text, Role.STRONG)
    made.add_class("name")
    return made
