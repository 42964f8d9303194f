"""Parts of a candidate's content -> parts of the response, in the order in which they came.

Owns which pieces belong together: text that follows text, values of one streamed call, a signature and what it signs.
Whatever is no text, thought or function call (executableCode, inlineData, toolCall, …) stays verbatim, because it has to
go back as it came. Knows no finish reason; it is told when one arrived.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from loop_core.values import ArgsForm, At, OpaquePart, ReasoningPart, ResponsePart, Severity, TextPart, ToolCall
from loop_core.wire.gemini_generate.partial_args import PartialArgs
from loop_core.wire.gemini_generate.table import get
from loop_core.wire.jsonslice import slice_of

_BESIDE = frozenset({"text", "thought", "thoughtSignature", "thought_signature"})
"""Fields that say nothing about what else a part holds."""


class Source(Protocol):
    """The JSON that is being read, and where its readers note quirks."""

    def text(self) -> str: ...

    def place(self, *path: str | int) -> At: ...

    def find(self, rule: str, message: str, at: At | None = None, severity: Severity = Severity.WARNING) -> None: ...


class _Run:
    """Text, or thinking, that came in pieces."""

    __slots__ = ("chunks", "signature", "thought")

    def __init__(self, thought: bool) -> None:
        self.chunks: list[str] = []
        self.thought = thought
        self.signature: str | None = None

    def part(self) -> TextPart | ReasoningPart:
        text = "".join(self.chunks)
        return ReasoningPart(text, self.signature) if self.thought else TextPart(text)


class _Call:
    """A function call, sent whole or value by value."""

    __slots__ = ("arguments", "at", "empty", "ended", "form", "id", "more", "name", "signature", "values")

    def __init__(self, name: str, at: At) -> None:
        self.name, self.at = name, at
        self.id: str | None = None
        self.signature: str | None = None
        self.arguments: str | None = None
        self.form = ArgsForm.OBJECT
        self.empty = True  # `args` brought nothing, as an unset structure does
        self.values: PartialArgs | None = None
        self.more = False  # the last part of it promised another
        self.ended = False  # a finish reason followed it

    def part(self) -> ToolCall:
        values = self.values
        whole = not self.more and (values is None or (values.whole and self.empty))
        arguments, form = self.arguments, self.form
        if values is not None:
            arguments, form = values.text() if whole else values.prefix(), ArgsForm.STRING
        elif not whole:
            arguments, form = "{" if self.empty else (arguments or "").rstrip()[:-1], ArgsForm.STRING
        return ToolCall(self.id, self.name, arguments, whole and self.ended, form=form, signature=self.signature,
                        at=self.at)


class Parts:
    """The content of one candidate while it arrives. `append` serves the hot path."""

    __slots__ = ("_calls", "_items", "_open", "_source", "append")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._items: list[_Run | _Call | OpaquePart] = []
        self._calls: list[_Call] = []
        self._open: _Call | None = None  # the call that waits for more of its values
        self.append: Callable[[str], None] | None = None
        """Takes the next piece of text, while the last part is text."""

    def read(self, part: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
        """Takes one element of `content.parts`."""
        signature = get(part, "thoughtSignature")
        signature = signature if isinstance(signature, str) and signature else None
        call = get(part, "functionCall")
        if isinstance(call, dict):
            self.append = None
            self._call(call, signature, path)
        elif part.keys() <= _BESIDE:
            text = part.get("text")
            self._run(text if isinstance(text, str) else "", part.get("thought") is True, signature)
        elif isinstance(part.get("text"), str):
            self._run(part["text"], part.get("thought") is True, signature)  # metadata of the text beside it
        else:
            self.append = None
            kind = next(key for key in part if key not in _BESIDE)
            source = slice_of(self._source.text(), *path)
            self._items.append(OpaquePart(kind, json.dumps(part) if source is None else source))

    def end_calls(self) -> None:
        """A finish reason arrived: what was begun before it and promises no more is complete."""
        for call in self._calls:
            call.ended = True

    def build(self) -> tuple[ResponsePart, ...]:
        """The parts of the response."""
        return tuple(item if isinstance(item, OpaquePart) else item.part() for item in self._items)

    def _run(self, text: str, thought: bool, signature: str | None) -> None:
        last = self._items[-1] if self._items else None
        if text or (thought and signature):
            if not isinstance(last, _Run) or last.thought is not thought or last.signature:
                last = _Run(thought)
                self._items.append(last)
            last.chunks.append(text)
        if signature is not None and not thought:
            # A signed text: the signature follows in a part of its own, as Gemini 3 streams it.
            last = _Run(True)
            self._items.append(last)
        if isinstance(last, _Run):
            last.signature = signature or last.signature
            self.append = None if last.thought else last.chunks.append

    def _call(self, call: Mapping[str, Any], signature: str | None, path: tuple[str | int, ...]) -> None:
        current = self._known(call)
        if current is None:
            at = self._source.place(*path)
            if not call.keys() - {"willContinue", "will_continue"}:
                self._source.find("gemini_generate.stray_call", "a part continues a call that was never begun", at)
                return
            current = self._begin(call, at)
        name, identity = call.get("id"), call.get("name")
        values = get(call, "partialArgs")
        if "args" in call:
            self._whole(current, call["args"], path)
        if isinstance(values, list):
            current.values = current.values or PartialArgs()
            for value in values:
                if isinstance(value, dict):
                    current.values.add(value)
        current.signature = current.signature or signature
        current.more = get(call, "willContinue") is True
        self._open = current if current.more else None
