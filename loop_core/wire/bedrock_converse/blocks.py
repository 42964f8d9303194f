"""Content blocks -> parts: one block, read whole or grown from deltas.

Owns what of a block becomes a part and what stays verbatim. A block is a union with one member (`text`, `toolUse`,
`reasoningContent`, …); in a stream only some begin with a `contentBlockStart`, the others with their first delta.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loop_core.values import ArgsForm, At, CallKind, OpaquePart, Part, ReasoningPart, ResponsePart, TextPart, ToolCall
from loop_core.wire.bedrock_converse.table import FIELDS, SERVER_TOOL
from loop_core.wire.jsontext import compact

_INNER = {"toolUse": "input", "reasoningContent": "text"}
"""Where the characters stand inside a delta of this kind; a text delta is the characters."""


class Block:
    """A block of a stream while it grows. `kind`, `inner` and `append` serve the hot path."""

    __slots__ = ("append", "chunks", "citations", "closed", "data", "end", "fields", "inner", "kind", "orphan",
                 "signature", "start")

    def __init__(self, kind: str, fields: dict[str, Any], start: int, *, orphan: bool = False) -> None:
        self.kind, self.fields, self.start, self.orphan = kind, fields, start, orphan
        self.inner = _INNER.get(kind)
        self.chunks: list[str] = []
        self.append = self.chunks.append
        self.citations: list[Any] = []
        self.signature: str | None = None
        self.data: str | None = None
        self.closed = False
        self.end: int | None = None

    def close(self, end: int) -> None:
        """The provider ended the block. A call whose beginning never came stays open: nobody knows what it asks."""
        self.closed, self.end = not self.orphan, end

    def extend(self, kind: str, value: Any) -> bool:
        """Takes a delta of any kind; False where it does not belong in this block."""
        if kind == "citation" and self.kind == "text":
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
            self.fields["content"] = [*self.fields.get("content", ()), *value]
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
        """What the block became; a call that was never closed reaches to `limit`."""
        text = "".join(self.chunks)
        if self.kind == "text":
            return _text(text, self.citations, self.fields)
        if self.kind == "reasoningContent":
            return [ReasoningPart(text, self.signature, self.data)]
        if self.kind == "toolUse":
            end = self.end if self.end is not None else max(limit, self.start)
            return [_call(self.fields, text, ArgsForm.STRING, self.closed, At(Part.BODY, self.start, end, "/start"))]
        return [OpaquePart(self.kind, compact({self.kind: self.fields}))]


def read_block(
    block: Mapping[str, Any], closed: bool, at: At, slice_at: Callable[..., str | None]
) -> list[ResponsePart]:
    """The parts of one block of a whole body; `slice_at` gives the verbatim JSON at a path inside it."""
    kind = next((name for name, value in block.items() if isinstance(value, dict)), "")
    value = block.get(kind)
    if isinstance(block.get("text"), str):
        return [TextPart(block["text"])]
    if kind == "toolUse" and value is not None:
        given = value.get("input")
        if isinstance(given, str):
            return [_call(value, given, ArgsForm.STRING, closed, at)]
        arguments = slice_at("toolUse", "input") or compact(given) if given is not None else None
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
            return _text("".join(texts), citations, {})
    return [OpaquePart(kind or next(iter(block), ""), slice_at() or compact(block))]


def _text(text: str, citations: list[Any], fields: Mapping[str, Any]) -> list[ResponsePart]:
    if not citations:
        return [TextPart(text)]
    if not text:
        # Nova grounding sends the citations of a text as a block of their own.
        return [OpaquePart("citationsContent", compact({"citationsContent": {"citations": citations}}))]
    return [TextPart(text), OpaquePart("citationsContent" + FIELDS, compact({"citations": citations}, sort=True))]


def _call(fields: Mapping[str, Any], arguments: str | None, form: ArgsForm, closed: bool, at: At) -> ToolCall:
    id_, name = fields.get("toolUseId"), fields.get("name")
    return ToolCall(
        id_ if isinstance(id_, str) else None,
        name if isinstance(name, str) else "",
        arguments,
        closed,
        CallKind.SERVER if fields.get("type") == SERVER_TOOL else CallKind.FUNCTION,
        form,
        at=at,
    )
