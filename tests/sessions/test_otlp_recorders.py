"""Spans as single instrumentations write them: Anthropic's SDK, OpenInference, Logfire, LangChain, Strands, ADK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.importers.span_answers import with_messages
from inspector.sessions.importers.span_names import inputs_of, outputs_of
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, stops, words
from tests.sessions.test_otlp import CALL, GO, Row, chat, logfire, message_of, notices, span, text, traces
from tests.sessions.test_otlp_logs import USER, both, record

NATIVE: Row = {"gen_ai.provider.name": "anthropic", "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
               "gen_ai.response.id": "msg_0123456789abcdef"}
"""A span of Anthropic's SDK, without its stop word."""


def thought(response: Any) -> str:
    return "".join(part.text for part in response.parts if isinstance(part, ReasoningPart))


def texts(seen: Any) -> list[str | None]:
    return [facts.exchange.response.text for facts in seen.responses]


@pytest.mark.parametrize(("word", "stop"), [
    ("max_tokens", "max_tokens"), ("refusal", "safety_blocked"), ("end_turn", "unknown")])
def test_the_stop_word_of_anthropics_sdk(word, stop, tmp_path):
    seen = show(traces(span(1, {**NATIVE, "anthropic.message.stop_reason": word})), tmp_path)
    assert stops(seen) == [stop]


@pytest.mark.parametrize("trace", ["t1", "t2"])
def test_two_spans_beside_one_another_that_name_one_response_are_one_answer(tmp_path, trace):
    held = chat([message_of(text("Hi."))], [GO], "length", **{"gen_ai.response.id": NATIVE["gen_ai.response.id"]})
    seen = show(traces(span(1, NATIVE), span(2, held, trace=trace)), tmp_path)
    assert (stops(seen), texts(seen)) == (["max_tokens"], ["Hi."])
    assert "hold what another span holds, or a part of it: 1" in notices(seen)


@pytest.mark.parametrize(("key", "first"), [
    ("chatcmpl-123", {}), ("msg_0123456789abcdef", chat([message_of(text("Hm."))])), ("", {})])
def test_spans_that_show_no_common_response_stay(tmp_path, key, first):
    """Ollama gives an id to many responses, and a cache gives a response to many requests."""
    about = {"gen_ai.response.id": key}
    held = chat([message_of(text("Hi."))], [GO], **about)
    assert len(show(traces(span(1, {**NATIVE, **first, **about}), span(2, held)), tmp_path).responses) == 2


def test_two_spans_without_content_stay(tmp_path):
    assert len(show(traces(span(1, NATIVE), span(2, NATIVE)), tmp_path).responses) == 2


