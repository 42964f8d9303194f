"""Reads the requests of a task of Roo Code or Cline, and the members that Cline's SDK adds to messages.

The requests are the `api_req_started` rows of `ui_messages.json`; the history has neither requests nor token counts. An
answer belongs to the last request that began before the answer was stored. If messages have no times, requests and
answers are matched by order, and only if their numbers are equal.

In Cline's `<id>.messages.json`, a call whose arguments cannot be parsed is stored with `{}`, and its text in the
metadata of the message. Newer releases count the tokens of each answer; in older ones the last answer of a turn has the
counts of the whole turn. The file `<id>.json` beside it has the state of the session. Source: cline/cline
`sdk/packages/agents/src/agent-runtime.ts`, `sdk/packages/core/src/services/session-data.ts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from inspector.sessions import redact
from inspector.sessions.importers.records import compact_json, elements
from inspector.sessions.traffic import parse_prefix
from inspector.sessions.transcripts.answer import TranscriptAnswer
from inspector.sessions.transcripts.chat_messages import pointer_at
from inspector.sessions.transcripts.member_values import known_text, number_of, object_of, objects_of, usage_in
from loop_core.values import At, ToolCall, Usage

OVER = frozenset({"completed", "idle"})
"""The states of a session that is not running, did not fail and was not stopped."""


class TaskRequest(NamedTuple):
    """One request."""

    ts: float
    usage: Usage | None = None
    protocol: str | None = None
    cancel: str | None = None
    """The reason why the stream ended early."""
    failure: str | None = None
    """The error of the stream or of the request."""
    done: bool = False
    """Whether the request has a cost, which Roo stores when the stream has ended (`Task.ts`)."""
    partial: bool = False
    """Whether a row of the request was still growing when the file was last written."""
    completed: bool = False
    """Whether, after this request, the agent asked if the task is done, as it does after `attempt_completion` ran."""

    def record(self) -> dict[str, Any]:
        """The request as a record among the messages."""
        usage = self.usage
        return {"role": "request", "ts": self.ts, "protocol": self.protocol, "cancel": self.cancel,
                "failure": self.failure, "done": self.done, "partial": self.partial, "completed": self.completed,
                "usage": None if usage is None else [usage.input_tokens, usage.output_tokens,
                                                     usage.cached_tokens, usage.cache_write_tokens]}

    @classmethod
    def of(cls, value: dict[str, Any]) -> TaskRequest:
        """The request of a record."""
        counts = value.get("usage")
        numbers = [number_of(count) for count in counts] if isinstance(counts, list) and len(counts) == 4 else None
        usage = Usage(numbers[0], numbers[1], None, numbers[2], numbers[3]) if numbers is not None else None
        at = value.get("ts")
        return cls(at if isinstance(at, (int, float)) else 0, usage, known_text(value.get("protocol")),
                   known_text(value.get("cancel")), known_text(value.get("failure")), value.get("done") is True,
                   value.get("partial") is True, value.get("completed") is True)


def requests_of(screen: bytes | None) -> list[TaskRequest]:
    """The requests in the rows of the screen."""
    found: list[TaskRequest] = []
    for piece in elements(screen) if screen else ():
        row = object_of(parse_prefix(redact.body(piece)))
        kind = row.get("say") or row.get("ask")
        if kind == "api_req_started":
            found.append(_request(row))
        # Roo replaces a growing row by its complete form, so one that is still partial was cut.
        elif found and row.get("partial") is True:
            found[-1] = found[-1]._replace(partial=True)
        elif found and kind == "api_req_failed" and isinstance(row.get("text"), str):
            found[-1] = found[-1]._replace(failure=row["text"])
        elif found and _asks_if_done(row):
            found[-1] = found[-1]._replace(completed=True)
    return found


def _asks_if_done(row: dict[str, Any]) -> bool:
    """Whether a row asks if the task is done: the user, or for a subtask its parent (`finishTask`)."""
    kind, text = row.get("ask"), row.get("text")
    if kind != "tool" or not isinstance(text, str):
        return kind == "completion_result"
    return object_of(parse_prefix(text.encode("utf-8", "replace"))).get("tool") == "finishTask"


def _request(row: dict[str, Any]) -> TaskRequest:
    text, at = row.get("text"), row.get("ts")
    members = object_of(parse_prefix(text.encode("utf-8", "replace")) if isinstance(text, str) else None)
    return TaskRequest(
        at if isinstance(at, (int, float)) else 0, usage_in(members, "tokensIn", "tokensOut", None, "cacheReads",
                                                          "cacheWrites"),
        known_text(members.get("apiProtocol")), known_text(members.get("cancelReason")),
        known_text(members.get("streamingFailedMessage")), members.get("cost") is not None)


def with_requests(messages: list[bytes], requests: list[TaskRequest]) -> tuple[list[bytes], int]:
    """The messages with each request before its answer, and the number of requests without an answer."""
    if not requests:
        return messages, 0
    values = [object_of(parse_prefix(piece)) for piece in messages]
    answers = [value for value in values if value.get("role") == "assistant"]
    timed = all(type(value.get("ts")) in (int, float) for value in answers)
    if not timed and len(answers) != len(requests):
        return messages, len(requests)
    waiting, merged = list(requests), []
    for piece, value in zip(messages, values, strict=True):
        if value.get("role") == "assistant":
            until = value["ts"] if timed else None
            while waiting and (until is None or waiting[0].ts <= until):
                merged.append(compact_json(waiting.pop(0).record()))
                if until is None:
                    break
        merged.append(piece)
    return merged + [compact_json(request.record()) for request in waiting], 0


def models_of(metadata: dict[str, Any]) -> list[tuple[float, str]]:
    """The models in Cline's `task_metadata.json`, each with the time of its first use."""
    return sorted((float(row["ts"]), row["model_id"]) for row in objects_of(metadata.get("model_usage"))
                  if type(row.get("ts")) in (int, float) and isinstance(row.get("model_id"), str))


