"""Maps values of a format's JSON to facts of the response, with their bytes.

A format states what it reads as rows of a pattern and a fact. `find` returns every value of one JSON text that a row
names, with its bytes. `piece_observer` collects the texts of a stream. `unread_values` finds values at places that a
format reads, but of a type that it does not read there: otherwise such a value would be lost silently.

Facts of one value: `id`, `model`, `native.NAME` (a word beside the stop reason), `stop_reason` and `error` (if no
evidence covers them already), `usage.input_tokens` and its siblings. Facts that may come in pieces: `text`,
`reasoning`, `refusal`, `call.id`, `call.name`, `call.arguments`. `call` is a whole call, and `call.value` a value
inside arguments that a decoder assembles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from loop_core.json_parser import JsonPath
from loop_core.wire.json_values import byte_span, pointer


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


class _Trees(NamedTuple):
    """The patterns that apply in any event, and those that apply in the events of each type that a row names."""

    plain: Node
    by_type: Mapping[str, Node]


@lru_cache(maxsize=64)
def _trees_of(rows: tuple[FactRow, ...]) -> _Trees:
    types = {row.when for row in rows if row.when}
    return _Trees(_tree_of(rows, ""), {when: _tree_of(rows, when) for when in types})


def _tree_of(rows: tuple[FactRow, ...], when: str) -> Node:
    root = Node()
    for row in rows:
        if row.when in ("", when):
            node = root
            for step in row.pattern.split("/")[1:]:
                node = node.child(step)
            node.rows.append(row)
    return root


def _start(trees: _Trees, event: Mapping[str, Any], name: str | None) -> tuple[Node, Any, JsonPath]:
    """The patterns that apply in an event, with the value in which they apply and its path. `name` is the name of the
    event's frame. If the only member of an event is named after an event type, its value is an event of that type."""
    if name is None and len(event) == 1:
        (only,) = event
        if only in trees.by_type and isinstance(event[only], Mapping):
            return trees.by_type[only], event[only], (only,)
    kind = name or event.get("type")
    return trees.by_type.get(kind, trees.plain) if isinstance(kind, str) else trees.plain, event, ()


def _matches(node: Node, value: Any, path: JsonPath) -> Iterator[tuple[FactRow, Any, JsonPath]]:
    """Each value that a row below `node` names. null is absent to every decoder."""
    if value is None:
        return
    if isinstance(value, dict):
        for key, inner in node.members.items():
            yield from _matches(inner, value.get(key), (*path, key))
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            yield from _matches(node.items, item, (*path, index))
    for row in node.rows:
        yield row, value, path


def find(
    rows: tuple[FactRow, ...], payload: bytes, event: Mapping[str, Any], name: str | None = None, base: int = 0
) -> list[FactValue]:
    """Returns every value of `payload` that a row matches, in the order of the bytes, with offsets from `base`. `event`
    is the parsed payload, and `name` is the name of its frame."""
    node, inner, start = _start(_trees_of(rows), event, name)
    found: list[FactValue] = []
    for row, value, path in _matches(node, inner, start):
        span, indices = byte_span(payload, 0, *path), _indices(path)
        if span is not None and not _is_left_out(row, inner, indices):
            string = isinstance(value, str)
            text = value if string else payload[slice(*span)].decode("utf-8", "replace")
            keys = [_value_at(inner, sibling, indices) for sibling in row.siblings]
            key = tuple([key if isinstance(key, (str, int, type(None))) else str(key) for key in keys])
            found.append(FactValue(row, text, string, base + span[0], base + span[1], pointer(*path), key))
    return sorted(found, key=lambda each: each.end)  # a value after those inside it


def _indices(path: JsonPath) -> list[int]:
    return [step for step in path if isinstance(step, int)]


def _is_left_out(row: FactRow, event: Any, indices: Sequence[int]) -> bool:
    """Whether the value that the row's `only` names is not as required."""
    return row.only is not None and bool(_value_at(event, row.only[0], indices)) is not row.only[1]


def _value_at(event: Any, pattern: str, indices: Sequence[int]) -> Any:
    numbers = iter(indices)
    for step in pattern.split("/")[1:]:
        if step == "*" and isinstance(event, list):
            event = event[next(numbers, 0)]
        elif isinstance(event, dict) and step != "*":
            event = event.get(step)
        else:
            return None
    return event


