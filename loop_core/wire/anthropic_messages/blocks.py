"""Content blocks -> parts: one block, read whole or grown from deltas.

Owns what of a block becomes a part and what stays verbatim. Knows nothing of events, reasons or usage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loop_core.values import (
    ArgsForm,
    At,
    CallKind,
    ExchangePart,
    OpaquePart,
    ReasoningPart,
    ResponsePart,
    TextPart,
    ToolCall,
)
from loop_core.wire.anthropic_messages.table import FIELDS, KINDS, KNOWN, worth_keeping
from loop_core.wire.body import compact
from loop_core.wire.json_values import slice_of


class MessageBlock:
    """A block of a stream while it grows. `delta`, `field` and `append` serve the hot path."""

    __slots__ = ("append", "chunks", "citations", "closed", "delta", "end", "field", "fields", "grown", "orphan",
                 "source", "start", "type")

    def __init__(self, fields: dict[str, Any], source: str | None, start: int, *, orphan: bool = False) -> None:
        self.type = str(fields.get("type"))
        kind = KINDS.get(self.type)
        self.delta, self.field = (kind.delta, kind.field) if kind else ("", "")
        self.fields, self.source = fields, source
        self.chunks: list[str] = []
        self.append = self.chunks.append
        self.citations: list[Any] = []
        self.closed = self.grown = False
        self.orphan = orphan
        self.start = start
        self.end: int | None = None
        first = fields.get("input" if kind and kind.call else self.field)
        if isinstance(first, str):
            self.append(first)  # a gateway that sends the beginning, or all, with the block itself

    def close(self, end: int) -> None:
        """The provider ended the block. A call whose beginning never came stays open: nobody knows what it asks."""
        self.closed, self.end = not self.orphan, end

    def extend(self, delta: Mapping[str, Any]) -> bool:
        """Takes a delta that is not the block's own kind of characters; False where it does not belong here."""
        kind = delta.get("type")
        if self.type == "thinking" and kind == "signature_delta":
            self.fields["signature"] = delta.get("signature")
        elif self.type == "text" and kind == "citations_delta":
            self.citations.append(delta.get("citation"))
        elif self.type not in KNOWN:
            # compaction_delta, and whatever comes next: strings grow, the rest is set.
            self.grown = True
            for name, value in delta.items():
                before = self.fields.get(name)
                if name != "type" and value is not None:
                    self.fields[name] = before + value if isinstance(before, str) and isinstance(value, str) else value
        else:
            return False
        return True

    def parts(self, limit: int) -> list[ResponsePart]:
        """What the block became; a call that was never closed reaches to `limit`."""
        fields, text = self.fields, "".join(self.chunks)
        if self.citations:
            before = fields.get("citations")
            fields = {**fields, "citations": [*(before if isinstance(before, list) else ()), *self.citations]}
        kind = KINDS.get(self.type)
        if kind is None or kind.call is None:
            return _plain(self.type, fields, text, None if self.grown else self.source)
        end = self.end if self.end is not None else max(limit, self.start)
        at = At(ExchangePart.BODY, self.start, end, "/content_block")
        arguments, form = self._arguments(text)
        call = _call(kind.call, fields, arguments, form, self.closed, at)
        if not text and fields.get("input") == {}:
            call = call._replace(arguments_unsent=True)  # every block begins with it, and nothing of the input followed
        return [call, *_fields(self.type, fields)]

    def _arguments(self, text: str) -> tuple[str | None, ArgsForm]:
        if text:
            return text, ArgsForm.STRING
        given = self.fields.get("input")
        if given is None:
            return None, ArgsForm.STRING
        if isinstance(given, str) or (not self.closed and not given):
            # An open block whose input is still `{}` has said nothing yet; `{}` would be a complete call.
            return "", ArgsForm.STRING
        return (slice_of(self.source, "input") if self.source else None) or compact(given), ArgsForm.OBJECT


def read_block(fields: Any, closed: bool, at: At, slice_at: Callable[..., str | None]) -> list[ResponsePart]:
    """The parts of one block of a whole body; `slice_at` gives the verbatim JSON at a path inside it."""
    type_ = str(fields.get("type"))
    kind = KINDS.get(type_)
    if kind is None or kind.call is None:
        text = fields.get(kind.field) if kind else ""
        if not isinstance(text, str):
            return [OpaquePart(type_, slice_at() or compact(fields))]
        return _plain(type_, fields, text, slice_at())
    given, form = fields.get("input"), ArgsForm.OBJECT
    arguments: str | None = None
    if isinstance(given, str):
        arguments, form = given, ArgsForm.STRING
    elif given is not None:
        arguments = slice_at("input") or compact(given)
    return [_call(kind.call, fields, arguments, form, closed, at), *_fields(type_, fields)]


def _plain(type_: str, fields: Mapping[str, Any], text: str, source: str | None) -> list[ResponsePart]:
    part: ResponsePart
    if type_ == "text":
        part = TextPart(text)
    elif type_ == "thinking":
        signature = fields.get("signature")
        part = ReasoningPart(text, signature if isinstance(signature, str) and signature else None)
    elif type_ == "redacted_thinking" and isinstance(fields.get("data"), str):
        part = ReasoningPart("", data=fields["data"])
    else:
        return [OpaquePart(type_, source or compact(fields))]
    return [part, *_fields(type_, fields)]


def _call(
    kind: CallKind, fields: Mapping[str, Any], arguments: str | None, form: ArgsForm, closed: bool, at: At
) -> ToolCall:
    id_, name = fields.get("id"), fields.get("name")
    return ToolCall(
        id_ if isinstance(id_, str) else None,
        name if isinstance(name, str) else "",
        arguments,
        closed,
        kind,
        form,
        at=at,
    )


def _fields(type_: str, fields: Mapping[str, Any]) -> list[ResponsePart]:
    known = KNOWN[type_]
    rest = {name: value for name, value in fields.items() if name not in known and worth_keeping(name, value)}
    if not rest and type_ != "mcp_tool_use":
        return []
    return [OpaquePart(type_ + FIELDS, compact(rest, sort=True))]
