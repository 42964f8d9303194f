"""Sessions of Continue: messages, calls with their results, reasoning, caps, and no stop word."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers.recognition import choose
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words


def item(role, content="", **more):
    message = {name: more.pop(name) for name in ("toolCalls", "usage", "toolCallId", "signature") if name in more}
    return {"message": {"role": role, "content": content, **message}, "contextItems": [], **more}


def call(arguments='{"path":"a"}', key="c1"):
    return {"id": key, "type": "function", "function": {"name": "read_file", "arguments": arguments}}


def state(status="done", key="c1", output="ok"):
    return {"toolCallId": key, "toolCall": call(key=key), "status": status, "parsedArgs": {},
            "output": [{"name": "n", "content": output}] if output else None}


def file(*items, **more):
    return json.dumps({"sessionId": "s", "title": "A title", "workspaceDirectory": "/w", "history": items, **more})


def read(tmp_path, *items, **more):
    return show(file(*items, **more), tmp_path, name="s.json")


def test_messages_calls_and_results(tmp_path):
    usage = {"promptTokens": 30, "completionTokens": 7, "completionTokensDetails": {"reasoningTokens": 3},
             "promptTokensDetails": {"cachedTokens": 20, "cacheWriteTokens": 4}}
    seen = read(tmp_path, item("system", "s"), item("user", [{"type": "text", "text": "go"}]), item("thinking", "hm"),
                item("assistant", "I look.", toolCalls=[call()], usage=usage, toolCallStates=[state()]),
                item("tool", "ok", toolCallId="c1"), item("assistant", "Done.", reasoning={"text": "aha"}),
                item("user", "thanks"), chatModelTitle="GPT-4o")
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.model, first.recorder, first.response.text) == ("GPT-4o", "continue", "I look.")
    assert (first.response.reasoning_content, second.response.reasoning_content) == ("hm", "aha")
    assert first.response.usage == (30, 7, 3, 20, 4)
    assert stops(seen)[0] == "tool_call"
    (results,) = [message.results for message in second.request.messages if message.results]
    assert [(part.call_id, part.text, part.is_error) for part in results] == [("c1", "ok", False)]
    assert seen.turns[0].run.record.user_text == "go"
    assert "Continue keeps none" in seen.inputs[0].notices[0]


@each_row(("arguments", "output", "stop"), [
    ("{}", 'Required parameter "path" missing for tool "read_file"', "malformed_tool_call"),
    ("{}", "no such file", "tool_call"),
    ('{"path":"a"}', 'Required parameter "limit" missing for tool "read_file"', "tool_call"),
])
def test_a_call_with_no_arguments_that_was_refused_did_not_come_whole(tmp_path, arguments, output, stop):
    """The CLI stores {} for arguments that were no JSON."""
    calls, states = [call(), call(arguments, "c2")], [state(), state("errored", "c2", output)]
    seen = read(tmp_path, item("user", "go"), item("assistant", toolCalls=calls, toolCallStates=states))
    assert stops(seen) == [stop]
    ready = {verdict.admission.value for verdict in seen.responses[0].verdicts[:1]}
    assert ready == {"held" if stop == "malformed_tool_call" else "ready"}


@pytest.mark.parametrize(("status", "failed"), [("done", [False]), ("errored", [True]), ("canceled", [True]),
                                                ("calling", []), ("generated", []), ("generating", [])])
def test_the_state_of_a_call_says_what_came_of_it(tmp_path, status, failed):
    seen = read(tmp_path, item("user", "go"), item("assistant", toolCalls=[call()], toolCallStates=[state(status)]),
                item("assistant", "Next."))
    rows = [part for message in seen.responses[1].exchange.request.messages for part in message.results]
    assert [part.is_error for part in rows] == failed


def test_results_of_older_sessions_are_messages_of_the_tool(tmp_path):
    seen = read(tmp_path, item("user", "go"), item("assistant", toolCalls=[call()]),
                item("tool", "body", toolCallId="c1"), item("assistant", "Done."))
    assert places(seen) == [["request", "tool_result"]]
    assert stops(seen)[0] == "tool_call"


def test_an_answer_at_its_cap_was_cut(tmp_path):
    log = {"modelTitle": "M", "completionOptions": {"model": "m-1", "maxTokens": 7}, "prompt": "p", "completion": "c"}
    seen = read(tmp_path, item("user", "go"), item("assistant", "Half a", usage={"completionTokens": 7},
                                                   promptLogs=[log]))
    (facts,) = seen.responses
    assert (facts.exchange.model, facts.exchange.request.max_tokens, stops(seen)) == ("m-1", 7, ["max_tokens"])


def test_a_cut_call_is_seen(tmp_path):
    seen = read(tmp_path, item("user", "go"), item("assistant", toolCalls=[call('{"path":"a')]))
    assert words(seen) == ["CALL HELD"]


def test_an_end_without_a_word_stays_unknown(tmp_path):
    assert stops(read(tmp_path, item("user", "go"), item("assistant", "Done."))) == ["unknown"]


@each_row("odd", [{"message": 1}, {"message": {"role": 1}}, {"toolCallStates": 1},
                                 {"promptLogs": 1}, {"reasoning": 1}, {"message": {"content": 1}},
                                 {"message": {"toolCalls": 1}}, {"message": {"usage": 1}}])
def test_members_of_other_types_are_named(tmp_path, odd):
    seen = read(tmp_path, item("user", "go"), item("assistant", "a"), odd)
    assert any("was expected; it was skipped" in notice for notice in seen.inputs[0].notices)


def test_a_cut_file_is_read_as_far_as_it_goes(tmp_path):
    whole = file(item("user", "go"), item("assistant", "One."), item("assistant", "Two."))
    seen = show(whole[: whole.index("Two.")], tmp_path, name="s.json")
    assert [facts.exchange.response.text for facts in seen.responses] == ["One."]


def test_recognition():
    assert choose(file(item("user", "go")).encode(), "x") == "continue"
    assert choose(file().encode(), "x") == "continue"
    assert choose(b'{"history": [{"role": "user", "content": "a"}], "info": {}}', "x") != "continue"


def test_the_cli_counts_in_other_names_and_names_the_model(tmp_path):
    usage = {"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 40, "model": "m-2", "cost_cents": 0}
    seen = read(tmp_path, item("user", "go"), item("assistant", "Done.", usage=usage))
    exchange = seen.responses[0].exchange
    counts = exchange.response.usage
    assert (exchange.model, counts.input_tokens, counts.output_tokens) == ("m-2", 30, 7)


def test_the_items_of_one_answer_are_one_answer(tmp_path):
    thinking = {"message": {"role": "thinking", "content": "internal reasoning is hidden due to safety reasons",
                            "redactedThinking": "c2VjcmV0"}, "contextItems": []}
    seen = read(tmp_path, item("user", "go"), item("assistant"), thinking, item("thinking", "hm", signature="sig"),
                item("assistant", "I look.", toolCalls=[call()], toolCallStates=[state()]),
                item("assistant", "Done."), item("user", "more"), item("assistant"), item("thinking", "hm, cut"))
    first, second, third = (facts.exchange.response for facts in seen.responses)
    assert (first.text, second.text, third.text) == ("I look.", "Done.", None)
    assert (first.reasoning_content, second.reasoning_content, third.reasoning_content) == ("hm", None, "hm, cut")
    assert first.parts[:2] == (ReasoningPart(""), ReasoningPart("hm"))
    assert stops(seen) == ["tool_call", "end_turn", "unknown"]


def test_a_call_that_was_still_growing_is_not_whole(tmp_path):
    growing = item("assistant", toolCalls=[call("{}")], toolCallStates=[state("generating", output="")])
    seen = read(tmp_path, item("user", "go"), growing)
    assert stops(seen) == ["unknown"]
    assert [found.closed for found in seen.responses[0].exchange.response.tool_calls] == [False]
    assert stops(read(tmp_path, item("user", "go"), growing, item("user", "again"))) == ["interrupted"]


def test_a_call_that_was_canceled_without_a_result_may_be_cut(tmp_path):
    canceled = item("assistant", toolCalls=[call("{}")], toolCallStates=[state("canceled", output="")])
    seen = read(tmp_path, item("user", "go"), canceled, item("tool", "", toolCallId="c1"), item("user", "again"))
    assert stops(seen) == ["cancelled"]
    assert words(seen) != ["COMPLETE"]


def test_an_odd_id_in_the_state_of_a_call_hides_no_other_state(tmp_path):
    odd = [state(status) | {"toolCallId": key} for status in ("generating", "canceled") for key in ({}, [])]
    canceled = item("assistant", toolCalls=[call("{}")], toolCallStates=[*odd, state("canceled", output="")])
    seen = read(tmp_path, item("user", "go"), canceled, item("user", "again"))
    assert stops(seen) == ["cancelled"]
    assert not any("unexpected type (" in notice for notice in seen.inputs[0].notices)


def test_a_summary_of_the_history_is_noted_on_the_next_answer(tmp_path):
    seen = read(tmp_path, item("user", "go"), item("assistant", "One.", conversationSummary="Short."),
                item("user", "more"), item("assistant", "Two."))
    assert [[found.rule for found in facts.exchange.response.findings if found.rule == "transcript.compacted"]
            for facts in seen.responses] == [[], ["transcript.compacted"]]
