"""Tracing: from a fact to the bytes that it was read from, and from bytes to what they became."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.report.facts import answer_at
from inspector.tui.messages import LinesPointed
from inspector.tui.session.panes import Panes
from inspector.tui.session.stage import Part, SessionStage
from inspector.tui.sheets import whose

if TYPE_CHECKING:
    from inspector.report.lines.reads import Picked
    from inspector.sessions.provenance import Provenance

LARGE = 300_000
"""Bytes of a body from which it takes a moment to find out what they became."""
NOTHING = "no fact was read from these bytes"


class Tracing(Part):
    """Facts and bytes."""

    TITLE_OF_KEYS = "Facts and bytes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(".", "fact(1)", "fact", id="fact.next",
                tooltip="The next fact of this response: the bytes that it was read from"),
        Binding("comma", "fact(-1)", "Fact before", show=False, tooltip="The fact before", id="fact.previous"),
        Binding(">", "slice(1)", "Next slice", show=False, id="slice.next",
                tooltip="The next of the slices that a fact was put together from"),
        Binding("<", "slice(-1)", "Slice before", show=False, tooltip="The slice before", id="slice.previous"),
    ]

    def __init__(self, stage: SessionStage, panes: Panes) -> None:
        super().__init__(stage)
        self.panes = panes

    def action_fact(self, by: int) -> None:
        """Goes to the next or previous fact, in Wire."""
        from inspector.report.lines.reads import moved

        self._traced(lambda found: self._look(found, moved(found, self.panes.picked, by)))

    def action_slice(self, by: int) -> None:
        """Goes to the next or previous slice of the fact that is looked at."""
        from inspector.report.lines.reads import turned

        picked = self.panes.picked
        if picked is None:
            self.stage.note = "no fact is looked at yet: . goes to the first"
        else:
            self._traced(lambda found: self._look(found, turned(found, picked, by)))

    def _traced(self, act: Callable[[Provenance], None]) -> None:
        """Does something with what the bytes at hand became; in a large body that is found out beside the screen."""
        if not self.stage.run.view.steps:
            return
        viewpoint, facts = self.panes.viewpoint, answer_at(self.stage.run.view, self.stage.step)
        if facts is None or len(facts.exchange.body) <= LARGE or self.panes.sheets.traced(viewpoint):
            self._act(act)
            return
        self.stage.note = f"finding out what {len(facts.exchange.body):,} bytes became…"

        async def beside() -> None:
            await asyncio.to_thread(self.panes.sheets.readings, viewpoint)
            if whose(self.panes.viewpoint) == whose(viewpoint):
                self._act(act)

        self.stage.run_worker(beside(), group="tracing", exclusive=True)

    def _act(self, act: Callable[[Provenance], None]) -> None:
        found = self.panes.sheets.readings(self.panes.viewpoint)
        if found is None or not found.facts:
            self.stage.note = NOTHING
        else:
            act(found)

    def _look(self, found: Provenance, picked: Picked | None) -> None:
        self.panes.pick(picked)
        self._tell_fact(found)

    def _tell_fact(self, found: Provenance) -> None:
        """Says which fact is looked at, also where the head of the view is out of sight."""
        from inspector.report.lines.reads import told
        from inspector.report.lines.spans import text_of

        facts = answer_at(self.stage.run.view, self.stage.step)
        if self.panes.picked is not None and facts is not None:
            self.stage.note = text_of(told(found, self.panes.picked, facts.exchange.response))

    def pointed(self, message: LinesPointed) -> None:
        """A line of the text was clicked, or enter was pressed over those in sight."""
        if self.panes.tab == "wire" and self.panes.wire_mode != "request":
            self._traced(lambda found: self._what_became(found, message))
        elif self.panes.tab == "response" and any(self._facts_of(message)):
            self._traced(lambda found: self._bytes_of(found, message))

    def _what_became(self, found: Provenance, message: LinesPointed) -> None:
        from inspector.report.lines.reads import became, next_of, noted, picked_of
        from inspector.report.lines.slices import Bytes

        sheet = self.stage.sheet
        if not isinstance(sheet, Bytes):
            return
        spans = [span for line in range(message.first, message.last + 1) if (span := sheet.span(line)) is not None]
        if not spans:
            return
        start, end = spans[0][0], spans[-1][1]
        reads = became(found, start, end)
        spot = sheet.spot(message.first, message.row, message.column, message.width) if message.width else None
        exact = found.at(spot[0]) if spot is not None and spot[1] - spot[0] == 1 else ()
        if exact:
            self.panes.pick(picked_of(found, exact[0]))
        elif reads:
            self.panes.pick(next_of(found, reads, self.panes.picked))
        self.stage.note = noted(reads, start, end)

    def _facts_of(self, message: LinesPointed) -> Sequence[str | None]:
        """The facts that lines of the Response tell."""
        from inspector.report.lines.response import Told

        return self.stage.sheet.facts[message.first : message.last + 1] if isinstance(self.stage.sheet, Told) else ()

    def _bytes_of(self, found: Provenance, message: LinesPointed) -> None:
        from inspector.report.lines.reads import Picked

        fact = next((fact for fact in self._facts_of(message) if fact in found.facts), None)
        if fact is None:
            self.stage.note = NOTHING
        else:
            self._look(found, Picked(fact))
