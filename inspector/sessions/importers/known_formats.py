"""Recognises known formats that cannot be read, and describes files that no importer accepts.

The module also writes the list of readable formats for `inspector formats`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from inspector.sessions import COMPANION, redact
from inspector.sessions.file_format import EDITORS, HEAD, AgentFolder, FileFormat, Words
from inspector.sessions.importers import EXPECTED, IMPORTERS, SQLITE
from inspector.sessions.importers.records import first_look
from inspector.sessions.recording import NOT_READ, FileReading, Options, UnreadableError
from inspector.sessions.transcripts.member_values import objects_of
from loop_core.errors import CallerError
from loop_core.wire import FORMATS

JSON: Mapping[str, frozenset[str]] = {
    "result of Vercel's AI SDK": frozenset({"finishReason", "usage"}),
    "output of cline --json": frozenset({"hookEventName", "agentId", "taskId"}),
    "state of a team of AutoGen": frozenset({"type", "version", "agent_states"}),
    "state of an agent of AutoGen": frozenset({"type", "version", "llm_context"}),
    "session of nanocoder": frozenset({"lastAccessedAt", "messageCount", "workingDirectory", "messages"}),
}
"""Name of a format that cannot be read -> members of the first values in its files."""
COMPANIONS: Mapping[str, frozenset[str]] = {
    "requests of a batch": frozenset({"custom_id", "body"}),
    "description of a subagent of Claude Code": frozenset({"agentType", "description", "toolUseId"}),
    "journal of a workflow of Claude Code": frozenset({"type", "key", "agentId"}),
    "index of Continue's sessions": frozenset({"sessionId", "dateCreated", "workspaceDirectory"}),
    "index of nanocoder's sessions": frozenset({"lastAccessedAt", "messageCount", "workingDirectory"}),
    "state of a session of Cline CLI": frozenset({"session_id", "started_at", "workspace_root", "team_name"}),
    "state of a session of Kimi CLI": frozenset({"approval", "additional_dirs", "plan_mode"}),
    "place up to which Qwen Code has read a session": frozenset({"sessionId", "processedOffset"}),
    "ledger of the prompts of Qwen Code": frozenset({"v", "promptId", "at"}),
    "description of a conversation of Letta Code": frozenset({"agent_id", "in_context_message_ids"}),
    "version of a conversation of Letta Code": frozenset({"schema_version", "message_format", "provider_stack"}),
    "system prompt of a conversation of Letta Code": frozenset({"content", "compiledAt", "rawSystemHash"}),
    "description of a session of Mistral Vibe": frozenset({"session_id", "git_commit", "git_branch", "environment"}),
    "place of the newest state of Mistral Vibe": frozenset({"store_format", "manifest_sha256"}),
    "state of Mistral Vibe": frozenset({"manifest_version", "recovery_journal_segment"}),
    "history of Mistral Vibe": frozenset({"checkpoint_version", "compaction_count"}),
    "screen of Mistral Vibe": frozenset({"projection_state_version", "watermark"}),
    "loop of Mistral Vibe": frozenset({"command_receipts", "core_plugins"}),
    "timers of Mistral Vibe": frozenset({"format", "loops"}),
    "messages that Mistral Vibe stored": frozenset({"message", "source", "turn_index"}),
    "entries of the screen that Mistral Vibe stored": frozenset({"generationStatus", "inputEntryId", "turnId"}),
    "plugins that Mistral Vibe stored": frozenset({"agent_types", "hook_bindings", "tool_groups"}),
    "history of Grok Build, of which updates.jsonl beside it has more": frozenset({"type", "content", "prompt_index"}),
    "events of Grok Build": frozenset({"ts", "type", "session_id", "turn_number"}),
    "counts of Grok Build": frozenset({"sessionId", "updatedAt", "session"}),
    "state of a session of Grok Build": frozenset({"turnCount", "userMessageCount", "contextTokensUsed"}),
    "system prompt's parts of Grok Build": frozenset({"prompt_mode", "audience", "agents_md_files"}),
    "prompts of Grok Build": frozenset({"session_id", "prompt", "is_bash"}),
    "description of a session of Grok Build": frozenset({"info", "session_summary", "num_chat_messages"}),
    "description of a session of Kiro CLI": frozenset({"session_id", "session_state"}),
    "description of a session of Kiro": frozenset({"createdAt", "lastModifiedAt", "modelId"}),
    "messages of the user that Gemini CLI and Qwen Code list": frozenset({"sessionId", "messageId", "message"}),
}
"""Name of a file that an agent writes beside its sessions -> members of its first values. Seen in files of Claude Code
2, Continue CLI 1, nanocoder 1.25, Cline CLI 3, Kimi CLI 1, Qwen Code 0.15, Letta Code 0.25 and Mistral Vibe 3; the last
in `logger.ts` of Gemini CLI, the ledger in `sessionService.ts` of Qwen Code 0.24."""

BINARY: Mapping[str, tuple[int, bytes]] = {
    "ZIP archive": (0, b"PK\x03\x04"),
    "DuckDB database, where Mastra may store its spans": (8, b"DUCK"),
}
"""Name of a format that is not text -> the place of its mark in the file, and the mark. Source: DuckDB
`storage/storage_info.hpp`."""


def sniff(head: bytes, path: str) -> int:
    """Recognises a file of a format or companion in the tables."""
    return 95 if name_of(head) is not None else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Always raises `UnreadableError`, with the name of the format, because these formats cannot be read."""
    name = name_of(data[:HEAD]) or "known format"
    raise UnreadableError(f"{name}{COMPANION if name in COMPANIONS else NOT_READ}")


