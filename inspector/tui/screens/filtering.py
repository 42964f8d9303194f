"""The filter's line at the foot of the screen: what it keeps is shown while it is typed, a mistake with its column."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.timer import Timer
from textual.widgets import Input

from inspector.report.lines.spans import Role, said
from inspector.tui.screens.prompt import Prompt
from inspector.tui.widgets.note import Note, note

PAUSE = 0.12
"""Seconds without a key after which the list is narrowed."""


class FilterPrompt(Prompt):
    """Asks for an expression; gives None where the user leaves."""

    DEFAULT_CSS = """
    FilterPrompt { align: left bottom; background: $background 0%; }
    #filter-note { height: 1; background: $panel; padding: 0 1; }
    """

    def __init__(self, value: str, narrow: Callable[[str], str]) -> None:
        super().__init__("filter", "stop:max_tokens held attempt>1 tool:write_* ~t text  & | ! ( )", value)
        self._narrow = narrow
        self._waiting: Timer | None = None

    def compose(self) -> ComposeResult:
        """The word, the line, and what it keeps."""
        yield note("an empty filter shows all steps", id="filter-note")
        yield from super().compose()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        if self._waiting is not None:
            self._waiting.stop()
        self._waiting = self.set_timer(PAUSE, lambda: self._look(event.value))

    def _look(self, text: str) -> bool:
        says = self._narrow(text)
        wrong = says.startswith("column ")
        self.query_one("#filter-note", Note).line = (said(says, Role.ERROR if wrong else Role.DIM),)
        return not wrong

    def accepts(self, text: str) -> bool:
        """Not one that cannot be read."""
        return self._look(text)
