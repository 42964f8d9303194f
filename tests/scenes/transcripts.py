"""Builders of agents' transcripts, row by row, in the shapes that their tools write; no test lives here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspector.replay import Settings, replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.sessions import open_paths

Row = dict[str, Any]
MODEL = "claude-opus-4-5-20251101"
CAP = (
    "API Error: Claude's response exceeded the 32000 output token maximum. To configure this behavior, set the "
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."
)
MISSING = (
    "<tool_use_error>InputValidationError: Write failed: The required parameter `content` is missing</tool_use_error>"
)


# -- Claude Code -------------------------------------------------------------------------------------------------------


def prompt(content: Any, **more: Any) -> Row:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def text(said: str) -> Row:
    return {"type": "text", "text": said}


def use(key: str = "toolu_01A", name: str = "Write", **given: Any) -> Row:
    return {"type": "tool_use", "id": key, "name": name, "input": given}


def block(content: Row, key: str = "msg_01", stop: str | None = None, tokens: int | None = None, **more: Any) -> Row:
    """One row of an answer: one block."""
    message = {"model": MODEL, "id": key, "type": "message", "role": "assistant", "content": [content],
               "stop_reason": stop, "stop_sequence": None}
    if tokens is not None:
        message["usage"] = {"input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7,
                            "output_tokens": tokens}
    return {"type": "assistant", "message": message, "requestId": f"req_{key}", **more}


def result(said: str, key: str = "toolu_01A", error: bool = False, **more: Any) -> Row:
    part: Row = {"type": "tool_result", "tool_use_id": key, "content": said}
    if error:
        part["is_error"] = True
    return prompt([part], **more)


def failure(said: str = CAP, **more: Any) -> Row:
    """A row that Claude Code writes itself about a failure."""
    message = {"id": "5c1", "model": "<synthetic>", "role": "assistant", "stop_reason": "stop_sequence",
               "content": [text(said)], "usage": {"input_tokens": 0, "output_tokens": 0}}
    return {"type": "assistant", "message": message, "isApiErrorMessage": True, **more}


def system(subtype: str, **more: Any) -> Row:
    return {"type": "system", "subtype": subtype, **more}


def claude(*rows: Row) -> str:
    """The file: each row below the one before it, unless it names another parent."""
    lines, last = [], None
    for number, row in enumerate(rows, 1):
        uuid = row.get("uuid", f"u{number}")
        common = {"parentUuid": last, "isSidechain": False, "cwd": "/work", "sessionId": "s-1", "version": "2.1.7",
                  "timestamp": f"2026-02-06T06:42:{number:02}.000Z"}
        lines.append(json.dumps({**common, **row, "uuid": uuid}, ensure_ascii=False))
        last = uuid
    return "".join(f"{line}\n" for line in lines)


# -- pi ----------------------------------------------------------------------------------------------------------------


def header(version: int = 3) -> Row:
    started = "2026-05-12T01:02:27.657Z"
    return {"type": "session", "version": version, "id": "5e55", "timestamp": started, "cwd": "/work"}


def entry(kind: str, **more: Any) -> Row:
    return {"type": kind, **more}


def pi_user(said: str, **more: Any) -> Row:
    return {"type": "message", "message": {"role": "user", "content": [text(said)]}, **more}


def pi_call(key: str = "call_01", name: str = "write", **given: Any) -> Row:
    return {"type": "toolCall", "id": key, "name": name, "arguments": given}


def pi_reply(*content: Row, stop: str | None = "stop", tokens: int = 7, api: str | None = "openai-completions",
            message: Row | None = None, **more: Any) -> Row:
    said: Row = {"role": "assistant", "content": list(content), "provider": "p", "model": "m-1",
                 "usage": {"input": 12, "output": tokens, "cacheRead": 5, "cacheWrite": 0, "totalTokens": 19}}
    if api is not None:
        said["api"] = api
    if stop is not None:
        said["stopReason"] = stop
    return {"type": "message", "message": {**said, **(message or {})}, **more}


def pi_result(said: str = "ok", key: str = "call_01", error: bool = False, **more: Any) -> Row:
    message = {"role": "toolResult", "toolCallId": key, "toolName": "write", "content": [text(said)], "isError": error}
    return {"type": "message", "message": message, **more}


def pi(*rows: Row, version: int = 3) -> str:
    """The file: a header, then each entry below the one before it, unless it names another parent."""
    lines, last = [json.dumps(header(version))], None
    for number, row in enumerate(rows, 1):
        tree = {"id": row.get("id", f"e{number}"), "parentId": last} if version > 1 else {}
        lines.append(json.dumps({"timestamp": f"2026-05-12T01:02:{number:02}.000Z", **tree, **row}, ensure_ascii=False))
        last = tree.get("id")
    return "".join(f"{line}\n" for line in lines)


# -- read --------------------------------------------------------------------------------------------------------------


def show(content: str | bytes, folder: Path, settings: Settings | None = None, name: str = "s.jsonl") -> View:
    """A file's content, read, replayed and viewed."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return view_file(path, settings)


def view_file(path: Path, settings: Settings | None = None) -> View:
    """A file, read, replayed and viewed."""
    return view(replay(open_case(open_paths([str(path)])), settings))


def stops(seen: View) -> list[str]:
    """The effective reasons of all responses."""
    return [facts.judgement.stop.normalized.value for facts in seen.responses]


def rules(seen: View, index: int = 0) -> list[str]:
    """The rules that read the reason of one response."""
    return [each.rule for each in seen.responses[index].judgement.stop.evidence]


def words(seen: View) -> list[str]:
    """The verdicts of all turns."""
    return [turn.verdict.word for turn in seen.turns]


def places(seen: View) -> list[list[str]]:
    """The places of all exchanges, by turn."""
    return [[link.place.value for link in turn.run.record.links] for turn in seen.turns]
