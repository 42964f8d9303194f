"""Tabs without a browser stay a while, are shown again where they were, and end; tokens expire and are renewed."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import ClientSession, CookieJar

from inspector.config.files import PLACE_VARIABLE
from inspector.web import app_server
from inspector.web.browser import Entrance
from tests.scenes.web import (
    COOKIE,
    ECHO,
    QUITS,
    TOKEN,
    RunningServer,
    alive,
    empty,
    next_message,
    serving,
    wait_for_end,
    words,
)

LONG = 10_000.0
"""Seconds; no test waits for them."""


async def wait_for_leave(at: RunningServer, count: int = 1) -> None:
    """Waits until the server has seen that so many browsers have gone."""
    async with asyncio.timeout(30):
        while len(at.server._unshown_tabs) < count:
            await asyncio.sleep(0.01)


async def test_a_tab_is_shown_again_where_it_was_by_the_next_browser() -> None:
    async with serving(ECHO, idle=LONG) as at:
        async with at.tab() as socket:
            pid = (await next_message(socket))["pid"]
        await wait_for_leave(at)
        async with at.tab("/ws/dark?width=90&height=20") as again:
            seen = [(await next_message(again))["data"]]
            while seen[-1] != '{"type": "focus"}':
                seen.append((await next_message(again))["data"])
            # Drawn anew in full: a size that it has not, the size of the new page, and the keyboard.
            assert seen[-3:] == ['{"type": "resize", "width": 90, "height": 19}',
                                 '{"type": "resize", "width": 90, "height": 20}', '{"type": "focus"}']
            await again.send_json(["stdin", "x"])
            assert (await next_message(again))["data"] == "x"
        assert alive(pid)
        assert len(at.server.tabs) == 1
    assert await wait_for_end(pid)


async def test_what_sets_a_terminal_up_is_said_to_the_next_one() -> None:
    modes = ECHO.replace("for kind, data in packets():", """send(b"D", b"\\x1b[?1049h\\x1b[?2026h text \\x1b[?1003h")
