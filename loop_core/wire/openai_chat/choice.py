"""One choice being received: text, thinking, refusal, calls, and the words about its end.

Owns what a message or a delta holds, in every form that compatible servers send it. Does not know framing or offsets:
places and verbatim JSON come from the decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from loop_core.values import At, OpaquePart, ReasoningPart, ResponsePart, TextPart
from loop_core.wire.openai_chat.calls import Calls, Note
from loop_core.wire.openai_chat.table import API, MESSAGE_BLOCKS, REASONING_FIELDS

Path = tuple[str | int, ...]
Place = Callable[..., At]
Verbatim = Callable[..., str | None]


class Block:
    """One block of `reasoning_details`: pieces of one index belong together."""

    __slots__ = ("text", "signature", "data", "id")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.signature: str | None = None
        self.data: str | None = None
        self.id: str | None = None


class Choice:
    """What one choice has said so far."""

    __slots__ = ("index", "text", "reasoning", "refusal", "blocks", "opaque", "calls", "raw", "raw_at", "earlier",
                 "words", "filtered", "filtered_at", "refusal_at", "note", "_length")

    def __init__(self, index: Any, note: Note) -> None:
        self.index = index
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.blocks: dict[Any, Block] = {}
        self.opaque: list[OpaquePart] = []
        self.calls = Calls(note)
        self.raw: str | None = None
        self.raw_at: At | None = None
        self.earlier: list[tuple[str, At]] = []
        """Other reasons that came before the last one."""
        self.words: dict[str, str] = {}
        self.filtered: set[str] = set()
        self.filtered_at: At | None = None
        self.refusal_at: At | None = None
        self.note = note
        self._length = 0

    def stop(self, word: str, at: At) -> None:
        """A finish reason has come; the last one counts, but an empty one never replaces another."""
        if self.raw and word and word != self.raw:
            self.earlier.append((self.raw, self.raw_at or at))
            self.note(f"{API}.stop_reason_changes", f"the finish reason changes from {self.raw!r} to {word!r}", at)
        if word or not self.raw:
            self.raw, self.raw_at = word, at
        if word:
            self.calls.seal()
            self._length = len(self.text)

    @property
    def late(self) -> bool:
        """Whether text or a piece of a call came after the finish reason."""
        return bool(self.raw) and (len(self.text) > self._length or any(call.late for call in self.calls.opened))

    @property
    def fields(self) -> frozenset[str]:
        """The kinds of content that this choice holds."""
        found = {"text": self.text or self.refusal, "reasoning": self.reasoning or self.blocks, "calls": self.calls.opened}
        return frozenset(name for name, value in found.items() if value)

    def parts(self, finished: bool) -> list[ResponsePart]:
        """Thinking, text, blocks kept verbatim, calls: a message has one of each, whatever order the pieces came in."""
        parts: list[ResponsePart] = []
        plain = joined(self.reasoning)
        blocks = [ReasoningPart(joined(b.text), b.signature, b.data, b.id) for b in self.blocks.values()]
        if plain and plain != "".join(block.text for block in blocks):
            parts.append(ReasoningPart(plain))
        parts.extend(blocks)
        text = joined(self.text)
        if text:
            parts.append(TextPart(text))
        parts.extend(self.opaque)
        parts.extend(call.freeze(finished) for call in self.calls.opened)
        return parts

    # -- what a message or a delta holds -------------------------------------------------------------------------

    def take(self, message: Mapping[str, Any], base: Path, place: Place, verbatim: Verbatim, *, whole: bool) -> None:
        """Everything but plain text: `base` is the path of `message` inside the frame."""
        for key, value in message.items():
            if not value:
                continue
            if key == "content":
                self.content(value, (*base, key), verbatim)
            elif key == "tool_calls":
                self._tool_calls(value, (*base, key), place, verbatim, whole)
            elif key == "function_call":
                self._function_call(value, (*base, key), place, verbatim, whole)
            elif key == "refusal":
                if type(value) is str:
                    self.refusal.append(value)
                    self.refusal_at = self.refusal_at or place(*base, key)
            elif key in MESSAGE_BLOCKS:
                self._verbatim(key, value, (*base, key), verbatim)
        self._reasoning(message, whole)

    def content(self, value: Any, path: Path, verbatim: Verbatim) -> None:
        """Text, or a list of parts (Mistral, Albert)."""
        if type(value) is str:
            self.text.append(value)
            return
        blocks = value if isinstance(value, list) else [value]
        for i, block in enumerate(blocks):
            kind = block.get("type") if isinstance(block, Mapping) else None
            if type(block) is str:
                self.text.append(block)
            elif kind == "thinking" and isinstance(block, Mapping):
                self.reasoning.extend(_texts(block.get("thinking")))
            elif isinstance(block, Mapping) and type(block.get("text")) is str:
                self.text.append(block["text"])
            elif kind == "refusal" and isinstance(block, Mapping) and type(block.get("refusal")) is str:
                self.refusal.append(block["refusal"])
            elif isinstance(block, Mapping):
                kept = verbatim(*path, i) if isinstance(value, list) else verbatim(*path)
                self.opaque.append(OpaquePart(f"content.{kind}", kept or ""))

    def _tool_calls(self, value: Any, path: Path, place: Place, verbatim: Verbatim, whole: bool) -> None:
        many = isinstance(value, list)
        if not many:
            self.note(f"{API}.tool_calls_object", "tool_calls is an object instead of a list", place(*path))
        for j, call in enumerate(value if many else [value]):
            if type(call) is not dict or not (whole or not self.calls.append(call)):
                continue
            here = (*path, j) if many else path
            put = self.calls.add if whole else self.calls.take
            put(call, place(*here), partial(verbatim, *here))

    def _function_call(self, value: Any, path: Path, place: Place, verbatim: Verbatim, whole: bool) -> None:
        """The deprecated single call; a server that fills every field sends an empty one that means nothing."""
        if type(value) is not dict or not any(value.values()):
            if value:
                self.note(f"{API}.phantom_call", "an empty function_call was sent and left out", place(*path))
            return
        put = self.calls.add if whole else self.calls.take
        put({"index": "function_call", "function": value}, place(*path), lambda _, key: verbatim(*path, key))

    def _reasoning(self, message: Mapping[str, Any], whole: bool) -> None:
        details = message.get("reasoning_details")
        told = self._details(details, whole) if isinstance(details, list) and details else False
        seen = [value for key in REASONING_FIELDS if (value := message.get(key)) and type(value) is str]
        if len(seen) > 1:
            self.note(f"{API}.reasoning_twice", "thinking was sent in two fields; the first one counts")
        if seen and not told:
            self.reasoning.append(seen[0])

    def _details(self, details: list[Any], whole: bool) -> bool:
        told = False
        for i, detail in enumerate(details):
            if type(detail) is not dict:
                continue
            index = detail.get("index")
            key = f"#{i}" if whole and index is None else str(index)
            block = self.blocks.get(key)
            if block is None:
                block = self.blocks[key] = Block()
            text = detail.get("text") or detail.get("summary")
            if type(text) is str and text:
                block.text.append(text)
                told = True
            for name in ("signature", "data", "id"):
                value = detail.get(name)
                if type(value) is str and value:
                    setattr(block, name, value)
        return told

    def _verbatim(self, key: str, value: Any, path: Path, verbatim: Verbatim) -> None:
        if isinstance(value, list):
            for i, _ in enumerate(value):
                self.opaque.append(OpaquePart(f"message.{key}", verbatim(*path, i) or ""))
        elif isinstance(value, Mapping) and any(value.values()):
            self.opaque.append(OpaquePart(f"message.{key}", verbatim(*path) or ""))


def joined(pieces: list[str]) -> str:
    """The pieces as one text; a surrogate pair that was split over two of them becomes its character again."""
    text = "".join(pieces)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _texts(value: Any) -> list[str]:
    if type(value) is str:
        return [value]
    if not isinstance(value, list):
        return []
    return [item["text"] for item in value if isinstance(item, Mapping) and type(item.get("text")) is str]
