"""Stepping: forwards and backwards, by step, event and turn, to a number or a breakpoint; held keys run faster."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar

from textual.binding import Binding, BindingType

from inspector.tui.session.base import Base

REPEAT = 0.09
"""Seconds within which a key that comes again is held down."""
LATER = 8
"""Repeats after which a held key takes twice as many steps at a time."""
SHARE = 50
"""A held key never takes more than this part of the session at a time."""


class Stepping(Base):
    """Where the cursor goes."""

    TITLE_OF_KEYS = "Stepping"
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
    _struck, _streak = (0, 0.0), 0
    """The last move and when it came; how often it has come in a row."""

    def action_step(self, by: int) -> None:
        """Steps forward or back."""
        target = self._moved(by)
        edge = f"this is the {'last' if by > 0 else 'first'} step" + (" that the filter keeps" if self.filtered else "")
        self._go(None if target == self.step else target, edge)

    def _moved(self, by: int) -> int:
        """The step that a move leads to, among those that the list shows; a held key moves further."""
        now, (before, at) = monotonic(), self._struck
        self._streak = self._streak + 1 if before == by and now - at < REPEAT else 0
        self._struck = (by, now)
        assert self.listed is not None  # noqa: S101 - set in __init__
        most = max(1, len(self.run.view.steps) // SHARE)
        return self.listed.moved(self.step, by * min(2 ** (self._streak // LATER), most))

    def action_event(self, by: int) -> None:
        """Goes to the next or previous event worth stopping at."""
        assert self.outline is not None  # noqa: S101 - set in __init__
        where = "after" if by > 0 else "before"
        self._go(self.outline.interesting(self.step, by), f"nothing out of the ordinary {where} this step")

    def action_proceed(self, by: int) -> None:
        """Runs to the next or previous breakpoint; where there is none, to the end."""
        from inspector.tui.session.stops import next_stop

        found = next_stop(self.breakpoints, self.run.view, self.step, by, self.remarks.marks)
        if found is not None:
            self.step, self.note = found[0], f"breakpoint: {found[1]}"
            return
        self.step = len(self.run.view.steps) - 1 if by > 0 else 0
        where = "the last step" if by > 0 else "the first step"
        enabled = any(each.enabled for each in self.breakpoints)
        self.note = f"no breakpoint on the way: {where}" + ("" if enabled else "; b sets breakpoints")

    def action_turn(self, by: int) -> None:
        """Goes to another turn."""
        assert self.outline is not None  # noqa: S101 - set in __init__
        edge = "this is the last turn" if by > 0 else "this is the first turn"
        self._go(self.outline.turn_start(self.step, by), edge)
