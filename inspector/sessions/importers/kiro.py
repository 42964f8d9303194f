"""Sessions of Kiro, the former Amazon Q Developer: the rows of its CLI and IDE, and its older conversations.

- `sessions/cli/<id>.jsonl` has a row for each message. `<id>.json` beside it has the model and the end of each turn.
- `sessions/<folder>/<id>/messages.jsonl` has a row for each text, call and result, and for the end of a turn. Those of
  its subagents are in `sub-executions/<id>.jsonl`.
- `data.sqlite3` and saved conversations have pairs of an input and an answer (`kiro_conversations`).

The service sends no stop reason. If the arguments of a call are not valid JSON, Kiro stores a note in their place and
asks for smaller calls; if a stream takes too long, it stores a text of its own as the answer. Sources:
aws/amazon-q-developer-cli `crates/agent/src/agent/mod.rs`, `agent_loop/types.rs`, `chat-cli/src/cli/chat/parser.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any

from inspector.sessions.importers.records import first_look, object_beside
from inspector.sessions.reasons import UNREAD_CALL, inferred_reason
from inspector.sessions.recording import Options, TurnPlace
from inspector.sessions.transcripts import Fields, TranscriptRows, slice_of
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, call_of, pointer_at, take_call
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of
from loop_core.values import Finding, OpaquePart, ReasoningPart, Severity, Stop, ToolCall, ToolResultPart

PLACEHOLDERS = ("WARNING: the actual tool use arguments were", "SYSTEM NOTE: the actual tool use arguments were")
"""The beginnings of the note that Kiro stores in place of arguments that were not valid JSON."""
TIMED_OUT = "Response timed out - message took too long to generate"
"""The text that Kiro stores in place of an answer whose stream took too long."""
OWN_MESSAGES = ("The generated tool was too large, try again", "You took too long to respond - ")
"""The beginnings of Kiro's messages to the model in the role of the user."""
TURN_ENDS: Mapping[str, str] = {
    # `<id>.json`, `LoopEndReason`
    "UserTurnEnd": "ended", "ToolUseRejected": "interrupted", "Cancelled": "interrupted",
    # `turn_end`, in the words of the Agent Client Protocol
    "end_turn": "ended", "cancelled": "interrupted", "max_tokens": "cap", "refusal": "filter",
}
"""Kiro's word for the end of a turn -> the mark of its row. Any other word, such as `Error`, is a row `stopped`."""
ERRORS: Mapping[str, tuple[str, str | None]] = {
    "contextwindowoverflow": ("The context window overflowed", "context_length_exceeded"),
    "servicefailure": ("The service failed to process the request", "server_error"),
    "throttling": ("The request was throttled by the service", "rate_limit"),
    "streamtimeout": ("The stream timed out", "timeout_error"),
}
"""Name of an error of Kiro's loop, in lower case -> its message there (`StreamErrorKind`), and its kind. The message of
any other error is its JSON."""
NO_EXCHANGE = frozenset({
    "Compaction", "ResetTo", "PromptClear", "Cancelled", "turn_start", "usage_summary", "session_start",
    "session_metadata", "session_event", "steering_inclusion", "tombstone", "pending_interaction",
    "interaction_resolved", "sub_agent_start", "sub_agent_complete", "sub_agent_progress", "system", "agent_note",
    "tool_revert", "mode_change", "ContextualHookInvoked", "summary", "row of a subagent"})
FIELDS: Fields = {"": {"kind": (str,), "data": (dict,), "payload": (dict,)}, "data": {"content": (list,)},
                  "payload": {"type": (str,), "content": (str, list, dict), "toolName": (str,)}}
HIDDEN = "..."
"""The text that the IDE stores in place of hidden reasoning."""
SUBAGENTS = "sub-executions"
"""The folder of the subagents of a session, beside its `messages.jsonl`."""


def sniff(head: bytes, path: str) -> int:
    """Recognises rows of messages, and rows of events."""
    rows = first_look(head).objects
    if any("version" in row and "kind" in row and "content" in object_of(row.get("data")) for row in rows):
        return 95
    is_event = any("type" in object_of(row.get("payload")) and row.keys() <= {"id", "timestamp", "payload"}
                   for row in rows)
    return 90 if is_event and PurePath(path).name == "messages.jsonl" else 60 if is_event else 0


