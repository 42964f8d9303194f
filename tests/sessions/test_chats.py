"""Hermes, Goose, Crush and Amp: words and whose they are, calls that are not whole, results, sessions, odd rows."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from inspector.report.times_and_costs import input_tokens
from inspector.report.turn_rows import rows_of
from inspector.sessions import open_paths
from inspector.sessions.folders import transcripts
from inspector.sessions.importers.recognition import choose
from loop_core.judge.endings import Ending
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.shapes import EVERY
from tests.scenes.transcripts import rules, show, stops, view_file, words

Row = dict[str, Any]
TABLES = {
    "hermes": """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, parent_session_id TEXT, started_at REAL,
  title TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,
  tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, finish_reason TEXT, reasoning_content TEXT,
  active INTEGER, compacted INTEGER, display_kind TEXT);""",
    "goose": """
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, working_dir TEXT, model_config_json TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content_json TEXT,
  created_timestamp INTEGER, metadata_json TEXT);""",
    "crush": """
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, created_at INTEGER);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts BLOB, model TEXT, provider TEXT,
  created_at INTEGER, is_summary_message INTEGER);""",
}
SESSION = {"id": "s1"}


def database(agent: str, tmp_path: Path, messages: list[Row], *sessions: Row) -> Path:
    """A database of this agent; lists and objects in a column are JSON."""
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / f"{agent}.db"
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(TABLES[agent])
        for table, rows in (("sessions", sessions or (SESSION,)), ("messages", messages)):
            for number, row in enumerate(rows):
                made = {"session_id": "s1", **row} if table == "messages" else row
                made = {"id": f"m{number}", **made} if agent == "crush" else made
                values = [json.dumps(value) if isinstance(value, (list, dict)) else value for value in made.values()]
                base.execute(f"INSERT INTO {table} ({', '.join(made)}) VALUES ({', '.join('?' * len(made))})",
                             values)
    return path


def look(agent: str, tmp_path: Path, messages: list[Row], *sessions: Row):
    return view_file(database(agent, tmp_path, messages, *sessions))


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def calls(seen, index: int = 0):
    return [(each.name, each.arguments, each.closed) for each in seen.responses[index].exchange.response.tool_calls]


# -- Hermes ------------------------------------------------------------------------------------------------------------

ASKED = {"role": "user", "content": "go"}


def function(arguments: Any = '{"a": 1}', key: str = "c1") -> Row:
    return {"id": key, "type": "function", "function": {"name": "write", "arguments": arguments}}


@each_row(("word", "stop", "rule"), [
    ("stop", "end_turn", "hermes.finish_reasons"), ("length", "max_tokens", "hermes.finish_reasons"),
    ("tool_calls", "tool_call", "hermes.finish_reasons"), ("content_filter", "safety_blocked", "hermes.finish_reasons"),
    ("verification_required", "end_turn", "hermes.finish_reasons"),
    ("verify_hook_continue", "end_turn", "hermes.finish_reasons"),
    ("kanban_terminal_required", "end_turn", "hermes.finish_reasons"),
    ("promise_unfulfilled", "end_turn", "hermes.finish_reasons"),
    ("cancelled", "cancelled", "hermes.finish_reasons"), ("failed", "error", "hermes.finish_reasons"),
    ("incomplete", "interrupted", "hermes.finish_reasons"), ("error", "error", "hermes.finish_reasons"),
    ("brand_new", "unknown", "unknown_word"),
])
def test_the_words_of_hermes(tmp_path, word, stop, rule):
    seen = look("hermes", tmp_path, [ASKED, {"role": "assistant", "content": "hi", "finish_reason": word}])
    assert stops(seen) == [stop]
    assert rules(seen)[:2] == ["transcript.recorder", rule]
    assert "writes 'stop' also where the provider sent none" in notices(seen)


def test_an_answer_that_hermes_says_is_not_finished_is_quoted_and_no_bytes_are_spoken_of(tmp_path):
    seen = look("hermes", tmp_path, [ASKED, {"role": "assistant", "content": "hi", "finish_reason": "incomplete"}])
    assert (words(seen), seen.turns[0].verdict.sentence) == (
        ["INTERRUPTED"], 'the model did not finish the answer ("incomplete" as the recorder says)')


def test_a_session_of_hermes_has_calls_results_and_its_model(tmp_path):
    seen = look("hermes", tmp_path, [
        ASKED,
        {"role": "assistant", "tool_calls": [function()], "finish_reason": "tool_calls", "reasoning_content": "hm"},
        {"role": "tool", "content": "ok", "tool_call_id": "c1", "tool_name": "write", "timestamp": 1785585602.0},
        {"role": "assistant", "content": '\0json:[{"type": "text", "text": "Done."}]', "finish_reason": "stop"},
        {"role": "system", "content": "x"}, {"role": "user", "content": "undone", "active": 0},
    ], {"id": "s1", "model": "deepseek", "title": "A title"})
    assert stops(seen) == ["tool_call", "end_turn"]
    assert calls(seen) == [("write", '{"a": 1}', True)]
    assert seen.responses[1].exchange.response.text == "Done."
    assert seen.responses[0].exchange.model == "deepseek"
    assert words(seen) == ["COMPLETE"]
    assert "the user took back: 1" in notices(seen)
    assert seen.inputs[0].about.title == "A title"


def test_what_hermes_adds_opens_no_turn(tmp_path):
    seen = look("hermes", tmp_path, [
        ASKED, {"role": "assistant", "tool_calls": [function()], "finish_reason": "tool_calls"},
        {"role": "tool", "content": "ok", "tool_call_id": "c1"},
        {"role": "user", "content": "[auto-continue]", "display_kind": "auto_continue"},
        {"role": "assistant", "content": "Done.", "finish_reason": "stop"}])
    assert [turn.run.record.user_text for turn in seen.turns] == ["go"]


@pytest.mark.parametrize("note", [
    "[System: The previous response was cut off by a network error mid-stream. Continue exactly where you left off.]",
    "[System: Your previous tool call (terminal) was too large and the stream timed out before it could be delivered. "
    "Do NOT retry the same tool call with the same large content.]"])
def test_a_stream_that_broke_is_no_cut_though_hermes_writes_length(tmp_path, note):
    seen = look("hermes", tmp_path, [
        ASKED, {"role": "assistant", "content": "The queue was", "finish_reason": "length"},
        {"role": "user", "content": note}, {"role": "assistant", "content": " full.", "finish_reason": "stop"}])
    assert (stops(seen), rules(seen)[1]) == (["interrupted", "end_turn"], "hermes.broken_streams")
    assert [turn.run.record.user_text for turn in seen.turns] == ["go"], "Hermes wrote it, and not the user"
    whole = look("hermes", tmp_path / "b", [
        ASKED, {"role": "assistant", "content": "Done.", "finish_reason": "stop"}, {"role": "user", "content": note}])
    assert stops(whole) == ["end_turn"]


def test_what_hermes_adds_to_a_text_whose_stream_broke_is_not_the_models(tmp_path):
    added = ("\n\n⚠ Stream stalled mid tool-call (terminal); the action was not executed. "
             "Ask me to retry if you want to continue.")
    for text in ("I do it now.", ""):
        seen = look("hermes", tmp_path / (text or "none"), [
            ASKED, {"role": "assistant", "content": (text + added).strip(), "finish_reason": "length"}])
        assert (stops(seen), seen.responses[0].exchange.response.text or "") == (["interrupted"], text)


def test_what_hermes_writes_for_an_empty_answer_is_no_text(tmp_path):
    seen = look("hermes", tmp_path, [ASKED, {"role": "assistant", "content": "(empty)"}])
    assert (words(seen), seen.responses[0].exchange.response.text) == (["EMPTY ANSWER"], None)
    said = look("hermes", tmp_path / "b", [ASKED, {"role": "assistant", "content": "(empty)", "finish_reason": "stop"}])
    assert said.responses[0].exchange.response.text == "(empty)", "the model said so"


def test_a_session_of_hermes_whose_request_got_no_answer_is_counted(tmp_path):
    seen = look("hermes", tmp_path, [ASKED, {"role": "assistant", "content": "Hi.", "finish_reason": "stop"}, ASKED])
    assert "as a request that got no whole answer leaves it: 1" in notices(seen)
    seen = look("hermes", tmp_path / "b", [ASKED, {"role": "assistant", "content": "Hi.", "finish_reason": "stop"}])
    assert "no whole answer" not in notices(seen)


META = {"role": "session_meta", "tools": [], "model": "m1", "platform": "cli", "timestamp": "2026-04-02T10:00:00"}
SAID = {"role": "assistant", "content": "", "tool_calls": [function()], "finish_reason": "tool_calls",
        "reasoning": "hm", "timestamp": "2026-04-02T10:00:02"}
LINES = ({**ASKED, "timestamp": "2026-04-02T10:00:01"}, SAID,
         {"role": "tool", "content": "ok", "tool_call_id": "c1", "timestamp": "2026-04-02T10:00:03"},
         {"role": "assistant", "content": "Done.", "finish_reason": "stop", "timestamp": "2026-04-02T10:00:04"})


@pytest.mark.parametrize(("rows", "model"), [((META, *LINES), "m1"), (LINES, None)])
def test_lines_of_an_older_session_of_hermes(tmp_path, rows, model):
    path = tmp_path / "20260402_100000_ab.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + '\n{"role": "assistant", "content": "I')
    seen = view_file(path)
    assert seen.inputs[0].format == "hermes"
    assert stops(seen) == ["tool_call", "end_turn"]
    assert calls(seen) == [("write", '{"a": 1}', True)]
    assert seen.responses[0].exchange.model == model
    assert seen.responses[1].exchange.response.text == "Done."
    assert words(seen) == ["COMPLETE"]


@each_row("own", [
    {"finish_reason": "stop"}, {"reasoning": None}, {"reasoning_details": []},
    {"tool_calls": [{**function(), "response_item_id": "fc_1"}]},
])
def test_each_member_that_tells_a_line_of_hermes(own):
    rows = [{**ASKED, "timestamp": "t"}, {"role": "assistant", "content": "hi", "timestamp": "t", **own}]
    assert choose("\n".join(map(json.dumps, rows)).encode(), "chat.jsonl") == "hermes"


@pytest.mark.parametrize("rows", [
    [{**ASKED, "timestamp": "t"}, {"role": "assistant", "content": "hi", "timestamp": "t"}],
    [{**ASKED, "timestamp": "t"}, {"role": "assistant", "tool_calls": [function()], "timestamp": "t"}],
    [ASKED, {"role": "assistant", "content": "hi", "finish_reason": "stop"}],
])
def test_lines_of_any_chat_are_not_taken_for_hermes(rows):
    assert choose("\n".join(map(json.dumps, rows)).encode(), "chat.jsonl") != "hermes"


def test_an_older_table_of_hermes_has_no_words(tmp_path):
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript("""
CREATE TABLE sessions (id TEXT, source TEXT, started_at REAL, parent_session_id TEXT);
CREATE TABLE messages (session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT);
INSERT INTO sessions VALUES ('s1', 'cli', 1, NULL);
INSERT INTO messages VALUES ('s1', 'user', 'go', NULL, NULL, NULL), ('s1', 'assistant', 'hi', NULL, NULL, NULL);""")
    assert rules(view_file(path)) == ["transcript.absent"]


def test_a_snapshot_of_hermes_is_read(tmp_path):
    value = {"session_id": "s", "platform": "cli", "session_start": "t", "model": "m", "messages": [
        ASKED, {"role": "assistant", "content": "hi", "finish_reason": "length"}, {"role": "session_meta"}]}
    seen = show(json.dumps(value, indent=2), tmp_path, name="h.json")
    assert stops(seen) == ["max_tokens"]
    assert seen.responses[0].exchange.model == "m"


EXPORTED = {"id": "s1", "source": "cli", "user_id": None, "model": "m-1", "model_config": None, "title": "A title",
            "parent_session_id": None}


@pytest.mark.parametrize("listed", [True, False])
def test_an_exported_session_of_hermes_is_read(tmp_path, listed):
    made = [{"id": "c1", "function": {"name": "write", "arguments": '{"a": 1}'}}]
    first = {**EXPORTED, "messages": [
        {**ASKED, "session_id": "s1", "tool_calls": ""},
        {"role": "assistant", "content": "", "tool_calls": made if listed else json.dumps(made), "session_id": "s1",
         "finish_reason": "tool_calls"}, {"role": "tool", "content": "ok", "tool_call_id": "c1", "session_id": "s1"}]}
    second = {**EXPORTED, "id": "s2", "parent_session_id": "s1", "title": "Below", "messages": [
        {**ASKED, "session_id": "s2"}, {"role": "assistant", "content": "hi", "finish_reason": "stop"}]}
    seen = show("".join(f"{json.dumps(each)}\n" for each in (first, second)), tmp_path, name="export.jsonl")
    assert [facts.exchange.model for facts in seen.responses] == ["m-1", "m-1"]
    assert calls(seen) == [("write", '{"a": 1}', True)]
    assert stops(seen) == ["tool_call", "end_turn"]
    assert [row.name for row in rows_of(seen)] == ["A title", "A title › Below"]


def test_an_older_snapshot_of_hermes_names_no_platform(tmp_path):
    value = {"session_id": "s", "session_start": "t", "messages": [ASKED, {"role": "assistant", "content": "hi"}]}
    assert len(show(json.dumps(value), tmp_path, name="h.json").responses) == 1


def failed_request(**more):
    asked = [{"role": "user", "content": "earlier"}, {"role": "assistant", "content": "hi"},
             {"role": "user", "content": "go"}]
    body = {"model": "m-1", "messages": asked, "tools": [], **more}
    return {"timestamp": "2026-08-01T12:00:02", "session_id": "s1", "reason": "max_retries_exhausted",
            "request": {"method": "POST", "url": "/chat/completions", "headers": {}, "body": body}}


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_a_failed_request_of_hermes_has_its_error_and_its_cap(tmp_path, name):
    error = {"type": "RateLimitError", "message": "Too many requests", "status_code": 429, "response_status": 429}
    seen = show(json.dumps({**failed_request(**{name: 64}), "error": error}), tmp_path, name="request_dump_s1.json")
    (facts,) = seen.responses
    response = facts.exchange.response
    assert (response.http_status, response.error.retryable, facts.exchange.request.max_tokens) == (429, True, 64)
    assert (seen.turns[0].run.record.user_text, words(seen)) == ("go", ["ERROR"])


def test_a_request_of_hermes_that_was_only_written_down_is_no_answer(tmp_path):
    path = tmp_path / "request_dump_s1.json"
    path.write_text(json.dumps({**failed_request(), "reason": "preflight"}))
    loaded = open_paths([str(path)])
    assert (loaded.exchanges, loaded.inputs[0].error) == ((), None)
    assert "a request of Hermes without its answer" in "\n".join(loaded.inputs[0].notices)


# -- Goose -------------------------------------------------------------------------------------------------------------


def part(text: str) -> Row:
    return {"type": "text", "text": text}


def request(key: str = "c1", **call: Any) -> Row:
    made = call or {"status": "success", "value": {"name": "write", "arguments": {"a": 1}}}
    return {"type": "toolRequest", "id": key, "toolCall": made}


def response(key: str = "c1", **result: Any) -> Row:
    made = result or {"status": "success", "value": {"content": [part("ok")], "isError": False}}
    return {"type": "toolResponse", "id": key, "toolResult": made}


def goose(*messages: tuple[str, list[Row]]) -> list[Row]:
    return [{"role": role, "content_json": content, "created_timestamp": 1785585602 + at}
            for at, (role, content) in enumerate(messages)]


def test_goose_keeps_no_word_and_what_follows_is_looked_at(tmp_path):
    seen = look("goose", tmp_path, goose(
        ("user", [part("go")]), ("assistant", [{"type": "thinking", "thinking": "hm"}, request()]),
        ("user", [response()]), ("assistant", [part("Done.")]), ("user", [part("more")])),
        {"id": "s1", "working_dir": "/w", "name": "N", "model_config_json": {"model_name": "gpt-4o"}})
    assert stops(seen) == ["tool_call", "end_turn"]
    assert rules(seen, 1) == ["transcript.absent", "transcript.inferred.user_went_on"]
    assert calls(seen) == [("write", '{"a": 1}', True)]
    assert seen.responses[0].exchange.model == "gpt-4o"
    assert words(seen) == ["END INFERRED"]


def test_goose_wrote_reasoning_in_a_block_of_its_own(tmp_path):
    seen = look("goose", tmp_path, goose(
        ("user", [part("go")]), ("assistant", [{"type": "reasoning", "text": "hm"}, {"type": "reasoning", "text": 1}]),
        ("user", [part("more")])))
    (facts,) = seen.responses
    assert (facts.exchange.response.reasoning_content, facts.exchange.response.text) == ("hm", None)


def test_the_rows_of_an_answer_that_goose_splits_are_one_answer(tmp_path):
    hm = {"type": "thinking", "thinking": "hm"}
    rows = goose(("user", [part("go")]), ("assistant", [part("I look.")]), ("assistant", [hm, request()]),
                 ("user", [response()]), ("assistant", [hm, request("c2")]), ("user", [response("c2")]),
                 ("assistant", [request("c3")]), ("user", [response("c3")]), ("assistant", [part("Done.")]))
    for row, at in zip(rows, (0, 1, 2, 2, 2, 2, 3, 3, 3), strict=True):
        row["created_timestamp"] = 1785585602 + at
    seen = look("goose", tmp_path, rows)
    first, second, last = (facts.exchange for facts in seen.responses)
    assert (first.response.text, first.response.reasoning_content) == ("I look.", "hm")
    assert [call.id for call in first.response.tool_calls] == ["c1", "c2"]
    assert [each.call_id for each in second.request.messages[0].results] == ["c1", "c2"]
    assert [call.id for call in second.response.tool_calls] == ["c3"]
    assert last.response.text == "Done."
    assert stops(seen) == ["tool_call", "tool_call", "unknown"]


RETRY = "\n\nPlease retry if you think this is a transient or recoverable error."


@pytest.mark.parametrize("block", [
    {"type": "text", "text": f"Ran into this error: Request failed: too busy.{RETRY}"},
    {"type": "error", "kind": "other", "text": "Request failed: too busy"},
    {"type": "error", "kind": "other", "message": "Request failed: too busy"},
])
def test_an_error_that_goose_writes_in_the_models_name_is_a_failed_request(tmp_path, block):
    seen = look("goose", tmp_path, goose(
        ("user", [part("go")]), ("assistant", [block]), ("user", [part("again")]), ("assistant", [part("Done.")])))
    first = seen.responses[0].exchange.response
    assert (first.error.message, first.text) == ("Request failed: too busy", None)
    assert (stops(seen), words(seen)[0]) == (["error", "unknown"], "ERROR")


@pytest.mark.parametrize(("note", "why"), [
    ("I've reached the maximum number of actions I can do without user input. Would you like me to continue?",
     "the turn had used up its actions"),
    ("The tool calling loop was interrupted. How would you like to proceed?", "the user interrupted it"),
])
def test_a_note_that_goose_writes_in_the_models_name_is_no_answer(tmp_path, note, why):
    rows = [("user", [part("go")]), ("assistant", [request()]), ("user", [response()]), ("assistant", [part(note)])]
    seen = look("goose", tmp_path, goose(*rows))
    assert stops(seen) == ["tool_call"]
    assert any(why in noted.finding.message for noted in seen.findings if noted.finding.rule == "transcript.stopped")
    assert words(seen) != ["COMPLETE"]


def test_a_text_that_quotes_a_note_of_goose_is_an_answer(tmp_path):
    note = "The tool calling loop was interrupted. How would you like to proceed?"
    seen = look("goose", tmp_path, goose(("user", [part("go")]), ("assistant", [part(f"It says: {note}")])))
    assert seen.responses[0].exchange.response.text == f"It says: {note}"


def test_rows_of_goose_without_a_time_are_not_joined_behind_results(tmp_path):
    rows = goose(("user", [part("go")]), ("assistant", [request()]), ("user", [response()]),
                 ("assistant", [request("c2")]), ("user", [response("c2")]))
    lines = [{"working_dir": "/w", "description": "D", "message_count": 2},
             *({"role": row["role"], "content": row["content_json"]} for row in rows)]
    assert len(show("".join(f"{json.dumps(line)}\n" for line in lines), tmp_path, name="g.jsonl").responses) == 2


@each_row(("error", "stop", "arguments"), [
    ("-32602: Could not interpret tool use parameters for id c1: EOF while parsing a string", "max_tokens", None),
    ({"code": -32602, "message": "Could not interpret tool use parameters: EOF while parsing. Raw JSON: {\"a\": \"b"},
     "max_tokens", '{"a": "b'),
    ("Could not interpret tool use parameters for id c1: expected value at line 1", "malformed_tool_call", None),
    ("Could not interpret tool use parameters for id c1: EOF while parsing a value at line 1 column 0",
     "malformed_tool_call", None),
    ("Could not interpret tool use parameters for id c1: EOF while parsing a value at line 1 column 8", "max_tokens",
     None),
    ("The provided function name 'a b' had invalid characters", "tool_call", None),
])
def test_a_call_that_goose_could_not_read(tmp_path, error, stop, arguments):
    failed = response(status="error", error=error)
    seen = look("goose", tmp_path, goose(
        ("user", [part("go")]), ("assistant", [request(status="error", error=error)]), ("user", [failed]),
        ("assistant", [part("Done.")])))
    assert stops(seen)[0] == stop
    assert calls(seen) == [("", arguments, stop == "tool_call")]
    assert [noted.finding.rule for noted in seen.findings].count("transcript.unread_call") == 1


@each_row("kind", ["toolRequest", "frontendToolRequest"])
@each_row(("arguments", "stop"), [('{"a": 1}', "unknown"), ('{"a": "b', "max_tokens")])
def test_arguments_of_goose_that_are_a_text_are_the_models(tmp_path, kind, arguments, stop):
    made = {**request(status="success", value={"name": "write", "arguments": arguments}), "type": kind}
    seen = look("goose", tmp_path, goose(("user", [part("go")]), ("assistant", [made])))
    assert (stops(seen), calls(seen)) == ([stop], [("write", arguments, stop == "unknown")])


def test_older_lines_of_goose_are_read(tmp_path):
    lines = [{"working_dir": "/w", "description": "D", "message_count": 2},
             {"role": "user", "created": 1, "content": [part("go")]},
             {"role": "assistant", "created": 1785585602, "content": [request(Ok={"name": "w", "arguments": {}})]},
             {"role": "user", "content": [response(Ok=[part("ok")])]}]
    seen = show("".join(f"{json.dumps(line)}\n" for line in lines), tmp_path, name="g.jsonl")
    assert stops(seen) == ["tool_call"]
    assert seen.inputs[0].about.title == "D"


FIRST: list[Row] = [
    {"role": "user", "created": 1738800000, "content": [{"Text": {"text": "go"}}]},
    {"role": "assistant", "created": 1738800001, "content": [
        {"Text": {"text": "I write."}}, {"ToolRequest": {"id": "c1", "tool_call": {"Ok": {
            "name": "write", "arguments": {"a": 1}}}}}]},
    {"role": "user", "created": 1738800002, "content": [{"ToolResponse": {"id": "c1", "tool_result": {
        "Ok": [{"type": "text", "text": "ok"}]}}}]},
    {"role": "assistant", "created": 1738800003, "content": [{"ToolRequest": {"id": "c2", "tool_call": {"Err": {
        "InvalidParameters": "Could not interpret tool use parameters for id c2: EOF while parsing a string"}}}}]},
    {"role": "user", "created": 1738800004, "content": [{"ToolResponse": {"id": "c2", "tool_result": {
        "Err": {"ExecutionError": "no"}}}}]},
]


def test_lines_of_the_first_releases_of_goose_are_read(tmp_path):
    seen = show("".join(f"{json.dumps(line)}\n" for line in FIRST), tmp_path, name="g.jsonl")
    assert (seen.inputs[0].format, stops(seen)) == ("goose", ["tool_call", "max_tokens"])
    assert [(call.name, call.arguments) for facts in seen.responses for call in facts.exchange.response.tool_calls
            ] == [("write", '{"a": 1}'), ("", None)]
    assert seen.responses[0].exchange.response.text == "I write."
    results = [seen.responses[1].exchange.request.messages[0].results[0], seen.inputs[0].answers[0].result]
    assert [(each.text, each.is_error) for each in results] == [("ok", False), ("no", True)]


@pytest.mark.parametrize("header", [None, {"description": "D", "message_count": 2, "total_tokens": None}])
def test_lines_of_goose_without_a_folder_are_read(header, tmp_path):
    rows = [{"role": "user", "created": 1, "content": [part("go")]},
            {"role": "assistant", "created": 2, "content": [request()]}]
    text = "".join(f"{json.dumps(line)}\n" for line in ([header] if header else []) + rows)
    seen = show(text, tmp_path, name="g.jsonl")
    assert (seen.inputs[0].format, stops(seen)) == ("goose", ["unknown"])
    assert (seen.inputs[0].about is not None and seen.inputs[0].about.title == "D") is (header is not None)


@each_row("kind", [
    "text", "toolRequest", "toolResponse", "thinking", "image", "toolConfirmationRequest", "frontendToolRequest",
    "redactedThinking", "contextLengthExceeded", "summarizationRequested", "systemNotification", "reasoning",
])
def test_a_message_of_goose_is_known_by_its_blocks(kind):
    assert choose(json.dumps({"role": "user", "created": 1, "content": [{"type": kind}]}).encode(), "x") == "goose"


@each_row("tag", ["Text", "ToolRequest", "ToolResponse", "Thinking", "Image"])
def test_a_message_of_the_first_releases_of_goose_is_known_by_its_tags(tag, tmp_path):
    row = {"role": "assistant", "created": 1, "content": [{tag: {"thinking": "hm"}}]}
    seen = show(json.dumps(row), tmp_path, name="g.jsonl")
    assert seen.inputs[0].format == "goose"
    assert seen.responses[0].exchange.response.reasoning_content == ("hm" if tag == "Thinking" else None)


@each_row("row", [
    {"role": "user", "created": 1, "content": []}, {"role": "user", "created": 1, "content": "go"},
    {"role": "user", "created": "x", "content": [{"type": "text", "text": "go"}]},
    {"role": "user", "content": [{"type": "text", "text": "go"}]},
    {"role": "user", "created": 1, "content": [{"type": "tool_use"}]},
    {"role": "user", "created": 1, "content": [{"Text": "go"}]},
    {"role": "tool", "created": 1, "content": [{"type": "text", "text": "go"}]},
])
def test_other_messages_are_not_those_of_goose(row):
    assert choose(f"{json.dumps(row)}\n{json.dumps(row)}\n".encode(), "x.jsonl") != "goose"


@pytest.mark.parametrize(("value", "text"), [
    ({"structuredContent": {"stdout": "open"}, "isError": False}, '{"stdout":"open"}'),
    ([{"type": "resource", "resource": {"uri": "a", "text": "all"}}, {"type": "image", "data": "x"}], "all"),
])
def test_a_result_of_goose_in_another_form_is_text(value, text, tmp_path):
    seen = look("goose", tmp_path, goose(
        ("user", [part("go")]), ("assistant", [request()]), ("user", [response(status="success", value=value)])))
    assert seen.inputs[0].answers[0].result.text == text


def test_an_export_of_goose_is_read(tmp_path):
    value = {"id": "s1", "working_dir": "/w", "name": "N", "model_config": {"model_name": "gpt-4o"}, "conversation": [
        {"role": "user", "created": 1, "content": [part("go")], "metadata": {"userVisible": True}},
        {"role": "user", "created": 1, "content": [part("note")], "metadata": {"userVisible": False}},
        {"role": "assistant", "created": 1785585602, "content": [request()]},
        {"role": "user", "content": [response()]},
        {"role": "assistant", "content": [part("Done.")], "metadata": {"inference": {"requestedModel": "claude-x"}}}]}
    seen = show(json.dumps(value, indent=2), tmp_path, name="g.json")
    assert [turn.run.record.user_text for turn in seen.turns] == ["go"]
    assert [facts.exchange.model for facts in seen.responses] == ["gpt-4o", "claude-x"]
    assert [(name, json.loads(given)) for name, given, _ in calls(seen)] == [("write", {"a": 1})]
    assert stops(seen) == ["tool_call", "unknown"]


# -- Crush -------------------------------------------------------------------------------------------------------------


def crush(*parts: tuple[str, Row], role: str = "assistant", **more: Any) -> Row:
    return {"role": role, "parts": [{"type": kind, "data": data} for kind, data in parts], "created_at": 1785585602,
            **more}


def text_pair(text: str = "hi") -> tuple[str, Row]:
    return ("text", {"text": text})


def finish(word: str = "end_turn", **more: Any) -> tuple[str, Row]:
    return ("finish", {"reason": word, **more})


def call(given: Any = '{"a": 1}', finished: bool = True) -> tuple[str, Row]:
    return ("tool_call", {"id": "c1", "name": "write", "input": given, "finished": finished})


GO = crush(text_pair("go"), role="user")
RAN = crush(("tool_result", {"tool_call_id": "c1", "name": "write", "content": "ok", "is_error": False}), role="tool")


@each_row(("word", "stop", "rule"), [
    ("end_turn", "end_turn", "crush.finish_reasons"), ("max_tokens", "max_tokens", "crush.finish_reasons"),
    ("tool_use", "tool_call", "crush.finish_reasons"), ("canceled", "cancelled", "crush.finish_reasons"),
    ("content_filter", "safety_blocked", "crush.finish_reasons"), ("unknown", "unknown", "unknown_word"),
    ("error", "error", "error.reported"),
])
def test_the_words_of_crush(tmp_path, word, stop, rule):
    seen = look("crush", tmp_path, [GO, crush(text_pair(), finish(word, message="Provider Error", details="boom"))])
    assert stops(seen) == [stop]
    assert rules(seen)[:2] == ["transcript.recorder", rule]


@pytest.mark.parametrize(("end", "stop"), [((), "unknown"), ((("finish", {"reason": ""}),), "end_turn")])
def test_a_message_of_the_user_is_no_end_of_an_answer_that_crush_did_not_finish(tmp_path, end, stop):
    rows = [GO, crush(text_pair(), *end), crush(text_pair("and the tests?"), role="user")]
    assert stops(look("crush", tmp_path, rows)) == [stop]


@pytest.mark.parametrize(("word", "stop"), [
    ("tool_use", "malformed_tool_call"), ("end_turn", "malformed_tool_call"), ("max_tokens", "max_tokens"),
])
def test_arguments_for_which_crush_stores_an_empty_object_are_no_whole_call(tmp_path, word, stop):
    said_so = "Tool call failed: arguments were not valid JSON. Please check your tool call format and try again."
    refused = crush(("tool_result", {"tool_call_id": "c1", "name": "write", "content": said_so, "is_error": True}),
                    role="tool")
    seen = look("crush", tmp_path, [GO, crush(call("{}"), finish(word)), refused, crush(text_pair(), finish())])
    assert stops(seen) == [stop, "end_turn"]
    assert calls(seen) == [("write", None, False)]
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]


def test_an_empty_object_that_ran_is_a_whole_call_in_crush(tmp_path):
    seen = look("crush", tmp_path, [GO, crush(call("{}"), finish("tool_use")), RAN, crush(text_pair(), finish())])
    assert (stops(seen), calls(seen)) == (["tool_call", "end_turn"], [("write", "{}", True)])


def test_a_system_message_of_crush_holds_no_exchange(tmp_path):
    seen = look("crush", tmp_path, [crush(text_pair("Be brief."), role="system"), GO, crush(text_pair(), finish())])
    assert "records that hold no exchange: session (1), system (1)" in notices(seen)
    assert "unknown type" not in notices(seen)


def test_a_call_that_the_user_of_crush_refused_ends_the_turn(tmp_path):
    refused = crush(("tool_result", {"tool_call_id": "c1", "name": "", "content": "Permission denied",
                                     "is_error": True}), role="tool")
    seen = look("crush", tmp_path, [GO, crush(call(), finish("permission_denied", message="Permission denied")),
                                    refused, GO, crush(text_pair(), finish())])
    assert stops(seen) == ["tool_call", "end_turn"]
    assert rules(seen)[:2] == ["transcript.recorder", "crush.finish_reasons"]
    assert words(seen) == ["CANCELLED", "COMPLETE"]


@each_row(("details", "status", "retryable"), [
    ('POST "https://h/v1/messages": 529 Overloaded {"type":"error","error":{"type":"overloaded_error"}}', 529, True),
    ('POST "https://h/v1/messages": 400 Bad Request {"message":"messages.1: 500 is no string"}', 400, False),
    ("Error 429, Message: You exceeded your current quota, Status: RESOURCE_EXHAUSTED", 429, True),
    ("dial tcp: 500 things went wrong", None, False),
])
def test_an_error_of_crush_has_its_status(tmp_path, details, status, retryable):
    (facts,) = look("crush", tmp_path, [GO, crush(finish("error", message="API Error", details=details))]).responses
    response = facts.exchange.response
    assert (response.http_status, response.error.retryable) == (status, retryable)


@each_row(("provider", "api"), [
    ("anthropic", "anthropic_messages"), ("openai", "openai_responses"), ("gemini", "gemini_generate"),
    ("bedrock", "anthropic_messages"), ("hyper", "openai_chat"),
])
def test_crush_names_its_provider(tmp_path, provider, api):
    (facts,) = look("crush", tmp_path, [GO, crush(text_pair(), finish(), provider=provider, model="m")]).responses
    assert (facts.exchange.api, facts.exchange.model) == (api, "m")
    assert facts.exchange.started == "2026-08-01T12:00:02.000+00:00"


def test_a_call_of_crush_that_was_cut_and_ran_is_told(tmp_path):
    cut = crush(("reasoning", {"thinking": "hm"}), call('{"a": "b', finished=False), finish("max_tokens"))
    seen = look("crush", tmp_path, [GO, cut, RAN, crush(text_pair(), finish())])
    assert calls(seen) == [("write", '{"a": "b', False)]
    assert words(seen) == ["CUT CALL RUN"]


def test_a_call_that_was_never_finished_is_a_cut_only_where_the_session_went_on(tmp_path):
    died = crush(call("", finished=False))
    seen = look("crush", tmp_path, [GO, died, GO, crush(text_pair(), finish())])
    assert rules(seen) == ["transcript.absent", "transcript.inferred.call_unfinished"]
    assert stops(seen) == ["interrupted", "end_turn"]
    (tmp_path / "crush.db").unlink()
    assert stops(look("crush", tmp_path, [GO, died])) == ["unknown"]


def test_what_crush_adds_opens_no_turn_and_a_summary_is_told(tmp_path):
    seen = look("crush", tmp_path, [
        GO, crush(call(), finish("tool_use")), RAN, crush(("text", {"text": "go on", "hidden": True}), role="user"),
        crush(("shell_command", {"command": "ls", "output": "a"}), role="user"),
        crush(text_pair(), finish(), is_summary_message=1), crush(role="system")])
    assert len(seen.turns) == 1
    assert "hold the summary of a compacted history: 1" in notices(seen)


@pytest.mark.parametrize(("word", "stop", "rule"), [
    ("end_turn", "end_turn", "transcript.inferred.turn_ended"), ("canceled", "cancelled", "crush.finish_reasons"),
])
def test_the_word_of_a_summary_of_crush_does_not_say_how_the_model_ended(tmp_path, word, stop, rule):
    seen = look("crush", tmp_path, [GO, crush(text_pair(), finish(word), is_summary_message=1)])
    assert (stops(seen), rules(seen)[-1]) == ([stop], rule)


def test_a_child_session_of_crush_is_named_below_its_parent(tmp_path):
    seen = look("crush", tmp_path, [
        GO, crush(text_pair(), finish()), {**GO, "session_id": "s2"},
        {**crush(text_pair(), finish()), "session_id": "s2"}],
        {"id": "s1", "title": "Main"}, {"id": "s2", "title": "Sub", "parent_session_id": "s1"})
    assert [row.name for row in rows_of(seen)] == ["Main", "Main › Sub"]


# -- Amp ---------------------------------------------------------------------------------------------------------------


def thread(*messages: Row) -> str:
    return json.dumps({"id": "T-1", "v": 3, "title": "A title", "usageLedger": {"events": [{"tokens": {"output": 9}}]},
                       "messages": list(messages)}, indent=2)


def amp(*content: Row, word: str | None = "end_turn", state: str = "complete", **more: Any) -> Row:
    held = {"type": state, **({"stopReason": word} if word else {})}
    return {"role": "assistant", "state": held, "content": list(content), **more}


def amp_user(*content: Row) -> Row:
    return {"role": "user", "content": list(content), "meta": {"sentAt": 1785585602000}}


@each_row(("word", "stop"), [
    ("end_turn", "end_turn"), ("tool_use", "tool_call"), ("max_tokens", "max_tokens"), ("stop_sequence", "end_turn"),
    ("refusal", "safety_blocked"), ("model_context_window_exceeded", "context_window_exceeded"), ("odd", "unknown"),
])
def test_the_words_of_amp_are_its_own(tmp_path, word, stop):
    seen = show(thread(amp_user(part("go")), amp(part("hi"), word=word)), tmp_path, name="T-1.json")
    assert stops(seen) == [stop]
    assert rules(seen)[:2] == ["transcript.recorder", "unknown_word" if word == "odd" else "amp.stop_reasons"]
    assert seen.responses[0].exchange.response.raw_stop_reason is None


def test_thinking_of_amp_counts_though_its_text_is_hidden(tmp_path):
    (facts,) = show(thread(amp_user(part("go")), amp({"type": "thinking", "thinking": ""})), tmp_path,
                    name="T-1.json").responses
    assert facts.exchange.response.parts == (ReasoningPart(""),)
    assert facts.judgement.ending is Ending.REASONING_ONLY


def test_bytes_of_amp_that_are_no_utf8_are_told_and_a_cut_message_is_counted_in_its_own_bytes(tmp_path):
    path = tmp_path / "T-1.json"
    path.write_bytes(thread(amp_user(part("go")), amp(part("h?"))).encode().replace(b"h?", b"h\xff"))
    loaded = open_paths([str(path)])
    assert loaded.exchanges[0].response.text == "h\ufffd"
    assert any("message 3 holds invalid UTF-8, shown as U+FFFD" in told for told in loaded.inputs[0].notices)
    path.write_bytes(path.read_bytes().partition(b'"h\xff')[0] + b'"\xff')
    cut = path.read_bytes()[path.read_bytes().rindex(b'{\n      "role"') :]
    assert any(f"is cut after {len(cut):,} bytes" in told for told in open_paths([str(path)]).inputs[0].notices)


@pytest.mark.parametrize(("state", "stop"), [("cancelled", "cancelled"), ("error", "error"), ("streaming", "unknown")])
def test_the_state_of_a_message_of_amp_says_how_it_ended(tmp_path, state, stop):
    seen = show(thread(amp_user(part("go")), amp(part("hi"), word=None, state=state)), tmp_path, name="T-1.json")
    assert stops(seen) == [stop]


@each_row(("model", "api", "given"), [
    ("claude-opus-4-5", "anthropic_messages", 9), ("gpt-5.6-sol", "openai_responses", 19),
    ("gemini-3", "gemini_generate", 19), ("grok-4", "openai_chat", 19),
])
def test_the_usage_of_amp_is_that_of_the_message_and_counted_once(tmp_path, model, api, given):
    usage = {"model": model, "inputTokens": 9, "outputTokens": 20, "cacheReadInputTokens": 3,
             "cacheCreationInputTokens": 7}
    (facts,) = show(thread(amp_user(part("go")), amp(part("hi"), usage=usage)), tmp_path, name="T-1.json").responses
    counted = facts.exchange.response.usage
    assert counted == (given, 20, None, 3, 7)
    assert (facts.exchange.api, facts.exchange.model) == (api, model)
    assert input_tokens(facts.exchange).total == 19
    usage = {"model": model, "inputTokens": 0, "totalInputTokens": 30, "cacheReadInputTokens": 3}
    (facts,) = show(thread(amp_user(part("go")), amp(part("hi"), usage=usage)), tmp_path, name="T-1.json").responses
    assert input_tokens(facts.exchange).total == 30
    odd = {**usage, "totalInputTokens": 2}
    (facts,) = show(thread(amp_user(part("go")), amp(part("hi"), usage=odd)), tmp_path, name="T-1.json").responses
    assert input_tokens(facts.exchange).total == 3


@pytest.mark.parametrize(("run", "error", "text"), [
    ({"status": "done", "result": {"output": "a\n", "exitCode": 0}}, False, "a\n"),
    ({"status": "done", "result": {"output": "a\n", "exitCode": 1}}, True, "a\n"),
    ({"status": "done", "result": {"body": 1}}, False, '{"body":1}'),
    ({"status": "error", "error": {"message": "m"}}, True, "m"),
    ({"status": "error", "error": {"code": 1}}, True, '{"code":1}'),
    ({"status": "cancelled"}, True, "cancelled"),
    ({"status": "rejected-by-user", "reason": "no"}, True, "no"),
])
def test_the_results_of_amp(tmp_path, run, error, text):
    asked = amp({"type": "tool_use", "id": "c1", "name": "sh", "input": {"a": 1}}, word="tool_use")
    back = amp_user({"type": "tool_result", "toolUseID": "c1", "run": run})
    seen = show(thread(amp_user(part("go")), asked, back, amp(part("Done."))), tmp_path, name="T-1.json")
    (given,) = seen.responses[1].exchange.request.messages[0].results
    assert (given.is_error, given.text) == (error, text)
    refused = seen.responses[0].exchange.refusals
    assert refused == ({"c1": "the user refused it: it did not run"} if run["status"] == "rejected-by-user" else {})


def test_a_result_of_amp_may_be_a_block_of_anthropics(tmp_path):
    asked = amp({"type": "tool_use", "id": "c1", "name": "sh", "input": {"a": 1}}, word="tool_use")
    back = amp_user({"type": "tool_result", "tool_use_id": "c1", "content": "a.py"})
    seen = show(thread(amp_user(part("go")), asked, back, amp(part("Done."))), tmp_path, name="T-1.json")
    (given,) = seen.responses[1].exchange.request.messages[0].results
    assert (given.call_id, given.is_error, given.text) == ("c1", False, "a.py")


def test_a_hidden_text_of_amp_is_its_own(tmp_path):
    seen = show(thread(amp_user(part("go"), {**part("context"), "hidden": True}), amp(part("hi")),
                       {"role": "info", "content": [{"type": "summary"}]}), tmp_path, name="T-1.json")
    assert [turn.run.record.user_text for turn in seen.turns] == ["go"]
    assert seen.inputs[0].about.title == "A title"


# -- all ---------------------------------------------------------------------------------------------------------------


@each_row(("agent", "column"), [
    ("hermes", "tool_calls"), ("hermes", "content"), ("goose", "content_json"), ("goose", "metadata_json"),
    ("crush", "parts"),
])
@each_row("odd", [*(each for each in EVERY if isinstance(each, (list, dict, str))), b"\xff", "{cut", 5])
def test_an_odd_column_hides_no_other_row(tmp_path, agent, column, odd):
    whole = {"hermes": [ASKED, {"role": "assistant", "content": "hi", "finish_reason": "stop"}],
             "goose": goose(("user", [part("go")]), ("assistant", [part("hi")])),
             "crush": [GO, crush(text_pair(), finish())]}[agent]
    value = odd.encode("utf-8", "replace").decode() if isinstance(odd, str) else odd
    broken = [{**row, column: value} for row in whole]
    seen = look(agent, tmp_path, [*whole, *broken])
    assert seen.responses[0].exchange.response.text == "hi"


@pytest.mark.parametrize(("agent", "column", "told"), [
    ("hermes", "tool_calls", "tool_calls is an object, but a list was expected"),
    ("goose", "content_json", "content_json is an object, but a list was expected"),
    ("crush", "parts", "parts is an object, but a list was expected"),
])
def test_a_column_of_an_odd_kind_is_told(tmp_path, agent, column, told):
    assert told in notices(look(agent, tmp_path, [{"role": "assistant", column: {}}]))


def test_a_member_of_amp_of_an_odd_kind_is_told(tmp_path):
    seen = show(thread(amp(part("hi")) | {"state": {"type": 5}}, amp(part("hi")) | {"usage": 1}), tmp_path,
                name="T-1.json")
    assert "state.type is a number, but text was expected" in notices(seen)
    assert "usage is a number, but an object was expected" in notices(seen)


@pytest.mark.parametrize("format_name", ["amp", "hermes"])
def test_a_file_that_is_cut_is_read_as_far_as_it_goes(tmp_path, format_name):
    hermes = {"session_id": "s", "platform": "cli", "messages": [
        ASKED, {"role": "assistant", "content": "hi", "finish_reason": "stop"}, {"role": "user", "content": "more"}]}
    whole = thread(amp_user(part("go")), amp(part("hi")), amp_user(part("more")))
    data = whole if format_name == "amp" else json.dumps(hermes)
    seen = show(data[: data.index("more")], tmp_path, name="T-1.json")
    assert [facts.exchange.response.text for facts in seen.responses] == ["hi"]
    assert "message 4, the last, is cut" in notices(seen)


def test_databases_are_told_apart_by_their_columns(tmp_path):
    for agent in TABLES:
        before = set(os.listdir(tmp_path))
        (given,) = open_paths([str(database(agent, tmp_path, []))]).inputs
        assert (given.format, given.error) == (agent, None)
        assert set(os.listdir(tmp_path)) - before == {f"{agent}.db"}


def test_their_files_are_found(tmp_path):
    expected = []
    for at, (name, agent) in enumerate([
        (".hermes/state.db", "Hermes"), (".hermes/sessions/s.json", "Hermes"),
        (".hermes/profiles/p/state.db", "Hermes"), (".local/share/goose/sessions/sessions.db", "Goose"),
        (".local/share/goose/sessions/a.jsonl", "Goose"), (".crush/crush.db", "Crush"),
        ("project/.crush/crush.db", "Crush"),
        (".local/share/amp/threads/T-1.json", "Amp"),
        (".nanobot/sessions/0a1b/Y2xp.jsonl", "nanobot"),
        (".fast-agent/sessions/s1/history_a.json", "fast-agent"),
        ("project/.fast-agent/sessions/s1/history_a.json", "fast-agent"),
    ]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
        os.utime(path, (100 - at, 100 - at))
        expected.append((str(path), agent))
    assert [(each.path, each.agent) for each in transcripts({"HOME": str(tmp_path)})] == expected


def amp_call(**more: Any) -> Row:
    return {"type": "tool_use", "id": "c1", "name": "write", **more}


@each_row(("more", "arguments", "closed"), [
    ({"input": '{"a": 1}'}, '{"a": 1}', True), ({"input": '{"a": "b'}, '{"a": "b', True),
    ({"input": {}, "complete": False, "inputPartialJSON": {"json": '{"a": "b'}}, '{"a": "b', False),
    ({"complete": False, "inputPartialJSON": {"json": '{"a": "b'}, "inputIncomplete": {"a": "b"}}, '{"a": "b', False),
    ({"input": {}, "complete": True, "inputPartialJSON": {"json": '{"a": 1}'}}, '{"a": 1}', True),
    ({"input": {"a": 1}, "complete": True, "inputPartialJSON": {"json": '{"a": '}}, '{"a": 1}', True),
    ({"input": {}, "complete": False, "inputPartialJSON": {"json": ""}}, "{}", False),
])
def test_arguments_of_amp_are_an_object_or_the_models_text(tmp_path, more, arguments, closed):
    (facts,) = show(thread(amp_user(part("go")), amp(amp_call(**more), word="tool_use")), tmp_path,
                    name="T-1.json").responses
    (call,) = facts.exchange.response.tool_calls
    assert (" ".join(call.arguments.split()).replace("{ ", "{").replace(" }", "}"), call.closed) == (arguments, closed)


@pytest.mark.parametrize(("text", "word", "verdict"), [
    ('{"a": 1}', "tool_use", "COMPLETE SO FAR"), ('{"a": "b', "tool_use", "CALL HELD"),
    ('{"a": "b', "max_tokens", "CALL HELD"),
])
def test_a_cut_text_of_arguments_of_amp_is_held(tmp_path, text, word, verdict):
    seen = show(thread(amp_user(part("go")), amp(amp_call(input=text), word=word)), tmp_path, name="T-1.json")
    assert words(seen) == [verdict]
