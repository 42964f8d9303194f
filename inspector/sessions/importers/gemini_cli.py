"""Chats of Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, since version 0.40 a `.jsonl` of records.

A line of a newer file is a version of a message; the last version of an id counts. `$set` changes the header and may
replace all messages; `$rewindTo` goes back to before a message. Tool results are in the message with the calls. The
messages in `$set` are those of the model's history: their parts repeat the calls and the thoughts, and tool results are
repeated as messages of the user. The stop word is not stored, but the screen's note about it is: a row `info` such as
"Response truncated due to token limits.", before the message that it concerns. Source: gemini-cli 0.61.0
`chatRecordingService.ts`, `useGeminiStream.ts`, `useHistoryManager.ts`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, cast

from inspector.sessions.importers.records import Piece, elements, first_look, first_value, list_pieces, object_in
from inspector.sessions.reasons import recorder_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptLines, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import known_text, number_of, numbered_objects, object_of, objects_of
from loop_core.json_parser import JsonPath
from loop_core.values import ReasoningPart, Stop, ToolResultPart, Usage
from loop_core.wire.failures import StopRow
from loop_core.wire.gemini_generate.table import API

_SCREEN = "gemini-cli useGeminiStream.ts, finishReasonMessages"
STOPS: Mapping[str, StopRow] = {
    "Response truncated due to token limits.": StopRow(Stop.MAX_TOKENS, None, _SCREEN),
    "Response stopped due to safety reasons.": StopRow(Stop.SAFETY_BLOCKED, None, _SCREEN),
    "Response stopped due to recitation policy.": StopRow(Stop.SAFETY_BLOCKED, "recitation", _SCREEN),
    "Response stopped due to unsupported language.": StopRow(Stop.SAFETY_BLOCKED, "language", _SCREEN),
    "Response stopped due to forbidden terms.": StopRow(Stop.SAFETY_BLOCKED, None, _SCREEN),
    "Response stopped due to prohibited content.": StopRow(Stop.SAFETY_BLOCKED, None, _SCREEN),
    "Response stopped due to sensitive personally identifiable information.": StopRow(
        Stop.SAFETY_BLOCKED, None, _SCREEN),
    "Response stopped for other reasons.": StopRow(Stop.UNKNOWN, None, _SCREEN),
    "Response stopped due to malformed function call.": StopRow(Stop.MALFORMED_TOOL_CALL, None, _SCREEN),
    "Response stopped due to image safety violations.": StopRow(Stop.SAFETY_BLOCKED, None, _SCREEN),
    "Response stopped due to unexpected tool call.": StopRow(Stop.MALFORMED_TOOL_CALL, None, _SCREEN),
    "Response stopped due to prohibited image content.": StopRow(Stop.SAFETY_BLOCKED, None, _SCREEN),
    "Response stopped because no image was generated.": StopRow(Stop.UNKNOWN, None, _SCREEN),
}
"""Note of Gemini CLI on the screen -> the stop reason. There is a note for every finish reason except STOP."""
CANCELLED = "Request cancelled."
FAILED = "[API Error"
"""The beginning of the text in the row about a failed request."""
MODEL = frozenset({"gemini", "model", "assistant"})
"""The types of a message of the model; older files have the last two."""
NOTES = frozenset({"info", "error", "warning"})
"""The types of rows that were only shown on the screen."""
OWN = ("<session_context>", "<hook_context>", "<state_snapshot>")
"""Beginnings of texts that Gemini CLI adds to the history in the role of the user (`sessionUtils.ts`)."""
ACKNOWLEDGED = "Got it. Thanks for the additional context!"
"""The answer that Gemini CLI itself writes after a summary (`chatCompressionService.ts`)."""
INTERRUPTED = "[The previous response was interrupted before it completed.]"
"""The answer that Gemini CLI itself writes if a stream failed after the results of calls (`geminiChat.ts`)."""
RECEIVED = "Binary content received. Proceeding with analysis."
"""The thought that Gemini CLI itself writes between the result of a call and the message with the image or file that
the call returned (`geminiChat.ts`)."""
PATCH = "$patch"
"""The name of a record that shortens stored results or removes messages, which have been read before."""
OPEN = frozenset({"validating", "scheduled", "awaiting_approval", "executing"})
"""The states of a call that has no result so far."""
Order = list[tuple[bytes, bool]]
"""A list of records: the JSON of each, and whether a cut file may end in it."""
FIELDS: Fields = {
    "": {
        "id": (str,), "type": (str,), "role": (str,), "timestamp": (str,), "content": (str, list, dict),
        "parts": (list,), "thoughts": (list,), "tokens": (dict,), "model": (str,), "toolCalls": (list,),
    },
}


def sniff(head: bytes, path: str) -> int:
    """Recognises a header with the session and its project, or an older history with Gemini's roles."""
    parsed_head = first_look(head)
    for value in filter(None, map(object_of, (parsed_head.first, *parsed_head.lines[:2]))):
        if "sessionId" in value and "projectHash" in value:
            return 100
        rows = objects_of(value.get("history")) or objects_of(value.get("messages"))
        if any(row.get("role") == "gemini" or (row.get("type") == "gemini" and "id" in row) for row in rows):
            return 95
    # For a file whose header line is missing.
    return 80 if any(row.get("type") == "gemini" and {"id", "timestamp"} <= row.keys()
                     for row in parsed_head.objects) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the chat, including those that were rewound."""
    header = object_of(first_value(data))
    name = next((name for name in ("messages", "history") if header.get(name)), None)  # `history` in the oldest files
    if name is not None:
        reader = _Chat(path, options)
        reader.header(object_in(data) or header)
        return reader.read_records(list_pieces(data, name))
    lines = _Lines(path, options)
    return lines.read_records(lines.fold(data))


class _Chat(ChatReader):
    own_api = API
    name, agent, fields = "gemini-cli", "Gemini CLI", FIELDS
    several_apis = False

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.before: dict[str, TreePlace] = {}
        """Id of a message -> the place before the message."""
        self.end_note: tuple[TranscriptLine, str] | None = None
        """The row and text of a note about the end of an answer whose message has not been read so far."""
        self.answered: set[str | None] = set()
        """The ids of calls whose results were read."""
        self.counted: dict[str, dict[str, Any]] = {}
        """Id of an answer -> its model and token counts, which the history of a resumed chat leaves out."""

    def header(self, value: dict[str, Any]) -> None:
        self.model = known_text(object_of(value.get("meta")).get("model")) or self.model
        self.title = known_text(value.get("summary")) or self.title
        self.session_id = known_text(value.get("sessionId")) or self.session_id
        if value.get("kind") == "subagent":
            self.title = self.title or "subagent"
            self.parent_id = os.path.basename(os.path.dirname(self.path))

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value = line.value
        if isinstance(value.get("$rewindTo"), str):
            self.remarks["go back to before a message of the user"] += 1
            return self.before.get(value["$rewindTo"], TreePlace(None))
        key, kind = value.get("id"), PATCH if PATCH in value else value.get("type") or value.get("role")
        if isinstance(key, str):
            self.before.setdefault(key, place)
        if kind in MODEL and _is_acknowledgement(value):
            self.compacted = f"{self.unit} {line.number}: the history was compressed before this answer"
            lines.count("compression", frozenset({"compression"}))
            return _after_summary(place)
        if kind in MODEL and _is_receipt(value):
            self.remarks["are written by Gemini CLI in the model's name, before a file that a call returned"] += 1
            return place
        if kind in MODEL:
            return self._answer(line, place)
        if kind == "user":
            return self._user(line, self._flush(place))
        if kind in NOTES:
            return self._note(line, place, words_of(value))
        lines.count(kind, frozenset({PATCH}))
        return place

    def settle(self) -> None:
        """Also adds the answer for a last note without a message after it."""
        self._flush(self.last)
        super().settle()

    # -- answers -----------------------------------------------------------------------------------------------------

    def _answer(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        value = {**self.counted.get(known_text(line.value.get("id")) or "", {}), **line.value}
        answer = self._split_answer(line.value, place)
        if answer is None:
            answer = self.answer(line, place, known_text(value.get("id")) or "", known_text(value.get("model")))
            self.note_compaction(answer)
        at = answer.take(line)
        answer.parts += thoughts_of(value)
        text = words_of(value)
        if text == INTERRUPTED:
            answer.stop = recorder_reason(Stop.INTERRUPTED, None, pointer_at(at, "content"), text,
                                          "gemini_cli.interrupted")
            text = ""
        answer.add_text(text)
        answer.usage = usage_of(value.get("tokens")) or answer.usage
        results = []
        for number, call in numbered_objects(value.get("toolCalls")):
            take_call(answer, call, line, at, "toolCalls", number, member="args")
            result = result_of(call)
            results += [result] if result is not None else []
        self.answered.update(result.call_id for result in results)
        # The parts may repeat the calls, in older releases without their ids.
        listed = {None, *(call.id for call in answer.calls)} if answer.calls else set()
        for path, part in parts_of(value):
            call = object_of(part.get("functionCall"))
            if call and known_text(call.get("id")) not in listed:
                take_call(answer, call, line, at, *path, "functionCall", member="args")
        answer.word_at = at
        if self.end_note is not None:
            self._end(answer, *self.end_note)
            self.end_note = None
        return self.results(line, TreePlace(answer), *results)

    def _user(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads a message of the user, or tool results with the user's role; known results are not read again."""
        responses = [object_of(part["functionResponse"]) for _, part in parts_of(line.value)
                     if "functionResponse" in part]
        fresh = [result for result in map(response_of, responses) if result.call_id not in self.answered]
        text = words_of(line.value)
        self.answered.update(result.call_id for result in fresh)
        own = bool(text) and all(str(part.get("text")).lstrip().startswith(OWN) for _, part in parts_of(line.value))
        return self.say(line, place, text, tuple(fresh), own=own) if text or fresh or not responses else place

    def _split_answer(self, value: dict[str, Any], place: TreePlace) -> TranscriptAnswer | None:
        """The answer above, if this message has only its calls: a note on the screen may split an answer in two."""
        apart = bool(value.get("toolCalls")) and not value.get("tokens") and not words_of(value)
        above = place.right_above
        if not apart or above is None or above.calls or above.stop is not None or self.end_note is not None:
            return None
        return None if any(row.mark for row in above.after) else above

    def _end(self, answer: TranscriptAnswer, line: TranscriptLine, word: str) -> None:
        row = STOPS[word]
        at = answer.take(line)
        answer.stop = recorder_reason(row.stop, row.detail, pointer_at(at, "content"), word, "gemini_cli.stop_reasons")

    def _note(self, line: TranscriptLine, place: TreePlace, text: str) -> TreePlace:
        """Reads a screen note: the end of an answer, a stop by the user, or a failed request."""
        note = text.lstrip("\u26a0\ufe0f ✕\t").strip()  # the marks that the screen puts before a note
        answer = place.right_above
        if note in STOPS:
            if answer is not None and answer.stop is None:
                self._end(answer, line, note)  # no request since, so the note is about the answer before it
            else:
                self.end_note = (line, note)
            return place
        if note == CANCELLED:
            self.count_stopped(place)
            return self.say(line, place, "", mark="interrupted")
        if note.startswith(FAILED):
            failed = self.answer(line, place)
            failed.fail(note, failed.take(line), word=note[:200])
            return TreePlace(failed)
        if line.value.get("type") == "error":
            self.skip(line, f"an error on the screen: {note[:200]}")
        else:
            self.remarks["are notes of the screen"] += 1
        return place

    def _flush(self, place: TreePlace) -> TreePlace:
        """Adds an empty answer for a note without a message after it."""
        if self.end_note is None:
            return place
        line, note = self.end_note
        self.end_note = None
        answer = self.answer(line, place)
        self._end(answer, line, note)
        return TreePlace(answer)


