"""A live turn as a value that waits before each effect, and the operator's changes to that effect.

The module is pure: it opens no connection and depends on no screen. A driver runs the effect and reports the result;
the machine decides. A change under which past steps would have been different is refused, because the recording must
give the same turn when it is read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import monotonic
from typing import Any

from inspector.replay import resume_step
from loop_core.client.address import Server, expected_profile
from loop_core.client.exchange import LiveResponse
from loop_core.client.outgoing import LiveRequest, body_of, keeps_conversation, known_ability, live_request_for
from loop_core.client.streaming import MaskedText
from loop_core.errors import CallerError, DecodeError, LoopError
from loop_core.judge.gate import admit_response
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, next_turn_request
from loop_core.turn.loop import opening_step as first_step
from loop_core.turn.state import (
    GOES_ON,
    Effect,
    Event,
    Finish,
    RequestPlace,
    RunTools,
    Send,
    State,
    Tick,
    cancelled_answer,
)
from loop_core.turn.trace import Step, next_step, step_key
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire import stream_reader, wire


class ArrivingAnswer:
    """One answer while it streams; its new pieces are decoded when a screen is drawn."""

    def __init__(self, api: str, number: int, secrets: Sequence[str]) -> None:
        """`secrets` are masked even if a server sends them in pieces."""
        self.number = number
        self.status: int | None = None
        """The HTTP status; None until the head of the answer has arrived."""
        self.headers: Sequence[tuple[str, str]] = ()
        self.size = 0
        self.ms = 0.0
        self.bytes: list[bytes] = []
        self._api = api
        self._read = 0
        self._decoder, self._found = stream_reader(api)
        self._broken = False
        self._kinds = {kind: MaskedText(secrets) for kind in ("text", "thinking", "call")}

    def take_head(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Notes that the head of the answer arrived."""
        self.status, self.headers = status, headers
        # only the content type shows the framing of some servers
        self._decoder, self._found = stream_reader(self._api, headers)

    def take_data(self, data: bytes, ms: float) -> None:
        """Notes that a piece of the answer arrived."""
        self.bytes.append(data)
        self.size += len(data)
        self.ms = ms

    def read(self) -> bool:
        """Decodes the new pieces; returns whether there were any."""
        fresh, self._read = self.bytes[self._read :], len(self.bytes)
        if fresh and not self._broken:
            try:
                self._decoder.feed(b"".join(fresh))
            except DecodeError:
                self._broken = True  # the judge reports it at the end of the answer
        return bool(fresh)

    @property
    def text(self) -> str:
        """The visible text decoded so far."""
        return self._kinds["text"].of(self._found.text)

    @property
    def thinking(self) -> str:
        """The reasoning decoded so far."""
        return self._kinds["thinking"].of(self._found.thinking)

    @property
    def call(self) -> str:
        """The arguments of all calls so far, joined."""
        return self._kinds["call"].of(self._found.call)


