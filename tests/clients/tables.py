"""Which clients are played to, in which formats, with which scenarios. Data only.

A version stands here and nowhere else: these libraries are no part of the project's own requirements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inspector.provider import all_stories
from loop_core.formats import FORMATS
from loop_core.wire.servers import CHAT, CONVERSE, GEMINI, MESSAGES, OLLAMA, RESPONSES

HERE = Path(__file__).resolve().parent
DATA = HERE / "reports.json"
MODES = ("stream", "whole")
SCENARIOS = tuple(all_stories())
CAP = 1024
"""The output limit of a request; every client sends one, since one of the formats demands it."""
CAPS: Mapping[str, int] = {"text": 24, "thinking": 40, "restart": 48}
"""Scenarios whose point is a smaller one."""
TIMEOUTS: Mapping[str, float] = {"stalled": 1.0}
"""Scenarios in which a client is given a time limit of its own, in seconds; else it keeps its defaults."""
CELL_SECONDS = 30.0
"""After which a cell is given up: the client has come to no end."""
START_SECONDS = 300.0
"""For a client's libraries to be loaded, which is no part of a cell."""


@dataclass(frozen=True)
class Environment:
    """One throw-away installation: what is installed, and which program asks from it."""

    name: str
    probe: str
    python: tuple[str, ...] = ()
    node: tuple[str, ...] = ()


@dataclass(frozen=True)
class Client:
    """One client in every format that it speaks."""

    name: str
    environment: str
    formats: Mapping[str, str]
    """Wire format -> the package that speaks it there."""
    loops: bool
    """Whether it runs tools by itself; else it hands calls over."""
    way: str
    """What of it is asked, whole / stream."""


ENVIRONMENTS = (
    Environment("ours", "with_ours.py"),
    Environment("sdks", "with_sdks.py", (
        "openai==3.54.0", "anthropic==2.12.0", "google-genai==3.4.0", "boto3==1.44.5", "ollama==0.6.3")),
    Environment("agents", "with_agents.py", ("openai-agents==0.24.0", "openai==3.54.0")),
    Environment("pydantic-ai", "with_pydantic_ai.py", (
        "pydantic-ai-slim[openai,anthropic,google,bedrock]==2.68.0", "openai==3.54.0", "anthropic==2.12.0",
        "google-genai==2.34.0", "boto3==1.44.5")),
    Environment("langchain", "with_langchain.py", (
        "langchain==1.4.7", "langchain-openai==1.7.3", "langchain-anthropic==1.7.7", "langchain-google-genai==4.4.2",
        "langchain-aws==1.9.1", "langchain-ollama==1.1.0")),
    Environment("litellm", "with_litellm.py", ("litellm==1.106.2", "boto3==1.44.5", "mcp==2.3.0")),
    Environment("vercel", "with_vercel.mjs", node=(  # 6 is the newest that runs on Node 20
        "ai@6.0.326", "zod@4.6.7", "@ai-sdk/openai@3.0.141", "@ai-sdk/anthropic@3.0.139", "@ai-sdk/google@3.0.141",
        "@ai-sdk/amazon-bedrock@4.0.186", "ollama-ai-provider-v2@3.6.0")),
)

CLIENTS = (
    Client("loop_core", "ours", dict.fromkeys(FORMATS, ""), True, "`loop_core.turn.loop.run`"),
    Client("official SDK", "sdks", {
        CHAT: "openai", RESPONSES: "openai", MESSAGES: "anthropic", CONVERSE: "boto3", OLLAMA: "ollama"}, False,
        "`create` / `create(stream=True)`, `converse` / `converse_stream`, `chat` / `chat(stream=True)`"),
    Client("official SDK that runs tools", "sdks", {MESSAGES: "anthropic", GEMINI: "google-genai"}, True,
           "`beta.messages.tool_runner`; `generate_content` / `generate_content_stream` with functions as tools"),
    Client("Vercel AI SDK", "vercel", {
        CHAT: "@ai-sdk/openai", RESPONSES: "@ai-sdk/openai", MESSAGES: "@ai-sdk/anthropic", GEMINI: "@ai-sdk/google",
        CONVERSE: "@ai-sdk/amazon-bedrock", OLLAMA: "ollama-ai-provider-v2"}, True,
        "`generateText` / `streamText` with `stopWhen: stepCountIs(6)`"),
    Client("openai-agents", "agents", {CHAT: "openai", RESPONSES: "openai"}, True,
           "`Runner.run` / `Runner.run_streamed`"),
    Client("pydantic-ai", "pydantic-ai", {
        CHAT: "openai", RESPONSES: "openai", MESSAGES: "anthropic", GEMINI: "google-genai", CONVERSE: "boto3"}, True,
        "`Agent.run`, with an `event_stream_handler` where it streams"),
    Client("langchain", "langchain", {
        CHAT: "langchain-openai", RESPONSES: "langchain-openai", MESSAGES: "langchain-anthropic",
        GEMINI: "langchain-google-genai", CONVERSE: "langchain-aws", OLLAMA: "langchain-ollama"}, True,
        '`create_agent(…).invoke` / `.stream(stream_mode="messages")`'),
    Client("litellm", "litellm", dict.fromkeys((CHAT, RESPONSES, MESSAGES, GEMINI, CONVERSE, OLLAMA), ""), False,
           "`completion`, `responses` / with `stream=True`"),
)

PACKAGES: Mapping[str, str] = {
    "Vercel AI SDK": "ai", "openai-agents": "openai-agents", "pydantic-ai": "pydantic-ai-slim",
    "langchain": "langchain", "litellm": "litellm",
}
"""Client -> the package that it is, where that is not the one that speaks the format."""

COMPLETE = frozenset({
    "stop", "end_turn", "stop_sequence", "completed", "STOP",
    "tool_calls", "tool-calls", "tool_call", "tool_use", "function_call",
})
"""Words that say, each in the language of its client, that an answer is complete, or that its calls are."""


def cells() -> list[tuple[str, str, str, str]]:
    """Client, wire format, mode and scenario of every cell."""
    return [(client.name, api, mode, scenario)
            for client in CLIENTS for api in FORMATS if api in client.formats
            for mode in MODES for scenario in SCENARIOS]
