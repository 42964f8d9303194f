"""The merged text of a turn: every answer with its segments, its seams, and the calls that were held.

The whole run is laid out whatever the step; what the cursor has not reached is marked as ahead, so that nothing moves
while stepping. A seam says what was decided, why, and which characters were left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.report.facts import View
from inspector.report.lines import glyphs
from inspector.report.lines.outline import Block
from inspector.report.lines.sheet import Listed
from inspector.report.lines.spans import Line, Role, Span, joined, paragraphs, quoted, said
from loop_core.arguments import parse
from loop_core.frozen import frozen
from loop_core.gate import Admission, Verdict
from loop_core.seam import Decision, Joined, Seam, Segment
from loop_core.turn import Turn
from loop_core.values import ChatResponse

HERE = "┃"
CUT_SHOWN = 60
"""Characters of what a seam left out that are shown."""


@frozen
class Laid:
    """A line and the segment that it belongs to; -1 for what belongs to the whole."""

    segment: int
    line: Line


class Merged(Listed):
    """The sheet of one run of a turn; `here` is the segment that the cursor has reached."""

    def __init__(self, laid: Sequence[Laid], positions: dict[int, int], here: int, text: str) -> None:
        super().__init__([entry.line for entry in laid], copied=lambda: text)
        self.laid, self.positions, self.here, self.text = laid, positions, here, text
        self.shape: object = laid
        """The same for every sheet of one run: they differ in no line's height."""
        self.others: dict[int, Merged] = {here: self}
        self.focus = next((i for i, entry in enumerate(laid) if entry.segment == here >= 0), 0)

    def line(self, index: int) -> Line:
        """The line with its gutter, dimmed where it lies ahead."""
        entry = self.laid[index]
        if entry.segment < 0:
            return entry.line
        if entry.segment > self.here:
            ahead = tuple(Span(text, Role.AHEAD if role is Role.PLAIN else role) for text, role in entry.line)
            return (Span(f"{glyphs.AHEAD} ", Role.RULE), *ahead)
        gutter = HERE if entry.segment == self.here else glyphs.PAST
        return (Span(f"{gutter} ", Role.RULE), *entry.line)

    def at(self, response: int | None) -> Merged:
        """The same sheet with the cursor on another response."""
        here = self.positions.get(response, -1) if response is not None else -1
        found = self.others.get(here)
        if found is None:
            found = self.others[here] = Merged(self.laid, self.positions, here, self.text)
            found.others = self.others
        return found


def merged(view: View, block: Block, response: int | None) -> Merged:
    """The sheet of one run."""
    turn = view.steps[block.end - 1].turn
    laid: list[Laid] = []
    positions: dict[int, int] = {}
    texts: list[str] = []
    number = 0
    for order, segments in enumerate(turn.answers):
        if len(turn.answers) > 1:
            laid.append(Laid(-1, (Span(f"answer {order + 1} of {len(turn.answers)}", Role.TITLE),)))
        whole = turn.merged(order)
        texts.append(whole.text)
        for place, segment in enumerate(segments):
            if segment.response is not None:
                positions[segment.response] = number
            lines = _segment(view, turn, segments, place, whole)
            laid.extend(Laid(number, line) for line in lines)
            number += 1
        if not segments:
            laid.append(Laid(number, (Span("no answer was recorded here", Role.WARN),)))
            number += 1
    laid.extend(Laid(-1, line) for line in _end(turn))
    found = Merged(laid, positions, -1, "\n\n".join(text for text in texts if text))
    return found.at(response)


def _segment(view: View, turn: Turn, segments: Sequence[Segment], place: int, whole: Joined) -> list[Line]:
    segment = segments[place]
    seam = whole.seams[place - 1] if place else None
    starts = [0, *(each.at for each in whole.seams), len(whole.text)]
    start, end = starts[place], min(starts[place + 1 :])
    lines = _seam(seam) if seam is not None else []
    lines.append(_heading(view, segments, place))
    kept = whole.text[start:end]
    if kept:
        lines += paragraphs(kept.rstrip("\n") if _apart(whole.seams, place) else kept)
    elif segment.text:
        said_it = f"nothing of its {len(segment.text):,} characters stands: a later segment began anew"
        lines.append((Span(said_it, Role.WARN),))
    else:
        lines.append((Span("no visible text", Role.DIM),))
    if segment.response is not None and segment.response < len(view.responses):
        lines += _calls(view.responses[segment.response].verdicts)
    return lines


