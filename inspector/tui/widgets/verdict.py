"""The first lines of the session screen: the verdict, then what is looked at and how the other turns fare."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from inspector.report.facts import View
from inspector.report.lines import header
from inspector.report.lines.spans import Line, Span, joined, spread, width_of, wrapped
from inspector.tui.paint import paint_of
from inspector.tui.widgets.panel import Panel

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
