"""The key bar: the keys that work here, derived from the bindings, as many whole ones as fit; or a short note."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import ActiveBinding
from textual.events import Click
from textual.reactive import reactive
from textual.screen import Screen

from inspector.report.lines.spans import Line, Role, Span, said, width_of
from inspector.tui.keys import shown_keys
from inspector.tui.messages import ActionWanted
from inspector.tui.widgets.panel import Panel


class KeyBar(Panel):
    """One row of keys."""

    note: reactive[str] = reactive("", init=False, repaint=False)
    """What the last action has to say; it stands here until the next one."""

    def on_mount(self) -> None:
        """Follows the bindings of whatever has the focus."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        self.changed()

    def watch_note(self) -> None:
        """Something to say."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """The note, or the keys."""
        if self.note:
            return [(Span(" "), said(self.note, Role.WARN))]
        return [tuple(span for _, spans in self._fitting(width) for span in spans)]

    def _fitting(self, width: int) -> list[tuple[ActiveBinding, Line]]:
        """The keys that fit, whole; the last two places are kept for help and leaving."""
        last = len(self.app.screen_stack) == 1
        every = [
            (found, _entry(key, "quit" if last and found.binding.id == "back" else found.binding.description))
            for key, found in shown_keys(self.screen)
        ]
        kept = list(every)
        while len(kept) > 2 and sum(width_of(spans) for _, spans in kept) > width:
            del kept[-3 if len(kept) > 2 else -1]
        return kept

    def on_click(self, event: Click) -> None:
        """Does what the key that was clicked does."""
        position = 0
        for found, spans in self._fitting(self.size.width):
            position += width_of(spans)
            if event.x < position:
                self.post_message(ActionWanted(found.binding.action, found.node))
                return


def _entry(key: str, words: str) -> Line:
    return (Span(f" {key} ", Role.KEY), Span(f"{words} ", Role.DIM))
