"""ZeroClaw's runtime trace: answers, calls, results, failures of both versions, by session; no stop word."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, stops, words

COUNT = iter(range(10**6))


def event(message, trace="t1", session="k", outcome="success", **attributes):
    return {"id": f"e{next(COUNT)}", "@timestamp": "2026-05-15T19:00:00Z", "severity_text": "INFO", "event": {
        "category": "provider", "action": "receive", "outcome": outcome}, "service": {"name": "zeroclaw"},
        "trace_id": trace, "zeroclaw": {"session_key": session, "model": "m-1"}, "message": message,
        "attributes": attributes, "schema_version": 2}


def older(kind, turn="t1", success=True, **payload):
    return {"id": f"o{next(COUNT)}", "timestamp": "2026-05-15T19:00:00Z", "event_type": kind, "model": "m-0",
            "turn_id": turn, "success": success, "payload": payload}


def reply(text, made=7, **more):
    facts = {"iteration": 1, "input_tokens": 30, "output_tokens": made, "raw_response": text, **more}
    return event("llm_response", **facts)


def read(tmp_path, *rows):
    return show("".join(json.dumps(row) + "\n" for row in rows), tmp_path, name="runtime-trace.jsonl")


def test_answers_calls_and_results(tmp_path):
    asked = [{"role": "system", "content": "s"}, {"role": "user", "content": "list"}]
    seen = read(tmp_path, event("llm_request", request_messages=json.dumps(asked), messages_count=2),
                reply("I look.", native_tool_calls=1, parsed_tool_calls=1),
                event("tool_call_start", tool="ls", arguments='{"a":1}'),
                event("tool_call_result", tool="ls", output="a.txt"), reply("One."), event("turn_final_response"),
                reply("Again.", trace="t2"), event("memory.recall"))
    first, second, _ = (facts.exchange for facts in seen.responses)
    assert (first.model, first.recorder, first.started) == ("m-1", "zeroclaw-trace", "2026-05-15T19:00:00Z")
    assert (first.response.usage.input_tokens, first.response.usage.output_tokens) == (30, 7)
    assert [facts.exchange.response.text for facts in seen.responses] == ["I look.", "One.", "Again."]
    assert [(call.name, call.arguments) for call in first.response.tool_calls] == [("ls", '{"a":1}')]
    (result,) = [part for message in second.request.messages for part in message.results]
    assert (result.text, result.is_error) == ("a.txt", False)
    assert seen.turns[0].run.record.user_text == "list"
    assert (len(seen.turns), len({turn.conversation for turn in seen.turns})) == (2, 1)
    assert (stops(seen), words(seen)[0]) == (["tool_call", "end_turn", "unknown"], "END INFERRED")
    notices = "\n".join(seen.inputs[0].notices)
    assert "ZeroClaw keeps none" in notices
    assert "llm_request (1)" in notices


@pytest.mark.parametrize("given", ['[{"role": "user", "content": "a', 1, "1"])
def test_a_request_whose_messages_are_cut_has_no_words(tmp_path, given):
    seen = read(tmp_path, event("llm_request", request_messages=given), reply("Hi"))
    assert not seen.turns[0].run.record.user_text


def test_sessions_are_conversations_of_their_own(tmp_path):
    seen = read(tmp_path, reply("A."), reply("B.", session="other", trace="t2"), reply("C.", session=None, trace="t3"))
    assert len({turn.conversation for turn in seen.turns}) == 3


def test_events_of_the_first_version(tmp_path):
    seen = read(tmp_path, older("llm_request"), older("llm_response", raw_response="Hi", output_tokens=3),
                older("tool_call_start", tool="ls", arguments="{}"),
                older("tool_call_result", success=False, tool="ls", result="bad"), older("llm_response",
                                                                                       raw_response="Done."))
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.model, first.response.text, first.response.usage.output_tokens) == ("m-0", "Hi", 3)
    assert [part.is_error for message in second.request.messages for part in message.results] == [True]


def test_migrated_events_have_their_type_as_action(tmp_path):
    row = event("call", raw_response="Hi")
    row["event"]["action"] = "llm_response"
    assert [facts.exchange.response.text for facts in read(tmp_path, row).responses] == ["Hi"]


def test_a_failed_request(tmp_path):
    seen = read(tmp_path, event("llm_response", outcome="failure", error="429 Too Many Requests"))
    assert words(seen) == ["ERROR"]


def test_calls_that_were_not_parsed_are_named(tmp_path):
    seen = read(tmp_path, reply("I write.", native_tool_calls=2, parsed_tool_calls=1), event("turn_final_response"))
    assert any("parsed 1 of 2 native calls" in noted.finding.message for noted in seen.findings)
    assert stops(seen) == ["malformed_tool_call"]


def test_calls_in_a_text_that_could_not_be_read_are_named(tmp_path):
    seen = read(tmp_path, event("tool_call_parse_issue", issue="a tag is not closed"), reply("<tool_call>"),
                event("turn_final_response"), reply("Done.", trace="t2"), event("turn_final_response", trace="t2"))
    assert stops(seen) == ["malformed_tool_call", "end_turn"]
    assert any("a tag is not closed" in noted.finding.message for noted in seen.findings)


@pytest.mark.parametrize("name", ["tool_loop_exhausted", "loop_detector_circuit_breaker",
                                  "tool_loop_identical_output_abort"])
def test_why_zeroclaw_stopped_a_turn_is_told(tmp_path, name):
    seen = read(tmp_path, reply("", native_tool_calls=1, parsed_tool_calls=1),
                event("tool_call_start", tool="ls", arguments='{"a":1}'),
                event("tool_call_result", tool="ls", output="a.txt"), event(name))
    assert any(noted.finding.rule == "transcript.stopped" for noted in seen.findings)
    assert "unknown type" not in "".join(seen.inputs[0].notices)


@pytest.mark.parametrize(("arguments", "noted"), [("{}", True), ('{"a":1}', False)])
def test_empty_arguments_may_stand_for_unread_ones(tmp_path, arguments, noted):
    seen = read(tmp_path, reply("", native_tool_calls=1, parsed_tool_calls=1),
                event("tool_call_start", tool="ls", arguments=arguments))
    assert any(found.finding.rule == "transcript.empty_arguments" for found in seen.findings) is noted


@each_row(("arguments", "output", "outcome", "stop", "closed"), [
    ("{}", "Missing 'command' parameter", "failure", "malformed_tool_call", False),
    ("{}", "Missing required parameter: path", "failure", "malformed_tool_call", False),
    ("{}", "Connection refused", "failure", "tool_call", True),
    ("{}", "Missing 'command' parameter", "success", "tool_call", True),  # what a file says, say
    ('{"a":1}', "Missing 'command' parameter", "failure", "tool_call", True),
])
def test_empty_arguments_that_a_tool_refuses_are_no_whole_call(tmp_path, arguments, output, outcome, stop, closed):
    seen = read(tmp_path, reply("", native_tool_calls=2, parsed_tool_calls=2),
                event("tool_call_start", tool="ls", arguments='{"b":1}'),
                event("tool_call_start", tool="shell", arguments=arguments),
                event("tool_call_result", tool="ls", output="a.md"),
                event("tool_call_result", tool="shell", outcome=outcome, output=output), reply("Done."))
    assert stops(seen)[0] == stop
    assert [call.closed for call in seen.responses[0].exchange.response.tool_calls] == [True, closed]
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == (
        ["ready", "ready"] if closed else ["held", "held"])


def test_of_two_calls_of_one_tool_the_one_is_refused_whose_result_says_so(tmp_path):
    start = (event("tool_call_start", tool="shell", arguments="{}") for _ in "ab")
    seen = read(tmp_path, reply("", native_tool_calls=2, parsed_tool_calls=2), *start,
                event("tool_call_result", tool="shell", output="ok"),
                event("tool_call_result", tool="shell", outcome="failure", output="Missing 'command' parameter"),
                reply("Done."))
    assert [call.closed for call in seen.responses[0].exchange.response.tool_calls] == [True, False]


@each_row("name", ["event_type", "event", "attributes", "payload", "zeroclaw"])
def test_members_of_other_types_are_named(tmp_path, name):
    seen = read(tmp_path, reply("a"), {**reply("b"), name: 1})
    assert any(f"{name} is" in notice for notice in seen.inputs[0].notices)


def test_recognition():
    for row in (reply("a"), older("llm_request")):
        assert choose(json.dumps(row).encode() + b"\n{}\n", "x") == "zeroclaw-trace"
        assert choose(json.dumps(row, indent=1).encode(), "x") == "zeroclaw-trace"


@each_row(("tools", "stop"), [
    (["ls", "cat"], "tool_call"), (["cat", "ls"], "tool_call"), (["ls", "ls"], "unknown"), (["ls"], "unknown"),
])
def test_parallel_calls_are_answered_by_results_of_the_same_tools(tmp_path, tools, stop):
    seen = read(tmp_path, reply("", native_tool_calls=2, parsed_tool_calls=2),
                *(event("tool_call_start", tool=tool, arguments="{}") for tool in ("ls", "cat")),
                *(event("tool_call_result", tool=tool, output="ok") for tool in tools), reply("Done."))
    assert stops(seen) == [stop, "unknown"]


def test_a_turn_that_failed_has_no_end(tmp_path):
    seen = read(tmp_path, reply("Half"), event("turn_final_response", outcome="failure"))
    assert stops(seen) == ["unknown"]


@pytest.mark.parametrize("kind", ["channel_message_inbound", "channel_message_outbound", "channel_message_error"])
def test_events_of_a_channel_are_known(tmp_path, kind):
    seen = read(tmp_path, reply("Hi"), older(kind, content_preview="go"))
    assert f"records that hold no exchange: {kind} (1)" in "\n".join(seen.inputs[0].notices)


def test_a_call_that_was_skipped_as_a_duplicate_never_started(tmp_path):
    skipped = {**older("tool_call_result", success=False, tool="ls", arguments='{"a":1}', deduplicated=True),
               "message": "Skipped duplicate tool call"}
    seen = read(tmp_path, older("llm_response", raw_response="", native_tool_calls=2, parsed_tool_calls=2), skipped,
                older("tool_call_start", tool="cat", arguments="{}"),
                older("tool_call_result", tool="cat", output="ok"), older("llm_response", raw_response="Done."))
    first, second = (facts.exchange for facts in seen.responses)
    assert [(call.name, call.arguments) for call in first.response.tool_calls] == [("ls", '{"a":1}'), ("cat", "{}")]
    assert [(part.text, part.is_error) for message in second.request.messages for part in message.results] == [
        ("Skipped duplicate tool call", True), ("ok", False)]
    assert stops(seen)[0] == "tool_call"
