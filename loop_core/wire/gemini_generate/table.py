"""Describes Gemini generateContent as data: stop words, their numbers, block reasons, spellings, paths, schemas, fields
that cannot be carried.

Bytes are read in `decode`. Sources: google-genai 3.4.0 (types.py: FinishReason, BlockedReason, Part), the proto files
of google.cloud.aiplatform.v1 and google.ai.generativelanguage.v1beta, and the rows of the project's stop-reason facts
that name this API.

The last sections say which values become which facts, and which JSON Schema Gemini accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from loop_core.values import Stop, Tool
from loop_core.wire.asking import ITEM_FIELDS, usual_losses
from loop_core.wire.failures import StopRow
from loop_core.wire.json_values import pointer
from loop_core.wire.reads import FactRow

API = "gemini_generate"
_SDK = "google-genai 3.4.0 types.py FinishReason"
_VERTEX = "google.cloud.aiplatform.v1 content.proto Candidate.FinishReason"
_BLOCK_REASON = "google-genai 3.4.0 types.py BlockedReason"

_WORDS: Mapping[str, StopRow] = {
    "FINISH_REASON_UNSPECIFIED": StopRow(Stop.UNKNOWN, None, _SDK),
    "STOP": StopRow(Stop.END_TURN, None, _SDK),
    "MAX_TOKENS": StopRow(Stop.MAX_TOKENS, None, _SDK),
    "SAFETY": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "RECITATION": StopRow(Stop.SAFETY_BLOCKED, "recitation", _SDK),
    "LANGUAGE": StopRow(Stop.ERROR, "fatal: unsupported language", _SDK),
    "OTHER": StopRow(Stop.UNKNOWN, None, _SDK),
    "BLOCKLIST": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "PROHIBITED_CONTENT": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "SPII": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "MALFORMED_FUNCTION_CALL": StopRow(Stop.MALFORMED_TOOL_CALL, None, _SDK),
    "UNEXPECTED_TOOL_CALL": StopRow(Stop.MALFORMED_TOOL_CALL, "undeclared tool", _SDK),
    "TOO_MANY_TOOL_CALLS": StopRow(Stop.ERROR, "fatal: tool loop limit of the provider", _SDK),
    "MISSING_THOUGHT_SIGNATURE": StopRow(Stop.ERROR, "fatal: the history lacks a thought signature", _SDK),
    "MALFORMED_RESPONSE": StopRow(Stop.ERROR, "retryable: malformed response", _SDK),
    "CONTINUATION": StopRow(Stop.PAUSED, "token", _SDK),
    "ESCALATION": StopRow(Stop.SAFETY_BLOCKED, "escalation", _SDK),
    "PUP_LIMITED_DISABLED": StopRow(Stop.SAFETY_BLOCKED, "account", _SDK),
    "MODEL_ARMOR": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "IMAGE_SAFETY": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "IMAGE_PROHIBITED_CONTENT": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "IMAGE_RECITATION": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "IMAGE_OTHER": StopRow(Stop.ERROR, "fatal: no image", _SDK),
    "NO_IMAGE": StopRow(Stop.ERROR, "fatal: no image", _SDK),
}

NUMBERS: Mapping[int, str] = {
    0: "FINISH_REASON_UNSPECIFIED",
    1: "STOP",
    2: "MAX_TOKENS",
    3: "SAFETY",
    4: "RECITATION",
    5: "OTHER",
    6: "BLOCKLIST",
    7: "PROHIBITED_CONTENT",
    8: "SPII",
    9: "MALFORMED_FUNCTION_CALL",
    10: "MODEL_ARMOR",
    11: "IMAGE_SAFETY",
    12: "IMAGE_PROHIBITED_CONTENT",
    13: "IMAGE_RECITATION",
    14: "IMAGE_OTHER",
    15: "UNEXPECTED_TOOL_CALL",
    16: "NO_IMAGE",
}
"""Number -> stop word, in the numbering of Vertex AI, which REST clients see with `enum-encoding=int`.

