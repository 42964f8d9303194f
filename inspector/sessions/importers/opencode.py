"""Sessions of opencode and Kilo CLI: their database, the older folder of files, exports, and the events of a run.

This module makes answers of messages and parts; an answer consists of the parts between `step-start` and `step-finish`.
Source: `@opencode-ai/sdk` 1.19.3, opencode `packages/schema/src/session-message.ts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from inspector.sessions import COMPANION
from inspector.sessions.importers import SQLITE
from inspector.sessions.importers import opencode_records as store
from inspector.sessions.importers.database import schema
from inspector.sessions.importers.opencode_records import (
    call_of,
    end_by_call,
    end_by_error,
    end_by_word,
    end_without_part,
    names_end,
    result_of,
    usage_of,
)
from inspector.sessions.importers.records import FileHead, first_look, number_records
from inspector.sessions.recording import FileReading, Options, TurnPlace, UnreadableError
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader
from inspector.sessions.transcripts.ending_rules import step_unfinished
from inspector.sessions.transcripts.member_values import api_of, is_mask, numbered_objects, object_of, text_or_none
from loop_core.values import At, ReasoningPart, TextPart, ToolResultPart

APIS: Mapping[str, str] = {
    "anthropic": "anthropic_messages",
    "google-vertex-anthropic": "anthropic_messages",
    "openai": "openai_responses",
    "google": "gemini_generate",
    "amazon-bedrock": "bedrock_converse",
}
"""Beginning of a provider's name -> the wire format that the AI SDK uses for the provider."""
NO_EXCHANGE = frozenset({
    "session", "step-start", "snapshot", "patch", "file", "agent", "agent-switched", "model-switched",
    "location-switched",
})
PARTS = frozenset({"text", "reasoning", "tool"})
"""The types of parts that are recognised without ids: in the folder store, only the folder has the message's id."""
OWN = frozenset({"synthetic", "system", "skill", "shell"})
"""The types of `session_message` records that the agent added to the history."""
FIELDS: Fields = {
    "": {"id": (str,), "sessionID": (str,), "messageID": (str,), "role": (str,), "type": (str,), "error": (dict,),
         "finish": (str,), "tokens": (dict,), "time": (dict,), "state": (dict,), "reason": (str,)},
    "time": {"created": (int, float), "completed": (int, float)},
    "state": {"status": (str,)},
}


def sniff(head: bytes, path: str) -> int:
    """Recognises members that only its records have."""
    return 95 if _kind(first_look(head)) else 0


def _kind(head: FileHead) -> str:
    value = head.first
    listed = object_of(value[0]) if isinstance(value, list) and value else {}
    if "parts" in listed and "sessionID" in object_of(listed.get("info")):
        return "export"
    if not isinstance(value, dict):
        return ""
    if "messages" in value and isinstance(value.get("info"), dict) and "id" in value["info"]:
        return "export"
    if "sessionID" in value and "type" in value and ("part" in value or _is_failure(value)):
        return "events"
    one = "id" in value and (
        ("messageID" in value and "type" in value) or ("sessionID" in value and "role" in value)
        or ("projectID" in value and "directory" in value)
        or (str(value["id"]).startswith("ses_") and "title" in value)
        or (value.get("type") in PARTS and ("text" in value or "state" in value) and "time" in value)
    )
    return "record" if one else ""


