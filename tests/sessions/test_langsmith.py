"""Runs of LangSmith: whose word it is, cut calls as LangChain keeps them, dumps of providers, tools, trees, threads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.importers import langsmith
from inspector.sessions.importers.records import Piece, number_records
from inspector.sessions.reasons import named_api
from inspector.sessions.recording import Options
from loop_core.values import ReasoningPart
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, show, text, words

Row = dict[str, Any]
CALL = {"name": "look", "args": {"path": "a"}, "id": "c1", "type": "tool_call"}
CUT = {"name": "write", "args": '{"path": "a.md", "con', "id": "c2", "type": "invalid_tool_call", "error": "no JSON"}


def message(kind: str, content: Any, form: str = "constructor", **more: Any) -> Row:
    """A message of LangChain in one of the forms in which it is written."""
    members = {"content": content, **more}
    return {"constructor": {"lc": 1, "type": "constructor", "id": ["langchain", kind],
                            "kwargs": {**members, "type": kind}},
            "data": {"type": kind, "data": members}, "plain": {"type": kind, **members}}[form]


def run(number: int, inputs: list[Row], outputs: Any, provider: str = "openai", **more: Any) -> Row:
    """The run of a model; `outputs` that are a message are one generation."""
    if outputs is not None and "lc" in outputs:
        outputs = {"generations": [[{"text": "", "message": outputs}]]}
    return {"id": f"r{number}", "run_type": "llm", "trace_id": "t", "start_time": f"2026-01-01T00:00:{number:02}Z",
            "inputs": {"messages": [inputs]}, "outputs": outputs, "error": None,
            "extra": {"metadata": {"ls_provider": provider, "ls_model_name": "m", "ls_max_tokens": 30}}, **more}


def answer(content: Any, metadata: Row, *calls: Row, **more: Any) -> Row:
    return message("ai", content, response_metadata=metadata, tool_calls=[*calls], **more)


GO = message("human", "go")


def text_of(runs: Any) -> str:
    return json.dumps(runs)


@pytest.mark.parametrize(("provider", "metadata", "stop", "word", "api"), [
    ("openai", {"finish_reason": "length"}, "max_tokens", "length", "openai_chat"),
    ("azure", {"finish_reason": "content_filter"}, "safety_blocked", "content_filter", "openai_chat"),
    ("openai", {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
     "max_tokens", "incomplete:max_output_tokens", "openai_responses"),
    ("anthropic", {"stop_reason": "max_tokens"}, "max_tokens", "max_tokens", "anthropic_messages"),
    ("google_genai", {"finish_reason": "MAX_TOKENS"}, "max_tokens", "MAX_TOKENS", "gemini_generate"),
    ("amazon_bedrock", {"stopReason": "max_tokens"}, "max_tokens", "max_tokens", "bedrock_converse"),
    ("bedrock_converse", {"finish_reason": "max_tokens"}, "max_tokens", "max_tokens", "bedrock_converse"),
    ("ollama", {"done_reason": "length"}, "max_tokens", "length", "ollama_chat"),
    ("cohere", {"finish_reason": "MAX_TOKENS"}, "max_tokens", "MAX_TOKENS", "cohere_chat"),
])
def test_the_word_is_the_providers(provider, metadata, stop, word, api, tmp_path):
    seen = show(text_of([run(1, [GO], answer("The half", metadata), provider)]), tmp_path)
    (facts,) = seen.responses
    reason = facts.judgement.stop
    assert (reason.normalized, reason.raw, named_api(facts.exchange)) == (stop, word, api)
    assert rules(seen)[0] == "transcript.provider"
    assert facts.exchange.request.max_tokens == 30


@each_row(("provider", "api"), [
    ("openai", "openai_chat"), ("azure", "openai_chat"), ("anthropic", "anthropic_messages"),
    ("google_genai", "gemini_generate"), ("amazon_bedrock", "bedrock_converse"), ("ollama", "ollama_chat"),
    ("bedrock_converse", "bedrock_converse"), ("cohere", "cohere_chat")])
def test_a_request_that_failed_is_one_of_its_provider(provider, api, tmp_path):
    (facts,) = show(text_of([run(1, [GO], None, provider, error="TimeoutError()")]), tmp_path).responses
    assert named_api(facts.exchange) == api


@pytest.mark.parametrize(("said", "given"), [("AIMessageChunk", "function"), ("ai", "tool")])
def test_older_kinds_of_messages_are_read(said, given, tmp_path):
    """A streamed answer that a history repeats, and the result of a function."""
    first = answer("I look.", {"finish_reason": "tool_calls"}, CALL)
    other = run(2, [message("human", "else")], answer("Done.", {"finish_reason": "stop"}))
    last = [message("human", "A summary."), message(said, "I look.", tool_calls=[CALL]),
            message(given, "ok", tool_call_id="c1", name="look")]
    runs = [run(1, [GO], first), other, run(3, last, answer("Done.", {"finish_reason": "stop"}))]
    seen = show(text_of(runs), tmp_path)
    assert [[*turn.responses] for turn in seen.turns] in ([[0, 2], [1]], [[1], [0, 2]])
    request = seen.responses[2].exchange.request
    assert [part.text for each in request.messages for part in each.parts] == ["ok"]


@pytest.mark.parametrize(("word", "stop", "rule"), [
    ("length", "max_tokens", "langsmith.finish_reasons"), ("stopstop", "unknown", "unknown_word")])
def test_a_word_of_a_provider_that_is_not_known_is_the_recorders(word, stop, rule, tmp_path):
    seen = show(text_of([run(1, [GO], answer("The half", {"finish_reason": word}), "my_own")]), tmp_path)
    assert (seen.responses[0].judgement.stop.normalized, rules(seen)[:2]) == (stop, ["transcript.recorder", rule])


def test_the_word_beside_the_message_counts_where_the_message_has_none(tmp_path):
    generation = {"text": "The half", "generation_info": {"finish_reason": "length"}}
    seen = show(text_of([run(1, [GO], {"generations": [[generation]]})]), tmp_path)
    (facts,) = seen.responses
    assert (words(seen), facts.exchange.response.text) == (["TRUNCATED"], "The half")
    assert facts.judgement.stop.evidence[0].at.pointer == "/outputs/generations/0/0/generation_info/finish_reason"


@pytest.mark.parametrize("word", ["length", "tool_calls"])
def test_a_call_that_langchain_could_not_parse_is_held(word, tmp_path):
    """Also where the server says that it is complete."""
    made = answer("I write.", {"finish_reason": word}, invalid_tool_calls=[CUT])
    seen = show(text_of([run(1, [GO], made)]), tmp_path)
    assert words(seen) == ["CALL HELD"]
    (call,) = seen.responses[0].exchange.response.tool_calls
    assert (call.id, call.name, call.arguments) == ("c2", "write", CUT["args"])


def test_a_cut_call_of_anthropic_that_ran_is_reported(tmp_path):
    """Anthropic's arguments come parsed, so that cut ones look whole; LangChain hands them to the tool."""
    block = {"type": "tool_use", "id": "c1", "name": "look", "input": {"path": "a"}}
    first = answer([{"type": "text", "text": "I look."}, block], {"stop_reason": "max_tokens"}, CALL)
    done = message("tool", "none there", tool_call_id="c1", name="look", status="success")
    runs = [run(1, [GO], first, "anthropic"),
            run(2, [GO, first, done], answer("Done.", {"stop_reason": "end_turn"}), "anthropic")]
    seen = show(text_of(runs), tmp_path)
    assert words(seen) == ["CUT CALL RUN"]
    assert [call.arguments for call in seen.responses[0].exchange.response.tool_calls] == ['{"path": "a"}']


