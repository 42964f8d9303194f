"""Which JSON Schema Gemini takes in a declaration: what it does not, with its place, and a schema without that.

Two fields take two languages: `parameters` a part of OpenAPI 3.0, `parametersJsonSchema` more of JSON Schema. Nothing
is reduced unasked, since a reduced schema allows more than the tool does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from loop_core.values import Tool

_COMMON = frozenset({
    "type", "format", "title", "description", "default", "enum", "items", "minItems", "maxItems", "properties",
    "required", "minProperties", "maxProperties", "minimum", "maximum", "minLength", "maxLength", "pattern",
    "propertyOrdering",
})
TAKES: Mapping[str, frozenset[str]] = {
    # google-genai 3.4.0 types.py Schema, without what seed 002 saw refused (anyOf, additionalProperties, $ref).
    "openapi": _COMMON | {"nullable", "example"},
    # google-genai 3.4.0 types.py JSONSchema; parametersJsonSchema documents additionalProperties and propertyOrdering.
    "json_schema": _COMMON | {"additionalProperties", "anyOf", "oneOf", "uniqueItems", "$ref", "$defs"},
}
"""Dialect -> the keywords that it has."""
_SNAKE: Mapping[str, str] = {
    "min_items": "minItems", "max_items": "maxItems", "min_properties": "minProperties", "min_length": "minLength",
    "max_properties": "maxProperties", "max_length": "maxLength", "property_ordering": "propertyOrdering",
    "additional_properties": "additionalProperties", "any_of": "anyOf", "one_of": "oneOf",
    "unique_items": "uniqueItems",
}
"""The spelling of the protocol buffers."""
_NAMED = ("properties", "$defs")
_SEVERAL = ("anyOf", "oneOf", "allOf")
_NUMBER = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})


class Problem(NamedTuple):
    """A keyword that is not taken: the tool, and the JSON pointer inside its schema."""

    tool: str
    pointer: str
    keyword: str

    def __str__(self) -> str:
        return f"the schema of {self.tool} at {self.pointer}: {self.keyword} is not taken"


def problems(tool: Tool) -> tuple[Problem, ...]:
    """What Gemini does not take in this tool's schema, in the order in which it stands there."""
    if tool.schema is None:
        return ()
    return tuple(Problem(tool.name, pointer, word) for pointer, word in _wrong(tool.schema, tool.dialect, ""))


def reduce_schema(tool: Tool) -> Tool:
    """The tool with a schema that Gemini takes: what cannot be said is left out, so that it allows more.

    `const` becomes an enum of one, alternatives that are all constants an enum, a union with null `nullable`, and a
    `$ref` what it refers to.
    """
    if tool.schema is None or not problems(tool):
        return tool
    made = _less(tool.schema, tool.dialect, tool.schema, ())
    return tool._replace(schema=made, declaration=None)


def _wrong(schema: Any, dialect: str, pointer: str) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        word, at = _SNAKE.get(key, key), f"{pointer}/{_escaped(key)}"
        if word not in TAKES[dialect]:
            yield at, key
        elif word == "type" and isinstance(value, list) and dialect == "openapi":
            yield at, "a list of types"
        elif word in _NAMED and isinstance(value, Mapping):
            for name, inner in value.items():
                yield from _wrong(inner, dialect, f"{at}/{_escaped(name)}")
        elif word in _SEVERAL and isinstance(value, list):
            for number, inner in enumerate(value):
                yield from _wrong(inner, dialect, f"{at}/{number}")
        elif word in ("items", "additionalProperties"):
            yield from _wrong(value, dialect, at)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _less(schema: Any, dialect: str, root: Mapping[str, Any], seen: tuple[str, ...]) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    takes = TAKES[dialect]
    schema = _simpler(schema, takes, dialect, root, seen)
    reference = schema.get("$ref")
    if isinstance(reference, str) and "$ref" not in takes:
        seen = (*seen, reference)
        target = None if reference in seen[:-1] else _target(root, reference)
        schema = {**(target or {}), **{key: value for key, value in schema.items() if key != "$ref"}}
        schema = _simpler(schema, takes, dialect, root, seen)
    made: dict[str, Any] = {}
    for key, value in schema.items():
        word = _SNAKE.get(key, key)
        if word not in takes:
            continue
        if word in _NAMED and isinstance(value, Mapping):
            made[key] = {name: _less(inner, dialect, root, seen) for name, inner in value.items()}
        elif word in _SEVERAL and isinstance(value, list):
            made[key] = [_less(inner, dialect, root, seen) for inner in value]
        else:
            made[key] = _less(value, dialect, root, seen) if word in ("items", "additionalProperties") else value
    return made


def _simpler(
    schema: Mapping[str, Any], takes: frozenset[str], dialect: str, root: Mapping[str, Any], seen: tuple[str, ...]
) -> Mapping[str, Any]:
    """The same in the keywords that are left, where there is a way to say it."""
    made = dict(schema)
    if "const" in made and "const" not in takes:
        made.setdefault("enum", [made["const"]])
        made.setdefault("type", _type_of(made["const"]))
    for word in _SEVERAL:
        options = made.get(word)
        if word in takes or not isinstance(options, list):
            continue
        kept = [option for option in options if option != {"type": "null"}]
        constants = [value for option in kept for value in _constants(option)]
        if kept and all(_constants(option) for option in kept):
            made |= {"enum": constants, "type": made.get("type") or _type_of(constants[0])}
        elif len(kept) == 1 and isinstance(kept[0], Mapping):
            made = {**kept[0], **{key: value for key, value in made.items() if key != word}}
        if len(kept) < len(options) and "nullable" in takes:
            made["nullable"] = True
    kinds = made.get("type")
    if isinstance(kinds, list) and dialect == "openapi":
        plain = [kind for kind in kinds if kind != "null"]
        made["type"] = plain[0] if len(plain) == 1 else "string"
        if len(plain) < len(kinds):
            made["nullable"] = True
    return made


def _constants(option: Any) -> list[Any]:
    if not isinstance(option, Mapping):
        return []
    listed = option.get("enum")
    return [option["const"]] if "const" in option else listed if isinstance(listed, list) else []


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return names.get(type(value), "object")


def _target(root: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    """What a reference inside the same schema stands for; None where it leads nowhere."""
    found: Any = root
    if not reference.startswith("#"):
        return None
    for key in reference[1:].split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None
