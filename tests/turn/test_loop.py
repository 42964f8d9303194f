"""The drivers: follow-up messages, laziness, and that the two of them differ in nothing but `await`."""

from __future__ import annotations

import pytest

from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, arun, next_turn_request, run, steps
from loop_core.turn.state import Event, RunTools, Send, State, Turn
from loop_core.turn.trace import step_key
from loop_core.values import Message, Role, Stop, TextPart
from tests.scenes.rows import each_row
from tests.scenes.turns import CUT, REQUEST, ScriptedSource, alphabet, answer, call, check_requests, drive, last

ABC = alphabet()
END, CALL, TEXT = ABC["end"], ABC["call"], ABC["text"]


def user(text: str) -> Message:
    return Message(Role.USER, (TextPart(text),))


def turns(events: list[Event], follow_ups: list[list[Message]], limits: Limits | None = None) -> list[Turn]:
    source = ScriptedSource(events, follow_ups=follow_ups)
    trace = run("t", REQUEST, source, Plan(limits or Limits()))
    return [step.turn for step in trace.steps if step.turn.ended]


def test_a_follow_up_is_a_turn_of_its_own_that_knows_what_was_said() -> None:
    """pi's agent loop: `getFollowUpMessages` after the loop has ended."""
    first, second = turns([CALL, END, END], [[user("and now?")], []])
    assert (first.id, second.id) == ("t", "t+1")
    assert [message.role for message in second.request.messages] == [
        Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.USER,
    ]
    assert second.request.messages[3].text == "done."
    assert second.request.messages[4] == user("and now?")
    assert second.spend.requests == 1, "limits are the turn's"


def test_the_model_is_told_in_the_follow_up_of_a_call_that_was_not_run() -> None:
    cut = answer(Stop.MAX_TOKENS, "text", call('{"path": 5'), tokens=100)
    (turn,) = turns([cut], [[]], Limits(continuation_tool_repair_attempts=0))
    assert turn.terminal == "repair_failed"
    said = next_turn_request(REQUEST, turn, (user("well?"),)).messages
    assert [message.role for message in said] == [Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.USER]
    assert said[2].text.startswith("Not run")


def test_follow_ups_are_bounded_and_what_cannot_be_taken_up_is_not_asked_for() -> None:
    asked: list[str] = []

    class Chatty(ScriptedSource):
        def follow_up(self, turn: Turn) -> tuple[Message, ...]:
            asked.append(turn.id)
            return (user("more"),)

    trace = run("t", REQUEST, Chatty([END] * 10), Plan(Limits(max_follow_ups=2)))
    assert [step.turn.id for step in trace.steps if step.turn.ended] == ["t", "t+1", "t+2"]
    assert asked == ["t", "t+1"]
    assert len(turns([END] * 10, [[user("more")]] * 10, Limits(max_follow_ups=0))) == 1


@each_row("name", ["safety", "context", "interrupted", "unknown", "error", "operator"])
def test_only_a_peaceful_end_is_followed_up(name: str) -> None:
    assert len(turns([ABC[name], END], [[user("more")]])) == 1


def test_no_answer_is_asked_for_before_its_step_is_wanted() -> None:
    source = ScriptedSource([TEXT, END])
    made = steps("t", REQUEST, source, Plan())
    assert next(made).state is State.REQUEST
    assert source.requests == []
    assert next(made).state is State.EVALUATE_STOP
    assert len(source.requests) == 1


def test_a_plan_is_carried_into_the_turn() -> None:
    turn = last(drive([END], Limits(max_tool_steps=3), provider="them"))
    assert turn.limits.max_tool_steps == 3
    assert turn.provider == "them"


# -- run and arun ----------------------------------------------------------------------------------------------------


class AsyncScript:
    """The same script for an event loop."""

    def __init__(self, source: ScriptedSource) -> None:
        self.source = source

    async def respond(self, send: Send, turn: Turn) -> Event:
        return self.source.respond(send, turn)

    async def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        return self.source.run_tools(effect, turn)

    async def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        return self.source.follow_up(turn)


@pytest.mark.parametrize("names", [
    "end", "call end", "text text end", "cut call end", "cut cut", "paused end", "empty end", "cap end",
    "malformed call end", "rejected end", "interrupted", "safety", "operator", "text operator", "",
    "call call call call call", "end end end",
])
async def test_both_drivers_make_the_same_trace(names: str) -> None:
    events = [ABC[name] for name in names.split()]
    follow_ups = [[user("more")], [user("and more")], []]
    plain = run("t", REQUEST, ScriptedSource(events, follow_ups=follow_ups), Plan(Limits(max_follow_ups=2)))
    awaited = await arun("t", REQUEST, AsyncScript(ScriptedSource(events, follow_ups=follow_ups)),
                         Plan(Limits(max_follow_ups=2)))
    assert [step_key(step) for step in plain.steps] == [step_key(step) for step in awaited.steps]
    assert [step.turn.history for step in plain.steps] == [step.turn.history for step in awaited.steps]
    assert list(plain.records) == list(awaited.records)


# -- the history after a turn ----------------------------------------------------------------------------------------


def test_after_any_end_the_history_can_be_sent() -> None:
    ready = answer(Stop.TOOL_CALL, "I will.", call())
    for events, limits in (
        ([ready], {"max_tool_steps": 0}),  # released, and overtaken by the limit
        ([ready, ABC["operator"]], {}),  # its results are in, then the operator ended the turn
        ([TEXT, ABC["operator"]], {}),
        ([ABC["cut"], ABC["operator"]], {}),
        ([ABC["paused"], ABC["operator"]], {}),
        ([answer(Stop.MAX_TOKENS, call(CUT), tokens=9), ABC["cut"]], {}),
    ):
        check_requests(drive(events, Limits(**limits)).steps)


def test_a_follow_up_asks_as_the_first_request_asked() -> None:
    _, second = turns([END, END], [[user("more")]])
    assert (second.request.tools, second.request.max_tokens, second.request.model) == (
        REQUEST.tools, REQUEST.max_tokens, REQUEST.model,
    )
