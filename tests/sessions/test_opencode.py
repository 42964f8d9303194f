"""Sessions of opencode and Kilo CLI: the database beside a running agent, the tree of files, exports, both grammars."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from inspector.export.pages import blocks, markdown
from inspector.report.explain import text as explain
from inspector.report.lines.body_slices import BODY_FORMS, Slice, record_slices
from inspector.report.lines.wire import wire
from inspector.report.times_and_costs import InputTokens, input_tokens
from inspector.report.turn_rows import rows_of
from inspector.sessions import open_paths
from inspector.sessions.folders import transcripts
from tests.scenes.rows import each_row, share
from tests.scenes.transcripts import places, rules, show, stops, view_file, words

Row = dict[str, Any]
TABLES = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT,
  revert TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER,
  data TEXT);
"""
TOKENS = {"input": 90, "output": 40, "reasoning": 10, "cache": {"read": 7, "write": 3}}


def prompt(text: str = "go", key: str = "msg_1", **part: Any) -> list[Row]:
    return [{"id": key, "role": "user", "time": {"created": 1_770_000_000_000}},
            {"id": f"prt_{key}", "messageID": key, "type": "text", "text": text, **part}]


def reply(*parts: Row, key: str = "msg_2", **more: Any) -> list[Row]:
    """A message of the model: its parts get ids in their order."""
    message = {"id": key, "role": "assistant", "parentID": "msg_1", "modelID": "glm-5", "providerID": "zai",
               "time": {"created": 1_770_000_001_000, "completed": 1_770_000_002_000}, **more}
    return [message, *({"id": f"prt_{key}_{at:02}", "messageID": key, **part} for at, part in enumerate(parts))]


def text(given: str = "Done.") -> Row:
    return {"type": "text", "text": given}


def tool(status: str = "completed", name: str = "write", key: str = "call_1", **state: Any) -> Row:
    state = {"input": {"path": "a.md"}, **({"output": "wrote it"} if status == "completed" else {}), **state}
    return {"type": "tool", "callID": key, "tool": name, "state": {"status": status, **state}}


def end(reason: str = "stop", **tokens: Any) -> Row:
    return {"type": "step-finish", "reason": reason, "tokens": {**TOKENS, **tokens}}


START = {"type": "step-start"}


def put_session(base: sqlite3.Connection, key: str, records: list[Row], title: str = "A title",
                parent: str | None = None, revert: Any = None, at: int = 1) -> None:
    base.execute("INSERT INTO session VALUES (?, 'p', ?, '/w', ?, '1.2.3', ?, ?, ?)",
                 (key, parent, title, None if revert is None else json.dumps(revert), at, at))
    put_records(base, key, records)


def put_records(base: sqlite3.Connection, session: str, records: list[Row], first: int = 0) -> None:
    for at, record in enumerate(records, start=first):
        data = json.dumps({name: value for name, value in record.items() if name not in ("id", "messageID")})
        if "messageID" in record:
            base.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)",
                         (f"{session}{record['id']}", f"{session}{record['messageID']}", session, at, data))
        elif "role" in record:
            base.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)",
                         (f"{session}{record['id']}", session, at, at, data))
        else:
            base.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?)",
                         (f"{session}{at}", session, record["type"], at, at, data))


