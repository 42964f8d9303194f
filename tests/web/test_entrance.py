"""Who is let in: each rule with a request that breaks it alone, and what a browser really sends let through."""

from dataclasses import replace

import pytest

from inspector.web.browser import RULES, BrowserClaims, Entrance, EntryRefusal

OURS = "127.0.0.1:8717"
DOOR = Entrance("token-of-the-address", "value-of-the-cookie")
EXPOSED = replace(DOOR, exposed=True, name="box.lan")
PAGE = BrowserClaims((OURS,), cookie="value-of-the-cookie")
SOCKET = replace(PAGE, origin=f"http://{OURS}", site="same-origin", websocket=True)
FIRST = BrowserClaims((OURS,), site="none", token="token-of-the-address")


@pytest.mark.parametrize("asked", [
    PAGE, SOCKET, FIRST, replace(PAGE, site="none"), replace(PAGE, hosts=("localhost:8717",)),
    replace(PAGE, hosts=("[::1]:8717",)), replace(PAGE, hosts=("127.0.0.1",)), replace(PAGE, hosts=("127.8.9.1:1",)),
    replace(SOCKET, hosts=("localhost:9000",), origin="http://localhost:9000"),  # through a tunnel
    replace(FIRST, site="cross-site"),  # a link in another page, with the token
    replace(FIRST, cookie="of a server that has ended"),
])
def test_what_a_browser_sends_for_our_own_page_comes_in(asked: BrowserClaims) -> None:
    assert DOOR.refusal(asked) is None


def status(refusal: EntryRefusal | None) -> int | None:
    return None if refusal is None else refusal.status


@pytest.mark.parametrize(("asked", "expected"), [
    (replace(PAGE, hosts=("evil.example",)), 421),
    (replace(PAGE, hosts=("evil.example:8717",)), 421),
    (replace(PAGE, hosts=("127.0.0.1.evil.example:8717",)), 421),
    (replace(PAGE, hosts=("localhost.evil.example",)), 421),
    (replace(PAGE, hosts=("box.lan:8717",)), 421),
    (replace(PAGE, hosts=("192.168.1.7:8717",)), 421),
    (replace(PAGE, hosts=("0.0.0.0:8717",)), 421),
    (replace(PAGE, hosts=("2130706433:8717",)), 421),  # 127.0.0.1 as one number
    (replace(PAGE, hosts=("127.0.0.1:8717, evil.example",)), 421),
    (replace(PAGE, hosts=("127.0.0.1:8717\n",)), 421),
    (replace(PAGE, hosts=("",)), 421),
    (replace(PAGE, hosts=()), 421),
    (replace(PAGE, hosts=(OURS, "evil.example")), 421),
    (replace(PAGE, origin="http://evil.example"), 403),
    (replace(SOCKET, origin="http://evil.example"), 403),
    (replace(SOCKET, origin=f"https://{OURS}"), 403),
    (replace(SOCKET, origin="http://127.0.0.1:3000"), 403),  # another server of this machine: same site, other origin
    (replace(SOCKET, origin="http://localhost:8717"), 403),
    (replace(SOCKET, origin="null"), 403),
    (replace(SOCKET, origin=None), 403),
    (replace(PAGE, site="cross-site"), 403),
    (replace(PAGE, site="same-site"), 403),
    (replace(SOCKET, site="cross-site"), 403),
    (replace(PAGE, cookie=None), 403),
    (replace(PAGE, cookie=""), 403),
    (replace(PAGE, cookie="value-of-the-cooki"), 403),
    (replace(PAGE, cookie="token-of-the-address"), 403),
    (replace(SOCKET, cookie=None), 403),
    (replace(FIRST, token="value-of-the-cookie"), 403),
    (replace(FIRST, token=""), 403),
    (replace(FIRST, token="tökén-\udcff"), 403),
    (replace(PAGE, token="wrong"), 403),  # even with the cookie: it is an address of an older start
])
def test_everything_else_is_refused(asked: BrowserClaims, expected: int) -> None:
    assert status(DOOR.refusal(asked)) == expected


@pytest.mark.parametrize("host", ["192.168.1.7:8717", "[fe80::1]:8717", "box.lan:8717", "BOX.lan", OURS])
def test_a_server_for_other_machines_knows_its_name_and_any_address_but_no_other_name(host: str) -> None:
    assert EXPOSED.refusal(replace(PAGE, hosts=(host,))) is None
    assert status(EXPOSED.refusal(replace(PAGE, hosts=("evil.example:8717",)))) == 421


def test_every_rule_is_needed_and_tells_what_to_do() -> None:
    broken = {
        0: replace(PAGE, hosts=("evil.example",)), 1: replace(PAGE, origin="http://evil.example"),
        2: replace(PAGE, site="cross-site"), 3: replace(PAGE, token="x"), 4: replace(PAGE, cookie=None),
        5: replace(PAGE, now=DOOR.until),
    }
    assert len(broken) == len(RULES)
    for at, asked in broken.items():
        assert next(number for number, (holds, _) in enumerate(RULES) if not holds(DOOR, asked)) == at
        assert DOOR.refusal(asked) is RULES[at][1]


def test_neither_secret_is_shown() -> None:
    assert "token-of" not in repr(DOOR)
    assert "value-of" not in repr(DOOR)


@pytest.mark.parametrize("asked", [PAGE, SOCKET, FIRST])
def test_token_and_cookie_hold_until_they_expire(asked: BrowserClaims) -> None:
    door = replace(DOOR, until=100.0)
    assert door.refusal(replace(asked, now=99.9)) is None
    for now in (100.0, 100.1, 1e9):
        assert status(door.refusal(replace(asked, now=now))) == 403
