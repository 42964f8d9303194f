"""Sessions of Grok Build: pieces, late rows, calls with the model's own arguments, retries, ends of turns, damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.folders import transcripts
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import View, places, show, stops, view_file, words

Row = dict[str, Any]
BASE = 1796130457000
CUT = '{"command": "ls'
WHOLE = '{"command": "ls"}'
TRUNCATED = "response truncated by max_tokens"


def update(kind: str, at: int, stream: int | None = None, **more: Any) -> Row:
    """A row about the event `at` milliseconds after the first, of the answer that began at `stream`."""
    meta = {"eventId": f"s-{at}", "agentTimestampMs": BASE + at,
            **({} if stream is None else {"streamStartMs": BASE + stream})}
    own = kind in ("turn_completed", "retry_state", "hook_execution")
    return {"timestamp": BASE // 1000, "method": "_x.ai/session/update" if own else "session/update",
            "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **more}, "_meta": meta}}


def said(text: str, at: int, stream: int, kind: str = "agent_message_chunk") -> Row:
    return update(kind, at, stream, content={"type": "text", "text": text})


def call(key: str, at: int, stream: int, **more: Any) -> Row:
    return update("tool_call", at, stream, toolCallId=key, title="run", **more)


def result(key: str, at: int, stream: int, text: str = "a", status: str = "completed") -> Row:
    return update("tool_call_update", at, stream, toolCallId=key, status=status,
                  content=[{"type": "content", "content": {"type": "text", "text": text}}])


def end(word: str, at: int, **more: Any) -> Row:
    return update("turn_completed", at, prompt_id="p", stop_reason=word, **more)


def retry(why: str, at: int, **more: Any) -> Row:
    return update("retry_state", at, type="retrying", attempt=1, max_retries=2, reason=why, **more)


GO = update("user_message_chunk", 0, content={"type": "text", "text": "go"}, _meta={"modelId": "m-1", "promptIndex": 0})
DONE = said("Done.", 21, 20)


def look(folder: Path, *rows: Row) -> View:
    return show("".join(f"{json.dumps(row)}\n" for row in rows), folder, name="updates.jsonl")


def beside(folder: Path, **arguments: str) -> None:
    """The history beside the updates, with the model's own arguments of these calls."""
    rows = [{"type": "user", "content": [{"type": "text", "text": "go"}], "prompt_index": 0},
            {"type": "assistant", "content": "", "model_id": "m-1", "tool_calls": [
                {"id": key, "name": "run", "arguments": value} for key, value in arguments.items()]}]
    (folder / "chat_history.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows) + '{"type": "assi')


def test_a_session(tmp_path):
    (tmp_path / "summary.json").write_text(json.dumps({"info": {"id": "s", "cwd": "/w"}, "parent_session_id": "s0",
                                                       "session_summary": "x", "generated_title": "Look"}))
    beside(tmp_path, t1=WHOLE)
    seen = look(tmp_path, GO, said("hm", 11, 10, "agent_thought_chunk"), said("I look.", 12, 10),
                call("t1", 13, 10, rawInput={"command": "ls"}), update("tool_call_update", 14, 10, toolCallId="t1"),
                result("t1", 15, 10), DONE, end("end_turn", 30))
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    first, last = (facts.exchange for facts in seen.responses)
    assert (first.response.text, first.response.model) == ("I look.", "m-1")
    assert [part.text for part in first.response.parts if isinstance(part, ReasoningPart)] == ["hm"]
    assert [(each.name, each.arguments, each.form.value) for each in first.response.tool_calls] == [
        ("run", WHOLE, "string")]
    assert [each.text for each in last.request.messages[-1].results] == ["a"]
    about = seen.inputs[0].about
    assert (about.id, about.parent, about.title) == ("s", "s0", "Look")
    assert words(seen) == ["END INFERRED"], "`end_turn` is Grok's word, also where the provider gave none"


def test_rows_that_are_written_late_are_put_into_their_order(tmp_path):
    late = [GO, retry("broke", 13, error_type="http"), said("I l", 12, 10), said("I look.", 22, 20),
            call("t1", 23, 20, rawInput={}), call("t2", 24, 20, rawInput={}), retry("empty", 40),
            result("t1", 26, 20), result("t2", 27, 20), said("Done.", 51, 50),
            end("end_turn", 60)]
    seen = look(tmp_path, *late)
    assert stops(seen) == ["error", "tool_call", "error", "end_turn"]
    assert places(seen) == [["request", "retry", "tool_result", "retry"]]
    assert [facts.exchange.response.text for facts in seen.responses][:2] == ["I l", "I look."]
    assert seen.responses[0].exchange.lines[0] == 3, "the numbers are those of the lines"


def test_a_row_without_an_event_stays_behind_the_row_before(tmp_path):
    bare = {"method": "session/update", "params": {"sessionId": "s", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "!"}}}}
    seen = look(tmp_path, GO, DONE, {**bare, "params": {**bare["params"], "_meta": {"streamStartMs": BASE + 20}}},
                end("end_turn", 30))
    assert [facts.exchange.response.text for facts in seen.responses] == ["Done.!"]


