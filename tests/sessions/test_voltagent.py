"""Conversations of VoltAgent: the answers within a message, calls that it refused, and what it stores of failures."""

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
from tests.scenes.transcripts import stops, view_file, words

TABLES = """
CREATE TABLE {0}_conversations (id TEXT PRIMARY KEY, title TEXT);
CREATE TABLE {0}_messages (conversation_id TEXT, message_id TEXT, user_id TEXT, role TEXT, parts TEXT, metadata TEXT,
  format_version INTEGER DEFAULT 2, created_at TEXT);
CREATE TABLE {0}_steps (id TEXT, operation_id TEXT, step_index INTEGER, type TEXT, content TEXT, arguments TEXT,
  result TEXT, usage TEXT);"""
CUT, WHOLE = '{"path": "report.md", "content": "Satur', {"path": "report.md", "content": "done"}
REFUSED = "Invalid input for tool write_file: JSON parsing failed: Text: {}.\nError message: Unterminated string"
STEP = {"type": "step-start"}


def text(said):
    return {"type": "text", "text": said}


def call(given, key="c1", output=("text", "61 bytes written"), state="output-available", **more):
    kind, value = output
    result = {"output": {"type": kind, "value": value}} if state == "output-available" else {}
    return {"type": "tool-write_file", "toolCallId": key, "state": state, "input": given, **result, **more}


def refused(raw=CUT, key="c1"):
    return call({}, key, ("error-text", REFUSED.format(raw)))


def row(step, key, *, said=None, arguments=None, kind="tool_call", counts=(5, 7), run="run"):
    usage = {"promptTokens": counts[0], "completionTokens": counts[1], "cachedInputTokens": 0, "reasoningTokens": 0}
    return (key, run, step, kind, said, arguments if arguments is None else json.dumps(arguments), json.dumps(usage))


def said_row(step, said, **more):
    return row(step, f"text{step}", said=said, kind="text", **more)


def conversation(*parts, key="k", at="2026-11-29T18:00:02Z", asked="go", run="run"):
    """A message of the user, and one of the assistant with these parts."""
    about = json.dumps({"operationId": run})
    return [(key, "user", json.dumps([text(asked)]), about, "2026-11-29T18:00:01Z"),
            (key, "assistant", json.dumps(list(parts)), about, at)]


def database(tmp_path, messages, steps=(), titles=(), prefix="voltagent_memory", leave_out=None):
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(TABLES.format(prefix))
        if leave_out is not None:
            made.execute(f"DROP TABLE {prefix}_{leave_out}")
        for number, each in enumerate(messages):
            made.execute(f"INSERT INTO {prefix}_messages (message_id, conversation_id, role, parts, metadata, "
                         "created_at) VALUES (?, ?, ?, ?, ?, ?)", (f"m{number}", *each))
        for each in steps:
            made.execute(f"INSERT INTO {prefix}_steps (id, operation_id, step_index, type, content, arguments, usage) "
                         "VALUES (?, ?, ?, ?, ?, ?, ?)", each)
        for each in titles:
            made.execute(f"INSERT INTO {prefix}_conversations VALUES (?, ?)", each)
    return path


def read(tmp_path, *parts, steps=(), **more):
    return view_file(database(tmp_path, conversation(*parts), steps, **more))


def calls(seen):
    return [[(each.name, each.arguments, each.at.pointer) for each in step.exchange.response.tool_calls]
            for step in seen.responses]


def texts(seen):
    return [each.exchange.response.text or "" for each in seen.responses]


def found_rules(seen, at=0):
    return {each.rule for each in seen.responses[at].exchange.response.findings}


def notices(seen):
    return "\n".join(map(str, seen.inputs[0].notices))


@pytest.mark.parametrize("prefix", ["voltagent_memory", "own"])
def test_the_tables_are_recognised_by_their_columns_whatever_their_name_is(tmp_path, prefix):
    path = database(tmp_path, conversation(text("Done.")), prefix=prefix)
    assert choose(path.read_bytes(), str(path)) == "voltagent"
    assert texts(view_file(path)) == ["Done."]


@each_row("column", ["format_version", "parts", "message_id", "metadata"])
def test_a_table_without_one_of_the_columns_is_another_ones(tmp_path, column):
    path = database(tmp_path, [])
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(f"ALTER TABLE voltagent_memory_messages DROP COLUMN {column}")
    assert choose(path.read_bytes(), str(path)) != "voltagent"


