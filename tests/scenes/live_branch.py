"""Recordings whose requests are asked again, in small, and the wiring of a live run from one of their steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspector.config.settings import Settings, settings_of
from inspector.live.branch_request import BranchRequest, branch_request
from inspector.replay import Replay, replay
from inspector.replay.case import open_case
from inspector.sessions import open_paths
from loop_core.client.exchange import Connection, Retries, Timeouts
from loop_core.values import Tool, ToolCall

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
OSLO = ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True)
ROME = ToolCall("call_1", "weather", '{"city":"Rome"}', closed=True)
TOOLS = (Tool("weather", {"type": "object"}),)


PATIENT = Connection(Timeouts(connect=30, silence=60, whole=90, poll=0.01), Retries(most=2, longest=1, first=0.01))
"""Waits for a machine that is busy, and not before it asks again."""


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def completion(text: str | None, reason: str, call: ToolCall | None = None, tokens: int = 20) -> str:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call is not None:
        message["tool_calls"] = [{"id": call.id, "type": "function",
                                  "function": {"name": call.name, "arguments": call.arguments}}]
    return json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                       "usage": {"prompt_tokens": 40, "completion_tokens": tokens}})


def entry(url: str, body: dict[str, Any], answered: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """One HAR entry."""
    sent = [{"name": name, "value": value} for name, value in (headers or {}).items()]
    return {
        "startedDateTime": "2026-01-01T00:00:00Z", "time": 10,
        "request": {"method": "POST", "url": url, "headers": sent,
                    "postData": {"mimeType": "application/json", "text": json.dumps(body)}},
        "response": {"status": 200, "headers": [{"name": "content-type", "value": "application/json"}],
                     "content": {"mimeType": "application/json", "text": answered}},
    }


def har(path: Path, *entries: dict[str, Any]) -> str:
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {"name": "by hand", "version": "1"},
                                        "entries": list(entries)}}))
    return str(path)


def chat_url(base: str) -> str:
    return f"{base}/v1/chat/completions"


def request_body(**more: Any) -> dict[str, Any]:
    """A request with fields that nobody here knows, and a message with more than text in it."""
    said = {"role": "user", "content": [{"type": "text", "text": "Count.", "cache_control": {"type": "ephemeral"}}]}
    return {"model": "m", "messages": [said], "max_tokens": 20, "temperature": 0.25, "vendor": {"a": [1, 2]}, **more}


def write_two_turns(base: str, path: Path, **more: Any) -> str:
    """A turn: cut, continued, whole. Then a second one."""
    body = request_body(**more)
    going_on = {**body, "messages": [*body["messages"], {"role": "assistant", "content": "One, two, "},
                                     user("Continue exactly from where you left off.")]}
    second = {**body, "messages": [*body["messages"], {"role": "assistant", "content": "One, two, three."},
                                   user("And now?")]}
    url = chat_url(base)
    return har(path, entry(url, body, completion("One, two, ", "length")),
               entry(url, going_on, completion("three.", "stop")), entry(url, second, completion("Done.", "stop")))


def with_a_call(base: str, path: Path) -> str:
    """A turn with a call of the weather in Oslo, its result, and the end."""
    body = request_body(tools=[WEATHER])
    called = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}]}
    after = {**body, "messages": [*body["messages"], called,
                                  {"role": "tool", "tool_call_id": "call_1", "content": "snow"}]}
    url = chat_url(base)
    return har(path, entry(url, body, completion(None, "tool_calls", OSLO)),
               entry(url, after, completion("It snows.", "stop")))


def read(path: str, settings: Settings | None = None) -> Replay:
    return replay(open_case(open_paths([path])), settings)


def look_ahead(parent: Replay, since: int = 0, environment: dict[str, str] | None = None, **more: Any) -> BranchRequest:
    """What asking from a step on would send; settings by their names, the rest as `wanted` takes it."""
    own = {"base": ""} | {name: more.pop(name) for name in [*more] if name in ("base", "model", "variable", "given")}
    settings = settings_of({name: str(value) for name, value in more.items()}, parent.settings)
    return branch_request(parent, settings, since, environment or {}, **own)