@pytest.fixture
def base(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """The agent's own connection: it writes to a log that nothing copies back."""
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as connection:
        connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; {TABLES}")
        yield connection


def look(base: sqlite3.Connection, tmp_path: Path):
    base.commit()
    return view_file(tmp_path / "opencode.db")


def export(tmp_path: Path, *records: list[Row], bare: bool = False):
    """The same records as `opencode export` writes them or, `bare`, as the server returns a session's messages."""
    messages: list[Row] = []
    for record in (each for group in records for each in group):
        if "role" in record:
            messages.append({"info": {**record, "sessionID": "ses_1"}, "parts": []})
        else:
            messages[-1]["parts"].append(record)
    value = {"info": {"id": "ses_1", "title": "A title", "directory": "/w"}, "messages": messages}
    return show(json.dumps(messages if bare else value, indent=2), tmp_path, name="export.json")


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def test_the_messages_of_a_session_alone_are_read_like_an_export(tmp_path):
    records = prompt(), reply(START, tool(), end("tool-calls")), reply(text("Half"), end("length"), key="msg_3")
    for bare in (False, True):
        seen = export(tmp_path, *records, bare=bare)
        assert [each.format for each in seen.inputs] == ["opencode"]
        assert stops(seen) == ["tool_call", "max_tokens"]
        assert [call.call.name for each in seen.responses for call in each.verdicts] == [tool()["tool"]]


# -- words -------------------------------------------------------------------------------------------------------------


@each_row(("word", "stop", "rule"), [
    ("stop", "end_turn", "opencode.stop_reasons"),
    ("length", "max_tokens", "opencode.stop_reasons"),
    ("content-filter", "safety_blocked", "opencode.stop_reasons"),
    ("tool-calls", "tool_call", "opencode.stop_reasons"),
    ("error", "error", "opencode.stop_reasons"),
    ("other", "unknown", "unknown_word"),
    ("unknown", "unknown", "unknown_word"),
])
@each_row("place", ["step", "message"])
def test_the_words_are_the_ai_sdks(tmp_path, word, stop, rule, place):
    answer = reply(text(), end(word)) if place == "step" else reply(text(), finish=word)
    seen = export(tmp_path, prompt(), answer)
    assert stops(seen) == [stop]
    assert rules(seen)[:2] == ["transcript.recorder", rule]
    assert seen.responses[0].exchange.response.raw_stop_reason is None
    assert "the AI SDK's words" in notices(seen)


@each_row(("name", "stop"), [
    ("MessageOutputLengthError", "max_tokens"),
    ("MessageAbortedError", "cancelled"),
    ("ContextOverflowError", "context_window_exceeded"),
    ("ContentFilterError", "safety_blocked"),
])
def test_errors_say_by_name_how_an_answer_ended(tmp_path, name, stop):
    seen = export(tmp_path, prompt(), reply(text("Half"), error={"name": name, "data": {"message": "m"}}))
    assert stops(seen) == [stop]
    assert rules(seen)[:2] == ["transcript.recorder", "opencode.errors"]


@each_row(("word", "name", "count"), [
    ("content-filter", "ContentFilterError", 1),
    ("length", "MessageOutputLengthError", 1),
    ("stop", "ContentFilterError", 2),
    ("length", "APIError", 2),
])
def test_an_error_that_names_the_end_of_the_answer_again_is_no_request_of_its_own(tmp_path, word, name, count):
    seen = export(tmp_path, prompt(), reply(
        {"type": "step-start"}, text("Half"), end(word), error={"name": name, "data": {"message": "m"}}))
    assert len(seen.responses) == count


def test_another_error_is_read_by_what_it_holds(tmp_path):
    error = {"name": "APIError", "data": {"message": "Overloaded", "statusCode": 529, "isRetryable": True}}
    seen = export(tmp_path, prompt(), reply(error=error))
    assert stops(seen) == ["error"]
    assert seen.responses[0].judgement.stop.detail == "retryable"


def test_a_retry_is_a_failed_attempt_and_the_answer_follows_it(tmp_path):
    failed = {"type": "retry", "attempt": 1, "error": {"name": "APIError", "data": {"message": "fetch failed"}}}
    seen = export(tmp_path, prompt(), reply(START, failed, START, text(), end()))
    assert stops(seen) == ["error", "end_turn"]
    assert words(seen) == ["RETRIED"]


def test_a_step_that_did_not_finish_before_the_next_was_asked_for_again(tmp_path):
    seen = export(tmp_path, prompt(), reply(START, text("The queue"), START, text("The queue is fine."), end()))
    assert (words(seen), places(seen)) == (["RETRIED"], [["request", "retry"]])
    seen = export(tmp_path, prompt(), reply(START, text("a"), end("tool-calls"), START, text("b"), end()))
    assert "retry" not in places(seen)[0]


def test_a_call_that_ran_before_its_step_broke_is_held(tmp_path):
    """opencode 1.18 runs a call while its answer still arrives; after an error it sends the request again."""
    seen = export(tmp_path, prompt(), reply(START, tool(), START, text("All is done."), end()))
    assert (stops(seen), words(seen)) == (["interrupted", "end_turn"], ["INTERRUPTED"])
    assert [note.finding.rule for note in seen.findings if "ran write" in note.finding.message] == [
        "agent.ran_unsure_call"]


def test_a_message_that_never_ended_has_no_word(tmp_path):
    seen = export(tmp_path, prompt(), reply(START, text("I will"), time={"created": 1}))
    assert stops(seen) == ["unknown"]
    assert words(seen) == ["END NOT RECORDED"]
    assert "never completed" in notices(seen)


def test_a_message_without_parts_that_never_ended_does_not_hide_a_held_call(tmp_path):
    """Kilo CLI asks for a cut call again, and is killed before anything comes."""
    cut = tool("error", input={"value": '{"path": "a.md", "text": "Satur'}, error="Invalid input for tool write: JSON")
    begun = reply(key="msg_3", time={"created": 1})
    assert words(export(tmp_path, prompt(), reply(START, cut, end("length")), begun)) == ["CALL HELD"]
    assert words(export(tmp_path, prompt(), reply(START, tool(), end("tool-calls")), begun)) == ["END NOT RECORDED"]


def test_a_message_of_the_user_is_no_end_of_a_message_that_never_ended(tmp_path):
    for time, stop in ({"created": 1}, "unknown"), ({"created": 1, "completed": 2}, "end_turn"):
        seen = export(tmp_path, prompt(), reply(START, text("I will"), time=time), prompt("and the tests?", "msg_3"))
        assert stops(seen) == [stop]


def test_a_message_of_the_user_is_no_end_of_a_record_of_the_second_version_that_never_ended(base, tmp_path):
    for at, time in enumerate(({"created": 1}, {"created": 1, "completed": 2})):
        put_session(base, f"ses_{at}", [{"type": "user", "text": "go"}, {"type": "assistant", "content": [text()],
                                         "time": time}, {"type": "user", "text": "and the tests?"}], at=at)
    seen = look(base, tmp_path)
    # the next step writes `completed` into an answer that a lost agent left behind (`message-updater.ts`)
    assert stops(seen) == ["unknown", "unknown"]
    assert "an answer that was never completed" in notices(seen)


def test_the_newest_records_have_the_providers_word_too(base, tmp_path):
    put_session(base, "ses_1", [
        {"type": "user", "text": "go"},
        {"type": "assistant", "model": {"id": "claude", "providerID": "anthropic"}, "finish": "length",
         "rawFinish": "max_tokens", "content": [{"type": "text", "text": "Half"}], "time": {"created": 5}},
    ])
    (facts,) = look(base, tmp_path).responses
    assert facts.exchange.response.raw_stop_reason == "max_tokens"
    assert facts.judgement.stop.evidence[0].rule == "transcript.provider"


# -- steps and calls ---------------------------------------------------------------------------------------------------


def test_each_step_of_a_message_is_an_answer(tmp_path):
    seen = export(tmp_path, prompt(), reply(START, text("First"), tool(), end("tool-calls"), START, text(), end()))
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    assert words(seen) == ["COMPLETE"]
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "wrote it"


def test_so_is_each_in_older_records_without_their_beginnings(tmp_path):
    seen = export(tmp_path, prompt(), reply(tool(), end("tool-calls"), text(), end()))
    assert stops(seen) == ["tool_call", "end_turn"]


def test_a_call_cut_by_length_that_ran_is_told(tmp_path):
    seen = export(tmp_path, prompt(), reply(tool(), end("length")), reply(text(), end(), key="msg_3"))
    assert words(seen) == ["CUT CALL RUN"]


def test_arguments_that_were_no_json_are_those_that_the_error_quotes(tmp_path):
    quoted = '{"path": "a.md", "content": "on'
    error = f"Invalid input for tool write: JSON parsing failed: Text: {quoted}.\nError message: x"
    call = tool(name="invalid", input={"tool": "write", "error": error},
                output=f"The arguments provided to the tool are invalid: {error}")
    seen = export(tmp_path, prompt(), reply(call, end("tool-calls")), reply(text(), end(), key="msg_3"))
    (made,) = seen.responses[0].exchange.response.tool_calls
    assert (made.name, made.arguments) == ("write", quoted)
    assert seen.responses[0].exchange.refusals == {"call_1": "the agent refused its arguments: it did not run"}
    assert words(seen) != ["COMPLETE"]


@pytest.mark.parametrize(("quoted", "stop"), [("{path: a.md}", "malformed_tool_call"), ('{"path": "a.m', "max_tokens")])
def test_the_quoted_text_shows_whether_the_call_was_cut(tmp_path, quoted, stop):
    error = f"Invalid input for tool write: JSON parsing failed: Text: {quoted}.\nError message: x"
    call = tool(name="invalid", input={"tool": "write", "error": error}, output="x")
    assert stops(export(tmp_path, prompt(), reply(call, end("tool-calls")))) == [stop]


def test_so_are_those_of_a_call_that_keeps_its_name(tmp_path):
    """Kilo CLI 7.7.9 stores such a call so: the arguments are an object around the text."""
    quoted = '{"path": "a.md", "content": "on'
    call = tool(name="write", status="error", input={"value": quoted},
                error=f"Invalid input for tool write: JSON parsing failed: Text: {quoted}.\nError message: x")
    seen = export(tmp_path, prompt(), reply(call, end("tool-calls")), reply(text(), end(), key="msg_3"))
    (made,) = seen.responses[0].exchange.response.tool_calls
    assert (made.name, made.arguments) == ("write", quoted)
    assert "it did not run" in seen.responses[0].exchange.refusals["call_1"]
    assert words(seen) == ["CALL HELD"]
    failed = tool(name="write", status="error", input={"value": quoted}, error="Error: disk full")
    (facts,) = export(tmp_path, prompt(), reply(failed, end("tool-calls"))).responses
    assert facts.exchange.response.tool_calls[0].arguments != quoted, "such arguments were read"


def test_a_call_of_no_tool_has_no_arguments(tmp_path):
    call = tool(name="invalid", input={"tool": "fly", "error": "Model tried to call unavailable tool 'fly'."},
                output="The arguments provided to the tool are invalid: no tool")
    (facts,) = export(tmp_path, prompt(), reply(call, end("tool-calls"))).responses
    assert [(each.name, each.arguments) for each in facts.exchange.response.tool_calls] == [("fly", None)]


@pytest.mark.parametrize(("status", "given", "arguments"), [
    ("pending", {"input": {}, "raw": '{"path": "a'}, '{"path": "a'),
    ("pending", {"input": {}}, ""),
    ("streaming", {"input": '{"pa'}, '{"pa'),
])
def test_a_pending_call_is_not_whole(tmp_path, status, given, arguments):
    (facts,) = export(tmp_path, prompt(), reply(tool(status, **given), time={"created": 1})).responses
    (call,) = facts.exchange.response.tool_calls
    assert (call.arguments, call.closed) == (arguments, False)


LOST = {"input": {}, "error": "Tool execution aborted", "metadata": {"interrupted": True}}


@each_row(("state", "whole"), [
    ({**LOST, "raw": "", "time": {"start": 9, "end": 9}}, False),
    ({**LOST, "raw": "", "time": {"start": 8, "end": 9}}, True),  # it ran, without arguments
    ({**LOST, "time": {"start": 9, "end": 9}}, True),
    ({**LOST, "raw": "", "input": {"a": 1}, "time": {"start": 9, "end": 9}}, True),
])
def test_a_call_that_was_pending_at_the_end_is_not_whole(tmp_path, state, whole):
    (facts,) = export(tmp_path, prompt(), reply(tool("error", **state), end("tool-calls"))).responses
    assert [call.closed for call in facts.exchange.response.tool_calls] == [whole]
    given = facts.exchange.response.tool_calls[0].arguments
    assert (json.loads(given) if whole else given) == (state["input"] if whole else None)


@pytest.mark.parametrize(("times", "whole"), [({"created": 1, "completed": 3}, False),
                                              ({"created": 1, "ran": 2, "completed": 3}, True)])
def test_a_call_of_the_second_version_that_was_never_parsed_is_not_whole(base, tmp_path, times, whole):
    told = "Tool call arguments were malformed JSON and were not executed. Retry with valid JSON."
    state = {"status": "error", "input": {}, "error": {"type": "tool.input-json", "message": told}}
    put_session(base, "ses_1", [
        {"type": "user", "text": "go"}, {"type": "assistant", "finish": "tool-calls", "content": [
            {"type": "tool", "id": "c1", "name": "write", "executed": False, "time": times, "state": state}]},
        {"type": "assistant", "finish": "stop", "content": [text()]}])
    seen = look(base, tmp_path)
    first = seen.responses[0]
    assert [call.closed for call in first.exchange.response.tool_calls] == [whole]
    assert [verdict.admission.value for verdict in first.verdicts] == ["held"]
    assert words(seen) == ["CALL HELD"]
    assert stops(seen)[0] == "malformed_tool_call"


def test_a_call_that_failed_under_another_word_leaves_the_word(base, tmp_path):
    state = {"status": "error", "input": {}, "error": {"type": "tool.input-json", "message": "m"}}
    put_session(base, "ses_1", [{"type": "user", "text": "go"}, {"type": "assistant", "finish": "length", "content": [
        {"type": "tool", "id": "c1", "name": "write", "time": {"created": 1}, "state": state}]}])
    assert stops(look(base, tmp_path)) == ["max_tokens"]


def test_the_types_of_errors_of_the_second_version(base, tmp_path):
    kinds = {"aborted": "cancelled", "provider.content-filter": "safety_blocked",
             "provider.context-overflow": "context_window_exceeded", "provider.unknown": "error"}
    put_session(base, "ses_1", [record for kind in kinds for record in (
        {"type": "user", "text": "go"}, {"type": "assistant", "finish": "error", "content": [],
                                         "error": {"type": kind, "message": "m"}})])
    assert stops(look(base, tmp_path)) == [*kinds.values()]


@pytest.mark.parametrize(("status", "compacted"), [("completed", True), ("failed", False), ("running", False)])
def test_only_a_compaction_that_was_completed_is_told(base, tmp_path, status, compacted):
    put_session(base, "ses_1", [
        {"type": "user", "text": "go"}, {"type": "compaction", "status": status, "reason": "auto"},
        {"type": "assistant", "finish": "stop", "content": [text()]}])
    found = [noted.finding.rule for noted in look(base, tmp_path).findings]
    assert ("transcript.compacted" in found) is compacted


def test_a_note_of_kilo_about_a_cut_answer_is_no_text_of_the_model(tmp_path):
    warning = {**text("The model hit its output limit, so this response may be incomplete."), "ignored": True}
    seen = export(tmp_path, prompt(), reply(text("Half"), end("length"), warning, finish="length"))
    assert stops(seen) == ["max_tokens"]
    assert seen.responses[0].exchange.response.text == "Half"
    assert "notes of the agent itself" in notices(seen)


def test_an_abort_behind_a_whole_answer_ends_the_turn(tmp_path):
    call = tool("error", error="Tool execution aborted")
    aborted = {"name": "MessageAbortedError", "data": {}}
    seen = export(tmp_path, prompt(), reply(call, end("tool-calls"), error=aborted),
                  prompt("again", key="msg_3"), reply(text(), end(), key="msg_4"))
    assert stops(seen) == ["tool_call", "end_turn"]
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "again"]
    assert words(seen) == ["CANCELLED", "COMPLETE"]


