"""The hosts that the recording proxy asks, the addresses that agents get in place of theirs, and the HTTP proxies that
the environment names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from loop_core.client.address import loopback
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.wire import wire


class Upstreams(NamedTuple):
    """The hosts that a proxy asks, and the addresses that it gives to clients in place of theirs."""

    origins: Mapping[str, str]
    """Host and port -> scheme, host and port."""
    paths: Mapping[str, str]
    """Environment variable -> the path of its address at the proxy, such as `/api.openai.com/v1`."""

    def variables(self, url: str) -> dict[str, str]:
        """The environment variables with which clients find the proxy at this URL."""
        return {name: url + path for name, path in self.paths.items()}


def upstreams(to: str | None, environment: Mapping[str, str]) -> Upstreams:
    """The provider at `to` for every client; without it, the address in each variable of the environment, or else the
    provider's own. Raises `CallerError` if an address cannot be used."""
    origins: dict[str, str] = {}
    paths: dict[str, str] = {}
    for form in map(wire, FORMATS):
        own, named = form.home.base + form.serving.base, form.home.variables
        # A provider's variables that are not set hold what another one does: its key must not go elsewhere.
        usual = next((value for name in named if (value := environment.get(name, "").strip())), own)
        for variable in named:
            address = environment.get(variable, "").strip() or usual if to is None else to
            if to is None and "//" not in address:  # Ollama's clients accept a host without a scheme
                address = f"{urlsplit(own).scheme}://{address}"
            host, origin, path = _parts(variable if to is None else "--to", address)
            if to is not None and not form.serving.base:
                path = re.sub(r"/v\d\w*$", "", path)  # clients that take this variable append the version
            if origins.setdefault(host, origin) != origin:
                raise CallerError(f"{variable}: expected one scheme for {host}, not both http and https")
            paths[variable] = f"/{host}{path}"
    return Upstreams(origins, paths)


def _parts(name: str, address: str) -> tuple[str, str, str]:
    """Host and port of an address, its origin, and its path. Raises `CallerError` if it is not a base URL."""
    try:
        parts = urlsplit(address)
        host = parts.netloc if parts.port != 0 and parts.hostname and address.isprintable() else ""
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https"):
        raise CallerError(f"{name}: expected a base URL, http://HOST… or https://HOST…")
    if "@" in host or parts.query or parts.fragment:
        raise CallerError(f"{name}: expected a base URL without a user, a query and a fragment")
    return host, f"{parts.scheme}://{host}", parts.path.rstrip("/")


def environment_proxy(url: str) -> str | None:
    """The proxy that the environment names for an address (HTTPS_PROXY, ALL_PROXY, NO_PROXY); none for this machine.
    Raises `CallerError` if it is of another kind than HTTP."""
    parts = urlsplit(url)
    if loopback(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    named = getproxies()
    found = named.get(parts.scheme) or named.get("all")
    if not found:
        return None
    proxy = found if "//" in found else f"http://{found}"
    with suppress(ValueError):
        if (asked := urlsplit(proxy)).scheme in ("http", "https") and asked.hostname and asked.port != 0:
            return proxy
    # The value may hold a password.
    raise CallerError(f"{parts.scheme.upper()}_PROXY or ALL_PROXY: expected http://HOST…; SOCKS cannot be used")
