"""Transcripts of Cursor's agent: `~/.cursor/projects/<id>/agent-transcripts/<uuid>/<uuid>.jsonl`, and its subagents.

A row has a role and content blocks, without id and time. Cursor omits most tool results, all stop words, and reasoning,
which is replaced by a mark in the text. In newer files a row `turn_ended` states the end of a turn; a request that was
stopped immediately has no other row. Sources: fixtures of jazzyalex/agent-sessions; transcripts in public repositories.

The second half reads the output of the command line agent, `cursor-agent --output-format stream-json`: one event per
line. An answer is one row, or pieces and then the whole. A call has a row for its start and one for its end. No stop
words and no token counts of single answers are stored. Source: cursor.com/docs/cli/reference/output-format.
"""

from __future__ import annotations

import json
import os
import re
from functools import partial
from typing import Any

from inspector.sessions.importers.records import first_look
from inspector.sessions.recording import Options
from inspector.sessions.transcripts import Fields, TranscriptReader, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import (
    ChatReader,
    call_of,
    pointer_at,
    results_of,
    take_blocks,
    words_of,
)
from inspector.sessions.transcripts.member_values import counts_of, first_text, input_count, known_text, object_of
from loop_core.values import ReasoningPart, ResponsePart, TextPart, ToolResultPart, Usage

QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
"""Matches the text that the user typed, in a message to which Cursor has added other text."""
ENDED = frozenset({"success", "completed"})
INTERRUPTED = frozenset({"aborted", "cancelled", "canceled", "interrupted"})
ABORTED = "User aborted"
"""The beginning of the error in the row about a turn that the user stopped, whatever the row's status is."""
_HIDDEN = re.compile(r"\s*\[REDACTED\]\s*\Z")
"""Matches the mark for omitted reasoning, at the end of a text or alone."""
FIELDS: Fields = {
    "": {"role": (str,), "message": (dict,), "type": (str,), "status": (str,), "error": (str,), "model": (str,)},
    "message": {"content": (list, str)},
}


def sniff(head: bytes, path: str) -> int:
    """Recognises rows with a role and a message but no members of other formats, or an event of the stream."""
    values = first_look(head).objects
    if any(map(_is_event, values)):
        return 95
    # 85: other importers know more members
    return 85 if values and all(_is_row(value) or _is_end(value) for value in values[:4]) else 0


def _is_end(value: dict[str, Any]) -> bool:
    return value.get("type") == "turn_ended" and value.keys() <= {"type", "status", "error"}


def _is_row(value: dict[str, Any]) -> bool:
    bare = not any(name in value for name in ("uuid", "id", "timestamp", "type", "sessionId"))
    return bare and value.get("role") in ("user", "assistant") and "content" in object_of(value.get("message"))


class _Session(ChatReader):
    name, agent, fields = "cursor", "Cursor", FIELDS
    unit = "line"
    row_word = ("a row", "rows")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        folder = os.path.dirname(path)
        self.session_id = os.path.basename(path).removesuffix(".jsonl")
        self.parent_id = os.path.basename(os.path.dirname(folder)) if os.path.basename(folder) == "subagents" else ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role = line.value, line.value.get("role")
        content = object_of(value.get("message")).get("content")
        if role == "assistant":
            answer = self.answer(line, place, model=known_text(value.get("model")))
            take_blocks(answer, content, line, answer.take(line), "message", "content")
            answer.parts[:] = [piece for part in answer.parts for piece in _without_mark(part)]
            return TreePlace(answer)
        if role == "user":
            results, text = results_of(content), words_of(content)
            place = self.results(line, place, *results)
            typed = "\n".join(QUERY.findall(text)) or text
            # text in the same row as results is Cursor's own
            return self.say(line, place, typed, own=bool(results)) if typed.strip() or not results else place
        if value.get("type") != "turn_ended":
            lines.count(value.get("type"), frozenset())
            return place
        status, error = known_text(value.get("status")) or "no status", known_text(value.get("error"))
        interrupted = status in INTERRUPTED or (error or "").startswith(ABORTED)
        mark = "ended" if status in ENDED else "interrupted" if interrupted else "stopped"
        if mark == "stopped":
            why = error or f"the turn ended with the status {status[:40]}"
            failed = self.failed_request(line, place, why, after_results=False)
            if failed is not None:
                return failed
        if mark == "interrupted":
            self.count_stopped(place)
        note = f"turn_ended: {status[:40]}{f', {error[:200]}' if error else ''}" if mark != "interrupted" else ""
        return self.say(line, place, note, mark=mark)


def reader(path: str, options: Options, head: bytes) -> TranscriptReader:
    """The reader of one file: of a transcript, or of the stream of the command line agent."""
    return (_Stream if any(map(_is_event, first_look(head).objects)) else _Session)(path, options)


def _without_mark(part: ResponsePart) -> tuple[ResponsePart, ...]:
    """A part of an answer; a text that ends with the mark becomes the text and hidden reasoning."""
    if type(part) is not TextPart or not _HIDDEN.search(part.text):
        return (part,)
    text = _HIDDEN.sub("", part.text)
    hidden = ReasoningPart("", data="[REDACTED]")
    return (TextPart(text), hidden) if text else (hidden,)


# -- The output of the command line agent ----------------------------------------------------------------------------


CALL = "ToolCall"
"""The end of the name of the member with a call, such as `readToolCall`."""
STREAM_FIELDS: Fields = {
    "": {"type": (str,), "subtype": (str,), "message": (dict,), "tool_call": (dict,), "call_id": (str,),
         "model_call_id": (str,), "text": (str,), "result": (str,), "model": (str,), "session_id": (str,)},
    "message": {"content": (list, str)},
}