@pytest.mark.parametrize(("word", "count"), [("stop", 1), (None, 2)])
def test_of_an_empty_answer_the_span_with_the_request_stands_for_both_if_it_has_a_word(tmp_path, word, count):
    held = {**NATIVE, "gen_ai.input.messages": json.dumps([GO]), "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 0}
    held |= {"gen_ai.response.finish_reasons": [word]} if word else {}
    seen = show(traces(span(1, {**NATIVE, "anthropic.message.stop_reason": "end_turn"}),
                       span(2, held, trace="t2")), tmp_path)
    assert len(seen.responses) == count
    assert words(seen)[-1] == ("EMPTY ANSWER" if word else "END NOT RECORDED")


def test_the_inner_span_without_a_message_does_not_hide_the_reasoning_of_the_outer_one(tmp_path):
    outer = chat([message_of({"type": "reasoning", "content": "hm"})], [GO])
    inner = {**NATIVE, "anthropic.message.stop_reason": "end_turn"}
    (facts,) = show(traces(span(1, outer), span(2, inner, "s1")), tmp_path).responses
    assert thought(facts.exchange.response) == "hm"


def test_a_streamed_answer_of_logfire_without_a_span_around_it_has_a_trace_of_its_own(tmp_path):
    log = {"gen_ai.output.messages": json.dumps([message_of(text("Hi."), finish_reason="length")])}
    seen = show(traces(logfire(1, "span", {}), logfire(2, "log", log, trace="t2")), tmp_path)
    assert (stops(seen), texts(seen)) == (["max_tokens"], ["Hi."])


# -- OpenInference -----------------------------------------------------------------------------------------------------


def of_object(answer: Any, **more: Any) -> Row:
    held = answer if isinstance(answer, str) else json.dumps(answer)
    return {"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": held, **more}


def test_a_call_that_openinference_tells_twice_is_one_call(tmp_path):
    here = "llm.output_messages.0.message"
    called = {f"{name}.tool_call.{key}": value for name in (f"{here}.tool_calls.0", f"{here}.contents.1")
              for key, value in (("id", "c1"), ("function.name", "ls"), ("function.arguments", '{"path": "."}'))}
    held = {"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.finish_reason": "tool_use",
            f"{here}.contents.0.message_content.type": "text", f"{here}.contents.0.message_content.text": "Look.",
            f"{here}.contents.1.message_content.type": "tool_use", **called}
    for names in (held, {name: value for name, value in held.items() if "contents.1.tool_call" not in name},
                  {name: value for name, value in held.items() if "tool_calls" not in name}):
        (facts,) = show(traces(span(1, names)), tmp_path).responses
        assert [(each.call.id, each.call.name, each.admission.value) for each in facts.verdicts] == [
            ("c1", "ls", "ready")]


def message(**more: Any) -> Row:
    return {"type": "message", "content": [{"type": "output_text", "text": "Hi."}], **more}


ITEM = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path": "'}


@each_row(("answer", "stop", "said_text"), [
    ({"id": "r1", "output": [message()], "status": "completed"}, "end_turn", "Hi."),
    ({"id": "r1", "output": [message(), message()], "status": "incomplete",
      "incomplete_details": {"reason": "max_output_tokens"}}, "max_tokens", "Hi.\nHi."),
    ({"id": "r1", "output": [message()], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
     "safety_blocked", "Hi."),
    ({"id": "m1", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "pause_turn"}, "paused", "Hi."),
    ({"id": "x", "model": "m", "choices": [{"finish_reason": "length", "message": {"content": "Hi."}}]}, "max_tokens",
     "Hi."),
    ({"candidates": [{"finish_reason": "SAFETY", "content": {"parts": [{"text": "Hi."}]}}]}, "safety_blocked", "Hi."),
    ({"candidates": [{"finishReason": "MAX_TOKENS", "content": {"parts": [{"text": "Hi."}]}}]}, "max_tokens", "Hi."),
    ({"finishReason": "MAX_TOKENS", "content": {"parts": [{"text": "Hi."}]}}, "max_tokens", "Hi."),
    ({"finish_reason": "SAFETY", "content": {"parts": [{"text": "Hi."}]}}, "safety_blocked", "Hi."),
])
def test_the_object_of_the_provider_gives_the_stop_word(tmp_path, answer, stop, said_text):
    seen = show(traces(span(1, of_object(answer))), tmp_path)
    assert (stops(seen), texts(seen)) == ([stop], [said_text])


def test_all_that_the_object_of_the_provider_holds_is_read(tmp_path):
    answer = {"id": "r1", "status": "completed", "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, message(), ITEM, message()]}
    (facts,) = show(traces(span(1, of_object(answer))), tmp_path).responses
    response = facts.exchange.response
    assert (thought(response), response.text) == ("hm", "Hi.\nHi.")
    assert [(each.call.name, each.call.arguments, each.admission.value) for each in facts.verdicts] == [
        ("ls", '{"path": "', "held")]


@each_row("answer", [
    '{"content": "Rome", "title": "t"}', '{"output": ["Rome"]}', '{"choices": ["Rome"], "id": 7}', "Rome"])
def test_an_answer_that_is_no_object_of_a_provider_is_its_text(tmp_path, answer):
    assert texts(show(traces(span(1, of_object(answer))), tmp_path)) == [answer]


@pytest.mark.parametrize("name", ["tool.name", "gen_ai.tool.name"])
def test_a_run_of_a_tool_that_names_no_call_is_that_of_the_call_before_it(tmp_path, name):
    """smolagents puts the result into a text of the user, and OpenLLMetry's spans of the Agents SDK have no ids."""
    def answer(number: int, key: str, arguments: str, *asked: Row) -> Row:
        call = {"type": "tool_call", "id": key, "name": "ls", "arguments": arguments}
        return span(number, chat([message_of(call)], [GO, *asked], None), "s9")

    def tool_span(number: int, output: str, parent: str = "s9") -> Row:
        return span(number, {"openinference.span.kind": "TOOL", name: "ls", "output.value": output}, parent)

    step = span(9, {"openinference.span.kind": "CHAIN"})
    seen = show(traces(
        tool_span(6, "b.py"), tool_span(3, "a.py"), tool_span(1, "early"), tool_span(4, "elsewhere", "s8"), step,
        answer(2, "c1", '{"path": "'),
        answer(5, "c2", '{"path": "."}', message_of(text("Observation: a.py"), role="user"))), tmp_path)
    assert words(seen) == ["CUT CALL RUN"]
    (part,) = seen.responses[1].exchange.request.messages[0].parts
    assert (part.call_id, part.text) == ("c1", "a.py")
    assert [(each.result.call_id, each.result.text) for each in seen.inputs[0].answers] == [("c2", "b.py")]


def test_a_span_of_llamaindex_that_makes_a_request_is_no_answer(tmp_path):
    made = {"messages": ["ChatMessage(…)"], "tools": []}
    seen = show(traces(span(1, of_object(made)), span(2, of_object("Hi."))), tmp_path)
    assert texts(seen) == ["Hi."]
    assert "spans that are not an answer of a model: 1" in notices(seen)
    # A model may write such an object itself.
    told = of_object(made, **{"llm.output_messages.0.message.role": "assistant",
                              "llm.output_messages.0.message.content": json.dumps(made)})
    assert texts(show(traces(span(1, told)), tmp_path)) == [json.dumps(made)]


def test_the_answer_of_llamaindex_in_two_spans_is_one_as_the_provider_sent_it(tmp_path):
    sent = {"id": "r1", "model": "m", "choices": [{"finish_reason": "length", "message": {"content": "Hi."}}]}
    outer = of_object({"message": {"role": "assistant", "blocks": [{"text": "Hi."}]}, "raw": sent})
    assert texts(show(traces(span(1, outer)), tmp_path)) == ["Hi."]
    inner = {"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.finish_reason": "length",
             "llm.output_messages.0.message.content": "Hi."}
    seen = show(traces(span(1, outer), span(2, inner, "s1")), tmp_path)
    assert (stops(seen), texts(seen)) == (["max_tokens"], ["Hi."])


def test_an_answer_of_agno_without_messages_is_no_text(tmp_path):
    counts = {"llm.token_count.prompt": 9, "llm.token_count.completion": 0, "llm.finish_reason": "stop"}
    seen = show(traces(span(1, of_object({"messages": []}, **counts))), tmp_path)
    assert (texts(seen), words(seen)) == ([None], ["EMPTY ANSWER"])


# -- LangChain -------------------------------------------------------------------------------------------------------


def of_langchain(metadata: Row, **message: Any) -> Row:
    kwargs = {"content": "Hi.", "type": "ai", "response_metadata": metadata, **message}
    return of_object({"generations": [[{"text": "Hi.", "message": {"lc": 1, "kwargs": kwargs}}]]}, **{
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Hi."})


@each_row(("metadata", "stop"), [
    ({"finish_reason": "length"}, "max_tokens"), ({"stop_reason": "refusal"}, "safety_blocked"),
    ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_tokens"),
    ({"status": "completed", "incomplete_details": None}, "end_turn")])
def test_the_metadata_of_langchains_message_give_the_stop_word(tmp_path, metadata, stop):
    seen = show(traces(span(1, of_langchain(metadata))), tmp_path)
    assert (stops(seen), texts(seen)) == ([stop], ["Hi."])


def test_the_stop_word_of_a_stream_of_claude_in_langchain_js(tmp_path):
    held = of_langchain({"model_provider": "anthropic"}, additional_kwargs={"stop_reason": "max_tokens"})
    assert stops(show(traces(span(1, held)), tmp_path)) == ["max_tokens"]


def test_a_call_that_langchain_could_not_parse_is_held(tmp_path):
    lost = {"type": "invalid_tool_call", "id": "c1", "name": "ls", "args": '{"path": "', "error": "no JSON"}
    held = of_langchain({"finish_reason": "tool_calls"}, tool_calls=[], invalid_tool_calls=[lost])
    seen = show(traces(span(1, held)), tmp_path)
    (verdict,) = seen.responses[0].verdicts
    assert (words(seen), verdict.call.arguments, verdict.admission.value) == (["CALL HELD"], '{"path": "', "held")


def test_the_arguments_of_a_streamed_call_of_claude_are_those_received_and_not_those_that_langchain_repaired(tmp_path):
    block = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}, "index": 1, "partial_json": '{"path": "a'}
    calls = [{"id": "c1", "name": "ls", "args": {"path": "a"}, "type": "tool_call"}]
    held = of_langchain({"stop_reason": "tool_use"}, content=[block], tool_calls=calls)
    seen = show(traces(span(1, held)), tmp_path)
    assert (words(seen), seen.responses[0].verdicts[0].call.arguments) == (["CALL HELD"], '{"path": "a')


def test_the_arguments_of_a_call_that_langchain_js_repaired_are_those_received(tmp_path):
    """A server reports the cut call as whole, so only the arguments show that it was cut."""
    cut = '{"path": "/sr'
    raw = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "ls", "arguments": cut}}]}
    repaired = [{"id": "c1", "name": "ls", "args": {"path": "/sr"}, "type": "tool_call"}]
    held = of_langchain({"finish_reason": "tool_calls"}, content="", tool_calls=repaired, additional_kwargs=raw)
    seen = show(traces(span(1, held)), tmp_path)
    assert (words(seen), seen.responses[0].exchange.response.tool_calls[0].arguments) == (["CALL HELD"], cut)


