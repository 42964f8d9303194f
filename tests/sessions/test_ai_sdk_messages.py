"""Messages that applications with the AI SDK store: their steps, calls that were cut or refused, broken streams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.importers.recognition import choose
from loop_core.values import CallKind
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words

Row = dict[str, Any]
STEP: Row = {"type": "step-start"}


def said(text: str, state: str = "done") -> Row:
    return {"type": "text", "text": text, "state": state}


def message(*parts: Row, role: str = "assistant", **more: Any) -> Row:
    return {"id": "m", "role": role, "parts": [*parts], **more}


def call(state: str, key: str = "c", **more: Any) -> Row:
    return {"type": "tool-ls", "toolCallId": key, "state": state, **more}


ASK = message({"type": "text", "text": "go"}, role="user")
RAN = call("output-available", input={"path": "."}, output="a.txt")
CUT = '{"path": "/sr'


def read(tmp_path: Any, *rows: Row) -> Any:
    return show(json.dumps([*rows]), tmp_path, name="chat.json")


def test_a_list_an_object_and_lines_are_read(tmp_path):
    rows = [ASK, message(STEP, said("Hi.")), ASK]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    for written in (json.dumps(rows), json.dumps({"id": "chat", "messages": rows}), lines):
        assert choose(written.encode(), "x.json") == "ai-sdk-messages"
        seen = show(written, tmp_path, name="chat.json")
        assert (words(seen), [facts.exchange.response.text for facts in seen.responses]) == (["END INFERRED"], ["Hi."])


@each_row("other", [
    {"role": "user", "parts": [said("go")]}, {"id": "m", "parts": [said("go")]}, message(role="user"),
    message({"type": "text", "content": "go"}), message({"text": "go"}), message(said("go"), {"type": "tool_call"})])
def test_other_messages_are_not_taken_for_those_of_the_sdk(other):
    assert choose(json.dumps([other]).encode(), "x.json") != "ai-sdk-messages"


@each_row("part", [
    STEP, said("go"), {"type": "reasoning", "text": "hm"}, {"type": "tool-invocation", "toolInvocation": {}},
    {"type": "dynamic-tool", "toolName": "ls"}, RAN, {"type": "file", "url": "u"}, {"type": "source-url"},
    {"type": "data-weather"}])
def test_each_type_of_part_is_one_of_the_sdk(part):
    assert choose(json.dumps([message(part)]).encode(), "x.json") == "ai-sdk-messages"


def test_each_step_is_an_answer(tmp_path):
    seen = read(tmp_path, message({"type": "text", "text": "be brief"}, role="system"), ASK, message(
        STEP, {"type": "reasoning", "text": "hm"}, said("Look."), RAN, STEP, said("One file."),
        {"type": "source-url", "url": "u"}, {"type": "data-note", "data": 1}))
    first, second = (facts.exchange for facts in seen.responses)
    (asked,) = first.response.tool_calls
    assert (asked.id, asked.name, asked.arguments, asked.kind) == ("c", "ls", '{"path": "."}', CallKind.FUNCTION)
    assert (first.response.text, first.response.reasoning_content, second.response.text) == ("Look.", "hm", "One file.")
    assert len(second.response.parts) == 1
    assert [part.text for part in second.request.messages[0].results] == ["a.txt"]
    assert (places(seen), stops(seen)) == ([["request", "tool_result"]], ["tool_call", "unknown"])
    assert words(seen) == ["END NOT RECORDED"], "a text that was cut looks like any other"


def test_a_message_without_marks_of_steps_is_one_answer(tmp_path):
    seen = read(tmp_path, ASK, message(said("Hi."), {"type": "file", "mediaType": "image/png"}))
    assert [len(facts.exchange.response.parts) for facts in seen.responses] == [2]


def test_cut_arguments_are_held_and_the_call_did_not_run(tmp_path):
    refused = call("output-error", rawInput=CUT, errorText="An error occurred.")
    seen = read(tmp_path, ASK, message(STEP, said("Look."), refused))
    (facts,) = seen.responses
    assert (facts.exchange.response.tool_calls[0].arguments, stops(seen)) == (CUT, ["max_tokens"])
    assert facts.exchange.refusals == {"c": "the agent could not parse its arguments: it did not run"}
    assert words(seen) == ["CALL HELD"]


def test_a_call_whose_arguments_did_not_fit_did_not_run(tmp_path):
    refused = call("output-error", rawInput={"path": 1}, errorText="An error occurred.")
    (facts,) = read(tmp_path, ASK, message(STEP, refused, STEP, said("No."))).responses[:1]
    assert (facts.verdicts[0].admission.value, facts.exchange.response.tool_calls[0].arguments) == (
        "rejected", '{"path": 1}')


def test_a_call_that_ran_and_failed_is_no_refused_one(tmp_path):
    failed = call("output-error", input={"path": "."}, errorText="no disk")
    (facts,) = read(tmp_path, ASK, message(STEP, failed)).responses
    assert (dict(facts.exchange.refusals), facts.verdicts[0].admission.value) == ({}, "ready")


def test_a_call_that_the_user_denied_did_not_run(tmp_path):
    denied = call("output-denied", input={"path": "."}, approval={"id": "a", "approved": False})
    (facts,) = read(tmp_path, ASK, message(STEP, denied, STEP, said("Well."))).responses[:1]
    assert "did not run" in facts.exchange.refusals["c"]


@each_row("part", [
    said("Lo", "streaming"), {"type": "reasoning", "text": "h", "state": "streaming"},
    call("input-streaming", input={"path": "/sr"}, rawInput=CUT), call("input-streaming", input={"path": "/sr"}),
    {"type": "tool-invocation", "toolInvocation": {"state": "partial-call", "toolCallId": "c", "toolName": "ls",
                                                   "args": {"path": "/sr"}}}])
def test_a_part_that_is_still_streamed_was_broken_off(tmp_path, part):
    seen = read(tmp_path, ASK, message(STEP, part), ASK)
    assert stops(seen) == ["interrupted"]
    (facts,) = seen.responses
    assert [verdict.admission.value for verdict in facts.verdicts] == ["held"] * len(facts.exchange.response.tool_calls)


@pytest.mark.parametrize(("state", "results"), [("result", ["a.txt"]), ("call", [])])
def test_a_call_of_ai_sdk_4(tmp_path, state, results):
    held = {"state": state, "toolCallId": "c", "toolName": "ls", "args": {"path": "."}, "result": "a.txt"}
    first, *others = read(tmp_path, ASK, message(
        STEP, {"type": "reasoning", "reasoning": "hm"}, {"type": "tool-invocation", "toolInvocation": held}, STEP,
        {"type": "text", "text": "One."})).responses
    (asked,) = first.exchange.response.tool_calls
    assert (asked.name, asked.arguments, first.exchange.response.reasoning_content) == ("ls", '{"path": "."}', "hm")
    assert [part.text for row in others[0].exchange.request.messages for part in row.results] == results


def test_a_dynamic_tool_and_one_of_the_provider(tmp_path):
    dynamic = {**call("input-available", "d", input={}), "type": "dynamic-tool", "toolName": "find"}
    hosted = call("output-available", "e", input={}, output="x", providerExecuted=True)
    (facts,) = read(tmp_path, ASK, message(STEP, dynamic, hosted)).responses
    assert [(each.name, each.kind) for each in facts.exchange.response.parts] == [
        ("find", CallKind.FUNCTION), ("ls", CallKind.SERVER)]


def test_an_early_result_is_none(tmp_path):
    early = call("output-available", input={}, output="so far", preliminary=True)
    seen = read(tmp_path, ASK, message(STEP, early, STEP, said("Done.")))
    assert not seen.responses[1].exchange.request.messages


@pytest.mark.parametrize(("word", "verdict"), [("stop", "COMPLETE"), ("length", "TRUNCATED")])
def test_the_word_that_the_application_adds_is_that_of_the_last_step(tmp_path, word, verdict):
    seen = read(tmp_path, ASK, message(
        STEP, RAN, STEP, said("One file."), metadata={"finishReason": word, "model": "gpt-5"}), ASK)
    assert (words(seen), stops(seen)[0], seen.responses[1].exchange.model) == ([verdict], "tool_call", "gpt-5")
    found = [each.rule for each in seen.responses[1].exchange.response.stop_reason.evidence]
    assert "ai_sdk.finish_reasons" in found


@pytest.mark.parametrize("after", [[said("Hi.")], [RAN, STEP, said("Hi.")]])
def test_an_earlier_part_without_an_end_is_no_broken_stream(tmp_path, after):
    """A server may leave out the event that ends reasoning."""
    seen = read(tmp_path, ASK, message(STEP, {"type": "reasoning", "text": "hm", "state": "streaming"}, *after), ASK)
    assert (words(seen), "interrupted" in stops(seen)) == (["END INFERRED"], False)


def test_what_the_model_did_not_write_is_not_the_last_part(tmp_path):
    rest = {"type": "data-note", "data": 1}
    assert stops(read(tmp_path, ASK, message(STEP, said("Lo", "streaming"), rest))) == ["interrupted"]


def test_a_message_with_nothing_but_the_beginning_of_a_step_is_an_answer_without_an_end(tmp_path):
    assert words(read(tmp_path, ASK, message(STEP), message())) == ["END NOT RECORDED"]


def test_a_member_of_another_type_is_reported(tmp_path):
    seen = read(tmp_path, ASK, message(STEP, said("Hi."), metadata="m"))
    assert any("metadata" in str(notice) for notice in seen.inputs[0].notices)


def test_a_word_hides_no_broken_stream(tmp_path):
    assert stops(read(tmp_path, ASK, message(STEP, said("Lo", "streaming"), metadata={"finishReason": "stop"}))) == [
        "interrupted"]


def test_an_unknown_role_is_counted(tmp_path):
    seen = read(tmp_path, ASK, message(said("x"), role="data"), message(STEP, said("Hi.")))
    assert any("data" in str(notice) for notice in seen.inputs[0].notices)
