"""`inspector formats`, and the one line about a file that no importer takes."""

from __future__ import annotations

import json
import sqlite3

import pytest

from inspector.sessions.importers import IMPORTERS
from loop_core.wire import FORMATS


def test_every_format_is_listed_with_what_it_keeps(inspector):
    said = inspector("formats")
    assert said.code == 0
    for name, row in IMPORTERS.items():
        assert (f"{row.title} ({name})" in said.out) is (name != "known")
    for name in FORMATS:
        assert f"  {name}\n" in said.out
    assert "Claude Code: ~/.claude/projects/*/*.jsonl (CLAUDE_CONFIG_DIR)" in said.out


def test_the_same_as_a_document(inspector):
    value = json.loads(inspector("formats", "--json").out)
    assert value["wire"] == list(FORMATS)
    kept = {row["name"]: row["keeps"] for row in value["files"]}
    assert {row["name"] for row in value["files"] if row["reads_on"]} == {
        name for name, row in IMPORTERS.items() if row.grows}
    assert kept["har"] == {"stop_reason": "provider", "cap": True, "usage": True, "wire": True}
    assert kept["pi"]["stop_reason"] == "recorder"
    assert next(row for row in value["files"] if row["name"] == "claude-code")["folders"] == [
        {"agent": "Claude Code", "variable": "CLAUDE_CONFIG_DIR", "path": "~/.claude/projects/*/*.jsonl"},
        {"agent": "Claude Code", "variable": "XDG_CONFIG_HOME", "path": "~/.config/claude/projects/*/*.jsonl"},
        *({"agent": "Claude Cowork", "variable": "",
           "path": f"~/{root}/Claude/local-agent-mode-sessions/*/*/*/.claude/projects/*/*.jsonl"}
          for root in ("Library/Application Support", "AppData/Roaming")),
        {"agent": "iFlow", "variable": "", "path": "~/.iflow/projects/*/*.jsonl"}]


@pytest.mark.parametrize(("content", "says"), [
    ('{"a": 1, "sessionId": "x"}',
     ["JSON of no API", "an object with a, sessionId", "Claude Code transcript (expects"]),
    ('{"a": 1}\n{"b": 2}\n', ["JSON lines of no known format (the first: an object with a)", "no mark of"]),
    ("[1, 2]", ["a list; its first element is not an object"]),
    ("[]", ["an empty list"]),
    ("{}", ["an empty object"]),
])
def test_a_file_that_nobody_takes_is_one_line_about_what_was_tried(inspector, tmp_path, content, says):
    path = tmp_path / "x.json"
    path.write_text(content)
    said = inspector("explain", path)
    assert said.code == 2
    assert said.err.count("\n") == 1
    for part in (*says, "`inspector formats` lists them"):
        assert part in said.err


def test_a_database_of_somebody_else_is_named_by_its_tables(inspector, tmp_path):
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE books (title)")
    database.close()
    said = inspector("explain", path)
    assert said.code == 2
    assert "a database with the tables books: tried: OpenTelemetry traces and logs (expects" in said.err
    assert "opencode or Kilo CLI session (expects a database" in said.err


def test_keys_that_hold_a_credential_or_an_escape_are_shown_masked(inspector, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"sk-proj-abcdefghij0123456789abcdefghij": 1, "\x1b[31mred": 2}))
    said = inspector("explain", path)
    assert "abcdefghij0123456789" not in said.err
    assert "\x1b" not in said.err