def test_the_first_releases_wrote_the_parameters_alone(tmp_path):
    rows = [GO, *(row["params"] for row in (DONE, end("end_turn", 30)))]
    assert stops(look(tmp_path, *rows)) == ["end_turn"]


@pytest.mark.parametrize(("stored", "raw", "arguments", "closed"), [
    (CUT, None, CUT, False), (WHOLE, {"command": "l"}, WHOLE, True),
    (None, {"command": "ls"}, '{"command": "ls"}', True), (None, None, None, False),
])
def test_the_arguments_are_the_models_own_if_they_are_stored(stored, raw, arguments, closed, tmp_path):
    beside(tmp_path, **({} if stored is None else {"t1": stored}))
    seen = look(tmp_path, GO, call("t1", 11, 10, **({} if raw is None else {"rawInput": raw})))
    (found,) = seen.responses[0].exchange.response.tool_calls
    assert (found.arguments, found.closed) == (arguments, closed)


def test_a_cut_call_did_not_run_and_is_asked_for_again(tmp_path):
    beside(tmp_path, t1=CUT, t2=WHOLE)
    broken = "Failed to parse arguments for tool `run`: missing field `command`"
    seen = look(tmp_path, GO, call("t1", 11, 10), result("t1", 12, 10, broken, "failed"), call("t2", 15, 14),
                result("t2", 16, 14), DONE, end("end_turn", 30))
    assert stops(seen) == ["max_tokens", "tool_call", "end_turn"]
    assert list(seen.responses[0].exchange.refusals) == ["t1"]
    failed = look(tmp_path, GO, call("t2", 11, 10), result("t2", 12, 10, "no such file", "failed"), DONE)
    assert not failed.responses[0].exchange.refusals


@each_row(("text", "status", "refused"), (
    ("Tool `run` was not executed: Denied by permission policy: deny rule on bash", "failed", True),
    ("Tool execution was cancelled by the user (tool `run` was not executed).", "failed", True),
    ("Tool execution was halted by the harness (policy); the tool `run` was not executed.", "failed", True),
    ("The script says: Tool `run` was not executed", "failed", False),
    ("Tool `run` was not executed: so says its output", "completed", False),
))
def test_a_call_that_did_not_run(text, status, refused, tmp_path):
    seen = look(tmp_path, GO, call("t1", 11, 10, rawInput={}), result("t1", 12, 10, text, status), DONE)
    assert (list(seen.responses[0].exchange.refusals) == ["t1"]) is refused


@each_row(("word", "more", "stop", "verdict"), (
    ("end_turn", {}, "end_turn", "END INFERRED"), ("cancelled", {}, "cancelled", "CANCELLED"),
    ("refusal", {}, "safety_blocked", "BLOCKED"), ("max_tokens", {}, "max_tokens", "TRUNCATED"),
    ("error", {"agent_result": TRUNCATED, "error_kind": "max_tokens_truncation"}, "max_tokens", "TRUNCATED"),
    ("error", {"agent_result": "no route"}, "error", "ERROR"), ("rate_limit", {}, "error", "ERROR"),
))
def test_the_end_of_a_turn(word, more, stop, verdict, tmp_path):
    seen = look(tmp_path, GO, DONE, end(word, 30, **more))
    assert (stops(seen), words(seen)) == ([stop], [verdict])


