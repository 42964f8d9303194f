"""Sessions of Kimi Code (`agents/<id>/wire.jsonl`, protocol 1.5) and of the older Kimi CLI in Python (`wire.jsonl`).

Kimi Code stores, for each step, the provider's own word (`rawFinishReason`, in newer files) and its mappings
(`providerFinishReason`, `finishReason`), and for each request the output cap (`maxTokens`; it sends less where the
context leaves less). The Python client stores neither. Sources: @moonshot-ai/kimi-code 2.1.0; kimi-cli's
`src/kimi_cli/wire`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import IO, Any, TypeGuard

from inspector.sessions.importers import kimi_cli
from inspector.sessions.importers.records import first_look, object_beside
from inspector.sessions.notices import share
from inspector.sessions.reasons import provider_reason, table_reason, unclear_word_reason
from inspector.sessions.recording import FileReading, Options, SessionAbout, TurnPlace
from inspector.sessions.traffic import http_status
from inspector.sessions.transcripts import TranscriptReader, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import take_call
from inspector.sessions.transcripts.member_values import (
    known_text,
    moment_text,
    number_of,
    numbered_objects,
    object_of,
    text_or_none,
)
from loop_core.judge.arguments import ArgumentShape, parse
from loop_core.values import At, OpaquePart, ReasoningPart, Stop, TextPart, ToolCall, ToolResultPart
from loop_core.wire import wire
from loop_core.wire.failures import StopRow

STOPS: Mapping[str, StopRow] = {
    "completed": StopRow(Stop.END_TURN, None, "Kimi Code, providerFinishReason"),
    "tool_calls": StopRow(Stop.TOOL_CALL, None, "Kimi Code, providerFinishReason"),
    "truncated": StopRow(Stop.MAX_TOKENS, None, "Kimi Code, providerFinishReason"),
    "filtered": StopRow(Stop.SAFETY_BLOCKED, None, "Kimi Code, providerFinishReason"),
    "paused": StopRow(Stop.PAUSED, None, "Kimi Code, providerFinishReason"),
    "end_turn": StopRow(Stop.END_TURN, None, "Kimi Code, finishReason"),
    "tool_use": StopRow(Stop.TOOL_CALL, None, "Kimi Code, finishReason"),
    "max_tokens": StopRow(Stop.MAX_TOKENS, None, "Kimi Code, finishReason"),
    "interrupted": StopRow(Stop.CANCELLED, None, "Kimi Code, finishReason"),
    "error": StopRow(Stop.ERROR, "fatal", "Kimi Code, finishReason"),
}
"""Stop word of Kimi Code -> its meaning; `other` and any further word have no meaning."""
BLOCKED_TIME, OWN_ENDS = "llmClientBlockedMs", frozenset({"end_turn", "tool_use"})
"""A member of the ends of steps in release 2.1, which stores each word of the provider; its own words for no word."""
APIS: Mapping[str, str] = {
    "openai_responses": "openai_responses", "anthropic": "anthropic_messages",
    "google-genai": "gemini_generate", "google_genai": "gemini_generate", "gemini": "gemini_generate",
    "vertexai": "gemini_generate",
}
"""Kimi Code's name of a provider -> the provider's wire format, if it is not Chat Completions."""
STATES = (frozenset({"agents", "workDir", "createdAt"}), frozenset({"version", "cwd", "title", "lastPrompt"}))
"""The members of a session's state file in version 1 and in version 2."""
_WORD = re.compile(r"Provider stop details: (?:finishReason=\w+, )?rawFinishReason=(?P<word>\w+)")


def sniff(head: bytes, path: str) -> int:
    """Recognises the protocol in the first line, the state of a session, or a record of either client."""
    parsed_head = first_look(head)
    for value in parsed_head.objects:
        if value.get("type") == "metadata" and "protocol_version" in value:
            return 100
        if value.get("type") in ("llm.request", "context.append_loop_event", "turn.prompt"):
            return 100
        if any(names <= set(value) for names in STATES) and "type" not in value:
            return 100
        if value.get("role") in kimi_cli.MARKS:
            return 95
        message = value.get("message", value.get("params"))
        if isinstance(message, dict) and message.get("type") in ("TurnBegin", "StepBegin") and "payload" in message:
            return 100
    return 0