# -- The turn --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stepper:
    """The state of a live turn."""

    server: Server
    plan: Plan
    opening: Request
    """The first request of the turn, with the operator's edits."""
    steps: tuple[Step, ...]
    past: tuple[tuple[Step, ...], ...] = ()
    """The steps of each earlier turn."""
    request: LiveRequest | None = None
    """The waiting request; None if no request waits."""
    edits: tuple[str, ...] = ()
    unsendable: str = ""
    """Why the waiting request cannot be sent in this format; empty if it can be sent."""

    @property
    def last(self) -> Step:
        """The step that waits."""
        return self.steps[-1]

    @property
    def waiting(self) -> Effect:
        """The waiting effect."""
        return self.last.effects[0]

    @property
    def turns(self) -> tuple[tuple[Step, ...], ...]:
        """The steps of every turn."""
        return (*self.past, self.steps)

    def after_event(self, event: Event, count: int) -> Stepper:
        """The turn after an event, at its next effect; `count` is the number of sent requests."""
        return _advance(replace(self, steps=(*self.steps, next_step(self.last, event))), count)

    def after_answer(self, answer: LiveResponse, count: int, cancelled: bool = False) -> Stepper:
        """The turn after an answer, even one that the operator cancelled."""
        judged = cancelled_answer(answer.judgement) if cancelled else answer.judgement
        verdicts = admit_response(answer.response, judged, answer.ask.request)
        return self.after_event(answer.event._replace(judgement=judged, verdicts=verdicts), count)

    def next_turn(self, text: str, count: int) -> Stepper:
        """The next turn, with the history of the last one and a message of the user. Raises `CallerError` if the
        message is empty, `max_follow_ups` is reached, or the server stores the conversation."""
        if not text.strip():
            raise CallerError("the message is empty: expected text")
        if keeps_conversation(self.opening):
            raise CallerError("the server keeps this conversation and would get the history twice: expected "
                              "a new live turn with the new message alone")
        most = self.plan.limits.max_follow_ups
        if len(self.past) >= most:
            raise CallerError(f"max_follow_ups ({most}) is reached; it can be raised")
        message = Message(Role.USER, (TextPart(text),))
        request = next_turn_request(self.opening, self.last.turn, (message,))
        name = f"t{len(self.turns) + 1}"  # as it is called when the recording is read
        step = first_step(name, request, self.plan)
        return _advance(replace(self, opening=request, steps=(step,), past=self.turns, edits=()), count)

    def with_limits(self, limits: Limits) -> Stepper:
        """The turn with other limits. Raises `CallerError` if past steps would have been different under them."""
        plan = self.plan._replace(limits=limits)
        at = self._first_changed_step(plan)
        again = self.last.state is State.EXECUTE_TOOLS  # this state is entered again, and checks its guards then
        if at is not None and at < len(self.steps) - again:
            raise CallerError(f"step {at + 1:,} ({self.steps[at].state.value}) depends on the limits as they were: "
                              "the turn cannot be changed before this step")
        last = resume_step(self.last, self.opening, plan)
        return _advance(replace(self, plan=plan, steps=(*self.steps[:-1], last)), None, self.request)

    def _first_changed_step(self, plan: Plan) -> int | None:
        """The index of the first step that another plan would change; None if there is none."""
        for index, step in enumerate(self.steps):
            one, other = (_remake_step(each, step, self.opening) for each in (self.plan, plan))
            # The notice too: it names limits, and the recording must give the same one.
            if (step_key(one), one.turn.notice) != (step_key(other), other.turn.notice):
                return index
        return None

    def with_cap(self, cap: int | None) -> Stepper:
        """The turn with another budget for the waiting request. Raises `LoopError` if the format requires one, or if
        the body was edited, so that it cannot be encoded again."""
        waiting, send = self._waiting_request()
        if cap == waiting.request.max_tokens:
            return self
        request = replace(waiting.request, max_tokens=cap)
        body = self._body(request, send)
        # A new cap is written by encoding the request again, which would drop edits of the body.
        if "body" in self.edits and self._body(waiting.request, send) != waiting.body:
            raise CallerError("max_tokens: the body was edited by hand; change it there")
        return self._with_request(send._replace(max_tokens=cap), waiting, request, body, "max_tokens")

    def with_body(self, body: Mapping[str, Any]) -> Stepper:
        """The turn with another body for the waiting request, which is sent unchanged. Raises `LoopError` if it is not
        a request of this format."""
        waiting, send = self._waiting_request()
        if waiting.body is None:
            raise CallerError("this request has no body: it fetches an answer that is still being generated")
        if body == waiting.body:
            return self
        read = wire(waiting.request.api).read_request(body, waiting.url)
        if not any(message.parts for message in read.messages):
            raise CallerError(f"not a request of {waiting.request.api}: it holds no messages")
        streams = read.stream if "stream" in body else waiting.request.stream
        # Gemini's bodies name neither model nor stream; the path names both.
        request = replace(read, model=read.model or waiting.request.model, stream=streams)
        return self._with_request(send._replace(max_tokens=request.max_tokens), waiting, request, body, "body")

    def _waiting_request(self) -> tuple[LiveRequest, Send]:
        send = self.waiting
        if self.request is None or not isinstance(send, Send):
            raise CallerError("no request waits to be sent")
        return self.request, send

    def _body(self, request: Request, send: Send) -> dict[str, Any]:
        return body_of(request, expected_profile(self.server, request.model).profile, send.method)

    def _with_request(
        self, send: Send, live_request: LiveRequest, request: Request, body: Mapping[str, Any], what: str
    ) -> Stepper:
        """The turn with another request; the messages that this request adds become part of the history."""
        edited = tuple(dict.fromkeys((*self.edits, what)))
        step, opening, turn = self.last, self.opening, self.last.turn
        if len(self.steps) == 1:
            opening = request
            step = first_step(turn.id, request, self.plan)
        elif send.method in GOES_ON:  # adds no message to the history, so that an edit affects only the request
            step = step._replace(turn=turn._replace(last_send=send), effects=(send,))
        else:
            # only appended to: the history of the turn stays as it is
            extends_history = request.messages[: len(turn.history)] == turn.history
            added = (request.messages[len(turn.history) :]
                     if extends_history and send.place is not RequestPlace.REQUEST else ())
            send = send._replace(new_messages=added)
            history = turn.history if extends_history and send.place is not RequestPlace.REQUEST else request.messages
            turn = turn._replace(last_send=send, history=history)
            step = step._replace(turn=turn, effects=(send,))
        return replace(self, opening=opening, steps=(*self.steps[:-1], step), edits=edited,
                       request=replace(live_request, request=request, body=body))


