"""Messages between screens, widgets and the app, and what the app expects of a screen.

State goes down by reactives, intent comes up by messages; containers decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual.dom import DOMNode
from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.live.headless import LiveStart
    from inspector.live.scripted import ScriptedTurn
    from inspector.report.turn_rows import TurnRow
    from inspector.tui.session_files import OpenSession, ScreenPlace


# -- What the app expects of a screen --------------------------------------------------------------------------------


@runtime_checkable
class NotingScreen(Protocol):
    """A screen with a line for what the last action has to say."""

    note: str


@runtime_checkable
class PlacedScreen(Protocol):
    """A screen that can be opened again at the same place."""

    @property
    def where(self) -> ScreenPlace:
        """The place that is looked at."""


@runtime_checkable
class TurnScreen(Protocol):
    """A screen with a turn that may not have ended."""

    @property
    def exit_code(self) -> int:
        """How the turn ended, as an exit code."""

    def asks_to_leave(self) -> bool:
        """Asks whether to leave a turn that has not ended; whether it did."""

    async def abandon(self) -> None:
        """Ends the turn, whatever is under way."""


# -- Messages --------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class StepWanted(Message):
    """The user wants to stand on this step."""

    step: int


@dataclass(eq=False, repr=False)
class StepMoved(Message):
    """The user moved by steps. From where is the screen's to know: keys may come faster than it answers."""

    by: int


@dataclass(eq=False, repr=False)
class TabWanted(Message):
    """The user wants to see this tab."""

    tab: str


@dataclass(eq=False, repr=False)
class RowOpened(Message):
    """The user opened the row of a list."""

    row: int


@dataclass(eq=False, repr=False)
class PathWanted(Message):
    """The user wants to open a session."""

    path: str
    remember: bool
    """Whether it belongs to the list of recent files; samples do not."""


@dataclass(eq=False, repr=False)
class TurnWanted(Message):
    """The user opened a turn of the table of turns."""

    row: TurnRow
    opened: OpenSession | None
    """Its session, where that is still there; else it is read again."""
    remember: bool


@dataclass(eq=False, repr=False)
class TurnsRead(Message):
    """A table of turns has read all that was named."""

    unread: Sequence[TurnRow]
    any_turn: bool


@dataclass(eq=False, repr=False)
class SessionWanted(Message):
    """The user wants to see a session that is no file."""

    opened: OpenSession


@dataclass(eq=False, repr=False)
class LiveWanted(Message):
    """The user wants to see a live turn that is ready to begin."""

    turn: LiveStart | ScriptedTurn


@dataclass(eq=False, repr=False)
class NoteWanted(Message):
    """A widget has something to say at the foot of the screen."""

    text: str


@dataclass(eq=False, repr=False)
class ActionWanted(Message):
    """The user clicked a key in the key bar."""

    action: str
    node: DOMNode
    """Where the key works."""


@dataclass(eq=False, repr=False)
class LinesPointed(Message):
    """The user clicked a line of the text, or pressed enter over those in sight."""

    first: int
    last: int
    row: int = 0
    """Of the rows of a clicked line."""
    column: int = 0
    width: int = 0
    """The width that the line is laid out in; 0 where it was not clicked."""
