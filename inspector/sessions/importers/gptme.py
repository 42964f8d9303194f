"""Conversations of gptme (`~/.local/share/gptme/logs/*/conversation.jsonl`).

A message has no stop word and no cap. In gptme's format `tool` a call is in the text, as `@name(id): {…}`, with the
arguments as they came; gptme does not run one whose arguments do not end. In its other formats, Markdown and XML, a
call is a block of the text and is shown as text, because only gptme's settings tell such a block from an example; the
result is a message of gptme. If a stream broke off, only its error is stored. Source: gptme 0.35 `message.py`,
`tools/base.py`; 8 conversations that it wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecoder
from pathlib import PurePath
from typing import Any

from inspector.sessions.importers.records import first_look
from inspector.sessions.recording import Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at
from inspector.sessions.transcripts.member_values import counts_of, known_text, object_of
from loop_core.values import At, ToolCall, Usage

FIELDS: Fields = {"": {"role": (str,), "content": (str,), "metadata": (dict,)}}
_FIRST = frozenset({"role", "content", "timestamp", "pinned", "hide"})
_OWN = "<system>"
"""The beginning of a message that gptme writes in the role of the user."""
_MARK = re.compile(r"^(?:(?P<fence>```)|@(?P<name>[^\r\n(]+)\((?P<id>[\w\-:.]+)\):\s*(?=\{))", re.MULTILINE)
"""Matches the border of a block of code, or the beginning of a call."""



def sniff(head: bytes, path: str) -> int:
    """Recognises the first message, which is pinned and hidden."""
    return 96 if object_of(first_look(head).first).keys() >= _FIRST else 0


class _Conversation(ChatReader):
    name, agent, fields = "gptme", "gptme", FIELDS
    unit, row_word = "line", ("a line", "lines")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        folder, name = PurePath(path).parent.name, PurePath(path).name
        self.title = folder if name == "conversation.jsonl" else ""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role = line.value, line.value.get("role")
        text, about = any_text(value.get("content")), object_of(value.get("metadata"))
        if role == "assistant":
            return self._answer(line, place, text, about)
        if role == "user":
            return self.say(line, place, text, own=text.startswith(_OWN))
        if role != "system":
            lines.count(role, frozenset[str]())
        elif about.get("error") is True:
            return self.failed_request(line, place, text, after_results=True) or place
        elif (key := known_text(value.get("call_id"))) is not None:
            return self.result(line, place, key, text, name=about.get("tool"))
        elif value.get("hide") is not True and place.answer is not None:
            return self.result(line, place, None, text)
        return place

    def _answer(self, line: TranscriptLine, place: TreePlace, text: str, about: dict[str, Any]) -> TreePlace:
        answer = self.answer(line, place, model=known_text(about.get("model")))
        at = answer.word_at = answer.take(line)
        answer.unended = True
        _take_text(answer, text, pointer_at(at, "content"))
        usage = object_of(about.get("usage"))
        answer.usage = Usage(*counts_of(usage, "input_tokens", "output_tokens", None, "cache_read_tokens",
                                        "cache_creation_tokens")) if usage else None
        return TreePlace(answer)


reader = _Conversation.of


def _take_text(answer: TranscriptAnswer, text: str, at: At) -> None:
    end = 0
    for begin, name, key, arguments in _calls(text):
        answer.add_text(text[end:begin].strip("\n"))
        end = arguments[1]
        answer.parts.append(ToolCall(key, name, text[slice(*arguments)], True, at=at))
    answer.add_text(text[end:].strip("\n") if end else text)


def _calls(text: str) -> Iterator[tuple[int, str, str, tuple[int, int]]]:
    """The place, name, id and the place of the arguments of each call. One whose arguments do not end takes the rest of
    the text. In a block of code there are only examples."""
    end, in_block, last = 0, False, text.rfind("\n```")
    for found in _MARK.finditer(text):
        if found["fence"] is not None:
            in_block ^= found.start() >= end
        elif found.start() >= end and not (in_block and found.start() < last):
            try:
                end = JSONDecoder(strict=False).raw_decode(text, found.end())[1]
            except (ValueError, RecursionError):
                end = len(text)
            yield found.start(), found["name"], found["id"], (found.end(), end)