def _is_event(value: dict[str, Any]) -> bool:
    """Whether an object is an event of the stream that no other agent writes."""
    kind, step = value.get("type"), value.get("subtype")
    if kind == "tool_call":
        return step in ("started", "completed") and "call_id" in value
    # The first event of Claude Code has the same members, and `tools`.
    return kind == "system" and step == "init" and {"apiKeySource", "permissionMode"} <= value.keys() and (
        "tools" not in value)


class _Stream(ChatReader):
    """A file of the stream."""

    name, agent, fields = "cursor", "Cursor", STREAM_FIELDS
    unit, key, row_word = "line", "", ("an event", "events")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.pieces: TranscriptAnswer | None = None
        """The answer whose text comes in pieces."""
        self.by_request: dict[str, TranscriptAnswer] = {}
        """Id of a request to the model -> its answer."""
        self.of_requests: set[TranscriptAnswer] = set()
        """The answers whose request is known."""
        self.begun: set[str] = set()
        """The ids of the calls so far."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, kind = line.value, line.value.get("type")
        if kind == "assistant":
            return self._text(line, place, words_of(object_of(value.get("message")).get("content")))
        if kind == "user":
            return self.say(line, place, words_of(object_of(value.get("message")).get("content")))
        if kind == "thinking" and isinstance(value.get("text"), str):
            return self._think(line, place, value["text"])
        if kind == "tool_call":
            return self._call(line, place)
        if kind == "result":
            return self._outcome(line, place)
        if kind == "system":
            self.model = known_text(value.get("model")) or self.model
            self.session_id = known_text(value.get("session_id")) or self.session_id
        lines.count(kind, frozenset({"system", "thinking"}))
        return place

    def _answer_of(self, line: TranscriptLine, place: TreePlace) -> tuple[TranscriptAnswer, TreePlace]:
        """The answer of an event: by the id of its request, else the one right above; and the place after it."""
        key = known_text(line.value.get("model_call_id"))
        answer, above = self.by_request.get(key or ""), place.right_above
        if answer is None:
            other = key is not None and above in self.of_requests  # `above` answers another request
            answer = self.answer(line, place, "event") if above is None or other else above
            place = TreePlace(answer)
        if key is not None:
            self.by_request[key] = answer
            self.of_requests.add(answer)
        answer.word_at = answer.take(line)
        return answer, place

    def _text(self, line: TranscriptLine, place: TreePlace, text: str) -> TreePlace:
        answer, place = self._answer_of(line, place)
        piece, last = "timestamp_ms" in line.value, answer.parts[-1] if answer.parts else None
        if not isinstance(last, TextPart):
            answer.add_text(text)
        elif not piece and self.pieces is answer and text.startswith(last.text):
            answer.parts[-1] = last._replace(text=text)  # the whole text comes after its pieces
        else:
            answer.parts[-1] = last._replace(text=last.text + text)
        self.pieces = answer if piece else self.pieces
        return place

    def _think(self, line: TranscriptLine, place: TreePlace, text: str) -> TreePlace:
        answer, place = self._answer_of(line, place)
        last = answer.parts[-1] if answer.parts else None
        if isinstance(last, ReasoningPart):
            answer.parts[-1] = last._replace(text=last.text + text)
        else:
            answer.parts.append(ReasoningPart(text))
        return place

    def _call(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads the start or the end of a call; a call whose start is missing is read at its end."""
        value, key = line.value, known_text(line.value.get("call_id"))
        member, held = _member_of(object_of(value.get("tool_call")))
        if key is None or key not in self.begun:
            answer, place = self._answer_of(line, place)
            name = first_text(held.get("name"), member.removesuffix(CALL))
            named = "arguments" if "arguments" in held else "args"
            path = ("tool_call", member)
            answer.parts.append(call_of(key, name, held.get(named), partial(slice_of, line.data, *path), named,
                                        pointer_at(answer.word_at, *path, named)))
            self.begun |= {key} if key is not None else set()
        if value.get("subtype") != "completed":
            return place
        result = object_of(held.get("result"))
        output = next(iter(result.values()), held.get("result"))
        part = ToolResultPart(key, None, output if isinstance(output, str) else json.dumps(output, ensure_ascii=False),
                              "success" not in result)
        return self.results(line, place, part, denied="rejected" in result)

    def _outcome(self, line: TranscriptLine, place: TreePlace) -> TreePlace:
        """Reads the end of the run: by itself, or with an error."""
        value = line.value
        if len(self.answers) == 1:  # the counts are those of the whole run
            input_tokens, output_tokens, cached, written = counts_of(
                object_of(value.get("usage")), "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
            input_tokens = input_count(self.answers[0].api, input_tokens, cached, written)
            self.answers[0].usage = None if output_tokens is None else Usage(
                input_tokens, output_tokens, None, cached, written)
        if value.get("subtype") == "success" and value.get("is_error") is not True:
            return self.say(line, place, "success", mark="ended")
        why = first_text(value.get("result"), value.get("error"), "the run ended with an error")
        failed = self.failed_request(line, place, why, after_results=True)
        return failed or self.say(line, place, f"the run ended with an error: {why[:200]}", mark="stopped")


def _member_of(holder: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the value of the member with a call: one of a tool's own, or `function`."""
    return next(((name, object_of(held)) for name, held in holder.items() if name.endswith(CALL) or name == "function"),
                ("", {}))
