"""Tasks of CrewAI: calls that it refused or repaired, calls in the text of a model without calls, and last answers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.rows import each_row
from tests.scenes.shapes import EVERY
from tests.scenes.transcripts import rules, stops, view_file, words

NAME = "latest_kickoff_task_outputs"
TABLE = """CREATE TABLE {} (task_id TEXT PRIMARY KEY, task_key TEXT, expected_output TEXT, output JSON,
  task_index INTEGER, inputs JSON, was_replayed BOOLEAN, timestamp DATETIME);"""
CUT, WHOLE = '{"path": "report.md", "content": "Satur', '{"path": "report.md", "content": "done"}'
GO = {"role": "user", "content": "\nCurrent Task: Write the report."}
ANALYZE = {"role": "user", "content": "Analyze the tool result."}
DONE = {"role": "assistant", "content": "Done."}


def call(arguments, key="c1"):
    function = {"name": "write_file", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": key, "type": "function", "function": function}]}


def result(text, key="c1"):
    return {"role": "tool", "content": text, "tool_call_id": key, "name": "write_file"}


def action(given, *said, name="write_file"):
    """The text of a model without calls, and the result that CrewAI adds to it."""
    text = f"Thought: I write.\nAction: {name}\nAction Input: {given}"
    return {"role": "assistant", "content": "\nObservation: ".join([text, *said])}


def task(*messages, raw="Done.", **more):
    listed = {"messages": list(messages)} if messages else {}
    return {"description": "Write the report.", "summary": "Write…", "raw": raw, "agent": "worker", **listed, **more}


def database(tmp_path, *tasks, table=TABLE):
    path = tmp_path / f"{NAME}.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(table.format(NAME))
        for number, value in enumerate(tasks):
            output = value if isinstance(value, str) else json.dumps(value)
            made.execute(f"INSERT INTO {NAME} (task_id, output, task_index) VALUES (?, ?, ?)",
                         (f"t{number}", output, number))
    return path


def read(tmp_path, *messages, **more):
    return view_file(database(tmp_path, task(*messages, **more)))


def texts(seen):
    return [each.exchange.response.text or "" for each in seen.responses]


def notices(seen):
    return "\n".join(map(str, seen.inputs[0].notices))


def test_the_table_is_recognised_and_another_of_its_name_is_not(tmp_path):
    path = database(tmp_path)
    assert choose(path.read_bytes(), str(path)) == "crewai"
    path.unlink()
    other = database(tmp_path, table=TABLE.replace("task_index", "place"))
    assert choose(other.read_bytes(), str(other)) != "crewai"


def test_a_cut_call_that_crewai_could_not_parse_did_not_run(tmp_path):
    refused = "Error: Failed to parse tool arguments as JSON: Unterminated string starting at: line 1"
    seen = read(tmp_path, GO, call(CUT), result(refused), call(WHOLE, "c2"), result("done", "c2"), DONE)
    assert (stops(seen), words(seen)) == (["max_tokens", "tool_call", "unknown"], ["END NOT RECORDED"])
    assert seen.responses[0].exchange.refusals == {"c1": "the agent could not parse its arguments: it did not run"}


def test_a_cut_call_with_a_result_of_its_tool_ran(tmp_path):
    assert words(read(tmp_path, GO, call(CUT), result("61 bytes written"), DONE)) == ["CUT CALL RUN"]


@each_row("said", [
    "Error executing tool: [Errno 28] No space left", "Error: the Action Input is not a valid key, value dictionary.",
    "I encountered an error while trying to use the tool. This was the error: x.",
    "You tried to use the tool write_fil, but it doesn't exist.",
    "I tried reusing the same input, I must stop using this action input.",
])
def test_a_cut_call_with_an_error_may_not_have_run(tmp_path, said):
    seen = read(tmp_path, GO, action(CUT, said), ANALYZE, raw="Done.")
    assert words(seen) != ["CUT CALL RUN"]
    assert stops(seen)[0] == "max_tokens"


def test_a_cut_input_in_a_text_that_crewai_repaired_and_ran_is_cut_call_run(tmp_path):
    seen = read(tmp_path, GO, action(CUT, "61 bytes written"), ANALYZE, raw="The report is written.")
    assert words(seen) == ["CUT CALL RUN"]
    found = seen.responses[0].exchange.response
    assert (found.tool_calls[0].name, found.tool_calls[0].arguments) == ("write_file", CUT)
    assert found.tool_calls[0].at.pointer == "/message/content"
    assert "transcript.inferred.call_cut" in rules(seen)
    assert texts(seen) == ["Thought: I write.\n", "The report is written."]


def test_a_whole_input_in_a_text_is_a_call_with_its_result(tmp_path):
    seen = read(tmp_path, GO, action(f"{WHOLE}\n```", "61 bytes written"), ANALYZE, raw="Done.")
    assert (stops(seen), words(seen)) == (["tool_call", "unknown"], ["END NOT RECORDED"])
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == WHOLE


def test_a_text_about_actions_is_a_text(tmp_path):
    seen = read(tmp_path, GO, {"role": "assistant", "content": "My Action: none. Action Input: none"})
    assert (seen.responses[0].exchange.response.tool_calls, len(seen.responses)) == ((), 1)


@each_row(("messages", "raw", "said"), [
    ([GO], "The queue was", ["The queue was"]),
    ([], "The queue was", ["The queue was"]),
    ([GO, DONE], "Done.", ["Done."]),
    ([GO, DONE], '{"parsed": "Done."}', ["Done."]),
    ([GO, call(WHOLE), result("61 bytes")], "61 bytes", [""]),
    ([GO, call(WHOLE), result("61 bytes")], "It is written.", ["", "It is written."]),
    ([GO, action(WHOLE, "61 bytes")], "61 bytes", ["Thought: I write.\n"]),
    ([GO, action(WHOLE, "61 bytes")], "It is written.", ["Thought: I write.\n", "It is written."]),
    ([GO], None, []), ([GO], "", []),
])
def test_the_output_is_an_answer_unless_a_message_or_a_result_has_it(tmp_path, messages, raw, said):
    assert texts(read(tmp_path, *messages, raw=raw)) == said


def test_the_prompt_is_the_users_and_later_messages_are_crewais(tmp_path):
    seen = read(tmp_path, {"role": "system", "content": "You are worker."}, GO, action(WHOLE, "ok"), ANALYZE)
    assert len(seen.turns) == 1
    assert seen.responses[0].exchange.request.messages[0].text == GO["content"]


def test_each_task_is_a_session_named_by_its_prompt_or_its_name(tmp_path):
    seen = view_file(database(tmp_path, task(GO, DONE), task(GO, DONE, name="second"), task(GO, DONE)))
    assert [each.exchange.session for each in seen.responses] == [
        "Write the report. (t0)", "second", "Write the report. (t2)"]
    assert "3 of 3 answers have no stop reason, as CrewAI keeps none for them: " in notices(seen)


@pytest.mark.parametrize(("message", "said"), [
    ({**DONE, "tool_calls": "x"}, "message.tool_calls is text, but a list was expected; it was skipped"),
    ({**DONE, "role": 5}, "message.role is a number, but text was expected; it was skipped"),
])
def test_a_member_of_another_type_is_reported(tmp_path, message, said):
    assert said in notices(read(tmp_path, GO, message))


@pytest.mark.parametrize("odd", EVERY[:-1], ids=repr)
def test_odd_values_are_no_error(tmp_path, odd):
    said = {"role": "assistant", "content": odd, "tool_calls": odd}
    for value in ({"messages": odd, "raw": odd, "name": odd, "description": odd}, task(GO, said),
                  task(GO, {"role": odd, "content": odd}, raw=odd), json.dumps(odd)):
        path = database(tmp_path, value)
        (given,) = open_paths([str(path)]).inputs
        assert given.error is None
        path.unlink()


def test_the_output_of_a_damaged_row_is_skipped(tmp_path):
    assert texts(view_file(database(tmp_path, "{", task(GO, DONE)))) == ["Done."]


def test_thousands_of_answers_are_read_in_linear_time(tmp_path):
    def written(count):
        folder = Path(mkdtemp(dir=tmp_path))
        path = database(folder, task(GO, *[action(WHOLE, "ok"), ANALYZE] * count))
        return path, count + 1

    def read(file):
        assert len(open_paths([str(file[0])]).exchanges) == file[1]

    assert growth(read, written, 1_250) < IN_PROPORTION
