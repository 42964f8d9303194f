"""Where a recorded request would go if it were sent again: the address, who answers there, and whose key.

A recording's own credentials are masked in it and are sent nowhere; a key comes from the environment. A recording is
no operator: an address that stands in one gets a provider's key by its host alone, never by what its path looks like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit, urlunsplit

from inspector.live.keys import ANY, secrets_of, variable_for, wanted
from inspector.sessions.detection import REDACTED
from inspector.sessions.values import Exchange
from loop_core.address import Server, refuse_plain, shown, speaker, unencrypted, url_of
from loop_core.errors import CallerError
from loop_core.values import Request
from loop_core.wire import FORMATS, wire
from loop_core.wire.profile import Profile

KEPT_HEADERS = frozenset({"anthropic-version", "anthropic-beta", "openai-beta"})
"""Recorded headers that say how the body is to be read: they go with it."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes; the key is within `server`, and nowhere else."""

    server: Server
    profile: Profile
    model: str | None
    url: str
    """As it is shown."""
    variable: str | None
    """The environment variable that the key comes from; None where there is none."""
    looked_at: tuple[str, ...]
    """The variables that were looked at."""

    @property
    def host(self) -> str:
        """The host, with its port where one is given."""
        return urlsplit(self.url).netloc

    @property
    def open(self) -> bool:
        """Whether everything, the key too, would cross a network unencrypted."""
        return unencrypted(self.url)

    @property
    def key(self) -> str:
        """What is said of the key."""
        if self.variable is not None:
            also = ", which goes to any server" if self.variable == ANY else ""
            return f"key from {self.variable}{also}"
        return f"no key: {' and '.join(self.looked_at)} {'are' if len(self.looked_at) > 1 else 'is'} not set"


def why_not(exchange: Exchange) -> str | None:
    """Why a request cannot be sent again; None where it can."""
    if exchange.recorder is not None:
        return f"this is a transcript of {exchange.recorder}: it does not hold the request that the provider got"
    if exchange.api not in FORMATS:
        return f"{exchange.api} is not one of the formats that requests can be sent in"
    if exchange.request is None or not isinstance(exchange.request_json, Mapping):
        return "its request was not recorded"
    return None


def target_of(
    exchange: Exchange, environment: Mapping[str, str], *, base: str = "", model: str | None = None,
    variable: str | None = None, insecure_http: Sequence[str] = (),
) -> Target:
    """Where the request of a recorded exchange goes; `base` and `model` go before what was recorded.

    Raises:
        CallerError: it cannot be sent again, the recording does not say where to, or a key would go there as plain
            text.
    """
    why = why_not(exchange)
    if why is not None or exchange.request is None:
        raise CallerError(f"it cannot be asked live: {why}")
    request = exchange.request if not model else replace_model(exchange.request, model)
    headers = tuple((name.lower(), value) for name, value in exchange.request_headers
                    if name.lower() in KEPT_HEADERS and REDACTED not in value)
    place = base.strip() or base_of(exchange.url, exchange.api, exchange.request)
    server = Server(exchange.api, place, headers=headers, hidden=secrets_of(environment),
                    insecure_http=tuple(insecure_http))
    owner = speaker(server, request.model)
    by = owner.evidence[0].rule if owner.evidence else ""
    named = exchange.profile_evidence[0].rule == "profile.named" if exchange.profile_evidence else False
    elsewhere = bool(base.strip()) and not named
    if not elsewhere and exchange.profile.name not in ("generic", owner.profile.name) and by != "profile.host":
        server = replace(server, profile=exchange.profile.name)
    trusted = by == "profile.host" or (by == "profile.url" and bool(base.strip()))
    address = owner.profile.name if trusted else ""
    found = variable_for(address, environment, variable)
    if found is not None:
        server = replace(server, key=environment[found].strip())
    refuse_plain(server)
    chosen = speaker(server, request.model)
    names = (variable,) if variable is not None else wanted(address)
    url = shown(url_of(server, wire(exchange.api).path(request)))
    return Target(server, chosen.profile, request.model, url, found, names)


def replace_model(request: Request, model: str) -> Request:
    """The request for another model."""
    from loop_core.frozen import replace as changed

    return changed(request, model=model)


def base_of(url: str, api: str, request: Request) -> str:
    """The base URL that leads to a recorded address, without what is masked in it.

    Raises:
        CallerError: there is no address, or none that leads there.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CallerError("the recording does not say where it was asked; --base-url says it")
    own, _, own_query = wire(api).path(request).partition("?")
    end = next((end for end in (own, f"{own}/", unquote(own)) if parts.path.endswith(end)), None)
    if end is None:
        raise CallerError(f"the recorded address {shown(url)} is none of {api}; --base-url says where to ask")
    path = parts.path.removesuffix(end)
    query = "&".join(pair for pair in parts.query.split("&")
                     if pair and REDACTED not in pair and pair not in own_query.split("&"))
    host = parts.netloc.rpartition("@")[2]
    version = wire(api).home.version
    wanted_url = urlunsplit((parts.scheme, host, path + own, "", ""))
    for base in (path, path.removesuffix(version) if version else path):
        found = urlunsplit((parts.scheme, host, base, query, ""))
        if url_of(Server(api, found), own).partition("?")[0] == wanted_url:
            return found
    raise CallerError(f"the recorded address {shown(url)} has no version; --base-url says where to ask")
