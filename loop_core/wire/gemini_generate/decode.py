"""Decodes Gemini generateContent into a `ChatResponse`: server-sent events, the streamed array, or one JSON body.

This module handles the order of chunks, finish reasons, token counts and blocked prompts; `parts` reads the parts. It
does not decide whether a call may run: a call that arrived whole is closed under any reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from typing import Any

from loop_core.json_parser import JsonPath
from loop_core.values import (
    FINISHED,
    At,
    ChatResponse,
    Evidence,
    ExchangePart,
    OpaquePart,
    ReasoningPart,
    ResponsePart,
    Severity,
    Stop,
    StopReason,
    Usage,
)
from loop_core.wire import base
from loop_core.wire.body import misfits_type, token_count, word
from loop_core.wire.failures import StopRow, read_error
from loop_core.wire.gemini_generate import table
from loop_core.wire.gemini_generate.parts import Parts, holds_content, string_piece
from loop_core.wire.gemini_generate.table import API
from loop_core.wire.json_values import JSONArray, slice_of
from loop_core.wire.reads import UNREAD_CALL, continues_call, may_be_call

# The members of an event without an end or an error, which needs no other check.
_PLAIN_EVENT = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "createTime"})
_PLAIN_CANDIDATE = frozenset({
    "content", "index", "safetyRatings", "groundingMetadata", "citationMetadata", "avgLogprobs", "logprobsResult",
    "tokenCount", "urlContextMetadata",
})
"""The fields of a candidate that say nothing about its end."""
_COUNTS = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount")
_CALLS = ("functionCall", "function_call")
_CODE = ("executableCode", "executable_code")
"""The types of a part with code that the provider runs; a part with the result follows it."""
_COUNTED = frozenset(_COUNTS) | {table.SNAKE[name] for name in _COUNTS}


class Decoder(base.Decoder):
    """The decoder of one generateContent response."""

    api = API
    stop_reasons = table.STOP_REASONS
    array_framing = JSONArray  # the stream without `alt=sse`
    closing = (*base.Decoder.closing, b"finishReason", b"finish_reason", b"blockReason", b"block_reason")

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._parts = Parts(self)
        self._counts: dict[str, Any] = {}  # the last token counts
        self._index: int | None = None  # index of the candidate that is read
        self._others: dict[int, tuple[str, At] | None] = {}  # the reason of each candidate that is not read
        self._token: tuple[str, At] | None = None  # the last checkpoint, and its place
        self._blocked: tuple[str, At] | None = None
        self._call_chunks: set[bytes] = set()  # the chunks that began a call and count tokens
        self._goes_on = False  # whether content came after the last finish reason
        self._holder: tuple[str, ...] = ()  # the path of the answer in the current value: Code Assist wraps it

    @property
    def is_over(self) -> bool:
        """Whether the list of chunks was closed. Events have no last one, since text may follow a finish reason."""
        return isinstance(self._framing, JSONArray) and self._framing.closed

    @property
    def may_be_over(self) -> bool:
        """Whether every candidate has a finish reason (a repeated one may be in every chunk), or a block or an error
        was read."""
        reasons = sum(bool(raw) for raw, _ in self.words_said)
        ended = [reasons == 1, *(each is not None for each in self._others.values())]
        blocked = self._blocked is not None or self.error is not None
        return self.is_over or blocked or (all(ended) and len(ended) >= self.n)

    def at(self, *path: str | int) -> At:
        """The place of the current value, or of a value in the answer that it holds."""
        return super().at(*self._holder, *path) if path else super().at()

    def verbatim(self, *path: str | int) -> str | None:
        """The JSON text of a value in the answer."""
        return slice_of(self.text(), *self._holder, *path)

    def on_event(self, event: Any, name: str | None) -> bool | None:
        """Reads one chunk. Nearly all only continue a text, a thought or a streamed argument."""
        # No event marks the end: text may follow a finish reason (Gemini 2.5 beside a call, rig), under the same id.
        if self.raw and word(table.get(event, "responseId")) not in (None, self.id):
            self.saw_done = True
            self.after_end()
            return False
        parts = self._parts
        append = parts.append
        if append is not None and not self.raw and "promptFeedback" not in event and "error" not in event:
            try:
                (candidate,) = event["candidates"]
                (part,) = candidate["content"]["parts"]
                usage, path = event["usageMetadata"], parts.path
                text = part["text"] if path is None else string_piece(part["functionCall"], path)
                width = len(candidate)
                if (
                    len(part) == parts.width
                    and type(text) is str
                    and type(usage) is dict
                    # JSON of protocol buffers may omit an index of 0.
                    and ((width == 1 and self._index == 0) or (width == 2 and candidate["index"] == self._index))
                    and (parts.width == 1 or part["thought"] is True)
                    and (self.id is not None or "responseId" not in event)
                    and (self.model is not None or "modelVersion" not in event)
                ):
                    append(text)
                    # Chunks have running totals: the last counts, and a usage without counts changes nothing.
                    if "promptTokenCount" in usage or not _COUNTED.isdisjoint(usage):
                        self._counts = usage
                    return path is None
            except (KeyError, TypeError, ValueError):
                pass  # another shape
        if self.frame[0] in self._call_chunks:
            self._late = self.frame  # not part of the answer
            self.find(f"{API}.chunk_repeated", "a chunk with a call came twice, with the same count of output tokens",
                      self.at())
            return False
        before = parts.last_whole
        self._read(event)
        # A call costs tokens, so another equal call would be in a chunk with a higher count.
        usage = table.get(event.get(table.WRAPPER) or event, "usageMetadata")
        counted = isinstance(usage, dict) and token_count(table.get(usage, "candidatesTokenCount"))
        if counted and parts.last_whole not in (before, None):
            self._call_chunks.add(self.frame[0])
        return None

    def on_body(self, body: Any) -> None:
        """Reads one whole response."""
        self._read(body)

    def build(self) -> ChatResponse:
        """The response from what was read."""
        if isinstance(self._framing, JSONArray):
            # The closing bracket is this framing's end mark; without it and without a reason the body was cut.
            self.saw_done = self.is_over
            self.cut = self.cut or not (self.saw_done or self.raw)
        parts = self._parts.build()
        stop = self._stop(parts)
        del self._parts  # it refers to this decoder, and the cycle is not freed while the garbage collector is paused
        if stop.normalized is Stop.END_TURN and not parts:
            stop = stop._replace(detail="empty")
        for index, ended in self._others.items():
            if ended is None or self.map_word(*ended).normalized is not Stop.END_TURN:
                remark = f"ended with {ended[0]}" if ended else "has no finish reason"
                self.find("gemini_generate.other_candidate", f"candidate {index}, which is not read, {remark}",
                          ended[1] if ended else None)
        self.usage = _usage(self._counts)
        return self.response(parts, stop, continuation_token=self._token[0] if self._token else None,
                             other_choices=len(self._others))

    def _read(self, event: dict[str, Any]) -> None:
        inner: Any = event.get(table.WRAPPER)
        self._holder = ()
        if type(inner) is dict and "candidates" not in event:
            event, self._holder = inner, (table.WRAPPER,)
        if not event.keys() <= _PLAIN_EVENT:
            self._read_metadata(event)
        usage = table.get(event, "usageMetadata")
        if isinstance(usage, dict) and not _COUNTED.isdisjoint(usage):
            self._counts = usage
        ident = word(table.get(event, "responseId"))
        self._parts.before, self._parts.answer = self._parts.answer, ident
        self.id = self.id or ident
        if self.model is None:
            self.model = word(table.get(event, "modelVersion"))
        candidates = event.get("candidates")
        candidates = candidates if isinstance(candidates, list) else ()
        numbers = [each.get("index") for each in candidates if isinstance(each, dict)]
        # Protocol buffers omit an index of 0. A candidate without an index gets the first unused one.
        free = (number for number in count() if number not in numbers)
        for position, candidate in enumerate(candidates):
            if isinstance(candidate, dict):
                index = candidate.get("index")
                self._candidate(candidate, position, index if isinstance(index, int) else next(free))

    def _read_metadata(self, event: dict[str, Any]) -> None:
        if "error" in event:
            error = read_error(event, self.http_status)
            if error is not None:
                self.fail(error, self.at("error"))
        if any(table.SNAKE[name] in event for name in ("usageMetadata", "modelVersion", "responseId")):
            self.find("gemini_generate.snake_case", "the fields are spelled as in protocol buffers",
                      self.at()._replace(pointer=""), Severity.INFO)
        feedback = table.get(event, "promptFeedback")
        if isinstance(feedback, dict):
            self._feedback(feedback, table.key_of(event, "promptFeedback"))

    def _feedback(self, feedback: dict[str, Any], key: str) -> None:
        reason = table.get(feedback, "blockReason")
        if reason is not None:
            self._blocked = str(reason), self.at(key, table.key_of(feedback, "blockReason"))
            self._note("blockReason", str(reason))
            self._note("blockReasonMessage", table.get(feedback, "blockReasonMessage"))

    def _candidate(self, candidate: dict[str, Any], position: int, index: int) -> None:
        if self._index is None:
            self._index = index
        if index != self._index:
            reason = word(table.get(candidate, "finishReason"))
            ended = (reason, self.at("candidates", position)) if reason else self._others.get(index)
            self._others[index] = ended
            if continues_call(API, {"candidates": [candidate]}, None):
                self.find(f"{API}.{UNREAD_CALL}",
                          f"candidate {index}, which is not read, holds a piece of a call without a name", self.at())
            return
        path = ("candidates", position)
        # `content` or `parts` may be missing altogether (req_llm#944, python-genai#1789).
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        for number, part in enumerate(parts if isinstance(parts, list) else ()):
            if isinstance(part, dict):
                place = (*path, "content", "parts", number)
                if misfits_type(part.get("thought"), bool):
                    self.find(f"{API}.odd_thought", "thought is neither true nor false; the part is read as thinking",
                              self.at(*place, "thought"))
                for name in (each for each, value in part.items() if each not in _CALLS and may_be_call(API, value)):
                    self.find(f"{API}.{UNREAD_CALL}", f"a part of the unknown type {name[:80]!r} may be a call",
                              self.at(*place, name))
                self._parts.read(part, place)
                self._goes_on = self._goes_on or bool(self.raw and holds_content(part))
        if not candidate.keys() <= _PLAIN_CANDIDATE:
            self._end(candidate, path)

    def _end(self, candidate: dict[str, Any], path: JsonPath) -> None:
        self._note("finishMessage", table.get(candidate, "finishMessage"))
        reason = table.get(candidate, "finishReason")
        if reason is not None:
            self._reason(reason, self.at(*path, table.key_of(candidate, "finishReason")))
        token = table.get(candidate, "continuationToken")
        if isinstance(token, str) and token:
            self._token = token, self.at(*path, table.key_of(candidate, "continuationToken"))
        elif self.raw and self.map_word(self.raw, None).normalized is not Stop.PAUSED:
            self._token = None  # a checkpoint before an end that needs none

    def _reason(self, reason: Any, at: At) -> None:
        raw = reason if isinstance(reason, str) else json.dumps(reason)
        if isinstance(reason, int) and reason in table.NUMBERS:
            self.find("gemini_generate.integer_reason", f"the finish reason is the number {raw}: "
                      f"{table.NUMBERS[reason]} in the numbering of Vertex AI", at, Severity.INFO)
        if self.raw is not None and self.raw != raw:
            self.find("gemini_generate.second_reason", f"finish reason {raw} after {self.raw}", at)
        elif self.raw is not None:
            self.find("gemini_generate.repeated_reason", f"finish reason {raw} came more than once", at, Severity.INFO)
        self.end_with(raw, at)
        if raw:
            # An empty reason ends nothing.
            self._parts.end_calls(self.id)
            self._goes_on = False

    def _note(self, name: str, value: Any) -> None:
        if isinstance(value, str) and value:
            self.native[name] = value

    def _stop(self, parts: Sequence[ResponsePart]) -> StopReason:
        stop = self.map_word(self.raw, self.raw_at)
        before = stop.evidence if self.raw else ()
        if self._blocked is not None:
            word, at = self._blocked
            # A blocked prompt has no candidate and no finish reason.
            row = table.BLOCK_REASONS.get(word, StopRow(Stop.SAFETY_BLOCKED, "prompt"))
            rule = f"{API}.block_reasons" if word in table.BLOCK_REASONS else "unknown_word"
            return StopReason(row.stop, self.raw, row.detail, (*before, Evidence(rule, at, word)))
        if self._token is not None and not self.raw:
            # The generator's own client resumes such a stream, dropped connections included (_extra_utils.py:806).
            return StopReason(Stop.PAUSED, self.raw, "token", (Evidence(f"{API}.continuation_token", self._token[1]),))
        if self._goes_on and stop.normalized in FINISHED:
            # With code execution there is a STOP before the rest, and one at the end (rig); without the latter, the
            # rest is cut.
            end = At(ExchangePart.BODY, self.size, self.size)
            self.find(f"{API}.goes_on", f"the answer goes on after finish reason {self.raw}, and none follows it", end)
            return StopReason(Stop.INTERRUPTED, self.raw, None, (*before, Evidence(f"{API}.goes_on", end)))
        if self.streaming and _code_waits(parts) and stop.normalized in FINISHED:
            # The provider runs the code and streams its result: the STOP beside the code is not the last one.
            end = At(ExchangePart.BODY, self.size, self.size)
            self.find(f"{API}.no_code_result", f"the stream ends after code that the provider runs, under finish "
                      f"reason {self.raw}, and without its result", end)
            return StopReason(Stop.INTERRUPTED, self.raw, None, (*before, Evidence(f"{API}.no_code_result", end)))
        return stop


def _code_waits(parts: Sequence[ResponsePart]) -> bool:
    """Whether the last part, thoughts aside, is code without a result."""
    last = next((part for part in reversed(parts) if type(part) is not ReasoningPart), None)
    return type(last) is OpaquePart and last.type in _CODE


def _usage(counts: dict[str, Any]) -> Usage | None:
    """The token counts. Gemini counts thoughts separately from the candidates' tokens; both count under the cap."""
    prompt, visible, thoughts, cached = (token_count(table.get(counts, name)) for name in _COUNTS)
    if prompt is visible is thoughts is cached is None:
        return None
    # Both count against maxOutputTokens: 478 of thoughts and 18 of text under 500 (hindsight#3365).
    output = None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0)
    return Usage(prompt, output, thoughts, cached)
