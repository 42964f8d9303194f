"""The log of `llm`: both generations of its tables, whose stop word it is, calls and results, the tree of messages."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from inspector.report.facts import View
from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from inspector.sessions.reasons import named_api
from loop_core.values import ReasoningPart
from tests import fuzz
from tests.scenes.rows import each_row, share
from tests.scenes.shapes import EVERY, GONE
from tests.scenes.transcripts import rules, text, view_file, words

Row = dict[str, Any]
OLDER = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT,
  response TEXT, response_json TEXT, conversation_id TEXT, duration_ms INTEGER, datetime_utc TEXT, input_tokens INTEGER,
  output_tokens INTEGER, token_details TEXT, resolved_model TEXT, reasoning TEXT);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, output TEXT, tool_call_id TEXT,
  exception TEXT);"""
NEWER = """
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT,
  resolved_model TEXT, options_json TEXT, input_tokens INTEGER, output_tokens INTEGER, datetime_utc TEXT,
  response_json TEXT);
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, text TEXT, payload TEXT);"""


def database(tmp_path: Path, *rows: tuple[str, Row], tables: str = OLDER + NEWER) -> Path:
    """A database with these rows, each with the name of its table; lists and objects in a column are JSON."""
    path = tmp_path / "logs.db"
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(tables)
        for table, row in rows:
            values = [json.dumps(value) if isinstance(value, (list, dict)) else value for value in row.values()]
            base.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", values)
    return path


def stream_row(word: str | None) -> Row:
    """A streamed answer of OpenAI, as `llm` joins it."""
    return {"content": {"$": "r:x"}, **({} if word is None else {"finish_reason": word}),
            "usage": {"prompt_tokens": 4, "completion_tokens": 30,
                      "completion_tokens_details": {"reasoning_tokens": 7}},
            "object": "chat.completion.chunk", "model": "m"}


def older(key: str, prompt: str, response: str, raw: Any, **more: Any) -> tuple[str, Row]:
    return "responses", {"id": key, "model": "m", "prompt": prompt, "response": response, "response_json": raw,
                         "conversation_id": "c1", "datetime_utc": f"2026-01-01T00:00:0{key[-1]}Z", **more}


def message(hash_: str, parent: str | None, role: str, *parts: Row) -> list[tuple[str, Row]]:
    return [("messages", {"hash": hash_, "parent_hash": parent, "role": role}),
            *(("parts", {"message_hash": hash_, "position": at, **part}) for at, part in enumerate(parts))]


def stops(seen: View) -> list[tuple[str, str | None]]:
    """The reason of each response, and the provider's word."""
    return [(facts.judgement.stop.normalized.value, facts.judgement.stop.raw) for facts in seen.responses]


def newer(key: str, parent: str, tip: str, raw: Any, thread: str = "c1", **more: Any) -> tuple[str, Row]:
    return "turns", {"id": key, "thread_id": thread, "parent_message_hash": parent, "tip_message_hash": tip,
                     "model": "m", "response_json": raw, **more}


CALL = {"name": "look", "arguments": {"path": "a.py"}, "tool_call_id": "k1"}
RESULT = {"name": "look", "output": "none there", "tool_call_id": "k1", "exception": "KeyError: 'a.py'"}
WITH_A_CALL = {
    "older": [
        older("r1", "go", "I look.", stream_row("tool_calls")), older("r2", "", "Done.", stream_row("stop")),
        ("tool_calls", {"response_id": "r1", **CALL}), ("tool_results", {"response_id": "r2", **RESULT}),
    ],
    "newer": [
        *message("u1", None, "system", text("Be brief.")), *message("u2", "u1", "user", text("go")),
        *message("a1", "u2", "assistant", text("I look."), {"type": "tool_call", "payload": CALL}),
        *message("t1", "a1", "tool", {"type": "tool_result", "payload": RESULT}),
        *message("a2", "t1", "assistant", text("Done.")),
        newer("r1", "u2", "a1", stream_row("tool_calls")), newer("r2", "t1", "a2", stream_row("stop")),
    ],
}


@pytest.mark.parametrize("rows", WITH_A_CALL.values(), ids=WITH_A_CALL)
def test_a_call_its_failed_result_and_the_answer_are_one_turn(rows, tmp_path):
    seen = view_file(database(tmp_path, *rows, ("conversations", {"id": "c1", "name": "The title"}),
                           ("threads", {"id": "c1", "name": "The title"})))
    assert (words(seen), stops(seen)) == (["COMPLETE"], [("tool_call", "tool_calls"), ("end_turn", "stop")])
    first, second = (each.exchange for each in seen.responses)
    assert [(call.id, call.name, call.arguments) for call in first.response.tool_calls] == [
        ("k1", "look", '{"path": "a.py"}')]
    (result,) = [part for each in second.request.messages for part in each.parts if hasattr(part, "is_error")]
    assert (result.text, result.is_error) == ("none there", True)
    assert [each.exchange.response.text for each in seen.responses] == ["I look.", "Done."]
    assert first.response.usage[:3] == (4, 30, 7)
    assert seen.inputs[0].about.title == "The title"