@pytest.mark.parametrize(("more", "arguments"), [({}, '{"path": "."}'), ({"partial_json": '{"path": "'}, '{"path": "')])
def test_blocks_of_claude_that_openllmetry_writes_as_texts_of_json_are_no_texts(tmp_path, more, arguments):
    use = {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}, **more}
    call = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "."}}
    hm = {"type": "thinking", "thinking": "hm", "index": 0}
    held = message_of(text(json.dumps(hm)), text("Look."), text(json.dumps(use)), call)
    (facts,) = show(traces(span(1, chat([held], [GO], "tool_use"))), tmp_path).responses
    assert (thought(facts.exchange.response), facts.exchange.response.text) == ("hm", "Look.")
    assert [(each.call.id, each.call.arguments) for each in facts.verdicts] == [("c1", arguments)]


def test_reasoning_of_bedrock_that_openllmetry_writes_as_a_text_of_json_is_no_text(tmp_path):
    hm = text(json.dumps({"reasoningContent": {"reasoningText": {"text": "hm"}}}))
    (facts,) = show(traces(span(1, chat([message_of(hm)], [GO], "length"))), tmp_path).responses
    assert (thought(facts.exchange.response), facts.exchange.response.text) == ("hm", None)


PRINTED = "media_resolution=None executable_code=None function_call=None function_response=None text='' thought=None"


@pytest.mark.parametrize(("counts", "word"), [((5, 0), "EMPTY ANSWER"), ((5, 8), "END NOT RECORDED")])
def test_the_last_part_of_geminis_stream_as_python_prints_it_is_no_answer(tmp_path, counts, word):
    used = dict(zip(("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"), counts, strict=True))
    seen = show(traces(span(1, chat([message_of(text(PRINTED))], [GO], **used))), tmp_path)
    assert (words(seen), texts(seen)) == ([word], [None])


@pytest.mark.parametrize(("finish", "counts", "word", "said_text"), [
    ("COMPLETE", {}, "END NOT RECORDED", None), ("TOOL_CALL", {}, "END NOT RECORDED", None),
    ("MAX_TOKENS", {}, "TRUNCATED", None), ("COMPLETE", {"gen_ai.usage.output_tokens": 1}, "COMPLETE", "[]"),
    ("COMPLETE", {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 0}, "EMPTY ANSWER", None)])
def test_no_parts_as_openllmetry_writes_them_for_cohere_are_no_text(tmp_path, finish, counts, word, said_text):
    """It writes `[]` for an empty answer, and for every streamed one, with or without text and calls."""
    held = {"gen_ai.system": "Cohere", "llm.request.type": "chat", "gen_ai.request.model": "command-a",
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Go.", "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "[]", "gen_ai.response.finish_reasons": [finish], **counts}
    seen = show(traces(span(1, held)), tmp_path)
    assert (words(seen), texts(seen)) == ([word], [said_text])


def test_a_call_beside_no_parts_is_a_call(tmp_path):
    held = {"gen_ai.system": "Cohere", "llm.request.type": "chat", "gen_ai.request.model": "command-a",
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Go.", "gen_ai.completion.0.content": "[]",
            "gen_ai.completion.0.tool_calls.0.id": "c1", "gen_ai.completion.0.tool_calls.0.name": "ls",
            "gen_ai.completion.0.tool_calls.0.arguments": '{"path": "/sr',
            "gen_ai.response.finish_reasons": ["MAX_TOKENS"]}
    seen = show(traces(span(1, held)), tmp_path)
    assert (words(seen), texts(seen), seen.responses[0].verdicts[0].call.name) == (["CALL HELD"], [None], "ls")


