"""Recognises the format of a file by its beginning, that of a database by its tables, and reads it with the module of
that format."""

import os
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from importlib import import_module
from typing import IO, Any, cast

from inspector.sessions import traffic
from inspector.sessions.file_format import CERTAIN, HEAD, KNOWN_BODY, LONG_HEAD, Importer
from inspector.sessions.importers import IMPORTERS, SQLITE
from inspector.sessions.importers.records import is_list, list_lines
from inspector.sessions.recording import ODD, FileReading, Options

_BARE = frozenset({"chat-lines", "hermes", "zeroclaw", "botnexus", "known"})
"""The formats of lines that are not looked for in a list: a list of bare messages may be anything, such as an example
for training."""
DATABASES: Mapping[str, tuple[Mapping[str, str], ...]] = {
    "otlp": ({"spans": "trace_id span_id experiment_id content"},  # MLflow
             {"spans": "trace_rowid span_id span_kind attributes"}),  # Phoenix
    "opencode": ({"session": "id", "message": "id session_id data", "part": "id message_id data"},
                 {"session": "id", "session_message": "id session_id type data"}),
    "hermes": ({"messages": "session_id role content tool_call_id tool_calls tool_name",
                "sessions": "id source started_at"},),
    "kiro-conversations": ({"conversations_v2": "key conversation_id value"},
                           {"conversations": "key value", "auth_kv": "key value"}),
    "goose": ({"messages": "session_id role content_json created_timestamp", "sessions": "id working_dir"},),
    "crush": ({"messages": "id session_id role parts created_at", "sessions": "id title parent_session_id"},),
    "llm": ({"responses": "id prompt_json options_json response_json conversation_id"},
            {"turns": "thread_id parent_message_hash tip_message_hash"}),
    "openai-agents": ({"agent_messages": "id session_id message_data created_at", "agent_sessions": "session_id"},),
    "langgraph": ({"checkpoints": "thread_id checkpoint_ns checkpoint_id type checkpoint",
                   "writes": "thread_id channel value"},),
    "ag2": ({"chat_completions": "wrapper_id session_id source_name request response",
             "oai_clients": "wrapper_id session_id class"},),
    "crewai": ({"latest_kickoff_task_outputs": "task_id output task_index"},),
    "agno": ({"*": "session_id session_type agent_data"},),
    "mastra": ({"mastra_ai_spans": "traceid spanid parentspanid startedat endedat spantype name metadata attributes "
                                   "input output error"}, {"mastra_messages": "id thread_id role createdat content"}),
    "voltagent": ({"*_messages": "format_version conversation_id message_id role parts metadata created_at"},),
    "promptfoo": ({"eval_results": "eval_id prompt_idx provider prompt response error"},),
    "cursor-chats": ({"cursordiskkv": "key value"},),
    "zed": ({"threads": "id summary updated_at data_type data"},),
    "llama-index": ({"*": "key timestamp role status data"},),
    "adk": ({"events": "app_name user_id session_id invocation_id timestamp event_data"},
            {"events": "app_name user_id session_id invocation_id timestamp author content"}),
    "claude-tap": ({"records": "session_id record_index payload_json",
                    "record_blobs": "session_id hash payload_json"},),
    "zeroclaw": ({"sessions": "session_key role content"},
                 {"acp_sessions": "id session_uuid", "acp_messages": "session_id role",
                  "acp_tool_calls": "message_id event_kind"}),
    "botnexus": ({"session_history": "session_id role content tool_call_id"},),
}
"""Format -> the tables of its databases, each with the columns by which it is recognised, in lower case. Releases with
other tables have a set of their own. `*` stands for a name, or a part of one, that the application chooses."""


def beginnings(data: bytes) -> Iterator[bytes]:
    """The beginnings of a file by which it may be recognised, the shortest first, without a part of a long first
    row."""
    if data[:1] not in (b"{", b"[") or b"\n" in data[:HEAD] or b"\n" not in data[HEAD:LONG_HEAD].rstrip():
        yield data[:HEAD]
    if len(data) > HEAD:
        yield data[:LONG_HEAD]
    if len(data) > LONG_HEAD and max(map(len, data[:LONG_HEAD].replace(b'\\"', b"").split(b'"'))) > HEAD:
        yield _without_long_strings(data)


