"""OpenTelemetry traces: every age of the GenAI names, OpenInference, JSON, lines and protobuf, groups and damage."""

from __future__ import annotations

import builtins
import itertools
import json
from typing import Any

import pytest

from inspector.export import form_files
from inspector.sessions import open_paths
from inspector.sessions.importers import otlp, otlp_files
from inspector.sessions.importers.span_names import FACTS, inputs_of, outputs_of
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, rules, show, stops, words
from tests.sessions.test_span_rows import of_api, of_frame

Row = dict[str, Any]
CALL: Row = {"type": "tool_call", "id": "call_a1b2c3d4", "name": "ls", "arguments": {"path": "."}}


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def value(held: Any) -> Row:
    if isinstance(held, list):
        return {"arrayValue": {"values": [value(each) for each in held]}}
    if isinstance(held, dict):
        return {"kvlistValue": {"values": pairs(held)}}
    return {"intValue": str(held)} if type(held) is int else {"stringValue": held}


def pairs(attributes: Row) -> list[Row]:
    return [{"key": key, "value": value(held)} for key, held in attributes.items()]


def span(number: int, attributes: Row, parent: str = "", trace: str = "t1", **more: Any) -> Row:
    return {"traceId": trace, "spanId": f"s{number}", "parentSpanId": parent, "name": "chat",
            "startTimeUnixNano": str(1770000000000000000 + number), "attributes": pairs(attributes), **more}


def traces(*spans: Row, resources: str = "resourceSpans", scopes: str = "scopeSpans") -> str:
    return json.dumps({resources: [{"resource": {}, scopes: [{"scope": {}, "spans": list(spans)}]}]})


def message_of(*parts: Row, role: str = "assistant", **more: Any) -> Row:
    return {"role": role, "parts": list(parts), **more}


def text(content: str) -> Row:
    return {"type": "text", "content": content}


def chat(answer: list[Row], asked: list[Row] | None = None, word: str | None = "stop", **more: Any) -> Row:
    held: Row = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
                 "gen_ai.output.messages": json.dumps(answer), **more}
    if asked is not None:
        held["gen_ai.input.messages"] = json.dumps(asked)
    if word is not None:
        held["gen_ai.response.finish_reasons"] = [word]
    return held


GO = message_of(text("go"), role="user")


def test_a_span_is_an_answer_and_the_input_of_the_next_holds_the_results(tmp_path):
    asked = [message_of(text("s"), role="system"), GO]
    result = message_of({"type": "tool_call_response", "id": "call_a1b2c3d4", "response": "a.py"}, role="tool")
    first = span(1, chat([message_of({"type": "reasoning", "content": "hm"}, text("Look."), CALL)], asked,
                         "tool_calls", **{
        "gen_ai.response.id": "r1", "gen_ai.response.model": "gpt-5-x", "gen_ai.request.max_tokens": 64,
        "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 40, "gen_ai.usage.reasoning.output_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 20}))
    second = span(2, chat([message_of(text("Done."))], [*asked, message_of(CALL), result]))
    agent = span(0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "x", "gen_ai.request.model": "m"})
    seen = show(traces(agent, second, first), tmp_path)
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    assert words(seen) == ["COMPLETE"]
    assert rules(seen)[:2] == ["transcript.recorder", "otlp.finish_reasons"]
    exchange = seen.responses[0].exchange
    assert exchange.response.usage == (100, 7, 3, 40, 20)
    assert (exchange.response.model, exchange.request.max_tokens) == ("gpt-5-x", 64)
    assert exchange.started.startswith("2026-02-02T02:40:00")
    assert [type(part).__name__ for part in exchange.response.parts] == ["ReasoningPart", "TextPart", "ToolCall"]
    assert exchange.response.raw_stop_reason is None
    assert "spans that are not an answer of a model: 1" in notices(seen)


@each_row(("word", "stop"), [
    ("length", "max_tokens"), ("max_tokens", "max_tokens"), ("MAX_TOKENS", "max_tokens"), ("STOP", "end_turn"),
    ("end_turn", "end_turn"), ("tool_call", "tool_call"), ("tool_use", "tool_call"), ("error", "unknown"),
    ("content_filter", "safety_blocked"), ("tool-calls", "tool_call"), ("content-filter", "safety_blocked"),
    ("interrupted", "interrupted"), ("hologram", "unknown"),
])
def test_the_words_of_every_api_and_of_the_conventions(word, stop, tmp_path):
    calls = [CALL] if stop == "tool_call" else []
    seen = show(traces(span(1, chat([message_of(text("hi"), *calls)], [GO], word))), tmp_path)
    assert stops(seen) == [stop]


@each_row(("span_word", "message_word", "stop"), [
    ("stop", "length", "max_tokens"), ("length", "stop", "max_tokens"), ("tool_calls", "safety", "safety_blocked"),
    ("stop", "hologram", "end_turn"), ("hologram", "stop", "unknown"), (None, "length", "max_tokens"),
])
def test_of_two_words_a_clean_one_hides_no_cut(span_word, message_word, stop, tmp_path):
    answer = message_of(text("hi"), finish_reason=message_word)
    assert stops(show(traces(span(1, chat([answer], [GO], span_word))), tmp_path)) == [stop]


@each_row(("message", "stop", "detail"), [
    ("Error streaming response: {'error': \"Responses stream ended with terminal event `response.incomplete`. "
     "status=incomplete; incomplete_details=IncompleteDetails(reason='max_output_tokens').\"}", "max_tokens", None),
    ("status=incomplete; incomplete_details=IncompleteDetails(reason='content_filter').", "safety_blocked",
     "content_filter"),
    ("Chat Completions stream terminated with finish_reason='length' but produced no assistant text", "max_tokens",
     None),
    ("Could not parse response content as the length limit was reached - CompletionUsage(…)", "max_tokens", None),
    ("Could not parse response content as the request was rejected by the content filter", "safety_blocked",
     "content_filter"),
    ("max_output_tokens must be at least 16", "error", "fatal"),
])
def test_an_error_about_how_the_answer_ended_is_that_end_and_no_failure(message, stop, detail, tmp_path):
    seen = show(traces(span(1, chat([], [GO], None), status={"code": 2, "message": message})), tmp_path)
    reason = seen.responses[0].exchange.response.stop_reason
    assert (reason.normalized.value, reason.detail) == (stop, detail)