@pytest.mark.parametrize("said_text", ["a=None b=1 text=2", f"It prints: {PRINTED}"])
def test_another_text_with_such_members_stays_a_text(tmp_path, said_text):
    assert texts(show(traces(span(1, chat([message_of(text(said_text))], [GO]))), tmp_path)) == [said_text]


@pytest.mark.parametrize("held", ['{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}', '{"type": "thinking"}',
                                  '{"type": "function", "id": "c2", "name": "ls"}'])
def test_a_text_that_looks_like_a_block_and_is_none_stays_a_text(tmp_path, held):
    call = {"type": "tool_call", "id": "c2", "name": "ls", "arguments": {}}
    assert texts(show(traces(span(1, chat([message_of(text(held), call)], [GO], "tool_use"))), tmp_path)) == [held]


def test_the_word_in_a_message_of_haystack_as_python_prints_it(tmp_path):
    said_text = "Hi.', _meta={'finish_reason': 'stop'})"
    printed = (f"ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text=\"{said_text}\")], "
               "_name=None, _meta={'model': 'm', 'index': 0, 'finish_reason': 'length', 'usage': {}})")
    held = {"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": json.dumps({"replies": [printed]}),
            "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": said_text}
    seen = show(traces(span(1, held)), tmp_path)
    assert (stops(seen), texts(seen)) == (["max_tokens"], [said_text])
    for other in (["length"], [printed, printed], "length", [printed.replace("'length'", "None")]):
        assert stops(show(traces(span(1, {**held, "output.value": json.dumps({"replies": other})})), tmp_path)) == [
            "unknown"]


def test_a_word_that_python_printed_for_none_is_no_word(tmp_path):
    assert words(show(traces(span(1, chat([message_of(text("Hi."))], [GO], "None"))), tmp_path)) == ["END NOT RECORDED"]


AT = 1770000000000000000
"""The start of the span 0."""


def timed_span(number: int, ends: int, attributes: Row, **more: Any) -> Row:
    return span(number, attributes, endTimeUnixNano=str(AT + ends), **more)


BARE: Row = {**NATIVE, "gen_ai.request.model": "gpt-5", "gen_ai.usage.output_tokens": 3,
             "anthropic.message.stop_reason": "max_tokens"}


def test_a_span_of_the_client_alone_is_the_answer_of_the_one_span_around_its_time(tmp_path):
    """LangChain's message of a streamed answer names no response, and a client's span has no parent."""
    outer = timed_span(1, 9, chat([message_of(text("Hi."))], [GO], None, **{"gen_ai.usage.output_tokens": 3}))
    seen = show(traces(outer, timed_span(2, 8, BARE, trace="t2")), tmp_path)
    assert (stops(seen), texts(seen)) == (["max_tokens"], ["Hi."])
    assert "hold what another span holds, or a part of it: 1" in notices(seen)


@each_row(("ends", "more", "others"), [
    (10, {}, []), (8, {"gen_ai.usage.output_tokens": 4}, []), (8, {"gen_ai.request.model": "o9"}, []),
    (8, {}, [timed_span(0, 20, chat([message_of(text("Ho."))], [GO], None), trace="t3")]),
    (8, {}, [timed_span(3, 7, BARE, trace="t3")]), (8, {"gen_ai.output.messages": "[]"}, []),
])
def test_a_span_that_may_be_of_another_answer_stays(tmp_path, ends, more, others):
    outer = timed_span(1, 9, chat([message_of(text("Hi."))], [GO], None, **{"gen_ai.usage.output_tokens": 3}))
    seen = show(traces(outer, timed_span(2, ends, {**BARE, **more}, trace="t2"), *others), tmp_path)
    assert len(seen.responses) == 2 + len(others)


def test_a_span_of_a_client_is_not_joined_to_an_answer_that_names_another_response(tmp_path):
    held = chat([message_of(text("Hi."))], [GO], None, **{"gen_ai.response.id": "msg_other_0123456789"})
    assert len(show(traces(timed_span(1, 9, held), timed_span(2, 8, BARE, trace="t2")), tmp_path).responses) == 2


def test_a_call_in_the_content_and_beside_it_is_one_call(tmp_path):
    block = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
    calls = [{"id": "c1", "name": "ls", "args": {"path": "."}, "type": "tool_call"}]
    held = of_langchain({"stop_reason": "tool_use"}, content=[block], tool_calls=calls)
    (facts,) = show(traces(span(1, held)), tmp_path).responses
    assert [(each.call.id, each.call.arguments) for each in facts.verdicts] == [("c1", '{"path": "."}')]


@pytest.mark.parametrize("parent", ["", "s2"])
def test_the_stop_word_of_the_clients_span_is_not_lost_with_it(tmp_path, parent):
    outer = chat([message_of(text("Hi."), finish_reason="")], [GO], None,
                 **{"gen_ai.response.id": "msg_0123456789abcdef"})
    inner = {**NATIVE, "anthropic.message.stop_reason": "max_tokens"}
    seen = show(traces(span(1, inner, parent), span(2, outer)), tmp_path)
    assert (stops(seen), texts(seen)) == (["max_tokens"], ["Hi."])
    (evidence,) = (each for each in seen.responses[0].judgement.stop.evidence if each.rule.startswith("otlp"))
    assert b"anthropic.message.stop_reason" in seen.responses[0].exchange.body[evidence.at.start : evidence.at.end]


def test_logfire_of_the_agents_sdk_keeps_the_answer_apart_from_the_request(tmp_path):
    answer = {"role": "assistant", "content": "Hi.", "tool_calls": None}
    go = {"role": "user", "content": "go"}
    held = {"logfire.span_type": "span", "gen_ai.system": "openai", "gen_ai.request.model": "m",
            "input": json.dumps([go]), "output": json.dumps([answer]),
            "request_data": json.dumps({"model": "m", "messages": [go, answer]})}
    (facts,) = show(traces(span(1, held)), tmp_path).responses
    assert facts.exchange.response.text == "Hi."
    assert [each.text for each in inputs_of(with_messages(held))] == ["go"]


