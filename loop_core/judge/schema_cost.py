"""Counts how often a validator would apply parts of a schema to arguments, before it does: nothing can interrupt it.

Schemas and arguments come from outside. With references, a few lines of a schema apply their parts to one value
exponentially often. The count follows the schema as a validator does, but counts equal pairs of schema and value once.
It also counts the characters that patterns are matched with, since the time of a pattern grows with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

MOST_CHECKS = 20_000
"""The number of times that parts of a schema may be applied to parts of a value. A call needs some hundreds."""
MOST_REPEATS = 50
"""The number of times that each part may be applied to the same part of a value on average, where more checks are made:
large arguments need many, but hardly any twice."""


class PatternBound(NamedTuple):
    """Characters of arguments that may be matched with the patterns of a schema, if its patterns are within limits."""

    characters: int
    size: int
    """The largest size of a compiled pattern in bytes; repetitions with a bound make it large."""
    steps: int = 0
    """The number of backtracking steps after which a pattern, and the arguments with it, is given up; 0 for a bound of
    patterns without lookaround and references, which need none."""


# Each row takes a few seconds at most, with patterns and texts built to take long (jsonschema-rs 0.61.0).
PATTERN_BOUNDS: tuple[PatternBound, ...] = (
    PatternBound(200_000, 5_000),
    PatternBound(50_000, 50_000),
    PatternBound(2_000, 500_000),
    PatternBound(1_000, 2_000_000),
    PatternBound(400, 10_000_000),
    PatternBound(300, 50_000, 500),
    PatternBound(1_000, 5_000, 600),
    PatternBound(1_000, 60_000, 60),
    PatternBound(10_000, 5_000, 60),
    PatternBound(300, 500_000, 60),
)
"""The bounds in the order in which they are tried: the first that fits both the arguments and the patterns is used."""
TOO_COSTLY = "arguments: a check against this schema, whose references multiply its parts, would take too long"
"""The problem of arguments that are not checked (`is_costly`)."""
TOO_COSTLY_PATTERNS = "arguments: they are too long to be matched with the patterns of this schema in time"
"""The problem of arguments that are not checked because no row of `PATTERN_BOUNDS` fits."""
TOO_DEEP = "arguments: they are nested too deeply to be checked against this schema"
"""The problem of arguments with more levels than the validator reads (jsonschema-rs 0.61.0: 255)."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
"""The keywords by which a schema refers to another one."""
_ON_THE_VALUE = ("not", "if", "then", "else", *REFERENCES)
_ALL_ON_THE_VALUE = ("allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies")
_ON_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_ON_ELEMENTS = ("items", "additionalItems", "unevaluatedItems", "contains")


class _Document:
    """A schema with what its references need: the parts that have names, and the resource in which each part is."""

    def __init__(self, root: Any) -> None:
        self._names: dict[str, Any] = {}
        self._resources: dict[int, tuple[Any, str]] = {}
        """Identity of a part -> the resource in which it is, and the address of that resource."""
        self._names[_ROOT] = root
        self._read(root, root, _ROOT)

    def _read(self, part: Any, resource: Any, address: str) -> None:
        if isinstance(part, dict):
            for keyword in ("$id", "id"):
                name = part.get(keyword)
                if isinstance(name, str) and not name.startswith("#"):
                    resource, address = part, _join(address, name.removesuffix("#"))
                    self._names[address] = part
            for keyword in ("$anchor", "$dynamicAnchor", "$id", "id"):  # an older schema has its anchors in its ids
                if isinstance(part.get(keyword), str):
                    self._names[f"{address}#{part[keyword].removeprefix('#')}"] = part
            self._resources[id(part)] = resource, address
        for inner in _values(part):
            self._read(inner, resource, address)

    def follow(self, reference: Any, part: dict[str, Any]) -> Any:
        """The schema that a reference in a part points to; None if it is not in this document."""
        base, _, fragment = str(reference).partition("#")
        found, address = self._resources[id(part)]
        if base:
            address = _join(address, base)
            found = self._names.get(address)
        if not fragment.startswith("/"):
            return self._names.get(f"{address}#{fragment}") if fragment else found
        for step in unquote(fragment)[1:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(key)] if key.isdecimal() and len(key) < 10 and int(key) < len(found) else None
            else:
                found = found.get(key) if isinstance(found, dict) else None
        return found