class KiroReader(ChatReader):
    """Reads the answers of Kiro, of which each form has its own rows."""

    name, agent, fields = "kiro", "Kiro", FIELDS

    def settle(self) -> None:
        """Holds calls whose arguments were not valid JSON; then infers other ends."""
        for answer in self.answers:
            lost = [call for call in answer.calls if _is_placeholder(call)]
            if lost:
                answer.parts = [part._replace(arguments=None, closed=False) if part in lost else part
                                for part in answer.parts]
                note = f"Kiro says that the arguments of {lost[0].name} were not valid JSON; a note stands for them"
                answer.findings += [Finding(UNREAD_CALL, Severity.INFO, note, call.at) for call in lost]
                answer.stop = inferred_reason(
                    Stop.MALFORMED_TOOL_CALL, answer.word_at, "call_rejected", lost[0].at, note)
        super().settle()

    def begin_answer(
        self, line: TranscriptLine, place: TreePlace, key: Any, text: Any, **more: Any
    ) -> TranscriptAnswer:
        """Adds an answer with this id and text; an answer that Kiro asks for after a failure belongs to its turn."""
        answer = self.answer(line, place, known_text(key) or "", **more)
        answer.word_at = answer.take(line)
        if any(is_own(row.text) for row in place.rows()):
            answer.recorded_place = TurnPlace.NUDGE
        if text == TIMED_OUT:
            answer.fail(TIMED_OUT, answer.word_at, kind="timeout_error")
        else:
            answer.add_text(text)
        return answer


def is_own(text: str) -> bool:
    """Whether a message in the role of the user is Kiro's."""
    return text.startswith(OWN_MESSAGES)


def _is_placeholder(call: ToolCall) -> bool:
    return call.arguments is not None and any(f'"{words}' in call.arguments[:100] for words in PLACEHOLDERS)


class _Rows(KiroReader):
    """Reads the rows of a session."""

    unit, row_word = "line", ("a row", "rows")

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.about = self._about()
        self.turn_ends = dict(_turn_ends(self.about))
        """Id of the last message of a turn -> the end of the turn."""
        info = object_of(object_of(object_of(self.about.get("session_state")).get("rts_model_state")).get("model_info"))
        self.model = known_text(self.about.get("modelId")) or known_text(info.get("model_id"))
        self.title = known_text(self.about.get("title")) or ""
        self.session_id = known_text(self.about.get("session_id")) or known_text(self.about.get("id")) or ""
        self.parent_id = known_text(self.about.get("parentSessionId")) or ""
        if PurePath(path).parent.name == SUBAGENTS:
            self.title, self.parent_id, self.session_id = "", self.session_id, PurePath(path).stem
        self.is_main = PurePath(path).name == "messages.jsonl"
        self.shown_error = ""
        """The error that Kiro showed to the user last."""
        self.denied = set[str]()
        """The ids of the calls that did not run because a rule or the user forbade them."""
        self.is_over = False
        """Whether the row before was the end of a turn. An answer that follows it has a request that is not stored."""

    def _about(self) -> dict[str, Any]:
        """The object beside the rows, about the session; empty if there is none."""
        path = PurePath(self.path)
        name = ("session.json" if path.name == "messages.jsonl" else
                "../session.json" if path.parent.name == SUBAGENTS else f"{path.stem}.json")
        return object_beside(self.path, name)

    def look_ahead(self, data: bytes) -> bool:
        """Whether the object beside the rows is unchanged."""
        return self._about() == self.about

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        data, payload = object_of(line.value.get("data")), object_of(line.value.get("payload"))
        if payload:
            return self._event(line, lines, place, payload)
        kind, blocks = line.value.get("kind"), numbered_objects(data.get("content"))
        if kind == "AssistantMessage":
            texts = [block.get("data") for _, block in blocks]
            alone = texts[0] if len(texts) == 1 and texts[0] == TIMED_OUT else None
            answer = self.begin_answer(line, place, data.get("message_id"), alone)
            for number, block in blocks if alone is None else ():
                _take_block(answer, block, line, number)
            place = TreePlace(answer)
        elif kind == "ToolResults":
            parts = [object_of(block.get("data")) for _, block in blocks if block.get("kind") == "toolResult"]
            place = self.results(line, place, *[
                ToolResultPart(known_text(part.get("toolUseId")), None, _result_text(part.get("content")),
                               part.get("status") == "error") for part in parts])
        elif kind == "Prompt":
            text = "\n".join(block["data"] for _, block in blocks if isinstance(block.get("data"), str))
            place = self.say(line, place, text, own=is_own(text))
        else:
            lines.count(kind, NO_EXCHANGE)
        end = self.turn_ends.get(known_text(data.get("message_id")) or "")
        return place if end is None else self._end(line, place, *end)

    def _event(
        self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace, payload: dict[str, Any]
    ) -> TreePlace:
        """Reads a row of `messages.jsonl`, or of a subagent."""
        kind, content = payload.get("type"), payload.get("content")
        if self.is_main and "subExecutionId" in payload:
            kind = "row of a subagent"
        if kind == "user":
            self.is_over = False
            text = _content_text(content)
            return self.say(line, place, text, own=is_own(text) or _is_added(payload))
        if kind == "assistant" and payload.get("operationType") != "Summary":
            text = _content_text(content)
            if payload.get("operationType") == "Reasoning":
                answer = self._same_answer(line, place, None)
                answer.parts.append(ReasoningPart("" if text == HIDDEN else text))
                answer.model = known_text(payload.get("reasoningModelId")) or answer.model
            else:
                answer = self._same_answer(line, place, text)
            return TreePlace(answer)
        if kind == "tool_call":
            key = known_text(payload.get("toolCallId"))
            if payload.get("status") == "denied" and key:
                self.denied.add(key)
            if place.answer is not None and any(call.id == key for call in place.answer.calls if key):
                return place  # the same call in a later state
            answer = self._same_answer(line, place, None)
            take_call(answer, payload, line, answer.word_at, "payload", key="toolCallId", name="toolName",
                      member="args")
            return TreePlace(answer)
        if kind == "tool_result":
            key, failed = known_text(payload.get("toolCallId")), payload.get("success") is False
            return self.results(line, place, ToolResultPart(key, None, any_text(content), failed),
                                denied=key in self.denied)
        if kind == "error":
            why = known_text(payload.get("message")) or ""
            return self.failed_request(line, place, why, after_results=True, kind=known_text(payload.get("code"))) or (
                self.say(line, place, why, mark="stopped"))
        if kind == "turn_end":
            word = known_text(payload.get("stopReason"))
            refusal = object_of(object_of(payload.get("stopDetails")).get("refusal"))
            details = [refusal.get("category"), refusal.get("explanation"), self.shown_error]
            self.shown_error, self.is_over = "", True
            return place if word is None else self._end(line, place, word, ": ".join(
                [word, *[text for text in details if isinstance(text, str) and text]]))
        if kind == "session_metadata" and payload.get("key") == "displayError":
            self.shown_error = any_text(payload.get("value"))[:200]
        lines.count("summary" if kind == "assistant" else kind, NO_EXCHANGE)
        return place

    def _same_answer(self, line: TranscriptLine, place: TreePlace, text: str | None) -> TranscriptAnswer:
        """The answer to which a row of it belongs: the one right above, else a new one."""
        answer, starts_turn = place.right_above, self.is_over
        self.is_over = False
        if answer is None or starts_turn or text == TIMED_OUT:
            started = self.begin_answer(line, place, line.value.get("id"), text, begin=line.value.get("timestamp"))
            if starts_turn and not place.has_user_message:
                started.recorded_place = TurnPlace.REQUEST
            return started
        answer.word_at = answer.take(line)
        answer.add_text(text)
        return answer

    def _end(self, line: TranscriptLine, place: TreePlace, word: str, why: str) -> TreePlace:
        """Reads the end of a turn; an error without an answer is that of the turn's last request."""
        mark = TURN_ENDS.get(word, "stopped")
        if mark == "stopped":
            message, error_kind = next((row for name, row in ERRORS.items() if name in why.lower()), (why, None))
            failed = self.failed_request(line, place, message, after_results=True, kind=error_kind)
            if failed is not None:
                return failed
        return self.say(line, place, why, mark=mark, at_tool=word == "ToolUseRejected")