@pytest.mark.parametrize(("total", "output"), [(150, 50), (140, 40), (None, 40)])
def test_reasoning_is_added_to_output_where_the_total_shows_that_it_stands_beside_it(tmp_path, total, output):
    tokens = {"total": total} if total else {}
    for provider, given in (("zai", 100), ("anthropic", 90)):
        (facts,) = export(tmp_path, prompt(), reply(text(), end(**tokens), providerID=provider)).responses
        assert facts.exchange.response.usage[:2] == (given, output)
        assert input_tokens(facts.exchange) == InputTokens(90, 7, 3)


@each_row(("provider", "api"), [
    ("anthropic", "anthropic_messages"), ("openai", "openai_responses"), ("google", "gemini_generate"),
    ("amazon-bedrock", "bedrock_converse"), ("google-vertex-anthropic", "anthropic_messages"), ("zai", "openai_chat"),
])
def test_the_wire_format_is_that_of_the_provider(tmp_path, provider, api):
    (facts,) = export(tmp_path, prompt(), reply(text(), end(), providerID=provider)).responses
    assert (facts.exchange.api, facts.exchange.model) == (api, "glm-5")
    assert facts.exchange.started == "2026-02-02T02:40:01.000+00:00"


def test_what_the_agent_adds_opens_no_turn_and_compaction_is_told(tmp_path):
    seen = export(tmp_path, prompt(), reply(text(), end("tool-calls")),
                  prompt("<system>", key="msg_3", synthetic=True), reply(text(), end(), key="msg_4"),
                  [{"id": "msg_5", "role": "user"}, {"id": "prt_5", "messageID": "msg_5", "type": "compaction"}],
                  reply(text("Summary"), end(), key="msg_6", summary=True))
    found = [noted.finding.message for noted in seen.findings if noted.finding.rule == "transcript.compacted"]
    assert [each.split(": ")[1] for each in found] == ["the history was compacted before this answer"]
    assert seen.turns[0].run.record.user_text == "go"


