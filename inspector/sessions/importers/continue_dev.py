"""Sessions of Continue: `~/.continue/sessions/<id>.json`, one object whose `history` is the chat.

No stop reason is stored. Older releases log the options of a request (`promptLogs`), which include the output cap. One
answer may be several items: an empty one that is written with the request, reasoning, and the text with its calls.
Source: continuedev/continue `core/index.d.ts` (Session, ChatHistoryItem, ToolCallState, PromptLog),
`gui/src/redux/slices/sessionSlice.ts`.
"""

from __future__ import annotations

from typing import Any

from inspector.sessions.importers.records import first_look, list_pieces, whole_object
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, take_calls
from inspector.sessions.transcripts.member_values import counts_of, known_text, number_of, object_of, objects_of
from loop_core.values import ReasoningPart, ToolCall, ToolResultPart, Usage
from loop_core.wire.openai_chat.table import read_usage

ENDED = {"done": False, "errored": True, "canceled": True}
"""Final state of a call -> whether the call failed."""
CANCELED, GROWING = "canceled", "generating"
"""The state of a call that was stopped, and that of one whose arguments were still arriving."""
FIELDS: Fields = {
    "": {"message": (dict,), "toolCallStates": (list,), "promptLogs": (list,), "reasoning": (dict,)},
    "message": {"role": (str,), "content": (str, list), "toolCalls": (list,), "usage": (dict,)},
}
_OF_A_SESSION = ("workspaceDirectory", "sessionId", "chatModelTitle", "dateCreated")


def sniff(head: bytes, path: str) -> int:
    """Recognises an object with a history in which each item has a message."""
    first = object_of(first_look(head).first)
    items = first.get("history")
    if not isinstance(items, list) or not any(name in first for name in _OF_A_SESSION):
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
    hides_broken_arguments = True

    def __init__(self, path: str, options: Options, session: dict[str, Any]) -> None:
        super().__init__(path, options)
        self.title = known_text(session.get("title")) or ""
        self.model = known_text(session.get("chatModelTitle")) or known_text(session.get("selectedModel"))
        self.with_result: set[str] = set()
        """The ids of calls with a result in the item of their answer, which a message may repeat."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        message = object_of(line.value.get("message"))
        role, text = message.get("role"), text_of(message.get("content"))
        if role == "assistant":
            place = self._answer(line, message, text, place)
        elif role == "thinking":
            place = self._think(line, message, text, place)
        elif role == "user":
            place = self.say(line, place, text)
        elif role == "tool":
            key = known_text(message.get("toolCallId"))
            if key not in self.with_result:
                place = self.result(line, place, key, text)
        else:
            lines.count(role, frozenset({"system"}))
        if known_text(line.value.get("conversationSummary")):
            self.compacted = f"message {line.number}: the history up to it was replaced by a summary"
        return place

    def _answer_of_item(self, line: TranscriptLine, place: TreePlace) -> TranscriptAnswer:
        """The answer of an item: the previous one, as long as it has neither text nor calls, else a new one."""
        above = place.right_above
        if above is None or above.text or above.calls:
            above = self.answer(line, place)
            self.note_compaction(above)
        above.word_at = above.take(line)
        return above

    def _think(
        self, line: TranscriptLine, message: dict[str, Any], text: str, place: TreePlace
    ) -> TreePlace:
        answer = self._answer_of_item(line, place)
        # Instead of hidden reasoning, Continue writes a sentence of its own.
        answer.parts.append(ReasoningPart("" if known_text(message.get("redactedThinking")) else text))
        return TreePlace(answer)

    def _answer(self, line: TranscriptLine, message: dict[str, Any], text: str, place: TreePlace) -> TreePlace:
        logs = objects_of(line.value.get("promptLogs"))
        # The last log belongs to the answer; a regenerated item has several.
        log = logs[-1] if logs else {}
        options = object_of(log.get("completionOptions"))
        answer = self._answer_of_item(line, place)
        answer.model = known_text(options.get("model")) or known_text(log.get("modelTitle")) or answer.model
        answer.cap = number_of(options.get("maxTokens"))
        at = answer.word_at
        if not any(type(part) is ReasoningPart for part in answer.parts):  # some releases write both
            answer.add_thought(object_of(line.value.get("reasoning")).get("text"))
        answer.add_text(text)
        take_calls(answer, message.get("toolCalls"), line, at, "message", "toolCalls")
        answer.usage = _usage(message.get("usage"))
        answer.model = answer.model or known_text(object_of(message.get("usage")).get("model"))
        return self._states(line, answer, objects_of(line.value.get("toolCallStates")))

    def _states(self, line: TranscriptLine, answer: TranscriptAnswer, states: list[dict[str, Any]]) -> TreePlace:
        """Reads the states and results of the calls of an answer."""
        growing = {known_text(state.get("toolCallId")) for state in states if state.get("status") == GROWING}
        answer.parts = [part._replace(closed=False) if type(part) is ToolCall and part.id in growing else part
                        for part in answer.parts]
        ended = [state for state in states if known_text(state.get("status")) in ENDED]
        # A call is also marked as canceled if its answer was stopped while its arguments arrived.
        results = tuple(_result(state) for state in ended if state["status"] != CANCELED or _output(state))
        self.with_result.update(key for state in ended if (key := known_text(state.get("toolCallId"))) is not None)
        place = self.results(line, TreePlace(answer), *results)
        if len(results) == len(ended):
            return place
        return self.say(line, place, "a call was canceled", mark="interrupted")


def _result(state: dict[str, Any]) -> ToolResultPart:
    """The result of a call; its state if there is no output."""
    text = _output(state)
    name = known_text(object_of(object_of(state.get("toolCall")).get("function")).get("name"))
    failed = ENDED[state["status"]]
    text = text or (state["status"] if failed else "")
    return ToolResultPart(known_text(state.get("toolCallId")), name, text, failed)


def _output(state: dict[str, Any]) -> str:
    """The texts that the tool of a call returned."""
    return "\n".join(each["content"] for each in objects_of(state.get("output"))
                     if isinstance(each.get("content"), str))


def _usage(value: Any) -> Usage | None:
    """Token counts; the extension has its own names, the CLI those of Chat Completions."""
    if not isinstance(value, dict) or "prompt_tokens" in value:
        return read_usage(object_of(value), None)
    return Usage(number_of(value.get("promptTokens")), number_of(value.get("completionTokens")),
                 number_of(object_of(value.get("completionTokensDetails")).get("reasoningTokens")),
                 *counts_of(object_of(value.get("promptTokensDetails")), "cachedTokens", "cacheWriteTokens"))