@pytest.mark.parametrize("said", [
    "Error: look is not a valid tool, try one of [read, write].",
    "Error invoking tool 'look' with kwargs {'path': 'a'} with error:\n text: Field required\n Please fix the error"])
def test_a_cut_call_that_langgraph_refused_did_not_run(said, tmp_path):
    """It was reported as run: its result is an error of LangGraph's own."""
    first = answer("I look.", {"stop_reason": "max_tokens"}, CALL)
    refused = message("tool", said, tool_call_id="c1", name="look", status="error")
    runs = [run(1, [GO], first, "anthropic"),
            run(2, [GO, first, refused], answer("Done.", {"stop_reason": "end_turn"}), "anthropic")]
    assert words(show(text_of(runs), tmp_path)) == ["CALL HELD"]


TOOL = {"id": "x", "run_type": "tool", "trace_id": "t", "name": "look", "inputs": {"path": "a"}, "error": None}


@each_row(("tool", "said", "failed"), [
    ({"outputs": {"output": message("tool", "ok", tool_call_id="c1", status="success")}}, "ok", False),
    ({"outputs": {"output": message("tool", [text("no")], tool_call_id="c1", status="error")}}, "no", True),
    ({"outputs": {"output": "ok"}, "extra": {"tool_call_id": "c1"}}, "ok", False),
    ({"outputs": {"output": "ok"}}, "ok", False),  # by its name and arguments
    ({"outputs": None, "error": "KeyError('a')"}, "KeyError('a')", True),
])
def test_the_run_of_a_tool_is_the_result_of_its_call(tool, said, failed, tmp_path):
    """The last answer of a trace: no request repeats its results."""
    seen = show(text_of([run(1, [GO], answer("", {"finish_reason": "tool_calls"}, CALL)), {**TOOL, **tool}]), tmp_path)
    (found,) = seen.inputs[0].answers
    assert (found.result.text, found.result.is_error) == (said, failed)


