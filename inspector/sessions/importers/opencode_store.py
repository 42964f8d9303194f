"""The storage of opencode and Kilo CLI records: a database, a folder of files, an export, or the events of a run.

Each record is a session, a message or a part, as JSON with its ids. The database has the ids in columns of their own;
they are inserted before the members of its column `data`. Source: opencode `packages/opencode/src/storage` and
`session.sql.ts`.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from inspector.config import files as bounds
from inspector.sessions.importers import sibling
from inspector.sessions.importers.database import Schema, has, snapshot
from inspector.sessions.importers.records import Piece, compact_json, elements, in_order, in_tree, object_in, with_ids
from inspector.sessions.stored_rows import UnbuiltRecord
from loop_core.wire.json_values import byte_span

# -- The database ------------------------------------------------------------------------------------------------------


def is_database(schema: Schema) -> bool:
    """Whether the tables are those of opencode."""
    first = has(schema, "message", "id", "session_id", "data") and has(schema, "part", "id", "message_id", "data")
    second = has(schema, "session_message", "id", "session_id", "type", "data")
    return has(schema, "session", "id") and (first or second)


def rows_of(path: str, schema: Schema) -> Iterator[bytes | UnbuiltRecord]:
    """The sessions of a database, each with its messages and their parts, and the sessions that it started after it."""
    with snapshot(path) as database:
        every = sorted(map(dict, database.execute("SELECT * FROM session")), key=in_order)
        for row in in_tree(every, "parent_id"):
            key = str(row["id"])
            yield _session(row)
            messages = [*_messages(database, key, schema)]
            yield from messages or _second(database, key, schema)


def _session(row: dict[str, Any]) -> bytes:
    names = {"id": "id", "parent_id": "parentID", "title": "title", "directory": "directory", "version": "version"}
    kept = {name: row[column] for column, name in names.items() if isinstance(row.get(column), str)}
    try:
        revert = json.loads(row.get("revert") or "null")
    except (TypeError, ValueError, RecursionError):
        revert = None
    return compact_json({"projectID": "", **kept, **({"revert": revert} if isinstance(revert, dict) else {})})


def _message(data: Any, key: Any, session: str) -> bytes:
    return with_ids(data, id=key, sessionID=session)


def _part(data: Any, key: Any, session: str, message: Any) -> bytes:
    return with_ids(data, id=key, sessionID=session, messageID=message)


def _messages(database: sqlite3.Connection, session: str, schema: Schema) -> Iterator[UnbuiltRecord]:
    if not has(schema, "message", "session_id", "data") or not has(schema, "part", "message_id", "data"):
        return
    of_message: dict[Any, list[tuple[str, Any]]] = {}
    parts = database.cursor()
    parts.row_factory = None  # plain tuples are cheaper; a sort by SQLite would copy all the data
    for message, key, data in parts.execute("SELECT message_id, id, data FROM part WHERE message_id IN "
                                            "(SELECT id FROM message WHERE session_id = ?)", (session,)):
        of_message.setdefault(message, []).append((str(key), data))
    rows = database.execute("SELECT * FROM message WHERE session_id = ?", (session,))
    for row in sorted(map(dict, rows), key=in_order):
        yield UnbuiltRecord(_message, (row["data"], row["id"], session))
        for key, data in sorted(of_message.get(row["id"], ()), key=itemgetter(0)):
            yield UnbuiltRecord(_part, (data, key, session, row["id"]))


def _second(database: sqlite3.Connection, session: str, schema: Schema) -> Iterator[bytes]:
    """The records of `session_message`, for sessions without rows in `message`: for a while opencode wrote both."""
    if not has(schema, "session_message", "session_id", "type", "data"):
        return
    rows = database.execute("SELECT * FROM session_message WHERE session_id = ?", (session,))
    for row in sorted(map(dict, rows), key=in_order):
        yield with_ids(row["data"], id=row["id"], sessionID=session, type=row["type"])


# -- The tree of files, and what one of its files can be ---------------------------------------------------------------

MESSAGES, PARTS = os.path.join("..", "..", "message"), os.path.join("..", "..", "part")
MOST = 50_000
"""The most files of one session that are read."""


def tree(data: bytes, path: str) -> Iterator[bytes]:
    """A session's file with its messages, their parts and the sessions that it started; or a message with its parts.

    The folder of each is named after its owner: `session/PROJECT/ID`, `message/SESSION/ID`, `part/MESSAGE/ID`.
    """
    value = object_in(data)
    if "type" in value and not {"messageID", "sessionID"} & value.keys():
        # Only the folder has the id of its message.
        yield with_ids(data, messageID=os.path.basename(os.path.dirname(path)))
        return
    yield data
    key = os.path.splitext(os.path.basename(path))[0] if "id" not in value else value["id"]
    if "messageID" in value or not isinstance(key, str) or not _plain(key):
        return
    if "sessionID" in value:
        yield from _files(path, os.path.join(PARTS, key), messageID=key)
        return
    flat = _flat(path)
    yield from _of_session(path, key, flat)
    # Files do not stand in the order of parents and children, so they are searched again until no child is left.
    begun, left = {key}, [piece for piece in _files(path, "") if piece != data]
    while True:  # child sessions, then their children
        more = [(piece, value) for piece in left if (value := object_in(piece)).get("parentID") in begun]
        left = [piece for piece in left if all(piece is not other for other, _ in more)]
        if not more:
            return
        for piece, value in more:
            name = value.get("id")
            if isinstance(name, str) and _plain(name):
                begun.add(name)
                yield piece
                yield from _of_session(path, name, flat)


def _flat(path: str) -> dict[str, list[bytes]]:
    """Message -> its parts, for the first releases, which had all parts in one folder."""
    found: dict[str, list[bytes]] = {}
    for piece in _files(path, PARTS):
        found.setdefault(str(object_in(piece).get("messageID")), []).append(piece)
    return found


def _of_session(path: str, session: str, flat: dict[str, list[bytes]]) -> Iterator[bytes]:
    messages = [(object_in(piece), piece) for piece in _files(path, os.path.join(MESSAGES, session), sessionID=session)]
    for value, piece in sorted(messages, key=lambda each: _creation(each[0])):
        yield piece
        name = value.get("id")
        if isinstance(name, str) and _plain(name):
            yield from _files(path, os.path.join(PARTS, name), messageID=name)
            yield from flat.get(name, ())


def _creation(value: dict[str, Any]) -> tuple[float, str]:
    time = value.get("time")
    at = time.get("created") if isinstance(time, dict) else None
    return (float(at) if isinstance(at, (int, float)) else 0.0, str(value.get("id")))


def _files(path: str, folder: str, **ids: str) -> Iterator[bytes]:
    """The JSON files of a folder beside the one that is read, in the order of their names."""
    place = os.path.join(os.path.dirname(path), folder)
    try:
        bounds.check_bounds(place)
        # opencode's ids ascend with time
        names = sorted(name for name in os.listdir(place) if name.endswith(".json"))[:MOST]
    except OSError:
        return
    for name in names:
        data = sibling(path, os.path.join(folder, name))
        if data is not None:
            value = object_in(data)
            lacking = {key: held for key, held in {"id": name.removesuffix(".json"), **ids}.items() if key not in value}
            yield with_ids(data, **lacking) if ids and lacking else data


def _plain(key: str) -> bool:
    """Whether an id is a plain folder name, so that it cannot lead out of the store."""
    return bool(key) and not key.startswith(".") and "/" not in key and "\\" not in key


# -- Exports, and the events of a run ----------------------------------------------------------------------------------


def export(data: bytes) -> Iterator[bytes]:
    """The records of an `opencode export` file: the session, and each message with its parts."""
    session = _slice(data, "info")
    yield session
    of_session = {"sessionID": str(object_in(session).get("id"))}
    for number, message in enumerate(elements(data, "messages")):
        info = _slice(message, "info")
        if not info:
            yield with_ids(message, **of_session)  # of the second version
            continue
        key = object_in(info).get("id")
        yield info if isinstance(key, str) else with_ids(info, id=f"message {number}")
        owner = {"messageID": key if isinstance(key, str) else f"message {number}"}
        for part in elements(message, "parts"):
            yield part if b'"messageID"' in part else with_ids(part, **owner)


def _slice(data: bytes, *path: str | int) -> bytes:
    span = byte_span(data, 0, *path)
    return b"" if span is None else data[span[0] : span[1]]


def events(data: bytes) -> Iterator[Piece]:
    """The records of `opencode run --format json`: the part of each line, or the line itself if it has none."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        span = byte_span(line, 0, "part") if line.strip().endswith(b"}") else None
        yield number, line if span is None else line[span[0] : span[1]], number == len(lines)
