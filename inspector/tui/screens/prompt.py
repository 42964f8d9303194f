"""One line to type, at the foot of the screen: a search, or the number of a step."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Label


class Prompt(ModalScreen[str | None]):
    """Asks for one line; gives None where the user leaves."""

    DEFAULT_CSS = """
    Prompt { align: left bottom; background: $background 0%; }
    #prompt { height: 1; background: $panel; }
    #prompt-word { width: auto; background: $primary; color: $background; text-style: bold; }
    #prompt-input { width: 1fr; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave without doing anything", id="prompt.leave"),
    ]

    def __init__(self, word: str, hint: str, value: str = "") -> None:
        super().__init__()
        self._word, self._hint, self._value = word, hint, value

    def compose(self) -> ComposeResult:
        """The word and the line."""
        with Horizontal(id="prompt"):
            yield Label(f" {self._word} ", id="prompt-word", markup=False)
            field = Input(self._value, placeholder=self._hint, compact=True, id="prompt-input")
            field.cursor_blink = False
            yield field

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if self.accepts(event.value):
            self.dismiss(event.value)

    def accepts(self, text: str) -> bool:
        """Whether the line may be handed over; one that may not be says why itself."""
        return True

    def action_leave(self) -> None:
        """Leaves."""
        self.dismiss(None)
