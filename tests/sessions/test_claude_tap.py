"""Recordings of claude-tap: its database, its exports, values put aside, answers that it made up."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.claude_tap import RECORD, _restore
from inspector.sessions.intake import Room, most, set_maximum
from tests.scenes.rows import each_row
from tests.scenes.shapes import ANSWERS, TAP

MESSAGE = {"role": "user", "content": "go on " * 20}
REFERENCE = {"__claude_tap_blob_ref__": {"version": 1, "kind": "json", "hash": "h", "bytes": 5}}


def record(*refs: str, messages: Any = None, **response: Any) -> dict[str, Any]:
    held = {**TAP, "request": {**TAP["request"], "body": {"model": "m", "max_tokens": 9,
                                                          "messages": messages or [MESSAGE]}},
            "response": {**TAP["response"], **response}}
    if not refs:
        return held
    return {"__claude_tap_compact_record__": {"version": 1, "refs": [{"path": ref, "hash": "h"} for ref in refs]},
            "record": held}


def bundle(*records: Any) -> str:
    return json.dumps({"__claude_tap_compact_trace__": {"version": 1}, "records": list(records),
                       "blobs": {"h": {"kind": "json", "bytes": 5, "payload": MESSAGE}}})


def database(path: Any, *records: Any) -> str:
    made = sqlite3.connect(path)
    made.executescript("""
        CREATE TABLE records (session_id TEXT, record_index INTEGER, turn INTEGER, payload_json TEXT);
        CREATE TABLE record_blobs (session_id TEXT, hash TEXT, kind TEXT, payload_json TEXT);""")
    for number, each in enumerate(records):
        made.execute("INSERT INTO records VALUES ('s', ?, 1, ?)", (number, json.dumps(each)))
    made.execute("INSERT INTO record_blobs VALUES ('s', 'h', 'json', ?)", (json.dumps(MESSAGE),))
    made.commit()
    made.close()
    return str(path)


def prompts(seen: Any) -> list[str]:
    return [each.request.messages[0].text for each in seen.exchanges]


AT = "/request/body/messages/0"


def test_what_was_put_aside_is_put_back(load, tmp_path):
    held = record(AT, messages=[REFERENCE])
    from_file = load(bundle(held), "a.ctap.json")
    from_database = open_paths([database(tmp_path / "traces.sqlite3", held)])
    for seen in (from_file, from_database):
        assert (seen.inputs[0].format, seen.inputs[0].error) == ("claude-tap", None)
        assert prompts(seen) == [MESSAGE["content"]]
        assert seen.exchanges[0].response.stop_reason.raw is not None
        assert seen.exchanges[0].request.max_tokens == 9
    assert sorted(each.name for each in tmp_path.iterdir() if "traces" in each.name) == ["traces.sqlite3"]


def test_only_what_the_record_names_is_put_back(load):
    held = record("/request/body/tools", messages=[{"role": "user", "content": [{"type": "text", "text": "x"},
                                                                               REFERENCE]}])
    assert MESSAGE["content"] not in str(prompts(load(bundle(held), "a.json")))


@each_row(("side", "body"), [
    ("request", {"messages": [REFERENCE]}), ("request", {"input": [REFERENCE]}), ("request", {"tools": REFERENCE}),
    ("request", {"instructions": REFERENCE}), ("response", {"instructions": REFERENCE}),
])
def test_older_records_do_not_say_where(side, body):
    held = {RECORD: {"version": 1}, "record": {side: {"body": body}}}
    assert REFERENCE not in _values(_restore(json.loads(json.dumps(held)), {"h": MESSAGE}.__getitem__, Room()))


def _values(value: Any) -> list[Any]:
    return [value, *(each for held in (value.values() if isinstance(value, dict) else value)
                     for each in _values(held))] if isinstance(value, (dict, list)) else [value]


def test_a_missing_value_costs_its_record_alone(load):
    other = {"__claude_tap_blob_ref__": {"version": 1, "kind": "json", "hash": "gone"}}
    seen = load(bundle(record(AT, messages=[other]), record()), "a.json")
    assert len(seen.exchanges) == 1
    assert len(seen.inputs[0].skipped) == 1


def test_an_answer_that_was_made_up_is_named(load):
    fake = {**ANSWERS["anthropic_messages"], "id": "msg_claude_tap_capture"}
    lines = "".join(f"{json.dumps(each)}\n" for each in (record(body=fake), record()))
    seen = load(lines, "a.jsonl")
    assert len(seen.exchanges) == 1
    assert (seen.exchanges[0].entry, seen.inputs[0].skipped[0].entry) == (1, 0)
    assert "made up" in seen.inputs[0].skipped[0].why


GEMINI_MADE_UP = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "captured"}]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
}
CONVERSE_MADE_UP = {
    "output": {"message": {"role": "assistant", "content": [{"text": "captured"}]}}, "stopReason": "end_turn",
    "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
}


@pytest.mark.parametrize("fake", [GEMINI_MADE_UP, CONVERSE_MADE_UP])
def test_an_answer_that_was_made_up_in_a_format_without_ids_is_named(load, fake):
    seen = load(f"{json.dumps(record(body=fake))}\n{json.dumps(record())}\n", "a.jsonl")
    assert len(seen.exchanges) == 1
    assert "made up" in seen.inputs[0].skipped[0].why


def test_a_model_that_says_captured_and_counts_tokens_has_answered(load):
    real = {**GEMINI_MADE_UP, "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 1, "totalTokenCount": 5}}
    seen = load(json.dumps(record(body=real)) + "\n", "a.jsonl")
    assert [each.response.text for each in seen.exchanges] == ["captured"]


def test_a_step_of_a_cursor_transcript_is_no_answer_of_a_provider(load):
    seen = load(json.dumps({**record(), "transport": "cursor-transcript"}) + "\n", "a.jsonl")
    assert not seen.exchanges
    assert "Cursor transcript" in seen.inputs[0].skipped[0].why


def test_a_stream_is_read_from_its_events(load):
    events = [{"event": "message_start", "data": {"type": "message_start", "message": {
                  "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}}},
              {"event": "content_block_start", "data": {"type": "content_block_start", "index": 0, "content_block": {
                  "type": "tool_use", "id": "t", "name": "f", "input": {}}}},
              {"event": "content_block_delta", "data": json.dumps({"type": "content_block_delta", "index": 0, "delta": {
                  "type": "input_json_delta", "partial_json": '{"a": '}})},
              {"event": "message_delta", "data": {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}}]
    (one,) = load(json.dumps(record(sse_events=events)) + "\n", "a.jsonl").exchanges
    assert one.response.stop_reason.raw == "max_tokens"
    assert one.response.parts[0].arguments == '{"a": '


def test_nothing_is_put_back_beyond_the_bound(load):
    large = {"role": "user", "content": "x" * 100_000}
    text = bundle(*[record(AT, messages=[REFERENCE])] * 30)
    text = text.replace(json.dumps(MESSAGE), json.dumps(large))
    before = most()
    set_maximum(1 << 20)
    try:
        seen = load(text, "a.json")
    finally:
        set_maximum(before)
    assert len(seen.exchanges) == 10
    assert len(seen.inputs[0].skipped) == 20


def test_a_damaged_line_costs_itself(load):
    seen = load(json.dumps(record()) + "\n" + json.dumps(record())[:-30], "a.jsonl")
    assert len(seen.exchanges) == 1


def test_an_empty_database_says_so(tmp_path):
    (given,) = open_paths([database(tmp_path / "traces.sqlite3")]).inputs
    assert "without records" in given.error


# -- Codex over a WebSocket: one record holds every response that came over it -----------------------------------------


def socket_events(key: str, text: str = "", **more: Any) -> list[dict[str, Any]]:
    item = {"id": f"m{key}", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}
    held = {"id": key, "object": "response", "model": "gpt-5", "output": [item] if text else [],
            "usage": {"input_tokens": 9, "output_tokens": 2}, "status": "completed", **more}
    done = [{"type": "response.output_item.done", "output_index": 0, "item": item}] if text else []
    return [{"type": "response.created", "response": {**held, "status": "in_progress", "output": []}},
            {"type": "codex.rate_limits"}, *done, {"type": f"response.{held['status']}", "response": held}]


def over_socket(sent: list[dict[str, Any]] | None, *events: dict[str, Any], key: str = "request_id") -> str:
    body = {"type": "response.create", "model": "gpt-5", "input": [{"role": "user", "content": "last"}]}
    return json.dumps({
        key: "r", "turn": 1, "duration_ms": 5000, "timestamp": "2026-01-01T00:00:00Z", "transport": "websocket",
        "request": {"method": "WEBSOCKET", "path": "/backend-api/codex/responses", "body": body,
                    **({} if sent is None else {"ws_events": sent})},
        "response": {"status": 101, "headers": {}, "body": None, "ws_events": list(events)}})


def create(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "response.create", "model": "gpt-5", "input": [{"role": "user", "content": text}], **more}


def test_every_response_of_a_socket_is_one_with_what_was_sent_for_it(load):
    cut = socket_events("r3", "two", status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    seen = load(over_socket(
        [create("fill", generate=False), {"type": "ping"}, create("go"), create("on", max_output_tokens=2)],
        {"type": "codex.rate_limits"}, *socket_events("r1"), *socket_events("r2", "one"), *cut), "a.jsonl")
    assert (seen.inputs[0].format, seen.inputs[0].error) == ("claude-tap", None)
    assert [(skip.entry, skip.why) for skip in seen.inputs[0].skipped] == [
        (0, "a request that fills a cache: nothing was to be generated")]
    assert [(each.entry, each.request.messages[0].text, each.response.text) for each in seen.exchanges] == [
        (1, "go", "one"), (2, "on", "two")]
    assert [each.response.stop_reason.normalized.value for each in seen.exchanges] == ["end_turn", "max_tokens"]
    assert seen.exchanges[1].request.max_tokens == 2


@pytest.mark.parametrize("key", ["request_id", "id"])
def test_the_record_holds_what_was_sent_last_alone(load, key):
    seen = load(over_socket(None, *socket_events("r1", "one"), *socket_events("r2", "two"), key=key), "a.jsonl")
    assert seen.inputs[0].format == "claude-tap"
    assert [[message.text for message in each.request.messages] for each in seen.exchanges] == [[], ["last"]]


def test_a_socket_that_was_recorded_late_or_ends_early_gives_what_came(load):
    _, _, item, done = socket_events("r1", "one")
    late = load(over_socket([create("go")], item, done), "a.jsonl")
    early = load(over_socket([create("go")], *socket_events("r1", "one")[:3]), "a.jsonl")
    assert [each.response.stop_reason.normalized.value for seen in (late, early) for each in seen.exchanges] == [
        "end_turn", "interrupted"]
