"""`inspector formats`, and the one line about a file that no importer takes."""

from __future__ import annotations

import json
import sqlite3

import pytest

from inspector.sessions.importers import IMPORTERS
from loop_core.wire import FORMATS


def test_every_format_is_a_row_of_the_table(inspector):
    said = inspector("formats")
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= 80
    rows = {line.split()[0]: line for line in said.out.splitlines() if line.strip()}
    for name, row in IMPORTERS.items():
        assert (name in rows) is (name != "known")
        if name != "known":
            assert row.title.split()[0] == rows[name][48:].split()[0]
    for name in FORMATS:
        assert name in said.out.partition("Wire formats:")[2]
    assert "provider's   cap, usage        Claude Code transcript" in rows["claude-code"]
    assert "state only   usage             Codex CLI rollout" in rows["codex"]
    assert "none                           threads of Zed's agent" in rows["zed"]


@pytest.mark.parametrize("word", ["claude-code", "Claude Code", "cowork", "iflow"])
def test_a_format_is_found_by_its_name_its_title_or_an_agent(inspector, word):
    said = inspector("formats", word).out
    assert said.startswith("Claude Code transcript (claude-code)\n  begins with    lines with ")
    assert "  written to     Claude Code: ~/.claude/projects/*/*.jsonl (CLAUDE_CONFIG_DIR)\n" in said
    assert said.count("\n  begins with") == 1


def test_the_folders_of_editors_stand_once_and_variables_share_a_line(inspector):
    said = inspector("formats", "zoo").out
    tasks = "EDITOR/globalStorage/zoocodeorganization.zoo-code/tasks/*/api_conversation_history.json"
    assert said.count(tasks) == 1
    assert said.count("~/.config/Code/User\n") == 1
    assert "*.messages.json (CLINE_DIR, CLINE_DATA_DIR, CLINE_SESSION_DATA_DIR)\n" in said
    assert "EDITOR " not in inspector("formats", "codex").out


def test_several_words_show_the_formats_of_all(inspector):
    said = inspector("formats", "har", "codex").out
    assert [line for line in said.splitlines() if line[:1].strip()] == [
        "HAR file (har)", "Codex CLI rollout (codex)", "stream of codex exec --json (codex-exec)"]
    assert [row["name"] for row in json.loads(inspector("formats", "zed", "--json").out)["files"]] == ["zed"]


def test_a_word_that_names_no_format_is_named(inspector):
    for more in ((), ("--json",)):
        said = inspector("formats", "har", "wordstar", *more)
        assert (said.code, said.out) == (2, "")
        assert said.err == (
            "inspector: no format and no agent is named wordstar; `inspector formats` lists the formats\n")


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
