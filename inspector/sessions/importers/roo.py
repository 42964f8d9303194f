"""Tasks of Roo Code, Cline, Zoo Code and Kilo Code: `api_conversation_history.json` and the files beside it.

No stop word is stored. The history has the messages. `ui_messages.json` has a row `api_req_started` for each request,
with the only token counts, and the reason if a stream ended early. Opening either file reads both; a lone screen file
is read as text. Source: RooCodeInc/Roo-Code `src/core/task/Task.ts`,
`src/core/assistant-message/presentAssistantMessage.ts`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from inspector.sessions import COMPANION, redact
from inspector.sessions.importers import roo_store
from inspector.sessions.importers.records import (
    compact_json,
    elements,
    first_look,
    first_value,
    number_records,
    object_beside,
)
from inspector.sessions.intake import sibling
from inspector.sessions.reasons import inferred_reason, recorder_reason, table_reason, unrecorded_reason
from inspector.sessions.recording import FileReading, Options, TurnPlace, UnreadableError
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, blocks_of, results_of, take_blocks
from inspector.sessions.transcripts.member_values import object_of, usage_in
from loop_core.values import ArgsForm, At, Finding, Severity, Stop, StopReason, TextPart, ToolCall, ToolResultPart
from loop_core.wire.failures import StopRow

HISTORIES = ("api_conversation_history.json", "claude_messages.json")
"""The names of the history file, the newer one first."""
SCREEN = "ui_messages.json"
STORE = ".messages.json"
"""The end of the name of a session file of Cline's SDK, an object with messages."""
APIS: Mapping[str, str] = {"anthropic": "anthropic_messages"}
"""`apiProtocol` of a request -> the wire format, if it is not the default (`openai`)."""
CANCELS: Mapping[str, StopRow] = {
    "user_cancelled": StopRow(Stop.CANCELLED, None, "Roo-Code Task.ts"),
    "streaming_failed": StopRow(Stop.INTERRUPTED, None, "Roo-Code Task.ts"),
    "retries_exhausted": StopRow(Stop.INTERRUPTED, None, "Cline ExtensionMessage.ts"),
}
"""`cancelReason` of a request -> the stop reason."""
NOTES: Mapping[str, Stop] = {
    "[Response interrupted by user]": Stop.CANCELLED,
    "[Response interrupted by user feedback]": Stop.CANCELLED,
    "[Response interrupted by API Error]": Stop.INTERRUPTED,
    "[Response interrupted by a tool use result.": Stop.UNKNOWN,
    "Failure: I did not provide a response.": Stop.UNKNOWN,
    "Failure: response hit the max output token limit before producing any visible content.": Stop.MAX_TOKENS,
    "Failure: the API stream failed mid-response.": Stop.INTERRUPTED,
}
"""Beginning of the agent's own paragraph at the end of a model's text, or instead of a text -> the stop reason; UNKNOWN
if the paragraph does not show it."""
OUTPUT_LIMIT = re.compile(r"Model reached the maximum output token limit\b")
"""Matches the error of Cline's SDK after an answer that was cut at the output cap."""
REJECTED = re.compile(
    r"Invalid tool call for '[^']*': missing nativeArgs|"
    r"\A(?:\{\"error\":\s*\")?Tool call \S+ (?:emitted invalid JSON arguments|was rejected before execution):")
"""Matches the result of a call with unparsable arguments, which are stored as `{}` or a stub."""
TAG_OF_USER = re.compile(r"<(?:task|feedback|user_message|answer)>")
"""Matches the tag before a text of the user, anywhere in a message."""
COMPLETION = "attempt_completion"
"""The tool with which a model ends the task. Its result is stored only if the task continues."""
OWN = re.compile(r"\s*(?:[\[#]|Tool result:\n)")
"""Matches the beginning of the agent's own messages in the role of the user: `[ERROR]`, `[TASK RESUMPTION]`,
`[read_file for 'a'] Result:`, and Roo's text for a result whose call a summary removed."""
RESULT = re.compile(r"\[(\w+)(?: for [^\n]*)?\] Result:")
"""Matches the beginning of a tool's result as text: of an XML call, in some releases also of a native call."""
DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
MODEL = re.compile(r"<model>([^<\s]{1,200})</model>")
"""Matches the name of the model in Roo's prompt."""
FIELDS: Fields = {"": {"role": (str,), "content": (list, str), "ts": (int, float), "reasoning_content": (str,)}}
_UI_TEXT = frozenset({"text", "reasoning", "completion_result"})


