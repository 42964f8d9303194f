"""The base classes of the app: closing, going back and leaving; and keys strictly in order.

`q` on the first screen or `ctrl+c` twice ends the program; `esc` never does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import ClassVar, Protocol, runtime_checkable

from textual import on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import Event, Key, Paste
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from inspector.report.lines.spans import last_name, one_line
from inspector.tui.delivery import copy_text
from inspector.tui.key_words import name_of
from inspector.tui.keys import why_unused
from inspector.tui.messages import NotingScreen, PassingScreen, TurnScreen, ViewedScreen, goes_back
from inspector.tui.panels import KeysInOrder

READ_EXIT = 0
"""The exit code after screens that only showed recordings."""
QUIT_PERIOD = 3.0
"""The seconds within which a second `ctrl+c` ends the program."""


@runtime_checkable
class UndoableField(Protocol):
    """A field in which `ctrl+z` means undo, as in other programs: Textual's text area, which is imported late."""

    def action_undo(self) -> None:
        """Undoes the last input."""


def has_job_control() -> bool:
    """Whether a shell started this process and can continue it: it shares the terminal, but not the process group."""
    try:
        shell = os.getppid()
        return os.getsid(shell) == os.getsid(0) and os.getpgid(shell) != os.getpgrp()
    except (AttributeError, OSError):  # Windows has no process groups
        return False


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
            self.tell(copy_text(self, field.selected_text))
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


# -- Keys in the order in which they were pressed, each on the screen that the key before it opened -------------------
# Textual sends a key to the widget that has the focus when the key arrives. In a paste, over a slow connection or on a
# busy machine, a key may arrive before the previous key has opened a screen or moved the focus. Such a key waits here
# until the previous one is done and the target screen is drawn. Keys that are pressed while a large file is read wait
# for the screen of that file.


PASSES = 3
"""The number of times that a follower passes through the queues of the widgets. A key can cause three messages, each
sent by the one before: the key's to the app, that of an opened row to the screen, the screen's request to the app."""
FOLLOWER_TIMEOUT = 1.0
"""The seconds after which a key counts as handled, because its follower may be lost with a removed widget."""
SEEN_ACTIONS: Mapping[str, str] = {"ask": "sends nothing", "stop": "stops nothing"}
"""Action whose key counts only if it was pressed while the screen was visible -> what an earlier key does not do. One
confirms a question about costs, one stops work that the screen shows. The keys of a live turn count from the first
moment, because its form was visible before."""

STOP_ACTIONS = frozenset({"back", "close"})
LEAVE_ACTIONS = STOP_ACTIONS | {"quit", "interrupt"}
"""The actions that do not wait for a file that is being read; `STOP_ACTIONS` are those that stop the reading."""


class Follower(Message):
    """A message that takes the way of a key, from the focused widget up to the app, and so arrives after it."""

    def __init__(self, passes: int) -> None:
        super().__init__()
        self.passes = passes


