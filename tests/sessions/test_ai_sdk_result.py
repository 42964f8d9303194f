"""Results of Vercel's AI SDK as JSON: steps, the SDK's word and the provider's, calls and what became of them."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers.recognition import choose
from loop_core.values import ArgsForm, CallKind, ToolCall
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words

CALL = {"type": "tool-call", "toolCallId": "c", "toolName": "weather", "input": {"city": "Rome"}}
DONE = {"type": "tool-result", "toolCallId": "c", "toolName": "weather", "input": {}, "output": {"t": 8}}


def step(*content, word="stop", **more):
    return {"content": [*content], "finishReason": word, "usage": {"inputTokens": 3, "outputTokens": 5},
            "request": {"body": {"max_tokens": 7}}, "response": {
                "id": "r", "modelId": "m-1", "timestamp": "2026-01-01T00:00:00.000Z"}, **more}


def part(text):
    return {"type": "text", "text": text}


def read(tmp_path, *steps):
    return show(json.dumps({"steps": steps}), tmp_path, name="result.json")


def test_a_result_and_a_single_step_are_recognised(tmp_path):
    for value in ({"steps": [step(part("hi"))]}, step(part("hi"))):
        assert choose(json.dumps(value).encode(), "x.json") == "ai-sdk-result"
    assert words(show(json.dumps(step(part("Half a"), word="length")), tmp_path, name="s.json")) == ["TRUNCATED"]
    assert choose(json.dumps({"steps": [{"finishReason": "stop"}]}).encode(), "x.json") != "ai-sdk-result"


def test_steps_are_answers_and_results_answer_their_calls(tmp_path):
    seen = read(tmp_path, step(part("I look."), CALL, DONE, word="tool-calls"),
                step({"type": "reasoning", "text": "hm"}, {"type": "source", "url": "u"}, part("It is 8.")))
    first, second = (facts.exchange for facts in seen.responses)
    (call,) = first.response.tool_calls
    assert (call.id, call.name, call.arguments, call.form) == ("c", "weather", '{"city": "Rome"}', ArgsForm.OBJECT)
    assert (first.model, first.request.max_tokens, first.response.usage.output_tokens) == ("m-1", 7, 5)
    assert (second.response.reasoning_content, second.response.text) == ("hm", "It is 8.")
    (results,) = [message.results for message in second.request.messages if message.results]
    assert [(each.call_id, each.text, each.is_error) for each in results] == [("c", '{"t": 8}', False)]
    assert (stops(seen), places(seen), words(seen)) == (
        ["tool_call", "end_turn"], [["request", "tool_result"]], ["COMPLETE"])


@each_row(("word", "raw", "stop", "native"), [
    ("length", None, "max_tokens", None), ("length", "max_tokens", "max_tokens", "max_tokens"),
    ("stop", "end_turn", "end_turn", "end_turn"), ("other", "end_turn", "unknown", None),
    ("stop", "MAX_TOKENS", "max_tokens", "MAX_TOKENS"), ("length", "stop", "max_tokens", None),
    ("stop", "a_new_word", "end_turn", None), ("content-filter", "SAFETY", "safety_blocked", "SAFETY"),
])
def test_the_word_of_the_sdk_and_that_of_the_provider(tmp_path, word, raw, stop, native):
    seen = read(tmp_path, step(part("Half a"), word=word, **({} if raw is None else {"rawFinishReason": raw})))
    reason = seen.responses[0].exchange.response.stop_reason
    assert (reason.normalized, reason.raw) == (stop, native)


def test_a_call_that_the_sdk_could_not_read_is_held_and_did_not_run(tmp_path):
    bad = {**CALL, "input": '{"city": "Ro', "invalid": True}
    why = {"type": "tool-error", "toolCallId": "c", "toolName": "weather",
           "error": "Invalid input for tool weather: JSON parsing failed: Text: {."}
    seen = read(tmp_path, step(bad, why, word="length"), step(part("Done.")))
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]
    assert seen.responses[0].exchange.refusals == {"c": "the agent refused its arguments: it did not run"}


@pytest.mark.parametrize(("counts", "word"), [((3, 0), "EMPTY ANSWER"), ((3, 5), "END NOT RECORDED")])
def test_only_the_counts_show_that_a_step_without_content_is_empty(tmp_path, counts, word):
    usage = dict(zip(("inputTokens", "outputTokens"), counts, strict=True))
    assert words(read(tmp_path, step(usage=usage))) == [word]


def test_other_parts_and_calls_that_the_provider_ran(tmp_path):
    seen = read(tmp_path, step({**CALL, "providerExecuted": True}, {"type": "file", "file": {}}, part("8.")))
    parts = seen.responses[0].exchange.response.parts
    assert [each.kind for each in parts if isinstance(each, ToolCall)] == [CallKind.SERVER]
    assert [each.type for each in parts if hasattr(each, "type")] == ["file"]


def test_results_of_ai_sdk_4(tmp_path):
    call = {"type": "tool-call", "toolCallId": "c", "toolName": "weather", "args": {"city": "Rome"}}
    counts = {"promptTokens": 3, "completionTokens": 5}
    result = {"text": "It is 8.", "finishReason": "stop", "usage": counts, "steps": [
        {"text": "I look.", "toolCalls": [call], "toolResults": [{**call, "type": "tool-result", "result": "8"}],
         "finishReason": "tool-calls", "usage": counts, "reasoning": "hm"},
        {"text": "It is 8.", "toolCalls": [], "toolResults": [], "finishReason": "stop", "usage": counts}]}
    seen = show(json.dumps(result), tmp_path, name="result.json")
    first = seen.responses[0].exchange.response
    assert (first.reasoning_content, first.text, first.tool_calls[0].arguments, first.usage.output_tokens) == (
        "hm", "I look.", '{"city": "Rome"}', 5)
    assert (stops(seen), words(seen)) == (["tool_call", "end_turn"], ["COMPLETE"])


def test_a_member_of_another_type_is_reported(tmp_path):
    seen = read(tmp_path, step(part("hi"), rawFinishReason=5))
    assert any("rawFinishReason is a number" in str(each) for each in seen.inputs[0].notices)
