"""The sheets of an answer that is still arriving. They grow, so that a frame costs only what has come since the last.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping, Sequence

from inspector.live.live_lines import arrival_lines, head_lines
from inspector.live.stepper import ArrivingAnswer
from inspector.report.facts import View
from inspector.report.lines import glyphs
from inspector.report.lines.merged import Text, answers, seam_lines, segment_lines
from inspector.report.lines.spans import EMPTY, Line, LineSheet, Span, Tone, join_groups, paragraphs, safe, text_of
from inspector.report.run_answers import Block
from inspector.sessions import redact
from inspector.sessions.thread import response_number
from loop_core.client.streaming import PendingSeam, coming_segment
from loop_core.turn.continuation import JoinedText, Seam, Segment
from loop_core.turn.seam import join
from loop_core.turn.state import Send

# -- A sheet whose text grows at its end -----------------------------------------------------------------------------
# Finished lines stay unchanged; only the last line is made again. `stable` is the number of lines that have not changed
# since the last layout, so a view lays out only those after them.

GUTTER = f"{glyphs.AT_CURSOR} "


class GrowingSheet(LineSheet):
    """Fixed lines, a growing text, and a few changing lines about it."""

    def __init__(self, head: Sequence[Line], gutter: str = GUTTER) -> None:
        super().__init__(list(head))
        self._made: list[Line] = list(head)
        self.lines = self._made
        self._gutter = gutter
        self._tail = ""
        """The text of the last line, which may still grow."""
        self._begun = False
        self._settled = len(head)
        self.stable = 0
        """The number of lines that have not changed since the sheet was last laid out."""
        self.text = ""

    def grow(self, added: str, foot: Sequence[Line] = ()) -> None:
        """Appends text; the lines `foot` are below it until it grows again."""
        self.stable = min(self.stable, self._settled)
        del self._made[self._settled :]
        self.text += added
        self._begun = self._begun or bool(added)
        if self._begun:
            rows = paragraphs(self._tail + added)
            lines: list[Line] = [(Span(self._gutter, Tone.RULE), *row) for row in rows]
            self._made += lines
            self._settled += len(lines) - 1  # without the last line, which may still grow
            self._tail = text_of(rows[-1])
        self._made += foot
        self.focus = max(0, len(self._made) - 1)

    def section(self, title: Line) -> None:
        """Starts a section with a title; the following text grows there."""
        self.stable = min(self.stable, self._settled)
        if self._tail:
            self._settled += 1
        del self._made[self._settled :]
        self._made += [EMPTY, title]
        self._settled, self._tail, self._begun = len(self._made), "", False

    def note_layout(self) -> None:
        """Notes that the sheet was laid out in its current form."""
        self.stable = len(self._made)

    def copy_text(self) -> str:
        """The text as received."""
        return self.text


class Streams:
    """The sheets of one answer while it arrives."""

    def __init__(self, answer: ArrivingAnswer, view: View, block: Block) -> None:
        self.answer = answer
        self._view, self._block = view, block
        turn = view.steps[block.end - 1].turn
        send: Send | None = turn.last_send
        self._rule = turn.policy.seam
        self._segments = turn.answers[-1]
        self._coming = Segment("") if send is None else coming_segment(turn, send)
        self._joining = PendingSeam(self._segments, self._coming, self._rule)
        self._seam: Seam | None = None
        self._shown: dict[str, int] = {}
        """Kind of output -> the number of its characters (or pieces) that its sheet already shows."""
        self._kind = ""
        self._text = getincrementaldecoder("utf-8")("replace")  # a piece may end inside a character
        self.sheets: dict[str, GrowingSheet] = {}

    def sheet(self, tab: str) -> GrowingSheet:
        """The sheet of a tab, as far as the answer has arrived."""
        self.answer.read()
        make, grow = _SHEETS[tab]
        if tab not in self.sheets:
            self.sheets[tab] = make(self)
        grow(self)
        return self.sheets[tab]

    def _take(self, name: str, whole: str) -> str:
        """The end of a growing text that its sheet does not show yet."""
        fresh = whole[self._shown.get(name, 0) :]
        self._shown[name] = len(whole)
        return fresh

    def _merged_text(self) -> GrowingSheet:
        whole, _ = self._joining.at(self.answer.text)
        self._seam = whole.seams[-1] if self._segments and whole.seams else None
        self._shown.pop("merged", None)
        return GrowingSheet(self._head(whole))

    def _grow_merged(self) -> None:
        whole, added = self._joining.at(self.answer.text)
        seam = whole.seams[-1] if self._segments and whole.seams else None
        if seam != self._seam:  # text that was already shown is a quotation, an echo or a repetition
            self.sheets["merged"] = self._merged_text()
        self.sheets["merged"].grow(self._take("merged", added), arrival_lines(self.answer))

    def _head(self, whole: JoinedText) -> list[Line]:
        """The lines before the segment that is arriving."""
        lines: list[Line] = []
        every = list(answers(self._view, self._block))
        for order, answer in enumerate(every):
            if len(every) > 1:
                lines.append((Span(f"answer {order + 1:,} of {len(every):,}", Tone.TITLE),))
            segments = [segment for segment, _, _ in answer]
            last = order == len(every) - 1
            text = Text([*segments, self._coming] if last else segments,
                        whole if last else join(segments, self._rule), self._rule, self._rule, [])
            for place, (_, _, facts) in enumerate(answer):
                lines += [(Span(f"{glyphs.PAST} ", Tone.RULE), *line) for line, _ in segment_lines(text, place, facts)]
        gutter = Span(GUTTER, Tone.RULE)
        if self._seam is not None:
            lines += [(gutter, *line) for line in seam_lines(self._seam, self._rule)]
        lines.append((gutter, *join_groups([
            (Span(f"segment {len(self._segments) + 1}", Tone.STRONG),), (Span("still coming", Tone.WARN),),
            (Span(f"response {response_number(self.answer.number)}", Tone.DIM),)])))
        return lines

    def _response(self) -> GrowingSheet:
        self._kind = ""
        return GrowingSheet(head_lines(self.answer), "│ ")

    def _grow_response(self) -> None:
        sheet, answer = self.sheets["response"], self.answer
        every = (("thinking", answer.thinking), ("text", answer.text), ("arguments of calls", answer.call))
        for kind, whole in every:
            fresh = self._take(kind, whole)
            if fresh and kind != self._kind:
                sheet.section((Span(kind, Tone.TITLE),))
                self._kind = kind
            if fresh:
                sheet.grow(fresh)

    def _wire(self) -> GrowingSheet:
        self._text.reset()
        title = f"Response {response_number(self.answer.number)}, its bytes as they come"
        lines: list[Line] = [(Span(title, Tone.STRONG),)]
        lines += [(safe(f"{name}: ", Tone.KEY), safe(value, Tone.DIM))
                  for name, value in redact.headers(list(self.answer.headers))]
        return GrowingSheet([*lines, EMPTY], "")

    def _grow_wire(self) -> None:
        at = self._shown.get("bytes", 0)
        fresh = self.answer.bytes[at:]
        self._shown["bytes"] = len(self.answer.bytes)
        if fresh:
            self.sheets["wire"].grow(self._text.decode(b"".join(fresh)))


_SHEETS: Mapping[str, tuple[Callable[[Streams], GrowingSheet], Callable[[Streams], None]]] = {
    "merged": (Streams._merged_text, Streams._grow_merged),
    "response": (Streams._response, Streams._grow_response),
    "wire": (Streams._wire, Streams._grow_wire),
}
STREAM_TABS = tuple(_SHEETS)