def test_the_object_of_a_streamed_answer_of_the_agents_sdk_stands_in_a_list(tmp_path):
    answer = json.dumps([{"id": "__fake_id__", "status": None, "output": [message(), ITEM]}])
    of_logfire = {"logfire.span_type": "span", "gen_ai.system": "openai", "gen_ai.request.model": "m",
                  "output": answer, "request_data": '{"model": "m"}'}
    for held in (of_object(answer), of_logfire):
        (facts,) = show(traces(span(1, held)), tmp_path).responses
        assert (facts.exchange.response.text, facts.verdicts[0].call.arguments) == ("Hi.", '{"path": "')


@pytest.mark.parametrize("more", [{"status": {"code": 2}}, {"status": {"code": 1}}])
def test_a_tool_whose_span_failed_may_not_have_run(tmp_path, more):
    """The Agents SDK and MCP's servers word an error as they like; the status of the tool's span is no wording."""
    call = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": '{"path": "'}
    ran = span(2, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1",
                   "gen_ai.tool.call.result": "That did not work."}, **more)
    seen = show(traces(span(1, chat([message_of(call)], [GO], "length")), ran), tmp_path)
    assert words(seen) == (["CALL HELD"] if more["status"]["code"] == 2 else ["CUT CALL RUN"])


def test_the_words_of_the_agents_sdk_for_arguments_that_it_could_not_read_do_not_say_that_the_call_ran(tmp_path):
    call = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": '{"path": "'}
    told = message_of({"type": "tool_call_response", "id": "c1",
                       "response": "An error occurred while running the tool. Please try again."}, role="tool")
    seen = show(traces(span(1, chat([message_of(call)], [GO], "length")),
                       span(2, chat([message_of(text("So."))], [GO, message_of(call), told]))), tmp_path)
    assert [each.finding.rule for each in seen.findings if each.finding.rule.startswith("agent.")] == [
        "agent.failed_held_call"]


def test_logfires_span_of_responses_of_the_agents_sdk_holds_the_answer_as_an_object(tmp_path):
    asked = {"role": "user", "content": "go"}
    events = [{"event.name": "gen_ai.user.message", **asked}, {"event.name": "gen_ai.assistant.message", **asked}]
    held = {"logfire.span_type": "span", "gen_ai.system": "openai", "gen_ai.request.model": "m",
            "raw_input": json.dumps([asked]), "events": json.dumps(events),
            "response": json.dumps({"id": "r1", "status": "incomplete", "output": [message(), ITEM],
                                    "incomplete_details": {"reason": "max_output_tokens"}})}
    (facts,) = show(traces(span(1, held)), tmp_path).responses
    assert (facts.exchange.response.text, facts.verdicts[0].call.arguments) == ("Hi.", '{"path": "')
    assert [each.text for each in inputs_of(with_messages(held))] == ["go"]


# -- An answer of nothing ----------------------------------------------------------------------------------------------


@each_row(("counts", "word"), [
    ((9, 0), "EMPTY ANSWER"), ((9, 3), "END NOT RECORDED"), ((0, 0), "END NOT RECORDED"),
    ((None, None), "END NOT RECORDED")])
def test_the_counts_show_that_an_answer_is_empty(tmp_path, counts, word):
    names = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    held = {name: value for name, value in zip(names, counts, strict=True) if value is not None}
    assert words(show(traces(span(1, chat([], [GO], **held))), tmp_path)) == [word]


def test_arguments_that_were_left_out_are_not_called_broken(tmp_path):
    """Pydantic AI leaves out the arguments of calls with the other contents."""
    held = chat([message_of({"type": "text"}, {"type": "tool_call", "id": "c1", "name": "ls"})], [GO], "tool_call")
    seen = show(traces(span(1, held)), tmp_path)
    assert (words(seen), seen.responses[0].verdicts[0].admission.value) == (["END NOT RECORDED"], "held")


def test_a_call_of_gemini_without_arguments_is_whole(tmp_path):
    held = chat([{"role": "model", "parts": [{"functionCall": {"name": "now"}}]}], [GO], "STOP")
    (facts,) = show(traces(span(1, held)), tmp_path).responses
    assert (facts.verdicts[0].call.arguments, facts.verdicts[0].admission.value) == ("{}", "ready")


def test_a_request_that_failed_is_failed_beside_the_record_of_its_message(tmp_path):
    """With contents in log records, the span of a failed request has a record of the request alone."""
    failed = span(1, {**chat([], word=None), "error.type": "Timeout"}, status={"code": 2, "message": "timed out"})
    seen = show(both([failed], record(USER, {"content": "go"}, 1)), tmp_path)
    assert stops(seen) == ["error"]
    assert "unexpected type" not in notices(seen)


# -- Strands Agents ----------------------------------------------------------------------------------------------------


def of_strands(number: int, word: str, answer: Any, *asked: tuple[str, Any]) -> Row:
    told = [(f"gen_ai.{role}.message", {"content": json.dumps(parts)}) for role, parts in asked]
    told.append(("gen_ai.choice", {"finish_reason": word, "message": json.dumps(answer)}))
    events = [{"name": name, "attributes": [{"key": key, "value": {"stringValue": value}}
                                            for key, value in held.items()]} for name, held in told]
    return span(number, {"gen_ai.operation.name": "chat", "gen_ai.system": "strands-agents",
                         "gen_ai.request.model": "m"}, events=events)


