"""Checking arguments against a tool's schema: dialects and unusable schemas."""

from __future__ import annotations

import json
import time
from collections import UserDict
from types import MappingProxyType
from typing import Any

import pytest

from loop_core import read
from loop_core.judge.arguments import is_usable, schema_problems, takes_no_arguments
from loop_core.judge.schema_cost import TOO_COSTLY, TOO_COSTLY_PATTERNS, TOO_DEEP
from loop_core.values import CallKind, Tool
from tests.scenes.rows import each_row
from tests.scenes.turns import WRITE


def gemini(schema: dict[str, Any]) -> Tool:
    return Tool("f", schema, dialect="openapi")


def test_a_wrong_value_is_named_with_its_place() -> None:
    (found,) = schema_problems(WRITE, {"path": 5})
    assert found.startswith("path: ")
    assert "string" in found
    (missing,) = schema_problems(WRITE, {})
    assert missing.startswith("arguments: ")
    assert "path" in missing
    assert schema_problems(WRITE, {"path": "a"}) == ()


def test_deep_places_are_paths() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "integer"}}}}
    tool = Tool("f", {"type": "object", "properties": {"a": inner}})
    assert schema_problems(tool, {"a": {"b": [1, "x"]}})[0].startswith("a/b/1: ")


@each_row("schema", [
    None,
    {"type": "nonsense"},
    {"$ref": "https://example.com/other.json"},
    {"$ref": "#/definitions/absent"},
    {"$schema": "https://example.com/dialect"},
    {"properties": {"a": {"pattern": "(?<=x"}}},
    {"properties": []},
])
def test_an_unusable_schema_is_said_to_be_unusable_and_finds_nothing(schema: dict[str, Any] | None) -> None:
    tool = Tool("f", schema)
    assert not is_usable(tool)
    assert schema_problems(tool, {"a": 1}) == ()
    assert not takes_no_arguments(tool), "nothing is known of it"


def test_no_tool_is_no_schema() -> None:
    assert not is_usable(None)
    assert schema_problems(None, {"a": 1}) == ()
    assert not takes_no_arguments(None)


@each_row("pattern", [{}, {"pattern": "^2026"}])
@each_row("draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"])
def test_a_format_is_checked_in_no_draft(draft: str, pattern: dict[str, str]) -> None:
    """It was in draft 7, which many generators of schemas name, and in no later one."""
    when = {"type": "string", "format": "date-time", **pattern}
    tool = Tool("f", {"$schema": draft, "type": "object", "properties": {"when": when}})
    assert is_usable(tool)
    assert schema_problems(tool, {"when": "2026-11-02T09:14:00"}) == ()


EMPTY = {"type": "object", "properties": {}}


@each_row("schema", [
    EMPTY, {}, {"type": "object"}, {**EMPTY, "additionalProperties": False}, {**EMPTY, "required": []},
    {**EMPTY, "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Now", "description": "the time"},
])
def test_a_schema_without_properties_takes_nothing(schema: dict[str, Any]) -> None:
    assert takes_no_arguments(Tool("now", schema))


@each_row("schema", [
    {"type": "object", "properties": {"zone": {"type": "string"}}},
    {**EMPTY, "additionalProperties": True}, {**EMPTY, "additionalProperties": {}},
    {**EMPTY, "additionalProperties": {"type": "string"}}, {**EMPTY, "required": ["zone"]}, {"type": "string"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}, {"$dynamicRef": "#"}, {"$recursiveRef": "#"},
    *({**EMPTY, word: [{"type": "object"}]} for word in ("allOf", "anyOf", "oneOf")),
    {**EMPTY, "not": {"type": "string"}}, {**EMPTY, "if": {}, "then": {}},
    {**EMPTY, "dependentSchemas": {"a": {}}}, {**EMPTY, "patternProperties": {"^x": {}}},
])
def test_a_schema_behind_which_a_parameter_may_stand_does_not(schema: dict[str, Any]) -> None:
    assert not takes_no_arguments(Tool("now", schema))


