"""Chats of VS Code: rounds of a request, operations that are folded, failures by their code, and no stop word."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, stops, words


def call(arguments='{"path": "a"}', key="c1"):
    return {"id": key, "name": "read_file", "arguments": arguments}


def turn(response="", *calls, **more):
    return {"id": "r", "response": response, "toolCalls": list(calls), "modelId": "m-1",
            "timestamp": 1780836502922, **more}


def request(text="go", *rounds, results=None, error=None, **more):
    result = {"metadata": {"toolCallRounds": list(rounds), "toolCallResults": results or {}}}
    if error is not None:
        result["errorDetails"] = error
    return {"requestId": f"q-{text}", "timestamp": 1780836500000, "message": {"text": text, "parts": []},
            "modelId": "copilot/auto", "response": [], "result": result, **more}


def chat(*requests, **more):
    return {"version": 3, "sessionId": "s", "responderUsername": "GitHub Copilot", "requests": list(requests), **more}


def read(tmp_path, *requests, **more):
    return show(json.dumps(chat(*requests, **more)), tmp_path, name="c.json")


def lines(*operations):
    return "".join(json.dumps(each) + "\n" for each in operations)


def texts(seen):
    return [facts.exchange.response.text for facts in seen.responses]


def test_rounds_calls_and_results(tmp_path):
    results = {"c1": {"content": [{"$mid": 20, "value": "body"}, {"value": {"node": 1}}]}}
    seen = read(tmp_path, request("go", turn("I look.", call(), thinking={"text": "hm"}), turn("Done."),
                                  results=results), request("thanks", turn("Bye."), promptTokens=9, completionTokens=3))
    first, second, third = (facts.exchange for facts in seen.responses)
    assert (first.model, first.recorder, first.response.reasoning_content) == ("m-1", "vscode-chat", "hm")
    assert first.started == "2026-06-07T12:48:22.922+00:00"
    assert texts(seen) == ["I look.", "Done.", "Bye."]
    (result,) = [part for message in second.request.messages for part in message.results]
    assert (result.call_id, result.text) == ("c1", 'body\n{"node":1}')
    assert stops(seen)[0] == "tool_call"
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "thanks"]
    counts = third.response.usage
    assert (second.response.usage, counts.input_tokens, counts.output_tokens) == (None, 9, 3)
    assert "VS Code keeps none" in seen.inputs[0].notices[0]


def test_a_cut_call_is_seen(tmp_path):
    assert words(read(tmp_path, request("go", turn("", call('{"path": "a'))))) == ["CALL HELD"]


def test_a_request_without_rounds_has_what_was_shown(tmp_path):
    parts = [{"kind": "thinking", "value": "hm"}, {"value": "One "}, {"kind": "toolInvocationSerialized"},
             {"kind": "markdownContent", "content": {"value": "two."}}, {"kind": "progressMessage"}]
    seen = read(tmp_path, {"message": "go", "response": parts, "result": {"metadata": {"outputTokens": 4}},
                           "modelId": "copilot/x"}, {"message": {"text": "more"}, "response": "three"})
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.response.text, first.response.reasoning_content, first.model) == ("One two.", "hm", "copilot/x")
    assert (first.response.usage.output_tokens, second.response.text) == (4, "three")
    assert stops(seen) == ["end_turn", "unknown"]


@each_row(("details", "stop"), [
    ({"code": "length", "message": "x"}, "max_tokens"),
    ({"message": "Sorry, the response hit the length limit. Please rephrase your prompt."}, "max_tokens"),
    ({"code": "filtered", "message": "x"}, "safety_blocked"), ({"code": "filteredRetry"}, "safety_blocked"),
    ({"code": "promptFiltered", "message": "x"}, "safety_blocked"),
    ({"responseIsFiltered": True, "message": "x"}, "safety_blocked"),
    ({"code": "canceled", "message": "Canceled"}, "cancelled"),
    ({"code": "rateLimited", "message": "Sorry, you have been rate-limited."}, "error"),
    ({}, "unknown"),
])
def test_a_request_that_failed(tmp_path, details, stop):
    assert stops(read(tmp_path, request("go", error=details)))[-1:] == ([stop] if details else [])
    assert stops(read(tmp_path, request("go", turn("A."), error=details)))[-1] == stop


@each_row(("details", "detail", "note"), [
    ({"code": "rateLimited", "message": "Sorry, your request was rate-limited."}, "retryable",
     "Sorry, your request was rate-limited."),
    ({"code": "length", "message": "x"}, None, "length"),
    ({"message": "Sorry, the response hit the length limit."}, None, "Sorry, the response hit the length limit."),
    ({"responseIsFiltered": True, "message": "Sorry, the response was filtered."}, "content_filter",
     "Sorry, the response was filtered."),
])
def test_what_is_quoted_of_a_failure_stands_in_the_file(tmp_path, details, detail, note):
    stop = read(tmp_path, request("go", turn("A."), error=details)).responses[-1].judgement.stop
    assert (stop.detail, stop.evidence[0].note) == (detail, note)


def test_a_request_that_the_user_stopped(tmp_path):
    assert words(read(tmp_path, request("go", turn("Half"), isCanceled=True))) == ["CANCELLED"]


@each_row(("state", "stop"), [(0, "unknown"), (1, "end_turn"), (2, "cancelled"), (3, "unknown")])
def test_a_newer_file_has_the_state_of_a_request(tmp_path, state, stop):
    seen = read(tmp_path, request("go", turn("Done."), modelState={"value": state}))
    assert stops(seen) == [stop]
    assert (words(seen) == ["END INFERRED"]) is (state == 1)


def test_a_message_of_the_user_is_no_end_of_a_request_that_is_still_pending(tmp_path):
    seen = read(tmp_path, request("go", turn("Hal"), modelState={"value": 0}), request("more", turn("Done.")))
    assert stops(seen)[0] == "unknown"
    assert stops(read(tmp_path, request("go", turn("Hal")), request("more", turn("Done."))))[0] == "end_turn"


@pytest.mark.parametrize(("state", "next_state", "stop"), [
    (0, 1, "unknown"), (None, 0, "end_turn"), (1, 0, "end_turn"),
])
def test_a_request_without_an_answer_says_nothing_about_the_answer_before_it(tmp_path, state, next_state, stop):
    asked = request("more", modelState={"value": next_state})
    seen = read(tmp_path, request("go", turn("All."), modelState={"value": state}), asked)
    assert stops(seen) == [stop]


def limit_turn(*rounds, **more):
    stopped = request("go", *rounds, modelState={"value": 1}, **more)
    stopped["result"]["metadata"]["maxToolCallsExceeded"] = True
    return stopped


def test_a_request_that_the_limit_of_rounds_stopped(tmp_path):
    first = limit_turn(turn("", call()), turn("", call(key="c2")), results={"c1": {"content": [{"value": "a"}]}})
    seen = read(tmp_path, first)
    assert (stops(seen), words(seen)) == (["tool_call", "tool_call"], ["CANCELLED"])
    assert ("request 1: VS Code stopped the request at its limit of rounds (chat.agent.maxRequests)"
            in [noted.finding.message for noted in seen.findings])
    later = {"c2": {"content": [{"value": "b"}]}, "c3": {"content": [{"value": "c"}]}}
    seen = read(tmp_path, first, request("Continue", turn("", call(key="c3")), turn("Done."), results=later))
    results = [[(part.call_id, part.text) for message in facts.exchange.request.messages for part in message.results]
               for facts in seen.responses]
    assert results == [[], [("c1", "a")], [("c2", "b")], [("c3", "c")]]
    assert words(seen)[0] == "CANCELLED"


def test_a_cut_call_at_the_limit_of_rounds_is_held(tmp_path):
    assert words(read(tmp_path, limit_turn(turn("", call('{"path": "a'))))) == ["CALL HELD"]


def test_an_empty_last_round_is_that_of_the_failure(tmp_path):
    seen = read(tmp_path, request("go", turn("A."), turn(), error={"code": "length", "message": "x"}))
    assert stops(seen) == ["unknown", "max_tokens"]
    assert texts(seen) == ["A.", None]


def test_operations_are_folded(tmp_path):
    seen = show(lines(
        {"kind": 0, "v": chat(customTitle="T")},
        {"kind": 2, "k": ["requests"], "v": [request("go"), request("gone"), request("gone too")]},
        {"kind": 2, "k": ["requests"], "v": [request("more", turn("Two."))], "i": 1},
        {"kind": 1, "k": ["requests", 0, "result"], "v": {"metadata": {"toolCallRounds": [turn("One.")]}}},
        {"kind": 1, "k": ["requests", 0, "isCanceled"], "v": True},
        {"kind": 3, "k": ["requests", 0, "isCanceled"]},
        {"kind": 1, "k": ["requests", 9, "result"], "v": {}},
    ) + '{"kind": 1, "k"', tmp_path, name="c.jsonl")
    assert texts(seen) == ["One.", "Two."]
    assert "CANCELLED" not in words(seen)
    notices = "\n".join(seen.inputs[0].notices)
    assert "after 6 operations" in notices
    assert "skipped: 2" in notices


@each_row("odd", [{"message": 1}, {"response": 1}, {"result": 1}, {"modelId": 1}, {"isCanceled": 1},
                                 {"result": {"metadata": 1}}, {"result": {"errorDetails": 1}}])
def test_members_of_other_types_are_named(tmp_path, odd):
    seen = read(tmp_path, request("go", turn("a")), odd)
    assert any("was expected; it was skipped" in notice for notice in seen.inputs[0].notices)


def test_a_cut_file_is_read_as_far_as_it_goes(tmp_path):
    whole = json.dumps(chat(request("go", turn("One.")), request("more", turn("Two."))))
    assert texts(show(whole[: whole.index("Two.")], tmp_path, name="c.json")) == ["One."]


def test_recognition():
    for file in (json.dumps(chat(request())), json.dumps(chat(request()), indent=2), lines({"kind": 0, "v": chat()}),
                 lines({"k": ["sessionId"], "v": "s"}, {"k": ["requests"], "v": []})):
        assert choose(file.encode(), "x") == "vscode-chat"
    assert choose(b'{"requests": [{"a": 1}]}', "x") != "vscode-chat"
    assert choose(json.dumps({"requests": [request()]}).encode(), "x") == "vscode-chat"
    assert choose(b'{"requests": [7]}', "x") != "vscode-chat"


def test_operations_of_an_unknown_kind_are_named_and_change_nothing(tmp_path):
    begun = {"kind": 0, "v": chat(request("go", turn("hi")))}
    odd = [{"kind": kind, "k": ["requests"], "v": []} for kind in (9, 9, "hologram")]
    seen = show(lines(begun, *odd), tmp_path)
    assert texts(seen) == ["hi"]
    assert any(notice.endswith("operations of unknown kind were skipped: 9 (2), hologram (1)")
               for notice in seen.inputs[0].notices)


def test_what_newer_rounds_hold(tmp_path):
    seen = read(tmp_path, request("go", turn("One.", thinking={"text": ["h", "m", 3]}, hookContext="Run the tests."),
                                  turn("Two.", summary="Short."), turn("Three."),
                                  usage={"promptTokens": 9, "completionTokens": 3}),
                request("more", turn("Four."), usage={"promptTokens": 7, "completionTokens": 2}))
    first, second, third, fourth = (facts.exchange for facts in seen.responses)
    assert first.response.reasoning_content == "hm"
    assert [message.text for message in second.request.messages] == ["Run the tests."]
    assert stops(seen)[0] == "unknown"  # the hook is no message of the user
    assert [[found.rule for found in each.response.findings if "compact" in found.rule]
            for each in (second, third)] == [[], ["transcript.compacted"]]
    assert third.response.usage is None
    assert fourth.response.usage[:2] == (7, 2)
