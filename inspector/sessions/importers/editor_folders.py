"""The folders in which VS Code, its forks and their extensions store their files."""

from inspector.sessions.file_format import AgentFolder

USERS = (*(f"{root}/{editor}/User" for root in (".config", "Library/Application Support")
            for editor in ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")),
          ".vscode-server/data/User", "AppData/Roaming/Code/User")
"""The folders of VS Code and its forks for a user's data, below the home folder."""
TASKS = (
    *(AgentFolder(agent, "", user, ("globalStorage", extension, "tasks", "*"),
                  ("api_conversation_history.json", "claude_messages.json"))
      for user in USERS for agent, extension in (
          ("Cline", "saoudrizwan.claude-dev"), ("Roo Code", "rooveterinaryinc.roo-cline"),
          ("Zoo Code", "zoocodeorganization.zoo-code"), ("Kilo Code", "kilocode.kilo-code"),
      )),
    *(AgentFolder("Cline", variable, f".cline{below}", parts, ("*.messages.json",)) for variable, below, parts in (
        ("CLINE_DIR", "", ("data", "sessions", "*")), ("CLINE_DATA_DIR", "/data", ("sessions", "*")),
        ("CLINE_SESSION_DATA_DIR", "/data/sessions", ("*",)),
    )),
)
"""The folders with the tasks of Cline and its forks."""
CHATS = tuple(AgentFolder("VS Code chat", "", user, parts, ("*.json", "*.jsonl")) for user in USERS for parts in (
    ("workspaceStorage", "*", "chatSessions"), ("globalStorage", "emptyWindowChatSessions")))
"""The folders with VS Code's chats."""
