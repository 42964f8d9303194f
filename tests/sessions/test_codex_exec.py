"""The stream of `codex exec --json`: items, results, failures, and no stop word."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, stops, words

START = ({"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"})


def item(kind, key="item_0", event="completed", **more):
    return {"type": f"item.{event}", "item": {"id": key, "type": kind, **more}}


def turn_end(**usage):
    return {"type": "turn.completed", "usage": usage}


def failure(message):
    return {"type": "turn.failed", "error": {"message": message}}


def read(tmp_path, *rows):
    return show("".join(json.dumps(row) + "\n" for row in (*START, *rows)), tmp_path)


def results(seen):
    return [(part.text, part.is_error) for message in seen.responses[-1].exchange.request.messages
            for part in message.results]


def test_an_answer_and_its_counts(tmp_path):
    seen = read(tmp_path, item("reasoning", text="hm"), item("agent_message", text="Hi"), item("todo_list", items=[]),
                turn_end(input_tokens=9, output_tokens=5, reasoning_output_tokens=2, cached_input_tokens=4,
                         cache_write_input_tokens=3))
    (facts,) = seen.responses
    made = facts.exchange.response
    assert (made.text, made.reasoning_content, facts.exchange.recorder) == ("Hi", "hm", "codex-exec")
    assert made.usage == (9, 5, 2, 4, 3)
    assert (stops(seen), words(seen)) == (["end_turn"], ["END INFERRED"])
    assert "Codex CLI keeps none" in seen.inputs[0].notices[0]
    assert "of unknown type" not in "\n".join(seen.inputs[0].notices)


@each_row(("kind", "given", "arguments", "result"), [
    ("command_execution", {"command": "ls", "aggregated_output": "a", "exit_code": 0}, "ls", ("a", False)),
    ("command_execution", {"command": "ls", "aggregated_output": "b", "exit_code": 1}, "ls", ("b", True)),
    ("command_execution", {"command": "ls", "status": "declined"}, "ls", ("", True)),
    ("file_change", {"changes": [{"path": "a"}], "status": "completed"}, '[{"path": "a"}]', ("completed", False)),
    ("mcp_tool_call", {"tool": "t", "arguments": {"a": 1}, "result": {"content": [{"type": "text", "text": "r"}]}},
     '{"a": 1}', ("r", False)),
    ("mcp_tool_call", {"tool": "t", "arguments": {"a": 1}, "error": {"message": "no"}}, '{"a": 1}', ("no", True)),
    ("web_search", {"query": "q"}, "q", ("", False)),
    ("collab_tool_call", {"tool": "spawn_agent", "prompt": "count", "status": "completed"}, "count",
     ("completed", False)),
])
def test_calls_and_results(tmp_path, kind, given, arguments, result):
    seen = read(tmp_path, item("agent_message", "item_9", text="I look."),
                item(kind, event="started", **given), item(kind, **given),
                item("agent_message", "item_1", text="Done."))
    first = seen.responses[0].exchange.response
    assert [(call.name, call.arguments) for call in first.tool_calls] == [(given.get("tool", kind), arguments)]
    assert results(seen) == [result]
    assert stops(seen)[0] == "tool_call"


def test_a_call_that_was_not_completed_has_no_result(tmp_path):
    seen = read(tmp_path, item("command_execution", event="started", command="ls"))
    assert (len(seen.responses), results(seen)) == (1, [])


def test_each_row_of_an_answer_is_in_its_body_once(tmp_path):
    rows = item("reasoning", text="hm"), item("command_execution", event="started", command="ls")
    (facts,) = read(tmp_path, *rows).responses
    made = facts.exchange
    assert (made.lines, made.body) == ((3, 4), "\n".join(map(json.dumps, rows)).encode())
    at = made.response.tool_calls[0].at
    assert json.loads(made.body[at.start : at.end]) == rows[1]
    (facts,) = read(tmp_path, failure("unexpected status 401 Unauthorized")).responses
    assert (facts.exchange.lines, facts.exchange.body.count(b"401")) == ((3,), 1)


def test_a_turn_that_ends_without_a_message_is_no_answer_that_ended_well(tmp_path):
    ran = [item("agent_message", text="I look."), item("command_execution", command="ls", aggregated_output="a")]
    thought, left_open = item("reasoning", text="hm"), item("command_execution", event="started", command="ls")
    for rows, reasons in (([], ["unknown"]), (ran, ["tool_call", "unknown"]), ([thought], ["unknown"]),
                          ([left_open], ["unknown"])):
        seen = read(tmp_path, *rows, turn_end())
        assert stops(seen) == reasons
        assert "transcript.no_last_message" in [each.rule for each in seen.responses[-1].exchange.response.findings]


def test_ids_begin_anew_with_each_turn(tmp_path):
    call = item("command_execution", command="ls", aggregated_output="a")
    said = item("agent_message", text="Done.")
    seen = read(tmp_path, call, said, turn_end(), {"type": "turn.started"}, call, said)
    assert (len(seen.turns), len(seen.responses)) == (2, 4)


@pytest.mark.parametrize(("message", "stop"), [
    ("stream disconnected before completion: Incomplete response returned, reason: max_output_tokens", "max_tokens"),
    ("Incomplete response returned, reason: content_filter", "safety_blocked"),
    ("unexpected status 401 Unauthorized", "error"),
    ("Codex ran out of room in the model's context window. Start a new thread.", "context_window_exceeded"),
])
def test_a_turn_that_failed(tmp_path, message, stop):
    seen = read(tmp_path, {"type": "error", "message": "Reconnecting... 1/5"}, failure(message))
    assert stops(seen) == [stop]
    assert "good" not in " ".join(words(seen)).lower()


@each_row("odd", [{"item": 1}, {"type": 1}, {"usage": 1}, {"error": 1}])
def test_members_of_other_types_are_named(tmp_path, odd):
    seen = read(tmp_path, item("agent_message", text="Hi"), {"type": "x", **odd})
    assert any("was expected; it was skipped" in notice for notice in seen.inputs[0].notices)


@each_row("kind", ["thread.started", "turn.started", "item.started", "item.updated", "item.completed",
                                  "turn.completed", "turn.failed"])
def test_recognition(kind):
    assert choose(json.dumps({"type": kind}).encode() + b"\n{}\n", "x") == "codex-exec"
