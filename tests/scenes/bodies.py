"""Builders of recorded files, in the providers' documented shapes; no test lives here."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

CHAT = "https://api.openai.com/v1/chat/completions"
MESSAGES = "https://api.anthropic.com/v1/messages"
RESPONSES = "https://api.openai.com/v1/responses"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def call(name: str = "look", arguments: str = "{}", key: str = "call_a1b2c3d4e5") -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(text: str, key: str = "call_a1b2c3d4e5") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": text}


def chat_body(text: str | None, reason: str | None = "stop", *calls: dict[str, Any], key: str = "chatcmpl-1") -> str:
    """A whole chat completion."""
    message = assistant(text, *calls)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return json.dumps(
        {
            "id": key,
            "object": "chat.completion",
            "model": "m",
            "choices": [choice],
            "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16},
        }
    )


def chat_stream(text: str, reason: str | None = "stop") -> str:
    """The same as a stream of two deltas."""
    half = len(text) // 2
    deltas = [({"role": "assistant", "content": text[:half]}, None), ({"content": text[half:]}, None), ({}, reason)]
    frames = [
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": why}],
        }
        for delta, why in deltas
        if delta or why
    ]
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"


def entry(
    messages: list[dict[str, Any]] | None,
    body: str | None,
    *,
    url: str = CHAT,
    status: int = 200,
    started: str | None = None,
    mime: str = "application/json",
    request: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    response_headers: dict[str, str] | None = None,
    method: str = "POST",
    content: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A HAR entry; `messages` fill the request of a chat completion, `request` is another whole body."""
    asked = (
        request if request is not None else None if messages is None else {"model": "m", "messages": messages, **more}
    )
    held = {"size": len(body or ""), "mimeType": mime, **({} if body is None else {"text": body})}
    return {
        **({"startedDateTime": started} if started else {}),
        "time": 12,
        "request": {
            "method": method,
            "url": url,
            "headers": _headers(headers or {"content-type": "application/json"}),
            **({} if asked is None else {"postData": {"mimeType": "application/json", "text": json.dumps(asked)}}),
        },
        "response": {
            "status": status,
            "headers": _headers(response_headers or {"content-type": mime}),
            "content": content if content is not None else held,
        },
    }


def _headers(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def har(*entries: dict[str, Any]) -> str:
    return json.dumps(
        {"log": {"version": "1.2", "creator": {"name": "test", "version": "1"}, "entries": list(entries)}}
    )


def shape(loaded: Any) -> list[list[tuple[str, list[tuple[int, str, int]]]]]:
    """Conversations as plain values: for each turn its text and (entry, place, ordinal) of its links."""
    return [
        [
            (
                turn.user_text,
                [(loaded.exchanges[link.index].entry, link.place.value, link.ordinal) for link in turn.links],
            )
            for turn in turns
        ]
        for _, turns in groupby(loaded.turns, key=lambda turn: turn.conversation)
    ]


def llama_responses(count: int, tokens: int, cap: int, thought: int = 0) -> dict[str, Any]:
    """A streamed Responses answer of llama.cpp: `count` words, one a chunk; its `timings` give the server away.
    `thought` tokens went on reasoning besides."""
    words = [f"word{number} " for number in range(count)]
    text = "".join(words)
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "object": "response", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *({"type": "response.output_text.delta", "item_id": "msg_1", "delta": word} for word in words),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "timings": {"predicted_n": tokens}, "response": {
            "id": "r", "object": "response", "status": "completed", "model": "m", "output": [item],
            "usage": {"input_tokens": 9, "output_tokens": tokens + thought, "total_tokens": 9 + tokens + thought,
                      "output_tokens_details": {"reasoning_tokens": thought}}}}]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return {"request": {"method": "POST", "url": "http://127.0.0.1:8080/v1/responses", "headers": {}, "body": {
                "input": [{"role": "user", "content": "go"}], "max_output_tokens": cap, "stream": True}},
            "response": {"status": 200, "headers": {"server": "llama.cpp"}, "body": body}}
