"""Stepping: forwards and backwards by step, event and turn, or to a breakpoint; held keys run faster.

With a filter in force only the steps that it keeps are stepped to.
"""

from __future__ import annotations

from time import monotonic
from typing import ClassVar

from textual.binding import Binding, BindingType

from inspector.tui.remarks import RemarkBook
from inspector.tui.stage import SessionPart, SessionStage

REPEAT = 0.09
"""Seconds within which a key that comes again is held down."""
LATER = 8
"""Repeats after which a held key takes twice as many steps at a time."""
SHARE = 50
"""A held key never takes more than this part of the session at a time."""


class Stepping(SessionPart):
    """Where the cursor goes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "step(1)", "step", tooltip="The next step; held down, faster and faster", id="step.forward"),
        Binding("backspace", "step(-1)", "back", tooltip="The step before", id="step.back"),
        Binding("}", "event(1)", "event", tooltip="The next cut, held call, limit or end in trouble", id="event.next"),
        Binding("{", "event(-1)", "Event before", show=False, id="event.previous",
                tooltip="The cut, held call, limit or end in trouble before"),
        Binding("c", "proceed(1)", "continue", id="continue", tooltip="Run to the next breakpoint, else to the end"),
        Binding("C", "proceed(-1)", "Run back", show=False, id="continue.back",
                tooltip="Run back to the breakpoint before, else to the first step"),
        Binding("]", "turn(1)", "turn", tooltip="The first step of the next turn", id="turn.next"),
        Binding("[", "turn(-1)", "Turn before", show=False, id="turn.previous",
                tooltip="The first step of this turn, or of the one before"),
    ]

    def __init__(self, stage: SessionStage, remarks: RemarkBook) -> None:
        super().__init__(stage)
        self.remarks = remarks
        self._struck, self._streak = (0, 0.0), 0
        """The last move and when it came; how often it has come in a row."""

    def action_step(self, by: int) -> None:
        """Steps forward or back."""
        target = self.moved(by)
        edge = f"this is the {'last' if by > 0 else 'first'} step"
        self.stage.go(None if target == self.stage.step else target, f"{edge}{self.stage.rows.within}")

    def moved(self, by: int) -> int:
        """The step that a move leads to, among those that the list shows; a held key moves further."""
        now, (before, at) = monotonic(), self._struck
        self._streak = self._streak + 1 if before == by and now - at < REPEAT else 0
        self._struck = (by, now)
        most = max(1, len(self.stage.run.view.steps) // SHARE)
        return self.stage.rows.moved(self.stage.step, by * min(2 ** (self._streak // LATER), most))

    def action_event(self, by: int) -> None:
        """Goes to the next or previous event worth stopping at."""
        where = f"{'after' if by > 0 else 'before'} this step{self.stage.rows.within}"
        self.stage.go(self.stage.rows.interesting(self.stage.step, by), f"nothing out of the ordinary {where}")

    def action_proceed(self, by: int) -> None:
        """Runs to the next or previous breakpoint; where there is none, to the end."""
        from inspector.tui.breakpoints import next_stop

        found = next_stop(self.remarks.breakpoints, self.stage.run.view, self.stage.step, by, self.remarks.marks)
        if found is not None:
            filtered = self.stage.filtered
            self.stage.go(found[0], "")
            lifted = "; the filter is taken away" if filtered and not self.stage.filtered else ""
            self.stage.note = f"breakpoint: {found[1]}{lifted}"
            return
        self.stage.step = self.stage.rows.moved(self.stage.step, by * len(self.stage.run.view.steps))
        where = f"the {'last' if by > 0 else 'first'} step{self.stage.rows.within}"
        enabled = any(each.enabled for each in self.remarks.breakpoints)
        self.stage.note = f"no breakpoint on the way: {where}" + ("" if enabled else "; b sets breakpoints")

    def action_turn(self, by: int) -> None:
        """Goes to another turn."""
        edge = f"this is the {'last' if by > 0 else 'first'} turn{self.stage.rows.within}"
        self.stage.go(self.stage.rows.turn_start(self.stage.step, by), edge)