@each_row(("word", "stop"), (("error", "error"), ("rate_limit", "error"), ("refusal", "error")))
def test_a_turn_without_an_answer(word, stop, tmp_path):
    seen = look(tmp_path, GO, end(word, 30, agent_result="no route"))
    assert stops(seen) == [stop]
    assert seen.responses[0].exchange.response.error.message == "no route"


def test_an_error_after_calls_stops_the_turn(tmp_path):
    seen = look(tmp_path, GO, call("t1", 11, 10, rawInput={}), end("error", 30, agent_result="no route"))
    assert seen.responses[0].exchange.response.error is None
    assert words(seen) != ["COMPLETE"]


def test_the_text_that_grok_writes_for_a_refusal_is_none_of_the_model(tmp_path):
    notice = "The model provider refused to generate a response for this turn (content filter).\n\nProvider …: no"
    seen = look(tmp_path, GO, said(notice, 11, 10), end("refusal", 30))
    assert (stops(seen), seen.responses[0].exchange.response.text) == (["safety_blocked"], None)


def test_the_counts_of_a_turn_with_one_request(tmp_path):
    usage = {"inputTokens": 9, "outputTokens": 5, "reasoningTokens": 2, "cachedReadTokens": 3, "cacheCreationTokens": 1,
             "modelCalls": 1}
    counts = look(tmp_path, GO, DONE, end("end_turn", 30, usage=usage)).responses[0].exchange.response.usage
    assert tuple(counts) == (9, 5, 2, 3, 1)
    several = look(tmp_path, GO, DONE, end("end_turn", 30, usage={**usage, "modelCalls": 2}))
    assert several.responses[0].exchange.response.usage is None


@each_row("kind", (
    "plan", "retry_state", "auto_compact_started", "auto_compact_completed", "auto_compact_failed",
    "auto_continue_completed", "hook_execution", "session_summary_generated", "session_recap", "last_turn_summary",
    "compaction_checkpoint", "rewind_marker", "task_completed", "task_backgrounded", "subagent_spawned",
    "subagent_progress", "subagent_finished", "model_changed", "goal_updated", "workflow_updated", "background_tasks"))
def test_updates_without_a_part_of_an_exchange(kind, tmp_path):
    notices = "\n".join(look(tmp_path, GO, DONE, update(kind, 25)).inputs[0].notices)
    assert f"known records that hold no exchange: {kind} (1)" in notices


def test_a_command_of_the_users_shell_is_no_message(tmp_path):
    host = update("user_message_chunk", 25, content={"type": "text", "text": "!ls"}, _meta={"hostTurn": True})
    seen = look(tmp_path, GO, DONE, host)
    assert len(seen.turns) == 1
    assert "known records that hold no exchange: turn of the host (1)" in "\n".join(seen.inputs[0].notices)


@each_row(("row", "notice"), (
    ({**DONE, "method": 1}, "method is a number, but text was expected"),
    ({**DONE, "params": {**DONE["params"], "sessionId": 1}}, "params.sessionId is a number, but text was expected"),
))
def test_a_member_of_an_odd_type_is_reported(row, notice, tmp_path):
    look(tmp_path, GO, row, DONE)
    assert f"line 2: {notice}; it was skipped" in "\n".join(view_file(tmp_path / "updates.jsonl").inputs[0].notices)


def test_the_sessions_are_found(tmp_path):
    path = tmp_path / ".grok/sessions/%2Fw/0a1b"
    path.mkdir(parents=True)
    rows = "".join(f"{json.dumps(row)}\n" for row in (GO, DONE, end("end_turn", 30)))
    (path / "updates.jsonl").write_text(rows)
    beside(path)
    assert [(each.path, each.agent) for each in transcripts({"HOME": str(tmp_path)})] == [
        (str(path / "updates.jsonl"), "Grok Build")]
    assert {each.error for each in open_paths([str(path)]).inputs} == {None}
