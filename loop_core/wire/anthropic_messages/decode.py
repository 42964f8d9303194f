"""Decodes Anthropic Messages, an event stream or a whole body, into a `ChatResponse`.

This module handles the order of events (`message_start`, blocks, `message_delta`, `message_stop`) and the running
totals of usage; `table` reads the blocks. It does not decide whether a call may run: a closed block stays closed under
any reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from loop_core.values import (
    FINISHED,
    At,
    CallKind,
    ChatResponse,
    Evidence,
    ExchangePart,
    ProviderError,
    ResponsePart,
    Severity,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire import base
from loop_core.wire.anthropic_messages import table
from loop_core.wire.anthropic_messages.table import API, BLOCK, MessageBlock, answer_parts, iterations_differ, remarks
from loop_core.wire.body import compact, mapping_of, token_count
from loop_core.wire.failures import read_error
from loop_core.wire.json_values import slice_of
from loop_core.wire.reads import UNREAD, UNREAD_CALL, may_be_call, unread_rule
from loop_core.wire.response_calls import completes, gone_on, open_places

_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_PROSE = frozenset({"text", "thinking"})
"""The types of blocks that mean nothing while they are empty."""
_USAGE = ("input_tokens", "output_tokens", "thinking_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""The names of the token counts, in the order of the fields of `Usage`."""
_MESSAGE_NATIVE = ("stop_sequence", "stop_details", "container", "context_management")


