"""Before a request is asked live: where it goes, with whose key, for how much at most; and the word that lets it go.

Nothing is sent while this is open. It is answered by another key than the one that led here, and not by one held down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Input

from inspector.report.lines.spans import Line, Role, Span, field, more, said, wrapped
from inspector.tui.paint import paint_of
from inspector.tui.widgets.bars import Panel
from inspector.tui.widgets.fields import note
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.live.again import Wanted

PAUSE = 0.15
"""Seconds without a key after which another address or model is looked at."""
HELD = 0.4
"""Seconds for which a key that was pressed before may still repeat."""


class About(Panel, can_focus=True):
    """What would be asked, in as many rows as it needs."""

    DEFAULT_CSS = "About { height: 14; }"
    lines: reactive[Sequence[Line]] = reactive((), init=False, repaint=False)

    def watch_lines(self) -> None:
        """Something else."""
        self.changed()
        self._fit()

    def on_resize(self) -> None:
        """Another width."""
        self._fit()

    def _fit(self) -> None:
        if self.size.width:
            self.styles.height = max(1, len(self.make(self.size.width)))

    def make(self, width: int) -> Sequence[Line]:
        """The lines, wrapped."""
        measure = paint_of(self.app).measure
        return [row for line in self.lines for row in wrapped(line, width, measure)]


class AskLive(ModalScreen[Wanted | None]):
    """Gives what is to be asked, once the user has said so; None where the user leaves."""

    DEFAULT_CSS = """
    AskLive { align: center middle; background: $background 60%; }
    #ask { width: 100; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; }
    #ask { background: $surface; border: round $warning; }
    #ask .field { height: 1; }
    #ask .field Note { width: 15; }
    #ask Input { width: 1fr; background: $panel; }
    #ask Input:focus { background: $cursor; }
    #ask-keys { margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave; nothing is sent", id="ask.leave", priority=True),
        Binding("y", "ask", "ask", tooltip="Ask the provider now", id="ask.now"),
        Binding("tab,down", "field(1)", "Next field", priority=True, tooltip="The next field", id="ask.down"),
        Binding("shift+tab,up", "field(-1)", "Field before", priority=True, tooltip="The field before", id="ask.up"),
    ]

    def __init__(self, title: str, look: Callable[[str, str], Wanted]) -> None:
        super().__init__()
        self._title, self._look = title, look
        self._wanted: Wanted | None = None
        self._waiting: Timer | None = None
        self._pressed = 0.0

    def compose(self) -> ComposeResult:
        """What would be asked, two fields, the keys."""
        with Vertical(id="ask"):
            yield note(self._title, Role.TITLE, id="ask-title")
            yield About(id="ask-about")
            for name, hint in (("base-url", "as it was recorded"), ("model", "as it was recorded")):
                with Horizontal(classes="field"):
                    yield note(name, Role.KEY)
                    typed = Input("", placeholder=hint, compact=True, id=name)
                    typed.cursor_blink = False
                    yield typed
            yield note("y asks the provider now · esc leaves, nothing is sent · tab fields", Role.WARN, id="ask-keys")

    def on_mount(self) -> None:
        """No field in hand: what is typed there is no answer."""
        self._pressed = monotonic()
        self.query_one(About).focus()
        self._read()

    def action_leave(self) -> None:
        """Leaves."""
        self.dismiss(None)

    def action_field(self, by: int) -> None:
        """To the next or previous field."""
        fields = [self.query_one(About), self.query_one("#base-url"), self.query_one("#model")]
        here = next((at for at, each in enumerate(fields) if each.has_focus), 0)
        fields[(here + by) % len(fields)].focus()

    def action_ask(self) -> None:
        """Lets it go, unless the key is only held down or nothing can be asked."""
        now = monotonic()
        held, self._pressed = now - self._pressed < HELD, now
        if self._waiting is None and self._wanted is not None and not held:
            self.dismiss(self._wanted)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        """Enter in a field ends it, and asks nothing."""
        self.query_one(About).focus()

    @on(Input.Changed)
    def _changed(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
        self._waiting = self.set_timer(PAUSE, self._read)

    def _read(self) -> None:
        self._waiting = None
        base, model = (self.query_one(f"#{name}", Input).value.strip() for name in ("base-url", "model"))
        try:
            self._wanted = self._look(base, model)
            lines = about(self._wanted)
        except LoopError as why:
            self._wanted, lines = None, [field("cannot", said(str(why), Role.ERROR))]
        self.query_one(About).lines = lines


def about(wanted: Wanted) -> list[Line]:
    """What would be asked, a field each."""
    from inspector.live.again import NOT_ENCRYPTED, cost, tools

    target = wanted.target
    most, *basis = cost(wanted)
    lines = [
        field("live", Span("asks the provider, which may be charged; nothing is sent yet", Role.WARN)),
        field("goes to", said(target.url, Role.STRONG)),
        field("as", said(f"{target.server.api} · model {target.model or 'not named'} · {target.profile.name}")),
        field("settings", said(wanted.under)),
        field("key", said(target.key, Role.PLAIN if target.variable else Role.DIM)),
        field("at most", said(most, Role.STRONG)), *(more(said(line, Role.DIM)) for line in basis),
        field("calls", said(tools(wanted))),
    ]
    return [*lines, *([field("beware", Span(NOT_ENCRYPTED, Role.ERROR))] if target.open else [])]
