"""Operating: what the operator does to a live turn. Each effect waits for a key; the forms change what it will be."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from inspector.live.stepper import BUSY, Phase
from inspector.tui.session.stage import Part, SessionStage
from loop_core.errors import LoopError
from loop_core.turn.state import Finish, RunTools, Send

if TYPE_CHECKING:
    from inspector.live.driver import Driver

LOCKED = frozenset({
    "limits", "limits_from_here", "advice", "run", "tree", "rerun", "copy_command", "tune", "policies", "export",
    "report", "filter", "breakpoints", "mark", "to_mark", "note", "proceed",
})
"""Actions that need a session that is whole; they come back when the turn is over."""


class TurnControls(Part):
    """The keys of a live turn."""

    TITLE_OF_KEYS = "Live turn"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "live_do", "do", id="live.do",
                tooltip="Carry out what waits: send the request, answer the calls, accept the end"),
        Binding("D", "live_run", "run", id="live.run", tooltip="Carry out what follows without waiting, to the end"),
        Binding("a", "live_pause", "pause", id="live.pause", tooltip="Wait again once what is under way is done"),
        Binding("i", "live_edit", "edit", id="live.edit",
                tooltip="Edit what waits: budget and limits, or how each call is answered"),
        Binding("I", "live_body", "body", id="live.body", tooltip="Edit the body of the request that waits, as JSON"),
        Binding("T", "live_again", "try again", id="live.again", tooltip="Send a request again that got no answer"),
        Binding("M", "live_say", "say", id="live.say", tooltip="Say something more after the end: the next turn"),
    ]

    def __init__(self, stage: SessionStage, driver: Driver, changed: Callable[[], None]) -> None:
        """`changed` hears that the turn may stand otherwise."""
        super().__init__(stage)
        self.driver, self._changed = driver, changed
        self.finished = False
        """Whether the run is over and the screen shows its recording."""

    def allows(self, action: str) -> bool:
        """Whether an action means something now."""
        if action.startswith("live_"):
            return not self.finished and MEANS[action](self.driver)
        return self.finished or action not in LOCKED

    def work(self, work: Coroutine[Any, Any, None]) -> None:
        """Does something while keys are answered; the driver does one thing at a time."""
        self.stage.run_worker(work, group="live", exit_on_error=True)

    def action_live_do(self) -> None:
        """Carries out the effect that waits."""
        self.work(self.driver.act())

    def action_live_run(self) -> None:
        """Carries out what follows; where something is under way, what follows it."""
        self.work(self.driver.run())

    def action_live_pause(self) -> None:
        """Waits again after the effect under way."""
        self.driver.pause()

    def action_live_again(self) -> None:
        """Sends a request again."""
        self.work(self.driver.again())

    def action_live_edit(self) -> None:
        """Opens the form for what waits."""
        effect = self.driver.live.pending
        if isinstance(effect, RunTools):
            from inspector.tui.live.calls import CallsForm

            self.stage.app.push_screen(CallsForm(effect, self.driver.answers), lambda _: self._changed())
            return
        from inspector.tui.live.budget import BudgetForm

        self.stage.app.push_screen(BudgetForm(self.driver), self._edited)

    def _edited(self, changed: str | None) -> None:
        if changed is not None:
            self.stage.note = changed
        self._changed()

    def action_live_body(self) -> None:
        """Opens the editor."""
        from inspector.tui.live.budget import BodyEditor

        self.stage.app.push_screen(BodyEditor(self.driver), self._edited)

    def action_live_say(self) -> None:
        """Asks for a message."""
        from inspector.tui.screens.prompt import Prompt

        self.stage.app.push_screen(Prompt("say", "what the user says next"), self._say)

    def _say(self, typed: str | None) -> None:
        if typed is None:
            return
        try:
            self.driver.say(typed)
        except LoopError as why:
            self.stage.note = str(why)


def _waits_for(*effects: type) -> Callable[[Driver], bool]:
    return lambda driver: driver.live.phase is Phase.WAITING and isinstance(driver.live.pending, effects)


MEANS: dict[str, Callable[[Driver], bool]] = {
    "live_do": lambda driver: driver.live.phase is Phase.WAITING,
    "live_run": lambda driver: not driver.live.running,
    "live_pause": lambda driver: driver.live.running,
    "give_up": lambda driver: driver.live.phase in BUSY or not isinstance(driver.live.pending, Finish),
    "live_edit": lambda driver: driver.live.phase is Phase.WAITING,
    "live_body": _waits_for(Send),
    "live_again": lambda driver: driver.live.failed is not None and driver.live.phase is Phase.WAITING,
    "live_say": _waits_for(Finish),
}
"""Action -> when it means something."""
