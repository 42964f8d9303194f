"""Decodes Bedrock Converse into a `ChatResponse`: the binary event stream, its events as JSON lines, or a whole body.

This module handles the order of events: usage comes after the stop reason, and exceptions are frames. `eventstream`
checks lengths and checksums. The first section converts content blocks to parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    ChatResponse,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    ResponsePart,
    Severity,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire import base
from loop_core.wire.bedrock_converse.table import API, EVENTS, FIELDS, SERVER_TOOL, STOP_REASONS, unwrap
from loop_core.wire.body import compact, mapping_of, string, token_count
from loop_core.wire.eventstream import EventStream
from loop_core.wire.failures import StopRow, read_error
from loop_core.wire.json_values import slice_of
from loop_core.wire.reads import UNREAD_CALL, may_be_call, unread_rule
from loop_core.wire.response_calls import StreamedPart, completes, open_places

# -- Content blocks -> parts -----------------------------------------------------------------------------------------
# A block, whole or grown from deltas, becomes parts or stays verbatim. It is a union with one member (`text`,
# `toolUse`, `reasoningContent`, …); in a stream only some blocks begin with a `contentBlockStart`, others with their
# first delta.

_INNER = {"toolUse": "input", "reasoningContent": "text"}
"""Kind of a delta -> its member that holds the characters. A text delta is itself a string, so it has no row."""


class GrowingBlock(StreamedPart):
    """A block of a stream while it arrives. `kind`, `inner` and `append` serve the most frequent deltas."""

    __slots__ = ("citations", "data", "fields", "inner", "kind", "signature")

    def __init__(self, kind: str, fields: dict[str, Any], start: int, *, orphan: bool = False) -> None:
        super().__init__(start, orphan=orphan)
        self.kind, self.fields = kind, fields
        self.inner = _INNER.get(kind)
        self.citations: list[Any] = []
        self.signature: str | None = None
        self.data: str | None = None

    def extend(self, kind: str, value: Any) -> bool:
        """Reads a delta of any kind; returns False if it does not belong in this block."""
        if kind == "citation" and self.kind == "text":  # a citation belongs to the text before it
            self.citations.append(value)
        elif kind != self.kind:
            return False
        elif self.inner is None and isinstance(value, str):
            self.append(value)
        elif kind == "reasoningContent" and isinstance(value, dict):
            self._reason(value)
        elif kind == "toolUse" and isinstance(value, dict) and isinstance(value.get("input"), str):
            self.append(value["input"])
        elif kind == "toolResult" and isinstance(value, list):
            before = self.fields.get("content")
            if type(before) is not list:
                before = self.fields["content"] = list(before or ())
            before += value  # in place, since copying for each delta takes quadratic time
        elif self.inner is None and isinstance(value, dict):
            self.fields.update(value)
        else:
            return False
        return True

    def _reason(self, value: Mapping[str, Any]) -> None:
        for name, piece in value.items():
            if name == "text" and isinstance(piece, str):
                self.append(piece)
            elif name == "signature" and isinstance(piece, str):
                self.signature = (self.signature or "") + piece
            elif name == "redactedContent" and isinstance(piece, str):
                self.data = (self.data or "") + piece

    def parts(self, limit: int) -> list[ResponsePart]:
        """The parts of the block; a call that never closed reaches to `limit`."""
        text = "".join(self.chunks)
        if self.kind == "text":
            return _text(text, self.citations)
        if self.kind == "reasoningContent":
            return [ReasoningPart(text, self.signature, self.data)]
        if self.kind == "toolUse":
            return [_call(self.fields, text, ArgsForm.STRING, self.closed, self.place(limit, "/start"))]
        return [OpaquePart(self.kind, compact({self.kind: self.fields}))]


def read_block(
    block: Mapping[str, Any], closed: bool, at: At, slice_at: Callable[..., str | None]
) -> list[ResponsePart]:
    """The parts of one block of a whole body; `slice_at` gives the verbatim JSON at a path inside it."""
    # A block is a union, so one member is set (botocore service-2.json, ContentBlock).
    kind = next((name for name, value in block.items() if isinstance(value, dict)), "")
    value = block.get(kind)
    if isinstance(block.get("text"), str):
        return [TextPart(block["text"])]
    if kind == "toolUse" and value is not None:
        call_input = value.get("input")
        if isinstance(call_input, str):
            return [_call(value, call_input, ArgsForm.STRING, closed, at)]
        arguments = slice_at("toolUse", "input") or compact(call_input) if call_input is not None else None
        return [_call(value, arguments, ArgsForm.OBJECT, closed, at)]
    if kind == "reasoningContent" and value is not None:
        thought = value.get("reasoningText")
        if isinstance(thought, dict) and isinstance(thought.get("text"), str):
            signature = thought.get("signature")
            return [ReasoningPart(thought["text"], signature if isinstance(signature, str) else None)]
        if isinstance(value.get("redactedContent"), str):
            return [ReasoningPart("", data=value["redactedContent"])]
    if kind == "citationsContent" and value is not None:
        content, citations = value.get("content"), value.get("citations")
        texts = [item.get("text") for item in content] if isinstance(content, list) else []
        if texts and all(isinstance(text, str) for text in texts) and isinstance(citations, list):
            return _text("".join(texts), citations)
    return [OpaquePart(kind or next(iter(block), ""), slice_at() or compact(block))]


def _text(text: str, citations: list[Any]) -> list[ResponsePart]:
    if not citations:
        return [TextPart(text)]
    if not text:
        # Nova grounding sends the citations of a text as a block of their own.
        return [OpaquePart("citationsContent", compact({"citationsContent": {"citations": citations}}))]
    return [TextPart(text), OpaquePart("citationsContent" + FIELDS, compact({"citations": citations}, sort=True))]


def _call(fields: Mapping[str, Any], arguments: str | None, form: ArgsForm, closed: bool, at: At) -> ToolCall:
    kind = CallKind.SERVER if fields.get("type") == SERVER_TOOL else CallKind.FUNCTION
    name = string(fields.get("name")) or ""
    return ToolCall(string(fields.get("toolUseId")), name, arguments, closed, kind, form, at=at)


_BLOCK_EVENTS = frozenset({"contentBlockStart", "contentBlockDelta", "contentBlockStop"})
_BROKEN = {
    "cut": "the last frame is cut",
    "prelude_crc": "a frame's prelude fails its checksum; nothing after it can be read",
    "message_crc": "a frame fails its checksum; nothing after it can be read",
    "length": "a frame has an impossible length; nothing after it can be read",
    "headers": "a frame's headers do not fit their length; nothing after it can be read",
}


class Decoder(base.Decoder):
    """The decoder of one Converse response."""

    api: ClassVar[str] = API
    stop_reasons: ClassVar[Mapping[str, StopRow]] = STOP_REASONS
    binary_framing = EventStream
    closing = (*base.Decoder.closing, b"messageStop")
    # Some recorders write the events as lines of JSON, without Amazon's frames.
    line_mark = re.compile(rb'\{\s*"(?:' + "|".join(sorted(EVENTS)).encode() + rb'|[A-Za-z]+Exception)"\s*:')

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._order: list[GrowingBlock] = []
        self._open: dict[Any, GrowingBlock] = {}
        self._parts: list[ResponsePart] = []  # of a whole body
        self._tail: int | None = None  # the offset of messageStop, beyond which no block reaches
        self._stopped = self._counted = False
        self._holder: tuple[str, ...] = ()  # the path of the event in the current value

    @property
    def is_over(self) -> bool:
        """Whether `metadata`, the last event, was read after `messageStop`."""
        return self._stopped and self._counted

    def on_event(self, event: Any, name: str | None) -> bool | None:
        """Reads one frame, named by its `:event-type`, or one JSON line, named by its only key."""
        if name is None:
            name, event = unwrap(event)
            self._holder = (name,) if name else ()
        if self._stopped and name in _BLOCK_EVENTS and not self.take_late_event(
                mapping_of(mapping_of(event.get("delta")).get("toolUse")).get("input"), name == "contentBlockStart"):
            self.after_end()
        elif name == "contentBlockDelta":
            delta = event["delta"]
            block = self._open.get(event.get("contentBlockIndex"))
            if block is not None:
                piece = delta.get(block.kind)
                if block.inner is not None and type(piece) is dict and len(piece) == 1:
                    piece = piece.get(block.inner)
                if type(piece) is str and len(delta) == 1:
                    block.append(piece)
                    return block.kind != "toolUse"
            self._other_delta(event, block, delta)
        elif name == "contentBlockStart":
            self._start_block(event)
        elif name == "contentBlockStop":
            self._stop_block(event)
        elif name == "messageStop":
            self._message_stop(event)
        elif name == "metadata":
            self._metadata(event)
        elif name == "messageStart":
            self._begin_message()
        else:
            self._no_event(event, name or "")
        return None

    def on_body(self, body: Any) -> None:
        """Reads a whole response or an error (already read by the base class; its type is in a header)."""
        if self.error is not None:
            if self.error.type is None:
                self._type_from_headers(self.error)
            return
        self._metadata(body)
        self._read_fields(body)
        if body.get("stopReason") is not None:
            self.raw, self.raw_at = str(body["stopReason"]), self.at("stopReason")
        output = body.get("output")
        message = output.get("message") if isinstance(output, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            self._read_content(content)
        else:
            self._quirk("no_message", "the body holds no output.message.content", Severity.ERROR)

    def build(self) -> ChatResponse:
        """The response, as far as it arrived."""
        limit = self.size if self._tail is None else self._tail
        parts = self._parts + [part for block in self._order for part in block.parts(limit)]
        calls = [part for part in parts if type(part) is ToolCall and part.kind is CallKind.FUNCTION]
        if self.raw == "tool_use" and not calls:
            self.find(f"{API}.tool_use_without_call", "stopReason is tool_use, but there is no call", self.raw_at)
        for at in () if self.raw is None else open_places(self._order, limit):
            # contentBlockStop may never come for a cut call (goose#11838).
            self.find(f"{API}.block_not_closed", "a stop reason came, but a block was never closed", at)
        # messageStop is the end mark; `metadata` with the usage still follows it (wire notes).
        self.saw_done = self._stopped
        return self.response(parts)

    # -- events --------------------------------------------------------------------------------------------------

    def _begin_message(self) -> None:
        self._begins_again = self._begins_again or self._stopped
        if self._order:
            # A gateway that asks again appends a second message, whose stop word says nothing about the calls of the
            # first.
            self._quirk("second_message", "another message begins before the first one ended")
            for block in self._order:
                block.closed = block.closed and block.kind != "toolUse"
            self._open.clear()

    def _start_block(self, event: Any) -> None:
        index, begun = event.get("contentBlockIndex"), event.get("start")
        if index in self._open:
            self._quirk("repeated_index", f"block {index!r} began twice")
            del self._open[index]
        if not isinstance(begun, dict) or not begun:
            return  # a text block may begin with nothing; its first delta says what it is
        # `start` is a union too: its only member is the kind of the block.
        kind, fields = next(iter(begun.items()))
        self._open[index] = GrowingBlock(kind, fields if isinstance(fields, dict) else {}, self.frame[2])
        self._order.append(self._open[index])

    def _stop_block(self, event: Any) -> None:
        # Later events with this index belong to another block: a closed call must not change.
        block = self._open.pop(event.get("contentBlockIndex"), None)
        if block is not None:
            block.close(self.frame[3])

    def _other_delta(self, event: Any, block: GrowingBlock | None, delta: Any) -> None:
        for kind, value in delta.items():
            if block is None:
                orphan = kind in ("toolUse", "toolResult")
                if orphan:
                    self._quirk("delta_without_start", f"a {kind} delta came before its block began")
                block = GrowingBlock("text" if kind == "citation" else kind, {}, self.frame[2], orphan=orphan)
                self._order.append(block)
                self._open[event.get("contentBlockIndex")] = block
            if not block.extend(kind, value):
                some = any(value.values()) if isinstance(value, dict) else value  # `{"input": ""}` holds nothing
                lost = some and "toolUse" in (kind, block.kind) and kind in ("toolUse", "text")
                self._quirk(UNREAD_CALL if lost else unread_rule(API, value, "unknown_delta"),
                            f"a {kind!r} delta does not belong in a {block.kind!r} block")

    def _message_stop(self, event: Any) -> None:
        self._stopped = True
        if self._tail is None:
            self._tail = self.frame[2]
        if event.get("stopReason") is not None:
            self.end_with(str(event["stopReason"]), self.at(*self._holder, "stopReason"))
        self._read_fields(event)

    def _no_event(self, event: Any, name: str) -> None:
        at = self.at()
        tag, _, word = name[1:].partition(":") if name.startswith(":") else ("", "", "")
        if tag == "broken":
            self.cut = True
            rule = "frame.cut" if word == "cut" else f"eventstream.{word}"
            self.find(rule, _BROKEN.get(word, word), at, Severity.WARNING if word == "cut" else Severity.ERROR)
        # A modelled exception is a frame of the stream, under HTTP 200; a recorder's line names it by its key.
        elif tag in ("exception", "error") or name.endswith("Exception"):
            self.fail(_error(event, word or name.lstrip(":")), at)
        elif (error := read_error(event, self.http_status)) is not None:
            self.fail(error, at)
        else:
            self._quirk(unread_rule(self.api, event, "unknown_event"), f"an event of type {name!r} is not known")

    # -- fields --------------------------------------------------------------------------------------------------

    def _metadata(self, event: Any) -> None:
        usage = event.get("usage")
        self._counted = True
        if isinstance(usage, dict):
            self.usage = Usage(
                input_tokens=token_count(usage.get("inputTokens")),
                output_tokens=token_count(usage.get("outputTokens")),
                cached_tokens=token_count(usage.get("cacheReadInputTokens")),
                cache_write_tokens=token_count(usage.get("cacheWriteInputTokens")),
            )
        trace = event.get("trace")
        if isinstance(trace, dict):
            guardrail, router = trace.get("guardrail"), trace.get("promptRouter")
            if isinstance(guardrail, dict) and isinstance(guardrail.get("actionReason"), str):
                self.native["trace.guardrail.actionReason"] = guardrail["actionReason"]
            if isinstance(router, dict) and isinstance(router.get("invokedModelId"), str):
                self.model = router["invokedModelId"]

    def _read_fields(self, holder: Any) -> None:
        if holder.get("additionalModelResponseFields") is not None:
            self.native["additionalModelResponseFields"] = compact(holder["additionalModelResponseFields"])

    def _read_content(self, content: list[Any]) -> None:
        text = self.text()
        complete = completes(self.map_word(self.raw, None))
        calls = [i for i, block in enumerate(content) if isinstance(block, dict) and "toolUse" in block]
        for i, block in enumerate(content):
            if not isinstance(block, dict):
                continue
            # A whole body does not mark the end of a block; after a cut only the last call can be unfinished.
            closed = self.raw is not None and (complete or i != calls[-1] if calls else True)
            for name in (each for each, value in block.items() if each != "toolUse" and may_be_call(API, value)):
                place = self.at("output", "message", "content", i, name)
                self.find(f"{API}.{UNREAD_CALL}", f"a block of the unknown type {name[:80]!r} may be a call", place)
            at = self.at("output", "message", "content", i) if "toolUse" in block else At()
            self._parts += read_block(block, closed, at, partial(slice_of, text, "output", "message", "content", i))

    def _type_from_headers(self, error: ProviderError) -> None:
        for name, value in self.headers:
            if name.lower() == "x-amzn-errortype":
                kind = value.split(":")[0].strip()  # a URI may follow (Smithy, restJson1: errors)
                typed = _error({"message": error.message}, kind)
                self.error = error._replace(type=kind, retryable=error.retryable or typed.retryable)

    def _quirk(self, rule: str, message: str, severity: Severity = Severity.WARNING) -> None:
        self.find(f"{API}.{rule}", message, self.at(), severity)


def _error(content: Any, kind: str) -> ProviderError:
    # modelStreamErrorException has the model's own message in another member (botocore 1.44.5 service-2.json).
    message = content.get("message") or content.get("originalMessage") or content.get("Message") or ""
    message = message if isinstance(message, str) else compact(message)
    read = read_error({"error": {"message": message, "type": kind}})
    return ProviderError(message, kind or None, None, read.retryable if read is not None else False)