def _is_acknowledgement(value: dict[str, Any]) -> bool:
    """Whether a message of the model is the one that Gemini CLI itself writes after a summary, without a request."""
    return words_of(value) == ACKNOWLEDGED and not value.get("tokens") and not value.get("toolCalls")


def _is_receipt(value: dict[str, Any]) -> bool:
    """Whether a message of the model has only the thought that Gemini CLI itself writes before a file."""
    parts = [part for _, part in parts_of(value)]
    return len(parts) == 1 and parts[0].get("thought") is True and parts[0].get("text") == RECEIVED


def _after_summary(place: TreePlace) -> TreePlace:
    """The place after a summary, which Gemini CLI wrote in the role of the user."""
    if place.since is None:
        return place
    before, row = place.since.before, place.since.row
    own = row._replace(own=True)
    if place.answer is not None:
        place.answer.after = [own if each is row else each for each in place.answer.after]
    return TreePlace(place.answer, before).linked(own)


class _Lines(_Chat):
    """A file with one record per line."""

    unit = "record"
    row_word = ("a record", "records")

    def fold(self, data: bytes) -> Iterator[Piece]:
        """The final records: each message once, at its first position, in its last version."""
        order: Order = []
        live: dict[str, int] = {}
        for piece, last in _records(data):
            value = object_in(piece)
            changed = object_of(value.get("$set"))
            if "$rewindTo" in value:
                order.append((piece, last))
                # After a rewind the same id may be written again as another message, on another branch.
                live.clear()
            elif "$set" in value:
                self.header(changed)
                # known ids get the new version, others are appended
                for message in elements(piece, "$set", "messages"):
                    _place(order, live, object_in(message).get("id"), message, False)
            elif "projectHash" in value and "sessionId" in value:
                self.header(value)
            else:
                _place(order, live, value.get("id"), piece, last)
                if isinstance(value.get("id"), str):
                    self.counted[value["id"]] = {name: value[name] for name in ("model", "tokens") if name in value}
        for number, (piece, last) in enumerate(order, 1):
            yield number, piece, last


