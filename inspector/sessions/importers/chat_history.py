"""Messages that programs with Haystack or Semantic Kernel store as JSON: a list of `ChatMessage.to_dict()`, or a
`ChatHistory` as `serialize()` writes it.

A message of the model has the framework's stop word, the model and the counts. Semantic Kernel stores arguments as the
model wrote them; Haystack parses them, and leaves out a call that it cannot parse. Sources: haystack-ai 3.4
`dataclasses/chat_message.py`, semantic-kernel 1.45 `contents/chat_history.py`; 28 files that they wrote.
"""

from __future__ import annotations

from typing import Any

from inspector.sessions.importers.records import first_look, list_pieces
from inspector.sessions.reasons import unrecorded_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of, usage_in
from inspector.sessions.transcripts.provider_answers import take_word
from loop_core.values import At, OpaquePart, ToolResultPart

HAYSTACK = frozenset({"role", "meta", "name", "content"})
"""The members of every message of Haystack."""
FIELDS: Fields = {"": {"role": (str,), "content": (list, str), "items": (list,), "meta": (dict,), "metadata": (dict,),
                       "finish_reason": (str,), "ai_model_id": (str,)}}


def sniff(head: bytes, path: str) -> int:
    """Recognises the first message."""
    first = first_look(head).first
    listed, message = (objects_of(value) for value in (first, object_of(first).get("messages")))
    is_kernel = bool(message) and message[0].get("content_type") == "message" and "role" in message[0]
    return 95 if is_kernel or (listed and listed[0].keys() >= HAYSTACK) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the history."""
    return _History(path, options).read_records(list(list_pieces(data)) or list(list_pieces(data, "messages")))


class _History(ChatReader):
    name, agent, fields = "chat-history", "the framework", FIELDS

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role = line.value, line.value.get("role")
        member = "items" if "items" in value else "content"
        parts = objects_of(value.get(member))
        if role == "assistant":
            return self._answer(line, place, member)
        if results := tuple(filter(None, map(_result, parts))):
            return self.say(line, place, "", results)
        if role == "user":
            return self.say(line, place, "\n".join(text for each in parts if (text := known_text(each.get("text")))))
        lines.count(role, frozenset({"system", "developer"}))
        return place

    def _answer(self, line: TranscriptLine, place: TreePlace, member: str) -> TreePlace:
        value, about = line.value, object_of(line.value.get("meta"))
        answer = self.answer(line, place, model=known_text(about.get("model")) or known_text(value.get("ai_model_id")))
        at = answer.word_at = answer.take(line)
        for number, part in numbered_objects(value.get(member)):
            _take_part(answer, part, line, at, member, number)
        counts = object_of((about or object_of(value.get("metadata"))).get("usage"))
        details = object_of(counts.get("completion_tokens_details")) | object_of(counts.get("prompt_tokens_details"))
        names = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
        answer.usage = usage_in(details | counts, *names)
        path = ("meta", "finish_reason") if about else ("finish_reason",)
        if word := known_text((about or value).get("finish_reason")):
            answer.word_at = pointer_at(at, *path)
            take_word(answer, word, answer.word_at, "chat_history.finish_reasons", empty=not answer.parts)
        elif "finish_reason" in about and answer.calls:  # no word came, and Claude's cut arguments come parsed
            answer.stop = unrecorded_reason(at)
        return TreePlace(answer)


def _take_part(
    answer: TranscriptAnswer, part: dict[str, Any], line: TranscriptLine, at: At, member: str, number: int
) -> None:
    """Reads a part. In Haystack its only member names its type, in Semantic Kernel `content_type` does."""
    if isinstance(part.get("tool_call"), dict):
        take_call(answer, part["tool_call"], line, at, member, number, "tool_call", name="tool_name")
    elif part.get("content_type") == "function_call":
        take_call(answer, part, line, at, member, number)
    elif thought := known_text(object_of(part.get("reasoning")).get("reasoning_text")):
        answer.add_thought(thought)
    elif "text" in part:
        answer.add_text(part["text"])
    else:
        kind = str(part.get("content_type") or next(iter(part), "part"))
        answer.parts.append(OpaquePart(kind, slice_of(line.data, member, number) or "{}"))


def _result(part: dict[str, Any]) -> ToolResultPart | None:
    """The result of a call; None if the part is no result."""
    result = object_of(part.get("tool_call_result"))
    if result:
        call = object_of(result.get("origin"))
        return ToolResultPart(known_text(call.get("id")), known_text(call.get("tool_name")),
                              any_text(result.get("result")), result.get("error") is True)
    if part.get("content_type") == "function_result":
        name = known_text(part.get("function_name"))
        return ToolResultPart(known_text(part.get("id")), name, any_text(part.get("result")))
    return None
