"""Recorded sessions in a few words, as the providers document their bodies; read, replayed and viewed. No tests here.

Every scene is JSON Lines of request and response, read like any file, so that what is tested is the way from bytes to a
report. Words, counts and offsets that tests expect stand in the scene or are counted from it.
"""

from __future__ import annotations

import json
from typing import Any

from inspector.replay import Settings, replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.sessions import open_paths

CHAT = "https://api.openai.com/v1/chat/completions"
MESSAGES = "https://api.anthropic.com/v1/messages"
RESPONSES = "https://api.openai.com/v1/responses"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent"

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
}
TOOLS = [{"type": "function", "function": {"name": "write_file", "parameters": SCHEMA}}]
MESSAGE_TOOLS = [{"name": "write_file", "input_schema": SCHEMA}]
WHOLE = '{"path": "a.md", "content": "one two three"}'
CUT = '{"path": "a.md", "content": "one tw'
HINT = "Continue exactly from where you left off."
SEND_AGAIN = "Your call of write_file was cut off. Send that one call again, complete, and nothing else."


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def call(arguments: str | None = WHOLE, key: str = "call_a1b2c3d4e5", name: str = "write_file") -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(text: str = "ok, written", key: str = "call_a1b2c3d4e5") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": text}


def chat(
    text: str | None, reason: str | None = "stop", *calls: dict[str, Any], tokens: int | None = 7, **more: Any
) -> dict[str, Any]:
    """The body of a whole chat completion."""
    usage = (
        {}
        if tokens is None
        else {"usage": {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}}
    )
    choice = {"index": 0, "message": assistant(text, *calls), "finish_reason": reason}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "m-1", "choices": [choice], **usage, **more}


def cut_stream(text: str) -> str:
    """A chat stream that ends after its text: no finish reason, no [DONE]."""
    delta = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "m-1",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}],
    }
    return f"data: {json.dumps(delta)}\n\n"


def message(blocks: list[dict[str, Any]], reason: str | None, tokens: int = 7) -> dict[str, Any]:
    """The body of a whole Anthropic message."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": tokens},
    }


def pair_of(
    messages: list[dict[str, Any]], body: Any, *, url: str = CHAT, status: int = 200, **more: Any
) -> dict[str, Any]:
    """One exchange whose request is a list of messages."""
    return exchange({"model": "m-1", "messages": messages, **more}, body, url=url, status=status)


def exchange(
    request: dict[str, Any],
    body: Any,
    *,
    url: str = CHAT,
    status: int = 200,
    headers: dict[str, str] | None = None,
    response_headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """One exchange: a request body and a response body, whole or as the text of a stream."""
    return {
        "request": {"method": "POST", "url": url, "headers": headers or {}, "body": request},
        "response": {"status": status, "headers": response_headers or {}, "body": body},
    }


def lines(*exchanges: dict[str, Any]) -> bytes:
    """JSON Lines, as a logger would write them."""
    return "".join(json.dumps(each) + "\n" for each in exchanges).encode()


def show(*exchanges: dict[str, Any], settings: Settings | None = None, data: bytes | None = None) -> View:
    """The view of a session read from standard input."""
    loaded = open_paths(["-"], stdin=lines(*exchanges) if data is None else data)
    assert [given.error for given in loaded.inputs] == [None]
    return view(replay(open_case(loaded), settings))


def bodiless_har(url: str = CHAT) -> bytes:
    """What a browser writes of a stream: a response without a body."""
    asks = {"model": "m-1", "stream": True, "messages": [user("hi")]}
    entry = {
        "request": {
            "method": "POST",
            "url": url,
            "headers": [],
            "postData": {"mimeType": "application/json", "text": json.dumps(asks)},
        },
        "response": {
            "status": 200,
            "headers": [{"name": "content-type", "value": "text/event-stream"}],
            "content": {"size": 0, "mimeType": "text/event-stream"},
        },
    }
    return json.dumps(
        {"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": [entry]}}
    ).encode()


# -- whole stories, by what they are about ----------------------------------------------------------------------------

ASKS = [user("write the plan")]


def rounds_of_tools(rounds: int, end: dict[str, Any] | None = None, cut: int | None = None) -> list[dict[str, Any]]:
    """A turn with so many rounds of tools, and the answer `end` after them, if given. The call of round `cut`, counted
    from 0, is cut, and ran all the same."""
    history, made = list(ASKS), []
    for number in range(rounds):
        whole = json.dumps({"path": f"{number}.md", "content": "one"})
        own = call(whole[:-2] if number == cut else whole, f"call_{number}")
        made.append(pair_of([*history], chat(None, "length" if number == cut else "tool_calls", own), tools=TOOLS))
        history += [assistant(None, own), result(key=f"call_{number}")]
    return [*made, *([] if end is None else [pair_of(history, end)])]


def cut_call_ran() -> list[dict[str, Any]]:
    """The call is cut by the budget of 40 tokens; the next request carries its result as if it had run."""
    after = [*ASKS, assistant(None, call(CUT)), result()]
    return [
        pair_of(ASKS, chat(None, "length", call(CUT), tokens=40), tools=TOOLS, max_tokens=40),
        pair_of(after, chat("It is written."), tools=TOOLS, max_tokens=40),
    ]


def cut_call_refused(said: str = "Error: the call was cut off by the output limit and was not executed.") -> list[Any]:
    """The same, but the result says that the call did not run; the model sends it again, whole, and it runs."""
    refused = [*ASKS, assistant(None, call(CUT)), {**result(said)}]
    after = [*refused, assistant(None, call(WHOLE, "call_f6g7h8i9j0")), result(key="call_f6g7h8i9j0")]
    return [
        pair_of(ASKS, chat(None, "length", call(CUT), tokens=40), tools=TOOLS, max_tokens=40),
        pair_of(refused, chat(None, "tool_calls", call(WHOLE, "call_f6g7h8i9j0")), tools=TOOLS, max_tokens=40),
        pair_of(after, chat("It is written."), tools=TOOLS, max_tokens=40),
    ]


def repair_turn() -> list[dict[str, Any]]:
    """The cut call is asked for again, comes whole, runs, and the turn ends."""
    again = [*ASKS, assistant("I will write it."), user(SEND_AGAIN)]
    after = [*again, assistant(None, call(WHOLE, "call_f6g7h8i9j0")), result(key="call_f6g7h8i9j0")]
    return [
        pair_of(ASKS, chat("I will write it.", "length", call(CUT), tokens=40), tools=TOOLS, max_tokens=40),
        pair_of(again, chat(None, "tool_calls", call(WHOLE, "call_f6g7h8i9j0")), tools=TOOLS, max_tokens=80),
        pair_of(after, chat("It is written."), tools=TOOLS, max_tokens=40),
    ]


def cut_text(*segments: str, last: str = "stop", tokens: int = 10, max_tokens: int | None = None) -> list[Any]:
    """A text that is cut after every segment and continued by a hint; the last ends with `last`, after 5 tokens."""
    made, history = [], [user("tell me everything")]
    more = {} if max_tokens is None else {"max_tokens": max_tokens}
    for number, segment in enumerate(segments):
        reason = last if number == len(segments) - 1 else "length"
        used = tokens if reason == "length" else 5
        made.append(pair_of(list(history), chat(segment, reason, tokens=used), **more))
        history += [assistant(segment), user(HINT)]
    return made


PARTS = (
    "The first part is about water, ",
    "the second is about fire, ",
    "the third is about earth, ",
    "the fourth is about air, ",
    "and the fifth is about nothing.",
)
