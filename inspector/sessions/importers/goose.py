"""Sessions of Goose: `sessions.db`, and the JSON lines of older releases.

The first releases write no line about the session, and write the blocks of a message in serde's default form:
`{"ToolRequest": {"id", "tool_call"}}` (seen in goose #1108). Goose stores no stop word. A call whose arguments could
not be parsed is an error in the message, which shows whether they ended too early. Source: block/goose
`crates/goose/src/session`, `crates/goose/src/providers/formats/openai.rs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.database import TABLE, ChatTableReader
from inspector.sessions.importers.records import (
    compact_json,
    elements,
    first_look,
    first_value,
    number_records,
    whole_object,
)
from inspector.sessions.reasons import UNREAD_CALL, inferred_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import call_of, pointer_at
from inspector.sessions.transcripts.member_values import numbered_objects, object_of, objects_of, text_or_none
from loop_core.json_parser import JsonPath
from loop_core.values import At, Finding, ReasoningPart, Severity, Stop, ToolCall, ToolResultPart

UNREAD = re.compile(r"Could not interpret tool use parameters")
"""Matches Goose's text instead of a call whose arguments are not JSON."""
ENDED_EARLY = re.compile(r"EOF while parsing")
"""Matches the message of the JSON parser (serde_json) about arguments that end too early."""
EMPTY = re.compile(r"EOF while parsing a value at line 1 column 0\b")
"""Matches the parser's message about empty arguments, as for a tool without parameters (goose #1068)."""
_RAW = re.compile(r"Raw (?:JSON|arguments): '?(.*?)'?$", re.DOTALL)
"""Matches the arguments, which some releases quote after the error."""
TAGS: Mapping[str, str] = {
    "Text": "text", "ToolRequest": "toolRequest", "ToolResponse": "toolResponse", "Thinking": "thinking",
    "Image": "image",
}
"""Name of a block in the first releases -> its name in later ones."""
BLOCKS = frozenset({*TAGS.values(), "toolConfirmationRequest", "frontendToolRequest", "redactedThinking",
                    "contextLengthExceeded", "summarizationRequested", "systemNotification", "reasoning"})
"""The types of blocks by which messages are recognised in a file without a line about its session."""
THOUGHTS: Mapping[str, str] = {"thinking": "thinking", "reasoning": "text"}
"""Type of a block with reasoning -> its member with the text. Some releases wrote `reasoning` for the APIs of
OpenAI's form (`message.rs`, `formats/openai.rs`)."""
FAILED = re.compile(r"\ARan into this error: (?P<why>.*?)\.?\n\n"
                    r"Please retry if you think this is a transient or recoverable error\.\Z", re.DOTALL)
"""Matches the whole text that Goose writes in the role of the model for a failed request (`agent.rs`)."""
STOPPED: Mapping[str, str] = {
    "I've reached the maximum number of actions I can do without user input. Would you like me to continue?":
        "the turn had used up its actions",
    "The tool calling loop was interrupted. How would you like to proceed?": "the user interrupted it",
}
"""Whole text that Goose writes in the role of the model when it ends a turn -> the reason (`agent.rs`, `goose-cli`)."""
CALLS = frozenset({"toolRequest", "frontendToolRequest"})
"""The types of blocks that are calls; those of the second are run by the program that embeds Goose."""
Blocks = list[tuple[JsonPath, dict[str, Any]]]
"""The blocks of a message, each with its path in the list."""
FIELDS: Fields = {
    "": {"role": (str,), "content_json": (list,), "content": (list,), "metadata_json": (dict,)},
}


def sniff(head: bytes, path: str) -> int:
    """Recognises a first line with the working directory, or messages."""
    look = first_look(head)
    first = object_of(look.first)
    if "working_dir" in first and {"description", "message_count", "conversation"} & first.keys():
        return 95
    return 85 if any(map(_is_message, look.objects)) else 0