USED = [{"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}, {"text": "Look."},
        {"toolUse": {"toolUseId": "t1", "name": "ls", "input": {"path": "."}}}]


@pytest.mark.parametrize(("why", "stop", "admission"), [
    ("Error: Validation failed for input parameters: 1 validation error for LsTool\npath\n  Field required",
     "malformed_tool_call", ["held", "held"]),
    ("Error: no such folder", "tool_call", ["ready", "ready"])])
def test_a_refused_call_with_nothing_was_no_json(why, stop, admission, tmp_path):
    """Strands writes `{}` for arguments that it could not parse, so the call that ran beside it was in a cut answer."""
    go, lost = ("user", [{"text": "go"}]), {"toolUse": {"toolUseId": "t2", "name": "ls", "input": {}}}
    results = [{"toolResult": {"toolUseId": key, "status": status, "content": [{"text": said}]}}
               for key, status, said in (("t1", "success", "a.py"), ("t2", "error", why))]
    seen = show(traces(of_strands(1, "tool_use", [*USED, lost], go), of_strands(
        2, "end_turn", [{"text": "Done."}], go, ("assistant", [*USED, lost]), ("tool", results))), tmp_path)
    assert (stops(seen)[0], [each.admission.value for each in seen.responses[0].verdicts]) == (stop, admission)


def test_parts_of_bedrock_in_an_event_are_parts(tmp_path):
    go = ("user", [{"text": "go"}])
    result = {"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"text": "no such file"}]}}
    seen = show(traces(
        of_strands(1, "tool_use", USED, go),
        of_strands(2, "end_turn", [{"text": "Done."}], go, ("assistant", USED), ("tool", [result]))), tmp_path)
    assert (stops(seen), texts(seen)) == (["tool_call", "end_turn"], ["Look.", "Done."])
    first, second = (facts.exchange for facts in seen.responses)
    assert thought(first.response) == "hm"
    assert [(each.id, each.name, each.arguments) for each in first.response.tool_calls] == [
        ("t1", "ls", '{"path": "."}')]
    (part,) = second.request.messages[0].parts
    assert (part.call_id, part.text, part.is_error) == ("t1", "no such file", True)


@pytest.mark.parametrize(("word", "stop"), [
    ("content_filtered", "safety_blocked"), ("guardrail_intervened", "safety_blocked"),
    ("model_context_window_exceeded", "context_window_exceeded")])
def test_the_words_of_bedrock_are_known(word, stop, tmp_path):
    assert stops(show(traces(of_strands(1, word, [{"text": "Hi."}])), tmp_path)) == [stop]


@each_row(("answer", "said_text"), [([], None), ([1, 2], "[1, 2]"), (7, "7"), ("Hi.", '"Hi."')])
def test_a_choice_whose_message_is_no_list_of_parts_is_its_text(answer, said_text, tmp_path):
    assert texts(show(traces(of_strands(1, "end_turn", answer)), tmp_path)) == [said_text]


# -- AI SDK ------------------------------------------------------------------------------------------------------------

USING = {"gen_ai.system": "openai.chat", "gen_ai.request.model": "m"}


def of_ai_sdk(output: Row, arguments: Any = '{"path": "', word: str = "length") -> str:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "ls", "input": arguments}
    asked = [{"role": "user", "content": [{"type": "text", "text": "go"}]}, {"role": "assistant", "content": [call]},
             {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "ls", **output}]}]
    made = json.dumps([{key: value for key, value in call.items() if key != "type"}])
    return traces(
        span(1, {**USING, "ai.response.finishReason": word, "ai.response.toolCalls": made,
                 "ai.prompt.messages": json.dumps(asked[:1])}),
        span(2, {**USING, "ai.response.finishReason": "stop", "ai.response.text": "Done.",
                 "ai.prompt.messages": json.dumps(asked)}))


@pytest.mark.parametrize("output", [
    {"output": {"type": "text", "value": "a.py"}}, {"result": "a.py"}, {"output": "a.py"},
    {"output": {"type": "content", "value": [{"type": "text", "text": "a.py"}]}}])
def test_a_result_in_the_prompt_of_the_ai_sdk_belongs_to_its_call(tmp_path, output):
    seen = show(of_ai_sdk(output, '{"path": "."}', "tool-calls"), tmp_path)
    (part,) = seen.responses[1].exchange.request.messages[0].parts
    assert (part.call_id, part.text, part.is_error) == ("c1", "a.py", False)
    assert (words(seen), "no result" in notices(seen)) == (["COMPLETE"], False)


def test_a_call_that_the_ai_sdk_refused_did_not_run(tmp_path):
    refused = {"type": "error-text", "value": "Invalid input for tool ls: JSON parsing failed: Text: {"}
    seen = show(of_ai_sdk({"output": refused}), tmp_path)
    (part,) = seen.responses[1].exchange.request.messages[0].parts
    assert part.is_error
    assert words(seen) == ["CALL HELD"]
    assert words(show(of_ai_sdk({"output": {"type": "text", "value": "a.py"}}), tmp_path)) == ["CUT CALL RUN"]


def test_the_last_result_is_in_the_span_of_the_ai_sdks_tool(tmp_path):
    made = json.dumps([{"toolCallId": "c1", "toolName": "ls", "input": {"path": "."}}])
    answer = span(1, {**USING, "ai.response.finishReason": "tool-calls", "ai.response.toolCalls": made})
    tool = span(2, {"ai.toolCall.name": "ls", "ai.toolCall.id": "c1", "ai.toolCall.result": "a.py"})
    assert [each.result.text for each in show(traces(answer, tool), tmp_path).inputs[0].answers] == ["a.py"]


# -- ADK ---------------------------------------------------------------------------------------------------------------


def test_the_messages_of_a_stream_of_which_the_last_has_the_word_are_one_answer(tmp_path):
    pieces = [message_of(text("Hi"), finish_reason=""), message_of(text(" you."), finish_reason=""),
              message_of(finish_reason="length")]
    assert texts(show(traces(span(1, chat(pieces, [GO], "length"))), tmp_path)) == ["Hi you."]


