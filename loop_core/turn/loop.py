"""Runs turns: `run` and `arun` carry out the effects of the state machine through a source of answers.

The source of a recording is here, the live one in `loop_core.client.transport`. `RecordedSource` finds an answer by its
place in the turn (first request, k-th continuation, repair, tool result, resumption), never by comparing texts, because
the engine's hint differs from the recorded agent's.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, runtime_checkable

from loop_core.errors import check_kinds, check_methods
from loop_core.turn import moves
from loop_core.turn.history import Ability
from loop_core.turn.limits import Limits
from loop_core.turn.machine import begin
from loop_core.turn.policy import STRICT, Policy
from loop_core.turn.state import (
    ENDED,
    Cancel,
    Event,
    NotRecorded,
    ProviderResponse,
    RequestPlace,
    RunTools,
    Send,
    Tick,
    ToolResults,
    Turn,
)
from loop_core.turn.trace import Fidelity, Step, Trace, first_step, next_step
from loop_core.values import Message, Request, ToolResultPart


class TurnSource(Protocol):
    """Answers the effects of a turn. Arguments are passed by position, so an implementation may name them freely."""

    def respond(self, send: Send, turn: Turn, /) -> Event:
        """The provider's answer to a request, or `NotRecorded`, or `Cancel`."""

    def run_tools(self, effect: RunTools, turn: Turn, /) -> Event:
        """The results of the released calls, or `NotRecorded`, or `Cancel`."""

    def follow_up(self, turn: Turn, /) -> tuple[Message, ...]:
        """The messages that the user wrote while the turn ran; if there are none, the conversation ends."""


class AsyncTurnSource(Protocol):
    """The interface of `TurnSource` with coroutines, for an event loop."""

    async def respond(self, send: Send, turn: Turn, /) -> Event:
        """The provider's answer."""

    async def run_tools(self, effect: RunTools, turn: Turn, /) -> Event:
        """The results of the released calls."""

    async def follow_up(self, turn: Turn, /) -> tuple[Message, ...]:
        """The messages that the user wrote while the turn ran."""


@runtime_checkable
class ServerAware(Protocol):
    """A source that knows the abilities of its server."""

    def knows(self, request: Request, /) -> tuple[Ability, str]:
        """The methods of continuation that the server is known to support, and its profile."""


NO_RECORDED_ANSWER = "The recorded agent went another way here: what this loop asks for next was never recorded."
"""The message if a recording has further answers, but none for the requested place."""


class RecordedSource(NamedTuple):
    """A recorded turn: its answers in order, each with its place in the turn, and its tool results."""

    answers: Sequence[tuple[RequestPlace, int, ProviderResponse]]
    results: Mapping[int, tuple[ToolResultPart, ...]] | Sequence[tuple[ToolResultPart, ...]] = ()
    """Round of tools, from 0 -> the tool results of this round."""
    after: Event = NotRecorded()
    """The event for every place where the recording has no further answer."""
    cancelled: bool = False
    """Whether the operator ended the turn after the last of the answers."""

    def respond(self, send: Send, turn: Turn) -> Event:
        """The next answer, if it was recorded at the requested place."""
        # `requests` includes the pending request, so the first answer is that of request 1.
        position = turn.spend.requests - 1
        try:
            place, ordinal, answer = self.answers[position]
        except IndexError:
            return self._end(position)
        # By place, not by text: a request at another place was never answered, even with a similar text.
        return answer if (place, ordinal) == (send.place, send.ordinal) else NotRecorded(NO_RECORDED_ANSWER)

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The recorded results of this round; without them the recording ends here."""
        # `tool_steps` counts this round only when its results arrive.
        try:
            return ToolResults(self.results[turn.spend.tool_steps])
        except LookupError:
            return self._end(turn.spend.requests)

    def _end(self, position: int) -> Event:
        """The event if the recording has nothing for the place at `position`."""
        return Cancel() if self.cancelled and position >= len(self.answers) else self.after

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """Nothing: the next recorded turn is a turn of its own."""
        return ()


# -- `run` and `arun`: thin drivers that carry out the effects of `step` through a source, and return the trace ------
# The two differ only in `await`. They decide nothing: the machine decides, and the source answers.


_TICK = Tick()


class Plan(NamedTuple):
    """The parameters of a run: policy, limits, abilities, server."""

    limits: Limits = Limits()
    """The hard limits of each turn."""
    policy: Policy = STRICT
    """How the loop decides."""
    ability: Ability | None = None
    """The server's abilities; None for those that the source knows, or else those of every server of the format."""
    provider: str = ""
    """The name of the server's profile; empty for the one that the source knows."""
    fidelity: Fidelity = Fidelity.LIVE
    """The origin of the answers, as the steps name it."""
    run: int = 0
    """The number of the run, which its steps repeat."""
    bound_by: int | None = None
    """The value from which the token bound is derived; None if it is the request's cap (`Turn.bound_by`)."""


_PLAN = Plan()


