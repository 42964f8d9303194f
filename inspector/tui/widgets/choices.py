"""The picker's list: sessions that can be opened, under a heading for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Region

from inspector.report.lines.spans import EMPTY, Line, Role, Span, said
from inspector.tui.widgets.rows import RowList
from loop_core.frozen import frozen

VERDICT = 52
"""Columns of a title that a verdict follows."""
STORY = 24
"""Columns of a verdict that the beginning of a story follows, where there is room."""


@frozen
class Choice:
    """A row: a session, or a heading where there is no path."""

    title: str
    path: str = ""
    story: str = ""
    provenance: str = ""
    end_state: str = ""
    remembered: bool = False
    """Whether it comes from the list of recent files."""
    verdict: str = ""
    """What is known of how it ended, at the end of the row."""
    role: Role = Role.PLAIN
    """How grave that is."""
    unread: bool = False
    """Whether its verdict is still to come."""


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
        title = said(choice.title, Role.STRONG if here else Role.PLAIN)
        if not choice.verdict:
            return (mark, title)
        gap = " " * max(2, VERDICT - len(title.text))
        verdict = said(choice.verdict, choice.role, 60)
        rest = " " * max(2, STORY - len(verdict.text))
        return (mark, title, Span(gap), verdict, Span(rest), said(choice.story, Role.DIM, 80))

    def fill(self, choice: Choice) -> bool:
        """Puts a row in the place of that with the same path; whether it is the one at the cursor."""
        index = next((i for i, each in enumerate(self.choices) if each.path == choice.path and each.unread), None)
        if index is None:
            return False
        self.choices = [*self.choices[:index], choice, *self.choices[index + 1 :]]
        self.refresh(Region(0, index - int(self.scroll_offset.y), self.size.width, 1))
        return index == self.cursor

    @property
    def chosen(self) -> Choice:
        """The session at the cursor."""
        return self.choices[self.cursor]
