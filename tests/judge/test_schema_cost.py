"""What checking a value takes: through every keyword that applies a part of a schema, and never for a plain schema."""

from __future__ import annotations

from typing import Any

import pytest

from loop_core.judge.schema_cost import MOST_CHECKS, is_costly

LEVELS = 40
LISTS = ("allOf", "anyOf", "oneOf")
MAPPINGS = ("dependentSchemas", "dependencies")
ON_THE_VALUE = ("not", "if", "then", "else", *LISTS, *MAPPINGS)
ON_MEMBERS = ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties")
ON_ELEMENTS = ("items", "additionalItems", "unevaluatedItems", "contains", "prefixItems")


def chain(*keywords: str, reference: str = "$ref") -> dict[str, Any]:
    """A schema each of whose parts applies the next one through each of these keywords."""
    parts: dict[str, Any] = {f"p{LEVELS}": {}}
    for at in range(LEVELS):
        following = {reference: f"#/$defs/p{at + 1}"}
        parts[f"p{at}"] = {
            keyword: [following] if keyword in (*LISTS, "prefixItems")
            else {"a": following} if keyword in (*MAPPINGS, "properties", "patternProperties") else following
            for keyword in keywords
        }
    return {"$defs": parts, **parts["p0"]}


def nested(levels: int, *, of: type) -> Any:
    return 1 if not levels else {"a": nested(levels - 1, of=of)} if of is dict else [nested(levels - 1, of=of)]


@pytest.mark.parametrize("keyword", ON_THE_VALUE)
def test_a_value_is_checked_twice_by_each_part(keyword: str) -> None:
    other = "allOf" if keyword != "allOf" else "not"
    assert is_costly(chain(keyword, other), 1)
    assert not is_costly(chain(keyword), 1)


@pytest.mark.parametrize("reference", ["$ref", "$dynamicRef", "$recursiveRef"])
def test_every_kind_of_reference_is_followed(reference: str) -> None:
    assert is_costly(chain("allOf", "not", reference=reference), 1)


@pytest.mark.parametrize("keyword", ON_MEMBERS)
def test_a_member_is_checked_twice_by_each_part(keyword: str) -> None:
    other = "additionalProperties" if keyword != "additionalProperties" else "properties"
    value = nested(LEVELS, of=dict)
    assert is_costly(chain(keyword, other), value)
    assert not is_costly(chain(keyword), value)
    assert not is_costly(chain(keyword, other), {"b": 1})


@pytest.mark.parametrize("keyword", ON_ELEMENTS)
def test_an_element_is_checked_twice_by_each_part(keyword: str) -> None:
    other = "contains" if keyword != "contains" else "items"
    value = nested(LEVELS, of=list)
    assert is_costly(chain(keyword, other), value)
    assert not is_costly(chain(keyword), value)


@pytest.mark.parametrize("schema", [
    {"items": [{"type": "integer"}] * 3}, {"type": "object", "properties": {"a": True}}, {"$ref": "#/$defs/absent"},
    {"$ref": "#/allOf/7", "allOf": [{}]}, {"$ref": "#nobody"}, {"$ref": "other.json#/a"}, True, {"$ref": 5},
])
def test_a_schema_that_applies_nothing_twice_is_checked(schema: Any) -> None:
    assert not is_costly(schema, {"a": [1] * 1_000})


def test_many_elements_are_checked_once_each() -> None:
    schema = {"$defs": {"one": {"type": "integer"}}, "items": {"allOf": [{"$ref": "#/$defs/one"}]}}
    assert not is_costly(schema, [*range(10**6, 10**6 + MOST_CHECKS)])


def test_what_is_nested_too_deeply_to_be_counted_is_costly() -> None:
    assert is_costly({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}, nested(800, of=list))
