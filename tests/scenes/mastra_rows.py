"""Builders of Mastra's spans, messages and databases, in the shapes that Mastra writes; no test lives here."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

Row = dict[str, Any]
CUT, WHOLE = '{"path": "report.md", "content": "Satur', '{"path":"a.txt"}'
COUNTS = {"inputTokens": 14, "outputTokens": 22, "inputDetails": {"cacheRead": 3, "cacheWrite": 4},
          "outputDetails": {"reasoning": 5}}
COLUMNS = ("traceId", "spanId", "parentSpanId", "startedAt", "endedAt", "spanType", "name", "metadata", "attributes",
           "input", "output", "error")


def moment(second: int) -> str:
    return f"2026-11-29T16:{second // 60:02}:{second % 60:02}.000Z"


class Trace:
    """The spans of one trace; each span starts a second after the one before it."""

    def __init__(self, key: str = "t1", thread: str | None = "th", second: int = 0) -> None:
        self.key, self.thread, self.second, self.spans = key, thread, second, list[Row]()

    def span(self, kind: str, above: Row | None = None, name: str = "", end: bool = True, **members: Any) -> Row:
        self.second += 1
        metadata = {"threadId": self.thread} if self.thread else {}
        found: Row = {"traceId": self.key, "spanId": f"{self.key}.{len(self.spans)}", "spanType": kind,
                      "name": name or kind, "parentSpanId": above and above["spanId"], "startedAt": moment(self.second),
                      "endedAt": moment(self.second + 100) if end else None, "metadata": metadata, **members}
        self.spans.append(found)
        return found

    def run(self, asked: Any = "go", above: Row | None = None, **members: Any) -> Row:
        """A run with its generation, which is returned."""
        return self.generation(self.span("agent_run", above, "agent run: 'a'", input=asked, **members))

    def generation(self, above: Row | None, **members: Any) -> Row:
        return self.span("model_generation", above, "llm: 'm'", attributes={
            "model": "m", "provider": "openai.chat", "parameters": {"maxOutputTokens": 400}}, **members)

    def step(self, above: Row, word: str | None = "stop", said: str | None = "Hi.", *calls: Row, **members: Any) -> Row:
        """A step with the pieces of its stream. Of a call, `raw` is what came, and `args` what Mastra made of it."""
        attributes: Row = {"usage": COUNTS, "messageId": f"m-{self.key}"}
        if word is not None:
            attributes["finishReason"] = word
        listed = [{"toolCallId": call["id"], "toolName": call["name"], "args": call["args"]} for call in calls]
        output = {} if said is None else {"output": {"text": said, "toolCalls": listed}}
        step = self.span("model_step", above, attributes=attributes, **{**output, **members})
        request = self.span("model_inference", step, attributes={
            "model": "m", "provider": "openai.chat", "responseModel": "m-1", "parameters": {"maxOutputTokens": 400}})
        for call in calls:
            if "raw" in call:
                self.piece(request, "tool-call", toolCallId=call["id"], toolName=call["name"], toolInput=call["raw"])
        return step

    def piece(self, above: Row, kind: str, **output: Any) -> Row:
        return self.span("model_chunk", above, attributes={"chunkType": kind}, output=output)

    def tool(self, above: Row, output: Any = "contents", key: str | None = "c1", **members: Any) -> Row:
        attributes = {} if key is None else {"toolCallId": key}
        shown: Row = {"attributes": attributes, "output": output, **members}
        return self.span("tool_call", above, "tool: 'write_file'", **shown)

    def file(self) -> str:
        """The trace as Mastra's server returns it."""
        return json.dumps({"traceId": self.key, "spans": self.spans})


def call(raw: Any = WHOLE, args: Any = None, key: str = "c1", name: str = "write_file") -> Row:
    return {"id": key, "name": name, "raw": raw, "args": args if args is not None else {"path": "a.txt"}}


def bare(args: Any, key: str = "c1") -> Row:
    """A call without a piece of the stream."""
    return {"id": key, "name": "write_file", "args": args}


def refused(name: str = "write_file") -> Row:
    """The result with which Mastra refuses the arguments of a call."""
    said = (f"Tool input validation failed for {name}. Please fix the following errors and try again:\n- path: "
            "Required\n\nProvided arguments: {}")
    return {"error": True, "validationErrors": {}, "message": said}


def message(*parts: Row, role: str = "assistant", key: str = "m1", second: int = 5, thread: str = "th",
            **about: Any) -> Row:
    return {"id": key, "role": role, "createdAt": moment(second), "threadId": thread,
            "content": {"format": 2, "parts": list(parts), "metadata": about}}


def asked(said: str = "go", **more: Any) -> Row:
    return message({"type": "text", "text": said}, role="user", key=f"u-{said}", **more)


def used(args: Any, result: Any = "contents", key: str = "c1", state: str = "result") -> Row:
    """A call in a message, with its result."""
    return {"type": "tool-invocation", "toolInvocation": {
        "state": state, "toolCallId": key, "toolName": "write_file", "args": args, "result": result}}


def messages_file(*rows: Row) -> str:
    """Messages as Mastra's server returns them."""
    return json.dumps({"messages": list(rows)})


def database(
    folder: Path, spans: list[Row] | None = None, rows: tuple[Row, ...] = (), titles: dict[str, str] | None = None,
    binary: bool = False,
) -> Path:
    """A database, whose columns of JSON are text or, with `binary`, SQLite's own form."""
    path = folder / "mastra.db"
    with closing(sqlite3.connect(path)) as made, made:
        if spans is not None:
            made.execute(f"CREATE TABLE mastra_ai_spans ({', '.join(COLUMNS)})")
            for span in spans:
                made.execute(f"INSERT INTO mastra_ai_spans VALUES ({', '.join('?' * len(COLUMNS))})", [
                    _column(span.get(name), name, binary) for name in COLUMNS])
        made.execute("CREATE TABLE mastra_threads (id, title)")
        made.executemany("INSERT INTO mastra_threads VALUES (?, ?)", (titles or {}).items())
        made.execute("CREATE TABLE mastra_messages (id, thread_id, content, role, type, createdAt, resourceId)")
        for row in rows:
            made.execute("INSERT INTO mastra_messages VALUES (?, ?, ?, ?, 'v2', ?, 'u')", (
                row["id"], row["threadId"], json.dumps(row["content"]), row["role"], row["createdAt"]))
    return path


def _column(value: Any, name: str, binary: bool) -> Any:
    if value is None or name not in ("metadata", "attributes", "input", "output", "error"):
        return value
    return jsonb(value) if binary else json.dumps(value)


def jsonb(value: Any) -> bytes:
    """A value in SQLite's binary form of JSON."""
    if value is None or isinstance(value, bool):
        return element({None: 0, True: 1, False: 2}[value], b"")
    if isinstance(value, int):
        return element(3, str(value).encode())
    if isinstance(value, float):
        return element(5, repr(value).encode())
    if isinstance(value, str):
        escaped = json.dumps(value)[1:-1]
        return element(7 if escaped == value else 8, escaped.encode())
    if isinstance(value, list):
        return element(11, b"".join(map(jsonb, value)))
    return element(12, b"".join(jsonb(name) + jsonb(member) for name, member in value.items()))


def element(kind: int, content: bytes) -> bytes:
    """One element: its type and its length, then its content."""
    size = len(content)
    if size <= 11:
        return bytes([size << 4 | kind]) + content
    width = next(width for width in (1, 2, 4, 8) if size < 256 ** width)
    return bytes([(11 + width.bit_length()) << 4 | kind]) + size.to_bytes(width, "big") + content
