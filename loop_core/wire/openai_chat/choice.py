"""One choice of a Chat Completions response while it arrives: text, reasoning, refusal, calls, and its stop words.

Reads messages and deltas in every form that compatible servers send. The decoder provides places and verbatim JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from loop_core.json_parser import JsonPath
from loop_core.values import At, OpaquePart, ReasoningPart, ResponsePart, TextPart, ToolCall
from loop_core.wire.body import mapping_of, mend, word
from loop_core.wire.openai_chat.calls import CallAssembly, GrowingCall, QuirkNote
from loop_core.wire.openai_chat.table import API, MESSAGE_BLOCKS, REASONING_BLOCKS, REASONING_FIELDS, SIDE_FIELDS
from loop_core.wire.reads import unread_rule
from loop_core.wire.response_calls import is_same_json

_THINKING = frozenset({*REASONING_FIELDS, *REASONING_BLOCKS})
_EMPTY = ReasoningPart("")
Place = Callable[..., At]
Verbatim = Callable[..., str | None]


class ReasoningBlock:
    """One block of `reasoning_details`: pieces of one index belong together."""

    __slots__ = ("data", "id", "signature", "text")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.signature: Any = None
        self.data: Any = None
        self.id: Any = None

    def freeze(self) -> ReasoningPart:
        """The finished block; a value that is not text counts as absent."""
        texts = [word if type(word) is str else None for word in (self.signature, self.data, self.id)]
        return ReasoningPart(join_pieces(self.text), *texts)


class GrowingChoice:
    """One choice while it arrives."""

    __slots__ = (
        "_length", "_roleless", "_second_opening", "begun", "blocks", "calls", "deprecated_call", "earlier", "ends",
        "filtered", "filtered_at", "first_id", "index", "note", "opaque", "raw", "raw_at", "reasoning", "refusal",
        "refusal_at", "text", "whole", "words")

    def __init__(self, index: Any, note: QuirkNote) -> None:
        self.index = index
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.blocks: dict[Any, ReasoningBlock] = {}
        self.opaque: list[OpaquePart] = []
        self.calls = CallAssembly(note)
        self.raw: str | None = None
        self.raw_at: At | None = None
        self.earlier: list[tuple[str, At]] = []
        """Other stop words that came before the last one."""
        self.words: dict[str, str] = {}
        self.filtered: set[str] = set()
        self.filtered_at: At | None = None
        self.refusal_at: At | None = None
        self.whole = False
        """Whether the message came in one piece, in a stream as well."""
        self.deprecated_call: GrowingCall | None = None
        """The call of the field `function_call`."""
        self.first_id: Any = None
        """The id of the chunk that began this choice."""
        self.begun: list[tuple[GrowingCall, Any]] = []
        """Each call, and the id of the chunk that began it."""
        self.ends: list[tuple[Any, Any]] = []
        """The id of each chunk with a finish reason of this choice, and that of the chunk before it."""
        self.note = note
        self._length = 0
        self._roleless = False
        self._second_opening = 0, 0, 0
        """The numbers of calls, texts and thoughts before an opening delta that came again."""

    def stop(self, word: str, at: At) -> None:
        """Notes a finish reason; the last one counts, but an empty one never replaces another."""
        if self.raw and word and word != self.raw:
            self.earlier.append((self.raw, self.raw_at or at))
            self.note(f"{API}.stop_reason_changes", f"the finish reason changes from {self.raw!r} to {word!r}", at)
        if word or not self.raw:
            self.raw, self.raw_at = word, at
        if word:
            self.calls.seal()
            # Later pieces are late and complete no call.
            self._length = len(self.text)

    def note_opening(self, delta: Mapping[str, Any]) -> None:
        """Notes an opening delta after a call, unless this server repeats the role in every delta."""
        role = delta.get("role")  # SGLang sends null
        self._roleless = self._roleless or not role
        opens = role and not any(value for key, value in delta.items() if key != "role")
        if opens and self._roleless and not self.raw and not any(self._second_opening):
            self._second_opening = len(self.calls.opened), len(self.text), len(self.reasoning)

    @property
    def abandoned_calls(self) -> list[GrowingCall]:
        """The calls before an opening delta, if another call, text or thinking follows it: a second answer under the
        same id."""
        calls, texts, thoughts = self._second_opening
        goes_on = calls and (len(self.calls.opened) > calls or any(
            map(str.strip, [*self.text[texts:], *self.reasoning[thoughts:]])))
        return self.calls.opened[:calls] if goes_on else []

    @property
    def late(self) -> bool:
        """Whether text (more than white space) or a piece of a call arrived after the finish reason."""
        said_more = any(piece.strip() for piece in self.text[self._length :])
        return bool(self.raw) and (said_more or any(call.late for call in self.calls.opened))

    @property
    def progress(self) -> int:
        """The number of pieces received."""
        grown = sum(len(call.pieces or ()) + 1 for call in self.calls.opened)
        return len(self.text) + len(self.reasoning) + sum(len(b.text) for b in self.blocks.values()) + grown

    @property
    def fields(self) -> frozenset[str]:
        """The kinds of content that this choice holds."""
        thinking = self.reasoning or self.blocks
        found = {"text": self.text or self.refusal, "reasoning": thinking, "calls": self.calls.opened}
        return frozenset(name for name, value in found.items() if value)

    def parts(self, finished: bool) -> list[ResponsePart]:
        """The parts of the message: reasoning, text, verbatim blocks, calls, at most one run of each, whatever the
        order of the pieces."""
        parts: list[ResponsePart] = []
        plain = join_pieces(self.reasoning)
        blocks = [block.freeze() for block in self.blocks.values()]
        # Servers send the same thinking in two fields (chutes, vLLM: pi-ai openai-completions.js:366).
        if plain and plain != "".join(block.text for block in blocks):
            parts.append(ReasoningPart(plain))
        parts.extend(block for block in blocks if block != _EMPTY)
        text = join_pieces(self.text)
        if text:
            parts.append(TextPart(text))
        parts.extend(self.opaque)
        parts.extend(self._calls(finished))
        return parts

    def _calls(self, finished: bool) -> Iterator[ToolCall]:
        """The calls. A `function_call` that is among `tool_calls` too is left out (llama-cpp-python,
        llama_chat_format.py); with other arguments for the same tool, it is the second text of one call."""
        for call in self.calls.opened:
            same_tool = [other.arguments or "" for other in self.calls.opened if other.name == call.name
                         and other is not call] if call is self.deprecated_call else []
            if any(is_same_json(call.arguments or "", text) for text in same_tool):
                self.note(f"{API}.call_repeated", "a call was sent as function_call too", call.at)
            else:
                whole = call.freeze(finished)
                yield whole._replace(other_arguments=same_tool[0]) if same_tool else whole

    # -- what a message or a delta holds -------------------------------------------------------------------------

    def append(self, delta: Mapping[str, Any]) -> bool:
        """Reads the most frequent deltas, a piece of one call's arguments or of reasoning; returns False for any
        other."""
        try:
            if len(delta) == 4 and "reasoning_details" in delta:
                return self._take_thought(delta)
            if len(delta) > 2 or (len(delta) == 2 and "role" not in delta):
                return False
            if "tool_calls" in delta:
                (call,) = delta["tool_calls"]
                self._roleless = self._roleless or len(delta) == 1
                return self.calls.append(call)
            thought = delta.get("reasoning_content") or delta["reasoning"]
        except (KeyError, TypeError, ValueError):
            return False
        if type(thought) is not str:
            return False
        self.reasoning.append(thought)
        return True

    def _take_thought(self, delta: Mapping[str, Any]) -> bool:
        """Reads OpenRouter's form of a piece of thinking: the same text in two fields, and an empty content."""
        (detail,) = delta["reasoning_details"]
        text, block = detail["text"], self.blocks[detail["index"]]
        if delta["content"] or "role" not in delta or "reasoning" not in delta or type(text) is not str:
            return False
        if detail.get("signature") or "data" in detail or "id" in detail:
            return False
        block.text.append(text)
        return True

    def take(
        self, message: Mapping[str, Any], base: JsonPath, place: Place, verbatim: Verbatim, *, whole: bool
    ) -> None:
        """Reads everything except plain text: `base` is the path of `message` inside the frame."""
        thinking = False
        for key, value in message.items():
            if not value:
                continue
            if key == "content":
                self._content(value, (*base, key), place, verbatim)
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
            elif key in _THINKING:
                thinking = True
            elif key not in SIDE_FIELDS and _may_be_answer(value):
                rule = unread_rule(API, {key: value}, "unknown_field")
                self.note(f"{API}.{rule}", f"a message has a field that is not read: {key[:40]}",
                          place(*base, key))
        if thinking:
            self._reasoning(message, whole)

    def _content(self, value: Any, path: JsonPath, place: Place, verbatim: Verbatim) -> None:
        """Reads the content: a text, or a list of parts (Mistral, Albert)."""
        if type(value) is str:
            self.text.append(value)
            return
        blocks = value if isinstance(value, list) else [value]
        for i, block in enumerate(blocks):
            kind = block.get("type") if isinstance(block, Mapping) else None
            if type(block) is str:
                self.text.append(block)
            elif kind == "thinking" and isinstance(block, Mapping):  # Mistral's ThinkChunk
                self.reasoning.extend(_texts(block.get("thinking")))
            elif kind == "reasoning" and isinstance(block, Mapping):  # Databricks (litellm 1.110.2 llms/databricks)
                self.reasoning.extend(_texts(block.get("summary")))
            elif isinstance(block, Mapping) and type(block.get("text")) is str:
                self.text.append(block["text"])
            elif kind == "refusal" and isinstance(block, Mapping) and type(block.get("refusal")) is str:
                self.refusal.append(block["refusal"])
                self.refusal_at = self.refusal_at or place(*path, i)
            elif isinstance(block, Mapping) and kind is None and blocks is not value:
                self.text.append(verbatim(*path) or "")  # an answer sent as a JSON value instead of text
            elif isinstance(block, Mapping):
                block_json = verbatim(*path, i) if isinstance(value, list) else verbatim(*path)
                self.opaque.append(OpaquePart(f"content.{kind}", block_json or ""))

    def _tool_calls(self, value: Any, path: JsonPath, place: Place, verbatim: Verbatim, whole: bool) -> None:
        many = isinstance(value, list)
        if type(value) is dict:
            self.note(f"{API}.tool_calls_object", "tool_calls is an object instead of a list", place(*path))
        for j, call in enumerate(value if many else [value]):
            here = (*path, j) if many else path
            if type(call) is not dict:
                continue
            if not whole and self.calls.append(call):
                continue
            put = self.calls.add if whole else self.calls.take
            put(call, place(*here), partial(verbatim, *here))

    def without_cut_copies(self, calls: Any) -> Any:
        """The calls of a whole message that ends a stream (MiniMax), with None in the place of a call that was streamed
        as far and no further, because its arguments would be joined to themselves."""
        cut = {(call.id, call.name, call.arguments) for call in self.calls.opened if not call.complete}
        if not cut or not isinstance(calls, list):
            return calls
        return [None if isinstance(call, Mapping) and _identity(call) in cut else call for call in calls]

    def _function_call(self, value: Any, path: JsonPath, place: Place, verbatim: Verbatim, whole: bool) -> None:
        """Reads the deprecated single call. Some servers send every field, and so an empty call that is ignored."""
        if type(value) is not dict:
            return
        if not any(value.values()):
            if whole:
                self.note(f"{API}.phantom_call", "an empty function_call was sent and left out", place(*path))
            return
        put = self.calls.add if whole else self.calls.take
        put({"index": "function_call", "function": value}, place(*path), lambda _, key: verbatim(*path, key))
        self.deprecated_call = self.deprecated_call or self.calls.opened[-1]

    def _reasoning(self, message: Mapping[str, Any], whole: bool) -> None:
        name = next((name for name in REASONING_BLOCKS if message.get(name)), "")
        details = message.get(name)
        has_text = self._details(details, whole, REASONING_BLOCKS[name]) if type(details) is list else False
        first = None
        for key in REASONING_FIELDS:
            thought = message.get(key)
            if thought and type(thought) is str:
                if first is not None:
                    self.note(f"{API}.reasoning_twice", "thinking was sent in two fields; the first one counts")
                    break
                first = thought
        if first is not None and not has_text:
            self.reasoning.append(first)

    def _details(self, details: list[Any], whole: bool, fields: tuple[str, ...]) -> bool:
        has_text = False
        for i, detail in enumerate(details):
            if type(detail) is not dict:
                continue
            index = detail.get("index")
            # In a whole message each entry is a block; in a stream, pieces without an index belong to one.
            key = index if type(index) is int else f"#{i}" if whole else None
            block = self.blocks.get(key)
            if block is None:
                block = self.blocks[key] = ReasoningBlock()
            text = next((value for name in fields if (value := detail.get(name))), None)
            if text and type(text) is str:
                block.text.append(text)
                has_text = True
            block.signature = detail.get("signature") or block.signature
            block.data = detail.get("data") or block.data
            block.id = detail.get("id") or block.id
        return has_text

    def _verbatim(self, key: str, value: Any, path: JsonPath, verbatim: Verbatim) -> None:
        if isinstance(value, list):
            for i, _ in enumerate(value):
                self.opaque.append(OpaquePart(f"message.{key}", verbatim(*path, i) or ""))
        elif isinstance(value, Mapping) and any(value.values()):
            self.opaque.append(OpaquePart(f"message.{key}", verbatim(*path) or ""))


def _identity(call: Mapping[str, Any]) -> tuple[str | None, str | None, str | None]:
    function = mapping_of(call.get("function"))
    return word(call.get("id")), word(function.get("name")), word(function.get("arguments"))


def _may_be_answer(value: Any) -> bool:
    if isinstance(value, dict):
        return any(value.values())
    return isinstance(value, str) or (isinstance(value, list) and any(value))


def join_pieces(pieces: list[str]) -> str:
    """The pieces as one text; a surrogate pair that two of them split becomes its character again."""
    return mend("".join(pieces))


def _texts(value: Any) -> list[str]:
    if type(value) is str:
        return [value]
    if not isinstance(value, list):
        return []
    return [item["text"] for item in value if isinstance(item, Mapping) and type(item.get("text")) is str]
