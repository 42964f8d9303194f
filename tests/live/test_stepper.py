"""A live turn as a value: it waits at each effect, and what is changed of it is what it would have been."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.live.stepper import Stepper, begin_turn
from loop_core.client.address import Server
from loop_core.client.exchange import LiveResponse
from loop_core.client.outgoing import LiveRequest
from loop_core.errors import CallerError
from loop_core.judge.classify import judge
from loop_core.turn.limits import Limits
from loop_core.turn.loop import turn_steps
from loop_core.turn.state import Finish, ProviderResponse, RequestPlace, RunTools, Send, State, ToolResults
from loop_core.turn.trace import step_key
from loop_core.values import (
    ChatResponse,
    Stop,
    StopReason,
    TextPart,
    Tool,
    ToolCall,
    ToolResultPart,
    Usage,
)
from loop_core.wire.profiles import profile_named
from tests.scenes.live import plan, request
from tests.scenes.turns import ScriptedSource

SERVER = Server("openai_chat", "http://127.0.0.1:1", key="sk-live-0123456789abcdefghij")
CHOSEN = profile_named("generic")


def reply(text: str, stop: Stop, *calls: ToolCall, tokens: int | None = None) -> ChatResponse:
    raw = {Stop.END_TURN: "stop", Stop.MAX_TOKENS: "length", Stop.TOOL_CALL: "tool_calls"}[stop]
    usage = None if tokens is None else Usage(1, tokens)
    return ChatResponse("openai_chat", (*((TextPart(text),) if text else ()), *calls), StopReason(stop, raw), usage)


def response_to(asked: LiveRequest, response: ChatResponse) -> LiveResponse:
    judged = judge(response, asked.request, CHOSEN.profile)
    return LiveResponse(asked, response, judged, CHOSEN, 200, (), b"", (), 1.0)


def stepper(cap: int = 100, tools: tuple[Tool, ...] = (), **limits: Any) -> Stepper:
    asked = dataclasses.replace(request("openai_chat", tools=tools), max_tokens=cap)
    return begin_turn("live", asked, SERVER, plan("openai_chat", **limits))


def after_answers(turn: Stepper, *responses: ChatResponse) -> Stepper:
    for sent, response in enumerate(responses, 1 + (turn.request.number if turn.request else 0)):
        assert turn.request is not None
        turn = turn.after_answer(response_to(turn.request, response), sent)
    return turn


CALL = ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True)
CUT = ToolCall("call_1", "weather", '{"city":"Os', closed=False)
WEATHER = Tool("weather", {"type": "object", "properties": {"city": {"type": "string"}}})


def test_it_waits_at_each_effect_and_the_request_is_the_one_that_will_leave() -> None:
    turn = stepper()
    assert isinstance(turn.waiting, Send)
    assert turn.request is not None
    assert turn.request.body is not None
    assert turn.request.body["max_tokens"] == 100
    assert ("authorization", "REDACTED") in turn.request.headers
    turn = after_answers(turn, reply("One, two, ", Stop.MAX_TOKENS))
    assert isinstance(turn.waiting, Send)
    assert turn.waiting.place is RequestPlace.CONTINUATION
    assert turn.request is not None
    assert turn.request.number == 1
    turn = after_answers(turn, reply("One, two, three.", Stop.END_TURN))
    assert turn.waiting == Finish("completed")
    assert turn.request is None
    assert turn.last.turn.joined_answer().text == "One, two, three."


WORDS = st.sampled_from([
    reply("One, two, three, four. ", Stop.MAX_TOKENS), reply("Five.", Stop.END_TURN), reply("", Stop.MAX_TOKENS),
    reply("So: ", Stop.TOOL_CALL, CALL), reply("", Stop.MAX_TOKENS, CUT),
])


@given(st.lists(WORDS, min_size=1, max_size=8), st.integers(0, 3), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_stepped_by_hand_a_turn_is_the_one_that_runs_by_itself(
    responses: list[ChatResponse], attempts: int, repairs: int
) -> None:
    limits = {"continuation_max_attempts": attempts, "continuation_tool_repair_attempts": repairs}
    turn, events = stepper(tools=(WEATHER,), **limits), []
    for sent, response in enumerate(responses, 1):
        if not isinstance(turn.waiting, Send) or turn.request is None:
            break
        answer = response_to(turn.request, response)
        events.append(ProviderResponse(answer.response, answer.judgement, sent - 1))
        turn = turn.after_answer(answer, sent)
        if isinstance(turn.waiting, RunTools):
            turn = turn.after_event(ToolResults((ToolResultPart("call_1", "weather", "ok"),)), sent)
    source = ScriptedSource(events)
    steps = list(turn_steps("live", turn.opening, source, turn.plan))
    made = len(turn.steps)
    # All but what was heard, which only the answers of a live run have.
    assert [step_key(step)._replace(live_answer=None) for step in turn.steps] == [
        step_key(step)._replace(live_answer=None) for step in steps[:made]]


def test_another_budget_of_the_first_request_is_the_turns() -> None:
    turn = stepper().with_cap(40)
    assert turn.request is not None
    assert turn.request.body is not None
    assert (turn.request.body["max_tokens"], turn.edits) == (40, ("max_tokens",))
    assert turn.last.turn.token_cap == 160
    turn = after_answers(turn, reply("One, ", Stop.MAX_TOKENS))
    assert turn.edits == ()
    assert turn.request is not None
    assert turn.request.request.max_tokens == 40


def test_another_budget_of_a_continuation_leaves_the_turns_bound() -> None:
    turn = after_answers(stepper(), reply("One, ", Stop.MAX_TOKENS)).with_cap(40)
    assert turn.request is not None
    assert turn.request.body is not None
    assert turn.request.body["max_tokens"] == 40
    assert turn.last.turn.token_cap == 400
    turn = after_answers(turn, reply("two, ", Stop.MAX_TOKENS))
    assert turn.request is not None
    assert turn.request.request.max_tokens == 40, "the continuations of one answer share their cap"
    spent = turn.last.turn.spend
    assert (spent.continuation_tokens, spent.output_tokens) == (140, 140), "a cut answer without counts used its cap"


def test_a_body_is_sent_as_it_stands_and_read_for_the_machine() -> None:
    turn = stepper()
    assert turn.request is not None
    assert turn.request.body is not None
    other = {**turn.request.body, "max_tokens": 7, "temperature": 0.5, "zz_own": {"kept": [1]},
             "messages": [{"role": "user", "content": "Something else."}]}
    turn = turn.with_body(other)
    assert turn.request is not None
    assert turn.request.body == other
    assert turn.last.turn.request.messages[0].text == "Something else."
    assert turn.last.turn.token_cap == 28
    after = after_answers(turn, reply("One, ", Stop.MAX_TOKENS))
    assert after.request is not None
    assert after.request.body is not None
    assert after.request.body["zz_own"] == {"kept": [1]}, "what the first request said, its continuations say"
    assert after.request.body["messages"][0]["content"] == "Something else."


def test_a_body_without_messages_is_refused() -> None:
    with pytest.raises(CallerError, match="it holds no messages"):
        stepper().with_body({"model": "m"})


def test_what_an_edited_continuation_says_stays_said() -> None:
    turn = after_answers(stepper(), reply("One, ", Stop.MAX_TOKENS))
    assert turn.request is not None
    assert turn.request.body is not None
    messages = [*turn.request.body["messages"][:-1], {"role": "user", "content": "Go on, please."}]
    turn = turn.with_body({**turn.request.body, "messages": messages})
    turn = after_answers(turn, reply("two, ", Stop.MAX_TOKENS))
    assert turn.request is not None
    assert "Go on, please." in [message.text for message in turn.request.request.messages]


def test_limits_are_changed_where_the_turn_would_have_come_here_all_the_same() -> None:
    turn = after_answers(stepper(), reply("One, ", Stop.MAX_TOKENS), reply("two, ", Stop.MAX_TOKENS))
    assert turn.last.turn.spend.attempts == 2
    fewer = turn.with_limits(Limits(continuation_max_attempts=2))
    assert fewer.request == turn.request
    ended = after_answers(fewer, reply("three, ", Stop.MAX_TOKENS))
    assert ended.waiting.terminal == "retry_limit"  # type: ignore[union-attr]
    with pytest.raises(CallerError, match=r"step 7 \(RequestContinuation\) depends on the limits"):
        turn.with_limits(Limits(continuation_max_attempts=1))


def test_rounds_of_tools_are_asked_for_again_where_the_calls_wait() -> None:
    turn = after_answers(stepper(tools=(WEATHER,)), reply("", Stop.TOOL_CALL, CALL))
    assert isinstance(turn.waiting, RunTools)
    ended = turn.with_limits(Limits(max_tool_steps=0))
    assert ended.waiting.terminal == "step_limit"  # type: ignore[union-attr]
    assert isinstance(turn.with_limits(Limits(max_tool_steps=1)).waiting, RunTools)


def test_an_answer_that_was_given_up_ends_the_turn_and_its_text_stays() -> None:
    turn = stepper()
    assert turn.request is not None
    given_up = turn.after_answer(response_to(turn.request, reply("One, two", Stop.END_TURN, CALL)), 1, cancelled=True)
    assert given_up.waiting.terminal == "cancelled"  # type: ignore[union-attr]
    assert given_up.last.turn.joined_answer().text == "One, two"
    assert given_up.last.turn.evaluation is not None
    assert [v.admission.value for v in given_up.last.turn.evaluation.verdicts] == ["held"]


def test_a_message_after_the_end_begins_the_next_turn() -> None:
    turn = after_answers(stepper(max_follow_ups=1), reply("Done.", Stop.END_TURN)).next_turn("And then?", 1)
    assert turn.last.state is State.REQUEST
    assert turn.last.turn.id == "t2"
    assert [message.text for message in turn.last.turn.history] == ["Tell me.", "Done.", "And then?"]
    again = after_answers(turn, reply("Nothing.", Stop.END_TURN))
    assert len(again.turns) == 2
    with pytest.raises(CallerError, match=r"max_follow_ups \(1\) is reached"):
        again.next_turn("More.", 2)
    with pytest.raises(CallerError, match="the message is empty"):
        again.next_turn("  ", 2)


def test_no_history_is_sent_into_a_conversation_that_the_server_keeps() -> None:
    turn = after_answers(stepper(), reply("Done.", Stop.END_TURN))
    opening = replace(request("openai_responses"), extra={"conversation": "conv_1"})
    with pytest.raises(CallerError, match="the server keeps this conversation"):
        replace(turn, opening=opening).next_turn("And then?", 1)


def test_a_request_that_the_format_cannot_carry_waits_and_says_why() -> None:
    asked = request("anthropic_messages", tools=(WEATHER,))
    turn = begin_turn("live", asked, Server("anthropic_messages", "http://127.0.0.1:1"), plan("anthropic_messages"))
    assert turn.request is not None
    turn = frozen_cap(turn)
    assert turn.request is None
    assert turn.unsendable == "anthropic_messages: a request needs max_tokens"


def frozen_cap(turn: Stepper) -> Stepper:
    """The turn at a continuation that lost its cap."""
    send = turn.waiting
    assert isinstance(send, Send)
    step = turn.last
    lost = step._replace(turn=step.turn._replace(
        request=dataclasses.replace(step.turn.request, max_tokens=None),
        last_send=send._replace(max_tokens=None)))
    assert turn.request is not None
    response = dataclasses.replace(reply("One, ", Stop.MAX_TOKENS), api="anthropic_messages")
    return replace(turn, steps=(lost,)).after_answer(response_to(turn.request, response), 1)