class KeysInOrderApp(LeavingApp):
    """An app that handles keys in the order in which they were pressed."""

    _keys: tuple[Key | Paste, ...] = ()
    """The keys that wait to be handled."""
    _follower: Follower | None = None
    """The follower of the key that is being handled; None if no key is."""
    opening: tuple[str, ...] = ()
    """The paths that are being read, whose screen the keys wait for; empty if none are."""
    _sent_at = 0.0
    """The time at which the follower was sent, on the monotonic clock."""
    _visible_screen: tuple[Screen[object], float] | None = None
    """The visible screen and since when, on the clock of messages; None until a screen is drawn."""

    def on_mount(self) -> None:
        """Watches for the first screen, and for each that replaces it."""
        self.screen_change_signal.subscribe(self, self._screen_changed, immediate=True)
        self._screen_changed(self.screen)

    async def on_event(self, event: Event) -> None:
        """Keeps a key until it can be sent; continues when the previous key has bubbled up to the app."""
        if isinstance(event, (Key, Paste)) and not event.is_forwarded:
            action = self._leave_action(event)
            if self.opening and action in STOP_ACTIONS and not isinstance(self.screen, PassingScreen):
                self.arrive(self.opening, lambda: self.tell("given up: the file is not opened"), keys=False)
            elif self.opening and action:
                await super().on_event(event)
            else:
                self._keys = (*self._keys, event)
                await self._send_next()
            return
        await super().on_event(event)
        if isinstance(event, Key) and self._follower is not None and self._follower.passes == PASSES:
            self._follow(PASSES - 1)  # the key may have closed the screen, and its follower with it

    async def _send_next(self) -> None:
        busy = self._follower is not None and monotonic() - self._sent_at < FOLLOWER_TIMEOUT
        ended = not self.screen_stack  # while the app closes there is no screen
        if not self._keys or self.opening or self._visible_screen is None or busy or ended:
            return
        event, *rest = self._keys
        self._keys = tuple(rest)
        if isinstance(event, Key) and (nothing := self._lost_effect(event)):
            if isinstance(self.screen, NotingScreen):
                self.tell(f"{name_of(event.key)} was pressed before this was on the screen, and {nothing}")
        else:
            await super().on_event(event)
        self._follow(PASSES)

    def _leave_action(self, event: Key | Paste) -> str:
        """The action of a key that leaves something; empty for any other."""
        found = self.screen.active_bindings.get(event.key) if isinstance(event, Key) else None
        action = found.binding.action.removeprefix("app.") if found is not None else ""
        return action if action in LEAVE_ACTIONS else ""

    def open_behind(self, paths: Sequence[str]) -> None:
        """Notes that these paths are being read; keys wait for their screen."""
        self.opening = tuple(paths)
        if not isinstance(self.screen, PassingScreen):
            self.tell(f"reading {one_line(last_name(paths[0]))}… keys wait for it · esc gives up")

    def arrive(self, paths: Sequence[str], act: Callable[[], None], keys: bool = True) -> None:
        """Runs `act` after a reading, unless the operator has left; with `keys`, waiting keys go to the new screen."""
        if self.opening == tuple(paths):
            self.opening = ()
            self._keys = self._keys if keys else ()
            act()
            self.call_later(self._send_next)

    def _lost_effect(self, event: Key) -> str:
        """What a key does not do because it came before its screen was visible; empty if it counts."""
        found = self.screen.active_bindings.get(event.key)
        unseen = self._visible_screen is not None and event.time < self._visible_screen[1]
        return SEEN_ACTIONS.get(found.binding.action, "") if found is not None and unseen else ""

    def _follow(self, passes: int) -> None:
        """Sends a new follower after the pending messages; the previous one is ignored."""
        self._follower, self._sent_at = Follower(passes), monotonic()
        # While the app closes there is no screen, which `focused` needs.
        target = (self.focused or self.screen) if self.screen_stack else self
        if not target.post_message(self._follower):
            self.post_message(self._follower)

    @on(Follower)
    async def _handle_follower(self, message: Follower) -> None:
        message.stop()
        if message is not self._follower:
            return
        if message.passes > 1:
            self._follow(message.passes - 1)
            return
        self._follower = None
        await self._send_next()

    def _screen_changed(self, screen: Screen[object]) -> None:
        self._visible_screen = None
        if self._follower is not None:
            self._follow(self._follower.passes)  # it may be lost with the screen that was closed
        self.call_after_refresh(self._note_drawing, screen)

    def _note_drawing(self, screen: Screen[object]) -> None:
        if screen.is_active:
            self._visible_screen = screen, Follower(0).time
            self.call_later(self._send_next)  # after the focus that the screen has requested

    def on_key(self, event: Key) -> None:
        """Shows a note about an unused key: when or where it works, or that a character works nowhere."""
        if isinstance(self.screen, PassingScreen) or isinstance(self.focused, (Input, KeysInOrder)):
            return
        if event.key in self.screen.active_bindings:
            return
        # Shown later, because Textual still tries the remaining bindings, and any action removes the note.
        nowhere = f"{event.character} has no use anywhere · ? lists the keys" if event.is_printable else ""
        if why := why_unused(self, event.key) or nowhere:
            self.call_later(self.tell, why)
