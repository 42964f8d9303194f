"""Compares any two turns: of one session, of two of its runs, or of two sessions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from textual.binding import Binding, BindingType

from inspector.report.lines.spans import last_name, one_line
from inspector.tui.messages import ask_operator
from inspector.tui.stage import SessionPart

if TYPE_CHECKING:
    from inspector.report.facts import TurnFacts, View
    from inspector.whatif.turn_pair import TurnSide


@runtime_checkable
class KeepingApp(Protocol):
    """An app that stores a turn for comparison with a turn of another session."""

    turn_to_compare: TurnSide | None


class TurnComparison(SessionPart):
    """Compares the turn at the cursor with another."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "compare", "Compare", show=False, id="compare",
                tooltip="Compare this turn with another: of this session, or of another one"),
    ]

    def action_compare(self) -> None:
        """Asks for the other turn, then shows both."""
        from inspector.tui.lists import Choose

        view = self.stage.run.view
        if not view.steps:
            self.stage.note = "there is no turn to compare: nothing was read"
            return
        here, about = view.turn_of(self.stage.step), partial(_about, several=len(self.stage.run.outline.files) > 1)
        others = [turn for turn in view.turns if turn is not here]
        app, original = self.stage.app, self._original(here)
        rows: list[tuple[str, str, Callable[[], None]]] = []
        if original is not None:
            rows.append(("original", about(original.view, original.turn),
                         partial(self._show_pair, original, self._side(here))))
        if isinstance(app, KeepingApp) and (side := app.turn_to_compare) is not None:
            rows.append(("put aside", one_line(f"{side.name} · {side.turn.verdict.count_word}"),
                         partial(self._show_pair, side, self._side(here))))
        start = 0 if rows or not others else 1 + others.index(min(others, key=lambda turn: turn.verdict.rank))
        rows.append(("this turn", "is put aside, to be compared with a turn of another session",
                     partial(self._put_aside, here)))
        rows += [(f"turn {view.number(turn):,}", about(view, turn), partial(self.compare_with, view.number(turn)))
                 for turn in others]
        choice = Choose(f"Compare turn {view.number(here):,} with…", [(word, text) for word, text, _ in rows], start)
        acts = {word: act for word, _, act in rows}
        ask_operator(app, choice, lambda word: acts[word]())

    def _original(self, here: TurnFacts) -> TurnSide | None:
        """In a branch, the same turn of the original run."""
        runs = self.stage.runs
        original = runs.tree.original
        if runs.node is original:
            return None
        from inspector.whatif.turn_pair import side_of

        return side_of(original.view, original.view.turns[self.stage.run.view.number(here) - 1], original.path)

    def compare_with(self, number: int) -> None:
        """Compares the turn at the cursor with the turn of this number."""
        view = self.stage.run.view
        if not 1 <= number <= len(view.turns):
            self.stage.note = f"turn {number:,}: this session has the turns 1 to {len(view.turns):,}"
            return
        self._show_pair(self._side(view.turn_of(self.stage.step)), self._side(view.turns[number - 1]))

    def _side(self, turn: TurnFacts) -> TurnSide:
        from inspector.whatif.turn_pair import side_of

        run = self.stage.run
        return side_of(run.view, turn, "" if run.branch is None else run.name)

    def _put_aside(self, here: TurnFacts) -> None:
        app = self.stage.app
        if isinstance(app, KeepingApp):
            app.turn_to_compare = self._side(here)
            self.stage.note = "put aside · open another session and press d to compare"

    def _show_pair(self, left: TurnSide, right: TurnSide) -> None:
        from inspector.tui.run_views import SideBySide

        ask_operator(self.stage.app, SideBySide(left, right), lambda step: self.stage.go(step, ""))


def _about(view: View, turn: TurnFacts, several: bool) -> str:
    """A turn's verdict, with its file if there are several."""
    verdict = turn.verdict
    file = f" · {last_name(view.replay.case.recording.exchanges[turn.responses[0]].path)}" if several else ""
    return one_line(f"{verdict.glyph} {verdict.count_word}{file} · {verdict.sentence}")