# -- the database ------------------------------------------------------------------------------------------------------


def test_a_database_beside_a_running_agent_is_read_with_its_log_and_left_alone(base, tmp_path):
    put_session(base, "ses_1", [*prompt(), *reply(text("Hello."), end())])
    base.commit()
    base.execute("UPDATE session SET title = 'never committed'")
    put_records(base, "ses_1", reply(text("uncommitted"), key="msg_3"))
    path = tmp_path / "opencode.db"
    before = {entry.name: (entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(tmp_path)}
    loaded = open_paths([str(path)])
    assert {e.name: (e.stat().st_size, e.stat().st_mtime_ns) for e in os.scandir(tmp_path)} == before
    assert [each.response.text for each in loaded.exchanges] == ["Hello."]
    assert loaded.inputs[0].about.title == "A title"
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as other:
        assert other.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)  # all of it stands in the log


def test_a_session_with_the_title_of_its_database_is_not_named_again(base, tmp_path):
    put_session(base, "ses_1", [*prompt(), *reply(text("Hello."), end())])
    seen = look(base, tmp_path)
    assert (seen.responses[0].exchange.session, seen.inputs[0].about.title) == ("A title", "A title")
    assert "  session:" not in explain(seen)


def test_each_turn_of_a_database_names_its_session(base, tmp_path):
    put_session(base, "ses_b", [*prompt("other"), *reply(text(), end())], title="Other", at=5)
    put_session(base, "ses_a", [*prompt("main"), *reply(tool(name="task"), end("tool-calls"))], title="Main", at=1)
    put_session(base, "ses_c", [*prompt("below"), *reply(text(), end())], title="Sub", parent="ses_a", at=9)
    seen = look(base, tmp_path)
    assert "  session: Main › Sub" in explain(seen)
    assert [(row.title, row.name) for row in rows_of(seen)] == [
        ("main", "Main"), ("below", "Main › Sub"), ("other", "Other")]
    assert len({turn.conversation for turn in seen.turns}) == 3
    assert "sessions in it: 3, 1 of them begun by another" in notices(seen)


