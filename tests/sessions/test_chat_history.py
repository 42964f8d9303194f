"""Messages of Haystack and Semantic Kernel: the frameworks' words, calls as they keep them, and their results."""

from __future__ import annotations

import json
from typing import Any

from inspector.sessions.importers.recognition import choose
from loop_core.values import ArgsForm
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words

Row = dict[str, Any]


def haystack(role: str, *parts: Row, **meta: Any) -> Row:
    return {"role": role, "meta": meta, "name": None, "content": [*parts]}


def kernel(role: str, *items: Row, **more: Any) -> Row:
    return {"metadata": {}, "content_type": "message", "role": role, "items": [*items], **more}


def item(text: str) -> Row:
    return {"metadata": {}, "content_type": "text", "text": text}


def read(tmp_path: Any, *rows: Row) -> Any:
    written = [*rows] if "meta" in rows[0] else {"messages": [*rows]}
    return show(json.dumps(written), tmp_path, name="history.json")


ASKED = {"tool_name": "ls", "arguments": {"path": "."}, "id": "c", "extra": None}
CALL = {"metadata": {}, "content_type": "function_call", "id": "c", "name": "p-ls", "function_name": "ls"}
COUNTS = {"prompt_tokens": 5, "completion_tokens": 7}
GO, ASK = haystack("user", {"text": "go"}), kernel("user", item("go"))


def test_both_are_recognised_and_other_messages_are_not():
    for value in ([GO], {"messages": [ASK]}):
        assert choose(json.dumps(value).encode(), "x.json") == "chat-history"
    for other in ([{"role": "user", "content": "go"}], {"messages": [{"role": "user", "content": "go"}]}):
        assert choose(json.dumps(other).encode(), "x.json") != "chat-history"


@each_row("missing", ["role", "meta", "name", "content"])
def test_a_message_of_haystack_has_all_of_its_members(missing):
    bare = {name: held for name, held in GO.items() if name != missing} | {"beside": {"meta": {}}}
    assert choose(json.dumps([bare]).encode(), "x.json") != "chat-history"


@each_row(("word", "stop"), [
    ("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "safety_blocked"), (None, "unknown")])
def test_the_word_of_the_framework(tmp_path, word, stop):
    for rows in ((GO, haystack("assistant", {"text": "Hi."}, model="m", finish_reason=word, usage=COUNTS)),
                 (ASK, kernel("assistant", item("Hi."), ai_model_id="m", metadata={"usage": COUNTS},
                              **({} if word is None else {"finish_reason": word})))):
        seen = read(tmp_path, *rows)
        (exchange,) = (facts.exchange for facts in seen.responses)
        assert (stops(seen), exchange.response.text, exchange.model) == ([stop], "Hi.", "m")
        assert (exchange.response.usage.input_tokens, exchange.response.usage.output_tokens) == (5, 7)
        assert exchange.response.stop_reason.raw is None
        found = [each.rule for each in exchange.response.stop_reason.evidence]
        assert ("chat_history.finish_reasons" in found) is (word is not None)


@each_row(("count", "reasoning", "word"), [
    (0, None, "EMPTY ANSWER"), (7, None, "END NOT RECORDED"), (7, 0, "END NOT RECORDED"), (7, 5, "END NOT RECORDED"),
    (7, 7, "EMPTY ANSWER"), (5, 7, "END NOT RECORDED")])
def test_an_answer_without_content_is_empty_if_the_counts_say_so(tmp_path, count, reasoning, word):
    details = {"completion_tokens_details": {"reasoning_tokens": reasoning}, "prompt_tokens_details": None}
    counts = {**COUNTS, "completion_tokens": count, **details}
    assert words(read(tmp_path, GO, haystack("assistant", finish_reason="stop", usage=counts))) == [word]


def test_counts_of_reasoning_and_of_cached_tokens(tmp_path):
    counts = {**COUNTS, "completion_tokens_details": {"reasoning_tokens": 3},
              "prompt_tokens_details": {"cached_tokens": 2}}
    for rows in ((GO, haystack("assistant", {"text": "Hi."}, usage=counts)),
                 (ASK, kernel("assistant", item("Hi."), metadata={"usage": counts}))):
        assert read(tmp_path, *rows).responses[0].exchange.response.usage == (5, 7, 3, 2, None)


def test_calls_of_haystack_and_their_results(tmp_path):
    result = {"tool_call_result": {"result": "no such folder", "error": True, "origin": ASKED}}
    seen = read(
        tmp_path, GO, haystack("assistant", {"reasoning": {"reasoning_text": "hm", "extra": {}}}, {"text": "Look."},
                               {"tool_call": ASKED}, finish_reason="tool_calls"),
        haystack("tool", result), haystack("assistant", {"text": "It is not there."}, finish_reason="stop"))
    first, second = (facts.exchange for facts in seen.responses)
    (call,) = first.response.tool_calls
    assert (call.id, call.name, call.arguments, call.form) == ("c", "ls", '{"path": "."}', ArgsForm.OBJECT)
    assert first.response.reasoning_content == "hm"
    (part,) = second.request.messages[0].results
    assert (part.call_id, part.name, part.text, part.is_error) == ("c", "ls", "no such folder", True)
    assert (words(seen), places(seen)) == (["COMPLETE"], [["request", "tool_result"]])


@each_row(("meta", "stop", "admission"), [
    ({"finish_reason": None}, "unknown", "held"), ({}, "tool_call", "ready")])
def test_a_parsed_call_in_an_answer_for_which_no_word_came_is_held(tmp_path, meta, stop, admission):
    """Haystack copies the word of a provider: a result alone does not show that Claude's parsed call was whole."""
    result = {"tool_call_result": {"result": "a.py", "origin": ASKED, "error": False}}
    seen = read(tmp_path, GO, haystack("assistant", {"tool_call": ASKED}, **meta), haystack("tool", result))
    assert (stops(seen), seen.responses[0].verdicts[0].admission.value) == ([stop], admission)


def test_a_cut_call_that_semantic_kernel_refused_did_not_run(tmp_path):
    why = "The tool call arguments are malformed. Arguments must be in JSON format. Please try again."
    result = {"metadata": {}, "content_type": "function_result", "id": "c", "function_name": "ls", "result": why}
    whole = kernel("assistant", {**CALL, "id": "d", "arguments": '{"path": "."}'}, finish_reason="tool_calls")
    cut = kernel("assistant", {**CALL, "arguments": '{"path": "'}, item("Look."), finish_reason="length")
    seen = read(tmp_path, kernel("system", item("Be brief.")), ASK, cut, kernel("tool", result), whole)
    first, second = (facts.exchange for facts in seen.responses)
    (call,) = first.response.tool_calls
    assert (call.name, call.arguments, call.form, first.response.text) == (
        "p-ls", '{"path": "', ArgsForm.STRING, "Look.")
    assert first.refusals == {"c": "the agent refused its arguments: it did not run"}
    assert [part.name for part in second.request.messages[0].results] == ["ls"]
    assert words(seen) == ["CALL REPAIRED"]


def test_a_member_of_another_type_is_reported(tmp_path):
    seen = read(tmp_path, GO, {**haystack("assistant", {"text": "Hi."}), "meta": "m"})
    assert any("meta" in notice for notice in seen.inputs[0].notices)
