"""Checks the arguments of tool calls: parses raw arguments strictly, and validates values against a tool's schema.

OpenAPI dialects (Gemini's `parameters`) are normalised first. A schema that cannot be compiled, or that refers to
another document, is unusable: nothing is fetched. jsonschema-rs is imported when a complete call first meets a schema.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from loop_core.json_parser import JsonPath, from_json_prefix
from loop_core.judge import schema_cost
from loop_core.values import ArgsForm, CallKind, Tool, ToolCall

_VERBATIM_KEYWORDS = frozenset({"enum", "const", "default", "example", "examples", "required"})
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
"""Keywords with integers that the JSON of protocol buffers spells as strings (Gemini's Schema)."""


class Violation(NamedTuple):
    """A schema violation: the value's path, the keyword (empty if nothing was checked), and a line for people."""

    place: JsonPath
    keyword: str
    line: str


def violations(tool: Tool | None, value: Mapping[str, Any]) -> tuple[Violation, ...]:
    """Returns how `value` violates the tool's schema; empty if it is valid, or if no usable schema is known."""
    if tool is None or (found := _validator(tool)) is None:
        return ()
    validator, root, text, several = found
    if several and schema_cost.is_costly(root, value):
        return (Violation((), "", schema_cost.TOO_COSTLY),)
    characters = schema_cost.pattern_characters(root, value) if text else 0
    if characters:
        rows = (row for row, bound in enumerate(schema_cost.PATTERN_BOUNDS) if characters <= bound.characters)
        validator = next((each for row in rows if (each := _compile_bounded(text, row)) is not None), None)
        if validator is None:
            return (Violation((), "", schema_cost.TOO_COSTLY_PATTERNS),)
    try:
        return tuple(Violation(tuple(error.instance_path), error.kind.name,
                               f"{'/'.join(map(str, error.instance_path)) or 'arguments'}: {error.message}")
                     for error in validator.iter_errors(value))
    except ValueError:  # the validator permits fewer levels than the parser
        return (Violation((), "", schema_cost.TOO_DEEP),)


def schema_problems(tool: Tool | None, value: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the lines of the violations; `is_usable` tells whether there is a schema."""
    return tuple(violation.line for violation in violations(tool, value))


def is_usable(tool: Tool | None) -> bool:
    """Whether the tool's schema is known and can be used for validation."""
    return tool is not None and _validator(tool) is not None


COMPOSING_KEYWORDS = frozenset({
    "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas",
    "patternProperties",
})
"""Keywords that may add properties which `properties` does not list."""
PARAMETERS = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema")
"""The members of a declaration in which the formats describe the parameters of a function."""


def takes_no_arguments(tool: Tool | None) -> bool:
    """Whether missing arguments can only mean `{}`: the tool has no parameter. An optional one may have been lost."""
    if tool is None or tool.kind is not CallKind.FUNCTION:
        return False
    declared = tool.schema
    if declared is None:
        return tool.declaration is not None and _declares_no_parameters(tool.declaration)
    if not COMPOSING_KEYWORDS.isdisjoint(declared) or declared.get("additionalProperties") not in (None, False):
        return False
    return not declared.get("properties") and is_usable(tool) and not schema_problems(tool, {})


def shortcoming(tool: Tool | None, value: Mapping[str, Any] | None) -> str:
    """Returns what complete arguments lack, as a predicate: `are empty` or `lack NAME, …`; empty if nothing."""
    if value is None:
        return ""
    if not value:
        return "" if takes_no_arguments(tool) else "are empty"
    required = tool.schema.get("required") if tool is not None and tool.schema is not None else None
    missing = [str(name) for name in required if name not in value] if isinstance(required, (list, tuple)) else []
    return f"lack {', '.join(missing)}" if missing else ""


def _declares_no_parameters(declared: Mapping[str, Any]) -> bool:
    """Whether a declaration is that of a plain function without parameters. A tool that is known by its type alone
    (Anthropic's `bash_20250124`) has parameters that the request does not declare."""
    inner = declared.get("function") or declared.get("toolSpec") or declared
    if declared.get("type") not in (None, "function", "custom") or not isinstance(inner, Mapping):
        return False
    return all(inner.get(name) is None for name in PARAMETERS)


def json_schema_of(schema: Any) -> Any:
    """A schema in OpenAPI's dialect as JSON Schema: lower-case types, and `nullable` as a union with null."""
    if isinstance(schema, list):
        return [json_schema_of(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    nullable = schema.get("nullable") is True
    found: dict[str, Any] = {}
    for key, value in schema.items():
        # OpenAPI has formats of its own (int32, enum), and propertyOrdering is about order alone (Gemini).
        if key in ("nullable", "format", "propertyOrdering"):
            continue
        if key == "type" and isinstance(value, str):
            if value.lower() != "type_unspecified":  # the enum's default in protocol buffers: any type
                found[key] = [value.lower(), "null"] if nullable else value.lower()
        elif key == "enum" and nullable and isinstance(value, list):
            found[key] = [*value, None]
        elif key in _COUNTS and isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value):
            found[key] = int(value)
        elif key == "properties" and isinstance(value, Mapping):
            found[key] = {name: json_schema_of(inner) for name, inner in value.items()}
        else:
            found[key] = value if key in _VERBATIM_KEYWORDS else json_schema_of(value)
    return found


class _Validator(NamedTuple):
    """A compiled schema."""

    validator: Any
    root: Any
    patterned: str
    """The text of the schema if it has patterns, which may take long to match; else empty."""
    several: bool
    """Whether it has several references, so that a check may take long."""


_MOST_BACKTRACKING = 1_000
"""The number of backtracking steps after which a pattern is given up, if no characters to match were counted."""


def _validator(tool: Tool) -> _Validator | None:
    """The compiled schema of a tool; None if it cannot be used."""
    if tool.schema is None:
        return None
    try:
        plain = json_schema_of(tool.schema) if tool.dialect == "openapi" else tool.schema
        # equal schemas of many requests compile once
        return _compile_schema(json.dumps(
            plain, sort_keys=True, default=lambda value: dict(value) if isinstance(value, Mapping) else str(value)))
    except RecursionError:  # a schema that a program made may have more levels than one that was parsed
        return None


@lru_cache(maxsize=512)
def _compile_schema(text: str) -> _Validator | None:
    import jsonschema_rs

    root = json.loads(text)
    try:
        patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=_MOST_BACKTRACKING)
        validator = jsonschema_rs.validator_for(root, validate_formats=False, retriever=_refuse,
                                                 pattern_options=patterns)
    except (ValueError, TypeError, jsonschema_rs.ReferencingError):  # its ValidationError is a ValueError
        return None
    # A single reference applies nothing twice, so most schemas need no count.
    several = sum(text.count(f'"{name}"') for name in schema_cost.REFERENCES) > 1
    return _Validator(validator, root, text if '"pattern' in text else "", several)


@lru_cache(maxsize=512)
def _compile_bounded(text: str, row: int) -> Any:
    """The validator of a schema under a row of `PATTERN_BOUNDS`; None if a pattern exceeds the row."""
    import jsonschema_rs

    _, size, steps = schema_cost.PATTERN_BOUNDS[row]
    options = (jsonschema_rs.FancyRegexOptions(backtrack_limit=steps, size_limit=size) if steps
               else jsonschema_rs.RegexOptions(size_limit=size))
    try:
        return jsonschema_rs.validator_for(
            json.loads(text), validate_formats=False, retriever=_refuse, pattern_options=options)
    except ValueError:  # a pattern exceeds the bound; the rest was compiled before
        return None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri}: a schema outside the request is not fetched")


# -- Reading a call's raw arguments: strictly for the gate, leniently for display only -------------------------------
# The strict parser accepts exactly one JSON object, without trailing text, `NaN`, a key twice, a number out of range or
# a lone surrogate: two parsers would run two different calls, or one would fail. The lenient one shows what an agent
# with a lenient parser would have run; `{"n": 12` may have been 1200, so it is never released.


class ArgumentShape(StrEnum):
    """What the raw characters of arguments are: a whole JSON object, its beginning, or something else."""

    COMPLETE = "complete"
    """The characters are one JSON object and nothing else."""
    CUT = "cut"
    """The characters are the beginning of a JSON object, so more characters could complete it."""
    EMPTY = "empty"
    """There are no characters, or only white space."""
    ABSENT = "absent"
    NOT_OBJECT = "not_object"
    INVALID = "invalid"

    @property
    def is_missing(self) -> bool:
        """Whether nothing was sent that could be parsed."""
        return self in (ArgumentShape.EMPTY, ArgumentShape.ABSENT)


class Arguments(NamedTuple):
    """The parsed arguments of one call; `stopped_at` counts characters."""

    shape: ArgumentShape
    value: dict[str, Any] | None = None
    stopped_at: int = 0
    problem: str = ""

    @property
    def in_words(self) -> str:
        """The shape in words, as they follow "the arguments are"."""
        return self.problem if self.shape is ArgumentShape.NOT_OBJECT else self.shape.value


def parse(raw: str | None) -> Arguments:
    """Parses raw arguments strictly: exactly one JSON object, without a repeated key or NaN."""
    if raw is None:
        return Arguments(ArgumentShape.ABSENT, problem="no arguments")
    if not raw.strip():
        return Arguments(ArgumentShape.EMPTY, problem="the arguments are empty")
    try:
        value = _STRICT.decode(raw)
        raw.encode()  # raises for a literal lone surrogate
        # An escape may spell half of a pair too: `raw` shows that there is one, the value whether it is alone.
        if "\\u" in raw and _SURROGATE.search(raw):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as why:
        shape = ArgumentShape.CUT if _is_beginning(raw, why) else ArgumentShape.INVALID
        if why.msg.startswith("Unterminated string"):
            return Arguments(shape, None, len(raw), f"the string that begins at character {why.pos} is not closed")
        problem = (why.msg[:1].lower() + why.msg[1:]).removesuffix(" at")  # the position is reported separately
        return Arguments(shape, stopped_at=why.pos, problem=problem)
    except UnicodeEncodeError:
        return Arguments(ArgumentShape.INVALID, stopped_at=len(raw), problem="a lone surrogate, not a character")
    except ValueError as why:  # a key twice, NaN, a number too long to read
        return Arguments(ArgumentShape.INVALID, stopped_at=len(raw), problem=str(why).partition("; use sys.")[0])
    except RecursionError:
        return Arguments(ArgumentShape.INVALID, stopped_at=0, problem="nested too deeply")
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value), "number")
        return Arguments(ArgumentShape.NOT_OBJECT, stopped_at=0, problem=f"a JSON {kind} where an object is expected")
    return Arguments(ArgumentShape.COMPLETE, value, len(raw))