@each_row(("declared", "nothing"), [
    ({"type": "function", "function": {"name": "now"}}, True),
    ({"type": "function", "name": "now", "parameters": None}, True),
    ({"name": "now", "description": "the time"}, True),
    ({"toolSpec": {"name": "now"}}, True),
    ({"type": "custom", "name": "now"}, True),
    ({"type": "function", "function": {"name": "now", "parameters": "none"}}, False),
    ({"name": "now", "parametersJsonSchema": []}, False),
    ({"name": "now", "parameters_json_schema": 1}, False),
    ({"name": "now", "input_schema": "x"}, False),
    ({"toolSpec": {"name": "now", "inputSchema": {"json": 1}}}, False),
    ({"type": "bash_20250124", "name": "bash"}, False),
    (None, False),
])
def test_parameters_that_are_left_out_are_none_where_the_declaration_was_read(
    declared: dict[str, Any] | None, nothing: bool
) -> None:
    assert takes_no_arguments(Tool("now", None, declaration=declared)) is nothing
    assert not takes_no_arguments(Tool("now", None, kind=CallKind.CUSTOM, declaration=declared))


@pytest.mark.parametrize("wrap", [MappingProxyType, UserDict])
def test_a_schema_that_is_another_kind_of_mapping_is_checked_too(wrap: Any) -> None:
    tool = Tool("f", wrap({"type": "object", "properties": wrap({"a": wrap({"type": "integer"})})}))
    assert is_usable(tool)
    assert schema_problems(tool, {"a": "x"})


