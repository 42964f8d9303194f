"""Masks credentials in bodies, texts, headers, URLs and JSON, before any other code sees them.

    bytes ─▶ spans of credentials ─▶ as many bytes, with a mask such as [masked: GitHub token] at each span

`inspector.sessions.detection` finds the spans. Credentials are masked when exchanges are built and when sessions are
written, so that no view and no file can show one. All text that leaves the program (files, downloads, standard output
and error, the clipboard, stored sessions) passes through `text` again. In a body or text a mask is as long as the
credential, so that offsets stay valid. Searches take time linear in the input, because RE2 does not backtrack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any
from urllib.parse import unquote

import re2

from inspector.sessions.credential_names import NAMES, PASSWORDS
from inspector.sessions.credential_values import REDACTED, any_of, is_password, random_looking
from inspector.sessions.detection import ESCAPES, NUMBER, SHORT, CredentialSpan, spans
from loop_core.json_parser import JsonPath
from loop_core.values import shared

Counts = MutableMapping[str, int]


# -- masks -----------------------------------------------------------------------------------------------------------


def mask(size: int, name: str) -> bytes:
    """A mask of this many bytes: a label if there is room for it, and asterisks."""
    if name == NUMBER:
        return b"9" * size
    mark = f"[masked: {name}]".encode("ascii", "replace")
    if len(mark) > size:
        mark = SHORT if len(SHORT) <= size else b""
    return mark + b"*" * (size - len(mark))


def count(counts: Counts | None, name: str) -> None:
    """Counts one mask of the credential `name`, if there is a counter."""
    if counts is not None:
        counts[name] = counts.get(name, 0) + 1


def mask_spans(data: bytes, spans: Sequence[CredentialSpan], counts: Counts | None = None) -> bytes:
    """The bytes with masks at the spans, of the same length."""
    pieces: list[bytes] = []
    done = 0
    for start, end, name in spans:
        pieces += (data[done:start], mask(end - start, name))
        done = end
        count(counts, name)
    return b"".join([*pieces, data[done:]]) if pieces else data


def body(data: bytes, counts: Counts | None = None) -> bytes:
    """The bytes, of the same length, with credentials masked, including those spelled with JSON escapes."""
    # PHP, for example, writes `\/` for every slash, so a key in base64 may contain escapes.
    data = mask_spans(data, escaped_spans(data), counts)
    return mask_spans(data, spans(data), counts)


def text(value: str, counts: Counts | None = None) -> str:
    """The text with credentials masked."""
    raw = value.encode("utf-8", "surrogatepass")
    masked = body(raw, counts)  # a text may hold JSON, such as a tool's result
    return value if masked is raw else masked.decode("utf-8", "surrogatepass")


# -- headers, addresses, requests ------------------------------------------------------------------------------------

HEADERS: frozenset[str] = frozenset({"session", "x-csrf", "x-forwarded-client-cert", "x-session", "x-xsrf"})
"""Names of headers that always carry a credential, in addition to those that `_SECRET` matches."""

_SECRET = re.compile(
    r"auth(?!or(?:s|ity)?$)|token|secret|(?:^|[-_.])(?:api)?keys?(?:$|[-_.])|apikey|passw|credential|cookie|signature|"
    r"(?:^|[-_.])(?:jwt|sig|sso|pat)(?:$|[-_.])"
)
_HARMLESS = re.compile(r"rate-?limit|tokens(?:$|[-_.])|token-count|idempotency|expose-headers|allow-headers")
"""Matches names that `_SECRET` also matches but that carry no credential: token counts, lists of header names."""

QUERY: frozenset[str] = frozenset({"awsaccesskeyid", "code", "pwd"})
"""Parameters of a request's URL whose value is always a credential, in addition to those that `_SECRET` matches."""


@lru_cache(maxsize=4096)
def secret_name(name: str) -> bool:
    """Whether a header of this name carries a credential."""
    lowered = name.lower()
    return lowered in HEADERS or (_SECRET.search(lowered) is not None and _HARMLESS.search(lowered) is None)


def headers(
    pairs: Iterable[tuple[str, str]], shapes: bool = True, counts: Counts | None = None
) -> tuple[tuple[str, str], ...]:
    """The headers with credentials masked. Without `shapes`, values of harmless names are not searched, because they
    are known to contain no credential."""
    # The length is tested first, because that is enough for nearly every header.
    masked_pairs = [(name, _named_mask(name, value, counts) if secret_name(name) else
                     url(value) if len(name) == 8 and name.lower() == "location" else value) for name, value in pairs]
    if not shapes or not spans("\n".join(chain.from_iterable(masked_pairs)).encode("utf-8", "surrogatepass")):
        return tuple(map(shared, masked_pairs))  # most headers are equal to those of the previous exchange
    return tuple([shared((text(name, counts), text(value, counts))) for name, value in masked_pairs])


