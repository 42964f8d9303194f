"""Where agents' transcripts are looked for: by variable or below home, the newest first, and nothing is opened."""

import os
from pathlib import Path

import pytest

from inspector.sessions import folders
from inspector.sessions.folders import transcripts
from tests.scenes.rows import each_row


def write(path: Path, at: float) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x" * 5)
    os.utime(path, (at, at))
    return str(path)


@pytest.fixture(autouse=True)
def no_recordings(tmp_path, monkeypatch):
    """Recordings of whoever runs the tests are in a folder that the system names, whatever the environment says."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))


def test_a_database_is_as_new_as_its_log(tmp_path):
    base = write(tmp_path / ".local/share/opencode/opencode.db", 100)
    other = write(tmp_path / ".claude/projects/-w-a/s1.jsonl", 300)
    write(tmp_path / ".local/share/opencode/opencode.db-wal", 500)
    found = transcripts({"HOME": str(tmp_path)})
    assert [(each.path, each.modified) for each in found] == [(base, 500), (other, 300)]


def test_recordings_of_agents_are_listed_among_their_own_files(tmp_path):
    chat = write(tmp_path / ".qwen/projects/w/chats/a.jsonl", 300)
    newer, older = (write(tmp_path / f"data/recordings/{at}-qwen.jsonl", at) for at in (400, 200))
    write(tmp_path / "data/live/500-openai_chat.jsonl", 500)
    found = transcripts({"HOME": str(tmp_path), "LOOP_INSPECTOR_DATA": str(tmp_path / "data")})
    assert [(each.path, each.agent) for each in found] == [(newer, ""), (chat, "Qwen Code"), (older, "")]


def test_a_file_is_listed_once(tmp_path):
    chat = write(tmp_path / ".qwen/projects/w/chats/a.jsonl", 300)
    day = tmp_path / ".codex/sessions/2026/03/04"
    plain, packed = write(day / "rollout-a.jsonl", 200), write(day / "rollout-b.jsonl.zst", 100)
    write(day / "rollout-a.jsonl.zst", 400)
    assert [each.path for each in transcripts({"HOME": str(tmp_path)})] == [chat, plain, packed]
    assert [each.path for each in transcripts({"QWEN_HOME": str(tmp_path / ".qwen")})] == [chat]


def test_each_agents_own_folder_is_looked_in(tmp_path):
    expected = [
        (write(tmp_path / ".claude/projects/-w-a/s1.jsonl", 300), "Claude Code"),
        (write(tmp_path / ".pi/agent/sessions/--w--/2026_x.jsonl", 200), "pi"),
        (write(tmp_path / ".openclaw/agents/main/sessions/o.jsonl", 100), "OpenClaw"),
    ]
    write(tmp_path / ".claude/projects/-w-a/s1/subagents/agent-a.jsonl", 400)
    write(tmp_path / ".claude/history.jsonl", 500)
    write(tmp_path / ".claude/projects/-w-a/notes.md", 600)
    write(tmp_path / ".openclaw/agents/main/other/x.jsonl", 700)
    found = transcripts({"HOME": str(tmp_path)})
    assert [(each.path, each.agent) for each in found] == expected
    assert [(each.modified, each.size) for each in found] == [(300, 5), (200, 5), (100, 5)]


@each_row(
    ("variable", "below", "agent"),
    [
        ("CLAUDE_CONFIG_DIR", "projects/p/s.jsonl", "Claude Code"),
        ("XDG_CONFIG_HOME", "claude/projects/p/s.jsonl", "Claude Code"),
        ("PI_CODING_AGENT_DIR", "sessions/deep/er/s.jsonl", "pi"),
        ("OPENCLAW_STATE_DIR", "agents/a/sessions/s.jsonl", "OpenClaw"),
        ("CODEX_HOME", "sessions/2026/01/02/rollout-x.jsonl", "Codex CLI"),
        ("CODEX_HOME", "archived_sessions/rollout-x.jsonl.zst", "Codex CLI"),
        ("XDG_DATA_HOME", "opencode/opencode.db", "opencode"),
        ("XDG_DATA_HOME", "kilo/kilo.db", "Kilo CLI"),
        ("XDG_DATA_HOME", "amp/threads/T-1.json", "Amp"),
        ("XDG_DATA_HOME", "goose/sessions/sessions.db", "Goose"),
        ("GOOSE_PATH_ROOT", "data/sessions/sessions.db", "Goose"),
        ("HERMES_HOME", "state.db", "Hermes"),
        ("KIMI_CODE_HOME", "sessions/ws/s/agents/main/wire.jsonl", "Kimi Code"),
        ("KIMI_SHARE_DIR", "sessions/a/b/wire.jsonl", "Kimi CLI"),
        ("KIMI_SHARE_DIR", "sessions/a/b/subagents/c/wire.jsonl", "Kimi CLI"),
        ("GEMINI_CLI_HOME", ".gemini/tmp/p/chats/session-1.json", "Gemini CLI"),
        ("GEMINI_CLI_HOME", ".gemini/tmp/p/chats/s/sub.jsonl", "Gemini CLI"),
        ("QWEN_RUNTIME_DIR", "projects/p/chats/0a.jsonl", "Qwen Code"),
        ("QWEN_HOME", "projects/p/chats/0a.jsonl", "Qwen Code"),
        ("QWEN_HOME", "projects/p/chats/archive/0a.jsonl", "Qwen Code"),
        ("QWEN_HOME", "projects/p/subagents/0a/agent-explore-1z.jsonl", "Qwen Code"),
        ("MSWEA_GLOBAL_CONFIG_DIR", "last_mini_run.traj.json", "mini-swe-agent"),
        ("COPILOT_HOME", "session-state/s/events.jsonl", "Copilot CLI"),
        ("CLINE_DIR", "data/sessions/s/s.messages.json", "Cline"),
        ("CLINE_DATA_DIR", "sessions/s/s.messages.json", "Cline"),
        ("CLINE_SESSION_DATA_DIR", "s/s.messages.json", "Cline"),
        ("INSPECT_LOG_DIR", "a.eval", "Inspect"),
    ],
)
def test_a_variable_names_another_folder(tmp_path, variable, below, agent):
    path = write(tmp_path / "else" / below, 1)
    found = transcripts({"HOME": str(tmp_path / "home"), variable: str(tmp_path / "else")})
    assert [(each.path, each.agent) for each in found] == [(path, agent)]


def test_a_subagent_of_cursor_is_read_with_its_session_and_not_listed(tmp_path):
    place = tmp_path / ".cursor/projects/p/agent-transcripts"
    expected = [write(place / "flat.jsonl", 300), write(place / "s/s.jsonl", 200)]
    write(place / "s/subagents/a.jsonl", 400)
    assert [each.path for each in transcripts({"HOME": str(tmp_path)})] == expected


def test_a_ledger_of_qwen_code_is_not_listed(tmp_path):
    """Qwen Code writes the states of the prompts beside a transcript, into `<id>.ledger.jsonl`."""
    chats = tmp_path / ".qwen/projects/p/chats"
    chat = write(chats / "0a1b.jsonl", 300)
    write(chats / "0a1b.ledger.jsonl", 400)
    assert [each.path for each in transcripts({"HOME": str(tmp_path)})] == [chat]


@each_row(("below", "agent"), [
    (".config/claude/projects/p/s.jsonl", "Claude Code"),
    (".iflow/projects/p/s.jsonl", "iFlow"),
    ("Library/Application Support/Claude/local-agent-mode-sessions/a/o/local_1/.claude/projects/p/s.jsonl",
     "Claude Cowork"),
    ("AppData/Roaming/Claude/local-agent-mode-sessions/a/o/local_1/.claude/projects/p/s.jsonl", "Claude Cowork"),
    ("AppData/Roaming/Block/goose/data/sessions/sessions.db", "Goose"),
    ("Library/Application Support/Block/goose/sessions/sessions.db", "Goose"),
])
def test_the_folders_of_applications_are_looked_in(tmp_path, below, agent):
    path = write(tmp_path / below, 1)
    write((tmp_path / below).parent / "other.txt", 2)
    assert [(each.path, each.agent) for each in transcripts({"HOME": str(tmp_path)})] == [(path, agent)]


def test_only_the_newest_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "NEWEST", 4)
    for number in range(30):
        write(tmp_path / f".claude/projects/p{number % 3}/s{number}.jsonl", number)
    found = transcripts({"HOME": str(tmp_path)})
    assert [each.modified for each in found] == [29, 28, 27, 26]


def test_without_a_home_or_folders_nothing_is_found(tmp_path):
    assert transcripts({}) == []
    assert transcripts({"HOME": str(tmp_path / "no")}) == []
    (tmp_path / ".claude").write_text("a file where a folder is due")
    assert transcripts({"HOME": str(tmp_path)}) == []


def test_a_linked_folder_is_not_followed_and_a_lost_link_passed_over(tmp_path):
    path = write(tmp_path / ".pi/agent/sessions/a/s.jsonl", 1)
    (tmp_path / ".pi/agent/sessions/a/loop").symlink_to(tmp_path / ".pi/agent/sessions")
    (tmp_path / ".pi/agent/sessions/a/lost.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    assert [each.path for each in transcripts({"HOME": str(tmp_path)})] == [path]


def test_a_folder_of_very_many_names_is_left_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "MOST_NAMES", 10)
    for number in range(40):
        write(tmp_path / f".pi/agent/sessions/s{number}.jsonl", number)
    assert len(transcripts({"HOME": str(tmp_path)})) == 10
