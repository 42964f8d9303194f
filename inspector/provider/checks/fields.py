"""The members of a request body as rows: where they stand, what they may be, and the first one that is otherwise.

A path names a member: `messages[].role`. `[]` goes through a list, `[name=value]` through those elements of a list (or
the one object) whose member is so, `[!name]` through those that have none of that name. Knows no format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Where = tuple[str | int, ...]
Spellings = Callable[[str], Sequence[str]]
"""A name -> all the names under which a member may stand."""


class Flaw(StrEnum):
    """What is wrong with a member."""

    MISSING = "missing"
    TYPE = "type"
    VALUE = "value"
    """It is none of the values that there are."""
    LOW = "low"
    HIGH = "high"
    EMPTY = "empty"
    """A list has too few elements."""
    LONG = "long"
    """A list has too many."""
    UNKNOWN = "unknown"
    """No member has this name."""
    UNSERVED = "unserved"
    """It asks for what a scripted answer cannot give; nothing of it is passed over in silence."""


@dataclass(frozen=True, slots=True)
class Field:
    """One member."""

    path: str
    types: str = ""
    """Names of JSON types, with `|` between them; empty: any."""
    required: bool = False
    among: tuple[str, ...] = ()
    """All the values that a text may have."""
    least: float | None = None
    """Of a number, or of the elements of a list."""
    most: float | None = None
    only: tuple[Any, ...] | None = None
    """The values beside null that ask for nothing; any other is refused."""
    hint: str = ""
    """What to do instead."""
    code: str = ""
    """The server's code, where it is not that of the flaw."""


@dataclass(frozen=True, slots=True)
class Found:
    """A member that is not as it has to be."""

    flaw: Flaw
    where: Where
    field: Field
    value: Any = None


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
"""JSON type -> whether a value is one."""
_ABSENT = object()
_STEP = re.compile(r"\[[^\]]*\]|[^.\[]+")


def plain(name: str) -> Sequence[str]:
    """Names that are spelled in one way."""
    return (name,)


def first(body: Mapping[str, Any], fields: Iterable[Field], spellings: Spellings = plain) -> Found | None:
    """The first member that is not as it has to be, in the order of the rows."""
    for field in fields:
        for where, value in _places(body, _STEP.findall(field.path), (), spellings):
            flaw = _flaw(field, value)
            if flaw is not None:
                return Found(flaw, where, field, None if value is _ABSENT else value)
    return None


def unknown(body: Mapping[str, Any], path: str, names: Iterable[str]) -> Found | None:
    """The first member of the object at `path` whose name is none of these."""
    known = frozenset(names)
    for where, value in _places(body, _STEP.findall(path), (), plain):
        if isinstance(value, Mapping):
            odd = next((str(name) for name in value if name not in known), None)
            if odd is not None:
                return Found(Flaw.UNKNOWN, (*where, odd), Field(path), value[odd])
    return None


def _places(value: Any, steps: Sequence[str], where: Where, spellings: Spellings) -> Iterator[tuple[Where, Any]]:
    """Every place to which a path leads, and what stands there."""
    if not steps:
        yield where, value
        return
    step, rest = steps[0], steps[1:]
    if step.startswith("["):
        inside = enumerate(value) if isinstance(value, list) else [(None, value)] if step != "[]" else []
        for number, item in inside:
            if step == "[]" or _fits(item, step[1:-1]):
                yield from _places(item, rest, where if number is None else (*where, number), spellings)
        return
    if not isinstance(value, Mapping):
        return
    name = next((name for name in spellings(step) if name in value), None)
    if name is not None:
        yield from _places(value[name], rest, (*where, name), spellings)
    elif not rest:
        yield (*where, step), _ABSENT


def _fits(item: Any, condition: str) -> bool:
    if not isinstance(item, Mapping):
        return False
    if condition.startswith("!"):
        return condition[1:] not in item
    name, _, value = condition.partition("=")
    return bool(item.get(name) == value)


def _flaw(field: Field, value: Any) -> Flaw | None:
    if value is _ABSENT:
        return Flaw.MISSING if field.required else None
    if value is None:
        return Flaw.TYPE if field.required else None
    kinds = field.types.split("|") if field.types else ()
    if kinds and not any(TYPES[kind](value) for kind in kinds):
        return Flaw.TYPE
    if field.only is not None and value not in field.only:
        return Flaw.UNSERVED
    if field.among and isinstance(value, str) and value not in field.among:
        return Flaw.VALUE
    size = len(value) if isinstance(value, list) else value if type(value) in (int, float) else None
    if size is not None and field.least is not None and size < field.least:
        return Flaw.EMPTY if isinstance(value, list) else Flaw.LOW
    if size is not None and field.most is not None and not size <= field.most:
        return Flaw.LONG if isinstance(value, list) else Flaw.HIGH
    return None


# -- in words --------------------------------------------------------------------------------------------------------


def says(found: Found) -> str:
    """What is wrong, in words that all formats share."""
    field, value = found.field, _shown(found.value)
    kinds = " or ".join(field.types.split("|"))
    words = {
        Flaw.MISSING: f"expected {kinds or 'a value'}, and it is missing",
        Flaw.TYPE: f"expected {kinds}, and it is {_kind(found.value)}",
        Flaw.VALUE: f"expected one of {', '.join(field.among)}, and it is {value}",
        Flaw.LOW: f"expected {field.least} or more, and it is {value}",
        Flaw.HIGH: f"expected {field.most} or less, and it is {value}",
        Flaw.EMPTY: f"expected {field.least} element or more, and it is empty",
        Flaw.LONG: f"expected {field.most} elements or less",
        Flaw.UNKNOWN: "no member of this name is permitted",
        Flaw.UNSERVED: "this is not served here",
    }[found.flaw]
    return f"{words}; {field.hint}" if field.hint else words


def _kind(value: Any) -> str:
    return "null" if value is None else next(name for name, fits in TYPES.items() if fits(value))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def brackets(where: Where) -> str:
    """`messages[0].role`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in where).lstrip(".")


def dots(where: Where) -> str:
    """`messages.0.role`."""
    return ".".join(map(str, where))
