"""Decodes Cohere's chat into a `ChatResponse`. The first half describes the format: stop words, paths, losses, and
which values become facts.

Sources: cohere 7.3.1 types/chat_finish_reason.py (v2), types/finish_reason.py (v1), the v2 streaming events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loop_core.json_parser import JsonPath
from loop_core.values import (
    ArgsForm,
    At,
    ChatResponse,
    ProviderError,
    ReasoningPart,
    ResponsePart,
    Stop,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire import base
from loop_core.wire.asking import ITEM_FIELDS, usual_losses
from loop_core.wire.body import list_of, mapping_of, string, token_count, value_at, word
from loop_core.wire.failures import StopRow, read_error
from loop_core.wire.json_values import slice_of
from loop_core.wire.reads import FactRow, unread_rule
from loop_core.wire.response_calls import compare

API = "cohere_chat"
_V2 = "cohere 7.3.1 types/chat_finish_reason.py"
_V1 = "cohere 7.3.1 types/finish_reason.py (v1)"

STOP_REASONS: Mapping[str, StopRow] = {
    "COMPLETE": StopRow(Stop.END_TURN, None, _V2),
    "STOP_SEQUENCE": StopRow(Stop.END_TURN, "stop_sequence", _V2),
    "MAX_TOKENS": StopRow(Stop.MAX_TOKENS, None, _V2),
    "TOOL_CALL": StopRow(Stop.TOOL_CALL, None, _V2),
    "ERROR": StopRow(Stop.ERROR, "retryable: server failure under HTTP 200", _V2),
    "TIMEOUT": StopRow(Stop.ERROR, "retryable: timeout", _V2),
    "ERROR_TOXIC": StopRow(Stop.SAFETY_BLOCKED, "toxic", _V1),
    "ERROR_LIMIT": StopRow(Stop.CONTEXT_WINDOW_EXCEEDED, None, _V1),
    "USER_CANCEL": StopRow(Stop.CANCELLED, None, _V1),
}

LOSES: Mapping[str, str] = {
    "model": "an answer does not name its model",
    "refusal": "a refusal is ordinary text here",
    "usage.reasoning_tokens": "thinking is not counted apart",
    **usual_losses("server", "call.status", "call.item_id", "call.signature", "reasoning.signature",
                   *ITEM_FIELDS),
}

PATHS: tuple[re.Pattern[str], ...] = (re.compile(r"/v[12]/chat/?(?:$|[?#])"),)

EVENTS = frozenset({
    "message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start",
    "tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end",
})
FIRST_EVENTS = frozenset({
    "stream-start", "search-queries-generation", "search-results", "text-generation", "citation-generation",
    "tool-calls-chunk", "tool-calls-generation", "debug", "stream-end",
})
"""The values of `event_type` in the events of `/v1/chat`. Both versions have `debug`."""
LAST_EVENTS = frozenset({"message-end", "stream-end"})
"""The events that end a stream, in both versions. A second one is read too, since its reason may be stricter."""


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON value is an event of a stream or a whole response, of either version."""
    kind = value.get("type")
    if isinstance(kind, str) and kind in EVENTS and event in (None, kind):
        return True
    if event:
        return False
    first = value.get("event_type")
    if isinstance(first, str) and first in FIRST_EVENTS:
        return "is_finished" in value
    if isinstance(value.get("generation_id"), str) and isinstance(value.get("text"), str):
        return True
    message = value.get("message")
    # with `choices` it is a router's mix with Chat Completions
    return isinstance(message, dict) and isinstance(value.get("finish_reason"), str) and "choices" not in value


# -- Which values become which facts ---------------------------------------------------------------------------------

_INDEX = ("/index",)
_CALL = "/delta/message/tool_calls"

