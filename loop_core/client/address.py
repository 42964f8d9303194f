"""The address of a server: its base URL, the API version, and the header that authenticates. Pure functions, no I/O."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import unquote, unquote_plus, urlsplit

from loop_core.errors import CallerError, check_kinds
from loop_core.values import Request
from loop_core.wire import wire
from loop_core.wire.format import Prefill
from loop_core.wire.profiles import ProfileChoice, choose, profile_named

REDACTED = "REDACTED"
Headers = tuple[tuple[str, str], ...]


# Azure docs, authentication by key; Vertex AI takes OAuth tokens, and no API key of the Gemini API.
KEY_HEADERS: Mapping[str, str] = {"azure_openai": "api-key", "azure_foundry": "api-key", "vertex": "authorization"}
"""Profile -> the header that carries the key, where it is not the format's header."""

PREFILLS_UNDER: Mapping[str, str] = {"deepseek": "/beta"}
"""Profile -> the suffix that the base URL needs for prefills to be accepted (DeepSeek API docs, Chat Prefix
Completion)."""

_HOST = re.compile(r"[^\s/?#@\\<>^`{|}%]+")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
LENGTH_HEADERS = frozenset({"content-length", "transfer-encoding"})
"""The names of headers that state the length of a request."""
_HARMLESS = frozenset({"api-version", "alt"})  # Azure's and Gemini's: shown, since they say which API was asked
SECRET_NAME = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
"""A pattern for names of headers and URL parameters that carry credentials."""


class Signer(Protocol):
    """Authenticates each request by headers computed for it (AWS Signature Version 4), in place of a key."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """All secrets used for the requests signed so far; none of them may be shown."""

    def __call__(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes, /) -> Headers:
        """Returns the headers to add to a request, which must then be sent unchanged. Raises `LoopError` if there are
        no credentials to sign with."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address, and how to authenticate with it. Its secrets appear in no `repr` and in no text derived from
    it.

    Args:
        api: the id of the wire format, such as openai_chat.
        base: the base URL, as the provider's SDK takes it; empty for the provider's own. It may hold a password.
        key: the API key; empty if the server needs none.
        profile: the name of the server's profile; None to detect it from the address and the answers.
        version: the version part of the path, appended to the path of `base`; None for the format's own version,
            unless `base` names one.
        headers: further headers of every request, as pairs of a name and a value.
        sign: a function that signs each request, retries included, as AWS needs it; None if requests are not
            signed. A signed request carries no key.
        hidden_words: further words that no tool result may show, such as other keys in the environment of the tools.
        insecure_http: hosts, by name or address without a port, that may receive credentials over plain http.
        model: the model of requests that `ask` makes. A `Request` names its own.
    """

    api: str
    base: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    profile: str | None = None
    version: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    sign: Signer | None = field(default=None, repr=False)
    hidden_words: tuple[str, ...] = field(default=(), repr=False)
    insecure_http: tuple[str, ...] = ()
    model: str | None = None

    def __post_init__(self) -> None:
        # A key of an environment variable that is not set is None.
        check_kinds(*((name, getattr(self, name) or "", str) for name in ("model", "version", "profile")),
                    *((name, getattr(self, name), str) for name in ("api", "base", "key")))
        for name, words in (("hidden_words", self.hidden_words), ("insecure_http", self.insecure_http)):
            if isinstance(words, str):  # a string would count as one word per character
                raise CallerError(f"{name}: expected a tuple of texts, not one text")
        if self.sign is not None and not callable(self.sign):
            raise CallerError(f"sign: expected a function, not {type(self.sign).__name__}")
        home = wire(self.api).home.base
        if not isinstance(self.headers, (tuple, list)) or not all(map(_is_pair, self.headers)):
            raise CallerError("headers: expected pairs of a name and a value")
        if not _reachable(self.base or home):
            raise CallerError("--base-url: expected http://HOST… or https://HOST…, with a port from 1 to 65535 if any "
                              "(in a program: Server.base)")
        if not (self.model or "").isprintable():
            raise CallerError("the name of the model holds characters that cannot be sent")
        if not _sendable(self.key):
            raise CallerError("the key holds characters that no header can carry")
        for name, value in self.headers:
            if _HEADER.fullmatch(name) is None or not _sendable(value):
                raise CallerError(f"the header {name!r} holds characters that no header can carry")
            if name.lower() in LENGTH_HEADERS:
                raise CallerError(f"the header {name!r} says how long a request is: expected it from the client alone")

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, and all secrets in the base URL and the further headers; none of them may be shown."""
        parts = urlsplit(self.base)
        pairs = [pair.partition("=") for pair in parts.query.split("&")]
        # The value as the address spells it, and as a server shows it.
        query = [form for name, _, value in pairs if name not in _HARMLESS for form in (value, unquote_plus(value))]
        header_values = [value for name, value in self.headers if SECRET_NAME.search(name)]
        users = [form for word in (parts.username, parts.password) if word for form in (word, unquote(word))]
        if parts.username or parts.password:  # as they are sent: HTTP's basic authentication
            pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            users.append(b64encode(pair.encode()).decode())
        signed = self.sign.secrets if self.sign is not None else ()
        return tuple(dict.fromkeys(word for word in (self.key, *users, *query, *header_values, *signed) if word))