def parse_call(call: ToolCall) -> Arguments:
    """Parses the arguments of a call strictly; if no character of them was sent, they count as empty."""
    return parse("" if call.arguments_unsent else call.arguments)


def is_complete(call: ToolCall) -> bool:
    """Whether the arguments of a call are complete, regardless of the response's stop reason."""
    if call.kind is CallKind.CUSTOM:
        return call.arguments is not None
    return parse_call(call).shape is ArgumentShape.COMPLETE


WRAPPINGS: Mapping[str, str] = {
    "text": "musistudio/llms@ac0fafe transformer/anthropic.transformer.ts (Claude Code Router)",
    "raw": "1rgs/claude-code-proxy@dd4a29a server.py",
    "arguments": "EricLBuehler/mistral.rs@9e92262 mistralrs-server-core/src/anthropic.rs",
    "raw_arguments": "lmdeploy 0.18.0 serve/anthropic/adapter.py",
}
"""Name -> the translators that put arguments which they could not parse under this name alone, as a string."""
ONLY_WRAPPINGS = frozenset({"raw_arguments"})
"""The names in `WRAPPINGS` that are no parameter of a tool unless its schema lists them."""
_BRACE = re.compile(r'\s*\{\s*"')


def parse_input(call: ToolCall, tool: Tool | None = None) -> Arguments:
    """Parses like `parse_call`, except that a translator's wrapper (`WRAPPINGS`) around unparsable arguments counts as
    cut or invalid, as its content is.

    In arguments sent as an object, cut content that begins like an object is always a wrapper. Invalid content is one
    if the tool has no parameter of that name; if its parameters are unknown, only if the content begins like an object
    or the name is in `ONLY_WRAPPINGS`. Arguments sent as a string are mostly the model's own. They are a wrapper only
    if the tool is not known to have such a parameter and the name is in `ONLY_WRAPPINGS`, or if the tool is known to
    have no such parameter and the content begins like an object.
    """
    reading = parse_call(call)
    if not reading.value or len(reading.value) != 1:
        return reading
    ((name, inner),) = reading.value.items()
    if name not in WRAPPINGS or type(inner) is not str:
        return reading
    within = parse(inner)
    begins, takes, only = _BRACE.match(inner) is not None, _has_parameter(tool, name), name in ONLY_WRAPPINGS
    if call.form is not ArgsForm.OBJECT:
        is_wrapping = not takes and (only or (takes is False and begins))
    elif within.shape is ArgumentShape.CUT:
        is_wrapping = begins
    else:
        is_wrapping = not takes and (takes is False or only or begins)
    if within.shape is ArgumentShape.COMPLETE or not is_wrapping:
        return reading
    shape = within.shape if within.shape is ArgumentShape.CUT else ArgumentShape.INVALID
    problem = f"a translator put them under {name!r}, as they could not be parsed: {within.problem}"
    return Arguments(shape, None, len(call.arguments or ""), problem)


