"""The app in a real browser: what a user does, what another page may do, tabs that come and go."""

from __future__ import annotations

import io
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scenes import chromium
from tests.scenes.web import SAMPLE, Program, alive, program

if chromium.browser_path() is None:
    pytest.skip(f"no browser: none of {', '.join(chromium.NAMES)} is on the path", allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="no driver for a browser: the extra `browser` brings Playwright")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.browser() as opened:
        yield opened


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    made = browser.new_context(color_scheme="light")
    yield made
    made.close()


def wait(page: Any, holds: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def test_a_session_from_the_printed_address_to_a_download(context: Any, tmp_path: Path) -> None:
    """Load, type, click, step, run again under another limit, copy, resize, export, quit."""
    context.add_init_script("""
        window.copied = [];
        const write = navigator.clipboard.writeText.bind(navigator.clipboard);
        navigator.clipboard.writeText = (text) => { window.copied.push(text); return write(text); };
    """)
    with program(SAMPLE) as served:
        seen = chromium.PageRecord(context)
        page = seen.page
        page.goto(served.url)
        seen.shows("CUT CALL RUN")
        assert page.url == f"{served.origin}/"
        assert page.title() == "01-cut-call-and-long-answer.session.jsonl · Loop Inspector"
        socket = f"{served.origin.replace('http', 'ws')}/ws/light"
        assert any(socket in asked for asked in seen.asked)  # a browser asks for the icon when it likes
        page.wait_for_selector("body.-first-byte")
        assert page.evaluate("document.activeElement.className") == "xterm-helper-textarea"
        assert page.evaluate("document.cookie") == ""
        whole = "(({scrollWidth, scrollHeight}) => [scrollWidth, scrollHeight])(document.documentElement)"
        assert page.evaluate(whole) == [1200, 720]
        assert page.evaluate("document.fonts.check(\"16px 'Roboto Mono'\")")

        page.keyboard.press("Enter")
        seen.shows("step 22/28")
        page.keyboard.press("Space")
        seen.shows("step 23/28")
        page.keyboard.press(":")
        seen.shows("1 to 28")
        page.keyboard.type("22\n")
        seen.shows("step 22/28")
        page.mouse.click(*seen.cell(58, 4))
        seen.shows("[2 Response]")
        page.keyboard.press("e")
        seen.shows("continuation_max_attempts")
        page.keyboard.type("5\n")
        seen.shows("Run attempts=5 beside the original")
        page.keyboard.press("y")
        wait(page, lambda: bool(page.evaluate("window.copied.length")))
        assert page.evaluate("window.copied[0]") == "▶ 18 ✓ Complete            completed"
        seen.shows("if the browser allows it")

        page.set_viewport_size({"width": 760, "height": 480})
        wait(page, lambda: seen.size()[0] < 100)
        columns, rows = seen.size()
        assert 70 < columns < 95
        assert 18 < rows < 26
        seen.shows("[5Diff]")  # as the small layout names it
        picture = page.screenshot()
        assert len(set(picture)) > 100
        assert len(picture) > 10_000  # an empty terminal of this size is a tenth of that

        with page.expect_download() as taken:
            page.keyboard.press("Shift+X")
        taken.value.save_as(tmp_path / "report.zip")
        assert taken.value.suggested_filename.startswith("loop-inspector-")
        with zipfile.ZipFile(io.BytesIO((tmp_path / "report.zip").read_bytes())) as archive:
            assert sorted(Path(name).suffix for name in archive.namelist()) == [".jsonl", ".md"]
            assert archive.testzip() is None
        assert len(context.pages) == 1

        page.keyboard.press("Control+q")
        page.wait_for_selector("#ended:not([hidden])")
        assert page.inner_text("#ended-word") == "The session has ended"
        page.keyboard.press("Enter")  # Start again has the focus
        seen.shows("CUT CALL RUN")
        assert {url.split("/")[2] for url in seen.asked if not url.startswith("blob:")} == {served.origin.split("/")[2]}
        assert seen.complaints == []


def test_another_page_gets_nothing(context: Any) -> None:
    """With the cookie in the jar: a page of another site, and one of another port of this machine."""
    with program(SAMPLE) as served:
        own = chromium.PageRecord(context)
        own.page.goto(served.url)
        own.shows("CUT CALL RUN")
        for site in ("http://evil.example/", "http://127.0.0.1:1/"):
            page = context.new_page()
            page.route(site, lambda route: route.fulfill(body="<title>evil</title>", content_type="text/html"))
            page.goto(site)
            tried = page.evaluate("""async (origin) => {
                const socket = await new Promise((done) => {
                    const made = new WebSocket(origin.replace("http", "ws") + "/ws/dark");
                    made.onopen = () => done("open");
                    made.onerror = () => done("refused");
                });
                const text = await fetch(origin + "/", {credentials: "include"}).then((a) => a.text(), () => "refused");
                const script = await new Promise((done) => {
                    const made = document.createElement("script");
                    made.src = origin + "/static/page.js";
                    made.onload = () => done("loaded");
                    made.onerror = () => done("refused");
                    document.head.append(made);
                });
                const frame = await new Promise((done) => {
                    const made = document.createElement("iframe");
                    made.src = origin + "/";
                    made.onload = () => done(made.contentDocument ? "seen" : "refused");
                    document.body.append(made);
                });
                return [socket, text, script, frame];
            }""", served.origin)
            assert tried == ["refused"] * 4
            if sys.platform.startswith("linux"):
                assert len(served.tabs()) == 1
            page.close()
        page = context.new_page()
        page.route("http://evil.example/", lambda route: route.fulfill(
            body=f"<a href='{served.origin}/'>in</a><a id=token href='{served.url}'>in</a>", content_type="text/html"))
        page.goto("http://evil.example/")
        page.click("a")
        page.wait_for_url(f"{served.origin}/")
        assert "open the address that the server printed" in page.inner_text("body")
        context.clear_cookies()
        page.goto("http://evil.example/")
        page.click("#token")  # as from a terminal in a page: the strict cookie is sent when our own page goes on
        page.wait_for_selector("body.-first-byte")
        assert page.url == f"{served.origin}/"


def test_tabs_come_and_go_with_their_processes(context: Any) -> None:
    def count(served: Program, number: int) -> None:
        wait(first.page, lambda: len(served.tabs()) == number)

    with program(SAMPLE, "--sessions", "2", "--idle", "0") as served:
        first, second = chromium.PageRecord(context), chromium.PageRecord(context)
        first.page.goto(served.url)
        first.shows("CUT CALL RUN")
        second.page.goto(f"{served.origin}/")
        second.shows("CUT CALL RUN")
        assert len(served.tabs()) == 2
        before = served.tabs()
        second.page.reload()
        second.shows("CUT CALL RUN")  # at the cap: the page that is left gives its place
        # The process of the page that is left may end after the new page shows its own.
        wait(first.page, lambda: len(served.tabs()) == 2 and len(set(before) & set(served.tabs())) == 1)
        third = context.new_page()
        third.goto(f"{served.origin}/")
        third.wait_for_selector("#ended:not([hidden])")
        assert "there is no room for another tab (--sessions 2)" in third.inner_text("#ended-said")
        assert third.inner_text("#ended-word") == "The session did not start"
        third.close()
        second.page.close()
        count(served, 1)
        for _ in range(3):  # closed while it starts
            page = context.new_page()
            page.goto(f"{served.origin}/", wait_until="commit")
            page.close()
        count(served, 1)
        (pid,) = served.tabs()
        served.process.terminate()
        assert served.outcome()[0] == 0
        assert not alive(pid)
        first.page.wait_for_selector("#ended:not([hidden])")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up as Linux lists them")
def test_pages_that_are_loaded_again_keep_their_own_tabs_where_they_were(context: Any) -> None:
    """Also at the cap, and in a page that was opened later."""
    with program(SAMPLE, "--sessions", "2") as served:
        first, second = chromium.PageRecord(context), chromium.PageRecord(context)
        first.page.goto(served.url)
        first.shows("CUT CALL RUN")
        first.page.keyboard.press("Enter")
        first.shows("step 22/28")
        first.page.keyboard.press("Space")
        first.shows("step 23/28")
        (pid,) = served.tabs()
        first.page.reload()
        first.shows("step 23/28")
        assert served.tabs() == [pid]
        second.page.goto(f"{served.origin}/")
        second.shows("CUT CALL RUN")
        second.page.keyboard.press("Enter")
        second.shows("step 22/28")
        second.page.keyboard.press("End")
        second.shows("step 28/28")
        for page in (first.page, second.page):  # both are left, the first before the second
            page.goto("about:blank")
        first.page.goto(f"{served.origin}/")
        first.shows("step 23/28")
        second.page.goto(f"{served.origin}/")
        second.shows("step 28/28")
        assert len(served.tabs()) == 2
        first.page.close()
        third = chromium.PageRecord(context)
        third.page.goto(f"{served.origin}/")
        third.shows("step 23/28")
        third.page.keyboard.press("Space")
        third.shows("step 24/28")
        assert len(served.tabs()) == 2
        assert pid in served.tabs()


def test_a_page_that_is_open_when_its_token_expires_says_so(context: Any) -> None:
    """The server's close is played here, so that no test waits for a token."""

    def expire(socket: Any) -> None:
        socket.send('["said", "open the address that the server prints"]')
        socket.close(code=4001)

    with program(SAMPLE) as served:
        page = context.new_page()
        page.route_web_socket("**/ws/**", expire)
        page.goto(served.url)
        page.wait_for_selector("#ended:not([hidden])", timeout=60_000)
        assert page.inner_text("#ended-word") == "The token has expired"
        assert page.inner_text("#ended-said") == "open the address that the server prints"


def test_the_app_is_drawn_over_https(browser: Any, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with program(SAMPLE, "--host", "0.0.0.0", "--expose", "--cert", str(cert), "--key", str(key)) as served:
        assert served.url.startswith("https://127.0.0.1:")
        context = browser.new_context(ignore_https_errors=True)
        watched = chromium.PageRecord(context)
        watched.page.goto(served.url)
        watched.shows("CUT CALL RUN")
        watched.page.keyboard.press("Enter")
        watched.shows("step 22/28")
        watched.page.keyboard.press("Space")
        watched.shows("step 23/28")
        assert any(asked.startswith("wss://127.0.0.1:") for asked in watched.asked)
        assert all(cookie["secure"] for cookie in context.cookies())
        context.close()
