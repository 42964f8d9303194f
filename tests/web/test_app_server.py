"""The server over real sockets, with small programs in place of the app: who is refused, what is given, what ends."""

import asyncio
import re
import time
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import ClientPayloadError, WSCloseCode, WSServerHandshakeError
from yarl import URL

from inspector.web import app_server, tab
from tests.scenes.web import (
    COOKIE,
    DELIVERS,
    ECHO,
    FLOODS,
    QUITS,
    STUBBORN,
    TOKEN,
    RunningServer,
    alive,
    empty,
    next_message,
    serving,
    wait_for_end,
    words,
)

# -- the door ---------------------------------------------------------------------------------------------------------


ELSEWHERE: tuple[tuple[str, dict[str, str | None], int], ...] = (
    ("/", {"Host": "evil.example"}, 421), ("/?token=the-token", {"Host": "evil.example"}, 421),
    ("/", {"Origin": "http://evil.example"}, 403), ("/", {"Cookie": None}, 403),
    ("/?token=wrong", {"Cookie": None}, 403), ("/?token=", {}, 403), ("/static/page.js", {"Cookie": None}, 403),
    ("/static/page.js?token=the-token", {"Cookie": None}, 403), ("/download/k1", {"Cookie": None}, 403),
    ("/nothing", {"Cookie": None}, 403), ("/", {"Sec_Fetch_Site": "cross-site"}, 403),
)


async def test_a_request_from_elsewhere_is_refused() -> None:
    async with serving(ECHO) as at:
        for path, changed, status in ELSEWHERE:
            async with at.session.get(at.url(path), headers=at.headers(**changed)) as answer:
                assert answer.status == status, (path, changed)
                assert "address that" in await answer.text() or status == 421 or "Origin" in changed
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                assert "Set-Cookie" not in answer.headers, (path, changed)


OTHER_SOCKETS: tuple[tuple[dict[str, str | None], int], ...] = (
    ({"Origin": "http://evil.example"}, 403), ({"Origin": None}, 403), ({"Origin": "null"}, 403),
    ({"Host": "evil.example", "Origin": "http://evil.example"}, 421), ({"Cookie": None}, 403),
    ({"Cookie": "loop-inspector=wrong"}, 403), ({"Sec_Fetch_Site": "same-site"}, 403),
)


async def test_a_socket_from_elsewhere_is_refused() -> None:
    async with serving(ECHO) as at:
        for changed, status in OTHER_SOCKETS:
            with pytest.raises(WSServerHandshakeError) as refused:
                await at.session.ws_connect(at.url("/ws/dark"), headers=at.headers(**changed))
            assert refused.value.status == status, changed
            assert not at.server.tabs


