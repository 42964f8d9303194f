"""Histories of fast-agent: its words, which of them prove an end, failed requests, calls, and its own messages."""

from __future__ import annotations

import json

import pytest

from inspector.sessions import open_paths
from loop_core.values import OpaquePart, ReasoningPart, Usage
from tests.scenes.transcripts import rules, stops, view_file, words

CALL = {"c1": {"method": "tools/call", "params": {"name": "on_call", "arguments": {"team": "platform"}}}}
ATTEMPT = {"model": "m-1", "prompt": {"total": 9, "cache_read": 4, "cache_write": 2},
           "completion": {"total": 7, "reasoning": 3}}


def said(text):
    return [{"type": "text", "text": text}]


def user(text="go", **more):
    return {"role": "user", "content": said(text) if text else [], "is_template": False, **more}


def model(stop, text="I look.", schema="openai-chat", channels=(), **more):
    counts = {"provider_attempts": [{"model": "m-0"}, {**ATTEMPT, "usage_schema": schema}]}
    notes = {"fast-agent-usage": said(json.dumps(counts)), **dict(channels)}
    return {"role": "assistant", "content": said(text) if text else [], "stop_reason": stop, "channels": notes,
            "is_template": False, "timestamp": "2026-11-30T20:38:16.07Z", **more}


def result(text="Ada", failed=False):
    return user("", tool_results={"c1": {"content": said(text), "isError": failed, "resultType": "complete"}})


def saved(folder, *messages, name="result.json"):
    (folder / name).write_text(json.dumps({"messages": list(messages)}, indent=2))
    return folder / name


def read(folder, *messages):
    return view_file(saved(folder, *messages))


@pytest.mark.parametrize(("word", "stop"), [
    ("stopSequence", "end_turn"), ("maxTokens", "max_tokens"), ("safety", "safety_blocked"), ("pause", "paused"),
    ("continue", "paused"), ("cancelled", "cancelled"), ("timeout", "interrupted"), ("other", "unknown")])
def test_its_words(word, stop, tmp_path):
    answer = read(tmp_path, user(), model(word)).responses[0].exchange.response
    assert answer.stop_reason.normalized.value == stop
    assert answer.stop_reason.raw is None  # the provider's word is not in the file


def test_a_normal_end_is_inferred_because_it_also_stands_for_a_missing_word(tmp_path):
    seen = read(tmp_path, user(), model("endTurn"))
    assert words(seen) == ["END INFERRED"]
    assert rules(seen)[-1] == "transcript.inferred.turn_ended"


@pytest.mark.parametrize(("schema", "api", "rule"), [
    ("anthropic", "anthropic_messages", "fast_agent.stop_reasons"),
    ("bedrock", "bedrock_converse", "fast_agent.stop_reasons"),
    ("openai-chat", "openai_chat", "transcript.inferred.calls_answered"),
    ("openai-responses", "openai_responses", "transcript.inferred.calls_answered"),
    ("openai-responses-compatible", "openai_responses", "transcript.inferred.calls_answered"),
    ("google-generate-content", "gemini_generate", "transcript.inferred.calls_answered")])
def test_calls_prove_no_end_where_fast_agent_writes_the_word_itself(schema, api, rule, tmp_path):
    """In Chat Completions, Responses and Gemini it says `toolUse` for any answer with calls, also for a cut one."""
    seen = read(tmp_path, user(), model("toolUse", schema=schema, tool_calls=CALL), result(), model("endTurn"))
    response = seen.responses[0].exchange.response
    assert (response.api, rules(seen)[-1], stops(seen)[0]) == (api, rule, "tool_call")
    named = {each.rule for each in seen.responses[0].exchange.profile_evidence}
    assert "transcript.api_assumed" not in named
    (call,) = response.tool_calls
    assert (call.id, call.name, json.loads(call.arguments)) == ("c1", "on_call", {"team": "platform"})
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "Ada"


def test_a_call_without_a_result_has_no_end(tmp_path):
    assert words(read(tmp_path, user(), model("toolUse", tool_calls=CALL))) == ["END NOT RECORDED"]


