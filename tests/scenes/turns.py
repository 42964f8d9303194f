"""What the engine's tests share: responses in a few words, a driver, and a reader as strict as any backend."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from loop_core.judge.classify import Judgement, judge
from loop_core.turn.continuation import Method
from loop_core.turn.history import Ability
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, run
from loop_core.turn.moves import final_history
from loop_core.turn.policy import STRICT, Policy
from loop_core.turn.state import Event, Finish, NotRecorded, ProviderResponse, RunTools, Send, State, ToolResults, Turn
from loop_core.turn.trace import Step, Trace
from loop_core.values import (
    CallKind,
    ChatResponse,
    Message,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    Request,
    Role,
    Stop,
    StopReason,
    TextPart,
    Tool,
    ToolCall,
    ToolResultPart,
    Usage,
)

WRITE = Tool("write", {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
    "required": ["path"],
})
NOW = Tool("now", {"type": "object", "properties": {}})
ASKED = Message(Role.USER, (TextPart("do it"),))
REQUEST = Request("openai_chat", (ASKED,), model="m-1", tools=(WRITE, NOW), max_tokens=100)

RAW = {
    Stop.END_TURN: "stop",
    Stop.TOOL_CALL: "tool_calls",
    Stop.MAX_TOKENS: "length",
    Stop.SAFETY_BLOCKED: "content_filter",
    Stop.CONTEXT_WINDOW_EXCEEDED: "model_context_window_exceeded",
    Stop.PAUSED: "pause_turn",
    Stop.UNKNOWN: "entropy",
    Stop.MALFORMED_TOOL_CALL: "MALFORMED_FUNCTION_CALL",
    Stop.CANCELLED: "cancelled",
    Stop.ERROR: "error",
}

GOOD = '{"path": "a.txt"}'
BAD = '{"path": 5}'
CUT = '{"path": "a.tx'


def call(
    arguments: str | None = GOOD,
    name: str = "write",
    id: str | None = "c1",  # noqa: A002 - the field's own name
    closed: bool = True,
    **more: Any,
) -> ToolCall:
    return ToolCall(id, name, arguments, closed, **more)


def reply(
    stop: Stop,
    *parts: str | ToolCall | OpaquePart | ReasoningPart,
    detail: str | None = None,
    tokens: int | None = None,
    raw: str | None = "",
    **more: Any,
) -> ChatResponse:
    """A response of these parts; strings are visible text."""
    made = tuple(TextPart(p) if isinstance(p, str) else p for p in parts)
    usage = None if tokens is None else Usage(10, tokens)
    word = RAW.get(stop) if raw == "" else raw
    return ChatResponse("openai_chat", made, StopReason(stop, word, detail), usage=usage, model="m-1", **more)


def as_event(response: ChatResponse, request: Request = REQUEST, **more: Any) -> ProviderResponse:
    return ProviderResponse(response, judge(response, request), **more)


def answer(stop: Stop, *parts: Any, **more: Any) -> ProviderResponse:
    return as_event(reply(stop, *parts, **more))


def judgement_of(stop: Stop, **more: Any) -> Judgement:
    reason = StopReason(stop, RAW.get(stop))
    return Judgement(reason, reason, **more)


class ScriptedSource:
    """Answers in order from lists."""

    def __init__(self, responses: Iterable[Event], follow_ups: Sequence[Sequence[Message]] = ()) -> None:
        self._responses, self._follow_ups = iter(responses), iter(follow_ups)
        self.requests: list[Send] = []
        self.batches: list[RunTools] = []

    def respond(self, send: Send, turn: Turn) -> Event:
        """The next response of the list."""
        self.requests.append(send)
        return next(self._responses, NotRecorded())

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The result `ok` for every released call."""
        self.batches.append(effect)
        return ToolResults(tuple(ToolResultPart(v.call.id, v.call.name, "ok") for v in effect.released))

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """The next list of messages."""
        return tuple(next(self._follow_ups, ()))


def drive(
    events: Iterable[Event],
    limits: Limits | None = None,
    *,
    policy: Policy = STRICT,
    ability: Ability | None = None,
    request: Request = REQUEST,
    source: ScriptedSource | None = None,
    provider: str = "somebody",
) -> Trace:
    """A turn over a script, through the driver that everybody uses."""
    plan = Plan(limits or Limits(), policy, ability or Ability(), provider)
    return run("t1", request, source or ScriptedSource(events), plan)


def last(trace: Trace) -> Turn:
    return trace.steps[-1].turn


def path(trace: Trace) -> list[State]:
    return [step.state for step in trace.steps]


def sends(trace: Trace) -> list[Send]:
    return [effect for step in trace.steps for effect in step.effects if isinstance(effect, Send)]


def dispatches(trace: Trace) -> list[RunTools]:
    return [effect for step in trace.steps for effect in step.effects if isinstance(effect, RunTools)]


def finish(trace: Trace) -> Finish:
    return next(effect for effect in trace.steps[-1].effects if isinstance(effect, Finish))


# -- the strict reader -----------------------------------------------------------------------------------------------