async def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    async with serving(ECHO) as at:
        at.server.cookie = "loop-inspector-1"
        async with at.session.get(at.url(f"/?token={TOKEN}"), allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/")
            given = answer.headers["Set-Cookie"]
            assert given == f"loop-inspector-1={COOKIE}; HttpOnly; Path=/; SameSite=Strict"
            assert TOKEN not in str(answer.headers)
        async with at.session.get(at.url("/")) as page:
            assert page.status == 200
        async with at.session.get(at.url("/?ping=http://evil.example"), allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/")


async def test_a_link_in_another_page_leads_on_from_our_own() -> None:
    async with serving(ECHO) as at:
        headers = {"Sec-Fetch-Site": "cross-site"}
        async with at.session.get(at.url(f"/?token={TOKEN}"), headers=headers, allow_redirects=False) as answer:
            assert answer.status == 200
            assert '<meta http-equiv="refresh" content="0;url=/">' in await answer.text()
            assert "SameSite=Strict" in answer.headers["Set-Cookie"]


# -- paths and methods ------------------------------------------------------------------------------------------------


NO_PATHS = (
    "/static", "/static/", "/static/.", "/static/..", "/static/../app_server.py", "/static/%2e%2e/app_server.py",
    "/static/..%2fapp_server.py", "/static//etc/passwd", "/static/%2Fetc%2Fpasswd", "/static/js/textual.js",
    "/static/page.js%00", "/static/page.js/", "/favicon.ico", "/download/", "/download/..%2f..%2fetc%2fpasswd", "/ws",
    "/ws/", "/ws/other", "//", "/%00",
)


async def test_no_path_leads_to_a_listing_or_to_a_file_that_is_not_named() -> None:
    async with serving(ECHO) as at:
        for path in NO_PATHS:
            url = URL(at.url(path), encoded=True)
            async with at.session.get(url, headers=at.headers(), allow_redirects=False) as answer:
                assert answer.status == 404, path
                assert "passwd" not in await answer.text()


METHODS = (
    ("POST", "/", 405), ("PUT", "/static/page.js", 405), ("OPTIONS", "/", 405), ("HEAD", "/", 200),
    ("HEAD", "/static/page.js", 200), ("HEAD", "/ws/dark", 405), ("HEAD", "/download/k1", 405),
    ("POST", "/ws/dark", 405), ("GET", "/ws/dark", 400),
)


async def test_only_reading_is_answered() -> None:
    async with serving(ECHO) as at:
        for method, path, status in METHODS:
            async with at.session.request(method, at.url(path), headers=at.headers()) as answer:
                assert answer.status == status, (method, path)
                assert not at.server.tabs


async def test_bytes_that_are_no_request_are_answered_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    async with serving(ECHO) as at:
        for rubbish in (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n", b"G" * 100_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", at.at.port)
            writer.write(rubbish)
            answer = await asyncio.wait_for(reader.read(200), 30)
            assert re.match(rb"HTTP/1.[01] 4\d\d ", answer)
            writer.close()
    assert "Traceback" not in "".join(capfd.readouterr())


# -- a tab ------------------------------------------------------------------------------------------------------------


async def test_a_tab_is_a_process_that_hears_it_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STY", "1.tty")
    async with serving(ECHO, "$(touch shell); `id`", "*") as at:
        async with at.tab("/ws/light?width=100&height=30") as socket:
            begun = await next_message(socket)
            assert begun["argv"] == ["$(touch shell); `id`", "*"]
            assert begun["env"] == {
                "COLUMNS": "100", "ROWS": "30", "COLORFGBG": "0;15", "STY": None, "TERM": "xterm-256color",
                "TEXTUAL_DRIVER": "inspector.web.tab_driver:TabDriver",
            }
            for frame, packet in [
                (["stdin", "grün"], {"kind": "D", "data": "grün"}),
                (["resize", {"width": 100, "height": 30}], None),  # as it is already
                (["resize", {"width": 80, "height": 24}],
                 {"kind": "M", "data": '{"type": "resize", "width": 80, "height": 24}'}),
                (["focus"], {"kind": "M", "data": '{"type": "focus"}'}),
                (["blur"], {"kind": "M", "data": '{"type": "blur"}'}),
            ]:
                await socket.send_json(frame)
                if packet is not None:
                    assert await next_message(socket) == packet
            await socket.send_json(["ping", "17"])
            assert (await socket.receive_json(timeout=30)) == ["pong", "17"]
        assert await wait_for_end(begun["pid"])
    assert not Path("shell").exists()


@pytest.mark.parametrize("query", ["", "?width=x&height=-4", "?width=&height=1e9", "?width=0&height=0"])
async def test_a_size_that_is_none_is_a_common_one(query: str) -> None:
    async with serving(ECHO) as at, at.tab(f"/ws/dark{query}") as socket:
        env = (await next_message(socket))["env"]
        assert (env["COLUMNS"], env["ROWS"], env["COLORFGBG"]) == ("80", "24", "15;0")


@pytest.mark.parametrize(("frame", "code"), [
    ('["shell", "rm"]', WSCloseCode.POLICY_VIOLATION), ("[" * 100_000, WSCloseCode.POLICY_VIOLATION),
    (b"\x00\x01", WSCloseCode.POLICY_VIOLATION), ('["stdin", "' + "x" * app_server.MOST_BYTES + '"]', None),
], ids=["unknown", "deep", "binary", "giant"])
async def test_a_frame_that_the_page_never_sends_ends_the_tab(
    frame: str | bytes, code: int | None, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(ECHO) as at, at.tab() as socket:
        pid = (await next_message(socket))["pid"]
        with suppress(ConnectionError):  # a giant one is not even read to its end
            await (socket.send_str(frame) if isinstance(frame, str) else socket.send_bytes(frame))
        await words(socket)
        assert code is None or socket.close_code == code
        assert await wait_for_end(pid)
        await empty(at)
    assert "Traceback" not in "".join(capfd.readouterr())


async def test_there_are_only_so_many_places_and_one_that_is_left_is_given_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_server, "PATIENCE", 0.2)
    async with serving(ECHO, most=2) as at:
        first, second = await at.tab(), await at.tab()
        pid = (await next_message(first))["pid"]
        await next_message(second)
        async with at.tab() as third:
            assert "there is no room for another tab (--sessions 2)" in (await words(third))[0]
            assert third.close_code == WSCloseCode.TRY_AGAIN_LATER
        assert len(at.server.tabs) == 2
        monkeypatch.setattr(app_server, "PATIENCE", 30)
        waiting = await at.tab()
        await first.close()
        assert (await next_message(waiting))["pid"] != pid
        await second.close()
        await waiting.close()


async def test_many_at_once_hold_the_cap_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_server, "PATIENCE", 0.5)
    async with serving(ECHO, most=2) as at:
        tabs = await asyncio.gather(*(at.tab() for _ in range(50)))
        while len(at.said) < 48:
            await asyncio.sleep(0.02)
        with suppress(TimeoutError):  # a process may take longer to start than the others wait for a place
            async with asyncio.timeout(20):
                while len(at.server.tabs) < 2:
                    await asyncio.sleep(0.02)
        assert len(at.server.tabs) == 2
        await asyncio.gather(*(each.close() for each in tabs))


async def test_a_free_place_is_given_however_busy_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_server, "PATIENCE", 0.05)

    async def keep_busy() -> None:
        while True:
            time.sleep(0.1)  # no other task runs meanwhile, as on a machine that has other work
            await asyncio.sleep(0)

    async with serving(ECHO, most=1) as at:
        busy = asyncio.create_task(keep_busy())
        async with at.tab() as socket:
            busy.cancel()
            assert (await next_message(socket))["pid"]
        assert at.said == []


