"""What both servers share: the host names that they answer to, and how an address is shown."""

import pytest

from inspector.provider.hosts import is_own_host, url_host
from loop_core.client.address import loopback


@pytest.mark.parametrize(("host", "local", "shown"), [
    ("127.0.0.1", True, "127.0.0.1"), ("127.8.8.8", True, "127.8.8.8"), ("localhost", True, "localhost"),
    ("::1", True, "[::1]"), ("0.0.0.0", False, "127.0.0.1"), ("::", False, "[::1]"), ("box.lan", False, "box.lan"),
    ("localhost.evil.example", False, "localhost.evil.example"),
])
def test_what_is_local_and_how_an_address_shows_it(host: str, local: bool, shown: str) -> None:
    assert (loopback(host), url_host(host)) == (local, shown)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "localhost:1", "LOCALHOST", "[::1]:8765", "127.8.8.8"])
def test_a_loopback_address_or_name_names_us(host: str) -> None:
    assert is_own_host([host])


@pytest.mark.parametrize("hosts", [
    [], [""], ["evil.example"], ["evil.example:8765"], ["localhost.evil.example"], ["127.0.0.1.evil.example"],
    ["127.0.0.1", "127.0.0.1"], ["127.0.0.1", "evil.example"], ["127.0.0.1:80@evil.example"], ["::1"], ["192.168.1.7"],
    ["127.0.0.1:x"], ["127.0.0.1 "], ["[::1"],
])
def test_another_name_none_and_several_do_not(hosts: list[str]) -> None:
    assert not is_own_host(hosts)


def test_a_name_of_its_own_and_an_address_name_a_server_that_others_reach() -> None:
    assert is_own_host(["box.lan:1"], "BOX.lan", exposed=True)
    assert is_own_host(["192.168.1.7"], "box.lan", exposed=True)
    assert not is_own_host(["evil.example"], "box.lan", exposed=True)
    assert not is_own_host(["192.168.1.7"], "box.lan")
