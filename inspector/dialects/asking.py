"""The request that each format's client would have sent: prompt, tools, and the budget under its own name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inspector.dialects.scenarios import TOOLS, Moment, Played
from inspector.dialects.table import Dialect
from loop_core.values import Tool
from loop_core.wire.profiles import PROFILES
from loop_core.wire.servers import CHAT, CONVERSE, GEMINI, MESSAGES, OLLAMA, RESPONSES

Body = dict[str, Any]

HOSTS: Mapping[str, str] = {
    "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com",
    "vertex": "https://us-central1-aiplatform.googleapis.com",
    "azure_openai": "https://example.openai.azure.com",
    "oci": "https://inference.generativeai.example.oci.oraclecloud.com",
}
"""Where a profile's host names are no whole address."""

PATHS: Mapping[str, tuple[str, str]] = {
    CHAT: ("/v1/chat/completions", "/v1/chat/completions"),
    RESPONSES: ("/v1/responses", "/v1/responses"),
    MESSAGES: ("/v1/messages", "/v1/messages"),
    GEMINI: ("/v1beta/models/{model}:generateContent", "/v1beta/models/{model}:streamGenerateContent?alt=sse"),
    CONVERSE: ("/model/{model}/converse", "/model/{model}/converse-stream"),
    OLLAMA: ("/api/chat", "/api/chat"),
}
"""Path for a whole answer, and for a streamed one."""


def url(dialect: Dialect, stream: bool) -> str:
    """Where the request goes: the profile's own host, or a port of this machine."""
    profile = PROFILES[dialect.profile]
    port = profile.ports[0] if profile.ports else 8000
    local = not profile.hosts or profile.ports
    host = HOSTS.get(dialect.profile) or (f"http://127.0.0.1:{port}" if local else f"https://{profile.hosts[0]}")
    return host + PATHS[dialect.api][stream].format(model=dialect.model)


def body(dialect: Dialect, played: Played, stream: bool) -> Body:
    """The request body."""
    asked = _BODIES[dialect.api](played.scenario.prompt, played.budget, stream)
    if dialect.api not in (GEMINI, CONVERSE):
        asked = {"model": dialect.model, **asked}
    asked.update(dialect.asks)
    if dialect.api == RESPONSES and played.moment is Moment.PAUSED:
        asked["background"] = True
    return asked


def _chat(prompt: str, budget: int, stream: bool) -> Body:
    usage = {"stream_options": {"include_usage": True}} if stream else {}
    tools = [{"type": "function", "function": _declared(tool, "parameters")} for tool in TOOLS]
    return {"messages": _messages(prompt), "max_tokens": budget, "stream": stream, **usage, "tools": tools}


def _responses(prompt: str, budget: int, stream: bool) -> Body:
    tools = [{"type": "function", **_declared(tool, "parameters")} for tool in TOOLS]
    return {"input": _messages(prompt), "max_output_tokens": budget, "stream": stream, "tools": tools}


def _anthropic(prompt: str, budget: int, stream: bool) -> Body:
    tools = [_declared(tool, "input_schema") for tool in TOOLS]
    return {"messages": _messages(prompt), "max_tokens": budget, "stream": stream, "tools": tools}


def _gemini(prompt: str, budget: int, stream: bool) -> Body:
    tools = [{"functionDeclarations": [_declared(tool, "parametersJsonSchema") for tool in TOOLS]}]
    return {"contents": [{"role": "user", "parts": [{"text": prompt}]}],
            "generationConfig": {"maxOutputTokens": budget}, "tools": tools}


def _converse(prompt: str, budget: int, stream: bool) -> Body:
    tools = [{"toolSpec": {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.schema}}}
             for tool in TOOLS]
    return {"messages": [{"role": "user", "content": [{"text": prompt}]}], "inferenceConfig": {"maxTokens": budget},
            "toolConfig": {"tools": tools}}


def _ollama(prompt: str, budget: int, stream: bool) -> Body:
    tools = [{"type": "function", "function": _declared(tool, "parameters")} for tool in TOOLS]
    return {"messages": _messages(prompt), "options": {"num_predict": budget}, "stream": stream, "tools": tools}


_BODIES: Mapping[str, Callable[[str, int, bool], Body]] = {
    CHAT: _chat, RESPONSES: _responses, MESSAGES: _anthropic, GEMINI: _gemini, CONVERSE: _converse, OLLAMA: _ollama,
}


def _messages(prompt: str) -> list[Body]:
    return [{"role": "user", "content": prompt}]


def _declared(tool: Tool, schema: str) -> Body:
    return {"name": tool.name, "description": tool.description, schema: tool.schema}
