"""One id twice in one answer: the same call sent again, another call of a server that repeats ids, or a call that was
sent while it grew."""

from __future__ import annotations

import json

import pytest

from loop_core import encode_response, read
from loop_core.reader import Reading
from loop_core.values import ChatResponse, Stop, StopReason, TextPart, ToolCall, Usage
from loop_core.wire import response_calls
from tests.scenes.rows import each_row

WORDS = {
    "openai_chat": "tool_calls", "openai_responses": "completed", "anthropic_messages": "tool_use",
    "bedrock_converse": "tool_use", "bedrock_invoke": "tool_use", "gemini_generate": "STOP",
    "gemini_interactions": "requires_action", "cohere_chat": "TOOL_CALL", "ollama_chat": "stop",
}
"""Wire format with ids of calls -> its word for calls."""
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def call(arguments: str, *, name: str = "look", ident: str = "call_x0001") -> ToolCall:
    return ToolCall(ident, name, arguments, True)


def reading(api: str, calls: list[ToolCall], stream: bool) -> Reading:
    made = ChatResponse(api, (TextPart("I look."), *calls), StopReason(Stop.TOOL_CALL, WORDS[api]), Usage(3, 5),
                        id="a1", model="m")
    return read(api, b"".join(encode_response(api, made, stream=stream)))


def ready(found: Reading) -> list[object]:
    return [verdict.arguments for verdict in found.calls if verdict.admission == "ready"]


@pytest.mark.parametrize("api", WORDS)
@BOTH
def test_a_call_that_was_sent_twice_runs_once(api: str, stream: bool) -> None:
    found = reading(api, [call('{"at":1,"to":2}'), call('{"to":2, "at":1}')], stream)
    assert ready(found) == [{"at": 1, "to": 2}]
    assert len(found.calls) == 1
    assert f"{api}.call_repeated" in {each.rule for each in found.findings}


@pytest.mark.parametrize("api", [api for api in WORDS if api != "openai_responses"])
@BOTH
def test_servers_that_give_one_id_to_all_calls_made_several(api: str, stream: bool) -> None:
    found = reading(api, [call('{"at":1}'), call('{"at":2}'), call('{"at":1}', name="see")], stream)
    assert ready(found) == [{"at": 1}, {"at": 2}, {"at": 1}]
    assert f"{api}.id_repeated" in {each.rule for each in found.findings}


@each_row("more", ['{"at":"x","deep":true}', '{"at":"xy"}', "{}"])
@each_row("api", ["gemini_generate", "ollama_chat", "anthropic_messages"])
def test_a_call_that_came_once_more_with_more_arguments_is_held(api: str, more: str) -> None:
    found = reading(api, [call('{"at":"x"}'), call(more)], False)
    (verdict,) = found.calls
    assert (verdict.admission, verdict.rule) == ("held", "gate.contradiction")
    assert found.stop_reason is Stop.MALFORMED_TOOL_CALL


@each_row("texts", [
    ("", "{}"), ("{}", ""), (" ", "{ }"), (None, "{}"), ("{}", None), ("{}", "", None),
    ("", '{"at":1}'), ('{"at":1}', None),
])
def test_a_call_that_came_with_blank_arguments_too_does_not_run(texts: tuple[str | None, ...]) -> None:
    """For a tool that needs no arguments blank ones may mean `{}`, and several calls ran."""
    given = [{"name": "ping", **({} if text is None else {"arguments": text})} for text in texts]
    calls = [{"id": "c1", "type": "function", "function": function} for function in given]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    body = json.dumps({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]})
    ping = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {"at": {}},
                                                                            "additionalProperties": False}}}
    found = read("openai_chat", body.encode(), request={"model": "m", "messages": [], "tools": [ping]})
    (verdict,) = found.calls
    assert (verdict.admission, verdict.rule) == ("held", "gate.contradiction")


def test_two_calls_without_ids_are_two_calls() -> None:
    """Nothing shows that the second one was not meant: a die may be thrown twice."""
    calls = [{"function": {"name": "roll", "arguments": {"sides": 6}}}]
    line = {"message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False}
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    body = "".join(json.dumps(each) + "\n" for each in (line, line, end))
    assert ready(read("ollama_chat", body.encode())) == [{"sides": 6}, {"sides": 6}]


def test_a_repetition_that_nothing_ended_holds_the_call() -> None:
    def chunk(index: int, reason: str | None) -> str:
        made = {"index": index, "id": "x", "function": {"name": "f", "arguments": "{}"}}
        choice = {"index": 0, "delta": {"tool_calls": [made]}, "finish_reason": reason}
        return f"data: {json.dumps({'id': 'a', 'choices': [choice]})}\n\n"

    body = chunk(0, "tool_calls") + chunk(1, None)
    assert [verdict.admission for verdict in read("openai_chat", body.encode()).calls] == ["held"]


def test_free_form_calls_are_compared_as_texts() -> None:

    def body(*texts: str) -> Reading:
        call = {"type": "custom_tool_call", "status": "completed", "call_id": "call_x", "name": "run"}
        whole = {"id": "r", "object": "response", "status": "completed",
                 "output": [{**call, "input": text} for text in texts]}
        return read("openai_responses", json.dumps(whole).encode())

    assert ready(body("ls", "ls")) == ["ls"]
    assert ready(body("ls", "pwd")) == ["ls", "pwd"]
    assert ready(body("rm a", "rm a b")) == []


def test_many_calls_with_one_id_take_time_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more than are compared with each other, nothing is released."""
    compared: list[int] = []
    compare = response_calls._is_grown
    monkeypatch.setattr(response_calls, "_is_grown", lambda *each: (compared.append(1), compare(*each))[1])
    most = response_calls.MOST_OF_ONE_ID

    def calls(count: int) -> Reading:
        return reading("openai_chat", [call(f'{{"at":{number}}}') for number in range(count)], False)

    assert len(ready(calls(most))) == most
    assert len(compared) == most * (most - 1) // 2
    compared.clear()
    found = calls(4 * most)
    assert (ready(found), len(found.calls)) == ([], 4 * most)
    assert len(compared) == most * (most - 1) // 2
    compared.clear()
    apart = reading("openai_chat", [call('{"at":1}', ident=f"call_{number:04}") for number in range(4 * most)], False)
    assert (len(ready(apart)), compared) == (4 * most, [])
