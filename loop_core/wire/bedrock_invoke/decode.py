"""InvokeModel bytes -> ChatResponse: a body of the model's maker, or an event stream whose chunks hold such events.

A chunk is `{"bytes": "..."}` with one event in base64. Claude's are read by the decoder of Messages, Nova's by that of
Converse, which reads the frames and their exceptions too, bodies with `choices` by that of Chat Completions, and the
makers' that are one text here. Places are those of whole frames.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pydantic_core import from_json

from loop_core.values import At, ChatResponse, ExchangePart, TextPart, Usage
from loop_core.wire import base
from loop_core.wire.anthropic_messages.decode import Decoder as MessagesDecoder
from loop_core.wire.base import StopRow
from loop_core.wire.bedrock_converse.decode import Decoder as ConverseDecoder
from loop_core.wire.bedrock_invoke.table import API, METRICS, STOP_REASONS, TEXTS, TextShape
from loop_core.wire.body import integer, list_of, mapping_of, string
from loop_core.wire.openai_chat.decode import Decoder as ChatDecoder
from loop_core.wire.reads import See


class Decoder(ConverseDecoder):
    """One InvokeModel response being read."""

    api: ClassVar[str] = API
    stop_reasons: ClassVar[Mapping[str, StopRow]] = STOP_REASONS

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._maker: base.Decoder | None = None
        self._maker_options = {**options, "words": {**STOP_REASONS, **self.words}}
        self._texts: list[str] = []
        self._id: str | None = None
        self._read_text = False

    def on_event(self, event: Any, name: str | None, start: int, end: int) -> None:
        """One frame: a chunk, or an exception."""
        if name != "chunk":
            super().on_event(event, name, start, end)
            return
        inner, text = _opened(event)
        metrics = inner.pop(METRICS, None)
        if "type" in inner and self._shape(inner) is None:
            maker = self._as(MessagesDecoder)
            maker.payload = text
            maker.on_event(inner, None, start, end)
        elif "choices" in inner:
            maker = self._as(ChatDecoder)
            maker.payload = text
            maker.on_event(inner, None, start, end)
        elif (shape := self._shape(inner)) is not None:
            self._text(shape, inner, At(ExchangePart.BODY, start, end))
        else:
            super().on_event(_counts_named(inner), None, start, end)
        if isinstance(metrics, dict) and self._usage is None:
            self._usage = Usage(integer(metrics.get("inputTokenCount")), integer(metrics.get("outputTokenCount")))

    def on_body(self, body: Any) -> None:
        """A whole body, or an error."""
        shape = self._shape(body)
        if self.error is not None or "output" in body:
            super().on_body(body)
        elif shape is not None:
            self._text(shape, body, None)
        else:
            maker = self._as(ChatDecoder if "choices" in body else MessagesDecoder)
            maker._whole, maker.size = self._whole, self.size
            maker.on_body(body)

    def build(self) -> ChatResponse:
        """The response as far as it came."""
        if self._maker is None:
            response = super().build()
            if self._read_text:
                joined = "".join(self._texts)
                self.saw_done = self.raw is not None
                response = replace(response, parts=(TextPart(joined),) if joined else (), id=self._id)
            return replace(response, api=API)
        self._maker.size = self.size
        made = self._maker.build()
        for found in self._maker.findings:
            self.find(found.rule, found.message, found.at, found.severity)
        if self._maker.error is not None:
            self.fail(self._maker.error, self._maker.error_at)
        self.saw_done = self._maker.saw_done
        return replace(made, api=API, id=made.id or None, model=made.model or None, usage=made.usage or self._usage)

    def watch(self, body: bytes, see: See) -> None:
        """Gives the events inside the chunks to `see`."""
        super().watch(body, _seen_inside(see))

    def seeing(self, see: See) -> None:
        """From now on the events inside the chunks go to `see`."""
        super().seeing(_seen_inside(see))

    # -- inside --------------------------------------------------------------------------------------------------

    def _as(self, kind: type[base.Decoder]) -> base.Decoder:
        if self._maker is None:
            self._maker = kind(**self._maker_options)
        return self._maker

    def _shape(self, body: Mapping[str, Any]) -> TextShape | None:
        return next((shape for shape in TEXTS if isinstance(_holder(shape, body).get(shape.text), str)), None)

    def _text(self, shape: TextShape, body: Mapping[str, Any], at: At | None) -> None:
        """A body, or a chunk (which has a place), that is one text."""
        self._read_text = True
        holder = _holder(shape, body)
        self._texts.append(holder[shape.text])
        self._id = string(body.get("id")) or self._id
        reason = string(holder.get(shape.reason))
        if reason:
            pointer = f"/{shape.holder}/0/{shape.reason}" if shape.holder else f"/{shape.reason}"
            self.raw, self.raw_at = reason, at or self.body_at(pointer)
        counts = [integer(body.get(name)) for name in (shape.input_tokens, shape.output_tokens)]
        if counts[1] is None:
            counts[1] = integer(holder.get("tokenCount"))
        if counts != [None, None]:
            before = self._usage or Usage()
            self._usage = Usage(before.input_tokens if counts[0] is None else counts[0],
                                before.output_tokens if counts[1] is None else counts[1])


def _opened(event: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The event inside a chunk, and its bytes."""
    text = base64.b64decode(event["bytes"], validate=True)
    inner = from_json(text)
    if not isinstance(inner, dict):
        raise TypeError("a chunk holds no object")
    return inner, text


def _seen_inside(see: See) -> See:
    def look(event: Any, name: str | None, start: int, end: int) -> None:
        if name != "chunk":
            return
        inner, _ = _opened(event)
        inner.pop(METRICS, None)
        see(inner, None, start, end)

    return look


def _holder(shape: TextShape, body: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_of(next(iter(list_of(body.get(shape.holder))), None)) if shape.holder else body


def _counts_named(event: dict[str, Any]) -> dict[str, Any]:
    """Nova's event with its count of cached tokens as Converse names it."""
    usage = mapping_of(mapping_of(event.get("metadata")).get("usage"))
    if "cacheReadInputTokenCount" not in usage:
        return event
    counts = {**usage, "cacheReadInputTokens": usage["cacheReadInputTokenCount"]}
    return {**event, "metadata": {**event["metadata"], "usage": counts}}
