"""The immutable record of a run: one `Step` for every move of the machine.

Logs, reports and screens all render a `Trace`; going back in time is an index. A step keeps the turn as it was after
the move, and turns share what did not change, so a trace costs little more than its moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from loop_core.events import Record, emitted
from loop_core.frozen import frozen
from loop_core.machine import step
from loop_core.policy import Signal
from loop_core.turn import Cancel, Effect, Event, Finish, NotRecorded, Recut, Responded, RunTools, Send, State, Turn


class Fidelity(StrEnum):
    """How far a step can be trusted."""

    RECORDED = "RECORDED"
    SIMULATED = "SIMULATED"
    LIVE = "LIVE"


@frozen(eq=False, repr=False)
class Step:
    """One move: the state that was entered, what led there, and the turn after it."""

    turn: Turn
    effects: tuple[Effect, ...] = ()
    came_from: State | None = None
    fidelity: Fidelity = Fidelity.RECORDED
    before: Turn | None = None
    """The turn before the move; None for the first step of a turn."""
    event: Event | None = None
    """What happened."""
    run: int = 0
    """Counts the runs of one turn: after our machine has ended where the recorded agent went on, a next one begins."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The structured events of this move; derived when they are asked for."""
        if self.before is None or self.event is None:
            return ()
        return emitted(self.before, self.event, self.turn, self.effects)

    @property
    def state(self) -> State:
        """The state that this step entered."""
        return self.turn.state

    @property
    def signal(self) -> Signal | None:
        """What led into it; None for the first step of a turn."""
        return self.turn.signal if self.came_from is not None else None

    @property
    def estimated(self) -> Recut | None:
        """The answer that this step took in, where a budget cut it at a place that is not known to the character."""
        event = self.event
        if type(event) is not Responded or event.recut is None or event.recut.apart is None:
            return None
        return event.recut

    @property
    def response(self) -> int | None:
        """The response at hand, by its index; None before the first."""
        return self.turn.evaluated.index if self.turn.evaluated else None


@frozen(eq=False, repr=False)
class Trace:
    """All steps of one or more turns, in order."""

    steps: tuple[Step, ...] = ()

    @property
    def left(self) -> int | None:
        """The index of the first step that is not RECORDED; None where the run never leaves the recording."""
        return next((index for index, step_ in enumerate(self.steps) if step_.fidelity is not Fidelity.RECORDED), None)

    @property
    def records(self) -> Iterator[Record]:
        """Every structured event, in order."""
        return (record for step_ in self.steps for record in step_.records)


def first(turn: Turn, effects: Iterable[Effect], fidelity: Fidelity = Fidelity.RECORDED, run: int = 0) -> Step:
    """The step that begins a turn."""
    return Step(turn, tuple(effects), None, fidelity, None, None, run)


def advance(previous: Step, event: Event, fidelity: Fidelity | None = None) -> Step:
    """The next step: one move of the machine. A turn that has left its recording does not come back to it."""
    before = previous.turn
    turn, effects = step(before, event)
    if fidelity is None or type(event) is NotRecorded:
        fidelity = previous.fidelity
    if type(event) is Responded and (event.recut is not None or event.made):
        fidelity = Fidelity.SIMULATED
    elif (type(event) is Responded or type(event) is Cancel) and event.live:
        fidelity = Fidelity.LIVE
    return Step(turn, effects, before.state, fidelity, before, event, previous.run)


def key(step_: Step) -> tuple[Any, ...]:
    """What makes two steps of two runs the same: state, signal, response, spent and effects, not identity.

    Two servers that were asked live have each its own answers, whatever number those have in their runs.
    """
    turn, event = step_.turn, step_.event
    heard = (event.response.parts, event.response.raw_stop_reason) if type(event) is Responded and event.live else None
    sends = tuple((e.place, e.ordinal, e.method, e.max_tokens) for e in step_.effects if isinstance(e, Send))
    runs = tuple(tuple((v.call.name, v.call.arguments, v.admission) for v in e.batch)
                 for e in step_.effects if isinstance(e, RunTools))
    ends = tuple(e.terminal for e in step_.effects if isinstance(e, Finish))
    return (turn.id, step_.run, turn.state, turn.signal, step_.response, turn.spent, turn.terminal, sends, runs, ends,
            heard)


def first_difference(left: Trace, right: Trace) -> int | None:
    """The index of the first step at which two runs differ; None where they are the same to the end."""
    for index, (one, other) in enumerate(zip(left.steps, right.steps, strict=False)):
        if one is not other and key(one) != key(other):
            return index
    if len(left.steps) == len(right.steps):
        return None
    return min(len(left.steps), len(right.steps))
