"""The breakpoints: a line each, on or off, with how often it stops; below them, what would stop at steps like this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from inspector.report.filters import FilterError
from inspector.report.lines.spans import Line, Role, Span, said
from inspector.tui.messages import RowOpened
from inspector.tui.session.base import Breakpoint, read
from inspector.tui.widgets.fields import Note, note
from inspector.tui.widgets.rows import RowList

Count = Callable[[Breakpoint], int]


class Stops(RowList):
    """Breakpoints, then suggestions."""

    def __init__(self, stops: Sequence[Breakpoint], offered: Sequence[str], count: Count) -> None:
        super().__init__(id="stops")
        self.stops, self.offered = list(stops), list(offered)
        self._count_of = count
        self._counts: dict[str, int] = {}

    @property
    def count(self) -> int:
        """All rows."""
        return len(self.stops) + len(self.offered)

    def hits(self, stop: Breakpoint) -> int:
        """How often a breakpoint stops; counted once."""
        if stop.text not in self._counts:
            self._counts[stop.text] = self._count_of(stop)
        return self._counts[stop.text]

    def row(self, index: int) -> Line:
        """A breakpoint, or an offer."""
        here = Span("▶ " if index == self.cursor else "  ", Role.HERE)
        if index >= len(self.stops):
            return (here, Span("+ ", Role.DIM), said(self.offered[index - len(self.stops)], Role.DIM),
                    Span("  enter sets it", Role.DIM))
        stop = self.stops[index]
        count = self.hits(stop)
        return (here, Span("● on  " if stop.enabled else "○ off ", Role.ERROR if stop.enabled else Role.DIM),
                said(stop.text, Role.STRONG if stop.enabled else Role.DIM),
                Span(f"  stops {count:,} time{'' if count == 1 else 's'}", Role.DIM))


class BreakpointList(ModalScreen[Sequence[Breakpoint] | None]):
    """Sets, switches and removes breakpoints; gives all of them where the user closes it."""

    DEFAULT_CSS = """
    BreakpointList { align: center middle; background: $background 60%; }
    #breakpoints { width: 80; max-width: 100%; height: auto; max-height: 100%; padding: 0 2; }
    #breakpoints { background: $surface; border: round $primary; }
    #stops { height: auto; max-height: 16; background: $surface; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,b", "leave", "close", tooltip="Close; what was changed holds", id="stops.leave"),
        Binding("space,enter", "switch", "on or off", tooltip="Switch it on or off; set what is offered",
                id="stops.switch", priority=True),
        Binding("a", "add", "add", tooltip="Type a breakpoint: any filter expression", id="stops.add"),
        Binding("d,delete", "remove", "remove", tooltip="Remove it", id="stops.remove"),
    ]

    def __init__(self, stops: Sequence[Breakpoint], offered: Sequence[str], count: Count) -> None:
        super().__init__()
        self._list = Stops(stops, offered, count)

    def compose(self) -> ComposeResult:
        """A title, the rows, the keys."""
        with Vertical(id="breakpoints"):
            yield note("Breakpoints", Role.TITLE)
            yield self._list
            yield note("", id="stops-note")
            yield note("space on/off · a type one · d remove · esc close, then c runs to the next")

    def on_mount(self) -> None:
        """The list in hand."""
        self._resize()
        self._list.focus()

    def _resize(self) -> None:
        self._list.styles.height = max(1, min(16, self._list.count))
        self._list.resized()

    def action_leave(self) -> None:
        """Closes."""
        self.dismiss(tuple(self._list.stops))

    def on_row_opened(self, message: RowOpened) -> None:
        """A double click does what enter does."""
        message.stop()
        self.action_switch()

    def action_switch(self) -> None:
        """On or off; an offer becomes a breakpoint."""
        rows, index = self._list, self._list.cursor
        if index < len(rows.stops):
            stop = rows.stops[index]
            rows.stops[index] = Breakpoint(stop.text, not stop.enabled)
            rows.refresh()
        elif index < rows.count:
            self._add(rows.offered.pop(index - len(rows.stops)))

    def action_remove(self) -> None:
        """Takes it away."""
        rows, index = self._list, self._list.cursor
        if index < len(rows.stops):
            del rows.stops[index]
            rows.cursor = max(0, min(index, rows.count - 1))
            self._resize()

    def action_add(self) -> None:
        """Asks for an expression."""
        from inspector.tui.screens.prompt import Prompt

        self.app.push_screen(Prompt("break at", "stop:max_tokens held · state:Abort* · budget>=80%"), self._typed)

    def _typed(self, text: str | None) -> None:
        if text is None or not text.strip():
            return
        try:
            read(text.strip())
        except FilterError as why:
            self.query_one("#stops-note", Note).line = (said(str(why), Role.ERROR),)
            return
        self.query_one("#stops-note", Note).line = ()
        self._add(text.strip())

    def _add(self, text: str) -> None:
        if all(each.text != text for each in self._list.stops):
            self._list.stops.append(Breakpoint(text))
        self._list.cursor = len(self._list.stops) - 1
        self._resize()
