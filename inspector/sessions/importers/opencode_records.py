"""Finds the records of opencode and Kilo CLI in their stores, and reads calls, counts, stop words and errors in them.

Each record is a session, a message or a part, as JSON with its ids. The database has the ids in separate columns; they
are inserted before the members of its column `data`. Source: opencode `packages/opencode/src/storage` and
`session.sql.ts`.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from inspector.config import files as bounds
from inspector.sessions.importers.database import Schema, has, snapshot
from inspector.sessions.importers.records import Piece, compact_json, elements, in_order, in_tree, object_in, with_ids
from inspector.sessions.intake import sibling
from inspector.sessions.reasons import (
    PROVIDER,
    error_in_text,
    error_reason,
    missing_call_reason,
    missing_content_reason,
    recorder_reason,
    table_reason,
)
from inspector.sessions.stored_rows import UnbuiltRecord
from inspector.sessions.transcripts.answer import TranscriptAnswer
from inspector.sessions.transcripts.chat_messages import pointer_at
from inspector.sessions.transcripts.member_values import (
    counts_of,
    input_count,
    number_of,
    object_of,
    objects_of,
    text_or_none,
)
from loop_core.values import ArgsForm, At, Evidence, Stop, StopReason, ToolCall, ToolResultPart, Usage
from loop_core.wire.body import value_at
from loop_core.wire.failures import StopRow
from loop_core.wire.json_values import byte_span

# -- The database ------------------------------------------------------------------------------------------------------


def rows_of(path: str, schema: Schema) -> Iterator[bytes | UnbuiltRecord]:
    """The sessions of a database with their messages and parts, each session before those that it started."""
    with snapshot(path) as database:
        every = sorted(map(dict, database.execute("SELECT * FROM session")), key=in_order)
        for row in in_tree(every, "parent_id"):
            key = str(row["id"])
            yield _session(row)
            messages = [*_messages(database, key, schema)]
            yield from messages or _second(database, key, schema)


def _session(row: dict[str, Any]) -> bytes:
    names = {"id": "id", "parent_id": "parentID", "title": "title", "directory": "directory", "version": "version"}
    members = {name: row[column] for column, name in names.items() if isinstance(row.get(column), str)}
    try:
        revert = json.loads(row.get("revert") or "null")
    except (TypeError, ValueError, RecursionError):
        revert = None
    return compact_json({"projectID": "", **members, **({"revert": revert} if isinstance(revert, dict) else {})})


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
    """The records of `session_message`, for sessions without rows in `message`; some releases wrote both."""
    if not has(schema, "session_message", "session_id", "type", "data"):
        return
    rows = database.execute("SELECT * FROM session_message WHERE session_id = ?", (session,))
    for row in sorted(map(dict, rows), key=in_order):
        yield with_ids(row["data"], id=row["id"], sessionID=session, type=row["type"])


# -- The tree of files -------------------------------------------------------------------------------------------------

MESSAGES, PARTS = os.path.join("..", "..", "message"), os.path.join("..", "..", "part")
MOST = 50_000
"""The largest number of files of one session that are read."""


OWNERS = (("messageID", "../../message/*", "a part of a message"), ("sessionID", "../../session/*", "a message"),
          ("parentID", "", "a session that another one started"))
"""The member with the id of the owner of a file of the tree, the folder of the owner's file, and what the file is."""


def owned(data: bytes, path: str) -> str:
    """What a file of the tree is, if the file of its owner, with which it is read, is there; else empty."""
    value = object_in(data)
    if "type" in value and "sessionID" not in value:
        value.setdefault("messageID", os.path.basename(os.path.dirname(path)))
    member, folder, what = next((each for each in OWNERS if each[0] in value), ("", "", ""))
    key, place = value.get(member), glob.escape(os.path.dirname(os.path.abspath(path)))
    if not isinstance(key, str) or not _plain(key) or key == value.get("id"):
        return ""
    return what if glob.glob(os.path.join(place, folder, f"{glob.escape(key)}.json")) else ""


def tree(data: bytes, path: str) -> Iterator[bytes]:
    """The records of a session's file: the session, its messages, their parts, and the sessions that it started; or a
    message with its parts. Folders are named by the owner: `session/PROJECT/ID`, `message/SESSION/ID`,
    `part/MESSAGE/ID`."""
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
    # The files are not in the order of parents and children, so they are searched again until no child is left.
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
    """Id of a message -> its parts, for the first releases, which stored all parts in one folder."""
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
    at = object_of(value.get("time")).get("created")
    return (float(at) if isinstance(at, (int, float)) else 0.0, str(value.get("id")))


