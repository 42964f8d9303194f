"""A character whose halves (UTF-16 surrogates) come in two pieces is one again; a half at an edge stays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from loop_core.reader import read
from loop_core.wire import decode
from tests.scenes.rows import each_row

HIGH, LOW, FACE = "\ud83d", "\ude00", "\U0001f600"


def sse(*events: dict[str, Any]) -> bytes:
    names = [f"event: {each['type']}\n" if "type" in each else "" for each in events]
    return "".join(f"{name}data: {json.dumps(each)}\n\n" for name, each in zip(names, events, strict=True)).encode()


def chat(pieces: Sequence[str]) -> bytes:
    deltas = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    return sse(*deltas, {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}) + b"data: [DONE]\n\n"


def messages(pieces: Sequence[str]) -> bytes:
    begun = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 1}}
    return sse(
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
          for piece in pieces),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )


def gemini(pieces: Sequence[str]) -> bytes:
    parts = [{"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}}]} for piece in pieces]
    return sse(*parts, {"candidates": [{"content": {"parts": []}, "finishReason": "MAX_TOKENS"}]})


def ollama(pieces: Sequence[str]) -> bytes:
    lines = [{"message": {"role": "assistant", "content": piece}, "done": False} for piece in pieces]
    lines.append({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "length"})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


STREAMS = {
    "openai_chat": chat, "anthropic_messages": messages, "gemini_generate": gemini, "ollama_chat": ollama,
}


@each_row("api", STREAMS)
@each_row(("pieces", "text"), [
    (("a" + HIGH, LOW + "b"), f"a{FACE}b"),
    (("a" + HIGH,), "a" + HIGH),
    ((LOW, "b"), LOW + "b"),
    (("a" + HIGH, "b"), "a\ufffdb"),
    (("é", FACE), "é" + FACE),
])
def test_a_character_that_came_in_two_pieces(api: str, pieces: Sequence[str], text: str) -> None:
    assert decode(api, STREAMS[api](pieces)).text == text


@each_row(("pieces", "admission"), [
    (('{"a": "' + HIGH, LOW + '"}'), "ready"), (('{"a": "' + HIGH, '"}'), "held"),
    (('{"a": "' + LOW, HIGH + '"}'), "held"),
    (('{"a": "\ufffd' + HIGH, LOW + '"}'), "held"),  # which may stand for other bytes
])
def test_the_arguments_of_a_call_may_be_cut_inside_a_character_too(pieces: Sequence[str], admission: str) -> None:
    """As by a server that counts in UTF-16. Such a call was held, although nothing of it is missing."""
    def chunk(reason: str | None, **function: str) -> dict[str, Any]:
        call = {"index": 0, "id": "c", "function": {"name": "f", **function}}
        return {"choices": [{"index": 0, "delta": {"tool_calls": [call]} if function else {}, "finish_reason": reason}]}

    body = sse(*(chunk(None, arguments=piece) for piece in pieces), chunk("tool_calls")) + b"data: [DONE]\n\n"
    (verdict,) = read("openai_chat", body).calls
    assert verdict.admission == admission
    assert verdict.arguments == ({"a": FACE} if admission == "ready" else None)