def _place(order: Order, live: dict[str, int], key: Any, piece: bytes, last: bool) -> None:
    if isinstance(key, str) and key in live:
        order[live[key]] = piece, last
        return
    if isinstance(key, str):
        live[key] = len(order)
    order.append((piece, last))


def _records(data: bytes) -> Iterator[tuple[bytes, bool]]:
    lines = cast("list[Piece]", TranscriptLines(data, {}).pieces())
    return ((line, last) for _, line, last in lines if line.strip())


# -- The parts of a message -------------------------------------------------------------------------------------------


_APART = ("functionCall", "functionResponse")
"""The members of parts that are not text: a call or a result."""


def parts_of(value: dict[str, Any]) -> list[tuple[JsonPath, dict[str, Any]]]:
    """The parts of a message, each with its path in the row. A content is a string, a part, or a list of both."""
    name = "content" if value.get("content") is not None else "parts"
    found = value.get(name)
    parts = [((name, at), part) for at, part in enumerate(found)] if isinstance(found, list) else [((name,), found)]
    return [(place, {"text": part} if isinstance(part, str) else part) for place, part in parts
            if isinstance(part, (str, dict))]


def words_of(value: dict[str, Any]) -> str:
    """The text of a message without thoughts and calls; parts of other kinds are named."""
    texts = [part["text"] if isinstance(part.get("text"), str) else f"[{next(iter(part), 'part')}]"
             for _, part in parts_of(value) if part.get("thought") is not True and not any(map(part.get, _APART))]
    return "\n".join(each for each in texts if each)


