"""Who may come in: the Host and Origin of every request, the token of the printed address, the cookie that it becomes.

Pure. A browser sends requests for any page that it shows, so where a request comes from is looked at before who sends
it: a name that was rebound to this machine shows in Host, a page of another site in Origin and Sec-Fetch-Site.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from math import inf
from typing import NamedTuple

_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]{2,45}\]|[0-9A-Za-z._-]{1,253})(?::[0-9]{1,5})?", re.ASCII)
LOCAL = "localhost"
OWN_SITE = ("same-origin", "none")
"""What Sec-Fetch-Site says of our own page, and of an address that was typed or opened from outside the browser."""


class EntryRefusal(NamedTuple):
    """A status, and one line that a browser shows."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class BrowserClaims:
    """What a request says of itself; None is a header that is absent."""

    hosts: tuple[str, ...]
    origin: str | None = None
    site: str | None = None
    """Sec-Fetch-Site, which a page cannot forge."""
    cookie: str | None = None
    token: str | None = None
    websocket: bool = False
    now: float = 0.0
    """When it came, in seconds of the clock that `Entrance.until` goes by."""


@dataclass(frozen=True, slots=True, repr=False)
class Entrance:
    """What opens the door. The cookie is not the token: neither can be made from the other."""

    token: str
    cookie: str
    exposed: bool = False
    """Whether it listens beyond this machine: an address is then as good a Host as a loopback one."""
    name: str = ""
    """The name that it listens on, if it is none of this machine's loopback names."""
    encrypted: bool = False
    """Whether it has a certificate: its page is then one of https."""
    until: float = inf
    """When token and cookie expire."""

    def knows(self, host: str) -> bool:
        """Whether a Host is ours. An address cannot be rebound, a name can; the port is the browser's to know, since
        a tunnel may have another at its other end.
        """
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found["name"].lower()
        if name == LOCAL or (self.name and name == self.name.lower()):
            return True
        try:
            address = ip_address(name.strip("[]"))
        except ValueError:
            return False
        return address.is_loopback or self.exposed

    def refusal(self, asked: BrowserClaims) -> EntryRefusal | None:
        """Why this request may not come in; None where it may."""
        return next((refusal for holds, refusal in RULES if not holds(self, asked)), None)

    def brings_token(self, asked: BrowserClaims) -> bool:
        """Whether the request carries the token of the printed address."""
        return _same(asked.token, self.token)

    def from_elsewhere(self, asked: BrowserClaims) -> bool:
        """Whether another site led here; a browser then keeps a strict cookie back until our own page asks."""
        return asked.site is not None and asked.site not in OWN_SITE


def _one_known_host(entrance: Entrance, asked: BrowserClaims) -> bool:
    return len(asked.hosts) == 1 and entrance.knows(asked.hosts[0])


def _own_origin(entrance: Entrance, asked: BrowserClaims) -> bool:
    if asked.origin is None:
        return not asked.websocket
    return asked.origin.lower() == f"http{'s' if entrance.encrypted else ''}://{asked.hosts[0]}".lower()


def _own_site(entrance: Entrance, asked: BrowserClaims) -> bool:
    return not entrance.from_elsewhere(asked) or (entrance.brings_token(asked) and not asked.websocket)


def _token_is_right(entrance: Entrance, asked: BrowserClaims) -> bool:
    return asked.token is None or entrance.brings_token(asked)


def _has_key(entrance: Entrance, asked: BrowserClaims) -> bool:
    return entrance.brings_token(asked) or _same(asked.cookie, entrance.cookie)


def _in_time(entrance: Entrance, asked: BrowserClaims) -> bool:
    return asked.now < entrance.until


RULES: tuple[tuple[Callable[[Entrance, BrowserClaims], bool], EntryRefusal], ...] = (
    (_one_known_host, EntryRefusal(421, "this server does not answer to that name; use the address that it printed")),
    (_own_origin, EntryRefusal(403, "only the page of this server may ask that")),
    (_own_site, EntryRefusal(403, "another site led here; open the address that the server printed")),
    (_token_is_right, EntryRefusal(403, "the token is wrong; open the address that the server printed last")),
    (_has_key, EntryRefusal(403, "the token is missing; open the address that the server printed")),
    (_in_time, EntryRefusal(403, "the token has expired; SIGUSR1 makes the server print an address with a new one")),
)
"""What must hold, in order, and the refusal where it does not."""


def _same(given: str | None, expected: str) -> bool:
    """Compared in a time that tells nothing of where they differ."""
    if given is None:
        return False
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())