# -- what the events of a stream add to the output -------------------------------------------------------------------

_PIECES: Mapping[str, str] = {"text": "text", "reasoning": "thinking", "call.arguments": "call"}
"""Fact -> the field of `Pieces` that holds its texts."""


def piece_observer(rows: tuple[FactRow, ...], pieces: Pieces) -> See:
    """Returns an observer that appends to `pieces` the texts that `rows` name in each event of a stream. It takes only
    the first of several choices, and one group of values per event, because another group repeats the same text. Empty
    texts are left out."""
    trees = _trees_of(tuple(row for row in rows if row.fact in _PIECES))
    lists: Mapping[str, list[str]] = {fact: getattr(pieces, name) for fact, name in _PIECES.items()}

    def see(event: Any, name: str | None, start: int, end: int) -> None:
        groups: dict[str, str] = {}
        node, inner, above = _start(trees, event, name)
        for row, text, path in _matches(node, inner, above):
            indices = _indices(path)
            # Any index other than 0 belongs to another answer.
            other = indices and row.siblings and "*" in row.siblings[0] and _value_at(inner, row.siblings[0], indices)
            if not text or not isinstance(text, str) or other or _is_left_out(row, inner, indices):
                continue
            if groups.setdefault(row.fact, row.group) == row.group:
                lists[row.fact].append(text)

    return see


# -- values of a type that no row reads ------------------------------------------------------------------------------

UNREAD = "{} has a value of the wrong type, which is not read"
"""The finding about a value that may have held a part of the answer."""
UNREAD_CALL = "call_unread_value"
"""Suffix of the rule of a finding about something that was not read and may belong to a call; it holds all calls."""
_CONTENT = frozenset({"text", "reasoning", "refusal", "call.id", "call.name", "call.arguments", "call.value"})
"""The facts that make up an answer; a wrong type of another fact loses no part of it."""
_VALUES = frozenset({"call.arguments", "call.value"})
"""The facts that may have any type: arguments may be sent as JSON, and the gate holds other values than objects. A
place that also has members is an object: a provider's call, all of which is its arguments."""
_PARTS = _VALUES | {"call.name"}


def unread_values(api: str, event: Mapping[str, Any], name: str | None) -> Iterator[tuple[str, str, JsonPath]]:
    """Yields rule, message and path of the finding about each value of an event or whole body whose type no row of the
    format reads: a place with members is an object, one with items a list, and one that becomes a fact a text."""
    trees = _content_trees(api)
    node, value, path = _start(trees, event, name)
    for place, below in _misfits(node, value, path):
        message = UNREAD.format(next(step for step in reversed(below) if isinstance(step, str)))
        yield f"{api}.{UNREAD_CALL if _holds_call(place) else 'unread_value'}", message, below
    # Where events have types, the decoder reports a type that it does not know.
    known = not trees.by_type or node is not trees.plain
    if known and not _reads_any(node, value, _CONTENT) and _holds_stray_call(api, node, value):
        yield f"{api}.{UNREAD_CALL}", "an event of which nothing is read holds a part of a call", path
    for place, call, below in _listed_calls(node, value, path):
        if not _reads_any(place, call, _PARTS) and _holds_stray_call(api, place, call):
            yield f"{api}.{UNREAD_CALL}", "a call of which nothing is read holds a part of one", below


@lru_cache(maxsize=64)
def _content_trees(api: str) -> _Trees:
    from loop_core.wire import wire  # here, as it imports the decoders

    return _trees_of(tuple(row for row in wire(api).reads if row.fact in _CONTENT))


def continues_call(api: str, event: Mapping[str, Any], name: str | None) -> bool:
    """Whether an event holds a piece of the arguments of a call, and begins no call."""
    facts = {row.fact for row, value, _ in _matches(*_start(_content_trees(api), event, name)) if value}
    return not _VALUES.isdisjoint(facts) and "call.name" not in facts


def unread_rule(api: str, value: Any, rule: str) -> str:
    """The suffix of the rule of a finding about something that a format does not read: `UNREAD_CALL` if it holds,
    however deep, a member with a name that the format has only in calls, above or at their arguments; else `rule`."""
    return UNREAD_CALL if _holds_any(_names_in_calls(api), value) else rule