@each_row(("schema", "good", "bad"), [
    ({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["a"]}, {"a": "x"}, {"a": 1}),
    ({"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}}, {"a": None}, {"a": 1}),
    ({"type": "OBJECT", "properties": {"a": {"type": "STRING", "enum": ["x"], "nullable": True}}},
     {"a": None}, {"a": "y"}),
    ({"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "maxItems": "2", "items": {"type": "INTEGER"}}}},
     {"a": [1, 2]}, {"a": [1, 2, 3]}),
    ({"type": "OBJECT", "properties": {"a": {"type": "TYPE_UNSPECIFIED", "nullable": True}, "b": {"type": "INTEGER"}}},
     {"a": [1]}, {"b": "x"}),
    ({"type": "OBJECT", "properties": {"a": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER", "format": "int64"}]}}},
     {"a": 1}, {"a": True}),
    ({"type": "OBJECT", "propertyOrdering": ["type"],
      "properties": {"type": {"type": "STRING"}, "format": {"type": "INTEGER"}}},
     {"type": "x", "format": 1}, {"format": "x"}),
])
def test_geminis_dialect_is_read(schema: dict[str, Any], good: dict[str, Any], bad: dict[str, Any]) -> None:
    """https://ai.google.dev/api/caching#Schema: upper-case types, nullable, counts spelt as strings."""
    assert is_usable(gemini(schema))
    assert schema_problems(gemini(schema), good) == ()
    assert schema_problems(gemini(schema), bad) != ()


def test_a_count_that_no_integer_holds_is_no_usable_schema() -> None:
    schema = {"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "maxItems": "4" * 5_000}}}
    assert not is_usable(gemini(schema))


def test_the_same_words_mean_nothing_in_plain_json_schema() -> None:
    assert not is_usable(Tool("f", {"type": "OBJECT"}))
    assert schema_problems(Tool("f", {"properties": {"a": {"type": "string", "nullable": True}}}), {"a": None})


# -- schemas from outside: nothing hangs, nothing is fetched ---------------------------------------------------------

LIST = {"type": "array", "items": {"$ref": "#/$defs/e"}}


def union_tool(*parts: dict[str, Any], by: str = "anyOf", ref: str = "#/$defs/e", **more: Any) -> Tool:
    """A tool whose parameter is one of these parts, which may refer to each other."""
    return Tool("f", {"type": "object", "properties": {"x": {"$ref": ref}}, "$defs": {"e": {by: [*parts], **more}}})


def nest(depth: int, inner: Any) -> Any:
    return {"x": inner} if depth == 0 else {"x": [nest(depth - 1, inner)["x"]]}


def chain_tool(size: int) -> Tool:
    """A schema of a few lines each of whose parts refers to the next one twice."""
    parts = {f"a{at}": {"allOf": [{"$ref": f"#/$defs/a{at + 1}"}] * 2} for at in range(size)}
    return Tool("f", {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**parts, f"a{size}": {"type": "string"}}})


@each_row(("tool", "value"), [
    (union_tool({"type": "string"}, LIST, LIST, by="oneOf"), nest(40, 1)),
    (union_tool(LIST, {"$ref": "#/$defs/e/anyOf/0"}), nest(40, 1)),
    (union_tool(LIST, {"type": "array", "items": {"$ref": "#e"}}, ref="#e", **{"$anchor": "e"}), nest(40, 1)),
    (union_tool({"items": {"$ref": "#"}}, {"items": {"$ref": "e"}}, {"type": "null"}, by="allOf", ref="e",
                **{"$id": "e"}),
     nest(40, 1)),
    (chain_tool(60), {"x": "a"}),
    (Tool("f", {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}}),
     json.loads('{"a":' * 60 + "1" + "}" * 60)),
])
def test_a_schema_that_would_be_checked_for_ever_is_not_checked(tool: Tool, value: dict[str, Any]) -> None:
    assert is_usable(tool)
    assert schema_problems(tool, value) == (TOO_COSTLY,)


@pytest.mark.parametrize(("tool", "value"), [
    (union_tool({"type": "string"}, LIST, by="oneOf"), nest(90, "a")),
    (union_tool({"type": "string"}, LIST, LIST), nest(6, "a")),
    (union_tool({"type": "array", "items": {"$ref": "#/$defs/e/anyOf/1"}}, {"type": "integer"}),
     {"x": [*range(9_000)]}),
    (chain_tool(6), {"x": "a"}),
    (Tool("f", {"$ref": "#"}), {"x": "a"}),
    (Tool("f", {"$defs": {"a/b": {"type": "object"}}, "$ref": "#/$defs/a~1b"}), {"x": "a"}),
])
def test_references_that_are_followed_in_time_are_checked(tool: Tool, value: dict[str, Any]) -> None:
    assert schema_problems(tool, value) == ()
    assert is_usable(tool)


def test_a_schema_with_more_levels_than_python_walks_is_one_that_cannot_be_used() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        schema = {"type": "object", "properties": {"a": schema}}
    tool = Tool("f", schema)
    assert not is_usable(tool)
    assert schema_problems(tool, {"a": 1}) == ()


@pytest.mark.parametrize(("levels", "problem"), [(250, 'is not of type "string"'), (256, TOO_DEEP), (900, TOO_DEEP)])
def test_arguments_that_are_nested_too_deeply_for_the_validator_never_run(levels: int, problem: str) -> None:
    raw = f'{{"x": {"[" * levels}{"]" * levels}}}'
    call = {"id": "c", "function": {"name": "f", "arguments": raw}}
    body = {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    parameters = {"type": "object", "properties": {"x": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    request = {"model": "m", "messages": [], "tools": [tool]}
    (verdict,) = read("openai_chat", json.dumps(body).encode(), request=request).calls
    (found,) = verdict.problems
    assert verdict.admission == "rejected"
    assert found.endswith(problem)


def pattern_tool(pattern: str) -> Tool:
    return Tool("f", {"properties": {"x": {"type": "string", "pattern": pattern}}})


@each_row(("pattern", "text"), [
    ("^[a-z]+$", "a" * 150_000),
    ("^(?:[a-z]{200})+$", "a" * 40_000),
    ("^(?:[^ ]{100})+$", "a" * 2_000),
    ("^.{1,1000}$", "a" * 1_000),
    ("^[^ ]{300,3000}$", "a" * 400),
    ("^(?:(?!b)a)+[a-z]{200}$", "a" * 80 + "c" * 200),
    ("^(?:(?!b)a)+$", "a" * 500),
    (r"^(?!\s*$).+", "a" * 9_000),
    (r"^(?!.*\.\.)[\w/.-]+$", "src/" * 200),
    (r"^(?=.{1,253}$)(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)+[a-z]{2,63}$", "api.example-1.com"),
    # jsonschema-rs 0.61.2 counts the characters of a single repetition, and compiles nothing large for it.
    ("^[^ ]{1,300}-[^ ]{1,600}$", "a" * 300 + "-" + "a" * 600),
    ("^-?[^ ]{300,3000}$", "a" * 400),
])
def test_ordinary_patterns_are_checked(pattern: str, text: str) -> None:
    assert schema_problems(pattern_tool(pattern), {"x": text}) == ()
    (found,) = schema_problems(pattern_tool(pattern), {"x": "\n"})
    assert "does not match" in found


@each_row(("pattern", "text"), [
    (r"^(?:(?=(a|a?)+$)a?){20}b", "a" * 4_000),
    ("(?=(?:a{0,100}){0,100}b)x", "a" * 400),
    ("^(?:(?:a{0,100}){0,100})b$", "a" * 4_000),
    ("(?=[ab]*a[ab]{500}c)x", "aab" * 3_000),
    ("^(?:(?=[ab]*a[ab]{500}c|a|b)[ab]?)*$x", "aab" * 400),
    ("[ab]*a[ab]{4000}c", "aab" * 7_000),
])
def test_no_pattern_takes_long(pattern: str, text: str) -> None:
    """Each of them took between one second and a minute."""
    before = time.process_time()
    (found,) = schema_problems(pattern_tool(pattern), {"x": text})
    assert time.process_time() - before < 2
    assert found == TOO_COSTLY_PATTERNS or "backtracking" in found


LONG = "a" * 500
MANY = "^(?:a{0,200}){0,200}$"


@each_row(("schema", "value"), [
    ({"items": {"pattern": MANY}}, [LONG]),
    ({"prefixItems": [{"allOf": [{"pattern": MANY}]}]}, [LONG]),
    ({"items": {"pattern": MANY}}, ["a" * 50] * 10),
    ({"patternProperties": {MANY: {}}}, {LONG: 1}),
    ({"propertyNames": {"pattern": MANY}}, {LONG: 1}),
])
def test_characters_are_counted_wherever_a_pattern_is_matched(schema: dict[str, Any], value: Any) -> None:
    tool = Tool("f", {"properties": {"x": schema}})
    assert schema_problems(tool, {"x": value}) == (TOO_COSTLY_PATTERNS,)
    assert schema_problems(tool, {"x": value, "other": LONG}) == (TOO_COSTLY_PATTERNS,)
    assert schema_problems(tool, {"other": LONG}) == ()


@pytest.mark.parametrize("of", ["not", "if", "patternProperties"])
def test_a_pattern_that_is_given_up_never_accepts_a_value(of: str) -> None:
    """Where a pattern that does not match accepts the value, one that was given up must not."""
    forbidden = r"^(?:(?!;).)*rm(?:(?!;).)*$"
    schema = {"if": {"pattern": forbidden}, "then": False} if of == "if" else {of: {"pattern": forbidden}}
    schema = {"patternProperties": {forbidden: False}} if of == "patternProperties" else schema
    for text in ("rm", "rm " + "a" * 1_500):
        value = {text: 1} if of == "patternProperties" else text
        assert schema_problems(Tool("f", {"properties": {"x": schema}}), {"x": value}), len(text)


def test_a_call_that_is_too_long_for_the_patterns_of_its_tool_never_runs() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": json.dumps({"x": "a" * 4_000})}}
    body = {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    tool = {"type": "function", "function": {"name": "f", "parameters": pattern_tool(MANY).schema}}
    request = {"model": "m", "messages": [], "tools": [tool]}
    (verdict,) = read("openai_chat", json.dumps(body).encode(), request=request).calls
    assert (verdict.admission, verdict.problems) == ("rejected", (TOO_COSTLY_PATTERNS,))


def test_a_pattern_that_backtracks_for_ever_refuses_the_value_in_time() -> None:
    tool = Tool("f", {"properties": {"x": {"pattern": r"^(?:(?=(a|a?)+$)a?){20}b"}}})
    before = time.process_time()
    (found,) = schema_problems(tool, {"x": "a" * 40})
    assert "backtracking" in found
    assert time.process_time() - before < 2
