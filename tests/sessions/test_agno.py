"""Databases of Agno: cuts that the cap of the agent shows, calls that were cut, runs that failed, older tables."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from inspector.sessions.importers.recognition import choose
from loop_core.values import ArgsForm, ReasoningPart, TextPart, Usage
from tests.scenes.transcripts import rules, stops, view_file, words

SESSIONS = """CREATE TABLE {name} (session_id VARCHAR PRIMARY KEY, session_type VARCHAR, agent_data JSON,
  created_at BIGINT{more});"""
RUNS = "CREATE TABLE agno_runs (run_id VARCHAR, session_id VARCHAR, status VARCHAR, run_data JSON, created_at BIGINT);"
CUT, WHOLE = '{"path": "a.md", "content": "# Rep', '{"path": "a.md"}'
GO = {"role": "user", "content": "go"}


def model(content="hi", output=7, **more):
    counts = {"input_tokens": 3, "output_tokens": output, "reasoning_tokens": 2, "cache_read_tokens": 1,
              "cache_write_tokens": 4}
    return {"role": "assistant", "content": content, "metrics": counts, "created_at": 1700000000, **more}


def call(arguments=WHOLE, key="c1"):
    return {"id": key, "type": "function", "function": {"name": "write_file", "arguments": arguments}}


def tool(content="61 bytes", **more):
    return {"role": "tool", "content": content, "tool_call_id": "c1", "tool_name": "write_file", **more}


def block(key="c1"):
    return {"content_blocks": [{"type": "text", "text": "hi"},
                               {"type": "tool_use", "id": key, "name": "write_file", "input": {"path": "a.md"}}]}


def run(*messages, status="COMPLETED", key="r1", session="s1", **more):
    return {"run_id": key, "session_id": session, "model": "gpt-5", "status": status, "messages": list(messages),
            **more}


def base(folder, *runs, cap=None, name="agno_sessions"):
    """A database of release 3."""
    path = folder / "agno.db"
    with closing(sqlite3.connect(path)) as made, made:
        name = '"{}"'.format(name.replace('"', '""'))
        made.executescript(SESSIONS.format(name=name, more="") + RUNS)
        sessions = {each["session_id"]: None for each in runs}
        for session in sessions:
            agent = {"agent_id": "a", "model": {"id": "gpt-5", "max_tokens": cap}}
            made.execute(f'INSERT INTO {name} VALUES (?, ?, ?, ?)', (session, "agent", json.dumps(agent), 1))
        for each in runs:
            made.execute("INSERT INTO agno_runs VALUES (?, ?, ?, ?, ?)", (
                each["run_id"], each["session_id"], each["status"], json.dumps(each), 1))
    return path


def read(folder, *runs, **more):
    return view_file(base(folder, *runs, **more))


def response(seen, index=0):
    return seen.responses[index].exchange.response


def notices(seen):
    return "\n".join(seen.inputs[0].notices)


@pytest.mark.parametrize("name", ["agno_sessions", 'My "sessions"'])
def test_the_tables_are_recognised_by_their_columns(tmp_path, name):
    path = base(tmp_path, run(GO, model()), name=name)
    assert choose(path.read_bytes(), str(path)) == "agno"
    assert response(view_file(path)).parts == (TextPart("hi"),)


@pytest.mark.parametrize("lacking", ["session_id", "session_type", "agent_data"])
def test_a_table_without_one_of_the_columns_is_another(tmp_path, lacking):
    path = base(tmp_path, run(GO, model()))
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript("DROP TABLE agno_sessions;" + SESSIONS.format(name="s", more="").replace(lacking, "other"))
    assert choose(path.read_bytes(), str(path)) is None


@pytest.mark.parametrize("encode", [json.dumps, lambda runs: json.dumps(json.dumps(runs))])
def test_the_runs_of_a_session_of_an_older_release_are_read(tmp_path, encode):
    path = tmp_path / "agno.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(SESSIONS.format(name="agno_sessions", more=", runs JSON"))
        made.execute("INSERT INTO agno_sessions VALUES (?, ?, ?, ?, ?)", (
            "s1", "agent", encode({"model": {"max_tokens": 7}}), 1, encode([run(GO, model()), run(GO, model("b", 6))])))
    seen = view_file(path)
    assert words(seen) == ["TRUNCATED, ANSWER LOST", "END NOT RECORDED"]
    assert response(seen, 1).parts == (TextPart("b"),)


def test_a_completed_run_is_no_stop_word_and_the_cap_of_the_agent_shows_a_cut(tmp_path):
    seen = read(tmp_path, run(GO, model()))
    assert (words(seen), response(seen).stop_reason.raw) == (["END NOT RECORDED"], None)
    assert (response(seen).model, response(seen).usage) == ("gpt-5", Usage(3, 7, 2, 1, 4))
    assert seen.responses[0].exchange.started == "2023-11-14T22:13:20.000+00:00"
    assert "answers have no stop reason, as Agno keeps none for them: " in notices(seen)
    (tmp_path / "agno.db").unlink()
    seen = read(tmp_path, run(GO, model()), cap=7)
    assert (words(seen), rules(seen)) == (["TRUNCATED"], ["transcript.absent", "transcript.inferred.tokens_at_cap"])


def test_a_cut_call_is_held_and_did_not_run(tmp_path):
    why = "Error while decoding function arguments: unterminated string literal"
    seen = read(tmp_path, run(GO, model(tool_calls=[call(CUT)]), tool(why)))
    assert (words(seen), stops(seen)) == (["CALL HELD"], ["max_tokens"])


def test_a_cut_call_of_claude_that_has_a_result_ran(tmp_path):
    answer = model(tool_calls=[call()], provider_data=block())
    seen = read(tmp_path, run(GO, answer, tool(tool_call_error=False), model("done", 6)), cap=7)
    assert words(seen) == ["CUT CALL RUN"]
    (cut,) = response(seen).tool_calls
    assert (cut.arguments, cut.form) == (WHOLE, ArgsForm.OBJECT)


@pytest.mark.parametrize(("cap", "stop"), [(7, "max_tokens"), (None, "unknown")])
def test_a_call_of_claude_that_agno_did_not_take_is_held(tmp_path, cap, stop):
    seen = read(tmp_path, run(GO, model(provider_data=block())), cap=cap)
    assert (stops(seen), len(response(seen).tool_calls)) == ([stop], 1)
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]


@pytest.mark.parametrize("failed", [False, True])
def test_the_result_of_a_call_is_read(tmp_path, failed):
    (answer,) = read(tmp_path, run(GO, model(tool_calls=[call()]), tool(tool_call_error=failed))).inputs[0].answers
    assert (answer.result.text, answer.result.is_error) == ("61 bytes", failed)


def test_a_request_that_failed_is_an_answer_with_its_error(tmp_path):
    seen = read(tmp_path, run(GO, status="ERROR", content="Connection error."))
    assert (words(seen), response(seen).error.message) == (["ERROR"], "Connection error.")


def test_of_a_stream_that_broke_off_the_text_is_read(tmp_path):
    events = [{"event": "RunStarted"}, {"event": "RunError", "content": "The server had an error."}]
    seen = read(tmp_path, run(GO, status="ERROR", content="The que", events=events))
    assert (response(seen).error.message, response(seen).parts) == ("The server had an error.", (TextPart("The que"),))


@pytest.mark.parametrize("events", [[], [{"event": "RunError", "content": "No key"}]])
def test_a_run_that_failed_before_its_messages_were_stored_has_its_input(tmp_path, events):
    failed = run(status="ERROR", content="No key", events=events, input={"input_content": "go"}, key="r2")
    seen = read(tmp_path, run(GO, model()), failed)
    assert words(seen) == ["END INFERRED", "ERROR"]
    assert (response(seen, 1).error.message, response(seen, 1).parts) == ("No key", ())
    assert [facts.exchange.request.messages[-1].text for facts in seen.responses] == ["go", "go"]


def test_an_answer_that_is_only_in_the_output_of_its_run_is_read(tmp_path):
    seen = read(tmp_path, run(GO, content="hi"), run(content="hi", input={"input_content": "more"}, key="r2"))
    assert words(seen) == ["END INFERRED", "END NOT RECORDED"]
    assert [facts.exchange.response.text for facts in seen.responses] == ["hi", "hi"]


def test_what_a_tool_returned_last_is_no_answer(tmp_path):
    asks = model(None, tool_calls=[call()])
    seen = read(tmp_path, run(GO, asks, tool(stop_after_tool_call=True), content="61 bytes"))
    assert [facts.exchange.response.text for facts in seen.responses] == [None]


def test_an_error_behind_an_answer_and_a_cancelled_run_end_the_turn(tmp_path):
    seen = read(tmp_path, run(GO, model(), status="ERROR", content="No such store"))
    assert "the run ended with an error: No such store" in seen.turns[0].verdict.sentence
    (tmp_path / "agno.db").unlink()
    assert words(read(tmp_path, run(GO, model(), status="CANCELLED"))) == ["CANCELLED"]


def test_messages_of_earlier_runs_and_instructions_are_not_read_again(tmp_path):
    again = [{**each, "from_history": True} for each in (GO, model("a"))]
    passed = [{"role": "system", "content": "x"}, {"role": "developer", "content": "x"}]
    seen = read(tmp_path, run(*passed, GO, model("a")), run(*again, GO, model("b"), {"role": "hologram"}, key="r2"))
    assert [each.exchange.response.parts[0].text for each in seen.responses] == ["a", "b"]
    assert "known records that hold no exchange: " in notices(seen)
    assert "hologram" in notices(seen)


def test_runs_of_members_are_below_their_session_and_sessions_are_apart(tmp_path):
    seen = read(tmp_path, run(GO, model("a")), run(GO, model("b"), key="r2", parent_run_id="r1"),
                run(GO, model("c"), session="s2"))
    assert [each.exchange.session for each in seen.responses] == ["s1", "s1 › s1/r2", "s2"]


def test_reasoning_and_damaged_runs_hide_nothing_else(tmp_path):
    path = base(tmp_path, run(GO, model("a", reasoning_content="hm")), run(GO, model("b"), session="s2"))
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("UPDATE agno_runs SET run_data = '{' WHERE session_id = 's2'")
        made.execute("UPDATE agno_sessions SET agent_data = NULL")
    assert response(view_file(path)).parts == (ReasoningPart("hm"), TextPart("a"))


def test_a_member_of_an_unexpected_type_is_told(tmp_path):
    seen = read(tmp_path, run(GO, model(metrics=7), status=7))
    assert "status" in notices(seen)
    assert "metrics" in notices(seen)