@each_row(("word", "status", "verdict"), [
    ("length", {}, "TRUNCATED"), (None, {"code": 2, "message": "Connection error."}, "ERROR")])
def test_requests_of_which_nothing_is_recorded_are_no_repetitions(word, status, verdict, tmp_path):
    """Without contents nothing shows that the requests of two traces are the same: a cut was called a retry."""
    spans = [span(number, chat([], None, word if number == 1 else word and "stop"), "above", f"t{number}",
                  status=status) for number in (1, 2)]
    seen = show(traces(*spans), tmp_path)
    assert (words(seen)[0], len(seen.turns)) == (verdict, 2)


@each_row(("status", "attributes", "why"), [
    ({"code": 2, "message": "read timed out"}, {}, "read timed out"),
    ({"code": 2}, {"error.type": "timeout"}, "timeout"),
    ({"code": "STATUS_CODE_ERROR"}, {}, "it does not say why"), ({"code": "2"}, {}, "it does not say why"),
    ({"code": 1}, {"error.type": "timeout"}, None),
])
def test_a_span_that_failed_beside_a_word_is_a_finding(status, attributes, why, tmp_path):
    seen = show(traces(span(1, chat([message_of(text("hi"))], [GO], **attributes), status=status)), tmp_path)
    assert stops(seen) == ["end_turn"]
    told = [each.finding.message for each in seen.findings if each.finding.rule == "transcript.span_failed"]
    assert told == ([] if why is None else [f"the span of this answer failed nevertheless: {why}"])


def test_messages_that_a_limit_on_attributes_cut_are_not_shown_as_text(tmp_path):
    asked = chat([message_of(text("I look."), CALL)], [GO], "tool_calls")
    asked["gen_ai.output.messages"] = asked["gen_ai.output.messages"][:40]
    seen = show(traces(span(1, asked)), tmp_path)
    assert (stops(seen), words(seen)) == (["unknown"], ["END NOT RECORDED"])
    assert seen.responses[0].exchange.response.text is None
    plain = {**chat([], [GO]), "gen_ai.completion": '{"a": [1, 2'}
    del plain["gen_ai.output.messages"]
    assert show(traces(span(1, plain)), tmp_path).responses[0].exchange.response.text == '{"a": [1, 2'


def test_the_names_of_the_ai_sdk(tmp_path):
    answer = {"gen_ai.system": "openai.chat", "gen_ai.request.model": "m", "ai.response.finishReason": "tool-calls",
              "ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": "go"}]}]),
              "ai.response.text": "I look.", "ai.response.toolCalls": json.dumps(
                  [{"toolCallId": "c1", "toolName": "ls", "input": '{"path": "."}'}])}
    seen = show(traces(span(1, answer)), tmp_path)
    response = seen.responses[0].exchange.response
    assert (stops(seen), response.text, seen.turns[0].run.record.user_text) == (["tool_call"], "I look.", "go")
    assert [(call.id, call.name, call.arguments) for call in response.tool_calls] == [("c1", "ls", '{"path": "."}')]


@pytest.mark.parametrize(("fact", "name"), [(fact, name) for fact, names in FACTS.items() for name in names])
def test_every_name_of_a_fact_is_read(fact, name, tmp_path):
    key = "call_a1b2c3d4"
    answer = chat([message_of(text("hi"), CALL)], [GO], None)
    given: Any = {"cap": 64, "input": 9, "output": 7, "cached": 5, "reasoning": 3, "written": 2}.get(
        fact, "given")
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": key, "gen_ai.tool.call.result": "a.py"}
    if fact == "call":
        del tool["gen_ai.tool.call.id"]
        tool[name] = key
    elif fact == "result":
        del tool["gen_ai.tool.call.result"]
        tool[name] = "a.py"
    elif fact == "model":
        answer = {**{k: v for k, v in answer.items() if k != "gen_ai.request.model"}, name: given}
    elif fact == "word":
        answer[name] = "length"
    else:
        answer[name] = given
    again = chat([message_of(text("more"))], None, None, **({name: given} if fact in ("conversation", "agent") else {}))
    other = {"agent": "t1", "conversation": "t2"}.get(fact, "t3")
    seen = show(traces(span(1, answer), span(2, tool), span(3, again, trace=other)), tmp_path)
    exchange = seen.responses[0].exchange
    usage, request = exchange.response.usage, seen.responses[1].exchange.request
    if fact in ("conversation", "agent"):
        assert request.previous_id == exchange.response.id
    assert {
        "model": exchange.response.model, "id": exchange.response.id.split(":")[0], "cap": exchange.request.max_tokens,
        "input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cached_tokens,
        "reasoning": usage.reasoning_tokens, "written": usage.cache_write_tokens,
    }.get(fact, given) == given
    if fact == "word":
        assert stops(seen)[0] == "max_tokens"
    elif fact in ("call", "result"):
        assert seen.inputs[0].answers[0].result.text == "a.py"


@pytest.mark.parametrize("name", [
    "max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict"])
def test_openinference_is_flattened_and_a_cut_call_is_seen(name, tmp_path):
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    held = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-5", "session.id": "s",
            "llm.invocation_parameters": json.dumps({name: 64}), "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "go", "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.contents.0.message_content.text": "Look.",
            "llm.output_messages.0.message.contents.0.message_content.type": "text",
            f"{call}.id": "call_a1b2c3d4", f"{call}.function.name": "ls", f"{call}.function.arguments": '{"path": "'}
    chain = {"openinference.span.kind": "CHAIN", "llm.model_name": "gpt-5", "output.value": "x"}
    seen = show(traces(span(1, held), span(0, chain)), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert rules(seen)[-1] == "transcript.inferred.call_cut"
    exchange = seen.responses[0].exchange
    assert (exchange.request.max_tokens, exchange.response.text) == (64, "Look.")
    assert exchange.response.tool_calls[0].arguments == '{"path": "'
    assert seen.turns[0].run.record.user_text == "go"


@pytest.mark.parametrize("answer", [
    '{"city": "Rome", "days": [1, 2]}', '[{"city": "Rome"}]', '["Rome", "Oslo"]', '{"text": "Rome", "score": 1}',
    '[{"text": "Rome", "label": "city"}]', '{"content": "Rome", "title": "t"}', '{"type": "city", "content": "Rome"}',
    '{"parts": ["wheel"]}', "{}", '[{"type": "city"}]', '[{"type": "text", "text": "Rome"}, {"city": "Rome"}]',
    "[]", "[1, 2]",
])
def test_an_answer_that_is_json_is_its_text(answer, tmp_path):
    held = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
            "gen_ai.response.finish_reasons": ["stop"]}
    for names in ({"llm.output_messages.0.message.content": answer},
                  {"gen_ai.completion.0.content": answer, "gen_ai.usage.output_tokens": 3},
                  {"gen_ai.output.messages": json.dumps([{"role": "assistant", "content": answer}])},
                  {"ai.response.object": answer}):
        seen = show(traces(span(1, {**held, **names})), tmp_path)
        assert (seen.responses[0].exchange.response.text, words(seen)) == (answer, ["COMPLETE"]), names


