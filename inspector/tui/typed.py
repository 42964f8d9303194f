"""Keys that were struck before the field that they are meant for was there: on a busy machine, or in a paste.

A key goes to what has the focus when it is struck. Where the key before it opens a prompt or a form, that is still the
list below, which passes it up here unused.
"""

from __future__ import annotations

from textual.app import App
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input

WAITS, PAUSE = 50, 0.02
"""How often a field is waited for, and the seconds between two looks."""


class TypedAhead(App[int]):
    """Hands such keys on, in their order."""

    _early: tuple[Key, ...] = ()

    def on_key(self, event: Key) -> None:
        """Takes a key that nothing below has used."""
        if not isinstance(self.screen, ModalScreen) or event.key in self.screen.active_bindings:
            return
        if self._early or self.focused is None:
            event.prevent_default()
            self._early = (*self._early, event)
            if len(self._early) == 1:
                self._hand_on(WAITS)
        elif event.is_printable and isinstance(self.focused, Input):
            event.prevent_default()
            self.focused.insert_text_at_cursor(event.character or "")

    def _hand_on(self, waits: int) -> None:
        if self.focused is None and waits:
            self.set_timer(PAUSE, lambda: self._hand_on(waits - 1))
            return
        early, self._early = self._early, ()
        if self.focused is not None:
            for event in early:
                self.post_message(Key(event.key, event.character))
