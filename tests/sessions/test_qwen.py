"""Transcripts of Qwen Code: the tree, pieces of a message, glued records, failures in telemetry, and no stop word."""

from __future__ import annotations

import json

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, rules, show, stops, words


def row(key, parent, kind, *parts, **more):
    message = {"message": {"role": "model" if kind == "assistant" else "user", "parts": list(parts)}} if parts else {}
    return {"uuid": key, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-08-17T12:00:00.000Z", "type": kind,
            **message, **more}


def text(said, **more):
    return {"text": said, **more}


CALL = {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a.md"}}}
RESULT = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "the text"}}}
FAILED = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"error": "no such file"}}}


def file(*rows):
    return "".join(json.dumps(each) + "\n" for each in rows)


def test_calls_results_and_thoughts(tmp_path):
    seen = show(file(
        row("1", None, "user", text("read it")),
        row("2", "1", "assistant", text("hm", thought=True), CALL, model="qwen3",
            usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 2,
                           "cachedContentTokenCount": 5, "totalTokenCount": 15}),
        row("3", "2", "tool_result", RESULT), row("4", "3", "assistant", text("Done."), model="qwen3"),
        row("5", "4", "user", text("thanks"))), tmp_path)
    first = seen.responses[0].exchange
    assert (first.model, first.recorder, first.response.reasoning_content) == ("qwen3", "qwen", "hm")
    assert first.response.usage == (9, 6, 2, 5, None)
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    assert words(seen) == ["END INFERRED"]
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "the text"
    assert seen.responses[0].verdicts[0].call.arguments == '{"path": "a.md"}'
    assert "Qwen Code keeps none" in seen.inputs[0].notices[0]


@each_row(("args", "member", "said", "stop"), [
    ({}, "error", "params must have required property 'path'", "malformed_tool_call"),
    ({}, "error", "no such file", "tool_call"),
    ({}, "output", "params must have required property 'path'", "tool_call"),  # a file with these words
    ({"path": "a"}, "error", "params must have required property 'limit'", "tool_call"),
])
def test_a_call_with_no_arguments_that_was_refused_did_not_come_whole(tmp_path, args, member, said, stop):
    """Qwen Code stores {} for arguments that were no JSON."""
    call = {"functionCall": {**CALL["functionCall"], "args": args}}
    refused = {"functionResponse": {**FAILED["functionResponse"], "response": {member: said}}}
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", call),
                     row("3", "2", "tool_result", refused)), tmp_path)
    assert stops(seen) == [stop]


@each_row(("made", "thought", "total", "output"), [
    (40, 21, 161, 40), (40, 21, 182, 61), (40, 21, None, 40), (20, 80, None, 100), (40, None, 161, 40),
])
def test_thoughts_stand_among_the_output_or_beside_it(tmp_path, made, thought, total, output):
    counts = {"promptTokenCount": 121, "candidatesTokenCount": made, "thoughtsTokenCount": thought,
              "totalTokenCount": total}
    seen = show(file(row("1", None, "user", text("go")),
                      row("2", "1", "assistant", text("Done."), usageMetadata=counts)), tmp_path)
    assert seen.responses[0].exchange.response.usage.output_tokens == output


@pytest.mark.parametrize(("outcome", "parts", "said", "failed"), [
    ({"result": "the text", "status": "success"}, (), "the text", False),
    ({"resultDisplay": {"a": 1}, "status": "error"}, (), '{"a": 1}', True),
    ({"status": "cancelled"}, (text("stopped"),), "stopped", True), ({}, (), "", False),
])
def test_a_result_without_a_response_of_a_function(tmp_path, outcome, parts, said, failed):
    call = {"functionCall": {"name": "read_file", "args": {}}}
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", call),
                      row("3", "2", "tool_result", *parts, toolCallResult=outcome),
                      row("4", "3", "assistant", text("Done."))), tmp_path)
    (result,) = seen.responses[1].exchange.request.messages[0].results
    assert (result.text, result.is_error) == (said, failed)
    assert stops(seen) == ["tool_call", "unknown"]
    assert len(seen.turns) == 1


def test_rows_without_names_follow_each_other(tmp_path):
    rows = [row("1", None, "user", text("go")), row("2", "1", "assistant", CALL), row("3", "2", "tool_result", FAILED),
            row("4", "3", "assistant", text("Done.")),
            row("5", "4", "user", text("goal check"), provenance="goal_runtime")]
    bare = [{name: value for name, value in each.items() if name not in ("uuid", "parentUuid")} for each in rows]
    seen = show(file(*bare), tmp_path)
    assert stops(seen) == ["tool_call", "unknown"], "what a program said is no sign of the user's"
    assert len(seen.turns) == 1


