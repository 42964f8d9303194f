"""Recorded calls whose arguments hold masks: a schema proves nothing about a value that the gate did not see."""

from __future__ import annotations

import json
from typing import Any

import pytest

import loop_core
from inspector.replay.recorded_calls import MASKED, NOT_CHECKABLE
from inspector.report.lines.calls import call as lines_of_call
from inspector.report.lines.spans import text_of
from inspector.sessions.reasons import quotes_parser
from inspector.sessions.redact import masked_places
from loop_core.judge.gate import Admission, Verdict
from loop_core.values import ToolCall
from tests.scenes.recordings import call, chat, lines, pair_of, show, user
from tests.scenes.rows import each_row

DIGIT = {"type": "string", "pattern": "^.*[0-9]$"}
PASSWORD = {"type": "object", "properties": {"user": {"type": "string"}, "password": DIGIT}, "required": ["user"]}


def login(schema: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "login", "parameters": schema}}
    return pair_of([user("log in")], chat(None, "tool_calls", call(json.dumps(arguments), name="login")), tools=[tool])


def verdict(schema: dict[str, Any], **arguments: Any) -> Verdict:
    return show(login(schema, **arguments)).responses[0].verdicts[0]


@each_row("rule", [
    {"pattern": "^.*[0-9]$"}, {"format": "date", "pattern": "1$"}, {"enum": ["Secret1"]}, {"const": "Secret1"},
    {"not": {"pattern": "[*]"}}, {"anyOf": [{"const": "Secret1"}, {"type": "null"}]},
])
def test_a_value_that_was_masked_is_not_what_a_schema_refuses(rule):
    found = verdict({"type": "object", "properties": {"password": rule}}, password="Secret1")
    assert (found.admission, found.rule) == (Admission.READY, MASKED)
    assert NOT_CHECKABLE in found.why
    assert found.problems == ()


def test_a_value_that_holds_a_mask_is_not_what_a_schema_refuses():
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    curl = {"type": "string", "pattern": "^curl -H .*ghp_"}
    found = verdict({"type": "object", "properties": {"run": {"type": "array", "items": curl}}},
                    run=[f"curl -H 'Authorization: Bearer {key}' https://h"])
    assert key not in (found.call.arguments or "")
    assert found.rule == MASKED


def test_a_mask_that_the_schema_accepts_is_not_called_accepted():
    """The value that was sent has no asterisk, so the schema would have refused it."""
    found = verdict({"type": "object", "properties": {"password": {"pattern": "^[*]+$"}}}, password="Secret1")
    assert (found.admission, found.rule) == (Admission.READY, MASKED)


def test_problems_of_other_values_still_reject_the_call_and_are_the_only_ones_named():
    found = verdict({**PASSWORD, "properties": {"user": {"type": "string", "maxLength": 2}, "password": DIGIT}},
                    user="ann", password="Secret1")
    assert found.admission is Admission.REJECTED
    (problem,) = found.problems
    assert problem.startswith("user: ")
    assert found.why == problem


@each_row("schema", [
    {"required": ["user"]}, {"additionalProperties": False, "properties": {"user": {}}}, {"minProperties": 2},
    {"maxProperties": 0}, {"properties": {"password": {"type": "integer"}}}, {"properties": {"password": False}},
])
def test_keywords_that_look_at_no_text_reject_a_masked_call_as_before(schema):
    found = verdict({"type": "object", **schema}, password="Secret1")
    assert (found.admission, found.rule) == (Admission.REJECTED, "gate.schema")


@pytest.mark.parametrize("bound", [{"minItems": 2}, {"maxItems": 0}])
def test_the_number_of_items_is_counted_with_masks_too(bound):
    found = verdict({"type": "object", "properties": {"run": {"type": "array", **bound}}}, run=["--password Secret1"])
    assert found.admission is Admission.REJECTED


def test_a_check_that_would_take_too_long_is_no_acceptance():
    """Both branches lead back to the schema, so each level of nesting doubles the work."""
    schema = {"type": "object", "properties": {"in": {"anyOf": [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}]}}}
    nested: dict[str, Any] = {"password": "Secret1"}
    for _ in range(40):
        nested = {"in": nested}
    assert verdict(schema, **nested).admission is Admission.REJECTED


def test_asterisks_that_are_no_mask_are_checked():
    found = verdict({"type": "object", "properties": {"glob": {"enum": ["*.py"]}}}, glob="***")
    assert found.admission is Admission.REJECTED


def test_a_live_turn_checks_asterisks_that_a_model_wrote():
    record = login(PASSWORD, user="ann", password="*******")
    reading = loop_core.read("openai_chat", [json.dumps(record["response"]["body"]).encode()],
                             request=record["request"]["body"])
    assert [each.admission for each in reading.calls] == [Admission.REJECTED]


def test_a_held_call_stays_held_and_shows_no_problem_of_a_mask():
    record = login(PASSWORD, user="ann", password="Secret1")
    record["response"]["body"]["choices"][0]["finish_reason"] = "length"
    seen = show(record)
    facts = seen.responses[0]
    assert facts.verdicts[0].admission is Admission.HELD
    sheet = [text_of(line) for line in lines_of_call(seen, facts, facts.verdicts[0])]
    (about_schema,) = [line for line in sheet if line.strip().startswith("schema")]
    assert NOT_CHECKABLE in about_schema


def test_a_masked_recording_that_is_read_again_gets_the_same_verdict():
    record = login(PASSWORD, user="ann", password="Secret1")
    masked = lines(record).replace(b"Secret1", b"*******")
    assert show(data=masked).responses[0].verdicts[0].rule == MASKED


@each_row(("arguments", "places"), [
    ('{"password": "****"}', [("password",)]), ('{"a": [{"db_pass": "*"}]}', [("a", 0, "db_pass")]),
    ('{"selector": "#password", "value": "*******"}', [("value",)]),
    ('{"key": "x [masked: GitHub token]*** y", "b": "z"}', [("key",)]), ('{"key": "[masked]"}', [("key",)]),
    ('{"password": "REDACTED"}', [("password",)]), ('{"text": "it says REDACTED here"}', []),
    ('{"glob": "**/*.py"}', []), ('{"text": "**bold**"}', []), ('{"password": "***', []), ("", []),
])
def test_the_places_of_masks(arguments, places):
    assert list(masked_places(arguments)) == places


@each_row(("arguments", "place", "is_own"), [
    ('{"a": "\U0001f600', 9, True),  # V8 counts two for the letter: the end of the text
    ('{"a": "\U0001f600', 8, False),
    ('{"a": "\ud83d', 8, True),
    ("{a: 1}", 1, True),
    ('{"a": ' + "1" * 5_000, 5_006, True),  # too long a number for Python, with an error without a place
])
def test_the_place_that_v8_names(arguments, place, is_own):
    text = f"Tool execution error: Unexpected token in JSON at position {place} (line 1 column {place + 1})"
    assert quotes_parser(text, ToolCall("c", "write", arguments)) is is_own


@each_row("arguments", [None, "", "{}", "[" * 100_000, "x"])  # of the last it could be any text's error
def test_arguments_that_are_json_absent_or_too_deep_have_no_error_to_quote(arguments):
    assert not quotes_parser("Error: Expecting value: line 1 column 1 (char 0)", ToolCall("c", "write", arguments))
