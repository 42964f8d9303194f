"""A tool's schema: is it usable, and does a value satisfy it?

OpenAPI dialects (Gemini's `parameters`) are normalised first. A schema that cannot be compiled, or that refers to
another document, is unusable: nothing is fetched. jsonschema-rs is imported when a complete call first meets a schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from loop_core.values import CallKind, Tool

_KEPT_AS_IS = frozenset({"enum", "const", "default", "example", "examples", "required"})
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
"""Whole numbers that a protobuf JSON (Gemini's Schema) spells as strings."""


def problems(tool: Tool | None, value: Mapping[str, Any]) -> tuple[str, ...]:
    """What is wrong with `value` under the tool's schema, a line each with its place; empty where nothing is.

    A tool without a schema, or with an unusable one, finds nothing wrong: `usable` tells the cases apart.
    """
    validator = _validator(tool) if tool is not None else None
    if validator is None:
        return ()
    return tuple(
        f"{'/'.join(str(key) for key in error.instance_path) or 'arguments'}: {error.message}"
        for error in validator.iter_errors(value)
    )


def usable(tool: Tool | None) -> bool:
    """Whether the tool's schema is known and can be checked against."""
    return tool is not None and _validator(tool) is not None


COMPOSED = frozenset({
    "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas",
    "patternProperties",
})
"""Keywords behind which properties may stand that `properties` does not show."""
PARAMETERS = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema")
"""Where the formats declare what a function takes."""


def takes_nothing(tool: Tool | None) -> bool:
    """Whether no arguments can only mean `{}`: the tool is declared without any parameter.

    An optional parameter is enough to say no: it may have been the one that was lost.
    """
    if tool is None or tool.kind is not CallKind.FUNCTION:
        return False
    declared = tool.schema
    if declared is None:
        return tool.declared is not None and _leaves_out(tool.declared)
    if not COMPOSED.isdisjoint(declared) or declared.get("additionalProperties") not in (None, False):
        return False
    return not declared.get("properties") and usable(tool) and not problems(tool, {})


def lacks(tool: Tool | None, value: Mapping[str, Any] | None) -> str:
    """What complete arguments lack, in words: members that the schema requires, or all where the tool takes any."""
    if value is None:
        return ""
    if not value:
        return "" if takes_nothing(tool) else "are empty"
    required = tool.schema.get("required") if tool is not None and tool.schema is not None else None
    missing = [str(name) for name in required if name not in value] if isinstance(required, (list, tuple)) else []
    return f"lack {', '.join(missing)}" if missing else ""


def _leaves_out(declared: Mapping[str, Any]) -> bool:
    """Whether a declaration is that of a plain function and says nothing of parameters; a tool that is known by its
    type alone (Anthropic's `bash_20250124`) has parameters that nobody declares."""
    inner = declared.get("function") or declared.get("toolSpec") or declared
    if declared.get("type") not in (None, "function", "custom") or not isinstance(inner, Mapping):
        return False
    return all(inner.get(name) is None for name in PARAMETERS)


def normalised(schema: Any) -> Any:
    """An OpenAPI-dialect schema as JSON Schema: lower-case types, `nullable` as a union with null."""
    if isinstance(schema, list):
        return [normalised(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    nullable = schema.get("nullable") is True
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("nullable", "format", "propertyOrdering"):
            continue
        if key == "type" and isinstance(value, str):
            if value.lower() != "type_unspecified":
                found[key] = [value.lower(), "null"] if nullable else value.lower()
        elif key == "enum" and nullable and isinstance(value, list):
            found[key] = [*value, None]
        elif key in _COUNTS and isinstance(value, str) and value.isdecimal():
            found[key] = int(value)
        elif key == "properties" and isinstance(value, Mapping):
            found[key] = {name: normalised(inner) for name, inner in value.items()}
        else:
            found[key] = value if key in _KEPT_AS_IS else normalised(value)
    return found


_COMPILED: dict[int, tuple[Mapping[str, Any], str, Any]] = {}
"""Validators by the identity of the schema that they were compiled from, which is kept so that the identity holds."""
_MOST = 512


def _validator(tool: Tool) -> Any:
    """The compiled schema of a tool; None where it cannot be used. A declaration is compiled once, not once a call."""
    declared = tool.schema
    if declared is None:
        return None
    known = _COMPILED.get(id(declared))
    if known is not None and known[0] is declared and known[1] == tool.dialect:
        return known[2]
    plain = normalised(declared) if tool.dialect == "openapi" else declared
    made = _compiled(json.dumps(plain, sort_keys=True, default=_plain))
    if len(_COMPILED) >= _MOST:
        _COMPILED.clear()
    _COMPILED[id(declared)] = (declared, tool.dialect, made)
    return made


@lru_cache(maxsize=512)
def _compiled(text: str) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(json.loads(text), retriever=_refuse)
    except (ValueError, TypeError, jsonschema_rs.ReferencingError):  # its ValidationError is a ValueError
        return None


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri}: a schema outside the request is not fetched")