def test_pieces_of_a_message_are_one_answer_and_glued_records_are_two(tmp_path):
    pieces = file(row("1", None, "user", text("go")), row("2", "1", "assistant", text("hm", thought=True)),
                  row("2", "1", "assistant", text("Done."), model="m"))
    glued = pieces.replace("\n", "", 1)
    for content in (pieces, glued):
        seen = show(content, tmp_path)
        (facts,) = seen.responses
        assert (facts.exchange.response.text, facts.exchange.model) == ("Done.", "m")
        assert seen.turns[0].run.record.user_text == "go"
    cut = show(glued + '{"uuid": "9", "sess', tmp_path)
    assert any("is cut after" in notice for notice in cut.inputs[0].notices)


def test_what_stands_behind_glued_records_is_not_passed_over_in_silence(tmp_path):
    glued = file(row("2", "1", "assistant", text("Done.")), row("3", "2", "user", text("thanks"))).replace("\n", "")
    behind = "]" + file(row("4", "3", "assistant", text("Yes.")))
    seen = show(file(row("1", None, "user", text("go"))) + glued + behind, tmp_path)
    assert [view.exchange.response.text for view in seen.responses] == ["Done."]
    assert "line 2 is not JSON: expected an object; the rest was read" in "\n".join(seen.inputs[0].notices)


def test_a_failed_request_stands_in_telemetry(tmp_path):
    event = {"event.name": "api_error", "error_message": "Rate limit", "error_type": "x", "status_code": 429}
    tool = {"event.name": "tool_call", "function_name": "ls", "error_message": "no"}
    seen = show(file(row("1", None, "user", text("go")),
                      row("2", "1", "system", subtype="ui_telemetry", systemPayload={"uiEvent": event}),
                      row("3", "2", "system", subtype="ui_telemetry", systemPayload={"uiEvent": tool})), tmp_path)
    (facts,) = seen.responses
    assert (facts.exchange.response.http_status, facts.exchange.response.error.message) == (429, "Rate limit")
    assert words(seen) == ["ERROR"]


def test_a_failed_tool_and_a_hook_of_qwens(tmp_path):
    seen = show(file(
        row("1", None, "user", text("typed"), text("<context>"), systemPayload={"displayText": "typed"}),
        row("2", "1", "assistant", CALL), row("3", "2", "tool_result", FAILED),
        row("4", "3", "user", text("done in the background"), subtype="notification"),
        row("5", "4", "assistant", text("Fine."))), tmp_path)
    assert seen.turns[0].run.record.user_text == "typed"
    result = seen.responses[1].exchange.request.messages[0].results[0]
    assert (result.text, result.is_error) == ("no such file", True)
    assert len(seen.turns) == 1


@each_row("subtype", ["notification", "hook", "system_reminder", "cron"])
def test_rows_that_qwen_writes_begin_no_turn(tmp_path, subtype):
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", text("One.")),
                      row("3", "2", "user", text("note"), subtype=subtype), row("4", "3", "assistant", text("Two.")),
                      ), tmp_path)
    assert stops(seen)[0] == "unknown", "what Qwen Code adds shows no end"


def test_branches_titles_and_compressions(tmp_path):
    seen = show(file(
        row("1", None, "user", text("go")), row("2", "1", "assistant", text("One.")),
        row("3", "1", "system", subtype="rewind", systemPayload={"targetUuid": "1"}),
        row("4", "3", "system", subtype="custom_title", systemPayload={"customTitle": "Tides"}),
        row("5", "4", "system", subtype="chat_compression"),
        row("6", "5", "user", text("on")), row("7", "6", "assistant", text("Two.")), row("8", "7", "strange")),
        tmp_path)
    assert seen.inputs[0].about.title == "Tides"
    assert len(seen.turns) == 2
    assert any(noted.finding.rule == "transcript.compacted" for noted in seen.findings)
    assert "records of unknown type were skipped: strange (1)" in "\n".join(seen.inputs[0].notices)


def test_rows_that_a_branch_copied_are_counted_once(tmp_path):
    rows = [row("1", None, "user", text("go")), row("2", "1", "assistant", text("One."), model="m")]
    source = {"subtype": "session_source", "systemPayload": {"sourceType": "x"}}
    first, branch = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(file(*rows))
    branch.write_text(file(row("0", None, "system", **source), *(
        {**each, "sessionId": "t", "forkedFrom": {"sessionId": "s", "messageUuid": each["uuid"]}} for each in rows),
        row("3", "2", "user", text("on")), row("4", "3", "assistant", text("Two."))))
    found = open_paths([str(first), str(branch)])
    assert [exchange.response.text for exchange in found.exchanges] == ["One.", "Two."]
    assert "answers copied from another session" in "\n".join(found.inputs[1].notices)
    assert len(open_paths([str(branch)]).exchanges) == 2


