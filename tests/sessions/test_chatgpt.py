"""The data export of ChatGPT: trees of messages, ChatGPT's own words, calls, results and branches."""

from __future__ import annotations

import json

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from loop_core.values import CallKind
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words


def node(key, above, role, *parts, name=None, kind="text", to="all", end=None, status="finished_successfully",
         **metadata):
    content = {"content_type": kind, **({"parts": list(parts)} if kind in ("text", "multimodal_text") else parts[0])}
    message = {"id": key, "author": {"role": role, "name": name, "metadata": {}}, "create_time": 1700000000.5,
               "content": content, "status": status, "end_turn": end, "weight": 1.0, "recipient": to,
               "metadata": metadata}
    return {"id": key, "message": message, "parent": above, "children": []}


def user(key, above, *parts, **more):
    return node(key, above, "user", *parts, **more)


def reply(key, above, *parts, stop="stop", end=True, **more):
    details = {} if stop is None else {"finish_details": {"type": stop}}
    return node(key, above, "assistant", *parts, end=end, **details, model_slug="gpt-5", **more)


def call(key, above, code="open('x')", to="browser", language="unknown", **more):
    return reply(key, above, {"language": language, "text": code}, kind="code", to=to, end=False, **more)


def tool(key, above, text="found", name="browser", **more):
    return node(key, above, "tool", text, name=name, **more)


def conversation(*nodes, current=None, title="A chat", **more):
    root = {"id": "root", "message": None, "parent": None, "children": []}
    return {"title": title, "create_time": 1700000000.1, "mapping": {each["id"]: each for each in (root, *nodes)},
            "current_node": current or nodes[-1]["id"], "conversation_id": "c-1", "id": "c-1", **more}


def read(tmp_path, *nodes, **more):
    return show(json.dumps([conversation(*nodes, **more)]), tmp_path, name="conversations.json")


def test_a_list_and_a_single_conversation_are_recognised():
    single = conversation(user("u", "root", "go"), reply("a", "u", "Done."))
    for value in (single, [single]):
        assert choose(json.dumps(value).encode(), "conversations.json") == "chatgpt"
    assert choose(b'{"mapping": {"a": "b"}}', "x.json") != "chatgpt"


def test_an_answer_with_its_word_and_its_place(tmp_path):
    seen = read(tmp_path, user("u", "root", "go"), reply("a", "u", "Done."))
    (facts,) = seen.responses
    exchange, stop = facts.exchange, facts.exchange.response.stop_reason
    assert (exchange.recorder, exchange.model, exchange.response.text) == ("chatgpt", "gpt-5", "Done.")
    assert (stop.normalized, stop.raw, exchange.started) == ("end_turn", None, "2023-11-14T22:13:20.500+00:00")
    at = stop.evidence[-1].at
    assert (stop.evidence[-1].rule, at.pointer) == (
        "chatgpt.finish_details", "/message/metadata/finish_details/type")
    assert json.loads(exchange.body) == reply("a", "u", "Done.")
    assert words(seen) == ["COMPLETE"]
    assert seen.inputs[0].about.title == "A chat"


@each_row(("details", "status", "stop"), [
    ({"type": "max_tokens"}, "finished_successfully", "max_tokens"),
    ({"type": "interrupted"}, "finished_successfully", "interrupted"),
    ({"type": "interrupted"}, "in_progress", "interrupted"),
    ({"type": "interrupted", "reason": "client_stopped"}, "finished_successfully", "cancelled"),
    ({"type": "interrupted", "reason": "something_else"}, "finished_successfully", "interrupted"),
    ({"type": "content_filter"}, "finished_successfully", "safety_blocked"),
    ({"type": "blocked"}, "finished_successfully", "unknown"),
    ({"type": "stop"}, "finished_partial_completion", "unknown"),
    ({"type": "stop"}, "in_progress", "unknown"),
    ({}, "finished_partial_completion", "unknown"),
    ({}, "finished_successfully", "unknown"),
    ({}, "in_progress", "unknown"),
])
def test_the_words_of_an_end(tmp_path, details, status, stop):
    answer = reply("a", "u", "Half a", stop=None, end=None, status=status, finish_details=details)
    assert stops(read(tmp_path, user("u", "root", "go"), answer)) == [stop]