def is_own(value: dict[str, Any]) -> bool:
    """Whether a message in the role of the user is Cline's own, such as a reminder or a summary."""
    metadata = object_of(value.get("metadata"))
    return metadata.get("displayRole") in ("system", "status", "error") or metadata.get("userRunSpan") == 0


def is_error(value: dict[str, Any]) -> bool:
    """Whether a message in the role of the model is Cline's own, about a failed run (`recordTerminalError`)."""
    return object_of(value.get("metadata")).get("displayRole") == "error"


def take_unread_calls(answer: TranscriptAnswer, value: dict[str, Any], at: At) -> None:
    """Sets the arguments of calls that Cline could not read to the model's text; adds the calls without a name."""
    listed = objects_of(object_of(value.get("metadata")).get("invalidToolCalls"))
    for number, row in enumerate(listed):
        text, key = object_of(row.get("input")).get("rawInputText"), known_text(row.get("toolCallId"))
        if not isinstance(text, str):
            continue
        place = pointer_at(at, "metadata", "invalidToolCalls", number, "input", "rawInputText")
        call = ToolCall(key, known_text(row.get("toolName")) or "", text, True, at=place)
        there = next((index for index, part in enumerate(answer.parts)
                      if type(part) is ToolCall and part.id == key), None)
        if there is None:
            answer.parts.append(call)
        else:
            answer.parts[there] = call


def count_turns(turns: Sequence[Sequence[tuple[TranscriptAnswer, dict[str, Any]]]]) -> None:
    """Sets the token counts of the answers of each turn, unless they may be those of the whole turn."""
    for turn in turns:
        counted = [(answer, usage) for answer, metrics in turn
                   if (usage := usage_in(metrics, "inputTokens", "outputTokens", None, "cacheReadTokens",
                                    "cacheWriteTokens")) is not None and any(usage)]  # zeros if none were sent
        if len(turn) == 1 or len(counted) > 1:  # older releases write one count for the whole turn
            for answer, usage in counted:
                answer.usage = usage


def state_of(manifest: dict[str, Any]) -> str:
    """The state of a session that is not in a state of `OVER`; else empty."""
    state = known_text(manifest.get("status"))
    return "" if state is None or state in OVER else state
