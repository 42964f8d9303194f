"""Decides which host names this program's servers answer to, and reads and formats their addresses. The module is pure.

A browser sends requests for any page that it shows. If a site rebound its name to this machine, the header Host has
that name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address

from loop_core.client.address import loopback
from loop_core.errors import CallerError

_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]{2,45}\]|[0-9A-Za-z._-]{1,253})(?::[0-9]{1,5})?", re.ASCII)
UNKNOWN_HOST = (421, "this server does not answer to that name; use the address that it printed")
"""The status and the text of the answer to a request whose Host names another server."""


def is_own_host(hosts: Sequence[str], own_name: str = "", exposed: bool = False) -> bool:
    """Whether the Host headers of a request name this server: there is exactly one (RFC 9112, section 3.2), and it is a
    loopback address or name, the name that the server listens on or, if `exposed` to other machines, any IP address.
    Another name could be a DNS rebinding attack; an IP address cannot. The port is not checked, because the other end
    of a tunnel may use another one."""
    found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if found is None:
        return False
    name = found["name"].lower().strip("[]")
    return loopback(name) or (own_name != "" and name == own_name.lower()) or (exposed and is_address(name))


def is_address(host: str) -> bool:
    """Whether a host is an IP address without brackets, instead of a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def url_host(host: str) -> str:
    """A host in the form for a URL; an address for every interface becomes the loopback address."""
    if not is_address(host):
        return host
    address = ip_address(host)
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{address}]" if address.version == 6 else str(address)


def address(listen: str) -> tuple[str, int]:
    """Host and port from `--listen`. Raises `CallerError` if it is not an address of this machine, or has no port."""
    host, colon, port = listen.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or re.fullmatch("[0-9]{1,5}", port) is None or int(port) > 65535:
        raise CallerError(f"--listen {listen}: expected HOST:PORT, such as 127.0.0.1:8765")
    if not loopback(host):
        raise CallerError(f"--listen {listen}: expected an address of this machine alone (127.0.0.1, ::1 or "
                          "localhost); no key is checked")
    return "127.0.0.1" if host.lower() == "localhost" else host, int(port)