def test_parents_that_name_each_other_are_read_once(base, tmp_path):
    put_session(base, "ses_a", [*prompt("a"), *reply(text(), end())], parent="ses_b")
    put_session(base, "ses_b", [*prompt("b"), *reply(text(), end())], parent="ses_a")
    assert len(look(base, tmp_path).turns) == 2


def test_what_was_reverted_is_read_and_counted(base, tmp_path):
    put_session(base, "ses_1", [*prompt(), *reply(text(), end()), *prompt("undone", key="msg_3")],
                revert={"messageID": "ses_1msg_3"})
    assert "the user took back" in notices(look(base, tmp_path))


def test_the_second_version_is_read_where_the_first_has_no_rows(base, tmp_path):
    second = [
        {"type": "model-switched", "model": {}}, {"type": "user", "text": "go"},
        {"type": "assistant", "finish": "tool-calls", "tokens": TOKENS, "time": {"created": 5, "completed": 6},
         "model": {"id": "gpt-5", "providerID": "openai"}, "content": [
            {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "I write."},
            {"type": "tool", "id": "c1", "name": "write",
             "state": {"status": "completed", "input": {"a": 1}, "content": [{"type": "text", "text": "ok"}]}}]},
        {"type": "synthetic", "text": "note"}, {"type": "hologram"},
        {"type": "assistant", "finish": "error", "error": {"type": "aborted", "message": "m"}, "content": [],
         "retry": {"attempt": 1, "error": {"type": "x", "message": "fetch failed"}}},
        {"type": "idle", "outcome": "failed"},
    ]
    put_session(base, "ses_1", second)
    put_session(base, "ses_2", [*prompt(), *reply(text(), end()), *second], at=2)
    seen = look(base, tmp_path)
    assert stops(seen) == ["tool_call", "error", "cancelled", "end_turn"]
    assert seen.responses[0].exchange.response.tool_calls[0].arguments == '{"a": 1}'
    assert "hologram (1)" in notices(seen)
    assert "model-switched (1)" in notices(seen)


def test_it_tells_of_an_idle_end(base, tmp_path):
    put_session(base, "ses_1", [{"type": "user", "text": "go"}, {"type": "assistant", "content": [text()]},
                                {"type": "idle", "outcome": "succeeded"}])
    seen = look(base, tmp_path)
    assert rules(seen) == ["transcript.absent", "transcript.inferred.turn_ended"]


@pytest.mark.parametrize("kind", ["synthetic", "system", "skill", "shell"])
def test_what_the_agent_adds_in_the_second_version_opens_no_turn(base, tmp_path, kind):
    state = {"status": "error", "input": {}, "error": {"message": "x"}}
    put_session(base, "ses_1", [
        {"type": "user", "text": "go"}, {"type": "assistant", "finish": "tool-calls", "content": [
            {"type": "tool", "id": "c1", "name": "w", "state": state}]},
        {"type": kind, "text": "note"}, {"type": "assistant", "finish": "stop", "content": [text()]}])
    seen = look(base, tmp_path)
    assert len(seen.turns) == 1
    assert seen.responses[1].exchange.request.messages[-1].text == "note"


@pytest.mark.parametrize(("name", "value", "told"), [
    ("finish", 3, "finish is a number, but text was expected"),
    ("time", {"created": "x"}, "time.created is text, but a number was expected"),
    ("state", {"status": 1}, "state.status is a number, but text was expected"),
])
def test_a_member_of_an_odd_kind_is_told(tmp_path, name, value, told):
    assert told in notices(export(tmp_path, prompt(), reply(text(), end(), **{name: value})))


