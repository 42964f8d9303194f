"""Sessions of Microsoft's Agent Framework: cut calls, results with an exception, and the two kinds of files."""

from __future__ import annotations

import json

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from loop_core.values import OpaquePart, ReasoningPart, TextPart, ToolCall
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, stops, view_file, words

CUT, WHOLE = '{"path": "report.md", "content": "Satur', '{"path": "report.md", "content": "done"}'


def message(role, *contents):
    return {"type": "message", "role": role, "contents": list(contents), "additional_properties": {}}


def text(said):
    return {"type": "text", "text": said, "additional_properties": {}}


def call(arguments, key="c1"):
    return {"type": "function_call", "call_id": key, "name": "write_file", "arguments": arguments, "id": "af-call-1"}


def result(said, key="c1", **more):
    return message("tool", {"type": "function_result", "call_id": key, "result": said, "items": [text(said)], **more})


GO, DONE = message("user", text("go")), message("assistant", text("Done."))


def session(*messages, **others):
    state = {name: {"messages": listed} for name, listed in {"in_memory": list(messages), **others}.items()}
    return {"type": "session", "session_id": "s1", "service_session_id": None, "state": {"file": {}, **state}}


def read(tmp_path, *messages, lines=False, **others):
    path = tmp_path / ("s1.jsonl" if lines else "s1.json")
    path.write_text("".join(json.dumps(each) + "\n" for each in messages) if lines else json.dumps(
        session(*messages, **others)))
    return view_file(path)


def response(seen, index=0):
    return seen.responses[index].exchange.response


def notices(seen):
    return "\n".join(map(str, seen.inputs[0].notices))


def test_a_session_and_a_history_are_recognised():
    assert choose(json.dumps(session(GO)).encode(), "s.json") == "agent-framework"
    assert choose(f"{json.dumps(GO)}\n{json.dumps(DONE)}\n".encode(), "s.jsonl") == "agent-framework"


@each_row("other", [
    *({name: value for name, value in session(GO).items() if name != left_out}
      for left_out in ("session_id", "service_session_id", "state")),
    *({name: value for name, value in GO.items() if name != left_out} for left_out in ("type", "role", "contents")),
])
def test_an_object_without_one_of_the_members_is_another(other):
    marks = {"below": {"contents": [], "service_session_id": None}}
    assert choose(json.dumps({**other, **marks}).encode(), "s.json") != "agent-framework"


@pytest.mark.parametrize("lines", [True, False])
def test_a_cut_call_that_was_not_parsed_did_not_run(tmp_path, lines):
    seen = read(tmp_path, GO, message("assistant", text("I write."), call(CUT)),
                result("Error: Argument parsing failed.", exception="FunctionInvocationError"),
                message("assistant", call(WHOLE, "c2")), result("61 bytes written", "c2"), DONE, lines=lines)
    assert (words(seen), stops(seen)) == (["END NOT RECORDED"], ["max_tokens", "tool_call", "unknown"])
    assert response(seen).tool_calls[0].arguments == CUT
    assert "transcript.inferred.call_cut" in rules(seen)
    assert seen.responses[0].exchange.refusals == {"c1": "the agent could not parse its arguments: it did not run"}


def test_a_cut_call_with_a_result_of_its_tool_ran(tmp_path):
    assert words(read(tmp_path, GO, message("assistant", call(CUT)), result("61 bytes written"), DONE)) == [
        "CUT CALL RUN"]


@pytest.mark.parametrize(("more", "failed"), [({}, False), ({"exception": None}, False), ({"exception": "E"}, True)])
def test_a_result_with_an_exception_is_an_error(tmp_path, more, failed):
    seen = read(tmp_path, GO, message("assistant", call(WHOLE)), result("no such file", **more))
    assert [each.result.is_error for each in seen.inputs[0].answers] == [failed]


def test_each_kind_of_content_is_a_part_of_the_answer(tmp_path):
    seen = read(tmp_path, GO, message("assistant", {"type": "text_reasoning", "text": "hm"}, text("hi"),
                                      {"type": "data", "uri": "u"}, call(WHOLE)))
    assert [type(part) for part in response(seen).parts] == [ReasoningPart, TextPart, OpaquePart, ToolCall]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_messages_of_the_program_are_counted(tmp_path, role):
    assert "known records that hold no exchange: " in notices(read(tmp_path, message(role, text("x")), GO, DONE))


def test_a_session_without_a_stop_word_is_not_complete_and_has_its_id(tmp_path):
    seen = read(tmp_path, GO, DONE)
    assert (words(seen), seen.inputs[0].about.id) == (["END NOT RECORDED"], "s1")
    assert "1 of 1 answers have no stop reason, as the Agent Framework keeps none for them: " in notices(seen)


def test_a_run_without_an_answer_is_reported(tmp_path):
    assert "messages that end the session without an answer: 1" in notices(read(tmp_path, GO, DONE, GO))


def test_two_histories_of_a_session_are_apart(tmp_path):
    seen = read(tmp_path, GO, message("assistant", call(CUT)), audit=[GO, DONE])
    assert [each.exchange.session for each in seen.responses] == ["in_memory", "audit"]
    assert len(seen.turns) == 2


def test_a_session_that_the_service_keeps_has_no_answer(tmp_path):
    path = tmp_path / "s1.json"
    path.write_text(json.dumps({**session(), "state": {}, "service_session_id": "conv_1"}))
    (given,) = open_paths([str(path)]).inputs
    assert (given.format, given.error) == ("agent-framework", None)


@pytest.mark.parametrize(("value", "said"), [
    ({**DONE, "contents": "x"}, "message 2: contents is text, but a list was expected; it was skipped"),
])
def test_a_member_of_another_type_is_reported(tmp_path, value, said):
    assert said in notices(read(tmp_path, GO, value))


def test_thousands_of_answers_are_read_in_linear_time(tmp_path):
    def written(count):
        path = tmp_path / f"{count}.json"
        path.write_text(json.dumps(session(*(GO, message("assistant", call(WHOLE)), result("ok"), DONE) * count)))
        return path, 2 * count

    def read(file):
        assert len(open_paths([str(file[0])]).exchanges) == file[1]

    assert growth(read, written, 750) < IN_PROPORTION
