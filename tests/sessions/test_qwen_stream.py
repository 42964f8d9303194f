"""What `qwen --output-format stream-json` prints: the failures at the end of a text, and no wire format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.sessions.reasons import named_api
from tests.scenes.transcripts import show, stops, words

INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "qwen_code_version": "0.15.10"}


def reply(text: str, key: str = "u1") -> dict[str, Any]:
    return {"type": "assistant", "uuid": key, "session_id": "s", "parent_tool_use_id": None, "message": {
        "id": key, "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": text}],
        "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 7}}}


def outcome(text: str) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "uuid": "r", "session_id": "s", "is_error": False, "result": text}


@pytest.mark.parametrize("as_list", [False, True])
def test_a_failure_stands_at_the_end_of_a_text(tmp_path, as_list):
    text = "The queue was[API Error: Model stream ended without a finish reason.]"
    rows = [INIT, reply(text), outcome(text)]
    seen = show(json.dumps(rows) if as_list else "".join(f"{json.dumps(row)}\n" for row in rows), tmp_path)
    assert (seen.inputs[0].format, words(seen), stops(seen)) == ("qwen-stream", ["ERROR"], ["error"])
    response = seen.responses[0].exchange.response
    assert (response.text, response.error.message) == ("The queue was", "Model stream ended without a finish reason.")


def test_no_row_names_a_wire_format(tmp_path):
    seen = show("".join(f"{json.dumps(row)}\n" for row in (INIT, reply("Done."), outcome("Done."))), tmp_path)
    (facts,) = seen.responses
    assert (words(seen), named_api(facts.exchange), facts.exchange.recorder) == (["END INFERRED"], None, "qwen-stream")
    assert "Qwen Code keeps none" in str(seen.inputs[0].notices[0])


def test_a_failure_alone_is_an_answer_without_text(tmp_path):
    rows = (INIT, reply("[API Error: 401 no key]"), outcome("[API Error: 401 no key]"))
    (facts,) = show("".join(f"{json.dumps(row)}\n" for row in rows), tmp_path).responses
    assert (facts.exchange.response.parts, facts.exchange.response.error.message) == ((), "401 no key")


@pytest.mark.parametrize("advice", [
    "Please wait and try again later. To increase your limits, request a quota increase through Vertex.",
    "Possible quota limitations in place or slow response times detected. Please wait and try again later."])
def test_a_rate_limit_is_a_failure_with_advice_behind_it(tmp_path, advice):
    """The text was shown as an answer with an inferred end."""
    rows = (INIT, reply(f"Hm.[API Error: 429 slow down]\n{advice}"), outcome("x"))
    seen = show("".join(f"{json.dumps(row)}\n" for row in rows), tmp_path)
    response = seen.responses[0].exchange.response
    assert (words(seen), response.text, response.error.message) == (["ERROR"], "Hm.", "429 slow down")