@pytest.mark.parametrize("form", ["constructor", "data", "plain"])
def test_messages_in_every_form_are_one_turn(form, tmp_path):
    first = answer("I look.", {"finish_reason": "tool_calls"}, CALL)
    history = [message("system", "Be brief.", form), message("human", "go", form),
               message("ai", "I look.", form, tool_calls=[CALL]), message("tool", "ok", form, tool_call_id="c1")]
    second = run(2, history, answer("Done.", {"finish_reason": "stop"}))
    seen = show(text_of([run(1, history[:2], first), second]), tmp_path)
    assert words(seen) == ["COMPLETE"]
    request = seen.responses[1].exchange.request
    assert [part.text for each in request.messages for part in each.parts] == ["ok"]


@each_row(("outputs", "stop", "said"), [
    ({"choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": "Half"}}]}, "max_tokens",
     "Half"),
    ({"role": "assistant", "content": [text("Half")], "stop_reason": "max_tokens"}, "max_tokens", "Half"),
    ({"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "Half"}]}]}, "max_tokens", "Half"),
    ({"candidates": [{"finishReason": "MAX_TOKENS", "content": {"parts": [{"text": "Half"}]}}]}, "max_tokens", "Half"),
    ({"output": {"choices": [{"finish_reason": "length", "message": {"content": "Half"}}]}}, "max_tokens", "Half"),
    ({"messages": [{"role": "assistant", "content": "Half"}]}, "unknown", "Half"),
    ({}, "unknown", ""),
])
def test_the_dump_of_a_provider_is_read_as_it_is(outputs, stop, said, tmp_path):
    usage = {"usage_metadata": {"input_tokens": 2, "output_tokens": 14, "input_token_details": {"cache_read": 1},
                                "output_token_details": {"reasoning": 3}}}
    seen = show(text_of([run(1, [GO], {**outputs, **usage})]), tmp_path)
    (facts,) = seen.responses
    assert (facts.judgement.stop.normalized, facts.exchange.response.text or "") == (stop, said)
    assert facts.exchange.response.usage[:4] == (2, 14, 3, 1)


def test_an_error_has_the_status_that_langchain_kept_and_no_traceback(tmp_path):
    error = "RateLimitError('Error code: 429')Traceback (most recent call last):\n\n\n  File \"a.py\", line 1"
    failed = answer("", {"status_code": 429})
    seen = show(text_of([run(1, [GO], failed, error=error), run(2, [GO], None, error="ValueError()")]), tmp_path)
    assert [facts.exchange.response.http_status for facts in seen.responses] == [429, None]
    assert "Traceback" not in str([facts.exchange.response.error for facts in seen.responses])
    assert seen.responses[0].exchange.response.error.retryable is True


