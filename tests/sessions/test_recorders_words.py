"""What a recorder's own words show and what they do not: a clean word over a text that stops in the middle, a call that
stands in a text, errors of arguments that a library lists."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.importers.inspect_ai import reasoning_of
from inspector.sessions.wordings import why_refused
from loop_core.values import ReasoningPart, ToolResultPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import show, words
from tests.sessions.test_otlp import GO, chat, message_of, span, text, traces
from tests.sessions.test_promptfoo import CLAUDE, answer, evaluation

MIDDLE, END = "The queue was saturated for nineteen minutes, an", "The queue was saturated for nineteen minutes."


@pytest.mark.parametrize(("said_text", "verdict"), [(MIDDLE, "TEXT UNFINISHED"), (END, "COMPLETE")])
def test_a_clean_word_of_a_recorder_does_not_make_a_text_whole_that_stops_in_the_middle(tmp_path, said_text, verdict):
    """Pydantic AI, LiteLLM and others write `stop` where the provider sent no reason."""
    spans = traces(span(1, chat([message_of(text(said_text))], [GO], "stop")))
    assert words(show(spans, tmp_path)) == [verdict]
    assert words(show(evaluation(answer(said_text)), tmp_path, name="out.json")) == [verdict]


@each_row(("provider", "calls"), [
    ("anthropic:messages:m", 1), ("anthropic:claude-agent-sdk", 1), ("bedrock:us.anthropic.claude-sonnet", 1),
    ("bedrock:converse:amazon.nova-pro", 1), ("vertex:claude-opus", 1),
    ("openai:chat:gpt-5", 0), ("openrouter:anthropic/claude-opus", 0), ("vertex:gemini-pro", 0), ("http://claude", 0)])
def test_a_call_as_json_in_a_text_is_one_only_where_promptfoo_writes_calls_there(tmp_path, provider, calls):
    shown = f"So looks a call:\n\n{json.dumps(CLAUDE)}"
    response = show(evaluation(answer(shown, "stop", provider)), tmp_path, name="out.json").responses[0]
    assert len(response.exchange.response.tool_calls) == calls
    assert response.exchange.response.text == (shown if not calls else "So looks a call:")


@each_row(("listed", "refused"), [
    ([{"type": "missing", "loc": ["content"], "msg": "Field required", "input": {"path": "a"}}], True),
    ([{"type": "json_invalid", "loc": [], "msg": "Invalid JSON"}], True),
    ([{"type": "file", "path": "a.md"}], False), ([], False)])
@each_row("separators", [(",", ":"), (", ", ": ")])
def test_a_list_of_errors_of_arguments_is_a_refusal(listed, refused, separators):
    """Pydantic AI writes the list alone into its spans."""
    part = ToolResultPart("c1", None, json.dumps(listed, separators=separators))
    assert why_refused(part, denied=False) == (
        "the agent refused its arguments: it did not run" if refused else None)


SUMMARY = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "A cause is wanted."}]}


def responses_object(content, **more):
    """A payload of LiteLLM that holds an object of Responses."""
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [content], **more}
    return json.dumps({"call_type": "aresponses", "model_parameters": {}, "status": "success", "response": {
        "id": "resp_1", "object": "response", "status": "completed", "output": [SUMMARY, item]}})


SAID = {"type": "output_text", "text": "It was drained.", "annotations": []}


@pytest.mark.parametrize(("content", "more", "verdict", "stop"), [
    (SAID, {}, "COMPLETE", "end_turn"), (SAID, {"status": "incomplete"}, "TRUNCATED", "max_tokens"),
    ({"type": "refusal", "refusal": "I can't."}, {}, "BLOCKED", "safety_blocked")])
def test_an_item_of_responses_denies_the_status_in_a_log_as_it_does_in_the_body(tmp_path, content, more, verdict, stop):
    seen = show(responses_object(content, **more), tmp_path, name="log.jsonl")
    reason = seen.responses[0].exchange.response.stop_reason
    assert (words(seen), reason.normalized.value, reason.raw) == ([verdict], stop, "completed")
    assert {each.at.pointer for each in reason.evidence[1:]} == {"/response/status"}


def test_the_summary_of_reasoning_is_an_item_of_responses(tmp_path):
    parts = show(responses_object(SAID), tmp_path, name="log.jsonl").responses[0].exchange.response.parts
    assert [part.text for part in parts] == ["A cause is wanted.", "It was drained."]


@pytest.mark.parametrize(("block", "text"), [
    ({"reasoning": "", "summary": "In short.", "redacted": False}, "In short."),
    ({"reasoning": "At length.", "summary": "In short."}, "At length."),
    ({"reasoning": "Zm9v", "summary": "In short.", "redacted": True}, "In short.")])
def test_the_summary_of_reasoning_in_inspect_is_shown_where_there_is_no_more(block, text):
    assert reasoning_of(block) == ReasoningPart(text)
