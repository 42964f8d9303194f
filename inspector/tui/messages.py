"""The messages between screens, widgets and the app, the interfaces that the app expects of screens, and questions to
the operator.

A container passes state down to its widgets as reactive attributes. A widget reports what the operator wants as a
message, and the container decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from textual.app import App
from textual.dom import DOMNode
from textual.message import Message
from textual.screen import Screen, ScreenResultType
from textual.timer import Timer
from textual.worker import get_current_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspector.live.headless import LiveStart
    from inspector.live.scripted import ScriptedTurn
    from inspector.report.turn_rows import TurnRow
    from inspector.tui.session_files import OpenSession, ScreenPlace


SORTING, FILTERING, JOINING = UNDER_WAY = (
    "sorting…", "filtering…", "reading all files as one session… · esc gives up")
"""The notes about work in a thread: the end of the work removes them, and no key does."""


# -- What the app expects of a screen --------------------------------------------------------------------------------


@runtime_checkable
class NotingScreen(Protocol):
    """A screen with a line for notes about the last action."""

    note: str


@runtime_checkable
class PlacedScreen(Protocol):
    """A screen that can be reopened at the same place."""

    @property
    def where(self) -> ScreenPlace:
        """The current place."""


@runtime_checkable
class TabbedScreen(Protocol):
    """A screen whose views are tabs."""

    open_tab: str


@runtime_checkable
class RunsScreen(Protocol):
    """A screen that lists the runs of the session below it."""

    def list_again(self) -> None:
        """Lists the runs of another tree."""


@runtime_checkable
class KeyLock(Protocol):
    """An object that can lock some keys."""

    def why_locked(self, action: str) -> str:
        """When the key of an action will work; empty if nothing locks it."""


@runtime_checkable
class LockingScreen(Protocol):
    """A screen on which some keys work only later."""

    controls: KeyLock


NOT_SEARCHED = "nothing was searched yet: / searches"
ONE_RUN = "there is only the original run; e makes another"
NO_FILTER = "filter not applied"
"""The remark on a view over all turns that was opened from a table with a filter."""


@runtime_checkable
class ViewedScreen(Protocol):
    """A screen that may have been opened only to show a view over it."""

    for_view: bool
    """Whether closing the view closes this screen too."""


@runtime_checkable
class TurnScreen(Protocol):
    """A screen with a turn that may be unfinished."""

    @property
    def exit_code(self) -> int:
        """The end of the turn as an exit code."""

    def asks_to_leave(self) -> bool:
        """Asks whether to leave an unfinished turn; returns whether it asked."""

    async def abandon(self) -> None:
        """Cancels the turn, whatever is in progress."""


class PassingScreen(Screen[None]):
    """A screen that only leads to another, so that going back skips it."""


def goes_back(app: App[Any]) -> bool:
    """Whether there is a screen to go back to. Textual cannot switch away from an app's first screen."""
    return len(app.screen_stack) > 1 and not isinstance(app.screen_stack[-2], PassingScreen)


# -- Questions -------------------------------------------------------------------------------------------------------

Reply = TypeVar("Reply")


def ask_operator(app: App[Any], question: Screen[Reply | None], act: Callable[[Reply], object]) -> None:
    """Shows a question, and calls `act` with its answer, unless the operator leaves without an answer."""
    def answer_or_leave(answer: Reply | None) -> None:
        if answer is not None:
            act(answer)

    app.push_screen(question, answer_or_leave)


Result = TypeVar("Result")


def after_pause(form: Screen[ScreenResultType], waiting: Timer | None, act: Callable[[], object]) -> Timer:
    """Calls `act` once no key has come for 0.15 seconds; an earlier call that still waits is dropped."""
    if waiting is not None:
        waiting.stop()
    return form.set_timer(0.15, act)


MANY_STEPS = 2_000
"""From this number of steps on a thread looks for those that a filter or a breakpoint wants: the steps of a long
recording are made again for it."""


def run_in_thread(
    screen: Screen[Any], make: Callable[[], Result], show: Callable[[Result], object], group: str = "made"
) -> None:
    """Makes a value in a thread, and shows it unless the screen was closed, or the same group was asked again, in the
    meantime."""
    def work() -> None:
        worker, made = get_current_worker(), make()
        if not worker.is_cancelled:
            # Checked again in the app's own thread, which may have left the screen or asked again.
            screen.app.call_from_thread(lambda: None if worker.is_cancelled else show(made))

    screen.run_worker(work, thread=True, exclusive=True, group=group)


# -- Messages --------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class StepWanted(Message):
    """The user wants to go to this step."""

    step: int


@dataclass(eq=False, repr=False)
class StepMoved(Message):
    """The user wants to move by a number of steps. There is no target, because keys may be faster than the screen."""

    by: int


@dataclass(eq=False, repr=False)
class TabWanted(Message):
    """The user wants to open this tab."""

    tab: str


@dataclass(eq=False, repr=False)
class RowOpened(Message):
    """The user opened the row of a list."""

    row: int


@dataclass(eq=False, repr=False)
class PathWanted(Message):
    """The user wants to open a session."""

    path: str


@dataclass(eq=False, repr=False)
class TurnWanted(Message):
    """The user opened a turn of the table of turns."""

    row: TurnRow
    session: OpenSession | None
    """The turn's session, if it is still in memory; else it is read again."""
    remember: bool
    """Whether the file joins the list of recent files; a sample does not."""
    tab: str = ""
    """The tab to open; empty for the first one."""
    action: str = ""
    """The action to carry out on the turn; empty for none."""


@dataclass(eq=False, repr=False)
class TurnsRead(Message):
    """A table of turns has read all its inputs."""

    unread: Sequence[TurnRow]
    any_turn: bool


@dataclass(eq=False, repr=False)
class SessionWanted(Message):
    """The user wants to open a session that is not a file."""

    session: OpenSession


@dataclass(eq=False, repr=False)
class LiveWanted(Message):
    """The user wants to open a live turn."""

    turn: LiveStart | ScriptedTurn


@dataclass(eq=False, repr=False)
class NoteWanted(Message):
    """A widget wants to show a note at the foot of the screen."""

    text: str


@dataclass(eq=False, repr=False)
class ActionWanted(Message):
    """The user clicked a key, such as one in the key bar."""

    action: str
    node: DOMNode
    """The widget or screen to which the action belongs."""


@dataclass(eq=False, repr=False)
class LinesPointed(Message):
    """The user clicked a line of the text, or pressed enter over the visible lines."""

    first: int
    last: int
    row: int = 0
    """The index of the clicked row among the rows of a wrapped line."""
    column: int = 0
    width: int = 0
    """The width to which the line is wrapped; 0 if no line was clicked."""
