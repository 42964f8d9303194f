"""Threads of Zed: calls that are marked as incomplete or could not be read, cancelled tools, older threads."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
import zstandard

from inspector.sessions.importers.recognition import choose
from loop_core.values import ReasoningPart, TextPart
from tests.scenes.transcripts import stops, view_file, words

Row = dict[str, Any]
TABLE = ("CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL, "
         "data_type TEXT NOT NULL, data BLOB NOT NULL, parent_id TEXT)")
GO = {"User": {"id": "u", "content": [{"Text": "go"}, {"Mention": {"uri": "file:///a", "content": "A"}}]}}


def call(raw: str = '{"path": "a"}', whole: bool = True, **more: Any) -> Row:
    return {"ToolUse": {"id": "c1", "name": "edit_file", "raw_input": raw, "input": {"path": "a"},
                        "is_input_complete": whole, **more}}


def agent(*content: Row, result: Any = None, error: bool = False) -> Row:
    results = {} if result is None else {"c1": {"tool_use_id": "c1", "tool_name": "edit_file", "is_error": error,
                                                "content": result, "output": None}}
    return {"Agent": {"content": [*content], "tool_results": results, "reasoning_details": None}}


def text(said: str) -> Row:
    return {"Text": said}


def base(folder: Any, *threads: tuple[str, list[Any], str | None]) -> Any:
    path = folder / "threads.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(TABLE)
        for name, messages, above in threads:
            thread = {"title": name, "messages": messages, "model": {"provider": "anthropic", "model": "claude-x"},
                      "version": "0.3.0"}
            packed = zstandard.compress(json.dumps(thread).encode())
            made.execute("INSERT INTO threads VALUES (?, ?, '', 'zstd', ?, ?)", (f"id-{name}", name, packed, above))
    return path


def read(folder: Any, *messages: Any) -> Any:
    return view_file(base(folder, ("A", list(messages), None)))


def test_a_thread_is_read_with_the_results_of_its_calls(tmp_path):
    seen = read(tmp_path, GO, agent({"Thinking": {"text": "hm", "signature": None}}, text("I edit."), call(),
                                    result=[text("done")]),
                agent({"RedactedThinking": "x"}, text("Done.")), "Resume", GO)
    path = tmp_path / "threads.db"
    assert choose(path.read_bytes(), str(path)) == "zed"
    first, second = (facts.exchange for facts in seen.responses)
    assert first.response.parts[:2] == (ReasoningPart("hm"), TextPart("I edit."))
    assert [(each.id, each.name, each.arguments) for each in first.response.tool_calls] == [
        ("c1", "edit_file", '{"path": "a"}')]
    assert (first.response.model, first.request.messages[0].text) == ("claude-x", "go\nA")
    assert [part.text for part in second.request.messages[0].results] == ["done"]
    assert (stops(seen), words(seen)) == (["tool_call", "end_turn"], ["END INFERRED"])
    assert any("hold no exchange: Resume (1)" in notice for notice in seen.inputs[0].notices)


@pytest.mark.parametrize(("part", "result", "stop"), [
    (call('{"path": "a', whole=False), "Tool canceled by user", "interrupted"),
    (call('{"path": "a', whole=True), "Error parsing input JSON: EOF while parsing a string", "max_tokens"),
    (call('{"path": a}', whole=True), "Error parsing input JSON: expected value", "malformed_tool_call"),
    (call('{"path": "a', whole=True), "Failed to receive tool input: Error parsing input JSON: EOF", "max_tokens"),
])
def test_a_call_that_was_cut_or_not_read_is_never_ready(part, result, stop, tmp_path):
    seen = read(tmp_path, GO, agent(part, result={"Text": result}, error=True), GO, agent(text("Again.")))
    (verdict,) = seen.responses[0].verdicts
    assert (verdict.admission.value in ("held", "rejected"), stops(seen)[0]) == (True, stop)
    assert ("c1" in seen.responses[0].exchange.refusals) is ("Error parsing" in result)


def test_a_tool_that_was_cancelled_shows_no_end(tmp_path):
    seen = read(tmp_path, GO, agent(call(), result=text("Tool canceled by user"), error=True))
    assert stops(seen) == ["unknown"]


def test_a_call_without_arguments_and_one_of_no_tool(tmp_path):
    seen = read(tmp_path, GO, agent(call("", input={}), result=text("No tool named edit_file exists"), error=True))
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == "{}"
    assert "knows no such tool" in seen.responses[0].exchange.refusals["c1"]


def test_a_thread_of_an_older_release_and_a_subagent(tmp_path):
    older = [{"id": 0, "role": "user", "segments": [{"type": "text", "text": "go"}]},
             {"id": 1, "role": "assistant", "segments": [{"type": "thinking", "text": "hm"},
                                                         {"type": "text", "text": "I edit."}],
              "tool_uses": [{"id": "c1", "name": "edit_file", "input": {"path": "a"}}],
              "tool_results": [{"tool_use_id": "c1", "is_error": False, "content": "done"}]},
             {"id": 2, "role": "assistant", "segments": [{"type": "text", "text": "Done."}]},
             {"id": 3, "role": "system", "segments": []}]
    seen = view_file(base(tmp_path, ("A", older, None), ("B", [GO, agent(text("Hi."))], "id-A")))
    first, second, third = (facts.exchange for facts in seen.responses)
    assert (first.response.parts[:2], first.response.tool_calls[0].arguments) == (
        (ReasoningPart("hm"), TextPart("I edit.")), '{"path": "a"}')
    assert [part.text for part in second.request.messages[0].results] == ["done"]
    assert (third.session, len(seen.turns)) == ("A › B", 2)
    assert any("hold no exchange: system (1)" in notice for notice in seen.inputs[0].notices)


def test_a_thread_that_cannot_be_read_costs_no_other_and_odd_members_are_reported(tmp_path):
    path = base(tmp_path, ("A", [], None), ("B", [GO, agent(text("Hi.")), {"Agent": {"content": {}}}, {"Agent": 7},
                                                 {"Compaction": {"Summary": "x"}}], None), ("C", [], None))
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("UPDATE threads SET data = ? WHERE id = 'id-A'", (b"\x28\xb5\x2f\xfd damaged",))
        made.execute("UPDATE threads SET data = 7 WHERE id = 'id-C'")
    seen = view_file(path)
    assert seen.responses[0].exchange.response.text == "Hi."
    assert [each.why[:3] for each in seen.inputs[0].skipped] == ["A: ", "C: "]
    told = "\n".join(seen.inputs[0].notices)
    assert "Agent.content is an object, but a list" in told
    assert "Agent is a number, but an object" in told
    assert "hold no exchange: Compaction (1)" in told