def _named_mask(name: str, value: str, counts: Counts | None) -> str:
    """The mask of the whole value of a header or member, which hides the length too."""
    if value == REDACTED:
        return value
    count(counts, text(name).lower())  # in lower case, a credential in the name is not recognized
    return REDACTED


@lru_cache(maxsize=1024)
def url(address: str) -> str:
    """The URL with credentials in its query, fragment or user part masked."""
    if "@" in address:
        address = re.sub(r"(?<=//)[^/?#@]*@", f"{REDACTED}@", address, count=1)
    if "?" in address or "#" in address:
        address = re.sub(r"([?&#;])([^?=&#;]+)=([^&#;]*)", _parameter, address)
    raw = address.encode("utf-8", "surrogatepass")
    # From the end, because a mask in a URL may have another length and would shift later offsets.
    for start, end, _ in reversed(spans(raw)):
        raw = raw[:start] + REDACTED.encode() + raw[end:]
    return raw.decode("utf-8", "surrogatepass")


def _parameter(match: re.Match[str]) -> str:
    name = match[2].lower().replace("%2d", "-").replace("%5f", "_")
    # X-Amz-Signature, X-Amz-Security-Token and X-Amz-Credential in an address that AWS signed.
    if name in QUERY or name.startswith(("x-amz-s", "x-amz-c")) or secret_name(name):
        return f"{match[1]}{match[2]}={REDACTED}"
    written = match[0][1:]
    for _ in range(2):  # a URL within a URL is percent-encoded, a URL within that one twice
        if "%" in written and spans((written := unquote(written)).encode("utf-8", "surrogatepass")):
            return f"{match[1]}{match[2]}={REDACTED}"
    return match[0]


_REQUEST_NAME = rf"(?:[\w-]*[_-])?(?:{any_of((*NAMES, *PASSWORDS))})"
"""Matches member names in a request's JSON whose text is always a credential; messages are not searched for them."""


@cache
def _request_names() -> Any:
    return re2.compile(rf"(?i)(?:{any_of((*NAMES, *PASSWORDS))})\"".encode())


# Messages are searched only as text, because a member `password` in a tool's arguments is often code.
_HISTORY = frozenset({"messages", "contents", "input", "system", "instructions", "systemInstruction", "prompt"})


def request(value: Any, source: str, counts: Counts | None = None) -> Any:
    """A request's JSON with credentials masked; `source` is its text, already masked. None if it is nested too
    deeply."""
    raw = source.encode("utf-8", "surrogatepass")
    try:
        if ESCAPES.search(raw):
            value = texts(value, counts)
        if isinstance(value, dict) and _request_names().search(raw):
            return {name: inner if name in _HISTORY else values({name: inner}, counts)[name]
                    for name, inner in value.items()}
    except RecursionError:
        return None  # nested too deeply to be searched
    return value


def values(value: Any, counts: Counts | None = None) -> Any:
    """The JSON value with texts under credential names replaced, and credentials in other texts masked."""
    return _clean(value, lambda name, inner: inner != "", counts)


def _request_name(name: str) -> bool:
    return re.fullmatch(_REQUEST_NAME, name, re.IGNORECASE) is not None


def texts(value: Any, counts: Counts | None = None) -> Any:
    """The JSON value with credentials in its texts masked; a text under a credential's name only if it looks like
    one."""
    return _clean(value, _looks_secret, counts)


def _looks_secret(name: str, value: str) -> bool:
    password = re.fullmatch(any_of(PASSWORDS), name, re.IGNORECASE)
    return is_password(value, True, 32) if password else random_looking(value)


def _clean(value: Any, is_secret: Callable[[str, str], bool], counts: Counts | None) -> Any:
    """The JSON value with credentials in its texts masked, and texts under credential names replaced if `is_secret`."""
    if isinstance(value, dict):
        return {text(name): _named_mask(name, inner, counts)
                if isinstance(inner, str) and _request_name(name) and is_secret(name, inner) else
                _clean(inner, is_secret, counts) for name, inner in value.items()}
    if isinstance(value, list):
        return [_clean(inner, is_secret, counts) for inner in value]
    return text(value, counts) if isinstance(value, str) else value


