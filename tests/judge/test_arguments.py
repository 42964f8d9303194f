"""Strict reading of arguments: what is complete, what is cut, what is wrong; and the lenient reading for display."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from loop_core.judge.arguments import WRAPPINGS, ArgumentShape, parse, parse_call, parse_input, parse_leniently
from loop_core.values import ArgsForm, Tool, ToolCall
from tests.scenes.rows import each_row

texts = st.text(st.sampled_from('ab:,{}[]"\\\n\t\x00/ é\u2028\U0001f600'), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=4)


@each_row("raw", [
    '{}',
    ' {"a": 1} ',
    '{"a": {"a": [1, 2.5, -3e2, true, null, "\\u00e9\\ud83d\\ude00"]}}',
    '{"n": 12345678901234567890123}',
])
def test_one_json_object_is_complete(raw: str) -> None:
    read = parse(raw)
    assert read.shape is ArgumentShape.COMPLETE
    assert read.value == json.loads(raw)


@given(objects, st.booleans(), st.data())
def test_every_beginning_of_an_object_is_cut(value: dict, ascii_only: bool, data: st.DataObject) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only)
    assert parse(raw).value == value
    size = data.draw(st.integers(1, len(raw) - 1))
    read = parse(raw[:size])
    assert read.shape is ArgumentShape.CUT, (raw[:size], read)
    assert read.value is None


@each_row(("raw", "shape"), [
    (None, ArgumentShape.ABSENT),
    ("", ArgumentShape.EMPTY),
    (" \n\t", ArgumentShape.EMPTY),
    ("[1, 2]", ArgumentShape.NOT_OBJECT),
    ('"{\\"a\\": 1}"', ArgumentShape.NOT_OBJECT),
    ("null", ArgumentShape.NOT_OBJECT),
    ("5", ArgumentShape.NOT_OBJECT),
    ("true", ArgumentShape.NOT_OBJECT),
    ("[1, 2", ArgumentShape.INVALID),
    ("I will", ArgumentShape.INVALID),
    ('{"a": 1}{"a": 1}', ArgumentShape.INVALID),
    ('{"a": 1}}', ArgumentShape.INVALID),
    ('{"a": 1} and', ArgumentShape.INVALID),
    ('{"a": 1}\u00a0', ArgumentShape.INVALID),
    ('{"a": 1,\u3000', ArgumentShape.INVALID),
    ("{'a': 1}", ArgumentShape.INVALID),
    ('{"a": 1,}', ArgumentShape.INVALID),
    ('{"a": tru\n', ArgumentShape.INVALID),
    ('{"a": 1.e', ArgumentShape.INVALID),
    ('{"a": "two\nlines"}', ArgumentShape.INVALID),
    ('{"a": "two\n', ArgumentShape.INVALID),
    ('{"a": "\\q', ArgumentShape.INVALID),
    ('{"a": "\\u12x', ArgumentShape.INVALID),
    ('{"a": NaN}', ArgumentShape.INVALID),
    ('{"a": -Infinity}', ArgumentShape.INVALID),
    ("{" * 100_000, ArgumentShape.INVALID),
    ('{"a":' + "[" * 100_000, ArgumentShape.INVALID),
    ('{"a": 1' + "0" * 5000 + "}", ArgumentShape.INVALID),
    ('{"a": 1e999}', ArgumentShape.INVALID),
    ('{"a": "\\ud83d"}', ArgumentShape.INVALID),
    ('{"a": "\ud83d"}', ArgumentShape.INVALID),
    ('{"a": "\\ud83d', ArgumentShape.CUT),
    ('{"a": "\\ud83d\\ude', ArgumentShape.CUT),
    ('{"a": "b', ArgumentShape.CUT),
    ('{"n": 12', ArgumentShape.CUT),
])
def test_what_is_no_complete_object_is_named(raw: str | None, shape: ArgumentShape) -> None:
    read = parse(raw)
    assert read.shape is shape
    assert read.value is None
    assert read.problem


def test_a_key_that_stands_twice_is_refused_at_any_depth() -> None:
    """Two parsers would run two different calls: the first of the two, or the last."""
    assert "'path' occurs twice" in parse('{"path": "/tmp", "path": "/"}').problem
    assert parse('{"a": [{"b": 1, "b": 2}]}').shape is ArgumentShape.INVALID


@each_row(("raw", "said"), [
    ("[1]", "a JSON array where an object is expected"),
    ("null", "a JSON null where an object is expected"),
    ("1.5", "a JSON number where an object is expected"),
    ("true", "a JSON boolean where an object is expected"),
    ('"x"', "a JSON string where an object is expected"),
])
def test_another_kind_of_json_is_named_in_its_own_words(raw: str, said: str) -> None:
    assert parse(raw).problem == said


def test_the_place_where_the_parser_stopped_is_kept() -> None:
    assert parse('{"n": 12').stopped_at == 8
    assert parse('{"a": 1}}').stopped_at == 8
    assert parse('{"path": "a.tx').stopped_at == 14  # the end: the string was still open
    assert "character 9 " in parse('{"path": "a.tx').problem
    assert parse('{"path": "\x01"}').problem == "invalid control character", "the place is not in its words"
    assert parse('{"n": %s}' % ("9" * 5_000)).problem.endswith("has 5000 digits"), "no advice about Python follows"


@each_row(("raw", "shown"), [
    ('{"n": 12', {"n": 12}), ('{"path": "a.tx', {"path": "a.tx"}), ("", {}), (None, {}), ("I will", None),
])
def test_the_lenient_reading_shows_what_a_forgiving_agent_would_have_run(raw: str | None, shown: object) -> None:
    assert parse_leniently(raw) == shown


@given(st.text(st.sampled_from("{}[]\":,\\u0deftrnul-.e1 \n\ud83d\x00"), max_size=40))
def test_no_text_makes_either_reading_fail(raw: str) -> None:
    assert (parse(raw).value is not None) == (parse(raw).shape is ArgumentShape.COMPLETE)
    parse_leniently(raw)


# -- what a translator makes of arguments that it could not parse ----------------------------------------------------


def given_input(raw: str, form: ArgsForm = ArgsForm.OBJECT) -> ToolCall:
    return ToolCall("c", "write", raw, True, form=form)


@each_row("name", ["text", "raw", "arguments", "raw_arguments"])
def test_cut_arguments_that_a_translator_wrapped_are_cut(name: str) -> None:
    call = given_input(json.dumps({name: '{"path": "a.txt", "content": "half of'}))
    assert parse_call(call).shape is ArgumentShape.COMPLETE, "an agent that only parses would run it"
    read = parse_input(call)
    assert (read.shape, read.value) == (ArgumentShape.CUT, None)
    assert f"a translator put them under {name!r}" in read.problem


@each_row("value", [
    {"text": "plain words"}, {"text": "{"}, {"text": "{ not JSON"}, {"text": '{"whole": 1}'}, {"text": 5}, {},
    {"words": '{"path": "a'}, {"text": '{"path": "a', "more": 1},
])
def test_an_object_that_no_translator_would_have_made_is_read_as_it_is(value: dict) -> None:
    assert parse_input(given_input(json.dumps(value))).value == value


@each_row("inner", ['{"path": "a"}}', '{}{"path": "a"}', "no JSON", "[1]", ""])
def test_invalid_arguments_that_a_translator_wrapped_are_invalid_if_the_tool_has_no_such_parameter(inner: str) -> None:
    call, path = given_input(json.dumps({"text": inner})), {"path": {"type": "string"}}
    assert parse_input(call, Tool("write", {"type": "object", "properties": path})).shape is ArgumentShape.INVALID
    assert parse_input(call, Tool("write", {"type": "object", "properties": {"text": {}}})).value == {"text": inner}


UNKNOWN = (
    None, Tool("write"), Tool("write", {"type": "object"}),
    Tool("write", {"type": "object", "properties": {"path": {}}, "additionalProperties": True}),
    Tool("write", {"type": "object", "properties": {"path": {}}, "anyOf": [{}]}),
)
"""A tool whose parameters are not all known."""


@each_row("tool", UNKNOWN)
def test_invalid_arguments_of_a_tool_whose_parameters_are_unknown_show_only_where_they_begin_like_an_object(
    tool: Tool | None,
) -> None:
    for inner in ('{"path": "a"}}', '{"path": tru}', ' { "path": "a" "b"}'):
        assert parse_input(given_input(json.dumps({"text": inner})), tool).shape is ArgumentShape.INVALID
    for inner in ('{}{"path": "a"}', "no JSON", "[1]", "", "{ name }"):
        assert parse_input(given_input(json.dumps({"text": inner})), tool).value == {"text": inner}
        assert parse_input(given_input(json.dumps({"raw_arguments": inner})), tool).shape is ArgumentShape.INVALID


def test_a_wrapping_that_a_schema_names_is_a_parameter() -> None:
    tool = Tool("parse", {"type": "object", "properties": {"raw_arguments": {"type": "string"}}})
    assert parse_input(given_input('{"raw_arguments": "-v --all"}'), tool).value == {"raw_arguments": "-v --all"}


def test_a_text_that_the_model_wrote_itself_is_no_translators() -> None:
    raw = json.dumps({"text": '{"path": "a'})
    assert parse_input(given_input(raw, ArgsForm.STRING)).value == json.loads(raw)
    without = Tool("write", {"type": "object", "properties": {"path": {}}})
    words = json.dumps({"text": "a parameter that the model made up"})
    assert parse_input(given_input(words, ArgsForm.STRING), without).value == json.loads(words)
    named = Tool("parse", {"type": "object", "properties": {"raw_arguments": {}}})
    own = json.dumps({"raw_arguments": '{"path": "a'})
    assert parse_input(given_input(own, ArgsForm.STRING), named).value == json.loads(own)


@each_row(("name", "tool"), [
    *(("raw_arguments", tool) for tool in UNKNOWN),
    *((name, Tool("write", {"type": "object", "properties": {"path": {}}})) for name in WRAPPINGS),
])
@each_row(
    ("inner", "shape"), [('{"path": "a', ArgumentShape.CUT), ('{"path": a}', ArgumentShape.INVALID)])
def test_a_wrapping_that_is_streamed_as_a_text_shows_where_no_tool_has_such_a_parameter(
    name: str, tool: Tool | None, inner: str, shape: ArgumentShape,
) -> None:
    """A gateway that streams a whole answer sends the translator's object as the text of a delta."""
    assert parse_input(given_input(json.dumps({name: inner}), ArgsForm.STRING), tool).shape is shape