The Gemini API numbers some words differently (6 is LANGUAGE there, 10 MALFORMED_FUNCTION_CALL). 0 to 5 are the same,
and in both numberings no number above 2 ends a turn or lets it continue.
"""

STOP_REASONS: Mapping[str, StopRow] = {
    **_WORDS,
    **{str(number): _WORDS[word]._replace(source=_VERTEX) for number, word in NUMBERS.items()},
}

BLOCK_REASONS: Mapping[str, StopRow] = dict.fromkeys((
    "BLOCKED_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR",
    "JAILBREAK",
), StopRow(Stop.SAFETY_BLOCKED, "prompt", _BLOCK_REASON))
"""Word of `promptFeedback.blockReason` -> mapped reason. The prompt was refused, and there is no candidate. A word
without a row is a refusal too, with evidence that it is unknown."""

NATIVE: Mapping[str, str] = {
    "finishMessage": "candidates",
    "blockReason": "promptFeedback",
    "blockReasonMessage": "promptFeedback",
}
"""Field with a word about the end -> the object that holds it."""

def snake(name: str) -> str:
    """`functionCall` -> `function_call`."""
    return re.sub(r"[A-Z]", lambda capital: "_" + capital.group().lower(), name)


SNAKE: Mapping[str, str] = {
    name: snake(name) for name in (
        "allowedFunctionNames", "blockReason", "blockReasonMessage", "boolValue", "cachedContentTokenCount",
        "candidateCount", "candidatesTokenCount", "continuationToken", "finishMessage", "finishReason", "functionCall",
        "functionCallingConfig", "functionResponse", "generationConfig", "jsonPath", "maxOutputTokens", "modelVersion",
        "nullValue", "numberValue", "parametersJsonSchema", "partialArgs", "promptFeedback", "promptTokenCount",
        "responseId", "stringValue", "systemInstruction", "thoughtSignature", "thoughtsTokenCount", "toolConfig",
        "usageMetadata", "willContinue",
    )
}
"""JSON name of a field -> its name in protocol buffers, which SDK recordings and proxies send."""

LOSES: Mapping[str, str] = usual_losses("call.form", "call.status", "call.item_id", *ITEM_FIELDS)

WRAPPER, REQUEST_WRAPPER = "response", "request"
"""The fields in which Code Assist (the server of Gemini CLI after a Google login) wraps the answer and the request. The
model is a field beside the request (gemini-cli 0.61.0 code_assist/converter.ts)."""

PATHS: tuple[re.Pattern[str], ...] = (
    re.compile(r"/(?P<model>[^/:?#]+):(?:generateContent|streamGenerateContent)(?=$|[?#])"),
)


def get(value: Mapping[str, Any], name: str) -> Any:
    """A field in either spelling; None if it is absent."""
    found = value.get(name)
    return value.get(SNAKE[name]) if found is None else found


def key_of(value: Mapping[str, Any], name: str) -> str:
    """The spelling of a field in this object."""
    return name if name in value else SNAKE[name]


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON value is a generateContent body, an element of its stream, or Google's error."""
    if event or "message" in value:  # its events have no names; a row of Qwen Code has such counts beside its message
        return False
    if isinstance(get(value, "usageMetadata"), dict) or isinstance(get(value, "promptFeedback"), dict):
        return True
    candidates = value.get("candidates")
    if isinstance(candidates, list):
        return any(map(_is_candidate, candidates)) or isinstance(get(value, "modelVersion"), str)
    error = value.get("error")
    # google.rpc.Status: a numeric code beside a status word; OpenAI's errors have no status.
    return isinstance(error, dict) and isinstance(error.get("status"), str) and isinstance(error.get("code"), int)