def test_an_error_beside_a_stop_word_is_a_finding(tmp_path):
    done = answer("Done.", {"finish_reason": "stop"})
    seen = show(text_of([run(1, [GO], done, error="ValueError('boom')Traceback (most recent call last):")]), tmp_path)
    [found] = [each.finding for each in seen.findings if each.finding.rule == "transcript.error_level"]
    assert found.message == "the run is marked as an error: ValueError('boom')"
    assert words(seen) == ["COMPLETE"]


def test_the_cost_of_runs_of_tools_that_belong_to_no_call_is_in_proportion(tmp_path):
    def runs_of(count: int) -> list[Piece]:
        runs = [each for number in range(count) for each in (
            run(number, [GO], answer("", {"finish_reason": "tool_calls"}, CALL)),
            {"id": f"o{number}", "run_type": "tool", "name": "other", "trace_id": "t", "start_time": "",
             "inputs": {"path": "b"}, "outputs": {"output": "2"}})]
        return list(number_records([text_of(each).encode() for each in runs]))
    grown = growth(lambda pieces: langsmith._Runs("a.json", Options()).read_records(pieces), runs_of, 1_000)
    assert grown < IN_PROPORTION


def test_the_answer_of_a_wrapper_within_an_answer_is_the_same(tmp_path):
    outer = run(1, [GO], answer("Done.", {"finish_reason": "stop"}))
    inner = run(2, [GO], {"choices": [{"finish_reason": "stop", "message": {"content": "Done."}}]}, parent_run_id="r1")
    seen = show(text_of([outer, inner]), tmp_path)
    assert len(seen.responses) == 1
    assert "are left out" in str(seen.inputs[0].notices)


def test_traces_of_one_thread_are_one_conversation(tmp_path):
    def of_thread(number: int, inputs: list[Row], text: str, **metadata: Any) -> Row:
        made = run(number, inputs, answer(text, {"finish_reason": "stop"}), trace_id=f"t{number}")
        return {**made, "extra": {"metadata": {"ls_provider": "openai", **metadata}}}
    more = [GO, message("ai", "One."), message("human", "more")]
    for key in ("thread_id", "session_id", "conversation_id"):
        runs = [of_thread(1, [GO], "One.", **{key: "h"}), of_thread(2, more, "Two.", **{key: "h"})]
        seen = show(text_of(runs), tmp_path)
        assert len({turn.conversation for turn in seen.turns}) == 1
    seen = show(text_of([of_thread(1, [GO], "One."), of_thread(2, more, "Two.")]), tmp_path)
    assert len({turn.conversation for turn in seen.turns}) == 2


STOPPED = {"finish_reason": "stop"}
RUNS = [run(2, [GO], answer("Two.", STOPPED)), run(1, [GO], answer("One.", STOPPED))]
CHAIN = {"id": "z", "run_type": "chain", "inputs": {}, "trace_id": "t", "start_time": "2026-01-01T00:00:00Z"}


@each_row("content", [
    json.dumps(RUNS), json.dumps({"runs": RUNS, "cursors": {}}), "".join(json.dumps(each) + "\n" for each in RUNS),
    json.dumps({**CHAIN, "child_runs": [{**CHAIN, "id": "y", "child_runs": RUNS}]}),
])
def test_the_runs_of_every_kind_of_file_are_read_in_their_order(content, tmp_path):
    seen = show(content, tmp_path)
    assert seen.inputs[0].format == "langsmith"
    assert [facts.exchange.response.text for facts in seen.responses] == ["One.", "Two."]


def test_reasoning_and_prompts_that_are_texts(tmp_path):
    made = run(1, [], answer([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}], {}))
    seen = show(text_of([{**made, "inputs": {"prompts": ["go on"]}}]), tmp_path)
    (facts,) = seen.responses
    assert facts.exchange.response.parts[0] == ReasoningPart("Hm.")
    assert [part.text for each in facts.exchange.request.messages for part in each.parts] == ["go on"]


def test_a_member_of_another_type_is_reported(tmp_path):
    runs = [run(1, [GO], answer("One.", STOPPED)), {**run(2, [GO], None), "outputs": ["x"]}]
    seen = show(text_of(runs), tmp_path)
    assert any("run 2: outputs is a list, but an object was expected; it was skipped" in str(each)
               for each in seen.inputs[0].notices)