@each_row("answer", ['{"city": "Rome"}', '[{"city": "Rome"}]', "[1, 2]", "[[]]", '[1, {"a": 2}]'])
def test_an_answer_that_is_json_in_one_attribute(answer):
    assert [each.text for each in outputs_of({"gen_ai.completion": answer})] == [answer]


@each_row("name", ["gen_ai.output.messages", "gen_ai.completion"])
@each_row("empty", ["[]", []])
def test_a_list_without_messages_is_no_answer(name, empty):
    assert outputs_of({name: empty}) == []


@each_row("member", ["role", "content", "contents", "message", "parts", "tool_calls", "type",
                                    "toolName"])
def test_json_with_a_member_of_a_message_is_a_message(member):
    assert [each.text for each in outputs_of({"gen_ai.completion": json.dumps({member: []})})] == [""]


@each_row("part", [
    {"type": "input_text"}, {"type": "output_text"}, {"type": "image"}, {"type": "image_url"}, {"type": "input_image"},
    {"type": "reasoning"}, {"type": "thinking"}, {"type": "redacted_thinking"}, {"type": "tool_call"},
    {"type": "tool_use"}, {"type": "function_call"}, {"type": "function"}, {"type": "tool_call_response"},
    {"type": "tool_result"}, {"type": "tool_response"}, {"thought": True}, {"thoughtSignature": "x"},
    {"thought_signature": "x"}, {"functionCall": {"name": "ls"}}, {"function_call": {"name": "ls"}},
    {"functionResponse": {"name": "ls"}}, {"function_response": {"name": "ls"}}, {"text": ""},
])
def test_parts_that_a_recorder_wrote_as_json_into_a_text_are_parts(part):
    for beside, said in (([], ""), ([{"type": "text", "text": "Hi."}], "Hi.")):
        (message,) = outputs_of({"gen_ai.completion.0.content": json.dumps([part, *beside])})
        assert message.text == said


@pytest.mark.parametrize("kind", ["document", "server_tool_use"])
def test_a_part_of_a_kind_that_is_not_known_stands_beside_others(kind):
    content = json.dumps([{"type": kind}, {"type": "text", "text": "Hi."}, {"type": "tool_use", "name": "ls"}])
    (message,) = outputs_of({"gen_ai.completion.0.content": content})
    assert (message.text, [name for _, name, _ in message.calls]) == ("Hi.", ["ls"])


def test_older_names_prompts_by_number_and_values(tmp_path):
    held = {"gen_ai.system": "OpenAI", "llm.request.type": "chat", "gen_ai.request.model": "gpt-4",
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "go", "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "hi", "gen_ai.completion.0.finish_reason": "length",
            "gen_ai.completion.0.tool_calls.0.name": "ls", "gen_ai.completion.0.tool_calls.0.arguments": "{}"}
    seen = show(traces(span(1, held)), tmp_path)
    assert stops(seen) == ["max_tokens"]
    assert seen.responses[0].exchange.response.tool_calls[0].name == "ls"
    plain = {"openinference.span.kind": "LLM", "input.value": "go", "output.value": "hi"}
    seen = show(traces(span(1, plain)), tmp_path)
    assert (seen.turns[0].run.record.user_text, seen.responses[0].exchange.response.text) == ("go", "hi")
    for system in ("gen_ai.provider.name", "gen_ai.system"):
        only = {system: "x", "gen_ai.request.model": "m"}
        assert len(show(traces(span(1, only)), tmp_path).responses) == 1


@each_row("operation", ["chat", "text_completion", "generate_content", "completion", "responses",
                                       "message", "messages"])
def test_the_operations_that_are_answers(operation, tmp_path):
    assert len(show(traces(span(1, {"gen_ai.operation.name": operation})), tmp_path).responses) == 1


@pytest.mark.parametrize(("asked", "answered"), [
    ("gen_ai.input.messages", "gen_ai.output.messages"), ("gen_ai.prompt", "gen_ai.completion"),
    ("gen_ai.content.prompt", "gen_ai.content.completion"),
])
def test_messages_may_stand_in_events_or_be_values(asked, answered, tmp_path):
    attributes = {asked: [{"role": "user", "content": "go"}], answered: [{"role": "assistant", "content": "hi"}]}
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": pairs(attributes)}
    seen = show(traces(span(1, {"gen_ai.operation.name": "chat"}, events=[event])), tmp_path)
    assert (seen.turns[0].run.record.user_text, seen.responses[0].exchange.response.text) == ("go", "hi")


def test_the_items_of_one_answer_are_read_as_one(tmp_path):
    """OpenLLMetry's spans of the Agents SDK: an output message for each item, and the words of the items."""
    other = {**CALL, "id": "call_b1b2c3d4", "name": "cat"}
    items = [message_of(CALL, finish_reason="tool_call"), message_of(text("Look."), finish_reason="stop"),
             message_of(other, finish_reason="tool_call")]
    held = chat(items, [GO], None, **{"gen_ai.response.finish_reasons": ["tool_call", "stop"]})
    answer = show(traces(span(1, held)), tmp_path).responses[0].exchange.response
    assert (answer.text, [call.name for call in answer.tool_calls]) == ("Look.", ["ls", "cat"])


