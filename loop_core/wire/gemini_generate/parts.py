"""Converts the parts of a candidate's content to parts of the response, in order of arrival.

This module decides which pieces belong together: text after text, values of one streamed call, a signature and what it
signs. A part that is neither text, thought nor function call (executableCode, inlineData, toolCall, …) is kept
verbatim, because it must be sent back unchanged. Finish reasons are read in `decode`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Protocol

from loop_core.json_parser import JsonPath
from loop_core.values import ArgsForm, At, OpaquePart, ReasoningPart, ResponsePart, Severity, TextPart, ToolCall
from loop_core.wire.gemini_generate.table import get, key_of
from loop_core.wire.response_calls import earlier_calls

# -- Arguments that Vertex AI streams value by value (`functionCall.partialArgs`) ------------------------------------
# The JSON path of a value gives its place in a growing tree.

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"\s]+)|\[(?P<index>[0-9]{1,9})\]"""
    r"""|\['(?P<single>(?:[^'\\]|\\.)*)'\]|\["(?P<double>(?:[^"\\]|\\.)*)"\]"""
)
_DEEPEST = 64  # paths come from outside: without a bound, one could make a tree too deep to walk
_MISSING = object()
_PIECE_FIELDS = frozenset({"jsonPath", "json_path", "willContinue", "will_continue"})  # besides the value


class _Text:
    """A string value that grows."""

    __slots__ = ("chunks", "open")

    def __init__(self, is_open: bool) -> None:
        self.chunks: list[str] = []
        self.open = is_open


class PartialArgs:
    """The arguments of one call while they arrive."""

    __slots__ = ("_open", "_root", "_text", "_where", "broken")

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._open = 0  # the number of incomplete strings
        self._where: str | None = None  # the path of the string that grew last
        self._text = _Text(False)
        self.broken = ""
        """Why the values form no object; empty if they do. Broken arguments never count as whole."""

    @property
    def whole(self) -> bool:
        """Whether every value that began is complete."""
        return not self._open and not self.broken

    def add(self, value: Any) -> None:
        """Reads one element of `partialArgs`; one that is not an object breaks them."""
        path: Any = get(value, "jsonPath") if isinstance(value, dict) else None
        try:
            if path == self._where and self._text.open:
                self._grow(self._text, value)
                return
            holder, key = self._place(_steps(path))
            found = _read(holder, key)
            if found is _MISSING:
                self._begin(holder, key, value, path)
            elif isinstance(found, _Text) and found.open:
                self._text, self._where = found, path
                self._grow(found, value)
            else:
                raise _UnplacedError("was finished before")
        except _UnplacedError as why:
            self.broken = self.broken or f"{str(path)[:80]} {why}"

    @property
    def growing(self) -> tuple[Callable[[str], None], str] | None:
        """The string that receives the next piece, and its path; None if it is finished."""
        return (self._text.chunks.append, self._where) if self._text.open and self._where is not None else None

    def text(self) -> str:
        """The arguments as JSON."""
        return _render(self._root, False)

    def prefix(self) -> str:
        """The arguments as far as they arrived: JSON that stops in the middle."""
        return _render(self._root, True)

    def _place(self, steps: list[str | int]) -> tuple[Any, str | int]:
        holder: Any = self._root
        for step, following in pairwise(steps):
            inner = _read(holder, step)
            if inner is _MISSING:
                inner = [] if isinstance(following, int) else {}
                _put(holder, step, inner)
            holder = inner
        return holder, steps[-1]

    def _begin(self, holder: Any, key: str | int, value: Mapping[str, Any], path: str) -> None:
        if isinstance(get(value, "stringValue"), str):
            self._text, self._where = _Text(True), path
            self._open += 1
            _put(holder, key, self._text)
            self._grow(self._text, value)
            return
        number, flag = get(value, "numberValue"), get(value, "boolValue")
        if isinstance(flag, bool):
            _put(holder, key, flag)
        elif type(number) in (int, float) and math.isfinite(number):  # Python's parser accepts NaN and Infinity
            _put(holder, key, number)
        elif "nullValue" in value or "null_value" in value:
            _put(holder, key, None)
        else:
            raise _UnplacedError("brings no value")

    def _grow(self, text: _Text, value: Mapping[str, Any]) -> None:
        # A dump of an SDK's object has null for what is not set, also for `stringValue`; else null may be the value.
        piece, unset = get(value, "stringValue"), None if key_of(value, "stringValue") in value else _MISSING
        if not isinstance(piece, str) and not all(name in _PIECE_FIELDS or it is unset for name, it in value.items()):
            raise _UnplacedError("brings no text")
        text.chunks.append(piece or "")
        if get(value, "willContinue") is not True:  # absent in the last piece (google-genai 3.4.0 types.py PartialArg)
            text.open = False
            self._open -= 1