def _apart(seams: Sequence[Seam], place: int) -> bool:
    return place < len(seams) and seams[place].decision is Decision.APART


def _heading(view: View, segments: Sequence[Segment], place: int) -> Line:
    segment = segments[place]
    parts: list[tuple[Span, ...]] = [(Span(f"segment {place + 1}", Role.STRONG),)]
    if segment.response is not None and segment.response < len(view.responses):
        facts = view.responses[segment.response]
        parts.append((Span(tokens(facts.exchange.response), Role.DIM),))
        parts.append(reason(facts.exchange.response.raw_stop_reason, facts.judged.stop.normalized.value))
        parts.append((Span(f"response {segment.response}", Role.DIM),))
    parts.append((Span(f"{len(segment.text):,} chars", Role.DIM),))
    return joined(parts)


def reason(raw: str | None, word: str) -> tuple[Span, ...]:
    """The provider's word and ours."""
    seen = quoted(raw, Role.RAW, 40) if raw is not None else Span("no word", Role.RAW)
    return (seen, Span(" → ", Role.DIM), Span(word, Role.NORMALIZED))


def tokens(response: ChatResponse) -> str:
    """Output tokens in words, those of the thinking told apart."""
    usage = response.usage
    if usage is None or usage.output_tokens is None:
        return "tokens not reported"
    if usage.reasoning_tokens:
        return f"{usage.output_tokens:,} tokens ({usage.reasoning_tokens:,} thinking)"
    return f"{usage.output_tokens:,} tokens"


def _seam(seam: Seam) -> list[Line]:
    why = said(seam.why or seam.decision.value, Role.SEAM)
    lines: list[Line] = [(Span("══ seam: ", Role.SEAM), why, Span(" ══", Role.SEAM))]
    if seam.cut:
        half = CUT_SHOWN // 2
        shown = seam.cut if len(seam.cut) <= CUT_SHOWN else f"{seam.cut[:half]}…{seam.cut[-half:]}"
        lines.append((Span("− ", Role.REMOVED), quoted(shown, Role.REMOVED)))
    return lines


def _calls(verdicts: Sequence[Verdict]) -> list[Line]:
    return [_call(verdict) for verdict in verdicts]


def _call(verdict: Verdict) -> Line:
    glyph, role = glyphs.ADMISSION[verdict.admission]
    name = said(verdict.call.name or "unnamed", Role.STRONG)
    word = Span(f"{glyph} {verdict.admission.value.upper()} ", role)
    if verdict.admission is Admission.HELD:
        return (word, name, Span(" · ", Role.DIM), Span(ending(verdict)), Span(" · see Calls", Role.DIM))
    return (word, name, said(f" {verdict.call.arguments or ''}", Role.DIM, 160))


def ending(verdict: Verdict) -> str:
    """Where the arguments of a held call end, in words."""
    reading = parse(verdict.call.arguments)
    if reading.shape.value == "cut":
        return f"its arguments end at character {len(verdict.call.arguments or ''):,}: {reading.problem}"
    if verdict.rule == "gate.batch":
        return "its batch is unfinished"
    if reading.shape.value == "complete":
        return "its arguments are whole, the response is not"
    return reading.problem


def _end(turn: Turn) -> list[Line]:
    outcome = turn.outcome or turn.state
    if not turn.ended and turn.outcome is None:
        return []
    role = Role.OK if turn.terminal == "completed" else Role.ERROR
    lines: list[Line] = [(), (Span("ends in ", Role.DIM), Span(outcome.value, role), Span(f", {turn.terminal}", role))]
    if turn.notice:
        lines.append((said(turn.notice),))
    return lines