def test_a_session_names_the_session_that_began_it(tmp_path):
    seen = show(file(row("0", None, "system", subtype="parent_session", systemPayload={"parentSessionId": "p1"}),
                      row("1", "0", "user", text("go")), row("2", "1", "assistant", text("One."))), tmp_path)
    assert seen.inputs[0].about.parent == "p1"


def test_a_subagent_is_listed_below_the_session_that_began_it(tmp_path):
    """Its file is not in the folder of the session, and its rows have the id of that session."""
    child = {"isSidechain": True, "agentId": "explore-1", "agentName": "explore"}
    rows = [row("1", None, "user", text("look"), **child), row("2", "1", "assistant", text("Look."), **child),
            row("3", "2", "assistant", CALL, **child), row("4", "3", "tool_result", RESULT, **child),
            row("5", "4", "user", text("A task ended."), externalInputKind="notification", **child),
            row("6", "5", "assistant", text("Done."), **child)]
    seen = show(file(*rows), tmp_path)
    about = seen.inputs[0].about
    assert (about.id, about.parent, about.title) == ("s/explore-1", "s", "explore")
    assert (len(seen.turns), stops(seen)) == (1, ["tool_call", "unknown"])
    asked = show(file(*rows[:4], row("5", "4", "user", text("Stop."), externalInputKind="message", **child),
                      *rows[5:]), tmp_path)
    assert asked.inputs[0].about.parent == "s"
    alone = show(file(row("1", None, "user", text("go"), isSidechain=False, agentId="a"),
                      row("2", "1", "assistant", text("One."))), tmp_path)
    assert (alone.inputs[0].about.id, alone.inputs[0].about.parent) == ("s", "")


def test_its_rows_are_not_taken_for_claude_codes():
    alone = row("1", None, "system", subtype="ui_telemetry", systemPayload={})
    for first in (row("1", None, "user", text("go")), alone):
        assert choose(json.dumps(first).encode(), "x") == "qwen"


@each_row(("kind", "notice"), [
    *((kind, f"records that hold no exchange: system/{kind} (1)") for kind in (
        "attribution_snapshot", "file_history_snapshot", "session_model", "session_artifact_event", "session_source",
        "session_execution_engine", "session_approval_mode", "session_notes", "session_sources_snapshot",
        "omni_recall", "agent_bootstrap", "agent_retry", "agent_session_ready", "user_text_elements",
        "branch_checkpoint", "goal_state", "goal_turn_end", "ui_telemetry", "custom_title", "rewind",
        "chat_compression", "slash_command", "session_artifact_snapshot", "at_command", "turn_result",
        "parent_session", "background_task_completed",
        "agent_launch_prompt")),
    (None, "records that hold no exchange: system (1)"),
    ("of_tomorrow", "records of unknown type were skipped: system/of_tomorrow (1)"),
])
def test_records_of_the_agent_that_hold_no_exchange(tmp_path, kind, notice):
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", text("Done.")),
                      row("3", "2", "system", subtype=kind, systemPayload={"version": 1})), tmp_path)
    assert any(notice in each for each in seen.inputs[0].notices)


def outcome(parent, state, **more):
    return row("9", parent, "system", subtype="turn_result", systemPayload={
        "promptId": "s########1", "state": state, "endedAt": 1786968000000, **more})


@each_row("parent", ["2", None])
@each_row(("state", "more", "stop", "word", "rule"), [
    ("completed", {"stopReason": "end_turn"}, "end_turn", "END INFERRED", "transcript.inferred.turn_ended"),
    ("completed", {}, "end_turn", "END INFERRED", "transcript.inferred.turn_ended"),
    ("completed", {"stopReason": "max_turn_requests"}, "unknown", "END NOT RECORDED", "transcript.absent"),
    ("cancelled", {"stopReason": "cancelled"}, "cancelled", "CANCELLED", "transcript.inferred.interrupted"),
])
def test_the_outcome_of_a_turn_is_the_end_of_its_last_answer(tmp_path, parent, state, more, stop, word, rule):
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", text("Hel")),
                      outcome(parent, state, **more)), tmp_path)
    assert (stops(seen), words(seen), rules(seen, 0)[-1]) == ([stop], [word], rule)


