"""The folders of VS Code and its forks: in each, a task of every extension and chats are found."""

from __future__ import annotations

import pytest

from inspector.sessions.folders import transcripts
from tests.scenes.rows import each_row

EDITORS = (
    ".config/Code/User", ".config/Code - Insiders/User", ".config/VSCodium/User", ".config/Cursor/User",
    ".config/Windsurf/User", "Library/Application Support/Code/User",
    "Library/Application Support/Code - Insiders/User",
    "Library/Application Support/VSCodium/User", "Library/Application Support/Cursor/User",
    "Library/Application Support/Windsurf/User", ".vscode-server/data/User", ".cursor-server/data/User",
    "AppData/Roaming/Code/User", "AppData/Roaming/Code - Insiders/User", "AppData/Roaming/VSCodium/User",
    "AppData/Roaming/Cursor/User", "AppData/Roaming/Windsurf/User",
)
FILES = {
    "globalStorage/saoudrizwan.claude-dev/tasks/1/api_conversation_history.json": "Cline",
    "globalStorage/saoudrizwan.claude-dev/tasks/2/claude_messages.json": "Cline",
    "globalStorage/rooveterinaryinc.roo-cline/tasks/1/api_conversation_history.json": "Roo Code",
    "globalStorage/zoocodeorganization.zoo-code/tasks/1/api_conversation_history.json": "Zoo Code",
    "globalStorage/kilocode.kilo-code/tasks/1/api_conversation_history.json": "Kilo Code",
    "workspaceStorage/1/chatSessions/a.json": "VS Code chat",
    "workspaceStorage/1/chatSessions/b.jsonl": "VS Code chat",
    "globalStorage/emptyWindowChatSessions/a.json": "VS Code chat",
}
"""File of an editor -> the agent that wrote it."""


@each_row("editor", EDITORS)
def test_the_sessions_in_an_editor_are_found(editor, tmp_path):
    for name in FILES:
        path = tmp_path / editor / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]")
    found = transcripts({"HOME": str(tmp_path)})
    assert {(each.path, each.agent) for each in found} == {
        (str(tmp_path / editor / name), agent) for name, agent in FILES.items()}


@pytest.mark.parametrize(("variable", "name"), [
    ("CLINE_DIR", "data/sessions/1/1.messages.json"), ("CLINE_DATA_DIR", "sessions/1/1.messages.json"),
    ("CLINE_SESSION_DATA_DIR", "1/1.messages.json"),
])
def test_a_variable_moves_the_sessions_of_cline(variable, name, tmp_path):
    path = tmp_path / "elsewhere" / name
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    found = transcripts({"HOME": str(tmp_path / "home"), variable: str(tmp_path / "elsewhere")})
    assert [(each.path, each.agent) for each in found] == [(str(path), "Cline")]
