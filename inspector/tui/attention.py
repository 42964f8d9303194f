"""The turns of a session that need attention, and the verdict on one of them in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from inspector.report.facts import TurnFacts, View
from inspector.report.lines import header
from inspector.report.lines.glyphs import hint, key_of
from inspector.report.lines.spans import EMPTY, Line, LineSheet, Span, Tone, field, more, safe
from inspector.report.lines.steps import SEVERITY, Outline
from inspector.tui.key_words import TABS
from inspector.tui.messages import ActionWanted, TabWanted, ask_operator
from inspector.tui.panels import Dialog, key_note, note
from inspector.tui.stage import SessionPart
from inspector.tui.text_view import TextView


class Attention(SessionPart):
    """Finds the turns with a bad verdict, the worst first, and moves the cursor to them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("!", "attention", "worst", id="attention",
                tooltip="The next turn that needs attention, the worst first: the step that its verdict is about"),
        Binding("V", "verdict", "verdict", show=False, id="verdict",
                tooltip="The whole verdict on this turn, with its advice and findings, and the verdicts on the others"),
    ]

    def action_attention(self) -> None:
        """Moves the cursor to the next turn that needs attention; after the last it returns to the first."""
        stage, view, rows, among = self.stage, self.stage.run.view, self.stage.rows, self.stage.rows.within
        runs = [turn.run for turn in view.turns]
        turns = [at for at in worst_first(view)
                 if rows.nearest(runs[at].first, runs[at].first, runs[at].end) is not None]
        if not turns:
            stage.note = f"no turn{among} needs attention"
            return
        place = place_after(turns, stage.run.outline.block_of(stage.step).turn)
        turn = view.turns[turns[place]]
        stage.go(rows.nearest(view.deciding_step(turn), turn.run.first, turn.run.end), "")
        where = attention_note(place, len(turns), "turn", among)
        stage.note = f"{where} · turn {turns[place] + 1:,}: {turn.verdict.word}"

    def open(self) -> None:
        """When a session opens, goes to the step that decides its worst verdict, if any needs attention."""
        view = self.stage.run.view
        found = worst_first(view)
        step = view.deciding_step(view.turns[found[0]]) if found else 0
        if step:
            self.stage.go(step, "")
            self.stage.greeting = f"turn {found[0] + 1:,} was decided here · :1 first step"
            self.stage.note = self.stage.greeting

    def action_verdict(self) -> None:
        """Opens the dialog with the verdict on the turn at the cursor."""
        stage = self.stage
        outline = stage.run.outline
        block = outline.block_of(stage.step) if outline.blocks else None
        turn = outline.view.turns[block.turn] if block is not None else None
        lines = verdict_lines(outline, turn, header.source(stage.session.label, outline.view, stage.run.name,
                                                           outline.file_of(block) if block is not None else ""))
        sheet = VerdictSheet([*lines, *([EMPTY, *stage.known] if stage.known else [])])
        ask_operator(stage.app, sheet, self._close)

    def _close(self, choice: str) -> None:
        """Runs the action of the key that closed the sheet."""
        follows = choice in FOLLOWS
        self.stage.post_message(ActionWanted(FOLLOWS[choice], self.stage) if follows else TabWanted(choice))


def place_after(found: Sequence[int], here: int) -> int:
    """The index after that of `here` in `found`; 0 if `here` is not in it or is its last."""
    return (found.index(here) + 1) % len(found) if here in found else 0


def attention_note(place: int, count: int, noun: str, among: str = "") -> str:
    """The note about the place that the cursor moved to: `2 of 30 turns that need attention`."""
    return (f"{place + 1:,} of {count:,} {noun}s{among} that need attention" if count > 1
            else f"the only {noun}{among} that needs attention")


def worst_first(view: View) -> Sequence[int]:
    """The indices of the turns that need attention, the worst first."""
    found = [at for at, turn in enumerate(view.turns) if not turn.verdict.clean]
    return sorted(found, key=lambda at: view.turns[at].verdict.rank)


def advised_turn(view: View, step: int) -> TurnFacts | None:
    """The turn whose advice applies at a step: the step's turn if it has advice, else the worst; None if none."""
    here = view.turn_of(step) if view.steps else None
    return here if here is None or here.verdict.advice is not None else view.worst


def idle_keys(view: View, step: int) -> frozenset[str]:
    """The ids of keys that do nothing at a step: the key of the advice, if no run can follow the advice."""
    turn = advised_turn(view, step)
    advice = turn.verdict.advice if turn is not None else None
    follows = advice is not None and (advice.set is not None or advice.live)
    return frozenset() if follows else frozenset({"advice"})


def verdict_lines(outline: Outline, turn: TurnFacts | None, source: Line) -> list[Line]:
    """All details of a turn's verdict, then the counts of all verdicts."""
    view = outline.view
    if turn is None:
        return [header.verdict(view), EMPTY, source]
    lines: list[Line] = [header.head_of(view, turn)[:-1], EMPTY, field("what", safe(turn.verdict.sentence))]
    if turn.verdict.advice is not None:
        key = hint(key_of(turn.verdict.advice.text), sentence=True)
        lines += [field("what to change ", safe(turn.verdict.advice.text, Tone.KEY)), *([more(*key)] if key else [])]
    for order, reported_finding in enumerate(turn.findings):
        message = safe(reported_finding.finding.message, SEVERITY[reported_finding.finding.severity])
        lines += [field("findings", message) if not order else more(message),
                  more(Span(reported_finding.finding.rule, Tone.DIM))]
    path = outline.block_of(turn.run.first).path
    lines += [EMPTY, field("file", safe(path)), field("all turns", *header.counts(view)), field("session", *source)]
    return lines


FOLLOWS = {"advice": "screen.advice", "live": "app.live"}
"""The id of a key that the sheet names after the advice -> its action in the session."""


class VerdictSheet(Dialog[str | None]):
    """A dialog with a verdict in full; returns the tab or the id in `FOLLOWS` whose key closed it, or None."""

    DEFAULT_CSS = "#whole { width: 100; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,V", "dismiss", "close", tooltip="Close", id="verdict.leave"),
        *(Binding(tab.key, f"dismiss('{tab.name}')", tab.title, show=False, tooltip=f"Close, and open {tab.title}",
                  id=f"tab.{tab.name}") for tab in TABS),
        Binding("F", "dismiss('advice')", "try", show=False, tooltip="Close, and follow the advice", id="advice"),
        Binding("L", "dismiss('live')", "live turn", show=False, tooltip="Close, and begin a live turn", id="live"),
    ]

    def __init__(self, lines: Sequence[Line]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        """Yields a title, the details and the key bar."""
        with Vertical(id="whole"):
            yield note("Verdict", Tone.TITLE)
            text = TextView()
            text.set_reactive(TextView.sheet, LineSheet(self._lines))
            text.add_class("long")
            yield text
            yield key_note(f"↑ ↓ scroll · {TABS[0].key} to {TABS[-1].key} open a tab · esc closes")