def sniff(head: bytes, path: str) -> int:
    """Recognises a list of messages by the names of its files, or a list of rows of the screen."""
    name, first = os.path.basename(path).lower(), first_look(head).first
    row = first[0] if isinstance(first, list) and first else None
    if isinstance(first, dict) and {"version", "messages"} <= first.keys():  # a session of Cline's SDK
        return 98 if name.endswith(STORE) or {"sessionId", "agent"} <= first.keys() else 0
    if isinstance(first, list) and name in (*HISTORIES, SCREEN):
        return 98
    if not isinstance(row, dict):
        return 0
    if row.get("type") in ("ask", "say") and "ts" in row and row["type"] in row:
        return 95
    return 90 if type(row.get("ts")) in (int, float) and {"role", "content"} <= row.keys() else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the task. Raises `UnreadableError` for the rows of the screen that were found in a folder
    and are read with their history."""
    reader = _Reader(path, options)
    first = first_value(data)
    if isinstance(first, dict):
        return reader.read_store([*elements(data, "messages")])
    if _is_screen(first):
        history = next((found for found in (sibling(path, name) for name in HISTORIES) if found), None)
        if history is None:
            reader.reading.notices.append(
                f"{HISTORIES[0]} is not beside it: only what was on the screen is shown, as text")
            return reader.read_records(number_records(_screen_messages(data), cut=True))
        if options.listed:
            raise UnreadableError(f"the screen of a task, which is read with its history{COMPANION}")
        return reader.read_task([*elements(history)], data)
    return reader.read_task([*elements(data)], sibling(path, SCREEN))


def _is_screen(first: Any) -> bool:
    return isinstance(first, list) and bool(first) and isinstance(first[0], dict) and "role" not in first[0] and (
        first[0].get("type") in ("ask", "say"))


class _Reader(ChatReader):
    name, agent, fields = "roo", "Roo Code or Cline", FIELDS
    key, row_word = "id", ("a row", "rows")
    words = "Roo Code and Cline keep no stop reason: each end is inferred from other rows and marked as inferred"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.session = os.path.basename(os.path.dirname(os.path.abspath(path)))
        self.request: roo_store.TaskRequest | None = None
        """The last request, until its answer is read."""
        self.number = 0
        self.sent_back = False
        """Whether the last message of the user has the result of a tool as text."""
        self.models: list[tuple[float, str]] = []
        self.completed: list[TranscriptAnswer] = []
        """The answers after which the agent asked whether the task is done."""
        self.turns: list[list[tuple[TranscriptAnswer, dict[str, Any]]]] = [[]]
        """The answers of each turn, with their counts in a session of Cline's SDK."""

    def read_task(self, rows: list[bytes], screen: bytes | None) -> FileReading:
        """Reads the messages, each answer with its request if the screen's rows have it."""
        self.models = roo_store.models_of(object_beside(self.path, "task_metadata.json", cut=True))
        merged, unmatched = roo_store.with_requests(rows, roo_store.requests_of(screen))
        if unmatched:
            self.reading.notices.append(
                f"{SCREEN}: its {unmatched:,} requests cannot be matched with its answers; their usage is left out")
        item = object_beside(self.path, "history_item.json", cut=True)
        if isinstance(item.get("task"), str):
            self.titles[self.session] = redact.text(item["task"])[:120]
        if isinstance(item.get("parentTaskId"), str):
            self.parents[self.session] = item["parentTaskId"]
        return self.read_records(number_records(merged, cut=True))

    def read_store(self, rows: list[bytes]) -> FileReading:
        """Reads the messages of a session of Cline's SDK."""
        name = os.path.basename(self.path)
        state = roo_store.state_of(object_beside(self.path, f"{name.removesuffix(STORE)}.json", cut=True))
        if state and name.endswith(STORE):
            self.reading.notices.append(f"the session was left in the state {state[:40]!r}")
        return self.read_records(number_records(rows, cut=True))

    def session_of(self, value: dict[str, Any]) -> str:
        return self.session

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        value, role, self.number = line.value, line.value.get("role"), line.number
        if role == "request":
            self._add_empty_answer(line.number)
            self.request = roo_store.TaskRequest.of(value)
            return self.here
        # Roo keeps such messages in the file without sending them; the model had received them when it answered.
        if "condenseParent" in value or "truncationParent" in value:
            self.remarks["were hidden from the model later, by a summary or a shorter history"] += 1
        if value.get("isSummary") is True or value.get("isTruncationMarker") is True:
            self.say(line, self.here, _words(value.get("content")), own=True)
        elif role == "assistant" and roo_store.is_error(value):
            self._fail(line)
        elif role == "assistant":
            self._answer(line)
        elif role == "user":
            self._user(line)
        elif role == "screen":
            lines.count(value.get("kind"), frozenset({str(value.get("kind"))}))
        else:
            lines.count(role or value.get("type"), frozenset({"reasoning"}))
        return self.here

    def _user(self, line: TranscriptLine) -> None:
        content = line.value.get("content")
        for result in (*results_of(content), *self._text_results(content)):
            self.results(line, self.here, result)
        text = _words(content)
        self.sent_back = RESULT.match(text) is not None and TAG_OF_USER.search(text) is None
        found = MODEL.search(text)
        self.model = found[1] if found is not None else self.model  # only some messages have the environment details
        message = DETAILS.sub("", text).strip()
        if message:
            own = roo_store.is_own(line.value) or (OWN.match(message) is not None and not TAG_OF_USER.search(message))
            self.turns += [] if own else [[]]
            self.say(line, self.here, message, own=own)

    def _text_results(self, content: Any) -> Iterator[ToolResultPart]:
        """The results that are text, each for the first open call of its tool, or for the only call."""
        answer = self.here.answer
        waiting = [call for call in answer.calls if call.id not in answer.results] if answer is not None else []
        for block in blocks_of(content):
            found = RESULT.match(_words([block]))
            if found is None or not waiting:
                continue
            call = next((call for call in waiting if call.name == found[1]), waiting[0] if len(waiting) == 1 else None)
            if call is not None:
                waiting.remove(call)
                yield ToolResultPart(call.id, call.name, _words([block])[found.end():].strip(), False)

    def _answer(self, line: TranscriptLine) -> None:
        value, request = line.value, self.request
        self.request = None
        at_time = value.get("ts") or (request.ts if request is not None else None)
        info = object_of(value.get("modelInfo"))
        model = info.get("modelId") or info.get("id") or _model_at(self.models, at_time) or self.model
        api = APIS.get(request.protocol or "") if request is not None else None
        answer = self.answer(line, self.here, model=model, key=f"{self.session}:{line.number}", api=api, begin=at_time)
        if self.sent_back:
            answer.recorded_place = TurnPlace.TOOL_RESULT
        at = answer.take(line)
        answer.word_at = at
        if isinstance(value.get("reasoning_content"), str):
            answer.add_thought(value["reasoning_content"])
        take_blocks(answer, value.get("content"), line, at, "content")
        roo_store.take_unread_calls(answer, value, at)
        metrics = object_of(value.get("metrics"))  # of newer releases of Cline's extension
        answer.usage = usage_in(object_of(metrics.get("tokens")), "prompt", "completion", None, "cached")
        self.turns[-1].append((answer, metrics))
        if request is not None:
            answer.usage = answer.usage or request.usage
            answer.stop = self._stop_reason(answer, request, at)
            self.completed += [answer] if request.completed else []
        last_paragraph = answer.text.strip().rpartition("\n\n")[2]
        note = next((note for note in NOTES if last_paragraph.startswith(note)), None)
        if note is not None:
            _take_note(answer, note, at)

    def _fail(self, line: TranscriptLine) -> None:
        """Reads the error of a run, which belongs to the answer directly above, unless that has calls, or to a request
        without an answer."""
        text, above = _words(line.value.get("content")), self.here.right_above
        capped = OUTPUT_LIMIT.match(text) is not None
        if above is not None and (above.calls or capped):
            self.say(line, self.here, text, mark="cap" if capped else "stopped")
            return
        answer = above or self.answer(
            line, self.here, model=object_of(line.value.get("modelInfo")).get("id"),
            key=f"{self.session}:{line.number}", begin=line.value.get("ts"))
        answer.fail(text, answer.take(line))

    def _stop_reason(self, answer: TranscriptAnswer, request: roo_store.TaskRequest, at: At) -> StopReason | None:
        """The stop reason by the agent's word for an early end of the request; None if there is none."""
        if request.failure:
            answer.findings.append(Finding("transcript.stream_failed", Severity.INFO,
                                           f"the agent says that the stream failed: {request.failure[:200]}", at))
        if request.cancel:
            return table_reason(request.cancel, CANCELS, at, "roo.cancel_reasons")
        if request.partial and not request.done:
            return inferred_reason(Stop.INTERRUPTED, at, "partial_row", None,
                                   f"{SCREEN}: a row of it is still partial, and its request has no cost")
        return None

    def _add_empty_answer(self, number: int) -> None:
        """Adds the answer of a request without a message: it failed, was cancelled, or the agent died."""
        request, self.request = self.request, None
        if request is None:
            return
        if not (request.failure or request.cancel or request.partial):
            self.remarks["are requests without an answer in the history"] += 1
            return
        data = compact_json(request.record())
        line = TranscriptLine(number, redact.body(data), {})
        answer = self.answer(line, self.here, model=_model_at(self.models, request.ts) or self.model,
                             key=f"{self.session}:request:{request.ts}", api=APIS.get(request.protocol or ""),
                             begin=request.ts)
        at = answer.take(line)
        answer.word_at, answer.usage = at, request.usage
        answer.stop = self._stop_reason(answer, request, at)
        # No part of an answer arrived, so the request failed, even if the agent reports only a failed stream.
        failed = answer.stop is not None and answer.stop.normalized is Stop.INTERRUPTED
        failure = request.failure or (request.cancel if failed else None)
        if failure:
            answer.fail(failure, at, word=failure[:200])

    def settle(self) -> None:
        """Marks calls that the agent could not parse as malformed, then infers other ends."""
        self._add_empty_answer(self.number + 1)
        roo_store.count_turns(self.turns)
        for answer in self.answers:
            _reject(answer)
        for answer in self.completed:
            _complete(answer)
        super().settle()


