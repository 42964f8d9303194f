"""Spans that MLflow and Phoenix keep as rows, and those that Phoenix gives out: its API, its client, its data frame."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest

from inspector.sessions import open_paths
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, stops, view_file, words

ANSWER = {"id": "msg_0123456789abcdef", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "max_tokens",
          "type": "message", "role": "assistant", "model": "m"}
HELD = {"output.value": json.dumps(ANSWER), "llm.model_name": "m", "llm.token_count.completion": 7,
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "go",
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Hi.",
        "llm.invocation_parameters": '{"max_tokens": 16}'}
BARE = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.response.model": "m",
        "gen_ai.response.id": ANSWER["id"], "anthropic.message.stop_reason": "max_tokens",
        "output.value": json.dumps({"id": ANSWER["id"], "model": "m"}), "llm.model_name": "m"}
"""A span of Anthropic's SDK, to which Phoenix adds names of OpenInference."""
NESTED = {"output": {"value": json.dumps(ANSWER)}, "llm": {
    "model_name": "m", "token_count": {"completion": 7}, "invocation_parameters": '{"max_tokens": 16}',
    "input_messages": [{"message": {"role": "user", "content": "go"}}],
    "output_messages": [{"message": {"role": "assistant", "content": "Hi."}}]}}
PHOENIX = """CREATE TABLE traces (id INTEGER PRIMARY KEY, project_rowid INTEGER, trace_id VARCHAR);
CREATE TABLE spans (id INTEGER PRIMARY KEY, trace_rowid INTEGER, span_id VARCHAR, parent_id VARCHAR, name VARCHAR,
  span_kind VARCHAR, start_time TIMESTAMP, end_time TIMESTAMP, attributes JSONB, events JSONB, status_code VARCHAR,
  status_message VARCHAR);"""
MLFLOW = """CREATE TABLE spans (trace_id VARCHAR, experiment_id INTEGER, span_id VARCHAR, start_time_unix_nano BIGINT,
  content TEXT);"""
TIMES = {"start_time": "2026-01-02T03:04:05.000000+00:00", "end_time": "2026-01-02T03:04:06.000000+00:00"}


def span(number=1, attributes=HELD, trace="t1", **more):
    return {"name": "messages.create", "context": {"trace_id": trace, "span_id": f"s{number}"}, "span_kind": "LLM",
            "parent_id": None, **TIMES, "status_code": "OK", "status_message": "", "attributes": attributes,
            "events": [], **more}


def of_api(attributes=HELD):
    """A span of the API in OTLP: a value names every kind."""
    kinds = dict.fromkeys(("array_value", "bool_value", "bytes_value", "double_value", "int_value", "string_value"))
    listed = [{"key": name, "value": {**kinds, "int_value" if type(value) is int else "string_value": value}}
              for name, value in {"openinference.span.kind": "LLM", **attributes}.items()]
    return {"attributes": listed, "events": None, "name": "messages.create", "parent_span_id": None, "span_id": "s1",
            "start_time_unix_nano": 1767323045000000000, "end_time_unix_nano": 1767323046000000000,
            "status": {"code": 1, "message": None}, "trace_id": "t1", "trace_state": None}


def of_frame(**more):
    """A row of the data frame: messages as lists, and nothing in the columns of other spans."""
    lists = {f"llm.{name}_messages": [{"message.role": role, "message.content": said}]
             for name, role, said in (("input", "user", "go"), ("output", "assistant", "Hi."))}
    held = {name: value for name, value in HELD.items() if "_messages." not in name}
    return {"name": "messages.create", "span_kind": "LLM", "parent_id": None, "start_time": 1767323045000,
            "end_time": 1767323046000, "status_code": "OK", "context.span_id": "s1", "context.trace_id": "t1",
            **{f"attributes.{name}": value for name, value in {**held, **lists, "anthropic": None}.items()}, **more}


def database(tmp_path, script, table_rows):
    path = tmp_path / "spans.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(script)
        for table, row in table_rows:
            places = ", ".join("?" for _ in row)
            made.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))
    return path


def facts(seen):
    (one,) = seen.responses
    response, exchange = one.exchange.response, one.exchange
    return stops(seen), response.text, response.usage.output_tokens, exchange.cap, exchange.started


READ = (["max_tokens"], "Hi.", 7, 16)
START = "2026-01-02T03:04:05"


@each_row("content", [
    [span()], {"data": [span()], "next_cursor": None}, {"data": [of_api()], "next_cursor": None}, [of_frame()]])
