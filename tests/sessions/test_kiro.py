"""Kiro and Amazon Q Developer: three stores, calls whose arguments were lost, timeouts, ends of turns, folders."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.folders import transcripts
from inspector.sessions.following import FollowedSession, states_of
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, rules, show, stops, view_file, words

Row = dict[str, Any]
LOST = "the actual tool use arguments were too complicated to be generated"
TOO_LARGE = "The generated tool was too large, try again but this time split up the work between multiple tool uses"
TOO_SLOW = "You took too long to respond - try to split up the work into smaller steps."
TIMED_OUT = "Response timed out - message took too long to generate"


def lines(*rows: Row) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


# -- The rows of `sessions/cli` ----------------------------------------------------------------------------------------


def row(kind: str, key: str, *content: Row) -> Row:
    return {"version": "v1", "kind": kind, "data": {"message_id": key, "content": list(content)}}


def text(said: str) -> Row:
    return {"kind": "text", "data": said}


def call(**arguments: Any) -> Row:
    return {"kind": "toolUse", "data": {"toolUseId": "t1", "name": "write", "input": arguments}}


def result(said: Any = "done", status: str = "success") -> Row:
    return row("ToolResults", "r1", {"kind": "toolResult", "data": {
        "toolUseId": "t1", "content": [{"kind": "text", "data": said}], "status": status}})


GO = row("Prompt", "p1", text("go"))
NEXT = row("Prompt", "p9", text("and now?"))
DONE = row("AssistantMessage", "a9", text("Done."))


def beside(folder: Path, *turns: Row, **more: Any) -> None:
    """The file about the session `s.jsonl`."""
    (folder / "s.json").write_text(json.dumps({"session_id": "k-1", "title": "the title", "session_state": {
        "rts_model_state": {"model_info": {"model_id": "claude-opus-4.7"}},
        "conversation_metadata": {"user_turn_metadatas": list(turns)}}, **more}))


def test_messages_calls_and_results(tmp_path):
    beside(tmp_path)
    thought = {"kind": "thinking", "data": {"text": "hm", "signature": "c2ln", "redactedContent": []}}
    seen = show(lines(GO, row("AssistantMessage", "a1", thought, text("I write."), call(path="a.md")), result(), DONE),
                tmp_path)
    assert seen.inputs[0].format == "kiro"
    assert stops(seen) == ["tool_call", "unknown"]
    assert places(seen) == [["request", "tool_result"]]
    response = seen.responses[0].exchange.response
    assert (response.text, response.reasoning_content) == ("I write.", "hm")
    assert [(each.id, each.name, each.arguments) for each in response.tool_calls] == [
        ("t1", "write", '{"path": "a.md"}')]
    assert seen.responses[0].exchange.model == "claude-opus-4.7"
    assert (seen.inputs[0].about.title, seen.inputs[0].about.id) == ("the title", "k-1")
    assert "2 of 2 answers have no stop reason, as Kiro keeps none for them" in notices(seen)


@pytest.mark.parametrize("begins", ["WARNING", "SYSTEM NOTE"])
def test_a_note_in_place_of_arguments_is_no_call(begins, tmp_path):
    seen = show(lines(GO, row("AssistantMessage", "a1", text("I write."), call(key=f"{begins}: {LOST}")),
                      row("Prompt", "p2", text(TOO_LARGE)), DONE, NEXT), tmp_path)
    assert stops(seen) == ["malformed_tool_call", "end_turn"]
    assert rules(seen)[-1] == "transcript.inferred.call_rejected"
    assert words(seen) == ["CALL HELD"]
    assert places(seen) == [["request", "nudge"]], "Kiro's message belongs to the turn"
    (lost,) = seen.responses[0].exchange.response.tool_calls
    assert (lost.arguments, lost.closed) == (None, False), "the note is not what the model sent"
    assert "whose arguments the recorder could not read" in seen.turns[0].verdict.sentence


def test_arguments_that_only_have_a_member_of_that_name_are_whole(tmp_path):
    answer = row("AssistantMessage", "a1", call(key="WARNING: the lock is taken"))
    seen = show(lines(GO, answer, result(), DONE), tmp_path)
    assert stops(seen)[0] == "tool_call"
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == '{"key": "WARNING: the lock is taken"}'


def test_a_text_in_place_of_an_answer_that_took_too_long_is_an_error(tmp_path):
    seen = show(lines(GO, row("AssistantMessage", "a1", text(TIMED_OUT)), row("Prompt", "p2", text(TOO_SLOW)), DONE,
                      NEXT), tmp_path)
    assert stops(seen) == ["error", "end_turn"]
    assert places(seen) == [["request", "nudge"]]
    response = seen.responses[0].exchange.response
    assert not response.text, "the text is Kiro's"
    assert response.error.message == TIMED_OUT
    assert response.error.retryable


@pytest.mark.parametrize(("word", "turn", "stop"), [
    ("UserTurnEnd", [DONE], "end_turn"), ("Cancelled", [DONE], "cancelled"),
    ("ToolUseRejected", [row("AssistantMessage", "a9", call(path="a"))], "tool_call"), ("Unheard", [DONE], "unknown"),
])
def test_the_file_beside_tells_how_a_turn_ended(word, turn, stop, tmp_path):
    beside(tmp_path, {"message_ids": ["p1", "a9"], "end_reason": word})
    assert stops(show(lines(GO, *turn), tmp_path)) == [stop]


@pytest.mark.parametrize(("error", "message", "retryable"), [
    ({"Stream": {"kind": "throttling"}}, "The request was throttled by the service", True),
    ({"Stream": {"kind": "serviceFailure"}}, "The service failed to process the request", True),
    ({"Stream": {"kind": {"streamTimeout": {"duration": 9}}}}, "The stream timed out", True),
    ({"Stream": {"kind": {"other": "no route"}}}, 'Error: {"Stream": {"kind": {"other": "no route"}}}', False),
])
def test_a_turn_that_failed_has_its_error(error, message, retryable, tmp_path):
    beside(tmp_path, {"message_ids": ["p1"], "end_reason": "Error", "result": {"Err": error}})
    seen = show(lines(GO), tmp_path)
    assert stops(seen) == ["error"]
    found = seen.responses[0].exchange.response.error
    assert (found.message, found.retryable) == (message, retryable)


def test_a_turn_whose_context_overflowed(tmp_path):
    beside(tmp_path, {"message_ids": ["p1"], "end_reason": "Error",
                      "result": {"Err": {"Stream": {"kind": "contextWindowOverflow"}}}})
    assert stops(show(lines(GO), tmp_path)) == ["context_window_exceeded"]


def test_rows_without_a_message_are_counted(tmp_path):
    seen = show(lines(GO, DONE, {"version": "v1", "kind": "ResetTo", "data": {"target_index": 1}},
                      {"version": "v1", "kind": "Compaction", "data": {}}, {"version": "v1", "kind": "PromptClear"},
                      {"version": "v1", "kind": "Cancelled", "data": {}}), tmp_path)
    assert ("known records that hold no exchange: Cancelled (1), Compaction (1), PromptClear (1), ResetTo (1)"
            in notices(seen))


def test_the_end_of_a_turn_is_followed(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(lines(GO, DONE))
    beside(tmp_path)
    followed = FollowedSession([str(path)], api=None, profile=None)
    assert followed.read().exchanges[0].response.stop_reason.normalized.value == "unknown"
    before = states_of([str(path)])
    beside(tmp_path, {"message_ids": ["p1", "a9"], "end_reason": "UserTurnEnd"})
    assert states_of([str(path)]) != before, "only the file beside it has changed"
    assert followed.read().exchanges[0].response.stop_reason.normalized.value == "end_turn"


# -- The rows of `messages.jsonl` --------------------------------------------------------------------------------------


def event(kind: str, **payload: Any) -> Row:
    return {"id": f"{kind}-1", "timestamp": "2026-09-01T17:52:55.268Z", "payload": {"type": kind, **payload}}


ASKED = event("user", content="go", images=[])
SAID = event("assistant", content="It is a.", operationType="Say")
READ = event("tool_call", toolCallId="t1", toolName="read_file", args={"path": "a"}, status="running")
FOUND = event("tool_result", toolCallId="t1", content="dump", success=True)


def look(tmp_path: Path, *rows: Row):
    return show(lines(*rows), tmp_path, name="messages.jsonl")


def test_events_of_one_answer(tmp_path):
    (tmp_path / "session.json").write_text(json.dumps({"id": "sess_1", "title": "look", "modelId": "auto",
                                                       "parentSessionId": "sess_0"}))
    seen = look(tmp_path, event("session_start", content="You are Kiro"), ASKED, event("turn_start"),
                event("assistant", content="...", operationType="Reasoning"),
                event("assistant", content=[{"text": "I look."}], operationType="Say"),
                READ, {**READ, "id": "later"}, FOUND, SAID, event("turn_end", stopReason="end_turn"))
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    response = seen.responses[0].exchange.response
    assert response.text == "I look."
    assert [part.text for part in response.parts if isinstance(part, ReasoningPart)] == [""], "hidden reasoning"
    assert [(each.id, each.name, each.arguments) for each in response.tool_calls] == [
        ("t1", "read_file", '{"path": "a"}')], "a call in a later state is the same call"
    assert seen.responses[0].exchange.started == "2026-09-01T17:52:55.268Z"
    assert (seen.inputs[0].about.id, seen.inputs[0].about.parent) == ("sess_1", "sess_0")
    assert "session_start (1), turn_start (1)" in notices(seen)


@pytest.mark.parametrize(("word", "stop"), [
    ("end_turn", "end_turn"), ("cancelled", "cancelled"), ("max_tokens", "max_tokens"), ("refusal", "safety_blocked"),
    ("unheard", "unknown"), (None, "unknown"),
])
def test_the_end_of_a_turn(word, stop, tmp_path):
    assert stops(look(tmp_path, ASKED, SAID, event("turn_end", stopReason=word))) == [stop]


def test_the_reasons_of_a_refusal_and_of_an_error(tmp_path):
    refused = event("turn_end", stopReason="refusal",
                    stopDetails={"refusal": {"category": "cyber", "explanation": "no"}})
    (answer,) = look(tmp_path, ASKED, SAID, refused).responses
    stop = answer.exchange.response.stop_reason
    assert stop.normalized.value == "safety_blocked"
    assert any("refusal: cyber: no" in each.note for each in stop.evidence)
    shown = event("session_metadata", key="displayError", value="The model is overloaded")
    (answer,) = look(tmp_path, ASKED, shown, event("turn_end", stopReason="error")).responses
    assert answer.exchange.response.error.message == "error: The model is overloaded"


def test_an_error_of_a_request(tmp_path):
    failed = event("error", message="The model is overloaded", code="overloaded_error")
    (answer,) = look(tmp_path, ASKED, failed).responses
    error = answer.exchange.response.error
    assert (error.message, error.type) == ("The model is overloaded", "overloaded_error")
    assert stops(look(tmp_path, ASKED, SAID, failed)) == ["unknown"], "an error after an answer ends its turn"


def test_a_turn_without_a_message_of_the_user(tmp_path):
    seen = look(tmp_path, ASKED, SAID, event("turn_end", stopReason="end_turn"), event("turn_start"),
                event("assistant", content="The run is done.", operationType="Say"),
                event("turn_end", stopReason="max_tokens"))
    assert stops(seen) == ["end_turn", "max_tokens"]
    assert places(seen) == [["request"], ["request"]]


def test_a_message_that_kiro_adds_begins_no_turn(tmp_path):
    added = event("user", content="look only", _meta={"kiro": {"syntheticUserMessageReason": "steering-injection"}})
    seen = look(tmp_path, ASKED, READ, FOUND, added, SAID)
    assert len(view_file(tmp_path / "messages.jsonl").turns) == 1
    assert stops(seen)[0] == "tool_call"


def test_a_call_that_was_denied_did_not_run(tmp_path):
    denied = {**READ, "payload": {**READ["payload"], "status": "denied"}}
    refused = event("tool_result", toolCallId="t1", content="no", success=False)
    assert list(look(tmp_path, ASKED, READ, denied, refused, SAID).responses[0].exchange.refusals) == ["t1"]
    assert not look(tmp_path, ASKED, READ, refused, SAID).responses[0].exchange.refusals


def test_the_model_of_reasoning(tmp_path):
    thought = event("assistant", content="hm", operationType="Reasoning", reasoningModelId="m-2")
    assert look(tmp_path, ASKED, thought, SAID).responses[0].exchange.response.model == "m-2"


def test_a_subagent_is_a_session_below(tmp_path):
    folder = tmp_path / "sess_1"
    (folder / "sub-executions").mkdir(parents=True)
    (folder / "session.json").write_text(json.dumps({"id": "sess_1", "title": "look", "modelId": "m"}))
    part = event("assistant", content="I read.", operationType="Say", subExecutionId="sub-7")
    (folder / "messages.jsonl").write_text(
        lines(ASKED, READ, event("sub_agent_start", subSessionId="sub-7"), part, FOUND, SAID))
    (folder / "sub-executions" / "sub-7.jsonl").write_text(lines(
        part, event("tool_call", toolCallId="t8", toolName="grep", args={}, subExecutionId="sub-7")))
    opened = open_paths([str(folder / "messages.jsonl")])
    assert [each.response.text for each in opened.exchanges] == [None, "It is a.", "I read."]
    main, below = opened.inputs
    assert (below.about.id, below.about.parent) == ("sub-7", main.about.id)
    assert "known records that hold no exchange: row of a subagent (1), sub_agent_start (1)" in "\n".join(main.notices)
    assert len(open_paths([str(tmp_path)]).exchanges) == 3, "each file of a folder is read once"
    assert below.error is None


def test_a_turn_that_ended_without_an_answer(tmp_path):
    seen = look(tmp_path, ASKED, event("turn_end", stopReason="error"))
    assert stops(seen) == ["error"]
    assert words(seen) == ["ERROR"]


def test_a_result_that_is_an_error(tmp_path):
    seen = look(tmp_path, ASKED, READ, {**FOUND, "payload": {**FOUND["payload"], "success": False}}, SAID)
    assert seen.responses[1].exchange.request.messages[-1].results[0].is_error


@each_row("kind", ("usage_summary", "session_metadata", "session_event", "steering_inclusion", "tombstone",
                   "pending_interaction", "interaction_resolved", "sub_agent_start", "sub_agent_complete", "turn_start",
                   "session_start", "sub_agent_progress", "system", "agent_note", "tool_revert", "mode_change",
                   "ContextualHookInvoked"))
def test_events_without_a_part_of_an_exchange(kind, tmp_path):
    assert f"known records that hold no exchange: {kind} (1)" in notices(look(tmp_path, ASKED, SAID, event(kind)))


def test_a_summary_is_no_answer(tmp_path):
    seen = look(tmp_path, ASKED, SAID, event("assistant", content="so far", operationType="Summary"))
    assert len(seen.responses) == 1
    assert "known records that hold no exchange: summary (1)" in notices(seen)


# -- Conversations -----------------------------------------------------------------------------------------------------


def entry(content: Row, assistant: Row, **metadata: Any) -> Row:
    return {"user": {"content": content}, "assistant": assistant, "request_metadata": metadata}


def prompt(said: str) -> Row:
    return {"Prompt": {"prompt": said}}


def results(status: str, said: str) -> list[Row]:
    return [{"tool_use_id": "t1", "content": [{"Text": said}], "status": status}]


def use(**arguments: Any) -> Row:
    return {"ToolUse": {"message_id": "m1", "content": "I write.", "tool_uses": [
        {"id": "t1", "name": "fs_write", "args": arguments}]}}


ANSWERED = {"Response": {"message_id": "m9", "content": "Done."}}


def conversation(key: str, *entries: Any) -> str:
    return json.dumps({"conversation_id": key, "history": list(entries), "valid_history_range": [0, len(entries)],
                       "model_info": {"model_id": "claude-sonnet-4"}})


@pytest.mark.parametrize("pairs", [False, True])
def test_a_saved_conversation(pairs, tmp_path):
    entries: list[Any] = [
        entry(prompt("go"), use(path="a.md")),
        entry({"ToolUseResults": {"tool_use_results": results("Success", "ok")}}, ANSWERED),
        entry(prompt("thanks"), {"Response": {"message_id": None, "content": "Welcome."}})]
    if pairs:
        entries = [[each["user"], each["assistant"]] for each in entries]
    seen = show(conversation("c-1", *entries), tmp_path, name="saved.json")
    assert seen.inputs[0].format == "kiro-conversations"
    assert stops(seen) == ["tool_call", "end_turn", "unknown"]
    assert places(seen) == [["request", "tool_result"], ["request"]]
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == '{"path": "a.md"}'
    assert seen.responses[0].exchange.model == "claude-sonnet-4"


def test_a_lost_call_and_a_timeout_of_a_conversation(tmp_path):
    large = {"ToolUseResults": {"tool_use_results": results("Error", TOO_LARGE)}}
    seen = show(conversation("c-1", entry(prompt("go"), use(key=f"WARNING: {LOST}")),
                             entry(large, {"Response": {"message_id": None, "content": TIMED_OUT}}),
                             entry(prompt(TOO_SLOW), ANSWERED), entry(prompt("thanks"), ANSWERED)),
                tmp_path, name="x.json")
    assert stops(seen)[:3] == ["malformed_tool_call", "error", "end_turn"]
    assert len(seen.turns) == 2, "Kiro's messages begin no turn"


def test_calls_that_the_user_cancelled(tmp_path):
    cancelled = {"CancelledToolUses": {"prompt": "no, stop", "tool_use_results": results("Error", "cancelled")}}
    content = conversation("c-1", entry(prompt("go"), use(path="a")), entry(cancelled, ANSWERED))
    seen = show(content, tmp_path, name="x.json")
    assert stops(seen)[0] == "tool_call"
    assert len(seen.turns) == 2
    assert words(seen)[0] == "CANCELLED"
    assert "t1" in seen.responses[0].exchange.refusals


def test_the_time_and_the_counts_of_a_request(tmp_path):
    seen = show(conversation("c-1", entry(
        prompt("go"), ANSWERED, model_id="auto", request_start_timestamp_ms=1783571416209, output_tokens=7,
        uncached_input_tokens=10, cache_read_input_tokens=2, cache_write_input_tokens=1)), tmp_path, name="x.json")
    (facts,) = seen.responses
    assert facts.exchange.model == "auto"
    assert facts.exchange.started == "2026-07-09T04:30:16.209+00:00"
    usage = facts.exchange.response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (13, 7, 2)


@pytest.mark.parametrize("newer", [True, False])
def test_a_database(newer, tmp_path):
    path = tmp_path / "data.sqlite3"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE conversations (key TEXT, value TEXT)")
        database.execute("CREATE TABLE auth_kv (key TEXT, value TEXT)")
        database.execute("INSERT INTO auth_kv VALUES ('kirocli:odic:token', 'aSecretThatIsNeverRead')")
        values = [("/home/someone/first", conversation("c-1", entry(prompt("go"), ANSWERED))),
                  ("/home/someone/second", conversation("c-2", entry(prompt("look"), ANSWERED)))]
        if newer:
            database.execute("CREATE TABLE conversations_v2 (key TEXT, conversation_id TEXT, value TEXT)")
            database.executemany("INSERT INTO conversations_v2 VALUES (?, ?, ?)",
                                 [(key, key.rsplit("/")[-1], value) for key, value in values])
        else:
            database.executemany("INSERT INTO conversations VALUES (?, ?)", values)
    database.close()
    seen = view_file(path)
    assert seen.inputs[0].format == "kiro-conversations"
    assert len(seen.turns) == 2
    names = [facts.exchange.session for facts in seen.responses]
    assert names == (["first", "second"] if newer else ["/home/someone/first", "/home/someone/second"])


# -- Members of an odd type --------------------------------------------------------------------------------------------

ODD: tuple[tuple[str, str, str], ...] = (
    ("s.jsonl", lines({**GO, "kind": 1}, DONE), "line 1: kind is a number, but text was expected"),
    ("s.jsonl", lines(GO, {**DONE, "data": {"content": "Done."}}, DONE),
     "line 2: data.content is text, but a list was expected"),
    ("messages.jsonl", lines(ASKED, SAID, event("tool_result", content="x", toolName=[])),
     "line 3: payload.toolName is a list, but text was expected"),
    ("c.json", conversation("c", {"user": [], "assistant": {}}), "entry 1: user is a list, but an object was expected"),
    ("c.json", conversation("c", entry("go", {"Response": {"content": "ok"}})),
     "entry 1: user.content is text, but an object was expected"),
)


@each_row(("name", "content", "notice"), ODD)
def test_a_member_of_an_odd_type_is_reported(name, content, notice, tmp_path):
    path = tmp_path / name
    path.write_text(content)
    assert f"{path}: {notice}; it was skipped" in open_paths([str(path)]).inputs[0].notices


# -- Folders -----------------------------------------------------------------------------------------------------------

ABOUT = {"cli/s.json": {"session_id": "s", "cwd": "/w", "session_state": {}},
         "0123/sess_1/session.json": {"id": "sess_1", "createdAt": "2026-08-06T10:00:00Z", "modelId": "auto",
                                      "lastModifiedAt": "2026-08-06T10:00:00Z", "status": "idle"}}


@each_row("name", ABOUT)
def test_the_files_about_sessions_are_no_error(name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(ABOUT[name]))
    (path.parent / f"{path.stem}.jsonl").write_text(lines(GO, DONE))
    opened = open_paths([str(tmp_path)])
    assert len(opened.exchanges) == 1
    assert {each.error for each in opened.inputs} == {None}


FILES = {
    ".kiro/sessions/cli/s.jsonl": "Kiro",
    ".kiro/sessions/0123456789abcdef/sess_1/messages.jsonl": "Kiro",
    ".local/share/kiro-cli/data.sqlite3": "Kiro CLI",
    ".local/share/amazon-q/data.sqlite3": "Amazon Q Developer CLI",
    "Library/Application Support/kiro-cli/data.sqlite3": "Kiro CLI",
    "Library/Application Support/amazon-q/data.sqlite3": "Amazon Q Developer CLI",
    "AppData/Local/kiro-cli/data.sqlite3": "Kiro CLI",
    "AppData/Local/amazon-q/data.sqlite3": "Amazon Q Developer CLI",
    ".config/Kiro/User/globalStorage/kiro.kiroagent/workspace-sessions/L2hvbWU_/1-a.json": "Kiro before 1.0",
    "Library/Application Support/Kiro/User/globalStorage/kiro.kiroagent/workspace-sessions/L2_/1-a.json":
        "Kiro before 1.0",
    "AppData/Roaming/Kiro/User/globalStorage/kiro.kiroagent/workspace-sessions/L2_/1-a.json": "Kiro before 1.0",
}


@each_row("name", FILES)
def test_the_sessions_of_kiro_are_found(name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert [(each.path, each.agent) for each in transcripts({"HOME": str(tmp_path)})] == [(str(path), FILES[name])]