def test_a_cut_item_is_not_hidden_behind_the_word_of_a_call(tmp_path):
    items = [message_of(CALL, finish_reason="tool_call"), message_of(text("Loo"), finish_reason="incomplete")]
    held = chat(items, [GO], None, **{"gen_ai.response.finish_reasons": ["tool_call", "incomplete"]})
    assert stops(show(traces(span(1, held)), tmp_path)) == ["interrupted"]


def test_an_item_that_the_words_of_the_span_leave_out_is_cut(tmp_path):
    """OpenTelemetry's own instrumentation of Responses: reasoning has a message, and no word in the span's list."""
    items = [message_of(text("Look."), finish_reason="stop"),
             message_of({"type": "reasoning", "content": "hm"}, finish_reason="incomplete")]
    assert stops(show(traces(span(1, chat([message_of(text("Look.")), items[1]], [GO], None))),
                      tmp_path)) == ["interrupted"]
    seen = show(traces(span(1, chat(items, [GO]))), tmp_path)
    assert stops(seen) == ["interrupted"]
    assert (seen.responses[0].exchange.response.text, seen.responses[0].exchange.response.reasoning_content) == (
        "Look.", "hm")


def test_arguments_that_openllmetry_could_not_parse_are_held(tmp_path):
    """Its instrumentations of the Agents SDK and of Gemini put them under `_raw`, and say `tool_call` all the same."""
    cut = {**CALL, "arguments": {"_raw": '{"path": "a.txt", "content": "ha'}}
    seen = show(traces(span(1, chat([message_of(cut, finish_reason="tool_call")], [GO], "tool_call"))), tmp_path)
    (verdict,) = seen.responses[0].verdicts
    assert (verdict.admission.value, verdict.rule) == ("held", "gate.incomplete")
    assert stops(seen) == ["max_tokens"]


@pytest.mark.parametrize("more", [
    {"gen_ai.request.choice.count": 2}, {"llm.invocation_parameters": '{"n": 2}'},
    {"llm.invocation_parameters": '{"candidate_count": 2}'},
])
def test_several_choices_are_not_joined(more, tmp_path):
    items = [message_of(text("one"), finish_reason="stop"), message_of(CALL, finish_reason="tool_call")]
    held = chat(items, [GO], None, **{"gen_ai.response.finish_reasons": ["stop", "length"], **more})
    seen = show(traces(span(1, held)), tmp_path)
    answer = seen.responses[0].exchange.response
    assert (stops(seen), answer.text, answer.tool_calls) == (["end_turn"], "one", ())


def test_numbered_choices_and_two_texts_are_not_joined(tmp_path):
    numbered = [message_of(text("one"), index=0), message_of(CALL, index=1)]
    assert show(traces(span(1, chat(numbered, [GO]))), tmp_path).responses[0].exchange.response.tool_calls == ()
    texts = [message_of(text("one")), message_of(text("two"))]
    assert show(traces(span(1, chat(texts, [GO]))), tmp_path).responses[0].exchange.response.text == "one"


@each_row(("word", "stop"), [
    ("COMPLETE", "end_turn"), ("ERROR_TOXIC", "safety_blocked"), ("incomplete", "interrupted"),
    ("completed", "end_turn"), ("cancelled", "cancelled"), ("in_progress", "interrupted"),
])
def test_words_of_cohere_and_of_responses_are_known(word, stop, tmp_path):
    assert stops(show(traces(span(1, chat([message_of(text("Hi."))], [GO], word))), tmp_path)) == [stop]


def test_older_events_hold_one_message_each(tmp_path):
    events = [{"name": "gen_ai.user.message", "attributes": pairs({"content": "go"})},
              {"name": "gen_ai.choice", "attributes": pairs({"finish_reason": "length",
                                                             "message": json.dumps({"content": "hi"})})}]
    seen = show(traces(span(1, {"gen_ai.operation.name": "chat"}, events=events)), tmp_path)
    assert (stops(seen), seen.responses[0].exchange.response.text) == (["max_tokens"], "hi")
    assert seen.turns[0].run.record.user_text == "go"


@pytest.mark.parametrize("end", ["reset", "timeout", "eof"])
def test_our_own_spans_of_a_broken_answer_read_back_as_that(end, tmp_path):
    records = [{"loop_inspector_session": 1},
               {"type": "request", "id": "r", "api": "openai_chat", "url": "http://h/v1/chat/completions",
                "headers": [], "body": {"model": "m", "messages": [{"role": "user", "content": "go"}]}},
               {"type": "response", "request": "r", "status": 200, "headers": []},
               {"type": "bytes", "request": "r", "ms": 1,
                "text": 'data: {"choices": [{"index": 0, "delta": {"content": "Half"}}]}\n\n'},
               {"type": "end", "request": "r", "end": end}]
    first = show("".join(json.dumps(each) + "\n" for each in records), tmp_path)
    (spans,) = [made for name, made in form_files(first, "otlp-content").items() if "traces" in name]
    again = show(spans, tmp_path, name="traces.json")
    assert words(first) == words(again) == ["INTERRUPTED"]
    assert "provider reported" not in str(again.turns[0].notice)



def test_a_failed_span_is_an_error_and_a_tools_span_its_result(tmp_path):
    failed = span(2, {"gen_ai.operation.name": "chat", "error.type": "RateLimitError"},
                  status={"code": 2, "message": "429 slow down"})
    tool = span(3, {"openinference.span.kind": "TOOL", "tool_call.id": "call_a1b2c3d4", "output.value": "a.py"})
    seen = show(traces(span(1, chat([message_of(CALL)], [GO], None)), failed, tool), tmp_path)
    assert stops(seen) == ["tool_call", "error"]
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "a.py"