def test_a_state_that_contradicts_a_clean_word_is_the_word(tmp_path):
    seen = read(tmp_path, user("u", "root", "go"), reply("a", "u", "Half a", status="finished_partial_completion"))
    evidence = seen.responses[0].exchange.response.stop_reason.evidence[0]
    assert (evidence.rule, evidence.note, evidence.at.pointer) == (
        "transcript.recorder", "finished_partial_completion", "/message/status")


def test_an_end_of_the_turn_without_a_word_is_an_inference(tmp_path):
    seen = read(tmp_path, user("u", "root", "go"), reply("a", "u", "Done.", stop=None))
    assert (stops(seen), words(seen)) == (["end_turn"], ["END INFERRED"])


def test_an_answer_without_a_word_is_over_if_the_user_goes_on_but_not_one_in_progress(tmp_path):
    old = [user("u", "root", "go"), reply("a", "u", "Half a", stop=None, end=None), user("v", "a", "Thanks, now b"),
           reply("b", "v", "Done.")]
    assert words(read(tmp_path, *old)) == ["END INFERRED", "COMPLETE"]
    old[1]["message"]["status"] = "in_progress"
    assert words(read(tmp_path, *old)) == ["END NOT RECORDED", "COMPLETE"]


def test_continue_generating_adds_the_rest_of_a_cut_answer(tmp_path):
    seen = read(tmp_path, user("u", "root", "go"), reply("a", "u", "Half a se", stop="max_tokens", end=False),
                reply("b", "a", "ntence."))
    assert (stops(seen), words(seen)) == (["max_tokens", "end_turn"], ["CUT, COMPLETED"])
    assert places(seen) == [["request", "continuation"]]


def test_thoughts_a_text_and_a_call_are_one_answer_and_messages_of_the_tool_its_results(tmp_path):
    thoughts = {"thoughts": [{"summary": "S", "content": "hm"}], "source_analysis_msg_id": "x"}
    seen = read(
        tmp_path, user("u", "root", "go"), reply("t", "u", thoughts, kind="thoughts", stop=None, end=False),
        reply("r", "t", {"content": "Thought for 5s"}, kind="reasoning_recap", stop=None, end=False),
        reply("m", "r", "I look.", end=False), call("c", "m"), tool("x", "c"), tool("y", "x", "more"),
        reply("a", "y", "Done."))
    first, second = (facts.exchange for facts in seen.responses)
    (made,) = first.response.tool_calls
    assert (first.response.reasoning_content, first.response.text, len(first.response.parts)) == ("hm", "I look.", 3)
    assert (made.id, made.name, made.arguments, made.kind) == ("c", "browser", "open('x')", CallKind.CUSTOM)
    assert first.body.count(b"\n") == 3  # four messages of the model
    (results,) = [message.results for message in second.request.messages if message.results]
    assert [(part.call_id, part.text, part.is_error) for part in results] == [
        ("c", "found", False), ("c", "more", False)]
    assert (stops(seen), places(seen), words(seen)) == (
        ["tool_call", "end_turn"], [["request", "tool_result"]], ["COMPLETE"])


def test_a_text_that_the_model_meant_to_go_on_after_is_no_end(tmp_path):
    seen = read(tmp_path, user("u", "root", "go"), reply("a", "u", "I look.", end=False))
    assert stops(seen) == ["unknown"]


def test_json_is_only_what_the_file_calls_so(tmp_path):
    nodes = [user("u", "root", "go"), call("c", "u", '{"a', to="canmore.create_textdoc", language="json")]
    seen = read(tmp_path, *nodes)
    assert words(seen) == ["CALL HELD"]
    assert seen.responses[0].exchange.response.tool_calls[0].kind is CallKind.FUNCTION