def _take_note(answer: TranscriptAnswer, note: str, at: At) -> None:
    """Removes the agent's own paragraph from a model's text, and sets the stop reason by it."""
    answer.findings.append(Finding("transcript.own_words", Severity.INFO, f"the agent wrote {note!r} into it", at))
    answer.parts = [part._replace(text=part.text.rpartition(note)[0].rstrip())
                    if type(part) is TextPart and note in part.text else part for part in answer.parts]
    if answer.stop is None:
        stop = NOTES[note]
        reason = recorder_reason(stop, None, at, note, "roo.notes")
        answer.stop = reason if stop is not Stop.UNKNOWN else unrecorded_reason(at)


def _reject(answer: TranscriptAnswer) -> None:
    """Marks calls as malformed whose result reports that their arguments could not be parsed."""
    # A call that was stored with its whole text shows its damage itself.
    whole_ids = {call.id for call in answer.calls if call.form is ArgsForm.STRING}
    refused = {key: part for key, part in answer.results.items() if key not in whole_ids and REJECTED.search(part.text)}
    if not refused:
        return
    answer.parts = [part._replace(closed=False) if type(part) is ToolCall and part.id in refused else part
                    for part in answer.parts]
    name = next((call.name for call in answer.calls if call.id in refused), "a tool")
    if answer.stop is None:
        answer.stop = inferred_reason(
            Stop.MALFORMED_TOOL_CALL, answer.word_at, "call_rejected", At(),
            f"the agent could not parse the arguments of {name} and did not run it; what is kept of them is a stub")


