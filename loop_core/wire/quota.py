"""Rate-limit headers -> Quota (seed 000 `quota_metadata`): a table of header names. What is no number stays raw."""

from __future__ import annotations

from collections.abc import Iterable

from loop_core.values import Quota

NAMES: dict[str, str] = {
    "x-ratelimit-limit-requests": "limit_requests",
    "x-ratelimit-remaining-requests": "remaining_requests",
    "x-ratelimit-limit-tokens": "limit_tokens",
    "x-ratelimit-remaining-tokens": "remaining_tokens",
    "x-ratelimit-reset-tokens": "reset",
    "anthropic-ratelimit-requests-limit": "limit_requests",
    "anthropic-ratelimit-requests-remaining": "remaining_requests",
    "anthropic-ratelimit-tokens-limit": "limit_tokens",
    "anthropic-ratelimit-tokens-remaining": "remaining_tokens",
    "anthropic-ratelimit-tokens-reset": "reset",
    "ratelimit-limit": "limit_requests",
    "ratelimit-remaining": "remaining_requests",
    "ratelimit-reset": "reset",
    "retry-after": "retry_after",
}
_NUMBERS = ("limit_requests", "remaining_requests", "limit_tokens", "remaining_tokens")


def read_quota(headers: Iterable[tuple[str, str]]) -> Quota | None:
    """The quota that the headers state; None where none of them is a rate-limit header."""
    numbers: dict[str, int] = {}
    words: dict[str, str] = {}
    seen: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if "ratelimit" not in lower and lower != "retry-after":
            continue
        seen[lower] = value
        field = NAMES.get(lower)
        if field in _NUMBERS and value.strip().isdigit():
            numbers.setdefault(field, int(value))
        elif field in ("reset", "retry_after"):
            words.setdefault(field, value)
    if not seen:
        return None
    return Quota(
        limit_requests=numbers.get("limit_requests"),
        remaining_requests=numbers.get("remaining_requests"),
        limit_tokens=numbers.get("limit_tokens"),
        remaining_tokens=numbers.get("remaining_tokens"),
        reset=words.get("reset"),
        retry_after=words.get("retry_after"),
        headers=seen,
    )
