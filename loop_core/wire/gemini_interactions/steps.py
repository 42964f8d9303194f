"""Steps -> parts: one step, read whole or grown from deltas.

Owns what of a step becomes a part and what stays verbatim. Knows nothing of events, statuses or usage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loop_core.values import ArgsForm, At, ExchangePart, OpaquePart, ReasoningPart, ResponsePart, TextPart, ToolCall
from loop_core.wire.body import compact, word
from loop_core.wire.gemini_interactions.table import CALL, CONTENTS, INSIDE, NOTES, OUTPUT, THOUGHT
from loop_core.wire.jsonslice import slice_of

Slice = Callable[..., str | None]
"""The verbatim JSON at a path inside a step."""


class GrowingStep:
    """A step of a stream while it grows; `append` serves the hot path."""

    __slots__ = ("append", "closed", "end", "fields", "grown", "holder", "notes", "orphan", "signature", "source",
                 "start", "texts", "type")

    def __init__(self, fields: Mapping[str, Any], source: str, holder: str, start: int, orphan: bool = False) -> None:
        self.type = str(fields.get("type"))
        self.fields, self.source, self.holder = dict(fields), source, holder
        self.texts: list[str] = []
        self.append = self.texts.append
        self.notes: list[Any] = []
        self.signature = word(fields.get("signature"))
        self.closed = self.grown = False
        self.orphan = orphan
        """Its beginning never came."""
        self.start = start
        self.end: int | None = None

    def extend(self, delta: Mapping[str, Any]) -> bool:
        """Takes a delta; False where it does not belong to such a step."""
        kind, text = delta.get("type"), delta.get("text")
        if kind == "text" and self.type in (OUTPUT, "text") and isinstance(text, str):
            self.append(text)
        elif kind == "text_annotation_delta" and self.type in (OUTPUT, "text"):
            notes = delta.get("annotations")
            self.notes += notes if isinstance(notes, list) else []
        elif kind == "arguments_delta" and self.type == CALL:
            given = delta.get("arguments")
            if given is not None:
                self.append(given if isinstance(given, str) else compact(given))
        elif kind == "thought_signature" and self.type == THOUGHT:
            self.signature = word(delta.get("signature")) or self.signature
        elif kind == "thought_summary" and self.type == THOUGHT:
            content = delta.get("content")
            if not isinstance(content, Mapping) or not isinstance(content.get("text"), str):
                return False
            self.append(content["text"])
        elif kind == self.type or (self.type == OUTPUT and kind in CONTENTS):
            self._grow(delta)
        else:
            return False
        return True

    def _grow(self, delta: Mapping[str, Any]) -> None:
        """A step or a content that is kept verbatim: what the delta says is set, and strings of data grow."""
        self.grown = True
        holder: dict[str, Any] = self.fields
        if self.type == OUTPUT:
            contents = holder.setdefault("content", [])
            if not contents or contents[-1].get("type") != delta.get("type"):
                contents.append({"type": delta.get("type")})
            holder = contents[-1]
        for name, value in delta.items():
            before = holder.get(name)
            joined = name == "data" and isinstance(before, str) and isinstance(value, str)
            holder[name] = before + value if joined else value

    def parts(self, limit: int) -> list[ResponsePart]:
        """What the step became; a call that was never ended reaches to `limit`."""
        text = "".join(self.texts)
        if self.type == CALL:
            return [self._call(text, limit)]
        if self.type == THOUGHT:
            return [ReasoningPart(_summary(self.fields) + text, self.signature)]
        slice_at: Slice = _nothing if self.grown else lambda *path: slice_of(self.source, self.holder, *path)
        if self.type not in (OUTPUT, "text"):
            return read_step(self.fields, True, At(), slice_at)
        made = read_step(self.fields, True, At(), slice_at)
        notes = [OpaquePart(NOTES, compact(self.notes))] if self.notes else []
        return [*made, *([TextPart(text)] if text or notes else []), *notes]

    def _call(self, text: str, limit: int) -> ToolCall:
        end = self.end if self.end is not None else max(limit, self.start)
        given = self.fields.get("arguments")
        form = ArgsForm.STRING
        untold = False
        arguments: str | None = text
        if not text and isinstance(given, str):
            arguments = given
        elif not text and given is None:
            arguments = None
        elif not text and (given or self.closed):
            # An open call whose arguments are still `{}` has said nothing yet; `{}` would be a complete one.
            arguments = slice_of(self.source, self.holder, "arguments") or compact(given)
            form, untold = ArgsForm.OBJECT, not given
        return ToolCall(word(self.fields.get("id")), str(self.fields.get("name") or ""), arguments,
                        self.closed and not self.orphan, form=form, signature=self.signature, arguments_unsent=untold,
                        at=At(ExchangePart.BODY, self.start, end, f"/{self.holder}"))


def _nothing(*path: str | int) -> str | None:
    return None


def read_step(fields: Mapping[str, Any], closed: bool, at: At, slice_at: Slice) -> list[ResponsePart]:
    """The parts of one step of a whole body."""
    kind = str(fields.get("type"))
    if kind == CALL:
        return [_whole_call(fields, closed, at, slice_at)]
    if kind == THOUGHT:
        return [ReasoningPart(_summary(fields), word(fields.get("signature")))]
    if kind == OUTPUT:
        contents = fields.get("content")
        found: list[ResponsePart] = []
        for index, content in enumerate(contents if isinstance(contents, list) else ()):
            found += _content(content, slice_at("content", index))
        return found
    if kind == "text" and isinstance(fields.get("text"), str):  # outputs were contents once
        return _content(fields, slice_at())
    if kind == "text":
        return []
    return [OpaquePart(kind, slice_at() or compact(fields))]


def _content(content: Any, source: str | None) -> list[ResponsePart]:
    if not isinstance(content, Mapping):
        return []
    text, notes = content.get("text"), content.get("annotations")
    if content.get("type") == "text" and isinstance(text, str):
        return [TextPart(text), *([OpaquePart(NOTES, compact(notes))] if notes else [])]
    return [OpaquePart(f"{INSIDE}{content.get('type')}", source or compact(content))]


def _whole_call(fields: Mapping[str, Any], closed: bool, at: At, slice_at: Slice) -> ToolCall:
    given = fields.get("arguments")
    string = isinstance(given, str)
    arguments = given if string else None if given is None else slice_at("arguments") or compact(given)
    return ToolCall(word(fields.get("id")), str(fields.get("name") or ""), arguments, closed,
                    form=ArgsForm.STRING if string else ArgsForm.OBJECT, signature=word(fields.get("signature")), at=at)


def _summary(fields: Mapping[str, Any]) -> str:
    """The text of a thought: its summary holds it in pieces."""
    given = fields.get("summary")
    pieces = given if isinstance(given, list) else []
    return "".join(piece["text"] for piece in pieces
                   if isinstance(piece, Mapping) and isinstance(piece.get("text"), str))