def batch(post: list[Row], patch: list[Row]) -> str:
    return json.dumps({"post": post, "patch": patch})


def test_the_two_parts_of_a_run_in_batches_are_joined(tmp_path):
    whole = run(1, [GO], answer("Half a", {"finish_reason": "length"}), start_time=1767225601000)
    begun = {name: member for name, member in whole.items() if name != "outputs"}
    later = {"id": "r1", "trace_id": "t", "outputs": whole["outputs"], "error": None, "inputs": None}
    for content in (batch([begun], [later]), batch([begun], []) + "\n" + batch([], [later])):
        seen = show(content, tmp_path, name="runs.json")
        (facts,) = seen.responses
        assert (facts.exchange.response.text, words(seen)) == ("Half a", ["TRUNCATED"])
        assert facts.exchange.started == "2026-01-01T00:00:01.000+00:00"
        assert facts.exchange.request.max_tokens == 30


def test_a_part_without_an_id_has_its_name_in_its_order(tmp_path):
    first, second = (run(number, [GO], answer(said, {"finish_reason": "stop"}), trace_id=f"t{number}",
                         dotted_order=f"20260101T000000000001Zr{number}")
                     for number, said in ((1, "One."), (2, "Two.")))
    later = [{"dotted_order": each["dotted_order"], "outputs": each["outputs"]} for each in (second, first)]
    begun = [{**each, "outputs": None} for each in (first, second)]
    seen = show(batch(begun, later), tmp_path, name="runs.json")
    assert [facts.exchange.response.text for facts in seen.responses] == ["One.", "Two."]


def test_a_run_of_which_only_the_beginning_was_sent_has_no_end(tmp_path):
    seen = show(batch([{**run(1, [GO], None), "outputs": None}], []), tmp_path, name="runs.json")
    assert words(seen) == ["END NOT RECORDED"]


def test_runs_whose_times_are_numbers_are_in_the_order_of_their_start(tmp_path):
    later, first = (run(number, [GO], answer(said, {"finish_reason": "stop"}), trace_id=f"t{number}",
                        start_time=1767225600000 + number) for number, said in ((2, "Two."), (1, "One.")))
    seen = show(text_of([later, first]), tmp_path, name="runs.json")
    assert [facts.exchange.response.text for facts in seen.responses] == ["One.", "Two."]


def test_a_batch_that_is_cut_is_reported(tmp_path):
    whole = batch([run(1, [GO], answer("One.", {"finish_reason": "stop"}))], [])
    seen = show(f"{whole}\n{whole[:-20]}", tmp_path, name="runs.json")
    assert [facts.exchange.response.text for facts in seen.responses] == ["One."]
    assert any("is cut" in str(each) for each in seen.inputs[0].notices)


@pytest.mark.parametrize(("received", "admission"), [('{"path": "a.md", "con', "held"), ('{"path": "a.md"}', "ready")])
def test_a_cut_call_of_a_stream_is_held_though_langchain_repaired_its_arguments(received, admission, tmp_path):
    repaired = {"name": "write", "args": {"path": "a.md"}, "id": "c2", "type": "tool_call"}
    chunk = {"name": "write", "args": received, "id": "c2", "index": 0, "type": "tool_call_chunk"}
    streamed = answer("", {"finish_reason": "tool_calls"}, repaired, tool_call_chunks=[chunk], invalid_tool_calls=[])
    (facts,) = show(text_of([run(1, [GO], streamed)]), tmp_path).responses
    (verdict,) = facts.verdicts
    assert (verdict.call.arguments, verdict.admission.value) == (received, admission)


def test_a_stream_whose_last_choice_stands_in_place_of_its_word(tmp_path):
    last = {"index": 0, "delta": {}, "finish_reason": "length"}
    outputs = {"choices": [{"index": 0, "finish_reason": last, "message": {"role": "assistant", "content": "Half a"}}]}
    seen = show(text_of([run(1, [GO], outputs)]), tmp_path, name="runs.json")
    stop = seen.responses[0].exchange.response.stop_reason
    assert (stop.normalized, stop.raw, stop.evidence[-1].at.pointer) == (
        "max_tokens", "length", "/outputs/choices/0/finish_reason/finish_reason")