@pytest.mark.parametrize("words_of_messages", [("stop", "length"), ("stop", ""), ("", "")])
def test_other_messages_with_texts_are_not_joined(words_of_messages):
    held = [message_of(text("Hi"), finish_reason=word) for word in words_of_messages]
    assert len(outputs_of({"gen_ai.output.messages": json.dumps(held)})) == 2


def adk(kind: str, key: str, name: str = "") -> Row:
    return {"type": "tool_call", "id": key, "name": name, "arguments": {}} if kind == "call" else {
        "type": "tool_call_response", "id": key, "response": {"result": "a.py"}}


@pytest.mark.parametrize("key", ["ls_1", "adk-857c5f7a-1f4e-4be5"])
def test_a_result_with_an_id_made_of_its_place_answers_the_call_of_its_name(tmp_path, key):
    first = chat([message_of(text("Look."), adk("call", key, "ls"), finish_reason="stop")], [GO], "stop")
    asked = [GO, message_of(text("Look."), adk("call", "ls_1", "ls")), message_of(adk("result", "ls_0"), role="user")]
    seen = show(traces(span(1, first), span(2, chat([message_of(text("Done."))], asked))), tmp_path)
    assert (words(seen), len(seen.turns)) == (["COMPLETE"], 1)
    assert "no result" not in notices(seen)
    (part,) = seen.responses[1].exchange.request.messages[0].parts
    assert part.call_id == seen.responses[0].verdicts[0].call.id == "ls_0"


def test_made_ids_keep_the_order_of_calls_and_other_ids_stay():
    asked = [message_of(text("Look."), adk("call", "ls_1", "ls"), adk("call", "cat_2", "cat"),
                        adk("call", "ls_3", "ls")),
             message_of(adk("result", "ls_0"), adk("result", "cat_1"), adk("result", "ls_2"), role="user"),
             message_of(adk("call", "call_7", "ls"), adk("call", "ls_x", "ls")),
             message_of(adk("result", "call_7"), role="user")]
    found = inputs_of({"gen_ai.input.messages": json.dumps(asked)})
    assert [[key for key, _, _ in each.calls] or [part.call_id for part in each.results] for each in found] == [
        ["ls_0", "cat_0", "ls_1"], ["ls_0", "cat_0", "ls_1"], ["call_7", "ls_x"], ["call_7"]]
    (plain,) = outputs_of({"gen_ai.output.messages": json.dumps([message_of(CALL)])})
    assert plain.calls[0][0] == CALL["id"]


def test_the_answer_and_the_result_in_adks_own_attributes_are_read(tmp_path):
    """Its spans `call_llm` and `execute_tool`."""
    def adk_span(number: int, contents: list[Row], content: Row, word: str) -> Row:
        names = {"llm_request": {"contents": contents}, "llm_response": {"content": content, "finish_reason": word},
                 "session_id": "h"}
        return span(number, {"gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "gemini-2.5-pro", **{
            f"gcp.vertex.agent.{name}": held if name == "session_id" else json.dumps(held)
            for name, held in names.items()}}, trace=f"t{number}")

    go, call = {"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": [
        {"functionCall": {"id": "c1", "name": "ls", "args": {}}}]}
    ran = span(2, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1",
                   "gcp.vertex.agent.tool_response": json.dumps({"result": "a.py"})}, trace="t1")
    seen = show(traces(adk_span(1, [go], call, "STOP"), ran, adk_span(
        3, [go, call], {"role": "model", "parts": [{"text": "Half"}]}, "MAX_TOKENS")), tmp_path)
    assert (stops(seen), texts(seen)) == (["tool_call", "max_tokens"], [None, "Half"])
    (part,) = seen.responses[1].exchange.request.messages[0].parts
    assert (part.call_id, json.loads(part.text)) == ("c1", {"result": "a.py"})


# -- Clients without a span around their requests ----------------------------------------------------------------------


def of_two_traces(first: Row, second: Row, parent: str = "") -> str:
    return traces(span(1, first, parent), span(2, second, parent, trace="t2"))


def test_a_request_in_a_trace_of_its_own_continues_the_answer_that_it_repeats_whole(tmp_path):
    call = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": '{"path": "'}
    told = message_of({"type": "tool_call_response", "id": "c1", "response": "a.py"}, role="tool")
    first = chat([message_of(call)], [GO], "length")
    second = chat([message_of(text("Done."))], [GO, message_of(call), told])
    seen = show(of_two_traces(first, second), tmp_path)
    assert (words(seen), len(seen.turns)) == (["CUT CALL RUN"], 1)
    # Where a span stands around the requests, the traces keep them apart.
    assert len(show(of_two_traces(first, second, "s9"), tmp_path).turns) == 2


@each_row("asked", [
    [], [message_of(text("other"), role="user"), message_of(text("Hi."))], [GO, message_of(text("Ho."))], [GO]])
def test_a_request_that_repeats_less_stays_alone(tmp_path, asked):
    more = message_of(text("and now?"), role="user")
    first, second = chat([message_of(text("Hi."))], [GO]), chat([message_of(text("So."))], [*asked, more])
    assert len({turn.conversation for turn in show(of_two_traces(first, second), tmp_path).turns}) == 2


# -- A word that names no reason ---------------------------------------------------------------------------------------


def test_the_word_error_does_not_show_that_the_provider_failed(tmp_path):
    """openai-v2 writes it where no reason came, OpenLLMetry for Gemini's `OTHER`, Pydantic AI for a malformed call."""
    held = chat([message_of(text("Half"))], [GO], "error")
    seen = show(traces(span(1, held)), tmp_path)
    assert (words(seen), texts(seen)) == (["END NOT RECORDED"], ["Half"])
    stop = seen.responses[0].judgement.stop
    assert (stop.raw, "gave no reason" in (stop.evidence[-1].note or "")) == (None, True)