@pytest.mark.parametrize("data", ["", "{", "null", "[1]", "{}", "x" * 9])
def test_a_row_that_holds_no_object_hides_no_other(base, tmp_path, data):
    put_session(base, "ses_1", [*prompt(), *reply(text(), end())])
    base.execute("INSERT INTO part VALUES ('a', 'ses_1msg_2', 'ses_1', 1, ?)", (data,))
    base.execute("INSERT INTO message VALUES ('zzz', 'ses_1', 99, 99, ?)", (data,))
    assert [each for each in stops(look(base, tmp_path)) if each == "end_turn"]


def test_another_database_is_none_of_its(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE session (id)")
    (given,) = open_paths([str(path)]).inputs
    assert given.error is not None
    assert given.format != "opencode"


# -- files -------------------------------------------------------------------------------------------------------------


def tree(root: Path, session: str, records: list[Row], **more: Any) -> Path:
    path = root / "session" / "proj" / f"{session}.json"
    files = {path: {"id": session, "projectID": "proj", "directory": "/w", "title": "A title", **more}}
    for record in records:
        owner = record.get("messageID")
        place = root / "part" / owner if owner else root / "message" / session
        files[place / f"{record['id']}.json"] = {**record, "sessionID": session} if not owner else record
    for name, value in files.items():
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_text(json.dumps(value))
    return path


def test_a_session_of_the_tree_gathers_its_messages_and_those_of_the_sessions_below(tmp_path):
    records = [*prompt(), *reply(tool(), end("tool-calls")), *reply(text(), end(), key="msg_3")]
    records[0]["id"] = "msg_1"
    path = tree(tmp_path, "ses_1", records)
    tree(tmp_path, "ses_2", [*prompt("below", key="msg_8"), *reply(text(), end(), key="msg_9")], parentID="ses_1",
         title="Sub")
    tree(tmp_path, "ses_3", [*prompt("beside", key="msg_6"), *reply(text(), end(), key="msg_7")])
    loaded = open_paths([str(path)])
    assert [turn.user_text for turn in loaded.turns] == ["go", "below"]
    assert [each.session for each in loaded.exchanges] == ["A title", "A title", "A title › Sub"]


def test_a_folder_of_the_tree_has_each_answer_once(tmp_path):
    tree(tmp_path, "ses_1", [*prompt(), *reply(text("Hello."), end("length"))])
    tree(tmp_path, "ses_2", [*prompt("below", key="msg_8"), *reply(text("Hi."), end(), key="msg_9")], parentID="ses_1")
    tree(tmp_path, "ses_3", [*prompt("lone", key="msg_6"), *reply(text("Ho."), end(), key="msg_7")], parentID="ses_0")
    loaded = open_paths([str(tmp_path)])
    assert sorted(each.response.text for each in loaded.exchanges) == ["Hello.", "Hi.", "Ho."]
    (folder, *sessions) = loaded.inputs
    assert [Path(each.path).name for each in sessions] == ["ses_1.json", "ses_3.json"]
    assert "a part of a message, which is read with its session (9)" in "".join(folder.notices)
    assert "a session that another one started, which is read with its session (1)" in "".join(folder.notices)


def test_parts_of_the_first_releases_lie_in_one_folder(tmp_path):
    path = tree(tmp_path, "ses_1", [*prompt(), *reply(text("Hello."), end())])
    for part in [*(tmp_path / "part").glob("*/*.json")]:
        part.rename(tmp_path / "part" / part.name)
    assert [each.response.text for each in open_paths([str(path)]).exchanges] == ["Hello."]


def test_a_message_alone_has_its_parts(tmp_path):
    tree(tmp_path, "ses_1", [*prompt(), *reply(text("Hello."), end("length"))])
    message = open_paths([str(tmp_path / "message/ses_1/msg_2.json")])
    assert [each.response.text for each in message.exchanges] == ["Hello."]


def lone_part(tmp_path, part):
    path = tmp_path / "opencode" / "part" / "msg_1" / "001.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"id": "p1", **part, "time": {"start": 1}}))
    return open_paths([str(path)])


@pytest.mark.parametrize(("part", "notice"), [
    (text("Hello."), "a part of a message that is not read with it, text: Hello.; no answer of a model with it"),
    ({"messageID": "msg_1", **text("Hello.")}, "not read with it, text: Hello.; no answer"),
    ({"messageID": "msg_1", **end("length")}, "not read with it, step-finish; no answer"),
])
def test_a_part_alone_that_a_user_may_have_said_is_no_answer(tmp_path, part, notice):
    loaded = lone_part(tmp_path, part)
    (given,) = loaded.inputs
    assert (loaded.exchanges, given.format, given.error) == ((), "opencode", None)
    assert any(notice in each for each in given.notices)


@pytest.mark.parametrize("part", [{"type": "reasoning", "text": "Hello."}, tool(), {"messageID": "msg_1", **tool()}])
def test_a_part_alone_that_only_a_model_makes_is_an_answer_without_an_end_of_the_provider(tmp_path, part):
    (exchange,) = lone_part(tmp_path, part).exchanges
    assert (exchange.recorder, exchange.response.id) == ("opencode", "msg_1")
    assert exchange.response.raw_stop_reason is None


@pytest.mark.parametrize(("value", "notice"), [
    ({"id": "ses_1", "projectID": "p", "directory": "/w", "title": "T"},
     "the file holds a session: T; no answer of a model"),
    ({"id": "m", "sessionID": "s", "role": "user", "summary": {"title": "Hi"}}, "a message of the user: Hi; no answer"),
    ({"id": "p", "messageID": "m", "type": "compaction"}, "a mark that the history was compacted; no answer"),
])
def test_a_file_without_an_answer_says_what_it_is(tmp_path, value, notice):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(value))
    (given,) = open_paths([str(path)]).inputs
    assert (given.error, given.format) == (None, "opencode")
    assert any(notice in each for each in given.notices)