def _has_parameter(tool: Tool | None, name: str) -> bool | None:
    """Whether a tool has a parameter of this name; None if its schema does not show all of them, or is not known."""
    schema = tool.schema if tool is not None else None
    if schema is None:
        return None
    declared = schema.get("properties")
    if isinstance(declared, Mapping) and name in declared:
        return True
    open_ended = not COMPOSING_KEYWORDS.isdisjoint(schema) or schema.get("additionalProperties")
    return None if open_ended or not isinstance(declared, Mapping) else False


def means_empty_object(call: ToolCall, tool: Tool | None) -> bool:
    """Whether missing arguments mean `{}`: only if the tool is known to have no parameter."""
    return parse_call(call).shape.is_missing and takes_no_arguments(tool)


def is_phantom(call: ToolCall) -> bool:
    """Whether a call has neither a name nor arguments: some servers append such a call (pydantic-ai's recordings)."""
    return not call.name and not (call.arguments or "").strip()


def name_of(call: ToolCall) -> str:
    """The name of a call in a sentence."""
    return call.name or "a call without a name"


def parse_leniently(raw: str | None) -> Any:
    """Returns what a lenient parser reads from cut arguments, for display only; None if it can read nothing."""
    if not raw or not raw.strip():
        return {}
    try:
        return from_json_prefix(raw.encode("utf-8", "replace"))
    except ValueError:
        return None