def _is_failure(value: dict[str, Any]) -> bool:
    """Whether a record is the event about a failed run, which names only its session."""
    return value.get("type") == "error" and isinstance(value.get("error"), dict) and "id" not in value


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the file, or in the folder store to which the file belongs. Raises `UnreadableError` for a
    file of the store that was found in a folder and is read with another one."""
    if data.startswith(SQLITE):
        pieces, unit = number_records(store.rows_of(path, schema(path))), "row"
    elif (kind := _kind(first_look(data))) == "export":
        pieces, unit = number_records(store.export(data), cut=True), "record"
    elif kind == "events":
        pieces, unit = store.events(data), "line"
    elif options.listed and (owned := store.owned(data, path)):
        raise UnreadableError(f"{owned}, which is read with its session{COMPANION}")
    else:
        pieces, unit = number_records(store.tree(data, path)), "record"
    reader = _Reader(path, options, unit)
    return reader.read_records(pieces)


class _Reader(ChatReader):
    name, agent, fields = "opencode", "opencode", FIELDS
    key, row_word = "id", ("a row", "rows")
    words = "stop reasons are the AI SDK's words, which opencode writes down"

    def __init__(self, path: str, options: Options, unit: str) -> None:
        super().__init__(path, options)
        self.unit = unit
        self.message: TranscriptLine | None = None
        """The message whose parts are being read."""
        self.owner = ""
        """The id of the message whose parts are being read."""
        self.made: list[TranscriptAnswer] = []
        """The answers of the current message so far."""
        self.open: TranscriptAnswer | None = None
        self.again = False
        """Whether the next answer is that of a repeated request."""
        self.done: list[ToolResultPart] = []
        self.reverts: dict[str, str] = {}
        self.hidden = False
        self.alone: list[str] = []
        """The descriptions of records without a model's answer, for a notice about a file that has no answer."""

    # -- records -----------------------------------------------------------------------------------------------------

    def session_of(self, value: dict[str, Any]) -> str:
        # an older record names only its message, or nothing
        key = value.get("sessionID") or ("" if "messageID" in value or "role" in value else value.get("id"))
        return key if isinstance(key, str) and not is_mask(key) else self.session

    def above(self, value: dict[str, Any]) -> TreePlace:
        owner = value.get("messageID")
        of_message = _is_failure(value) if owner is None else owner == self.owner
        if not of_message:
            self._end_message()
        return super().above(value)

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value = line.value
        kind = value.get("type")
        if "messageID" in value:
            self.owner = text_or_none(value["messageID"]) or ""
            self._part(line, lines)
        elif isinstance(value.get("role"), str):
            self.owner = text_or_none(value.get("id")) or ""
            self._message(line)
        elif _is_failure(value):
            self._end_answer(line)
            self._end_message()
        elif "sessionID" in value:
            self._second(line, lines)
        else:
            self._session(value)
            lines.count("session" if kind is None else kind, NO_EXCHANGE)
        return self.here

    def _session(self, value: dict[str, Any]) -> None:
        self.titles[self.session] = text_or_none(value.get("title")) or ""
        self.hidden = False
        parent = value.get("parentID")
        if isinstance(parent, str) and parent:
            self.parents[self.session] = parent
        point = object_of(value.get("revert")).get("messageID")
        if isinstance(point, str):
            self.reverts[self.session] = point

    def _message(self, line: TranscriptLine) -> None:
        self.message = line
        self.hidden = self.hidden or self.reverts.get(self.session) == self.owner
        if self.hidden:
            self.remarks["the user took back (they come after the point to which the session was reverted)"] += 1

    # -- parts -------------------------------------------------------------------------------------------------------

    def _part(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        kind = line.value.get("type")
        if self.message is None and self.unit == "record" and kind not in ("reasoning", "tool", "compaction"):
            # Only the message shows whether its author is the user or a model. Reasoning, calls and the events of a run
            # (unit `line`) are always a model's.
            text = line.value.get("text")
            self.alone.append(f"a part of a message that is not read with it, {kind}"
                              + (f": {text[:200]}" if isinstance(text, str) else ""))
        elif self.message is not None and self.message.value.get("role") != "assistant":
            self._user_part(line, lines)
        elif kind == "step-start":
            # An earlier step of the message did not finish: opencode sent its request again, without a record of an
            # error, although calls may have run.
            if (broken := self.open) is not None and broken.stop is None:
                self.again = not broken.calls
                broken.stop = step_unfinished(broken, f"{self.unit} {line.number}")
            self._end_step()
            if self.unit == "line":  # a run has no messages, and writes a part when it ends: of a cut answer, only this
                self._begin(line).take(line)
        elif kind == "retry":
            self._end_step()
            self._error_answer(line, line.value.get("error"))
        elif kind == "text" and line.value.get("ignored") is True:
            self.remarks["are notes of the agent itself beside an answer"] += 1
        elif kind in ("text", "reasoning", "tool"):
            # A part after a step-finish belongs to the next answer.
            if self.open is not None and self.open.stop is not None:
                self._end_step()  # older records have no step-start
            answer = self.open or self._begin(line)
            self._block(answer, line.value, answer.take(line), "", partial(slice_of, line.data))
        elif kind == "step-finish":
            answer = self.open or self._begin(line)
            at = answer.take(line)
            end_by_word(answer, line.value.get("reason"), line.value, at, "/reason")
            answer.usage = usage_of(line.value.get("tokens"), answer.api) or answer.usage
        else:
            self._other(line, lines)

    def _other(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        if line.value.get("type") == "compaction":
            self.compacted = f"{self.unit} {line.number}: the history was compacted before this answer"
            if self.message is None:
                self.alone.append("a mark that the history was compacted")
        else:
            lines.count(line.value.get("type"), NO_EXCHANGE)

    def _user_part(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        value = line.value
        kind = value.get("type")
        if kind == "text" and isinstance(value.get("text"), str):
            own = value.get("synthetic") is True or value.get("ignored") is True
            self.say(line, self.here, value["text"], own=own)
        elif kind == "subtask":
            self.say(line, self.here, str(value.get("prompt") or value.get("description") or ""))
        elif kind == "file":
            self.say(line, self.here, f"[file {value.get('filename') or value.get('mime') or ''}]", own=True)
        else:
            self._other(line, lines)

    def _block(self, answer: TranscriptAnswer, block: dict[str, Any], at: At, path: str,
               slice_at: Callable[..., str | None]) -> None:
        here = at._replace(pointer=path)
        kind, text = block.get("type"), block.get("text")
        if kind == "text" and isinstance(text, str):
            answer.parts.append(TextPart(text))
        elif kind == "reasoning" and isinstance(text, str):
            answer.parts.append(ReasoningPart(text))
        elif kind == "tool":
            if is_mask(block.get("callID")):
                block = {**block, "callID": f"{answer.id}/{len(answer.parts)}"}
            call = call_of(block, here, slice_at)
            answer.parts.append(call)
            result = result_of(block, call)
            if result is not None:
                self.done.append(result)

    # -- answers -----------------------------------------------------------------------------------------------------

    def _begin(self, line: TranscriptLine) -> TranscriptAnswer:
        message = self.message or line
        value = message.value
        model = object_of(value.get("model"))
        first = not self.made  # a message may have several answers; only the first gets the message's id
        name = self.owner or text_or_none(value.get("id")) or ""
        if not name or is_mask(name):
            name = f"{self.unit} {message.number}"
        provider = value.get("providerID") or model.get("providerID")
        started = {**object_of(value.get("time")), **({} if first else object_of(line.value.get("time")))}
        answer = self.answer(
            line, self.here, model=value.get("modelID") or model.get("modelID") or model.get("id"),
            key=name if first else f"{name}:{len(self.made) + 1}", api=api_of(APIS, provider),
            begin=started.get("start") or started.get("created"))
        if message is not line:
            answer.take(message)
        self.note_compaction(answer)
        if self.again and self.made:
            answer.recorded_place = TurnPlace.RETRY
        self.again = False
        self.made.append(answer)
        self.open = answer
        return answer

    def _error_answer(self, line: TranscriptLine, error: Any) -> TranscriptAnswer:
        answer = self._begin(line)
        end_by_error(answer, object_of(error), answer.take(line))
        self._end_step()
        return answer

    def _end_step(self) -> None:
        """Ends the open answer, and adds the results of its calls after it."""
        answer, self.open = self.open, None
        if answer is not None and self.done:
            self.here = self.here.after(InterimRow(answer.line, "", tuple(self.done), unit=self.unit))
        self.done = []

    def _end_message(self) -> None:
        """Ends the message, whose stop word or error belongs to its last answer."""
        message, self.message = self.message, None
        answers = self.made
        if message is not None and message.value.get("role") == "assistant":
            self._end_answer(message)
        elif message is not None and self.here.since is None:
            title = object_of(message.value.get("summary")).get("title")
            self.alone.append(f"a message of the {message.value['role']}{f': {title}' if title else ''}")
        self._end_step()
        answers.clear()
        self.owner = ""

    def _end_answer(self, message: TranscriptLine) -> None:
        value, error = message.value, object_of(message.value.get("error"))
        last = self.made[-1] if self.made else None
        # The last answer had already ended, so the error repeats its end, or concerns its tools (an abort) or the next
        # request.
        if error and last is not None and last.stop is not None and not last.is_dropped:
            self._end_step()
            if names_end(error, last.stop):
                last.take(message)
            elif error.get("name") == "MessageAbortedError":
                self.say(message, self.here, "", mark="interrupted", at_tool=True)
            else:
                self._error_answer(message, error)
            return
        answer = last if last is not None and not last.is_dropped else self._begin(message)
        at = answer.take(message)
        if error:
            end_by_error(answer, error, at)
        elif answer.stop is None:
            end_by_word(answer, value.get("finish"), value, at, "/finish")
            end_without_part(answer, value)
        if answer.usage is None and len(self.made) == 1:
            answer.usage = usage_of(value.get("tokens"), answer.api)
        self._note_unended(answer, value)

    def _note_unended(self, answer: TranscriptAnswer, value: dict[str, Any]) -> None:
        if answer.stop is None and "completed" not in object_of(value.get("time")):
            answer.unended = True
            self.remarks["hold an answer that was never completed: the agent ended, or is still running"] += 1

    # -- the second version ------------------------------------------------------------------------------------------

    def _second(self, line: TranscriptLine, lines: TranscriptRows) -> None:
        """Reads a record of `session_message`: a message with its content, or a mark."""
        value, number = line.value, line.number
        kind = value.get("type")
        if kind == "user":
            self.say(line, self.here, text_or_none(value.get("text")) or "")
        elif kind in OWN:
            self.say(line, self.here, str(value.get("text") or value.get("command") or ""), own=True)
        elif kind == "assistant":
            self._assistant(line)
        elif kind == "idle":
            outcome = value.get("outcome")
            mark = {"succeeded": "ended", "interrupted": "interrupted"}.get(str(outcome))
            if mark is not None and self.here.answer is not None:
                self.say(line, self.here, "idle", mark=mark)
        elif kind == "compaction":
            if value.get("status") not in ("running", "failed"):
                self.compacted = f"{self.unit} {number}: the history was compacted before this answer"
        else:
            lines.count(kind, NO_EXCHANGE)

    def _assistant(self, line: TranscriptLine) -> None:
        value = line.value
        retry = object_of(value.get("retry"))
        if retry:
            self._error_answer(line, retry.get("error"))
        answer = self._begin(line)
        at = answer.take(line)
        content = numbered_objects(value.get("content"))
        for number, block in content:
            self._block(answer, block, at, f"/content/{number}", partial(slice_of, line.data, "content", number))
        error = object_of(value.get("error"))
        if error:
            end_by_error(answer, error, at)
        else:
            end_by_word(answer, value.get("finish"), value, at, "/finish")
            end_by_call(answer, content, at)
        # `time.completed` is no evidence of an end: the next step also sets it in an answer that a crash left open.
        self._note_unended(answer, {})
        answer.usage = usage_of(value.get("tokens"), answer.api)
        self._end_step()
        self.made.clear()

    def settle(self) -> None:
        self._end_message()
        super().settle()

    def summarise(self) -> None:
        """Also reports the content of a file without an answer."""
        super().summarise()
        if not self.answers:
            named = [f"a session{f': {title}' if title else ''}" for title in self.titles.values()]
            self.reading.notices += [
                f"the file holds {what}; no answer of a model with it" for what in (*named, *self.alone)]