def _complete(answer: TranscriptAnswer) -> None:
    """Marks an answer as complete if its only call is `attempt_completion`, which ran."""
    if answer.stop is None and not answer.results and [call.name for call in answer.calls] == [COMPLETION]:
        answer.stop = inferred_reason(
            Stop.TOOL_CALL, answer.word_at, "completion", At(),
            f"{SCREEN}: the agent asked if the task is done, so its call of {COMPLETION} ran")


def _words(content: Any) -> str:
    texts = [block if isinstance(block, str) else block.get("text") for block in blocks_of(content)
             if isinstance(block, (str, dict))]
    return "\n".join(text for text in texts if isinstance(text, str))


def _model_at(models: list[tuple[float, str]], at: Any) -> str | None:
    if type(at) not in (int, float):
        return None
    return next((model for since, model in reversed(models) if since <= at), None)


def _screen_messages(screen: bytes) -> Iterator[bytes]:
    """The rows of the screen as messages: the model's texts between two requests are one answer. A row that is
    not a message keeps only its type, so that it is counted."""
    blocks: list[dict[str, str]] = []
    first, model = True, None
    requests = {request.ts: request for request in roo_store.requests_of(screen)}
    for piece in elements(screen):
        value = object_of(first_look(piece).first)
        kind, text, at = value.get("say") or value.get("ask"), value.get("text"), value.get("ts")
        own = value.get("type") == "say" and kind in _UI_TEXT and not first  # the first row is the task
        if isinstance(text, str) and own:
            blocks.append({"type": "text", "text": text} if kind != "reasoning" else {"thinking": text})
            model = value.get("modelInfo")  # in newer releases of Cline
            continue
        if kind in ("api_req_started", "user_feedback") or first:
            if blocks:
                yield compact_json({"role": "assistant", "content": blocks, "modelInfo": model})
                blocks = []
            if kind == "api_req_started" and type(at) in (int, float) and at in requests:
                yield compact_json(requests[at].record())
            elif isinstance(text, str) and kind in ("text", "task", "user_feedback"):
                # in the form of the history
                yield compact_json({"role": "user", "content": f"<feedback>{text}</feedback>", "ts": at})
            else:
                yield compact_json({"role": "screen", "kind": str(kind)})
        else:
            yield compact_json({"role": "screen", "kind": str(kind)})
        first = False
    if blocks:
        yield compact_json({"role": "assistant", "content": blocks, "modelInfo": model})