@each_row("scopes", ["scopeSpans", "scope_spans", "instrumentationLibrarySpans"])
@each_row("resources", ["resourceSpans", "resource_spans"])
def test_lines_spellings_and_damage(resources, scopes, tmp_path):
    one = traces(span(1, chat([message_of(text("one"))], [GO])), resources=resources, scopes=scopes)
    two = traces(span(2, chat([message_of(text("two"))], [GO]), trace="t2"), resources=resources, scopes=scopes)
    seen = show(f"{one}\n{two}\n{two[:80]}", tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["one", "two"]
    assert len(show(one, tmp_path).responses) == 1


def proto(*names: str) -> bytes:
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    spans = [{"name": "chat", "startTimeUnixNano": str(number),
              "attributes": pairs(chat([message_of(text(name))], [GO]))}
             for number, name in enumerate(names, 1)]
    return ParseDict({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, TracesData()).SerializeToString()


def test_protobuf_alone_and_after_its_length(tmp_path):
    seen = show(proto("one"), tmp_path, name="traces.pb")
    assert [facts.exchange.response.text for facts in seen.responses] == ["one"]
    assert "spans in protobuf are shown as the JSON that OTLP defines for them" in notices(seen)
    data = b"".join(len(each).to_bytes(4, "big") + each for each in (proto("one"), proto("two")))
    seen = show(data, tmp_path, name="traces.proto")
    assert [facts.exchange.response.text for facts in seen.responses] == ["one", "two"]
    cut = show(data[:-9], tmp_path, name="traces.proto")
    assert len(cut.responses) == 1
    assert "message 2 is cut or damaged" in notices(cut)


def test_the_names_of_the_protocol_are_read_as_well_as_those_of_its_json(tmp_path):
    from google.protobuf.json_format import MessageToJson
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    written = MessageToJson(TracesData.FromString(proto("one")), preserving_proto_field_name=True)
    assert "string_value" in written
    seen = show(written, tmp_path)
    assert (seen.responses[0].exchange.response.text, stops(seen)) == ("one", ["end_turn"])
    assert seen.responses[0].exchange.started.startswith("1970-01-01")


def test_without_the_extra_one_line_says_so(tmp_path, monkeypatch):
    def missing(name: str) -> Any:
        raise builtins.ImportError(name)

    monkeypatch.setattr(otlp_files, "import_module", missing)
    (tmp_path / "a.pb").write_bytes(proto("one"))
    (given,) = open_paths([str(tmp_path / "a.pb")]).inputs
    assert given.error.endswith("OTLP traces in protobuf need the extra traces: pip install 'loop-inspector[traces]'")


def test_a_key_in_a_span_is_masked_and_an_odd_member_told(tmp_path):
    key = "sk-ant-api03-" + "aB3" * 31 + "AA"
    seen = show(traces(span(1, chat([message_of(text(f"key {key}"))], [GO]), status=1)), tmp_path)
    assert key not in (seen.responses[0].exchange.response.text or "")
    assert seen.inputs[0].masked
    assert "span 1: status is a number, but an object was expected" in notices(seen)


def bare(word: str, **more: Any) -> Row:
    return {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
            "gen_ai.response.finish_reasons": [word], **more}


@each_row(("word", "stop"), [
    ("stop", "unknown"), ("tool_calls", "unknown"), ("length", "max_tokens"), ("content_filter", "safety_blocked"),
])
def test_a_trace_without_contents_is_no_empty_answer(word, stop, load):
    seen = load(traces(span(1, bare(word))), "a.json")
    response = seen.exchanges[0].response
    assert response.stop_reason.normalized.value == stop
    if stop == "unknown":
        assert response.stop_reason.detail == "not_recorded"
        assert f"the stop reason is {word!r}, and the content of the answer was not recorded" in [
            finding.message for finding in response.findings]


def test_the_spans_of_claude_code_say_their_end_and_counts(load):
    request = {"span.type": "llm_request", "model": "claude-opus-5", "session.id": "s", "input_tokens": 2,
               "output_tokens": 12, "cache_read_tokens": 80, "cache_creation_tokens": 6, "stop_reason": "max_tokens"}
    seen = load(traces(span(1, request), span(2, {"span.type": "tool", "model": "claude-opus-5"})), "a.json")
    (one,) = seen.exchanges
    assert one.response.stop_reason.normalized.value == "max_tokens"
    assert one.response.usage == (2, 12, None, 80, 6)
    assert "spans that are not an answer of a model: 1" in notices(seen)


def test_a_text_behind_an_empty_line_is_no_protobuf() -> None:
    text = b"\n# aider chat started\n\n> aider --llm-history-file llm.history  \n> telemetry.sdk is off\n"
    assert otlp.sniff(text, ".aider.chat.history.md") == 0


@each_row("mark", [b"gen_ai.system", b"llm.model_name", b"openinference.span.kind",
                                  b"telemetry.sdk.name", b"service.name"])
def test_protobuf_is_known_by_the_names_that_such_spans_have(mark: bytes) -> None:
    held = b"\n\x40\n\x3e\x12" + mark + b"\x1a\x02ok"
    assert otlp.sniff(held, "t.pb") == 95
    assert otlp.sniff(len(held).to_bytes(4, "big") + held, "t.pb") == 95
    assert otlp.sniff(held.replace(mark, b"harmless"), "t.pb") == 0


@pytest.mark.parametrize("names", ["llm.input_messages.0.message", "gen_ai.prompt.0"])
def test_a_message_may_stand_in_names_of_its_own(names: str) -> None:
    (message,) = inputs_of({f"{names}.role": "user", f"{names}.content": "go"})
    assert (message.role, message.text) == ("user", "go")


def console_span(number: int, attributes: Row, **more: Any) -> Row:
    return {"name": "chat", "context": {"trace_id": "0x01", "span_id": f"0x{number:02}", "trace_state": "[]"},
            "kind": "SpanKind.CLIENT", "parent_id": None, "start_time": f"2026-01-01T00:00:{number:02}.000000Z",
            "status": {"status_code": "UNSET"}, "attributes": attributes, "events": [], "links": [], **more}


@pytest.mark.parametrize("indent", [4, None])
def test_spans_as_the_console_exporter_prints_them(tmp_path, indent):
    tool = console_span(2, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": CALL["id"],
                            "gen_ai.tool.call.result": "a.md"}, parent_id="0x01")
    rows = (console_span(3, chat([message_of(text("Done."))], [message_of(text("go"), role="user"), message_of(CALL)],
                                 "length")), tool,
            console_span(1, chat([message_of(CALL)], [message_of(text("go"), role="user")], "tool_call")))
    seen = show("\n".join(json.dumps(row, indent=indent) for row in rows), tmp_path)
    assert seen.inputs[0].format == "otlp"
    assert (stops(seen), places(seen)) == (["tool_call", "max_tokens"], [["request", "tool_result"]])
    assert seen.responses[0].exchange.started.startswith("2026-01-01T00:00:01")
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "a.md"


def test_the_result_of_a_call_in_another_trace_with_the_same_id_is_another_one(tmp_path):
    def tool_span(number: int, output: str, trace: str) -> Row:
        return span(number, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": CALL["id"],
                             "gen_ai.tool.call.result": output}, trace=trace)

    first, second = (span(number, chat([message_of(CALL)], [GO], "tool_call"), trace=trace)
                     for number, trace in ((1, "t1"), (3, "t2")))
    seen = show(traces(first, tool_span(2, "a.md", "t1"), second, tool_span(4, "b.md", "t2")), tmp_path)
    assert [each.result.text for each in seen.inputs[0].answers] == ["a.md", "b.md"]
    seen = show(traces(first, tool_span(2, "a.md", "t9")), tmp_path)
    assert [each.result.text for each in seen.inputs[0].answers] == ["a.md"], "no other call has this id"
    assert not show(traces(first, tool_span(2, "a.md", "t8"), tool_span(4, "b.md", "t9")), tmp_path).inputs[0].answers


