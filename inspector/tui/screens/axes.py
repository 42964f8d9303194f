"""The line in which the axes of a grid are typed: how many cells they make is said beside it, or what is wrong."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input

from inspector.report.lines.spans import Role, said
from inspector.tui.screens.prompt import Prompt
from inspector.tui.widgets.note import Note, note
from inspector.tune.axes import counted, parse_axes
from loop_core.errors import CallerError


class AxesPrompt(Prompt):
    """Asks for axes; gives the text, which can be read, or None where the user leaves."""

    DEFAULT_CSS = """
    AxesPrompt { align: left bottom; background: $background 0%; }
    #axes-note { height: 1; background: $panel; padding: 0 1; }
    """

    def __init__(self, value: str) -> None:
        super().__init__("grid", "attempts=0..6 max_tokens=64,128,256", value)

    def compose(self) -> ComposeResult:
        """What is known of the line, and the line."""
        yield note("", id="axes-note")
        yield from super().compose()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self.accepts(event.value)

    def accepts(self, text: str) -> bool:
        """Not one that cannot be read."""
        try:
            axes = parse_axes(text.split())
        except CallerError as why:
            self._say(f"✖ {str(why).removeprefix('--grid ')}", Role.ERROR)
            return False
        cells = counted(axes)
        many = f"{cells:,} cell{'' if cells == 1 else 's'}; a list, 1..6, 64..512/64 in steps, 64..4096*2 doubled"
        self._say(many if axes else "empty: attempts by budgets around the recorded max_tokens", Role.DIM)
        return True

    def _say(self, text: str, role: Role) -> None:
        self.query_one("#axes-note", Note).line = (said(text, role),)
