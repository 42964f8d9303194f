"""Recognises the server behind a response: chooses its profile, with evidence, and reads the native word that a router
passes on.

The rows are data in `servers`. A format's table is imported only when a native word has to be read through it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from loop_core.errors import CallerError
from loop_core.json_parser import from_json
from loop_core.values import WORDLESS, At, ChatResponse, Evidence, ExchangePart, StopReason, shared
from loop_core.wire import FORMATS, wire
from loop_core.wire.failures import StopRow
from loop_core.wire.format import Prefill, Profile
from loop_core.wire.json_values import pointer
from loop_core.wire.servers import GENERIC, SERVERS


def _with_registry_formats(profile: Profile) -> Profile:
    """The profile, completed with the formats whose registry rows name this server."""
    more = tuple(api for api, row in FORMATS.items() if profile.name in row.servers)
    return profile._replace(apis=(*profile.apis, *more)) if more else profile


PROFILES: Mapping[str, Profile] = {profile.name: _with_registry_formats(profile) for profile in (*SERVERS, GENERIC)}

NO_NATIVE_WORD = frozenset({"none", "null"})
"""The texts with which a router says that there was no native word."""


class ProfileChoice(NamedTuple):
    """A profile, resolved for the model, and the evidence for it."""

    profile: Profile
    evidence: tuple[Evidence, ...] = ()


def profile_named(name: str, model: str | None = None) -> ProfileChoice:
    """The profile with this name, for any format. Raises `CallerError` if there is no profile with this name."""
    if name not in PROFILES:
        raise CallerError(f"unknown profile {name!r}; expected one of {', '.join(sorted(PROFILES))}")
    return ProfileChoice(for_model(PROFILES[name], model), (Evidence("profile.named", None, name),))


def choose(
    api: str,
    url: str = "",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | dict[str, Any] | None = None,
    model: str | None = None,
) -> ProfileChoice:
    """Returns the profile of a server, found by host, else response headers, else marks of the body, port, or model.
    `body` is the response: its bytes, or its JSON (any event of a stream)."""
    address = _address(url)
    # The host first: gateways pass on headers and bodies of the provider behind them; a port or a model is a guess.
    found = _by_address(api, address) or _by_headers(api, headers)
    if found is None:
        values = _values(body)
        model = model or _model(values)
        found = _by_body(api, values) or _by_port(api, address) or _by_model(api, model)
    if found is None:
        found = ProfileChoice(GENERIC, (Evidence("profile.generic"),))
    if model is None and (found.profile.prefill_models or found.profile.contexts):
        model = _model(_values(body))
    return ProfileChoice(for_model(found.profile, model), shared(found.evidence))


def for_model(profile: Profile, model: str | None) -> Profile:
    """The profile with the prefill and the context size of one model."""
    if not profile.prefill_models and not profile.contexts:
        return profile
    name = model or ""
    prefill = next((how for pattern, how in profile.prefill_models if re.search(pattern, name)), profile.prefill)
    size = next((size for pattern, size in profile.contexts if re.search(pattern, name)), profile.context_size)
    if prefill is profile.prefill and size == profile.context_size:
        return profile
    return _of_size(profile.name, prefill, size)


@cache
def _of_size(name: str, prefill: Prefill, size: int | None) -> Profile:
    """The profile with another prefill and context size, one object for all responses of the server's models."""
    return PROFILES[name]._replace(prefill=prefill, context_size=size)


def native_word(word: str) -> StopRow | None:
    """Returns the meaning of a router's native word, by the tables of all formats and profiles; None if no table has
    the word. If tables disagree, cut, filtered or failed outranks ended."""
    folded = word.casefold()
    # A gateway may prefix another word, as in `content_filter: RECITATION`.
    return _meaning(folded) or _meaning(folded.rpartition(":")[2].strip())


def native_reading(response: ChatResponse, profile: Profile) -> StopReason | None:
    """The meaning of the word that a router passed on; None if there is none, or no table knows it."""
    for name in profile.native_fields:
        word = response.native.get(name)
        if not word or word.casefold() in NO_NATIVE_WORD:
            continue
        row = native_word(word)
        if row is not None:
            return StopReason(row.stop, word, row.detail)
    return None


# -- the signs, strongest first --------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _by_address(api: str, address: str) -> ProfileChoice | None:
    if not address:
        return None
    host = re.sub(r":\d+$", "", address.partition("/")[0])
    for profile in _profiles_of(api):
        at = At(ExchangePart.REQUEST, pointer="url")
        # whole labels: `notopenai.com` is another host
        if any(host == name or host.endswith(f".{name}") for name in profile.hosts):
            return ProfileChoice(profile, (Evidence("profile.host", at, host),))
        if any(re.search(pattern, address) for pattern in profile.urls):
            return ProfileChoice(profile, (Evidence("profile.url", at, host),))
    return None


