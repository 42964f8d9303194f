"""The database of CrewAI with the tasks of the last kickoff of a project (`latest_kickoff_task_outputs.db`).

A task has its prompt, the messages of its run and its output; older releases store no messages. Stop words, caps,
counts and models are not stored, nor is a task that failed, and the text beside a call is lost. The arguments of
OpenAI's calls are the model's text; those of Claude are rewritten. For a model without calls, CrewAI reads
`Action Input:` out of the text, repairs cut JSON and runs the tool, and adds `Observation:` with the result to the
text. The last answer may be only in the output. Source: crewai 1.15 `agents/parser.py`, `translations/en.json`,
`memory/storage/kickoff_task_outputs_storage.py`; 18 databases that it wrote over two APIs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import Any

from inspector.sessions.importers.database import snapshot
from inspector.sessions.importers.records import compact_json, number_records, object_in
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_message
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from loop_core.values import At, ToolCall

FIELDS: Fields = {"message": {"role": (str,), "tool_calls": (list,), "tool_call_id": (str,), "name": (str,)}}
TABLE = "latest_kickoff_task_outputs"
RESULT = "\nObservation:"
"""What CrewAI writes between the text of an answer and the result of the tool that the text asks for."""
ACTION = re.compile(r"^Action:[ \t]*(?P<name>[^\n]+)\nAction Input:[ \t]*", re.MULTILINE)
"""Matches the beginning of a call in the text of an answer."""
ERRORS = ("Error executing tool", "Error: ", "I encountered an error", "You tried to use the tool ",
          "I tried reusing the same input")
"""The beginnings of results of tools that failed, or did not run."""


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the database."""
    return _Tasks(path, options).read_records(number_records(_rows(path)))


def _rows(path: str) -> Iterator[bytes]:
    """The messages of each task in order, and its output where the messages end without an answer."""
    with snapshot(path) as database:
        for row in database.execute(f"SELECT * FROM {TABLE} ORDER BY task_index, rowid"):  # noqa: S608
            output = object_in(known_text(row["output"]) or "")
            description = known_text(output.get("description")) or ""
            about = {"task": str(row["task_id"]), "title": known_text(output.get("name")) or description[:80]}
            messages = objects_of(output.get("messages")) or [{"role": "user", "content": description}]
            for message in messages:
                yield compact_json({**about, "message": message})
            if raw := _unsaid(messages[-1], known_text(output.get("raw"))):
                yield compact_json({**about, "message": {"role": "assistant", "content": raw}})


def _unsaid(last: dict[str, Any], raw: str | None) -> str | None:
    """The output of a task if it is an answer after the last message. It may also be that message, or the result of a
    tool."""
    text = any_text(last.get("content"))
    if last.get("role") == "assistant" and RESULT not in text:
        return None
    return raw if last.get("role") == "user" or (raw or "").strip() not in text else None


class _Tasks(ChatReader):
    name, agent, fields = "crewai", "CrewAI", FIELDS
    unit, row_word = "row", ("a row", "rows")

    def session_of(self, value: dict[str, Any]) -> str:
        key = known_text(value.get("task")) or self.session
        self.titles[key] = known_text(value.get("title")) or key
        return key

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads one message. Only the first message of the user is the prompt; CrewAI writes the later ones."""
        message = object_of(line.value.get("message"))
        role, text = message.get("role"), any_text(message.get("content"))
        if role == "assistant":
            self._answer(line, message)
        elif role == "tool":
            self.result(line, place, message.get("tool_call_id"), text, _has_failed(text), message.get("name"))
        elif role == "user":
            self.say(line, place, text, own=place.answer is not None)
        else:
            lines.count(role, frozenset({"system"}))
        return self.here

    def _answer(self, line: TranscriptLine, message: dict[str, Any]) -> None:
        answer = self.answer(line, self.here)
        at = answer.word_at = answer.take(line)
        text = known_text(message.get("content")) or ""
        said, mark, result = text.partition(RESULT)
        found = ACTION.search(said)
        if found is None:
            take_message(answer, message, line, at, "message")
            return
        answer.add_text(said[: found.start()])
        _take_action(answer, found["name"].strip(), said[found.end() :], pointer_at(at, "message", "content"))
        if mark:
            self.result(line, self.here, None, result.strip(), _has_failed(result), found["name"].strip())


def _has_failed(result: str) -> bool:
    return result.strip().startswith(ERRORS)


def _take_action(answer: TranscriptAnswer, name: str, text: str, at: At) -> None:
    """Reads the input of a tool: the object at the beginning of a text, or all of a text in which none ends."""
    try:
        end = JSONDecoder(strict=False).raw_decode(text)[1]
    except (ValueError, RecursionError):
        end = len(text)
    answer.parts.append(ToolCall(None, name, text[:end], True, at=at))
