"""Sessions of Droid (Factory): `~/.factory/sessions/<folder>/<id>.jsonl`, and the stream-json output of `droid exec`.

A session has a first line about itself, then messages of content blocks, with parents in newer versions. The model and
the token counts of the whole session are in `<id>.settings.json` beside it. The stream has a line for each message,
call and result; its member names differ by release. Neither has stop words. Sources: fixtures of
jazzyalex/agent-sessions; docs.factory.ai.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import first_look, object_beside
from inspector.sessions.reasons import recorder_reason
from inspector.sessions.recording import Options, TurnPlace
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, results_of, take_block, take_blocks, words_of
from inspector.sessions.transcripts.member_values import counts_of, known_text, object_of, usage_in
from inspector.sessions.wordings import asks_again
from loop_core.values import ReasoningPart, Stop

REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
"""Matches the text that Droid adds before a message of the user."""
NO_EXCHANGE = frozenset({"session_start", "session_end", "todo_state", "compaction_state", "system",
                         "agent_turn_outcome"})
BROKEN = re.compile(r"\s*Your previous response ended before completion\.")
"""Matches the message of Droid to a model whose answer was not complete."""
FILTERED = re.compile(r"Request (?:blocked by model provider safety checks|"
                      r"failed due to triggering the model provider's content moderation policy)\b")
"""Matches Droid's words to the user about an answer that a filter ended."""
OUTCOMES = {"completed": "ended", "cancelled": "interrupted", "permission_rejected": "stopped",
            "no_approver_available": "stopped"}
"""Droid's word for the end of its loop (`agent_turn_outcome`) -> the mark of its row. A word that begins with `model_`
reports a request that failed."""
FOLDER = ".factory"
THOUGHT = "chatCompletionReasoningContent"
"""The member with the reasoning of a Chat Completions model, which may also be a block of the content."""
COUNTS = ("inputTokens", "outputTokens", "thinkingTokens", "cacheReadTokens")
FIELDS: Fields = {
    "": {
        "type": (str,), "id": (str,), "parentId": (str,), "role": (str,), "text": (str,), "message": (dict, str),
        "toolName": (str,), "toolCallId": (str,), "finalText": (str,), "usage": (dict,),
    },
    "message": {"role": (str,), "content": (list, str), "model": (str,), "modelId": (str,), "visibility": (str,),
                THOUGHT: (str,)},
}


def _is_stream(value: dict[str, Any]) -> bool:
    kind, session = value.get("type"), "session_id" in value or "sessionId" in value
    named = kind in ("tool_call", "tool_result") and ("toolName" in value or "toolCallId" in value or "toolId" in value)
    return session and (named or (kind == "completion" and "finalText" in value)
                        or (kind == "message" and "role" in value and "text" in value))


def sniff(head: bytes, path: str) -> int:
    """Recognises the session line, or lines of the stream."""
    parsed_head = first_look(head)
    first = parsed_head.first
    if isinstance(first, dict) and first.get("type") == "session_start" and "id" in first:
        has_details = any(name in first for name in ("title", "sessionTitle", "owner", "cwd"))
        return 100 if has_details else 90
    if any(map(_is_stream, parsed_head.objects)):
        return 90
    if FOLDER in PurePath(path).parts and any(value.get("type") == "message" for value in parsed_head.objects):
        return 85  # pi's rows look the same if they have only texts
    return 85 if any(map(_has_blocks, parsed_head.objects)) else 0


def _has_blocks(value: dict[str, Any]) -> bool:
    """Whether a value is a message with Anthropic's blocks, unlike the similar rows of other agents."""
    content = object_of(value.get("message")).get("content")
    return value.get("type") == "message" and "id" in value and isinstance(content, list) and any(
        object_of(block).get("type") in ("tool_use", "tool_result") for block in content)