def name_of(head: bytes) -> str | None:
    """The name of a file's format in the tables; None if it is in neither."""
    parsed_head = first_look(head)
    values = (*objects_of(parsed_head.first)[:4], *parsed_head.objects)
    found = next((name for name, members in (*JSON.items(), *COMPANIONS.items())
                  if any(members <= value.keys() for value in values)), None)
    return found or next((name for name, (at, mark) in BINARY.items() if head.startswith(mark, at)), None)


# -- The message about a file that no importer accepts --------------------------------------------------------------
# The message describes the file, the formats that were tried, and what each of them expects.

_MOST_KEYS = 6
_MOST_FORMATS = 5
_LAST = ("known", "pairs", "body")
"""The last importers, which accept any remaining file. A message does not name them as candidates."""


def refusal(head: bytes, path: str) -> str:
    """One line about a file that no importer can read."""
    if head.startswith(SQLITE) and _is_packed(path):  # a database is read by its path, with its log
        return "a compressed database, which has to be unpacked first"
    tried = _formats_with_mark(head + os.fsencode(path).lower())
    others = len([name for name in IMPORTERS if name not in _LAST]) - len(tried)
    attempts = f"tried: {_expectations(tried)}; " if tried else ""
    return f"{_kind(head, path)}: {attempts}it has no mark of {others} other formats (`inspector formats` lists them)"


def _formats_with_mark(data: bytes) -> list[FileFormat]:
    """The formats with a mark that is in a text."""
    return [row for name, row in IMPORTERS.items()
            if name not in _LAST and row.marks and any(mark in data for mark in row.marks)]


def _expectations(formats: list[FileFormat]) -> str:
    """The formats, each with its expected beginning; of many, only the first."""
    named = "; ".join(f"{row.title} (expects {row.expects})" for row in formats[:_MOST_FORMATS])
    return named + (f"; {len(formats) - _MOST_FORMATS} more" if len(formats) > _MOST_FORMATS else "")


def _kind(head: bytes, path: str) -> str:
    """The kind of a file, by its beginning."""
    if head.startswith(SQLITE):
        from inspector.sessions.importers.database import schema, why_unread

        tables = sorted(schema(path))
        if tables:
            return f"a database with the tables {_list_names(tables)}"
        why = why_unread(path)
        return f"a database that cannot be read{f' ({why})' if why else ''}"
    parsed_head = first_look(head)
    if len(parsed_head.lines) > 1:
        return f"JSON lines of no known format (the first: {_shape(parsed_head.first)})"
    return f"JSON of no API and no session format that is known ({_shape(parsed_head.first)})"


