"""Answers that only look finished: which rows find them, what is visible, what is quiet."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from loop_core.judge.classify import Judgement, judge
from loop_core.judge.endings import Ending, has_content, stop_strings
from loop_core.turn.policy import STRICT, ReasonSource, policy_ending
from loop_core.values import (
    At,
    CallKind,
    Evidence,
    FactQuote,
    Finding,
    OpaquePart,
    ReasoningPart,
    Request,
    Severity,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
)
from loop_core.wire import decode
from tests.scenes.rows import each_row
from tests.scenes.turns import REQUEST, call, reply

MARKUP = '<tool_call>{"name": "write", "arguments": {}}</tool_call>'
THOUGHT = ReasoningPart("I should write the file.")
DONE = At(start=10, end=16)


def judge_end(*parts: Any, stop: Stop = Stop.END_TURN, request: Request | None = REQUEST, **fields: Any) -> Judgement:
    return judge(reply(stop, *parts, **fields), request)


@each_row(("parts", "ending"), [
    ((), Ending.EMPTY_ANSWER),
    ((" \n",), Ending.EMPTY_ANSWER),
    ((THOUGHT,), Ending.REASONING_ONLY),
    ((THOUGHT, "\n\n"), Ending.REASONING_ONLY),
    ((ReasoningPart("", data="sealed"),), Ending.REASONING_ONLY),
    ((f"I will write it. {MARKUP}",), Ending.CALL_LEAKED),
    ((ReasoningPart(f"Now: {MARKUP}"),), Ending.CALL_LEAKED),
    (("<think>I should write the file.",), Ending.REASONING_ONLY),
    (("<think>I should.</think>", "\n"), Ending.REASONING_ONLY),
    (("<think>I should.</think>Done.",), None),
    (("<think>I should.</think>", OpaquePart("image", "{}")), None),
    ((f"<think>I should.</think>{MARKUP}",), Ending.CALL_LEAKED),
    (("done",), None),
    ((THOUGHT, "done"), None),
    ((ReasoningPart(f"Now: {MARKUP}"), "done"), None),
    ((f"```\n{MARKUP}\n```",), None),
    (("<tool_call>{\"name\": \"delete\"}</tool_call>",), None),
    ((MARKUP, call()), None),
    ((ToolCall(None, "", ""),), Ending.EMPTY_ANSWER),
])
def test_what_ends_an_answer_that_only_looks_finished(parts: tuple[Any, ...], ending: Ending | None) -> None:
    found = judge_end(*parts)
    assert found.ending is ending
    assert found.stop.raw == "stop"
    if ending is not None:
        assert found.stop.normalized is Stop.END_TURN, "the reason keeps its word"
        assert found.ending_sure
        assert [(f.rule, f.severity) for f in found.findings] == [(f"ending.{ending.value}", Severity.ERROR)]
        assert found.stop.evidence[-1].rule == f"ending.{ending.value}"


def test_reasoning_in_the_text_is_quoted() -> None:
    text = " <think>I should write the file."
    assert judge_end(text).stop.evidence[-1].quote == FactQuote("text", 1, len(text))


def test_a_tool_word_without_a_call_is_no_call() -> None:
    for parts in ((), ("I will",), (THOUGHT,), (ToolCall(None, "", ""),)):
        found = judge_end(*parts, stop=Stop.TOOL_CALL)
        assert (found.ending, found.stop.normalized, found.stop.detail) == (Ending.NO_CALL, Stop.TOOL_CALL, "no_calls")
    assert judge_end(MARKUP, stop=Stop.TOOL_CALL).ending is Ending.CALL_LEAKED, "here it is"
    assert judge_end(call(), stop=Stop.TOOL_CALL).ending is None


def test_messages_that_only_announce_what_comes_next_are_commentary() -> None:
    assert judge_end("First I read the rules.", native={"phase": "commentary"}).ending is Ending.COMMENTARY_ONLY
    assert judge_end("All done.", native={"phase": "final_answer"}).ending is None
    said = TextPart("First I read the rules.", "commentary")
    assert judge_end(said).ending is Ending.COMMENTARY_ONLY, "a transcript has the phases alone"
    assert judge_end(said, TextPart("All done.", "final_answer")).ending is None
    picture = OpaquePart("image", "{}")
    assert judge_end("Here it comes.", picture, native={"phase": "commentary"}).ending is None


@each_row("stop", sorted(set(Stop) - {Stop.END_TURN, Stop.TOOL_CALL}))
def test_an_answer_that_does_not_look_finished_is_none_of_these(stop: Stop) -> None:
    assert judge_end(stop=stop).ending is None
    assert judge_end(MARKUP, stop=stop).ending is None


def test_the_evidence_is_the_word_or_the_characters() -> None:
    word = StopReason(Stop.END_TURN, "stop", None, (Evidence("openai_chat.stop_reasons", DONE, "stop"),))
    empty = judge(replace(reply(Stop.END_TURN), stop_reason=word), REQUEST)
    assert empty.findings[0].at == DONE
    leak = judge_end(f"So: {MARKUP}").findings[0]
    assert leak.quote == FactQuote("text", 4, 4 + MARKUP.index('write"') + len("write"))
    assert judge_end(ReasoningPart(MARKUP)).findings[0].quote == FactQuote("reasoning", 0,
                                                                           MARKUP.index('write"') + len("write"))


def test_a_leaked_call_of_an_undeclared_tool_counts_where_no_tools_are_known() -> None:
    answer, undeclared = replace(reply(Stop.END_TURN), parts=(TextPart(MARKUP),)), replace(REQUEST, tools=())
    assert judge(answer, undeclared).ending is None, "a protocol of the agent's own"
    assert judge(answer, undeclared, tools_known=False).ending is Ending.CALL_LEAKED
    others = tuple(tool._replace(name="other") for tool in REQUEST.tools)
    assert judge(answer, replace(REQUEST, tools=others), tools_known=False).ending is None


# -- what is visible -------------------------------------------------------------------------------------------------


@each_row("part", [
    OpaquePart("message.audio", "{}"), OpaquePart("message.images", "{}"), OpaquePart("inlineData", "{}"),
    OpaquePart("inlineData", '{"inlineData": {"data": "AA=="}, "thought": false}'),
    OpaquePart("web_search_tool_result", "{}"), OpaquePart("compaction", "{}"), OpaquePart("hologram", "{}"),
    OpaquePart("shell_call_output", "{}"),
    *(ToolCall("s1", "tool", json.dumps({key: value}), True, CallKind.SERVER) for key, value in (
        ("result", "iVBORw0KGgo="), ("results", [{"text": "a"}]), ("outputs", [{"logs": "2"}]), ("output", "4"))),
])
def test_whatever_is_not_known_to_show_nothing_is_visible(part: Any) -> None:
    assert judge_end(part).ending is None
    assert judge_end(THOUGHT, part).ending is None


@each_row("part", [
    OpaquePart("message.annotations", "{}"), OpaquePart("mcp_list_tools", "{}"), OpaquePart("additional_tools", "{}"),
    OpaquePart("fallback", "{}"), OpaquePart("cachePoint", "{}"), OpaquePart("citationsContent", "{}"),
    OpaquePart("text.fields", "{}"), OpaquePart("inlineData", '{"inlineData": {}, "thought": true}'),
    ToolCall("s1", "web_search", '{"type": "web_search_call", "status": "completed"}', True, CallKind.SERVER),
    ToolCall("s1", "image", '{"result": null}', True, CallKind.SERVER),
    ToolCall("s1", "x", "no JSON", True, CallKind.SERVER),
])
def test_what_only_belongs_to_other_parts_shows_nothing(part: Any) -> None:
    assert judge_end(part).ending is Ending.EMPTY_ANSWER
    assert judge_end(THOUGHT, part).ending is Ending.REASONING_ONLY


@each_row(("api", "body"), [
    ("anthropic_messages", {"type": "message", "content": [{"type": "text", "text": None}], "stop_reason": "end_turn"}),
    ("anthropic_messages", {"type": "message", "content": [{"type": "text"}], "stop_reason": "end_turn"}),
    ("openai_responses", {"object": "response", "status": "completed", "output": [
        {"type": "message", "content": [{"type": "output_text", "text": None, "annotations": []}]}]}),
    ("openai_chat", {"choices": [{"message": {"content": [{"type": "text", "text": None}]}, "finish_reason": "stop"}]}),
    ("bedrock_converse", {"output": {"message": {"content": [{"text": None}]}}, "stopReason": "end_turn"}),
    ("gemini_generate", {"candidates": [{"content": {"parts": [{"text": None}]}, "finishReason": "STOP"}]}),
    ("cohere_chat", {"message": {"content": [{"type": "text", "text": None}]}, "finish_reason": "COMPLETE"}),
])
def test_a_text_that_is_null_or_absent_shows_nothing_in_any_format(api: str, body: dict[str, Any]) -> None:
    response = decode(api, json.dumps(body).encode())
    assert judge(response, None).ending is Ending.EMPTY_ANSWER
    for text in ("5", '{"value": "Hi"}'):  # a text of another form may be the answer
        response = decode("anthropic_messages", json.dumps({"type": "message", "content": [
            {"type": "text", "text": json.loads(text)}], "stop_reason": "end_turn"}).encode())
        assert judge(response, None).ending is None


@pytest.mark.parametrize("rule", ["frame.invalid", "frame.shape", "body.shape"])
def test_what_was_sent_and_not_read_may_have_been_the_answer(rule: str) -> None:
    assert judge_end(findings=(Finding(rule, Severity.WARNING, "x"),)).ending is None


def test_a_refusal_is_visible() -> None:
    assert has_content(reply(Stop.END_TURN, refusal="I will not"))


# -- stop strings ----------------------------------------------------------------------------------------------------


@each_row("extra", [
    {"stop": ["END"]}, {"stop": "END"}, {"stop_sequences": ["END"]}, {"generationConfig": {"stopSequences": ["END"]}},
    {"options": {"stop": ["END"]}}, {"inferenceConfig": {"stopSequences": ["END"]}},
    {"config": {"stopSequences": ["END"]}}, {"config": {"stop_sequences": ["END"]}},
    {"generation_config": {"stop_sequences": ["END"]}},
])
def test_a_stop_string_that_may_have_been_hit_makes_an_ending_unsure(extra: dict[str, Any]) -> None:
    asked = replace(REQUEST, extra=extra)
    assert stop_strings(asked) == ("END",)
    for parts in ((), (THOUGHT,)):
        found = judge_end(*parts, request=asked)
        assert found.ending is not None
        assert not found.ending_sure
        assert found.findings[0].severity is Severity.WARNING
    assert judge_end(stop=Stop.TOOL_CALL, request=asked).ending_sure, "no string ends an answer with a tool word"


@each_row("extra", [
    {"stop": 7}, {"stop": {"END": 1}}, {"stop": True}, {"stop": ""}, {"stop": []}, {"stop": None}, {"options": "END"},
])
def test_a_request_without_stop_strings_leaves_an_ending_sure(extra: dict[str, Any]) -> None:
    asked = replace(REQUEST, extra=extra)
    assert stop_strings(asked) == ()
    assert judge_end(request=asked).ending_sure


@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse", "cohere_chat"])
def test_a_word_that_would_tell_of_a_stop_string_is_believed(api: str) -> None:
    asked = replace(REQUEST, extra={"stop_sequences": ["END"]})
    assert judge(replace(reply(Stop.END_TURN), api=api), asked).ending_sure


def test_a_word_that_is_also_the_models_own_end_tells_of_no_stop_string() -> None:
    """`/v1/complete` says `stop_sequence` for both, so an empty answer is unsure only where strings were set."""
    body = b'{"type": "completion", "id": "c", "completion": "", "stop_reason": "stop_sequence", "model": "m"}'
    came = decode("anthropic_complete", body)
    assert judge(came, REQUEST).ending is Ending.EMPTY_ANSWER
    assert not judge(came, replace(REQUEST, extra={"stop_sequences": ["END"]})).ending_sure


def test_a_format_of_several_makers_may_not_tell_of_a_stop_string() -> None:
    """Mistral says `stop` for its own end and for a stop string alike."""
    asked = replace(REQUEST, extra={"stop": ["END"]})
    assert not judge(replace(reply(Stop.END_TURN, raw="stop"), api="bedrock_invoke"), asked).ending_sure


@pytest.mark.parametrize("field", ["stop_reason", "matched_stop"])
def test_a_server_that_names_what_it_hit_is_believed(field: str) -> None:
    asked = replace(REQUEST, extra={"stop": ["END"]})
    assert judge_end(request=asked, native={field: "END"}).ending is None
    token = judge_end(request=asked, native={field: "151645"})
    assert (token.ending, token.ending_sure) == (Ending.EMPTY_ANSWER, True), "a token's number is no string"


def test_what_a_stop_string_ended_is_quiet() -> None:
    assert judge(reply(Stop.END_TURN, raw="stop_sequence"), REQUEST).ending is None
    assert judge_end(native={"native_finish_reason": "stop_sequence"}).ending is None
    titan = b'{"results": [{"outputText": "", "completionReason": "STOP_CRITERIA_MET"}]}'
    assert judge(decode("bedrock_invoke", [titan]), REQUEST).ending is None


@pytest.mark.parametrize("native", [{"stop_reason": "</s>"}, {"native_finish_reason": "stop_sequence"}])
def test_a_tool_word_without_a_call_is_no_answer_though_a_stop_string_was_hit(native: dict[str, str]) -> None:
    assert judge_end("I will write it.", stop=Stop.TOOL_CALL, native=native).ending is Ending.NO_CALL


# -- silence that is wanted ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(), (THOUGHT,)])
def test_silence_may_be_what_was_asked_for(parts: tuple[Any, ...]) -> None:
    found, silent = judge_end(*parts), replace(STRICT, allow_silence=True)
    assert policy_ending(STRICT, found) is found.ending
    assert policy_ending(silent, found) is None
    assert policy_ending(silent, judge_end(MARKUP)) is Ending.CALL_LEAKED


def test_a_loop_that_goes_by_the_providers_words_does_not_look() -> None:
    assert policy_ending(replace(STRICT, reads=ReasonSource.MAPPED), judge_end()) is None
