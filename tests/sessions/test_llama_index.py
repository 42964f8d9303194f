"""Messages of LlamaIndex: cut calls that it completed and ran, Claude's stop words, and the files with messages."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from loop_core.values import OpaquePart, ReasoningPart, TextPart, ToolCall, Usage
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, stops, view_file, words

CUT, WHOLE = '{"path": "report.md", "content": "Satur', '{"path": "report.md", "content": "done"}'
ROWS = """CREATE TABLE {} (id INTEGER PRIMARY KEY, "key" VARCHAR, timestamp BIGINT, role VARCHAR, status VARCHAR,
  data JSON);"""


def message(role, *blocks, **about):
    return {"role": role, "additional_kwargs": about, "blocks": list(blocks)}


def text(said):
    return {"block_type": "text", "text": said}


def call(arguments, key="c1"):
    return {"block_type": "tool_call", "tool_call_id": key, "tool_name": "write_file", "tool_kwargs": arguments}


def result(said, key="c1"):
    return message("tool", text(said), tool_call_id=key)


GO, DONE = message("user", text("go")), message("assistant", text("Done."))


def store(*messages, **chats):
    return {"store": {**chats, "user1": list(messages)}, "class_name": "SimpleChatStore"}


def context(messages, place="_data"):
    """The state of a workflow; before release 0.13 it was in `globals`."""
    memory = json.dumps({"__is_component": True, "value": {"chat_store": store(*messages)}, "qualified_name": "m"})
    held = {"memory": memory, "state": "{}"}
    if place == "globals":
        return {"globals": held, "is_running": False}
    return {"version": 2, "state": {"store_type": "in_memory", "state_data": {"_data": held}}, "workers": {}}


def read(tmp_path, value):
    path = tmp_path / "chat_store.json"
    path.write_text(json.dumps(value))
    return view_file(path)


def database(tmp_path, *rows, name="llama_index_memory"):
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(ROWS.format(name))
        for key, at, value in rows:
            made.execute(f'INSERT INTO {name} ("key", timestamp, role, status, data) VALUES (?, ?, ?, ?, ?)',
                         (key, at, value["role"], "active", json.dumps(value)))
    return path


def response(seen, index=0):
    return seen.responses[index].exchange.response


def notices(seen):
    return "\n".join(map(str, seen.inputs[0].notices))


@each_row("written", [
    store(GO, DONE), [GO, DONE], context([GO, DONE]), context([GO, DONE], "globals"),
    [{"role": "user", "content": "go", "additional_kwargs": {}}],
])
def test_each_form_of_stored_messages_is_recognised(written):
    assert choose(json.dumps(written).encode(), "x.json") == "llama-index"


@each_row("other", [
    {"store": {"a": []}, "class_name": "SimpleChatStore"}, {"store": {"a": [{"role": "user", "content": "go"}]}},
    [{"role": "user", "additional_kwargs": {}}], {"state": {}, "workers": {}},
    [{"role": "user", "content": "go"}, {"role": "assistant", "content": "Done.", "additional_kwargs": {}}],
])
def test_other_objects_are_not_taken_for_messages(other):
    assert choose(json.dumps(other).encode(), "x.json") != "llama-index"


@each_row("column", ["key", "timestamp", "role", "status", "data"])
def test_a_table_without_one_of_the_columns_is_another(tmp_path, column):
    path = database(tmp_path, ("a", 1, GO))
    assert choose(path.read_bytes(), str(path)) == "llama-index"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(f'ALTER TABLE llama_index_memory RENAME COLUMN "{column}" TO other')
    assert choose(path.read_bytes(), str(path)) != "llama-index"


@pytest.mark.parametrize("member", ["role", "additional_kwargs"])
def test_a_message_without_one_of_the_members_is_another(member):
    other = {name: value for name, value in GO.items() if name != member}
    assert choose(json.dumps([other]).encode(), "x.json") != "llama-index"


@pytest.mark.parametrize(("value", "said"), [
    ({**DONE, "blocks": "x"}, "message 2: blocks is text, but a list was expected; it was skipped"),
    (message("assistant", text("hi"), stop_reason=5),
     "message 2: additional_kwargs.stop_reason is a number, but text was expected; it was skipped"),
])
def test_a_member_of_another_type_is_reported(tmp_path, value, said):
    assert said in notices(read(tmp_path, store(GO, value)))


@each_row("form", [store, lambda *rows: list(rows), lambda *rows: context(rows),
                                  lambda *rows: context(rows, "globals")])
def test_a_cut_call_that_was_completed_and_run_is_cut_call_run(tmp_path, form):
    seen = read(tmp_path, form(GO, message("assistant", text("I write."), call(CUT)), result("61 bytes written"),
                               message("assistant", call(WHOLE, "c2")), result("61 bytes written", "c2"), DONE))
    assert words(seen) == ["CUT CALL RUN"]
    assert (stops(seen)[0], response(seen).tool_calls[0].arguments) == ("max_tokens", CUT)
    assert "transcript.inferred.call_cut" in rules(seen)


def test_a_cut_call_whose_function_lacks_an_argument_did_not_run(tmp_path):
    refused = "write_file() missing 1 required positional argument: 'content'"
    seen = read(tmp_path, store(GO, message("assistant", call('{"path": "')), result(refused), DONE))
    assert words(seen) == ["END NOT RECORDED"]
    assert stops(seen) == ["max_tokens", "unknown"]


def test_the_stop_word_of_a_streamed_answer_of_claude_is_the_providers(tmp_path):
    cut = message("assistant", text("I write."), call({"path": "report.md", "content": None}),
                  stop_reason="max_tokens", usage={"input_tokens": 24, "output_tokens": 22})
    seen = read(tmp_path, store(GO, cut, result("61 bytes written"), DONE))
    found = response(seen)
    assert words(seen) == ["CUT CALL RUN"]
    assert (found.api, found.stop_reason.raw, found.usage) == ("anthropic_messages", "max_tokens", Usage(24, 22))
    assert found.stop_reason.evidence[0].rule == "transcript.provider"
    assert found.stop_reason.evidence[0].at.pointer == "/additional_kwargs/stop_reason"


def test_an_answer_without_a_word_is_not_complete(tmp_path):
    seen = read(tmp_path, store(GO, message("assistant", text("The queue was"), stop_reason=None)))
    assert (words(seen), response(seen).api) == (["END NOT RECORDED"], "openai_chat")
    assert "answers have no stop reason, as LlamaIndex keeps none for them: " in notices(seen)


def test_a_word_that_claude_does_not_have_is_unknown(tmp_path):
    seen = read(tmp_path, store(GO, message("assistant", text("hi"), stop_reason="whatever")))
    assert stops(seen) == ["unknown"]
    assert response(seen).stop_reason.raw == "whatever"


def test_an_answer_of_which_nothing_was_stored_is_not_called_empty(tmp_path):
    seen = read(tmp_path, store(GO, message("assistant")))
    assert words(seen) == ["END NOT RECORDED"]
    assert "transcript.not_stored" in {each.rule for each in response(seen).findings}
    with_word = read(tmp_path, store(GO, message("assistant", stop_reason="end_turn")))
    assert words(with_word) == ["EMPTY ANSWER"]


def test_reasoning_and_other_blocks_are_parts_of_the_answer(tmp_path):
    thought = {"block_type": "thinking", "content": "hm", "additional_information": {"signature": "s"}}
    seen = read(tmp_path, store(GO, message("assistant", thought, text("hi"), {"block_type": "image", "url": "u"},
                                            call(WHOLE))))
    parts = response(seen).parts
    assert [type(part) for part in parts] == [ReasoningPart, TextPart, OpaquePart, ToolCall]
    assert (parts[0], parts[2].type) == (ReasoningPart("hm"), "image")


@pytest.mark.parametrize(("calls", "stop"), [
    ([{"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": CUT}}], "max_tokens"),
    ([{"id": "c1", "type": "tool_use", "name": "write_file", "input": {"path": "a"}}], "tool_call"),
])
def test_calls_of_older_releases_are_beside_a_plain_text(tmp_path, calls, stop):
    said = {"role": "assistant", "content": "I write.", "additional_kwargs": {"tool_calls": calls}}
    seen = read(tmp_path, store({"role": "user", "content": "go", "additional_kwargs": {}}, said,
                                {"role": "tool", "content": "ok", "additional_kwargs": {"tool_call_id": "c1"}}))
    assert (response(seen).text, response(seen).tool_calls[0].name) == ("I write.", "write_file")
    assert stops(seen) == [stop]
    assert [each.result.text for each in seen.inputs[0].answers] == ["ok"]


def test_a_call_that_is_stored_twice_counts_once(tmp_path):
    beside = [{"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": WHOLE}}]
    seen = read(tmp_path, store(GO, message("assistant", call(WHOLE), tool_calls=beside), result("ok"), DONE))
    assert len(response(seen).tool_calls) == 1


@pytest.mark.parametrize("role", ["assistant", "chatbot", "model"])
def test_each_role_of_a_model_is_an_answer(tmp_path, role):
    assert len(read(tmp_path, store(GO, message(role, text("hi")))).responses) == 1


@pytest.mark.parametrize("role", ["tool", "function"])
def test_each_role_of_a_tool_is_a_result(tmp_path, role):
    seen = read(tmp_path, store(GO, message("assistant", call(WHOLE)), message(role, text("ok"), tool_call_id="c1")))
    assert [each.result.text for each in seen.inputs[0].answers] == ["ok"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_messages_of_the_program_are_counted(tmp_path, role):
    assert "known records that hold no exchange: " in notices(read(tmp_path, store(message(role, text("x")), GO, DONE)))


def test_chats_of_a_store_are_apart_and_one_without_an_answer_is_reported(tmp_path):
    seen = read(tmp_path, store(GO, DONE, user2=[GO, message("assistant", text("Other."))], user3=[GO]))
    assert [(each.exchange.session, each.exchange.response.text) for each in seen.responses] == [
        ("user2", "Other."), ("user1", "Done.")]
    assert "sessions in it: 3" in notices(seen)
    assert "messages that end a session with a message of the user, as a run that failed leaves it: 1" in notices(seen)


def test_rows_of_a_database_follow_their_times_and_their_chats(tmp_path):
    path = database(tmp_path, ("b", 2, message("assistant", call(CUT))), ("a", 1, GO), ("b", 1, GO),
                    ("b", 3, result("ok")), ("a", 5, DONE), name="chats")
    seen = view_file(path)
    assert seen.inputs[0].format == "llama-index"
    assert [(each.exchange.session, each.exchange.response.text or "") for each in seen.responses] == [
        ("b", ""), ("a", "Done.")]
    assert words(seen) == ["CUT CALL RUN", "END NOT RECORDED"]


def test_a_store_of_thousands_of_answers_is_read_in_linear_time(tmp_path):
    def written(count):
        path = tmp_path / f"{count}.json"
        path.write_text(json.dumps(store(*(GO, message("assistant", call(WHOLE)), result("ok"), DONE) * count)))
        return path, 2 * count

    def read(file):
        assert len(open_paths([str(file[0])]).exchanges) == file[1]

    assert growth(read, written, 750) < IN_PROPORTION
