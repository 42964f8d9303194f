"""The spellings of request/response pairs: how loggers, proxies, cassettes and batch files name the same things.

Tables of names, and the small functions that read one of them. Knows nothing of files.
"""

from __future__ import annotations

from typing import Any

from inspector.sessions import lenient
from inspector.sessions.raw import Headers

REQUESTS = ("request", "req", "request_body", "requestBody", "input", "kwargs")
RESPONSES = (
    "response",
    "resp",
    "res",
    "response_body",
    "responseBody",
    "raw_response",
    "output",
    "result",
    "completion",
)
BODIES = ("body_raw", "body", "json", "content", "text", "data")
LISTS = ("interactions", "exchanges", "entries", "calls", "pairs", "records", "items", "logs", "requests")
"""Keys of an object that holds the list of pairs (`interactions`: JSON cassettes)."""
STARTED = ("started", "startedDateTime", "timestamp", "time", "ts", "recorded_at", "created_at")
STATUS = ("status", "status_code", "statusCode")
DURATIONS = ("duration_ms", "elapsed_ms", "latency_ms", "time_ms")

Path = tuple[str | int, ...]


def pick(value: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of the names that has a value."""
    return next((name for name in names if value.get(name) is not None), None)


def is_http(value: dict[str, Any]) -> bool:
    """Whether a side of a pair is an HTTP message around the body, and not the body itself."""
    return (
        status_of(value) is not None
        or isinstance(value.get("headers"), (dict, list))
        or "body_raw" in value
        or ("body" in value and isinstance(value["body"], (str, dict)))
    )


def status_of(value: dict[str, Any]) -> int | None:
    """The HTTP status of an answer; None where it states none."""
    for name in STATUS:
        status = value.get(name)
        if isinstance(status, dict):
            status = status.get("code")
        if isinstance(status, int) and not isinstance(status, bool) and 100 <= status < 600:
            return status
    return None


def cassette(value: Any, path: Path) -> tuple[Any, Path]:
    """The text inside `{"string": …}`, as cassettes write bodies."""
    if isinstance(value, dict):
        for key in ("string", "base64_string"):
            if isinstance(value.get(key), str) and set(value) <= {"string", "base64_string", "encoding"}:
                return value[key], (*path, key)
    return value, path


def headers(value: Any) -> Headers:
    """The headers of an HTTP message, however they are written."""
    if isinstance(value, dict):
        return [(str(name), str(item[0] if isinstance(item, list) and item else item)) for name, item in value.items()]
    if isinstance(value, list):
        pairs = [(item.get("name"), item.get("value")) if isinstance(item, dict) else item for item in value]
        return [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, (list, tuple)) and len(pair) == 2]
    return []


def moment(value: dict[str, Any]) -> str | None:
    """When an exchange began, as it is written; None where that is not said."""
    for name in STARTED:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
        if (lenient.number(found) or 0) > 0:
            return str(found)
    return None


def duration(value: dict[str, Any]) -> float | None:
    """How long an exchange took in milliseconds; None where that is not said."""
    return next((found for name in DURATIONS if (found := lenient.number(value.get(name))) is not None), None)
