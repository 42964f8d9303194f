"""Answers of each format in small, and the wiring of a live turn in tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from inspector.provider.frames import read
from loop_core.client.address import Server
from loop_core.client.exchange import Connection, Observer, Retries, Timeouts
from loop_core.client.outgoing import ability
from loop_core.client.transport import AsyncLive, Live
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, arun, run
from loop_core.turn.state import Turn
from loop_core.turn.tools import Toolbox
from loop_core.values import ChatResponse, Message, Request, Role, Stop, StopReason, TextPart, Tool, ToolCall, Usage
from loop_core.wire import wire
from loop_core.wire.profiles import PROFILES
from tests.scenes.loopback import Answer, Fake, Peer

QUICK = Connection(Timeouts(connect=2, silence=0.4, whole=5, poll=0.01), Retries(most=2, longest=1, first=0.01))
WORDS: dict[str, tuple[str, str, str]] = {
    "openai_chat": ("stop", "length", "tool_calls"),
    "openai_responses": ("completed", "incomplete:max_output_tokens", "completed"),
    "anthropic_messages": ("end_turn", "max_tokens", "tool_use"),
    "gemini_generate": ("STOP", "MAX_TOKENS", "STOP"),
    "bedrock_converse": ("end_turn", "max_tokens", "tool_use"),
    "ollama_chat": ("stop", "length", "stop"),
    "gemini_interactions": ("completed", "incomplete", "requires_action"),
    "cohere_chat": ("COMPLETE", "MAX_TOKENS", "TOOL_CALL"),
    "bedrock_invoke": ("end_turn", "max_tokens", "tool_use"),
}
"""Format -> its words for the end of a turn, a cut and calls."""
PATIENT = Connection(Timeouts(connect=5, silence=20, whole=60, poll=0.01), QUICK.retries)
"""For what is no test of silence, on a machine that is busy."""
KINDS = {**dict.fromkeys(("bedrock_converse", "bedrock_invoke"), "application/vnd.amazon.eventstream"),
         "ollama_chat": "application/x-ndjson"}


def answer(api: str, text: str, stop: Stop, *calls: ToolCall, usage: Usage | None = None) -> list[bytes]:
    """What a provider streams for this answer, an event a piece."""
    end, cut, called = WORDS[api]
    raw = {Stop.END_TURN: end, Stop.MAX_TOKENS: cut, Stop.TOOL_CALL: called}[stop]
    parts: tuple[Any, ...] = (*((TextPart(text),) if text else ()), *calls)
    response = ChatResponse(api, parts, StopReason(stop, raw), usage, id="resp_1", model="m")
    if api in ("bedrock_converse", "gemini_generate", "ollama_chat"):
        response = ChatResponse(api, parts, StopReason(stop, raw), usage)
    return list(wire(api).encode(response, stream=True))


def request(api: str, **more: Any) -> Request:
    said = Message(Role.USER, (TextPart("Tell me."),))
    return Request(api, (said,), "m", max_tokens=100, stream=True, **more)


def plan(api: str, profile: str = "generic", **limits: Any) -> Plan:
    return Plan(Limits(**limits), ability=ability(PROFILES[profile], api))


def server(api: str, url: str, key: str = "") -> Server:
    return Server(api, url, key=key)


class EventLog(list[tuple[str, Any]]):
    """An observer that keeps what it was told."""

    def on_request(self, ask: Any) -> None:
        self.append(("asked", ask))

    def on_head(self, number: int, status: int, headers: Any) -> None:
        self.append(("begun", status))

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        self.append(("came", data))

    def on_end(self, heard: Any) -> None:
        self.append(("ended", heard))

    def on_wait(self, number: int, seconds: float) -> None:
        self.append(("waits", seconds))

    def on_tools(self, number: int, results: Any) -> None:
        self.append(("ran", results))

    def on_interrupt(self, number: int, *, answered: bool) -> None:
        self.append(("interrupted", (number, answered)))

    def of(self, kind: str) -> list[Any]:
        return [value for name, value in self if name == kind]


OBSERVER: type[Observer] = EventLog


ERROR = {"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}


def streams(api: str, pieces: list[bytes], then: Callable[[Peer], None] | None = None) -> Answer:
    def play(peer: Peer) -> None:
        peer.head(kind=KINDS.get(api, "text/event-stream"))
        for piece in pieces:
            peer.send(piece)
        if then is not None:
            then(peer)

    return play


def sync_turn(api: str, fake: Fake, *, line: Connection = QUICK, toolbox: Toolbox | None = None, key: str = "",
              tools: tuple[Tool, ...] = (), profile: str = "generic", **limits: Any) -> tuple[Turn, EventLog]:
    told = EventLog()
    with Live(server(api, fake.url, key), told, toolbox, line) as source:
        trace = run("t", request(api, tools=tools), source, plan(api, profile, **limits))
    return trace.steps[-1].turn, told


def async_turn(api: str, fake: Fake, *, line: Connection = QUICK, toolbox: Toolbox | None = None, key: str = "",
               tools: tuple[Tool, ...] = (), profile: str = "generic", **limits: Any) -> tuple[Turn, EventLog]:
    told = EventLog()

    async def last_turn() -> Turn:
        async with AsyncLive(server(api, fake.url, key), told, toolbox, line) as source:
            trace = await arun("t", request(api, tools=tools), source, plan(api, profile, **limits))
        return trace.steps[-1].turn

    return asyncio.run(last_turn()), told


def holds(api: str, piece: bytes, text: str) -> bool:
    """Whether a text stands in a piece of a stream; InvokeModel wraps its events in base64."""
    if api == "bedrock_invoke":
        return text in json.dumps(read(api, piece))
    return text.encode() in piece
