"""The key bar: the keys that work here, derived from the bindings, as many whole ones as fit; or a short note.

Further down: a widget of a few lines that are made again only when something they show has changed; the status
line; the first lines of the session screen.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.binding import ActiveBinding
from textual.events import Click
from textual.geometry import Region
from textual.reactive import reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from inspector.report.facts import View
from inspector.report.lines import header
from inspector.report.lines.header import status
from inspector.report.lines.spans import Line, Role, Span, joined, said, spread, width_of, wrapped
from inspector.report.lines.steps import Outline
from inspector.tui.keys import shown_keys
from inspector.tui.messages import ActionWanted
from inspector.tui.paint import paint_of

# -- A widget of a few lines that are made again only when something they show has changed ---------------------------


class Panel(Widget):
    """Lines from `make`, one a row."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._lines: Sequence[Line] | None = None
        self._width = 0
        self._base = Style()

    def make(self, width: int) -> Sequence[Line]:
        """The lines for a width."""
        raise NotImplementedError

    def changed(self) -> None:
        """What the lines show has changed: those that differ are drawn again."""
        old, width = self._lines, self.size.width
        if old is None or self._width != width or not self.is_mounted:
            self._lines = None
            self.refresh()
            return
        new = self._lines = self.make(width)
        for y in range(max(len(old), len(new))):
            if old[y : y + 1] != new[y : y + 1]:
                self.refresh(Region(0, y, width, 1))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Takes the style once for all rows: it is worked out anew each time it is asked for."""
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """One row."""
        width, base = self.size.width, self._base
        if self._lines is None or self._width != width:
            self._lines, self._width = self.make(width), width
        line = self._lines[y] if y < len(self._lines) else ()
        return paint_of(self.app).strip(line, width, base)


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


# -- The status line -------------------------------------------------------------------------------------------------
# Never hidden, whatever is shown above it.


class Status(Panel):
    """Where the cursor is."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    step: reactive[int] = reactive(0, init=False, repaint=False)
    filtered: reactive[str] = reactive("", init=False, repaint=False)
    """The filter in force and how many steps it keeps; empty without one."""

    coming: reactive[str] = reactive("", init=False, repaint=False)
    """What has come of an answer that is still under way."""

    def watch_coming(self) -> None:
        """More of it."""
        self.changed()

    def watch_outline(self) -> None:
        """Another run."""
        self.changed()

    def watch_step(self) -> None:
        """Another step."""
        self.changed()

    def watch_filtered(self) -> None:
        """Another filter."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """One row."""
        return [status(self.outline, self.step, width, self.filtered, self.coming)] if self.outline is not None else ()


# -- The first lines of the session screen ---------------------------------------------------------------------------
# The verdict, then what is looked at and how the other turns fare.

TIGHTER = 4
"""Cells by which the verdict is shortened until it fits its rows."""
ROWS = 3
"""Rows of the header, so that nothing below it ever moves."""


class Verdict(Panel):
    """The verdict of the run that is shown."""

    view: reactive[View | None] = reactive(None, init=False, repaint=False)
    run: reactive[str] = reactive("original", init=False, repaint=False)
    paths: reactive[tuple[str, ...]] = reactive((), init=False, repaint=False)
    live: reactive[Line] = reactive((), init=False, repaint=False)
    """What is under way in a live turn; it stands where the verdict will."""

    def watch_live(self) -> None:
        """Something else is under way."""
        self.changed()

    def watch_view(self) -> None:
        """Another run, another verdict."""
        self.changed()

    def watch_run(self) -> None:
        """Another name."""
        self.changed()

    def make(self, width: int) -> Sequence[Line]:
        """The verdict over two rows where it needs them; the last row says what is looked at."""
        if self.view is None:
            return ()
        measure = paint_of(self.app).measure
        rows = wrapped(self.live or header.verdict(self.view), width, measure)
        room = width * (ROWS - 1)
        while len(rows) > ROWS - 1 and not self.live and room > width:  # what breaks at spaces needs a little more
            rows, room = wrapped(header.verdict(self.view, room), width, measure), room - TIGHTER
        if len(rows) > ROWS - 1:
            rest = [span for row in rows[ROWS - 2 :] for span in (*row, Span(" "))]
            rows = [*rows[: ROWS - 2], tuple(rest)]
        source = header.source(self.paths, self.view, self.run)
        counts = () if self.live else header.counts(self.view)
        if width_of(source, measure) + width_of(counts, measure) + 2 <= width:
            last = spread(counts, source, width, measure)
        else:
            last = joined([counts, source])
        return [*rows, *([()] * (ROWS - 1 - len(rows))), last]