@each_row(("raw", "stop", "word", "api"), [
    (stream_row("length"), "max_tokens", "length", "openai_chat"),
    ({"object": "chat.completion", "choices": [{"finish_reason": "length"}]}, "max_tokens", "length", "openai_chat"),
    ({"type": "message", "stop_reason": "max_tokens"}, "max_tokens", "max_tokens", "anthropic_messages"),
    ({"candidates": [{"finishReason": "SAFETY"}]}, "safety_blocked", "SAFETY", "gemini_generate"),
    ({"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
     "max_tokens", "incomplete:max_output_tokens", "openai_responses"),
    ({"done": True, "done_reason": "length"}, "max_tokens", "length", "ollama_chat"),
    (stream_row(None), "unknown", None, "openai_chat"),
    (None, "unknown", None, None),
])
@each_row("table", ["older", "newer"])
def test_the_word_is_the_providers(raw, stop, word, api, table, tmp_path):
    rows = [older("r1", "go", "The half", raw)] if table == "older" else [
        *message("u1", None, "user", text("go")), *message("a1", "u1", "assistant", text("The half")),
        newer("r1", "u1", "a1", raw)]
    seen = view_file(database(tmp_path, *rows))
    (facts,) = seen.responses
    assert (stops(seen), named_api(facts.exchange)) == ([(stop, word)], api)
    assert rules(seen)[0] == ("transcript.provider" if word else "transcript.absent")


def test_the_cap_and_the_models_own_name_and_its_reasoning(tmp_path):
    raw = {"type": "message", "stop_reason": "max_tokens"}
    more = {"options_json": {"max_tokens": 30}, "resolved_model": "m-2", "input_tokens": 4, "output_tokens": 30}
    seen = view_file(database(tmp_path, older("r1", "go", "The half", raw, reasoning="Hm.", **more)))
    (facts,) = seen.responses
    response = facts.exchange.response
    assert (words(seen), facts.exchange.request.max_tokens) == (["TRUNCATED"], 30)
    assert (response.model, response.usage[:2], response.parts[0]) == ("m-2", (4, 30), ReasoningPart("Hm."))


@each_row(("cap", "stop"), [(30, "max_tokens"), (31, "end_turn")])
def test_an_answer_without_a_word_that_fills_its_cap_is_cut(cap, stop, tmp_path):
    """A new prompt after it is weaker evidence than the count."""
    more = {"options_json": {"max_tokens": cap}, "output_tokens": 30}
    seen = view_file(database(tmp_path, older("r1", "go", "The half", None, **more), older("r2", "and?", "So.", None)))
    assert stops(seen)[0] == (stop, None)


def test_an_answer_that_both_tables_have_is_one(tmp_path):
    """A release between the two wrote both; the same conversation goes on in the later table alone."""
    seen = view_file(database(
        tmp_path, older("r0", "before", "Zero.", stream_row("stop")), older("r1", "go", "One.", stream_row("stop")),
        *message("u0", None, "user", text("before")), *message("a0", "u0", "assistant", text("Zero.")),
        *message("u1", "a0", "user", text("go")), *message("a1", "u1", "assistant", text("One.")),
        *message("u2", "a1", "user", text("more")), *message("a2", "u2", "assistant", text("Two.")),
        newer("r1", "u1", "a1", stream_row("stop")), newer("r2", "u2", "a2", stream_row("stop"))))
    assert [each.exchange.response.text for each in seen.responses] == ["Zero.", "One.", "Two."]
    assert len({turn.conversation for turn in seen.turns}) == 1
    said = [[part.text for each in facts.exchange.request.messages for part in each.parts] for facts in seen.responses]
    assert said == [["before"], ["go"], ["more"]]


def test_threads_that_share_messages_are_conversations_of_their_own(tmp_path):
    """Two threads that began alike share the rows of their first messages; a third is a fork without a turn of its own
    there."""
    shared = [*message("u1", None, "user", text("hi")), *message("a1", "u1", "assistant", text("Hello."))]
    last = [each for name in "xyz" for each in (
        *message(f"u{name}", "a1", "user", text(f"and {name}")),
        *message(f"a{name}", f"u{name}", "assistant", text(f"It is {name}.")))]
    seen = view_file(database(
        tmp_path, *shared, *last, newer("r1", "u1", "a1", stream_row("stop"), "x"),
        newer("r2", "u1", "a1", stream_row("stop"), "y"), newer("r3", "ux", "ax", stream_row("stop"), "x"),
        newer("r4", "uy", "ay", stream_row("stop"), "y"), newer("r5", "uz", "az", stream_row("stop"), "z")))
    first, second, third, fourth, fifth = (
        next(turn.conversation for turn in seen.turns if at in turn.responses) for at in range(5))
    assert (third, fourth, first == second) == (first, second, False)
    assert [facts.exchange.response.text for facts in seen.responses][2:] == ["It is x.", "It is y.", "It is z."]
    assert fifth in (first, second)


def test_an_empty_answer_has_no_message_of_its_own(tmp_path):
    """So another thread that asks the same, and shares the message, does not follow it."""
    asked = [*message("u1", None, "user", text("go")), *message("a1", "u1", "assistant", text("Done."))]
    seen = view_file(database(tmp_path, *asked, newer("r1", "u1", "u1", stream_row("stop")),
                              newer("r2", "u1", "a1", stream_row("stop"), "c2")))
    assert (words(seen), stops(seen)) == (["EMPTY ANSWER", "COMPLETE"], [("end_turn", "stop")] * 2)


def test_a_prompt_with_fragments_is_shown_without_them_and_other_parts_are_counted(tmp_path):
    prompt = {"type": "text", "payload": {"text_ref": [{"fragment": 1}, {"literal": "what is it?"}]}}
    seen = view_file(database(tmp_path, *message("u1", None, "user", prompt), *message(
        "a1", "u1", "assistant", {"type": "reasoning", "text": "Hm."}, text("A novel."), {"type": "attachment"}),
        newer("r1", "u1", "a1", stream_row("stop"))))
    (facts,) = seen.responses
    assert [part.text for each in facts.exchange.request.messages for part in each.parts] == ["what is it?"]
    assert [part.text for part in facts.exchange.response.parts] == ["Hm.", "A novel."]
    assert "rows that have a part of the type attachment, which is not shown: 1" in str(seen.inputs[0].notices)


def test_messages_in_a_ring_end(tmp_path):
    seen = view_file(database(tmp_path, *message("u1", "u2", "user", text("go")),
                              *message("u2", "u1", "user", text("on")),
                           *message("a1", "u1", "assistant", text("Yes.")), newer("r1", "u1", "a1", stream_row("stop")),
                              newer("r2", "gone", "a1", stream_row("stop"))))
    assert [facts.exchange.response.text for facts in seen.responses] == ["Yes.", "Yes."]


def test_a_response_whose_id_is_no_text_is_read(tmp_path):
    """The first releases counted their answers."""
    tables = OLDER.replace("responses (id TEXT", "responses (id INTEGER")
    table, row = older("1", "go", "One.", stream_row("stop"))
    seen = view_file(database(tmp_path, (table, {**row, "id": 1}), tables=tables))
    assert [(facts.exchange.response.text, words(seen)) for facts in seen.responses] == [("One.", ["COMPLETE"])]


@each_row(("tables", "known"), [
    (OLDER, True), (NEWER, True), (OLDER + NEWER, True), (OLDER.replace("response_json TEXT", "body TEXT"), False),
    (NEWER.replace("tip_message_hash", "tip"), False), ("CREATE TABLE responses (id TEXT)", False),
])
def test_the_columns_of_either_table_show_the_format(tables, known, tmp_path):
    path = database(tmp_path, tables=tables)
    assert (choose(path.read_bytes(), str(path)) == "llm") is known
    (given,) = open_paths([str(path)]).inputs
    assert (given.error is None, given.responses) == (known, 0)


@pytest.mark.parametrize(("column", "odd", "words"), [
    ("options_json", "max_tokens=30", "options_json is text, but an object was expected"),
    ("response_json", "[]", "response_json is a list, but an object was expected"),
    ("response", 7, "response is a number, but text was expected"),
])
def test_a_column_of_another_type_is_reported(column, odd, words, tmp_path):
    path = database(tmp_path, older("r1", "go", "One.", stream_row("stop"), **{column: odd}) if column == "options_json"
                    else ("responses", {**older("r1", "go", "One.", stream_row("stop"))[1], column: odd}),
                    tables=OLDER.replace("response TEXT", "response"))
    assert f"{path}: row 1: {words}; it was skipped" in open_paths([str(path)]).inputs[0].notices


ODD = (None, 7, "x", b"\xff", "\x1b[31m", *(json.dumps(each) for each in EVERY if each is not GONE))
PLACES = [(name, number, column) for name, rows in WITH_A_CALL.items() for number, (_, row) in enumerate(rows)
          for column in row if column != "hash"]


@pytest.mark.parametrize("turn", range(10))
def test_any_value_in_any_column_is_read_and_explained(turn, tmp_path):
    """Places next to each other take turns: each gets a tenth of the values, and each value is in a tenth of them."""
    for index, (name, number, column) in share(enumerate(PLACES[turn::10]), turn):
        rows = WITH_A_CALL[name]
        table, row = rows[number]
        for odd in ODD[index % 10 :: 10]:
            path = database(tmp_path, *rows[:number], (table, {**row, column: odd}), *rows[number + 1 :])
            fuzz.explain(open_paths([str(path)]))
            path.unlink()
