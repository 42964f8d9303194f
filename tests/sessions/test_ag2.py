"""Logs of AG2 (`runtime_logging`): whose word an answer has, calls beside it, failed requests, conversations."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from inspector.sessions.importers.recognition import choose
from loop_core.judge.gate import Admission
from loop_core.values import Stop
from tests.scenes.rows import each_row
from tests.scenes.transcripts import stops, view_file, words

TABLES = """
CREATE TABLE chat_completions(id INTEGER PRIMARY KEY, invocation_id TEXT, client_id INTEGER, wrapper_id INTEGER,
    session_id TEXT, source_name TEXT, request TEXT, response TEXT, is_cached INTEGER, cost REAL, start_time DATETIME);
CREATE TABLE oai_clients (id INTEGER PRIMARY KEY, client_id INTEGER, wrapper_id INTEGER, session_id TEXT, class TEXT);
"""
GO = {"role": "user", "content": "go"}
CUT, WHOLE = '{"path": "a.md", "content": "# Rep', '{"path": "a.md"}'
NOT_JSON = "Error: Unterminated string starting at: line 1 column 29 (char 28)\n The argument must be in JSON format."


def calls(arguments):
    return [{"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": arguments}}]


def exchange(word="stop", text="Hi.", messages=(GO,), cap=500, used=3, client=("OpenAI",), **message):
    """A request, its answer, and the classes of the clients of its agent."""
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "finish_reason": word, "message": {"role": "assistant", "content": text, **message}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": used}}
    return {"messages": list(messages), "model": "m", "max_tokens": cap}, answer, client


def base(folder, *rows, lacking="-"):
    path = folder / "logs.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(TABLES.replace(lacking, "other"))
        for number, (request, response, classes) in enumerate(rows) if lacking == "-" else ():
            made.execute("INSERT INTO chat_completions VALUES (?, ?, 1, ?, 's', 'agent', ?, ?, 0, 0.0, ?)", (
                number, f"i{number}", number, json.dumps(request), json.dumps(response),
                f"2026-01-01 00:00:{number:02}.000000"))
            for each in classes:
                made.execute("INSERT INTO oai_clients VALUES (NULL, 7, ?, 's', ?)", (number, each))
    return path


def read(folder, *rows):
    return view_file(base(folder, *rows))


def response(seen, index=0):
    return seen.responses[index].exchange.response


@each_row("column", ["wrapper_id", "source_name", "class", "chat_completions"])
def test_the_tables_are_recognised_by_their_columns(tmp_path, column):
    path = base(tmp_path)
    assert choose(path.read_bytes(), str(path)) == "ag2"
    path.unlink()
    path = base(tmp_path, lacking=column)
    assert choose(path.read_bytes(), str(path)) != "ag2"


@each_row("client", ["OpenAI", "AzureOpenAI"])
@each_row(("word", "verdict"), [
    ("stop", "COMPLETE"), ("length", "TRUNCATED"), ("content_filter", "BLOCKED"), (None, "END NOT RECORDED")])
def test_the_word_is_the_providers_where_openais_client_asked(tmp_path, client, word, verdict):
    seen = read(tmp_path, exchange(word, client=(client,)))
    assert (words(seen), response(seen).stop_reason.raw) == ([verdict], word)


@pytest.mark.parametrize("classes", [("AnthropicClient",), ("OpenAI", "AnthropicClient"), ()])
def test_the_stop_of_another_client_shows_nothing(tmp_path, classes):
    seen = read(tmp_path, exchange(client=classes), exchange("tool_calls", client=classes, tool_calls=calls(WHOLE)))
    assert (words(seen), response(seen).stop_reason.raw) == (["END NOT RECORDED", "COMPLETE SO FAR"], None)
    assert response(seen, 1).stop_reason.evidence[-1].rule == "ag2.finish_reasons"


def test_counts_at_the_cap_show_the_cut_that_another_client_calls_stop(tmp_path):
    seen = read(tmp_path, exchange(client=("AnthropicClient",), cap=16, used=16))
    assert (words(seen), seen.responses[0].exchange.cap) == (["TRUNCATED"], 16)


def test_a_call_beside_the_stop_of_another_client_is_not_whole(tmp_path):
    """AG2 writes `tool_calls` for Claude's `tool_use`, so that it is one of a cut answer."""
    seen = read(tmp_path, exchange(client=("AnthropicClient",), tool_calls=calls(WHOLE)))
    assert [call.closed for call in response(seen).tool_calls] == [False]
    (verdict,) = seen.responses[0].verdicts
    assert (words(seen), verdict.admission) == (["END NOT RECORDED"], Admission.HELD)


def test_a_request_that_failed_has_a_text_in_place_of_the_answer(tmp_path):
    request, _, client = exchange()
    seen = read(tmp_path, (request, {"response": "error_code:429, config 0 failed"}, client))
    assert (words(seen), response(seen).error.message) == (["ERROR"], "error_code:429, config 0 failed")


@pytest.mark.parametrize(("result", "verdict"), [
    (NOT_JSON, "CALL REPAIRED"), ("Error: Function write_file not found.", "CALL HELD"), ("written", "CUT CALL RUN")])
def test_requests_that_hold_one_another_are_a_turn_and_a_result_may_refuse_its_call(tmp_path, result, verdict):
    first = exchange("length", None, tool_calls=calls(CUT))
    history = [GO, {"role": "assistant", "content": None, "tool_calls": calls(CUT)},
               {"role": "tool", "tool_call_id": "c1", "content": result}]
    seen = read(tmp_path, first, exchange("tool_calls", None, history, tool_calls=calls(WHOLE)))
    assert (words(seen), stops(seen)) == ([verdict], [Stop.MAX_TOKENS, Stop.TOOL_CALL])
