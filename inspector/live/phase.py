"""What is under way in a live run, and what is seen of it from outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic

from inspector.live.flow import Flow
from inspector.live.stepper import Stepper
from loop_core.exchange import Heard
from loop_core.turn import Finish, RunTools, Send


class Phase(StrEnum):
    """What is under way."""

    WAITING = "waiting"
    """Nothing: the operator decides."""
    ASKING = "asking"
    """A request has left and nothing has come."""
    STREAMING = "streaming"
    RETRYING = "retrying"
    """The same request is sent again in a while."""
    RUNNING = "running"
    """Tools run."""
    OVER = "over"


BUSY = frozenset({Phase.ASKING, Phase.STREAMING, Phase.RETRYING, Phase.RUNNING})


@dataclass(slots=True)
class Live:
    """What is seen of the run from outside."""

    stepper: Stepper
    phase: Phase = Phase.WAITING
    heard: list[list[Heard]] = field(default_factory=lambda: [[]])
    """The answers of every turn."""
    flow: Flow | None = None
    """The answer under way."""
    failed: Heard | None = None
    """An answer that was none: it can be asked for again before the machine is told."""
    until: float = 0.0
    """When a request is sent again, by the monotonic clock."""
    running: bool = False
    """Whether effects are carried out without waiting."""
    problem: str = ""
    """Why the last thing that was asked for was not done."""

    @property
    def pending(self) -> Send | RunTools | Finish:
        """The effect that waits, or is carried out."""
        return self.stepper.waiting

    @property
    def seconds_left(self) -> float:
        """Until the request is sent again."""
        return max(0.0, self.until - monotonic())
