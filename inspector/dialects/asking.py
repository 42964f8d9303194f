"""The request that each format's client would have sent: prompt, tools, and the budget under its own name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.dialects.scenarios import TOOLS, Played
from inspector.dialects.table import Dialect
from loop_core.outgoing import body_of
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire import wire
from loop_core.wire.profiles import PROFILES

HOSTS: Mapping[str, str] = {
    "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com",
    "vertex": "https://us-central1-aiplatform.googleapis.com",
    "azure_openai": "https://example.openai.azure.com",
    "oci": "https://inference.generativeai.example.oci.oraclecloud.com",
}
"""Where a profile's host names are no whole address."""

def url(dialect: Dialect, stream: bool) -> str:
    """Where the request goes: the profile's own host, or a port of this machine."""
    profile = PROFILES[dialect.profile]
    port = profile.ports[0] if profile.ports else 8000
    local = not profile.hosts or profile.ports
    host = HOSTS.get(dialect.profile) or (f"http://127.0.0.1:{port}" if local else f"https://{profile.hosts[0]}")
    form = wire(dialect.api)
    return host + form.home.version + form.path(Request(dialect.api, model=dialect.model, stream=stream))


def body(dialect: Dialect, played: Played, stream: bool) -> dict[str, Any]:
    """The request body."""
    spelling = dialect.spelling(played.moment)
    request = Request(
        dialect.api, (Message(Role.USER, (TextPart(played.scenario.prompt),)),), dialect.model, tuple(TOOLS),
        max_tokens=played.budget, stream=stream, background=spelling is not None and spelling.whole,
    )
    return {**body_of(request, PROFILES[dialect.profile]), **dialect.asks}
