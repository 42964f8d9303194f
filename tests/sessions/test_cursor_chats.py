"""Chats of Cursor's editor: order, calls with their results, errors, the state of a chat, subagents, damage."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.report.turn_index import state_of
from inspector.sessions import intake, open_paths
from inspector.sessions.folders import transcripts
from inspector.sessions.importers.database import LARGEST
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import View, places, rules, stops, view_file, words

Row = dict[str, Any]
SECRET = "ey" + "J0b2tlbiI6ImN1cnNvciJ9"


def store(folder: Path, *chats: tuple[Row, dict[str, Any]], heads: dict[str, Row] | None = None) -> Path:
    """A database with these chats, each with its messages by id; messages stand in another order than they came."""
    path = folder / "state.vscdb"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        base.execute("INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', ?)", (SECRET,))
        base.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        if heads is not None:
            base.execute("CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, value TEXT)")
            base.executemany("INSERT INTO composerHeaders VALUES (?, ?)",
                             [(key, json.dumps(value)) for key, value in heads.items()])
        for chat, messages in chats:
            key = chat["composerId"]
            for name, value in sorted(messages.items(), reverse=True):
                held = value if value is None or isinstance(value, bytes) else json.dumps(value)
                base.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"bubbleId:{key}:{name}", held))
            base.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"composerData:{key}", json.dumps(chat)))
        base.execute("INSERT INTO cursorDiskKV VALUES ('composerData:gone', NULL)")
    base.close()
    return path


def chat(*ids: str, key: str = "c1", status: str = "none", **more: Any) -> Row:
    return {"_v": 16, "composerId": key, "name": "Look", "status": status, "modelConfig": {"modelName": "m-1"},
            "blobEncryptionKey": "k" * 40, "fullConversationHeadersOnly": [{"bubbleId": each} for each in ids], **more}


def said(text: str, **more: Any) -> Row:
    return {"_v": 3, "type": 2, "bubbleId": text, "text": text, "createdAt": "2026-09-01T17:52:55.268Z", **more}


def call(key: str, status: Any = "completed", raw: Any = '{"path": "a"}', **more: Any) -> Row:
    return {"_v": 3, "type": 2, "text": "", "capabilityType": 15, "toolFormerData": {
        "toolCallId": key, "name": "read_file", "status": status, "rawArgs": raw, "modelCallId": "",
        **({"result": '{"contents": "x"}'} if status == "completed" else {}), **more}}


GO = {"_v": 3, "type": 1, "text": "go", "createdAt": "2026-09-01T17:52:50Z"}
THOUGHT = {"_v": 3, "type": 2, "text": "", "capabilityType": 30, "createdAt": "2026-09-01T17:52:53Z",
            "thinking": {"text": "hm", "signature": "s"}}
DONE = said("Done.")


def look(folder: Path, *messages: Any, **more: Any) -> View:
    """The view of one chat with these messages."""
    held = {f"b{number}": message for number, message in enumerate(messages)}
    return view_file(store(folder, (chat(*held, **more), held)))


def test_a_chat(tmp_path):
    seen = look(tmp_path, GO, THOUGHT, said("I look."), call("t1"), call("t2"), DONE, status="completed")
    assert stops(seen) == ["tool_call", "end_turn"]
    assert places(seen) == [["request", "tool_result"]]
    first, last = (facts.exchange for facts in seen.responses)
    assert [part.text for part in first.response.parts if isinstance(part, ReasoningPart)] == ["hm"]
    assert (first.response.text, first.response.model, first.session) == ("I look.", "m-1", "Look")
    assert [(each.id, each.arguments) for each in first.response.tool_calls] == [
        ("t1", '{"path": "a"}'), ("t2", '{"path": "a"}')], "calls without a text in between are one answer"
    assert [each.call_id for each in last.request.messages[-1].results] == ["t1", "t2"]
    assert first.started == "2026-09-01T17:52:53Z"
    assert "turn_ended" in rules(seen, 1)[-1]


def test_nothing_of_the_credentials_is_read(tmp_path):
    path = store(tmp_path, (chat("b0", "b1"), {"b0": GO, "b1": DONE}))
    opened = open_paths([str(path)])
    assert len(opened.exchanges) == 1
    assert SECRET not in repr(opened)
    assert "k" * 40 not in repr(opened)


@pytest.mark.parametrize(("ids", "answers"), [(("r1", "r1"), 1), (("r1", "r2"), 2), (("r1", ""), 1), (("", ""), 1)])
def test_the_id_of_a_request_divides_calls(ids, answers, tmp_path):
    calls = [call(f"t{number}", modelCallId=each) for number, each in enumerate(ids)]
    assert len(look(tmp_path, GO, *calls, DONE).responses) == answers + 1


def test_a_message_of_the_user_between_calls_divides_them(tmp_path):
    assert len(look(tmp_path, GO, call("t1"), {**GO, "text": "and b"}, call("t2"), DONE).responses) == 3


def test_a_call_that_is_not_complete_is_held(tmp_path):
    seen = look(tmp_path, GO, said("I look."), call("t1", "loading", '{"path": "a'))
    (held,) = seen.responses[0].exchange.response.tool_calls
    assert (held.closed, held.arguments) == (False, '{"path": "a')
    assert stops(seen) != ["tool_call"]
    assert words(seen) != ["COMPLETE"]


def test_a_cut_call_that_ran_is_an_alarm(tmp_path):
    assert words(look(tmp_path, GO, call("t1", raw='{"path": "a'), DONE, status="completed")) == ["CUT CALL RUN"]


def test_a_cut_call_that_failed_did_not_run(tmp_path):
    seen = look(tmp_path, GO, call("t1", "error", '{"path": "a', error="Invalid arguments"), DONE)
    assert list(seen.responses[0].exchange.refusals) == ["t1"]
    assert "CUT CALL RUN" not in words(seen)
    assert not look(tmp_path, GO, call("t1", "error", error="no file"), DONE).responses[0].exchange.refusals


@pytest.mark.parametrize(("status", "more", "failed", "denied"), [
    ("completed", {}, False, False), ("error", {"error": "no such file"}, True, False),
    ("cancelled", {}, False, True), ("completed", {"userDecision": "rejected"}, False, True),
    ("completed", {"userDecision": "accepted"}, False, False),
])
def test_how_a_call_ended(status, more, failed, denied, tmp_path):
    seen = look(tmp_path, GO, call("t1", status, **more), DONE)
    (result,) = seen.responses[1].exchange.request.messages[-1].results
    assert result.is_error is failed
    assert (list(seen.responses[0].exchange.refusals) == ["t1"]) is denied


@pytest.mark.parametrize(("raw", "made", "arguments"), [
    ("", '{"targetFile": "a"}', '{"targetFile": "a"}'), ("{}", {"targetFile": "a"}, '{"targetFile":"a"}'),
    (None, '{"targetFile": "a"}', '{"targetFile": "a"}'), ("{}", None, "{}"), (None, None, None),
])
def test_arguments_that_cursor_made(raw, made, arguments, tmp_path):
    seen = look(tmp_path, GO, call("t1", raw=raw, params=made), DONE)
    (found,) = seen.responses[0].exchange.response.tool_calls
    assert (found.arguments, found.form.value) == (arguments, "object")


@each_row(("status", "stop"), (("completed", "end_turn"), ("aborted", "cancelled"), ("generating", "unknown")))
def test_the_state_of_a_chat(status, stop, tmp_path):
    assert stops(look(tmp_path, GO, DONE, status=status)) == [stop]


def test_an_error(tmp_path):
    failed = {"type": 2, "text": "", "errorDetails": {"error": {"details": {"title": "Busy", "detail": "try later"}}}}
    seen = look(tmp_path, GO, failed)
    assert words(seen) == ["ERROR"]
    assert seen.responses[0].exchange.response.error.message == "Busy: try later"


def test_an_error_in_another_form(tmp_path):
    seen = look(tmp_path, GO, {"type": 2, "errorDetails": {"message": "No"}})
    assert seen.responses[0].exchange.response.error.message == "No"


def test_messages_without_a_part_of_an_exchange_are_counted(tmp_path):
    seen = look(tmp_path, GO, DONE, {"type": 2, "text": ""}, {"type": 2, "text": "Summarised.", "capabilityType": 22},
                {"type": 7, "text": "x"})
    notices = "\n".join(seen.inputs[0].notices)
    assert "known records that hold no exchange: message without content (1), summary (1)" in notices
    assert "7 (1)" in notices


def test_messages_that_are_lost_damaged_or_of_an_odd_type(tmp_path):
    messages = {"b0": GO, "b1": {**call("t1", 7), "text": ["x"]}, "b2": b"{\"type\": 2, \"text\": \"Two.\"", "b3": None}
    path = store(tmp_path, (chat("b0", "b1", "b2", "b3", "b4"), messages), (chat(key="c2"), {}))
    (given,) = open_paths([str(path)]).inputs
    assert [each.why for each in given.skipped] == ["2 messages of a chat are not in the database"]
    notices = "\n".join(given.notices)
    assert "text is a list, but text was expected" in notices
    assert "toolFormerData.status is a number, but text was expected" in notices
    assert given.error is None


def test_titles_and_subagents(tmp_path):
    path = store(tmp_path, (chat("b0", "b1"), {"b0": GO, "b1": DONE}),
                 (chat("b0", key="c2", name=None), {"b0": said("Below.", modelInfo={"modelName": "m-2"})}),
                 (chat("b0", key="c3", name="Own", subagentInfo={"parentComposerId": "c1"}), {"b0": said("Too.")}),
                 heads={"c1": {"name": "Main"}, "c2": {"name": "Explore", "subagentInfo": {"parentComposerId": "c1"}}})
    found = open_paths([str(path)]).exchanges
    assert [each.session for each in found] == ["Main › Own", "Main › Explore", "Main"], "the newest first"
    assert [each.response.model for each in found] == ["m-1", "m-2", "m-1"]


def test_of_a_large_database_the_newest_chats_are_read(tmp_path, monkeypatch):
    path = store(tmp_path, *((chat("b0", "b1", key=f"c{number}"),
                              {"b0": GO, "b1": said(f"Answer {number}." + " " * 4500)}) for number in range(4)))
    monkeypatch.setattr(intake, "_most", 4000)
    assert path.stat().st_size > intake.most()
    (given,) = open_paths([str(path)]).inputs
    assert [each.why for each in given.skipped] == [
        "3 older chats were not read, because the newer ones have more than 4,000 bytes: --max-bytes N reads more"]
    assert [each.response.text.rstrip() for each in open_paths([str(path)]).exchanges] == ["Answer 3."]
    monkeypatch.setattr(intake, "_most", path.stat().st_size // LARGEST - 1)
    why = f"state.vscdb: more than {intake.most():,} bytes, which is not read: --max-bytes N reads more"
    assert why in (open_paths([str(path)]).inputs[0].error or "")


def test_a_chat_of_an_older_version(tmp_path):
    older = {"composerId": "c1", "conversation": [GO, THOUGHT, {**THOUGHT, "thinking": "more"}, DONE]}
    (exchange,) = open_paths([str(store(tmp_path, (older, {})))]).exchanges
    assert exchange.response.text == "Done."
    assert [part.text for part in exchange.response.parts if isinstance(part, ReasoningPart)] == ["hm", "more"]


@each_row("name", ("a.vscdb", "a.db", "a.sqlite", "a.sqlite3"))
def test_the_log_beside_a_database_belongs_to_it(name, tmp_path):
    path = store(tmp_path, (chat("b0", "b1"), {"b0": GO, "b1": DONE})).rename(tmp_path / name)
    assert [Path(row[0]).name for row in state_of(str(path))] == [name, f"{name}-wal"]


@each_row("folder", (".config", "Library/Application Support", "AppData/Roaming"))
def test_the_database_is_found(folder, tmp_path):
    path = tmp_path / folder / "Cursor/User/globalStorage"
    path.mkdir(parents=True)
    store(path, (chat("b0"), {"b0": GO}))
    assert [(each.path, each.agent) for each in transcripts({"HOME": str(tmp_path)})] == [
        (str(path / "state.vscdb"), "Cursor")]


ODD = (None, True, -1, 1.5, "\ud800", "", [], {}, [1], {"a": []})
"""Values of each type of JSON."""


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_any_value_in_any_place_costs_no_other_chat(odd, tmp_path):
    tool = call("t1", params="{}", error=None, userDecision="accepted")
    failed = {"type": 2, "text": "x", "thinking": {"text": "y"}, "modelInfo": {"modelName": "m"}, "errorDetails": {
        "error": {"details": {"title": "a", "detail": "b"}}, "message": "c"}, "createdAt": "2026-09-01T17:52:55Z"}
    head = {"name": "n", "subagentInfo": {"parentComposerId": "c0"}}
    rows = {"chat": chat("b0", "b1", "b2", **head), "b1": tool, "b2": failed, "head": head}
    changes = [(which, *place) for which, value in rows.items() for place in _places(value)]
    chats, heads = [], {}
    for number, (which, *place) in enumerate(changes):
        key = f"c{number}"
        values = {"chat": chat("b0", "b1", "b2", key=key, **head), "b0": GO, "b1": tool, "b2": failed, "head": head}
        values[which] = _with(values[which], odd, *place)
        about = {**values["chat"], "composerId": key} if isinstance(values["chat"], dict) else {"composerId": key}
        chats.append((about, {name: values[name] for name in ("b0", "b1", "b2")}))
        heads[key] = values["head"]
    whole = chat("b0", "b1", key="whole")
    (given,) = open_paths([str(store(tmp_path, *chats, (whole, {"b0": GO, "b1": DONE}), heads=heads))]).inputs
    assert given.error is None
    assert given.responses > len(changes)


def _places(value: Any, *place: Any) -> Iterator[tuple[Any, ...]]:
    yield place
    for name, held in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(held, *place, name)


def _with(value: Any, odd: Any, *place: Any) -> Any:
    if not place:
        return odd
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = _with(value[place[0]], odd, *place[1:])
    return copy
