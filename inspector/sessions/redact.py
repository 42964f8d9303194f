"""Credentials out, before anything else sees them.

Owns what counts as a credential: header names, URL parameters, names in a request's JSON, and the shapes of well-known
keys. It is applied while exchanges are built and while sessions are written, so no view and no file can show one.
Masks in bodies keep their length, so that offsets of the decoded body stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from inspector.sessions.marks import searcher

REDACTED = "REDACTED"

HEADERS: frozenset[str] = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "www-authenticate",
        "authentication",
        "cookie",
        "set-cookie",
        "cookie2",
        "x-api-key",
        "api-key",
        "apikey",
        "x-goog-api-key",
        "x-goog-iam-authorization-token",
        "x-amz-security-token",
        "x-amz-signature",
        "x-amz-credential",
        "x-functions-key",
        "ocp-apim-subscription-key",
        "x-auth",
        "x-csrf",
        "x-xsrf",
        "cf-access-jwt-assertion",
        "x-forwarded-client-cert",
        "x-session",
        "session",
        "jwt",
    }
)
"""Header names that always carry a credential."""

_SECRET = re.compile(
    r"auth(?!or(?:s|ity)?$)|token|secret|(?:^|[-_.])(?:api)?keys?(?:$|[-_.])|apikey|passw|credential|cookie|signature|"
    r"(?:^|[-_.])(?:jwt|sig|sso|pat)(?:$|[-_.])"
)
_HARMLESS = re.compile(r"rate-?limit|tokens(?:$|[-_.])|token-count|idempotency|expose-headers|allow-headers")
"""Counts of tokens, and lists of header names: needed, and no secret."""

QUERY: frozenset[str] = frozenset(
    {
        "key",
        "api_key",
        "api-key",
        "apikey",
        "token",
        "access_token",
        "refresh_token",
        "id_token",
        "auth",
        "authorization",
        "sig",
        "signature",
        "client_secret",
        "secret",
        "password",
        "passwd",
        "pwd",
        "code",
        "jwt",
        "subscription-key",
        "x-amz-signature",
        "x-amz-credential",
        "x-amz-security-token",
        "x-goog-signature",
        "x-goog-credential",
        "awsaccesskeyid",
        "credential",
        "session",
        "session_token",
    }
)

NAMES = (
    r"(?:[\w-]*_)?authorization(?:[_-]?token)?|(?:[\w-]*[_-])?api[_-]?key|"
    r"(?:access|refresh|auth|bearer|session|security)[_-]?token|"
    r"(?:client[_-]?)?secret(?:[_-]?(?:key|access[_-]?key))?|(?:aws[_-])?access[_-]?key[_-]?id|"
    r"x-[\w-]*-key|cookie|password"
)
"""Names in a request's own JSON (never in its messages) whose text is a credential: an MCP server's token, a header."""
_NAME_MARKS = (
    "uthorization",
    "pi_key",
    "pi-key",
    "piKey",
    "pikey",
    '_token"',
    'Token"',
    '-token"',
    "ecret",
    "ssword",
    "ookie",
    '-key"',
)
_HISTORY = frozenset({"messages", "contents", "input", "system", "instructions", "systemInstruction", "prompt"})

MARKS: tuple[str, ...] = ("sk-", "Bearer ", "AIza", "AKIA", "ASIA", "ghp_")
"""What the cheap test looks for; `SHAPES` decides."""
_MARK_BYTES = tuple(mark.encode() for mark in MARKS)

SHAPES = (
    rb"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4}))(?:"
    rb"(sk-(?:ant-|proj-|or-)?)(?=[A-Za-z0-9_-]*[A-Za-z0-9]{20})[A-Za-z0-9_-]{20,}|"
    rb"(Bearer )(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{20,}|"
    rb"(AIza)[A-Za-z0-9_-]{30,}|(A[KS]IA)[A-Z0-9]{16}(?![A-Za-z0-9])|(ghp_)[A-Za-z0-9]{30,})"
)
"""Well-known keys (OpenAI, Anthropic, OpenRouter, Google, AWS, GitHub) and bearer tokens, wherever they stand.

