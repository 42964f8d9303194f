"""Results of promptfoo: its words and the provider's, calls in a text, failures, equal requests."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from inspector.sessions import open_paths
from inspector.sessions.reasons import named_api
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, stops, words

CUT, WHOLE = '{"path": "a.md", "content": "# Rep', '{"path": "a.md"}'
CLAUDE = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {"path": "a.md"}}
USED = {"prompt": 4, "completion": 16, "total": 20}


def answer(output="Hi.", word="stop", provider="openai:chat:gpt-5", **more):
    said = {"output": output, "tokenUsage": USED, **({} if word is None else {"finishReason": word}), **more}
    return result(said, provider)


def result(response, provider="openai:chat:gpt-5", **more):
    return {"promptIdx": 0, "testIdx": 0, "testCase": {"vars": {}}, "provider": {"id": provider, "label": "mine"},
            "prompt": {"raw": "go", "label": "go"}, "response": response, "success": True, **more}


def evaluation(*results, config=None):
    return json.dumps({"evalId": "eval-1", "results": {"version": 3, "results": list(results)}, "config": config or {}})


def read(tmp_path, *results, config=None):
    return show(evaluation(*results, config=config), tmp_path, name="out.json")


def response(seen, index=0):
    return seen.responses[index].exchange.response


def call(arguments):
    return {"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": arguments}}


@each_row(("word", "stop"), [
    ("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "safety_blocked"), ("pause_turn", "paused"),
    (None, "unknown")])
def test_the_word_of_promptfoo_says_how_an_answer_ended(tmp_path, word, stop):
    seen = read(tmp_path, answer(word=word))
    assert (stops(seen), response(seen).text, response(seen).usage[:2]) == ([stop], "Hi.", (4, 16))


@pytest.mark.parametrize(("provider", "api"), [
    ("openai:chat:m", "openai_chat"), ("openai:responses:m", "openai_responses"),
    ("anthropic:messages:m", "anthropic_messages")])
def test_the_provider_names_the_wire_format_and_the_model(tmp_path, provider, api):
    seen = read(tmp_path, answer(provider=provider))
    assert (named_api(seen.responses[0].exchange), response(seen).model) == (api, "m")


def test_the_object_of_responses_has_the_providers_word(tmp_path):
    raw = {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
           "output": [{"type": "function_call", "call_id": "c1", "name": "write_file", "arguments": CUT}]}
    seen = read(tmp_path, answer("{…}", None, "openai:responses:gpt-5", raw=raw))
    assert (words(seen), response(seen).stop_reason.raw) == (["CALL HELD"], "incomplete:max_output_tokens")


@each_row(("output", "verdict"), [
    ({"role": "assistant", "content": "x", "tool_calls": [call(CUT)]}, "CALL HELD"), ([call(CUT)], "CALL HELD"),
    ({"name": "write_file", "arguments": CUT}, "CALL HELD"), ("I write it.", "NO CALL")])
def test_a_call_that_was_cut_is_held_in_each_form_of_an_output(tmp_path, output, verdict):
    assert words(read(tmp_path, answer(output, "tool_calls"))) == [verdict]


@pytest.mark.parametrize(("word", "verdict"), [("length", "CALL HELD"), ("tool_calls", "COMPLETE SO FAR")])
def test_the_calls_of_claude_stand_in_the_text(tmp_path, word, verdict):
    seen = read(tmp_path, answer(f"One.\n\nTwo.\n\n{json.dumps(CLAUDE)}", word, "anthropic:messages:claude"))
    assert (words(seen), response(seen).text) == ([verdict], "One.\n\nTwo.")
    (found,) = response(seen).tool_calls
    assert (found.name, json.loads(found.arguments)) == ("write_file", {"path": "a.md"})


@each_row(("output", "counts", "thought", "said"), [
    ("Thinking: hm\n\nmore\nSignature: x\n\nHi.", USED, "hm\n\nmore", "Hi."),
    ("Thinking: hm\n\nHi.", {**USED, "completionDetails": {"reasoning": 3}}, "hm", "Hi."),
    ("Thinking: hm\n\n", {**USED, "completionDetails": {"reasoning": 3}}, "hm", None),
    ("Thinking: hm", USED, "", "Thinking: hm")])
def test_reasoning_that_promptfoo_puts_before_the_text_is_no_text(tmp_path, output, counts, thought, said):
    found = response(read(tmp_path, answer(output, tokenUsage=counts)))
    assert "".join(part.text for part in found.parts if isinstance(part, ReasoningPart)) == thought
    assert found.text == said


def test_a_filtered_answer_has_no_text_of_promptfoos_own(tmp_path):
    seen = read(tmp_path, answer("Content filtered by provider", "content_filter"))
    assert (words(seen), response(seen).text) == (["BLOCKED"], None)


def test_an_answer_without_output_is_empty_whatever_promptfoo_calls_it(tmp_path):
    nothing = {"finishReason": "stop", "tokenUsage": {"prompt": 4, "completion": 0}}
    seen = read(tmp_path, result(nothing, error="No output"))
    assert words(seen) == ["EMPTY ANSWER"]


def test_an_answer_that_is_an_object_is_its_json(tmp_path):
    assert response(read(tmp_path, answer({"city": "Oslo"}))).text == '{"city": "Oslo"}'


def test_a_request_that_failed_and_an_assertion_that_failed_are_two_things(tmp_path):
    http = {"http": {"status": 500}}
    seen = read(tmp_path, result({"error": "API error: 500", "metadata": http}), result(None, error="timed out"),
                {**answer(), "error": "Expected output to contain x", "success": False})
    assert words(seen) == ["ERROR", "ERROR", "COMPLETE"]
    assert [response(seen, at).http_status for at in (0, 1)] == [500, None]


def test_equal_requests_of_an_evaluation_are_no_retries(tmp_path):
    """A cut answer would be hidden behind the answer of another provider, or of another round."""
    assert words(read(tmp_path, answer(word="length"), answer())) == ["TRUNCATED", "COMPLETE"]


def test_the_cap_is_that_of_the_providers_settings_unless_it_has_several(tmp_path):
    def caps(*values):
        config = {"providers": [{"id": "openai:chat:gpt-5", "label": "mine", "config": {"max_tokens": value}}
                                for value in values]}
        return read(tmp_path, answer(word="length"), config=config).responses[0].exchange.cap

    assert (caps(16), caps(16, 32), caps()) == (16, None, None)


@pytest.mark.parametrize("raw", [
    "go", json.dumps([{"role": "system", "content": "s"}, {"role": "user", "content": "go"}])])
def test_lines_are_read_and_a_prompt_may_be_messages(tmp_path, raw):
    rows = [{**answer(word="length"), "prompt": {"raw": raw}}, answer()]
    seen = show("\n".join(map(json.dumps, rows)) + "\n", tmp_path, name="out.jsonl")
    assert words(seen) == ["TRUNCATED", "COMPLETE"]
    assert seen.responses[0].exchange.request.messages[-1].parts[-1].text == "go"


@each_row(("member", "value"), [("provider", 5), ("prompt", "go"), ("response", []), ("error", {})])
def test_a_member_of_an_unexpected_type_is_reported(tmp_path, member, value):
    seen = read(tmp_path, {**answer(), member: value})
    assert f"result 1: {member} is " in "\n".join(seen.inputs[0].notices)


def test_a_text_that_stops_in_the_middle_under_promptfoos_own_word_is_not_complete(tmp_path):
    seen = read(tmp_path, answer("The files are:\n```python\ndef main("), answer("Here it is."))
    assert words(seen) == ["TEXT UNFINISHED", "COMPLETE"]


def base(folder, *results, without=""):
    """The database of promptfoo, with only the columns by which it is recognised."""
    path = folder / "promptfoo.db"
    names = [name for name in ("eval_id", "prompt_idx", "provider", "prompt", "response", "error") if name != without]
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(f"CREATE TABLE eval_results ({', '.join(names)})")
        for each in results:
            row = {"eval_id": "e", "prompt_idx": 0, "provider": json.dumps(each["provider"]), "prompt": json.dumps(
                each["prompt"]), "response": each["response"] and json.dumps(each["response"]),
                "error": each.get("error")}
            made.execute(f"INSERT INTO eval_results VALUES ({', '.join('?' * len(names))})", [row[n] for n in names])
    return path


def test_the_database_of_promptfoo_is_read_with_the_cap_of_each_provider(tmp_path):
    settings = {"id": "openai:chat:gpt-5", "config": {"max_tokens": 16}}
    path = base(tmp_path, {**answer([call(CUT)], "tool_calls"), "provider": settings}, answer("Hi.", "length"),
                result(None, error="The server had an error."))
    opened = open_paths([str(path)])
    first, second, third = opened.exchanges
    assert [given.format for given in opened.inputs] == ["promptfoo"]
    assert (first.cap, first.api, [each.arguments for each in first.response.tool_calls]) == (16, "openai_chat", [CUT])
    assert first.request.messages[-1].text == "go"
    assert (second.cap, second.response.text) == (None, "Hi.")
    assert second.response.stop_reason.normalized.value == "max_tokens"
    assert third.response.error.message == "The server had an error."
    assert len({each.session for each in opened.exchanges}) == 3, "equal requests are no retries"


@pytest.mark.parametrize("missing", ["eval_id", "prompt_idx", "provider", "prompt", "response", "error"])
def test_another_table_of_results_is_not_that_of_promptfoo(tmp_path, missing):
    path = base(tmp_path, without=missing)
    assert open_paths([str(path)]).inputs[0].format != "promptfoo"
