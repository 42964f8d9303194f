"""Keys that nothing has used: those meant for a field that is not there yet are handed on, the others say so.

On a busy machine, or in a paste, a key is struck before the field that it is meant for was there. It goes to what has
the focus then; where the key before it opens a prompt or a form, that is still the list below, which passes it up.
"""

from __future__ import annotations

from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input

from inspector.tui.key_words import why_unused
from inspector.tui.leaving import LeavingApp

WAITS, PAUSE = 50, 0.02
"""How often a field is waited for, and the seconds between two looks."""


class EarlyKeysApp(LeavingApp):
    """Hands such keys on, in their order."""

    _early: tuple[Key, ...] = ()

    def on_key(self, event: Key) -> None:
        """Takes a key that nothing below has used."""
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
