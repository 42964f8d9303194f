"""A file whose beginning is lost is of the format that its other rows show, and no other is taken for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.shapes import CLAUDE, CODEX, CURSOR, DROID, KIMI, PI, QWEN

Row = dict[str, Any]

GEMINI: list[Row] = [
    {"sessionId": "s", "projectHash": "p"},
    {"id": "m1", "timestamp": "2026-01-01T00:00:00Z", "type": "user", "content": [{"text": "go"}]},
    {"id": "m2", "timestamp": "2026-01-01T00:00:01Z", "type": "gemini", "content": "hi", "model": "m"},
]
COPILOT: list[Row] = [
    {"type": "session.start", "data": {"selectedModel": "m"}, "id": "1", "parentId": None},
    {"type": "user.message", "data": {"content": "go"}, "id": "2", "parentId": "1"},
    {"type": "assistant.message", "data": {"messageId": "m", "content": "hi"}, "id": "3", "parentId": "2"},
]
ROWS = {
    "claude-code": CLAUDE, "pi": PI, "droid": DROID, "cursor": CURSOR, "codex": CODEX, "kimi": KIMI, "qwen": QWEN,
    "gemini-cli": GEMINI, "copilot": COPILOT,
}


def lines(*rows: Row) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def without_its_header(rows: list[Row]) -> bytes:
    return lines(*rows[1:])


def from_within_its_header(rows: list[Row]) -> bytes:
    return lines(*rows)[len(lines(rows[0])) // 2 :]


def behind_two_cut_rows(rows: list[Row]) -> bytes:
    return (lines(rows[0])[:12] + b"\n") * 2 + lines(*rows[1:])


@each_row("cut", [without_its_header, from_within_its_header, behind_two_cut_rows])
@each_row("name", ROWS)
def test_rows_without_their_beginning_are_read(name: str, cut: Callable[[list[Row]], bytes], tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(cut(list(ROWS[name])))
    (given,) = open_paths([str(path)]).inputs
    assert (given.format, given.error, given.responses > 0) == (name, None, True)


STORE = {"version": 1, "messages": [{"role": "user", "content": "go", "ts": 1}]}


@pytest.mark.parametrize(("content", "name"), [
    (STORE | {"sessionId": "s", "agent": "lead"}, "roo"),
    (STORE, "body"),
    (STORE | {"sessionId": "s"}, "body"),
])
def test_a_store_of_cline_under_another_name_is_known_by_its_session_and_agent(content: Row, name: str):
    assert choose(json.dumps(content).encode(), "copy.json") == name


@each_row("near", [
    [{"type": "message", "id": "a", "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}}],
    [{"type": "message", "id": "a", "parentId": "b", "message": "hi"}],
    [{"type": "message", "message": {"role": "user", "content": [{"type": "tool_result", "content": "x"}]}}],
    [{"type": "gemini", "id": "a", "content": "hi"}],
    [{"type": "gemini", "timestamp": "t", "content": "hi"}],
])
def test_rows_that_only_resemble_a_sessions_are_not_taken_for_it(near: list[Row]):
    assert choose(lines(*near, *near), "rows.jsonl") not in ("pi", "droid", "gemini-cli")


def test_rows_of_texts_alone_are_of_the_agent_in_whose_folder_they_are():
    said = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}
    rows = lines({"type": "message", "id": "a", "parentId": "b", "message": said})
    assert choose(rows, "/home/x/.factory/sessions/w/a.jsonl") == "droid"
    assert choose(rows, "/home/x/.pi/a.jsonl") == "pi"


@pytest.mark.parametrize("data", [
    b"a text before it\n\n" + lines(*CLAUDE[1:]),
    b"not JSON\n" + json.dumps(CLAUDE[1]).encode()[:40],
    b'{"a": 1,\n{"b": 2,\n',
], ids=["an empty line", "a cut row", "no whole row"])
def test_only_a_whole_row_begins_a_file_after_its_first_line(data: bytes):
    assert choose(data, "rows.jsonl") in (None, "body")


def test_an_event_stream_and_a_list_keep_their_beginning():
    event = b'event: message_start\ndata: {"type": "message_start", "message": {"type": "message"}}\n\n'
    assert choose(event, "a.sse") == choose(b"\xef\xbb\xbf" + event, "a.sse") == "body"