@each_row("key", ["../../..", "/etc", ".", "a/b"])
def test_an_id_never_leads_out_of_the_store(tmp_path, key):
    path = tmp_path / "a" / "b" / "x.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"id": key, "projectID": "p", "directory": "/w"}))
    (tmp_path / "x.json").write_text(json.dumps({"id": "m", "sessionID": "s", "role": "assistant"}))
    assert open_paths([str(path)]).exchanges == ()


def test_an_export_may_leave_ids_out(tmp_path):
    value = {"info": {"id": "ses_1"}, "messages": [
        {"info": {"role": "user"}, "parts": [text("go")]},
        {"info": {"role": "assistant", "finish": "stop"}, "parts": [text("Hello."), tool()]}]}
    seen = show(json.dumps(value), tmp_path, name="export.json")
    assert [turn.run.record.user_text for turn in seen.turns] == ["go"]
    assert [facts.exchange.response.text for facts in seen.responses] == ["Hello."]


def test_an_export_of_the_second_version_is_read(tmp_path):
    value = {"info": {"id": "ses_1", "title": "A title"}, "messages": [
        {"id": "m1", "type": "user", "text": "go"},
        {"id": "m2", "type": "assistant", "tokens": TOKENS, "time": {"created": 5, "completed": 6}, "content": [
            text("Hello."), {"type": "tool", "id": "c1", "name": "w", "state": {
                "status": "completed", "input": {}, "content": [text("ok")]}}]}]}
    seen = show(json.dumps(value, indent=2), tmp_path, name="export.json")
    assert [turn.run.record.user_text for turn in seen.turns] == ["go"]
    assert stops(seen) == ["tool_call"]
    assert seen.inputs[0].about.title == "A title"


def test_an_export_that_is_cut_is_read_as_far_as_it_goes(tmp_path):
    export(tmp_path, prompt(), reply(text("Hello."), end()), reply(text("cut here"), key="msg_3"))
    data = (tmp_path / "export.json").read_text()
    seen = show(data[: data.index("cut here")], tmp_path, name="export.json")
    assert [facts.exchange.response.text for facts in seen.responses] == ["Hello.", None]
    assert "is cut" in notices(seen)


def test_the_events_of_a_run_are_read(tmp_path):
    parts = [START, text(), end("length")]
    lines = [{"type": part["type"].replace("-", "_"), "sessionID": "ses_1", "timestamp": 5,
              "part": {"messageID": "msg_2", "id": f"p{at}", **part}} for at, part in enumerate(parts)]
    seen = show("".join(f"{json.dumps(line)}\n" for line in lines), tmp_path, name="run.jsonl")
    assert stops(seen) == ["max_tokens"]