def reader(path: str, options: Options, head: bytes) -> TranscriptReader:
    """The reader of one file, of either client."""
    first, lines, _ = first_look(head)
    if isinstance(first, dict) and any(names <= set(first) for names in STATES):
        return _State(path, options, first)
    if any(isinstance(value, dict) and value.get("role") in kimi_cli.MARKS for value in (first, *lines)):
        return kimi_cli.KimiHistory(path, options)
    return (kimi_cli.KimiCliSession if b'"TurnBegin"' in head or b'"StepBegin"' in head else _Session)(path, options)


class _State(kimi_cli.KimiReader):
    """Reads the state file of a session, which has no answer and is rewritten each time."""

    def __init__(self, path: str, options: Options, value: dict[str, Any]) -> None:
        super().__init__(path, options)
        self._value = value

    def read(self, data: bytes | IO[bytes]) -> FileReading:
        """Reads the title of the session, and the names of its agents."""
        reading = FileReading()
        title, agents = self._value.get("title"), self._value.get("agents")
        names = ", ".join(sorted(map(str, agents))) if isinstance(agents, dict) else ""
        reading.notices.append(f"the state of a session of Kimi Code (agents: {names or 'none'}); its answers stand in "
                               "agents/<agent>/wire.jsonl beside it")
        if isinstance(title, str) and title:
            reading.about = SessionAbout(title=title)
        return reading

    def look_ahead(self, data: bytes) -> bool:
        """Always False, because the file is rewritten, not extended."""
        return False


def title_of(path: str) -> str:
    """The title in the session's state file, two folders up, with the name of a subagent; empty if unknown."""
    title = known_text(object_beside(path, "../../state.json").get("title"))
    agent = os.path.basename(os.path.dirname(path))
    return f"{title} › {agent}" if title and agent != "main" else title or ""


def _failed(answer: TranscriptAnswer | None) -> TypeGuard[TranscriptAnswer]:
    """Whether the request of a step failed."""
    return answer is not None and answer.stop is not None and answer.stop.normalized is Stop.ERROR


def _explain(
    answer: TranscriptAnswer | None, line: TranscriptLine, text: Any, kind: Any, status: Any, pointer: str,
) -> bool:
    """Adds the message to the error of a step; Kimi Code writes it in a row after the end of the step. Of an answer
    without text and call the message holds the provider's word, which is then the end; returns whether it does."""
    message = known_text(text)
    if not _failed(answer) or answer.error is not None or message is None:
        return False
    at, word = answer.take(line), _WORD.search(message)
    if word is not None:
        _take_word(answer, word["word"], at._replace(pointer=pointer))
    else:
        answer.fail(message, at, http_status(status), known_text(kind), "error")
    return word is not None


def _take_word(answer: TranscriptAnswer, word: str, at: At) -> None:
    """Ends an answer with the provider's own word."""
    answer.word, words = word, wire(answer.api).stop_reasons
    # Of an incomplete answer of the Responses API, Kimi Code stores the reason without the status.
    row = words.get(f"incomplete:{word}")
    answer.stop = provider_reason(word, at, words if row is None else {word: row}, answer.api)


def _content(answer: TranscriptAnswer, part: Any, find: Callable[[], str | None]) -> None:
    """Adds a part of an answer that is not a call."""
    kind = part.get("type") if isinstance(part, dict) else "part"
    if isinstance(part, dict) and kind == "text":
        answer.parts.append(TextPart(kimi_cli.value_text(part.get("text"))))
    elif isinstance(part, dict) and kind == "think":
        answer.parts.append(ReasoningPart(kimi_cli.value_text(part.get("think"))))
    else:
        answer.parts.append(OpaquePart(str(kind), find() or "{}"))