def thoughts_of(value: dict[str, Any]) -> list[ReasoningPart]:
    """The thoughts of an answer: those in its parts, else those in the separate member that repeats them."""
    marked = [known_text(part.get("text")) for _, part in parts_of(value) if part.get("thought") is True]
    thoughts = [": ".join(filter(None, (known_text(thought.get("subject")), known_text(thought.get("description")))))
                for thought in objects_of(value.get("thoughts"))]
    return [ReasoningPart(each) for each in marked or thoughts if each is not None]


def usage_of(tokens: Any) -> Usage | None:
    """The token counts of one answer; reasoning is counted separately from the output."""
    if not isinstance(tokens, dict):
        return None
    output_tokens, thought = number_of(tokens.get("output")), number_of(tokens.get("thoughts"))
    # Gemini's `candidatesTokenCount` excludes thinking, although it counts towards maxOutputTokens.
    total = None if output_tokens is None else output_tokens + (thought or 0)
    return Usage(number_of(tokens.get("input")), total, thought, number_of(tokens.get("cached")))


def result_of(call: dict[str, Any]) -> ToolResultPart | None:
    """The result of a call; None if the call was unfinished when the file was written."""
    status = call.get("status")
    if status in OPEN or (call.get("result") is None and status not in ("success", "error", "cancelled")):
        return None
    output = call.get("result")
    output_text = output if isinstance(output, str) else "\n".join(
        _result_text(part) for part in (output if isinstance(output, list) else [output]) if isinstance(part, dict))
    text = output_text or (call["resultDisplay"] if isinstance(call.get("resultDisplay"), str) else "")
    # the text that Gemini CLI sends to the model; some releases store only the reason
    if status == "cancelled" and not text.startswith("[Operation Cancelled]"):
        text = f"[Operation Cancelled] Reason: {text}"
    return ToolResultPart(known_text(call.get("id")), known_text(call.get("name")), text,
                          status in ("error", "cancelled"))


def response_of(function_response: dict[str, Any]) -> ToolResultPart:
    """The result of a call in a message of the user."""
    failed = "error" in object_of(function_response.get("response"))
    return ToolResultPart(known_text(function_response.get("id")), known_text(function_response.get("name")),
                          _result_text({"functionResponse": function_response}), failed)


def _result_text(part: dict[str, Any]) -> str:
    response = object_of(part.get("functionResponse")).get("response")
    if not isinstance(response, dict):
        return text_of([part]) if "text" in part else ""
    text = next((response[name] for name in ("output", "error") if isinstance(response.get(name), str)), None)
    return text if text is not None else json.dumps(response, ensure_ascii=False)