@pytest.mark.parametrize(("word", "stop"), [("max_tokens", "max_tokens"), ("refusal", "safety_blocked")])
def test_a_word_for_the_end_of_a_turn_is_that_of_its_last_answer(tmp_path, word, stop):
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", text("Hel")),
                      outcome("2", "completed", stopReason=word)), tmp_path)
    assert (stops(seen), rules(seen, 0)) == ([stop], ["transcript.recorder", "qwen.turn_results"])
    assert [seen.at.pointer for seen in seen.responses[0].judgement.stop.evidence] == 2 * ["/systemPayload/stopReason"]
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", CALL),
                      row("3", "2", "tool_result", RESULT), outcome("3", "completed", stopReason=word)), tmp_path)
    assert stops(seen) == ["tool_call"]  # the next request was not sent
    assert any(f"the turn ended ({word})" in each.finding.message for each in seen.findings)


def test_a_turn_that_the_outcome_says_was_stopped_names_why(tmp_path):
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", text("Hel")),
                      outcome("2", "completed", stopReason="max_turn_requests")), tmp_path)
    assert any("line 3: the turn ended (max_turn_requests)" in each.finding.message for each in seen.findings)


@pytest.mark.parametrize(("code", "detail"), [
    ("429", "retryable"), (429, "retryable"), ("-32603", "fatal"), ("x", "fatal"),
    pytest.param("4" * 5_000, "fatal", id="endless")])
def test_a_turn_whose_outcome_is_an_error_failed(tmp_path, code, detail):
    failed = outcome("1", "error", error={"message": "it broke", "code": code})
    seen = show(file(row("1", None, "user", text("go")), failed), tmp_path)
    first = seen.responses[0].exchange
    assert (stops(seen), first.response.error.message) == (["error"], "it broke")
    assert first.response.stop_reason.detail == detail
    assert first.request.messages[0].text == "go"


def test_a_failure_that_telemetry_and_outcome_tell_of_is_one(tmp_path):
    event = {"event.name": "qwen-code.api_error", "error_message": "slow down", "status_code": 429}
    seen = show(file(
        row("1", None, "user", text("go")),
        row("2", "1", "system", subtype="ui_telemetry", systemPayload={"uiEvent": event}),
        outcome("2", "error", error={"message": "slow down", "code": "429"})), tmp_path)
    assert stops(seen) == ["error"]


def test_the_events_of_the_managed_engine_are_told(tmp_path):
    def event(key, name):
        return {"uuid": key, "parentUuid": None, "sessionId": "s", "type": "system", "subtype": name,
                "managedSession": {"v": 1}}

    head = event("1", "managed_session_header_v1")
    assert choose(json.dumps(head).encode(), "a.jsonl") == "qwen"
    seen = show(file(head, event("2", "managed_session_event_v1"), row("3", None, "user", text("go")),
                      row("4", "3", "assistant", text("Done."))), tmp_path)
    assert stops(seen) == ["unknown"]
    assert "rows that are events of the managed engine, whose messages are in other files and were not read: 2" in (
        "\n".join(seen.inputs[0].notices))


def test_a_row_whose_parent_is_lost_follows_the_row_before(tmp_path):
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", CALL),
                      row("3", "lost", "tool_result", RESULT), row("4", "3", "assistant", text("Done."))), tmp_path)
    assert (places(seen), stops(seen)[0]) == ([["request", "tool_result"]], "tool_call")


def test_a_part_that_is_no_object_moves_no_call(tmp_path):
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", None, CALL),
                      row("3", "2", "tool_result", RESULT)), tmp_path)
    (verdict,) = seen.responses[0].verdicts
    assert (verdict.call.arguments, verdict.admission) == ('{"path": "a.md"}', "ready")
    assert verdict.call.at.pointer == "/message/parts/1/functionCall"


def test_an_answer_whose_parent_is_lost_is_no_part_of_the_one_before(tmp_path):
    seen = show(file(row("1", None, "user", text("go")), row("2", "1", "assistant", text("Look."), CALL),
                      row("4", "lost", "assistant", text("Done."))), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Look.", "Done."]


def test_a_result_without_an_id_behind_a_lost_answer_makes_no_earlier_call_ready(tmp_path):
    """The user spoke in between: the result may be that of a call in the row that is lost."""
    call = {"functionCall": {"name": "write", "args": {"a": 1}}}
    result = {"functionResponse": {"name": "write", "response": {"output": "ok"}}}
    seen = show(file(
        row("1", None, "user", text("go")), row("2", "1", "assistant", call), row("3", "2", "user", text("again")),
        row("5", "4", "tool_result", result), row("6", "5", "assistant", text("Done."))), tmp_path)
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]