def _files(path: str, folder: str, **ids: str) -> Iterator[bytes]:
    """The JSON files of another folder, given relative to the file that is read, in the order of their names."""
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
    """The records of an `opencode export` file: the session, and each message with its parts; or of the list of a
    session's messages, as the server returns it."""
    bare = data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    session = b"" if bare else _slice(data, "info")
    yield session
    of_session = {"sessionID": str(object_in(session).get("id"))}
    for number, message in enumerate(elements(data, *([] if bare else ["messages"]))):
        info = _slice(message, "info")
        if not info:
            yield with_ids(message, **of_session)  # the second version
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
    """The records of `opencode run --format json`: the part in each line, or a line without a part."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        span = byte_span(line, 0, "part") if line.strip().endswith(b"}") else None
        yield number, line if span is None else line[span[0] : span[1]], number == len(lines)


# -- The parts of messages: calls and results, token counts, stop words and errors -------------------------------------
# The stop words are those of Vercel's AI SDK; the newest records also have the provider's word (`rawFinish`).

STOPS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, "AI SDK: a stop sequence, or the model is done"),
    "length": StopRow(Stop.MAX_TOKENS, None, "AI SDK: the maximum number of tokens"),
    "content-filter": StopRow(Stop.SAFETY_BLOCKED, None, "AI SDK: a content filter"),
    "tool-calls": StopRow(Stop.TOOL_CALL, None, "AI SDK: the model asked for tools"),
    "error": StopRow(Stop.ERROR, "fatal", "AI SDK: an error; opencode v2 writes it at each failure"),
}
"""Stop word of the AI SDK (`LanguageModelV2FinishReason`) -> its meaning; `other` and `unknown` have none."""
UNPARSED = "tool.input-json"
"""The type of the error of a call whose arguments were not JSON and were replaced by `{}`."""
ERRORS: Mapping[str, StopRow] = {
    "MessageOutputLengthError": StopRow(Stop.MAX_TOKENS, None, "opencode message-v2.ts"),
    "MessageAbortedError": StopRow(Stop.CANCELLED, None, "opencode message-v2.ts"),
    "ContextOverflowError": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, "opencode message-v2.ts"),
    "ContentFilterError": StopRow(Stop.SAFETY_BLOCKED, None, "@opencode-ai/sdk 1.19.3"),
    "aborted": StopRow(Stop.CANCELLED, None, "opencode 2 runner/step.ts: the step was interrupted"),
    "provider.content-filter": StopRow(Stop.SAFETY_BLOCKED, None, "opencode 2 runner/publish-llm-event.ts"),
    "provider.context-overflow": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, "opencode 2 to-session-error.ts"),
    UNPARSED: StopRow(Stop.MALFORMED_TOOL_CALL, None, "opencode 2 runner/publish-llm-event.ts: a call, not an answer"),
}
"""Name of an error, in the second version its type -> the stop reason; other errors are classified by their message."""
_BAD_JSON = re.compile(r"JSON parsing failed: Text: (.*)\.\nError message: ", re.DOTALL)
"""Matches the AI SDK's `JSONParseError`, which quotes the arguments that could not be parsed."""
REFUSED = re.compile(rf"Invalid input for tool \S{{1,200}}: {_BAD_JSON.pattern}", re.DOTALL)
"""Matches the error of a call whose arguments could not be parsed, in releases that keep the call's name."""
_TOOL = "invalid"
"""The name of the tool that replaces an unknown tool, or the tool of a call with unreadable arguments."""


def call_of(block: dict[str, Any], at: At, slice_at: Callable[..., str | None]) -> ToolCall:
    """A call. Its arguments are the record's JSON; the received text is lost, unless an error quotes it."""
    state = object_of(block.get("state"))
    call_id = text_or_none(block.get("callID") or block.get("id"))
    name = block.get("tool") or block.get("name")
    call_input = state.get("input")
    # Such a call was never parsed: `raw` has the text received so far (`ToolStatePending`).
    if state.get("status") in ("pending", "streaming"):
        raw = call_input if isinstance(call_input, str) else state.get("raw")
        return ToolCall(call_id, str(name or ""), raw if isinstance(raw, str) else "", False, at=at)
    if name == _TOOL and isinstance(call_input, dict):
        quoted = _BAD_JSON.search(str(call_input.get("error")))
        return ToolCall(call_id, str(call_input.get("tool") or name), quoted[1] if quoted is not None else None,
                        True, at=at)  # its text shows whether it was cut
    refused = REFUSED.match(str(state.get("error"))) if state.get("status") == "error" else None
    if refused is not None:
        return ToolCall(call_id, str(name or ""), refused[1], True, at=at)
    if _was_lost(block, state):
        return ToolCall(call_id, str(name or ""), None, False, at=at)
    arguments = None if call_input is None else slice_at("state", "input")
    return ToolCall(call_id, str(name or ""), arguments, True, form=ArgsForm.OBJECT, at=at)


def _was_lost(block: dict[str, Any], state: dict[str, Any]) -> bool:
    """Whether a failed call was never parsed: its arguments were cut or not JSON, and were replaced by `{}`. The second
    version stores when a parsed call began to run (`time.ran`). In the first, a call that never ran has the member
    `raw` of a pending one, and equal times for start and end (`processor.ts`, `cleanup`)."""
    if state.get("status") != "error" or state.get("input") != {}:
        return False
    times, of_state = block.get("time"), object_of(state.get("time"))
    if isinstance(times, dict):
        return "ran" not in times
    return "raw" in state and of_state.get("start") == of_state.get("end")


