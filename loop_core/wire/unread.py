"""Finds values at places that a format reads, but of a type that it does not read there.

Otherwise such a value would be lost silently. The format's rows (`loop_core.wire.reads`) give the places and types: a
place with members is an object, one with items a list, and one that becomes a fact a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from loop_core.json_parser import JsonPath
from loop_core.wire.reads import Node, event_types, plan_of

UNREAD = "{} has a value of the wrong type, which is not read"
"""The finding about a value that may have held a part of the answer."""
_CONTENT = frozenset({"text", "reasoning", "refusal", "call.id", "call.name", "call.arguments", "call.value"})
"""The facts that make up an answer; a wrong type of another fact loses no part of it."""
_VALUES = frozenset({"call.arguments", "call.value"})
"""The facts that may have any type: arguments may be sent as JSON, and the gate holds other values than objects. A
place that also has members is an object: a provider's call, all of which is its arguments."""


def unread_values(api: str, event: Mapping[str, Any], name: str | None = None) -> Iterator[tuple[str, JsonPath]]:
    """Yields the finding and the path of each value of an event or whole body whose type no row of the format reads."""
    plain, plans = _plans(api)
    kind = name or event.get("type")
    place = plans.get(kind, plain) if isinstance(kind, str) else plain
    path: JsonPath = ()
    value: Any = event
    if name is None and len(event) == 1:  # an event under its name, in an object
        (only,) = event
        if only in plans and isinstance(event[only], Mapping):
            place, path, value = plans[only], (only,), event[only]
    if not _fits(place, value):
        for at in _misfits(place, value, path):
            yield UNREAD.format(next(step for step in reversed(at) if isinstance(step, str))), at


class _Place(NamedTuple):
    """The types in which the values at a place are read."""

    text: bool
    any_type: bool
    members: Mapping[str, _Place]
    items: _Place | None


@lru_cache(maxsize=64)
def _plans(api: str) -> tuple[_Place, Mapping[str, _Place]]:
    from loop_core.wire import wire  # here, as it imports the decoders

    rows = tuple(row for row in wire(api).reads if row.fact in _CONTENT)
    return _place(plan_of(rows, "")), {when: _place(plan_of(rows, when)) for when in event_types(rows)}


def _place(node: Node) -> _Place:
    # Events that a row names hold pieces of a text.
    any_type = not node.members and any(row.fact in _VALUES and not row.when for row in node.rows)
    text = any(row.fact not in _VALUES or not node.members for row in node.rows)
    return _Place(text, any_type, {name: _place(each) for name, each in node.members.items()},
                  None if node.items is None else _place(node.items))


def _fits(place: _Place, value: Any) -> bool:
    """Whether each value below has a type that is read, or is empty."""
    kind = type(value)
    if not value or (kind is str and place.text):
        return True
    if kind is dict and place.members:
        members = place.members
        for name, each in value.items():
            if each and name in members:
                inner = members[name]
                if not (inner.text and type(each) is str) and not _fits(inner, each):
                    return False
        return True
    if kind is list and place.items is not None:
        return all(_fits(place.items, item) for item in value)
    return place.any_type


def _misfits(place: _Place, value: Any, path: JsonPath) -> Iterator[JsonPath]:
    if isinstance(value, dict) and place.members:
        for name, inner in place.members.items():
            if name in value:
                yield from _misfits(inner, value[name], (*path, name))
    elif isinstance(value, list) and place.items is not None:
        for number, item in enumerate(value):
            yield from _misfits(place.items, item, (*path, number))
    elif not _fits(place, value):
        yield path
