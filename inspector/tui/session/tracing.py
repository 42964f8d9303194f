"""Tracing: from a fact to the bytes that it was read from, and from bytes to what they became."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from inspector.report.answers import answer_at
from inspector.tui.messages import LinesPointed
from inspector.tui.session.base import Base
from inspector.tui.sheets import whose

if TYPE_CHECKING:
    from inspector.report.lines.reads import Picked
    from loop_core.wire.provenance import Provenance

TRACING_KEYS: list[BindingType] = [
    Binding(".", "fact(1)", "fact", id="fact.next",
            tooltip="The next fact of this response: the bytes that it was read from"),
    Binding("comma", "fact(-1)", "Fact before", show=False, tooltip="The fact before", id="fact.previous"),
    Binding(">", "slice(1)", "Next slice", show=False, id="slice.next",
            tooltip="The next of the slices that a fact was put together from"),
    Binding("<", "slice(-1)", "Slice before", show=False, tooltip="The slice before", id="slice.previous"),
]
NOTHING = "no fact was read from these bytes"


class Tracing(Base):
    """Facts and bytes."""

    TITLE_OF_KEYS = "Facts and bytes"
    BINDINGS: ClassVar[list[BindingType]] = TRACING_KEYS

    def action_fact(self, by: int) -> None:
        """Goes to the next or previous fact, in Wire."""
        from inspector.report.lines.reads import moved

        found = self._readings()
        if found is not None:
            self._pick(moved(found, self.picked, by))
            self._tell_fact(found)

    def action_slice(self, by: int) -> None:
        """Goes to the next or previous slice of the fact that is looked at."""
        from inspector.report.lines.reads import turned

        found = self._readings()
        if found is None:
            return
        if self.picked is None:
            self.note = "no fact is looked at yet: . goes to the first"
            return
        self._pick(turned(found, self.picked, by))
        self._tell_fact(found)

    def _tell_fact(self, found: Provenance) -> None:
        """Says which fact is looked at, also where the head of the view is out of sight."""
        from inspector.report.lines.reads import told
        from inspector.report.lines.spans import text_of

        facts = answer_at(self.run.view, self.step)
        if self.picked is not None and facts is not None:
            self.note = text_of(told(found, self.picked, facts.exchange.response))

    def _readings(self) -> Provenance | None:
        """What the bytes of the response at hand became; says so where nothing did."""
        found = self._sheets.readings(self._asked) if self.run.view.steps else None
        if found is None or not found.facts:
            self.note = NOTHING
            return None
        return found

    def _pick(self, picked: Picked | None) -> None:
        """Shows the bytes of a fact in Wire."""
        self.picked, self._picked_in = picked, whose(self._asked)
        if self.wire_mode == "request":
            self.wire_mode = "events"
        self.listing = False
        self.tab = "wire"
        self._mark_tab()
        self._show()

    @on(LinesPointed)
    def _pointed(self, message: LinesPointed) -> None:
        """A line of the text was clicked, or enter was pressed over those in sight."""
        if self.tab == "wire" and self.wire_mode != "request":
            self._what_became(message)
        elif self.tab == "response":
            self._bytes_of(message)

    def _what_became(self, message: LinesPointed) -> None:
        from inspector.report.lines.reads import became, next_of, noted, picked_of
        from inspector.report.lines.slices import Bytes

        found, sheet = self._readings(), self.sheet
        if found is None or not isinstance(sheet, Bytes):
            return
        spans = [span for line in range(message.first, message.last + 1) if (span := sheet.span(line)) is not None]
        if not spans:
            return
        start, end = spans[0][0], spans[-1][1]
        reads = became(found, start, end)
        self.note = noted(reads, start, end)
        spot = sheet.spot(message.first, message.row, message.column, message.width) if message.width else None
        exact = found.at(spot[0]) if spot is not None and spot[1] - spot[0] == 1 else ()
        if exact:
            self._pick(picked_of(found, exact[0]))
        elif reads:
            self._pick(next_of(found, reads, self.picked))

    def _bytes_of(self, message: LinesPointed) -> None:
        from inspector.report.lines.reads import Picked
        from inspector.report.lines.response import Told

        every = self.sheet.facts if isinstance(self.sheet, Told) else ()
        facts = every[message.first : message.last + 1]
        found = self._readings() if any(facts) else None
        known = [fact for fact in facts if found is not None and fact in found.facts]
        if known and found is not None:
            self._pick(Picked(known[0]))
            self._tell_fact(found)
        elif any(facts):
            self.note = NOTHING
