"""LibreChat: the blocks of a turn in one message, its stop words, exports with nested messages, edited messages."""

from __future__ import annotations

import json
from typing import Any

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from loop_core.values import ReasoningPart, TextPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, rules, show, stops, words

Row = dict[str, Any]
ROOT = "00000000-0000-0000-0000-000000000000"


def message(key: str, above: str = ROOT, *content: Row, **more: Any) -> Row:
    own = {"content": [*content], "text": ""} if content else {}
    return {"messageId": key, "parentMessageId": above, "isCreatedByUser": False, "model": "gpt-5", "error": False,
            "unfinished": False, **own, **more}


def asked(key: str = "m1", text: str = "go", above: str = ROOT, **more: Any) -> Row:
    return message(key, above, isCreatedByUser=True, text=text, **more)


def call(key: str = "c1", args: str = '{"path": "a"}', **more: Any) -> Row:
    return {"type": "tool_call", "tool_call": {"id": key, "name": "view", "args": args, **more}}


def text(said: str) -> Row:
    return {"type": "text", "text": said}


def read(tmp_path: Any, *messages: Row) -> Any:
    return show(json.dumps({"conversationId": "c", "endpoint": "openAI", "title": "A chat", "messages": messages}),
                tmp_path, name="chat.json")


def test_an_export_and_a_list_are_recognised_and_other_messages_are_not():
    for written in ({"conversationId": "c", "messages": [asked()]}, [asked(), message("m2", "m1", text="hi")]):
        assert choose(json.dumps(written).encode(), "x.json") == "librechat"
    for other in ({"messages": []}, {"messages": [{"isCreatedByUser": True}]}, [{"messageId": "1"}, asked()]):
        assert choose(json.dumps(other).encode(), "x.json") != "librechat"


def test_a_message_has_the_answers_of_a_turn(tmp_path):
    seen = read(tmp_path, asked(), message(
        "m2", "m1", {"type": "think", "think": "hm"}, text("I look."), call(output="A"), call("c2", output="B"),
        text("It is A."), createdAt="2026-01-02T03:04:05Z"), asked("m3", "more", "m2"))
    first, second = (facts.exchange for facts in seen.responses)
    assert first.response.parts[:2] == (ReasoningPart("hm"), TextPart("I look."))
    assert [(each.id, each.name, each.arguments) for each in first.response.tool_calls] == [
        ("c1", "view", '{"path": "a"}'), ("c2", "view", '{"path": "a"}')]
    assert [part.text for part in second.request.messages[0].results] == ["A", "B"]
    assert (second.response.text, second.started, second.response.model) == (
        "It is A.", "2026-01-02T03:04:05Z", "gpt-5")
    assert (places(seen), stops(seen), words(seen)) == (
        [["request", "tool_result"]], ["tool_call", "end_turn"], ["END INFERRED"])
    assert (seen.inputs[0].about.title, seen.inputs[0].about.id) == ("A chat", "c")


@each_row(("end", "stop", "word", "rule"), [
    ({"finish_reason": "length"}, "max_tokens", "TRUNCATED", "librechat.finish_reason"),
    ({"finish_reason": "stop"}, "end_turn", "COMPLETE", "librechat.finish_reason"),
    ({"finish_reason": "incomplete"}, "interrupted", "INTERRUPTED", "librechat.finish_reason"),
    ({"unfinished": True}, "interrupted", "INTERRUPTED", "librechat.finish_reason"),
    ({"error": True}, "error", "ERROR", "transcript.recorder"),
    ({}, "unknown", "END NOT RECORDED", "transcript.absent"),
])
def test_how_an_answer_ended(end, stop, word, rule, tmp_path):
    seen = read(tmp_path, asked(), message("m2", "m1", text="It is", **end))
    assert (stops(seen), words(seen), rule in rules(seen)) == ([stop], [word], True)