def telemetry(key, parent, name="qwen-code.api_response", **more):
    return row(key, parent, "system", subtype="ui_telemetry", systemPayload={"uiEvent": {"event.name": name, **more}})


def test_messages_of_the_model_with_a_response_between_them_are_answers_of_their_own(tmp_path):
    # Qwen Code 0.15.10 asks for the rest of a cut answer, and writes nothing of what it asks
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}
    rows = [row("1", None, "user", text("go")), telemetry("2", "1"),
            row("3", "2", "assistant", text("Half of"), usageMetadata=counts), telemetry("4", "3"),
            row("5", "4", "assistant", text("the rest"), usageMetadata=counts)]
    seen = show(file(*rows), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Half of", "the rest"]
    assert [facts.exchange.response.usage.output_tokens for facts in seen.responses] == [4, 4]
    assert len(seen.turns) == 1
    other = show(file(*rows[:3], telemetry("4", "3", "qwen-code.tool_call"), rows[4]), tmp_path)
    assert len(other.responses) == 1
    rows[2].pop("usageMetadata")  # the counts come with the last piece of a message
    assert len(show(file(*rows), tmp_path).responses) == 1


@pytest.mark.parametrize(("kind", "stop"), [
    ("APIUserAbortError", "cancelled"), ("AbortError", "cancelled"), ("APIConnectionError", "error")])
def test_a_request_that_the_client_stopped_was_cancelled(tmp_path, kind, stop):
    seen = show(file(row("1", None, "user", text("go")), telemetry(
        "2", "1", "qwen-code.api_error", error_message="Request was aborted.", error_type=kind)), tmp_path)
    assert stops(seen) == [stop]


def test_a_request_of_a_subagent_that_failed_is_no_part_of_the_turn(tmp_path):
    """Qwen Code 0.15 asks for its memory after the turn, and writes that failure among the turn's rows."""
    rows = [row("1", None, "user", {"text": "go"}), telemetry("2", "1"),
            row("3", "2", "assistant", {"text": "Done."}),
            telemetry("4", "3", "qwen-code.api_error", error_message="400 no", status_code=400, subagent_name="memory"),
            telemetry("5", "4", subagent_name="memory"), row("6", "5", "assistant", {"text": "More."})]
    seen = show(file(*rows), tmp_path)
    assert (stops(seen), words(seen)) == (["unknown"], ["END NOT RECORDED"])
    assert "about requests of a subagent, whose messages are not in this file: 2" in "\n".join(
        map(str, seen.inputs[0].notices))


def test_a_call_of_an_answer_that_was_asked_for_again_at_once_was_cut_and_ran(tmp_path):
    """Qwen Code 0.15.10 asks again with a larger cap after `MAX_TOKENS`, and runs the calls of the cut answer too."""
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}
    rows = [row("1", None, "user", text("go")), telemetry("2", "1"),
            row("3", "2", "assistant", CALL, usageMetadata=counts)]
    again = [telemetry("4", "3"), row("5", "4", "assistant", text("Done."), usageMetadata=counts)]
    seen = show(file(*rows, *again, row("6", "5", "tool_result", RESULT)), tmp_path)
    assert (stops(seen)[0], words(seen)) == ("max_tokens", ["CUT CALL RUN"])
    assert "have no result" not in "\n".join(seen.inputs[0].notices)
    refused = {"functionResponse": {**RESULT["functionResponse"], "response": {"error": "params must have required"}}}
    assert words(show(file(*rows, *again, row("6", "5", "tool_result", refused)), tmp_path)) == ["END NOT RECORDED"]
    ran = show(file(*rows, row("4", "3", "tool_result", RESULT), *again[1:]), tmp_path)
    assert stops(ran)[0] == "tool_call"


@pytest.mark.parametrize("name", ["call_0", None])
def test_results_are_not_those_of_an_earlier_call_with_the_same_id_or_none(tmp_path, name):
    call, result = ({kind: {**body, "id": name}} for kind, body in (*CALL.items(), *RESULT.items()))
    rows = [row("1", None, "user", text("go"))]
    for at in (2, 4):
        rows += [row(f"{at}", f"{at - 1}", "assistant", call), row(f"{at + 1}", f"{at}", "tool_result", result)]
    seen = show(file(*rows, row("6", "5", "assistant", text("Done."))), tmp_path)
    assert places(seen) == [["request", "tool_result", "tool_result"]]
    assert [len(each.answers) for each in seen.inputs] == [0]
