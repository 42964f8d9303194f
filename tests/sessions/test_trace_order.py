"""Several agents in one trace: what a request continues, by one rule for LiteLLM, Langfuse and OpenTelemetry."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from inspector.sessions.importers import trace_order
from tests.scenes.transcripts import show, words

Row = dict[str, Any]
LOST = None
"""The answer to a request that failed."""


class Exchange(NamedTuple):
    """One request of a trace with its answer, and the turn to which it belongs."""

    turn: int
    messages: list[Row]
    answer: Row | None
    word: str = "stop"


def calls(*keys: str, arguments: str = "{}") -> Row:
    return {"role": "assistant", "content": None, "tool_calls": [
        {"id": key, "type": "function", "function": {"name": "look", "arguments": arguments}} for key in keys]}


def result(key: str) -> Row:
    return {"role": "tool", "tool_call_id": key, "content": "a.py"}


def reply(text: str) -> Row:
    return {"role": "assistant", "content": text}


def user(text: str) -> Row:
    return {"role": "user", "content": text}


def litellm(sent: list[Exchange]) -> str:
    return "".join(json.dumps({
        "id": f"p{at}", "trace_id": "t", "call_type": "acompletion", "model": "gpt-5", "custom_llm_provider": "openai",
        "startTime": 1.7e9 + at, "messages": one.messages, "model_parameters": {"temperature": 0},
        **({"status": "failure", "error_str": "overloaded", "response": {}} if one.answer is LOST else {
            "status": "success", "response": {
                "id": f"r{at}", "choices": [{"finish_reason": one.word, "message": one.answer}]}}),
    }) + "\n" for at, one in enumerate(sent))


def langfuse(sent: list[Exchange]) -> str:
    return json.dumps({"trace": {"id": "t", "projectId": "p"}, "observations": [{
        "id": f"g{at}", "traceId": "t", "type": "GENERATION", "startTime": f"2026-01-01T00:00:{at:02}Z", "model": "m",
        "input": one.messages,
        **({"output": None, "level": "ERROR", "statusMessage": "overloaded"} if one.answer is LOST else {
            "output": {"choices": [{"finish_reason": one.word, "message": one.answer}]}}),
    } for at, one in enumerate(sent)]})


def otlp(sent: list[Exchange], **more: str) -> str:
    spans = []
    for at, one in enumerate(sent):
        held = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
                "gen_ai.input.messages": json.dumps(one.messages), **more}
        if one.answer is not LOST:
            held |= {"gen_ai.output.messages": json.dumps([one.answer]), "gen_ai.response.finish_reasons": one.word}
        spans.append({"traceId": "t", "spanId": f"s{at}", "parentSpanId": "gone", "name": "chat",
                      "startTimeUnixNano": str(1770000000000000000 + at),
                      "status": {"code": 2, "message": "overloaded"} if one.answer is LOST else {},
                      "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in held.items()]})
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def conversation(sent: list[Exchange]) -> str:
    return otlp(sent, **{"gen_ai.conversation.id": "c1"})


every_format = pytest.mark.parametrize("form", [litellm, langfuse, otlp, conversation])


def check(form: Any, sent: list[Exchange], tmp_path: Any, first: str = "COMPLETE") -> None:
    """The turns are those of the agents, with these verdicts, and no call lacks its result."""
    seen = show(form(sent), tmp_path)
    turns = [[at for at, one in enumerate(sent) if one.turn == number] for number in {one.turn for one in sent}]
    assert sorted(sorted(turn.responses) for turn in seen.turns) == sorted(turns)
    assert words(seen) == [first, "COMPLETE"]
    assert "calls that have no result" not in "".join(map(str, seen.inputs[0].notices))


@every_format
def test_two_agents_that_begin_with_the_same_request_are_two(form, tmp_path):
    go = user("go")
    check(form, [Exchange(1, [go], calls("a"), "tool_calls"), Exchange(2, [go], calls("b", "c"), "tool_calls"),
                 Exchange(1, [go, calls("a"), result("a")], reply("Done a.")),
                 Exchange(2, [go, calls("b", "c"), result("b"), result("c")], reply("Done b."))], tmp_path)


@every_format
@pytest.mark.parametrize("done", [[], [calls("z"), result("z")]])
@pytest.mark.parametrize(("lost", "word", "verdict"), [
    (LOST, "stop", "RETRIED"), (calls("x", arguments='{"path": "a'), "length", "CALL REPAIRED")])
def test_a_request_that_is_sent_again_stays_in_its_turn(form, lost, word, verdict, done, tmp_path):
    asks, other = [user("task 1"), *done], user("task 2")
    sent = [Exchange(1, asks[:1], calls("z"), "tool_calls")] if done else []
    check(form, [*sent, Exchange(1, asks, lost, word), Exchange(2, [other], calls("b"), "tool_calls"),
                 Exchange(1, asks, calls("a"), "tool_calls"),
                 Exchange(2, [other, calls("b"), result("b")], reply("Done b.")),
                 Exchange(1, [*asks, calls("a"), result("a")], reply("Done a."))], tmp_path, verdict)


@every_format
def test_the_last_answer_places_a_request_whose_history_was_rewritten(form, tmp_path):
    sent = [Exchange(at, [user(f"task {at}")], calls(f"c{at}"), "tool_calls") for at in (1, 2)]
    sent += [Exchange(at, [user("A summary."), calls(f"c{at}"), result(f"c{at}")], reply(f"Done {at}."))
             for at in (1, 2)]
    check(form, sent, tmp_path)


@every_format
def test_the_id_of_a_result_places_a_request_of_new_messages_alone(form, tmp_path):
    sent = [Exchange(at, [user(f"task {at}")], calls(f"c{at}"), "tool_calls") for at in (1, 2)]
    check(form, sent + [Exchange(at, [result(f"c{at}")], reply(f"Done {at}.")) for at in (1, 2)], tmp_path)


@every_format
@pytest.mark.parametrize("role", [None, "system", "developer"])
def test_a_request_of_a_user_begins_a_conversation(form, role, tmp_path):
    """The first answer is cut, and the second agent does not go on with it."""
    before = [] if role is None else [{"role": role, "content": "s"}]
    seen = show(form([Exchange(1, [*before, user("task 1")], reply("The half"), "length"),
                      Exchange(2, [*before, user("task 2")], reply("Done."))]), tmp_path)
    assert len({turn.conversation for turn in seen.turns}) == 2


def message(role: str, text: str) -> trace_order.SpanMessage:
    return trace_order.SpanMessage(role, text)


@pytest.mark.parametrize("role", ["assistant", "model", "ai"])
def test_the_role_of_an_answer_in_a_history(role):
    order = trace_order.TraceOrder()
    for number in (1, 2):
        assert order.follow(number, "t", [message("user", f"task {number}")]) == (None, 0, False)
        order.answer(number, [message("assistant", f"The half of {number}.")])
    history = [message("user", "Another beginning."), message(role, "The half of  1."), message("user", "Continue.")]
    assert order.follow(3, "t", history) == (1, 2, False)
    assert order.follow(4, "another", history) == (None, 2, False), "another trace"


def test_without_messages_the_time_decides_and_only_in_one_conversation():
    order = trace_order.TraceOrder()
    assert order.follow(1, "t", [message("user", "")]) == (None, 0, False)
    assert order.follow(2, "t", []) == (1, 0, True)
    order.follow(3, "t", [message("user", "Another.")])
    assert order.follow(4, "t", []) == (None, 0, True), "two conversations: no guess"


@pytest.mark.parametrize("form", [langfuse, otlp])
def test_a_place_by_time_alone_is_reported(form, tmp_path):
    sent = [Exchange(1, [user("go")], reply("One.")), Exchange(1, [], reply("Two."))]
    assert f"{trace_order.BY_TIME}: 1" in "".join(map(str, show(form(sent), tmp_path).inputs[0].notices))
    assert trace_order.BY_TIME not in "".join(map(str, show(form(sent[:1]), tmp_path).inputs[0].notices))


@pytest.mark.parametrize("form", [litellm, langfuse, otlp])
def test_requests_of_one_trace_are_not_compared_each_with_each(form, tmp_path, monkeypatch):
    looked: list[int] = []
    items = trace_order._items_of
    monkeypatch.setattr(trace_order, "_items_of", lambda given: looked.append(0) or items(given))
    sent = [Exchange(at, [user(f"task {at}")] * (at + 1), calls(f"c{at}"), "tool_calls") for at in range(40)]
    assert len({turn.conversation for turn in show(form(sent), tmp_path).turns}) == 40
    assert len(looked) <= 120  # the request, its answer, and the last answer of its history
