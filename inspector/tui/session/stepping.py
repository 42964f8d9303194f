"""Stepping: forwards and backwards, by step, by event, by turn, to a number."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from inspector.tui.session.base import Base

STEPPING_KEYS: list[BindingType] = [
    Binding("space", "step(1)", "step", tooltip="The next step", id="step.forward"),
    Binding("backspace", "step(-1)", "back", tooltip="The step before", id="step.back"),
    Binding("}", "event(1)", "event", tooltip="The next cut, held call, limit or end in trouble", id="event.next"),
    Binding("{", "event(-1)", "Event before", show=False, id="event.previous",
            tooltip="The cut, held call, limit or end in trouble before"),
    Binding("]", "turn(1)", "turn", tooltip="The first step of the next turn", id="turn.next"),
    Binding("[", "turn(-1)", "Turn before", show=False, id="turn.previous",
            tooltip="The first step of this turn, or of the one before"),
    Binding(":", "jump", "go to", tooltip="Go to a step by its number", id="jump"),
]


class Stepping(Base):
    """Stepping."""

    BINDINGS: ClassVar[list[BindingType]] = STEPPING_KEYS

    def action_step(self, by: int) -> None:
        """Steps forward or back."""
        last = len(self.run.view.steps) - 1
        target = self.step + by
        edge = "this is the last step" if by > 0 else "this is the first step"
        self._go(target if 0 <= target <= last else None, edge)

    def action_event(self, by: int) -> None:
        """Goes to the next or previous event worth stopping at."""
        assert self.outline is not None  # noqa: S101 - set in __init__
        where = "after" if by > 0 else "before"
        self._go(self.outline.interesting(self.step, by), f"nothing out of the ordinary {where} this step")

    def action_turn(self, by: int) -> None:
        """Goes to another turn."""
        assert self.outline is not None  # noqa: S101 - set in __init__
        edge = "this is the last turn" if by > 0 else "this is the first turn"
        self._go(self.outline.turn_start(self.step, by), edge)

    def action_jump(self) -> None:
        """Asks for a step's number."""
        from inspector.tui.screens.prompt import Prompt

        self.app.push_screen(Prompt("step", f"1 to {len(self.run.view.steps):,}"), self._jump)

    def _jump(self, typed: str | None) -> None:
        if typed is None:
            return
        plain = typed.strip().replace(",", "").replace("_", "")
        last = len(self.run.view.steps)
        if not plain.isdecimal() or not 1 <= int(plain) <= last:
            self.note = f"{typed!r} is no step: 1 to {last:,}"
            return
        self._go(int(plain) - 1, "")