def _by_headers(api: str, headers: Iterable[tuple[str, str]]) -> ProfileChoice | None:
    values_by_name = {name.lower(): value for name, value in headers}
    if not values_by_name:
        return None
    for profile in _profiles_of(api):
        for row in profile.headers:
            name, _, wanted = row.partition("=")
            if name.endswith("*"):
                # a row that ends in `*` is a prefix
                name = next((header for header in values_by_name if header.startswith(name[:-1])), name)
            if name in values_by_name and wanted in values_by_name[name].lower():
                at, text = At(ExchangePart.HEADERS, pointer=name), f"{name}: {values_by_name[name]}"[:120]
                return ProfileChoice(profile, (Evidence("profile.header", at, text),))
    return None


def _by_body(api: str, values: Sequence[Any]) -> ProfileChoice | None:
    keys = {key for value in values if isinstance(value, dict) for key in value}
    for profile in _profiles_of(api):
        for mark in profile.body:
            for value in values if mark.path[0] in keys else ():
                text = _text_at(value, mark.path)
                if text is not None and re.search(mark.pattern, text):
                    at = At(ExchangePart.BODY, pointer=pointer(*mark.path))
                    return ProfileChoice(profile, (Evidence("profile.body", at, text[:120]),))
    return None


def _by_port(api: str, address: str) -> ProfileChoice | None:
    port = address.partition("/")[0].rpartition(":")[2]
    for profile in _profiles_of(api):
        if port in map(str, profile.ports):
            return ProfileChoice(profile, (Evidence("profile.port", At(ExchangePart.REQUEST, pointer="url"), port),))
    return None


@lru_cache(maxsize=1024)
def _by_model(api: str, model: str | None) -> ProfileChoice | None:
    for profile in _profiles_of(api):
        if model and any(re.search(pattern, model) for pattern in profile.models):
            return ProfileChoice(profile,
                                 (Evidence("profile.model", At(ExchangePart.REQUEST, pointer="/model"), model[:120]),))
    return None


@cache
def _profiles_of(api: str) -> tuple[Profile, ...]:
    return tuple(profile for profile in PROFILES.values() if api in profile.apis and profile is not GENERIC)


def _model(values: Sequence[Any]) -> str | None:
    for value in values:
        for path in (("model",), ("response", "model"), ("message", "model")):
            text = _text_at(value, path)
            if text:
                return text
    return None


def _address(url: str) -> str:
    """`host:port/path`, without scheme, user and query."""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")  # recorders also write `host/path`
        return f"{parts.netloc.rpartition('@')[2].lower()}{parts.path}"
    except ValueError:  # such as `http://[::1`
        return ""


def _text_at(value: Any, path: Sequence[str | int]) -> str | None:
    for key in path:
        if isinstance(key, int):
            if not isinstance(value, list) or len(value) <= key:
                return None
            value = value[key]
        elif not isinstance(value, dict) or key not in value:
            return None
        else:
            value = value[key]
    return value if isinstance(value, str) else json.dumps(value)


def _values(body: bytes | dict[str, Any] | None) -> list[Any]:
    """The JSON values in which marks are searched: the whole body, or the first and last events of a stream."""
    if not isinstance(body, bytes):
        return [] if body is None else [body]
    text = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in (b"{", b"["):
        value = _parse_or_none(text)
        if value is not None:
            return value[:1] if isinstance(value, list) else [value]  # elements of an array repeat the same marks
    # 0x1E begins an event of a JSON text sequence (RFC 7464)
    lines = (line.removeprefix(b"\x1e").removeprefix(b"data:") for line in event_lines(text))
    return [value for line in lines if (value := _parse_or_none(line)) is not None]


_EVENT = re.compile(rb"(?:\A|(?<=[\r\n]))\x1e?(?:data:|\{)[^\r\n]*")


def event_lines(text: bytes) -> list[bytes]:
    """The first two and the last three lines of a stream that hold an event; the rest is never read."""
    first = [*islice(_EVENT.finditer(text), 2)]
    after, end = first[-1].end() if first else len(text), len(text)
    last: list[bytes] = []
    # With one kind of line break: otherwise each line of a stream of pings would cost a search of the whole.
    plain = text.replace(b"\r", b"\n")
    while end > after and len(last) < 3:
        start = 1 + plain.rfind(b"\n", after, end)
        if _EVENT.match(text, start) is not None:
            last.append(text[start:end])
        end = start - 1
    return [each[0] for each in first] + last[::-1]


def _parse_or_none(text: bytes) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _meaning(name: str) -> StopRow | None:
    found = None
    # One format at a time: for most words the first table suffices, and loading all takes 10 ms.
    for api in (*FORMATS, None):
        row = _words_of(api).get(name)
        if row is not None and row.stop not in WORDLESS:
            return row
        found = found or row
    return found


@cache
def _words_of(api: str | None) -> Mapping[str, StopRow]:
    """The stop words of a format in lower case; with None, the words of all servers' profiles."""
    words: dict[str, StopRow] = {}
    for table in [server.words for server in SERVERS] if api is None else [wire(api).stop_reasons]:
        for word, row in table.items():
            # Routers pass on the second half of Responses' words (`incomplete:max_output_tokens`).
            for name in {word.casefold(), word.casefold().rpartition(":")[2]}:
                earlier_row = words.get(name)
                if earlier_row is None or (earlier_row.stop in WORDLESS and row.stop not in WORDLESS):
                    words[name] = row
    return words
