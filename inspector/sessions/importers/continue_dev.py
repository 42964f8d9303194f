"""Sessions of Continue: `~/.continue/sessions/<id>.json`, one object whose `history` is the chat.

No stop reason is kept. Older releases log the options of a request (`promptLogs`), and with them the output cap.
Source: continuedev/continue `core/index.d.ts` (Session, ChatHistoryItem, ToolCallState, PromptLog).
"""

from __future__ import annotations

from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import first_look, list_pieces, whole_object
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, take_calls, text_of, usage_of
from inspector.sessions.transcripts.member_values import known_text, number_of, object_of, objects_of
from loop_core.values import ReasoningPart, TextPart, ToolResultPart, Usage

ENDED = {"done": False, "errored": True, "canceled": True}
"""Final state of a call -> whether the call failed."""
FIELDS: Fields = {
    "": {"message": (dict,), "toolCallStates": (list,), "promptLogs": (list,), "reasoning": (dict,)},
    "message": {"role": (str,), "content": (str, list), "toolCalls": (list,), "usage": (dict,)},
}
_OF_A_SESSION = ("workspaceDirectory", "sessionId", "chatModelTitle", "dateCreated")


def sniff(head: bytes, path: str) -> int:
    """Recognises an object with a history whose items hold a message each."""
    first = first_look(head).first
    if not isinstance(first, dict) or not any(name in first for name in _OF_A_SESSION):
        return 0
    items = first.get("history")
    if not isinstance(items, list):
        return 0
    if not items:
        return 80
    return 100 if "role" in object_of(object_of(items[0]).get("message")) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the session."""
    reader = _Session(path, options, whole_object(data))
    return reader.read_records(list_pieces(data, "history"))


class _Session(ChatReader):
    name, agent, fields = "continue", "Continue", FIELDS

    def __init__(self, path: str, options: Options, session: dict[str, Any]) -> None:
        super().__init__(path, options)
        self.title = redact.text(known_text(session.get("title")) or "")
        self.model = known_text(session.get("chatModelTitle")) or known_text(session.get("selectedModel"))
        self.thoughts: list[ReasoningPart] = []
        """The reasoning messages before the next answer, which they belong to."""
        self.results: set[str] = set()
        """The ids of calls whose result was in the item of their answer. A tool message that repeats such a result is
        skipped."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        message = object_of(line.value.get("message"))
        role, text = message.get("role"), text_of(message.get("content"))
        if role == "assistant":
            return self._answer(line, message, text, place)
        if role == "user":
            return self.say(line, place, text)
        if role == "tool":
            key = known_text(message.get("toolCallId"))
            if key in self.results:
                return place
            return self.say(line, place, "", (ToolResultPart(key, None, text, False),))
        if role == "thinking":
            self.thoughts.append(ReasoningPart(text, known_text(message.get("signature"))))
            return place
        lines.count(role, frozenset({"system"}))
        return place

    def _answer(self, line: TranscriptLine, message: dict[str, Any], text: str, place: TreePlace) -> TreePlace:
        logs = objects_of(line.value.get("promptLogs"))
        # The last log is that of the request whose answer stayed: an item that was regenerated has several.
        log = logs[-1] if logs else {}
        asked = object_of(log.get("completionOptions"))
        answer = self.answer(line, place, "", known_text(asked.get("model")) or known_text(log.get("modelTitle")))
        answer.cap = number_of(asked.get("maxTokens"))
        answer.word_at = at = answer.take(line)
        thought = known_text(object_of(line.value.get("reasoning")).get("text"))
        answer.parts += self.thoughts or ([ReasoningPart(thought)] if thought else [])  # some releases write both
        self.thoughts = []
        if text:
            answer.parts.append(TextPart(text))
        take_calls(answer, message.get("toolCalls"), line, at, "message", "toolCalls")
        answer.usage = _usage(message.get("usage"))
        answer.model = answer.model or known_text(object_of(message.get("usage")).get("model"))
        results = tuple(map(_result, [state for state in objects_of(line.value.get("toolCallStates"))
                                      if known_text(state.get("status")) in ENDED]))
        self.results.update(result.call_id for result in results if result.call_id is not None)
        return self.say(line, TreePlace(answer), "", results) if results else TreePlace(answer)


def _result(state: dict[str, Any]) -> ToolResultPart:
    """The result of a call; its state if there is no output."""
    text = "\n".join(each["content"] for each in objects_of(state.get("output"))
                     if isinstance(each.get("content"), str))
    name = known_text(object_of(object_of(state.get("toolCall")).get("function")).get("name"))
    failed = ENDED[state["status"]]
    text = text or (state["status"] if failed else "")
    return ToolResultPart(known_text(state.get("toolCallId")), name, text, failed)


def _usage(value: Any) -> Usage | None:
    """Token counts: the extension writes names of its own, the CLI those of Chat Completions."""
    if not isinstance(value, dict) or "prompt_tokens" in value:
        return usage_of(value)
    return Usage(number_of(value.get("promptTokens")), number_of(value.get("completionTokens")),
                 number_of(object_of(value.get("completionTokensDetails")).get("reasoningTokens")),
                 number_of(object_of(value.get("promptTokensDetails")).get("cachedTokens")))