def test_a_span_that_failed_says_more_than_the_word_error(tmp_path):
    failed = span(1, {**chat([message_of(text("Half"))], [GO], "error"), "error.type": "RemoteProtocolError"},
                  status={"code": 2, "message": "peer closed connection"})
    seen = show(traces(failed), tmp_path)
    assert (stops(seen), texts(seen)) == (["error"], ["Half"])
    assert seen.responses[0].exchange.response.error.message == "peer closed connection"


def test_the_word_error_of_the_ai_sdk_is_an_error(tmp_path):
    held = {**USING, "ai.response.finishReason": "error", "ai.response.text": "Half"}
    assert stops(show(traces(span(1, held)), tmp_path)) == ["error"]


def test_each_call_has_the_next_run_of_its_tool_also_where_runs_began_at_one_time(tmp_path):
    call = {"type": "tool_call", "name": "ls", "arguments": {}}
    made = message_of({**call, "id": "c1"}, {**call, "id": "c2"})
    ran = [span(number, {"openinference.span.kind": "TOOL", "tool.name": "ls", "output.value": output}, "s9",
                startTimeUnixNano=str(AT + at)) for number, at, output in ((4, 7, "late"), (2, 5, "a"), (3, 5, "b"))]
    seen = show(traces(span(1, chat([made], [GO], "tool_calls"), "s9"), *ran), tmp_path)
    assert [(each.result.call_id, each.result.text) for each in seen.inputs[0].answers] == [("c1", "a"), ("c2", "b")]


# -- Microsoft's Agent Framework, LiteLLM ------------------------------------------------------------------------------


def test_a_conversation_called_after_a_response_continues_that_response(tmp_path):
    """With Responses, the Agent Framework sends the results alone."""
    call = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": '{"path": "'}
    told = message_of({"type": "tool_call_response", "id": "c1", "response": "a.py"}, role="tool")
    first = span(1, chat([message_of(call)], [GO], "length", **{"gen_ai.response.id": "resp_1"}), "s9")
    second = span(2, chat([message_of(text("Done."))], [told], **{"gen_ai.conversation.id": "resp_1"}), "s9")
    seen = show(traces(first, second), tmp_path)
    assert (words(seen), len(seen.turns)) == (["CUT CALL RUN"], 1)


@pytest.mark.parametrize("asked", [{}, {"gen_ai.request.choice.count": 2}])
def test_the_calls_of_litellm_stand_beside_the_message(tmp_path, asked):
    """Under the number of the call, also for a second call."""
    calls = {f"gen_ai.completion.{number}.function_call.{name}": held for number, arguments in enumerate(
        ('{"path": "."}', '{"path": "')) for name, held in (("name", "ls"), ("arguments", arguments))}
    held = chat([message_of(text("Look."), finish_reason="tool_calls")], [GO], "tool_calls", **calls, **asked)
    (facts,) = show(traces(span(1, held)), tmp_path).responses
    assert facts.exchange.response.text == "Look."
    assert [(each.call.name, each.call.arguments) for each in facts.verdicts] == [
        ("ls", '{"path": "."}'), ("ls", '{"path": "')]


# -- MLflow: the chunks of a stream ------------------------------------------------------------------------------------


def of_mlflow_stream(chunks: list[Any], **more: Any) -> Row:
    """A span with MLflow's own account of a streamed answer, and with the chunks that the client received."""
    made = {"id": "x", "model": "m", "choices": [{"finish_reason": "stop", "message": {"content": "Look."}}]}
    events = [{"name": f"mlflow.chunk.item.{number}", "attributes": {
        "mlflow.chunk.value": each if isinstance(each, str) else json.dumps(each)}}
        for number, each in enumerate(chunks)]
    return span(1, {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanOutputs": json.dumps(made)}, events=events, **more)


def piece_of(word: str | None = None, **delta: Any) -> Row:
    return {"id": "x", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": word}]}


CUT_CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "'}}
TOTALS = {"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}


def test_the_chunks_of_a_stream_say_how_it_ended_and_mlflow_does_not(tmp_path):
    chunks = [piece_of(role="assistant", content="Look."), piece_of(tool_calls=[CUT_CALL]), piece_of("length"), TOTALS]
    (facts,) = show(traces(of_mlflow_stream(chunks)), tmp_path).responses
    response = facts.exchange.response
    assert (facts.judgement.stop.normalized.value, response.text) == ("max_tokens", "Look.")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (9, 3)
    assert [(each.call.id, each.call.arguments) for each in facts.verdicts] == [("c1", '{"path": "')]


def test_a_stream_that_broke_off_has_no_word(tmp_path):
    chunks = [piece_of(role="assistant", content="Look."), piece_of(content=" He")]
    failed = of_mlflow_stream(chunks, status={"code": "STATUS_CODE_ERROR", "message": "connection reset"})
    seen = show(traces(failed), tmp_path)
    assert (stops(seen), texts(seen)) == (["error"], ["Look. He"])
    assert words(show(traces(of_mlflow_stream(chunks)), tmp_path)) == ["END NOT RECORDED"]


@each_row("chunks", [["Look"], ['{"choices": ['], [{"content": "Look"}], ["", "{}"]])
def test_chunks_of_no_known_api_leave_the_answer_as_it_is(tmp_path, chunks):
    assert texts(show(traces(of_mlflow_stream(chunks)), tmp_path)) == ["Look."]


def test_the_input_of_a_request_of_responses_that_mlflow_kept_joins_the_answers(tmp_path):
    asked = [{"role": "user", "content": "go"}]
    told = {"type": "function_call_output", "call_id": "c1", "output": "a.py"}

    def of_responses(number: int, items: list[Row], *output: Row) -> Row:
        return span(number, {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": json.dumps({"input": items}),
                             "mlflow.spanOutputs": json.dumps({"id": f"r{number}", "status": "completed",
                                                               "output": list(output)})}, trace=f"t{number}")

    seen = show(traces(of_responses(1, asked, ITEM), of_responses(2, [*asked, ITEM, told], message())), tmp_path)
    assert (words(seen), len(seen.turns)) == (["CUT CALL RUN"], 1)
