"""A short list to choose from: a word and what it means on each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from inspector.report.lines.spans import Line, Role, Span, said
from inspector.tui.messages import RowOpened
from inspector.tui.widgets.note import note
from inspector.tui.widgets.rows import RowList

MOST = 18
"""Rows that are seen at once."""


class Words(RowList):
    """Rows of a word and its meaning."""

    def __init__(self, rows: Sequence[tuple[str, str]], start: int = 0) -> None:
        super().__init__(id="words")
        self.rows = rows
        self._columns = max((len(word) for word, _ in rows), default=0)
        self.set_reactive(RowList.cursor, start)

    @property
    def count(self) -> int:
        """All rows."""
        return len(self.rows)

    def row(self, index: int) -> Line:
        """A word and its meaning."""
        word, about = self.rows[index]
        here = index == self.cursor
        return (Span("▶ " if here else "  ", Role.HERE), Span(f"{word:<{self._columns}}  ", Role.KEY), said(about))


class Choose(ModalScreen[str | None]):
    """Asks for one of them; gives None where the user leaves."""

    DEFAULT_CSS = """
    Choose { align: center middle; background: $background 60%; }
    #choose { width: 80; max-width: 100%; height: auto; max-height: 100%; padding: 0 2; }
    #choose { background: $surface; border: round $primary; }
    #words { height: auto; background: $surface; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "leave", tooltip="Leave without doing anything", id="choose.leave"),
    ]

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], start: int = 0) -> None:
        super().__init__()
        self._title, self._words = title, Words(rows, start)

    def compose(self) -> ComposeResult:
        """A title, the rows, the keys."""
        with Vertical(id="choose"):
            yield note(self._title, Role.TITLE)
            yield self._words
            yield note("enter chooses · esc leaves")

    def on_mount(self) -> None:
        """The list in hand."""
        self._words.styles.height = max(1, min(MOST, self._words.count))
        self._words.focus()

    def on_row_opened(self, message: RowOpened) -> None:
        """The one at the cursor."""
        message.stop()
        self.dismiss(self._words.rows[message.row][0])

    def action_leave(self) -> None:
        """Leaves."""
        self.dismiss(None)