def _is_candidate(value: Any) -> bool:
    """Whether an element of `candidates` is one of Gemini's: other services use this name for people or search hits."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("content"), dict) or get(value, "finishReason") is not None


# -- Which values of a generateContent body or chunk become which facts, in either spelling --------------------------

_CANDIDATE = ("/candidates/*/index",)
_PART = "/candidates/*/content/parts/*"
_THOUGHT = f"{_PART}/thought"
_ONE: tuple[tuple[str, str], ...] = (
    ("id", "/responseId"),
    ("model", "/modelVersion"),
    ("error", "/error"),
    ("usage.input_tokens", "/usageMetadata/promptTokenCount"),
    ("usage.output_tokens", "/usageMetadata/candidatesTokenCount"),
    ("usage.output_tokens", "/usageMetadata/thoughtsTokenCount"),
    ("usage.reasoning_tokens", "/usageMetadata/thoughtsTokenCount"),
    ("usage.cached_tokens", "/usageMetadata/cachedContentTokenCount"),
)
_CALL: tuple[tuple[str, str], ...] = (
    ("call", "/functionCall"),
    ("call.id", "/functionCall/id"),
    ("call.name", "/functionCall/name"),
    ("call.arguments", "/functionCall/args"),
    ("call.value", "/functionCall/partialArgs/*/stringValue"),
    ("call.value", "/functionCall/partialArgs/*/numberValue"),
    ("call.value", "/functionCall/partialArgs/*/boolValue"),
    ("call.value", "/functionCall/partialArgs/*/nullValue"),
)


def _spellings(pattern: str) -> Iterator[str]:
    """The spellings of a pattern: with JSON names, and with protocol buffer names if they differ."""
    yield pattern
    other = "/".join(SNAKE.get(step, step) for step in pattern.split("/"))
    if other != pattern:
        yield other


def _inside(holder: str) -> tuple[FactRow, ...]:
    candidate = tuple(holder + key for key in _CANDIDATE)
    return (
        FactRow("text", f"{holder}{_PART}/text", candidate, only=(holder + _THOUGHT, False)),
        FactRow("reasoning", f"{holder}{_PART}/text", candidate, only=(holder + _THOUGHT, True)),
    )


_HOLDERS: tuple[str, ...] = ("", f"/{WRAPPER}")
STREAM_READS: tuple[FactRow, ...] = tuple(row for holder in _HOLDERS for row in _inside(holder))
"""The rows for values that a stream delivers piece by piece. A call arrives in one piece."""
READS: tuple[FactRow, ...] = (
    *(FactRow(fact, holder + way) for holder in _HOLDERS for fact, place in _ONE for way in _spellings(place)),
    *STREAM_READS,
    *(FactRow(fact, holder + way, tuple(holder + key for key in _CANDIDATE))
      for holder in _HOLDERS for fact, place in _CALL for way in _spellings(_PART + place)),
)


# -- Which JSON Schema Gemini takes in a declaration: what it does not, with its place, and a schema without that ----
# Two fields have two languages: `parameters` a part of OpenAPI 3.0, `parametersJsonSchema` more of JSON Schema. Schemas
# are reduced only on request, since a reduced schema allows more than the tool does.


_COMMON_KEYWORDS = frozenset({
    "type", "format", "title", "description", "default", "enum", "items", "minItems", "maxItems", "properties",
    "required", "minProperties", "maxProperties", "minimum", "maximum", "minLength", "maxLength", "pattern",
    "propertyOrdering",
})
TAKES: Mapping[str, frozenset[str]] = {
    # google-genai 3.4.0 types.py Schema, without what pi's agent loop saw refused (anyOf, additionalProperties, $ref).
    "openapi": _COMMON_KEYWORDS | {"nullable", "example"},
    # google-genai 3.4.0 types.py JSONSchema; parametersJsonSchema documents additionalProperties and propertyOrdering.
    "json_schema": _COMMON_KEYWORDS | {"additionalProperties", "anyOf", "oneOf", "uniqueItems", "$ref", "$defs"},
}
"""Dialect -> the schema keywords that Gemini accepts in it."""
_SNAKE: Mapping[str, str] = {
    "min_items": "minItems", "max_items": "maxItems", "min_properties": "minProperties", "min_length": "minLength",
    "max_properties": "maxProperties", "max_length": "maxLength", "property_ordering": "propertyOrdering",
    "additional_properties": "additionalProperties", "any_of": "anyOf", "one_of": "oneOf",
    "unique_items": "uniqueItems",
}
"""Keyword in the spelling of protocol buffers -> its JSON name."""
_SCHEMAS_BY_NAME = ("properties", "$defs")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf")


class RefusedKeyword(NamedTuple):
    """A schema keyword that Gemini refuses: the tool, and the JSON pointer inside its schema."""

    tool: str
    pointer: str
    keyword: str

    def __str__(self) -> str:
        return f"the schema of {self.tool} at {self.pointer}: {self.keyword} is not taken"


def problems(tool: Tool) -> tuple[RefusedKeyword, ...]:
    """The keywords of this tool's schema that Gemini refuses, in order."""
    if tool.schema is None:
        return ()
    return tuple(RefusedKeyword(tool.name, at, word) for at, word in _flaws(tool.schema, tool.dialect, ""))