def _is_packed(path: str) -> bool:
    """Whether a database is within another file, such as a compressed one."""
    try:
        with open(path, "rb") as file:
            return file.read(len(SQLITE)) != SQLITE
    except OSError:
        return False


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {_list_names(list(value))}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list; its first element is {_shape(value[0])}" if value else "an empty list"
    return "not an object" if value is not None else "not JSON"


def _list_names(names: list[Any]) -> str:
    listing = ", ".join(redact.text(str(name)[:40]).replace("\n", " ") for name in names[:_MOST_KEYS])
    return f"{listing} …" if len(names) > _MOST_KEYS else listing


_ENCODINGS: Mapping[bytes, str] = {
    b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32",  # before UTF-16, whose first bytes are the same
    b"{\0\0\0": "UTF-32LE", b"[\0\0\0": "UTF-32LE", b"\0\0\0{": "UTF-32BE", b"\0\0\0[": "UTF-32BE",
    b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16",
    b"{\0": "UTF-16LE", b"[\0": "UTF-16LE", b"\0{": "UTF-16BE", b"\0[": "UTF-16BE",  # JSON without a mark
}
"""First bytes of a text -> the name of its encoding in `iconv`."""


def unknown(data: bytes, path: str) -> str:
    """Why no importer recognises a file; if its name has a format's mark, also the format's expected beginning."""
    if message := other_encoding(data):
        return message
    name = os.path.basename(os.fsencode(path)).lower()
    # Marks such as `gen_ai.` are the beginnings of attributes, not of file names.
    tried = [row for row in _formats_with_mark(name) if any(mark in name and mark[-1:] != b"." for mark in row.marks)]
    named = f"; by its name it would be {_expectations(tried)}" if tried else ""
    return f"{_no_format(data)}{named}"


def other_encoding(head: bytes) -> str:
    """The message about a text that is not UTF-8, by its first bytes; empty for any other file."""
    encoding = next((name for mark, name in _ENCODINGS.items() if head.startswith(mark)), "")
    return encoding and (f"{encoding} text: expected UTF-8; convert it with `iconv -f {encoding} -t UTF-8` "
                         "(PowerShell's > writes UTF-16, its `Out-File -Encoding utf8` does not)")


def _no_format(data: bytes) -> str:
    head = data[:HEAD]
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as why:
        # A head may end within a character.
        if why.start < len(head) - 4 or len(data) == len(head):
            kind = "binary data" if b"\0" in head or _is_binary(head) else "invalid UTF-8"
            return f"{kind} at byte {why.start}: {EXPECTED}"
    if b"\0" in head:
        return f"binary data at byte {head.index(0)}: {EXPECTED}"
    line = head.split(b"\n", 1)[0]
    if len(line) == len(head) and len(data) > HEAD:
        return f"text of no session format (its first line is longer than {HEAD:,} bytes): {EXPECTED}"
    return f"text of no session format (line 1): {EXPECTED}"


def _is_binary(head: bytes) -> bool:
    """Whether more than a quarter of the first bytes are control characters or not ASCII."""
    odd = sum(1 for byte in head[:1024] if byte < 9 or 13 < byte < 32 or byte > 126)
    return odd * 4 > len(head[:1024])


# -- The list of readable formats: `inspector formats` ---------------------------------------------------------------

FORMATS_SCHEMA = "loop-inspector/formats/1"
_TITLE_COLUMN = 48
"""The column of the table in which a format's title begins."""


def formats_document(words: Sequence[str] = ()) -> dict[str, Any]:
    """The readable formats as plain values: those that the words name, or all."""
    return {"schema": FORMATS_SCHEMA, "files": [_format_values(*each) for each in _read_formats(words)],
            "wire": list(FORMATS)}


