"""Keys without a binding: keys typed before a field appears are passed to it, others show a note.

On a busy machine, or in a paste, a key is struck before the field that it is meant for was there. It goes to what has
the focus then; where the key before it opens a prompt or a form, that is still the list below, which passes it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.app import App
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input

from inspector.tui.key_words import name_of
from inspector.tui.keys import declared_bindings, owners
from inspector.tui.leaving import LeavingApp, PassingScreen

WAITS, PAUSE = 50, 0.02
"""How often a field is waited for, and the seconds between two looks."""

PLACES: Mapping[str, str] = {
    "SessionScreen": "in an open session (enter in the table of turns)", "TurnsScreen": "in the table of turns (q)",
    "ProvidersScreen": "in the table of providers (P)", "Cells": "in the table of policies (p)",
    "TuneScreen": "in the map of limits (u)", "LiveScreen": "in a live turn (L)",
    "Beside": "beside another run (R, then d)",
}
"""Screens, or their tables, by the name of the class, with how one comes to them."""


class EarlyKeysApp(LeavingApp):
    """Passes such keys to the field, in order."""

    _early: tuple[Key, ...] = ()

    def on_key(self, event: Key) -> None:
        """Handles a key that no widget has used."""
        if not isinstance(self.screen, ModalScreen):
            self._say_unused(event)
            return
        if event.key in self.screen.active_bindings:
            return
        if self._early or self.focused is None:
            event.prevent_default()
            self._early = (*self._early, event)
            if len(self._early) == 1:
                self._hand_on(WAITS)
        elif event.is_printable and isinstance(self.focused, Input):
            event.prevent_default()
            self.focused.insert_text_at_cursor(event.character or "")

    def _say_unused(self, event: Key) -> None:
        """A key that has its meaning at other times, or on another screen, says which; any other is silent."""
        if event.key in self.screen.active_bindings or isinstance(self.focused, Input):
            return
        if isinstance(self.screen, PassingScreen):  # it says itself which keys work, and has no line for notes
            return
        # Later: Textual still tries the bindings behind this, and whatever is tried takes the last note away.
        if why := why_unused(self, event.key):
            self.call_later(self.tell, why)

    def _hand_on(self, waits: int) -> None:
        if self.focused is None and waits:
            self.set_timer(PAUSE, lambda: self._hand_on(waits - 1))
            return
        early, self._early = self._early, ()
        if self.focused is not None:
            for event in early:
                self.post_message(Key(event.key, event.character))


def why_unused(app: App[Any], key: str) -> str:
    """Why a key does nothing on the screen: it is not usable now, or works elsewhere; empty if it works nowhere."""
    here = next((each for each in app.screen._bindings.key_to_bindings.get(key, []) if each.tooltip), None)
    if here is not None:
        return f"{name_of(key)} has no use now: {here.tooltip} · ? lists the keys"
    by_name = {kind.__name__: kind for kind in owners()}
    for name, place in PLACES.items():
        if name not in by_name or name == type(app.screen).__name__:
            continue
        for each in declared_bindings(by_name[name]):
            if key in app._keymap.get(each.id or "", each.key).split(","):
                return f"{name_of(key)} works {place}: {each.tooltip}"
    return ""