def begin_turn(turn_id: str, request: Request, server: Server, plan: Plan) -> Stepper:
    """A new turn whose first request waits to be sent. Raises `LoopError` if it cannot be sent in this format."""
    if plan.ability is None:
        allows, provider = known_ability(server, request)
        plan = plan._replace(ability=allows, provider=plan.provider or provider)
    stepper = _advance(Stepper(server, plan, request, (first_step(turn_id, request, plan),)), 0)
    if stepper.unsendable:
        raise CallerError(stepper.unsendable)
    return stepper


def _remake_step(plan: Plan, step: Step, opening: Request) -> Step:
    """A step made again under the limits of a plan."""
    if step.before is None or step.event is None:
        return first_step(step.turn.id, opening, plan)
    return next_step(step._replace(turn=step.before._replace(limits=plan.limits)), step.event)


def _advance(stepper: Stepper, count: int | None, request: LiveRequest | None = None) -> Stepper:
    """Continues to the next effect; `count` is the number of sent requests, `request` a request that still waits."""
    steps = list(stepper.steps)
    while not steps[-1].effects:  # states without an effect do not wait for the operator
        steps.append(next_step(steps[-1], Tick()))
    send = steps[-1].effects[0]
    if not isinstance(send, Send):
        return replace(stepper, steps=tuple(steps), request=None, edits=(), unsendable="")
    if count is None:
        return replace(stepper, steps=tuple(steps), request=request)
    try:
        request, why_not = live_request_for(stepper.server, send, steps[-1].turn, count), ""
    except LoopError as why:
        request, why_not = None, str(why)
    return replace(stepper, steps=tuple(steps), request=request, edits=(), unsendable=why_not)


# -- The state of a live run -----------------------------------------------------------------------------------------


class Phase(StrEnum):
    """The activity of a live run."""

    WAITING = "waiting"
    """The run waits for a decision of the operator."""
    ASKING = "asking"
    """A request was sent, and no byte of its answer has arrived."""
    STREAMING = "streaming"
    RETRYING = "retrying"
    """The run waits to send the same request again."""
    RUNNING = "running"
    OVER = "over"


BUSY = frozenset({Phase.ASKING, Phase.STREAMING, Phase.RETRYING, Phase.RUNNING})


@dataclass(slots=True)
class RunState:
    """The state of a live run, as screens see it."""

    stepper: Stepper
    phase: Phase = Phase.WAITING
    responses: list[list[LiveResponse]] = field(default_factory=lambda: [[]])
    answer: ArrivingAnswer | None = None
    """The answer to the request that is under way; None if none is."""
    failed_answer: LiveResponse | None = None
    """A failed answer that the machine has not received yet, so that its request can be sent again first."""
    until: float = 0.0
    """The time at which a request is sent again, on the monotonic clock."""
    heard_at: float = 0.0
    """The time at which a request was sent or the last piece of its answer arrived, on the monotonic clock."""
    running: bool = False
    """Whether effects are run without waiting."""
    problem: str = ""
    """Why the operator's last act failed; empty if it did not."""

    @property
    def pending(self) -> Send | RunTools | Finish:
        """The effect that waits or is in progress."""
        return self.stepper.waiting

    @property
    def seconds_left(self) -> float:
        """Seconds until the request is sent again."""
        return max(0.0, self.until - monotonic())

    @property
    def silent(self) -> int:
        """Whole seconds for which the server has sent nothing; 0 if no answer is expected."""
        return int(monotonic() - self.heard_at) if self.phase in (Phase.ASKING, Phase.STREAMING) else 0