def reduce_schema(tool: Tool) -> Tool:
    """The tool with a schema that Gemini accepts: refused keywords are dropped, so the schema allows more. `const`
    becomes an enum of one value, alternatives that are all constants an enum, a union with null `nullable`, and a
    `$ref` its target."""
    if tool.schema is None or not problems(tool):
        return tool
    schema = _reduce(tool.schema, tool.dialect, tool.schema, ())
    return tool._replace(schema=schema, declaration=None)


def _flaws(schema: Any, dialect: str, place: str) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        word, at = _SNAKE.get(key, key), f"{place}{pointer(key)}"
        if word not in TAKES[dialect]:
            yield at, key
        elif word == "type" and isinstance(value, list) and dialect == "openapi":
            yield at, "a list of types"
        elif word in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
            for name, inner in value.items():
                yield from _flaws(inner, dialect, f"{at}{pointer(name)}")
        elif word in _SCHEMA_LISTS and isinstance(value, list):
            for number, inner in enumerate(value):
                yield from _flaws(inner, dialect, f"{at}/{number}")
        elif word in ("items", "additionalProperties"):
            yield from _flaws(value, dialect, at)


def _reduce(schema: Any, dialect: str, root: Mapping[str, Any], refs: tuple[str, ...]) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    takes = TAKES[dialect]
    schema = _simplify(schema, takes, dialect)
    reference = schema.get("$ref")
    if isinstance(reference, str) and "$ref" not in takes:
        refs = (*refs, reference)
        # a schema that refers to itself ends here
        target = None if reference in refs[:-1] else _target(root, reference)
        schema = {**(target or {}), **{key: value for key, value in schema.items() if key != "$ref"}}
        schema = _simplify(schema, takes, dialect)
    members: dict[str, Any] = {}
    for key, value in schema.items():
        word = _SNAKE.get(key, key)
        if word not in takes:
            continue
        if word in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
            members[key] = {name: _reduce(inner, dialect, root, refs) for name, inner in value.items()}
        elif word in _SCHEMA_LISTS and isinstance(value, list):
            members[key] = [_reduce(inner, dialect, root, refs) for inner in value]
        else:
            members[key] = _reduce(value, dialect, root, refs) if word in ("items", "additionalProperties") else value
    return members


def _simplify(schema: Mapping[str, Any], takes: frozenset[str], dialect: str) -> Mapping[str, Any]:
    """An equivalent of a refused keyword in accepted ones, if there is one."""
    members = dict(schema)
    if "const" in members and "const" not in takes:
        members.setdefault("enum", [members["const"]])
        members.setdefault("type", _type_of(members["const"]))
    for word in _SCHEMA_LISTS:
        options = members.get(word)
        if word in takes or not isinstance(options, list):
            continue
        alternatives = [option for option in options if option != {"type": "null"}]
        constants = [value for option in alternatives for value in _constants(option)]
        if alternatives and all(_constants(option) for option in alternatives):
            members |= {"enum": constants, "type": members.get("type") or _type_of(constants[0])}
        elif len(alternatives) == 1 and isinstance(alternatives[0], Mapping):
            members = {**alternatives[0], **{key: value for key, value in members.items() if key != word}}
        if len(alternatives) < len(options) and "nullable" in takes:
            members["nullable"] = True
    kinds = members.get("type")
    if isinstance(kinds, list) and dialect == "openapi":
        plain = [kind for kind in kinds if kind != "null"]
        # OpenAPI 3.0 has one type; a string can hold any value
        members["type"] = plain[0] if len(plain) == 1 else "string"
        if len(plain) < len(kinds):
            members["nullable"] = True
    return members


def _constants(option: Any) -> list[Any]:
    if not isinstance(option, Mapping):
        return []
    listed = option.get("enum")
    return [option["const"]] if "const" in option else listed if isinstance(listed, list) else []


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return names.get(type(value), "object")


def _target(root: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    """The target of a reference inside the same schema; None if there is none."""
    found: Any = root
    if not reference.startswith("#"):
        return None
    for key in reference[1:].split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")  # in this order (RFC 6901 section 4): `~01` is `~1`
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None
