"""Sessions of Droid, its stream, and transcripts of Cursor's agent: blocks, results, parents and ends of turns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions import open_paths
from tests.scenes.rows import each_row
from tests.scenes.shapes import CURSOR, DROID
from tests.scenes.transcripts import places, rules, show, stops, words

Row = dict[str, Any]


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def lines(*rows: Row) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def text(said: str) -> Row:
    return {"type": "text", "text": said}


# -- Droid -------------------------------------------------------------------------------------------------------------

START: Row = {"type": "session_start", "id": "s-1", "title": "First", "sessionTitle": "A title", "cwd": "/w"}


def message(key: str, role: str, *content: Any, **more: Any) -> Row:
    return {"type": "message", "id": key, "timestamp": "2026-02-01T00:00:01Z",
            "message": {"role": role, "content": list(content)}, **more}


def use(kind: str = "tool_use", **more: Any) -> Row:
    return {"type": kind, "id": "call_a1b2c3d4", "name": "Execute", "input": {"command": "ls"}, **more}


def result(kind: str = "tool_result", said: Any = "a.py", **more: Any) -> Row:
    return {"type": kind, "tool_use_id": "call_a1b2c3d4", "content": said, **more}


@pytest.mark.parametrize(("call", "answer"), [("tool_use", "tool_result"), ("tool_call", "tool-result"),
                                              ("tool-call", "tool_result")])
def test_blocks_and_their_results_whatever_they_are_called(call, answer, tmp_path):
    seen = show(lines(START, message("m1", "user", text("<system-reminder>\nx\n</system-reminder>\n\ngo")),
                      message("m2", "assistant", {"type": "thinking", "thinking": "hm"}, text("Look."), use(call)),
                      message("m3", "user", result(answer)), message("m4", "assistant", "Done.")), tmp_path)
    assert stops(seen) == ["tool_call", "unknown"]
    assert places(seen) == [["request", "tool_result"]]
    assert seen.turns[0].run.record.user_text == "go"
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == '{"command": "ls"}'
    assert seen.responses[1].exchange.response.text == "Done."
    assert seen.inputs[0].about.title == "A title"
    assert "records that hold no exchange: session_start (1)" in notices(seen)


def test_a_session_that_a_task_began_names_the_one_that_it_was_called_from(tmp_path):
    called = {"callingSessionId": "s-1", "callingToolUseId": "call_a1b2c3d4", "sessionTitle": "worker: look"}
    child = show(lines({**START, "id": "s-2", **called}, message("m1", "assistant", text("Seen."))), tmp_path)
    assert child.inputs[0].about[0] == "worker: look"
    assert (child.inputs[0].about.id, child.inputs[0].about.parent) == ("s-2", "s-1")
    first = show(lines(START, message("m1", "assistant", text("Look."))), tmp_path)
    assert (first.inputs[0].about.id, first.inputs[0].about.parent) == ("s-1", "")


def test_parents_make_branches(tmp_path):
    seen = show(lines(START, message("m1", "user", text("go"), parentId="s-1"),
                      message("m2", "assistant", text("one"), parentId="m1"),
                      message("m3", "user", text("left"), parentId="m2"),
                      message("m4", "assistant", text("two"), parentId="m3"),
                      message("m5", "user", text("right"), parentId="m2"),
                      message("m6", "assistant", text("three"), parentId="m5")), tmp_path)
    assert [turn.run.record.links[0].parent for turn in seen.turns] == [None, 0, 0]


def test_the_model_and_the_counts_of_the_session_stand_beside_it(tmp_path):
    counts = {"inputTokens": 1200, "outputTokens": 34, "thinkingTokens": 5, "cacheReadTokens": 6}
    for name, only in (("a", counts), ("b", {"thinkingTokens": 5}), ("c", {"cacheReadTokens": 6}),
                       ("d", {"outputTokens": 34}), ("e", {"inputTokens": 1200})):
        (tmp_path / f"{name}.settings.json").write_text(json.dumps({"model": "claude-x", "tokenUsage": only}))
        seen = show(lines(START, message("m2", "assistant", text("one"))), tmp_path, name=f"{name}.jsonl")
        assert "tokens are counted for the whole session alone: " in notices(seen)
        assert seen.responses[0].exchange.response.model == "claude-x"
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".jsonl") == [
        "a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl", "e.jsonl"]


def test_each_answer_may_have_its_own_model_and_a_user_row_be_the_agents(tmp_path):
    (tmp_path / "a.settings.json").write_text(json.dumps({"model": "claude-x"}))
    rows = [message("m1", "user", text("the folder holds a.py")), message("m2", "user", text("go")),
            message("m3", "assistant", text("one")), message("m4", "assistant", text("two"))]
    rows[0]["message"]["visibility"] = "llm_only"
    rows[2]["message"]["modelId"] = "glm-x"
    seen = show(lines(START, *rows), tmp_path, name="a.jsonl")
    assert [facts.exchange.response.model for facts in seen.responses] == ["glm-x", "claude-x"]
    assert [turn.run.record.user_text for turn in seen.turns] == ["go"]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_note_to_the_user_alone_is_no_message(tmp_path, role):
    rows = [message("m1", "user", text("go")), message("m2", "assistant", text("one")),
            message("m3", role, text("Token limit reached"))]
    rows[2]["message"]["visibility"] = "user_only"
    seen = show(lines(START, *rows), tmp_path)
    assert (stops(seen), words(seen)) == (["unknown"], ["END NOT RECORDED"])
    assert [skip.why for skip in seen.inputs[0].skipped] == ["a note of Droid's to the user: Token limit reached"]


def outcome(reason: str) -> Row:
    return {"type": "agent_turn_outcome", "id": "o1", "turnId": "t1", "reason": reason, "resultKind": "text"}


def to(who: str, row: Row) -> Row:
    return {**row, "message": {**row["message"], "visibility": f"{who}_only"}}


@each_row(("reason", "note", "word", "stop"), [
    ("completed", None, "END INFERRED", "end_turn"),
    ("cancelled", None, "CANCELLED", "cancelled"),
    ("spec_handoff", None, "END NOT RECORDED", "unknown"),
])
def test_the_end_of_droids_loop_is_the_end_of_its_last_answer(reason, note, word, stop, tmp_path):
    seen = show(lines(START, message("m1", "user", text("go")), message("m2", "assistant", text("Done.")),
                      outcome(reason)), tmp_path)
    assert (words(seen), stops(seen)) == ([word], [stop])
    assert "unknown type" not in notices(seen)


@each_row("reason", ["permission_rejected", "no_approver_available"])
def test_the_reason_for_which_droid_stopped_a_turn_is_a_finding(reason, tmp_path):
    seen = show(lines(START, message("m1", "user", text("go")), message("m2", "assistant", use()), outcome(reason)),
                tmp_path)
    (found,) = [noted.finding for noted in seen.findings if noted.finding.rule == "transcript.stopped"]
    assert reason in found.message


@each_row(("reason", "note", "word", "stop"), [
    ("model_provider_unavailable", "The model timed out.", "ERROR", "error"),
    ("model_rate_limited", "", "ERROR", "error"),
    ("model_request_rejected", "The request has no such model.", "ERROR", "error"),
    ("model_request_rejected", "Request blocked by model provider safety checks.", "BLOCKED", "safety_blocked"),
])
@pytest.mark.parametrize("after", ["message", "results"])
def test_a_request_of_droid_without_an_answer_failed_or_was_filtered(reason, note, word, stop, after, tmp_path):
    called = [message("m2", "assistant", use()), message("m3", "user", result())] if after == "results" else []
    said = [to("user", message("m4", "user", text(note)))] if note else []
    seen = show(lines(START, message("m1", "user", text("go")), *called, *said, outcome(reason)), tmp_path)
    assert (words(seen), stops(seen)[-1]) == ([word], stop)
    assert note in "".join(each.note or "" for each in seen.responses[-1].exchange.response.stop_reason.evidence)


def test_a_note_of_droid_before_another_message_is_not_about_the_request_that_failed(tmp_path):
    note = to("user", message("m2", "user", text("Request blocked by model provider safety checks.")))
    seen = show(lines(START, message("m1", "user", text("go")), note, message("m3", "assistant", use()),
                      message("m4", "user", result()), outcome("model_rate_limited")), tmp_path)
    assert (words(seen), seen.responses[-1].exchange.response.error.message) == (["ERROR"], "model_rate_limited")


def test_an_error_of_the_stream_about_a_filter_is_no_failed_request(tmp_path):
    said = "Request failed due to triggering the model provider's content moderation policy. Please modify it."
    seen = show(lines({"type": "message", "role": "user", "id": "1", "text": "go", "session_id": "s"},
                      {"type": "error", "source": "cli", "message": said, "session_id": "s"}), tmp_path)
    assert (words(seen), stops(seen)) == (["BLOCKED"], ["safety_blocked"])


def test_a_filter_after_a_whole_answer_of_droid_belongs_to_no_answer(tmp_path):
    note = to("user", message("m3", "user", text("Request blocked by model provider safety checks.")))
    seen = show(lines(START, message("m1", "user", text("go")), message("m2", "assistant", text("Done.")), note,
                      outcome("model_request_rejected")), tmp_path)
    assert (len(seen.responses), words(seen)) == (1, ["END NOT RECORDED"])


def test_a_call_of_droid_with_no_arguments_that_was_refused_did_not_come_whole(tmp_path):
    """Droid stores {} for arguments that were no JSON, and its tools refuse them."""
    said = "Error: command is required and must be a string"
    calls = [use(), use(id="call_e5f6a7b8", input={})]
    answers = [result(), result(said=said, tool_use_id="call_e5f6a7b8", is_error=True)]
    rows = [message("m1", "user", text("go")), message("m2", "assistant", *calls), message("m3", "user", *answers)]
    seen = show(lines(START, *rows), tmp_path)
    assert stops(seen) == ["malformed_tool_call"]
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held", "held"]
    answers[1]["content"] = "Error: no such file"
    assert stops(show(lines(START, *rows), tmp_path, name="ran.jsonl")) == ["tool_call"]


def test_what_droid_says_to_the_model_about_its_answer_stays_in_the_turn(tmp_path):
    broken = "Your previous response ended before completion. Continue where you left off."
    rows = [message("m1", "user", text("go")), message("m2", "assistant", text("One, two, th")),
            to("llm", message("m3", "user", text(broken))), message("m4", "assistant", text("ree."))]
    seen = show(lines(START, *rows), tmp_path)
    assert (stops(seen), len(seen.turns)) == (["interrupted", "unknown"], 1)
    thought = {"type": "thinking", "thinking": "hm"}
    again = to("llm", message("m3", "user", text("<system-reminder>Continue.</system-reminder>")))
    seen = show(lines(START, rows[0], message("m2", "assistant", thought), again, rows[3]), tmp_path, name="b.jsonl")
    assert places(seen) == [["request", "nudge"]]
    typed = message("m5", "user", text("and now?"))
    asked = [rows[0], message("m2", "assistant", thought), again, outcome("cancelled"), typed, rows[3]]
    assert len(show(lines(START, *asked), tmp_path, name="c.jsonl").turns) == 2  # the user spoke in between


@pytest.mark.parametrize(("blocks", "thought"), [
    ([text("Look.")], "hm"), ([{"type": "thinking", "thinking": "I see"}, text("Look.")], "I see"),
])
def test_reasoning_that_stands_beside_the_blocks_is_read_once(blocks, thought, tmp_path):
    rows = [{"type": "session_start", "id": "s", "title": "t"}, message("m1", "user", text("go")),
            message("m2", "assistant", *blocks)]
    rows[2]["message"]["chatCompletionReasoningContent"] = "hm"
    (facts,) = show(lines(*rows), tmp_path).responses
    assert (facts.exchange.response.reasoning_content, facts.exchange.response.text) == (thought, "Look.")


@each_row("kind", ["session_start", "session_end", "todo_state", "compaction_state", "system"])
def test_records_without_an_exchange_are_counted(kind, tmp_path):
    seen = show(lines({**START, "type": "session_start"}, {"type": kind}, {"type": "hologram"}), tmp_path)
    count = 2 if kind == "session_start" else 1
    assert f"{kind} ({count})" in notices(seen).split("records that hold no exchange")[1]
    assert "records of unknown type were skipped: hologram (1)" in notices(seen)


@pytest.mark.parametrize("session", ["session_id", "sessionId"])
@pytest.mark.parametrize("key", ["toolCallId", "id"])
def test_the_stream_drifts_and_is_read(session, key, tmp_path):
    common = {session: "s"}
    rows = [{"type": "system", "model": "droid-m"}, {"type": "message", "role": "user", "text": "go"},
            {"type": "tool_call", key: "c1", "toolName": "Shell", "parameters": {"command": "ls"}},
            {"type": "tool_result", key: "c1", "isError": key == "id", "value": {"stdout": "a.py"}},
            {"type": "completion", "finalText": "Done"}, {"type": "error", "message": "no key"}]
    seen = show(lines(*({**common, **row} for row in rows)), tmp_path)
    assert stops(seen) == ["tool_call", "end_turn"]
    assert words(seen) == ["END INFERRED"]
    assert rules(seen, 1)[-1] == "transcript.inferred.turn_ended"
    assert seen.responses[1].exchange.request.messages[0].results[0].text == '{"stdout": "a.py"}'
    assert [skip.why for skip in seen.inputs[0].skipped] == ["an error of the agent: no key"]
    assert seen.responses[0].exchange.response.model == "droid-m"


def test_the_counts_of_a_run_are_those_of_its_only_answer(tmp_path):
    rows = [{"type": "message", "session_id": "s", "role": "user", "text": "go"},
            {"type": "message", "session_id": "s", "role": "assistant", "text": "Done"},
            {"type": "completion", "session_id": "s", "finalText": "Done", "usage": {
                "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}}]
    seen = show(lines(*rows), tmp_path)
    assert [facts.exchange.response.usage for facts in seen.responses] == [(None, 5, None, 3, 2)]
    seen = show(lines(*rows[:2], rows[0], *rows[1:]), tmp_path)
    assert [facts.exchange.response.usage for facts in seen.responses] == [None, None]


# -- Cursor ------------------------------------------------------------------------------------------------------------


def row(role: str, *content: Row) -> Row:
    return {"role": role, "message": {"content": list(content)}}


ASKED = row("user", text("<open_files>x</open_files>\n<user_query>\ngo\n</user_query>"))


@each_row(("status", "stop", "word"), [
    ("success", "end_turn", "END INFERRED"), ("completed", "end_turn", "END INFERRED"),
    ("aborted", "cancelled", "CANCELLED"), ("cancelled", "cancelled", "CANCELLED"),
    ("canceled", "cancelled", "CANCELLED"), ("interrupted", "cancelled", "CANCELLED"),
    ("error", "unknown", "END NOT RECORDED"),
])
def test_a_turn_ended_says_how(status, stop, word, tmp_path):
    seen = show(lines(ASKED, row("assistant", text("Done.")), {"type": "turn_ended", "status": status}), tmp_path)
    assert (stops(seen), words(seen)) == ([stop], [word])
    assert seen.turns[0].run.record.user_text == "go"
    if status == "error":
        assert any("turn_ended: error" in noted.finding.message for noted in seen.findings)


@pytest.mark.parametrize(("error", "stop", "told"), [
    ("User aborted request", "cancelled", "the user interrupted the turn"),
    ("You have hit your usage limit.", "unknown", "turn_ended: error, You have hit your usage limit."),
])
def test_a_turn_that_ended_with_an_error_says_which(error, stop, told, tmp_path):
    end = {"type": "turn_ended", "status": "error", "error": error}
    seen = show(lines(ASKED, row("assistant", text("Done.")), end), tmp_path)
    assert stops(seen) == [stop]
    assert any(told in noted.finding.message for noted in seen.findings)


@pytest.mark.parametrize("end", [
    {"type": "turn_ended", "status": "aborted", "error": "User aborted/interrupted manually."},
    {"type": "turn_ended", "status": "success"},
])
def test_a_file_that_only_says_that_a_turn_ended_has_no_answer(end, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(lines(end))
    loaded = open_paths([str(path)])
    (given,) = loaded.inputs
    assert (given.format, given.error, loaded.exchanges) == ("cursor", None, ())


def test_the_mark_of_reasoning_that_was_left_out_is_no_text(tmp_path):
    call = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    rows = [row("assistant", text("I look.\n\n[REDACTED]"), call), row("assistant", text("[REDACTED]"), call),
            row("assistant", text("[REDACTED] is what stands there.")), row("assistant", text("[REDACTED]"))]
    seen = show(lines(ASKED, *rows, {"type": "turn_ended", "status": "success"}), tmp_path)
    given = [facts.exchange.response for facts in seen.responses]
    assert [each.text or "" for each in given] == ["I look.", "", "[REDACTED] is what stands there.", ""]
    assert [len(each.tool_calls) for each in given] == [1, 1, 0, 0]
    assert words(seen) == ["REASONING ONLY"]


def test_results_are_taken_where_they_are_kept_and_nothing_is_said_where_not(tmp_path):
    call = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    seen = show(lines(ASKED, row("assistant", text("Look."), call), row("assistant", text("Done."))), tmp_path)
    assert stops(seen) == ["unknown", "unknown"]
    assert places(seen) == [["request", "tool_result"]]
    seen = show(lines(ASKED, row("assistant", call), row("user", result()), row("assistant", text("Done."))),
                tmp_path)
    assert stops(seen) == ["tool_call", "unknown"]
    assert "2 of 2 answers have no stop reason, as Cursor keeps none for them" in notices(seen)


def test_subagents_beside_are_read_with_it(tmp_path):
    (tmp_path / "subagents").mkdir()
    (tmp_path / "subagents" / "b.jsonl").write_text(lines(ASKED, row("assistant", text("Child."))))
    (tmp_path / "a.jsonl").write_text(lines(ASKED, row("assistant", text("Parent."))))
    loaded = open_paths([str(tmp_path / "a.jsonl")])
    assert [exchange.response.text for exchange in loaded.exchanges] == ["Parent.", "Child."]


@each_row(("rows", "odd", "told"), [
    (DROID, {"parentId": 1}, "line 2: parentId is a number, but text was expected"),
    (DROID, {"message": {"role": 1}}, "line 2: message.role is a number, but text was expected"),
    (CURSOR, {"model": 1}, "line 2: model is a number, but text was expected"),
    (CURSOR, {"message": {"content": 1}}, "line 2: message.content is a number, but a list was expected"),
])
def test_a_member_of_an_odd_kind_is_told(rows, odd, told, tmp_path):
    assert told in notices(show(lines(rows[0], {**rows[1], **odd}, *rows[2:]), tmp_path))


def test_a_message_that_got_an_error_of_cursor_is_a_turn_of_its_own(tmp_path):
    end = {"type": "turn_ended", "status": "error", "error": "You have hit your usage limit."}
    seen = show(lines(ASKED, row("assistant", text("Done.")), ASKED, end, ASKED, row("assistant", text("Yes."))),
                tmp_path)
    assert stops(seen) == ["end_turn", "error", "unknown"]
    assert seen.responses[1].exchange.response.error.message == "You have hit your usage limit."
    unnamed = show(lines(ASKED, {"type": "turn_ended", "status": "odd"}), tmp_path)
    assert unnamed.responses[0].exchange.response.error.message == "the turn ended with the status odd"
    stopped = show(lines(ASKED, {"type": "turn_ended", "status": "aborted"}, ASKED, row("assistant", text("a"))),
                   tmp_path)
    assert "rows that stop a request of the user before any answer: 1" in notices(stopped)


@pytest.mark.parametrize("asked", [
    [message("m1", "user", text("go"))],
    [message("m1", "user", text("go")), message("m2", "assistant", use()),
     message("m3", "user", {"type": "tool_result", "tool_use_id": "call_a1b2c3d4", "content": "a.py"})],
])
def test_a_request_of_droid_that_got_an_error_failed(tmp_path, asked):
    seen = show(lines(START, *asked, {"type": "error", "message": "no key"}), tmp_path)
    assert stops(seen)[-1] == "error"
    assert seen.responses[-1].exchange.response.error.message == "no key"


def test_an_error_after_an_answer_of_droid_stops_its_turn(tmp_path):
    seen = show(lines(START, message("m1", "user", text("go")), message("m2", "assistant", text("Yes.")),
                      {"type": "error", "message": "no key"}), tmp_path)
    assert stops(seen) == ["unknown"]
    assert any("an error of the agent: no key" in noted.finding.message for noted in seen.findings)


@pytest.mark.parametrize(("name", "stop"), [("is_error", "unknown"), ("isError", "unknown"), ("other", "end_turn")])
def test_a_run_of_droid_that_ended_with_an_error_is_not_complete(tmp_path, name, stop):
    seen = show(lines(
        {"type": "message", "session_id": "s", "role": "user", "text": "go"},
        {"type": "completion", "session_id": "s", "finalText": "Half", name: True}), tmp_path)
    assert stops(seen) == [stop]