def run(turn_id: str, request: Request, source: TurnSource, plan: Plan | None = None) -> Trace:
    """Runs a turn to its end, including follow-up messages.

    Args:
        turn_id: a name for the turn, which its events repeat.
        request: the first request.
        source: an object with the methods of `TurnSource`, such as `Live`; it answers requests and runs calls.
        plan: limits and policy; None: the defaults of `Plan`.

    Raises:
        CallerError: an argument has the wrong type, or the source lacks a method.
    """
    check_methods("source", source, TurnSource)
    check_kinds(("request", request, Request), ("plan", plan or _PLAN, Plan))
    return Trace(tuple(steps(turn_id, request, source, plan or _PLAN)))


def steps(turn_id: str, request: Request, source: TurnSource, plan: Plan) -> Iterator[Step]:
    """The steps of a run, one at a time; the next answer is requested only when the next step is."""
    current = request
    plan = complete_plan(plan, current, source)
    for follow in range(plan.limits.max_follow_ups + 1):
        step_ = opening_step(follow_up_id(turn_id, follow), current, plan)
        yield step_
        for after in steps_from(step_, source):
            step_ = after
            yield step_
        # A follow-up after a failed turn would hide the failure under an answer to something else.
        if step_.turn.terminal != "completed" or follow == plan.limits.max_follow_ups:
            return
        messages = source.follow_up(step_.turn)
        if not messages:
            return
        # Made from the first request: its cap and its tools apply to follow-ups too.
        current = next_turn_request(request, step_.turn, messages)


async def arun(turn_id: str, request: Request, source: AsyncTurnSource, plan: Plan | None = None) -> Trace:
    """`run` on an event loop, with a source whose methods are coroutines (`AsyncLive`)."""
    check_methods("source", source, AsyncTurnSource)
    check_kinds(("request", request, Request), ("plan", plan or _PLAN, Plan))
    return Trace(tuple([step_ async for step_ in asteps(turn_id, request, source, plan or _PLAN)]))


async def asteps(turn_id: str, request: Request, source: AsyncTurnSource, plan: Plan) -> AsyncIterator[Step]:
    """The steps of a run on an event loop."""
    current = request
    plan = complete_plan(plan, current, source)
    for follow in range(plan.limits.max_follow_ups + 1):
        step_ = opening_step(follow_up_id(turn_id, follow), current, plan)
        yield step_
        async for after in asteps_from(step_, source):
            step_ = after
            yield step_
        if step_.turn.terminal != "completed" or follow == plan.limits.max_follow_ups:
            return
        messages = await source.follow_up(step_.turn)
        if not messages:
            return
        current = next_turn_request(request, step_.turn, messages)


def turn_steps(turn_id: str, request: Request, source: TurnSource, plan: Plan) -> Iterator[Step]:
    """The steps of one turn without follow-ups, as a replay needs them."""
    step_ = opening_step(turn_id, request, complete_plan(plan, request, source))
    yield step_
    yield from steps_from(step_, source)


def steps_from(step_: Step, source: TurnSource) -> Iterator[Step]:
    """The steps after `step_`, not including it. A turn is a value, so a run can resume from any step."""
    turn = step_.turn
    while turn.state not in ENDED:
        effect = step_.effects[0] if step_.effects else None
        event: Event = _TICK
        # `type(…) is` rather than isinstance: this is the innermost loop of every replay and grid, and effects have no
        # subclasses.
        if type(effect) is Send:
            event = source.respond(effect, turn)
        elif type(effect) is RunTools:
            event = source.run_tools(effect, turn)
        step_ = next_step(step_, event)
        turn = step_.turn
        yield step_


async def asteps_from(step_: Step, source: AsyncTurnSource) -> AsyncIterator[Step]:
    """`steps_from` on an event loop."""
    while not step_.turn.ended:
        effect = step_.effects[0] if step_.effects else None
        if isinstance(effect, Send):
            event = await source.respond(effect, step_.turn)
        elif isinstance(effect, RunTools):
            event = await source.run_tools(effect, step_.turn)
        else:
            event = _TICK
        step_ = next_step(step_, event)
        yield step_


def complete_plan(plan: Plan, request: Request, source: TurnSource | AsyncTurnSource) -> Plan:
    """The plan, completed with the source's knowledge of its server: abilities and profile."""
    if plan.ability is not None or not isinstance(source, ServerAware):
        return plan
    ability, provider = source.knows(request)
    return plan._replace(ability=ability, provider=plan.provider or provider)


def opening_step(turn_id: str, request: Request, plan: Plan) -> Step:
    """Returns the first step of a turn, whose first request is pending."""
    turn, effects = begin(turn_id, request, plan.limits, plan.policy, plan.ability, plan.provider, plan.bound_by)
    return first_step(turn, effects, plan.fidelity, plan.run)


def follow_up_id(turn_id: str, follow: int) -> str:
    """The id of a follow-up turn, made from its number."""
    return f"{turn_id}+{follow}" if follow else turn_id


def next_turn_request(request: Request, turn: Turn, messages: tuple[Message, ...]) -> Request:
    """The first request of the next turn: the history of the last turn, followed by the user's new messages."""
    return replace(request, messages=(*moves.final_history(turn), *messages))
