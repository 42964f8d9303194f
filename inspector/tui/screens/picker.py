"""The picker: the sample sessions that come with the program, and the files that were opened before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from inspector.report.lines.spans import Line, Role, Span, said
from inspector.tui.messages import KeyWanted, RowOpened
from inspector.tui.widgets.choices import Choices, PathWanted
from inspector.tui.widgets.keybar import KeyBar
from inspector.tui.widgets.note import note
from textual.reactive import reactive


@dataclass(frozen=True, slots=True)
class Choice:
    """A row that can be opened."""

    path: str
    title: str
    story: str = ""
    end_state: str = ""


class PickerScreen(Screen[None]):
    """A list of sessions."""