@pytest.mark.parametrize("stop", ["interrupted", "max_tokens"])
def test_a_call_that_was_stopped_is_held_and_its_free_text_is_not_called_invalid(tmp_path, stop):
    nodes = [user("u", "root", "go"), call("c", "u", "# I open the pa", stop=stop), user("v", "c", "Now b")]
    seen = read(tmp_path, *nodes, reply("b", "v", "Done."))
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]
    assert "invalid" not in seen.turns[0].verdict.sentence


def test_a_call_of_which_the_tool_shows_nothing_did_not_run(tmp_path):
    seen = read(tmp_path, user("u", "root", "go"), call("c", "u"), user("v", "c", "Now b"), reply("b", "v", "Done."))
    assert not [part for facts in seen.responses for message in facts.exchange.request.messages
                for part in message.results]


@pytest.mark.parametrize(("content", "metadata"), [
    ({"content_type": "system_error", "name": "E", "text": "no"}, {}),
    ({"content_type": "execution_output", "text": "no"}, {"aggregate_result": {"in_kernel_exception": {"name": "E"}}}),
    ({"content_type": "execution_output", "text": "no"}, {"aggregate_result": {"system_exception": "died"}}),
])
def test_failures_of_tools(tmp_path, content, metadata):
    result = tool("x", "c")
    result["message"].update(content=content, metadata=metadata)
    seen = read(tmp_path, user("u", "root", "go"), call("c", "u"), result, reply("a", "x", "Done."))
    (part,) = (part for message in seen.responses[1].exchange.request.messages for part in message.results)
    assert (part.text, part.is_error) == ("no", True)


def test_what_a_tool_adds_to_a_message_of_the_user_is_no_result(tmp_path):
    added = tool("x", "u", "a file", name="file_search")
    seen = read(tmp_path, user("u", "root", "go"), added, reply("a", "x", "Done."))
    (facts,) = seen.responses
    assert not any(message.results for message in facts.exchange.request.messages)
    assert seen.turns[0].run.record.user_text == "go"


def test_below_a_picture_of_a_tool_the_model_may_say_nothing(tmp_path):
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://f", "width": 1}
    nodes = [user("u", "root", "a cat"), call("c", "u", '{"prompt": "cat"}', to="dalle.text2im"),
             tool("x", "c", picture, name="dalle.text2im", kind="multimodal_text"), reply("a", "x", "")]
    assert words(read(tmp_path, *nodes)) == ["COMPLETE"]
    nodes[2] = tool("x", "c", name="dalle.text2im")
    assert words(read(tmp_path, *nodes)) == ["EMPTY ANSWER"]


def test_branches_are_turns_and_the_ones_that_are_not_shown_are_counted(tmp_path):
    nodes = [user("u", "root", "go"), reply("a", "u", "One."), reply("b", "u", "Two."), user("v", "b", "on"),
             reply("c", "v", "Three.")]
    seen = read(tmp_path, *nodes, current="c")
    assert [facts.exchange.response.text for facts in seen.responses] == ["One.", "Two.", "Three."]
    assert [facts.exchange.request.previous_id for facts in seen.responses][:2] == [None, None]
    assert any("branch that ChatGPT does not show (current_node): 1" in str(each) for each in seen.inputs[0].notices)


def test_nodes_in_any_order_and_ids_that_two_conversations_share(tmp_path):
    nodes = [reply("a", "u", "Done."), user("u", "root", "go")]
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([conversation(*nodes, title="One"), conversation(*nodes, title="Two")]))
    exchanges = open_paths([str(file)]).exchanges
    assert [(each.session, each.entry, each.request.messages[-1].text) for each in exchanges] == [
        ("One", 1, "go"), ("Two", 4, "go")]