async def test_what_a_process_said_before_it_ended_is_said_on_the_page() -> None:
    async with serving(QUITS) as at, at.tab() as socket:
        assert await words(socket) == ["it ends here \x1b[31m<b>badly</b>"]
        assert at.said == ["it ends here \x1b[31m<b>badly</b>"]
        assert socket.close_code == WSCloseCode.OK


async def test_a_program_that_is_no_app_or_is_not_there_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    async with serving("import sys; print('hello'); sys.exit('no app')") as at, at.tab() as socket:
        assert await words(socket) == ["no app"]
    async with serving(ECHO) as at:
        at.server._argv = ["/nonexistent/program"]
        async with at.tab() as socket:
            assert await words(socket) == ["no process could be started: No such file or directory"]
    assert "".join(capfd.readouterr()) == ""


async def test_a_process_that_does_not_leave_is_ended_with_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tab, "GRACE", 0.3)
    async with serving(STUBBORN) as at:
        async with at.tab() as socket:
            pid, child = (await next_message(socket))["pid"], (await next_message(socket))["child"]
            assert alive(child)
        assert await wait_for_end(pid)
        assert await wait_for_end(child)


async def test_the_end_of_the_server_ends_every_process() -> None:
    async with serving(ECHO) as at:
        tabs = [await at.tab() for _ in range(3)]
        pids = [(await next_message(each))["pid"] for each in tabs]
        listening = [asyncio.create_task(words(each)) for each in tabs]  # a browser reads, and answers the close
        await at.at.close()
        assert not any(alive(pid) for pid in pids)
        await asyncio.gather(*listening)


async def test_a_browser_that_does_not_read_holds_neither_the_server_nor_a_process(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tab, "GRACE", 0.3)
    monkeypatch.setattr(app_server, "GRACE", 0.3)
    async with serving(FLOODS) as at:
        pids = []
        for _ in range(2):
            pids.append((await next_message(await at.tab()))["pid"])  # and then it reads no more
        await asyncio.sleep(0.2)
        await asyncio.wait_for(at.at.close(), 30)
        assert not any(alive(pid) for pid in pids)
        assert not at.server.tabs
    assert "Traceback" not in "".join(capfd.readouterr())


async def test_a_connection_that_breaks_ends_its_process() -> None:
    async with serving(FLOODS) as at:
        socket = await at.tab()
        pid = (await next_message(socket))["pid"]
        socket._conn.transport.abort()
        assert await wait_for_end(pid)
        await empty(at)


async def test_a_tab_that_closes_while_its_process_starts_leaves_none() -> None:
    async with serving(ECHO) as at:
        for _ in range(5):
            socket = await at.tab()
            await socket.close()
        await empty(at)
        assert at.server._places._value == 4


# -- files ------------------------------------------------------------------------------------------------------------


async def handed_over(at: RunningServer, parts: int) -> bytes:
    async with at.tab() as socket:
        while (message := await socket.receive(timeout=30)).data != '["deliver_file_start", "k1"]':
            assert message.data is not None
        async with at.session.get(at.url("/download/k1"), headers=at.headers(Origin=None)) as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"] == "application/octet-stream"
            assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''rep%C3%B6rt%20%3C1%3E.html"
            content = await answer.read()
        async with at.session.get(at.url("/download/k1"), headers=at.headers()) as again:
            assert again.status == 404
        return content


async def test_a_file_is_handed_over_once_and_never_shown() -> None:
    async with serving(DELIVERS, "3") as at:
        assert await handed_over(at, 3) == b"<script>1</script>" + b"x" * 70_000


async def test_a_file_that_is_cut_short_is_no_file() -> None:
    async with serving(DELIVERS, "2") as at:
        with pytest.raises(ClientPayloadError):
            await handed_over(at, 2)
