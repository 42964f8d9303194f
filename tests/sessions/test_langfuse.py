"""Exports of Langfuse: generations in their order, words in dumps and attributes, results, caps, and repeats."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers.recognition import choose
from inspector.sessions.reasons import named_api
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, rules, show, stops, words

CALL = {"id": "c1", "type": "function",
        "function": {"name": "write", "arguments": '{"path": "a.md", "content": "one tw'}}


def generation(key, began, given, made, **more):
    return {"id": key, "traceId": "t", "type": "GENERATION", "startTime": f"2026-01-01T00:00:0{began}Z", "model": "m",
            "input": given, "output": made, "usageDetails": {"input": 9, "output": 7}, "level": "DEFAULT", **more}


def chat(text, reason, *calls):
    message = {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "finish_reason": reason, "message": message}]}


def trace(*observations):
    return json.dumps({"trace": {"id": "t", "projectId": "p", "name": "Tides"}, "observations": list(observations)})


def user(text):
    return {"role": "user", "content": text}


def test_generations_are_answers_in_the_order_in_which_they_began(tmp_path):
    asks = [user("write it")]
    later = [*asks, {"role": "assistant", "tool_calls": [CALL]},
             {"role": "tool", "tool_call_id": "c1", "content": "ok"}]
    seen = show(trace(
        generation("b", 2, later, chat("Done.", "stop")),
        generation("a", 1, json.dumps({"messages": asks}), json.dumps(chat(None, "length", CALL)),
                   modelParameters={"max_tokens": 7}),
        {"id": "s", "traceId": "t", "type": "SPAN"}), tmp_path)
    first, second = (facts.exchange for facts in seen.responses)
    assert stops(seen) == ["max_tokens", "end_turn"]
    assert rules(seen)[0] == "transcript.provider"
    assert places(seen) == [["request", "tool_result"]]
    assert words(seen) == ["CUT CALL RUN"]
    assert (first.request.max_tokens, second.request.max_tokens) == (7, None)
    assert first.response.usage[:2] == (9, 7)
    assert seen.responses[0].verdicts[0].call.arguments == CALL["function"]["arguments"]
    assert seen.inputs[0].about.title == "Tides"


@each_row(("made", "api", "stop"), [
    (chat("x", "length"), "openai_chat", "max_tokens"),
    ({"content": [{"type": "text", "text": "x"}], "stop_reason": "max_tokens"}, "anthropic_messages", "max_tokens"),
    ({"candidates": [{"finish_reason": "MAX_TOKENS", "content": {"parts": [{"text": "x"}]}}]}, "gemini_generate",
     "max_tokens"),
    ({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "x"}]}}]}, "gemini_generate", "end_turn"),
])
def test_a_dump_of_the_providers_own_object_has_its_word(tmp_path, made, api, stop):
    for output in (made, json.dumps(made), json.dumps(json.dumps(made))):
        (facts,) = show(trace(generation("a", 1, "hi", output)), tmp_path).responses
        assert (named_api(facts.exchange), facts.exchange.response.text) == (api, "x")
        assert facts.judgement.stop.normalized == stop
        assert facts.exchange.response.raw_stop_reason is not None


@each_row("more", [
    {"output": {"role": "assistant", "content": "x", "finish_reason": "length"}},
    {"metadata": json.dumps({"attributes": {"gen_ai.response.finish_reasons": ["length"]}})},
    {"metadata": {"attributes": {"gen_ai.response.finish_reasons": '["length"]'}}},
    {"metadata": {"attributes": {"llm.finish_reason": "length"}}},
    {"output": {"role": "assistant", "content": "x"}, "metadata": {"finish_reason": "length", "user": "u1"}},
    {"metadata": json.dumps({"finish_reason": "length"})},
])
def test_the_word_of_an_instrumentation_is_the_recorders(tmp_path, more):
    seen = show(trace({**generation("a", 1, "hi", "x"), **more}), tmp_path)
    assert (stops(seen), rules(seen)[0]) == (["max_tokens"], "transcript.recorder")
    assert seen.responses[0].exchange.response.raw_stop_reason is None


def test_an_unknown_word_in_the_applications_own_metadata_is_no_stop_reason(tmp_path):
    seen = show(trace({**generation("a", 1, "hi", "x"), "metadata": {"finish_reason": "the customer left"}}), tmp_path)
    assert words(seen) == ["END NOT RECORDED"]


def test_without_a_word_nothing_is_known(tmp_path):
    seen = show(trace(generation("a", 1, "hi", "x", usageDetails={"output": 5, "completion_details.reasoning": 2})),
                 tmp_path)
    assert words(seen) == ["END NOT RECORDED"]
    assert seen.turns[0].run.record.user_text == "hi"
    assert seen.responses[0].exchange.response.usage == (None, 5, 2, None, None)


def test_what_two_instrumentations_tell_is_one_answer(tmp_path):
    seen = show(trace(generation("a", 1, "hi", chat("x", "stop")),
                       generation("b", 2, "hi", "x", parentObservationId="a")), tmp_path)
    assert len(seen.responses) == 1
    assert seen.inputs[0].notices[-1].endswith(
        "are left out, since they repeat an answer that another one around them tells of: 1")


def test_calls_among_the_content_and_results_without_ids(tmp_path):
    said = [{"role": "assistant", "finish_reason": "tool_calls", "content": [
        {"id": "c9", "type": "function", "function": {"name": "hello", "arguments": {"name": "Bob"}}}]}]
    later = [user("greet"), {"role": "tool", "content": said[0]["content"]}, {"role": "tool", "content": "Hello Bob"}]
    seen = show(trace(generation("a", 1, [user("greet")], said), generation("b", 2, later, "Done.")), tmp_path)
    assert seen.responses[0].verdicts[0].call.arguments == '{"name": "Bob"}'
    assert seen.responses[1].exchange.request.messages[0].results[0][:4] == ("c9", None, "Hello Bob", False)
    assert stops(seen)[0] == "tool_call"


FOUND = ("c1", "ls", '{"path": "."}')


@pytest.mark.parametrize(("made", "call", "stop"), [
    ([{"role": "assistant", "finish_reason": "tool_call", "parts": [
        {"type": "text", "content": "I look."},
        {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "."}}]}], FOUND, "tool_call"),
    ({"content": {"role": "model", "parts": [{"text": "I look."}, {"function_call": {"name": "ls", "args": {
        "path": "."}}}]}, "finish_reason": "STOP"}, (None, *FOUND[1:]), "end_turn"),
    ({"object": "response", "status": "completed", "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ls", "arguments": '{"path": "."}'}]},
     FOUND, "tool_call"),
    ({"role": "assistant", "content": "I look.", "response_metadata": {"finish_reason": "tool_calls"},
      "additional_kwargs": {"tool_calls": [{"id": "c1", "type": "function", "function": {
          "name": "ls", "arguments": '{"path": "."}'}}]}}, FOUND, "tool_call"),
    ([{"role": "assistant", "content": "I look."},
      {"toolCallId": "c1", "toolName": "ls", "input": '{"path": "."}', "finish_reason": "tool-calls"}], FOUND, None),
])
def test_the_shapes_in_which_instrumentations_dump_an_answer(tmp_path, made, call, stop):
    (facts,) = show(trace(generation("a", 1, {"prompt": "go"}, json.dumps(made))), tmp_path).responses
    response = facts.exchange.response
    assert response.text == "I look."
    assert [(each.id, each.name, each.arguments) for each in response.tool_calls] == [call]
    assert facts.exchange.request.messages[0].text == "go"
    if stop is not None:
        assert response.stop_reason.normalized == stop


@pytest.mark.parametrize(("dump", "pointer"), [
    (lambda answer: answer, "/output/choices/0/finish_reason"),
    (lambda answer: [answer], "/output/0/choices/0/finish_reason"),
    (json.dumps, "/output"),
])
def test_the_place_of_the_providers_word(tmp_path, dump, pointer):
    answer = {"choices": [{"message": {"role": "assistant", "content": "Yes."}, "finish_reason": "length"}]}
    (facts,) = show(trace(generation("a", 1, "hi", dump(answer))), tmp_path).responses
    assert facts.judgement.stop.normalized == "max_tokens"
    assert facts.evidence[0].at.pointer == pointer


@pytest.mark.parametrize("result", [
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "a.md"}]},
    {"role": "user", "parts": [{"function_response": {"name": "ls", "response": "a.md"}}]},
    {"type": "function_call_output", "call_id": "c1", "output": "a.md"},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.md"}]},
])
def test_the_shapes_in_which_instrumentations_dump_a_result(tmp_path, result):
    asks = [user("list")]
    call = [{"role": "assistant", "tool_calls": [CALL]}]
    seen = show(trace(generation("a", 1, asks, call), generation("b", 2, [*asks, *call, result], "Done.")), tmp_path)
    (part,) = seen.responses[1].exchange.request.messages[0].results
    assert (part.call_id, part.text) == ("c1", "a.md")


def test_an_answer_whose_content_was_not_exported_is_not_empty(tmp_path):
    seen = show(trace(generation("a", 1, "hi", None, metadata={"attributes": {
        "gen_ai.response.finish_reasons": ["stop"]}})), tmp_path)
    assert words(seen) == ["END NOT RECORDED"]


def test_an_empty_answer_is_told_by_its_mapped_word_where_only_a_recorders_was_kept(tmp_path):
    empty = {"role": "assistant", "content": "", "finish_reason": "stop"}
    seen = show(trace(generation("a", 1, "hi", empty)), tmp_path)
    assert words(seen) == ["EMPTY ANSWER"]
    assert "nothing visible and no call came before 'end_turn'" in [noted.finding.message for noted in seen.findings]


def test_a_failure(tmp_path):
    seen = show(trace(generation("a", 1, "hi", None, level="ERROR", statusMessage="Rate limit reached")), tmp_path)
    assert words(seen) == ["ERROR"]


@pytest.mark.parametrize("name", ["max_tokens", "maxTokens", "max_completion_tokens", "max_output_tokens",
                                  "maxOutputTokens"])
def test_each_name_of_a_cap(tmp_path, name):
    (facts,) = show(trace(generation("a", 1, "hi", "x", modelParameters={name: 64})), tmp_path).responses
    assert facts.exchange.request.max_tokens == 64


def test_lists_lines_and_pages_of_observations_are_read_too(tmp_path):
    one = generation("a", 1, "hi", chat("x", "stop"))
    for content in (json.dumps([one]), json.dumps(one) + "\n" + json.dumps({**one, "id": "b"}) + "\n",
                    json.dumps({"id": "t", "projectId": "p", "observations": [one]}, indent=2),
                    json.dumps({"trace": {"projectId": "p", "observations": [one]}})):
        assert choose(content.encode(), "x") == "langfuse"
        assert show(content, tmp_path).responses[0].exchange.response.text == "x"


def agent_span(began, key, given, made=None, **more):
    return {"id": key, "traceId": "t", "type": "SPAN", "name": "agent", "startTime": f"2026-01-01T00:00:0{began}Z",
            "input": given, "output": made, **more}


def tool_run(began, given, made, **more):
    return agent_span(began, f"tool{began}", given, made, **{"type": "TOOL", "name": "write", **more})


WRITE = {**CALL, "function": {"name": "write", "arguments": '{"path": "a.md"}'}}


def with_call(**more):
    return {"role": "assistant", "content": "", "tool_calls": [WRITE], **more}


@pytest.mark.parametrize(("number", "stop"), [(1, "end_turn"), (2, "max_tokens")])
def test_a_word_as_a_number_of_geminis(tmp_path, number, stop):
    made = json.dumps({"candidates": [{"finish_reason": number, "content": {"parts": [{"text": "x"}]}}]})
    (facts,) = show(trace(generation("a", 1, "hi", made)), tmp_path).responses
    assert (facts.exchange.response.raw_stop_reason, facts.judgement.stop.normalized) == (str(number), stop)


def test_an_input_of_the_new_messages_alone_keeps_its_results(tmp_path):
    later = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "ok"}]}]
    seen = show(trace(generation("a", 1, [user("write it")], with_call()),
                       generation("b", 2, later, "Done.")), tmp_path)
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "ok"
    assert places(seen) == [["request", "tool_result"]]


def test_a_history_that_is_sent_again_brings_no_second_turn(tmp_path):
    asks, changed = [user("write it at 10:00")], [user("write it at 10:01")]
    later = [*changed, with_call(), {"role": "tool", "tool_call_id": "c1", "content": "ok"}]
    seen = show(trace(generation("a", 1, asks, None, level="ERROR", statusMessage="overloaded"),
                       generation("b", 2, asks, with_call()), generation("c", 3, later, "Done.")), tmp_path)
    assert len(seen.turns) == 1


def test_langchains_handler_calls_a_result_by_the_name_of_its_tool(tmp_path):
    asks = [user("write it")]
    seen = show(trace(generation("a", 1, asks, with_call()),
                       generation("b", 2, [*asks, with_call(), {"role": "write", "content": "ok"}], "Done.")), tmp_path)
    assert seen.responses[1].exchange.request.messages[0].results[0][:3] == ("c1", "write", "ok")


@pytest.mark.parametrize("wrap", [
    lambda message: {"messages": [message]},
    lambda message: json.dumps({"messages": [{"lc": 1, "type": "constructor", "kwargs": message}]}),
])
def test_the_word_of_langchain_is_in_the_span_around_the_generation(tmp_path, wrap):
    message = with_call(response_metadata={"finish_reason": "length"})
    seen = show(trace(agent_span(1, "s", None, wrap(message)),
                      generation("a", 2, [user("go")], with_call(), parentObservationId="s"),
                      generation("b", 3, [user("go")], {"role": "assistant", "content": "Other."})), tmp_path)
    assert stops(seen) == ["max_tokens", "unknown"]
    exchange = seen.responses[0].exchange
    at = seen.responses[0].judgement.stop.evidence[0].at
    assert b'"response_metadata' in exchange.body[at.start:at.end].replace(b"\\", b"")
    assert at.pointer == "/output"


@pytest.mark.parametrize("run", [
    {}, {"name": "running tool: write"}, {"name": "execute_tool write"},
    {"name": "x", "input": None, "metadata": {"attributes": {"gen_ai.tool.call.id": "c1"}}},
])
def test_a_result_that_only_the_observation_of_the_tool_has(tmp_path, run):
    seen = show(trace(generation("a", 1, [user("write it")], with_call()),
                       tool_run(2, {"input": {"path": "b.md"}}, "another"),
                       tool_run(3, {"path": "a.md"}, {"content": [{"type": "text", "text": "ok"}]}, **run),
                       generation("b", 4, {"content": "role"}, "Done.")), tmp_path)
    assert seen.responses[1].exchange.request.messages[0].results[0][:3] == ("c1", None, "ok")
    assert stops(seen) == ["tool_call", "unknown"]
    assert len(seen.turns) == 1


def test_a_tool_that_ran_after_the_last_answer_answers_its_call(tmp_path):
    seen = show(trace(generation("a", 1, {"role": "user", "content": "write it"}, with_call()),
                       tool_run(2, {"path": "a.md"}, "no such folder", level="ERROR")), tmp_path)
    assert seen.turns[0].run.record.user_text == "write it"
    assert stops(seen) == ["tool_call"]


@each_row("name", ["messages", "contents", "prompt", "input"])
def test_each_member_with_the_messages_of_an_input(tmp_path, name):
    seen = show(trace(generation("a", 1, {name: [user("write it")], "temperature": 0}, "Done.")), tmp_path)
    assert seen.turns[0].run.record.user_text == "write it"


def test_traces_of_one_file_are_conversations_of_their_own(tmp_path):
    def in_trace(name, key, began, given, made, **more):
        return generation(f"{name}{key}", began, given, made, traceId=name, **more)

    asked = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    ran = {"id": "r", "traceId": "two", "type": "TOOL", "startTime": "2026-01-01T00:00:03Z", "name": "ls",
           "input": {}, "output": "b.py"}
    seen = show("\n".join(map(json.dumps, [
        in_trace("one", 1, 1, [user("go")], chat(None, "tool_calls", asked)),
        in_trace("two", 1, 2, [user("go"), user("do")], chat(None, "tool_calls", asked)), ran,
        in_trace("one", 2, 4, [user("go"), {"role": "tool", "tool_call_id": "c1", "content": "a.py"}],
                 chat("A.", "stop")),
    ])), tmp_path)
    first, second, third = (facts.exchange for facts in seen.responses)
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "do"]
    assert [part.text for part in third.request.messages[0].results] == ["a.py"]
    assert [answer.result.text for answer in seen.inputs[0].answers] == ["b.py"]
    assert [each.session for each in (first, second, third)] == ["trace one", "trace two", "trace one"]


def test_an_error_beside_a_word_is_told(tmp_path):
    seen = show(trace(generation("a", 1, "hi", chat("Half", "stop"), level="ERROR", statusMessage="it broke")),
                 tmp_path)
    assert stops(seen) == ["end_turn"]
    assert any("marked as an error: it broke" in found.finding.message for found in seen.findings)


@each_row("cached", ["input_cached_tokens", "cache_read_input_tokens", "input_cache_read",
                                    "input_cached"])
@each_row("thought", ["completion_details.reasoning", "output_reasoning_tokens", "output_reasoning"])
@each_row("written", ["cache_creation_input_tokens", "input_cache_creation"])
@each_row(("total", "counts"), [(15, (9, 6, 2, 1)), (9, (5, 4, 2, 1)), (None, (5, 4, 2, 1))])
def test_a_total_says_which_counts_are_parts_of_others(tmp_path, cached, thought, written, total, counts):
    used = {"input": 5, "output": 4, cached: 1, written: 3, thought: 2, "total": total}
    seen = show(trace(generation("a", 1, "hi", chat("x", "stop"), usageDetails=used)), tmp_path)
    assert seen.responses[0].exchange.response.usage == (*counts, 3)


def test_a_page_of_the_api_is_read(tmp_path):
    """`GET /api/public/observations`: the observations are in `data`."""
    page = json.dumps({"data": [generation("a", 1, [user("go")], chat("Hi.", "length"))], "meta": {"page": 1}})
    assert stops(show(page, tmp_path)) == ["max_tokens"]


def test_version_2_of_the_api_has_texts_and_another_name_of_the_model(tmp_path):
    made = {"id": "a", "traceId": "t", "projectId": "p", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z",
            "input": json.dumps([user("go")]), "output": json.dumps(chat("Hi.", "length")),
            "providedModelName": "gpt-5-x", "modelParameters": {"max_tokens": 7}}
    seen = show(json.dumps({"data": [made], "meta": {"cursor": "c"}}), tmp_path)
    exchange = seen.responses[0].exchange
    assert (stops(seen), exchange.request.max_tokens) == (["max_tokens"], 7)
    assert exchange.response.model == "gpt-5-x" or exchange.request.model == "gpt-5-x"


def test_an_export_to_a_blob_storage_has_the_names_of_columns(tmp_path):
    def row(key, began, **more):
        return {"id": key, "trace_id": "t", "project_id": "p", "type": "GENERATION",
                "start_time": f"2026-01-01 00:00:0{began}.000000", "provided_model_name": "gpt-5-x",
                "model_parameters": '{"max_tokens": 7}', "input": json.dumps([user("go")]), "level": "DEFAULT",
                "usage_details": {"input": 9, "output": 7}, "output": "null", **more}

    rows = [row("b", 2, output=None, level="ERROR", status_message="429 slow down"),
            row("a", 1, output=json.dumps(chat("Hi.", "length"))),
            row("c", 1, parent_observation_id="a", output=json.dumps(chat("Hi.", "length")))]
    seen = show("".join(json.dumps(each) + "\n" for each in rows), tmp_path)
    first, second = (facts.exchange for facts in seen.responses)
    assert stops(seen) == ["max_tokens", "error"]
    assert (first.request.max_tokens, first.response.usage[:2], first.request.model) == (7, (9, 7), "gpt-5-x")
    assert "429 slow down" in (second.response.error.message if second.response.error else "")


def test_the_rows_of_a_blob_storage_are_parted_by_their_traces(tmp_path):
    rows = [{"id": key, "trace_id": key, "type": "GENERATION", "start_time": "2026-01-01 00:00:01", "output": "Hi.",
             "input": json.dumps([user(key)])} for key in ("a", "b")]
    seen = show("".join(json.dumps(each) + "\n" for each in rows), tmp_path)
    assert [facts.exchange.entry for facts in seen.responses] == [0, 1]
    assert [turn.run.record.user_text for turn in seen.turns] == ["a", "b"]
    assert [facts.exchange.session for facts in seen.responses] == ["trace a", "trace b"]


@each_row("kind", ["RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"])
def test_a_list_may_begin_with_any_kind_of_observation(kind, tmp_path):
    first = {"id": "r", "traceId": "t", "type": kind, "startTime": "2026-01-01T00:00:00Z"}
    listed = [first, first | {"id": "q"}, generation("a", 1, [user("go")], chat("Hi.", "length"))]
    assert stops(show(json.dumps(listed), tmp_path)) == ["max_tokens"]


def test_a_clean_word_does_not_hide_the_word_of_a_cut(tmp_path):
    call = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"a": 1}}],
            "finish_reason": "tool_call"}
    cut = {"role": "assistant", "parts": [{"type": "text", "content": "Loo"}], "finish_reason": "length"}
    assert stops(show(trace(generation("a", 1, [user("go")], [call, cut])), tmp_path)) == ["max_tokens"]
    said = {"role": "assistant", "content": "Hi", "finish_reason": "stop"}
    about = {"attributes": {"gen_ai.response.finish_reasons": '["length"]'}}
    assert stops(show(trace(generation("a", 1, [user("go")], said, metadata=about)), tmp_path)) == ["max_tokens"]


@pytest.mark.parametrize("beside", [[], [{"id": "x", "traceId": "t", "type": "SPAN"}]])
def test_an_answer_follows_the_one_whose_input_its_own_repeats(tmp_path, beside):
    """Two agents work at the same time in one trace."""
    made = []
    for agent in (0, 1):
        call = {"id": f"c{agent}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        asks = [{"role": "system", "content": "Be brief."}, user(f"task {agent}")]
        later = [*asks, {"role": "assistant", "tool_calls": [call]},
                 {"role": "tool", "tool_call_id": f"c{agent}", "content": "a.py"}]
        last = [*later, {"role": "assistant", "content": f"The half of {agent}"}, user("Continue.")]
        made += [generation(f"a{agent}", 1 + agent, asks, chat(None, "tool_calls", call)),
                 generation(f"b{agent}", 3 + agent, later, chat(f"The half of {agent}", "length")),
                 generation(f"c{agent}", 5 + agent, last, chat("and its rest.", "stop"))]
    seen = show(trace(*made, *beside), tmp_path)
    assert words(seen) == ["CUT, COMPLETED"] * 2
    assert places(seen) == [["request", "tool_result", "continuation"]] * 2
    assert "calls that have no result" not in "".join(seen.inputs[0].notices)


def test_a_request_that_is_sent_again_for_a_cut_call_stays_in_its_conversation(tmp_path):
    asks = [user("go")]
    seen = show(trace(generation("a", 1, asks, chat(None, "length", CALL)),
                       generation("b", 2, asks, chat("Done.", "stop"))),
                 tmp_path)
    assert len({turn.conversation for turn in seen.turns}) == 1


def test_a_request_that_is_sent_again_follows_its_first_attempt_among_several_agents(tmp_path):
    """The second agent asks between the two attempts of the first."""
    calls = [{**CALL, "id": f"c{agent}"} for agent in (0, 1)]
    later = [[user(f"task {agent}"), {"role": "assistant", "tool_calls": [call]},
              {"role": "tool", "tool_call_id": call["id"], "content": "ok"}] for agent, call in enumerate(calls)]
    seen = show(trace(*(generation(f"a{agent}", 1 + agent, later[agent][:1], chat(None, "tool_calls", call))
                         for agent, call in enumerate(calls)),
                       generation("b", 3, later[0], chat("The half", "length")),
                       generation("c", 4, later[1], chat("Done.", "stop")),
                       generation("d", 5, later[0], chat("The whole.", "stop"))), tmp_path)
    first, other, again = (next(turn for turn in seen.turns if at in turn.responses) for at in (2, 3, 4))
    assert first.conversation == again.conversation != other.conversation