The group is what stays readable of each.
"""


@lru_cache(maxsize=4096)
def secret_name(name: str) -> bool:
    """Whether a header of this name carries a credential."""
    lowered = name.lower()
    return lowered in HEADERS or (_SECRET.search(lowered) is not None and _HARMLESS.search(lowered) is None)


def headers(pairs: Iterable[tuple[str, str]], shapes: bool = True) -> tuple[tuple[str, str], ...]:
    """The same headers, without credentials; `shapes` is false where the values are known to hold no key's shape."""
    if not shapes:
        return tuple([(name, REDACTED if secret_name(name) else _header(name, value)) for name, value in pairs])
    return tuple([(name, REDACTED if secret_name(name) else text(_header(name, value))) for name, value in pairs])


def _header(name: str, value: str) -> str:
    return url(value) if len(name) == 8 and name.lower() == "location" else value


@lru_cache(maxsize=1024)
def url(address: str) -> str:
    """The same URL, without credentials in its query, fragment or user part."""
    if "@" in address:
        address = re.sub(r"(?<=//)[^/?#@]*@", REDACTED + "@", address, count=1)
    if "?" in address or "#" in address:
        address = re.sub(r"([?&#;])([^=&#;]+)=([^&#;]*)", _parameter, address)
    return text(address)


def _parameter(match: re.Match[str]) -> str:
    name = match[2].lower().replace("%2d", "-").replace("%5f", "_")
    if name in QUERY or name.startswith(("x-amz-s", "x-amz-c")) or secret_name(name):
        return f"{match[1]}{match[2]}={REDACTED}"
    return match[0]


def suspicious(data: str | bytes) -> bool:
    """Whether `body` has to look at this at all (a cheap test, for a whole file at once)."""
    return _search(MARKS)(data)


_search = cache(searcher)


def body(data: bytes) -> bytes:
    """The same bytes, as many, with well-known keys masked by asterisks."""
    if not suspicious(data):
        return data
    pieces: list[bytes] = []
    done, shape = 0, re.compile(SHAPES)
    # Tried at the marks alone: a search would try the whole pattern at every byte.
    for start in sorted(_starts(data)):
        match = shape.match(data, start) if start >= done else None
        if match is not None:
            pieces += (data[done:start], _mask(match))
            done = match.end()
    return b"".join([*pieces, data[done:]]) if pieces else data


def _starts(data: bytes) -> Iterator[int]:
    for mark in _MARK_BYTES:
        start = data.find(mark)
        while start >= 0:
            yield start
            start = data.find(mark, start + 1)


def _mask(match: re.Match[bytes]) -> bytes:
    kept = match[match.lastindex or 0]
    return kept + b"*" * (len(match[0]) - len(kept))


def text(value: str) -> str:
    """The same text with well-known keys masked."""
    if not suspicious(value):
        return value
    return body(value.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def request(value: Any, source: str) -> Any:
    """A request's JSON without credentials; `source` is its text, already masked, and spares most requests the walk."""
    if isinstance(value, dict) and _search(_NAME_MARKS)(source):
        try:
            return {name: inner if name in _HISTORY else values({name: inner})[name] for name, inner in value.items()}
        except RecursionError:
            return None  # nested too deeply to be made clean
    return value


def values(value: Any) -> Any:
    """The same JSON value with the texts under credential names replaced and well-known keys masked."""
    if isinstance(value, dict):
        return {name: REDACTED if _named(name, inner) else values(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [values(inner) for inner in value]
    return text(value) if isinstance(value, str) else value


def _named(name: str, value: Any) -> bool:
    return isinstance(value, str) and value != "" and re.fullmatch(NAMES, name, re.IGNORECASE) is not None


def texts(value: Any) -> Any:
    """The same JSON value with well-known keys masked."""
    if isinstance(value, dict):
        return {name: texts(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [texts(inner) for inner in value]
    return text(value) if isinstance(value, str) else value
