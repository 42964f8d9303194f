"""Databases of Agno (`SqliteDb`): runs with their messages, in a table of runs or, before 3, in that of sessions.

No stop word is stored, and the `COMPLETED` of a run does not say how an answer ended. The agent's data has the cap, so
the counts may show a cut. Claude's arguments are parsed, so that cut ones look complete; if its word was not
`tool_use`, Agno stores the block of a call instead of the call. Before 3, a failed run has its input and no messages,
and the last answer of a run may be in its content only. Source: agno 3.1 and 2.3 `db/sqlite/schemas.py`,
`models/anthropic/claude.py`; 88 runs that they wrote over three APIs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from inspector.sessions.importers.database import schema, snapshot
from inspector.sessions.importers.records import number_records
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, take_block, take_message
from inspector.sessions.transcripts.ending_rules import infer
from inspector.sessions.transcripts.member_values import (
    cap_of,
    known_text,
    numbered_objects,
    object_of,
    objects_of,
    usage_in,
)
from loop_core.values import StopReason, ToolCall

FIELDS: Fields = {"": {"session": (str,), "message": (dict,), "status": (str,)},
                  "message": {"role": (str,), "tool_calls": (list,), "provider_data": (dict,), "metrics": (dict,)}}
COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens", "cache_read_tokens", "cache_write_tokens")


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the database."""
    return _Runs(path, options).read_records(number_records(_rows(path)))


def _rows(path: str) -> Iterator[bytes]:
    """The messages and the end of each run; sessions come first, because their agents have the caps. The program that
    uses Agno chooses the names of tables."""
    caps, tables = dict[Any, int | None](), schema(path)
    with snapshot(path) as database:
        for name in sorted(tables, key=lambda name: "run_data" in tables[name]):
            if not tables[name].isdisjoint({"session_type", "run_data"}):
                quoted = name.replace('"', '""')
                for row in database.execute(f'SELECT * FROM "{quoted}" ORDER BY rowid'):  # noqa: S608
                    yield from _records(dict(row), caps)


def _records(row: dict[str, Any], caps: dict[Any, int | None]) -> Iterator[bytes]:
    session, held = row["session_id"], _json(row.get("runs", row.get("run_data")))
    caps.setdefault(session, cap_of(object_of(object_of(_json(row.get("agent_data"))).get("model"))))
    for run in objects_of(held if isinstance(held, list) else [held]):
        about = {"session": session, "run": run.get("run_id"), "parent": run.get("parent_run_id"),
                 "model": run.get("model"), "cap": caps[session]}
        for message in objects_of(run.get("messages")):
            if message.get("from_history") is not True:  # else it is in an earlier run too
                yield json.dumps({**about, "message": message}).encode()
        end = {name: run.get(name) for name in ("status", "content")}
        if not objects_of(run.get("messages")):
            end["question"] = object_of(run.get("input")).get("input_content")
        errors = [event for event in objects_of(run.get("events")) if event.get("event") == "RunError"]
        yield json.dumps({**about, **end, "errors": errors}).encode()


def _json(value: Any) -> Any:
    """The value of a column, which older releases encoded twice."""
    try:
        held = json.loads(value) if isinstance(value, str) else None
        return json.loads(held) if isinstance(held, str) else held
    except (ValueError, RecursionError):
        return None


class _Runs(ChatReader):
    name, agent, fields = "agno", "Agno", FIELDS
    unit, row_word = "row", ("a row", "rows")

    def session_of(self, value: dict[str, Any]) -> str:
        """The session of a record; a run that another one started is a session below it."""
        session, run = known_text(value.get("session")) or "", known_text(value.get("run"))
        if known_text(value.get("parent")) is not None:
            self.parents[f"{session}/{run}"], session = session, f"{session}/{run}"
        self.titles[session] = session
        return session

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a message, or the end of a run."""
        message = object_of(line.value.get("message"))
        role, text = message.get("role"), any_text(message.get("content"))
        if "status" in line.value:
            self._end_run(line)
        elif role == "assistant":
            self._answer(line, message)
        elif role == "tool":
            self.result(line, place, message.get("tool_call_id"), text, message.get("tool_call_error") is True,
                        message.get("tool_name"))
        elif role == "user":
            self.say(line, place, text)
        else:
            lines.count(role, frozenset({"system", "developer"}))
        return self.here

    def _begin(self, line: TranscriptLine) -> TranscriptAnswer:
        answer = self.answer(line, self.here, model=line.value.get("model"),
                             begin=object_of(line.value.get("message")).get("created_at"))
        answer.cap = line.value.get("cap")
        answer.word_at = answer.take(line)
        return answer

    def _answer(self, line: TranscriptLine, message: dict[str, Any]) -> None:
        answer = self._begin(line)
        blocks = [(number, block) for number, block in numbered_objects(
            object_of(message.get("provider_data")).get("content_blocks")) if block.get("type") == "tool_use"]
        named = {call.get("id") for call in objects_of(message.get("tool_calls"))}
        take_message(answer, {**message, "tool_calls": None} if blocks else message, line, answer.word_at, "message")
        for number, block in blocks:
            take_block(answer, block, line, answer.word_at, "message", "provider_data", "content_blocks", number)
            call = answer.parts[-1]
            if isinstance(call, ToolCall) and call.id not in named:
                answer.parts[-1] = call._replace(closed=False)
        answer.usage = usage_in(object_of(message.get("metrics")), *COUNTS)

    def _end_run(self, line: TranscriptLine) -> None:
        status, text = line.value.get("status"), line.value.get("content")
        if line.value.get("question") is not None:
            self.say(line, self.here, any_text(line.value["question"]))
        errors = objects_of(line.value.get("errors"))  # of a streamed run, whose content may be the text so far
        text, why = (text, any_text(errors[0].get("content"))) if errors else (None, any_text(text))
        if status == "CANCELLED":
            self.say(line, self.here, "", mark="interrupted")
        elif status == "ERROR" and (self.here.has_user_message or self.here.result_count):
            answer = self._begin(line)
            answer.add_text(text if text != why else None)
            answer.fail(why, answer.word_at)
        elif status == "COMPLETED" and self.here.has_user_message and not self.here.result_count:
            self._begin(line).add_text(why)
        elif status == "ERROR":
            self.say(line, self.here, f"the run ended with an error: {why[:200]}", mark="stopped")

    def infer_end(self, answer: TranscriptAnswer) -> StopReason:
        """The stop reason of an answer, also by the cap of its agent."""
        return infer(answer)
