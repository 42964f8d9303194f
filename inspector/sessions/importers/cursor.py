"""Transcripts of Cursor's agent: `~/.cursor/projects/<id>/agent-transcripts/<uuid>/<uuid>.jsonl`, and its subagents.

A row has a role and content blocks, without id and time. Cursor omits most tool results, all stop words, and reasoning,
for which a mark stands in the text. In newer files a row `turn_ended` states how a turn ended; a request that was
stopped at once has no other row. The stream of the command line agent is read by `cursor_stream`. Sources: fixtures of
jazzyalex/agent-sessions; transcripts in public repositories.
"""

from __future__ import annotations

import os
import re
from typing import Any

from inspector.sessions.importers.cursor_stream import CursorStream, is_event
from inspector.sessions.importers.records import first_look
from inspector.sessions.recording import Options
from inspector.sessions.transcripts import Fields, TranscriptReader, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, results_of, take_blocks, words_of
from inspector.sessions.transcripts.member_values import known_text, object_of
from loop_core.values import ReasoningPart, ResponsePart, TextPart

QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
"""Matches the text that the user typed, within a message to which Cursor has added other text."""
ENDED = frozenset({"success", "completed"})
INTERRUPTED = frozenset({"aborted", "cancelled", "canceled", "interrupted"})
ABORTED = "User aborted"
"""The beginning of the error in the row of a turn that the user stopped, whatever the row's status is."""
_HIDDEN = re.compile(r"\s*\[REDACTED\]\s*\Z")
"""Matches the mark for omitted reasoning, at the end of a text or alone."""
FIELDS: Fields = {
    "": {"role": (str,), "message": (dict,), "type": (str,), "status": (str,), "error": (str,), "model": (str,)},
    "message": {"content": (list, str)},
}


def sniff(head: bytes, path: str) -> int:
    """Recognises rows with a role and a message that have no other format's names, or an event of the stream."""
    values = first_look(head).objects
    if any(map(is_event, values)):
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
            if results:
                place = self.say(line, place, "", results)
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
    return (CursorStream if any(map(is_event, first_look(head).objects)) else _Session)(path, options)


def _without_mark(part: ResponsePart) -> tuple[ResponsePart, ...]:
    """A part of an answer; of a text that ends with the mark, the text and the reasoning that was left out."""
    if type(part) is not TextPart or not _HIDDEN.search(part.text):
        return (part,)
    text = _HIDDEN.sub("", part.text)
    hidden = ReasoningPart("", data="[REDACTED]")
    return (TextPart(text), hidden) if text else (hidden,)
