"""Sessions of OpenAI's Agents SDK: cut calls, items that the provider calls incomplete, runs that left no answer."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from inspector.sessions.importers.recognition import choose
from loop_core.values import ReasoningPart, TextPart, ToolCall
from tests.scenes.rows import each_row
from tests.scenes.transcripts import stops, view_file, words

CUT, WHOLE = '{"path": "a.md", "content": "# Rep', '{"path": "a.md"}'
FAKE = "__fake_id__"
GO = {"content": "go", "role": "user"}
FAILED = "An error occurred while running the tool. Please try again."
TABLES = """CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP);
CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, message_data TEXT,
  created_at TIMESTAMP);"""


def message(text="hi", key="msg_1", status="completed", **more):
    return {"id": key, "type": "message", "role": "assistant", "status": status,
            "content": [{"type": "output_text", "text": text, "annotations": []}], **more}


def call(arguments=WHOLE, key="fc_1", name="write_file", **more):
    return {"id": key, "type": "function_call", "call_id": "c1", "name": name, "arguments": arguments, **more}


def output(text, key="c1", kind="function_call_output"):
    return {"type": kind, "call_id": key, "output": text}


def chat(item, response="chatcmpl-1"):
    """An item of Chat Completions."""
    return {**item, "id": FAKE, "provider_data": {"model": "gpt-5", "response_id": response}}


def base(tmp_path, *items, tables=TABLES):
    path = tmp_path / "conversations.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(tables)
        for item in items:
            session, held = item if isinstance(item, tuple) else ("s1", item)
            made.execute("INSERT INTO agent_messages (session_id, message_data, created_at) VALUES (?, ?, ?)",
                         (session, held if isinstance(held, str) else json.dumps(held), "2026-01-01 00:00:00"))
    return path


def read(tmp_path, *items):
    return view_file(base(tmp_path, *items))


def response(seen, index=0):
    return seen.responses[index].exchange.response


def notices(seen):
    return "\n".join(seen.inputs[0].notices)


def test_the_tables_of_the_sdk_are_recognised(tmp_path):
    path = base(tmp_path, GO)
    assert choose(path.read_bytes(), str(path)) == "openai-agents"


def test_tables_of_other_columns_are_not_the_sdks(tmp_path):
    path = base(tmp_path, tables=TABLES.replace("message_data", "payload"))
    assert choose(path.read_bytes(), str(path)) is None


def test_a_call_whose_arguments_were_cut_is_held_and_did_not_run(tmp_path):
    seen = read(tmp_path, GO, chat(message("I write.")), chat(call(CUT)), output(FAILED))
    assert words(seen) == ["CALL HELD"]
    assert (stops(seen), response(seen).model) == (["max_tokens"], "gpt-5")
    assert response(seen).tool_calls[0].arguments == CUT


@pytest.mark.parametrize("count", [1, 2])
def test_calls_whose_ids_are_empty_are_answered_by_as_many_results(tmp_path, count):
    calls = [chat(call(call_id="", name=f"tool_{at}")) for at in range(count)]
    seen = read(tmp_path, GO, *calls, *[output("done", "")] * count, chat(message(), "chatcmpl-2"))
    assert stops(seen) == ["tool_call", "unknown"]
    (tmp_path / "conversations.db").unlink()
    assert stops(read(tmp_path, GO, *calls, *[output("done", "")] * (count + 1))) == ["unknown"]


@pytest.mark.parametrize("key", ["c1", ""])
def test_a_cut_call_with_a_result_of_its_tool_ran(tmp_path, key):
    assert words(read(tmp_path, GO, chat(call(CUT, call_id=key)), output("61 bytes written", key))) == ["CUT CALL RUN"]


def test_the_completed_of_an_item_of_another_api_is_no_stop_word(tmp_path):
    seen = read(tmp_path, GO, chat(message("The queue was")))
    assert words(seen) == ["END NOT RECORDED"]
    assert response(seen).api == "openai_chat"
    assert "answers have no stop reason, as the Agents SDK keeps none for them: " in notices(seen)


@pytest.mark.parametrize("item", [message(status="incomplete"), call(CUT, status="incomplete")])
def test_an_incomplete_item_is_the_providers_word_for_a_cut_of_any_kind(tmp_path, item):
    seen = read(tmp_path, GO, item)
    found = response(seen)
    assert (found.api, found.stop_reason.raw, stops(seen)) == ("openai_responses", "incomplete", ["interrupted"])
    assert found.stop_reason.evidence[0].at.pointer == "/status"
    assert [each.closed for each in found.tool_calls] in ([], [False])


def test_the_items_of_a_response_are_one_answer_and_those_of_two_are_two(tmp_path):
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    seen = read(tmp_path, GO, thought, message(), call(), output("ok"), message("done", key="msg_1"))
    assert [type(part) for part in response(seen).parts] == [ReasoningPart, TextPart, ToolCall]
    assert [len(seen.responses), words(seen)] == [2, ["END NOT RECORDED"]]


def test_items_of_two_responses_are_two_answers(tmp_path):
    seen = read(tmp_path, GO, chat(message("a")), chat(message("b")), chat(message("c"), "chatcmpl-2"))
    assert [len(each.exchange.response.parts) for each in seen.responses] == [2, 1]


@pytest.mark.parametrize("kind", ["function_call_output", "custom_tool_call_output", "shell_call_output"])
def test_an_item_with_an_output_is_a_result(tmp_path, kind):
    seen = read(tmp_path, GO, call(), output([{"type": "input_text", "text": "Ada"}], kind=kind))
    (answer,) = seen.inputs[0].answers
    assert (answer.result.text, answer.result.is_error) == ("Ada", False)


def test_the_result_of_a_tool_that_failed_is_an_error(tmp_path):
    seen = read(tmp_path, GO, call(), output(f"{FAILED} Error: no such file"))
    assert [answer.result.is_error for answer in seen.inputs[0].answers] == [True]


@each_row("passed", [
    {"role": "system", "content": "x"}, {"role": "developer", "content": "x"}, {"type": "item_reference", "id": "i"},
    {"type": "compaction", "encrypted_content": "x"},
])
def test_items_that_hold_no_part_of_an_exchange_are_counted(tmp_path, passed):
    seen = read(tmp_path, passed, GO, message())
    assert len(response(seen).parts) == len(seen.responses) == 1
    assert "known records that hold no exchange: " in notices(seen)


def test_sessions_of_a_database_are_apart_and_those_without_an_answer_are_told(tmp_path):
    seen = read(tmp_path, ("s1", GO), ("s2", GO), ("s1", chat(call())), ("s2", chat(message("b"))),
                ("s1", output("ok")), ("s1", chat(message("done"), "chatcmpl-2")), ("s3", GO))
    assert [each.exchange.session for each in seen.responses] == ["s1", "s2", "s1"]
    assert "sessions in it: 3" in notices(seen)
    assert "rows that end a session with a message of the user, as a run that failed leaves it: 1" in notices(seen)


def test_a_row_that_is_no_item_hides_nothing_else(tmp_path):
    seen = read(tmp_path, GO, "{", "[]", {"__enc__": 1}, {"type": "message", "role": 7}, message())
    assert [part.text for part in response(seen).parts] == ["hi"]


def test_a_member_of_an_unexpected_type_is_told(tmp_path):
    seen = read(tmp_path, GO, {**message(), "provider_data": 7})
    assert "row 2: provider_data is a number, but an object was expected" in notices(seen)


def swarm(item, caller=None, agent="CEO", at=0):
    return {**item, "agent": agent, "callerAgent": caller, "agent_run_id": "agent_run_1",
            "history_protocol": "responses", "timestamp": 1_767_225_600_000_000 + at}


def test_the_messages_of_agency_swarm(tmp_path):
    chats = {"provider_data": {"model": "gpt-5", "response_id": "chatcmpl-1"}}
    path = tmp_path / "thread_data.json"
    path.write_text(json.dumps([
        swarm(GO), swarm(message("Asking.", "msg_agent_run_1_0", **chats)),
        swarm(call(CUT, "c1", **chats)), swarm(output(FAILED + " Error: Invalid JSON input for tool write_file: x")),
        swarm(GO, "CEO", "Dev"), swarm(message("Half", status="incomplete"), "CEO", "Dev", 1_000_000)], indent=2))
    seen = view_file(path)
    assert seen.inputs[0].format == "openai-agents"
    assert [facts.exchange.session for facts in seen.responses] == ["user › CEO", "CEO › Dev"]
    assert stops(seen) == ["max_tokens", "interrupted"]
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]
    assert ["transcript.api_assumed" in [mark.rule for mark in facts.exchange.profile_evidence]
            for facts in seen.responses] == [True, False]
    assert seen.responses[1].exchange.started == "2026-01-01T00:00:01.000+00:00"
