"""Decodes Ollama's chat into a `ChatResponse`. The first half describes the format: stop words, paths, losses, and
which values become facts.

Sources: ollama 0.6.3 (_types.py), the server's llm/server.go (DoneReason) and docs/api.md, and the rows
of the project's stop-reason facts that name this API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from loop_core.json_parser import JsonPath
from loop_core.values import (
    ArgsForm,
    At,
    ChatResponse,
    ReasoningPart,
    ResponsePart,
    Severity,
    Stop,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire import base
from loop_core.wire.asking import CALL_FIELDS, ITEM_FIELDS, usual_losses
from loop_core.wire.body import list_of, mapping_of, string, token_count, word
from loop_core.wire.failures import OVERRIDABLE, StopRow, read_error
from loop_core.wire.framing import Frame
from loop_core.wire.json_values import NDJSON, byte_span, path_of, slice_of
from loop_core.wire.reads import FactRow

API = "ollama_chat"
_SERVER = "ollama llm/server.go DoneReason; ollama/ollama#4235"

STOP_REASONS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, _SERVER),
    "length": StopRow(Stop.MAX_TOKENS, None, _SERVER),
    "load": StopRow(Stop.UNKNOWN, "load", _SERVER),
    "unload": StopRow(Stop.UNKNOWN, "unload", _SERVER),
}
"""Native word -> mapped reason. `length` stands for num_predict and num_ctx alike."""
LOADS = frozenset({"load", "unload"})
"""The stop words that answer a request without messages; `ollama run` begins with one."""

LOSES: Mapping[str, str] = {
    "id": "a response has no id",
    "usage.reasoning_tokens": "eval_count counts thinking and answer together",
    "usage.cached_tokens": "the cache is not counted",
    **usual_losses(*CALL_FIELDS, "reasoning.signature", *ITEM_FIELDS),
}

DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
"""The fields of the last line that hold durations: the total, then its parts in the order of time."""

PATHS: tuple[re.Pattern[str], ...] = (re.compile(r"/api/chat/?(?=$|[?#])"),)


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON value is a line of a chat stream or a whole answer; its error (one string) does not identify it.
    """
    return not event and isinstance(value.get("message"), dict) and isinstance(value.get("done"), bool)


# -- Which values of a line become which facts -----------------------------------------------------------------------


def rows(holder: str, text: str) -> tuple[FactRow, ...]:
    """The rows of a line whose output is in the object `holder`, its text in the member `text`."""
    call = f"{holder}/tool_calls/*"
    return (
        FactRow("model", "/model"),
        FactRow("usage.input_tokens", "/prompt_eval_count"),
        FactRow("usage.output_tokens", "/eval_count"),
        FactRow("text", f"{holder}/{text}"),
        FactRow("reasoning", f"{holder}/thinking"),
        FactRow("call.id", f"{call}/id"),
        FactRow("call.name", f"{call}/function/name"),
        FactRow("call.arguments", f"{call}/function/arguments"),
    )


READS = rows("/message", "content")
STREAM_READS = tuple(row for row in READS if row.fact in ("text", "reasoning"))
"""The rows for values that a stream delivers piece by piece. A call arrives in one piece."""


# -- The decoder: one JSON object per line, or one object, on one line or on many ------------------------------------
# A call arrives whole or not at all, so only `done_reason` shows whether the model was cut; if it is absent there was
# no end (llm/server.go DoneReasonConnectionClosed: the runner was lost).

_FIELDS: Mapping[str, type[TextPart] | type[ReasoningPart]] = {"thinking": ReasoningPart, "content": TextPart}
_Run = tuple[type[TextPart] | type[ReasoningPart], list[str]]
"""A text or a thinking part that arrives in pieces: its type and the pieces."""


def _discard(_: str) -> None: ...


