"""The stream of Cursor's command line agent: pieces of an answer, calls with a start and an end, and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.scenes.transcripts import show, stops

Row = dict[str, Any]


def notices(seen) -> str:
    return "\n".join(seen.inputs[0].notices)


def lines(*rows: Row) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


INIT: Row = {"type": "system", "subtype": "init", "apiKeySource": "login", "session_id": "s", "model": "Opus",
             "permissionMode": "default"}


def text_row(kind: str, said: str, **more: Any) -> Row:
    content = [{"type": "text", "text": said}]
    return {"type": kind, "message": {"role": kind, "content": content}, "session_id": "s", **more}


def call_row(step: str, key: str, result: Any = None, **more: Any) -> Row:
    held = {"args": {"path": "a"}, **({} if result is None else {"result": result})}
    return {"type": "tool_call", "subtype": step, "call_id": key, "tool_call": {"readToolCall": held}, **more}


def outcome(said: str = "ok", *, failed: bool = False, **more: Any) -> Row:
    return {"type": "result", "subtype": "error" if failed else "success", "is_error": failed, "result": said, **more}


def test_the_stream_of_cursor(tmp_path):
    seen = show(lines(
        INIT, text_row("user", "go"), {"type": "thinking", "subtype": "delta", "text": "h"},
        {"type": "thinking", "subtype": "delta", "text": "m"}, {"type": "thinking", "subtype": "completed"},
        text_row("assistant", "I ", timestamp_ms=1), text_row("assistant", "look.", timestamp_ms=2),
        text_row("assistant", "I look."), call_row("started", "c1"), call_row("started", "c2"),
        call_row("completed", "c1", {"success": {"content": "x"}}),
        call_row("completed", "c2", {"rejected": {"reason": "no"}}),
        text_row("assistant", "Done."), outcome(), {"type": "odd"}), tmp_path)
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.recorder, first.model, first.response.text) == ("cursor", "Opus", "I look.")
    assert first.response.reasoning_content == "hm"
    assert [(call.id, call.name, call.arguments) for call in first.response.tool_calls] == [
        ("c1", "read", '{"path": "a"}'), ("c2", "read", '{"path": "a"}')]
    (told,) = [message.results for message in second.request.messages if message.results]
    assert [(part.call_id, part.text, part.is_error) for part in told] == [
        ("c1", '{"content": "x"}', False), ("c2", '{"reason": "no"}', True)]
    assert list(first.refusals) == ["c2"]
    assert stops(seen) == ["tool_call", "end_turn"]
    assert seen.turns[0].run.record.user_text == "go"
    assert "records of unknown type were skipped: odd (1)" in notices(seen)


def test_the_events_of_one_request_are_one_answer(tmp_path):
    seen = show(lines(
        INIT, text_row("user", "go"), call_row("started", "c1", model_call_id="m1"),
        call_row("completed", "c1", {"success": {}}, model_call_id="m1"), call_row("started", "c2", model_call_id="m1"),
        call_row("completed", "c2", {"error": {"errorMessage": "no"}}, model_call_id="m1"),
        text_row("assistant", "One.", model_call_id="m2"), text_row("assistant", "Two.", model_call_id="m3")), tmp_path)
    assert [len(facts.exchange.response.tool_calls) for facts in seen.responses] == [2, 0, 0]
    assert [facts.exchange.response.text for facts in seen.responses] == [None, "One.", "Two."]


def test_a_call_whose_start_is_missing_is_read_at_its_end(tmp_path):
    held = {"function": {"name": "lookup", "arguments": '{"q": 1}', "result": {"success": "yes"}}}
    seen = show(lines(INIT, text_row("user", "go"), {"type": "tool_call", "subtype": "completed", "call_id": "c",
                                                     "tool_call": held}), tmp_path)
    (facts,) = seen.responses
    assert [(call.name, call.arguments) for call in facts.exchange.response.tool_calls] == [("lookup", '{"q": 1}')]
    assert [answer.result.text for answer in seen.inputs[0].answers] == ["yes"]


@pytest.mark.parametrize(("rows", "found"), [
    ([], ["error"]), ([text_row("assistant", "Half")], ["unknown"]),
    ([call_row("started", "c1"), call_row("completed", "c1", {"success": {}})], ["tool_call", "error"]),
])
def test_a_run_of_cursor_that_failed(tmp_path, rows, found):
    seen = show(lines(INIT, text_row("user", "go"), *rows, outcome("it broke", failed=True)), tmp_path)
    assert stops(seen) == found
    assert "it broke" in f"{seen.responses[-1].exchange.response.error} {seen.responses[-1].exchange.response.findings}"


def test_the_counts_of_a_run_with_one_answer_of_cursor(tmp_path):
    used = {"inputTokens": 5, "outputTokens": 4, "cacheReadTokens": 2, "cacheWriteTokens": 1}
    one = [INIT, text_row("user", "go"), text_row("assistant", "Hi.")]
    seen = show(lines(*one, outcome(usage=used)), tmp_path)
    assert seen.responses[0].exchange.response.usage == (8, 4, None, 2, 1)
    two = show(lines(*one, call_row("started", "c1"), call_row("completed", "c1", {"success": {}}),
                     text_row("assistant", "x"),
                     outcome(usage=used)), tmp_path)
    assert [facts.exchange.response.usage for facts in two.responses] == [None, None]


@pytest.mark.parametrize(("odd", "told"), [
    ({"message": []}, "message is a list, but an object was expected"),
    ({"message": {"content": 5}}, "message.content is a number, but "),
])
def test_a_member_of_an_odd_kind_is_told(odd: Row, told: str, tmp_path) -> None:
    seen = show(lines(INIT, text_row("user", "go"), {**text_row("assistant", "x"), **odd}, outcome()), tmp_path)
    assert f"line 3: {told}" in notices(seen)
