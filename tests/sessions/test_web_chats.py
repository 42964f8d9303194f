"""Chats of web apps: the data export of Claude, and prompts of Google AI Studio."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.importers import ai_studio, claude_ai
from inspector.sessions.importers.recognition import choose
from loop_core.values import Stop
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words

Row = dict[str, Any]


# -- Claude -----------------------------------------------------------------------------------------------------------


def message(sender: str, *content: Row, key: str = "", **more: Any) -> Row:
    return {"uuid": key, "sender": sender, "text": "", "content": [*content], **more}


def text(said: str) -> Row:
    return {"type": "text", "text": said, "citations": []}


CALL = {"type": "tool_use", "id": "toolu_1", "name": "view", "input": {"path": "/a"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "name": "view", "content": [text("A")], "is_error": False}
ASK = message("human", text("go"), key="m1")
ANSWER = message("assistant", {"type": "thinking", "thinking": "hm"}, text("Look."), CALL, RESULT, text("It is A."),
                 key="m2", parent_message_uuid="m1", created_at="2026-01-02T03:04:05Z")


def conversation(*messages: Row, **more: Any) -> Row:
    return {"uuid": "c", "name": "A file", "chat_messages": [*messages], **more}


def read(tmp_path: Any, value: Any) -> Any:
    return show(json.dumps(value), tmp_path, name="conversations.json")


def test_a_list_of_conversations_and_one_alone_are_recognised():
    for written in (conversation(ASK), [conversation(), conversation(ASK)]):
        assert choose(json.dumps(written).encode(), "x.json") == "claude-ai"
    for other in (conversation(), conversation({"role": "user"}), [{"chat_messages": "x"}]):
        assert choose(json.dumps(other).encode(), "x.json") != "claude-ai"


def test_a_message_has_the_answers_of_a_turn(tmp_path):
    seen = read(tmp_path, [conversation(ASK, ANSWER, message("human", text("more"), key="m3"))])
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.response.text, first.response.reasoning_content) == ("Look.", "hm")
    assert [(call.id, call.name, call.arguments) for call in first.response.tool_calls] == [
        ("toolu_1", "view", '{"path": "/a"}')]
    assert [part.text for part in second.request.messages[0].results] == ["A"]
    assert (second.response.text, second.started) == ("It is A.", "2026-01-02T03:04:05Z")
    assert (places(seen), stops(seen)) == ([["request", "tool_result"]], ["tool_call", "end_turn"])
    assert words(seen) == ["END INFERRED"]


def test_the_stop_word_of_a_conversation_from_the_server_is_the_provider_s(tmp_path):
    cut = message("assistant", text("It is"), key="m2", stop_reason="max_tokens")
    seen = read(tmp_path, conversation(ASK, cut, model="claude-opus-4-5"))
    (facts,) = seen.responses
    assert (facts.exchange.response.stop_reason.raw, words(seen)) == ("max_tokens", ["TRUNCATED"])
    assert (facts.exchange.api, facts.exchange.response.model) == ("anthropic_messages", "claude-opus-4-5")
    assert (seen.inputs[0].about.title, seen.inputs[0].about.id) == ("A file", "c")


def test_a_key_beside_the_messages_is_masked(tmp_path):
    key = f"sk-proj-{'Ab1Cd2Ef3G' * 4}"
    seen = read(tmp_path, conversation(ASK, ANSWER, model=key, name=key))
    assert key not in f"{seen.inputs[0]} {seen.responses[0].exchange.response.model}"


def test_a_call_without_an_end_is_held(tmp_path):
    seen = read(tmp_path, conversation(ASK, message("assistant", {**CALL, "input": {}})))
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]
    assert words(seen) == ["END NOT RECORDED"]


def test_a_message_that_was_edited_is_another_branch(tmp_path):
    edited = message("human", text("no, stop"), key="m3", parent_message_uuid="m0")
    seen = read(tmp_path, conversation({**ASK, "parent_message_uuid": "m0"}, ANSWER, edited,
                                       message("assistant", text("Fine."), parent_message_uuid="m3")))
    assert [facts.exchange.response.text for facts in seen.responses] == ["Look.", "It is A.", "Fine."]
    assert [each.text for each in seen.responses[2].exchange.request.messages] == ["no, stop"]


def test_conversations_do_not_continue_each_other_and_texts_without_blocks_are_read(tmp_path):
    bare = [{"uuid": "", "sender": sender, "text": said, "content": []} for sender, said in (
        ("human", "hi"), ("assistant", "Hello."), ("robot", "beep"))]
    seen = read(tmp_path, [conversation(ASK, ANSWER), conversation(*bare, name="")])
    assert [facts.exchange.session for facts in seen.responses] == ["A file", "A file", "conversation 2"]
    assert (seen.responses[2].exchange.response.text, len(words(seen))) == ("Hello.", 2)
    assert seen.inputs[0].notices[-1].endswith("records of unknown type were skipped: robot (1)")


# -- AI Studio --------------------------------------------------------------------------------------------------------


def chunk(role: str, said: str = "", **more: Any) -> Row:
    return {"role": role, "text": said, "tokenCount": 4, **more}


GO = chunk("user", "go")
SETTINGS = {"model": "models/gemini-2.5-pro", "maxOutputTokens": 65536}


def prompt(*chunks: Row, **more: Any) -> Row:
    return {"runSettings": SETTINGS, "systemInstruction": {}, "chunkedPrompt": {"chunks": [*chunks]}, **more}


def test_the_chunks_of_an_answer_and_its_word(tmp_path):
    seen = read(tmp_path, prompt(
        GO, chunk("model", "hm", isThought=True, createTime="2026-01-02T03:04:05Z"),
        chunk("model", "It", finishReason="MAX_TOKENS"), chunk("model", " is A.", finishReason="STOP"),
        chunk("user", "more"), {"role": "model", "parts": [{"text": "Y"}, {"text": "es"}], "finishReason": "STOP"}))
    exchanges = [facts.exchange for facts in seen.responses]
    assert [(one.response.text, one.response.stop_reason.raw) for one in exchanges] == [
        ("It", "MAX_TOKENS"), (" is A.", "STOP"), ("Yes", "STOP")]
    assert (exchanges[0].response.reasoning_content, exchanges[0].started) == ("hm", "2026-01-02T03:04:05Z")
    assert {(one.api, one.response.model, one.request.max_tokens) for one in exchanges} == {
        ("gemini_generate", "gemini-2.5-pro", 65536)}
    assert words(seen) == ["CUT, COMPLETED", "COMPLETE"]
    assert "may be newer than an answer" in seen.inputs[0].notices[0]


def test_an_answer_without_the_word_that_others_have_was_not_finished(tmp_path):
    rows = [GO, chunk("model", "It"), chunk("user", "again")]
    assert stops(read(tmp_path, prompt(*rows))) == ["end_turn"], "older files have no words"
    ended = chunk("model", "It is A.", finishReason="STOP")
    assert stops(read(tmp_path, prompt(*rows, ended))) == ["unknown", "end_turn"]


def test_an_error_in_place_of_a_word_is_a_failure(tmp_path):
    seen = read(tmp_path, prompt(GO, chunk("model", "It", errorMessage="The model is overloaded.")))
    assert seen.responses[0].exchange.response.stop_reason.normalized is Stop.ERROR
    ended = chunk("model", "It", errorMessage="x", finishReason="STOP")
    assert words(read(tmp_path, prompt(GO, ended))) == ["COMPLETE"]


@each_row(("member", "parts"), [("grounding", 1), ("branchParent", 1), ("inlineFile", 2)])
def test_files_and_code_are_parts_and_what_describes_a_chunk_is_not(member, parts, tmp_path):
    held = {member: {"id": "x"}}
    seen = read(tmp_path, prompt(chunk("user", "go", **held), chunk("model", "It", finishReason="STOP", **held)))
    (exchange,) = (facts.exchange for facts in seen.responses)
    assert (len(exchange.response.parts), exchange.request.messages[0].text) == (
        parts, "go\n[inlineFile]" if parts == 2 else "go")


def test_an_edited_answer_is_reported(tmp_path):
    seen = read(tmp_path, prompt(GO, chunk("model", "It", isEdited=True, finishReason="STOP"), chunk("robot", "beep")))
    assert any("edited, so their text may not be the model's: 1" in each for each in seen.inputs[0].notices)
    assert any("unknown type were skipped: robot (1)" in each for each in seen.inputs[0].notices)


@each_row(("file", "member", "odd", "wanted"), [
    (prompt(GO, chunk("model", "It", finishReason="STOP")), "finishReason", [], "chunk 2: finishReason is a list"),
    (conversation(ASK, ANSWER), "content", {}, "message 2: content is an object"),
])
def test_a_member_of_an_odd_type_is_reported(file, member, odd, wanted, tmp_path):
    rows = file.get("chat_messages") or file["chunkedPrompt"]["chunks"]
    rows[1] = {**rows[1], member: odd}
    assert any(f"{wanted}, but " in notice for notice in read(tmp_path, file).inputs[0].notices)


@pytest.mark.parametrize("sniff", [ai_studio.sniff, claude_ai.sniff])
def test_other_json_is_neither(sniff):
    others = (b"[1]", b'{"chunkedPrompt": 1}', b'{"chat_messages": [1]}', b"")
    assert [sniff(each, "x.json") for each in others] == [0] * 4
