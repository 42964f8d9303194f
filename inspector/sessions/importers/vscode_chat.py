"""Chats of VS Code (Copilot Chat): `chatSessions/<id>.json`, or `.jsonl` of operations on such an object.

A request of the user is one record; its rounds (`toolCallRounds`) are the answers. No stop reason, cap or provider's id
is stored. A failed request has an error code of Copilot Chat. Source: microsoft/vscode `objectMutationLog.ts`,
`chatModel.ts`; vscode-copilot-chat `commonTypes.ts` (ChatFetchResponseType).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from inspector.sessions import traffic
from inspector.sessions.importers.records import (
    Piece,
    compact_json,
    first_look,
    first_value,
    list_pieces,
    number_records,
)
from inspector.sessions.notices import Notice
from inspector.sessions.reasons import recorder_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, text_of
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at
from inspector.sessions.transcripts.ending_rules import call_cut
from inspector.sessions.transcripts.member_values import (
    first_text,
    known_text,
    moment_text,
    numbered_objects,
    object_of,
    objects_of,
    usage_in,
)
from loop_core.values import OpaquePart, Stop, ToolResultPart, Usage
from loop_core.wire.failures import StopRow

CODES: Mapping[str, StopRow] = {
    "length": StopRow(Stop.MAX_TOKENS, None, "ChatFetchResponseType.Length"),
    "filtered": StopRow(Stop.SAFETY_BLOCKED, "content_filter", "ChatFetchResponseType.Filtered"),
    "filteredRetry": StopRow(Stop.SAFETY_BLOCKED, "content_filter", "ChatFetchResponseType.FilteredRetry"),
    "promptFiltered": StopRow(Stop.SAFETY_BLOCKED, "content_filter", "ChatFetchResponseType.PromptFiltered"),
    "canceled": StopRow(Stop.CANCELLED, None, "ChatFetchResponseType.Canceled"),
}
"""Error code of Copilot Chat -> the stop reason; any other code is a failure."""
FIELDS: Fields = {
    "": {"message": (dict, str), "response": (list, str), "result": (dict,), "modelId": (str,), "isCanceled": (bool,),
         "modelState": (dict,)},
    "result": {"metadata": (dict,), "errorDetails": (dict,)},
}
_SESSION = ("requesterUsername", "responderUsername", "sessionId", "version", "creationDate", "initialLocation")
_SET, _PUSH, _DELETE = 1, 2, 3
_LIMIT = "maxToolCallsExceeded"
"""The member of a request that Copilot Chat stopped at its own limit of rounds (`chat.agent.maxRequests`). If the user
lets the chat continue, the next request runs the calls of the last round (`toolCallingLoop.ts`)."""
_PENDING, _COMPLETE, _CANCELLED = 0, 1, 2
"""The states of a request in newer files (ResponseModelState of `chatService.ts`)."""
_NOTICE = "what is shown is the chat after {count:,} operations on it; those were folded"


def sniff(head: bytes, path: str) -> int:
    """Recognises a chat with requests, or operations with a kind and a value, the first of them a whole chat."""
    look = first_look(head)
    for value in (look.first, *look.lines[:1]):
        if not isinstance(value, dict):
            continue
        if value.get("kind") == 0 and isinstance(value.get("v"), dict):
            return 95 if _is_chat(value["v"]) or "requests" in value["v"] else 0
        if value.keys() <= {"kind", "k", "v", "i"} and isinstance(value.get("k"), list):
            return 90
        if _is_chat(value):
            return 95
    return 0


def _is_chat(value: Any) -> bool:
    """Whether a value has a list of requests, or most members of a chat without requests."""
    if not isinstance(value, dict):
        return False
    names, requests = sum(name in value for name in _SESSION), value.get("requests")
    if isinstance(requests, list) and requests and isinstance(requests[0], dict) and not names:
        return requests[0].keys() >= {"requestId", "message"}
    return names > 0 and isinstance(requests, list) if "requests" in value else names > 3


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the chat."""
    reader = _Chat(path, options)
    first = first_value(data)
    if isinstance(first, dict) and first.keys() <= {"kind", "k", "v", "i"}:
        chat = _fold(data, reader)
        reader.title = known_text(chat.get("customTitle")) or ""
        requests = chat.get("requests")
        pieces: Iterator[Piece] = number_records(map(compact_json, requests if isinstance(requests, list) else ()))
    else:
        pieces = list_pieces(data, "requests")
        reader.title = known_text(object_of(first).get("customTitle")) or ""
    return reader.read_records(pieces)


