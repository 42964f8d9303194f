"""What a recorder's own words show and what they do not: a clean word over a text that stops in the middle, a call that
stands in a text, errors of arguments that a library lists."""

from __future__ import annotations

import json

import pytest

from inspector.sessions.wordings import why_refused
from loop_core.values import ToolResultPart
from tests.scenes.transcripts import show, words
from tests.sessions.test_otlp import GO, chat, said, span, text, traces
from tests.sessions.test_promptfoo import CLAUDE, answered, evaluation

MIDDLE, END = "The queue was saturated for nineteen minutes, an", "The queue was saturated for nineteen minutes."


@pytest.mark.parametrize(("said_text", "verdict"), [(MIDDLE, "TEXT UNFINISHED"), (END, "COMPLETE")])
def test_a_clean_word_of_a_recorder_does_not_make_a_text_whole_that_stops_in_the_middle(tmp_path, said_text, verdict):
    """Pydantic AI, LiteLLM and others write `stop` where the provider sent no reason."""
    spans = traces(span(1, chat([said(text(said_text))], [GO], "stop")))
    assert words(show(spans, tmp_path)) == [verdict]
    assert words(show(evaluation(answered(said_text)), tmp_path, name="out.json")) == [verdict]


@pytest.mark.parametrize(("provider", "calls"), [
    ("anthropic:messages:m", 1), ("anthropic:claude-agent-sdk", 1), ("bedrock:us.anthropic.claude-sonnet", 1),
    ("bedrock:converse:amazon.nova-pro", 1), ("vertex:claude-opus", 1),
    ("openai:chat:gpt-5", 0), ("openrouter:anthropic/claude-opus", 0), ("vertex:gemini-pro", 0), ("http://claude", 0)])
def test_a_call_as_json_in_a_text_is_one_only_where_promptfoo_writes_calls_there(tmp_path, provider, calls):
    shown = f"So looks a call:\n\n{json.dumps(CLAUDE)}"
    response = show(evaluation(answered(shown, "stop", provider)), tmp_path, name="out.json").responses[0]
    assert len(response.exchange.response.tool_calls) == calls
    assert response.exchange.response.text == (shown if not calls else "So looks a call:")


@pytest.mark.parametrize(("listed", "refused"), [
    ([{"type": "missing", "loc": ["content"], "msg": "Field required", "input": {"path": "a"}}], True),
    ([{"type": "json_invalid", "loc": [], "msg": "Invalid JSON"}], True),
    ([{"type": "file", "path": "a.md"}], False), ([], False)])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_list_of_errors_of_arguments_is_a_refusal(listed, refused, separators):
    """Pydantic AI writes the list alone into its spans."""
    part = ToolResultPart("c1", None, json.dumps(listed, separators=separators))
    assert why_refused(part, denied=False) == (
        "the agent refused its arguments: it did not run" if refused else None)
