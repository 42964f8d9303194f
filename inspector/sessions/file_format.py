"""The description of a readable file format: how its files are recognised, what they store, and where they are."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from inspector.sessions.recording import FileReading, Options

HEAD = 1 << 16
"""The number of bytes at the beginning of a file by which its format is recognised."""
LONG_HEAD = 1 << 22
"""The number of bytes if those do not show a format, since the first request of a log may have a long prompt."""


class AgentFolder(NamedTuple):
    """The default folder of an agent's files: the value of an environment variable, which may also be the file itself,
    else below the home folder."""

    agent: str
    variable: str
    folder: str | None
    """The folder below the home folder; None if only the variable names one."""
    parts: tuple[str, ...]
    """The folder names between it and the files: `*` stands for any one folder, `**` for any number of levels."""
    names: tuple[str, ...] = ("*.jsonl",)
    """The patterns of the files' names."""


class Words(StrEnum):
    """The author of the stop words that a format stores: the provider, the recorder, or nobody."""

    PROVIDER = "the provider's"
    RECORDER = "the recorder's"
    HINT = "none; only the state of a turn or an error"
    NONE = "none"


class Keeps(NamedTuple):
    """The parts of an exchange that a format stores."""

    words: Words
    cap: bool = False
    """Whether the format stores the output cap that the request set."""
    usage: bool = False
    wire: bool = False
    """Whether the format stores the provider's own bytes."""


CERTAIN = 100
"""The score of `sniff` after which no further importer is tried."""
KNOWN_BODY = 50
"""The score of a body of a known wire format; below it, a file may be any JSON."""


class FileFormat(NamedTuple):
    """One readable file format, and how its files are recognised."""

    module: str
    title: str
    """The name of the format's files in reports."""
    expects: str
    """How a file of the format begins, in words, for the message about a file that no importer accepts."""
    keeps: Keeps
    marks: tuple[bytes, ...] = ()
    """Texts of which every file of the format has at least one in its head or its name. For a file without any, the
    format's module is not loaded, which saves 6 ms of the start of `explain`. Empty: the format has no marks."""
    folders: tuple[AgentFolder, ...] = ()
    beside: str = ""
    """The pattern of the further files that belong to a file: below a folder with the file's name without its suffix,
    or, if the pattern begins with `../`, beside the file. `**` stands for any number of levels."""
    grows: bool = False
    """Whether a file of the format grows line by line. Then the beginning of a file can be read alone, new rows are
    read without the earlier ones, and the format's module has a `reader`."""
    begins: bool = False
    """Whether the format's module can cut the first bytes of a file to a readable file (`beginning`)."""
    members: tuple[frozenset[str], ...] = ()
    """Sets of member names, for formats whose marks are common words: one of a file's first objects has all members of
    one set."""
    most: int = CERTAIN
    """The highest score of the format's `sniff`. A file that another format recognises with this score is not tried."""


class Importer(Protocol):
    """The interface of a file format's module."""

    def sniff(self, head: bytes, path: str) -> int:
        """The certainty that the importer can read a file with this head: from 0 (it cannot) to 100 (beyond doubt). A
        database is recognised by its tables instead (`recognition.DATABASES`)."""

    def read(self, data: bytes, path: str, options: Options) -> FileReading:
        """Reads the exchanges of a whole file; raises `UnreadableError` if it is not of this format after all, or
        damaged from the start."""

    def beginning(self, data: bytes) -> bytes:
        """For a format that `begins`: the complete part of a file's first bytes, as a file; may be empty."""

    def reader(self, path: str, options: Options, head: bytes) -> Any:
        """For a format that `grows`, instead of `read`: the `TranscriptReader` of a file that begins with `head`;
        raises as `read` does."""


# -- The folders of agents that have many ----------------------------------------------------------------------------

