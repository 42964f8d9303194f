"""The picker's list: sessions that can be opened, under a heading for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType

from inspector.report.lines.spans import EMPTY, Line, Role, Span, said
from inspector.tui.widgets.rows import RowList


@dataclass(frozen=True, slots=True)
class Choice:
    """A row: a session, or a heading where there is no path."""

    title: str
    path: str = ""
    story: str = ""
    provenance: str = ""
    end_state: str = ""
    remembered: bool = False
    """Whether it comes from the list of recent files."""


class Choices(RowList):
    """Sessions and headings."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="Open the session", id="choices.open"),
    ]

    def __init__(self, choices: Sequence[Choice], *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.choices = choices
        self.set_reactive(RowList.cursor, next((i for i, each in enumerate(choices) if each.path), 0))

    @property
    def count(self) -> int:
        """Sessions and headings."""
        return len(self.choices)

    def selectable(self, index: int) -> bool:
        """Headings are passed over."""
        return bool(self.choices[index].path)

    def row(self, index: int) -> Line:
        """A heading, or a session's title."""
        choice = self.choices[index]
        if not choice.path:
            return (Span(f" {choice.title}", Role.TITLE),) if choice.title else EMPTY
        here = index == self.cursor
        mark = Span(" ▶ " if here else "   ", Role.HERE)
        return (mark, said(choice.title, Role.STRONG if here else Role.PLAIN))

    @property
    def chosen(self) -> Choice:
        """The session at the cursor."""
        return self.choices[self.cursor]
