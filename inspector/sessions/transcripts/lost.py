"""How the network libraries of agents say that a connection was lost: such a request is sent again as it was."""

from __future__ import annotations

import re

LOST: tuple[str, ...] = (
    r"terminated", r"fetch failed", r"failed to fetch", r"socket hang up", r"other side closed", r"premature close",
    r"connection error", r"connection (?:was )?(?:lost|reset|closed|aborted|refused)",
    r"network (?:error|connection lost)", r"timed? ?out",
    r"stream (?:was )?(?:closed|ended) (?:unexpectedly|early|before)",
    r"e(?:connreset|pipe|timedout|hostunreach|ai_again)",
    r"und_err_\w+", r"incomplete chunked read", r"peer closed connection",
)
"""Wordings of undici, Node.js, Bun, httpx and the providers' SDKs."""
_LOST = re.compile(rf"\b(?:{'|'.join(LOST)})\b", re.IGNORECASE)
_LONG = 400


def connection_lost(message: str) -> bool:
    """Whether the message of a failed request says that its connection was lost."""
    return _LOST.search(message[:_LONG]) is not None