# -- Kimi Code -------------------------------------------------------------------------------------------------------


class _Session(kimi_cli.KimiReader):
    """A file of Kimi Code."""

    agent = "Kimi Code"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.steps: dict[str, TranscriptAnswer] = {}
        self.request_row: dict[str, Any] = {}
        self.prompt: tuple[int, str] | None = None
        """The line and text of a prompt whose message has not been read so far."""
        self.raw = 0
        """The number of steps with the provider's own stop word."""
        self.begun: tuple[TranscriptLine, str, TreePlace] | None = None
        """The last step that began, while it is unknown whether it has output."""
        self.empty: dict[str, TranscriptAnswer] = {}
        """Id of a call with the arguments `{}` -> its answer; for arguments that Kimi Code could not parse."""
        self.looped = False
        """Whether the file has events of the loop; from protocol 1.5 on, messages repeat them."""
        self.typed = ""
        self.turn: tuple[TranscriptAnswer | None, Any] = None, None
        """The last answer, and the id of its turn."""
        self.failed: TranscriptAnswer | None = None
        """The last answer that Kimi Code asked for again."""
        self.prompt_places: list[TreePlace] = []
        """The places before the messages of the user that begin turns."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, kind = line.value, line.value.get("type")
        event = value.get("event")
        if kind == "context.append_loop_event" and isinstance(event, dict):
            self.looped = True
            return self._event(line, event, lines, place)
        if kind == "agent.message.appended" and not self.looped and isinstance(value.get("message"), dict):
            return self._entry(line, value["message"], place)
        if kind == "agent.message.appended":
            self._restore(line, object_of(object_of(value.get("message")).get("message")))
        if kind == "context.append_message" and isinstance(value.get("message"), dict):
            return self._message(line, value["message"], place)
        if kind == "llm.request":
            # the same step again; older files do not name the step
            if self.request_row.get("turnStep") == value.get("turnStep") is not None:
                self.remarks["ask for a step once more, whose request before got no answer"] += 1
            self.request_row = value
        elif kind == "turn.cancel":
            place = self._empty_step(place)
            return place.after(InterimRow(line.number, "the user cancelled the turn", mark="interrupted"))
        elif kind == "turn.prompt":
            place = self._empty_step(place)
            self.prompt = (line.number, kimi_cli.value_text(value.get("input")))
        elif kind == "turn.ended":
            place = self._empty_step(place)
            reason, error = value.get("reason"), object_of(value.get("error"))
            if reason in (None, "completed"):
                return place.after(InterimRow(line.number, "turn.ended", mark="ended"))
            self.raw += _explain(place.answer, line, error.get("message"), error.get("code"), None, "/error/message")
            return place.after(InterimRow(line.number, f"the turn ended ({reason})", mark="stopped"))
        elif kind == "context.clear":
            place, self.prompt_places = TreePlace(None), []
        elif kind == "context.undo":
            place = self._undo(value.get("count"), place)
        elif kind == "turn.step.retrying":
            self.failed = self.steps.get(str(value.get("stepId")))
            self.raw += _explain(self.failed, line, value.get("errorMessage"), value.get("errorName"),
                                 value.get("statusCode"), "/errorMessage")
        elif kind == "context.apply_compaction":
            self.compacted = f"line {line.number}: the history was compacted before this answer"
        lines.count(kind, kimi_cli.ROWS)
        return place

    def _message(self, line: TranscriptLine, message: dict[str, Any], place: TreePlace) -> TreePlace:
        if message.get("role") != "user":
            self.remarks["hold a message that is not a user's"] += 1
            return place
        origin = message.get("origin")
        self.prompt, self.typed = None, kimi_cli.value_text(message.get("content"))  # the message repeats the prompt
        command = object_of(origin).get("trigger") == "user-slash"  # the user typed the name of a skill or a plugin
        own = isinstance(origin, dict) and origin.get("kind") not in (None, "user", "system_trigger") and not command
        if not own and object_of(origin).get("inTurn") is not True:
            self.prompt_places.append(place)
        return place.after(InterimRow(line.number, self.typed, own=own))

    def _restore(self, line: TranscriptLine, message: dict[str, Any]) -> None:
        """Restores arguments that Kimi Code could not parse, and which are `{}` in the events of the loop."""
        for number, call in numbered_objects(message.get("toolCalls")):
            text, key = call.get("arguments"), call.get("id")
            answer = self.empty.get(key) if isinstance(key, str) else None
            if answer is None or not isinstance(text, str) or parse(text).shape is ArgumentShape.COMPLETE:
                continue
            at = next((at for at, part in enumerate(answer.parts)
                       if type(part) is ToolCall and part.id == key and part.arguments == "{}"), None)
            if at is not None:
                take_call(answer, call, line, answer.take(line), "message", "message", "toolCalls", number)
                answer.parts[at] = answer.parts.pop()

    def _undo(self, count: Any, place: TreePlace) -> TreePlace:
        """The place before the last `count` messages of the user, which were undone."""
        number = number_of(count) or 0
        self.remarks["take back messages of the user"] += 1
        if not 0 < number <= len(self.prompt_places):
            return place
        before = self.prompt_places[-number]
        del self.prompt_places[-number:]
        return before

    def _entry(self, line: TranscriptLine, entry: dict[str, Any], place: TreePlace) -> TreePlace:
        """Reads a journal message (`agent.message.appended`) of a file without events of the loop."""
        message, meta = object_of(entry.get("message")), object_of(entry.get("meta"))
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            return self.result(line, place, message.get("toolCallId"), kimi_cli.value_text(content))
        # the journal repeats a prompt
        if role == "user" and kimi_cli.value_text(content) not in (self.typed, self.prompt and self.prompt[1]):
            self.typed = kimi_cli.value_text(content)
            return place.after(InterimRow(line.number, self.typed))
        if role != "assistant":
            return place
        self.request_row = {**object_of(meta.get("model")), "time": line.value.get("time")}
        answer = self._step(line, f"entry {line.number}", place)
        at = answer.take(line)
        for number, part in numbered_objects(content):
            _content(answer, part, partial(slice_of, line.data, "message", "message", "content", number))
        for number, call in numbered_objects(message.get("toolCalls")):
            take_call(answer, call, line, at, "message", "message", "toolCalls", number)
        names, words = ("rawFinishReason", "finishReason"), object_of(meta.get("finish"))
        self._take_end(answer, meta, at, *((words.get(name), f"/message/meta/finish/{name}") for name in names))
        return TreePlace(answer)

    def _event(
        self, line: TranscriptLine, event: dict[str, Any], lines: TranscriptRows, place: TreePlace
    ) -> TreePlace:
        kind = event.get("type")
        if kind == "tool.result":
            result = event.get("result")
            failed = object_of(result).get("isError") is True
            part = ToolResultPart(text_or_none(event.get("toolCallId")), None, kimi_cli.value_text(result), failed)
            return self.results(line, place, part)
        if kind == "step.begin" and isinstance(event.get("uuid"), str):
            place = self._empty_step(place)
            self.begun = (line, event["uuid"], place)
        if kind not in ("content.part", "tool.call", "step.end"):
            lines.count(kind, kimi_cli.ROWS)
            return place
        named = event.get("stepUuid") if kind != "step.end" else event.get("uuid")
        answer = self._step(line, str(named), place)
        before, turn = place.answer, event.get("turnId")
        failed = _failed(before) or (before is not None and before is self.failed)
        if failed and before is not answer and turn is not None and self.turn == (before, turn):
            answer.recorded_place = TurnPlace.RETRY  # of the same turn, perhaps after a compaction
        self.turn = answer, turn
        answer.unended = kind != "step.end" and (answer.unended or not answer.lines)
        at = answer.take(line)
        if kind == "step.end":
            self._end(answer, event, at)
            return self.last if self.last.answer is answer else TreePlace(answer)
        self._part(answer, line, event, at)
        return place if place.answer is answer else TreePlace(answer)

    def _empty_step(self, place: TreePlace) -> TreePlace:
        """Adds an empty answer for a step that began and has no output."""
        begun, self.begun = self.begun, None
        if begun is None or begun[1] in self.steps:
            return place
        line, key, before = begun
        answer = self._step(line, key, before)
        answer.take(line)
        if place.answer is not before.answer:
            return place
        after = TreePlace(answer)
        for row in place.rows()[len(before.rows()) :]:
            after = after.after(row)
        return after

    def settle(self) -> None:
        self._empty_step(self.last)
        super().settle()

    def _step(self, line: TranscriptLine, key: str, place: TreePlace) -> TranscriptAnswer:
        """The answer of a step; the step's first part begins it."""
        if key in self.steps:
            return self.steps[key]
        if self.prompt is not None and self.prompt[1]:
            place = place.after(InterimRow(*self.prompt))
        self.prompt = None
        request = self.request_row
        api = APIS.get(str(request.get("provider")))
        answer = self.begin(f"step:{line.number}", api, request.get("model"), place, line)
        answer.started = moment_text(request.get("time"))
        # The cap varies by request: Kimi Code usually sends the rest of the context window.
        answer.cap = number_of(request.get("maxTokens"))
        self.note_compaction(answer)
        self.steps[key] = self.add(answer)
        return answer

    def _part(self, answer: TranscriptAnswer, line: TranscriptLine, event: dict[str, Any], at: At) -> None:
        if event.get("type") == "tool.call":
            take_call(answer, event, line, at, "event", key="toolCallId", member="args")
            call = answer.parts[-1]
            if type(call) is ToolCall and call.id is not None and call.arguments == "{}":
                self.empty[call.id] = answer
        else:
            _content(answer, event.get("part"), partial(slice_of, line.data, "event", "part"))

    def _end(self, answer: TranscriptAnswer, event: dict[str, Any], at: At) -> None:
        """Reads the provider's stop word of a step, and the two words that Kimi Code derives from it."""
        # From the provider's own word to the most derived one.
        names = ("rawFinishReason", "providerFinishReason", "finishReason")
        self._take_end(answer, event, at, *((event.get(name), f"/event/{name}") for name in names))

    def _take_end(self, answer: TranscriptAnswer, spent: dict[str, Any], at: At, raw: tuple[Any, str],
                  *own: tuple[Any, str]) -> None:
        """Reads the token counts and the first word that is present; each word comes with its JSON pointer."""
        answer.usage = kimi_cli.usage_of(spent.get("usage"), answer.api)
        answer.id = known_text(spent.get("messageId")) or answer.id
        answer.word_at = at._replace(pointer=own[-1][1])
        if isinstance(raw[0], str) and raw[0]:
            self.raw += 1
            _take_word(answer, raw[0], at._replace(pointer=raw[1]))
            return
        for word, pointer in own:
            if not isinstance(word, str) or not word:
                continue
            stop = table_reason(word, STOPS, at._replace(pointer=pointer), "kimi.stop_reasons")
            answer.stop = unclear_word_reason(stop) if BLOCKED_TIME in spent and word in OWN_ENDS else stop
            return

    def summarise(self) -> None:
        title = title_of(self.path)
        # each agent of a session has a folder; `main` started the other agents
        session, _, agent = os.path.dirname(self.path).rpartition("/agents/")
        self.reading.about = SessionAbout(title, id=os.path.dirname(self.path),
                                          parent=f"{session}/agents/main" if agent not in ("", "main") else "")
        self.reading.notices[:0] = share(
            len(self.steps) - self.raw, len(self.steps),
            "steps have no word of the provider's: what is shown for those is Kimi Code's own")
