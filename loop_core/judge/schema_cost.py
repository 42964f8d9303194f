"""Counts what checking arguments against a schema takes, before it is done: nothing can interrupt the validator.

Schemas and arguments come from outside. With references, a few lines of a schema apply their parts to one value
exponentially often. The count follows the schema as a validator does, but counts equal pairs of schema and value once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

MOST_CHECKS = 20_000
"""The number of times that parts of a schema may be applied to parts of a value. A call needs some hundreds."""
MOST_REPEATS = 50
"""The number of times that each part may be applied to the same part of a value on average, where more checks are made:
large arguments need many, but hardly any twice."""
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
        self._resources: dict[int, Any] = {}
        self._read(root, root)

    def _read(self, part: Any, resource: Any) -> None:
        if isinstance(part, dict):
            for keyword in ("$id", "id"):
                if isinstance(part.get(keyword), str):
                    resource = self._names[part[keyword]] = part
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(part.get(keyword), str):
                    self._names[f"#{part[keyword]}"] = part
            self._resources[id(part)] = resource
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            self._read(inner, resource)

    def follow(self, reference: Any, part: dict[str, Any]) -> Any:
        """The schema that a reference in a part leads to; None if it is not in this document."""
        base, _, fragment = str(reference).partition("#")
        found = self._names.get(base) if base else self._resources[id(part)]
        if not fragment.startswith("/"):
            return self._names.get(f"#{fragment}") if fragment else found
        for step in unquote(fragment)[1:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(key)] if key.isdecimal() and len(key) < 10 and int(key) < len(found) else None
            else:
                found = found.get(key) if isinstance(found, dict) else None
        return found


def is_costly(root: Any, value: Any) -> bool:
    """Whether a validator would apply parts of the schema to parts of the value too often."""
    counts: dict[tuple[int, int], int] = {}

    def count(schema: Any, value: Any) -> int:
        key = id(schema), id(value)
        if key not in counts:
            counts[key] = 0  # a reference that leads back to itself adds nothing
            parts = _applied(schema, value, document) if isinstance(schema, dict) else ()
            counts[key] = 1 + sum([count(part, inner) for part, inner in parts])
        return counts[key]

    try:
        document = _Document(root)
        return count(root, value) > max(MOST_CHECKS, MOST_REPEATS * len(counts))
    except RecursionError:
        return True


def _applied(schema: dict[str, Any], value: Any, document: _Document) -> Iterator[tuple[Any, Any]]:
    """The parts that a schema applies to a value and to its members or elements, each with what it is applied to."""
    for name in _ON_THE_VALUE:
        if name in schema:
            yield document.follow(schema[name], schema) if name in REFERENCES else schema[name], value
    for name in _ALL_ON_THE_VALUE:
        inner = schema.get(name, ())
        yield from ((part, value) for part in (inner.values() if isinstance(inner, dict) else inner))
    if isinstance(value, dict):
        declared, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for key, member in value.items():
            parts = (declared.get(key), *patterns.values(), *map(schema.get, _ON_MEMBERS))
            yield from ((part, member) for part in parts)
    elif isinstance(value, list):
        for place, element in enumerate(value):
            for part in (schema.get("prefixItems"), *map(schema.get, _ON_ELEMENTS)):
                yield part[place] if isinstance(part, list) and place < len(part) else part, element
