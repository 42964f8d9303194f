"""Maps values of a format's JSON to facts of the response, with their bytes.

A format states what it reads as rows of a pattern and a fact. `find` returns every value of one JSON text that a row
names, with its bytes; it skips all others with the standard library's C scanner. `piece_observer` collects the texts of
a stream.

Facts of one value: `id`, `model`, `native.NAME` (a word beside the stop reason), `stop_reason` and `error` (if no
evidence covers them already), `usage.input_tokens` and its siblings. Facts that may come in pieces: `text`,
`reasoning`, `refusal`, `call.id`, `call.name`, `call.arguments`. `call` is a whole call, and `call.value` a value
inside arguments that a decoder assembles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from loop_core.json_parser import JsonPath, from_json
from loop_core.wire.json_values import pointer


class Pieces(NamedTuple):
    """The pieces of output in a stream, as sent, each kind in its order."""

    text: list[str]
    thinking: list[str]
    call: list[str]
    """The pieces of the arguments of calls."""


See = Callable[[Any, str | None, int, int], None]
"""A function that receives one JSON value of a stream, its event name, and the offsets of its first byte and its
end."""


class FactRow(NamedTuple):
    """One row: values at `pattern`, a JSON pointer in which `*` is any index, become `fact`."""

    fact: str
    pattern: str
    siblings: tuple[str, ...] = ()
    """JSON pointers of other values in the event that show which pieces belong together; `*` is the same index as in
    `pattern`."""
    when: str = ""
    """The event type in which the row applies (the event's `type`, or the name of its frame); empty for any event."""
    group: str = ""
    """The group of the pieces. Pieces of one group follow one another; the same text in another is a repetition."""
    only: tuple[str, bool] | None = None
    """The JSON pointer of another value in the event, and whether that value must be true or must not be true."""


class FactValue(NamedTuple):
    """A value that a row matches: its text (a string's characters, or the JSON of anything else) and its place."""

    row: FactRow
    text: str
    string: bool
    start: int
    end: int
    pointer: str
    key: tuple[Any, ...]


class Node:
    """A node of the tree of patterns."""

    __slots__ = ("items", "members", "rows")

    def __init__(self) -> None:
        self.rows: list[FactRow] = []
        self.members: dict[str, Node] = {}
        self.items: Node | None = None

    def child(self, step: str) -> Node:
        """Returns the child node of a step, and creates it if it is missing."""
        if step != "*":
            return self.members.setdefault(step, Node())
        self.items = self.items or Node()
        return self.items


def find(
    rows: tuple[FactRow, ...], payload: bytes, event: Mapping[str, Any], name: str | None = None, base: int = 0
) -> list[FactValue]:
    """Returns every value of `payload` that a row matches, in the order of the bytes, with offsets from `base`. `event`
    is the parsed payload, and `name` is the name of its frame. If the only member of an event is named after an event
    type, its value is read as an event of that type."""
    node, inner = plan_of(rows, name or _type(event)), event
    if name is None and len(event) == 1:
        (only,) = event
        if only in event_types(rows) and isinstance(event[only], Mapping):
            node, inner = Node(), event[only]
            node.members[only] = plan_of(rows, only)
    text = payload.decode("latin-1")  # one character per byte, so indices are offsets
    hits: list[tuple[FactRow, JsonPath, int, int]] = []
    try:
        # the three characters are a BOM read as Latin-1
        _visit(text, _skip_space(text, 3 if text.startswith("\xef\xbb\xbf") else 0), node, (), hits)
    except (ValueError, RecursionError, IndexError, StopIteration):  # how the C scanner reports a missing value
        return []
    return [found for hit in hits if (found := _fact_value(payload, inner, base, *hit)) is not None]


@lru_cache(maxsize=256)
def plan_of(rows: tuple[FactRow, ...], when: str) -> Node:
    """The tree of the patterns that apply in an event of this type."""
    root = Node()
    for row in rows:
        if row.when in ("", when):
            node = root
            for step in row.pattern.split("/")[1:]:
                node = node.child(step)
            node.rows.append(row)
    return root


@lru_cache(maxsize=16)
def event_types(rows: tuple[FactRow, ...]) -> frozenset[str]:
    """The event types that rows name."""
    return frozenset(row.when for row in rows if row.when)


def _type(event: Mapping[str, Any]) -> str:
    kind = event.get("type")
    return kind if isinstance(kind, str) else ""


# The C scanner itself, without the Python method `raw_decode`. Numbers stay text, because `int` refuses 5,000 digits.
_scan = json.scanner.make_scanner(json.JSONDecoder(strict=False, parse_int=str, parse_float=str))  # type: ignore[attr-defined]
_space = re.compile(r"[ \t\r\n]*").match
_BLANK = " \t\r\n"
_Hits = list[tuple[FactRow, JsonPath, int, int]]


def _visit(text: str, start: int, node: Node, path: JsonPath, hits: _Hits) -> int:
    """Collects the values that the rows below `node` name in the value at `start`; returns the end of that value."""
    opening = text[start]
    if opening == "{" and node.members:
        end = _members(text, start + 1, node.members, path, hits)
    elif opening == "[" and node.items is not None:
        end = _items(text, start + 1, node.items, path, hits)
    else:
        end = _scan(text, start)[1]
    for row in node.rows:
        hits.append((row, path, start, end))
    return end


def _members(text: str, at: int, nodes: Mapping[str, Node], path: JsonPath, hits: _Hits) -> int:
    begun: dict[str, int] = {}
    at = _skip_space(text, at)
    while text[at] != "}":
        key, at = scanstring(text, at + 1, False)
        at = _skip_space(text, _skip_space(text, at) + 1)
        node = nodes.get(key)
        if node is None:
            at = _scan(text, at)[1]
        else:
            if key in begun:  # the last of several equal keys counts, as in every parser
                hits[:] = [hit for hit in hits if hit[1][: len(path) + 1] != (*path, key) or hit[2] < begun[key]]
            begun[key] = at
            at = _visit(text, at, node, (*path, key), hits)
        at = _skip_space(text, at)
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return at + 1


def _items(text: str, at: int, node: Node, path: JsonPath, hits: _Hits) -> int:
    index = 0
    at = _skip_space(text, at)
    while text[at] != "]":
        at = _skip_space(text, _visit(text, at, node, (*path, index), hits))
        if text[at] == ",":
            at = _skip_space(text, at + 1)
        index += 1
    return at + 1


def _skip_space(text: str, at: int) -> int:
    return _space(text, at).end() if text[at] in _BLANK else at  # type: ignore[union-attr]


def _fact_value(
    payload: bytes, event: Mapping[str, Any], base: int, row: FactRow, path: JsonPath, start: int, end: int
) -> FactValue | None:
    written = payload[start:end]
    if written == b"null":  # null is absent to every decoder
        return None
    indices = [step for step in path if type(step) is int] if row.siblings or row.only else []
    if _is_left_out(row, event, indices):
        return None
    values = [_value_at(event, sibling, indices) for sibling in row.siblings]
    key = tuple([value if isinstance(value, (str, int, type(None))) else str(value) for value in values])
    return FactValue(row, text_of(written), written[:1] == b'"', base + start, base + end, _pointer(path), key)


@lru_cache(maxsize=256)
def _pointer(path: JsonPath) -> str:
    return pointer(*path)


def text_of(raw: bytes) -> str:
    """The characters of a JSON string, as the decoders read it; any other JSON verbatim."""
    if not raw.startswith(b'"'):
        return raw.decode("utf-8", "replace")
    try:
        return str(from_json(raw))
    except ValueError:
        return str(json.loads(raw.decode("utf-8", "replace"), strict=False))


def _is_left_out(row: FactRow, event: Any, indices: Sequence[int]) -> bool:
    """Whether the value that the row's `only` names is not as required."""
    return row.only is not None and bool(_value_at(event, row.only[0], indices)) is not row.only[1]


def _value_at(event: Any, pattern: str, indices: Sequence[int]) -> Any:
    numbers = iter(indices)
    for step in _steps(pattern):
        if step == "*" and isinstance(event, list):
            event = event[next(numbers, 0)]
        elif isinstance(event, dict) and step != "*":
            event = event.get(step)
        else:
            return None
    return event


@lru_cache(maxsize=256)
def _steps(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.split("/")[1:])


# -- what the events of a stream add to the output -------------------------------------------------------------------

_PIECES: Mapping[str, str] = {"text": "text", "reasoning": "thinking", "call.arguments": "call"}
"""Fact -> the field of `Pieces` that holds its texts."""


def piece_observer(rows: tuple[FactRow, ...], pieces: Pieces) -> See:
    """Returns an observer that appends to `pieces` the texts that `rows` name in each event of a stream. It takes only
    the first of several choices, and one group of values per event, because another group repeats the same text. Empty
    texts are left out."""
    rows = tuple(row for row in rows if row.fact in _PIECES)
    plain, plans = plan_of(rows, ""), {when: plan_of(rows, when) for when in event_types(rows)}
    lists: Mapping[str, list[str]] = {fact: getattr(pieces, name) for fact, name in _PIECES.items()}

    def see(event: Any, name: str | None, start: int, end: int) -> None:
        when = name or _type(event)
        if name is None and len(event) == 1 and not plans.keys().isdisjoint(event):
            ((when, event),) = event.items()
        groups: dict[str, str] = {}
        for row, text, indices in _texts(plans.get(when, plain), event, ()):
            # Any index other than 0 belongs to another answer.
            other = indices and row.siblings and "*" in row.siblings[0] and _value_at(event, row.siblings[0], indices)
            if other or _is_left_out(row, event, indices):
                continue
            if groups.setdefault(row.fact, row.group) == row.group:
                lists[row.fact].append(text)

    return see


def _texts(node: Node, value: Any, indices: tuple[int, ...]) -> Iterator[tuple[FactRow, str, tuple[int, ...]]]:
    """The texts that the rows below `node` name, each with the array indices of its path."""
    if isinstance(value, dict):
        for key, inner in node.members.items():
            if value.get(key):
                yield from _texts(inner, value[key], indices)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            yield from _texts(node.items, item, (*indices, index))
    elif isinstance(value, str):
        for row in node.rows:
            yield row, value, indices