def test_a_cut_call_is_shown_as_it_came_and_did_not_run(tmp_path):
    seen = read(tmp_path, text("I write."), refused(), call(WHOLE, "c2"), STEP, text("Done."),
                steps=[row(0, "c1", arguments=CUT), said_row(0, "I write."), row(1, "c2", kind="tool_result")])
    assert (stops(seen), words(seen)) == (["max_tokens", "tool_call", "unknown"], ["END NOT RECORDED"])
    assert calls(seen) == [[("write_file", CUT, "/steps/0/arguments")],
                           [("write_file", json.dumps(WHOLE), "/parts/2/input")], []]
    assert texts(seen) == ["I write.", "", "Done."]
    assert seen.responses[0].exchange.refusals == {"c1": "the agent refused its arguments: it did not run"}
    assert "transcript.unread_call" in found_rules(seen)


@pytest.mark.parametrize("leave_out", ["steps", None])
def test_without_its_step_the_refusal_has_the_arguments_of_a_cut_call(tmp_path, leave_out):
    seen = read(tmp_path, refused(), call(WHOLE, "c2"), leave_out=leave_out)
    assert calls(seen)[0] == [("write_file", CUT, "/parts/0/output/value")]
    assert stops(seen) == ["max_tokens", "tool_call"]


def test_a_call_whose_arguments_are_no_json_is_refused_and_not_called_cut(tmp_path):
    seen = read(tmp_path, refused("{path: a}"), steps=[row(0, "c1", arguments="{path: a}")])
    assert stops(seen) == ["malformed_tool_call"]
    assert calls(seen) == [[("write_file", "{path: a}", "/steps/0/arguments")]]
    assert seen.responses[0].exchange.refusals


def test_a_cut_call_with_a_result_of_its_tool_ran(tmp_path):
    assert words(read(tmp_path, call({}), STEP, text("Done."), steps=[row(0, "c1", arguments=CUT)])) == ["CUT CALL RUN"]


@pytest.mark.parametrize(("output", "said"), [
    (("text", "61 bytes written"), ("61 bytes written", False)), (("json", {"n": 1}), ('{"n": 1}', False)),
    (("json", {"error": True, "message": "disk full", "stack": "Error: disk"}), ("disk full", True)),
    (("error-text", "disk full"), ("disk full", True)), (("error-json", {"n": 1}), ('{"n": 1}', True)),
])
def test_a_result_is_read_out_of_its_envelope(tmp_path, output, said):
    seen = read(tmp_path, call(WHOLE, output=output), STEP, text("Done."))
    (result,) = seen.responses[1].exchange.request.messages[0].results
    assert (result.call_id, result.text, result.is_error) == ("c1", *said)


def test_a_call_that_the_user_refused_did_not_run(tmp_path):
    seen = read(tmp_path, call(WHOLE, state="output-denied"), STEP, text("Done."))
    assert seen.responses[0].exchange.refusals == {"c1": "the user refused it: it did not run"}


def test_parallel_calls_are_one_answer_and_calls_of_two_steps_are_two(tmp_path):
    both = call(WHOLE), call(WHOLE, "c2")
    seen = read(tmp_path, *both, STEP, text("Done."))
    assert list(map(len, calls(seen))) == [2, 0]
    (tmp_path / "memory.db").unlink()
    seen = read(tmp_path, *both, steps=[row(0, "c1", kind="tool_result"), row(0, "c2", kind="tool_result")])
    assert list(map(len, calls(seen))) == [2]
    (tmp_path / "memory.db").unlink()
    seen = read(tmp_path, *both, steps=[row(0, "c1", kind="tool_result"), row(1, "c2", kind="tool_result")])
    assert list(map(len, calls(seen))) == [1, 1]


def test_a_refused_call_and_a_whole_one_of_one_step_are_one_answer(tmp_path):
    seen = read(tmp_path, refused("{a: 1}"), call(WHOLE, "c2"),
                steps=[row(0, "c1", arguments="{a: 1}"), row(0, "c2", kind="tool_result")])
    assert list(map(len, calls(seen))) == [2]


def test_thinking_after_a_call_belongs_to_the_next_answer(tmp_path):
    seen = read(tmp_path, call(WHOLE), {"type": "reasoning", "text": "hm"}, text("Done."))
    assert texts(seen) == ["", "Done."]


def test_the_text_after_a_call_that_the_provider_ran_is_of_the_same_answer(tmp_path):
    seen = read(tmp_path, call(WHOLE, providerExecuted=True), STEP, text("Done."))
    assert texts(seen) == ["Done."]


def test_the_counts_are_those_of_the_step_and_zeros_are_none(tmp_path):
    parts = (text("I write."), call(WHOLE), STEP, text(" Done.\n"))
    steps = [row(0, "c1", kind="tool_result", counts=(11, 12)), said_row(1, "Done.", counts=(0, 0))]
    seen = read(tmp_path, *parts, steps=steps)
    usages = [each.exchange.response.usage for each in seen.responses]
    assert (usages[0].input_tokens, usages[0].output_tokens, usages[1]) == (11, 12, None)
    (tmp_path / "memory.db").unlink()
    seen = read(tmp_path, *parts, steps=[said_row(0, "I write.", run="other"), said_row(1, "Done.", counts=(3, 4))])
    usages = [each.exchange.response.usage for each in seen.responses]
    assert (usages[0], usages[1].output_tokens) == (None, 4)


