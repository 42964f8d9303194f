"""Ollama chat bytes -> ChatResponse: one JSON object a line, or one object, printed on one line or on many.

Owns what a line adds and what its `done` means. A call arrives whole or not at all, so only `done_reason` tells whether
the model was cut; one that never came is no end (the runner lost its connection: llm/server.go DoneReasonConnectionClosed).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from loop_core.values import (
    ArgsForm,
    At,
    ChatResponse,
    Part,
    ReasoningPart,
    ResponsePart,
    Severity,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire import base
from loop_core.wire.failures import read_error
from loop_core.wire.jsonslice import byte_span, path_of, slice_of
from loop_core.wire.ndjson import NDJSON
from loop_core.wire.ollama_chat.table import API, STOP_REASONS

_PLAIN_LINE = frozenset({"model", "created_at", "message", "done"})
_PLAIN_MESSAGE = frozenset({"role", "content"})


class Decoder(base.Decoder):
    """One chat response being read."""

    api = API
    stop_reasons = STOP_REASONS
    object_framing = NDJSON

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._items: list[tuple[type[TextPart] | type[ReasoningPart], list[str]] | ToolCall] = []
        self._append: Callable[[str], None] | None = None  # takes the next piece, while the last part is text
        self._ended = 0  # so many items were there when the last reason arrived
        self._usage: Usage | None = None
        self._model: str | None = None
        self._lines = 0
        self._done_at: At | None = None
        self._span = (0, 0)

    def on_event(self, event: Any, name: str | None, start: int, end: int) -> None:
        """One line. Nearly all of them carry one piece of text and nothing new besides."""
        append = self._append
        if append is not None and event.keys() == _PLAIN_LINE and event["done"] is False:
            message = event["message"]
            if type(message) is dict and message.keys() == _PLAIN_MESSAGE:
                text = message["content"]
                if type(text) is str:
                    append(text)
                    self._lines += 1
                    return
        self._lines += 1
        self._span = start, end
        self._read(event)

    def on_body(self, body: Any) -> None:
        """A body that no line could be made of: an error page that is JSON after all."""
        self._read(body)

    def build(self) -> ChatResponse:
        """The response from what was read."""
        at = self.raw_at or self._done_at
        if self._lines == 1 and (self._done_at is not None or self.error is not None):
            self.streaming = False
            at = self._exact(at)
        self.saw_done = self._done_at is not None
        return ChatResponse(
            api=API,
            parts=tuple(self._part(item, number) for number, item in enumerate(self._items)),
            stop_reason=self.mapped(self.raw, at),
            usage=self._usage,
            model=self._model,
            saw_stop_reason=bool(self.raw),
        )

    # -- inside --------------------------------------------------------------------------------------------------

    def _read(self, line: dict[str, Any]) -> None:
        if self._done_at is not None:
            self.find("ollama_chat.after_done", "a line follows the one that says done", self._at(""))
        if "error" in line:
            error = read_error(line, self.http_status)
            if error is not None:
                self.fail(error, self._at("/error"))
        model = line.get("model")
        self._model = model if isinstance(model, str) and model else self._model
        message = line.get("message")
        if isinstance(message, dict):
            self._message(message)
        if line.get("done") is True:
            self._done(line)
        elif line.get("done_reason") is not None:
            self.find("ollama_chat.reason_before_done", "a done_reason stands in a line that is not done",
                      self._at("/done_reason"))

    def _message(self, message: dict[str, Any]) -> None:
        for kind, field in ((ReasoningPart, "thinking"), (TextPart, "content")):
            text = message.get(field)
            if isinstance(text, str) and text:
                self._text(kind, text)
        calls = message.get("tool_calls")
        for number, call in enumerate(calls if isinstance(calls, list) else ()):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                self._append = None
                self._items.append(self._call(call, function, number))

    def _text(self, kind: type[TextPart] | type[ReasoningPart], text: str) -> None:
        last = self._items[-1] if self._items else None
        if not isinstance(last, tuple) or last[0] is not kind:
            last = (kind, [])
            self._items.append(last)
            self._append = last[1].append if kind is TextPart else None
        last[1].append(text)

    def _call(self, call: dict[str, Any], function: dict[str, Any], number: int) -> ToolCall:
        path = ("message", "tool_calls", number, "function")
        at = self._at(f"/message/tool_calls/{number}/function")
        identity, name, value = call.get("id"), function.get("name"), function.get("arguments")
        arguments, form = value, ArgsForm.STRING
        if "arguments" not in function:
            form = ArgsForm.OBJECT
        elif not isinstance(value, str):
            text = slice_of(self.payload.decode("utf-8", "replace"), *path, "arguments")
            arguments, form = json.dumps(value) if text is None else text, ArgsForm.OBJECT
        else:
            self.find("ollama_chat.string_arguments", "arguments are a string", at, Severity.INFO)
        return ToolCall(identity if isinstance(identity, str) and identity else None, name if isinstance(name, str) else "",
                        arguments, form=form, at=at)

    def _done(self, line: dict[str, Any]) -> None:
        self._done_at = self._at("/done")
        counts = [line.get(name) for name in ("prompt_eval_count", "eval_count")]
        if any(isinstance(count, int) for count in counts):
            self._usage = Usage(*(count if isinstance(count, int) else None for count in counts))
        reason = line.get("done_reason")
        if reason is not None:
            self.raw = reason if isinstance(reason, str) else json.dumps(reason)
            self.raw_at = self._at("/done_reason")
            self._ended = len(self._items) if self.raw else 0

    def _part(self, item: tuple[type[TextPart] | type[ReasoningPart], list[str]] | ToolCall, number: int) -> ResponsePart:
        if isinstance(item, ToolCall):
            return replace(item, closed=True) if number < self._ended else item
        return item[0]("".join(item[1]))

    def _at(self, pointer: str) -> At:
        return At(Part.BODY, *self._span, pointer)

    def _exact(self, at: At | None) -> At | None:
        """The value itself, where the body is one object."""
        span = None if at is None else byte_span(self.payload, self._span[0], *path_of(at.pointer or ""))
        return at if at is None or span is None else replace(at, start=span[0], end=span[1])
