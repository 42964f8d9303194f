"""Spans of Mastra: words, caps, arguments as received, failures, approvals; and its database beside a running agent."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from inspector.sessions.importers.database import jsonb_text
from inspector.sessions.importers.recognition import choose
from inspector.sessions.reasons import named_api
from loop_core.values import ReasoningPart, TextPart, ToolCall, Usage
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.mastra_rows import (
    CUT,
    Trace,
    bare,
    call,
    database,
    element,
    jsonb,
    message,
    refused,
)
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, rules, show, stops, view_file, words


def read(tmp_path: Any, trace: Trace) -> Any:
    return show(trace.file(), tmp_path, name="trace.json")


def response(seen: Any, index: int = 0) -> Any:
    return seen.responses[index].exchange.response


def request(seen: Any, index: int = 0) -> Any:
    return seen.responses[index].exchange.request


def admission(seen: Any, index: int = 0) -> str:
    return seen.responses[index].verdicts[0].admission.value


def findings(seen: Any, index: int = 0) -> dict[str, str]:
    return {each.rule: each.message for each in response(seen, index).findings}


def answered(word: str | None, said: str | None = "Hi.", *calls: Any, **members: Any) -> Trace:
    trace = Trace()
    trace.step(trace.run(), word, said, *calls, **members)
    return trace


def test_its_files_are_recognised(tmp_path):
    trace = answered("stop")
    for made in (database(tmp_path, trace.spans), (tmp_path / "mastra.db")):
        assert choose(made.read_bytes(), str(made)) == "mastra"
    (tmp_path / "mastra.db").unlink()
    alone = database(tmp_path, rows=(message(),))
    assert choose(alone.read_bytes(), str(alone)) == "mastra"
    assert choose(trace.file().encode(), "x.json") == "mastra"


def without(path: Any, table: str, column: str) -> Any:
    """The database without a column of one of its tables, and without the other one."""
    with closing(sqlite3.connect(path)) as made, made:
        for name in {"mastra_messages", "mastra_ai_spans"} - {table}:
            made.execute(f"DROP TABLE {name}")
        made.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
    return path


@each_row("lacking", [
    "traceId", "spanId", "parentSpanId", "startedAt", "endedAt", "spanType", "name", "metadata", "attributes", "input",
    "output", "error"])
def test_another_table_of_spans_is_not_that_of_mastra(tmp_path, lacking):
    path = without(database(tmp_path, answered("stop").spans), "mastra_ai_spans", lacking)
    assert choose(path.read_bytes(), str(path)) != "mastra"


@each_row("lacking", ["id", "thread_id", "role", "createdAt", "content"])
def test_another_table_of_messages_is_not_that_of_mastra(tmp_path, lacking):
    path = without(database(tmp_path, [], (message(),)), "mastra_messages", lacking)
    assert choose(path.read_bytes(), str(path)) != "mastra"


def test_other_objects_with_spans_or_messages_are_not_those_of_mastra():
    for other in ({"spans": [{"spanId": "s"}]}, {"messages": [{"content": {"format": 1}}]}):
        assert choose(json.dumps({**other, "format": "spanType"}).encode(), "x.json") != "mastra"


def test_a_record_of_another_type_than_expected_is_reported(tmp_path):
    row = {**message(), "content": {"format": 2, "parts": "Hi."}}
    seen = show(json.dumps({"messages": [message(), row]}), tmp_path, name="thread.json")
    assert "record 2: parts is text, but a list was expected" in " ".join(map(str, seen.inputs[0].notices))


@pytest.mark.parametrize("kind", ["tool_call", "mcp_tool_call"])
def test_the_spans_of_tools_that_mastra_ran_have_results(tmp_path, kind):
    trace = Trace()
    generation = trace.run()
    trace.tool(trace.step(generation, "tool-calls", "", call()), "written", spanType=kind)
    trace.step(generation)
    assert request(read(tmp_path, trace), 1).messages[0].results[0].text == "written"


@each_row(("word", "stop", "verdict"), [
    ("stop", "end_turn", "COMPLETE"), ("length", "max_tokens", "TRUNCATED"),
    ("content-filter", "safety_blocked", "BLOCKED"), ("interrupted", "interrupted", "INTERRUPTED"),
    ("other", "unknown", "UNKNOWN REASON"), ("tripwire", "unknown", "UNKNOWN REASON")])
def test_the_word_is_the_recorders(tmp_path, word, stop, verdict):
    seen = read(tmp_path, answered(word))
    assert (stops(seen), words(seen)) == ([stop], [verdict])
    assert rules(seen)[0] == "transcript.recorder"
    assert response(seen).stop_reason.raw is None
    at = seen.responses[0].evidence[0].at
    assert seen.responses[0].exchange.body[at.start : at.end] == json.dumps(word).encode()


def test_cap_counts_and_model_are_those_of_the_request(tmp_path):
    seen = read(tmp_path, answered("length"))
    assert response(seen).usage == Usage(14, 22, 5, 3, 4)
    assert (request(seen).max_tokens, response(seen).model) == (400, "m-1")
    assert request(seen).messages[0].text == "go"


def test_without_the_span_of_the_request_the_generation_has_the_cap(tmp_path):
    trace = answered("length")
    trace.spans = [span for span in trace.spans if span["spanType"] != "model_inference"]
    seen = read(tmp_path, trace)
    assert (request(seen).max_tokens, response(seen).model, seen.responses[0].exchange.api) == (400, "m", "openai_chat")


def test_a_generation_without_steps_is_an_answer(tmp_path):
    trace = Trace()
    run = trace.span("agent_run", input="go")
    trace.generation(run, output={"text": "Hi."})["attributes"]["finishReason"] = "length"
    seen = read(tmp_path, trace)
    assert (stops(seen), response(seen).text) == (["max_tokens"], "Hi.")


@each_row(("word", "verdict"), [
    ("stop", "COMPLETE"), ("tool-calls", "END NOT RECORDED"), ("length", "TRUNCATED")])
def test_of_one_span_around_all_requests_of_a_run_the_last_end_is_known(tmp_path, word, verdict):
    trace = Trace()
    run = trace.span("agent_run", input="go")
    said = {} if word == "tool-calls" else {"text": "Hi."}
    trace.span("llm_generation", run, attributes={"model": "m", "finishReason": word}, output=said)
    trace.tool(run, key=None)
    seen = read(tmp_path, trace)
    assert (words(seen), response(seen).text or "") == ([verdict], said.get("text", ""))
    assert "several requests" in findings(seen)["transcript.merged"]


def test_the_types_of_spans_before_0_23_are_read(tmp_path):
    trace = Trace()
    generation = trace.run()
    trace.tool(trace.step(generation, "length", "", call(CUT, {})))
    trace.step(generation)
    for span in trace.spans:
        span["spanType"] = span["spanType"].replace("model_", "llm_")
    for seen in (read(tmp_path, trace), view_file(database(tmp_path, trace.spans))):
        held = seen.responses[0].verdicts[0]
        assert stops(seen) == ["max_tokens", "end_turn"]
        assert (held.admission.value, held.call.arguments) == ("held", CUT)


@each_row(("provider", "api"), [
    ("anthropic.messages", "anthropic_messages"), ("vertex.anthropic.messages", "anthropic_messages"),
    ("google.generative-ai", "gemini_generate"), ("google.vertex.chat", "gemini_generate"),
    ("amazon-bedrock", "bedrock_converse"), ("cohere.chat", "cohere_chat"), ("openai.responses", "openai_responses"),
    ("groq.chat", "openai_chat"), ("another", None)])
def test_the_provider_names_the_wire_format(tmp_path, provider, api):
    trace = answered("stop")
    trace.spans[-1]["attributes"]["provider"] = provider
    assert named_api(read(tmp_path, trace).responses[0].exchange) == api


def test_a_cut_call_that_mastra_ran_with_other_arguments_is_shown_as_it_came(tmp_path):
    trace = Trace()
    trace.tool(trace.step(trace.run(), "length", "", call(CUT, {})))
    seen = read(tmp_path, trace)
    assert (words(seen), response(seen).tool_calls[0].arguments) == (["CUT CALL RUN"], CUT)


def test_a_cut_call_under_a_word_for_calls_is_held(tmp_path):
    trace = Trace()
    generation = trace.run()
    trace.tool(trace.step(generation, "tool-calls", "", call(CUT, {})), refused())
    trace.step(generation)
    seen = read(tmp_path, trace)
    assert stops(seen)[0] == "max_tokens"
    assert admission(seen) == "held"
    assert "the agent refused its arguments" in str(seen.responses[0].exchange.refusals)


def test_rounds_of_tools_are_one_turn(tmp_path):
    trace = Trace()
    generation = trace.run()
    trace.tool(trace.step(generation, "tool-calls", "Look.", call()))
    trace.step(generation)
    seen = read(tmp_path, trace)
    assert (words(seen), places(seen)) == (["COMPLETE"], [["request", "tool_result"]])
    assert request(seen, 1).messages[0].results[0].text == "contents"
    assert admission(seen) == "ready"


def test_a_call_whose_stream_ended_within_it_is_held(tmp_path):
    trace = Trace()
    step = trace.step(trace.run(), "error", "", error=None)
    trace.piece(trace.spans[-1], "tool-call", toolCallId="c1", toolName="write_file", toolInput=CUT)
    assert step["output"]["toolCalls"] == []
    (found,) = response(read(tmp_path, trace)).tool_calls
    assert (found.arguments, found.closed) == (CUT, False)


@pytest.mark.parametrize("place", ["run", "generation", "piece"])
def test_the_error_of_a_failed_request_is_where_mastra_writes_it(tmp_path, place):
    trace = Trace()
    generation = trace.run()
    trace.step(generation, "error", "So f")
    error = {"message": "Too many requests.", "name": "AI_APICallError"}
    if place == "piece":
        trace.piece(trace.spans[-1], "error", error=error)
    else:
        trace.spans[0 if place == "run" else 1]["error"] = error
    seen = read(tmp_path, trace)
    assert (words(seen), response(seen).error.message) == (["ERROR"], "Too many requests.")
    assert (response(seen).stop_reason.detail, response(seen).text) == ("retryable", "So f")


@pytest.mark.parametrize(("raw", "stop"), [("MALFORMED_FUNCTION_CALL", "malformed_tool_call"), ("NEW_WORD", "error")])
def test_the_providers_word_beside_an_error_counts_if_it_is_known(tmp_path, raw, stop):
    trace = answered("error")
    trace.spans[0]["error"] = {"message": "it failed", "details": {"rawFinishReason": raw}}
    seen = read(tmp_path, trace)
    assert stops(seen) == [stop]
    assert response(seen).stop_reason.raw == (raw if stop != "error" else None)


def test_an_aborted_run_is_cancelled_and_its_text_is_that_of_the_generation(tmp_path):
    trace = Trace()
    generation = trace.run(output={"status": "aborted"})
    generation["output"] = {"text": "Rivers carry wa"}
    trace.step(generation, None, None)
    seen = read(tmp_path, trace)
    assert (words(seen), response(seen).text) == (["CANCELLED"], "Rivers carry wa")
    assert rules(seen) == ["transcript.recorder", "mastra.run_status"]


def test_a_step_without_a_word_has_an_unknown_end_also_if_the_user_went_on(tmp_path):
    trace = Trace()
    trace.step(trace.run(), None, None)
    trace.piece(trace.spans[-1], "text", text="So far")
    later = Trace("t2", second=200)
    later.step(later.run("more"))
    seen = view_file(database(tmp_path, [*trace.spans, *later.spans]))
    assert (words(seen), response(seen).text) == (["END NOT RECORDED", "COMPLETE"], "So far")


def test_an_answer_whose_output_was_not_exported_is_not_called_empty(tmp_path):
    assert words(read(tmp_path, answered("stop", None))) == ["END NOT RECORDED"]
    assert words(read(tmp_path, answered("stop", ""))) == ["EMPTY ANSWER"]


def test_reasoning_is_read_from_its_piece(tmp_path):
    trace = answered("stop")
    trace.piece(trace.spans[-1], "reasoning", text="hm")
    assert response(read(tmp_path, trace)).parts[0] == ReasoningPart("hm")


@each_row("raw", [
    '{"path": "' + "a" * 50 + "…[truncated]", {"a": {"b": "[MaxDepth]"}}, {"a": [1, "[…4 more items]"]},
    {"__truncated": "3 more keys omitted"}])
def test_a_call_that_mastra_shortened_is_held_and_not_called_cut(tmp_path, raw):
    seen = read(tmp_path, answered("tool-calls", "", call(raw, raw)))
    assert words(seen) == ["END NOT RECORDED"]
    assert admission(seen) == "held"
    assert "transcript.shortened" in findings(seen)


def test_a_shortened_text_is_reported(tmp_path):
    seen = read(tmp_path, answered("stop", "A long text…[truncated]"))
    assert "transcript.shortened" in findings(seen)
    assert "transcript.shortened" not in findings(read(tmp_path, answered("stop")))


def test_empty_arguments_without_a_piece_of_the_stream_are_reported(tmp_path):
    assert "transcript.empty_arguments" in findings(read(tmp_path, answered("tool-calls", "", bare({}))))
    assert "transcript.empty_arguments" not in findings(read(tmp_path, answered("tool-calls", "", call({}, {}))))


def test_results_are_those_of_spans_or_in_older_releases_of_pieces(tmp_path):
    trace = Trace()
    generation = trace.run()
    step = trace.step(generation, "tool-calls", "", call(key="c1"), call(key="c2"))
    trace.tool(step, "first", None)
    trace.piece(trace.spans[3], "tool-result", toolCallId="c1", toolName="write_file", result="first")
    trace.piece(trace.spans[3], "tool-error", toolCallId="c2", toolName="write_file", error={"message": "no"})
    trace.step(generation)
    (results,) = [each.results for each in request(read(tmp_path, trace), 1).messages]
    assert [(part.call_id, part.text, part.is_error) for part in results] == [
        ("c1", "first", False), ("c2", '{"message": "no"}', True)]


def test_a_tool_that_failed_or_has_not_ended(tmp_path):
    trace = Trace()
    generation = trace.run()
    step = trace.step(generation, "tool-calls", "", call(key="c1"), call(key="c2"))
    trace.tool(step, None, "c1", error={"message": "the pager is down"})
    trace.tool(step, None, "c2", end=False)
    trace.step(generation)
    (result,) = request(read(tmp_path, trace), 1).messages[0].results
    assert (result.call_id, result.text, result.is_error) == ("c1", "the pager is down", True)


def test_a_run_within_a_tool_and_a_second_generation_are_sessions_below(tmp_path):
    trace = Trace()
    generation = trace.run("lead")
    tool = trace.tool(trace.step(generation, "tool-calls", "", call()))
    trace.step(trace.run("sub", tool), "length")
    trace.step(generation)
    trace.step(trace.generation(trace.spans[0], input={"messages": [
        {"role": "system", "content": "a title"}, {"role": "user", "content": [{"type": "text", "text": "name it"}]}]}),
        "stop", "A title")
    seen = view_file(database(tmp_path, trace.spans, titles={"th": "Rivers"}))
    assert words(seen) == ["COMPLETE", "TRUNCATED", "COMPLETE"]
    assert [each.exchange.session for each in seen.responses] == [
        "Rivers", "Rivers › agent run: 'a'", "Rivers", "Rivers › llm: 'm'"]
    assert [request(seen, at).messages[0].text for at in (0, 1, 3)] == ["lead", "sub", "name it"]


def test_a_thread_without_a_title_is_named_by_its_id(tmp_path):
    seen = view_file(database(tmp_path, answered("stop").spans, titles={"th": "New Thread 2026-11-29T16:00:00Z"}))
    assert seen.inputs[0].about.title == "th"


@each_row("asked", [
    "go", ["no", "go"], [{"role": "user", "content": "no"}, {"role": "user", "content": "go"},
                         {"role": "assistant", "content": "no"}],
    [{"role": "user", "content": {"parts": [{"type": "text", "text": "go"}]}}],
    [{"role": "user", "parts": [{"type": "text", "text": "go"}]}]])
def test_the_last_message_of_the_user_is_the_prompt(tmp_path, asked):
    trace = Trace()
    trace.step(trace.run(asked))
    assert request(read(tmp_path, trace)).messages[0].text == "go"


def suspended(approved: bool) -> tuple[Trace, Any]:
    """A run that waited for an approval of its call; and the generation of the run that was resumed."""
    trace = Trace()
    generation = trace.run(output={"status": "suspended"})
    trace.step(generation, None, None)
    trace.piece(trace.spans[-1], "tool-call", toolCallId="c1", toolName="write_file", toolInput={"path": "a.txt"})
    return trace, trace.run({"approved": approved, "toolName": "write_file", "toolCallId": "c1"}, generation)


def test_a_call_that_waits_for_an_approval_has_an_unknown_end(tmp_path):
    trace, _ = suspended(True)
    trace.spans = trace.spans[:-2]
    seen = read(tmp_path, trace)
    assert (words(seen), admission(seen)) == (["END NOT RECORDED"], "held")


def test_an_approved_call_is_shown_once_with_its_result(tmp_path):
    trace, generation = suspended(True)
    trace.tool(generation, "written")
    trace.step(generation, "tool-calls", "", bare({"path": "a.txt"}))
    trace.step(generation)
    seen = read(tmp_path, trace)
    assert (words(seen), len(seen.responses)) == (["COMPLETE"], 2)
    assert request(seen, 1).messages[0].results[0].text == "written"


def test_a_declined_call_is_rejected_by_the_user(tmp_path):
    trace, generation = suspended(False)
    trace.step(generation)
    seen = read(tmp_path, trace)
    assert len(seen.responses) == 2
    assert seen.responses[0].exchange.refusals == {"c1": "the user refused it: it did not run"}


# -- The database ------------------------------------------------------------------------------------------------------


def test_a_column_in_the_binary_form_has_the_same_values(tmp_path):
    trace = Trace()
    generation = trace.run("say “é” and \"x\"")
    trace.tool(trace.step(generation, "tool-calls", "A\nB" * 100, call(CUT, {"a": [1, 2.5, None, True, False]})))
    seen = view_file(database(tmp_path, trace.spans, binary=True))
    (tmp_path / "mastra.db").unlink()
    plain = view_file(database(tmp_path, trace.spans))
    assert [[each._replace(at=None) if isinstance(each, ToolCall) else each for each in response(made).parts]
            for made in (seen, plain)] == [[TextPart("A\nB" * 100), ToolCall("c1", "write_file", CUT, True)]] * 2
    assert (words(seen), request(seen).messages[0].text) == (["CUT CALL RUN"], "say “é” and \"x\"")


@each_row(("data", "text"), [
    (element(0, b""), "null"), (element(1, b""), "true"), (element(2, b""), "false"), (element(3, b"-12"), "-12"),
    (element(5, b"1e5"), "1e5"), (element(7, b"ab"), '"ab"'), (element(8, b"a\\nb"), '"a\\nb"'),
    (element(10, b'a"b'), '"a\\"b"'), (element(11, element(3, b"1") * 2), "[1,1]"), (element(12, b""), "{}"),
    (jsonb({"a": "x" * 300, "b": ["y" * 70_000]}), json.dumps({"a": "x" * 300, "b": ["y" * 70_000]}).replace(" ", ""))])
def test_each_type_of_element_of_the_binary_form(data, text):
    assert jsonb_text(data) == text.encode()


def nested(levels: int) -> bytes:
    data = element(3, b"1")
    for _ in range(levels):
        data = element(11, data)
    return data


@each_row("data", [
    b"", element(3, b"1") * 2, element(7, b"abc")[:-1], element(4, b"0x1"), element(6, b".5"), element(9, b"\\x41"),
    element(13, b""), element(12, element(7, b"a")), nested(101)])
def test_a_damaged_element_is_refused(data):
    with pytest.raises(ValueError, match="JSONB"):
        jsonb_text(data)


def test_a_damaged_column_costs_its_own_facts(tmp_path):
    path = database(tmp_path, answered("stop").spans)
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("UPDATE mastra_ai_spans SET attributes = x'ff' WHERE spanType = 'model_step'")
    seen = view_file(path)
    assert (words(seen), response(seen).text) == (["END NOT RECORDED"], "Hi.")


def test_a_database_is_read_beside_a_running_agent(tmp_path):
    path = database(tmp_path, answered("stop").spans)
    names = ("traceId", "spanId", "parentSpanId", "startedAt", "endedAt", "spanType", "metadata", "attributes")
    with closing(sqlite3.connect(path)) as agent:
        agent.execute("PRAGMA journal_mode = WAL")
        later = Trace("t2", second=200)
        later.step(later.run("more"), "length")
        for span in later.spans:
            held = [span.get(name) for name in names]
            marks = ", ".join("?" * len(names))
            agent.execute(f"INSERT INTO mastra_ai_spans ({', '.join(names)}) VALUES ({marks})", [
                json.dumps(value) if isinstance(value, dict) else value for value in held])
        agent.commit()
        before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
        assert words(view_file(path)) == ["COMPLETE", "TRUNCATED"]
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_spans_that_name_each_other_as_parents_end(tmp_path):
    trace = answered("stop")
    trace.spans[0]["parentSpanId"], trace.spans[1]["parentSpanId"] = trace.spans[1]["spanId"], trace.spans[0]["spanId"]
    assert read(tmp_path, trace).responses == ()


def test_a_span_with_the_id_of_one_around_it_ends(tmp_path):
    trace = answered("stop")
    trace.spans.append({**trace.spans[0], "parentSpanId": trace.spans[1]["spanId"]})
    assert [each.exchange.response.text for each in read(tmp_path, trace).responses] == ["Hi."]


def test_many_answers_take_linear_time(tmp_path):
    def written(count):
        trace = Trace()
        generation = trace.run()
        for at in range(count):
            trace.tool(trace.step(generation, "tool-calls", "", call(key=f"c{at}")), key=f"c{at}")
        trace.step(generation)
        (tmp_path / "mastra.db").unlink(missing_ok=True)
        return database(tmp_path, trace.spans), count + 1

    def read(file):
        assert len(view_file(file[0]).responses) == file[1]

    assert growth(read, written, 250) < IN_PROPORTION