def test_what_phoenix_gives_out_is_read_in_every_form(tmp_path, content):
    *read, started = facts(show(json.dumps(content), tmp_path))
    assert (*read,) == READ
    assert started.startswith(START)


def test_the_database_of_phoenix_is_read(tmp_path):
    path = database(tmp_path, PHOENIX, [
        ("traces", {"id": 3, "project_rowid": 1, "trace_id": "t1"}),
        ("spans", {"trace_rowid": 3, "span_id": "s1", "name": "messages.create", "span_kind": "LLM", "start_time":
                   "2026-01-02 03:04:05.000000", "end_time": "2026-01-02 03:04:06.000000", "status_code": "OK",
                   "status_message": "", "attributes": json.dumps(NESTED), "events": "[]"})])
    *read, started = facts(view_file(path))
    assert (*read,) == READ
    assert started.startswith(START)


def test_the_database_of_mlflow_is_read(tmp_path):
    request = {"model": "m", "max_tokens": 16, "messages": [{"role": "user", "content": "go"}]}
    content = {"trace_id": "dDE=", "span_id": "czE=", "parent_span_id": "", "name": "Messages.create", "events": [],
               "start_time_unix_nano": 1767323045000000000, "status": {"code": "STATUS_CODE_OK"}, "attributes": {
                   "mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": json.dumps(request),
                   "mlflow.spanOutputs": json.dumps(ANSWER), "mlflow.chat.tokenUsage": '{"output_tokens": 7}'}}
    path = database(tmp_path, MLFLOW, [("spans", {
        "trace_id": "tr-1", "experiment_id": 1, "span_id": "s1", "start_time_unix_nano": 1767323045000000000,
        "content": json.dumps(content)})])
    *read, started = facts(view_file(path))
    assert (*read,) == READ
    assert started.startswith(START)


@pytest.mark.parametrize("attributes", ["[", "null", '{"llm": [1], "output": "x"}'])
def test_damaged_rows_of_a_store_are_counted_or_empty(tmp_path, attributes):
    path = database(tmp_path, PHOENIX, [("traces", {"id": 1, "trace_id": "t1"}), ("spans", {
        "trace_rowid": 1, "span_id": "s1", "span_kind": "LLM", "attributes": attributes, "events": attributes})])
    assert [word for word in words(view_file(path)) if word == "COMPLETE"] == []


def test_a_row_with_bytes_costs_no_other_row(tmp_path):
    """The file was called one that holds a value of an unexpected type."""
    path = database(tmp_path, PHOENIX, [("traces", {"id": 1, "trace_id": "t1"}), *(("spans", {
        "trace_rowid": 1, "span_id": ident, "span_kind": "LLM", "attributes": json.dumps(NESTED), "events": "[]",
        **TIMES, "name": name}) for ident, name in (("s1", b"\xff"), ("s2", "messages.create")))])
    assert len(view_file(path).responses) == 2


def test_what_phoenix_adds_to_a_span_that_names_a_response_is_no_text(tmp_path):
    """An answer without content was complete, with the JSON of its id as the text."""
    seen = show(json.dumps([span(1, {**BARE, "anthropic.message.stop_reason": "end_turn"})]), tmp_path)
    assert (words(seen), seen.responses[0].exchange.response.text) == (["END NOT RECORDED"], None)


def test_an_answer_that_is_an_object_of_other_values_is_its_text(tmp_path):
    said = json.dumps({"id": "a", "model": "m"})
    seen = show(json.dumps([span(1, {**BARE, "output.value": said})]), tmp_path)
    assert seen.responses[0].exchange.response.text == said


def test_the_spans_of_the_client_and_of_an_instrumentation_are_one_answer_also_beside_each_other(tmp_path):
    seen = show(json.dumps([span(1), span(2, BARE, trace="t2")]), tmp_path)
    assert (stops(seen), seen.responses[0].exchange.response.text) == (["max_tokens"], "Hi.")


@each_row(("script", "column"), [
    *((PHOENIX, name) for name in ("trace_rowid", "span_id", "span_kind", "attributes")),
    *((MLFLOW, name) for name in ("trace_id", "span_id", "experiment_id", "content"))])
def test_a_database_whose_spans_lack_a_column_is_that_of_another_program(tmp_path, script, column):
    before, made, spans = script.rpartition("CREATE TABLE spans")
    path = database(tmp_path, before + made + re.sub(rf"\b{column}\b", "other", spans), [])
    (source,) = open_paths([str(path)]).inputs
    assert "a database with the tables" in source.error