def test_a_printed_span_that_failed(tmp_path):
    failed = console_span(1, chat([], word=None), status={"status_code": "ERROR", "description": "Rate limit reached"})
    seen = show(json.dumps({**failed, "start_time": "soon"}, indent=4), tmp_path)
    assert words(seen) == ["ERROR"]
    assert seen.responses[0].exchange.response.error.message == "Rate limit reached"


def test_a_span_that_failed_without_a_description_says_what_was_thrown(tmp_path):
    thrown = {"name": "exception", "attributes": {"exception.type": "ClientError", "exception.message": "404 no model"}}
    told = console_span(1, {"openinference.span.kind": "LLM", "llm.invocation_parameters": '{"model": "gpt-5"}'},
                        status={"status_code": "ERROR"}, events=[{"name": "chunk", "attributes": {}}, thrown])
    (facts,) = show(json.dumps(told, indent=4), tmp_path).responses
    assert (facts.exchange.response.error.message, facts.exchange.model) == ("404 no model", "gpt-5")


def phoenix(number: int, kind: str, attributes: Row, **more: Any) -> Row:
    """A span as Phoenix exports it: with the kind and the status beside the attributes."""
    return {"id": f"i{number}", "name": "chat", "context": {"trace_id": "t", "span_id": f"s{number}"},
            "span_kind": kind, "parent_id": "s0" if number else None, "start_time": f"2026-01-01T00:00:0{number}+00:00",
            "status_code": "OK", "status_message": "", "attributes": attributes, "events": [], **more}