_KINDS = {str: "string", list: "array", bool: "boolean", type(None): "null"}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_JSON_BLANKS = " \t\r\n"  # `strip()` would also remove Unicode white space, which JSON does not permit
_LITERAL_TAIL = r"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|-|\.|[eE][+-]?)\Z"  # compiled when a call is cut there
_ESCAPE_TAIL = r"\\?u?[0-9a-fA-F]{0,4}\Z"


def _is_beginning(raw: str, why: json.JSONDecodeError) -> bool:
    """Whether the parser failed only because the text ended, so that more characters could make it complete."""
    if not raw.lstrip().startswith("{") or why.msg.startswith("Invalid control character"):
        return False
    rest = raw[why.pos :]
    if not rest.strip(_JSON_BLANKS) or why.msg.startswith("Unterminated string"):
        return True
    if why.msg.startswith("Invalid \\uXXXX escape"):
        return re.match(_ESCAPE_TAIL, rest) is not None
    return re.match(_LITERAL_TAIL, rest) is not None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys: set[str] = set()
        twice = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} occurs twice")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    # `1e400` is infinite to some parsers and an error to others.
    if math.isinf(value):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return value


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


# The standard library's parser can refuse a repeated key and `NaN`. Other parsers read these in different ways, so the
# agent could run another call than the one that was checked.
_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
