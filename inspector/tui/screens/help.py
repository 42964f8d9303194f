"""The help: every key that works on the screen below, derived from its bindings, grouped by where it works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen

from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import EMPTY, Line, Role, Span
from inspector.tui.keys import active
from inspector.tui.widgets.note import note
from inspector.tui.widgets.text_view import TextView

KEYS = 16
"""Columns of the keys."""
GLYPHS: Sequence[tuple[str, str]] = (
    ("│ ▶ ┆", "past, here, still ahead"),
    ("✓ ✂ ▣ ⊘ ╳", "a clean end, cut, held, filtered or rejected, failed or interrupted"),
    ("◇ ◌ → ▷", "evaluated, a limit is asked, a request is sent, calls run"),
    ("▰▱", "spent of a limit"),
)


class HelpScreen(ModalScreen[None]):
    """All keys."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    #help { width: 80; max-width: 100%; height: 90%; padding: 0 2; background: $surface; border: round $primary; }
    #help TextView { height: 1fr; background: $surface; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "leave", "close", tooltip="Close the help", id="help.leave"),
    ]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._lines = lines(below)

    def compose(self) -> ComposeResult:
        """A title and the list."""
        with Vertical(id="help"):
            yield note("Keys  (esc closes, j and k scroll)", Role.TITLE)
            text = TextView()
            text.set_reactive(TextView.sheet, Listed(self._lines))
            yield text

    def action_leave(self) -> None:
        """Closes."""
        self.dismiss(None)


def lines(screen: Screen[object]) -> list[Line]:
    """The keys of a screen: of the focused pane, of this screen, of the whole app."""
    groups: dict[str, list[tuple[str, ActiveBinding]]] = {}
    for keys, found in active(screen):
        title = "Everywhere" if found.node is screen.app else "This screen" if found.node is screen else "This pane"
        groups.setdefault(title, []).append((keys, found))
    made: list[Line] = []
    for title in ("This screen", "This pane", "Everywhere"):
        if title in groups:
            made += [*([EMPTY] if made else []), (Span(title, Role.TITLE),)]
            made += [_row(keys, found.binding.tooltip or found.binding.description) for keys, found in groups[title]]
    made += [EMPTY, (Span("Marks", Role.TITLE),), *(_row(glyphs, words) for glyphs, words in GLYPHS)]
    return made


def _row(keys: str, words: str) -> Line:
    return (Span(f"{keys:<{KEYS}}", Role.KEY), Span(words))