_ROOT = "http:///"
"""The address of a schema without one. The validator's own is `json-schema:///`, to which urllib joins nothing."""
_OWN = "json-schema:"


def _join(address: str, reference: str) -> str:
    """The absolute form of a reference in a resource; the reference itself if it is not an address."""
    try:
        return urljoin(address, f"http:{reference.removeprefix(_OWN)}" if reference.startswith(_OWN) else reference)
    except ValueError:
        return reference


def _values(part: Any) -> Iterable[Any]:
    """The members of an object or the elements of a list; nothing for any other value, of any type, since not every
    keyword is checked in every dialect."""
    return part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


class _Application(NamedTuple):
    """A part of a schema, with a part of a value that it is applied to."""

    schema: dict[str, Any]
    value: Any
    place: tuple[int, Any]
    """The identity of the part of the value: that of its container, and its name or index there. Its own does not do,
    because equal numbers and short strings are one object in Python."""


def is_costly(root: Any, value: Any) -> bool:
    """Whether a validator would apply parts of the schema to parts of the value too often."""
    try:
        checks, different = _sum(root, value, lambda each: 1)
    except RecursionError:
        return True
    return checks > max(MOST_CHECKS, MOST_REPEATS * different)


def pattern_characters(root: Any, value: Any) -> float:
    """The number of characters that a validator would match with the patterns of the schema, repetitions included;
    infinite if the schema or the value is nested too deeply to count."""
    try:
        return _sum(root, value, _pattern_characters)[0]
    except RecursionError:
        return math.inf


def _pattern_characters(each: _Application) -> int:
    schema, value, _ = each
    found = len(value) if isinstance(value, str) and "pattern" in schema else 0
    patterns = schema.get("patternProperties")
    if isinstance(value, dict) and isinstance(patterns, dict):
        found += len(patterns) * sum(map(len, value))
    return found


def _sum(root: Any, value: Any, cost: Callable[[_Application], int]) -> tuple[int, int]:
    """The sum of the costs of all applications of a schema to a value, and the number of different applications."""
    sums: dict[tuple[int, tuple[int, Any]], int] = {}

    def add(each: _Application) -> int:
        key = id(each.schema), each.place
        if key not in sums:
            sums[key] = 0  # a reference that leads back to itself adds nothing
            sums[key] = cost(each) + sum([add(inner) for inner in _applications(each, document)])
        return sums[key]

    if not isinstance(root, dict):
        return 0, 0
    document = _Document(root)
    return add(_Application(root, value, (0, None))), len(sums)


def _applications(each: _Application, document: _Document) -> Iterator[_Application]:
    """What a schema applies to a value and to its members or elements. A schema of `true` or `false` costs nothing."""
    for part, value, place in _parts(each, document):
        if isinstance(part, dict):
            yield _Application(part, value, place)


def _parts(each: _Application, document: _Document) -> Iterator[tuple[Any, Any, tuple[int, Any]]]:
    schema, value, place = each
    for name in _ON_THE_VALUE:
        if name in schema:
            yield document.follow(schema[name], schema) if name in REFERENCES else schema[name], value, place
    for name in _ALL_ON_THE_VALUE:
        for part in _values(schema.get(name)):
            yield part, value, place
    if isinstance(value, dict):
        declared, patterns = schema.get("properties"), tuple(_values(schema.get("patternProperties")))
        for key, member in value.items():
            yield schema.get("propertyNames"), key, (id(value), (key,))
            own = declared.get(key) if isinstance(declared, dict) else None
            for part in (own, *patterns, *map(schema.get, _ON_MEMBERS)):
                yield part, member, (id(value), key)
    elif isinstance(value, list):
        for number, element in enumerate(value):
            for part in (schema.get("prefixItems"), *map(schema.get, _ON_ELEMENTS)):
                one = part[number] if isinstance(part, list) and number < len(part) else part
                yield one, element, (id(value), number)
