"""Prompts of Google AI Studio, which it stores in Google Drive: an object with `chunkedPrompt`.

A chunk is a message of the user, or a part of an answer: its thoughts, its text, a picture. The last chunk of an answer
has Gemini's stop word; older files have none. The settings (`runSettings`) are those of the prompt when it was stored.
Sources: prompts in public repositories, of 2024 and 2025; Sinity/polylogue `docs/providers`.
"""

from __future__ import annotations

from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import first_look, list_pieces, whole_object
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at
from inspector.sessions.transcripts.member_values import cap_of, known_text, moment_text, object_of, objects_of
from inspector.sessions.transcripts.provider_answers import take_api_word
from loop_core.values import At, OpaquePart
from loop_core.wire.gemini_generate.table import API, STOP_REASONS

FIELDS: Fields = {"": {
    "role": (str,), "text": (str,), "parts": (list,), "finishReason": (str,), "errorMessage": (str,)}}
ABOUT = frozenset({"grounding", "branchParent"})
"""The objects in a chunk that are no part of a message, such as a picture or code."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the list of chunks."""
    prompt = object_of(object_of(first_look(head).first).get("chunkedPrompt"))
    return 98 if isinstance(prompt.get("chunks"), list) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the prompt."""
    reader, about = _Prompt(path, options), whole_object(data)
    settings = object_of(about.get("runSettings"))
    reader.model = redact.text(known_text(settings.get("model")) or "").removeprefix("models/") or None
    reader.cap = cap_of(settings)
    if settings:
        reader.reading.notices.append(
            "the model and the cap are those of the stored settings (runSettings), which may be newer than an answer"
        )
    return reader.read_records(list_pieces(data, "chunkedPrompt", "chunks"))


class _Prompt(ChatReader):
    name, agent, fields, own_api = "ai-studio", "AI Studio", FIELDS, API
    unit, row_word = "chunk", ("a chunk", "chunks")

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role = line.value, line.value.get("role")
        text = known_text(value.get("text")) or "".join(
            known_text(part.get("text")) or "" for part in objects_of(value.get("parts")))
        others = [name for name, held in value.items() if isinstance(held, dict) and name not in ABOUT]
        if role == "user":
            return self.say(line, place, "\n".join([*([text] if text else []), *(f"[{name}]" for name in others)]))
        if role != "model":
            lines.count(role, frozenset[str]())
            return place
        answer = place.right_above
        if answer is None or answer.word is not None or answer.stop is not None:
            answer = self.answer(line, place)
            answer.started = moment_text(value.get("createTime"))
        at = answer.word_at = answer.take(line)
        if value.get("isThought") is True:
            answer.add_thought(text)
        else:
            answer.add_text(text)
        answer.parts += [OpaquePart(name, slice_of(line.data, name) or "{}") for name in others]
        self._end(answer, value, at)
        return TreePlace(answer)

    def settle(self) -> None:
        """In a file with stop words, an answer without one was not finished by the model."""
        marked = any(answer.word is not None for answer in self.answers)
        for answer in self.answers:
            answer.unended = marked and answer.word is None
        super().settle()

    def _end(self, answer: TranscriptAnswer, value: dict[str, Any], at: At) -> None:
        """Reads the end of an answer: Gemini's word, or the error in place of one."""
        word, error = known_text(value.get("finishReason")), known_text(value.get("errorMessage"))
        if value.get("isEdited") is True:
            self.remarks["were edited, so their text may not be the model's"] += 1
        if word is not None:
            take_api_word(answer, word, pointer_at(at, "finishReason"), STOP_REASONS)
        elif error is not None:
            answer.fail(error, pointer_at(at, "errorMessage"))