def test_spans_that_phoenix_exported(tmp_path):
    answered = {"llm.model_name": "gpt-5", "llm.token_count.completion": 7,
                "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "hi"}
    rows = [phoenix(0, "AGENT", answered), phoenix(1, "LLM", answered), phoenix(2, "TOOL", {"tool.name": "ls"}),
            phoenix(3, "LLM", {"llm.model_name": "gpt-5"}, status_code="ERROR", status_message="Rate limit reached")]
    seen = show(json.dumps(rows), tmp_path)
    responses = [facts.exchange.response for facts in seen.responses]
    assert [(each.text, each.model, each.error and each.error.message) for each in responses] == [
        ("hi", "gpt-5", None), (None, "gpt-5", "Rate limit reached")]
    assert responses[0].usage.output_tokens == 7


@pytest.mark.parametrize("kind", ["AGENT", "TOOL", "CHAIN", "EMBEDDING", "RETRIEVER", "RERANKER", "GUARDRAIL",
                                  "EVALUATOR", "PROMPT"])
def test_a_span_of_another_kind_is_no_answer_whatever_its_attributes(kind, tmp_path):
    asked = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5"}
    assert not show(json.dumps([phoenix(0, kind, asked)]), tmp_path).responses


@pytest.mark.parametrize("kind", ["CLIENT", "SPAN_KIND_CLIENT", "internal", "", [], 3])
def test_the_kind_that_opentelemetry_gives_a_span_says_nothing_of_a_model(kind, tmp_path):
    answered = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5", "gen_ai.usage.output_tokens": 7}
    (facts,) = show(json.dumps([phoenix(0, kind, answered)]), tmp_path).responses
    assert facts.exchange.response.usage.output_tokens == 7


def logfire(number: int, kind: str, more: Row, parent: str = "", trace: str = "t1") -> Row:
    request = {"messages": [{"role": "user", "content": "go"}], "model": "gpt-5", "max_tokens": 64, "stream": True}
    return span(number, {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-5",
                         "logfire.span_type": kind, "request_data": json.dumps(request), **more}, parent, trace)


ANSWERED = {"response_data": json.dumps({"message": {"role": "assistant", "content": "Hi.", "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "'}}]}})}


def test_what_logfire_writes_in_names_of_its_own(tmp_path):
    seen = show(traces(logfire(1, "span", {**ANSWERED, "gen_ai.response.finish_reasons": ["length"]})), tmp_path)
    (facts,) = seen.responses
    assert (stops(seen), facts.exchange.response.text, facts.exchange.request.max_tokens) == (["max_tokens"], "Hi.", 64)
    assert facts.exchange.request.messages[0].text == "go"
    assert facts.verdicts[0].call.arguments == '{"path": "'
    assert facts.verdicts[0].admission.value == "held"


@each_row(("response", "said_text"), [
    ({"message": {"role": "assistant", "content": "Hi."}}, "Hi."), ({"combined_chunk_content": "Hi."}, "Hi."),
    ({"text": "Hi."}, "Hi."), ({"combined_chunk_content": "", "chunk_count": 0}, None)])
def test_a_streamed_answer_of_logfire_is_one_answer(tmp_path, response, said_text):
    log = {"response_data": json.dumps(response)}
    seen = show(traces(logfire(1, "pending_span", {}, "s2"), logfire(2, "span", {}), logfire(3, "log", log)), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == [said_text]
    assert "hold what another span holds, or a part of it: 2" in notices(seen)


@each_row(("kind", "more", "parent", "trace"), [
    ("span", {}, "", "t1"), ("log", {}, "s9", "t1"), ("log", {}, "s9", "t2"),
    ("log", {"request_data": '{"messages": []}'}, "", "t1")])
def test_a_request_of_logfire_without_a_span_of_its_answer_is_an_answer(tmp_path, kind, more, parent, trace):
    seen = show(traces(logfire(1, "span", {}), logfire(2, kind, {**ANSWERED, **more}, parent, trace)), tmp_path)
    assert len(seen.responses) == 2


def test_a_request_of_logfire_with_a_word_or_a_text_is_an_answer(tmp_path):
    for more in ({"gen_ai.response.finish_reasons": ["stop"]}, ANSWERED):
        seen = show(traces(logfire(1, "span", more), logfire(2, "log", ANSWERED)), tmp_path)
        assert len(seen.responses) == 2


def test_a_log_of_the_program_beside_an_answer_without_its_content_takes_nothing_away(tmp_path):
    answer = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-5",
              "logfire.span_type": "span"}
    seen = show(traces(span(1, answer, "s9"), span(2, {"logfire.span_type": "log"}, "s9")), tmp_path)
    assert len(seen.responses) == 1


def test_a_request_of_logfire_whose_end_was_never_exported_is_an_answer_without_an_end(tmp_path):
    seen = show(traces(logfire(1, "pending_span", {}, "s2")), tmp_path)
    assert [facts.judgement.stop.normalized.value for facts in seen.responses] == ["unknown"]
    seen = show(traces(logfire(1, "pending_span", {}, "s2"), logfire(2, "span", ANSWERED, trace="t2")), tmp_path)
    assert len(seen.responses) == 2, "the other one is of another trace"


def test_of_two_equal_requests_of_logfire_the_later_one_has_the_streamed_answer(tmp_path):
    failed = {**logfire(1, "span", {}), "status": {"code": 2, "message": "boom"}}
    spans = failed, logfire(2, "span", {}), logfire(3, "log", ANSWERED)
    for order in (spans, spans[::-1]):
        seen = show(traces(*order), tmp_path)
        assert [stop == "error" for stop in stops(seen)] == [True, False]


def test_messages_in_one_attribute_as_older_pydantic_ai_writes_them(tmp_path):
    events = [{"event.name": "gen_ai.user.message", "role": "user", "content": "go"},
              {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Hi."}}]
    seen = show(traces(span(1, {"gen_ai.operation.name": "chat", "gen_ai.system": "openai",
                                 "gen_ai.request.model": "gpt-5", "events": json.dumps(events)})), tmp_path)
    (facts,) = seen.responses
    assert (facts.exchange.response.text, facts.exchange.request.messages[0].text) == ("Hi.", "go")


def nest(outer: Row, *inner: Row, between: Row | None = None) -> str:
    spans = [span(1, outer)]
    spans += [span(2, between, "s1")] if between is not None else []
    spans += [span(3 + number, each, "s1" if between is None else "s2") for number, each in enumerate(inner)]
    return traces(*spans)


def test_two_spans_of_one_answer_are_one_answer(tmp_path):
    whole, bare = chat([message_of(text("Hi."))]), chat([], word=None)
    chain = {"openinference.span.kind": "CHAIN"}
    for inner in (chat([message_of(text(" Hi.\n"))], word="length"), {**whole, "gen_ai.response.id": "r1"}):
        seen = show(nest(whole, inner, between=chain), tmp_path)
        assert stops(seen) == ["max_tokens" if inner["gen_ai.response.finish_reasons"] == ["length"] else "end_turn"]
        assert "hold what another span holds, or a part of it: 1" in notices(seen)
    seen = show(nest(whole, bare), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Hi."], "the inner one has no answer"
    seen = show(nest(whole, chat([message_of(text("Hm."))], word="stop"), whole), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Hm.", "Hi."], "two attempts"
    seen = show(nest(bare, whole, whole), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Hi.", "Hi."], "a loop around them"


def test_three_spans_of_one_answer_are_one_answer_in_any_order(tmp_path):
    whole, bare = chat([message_of(text("Hi."))]), chat([], word=None)
    for three in itertools.product((whole, bare), repeat=3):
        spans = [span(1, three[0]), span(2, three[1], "s1"), span(3, three[2], "s2")]
        for order in itertools.permutations(spans):
            seen = show(traces(*order), tmp_path)
            assert [facts.exchange.response.text for facts in seen.responses] == ["Hi." if whole in three else None]


def test_spans_that_hold_themselves_or_share_an_id_with_another_trace_stay(tmp_path):
    whole, other = chat([message_of(text("Hi."))]), chat([message_of(text("Hm."))])
    assert len(show(traces(span(1, whole, "s1")), tmp_path).responses) == 1
    assert len(show(traces(span(1, whole, "s2"), span(2, whole, "s1")), tmp_path).responses) == 2
    seen = show(traces(span(2, whole, "s1"), span(1, whole, trace="t2"), span(3, other, trace="t2")), tmp_path)
    assert sorted(facts.exchange.response.text for facts in seen.responses) == ["Hi.", "Hi.", "Hm."]


@each_row("between", [
    {"gen_ai.operation.name": "execute_tool"}, {"gen_ai.operation.name": "invoke_agent"},
    {"gen_ai.operation.name": "create_agent"}, {"openinference.span.kind": "AGENT"},
    {"openinference.span.kind": "TOOL"}, None, {"gen_ai.operation.name": ["chat"], "openinference.span.kind": "AGENT"}])
def test_another_answer_within_the_span_of_an_answer_is_an_answer(tmp_path, between):
    other = "Hm." if between is None else "Hi."
    seen = show(nest(chat([message_of(text("Hi."))]), chat([message_of(text(other))]), between=between), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Hi.", other]


@pytest.mark.parametrize("more", [{}, {"gen_ai.conversation.id": "c1"}])
def test_an_answer_follows_the_one_that_its_history_ends_with(tmp_path, more):
    """Two agents work at the same time in one trace, or in one conversation; nothing names them."""
    spans = []
    for agent in (0, 1):
        ask = message_of(text(f"task {agent}"), role="user")
        look = message_of({"type": "tool_call", "id": f"call_{agent}", "name": "look", "arguments": {"path": "a"}})
        result = message_of({"type": "tool_call_response", "id": f"call_{agent}", "response": "a.py"}, role="tool")
        half, rest = message_of(text(f"The half of {agent}")), message_of(text("and its rest."))
        more_of_it = message_of(text("Continue."), role="user")
        spans += [span(10 + agent, chat([look], [ask], "tool_calls", **more)),
                  span(20 + agent, chat([half], [ask, look, result], "length", **more)),
                  span(30 + agent, chat([rest], [ask, look, result, half, more_of_it], **more))]
    seen = show(traces(*spans), tmp_path)
    assert words(seen) == ["CUT, COMPLETED"] * 2
    assert places(seen) == [["request", "tool_result", "continuation"]] * 2
    assert "calls that have no result" not in notices(seen)


def test_a_request_that_is_sent_again_for_a_cut_call_stays_in_its_conversation(tmp_path):
    more = {"gen_ai.conversation.id": "c1"}
    seen = show(traces(span(1, chat([message_of(CALL)], [GO], "length", **more)),
                       span(2, chat([message_of(text("Done."))], [GO], **more))), tmp_path)
    assert len({turn.conversation for turn in seen.turns}) == 1


# -- MLflow ------------------------------------------------------------------------------------------------------------


def of_mlflow(number: int, kind: str, request: Any, response: Any, parent: str | None = None, **more: Any) -> Row:
    held = {"mlflow.traceRequestId": "tr-1", "mlflow.spanType": kind, "mlflow.spanInputs": request,
            "mlflow.spanOutputs": response, **more}
    return {"trace_id": "dA==", "span_id": f"s{number}", "parent_span_id": parent, "name": "Completions",
            "start_time_unix_nano": 1770000000000000000 + number, "events": [], "status": {"code": "STATUS_CODE_OK"},
            "attributes": {name: json.dumps(value) for name, value in held.items()}}


ASKED = [{"role": "user", "content": "go"}]
LS = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "'}}
CHOSEN = {"id": "chatcmpl-1", "model": "gpt-5", "object": "chat.completion", "choices": [
    {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": "Hi.", "tool_calls": [LS]}}]}
OF_CLAUDE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "gpt-5", "stop_reason": "max_tokens",
             "content": [{"type": "text", "text": "Hi."}]}


def file_of(*spans: Row) -> list[str]:
    whole = {"info": {"trace_id": "tr-1"}, "data": {"spans": list(spans)}}
    return [json.dumps(whole), json.dumps({"spans": list(spans)}, indent=2), json.dumps([whole], indent=1),
            f"{json.dumps(whole)}\n{json.dumps({'info': {}, 'data': {'spans': []}})}\n"]


@pytest.mark.parametrize("form", range(4))
@pytest.mark.parametrize("kind", ["CHAT_MODEL", "LLM"])
def test_a_span_of_mlflow_holds_the_answer_as_the_client_had_it(tmp_path, form, kind):
    usage = {"mlflow.chat.tokenUsage": {"input_tokens": 3, "output_tokens": 64, "total_tokens": 67}}
    spans = (of_mlflow(1, "AGENT", {"q": "go"}, CHOSEN),
             of_mlflow(2, kind, {"model": "gpt-5", "max_tokens": 64, "messages": ASKED}, CHOSEN, "s1", **usage))
    seen = show(file_of(*spans)[form], tmp_path)
    (facts,) = seen.responses
    response = facts.exchange.response
    assert (seen.inputs[0].format, stops(seen)) == ("otlp", ["max_tokens"])
    assert (response.text, response.model) == ("Hi.", "gpt-5")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 64)
    assert (facts.exchange.request.max_tokens, facts.exchange.request.messages[0].text) == (64, "go")
    assert [(each.call.id, each.call.arguments, each.admission.value) for each in facts.verdicts] == [
        ("c1", '{"path": "', "held")]


OF_RESPONSES = {"id": "resp_1", "object": "response", "status": "incomplete", "output": [
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}],
    "incomplete_details": {"reason": "max_output_tokens"}}
OF_LANGCHAIN = {"content": "Hi.", "type": "ai", "response_metadata": {"finish_reason": "length"}}


@each_row("response", [
    OF_CLAUDE, OF_RESPONSES, {"generations": [[{"text": "Hi.", "message": OF_LANGCHAIN}]]},
    {"generations": [[{"message": {"content": "Hi."}, "generation_info": {"finish_reason": "length"}}]]},
    {"generations": [[{"message": {"content": "Hi.", "response_metadata": {"stop_reason": "max_tokens"}}}]]},
])
def test_a_cut_answer_of_any_client_in_a_span_of_mlflow(tmp_path, response):
    seen = show(file_of(of_mlflow(1, "CHAT_MODEL", {"messages": ASKED}, response))[0], tmp_path)
    assert (stops(seen), seen.responses[0].exchange.response.text) == (["max_tokens"], "Hi.")


@each_row("response", [
    None, "Hi.", {}, {"generations": []}, {"generations": [[]]}, {"generations": [1]}, {"output": []}, [[1]]])
def test_a_span_of_mlflow_without_a_known_answer_has_no_end(tmp_path, response):
    seen = show(file_of(of_mlflow(1, "CHAT_MODEL", {"messages": ASKED}, response))[0], tmp_path)
    assert stops(seen) == ["unknown"]


@pytest.mark.parametrize("kind", ["TOOL", "CHAIN", "UNKNOWN"])
def test_other_spans_of_mlflow_are_no_answers(tmp_path, kind):
    seen = show(file_of(of_mlflow(1, kind, {"q": 1}, CHOSEN))[0], tmp_path)
    assert (len(seen.responses), seen.inputs[0].format) == (0, "otlp")


def test_spans_without_a_name_of_mlflow_are_none_of_its(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(file_of({"name": "x", "attributes": {"a": "1"}})[0])
    assert open_paths([str(path)]).inputs[0].format != "otlp"


@pytest.mark.parametrize("row", [of_api(), of_frame()], ids=["API", "data frame"])
def test_a_span_of_phoenix_is_known_by_its_members(tmp_path, row):
    assert [each.exchange.cap for each in show(json.dumps([row]), tmp_path).responses] == [16]
