"""The stream of `gemini --output-format stream-json`: pieces of text, calls, results, and how the run ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.importers.recognition import choose
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, rules, show, stops, words

INIT = {"type": "init", "session_id": "s1", "model": "gemini-x"}
ASKED = {"type": "message", "role": "user", "content": "go"}


def piece(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


def call(key: str = "ls-1", **parameters: Any) -> dict[str, Any]:
    return {"type": "tool_use", "tool_name": "ls", "tool_id": key, "parameters": parameters}


def result(key: str = "ls-1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_id": key, "status": "success", "output": "a.md", **more}


def outcome(status: str = "success", **more: Any) -> dict[str, Any]:
    return {"type": "result", "status": status, "stats": {"input_tokens": 9, "output_tokens": 5, "cached": 4}, **more}


def read(tmp_path, *rows):
    return show("".join(json.dumps(row) + "\n" for row in rows), tmp_path)


def test_pieces_and_calls_up_to_their_results_are_one_answer(tmp_path):
    seen = read(tmp_path, INIT, ASKED, piece("I "), piece("look."), call(path="."), call("ls-2", path="b"),
                result(), result("ls-2", status="error", output=None, error={"type": "x", "message": "no such folder"}),
                piece("Done."), outcome())
    assert seen.inputs[0].format == "gemini-stream"
    first, last = (facts.exchange for facts in seen.responses)
    assert (first.response.text, first.response.model, first.api) == ("I look.", "gemini-x", "gemini_generate")
    assert [(each.name, each.arguments) for each in first.response.tool_calls] == [
        ("ls", '{"path": "."}'), ("ls", '{"path": "b"}')]
    results = [part for message in last.request.messages for part in message.results]
    assert [(part.call_id, part.text, part.is_error) for part in results] == [
        ("ls-1", "a.md", False), ("ls-2", "no such folder", True)]
    assert (stops(seen), places(seen)) == (["tool_call", "end_turn"], [["request", "tool_result"]])
    assert rules(seen, 1) == ["transcript.absent", "transcript.inferred.turn_ended"]
    assert words(seen) == ["END INFERRED"]
    assert first.response.usage is None


def test_the_counts_of_a_run_are_those_of_its_only_answer(tmp_path):
    (facts,) = read(tmp_path, INIT, ASKED, piece("Hi"), outcome()).responses
    assert facts.exchange.response.usage == (9, 5, None, 4, None)


@pytest.mark.parametrize(("kind", "verdict"), [
    ("FatalCancellationError", "CANCELLED"), ("FatalTurnLimitedError", "CANCELLED"), ("ApiError", "ERROR"),
])
def test_how_a_run_failed(tmp_path, kind, verdict):
    seen = read(tmp_path, INIT, ASKED, call(), result(), outcome("error", error={"type": kind, "message": "why"}))
    assert words(seen) == [verdict]


def test_a_run_without_an_outcome_has_no_known_end(tmp_path):
    seen = read(tmp_path, INIT, ASKED, piece("Hi"))
    assert words(seen) == ["END NOT RECORDED"]
    cut = read(tmp_path, INIT, ASKED, call())
    assert words(cut) == ["END NOT RECORDED"]


def test_notes_on_the_screen_are_skipped(tmp_path):
    note = {"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}
    seen = read(tmp_path, INIT, ASKED, piece("Hi"), note, outcome())
    assert [skip.why for skip in seen.inputs[0].skipped] == ["a note of Gemini CLI: Loop detected, stopping execution"]
    assert len(seen.responses) == 1


@each_row("row", [INIT, call(), result(), outcome()])
def test_each_event_that_tells_the_stream(row):
    assert choose(json.dumps(row).encode() + b"\n{}\n", "x") == "gemini-stream"


def test_a_member_of_another_type_is_passed_over_and_named(tmp_path):
    seen = read(tmp_path, INIT, ASKED, piece("Hi"), outcome(status=7))
    assert "line 4: status is a number, but text was expected; it was skipped" in " ".join(seen.inputs[0].notices)


def test_an_outcome_without_a_message_means_the_error_before_it(tmp_path):
    """As Gemini CLI 0.61.0 prints it after the last of its attempts."""
    note = {"type": "error", "severity": "error", "message": "Model stream ended with malformed function call."}
    seen = read(tmp_path, piece("I write."), note, outcome("error"))
    assert seen.responses[-1].exchange.response.error.message == note["message"]
    warned = read(tmp_path, piece("I write."), {**note, "severity": "warning"}, outcome("error"))
    assert warned.responses[-1].exchange.response.error.message == "no message"


def test_an_error_behind_pieces_is_that_of_their_answer(tmp_path):
    note = {"type": "error", "severity": "error", "message": "Model stream ended without a finish reason."}
    seen = read(tmp_path, INIT, ASKED, piece("One t"), note, outcome("error"))
    (facts,) = seen.responses
    assert (words(seen), facts.exchange.response.text) == (["ERROR"], "One t")
    assert facts.exchange.response.error.message == note["message"]
    seen = read(tmp_path, INIT, ASKED, call(), outcome("error", error={"type": "x", "message": "terminated"}))
    assert [verdict.admission.value for facts in seen.responses for verdict in facts.verdicts] == ["held"]