def test_the_limit_of_its_loop_stops_the_turn(tmp_path):
    assert words(read(tmp_path, user(), model("maxIterations", tool_calls=CALL), result())) == ["CANCELLED"]


@pytest.mark.parametrize(("channels", "text", "retryable"), [
    ({"fast-agent-error": said("the key is wrong"),
      "fast-agent-provider-error": said('{"error_type": "AuthenticationError", "status": 401}')},
     "the key is wrong", False),
    ({"fast-agent-error": said("Connection error."), "fast-agent-provider-error": said('{"status": null}')},
     "Connection error.", True),
    ({}, "no message", False)])  # Gemini's malformed call: the text is the model's
def test_a_failed_request_has_its_error_and_not_what_fast_agent_says_instead(channels, text, retryable, tmp_path):
    answer = read(tmp_path, user(), model("error", channels=channels)).responses[0].exchange.response
    assert (answer.error.message, answer.error.retryable, bool(answer.text)) == (text, retryable, not channels)


def test_an_answer_whose_tool_failed_for_good_is_no_failed_request(tmp_path):
    """fast-agent then writes `error` over the word of the answer, and puts what the tool said behind its text."""
    seen = read(tmp_path, user(), model("error", "I look.\ncredits are used up", tool_calls=CALL), user("and now?"),
                model("endTurn"))
    response = seen.responses[0].exchange.response
    assert (words(seen)[0], response.error, len(response.tool_calls)) == ("END NOT RECORDED", None, 1)
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]


def test_what_an_answer_keeps(tmp_path):
    block = {"type": "image", "data": "eA==", "mimeType": "image/png"}
    message = model("maxTokens", channels={"reasoning": said("Look first.")})
    answer = read(tmp_path, user(), {**message, "content": [*said("See:"), block]}).responses[0].exchange.response
    assert (answer.model, answer.usage) == ("m-1", Usage(9, 7, 3, 4, 2))
    assert type(answer.parts[0]) is ReasoningPart
    assert next(part for part in answer.parts if type(part) is OpaquePart).type == "image"


@pytest.mark.parametrize("own", [
    {"is_template": True}, {"channels": {"fast-agent-compaction": said("{}")}},
    {"channels": {"fast-agent-synthetic-final": said("tool_result_passthrough")}}])
def test_what_fast_agent_wrote_itself_is_counted(own, tmp_path):
    seen = read(tmp_path, user(), model("endTurn"), {**model("endTurn", "Not the model."), **own})
    assert len(seen.responses) == 1
    assert "are templates and messages of fast-agent itself" in "\n".join(seen.inputs[0].notices)


def test_the_earlier_state_beside_a_history_counts_no_turn_twice(tmp_path):
    folder = tmp_path / "sessions" / "s1"
    folder.mkdir(parents=True)
    (folder / "session.json").write_text(json.dumps({"session_id": "s1", "metadata": {"title": "Who is on call?"}}))
    saved(folder, user(), model("endTurn"), name="history_a_previous.json")
    assert len(open_paths([str(folder)]).exchanges) == 1  # alone it is all that is there
    saved(folder, user(), model("endTurn"), user("and now?"), model("endTurn"), name="history_a.json")
    loaded = open_paths([str(folder)])
    assert len(loaded.exchanges) == 2
    assert [given.about.title for given in loaded.inputs if given.about] == ["Who is on call?"]


def test_a_request_without_an_answer_is_reported(tmp_path):
    loaded = open_paths([str(saved(tmp_path, user(), model("endTurn"), user("and now?")))])
    assert "end the history without an answer" in "\n".join(loaded.inputs[0].notices)


def test_a_member_of_an_odd_type_is_reported(tmp_path):
    loaded = open_paths([str(saved(tmp_path, user(), model("endTurn", tool_calls=[])))])
    assert "message 2: tool_calls is a list, but an object was expected" in "\n".join(loaded.inputs[0].notices)