def _without_long_strings(data: bytes) -> bytes:
    """The beginning of JSON without its long strings: a request may have images of several MB before its model."""
    kept_pieces: list[bytes] = []
    size = 0
    for found in re.finditer(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"?', data, re.DOTALL):
        piece = found[0] if len(found[0]) <= HEAD else b'"'
        kept_pieces.append(piece)
        size += len(piece)
        if size >= LONG_HEAD:
            break
    return b"".join(kept_pieces)


def importer(name: str) -> Importer:
    """The module of the format with this name."""
    return cast("Importer", import_module(IMPORTERS[name].module))


def reading_of(name: str, data: bytes | IO[bytes], path: str, options: Options) -> FileReading:
    """Reads the exchanges of a file in the format with this name. An open file, whose format must grow, is read in
    pieces. Raises `UnreadableError` if it is not of this format after all, or damaged from the start."""
    if isinstance(data, bytes):
        head = data[:LONG_HEAD]
        if is_list(data) and not certainty(name, head, path):
            data = list_lines(data)
            head = data[:LONG_HEAD]
        if not IMPORTERS[name].grows:
            reading = importer(name).read(data, path, options)
            if any(traffic.is_browser_stream(raw.headers) for raw in reading.raws):
                cast("Any", importer("ai-sdk-stream")).take_streams(reading, path, options)
            return reading
    else:
        head = data.read(HEAD)
        data.seek(0)
    return cast("FileReading", importer(name).reader(path, options, head).read(data))


def choose(head: bytes, path: str) -> str | None:
    """The name of the format with the highest score for a file that begins with `head`; None if none recognises it."""
    return _best(head, path)[0]


def recognise(data: bytes, path: str) -> str | None:
    """The name of a whole file's format, by the first of its `beginnings` that shows more than JSON; of a list of
    unknown JSON, the format of which its elements are the rows. None if unknown."""
    name: str | None = None
    for head in beginnings(data):
        name, score = _best(head, path)
        if name != "body" or score >= KNOWN_BODY:
            return name
    listed = choose(list_lines(data[:LONG_HEAD]), path) if name == "body" and is_list(data) else None
    return name if listed is None or listed in _BARE else listed


def certainty(name: str, head: bytes, path: str) -> int:
    """The certainty that a file that begins with `head` is of this format, from 0 to 100 (`Importer.sniff`)."""
    if head.startswith(SQLITE) and name in DATABASES:
        from inspector.sessions.importers.database import schema

        tables = schema(path)
        return 95 if any(_are_in(tables, wanted) for wanted in DATABASES[name]) else 0
    sniff = getattr(importer(name), "sniff", None)  # formats that have only databases need none
    return 0 if sniff is None else cast("int", sniff(head, path))


def _are_in(tables: Mapping[str, frozenset[str]], wanted: Mapping[str, str]) -> bool:
    """Whether a database has tables with these names and columns."""
    return all(any(fnmatchcase(table, name) and found.issuperset(columns.split()) for table, found in tables.items())
               for name, columns in wanted.items())


def own_tables(name: str, tables: Mapping[str, frozenset[str]]) -> list[str]:
    """The tables of a database with the columns by which the format with this name is recognised, in order."""
    return sorted(table for table, found in tables.items() for wanted in DATABASES[name]
                  for pattern, columns in wanted.items()
                  if fnmatchcase(table, pattern) and found.issuperset(columns.split()))


def _best(head: bytes, path: str) -> tuple[str | None, int]:
    from inspector.sessions.importers.records import first_look

    best, best_score = None, 0
    marked = head + os.fsencode(path).lower()
    for name, row in IMPORTERS.items():
        if row.most <= best_score or (row.marks and not any(mark in marked for mark in row.marks)):
            continue
        try:
            if row.members and not (head.startswith(SQLITE) or any(map(first_look(head).has, row.members))):
                continue
            score = certainty(name, head, path)
        except ODD:
            continue  # `sniff` failed, so the file is not of the format
        if score > best_score:
            best, best_score = name, score
        if score >= CERTAIN:
            break
    return best, best_score
