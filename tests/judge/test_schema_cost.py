"""What checking a value takes: through every keyword that applies a part of a schema, and never for a plain schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loop_core.judge.schema_cost import MOST_CHECKS, is_costly
from tests.scenes.rows import each_row

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


def nest(levels: int, *, of: type) -> Any:
    return 1 if not levels else {"a": nest(levels - 1, of=of)} if of is dict else [nest(levels - 1, of=of)]


@each_row("keyword", ON_THE_VALUE)
def test_a_value_is_checked_twice_by_each_part(keyword: str) -> None:
    other = "allOf" if keyword != "allOf" else "not"
    assert is_costly(chain(keyword, other), 1)
    assert not is_costly(chain(keyword), 1)


@pytest.mark.parametrize("reference", ["$ref", "$dynamicRef", "$recursiveRef"])
def test_every_kind_of_reference_is_followed(reference: str) -> None:
    assert is_costly(chain("allOf", "not", reference=reference), 1)


@each_row("keyword", ON_MEMBERS)
def test_a_member_is_checked_twice_by_each_part(keyword: str) -> None:
    other = "additionalProperties" if keyword != "additionalProperties" else "properties"
    value = nest(LEVELS, of=dict)
    assert is_costly(chain(keyword, other), value)
    assert not is_costly(chain(keyword), value)
    assert not is_costly(chain(keyword, other), {"b": 1})


@each_row("keyword", ON_ELEMENTS)
def test_an_element_is_checked_twice_by_each_part(keyword: str) -> None:
    other = "contains" if keyword != "contains" else "items"
    value = nest(LEVELS, of=list)
    assert is_costly(chain(keyword, other), value)
    assert not is_costly(chain(keyword), value)


@each_row("schema", [
    {"items": [{"type": "integer"}] * 3}, {"type": "object", "properties": {"a": True}}, {"$ref": "#/$defs/absent"},
    {"$ref": "#/allOf/7", "allOf": [{}]}, {"$ref": "#nobody"}, {"$ref": "other.json#/a"}, True, {"$ref": 5},
])
def test_a_schema_that_applies_nothing_twice_is_checked(schema: Any) -> None:
    assert not is_costly(schema, {"a": [1] * 1_000})


def test_many_elements_are_checked_once_each() -> None:
    schema = {"$defs": {"one": {"type": "integer"}}, "items": {"allOf": [{"$ref": "#/$defs/one"}]}}
    assert not is_costly(schema, [*range(10**6, 10**6 + MOST_CHECKS)])


def test_what_is_nested_too_deeply_to_be_counted_is_costly() -> None:
    assert is_costly({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}, nest(800, of=list))


@pytest.mark.parametrize("element", [0, True, None, "", "a"])
def test_equal_elements_are_elements_of_their_own(element: Any) -> None:
    schema = {"$defs": {"one": {}}, "items": {"allOf": [{"$ref": "#/$defs/one"}]}}
    assert not is_costly(schema, [element] * MOST_CHECKS)


@each_row("reference", ["b", "/b", "http://x.y/b"])
@each_row("name", ["http://x.y/b", "http://x.y/b#"])
def test_a_reference_by_the_address_of_the_schema_is_followed(name: str, reference: str) -> None:
    text = json.dumps(chain("allOf", "not"))
    schema = json.loads(text.replace('"#/$defs', f'"{reference}#/$defs'))
    assert is_costly({"$id": name, **schema}, 1)
    assert not is_costly({"$id": "http://x.y/c", **schema}, 1)


@pytest.mark.parametrize("prefix", [{"$anchor": "p"}, {"$id": "#p"}, {"id": "#p"}])
def test_an_anchor_is_followed_in_its_own_resource(prefix: dict[str, Any]) -> None:
    doubled = {"$defs": {"p": {**prefix, **chain("allOf", "not")}}, "$ref": "#p"}
    doubled["$defs"] |= doubled["$defs"]["p"].pop("$defs")
    assert is_costly(doubled, 1)
    other = {"$id": "http://x.y/other", "$defs": {"p": {**prefix}}}
    assert is_costly({**doubled, "$defs": {**doubled["$defs"], "other": other}}, 1)


@each_row("odd", [5, "text", None, True, [5], {"a": 5}])
def test_a_keyword_with_a_value_of_another_type_applies_nothing(odd: Any) -> None:
    """A dialect does not check the keywords that it does not know."""
    keywords = (*ON_THE_VALUE, *ON_MEMBERS, *ON_ELEMENTS, "$ref", "$id", "$anchor")
    for value in ({"a": 1}, [1], 1):
        assert not is_costly(dict.fromkeys(keywords, odd), value)
    assert not is_costly({"$id": "http://[", "allOf": [{"$id": "http://["}, {"$ref": "http://["}]}, 1)


@each_row("address", ["json-schema:///", "./", "json-schema:///a/../", "/"])
def test_a_schema_without_an_address_has_the_validators_own(address: str) -> None:
    text = json.dumps(chain("allOf", "not"))
    assert is_costly(json.loads(text.replace('"#/', f'"{address}#/')), 1)
    assert not is_costly(json.loads(text.replace('"#/', f'"{address}other#/')), 1)