def string_piece(call: Mapping[str, Any], path: str) -> Any:
    """The piece that a chunk adds to the string at `path`; None if the chunk holds or ends anything else. Raises
    KeyError, TypeError or ValueError if the chunk has another shape."""
    (value,) = call["partialArgs"]
    plain = len(call) == 2 and call["willContinue"] is True and len(value) == 3 and value["willContinue"] is True
    return value["stringValue"] if plain and value["jsonPath"] == path else None


class _UnplacedError(Exception):
    """A value has no place in the object."""


def _steps(path: Any) -> list[str | int]:
    if not isinstance(path, str) or not path.startswith("$"):
        raise _UnplacedError("is not a path")
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None or len(steps) == _DEEPEST:
            raise _UnplacedError("is not a path")
        steps.append(int(step["index"]) if step["index"] else step["name"] or _unquote(step["single"], step["double"]))
        position = step.end()
    if not steps or isinstance(steps[0], int):  # arguments are an object, so `$[0]` is not a place
        raise _UnplacedError("is not a path into an object")
    return steps


def _unquote(single: str | None, double: str | None) -> str:
    quoted = double if single is None else single.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{quoted}"', strict=False))
    except ValueError:
        raise _UnplacedError("is not a path") from None


def _read(holder: Any, key: str | int) -> Any:
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key, _MISSING)
    if isinstance(holder, list) and isinstance(key, int) and key <= len(holder):
        return holder[key] if key < len(holder) else _MISSING
    raise _UnplacedError("does not fit what came before")


def _put(holder: Any, key: str | int, value: Any) -> None:
    if isinstance(holder, list):
        holder.append(value)
    else:
        holder[key] = value


def _render(value: Any, last: bool) -> str:
    if isinstance(value, _Text):
        text = json.dumps("".join(value.chunks), ensure_ascii=False)
        return text[:-1] if last and value.open else text
    if isinstance(value, dict):
        final = len(value) - 1
        inner = (f"{json.dumps(key, ensure_ascii=False)}:{_render(member, last and index == final)}"
                 for index, (key, member) in enumerate(value.items()))
        return "{" + ",".join(inner) + ("" if last else "}")
    if isinstance(value, list):
        final = len(value) - 1
        members = (_render(member, last and index == final) for index, member in enumerate(value))
        return "[" + ",".join(members) + ("" if last else "]")
    return json.dumps(value)


_TEXT_FIELDS = frozenset({"text", "thought", "thoughtSignature", "thought_signature"})
"""The fields of a text or a thought. Parts of other kinds may have them too."""


class PartSource(Protocol):
    """The source of parts: gives verbatim values of the answer and their places, and takes reports of quirks."""

    def verbatim(self, *path: str | int) -> str | None:
        """The JSON text of a value in the answer."""

    def at(self, *path: str | int) -> At:
        """The place of a value in the answer."""

    def find(self, rule: str, message: str, at: At | None = None, severity: Severity = Severity.WARNING) -> None:
        """Reports a quirk."""


class _Run:
    """A text or reasoning that arrives in pieces."""

    __slots__ = ("chunks", "signature", "thought")

    def __init__(self, thinking: bool) -> None:
        self.chunks: list[str] = []
        self.thought = thinking
        self.signature: str | None = None

    def part(self) -> TextPart | ReasoningPart:
        text = "".join(self.chunks)
        return ReasoningPart(text, self.signature) if self.thought else TextPart(text)


