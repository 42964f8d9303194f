"""Chats of Gemini CLI: what the screen said of an end, results, records that change, and steps back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.scenes.rows import each_row
from tests.scenes.shapes import GEMINI
from tests.scenes.transcripts import places, rules, show, stops, words

Row = dict[str, Any]
HEAD = {"sessionId": "s-1", "projectHash": "p", "startTime": "2026-02-01T00:00:00Z", "kind": "main"}


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def row(key: str, kind: str, content: Any, **more: Any) -> Row:
    return {"id": key, "timestamp": "2026-02-01T00:00:01.000Z", "type": kind, "content": content, **more}


def reply(key: str, content: str, *calls: Row, **more: Any) -> Row:
    tokens = {"input": 100, "output": 7, "cached": 40, "thoughts": 5, "tool": 0, "total": 112}
    held = {"toolCalls": list(calls)} if calls else {}
    return row(key, "gemini", content, model="gemini-3-pro", tokens=tokens, **{**held, **more})


def call(status: str = "success", output: str = "ok", key: str = "run-1768510312836-c85bc7", **more: Any) -> Row:
    result = [{"functionResponse": {"id": key, "name": "run", "response": {"output": output}}}]
    return {"id": key, "name": "run", "args": {"command": "ls"}, "status": status, "result": result, **more}


def chat(*rows: Row) -> str:
    return json.dumps({**HEAD, "messages": list(rows)}, indent=2)


def lines(*rows: Row) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in (HEAD, *rows))


GO = row("u1", "user", "go")


def test_calls_results_counts_and_thoughts(tmp_path):
    thoughts = [{"subject": "Plan", "description": "look"}]
    seen = show(chat(GO, reply("g1", "Look.", call(), thoughts=thoughts), reply("g2", "Done.")), tmp_path)
    assert stops(seen) == ["tool_call", "unknown"]
    assert places(seen) == [["request", "tool_result"]]
    first = seen.responses[0].exchange
    usage = first.response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens) == (100, 12, 5, 40)
    assert (first.api, first.response.model) == ("gemini_generate", "gemini-3-pro")
    assert [part.text for part in first.response.parts[:2]] == ["Plan: look", "Look."]
    assert first.response.tool_calls[0].arguments == '{\n            "command": "ls"\n          }'
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "ok"
    assert "2 of 2 answers have no stop reason, as Gemini CLI keeps none for them" in notices(seen)


@each_row(("told", "stop"), [
    ("Response truncated due to token limits.", "max_tokens"),
    ("Response stopped due to safety reasons.", "safety_blocked"),
    ("Response stopped due to recitation policy.", "safety_blocked"),
    ("Response stopped due to unsupported language.", "safety_blocked"),
    ("Response stopped due to forbidden terms.", "safety_blocked"),
    ("Response stopped due to prohibited content.", "safety_blocked"),
    ("Response stopped due to sensitive personally identifiable information.", "safety_blocked"),
    ("Response stopped for other reasons.", "unknown"),
    ("Response stopped due to malformed function call.", "malformed_tool_call"),
    ("Response stopped due to image safety violations.", "safety_blocked"),
    ("Response stopped due to unexpected tool call.", "malformed_tool_call"),
    ("Response stopped due to prohibited image content.", "safety_blocked"),
    ("Response stopped because no image was generated.", "unknown"),
])
def test_what_the_screen_said_before_an_answer_is_its_end(told, stop, tmp_path):
    note = row("i1", "info", f"\u26a0\ufe0f  {told}")
    seen = show(chat(GO, note, reply("g1", "Hel")), tmp_path)
    assert stops(seen) == [stop]
    assert rules(seen)[:2] == ["transcript.recorder", "gemini_cli.stop_reasons"]
    assert seen.responses[0].exchange.response.raw_stop_reason is None
    assert seen.responses[0].judgement.stop.evidence[0].note == told
    assert stops(show(chat(GO, reply("g1", "Hel"), note, row("u2", "user", "on")), tmp_path)) == [stop]


def test_an_end_that_was_told_of_the_next_answer_is_not_of_the_one_before(tmp_path):
    note = row("i1", "info", "Response truncated due to token limits.")
    seen = show(chat(GO, reply("g1", "Look.", call()), note, reply("g2", "Hel")), tmp_path)
    assert stops(seen) == ["tool_call", "max_tokens"]
    alone = show(chat(GO, note, row("u2", "user", "again")), tmp_path)
    assert stops(alone) == ["max_tokens"]
    assert stops(show(chat(GO, note), tmp_path)) == ["max_tokens"]


@pytest.mark.parametrize(("status", "rejected", "error"), [("cancelled", True, True), ("error", False, True)])
def test_a_call_that_failed_or_was_cancelled(status, rejected, error, tmp_path):
    seen = show(chat(GO, reply("g1", "", call(status, "no"))), tmp_path)
    (answer,) = seen.inputs[0].answers
    assert answer.result.is_error is error
    assert bool(seen.responses[0].exchange.refusals) is rejected


@each_row("status", ["validating", "scheduled", "awaiting_approval", "executing"])
def test_a_call_that_is_open_has_no_result(status, tmp_path):
    seen = show(chat(GO, reply("g1", "", call(status, result=[{"functionResponse": {}}]))), tmp_path)
    assert seen.inputs[0].answers == ()
    assert stops(seen) == ["unknown"]


def test_cancelled_failed_and_other_notes(tmp_path):
    seen = show(chat(GO, reply("g1", "Hel"), row("i1", "info", "Request cancelled."), row("u2", "user", "on"),
                     row("i2", "info", "Request cancelled."), row("i3", "warning", "low on quota"),
                     row("e1", "error", "Failed to load extension"),
                     row("e2", "error", "[API Error: No quota (Status: RESOURCE_EXHAUSTED)]")), tmp_path)
    assert stops(seen) == ["cancelled", "error"]
    assert words(seen)[0] == "CANCELLED"
    assert "messages that stop a request of the user before any answer: 1" in notices(seen)
    assert "messages that are notes of the screen: 1" in notices(seen)
    assert [skip.why for skip in seen.inputs[0].skipped] == ["an error on the screen: Failed to load extension"]


def test_calls_that_a_note_parted_from_their_answer_belong_to_it(tmp_path):
    apart = row("g2", "gemini", "", toolCalls=[call()])
    seen = show(chat(GO, reply("g1", "Look."), row("i1", "info", "Update available!"), apart), tmp_path)
    assert stops(seen) == ["tool_call"]
    assert seen.responses[0].exchange.response.usage.output_tokens == 12


def test_a_message_counts_once_with_its_last_version(tmp_path):
    seen = show(lines(GO, reply("g1", "Lo"), row("u2", "user", "on"), reply("g1", "Look.", call()),
                      {"$set": {"summary": "A title"}}), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Look."]
    assert [facts.exchange.entry for facts in seen.responses] == [1]
    assert seen.inputs[0].about.title == "A title"


def test_all_messages_may_be_written_anew(tmp_path):
    seen = show(lines(GO, reply("g1", "one"), {"$set": {"messages": [GO, reply("g1", "two"), reply("g2", "three")]}}),
                tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["two", "three"]


def test_a_step_back_is_another_branch(tmp_path):
    seen = show(lines(GO, reply("g1", "one"), row("u2", "user", "left"), reply("g2", "two"), {"$rewindTo": "u2"},
                      row("u3", "user", "right"), reply("g3", "three")), tmp_path)
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "left", "right"]
    assert [turn.run.record.links[0].parent for turn in seen.turns] == [None, 0, 0]
    assert "records that go back to before a message of the user: 1" in notices(seen)


@pytest.mark.parametrize("kind", ["gemini", "model", "assistant"])
def test_older_names_of_the_model_and_cut_files_are_read(kind, tmp_path):
    seen = show(chat(GO, {"id": "g1", "type": kind, "parts": [{"text": "Hello"}, {"inlineData": {}}]}), tmp_path)
    assert seen.responses[0].exchange.response.text == "Hello\n[inlineData]"
    text = chat(GO, reply("g1", "one"), reply("g2", "two"))
    assert len(show(text[: text.index('"two"')], tmp_path).responses) == 1
    drift = json.dumps({"history": [{"role": "user", "parts": [{"text": "go"}]},
                                    {"role": "gemini", "parts": [{"text": "Hi"}]}], "meta": {"model": "gemini-x"}})
    seen = show(drift, tmp_path)
    assert (seen.turns[0].run.record.user_text, seen.responses[0].exchange.response.model) == ("go", "gemini-x")


def test_an_odd_member_and_an_unknown_type_are_told(tmp_path):
    rows = [GEMINI["messages"][0], {**GEMINI["messages"][1], "tokens": 1}, row("x", "hologram", "")]
    told = notices(show(json.dumps({**GEMINI, "messages": rows}), tmp_path))
    assert "message 2: tokens is a number, but an object was expected" in told
    assert "records of unknown type were skipped: hologram (1)" in told


def test_messages_that_set_replaces_repeat_calls_thoughts_and_results_in_their_parts(tmp_path):
    made = {"functionCall": {"id": "c1", "name": "run", "args": {"command": "ls"}}}
    result = {"functionResponse": {"id": "c1", "name": "run", "response": {"output": "ok"}}}
    first = reply("g1", "Look.", call(key="c1"), thoughts=[{"subject": "Plan", "description": "look"}])
    parts = [{"text": "**Plan** look", "thought": True}, {"text": "Look."}, made]
    later = [GO, {**first, "content": parts}, row("r1", "user", [result]), reply("g2", "Done.")]
    seen = show(lines(GO, first, reply("g2", "Done."), {"$set": {"messages": later}}, row("u2", "user", "more"),
                      reply("g3", "Well.")), tmp_path)
    assert [each.exchange.response.text for each in seen.responses] == ["Look.", "Done.", "Well."]
    assert [part.text for part in seen.responses[0].exchange.response.parts[:2]] == ["**Plan** look", "Look."]
    assert [one.name for one in seen.responses[0].exchange.response.tool_calls] == ["run"]
    assert places(seen) == [["request", "tool_result"], ["request"]]
    assert rules(seen, 1)[-1] == "transcript.inferred.user_went_on"
    assert "record 5: the user went on" in seen.responses[1].exchange.response.findings[-1].message


def test_calls_and_results_that_only_the_parts_have_are_read(tmp_path):
    made = {"functionCall": {"id": "c1", "name": "run", "args": {"command": "ls"}}}
    failed = {"functionResponse": {"id": "c1", "name": "run", "response": {"error": "no such file"}}}
    seen = show(chat(GO, row("g1", "gemini", [{"text": "Look."}, made], model="m"), row("r1", "user", [failed]),
                      row("g2", "gemini", [{"text": "Done."}], model="m")), tmp_path)
    assert places(seen) == [["request", "tool_result"]]
    assert json.loads(seen.responses[0].exchange.response.tool_calls[0].arguments) == {"command": "ls"}
    result = seen.responses[1].exchange.request.messages[0].results[0]
    assert (result.call_id, result.text, result.is_error) == ("c1", "no such file", True)


@pytest.mark.parametrize("key", [{"id": "run-1768510312836-c85bc7"}, {}])
def test_a_call_that_stands_in_the_parts_as_well_is_one_call(key, tmp_path):
    parts = [{"text": "Look."}, {"functionCall": {**key, "name": "run", "args": {"command": "ls"}}}]
    seen = show(chat(GO, reply("g1", parts, call())), tmp_path)
    assert len(seen.responses[0].exchange.response.tool_calls) == 1


def test_a_record_that_shortens_results_is_counted_by_its_name(tmp_path):
    patch = {"$patch": {"id": "g1", "toolCalls": [{"id": "c1", "result": None}]}}
    seen = show(lines(GO, reply("g1", "Look.", call(key="c1")), patch, reply("g2", "Done.")), tmp_path)
    assert "records that hold no exchange: $patch (1)" in notices(seen)
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "ok"


@each_row(("said_", "rule"), [
    ("<session_context>\nToday is Sunday.\n</session_context>", "transcript.absent"),
    ("<hook_context>x</hook_context>", "transcript.absent"),
    ("\n<state_snapshot>x</state_snapshot>", "transcript.absent"),
    ("<b>bold</b>", "transcript.inferred.user_went_on"),
    ("<hook_context>x</hook_context>|more", "transcript.inferred.user_went_on"),
])
def test_a_text_that_gemini_cli_puts_into_the_history_is_no_message_of_the_user(said_, rule, tmp_path):
    later = [row("c1", "user", [{"text": each} for each in said_.split("|")]), GO, reply("g1", "Done.")]
    seen = show(lines(GO, reply("g1", "Done."), {"$set": {"messages": later}}), tmp_path)
    assert (stops(seen)[0], rules(seen)[-1]) == ("unknown" if rule == "transcript.absent" else "end_turn", rule)


@pytest.mark.parametrize("written", [chat, lines])
def test_a_compressed_history_is_no_conversation(tmp_path, written):
    summary = row("u2", "user", "<scratchpad>hm</scratchpad>\n<state_snapshot>all</state_snapshot>")
    seen = show(written(GO, reply("g1", "One."), summary,
                        row("g2", "gemini", "Got it. Thanks for the additional context!"),
                        row("u3", "user", "more"), reply("g3", "Two."), row("u4", "user", "again"),
                        reply("g4", "Got it. Thanks for the additional context!")), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == [
        "One.", "Two.", "Got it. Thanks for the additional context!"]
    assert [[found.rule for found in facts.exchange.response.findings if "compact" in found.rule]
            for facts in seen.responses] == [[], ["transcript.compacted"], []]
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "more", "again"]
    assert "records that hold no exchange: compression (1)" in notices(seen)
    alone = show(written(summary, row("g2", "gemini", "Got it. Thanks for the additional context!")), tmp_path)
    assert not alone.responses


def test_a_message_in_place_of_an_interrupted_answer_is_no_answer(tmp_path):
    stands = row("g2", "gemini", "[The previous response was interrupted before it completed.]")
    rows = [GO, reply("g1", "Look.", call()), stands, row("u2", "user", "more"), reply("g3", "Done.")]
    seen = show(chat(*rows), tmp_path)
    assert stops(seen) == ["tool_call", "interrupted", "unknown"]
    assert seen.responses[1].exchange.response.text is None
    assert words(seen)[0] == "TRUNCATED, ANSWER LOST"


@pytest.mark.parametrize("written", [chat, lines])
def test_a_message_before_a_file_that_a_call_returned_is_no_answer(tmp_path, written):
    note = "Binary content received. Proceeding with analysis."
    receipt = [{"text": note, "thought": True, "thoughtSignature": "skip"}]
    file = [{"inlineData": {"mimeType": "image/png", "data": "QQ=="}}]
    seen = show(written(GO, reply("g1", "Look.", call()), row("g2", "gemini", receipt), row("i1", "info", file),
                        reply("g3", "A cat."), row("u2", "user", "more"), reply("g4", note)), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Look.", "A cat.", note]
    assert stops(seen) == ["tool_call", "end_turn", "unknown"]
    assert "written by Gemini CLI in the model's name, before a file that a call returned: 1" in notices(seen)


def test_the_history_of_a_resumed_chat_keeps_the_counts_of_its_answers(tmp_path):
    """As 0.61.0 writes it after `--resume`: `$set` repeats each answer with its id, without model and tokens."""
    history = [row("u1", "user", [{"text": "go"}]),
               row("g1", "gemini", [{"text": "Look."}, {"functionCall": {"id": "c-1", "name": "run", "args": {}}}]),
               row("u2", "user", [{"functionResponse": {"id": "c-1", "name": "run", "response": {"output": "ok"}}}]),
               row("g2", "gemini", [{"text": "Done."}])]
    seen = show(lines(GO, reply("g1", "Look.", call(key="c-1")), history[2], reply("g2", "Done."), HEAD,
                      {"$set": {"messages": history}}, row("u3", "user", "on"), reply("g3", "More.")), tmp_path)
    assert stops(seen) == ["tool_call", "end_turn", "unknown"]
    answers = [each.exchange.response for each in seen.responses]
    assert [(each.model, each.usage.input_tokens, each.usage.output_tokens) for each in answers] == [
        ("gemini-3-pro", 100, 12)] * 3


@pytest.mark.parametrize("odd", [["g1"], {"id": "g1"}, 7])
def test_an_answer_whose_id_is_no_text_is_read(odd, tmp_path):
    seen = show(lines(GO, {**reply("g1", "Hello."), "id": odd}), tmp_path)
    assert [each.exchange.response.text for each in seen.responses] == ["Hello."]
