"""Trajectories in ATIF: steps, results, words in `extra`, copied and merged steps, subagents, and damage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions import open_paths
from tests.scenes.rows import each_row
from tests.scenes.shapes import ATIF
from tests.scenes.transcripts import places, rules, show, stops, words

Row = dict[str, Any]
CALL: Row = {"tool_call_id": "call_a1b2c3d4", "function_name": "bash", "arguments": {"command": "ls"}}
RESULTS: Row = {"results": [{"source_call_id": "call_a1b2c3d4", "content": "a.py"}]}


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def user(said: str = "go", **more: Any) -> Row:
    return {"source": "user", "message": said, **more}


def agent(said: str = "Look.", **more: Any) -> Row:
    return {"source": "agent", "message": said, "timestamp": "2026-02-01T00:00:01Z", **more}


def atif(*steps: Row, version: str = "ATIF-v1.7", **more: Any) -> str:
    about = {"name": "terminus-2", "model_name": "gpt-5"}
    held = {"schema_version": version, "session_id": "s", "agent": about, **more}
    return json.dumps({**held, "steps": [{"step_id": n, **step} for n, step in enumerate(steps, 1)]})


@pytest.mark.parametrize("name", ["reasoning_tokens", "reasoning_output_tokens"])
def test_reasoning_tokens_have_two_names(name, tmp_path):
    seen = show(atif(user(), agent(metrics={"completion_tokens": 7, "extra": {name: 3}})), tmp_path)
    assert seen.responses[0].exchange.response.usage.reasoning_tokens == 3


@pytest.mark.parametrize("name", ["cache_creation_input_tokens", "cache_write_tokens"])
def test_tokens_written_to_the_cache_have_two_names(name, tmp_path):
    seen = show(atif(user(), agent(metrics={"completion_tokens": 7, "extra": {name: 3}})), tmp_path)
    assert seen.responses[0].exchange.response.usage.cache_write_tokens == 3


@pytest.mark.parametrize("version", ["ATIF-v1.0", "ATIF-v1.4", "ATIF-v1.6", "ATIF-v1.7"])
def test_a_step_has_its_calls_results_and_counts(version, tmp_path):
    metrics = {"prompt_tokens": 100, "completion_tokens": 7, "cached_tokens": 40, "extra": {"reasoning_tokens": 3}}
    seen = show(atif({"source": "system", "message": "s"}, user(), agent(
        tool_calls=[CALL], observation=RESULTS, metrics=metrics, reasoning_content="hm"), agent("Done."),
        version=version), tmp_path)
    assert stops(seen) == ["tool_call", "unknown"]
    assert places(seen) == [["request", "tool_result"]]
    assert words(seen) == ["END NOT RECORDED"]
    first = seen.responses[0].exchange
    usage = first.response.usage
    assert usage[:4] == (100, 7, 3, 40)
    assert (first.response.model, seen.inputs[0].about.title) == ("gpt-5", "terminus-2")
    assert [type(part).__name__ for part in first.response.parts] == ["ReasoningPart", "TextPart", "ToolCall"]
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "a.py"
    assert "records that hold no exchange: system (1)" in notices(seen)


def test_a_call_behind_an_odd_item_has_its_own_arguments_and_place(tmp_path):
    other = {**CALL, "tool_call_id": "call_2", "arguments": {"command": "rm"}}
    first, second = show(atif(user(), agent(tool_calls=[None, CALL, other])), tmp_path).responses[
        0].exchange.response.tool_calls
    assert (json.loads(first.arguments), first.at.pointer) == ({"command": "ls"}, "/tool_calls/1")
    assert (json.loads(second.arguments), second.at.pointer) == ({"command": "rm"}, "/tool_calls/2")


def test_a_stop_string_in_the_writers_words_holds_a_call_and_allows_silence(tmp_path):
    hit = {"extra": {"stop_reason": "stop_sequence"}}
    assert words(show(atif(user(), agent(tool_calls=[CALL], **hit)), tmp_path)) == ["CALL HELD"]
    ran = show(atif(user(), agent(tool_calls=[CALL], observation=RESULTS, **hit), agent("Done.")), tmp_path)
    assert words(ran) == ["CUT CALL RUN"]
    assert words(show(atif(user(), agent("", **hit)), tmp_path)) == ["COMPLETE"]
    assert words(show(atif(user(), agent(**hit)), tmp_path)) == ["COMPLETE"]


@each_row(("extra", "stop"), [
    ({"finish_reason": "length"}, "max_tokens"), ({"stop_reason": "max_tokens"}, "max_tokens"),
    ({"finish_reason": "MAX_TOKENS"}, "max_tokens"), ({"finish_reason": "tool-calls"}, "tool_call"),
    ({"finish_reasons": ["stop"]}, "end_turn"), ({"stop_reason": "hologram"}, "unknown"),
])
def test_a_word_in_extra_is_the_writers(extra, stop, tmp_path):
    for more in ({"extra": extra}, {"metrics": {"extra": extra}}):
        seen = show(atif(user(), agent(**more)), tmp_path)
        assert stops(seen) == [stop]
        assert rules(seen)[:2] == ["transcript.recorder", "atif.extra"]
        assert seen.responses[0].exchange.response.raw_stop_reason is None


def test_copied_merged_and_own_steps(tmp_path):
    seen = show(atif(user(is_copied_context=True), agent(is_copied_context=True), user("new"),
                      agent("note", llm_call_count=0), agent("Done.", llm_call_count=3),
                      continued_trajectory_ref="t.cont-1.json"), tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["Done."]
    assert "steps that are copied from an earlier trajectory: 2" in notices(seen)
    assert "the trajectory goes on in another file: t.cont-1.json" in notices(seen)
    assert any("stands for 3 calls of the model" in noted.finding.message for noted in seen.findings)
    assert seen.turns[0].run.record.user_text == "new"


def test_what_was_seen_without_a_call_is_no_result(tmp_path):
    seen = show(atif(user(), agent(observation={"results": [{"content": "screen"}]}), agent("Done.")), tmp_path)
    assert stops(seen) == ["unknown", "unknown"]


def test_the_trajectories_of_subagents_follow(tmp_path):
    child = {"agent": {"model_name": "gpt-5-mini", "name": "search"}, "steps": [user("sub"), agent("Child.")]}
    seen = show(atif(user(), agent("Parent."), subagent_trajectories=[child]), tmp_path)
    assert [facts.exchange.session for facts in seen.responses] == ["", "› search (1)"]
    assert [facts.exchange.response.model for facts in seen.responses] == ["gpt-5", "gpt-5-mini"]
    assert [turn.run.record.user_text for turn in seen.turns] == ["go", "sub"]


def test_a_cut_file_and_odd_members(tmp_path):
    text = atif(user(), agent("one"), agent("two"))
    seen = show(text[: text.index('"two"')], tmp_path)
    assert [facts.exchange.response.text for facts in seen.responses] == ["one"]
    assert "step 3, the last, is cut after" in notices(seen)
    told = notices(show(atif(user(), agent(metrics=1), {"source": "hologram"}), tmp_path))
    assert "step 2: metrics is a number, but an object was expected" in told
    assert "hologram (1)" in told


def test_a_key_in_the_name_of_the_agents_model_is_masked(tmp_path):
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**ATIF, "agent": {**ATIF["agent"], "model_name": key}}))
    models = [exchange.response.model for exchange in open_paths([str(path)]).exchanges]
    assert key not in models
    assert any(model is not None and "masked" in model for model in models)


def test_a_step_that_is_written_a_second_time_is_one_answer(tmp_path):
    made = agent(tool_calls=[CALL], observation=RESULTS)
    own = agent("Mine.", timestamp="2026-02-01T00:00:03Z")
    child = {"agent": {"name": "helper"}, "steps": [{"step_id": 7, **made}, own]}
    seen = show(atif(user(), made, made, agent("Done."), subagent_trajectories=[child]), tmp_path)
    assert [each.exchange.response.text for each in seen.responses] == ["Look.", "Done.", "Mine."]
    assert "steps that repeat a step before them, with its time: 2" in notices(seen)


@pytest.mark.parametrize("second", [
    agent(timestamp="2026-02-01T00:00:02Z"), agent(metrics={"completion_tokens": 7}), agent("Look!"),
])
def test_steps_that_differ_in_anything_are_two_answers(second, tmp_path):
    assert len(show(atif(user(), agent(), second), tmp_path).responses) == 2


def test_equal_steps_without_a_time_are_two_answers(tmp_path):
    timeless = {"source": "agent", "message": "ok"}
    assert len(show(atif(user(), timeless, timeless), tmp_path).responses) == 2


def test_a_text_that_stops_in_the_middle_under_the_writers_word_is_not_complete(tmp_path):
    cut = agent("The files are:\n```python\ndef main(", extra={"finish_reason": "stop"})
    assert words(show(atif(user(), cut), tmp_path)) == ["TEXT UNFINISHED"]
