"""The format of a file whose first request holds images of several MB."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.file_format import LONG_HEAD
from inspector.sessions.importers import recognition
from inspector.sessions.importers.recognition import recognise
from inspector.sessions.importers.records import list_lines
from tests.scenes.recordings import chat, lines, pair_of, user

SCREENSHOT = "data:image/png;base64," + "iVBORw0K" * (LONG_HEAD // 8 + 1)
PASTED = "# Notes \\\" of \\n" * (LONG_HEAD // 16 + 1)


def request(content: str) -> dict[str, Any]:
    return {"messages": [user(content)], "model": "m", "max_tokens": 50}


def pair(content: str) -> dict[str, Any]:
    return {"request": request(content), "response": chat("It is a cat.")}


@pytest.mark.parametrize("written", [
    lambda: lines(pair_of([user(SCREENSHOT)], chat("It is a cat.")), pair_of([user("And?")], chat("It is a cat."))),
    lambda: "\n".join(json.dumps(pair(each)) for each in (SCREENSHOT, "And?")).encode(),
    lambda: "\n".join(json.dumps(pair(each)) for each in (PASTED, "And?")).encode(),
    lambda: json.dumps([pair(SCREENSHOT), pair("And?")], indent=1).encode(),
], ids=["session file", "pairs in lines", "pasted text", "pairs in a list"])
def test_a_first_request_longer_than_every_head_is_read(tmp_path: Path, written: Any) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(written())
    recording = open_paths([str(path)])
    assert [each.error for each in recording.inputs] == [None]
    assert [each.response.text for each in recording.exchanges] == ["It is a cat."] * 2


def test_a_long_first_line_of_no_known_format_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes("\n".join(json.dumps({"note": each}) for each in (SCREENSHOT, "And?")).encode())
    error = open_paths([str(path)]).inputs[0].error or ""
    assert "JSON of no API and no session format that is known (an object with note)" in error


def test_a_backslash_before_a_quotation_mark_ends_no_string() -> None:
    text = json.dumps({"a": 'x\\"' * LONG_HEAD + "\\", "model": "m", "b": "\\"})
    shortened = [*recognition.beginnings(text.encode())][2:]
    assert [json.loads(each) for each in shortened] == [{"a": "", "model": "m", "b": "\\"}]


def test_escapes_in_a_long_string_cost_no_memory() -> None:
    """Each was a place to which the search might return: a text of 30 MB cost 1.8 GB."""
    text = b'{"a": "' + b"\\n" * LONG_HEAD + b'", "model": "m"}'
    tracemalloc.start()
    try:
        assert [*recognition.beginnings(text)][2:] == [b'{"a": "", "model": "m"}']
        assert tracemalloc.get_traced_memory()[1] < 6 * len(text)
    finally:
        tracemalloc.stop()


def test_the_rows_of_a_list_keep_their_lines():
    rows = [{"a": 1}, {"a": {"b": 2}}]
    assert list_lines(json.dumps(rows, indent=1).encode()).split(b"\n") == [
        b"", b'{   "a": 1  }', b"", b"", b'{   "a": {    "b": 2   }  }', b""]
    assert list_lines(b'[{"a": 1}, {"a": 2}, {"a"') == b'{"a": 1}\n{"a": 2}\n{"a"', "a cut file stays cut"


def test_a_list_of_bare_messages_may_be_anything():
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    rows = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    assert recognise(json.dumps(rows).encode(), "x.json") == "body"
    stamped = [{**row, "ts": "2026-01-02T03:04:05Z"} for row in rows]
    assert recognise(json.dumps(stamped).encode(), "x.json") != "roo", "Roo Code's times are numbers"