class Decoder(base.Decoder):
    """The decoder of one chat response."""

    api: ClassVar[str] = API
    stop_reasons: ClassVar[Mapping[str, StopRow]] = STOP_REASONS
    object_framing = NDJSON  # a whole answer is a stream of one line
    closing = (*base.Decoder.closing, b'"done":true', b'"done": true')
    calls_at: ClassVar[tuple[str, ...]] = ("message", "tool_calls")
    """The path of the calls in a line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._items: list[_Run | ToolCall] = []
        self._kind: str | None = None  # the field whose pieces make the last part; None after a call
        self._append: Callable[[str], None] = _discard  # takes the next piece of it
        self._items_at_reason = 0  # the number of items at the last reason
        self._first: Frame | None = None  # the first line
        self._done_at: At | None = None

    @property
    def is_over(self) -> bool:
        """Whether a line with `done` was read."""
        return self._done_at is not None

    def on_event(self, event: Any, name: str | None) -> bool | None:
        """Reads one line. Nearly all lines carry one piece of text or thinking and nothing else that is new."""
        try:
            message = event["message"]
            if not event["done"] and "role" in message and "error" not in event:
                # A KeyError if no text is open: then `_kind` is None.
                piece = message[self._kind]
                if type(piece) is str and (len(message) == 2 or self._is_thinking(message)):
                    self._append(piece)
                    return True
        except (KeyError, TypeError):
            pass
        self._first = self._first or self.frame
        self._read(event)
        return None

    def on_body(self, body: Any) -> None:
        """Reads a body that is not lines of JSON: an error page, for example."""
        self._read(body)

    def build(self) -> ChatResponse:
        """The response from what was read."""
        at = self.raw_at or self._done_at
        # A single line with `done` is a whole answer, so its place is the value and not the line.
        if self._first is self.frame and (self._done_at is not None or self.error is not None):
            self.streaming = False
            at = self._exact(at)
        self.saw_done = self._done_at is not None
        return self.response((self._part(item, number) for number, item in enumerate(self._items)),
                             self.map_word(self.raw, at))

    def _read(self, line: dict[str, Any]) -> None:
        ended, brings_word = self._done_at is not None, self._brings_word(line)
        if ended and not brings_word:
            self.after_end()
            self._begins_again = True
        if "error" in line or (self.http_status or 0) >= 400:
            error = read_error(line, self.http_status)
            if error is not None:
                self.fail(error, self.at("error"))
        self.model = word(line.get("model")) or self.model
        message = line.get("message")
        if isinstance(message, dict) and not ended:
            self._message(message)
        if line.get("done") is True:
            self._take_end(line, brings_word)
        elif line.get("done_reason") is not None:
            self.find("ollama_chat.reason_before_done", "a done_reason stands in a line that is not done",
                      self.at("done_reason"))

    def _brings_word(self, line: Mapping[str, Any]) -> bool:
        """Whether a line holds the stop word of an answer that has none yet. After an end without a word, only a
        stricter word than `stop` counts, and only if no content shows that another answer began: no server ends an
        answer before its stop word."""
        if self.raw or line.get("done") is not True or line.get("done_reason") is None:
            return False
        message, reason = mapping_of(line.get("message")), string(line["done_reason"])
        again = self._begins_again or any(message.get(name) for name in (*_FIELDS, "tool_calls"))
        return self._done_at is None or not (again or self.map_word(reason, None).normalized in OVERRIDABLE)

    def _message(self, message: dict[str, Any]) -> None:
        for field in _FIELDS:
            text = message.get(field)
            if isinstance(text, str) and text:
                if self._kind != field:
                    self._begin(field)
                self._append(text)
        for number, call in enumerate(list_of(message.get("tool_calls"))):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                self._kind = None
                self._items.append(self._call(call, function, number))

    def _is_thinking(self, message: dict[str, Any]) -> bool:
        """Whether a line only continues the thinking, apart from an empty text."""
        return self._kind == "thinking" and len(message) == 3 and message["content"] == ""

    def _begin(self, field: str) -> None:
        pieces: list[str] = []
        self._items.append((_FIELDS[field], pieces))
        self._kind, self._append = field, pieces.append

    def _call(self, call: dict[str, Any], function: dict[str, Any], number: int) -> ToolCall:
        path: JsonPath = (*self.calls_at, number)
        at = self.at(*path)
        value = function.get("arguments")
        arguments, form = value, ArgsForm.STRING
        if value is None:
            form = ArgsForm.OBJECT
        elif not isinstance(value, str):
            text = slice_of(self.text(), *path, "function", "arguments")
            arguments, form = json.dumps(value) if text is None else text, ArgsForm.OBJECT
        else:
            self.find("ollama_chat.string_arguments", "arguments are a string", at, Severity.INFO)
        return ToolCall(word(call.get("id")), string(function.get("name")) or "", arguments, form=form, at=at)

    def _take_end(self, line: dict[str, Any], brings_word: bool) -> None:
        self._kind = None
        self._done_at = self._done_at or self.at("done")
        counts = [token_count(line.get(name)) for name in ("prompt_eval_count", "eval_count")]
        if counts != [None, None] and self.usage is None:
            self.usage = Usage(*counts)
        reason = line.get("done_reason")
        # The word of a later answer may be stricter, but an answer that ended without a word gets no `stop` from
        # another.
        if reason is not None and (self.raw or brings_word):
            self.end_with(reason if isinstance(reason, str) else json.dumps(reason), self.at("done_reason"))
            self._items_at_reason = len(self._items) if self.raw else 0

    def _part(self, item: _Run | ToolCall, number: int) -> ResponsePart:
        if isinstance(item, ToolCall):
            # A call has no end mark: it is closed by a later reason.
            at = item.at if self.streaming else self._exact(item.at)
            return item._replace(closed=number < self._items_at_reason, at=at)
        kind, pieces = item
        return kind("".join(pieces))

    def _exact(self, at: At | None) -> At | None:
        """The place of the value alone if the body is one object; otherwise the place of its line."""
        span = None if at is None else byte_span(self.frame[0], self.frame[2], *path_of(at.pointer or ""))
        return at if at is None or span is None else at._replace(start=span[0], end=span[1])