class _Session(ChatReader):
    name, agent, fields = "droid", "Droid", FIELDS
    unit, key = "line", "id"
    row_word = ("a row", "rows")
    hides_broken_arguments = True

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.set_model = self.model = known_text(self._settings().get("model"))
        self.note = ""
        """Droid's note to the user since the last message; the end of the loop may tell of it."""

    def _settings(self) -> dict[str, Any]:
        """The settings file beside the session, with its model and total counts; empty if there is none."""
        return object_beside(self.path, f"{self.path.rsplit('/', 1)[-1].removesuffix('.jsonl')}.settings.json")

    def look_ahead(self, data: bytes) -> bool:
        """Whether the session's model in the settings file is unchanged."""
        return known_text(self._settings().get("model")) == self.set_model

    def summarise(self) -> None:
        counts = counts_of(object_of(self._settings().get("tokenUsage")), *COUNTS)
        if any(counts):
            input_tokens, output_tokens = counts[0] or 0, counts[1] or 0
            self.reading.notices.insert(
                0, f"tokens are counted for the whole session alone: {input_tokens:,} in, {output_tokens:,} out")
        super().summarise()

    def above(self, value: dict[str, Any]) -> TreePlace:
        """The place after the parent row; after the previous row if it names none."""
        parent = value.get("parentId")
        found = self.places.get(hash(parent)) if isinstance(parent, str) else None
        return found or self.last

    def keep(self, line: TranscriptLine, place: TreePlace) -> None:
        """Stores the last place, and the place of a message or of the session under its id."""
        self.last = place
        key = line.value.get("id")
        if isinstance(key, str) and line.value.get("type") in ("message", "session_start"):
            self.places[hash(key)] = place

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, kind = line.value, line.value.get("type")
        if kind == "message":
            message = object_of(value.get("message")) or {"role": value.get("role"),
                                                          "content": value.get("content", value.get("text"))}
            return self._message(line, place, message, "message" in value)
        if kind == "tool_call":
            return self._call(line, place)
        if kind == "tool_result":
            key = known_text(value.get("toolCallId")) or value.get("id")  # depends on the release
            return self.result(line, place, key, any_text(value.get("value")), value.get("isError") is True,
                               value.get("toolName"))
        if kind in ("completion", "result") and isinstance(value.get("finalText"), str):
            return self._completion(line, place, value["finalText"])
        if kind == "agent_turn_outcome":
            place = self._outcome(line, place, known_text(value.get("reason")) or "")
        if kind == "error":
            return self._failure(line, place, known_text(value.get("message")) or "no reason given")
        if kind == "session_start":
            self.session_id = known_text(value.get("id")) or ""
            self.parent_id = known_text(value.get("callingSessionId")) or ""
        self.model = known_text(value.get("model")) or self.model
        self.title = known_text(value.get("sessionTitle")) or known_text(value.get("title")) or self.title
        lines.count(kind, NO_EXCHANGE)
        return place

    def _message(self, line: TranscriptLine, place: TreePlace, message: dict[str, Any], nested: bool) -> TreePlace:
        content, role = message.get("content"), message.get("role")
        if message.get("visibility") == "user_only":  # a note on the screen, which the model never sees
            self.note = words_of(content).strip()
            self.skip(line, f"a note of Droid's to the user: {self.note[:200]}")
            return place
        self.note = ""
        if role == "assistant":
            model = known_text(message.get("modelId")) or known_text(message.get("model"))
            answer = self.answer(line, place, known_text(line.value.get("id")) or "", model)
            if not place.has_user_message and any(asks_again(row.text) is not None for row in place.rows()):
                answer.recorded_place = TurnPlace.NUDGE
            path = ("message", "content") if nested else ("content",)
            take_blocks(answer, content, line, answer.take(line), *path)
            thought = known_text(message.get(THOUGHT))
            if thought and not any(isinstance(part, ReasoningPart) for part in answer.parts):
                answer.parts.insert(0, ReasoningPart(thought))
            return TreePlace(answer)
        if role not in ("user", "tool"):
            self.remarks["are of an unexpected shape"] += 1
            return place
        results, text = results_of(content), words_of(content)
        place = self.results(line, place, *results)
        hidden = message.get("visibility") == "llm_only"  # a message of the agent to the model, in the role of the user
        if hidden and BROKEN.match(text):
            return self.say(line, place, text, own=True, mark="broken")
        typed = "" if hidden else REMINDER.sub("", text).strip()
        if not typed and (results or not text.strip()):
            return place
        return self.say(line, place, typed or text, own=not typed or bool(results))

    def _call(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads a call of the stream, which belongs to the previous answer, unless there is a message in between."""
        value = line.value
        answer = place.right_above or self.answer(line, place)
        block = {"type": "tool_call", "id": value.get("toolCallId") or value.get("id"), "name": value.get("toolName"),
                 "parameters": value.get("parameters")}
        take_block(answer, block, line, answer.take(line))
        return TreePlace(answer)

    def _failure(self, line: TranscriptLine, place: TreePlace, why: str) -> TreePlace:
        """Reads an error: of a request without an answer, else of the agent after its last answer."""
        failed = self.failed_request(line, place, why, after_results=True)
        if failed is not None:
            answer = failed.answer
            if answer is not None and answer.stop is not None and FILTERED.match(why):
                at = answer.stop.evidence[0].at or answer.word_at
                answer.error, answer.stop = None, recorder_reason(Stop.SAFETY_BLOCKED, None, at, why, "droid.filters")
            return failed
        message = f"an error of the agent: {why[:200]}"
        self.skip(line, message)
        return self.say(line, place, redact.text(message), mark="stopped")

    def _outcome(self, line: TranscriptLine, place: TreePlace, reason: str) -> TreePlace:
        """Reads the end of Droid's loop, which follows its note about a request that failed or was filtered."""
        note, self.note = self.note, ""
        mark = OUTCOMES.get(reason)
        if mark is not None:
            return self.say(line, place, reason, mark=mark)
        if not reason.startswith("model_"):
            return place
        return self._failure(line, place, note or reason)

    def _completion(self, line: TranscriptLine, place: TreePlace, text: str) -> TreePlace:
        """Reads the end of a run, with the final text."""
        answer = place.right_above
        if answer is None or answer.text != text:
            answer = self.answer(line, place)
            answer.take(line)
            answer.add_text(text)
        usage = object_of(line.value.get("usage"))
        if usage and len(self.answers) == 1:  # the counts are those of the whole run
            answer.usage = usage_in(usage, "input_tokens", "output_tokens", None, "cache_read_input_tokens",
                                    "cache_creation_input_tokens")
        if line.value.get("is_error") is True or line.value.get("isError") is True:
            return self._failure(line, TreePlace(answer), "the run ended with an error")
        return self.say(line, TreePlace(answer), "completion", mark="ended")


reader = _Session.of