def _is_pair(pair: object) -> bool:
    """Whether a value is a pair of a name and a value, both of them texts. A text of two characters is not a pair."""
    return isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(word, str) for word in pair)


def _sendable(value: str) -> bool:
    """Whether a header can have this value; servers strip or refuse white space at either end."""
    return value.isascii() and value.isprintable() and value == value.strip()


def _reachable(base: str) -> bool:
    try:
        parts = urlsplit(base)
        port, host = parts.port, parts.hostname or ""
        host.encode("idna")  # as in a DNS look-up
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and port != 0 and _HOST.fullmatch(host) is not None and base.isprintable()


def loopback(host: str) -> bool:
    """Whether a host (a name or an address without brackets) is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_unencrypted(url: str) -> bool:
    """Whether requests to this address cross a network as plain text."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not loopback(parts.hostname or "")


def refuse_plain_http(server: Server) -> None:
    """Raises `CallerError` if a server would receive credentials as plain text, unless the operator named its host."""
    base = server.base or wire(server.api).home.base
    host = (urlsplit(base).hostname or "").lower()
    # An IPv6 address may be named with the brackets that it has in a URL.
    allowed = {name.strip().strip("[]").lower() for name in server.insecure_http}
    if is_unencrypted(base) and host not in allowed and _has_credential(server):
        raise CallerError(f"{host}: a key or another credential would be sent there unencrypted, over http: expected "
                          f"https, or --insecure-http {host} with `inspector run` and `inspector replay --live`, or "
                          f"Server(…, insecure_http=({host!r},)) in a program")


def _has_credential(server: Server) -> bool:
    parts = urlsplit(server.base)
    names = [*(pair.partition("=")[0] for pair in parts.query.split("&")), *(name for name, _ in server.headers)]
    return bool(server.key or server.sign is not None or parts.username or parts.password
                or any(SECRET_NAME.search(name) for name in names))


def url_of(server: Server, path: str) -> str:
    """The whole URL as it is sent, secrets included."""
    home = wire(server.api).home
    parts = urlsplit(server.base or home.base)
    base, version = parts.path, server.version
    if version is None:
        base = base.rstrip("/")
        # The SDKs differ: OpenAI's take a base with the version, the others' one without it.
        version = "" if home.versioned.search(base) else home.version
    own, _, query = path.partition("?")
    joined = "&".join(piece for piece in (parts.query, query) if piece)
    return f"{parts.scheme}://{parts.netloc}{base}{version}{own}" + (f"?{joined}" if joined else "")


def public_url(url: str) -> str:
    """The URL without user, password and possibly secret query values."""
    parts = urlsplit(url)
    pairs = [pair.partition("=") for pair in parts.query.split("&") if pair]
    query = "&".join(f"{name}={value if name in _HARMLESS else REDACTED}" for name, _, value in pairs)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" + (f"?{query}" if query else "")


def headers_of(server: Server, stream: bool) -> tuple[tuple[str, str], ...]:
    """The headers as they are sent, without the key."""
    form = wire(server.api)
    accept = form.stream_type if stream else "application/json"
    overrides = {name.lower() for name, _ in server.headers}
    # Nothing compressed: what is recorded is then what was sent.
    own = (("content-type", "application/json"), ("accept", accept), ("accept-encoding", "identity"),
           ("user-agent", "loop-inspector"), *form.home.headers)
    return (*((name, value) for name, value in own if name not in overrides), *server.headers)


def key_header(server: Server, profile: str) -> tuple[tuple[str, str], ...]:
    """The header that carries the key; empty if there is no key or if requests are signed."""
    if not server.key or server.sign is not None:
        return ()
    name = KEY_HEADERS.get(profile, wire(server.api).home.key)
    return ((name, f"Bearer {server.key}" if name == "authorization" else server.key),)


def masked_auth_header(server: Server, profile: str) -> Headers:
    """The authentication header with its secret masked."""
    if server.sign is not None:
        return (("authorization", REDACTED),)
    return tuple((name, REDACTED) for name, _ in key_header(server, profile))


def expected_profile(server: Server, model: str | None) -> ProfileChoice:
    """The profile of the server that will answer, as far as the address and the model show it. Raises `CallerError` if
    the server names a profile that does not exist."""
    if server.profile is not None:
        return profile_named(server.profile, model)
    base = server.base or wire(server.api).home.base
    # The path counts as well: some servers are known by it (`Profile.urls`).
    chosen = choose(server.api, url_of(server, wire(server.api).path(Request(server.api, model=model))), model=model)
    under = PREFILLS_UNDER.get(chosen.profile.name)
    if under is not None and not urlsplit(base).path.rstrip("/").endswith(under):
        return chosen._replace(profile=chosen.profile._replace(prefill=Prefill.NONE))
    return chosen