def messages_sent(step: Step) -> tuple[Message, ...] | None:
    """What the request that leaves at this step holds; None where none leaves."""
    send = next((effect for effect in step.effects if isinstance(effect, Send)), None)
    return None if send is None else (*step.turn.history, *send.new_messages)


def check_requests(steps: Sequence[Step]) -> None:
    """Every request of a run is one that the strictest backend takes, and begins with the one before it."""
    before: tuple[Message, ...] = ()
    for step in steps:
        messages = messages_sent(step)
        if messages is None:
            continue
        send = next(effect for effect in step.effects if isinstance(effect, Send))
        check_history(messages)
        ends = messages[-1]
        if send.method is Method.PREFILL:
            assert ends.role is Role.ASSISTANT
            assert ends.text == ends.text.rstrip(), "a prefill may not end with white space"
        else:
            # The same request again: with a larger cap, with a token, or after a pause that brought nothing new.
            again = send.method in (Method.BOOST, Method.ECHO, Method.TOKEN, Method.POLL) and messages == before
            echoed = send.method is Method.ECHO and bool(send.new_messages)
            assert ends.role is not Role.ASSISTANT or echoed or again, "a request ends with another's word"
        assert messages[: len(before)] == before, "the history only grows"
        before = messages[:-1] if send.method is Method.PREFILL else messages
    turn = steps[-1].turn
    if turn.ended:
        after = final_history(turn)
        check_history(after)
        assert after[: len(before)] == before or not has_last_answer(steps), "the history only grows"


def has_last_answer(steps: Sequence[Step]) -> bool:
    """Whether the last request of the run was answered: only then is it part of the history."""
    for step in reversed(steps):
        if any(isinstance(effect, Send) for effect in step.effects):
            return False
        if step.state is State.EVALUATE_STOP:
            return True
    return False


def check_history(messages: Sequence[Message]) -> None:
    """No empty assistant message, no call without its result, no result without its call, arguments that are JSON."""
    open_calls: tuple[ToolCall, ...] = ()
    for message in messages:
        if message.role is Role.TOOL:
            assert [r.call_id for r in message.results] == [c.id for c in open_calls], "each call has its one result"
            open_calls = ()
            continue
        assert not open_calls, f"no result for {[c.name for c in open_calls]}"
        assert not message.results
        if message.role is Role.ASSISTANT:
            _check_assistant(message)
            open_calls = message.tool_calls
    assert not open_calls, f"no result for {[c.name for c in open_calls]}"


def _check_assistant(message: Message) -> None:
    kinds = [type(part) for part in message.parts]
    assert any(kind is not ReasoningPart for kind in kinds), "an assistant message without content"
    assert not any(isinstance(p, TextPart) and not p.text.strip() for p in message.parts), "a blank text block"
    for made in message.tool_calls:
        assert made.name
        if made.kind is CallKind.FUNCTION:
            assert isinstance(json.loads(made.arguments or ""), dict), "arguments that are no JSON object"


# -- an alphabet of responses ----------------------------------------------------------------------------------------


def error(message: str = "overloaded") -> ProviderResponse:
    return answer(Stop.ERROR, detail="retryable", error=ProviderError(message, retryable=True))


def rejection(message: str) -> ProviderResponse:
    """A request that the server does not take."""
    return answer(Stop.ERROR, detail="fatal", error=ProviderError(message), http_status=400)


def alphabet() -> dict[str, Event]:
    """One response of every kind that a turn can meet; `cap` is the MiMo stream of Zoo Code's analysis."""
    from loop_core.turn.state import Cancel

    return {
        "end": answer(Stop.END_TURN, "done."),
        "call": answer(Stop.TOOL_CALL, "I will.", call(), call('{"zone": "UTC"}', "now", "c2")),
        "rejected": answer(Stop.TOOL_CALL, call(BAD), call("", "now", "c2")),
        "text": answer(Stop.MAX_TOKENS, "the first part ", tokens=100),
        "empty": answer(Stop.MAX_TOKENS, ReasoningPart("hm"), tokens=100),
        "cut": answer(Stop.MAX_TOKENS, "I will.", call(), call('{"zone": "U', "now", "c2", closed=False), tokens=100),
        "malformed": answer(Stop.MALFORMED_TOOL_CALL),
        "paused": answer(Stop.PAUSED, "wait", OpaquePart("server_tool", "{}"), detail="echo"),
        "safety": answer(Stop.SAFETY_BLOCKED, "so"),
        "context": answer(Stop.CONTEXT_WINDOW_EXCEEDED, "so"),
        "interrupted": answer(Stop.INTERRUPTED, "so", call(CUT, closed=False)),
        "cap": answer(Stop.INTERRUPTED, "so far ", tokens=100),
        "unknown": answer(Stop.UNKNOWN, "so"),
        "error": error(),
        "cancelled": answer(Stop.CANCELLED, "so"),
        "operator": Cancel(),
        "nothing": answer(Stop.END_TURN),
        "thought": answer(Stop.END_TURN, ReasoningPart("hm")),
        "no call": answer(Stop.TOOL_CALL, "so"),
        "refused": rejection("max_tokens is too large for a tool"),
    }


def with_cap(request: Request, cap: int | None) -> Request:
    return replace(request, max_tokens=cap)