class _Call:
    """A function call, sent whole or value by value."""

    __slots__ = ("answer", "arguments", "at", "empty", "ended", "form", "id", "more", "name", "signature", "values")

    def __init__(self, name: str, at: At) -> None:
        self.name, self.at = name, at
        self.answer: str | None = None  # id of its answer
        self.id: str | None = None
        self.signature: str | None = None
        self.arguments: str | None = None
        self.form = ArgsForm.OBJECT
        self.empty = True  # `args` is empty, like an unset structure
        self.values: PartialArgs | None = None
        self.more = False  # its last part announced another
        self.ended = False  # a finish reason followed it

    def part(self) -> ToolCall:
        values = self.values
        # `args` beside `partialArgs` would be two texts of one call, and nothing would show which one is meant.
        whole = not self.more and (values is None or (values.whole and self.empty))
        arguments, form = self.arguments, self.form
        if values is not None:
            arguments, form = values.text() if whole else values.prefix(), ArgsForm.STRING
        elif not whole:
            # Without the last brace, so that incomplete arguments do not parse.
            arguments, form = "{" if self.empty else (arguments or "").rstrip()[:-1], ArgsForm.STRING
        return ToolCall(self.id, self.name, arguments, whole and self.ended, form=form, signature=self.signature,
                        at=self.at)


def holds_content(part: Mapping[str, Any]) -> bool:
    """Whether a part holds more than an empty text, which Gemini 3 sends with a signature, or an empty call, which only
    ends a call that is streamed value by value."""
    empty = {key_of(part, "functionCall")} if get(part, "functionCall") == {} else set()
    return bool(part.get("text")) or not part.keys() - empty <= _TEXT_FIELDS