def test_the_databases_of_both_are_found(tmp_path):
    expected = []
    for at, (name, agent) in enumerate([(".local/share/opencode/opencode.db", "opencode"),
                                        (".local/share/opencode/opencode-dev.db", "opencode"),
                                        ("Library/Application Support/opencode/opencode.db", "opencode"),
                                        (".local/share/kilo/kilo.db", "Kilo CLI")]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
        os.utime(path, (100 - at, 100 - at))
        expected.append((str(path), agent))
    (tmp_path / ".local/share/opencode/opencode.db-wal").write_bytes(b"{}")
    assert [(each.path, each.agent) for each in transcripts({"HOME": str(tmp_path)})] == expected
    elsewhere = transcripts({"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "none")})
    assert [each.path for each in elsewhere] == [str(tmp_path / "Library/Application Support/opencode/opencode.db")]


@each_row(("variable", "agent"), [("OPENCODE_DB", "opencode"), ("CLOUDTAP_DB", "claude-tap")])
def test_a_variable_may_name_the_database_itself(tmp_path, variable, agent):
    path = tmp_path / "else [1]" / "my.base"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"{}")
    (path.parent / "other.db").write_bytes(b"{}")
    (found,) = transcripts({"HOME": str(tmp_path), variable: str(path)})
    assert (found.path, found.agent) == (str(path), agent)
    assert transcripts({"HOME": str(tmp_path), variable: str(tmp_path / "none.db")}) == []


def test_the_wire_view_shows_the_rows_of_a_database(base, tmp_path):
    put_session(base, "ses_1", [*prompt(), *reply(START, text("Half"), end("length"))])
    (facts,) = look(base, tmp_path).responses
    body = facts.exchange.body
    slices, what = BODY_FORMS["events"](facts.exchange)
    assert what == f"{len(slices)} rows of opencode"
    rows = [json.loads(body[one.start : one.end]) for one in slices]
    assert [row.get("type") for row in rows if "messageID" in row] == ["text", "step-finish"]
    assert [one.label for one in slices] == [f"row {at} of {len(rows)}" for at in range(1, len(rows) + 1)]
    assert any('"step-finish"' in line for line in sheet_lines(facts))


def sheet_lines(facts) -> list[str]:
    sheet = wire(facts, "events")
    return ["".join(span.text for span in sheet.line(index)) for index in range(len(sheet))]


def test_the_wire_view_shows_rows_of_several_lines_and_a_row_that_is_cut():
    body = b'{\n "a": "\xc3\xa9"\n}\n{"b": 1}\n{"c": '
    assert [body[one.start : one.end] for one in record_slices(body)] == [
        b'{\n "a": "\xc3\xa9"\n}', b'{"b": 1}', b'{"c": ']
    assert record_slices(b'{"b": 1}') == [Slice(0, 8)]


def test_a_report_says_the_file_of_a_notice_once(base, tmp_path):
    put_session(base, "ses_1", [*prompt(), *reply(text(), end())])
    page = markdown(blocks(look(base, tmp_path)))
    notice = next(line for line in page.splitlines() if "the AI SDK's words" in line)
    assert notice.count("opencode.db") == 1


@pytest.mark.parametrize("mask", ["REDACTED", "[redacted]", "***", ""])
def test_ids_that_were_masked_are_no_repeats(tmp_path, mask):
    first = [{**row, "id": mask, **({"messageID": mask} if "messageID" in row else {})}
             for row in reply(START, tool(key=mask), tool("error", key=mask, error="no such file"), end("tool-calls"))]
    last = [{**row, "id": mask, **({"messageID": mask} if "messageID" in row else {})}
            for row in reply(START, text(), end(), key="msg_3")]
    seen = export(tmp_path, prompt(), first, last)
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    calls = [verdict.call.id for verdict in seen.responses[0].verdicts]
    assert len(set(calls)) == 2
    results = seen.responses[1].exchange.request.messages[0].results
    assert [part.call_id for part in results] == calls
    assert [part.text for part in results] == ["wrote it", "no such file"]
    assert "repeat" not in "\n".join(seen.inputs[0].notices)


@pytest.mark.parametrize(("parts", "finish"), [
    ((START, text("Done."), end()), "stop"),
    ((START, {"type": "reasoning", "text": "hm"}, text("Done."), end()), "stop"),
    ((START, text("I write."), tool(), end("tool-calls")), "tool-calls"),
])
def test_an_export_that_is_cut_within_a_message_shows_no_fault_of_the_model(tmp_path, parts, finish):
    """opencode writes the message with its end before the parts."""
    (question, typed), (answer, *rest) = prompt(), reply(*parts, finish=finish, tokens=TOKENS)
    whole = json.dumps({"info": {"id": "s"}, "messages": [{"info": question, "parts": [typed]},
                                                          {"info": answer, "parts": rest}]})
    for at in share(range(whole.index('"parts"', whole.index('"finish"')) + 10, len(whole))):
        if whole[at - 2 : at + 1].isalnum():
            continue  # within a word, as the cut behind its first letter
        seen = show(whole[:at], tmp_path, name="export.json")
        assert not {"EMPTY ANSWER", "REASONING ONLY", "NO CALL"} & set(words(seen)), whole[at - 40 : at]


def test_a_message_without_tokens_and_parts_is_empty(tmp_path):
    (question, typed), (answer,) = prompt(), reply(finish="stop", tokens={**TOKENS, "output": 0})
    seen = show(json.dumps({"info": {"id": "s"}, "messages": [{"info": question, "parts": [typed]},
                                                               {"info": answer, "parts": []}]}), tmp_path, name="e")
    assert words(seen) == ["EMPTY ANSWER"]


# -- a run that failed -------------------------------------------------------------------------------------------------


FAILURE = {"name": "APIError", "data": {"message": "Too many requests", "statusCode": 429, "isRetryable": True}}


def run(*parts: Row, error: Row = FAILURE) -> str:
    """The events of a run: each part of one message, then the error that ended the run."""
    rows: list[Row] = [{"type": part["type"].replace("-", "_"), "sessionID": "ses_1", "part": {
        "id": f"prt_{at}", "sessionID": "ses_1", "messageID": "msg_2", **part}} for at, part in enumerate(parts)]
    return "".join(json.dumps(row) + "\n" for row in [*rows, {"type": "error", "sessionID": "ses_1", "error": error}])


@each_row(("parts", "expected"), [
    ((), ["error"]),
    (({"type": "step-start"},), ["error"]),
    (({"type": "step-start"}, text("Half an")), ["error"]),
    (({"type": "step-start"}, tool(), end("tool-calls")), ["tool_call", "error"]),
    (({"type": "step-start"}, tool(), text(), end("stop")), ["tool_call", "error"]),
])
def test_the_error_that_ended_a_run_is_the_end_of_its_last_request(tmp_path, parts, expected):
    seen = show(run(*parts), tmp_path)
    assert (seen.inputs[0].format, stops(seen)) == ("opencode", expected)
    last = seen.responses[-1]
    assert (last.exchange.response.error.message, last.exchange.response.error.retryable) == ("Too many requests", True)
    assert words(seen)[-1] == "ERROR"
    assert not [each for each in seen.inputs[0].notices if "unknown type" in each]


@each_row(("parts", "expected", "word"), [
    ((START,), ["unknown"], "END NOT RECORDED"),
    ((START, START), ["interrupted", "unknown"], "END NOT RECORDED"),
    ((START, tool(), end("tool-calls"), START), ["tool_call", "unknown"], "END NOT RECORDED"),
    ((START, tool(), end("tool-calls"), START, text(), end("stop")), ["tool_call", "end_turn"], "COMPLETE"),
])
def test_a_run_that_was_killed_within_an_answer_shows_that_it_began(tmp_path, parts, expected, word):
    rows = run(*parts).splitlines(keepends=True)[:-1]
    seen = show("".join(rows), tmp_path)
    assert (stops(seen), words(seen)) == (expected, [word])


def test_a_run_that_was_aborted_after_its_answer_has_no_further_answer(tmp_path):
    rows = run({"type": "step-start"}, tool(), end("tool-calls"), error={"name": "MessageAbortedError", "data": {}})
    seen = show(rows, tmp_path)
    assert (stops(seen), words(seen)) == (["tool_call"], ["CANCELLED"])