STREAM_READS: tuple[FactRow, ...] = (
    *(FactRow(fact, f"/delta/message/content{place}", _INDEX, event)
      for event in ("content-start", "content-delta")
      for fact, place in (("text", "/text"), ("text", ""), ("reasoning", "/thinking"))),
    FactRow("reasoning", "/delta/message/tool_plan", (), "tool-plan-delta"),
    FactRow("call.id", f"{_CALL}/id", _INDEX, "tool-call-start"),
    FactRow("call.name", f"{_CALL}/function/name", _INDEX, "tool-call-start"),
    FactRow("call.arguments", f"{_CALL}/function/arguments", _INDEX, "tool-call-start"),
    FactRow("call.arguments", f"{_CALL}/function/arguments", _INDEX, "tool-call-delta"),
    FactRow("text", "/text"),
)
"""The rows for values that a stream delivers piece by piece. The last is for version 1, including its whole bodies."""
READS: tuple[FactRow, ...] = (
    FactRow("id", "/id"),
    FactRow("id", "/generation_id"),
    *(FactRow(f"usage.{name}", f"{holder}/{kind}/{name}")
      for holder in ("/usage", "/delta/usage", "/meta", "/response/meta") for kind in ("tokens", "billed_units")
      for name in ("input_tokens", "output_tokens")),
    FactRow("usage.cached_tokens", "/usage/cached_tokens"),
    FactRow("usage.cached_tokens", "/delta/usage/cached_tokens"),
    *STREAM_READS,
    FactRow("text", "/message/content/*/text"),
    FactRow("text", "/message/content/*"),
    FactRow("text", "/message/content/text"),
    FactRow("text", "/message/content"),
    FactRow("reasoning", "/message/content/*/thinking"),
    FactRow("reasoning", "/message/tool_plan"),
    FactRow("call.id", "/message/tool_calls/*/id"),
    FactRow("call.name", "/message/tool_calls/*/function/name"),
    FactRow("call.arguments", "/message/tool_calls/*/function/arguments"),
    FactRow("call.name", "/tool_calls/*/name"),
    FactRow("call.arguments", "/tool_calls/*/parameters"),
)


# -- The decoder: server-sent events or one object (v2), JSON lines or one object (v1) -------------------------------
# A call of a stream is closed by its `tool-call-end`, one of a whole body by the finish reason. `tool_plan`, the
# model's text about its next calls, is reasoning.

_KINDS: Mapping[str, type[TextPart] | type[ReasoningPart]] = {"text": TextPart, "thinking": ReasoningPart}


NO_ARGUMENTS = "null"
"""The arguments that Cohere sometimes sends for tools without parameters (Vercel's AI SDK,
cohere-chat-language-model.ts)."""


class GrowingPart:
    """A text, reasoning or a call of a stream while it arrives."""

    __slots__ = ("at", "closed", "id", "kind", "name", "pieces")

    def __init__(self, kind: type[TextPart] | type[ReasoningPart] | None, at: At) -> None:
        self.kind, self.at = kind, at
        self.pieces: list[str] = []
        self.id: str | None = None
        self.name = ""
        self.closed = False

    def part(self) -> ResponsePart:
        """The finished part."""
        text = "".join(self.pieces)
        if self.kind is not None:
            return self.kind(text)
        return ToolCall(self.id, self.name, None if text == NO_ARGUMENTS else text, self.closed, form=ArgsForm.STRING,
                        at=self.at)