def test_a_member_of_another_type_is_reported(tmp_path):
    seen = read(tmp_path, user("u", "root", "go"), reply("a", "u", "Done."), {"id": "x", "message": "m", "parent": "a"})
    assert any("message is text, but an object was expected" in str(each) for each in seen.inputs[0].notices)


def test_a_parent_that_is_lost_is_counted(tmp_path):
    seen = read(tmp_path, user("u", "root", "go"), reply("a", "gone", "Done."))
    assert any("name a parent that is not in the file" in str(each) for each in seen.inputs[0].notices)


def test_a_cut_file_is_read_as_far_as_it_goes(tmp_path):
    whole = json.dumps([conversation(user("u", "root", "go"), reply("a", "u", "Done."), user("v", "a", "on"),
                                     reply("b", "v", "Two."))])
    seen = show(whole[: whole.index('"Two."')], tmp_path, name="conversations.json")
    assert [facts.exchange.response.text for facts in seen.responses] == ["Done."]
    assert any("cut" in str(each) for each in seen.inputs[0].notices)


def test_messages_that_chatgpt_adds_are_none_of_the_users(tmp_path):
    about = user("i", "root", {"user_profile": "p"}, kind="user_editable_context")
    memory = reply("m", "u", {"model_set_context": "x"}, kind="model_editable_context", stop=None, end=None)
    hidden = user("h", "i", "the time", is_visually_hidden_from_conversation=True)
    seen = read(tmp_path, about, hidden, user("u", "h", "go", {"content_type": "image_asset_pointer"}), memory,
                reply("a", "m", "Done."))
    assert len(seen.responses) == 1
    assert seen.turns[0].run.record.user_text == "go\n[image_asset_pointer]"
    open_end = [user("u", "root", "go"), reply("a", "u", "Half a", stop=None, end=None)]
    about["parent"] = "a"
    assert words(read(tmp_path, *open_end, about)) == ["END NOT RECORDED"]  # nobody went on after it


def test_a_text_that_stops_in_the_middle_under_chatgpts_own_word_is_not_complete(tmp_path):
    seen = read(tmp_path, user("u", "root", "go"), reply("a", "u", "The files are:\n```python\ndef main("))
    assert words(seen) == ["TEXT UNFINISHED"]


def test_the_data_export_of_deepseek(tmp_path):
    def fragments(key, above, *parts, **more):
        message = {"files": [], "model": "deepseek-reasoner", "inserted_at": "2026-01-02T03:04:05+08:00", "fragments": [
            {"type": kind, "content": text} for kind, text in parts], **more}
        return {"id": key, "parent": above, "children": [], "message": message}

    seen = read(tmp_path, fragments("1", "root", ("REQUEST", "go")),
                fragments("2", "1", ("THINK", "hm"), ("SEARCH", "x"), ("RESPONSE", "Done.")),
                fragments("3", "2", ("REQUEST", "more")), fragments("4", "3", ("RESPONSE", "Yes.")),
                fragments("5", "2", ("REQUEST", "less")), fragments("6", "5", ("RESPONSE", "No.")), fragments("7", "6"))
    first, second, third = (facts.exchange for facts in seen.responses)
    assert (first.response.text, first.response.reasoning_content, len(first.response.parts)) == ("Done.", "hm", 3)
    assert (first.response.model, first.started) == ("deepseek-reasoner", "2026-01-02T03:04:05+08:00")
    assert [each.text for each in third.request.messages] == ["less"], "another branch of the same answer"
    assert (second.response.text, third.response.text) == ("Yes.", "No.")
    assert (stops(seen), words(seen)[0]) == (["end_turn", "unknown", "unknown"], "END INFERRED")
    assert "as DeepSeek keeps none" in seen.inputs[0].notices[0]
    rows = fragments("1", "root", ("REQUEST", "go")), fragments("2", "1", ("RESPONSE", "Yes."))
    both = [conversation(*rows, title=name) for name in ("one", "other")]
    named = show(json.dumps(both), tmp_path, name="conversations.json").responses
    assert [facts.exchange.session for facts in named] == ["one", "other"]