# -- credentials spelled with JSON escapes ----------------------------------------------------------------------------

_STRINGS = r"\"(?:[^\"\\]|\\.)*\\+(?:/|u00[2-7][0-9A-Fa-f])(?:[^\"\\]|\\.)*\""
"""Matches a JSON string with an escape of a plain character, also in JSON that the string holds, where the backslash is
escaped as well. JSON has backslashes only in strings."""
_LEVELS = 3
"""The number of levels of JSON in JSON strings that are unescaped: a body, a tool's result in it, a file in that."""


@cache
def _strings() -> Any:
    return re2.compile(_STRINGS.encode())


_SPELLED = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)|[^\\]", re.DOTALL)


def escaped_spans(data: bytes, levels: int = _LEVELS) -> list[CredentialSpan]:
    """The places of credentials in JSON strings with escapes."""
    found: list[CredentialSpan] = []
    for match in _strings().finditer(data) if levels and ESCAPES.search(data) else ():
        start, end = match.span()
        found += spelled_spans(data, start + 1, end - 1, levels)
    return found


def spelled_spans(data: bytes, start: int, end: int, levels: int) -> list[CredentialSpan]:
    """The places of credentials inside one JSON string, found in its unescaped text."""
    try:
        unescaped_text = json.loads(b'"' + data[start:end] + b'"', strict=False).encode("utf-8", "surrogatepass")
    except ValueError:
        unescaped_text = None  # not a complete string, so it is unescaped piece by piece below
    if unescaped_text is not None and not (spans(unescaped_text) or escaped_spans(unescaped_text, levels - 1)):
        return []  # the usual case, without the costly search for the places of characters
    plain, places = unescape(data[start:end])
    found: list[CredentialSpan] = []
    for each in sorted([*spans(plain), *escaped_spans(plain, levels - 1)]):
        if found and each.start < found[-1].end:
            found[-1] = found[-1]._replace(end=max(found[-1].end, each.end))
        else:
            found.append(each)
    return [CredentialSpan(start + places[a], start + places[b], name) for a, b, name in found]


def unescape(inside: bytes) -> tuple[bytes, list[int]]:
    """The unescaped bytes of the inside of a JSON string, and the offset of each, and of the end, in the escaped
    text."""
    if b"\\" not in inside:
        return inside, list(range(len(inside) + 1))
    out = bytearray()
    places: list[int] = []
    text = inside.decode("utf-8", "surrogateescape")
    at = 0
    for piece in _SPELLED.finditer(text):
        written = piece[0]
        size = len(written.encode("utf-8", "surrogateescape"))
        try:
            plain_piece = json.loads(f'"{written}"') if written[0] == "\\" else written
        except ValueError:
            plain_piece = written
        escape = written[0] == "\\"
        raw = plain_piece.encode("utf-8", "surrogatepass" if escape else "surrogateescape")
        # All bytes of an escape have the offset of its beginning.
        places += [at] * len(raw) if escape else range(at, at + size)
        out += raw
        at += size
    return bytes(out), [*places, at]


# -- masks in the arguments of a call ---------------------------------------------------------------------------------

_MASK = r"\[masked(?:: [^\[\]\"\\]*)?\]\**|(?<=\")" + REDACTED + r"(?=\")"
"""Matches masks that are recognisable without their context."""
_STAND_IN = "\ue000"  # of the private use area, so it is in no recorded text by chance


def masked_places(arguments: str) -> tuple[JsonPath, ...]:
    """The paths of the texts with a mask in a call's JSON arguments; empty if the arguments are not JSON. Asterisks
    alone are a mask where other characters would be masked, for example under the name of a password."""
    marked = re.sub(_MASK, _STAND_IN, arguments) if "[masked" in arguments or REDACTED in arguments else arguments
    if "*" in marked:
        raw = marked.encode("utf-8", "surrogatepass")
        words = raw.replace(b"*", b"k")
        for start, end, _ in reversed(spans(words)):
            if not raw[start:end].strip(b"*"):
                raw = raw[:start] + _STAND_IN.encode() + raw[end:]
        marked = raw.decode("utf-8", "surrogatepass")
    if marked == arguments:
        return ()
    try:
        return tuple(_places_of(_STAND_IN, json.loads(marked), ()))
    except (ValueError, RecursionError):
        return ()


def _places_of(part: str, value: Any, place: JsonPath) -> Iterator[JsonPath]:
    if isinstance(value, str):
        if part in value:
            yield place
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places_of(part, inner, (*place, key))
