"""Which format a path belongs to, whether or not anything is served there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from inspector.provider.asked import api_of
from loop_core.wire.servers import CHAT, CONVERSE, GEMINI, MESSAGES, OLLAMA

DOUBLED = re.compile(r"^[^?#]*?/(v1(?:beta)?)/(v1(?:beta)?)(?=[/?#]|$)")
"""A version that a client put behind a base URL which ends in one."""
NEAR: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/api/"), OLLAMA),
    (re.compile(r"/v1beta(?=[/?#]|$)|/models/[^/?#]+:"), GEMINI),
    (re.compile(r"/model/"), CONVERSE),
    (re.compile(r"/messages(?=[/?#]|$)"), MESSAGES),
)
"""What is found in a path -> the format whose error it gets; those of Responses look like those of Chat Completions."""
CLIENTS: Mapping[str, str] = {"anthropic-version": MESSAGES, "x-goog-api-key": GEMINI}
"""A header that only one provider's clients send -> its format, for paths that several have."""


def format_of(path: str, headers: Mapping[str, str]) -> str:
    """The format whose words are used under this path; Chat Completions where nothing tells."""
    near = next((api for pattern, api in NEAR if pattern.search(path)), None)
    sent = next((api for name, api in CLIENTS.items() if name in headers), None)
    return api_of(path) or near or sent or CHAT
