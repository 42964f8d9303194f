"""Closing, going back and leaving: `q` on the first screen or `ctrl+c` twice ends the program; `esc` never does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from time import monotonic
from typing import Any, ClassVar, Protocol, runtime_checkable

from textual import on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen
from textual.widgets import Input

from inspector.tui.messages import NotingScreen, TurnScreen, ViewedScreen

READ_EXIT = 0
"""The exit code after screens that only showed recordings."""
QUIT_PERIOD = 3.0
"""The seconds within which a second `ctrl+c` ends the program."""


@runtime_checkable
class UndoableField(Protocol):
    """A field in which `ctrl+z` means undo, as in other programs: Textual's text area, which is imported late."""

    def action_undo(self) -> None:
        """Undoes the last input."""


class PassingScreen(Screen[None]):
    """A screen that only leads to another, so that going back skips it."""


def has_job_control() -> bool:
    """Whether a shell started this process and can continue it: it shares the terminal, but not the process group."""
    try:
        shell = os.getppid()
        return os.getsid(shell) == os.getsid(0) and os.getpgid(shell) != os.getpgrp()
    except (AttributeError, OSError):  # Windows has no process groups
        return False


def goes_back(app: App[Any]) -> bool:
    """Whether there is a screen to go back to. Textual cannot switch away from an app's first screen."""
    return len(app.screen_stack) > 1 and not isinstance(app.screen_stack[-2], PassingScreen)


class LeavingApp(App[int]):
    """An app whose screens open one another and go back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "back", "back", tooltip="Back to where you came from; from there, leave the program", id="back"),
        Binding("escape", "close", "Close", show=False, id="close",
                tooltip="Close what is open, else back to where you came from; never leaves the program"),
        Binding("ctrl+q", "quit", "Quit", show=False, tooltip="Leave the program at once", id="quit", priority=True),
        Binding("ctrl+c", "interrupt", "Leave", show=False, id="interrupt", priority=True,
                tooltip="Leave the program, pressed twice; in a field, copy what is selected"),
        Binding("ctrl+z", "suspend", "Suspend", show=False, id="suspend", priority=True,
                tooltip="Suspend the program, which fg in the shell resumes; in a text of several lines, undo"),
    ]
    # A press on a message that a click has just removed would select in it, which ends the app (Textual 8.2.8). Nothing
    # is lost: the panes draw their own lines, in which Textual selects nothing, and fields select without it.
    ALLOW_SELECT = False
    _interrupted = -QUIT_PERIOD
    """The time of the last `ctrl+c`, on the monotonic clock."""

    async def action_back(self) -> None:
        """Goes back, or leaves the program from the first screen; asks first if a turn is running."""
        if isinstance(self.screen, TurnScreen) and self.screen.asks_to_leave():
            return
        if not goes_back(self):
            self._leave_app()
            return
        self.pop_screen()
        if isinstance(self.screen, ViewedScreen) and self.screen.for_view and goes_back(self):
            self.pop_screen()

    async def action_close(self) -> None:
        """Closes what is open over the screen, else goes back."""
        if any(part.close_open() for part in reversed(getattr(self.screen, "parts", ()))):
            return
        if goes_back(self):
            await self.action_back()
        else:
            self.tell("nothing is open that esc could close · q leaves")

    def action_interrupt(self) -> None:
        """Quits if pressed twice in a row; asks first if a turn is running."""
        field = self.focused
        # In a field with a selection the key means copying, as in other programs.
        if isinstance(field, Input) and field.selected_text:
            field.action_copy()
            return
        now = monotonic()
        if now - self._interrupted > QUIT_PERIOD:
            self._interrupted = now
            self.tell("press ctrl+c again to leave")
            return
        if not any(isinstance(screen, TurnScreen) and screen.asks_to_leave() for screen in self.screen_stack):
            self._leave_app()

    def action_suspend(self) -> None:
        """Undoes the last input in a text area; elsewhere stops the process, if a shell can continue it."""
        if isinstance(field := self.focused, UndoableField):
            field.action_undo()
            return
        if self._driver is not None and self._driver.can_suspend and has_job_control():
            self.action_suspend_process()
        else:
            self.tell("ctrl+z works only where a shell started the program, in a terminal")

    @on(Driver.SignalResume)
    def _paint_again(self) -> None:
        """Paints the whole screen: it is empty after `fg`, and Textual paints only what has changed."""
        self.refresh(layout=True)

    async def action_quit(self) -> None:
        """Quits at once; running turns are cancelled, and their recordings closed."""
        # A screen below may have a live turn too; its recording must be closed, or its last rows are lost.
        for screen in self.screen_stack:
            if isinstance(screen, TurnScreen):
                await screen.abandon()
        self._leave_app()

    def on_mount(self) -> None:
        """Lets SIGTERM quit the app, which would otherwise leave the terminal without cursor and echo."""
        # SIGHUP still ends the program at once: the terminal is gone, and the thread that reads keys would wait for it.
        if sys.platform != "win32":  # asyncio handles no signals there
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.call_later, self._quit_by_signal)

    async def _quit_by_signal(self) -> None:
        await self.action_quit()
        self.exit(READ_EXIT, 128 + signal.SIGTERM)  # as a shell reports it

    def _leave_app(self) -> None:
        """Exits with the code for how a turn begun from the command line ended, else with `READ_EXIT`."""
        first = self.screen_stack[0]
        self.exit(READ_EXIT, first.exit_code if isinstance(first, TurnScreen) else READ_EXIT)

    def tell(self, text: str) -> None:
        """Shows a note at the foot of the screen, or over a screen without a place for notes."""
        if isinstance(self.screen, NotingScreen):
            self.screen.note = text
        elif text:
            self.clear_notifications()  # the last one replaces the one before, as at the foot of a screen
            self.notify(text, timeout=QUIT_PERIOD, markup=False)