def result_of(block: dict[str, Any], call: ToolCall) -> ToolResultPart | None:
    """The result of a call; None if it has none so far."""
    state = object_of(block.get("state"))
    status = state.get("status")
    if status == "completed":
        output = state.get("output")
        texts = [each.get("text") for each in objects_of(state.get("content"))]
        output_text = output if isinstance(output, str) else "\n".join(text for text in texts if isinstance(text, str))
        return ToolResultPart(call.id, call.name, output_text, False)
    if status == "error":
        error = state.get("error")
        message = error if isinstance(error, str) else _message_of(object_of(error))
        return ToolResultPart(call.id, call.name, message, True)
    return None


def usage_of(tokens: Any, api: str) -> Usage | None:
    """Token counts of a message. In most records the output excludes reasoning; `total` shows whether it does."""
    counts = object_of(tokens)
    if not counts:
        return None
    cache = object_of(counts.get("cache"))
    input_tokens, output_tokens, thought = counts_of(counts, "input", "output", "reasoning")
    cached, written = counts_of(cache, "read", "write")
    every = (input_tokens or 0) + (output_tokens or 0) + (thought or 0) + (cached or 0) + (written or 0)
    # This program counts reasoning as part of the output, as most providers do.
    if output_tokens is not None and thought and number_of(counts.get("total")) == every:
        output_tokens += thought
    return Usage(input_count(api, input_tokens, cached, written), output_tokens, thought, cached, written)


def end_by_word(answer: TranscriptAnswer, word: Any, value: dict[str, Any], at: At, pointer: str) -> None:
    """Sets the stop reason of an answer by the recorder's word, and adds the provider's word if it was recorded."""
    answer.word_at = place = at._replace(pointer=pointer)
    if not isinstance(word, str) or not word:
        return
    answer.stop = stop = table_reason(word, STOPS, place, "opencode.stop_reasons")
    raw = value.get("rawFinish")
    if isinstance(raw, str) and raw:
        evidence = (Evidence(PROVIDER, pointer_at(at, "rawFinish"), raw), stop.evidence[-1])
        answer.word, answer.stop = raw, stop._replace(raw=raw, evidence=evidence)


def end_without_part(answer: TranscriptAnswer, message: dict[str, Any]) -> None:
    """Corrects the stop reason of an answer whose end is in its message but in no part: a file may be cut before the
    parts, or lack them. If tokens were counted, the text or the requested call is missing from the file."""
    stop = answer.stop
    if stop is None or answer.calls or not number_of(value_at(message, ("tokens", "output"))):
        return
    if stop.normalized is Stop.TOOL_CALL:
        answer.stop = missing_call_reason(stop)
    elif stop.normalized is Stop.END_TURN and not answer.text:
        answer.stop = missing_content_reason(stop)


def end_by_call(answer: TranscriptAnswer, content: list[tuple[int, dict[str, Any]]], at: At) -> None:
    """Sets the stop reason of an answer that has a word for calls, and a call that opencode could not read."""
    for number, block in content:
        kind = value_at(block, ("state", "error", "type"))
        if kind == UNPARSED and answer.stop is not None and answer.stop.normalized is Stop.TOOL_CALL:
            place = pointer_at(at, "content", number, "state", "error")
            answer.stop = table_reason(UNPARSED, ERRORS, place, "opencode.errors")


def end_by_error(answer: TranscriptAnswer, error: dict[str, Any], at: At) -> None:
    """Sets the stop reason of an answer by the error that was recorded with it."""
    name = error.get("name") or error.get("type")
    word = name if isinstance(name, str) and name else "error"
    answer.word_at = place = pointer_at(at, "error")
    data = object_of(error.get("data"))
    status = data.get("statusCode") or error.get("status")
    row = ERRORS.get(word)
    if row is not None:
        answer.stop = recorder_reason(row.stop, row.detail, place, word, "opencode.errors")
        return
    body = data.get("responseBody")
    found = error_in_text(body if isinstance(body, str) and "{" in body else _message_of(error),
                          status if type(status) is int else None, word)
    again = data.get("isRetryable")
    answer.error = found._replace(retryable=again) if isinstance(again, bool) else found
    answer.stop = error_reason(answer.error, place, word)


def names_end(error: dict[str, Any], stop: StopReason) -> bool:
    """Whether an error is opencode's name for an end that the answer's stop word already shows."""
    row = ERRORS.get(str(error.get("name")))
    return row is not None and row.stop is stop.normalized


def _message_of(error: dict[str, Any]) -> str:
    data = object_of(error.get("data"))
    return text_or_none(data.get("message") or error.get("message") or error.get("name")) or ""