send(b"D", b"\\x1b[?1049l\\x1b]11;#101010\\x1b\\\\")
for kind, data in packets():""")
    async with serving(modes, idle=LONG) as at:
        async with at.tab() as socket:
            await next_message(socket)
            await socket.send_json(["stdin", "x"])
            while (await next_message(socket))["kind"] != "D":
                pass
        await wait_for_leave(at)
        async with at.tab() as again:
            seen = b""
            while b"1003" not in seen:
                seen = await again.receive_bytes(timeout=30)
            assert seen == b"\x1b[?1049l\x1b[?1003h\x1b]11;#101010\x1b\\"


async def test_a_tab_without_a_browser_ends_after_its_time() -> None:
    async with serving(ECHO, idle=0.05, most=1) as at:
        async with at.tab() as socket:
            pid = (await next_message(socket))["pid"]
        assert await wait_for_end(pid)
        await empty(at)
        async with at.tab() as other:  # its place is free again
            assert (await next_message(other))["pid"] != pid


async def test_one_that_is_shown_again_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(ECHO, idle=LONG) as at:
        async with at.tab() as socket:
            await next_message(socket)
        await wait_for_leave(at)
        (ending,) = at.server._unshown_tabs.values()
        async with at.tab() as again:
            await next_message(again)
            assert ending.cancelled()
            assert at.server._unshown_tabs == {}


async def test_a_tab_that_is_left_takes_no_place_from_the_next_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_server, "PATIENCE", 30)
    async with serving(ECHO, idle=LONG, most=1) as at:
        first = await at.tab()
        pid = (await next_message(first))["pid"]
        waiting = await at.tab()  # as a page that is loaded again
        await first.close()
        while (await next_message(waiting)).get("data") != '{"type": "focus"}':
            pass
        assert list(at.server.tabs) != []
        assert alive(pid)
        await waiting.close()


async def test_one_that_ends_by_itself_or_misbehaves_does_not_stay() -> None:
    async with serving(QUITS, idle=LONG) as at:
        async with at.tab() as socket:
            await words(socket)
        await empty(at)
    async with serving(ECHO, idle=LONG) as at:
        async with at.tab() as socket:
            pid = (await next_message(socket))["pid"]
            await socket.send_str("no frame")
            await words(socket)
        assert await wait_for_end(pid)
        await empty(at)


async def test_a_token_and_its_cookie_expire_and_are_renewed() -> None:
    now = [0.0]
    async with serving(ECHO, idle=LONG, clock=lambda: now[0], until=24 * 3600) as at:
        async def status(path: str, cookie: str | None = COOKIE) -> tuple[int, str]:
            given = None if cookie is None else f"{at.server.cookie}={cookie}"
            async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as fresh, \
                    fresh.get(at.url(path), headers=at.headers(Cookie=given), allow_redirects=False) as answer:
                return answer.status, await answer.text()

        async with at.tab() as socket:
            pid = (await next_message(socket))["pid"]
        await wait_for_leave(at)
        now[0] = 24 * 3600 - 1
        assert (await status("/"))[0] == 200
        assert (await status(f"/?token={TOKEN}", None))[0] == 303
        now[0] = 24 * 3600
        for path, cookie in (("/", COOKIE), (f"/?token={TOKEN}", None), ("/static/page.js", COOKIE)):
            code, said = await status(path, cookie)
            assert code == 403
            assert "has expired" in said
        at.server.renew(Entrance("token-2", "cookie-2", until=48 * 3600))
        assert (await status(f"/?token={TOKEN}", None))[0] == 403
        assert (await status("/"))[0] == 403
        assert (await status("/?token=token-2", None))[0] == 303
        assert (await status("/", "cookie-2"))[0] == 200
        assert alive(pid)  # what was open stays, for whoever has the new address


NAMES = ("0" * 32, "a1" * 16)


def socket_path(name: str) -> str:
    return f"/ws/dark/{name}?width=100&height=30"


async def test_each_page_gets_back_the_tab_that_was_its_own() -> None:
    async with serving(ECHO, idle=LONG) as at:
        pids, sockets = [], [await at.tab(socket_path(name)) for name in NAMES]
        for socket in sockets:
            pids.append((await next_message(socket))["pid"])
        for count, socket in enumerate(sockets, 1):
            await socket.close()
            await wait_for_leave(at, count)
        for name, pid in zip(NAMES, pids, strict=True):  # the one that was left first comes first
            async with at.tab(socket_path(name)) as again:
                while (await next_message(again)).get("data") != '{"type": "focus"}':
                    pass
                (shown,) = [tab for tab in at.server.tabs if tab not in at.server._unshown_tabs]
                assert shown._process is not None
                assert (shown.name, shown._process.pid) == (name, pid)
            await wait_for_leave(at, 2)
        assert len(at.server.tabs) == 2


async def test_a_page_that_is_loaded_again_waits_for_its_own_tab_where_others_are_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app_server, "PATIENCE", 120)  # as long as a busy machine needs
    async with serving(ECHO, idle=LONG, most=4) as at:
        first = await at.tab(socket_path(NAMES[0]))
        pid = (await next_message(first))["pid"]
        again = await at.tab(socket_path(NAMES[0]))  # before the server sees that the old page has gone
        await first.close()
        while (await next_message(again)).get("data") != '{"type": "focus"}':
            pass
        assert [tab._process.pid for tab in at.server.tabs if tab._process] == [pid]
        await again.close()


async def test_each_page_begins_where_its_own_tab_was_that_ended() -> None:
    async with serving(ECHO, idle=LONG) as at:
        sockets = [await at.tab(socket_path(name)) for name in NAMES]
        for socket in sockets:
            await next_message(socket)
        for tab in at.server.tabs:
            tab.place = f'"{tab.name}"'
        for count, socket in enumerate(sockets, 1):
            await socket.close()
            await wait_for_leave(at, count)
        for tab in list(at.server.tabs):
            at.server._ends_idle(tab)
        await empty(at)
        for name in NAMES:
            async with at.tab(socket_path(name)) as socket:
                await next_message(socket)
                (shown,) = [tab for tab in at.server.tabs if tab.name == name]
                assert shown._environment[PLACE_VARIABLE] == f'"{name}"'


async def test_a_page_that_is_open_when_its_token_expires_says_so_and_its_tab_waits() -> None:
    async with serving(ECHO, idle=LONG, clock=lambda: 0.0, until=0.05) as at:
        async with at.tab() as socket:
            assert "SIGUSR1" in (await words(socket))[0]
            assert socket.close_code == app_server.EXPIRED
        await wait_for_leave(at)


async def test_what_is_typed_after_the_token_has_expired_reaches_no_process() -> None:
    now = [0.0]
    async with serving(ECHO, idle=LONG, clock=lambda: now[0], until=LONG) as at:
        async with at.tab() as socket:
            pid = (await next_message(socket))["pid"]
            now[0] = LONG
            await socket.send_json(["stdin", "typed too late"])
            heard = []
            async for message in socket:
                heard.append(message.data)
            assert "typed too late" not in str(heard)
            assert socket.close_code == app_server.EXPIRED
        await wait_for_leave(at)
        assert alive(pid)
