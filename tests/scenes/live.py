"""Answers of each format in small, and the wiring of a live turn in tests."""

from __future__ import annotations

from typing import Any

from loop_core.client.address import Server
from loop_core.client.exchange import Connection, Observer, Retries, Timeouts
from loop_core.client.outgoing import ability
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan
from loop_core.values import ChatResponse, Message, Request, Role, Stop, StopReason, TextPart, ToolCall, Usage
from loop_core.wire import wire
from loop_core.wire.profiles import PROFILES

QUICK = Connection(Timeouts(connect=2, silence=0.4, whole=5, poll=0.01), Retries(most=2, longest=1, first=0.01))
WORDS: dict[str, tuple[str, str, str]] = {
    "openai_chat": ("stop", "length", "tool_calls"),
    "openai_responses": ("completed", "incomplete:max_output_tokens", "completed"),
    "anthropic_messages": ("end_turn", "max_tokens", "tool_use"),
    "gemini_generate": ("STOP", "MAX_TOKENS", "STOP"),
    "bedrock_converse": ("end_turn", "max_tokens", "tool_use"),
    "ollama_chat": ("stop", "length", "stop"),
    "gemini_interactions": ("completed", "incomplete", "requires_action"),
}
"""Format -> its words for the end of a turn, a cut and calls."""
PATIENT = Connection(Timeouts(connect=5, silence=20, whole=60, poll=0.01), QUICK.retries)
"""For what is no test of silence, on a machine that is busy."""
KINDS = {"bedrock_converse": "application/vnd.amazon.eventstream", "ollama_chat": "application/x-ndjson"}


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


class Told(list[tuple[str, Any]]):
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


OBSERVER: type[Observer] = Told