def _is_added(payload: dict[str, Any]) -> bool:
    """Whether Kiro itself added a message in the role of the user."""
    about = object_of(object_of(payload.get("_meta")).get("kiro"))
    return "syntheticUserMessageReason" in about or "notification" in about


def _turn_ends(about: dict[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    """The turns that the object beside the rows describes: the id of the last message, Kiro's word for the end and,
    for an error, its message."""
    metadata = object_of(object_of(about.get("session_state")).get("conversation_metadata"))
    for turn in objects_of(metadata.get("user_turn_metadatas")):
        ids, word = [key for key in turn.get("message_ids") or () if isinstance(key, str)], turn.get("end_reason")
        if ids and isinstance(word, str):
            error = object_of(turn.get("result")).get("Err")
            yield ids[-1], (word, word if error is None else f"{word}: {any_text(error)[:200]}")


def _take_block(answer: TranscriptAnswer, block: dict[str, Any], line: TranscriptLine, number: int) -> None:
    kind, data = block.get("kind"), block.get("data")
    path = ("data", "content", number, "data")
    find = partial(slice_of, line.data, *path)
    if kind == "toolUse" and isinstance(data, dict):
        answer.parts.append(call_of(data.get("toolUseId"), data.get("name"), data.get("input"), find, "input",
                                    pointer_at(answer.word_at, *path)))
    elif kind == "thinking" and isinstance(data, dict):
        answer.parts.append(ReasoningPart(known_text(data.get("text")) or ""))
    elif kind == "text":
        answer.add_text(data)
    else:
        answer.parts.append(OpaquePart(str(kind), find() or "{}"))


def _content_text(content: Any) -> str:
    """The text of an event: a text, an object with it, or a list of such objects."""
    pieces = [content] if isinstance(content, (str, dict)) else content if isinstance(content, list) else []
    return "\n".join(known_text(piece.get("text")) or "" if isinstance(piece, dict) else str(piece) for piece in pieces)


def _result_text(content: Any) -> str:
    """The text of a result, whose parts are texts or JSON."""
    return "\n".join(any_text(part.get("data")) for part in objects_of(content))


reader = _Rows.of