def test_a_call_that_was_cut_is_held(tmp_path):
    seen = read(tmp_path, asked(), message("m2", "m1", text("I look."), call(args='{"path": "a')))
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]
    assert (stops(seen), words(seen)) == (["max_tokens"], ["CALL HELD"])


@each_row(("end", "stop"), [
    ({"finish_reason": "incomplete"}, "interrupted"), ({"unfinished": True}, "interrupted"),
    ({"error": True}, "error"),
])
def test_an_end_after_the_results_of_all_calls_is_that_of_the_next_answer(end, stop, tmp_path):
    seen = read(tmp_path, asked(), message("m2", "m1", text("I look."), call(output="A"), **end))
    assert (stops(seen), places(seen)) == (["tool_call", stop], [["request", "tool_result"]])
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["ready"]
    failure = seen.responses[1].exchange.response.error
    assert failure is None or failure.message == "an error without a text"
    seen = read(tmp_path, asked(), message("m2", "m1", text("I look."), call(output="A"), call("c2"), **end))
    assert (stops(seen), {each.admission.value for each in seen.responses[0].verdicts}) == ([stop], {"held"})


def test_a_call_of_an_assistant_has_its_name_its_arguments_and_its_result(tmp_path):
    made = {"id": "c1", "type": "function", "function": {"name": "view", "arguments": '{"a": 1}', "output": "A"}}
    seen = read(tmp_path, asked(), message("m2", "m1", {"type": "tool_call", "tool_call": made}, text("Done.")))
    (one,) = seen.responses[0].exchange.response.tool_calls
    (part,) = seen.responses[1].exchange.request.messages[0].results
    assert (one.id, one.name, one.arguments, part.call_id, part.text) == ("c1", "view", '{"a": 1}', "c1", "A")


def test_the_older_name_of_nested_messages_and_an_edited_message(tmp_path):
    nested = asked(children=[message("m2", "m1", text="Yes.", isEdited=True, children=[])])
    seen = show(json.dumps({"conversationId": "c", "title": "A", "messagesTree": [nested]}), tmp_path, name="chat.json")
    assert (seen.inputs[0].format, [each.exchange.response.text for each in seen.responses]) == ("librechat", ["Yes."])
    assert any("were edited or continued" in notice for notice in seen.inputs[0].notices)


def test_an_error_in_the_place_of_an_answer_is_a_failure(tmp_path):
    seen = read(tmp_path, asked(), message("m2", "m1", {"type": "error", "error": "Overloaded"}))
    assert (stops(seen), seen.responses[0].exchange.response.error.message) == (["error"], "Overloaded")


def test_messages_that_are_nested_are_read_and_an_edited_one_is_another_branch(tmp_path):
    edited = asked("m3", "no", children=[message("m4", "m3", text="Fine.", children=[])])
    seen = read(tmp_path, asked(children=[message("m2", "m1", text="Yes.", children=[])]), edited)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Yes.", "Fine."]
    assert [[each.text for each in facts.exchange.request.messages] for facts in seen.responses] == [["go"], ["no"]]
    assert len(seen.turns) == 2


def test_messages_that_are_nested_too_deeply_are_refused_with_the_way_out(tmp_path):
    nested = ""
    for number in range(200, 0, -1):
        nested = json.dumps(asked(f"m{number}", children=[0])).replace("[0]", f"[{nested}]")
    path = tmp_path / "chat.json"
    path.write_text(f'{{"conversationId":"c","messages":[{nested}]}}')
    assert open_paths([str(path)]).inputs[0].error.endswith("expected an export without the option Recursive")


def test_other_blocks_are_shown_and_a_member_of_an_odd_type_is_reported(tmp_path):
    seen = read(tmp_path, asked(), message("m2", "m1", {"type": "image_file", "image_file": {}}, finish_reason=7))
    assert [part.type for part in seen.responses[0].exchange.response.parts] == ["image_file"]
    assert any("message 2: finish_reason is a number, but " in notice for notice in seen.inputs[0].notices)