def test_two_steps_with_one_text_have_no_counts(tmp_path):
    seen = read(tmp_path, text("Look."), call(WHOLE), STEP, text("Look."),
                steps=[said_row(0, "Look."), said_row(1, "Look.")])
    assert [each.exchange.response.usage for each in seen.responses] == [None, None]


def test_a_call_with_empty_arguments_shows_no_end(tmp_path):
    seen = read(tmp_path, call({}), STEP, text("Done."))
    assert stops(seen) == ["unknown", "unknown"]
    assert "transcript.empty_arguments" in found_rules(seen)


@pytest.mark.parametrize("state", ["input-available", "input-streaming"])
def test_a_call_without_a_result_is_not_whole(tmp_path, state):
    seen = read(tmp_path, text("I write."), call(WHOLE, state=state))
    assert (stops(seen), words(seen)) == (["unknown"], ["END NOT RECORDED"])


def test_a_text_before_the_users_next_message_may_have_been_cut(tmp_path):
    first, second = conversation(text("The queue was")), conversation(text("Done."), at="2026-11-29T18:00:04Z")
    second[0] = (*second[0][:-1], "2026-11-29T18:00:03Z")
    assert stops(view_file(database(tmp_path, first + second))) == ["unknown", "unknown"]


def test_an_answer_without_parts_is_not_called_empty(tmp_path):
    seen = read(tmp_path)
    assert (stops(seen), words(seen)) == (["unknown"], ["END NOT RECORDED"])
    assert "transcript.not_stored" in found_rules(seen)


def test_a_request_that_failed_leaves_the_users_message(tmp_path):
    seen = view_file(database(tmp_path, [*conversation(text("Done.")), *conversation(key="other")[:1]]))
    assert "rows that end a conversation with a message of the user, as a request that failed" in notices(seen)
    assert "1 of 1 answers have no stop reason, as VoltAgent keeps none for them: " in notices(seen)


@pytest.mark.parametrize(("title", "named"), [
    ("Rivers", "Rivers"), ("New Chat 2026-11-29T17:50:09.124Z", "k"), ("", "k")])
def test_a_conversation_has_its_title_or_its_id(tmp_path, title, named):
    messages = conversation(text("Done.")) + conversation(text("Done."), key="other")
    seen = view_file(database(tmp_path, messages, titles=[("k", title)]))
    assert [each.exchange.session for each in seen.responses] == [named, "other"]


@pytest.mark.parametrize("leave_out", ["conversations", "steps"])
def test_a_table_may_be_absent(tmp_path, leave_out):
    assert texts(read(tmp_path, text("Done."), leave_out=leave_out)) == ["Done."]


@pytest.mark.parametrize("odd", EVERY[:-1], ids=repr)
def test_odd_values_are_no_error(tmp_path, odd):
    part = {"type": odd, "text": odd, "toolCallId": odd, "state": odd, "input": odd, "output": odd}
    for parts in (odd, [odd], [call(odd, output=(odd, odd)), call({}, output=("error-text", odd))],
                  [part, {**part, "type": "tool-w"}, {**part, "type": "tool-w", "state": "output-available"}]):
        about = json.dumps({"operationId": odd})
        messages = [("k", role, json.dumps(parts), about, "2026") for role in ("user", "assistant", "tool")]
        steps = [(json.dumps(odd), "run", 0, "text", json.dumps(odd), json.dumps(odd), json.dumps(odd))]
        path = database(tmp_path, [*messages, ("k", "user", "{", "{", None)], steps)
        (given,) = open_paths([str(path)]).inputs
        assert given.error is None
        path.unlink()


def test_a_member_of_another_type_is_reported(tmp_path):
    seen = view_file(database(tmp_path, [*conversation(text("Done.")), ("k", "assistant", '"x"', None, "2027")]))
    assert "parts is text, but a list was expected; it was skipped" in notices(seen)


def test_thousands_of_answers_are_read_in_linear_time(tmp_path):
    def written(count):
        folder = Path(mkdtemp(dir=tmp_path))
        messages = [each for at in range(count) for each in conversation(
            call(WHOLE, f"c{at}"), STEP, text("Done."), run=f"r{at}")]
        path = database(folder, messages, [row(0, f"c{at}", run=f"r{at}", kind="tool_result") for at in range(count)])
        return path, 2 * count

    def read(file):
        assert len(open_paths([str(file[0])]).exchanges) == file[1]

    assert growth(read, written, 600) < IN_PROPORTION