def _is_message(value: dict[str, Any]) -> bool:
    """Whether a value is a message of the JSON lines, whose blocks have names that no other agent uses."""
    if value.get("role") not in ("user", "assistant") or type(value.get("created")) is not int:
        return False
    blocks = [_add_type(block)[0] for block in objects_of(value.get("content"))]
    return bool(blocks) and all(block.get("type") in BLOCKS for block in blocks)


def _add_type(block: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A block with its type, in the form of later releases, and the path of its members in the stored block."""
    tag = next(iter(block), "") if len(block) == 1 else ""
    held = block.get(tag) if tag in TAGS else None
    if not isinstance(held, dict):
        return block, ()
    return {**held, "type": TAGS[tag]}, (tag,)


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file."""
    reader = _Reader(path, options)
    if data.startswith(SQLITE):
        return reader.read_database()
    if "conversation" in (first_value(data) or {}):
        reader.unit = "message"
        pieces = number_records(_export_rows(data, whole_object(data)), cut=True)
        return reader.read_records(pieces)
    reader.unit = "line"
    return reader.read(data)


def _export_rows(data: bytes, value: dict[str, Any]) -> Iterator[bytes]:
    """The records in the output of `goose session export`: the session, and its messages."""
    session = {name: value.get(name) for name in ("id", "name", "description", "working_dir", "model_config")}
    yield compact_json({TABLE: "sessions", **session})
    yield from elements(data, "conversation")


class _Reader(ChatTableReader):
    name, agent, fields = "goose", "Goose", FIELDS
    words = "Goose keeps no stop word: each end is inferred from other rows and marked as inferred"
    created = "created_timestamp"
    json_columns = frozenset({"content_json", "metadata_json", "model_config_json"})
    titles_in = ("name", "description")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.written: Any = None
        """The time at which the last row of an answer was written."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        # the first line of an older file is its session
        if "role" not in line.value and TABLE not in line.value and (
                "working_dir" in line.value or "message_count" in line.value):
            line.value[TABLE] = "sessions"
        return super().take(line, lines, place)

    def open_session(self, value: dict[str, Any]) -> None:
        config = object_of(value.get("model_config_json") or value.get("model_config"))
        self.model = text_or_none(config.get("model_name"))
        self.written = None

    def message(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        value = line.value
        column = "content_json" if "content_json" in value else "content"
        blocks: Blocks = []
        for number, stored in numbered_objects(value.get(column)):
            block, path = _add_type(stored)
            blocks.append(((number, *path), block))
        if value.get("role") == "assistant":
            self._answer(line, column, blocks)
        elif value.get("role") == "user":
            # Goose's own messages in the role of the user are not shown to the user.
            hidden = object_of(value.get("metadata_json") or value.get("metadata")).get("userVisible") is False
            results = [_result(block) for _, block in blocks if block.get("type") == "toolResponse"]
            self.results(line, self.here, *results)
            for _, block in blocks:
                if block.get("type") == "text" and isinstance(block.get("text"), str):
                    self.say(line, self.here, block["text"], own=hidden)
        else:
            lines.count(value.get("role"), frozenset())

    def _answer(self, line: TranscriptLine, column: str, blocks: Blocks) -> None:
        value = line.value
        metadata = object_of(value.get("metadata_json") or value.get("metadata"))
        model = object_of(metadata.get("inference")).get("requestedModel")
        started = value.get("created_timestamp") or value.get("created")
        only = blocks[0][1] if len(blocks) == 1 else {}
        text = only.get("text", only.get("message"))
        if isinstance(text, str) and text in STOPPED:
            self.say(line, self.here, f"Goose says: {STOPPED[text]}", mark="stopped")
            return
        answer = self._split(blocks, started)
        self.written = started
        if answer is None:
            answer = self.answer(line, self.here, model=model, key=f"{self.session}:{line.number}", begin=started)
        at = answer.take(line)
        answer.word_at = answer.word_at if len(answer.lines) > 1 else at
        failed = FAILED.match(text) if isinstance(text, str) else None
        if failed is not None or only.get("type") == "error":
            answer.fail(failed["why"] if failed is not None else text_or_none(text) or "no message", at)
            return
        for path, block in blocks:
            here = pointer_at(at, column, *path)
            kind = text_or_none(block.get("type")) or ""
            if kind == "text":
                answer.add_text(block.get("text"))
            elif kind in THOUGHTS and isinstance(block.get(THOUGHTS[kind]), str):
                part = ReasoningPart(block[THOUGHTS[kind]])
                answer.parts += [part] if part not in answer.parts else []  # repeated in each row of a split answer
            elif kind in CALLS:
                name = "toolCall" if "toolCall" in block else "tool_call"
                self._call(answer, block, object_of(block.get(name)), here,
                           partial(slice_of, line.data, column, *path, name))
            elif kind == "systemNotification":
                self.remarks["hold a note of Goose's own"] += 1

    def _split(self, blocks: Blocks, started: Any) -> TranscriptAnswer | None:
        """The answer that a row continues; None if it begins one. Goose writes the text of an answer, then each call
        with its result. A call continues the answer if it is directly after the previous row, or after results and
        written in the same second."""
        answer, rows = self.here.answer, self.here.rows()
        kinds = {block.get("type") for _, block in blocks}
        if answer is None or CALLS.isdisjoint(kinds) or not all(row.results for row in rows):
            return None
        beside = not rows or (started is not None and started == self.written and "text" not in kinds)
        return answer if beside else None

    def _call(
        self, answer: TranscriptAnswer, block: dict[str, Any], call: dict[str, Any], at: At, slice_at: Any
    ) -> None:
        """Adds a call. A call that Goose could not read is an error instead."""
        key = text_or_none(block.get("id"))
        # A call is {"status", "value"} or, in serde's form, {"Ok": …} or {"Err": …}.
        inner = "value" if isinstance(call.get("value"), dict) else "Ok"
        call_value = object_of(call.get(inner))
        if call_value:
            answer.parts.append(call_of(key, call_value.get("name"), call_value.get("arguments"),
                                        partial(slice_at, inner), "arguments", at))
            return
        error = call.get("error") or call.get("Err") or ""
        message = _message(error)
        quoted = _RAW.search(message)
        arguments = quoted[1] if quoted is not None else None
        answer.parts.append(ToolCall(key, "", arguments, UNREAD.search(message) is None, at=at))
        answer.findings.append(Finding(UNREAD_CALL, Severity.INFO,
                                       f"{self.unit} {answer.line}: Goose could not read a call: {message[:200]}", at))
        if UNREAD.search(message):
            empty = EMPTY.search(message) is not None
            cut = ENDED_EARLY.search(message) is not None and not empty
            stop = Stop.MAX_TOKENS if cut else Stop.MALFORMED_TOOL_CALL
            how = ("its arguments are empty" if empty else
                   "its arguments end in the middle of their JSON" if cut else "its arguments are not JSON")
            answer.stop = inferred_reason(stop, at, "call_unread", at, f"Goose could not read a call: {how}")


def _message(error: Any) -> str:
    held = object_of(error)
    if len(held) == 1 and "message" not in held:  # the first releases: {"InvalidParameters": "…"}
        error = next(iter(held.values()))
    return error if isinstance(error, str) else str(held.get("message") or error or "")


def _result(block: dict[str, Any]) -> ToolResultPart:
    """The result of a tool, or its error."""
    result = object_of(block.get("toolResult", block.get("tool_result")))
    value = result.get("value", result.get("Ok"))  # as in `_call`: Goose's own form, or serde's
    content = object_of(value).get("content") if isinstance(value, dict) else value
    texts = [_text(object_of(each)) for each in content] if isinstance(content, list) else []
    error = result.get("error", result.get("Err"))
    structured_content = object_of(value).get("structuredContent")
    output = "\n".join(text for text in texts if isinstance(text, str)) or _message(error)
    output = output or ("" if structured_content is None else compact_json(structured_content).decode())
    failed = error is not None or object_of(value).get("isError") is True
    return ToolResultPart(text_or_none(block.get("id")), None, output, failed)


def _text(content: dict[str, Any]) -> Any:
    """The text of a part of a result, or of the resource in it."""
    return content.get("text", object_of(content.get("resource")).get("text"))
