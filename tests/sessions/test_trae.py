"""Trajectories of Trae Agent: each provider's words, calls that were cut and run, results and errors of steps."""

from __future__ import annotations

import json
from typing import Any

from inspector.sessions.importers.recognition import choose
from loop_core.values import Usage
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, show, stops, words

Row = dict[str, Any]
GO = {"role": "user", "content": "go"}
REFLECTION = {"role": "assistant", "content": "The tool execution failed with error: no."}


def call(**given: Any) -> Row:
    return {"call_id": "c1", "name": "bash", "arguments": given or {"command": "ls"}, "id": None}


def result(text: str = "a.txt", success: bool = True) -> Row:
    return {"call_id": "c1", "success": success, "result": text if success else None,
            "error": None if success else text, "id": None}


def answer(word: str | None, *sent: Row, text: str = "hi", calls: Any = None, provider: str = "anthropic",
           output: int = 5) -> Row:
    counts = {"input_tokens": output and 40, "output_tokens": output, "reasoning_tokens": 2,
              "cache_creation_input_tokens": 4, "cache_read_input_tokens": 3}
    return {"timestamp": "2026-01-02T03:04:05", "provider": provider, "model": "asked", "input_messages": [*sent],
            "response": {"content": text, "model": "m", "finish_reason": word, "usage": counts, "tool_calls": calls}}


def step(*results: Row, error: str | None = None, sent: Any = ()) -> Row:
    return {"step_number": 2, "state": "completed", "llm_messages": [*sent], "tool_results": [*results] or None,
            "error": error}


def sent_result(**more: Any) -> Row:
    return {"role": "user", "content": None, "tool_result": {**result(), **more}}


def read(tmp_path: Any, *interactions: Row, steps: Any = ()) -> Any:
    return show(json.dumps({"task": "Fix it", "start_time": "", "provider": "anthropic", "model": "m", "max_steps": 9,
                            "llm_interactions": interactions, "agent_steps": steps, "success": True}, indent=2),
                tmp_path, name="trajectory.json")


def test_requests_continue_each_other_and_the_last_step_has_the_last_results(tmp_path):
    seen = read(tmp_path, answer("tool_use", {"role": "system", "content": "s"}, GO, calls=[call()]),
                answer("tool_use", {"role": "user", "content": None, "tool_result": result("no", False)}, REFLECTION,
                       calls=[call()]), steps=[step(), step(result())])
    first, second = (facts.exchange for facts in seen.responses)
    assert choose(json.dumps({"task": "x", "provider": "p", "max_steps": 1, "llm_interactions": []}).encode(),
                  "x.json") == "trae"
    assert choose(b'{"llm_interactions": [], "task": "x"}', "x.json") != "trae"
    assert ([each.text for each in first.request.messages], first.response.usage) == (["go"], Usage(40, 5, 2, 3, 4))
    assert (json.loads(first.response.tool_calls[0].arguments), first.started) == (
        {"command": "ls"}, "2026-01-02T03:04:05")
    (part,) = second.request.messages[0].results
    assert (part.text, part.is_error, seen.inputs[0].about.title) == ("no", True, "Fix it")
    assert [each.result.text for each in seen.inputs[0].answers] == ["a.txt"]
    assert places(seen) == [["request", "tool_result"]]


@each_row(("provider", "word", "stop", "api"), [
    ("anthropic", "max_tokens", "max_tokens", "anthropic_messages"),
    ("openai", "incomplete", "interrupted", "openai_responses"),
    ("google", "MAX_TOKENS", "max_tokens", "gemini_generate"),
    ("openrouter", "length", "max_tokens", "openai_chat"),
    ("ollama", None, "unknown", "openai_chat"),
])
def test_the_word_is_the_provider_s(provider, word, stop, api, tmp_path):
    seen = read(tmp_path, answer(word, GO, provider=provider, output=0))
    (exchange,) = (facts.exchange for facts in seen.responses)
    assert (stops(seen), exchange.api, exchange.response.stop_reason.raw, exchange.response.usage) == (
        [stop], api, word, None)


def test_the_word_of_trae_for_none_is_not_the_provider_s(tmp_path):
    seen = read(tmp_path, answer("UNKNOWN", GO, provider="google"))
    assert (stops(seen), seen.responses[0].exchange.response.stop_reason.raw) == (["unknown"], None)


def test_a_cut_call_that_was_run_is_reported(tmp_path):
    seen = read(tmp_path, answer("max_tokens", GO, calls=[call()]),
                answer("end_turn", {"role": "user", "tool_result": result()}))
    assert ([verdict.admission.value for verdict in seen.responses[0].verdicts], words(seen)) == (
        ["held"], ["CUT CALL RUN"])


def test_a_step_that_failed_is_a_failed_request_with_the_messages_of_the_step(tmp_path):
    seen = read(tmp_path, answer("tool_use", GO, calls=[call()]),
                steps=[step(result()), step(error="Unterminated string", sent=[sent_result()])])
    failed = seen.responses[1].exchange
    assert (stops(seen), places(seen), words(seen)) == (["tool_call", "error"], [["request", "tool_result"]], ["ERROR"])
    assert ([part.text for part in failed.request.messages[0].results], failed.response.error.message) == (
        ["a.txt"], "Unterminated string")
    assert stops(read(tmp_path, steps=[step(error="no key", sent=[{"role": "system", "content": "s"}, GO])])) == [
        "error"]
    seen = read(tmp_path, answer("tool_use", GO, calls=[call()]), steps=[step(result(), sent=[sent_result()])])
    assert [each.result.text for each in seen.inputs[0].answers] == ["a.txt"], "the messages are of the next request"


def test_a_reminder_continues_the_turn(tmp_path):
    reminder = {"role": "user", "content": "It seems that you have not completed the task."}
    seen = read(tmp_path, answer("max_tokens", GO), answer("end_turn", reminder))
    assert (places(seen), words(seen)) == ([["request", "repair"]], ["TRUNCATED"])


def test_a_result_has_its_output_and_its_error(tmp_path):
    seen = read(tmp_path, answer("tool_use", GO, calls=[call()]),
                answer("end_turn", sent_result(success=False, result="out", error="err")))
    (part,) = seen.responses[1].exchange.request.messages[0].results
    assert part.text == "out\nerr"


def test_a_reminder_shows_no_end_and_odd_members_are_reported(tmp_path):
    reminder = {"role": "user", "content": "It seems that you have not completed the task."}
    assert stops(read(tmp_path, answer(None, GO), answer("end_turn", reminder))) == ["unknown", "end_turn"]
    seen = read(tmp_path, {**answer("stop", GO), "provider": 7})
    assert any("entry 1: provider is a number, but " in notice for notice in seen.inputs[0].notices)
    seen = read(tmp_path, answer("stop", GO, text=[]))
    assert any("entry 1: response.content is a list, but " in notice for notice in seen.inputs[0].notices)