_APPLICATIONS = ("Library/Application Support", "AppData/Roaming")
"""The folders of macOS and of Windows for the data of applications, below the home folder."""
EDITORS = (*(f"{root}/{editor}/User" for root in (".config", *_APPLICATIONS)
            for editor in ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")),
          ".vscode-server/data/User", ".cursor-server/data/User")
"""The folders of VS Code and its forks for a user's data, below the home folder."""
_ZEROCLAW = tuple((variable, parts) for variable in ("ZEROCLAW_WORKSPACE", "ZEROCLAW_DATA_DIR", "ZEROCLAW_CONFIG_DIR")
                  for parts in ((), ("workspace",)))
FOLDERS: Mapping[str, tuple[AgentFolder, ...]] = {
    "claude-code": (
        AgentFolder("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", ("projects", "*")),
        AgentFolder("Claude Code", "XDG_CONFIG_HOME", ".config", ("claude", "projects", "*")),
        *(AgentFolder("Claude Cowork", "", f"{root}/Claude/local-agent-mode-sessions",
                      ("*", "*", "*", ".claude", "projects", "*")) for root in _APPLICATIONS),
        AgentFolder("iFlow", "", ".iflow", ("projects", "*")),
    ),
    "kiro": (
        AgentFolder("Kiro", "KIRO_HOME", ".kiro", ("sessions", "cli")),
        # Some versions write these into the home folder whatever the variable says.
        *(AgentFolder("Kiro", variable, ".kiro", ("sessions", "*", "*"), ("messages.jsonl",))
          for variable in ("KIRO_HOME", "")),
    ),
    "cursor": tuple(AgentFolder("Cursor", "", ".cursor", ("projects", "*", "agent-transcripts", *below))
                    for below in ((), ("*",))),
    "cursor-chats": tuple(AgentFolder("Cursor", "", f"{root}/Cursor/User", ("globalStorage",), ("state.vscdb",))
                          for root in (".config", *_APPLICATIONS)),
    "llm": (AgentFolder("llm", "LLM_USER_PATH", ".config/io.datasette.llm", (), ("logs.db",)),
            AgentFolder("llm", "", "Library/Application Support/io.datasette.llm", (), ("logs.db",))),
    "zed": (AgentFolder("Zed", "XDG_DATA_HOME", ".local/share", ("zed", "threads"), ("threads.db",)),
            AgentFolder("Zed", "", "Library/Application Support/Zed", ("threads",), ("threads.db",))),
    "grok": (AgentFolder("Grok Build", "GROK_HOME", ".grok", ("sessions", "*", "*"), ("updates.jsonl",)),),
    "kiro-conversations": tuple(
        AgentFolder(agent, variable, root, (folder,), ("data.sqlite3",)) for variable, root in (
            ("XDG_DATA_HOME", ".local/share"), ("", _APPLICATIONS[0]), ("", "AppData/Local"))
        for agent, folder in (("Kiro CLI", "kiro-cli"), ("Amazon Q Developer CLI", "amazon-q"))
    ),
    "roo": (
        *(AgentFolder(agent, "", user, ("globalStorage", extension, "tasks", "*"),
                      ("api_conversation_history.json", "claude_messages.json"))
          for user in EDITORS for agent, extension in (
              ("Cline", "saoudrizwan.claude-dev"), ("Roo Code", "rooveterinaryinc.roo-cline"),
              ("Zoo Code", "zoocodeorganization.zoo-code"), ("Kilo Code", "kilocode.kilo-code"),
          )),
        *(AgentFolder("Cline", variable, f".cline{below}", parts, ("*.messages.json",)) for variable, below, parts in (
            ("CLINE_DIR", "", ("data", "sessions", "*")), ("CLINE_DATA_DIR", "/data", ("sessions", "*")),
            ("CLINE_SESSION_DATA_DIR", "/data/sessions", ("*",)),
        )),
    ),
    "zeroclaw": tuple(AgentFolder("ZeroClaw", variable, ".zeroclaw", (*parts, "sessions"),
                                  ("sessions.db", "acp-sessions.db", "*.jsonl")) for variable, parts in _ZEROCLAW),
    "zeroclaw-trace": tuple(AgentFolder("ZeroClaw", variable, ".zeroclaw", (*parts, "state"), ("runtime-trace*.jsonl",))
                            for variable, parts in _ZEROCLAW),
    "botnexus": tuple(AgentFolder("BotNexus", variable, ".botnexus", (), ("sessions.sqlite", "sessions.db"))
                      for variable in ("BOTNEXUS_HOME", "BOTNEXUS_DATA_DIR")),
    "continue": (
        AgentFolder("Continue", "CONTINUE_GLOBAL_DIR", ".continue", ("sessions",), ("*-*.json",)),
        *(AgentFolder("Kiro before 1.0", "", f"{root}/Kiro/User/globalStorage/kiro.kiroagent",
                      ("workspace-sessions", "*"), ("*-*.json",)) for root in (".config", *_APPLICATIONS)),
    ),
    "vscode-chat": tuple(
        AgentFolder("VS Code chat", "", user, parts, ("*.json", "*.jsonl")) for user in EDITORS
        for parts in (("workspaceStorage", "*", "chatSessions"), ("globalStorage", "emptyWindowChatSessions"))
    ),
}
"""Format -> the folders with its files, for formats with several folders."""
DATABASE_NAMES = (".db", ".sqlite", ".sqlite3", ".vscdb")
"""The ends of the names of databases, whose newest rows may be in a log beside them (`-wal`)."""


def entry_word(format_name: str, many: bool = False) -> str:
    """The word for the parts of a file, so that their numbers are not taken for those of turns."""
    word = "HAR entr" if format_name == "har" else "entr"
    return f"{word}ies" if many else f"{word}y"


def entry_name(format_name: str, index: int) -> str:
    """The name of a part of a file, with its number from 1: `HAR entry 3`."""
    return f"{entry_word(format_name)} {index + 1:,}"
