"""Evidence names the bytes that prove it: a word's own, and all events of a call that came in several."""

from __future__ import annotations

import base64
import json
from typing import Any

from inspector.report.facts import View
from loop_core.wire.eventstream import encode_frame
from tests.scenes.recordings import MESSAGES, pair_of, show

CALL = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": CALL},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"path": "a.m'}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]


def bytes_of(seen: View, rule: str) -> bytes:
    """The bytes that the first response's evidence of a rule names."""
    facts = seen.responses[0]
    at = next(each.at for each in facts.evidence if each.rule == rule)
    assert at is not None
    return bytes(facts.exchange.body[at.start : at.end])


def test_a_cut_call_is_proved_by_all_its_events() -> None:
    body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in EVENTS)
    seen = show(pair_of([{"role": "user", "content": "x"}], body, url=MESSAGES))
    assert bytes_of(seen, "judge.cut_arguments").decode().rstrip() == body[body.index("event: content_block_start"):
                                                                         body.index("event: message_delta")].rstrip()


def test_a_word_in_a_binary_frame_is_found_behind_any_length_and_checksum() -> None:
    """The numbers before the payload may hold the byte of a brace."""
    headers = [(":event-type", "messageStop"), (":content-type", "application/json"), (":message-type", "event")]
    start = encode_frame(b'{"role":"assistant"}', [(":event-type", "messageStart"), *headers[1:]])
    stops = (encode_frame(b'{"stopReason":"end_turn","p":"%s"}' % (b"a" * size), headers) for size in range(200))
    stop = next(frame for frame in stops if b"{" in frame[:12])
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream"
    content = {"mimeType": "application/vnd.amazon.eventstream", "encoding": "base64",
               "text": base64.b64encode(start + stop).decode()}
    entry = {"request": {"method": "POST", "url": url, "headers": [], "postData": {"text": json.dumps(
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]})}},
        "response": {"status": 200, "headers": [], "content": content}}
    seen = show(data=json.dumps({"log": {"version": "1.2", "creator": {"name": "t"}, "entries": [entry]}}).encode())
    assert bytes_of(seen, "bedrock_converse.stop_reasons") == b'"end_turn"'