def may_be_call(api: str, value: Any) -> bool:
    """Whether a part of a type that is not known has a name and, beside it, a member that the format has only in calls:
    it may be a call of the batch, which then is not whole."""
    return isinstance(value, dict) and bool(value.get("name")) and not _names_in_calls(api).isdisjoint(value)


def _holds_any(names: Collection[str], value: Any) -> bool:
    """Whether a value holds, however deep, a member with one of these names that is no number."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        for name, member in inner.items() if isinstance(inner, dict) else ():
            if name in names and member and isinstance(member, (str, dict, list)):
                return True
        waiting += inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
    return False


@lru_cache(maxsize=64)
def _names_in_calls(api: str) -> frozenset[str]:
    from loop_core.wire import wire  # here, as it imports the decoders

    rows = wire(api).reads
    others = {step for row in rows if not row.fact.startswith("call") for step in row.pattern.split("/")}
    # A value inside arguments has a name that also stands elsewhere, such as Gemini's `stringValue`.
    return frozenset(step for row in rows if row.fact == "call.arguments" for step in row.pattern.split("/")) - others


def _misfits(node: Node, value: Any, path: JsonPath) -> Iterator[tuple[Node, JsonPath]]:
    if isinstance(value, dict) and node.members:
        for name, inner in node.members.items():
            if value.get(name):
                yield from _misfits(inner, value[name], (*path, name))
    elif isinstance(value, list) and node.items is not None:
        for number, item in enumerate(value):
            yield from _misfits(node.items, item, (*path, number))
    elif value and not _is_read(node, value):
        yield node, path


def _reads_any(node: Node, value: Any, facts: Collection[str]) -> bool:
    """Whether any value at a place or below it is read and becomes one of these facts."""
    if isinstance(value, dict):
        for name, inner in node.members.items():
            if value.get(name) and _reads_any(inner, value[name], facts):
                return True
    elif isinstance(value, list) and node.items is not None:
        return any(_reads_any(node.items, item, facts) for item in value)
    return bool(value) and any(row.fact in facts for row in node.rows)


def _listed_calls(node: Node, value: Any, path: JsonPath) -> Iterator[tuple[Node, Any, JsonPath]]:
    """Every item of a list of calls at a place or below it, with its place."""
    if isinstance(value, dict):
        for name, inner in node.members.items():
            if value.get(name):
                yield from _listed_calls(inner, value[name], (*path, name))
    elif isinstance(value, list) and node.items is not None:
        for number, item in enumerate(value):
            if _is_of_call(node.items):
                yield node.items, item, (*path, number)
            else:
                yield from _listed_calls(node.items, item, (*path, number))


def _holds_stray_call(api: str, node: Node, value: Any) -> bool:
    """Whether a part of a call stands where no row reads anything, as in an event that a server wrapped."""
    if isinstance(value, list) and node.items is not None:
        return any(_holds_stray_call(api, node.items, item) for item in value)
    if not isinstance(value, dict):
        return False
    beside = any(row.fact == "call.arguments" for inner in node.members.values() for row in inner.rows)
    names = _names_in_calls(api) | (value.keys() if beside and _is_of_call(node) else frozenset())
    return any(_holds_stray_call(api, node.members[name], inner) if name in node.members
               else _holds_any(names, {name: inner}) for name, inner in value.items())


def _is_of_call(node: Node) -> bool:
    """Whether all that is read at a place or below it belongs to a call."""
    inner = [*node.members.values(), *filter(None, [node.items])]
    return all(row.fact.startswith("call.") for row in node.rows) and all(map(_is_of_call, inner))


def _holds_call(node: Node) -> bool:
    """Whether a name or arguments of a call stand at a place or below it; without an id no part of the call is lost."""
    inner = [*node.members.values(), *filter(None, [node.items])]
    return any(row.fact in _PARTS for row in node.rows) or any(map(_holds_call, inner))


def _is_read(node: Node, value: Any) -> bool:
    """Whether a row reads a value of this type that is neither an object with members nor a list."""
    if isinstance(value, str):
        return any(row.fact not in _VALUES or not node.members for row in node.rows)
    # Events that a row names hold pieces of a text.
    return not node.members and any(row.fact in _VALUES and not row.when for row in node.rows)