class Parts:
    """The content of one candidate while it arrives. `append`, `width` and `path` serve the most frequent deltas."""

    __slots__ = ("_calls", "_earlier", "_items", "_open", "_source", "answer", "append", "before", "path", "width")

    def __init__(self, source: PartSource) -> None:
        self._source = source
        self._items: list[_Run | _Call | OpaquePart] = []
        self._calls: list[_Call] = []
        self._earlier: list[_Call] = []  # of answers that another one followed, which no later finish reason ends
        self._open: _Call | None = None  # the call that expects more values
        self.answer: str | None = None  # the id of the current part's answer
        self.before: str | None = None  # the id of the chunk before, except chunks that only continue a text
        self.append: Callable[[str], None] | None = None
        """Takes the next piece of text. None unless the last part is a text, thought, or call with an open string."""
        self.width = 1
        """The number of fields of a part that continues the last one: a thought has the further field `thought`."""
        self.path: str | None = None  # of the open string in the arguments of a call; None for texts and thoughts

    @property
    def last_whole(self) -> object:
        """The last call, if it came in one part; else None."""
        call = self._calls[-1] if self._calls else None
        return call if call is not None and call.arguments is not None and not (call.more or call.values) else None

    def read(self, part: Mapping[str, Any], path: JsonPath) -> None:
        """Reads one element of `content.parts`."""
        signature = get(part, "thoughtSignature")
        signature = signature if isinstance(signature, str) and signature else None
        call = get(part, "functionCall")
        if isinstance(call, dict):
            self.append = None
            self._call(call, signature, (*path, key_of(part, "functionCall")))
        elif part.keys() <= _TEXT_FIELDS:  # only these fields: a text or a thought
            text = part.get("text")
            self._run(text if isinstance(text, str) else "", bool(part.get("thought")), signature)
        elif isinstance(part.get("text"), str):
            self._run(part["text"], bool(part.get("thought")), signature)  # the metadata belongs to the text
        else:
            self.append = None
            kind = next(key for key in part if key not in _TEXT_FIELDS)
            source = self._source.verbatim(*path)
            self._items.append(OpaquePart(kind, json.dumps(part) if source is None else source))

    def end_calls(self, first: str | None) -> None:
        """Notes a finish reason: calls that began before it and announce no further piece are complete, except those of
        an answer to which a gateway appended another. `first` is the id of the first answer."""
        earlier = earlier_calls([(call, call.answer) for call in self._calls], first, [(self.answer, self.before)])
        self._earlier += earlier
        for call in self._calls:
            call.ended = call not in self._earlier
        for call in earlier:
            why = "another answer begins before the first one ended"
            self._source.find("gemini_generate.second_answer", why, call.at)
        if self.path is not None:
            self.append = None  # a later piece opens its call again

    def build(self) -> tuple[ResponsePart, ...]:
        """The parts of the response."""
        return tuple(item if isinstance(item, OpaquePart) else item.part() for item in self._items)

    def _run(self, text: str, thinking: bool, signature: str | None) -> None:
        last = self._items[-1] if self._items else None
        run = last if isinstance(last, _Run) and last.thought is thinking and not last.signature else None
        if text:
            run = run or self._begin_run(thinking)
            run.chunks.append(text)
        if signature:
            # Gemini 3 streams the signature of an answer in a part of its own, with empty text.
            run = run if run and thinking else self._begin_run(True)
            run.signature = signature
            self.append = None  # what follows is not signed

    def _begin_run(self, thinking: bool) -> _Run:
        run = _Run(thinking)
        self._items.append(run)
        self.append, self.width, self.path = run.chunks.append, 2 if thinking else 1, None
        return run

    def _call(self, wire_call: Mapping[str, Any], signature: str | None, path: JsonPath) -> None:
        call = self._continued_call(wire_call) or self._begin_call(wire_call, path)
        if call is None:
            return
        if wire_call.get("args") is not None:
            self._take_arguments(call, wire_call["args"], path)
        values = get(wire_call, "partialArgs")
        if values is not None:
            call.values = call.values or PartialArgs()
            for value in values if isinstance(values, list) else [None]:
                call.values.add(value)
            if call.values.broken:
                self._source.find("gemini_generate.partial_args", call.values.broken, call.at)
        call.signature = call.signature or signature
        # A part after a finish reason opens the call again.
        call.more, call.ended = get(wire_call, "willContinue") is True, False
        self._open = call if call.more else None
        growing = call.values.growing if call.values is not None and call.more else None
        if growing is not None:
            (self.append, self.path), self.width = growing, 1

    def _continued_call(self, wire_call: Mapping[str, Any]) -> _Call | None:
        """The call that this part continues, if the part has no name or the same id as that call."""
        same = self._open is not None and wire_call.get("id") is not None and wire_call["id"] == self._open.id
        return self._open if same or not wire_call.get("name") else None

    def _begin_call(self, wire_call: Mapping[str, Any], path: JsonPath) -> _Call | None:
        at = self._source.at(*path)
        name, identity = wire_call.get("name"), wire_call.get("id")
        if not wire_call:
            self._source.find("gemini_generate.stray_call", "a part ends a call that was never begun", at)
            return None
        if not name:
            self._source.find("gemini_generate.nameless_call", "a function call has no name", at)
            for earlier in self._calls[-1:] if get(wire_call, "partialArgs") else ():
                earlier.more = True  # it said that it was over
        if self._open is not None:
            self._source.find("gemini_generate.unfinished_call", f"a call begins while {self._open.name} is open", at)
        call = _Call(name if isinstance(name, str) else "", at)
        call.answer = self.answer
        call.id = identity if isinstance(identity, str) and identity else None
        self._items.append(call)
        self._calls.append(call)
        return call

    def _take_arguments(self, call: _Call, value: Any, path: JsonPath) -> None:
        call.empty = call.empty and value in ({}, None)
        if isinstance(value, str):
            call.arguments, call.form = value, ArgsForm.STRING
            self._source.find("gemini_generate.string_arguments", "arguments are a string", call.at, Severity.INFO)
            return
        text = self._source.verbatim(*path, "args")
        call.arguments = json.dumps(value, ensure_ascii=False) if text is None else text
