"""A field that holds one of a few words: left and right go through them, a letter to the next one that begins so.

Further down: one line that says something about what stands beside it; a few lines over a list, wrapped to its
width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click, Key
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive

from inspector.report.lines.spans import Line, Role, Span, wrapped
from inspector.tui.paint import paint_of
from inspector.tui.widgets.bars import Panel


class Cycle(Panel, can_focus=True):
    """One word of a closed list."""

    class Changed(Message):
        """Another word."""

        def __init__(self, cycle: Cycle) -> None:
            super().__init__()
            self.cycle = cycle

        @property
        def control(self) -> Cycle:
            """The field."""
            return self.cycle

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "turn(1)", "Next word", show=False, tooltip="The next word", id="cycle.next"),
        Binding("left", "turn(-1)", "Word before", show=False, tooltip="The word before", id="cycle.previous"),
    ]
    value: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self, words: Sequence[str], value: str, *, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.words = words
        self.set_reactive(Cycle.value, value)

    def watch_value(self) -> None:
        """Another word is shown."""
        self.changed()
        self.post_message(self.Changed(self))

    def on_focus(self) -> None:
        """The marks at its sides tell that it is in hand."""
        self.changed()

    def on_blur(self) -> None:
        """It no longer is."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """The word between its marks."""
        role = Role.HERE if self.has_focus else Role.DIM
        return [(Span("< ", role), Span(self.value, Role.STRONG if self.has_focus else Role.PLAIN), Span(" >", role))]

    def action_turn(self, by: int) -> None:
        """Another word."""
        self.value = self.words[(self.words.index(self.value) + by) % len(self.words)]

    def on_click(self, event: Click) -> None:
        """A click in the left half goes back, one in the right half on."""
        self.focus()
        self.action_turn(-1 if event.x < 2 else 1)

    def on_key(self, event: Key) -> None:
        """A letter goes to the next word that begins with it."""
        if event.character is None or not event.character.isalnum():
            return
        at = self.words.index(self.value)
        ahead = (*self.words[at + 1 :], *self.words[: at + 1])
        found = next((word for word in ahead if word.startswith(event.character.lower())), None)
        if found is not None:
            event.stop()
            self.value = found


# -- One line that says something about what stands beside it --------------------------------------------------------
# Empty where there is nothing to say.


class Note(Panel):
    """A line of text with a role."""

    DEFAULT_CSS = "Note { height: 1; }"
    line: reactive[Line] = reactive((), init=False, repaint=False)

    def watch_line(self) -> None:
        """Another thing to say."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """The line."""
        return [self.line]


def note(text: str, role: Role = Role.DIM, *, id: str | None = None) -> Note:  # noqa: A002 - Textual's own name
    """A note that is there from the start."""
    made = Note(id=id)
    made.set_reactive(Note.line, (Span(text, role),))
    return made


# -- A few lines over a list, wrapped to its width -------------------------------------------------------------------
# As high as they need.


class Lines(Panel):
    """Lines that may change."""

    DEFAULT_CSS = "Lines { height: auto; }"
    lines: reactive[Sequence[Line]] = reactive((), init=False, repaint=False)

    def watch_lines(self) -> None:
        """Others: as many rows as they need."""
        self.changed()
        self.refresh(layout=True)

    def make(self, width: int) -> Sequence[Line]:
        """The lines as rows."""
        measure = paint_of(self.app).measure
        return [row for line in self.lines for row in wrapped(line, width, measure)] if width > 0 else ()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are."""
        return len(self.make(width))


def lines(text: str, id: str) -> Lines:  # noqa: A002 - Textual's own name
    """A line that is there from the start, as high as it needs."""
    made = Lines(id=id)
    made.set_reactive(Lines.lines, [(Span(text, Role.DIM),)])
    return made