# -- Operations --------------------------------------------------------------------------------------------------------


def _fold(data: bytes, reader: _Chat) -> dict[str, Any]:
    """The chat that results from the operations."""
    root: dict[str, Any] = {}
    done = lost = 0
    unknown: Counter[str] = Counter()
    for line in filter(None, (line.strip() for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"))):
        try:
            operation = traffic.loads(line)
            if operation.get("kind") == 0:
                root = object_of(operation.get("v"))
            elif operation.get("kind", _SET) not in (_SET, _PUSH, _DELETE):
                unknown[str(operation["kind"])[:40]] += 1
                continue
            else:
                _apply(root, operation)
            done += 1
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            lost += 1
    reader.reading.notices.append(_NOTICE.format(count=done))
    if unknown:
        reader.reading.notices.append(
            Notice("operations of unknown kind were skipped", dict(sorted(unknown.items())[:6])))
    if lost:
        reader.reading.notices.append(Notice("operations that change nothing before them were skipped", {"": lost}))
    return root


def _apply(root: dict[str, Any], operation: dict[str, Any]) -> None:
    """Applies one operation: a value is set or removed at a path, or appended after the first `i` elements."""
    *above, last = operation["k"]
    kind, place = operation.get("kind", _SET), root
    for step in above:
        place = place[step]
    if kind == _DELETE:
        del place[last]
    elif kind == _PUSH:
        items = place.setdefault(last, []) if isinstance(place, dict) else place[last]
        if type(operation.get("i")) is int:
            del items[operation["i"]:]  # `objectMutationLog.ts`: a push first truncates the list to `i`
        items.extend(operation.get("v") or ())
    else:
        place[last] = operation.get("v")


# -- Requests ----------------------------------------------------------------------------------------------------------


class _Chat(ChatReader):
    name, agent, fields = "vscode-chat", "VS Code", FIELDS
    unit, key, row_word = "request", "requestId", ("a request", "requests")

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, message = line.value, line.value.get("message")
        text = message if isinstance(message, str) else known_text(object_of(message).get("text")) or ""
        result = object_of(value.get("result"))
        metadata = object_of(result.get("metadata"))
        results = object_of(metadata.get("toolCallResults"))
        above = place.answer
        calls = place.right_above.calls if place.right_above is not None else []
        # A request stopped at the limit of rounds leaves its last calls to the next one.
        late = tuple(_result(call.id, call.name, results) for call in calls if call.id in results)
        if late:
            place = self.say(line, place, "", late)
        if text or "message" in value:
            place = self.say(line, place, text)
        rounds = objects_of(metadata.get("toolCallRounds", result.get("toolCallRounds")))
        for number, turn in enumerate(rounds):
            place = self._round(line, turn, number, results, place)
        failure = object_of(result.get("errorDetails"))
        if not rounds:
            place = self._response(line, place, bool(failure))
        # An empty last round is itself the failed one.
        elif failure and place.answer is not None and place.answer.parts:
            place = TreePlace(self._begin(line, place, "failure"))
        if place.answer is None or place.answer is above:
            return place  # the end of this request does not belong to the previous answer
        if len(rounds) < 2:  # the counts are those of the whole request
            place.answer.usage = place.answer.usage or _usage(value, metadata)
        state, answer = object_of(value.get("modelState")).get("value"), place.answer
        answer.unended = state == _PENDING
        if metadata.get(_LIMIT) is True and not failure and answer.calls and call_cut(answer, frozenset()) is None:
            at = pointer_at(answer.word_at, "result", "metadata", _LIMIT)
            answer.stop = recorder_reason(Stop.TOOL_CALL, None, at, _LIMIT, "vscode.limit")
            note = "VS Code stopped the request at its limit of rounds (chat.agent.maxRequests)"
            return self.say(line, place, note, mark="stopped")
        if failure:
            _fail(place.answer, failure)
        elif value.get("isCanceled") is True or state == _CANCELLED:
            return self.say(line, place, "", mark="interrupted")
        elif state == _COMPLETE:
            return self.say(line, place, "the request is complete", mark="ended")
        return place

    def _begin(self, line: TranscriptLine, place: TreePlace, name: str, turn: Any = None) -> TranscriptAnswer:
        row = object_of(turn)
        metadata = object_of(object_of(line.value.get("result")).get("metadata"))
        model = first_text(row.get("modelId"), metadata.get("resolvedModel"), line.value.get("modelId"))
        answer = self.answer(line, place, name, model)
        self.note_compaction(answer)
        answer.started = moment_text(row.get("timestamp") or line.value.get("timestamp"))
        answer.word_at = answer.take(line)
        return answer

    def _round(
        self, line: TranscriptLine, turn: dict[str, Any], number: int, results: dict[str, Any], place: TreePlace
    ) -> TreePlace:
        """Adds one answer of the model, and the results of its calls."""
        answer = self._begin(line, place, f"round {number}", turn)
        path = ("result", "metadata", "toolCallRounds", number)
        thinking = object_of(turn.get("thinking")).get("text")
        thought = "".join(each for each in thinking if isinstance(each, str)) if (
            isinstance(thinking, list)) else text_of(thinking)
        answer.add_thought(thought)
        answer.add_text(turn.get("response"))
        parts = []
        for at, call in numbered_objects(turn.get("toolCalls")):
            arguments, key = call.get("arguments"), known_text(call.get("id"))
            answer.parts.append(call_of(key, call.get("name"), arguments, _write_json(arguments), "arguments",
                                        pointer_at(answer.word_at, *path, "toolCalls", at)))
            if key in results:
                parts.append(_result(key, known_text(call.get("name")), results))
        if known_text(turn.get("summary")):
            self.compacted = f"request {line.number}: the rounds up to this answer were replaced by a summary"
        after = self.results(line, TreePlace(answer), *parts)
        hook = known_text(turn.get("hookContext"))  # a message to go on, although the model had finished
        return after if hook is None else self.say(line, after, hook, own=True)

    def _response(self, line: TranscriptLine, place: TreePlace, failed: bool) -> TreePlace:
        """Adds the displayed answer of a request without rounds."""
        response = line.value.get("response")
        parts = [{"value": response}] if isinstance(response, str) else objects_of(response)
        if not parts and not failed:
            return place
        answer = self._begin(line, place, "response")
        texts: list[str] = []
        for part in parts:
            text = part.get("value", object_of(part.get("content")).get("value"))
            if part.get("kind") == "thinking":
                answer.add_thought(text_of(text))
            elif part.get("kind") in (None, "markdownContent") and isinstance(text, str):
                texts.append(text)
            elif part.get("kind") == "toolInvocationSerialized":
                answer.parts.append(OpaquePart("toolInvocationSerialized", compact_json(part).decode()))
        answer.add_text("".join(texts))
        return TreePlace(answer)


def _fail(answer: TranscriptAnswer, failure: dict[str, Any]) -> None:
    """Sets the end of a failed request: by the flag for a filter, else by its code, else as an error."""
    text, word = known_text(failure.get("message")) or "no message", known_text(failure.get("code"))
    at = pointer_at(answer.word_at, "result", "errorDetails")
    code = word
    if failure.get("responseIsFiltered") is True:
        code = "filtered"
    elif word is None and "hit the length limit" in text:
        code = "length"
    row = CODES.get(code or "")
    if row is not None:
        answer.stop = recorder_reason(row.stop, row.detail, at, word or text, "vscode.error_codes")
        return
    answer.fail(text, at, kind=word)


def _result(key: str | None, name: str | None, results: dict[str, Any]) -> ToolResultPart:
    """The result of a call, from its own request or from the next one."""
    parts = objects_of(object_of(results.get(key or "")).get("content"))  # parts that are not text are shown as JSON
    texts = (part["value"] if isinstance(part.get("value"), str) else compact_json(part.get("value")).decode()
             for part in parts)
    return ToolResultPart(key, name, "\n".join(texts), False)


def _write_json(value: Any) -> Any:
    return lambda member: compact_json(value).decode()


def _usage(request: dict[str, Any], metadata: dict[str, Any]) -> Usage | None:
    """The counts of a request: its own in newer files, also as an object, else those in its metadata."""
    own = {**metadata, **object_of(request.get("usage")), **request}
    return usage_in(own, "promptTokens", "completionTokens" if "completionTokens" in own else "outputTokens")