class Decoder(base.Decoder):
    """The decoder of one Messages response."""

    api = API
    stop_reasons = table.STOP_REASONS
    closing = (*base.Decoder.closing, b"message_stop", b'"stop_reason":"', b'"stop_reason": "')
    reads_on = True  # an error after `message_stop` fails the client's request too (anthropic 2.12.0 _streaming.py)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._order: list[MessageBlock] = []
        self._open: dict[Any, MessageBlock] = {}
        self._openings: dict[Any, str | None] = {}  # the JSON with which the last block of each index began
        self._earlier = 0  # the number of blocks of earlier messages
        self._told_again = False  # message_start came once more with the same id
        self._sizes: list[int] = []  # the number of pieces of each block when the last stop reason came
        self._early: tuple[str, At] | None = None  # the stop reason in message_start
        self._counts: dict[str, int] = {}
        self._refusal: str | None = None
        self._tail: int | None = None  # the offset of the first message_delta, beyond which no block reaches
        self._parts: list[ResponsePart] = []  # of a whole body
        self._seams: list[At] = []  # the places of fallback blocks in a whole body
        self._iterations: Any = None
        self._unknown: dict[str, tuple[str, At]] = {}  # id -> type and place of a block that may be a call

    def on_event(self, event: Any, name: str | None) -> bool | None:
        """Reads one SSE event; its name repeats its `type`."""
        kind = event.get("type")
        if self.saw_done and kind != "error" and name != "error" and not self.take_late_event(
                self._late_value(kind, mapping_of(event.get("delta"))),
                kind in ("message_start", "content_block_start")):
            if kind != "ping":
                self.after_end()
        elif kind == "content_block_delta":
            delta = event["delta"]
            block = self._open.get(event.get("index"))
            # The path of nearly every event; `_other_delta` reads unusual deltas.
            if block is not None and delta["type"] == block.delta:
                piece = delta[block.field]
                if type(piece) is str:
                    block.append(piece)
                    return block.field != "partial_json"
            self._other_delta(event, block, delta)
        elif kind == "content_block_start":
            self._start_block(event)
        elif kind == "content_block_stop":
            self._stop_block(event)
        elif kind == "message_delta":
            self._message_delta(event)
        elif kind == "message_start":
            self._message_start(event["message"])
        elif kind == "message_stop":
            self._stop_message()
        elif kind == "error" or name == "error" or event.get("error"):
            # Sent under HTTP 200, after the answer began (API docs, Errors).
            error = read_error(event, self.http_status) or ProviderError(str(event.get("message") or ""))
            self.fail(error, self.at("error"))
        elif kind != "ping" and not event.get("base_resp"):  # a ping only keeps the connection open (API docs)
            self._quirk(unread_rule(API, event, "unknown_event"), f"an event of type {kind!r} is not known")
        self._base_resp(event)
        return None

    def on_body(self, body: Any) -> None:
        """Reads a whole message or an error (already read by the base class)."""
        self._read_message(body)
        if isinstance(body.get("request_id"), str):
            self.native["request_id"] = body["request_id"]
        if body.get("stop_reason") is not None:
            self.raw, self.raw_at = str(body["stop_reason"]), self.at("stop_reason")
        content = body.get("content")
        if isinstance(content, list):
            self._read_content(content)
        elif isinstance(content, str):
            self._quirk("content_text", "the content is a text instead of a list of blocks", Severity.INFO)
            self._parts.append(TextPart(content))
        elif self.error is None:
            self._quirk("no_message", "the body is not a message of this API", Severity.ERROR)

    def build(self) -> ChatResponse:
        """The response, as far as it arrived."""
        limit = self.size if self._tail is None else self._tail
        parts = self._parts + [part for block in self._order for part in block.parts(limit)]
        if self._seams or self._iterations or any(block.type == BLOCK for block in self._order):
            parts = self._after_fallback(parts, limit)
        calls = [part for part in parts if type(part) is ToolCall and part.kind is CallKind.FUNCTION]
        # Proxies send tool_use with an empty content (wire notes).
        if self.raw == "tool_use" and not calls:
            self.find(f"{API}.tool_use_without_call", "stop_reason is tool_use, but there is no call", self.raw_at)
        if self._early is not None and self.raw_at is not self._early[1]:
            # If it counted before the end, every cut of this stream would look finished.
            message = "message_start already names a stop reason; ignored"
            self.find(f"{API}.early_stop_reason", message, self._early[1])
        for kind, at in self._unknown.values():
            self.find(f"{API}.{UNREAD_CALL}", f"a block of the unknown type {kind!r} may be a call", at)
        for at in () if self.raw is None else open_places(self._order, limit):
            # A cut call may lack its content_block_stop (zeroclaw cfee31c613).
            self.find(f"{API}.block_not_closed", "a stop reason came, but a block was never closed", at)
        return self.response(parts, self._stop(), refusal=self._refusal)

    def _stop(self) -> StopReason:
        """The mapped reason. A `stop_sequence` that names no sequence becomes unknown: translators write this word for
        filters, failures and words that they do not know."""
        stop = self.map_word(self.raw, self.raw_at)
        if self.raw and not self.saw_done and self._went_on():
            stop = gone_on(API, stop, self.size, self.find)
            if stop.normalized is Stop.INTERRUPTED:
                return stop
        if self.raw != "stop_sequence" or self.native.get("stop_sequence") or self.raw in self.words:
            return stop
        row = table.STOP_REASONS[table.UNNAMED]
        return stop._replace(normalized=row.stop, detail=row.detail,
                             evidence=(*stop.evidence, Evidence(f"{API}.{table.UNNAMED}", self.raw_at)))

    def _went_on(self) -> bool:
        """Whether more than white space, or a block that is not for text alone, arrived after the last stop reason."""
        sizes = [*self._sizes, *[0] * (len(self._order) - len(self._sizes))]
        late = [(block, "".join(block.chunks[size:])) for block, size in zip(self._order, sizes, strict=True)]
        return (any(text.strip() if block.type in _PROSE else text for block, text in late)
                or any(block.type not in _PROSE for block in self._order[len(self._sizes) :]))

    def _after_fallback(self, parts: list[ResponsePart], limit: int) -> list[ResponsePart]:
        """Reports which model wrote which part; returns the parts without calls of a model that handed over."""
        seams = self._seams or [At(ExchangePart.BODY, block.start, block.end or limit, "/content_block")
                                for block in self._order if block.type == BLOCK]
        end = self.raw_at or At(ExchangePart.BODY, 0, self.size)
        for rule, message, at in remarks(parts, self._iterations, seams, end):
            severity = Severity.INFO if rule == BLOCK else Severity.WARNING
            self.find(f"{API}.{rule}", message, at, severity)
        return answer_parts(parts)

    def _read_content(self, content: list[Any]) -> None:
        text = self.text()
        complete = completes(self.map_word(self.raw, None))
        calls = [i for i, block in enumerate(content) if isinstance(block, dict) and block.get("type") == "tool_use"]
        for i, block in enumerate(content):
            if not isinstance(block, dict):
                continue
            self._check_type(block)
            # A whole body does not mark the end of a block; after a cut only the last call can be unfinished.
            closed = self.raw is not None and (complete or i != calls[-1] if calls else True)
            at = self.at("content", i) if block.get("type") in (*table.KINDS, BLOCK) else At()
            if block.get("type") == BLOCK:
                self._seams.append(at)
            self._parts += table.read_block(block, closed, at, partial(slice_of, text, "content", i))

    def _check_type(self, block: Mapping[str, Any]) -> None:
        if "input" in block and not isinstance(block.get("type"), str):
            self._quirk(UNREAD_CALL, "a block with an input has no type")
        elif block.get("type") not in table.KINDS and may_be_call(API, block):
            self._unknown[str(block.get("id"))] = str(block["type"])[:80], self.at()
        self._unknown.pop(str(block.get("tool_use_id")), None)  # its result: the provider ran it

    # -- events --------------------------------------------------------------------------------------------------

    def _late_value(self, kind: Any, delta: Mapping[str, Any]) -> Any:
        """What counts even after the end: a piece of a call, which is then not whole, or a reason under which no call
        may run. A reason that releases calls would come too late."""
        word = delta.get("stop_reason")
        if kind != "message_delta" or not word:
            return kind == "content_block_delta" and delta.get("partial_json")
        unnamed = word == "stop_sequence" and not delta.get("stop_sequence")
        return unnamed or self.map_word(str(word), None).normalized not in FINISHED

    def _message_start(self, message: Any) -> None:
        # The same id once more is the same message, sent again, unless a block that ended begins again; without an id
        # it is another one.
        if self._order and (not message.get("id") or message["id"] != self.id):
            self._begin_another()
        self._told_again = bool(self._openings)
        self._read_message(message)
        self._base_resp(message, "message")
        reason, content = message.get("stop_reason"), message.get("content")
        self._early = None if reason is None else (str(reason), self.at("message", "stop_reason"))
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, dict):
                self._quirk("early_content", "message_start already holds content")
                self._check_type(block)
                self._add(index, block, slice_of(self.text(), "message", "content", index))
        if self._early is not None and not self.raw:
            self._sizes = [len(block.chunks) for block in self._order]

    def _begin_another(self) -> None:
        # A gateway that asks again appends a second message, whose stop word says nothing about the calls of the first.
        self._quirk("second_message", "another message begins before the first one ended")
        for block in self._order[self._earlier :]:
            block.closed = False
        self._earlier = len(self._order)
        self._open.clear()
        self._openings.clear()

    def _stop_message(self) -> None:
        self.saw_done = True
        if self._early is not None and not self.raw and self._order and not self._went_on():
            # Anthropic sends a call made by code (programmatic tool calling) whole, in message_start, followed by the
            # end.
            self.end_with(*self._early)
            if completes(self.map_word(*self._early)):  # a cut may have cut the last block
                for block in self._open.values():
                    block.close(self._early[1].end or self.frame[2])

    def _start_block(self, event: Any) -> None:
        block, index = event["content_block"], event.get("index")
        if self._told_again and index in self._openings and index not in self._open:
            self._begin_another()
        open_block, source = self._open.get(index), slice_of(self.text(), "content_block")
        self._check_type(block)
        if index is None:
            self._quirk("missing_index", "a block has no index")
        elif open_block is not None and open_block.began_with(block, source):
            self._quirk("repeated_start", f"the event that begins block {index!r} came twice", Severity.INFO)
            return
        elif open_block is not None or (block.get("id") and self._openings.get(index) == source):
            self._quirk("repeated_index", f"block {index!r} began twice")
        self._openings[index] = source
        self._add(index, block, source)

    def _add(self, index: Any, fields: dict[str, Any], source: str | None, *, orphan: bool = False) -> MessageBlock:
        added = MessageBlock(fields, source, self.frame[2], orphan=orphan)
        self._order.append(added)
        self._open[index] = added
        return added

    def _stop_block(self, event: Any) -> None:
        # Later events with this index belong to another block: a closed call must not change.
        block = self._open.pop(event.get("index"), None)
        if block is None and self._order and event.get("index") not in self._openings:
            # Before all blocks, a translator may end a text that it never began.
            self._quirk(UNREAD_CALL, "a block ended that never began: it may be a call, or a handover to another model")
        elif block is None:
            self._quirk("stop_without_start", "a block ended that was not open: it never began, or had ended")
        else:
            block.close(self.frame[3])

    def _other_delta(self, event: Any, block: MessageBlock | None, delta: Any) -> None:
        kind = delta["type"]
        if block is not None and block.extend(delta):
            return
        if block is not None and kind == block.delta:  # `check_types` reports a text; arguments may have any type
            if block.field == "partial_json" and delta.get(block.field):
                self._quirk(UNREAD_CALL, UNREAD.format(block.field))
            return
        implied = next((name for name, row in table.KINDS.items() if row.delta == kind), None)
        if block is not None and (implied is None or not block.orphan):
            # Other deltas, such as a signature, take no characters from a call.
            lost = block.field == "partial_json" and delta.get("text")
            self._quirk(UNREAD_CALL if lost else unread_rule(API, delta, "unknown_delta"),
                        f"a {kind!r} delta does not belong in a {block.type!r} block")
            return
        self._quirk("delta_without_start", "a delta belongs to a block that never began")
        if implied is None:
            return
        # The first kind in the table with this delta: text stays readable, arguments get no name and cannot run.
        block = self._add(event.get("index"), {"type": implied}, None, orphan=True)
        piece = delta.get(block.field)
        if type(piece) is str:
            block.append(piece)

    def _message_delta(self, event: Any) -> None:
        if self._tail is None:
            self._tail = self.frame[2]
        delta = event.get("delta")
        if isinstance(delta, dict):
            reason = delta.get("stop_reason")
            if reason is not None:
                # The last word counts; a later delta without one changes nothing (wire notes).
                self.end_with(str(reason), self.at("delta", "stop_reason"))
                self._sizes = [len(block.chunks) for block in self._order]
            self._read_native(delta)
        self._read_native(event)
        self._read_usage(event.get("usage"))

    def _base_resp(self, holder: Any, *path: str) -> None:
        """Reads MiniMax's report of an error, which stands in an event of any kind or in the first message."""
        if holder.get("base_resp") and (error := read_error(holder)) is not None:
            self.fail(error, self.at(*path, "base_resp"))

    # -- fields --------------------------------------------------------------------------------------------------

    def _read_message(self, message: Any) -> None:
        self.id = message["id"] if isinstance(message.get("id"), str) else self.id
        self.model = message["model"] if isinstance(message.get("model"), str) else self.model
        self._read_native(message)
        self._read_usage(message.get("usage"))

    def _read_native(self, holder: Any) -> None:
        for name in _MESSAGE_NATIVE:
            value = holder.get(name)
            if value is not None:
                self.native.update(table.flatten(name, value))
        self._refusal = self.native.pop("stop_details.explanation", self._refusal)
        # This adds nothing to the stop reason.
        if self.native.get("stop_details.type") == "refusal":
            del self.native["stop_details.type"]

    def _read_usage(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        counts = self._counts
        for name in _COUNTS:
            count = token_count(usage.get(name))
            if count is None:
                continue
            before = counts.get(name)
            # Gateways send 0 in message_start and the count in message_delta (rig PR#2236).
            if before == 0 and count and name == "input_tokens":
                self._quirk("late_input_tokens", "input_tokens was 0 at first, then known", Severity.INFO)
            counts[name] = count  # message_delta holds running totals: the last counts (API docs, Streaming)
        if iterations_differ(usage.get("iterations")):
            self._iterations = usage["iterations"]
            self.native["usage.iterations"] = compact(self._iterations)
        details = usage.get("output_tokens_details")
        thinking = token_count(details.get("thinking_tokens")) if isinstance(details, dict) else None
        if thinking is not None:
            counts["thinking_tokens"] = thinking
        self.usage = Usage(*(counts.get(name) for name in _USAGE))

    def _quirk(self, rule: str, message: str, severity: Severity = Severity.WARNING) -> None:
        self.find(f"{API}.{rule}", message, self.at(), severity)