class Decoder(base.Decoder):
    """The decoder of one chat response."""

    api = API
    stop_reasons = STOP_REASONS
    closing = (*base.Decoder.closing, b"message-end", b"stream-end")
    reads_on = True
    line_mark = re.compile(rb'\{\s*"(?:is_finished|event_type)"\s*:')  # of version 1

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._order: list[GrowingPart] = []
        self._calls: dict[Any, GrowingPart] = {}
        self._parts: list[ResponsePart] = []  # parts that came whole
        self._repeated: list[ResponsePart] = []  # parts that the last event of version 1 repeats
        self._repeated_at = At()  # the place of that event

    def on_event(self, event: Any, name: str | None) -> None:
        """Reads one event of either version."""
        at = self.at()
        kind = string(event.get("type")) or string(event.get("event_type"))
        is_of_answer = (kind in EVENTS or kind in FIRST_EVENTS) and kind not in LAST_EVENTS
        if self.saw_done and is_of_answer and not self.take_late_event(
                kind == "tool-call-delta", kind in ("message-start", "tool-call-start")):
            self.after_end()
            return
        self.id = self.id or word(event.get("id")) or word(event.get("generation_id"))
        delta = mapping_of(event.get("delta"))
        message = mapping_of(delta.get("message"))
        if kind == "message-start" and self._order:
            # A gateway that asks again appends a second message, whose stop word says nothing about the calls of the
            # first.
            self.find(f"{API}.second_message", "another message begins before the first one ended", at)
            for part in self._order:
                part.closed = False
            self._calls.clear()
        elif kind in ("content-start", "content-delta"):
            self._content(message.get("content"), at)
        elif kind == "tool-plan-delta":
            self._add(ReasoningPart, message.get("tool_plan"), at)
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._call(kind, event.get("index"), mapping_of(message.get("tool_calls")), at)
        elif kind == "tool-call-end":
            call = self._calls.pop(event.get("index"), None)
            if call is not None:
                call.closed = bool(call.id or call.name)  # otherwise it never began
        elif kind == "message-end":
            self.saw_done = True
            self._end(delta, self.at("delta", "finish_reason"))
            if text := word(delta.get("error")):
                self.fail(ProviderError(text, retryable=True), self.at("delta", "error"))
        # Version 1 names its events in `event_type`, version 2 in `type`.
        elif kind in FIRST_EVENTS:
            self._version_1_event(kind, event)
        elif (error := read_error(event, self.http_status)) is not None:
            self.fail(error, at)
        elif kind not in EVENTS:
            rule = unread_rule(API, event, "unknown_event")
            self.find(f"{API}.{rule}", f"an event of type {kind!r} is not known", at)

    def on_body(self, body: Any) -> None:
        """Reads a whole answer or an error (already read by the base class)."""
        if self.error is not None:
            return
        self.id = word(body.get("id")) or word(body.get("generation_id"))
        self._end(body, self.at("finish_reason"))
        self._count(mapping_of(body.get("meta")))
        message = mapping_of(body.get("message"))
        content = message.get("content")
        for value in content if isinstance(content, list) else [content]:
            block = self._block_of(value)
            self._parts += [kind(block[field]) for field, kind in _KINDS.items() if word(block.get(field))]
        if plan := word(message.get("tool_plan")):
            self._parts.append(ReasoningPart(plan))
        if text := word(body.get("text")):
            self._parts.append(TextPart(text))
        for number, call in enumerate(list_of(message.get("tool_calls"))):
            function = mapping_of(mapping_of(call).get("function"))
            arguments = function.get("arguments")
            place = "message", "tool_calls", number
            is_text = isinstance(arguments, str | None)
            whole = arguments if is_text else slice_of(self.text(), *place, "function", "arguments")
            whole = None if whole == NO_ARGUMENTS else whole
            self._parts.append(ToolCall(word(mapping_of(call).get("id")), string(function.get("name")) or "", whole,
                                        closed=bool(self.raw), form=ArgsForm.STRING if is_text else ArgsForm.OBJECT,
                                        at=self.at(*place)))
        self._parts += self._version_1_calls(body)

    def build(self) -> ChatResponse:
        """The response, as far as it arrived."""
        grown = [part for growing in self._order if (part := growing.part()) not in (TextPart(""), ReasoningPart(""))]
        parts, different = compare([*grown, *self._parts], self._repeated, self._repeated_at)
        for found in different:
            self.find(f"{API}.{found.rule}", found.message, found.at, found.severity)
        return self.response(parts)

    def _block_of(self, value: Any) -> Mapping[str, Any]:
        """A block of the content; servers that imitate Cohere send only its text."""
        block = {"text": value} if isinstance(value, str) else mapping_of(value)
        if _KINDS.keys().isdisjoint(block) and block.keys() - {"type"}:
            message = f"a block of type {str(block.get('type'))[:80]!r} is not read"
            self.find(f"{API}.unknown_block", message, self.at())
        return block

    def _content(self, content: Any, at: At) -> None:
        block = self._block_of(content)
        for field, kind in _KINDS.items():
            self._add(kind, block.get(field), at)

    def _add(self, kind: type[TextPart] | type[ReasoningPart], text: Any, at: At) -> None:
        if not isinstance(text, str) or not text:
            return
        # events of another kind between two texts begin a new part
        if not self._order or self._order[-1].kind is not kind:
            self._order.append(GrowingPart(kind, at))
        self._order[-1].pieces.append(text)

    def _call(self, kind: str, index: Any, call: Mapping[str, Any], at: At) -> None:
        function = mapping_of(call.get("function"))
        growing, begins = self._calls.get(index), kind == "tool-call-start"
        if growing is None and not begins:
            # It becomes a call without a name, which holds the others: one of them may lack these arguments.
            self.find(f"{API}.delta_without_start", "a delta belongs to a call that never began", at)
        elif growing is not None and begins:
            self.find(f"{API}.repeated_index", f"call {str(index)[:20]} began twice", at)
        if growing is None or begins:
            growing = self._calls[index] = GrowingPart(None, at)
            self._order.append(growing)
        if begins:
            growing.id, growing.name = word(call.get("id")), string(function.get("name")) or ""
        if isinstance(function.get("arguments"), str):
            growing.pieces.append(function["arguments"])

    def _end(self, holder: Mapping[str, Any], at: At) -> None:
        reason = string(holder.get("finish_reason"))
        if reason is not None:
            self.end_with(reason, at)
        self._count(mapping_of(holder.get("usage")))

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Reads the token counts. Billed counts are used only if there are no others, because they lack the tokens that
        the provider added to the prompt."""
        counts = mapping_of(usage.get("tokens")) or mapping_of(usage.get("billed_units"))
        if counts:
            self.usage = Usage(token_count(counts.get("input_tokens")), token_count(counts.get("output_tokens")),
                                cached_tokens=token_count(usage.get("cached_tokens")))

    def _version_1_event(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "text-generation":
            self._add(TextPart, event.get("text"), self.at())
        elif kind == "stream-end":
            self._end(event, self.at("finish_reason"))
            response = mapping_of(event.get("response"))
            self._count(mapping_of(response.get("meta")))
            if not self.saw_done:  # it repeats the answer
                text = word(response.get("text"))
                self._repeated = [*([TextPart(text)] if text else []), *self._version_1_calls(event, "response")]
                self._repeated_at = self.at()
            self.saw_done = True
        elif kind == "tool-calls-chunk":  # the plan in pieces; the next event holds the whole calls
            self._add(TextPart, event.get("text"), self.at())
        elif kind == "tool-calls-generation":
            if not self._order:  # it repeats a plan that came in pieces
                self._add(TextPart, event.get("text"), self.at())
            self._parts += self._version_1_calls(event)

    def _version_1_calls(self, holder: Mapping[str, Any], *path: str) -> list[ToolCall]:
        """Reads calls of version 1, which are whole, have no ids, and have an object as arguments."""
        text, calls = self.text(), []
        for number, call in enumerate(list_of(value_at(holder, (*path, "tool_calls")))):
            if isinstance(call, dict):
                place: JsonPath = (*path, "tool_calls", number)
                calls.append(ToolCall(None, string(call.get("name")) or "", slice_of(text, *place, "parameters"),
                                      closed=True, form=ArgsForm.OBJECT, at=self.at(*place)))
        return calls
