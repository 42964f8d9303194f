"""The input tokens of a request as the provider counted them, and an estimate of what a text takes where it did not.

Formats count differently: some have what came from the cache among the input tokens, some beside them
(`Format.cached_apart`), and what was written to the cache stands apart then too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from inspector.sessions.recording import Exchange
from loop_core.wire import wire

BYTES_A_TOKEN = 4
"""What a token takes of a text, about; English prose has somewhat more, code and other scripts less."""
_WRITTEN = re.compile(rb'"(?:cache_creation_input_tokens|cacheWriteInputTokens)"\s*:\s*([0-9]{1,15})(?=\s*[,}\]])')
"""The count of a body: inside a JSON string its quotes are escaped, so no text of an answer is taken for it."""


class InputTokens(NamedTuple):
    """How many tokens were sent, by what the provider did with them."""

    fresh: int
    cached: int = 0
    """Read from the provider's cache."""
    written: int = 0
    """Read, and written to the cache."""

    @property
    def total(self) -> int:
        """The tokens of the whole context."""
        return self.fresh + self.cached + self.written


def input_tokens(exchange: Exchange) -> InputTokens | None:
    """The input tokens that the provider reported; None where it reported none, or contradicts itself."""
    usage = exchange.response.usage
    if usage is None or usage.input_tokens is None:
        return None
    given, cached = usage.input_tokens, usage.cached_tokens or 0
    if wire(exchange.api).cached_apart:
        counts = _WRITTEN.findall(exchange.body)
        found = InputTokens(given, cached, int(counts[-1]) if counts else 0)
    else:
        found = InputTokens(given - cached, cached)
    return found if min(found) >= 0 else None


def estimated_tokens(text: str) -> int:
    """About how many tokens a text takes: a guess from its size, never a count."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)
