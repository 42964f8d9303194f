"""Where answers come from: a recording, or a list made by hand. Pure; the live source is in `transport`.

`Recorded` answers by place in the turn (first request, k-th continuation, repair, tool result, resumption), never by
comparing texts: our hint is never the recorded agent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from loop_core.frozen import field, frozen
from loop_core.history import Ability
from loop_core.turn import Cancel, Event, NotRecorded, Place, Responded, RunTools, Send, ToolsRun, Turn
from loop_core.values import Message, Request, ToolResultPart


class Source(Protocol):
    """Answers the effects of a turn."""

    def respond(self, send: Send, turn: Turn) -> Event:
        """The provider's answer to a request, or `NotRecorded`, or `Cancel`."""

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The results of the released calls, or `NotRecorded`, or `Cancel`."""

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """What the user said while the turn ran; empty ends the conversation."""


class AsyncSource(Protocol):
    """The same for an event loop."""

    async def respond(self, send: Send, turn: Turn) -> Event:
        """The provider's answer."""

    async def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The results of the released calls."""

    async def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """What the user said while the turn ran."""


@runtime_checkable
class Knows(Protocol):
    """A source that knows whom it asks."""

    def knows(self, request: Request) -> tuple[Ability, str]:
        """What the server allows, as far as continuing goes, and who it is."""


@frozen
class Recorded:
    """A recorded turn: its answers in order, each with the place that it was recorded at, and its tool results."""

    answers: tuple[tuple[Place, int, Responded], ...]
    results: Mapping[int, tuple[ToolResultPart, ...]] = field(default_factory=dict)
    """Tool results by the round of tools that they answer, from 0."""
    after: Event = NotRecorded()
    """What happens where the recording holds nothing more."""
    cancelled: bool = False
    """Whether the turn was ended by its operator after the last of the answers."""

    def respond(self, send: Send, turn: Turn) -> Event:
        """The next answer, if it was recorded at the place that is asked for."""
        position = turn.spent.requests - 1
        if position < len(self.answers):
            place, ordinal, answer = self.answers[position]
            if (place, ordinal) == (send.place, send.ordinal):
                return answer
        return self._end(position)

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The results recorded for this round; without them the recording ends here."""
        results = self.results.get(turn.spent.tool_steps)
        return self._end(turn.spent.requests) if results is None else ToolsRun(results)

    def _end(self, position: int) -> Event:
        """What happens where the recording holds nothing for the place at `position`."""
        return Cancel() if self.cancelled and position >= len(self.answers) else self.after

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """Nothing: the next recorded turn is a turn of its own."""
        return ()


class Scripted:
    """Answers in order from lists; a fake for tests and demonstrations."""

    def __init__(
        self,
        responses: Iterable[Event],
        results: Iterable[Event] = (),
        follow_ups: Sequence[Sequence[Message]] = (),
    ) -> None:
        self._responses, self._results = iter(responses), iter(results)
        self._follow_ups = iter(follow_ups)
        self.sent: list[Send] = []
        self.ran: list[RunTools] = []

    def respond(self, send: Send, turn: Turn) -> Event:
        """The next response of the list."""
        self.sent.append(send)
        return next(self._responses, NotRecorded())

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The next results of the list; without one, `ok` for every released call."""
        self.ran.append(effect)
        made = ToolsRun(tuple(ToolResultPart(v.call.id, v.call.name, "ok") for v in effect.released))
        return next(self._results, made)

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """The next list of messages."""
        return tuple(next(self._follow_ups, ()))