def formats_text(words: Sequence[str] = ()) -> str:
    """The readable formats as text: a table with one row for each, or the details of those that the words name.

    Raises `CallerError` if a word names no format.
    """
    if words:
        return "\n".join("".join(f"{line}\n" for line in _details(*each)) for each in _read_formats(words))
    table = [("name", "stop reasons", "also keeps", "files"), *sorted(
        (name, _AUTHORS[row.keeps.words], ", ".join(_also_keeps(row)), row.title) for name, row in _read_formats())]
    lines = [line for name, author, keeps, title in table
             for line in wrap(title, 80, initial_indent=f"{name:16} {author:12} {keeps:17}".ljust(_TITLE_COLUMN),
                              subsequent_indent=" " * _TITLE_COLUMN, break_on_hyphens=False)]
    return "\n".join([
        *lines, "",
        *wrap(f"Wire formats: {', '.join(FORMATS)}", 80, subsequent_indent="  "), "",
        "`inspector formats NAME` shows how files begin and where they are stored;",
        "NAME is a word of this table, or an agent.\n"])


_AUTHORS = {Words.PROVIDER: "provider's", Words.RECORDER: "recorder's", Words.HINT: "state only", Words.NONE: "none"}
"""Whose stop reasons a format stores, as a word of the table."""


def _also_keeps(row: FileFormat) -> list[str]:
    return [word for word, present in (("cap", row.keeps.cap), ("usage", row.keeps.usage), ("bytes", row.keeps.wire))
            if present]


def _details(name: str, row: FileFormat) -> Iterator[str]:
    """The lines about one format: how a file begins, what it stores, and where its agent writes it."""
    yield f"{row.title} ({name})"
    yield f"  begins with    {row.expects}"
    yield f"  stop reasons   {row.keeps.words}"
    yield f"  also keeps     {', '.join(_also_keeps(row)) or 'none of cap, usage, bytes'}"
    yield f"  as it grows    {'only the added part is read' if row.grows else 'the whole file is read again'}"
    # One line stands for the same place in the folders of all editors, or below several variables.
    variables: dict[str, list[str]] = {}
    for each in row.folders:
        known = variables.setdefault(f"{each.agent}: {_in_editor(_folder_path(each))}", [])
        known += [each.variable] if each.variable else []
    places = [f"{place} ({', '.join(known)})" if known else place for place, known in variables.items()]
    for at, place in enumerate(places):
        yield f"{' ' * 17 if at else '  written to     '}{place}"
    if any(_EDITOR in place for place in places):
        yield f"  {_EDITOR:14} " + f"\n{' ' * 17}".join(f"~/{each}" for each in EDITORS)


_EDITOR = "EDITOR"
"""The word for the data folder of VS Code or one of its forks."""


def _in_editor(path: str) -> str:
    """A path with `EDITOR` for the data folder of an editor."""
    folder = next((each for each in EDITORS if path.startswith(f"~/{each}/")), None)
    return path if folder is None else path.replace(f"~/{folder}", _EDITOR, 1)


def _read_formats(words: Sequence[str] = ()) -> Iterator[tuple[str, FileFormat]]:
    """The formats that can be read, without those that are only recognised: all, or those with one of the words in the
    name, in the title or among the agents. Raises `CallerError` if a word names none."""
    rows = {name: row for name, row in IMPORTERS.items() if name != "known"}
    texts = {name: "\n".join((name, row.title, *(each.agent for each in row.folders))).lower()
             for name, row in rows.items()}
    for word in words:
        if not any(word.lower() in text for text in texts.values()):
            raise CallerError(f"no format and no agent is named {word}; `inspector formats` lists the formats")
    return ((name, row) for name, row in rows.items()
            if not words or any(word.lower() in texts[name] for word in words))


def _format_values(name: str, row: FileFormat) -> dict[str, Any]:
    return {
        "name": name, "title": row.title, "begins_with": row.expects,
        "keeps": {"stop_reason": row.keeps.words.name.lower(), "cap": row.keeps.cap, "usage": row.keeps.usage,
                  "wire": row.keeps.wire},
        "reads_on": row.grows,
        **({"folders": [{"agent": each.agent, "variable": each.variable, "path": _folder_path(each)}
                        for each in row.folders]} if row.folders else {}),
    }


def _folder_path(each: AgentFolder) -> str:
    if each.folder is None:
        return f"${each.variable}"
    return os.path.join("~", each.folder, *each.parts, "|".join(each.names))
